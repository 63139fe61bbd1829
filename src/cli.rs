//! The command line: what was typed → a request; an answer → text or JSON and an exit code.

mod help;
mod past;
mod terminal;
mod typist;
mod words;

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::client;
use crate::commands::typed::usage;
use crate::commands::{CATALOGUE, Entry, Group, Run};
use crate::config::Config;
use crate::failure::{Failure, Kind};
use crate::paths::Paths;
use crate::render::{Page, quoted, quoted_json, quoted_lines};
use crate::store::replay::When;
use crate::wire::{Answer, Caller, Line, PROTOCOL, Request};
pub use typist::{Barred, Stopper, Typist, typed};
use words::Meaning;

/// The surroundings of a command that runs in the client's own process.
#[derive(Debug, Clone)]
pub struct LocalContext {
    pub paths: Paths,
    pub config: Config,
    pub json: bool,
    /// The session asked for.
    pub session: Option<String>,
}

/// What a process exit code says, as help and documentation show it.
pub const EXIT_CODES: [(u8, &str); 7] = [
    (0, "it happened (also when the program is still running, or has exited)"),
    (1, "refused or failed"),
    (2, "usage: the words of the command are off"),
    (3, "no such session, or it is not in the right state"),
    (4, "timed out waiting for an adapter"),
    (5, "the adapter or the daemon is lost"),
    (6, "unsupported here"),
];

/// The headings of help and documentation, in their order.
pub const GROUPS: &[(Group, &str)] = &[
    (Group::Sessions, "Sessions"),
    (Group::Breakpoints, "Breakpoints"),
    (Group::Running, "Running"),
    (Group::Looking, "Looking"),
    (Group::Agents, "Agents"),
    (Group::Around, "Around it"),
];

// Identifiers that no command's own argument will have.
const SESSION: &str = "global session";
const JSON: &str = "global json";
const COLOR: &str = "global color";

/// How the answer is wanted.
#[derive(Debug, Clone)]
struct Manner {
    json: bool,
    colour: bool,
}

/// Carries out what was typed after the program's name; answers the exit code.
#[must_use]
pub fn main(typed: &[OsString]) -> u8 {
    let json = words::has_flag(typed, "--json");
    match understand(typed, json) {
        Ok(code) => code,
        Err(failure) => answer_failure(failure, json),
    }
}

fn understand(typed: &[OsString], json: bool) -> Result<u8, Failure> {
    let (entry, words) = match words::understand(typed, CATALOGUE)? {
        Meaning::Command(entry, words) => (entry, words),
        Meaning::Flags => return flags_alone(typed, json),
    };
    let matches = match root(Some(entry)).try_get_matches_from(with_name(words)) {
        Ok(matches) => matches,
        Err(error) => return not_understood(&error, json),
    };
    let Some((_, arguments)) = matches.subcommand() else {
        return Err(Failure::internal("no command was found in what was typed"));
    };
    let args = match (entry.parse)(arguments) {
        Ok(args) => args,
        Err(error) => return not_understood(&error, json),
    };
    let manner = Manner { json: arguments.get_flag(JSON), colour: wants_colour(arguments) };
    let session = arguments.get_one::<String>(SESSION).cloned();
    let typed = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let when = past::moment(arguments, entry)?;
    let mut ask = Ask { entry, args, session, when, manner, typed };
    match entry.run {
        Run::Local(run) => ask.locally(run),
        Run::Bare(run) => {
            let context = ask.local_context()?;
            run(ask.args.take(), &context)
        }
        Run::Daemon(_) => ask.daemon(),
    }
}

fn flags_alone(typed: &[OsString], json: bool) -> Result<u8, Failure> {
    if words::has_flag(typed, "--help") || words::has_flag(typed, "-h") || words::has_flag(typed, "help") {
        return print(&help::full()).map(|()| 0);
    }
    match root(None).try_get_matches_from(with_name(typed.to_vec())) {
        Ok(_) => print(&help::overview()).map(|()| 0),
        Err(error) => not_understood(&error, json),
    }
}

fn with_name(words: Vec<OsString>) -> impl Iterator<Item = OsString> {
    std::iter::once(OsString::from("bugeye")).chain(words)
}

/// The whole command line, for completions and documentation.
#[must_use]
pub fn command() -> Command {
    let every = CATALOGUE.iter().map(|entry| {
        let short = entry.aliases.iter().copied().filter(|alias| !alias.contains(' '));
        past::with_moment((entry.arguments)(Command::new(entry.name)), entry).visible_aliases(short)
    });
    // Typed before the command it is moved behind it.
    root(None).arg(past::argument()).subcommands(every)
}

