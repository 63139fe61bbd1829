//! The processes of this machine, as `attach` needs them: by name, by the address they listen at, by language, and why
//! the kernel may refuse one.
//!
//! All of it is read from `/proc`. Nothing is connected to: a server that takes one client would lose it to the question.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::elf;
use crate::failure::Failure;
use crate::platform::{self, Table};
use crate::render::quoted;
use crate::supervise;

/// A process that could be attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub pid: u32,
    /// What it goes by: its own name, its executable's, its script's.
    pub names: Vec<String>,
    /// Its command line, cut.
    pub command: String,
}

/// The longest command line that is shown.
const SHOWN: usize = 160;

/// The user's processes, without Bugeye's own, what those run, and `caller` with all above it: a shell that runs
/// `bugeye attach x` has `x` on its command line, too.
#[must_use]
pub fn of_user(caller: Option<u32>) -> Vec<Seen> {
    let table = Table::read();
    let me = std::process::id();
    let mut hidden: Vec<u32> = table.below(me).into_iter().map(|process| process.pid).chain([me]).collect();
    if let Some(caller) = caller {
        hidden.extend(table.above(caller));
        hidden.push(caller);
    }
    let user = rustix::process::geteuid().as_raw();
    let own_file = file_id(Path::new("/proc/self/exe"));
    let mut seen: Vec<Seen> = table
        .iter()
        .filter(|process| !process.is_dead() && !hidden.contains(&process.pid))
        .filter(|process| fs::metadata(folder(process.pid)).is_ok_and(|data| data.uid() == user))
        .filter(|process| file_id(&folder(process.pid).join("exe")).is_none_or(|file| Some(file) != own_file))
        .filter_map(|process| look(process.pid))
        .filter(|seen| !seen.names.iter().any(|name| name == supervise::NAME || name == supervise::NAME_LET_GO))
        .collect();
    seen.sort_unstable_by_key(|seen| seen.pid);
    seen
}

