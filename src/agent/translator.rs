//! `bugeye adapter agent`: the broker between the debug protocol and the taps, and the agent's parent.

use std::collections::HashMap;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use tokio::sync::{mpsc, oneshot};

use super::broker::{Broker, Effect};
use super::files::Files;
use super::gate::{Answer, Line, Tap, Told};
use super::launch::{self, Prepared, Wish};
use super::model;
use super::serve;
use super::socket::Socket;
use crate::dap::Message;
use crate::token;
use crate::translate::{Asked, Client, Streams, child};

struct Translator<'a> {
    asked: &'a Asked,
    client: Client,
    broker: Broker,
    line: Line,
    replies: HashMap<u64, oneshot::Sender<Answer>>,
    /// The arguments of `launch`, until the agent is started.
    launch: Option<Json>,
    folder: Option<PathBuf>,
    pid: Option<u32>,
    /// The model tap, as long as the agent needs it.
    served: Option<model::Served>,
    /// The agent is being ended: what it asks is not answered any more, least of all with yes.
    ending: bool,
    /// With nobody to ask, nothing is to happen.
    fails_closed: bool,
    done: bool,
}

/// The translator.
pub fn agent(asked: &Asked) -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return 1;
        }
    };
    let (client, asks) = Client::on_standard_streams();
    let (line, told) = Line::new(Tap::Sdk);
    let mut translator = Translator {
        asked,
        client,
        broker: Broker::default(),
        line,
        replies: HashMap::new(),
        launch: None,
        folder: None,
        pid: None,
        served: None,
        ending: false,
        fails_closed: false,
        done: false,
    };
    runtime.block_on(translator.run(asks, told));
    if let Some(folder) = &translator.folder {
        let _ = std::fs::remove_dir_all(folder);
    }
    0
}

