//! Systems without an implementation yet: they say so before anything is started.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::{Exit, Process};
use crate::Failure;

fn missing<T>() -> io::Result<T> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

/// Whether this system can supervise processes at all.
pub fn supported() -> Result<(), Failure> {
    Err(Failure::unsupported("debugging is supported on Linux only so far.").hint("Run it in a Linux container or VM."))
}

pub fn become_subreaper() -> io::Result<()> {
    missing()
}

pub fn set_name(_name: &CStr) {}

#[must_use]
pub fn name(_pid: u32) -> Option<String> {
    None
}

#[must_use]
pub fn command_line(_pid: u32) -> Vec<String> {
    Vec::new()
}

#[must_use]
pub fn variable(_pid: u32, _name: &str) -> Option<String> {
    None
}

pub fn die_with_parent(_command: &mut Command) {}

pub fn send_fds(_socket: impl AsFd, _fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    missing()
}

pub fn receive_fds(_socket: impl AsFd) -> io::Result<Vec<OwnedFd>> {
    missing()
}

pub fn make_fifo(_path: &Path) -> io::Result<()> {
    missing()
}

pub(super) fn processes() -> Vec<Process> {
    Vec::new()
}

#[must_use]
pub fn process(_pid: u32) -> Option<Process> {
    None
}

#[must_use]
pub fn start_time(_pid: u32) -> Option<u64> {
    None
}

pub fn send(_process: &Process, _signal: Signal) -> bool {
    false
}

/// A hold on one process; never made here.
#[derive(Debug)]
pub struct Watched(OwnedFd);

#[must_use]
pub fn watch(_pid: u32) -> Option<Watched> {
    None
}

impl AsFd for Watched {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Watched {
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        None
    }

    pub fn kill(&self) {}

    #[must_use]
    pub fn has_ended(&self) -> bool {
        false
    }
}

#[must_use]
pub fn signal_name(signal: i32) -> String {
    format!("signal {signal}")
}

#[must_use]
pub fn waiting_for_input(_pid: u32, _stdin: &Path) -> bool {
    false
}
