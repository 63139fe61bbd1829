//! Bad input, with the real binary: programs that are none, places that do not exist, words at the wrong time, programs
//! that misbehave, adapters that do worse. Each is answered in time, says what and what to do, ends with the documented
//! code, and the next command works.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod adapters;
mod faults;
mod places;
mod programs;
mod states;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use support::{Bug, Run};

/// A command that fails as documented: with this code, these words, advice, and in time.
#[track_caller]
fn refused(bug: &Bug, words: &[&str], code: i32, complaint: &str) -> Run {
    let run = bug.run(words);
    run.fails(code, complaint);
    assert!(run.stderr.contains("hint: "), "no advice: {run}");
    within(&run, 2000);
    run
}

#[track_caller]
fn within(run: &Run, milliseconds: u64) {
    assert!(run.took < Duration::from_millis(milliseconds), "took {:?}: {run}", run.took);
}

/// The session is as good as new: a program runs to its end.
#[track_caller]
fn next_command_works(bug: &Bug) {
    let text = bug.ok(&["run", &support::fixtures::program("c/exit_code.c"), "--", "3"]);
    support::has(&text, &["exited: code 3"]);
}