impl Translator<'_> {
    async fn run(&mut self, mut asks: mpsc::UnboundedReceiver<Message>, mut told: mpsc::UnboundedReceiver<Told>) {
        // Asked to end with all that is below its supervisor, it stays until that has ended the agent: gates that fall
        // open meanwhile would let happen what was held.
        let _deaf = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
        let mut listens = true;
        while !self.done {
            tokio::select! {
                message = asks.recv(), if listens => match message {
                    Some(Message::Request { seq, command, arguments }) => self.asked(seq, &command, &arguments).await,
                    Some(_) => {}
                    None => {
                        listens = false;
                        // Whoever has let go is not lost when it goes.
                        self.left(!self.broker.is_open());
                    }
                },
                Some(told) = told.recv() => self.told(told),
            }
            self.carry_out();
        }
    }

    /// The debugger has let go, or is lost: the agent goes on by itself, and this process with it, for its model calls.
    fn left(&mut self, lost: bool) {
        if self.ending {
            return self.end_agent(rustix::process::Signal::KILL);
        }
        if lost && self.fails_closed {
            self.broker.shut();
        }
        self.broker.leave();
        if self.pid.is_none() {
            self.done = true;
        }
    }

    fn told(&mut self, told: Told) {
        match told {
            Told::Attached { tap, about } => self.broker.attached(tap, &about),
            Told::Ask { id, tap, ask, reply } => {
                self.replies.insert(id, reply);
                if self.ending {
                    return;
                }
                self.broker.ask(id, tap, *ask);
            }
            Told::Withdrawn { id } => {
                self.replies.remove(&id);
                self.broker.withdrawn(id);
            }
            Told::Note { tap, note } => self.broker.note(tap, note),
            Told::Ended { code } => {
                self.pid = None;
                self.broker.ended(code);
            }
        }
    }

    fn carry_out(&mut self) {
        for effect in self.broker.take_effects() {
            match effect {
                Effect::Event(event, body) => {
                    let ended = event == "terminated";
                    self.client.event(event, body);
                    self.done |= ended && (self.ending || self.broker.is_open());
                }
                Effect::Answer(id, answer) => {
                    if let Some(reply) = self.replies.remove(&id) {
                        let _ = reply.send(answer);
                    }
                }
            }
        }
    }

    async fn asked(&mut self, seq: i64, command: &str, arguments: &Json) {
        let result = match command {
            "initialize" => Ok(serve::capabilities()),
            "launch" => {
                self.launch = Some(arguments.clone());
                self.client.answer(seq, command, Ok(json!({})));
                self.client.event("initialized", json!({}));
                return;
            }
            "configurationDone" => self.start().await.map(|()| json!({})),
            "disconnect" => {
                let ends = arguments.get("terminateDebuggee").and_then(Json::as_bool).unwrap_or(true);
                self.client.answer(seq, command, Ok(json!({})));
                let lost = arguments.get("lost").and_then(Json::as_bool).unwrap_or(false);
                self.disconnect(ends, lost);
                return;
            }
            _ => match self.broker.serve(command, arguments) {
                Some(result) => result,
                None => Err(format!("{command} is not done here")),
            },
        };
        // A stop that an answer leads to comes after it.
        self.client.answer(seq, command, result);
    }

    fn disconnect(&mut self, ends: bool, lost: bool) {
        if self.ending || !ends {
            return self.left(lost);
        }
        self.ending = true;
        self.end_agent(rustix::process::Signal::TERM);
    }

    /// Ends the agent; this process ends with it.
    fn end_agent(&mut self, signal: rustix::process::Signal) {
        let pid = self.pid.and_then(|pid| rustix::process::Pid::from_raw(i32::try_from(pid).ok()?));
        match pid {
            Some(pid) => drop(rustix::process::kill_process(pid, signal)),
            None => self.done = true,
        }
    }

    /// Starts the agent, with its taps.
    async fn start(&mut self) -> Result<(), String> {
        let arguments = self.launch.take().ok_or("nothing was launched")?;
        self.fails_closed = arguments.pointer("/env/BUGEYE_AGENT_FAIL").and_then(Json::as_str) == Some("closed");
        let folder = child::private_folder(self.asked)?;
        self.folder = Some(folder.clone());
        let prepared = self.taps(&arguments, &folder).await?;
        let mut arguments = arguments;
        for (name, value) in prepared.env {
            arguments["env"][name] = json!(value);
        }
        for note in prepared.notes {
            self.broker.say(&note);
        }
        let (program, words) = prepared.words.split_first().ok_or("no program was named")?;
        let mut command = child::command(program, &arguments, self.asked)?;
        command.args(words);
        if let Some(terminal) = arguments.get("terminal").and_then(Json::as_str).map(PathBuf::from) {
            let streams = Streams { stdin: terminal.clone(), stdout: terminal.clone(), stderr: terminal };
            streams.give_to(&mut command).map_err(|error| format!("the terminal can't be opened: {error}"))?;
            // What its terminal says is said to it and to what it runs, not to this process.
            command.process_group(0);
        }
        let mut started = command.spawn().map_err(|error| format!("{program} can't be started: {error}"))?;
        let pid = started.id();
        self.pid = Some(pid);
        self.client.event("process", json!({ "systemProcessId": pid, "startMethod": "launch" }));
        let line = self.line.clone();
        std::thread::spawn(move || line.ended(child::exit_code(started.wait())));
        Ok(())
    }

    /// Opens the taps, and tells how the agent is started with them.
    async fn taps(&mut self, arguments: &Json, folder: &Path) -> Result<Prepared, String> {
        let text = |name: &str| arguments.get(name).and_then(Json::as_str);
        let fresh = || token::fresh().map_err(|error| format!("no token: {error}"));
        let no_tap = |error: std::io::Error| format!("the agent's taps can't be opened: {error}");
        let record = text("record").map(PathBuf::from);
        let session = record.as_ref().and_then(|record| record.file_name()).unwrap_or_default();
        let session = session.to_string_lossy().into_owned();
        let (secret, files) = (fresh()?, folder.join("files"));
        let socket = Socket::open(folder, &secret).map_err(no_tap)?;
        tokio::spawn(Files::open(&files, &session).map_err(no_tap)?.serve(self.line.clone()));
        let model = match arguments.get("modelTap").and_then(Json::as_bool).unwrap_or(true) {
            true => {
                let listener = model::listen().await.map_err(no_tap)?;
                let port = listener.local_addr().map_err(no_tap)?.port();
                let secret = fresh()?;
                let base = format!("http://127.0.0.1:{port}/s/{secret}");
                Some((listener, secret, base))
            }
            false => None,
        };
        let words: Vec<String> = text("program").map(Into::into).into_iter().chain(child::words(arguments)).collect();
        let env = arguments.get("env").and_then(Json::as_object).into_iter().flatten();
        let env: Vec<(String, String)> =
            env.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.into()))).collect();
        let exe = std::env::current_exe().map_err(no_tap)?;
        // So the kernel calls it once a newer one has its place, which serves as well.
        let exe = exe.to_str().and_then(|exe| exe.strip_suffix(" (deleted)")).map_or(exe.clone(), PathBuf::from);
        let wish = Wish {
            words: &words,
            env: &env,
            cwd: Path::new(text("cwd").unwrap_or("/")),
            exe: &exe,
            socket: socket.path(),
            token: &secret,
            folder,
            model: model.as_ref().map(|(_, _, base)| base.as_str()),
        };
        let mut prepared = launch::prepare(&wish).map_err(|failure| failure.to_string())?;
        prepared.env.insert("BUGEYE_AGENT_DIR".into(), files.to_string_lossy().into_owned());
        let line = self.line.clone();
        tokio::spawn(async move { socket.serve(line, &session).await });
        if let Some((listener, secret, _)) = model {
            let variable = |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            let prices = arguments.get("prices").cloned().unwrap_or_else(|| json!([]));
            self.broker.prices =
                serde_json::from_value(prices).map_err(|error| format!("the prices can't be read: {error}"))?;
            let config = model::Config {
                prices: self.broker.prices.clone(),
                upstreams: prepared.upstreams.clone().into_iter().collect(),
                record,
                replay: rerun(arguments),
                roots: variable("SSL_CERT_FILE").or_else(|| variable("NODE_EXTRA_CA_CERTS")).map(Into::into),
                proxy: variable("HTTPS_PROXY").or_else(|| variable("https_proxy")),
                no_proxy: variable("NO_PROXY").or_else(|| variable("no_proxy")),
                ..model::Config::new(secret)
            };
            let served = model::serve_at(listener, self.line.of(Tap::Model), config).map_err(no_tap)?;
            self.served = Some(served);
            if !prepared.upstreams.is_empty() {
                self.broker.expect_model_tap();
            }
        }
        Ok(prepared)
    }
}

/// The record that the model's answers are to come from.
fn rerun(arguments: &Json) -> Option<model::Rerun> {
    let rerun = arguments.get("rerun")?;
    let fork_at = rerun.get("fork_at").and_then(Json::as_u64).and_then(|n| u32::try_from(n).ok());
    Some(model::Rerun { folder: rerun.get("folder")?.as_str()?.into(), fork_at })
}
