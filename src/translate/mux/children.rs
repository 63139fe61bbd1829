//! How a child is taken up: a connection of its own, the whole handshake with the client's own words, and the end.

use serde_json::{Value, json};

use super::joined::{Act, Joined, Process, ROOT, Why};
use crate::dap::Message;

/// How far a child is taken up.
#[derive(Debug)]
pub(super) struct Child {
    /// The request that starts its session, and its arguments.
    request: String,
    configuration: Value,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Connecting,
    Introducing,
    Starting,
    Ready,
}

impl Child {
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }
}

impl Joined {
    /// An adapter says that its program has started another.
    pub(super) fn take_up(&mut self, request: String, mut configuration: Value) {
        let process = self.next_process;
        self.next_process += 1;
        let address = configuration.get("connect").and_then(|connect| {
            let port = connect.get("port")?.as_u64().and_then(|port| u16::try_from(port).ok())?;
            Some((connect.get("host").and_then(Value::as_str).unwrap_or("127.0.0.1").to_string(), port))
        });
        let pid = configuration.get("subProcessId").and_then(Value::as_i64);
        // Only the program itself is to stop at its beginning.
        if configuration.get("stopOnEntry").is_some() {
            configuration["stopOnEntry"] = Value::Bool(false);
        }
        let child = Child { request, configuration, state: State::Connecting };
        self.processes.insert(process, Process { child: Some(child), pid, ..Process::default() });
        self.out.push(Act::Connect(process, address));
    }

    fn child(&mut self, process: usize) -> Option<&mut Child> {
        self.processes.get_mut(&process)?.child.as_mut()
    }

    pub(super) fn on_connected(&mut self, process: usize) {
        let Some(child) = self.child(process) else { return };
        child.state = State::Introducing;
        let arguments = self.initialize.clone();
        self.ask(process, "initialize", arguments, Why::Initialize);
    }

    pub(super) fn on_child_initialized(&mut self, process: usize, success: bool) {
        if !success {
            return self.end_child(process);
        }
        let Some(child) = self.child(process) else { return };
        child.state = State::Starting;
        let (request, configuration) = (child.request.clone(), std::mem::take(&mut child.configuration));
        self.ask(process, &request, configuration, Why::Start);
    }

    /// The child waits for its configuration: what the client gave the program, and the breakpoints as they are now.
    pub(super) fn configure_child(&mut self, process: usize) {
        match self.child(process) {
            // Some say so twice.
            Some(child) if child.state == State::Starting => child.state = State::Ready,
            _ => return,
        }
        for (command, arguments) in self.configuration.clone() {
            self.ask(process, &command, arguments, Why::Quiet);
        }
        let wishes: Vec<(String, String, Value)> =
            self.wishes.iter().map(|wish| (wish.key.clone(), wish.command.clone(), wish.arguments.clone())).collect();
        for (key, command, arguments) in wishes {
            self.ask(process, &command, arguments, Why::Wish(key));
        }
        self.ask(process, "configurationDone", json!({}), Why::Quiet);
    }

    /// The client leaves: so do we, from every child.
    pub(super) fn leave_children(&mut self, command: &str, arguments: &Value) {
        let children: Vec<usize> = self.processes.keys().copied().filter(|process| *process != ROOT).collect();
        for process in children {
            self.ask(process, command, arguments.clone(), Why::Quiet);
        }
        self.queue.clear();
    }

    /// A child has ended, or can't be debugged any more. The session goes on without it.
    pub(super) fn end_child(&mut self, process: usize) {
        if process == ROOT || self.processes.remove(&process).is_none() {
            return;
        }
        // Its connection is not just closed: debugpy's adapter dies of an answer that it can't send any more. It closes
        // the connection itself.
        self.ask(process, "disconnect", json!({ "terminateDebuggee": false }), Why::Quiet);
        self.queue.retain(|(owner, _)| *owner != process);
        self.pausing.retain(|owner| *owner != process);
        self.wishes.iter_mut().for_each(|wish| wish.forget(process));
        let (asked, others) =
            std::mem::take(&mut self.pending).into_iter().partition(|((owner, _), _)| *owner == process);
        self.pending = others;
        let asked: std::collections::BTreeMap<(usize, i64), Why> = asked;
        for why in asked.into_values() {
            if let Why::Client(client) = why {
                let message = Some("the process has ended".to_string());
                let answer = Message::Response {
                    request_seq: client,
                    command: String::new(),
                    success: false,
                    message,
                    body: Value::Null,
                };
                self.out.push(Act::Client(answer));
                self.on_resume_answered(client, false);
            }
        }
        self.leave_stop(process);
        self.forget_threads(process);
    }
}
