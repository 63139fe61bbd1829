//! The subset of the protocol's types used here, read tolerantly: ids are i64, anything may be missing.

use serde::Deserialize;
use serde_json::Value;

/// Reads a body; what does not fit gives the type's default, since a malformed answer must not end a session.
#[must_use]
pub fn read<T: for<'de> Deserialize<'de> + Default>(body: &Value) -> T {
    T::deserialize(body).or_else(|_| T::deserialize(&without_nulls(body))).unwrap_or_default()
}

/// A field that is null is one that is missing.
fn without_nulls(body: &Value) -> Value {
    match body {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoppedBody {
    pub reason: String,
    pub description: Option<String>,
    pub text: Option<String>,
    pub thread_id: Option<i64>,
    pub all_threads_stopped: Option<bool>,
    pub hit_breakpoint_ids: Vec<i64>,
    /// What the condition of the breakpoint that was hit threw; only our own translators tell.
    pub condition_error: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContinuedBody {
    pub thread_id: Option<i64>,
    pub all_threads_continued: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OutputBody {
    pub category: Option<String>,
    pub output: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExitedBody {
    pub exit_code: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProcessBody {
    pub name: Option<String>,
    pub system_process_id: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ThreadBody {
    pub reason: String,
    pub thread_id: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Source {
    pub name: Option<String>,
    pub path: Option<String>,
}

/// An adapter's breakpoint, from a response or an event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AdapterBreakpoint {
    pub id: Option<i64>,
    pub verified: bool,
    pub message: Option<String>,
    pub source: Option<Source>,
    pub line: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BreakpointsBody {
    pub breakpoints: Vec<AdapterBreakpoint>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BreakpointEventBody {
    pub reason: String,
    pub breakpoint: AdapterBreakpoint,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Thread {
    pub id: i64,
    pub name: String,
    /// It goes on while others stand; said by our own translators, and by no other adapter.
    pub running: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ThreadsBody {
    pub threads: Vec<Thread>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StackFrame {
    pub id: i64,
    pub name: String,
    pub source: Option<Source>,
    pub line: Option<i64>,
    pub column: Option<i64>,
    pub instruction_pointer_reference: Option<String>,
    pub module_id: Option<Value>,
    pub presentation_hint: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StackTraceBody {
    pub stack_frames: Vec<StackFrame>,
    pub total_frames: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scope {
    pub name: String,
    pub presentation_hint: Option<String>,
    pub variables_reference: i64,
    pub named_variables: Option<i64>,
    pub indexed_variables: Option<i64>,
    pub expensive: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScopesBody {
    pub scopes: Vec<Scope>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PresentationHint {
    pub kind: Option<String>,
    pub attributes: Vec<String>,
    pub visibility: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DapVariable {
    pub name: String,
    pub value: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub variables_reference: i64,
    pub named_variables: Option<i64>,
    pub indexed_variables: Option<i64>,
    pub evaluate_name: Option<String>,
    pub memory_reference: Option<String>,
    pub presentation_hint: Option<PresentationHint>,
    /// Characters that our own adapter has left out of the value.
    pub cut: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VariablesBody {
    pub variables: Vec<DapVariable>,
}

/// The answer to `evaluate`, `setVariable` and `setExpression`; adapters mix up `result` and `value`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EvaluateBody {
    #[serde(alias = "value")]
    pub result: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub variables_reference: i64,
    pub named_variables: Option<i64>,
    pub indexed_variables: Option<i64>,
    pub memory_reference: Option<String>,
    /// Characters that our own adapter has left out of the value.
    pub cut: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExceptionDetails {
    pub message: Option<String>,
    pub type_name: Option<String>,
    pub full_type_name: Option<String>,
    pub stack_trace: Option<String>,
    pub inner_exception: Vec<ExceptionDetails>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExceptionInfoBody {
    pub exception_id: String,
    pub description: Option<String>,
    pub break_mode: Option<String>,
    pub details: Option<ExceptionDetails>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExceptionFilter {
    pub filter: String,
    pub label: String,
    #[serde(rename = "default")]
    pub on_by_default: bool,
}

/// What an adapter says it can do. Anything not named is false.
#[derive(Debug, Clone, Default)]
pub struct Capabilities(serde_json::Map<String, Value>);

impl Capabilities {
    /// Adds what an `initialize` answer or a `capabilities` event says.
    pub fn merge(&mut self, body: &Value) {
        if let Some(object) = body.as_object() {
            self.0.extend(object.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
    }

    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    #[must_use]
    pub fn exception_filters(&self) -> Vec<ExceptionFilter> {
        self.0.get("exceptionBreakpointFilters").map(read).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_bodies_are_read_without_loss_of_the_rest() {
        let stack: StackTraceBody = read(&json!({"stackFrames":[{"id":524_288,"name":"f"}]}));
        assert_eq!((stack.stack_frames[0].id, stack.stack_frames[0].line), (524_288, None));
        let exited: ExitedBody = read(&json!({"exitCode":-11}));
        assert_eq!(exited.exit_code, Some(-11));
        let threads: ThreadsBody = read(&json!({"threads":[{"id":-1,"name":""}]}));
        assert_eq!(threads.threads[0].id, -1);
        let set: EvaluateBody = read(&json!({"value":"3"}));
        assert_eq!(set.result, "3");
        let nothing: ScopesBody = read(&Value::Null);
        assert!(nothing.scopes.is_empty());
    }

    #[test]
    fn capabilities_grow() {
        let mut capabilities = Capabilities::default();
        capabilities.merge(&json!({"supportsConfigurationDoneRequest":true}));
        assert!(!capabilities.has("supportsRestartRequest"));
        capabilities.merge(&json!({"supportsRestartRequest":true}));
        assert!(capabilities.has("supportsRestartRequest") && capabilities.has("supportsConfigurationDoneRequest"));
    }
}
