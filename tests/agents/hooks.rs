//! Real agents with the debugger's hooks: what each contract can do, measured at what the model is told next.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::Command;

use bugeye::agent::gate::{Answer, Ask, Point};
use bugeye::agent::launch::{self, Prepared, Wish};
use serde_json::json;

use crate::drivers::{Agent, CLAUDE, CODEX, COPILOT, GEMINI, OPENCODE};
use crate::model::{Model, Request, Turn};
use crate::support::{agents, has, lacks};
use crate::tap::{Hooks, TOKEN, abort, deny, edit, inject, once, synthesize};
use crate::{Went, World, went};

/// One run, with what the model and the debugger saw.
struct Run {
    world: World,
    model: Model,
    hooks: Hooks,
    prepared: Prepared,
    went: Went,
}

impl Agent {
    /// The model calls the shell once, with `command`, and then has no more to say.
    fn run(&self, command: &str, script: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Run {
        let turns = [Turn::call(self.shell, (self.input)(command)), Turn::text("All done."), Turn::text("Done again.")];
        self.run_with(Model::scripted(turns), self.words, script)
    }

    fn run_with(&self, model: Model, words: &[&str], script: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Run {
        self.run_in(World::new(), model, words, script)
    }

    fn run_in(
        &self,
        world: World,
        model: Model,
        words: &[&str],
        script: impl Fn(&Ask) -> Answer + Send + Sync + 'static,
    ) -> Run {
        (self.settings)(&world, &model);
        let folder = world.bug.home().join("private");
        fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
        let hooks = Hooks::start(&folder, script);
        let base = world.agent(self.name, &model);
        let mut env: BTreeMap<String, String> = base
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_str()?.into(), value?.to_str()?.into())))
            .collect();
        env.extend(self.env.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        // The upstream is the user's to name; the model tap of this test is the same server, at another path.
        env.insert("ANTHROPIC_BASE_URL".into(), model.url());
        env.insert("GOOGLE_GEMINI_BASE_URL".into(), model.url());
        env.insert("COPILOT_PROVIDER_BASE_URL".into(), model.url());
        let env: Vec<(String, String)> = env.into_iter().collect();
        let program = agents::program(self.name).display().to_string();
        let words: Vec<String> = std::iter::once(program).chain(words.iter().map(|word| (*word).into())).collect();
        let exe = PathBuf::from(env!("CARGO_BIN_EXE_bugeye"));
        let tap = format!("{}/s/tap", model.url());
        let wish = Wish {
            words: &words,
            env: &env,
            cwd: &world.project,
            exe: &exe,
            socket: &hooks.socket,
            token: TOKEN,
            folder: &folder,
            model: Some(&tap),
        };
        let prepared = launch::prepare(&wish).unwrap();
        assert_eq!(prepared.agent, self.name);
        let mut command = Command::new(&prepared.words[0]);
        command.args(&prepared.words[1..]).current_dir(&world.project).env_clear().envs(env).envs(&prepared.env);
        let went = went(command);
        eprintln!("{} in {:?}", self.name, went.took);
        Run { world, model, hooks, prepared, went }
    }
}

impl Run {
    /// Requests of the loop itself: they offer tools.
    fn requests(&self) -> Vec<Request> {
        self.model.requests().into_iter().filter(|request| !request.tools().is_empty()).collect()
    }

    #[track_caller]
    fn ended_well(&self) -> Vec<Request> {
        let requests = self.requests();
        let heard: Vec<_> = self.hooks.heard().asks.iter().map(|ask| ask.point).collect();
        assert_eq!(
            self.went.code,
            Some(0),
            "{}\nasked: {heard:?}\nothers: {:?}",
            self.went.output,
            self.model.others()
        );
        assert!(
            requests.iter().all(|request| request.path.starts_with("/s/tap/")),
            "past the tap: {:?}",
            requests[0].path
        );
        requests
    }

