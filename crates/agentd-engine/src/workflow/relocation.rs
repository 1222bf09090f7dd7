//! Moving a change into its worktree (C36).
//!
//! The documents are copied beside the place where they belong, then appear there in one step, which
//! decides. Before it, the change lives where it was; after it, in the worktree, and what is left in
//! the old place is removed, by the next command if this one is killed. Documents that are part of a
//! commit stay where they are: removing them would look like a change of the user's.

use std::io;
use std::path::Path;

use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::rel_path::RelPath;

use super::WorkflowError;
use crate::change::documents::DocumentError;
use crate::git::{Git, GitError, GitTool};
use crate::guard::trust;
use crate::store::{EntryKind, Holder, MoveNote, Project, ProjectDir, StoreError};

/// What agentd keeps about a change outside of its directory: in the user's state directory, and in
/// that of agentd in the project.
fn kept_apart(id: &ChangeId) -> ([RelPath; 6], RelPath) {
    let [a, b, c, d] = layout::receipt_keys_of(id);
    let state = [layout::journal_copy(id), a, b, c, d, layout::created_note(id)];
    (state, layout::questions(id))
}

/// Moves a change to the project at `root`, which is in another checkout of the repository. Returns
/// notes for the user. The run lock of the change is held by the caller.
pub(crate) fn relocate(
    from: &Project,
    id: &ChangeId,
    root: &Path,
    tool: &GitTool,
    holder: &Holder,
) -> Result<Vec<String>, WorkflowError> {
    let to = Project::open(root)?.for_user(from.user().clone());
    let _run = to.try_run_lock(id, holder).map_err(DocumentError::from)?;
    let mut notes = share_settings(from, &to)?;
    let _write = from.write_lock(id, holder).map_err(DocumentError::from)?;
    let _write_there = to.write_lock(id, holder).map_err(DocumentError::from)?;
    let dir = layout::change_dir(id);
    let path = root.join(dir.as_path());
    if to.dir().kind(&dir)?.is_some() {
        let git = repository(tool, root)?;
        // What git ignores has no changes either.
        if !git.is_tracked(&dir)? || !git.is_committed(&dir)? {
            return Err(GitError::DocumentsThere { change: id.clone(), path }.into());
        }
        to.dir().remove_tree(&dir)?;
    }
    let arriving = copy_in(from, &to, id)?;
    let stays = repository(tool, from.root())?.is_tracked(&dir)?;
    let mut note = MoveNote::new(root, stays);
    to.write_origin(from)?;
    from.write_move_note(id, &note)?;
    to.dir().rename_dir(&arriving, &dir)?;
    leave(from, id, &mut note)?;
    notes.push(format!("The documents of `{id}` are in the worktree: {}.", path.display()));
    Ok(notes)
}

/// Notes that a change lives in the project at `root`, another checkout, in which its documents are.
/// Returns notes for the user.
pub(crate) fn settle(
    from: &Project,
    id: &ChangeId,
    root: &Path,
) -> Result<Vec<String>, WorkflowError> {
    let to = Project::open(root)?.for_user(from.user().clone());
    let notes = share_settings(from, &to)?;
    to.write_origin(from)?;
    from.write_move_note(id, &MoveNote::settled(root))?;
    Ok(notes)
}

/// Copies a change and what is kept about it to where it goes, under the name of one that arrives.
fn copy_in(from: &Project, to: &Project, id: &ChangeId) -> Result<RelPath, WorkflowError> {
    let arriving = layout::arriving_change(id);
    to.dir().remove_tree(&arriving)?;
    to.dir().create_dir_new(&arriving)?;
    let change = from.change(id)?;
    copy_tree(change.dir(), &to.dir().strict_subdir(&arriving)?, &RelPath::root())?;
    copy_state(from, to, id)?;
    Ok(arriving)
}

/// Moves a change back into the project where it began, out of a worktree that is to be deleted. That
/// it is there counts from when the note of its move is gone; until then, what is here is removed by
/// the next command.
pub(crate) fn bring_back(
    from: &Project,
    to: &Project,
    id: &ChangeId,
    tool: &GitTool,
    holder: &Holder,
) -> Result<(), WorkflowError> {
    let _run = from.try_run_lock(id, holder).map_err(DocumentError::from)?;
    let _run_there = to.try_run_lock(id, holder).map_err(DocumentError::from)?;
    let _write = from.write_lock(id, holder).map_err(DocumentError::from)?;
    let _write_there = to.write_lock(id, holder).map_err(DocumentError::from)?;
    let dir = layout::change_dir(id);
    if to.dir().kind(&dir)?.is_some() {
        let git = repository(tool, to.root())?;
        if !git.is_tracked(&dir)? || !git.is_committed(&dir)? {
            let path = to.root().join(dir.as_path());
            return Err(GitError::DocumentsThere { change: id.clone(), path }.into());
        }
    }
    to.write_move_note(id, &MoveNote::new(from.root(), false))?;
    to.dir().remove_tree(&dir)?;
    let arriving = copy_in(from, to, id)?;
    to.dir().rename_dir(&arriving, &dir)?;
    to.forget_move(id)?;
    remove_from(from, id)?;
    Ok(())
}

