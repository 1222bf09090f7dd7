use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::rel_path::RelPath;
use agentd_core::text::printable;
use agentd_engine::workflow::rename::{self, Request};
use serde::Serialize;

use super::{Context, user};
use crate::error::CommandError;
use crate::ui::{BOLD, Output, Screen};

/// Give an open change another ID.
///
/// Renames its directory, the ID in its documents, and its branch. What was recorded keeps the
/// name of its time: reviews, runs, commits, and the journal, which gets an entry that says so.
/// Verdicts stay valid. A worktree stays in its directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agentd rename add-oauth add-google-login")]
pub(crate) struct Args {
    /// The change.
    #[arg(value_name = "OLD")]
    from: String,

    /// Its new ID.
    #[arg(value_name = "NEW")]
    to: String,
}

/// A change with another ID.
#[derive(Debug, Serialize)]
pub(super) struct RenameReport {
    /// `renamed`
    action: &'static str,
    /// Its ID now.
    change_id: ChangeId,
    /// Its ID before.
    from: ChangeId,
    /// Its directory.
    path: RelPath,
    /// Its branch now; none if it has none.
    branch: Option<String>,
    /// Its worktree, which stays where it is.
    work_tree: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(Some(&args.from))?;
    let change = context.change(&project, Some(&args.from))?;
    let to = ChangeId::new(&args.to).map_err(|error| {
        CommandError::usage(error.to_string())
            .hint("an ID consists of a-z, 0-9 and hyphens, such as `add-oauth`")
    })?;
    let request = Request {
        from: change.id(),
        to: &to,
        by: &user(&project),
        holder: &context.holder(),
        now: context.now(),
    };
    let renamed = rename::rename(&project, &request)?;
    for note in &renamed.notes {
        context.ui.note(note);
    }
    context.ui.print(&RenameReport {
        action: "renamed",
        path: layout::change_dir(&to),
        change_id: to,
        from: change.id().clone(),
        branch: renamed.branch,
        work_tree: renamed.work_tree.map(|root| root.display().to_string()),
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Output for RenameReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let Self { change_id, from, path, .. } = self;
        writeln!(screen, "{from} is {BOLD}{change_id}{BOLD:#} now, in {path}")?;
        if let Some(branch) = &self.branch {
            writeln!(screen, "its branch: {}", printable(branch))?;
        }
        if let Some(work_tree) = &self.work_tree {
            writeln!(screen, "its worktree stays where it is: {}", printable(work_tree))?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let change_id = ChangeId::new("add-google-login").unwrap();
        Self {
            action: "renamed",
            path: layout::change_dir(&change_id),
            change_id,
            from: ChangeId::new("add-oauth").unwrap(),
            branch: Some("agentd/add-google-login".to_owned()),
            work_tree: Some("/home/me/shop-agentd/add-oauth".to_owned()),
        }
    }
}
