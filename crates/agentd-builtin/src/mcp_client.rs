//! A client of agentd's own MCP server: starts it as an agent's CLI would and calls its tools. As
//! much of the protocol as that takes: requests one after the other, one JSON message per line.
//!
//! The server is started with the standard library alone. The engine has a layer for child
//! processes, but it is not for agents to use: an agent runs under it, and its supervisor ends the
//! server too if this process is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use agentd_core::text::head;
use serde_json::{Map, Value, json};

/// Why the server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It could not be started.
    #[error("it cannot be started: {0}")]
    Start(#[from] std::io::Error),
    /// It took too long.
    #[error("it did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It answered something else.
    #[error("it ended or answered with something else: {0}")]
    Answer(String),
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// Whether it did what it was asked to.
    pub ok: bool,
    /// The answer in words.
    pub text: String,
    /// The blocks that `text` consists of.
    pub blocks: Vec<String>,
    /// The same for programs, where the tool has that.
    pub structured: Option<Value>,
}

/// A running server; dropping this ends it.
#[derive(Debug)]
pub struct McpClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
    limit: Duration,
}

/// Starts the MCP server as an agent would, and asks it for its tools: how many there are.
pub fn count_tools(
    agentd: &Path,
    project: &Path,
    name: &str,
    limit: Duration,
) -> Result<usize, ClientError> {
    let mut client = McpClient::start(agentd, &["mcp".to_owned()], project, name, limit)?;
    Ok(client.tools()?.len())
}

/// How long a server that has lost its client may take to end.
const GRACE: Duration = Duration::from_secs(2);

impl McpClient {
    /// Starts a server and shakes hands. `limit` is for each answer.
    pub fn start(
        program: &Path,
        args: &[String],
        cwd: &Path,
        name: &str,
        limit: Duration,
    ) -> Result<Self, ClientError> {
        let mut child = Command::new(program)
            .args(args)
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = child.stdout.take();
        let stdin = child.stdin.take();
        let (sender, lines) = mpsc::channel();
        let mut client = Self { child, stdin, lines, last_id: 0, limit };
        let Some(stdout) = stdout else {
            return Err(ClientError::Answer("no pipe".to_owned()));
        };
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let hello = client.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": { "name": name, "version": env!("CARGO_PKG_VERSION") },
            }),
        )?;
        hello.map_err(|error| ClientError::Answer(error.to_string()))?;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(client)
    }

    /// The names of the tools that are offered.
    pub fn tools(&mut self) -> Result<Vec<String>, ClientError> {
        let answer = self.request("tools/list", &json!({}))?;
        let result = answer.map_err(|error| ClientError::Answer(error.to_string()))?;
        let tools = result["tools"].as_array();
        let tools = tools.ok_or_else(|| ClientError::Answer("no list of tools".to_owned()))?;
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect())
    }

    /// Calls a tool. A refusal is an answer; `meta` goes along as `_meta`.
    pub fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
        meta: Option<Value>,
    ) -> Result<ToolAnswer, ClientError> {
        let mut params = Map::new();
        params.insert("name".to_owned(), json!(tool));
        params.insert("arguments".to_owned(), arguments.clone());
        if let Some(meta) = meta {
            params.insert("_meta".to_owned(), meta);
        }
        let result = match self.request("tools/call", &Value::Object(params))? {
            Ok(result) => result,
            Err(error) => {
                let text = error["message"].as_str().unwrap_or("it failed").to_owned();
                return Ok(ToolAnswer {
                    ok: false,
                    blocks: vec![text.clone()],
                    text,
                    structured: None,
                });
            }
        };
        let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let texts = blocks.iter().filter_map(|block| block["text"].as_str().map(str::to_owned));
        let blocks: Vec<String> = texts.collect();
        Ok(ToolAnswer {
            ok: result["isError"].as_bool() != Some(true),
            text: blocks.join("\n"),
            blocks,
            structured: result.get("structuredContent").cloned(),
        })
    }

    fn send(&mut self, message: &Value) -> Result<(), ClientError> {
        let stdin = self.stdin.as_mut();
        let stdin = stdin.ok_or_else(|| ClientError::Answer("no pipe".to_owned()))?;
        writeln!(stdin, "{message}").map_err(|error| ClientError::Answer(error.to_string()))
    }

    /// Sends a request and waits for its answer: a result, or the server's error.
    fn request(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<Result<Value, Value>, ClientError> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let until = Instant::now() + self.limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).map_err(|error| match error {
                RecvTimeoutError::Timeout => ClientError::TimedOut(self.limit),
                RecvTimeoutError::Disconnected => ClientError::Answer("it has ended".to_owned()),
            })?;
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else {
                return Err(ClientError::Answer(head(&line, 200).to_owned()));
            };
            // Progress and logs go by.
            if message["id"].as_u64() == Some(id) {
                return Ok(match message.get("error") {
                    Some(_) => Err(message["error"].take()),
                    None => Ok(message["result"].take()),
                });
            }
        }
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // It ends with its input. If it does not, there is nothing left to wait for.
        self.stdin = None;
        let until = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
