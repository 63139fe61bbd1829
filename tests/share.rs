//! `export` and `import`: a record goes out in one file and comes back the same; a page of it can do nothing to its reader.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use support::{Bug, has, lacks};

/// A program whose output and values would be of use to an attacker.
const HOSTILE: &str = r#"
def work(text):
    for number in range(5):
        square = number * number
        seen = text + str(number)
    return seen

print("<script>alert('out')</script> & \"quoted\"")
print(work("</pre><img src=x onerror=alert(1)><script src='http://example.com/x.js'></script>\x1b[31m"))
"#;

/// A session that has ended, with stops, output and a trace.
fn recorded() -> Bug {
    let bug = Bug::new("python");
    let program = bug.write("hostile.py", HOSTILE);
    bug.ok(&["run", "--break", &format!("{program}:5"), "--", "python3", &program]);
    bug.ok(&["continue"]);
    bug.run(&["print", "number + '<script>'"]);
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["trace", "--at", &format!("{program}:5: number, square, text")]);
    bug.ok(&["stop"]);
    bug
}

fn events(bug: &Bug, id: &str) -> String {
    bug.ok(&["events", "--json", "-s", id])
}

fn id(bug: &Bug) -> String {
    let event: Value = serde_json::from_str(events(bug, "s1").lines().next().unwrap()).unwrap();
    event["session"].as_str().unwrap().to_string()
}