fn folder(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

fn file_id(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

/// One process; None for the kernel's own, which have no command line.
#[must_use]
pub fn look(pid: u32) -> Option<Seen> {
    let words = words_of(pid);
    let first = words.first()?;
    let mut names: Vec<String> = platform::name(pid).into_iter().chain([base(first)]).collect();
    let exe = exe_of(pid).map(|exe| base(&exe.to_string_lossy()));
    names.extend(exe.clone());
    if names.iter().any(|name| interpreted(name).is_some()) {
        names.extend(words.iter().skip(1).find(|word| !word.starts_with('-')).map(|word| base(word)));
    }
    names.dedup();
    Some(Seen { pid, names, command: shown(&words) })
}

fn words_of(pid: u32) -> Vec<String> {
    let bytes = fs::read(folder(pid).join("cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.split_terminator('\0').map(Into::into).collect()
}

fn shown(words: &[String]) -> String {
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn base(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_string()
}

/// The executable; one that was replaced since has that said behind its name.
fn exe_of(pid: u32) -> Option<PathBuf> {
    let exe = fs::read_link(folder(pid).join("exe")).ok()?;
    Some(match exe.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(text) => PathBuf::from(text),
        None => exe,
    })
}

/// The process that is meant by a name: the one that is called so, else the one with it on its command line.
pub fn named(name: &str, seen: &[Seen]) -> Result<u32, Failure> {
    let called: Vec<&Seen> = seen.iter().filter(|seen| seen.names.iter().any(|known| known == name)).collect();
    let found =
        if called.is_empty() { seen.iter().filter(|seen| seen.command.contains(name)).collect() } else { called };
    match &found[..] {
        [one] => Ok(one.pid),
        [] => {
            let failure = Failure::not_found(format!("no process of yours is called `{name}`"));
            let names = seen.iter().flat_map(|seen| seen.names.iter().map(String::as_str));
            Err(match crate::nearest::nearest(name, names) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint(format!("to wait until it starts: bugeye attach --wait-for {name}")),
            })
        }
        several => {
            let failure = Failure::refused(format!("{} processes are called `{name}`; name one", several.len()));
            let lines = several.iter().map(|seen| format!("bugeye attach {}: {}", seen.pid, quoted(&seen.command)));
            let failure = lines.take(7).fold(failure, Failure::hint);
            Err(if several.len() > 7 { failure.hint(format!("and {} more", several.len() - 7)) } else { failure })
        }
    }
}

/// The language that an interpreter's name stands for.
fn interpreted(name: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 8] = [
        ("python", "python"),
        ("pypy", "python"),
        ("nodejs", "javascript"),
        ("node", "javascript"),
        ("ruby", "ruby"),
        ("php", "php"),
        ("perl", "perl"),
        ("java", "java"),
    ];
    NAMES.iter().find_map(|(start, language)| {
        let version = name.strip_prefix(start)?;
        version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then_some(*language)
    })
}

/// The language of a running program.
#[must_use]
pub fn language_of(pid: u32) -> &'static str {
    let name = exe_of(pid).map(|exe| base(&exe.to_string_lossy())).unwrap_or_default();
    if let Some(language) = interpreted(&name) {
        return language;
    }
    let sections = elf::sections(&folder(pid).join("exe")).ok();
    let maps = fs::read_to_string(folder(pid).join("maps")).unwrap_or_default();
    if maps.contains("/libjvm.so") {
        return "java";
    }
    // A debugger or an editor has Python in it as well; without debug information only that can be looked at.
    if maps.contains("/libpython3") && sections.is_none_or(|sections| !sections.has_debug_info) {
        return "python";
    }
    sections.map_or("c", |sections| sections.language)
}

/// The program that runs in a process.
pub fn program_of(pid: u32) -> Result<PathBuf, Failure> {
    if !folder(pid).exists() {
        return Err(Failure::not_found(format!("there is no process {pid}")).hint("look: ps -e"));
    }
    fs::read_link(folder(pid).join("exe")).map_err(|error| {
        let failure = Failure::refused(format!("process {pid} can't be attached to: {error}"));
        match Ground::of(pid).hints(pid) {
            hints if hints.is_empty() => failure.hint("it is part of the kernel, or hidden from you"),
            hints => hints.into_iter().fold(failure, Failure::hint),
        }
    })
}

/// What is known of whoever listens at an address of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listener {
    /// Nobody does.
    None,
    /// Somebody else's process, or one in another container.
    Hidden,
    /// A debugger's server, for programs of this language.
    Debugger { pid: u32, language: &'static str },
    /// Something that is no debugger known here.
    Other { pid: u32, command: String },
}

/// Finds out who listens on a port of this machine.
#[must_use]
pub fn listener(addresses: &[IpAddr], port: u16) -> Listener {
    let sockets: Vec<u64> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .flat_map(|file| listening(&fs::read_to_string(file).unwrap_or_default(), addresses, port))
        .collect();
    if sockets.is_empty() {
        return Listener::None;
    }
    let holders: Vec<u32> =
        Table::read().iter().map(|process| process.pid).filter(|pid| holds(*pid, &sockets)).collect();
    // A child may have inherited the socket; the one that is a debugger is meant.
    let servers = holders.iter().filter_map(|pid| server_language(&words_of(*pid)).map(|language| (*pid, language)));
    match (servers.min(), holders.first()) {
        (Some((pid, language)), _) => Listener::Debugger { pid, language },
        (None, Some(pid)) => Listener::Other { pid: *pid, command: shown(&words_of(*pid)) },
        (None, None) => Listener::Hidden,
    }
}

/// The program that a debugger's server has, where that is plain: symbols are best read from the file itself.
#[must_use]
pub fn traced_by(server: u32) -> Option<PathBuf> {
    let traced = |pid: &u32| Ground::of(*pid).tracer.is_some_and(|(tracer, _)| tracer == server);
    let found = Table::read().below(server).into_iter().map(|process| process.pid).find(traced)?;
    exe_of(found).filter(|exe| exe.is_file())
}

/// The inodes of sockets that listen on a port, in the kernel's table.
fn listening(table: &str, addresses: &[IpAddr], port: u16) -> Vec<u64> {
    let lines = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, at) = fields.get(1)?.rsplit_once(':')?;
        let listens = *fields.get(3)? == "0A" && u16::from_str_radix(at, 16) == Ok(port);
        let local = address_of(address)?;
        let meant = local.is_unspecified() || addresses.contains(&local);
        (listens && meant).then(|| fields.get(9)?.parse().ok()).flatten()
    });
    lines.collect()
}

/// Groups of four bytes, each in the machine's own order.
fn address_of(text: &str) -> Option<IpAddr> {
    let groups = text.as_bytes().chunks(8).map(|group| {
        let number = u32::from_str_radix(std::str::from_utf8(group).ok()?, 16).ok()?;
        Some(number.to_ne_bytes())
    });
    let bytes = groups.collect::<Option<Vec<_>>>()?.concat();
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(|bytes| IpAddr::from(bytes).to_canonical()),
    }
}

