//! Real agents through the tap, driven by the model of `tests/agents`: held, steered, recorded and run again.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use bugeye::agent::gate::{Answer, Ask, Message, Verdict};
use bugeye::agent::model::{Config, Rerun, Served, serve};
use serde_json::{Value, json};

use crate::model::{Model, Turn};
use crate::support::agents;
use crate::world::{Desk, config};

/// An agent that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Which agent, and the tool that runs a command in it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Agent {
    Claude,
    Codex,
}

/// A new home for an agent.
struct World {
    home: tempfile::TempDir,
    record: PathBuf,
}

struct Went {
    status: ExitStatus,
    output: String,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let record = home.path().join("record");
        for name in ["home", "project", "record"] {
            std::fs::create_dir(home.path().join(name)).unwrap();
        }
        Self { home, record }
    }

    fn project(&self) -> PathBuf {
        self.home.path().join("project")
    }

    fn config(&self, model: &Model) -> Config {
        let mut config =
            config().upstream("anthropic", &model.url()).upstream("openai", &format!("{}/v1", model.url()));
        config.record = Some(self.record.clone());
        config.ping = Duration::from_millis(300);
        config
    }

    /// Runs an agent to its end, with the tap as its only way out.
    async fn run(&self, agent: Agent, served: &Served) -> Went {
        let name = if agent == Agent::Claude { "claude" } else { "codex" };
        let program = tokio::task::spawn_blocking(move || agents::program(name)).await.unwrap();
        let home = self.home.path().join("home");
        let mut command = tokio::process::Command::new(program);
        command.current_dir(self.project()).env_clear().env("PATH", std::env::var("PATH").unwrap()).env("HOME", &home);
        command.env("TMPDIR", &home);
        for proxy in ["HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"] {
            command.env(proxy, "http://127.0.0.1:1").env("NO_PROXY", "127.0.0.1");
        }
        if agent == Agent::Claude {
            command.env("ANTHROPIC_BASE_URL", served.url("anthropic")).env("ANTHROPIC_API_KEY", "none");
            command.env("CLAUDE_CONFIG_DIR", home.join("claude"));
            command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
            command.args(["-p", "Say hello.", "--allowedTools", "Bash"]);
        } else {
            let url = served.url("openai");
            let settings = format!(
                "model = \"none\"\nmodel_provider = \"test\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n\
                 check_for_update_on_startup = false\n[features]\nplugins = false\napps = false\n[analytics]\nenabled = false\n\
                 [model_providers.test]\nname = \"test\"\nbase_url = \"{url}\"\nwire_api = \"responses\"\n\
                 supports_websockets = false\nenv_key = \"TEST_KEY\"\n"
            );
            std::fs::create_dir_all(home.join("codex")).unwrap();
            std::fs::write(home.join("codex/config.toml"), settings).unwrap();
            command.env("CODEX_HOME", home.join("codex")).env("TEST_KEY", "none");
            command.args(["exec", "--skip-git-repo-check", "Say hello."]);
        }
        let output = tempfile::tempfile().unwrap();
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output.try_clone().unwrap());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let ended = tokio::time::timeout(LIMIT, child.wait()).await;
        let text = read_all(output);
        let status = ended.unwrap_or_else(|_| panic!("{name} hangs:\n{text}")).unwrap();
        Went { status, output: text }
    }
}

