//! A real terminal, with a command at it and somebody who types.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::until;

pub struct Terminal {
    pub child: Child,
    /// The terminal itself, to see how it was left.
    pub device: File,
    keyboard: File,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Without a number of columns it does not say how wide it is.
    pub fn new(mut command: Command, columns: Option<u16>) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let open = || File::options().read(true).write(true).open(&name).unwrap();
        let device = open();
        if let Some(ws_col) = columns {
            tcsetwinsize(&device, Winsize { ws_row: 24, ws_col, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        }
        // A person's shell has none of what agents set for what they run.
        for mark in bugeye::cli::AGENTS {
            command.env_remove(mark);
        }
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
        let keyboard = File::from(master);
        let (mut from, seen) = (keyboard.try_clone().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let to = seen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read) = from.read(&mut buffer) {
                to.lock().unwrap().extend_from_slice(&buffer[..read]);
            }
        });
        Self { child, device, keyboard, seen }
    }

    pub fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// All that was written to it, as it was written.
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    #[track_caller]
    pub fn sees(&self, part: &str) {
        until(part, || if self.screen().contains(part) { Ok(()) } else { Err(self.screen()) });
    }

    /// Types a text, and waits for it to be drawn: in whatever pieces, at whatever places.
    #[track_caller]
    pub fn types_and_sees(&mut self, keys: &str) {
        let before = self.screen().len();
        self.types(keys);
        until(keys, || {
            let drawn = self.screen().split_off(before);
            if letters(&drawn).contains(&letters(keys)) { Ok(()) } else { Err(drawn) }
        });
    }

    /// Its exit code, once it has ended; None where a signal ended it.
    #[track_caller]
    pub fn ends(&mut self) -> Option<i32> {
        let mut status = None;
        until("it ends", || {
            status = self.child.try_wait().unwrap();
            if status.is_some() { Ok(()) } else { Err(self.screen()) }
        });
        status.unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is drawn, without spaces and without what only moves and paints.
fn letters(text: &str) -> String {
    let mut letters = String::new();
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match letter {
            '\x1b' => match rest.next() {
                Some('[') => drop(rest.find(|letter| ('@'..='~').contains(letter))),
                Some(']' | 'P' | '_') => drop(rest.find(|letter| ['\x07', '\x1b', '\u{9c}'].contains(letter))),
                _ => {}
            },
            letter if letter.is_whitespace() || letter.is_control() => {}
            letter => letters.push(letter),
        }
    }
    letters
}
