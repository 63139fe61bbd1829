//! What each client does with each answer, and without anybody to answer.

use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use bugeye::agent::gate::{Answer, Ask, Message, Point, Tap, Verdict};
use serde_json::{Value, json};

use crate::agents::{Agent, each};
use crate::desk::{Desk, Heard};
use crate::support::scripted::{LANGUAGES, Language, run_typescript};
use crate::support::{has, lacks, until};

fn bash(command: &str) -> Value {
    json!({ "name": "bash", "input": { "command": command } })
}

fn script(steps: &Value) -> Value {
    json!({ "turns": [{ "prompt": "begin", "steps": steps }] })
}

fn verdict(verdict: Verdict) -> Option<Answer> {
    Some(Answer { verdict, inject: Vec::new() })
}

fn inject(text: &str) -> Option<Answer> {
    let message = Message { role: "user".into(), text: text.into() };
    Some(Answer { verdict: Verdict::Proceed, inject: vec![message] })
}

fn is_bash(ask: &Ask, point: Point, word: &str) -> bool {
    ask.point == point && ask.value.to_string().contains(word)
}

#[test]
fn an_agent_goes_through_its_gates_and_tells_what_happens() {
    each(|language, transport| {
        let desk = Desk::open();
        let steps = json!([{ "text": "I look", "tools": [bash("echo one > one; echo said")] }, { "text": "bye" }]);
        let mut agent = Agent::start(language, transport, &desk, &script(&steps));
        let (code, text) = agent.wait();
        assert_eq!((code, text.as_str()), (0, "main: bye\n"), "{language:?} {transport}");
        assert_eq!(agent.file("one").unwrap(), "one\n");
        let asked = desk.asked();
        let points: Vec<Point> = asked.iter().map(|ask| ask.point).collect();
        use Point::{AfterTool, BeforeModel, BeforePrompt, BeforeStop, BeforeTool};
        assert_eq!(points, [BeforePrompt, BeforeModel, BeforeTool, AfterTool, BeforeModel, BeforeStop]);
        let (before, after) = (&asked[2], &asked[3]);
        assert_eq!(before.name.as_deref(), Some("bash"));
        assert_eq!(before.value, json!({ "command": "echo one > one; echo said" }));
        assert!(before.powers.hold && before.powers.edit && before.powers.inject);
        assert_eq!((after.value.as_str(), after.ok, &after.span), (Some("said\n"), Some(true), &before.span));
        assert_eq!(after.input.as_ref(), Some(&before.value));
        let conversation = asked[4].conversation.as_ref().unwrap();
        assert_eq!((conversation.model.as_deref(), conversation.messages.len()), (Some("scripted-1"), 3));
        assert_eq!(desk.told(), ["model.response", "model.response"]);
        let Heard::Attached(Tap::Sdk, about) = &desk.heard()[0] else { panic!("{:?}", desk.heard()) };
        has(about["agent"].as_str().unwrap(), &["scripted"]);
        assert!(about["pid"].is_u64() && about["cwd"].is_string(), "{about}");
    });
}

#[test]
fn a_tool_is_edited_denied_and_answered_in_its_place() {
    each(|language, transport| {
        let desk = Desk::new(|ask| match ask.point {
            Point::BeforePrompt => verdict(Verdict::Edit { value: json!("edited prompt") }),
            _ if is_bash(ask, Point::BeforeTool, "first") => {
                verdict(Verdict::Edit { value: json!({ "command": "echo changed > first" }) })
            }
            _ if is_bash(ask, Point::BeforeTool, "second") => {
                verdict(Verdict::Deny { reason: "[debugger] not that".into() })
            }
            _ if is_bash(ask, Point::BeforeTool, "third") => verdict(Verdict::Synthesize { value: json!("made up") }),
            _ if is_bash(ask, Point::AfterTool, "fourth") => verdict(Verdict::Edit { value: json!("replaced") }),
            _ => verdict(Verdict::Proceed),
        });
        let tools =
            [bash("echo > first"), bash("echo > second"), bash("echo > third"), bash("echo fourth | tee fourth")];
        let mut agent = Agent::start(language, transport, &desk, &script(&json!([{ "tools": tools }])));
        assert_eq!(agent.wait(), (0, "main: done\n".into()), "{language:?} {transport}");
        assert_eq!(agent.file("first").as_deref(), Some("changed\n"));
        assert_eq!((agent.file("second"), agent.file("third")), (None, None));
        assert_eq!(agent.file("fourth").as_deref(), Some("fourth\n"));
        let requests = agent.requests();
        assert_eq!(requests[0]["messages"][0]["content"], "edited prompt");
        let results = &requests[1]["messages"][2]["content"];
        let outputs: Vec<&Value> = (0..4).map(|at| &results[at]["output"]).collect();
        assert_eq!(outputs, ["", "[debugger] not that", "made up", "replaced"]);
        assert_eq!((&results[0]["error"], &results[1]["error"]), (&json!(false), &json!(true)));
    });
}

