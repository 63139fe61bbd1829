//! `daemon`: a look at the background process, and its start and end by hand.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Group, Local};
use crate::cli::LocalContext;
use crate::client;
use crate::config::Config;
use crate::failure::Failure;
use crate::log;
use crate::paths::Paths;
use crate::render::{Page, Render, quoted};

/// Start, stop or look at the background daemon; it starts by itself and ends itself when idle.
#[derive(Debug, Args, Serialize, Deserialize, JsonSchema)]
pub struct Daemon {
    /// What to do.
    #[arg(value_enum)]
    pub action: Action,
    /// How many lines `log` shows.
    #[arg(long, short = 'n', default_value_t = 40)]
    #[serde(default = "forty")]
    pub lines: usize,
}

fn forty() -> usize {
    40
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Start it now.
    Start,
    /// End it, and every session it holds.
    Stop,
    /// Whether it runs, and with how many sessions.
    Status,
    /// The end of its log.
    Log,
}

/// What the daemon is up to.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub running: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
    /// Live sessions; after `stop`, those that were ended.
    pub sessions: usize,
    /// What was done, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<String>,
    pub socket: String,
    pub log: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<String>>,
}

impl Local for Daemon {
    const NAME: &'static str = "daemon";
    const GROUP: Group = Group::Around;
    type Output = Report;

    fn run(self, cx: &LocalContext) -> Result<Report, Failure> {
        let mut report = Report {
            socket: cx.paths.socket().display().to_string(),
            log: cx.paths.log().display().to_string(),
            ..Report::default()
        };
        match self.action {
            Action::Log => {
                // One that does not answer may have said why.
                if let Ok(Some(connection)) = client::connect(&cx.paths) {
                    report.describe(&connection.daemon);
                }
                report.lines = Some(log::tail(Path::new(&report.log), self.lines));
            }
            Action::Status => {
                if let Some(connection) = client::find(&cx.paths)? {
                    report.describe(&connection.daemon);
                }
            }
            Action::Start => {
                // A daemon does not start with settings it can't read: say so here, not through its log.
                Config::load(&cx.paths)?;
                let before = client::connect(&cx.paths)?.map(|connection| connection.daemon.pid);
                let connection = client::connect_or_start(&cx.paths)?;
                report.describe(&connection.daemon);
                let news = if before == report.pid { "was running already" } else { "started" };
                report.done = Some(news.to_string());
            }
            Action::Stop => {
                let Some(mut connection) = client::find(&cx.paths)? else {
                    report.done = Some("was not running".to_string());
                    return Ok(report);
                };
                report.pid = Some(connection.daemon.pid);
                report.sessions = connection.shut_down()?;
                report.done = Some("stopped".to_string());
                // Stopped means that it is gone: the lock is the last thing a daemon lets go of.
                let deadline = Instant::now() + Duration::from_secs(2);
                while client::is_claimed(&cx.paths) && Instant::now() < deadline {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        }
        Ok(report)
    }
}

impl Report {
    fn describe(&mut self, daemon: &client::Hello) {
        self.running = true;
        self.pid = Some(daemon.pid);
        self.version = Some(daemon.version.clone());
        self.protocol = Some(daemon.protocol);
        self.sessions = daemon.sessions;
        if let Some(state) = &daemon.state {
            self.log = Paths::log_in(state).display().to_string();
        }
    }
}

impl Render for Report {
    fn render(&self, page: &mut Page) {
        if let Some(lines) = &self.lines {
            for line in lines {
                page.line(quoted(line));
            }
            if lines.is_empty() {
                page.line(format!("nothing logged yet in {}", self.log));
            }
            return;
        }
        let pid = self.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        let sessions = match self.sessions {
            0 => "no sessions".to_string(),
            1 => "1 session".to_string(),
            many => format!("{many} sessions"),
        };
        match (&self.done, self.running) {
            (Some(done), false) if self.sessions > 0 => page.line(format!("daemon{pid} {done}; {sessions} ended")),
            (Some(done), _) => page.line(format!("daemon{pid} {done}")),
            (None, false) => page.line("no daemon is running; the first command that needs one starts it"),
            (None, true) => {
                let version = self.version.as_deref().unwrap_or("?");
                page.line(format!("daemon{pid} running, version {}, {sessions}", quoted(version)));
            }
        }
        if self.running {
            page.line(format!("socket {}", self.socket));
            page.line(format!("log    {}", self.log));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(report: &Report) -> String {
        let mut page = Page::new("/".into());
        report.render(&mut page);
        page.into_text()
    }

    #[test]
    fn each_report_reads_as_one_sentence() {
        let mut report = Report { socket: "/s".into(), log: "/l".into(), ..Report::default() };
        assert!(shown(&report).starts_with("no daemon is running"));
        report.done = Some("was not running".into());
        assert_eq!(shown(&report), "daemon was not running\n");
        (report.pid, report.sessions, report.done) = (Some(7), 2, Some("stopped".into()));
        assert_eq!(shown(&report), "daemon (pid 7) stopped; 2 sessions ended\n");
        report.done = None;
        report.running = true;
        report.version = Some("1.2".into());
        assert_eq!(shown(&report), "daemon (pid 7) running, version 1.2, 2 sessions\nsocket /s\nlog    /l\n");
    }
}
