use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::layout;
use agentd_core::text::counted;
use agentd_engine::archive;
use serde_json::json;

use super::Context;
use crate::error::{CommandError, printed};
use crate::ui::BOLD;

/// Take an archived change back.
///
/// The main specs are as they were before it was archived, and the change is open again.
/// Main specs that have changed since stand in the way.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd unarchive add-oauth\n  agentd unarchive 2026-11-04-add-oauth"
)]
pub(crate) struct Args {
    /// The change, or the name of its directory in the archive.
    id: String,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let back = archive::unarchive(&project, &args.id, &context.holder())?;
    let phase = back.state.as_ref().map(|state| state.phase);
    if context.ui.json {
        let document = json!({
            "version": 1,
            "action": "unarchived",
            "change_id": back.change,
            "phase": phase,
            "path": layout::change_dir(&back.change),
            "specs": back.specs,
        });
        printed(context.ui.print_json(&document))?;
        return Ok(ExitCode::SUCCESS);
    }
    let print = || -> Result<(), CommandError> {
        let mut out = context.ui.out();
        let (id, dir) = (&back.change, layout::change_dir(&back.change));
        writeln!(out, "{BOLD}{id}{BOLD:#} is open again in {dir}")?;
        writeln!(out, "{} as before it was archived", counted(back.specs.len(), "main spec"))?;
        out.flush()?;
        Ok(())
    };
    printed(print())?;
    Ok(ExitCode::SUCCESS)
}