#[test]
fn messages_come_into_the_conversation_and_a_run_can_be_ended() {
    each(|language, transport| {
        let mut stops = 0;
        let desk = Desk::new(move |ask| match ask.point {
            Point::BeforeTool => inject("[debugger] at the tool"),
            Point::BeforeStop => {
                stops += 1;
                if stops == 1 {
                    inject("[debugger] one more thing")
                } else {
                    verdict(Verdict::Abort { reason: "[debugger] enough".into() })
                }
            }
            _ => verdict(Verdict::Proceed),
        });
        let mut agent = Agent::start(language, transport, &desk, &script(&json!([{ "tools": [bash("true")] }])));
        assert_eq!(agent.wait(), (3, "ended: [debugger] enough\n".into()), "{language:?} {transport}");
        let requests = agent.requests();
        let contents = |at: usize| requests[at]["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        assert_eq!((contents(1), contents(2)), (json!("[debugger] at the tool"), json!("[debugger] one more thing")));
        assert_eq!(requests.len(), 3);
    });
}

#[test]
fn a_model_call_is_answered_in_its_place() {
    each(|language, transport| {
        let desk = Desk::new(|ask| match ask.point {
            Point::BeforeModel => verdict(Verdict::Synthesize { value: json!("not the model") }),
            _ => verdict(Verdict::Proceed),
        });
        let mut agent = Agent::start(language, transport, &desk, &script(&json!([{ "tools": [bash("echo > x")] }])));
        assert_eq!(agent.wait(), (0, "main: not the model\n".into()), "{language:?} {transport}");
        assert_eq!((agent.file("x"), desk.told()), (None, Vec::<String>::new()));
    });
}

/// Its tool has not run while it is held; a debugger that goes lets it.
#[test]
fn what_is_held_does_not_happen_until_it_is_released_or_the_debugger_is_gone() {
    each(|language, transport| {
        for gone in [false, true] {
            let mut desk =
                Desk::new(|ask| if ask.point == Point::BeforeTool { None } else { verdict(Verdict::Proceed) });
            let steps = json!([{ "tools": [bash("echo > done")] }]);
            let mut agent = Agent::start(language, transport, &desk, &script(&steps));
            desk.holds(1);
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(agent.file("done"), None, "{language:?} {transport}");
            if gone {
                desk.leave();
            } else {
                desk.release(&Verdict::Proceed);
            }
            assert_eq!(agent.wait(), (0, "main: done\n".into()), "{language:?} {transport} {gone}");
            assert!(agent.file("done").is_some());
        }
    });
}

/// By files nothing closes when the debugger is killed: its process is looked for.
#[test]
fn a_debugger_that_was_killed_is_noticed_by_files() {
    for language in LANGUAGES {
        let desk = Desk::new(|ask| if ask.point == Point::BeforeTool { None } else { verdict(Verdict::Proceed) });
        let mut debugger = Command::new("sleep").arg("60").spawn().unwrap();
        let start = bugeye::platform::start_time(debugger.id());
        let said = json!({ "v": 1, "pid": debugger.id(), "start": start, "session": "test" });
        fs::write(desk.folder().join("debugger.json"), said.to_string()).unwrap();
        let mut agent = Agent::start(language, "files", &desk, &script(&json!([{ "tools": [bash("echo > done")] }])));
        desk.holds(1);
        debugger.kill().unwrap();
        // Ended, and not looked after by its parent: that counts as gone too.
        assert_eq!(agent.wait(), (0, "main: done\n".into()), "{language:?}");
        debugger.wait().unwrap();
        let held = desk.asked().into_iter().filter(|ask| ask.point == Point::BeforeTool).count();
        assert_eq!((held, agent.file("done").is_some()), (1, true));
    }
}

#[test]
fn without_a_debugger_an_agent_does_what_it_would_do() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let steps = script(&json!([{ "tools": [bash("echo > done")] }]));
    each(|language, transport| {
        let dead = vec![
            ("BUGEYE_AGENT_SOCKET".to_string(), nowhere("none.sock")),
            ("BUGEYE_AGENT_TOKEN".into(), "x".into()),
            ("BUGEYE_AGENT_DIR".into(), nowhere("none")),
        ];
        for variables in [Vec::new(), dead.clone()] {
            let mut agent = Agent::with(language, transport, &variables, &steps);
            assert_eq!(agent.wait(), (0, "main: done\n".into()), "{language:?} {transport}");
            assert!(agent.file("done").is_some());
        }
        let closed = ("BUGEYE_AGENT_FAIL".to_string(), "closed".to_string());
        // Nobody started it with a debugger: there is none to miss.
        let mut agent = Agent::with(language, transport, std::slice::from_ref(&closed), &steps);
        assert_eq!((agent.wait().0, agent.file("done").is_some()), (0, true), "{language:?} {transport}");
        let variables: Vec<_> = dead.into_iter().chain([closed]).collect();
        let mut agent = Agent::with(language, transport, &variables, &steps);
        agent.wait();
        assert_eq!(agent.file("done"), None, "{language:?} {transport}");
    });
}

