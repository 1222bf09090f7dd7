use std::process::ExitCode;

use agentd_engine::git::Git;
use agentd_engine::insight::toolchain;

use super::Context;
use super::init::InstallReport;
use crate::error::CommandError;
use crate::install;

/// Remove what `agentd init` added to a project.
///
/// Removes only what is unchanged since `init` wrote it. Changes, specs, and the archive are
/// kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agentd uninstall --dry-run\n  agentd uninstall")]
pub(crate) struct Args {
    /// Show what would be removed, without removing anything.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let detected = toolchain::detect_at(project.root());
    let changes = install::uninstall(project.dir(), &detected)?;
    if !args.dry_run {
        install::apply(project.dir(), &changes)?;
        install::tidy(project.dir(), &changes)?;
        if let Ok(Some(git)) = Git::discover(project.root()) {
            git.remove_merge_driver()?;
        }
    }
    let root = project.root();
    context.ui.print(&InstallReport::new(root, changes, args.dry_run, None))?;
    Ok(ExitCode::SUCCESS)
}
