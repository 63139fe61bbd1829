//! `setup` and `doctor` with the real package managers: every way installs, says what it tried where there is no network,
//! and leaves nothing half-done when it is interrupted.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that can't be set up has failed")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use bugeye::adapters::lldb::LLDB;
use bugeye::adapters::{ADAPTERS, Adapter, Find, Found, Install};
use bugeye::paths::Paths;
use bugeye::setup::{Permission, install_with};

fn paths_in(root: &Path) -> Paths {
    Paths {
        runtime: root.join("runtime"),
        state: root.join("state"),
        data: root.join("data"),
        config: root.join("config"),
    }
}

static BY_NPM: Adapter = Adapter {
    id: "by-npm",
    find: Find { file: Some("node_modules/ms/index.js"), ..Find::programs(&["node"]) },
    install: Install { setup_name: "by-npm", npm: Some("ms@2.1.3"), ..Install::NONE },
    ..LLDB
};

static BY_GO: Adapter = Adapter {
    id: "by-go",
    find: Find::programs(&["hello"]),
    install: Install {
        setup_name: "by-go",
        go: Some("golang.org/x/example/hello@v0.0.0-20250915201037-7f05d217867b"),
        ..Install::NONE
    },
    ..LLDB
};

static BY_CARGO: Adapter = Adapter {
    id: "by-cargo",
    find: Find::programs(&["hello"]),
    install: Install { setup_name: "by-cargo", cargo: Some("hello-cli@0.2.2"), ..Install::NONE },
    ..LLDB
};

static BY_MAVEN: Adapter = Adapter {
    id: "by-maven",
    find: Find { file: Some("gson-2.10.1.jar"), ..Find::programs(&["java"]) },
    install: Install { setup_name: "by-maven", maven: &["com.google.code.gson:gson:2.10.1"], ..Install::NONE },
    ..LLDB
};

fn installed(adapter: &'static Adapter) -> (tempfile::TempDir, Found) {
    let root = tempfile::tempdir().unwrap();
    let mut said = Vec::new();
    let mut report = |text: &str| said.push(text.to_string());
    let found = install_with(adapter, &paths_in(root.path()), Permission::default(), &mut report);
    let found = found.unwrap_or_else(|failure| panic!("{failure}\n{said:?}"));
    assert!(!said.is_empty());
    let mut left: Vec<String> = fs::read_dir(root.path().join("data/adapters"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [".lock", adapter.id]);
    (root, found)
}

#[test]
fn an_npm_package_goes_into_the_private_folder() {
    let (root, found) = installed(&BY_NPM);
    assert_eq!(found.file.unwrap(), root.path().join("data/adapters/by-npm/node_modules/ms/index.js"));
    assert_eq!(found.version.as_deref(), Some("2.1.3"));
}

#[test]
fn a_go_command_goes_into_the_private_folder() {
    let (root, found) = installed(&BY_GO);
    assert_eq!(found.program, root.path().join("data/adapters/by-go/bin/hello"));
    assert!(Command::new(found.program).output().unwrap().status.success());
}

#[test]
fn a_crate_goes_into_the_private_folder() {
    let (root, found) = installed(&BY_CARGO);
    assert_eq!(found.program, root.path().join("data/adapters/by-cargo/bin/hello"));
    assert_eq!(found.version.as_deref(), Some("0.2.2"));
}

#[test]
fn maven_artifacts_go_into_the_private_folder() {
    let (root, found) = installed(&BY_MAVEN);
    assert_eq!(found.file.unwrap(), root.path().join("data/adapters/by-maven/gson-2.10.1.jar"));
    assert_eq!(found.version.as_deref(), Some("2.10.1"));
}

/// A PATH that has all this machine has, without its own package managers: what they installed would be found, and
/// what they would install has no place in a test.
fn path_without_managers(root: &Path) -> PathBuf {
    let folder = root.join("path");
    fs::create_dir(&folder).unwrap();
    for place in std::env::split_paths(&std::env::var_os("PATH").unwrap()) {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if !["apt-get", "dnf", "brew"].contains(&name.to_str().unwrap_or_default()) {
                let _ = std::os::unix::fs::symlink(entry.path(), folder.join(name));
            }
        }
    }
    folder
}