    fn points(&self) -> Vec<Point> {
        self.hooks.heard().asks.iter().map(|ask| ask.point).collect()
    }

    fn ask(&self, point: Point) -> Ask {
        let heard = self.hooks.heard();
        heard.asks.iter().find(|ask| ask.point == point).unwrap_or_else(|| panic!("no {point:?}")).clone()
    }

    fn kinds(&self) -> Vec<String> {
        self.hooks.heard().notes.iter().map(|note| note.kind.clone()).collect()
    }

    /// What the shell answered, as the model reads it.
    #[track_caller]
    fn answer(&self) -> String {
        let requests = self.ended_well();
        let last = requests.last().unwrap().answers();
        last.first().unwrap_or_else(|| panic!("no answer in {}", requests.last().unwrap().body)).text.clone()
    }
}

/// Nothing is done to it: it is asked at each point, and all is as without a debugger.
fn let_through(agent: &Agent, points: &[Point], kinds: &[&str]) {
    let run = agent.run("printf 'heard-%d' 42", |_| Answer::default());
    has(&run.answer(), &["heard-42"]);
    assert_eq!(run.points(), points, "{}", run.went.output);
    assert_eq!(run.requests().len(), 2);
    has(&run.went.output, &["All done."]);
    let before = run.ask(Point::BeforeTool);
    assert_eq!(before.value["command"], "printf 'heard-%d' 42", "{before:?}");
    let after = run.ask(Point::AfterTool);
    has(&after.value.to_string(), &["heard-42"]);
    assert_eq!((after.ok, after.thread.as_str(), &before.name), (Some(true), "main", &after.name));
    assert_eq!(before.span, after.span);
    let mut heard = run.kinds();
    if agent.name == "copilot" {
        // It calls the hook of the prompt beside that of its start.
        heard.sort_by_key(|kind| kinds.iter().position(|known| known == kind));
    }
    assert_eq!(heard, kinds);
    let attached = run.hooks.heard().attached.clone();
    assert_eq!(attached.len(), 1, "{attached:?}");
    assert_eq!(attached[0]["agent"], agent.name);
    assert_eq!(run.hooks.heard().withdrawn, 0);
    // Nothing of the user's has changed.
    assert!(!run.world.project.join(".claude").exists() && !run.world.home.join(".gemini/hooks").exists());
    drop(run.prepared);
}

/// The tool does not run, and the model reads why.
fn cancelled(agent: &Agent) {
    let run = agent.run("echo ran > ran.txt", once(Point::BeforeTool, deny("[debugger] not this one")));
    has(&run.answer(), &["[debugger] not this one"]);
    assert!(!run.world.project.join("ran.txt").exists());
    assert_eq!(run.requests().len(), 2, "it goes on");
}

/// Another command runs than the model asked for.
fn edited(agent: &Agent) {
    let script = |ask: &Ask| {
        if ask.point != Point::BeforeTool {
            return Answer::default();
        }
        let mut value = ask.value.clone();
        value["command"] = json!("echo edited > edited.txt; printf 'edited-%d' 42");
        edit(value)
    };
    let run = agent.run("echo ran > ran.txt", script);
    has(&run.answer(), &["edited-42"]);
    assert!(!run.world.project.join("ran.txt").exists() && run.world.project.join("edited.txt").exists());
}

/// The model reads another output than there was.
fn replaced(agent: &Agent) {
    let run = agent.run("echo the-real-output", once(Point::AfterTool, edit(json!("another-output"))));
    let answer = run.answer();
    has(&answer, &["another-output"]);
    lacks(&answer, &["the-real-output"]);
}

/// A message is in the request that follows.
fn injected(agent: &Agent, point: Point, request: usize) {
    let run = agent.run("echo hello", once(point, inject("[debugger] look at the tests first")));
    let requests = run.ended_well();
    let with: Vec<bool> =
        requests.iter().map(|request| request.text().contains("[debugger] look at the tests first")).collect();
    assert_eq!(with.iter().position(|with| *with), Some(request), "{point:?}: {with:?}");
    eprintln!("{} {point:?}: in requests {with:?}", agent.name);
}

