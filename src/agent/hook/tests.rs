//! Events as the agents send them, and what they are told.

use serde_json::json;

use super::*;
use crate::agent::gate::{Message, Tap, Told};

/// What came to the broker, and what was printed.
struct Went {
    asks: Vec<Ask>,
    notes: Vec<Note>,
    attached: Vec<Json>,
    said: Json,
}

/// Puts an event, and answers its questions in turn; further ones are let through.
fn put(agent: &str, input: Json, answers: &[Answer]) -> Went {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (line, mut told) = Line::new(Tap::Hook);
        let mut went = Went { asks: Vec::new(), notes: Vec::new(), attached: Vec::new(), said: Json::Null };
        let mut left = answers.iter().cloned();
        let broker = async {
            while let Some(told) = told.recv().await {
                match told {
                    Told::Ask { ask, reply, .. } => {
                        went.asks.push(*ask);
                        let _ = reply.send(left.next().unwrap_or_default());
                    }
                    Told::Note { note, .. } => went.notes.push(note),
                    Told::Attached { about, .. } => went.attached.push(about),
                    Told::Withdrawn { .. } | Told::Ended { .. } => {}
                }
            }
        };
        let asking = async {
            let reply = handle(&line, agent, input).await;
            drop(line);
            reply
        };
        let (reply, ()) = tokio::join!(asking, broker);
        assert_eq!((reply.stderr.as_str(), reply.code), ("", 0));
        went.said = serde_json::from_str(&reply.stdout).unwrap();
        went
    })
}

fn says(agent: &str, input: &Json, answer: Answer) -> Json {
    put(agent, input.clone(), &[answer]).said
}

fn deny() -> Answer {
    Answer { verdict: Verdict::Deny { reason: "[debugger] no".into() }, inject: Vec::new() }
}

fn abort() -> Answer {
    Answer { verdict: Verdict::Abort { reason: "[debugger] end".into() }, inject: Vec::new() }
}

fn edit(value: Json) -> Answer {
    Answer { verdict: Verdict::Edit { value }, inject: Vec::new() }
}

fn inject() -> Answer {
    let message = Message { role: "user".into(), text: "[debugger] more".into() };
    Answer { verdict: Verdict::Proceed, inject: vec![message] }
}

fn claude(event: &str, more: Json) -> Json {
    let mut input =
        json!({"session_id": "db293e58", "transcript_path": "/t.jsonl", "cwd": "/p", "hook_event_name": event});
    let Json::Object(more) = more else { panic!("no members: {more}") };
    input.as_object_mut().unwrap().extend(more);
    input
}

fn bash() -> Json {
    json!({"tool_name": "Bash", "tool_input": {"command": "ls", "description": "x"}, "tool_use_id": "toolu_001"})
}

#[test]
fn claude_s_tool_is_asked_about_before_it_runs() {
    let input = claude("PreToolUse", bash());
    let went = put("claude", input.clone(), &[]);
    let ask = &went.asks[0];
    assert_eq!((ask.point, ask.thread.as_str()), (Point::BeforeTool, "main"));
    assert_eq!((ask.name.as_deref(), ask.span.as_deref()), (Some("Bash"), Some("toolu_001")));
    assert_eq!(ask.value, json!({"command": "ls", "description": "x"}));
    assert_eq!(ask.powers, Powers { synthesize: false, ..Powers::ALL });
    assert_eq!(went.said, json!({}));
    let of = |members: Json| {
        let mut members = members;
        members["hookEventName"] = json!("PreToolUse");
        json!({"hookSpecificOutput": members})
    };
    let denied = of(json!({"permissionDecision": "deny", "permissionDecisionReason": "[debugger] no"}));
    assert_eq!(says("claude", &input, deny()), denied);
    assert_eq!(
        says("claude", &input, edit(json!({"command": "pwd"}))),
        of(json!({"updatedInput": {"command": "pwd"}}))
    );
    assert_eq!(says("claude", &input, inject()), of(json!({"additionalContext": "[debugger] more"})));
    let ended = says("claude", &input, abort());
    assert_eq!((&ended["continue"], &ended["stopReason"]), (&json!(false), &json!("[debugger] end")));
    assert_eq!(ended["hookSpecificOutput"]["permissionDecision"], "deny");
}

