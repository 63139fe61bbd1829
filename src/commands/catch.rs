//! `catch`: stop on exceptions.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::render::{Page, Render};
use crate::session::Op;

/// Stop when exceptions are thrown
///
/// Words: `throw [TYPE]`, `raised`, `uncaught`, `panic`, or the adapter's own filters. Alone it lists; `catch none` catches
/// nothing; `catch remove ID` removes one; `catch default` goes back to the adapter's own choice.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Catch {
    /// What to catch; `list`, `none`, `default`, `remove ID`.
    #[arg(value_name = "WHAT")]
    #[serde(default)]
    pub what: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CatchList {
    /// In order; the first has id 1.
    pub catching: Vec<String>,
}

impl Render for CatchList {
    fn render(&self, page: &mut Page) {
        match self.catching.as_slice() {
            [] => page.line("catching what the adapter does by itself (uncaught exceptions, crashes)"),
            [none] if none == "none" => page.line("catching nothing"),
            words => {
                for (index, word) in words.iter().enumerate() {
                    page.line(format!("catch {}: {}", index + 1, crate::render::quoted(word)));
                }
            }
        }
    }
}

fn is_word(text: &str) -> bool {
    matches!(text, "throw" | "raised" | "uncaught" | "caught" | "panic" | "catch")
        || text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') && text.contains('_')
}

fn add(catching: &mut Vec<String>, word: &str) {
    catching.retain(|known| known != "none");
    if !catching.iter().any(|known| known == word) {
        catching.push(word.into());
    }
}

impl Command for Catch {
    const NAME: &'static str = "catch";
    const GROUP: Group = Group::Breakpoints;
    type Output = CatchList;

    async fn run(self, cx: Context) -> Result<CatchList, Failure> {
        let project = cx.project();
        let mut catching = cx.hub.wishes(&project).catch;
        match self.what.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] | ["list"] => return Ok(CatchList { catching }),
            ["none"] => catching = vec!["none".into()],
            ["default"] => catching.clear(),
            ["remove", id] => {
                let index = id.parse::<usize>().ok().and_then(|id| id.checked_sub(1)).filter(|at| *at < catching.len());
                let Some(index) = index else {
                    return Err(Failure::not_found(format!("there is no catch {id}")).hint("list them: bugeye catch"));
                };
                catching.remove(index);
            }
            // `throw TYPE` is one wish of two words.
            [word @ ("throw" | "raised" | "uncaught"), kind] if !is_word(kind) => {
                add(&mut catching, &format!("{word} {kind}"));
            }
            words => words.iter().for_each(|word| add(&mut catching, word)),
        }
        if let Some(live) = cx.maybe_session() {
            live.handle.ask(Op::Catch(catching.clone())).await?;
        }
        cx.hub.edit_wishes(&project, |table| table.catch.clone_from(&catching))?;
        Ok(CatchList { catching })
    }
}
