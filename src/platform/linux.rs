//! Linux: `/proc`, pidfds, the subreaper and the death signal.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::Mode;
use rustix::ioctl;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::{Exit, Process, Table};
use crate::Failure;

/// Whether this system can supervise processes at all.
pub fn supported() -> Result<(), Failure> {
    Ok(())
}

/// From now on orphans below this process fall to it, not to init.
pub fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// The name `ps` shows, and by which a sweep knows a supervisor.
pub fn set_name(name: &std::ffi::CStr) {
    let _ = rustix::thread::set_name(name);
}

/// The name a process gave itself.
#[must_use]
pub fn name(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|text| text.trim_end().to_owned())
}

/// The words a process was started with.
#[must_use]
pub fn command_line(pid: u32) -> Vec<String> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = words.strip_suffix(b"\0").unwrap_or(&words);
    words.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// One variable of the environment a process was started with.
#[must_use]
pub fn variable(pid: u32, name: &str) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    environment
        .split(|byte| *byte == 0)
        .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        .map(|value| String::from_utf8_lossy(value).into_owned())
}

/// Makes the child die with the thread that starts it; only for callers with a single thread.
pub fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let before_exec = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the wish was in place; then no signal will come.
        if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    #[expect(unsafe_code, reason = "the death signal can only be set between fork and exec")]
    // SAFETY: the closure makes two plain system calls and neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(before_exec);
    }
}

/// Sends one byte with file descriptors attached.
pub fn send_fds(socket: impl AsFd, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(b"+")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives what [`send_fds`] sent; none of it passes to a child by accident.
pub fn receive_fds(socket: impl AsFd) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)?;
    let mut found = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            found.extend(fds);
        }
    }
    Ok(found)
}

/// As many descriptors as one message carries.
const FDS: usize = 8;

/// Makes a FIFO that only its owner can use; one that is there already is kept.
pub fn make_fifo(path: &Path) -> io::Result<()> {
    match rustix::fs::mkfifoat(rustix::fs::CWD, path, Mode::RUSR | Mode::WUSR) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Every process that can be seen.
pub(super) fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// One process as it is now.
#[must_use]
pub fn process(pid: u32) -> Option<Process> {
    parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name in parentheses may itself hold spaces and parentheses, so the fields are counted from its end.
fn parse_stat(pid: u32, text: &str) -> Option<Process> {
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u32>().ok();
    Some(Process {
        pid,
        start: fields.get(19)?.parse().ok()?,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        state: fields.first()?.chars().next()?,
    })
}

/// When a process started, in clock ticks since boot.
#[must_use]
pub fn start_time(pid: u32) -> Option<u64> {
    process(pid).map(|process| process.start)
}

fn open_pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Signals exactly this process: the start time is read again once the pidfd holds on to whoever has the pid now.
pub fn send(process: &Process, signal: Signal) -> bool {
    let Some(fd) = open_pidfd(process.pid) else { return false };
    start_time(process.pid) == Some(process.start) && rustix::process::pidfd_send_signal(&fd, signal).is_ok()
}

/// A hold on one process that stays valid after its pid is given to another.
#[derive(Debug)]
pub struct Watched(OwnedFd);

/// Starts to watch a process; `None` when there is none with this pid.
#[must_use]
pub fn watch(pid: u32) -> Option<Watched> {
    open_pidfd(pid).map(Watched)
}

impl AsFd for Watched {
    /// Readable once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The first published form of the kernel's `struct pidfd_info`; later ones only append.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
const PIDFD_GET_INFO: ioctl::Opcode = ioctl::opcode::read_write::<PidfdInfo>(0xff, 11);

impl Watched {
    /// How the process ended. The kernel tells it once the process has been reaped, from version 6.15 on; earlier, or
    /// while it lives, there is no answer.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
        #[expect(unsafe_code, reason = "rustix has no wrapper for this ioctl")]
        // SAFETY: the operand has the size the opcode names and the layout of the kernel's first version of it.
        unsafe {
            ioctl::ioctl(&self.0, ioctl::Updater::<PIDFD_GET_INFO, _>::new(&mut info)).ok()?;
        }
        (info.mask & PIDFD_INFO_EXIT != 0).then(|| exit_of(info.exit_code))
    }

    /// Ends the process, if it has not ended.
    pub fn kill(&self) {
        let _ = rustix::process::pidfd_send_signal(&self.0, Signal::KILL);
    }

    /// Whether the process has ended, reaped or not.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&now)), Ok(1..))
    }
}

/// The word `wait` reports: a signal in the low seven bits, else a code above them.
const fn exit_of(status: i32) -> Exit {
    match status & 0x7f {
        0 => Exit { code: Some((status >> 8) & 0xff), signal: None },
        signal => Exit { code: None, signal: Some(signal) },
    }
}

const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

/// `11` → `SIGSEGV`; a number without a name stays one: `signal 40`.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    usize::try_from(signal)
        .ok()
        .and_then(|number| SIGNALS.get(number.checked_sub(1)?))
        .map_or_else(|| format!("signal {signal}"), |name| format!("SIG{name}"))
}

