//! Arguments held against their tool's schema, so that a mistake is told in the words of the tool and with what would be
//! right, before the command line sees it.

use rmcp::model::JsonObject;
use serde_json::Value;

use crate::nearest::nearest;

/// How much of a wrong value is told.
const SHOWN: usize = 80;

/// What is wrong with a call's arguments, if anything is.
pub fn check(tool: &str, schema: &JsonObject, arguments: &JsonObject) -> Result<(), String> {
    for (name, value) in arguments {
        let Some(property) = schema.get(name) else {
            let names = schema.keys().map(String::as_str);
            let advice = match nearest(name, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has: {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(format!("{tool} has no argument `{name}`; {advice}"));
        };
        if let Some(wanted) = unmet(property, value) {
            let mut shown: String = value.to_string().chars().take(SHOWN).collect();
            if shown.chars().count() == SHOWN {
                shown.push('…');
            }
            return Err(format!("`{name}` is to be {wanted}, not {shown}"));
        }
    }
    Ok(())
}

/// What a value should be and is not. Forms that can only mean one thing are taken: `"3"` for 3, one text for a list.
fn unmet(property: &Value, value: &Value) -> Option<String> {
    let whole = |value: &Value| match value {
        Value::String(text) => text.parse::<u64>().is_ok(),
        other => other.is_u64(),
    };
    if let Some(words) = property["enum"].as_array() {
        let named: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return (!value.is_null() && !words.contains(value)).then(|| format!("one of {}", named.join(", ")));
    }
    let (is_met, wanted) = match (property["type"].as_str().unwrap_or_default(), value) {
        (_, Value::Null) => return None,
        ("integer", value) => (whole(value), "a whole number"),
        // As the command line takes them: `2.5`, `5s`.
        ("number", Value::String(text)) => (text.starts_with(|first: char| first.is_ascii_digit()), "a number"),
        ("number", value) => (value.as_f64().is_some_and(|number| number >= 0.0), "a number"),
        ("boolean", value) => (value.is_boolean(), "true or false"),
        ("array", Value::Array(items)) if property["items"]["type"] == "integer" => {
            (items.iter().all(whole), "a list of whole numbers")
        }
        ("array", value) if property["items"]["type"] == "integer" => (whole(value), "a list of whole numbers"),
        ("array", Value::Array(items)) => {
            (items.iter().all(|item| item.is_string() || item.is_number()), "a list of texts")
        }
        ("array", value) => (value.is_string() || value.is_number(), "a list of texts"),
        (_, value) => (value.is_string() || value.is_number(), "a text"),
    };
    (!is_met).then(|| wanted.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(arguments: Value) -> String {
        let schema = json!({
            "at": { "type": "array", "items": { "type": "string" } },
            "ids": { "type": "array", "items": { "type": "integer" } },
            "count": { "type": "integer" },
            "wait": { "type": "number" },
            "full": { "type": "boolean" },
            "name": { "type": "string" },
            "how": { "type": "string", "enum": ["next", "step"] },
        });
        let (Value::Object(schema), Value::Object(arguments)) = (schema, arguments) else { return "no object".into() };
        check("tool", &schema, &arguments).err().unwrap_or_default()
    }

    #[test]
    fn what_can_mean_one_thing_is_taken() {
        for right in [
            json!({}),
            json!({ "at": ["a", 3], "ids": [1, "2"], "count": 3, "wait": 2.5, "full": true, "name": "x", "how": "next" }),
            json!({ "at": "a", "ids": 1, "count": "3", "wait": "5s", "name": 7 }),
            json!({ "at": null, "ids": null, "count": null, "wait": null, "full": null, "name": null, "how": null }),
        ] {
            assert_eq!(checked(right.clone()), "", "{right}");
        }
    }

    #[test]
    fn a_mistake_is_told_with_what_would_be_right() {
        for (wrong, words) in [
            (json!({ "colour": 1 }), "tool has no argument `colour`; it has: at, ids, count, wait, full, name, how"),
            (json!({ "coun": 1 }), "tool has no argument `coun`; did you mean `count`?"),
            (json!({ "at": [["a"]] }), "`at` is to be a list of texts, not [[\"a\"]]"),
            (json!({ "at": true }), "`at` is to be a list of texts, not true"),
            (json!({ "ids": ["a"] }), "`ids` is to be a list of whole numbers, not [\"a\"]"),
            (json!({ "count": -1 }), "`count` is to be a whole number, not -1"),
            (json!({ "wait": "soon" }), "`wait` is to be a number, not \"soon\""),
            (json!({ "full": "yes" }), "`full` is to be true or false, not \"yes\""),
            (json!({ "name": {} }), "`name` is to be a text, not {}"),
            (json!({ "how": "back" }), "`how` is to be one of next, step, not \"back\""),
        ] {
            assert_eq!(checked(wrong), words);
        }
        assert!(checked(json!({ "name": ["x".repeat(1000)] })).len() < 200);
    }
}
