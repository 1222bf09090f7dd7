//! Anthropic's Messages.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::request::{Message, ModelRequest, Offered, RequestKind, Role, items, string, text_of};
use crate::script::{Provider, Stop};
use crate::wire::{Answer, Encoding, Event};

/// Reads a request.
pub(crate) fn parse(headers: &BTreeMap<String, String>, body: &Value) -> ModelRequest {
    let mut request = ModelRequest::new(Provider::Anthropic, string(&body["model"]));
    request.stream = body["stream"] == true;
    request.system = text_of(&body["system"]);
    request.session = headers.get("x-claude-code-session-id").cloned().unwrap_or_default();
    for message in items(&body["messages"]) {
        add_message(&mut request, message);
    }
    for tool in items(&body["tools"]) {
        request.tools.push(Offered {
            name: string(&tool["name"]).to_owned(),
            namespace: None,
            freeform: false,
        });
    }
    request.schema = body["output_config"]["format"].get("schema").cloned();
    // The title of the session. With `--tools ""` a main request has no tools
    // either, but then it has no schema.
    if request.tools.is_empty() && request.schema.is_some() {
        request.kind = RequestKind::Side;
    }
    request.derive_round();
    request
}

fn add_message(request: &mut ModelRequest, message: &Value) {
    let whole = [json!({"type": "text", "text": message["content"]})];
    let blocks = match &message["content"] {
        Value::String(_) => whole.as_slice(),
        blocks => items(blocks),
    };
    let is_system = message["role"] == "system";
    let mut parsed = Message {
        role: if message["role"] == "assistant" { Role::Model } else { Role::User },
        text: String::new(),
        tool_results: Vec::new(),
        tool_calls: Vec::new(),
    };
    let mut texts = Vec::new();
    for block in blocks {
        match string(&block["type"]) {
            "text" => {
                let text = string(&block["text"]);
                // Reminders, and commands that the CLI was given before the prompt.
                let marks = ["<system-reminder>", "<local-command-", "<command-name>"];
                let is_added = marks.iter().any(|mark| text.trim_start().starts_with(mark));
                if is_system || is_added {
                    request.add_context(text);
                } else {
                    texts.push(text);
                }
            }
            "tool_result" => parsed.tool_results.push(text_of(&block["content"])),
            "tool_use" => parsed.tool_calls.push(string(&block["name"]).to_owned()),
            _ => {}
        }
    }
    parsed.text = texts.join("\n");
    if !is_system {
        request.messages.push(parsed);
    }
}

/// Writes an answer.
pub(crate) fn encode(encoding: &Encoding<'_>) -> Answer {
    let reply = encoding.reply;
    let usage = encoding.usage;
    let usage_json = |output: u64| {
        json!({
            "input_tokens": usage.input.saturating_sub(usage.cached + usage.cache_written),
            "cache_creation_input_tokens": usage.cache_written,
            "cache_read_input_tokens": usage.cached,
            "output_tokens": output,
            "service_tier": "standard",
        })
    };
    let stop = match reply.stop {
        Some(Stop::MaxTokens) => "max_tokens",
        Some(Stop::Refusal) => "refusal",
        None if encoding.calls.is_empty() => "end_turn",
        None => "tool_use",
    };
    let message = json!({
        "id": encoding.id("msg", 0),
        "type": "message",
        "role": "assistant",
        "model": encoding.request.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage_json(1),
    });
    let mut events = vec![event("message_start", json!({"message": message}))];
    let mut blocks = Vec::new();
    let mut add = |start: Value, deltas: Vec<Value>, whole: Value| {
        let index = blocks.len();
        events.push(event("content_block_start", json!({"index": index, "content_block": start})));
        events.extend(
            deltas
                .into_iter()
                .map(|delta| event("content_block_delta", json!({"index": index, "delta": delta}))),
        );
        events.push(event("content_block_stop", json!({"index": index})));
        blocks.push(whole);
    };
    if let Some(thinking) = &reply.thinking {
        let signature = "c2NyaXB0ZWQ=";
        add(
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": thinking}),
                json!({"type": "signature_delta", "signature": signature}),
            ],
            json!({"type": "thinking", "thinking": thinking, "signature": signature}),
        );
    }
    if let Some(text) = &reply.text {
        let pieces = encoding.pieces(text).into_iter();
        add(
            json!({"type": "text", "text": ""}),
            pieces.map(|piece| json!({"type": "text_delta", "text": piece})).collect(),
            json!({"type": "text", "text": text}),
        );
    }
    for (index, call) in encoding.calls.iter().enumerate() {
        let id = encoding.id("toolu", index);
        let input = call.input.to_json();
        let pieces = encoding.pieces(&input.to_string()).into_iter();
        add(
            json!({"type": "tool_use", "id": id, "name": call.name, "input": {}}),
            pieces
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect(),
            json!({"type": "tool_use", "id": id, "name": call.name, "input": input}),
        );
    }
    events.push(event(
        "message_delta",
        json!({
            "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": usage_json(usage.output),
        }),
    ));
    events.push(event("message_stop", json!({})));

    let mut whole = message;
    whole["content"] = json!(blocks);
    whole["stop_reason"] = json!(stop);
    whole["usage"] = usage_json(usage.output);
    Answer { events, whole }
}

fn event(name: &'static str, mut data: Value) -> Event {
    data["type"] = json!(name);
    Event { name: Some(name), data }
}

/// The body of an HTTP error.
pub(crate) fn error_body(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({
        "type": "error",
        "error": {"type": kind, "message": message},
        "request_id": "req_scripted",
    })
}
