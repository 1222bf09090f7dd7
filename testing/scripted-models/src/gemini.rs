//! Gemini's `generateContent` and `streamGenerateContent`.

use serde_json::{Value, json};

use crate::request::{Message, ModelRequest, Offered, RequestKind, Role, items, string, text_of};
use crate::script::{Provider, Stop};
use crate::wire::{Answer, Encoding, Event};

/// Reads a request; the model and the method are in its path.
pub(crate) fn parse(model: &str, stream: bool, body: &Value) -> ModelRequest {
    let mut request = ModelRequest::new(Provider::Gemini, model);
    request.stream = stream;
    request.system = text_of(&body["systemInstruction"]["parts"]);
    for content in items(&body["contents"]) {
        add_content(&mut request, content);
    }
    for declarations in items(&body["tools"]) {
        for function in items(&declarations["functionDeclarations"]) {
            request.tools.push(Offered {
                name: string(&function["name"]).to_owned(),
                namespace: None,
                freeform: false,
            });
        }
    }
    let config = &body["generationConfig"];
    request.schema =
        config.get("responseJsonSchema").or_else(|| config.get("responseSchema")).cloned();
    // Routing and session summaries; the CLI's main loop always offers tools.
    if request.schema.is_some() || (!stream && request.tools.is_empty()) {
        request.kind = RequestKind::Side;
    }
    request.derive_round();
    request
}

fn add_content(request: &mut ModelRequest, content: &Value) {
    let role = if content["role"] == "model" { Role::Model } else { Role::User };
    let mut message =
        Message { role, text: String::new(), tool_results: Vec::new(), tool_calls: Vec::new() };
    let mut texts = Vec::new();
    for part in items(&content["parts"]) {
        if part["thought"] == true {
            continue;
        }
        if let Some(text) = part["text"].as_str() {
            if role == Role::User && is_context(text) {
                request.add_context(text);
            } else {
                texts.push(text);
            }
        } else if let Some(result) = part.get("functionResponse") {
            message.tool_results.push(text_of(&result["response"]));
        } else if let Some(call) = part.get("functionCall") {
            message.tool_calls.push(string(&call["name"]).to_owned());
        }
    }
    message.text = texts.join("\n");
    let is_empty = message.text.is_empty() && message.tool_results.is_empty();
    if role == Role::Model || !is_empty {
        request.messages.push(message);
    }
}

/// The CLI opens every session with a message of its own.
fn is_context(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("<session_context>") || text.starts_with("This is the Gemini CLI")
}

/// Writes an answer.
pub(crate) fn encode(encoding: &Encoding<'_>) -> Answer {
    let reply = encoding.reply;
    let mut parts = Vec::new();
    if let Some(thinking) = &reply.thinking {
        parts.push(json!({"text": thinking, "thought": true}));
    }
    if let Some(text) = &reply.text {
        parts.extend(encoding.pieces(text).into_iter().map(|piece| json!({"text": piece})));
    }
    for (index, call) in encoding.calls.iter().enumerate() {
        let mut part = json!({"functionCall": {"name": call.name, "args": call.input.to_json()}});
        // Newer models sign the first call of an answer, and want it back.
        if index == 0 {
            part["thoughtSignature"] = json!("c2NyaXB0ZWQ=");
        }
        parts.push(part);
    }
    if parts.is_empty() {
        parts.push(json!({"text": ""}));
    }
    let last = parts.len() - 1;
    let events = parts
        .iter()
        .enumerate()
        .map(|(index, part)| Event {
            name: None,
            data: chunk(encoding, std::slice::from_ref(part), index == last),
        })
        .collect();
    Answer { events, whole: chunk(encoding, &parts, true) }
}

fn chunk(encoding: &Encoding<'_>, parts: &[Value], is_last: bool) -> Value {
    let mut chunk = json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
        "modelVersion": encoding.request.model,
        "responseId": encoding.id("gen", 0),
    });
    if is_last {
        let usage = encoding.usage;
        chunk["candidates"][0]["finishReason"] = json!(match encoding.reply.stop {
            None => "STOP",
            Some(Stop::MaxTokens) => "MAX_TOKENS",
            Some(Stop::Refusal) => "SAFETY",
        });
        chunk["usageMetadata"] = json!({
            "promptTokenCount": usage.input,
            "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
            "thoughtsTokenCount": usage.reasoning,
            "totalTokenCount": usage.input + usage.output,
        });
    }
    chunk
}

/// The body of an HTTP error.
pub(crate) fn error_body(code: u16, message: &str) -> Value {
    let status = match code {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        500 => "INTERNAL",
        503 => "UNAVAILABLE",
        _ => "UNKNOWN",
    };
    json!({"error": {"code": code, "message": message, "status": status}})
}
