//! The scripted agent, started against a debugger of the test's own.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::desk::Desk;
use crate::support::scripted::{LANGUAGES, Language, program};

const LIMIT: Duration = Duration::from_secs(60);

pub const TRANSPORTS: [&str; 2] = ["socket", "files"];

/// Every client by every transport.
pub fn each(mut test: impl FnMut(Language, &'static str)) {
    for language in LANGUAGES {
        for transport in TRANSPORTS {
            println!("{language:?} by {transport}");
            test(language, transport);
        }
    }
}

/// An agent that runs, in a folder of its own.
pub struct Agent {
    child: Child,
    folder: tempfile::TempDir,
    started: Instant,
}

impl Agent {
    pub fn start(language: Language, transport: &str, desk: &Desk, script: &Value) -> Self {
        Self::with(language, transport, &desk.variables(), script)
    }

    pub fn with(language: Language, transport: &str, variables: &[(String, String)], script: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let words = program(language);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(script.to_string()).args(["--transport", transport]);
        command.arg("--folder").arg(folder.path()).arg("--requests").arg(folder.path().join("requests.jsonl"));
        for name in ["SOCKET", "TOKEN", "DIR", "FAIL"] {
            command.env_remove(format!("BUGEYE_AGENT_{name}"));
        }
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap(), folder, started: Instant::now() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a tool wrote, if it did.
    pub fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// What the model was given at each call.
    pub fn requests(&self) -> Vec<Value> {
        let text = self.file("requests.jsonl").unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its exit code and what it printed, at its end.
    #[track_caller]
    pub fn wait(&mut self) -> (i32, String) {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(self.started.elapsed() < LIMIT, "the agent does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (status.code().unwrap_or(-1), text)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