#[test]
fn what_an_agent_asked_is_withdrawn_with_it() {
    each(|language, transport| {
        let desk = Desk::new(|ask| if ask.point == Point::BeforeTool { None } else { verdict(Verdict::Proceed) });
        let mut agent = Agent::start(language, transport, &desk, &script(&json!([{ "tools": [bash("echo > x")] }])));
        desk.holds(1);
        agent.kill();
        desk.holds(0);
        let Some(Heard::Withdrawn(id)) = desk.heard().pop() else { panic!("{:?}", desk.heard()) };
        let asked = desk.heard().into_iter().any(|heard| matches!(heard, Heard::Asked(of, _) if of == id));
        assert!(asked && agent.file("x").is_none(), "{language:?} {transport}");
    });
}

/// Answers to one that was there before are not taken for one's own, and what it left half written is no harm.
#[test]
fn an_agent_is_started_again_in_the_same_folder() {
    let desk = Desk::new(|ask| {
        if is_bash(ask, Point::BeforeTool, "again") {
            return verdict(Verdict::Deny { reason: "no".into() });
        }
        if ask.point == Point::BeforeTool { None } else { verdict(Verdict::Proceed) }
    });
    for language in LANGUAGES {
        let mut first = Agent::start(language, "files", &desk, &script(&json!([{ "tools": [bash("echo > first")] }])));
        desk.holds(1);
        first.kill();
        desk.holds(0);
        let events = desk.folder().join("events.jsonl");
        let mut file = fs::OpenOptions::new().append(true).open(events).unwrap();
        file.write_all(br#"{"type":"gate","id":"ha"#).unwrap();
        let mut second = Agent::start(language, "files", &desk, &script(&json!([{ "tools": [bash("echo > again")] }])));
        assert_eq!(second.wait(), (0, "main: done\n".into()), "{language:?}");
        assert_eq!(second.file("again"), None);
    }
    has(&fs::read_to_string(desk.folder().join("commands.jsonl")).unwrap(), &["the line is no JSON"]);
}

/// What anybody else writes there is no answer, and no reason to go on.
#[test]
fn nonsense_among_the_answers_is_passed_over() {
    for language in LANGUAGES {
        let desk = Desk::new(|ask| if ask.point == Point::BeforeTool { None } else { verdict(Verdict::Proceed) });
        let mut agent = Agent::start(language, "files", &desk, &script(&json!([{ "tools": [bash("echo > x")] }])));
        desk.holds(1);
        let commands = desk.folder().join("commands.jsonl");
        let mut file = fs::OpenOptions::new().append(true).open(commands).unwrap();
        file.write_all(b"nonsense\n[1]\nnull\n\xff\n{\"type\":\"answer\",\"id\":[1]}\n{\"type\":\"answer\"}\n")
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
        desk.release(&Verdict::Deny { reason: "no".into() });
        assert_eq!(agent.wait(), (0, "main: done\n".into()), "{language:?}");
        assert_eq!(agent.file("x"), None, "{language:?}");
    }
}

/// Two agents by one folder each get their own answers.
#[test]
fn several_agents_write_to_one_folder() {
    let desk = Desk::new(|ask| {
        let verdict = if is_bash(ask, Point::BeforeTool, "two") {
            Verdict::Deny { reason: "no".into() }
        } else {
            Verdict::Proceed
        };
        Some(Answer { verdict, inject: Vec::new() })
    });
    let mut agents: Vec<(Agent, &str)> = LANGUAGES
        .into_iter()
        .flat_map(|language| ["one", "two"].map(|name| (language, name)))
        .map(|(language, name)| {
            let tools: Vec<Value> = (0..10).map(|_| bash(&format!("echo x >> {name}"))).collect();
            (Agent::start(language, "files", &desk, &script(&json!([{ "tools": tools }]))), name)
        })
        .collect();
    for (agent, name) in &mut agents {
        assert_eq!(agent.wait(), (0, "main: done\n".into()));
        let lines = agent.file(name).map_or(0, |text| text.lines().count());
        assert_eq!(lines, if *name == "one" { 10 } else { 0 });
    }
}

/// More than a line may have is not asked about; the agent goes on, and that is told.
#[test]
fn what_is_too_long_to_be_asked_passes_and_is_told() {
    each(|language, transport| {
        let desk = Desk::open();
        let tools = [bash("head -c 17000000 /dev/zero | tr '\\0' x"), bash("echo small")];
        let mut agent = Agent::start(language, transport, &desk, &script(&json!([{ "tools": tools }])));
        let (code, text) = agent.wait();
        assert_eq!((code, text.as_str()), (0, "main: done\n"), "{language:?} {transport}");
        let after = desk.asked().into_iter().filter(|ask| ask.point == Point::AfterTool);
        let sizes: Vec<usize> = after.map(|ask| ask.value.as_str().unwrap().len()).collect();
        assert_eq!(sizes, ["small\n".len()], "{language:?} {transport}");
        assert!(desk.told().contains(&"log".to_string()), "{:?}", desk.told());
    });
}

#[test]
fn a_sub_agent_an_error_and_a_refusal_are_told() {
    let desk = Desk::open();
    let steps = json!([
        { "error": "overloaded" },
        { "tools": [
            { "name": "task", "input": { "prompt": "part", "steps": [{ "tools": [bash("echo > part")] }] } },
            { "name": "format_disk", "input": {} },
            bash("exit 7"),
        ] },
    ]);
    let mut agent = Agent::start(Language::Python, "socket", &desk, &script(&steps));
    let (code, text) = agent.wait();
    assert_eq!(code, 0, "{text}");
    has(&text, &["task-", "main: done"]);
    assert!(agent.file("part").is_some());
    let told = desk.told().join(" ");
    has(&told, &["model.error", "agent.spawn", "agent.exit", "tool.denied"]);
    let asked = desk.asked();
    let of_task = asked.iter().filter(|ask| ask.thread.starts_with("task-")).count();
    assert!(of_task >= 5, "{of_task}");
    let failed: Vec<&Ask> = asked.iter().filter(|ask| ask.ok == Some(false)).collect();
    assert_eq!((failed.len(), failed[0].input.as_ref().unwrap()), (1, &json!({ "command": "exit 7" })));
}

/// The page for authors shows agents that work.
#[test]
fn the_examples_of_the_page_are_programs() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/agent-bridge.md")).unwrap();
    let block = |start: &str| {
        let text = page.split(start).nth(1).unwrap_or_else(|| panic!("no {start}"));
        text.split("\n```").next().unwrap().to_string()
    };
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
    let desk = Desk::new(|ask| {
        let edited = Verdict::Edit { value: json!({ "command": "echo edited" }) };
        verdict(if ask.point == Point::BeforeTool { edited } else { Verdict::Proceed })
    });
    let folder = tempfile::tempdir().unwrap();
    let python = folder.path().join("agent.py");
    fs::write(&python, block("```python\n")).unwrap();
    let mut command = Command::new("python3");
    let done =
        command.arg(&python).env("PYTHONPATH", format!("{root}/python")).envs(desk.variables()).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    has(&text, &["edited"]);
    lacks(&text, &["hello"]);
    until("it was asked", || if desk.asked().len() >= 2 { Ok(()) } else { Err(format!("{:?}", desk.heard())) });
    let typescript = block("```typescript\n");
    has(&run_typescript(&typescript, &desk.variables()), &["edited"]);
}
