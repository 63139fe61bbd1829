//! `prune` and `keep`: which recordings go, and which stay.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, Done, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::render::{Page, Render, command, quoted};
use crate::store::named::named;
use crate::store::prune::{self, Limits, Outcome, in_words};

/// Recordings that are named one by one.
const SHOWN: usize = 20;

/// Remove recordings: by age and size, oldest first, or those that are named
///
/// Never a live one, nor one that was marked with `keep`. Without options the limits of the configuration count, which the
/// daemon applies by itself once an hour.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Prune {
    /// Recordings by id or name.
    #[arg(value_name = "ID")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<String>,
    /// Those that were last written to longer ago than this (14d, 12h).
    #[arg(long, value_name = "AGE", conflicts_with = "ids")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than: Option<String>,
    /// The oldest, until all together are no larger than this (1G, 500M).
    #[arg(long, value_name = "SIZE", conflicts_with = "ids")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_size: Option<String>,
    /// Only say what would go.
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pruned {
    #[serde(flatten)]
    pub outcome: Outcome,
    pub dry_run: bool,
}

fn counted(count: usize) -> String {
    if count == 1 { "1 recording".into() } else { format!("{count} recordings") }
}

impl Render for Pruned {
    fn render(&self, page: &mut Page) {
        let outcome = &self.outcome;
        let would = if self.dry_run { "would be " } else { "" };
        for removed in outcome.removed.iter().take(SHOWN) {
            let command = quoted(&command(&removed.command));
            page.line(format!("{}: {command}, {}", quoted(&removed.id), in_words(removed.bytes)));
        }
        if outcome.removed.len() > SHOWN {
            page.line(format!("and {} more", outcome.removed.len() - SHOWN));
        }
        let mut left = format!("{} left, {}", counted(outcome.left), in_words(outcome.left_bytes));
        if outcome.spared > 0 {
            left.push_str(&format!("; {} of them kept, or of sessions that the daemon has", outcome.spared));
        }
        let (count, freed) = (counted(outcome.removed.len()), in_words(outcome.freed));
        page.line(match outcome.removed.len() {
            0 => format!("nothing to remove; {left}"),
            _ => format!("{count} {would}removed, {freed} {would}freed; {left}"),
        });
    }
}

impl Command for Prune {
    const NAME: &'static str = "prune";
    const GROUP: Group = Group::Around;
    type Output = Pruned;

    async fn run(self, cx: Context) -> Result<Pruned, Failure> {
        let (dry_run, cwd) = (self.dry_run, cx.caller.cwd.clone());
        let names: Vec<String> = self.ids.iter().chain(&cx.caller.session).cloned().collect();
        let read = |what: String| Failure::usage(what);
        let age = self.older_than.as_deref().map(prune::parse_age).transpose().map_err(read)?;
        let size = self.keep_size.as_deref().map(prune::parse_size).transpose().map_err(read)?;
        let limits = if age.is_none() && size.is_none() { cx.hub.limits() } else { Limits { age, size } };
        let done = cx.hub.with_records(move |recorder| {
            let outcome = if names.is_empty() {
                Ok(prune::prune(recorder.state(), limits, dry_run))
            } else {
                prune::remove_named(recorder.state(), &names, &cwd, dry_run)
            };
            recorder.list_again();
            outcome
        });
        Ok(Pruned { outcome: done.await??, dry_run })
    }
}

/// Keep a recording: no limit and no `prune` removes it
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Keep {
    /// Its id or name; without one, the recording of the session here.
    #[arg(value_name = "ID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Leave it to the limits again.
    #[arg(long)]
    #[serde(default)]
    pub off: bool,
}

impl Command for Keep {
    const NAME: &'static str = "keep";
    const GROUP: Group = Group::Around;
    type Output = Done;

    async fn run(self, cx: Context) -> Result<Done, Failure> {
        let asked = self.id.clone().or_else(|| cx.caller.session.clone());
        // A live session goes by its name before a recording does.
        let live = match &asked {
            Some(name) => cx.hub.named(name).ok(),
            None => Some(cx.session()?),
        };
        let name = match live {
            Some(live) => live
                .record
                .clone()
                .ok_or_else(|| Failure::not_found(format!("nothing is recorded of {}", live.alias)))?,
            None => asked.unwrap_or_default(),
        };
        let (off, cwd) = (self.off, cx.caller.cwd.clone());
        let done = cx.hub.with_records(move |recorder| {
            let head = named(recorder.state(), &name, &cwd)?;
            let failed = |error| Failure::io(format!("mark {}", head.folder.display()), &error);
            prune::keep(&head.folder, !off).map_err(failed)?;
            Ok::<_, Failure>(head.id)
        });
        let id = done.await??;
        Ok(Done::new(if off { format!("{id} goes by the limits again") } else { format!("{id} is kept") }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::prune::Removed;

    #[test]
    fn what_was_removed_is_said() {
        let removed = vec![Removed { id: "1-a".into(), name: None, command: vec!["./a".into()], bytes: 2048 }];
        let outcome = Outcome { removed, freed: 2048, left: 1, left_bytes: 10, spared: 1 };
        let shown = |dry_run, outcome: Outcome| {
            let mut page = Page::new("/".into());
            Pruned { outcome, dry_run }.render(&mut page);
            page.text().to_string()
        };
        let expected = "1-a: ./a, 2.0 KiB\n1 recording removed, 2.0 KiB freed; 1 recording left, 10 B; \
                        1 of them kept, or of sessions that the daemon has\n";
        assert_eq!(shown(false, outcome.clone()), expected);
        assert!(shown(true, outcome).contains("1 recording would be removed, 2.0 KiB would be freed"));
        assert_eq!(shown(false, Outcome::default()), "nothing to remove; 0 recordings left, 0 B\n");
    }
}
