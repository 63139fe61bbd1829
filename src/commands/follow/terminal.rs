//! Where events are shown and commands are typed: a terminal, with a line of its own at the bottom, or plain streams.

use std::io::{self, IsTerminal as _, Write as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::prompt::{Editor, Typed};
use crate::render::quoted;

/// How long one look at the keys takes while nothing is under way, and while a reply is to come.
const IDLE_MS: i64 = 100;
const BUSY_MS: i64 = 20;
/// The longest line of a script.
const MAX_LINE: usize = 64 * 1024;

/// What came in.
#[derive(Debug)]
pub enum Heard {
    Line(String),
    /// Whoever typed has had enough.
    End,
}

/// Both directions.
#[derive(Debug)]
pub struct Screen {
    typing: Option<Typing>,
    /// The beginning of a line, where nobody types.
    bytes: Vec<u8>,
    /// No more is to come in.
    over: bool,
}

/// A terminal that is typed at.
#[derive(Debug)]
struct Typing {
    editor: Editor,
    label: String,
    _raw: Raw,
}

impl Screen {
    pub fn new() -> io::Result<Self> {
        let mut screen = Self { typing: None, bytes: Vec::new(), over: false };
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            let raw = Raw::new()?;
            screen.typing = Some(Typing { editor: Editor::default(), label: "bugeye> ".into(), _raw: raw });
        }
        Ok(screen)
    }

    pub fn is_terminal(&self) -> bool {
        self.typing.is_some()
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    /// What the prompt is called.
    pub fn label(&mut self, label: &str) {
        if let Some(typing) = &mut self.typing {
            typing.label = format!("{}> ", quoted(label));
        }
    }

    /// Shows whole lines above the one that is typed.
    pub fn show(&self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match &self.typing {
            Some(typing) => write!(out, "\r\x1b[K{text}{}", typing.draw())?,
            None => out.write_all(text.as_bytes())?,
        }
        out.flush()
    }

    /// Says something that is no event and no reply.
    pub fn note(&self, text: &str) -> io::Result<()> {
        self.complain(&format!("{}\n", crate::render::quoted_lines(text)))
    }

    /// Shows what goes to standard error on the command line.
    pub fn complain(&self, text: &str) -> io::Result<()> {
        if self.is_terminal() { self.show(text) } else { io::stderr().write_all(text.as_bytes()) }
    }

    /// Waits a moment for what comes in.
    pub fn listen(&mut self, busy: bool) -> io::Result<Vec<Heard>> {
        let limit = Timespec { tv_sec: 0, tv_nsec: if busy { BUSY_MS } else { IDLE_MS } * 1_000_000 };
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let asked = if self.over { PollFlags::empty() } else { PollFlags::IN };
        let mut watched = [PollFd::new(&stdout, PollFlags::empty()), PollFd::new(&stdin, asked)];
        // Of an input that is over nothing is to be heard, not even that.
        let count = if self.over { 1 } else { 2 };
        match poll(&mut watched[..count], Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        if watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            return Ok(vec![Heard::End]);
        }
        if count == 1 || watched[1].revents().is_empty() {
            return Ok(Vec::new());
        }
        let mut buffer = [0; 4096];
        let read = match rustix::io::read(&stdin, &mut buffer) {
            Ok(read) => read,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Ok(Vec::new()),
            Err(rustix::io::Errno::IO) => 0,
            Err(error) => return Err(error.into()),
        };
        match &mut self.typing {
            Some(_) if read == 0 => Ok(vec![Heard::End]),
            Some(typing) => typing.keys(&buffer[..read]),
            None => Ok(self.lines(&buffer[..read])),
        }
    }

    /// The whole lines of what came in; the last one needs no end.
    fn lines(&mut self, bytes: &[u8]) -> Vec<Heard> {
        self.over = bytes.is_empty();
        self.bytes.extend_from_slice(bytes);
        let mut heard = Vec::new();
        let mut line = |bytes: Vec<u8>| heard.push(String::from_utf8_lossy(&bytes).into_owned());
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let rest = self.bytes.split_off(end + 1);
            line(std::mem::replace(&mut self.bytes, rest));
        }
        if self.over || self.bytes.len() > MAX_LINE {
            line(std::mem::take(&mut self.bytes));
        }
        if let Some(at) = heard.iter().position(|line| is_leave(line)) {
            heard.truncate(at);
            self.over = true;
        }
        heard.into_iter().map(Heard::Line).collect()
    }
}

impl Typing {
    fn draw(&self) -> String {
        let width = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_col));
        self.editor.draw(&self.label, if width < 20 { 80 } else { width })
    }

    fn keys(&mut self, bytes: &[u8]) -> io::Result<Vec<Heard>> {
        let mut out = io::stdout().lock();
        let mut heard = Vec::new();
        for typed in self.editor.feed(bytes) {
            match typed {
                Typed::Line(line) => {
                    // It stays to be seen, above what it brings about.
                    writeln!(out, "\r\x1b[K{}{}", self.label, quoted(&line))?;
                    heard.push(if is_leave(&line) { Heard::End } else { Heard::Line(line) });
                }
                Typed::End => heard.push(Heard::End),
            }
        }
        out.write_all(self.draw().as_bytes())?;
        out.flush()?;
        Ok(heard)
    }
}

/// Whether this is said to leave.
fn is_leave(line: &str) -> bool {
    ["quit", "exit"].contains(&line.trim())
}

/// A terminal that gives each key as it is typed, until this is dropped.
#[derive(Debug)]
struct Raw {
    before: Termios,
}

impl Raw {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        raw.input_modes.remove(InputModes::IXON | InputModes::ICRNL);
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        restore_when_ended(before.clone());
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

fn restore(before: &Termios) {
    let _ = write!(io::stdout(), "\r\x1b[K");
    let _ = io::stdout().flush();
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
}

/// Has a signal that ends the process leave the terminal as it was.
fn restore_when_ended(before: Termios) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    // Ends with the process.
    std::thread::spawn(move || {
        runtime.block_on(async {
            let (Ok(mut ended), Ok(mut hung)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
                return;
            };
            let code = tokio::select! {
                _ = ended.recv() => 143,
                _ = hung.recv() => 129,
            };
            restore(&before);
            std::process::exit(code);
        });
    });
}
