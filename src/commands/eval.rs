//! `eval`: run an expression in the program.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::At;
use super::past;
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::{View, is_pure};
use crate::render::{Page, Render, cut_json, quoted, quoted_lines};
use crate::session::{Answer, Op};
use crate::store::replay::{Asked, Moment};

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
    /// Characters of the value that this reply leaves out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u64,
}

/// What the value may take of a reply.
const LONGEST: usize = 26 * 1024;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Evaluated {
    pub fn new(expression: String, value: &str) -> Self {
        let (shown, cut) = cut_json(value, LONGEST);
        Self { expression, value: shown.to_string(), cut: u64::try_from(cut).unwrap_or(u64::MAX) }
    }
}

impl Render for Evaluated {
    fn render(&self, page: &mut Page) {
        let expression = quoted(&self.expression);
        if self.value.is_empty() {
            page.line(format!("{expression}: done"));
        } else {
            page.line(format!("{expression} = {}", quoted_lines(&self.value)));
        }
        if self.cut > 0 {
            page.line(format!("… {} characters more: evaluate a part of it", self.cut));
        }
    }
}

impl Command for Eval {
    const NAME: &'static str = "eval";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Changes;
    type Output = Evaluated;

    fn past(&self) -> Past {
        if is_pure(&self.words.join(" ")) { Past::Told } else { Self::PAST }
    }

    async fn run(self, cx: Context) -> Result<Evaluated, Failure> {
        let expression = self.words.join(" ");
        let look = self.at.look(View::default());
        match cx.ask(Op::Evaluate { expression: expression.clone(), look }).await? {
            Answer::Text(value) => Ok(Evaluated::new(expression, &value)),
            other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        }
    }

    fn recorded(self, moment: &Moment) -> Result<Evaluated, Failure> {
        let expression = self.words.join(" ");
        let same = |asked: &&Asked| asked.effect && asked.expression == expression;
        match moment.asked.iter().rev().find(same) {
            Some(Asked { found: Ok(value), .. }) if self.at.is_selected() && value.cut == 0 => {
                Ok(Evaluated::new(expression, &value.text))
            }
            _ => Err(past::unanswered(moment, Self::NAME, Self::PAST).hint("what was read: bugeye print EXPR")),
        }
    }
}
