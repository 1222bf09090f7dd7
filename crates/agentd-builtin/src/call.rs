//! What the process was started for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentd_core::config::Speed;
use agentd_core::ids::ChangeId;
use agentd_core::outcome::{Failure, FailureKind};
use agentd_core::step_name::StepName;

use crate::error::AgentError;
use crate::mcp_client::McpClient;

/// How long agentd's own server may take for one answer; it may have to wait for a lock.
const ANSWER: Duration = Duration::from_mins(2);

/// The arguments behind `__builtin` or `__replay`.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) change: ChangeId,
    /// A name as text: a recording may have steps that this version does not know.
    pub(crate) step: StepName,
    pub(crate) session: Option<String>,
    pub(crate) recording: Option<PathBuf>,
    pub(crate) speed: Speed,
    /// The runs of the change that is worked on.
    pub(crate) runs: Option<PathBuf>,
    /// The MCP server: a program and its arguments.
    server: Vec<String>,
}

impl Call {
    /// Reads the arguments, which only `agentd_core::provider` makes.
    pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut args = args.map(|arg| arg.to_string_lossy().into_owned());
        let (mut change, mut step) = (None, None);
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
            step: step.map(|name| StepName::of(&name)).ok_or_else(|| missing("step"))?,
            session,
            recording,
            speed,
            runs,
            server,
        })
    }

    /// Starts the server that the agent was given, with further arguments.
    pub(crate) fn start_server(
        &self,
        cwd: &Path,
        name: &str,
        more: &[&str],
    ) -> Result<McpClient, AgentError> {
        let Some((program, args)) = self.server.split_first() else {
            let message = "no MCP server was given";
            return Err(AgentError::Failed(Failure::new(FailureKind::McpUnavailable, message)));
        };
        let more = more.iter().map(|arg| (*arg).to_owned());
        let args: Vec<String> = args.iter().cloned().chain(more).collect();
        Ok(McpClient::start(Path::new(program), &args, cwd, name, ANSWER)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_behind_two_dashes() {
        let args = "--change add-login --step proposal-gen --speed 2x -- agentd mcp -C /p";
        let call = Call::parse(args.split(' ').map(OsString::from)).unwrap();
        assert_eq!((call.change.as_str(), &call.step), ("add-login", &StepName::ProposalGen));
        assert_eq!(call.server, ["agentd", "mcp", "-C", "/p"]);
    }
}