#[test]
fn claude_s_output_keeps_its_shape_when_it_is_replaced() {
    let mut more = bash();
    more["tool_response"] = json!({"stdout": "a", "stderr": "", "interrupted": false, "isImage": false});
    more["duration_ms"] = json!(52);
    let input = claude("PostToolUse", more);
    let ask = &put("claude", input.clone(), &[]).asks[0];
    assert_eq!((ask.point, ask.ok, ask.ms), (Point::AfterTool, Some(true), Some(52)));
    assert_eq!(ask.input, Some(json!({"command": "ls", "description": "x"})));
    let said = says("claude", &input, edit(json!("other")));
    let output = json!({"stdout": "other", "stderr": "", "interrupted": false, "isImage": false});
    assert_eq!(said, json!({"hookSpecificOutput": {"updatedToolOutput": output, "hookEventName": "PostToolUse"}}));
    let whole = json!({"stdout": "", "stderr": "failed", "interrupted": false, "isImage": false});
    let said = says("claude", &input, edit(whole.clone()));
    assert_eq!(said["hookSpecificOutput"]["updatedToolOutput"], whole);
}

#[test]
fn a_prompt_of_claude_s_is_two_questions_with_one_answer() {
    let input = claude("UserPromptSubmit", json!({"prompt": "say hello", "permission_mode": "default"}));
    let went = put("claude", input.clone(), &[inject(), inject()]);
    assert_eq!(went.asks.iter().map(|ask| ask.point).collect::<Vec<_>>(), [Point::BeforePrompt, Point::BeforeModel]);
    assert_eq!(went.asks[0].value, "say hello");
    assert_eq!((went.notes[0].kind.as_str(), &went.notes[0].data["text"]), ("input.user", &json!("say hello")));
    let context = json!({"additionalContext": "[debugger] more\n[debugger] more", "hookEventName": "UserPromptSubmit"});
    assert_eq!(went.said, json!({"hookSpecificOutput": context}));
    // A prompt that is refused asks no model.
    let went = put("claude", input.clone(), &[deny()]);
    assert_eq!((went.asks.len(), went.said), (1, json!({"decision": "block", "reason": "[debugger] no"})));
    let went = put("claude", input, &[inject(), abort()]);
    assert_eq!(went.said, json!({"continue": false, "stopReason": "[debugger] end"}));
}

#[test]
fn claude_goes_on_instead_of_stopping() {
    let stop = claude("Stop", json!({"stop_hook_active": false, "last_assistant_message": "All done."}));
    assert_eq!(put("claude", stop.clone(), &[]).asks[0].value, "All done.");
    assert_eq!(says("claude", &stop, inject()), json!({"decision": "block", "reason": "[debugger] more"}));
    let both = Answer { inject: inject().inject, ..deny() };
    assert_eq!(says("claude", &stop, both)["reason"], "[debugger] no\n[debugger] more");
    let batch = claude("PostToolBatch", json!({"tool_calls": []}));
    assert_eq!(put("claude", batch.clone(), &[]).asks[0].point, Point::BeforeModel);
    let context = json!({"additionalContext": "[debugger] more", "hookEventName": "PostToolBatch"});
    assert_eq!(says("claude", &batch, inject()), json!({"hookSpecificOutput": context}));
}

#[test]
fn a_sub_agent_of_claude_s_has_left_only_if_it_may_stop() {
    let more = json!({"agent_id": "a1", "agent_type": "Explore", "last_assistant_message": "found"});
    let input = claude("SubagentStop", more);
    let went = put("claude", input.clone(), &[]);
    assert_eq!((went.asks[0].thread.as_str(), went.asks[0].point), ("a1", Point::BeforeStop));
    assert_eq!((went.notes[0].kind.as_str(), went.notes[0].thread.as_str()), ("agent.exit", "a1"));
    assert!(put("claude", input, &[inject()]).notes.is_empty());
}