fn holds(pid: u32, sockets: &[u64]) -> bool {
    let Ok(files) = fs::read_dir(folder(pid).join("fd")) else { return false };
    files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).any(|target| {
        let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        inode.is_some_and(|inode: u64| sockets.contains(&inode))
    })
}

/// The language whose programs a listening debugger has, by its command line.
fn server_language(words: &[String]) -> Option<&'static str> {
    const SERVERS: [(&str, &str); 3] = [("gdbserver", "c"), ("lldb-server", "c"), ("dlv", "go")];
    // Any program of such a language may listen; this word is on a debugger's command line.
    const PROOFS: [(&str, &str); 2] = [("python", "debugpy"), ("java", "jdwp")];
    let name = base(words.first()?);
    let server = SERVERS.iter().find(|(server, _)| {
        name.strip_prefix(server).is_some_and(|version| version.is_empty() || version.starts_with('-'))
    });
    if let Some((_, language)) = server {
        return Some(language);
    }
    let language = interpreted(&name)?;
    let mut proofs = PROOFS.iter().filter(|(of, _)| *of == language);
    proofs.all(|(_, proof)| words.iter().any(|word| word.contains(proof))).then_some(language)
}

/// What decides whether the kernel lets one process debug another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ground {
    exists: bool,
    /// `ptrace_scope` of the Yama security module.
    scope: Option<u8>,
    /// CAP_SYS_PTRACE is in force here.
    capable: bool,
    in_container: bool,
    /// Another user's, by number.
    other_user: Option<u32>,
    /// Who debugs it already.
    tracer: Option<(u32, String)>,
}

