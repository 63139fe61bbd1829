//! `hits`: what was seen at a place, in all sessions.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::query::{csv, notes, shown, table};
use super::report::parse_seconds;
use super::{Group, Local, events};
use crate::cli::LocalContext;
use crate::failure::Failure;
use crate::hub::places::project_of;
use crate::render::{Page, Render, quoted};
use crate::store::index::ask::{Limits, Rows};
use crate::store::index::place::{BESIDE, Chosen, Overall, Scope, Went};
use crate::store::index::{self, Caught, Index, Trouble};
use crate::trace::told::PlaceLine;
use crate::trace::{Course, picture, shape};

/// Hits that are shown, from both ends.
const FIRST: usize = 8;
const LAST: usize = 6;
/// Places and groups that are shown where nobody says how many, and rows of comma-separated values.
const TOP: usize = 40;
const ROWS: usize = 10_000;
/// The most that can be asked for.
const MOST: usize = 1_000_000;
/// Values of one hit that a line has, and texts of one name.
const VALUES: usize = 12;
const TEXTS: usize = 3;
/// Characters of a spark line.
const SPARK: usize = 40;

/// Show what was seen at a place, across sessions: how often, the first and the last values, how they went
///
/// Stops and hits of traces count alike. Without a place: where something was seen. In a project, its sessions; `-s`
/// names one.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Hits {
    /// `FILE:LINE` or the end of it, the place as a trace was asked for it, or a function.
    #[arg(value_name = "PLACE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Only hits where this is true, in SQL with the values' names: 'sum > 10 AND i < 3'.
    #[arg(long = "where", value_name = "EXPR", requires = "place")]
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// How often each value of this came, in the order of the values.
    #[arg(long, value_name = "NAME", requires = "place", conflicts_with_all = ["count_by", "trend"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by: Option<String>,
    /// The same, the most frequent first.
    #[arg(long, value_name = "NAME", requires = "place", conflicts_with = "trend")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_by: Option<String>,
    /// How one value went over the hits.
    #[arg(long, value_name = "NAME", requires = "place")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<String>,
    /// Draw the values over the hits into this file (.svg or .png).
    #[arg(long, value_name = "FILE", requires = "place")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plot: Option<String>,
    /// So many places or values at most (default 40), or rows with `--csv` (default 10000).
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<usize>,
    /// Print every hit with its values as comma-separated values, bare.
    #[arg(long)]
    #[serde(default)]
    pub csv: bool,
    /// Sessions of all projects.
    #[arg(long)]
    #[serde(default)]
    pub all_projects: bool,
    /// How long it may take, once the index is up to date (default 30s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

/// What was seen.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeenThere {
    /// Where: the place in its project, and the function. Debuggee text.
    pub places: Vec<(String, String)>,
    pub hits: u64,
    pub sessions: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueLine>,
    /// The first hits and the last, or places, or groups.
    pub table: Rows,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plotted: Option<String>,
    pub indexed: Caught,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub csv: bool,
    /// Of these sessions alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// What the rows of the table are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    #[default]
    Places,
    Hits,
    Groups,
    Trend,
}

/// How a value went.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ValueLine {
    #[serde(flatten)]
    pub course: Course,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<f64>,
    /// Values that are no numbers, those that came most often first, with how often. Debuggee text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<(String, u64)>,
    /// There were more of those than are counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_texts: bool,
}

impl ValueLine {
    fn new(went: Went) -> Self {
        let numbers = went.course.numbers;
        let mut texts: Vec<(String, u64)> = went.texts.into_iter().collect();
        texts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Self {
            mean: (numbers > 0).then(|| went.sum / numbers as f64),
            first: went.first,
            last: went.last,
            texts,
            more_texts: went.more,
            course: went.course,
        }
    }

    /// `text` is how a hit has it: what is worth 1 may have been written `True`.
    fn render(&self, text: Option<&Json>, page: &mut Page) {
        let name = quoted(&self.course.expression);
        let (least, most) = (self.course.least, self.course.most);
        if let (Some(least), Some(most), Some(mean)) = (least, most, self.mean) {
            if least >= most && self.texts.is_empty() {
                let always = text.map_or_else(|| least.to_string(), shown);
                return page.line(format!("  {name}: always {always}"));
            }
            let spark = shape::spark(&self.course, SPARK);
            let spark = if spark.is_empty() { String::new() } else { format!("{spark} ") };
            let none = if self.texts.is_empty() { String::new() } else { format!(", {} not a number", self.count()) };
            page.line(format!("  {name} {spark}{least}..{most}, mean {}{none}", rounded(mean)));
            return;
        }
        if self.texts.is_empty() {
            return;
        }
        let each = |(text, count): &(String, u64)| format!("{} ×{count}", shown(&Json::from(text.as_str())));
        let texts: Vec<String> = self.texts.iter().take(TEXTS).map(each).collect();
        let rest = match self.texts.len().saturating_sub(TEXTS) {
            _ if self.more_texts => format!(", … more than {} others", self.texts.len() - TEXTS),
            0 => String::new(),
            rest => format!(", … {rest} others"),
        };
        page.line(format!("  {name}: {}{rest}", texts.join(", ")));
    }

