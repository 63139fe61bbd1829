//! A command under way, as the records of the sessions it is about tell it: who asked what, and what came of it.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::{Value, json};

use super::lock;
use crate::commands::{Past, past_of};
use crate::failure::Failure;
use crate::render::cut;
use crate::store::Journal;
use crate::wire::{Answer, Request};

/// The longest word of a command in the record, and the most words.
const MAX_WORD: usize = 1000;
const MAX_WORDS: usize = 200;

/// A command, from its first word to its answer.
#[derive(Debug)]
pub struct Asked {
    who: String,
    /// What its results go by, where whoever asked reads them in the record.
    id: Option<String>,
    name: String,
    typed: Option<Vec<String>>,
    args: Value,
    cwd: PathBuf,
    began: Instant,
    /// Its results answer it again when its record is asked.
    reads: bool,
    /// The records that have it, its number in each, and the stop that it is about.
    told: Mutex<Vec<(Journal, u64, u64)>>,
    /// Those that have its answer, and that one's number.
    settling: Mutex<Vec<(Journal, u64)>>,
}

/// What came of a command.
struct Told<'a> {
    answer: Answer,
    /// What whoever asked is to read.
    text: Option<&'a str>,
    /// Nobody waits for it any more.
    gone: bool,
}

impl Asked {
    #[must_use]
    pub fn new(request: &Request) -> Self {
        let mut args = request.args.clone();
        for list in ["env", "vars"] {
            let list = args.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            list.for_each(|pair| *pair = json!(masked(pair.as_str().unwrap_or_default())));
        }
        let mut typed = request.ctx.typed.as_deref().map(words);
        if request.cmd == "input" {
            // It may be a password.
            args["words"] = json!(["…"]);
            typed = Some(vec!["input".into(), "…".into()]);
        }
        bound(&mut args);
        let reads = matches!(past_of(&request.cmd, &request.args), Past::Reads | Past::Selects);
        Self {
            who: request.ctx.who.clone(),
            id: None,
            name: request.cmd.clone(),
            typed,
            args,
            cwd: request.ctx.cwd.clone(),
            began: Instant::now(),
            reads,
            told: Mutex::default(),
            settling: Mutex::default(),
        }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its words as they were typed, from its name on; else its name.
    #[must_use]
    pub fn words(&self) -> Vec<&str> {
        let typed = self.typed.as_deref().unwrap_or_default();
        match typed.iter().position(|word| *word == self.name) {
            Some(at) => typed[at..].iter().map(String::as_str).collect(),
            None => vec![&self.name],
        }
    }

    /// Whether a record could answer it too.
    #[must_use]
    pub const fn reads(&self) -> bool {
        self.reads
    }

    /// Whoever asked looks for the answer in the record, by this.
    #[must_use]
    pub fn identified(mut self, id: &str) -> Self {
        self.id = Some(id.to_string());
        self
    }

    /// Says in a session's record that this was asked of it; once.
    pub fn tell(&self, journal: &Journal, stop: u64) {
        let mut told = lock(&self.told);
        if told.iter().any(|(known, ..)| known.id() == journal.id()) {
            return;
        }
        let mut data = json!({ "who": self.who, "name": self.name });
        if let Some(id) = &self.id {
            data["id"] = json!(id);
        }
        if let Some(typed) = &self.typed {
            data["typed"] = json!(typed);
        }
        data["args"] = self.args.clone();
        data["cwd"] = json!(self.cwd);
        let seq = journal.append("command", None, data);
        told.push((journal.clone(), seq, stop));
    }

    /// Says in those records what came of it. The answer is taken: whoever asked has it in another form by now, and it
    /// is written by another thread.
    pub fn answered(&self, answer: Answer) {
        self.tell_end(Told { answer, text: None, gone: false });
    }

    /// Waits until those records have it: what was answered has happened, even if the daemon dies right after.
    pub async fn settled(&self) {
        let settling: Vec<(Journal, u64)> = std::mem::take(&mut *lock(&self.settling));
        for (journal, seq) in settling {
            journal.written(seq).await;
        }
    }

    /// As [`Asked::answered`], with what whoever asked is to read.
    pub fn answered_with(&self, result: Option<Value>, text: &str) {
        let answer = Answer { result, ..Answer::new(Ok(Value::Null)) };
        self.tell_end(Told { answer, text: Some(text), gone: false });
    }

    fn tell_end(&self, end: Told<'_>) {
        let Answer { mut result, error, via, .. } = end.answer;
        let failure = error.as_ref();
        let ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut told: Vec<_> = lock(&self.told).drain(..).collect();
        while let Some((journal, seq, stop)) = told.pop() {
            let mut data = json!({ "command": seq, "name": self.name, "who": self.who, "ok": failure.is_none() });
            if let Some(id) = &self.id {
                data["id"] = json!(id);
            }
            if let Some(failure) = failure {
                data["error"] = json!({ "kind": failure.kind, "message": cut(&failure.message, MAX_WORD).0 });
                if (self.reads || self.id.is_some()) && !failure.hints.is_empty() {
                    data["error"]["hints"] = json!(failure.hints);
                }
                if self.reads && !failure.causes.is_empty() {
                    data["error"]["causes"] = json!(failure.causes);
                }
            }
            if let Some(text) = end.text {
                data["text"] = json!(text);
            }
            data["ms"] = json!(ms);
            if end.gone {
                data["gone"] = json!(true);
            }
            if self.reads && !end.gone {
                data["stop"] = json!(stop);
                data["via"] = json!(via);
                let result = if told.is_empty() { result.take() } else { result.clone() };
                if let (Some(result), Some(fields)) = (result, data.as_object_mut()) {
                    fields.insert("result".into(), result);
                }
            }
            let seq = journal.append("command.result", None, data);
            lock(&self.settling).push((journal, seq));
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // Nothing is left to tell, unless its client went away and the wait with it.
        let answer = Answer::new(Err(Failure::refused("whoever asked went away before the answer")));
        self.tell_end(Told { answer, text: None, gone: true });
    }
}

/// `NAME=VALUE` without its value: what is in an environment may be secret.
fn masked(pair: &str) -> String {
    format!("{}=…", pair.split('=').next().unwrap_or_default())
}

/// The words of a command line, without values of variables, and not too many.
fn words(typed: &[String]) -> Vec<String> {
    let mut secret = false;
    let mut program = false;
    let word = |word: &String| {
        program |= word == "--";
        let masks = std::mem::take(&mut secret);
        secret = !program && ["--env", "--var"].contains(&word.as_str());
        match word.split_once('=') {
            Some((flag @ ("--env" | "--var"), pair)) if !program => format!("{flag}={}", masked(pair)),
            _ if masks => masked(word),
            _ => short(word),
        }
    };
    typed.iter().take(MAX_WORDS).map(word).collect()
}

fn short(word: &str) -> String {
    match cut(word, MAX_WORD) {
        (kept, 0) => kept.to_string(),
        (kept, left) => format!("{kept}… ({left} characters more)"),
    }
}

/// Cuts what is too long for the record.
pub(crate) fn bound(value: &mut Value) {
    match value {
        Value::String(text) => *text = short(text),
        Value::Array(items) => {
            items.truncate(MAX_WORDS);
            items.iter_mut().for_each(bound);
        }
        Value::Object(fields) => fields.values_mut().for_each(bound),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Recorder;

    fn request(args: &Value, typed: &[&str]) -> Request {
        let typed: Vec<&str> = typed.to_vec();
        serde_json::from_value(json!({
            "v": 1, "id": 1, "cmd": "run", "args": args,
            "ctx": { "cwd": "/c", "who": "cli:1", "typed": typed },
        }))
        .unwrap()
    }

    #[test]
    fn values_of_variables_are_not_told() {
        let typed = ["run", "--env", "A=secret", "--env=B=secret", "--var", "C=secret", "--", "./a", "--env", "D=open"];
        let asked = Asked::new(&request(&json!({ "env": ["A=secret"], "vars": ["C=secret"], "n": 1 }), &typed));
        assert_eq!(asked.args, json!({ "env": ["A=…"], "vars": ["C=…"], "n": 1 }));
        let told = ["run", "--env", "A=…", "--env=B=…", "--var", "C=…", "--", "./a", "--env", "D=open"];
        assert_eq!(asked.typed.as_deref().unwrap(), told);
    }

    #[test]
    fn what_is_long_is_cut() {
        let asked = Asked::new(&request(&json!({ "text": "x".repeat(5000) }), &["input", "x"]));
        assert!(asked.args["text"].as_str().unwrap().ends_with("… (4000 characters more)"));
    }

    #[test]
    fn a_command_is_told_once_with_its_answer_or_that_nobody_waits() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(folder.path()).unwrap();
        let journal = recorder.create(&json!({}), false).unwrap();
        let asked = Asked::new(&request(&json!({}), &["run"]));
        asked.tell(&journal, 0);
        asked.tell(&journal, 0);
        asked.answered(Answer::new(Ok(json!({ "state": "running" }))));
        drop(asked);
        let asked = Asked::new(&request(&json!({}), &["run"]));
        asked.tell(&journal, 0);
        drop(asked);
        let mut question = request(&json!({}), &["locals"]);
        question.cmd = "locals".into();
        let asked = Asked::new(&question);
        asked.tell(&journal, 3);
        asked.answered(Answer { via: Some("x 1".into()), ..Answer::new(Ok(json!({ "variables": [] }))) });
        drop(asked);
        let asked = Asked::new(&question);
        asked.tell(&journal, 3);
        asked.answered(Answer::new(Err(Failure::refused("no").hint("yes"))));
        drop(asked);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(recorder.flush());
        let path = folder.path().join("sessions").join(journal.id()).join("events.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let shape: Vec<_> = events.iter().map(|event| (event["type"].as_str().unwrap(), &event["data"])).collect();
        assert_eq!(shape.len(), 8, "{shape:?}");
        assert_eq!(*shape[0].1, json!({ "who": "cli:1", "name": "run", "typed": ["run"], "args": {}, "cwd": "/c" }));
        assert_eq!(
            (shape[1].0, &shape[1].1["command"], &shape[1].1["ok"]),
            ("command.result", &json!(1), &json!(true))
        );
        assert_eq!((&shape[3].1["command"], &shape[3].1["ok"]), (&json!(3), &json!(false)));
        assert_eq!((&shape[3].1["error"]["kind"], &shape[3].1["gone"]), (&json!("refused"), &json!(true)));
        assert!(shape[1].1.get("result").is_none(), "what ran the program is told by its stops");
        let looked = shape[5].1;
        assert_eq!((&looked["stop"], &looked["via"]), (&json!(3), &json!("x 1")));
        assert_eq!(looked["result"], json!({ "variables": [] }));
        assert_eq!(shape[7].1["error"], json!({ "kind": "refused", "message": "no", "hints": ["yes"] }));
    }
}