impl Ground {
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let status = |pid: &str, field: &str| {
            let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            text.lines().find_map(|line| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().to_string()))
        };
        let number = |text: String| text.split_whitespace().next().and_then(|word| word.parse::<u32>().ok());
        let capabilities = status("self", "CapEff").and_then(|text| u64::from_str_radix(&text, 16).ok());
        let user = status(&pid.to_string(), "Uid").and_then(number);
        let tracer = status(&pid.to_string(), "TracerPid").and_then(number).filter(|tracer| *tracer > 0);
        Self {
            exists: folder(pid).exists(),
            scope: fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
                .ok()
                .and_then(|text| text.trim().parse().ok()),
            capable: capabilities.is_some_and(|bits| bits >> 19 & 1 == 1),
            in_container: Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists(),
            other_user: user.filter(|user| *user != rustix::process::geteuid().as_raw()),
            tracer: tracer.map(|tracer| (tracer, platform::name(tracer).unwrap_or_default())),
        }
    }

    /// What stands in the way, and what to do about it.
    #[must_use]
    pub fn hints(&self, pid: u32) -> Vec<String> {
        if !self.exists {
            return vec![format!("process {pid} has ended meanwhile")];
        }
        let mut hints = Vec::new();
        if let Some((tracer, name)) = &self.tracer {
            hints.push(format!("it is under a debugger already: process {tracer} ({}); end that first", quoted(name)));
        }
        if self.capable {
            return hints;
        }
        match self.other_user {
            Some(0) => hints.push(format!("it belongs to root: sudo bugeye attach {pid}")),
            Some(user) => {
                hints.push(format!("it belongs to another user; as that one: sudo -u '#{user}' bugeye attach {pid}"));
            }
            None => {}
        }
        match self.scope {
            Some(1) => hints.push(
                "the kernel lets a program be debugged by its parent only (ptrace_scope 1); to change that until the next \
                 boot: echo 0 | sudo tee /proc/sys/kernel/yama/ptrace_scope; or start it here: bugeye start PROGRAM"
                    .into(),
            ),
            Some(2) => hints.push(
                "the kernel lets only root debug (ptrace_scope 2); to change that until the next boot: \
                 echo 0 | sudo tee /proc/sys/kernel/yama/ptrace_scope; or give the right to it: CAP_SYS_PTRACE"
                    .into(),
            ),
            Some(3..) => hints.push("the kernel lets nobody attach until the next boot (ptrace_scope 3)".into()),
            _ => {}
        }
        if self.in_container && self.other_user.is_none() {
            hints.push(
                "in a container the right has to be given from outside: \
                 docker run --cap-add=SYS_PTRACE --security-opt seccomp=unconfined"
                    .into(),
            );
        }
        hints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(pid: u32, names: &[&str], command: &str) -> Seen {
        Seen { pid, names: names.iter().map(ToString::to_string).collect(), command: command.into() }
    }

    #[test]
    fn a_name_is_one_process_or_a_list_to_choose_from() {
        let all = [
            seen(1, &["web"], "/srv/web --port 80"),
            seen(2, &["worker"], "worker --queue web"),
            seen(3, &["worker"], "worker --queue mail"),
            seen(4, &["python3", "app.py"], "python3 app.py"),
        ];
        assert_eq!(named("web", &all), Ok(1), "the name comes before the command line");
        assert_eq!(named("app.py", &all), Ok(4));
        assert_eq!(named("queue mail", &all), Ok(3));
        let several = named("worker", &all).unwrap_err();
        assert_eq!(several.message, "2 processes are called `worker`; name one");
        assert_eq!(several.hints, ["bugeye attach 2: worker --queue web", "bugeye attach 3: worker --queue mail"]);
        let none = named("wrker", &all).unwrap_err();
        assert_eq!(
            (none.kind, &none.hints[..]),
            (crate::failure::Kind::NotFound, &["did you mean `worker`?".into()][..])
        );
    }

    #[test]
    fn this_process_is_not_among_those_to_attach_to() {
        let me = std::process::id();
        assert!(of_user(None).iter().all(|seen| seen.pid != me));
        let itself = look(me).unwrap();
        assert!(itself.names.iter().any(|name| name.starts_with("bugeye")), "{itself:?}");
        assert_eq!(language_of(me), "rust");
    }

    #[test]
    fn who_listens_is_read_from_the_kernel_s_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:162E 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n\
            1: 00000000:162F 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0 0 10 0\n\
            2: 0100007F:162E 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0\n";
        let loopback = [IpAddr::from([127, 0, 0, 1])];
        assert_eq!(listening(table, &loopback, 5678), [4711]);
        assert_eq!(listening(table, &loopback, 5679), [4712], "at every address");
        assert_eq!(listening(table, &[IpAddr::from([127, 0, 0, 2])], 5678), [0u64; 0]);
        let six = "0000000000000000FFFF00000100007F";
        assert_eq!(address_of(six), Some(loopback[0]));
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = own.local_addr().unwrap().port();
        assert!(matches!(listener(&loopback, port), Listener::Other { pid, .. } if pid == std::process::id()));
        drop(own);
        assert_eq!(listener(&loopback, port), Listener::None);
    }

    #[test]
    fn debuggers_that_listen_are_known_by_their_command_line() {
        let language = |line: &str| server_language(&line.split(' ').map(Into::into).collect::<Vec<_>>());
        assert_eq!(language("/usr/bin/gdbserver :1234 ./a"), Some("c"));
        assert_eq!(language("lldb-server-19 gdbserver *:1234 -- ./a"), Some("c"));
        assert_eq!(language("dlv debug --headless --listen=:2345"), Some("go"));
        assert_eq!(language("/usr/bin/python3 /x/debugpy/adapter --for-server 4"), Some("python"));
        assert_eq!(language("python3 -m http.server"), None);
        assert_eq!(language("node --inspect app.js"), Some("javascript"));
        assert_eq!(language("/usr/bin/ruby3.1 /usr/bin/rdbg --open --port 1 a.rb"), Some("ruby"));
        assert_eq!(language("java -agentlib:jdwp=transport=dt_socket,server=y Main"), Some("java"));
        assert_eq!(language("nginx"), None);
    }

    #[test]
    fn what_stands_in_the_way_is_said() {
        let ground = Ground { exists: true, ..Ground::default() };
        assert!(ground.hints(7).is_empty());
        let scope = |scope| Ground { scope: Some(scope), ..ground.clone() }.hints(7).join(" ");
        assert!(scope(1).contains("echo 0 | sudo tee /proc/sys/kernel/yama/ptrace_scope"));
        assert!(scope(2).contains("CAP_SYS_PTRACE"));
        assert!(scope(3).contains("until the next boot"));
        let container = Ground { in_container: true, ..ground.clone() }.hints(7).join(" ");
        assert!(container.contains("docker run --cap-add=SYS_PTRACE"));
        let other = Ground { other_user: Some(33), ..ground.clone() }.hints(7).join(" ");
        assert!(other.contains("sudo -u '#33' bugeye attach 7"));
        let capable = Ground { capable: true, scope: Some(1), in_container: true, ..ground.clone() };
        assert!(capable.hints(7).is_empty());
        let traced = Ground { tracer: Some((9, "gdb".into())), ..capable };
        assert!(traced.hints(7).join(" ").contains("process 9 (gdb)"));
        assert!(Ground::default().hints(7)[0].contains("has ended"));
    }
}
