//! `locals` and `args`: the variables of a frame.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::{At, Extent, Variables, look};
use super::past::{self, Spot};
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::Variable;
use crate::session::{Answer, Locals as Which, Look, Op, Scope};
use crate::store::replay::Moment;

/// Show the local variables of the selected frame, with their types
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Locals {
    /// locals, globals, statics, closure or all.
    #[arg(long, value_name = "SCOPE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
    #[command(flatten)]
    #[serde(flatten)]
    pub extent: Extent,
}

/// Show the arguments of the selected frame
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Arguments {
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
    #[command(flatten)]
    #[serde(flatten)]
    pub extent: Extent,
}

async fn locals(cx: &Context, at: &At, extent: &Extent, scope: Scope) -> Result<Variables, Failure> {
    let look_at = Look { locals: Which::Selected, scope, ..at.look(extent.view()) };
    let seen = look(cx, Op::Look(look_at)).await?;
    let function = seen.frames.first().map(|frame| frame.function.clone()).unwrap_or_default();
    Ok(Variables { function, variables: seen.locals, gaps: seen.gaps })
}

impl Command for Locals {
    const NAME: &'static str = "locals";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Reads;
    type Output = Variables;

    async fn run(self, cx: Context) -> Result<Variables, Failure> {
        locals(&cx, &self.at, &self.extent, self.scope.unwrap_or(Scope::Locals)).await
    }

    fn recorded(self, moment: &Moment) -> Result<Variables, Failure> {
        if !matches!(self.scope, None | Some(Scope::Locals)) {
            return Err(past::missing(moment, "locals --scope"));
        }
        known(moment, &self.at, &self.extent, Self::NAME)
    }
}

impl Command for Arguments {
    const NAME: &'static str = "args";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Reads;
    type Output = Variables;

    async fn run(self, cx: Context) -> Result<Variables, Failure> {
        let live = cx.session()?;
        if live.adapter.quirks.agents {
            return Err(Failure::unsupported("an agent has no arguments").hint("what there is: bugeye locals"));
        }
        if let Some(read) = live.adapter.quirks.source_arguments {
            let look_at = Look { locals: Which::Selected, ..self.at.look(self.extent.view()) };
            let seen = look(&cx, Op::Look(look_at)).await?;
            let frame = seen.frames.first().ok_or_else(|| Failure::refused("the frame can't be read"))?;
            let source = frame.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
            let (Some(source), Some(line)) = (source, frame.line) else {
                return Err(Failure::unsupported(format!(
                    "{} does not tell arguments from other variables, and the source of {} is not here",
                    live.via(),
                    frame.function
                ))
                .hint("all of them: bugeye locals"));
            };
            let names = read(&source, line);
            let function = frame.function.clone();
            return Ok(only(&names, Variables { function, variables: seen.locals, gaps: seen.gaps }));
        }
        let names = match cx.ask(Op::Arguments(self.at.look(self.extent.view()))).await? {
            Answer::Names(names) => names,
            other => return Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        };
        Ok(only(&names, locals(&cx, &self.at, &self.extent, Scope::Locals).await?))
    }

    fn recorded(self, moment: &Moment) -> Result<Variables, Failure> {
        let all = known(moment, &self.at, &self.extent, Self::NAME)?;
        let frame = Spot::of(moment, &self.at)?.frame;
        // Where the debugger tells arguments, it was not asked.
        let read = past::quirks(moment).and_then(|quirks| quirks.source_arguments);
        let (Some(read), Some(file), Some(line)) = (read, &frame.file, frame.line) else {
            return Err(past::missing(moment, Self::NAME).hint("all variables: bugeye locals"));
        };
        Ok(only(&read(&past::source_text(moment, file)?.text, line), all))
    }
}

/// The variables of a frame as a record has them.
fn known(moment: &Moment, at: &At, extent: &Extent, what: &str) -> Result<Variables, Failure> {
    let spot = Spot::of(moment, at)?;
    let variables = spot.locals(moment, what)?;
    // More was not read, where there is more.
    let whole = |variable: &Variable| variable.value.is_whole();
    if (extent.full || extent.depth.is_some()) && !variables.iter().all(whole) {
        return Err(past::missing(moment, &format!("{what} in that depth"))
            .hint("as they were read: without --full and --depth"));
    }
    Ok(Variables { function: spot.frame.function.clone(), variables, gaps: spot.gaps.to_vec() })
}

/// Those of these names, in their order.
fn only(names: &[String], mut found: Variables) -> Variables {
    found.variables.retain(|variable| names.contains(&variable.name));
    found.variables.sort_by_key(|variable| names.iter().position(|name| *name == variable.name));
    found
}