/// The global flags, with one command: defining all of them for each call would cost more than most calls do.
fn root(entry: Option<&Entry>) -> Command {
    let root = Command::new("bugeye")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .arg(
            Arg::new(SESSION)
                .short('s')
                .long("session")
                .value_name("ID")
                .global(true)
                .help("The session to talk to, or a record; without it the last one started from here"),
        )
        .arg(Arg::new(JSON).long("json").action(ArgAction::SetTrue).global(true).help("One line of JSON on stdout"))
        .arg(
            Arg::new(COLOR)
                .long("color")
                .value_name("WHEN")
                .value_parser(PossibleValuesParser::new(["auto", "always", "never"]))
                .default_value("auto")
                .hide_possible_values(true)
                .hide_default_value(true)
                .global(true)
                .help("auto, always or never"),
        );
    match entry {
        Some(entry) => {
            let short = entry.aliases.iter().copied().filter(|alias| !alias.contains(' '));
            let command = past::with_moment((entry.arguments)(Command::new(entry.name)), entry);
            root.subcommand(command.visible_aliases(short))
        }
        None => root,
    }
}

/// Variables that coding agents set for the commands they run, some of them in a terminal.
pub const AGENTS: [&str; 8] = [
    "AI_AGENT",
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "COPILOT_CLI",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
];

/// Whether somebody types this, at a terminal.
fn is_person() -> bool {
    let terminal = io::stdin().is_terminal() || io::stdout().is_terminal();
    terminal && !AGENTS.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

fn wants_colour(arguments: &ArgMatches) -> bool {
    match arguments.get_one::<String>(COLOR).map(String::as_str) {
        Some("always") => true,
        Some("never") => false,
        _ => {
            let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            io::stdout().is_terminal() && !set("NO_COLOR") && !dumb
        }
    }
}

/// Help and version are answers; everything else clap says is a mistake of usage.
fn not_understood(error: &clap::Error, json: bool) -> Result<u8, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print(&error.render().to_string()).map(|()| 0),
        _ if json => Err(usage(error)),
        _ => {
            let _ = error.print();
            Ok(Kind::Usage.exit_code())
        }
    }
}

/// One command, ready to be carried out.
struct Ask {
    entry: &'static Entry,
    args: serde_json::Value,
    session: Option<String>,
    /// The moment of a record that it is about.
    when: Option<When>,
    manner: Manner,
    /// What was typed, for the record.
    typed: Vec<String>,
}

type RunLocally = fn(serde_json::Value, &LocalContext) -> Result<serde_json::Value, Failure>;

impl Ask {
    fn locally(&mut self, run: RunLocally) -> Result<u8, Failure> {
        let context = self.local_context()?;
        let result = run(self.args.take(), &context);
        self.show(Answer::new(result))
    }

    fn local_context(&self) -> Result<LocalContext, Failure> {
        let paths = Paths::locate()?;
        // What runs here is what mends a broken installation: it says that the settings are off, and goes on.
        let config = Config::load(&paths).unwrap_or_else(|failure| {
            warn(&failure, "the defaults are used");
            Config::default()
        });
        config.register_adapters();
        Ok(LocalContext { paths, config, json: self.manner.json, session: self.session.clone() })
    }