#[test]
fn what_holds_nothing_is_a_note() {
    for (event, kind) in [
        ("SessionEnd", "session.end"),
        ("SubagentStart", "agent.spawn"),
        ("PreCompact", "context.compact"),
        ("PermissionRequest", "permission.request"),
        ("PermissionDenied", "tool.denied"),
    ] {
        let went = put("claude", claude(event, json!({"reason": "other"})), &[]);
        assert_eq!((went.asks.len(), went.said), (0, json!({})), "{event}");
        assert_eq!(went.notes[0].kind, kind);
    }
    let went = put("codex", claude("SessionStart", json!({"source": "startup", "model": "m"})), &[]);
    assert_eq!(went.attached, [json!({"model": "m", "cwd": "/p", "agent": "codex", "session": "db293e58"})]);
}

/// The broker and whoever reads a record know them by these names alone.
#[test]
fn what_is_told_has_the_names_of_a_record() {
    let told = |agent: &str, input: Json| put(agent, input, &[]).notes.remove(0).data;
    let sub = json!({"agent_id": "a1", "agent_type": "Explore"});
    for agent in ["claude", "codex"] {
        assert_eq!(told(agent, claude("SubagentStart", sub.clone())), json!({"type": "Explore"}));
        assert_eq!(told(agent, claude("SubagentStop", sub.clone())), json!({"type": "Explore"}));
    }
    let mut denied = bash();
    denied["reason"] = json!("no");
    let input = json!({"command": "ls", "description": "x"});
    let names = json!({"name": "Bash", "input": input, "reason": "no"});
    assert_eq!(told("claude", claude("PermissionDenied", denied)), names);
    assert_eq!(told("claude", claude("PermissionRequest", bash())), json!({"name": "Bash", "input": input}));
    let spawned = json!({"hook_event_name": "subagentStart", "subagent_type": "explore", "task": "find it"});
    assert_eq!(told("cursor", spawned), json!({"type": "explore", "prompt": "find it"}));
    let left = json!({"hook_event_name": "subagentStop", "subagent_type": "explore", "status": "completed"});
    assert_eq!(told("cursor", left), json!({"type": "explore", "reason": "completed"}));
    let title = "Find (it) (@explore subagent)";
    let created = json!({"event": "session.created", "thread": "ses_2", "parent": "main", "title": title});
    assert_eq!(told("opencode", created), json!({"type": "explore", "parent": "main", "title": title}));
    for (error, said) in [
        (json!({"name": "APIError", "data": {"message": "busy"}}), "busy"),
        (json!({"name": "MessageAbortedError", "data": {}}), "MessageAbortedError"),
        (json!("broken"), "broken"),
    ] {
        assert_eq!(told("opencode", json!({"event": "session.error", "error": error})), json!({"message": said}));
    }
    let failed = json!({"hook_event_name": "errorOccurred", "errorContext": "model_call", "error": {"message": "busy", "name": "E"}});
    assert_eq!(told("copilot", failed), json!({"message": "busy"}));
    let spawned = json!({"hook_event_name": "subagentStart", "agentId": "a1", "agentType": "explore"});
    assert_eq!(told("copilot", spawned), json!({"type": "explore"}));
}

#[test]
fn what_nobody_knows_is_let_pass() {
    for agent in AGENTS {
        for input in [json!({}), json!([]), json!("x"), json!(null), json!({"hook_event_name": "New", "event": 7})] {
            let went = put(agent, input, &[deny()]);
            assert_eq!((went.asks.len(), went.notes.len(), went.said), (0, 0, json!({})), "{agent}");
        }
        // Whatever is missing.
        for event in
            ["PreToolUse", "PostToolUse", "Stop", "BeforeModel", "AfterTool", "preToolUse", "postToolUse", "stop"]
        {
            put(agent, json!({"hook_event_name": event, "event": event}), &[inject()]);
        }
    }
    assert_eq!(put("none", json!({"hook_event_name": "PreToolUse"}), &[deny()]).said, json!({}));
    let long = "x".repeat(5000);
    let went = put("claude", claude("PreToolUse", json!({"tool_name": long, "agent_id": "a\u{1b}[1m"})), &[]);
    assert_eq!((went.asks[0].name.as_deref().map(str::len), went.asks[0].thread.as_str()), (Some(200), "a[1m"));
}