fn read_all(mut file: std::fs::File) -> String {
    use std::io::{Read as _, Seek as _};
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The model has a file made, and says that it is there.
fn script(agent: Agent, file: &Path) -> Model {
    let command = format!("echo hello > {}", file.display());
    let call = if agent == Agent::Claude {
        Turn::call("Bash", json!({"command": command, "description": "says hello"}))
    } else {
        Turn::call("exec_command", json!({"cmd": command}))
    };
    Model::scripted([call, Turn::text("It is said.")])
}

/// The questions of the loop.
fn loop_asks(desk: &Desk) -> Vec<Ask> {
    desk.asks().into_iter().filter(|ask| !ask.aside).collect()
}

#[tokio::test]
async fn an_agent_runs_through_the_tap_is_held_and_told_something_and_runs_again_from_its_record() {
    for agent in [Agent::Claude, Agent::Codex] {
        let world = World::new();
        let file = world.project().join("said");
        let model = script(agent, &file);
        // It is held at its second call for some pings, and then told something.
        let (line, desk) = Desk::judging(Some(&world.record), |ask| {
            let heard = serde_json::to_string(&ask.conversation).unwrap();
            (ask.aside || !heard.contains("tool_result")).then(Answer::default)
        });
        let served = serve(line, world.config(&model)).await.unwrap();
        let steered = async {
            crate::world::until("it is held", || (desk.held() == 1).then_some(())).await;
            assert!(file.exists(), "the tool has run");
            tokio::time::sleep(Duration::from_millis(1500)).await;
            let text = "[debugger] Say it twice.".to_string();
            let inject = vec![Message { role: "user".into(), text }];
            desk.answer(Answer { verdict: Verdict::Proceed, inject }).await;
        };
        let (went, ()) = tokio::join!(world.run(agent, &served), steered);
        assert!(went.status.success() && went.output.contains("It is said."), "{agent:?}: {}", went.output);
        let asks = loop_asks(&desk);
        assert_eq!(asks.len(), 2, "{agent:?}");
        assert!(asks.iter().all(|ask| ask.thread == "main"));
        let requests = model.requests();
        let last = requests.last().unwrap().text();
        assert!(last.contains("[debugger] Say it twice."), "{agent:?}: {last}");
        let told: Vec<Value> = desk
            .notes("model.response")
            .into_iter()
            .filter(|note| note.data["aside"] != true)
            .map(|note| note.data)
            .collect();
        assert_eq!(told.len(), 2);
        assert!(told[0]["tool_calls"][0]["input"].to_string().contains("echo hello"), "{}", told[0]);
        assert_eq!((&told[1]["text"], &told[1]["changed"]), (&json!("It is said."), &json!(["inject"])));
        assert!(desk.attached()[0]["agent"].is_string(), "{:?}", desk.attached());
        println!("{agent:?}: {}", desk.attached()[0]);
        for request in desk.notes("model.request") {
            println!(
                "{agent:?}: {} bytes, aside {}, {} messages",
                request.data["bytes"], request.data["aside"], request.data["n_messages"]
            );
        }
        drop(served);

        // Once more, with the model gone: the same run.
        std::fs::remove_file(&file).unwrap();
        let calls = model.requests().len();
        let (line, desk) = Desk::open();
        let mut again = world.config(&model);
        again.record = None;
        again.replay = Some(Rerun { folder: world.record.clone(), fork_at: None });
        let served = serve(line, again).await.unwrap();
        let went = world.run(agent, &served).await;
        assert!(went.status.success() && went.output.contains("It is said."), "{agent:?}: {}", went.output);
        assert!(file.exists(), "tools run for real");
        assert_eq!(model.requests().len(), calls, "nobody is asked");
        let diverged: Vec<Value> = desk.notes("rerun.diverged").into_iter().map(|note| note.data).collect();
        assert!(diverged.is_empty(), "{agent:?}: {diverged:#?}");
        assert_eq!(loop_asks(&desk).len(), 2);
    }
}

#[tokio::test]
async fn an_agent_is_answered_by_the_debugger_and_its_run_is_ended() {
    for agent in [Agent::Claude, Agent::Codex] {
        // The debugger's answer is the model's, for all it knows.
        let world = World::new();
        let model = script(agent, &world.project().join("said"));
        let (line, desk) = Desk::judging(None, |ask| {
            let verdict = Verdict::Synthesize { value: json!({"text": "Said by the debugger."}) };
            Some(if ask.aside { Answer::default() } else { Answer { verdict, ..Answer::default() } })
        });
        let served = serve(line, world.config(&model)).await.unwrap();
        let went = world.run(agent, &served).await;
        assert!(went.status.success() && went.output.contains("Said by the debugger."), "{agent:?}: {}", went.output);
        assert_eq!(loop_asks(&desk).len(), 1);
        drop(served);

        // An end is an end, before and after it has heard pings.
        for held in [Duration::ZERO, Duration::from_millis(1000)] {
            let (line, desk) = Desk::judging(None, |ask| ask.aside.then(Answer::default));
            let served = serve(line, world.config(&model)).await.unwrap();
            let ended = async {
                crate::world::until("it is held", || (desk.held() == 1).then_some(())).await;
                tokio::time::sleep(held).await;
                desk.answer(Answer { verdict: Verdict::Abort { reason: "ended here".into() }, ..Answer::default() })
                    .await;
            };
            let (went, ()) = tokio::join!(world.run(agent, &served), ended);
            assert!(went.output.contains("ended here"), "{agent:?} {held:?}: {}", went.output);
            assert!(!went.status.success(), "{agent:?} {held:?}: {}", went.output);
            assert_eq!(loop_asks(&desk).len(), 1, "{agent:?} {held:?}: it does not ask again");
        }
    }
}
