//! `agentd fleet` and `agentd worker`, which are a program of their own: a database driver has no place in
//! the program that everybody starts all day.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_engine::carrier::sightings;
use agentd_engine::process::find_program;

use super::Context;
use crate::error::{CommandError, unusable};

/// The program.
const PROGRAM: &str = "agentd-fleet";

/// Give changes to a fleet of workers, and see what becomes of them.
///
/// `submit`, `status`, `pause`, `resume`, `drain`, `limit`, `budget` and `settle`. Needs the program
/// `agentd-fleet` beside `agentd` or in `PATH`; `agentd fleet --help` shows its own help.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:\n  agentd fleet submit add-oauth \"Let people sign in with GitHub\"\n  agentd fleet status"
)]
pub(crate) struct FleetArgs {
    /// Command of the fleet, and its arguments.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Do steps of the changes that were given to a fleet, until you stop it.
///
/// Needs the program `agentd-fleet` beside `agentd` or in `PATH`; `agentd worker --help` shows its own
/// help.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:\n  agentd worker --accounts claude:team1,codex:team1 --until-done"
)]
pub(crate) struct WorkerArgs {
    /// Options of the worker.
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub(crate) fn fleet(context: &Context, args: &FleetArgs) -> Result<ExitCode, CommandError> {
    // From here on, the pages of this project show who works on what.
    if let Ok(project) = context.project() {
        let _ = sightings::expect(&project);
    }
    become_program(context, "fleet", &args.words)
}

pub(crate) fn worker(context: &Context, args: &WorkerArgs) -> Result<ExitCode, CommandError> {
    become_program(context, "worker", &args.words)
}

/// Becomes the program, with the same arguments.
fn become_program(
    context: &Context,
    command: &str,
    words: &[OsString],
) -> Result<ExitCode, CommandError> {
    let program = find(&context.start).ok_or_else(|| {
        let install = ["cargo", "install", "--path", "crates/agentd-fleet"];
        CommandError::new(Kind::FleetMissing, format!("`{PROGRAM}` is not installed"))
            .cause(format!("`agentd {command}` is a program of its own, beside agentd or in PATH"))
            .run("install it from the source of agentd", CommandLine::new(install))
    })?;
    let mut start = Command::new(&program);
    start.arg("-C").arg(&context.start);
    if context.ui.json {
        start.arg("--json");
    }
    Err(unusable(&program, &start.arg(command).args(words).exec()))
}

/// Beside the program that is running, or in `PATH`, but never in the project.
fn find(project: &Path) -> Option<PathBuf> {
    let own = std::env::current_exe().ok().and_then(|own| own.canonicalize().ok());
    let beside = own.and_then(|own| Some(own.parent()?.join(PROGRAM)));
    beside.filter(|program| program.is_file()).or_else(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        find_program(PROGRAM, &path, project)
    })
}
