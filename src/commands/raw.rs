//! `raw`: a native command of the underlying debugger.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::render::{Page, Render, cut_json, quoted_lines};
use crate::session::{Answer, Op};

/// Give the underlying debugger one of its own commands
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Raw {
    /// The command; words are joined.
    #[arg(value_name = "COMMAND", required = true, allow_hyphen_values = true, trailing_var_arg = true)]
    #[serde(default)]
    pub words: Vec<String>,
}

/// The most a reply carries: what `--full` allows elsewhere.
const LONGEST: usize = 96 * 1024;

/// What the debugger said.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    pub text: String,
}

impl Render for Said {
    fn render(&self, page: &mut Page) {
        let text = quoted_lines(self.text.trim_end());
        let (text, cut) = crate::render::cut(&text, 8000);
        page.line(if text.is_empty() { "done" } else { text });
        if cut > 0 {
            page.line(format!("… {cut} characters more; --json has more of them"));
        }
    }
}

impl Command for Raw {
    const NAME: &'static str = "raw";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Changes;
    type Output = Said;

    async fn run(self, cx: Context) -> Result<Said, Failure> {
        match cx.ask(Op::Raw(self.words.join(" "))).await? {
            Answer::Text(text) => Ok(Said { text: cut_json(&text, LONGEST).0.to_string() }),
            other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        }
    }
}
