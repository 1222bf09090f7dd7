use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::text::printable;
use agentd_engine::insight::overlap::{self, OverlapKind};
use agentd_engine::store::Change;
use serde_json::json;

use super::Context;
use crate::error::CommandError;
use crate::ui::BOLD;

/// Show which open changes touch the same requirement, scenario or file.
///
/// Edits of one requirement end in a conflict when the second change is archived: better
/// known now. Two new requirements of the same id do not; the later one gets another.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd overlap\n  agentd overlap add-oauth\n  agentd overlap --json | jq -r '.overlaps[].what'"
)]
pub(crate) struct Args {
    /// Only what concerns this change.
    id: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let only = args.id.as_deref().map(|id| context.change(&project, Some(id))).transpose()?;
    let overlaps = overlap::overlaps(&project, only.as_ref().map(Change::id))?;
    if context.ui.json {
        let id = only.as_ref().map(Change::id);
        let document = json!({ "version": 1, "change_id": id, "overlaps": overlaps });
        context.ui.print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    if overlaps.is_empty() {
        context.ui.note("No two open changes touch the same requirement, scenario or file.");
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = context.ui.out();
    for overlap in &overlaps {
        let kind = match overlap.kind {
            OverlapKind::Requirement => "requirement",
            OverlapKind::Scenario => "scenario",
            OverlapKind::File => "file",
        };
        writeln!(out, "{kind:11}  {BOLD}{}{BOLD:#}", printable(&overlap.what))?;
        for touch in &overlap.changes {
            writeln!(out, "             {} {} it", touch.change_id, touch.how.name())?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
