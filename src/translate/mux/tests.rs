//! Scripts of messages: what a client and several adapters say, and what becomes of it.

use serde_json::{Value, json};

use super::joined::{Act, Joined, ROOT, Timer};
use crate::dap::Message;

/// A client, a program and its children, with everything that was said to them.
struct Stage {
    joined: Joined,
    acts: Vec<Act>,
    seq: i64,
}

impl Stage {
    fn new() -> Self {
        Self { joined: Joined::new(), acts: Vec::new(), seq: 0 }
    }

    /// A program that runs, with one breakpoint, and one child that is taken up.
    fn with_children(count: usize) -> Self {
        let mut stage = Self::new();
        stage.client("initialize", json!({ "adapterID": "x" }));
        stage.client("launch", json!({ "program": "a.py" }));
        stage.client("evaluate", json!({ "expression": "prelude", "context": "repl" }));
        let seq = stage.client("setBreakpoints", breakpoints());
        stage.answer(ROOT, seq, json!({ "breakpoints": [{ "id": 1, "verified": true }] }));
        stage.client("configurationDone", json!({}));
        for child in 1..=count {
            stage.take_up(child);
        }
        stage.acts.clear();
        stage
    }

    fn take_up(&mut self, child: usize) {
        let configuration = json!({ "connect": { "host": "127.0.0.1", "port": 7 }, "subProcessId": 100 + child });
        let arguments = json!({ "request": "attach", "configuration": configuration });
        let acts =
            self.joined.process_says(ROOT, Message::Request { seq: 50, command: "startDebugging".into(), arguments });
        self.acts.extend(acts);
        let acts = self.joined.connected(child);
        self.acts.extend(acts);
        self.answer_all(child, &json!({}));
        self.event(child, "initialized", Value::Null);
        self.answer_all(child, &json!({ "breakpoints": [{ "id": 70 + child, "verified": true }] }));
    }

    fn client(&mut self, command: &str, arguments: Value) -> i64 {
        self.seq += 1;
        let acts = self.joined.client_says(Message::Request { seq: self.seq, command: command.into(), arguments });
        self.acts.extend(acts);
        self.seq
    }

    fn event(&mut self, process: usize, event: &str, body: Value) {
        let acts = self.joined.process_says(process, Message::Event { event: event.into(), body });
        self.acts.extend(acts);
    }

    fn answer(&mut self, process: usize, request_seq: i64, body: Value) {
        let message = Message::Response { request_seq, command: "x".into(), success: true, message: None, body };
        let acts = self.joined.process_says(process, message);
        self.acts.extend(acts);
    }

    /// Answers everything that a process was asked so far.
    fn answer_all(&mut self, process: usize, body: &Value) {
        for (seq, _) in self.asked(process) {
            self.answer(process, seq, body.clone());
        }
    }

    /// What a process was asked since this was last looked at.
    fn asked(&mut self, process: usize) -> Vec<(i64, String)> {
        let mut asked = Vec::new();
        self.acts.retain(|act| match act {
            Act::Process(to, Message::Request { seq, command, arguments }) if *to == process => {
                let thread = arguments.get("threadId").map(|thread| format!(" {thread}")).unwrap_or_default();
                asked.push((*seq, format!("{command}{thread}")));
                false
            }
            _ => true,
        });
        asked
    }

    fn words(&mut self, process: usize) -> Vec<String> {
        self.asked(process).into_iter().map(|(_, words)| words).collect()
    }

    /// The events that the client was told since this was last looked at, with their threads.
    fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        self.acts.retain(|act| match act {
            Act::Client(Message::Event { event, body }) => {
                let thread = body.get("threadId").map(|thread| format!(" {thread}")).unwrap_or_default();
                told.push(format!("{event}{thread}"));
                false
            }
            _ => true,
        });
        told
    }

    fn stop(&mut self, process: usize, reason: &str) {
        let body =
            json!({ "reason": reason, "threadId": 1, "allThreadsStopped": true, "hitBreakpointIds": [70 + process] });
        self.event(process, "stopped", body);
    }
}

fn breakpoints() -> Value {
    json!({ "source": { "path": "/a.py" }, "breakpoints": [{ "line": 3 }] })
}