/// A turn that would end goes on with a message.
fn goes_on(agent: &Agent) {
    let run = agent.run("echo hello", once(Point::BeforeStop, inject("[debugger] and now the other half")));
    let requests = run.ended_well();
    assert_eq!(requests.len(), 3);
    has(&requests[2].text(), &["[debugger] and now the other half"]);
    has(&run.went.output, &["Done again."]);
    // It is the same turn. Gemini CLI begins another with the message.
    let prompts = run.points().iter().filter(|point| **point == BeforePrompt).count();
    assert_eq!(prompts, if agent.name == "gemini" { 2 } else { 1 }, "{}", agent.name);
}

/// No model call follows.
fn halted(agent: &Agent, point: Point, requests: usize) {
    let run = agent.run("echo ran > ran.txt", once(point, abort("[debugger] that is enough")));
    assert_eq!(run.requests().len(), requests, "{}", run.went.output);
    let ran = run.world.project.join("ran.txt").exists();
    assert_eq!(ran, point == Point::AfterTool, "{}", run.went.output);
    eprintln!("{} {point:?}: exit {:?}, {:?}", agent.name, run.went.code, run.went.output);
}

use Point::{AfterTool, BeforeModel, BeforePrompt, BeforeStop, BeforeTool};

/// A user's own settings stay in force.
#[test]
fn plugins_and_hooks_of_the_user_s_stay_with_ours() {
    for agent in [&COPILOT, &OPENCODE] {
        let run = agent.run("echo hello", |_| Answer::default());
        run.ended_well();
        assert!(run.world.project.join("mine.txt").exists());
        assert!(run.points().contains(&BeforeTool));
    }
}

#[test]
fn claude_code_is_asked_at_each_point() {
    let points = [BeforePrompt, BeforeModel, BeforeTool, AfterTool, BeforeModel, BeforeStop];
    let_through(&CLAUDE, &points, &["session.start", "input.user", "session.end"]);
}

#[test]
fn codex_is_asked_at_each_point() {
    let points = [BeforePrompt, BeforeModel, BeforeTool, AfterTool, BeforeModel, BeforeStop];
    let_through(&CODEX, &points, &["session.start", "input.user", "session.end"]);
}

/// It has no hook before its model calls.
#[test]
fn copilot_is_asked_at_each_point() {
    let points = [BeforePrompt, BeforeTool, AfterTool, BeforeStop];
    let_through(&COPILOT, &points, &["session.start", "input.user", "session.end"]);
}

#[test]
fn gemini_cli_is_asked_at_each_point() {
    let points = [BeforePrompt, BeforeModel, BeforeTool, AfterTool, BeforeModel, BeforeStop];
    let_through(&GEMINI, &points, &["session.start", "input.user", "session.end"]);
}

#[test]
fn opencode_is_asked_at_each_point() {
    let points = [BeforePrompt, BeforeModel, BeforeTool, AfterTool, BeforeModel];
    let_through(&OPENCODE, &points, &["session.start", "input.user", "session.end"]);
}

#[test]
fn a_tool_is_cancelled_and_the_model_reads_why() {
    for agent in [&CLAUDE, &CODEX, &COPILOT, &GEMINI, &OPENCODE] {
        cancelled(agent);
    }
}

#[test]
fn an_edited_command_runs_in_the_place_of_the_model_s() {
    for agent in [&CLAUDE, &CODEX, &COPILOT, &GEMINI, &OPENCODE] {
        edited(agent);
    }
}

#[test]
fn an_output_is_replaced() {
    for agent in [&CLAUDE, &CODEX, &COPILOT, &GEMINI, &OPENCODE] {
        replaced(agent);
    }
}

#[test]
fn a_message_is_put_in_after_a_tool() {
    for agent in [&CLAUDE, &CODEX, &COPILOT, &GEMINI, &OPENCODE] {
        injected(agent, AfterTool, 1);
    }
}