    fn daemon(&mut self) -> Result<u8, Failure> {
        let paths = Paths::resolve()?;
        let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
        // Kept where a record may have to answer.
        let recorded = self.session.is_some() || self.when.is_some();
        let args = if recorded { self.args.clone() } else { serde_json::Value::Null };
        let (entry, session) = (self.entry, self.session.clone());
        let asked =
            past::Asked { entry, args: &args, session: session.as_deref(), when: self.when, paths: &paths, cwd: &cwd };
        if let Some(answer) = asked.first()? {
            return self.show(answer);
        }
        let mut connection = match Config::load(&paths) {
            Ok(_) => client::connect_or_start(&paths)?,
            Err(failure) if self.entry.spawns => return Err(failure),
            // A running session must stay within reach however broken the file is.
            Err(failure) => match client::connect(&paths)? {
                Some(connection) => {
                    warn(&failure, "the daemon goes on with what it had");
                    connection
                }
                None => return Err(failure),
            },
        };
        let mut spooled = None;
        if self.entry.spawns && self.args["stdin"] == "-" {
            spooled = Some(spool(&paths)?);
            self.args["stdin"] = spooled.as_deref().into();
        }
        let lent = (self.entry.spawns && self.args["terminal"] == "-").then(terminal::Lent::new).transpose()?;
        if let Some(lent) = &lent {
            self.args["terminal"] = lent.device().into();
        }
        let request = Request {
            v: PROTOCOL,
            id: 1,
            cmd: self.entry.name.to_string(),
            args: self.args.take(),
            ctx: self.caller(),
        };
        if self.entry.cancels || lent.is_some() {
            let cancel =
                connection.canceller(request.id).map_err(|error| Failure::io("share the connection", &error))?;
            match &lent {
                Some(lent) => lent.pass_on(cancel),
                None => drop(std::thread::spawn(move || interrupted(&cancel))),
            }
        } else if matches!(self.entry.group, Group::Sessions | Group::Running | Group::Agents) && is_person() {
            std::thread::spawn(|| interrupted(&leave));
        }
        let mut passing = false;
        let answer = connection.ask(&request, &mut |part| match (&lent, &part) {
            (Some(lent), Line::Event { data, .. }) => lent.take(&data["pid"]),
            (Some(lent), _) if lent.is_taken() => {}
            _ => self.show_part(&part, &mut passing),
        });
        if let Some(lent) = lent {
            lent.take_back(&answer);
        }
        clear(&mut passing);
        let failed = answer.as_ref().map_or(true, |answer| !answer.ok);
        if let Some(path) = spooled.filter(|_| failed) {
            // A program that was not started needs none; what was is the daemon's to remove.
            let _ = std::fs::remove_file(path);
        }
        let answer = answer?;
        self.show(asked.instead_of(answer))
    }

    fn caller(&self) -> Caller {
        let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        let text = |pair: (OsString, OsString)| Some((pair.0.into_string().ok()?, pair.1.into_string().ok()?));
        Caller {
            cwd: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            session: self.session.clone(),
            who: format!("cli:{parent}"),
            env: self.entry.spawns.then(|| std::env::vars_os().filter_map(text).collect()),
            umask: self.entry.spawns.then(umask),
            typed: Some(self.typed.clone()),
            person: is_person(),
            ..Caller::default()
        }
    }

    fn page(&self) -> Page {
        let mut page = Page::new(std::env::current_dir().unwrap_or_else(|_| "/".into()));
        page.colour = self.manner.colour;
        if let Ok(size) = rustix::termios::tcgetwinsize(io::stdout())
            && size.ws_col >= 20
        {
            page.width = usize::from(size.ws_col);
        }
        page
    }

    /// Shows what came before the answer. When nobody reads any more, nobody waits any more either.
    fn show_part(&self, part: &Line, passing: &mut bool) {
        let shown = match part {
            Line::Progress { text, passing: true, .. } => {
                // For a person only: whoever reads a file later has no use for it.
                if io::stderr().is_terminal() {
                    *passing = true;
                    let _ = write!(io::stderr(), "\r\x1b[K{}", quoted_lines(text));
                }
                return;
            }
            Line::Progress { text, .. } => {
                clear(passing);
                let _ = writeln!(io::stderr(), "{}", quoted_lines(text));
                return;
            }
            Line::Event { data, .. } if self.manner.json => write_out(&format!("{}\n", quoted_json(&data.to_string()))),
            Line::Event { data, .. } => {
                let mut page = self.page();
                (self.entry.render_event)(data, &mut page);
                write_out(page.text())
            }
            Line::Final(_) => return,
        };
        if let Err(error) = shown {
            std::process::exit(i32::from(error.kind() != io::ErrorKind::BrokenPipe));
        }
    }

    fn show(&self, answer: Answer) -> Result<u8, Failure> {
        if self.manner.json {
            print(&format!("{}\n", envelope(&answer)))?;
        }
        if let Some(failure) = answer.error {
            if !self.manner.json {
                complain(&failure, answer.via.as_deref());
            }
            return Ok(failure.kind.exit_code());
        }
        if let Some(from) = answer.from.as_ref().filter(|_| !self.manner.json) {
            let _ = writeln!(io::stderr(), "{}", quoted(&from.line()));
        }
        let mut page = self.page();
        (page.session, page.via) = (answer.session, answer.via);
        let code = (self.entry.render)(answer.result.unwrap_or_default(), &mut page);
        if self.manner.json {
            // The answer has been given; that its text can't be made does not change it.
            return Ok(code.unwrap_or_default());
        }
        print(&past::harmless(page.text(), answer.from.is_some()))?;
        code
    }
}