fn repository(tool: &GitTool, root: &Path) -> Result<Git, GitError> {
    Git::discover_with(tool, root)?.ok_or_else(|| GitError::NoRepository { root: root.to_owned() })
}

/// Removes what is left in the old place of changes that have moved, if agentd was killed before it
/// could do so.
pub(crate) fn recover(project: &Project, holder: &dyn Fn() -> Holder) -> Result<(), DocumentError> {
    for (id, _) in project.in_worktrees() {
        let Some(mut note) = project.move_note(&id).filter(|note| note.unfinished) else {
            continue;
        };
        // Someone who is alive and moves it holds the lock.
        let Ok(_lock) = project.try_run_lock(&id, &holder()) else { continue };
        leave(project, &id, &mut note)?;
    }
    Ok(())
}

fn leave(from: &Project, id: &ChangeId, note: &mut MoveNote) -> Result<(), StoreError> {
    if !note.stays {
        remove_from(from, id)?;
    }
    note.unfinished = false;
    from.write_move_note(id, note)
}

/// Removes a change that is somewhere else now, with what is kept about it.
fn remove_from(project: &Project, id: &ChangeId) -> Result<(), StoreError> {
    project.dir().remove_tree(&layout::change_dir(id))?;
    let (state, questions) = kept_apart(id);
    let dir = project.state_dir()?;
    for file in state {
        dir.remove_tree(&file)?;
    }
    project.dir().remove_tree(&questions)
}

/// Gives a worktree the settings and main specs that it lacks because nobody has committed them.
fn share_settings(from: &Project, to: &Project) -> Result<Vec<String>, StoreError> {
    let (mut came, mut notes) = (Vec::new(), Vec::new());
    let specs = from.spec_ids()?.ids;
    let specs = specs.iter().map(layout::main_spec);
    let fixed =
        [layout::config(), layout::gitignore(), layout::project_context(), layout::changelog()];
    for file in fixed.into_iter().chain(specs) {
        if from.dir().kind(&file)? != Some(EntryKind::File) {
            continue;
        }
        let text = from.dir().read(&file)?;
        if to.dir().kind(&file)?.is_none() {
            to.dir().write_new(&file, &text)?;
            came.push(file.to_string());
        } else if file == layout::config() && to.dir().read(&file).ok().as_ref() != Some(&text) {
            notes.push(format!(
                "{file} has uncommitted changes; the worktree uses the committed version."
            ));
        }
    }
    trust::share(from, to)?;
    if !came.is_empty() {
        notes.push(format!("Not committed, but copied to the worktree: {}.", came.join(", ")));
    }
    Ok(notes)
}

fn copy_state(from: &Project, to: &Project, id: &ChangeId) -> Result<(), StoreError> {
    let (state, questions) = kept_apart(id);
    let (old, new) = (from.state_dir()?, to.state_dir()?);
    for file in state {
        // What is there is of another change of that name, which had its worktree in this place.
        new.remove_tree(&file)?;
        copy_file(&old, &new, &file)?;
    }
    to.dir().remove_tree(&questions)?;
    copy_file(from.dir(), to.dir(), &questions)
}

/// Copies files and directories. Links and other things are not documents, and stay behind.
fn copy_tree(from: &ProjectDir, to: &ProjectDir, dir: &RelPath) -> Result<(), StoreError> {
    for entry in from.list_dir(dir)? {
        let Ok(name) = RelPath::new(&entry.name) else { continue };
        let path = dir.join(&name);
        match entry.kind {
            EntryKind::File => copy_file(from, to, &path)?,
            EntryKind::Dir => copy_tree(from, to, &path)?,
            EntryKind::Symlink | EntryKind::Other => {}
        }
    }
    Ok(())
}

/// Copies a file, which may be larger than the memory. One that is not there is fine.
fn copy_file(from: &ProjectDir, to: &ProjectDir, path: &RelPath) -> Result<(), StoreError> {
    let (mut source, _) = match from.open_file(path) {
        Err(error) if error.is_not_found() => return Ok(()),
        file => file?,
    };
    let mut target = to.create_append(path)?;
    let copied = io::copy(&mut source, &mut target).and_then(|_| target.sync_all());
    copied.map_err(|error| StoreError::from_io("copy", path.clone(), error))
}
