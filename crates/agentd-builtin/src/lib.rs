//! The agents that agentd plays itself, as processes that the engine starts like any agent's CLI:
//! `agentd __builtin …` plans and reviews by rule, `agentd __replay …` plays a recording.
//!
//! They read a prompt from standard input, call the tools of agentd's MCP server, and print
//! [`AgentEvent`]s as lines of JSON. This crate does not know the engine: the documents of a change
//! are read and written over MCP, and the code of the working tree is read and edited as plain files,
//! in the cage that every agent runs in. So it shows that what a stranger's agent gets is enough.

mod call;
mod challenger;
pub mod draft;
mod earlier;
mod error;
mod mcp_client;
mod planner;
mod project;
mod replay;
mod reviewer;
mod session;
mod source_files;
mod transcript;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use agentd_core::agent::AgentKind;
use agentd_core::event::AgentEvent;
use agentd_core::outcome::{Failure, FailureKind, Usage};
use agentd_core::step_name::StepName;

use call::Call;
use error::AgentError;
pub use mcp_client::{ClientError, McpClient, ToolAnswer, count_tools};
use session::Session;
use transcript::Transcript;

/// What one call consists of.
struct Task<'a> {
    call: &'a Call,
    prompt: &'a str,
    /// The working tree.
    cwd: &'a Path,
}

/// Plays the built-in agent. `args` are those behind `__builtin`.
pub fn run_builtin(
    args: impl Iterator<Item = OsString>,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
) -> ExitCode {
    run(args, stdin, stdout, |task, transcript| {
        let session_id = task.call.session.clone().unwrap_or_else(fresh_session);
        let model = Some("builtin".into());
        transcript.event(&AgentEvent::Session { session_id: session_id.into(), model })?;
        act(task, transcript)?;
        // Nothing was used and nothing costs anything, and that is known.
        transcript.event(&AgentEvent::Usage { usage: Usage::default(), cost_usd: Some(0.0) })?;
        transcript.event(&AgentEvent::Finished { text: None })
    })
}

/// Plays a recorded agent. `args` are those behind `__replay`.
pub fn run_replay(
    args: impl Iterator<Item = OsString>,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
) -> ExitCode {
    run(args, stdin, stdout, |task, transcript| replay::run(task.call, task.cwd, transcript))
}

/// Does what a step asks of the built-in agent.
fn act(task: &Task<'_>, transcript: &mut Transcript<'_>) -> Result<(), AgentError> {
    let step = &task.call.step;
    if matches!(step, StepName::Unknown(_)) {
        return Err(AgentError::new(
            FailureKind::Other,
            format!("the built-in agent does not know the step `{step}`"),
            "give the planner's role to another agent in [roles]",
        ));
    }
    if matches!(step, StepName::Reproduce | StepName::Implement(_) | StepName::Fix) {
        return Err(AgentError::new(
            FailureKind::Refused,
            "the built-in agent does not write code: it has no model",
            "give the role to an agent that does: `implementer = \"claude\"` (or codex, gemini) under \
             [roles] in agentd/config.toml",
        ));
    }
    // It signs for itself, also where it stands in for another.
    let signs = ["--agent", AgentKind::Builtin.name()];
    let client = task.call.start_server(task.cwd, "agentd-builtin", &signs)?;
    let session = Session::new(task.call.change.clone(), client, transcript);
    match step {
        StepName::Challenge => challenger::challenge(session),
        StepName::Review => reviewer::review(session, task.prompt, task.cwd),
        step => planner::plan(session, task.prompt, task.cwd, step),
    }
}

fn run(
    args: impl Iterator<Item = OsString>,
    stdin: &mut dyn Read,
    stdout: &mut dyn Write,
    work: impl FnOnce(&Task<'_>, &mut Transcript<'_>) -> Result<(), AgentError>,
) -> ExitCode {
    let mut transcript = Transcript::new(stdout);
    let start = || -> Result<(), AgentError> {
        let config =
            |message: String| AgentError::Failed(Failure::new(FailureKind::Config, message));
        let call = Call::parse(args).map_err(config)?;
        let mut prompt = Vec::new();
        stdin.read_to_end(&mut prompt)?;
        let prompt = String::from_utf8_lossy(&prompt);
        let cwd = std::env::current_dir()?;
        work(&Task { call: &call, prompt: &prompt, cwd: &cwd }, &mut transcript)
    };
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(AgentError::Output(_)) => ExitCode::FAILURE,
        Err(error) => {
            // If even this cannot be written, the exit code has to do.
            let _ = transcript.event(&AgentEvent::Failed { failure: error.failure() });
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
    fn wrong_arguments_are_a_failure_in_the_stream() {
        for wrong in [
            "--change",
            "--change A --step proposal-gen",
            "--what 1",
            "--step clarify",
            "--change a --step no-such-step -- agentd mcp",
            "--change a --step clarify",
        ] {
            let mut out = Vec::new();
            let args = wrong.split(' ').map(OsString::from);
            let code = run_builtin(args, &mut std::io::empty(), &mut out);
            assert_eq!(code, ExitCode::FAILURE);
            let out = String::from_utf8(out).unwrap();
            let last: serde_json::Value =
                serde_json::from_str(out.lines().last().unwrap()).unwrap();
            assert_eq!(last["event"], "failed", "{wrong}");
        }
    }
}
