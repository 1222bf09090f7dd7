//! `agentd mcp` as clients see it: a process that speaks JSON-RPC in lines.
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]
#![allow(clippy::needless_pass_by_value, reason = "json!(…) reads better without borrowing")]

mod asking;
mod concurrency;
mod escapes;
mod floods;
mod handshakes;
mod inspector;
mod lifecycle;
mod plan;
mod published;
mod questions;
mod sdk;
mod tools;
mod violations;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use test_project::TestProject;

pub(crate) const CHANGE: &str = "add-oauth";

/// A project with the changes `add-oauth` and `other`, and git on its PATH.
pub(crate) fn project() -> TestProject {
    let project = TestProject::new().programs(&["cat", "git", "sh", "touch"]).about(CHANGE);
    fs::create_dir(project.change_dir()).unwrap();
    project
        .root_file("agentd/config.toml", "")
        .root_file("agentd/changes/other/proposal.md", "# Change: other\n")
        .root_file("src/main.rs", "fn main() {}\n")
}

/// The same, with a plan that the tools have written.
pub(crate) fn planned() -> TestProject {
    let project = project();
    let mut planner = project.client("planner");
    planner.ok("create_proposal", plan::proposal());
    planner.ok("create_spec", plan::spec("user-model"));
    planner.ok("create_spec", plan::spec("auth-flow"));
    planner.ok("create_tasks", plan::tasks());
    project
}

/// The servers of a project.
pub(crate) trait Servers {
    /// `agentd mcp` with these arguments.
    fn server(&self, arguments: &[&str]) -> Command;

    /// A client bound to `add-oauth` and a role, after the handshake.
    fn client(&self, role: &str) -> Client {
        Client::start(self.server(&["--change", CHANGE, "--role", role]))
    }

    /// A client with the tools of a planner who proposes questions.
    fn clarifying_client(&self) -> Client {
        let step = ["--change", CHANGE, "--role", "planner", "--step", "clarify"];
        Client::start(self.server(&step))
    }

    /// A client that has this tool: only those that agentd starts for a role have those that
    /// count (T1).
    fn client_with(&self, tool: &str) -> Client {
        match tool {
            "append_review" => self.client("challenger"),
            "create_review" => self.client("reviewer"),
            "complete_task" => self.client("implementer"),
            _ => Client::start(self.server(&["--change", CHANGE])),
        }
    }

    /// A client of all changes, with every tool that does not count.
    fn free_client(&self) -> Client {
        Client::start(self.server(&[]))
    }
}

impl Servers for TestProject {
    fn server(&self, arguments: &[&str]) -> Command {
        self.command([&["mcp"], arguments].concat())
    }
}

/// A server process and its streams.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
    /// The output schemas of `tools/list`.
    outputs: BTreeMap<String, Value>,
}

impl Client {
    /// Starts a server, without a handshake.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output, next_id: 1, outputs: BTreeMap::new() }
    }

    /// Starts a server, and does the handshake.
    pub(crate) fn start(command: Command) -> Self {
        let mut client = Self::spawn(command);
        client.initialize("2025-11-25");
        let tools = client.result("tools/list", json!({}))["tools"].clone();
        for tool in tools.as_array().unwrap() {
            let name = tool["name"].as_str().unwrap().to_owned();
            if let Some(schema) = tool.get("outputSchema") {
                client.outputs.insert(name, schema.clone());
            }
        }
        client
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        let params = json!({"protocolVersion": version, "capabilities": {},
            "clientInfo": {"name": "test-client", "version": "1"}});
        let result = self.result("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        result
    }

    pub(crate) fn send_line(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    /// Sends a request, and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message. Everything on standard output must be one.
    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).unwrap();
        assert!(read > 0, "the server has hung up: {}", self.stderr());
        let message: Value = serde_json::from_str(&line).expect("a line of JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// The answer to a request; notifications before it are dropped.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
            assert!(message.get("id").is_none(), "not asked: {message}");
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Calls a tool, and checks the answer against its published schema.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = answer["result"].clone();
        if result.is_object() && result["isError"] != true {
            self.check_output(tool, &result);
        }
        answer
    }

    pub(crate) fn check_output(&self, tool: &str, result: &Value) {
        match (self.outputs.get(tool), result.get("structuredContent")) {
            (Some(schema), Some(content)) => {
                let validator = jsonschema::validator_for(schema).unwrap();
                assert!(validator.is_valid(content), "{tool}: {content} against {schema}");
            }
            (None, None) => {}
            (promised, given) => panic!("{tool}: promised {promised:?}, given {given:?}"),
        }
        assert!(result["content"].as_array().is_some_and(|c| !c.is_empty()), "{tool}: {result}");
    }

    /// Calls a tool that must work, and returns its structured answer or its text.
    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments);
        let result = &answer["result"];
        assert!(result.is_object() && result["isError"] != true, "{tool}: {answer}");
        result.get("structuredContent").unwrap_or(&result["content"][0]["text"]).clone()
    }

    /// Calls a tool that must refuse, and returns its message.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Hangs up.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Hangs up, and returns the remaining lines and the errors.
    pub(crate) fn finish(mut self) -> (Vec<String>, String) {
        self.close_input();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let stderr = self.stderr();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {stderr}");
        (rest.lines().map(str::to_owned).collect(), stderr)
    }

    fn stderr(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = self.child.try_wait();
            self.input = None;
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