/// `bugeye` where every registry is a port of this machine that nobody listens on.
fn offline(root: &Path, words: &[&str]) -> Output {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{closed}");
    let (host, port) = (closed.ip(), closed.port());
    let proxies = ["http", "https"].map(|kind| format!("-D{kind}.proxyHost={host} -D{kind}.proxyPort={port}"));
    let java = format!("{} -Dmaven.repo.local={}", proxies.join(" "), root.join("m2").display());
    Command::new(env!("CARGO_BIN_EXE_bugeye"))
        .args(words)
        .env("BUGEYE_HOME", root.join("home"))
        .env("PATH", path_without_managers(root))
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env("PIP_INDEX_URL", &url)
        .env("PIP_RETRIES", "0")
        .env("npm_config_registry", &url)
        .env("npm_config_cache", root.join("npm"))
        .env("GOPROXY", &url)
        .env("GOMODCACHE", root.join("go"))
        .env("CARGO_HOME", root.join("cargo"))
        .env("CARGO_HTTP_PROXY", &url)
        .env("MAVEN_OPTS", java)
        .output()
        .unwrap()
}

#[test]
fn without_a_network_the_failure_says_what_was_tried() {
    let private = |adapter: &&&Adapter| {
        let install = &adapter.install;
        [install.pip, install.npm, install.go, install.cargo].iter().any(Option::is_some) || !install.maven.is_empty()
    };
    for adapter in ADAPTERS.iter().filter(private) {
        let root = tempfile::tempdir().unwrap();
        let began = Instant::now();
        let output = offline(root.path(), &["setup", adapter.install.setup_name, "--force"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {text}", adapter.id);
        assert!(text.contains("could not be") && text.contains("ended with"), "{}: {text}", adapter.id);
        assert!(text.contains("can be reached"), "{}: {text}", adapter.id);
        assert!(!root.path().join("home/data/adapters").join(adapter.id).exists(), "{}", adapter.id);
        assert!(began.elapsed() < Duration::from_secs(60), "{}: {:?}", adapter.id, began.elapsed());
    }
}

#[test]
fn an_interrupted_installation_leaves_nothing_that_is_found() {
    let root = tempfile::tempdir().unwrap();
    // An index that takes the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let bugeye = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
        command.args(words).env("BUGEYE_HOME", root.path()).stdin(Stdio::null());
        command
    };
    let mut command = bugeye(&["setup", "debugpy", "--force"]);
    command
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env("PIP_INDEX_URL", format!("http://{}", silent.local_addr().unwrap()));
    let child = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let _held = silent.accept().unwrap();
    let group = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // As a terminal does for Ctrl-C.
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    // The pipe is held by pip as well: its end is the end of both.
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    let folder = root.path().join("data/adapters/debugpy");
    assert!(!folder.exists());
    // The next one does not trip over what is left, and the one after that has nothing to do.
    let again = bugeye(&["setup", "debugpy", "--force"]).output().unwrap();
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert!(folder.join("debugpy/__init__.py").is_file());
    let third = bugeye(&["setup", "debugpy"]).output().unwrap();
    assert!(String::from_utf8_lossy(&third.stdout).contains("already installed"), "{third:?}");
    let left = fs::read_dir(folder.parent().unwrap()).unwrap().count();
    assert_eq!(left, 2, "the folder and the lock");
}

#[test]
fn plain_setup_installs_nothing_and_the_doctor_is_quick() {
    let root = tempfile::tempdir().unwrap();
    let bugeye = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_bugeye")).args(words).env("BUGEYE_HOME", root.path()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = bugeye(&["setup"]);
    assert!(text.contains("debugpy"), "{text}");
    assert!(!root.path().join("data/adapters").exists());
    // The first start of an adapter in a new home may prepare things for the next.
    bugeye(&["doctor"]);
    let began = Instant::now();
    let report: serde_json::Value = serde_json::from_str(&bugeye(&["doctor", "--json"])).unwrap();
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    let adapters = report["result"]["adapters"].as_array().unwrap();
    assert_eq!(adapters.len(), ADAPTERS.len());
    for check in adapters {
        assert_ne!(check["state"], "broken", "{check}");
        assert!(check["state"] == "ok" || check["fix"].is_string(), "{check}");
    }
}
