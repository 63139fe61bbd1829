//! Real processes under a real supervisor: whatever is lost, nothing is left behind and nothing foreign is touched.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "clippy.toml's leave for tests does not reach their helpers"
)]

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use bugeye::platform;
use bugeye::process::{self, MARK, Plan, Streams, Supervised};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Ignores SIGTERM and starts a child in a session of its own, a double fork, a child stopped under its debugger, and a
/// grandchild without environment.
const FAMILY: &str = r#"
import ctypes, os, signal, subprocess, sys, time
where = sys.argv[1]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def note():
    open(f"{where}/{os.getpid()}", "w").close()
if os.fork() == 0:
    os.setsid()
    note()
    time.sleep(600)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid()
        note()
        time.sleep(600)
    os._exit(0)
if os.fork() == 0:
    note()
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)
script = f'touch {where}/$$; sleep 600 & touch {where}/$!; wait'
subprocess.Popen(["env", "-i", "/usr/bin/setsid", "/bin/sh", "-c", script])
note()
time.sleep(600)
"#;
const FAMILY_SIZE: usize = 6;

/// Prints without end and writes down how often it has.
const PRINTER: &str = r#"
import os, sys
count = 0
while True:
    os.write(1, b"x" * 1023 + b"\n")
    count += 1
    if count % 50 == 0:
        with open(sys.argv[1] + ".new", "w") as file:
            file.write(str(count))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
"#;

/// A directory for one test, and what is found of its processes.
struct Place {
    directory: PathBuf,
    kept: Option<TempDir>,
}