#[test]
fn codex_is_told_what_it_takes() {
    let before = claude("PreToolUse", bash());
    let said = says("codex", &before, edit(json!({"command": "pwd"})));
    let of_event =
        json!({"permissionDecision": "allow", "updatedInput": {"command": "pwd"}, "hookEventName": "PreToolUse"});
    assert_eq!(said, json!({"hookSpecificOutput": of_event}));
    // A run can't be ended there; the tool is refused.
    assert_eq!(says("codex", &before, abort())["hookSpecificOutput"]["permissionDecision"], "deny");
    let mut more = bash();
    more["tool_response"] = json!("hello\n");
    let after = claude("PostToolUse", more);
    assert_eq!(says("codex", &after, edit(json!("other"))), json!({"decision": "block", "reason": "other"}));
    assert_eq!(says("codex", &after, abort()), json!({}));
    let prompt = put("codex", claude("UserPromptSubmit", json!({"prompt": "hi"})), &[abort()]);
    assert_eq!((prompt.asks.len(), prompt.said), (1, json!({"continue": false, "stopReason": "[debugger] end"})));
    let model = put("codex", claude("PreModelRequest", json!({"model": "m"})), &[inject()]);
    assert_eq!((model.asks[0].point, model.said), (Point::BeforeModel, json!({})));
    assert_eq!(model.asks[0].powers, Powers { hold: true, ..Powers::NONE });
}

#[test]
fn gemini_is_told_what_it_takes() {
    let input = |event: &str, more: Json| {
        let mut input = claude(event, more);
        input["timestamp"] = json!("2026-11-15T19:02:03.123Z");
        input
    };
    let before = input("BeforeTool", json!({"tool_name": "run_shell_command", "tool_input": {"command": "ls"}}));
    let ask = &put("gemini", before.clone(), &[]).asks[0];
    assert_eq!(
        (ask.name.as_deref(), &ask.span, &ask.value["command"]),
        (Some("run_shell_command"), &None, &json!("ls"))
    );
    assert_eq!(says("gemini", &before, deny()), json!({"decision": "deny", "reason": "[debugger] no"}));
    let said = says("gemini", &before, edit(json!({"command": "pwd"})));
    assert_eq!(said, json!({"hookSpecificOutput": {"tool_input": {"command": "pwd"}}}));
    assert_eq!(says("gemini", &before, abort())["continue"], json!(false));

    let response = json!({"llmContent": "a", "returnDisplay": "a", "error": null});
    let after = input("AfterTool", json!({"tool_name": "x", "tool_input": {}, "tool_response": response}));
    assert_eq!(put("gemini", after.clone(), &[]).asks[0].ok, Some(true));
    assert_eq!(says("gemini", &after, edit(json!("other"))), json!({"decision": "deny", "reason": "other"}));
    assert_eq!(says("gemini", &after, edit(json!({"llmContent": "b"})))["reason"], "b");
    assert_eq!(says("gemini", &after, inject())["hookSpecificOutput"]["additionalContext"], "[debugger] more");

    let messages = json!([{"role": "user", "content": "hi"}, {"role": "model", "content": "yes"}]);
    let request = json!({"model": "gemini-2.5-pro", "messages": messages, "config": {"temperature": 0}});
    let model = input("BeforeModel", json!({"llm_request": request}));
    let ask = &put("gemini", model.clone(), &[]).asks[0];
    let conversation = ask.conversation.as_ref().unwrap();
    assert_eq!(conversation.messages[1], json!({"role": "assistant", "content": "yes"}));
    // Settings are never told back: they would take the place of tools and instructions.
    let said = says("gemini", &model, inject());
    let request = &said["hookSpecificOutput"]["llm_request"];
    assert_eq!(request["messages"][2], json!({"role": "user", "content": "[debugger] more"}));
    assert!(request.get("config").is_none());
    let said =
        says("gemini", &model, Answer { verdict: Verdict::Synthesize { value: json!("me") }, inject: Vec::new() });
    assert_eq!(said["hookSpecificOutput"]["llm_response"]["candidates"][0]["content"]["parts"], json!(["me"]));
    assert_eq!(said["decision"], "deny");

    let stop = input("AfterAgent", json!({"prompt": "hi", "prompt_response": "done"}));
    assert_eq!(says("gemini", &stop, inject()), json!({"decision": "deny", "reason": "[debugger] more"}));
    assert!(put("gemini", input("PreCompress", json!({"trigger": "auto"})), &[]).notes.is_empty());
}