/// System calls that wait for bytes: those that read one descriptor, and those that watch several.
#[cfg(target_arch = "x86_64")]
mod call {
    pub const READ: &[u64] = &[0, 17, 19, 275, 295, 327];
    pub const POLL: &[u64] = &[7, 271];
    pub const SELECT: &[u64] = &[23, 270];
    pub const EPOLL: &[u64] = &[232, 281, 441];
}
#[cfg(target_arch = "aarch64")]
mod call {
    pub const READ: &[u64] = &[63, 65, 67, 69, 76, 286];
    pub const POLL: &[u64] = &[73];
    pub const SELECT: &[u64] = &[72];
    pub const EPOLL: &[u64] = &[22, 441];
}
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod call {
    pub const READ: &[u64] = &[];
    pub const POLL: &[u64] = &[];
    pub const SELECT: &[u64] = &[];
    pub const EPOLL: &[u64] = &[];
}

/// Whether `pid` or a process below it is blocked until something is written to the FIFO `stdin`.
#[must_use]
pub fn waiting_for_input(pid: u32, stdin: &Path) -> bool {
    let Ok(fifo) = fs::metadata(stdin) else { return false };
    let below = Table::read().below(pid).into_iter().map(|process| process.pid);
    std::iter::once(pid).chain(below).any(|pid| {
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
        // The kernel shows a call only of a thread that sleeps in it; of any other it says "running".
        tasks.flatten().any(|task| {
            fs::read_to_string(task.path().join("syscall")).is_ok_and(|text| call_waits_on(pid, &text, &fifo))
        })
    })
}

fn call_waits_on(pid: u32, text: &str, fifo: &fs::Metadata) -> bool {
    let mut words = text.split_ascii_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse::<u64>().ok()) else { return false };
    let arguments: Vec<u64> =
        words.map_while(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()).collect();
    let [first, second, ..] = arguments[..] else { return false };
    let is_fifo = |fd: u64| {
        fs::metadata(format!("/proc/{pid}/fd/{fd}"))
            .is_ok_and(|found| (found.dev(), found.ino()) == (fifo.dev(), fifo.ino()))
    };
    if call::READ.contains(&number) {
        is_fifo(first & 0xffff_ffff)
    } else if call::POLL.contains(&number) {
        polled(pid, first, second).into_iter().any(is_fifo)
    } else if call::SELECT.contains(&number) {
        selected(pid, first, second).into_iter().any(is_fifo)
    } else if call::EPOLL.contains(&number) {
        epolled(pid, first).into_iter().any(is_fifo)
    } else {
        false
    }
}

/// Bytes of another process's memory, at most a page: no program waits on so many descriptors for its input.
fn memory(pid: u32, address: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(length.min(4096)).unwrap_or(0)];
    let read = fs::File::open(format!("/proc/{pid}/mem")).and_then(|file| file.read_exact_at(&mut bytes, address));
    if read.is_ok() { bytes } else { Vec::new() }
}

/// The descriptors of a `poll` that are watched for input.
fn polled(pid: u32, address: u64, count: u64) -> Vec<u64> {
    memory(pid, address, count.saturating_mul(8))
        .chunks_exact(8)
        .filter(|entry| entry[4] & 1 != 0)
        .map(|entry| u64::from(u32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]])))
        .collect()
}

/// The descriptors in a `select`'s first set.
fn selected(pid: u32, count: u64, address: u64) -> Vec<u64> {
    let bytes = memory(pid, address, count.div_ceil(8));
    (0..count.min(bytes.len() as u64 * 8))
        .filter(|fd| bytes.get((fd / 8) as usize).is_some_and(|byte| byte & (1 << (fd % 8)) != 0))
        .collect()
}

