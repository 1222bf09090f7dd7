//! Ways to fail, and to stop while failing.

use std::io::Write;
use std::time::{Duration, Instant};

use scripted_models::{Fault, Reply, Rule, Script, ScriptedModels};
use serde_json::{Value, json};

use crate::client::{Answer, connect, read_answer, said, send, send_with};

fn start(reply: Reply) -> ScriptedModels {
    ScriptedModels::start(Script::new().rule(Rule::new().reply(reply))).unwrap()
}

fn body(stream: bool) -> Value {
    let messages = json!([{"role": "user", "content": "agentd plan x"}]);
    json!({"model": "m", "stream": stream, "messages": messages, "tools": [{"name": "t"}]})
}

fn stream(models: &ScriptedModels) -> Answer {
    send(models, "POST", "/v1/messages", &body(true))
}

#[test]
fn a_whole_stream_says_that_it_is() {
    let answer = stream(&start(Reply::text("All of it.")));
    assert!(answer.is_whole, "{answer:?}");
    assert_eq!(answer.events().last().unwrap()["type"], "message_stop");
}

#[test]
fn a_cut_stream_has_a_first_half_and_no_end() {
    for fault in [Fault::CutMidway, Fault::EndMidway] {
        let models = start(Reply::fault(fault).saying("It goes on and on and on"));
        let answer = stream(&models);
        assert!(!answer.is_whole, "{answer:?}");
        let events = answer.events();
        let texts: Vec<&str> =
            events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
        assert!(!texts.is_empty(), "{answer:?}");
        assert!(!texts.concat().contains("on and on and on"), "{answer:?}");
        assert_eq!(send(&models, "POST", "/v1/messages", &body(false)).status(), 0);
    }
}

#[test]
fn a_closed_connection_gives_no_byte() {
    let answer = stream(&start(Reply::fault(Fault::Close)));
    assert_eq!((answer.head.as_str(), answer.body.as_str()), ("", ""));
}

#[test]
fn garbage_is_not_json() {
    let answer = stream(&start(Reply::fault(Fault::Garbage)));
    assert_eq!(answer.status(), 200);
    let data = answer.body.strip_prefix("data: ").unwrap();
    assert!(serde_json::from_str::<Value>(data).is_err());
}

#[test]
fn a_status_has_the_body_of_its_provider() {
    let models = start(Reply::status(429).header("retry-after", "7"));
    let answer = stream(&models);
    assert_eq!(answer.status(), 429);
    assert!(answer.head.contains("\r\nretry-after: 7\r\n"), "{answer:?}");
    assert_eq!(answer.json()["error"]["type"], "rate_limit_error");

    let openai = json!({"input": "p", "tools": [{"name": "t"}]});
    let answer = send(&models, "POST", "/v1/responses", &openai);
    assert_eq!(answer.json()["error"]["code"], "rate_limit_exceeded");

    let gemini = json!({"contents": [{"role": "user", "parts": [{"text": "p"}]}]});
    let answer = send(&models, "POST", "/v1beta/models/m:streamGenerateContent?alt=sse", &gemini);
    assert_eq!(answer.json()["error"]["status"], "RESOURCE_EXHAUSTED");
}

#[test]
fn a_delay_comes_before_the_first_byte() {
    let models = start(Reply::text("late").delay_ms(300));
    let start = Instant::now();
    assert_eq!(said(&send(&models, "POST", "/v1/messages", &body(false))), "late");
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[test]
fn stopping_ends_what_hangs() {
    for fault in [Fault::Hang, Fault::HangMidway] {
        let models = start(Reply::fault(fault).saying("some text that is long enough"));
        let mut connection = connect(&models);
        let text = body(true).to_string();
        let length = text.len();
        write!(connection, "POST /v1/messages HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{text}")
            .unwrap();
        // An idle connection must not keep the server either.
        let _idle = connect(&models);
        while models.requests().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let start = Instant::now();
        drop(models);
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        assert!(!read_answer(&mut connection).is_whole);
    }
}

#[test]
fn a_client_that_leaves_ends_the_hanging() {
    let models = start(Reply::fault(Fault::Hang));
    let mut connection = connect(&models);
    let text = body(true).to_string();
    write!(
        connection,
        "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    )
    .unwrap();
    while models.records().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(connection);
    let start = Instant::now();
    while models.records()[0].broken.is_none() {
        assert!(start.elapsed() < Duration::from_secs(2));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn another_key_is_refused() {
    let script = Script {
        require_key: Some("right".to_owned()),
        ..Script::new().rule(Rule::new().reply(Reply::text("welcome")))
    };
    let models = ScriptedModels::start(script).unwrap();
    let body = body(false).to_string();
    let ask = |key: &str| send_with(&models, "POST", "/v1/messages", key, &body).status();
    assert_eq!(ask(""), 401);
    assert_eq!(ask("X-Api-Key: wrong\r\n"), 401);
    assert_eq!(ask("X-Api-Key: right\r\n"), 200);
    assert!(models.records().iter().all(|record| !record.headers.contains_key("x-api-key")));
}
