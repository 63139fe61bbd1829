//! `query`: SQL over what all records say.

use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::report::parse_seconds;
use super::{Group, Local, events};
use crate::cli::LocalContext;
use crate::failure::Failure;
use crate::render::{Page, Render, cut, quoted};
use crate::store::index::ask::{Limits, Rows};
use crate::store::index::{self, Caught, schema};
use crate::trace::shape::field;

/// Characters of a value in a line of text.
const CELL: usize = 80;
/// The most rows, and the longest time, that can be asked for.
const MOST_ROWS: usize = 100_000;
const LONGEST: f64 = 3600.0;

/// Ask the records of all sessions in SQL, read-only
///
/// The tables are sessions, hits, "values", events and output; `--schema` shows their columns. They are brought up to
/// date first, sessions that are live included.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Query {
    /// One SELECT, in SQLite's SQL.
    #[arg(value_name = "SQL", required_unless_present = "schema")]
    #[serde(default)]
    pub sql: Vec<String>,
    /// Show the tables with their columns, and examples.
    #[arg(long, conflicts_with = "sql")]
    #[serde(default)]
    pub schema: bool,
    /// Print comma-separated values, bare.
    #[arg(long)]
    #[serde(default)]
    pub csv: bool,
    /// Rows at most (default 200).
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rows: Option<usize>,
    /// How long it may take, once the index is up to date (default 5s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// What was found, or what there is to ask.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    #[serde(flatten)]
    pub found: Rows,
    /// What was new in the records.
    pub indexed: Caught,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableLine>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub csv: bool,
}

/// A table and its columns.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TableLine {
    pub name: String,
    pub about: String,
    /// Names, each with what it is.
    pub columns: Vec<(String, String)>,
}

impl Local for Query {
    const NAME: &'static str = "query";
    const GROUP: Group = Group::Around;
    type Output = Answer;

    fn run(self, cx: &LocalContext) -> Result<Answer, Failure> {
        if self.schema {
            let tables = schema::TABLES.iter().map(|table| TableLine {
                name: table.name.into(),
                about: table.about.into(),
                columns: table.columns.iter().map(|(name, about)| ((*name).into(), (*about).into())).collect(),
            });
            let (found, indexed) = (Rows::default(), Caught::default());
            return Ok(Answer { found, indexed, tables: tables.collect(), csv: false });
        }
        let sql = self.sql.join(" ");
        if sql.trim().is_empty() {
            return Err(Failure::usage("there is no question").hint("what there is to ask: bugeye query --schema"));
        }
        let known = Limits::default();
        let limits = Limits {
            rows: self.max_rows.unwrap_or(known.rows).min(MOST_ROWS),
            time: self.timeout.map_or(known.time, |seconds| Duration::from_secs_f64(seconds.clamp(0.0, LONGEST))),
            ..known
        };
        let (found, indexed) = index::asked(&events::settled(cx)?, |index| index.ask(&sql, limits))?;
        Ok(Answer { found, indexed, tables: Vec::new(), csv: self.csv })
    }
}

impl Render for Answer {
    fn render(&self, page: &mut Page) {
        if !self.tables.is_empty() {
            return self.schema(page);
        }
        if self.csv {
            return csv(&self.found, page);
        }
        table(&self.found.columns, &self.found.rows, page);
        let count = self.found.rows.len();
        if self.found.more {
            page.line(format!("{count} rows, and there are more: ask for less, or for more with --max-rows N"));
        } else {
            page.line(format!("{count} row{}", if count == 1 { "" } else { "s" }));
        }
        notes(&self.indexed, page);
    }
}

impl Answer {
    fn schema(&self, page: &mut Page) {
        for table in &self.tables {
            let name = if table.name == "values" { "\"values\"" } else { &table.name };
            page.line(format!("{name}: {}", table.about));
            for (column, about) in &table.columns {
                page.line(format!("  {column:<9} {about}"));
            }
        }
        page.line("examples:");
        for example in schema::EXAMPLES {
            page.line(format!("  bugeye query '{}'", example.replace('\'', "'\\''")));
        }
    }
}

/// What should be known about how the index was brought up to date.
pub fn notes(indexed: &Caught, page: &mut Page) {
    if let Some(why) = &indexed.rebuilt {
        page.line(format!("note: the index was made anew: {}", quoted(why)));
    }
    if indexed.behind {
        page.line("note: another process brings the index up to date; what it has not reached yet is missing here");
    }
}

/// A value as a line shows it.
#[must_use]
pub fn shown(value: &Json) -> String {
    match value {
        Json::Null => "null".into(),
        Json::String(text) => {
            let text = quoted(text);
            match cut(&text, CELL) {
                (_, 0) => text,
                (head, _) => format!("{head}…"),
            }
        }
        other => other.to_string(),
    }
}

/// Rows in columns: numbers to the right, texts to the left.
pub fn table(columns: &[String], rows: &[Vec<Json>], page: &mut Page) {
    let cells: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let heads: Vec<String> = columns.iter().map(|name| cut(&quoted(name), CELL).0.to_string()).collect();
    let width = |at: usize| {
        let longest = cells.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
        longest.unwrap_or(0).max(heads[at].chars().count())
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let right: Vec<bool> = (0..heads.len()).map(|at| rows.iter().any(|row| row[at].is_number())).collect();
    let line = |cells: &[String]| {
        let mut text = String::new();
        for (at, cell) in cells.iter().enumerate() {
            let gap = " ".repeat(widths[at] - cell.chars().count());
            let between = if at == 0 { "" } else { "  " };
            text.push_str(between);
            text.push_str(&if right[at] { format!("{gap}{cell}") } else { format!("{cell}{gap}") });
        }
        text.trim_end().to_string()
    };
    page.line(line(&heads));
    for row in &cells {
        page.line(line(row));
    }
}

/// Rows as comma-separated values.
pub fn csv(found: &Rows, page: &mut Page) {
    let line = |cells: Vec<String>| cells.join(",");
    page.line(line(found.columns.iter().map(|name| field(name)).collect()));
    for row in &found.rows {
        let cell = |value: &Json| match value {
            Json::Null => String::new(),
            Json::String(text) => field(text),
            other => other.to_string(),
        };
        page.line(line(row.iter().map(cell).collect()));
    }
}