#[test]
fn a_record_comes_back_the_same() {
    let bug = recorded();
    let id = id(&bug);
    let file = bug.path("given.bugeye");
    let run = bug.run(&["export", &id, "--output", &file]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // Any tool can look into it, and what is nobody's business is not in it.
    let listed = Command::new("tar").args(["-tf", &file]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    has(&listed, &["bugeye.json\nsession.json\nevents.jsonl\n", "hits.jsonl\n"]);
    lacks(&listed, &["commands", "lock"]);
    // Here it gets another name; elsewhere its own.
    let again = bug.json(&["import", &file])["id"].as_str().unwrap().to_string();
    assert_eq!(again, format!("{id}-2"));
    assert_eq!(events(&bug, &again), events(&bug, &id));
    let other = Bug::new("python");
    let text = other.ok(&["import", &file]);
    has(&text, &[&id, "python3", &format!("bugeye events -s {id}")]);
    assert_eq!(events(&other, &id), events(&bug, &id));
    let state = |bug: &Bug| bug.home().join("state/sessions").join(&id);
    assert_eq!(fs::read(state(&other).join("hits.jsonl")).unwrap(), fs::read(state(&bug).join("hits.jsonl")).unwrap());
    // Once more through a pipe: what was taken in can be given on.
    let out = other.command(&["export", &id, "-o", "-"]).output().unwrap();
    let third = Bug::new("python");
    let mut child = third.command(&["import", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&out.stdout).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(events(&third, &id), events(&bug, &id));
    let about: Value = serde_json::from_slice(&fs::read(state(&third).join("session.json")).unwrap()).unwrap();
    assert_eq!(about["imported"]["from"], id.as_str());
    for bug in [&other, &third] {
        bug.run(&["status"]);
    }
}

/// A file is replaced; a pipe, a device and a link stay what they are.
#[test]
fn a_record_is_written_where_a_link_or_a_pipe_leads() {
    let bug = Bug::new("python");
    bug.ok(&["run", "--name", "given", "--", "python3", "exit.py"]);
    let (real, link, pipe) = (bug.write("real", "old"), bug.path("link"), bug.path("pipe"));
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert_eq!(bug.run(&["export", "given", "--output", &link]).code, 0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let written = fs::read(&real).unwrap();
    assert!(written.starts_with(b"bugeye.json\0"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let from = pipe.clone();
    let reader = std::thread::spawn(move || fs::read(from).unwrap());
    assert_eq!(bug.run(&["export", "given", "-o", &pipe]).code, 0);
    assert_eq!(reader.join().unwrap().len(), written.len());
    assert!(!fs::symlink_metadata(&pipe).unwrap().is_file());
    // The copy has the name too, but the one that was made here is meant by it.
    let copy = bug.json(&["import", &real])["id"].as_str().unwrap().to_string();
    bug.ok(&["daemon", "stop"]);
    lacks(&bug.run(&["-s", "given", "status"]).stderr, &[&copy]);
    let shown = bug.run(&["-s", &copy, "status"]);
    assert!(shown.stdout.starts_with(&format!("{copy}: exited: code 0")), "{shown}");
}

#[test]
fn a_live_record_is_given_up_to_now() {
    let bug = Bug::new("python");
    bug.ok(&["run", "--wait", "0", "--", "python3", "hang.py"]);
    let file = bug.path("live.bugeye");
    assert_eq!(bug.run(&["export", "s1", "--output", &file]).code, 0);
    let (id, before) = (id(&bug), events(&bug, "s1"));
    let again = bug.json(&["import", &file])["id"].as_str().unwrap().to_string();
    let copied = events(&bug, &again);
    assert!(before.starts_with(&copied) && copied.contains("session.start"), "{copied}");
    // The copy is not the session.
    has(&bug.ok(&["-s", &id, "status"]), &["running"]);
    has(&bug.run(&["-s", &again, "status"]).stderr, &["from the record", &again]);
    bug.run(&["-s", &again, "pause"]).fails(3, "only its record");
}

#[test]
fn a_file_that_is_no_record_is_refused() {
    let bug = Bug::new("python");
    let text = bug.write("text", "hello\n");
    bug.run(&["import", &text]).fails(1, "this is no record to take in: its end is missing");
    let long = bug.write("long", &"x".repeat(5000));
    bug.run(&["import", &long]).fails(1, "it is no tar archive");
    bug.run(&["import", &bug.path("none")]).fails(1, "could not open");
    bug.run(&["export", "none"]).fails(3, "there is no session and no record `none`");
    let evil = bug.path("evil.tar");
    fs::write(bug.home().join("bugeye.json"), r#"{"bugeye":"record","v":1,"id":"evil"}"#).unwrap();
    fs::write(bug.home().join("session.json"), r#"{"v":1}"#).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", bug.home().join("events.jsonl")).unwrap();
    let made = Command::new("tar")
        .args(["--format=ustar", "-C", bug.home().to_str().unwrap(), "-cf", &evil])
        .args(["bugeye.json", "session.json", "events.jsonl"])
        .status();
    assert!(made.unwrap().success());
    bug.run(&["import", &evil]).fails(1, "it holds something that is no plain file");
    assert_eq!(fs::read_dir(bug.home().join("state/sessions")).unwrap().count(), 0);
    bug.run(&["status"]);
}

/// Reads a page as a browser would and complains of all that could act: scripts, handlers, addresses, unknown elements.
const CHECK: &str = r#"
import sys
from html.parser import HTMLParser

ALLOWED = set("html head meta title style body h1 h2 h3 dl dt dd details summary b i p small time code pre mark span "
              "table tr th td ol li svg polyline".split())
VOID = {"meta"}
complaints, open_tags, text = [], [], []

class Check(HTMLParser):
    def handle_starttag(self, tag, attrs):
        if tag not in ALLOWED:
            complaints.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on") or name in ("href", "src", "style", "action", "srcset", "xmlns"):
                complaints.append(f"{tag} {name}")
            if "://" in (value or ""):
                complaints.append(f"{tag} {name}={value}")
        if tag not in VOID:
            open_tags.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        open_tags.pop()

    def handle_endtag(self, tag):
        if not open_tags or open_tags.pop() != tag:
            complaints.append(f"</{tag}> does not fit")

    def handle_data(self, data):
        if open_tags and open_tags[-1] == "style":
            if "url(" in data or "@import" in data:
                complaints.append("a style from elsewhere")
        else:
            text.append(data)

page = open(sys.argv[1], encoding="utf-8").read()
check = Check(convert_charrefs=True)
check.feed(page)
check.close()
if open_tags:
    complaints.append(f"not closed: {open_tags}")
if complaints:
    sys.exit("\n".join(complaints))
sys.stdout.write("".join(text))
"#;

#[track_caller]
fn read_page(bug: &Bug, page: &Path) -> String {
    let check = bug.write("check.py", CHECK);
    let read = Command::new("python3").arg(check).arg(page).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    String::from_utf8(read.stdout).unwrap()
}

#[test]
fn a_page_shows_the_record_and_can_do_nothing() {
    let bug = recorded();
    let file = bug.path("page.html");
    assert_eq!(bug.run(&["export", "s1", "--html", &file]).code, 0);
    let page = fs::read_to_string(&file).unwrap();
    lacks(&page, &["<script", "<img", "\u{1b}"]);
    has(&page, &["&lt;script&gt;alert(&#39;out&#39;)&lt;/script&gt; &amp; &quot;quoted&quot;", "default-src 'none'"]);
    let text = read_page(&bug, Path::new(&file));
    has(
        &text,
        &[
            "breakpoint 1 (hit 1) in work ",
            "breakpoint 1 (hit 2) in work ",
            "<script>alert('out')</script> & \"quoted\"",
            "</pre><img src=x onerror=alert(1)>",
            r"bugeye print 'number + '\''<script>'\'''",
            "hostile.py:5",
        ],
    );
    // Only what changed is marked, with what it was before.
    has(
        &page,
        &[
            "<tr class=\"new\"><td class=\"key\"><code>number</code></td><td><code>1</code></td><td><code>0</code></td></tr>",
        ],
    );
    // Two of the three values are numbers, and so are lines.
    assert_eq!(page.matches("<svg ").count(), 2, "{text}");
    has(&page, &["<small>2 to 4</small>", "<small>4 to 16</small>"]);
}

#[test]
fn a_page_of_a_long_record_is_bounded() {
    let bug = Bug::new("python");
    let folder = bug.home().join("state/sessions/20260101-000000-otter");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("session.json"), r#"{"v":1,"words":["./a"],"started":0}"#).unwrap();
    let mut text = String::new();
    for number in 1..=5000 {
        let long = "n".repeat(if number < 3 { 1_000_000 } else { 0 });
        let locals: Vec<Value> = (0..100)
            .map(|local| serde_json::json!({ "name": format!("v{local}{long}"), "text": "x".repeat(2000) }))
            .take(if number % 500 == 0 { 100 } else { 2 })
            .collect();
        let stop = serde_json::json!({
            "number": number, "reason": "step", "thread": { "id": 1 }, "frame": 0, "locals": locals,
            "frames": [{ "index": 0, "function": format!("f{long}"), "file": "/etc/passwd", "line": 1 }],
        });
        let event = serde_json::json!({
            "v": 1, "seq": number, "ts": number, "session": "x", "thread": 1, "type": "stopped", "data": stop,
        });
        text.push_str(&format!("{event}\n"));
    }
    fs::write(folder.join("events.jsonl"), text).unwrap();
    let file = bug.path("page.html");
    assert_eq!(bug.run(&["export", "20260101-000000-otter", "--html", &file]).code, 0);
    let page = fs::read_to_string(&file).unwrap();
    assert!(page.len() < 2_000_000, "{}", page.len());
    has(&page, &["Stops (5000)", "… 4600 more stops …", "<b>1</b>", "<b>5000</b>", "40 more locals"]);
    // A record may name any file; none of this machine's is shown.
    lacks(&page, &["root:"]);
    read_page(&bug, Path::new(&file));
    bug.run(&["status"]);
}

#[test]
fn a_page_shows_the_source_as_it_was_recorded() {
    use sha2::Digest as _;
    let bug = Bug::new("python");
    let folder = bug.home().join("state/sessions/20260101-000000-otter");
    fs::create_dir_all(folder.join("blobs")).unwrap();
    fs::write(folder.join("session.json"), r#"{"v":1,"words":["./a"],"started":0}"#).unwrap();
    let mut text = String::new();
    let mut tell = |kind: &str, data: Value| {
        let event = serde_json::json!({ "v": 1, "seq": 1, "ts": 1, "session": "x", "type": kind, "data": data });
        text.push_str(&format!("{event}\n"));
    };
    // The file changes between two stops, and a third time to what can't be read.
    for code in ["one\nif a < b:\nthree\n", "one\ntwo\nthree\n", ""] {
        let sha256: String = sha2::Sha256::digest(code).iter().map(|byte| format!("{byte:02x}")).collect();
        if !code.is_empty() {
            fs::write(folder.join("blobs").join(&sha256), code).unwrap();
        }
        tell("source", serde_json::json!({ "file": "/nowhere/x.py", "sha256": sha256 }));
        let frame = serde_json::json!({ "index": 0, "function": "f", "file": "/nowhere/x.py", "line": 2 });
        let stop = serde_json::json!({
            "number": 1, "reason": "step", "thread": { "id": 1 }, "frame": 0, "locals": [], "frames": [frame],
        });
        tell("stopped", stop);
    }
    fs::write(folder.join("events.jsonl"), text).unwrap();
    let out = bug.command(&["export", "20260101-000000-otter", "--html", "-"]).output().unwrap();
    let page = String::from_utf8(out.stdout).unwrap();
    let window =
        |line: &str| format!("<pre class=\"source\">    1 one\n<mark>    2 {line}</mark>\n    3 three\n</pre>");
    has(&page, &[&window("if a &lt; b:"), &window("two")]);
    assert_eq!(page.matches("class=\"source\"").count(), 2);
    bug.run(&["status"]);
}

#[test]
fn a_page_of_an_agent_tells_its_run_in_order() {
    let bug = Bug::new("python");
    let evil = "</code></td></table><img src=x onerror=alert(1)><script>alert('x')</script>\u{1b}[31m\u{202e}";
    let bash = |command: &str| serde_json::json!({ "name": "bash", "input": { "command": command } });
    let say = "echo '</pre><script>alert(2)</script>'; echo password=hunter2hunter2";
    let steps = [
        serde_json::json!({ "text": evil, "tools": [bash("rm -rf precious"), bash(say), bash("exit 3")] }),
        serde_json::json!({ "text": "x".repeat(5000), "tools": [bash("echo never")] }),
    ];
    let script = serde_json::json!({ "turns": [{ "prompt": format!("fix {evil}"), "steps": steps }] }).to_string();
    let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agents/scripted_agent.py");
    let words =
        ["run", "--name", "agent", "--break", "pattern:rm", "--break", "pattern:never", "--agent", "--", "python3"];
    bug.ok(&[&words[..], &[agent.to_str().unwrap(), &script]].concat());
    bug.ok(&["set", "tool_input.command", "echo kept"]);
    bug.ok(&["inject", "user", "<b>hurry</b>"]);
    bug.ok(&["continue"]);
    has(&bug.ok(&["cancel", "--reason", "<i>no</i>"]), &["exited: code 0"]);
    let file = bug.path("page.html");
    assert_eq!(bug.run(&["export", "agent", "--html", &file]).code, 0);
    let page = fs::read_to_string(&file).unwrap();
    lacks(&page, &["<script", "<img", "<b>hurry", "\u{1b}", "\u{202e}", "hunter2"]);
    let text = read_page(&bug, Path::new(&file));
    let run = text.split("Run\n").nth(1).and_then(|rest| rest.split("Stops (").next()).unwrap();
    // Each row in its place; who did what to it is the command line.
    let mut rest = run;
    for part in [
        "prompt\"fix </code></td></table><img src=x onerror=alert(1)>",
        "model call\"</code></td></table>",
        "10 + 5",
        "toolbash command=\"rm -rf precious\"",
        "edittool_input of bash is now command=\"echo kept\", was command=\"rm -rf precious\"cli:",
        "inject\"[debugger] <b>hurry</b>\" as usercli:",
        "resultbash ok: kept",
        " ms",
        "toolbash command=\"echo '</pre><script>alert(2)</script>'; echo password=<redacted>",
        "resultbash ok: </pre><script>alert(2)</script>\\npassword=<redacted>",
        "toolbash command=\"exit 3\"",
        "resultbash failed",
        "model call\"xxx",
        "xxx…",
        "toolbash command=\"echo never\"",
        "cancelbash by debugger: [debugger] <i>no</i>cli:",
        "end of turnturn 1: \"done\"",
        "note3 model calls: 30 + 15 tokens",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is not in\n{rest}"));
        rest = &rest[at + part.len()..];
    }
    // A program has none.
    bug.ok(&["run", "--name", "program", "--", "python3", "exit.py"]);
    let out = bug.command(&["export", "program", "--html", "-"]).output().unwrap();
    lacks(&String::from_utf8(out.stdout).unwrap(), &["<h2>Run"]);
}