#[test]
fn without_children_everything_passes_as_it_came() {
    let mut stage = Stage::new();
    let messages = [
        ("launch", json!({ "program": "a.py" })),
        ("threads", Value::Null),
        ("stackTrace", json!({ "threadId": 9 })),
        ("evaluate", json!({ "expression": "i", "frameId": 4 })),
        ("variables", json!({ "variablesReference": 5 })),
    ];
    for (command, arguments) in messages {
        let seq = stage.client(command, arguments.clone());
        let request = Message::Request { seq, command: command.into(), arguments };
        assert_eq!(stage.acts, [Act::Process(ROOT, request)]);
        stage.acts.clear();
        let body = json!({ "variablesReference": 5, "stackFrames": [{ "id": 4 }] });
        stage.answer(ROOT, seq, body.clone());
        let answer = Message::Response { request_seq: seq, command: "x".into(), success: true, message: None, body };
        assert_eq!(stage.acts, [Act::Client(answer)]);
        stage.acts.clear();
    }
    let request = Message::Request { seq: 3, command: "runInTerminal".into(), arguments: json!({ "args": ["x"] }) };
    assert_eq!(stage.joined.process_says(ROOT, request.clone()), [Act::Client(request)]);
}

#[test]
fn a_child_gets_what_the_program_got() {
    let mut stage = Stage::with_children(0);
    stage.acts.clear();
    let configuration = json!({ "connect": { "port": 7 }, "subProcessId": 101, "stopOnEntry": true });
    let arguments = json!({ "request": "attach", "configuration": configuration });
    let message = Message::Request { seq: 50, command: "startDebugging".into(), arguments };
    let acts = stage.joined.process_says(ROOT, message);
    assert!(matches!(&acts[0], Act::Process(ROOT, Message::Response { success: true, .. })), "{acts:?}");
    assert_eq!(acts[1], Act::Connect(1, Some(("127.0.0.1".into(), 7))));

    let acts = stage.joined.connected(1);
    let [Act::Process(1, Message::Request { seq, command, arguments })] = &acts[..] else { panic!("{acts:?}") };
    assert_eq!((command.as_str(), &arguments["adapterID"]), ("initialize", &json!("x")));
    stage.answer(1, *seq, json!({}));
    let [Act::Process(1, Message::Request { arguments, .. })] = &stage.acts[..] else { panic!("{:?}", stage.acts) };
    assert_eq!((&arguments["subProcessId"], &arguments["stopOnEntry"]), (&json!(101), &json!(false)));
    assert_eq!(stage.words(1), ["attach"]);
    // Some say it twice.
    for _ in 0..2 {
        stage.event(1, "initialized", Value::Null);
    }
    assert_eq!(stage.words(1), ["evaluate", "setBreakpoints", "configurationDone"]);
    // The client is not told of any of it.
    assert!(stage.told().is_empty());

    // From then on it gets what the program gets; the program's answer is the client's.
    let seq = stage.client("setBreakpoints", breakpoints());
    assert_eq!((stage.words(ROOT), stage.asked(1).len()), (vec!["setBreakpoints".to_string()], 1));
    stage.answer(ROOT, seq, json!({ "breakpoints": [{ "id": 2, "verified": false }] }));
    assert_eq!(stage.acts.len(), 1, "{:?}", stage.acts);
}

#[test]
fn a_breakpoint_that_only_a_child_can_set_is_set() {
    let mut stage = Stage::with_children(1);
    let seq = stage.client("setBreakpoints", breakpoints());
    let child = stage.asked(1);
    stage.answer(1, child[0].0, json!({ "breakpoints": [{ "id": 80, "verified": true, "line": 3 }] }));
    assert!(stage.told().is_empty());
    stage.answer(ROOT, seq, json!({ "breakpoints": [{ "id": 2, "verified": false }] }));
    let better = json!({ "reason": "changed", "breakpoint": { "id": 2, "verified": true, "line": 3 } });
    assert_eq!(stage.acts.last(), Some(&Act::Client(Message::Event { event: "breakpoint".into(), body: better })));
    // Its own number means the client's.
    stage.acts.clear();
    stage.event(1, "stopped", json!({ "reason": "breakpoint", "threadId": 1, "hitBreakpointIds": [80, 99] }));
    let body = json!({ "reason": "breakpoint", "threadId": 1001, "hitBreakpointIds": [2] });
    assert_eq!(stage.acts, [Act::Client(Message::Event { event: "stopped".into(), body })]);
}

