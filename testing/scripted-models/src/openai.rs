//! `OpenAI`'s Responses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::request::{Message, ModelRequest, Offered, RequestKind, Role, items, string, text_of};
use crate::script::{Provider, Stop};
use crate::wire::{Answer, Encoding, Event, WireCall, WireInput};

/// Reads a request.
pub(crate) fn parse(headers: &BTreeMap<String, String>, body: &Value) -> ModelRequest {
    let mut request = ModelRequest::new(Provider::OpenAi, string(&body["model"]));
    request.stream = body["stream"] == true;
    request.system = text_of(&body["instructions"]);
    request.session = headers
        .get("session-id")
        .or_else(|| headers.get("session_id"))
        .cloned()
        .unwrap_or_else(|| string(&body["prompt_cache_key"]).to_owned());
    if let Some(prompt) = body["input"].as_str() {
        add_user(&mut request, prompt);
    }
    for item in items(&body["input"]) {
        add_item(&mut request, item);
    }
    add_tools(&mut request, &body["tools"]);
    request.schema = body["text"]["format"].get("schema").cloned();
    request.derive_round();
    // codex compacts the history when a session is resumed with another model.
    if request.tools.is_empty() || request.prompt.starts_with("You are performing a CONTEXT") {
        request.kind = RequestKind::Side;
    }
    request
}

fn add_item(request: &mut ModelRequest, item: &Value) {
    match item["type"].as_str().unwrap_or("message") {
        "message" => {
            let text = text_of(&item["content"]);
            match string(&item["role"]) {
                "developer" | "system" => request.add_context(&text),
                "assistant" => request.add_to_round(&text, None),
                _ if is_context(&text) => request.add_context(&text),
                _ => add_user(request, &text),
            }
        }
        // Code-mode models get their tools here rather than in `tools`.
        "additional_tools" => add_tools(request, &item["tools"]),
        kind if kind.ends_with("_output") => {
            if kind == "tool_search_output" {
                add_tools(request, &item["tools"]);
            }
            add_tool_result(request, text_of(&item["output"]));
        }
        kind if kind.ends_with("_call") => {
            let name = item["name"].as_str().unwrap_or(kind);
            request.add_to_round("", Some(name));
        }
        _ => {}
    }
}

/// codex puts its context into messages of the user.
fn is_context(text: &str) -> bool {
    const TAGS: [&str; 8] = [
        "<environment_context>",
        "<user_instructions>",
        "<permissions",
        "<INSTRUCTIONS>",
        "<turn_aborted>",
        "<skill",
        "<recommended_plugins>",
        "# AGENTS.md",
    ];
    TAGS.iter().any(|tag| text.trim_start().starts_with(tag))
}

fn add_user(request: &mut ModelRequest, text: &str) {
    request.messages.push(Message {
        role: Role::User,
        text: text.to_owned(),
        tool_results: Vec::new(),
        tool_calls: Vec::new(),
    });
}

fn add_tool_result(request: &mut ModelRequest, result: String) {
    match request.messages.last_mut() {
        Some(last) if !last.tool_results.is_empty() => last.tool_results.push(result),
        _ => request.messages.push(Message {
            role: Role::User,
            text: String::new(),
            tool_results: vec![result],
            tool_calls: Vec::new(),
        }),
    }
}

fn add_tools(request: &mut ModelRequest, tools: &Value) {
    for tool in items(tools) {
        if tool["type"] == "namespace" {
            for inner in items(&tool["tools"]) {
                request.tools.push(offered(inner, tool["name"].as_str()));
            }
        } else {
            request.tools.push(offered(tool, tool["namespace"].as_str()));
        }
    }
}

fn offered(tool: &Value, namespace: Option<&str>) -> Offered {
    Offered {
        // Built-in tools such as tool_search have a type and no name.
        name: tool["name"].as_str().unwrap_or(string(&tool["type"])).to_owned(),
        namespace: namespace.map(str::to_owned),
        freeform: tool["type"] == "custom",
    }
}

