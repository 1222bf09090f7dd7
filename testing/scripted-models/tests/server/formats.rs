//! The three wire formats, and HTTP below them.

use std::io::Write;

use scripted_models::{Reply, Rule, Script, ScriptedModels, Stop};
use serde_json::{Value, json};

use crate::client::{connect, read_answer, send, send_with};

fn start(reply: Reply) -> ScriptedModels {
    ScriptedModels::start(Script::new().rule(Rule::new().reply(reply))).unwrap()
}

fn call() -> Reply {
    Reply::call("write_note", json!({"name": "plan"})).saying("Writing.").thinking("Hm.")
}

#[test]
fn gemini_streams() {
    let body = json!({
        "systemInstruction": {"parts": [{"text": "You are helpful."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "<session_context>today</session_context>"}]},
            {"role": "user", "parts": [{"text": "agentd plan x"}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "read_file"}, {"name": "mcp_agentd_write_note"}]}],
    });
    let models = start(call());
    let path = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
    let answer = send(&models, "POST", path, &body);
    assert!(answer.is_whole);
    let events = answer.events();
    let parts: Vec<&Value> =
        events.iter().map(|event| &event["candidates"][0]["content"]["parts"][0]).collect();
    assert_eq!(parts[0]["thought"], true);
    assert_eq!(parts[1]["text"], "Writing.");
    assert_eq!(parts[2]["functionCall"]["name"], "mcp_agentd_write_note");
    let last = events.last().unwrap();
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert!(last["usageMetadata"].is_object());
    let request = &models.requests()[0];
    assert_eq!(request.model, "gemini-x");
    assert_eq!(request.prompt, "agentd plan x");
    assert!(request.system.contains("today"));
}