#[test]
fn a_request_goes_to_the_process_it_is_about() {
    let mut stage = Stage::with_children(2);
    stage.stop(2, "breakpoint");
    assert_eq!(stage.told(), ["stopped 2001"]);
    let seq = stage.client("stackTrace", json!({ "threadId": 2001 }));
    let asked = stage.asked(2);
    assert_eq!(asked[0].1, "stackTrace 1");
    stage.answer(2, asked[0].0, json!({ "stackFrames": [{ "id": 4 }] }));
    let Some(Act::Client(Message::Response { request_seq, body, .. })) = stage.acts.pop() else { panic!() };
    assert_eq!(request_seq, seq);
    stage.client("evaluate", json!({ "expression": "i", "frameId": body["stackFrames"][0]["id"] }));
    let Some(Act::Process(2, Message::Request { arguments, .. })) = stage.acts.pop() else { panic!() };
    assert_eq!(arguments["frameId"], 4);
    // What nothing is known about is the program's.
    stage.client("modules", Value::Null);
    assert_eq!(stage.words(ROOT), ["modules"]);
}

#[test]
fn each_stop_is_shown_once_and_in_its_turn() {
    let mut stage = Stage::with_children(2);
    stage.stop(1, "breakpoint");
    stage.stop(2, "breakpoint");
    stage.stop(ROOT, "breakpoint");
    assert_eq!(stage.told(), ["stopped 1001"]);
    for (process, thread, next) in [(1, 1001, "stopped 2001"), (2, 2001, "stopped 1")] {
        stage.client("continue", json!({ "threadId": thread }));
        let asked = stage.asked(process);
        assert_eq!(asked.len(), 1);
        // Not before the client knows that the last one goes on.
        assert!(stage.told().is_empty());
        stage.answer(process, asked[0].0, json!({}));
        assert_eq!(stage.told(), [next]);
        // That it went on is no news while another is shown.
        stage.event(process, "continued", json!({ "threadId": 1 }));
        assert!(stage.told().is_empty());
    }
    let seq = stage.client("continue", json!({ "threadId": 1 }));
    stage.answer(ROOT, seq, json!({}));
    assert!(stage.told().is_empty());
    assert_eq!(stage.words(ROOT), ["continue 1"]);
}

#[test]
fn a_step_is_not_disturbed_unless_it_takes_long() {
    let mut stage = Stage::with_children(2);
    stage.stop(1, "breakpoint");
    stage.stop(2, "breakpoint");
    stage.told();
    stage.client("next", json!({ "threadId": 1001 }));
    let asked = stage.asked(1);
    stage.answer(1, asked[0].0, json!({}));
    stage.stop(1, "step");
    assert_eq!(stage.told(), ["stopped 1001"]);
    // One that waits for the other process would wait for ever.
    stage.client("next", json!({ "threadId": 1001 }));
    let asked = stage.asked(1);
    stage.acts.clear();
    stage.answer(1, asked[0].0, json!({}));
    let Some(Act::Arm(timer @ Timer::Grace(_), _)) = stage.acts.pop() else { panic!("{:?}", stage.acts) };
    assert!(stage.told().is_empty());
    let acts = stage.joined.timer(timer);
    stage.acts = acts;
    assert_eq!(stage.told(), ["stopped 2001"]);
    // The step's end is shown after that.
    stage.stop(1, "step");
    assert!(stage.told().is_empty());
    stage.client("continue", json!({ "threadId": 2001 }));
    let asked = stage.asked(2);
    stage.answer(2, asked[0].0, json!({}));
    assert_eq!(stage.told(), ["stopped 1001"]);
}

#[test]
fn nothing_that_was_shown_stays_behind() {
    let mut stage = Stage::with_children(1);
    stage.stop(ROOT, "breakpoint");
    stage.stop(1, "breakpoint");
    stage.told();
    // The client looks at the child, whose stop was not shown, and steps in it: the program goes on as well.
    stage.client("next", json!({ "threadId": 1001 }));
    assert_eq!((stage.words(1), stage.words(ROOT)), (vec!["next 1".into()], vec!["continue 1".into()]));
    // The same with `continue`: what was shown goes on, and then the child's stop is shown.
    let mut stage = Stage::with_children(1);
    stage.stop(ROOT, "breakpoint");
    stage.stop(1, "breakpoint");
    stage.told();
    let seq = stage.client("continue", json!({ "threadId": 1001 }));
    assert_eq!((stage.words(1), stage.words(ROOT)), (vec![], vec!["continue 1".into()]));
    stage.answer(ROOT, seq, json!({}));
    assert_eq!(stage.told(), ["stopped 1001"]);
}

