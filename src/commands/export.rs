//! `export`: a record in one file.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events::chosen;
use super::{Bare, Group};
use crate::cli::LocalContext;
use crate::failure::Failure;
use crate::share::{bundle, page};
use crate::store::read::Head;

/// Write a record as one file, to give away: as it is, or as a page to read
///
/// The record of a session that has ended, or of a live one up to now. It holds the program's output, values and, where
/// they were recorded, source files; what is known as secret was taken out when it was recorded. Look before you share.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Export {
    /// The session or record, by its id or name.
    #[arg(value_name = "ID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where to; `-` for standard output, which it is without this unless that is a terminal.
    #[arg(long, short = 'o', value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Write a page that needs nothing else: what an agent did, the stops with source, locals and stack, the output, the
    /// commands, the hits.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

impl Bare for Export {
    const NAME: &'static str = "export";
    const GROUP: Group = Group::Around;

    fn run(self, cx: &LocalContext) -> Result<u8, Failure> {
        let mut cx = cx.clone();
        cx.session = self.id.or(cx.session);
        let head = chosen(&cx)?;
        let html = self.html.is_some();
        let to = self.html.or(self.output).unwrap_or_else(|| "-".into());
        if to != "-" {
            return file(Path::new(&to), &head, html).map(|()| 0);
        }
        if !html && io::stdout().is_terminal() {
            return Err(Failure::usage("a record is no text for a terminal")
                .hint(format!("bugeye export {} --output {0}.bugeye", head.id))
                .hint(format!("a page to read: bugeye export {} --html {0}.html", head.id)));
        }
        match write(&head, html, &mut BufWriter::new(io::stdout().lock())) {
            // Whoever read has had enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::io("export the record", &error)),
            _ => Ok(0),
        }
    }

    fn prints() -> schemars::Schema {
        super::plain_text("with --output -, a tar archive of the record; with --html -, a page")
    }
}

fn write(head: &Head, html: bool, out: &mut dyn Write) -> io::Result<()> {
    if html {
        page::write(head, out)?;
    } else {
        bundle::write(head, out)?;
    }
    out.flush()
}

/// Writes the whole file, or none of it; a pipe or a device is written to as it is.
fn file(path: &Path, head: &Head, html: bool) -> Result<(), Failure> {
    let failed = |error| Failure::io(format!("write {}", path.display()), &error);
    // Where a link leads to is written, and the link stays.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if real.metadata().is_ok_and(|found| !found.is_file()) {
        let out = OpenOptions::new().write(true).open(&real).map_err(failed)?;
        return write(head, html, &mut BufWriter::new(out)).map_err(failed);
    }
    let mut draft = real.as_os_str().to_os_string();
    draft.push(format!(".{}.new", std::process::id()));
    let draft = PathBuf::from(draft);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let written = write(head, html, &mut out).and_then(|()| std::fs::rename(&draft, &real));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written.map_err(failed)?;
    let _ = writeln!(io::stderr(), "{} is in {}", head.id, path.display());
    Ok(())
}
