//! Whose an id is. Every process counts its frames, variables and sources from the same small numbers; those of a child
//! are told to the client with the child's number above them, and the program's own stay as they are.

use serde_json::Value;

/// A child's number stands above this many bits of its ids. The protocol's own ids fit below.
const BITS: u32 = 32;

/// Fields of a request that say whose it is, apart from the thread.
const OWNED: [&str; 2] = ["variablesReference", "sourceReference"];

/// The process that a request's ids belong to, and those ids as that process knows them; None when it has none.
pub(super) fn take_owner(arguments: &mut Value) -> Option<usize> {
    let mut owner = localise(arguments.get_mut("frameId"));
    for name in OWNED {
        owner = owner.or(localise(arguments.get_mut(name).filter(|id| is_reference(id))));
    }
    let source = arguments.get_mut("source").and_then(|source| source.get_mut("sourceReference"));
    owner.or_else(|| localise(source.filter(|id| is_reference(id))))
}

/// Zero refers to nothing; only frames may have that number.
fn is_reference(id: &Value) -> bool {
    id.as_i64().is_some_and(|number| number != 0)
}

fn localise(id: Option<&mut Value>) -> Option<usize> {
    let id = id?;
    let number = id.as_i64()?;
    let owner = usize::try_from(number >> BITS).ok()?;
    *id = Value::from(number - (i64::try_from(owner).ok()? << BITS));
    Some(owner)
}

/// Puts a child's number above the ids in what it says.
pub(super) fn mark(value: &mut Value, owner: usize) {
    if owner == 0 {
        return;
    }
    if let Some(frames) = value.get_mut("stackFrames").and_then(Value::as_array_mut) {
        for frame in frames {
            globalise(frame.get_mut("id"), owner);
        }
    }
    mark_references(value, owner);
}

fn mark_references(value: &mut Value, owner: usize) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "variablesReference" | "sourceReference" if is_reference(field) => globalise(Some(field), owner),
                    _ => mark_references(field, owner),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mark_references(item, owner)),
        _ => {}
    }
}

fn globalise(id: Option<&mut Value>, owner: usize) {
    if let Some(id) = id
        && let Some(number) = id.as_i64()
        && let Ok(owner) = i64::try_from(owner)
    {
        *id = Value::from((owner << BITS) + number);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_id_comes_back_to_the_process_it_came_from() {
        let mut body = json!({ "stackFrames": [{ "id": 7, "source": { "sourceReference": 0 } }] });
        mark(&mut body, 3);
        let mut arguments = json!({ "expression": "i", "frameId": body["stackFrames"][0]["id"] });
        assert_eq!(take_owner(&mut arguments), Some(3));
        assert_eq!(arguments["frameId"], 7);
        assert_eq!(body["stackFrames"][0]["source"]["sourceReference"], 0);
        // A frame may have the number 0.
        let mut body = json!({ "stackFrames": [{ "id": 0 }] });
        mark(&mut body, 3);
        let mut arguments = json!({ "frameId": body["stackFrames"][0]["id"] });
        assert_eq!((take_owner(&mut arguments), &arguments["frameId"]), (Some(3), &json!(0)));

        let mut body = json!({ "variables": [{ "variablesReference": 5 }, { "variablesReference": 0 }] });
        mark(&mut body, 1);
        assert_eq!(body["variables"][1]["variablesReference"], 0);
        let mut arguments = json!({ "variablesReference": body["variables"][0]["variablesReference"] });
        assert_eq!((take_owner(&mut arguments), &arguments["variablesReference"]), (Some(1), &json!(5)));
    }

    #[test]
    fn the_programs_own_ids_stay() {
        let mut body = json!({ "variablesReference": 5 });
        mark(&mut body, 0);
        assert_eq!(body, json!({ "variablesReference": 5 }));
        assert_eq!(take_owner(&mut body), Some(0));
        assert_eq!(take_owner(&mut json!({ "variablesReference": 0 })), None);
    }
}