#[test]
fn a_pause_stops_all_of_them_once() {
    let mut stage = Stage::with_children(1);
    stage.client("pause", json!({ "threadId": 1 }));
    assert_eq!((stage.words(ROOT).len(), stage.words(1).len()), (1, 1));
    stage.stop(1, "pause");
    stage.stop(ROOT, "pause");
    assert_eq!(stage.told(), ["stopped 1001"]);
    stage.client("continue", json!({ "threadId": 1001 }));
    assert_eq!((stage.words(1), stage.words(ROOT)), (vec!["continue 1".into()], vec!["continue 1".into()]));
}

#[test]
fn the_end_of_a_child_is_the_end_of_its_threads() {
    let mut stage = Stage::with_children(2);
    stage.event(1, "thread", json!({ "reason": "started", "threadId": 1 }));
    stage.event(2, "thread", json!({ "reason": "started", "threadId": 1 }));
    stage.stop(1, "breakpoint");
    stage.stop(2, "breakpoint");
    stage.told();
    let seq = stage.client("stackTrace", json!({ "threadId": 1001 }));
    stage.event(1, "exited", json!({ "exitCode": 1 }));
    let refused = stage.acts.iter().any(
        |act| matches!(act, Act::Client(Message::Response { request_seq, success: false, .. }) if *request_seq == seq),
    );
    assert!(refused, "{:?}", stage.acts);
    // The client was looking at it; then the next one has its turn.
    assert_eq!(stage.told(), ["continued 1", "stopped 2001", "thread 1001"]);
    assert_eq!(stage.words(1).last().map(String::as_str), Some("disconnect"));
    stage.acts.clear();
    // Its connection closes after that, which is no news.
    assert!(stage.joined.gone(1).is_empty());
    stage.client("evaluate", json!({ "expression": "i", "frameId": 1i64 << 32 }));
    assert!(matches!(&stage.acts[..], [Act::Client(Message::Response { success: false, .. })]), "{:?}", stage.acts);
    // Only the program's end is the session's.
    stage.acts.clear();
    stage.event(ROOT, "terminated", Value::Null);
    assert_eq!(stage.told(), ["terminated"]);
}

#[test]
fn the_threads_of_all_processes_are_one_list() {
    let mut stage = Stage::with_children(2);
    stage.stop(1, "breakpoint");
    stage.acts.clear();
    let seq = stage.client("threads", Value::Null);
    let list = json!({ "threads": [{ "id": 1, "name": "MainThread" }] });
    for process in [1, ROOT] {
        let asked = stage.asked(process);
        stage.answer(process, asked[0].0, list.clone());
    }
    // The other child does not answer: its time is over.
    let acts = stage.joined.timer(Timer::Threads(seq));
    let [Act::Client(Message::Response { request_seq, body, .. })] = &acts[..] else { panic!("{acts:?}") };
    assert_eq!(*request_seq, seq);
    let expected = json!({ "threads": [
        { "id": 1, "name": "MainThread", "running": true }, { "id": 1001, "name": "MainThread (pid 101)" },
    ] });
    assert_eq!(*body, expected);
}

#[test]
fn leaving_is_leaving_all_of_them() {
    let mut stage = Stage::with_children(2);
    stage.client("disconnect", json!({ "terminateDebuggee": false }));
    assert_eq!((stage.words(1), stage.words(2)), (vec!["disconnect".into()], vec!["disconnect".into()]));
    assert_eq!(stage.words(ROOT), ["disconnect"]);
}

#[test]
fn a_refused_resume_leaves_the_stop_where_it_was() {
    let mut stage = Stage::with_children(1);
    stage.stop(1, "breakpoint");
    stage.told();
    let seq = stage.client("continue", json!({ "threadId": 1001 }));
    let asked = stage.asked(1);
    let message = Message::Response {
        request_seq: asked[0].0,
        command: "continue".into(),
        success: false,
        message: Some("no".into()),
        body: Value::Null,
    };
    stage.acts = stage.joined.process_says(1, message);
    assert!(matches!(&stage.acts[..], [Act::Client(Message::Response { request_seq, .. })] if *request_seq == seq));
    stage.acts.clear();
    // It is still the one that is shown, so another waits.
    stage.stop(ROOT, "breakpoint");
    assert!(stage.told().is_empty());
}
