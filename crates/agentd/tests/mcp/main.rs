//! `agentd mcp` as clients see it: a process that speaks JSON-RPC in lines.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may panic")]
#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]
#![allow(clippy::needless_pass_by_value, reason = "json!(…) reads better without borrowing")]

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
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

pub(crate) const CHANGE: &str = "add-oauth";

/// A project with the changes `add-oauth` and `other`, under git.
pub(crate) struct Project {
    dir: tempfile::TempDir,
}

impl Project {
    pub(crate) fn new() -> Self {
        let project = Self { dir: scratch::dir() };
        for change in [CHANGE, "other"] {
            fs::create_dir_all(project.path(&format!("agentd/changes/{change}"))).unwrap();
        }
        project.write("agentd/config.toml", "");
        project.write("agentd/changes/other/proposal.md", "# Change: other\n");
        project.write("src/main.rs", "fn main() {}\n");
        project
    }

    /// With a plan that the tools have written.
    pub(crate) fn planned() -> Self {
        let project = Self::new();
        let mut planner = project.client("planner");
        planner.ok("create_proposal", plan::proposal());
        planner.ok("create_spec", plan::spec("user-model"));
        planner.ok("create_spec", plan::spec("auth-flow"));
        planner.ok("create_tasks", plan::tasks());
        project
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn in_change(&self, file: &str) -> String {
        self.read(&format!("agentd/changes/{CHANGE}/{file}"))
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(arguments)
            .current_dir(self.root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentd"));
        command.arg("mcp").args(arguments).current_dir(self.root());
        command
    }

    /// A client bound to `add-oauth` and a role, after the handshake.
    pub(crate) fn client(&self, role: &str) -> Client {
        Client::start(self.command(&["--change", CHANGE, "--role", role]))
    }

    /// A client with the tools of a planner who proposes questions.
    pub(crate) fn clarifying_client(&self) -> Client {
        let step = ["--change", CHANGE, "--role", "planner", "--step", "clarify"];
        Client::start(self.command(&step))
    }

    /// A client of all changes and tools.
    pub(crate) fn free_client(&self) -> Client {
        Client::start(self.command(&[]))
    }

    /// Everything below the root: path, kind, and bytes or target. Locks come and go.
    pub(crate) fn snapshot(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        walk(self.root(), self.root(), &mut found);
        found.retain(|path, _| !path.starts_with("agentd/.locks") && !path.starts_with(".git/"));
        found
    }
}

fn walk(root: &Path, dir: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.insert(format!("{name}/"), Vec::new());
            walk(root, &path, found);
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.insert(format!("{name} ->"), target.to_string_lossy().into_owned().into_bytes());
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
}

/// A server process and its streams.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
    /// What `tools/list` says of the answers.
    outputs: BTreeMap<String, Value>,
}

impl Client {
    /// Starts a server without a word.
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

    /// Starts a server and shakes hands with it.
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

    /// Sends a request and says under which id.
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

    /// Calls a tool and holds the answer against what was promised.
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

    /// Calls a tool that must work, and gives its structured answer or its text.
    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments);
        let result = &answer["result"];
        assert!(result.is_object() && result["isError"] != true, "{tool}: {answer}");
        result.get("structuredContent").unwrap_or(&result["content"][0]["text"]).clone()
    }

    /// Calls a tool that must refuse, and gives the words.
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["result"]["isError"], true, "{tool}: {answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Hangs up.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Hangs up and gives what was still to be said, and the errors.
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
