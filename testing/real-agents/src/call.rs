//! One call of a CLI, supervised.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::stream::{self, Usage};
use crate::{Cli, Sandbox};

/// An MCP server to offer to a CLI, spoken to on stdin and stdout.
#[derive(Clone, Debug)]
pub struct McpServer {
    /// Its name in the CLI's configuration.
    pub name: String,
    /// The program.
    pub command: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// What an agent may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Read the project, and use all tools of the MCP server.
    Reader,
    /// Also write in the project, and run commands.
    Writer,
}

/// A call of a CLI in a sandbox, with the flags that headless use needs.
pub struct Call<'a> {
    sandbox: &'a Sandbox,
    cli: Cli,
    prompt: String,
    model: Option<String>,
    session: Option<String>,
    mcp: Option<McpServer>,
    profile: Profile,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    without: Vec<String>,
    limit: Duration,
    signal: Signal,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The CLI that was called.
    pub cli: Cli,
    /// The exit code, unless a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was killed, because it took too long or because the test had
    /// seen enough.
    pub is_killed: bool,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
    /// From start to end.
    pub elapsed: Duration,
}

impl<'a> Call<'a> {
    pub(crate) fn new(sandbox: &'a Sandbox, cli: Cli, prompt: &str) -> Self {
        Self {
            sandbox,
            cli,
            prompt: prompt.to_owned(),
            model: None,
            session: None,
            mcp: None,
            profile: Profile::Reader,
            arguments: Vec::new(),
            variables: Vec::new(),
            without: Vec::new(),
            limit: Duration::from_mins(1),
            signal: Signal::KILL,
        }
    }

