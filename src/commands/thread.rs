//! `thread`: select a thread and show it.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::FrameView;
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::store::replay::Moment;

/// Select a thread and show it
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Thread {
    /// The thread's id, as `threads` shows it; without it, the selected one.
    #[arg(value_name = "ID", allow_negative_numbers = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<i64>,
}

impl Command for Thread {
    const NAME: &'static str = "thread";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Selects;
    type Output = FrameView;

    async fn run(self, cx: Context) -> Result<FrameView, Failure> {
        FrameView::select(&cx, self.id, None).await
    }

    fn recorded(self, moment: &Moment) -> Result<FrameView, Failure> {
        FrameView::recorded(moment, self.id, None)
    }
}