/// Reads standard input to its end, into a file that the daemon removes when nobody can need it any longer.
fn spool(paths: &Paths) -> Result<String, Failure> {
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
    let failed = |error: io::Error| Failure::io("keep standard input for the program", &error);
    let folder = paths.spool();
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let path = folder.join(format!("{}-{}", std::process::id(), since.as_nanos()));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
    if let Err(error) = io::copy(&mut io::stdin().lock(), &mut file) {
        let _ = std::fs::remove_file(&path);
        return Err(failed(error));
    }
    Ok(path.to_string_lossy().into_owned())
}

/// Wipes the line that says how it goes.
fn clear(passing: &mut bool) {
    if std::mem::take(passing) {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// Waits for an interrupt; the first asks for what there is, a second ends this process.
fn interrupted(cancel: &dyn Fn()) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    runtime.block_on(async {
        let mut cancelled = false;
        while tokio::signal::ctrl_c().await.is_ok() {
            if std::mem::replace(&mut cancelled, true) {
                std::process::exit(130);
            }
            cancel();
        }
    });
}

/// Ends a wait; whoever pressed the keys may believe that the program has ended too.
fn leave() {
    let _ = write!(
        io::stderr(),
        "\ninterrupted: the wait is over, and the program goes on\n  hint: wait on: bugeye await\n  hint: or end it: bugeye stop\n"
    );
    std::process::exit(130);
}

/// The file mask that programs started for this caller should have.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let told = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    told.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or_else(|| {
        // Elsewhere it can only be read by setting it; this process has one thread and makes no file meanwhile.
        let mask = rustix::process::umask(rustix::fs::Mode::empty());
        rustix::process::umask(mask);
        mask.bits()
    })
}

fn envelope(answer: &Answer) -> String {
    let line = serde_json::to_string(answer).unwrap_or_else(|error| {
        let failure = Failure::internal(format!("an answer can't be written: {error}"));
        serde_json::to_string(&Answer::new(Err(failure))).unwrap_or_default()
    });
    quoted_json(&line)
}

/// A failure that no command's own answer carries.
fn answer_failure(failure: Failure, json: bool) -> u8 {
    let code = failure.kind.exit_code();
    if json {
        let _ = write_out(&format!("{}\n", envelope(&Answer::new(Err(failure)))));
    } else {
        complain(&failure.bounded(), None);
    }
    code
}

fn complain(failure: &Failure, via: Option<&str>) {
    let _ = io::stderr().write_all(complaint(failure, via).as_bytes());
}

/// How a failure reads.
pub(crate) fn complaint(failure: &Failure, via: Option<&str>) -> String {
    let via = via.map(|via| format!(" [via {}]", quoted(via))).unwrap_or_default();
    let mut text = format!("error: {}{via}\n", quoted_lines(&failure.message));
    for (label, lines) in [("cause", &failure.causes), ("hint", &failure.hints)] {
        for line in lines {
            text.push_str(&format!("  {label}: {}\n", quoted_lines(line)));
        }
    }
    text
}

fn warn(failure: &Failure, so: &str) {
    let _ = writeln!(io::stderr(), "warning: {}; {so}", quoted_lines(&failure.message));
    for hint in &failure.hints {
        let _ = writeln!(io::stderr(), "  hint: {}", quoted_lines(hint));
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes to standard output. A reader that has had enough (`| head`) is no failure; a full disk is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match write_out(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::io("write the answer", &error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_command_line_holds_together() {
        command().debug_assert();
        for entry in CATALOGUE {
            root(Some(entry)).debug_assert();
        }
    }

    #[test]
    fn help_names_every_command_and_exit_code() {
        let text = help::full();
        for entry in CATALOGUE {
            assert!(text.contains(&format!("\n  {}", entry.name)), "{}", entry.name);
        }
        for (code, meaning) in EXIT_CODES {
            assert!(text.contains(&format!("{code}  {meaning}")), "{code}");
        }
        assert!(help::overview().lines().count() < 12);
    }

    #[test]
    fn the_file_mask_is_the_process_s_own() {
        let mask = umask();
        assert!(mask <= 0o777);
        assert_eq!(umask(), mask);
    }

    #[test]
    fn a_complaint_of_clap_becomes_a_failure_with_advice() {
        let entry = crate::commands::find("daemon").unwrap();
        let error = root(Some(entry)).try_get_matches_from(["bugeye", "daemon", "stats"]).unwrap_err();
        let failure = usage(&error);
        assert!(failure.message.contains("invalid value 'stats'"), "{failure:?}");
        assert!(failure.hints.iter().any(|hint| hint.contains("`status`")), "{failure:?}");
    }
}
