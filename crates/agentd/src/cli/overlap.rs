use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::text::printable;
use agentd_engine::insight::overlap::{self, OverlapKind, OverlapReport};
use agentd_engine::store::Change;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, Output, Screen};

/// Show open changes that touch the same requirement, scenario, or file.
///
/// If two changes edit the same requirement, archiving the second one ends in a conflict. Two
/// new requirements with the same id do not conflict: the second one is renumbered.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd overlap\n  agentd overlap add-oauth\n  agentd overlap --json | jq -r '.overlaps[].what'"
)]
pub(crate) struct Args {
    /// Show only overlaps with this change.
    id: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let only = |id| context.change(&context.project_of(Some(id))?, Some(id));
    let only = args.id.as_deref().map(only).transpose()?;
    let documents = only.as_ref().map(Change::snapshot).transpose()?;
    let documents = documents.as_ref().map(|snapshot| &snapshot.documents);
    let overlaps = overlap::overlaps(&project, documents)?;
    let change_id = only.map(|change| change.id().clone());
    context.ui.print(&OverlapReport { change_id, overlaps })?;
    Ok(ExitCode::SUCCESS)
}

impl Output for OverlapReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if self.overlaps.is_empty() {
            screen.note("No two open changes touch the same requirement, scenario or file.");
        }
        for overlap in &self.overlaps {
            let kind = match overlap.kind {
                OverlapKind::Requirement => "requirement",
                OverlapKind::Scenario => "scenario",
                OverlapKind::File => "file",
            };
            writeln!(screen, "{kind:11}  {BOLD}{}{BOLD:#}", printable(&overlap.what))?;
            for touch in &overlap.changes {
                writeln!(screen, "             {} {} it", touch.change_id, touch.how.name())?;
            }
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::ids::ChangeId;
        use agentd_engine::insight::overlap::{Operation, Overlap, Touch};
        let change_id = ChangeId::new("add-oauth").unwrap();
        let touch = Touch { change_id: change_id.clone(), how: Operation::Edits };
        let (kind, what) = (OverlapKind::Requirement, "auth-flow:R2".to_owned());
        Self {
            change_id: Some(change_id),
            overlaps: vec![Overlap { kind, what, changes: vec![touch] }],
        }
    }
}
