//! A package manager at work: run to its end, with a line every few seconds about what it is at.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::render::{cut, quoted};

/// A line about a child that is still at work comes this often.
const PROGRESS_EVERY: Duration = Duration::from_secs(3);
/// A package manager that takes longer than this is stuck.
const CHILD_LIMIT: Duration = Duration::from_secs(15 * 60);
/// How much of a child's output is kept for the case that it fails.
const KEPT_OUTPUT: usize = 64 * 1024;
/// The lines of it that are shown.
const TAIL_LINES: usize = 12;

/// A child that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub status: ExitStatus,
    pub output: String,
    command: String,
}

impl Done {
    pub fn or_failure(self, message: &str) -> Result<(), Failure> {
        if self.status.success() { Ok(()) } else { Err(self.failure(message)) }
    }

    pub fn failure(&self, message: &str) -> Failure {
        let lines: Vec<String> = self.output.lines().filter(|line| !line.trim().is_empty()).map(quoted).collect();
        let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n  ");
        Failure::refused(format!("{message}: `{}` ended with {}", self.command, self.status))
            .cause(format!("\n  {tail}"))
    }
}

/// Runs a child to its end and says every few seconds what it is at. It stays in this process's group, so that Ctrl-C
/// ends both.
pub(super) fn run(command: &mut Command, name: &str, report: &mut dyn FnMut(&str)) -> Result<Done, Failure> {
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let shown = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let failed = |error: std::io::Error| Failure::io(format!("run `{shown}`"), &error);
    let (mut from_child, to_us) = std::io::pipe().map_err(failed)?;
    command.stdin(Stdio::null()).stdout(to_us.try_clone().map_err(failed)?).stderr(to_us);
    let mut child = command.spawn().map_err(failed)?;
    // The command holds our copies of the pipe's other end, which would keep it open.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (sender, chunks) = mpsc::channel::<Vec<u8>>();
    // Ends when the last holder of the pipe is gone, or with this process.
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(size @ 1..) = from_child.read(&mut buffer) {
            if sender.send(buffer[..size].to_vec()).is_err() {
                break;
            }
        }
    });
    let began = Instant::now();
    let mut reported = began;
    let mut output: Vec<u8> = Vec::new();
    let status = loop {
        let open = match chunks.recv_timeout(Duration::from_millis(50)) {
            Ok(chunk) => {
                output.extend(chunk);
                let surplus = output.len().saturating_sub(KEPT_OUTPUT);
                output.drain(..surplus);
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => break child.wait().map_err(failed)?,
        };
        if !open && let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if began.elapsed() > CHILD_LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::timed_out(format!("`{shown}` did not end in {} minutes", CHILD_LIMIT.as_secs() / 60)));
        }
        if reported.elapsed() >= PROGRESS_EVERY {
            reported = Instant::now();
            let text = String::from_utf8_lossy(&output);
            let last = quoted(text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("at work").trim());
            report(&format!("{name}, {} s: {}", began.elapsed().as_secs(), cut(&last, 100).0));
        }
    };
    Ok(Done { status, output: String::from_utf8_lossy(&output).into_owned(), command: shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_waited_for_and_its_output_kept() {
        let done = run(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]), "sh", &mut |_| {}).unwrap();
        assert_eq!(done.output, "out\nerr\n");
        let failure = done.failure("it failed");
        assert_eq!(failure.message, "it failed: `sh -c echo out; echo err >&2; exit 3` ended with exit status: 3");
        // Something left behind with the pipe open does not hold the installation up.
        let began = Instant::now();
        run(Command::new("sh").args(["-c", "sleep 3 & echo done"]), "sh", &mut |_| {}).unwrap();
        assert!(began.elapsed() < Duration::from_secs(2));
    }
}