#[test]
fn opencode_s_plugin_is_told_what_to_do() {
    let before = json!({"event": "tool.execute.before", "tool": "bash", "callID": "call_1", "thread": "ses_2", "args": {"command": "ls"}});
    let ask = &put("opencode", before.clone(), &[]).asks[0];
    assert_eq!(
        (ask.thread.as_str(), ask.span.as_deref(), ask.name.as_deref()),
        ("ses_2", Some("call_1"), Some("bash"))
    );
    assert_eq!(says("opencode", &before, deny()), json!({"throw": "[debugger] no"}));
    assert_eq!(says("opencode", &before, edit(json!({"command": "pwd"}))), json!({"args": {"command": "pwd"}}));
    assert_eq!(says("opencode", &before, abort()), json!({"abort": true, "throw": "[debugger] end"}));
    assert_eq!(says("opencode", &before, inject()), json!({}));
    let after = json!({"event": "tool.execute.after", "tool": "bash", "callID": "call_1", "args": {}, "output": "a"});
    assert_eq!(says("opencode", &after, edit(json!("other"))), json!({"output": "other"}));
    assert_eq!(says("opencode", &after, inject()), json!({"add": "[debugger] more"}));
    let state = json!({"status": "completed", "input": {"command": "ls"}, "output": "a"});
    let parts =
        json!([{"type": "text", "text": "hi"}, {"type": "tool", "callID": "c", "tool": "bash", "state": state}]);
    let model = json!({"event": "messages.transform", "messages": [{"info": {"role": "assistant"}, "parts": parts}]});
    let asks = put("opencode", model, &[]).asks;
    let content = &asks[0].conversation.as_ref().unwrap().messages[0]["content"];
    assert_eq!(content[1], json!({"type": "tool_call", "id": "c", "name": "bash", "input": {"command": "ls"}}));
    assert_eq!(content[2], json!({"type": "tool_result", "id": "c", "output": "a", "error": false}));
}

#[test]
fn cursor_is_told_what_it_takes() {
    let input = |event: &str, more: Json| {
        let mut input =
            json!({"conversation_id": "c", "generation_id": "g", "hook_event_name": event, "workspace_roots": ["/p"]});
        input.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        input
    };
    let before =
        input("preToolUse", json!({"tool_name": "Shell", "tool_input": {"command": "ls"}, "tool_use_id": "t1"}));
    assert_eq!(put("cursor", before.clone(), &[]).asks[0].span.as_deref(), Some("t1"));
    let said = says("cursor", &before, deny());
    assert_eq!(said, json!({"permission": "deny", "user_message": "[debugger] no", "agent_message": "[debugger] no"}));
    assert_eq!(says("cursor", &before, edit(json!({"command": "pwd"})))["updated_input"], json!({"command": "pwd"}));
    // A run can't be ended by a hook.
    assert_eq!(says("cursor", &before, abort())["permission"], "deny");
    let prompt = input("beforeSubmitPrompt", json!({"prompt": "hi"}));
    assert_eq!(says("cursor", &prompt, deny()), json!({"continue": false, "user_message": "[debugger] no"}));
    let stop = input("stop", json!({"status": "completed", "loop_count": 0}));
    assert_eq!(says("cursor", &stop, inject()), json!({"followup_message": "[debugger] more"}));
    let after = input("postToolUse", json!({"tool_name": "Shell", "tool_output": "a", "duration": 5}));
    assert_eq!(says("cursor", &after, inject()), json!({"additional_context": "[debugger] more"}));
    assert_eq!(says("cursor", &after, edit(json!("other"))), json!({}), "only the output of MCP tools");
}

