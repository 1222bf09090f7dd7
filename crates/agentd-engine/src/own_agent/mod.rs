//! The agents that agentd plays itself, as the process that [`step`](crate::agents::step)
//! starts for them: `agentd __builtin …` and `agentd __replay …`.
//!
//! They read a prompt from standard input, call the tools of agentd's MCP server as
//! every CLI does, and print [`AgentEvent`]s as lines of JSON.

mod builtin;
mod judge;
mod play;
mod project;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use agentd_core::agent::Role;
use agentd_core::config::Speed;
use agentd_core::event::{AgentEvent, Json};
use agentd_core::ids::ChangeId;
use agentd_core::outcome::{Failure, FailureKind, Usage};
use agentd_core::provider::MCP_SERVER;
use serde_json::Value;

use crate::agents::recording::RecordingError;
use crate::change::documents::DocumentError;
use crate::mcp_client::{ClientError, McpClient, ToolAnswer};
use crate::store::StoreError;

pub use play::{DIVERGES, NOW};

/// How long agentd's own server may take for one answer; a lock may keep it waiting.
const ANSWER: Duration = Duration::from_mins(2);

/// What the process was started for.
#[derive(Debug)]
struct Call {
    change: ChangeId,
    role: Role,
    step: String,
    session: Option<String>,
    recording: Option<PathBuf>,
    speed: Speed,
    /// The runs of the change that is worked on.
    runs: Option<PathBuf>,
    /// The MCP server: a program and its arguments.
    server: Vec<String>,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
enum OwnError {
    /// It ended by itself, with a reason.
    #[error("{}", .0.message)]
    Failed(Failure),
    /// Nobody reads what is said.
    #[error("the output cannot be written: {0}")]
    Output(#[from] std::io::Error),
    #[error("agentd's MCP server: {0}")]
    Client(#[from] ClientError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Documents(#[from] DocumentError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

impl OwnError {
    fn new(kind: FailureKind, message: impl Into<String>, hint: &str) -> Self {
        Self::Failed(Failure::new(kind, message).hint(hint))
    }

    fn failure(self) -> Failure {
        let message = self.to_string();
        match self {
            Self::Failed(failure) => failure,
            Self::Client(_) => Failure::new(FailureKind::McpUnavailable, message),
            Self::Recording(_) => Failure::new(FailureKind::Config, message)
                .hint("set `recording` in [replay] to a directory of run files that has this call"),
            Self::Output(_) | Self::Store(_) | Self::Documents(_) => {
                Failure::new(FailureKind::Other, message)
            }
        }
    }
}

impl Call {
    /// Reads the arguments behind `__builtin` or `__replay`; only [`step`](crate::agents::step) makes them.
    fn parse(args: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut args = args.map(|arg| arg.to_string_lossy().into_owned());
        let (mut change, mut role, mut step) = (None, None, None);
        let (mut session, mut recording, mut runs) = (None, None, None);
        let mut speed = Speed::Full;
        let mut server = Vec::new();
        while let Some(flag) = args.next() {
            if flag == "--" {
                server = args.collect();
                break;
            }
            let value = args.next().ok_or_else(|| format!("`{flag}` has no value"))?;
            match flag.as_str() {
                "--change" => change = Some(ChangeId::new(&value).map_err(|e| e.to_string())?),
                "--role" => role = Some(value.parse::<Role>().map_err(|e| e.to_string())?),
                "--step" => step = Some(value),
                "--session" => session = Some(value),
                "--recording" => recording = Some(PathBuf::from(value)),
                "--runs" => runs = Some(PathBuf::from(value)),
                "--speed" => speed = value.parse()?,
                _ => return Err(format!("unknown argument `{flag}`")),
            }
        }
        let missing = |what: &str| format!("`--{what}` is missing");
        Ok(Self {
            change: change.ok_or_else(|| missing("change"))?,
            role: role.ok_or_else(|| missing("role"))?,
            step: step.ok_or_else(|| missing("step"))?,
            session,
            recording,
            speed,
            runs,
            server,
        })
    }

    /// Starts the server that the agent was given.
    fn client(&self, cwd: &Path, name: &str, more: &[String]) -> Result<McpClient, OwnError> {
        let Some((program, args)) = self.server.split_first() else {
            let message = "no MCP server was given";
            return Err(OwnError::Failed(Failure::new(FailureKind::McpUnavailable, message)));
        };
        let args: Vec<String> = args.iter().chain(more).cloned().collect();
        Ok(McpClient::start(Path::new(program), &args, cwd, name, ANSWER)?)
    }

    /// Where the project is searched from: where the server is told to, else where we are.
    fn project_start<'a>(&'a self, cwd: &'a Path) -> &'a Path {
        let flag = self.server.iter().position(|arg| arg == "-C" || arg == "--directory");
        flag.and_then(|at| self.server.get(at + 1)).map_or(cwd, Path::new)
    }
}

/// What the process says, line by line.
struct Voice<'w> {
    out: &'w mut dyn Write,
    calls: u32,
}

impl Voice<'_> {
    fn event(&mut self, event: &AgentEvent<'_>) -> Result<(), OwnError> {
        self.line(&serde_json::to_string(event).map_err(std::io::Error::from)?)
    }

    fn line(&mut self, line: &str) -> Result<(), OwnError> {
        writeln!(self.out, "{line}")?;
        Ok(self.out.flush()?)
    }

    fn say(&mut self, text: &str) -> Result<(), OwnError> {
        self.event(&AgentEvent::Text { text: text.into(), delta: false })
    }

    /// Calls a tool of agentd's, telling of the call and of its answer.
    fn call(
        &mut self,
        client: &mut McpClient,
        tool: &str,
        arguments: &Value,
    ) -> Result<ToolAnswer, OwnError> {
        self.calls += 1;
        let id = format!("call-{}", self.calls);
        let raw = serde_json::value::to_raw_value(arguments).map_err(std::io::Error::from)?;
        self.event(&AgentEvent::ToolCall {
            id: id.as_str().into(),
            server: Some(MCP_SERVER.into()),
            name: tool.into(),
            arguments: Json::from(raw),
        })?;
        let answer = client.call(tool, arguments, None)?;
        let output = answer.text.as_str().into();
        self.event(&AgentEvent::ToolResult { id: id.into(), ok: answer.ok, output })?;
        Ok(answer)
    }

    /// The same for a call that has to succeed.
    fn must(
        &mut self,
        client: &mut McpClient,
        tool: &str,
        arguments: &Value,
    ) -> Result<String, OwnError> {
        let answer = self.call(client, tool, arguments)?;
        if answer.ok {
            return Ok(answer.text);
        }
        let message = format!("{tool} was refused: {}", answer.text);
        Err(OwnError::Failed(Failure::new(FailureKind::Other, message)))
    }
}

/// Plays the built-in agent. `args` are those behind `__builtin`.
pub fn run_builtin(
    args: impl Iterator<Item = OsString>,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
) -> ExitCode {
    run(args, stdin, stdout, |call, prompt, cwd, voice| {
        let session_id = call.session.clone().unwrap_or_else(fresh_session);
        let model = Some("builtin".into());
        voice.event(&AgentEvent::Session { session_id: session_id.into(), model })?;
        builtin::run(call, prompt, cwd, voice)?;
        // Nothing was used and nothing costs anything, and that is known.
        voice.event(&AgentEvent::Usage { usage: Usage::default(), cost_usd: Some(0.0) })?;
        voice.event(&AgentEvent::Finished { text: None })
    })
}

/// Plays a recorded agent. `args` are those behind `__replay`.
pub fn run_replay(
    args: impl Iterator<Item = OsString>,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
) -> ExitCode {
    run(args, stdin, stdout, |call, _, cwd, voice| play::run(call, cwd, voice))
}

fn run(
    args: impl Iterator<Item = OsString>,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
    work: impl FnOnce(&Call, &str, &Path, &mut Voice<'_>) -> Result<(), OwnError>,
) -> ExitCode {
    let mut voice = Voice { out: stdout, calls: 0 };
    let start = || -> Result<(), OwnError> {
        let config = |message: String| OwnError::Failed(Failure::new(FailureKind::Config, message));
        let call = Call::parse(args).map_err(config)?;
        let mut prompt = Vec::new();
        stdin.read_to_end(&mut prompt)?;
        let prompt = String::from_utf8_lossy(&prompt);
        let cwd = std::env::current_dir()?;
        work(&call, &prompt, &cwd, &mut voice)
    };
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(OwnError::Output(_)) => ExitCode::FAILURE,
        Err(error) => {
            // If even this cannot be said, the exit code says it.
            let _ = voice.event(&AgentEvent::Failed { failure: error.failure() });
            ExitCode::FAILURE
        }
    }
}

/// An id that no other call has.
fn fresh_session() -> String {
    let now = jiff::Timestamp::now().as_nanosecond();
    format!("builtin-{now:x}-{:x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_and_wrong_ones_are_a_failure_in_the_stream() {
        let args =
            "--change add-login --role planner --step proposal-gen --speed 2x -- agentd mcp -C /p";
        let call = Call::parse(args.split(' ').map(OsString::from)).unwrap();
        assert_eq!(call.server, ["agentd", "mcp", "-C", "/p"]);
        assert_eq!(call.project_start(Path::new("/here")), Path::new("/p"));
        for wrong in
            ["--change", "--change A --role planner --step x", "--what 1", "--role planner"]
        {
            let mut out = Vec::new();
            let args = wrong.split(' ').map(OsString::from);
            let code = run_builtin(args, &mut std::io::empty(), &mut out);
            assert_eq!(code, ExitCode::FAILURE);
            let line: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(line["event"], "failed", "{wrong}");
        }
    }
}
