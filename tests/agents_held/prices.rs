//! What a run costs, by prices of the user's own.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::support::{Bug, has, lacks};
use crate::{bug, events};

/// A model that nobody has a price for; every answer of its took a million tokens in and a hundred thousand out.
fn model() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer(&stream.unwrap()));
        }
    });
    port
}

fn answer(stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).ok()? > 2 {
            if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = said.trim().parse().unwrap();
            }
            line.clear();
        }
        if line.is_empty() {
            return None;
        }
        reader.read_exact(&mut vec![0; length]).ok()?;
        let said = json!({
            "type": "message", "role": "assistant", "model": "house-model", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "yes"}], "usage": {"input_tokens": 1_000_000, "output_tokens": 100_000},
        })
        .to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", said.len());
        let mut stream = stream;
        stream.write_all(format!("{head}{said}").as_bytes()).ok()?;
    }
}

/// Asks the model three times.
const AGENT: &str = r#"
import os, urllib.request
for n in range(3):
    body = b'{"model":"house-model","max_tokens":4096,"messages":[{"role":"user","content":"question %d"}]}' % n
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": "application/json"})).read()
"#;

fn configure(bug: &Bug, text: &str) {
    fs::create_dir_all(bug.home().join("config")).unwrap();
    fs::write(bug.home().join("config/config.toml"), text).unwrap();
}

fn costs(bug: &Bug, session: &str) -> Vec<Value> {
    events(bug, session, "model.response").iter().map(|event| event["data"]["usd"].clone()).collect()
}

#[test]
fn a_price_of_the_user_s_is_what_a_model_costs_and_breakpoints_judge_by_it() {
    let mut bug = bug();
    bug.env.push(("ANTHROPIC_BASE_URL".into(), format!("http://127.0.0.1:{}", model())));
    bug.env.push(("no_proxy".into(), "127.0.0.1".into()));
    bug.write("work/agent.py", AGENT);
    let words =
        |name: &'static str| ["run", "--name", name, "--break", "cost:5", "--agent", "--", "python3", "agent.py"];
    // Without a price there is no cost, and nothing to stop at.
    let said = "no price is known for house-model, so what it costs is not counted and can't stop the agent";
    let text = bug.ok(&words("unknown"));
    has(&text, &["exited: code 0", "log:\n", said, "[agent.prices]", "bugeye break tokens:"]);
    assert_eq!(text.matches("no price").count(), 1, "once, not with each call: {text}");
    assert_eq!(costs(&bug, "unknown"), [Value::Null, Value::Null, Value::Null]);
    let told = |session: &str| {
        let printed = events(&bug, session, "output");
        printed.iter().filter(|event| event["data"]["text"].as_str().unwrap().starts_with(said)).count()
    };
    assert_eq!(told("unknown"), 1);
    // Where the model is known when it is set, it is said there, and not again.
    bug.ok(&["run", "--name", "late", "--break", "model", "--agent", "--", "python3", "agent.py"]);
    let text = bug.ok(&["break", "cost:5"]);
    has(&text, &[&format!("cost:5: verified ({said}")]);
    has(&bug.ok(&["breaks"]), &[said]);
    bug.ok(&["break", "tokens:99000000"]);
    lacks(&bug.ok(&["continue"]), &["no price"]);
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
    assert_eq!(told("late"), 0);
    // 3 dollars for each call: two have cost more than 5.
    configure(&bug, "[agent.prices]\n\"house-model\" = { input = 2, output = 10 }\n");
    let text = bug.ok(&words("known"));
    has(&text, &["before model call"]);
    lacks(&text, &["no price"]);
    has(&bug.ok(&["print", "usage.usd"]), &["6"]);
    assert_eq!(costs(&bug, "known"), [json!(3.0), json!(3.0)]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
    has(&bug.ok(&["config"]), &["agent.prices.house-model = 2 10 2 2"]);
    // A wrong one is told where it is met, and nothing is started.
    configure(&bug, "[agent.prices]\n\"house-model\" = { input = 2, output = \"much\" }\n");
    let run = bug.run(&words("wrong"));
    assert_eq!(run.code, 2, "{run}");
    has(&run.stderr, &["config.toml:2: the price of `house-model`: `output` must be dollars per million tokens"]);
    configure(&bug, "");
}