/// The descriptors an epoll instance watches.
fn epolled(pid: u32, epoll: u64) -> Vec<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_ascii_whitespace().next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::platform::{descendants, kill_all};

    fn eventually(what: &str, check: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while !check() {
            assert!(Instant::now() < deadline, "still not: {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let text = "7 (a) b (c)) S 3 4 5 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987 0 0";
        let process = parse_stat(7, text).unwrap();
        assert_eq!((process.parent, process.group, process.session, process.start), (3, 4, 5, 987));
        assert_eq!(process.state, 'S');
    }

    #[test]
    fn signals_have_their_names() {
        assert_eq!(signal_name(11), "SIGSEGV");
        assert_eq!(signal_name(9), "SIGKILL");
        assert_eq!(signal_name(31), "SIGSYS");
        assert_eq!(signal_name(40), "signal 40");
        assert_eq!(signal_name(0), "signal 0");
    }

    #[test]
    fn exit_code_11_is_not_signal_11() {
        for (script, code, signal) in [("exit 11", Some(11), None), ("kill -SEGV $$", None, Some(11))] {
            let script = format!("read line; {script}");
            let mut child = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
            let watched = watch(child.id()).unwrap();
            assert_eq!(watched.exit(), None);
            assert!(!watched.has_ended());
            drop(child.stdin.take());
            child.wait().unwrap();
            assert!(watched.has_ended());
            assert_eq!(watched.exit(), Some(Exit { code, signal }), "{script}");
        }
    }

    #[test]
    fn a_signal_for_a_former_owner_of_a_pid_is_not_sent() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut seen = process(child.id()).unwrap();
        seen.start += 1;
        assert!(!send(&seen, Signal::KILL));
        assert!(child.try_wait().unwrap().is_none());
        seen.start -= 1;
        assert!(send(&seen, Signal::KILL));
        child.wait().unwrap();
    }

    #[test]
    fn descendants_are_found_below_their_parents() {
        let mut child = Command::new("sh").args(["-c", "sleep 60 & sh -c 'sleep 60 & wait' & wait"]).spawn().unwrap();
        let pid = child.id();
        eventually("two children and a grandchild", || descendants(pid).len() == 3);
        assert!(Table::read().above(pid).contains(&std::process::id()));
        kill_all(|| {
            let table = Table::read();
            table.below(pid).into_iter().chain(table.get(pid).copied().filter(|found| !found.is_dead())).collect()
        });
        child.wait().unwrap();
    }

    fn waits(script: &str, expected: bool) {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("stdin");
        make_fifo(&fifo).unwrap();
        let hold = fs::File::options().read(true).write(true).open(&fifo).unwrap();
        let ready = directory.path().join("ready");
        let script = format!("import os,select,sys,time\nopen({ready:?},'w').close()\n{script}");
        let stdin = fs::File::open(&fifo).unwrap();
        let mut child = Command::new("python3").args(["-c", &script]).stdin(stdin).spawn().unwrap();
        eventually("the program runs", || ready.exists());
        if expected {
            eventually("it waits for input", || waiting_for_input(child.id(), &fifo));
            assert!(!waiting_for_input(child.id(), Path::new("/dev/null")));
        } else {
            eventually("it sleeps", || process(child.id()).is_some_and(|found| found.state == 'S'));
            assert!(!waiting_for_input(child.id(), &fifo));
        }
        drop(hold);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_reader_of_the_fifo_waits_for_input() {
        waits("os.read(0, 1)", true);
    }

    #[test]
    fn so_do_poll_select_and_epoll_on_it() {
        waits("p = select.poll(); p.register(0, select.POLLIN); p.poll()", true);
        waits("select.select([0], [], [])", true);
        waits("e = select.epoll(); e.register(0, select.EPOLLIN); e.poll()", true);
    }

    #[test]
    fn so_does_a_child_and_a_thread() {
        waits("import subprocess; subprocess.run(['cat'])", true);
        waits("import threading; threading.Thread(target=lambda: os.read(0, 1)).start(); time.sleep(60)", true);
    }

    #[test]
    fn a_sleeper_or_a_reader_of_something_else_does_not() {
        waits("time.sleep(60)", false);
        waits("r, w = os.pipe(); os.read(r, 1)", false);
    }
}
