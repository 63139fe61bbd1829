//! `eval`: run an expression in the program.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::At;
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::View;
use crate::render::{Page, Render, quoted, quoted_lines};
use crate::session::{Answer, Op};

/// Evaluate an expression that may change the program
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Eval {
    /// The expression; words are joined.
    #[arg(value_name = "EXPR", required = true)]
    #[serde(default)]
    pub words: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
}

/// What came of it. The value is debuggee text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Evaluated {
    pub expression: String,
    pub value: String,
}

impl Render for Evaluated {
    fn render(&self, page: &mut Page) {
        let expression = quoted(&self.expression);
        if self.value.is_empty() {
            page.line(format!("{expression}: done"));
        } else {
            page.line(format!("{expression} = {}", quoted_lines(&self.value)));
        }
    }
}

impl Command for Eval {
    const NAME: &'static str = "eval";
    const GROUP: Group = Group::Looking;
    type Output = Evaluated;

    async fn run(self, cx: Context) -> Result<Evaluated, Failure> {
        let expression = self.words.join(" ");
        let look = self.at.look(View::default());
        match cx.ask(Op::Evaluate { expression: expression.clone(), look }).await? {
            Answer::Text(value) => Ok(Evaluated { expression, value }),
            other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        }
    }
}