#[test]
fn a_message_is_put_in_before_a_model_call() {
    for agent in [&CLAUDE, &GEMINI, &OPENCODE] {
        injected(agent, BeforeModel, 0);
    }
}

#[test]
fn a_message_goes_with_the_prompt() {
    for agent in [&CLAUDE, &CODEX, &COPILOT, &GEMINI, &OPENCODE] {
        injected(agent, BeforePrompt, 0);
    }
}

#[test]
fn a_turn_that_would_end_goes_on_with_a_message() {
    for agent in [&CLAUDE, &CODEX, &COPILOT, &GEMINI] {
        goes_on(agent);
    }
}

#[test]
fn a_run_is_ended_before_a_tool() {
    for agent in [&CLAUDE, &GEMINI, &OPENCODE] {
        halted(agent, BeforeTool, 1);
    }
}

#[test]
fn a_run_is_ended_before_its_first_model_call() {
    for agent in [&CLAUDE, &CODEX, &COPILOT, &GEMINI, &OPENCODE] {
        halted(agent, BeforePrompt, 0);
    }
}

#[test]
fn a_run_is_ended_after_a_tool() {
    for agent in [&CLAUDE, &GEMINI, &OPENCODE] {
        halted(agent, AfterTool, 1);
    }
}

#[test]
fn gemini_cli_takes_an_answer_in_the_model_s_place() {
    let run = GEMINI.run("echo hello", once(BeforeModel, synthesize(json!("Said by the debugger."))));
    assert!(run.requests().is_empty(), "the model was not asked");
    has(&run.went.output, &["Said by the debugger."]);
}

#[test]
fn copilot_takes_another_prompt() {
    let run = COPILOT.run("echo hello", once(BeforePrompt, edit(json!("Say good-bye."))));
    let text = run.ended_well()[0].text();
    has(&text, &["Say good-bye."]);
    lacks(&text, &["Say hello."]);
}

/// Codex has no such power: what a hook says there is not heard, and so it is not said.
#[test]
fn codex_is_told_nothing_where_it_does_not_listen() {
    for answer in [abort("[debugger] stop"), inject("[debugger] no"), deny("[debugger] no")] {
        let run = CODEX.run("echo hello", once(BeforeModel, answer));
        assert_eq!(run.ended_well().len(), 2);
        lacks(&run.requests()[1].text(), &["[debugger]"]);
    }
}

#[test]
fn where_a_run_can_not_be_ended_the_tool_is_refused() {
    for agent in [&CODEX, &COPILOT] {
        let run = agent.run("echo ran > ran.txt", once(BeforeTool, abort("[debugger] that is enough")));
        has(&run.answer(), &["[debugger] that is enough"]);
        assert!(!run.world.project.join("ran.txt").exists());
    }
}

/// Whether a tool may run stays the user's to say.
#[test]
fn an_edit_gives_no_permission() {
    for (agent, said) in [(&CLAUDE, "needs approval"), (&COPILOT, "Permission denied")] {
        let turns = [Turn::call(agent.shell, (agent.input)("echo ran > ran.txt")), Turn::text("All done.")];
        let same = |ask: &Ask| if ask.point == BeforeTool { edit(ask.value.clone()) } else { Answer::default() };
        let run = agent.run_with(Model::scripted(turns), &["-p", "Say hello."], same);
        has(&run.answer(), &[said]);
        assert!(!run.world.project.join("ran.txt").exists());
        assert!(run.kinds().contains(&"permission.request".to_string()), "{:?}", run.kinds());
    }
}

