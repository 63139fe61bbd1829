//! `up`: select the caller of the selected frame.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::FrameView;
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::session::FrameChoice;
use crate::store::replay::Moment;

/// Select the caller of the selected frame
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Up {}

impl Command for Up {
    const NAME: &'static str = "up";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Selects;
    type Output = FrameView;

    async fn run(self, cx: Context) -> Result<FrameView, Failure> {
        FrameView::select(&cx, None, Some(FrameChoice::Up)).await
    }

    fn recorded(self, moment: &Moment) -> Result<FrameView, Failure> {
        FrameView::recorded(moment, None, Some(FrameChoice::Up))
    }
}
