//! From an HTTP request to the bytes of the answer.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use crate::choice::Source;
use crate::http::{self, HttpRequest};
use crate::request::ModelRequest;
use crate::script::{Fault, Provider, Reply};
use crate::server::{Connection, Recorded};
use crate::wire::{Answer, Encoding, WireCall, error_body};
use crate::{anthropic, gemini, openai, tools};

/// Answers a request and records what became of it; says whether the answer
/// was sent as HTTP wants it, so that another can follow.
pub(crate) fn answer(connection: &Connection<'_>, request: &HttpRequest) -> bool {
    let mut record = Recorded {
        sequence: connection.sequence,
        method: request.method.clone(),
        path: request.path.clone(),
        headers: without_keys(&request.headers),
        body: serde_json::from_slice(&request.body).unwrap_or_default(),
        request: None,
        rule: None,
        unoffered_tools: Vec::new(),
        status: None,
        surprise: None,
        broken: None,
    };
    record.request = model_request(request, &record.body);
    let sent = match record.request.clone() {
        Some(model_request) => answer_model(connection, request, &model_request, &mut record),
        None => answer_other(connection, request, &mut record),
    };
    record.broken = sent.err().map(|error| error.to_string());
    let is_whole = record.broken.is_none();
    connection.complete(record);
    is_whole
}

/// Leaves out what could be a credential: records end up in logs.
fn without_keys(headers: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    const SECRET: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "cookie"];
    let mut headers = headers.clone();
    headers.retain(|name, _| !SECRET.contains(&name.as_str()));
    headers
}

/// Recognises the requests that go to a model.
fn model_request(request: &HttpRequest, body: &Value) -> Option<ModelRequest> {
    if request.method != "POST" || !body.is_object() {
        return None;
    }
    match request.path.as_str() {
        "/v1/messages" => Some(anthropic::parse(&request.headers, body)),
        "/v1/responses" | "/responses" => Some(openai::parse(&request.headers, body)),
        path => {
            let (model, method) = path.rsplit_once('/')?.1.split_once(':')?;
            match method {
                "streamGenerateContent" => Some(gemini::parse(model, true, body)),
                "generateContent" => Some(gemini::parse(model, false, body)),
                _ => None,
            }
        }
    }
}

/// Answers what the CLIs ask for besides: they must not stumble over it.
fn answer_other(
    connection: &Connection<'_>,
    request: &HttpRequest,
    record: &mut Recorded,
) -> io::Result<()> {
    let is_upgrade = request.headers.contains_key("upgrade");
    let (status, body) = match (request.method.as_str(), request.path.as_str()) {
        // codex first tries a WebSocket; this makes it fall back to POST.
        _ if is_upgrade => (426, json!({"error": {"message": "no WebSocket here"}})),
        ("HEAD", _) => (200, Value::Null),
        ("GET", path) if path.ends_with("/models") => {
            (200, json!({"object": "list", "data": [], "models": [], "has_more": false}))
        }
        ("POST", path) if path.ends_with("/count_tokens") => {
            (200, json!({"input_tokens": request.body.len() / 4}))
        }
        ("POST", path) if path.ends_with(":countTokens") => {
            (200, json!({"totalTokens": request.body.len() / 4}))
        }
        (method, path) => {
            record.surprise = Some(format!("nothing is scripted for {method} {path}"));
            (404, json!({"error": {"code": 404, "message": "not in the script"}}))
        }
    };
    connection.record(record);
    let body = if request.method == "HEAD" { Vec::new() } else { body.to_string().into_bytes() };
    record.status = Some(status);
    http::write_response(connection.stream, status, &BTreeMap::new(), "application/json", &body)
}

fn answer_model(
    connection: &Connection<'_>,
    request: &HttpRequest,
    model_request: &ModelRequest,
    record: &mut Recorded,
) -> io::Result<()> {
    if !connection.shared.is_key_right(model_request.provider, request) {
        connection.record(record);
        return send_bad_key(connection, model_request.provider, record);
    }
    let choices = &connection.shared.choices;
    let choice = choices.choose(model_request);
    if let Source::Rule(index) = choice.source {
        record.rule = Some(index);
    }
    if choice.source == Source::Nothing {
        let prompt: String = model_request.prompt.chars().take(200).collect();
        let round = model_request.round;
        record.surprise = Some(format!("nothing is scripted for round {round} of {prompt:?}"));
    }
    record.unoffered_tools = tools::missed_by_program(model_request);
    let mut calls = Vec::new();
    for call in &choice.reply.calls {
        calls.push(tools::resolve(call, model_request, &choices.script.mcp_server).unwrap_or_else(
            |bare| {
                record.unoffered_tools.push(call.tool.clone());
                bare
            },
        ));
    }
    if !record.unoffered_tools.is_empty() {
        record.surprise = Some(format!("not offered: {}", record.unoffered_tools.join(", ")));
    }
    connection.record(record);
    let is_whole = send_reply(connection, model_request, &choice.reply, &calls, record)?;
    if is_whole {
        choices.answered(choice.key);
    }
    Ok(())
}

