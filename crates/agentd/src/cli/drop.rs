use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::command_line::CommandLine;
use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::next_step::Command;
use agentd_core::rel_path::RelPath;
use agentd_core::state::Placement;
use agentd_core::text::printable;
use agentd_engine::archive::{self, Request};
use agentd_engine::workflow::deletion::{self, Deleted, Deletion};
use serde::Serialize;

use super::{Context, user};
use crate::error::CommandError;
use crate::ui::{BOLD, Output, Screen, ask};

/// Give up a change.
///
/// Moves it to `agentd/archive/` without merging its specs, and records who dropped it and why.
/// Its branch and its worktree stay, unless you pass `--delete`, and `agentd unarchive` takes it
/// back.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd drop add-oauth\n  agentd drop add-oauth --note \"We use SAML\" --yes\n  agentd drop add-oauth --delete"
)]
pub(crate) struct Args {
    /// The change.
    id: String,

    /// Why.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Delete its branch and its worktree, if agentd created them. What would be lost is shown
    /// first.
    #[arg(long)]
    delete: bool,

    /// Don't ask.
    #[arg(long, short = 'y')]
    yes: bool,
}

/// A change that was given up.
#[derive(Debug, Serialize)]
pub(super) struct DropReport {
    /// `dropped`
    action: &'static str,
    /// The change.
    change_id: ChangeId,
    /// Its directory in the archive.
    path: RelPath,
    /// Its branch, which is left.
    branch: Option<String>,
    /// Its worktree, which is left.
    work_tree: Option<String>,
    /// What was deleted; none without `--delete`.
    deleted: Option<DeletedReport>,
}

/// What was deleted of a change.
#[derive(Debug, Serialize)]
struct DeletedReport {
    /// Its branch.
    branch: Option<String>,
    /// Its worktree.
    work_tree: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(Some(&args.id))?;
    let change = context.change(&project, Some(&args.id))?;
    let deletion = args.delete.then(|| deletion::plan(&project, &change)).transpose()?;
    for line in deletion.iter().flat_map(Deletion::lines) {
        context.ui.note(&line);
    }
    if !args.yes {
        if !context.ui.can_prompt() {
            let delete = args.delete.then_some("--delete");
            let drop = CommandLine::agentd(["drop", &args.id]).args(delete).args(["--yes"]);
            return Err(CommandError::usage("there is no terminal to ask on").run("drop it", drop));
        }
        if !ask::drop_change(change.id())? {
            context.ui.note(&format!("{} is kept", change.id()));
            return Ok(ExitCode::SUCCESS);
        }
    }
    let (holder, by) = (context.holder(), user(&project));
    let request = Request {
        change: change.id(),
        force: None,
        accept_stale: None,
        drop: Some(args.note.as_deref().unwrap_or_default()),
        resume: false,
        by: &by,
        holder: &holder,
        now: context.now(),
    };
    let home = match &deletion {
        Some(deletion) => {
            // What would be refused is refused before the change moves.
            archive::preview(&project, &request)?;
            deletion::bring_home(&project, change.id(), deletion, &holder)?
        }
        None => project.clone(),
    };
    let dropped = archive::archive(&home, &request)?;
    let deleted = deletion
        .map(|deletion| deletion::delete(&home, &deletion, &context.holder()))
        .transpose()?;
    for note in deleted.iter().flat_map(|deleted| &deleted.notes) {
        context.ui.note(note);
    }
    let git = dropped.state.git.as_ref();
    let in_worktree = git.is_some_and(|git| git.workflow == Placement::Worktree);
    let branch = git.and_then(|git| git.branch.clone());
    let work_tree = in_worktree.then(|| project.root().display().to_string());
    let gone = |part: fn(&Deleted) -> bool| deleted.as_ref().is_some_and(part);
    context.ui.print(&DropReport {
        action: "dropped",
        change_id: change.id().clone(),
        path: layout::archived_change(&dropped.name),
        branch: branch.filter(|_| !gone(|deleted| deleted.branch.is_some())),
        work_tree: work_tree.filter(|_| !gone(|deleted| deleted.work_tree.is_some())),
        deleted: deleted.map(|Deleted { branch, work_tree, .. }| DeletedReport {
            branch,
            work_tree: work_tree.map(|path| path.display().to_string()),
        }),
    })?;
    context.ui.remark(&format!("To undo this: {}", Command::Unarchive.on(change.id())));
    Ok(ExitCode::SUCCESS)
}

impl Output for DropReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        writeln!(
            screen,
            "{BOLD}{}{BOLD:#} is dropped; it is kept in {}",
            self.change_id, self.path
        )?;
        if let Some(work_tree) = self.deleted.as_ref().and_then(|it| it.work_tree.as_ref()) {
            writeln!(screen, "its worktree is deleted: {}", printable(work_tree))?;
        }
        if let Some(branch) = self.deleted.as_ref().and_then(|it| it.branch.as_ref()) {
            writeln!(screen, "its branch is deleted: {}", printable(branch))?;
        }
        if let Some(work_tree) = &self.work_tree {
            writeln!(screen, "its worktree is left: {}", printable(work_tree))?;
        }
        if let Some(branch) = &self.branch {
            writeln!(screen, "its branch is kept: {}", printable(branch))?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let change_id = ChangeId::new("add-oauth").unwrap();
        Self {
            action: "dropped",
            change_id,
            path: RelPath::new("agentd/archive/2026-11-04-add-oauth").unwrap(),
            branch: Some("agentd/add-oauth".to_owned()),
            work_tree: Some("/home/me/shop-agentd/add-oauth".to_owned()),
            deleted: Some(DeletedReport {
                branch: Some("agentd/add-oauth".to_owned()),
                work_tree: Some("/home/me/shop-agentd/add-oauth".to_owned()),
            }),
        }
    }
}
