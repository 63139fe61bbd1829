//! `set`: change a variable.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::eval::Evaluated;
use super::looking::At;
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::View;
use crate::session::{Answer, Op};

/// Change a variable: `set counter 100`, `set 'p.x = 3'`
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Set {
    /// What to change, then its new value.
    #[arg(value_name = "LHS VALUE", required = true)]
    #[serde(default)]
    pub words: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
}

impl Command for Set {
    const NAME: &'static str = "set";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Changes;
    type Output = Evaluated;

    async fn run(self, cx: Context) -> Result<Evaluated, Failure> {
        let (target, value) = split(&self.words)
            .ok_or_else(|| Failure::usage("no new value was given").hint("bugeye set NAME VALUE, or 'NAME = VALUE'"))?;
        let look = self.at.look(View::default());
        match cx.ask(Op::Set { target: target.clone(), value, look }).await? {
            Answer::Text(value) => Ok(Evaluated::new(target, &value)),
            other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        }
    }
}

/// `a 3`, `a = 3` and `'a = 3'` are the same.
fn split(words: &[String]) -> Option<(String, String)> {
    let parts = match words {
        [one] => one.split_once('=').map(|(target, value)| (target.to_string(), value.to_string()))?,
        [target, equals, rest @ ..] if equals == "=" => (target.clone(), rest.join(" ")),
        [target, rest @ ..] => (target.clone(), rest.join(" ")),
        [] => return None,
    };
    let (target, value) = (parts.0.trim().to_string(), parts.1.trim().to_string());
    (!target.is_empty() && !value.is_empty()).then_some((target, value))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn every_form_of_an_assignment_is_read() {
        let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expected = Some(("a.b".to_string(), "3".to_string()));
        for form in [vec!["a.b", "3"], vec!["a.b", "=", "3"], vec!["a.b = 3"], vec!["a.b=3"]] {
            assert_eq!(split(&words(&form)), expected, "{form:?}");
        }
        assert_eq!(split(&words(&["a"])), None);
        assert_eq!(split(&words(&["a ="])), None);
    }
}