#[test]
fn openai_streams_to_each_shape_of_tools() {
    let function = json!({"type": "function", "name": "write_note"});
    let shapes = [
        (
            "in a namespace",
            json!([{"type": "namespace", "name": "mcp__agentd", "tools": [function]}]),
        ),
        ("deferred", json!([{"type": "tool_search"}, {"type": "function", "name": "shell"}])),
        ("JavaScript", json!([{"type": "custom", "name": "exec"}])),
    ];
    for (shape, tools) in shapes {
        let body = json!({"model": "g", "stream": true, "tools": tools, "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>c</environment_context>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "agentd plan x"}]},
        ]});
        let models = start(call());
        let answer = send(&models, "POST", "/v1/responses", &body);
        let events = answer.events();
        let numbers: Vec<u64> =
            events.iter().filter_map(|event| event["sequence_number"].as_u64()).collect();
        assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
        let completed = &events.last().unwrap()["response"];
        assert_eq!(completed["status"], "completed");
        let item = &completed["output"][2];
        if shape == "JavaScript" {
            assert_eq!(item["type"], "custom_tool_call");
            let program = item["input"].as_str().unwrap();
            assert!(program.contains("mcp__agentd__write_note"), "{program}");
            assert!(program.contains(r#"({"name":"plan"})"#), "{program}");
        } else {
            assert_eq!(item["type"], "function_call", "{shape}");
            assert_eq!(item["namespace"], "mcp__agentd", "{shape}");
            assert_eq!(item["name"], "write_note", "{shape}");
            assert_eq!(item["arguments"], r#"{"name":"plan"}"#, "{shape}");
        }
        assert_eq!(models.requests()[0].prompt, "agentd plan x");
        assert_eq!(models.surprises(), Vec::<String>::new());
    }
}

#[test]
fn openai_rounds_are_counted_over_items() {
    let models = start(Reply::text("x"));
    let body = json!({"model": "g", "tools": [{"type": "function", "name": "f"}], "input": [
        {"type": "message", "role": "user", "content": "agentd plan x"},
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Writing."}]},
        {"type": "function_call", "name": "f", "call_id": "1", "arguments": "{}"},
        {"type": "function_call", "name": "f", "call_id": "2", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "one"},
        {"type": "function_call_output", "call_id": "2", "output": "two"},
    ]});
    send(&models, "POST", "/v1/responses", &body);
    let request = &models.requests()[0];
    assert_eq!(request.round, 1);
    assert_eq!(request.tool_results, ["one", "two"]);
    assert_eq!(request.messages[1].tool_calls, ["f", "f"]);
}

#[test]
fn anthropic_streams_what_it_says_without_a_stream() {
    let mut body = json!({
        "model": "claude-x",
        "messages": [{"role": "user", "content": "agentd plan x"}],
        "tools": [{"name": "mcp__agentd__write_note"}],
    });
    let whole = send(&start(call()), "POST", "/v1/messages", &body).json();
    body["stream"] = json!(true);
    let events = send(&start(call()), "POST", "/v1/messages", &body).events();

    let mut blocks: Vec<Value> = Vec::new();
    let mut input = String::new();
    let (mut stop, mut usage) = (Value::Null, Value::Null);
    for event in &events {
        let delta = &event["delta"];
        match event["type"].as_str().unwrap() {
            "content_block_start" => blocks.push(event["content_block"].clone()),
            "content_block_delta" => {
                let block = blocks.last_mut().unwrap();
                match delta["type"].as_str().unwrap() {
                    "text_delta" => block["text"] = delta["text"].clone(),
                    "thinking_delta" => block["thinking"] = delta["thinking"].clone(),
                    "signature_delta" => block["signature"] = delta["signature"].clone(),
                    _ => input.push_str(delta["partial_json"].as_str().unwrap()),
                }
            }
            "message_delta" => {
                stop = delta["stop_reason"].clone();
                usage = event["usage"].clone();
            }
            _ => {}
        }
    }
    blocks.last_mut().unwrap()["input"] = serde_json::from_str(&input).unwrap();
    assert_eq!(json!(blocks), whole["content"]);
    assert_eq!(stop, whole["stop_reason"]);
    assert_eq!(stop, "tool_use");
    assert_eq!(usage, whole["usage"]);
}

#[test]
fn abnormal_ends_are_named_as_each_format_names_them() {
    let cases = [
        (Stop::MaxTokens, "max_tokens", "incomplete", "MAX_TOKENS"),
        (Stop::Refusal, "refusal", "failed", "SAFETY"),
    ];
    for (stop, anthropic, openai, gemini) in cases {
        let models = start(Reply::text("x").stop(stop));
        let body =
            json!({"messages": [{"role": "user", "content": "p"}], "tools": [{"name": "t"}]});
        let answer = send(&models, "POST", "/v1/messages", &body).json();
        assert_eq!(answer["stop_reason"], anthropic);
        let body = json!({"input": "p", "tools": [{"name": "t"}]});
        let answer = send(&models, "POST", "/v1/responses", &body).json();
        assert_eq!(answer["status"], openai);
        let body = json!({
            "contents": [{"role": "user", "parts": [{"text": "p"}]}],
            "tools": [{"functionDeclarations": [{"name": "t"}]}],
        });
        let answer = send(&models, "POST", "/v1beta/models/m:generateContent", &body).json();
        assert_eq!(answer["candidates"][0]["finishReason"], gemini);
    }
}

#[test]
fn a_tool_that_is_not_offered_is_a_surprise() {
    let body = json!({
        "messages": [{"role": "user", "content": "p"}],
        "tools": [{"name": "overwrite_note"}, {"name": "mcp__agentd__write_notes"}],
    });
    let models = start(call());
    let answer = send(&models, "POST", "/v1/messages", &body).json();
    assert_eq!(answer["content"][2]["name"], "write_note");
    assert_eq!(models.surprises(), ["not offered: write_note"]);
}

#[test]
fn what_the_clis_ask_besides_is_answered() {
    let models = start(Reply::text("x"));
    let none = Value::Null;
    assert_eq!(send(&models, "GET", "/v1/models", &none).status(), 200);
    assert_eq!(send(&models, "POST", "/v1/messages/count_tokens", &json!({})).status(), 200);
    let upgrade = "Upgrade: websocket\r\n";
    assert_eq!(send_with(&models, "GET", "/v1/responses", upgrade, "").status(), 426);
    assert_eq!(models.surprises(), Vec::<String>::new());
    assert_eq!(send(&models, "GET", "/v1/secrets", &none).status(), 404);
    assert_eq!(models.surprises(), ["nothing is scripted for GET /v1/secrets"]);
    assert!(models.requests().is_empty());
}

#[test]
fn a_connection_takes_several_requests_and_chunked_bodies() {
    let models = start(Reply::text("again"));
    let mut connection = connect(&models);
    write!(connection, "HEAD / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut connection).status(), 200);
    let body =
        r#"{"stream":true,"messages":[{"role":"user","content":"p"}],"tools":[{"name":"t"}]}"#;
    let (first, second) = body.split_at(20);
    for _ in 0..2 {
        write!(
            connection,
            "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
             {:x}\r\n{first}\r\n{:x};note=1\r\n{second}\r\n0\r\n\r\n",
            first.len(),
            second.len()
        )
        .unwrap();
        let answer = read_answer(&mut connection);
        assert!(answer.is_whole, "{answer:?}");
        assert!(answer.body.contains("again"));
    }
    let sequence: Vec<usize> = models.records().iter().map(|record| record.sequence).collect();
    assert_eq!(sequence, [0, 1, 2]);
}
