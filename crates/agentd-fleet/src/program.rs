//! The programs that the fleet starts, and how they end with it.

use std::env;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use agentd_core::error_kind::Kind;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tokio::process::Command;

use crate::error::{FleetError, Result};

/// Not a command but a part of this program: it ends with its parent, and becomes another program.
pub(crate) const MORTAL: &str = "__mortal";

/// The address of the server, which no agent has to know.
pub(crate) const ENGINE_VARIABLE: &str = "AGENTD_FLEET";

/// A command that ends when this process does, even by SIGKILL. Only the main thread may start it: it
/// ends with the thread that has started it.
pub(crate) fn mortal(program: &Path) -> Result<Command> {
    let itself = env::current_exe().map_err(|error| FleetError::unusable(program, &error))?;
    let mut command = Command::new(itself);
    command.arg(MORTAL).arg(std::process::id().to_string()).arg(program);
    command.env_remove(ENGINE_VARIABLE).stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

/// Becomes the program that the arguments name. The signal is set after the start, so a parent that has
/// died before is noticed by its number.
pub(crate) fn become_mortal(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let parent = args.next().and_then(|text| text.to_str()?.parse().ok());
    let Some((parent, program)) = parent.zip(args.next()) else { return ExitCode::from(2) };
    let set = set_parent_process_death_signal(Some(Signal::KILL));
    if set.is_err()
        || getppid().map(Pid::as_raw_nonzero).map(std::num::NonZero::get) != Some(parent)
    {
        return ExitCode::from(1);
    }
    let mut command = std::process::Command::new(program);
    let _never = command.args(args).exec();
    ExitCode::from(127)
}

/// The `agentd` that belongs to this program: the one beside it, or the first in `PATH` that is not in
/// the project.
pub(crate) fn agentd(project: &Path) -> Result<PathBuf> {
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.join("agentd")));
    let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
    let outside = |dir: &PathBuf| {
        dir.is_absolute() && !dir.canonicalize().is_ok_and(|dir| dir.starts_with(&project))
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).filter(outside).map(|dir| dir.join("agentd"));
    let mut found = beside.into_iter().chain(found);
    found.find(|program| program.is_file()).ok_or_else(|| {
        FleetError::new(Kind::FleetMissing, "cannot find `agentd`, which does the steps")
            .hint("install it beside agentd-fleet: cargo install --path crates/agentd")
    })
}

/// Runs git in a directory, with this input; what it prints and how it ends.
pub(crate) async fn git(dir: &Path, args: &[&OsStr], input: &[u8]) -> Result<GitOutput> {
    use tokio::io::AsyncWriteExt as _;
    let failed = |error: std::io::Error| {
        FleetError::new(Kind::GitNotInstalled, "cannot run `git`").cause(error).hint("install git")
    };
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(args).kill_on_drop(true);
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C").env_remove(ENGINE_VARIABLE);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read its input has ended, and says why.
        let _ = stdin.write_all(input).await;
    }
    let output = child.wait_with_output().await.map_err(failed)?;
    Ok(GitOutput {
        ok: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// What git has answered.
#[derive(Debug)]
pub(crate) struct GitOutput {
    /// Whether it has succeeded.
    pub(crate) ok: bool,
    /// What it printed.
    pub(crate) stdout: String,
    /// What it complained about.
    pub(crate) stderr: String,
}
