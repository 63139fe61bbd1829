//! `registers`: the processor's registers.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::{At, look};
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::{Variable, View};
use crate::render::{Page, Render};
use crate::session::{Locals, Look, Op, Scope};

/// Show registers: all general ones, or those named
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Registers {
    /// Names (rax, rip, x0).
    #[arg(value_name = "NAME")]
    #[serde(default)]
    pub names: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RegisterList {
    pub registers: Vec<Variable>,
}

impl Render for RegisterList {
    fn render(&self, page: &mut Page) {
        for register in &self.registers {
            page.line(format!("{:>8} = {}", register.name, register.value.text));
        }
    }
}

impl Command for Registers {
    const NAME: &'static str = "registers";
    const ALIASES: &'static [&'static str] = &["regs"];
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Reads;
    type Output = RegisterList;

    async fn run(self, cx: Context) -> Result<RegisterList, Failure> {
        let live = cx.session()?;
        let view = View { depth: 1, items: 500, bytes: 64 * 1024, ..View::default() };
        let look_at = Look { locals: Locals::Selected, scope: Scope::Registers, ..self.at.look(view) };
        let mut seen = look(&cx, Op::Look(look_at)).await?;
        // Some adapters align them.
        for register in &mut seen.locals {
            register.name = register.name.trim().to_string();
        }
        if seen.locals.is_empty() {
            return Err(Failure::unsupported(format!("{} has no registers to show", live.via()))
                .hint("variables: bugeye locals")
                .hint("the debugger's own commands: bugeye raw 'COMMAND'"));
        }
        // Registers come in groups, the general ones first; some list them without, and wide ones have parts.
        let has_parts = |register: &Variable| !register.value.children.is_empty();
        let grouped = seen.locals.first().is_some_and(has_parts);
        let wanted = |register: &Variable| self.names.iter().any(|name| name.trim_start_matches('$') == register.name);
        let registers: Vec<Variable> = match (grouped, self.names.is_empty()) {
            (true, true) => seen.locals.into_iter().next().map(|group| group.value.children).unwrap_or_default(),
            (true, false) => {
                let all = seen.locals.into_iter().flat_map(|group| group.value.children);
                all.filter(|register| wanted(register)).collect()
            }
            (false, true) => seen.locals.into_iter().filter(|register| !has_parts(register)).collect(),
            (false, false) => seen.locals.into_iter().filter(|register| wanted(register)).collect(),
        };
        if let Some(unknown) = self
            .names
            .iter()
            .find(|name| !registers.iter().any(|register| register.name == name.trim_start_matches('$')))
        {
            return Err(
                Failure::not_found(format!("there is no register `{unknown}`")).hint("list them: bugeye registers")
            );
        }
        Ok(RegisterList { registers })
    }
}
