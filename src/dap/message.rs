//! One protocol message, in or out.

use serde_json::{Map, Value, json};

/// A message with its payload still loose: what is in it is read where it is used.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    Request { seq: i64, command: String, arguments: Value },
    Response { request_seq: i64, command: String, success: bool, message: Option<String>, body: Value },
    Event { event: String, body: Value },
}

impl Message {
    /// Reads a message from JSON; None when it is no message of the protocol.
    #[must_use]
    pub fn from_json(mut json: Value) -> Option<Self> {
        let object = json.as_object_mut()?;
        match object.get("type")?.as_str()? {
            "request" => Some(Self::Request {
                seq: object.get("seq")?.as_i64()?,
                command: text(object, "command")?,
                arguments: take(object, "arguments"),
            }),
            "response" => Some(Self::Response {
                request_seq: object.get("request_seq")?.as_i64()?,
                command: text(object, "command").unwrap_or_default(),
                success: object.get("success").and_then(Value::as_bool).unwrap_or(false),
                message: text(object, "message"),
                body: take(object, "body"),
            }),
            "event" => Some(Self::Event { event: text(object, "event")?, body: take(object, "body") }),
            _ => None,
        }
    }

    /// The JSON to send, numbered `seq`.
    #[must_use]
    pub fn to_json(&self, seq: i64) -> Value {
        let mut json = match self {
            Self::Request { seq, command, arguments } => {
                let mut json = json!({ "seq": seq, "type": "request", "command": command });
                if !arguments.is_null() {
                    json["arguments"] = arguments.clone();
                }
                return json;
            }
            Self::Response { request_seq, command, success, message, body } => {
                let mut json = json!({
                    "seq": seq, "type": "response", "request_seq": request_seq, "command": command, "success": success,
                });
                if let Some(message) = message {
                    json["message"] = Value::String(message.clone());
                }
                if !body.is_null() {
                    json["body"] = body.clone();
                }
                return json;
            }
            Self::Event { event, .. } => json!({ "seq": seq, "type": "event", "event": event }),
        };
        if let Self::Event { body, .. } = self
            && !body.is_null()
        {
            json["body"] = body.clone();
        }
        json
    }

    /// What went wrong, from wherever this adapter puts it.
    #[must_use]
    pub fn error_text(message: Option<&str>, body: &Value) -> String {
        let detail = body.pointer("/error/format").and_then(Value::as_str).map(|format| fill(format, body));
        let text = match (detail, message) {
            (Some(detail), _) if !detail.is_empty() => detail,
            (_, Some(message)) if !message.is_empty() => message.to_string(),
            _ => body.get("message").and_then(Value::as_str).unwrap_or("no reason given").to_string(),
        };
        text.trim().to_string()
    }
}

/// Fills `{name}` of an error format from `error.variables`.
fn fill(format: &str, body: &Value) -> String {
    let mut text = format.to_string();
    if let Some(variables) = body.pointer("/error/variables").and_then(Value::as_object) {
        for (name, value) in variables {
            if let Some(value) = value.as_str() {
                text = text.replace(&format!("{{{name}}}"), value);
            }
        }
    }
    text
}

fn text(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get(key)?.as_str().map(Into::into)
}

fn take(object: &mut Map<String, Value>, key: &str) -> Value {
    object.remove(key).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_adapters_really_send_is_read() {
        let cases = [
            (json!({"seq":0,"type":"event","event":"initialized"}), true),
            (json!({"type":"response","request_seq":3,"success":true}), true),
            (json!({"type":"response","request_seq":3,"command":"","success":false,"message":"x"}), true),
            (json!({"seq":-1,"type":"request","command":"runInTerminal","arguments":{}}), true),
            (json!({"type":"event"}), false),
            (json!({"type":"telegram"}), false),
            (json!([1, 2]), false),
            (json!("x"), false),
        ];
        for (json, readable) in cases {
            assert_eq!(Message::from_json(json.clone()).is_some(), readable, "{json}");
        }
    }

    #[test]
    fn an_error_is_found_wherever_it_hides() {
        let body = json!({"error":{"format":"no {what} here","variables":{"what":"frame"}}});
        assert_eq!(Message::error_text(Some("generic"), &body), "no frame here");
        assert_eq!(Message::error_text(Some("plain"), &Value::Null), "plain");
        assert_eq!(Message::error_text(None, &json!({"message":"in the body"})), "in the body");
        assert_eq!(Message::error_text(None, &Value::Null), "no reason given");
    }

    #[test]
    fn a_message_survives_the_round_trip() {
        let messages = [
            Message::Request { seq: 7, command: "threads".into(), arguments: json!({"a":1}) },
            Message::Event { event: "stopped".into(), body: json!({"threadId":1}) },
            Message::Response {
                request_seq: 7,
                command: "threads".into(),
                success: false,
                message: Some("no".into()),
                body: Value::Null,
            },
        ];
        for message in messages {
            assert_eq!(Message::from_json(message.to_json(7)), Some(message));
        }
    }
}
