use std::process::ExitCode;

use super::{Context, init};
use crate::error::CommandError;
use crate::install;

/// Take out of a project what `agentd init` put in.
///
/// Only what is still as it was written goes. Changes, specs and the archive stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agentd uninstall --dry-run\n  agentd uninstall")]
pub(crate) struct Args {
    /// Only say what would be removed.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let changes = install::uninstall(project.dir())?;
    if !args.dry_run {
        install::apply(project.dir(), &changes)?;
        install::tidy(project.dir(), &changes)?;
    }
    init::report(context, project.root(), &changes, args.dry_run, &[])?;
    Ok(ExitCode::SUCCESS)
}