impl Place {
    fn new() -> Self {
        process::become_subreaper();
        let kept = tempfile::tempdir().unwrap();
        let place = Self { directory: kept.path().into(), kept: Some(kept) };
        fs::create_dir(place.path("pids")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn plan(&self, argv: &[&str]) -> Plan {
        Plan {
            exe: env!("CARGO_BIN_EXE_bugeye").into(),
            runtime: self.directory.clone(),
            session: "s1".into(),
            argv: argv.iter().map(|&word| word.into()).collect(),
            env: environment(),
            cwd: self.directory.clone(),
            umask: Some(0o027),
            stdio_dir: self.path("stdio"),
            fifos: true,
            stdin_file: None,
            attached: false,
            stays: false,
        }
    }

    fn python(&self, script: &str) -> Plan {
        self.plan(&["python3", "-c", script, self.path("pids").to_str().unwrap()])
    }

    /// The processes that wrote down their pids.
    fn noted(&self) -> Vec<u32> {
        let entries = fs::read_dir(self.path("pids")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
    }

    async fn family(&self) -> (Supervised, Streams) {
        let started = Supervised::spawn(&self.python(FAMILY)).await.unwrap();
        eventually("the family is complete", || self.noted().len() == FAMILY_SIZE).await;
        started
    }

    /// No process that carries this place's mark or wrote down its pid, not even a zombie.
    async fn no_process_left(&self, within: Duration) {
        let prefix = format!("{}:", self.directory.display());
        let left = || {
            let mut left = self.noted();
            left.retain(|pid| platform::process(*pid).is_some());
            let marked = |pid: u32| platform::variable(pid, MARK).is_some_and(|mark| mark.starts_with(&prefix));
            left.extend(platform::Table::read().iter().map(|found| found.pid).filter(|pid| marked(*pid)));
            left
        };
        let deadline = Instant::now() + within;
        while !left().is_empty() {
            assert!(
                Instant::now() < deadline,
                "left: {:?}",
                left().iter().map(|pid| describe(*pid)).collect::<Vec<_>>()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Place {
    /// A test that failed must not leave a program that was let go.
    fn drop(&mut self) {
        if self.kept.is_some() {
            platform::kill_all(|| self.noted().into_iter().filter_map(platform::process).collect());
        }
    }
}

fn describe(pid: u32) -> String {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ");
    format!("{:?} {line:.60}", platform::process(pid))
}

fn environment() -> Vec<(String, String)> {
    std::env::vars().filter(|(name, _)| name == "PATH" || name == "HOME").collect()
}

async fn eventually(what: &str, check: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !check() {
        assert!(Instant::now() < deadline, "still not: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn within<T>(seconds: u64, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), future).await.expect("in time")
}

fn kill(pid: u32) {
    assert!(platform::send(&platform::process(pid).unwrap(), rustix::process::Signal::KILL));
}

/// Somebody else's process, ended with the test.
struct Foreign(Child);

impl Foreign {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_adapter_speaks_through_its_pipes_and_its_exit_code_is_told() {
    let place = Place::new();
    let script = "read line; echo out $line; echo err >&2; umask; pwd; ls -l /proc/$$/fd | wc -l; exit 3";
    let (supervised, mut streams) = Supervised::spawn(&place.plan(&["sh", "-c", script])).await.unwrap();
    streams.adapter_in.write_all(b"hello\n").await.unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    within(5, streams.adapter_out.read_to_string(&mut out)).await.unwrap();
    within(5, streams.adapter_err.read_to_string(&mut err)).await.unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..3], ["out hello", "0027", place.directory.to_str().unwrap()]);
    assert_eq!(err, "err\n");
    assert_eq!(within(5, supervised.adapter_exit()).await.as_deref(), Some("exit code 3"));
    supervised.end(Duration::ZERO).await;
    place.no_process_left(Duration::ZERO).await;
}

#[tokio::test]
async fn no_descriptor_of_ours_leaks() {
    let place = Place::new();
    let (supervised, _streams) = Supervised::spawn(&place.plan(&["sleep", "600"])).await.unwrap();
    let child = supervised.spawn_child(vec!["sleep".into(), "600".into()], environment(), "/".into()).await.unwrap();
    for pid in [supervised.adapter_pid(), child] {
        eventually("it runs", || platform::name(pid).as_deref() == Some("sleep")).await;
        for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
            let number: u32 = entry.file_name().to_str().unwrap().parse().unwrap();
            // Its own files come and go while it starts.
            let Ok(link) = fs::read_link(entry.path()) else { continue };
            let ours = link.starts_with(&place.directory) || link.to_string_lossy().contains("socket");
            assert!(number <= 2 || !ours, "{number} → {}", link.display());
        }
    }
    supervised.end(Duration::ZERO).await;
    place.no_process_left(Duration::ZERO).await;
}

#[tokio::test]
async fn an_adapter_that_is_missing_is_said() {
    let place = Place::new();
    let failure = Supervised::spawn(&place.plan(&["no-such-adapter"])).await.unwrap_err();
    assert!(failure.message.contains("could not start no-such-adapter"), "{failure}");
    place.no_process_left(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_large_environment_arrives() {
    let place = Place::new();
    let mut plan = place.plan(&["sh", "-c", "exit ${#BIG7}"]);
    plan.env.extend((0..20).map(|index| (format!("BIG{index}"), "x".repeat(if index == 7 { 42 } else { 50_000 }))));
    let (supervised, _streams) = Supervised::spawn(&plan).await.unwrap();
    assert_eq!(within(5, supervised.adapter_exit()).await.as_deref(), Some("exit code 42"));
    supervised.end(Duration::ZERO).await;
    place.no_process_left(Duration::ZERO).await;
}

#[tokio::test]
async fn end_leaves_nothing_after_its_grace() {
    let place = Place::new();
    let (supervised, _streams) = place.family().await;
    let start = Instant::now();
    supervised.end(Duration::from_millis(300)).await;
    let took = start.elapsed();
    place.no_process_left(Duration::ZERO).await;
    assert!(took >= Duration::from_millis(300) && took < Duration::from_millis(1300), "{took:?}");
    assert_eq!(within(1, supervised.adapter_exit()).await.as_deref(), Some("killed by SIGKILL"));
}

#[tokio::test]
async fn end_does_not_wait_for_those_that_obey() {
    let place = Place::new();
    let (supervised, _streams) = Supervised::spawn(&place.plan(&["sleep", "600"])).await.unwrap();
    let start = Instant::now();
    supervised.end(Duration::from_secs(5)).await;
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(within(1, supervised.adapter_exit()).await.as_deref(), Some("killed by SIGTERM"));
    place.no_process_left(Duration::ZERO).await;
}

#[tokio::test]
async fn a_family_that_forks_without_end_is_ended() {
    let place = Place::new();
    let script = r#"
import os, time
for _ in range(4):
    if os.fork() == 0:
        while True:
            if os.fork(): os._exit(0)
time.sleep(600)
"#;
    let (supervised, _streams) = Supervised::spawn(&place.python(script)).await.unwrap();
    eventually("it forks", || {
        platform::descendants(supervised.adapter_pid()).len() + platform::descendants(supervised.pid()).len() > 4
    })
    .await;
    let start = Instant::now();
    supervised.end(Duration::ZERO).await;
    place.no_process_left(Duration::ZERO).await;
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_stuck_supervisor_is_ended_with_its_tree() {
    let place = Place::new();
    let (supervised, _streams) = place.family().await;
    platform::send(&platform::process(supervised.pid()).unwrap(), rustix::process::Signal::STOP);
    let start = Instant::now();
    supervised.end(Duration::from_millis(100)).await;
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    place.no_process_left(Duration::ZERO).await;
}

#[tokio::test]
async fn the_daemons_death_ends_what_it_launched() {
    let place = Place::new();
    let started = place.family().await;
    drop(started);
    place.no_process_left(Duration::from_secs(2)).await;
}

const STAND_IN: &str = "BUGEYE_TEST_STAND_IN";

/// Not a test by itself: the part of a daemon that the next test kills.
#[tokio::test]
async fn stand_in_daemon() {
    let Some(directory) = std::env::var_os(STAND_IN) else { return };
    let place = Place { directory: directory.into(), kept: None };
    let _started = Supervised::spawn(&place.python(FAMILY)).await.unwrap();
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_daemon_killed_outright_leaves_nothing() {
    let place = Place::new();
    let mut daemon = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stand_in_daemon"])
        .env(STAND_IN, &place.directory)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    eventually("the family is complete", || place.noted().len() == FAMILY_SIZE).await;
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    place.no_process_left(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn the_supervisors_death_ends_what_it_owned() {
    let place = Place::new();
    let other = Place::new();
    let (neighbour, _streams_kept) = Supervised::spawn(&other.plan(&["sleep", "600"])).await.unwrap();
    let mut own = Foreign::new();
    let (supervised, _streams) = place.family().await;
    kill(supervised.pid());
    assert_eq!(within(2, supervised.adapter_exit()).await, None);
    place.no_process_left(Duration::from_secs(1)).await;
    assert!(platform::process(neighbour.adapter_pid()).is_some_and(|adapter| !adapter.is_dead()));
    assert!(own.0.try_wait().unwrap().is_none());
    let failure = supervised.spawn_child(vec!["true".into()], environment(), "/".into()).await.unwrap_err();
    assert_eq!(failure.kind, bugeye::failure::Kind::Lost);
    supervised.end(Duration::from_secs(1)).await;
    neighbour.end(Duration::ZERO).await;
    other.no_process_left(Duration::ZERO).await;
}

#[tokio::test]
async fn a_killed_adapter_is_told_and_the_rest_stays_until_the_end() {
    let place = Place::new();
    let (supervised, _streams) = place.family().await;
    kill(supervised.adapter_pid());
    assert_eq!(within(2, supervised.adapter_exit()).await.as_deref(), Some("killed by SIGKILL"));
    supervised.end(Duration::ZERO).await;
    place.no_process_left(Duration::ZERO).await;
}

#[tokio::test]
async fn a_spawned_child_has_the_fifos() {
    let place = Place::new();
    let (supervised, mut streams) = Supervised::spawn(&place.plan(&["sleep", "600"])).await.unwrap();
    let argv = ["sh", "-c", "while read line; do echo got $line; done; echo over >&2"];
    let argv = argv.iter().map(|&word| word.into()).collect();
    let pid = supervised.spawn_child(argv, environment(), "/".into()).await.unwrap();
    eventually("it waits", || platform::waiting_for_input(pid, &place.path("stdio/stdin"))).await;
    let mut stdin = streams.stdin.take().unwrap();
    stdin.write_all(b"one\n").await.unwrap();
    let mut text = [0; 8];
    within(5, streams.stdout.as_mut().unwrap().read_exact(&mut text)).await.unwrap();
    assert_eq!(&text, b"got one\n");
    drop(stdin);
    supervised.close_stdin();
    let mut text = [0; 5];
    within(5, streams.stderr.as_mut().unwrap().read_exact(&mut text)).await.unwrap();
    assert_eq!(&text, b"over\n");
    let failure = supervised.spawn_child(vec!["no-such".into()], environment(), "/".into()).await.unwrap_err();
    assert!(failure.message.contains("no-such"), "{failure}");
    supervised.end(Duration::ZERO).await;
    place.no_process_left(Duration::ZERO).await;
}

#[tokio::test]
async fn a_file_takes_the_place_of_the_input_fifo() {
    let place = Place::new();
    let mut plan = place.plan(&["sleep", "600"]);
    fs::write(place.path("input"), "from a file").unwrap();
    plan.stdin_file = Some(place.path("input"));
    let (supervised, mut streams) = Supervised::spawn(&plan).await.unwrap();
    assert!(streams.stdin.is_none());
    supervised.spawn_child(vec!["cat".into()], environment(), "/".into()).await.unwrap();
    let mut text = [0; 11];
    within(5, streams.stdout.as_mut().unwrap().read_exact(&mut text)).await.unwrap();
    assert_eq!(&text, b"from a file");
    supervised.end(Duration::ZERO).await;
    place.no_process_left(Duration::ZERO).await;
}

fn count(path: &Path) -> u64 {
    fs::read_to_string(path).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn a_program_that_is_let_go_lives_on_and_prints_on() {
    let place = Place::new();
    // The adapter launches the program itself, as debuggers do.
    let script = format!(
        r#"
import os, subprocess, time
program = subprocess.Popen(["python3", "-c", {PRINTER:?}, "{0}"], start_new_session=True,
    stdin=open("{1}/stdin"), stdout=open("{1}/stdout", "w"), stderr=subprocess.STDOUT)
open("{2}/" + str(program.pid), "w").close()
time.sleep(600)
"#,
        place.path("count").display(),
        place.path("stdio").display(),
        place.path("pids").display(),
    );
    let (supervised, mut streams) = Supervised::spawn(&place.python(&script)).await.unwrap();
    let mut some = vec![0; 200_000];
    within(5, streams.stdout.as_mut().unwrap().read_exact(&mut some)).await.unwrap();
    let program = place.noted()[0];
    within(3, supervised.let_go(program)).await;
    assert_eq!(platform::process(supervised.adapter_pid()), None);
    assert_eq!(within(1, supervised.adapter_exit()).await.as_deref(), Some("killed by SIGKILL"));
    supervised.end(Duration::ZERO).await;
    let supervisor = supervised.pid();
    drop((supervised, streams));
    let before = count(&place.path("count"));
    eventually("it goes on printing", || count(&place.path("count")) > before + 5000).await;
    assert!(platform::process(supervisor).is_some_and(|found| !found.is_dead()));
    kill(program);
    place.no_process_left(Duration::from_secs(2)).await;
}

#[tokio::test]
async fn the_daemons_death_detaches_from_what_it_attached_to() {
    let place = Place::new();
    let mut foreign = Foreign::new();
    // It answers more than a pipe holds before it is done: nobody may be missing at the other end.
    let script = r#"
import os, sys
where = sys.argv[1]
text = b""
while b'"command":"disconnect"' not in text:
    text += os.read(0, 1000)
for _ in range(300):
    os.write(1, b"y" * 1000)
open(where + "/../asked", "wb").write(text)
"#;
    let mut plan = place.python(script);
    plan.attached = true;
    let started = Supervised::spawn(&plan).await.unwrap();
    drop(started);
    place.no_process_left(Duration::from_secs(2)).await;
    let asked = fs::read_to_string(place.path("asked")).unwrap();
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    assert_eq!(head, format!("Content-Length: {}", body.len()));
    assert!(body.contains(r#""terminateDebuggee":false"#), "{body}");
    assert!(foreign.0.try_wait().unwrap().is_none());
}

#[tokio::test]
async fn an_attached_adapter_that_does_not_answer_is_killed() {
    let place = Place::new();
    let mut foreign = Foreign::new();
    let mut plan = place.python(FAMILY);
    plan.attached = true;
    let started = Supervised::spawn(&plan).await.unwrap();
    eventually("the family is complete", || place.noted().len() == FAMILY_SIZE).await;
    drop(started);
    place.no_process_left(Duration::from_millis(2200)).await;
    assert!(foreign.0.try_wait().unwrap().is_none());
}

#[tokio::test]
async fn a_sweep_ends_what_a_dead_daemon_left_and_nothing_else() {
    let place = Place::new();
    let runtime = place.directory.as_path();
    let mut gone = Command::new("true").spawn().unwrap();
    let dead = format!("{}:1", gone.id());
    gone.wait().unwrap();
    let me = std::process::id();
    let alive = format!("{me}:{}", platform::start_time(me).unwrap());
    let guard = place.path("bugeye-let-go");
    fs::copy(fs::canonicalize("/bin/sh").unwrap(), &guard).unwrap();
    let start = |program: &Path, mark: String| {
        Command::new(program).args(["-c", "env -i sleep 600 & wait"]).env(MARK, mark).spawn().unwrap()
    };
    let sh = Path::new("/bin/sh");
    let mut left = start(sh, format!("{}:s1:{dead}", runtime.display()));
    let spared = [
        start(sh, format!("{}:s1:{alive}", runtime.display())),
        start(sh, format!("{}/other:s1:{dead}", runtime.display())),
        start(&guard, format!("{}:s1:{dead}", runtime.display())),
    ];
    for child in spared.iter().chain([&left]) {
        eventually("it has a child", || platform::descendants(child.id()).len() == 1).await;
    }
    let below = platform::descendants(left.id())[0];
    process::sweep(runtime);
    left.wait().unwrap();
    eventually("its child is gone", || platform::process(below).is_none_or(|found| found.is_dead())).await;
    for mut child in spared {
        assert!(child.try_wait().unwrap().is_none());
        platform::kill_all(|| platform::Table::read().below(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    place.no_process_left(Duration::from_secs(1)).await;
}
