//! A client that sees every byte.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use scripted_models::ScriptedModels;
use serde_json::{Value, json};

/// An answer, as far as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: String,
    /// Whether the server said that this was all.
    pub(crate) is_whole: bool,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The data of a stream's events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

/// Sends a request on a connection of its own.
pub(crate) fn send(models: &ScriptedModels, method: &str, path: &str, body: &Value) -> Answer {
    send_with(models, method, path, "", &body.to_string())
}

/// Sends a request with further headers.
pub(crate) fn send_with(
    models: &ScriptedModels,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Answer {
    let mut stream = connect(models);
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
        .unwrap();
    read_answer(&mut stream)
}

pub(crate) fn connect(models: &ScriptedModels) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", models.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream
}

/// Reads one answer, byte by byte: the connection may be used again.
pub(crate) fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut answer = Answer { head: String::new(), body: String::new(), is_whole: false };
    while !answer.head.ends_with("\r\n\r\n") {
        let Some(byte) = read_byte(stream) else { return answer };
        answer.head.push(byte);
    }
    if let Some((_, rest)) = answer.head.split_once("content-length: ") {
        let length: usize = rest.split("\r\n").next().unwrap().parse().unwrap();
        answer.is_whole = read_into(stream, length, &mut answer.body);
        return answer;
    }
    loop {
        let mut size = String::new();
        while !size.ends_with("\r\n") {
            let Some(byte) = read_byte(stream) else { return answer };
            size.push(byte);
        }
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let is_read = read_into(stream, size, &mut answer.body);
        let is_ended = read_into(stream, 2, &mut String::new());
        if size == 0 || !is_read || !is_ended {
            answer.is_whole = size == 0 && is_ended;
            return answer;
        }
    }
}

fn read_byte(stream: &mut TcpStream) -> Option<char> {
    let mut byte = [0];
    stream.read_exact(&mut byte).ok()?;
    Some(char::from(byte[0]))
}

fn read_into(stream: &mut TcpStream, length: usize, text: &mut String) -> bool {
    let mut bytes = vec![0; length];
    let is_read = stream.read_exact(&mut bytes).is_ok();
    if is_read {
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    is_read
}

/// A request to claude's models, in the simplest form.
pub(crate) fn ask(models: &ScriptedModels, prompt: &str) -> Answer {
    ask_with(models, &json!([{"role": "user", "content": prompt}]))
}

/// A request to claude's models, with a whole conversation.
pub(crate) fn ask_with(models: &ScriptedModels, messages: &Value) -> Answer {
    let tools = json!([{"name": "mcp__agentd__write_note"}]);
    let body = json!({"model": "claude-x", "messages": messages, "tools": tools});
    send(models, "POST", "/v1/messages?beta=true", &body)
}

/// What the model said, in an answer without a stream.
pub(crate) fn said(answer: &Answer) -> String {
    let body = answer.json();
    body["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}
