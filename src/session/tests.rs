//! The session under test: every order of messages and every fault an adapter can produce, as scripts.
//!
//! A script (`tests/scripts/*.txt`) is a list of scenarios. A line that begins with `>` is an operation of a command,
//! `<` a message of the adapter, `!` anything else the session is told; the indented lines below it are the effects,
//! in order, as they must come. `script.rs` says what may be written, `show.rs` how effects read. A script that comes
//! out otherwise is printed whole as it would have to be; whether that is right is for the reader to judge.

mod limits;
mod property;
mod script;
mod show;

mod transcripts;

use script::check;

#[test]
fn handshakes_come_in_every_order() {
    check("handshake", include_str!("tests/scripts/handshake.txt"));
}

#[test]
fn a_start_that_fails_tells_the_first_error_and_ends() {
    check("failed_start", include_str!("tests/scripts/failed_start.txt"));
}

#[test]
fn an_adapter_may_be_gone_at_any_time() {
    check("gone", include_str!("tests/scripts/gone.txt"));
}

#[test]
fn stops_are_told_once_and_never_lost() {
    check("stops", include_str!("tests/scripts/stops.txt"));
}

#[test]
fn a_program_runs_on_and_is_waited_for() {
    check("running", include_str!("tests/scripts/running.txt"));
}

#[test]
fn breakpoints_are_sent_and_bound() {
    check("breakpoints", include_str!("tests/scripts/breakpoints.txt"));
}

#[test]
fn what_adapters_do_not_do_is_emulated() {
    check("emulation", include_str!("tests/scripts/emulation.txt"));
}

#[test]
fn what_is_delves_own_way_is_made_the_common_one() {
    check("delve", include_str!("tests/scripts/delve.txt"));
}

#[test]
fn looks_are_answered_or_refused_with_advice() {
    check("looks", include_str!("tests/scripts/looks.txt"));
}

#[test]
fn a_program_ends_in_one_of_many_ways() {
    check("endings", include_str!("tests/scripts/endings.txt"));
}
