//! `import`: a record that somebody gave.

use std::fs::File;
use std::io::{self, BufReader};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Group, Local};
use crate::cli::LocalContext;
use crate::failure::Failure;
use crate::render::{Page, Render, cut, quoted};
use crate::share::import;

/// Take in a record that `export` wrote
///
/// It gets its own id, or the next free one, and can be looked at as those that were made here. A file that is not whole,
/// or holds anything that records don't have, is refused.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Import {
    /// The file; `-` for standard input.
    #[arg(value_name = "FILE")]
    pub file: String,
}

/// A record that is here now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    pub id: String,
    /// The command line it is of. Debuggee text.
    pub words: Vec<String>,
    /// Milliseconds since 1970.
    pub started: u64,
}

impl Render for Imported {
    fn render(&self, page: &mut Page) {
        page.line(format!("{}: {}", self.id, quoted(cut(&self.words.join(" "), 200).0)));
        page.line(format!("its events: bugeye events -s {}", self.id));
    }
}

impl Local for Import {
    const NAME: &'static str = "import";
    const GROUP: Group = Group::Around;
    type Output = Imported;

    fn run(self, cx: &LocalContext) -> Result<Imported, Failure> {
        let state = &cx.paths.state;
        let head = if self.file == "-" {
            import::import(&mut io::stdin().lock(), state)?
        } else {
            let file = File::open(&self.file).map_err(|error| Failure::io(format!("open {}", self.file), &error))?;
            import::import(&mut BufReader::new(file), state)?
        };
        Ok(Imported { id: head.id, words: head.words, started: head.started })
    }
}