    /// Asks for a model.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.model = Some(model.to_owned());
        self
    }

    /// Resumes a session.
    #[must_use]
    pub fn resume(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    /// Offers an MCP server, and allows all of its tools.
    #[must_use]
    pub fn mcp(mut self, server: &McpServer) -> Self {
        self.mcp = Some(server.clone());
        self
    }

    /// Sets what the agent may do; it may read unless set.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets the signal that ends it early; KILL unless set. It is sent to the
    /// whole group, and KILL follows after five seconds.
    #[must_use]
    pub fn signal(mut self, signal: Signal) -> Self {
        self.signal = signal;
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes a variable out of the environment.
    #[must_use]
    pub fn without_variable(mut self, name: &str) -> Self {
        self.without.push(name.to_owned());
        self
    }

    /// Limits how long it may take; a minute unless set.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it to its end.
    pub fn run(&self) -> Finished {
        self.run_until(|| false)
    }

    /// Runs it to its end, or kills it once the test has seen enough.
    pub fn run_until(&self, is_enough: impl Fn() -> bool) -> Finished {
        let mut command = self.command();
        // A group of its own, because gemini and codex are wrappers around the
        // program that does the work.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = Instant::now();
        let mut child = command.spawn().expect("the installed CLI starts");
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        let prompt = self.prompt.clone();
        // Errors are ignored: a CLI may end without reading its prompt.
        std::thread::spawn(move || stdin.write_all(prompt.as_bytes()));
        let stdout = collect(child.stdout.take().expect("stdout is a pipe"));
        let stderr = collect(child.stderr.take().expect("stderr is a pipe"));
        let is_over = || start.elapsed() > self.limit || is_enough();
        let (status, is_killed) = supervise(&mut child, is_over, self.signal);
        let elapsed = start.elapsed();
        Finished {
            cli: self.cli,
            exit_code: status.code(),
            signal: status.signal(),
            is_killed,
            stdout: collected(&stdout),
            stderr: collected(&stderr),
            elapsed,
        }
    }

    /// The command line and the environment.
    pub fn command(&self) -> Command {
        let mut command = self.sandbox.any_command(self.sandbox.clis().program(self.cli));
        match self.cli {
            Cli::Gemini => self.gemini(&mut command),
            Cli::Codex => self.codex(&mut command),
            Cli::Claude => self.claude(&mut command),
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        for name in &self.without {
            command.env_remove(name);
        }
        command
    }

    fn gemini(&self, command: &mut Command) {
        command.env("GEMINI_CLI_TRUST_WORKSPACE", "true").env("GEMINI_CLI_NO_RELAUNCH", "true");
        if let Some(mcp) = &self.mcp {
            let settings = json!({"mcpServers": {mcp.name.as_str(): {
                "command": mcp.command, "args": mcp.arguments, "trust": true, "timeout": 30_000,
            }}});
            let folder = self.sandbox.root().join(".gemini");
            fs::create_dir_all(&folder).expect("the project is writable");
            fs::write(folder.join("settings.json"), settings.to_string())
                .expect("the project is writable");
        }
        command.args(["--output-format", "stream-json"]);
        if self.profile == Profile::Writer {
            command.args(["--approval-mode", "yolo"]);
        }
        command.args(self.model.iter().flat_map(|model| ["-m", model.as_str()]));
        command.args(self.session.iter().flat_map(|id| ["--resume", id.as_str()]));
        command.args(&self.arguments);
    }

    fn codex(&self, command: &mut Command) {
        let sandbox_mode = match self.profile {
            Profile::Reader => "sandbox_mode=\"read-only\"",
            Profile::Writer => "sandbox_mode=\"workspace-write\"",
        };
        command.args(["exec", "--json", "-c", sandbox_mode]);
        // Both are needed, or it waits five seconds for a network at its end.
        command.args(["-c", "analytics.enabled=false", "--disable", "plugins"]);
        command.args(self.model.iter().flat_map(|model| ["-m", model.as_str()]));
        if let Some(mcp) = &self.mcp {
            // A JSON string or array is also one in TOML.
            let server = format!(
                "mcp_servers.{}={{command={},args={},required=true,\
                 default_tools_approval_mode=\"approve\"}}",
                mcp.name,
                json!(mcp.command),
                json!(mcp.arguments),
            );
            command.arg("-c").arg(server);
        }
        command.args(&self.arguments);
        command.args(self.session.iter().flat_map(|id| ["resume", id.as_str()]));
        command.arg("-");
    }

    fn claude(&self, command: &mut Command) {
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        command.env("MCP_CONNECTION_NONBLOCKING", "0");
        command.args(["-p", "--output-format", "stream-json", "--verbose"]);
        let mut allowed = Vec::new();
        if self.profile == Profile::Writer {
            command.args(["--tools", "Read,Grep,Glob,Edit,Write,Bash"]);
            allowed.extend(["Edit".to_owned(), "Write".to_owned(), "Bash".to_owned()]);
        } else {
            command.args(["--tools", "Read,Grep,Glob"]);
        }
        command.args(self.model.iter().flat_map(|model| ["--model", model.as_str()]));
        command.args(self.session.iter().flat_map(|id| ["--resume", id.as_str()]));
        if let Some(mcp) = &self.mcp {
            let server = json!({"command": mcp.command, "args": mcp.arguments});
            let file = self.sandbox.base().join("mcp.json");
            let servers = json!({"mcpServers": {mcp.name.as_str(): server}});
            fs::write(&file, servers.to_string()).expect("the sandbox is writable");
            command.arg("--mcp-config").arg(file).arg("--strict-mcp-config");
            allowed.push(format!("mcp__{}__*", mcp.name));
        }
        if !allowed.is_empty() {
            command.arg("--allowedTools").arg(allowed.join(","));
        }
        command.args(&self.arguments);
    }
}

impl Finished {
    /// The lines of stdout, which must all be JSON.
    pub fn events(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| match serde_json::from_str(line) {
                Ok(event) => event,
                Err(error) => panic!("{error} in a line of {:?}: {line:?}", self.cli),
            })
            .collect()
    }

    /// The id of the session, as the CLI says it.
    pub fn session_id(&self) -> Option<String> {
        stream::session_id(self.cli, &self.events())
    }

    /// Whether the CLI says, as its last event, that all went well.
    pub fn is_success(&self) -> bool {
        stream::is_success(self.cli, &self.events())
    }

    /// What the model said last.
    pub fn final_text(&self) -> String {
        stream::final_text(self.cli, &self.events())
    }

    /// What the CLI says it used.
    pub fn usage(&self) -> Option<Usage> {
        stream::usage(self.cli, &self.events())
    }
}

/// Waits for the end or signals it when it is over, and leaves nothing of the
/// group behind; returns whether it was signaled.
fn supervise(child: &mut Child, is_over: impl Fn() -> bool, signal: Signal) -> (ExitStatus, bool) {
    let group = Pid::from_child(child);
    let mut signalled: Option<Instant> = None;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            break status;
        }
        if signalled.is_some_and(|at| at.elapsed() > Duration::from_secs(5)) {
            let _ = kill_process_group(group, Signal::KILL);
        } else if signalled.is_none() && is_over() {
            let _ = kill_process_group(group, signal);
            signalled = Some(Instant::now());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    // Also after its end: a child of its own could still hold the pipes.
    let _ = kill_process_group(group, Signal::KILL);
    (status, signalled.is_some())
}

/// Reads a pipe to its end, in a thread.
fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

/// What was read, once the program is gone.
fn collected(output: &Receiver<String>) -> String {
    let text = output.recv_timeout(Duration::from_secs(5));
    text.expect("something that the CLI started is left, and holds its output open")
}

/// Sends a signal to one process, and to nothing that it has started.
pub fn signal(child: &Child, signal: Signal) {
    rustix::process::kill_process(Pid::from_child(child), signal).expect("it is still there");
}