fn send_bad_key(
    connection: &Connection<'_>,
    provider: Provider,
    record: &mut Recorded,
) -> io::Result<()> {
    // Google alone answers a bad key with 400.
    let status = if provider == Provider::Gemini { 400 } else { 401 };
    let mut body = error_body(provider, status, "API key not valid. Please pass a valid API key.");
    if provider == Provider::Gemini {
        body["error"]["details"] = json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "API_KEY_INVALID",
            "domain": "googleapis.com",
        }]);
    }
    send_json(connection, status, &BTreeMap::new(), &body, record)
}

/// Sends the reply, or what its fault leaves of it; says whether it was whole.
fn send_reply(
    connection: &Connection<'_>,
    request: &ModelRequest,
    reply: &Reply,
    calls: &[WireCall],
    record: &mut Recorded,
) -> io::Result<bool> {
    if reply.delay_ms > 0 {
        connection.wait(Some(Duration::from_millis(reply.delay_ms)))?;
    }
    match &reply.fault {
        Some(Fault::Status(fault)) => {
            let message = record.surprise.clone();
            let message = message.unwrap_or_else(|| format!("scripted error {}", fault.code));
            let body = error_body(request.provider, fault.code, &message);
            let body = fault.body.as_ref().unwrap_or(&body);
            send_json(connection, fault.code, &fault.headers, body, record)?;
            return Ok(false);
        }
        Some(Fault::Hang) => {
            connection.wait(None)?;
            return Ok(false);
        }
        Some(Fault::Close) => return Err(ended_by_script()),
        Some(Fault::Garbage) => {
            record.status = Some(200);
            if request.stream {
                http::begin_events(connection.stream)?;
                http::write_chunk(connection.stream, "data: {\"this is\": not JSON\n\n")?;
                http::end_events(connection.stream)?;
            } else {
                let body = b"{\"this is\": not JSON";
                let none = BTreeMap::new();
                http::write_response(connection.stream, 200, &none, "application/json", body)?;
            }
            return Ok(false);
        }
        Some(Fault::HangMidway | Fault::CutMidway | Fault::EndMidway) | None => {}
    }
    let mut reply = reply.clone();
    if reply.fault.is_some() && reply.piece == 0 {
        // There must be a middle to stop in.
        reply.piece = 4;
    }
    let encoding = Encoding {
        request,
        reply: &reply,
        usage: reply.usage.unwrap_or(connection.shared.choices.script.usage),
        calls,
        sequence: connection.sequence,
    };
    let answer = encoding.answer();
    if request.stream {
        send_events(connection, &answer, &reply, record)?;
    } else if reply.fault.is_none() {
        send_json(connection, 200, &BTreeMap::new(), &answer.whole, record)?;
    } else if matches!(reply.fault, Some(Fault::HangMidway)) {
        connection.wait(None)?;
    } else {
        return Err(ended_by_script());
    }
    Ok(true)
}

fn ended_by_script() -> io::Error {
    io::Error::other("the script ended the connection")
}

fn send_events(
    connection: &Connection<'_>,
    answer: &Answer,
    reply: &Reply,
    record: &mut Recorded,
) -> io::Result<()> {
    record.status = Some(200);
    http::begin_events(connection.stream)?;
    let count = match reply.fault {
        Some(_) => (answer.events.len() / 2).max(1),
        None => answer.events.len(),
    };
    for event in &answer.events[..count] {
        let name = event.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        http::write_chunk(connection.stream, &format!("{name}data: {}\n\n", event.data))?;
        if reply.event_delay_ms > 0 {
            connection.wait(Some(Duration::from_millis(reply.event_delay_ms)))?;
        }
    }
    match reply.fault {
        None => http::end_events(connection.stream),
        Some(Fault::HangMidway) => connection.wait(None),
        Some(Fault::CutMidway) => connection.reset_soon().and_then(|()| Err(ended_by_script())),
        Some(_) => Err(ended_by_script()),
    }
}

fn send_json(
    connection: &Connection<'_>,
    status: u16,
    headers: &BTreeMap<String, String>,
    body: &Value,
    record: &mut Recorded,
) -> io::Result<()> {
    record.status = Some(status);
    let body = body.to_string().into_bytes();
    http::write_response(connection.stream, status, headers, "application/json", &body)
}
