//! Real agents at a terminal, typed to by somebody who sits before it, and debugged from elsewhere.

use rustix::termios::tcgetattr;

use super::*;
use crate::support::terminal::Terminal;

/// How somebody sits before an agent.
struct Seat {
    agent: &'static Agent,
    words: &'static [&'static str],
    /// What they have answered when it was new.
    known: fn(&Desk),
    /// What is seen once it can be typed to.
    ready: &'static str,
    /// What begins another conversation.
    anew: &'static str,
    /// What ends it.
    leave: &'static str,
}

impl Seat {
    /// The agent has the terminal of its user, who types; its debugger holds and edits it; it ends by its own keys.
    fn taken(&self) {
        let call = |command: &str| Turn::call(self.agent.shell, (self.agent.input)(command));
        let done = || Turn::text("All done.");
        let desk =
            Desk::played(self.agent, vec![call("echo one > one.txt"), done(), call("echo two > two.txt"), done()]);
        (self.known)(&desk);
        let program = agents::program(self.agent.name).display().to_string();
        let place = format!("tool:{}", tool(self.agent));
        let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
        command.args(["run", "--agent", "--terminal", "--break", &place, "--", &program]).args(self.words);
        command.current_dir(&desk.world.project).env_clear().envs(&desk.env).env("TERM", "xterm-256color");
        let mut terminal = Terminal::new(command, Some(100));
        let modes = format!("{:?}", tcgetattr(&terminal.device).unwrap());
        terminal.sees("this terminal is the agent's until it ends");
        terminal.sees(self.ready);
        std::thread::sleep(A_WHILE);
        enter(&mut terminal, "Say hello.");
        let stop = desk.ok(&["await", "--wait", "80s"]);
        has(&stop, &["stopped: breakpoint 1 (hit 1)", "echo one > one.txt"]);
        assert_ne!(format!("{:?}", tcgetattr(&terminal.device).unwrap()), modes, "its keys are its own");
        desk.ok(&["set", "tool_input.command", "echo edited > edited.txt"]);
        desk.ok(&["continue", "--wait", "0"]);
        // Words are drawn apart; what was answered is known at the model.
        until("the model is told of it", || match desk.requests().len() {
            2 => Ok(()),
            _ => Err(terminal.screen()),
        });
        assert!(desk.left_behind("edited.txt") && !desk.left_behind("one.txt"));
        std::thread::sleep(A_WHILE);
        // Another conversation is the same agent's, which knows nothing of the first.
        for text in [self.anew, "Say more."] {
            enter(&mut terminal, text);
            std::thread::sleep(A_WHILE);
        }
        has(&desk.ok(&["await", "--wait", "80s"]), &["stopped: breakpoint 1 (hit 2)", "echo two > two.txt"]);
        assert_eq!(desk.json(&["threads"])["threads"].as_array().map(Vec::len), Some(1));
        let count = desk.json(&["inspect", "messages"])["value"]["count"].as_u64().unwrap();
        let known = (0..count).flat_map(|at| desk.said(at)).collect::<Vec<_>>().join("\n");
        has(&known, &["Say more."]);
        lacks(&known, &["Say hello."]);
        desk.ok(&["continue", "--wait", "0"]);
        until("the model is told of it", || match desk.requests().len() {
            4 => Ok(()),
            _ => Err(terminal.screen()),
        });
        std::thread::sleep(A_WHILE);
        enter(&mut terminal, self.leave);
        assert_eq!(terminal.ends(), Some(0));
        terminal.sees("exited: code 0 [s1 via agent]");
        assert_eq!(format!("{:?}", tcgetattr(&terminal.device).unwrap()), modes, "the terminal is as it was");
        desk.world.nothing_is_left();
    }
}

/// Types a line; what comes at once with its end would be a paste.
fn enter(terminal: &mut Terminal, text: &str) {
    terminal.types_and_sees(text);
    std::thread::sleep(A_WHILE / 2);
    terminal.types("\r");
}

#[test]
fn claude_code() {
    let known = |desk: &Desk| {
        let project = desk.world.project.to_str().unwrap();
        let known = json!({"hasCompletedOnboarding": true, "theme": "dark",
            "customApiKeyResponses": {"approved": ["none"], "rejected": []},
            "projects": {project: {"hasTrustDialogAccepted": true}}});
        fs::write(desk.world.home.join(".claude.json"), known.to_string()).unwrap();
    };
    let words = &["--allowedTools", "Bash"];
    Seat { agent: &CLAUDE, words, known, ready: "❯", anew: "/clear", leave: "/exit" }.taken();
}

#[test]
fn codex() {
    let known = |desk: &Desk| {
        let path = desk.world.home.join(".codex/config.toml");
        let trusted = format!("[projects.{:?}]\ntrust_level = \"trusted\"\n", desk.world.project);
        fs::write(&path, fs::read_to_string(&path).unwrap() + &trusted).unwrap();
    };
    Seat { agent: &CODEX, words: &[], known, ready: "›", anew: "/new", leave: "/quit" }.taken();
}

#[test]
fn copilot() {
    let known = |desk: &Desk| {
        let known = json!({"trustedFolders": [desk.world.project]});
        fs::write(desk.world.home.join(".copilot/config.json"), known.to_string()).unwrap();
    };
    let words = &["--allow-all-tools"];
    Seat { agent: &COPILOT, words, known, ready: "❯", anew: "/clear", leave: "/exit" }.taken();
}

#[test]
fn gemini_cli() {
    let known = |desk: &Desk| {
        let settings = json!({"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false},
            "security": {"auth": {"selectedType": "gemini-api-key"}}});
        fs::write(desk.world.home.join(".gemini/settings.json"), settings.to_string()).unwrap();
    };
    let words = &["-m", "gemini-2.5-pro", "--approval-mode", "yolo"];
    Seat { agent: &GEMINI, words, known, ready: "Type your message", anew: "/clear", leave: "/quit" }.taken();
}

#[test]
fn opencode() {
    let words = &["--model", "test/none"];
    Seat { agent: &OPENCODE, words, known: |_| {}, ready: "Ask anything", anew: "/new", leave: "/exit" }.taken();
}
