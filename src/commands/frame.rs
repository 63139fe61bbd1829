//! `frame`: select a frame and show it.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::FrameView;
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::session::FrameChoice;
use crate::store::replay::Moment;

/// Select a frame and show it
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// The frame's number (0 is the innermost); without it, the selected one.
    #[arg(value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
}

impl Command for Frame {
    const NAME: &'static str = "frame";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Selects;
    type Output = FrameView;

    async fn run(self, cx: Context) -> Result<FrameView, Failure> {
        FrameView::select(&cx, None, self.number.map(FrameChoice::Number)).await
    }

    fn recorded(self, moment: &Moment) -> Result<FrameView, Failure> {
        FrameView::recorded(moment, None, self.number.map(FrameChoice::Number))
    }
}
