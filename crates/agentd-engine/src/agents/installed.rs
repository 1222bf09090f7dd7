//! The agents' programs on this machine.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use agentd_core::agent::AgentKind;
use agentd_core::config::{Config, Roles};
use agentd_core::known_agent::{KNOWN, KnownAgent};
use agentd_core::provider::classify::not_installed;
use rustix::process::Signal;

use super::step::{Agents, StepError, program};
use crate::process::child::{Child, ChildCommand, ChildError, ChildLimits, ChildOutput};
use crate::process::find_program;

/// Why a program did not report its version.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// It could not be started.
    #[error("it cannot be started: {0}")]
    Start(#[from] std::io::Error),
    /// It took too long.
    #[error("`{words}` did not answer within {} s", .limit.as_secs())]
    TimedOut {
        /// What it was asked.
        words: &'static str,
        /// How long it had.
        limit: Duration,
    },
    /// It failed.
    #[error("`--version` failed: {0}")]
    Failed(String),
    /// It printed nothing.
    #[error("`--version` printed nothing")]
    Silent,
}

/// Asks a program something that it answers without a model.
pub(super) fn ask(
    program: &Path,
    words: &'static str,
    env: &[(OsString, Option<OsString>)],
    limit: Duration,
) -> Result<ChildOutput, VersionError> {
    let limits = ChildLimits {
        time: limit,
        grace: Duration::ZERO,
        drain: Duration::from_millis(500),
        // More than this is no version.
        stdout_bytes: 4096,
        stderr_bytes: 4096,
    };
    let args: Vec<OsString> = words.split(' ').map(OsString::from).collect();
    let command = ChildCommand {
        program: program.as_os_str(),
        args: &args,
        // Not the current directory: some CLIs read its settings before they answer.
        cwd: Path::new("/"),
        env,
        input: b"",
        orphan_signal: Signal::KILL,
        limits,
    };
    Child::start(&command)?.wait(None).map_err(|error| match error {
        ChildError::System(source) => VersionError::Start(source),
        ChildError::TimedOut | ChildError::Cancelled => VersionError::TimedOut { words, limit },
    })
}

/// What a program answers to `--version`, in its own words but on one line.
pub fn version(program: &Path, limit: Duration) -> Result<String, VersionError> {
    let output = ask(program, "--version", &[], limit)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = agentd_core::text::Line::new(text.lines().next().unwrap_or_default()).to_string();
    match output.code() {
        0 if line.is_empty() => Err(VersionError::Silent),
        0 => Ok(line),
        _ => Err(VersionError::Failed(output.status.to_string())),
    }
}

/// Whether the built-in agent should be offered for planning: nobody has chosen agents
/// in the configuration, and no agent at all is on this machine. Anyone who has chosen one
/// that is missing gets that error, and never another agent (T2).
pub(crate) fn offers_builtin(config: &Config, path: &OsStr, root: &Path) -> bool {
    let chosen = config.roles_are_written
        || !config.agents.is_empty()
        || AgentKind::CLIS.into_iter().any(|agent| config.agent(agent).command.is_some());
    !chosen && on_path(path, root).next().is_none()
}

/// The known agents whose programs are on PATH.
pub fn on_path(path: &OsStr, root: &Path) -> impl Iterator<Item = AgentKind> {
    let is_here = move |row: &&KnownAgent| find_program(row.program, path, root).is_some();
    KNOWN.iter().filter(is_here).filter_map(|row| row.name.parse().ok())
}

/// The same roles with one agent in every one that it can play. The built-in one writes no
/// code, so the implementer stays who it was.
pub fn roles_of(agent: AgentKind, roles: Roles) -> Roles {
    let implementer = if agent == AgentKind::Builtin { roles.implementer } else { agent };
    Roles { planner: agent, challenger: agent, reviewer: agent, implementer }
}

/// Fails where the program of an agent is not on this machine, so that nothing begins that
/// could not continue.
pub(crate) fn must_be_installed(agents: &Agents, agent: AgentKind) -> Result<(), StepError> {
    if agent.is_own() {
        return Ok(());
    }
    let (name, _) = program(agents, agent)?;
    let path = agents.path();
    if find_program(&name, &path, agents.project.root()).is_some() {
        return Ok(());
    }
    let failure = not_installed(agent, &name, "no such program is on PATH");
    Err(StepError::Agent { agent, role: None, failure: Box::new(failure) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_agent_is_offered_if_no_other_is_installed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().as_os_str();
        let root = Path::new("/nowhere/project");
        let parse = |text: &str| Config::parse(text).unwrap();
        assert!(offers_builtin(&parse(""), path, root));
        assert!(!offers_builtin(&parse("[roles]\nplanner = \"claude\"\n"), path, root));
        // T2: the defaults, once they are written, are a choice.
        assert!(!offers_builtin(&parse("[roles]\nplanner = \"gemini\"\n"), path, root));
        assert!(!offers_builtin(&parse("roles = {}\n"), path, root));
        assert!(!offers_builtin(&parse("[codex]\ncommand = \"mine\"\n"), path, root));
        let program = dir.path().join("codex");
        std::fs::write(&program, "").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        assert!(!offers_builtin(&parse(""), path, root), "one agent is here");
    }

    #[test]
    fn a_hanging_program_is_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("hangs");
        // Silent, and silent with its output closed.
        for hangs in ["exec sleep 60", "exec sleep 60 >&-"] {
            std::fs::write(&program, format!("#!/bin/sh\n{hangs}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&program, mode).unwrap();
            let error = version(&program, Duration::from_millis(200)).unwrap_err();
            assert!(matches!(error, VersionError::TimedOut { .. }), "{hangs}: {error}");
        }
    }
}
