//! The Java adapter, which is Java itself: compiled once by the user's own compiler, then run in this process's place.
//!
//! The classes are kept in the private folder, under a name that changes with the source and with the Java they were
//! compiled by. Whoever comes first compiles, the others wait.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Asked;
use crate::find;
use crate::paths::{Paths, create_private};

macro_rules! source {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("java/", $name))),)*]
    };
}

/// The adapter's source: each file's name and text.
const SOURCE: [(&str, &str); 21] = source![
    "Adapter.java",
    "Breakpoints.java",
    "ClassFiles.java",
    "Client.java",
    "Debuggee.java",
    "Exceptions.java",
    "Items.java",
    "Json.java",
    "Launcher.java",
    "Main.java",
    "Node.java",
    "Numbers.java",
    "Parser.java",
    "Place.java",
    "Refusal.java",
    "Scope.java",
    "Sources.java",
    "Threads.java",
    "Types.java",
    "Values.java",
    "Watches.java",
];

/// A small heap and a quick start: the adapter waits most of its time.
const OPTIONS: [&str; 4] = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto"];

/// `COMMAND` is the Java to run the adapter with, and options for it.
pub fn java(asked: &Asked) -> u8 {
    let Some((java, options)) = asked.command.split_first() else {
        eprintln!("no java was named");
        return 2;
    };
    let java = &found(java);
    let classes = match classes(java) {
        Ok(classes) => classes,
        Err(message) => {
            eprintln!("{message}");
            return 1;
        }
    };
    let mut command = Command::new(java);
    command.args(OPTIONS).args(options).arg("-cp").arg(classes).arg("bugeye.Main");
    if let Some(streams) = &asked.streams {
        command.args([&streams.stdin, &streams.stdout, &streams.stderr]);
    }
    let error = command.exec();
    eprintln!("could not start {}: {error}", java.display());
    1
}

/// A name without a folder is looked up on the PATH.
fn found(java: &str) -> PathBuf {
    let on_path = || find::on_path(java, &env_path());
    Some(java).filter(|java| !java.contains('/')).and_then(|_| on_path()).unwrap_or_else(|| java.into())
}

fn env_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

/// The folder of the compiled adapter, which is compiled if it is not there.
fn classes(java: &Path) -> Result<PathBuf, String> {
    let real = fs::canonicalize(java).map_err(|error| format!("there is no {}: {error}", java.display()))?;
    let paths = Paths::locate().map_err(|failure| failure.to_string())?;
    let folder = paths.data.join("adapters/java");
    let classes = folder.join(format!("classes-{:016x}", key(&real)));
    if classes.is_dir() {
        return Ok(classes);
    }
    create_private(&folder).map_err(|failure| failure.to_string())?;
    let failed = |what: &str, error: &io::Error| format!("could not {what} in {}: {error}", folder.display());
    let lock = File::create(folder.join("lock")).map_err(|error| failed("make a lock", &error))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
        .map_err(|error| failed("lock", &error.into()))?;
    if !classes.is_dir() {
        let new = folder.join("new");
        let _ = fs::remove_dir_all(&new);
        compile(&real, &new)?;
        fs::rename(new.join("classes"), &classes).map_err(|error| failed("keep the classes", &error))?;
        let _ = fs::remove_dir_all(&new);
    }
    Ok(classes)
}

fn compile(java: &Path, folder: &Path) -> Result<(), String> {
    let javac = compiler(java).ok_or_else(|| {
        format!(
            "{} is a Java without a compiler: debugging needs a JDK, 11 or later (bugeye setup java)",
            java.display()
        )
    })?;
    let package = folder.join("bugeye");
    let failed = |error: io::Error| format!("could not write to {}: {error}", folder.display());
    fs::create_dir_all(&package).map_err(failed)?;
    let mut command = Command::new(&javac);
    command.args(["-nowarn", "-proc:none", "-encoding", "UTF-8", "-d"]).arg(folder.join("classes"));
    for (name, text) in SOURCE {
        fs::write(package.join(name), text).map_err(failed)?;
        command.arg(package.join(name));
    }
    fs::create_dir_all(folder.join("classes")).map_err(failed)?;
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("could not run {}: {error}", javac.display()))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let first = said.lines().take(4).collect::<Vec<_>>().join("\n");
    Err(format!("{} could not compile the Java adapter, which needs a JDK 11 or later:\n{first}", javac.display()))
}

/// The compiler beside a Java, else the one that `JAVA_HOME` or the PATH has.
fn compiler(java: &Path) -> Option<PathBuf> {
    let home = std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
    let beside = java.parent().map(|folder| folder.join("javac")).filter(|path| path.is_file());
    beside
        .or_else(|| home.map(|home| Path::new(&home).join("bin/javac")).filter(|path| path.is_file()))
        .or_else(|| find::on_path("javac", &env_path()))
}

/// Changes with the source, and with the Java.
fn key(java: &Path) -> u64 {
    let time = fs::metadata(java).map(|data| data.mtime()).unwrap_or_default();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    take(java.as_os_str().as_encoded_bytes());
    take(&time.to_le_bytes());
    for (name, text) in SOURCE {
        take(name.as_bytes());
        take(text.as_bytes());
    }
    hash
}