/// Settings on the command line, as a text and as a file, keep their hooks and all else.
#[test]
fn claude_code_s_own_settings_stay_with_ours() {
    let hook = json!({"hooks": [{"type": "command", "command": "cat > mine.txt"}]});
    let settings = json!({"hooks": {"PreToolUse": [hook]}, "permissions": {"allow": ["Bash(echo:*)"]}}).to_string();
    for as_file in [false, true] {
        let world = World::new();
        let value = if as_file { world.bug.write("mine.json", &settings) } else { settings.clone() };
        let turns = [Turn::call("Bash", (CLAUDE.input)("echo hello > hello.txt")), Turn::text("All done.")];
        let words = ["-p", "Say hello.", "--settings", &value];
        let run = CLAUDE.run_in(world, Model::scripted(turns), &words, |_| Answer::default());
        run.ended_well();
        assert!(run.points().contains(&BeforeTool));
        assert!(run.world.project.join("mine.txt").exists(), "{}", run.went.output);
        assert_eq!(run.prepared.words.iter().filter(|word| *word == "--settings").count(), 1);
        assert!(run.prepared.notes.is_empty(), "{:?}", run.prepared.notes);
    }
}

/// Hooks of a project that nobody has looked at stay off; ours run.
#[test]
fn codex_trusts_no_hooks_but_ours() {
    let world = World::new();
    fs::create_dir_all(world.project.join(".codex")).unwrap();
    let hook = json!({"type": "command", "command": "touch theirs.txt"});
    let hooks = json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}});
    fs::write(world.project.join(".codex/hooks.json"), hooks.to_string()).unwrap();
    let turns = [Turn::call(CODEX.shell, (CODEX.input)("echo hello")), Turn::text("All done.")];
    let trusted = format!("projects={{{:?}={{trust_level=\"trusted\"}}}}", world.project);
    let words = ["-c", &trusted, "exec", "--skip-git-repo-check", "Say hello."];
    let run = CODEX.run_in(world, Model::scripted(turns), &words, |_| Answer::default());
    run.ended_well();
    assert!(run.points().contains(&BeforeTool), "{}", run.went.output);
    assert!(!run.world.project.join("theirs.txt").exists());
    // It is a hook that would run, were it trusted.
    let world = World::new();
    fs::create_dir_all(world.project.join(".codex")).unwrap();
    fs::write(world.project.join(".codex/hooks.json"), hooks.to_string()).unwrap();
    let turns = [Turn::call(CODEX.shell, (CODEX.input)("echo hello")), Turn::text("All done.")];
    let trusted = format!("projects={{{:?}={{trust_level=\"trusted\"}}}}", world.project);
    let words = ["--dangerously-bypass-hook-trust", "-c", &trusted, "exec", "--skip-git-repo-check", "Say hello."];
    let run = CODEX.run_in(world, Model::scripted(turns), &words, |_| Answer::default());
    assert!(run.world.project.join("theirs.txt").exists(), "{}", run.went.output);
}