    fn count(&self) -> u64 {
        self.texts.iter().map(|(_, count)| count).sum()
    }
}

fn rounded(number: f64) -> String {
    let text = format!("{number:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    short.to_string()
}

impl Local for Hits {
    const NAME: &'static str = "hits";
    const GROUP: Group = Group::Around;
    type Output = SeenThere;

    fn run(self, cx: &LocalContext) -> Result<SeenThere, Failure> {
        let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let project = project_of(&cwd);
        let here = cx.session.is_none() && !self.all_projects;
        let session = cx.session.as_ref().map(|_| events::chosen(cx)).transpose()?.map(|head| head.id);
        let scope = Scope { project: here.then(|| project.to_string_lossy().into_owned()), session };
        if let Some(file) = &self.plot {
            form(file)?;
        }
        let (mut seen, indexed) = index::asked(&events::settled(cx)?, |index| match &self.place {
            None => self.places(index, &scope),
            Some(place) => self.place(index, &scope, place, &keys(place, &cwd, &project)),
        })?;
        (seen.indexed, seen.csv, seen.project) = (indexed, self.csv, scope.project);
        if let Some(file) = &self.plot {
            seen.plotted = Some(plot(&seen, &cwd.join(file), form(file)?)?);
        }
        if self.csv && seen.table.more {
            let rows = seen.table.rows.len();
            let _ = writeln!(std::io::stderr(), "these are {rows} rows, and there are more: --top N");
        }
        Ok(seen)
    }
}

impl Hits {
    fn limits(&self, rows: usize) -> Limits {
        let time = Duration::from_secs_f64(self.timeout.unwrap_or(30.0).clamp(0.0, 3600.0));
        Limits { rows: self.top.unwrap_or(rows).min(MOST), bytes: 8 * 1024 * 1024, time }
    }

    fn places(&self, index: &Index, scope: &Scope) -> Result<SeenThere, Trouble> {
        let table = index.places(scope, self.limits(TOP).rows)?;
        let hits = table.rows.iter().filter_map(|row| row[2].as_u64()).sum();
        let sessions = table.rows.iter().filter_map(|row| row[3].as_u64()).max().unwrap_or(0);
        Ok(SeenThere { hits, sessions, table, ..SeenThere::default() })
    }

    fn place(&self, index: &Index, scope: &Scope, place: &str, keys: &[String]) -> Result<SeenThere, Trouble> {
        let mut chosen = index.chosen(scope, place, keys)?;
        let places = chosen.places();
        let filter = chosen.filter(self.filter.as_deref())?;
        if self.csv && self.group_by.is_none() && self.count_by.is_none() {
            let table = index.rows(&chosen, &filter, self.limits(ROWS))?;
            return Ok(SeenThere {
                places,
                hits: table.rows.len() as u64,
                table,
                kind: Kind::Hits,
                ..SeenThere::default()
            });
        }
        if let Some(name) = &self.trend {
            chosen.named(name)?;
            if !chosen.names.contains(name) {
                return Err(Failure::usage(format!("`{name}` is no value here"))
                    .hint(format!("values: {}", chosen.names.join(", ")))
                    .into());
            }
            chosen.names.retain(|known| known == name);
        }
        let limits = self.limits(TOP);
        let overall = index.read(&chosen, &filter, (FIRST, LAST), limits.time)?;
        let (hits, sessions) = (overall.total, overall.sessions);
        let (table, kind) = match (&self.group_by, &self.count_by) {
            (Some(name), _) => (index.groups(&chosen, &filter, (name, false), limits)?, Kind::Groups),
            (_, Some(name)) => (index.groups(&chosen, &filter, (name, true), limits)?, Kind::Groups),
            _ if self.trend.is_some() => (ends(index, &chosen, &overall)?, Kind::Trend),
            _ => (ends(index, &chosen, &overall)?, Kind::Hits),
        };
        let values = overall.went.into_iter().map(ValueLine::new).collect();
        Ok(SeenThere { places, hits, sessions, values, table, kind, ..SeenThere::default() })
    }
}

fn ends(index: &Index, chosen: &Chosen, overall: &Overall) -> Result<Rows, Trouble> {
    if overall.total == 0 { Ok(Rows::default()) } else { index.ends(chosen, overall) }
}

/// What a place that was typed here may be called in the project.
pub(super) fn keys(place: &str, cwd: &Path, project: &Path) -> Vec<String> {
    let Some((file, line)) = place.rsplit_once(':') else { return Vec::new() };
    if line.parse::<u32>().is_err() {
        return Vec::new();
    }
    let mut path = PathBuf::new();
    for part in cwd.join(file).components() {
        match part {
            std::path::Component::ParentDir => drop(path.pop()),
            std::path::Component::CurDir => {}
            part => path.push(part),
        }
    }
    let short = path.strip_prefix(project).unwrap_or(&path);
    vec![format!("{}:{line}", short.display()), format!("{}:{line}", path.display())]
}

/// How a picture is drawn.
fn form(file: &str) -> Result<fn(&picture::Picture) -> Vec<u8>, Failure> {
    picture::form(file).ok_or_else(|| {
        Failure::usage(format!("`{file}` is no picture that can be drawn")).hint("end its name with .svg or .png")
    })
}

fn plot(seen: &SeenThere, path: &Path, draw: fn(&picture::Picture) -> Vec<u8>) -> Result<String, Failure> {
    let place = seen.places.first().map(|(place, _)| place.clone()).unwrap_or_default();
    let courses: Vec<Course> =
        seen.values.iter().map(|value| value.course.clone()).filter(|course| course.numbers > 0).collect();
    if courses.is_empty() {
        return Err(Failure::refused("there is nothing to draw: no value is a number"));
    }
    let line = PlaceLine { point: 1, place, hits: seen.hits, moved_to: None, why: None, courses };
    std::fs::write(path, draw(&shape::picture(&[line])))
        .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
    Ok(path.to_string_lossy().into_owned())
}

impl SeenThere {
    /// One line for each of the first hits and the last.
    fn rows(&self, page: &mut Page) {
        let mut session = None;
        let text = |cell: &Json| cell.as_str().map(quoted).unwrap_or_default();
        let several = self.places.len() > 1;
        let mut path = String::new();
        // Numbers of threads say something only where a session has several.
        let threads = self.table.rows.windows(2).any(|pair| pair[0][1] == pair[1][1] && pair[0][6] != pair[1][6]);
        for (number, row) in self.table.rows.iter().enumerate() {
            if number == FIRST && self.hits > (FIRST + LAST) as u64 {
                page.line(format!("  … {} more", self.hits - (FIRST + LAST) as u64));
            }
            if session.as_ref() != Some(&row[1]) {
                page.line(format!("{}:", text(&row[1])));
                session = Some(row[1].clone());
                path.clear();
            }
            // A stop goes by the number of its event.
            let mut line = match row[3].as_u64() {
                Some(0) | None => format!("{:>5}", format!("@{}", row[2])),
                Some(hit) => format!("{hit:>5}"),
            };
            if several {
                line.push_str(&format!(" {}", text(&row[7])));
            }
            if threads {
                line.push_str(&format!(" [{}]", row[6]));
            }
            let named = self.table.columns.iter().zip(row).skip(BESIDE).filter(|(_, cell)| !cell.is_null());
            let values: Vec<String> = named.map(|(name, cell)| format!(" {}={}", quoted(name), shown(cell))).collect();
            line.extend(values.iter().take(VALUES).map(String::as_str));
            if values.len() > VALUES {
                line.push_str(&format!(" … {} more", values.len() - VALUES));
            }
            if text(&row[10]) != path {
                path = text(&row[10]);
                line.push_str(&format!("  ({path})"));
            }
            if !row[11].is_null() {
                line.push_str(&format!("  {}", text(&row[11])));
            }
            page.line(line);
        }
    }

    /// A value as the first hit that is shown with it has it.
    fn text_of(&self, value: &ValueLine) -> Option<&Json> {
        let at = self.table.columns.iter().skip(BESIDE).position(|name| *name == value.course.expression)?;
        self.table.rows.iter().filter_map(|row| row.get(BESIDE + at)).find(|cell| !cell.is_null())
    }

    fn head(&self, page: &mut Page) {
        let (place, function) = self.places.first().cloned().unwrap_or_default();
        let function =
            if function.is_empty() || function == place { String::new() } else { format!(" ({})", quoted(&function)) };
        let others = match self.places.len() {
            0 | 1 => String::new(),
            more => format!(" and {} more", more - 1),
        };
        let counts = format!("{}, {}", counted(self.hits, "hit"), counted(self.sessions, "session"));
        page.line(format!("{}{function}{others}: {counts}", quoted(&place)));
    }
}

fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

impl Render for SeenThere {
    fn render(&self, page: &mut Page) {
        if self.csv {
            return csv(&self.table, page);
        }
        match self.kind {
            Kind::Places if self.table.rows.is_empty() => {
                let project = self.project.as_deref().map(|project| format!(" in {}", quoted(project)));
                page.line(format!("nothing was recorded{}", project.unwrap_or_default()));
                page.line("a stop or a trace is; those of all projects: bugeye hits --all-projects");
            }
            Kind::Places => table(&self.table.columns, &self.table.rows, page),
            Kind::Groups => {
                self.head(page);
                table(&self.table.columns, &self.table.rows, page);
            }
            Kind::Trend => {
                self.head(page);
                for value in &self.values {
                    value.render(self.text_of(value), page);
                    if let (Some(first), Some(last)) = (value.first, value.last) {
                        page.line(format!("  first {first}, last {last}"));
                    }
                }
            }
            Kind::Hits => {
                self.head(page);
                self.values.iter().for_each(|value| value.render(self.text_of(value), page));
                self.rows(page);
            }
        }
        if self.table.more {
            page.line("and there are more: --top N");
        }
        if let Some(file) = &self.plotted {
            page.line(format!("plotted in {}", page.path(file)));
        }
        notes(&self.indexed, page);
    }
}