/// Writes an answer.
pub(crate) fn encode(encoding: &Encoding<'_>) -> Answer {
    let reply = encoding.reply;
    let mut stream = Stream { events: Vec::new(), items: Vec::new() };
    let response = json!({
        "id": encoding.id("resp", 0),
        "object": "response",
        "created_at": 0,
        "model": encoding.request.model,
        "status": "in_progress",
        "output": [],
        "usage": null,
        "error": null,
        "incomplete_details": null,
    });
    stream.emit("response.created", json!({"response": response}));
    stream.emit("response.in_progress", json!({"response": response}));
    if let Some(thinking) = &reply.thinking {
        stream.add_reasoning(&encoding.id("rs", 0), thinking);
    }
    if reply.text.is_some() || encoding.calls.is_empty() {
        let text = reply.text.as_deref().unwrap_or_default();
        stream.add_message(&encoding.id("msg", 0), text, encoding.pieces(text));
    }
    for (index, call) in encoding.calls.iter().enumerate() {
        stream.add_call(&encoding.id("call", index), call);
    }

    let usage = encoding.usage;
    let mut whole = response;
    whole["output"] = json!(stream.items);
    whole["usage"] = json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    });
    let (name, status) = match reply.stop {
        None => ("response.completed", "completed"),
        Some(Stop::MaxTokens) => {
            whole["incomplete_details"] = json!({"reason": "max_output_tokens"});
            ("response.incomplete", "incomplete")
        }
        Some(Stop::Refusal) => {
            whole["error"] = json!({"code": "invalid_prompt", "message": "scripted refusal"});
            ("response.failed", "failed")
        }
    };
    whole["status"] = json!(status);
    stream.emit(name, json!({"response": whole}));
    Answer { events: stream.events, whole }
}

/// The events so far, and the output items that they announced.
struct Stream {
    events: Vec<Event>,
    items: Vec<Value>,
}

impl Stream {
    fn emit(&mut self, name: &'static str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.events.len());
        self.events.push(Event { name: Some(name), data });
    }

    /// Emits an event about the item that is being written.
    fn emit_inside(&mut self, name: &'static str, item_id: &str, mut data: Value) {
        data["item_id"] = json!(item_id);
        data["output_index"] = json!(self.items.len());
        self.emit(name, data);
    }

    fn begin(&mut self, item: &Value) {
        let index = self.items.len();
        self.emit("response.output_item.added", json!({"output_index": index, "item": item}));
    }

    fn finish(&mut self, item: Value) {
        let index = self.items.len();
        self.emit("response.output_item.done", json!({"output_index": index, "item": item}));
        self.items.push(item);
    }

    fn add_reasoning(&mut self, id: &str, text: &str) {
        let item = |summary: Value| json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": "c2NyaXB0ZWQ="});
        self.begin(&item(json!([])));
        self.emit_inside(
            "response.reasoning_summary_text.delta",
            id,
            json!({"summary_index": 0, "delta": text}),
        );
        self.finish(item(json!([{"type": "summary_text", "text": text}])));
    }

    fn add_message(&mut self, id: &str, text: &str, pieces: Vec<String>) {
        let item = |status: &str, content: Value| json!({"type": "message", "id": id, "role": "assistant", "status": status, "content": content});
        let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
        self.begin(&item("in_progress", json!([])));
        self.emit_inside(
            "response.content_part.added",
            id,
            json!({"content_index": 0, "part": part("")}),
        );
        for piece in pieces {
            self.emit_inside(
                "response.output_text.delta",
                id,
                json!({"content_index": 0, "delta": piece}),
            );
        }
        self.emit_inside(
            "response.output_text.done",
            id,
            json!({"content_index": 0, "text": text}),
        );
        self.finish(item("completed", json!([part(text)])));
    }

    fn add_call(&mut self, id: &str, call: &WireCall) {
        let (kind, key, input) = match &call.input {
            WireInput::Json(arguments) => ("function_call", "arguments", arguments.to_string()),
            WireInput::Text(text) => ("custom_tool_call", "input", text.clone()),
        };
        let item = |status: &str, input: &str| {
            let mut item = json!({
                "type": kind, "id": format!("item_{id}"), "call_id": id, "status": status,
                "name": call.name, key: input,
            });
            if let Some(namespace) = &call.namespace {
                item["namespace"] = json!(namespace);
            }
            item
        };
        self.begin(&item("in_progress", ""));
        self.finish(item("completed", &input));
    }
}

/// The body of an HTTP error.
pub(crate) fn error_body(status: u16, message: &str) -> Value {
    let kind = if status >= 500 { "server_error" } else { "invalid_request_error" };
    let code = match status {
        401 => json!("invalid_api_key"),
        429 => json!("rate_limit_exceeded"),
        _ => Value::Null,
    };
    json!({"error": {"message": message, "type": kind, "code": code}})
}