/// As they come from the real one, with the event that the command line names.
#[test]
fn copilot_is_told_what_it_takes() {
    let input = |event: &str, more: Json| {
        let mut input = json!({"hook_event_name": event, "sessionId": "s", "timestamp": 1, "cwd": "/p"});
        input.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        input
    };
    let start = put("copilot", input("sessionStart", json!({"source": "new", "initialPrompt": "hi"})), &[]);
    assert_eq!(start.attached, [json!({"cwd": "/p", "agent": "copilot", "session": "s"})]);
    let prompt = input("userPromptSubmitted", json!({"prompt": "hi"}));
    let block = json!({"decision": "block", "reason": "[debugger] no"});
    assert_eq!(says("copilot", &prompt, deny()), block);
    assert_eq!(says("copilot", &prompt, abort())["decision"], "block");
    assert_eq!(says("copilot", &prompt, edit(json!("bye"))), json!({"modifiedPrompt": "bye"}));
    assert_eq!(says("copilot", &prompt, inject()), json!({"additionalContext": "[debugger] more"}));
    // What keeps a turn from its end is no prompt of the user's.
    let more = put("copilot", input("userPromptSubmitted", json!({"prompt": "[debugger] more"})), &[deny()]);
    assert_eq!((more.asks.len(), more.notes.len(), more.said), (0, 0, json!({})));

    let before = input("preToolUse", json!({"toolName": "bash", "toolArgs": {"command": "ls"}}));
    let ask = &put("copilot", before.clone(), &[]).asks[0];
    assert_eq!(
        (ask.point, &ask.value, ask.name.as_deref()),
        (Point::BeforeTool, &json!({"command": "ls"}), Some("bash"))
    );
    let said = json!({"permissionDecision": "deny", "permissionDecisionReason": "[debugger] no"});
    assert_eq!(says("copilot", &before, deny()), said);
    // A run can't be ended there; the tool is refused.
    assert_eq!(says("copilot", &before, abort())["permissionDecision"], "deny");
    assert_eq!(says("copilot", &before, edit(json!({"command": "pwd"}))), json!({"modifiedArgs": {"command": "pwd"}}));
    let result = json!({"resultType": "success", "textResultForLlm": "a"});
    let ran = json!({"toolName": "bash", "toolArgs": {"command": "ls"}, "toolResult": result, "error": "e"});
    let after = input("postToolUse", ran.clone());
    assert_eq!(put("copilot", after.clone(), &[]).asks[0].ok, Some(true));
    let said = json!({"modifiedResult": {"resultType": "success", "textResultForLlm": "b"}});
    assert_eq!(says("copilot", &after, edit(json!("b"))), said);
    assert_eq!(says("copilot", &after, edit(said["modifiedResult"].clone())), said);
    assert_eq!(says("copilot", &after, abort()), json!({}));
    let failed = input("postToolUseFailure", ran);
    let ask = &put("copilot", failed.clone(), &[]).asks[0];
    assert_eq!((ask.ok, &ask.value), (Some(false), &json!("e")));
    assert_eq!(says("copilot", &failed, edit(json!("b"))), json!({}));

    let more = json!({"decision": "block", "reason": "[debugger] more"});
    assert_eq!(says("copilot", &input("agentStop", json!({})), inject()), more);
    let sub = json!({"agentId": "a1", "agentType": "explore", "response": "found"});
    assert!(put("copilot", input("agentStop", sub.clone()), &[]).asks.is_empty(), "it says so with the next");
    let left = put("copilot", input("subagentStop", sub.clone()), &[]);
    assert_eq!((left.asks[0].thread.as_str(), &left.asks[0].value), ("a1", &json!("found")));
    assert_eq!((left.notes[0].kind.as_str(), left.notes[0].thread.as_str()), ("agent.exit", "a1"));
    let held = put("copilot", input("subagentStop", sub), &[inject()]);
    assert_eq!((held.notes.len(), held.said), (0, more));
    let asked = json!({"notification_type": "permission_prompt", "message": "m", "title": "t"});
    assert_eq!(put("copilot", input("Notification", asked), &[]).notes[0].kind, "permission.request");
    let failed = input("errorOccurred", json!({"errorContext": "system", "error": {"message": "m"}}));
    assert_eq!(put("copilot", failed, &[]).notes[0].kind, "error");
}
