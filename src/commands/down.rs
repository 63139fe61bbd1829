//! `down`: select the frame that the selected one called.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::FrameView;
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::session::FrameChoice;

/// Select the frame that the selected one called
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Down {}

impl Command for Down {
    const NAME: &'static str = "down";
    const GROUP: Group = Group::Looking;
    type Output = FrameView;

    async fn run(self, cx: Context) -> Result<FrameView, Failure> {
        FrameView::select(&cx, None, Some(FrameChoice::Down)).await
    }
}
