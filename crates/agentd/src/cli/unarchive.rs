use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::phase::Phase;
use agentd_core::rel_path::RelPath;
use agentd_core::text::counted;
use agentd_engine::archive;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, Output, Screen};

/// Reopen an archived change.
///
/// Restores the main specs to what they were before the change was archived. Fails if one of
/// them has changed since.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd unarchive add-oauth\n  agentd unarchive 2026-11-04-add-oauth"
)]
pub(crate) struct Args {
    /// Change ID, or name of its directory in the archive.
    id: String,
}

/// A change that is open again.
#[derive(Debug, Serialize)]
pub(super) struct UnarchiveReport {
    /// `unarchived`
    action: &'static str,
    /// The change.
    change_id: ChangeId,
    /// Its phase now; none if it had no state when it was archived.
    phase: Option<Phase>,
    /// Its directory.
    path: RelPath,
    /// The main specs that were restored.
    specs: Vec<RelPath>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(Some(&args.id))?;
    let back = archive::unarchive(&project, &args.id, &context.holder())?;
    context.ui.print(&UnarchiveReport {
        action: "unarchived",
        phase: back.state.map(|state| state.phase),
        path: layout::change_dir(&back.change),
        change_id: back.change,
        specs: back.specs,
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Output for UnarchiveReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let (id, specs) = (&self.change_id, counted(self.specs.len(), "main spec"));
        writeln!(screen, "{BOLD}{id}{BOLD:#} is open again in {}", self.path)?;
        writeln!(screen, "{specs} restored")
    }

    #[cfg(test)]
    fn sample() -> Self {
        let change_id = ChangeId::new("add-oauth").unwrap();
        Self {
            action: "unarchived",
            phase: Some(Phase::Complete),
            path: layout::change_dir(&change_id),
            change_id,
            specs: vec![RelPath::new("agentd/specs/auth-flow.md").unwrap()],
        }
    }
}