/// With the provider that it has by itself, and a key of the user's.
#[test]
fn codex_asks_its_own_provider_through_the_tap() {
    const BY_KEY: Agent = Agent {
        settings: |world, model| {
            (CODEX.settings)(world, model);
            let file = world.home.join(".codex/config.toml");
            let text = fs::read_to_string(&file).unwrap().replace("model_provider = \"test\"", "");
            fs::write(file, text).unwrap();
            fs::write(world.home.join(".codex/auth.json"), r#"{"OPENAI_API_KEY": "none"}"#).unwrap();
        },
        ..CODEX
    };
    let run = BY_KEY.run("echo hello", |_| Answer::default());
    let requests = run.ended_well();
    assert_eq!(requests[0].path, "/s/tap/openai/responses");
    assert_eq!(run.prepared.upstreams["openai"], "https://api.openai.com/v1");
    assert_eq!(requests[0].header("authorization"), Some("Bearer none"));
}

/// Two tools at once are two questions, and one before the model is asked again.
#[test]
fn tools_at_once_are_asked_about_each() {
    for agent in [&CLAUDE, &CODEX, &COPILOT, &GEMINI, &OPENCODE] {
        let call =
            |name: &str| crate::model::Call { tool: agent.shell.into(), input: (agent.input)(&format!("echo {name}")) };
        let model = Model::scripted([Turn::Calls(vec![call("one"), call("two")]), Turn::text("All done.")]);
        let second = |ask: &Ask| {
            let is_second = ask.point == BeforeTool && ask.value["command"] == "echo two";
            if is_second { deny("[debugger] not the second") } else { Answer::default() }
        };
        let run = agent.run_with(model, agent.words, second);
        let answers = run.ended_well()[1].answers();
        assert_eq!(answers.len(), 2, "{answers:?}");
        // In the order in which they came to be.
        let refused = answers.iter().filter(|answer| answer.text.contains("[debugger] not the second")).count();
        let ran = answers.iter().filter(|answer| answer.text.contains("one")).count();
        assert_eq!((refused, ran), (1, 1), "{answers:?}");
        let count = |point| run.points().iter().filter(|asked| **asked == point).count();
        let before_model = if agent.name == "copilot" { 0 } else { 2 };
        assert_eq!((count(BeforeTool), count(BeforeModel)), (2, before_model), "{}: {:?}", agent.name, run.points());
    }
}

/// A sub-agent is a thread of its own.
#[test]
fn a_sub_agent_is_another_thread() {
    let claude = json!({"description": "a test", "prompt": "Say hello.", "subagent_type": "general-purpose"});
    let opencode = json!({"description": "a test", "prompt": "Say hello.", "subagent_type": "general"});
    let copilot = json!({"description": "a test", "prompt": "Say hello.", "agent_type": "general-purpose", "name": "one",
        "mode": "sync"});
    for (agent, tool, input) in [(&CLAUDE, "Agent", claude), (&COPILOT, "task", copilot), (&OPENCODE, "task", opencode)]
    {
        let kind = input.get("subagent_type").unwrap_or(&input["agent_type"]).clone();
        let turns = [
            Turn::call(tool, input),
            Turn::call(agent.shell, (agent.input)("echo from-below")),
            Turn::text("The sub-agent is done."),
            Turn::text("All done."),
        ];
        let run = agent.run_with(Model::scripted(turns), agent.words, |_| Answer::default());
        run.ended_well();
        let heard = run.hooks.heard();
        let shell =
            heard.asks.iter().find(|ask| ask.value["command"] == "echo from-below").expect("the sub-agent's call");
        assert_ne!(shell.thread, "main");
        let outer = heard.asks.iter().find(|ask| ask.point == BeforeTool).unwrap();
        assert_eq!(outer.thread, "main");
        let kinds: Vec<(&str, &str)> =
            heard.notes.iter().map(|note| (note.kind.as_str(), note.thread.as_str())).collect();
        assert!(kinds.contains(&("agent.spawn", &shell.thread)), "{kinds:?}");
        assert!(kinds.contains(&("agent.exit", &shell.thread)), "{kinds:?}");
        let spawned = heard.notes.iter().find(|note| note.kind == "agent.spawn").unwrap();
        assert_eq!(spawned.data["type"], kind, "{}", spawned.data);
    }
}

/// It waits as long as it is held, at each place where it can be.
#[test]
fn an_agent_waits_while_it_is_held() {
    for agent in [&CLAUDE, &CODEX, &COPILOT, &GEMINI, &OPENCODE] {
        for point in [if agent.name == "copilot" { BeforePrompt } else { BeforeModel }, BeforeTool] {
            let held = std::sync::Mutex::new(None);
            let hold = move |ask: &Ask| {
                let mut held = held.lock().unwrap();
                if ask.point == point && held.is_none() {
                    *held = Some(());
                    std::thread::sleep(std::time::Duration::from_secs(3));
                }
                Answer::default()
            };
            let run = agent.run("echo hello", hold);
            assert_eq!(run.ended_well().len(), 2);
            assert!(run.went.took.as_secs() >= 3, "{} {point:?}: {:?}", agent.name, run.went.took);
        }
    }
}
