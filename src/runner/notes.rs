//! What goes into the record beside what the session says itself: values that were asked for, with their answers, and
//! what becomes of breakpoints.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::model::{Binding, Breakpoint, BreakpointReport, Value, View};
use crate::render::cut;
use crate::session::{Answer, Op};

/// The longest text of one value in the record.
const MAX_TEXT: usize = 8000;

/// An operation that asks for values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Asked {
    /// `eval`, `set` and `raw`: what the record has of the question.
    One(Json),
    /// The expressions of a look, and its view where that is not the usual one.
    Several(Vec<String>, Option<View>),
}

impl Asked {
    pub(super) fn of(op: &Op) -> Option<Self> {
        match op {
            Op::Evaluate { expression, .. } => Some(Self::One(json!({ "expression": expression }))),
            Op::Set { target, value, .. } => Some(Self::One(json!({ "expression": target, "set": value }))),
            Op::Raw(text) => Some(Self::One(json!({ "raw": text }))),
            Op::Look(look) if !look.expressions.is_empty() => {
                let view = Some(look.view).filter(|view| *view != View::default());
                Some(Self::Several(look.expressions.clone(), view))
            }
            _ => None,
        }
    }

    /// The events that tell the question with its answer, each with its thread.
    pub(super) fn answered(self, answer: &Result<Answer, Failure>) -> Vec<(Option<i64>, Json)> {
        let value = |value: &Value| json!({ "value": bounded(value.clone()) });
        let error = |text: &str| json!({ "error": cut(text, MAX_TEXT).0 });
        match (self, answer) {
            (Self::One(asked), Ok(Answer::Text(text))) => {
                vec![(None, joined(asked, value(&Value { text: text.clone(), ..Value::default() })))]
            }
            (Self::One(asked), Err(failure)) => vec![(None, joined(asked, error(&failure.message)))],
            (Self::One(asked), Ok(_)) => vec![(None, asked)],
            (Self::Several(_, view), Ok(Answer::Seen(seen))) => {
                let told = seen.values.iter().map(|(expression, found)| {
                    let mut asked = json!({ "expression": expression, "frame": seen.frame });
                    if let Some(view) = view {
                        asked["view"] = json!(view);
                    }
                    (Some(seen.thread.id), joined(asked, found.as_ref().map_or_else(|text| error(text), value)))
                });
                told.collect()
            }
            (Self::Several(expressions, _), Err(failure)) => {
                let told = |expression| (None, joined(json!({ "expression": expression }), error(&failure.message)));
                expressions.into_iter().map(told).collect()
            }
            (Self::Several(..), Ok(_)) => Vec::new(),
        }
    }
}

/// The source file that a stop is shown in, which the record keeps as it is.
pub(super) fn shown_file<'a>(kind: &str, data: &'a Json) -> Option<&'a Path> {
    if kind != "stopped" {
        return None;
    }
    let index = usize::try_from(data.get("frame")?.as_u64()?).ok()?;
    let file = data.get("frames")?.get(index)?.get("file")?.as_str()?;
    Some(Path::new(file)).filter(|file| file.is_absolute())
}

fn joined(mut asked: Json, answer: Json) -> Json {
    if let (Json::Object(asked), Json::Object(answer)) = (&mut asked, answer) {
        asked.extend(answer);
    }
    asked
}

fn bounded(mut value: Value) -> Value {
    let (kept, left) = cut(&value.text, MAX_TEXT);
    if left > 0 {
        value.cut += left as u64;
        value.text = kept.to_string();
    }
    value
}

/// What became of breakpoints since the record last told of them; hits are told by the stops they make.
pub(super) fn breakpoints(
    told: &mut BTreeMap<u32, Binding>,
    wishes: &[Breakpoint],
    now: &BTreeMap<u32, Binding>,
) -> Vec<Json> {
    let mut news = Vec::new();
    // One that is set anew is not at the adapter for a moment, and still wished for.
    let gone: Vec<u32> = told.keys().copied().filter(|id| !wishes.iter().any(|wish| wish.id == *id)).collect();
    for id in gone {
        told.remove(&id);
        news.push(json!({ "id": id, "removed": true }));
    }
    for wish in wishes {
        let Some(binding) = now.get(&wish.id) else { continue };
        let known = told.get(&wish.id).map(|known| (known.state, known.line, &known.file, &known.why));
        if known != Some((binding.state, binding.line, &binding.file, &binding.why)) {
            told.insert(wish.id, binding.clone());
            news.push(json!(BreakpointReport { wish: wish.clone(), binding: Some(binding.clone()) }));
        }
    }
    news
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BindingState, Place};

    #[test]
    fn a_question_is_told_with_its_answer() {
        let asked = Asked::of(&Op::Raw("bt".into())).unwrap();
        let told = asked.clone().answered(&Ok(Answer::Text("x".repeat(MAX_TEXT + 2))));
        assert_eq!(told[0].1["raw"], "bt");
        assert_eq!(told[0].1["value"]["cut"], 2);
        let told = asked.answered(&Err(Failure::refused("no")));
        assert_eq!(told, [(None, json!({ "raw": "bt", "error": "no" }))]);
        assert_eq!(Asked::of(&Op::Threads), None);
    }

    #[test]
    fn a_breakpoint_is_told_when_it_is_set_moves_and_goes() {
        let wish = Breakpoint::new(1, Place::Line { file: "/a.c".into(), line: 3 }, "a.c:3");
        let at = |line, hits| {
            let state = if line == 3 { BindingState::Verified } else { BindingState::Moved };
            BTreeMap::from([(1, Binding { state, line: Some(line), file: None, why: None, hits })])
        };
        let mut told = BTreeMap::new();
        let news = breakpoints(&mut told, std::slice::from_ref(&wish), &at(3, 0));
        assert_eq!((news.len(), &news[0]["asked"]), (1, &json!("a.c:3")));
        assert!(breakpoints(&mut told, std::slice::from_ref(&wish), &at(3, 5)).is_empty());
        assert!(breakpoints(&mut told, std::slice::from_ref(&wish), &BTreeMap::new()).is_empty());
        assert_eq!(breakpoints(&mut told, std::slice::from_ref(&wish), &at(4, 5))[0]["binding"]["state"], "moved");
        assert_eq!(breakpoints(&mut told, &[], &BTreeMap::new()), [json!({ "id": 1, "removed": true })]);
    }
}
