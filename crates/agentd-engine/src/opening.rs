//! The door to a project: whatever a killed agentd could not finish is repaired on the way in.
//!
//! No command reaches a [`Project`] by another way, so none of them runs a hook that an agent
//! planted, or reads documents of an archiving that is half done. All that this acts on is in
//! the user's state directory. Files of the project that look like what an older agentd left
//! there may as well have come with the repository: they are named, and left alone.

use std::fmt;
use std::path::{Path, PathBuf};

use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::rel_path::RelPath;

use crate::archive::{self, ArchiveError, Recovered};
use crate::change::documents::DocumentError;
use crate::change::journal::{self, Interrupted};
use crate::guard::calls::{self, Claim};
use crate::guard::git_files::{self, UncheckedCall};
use crate::guard::sandbox;
use crate::guard::state_file;
use crate::store::{Holder, Project, StoreError, UserDirs};
use crate::workflow::relocation;
use crate::workflow::rename::{self, RenameError};

/// A project, and what had to be repaired before it could be used.
#[derive(Debug)]
pub struct Opened {
    /// The project.
    pub project: Project,
    /// What was found and done, in that order.
    pub repaired: Vec<Repair>,
}

/// What a killed agentd left behind, and what became of it. Displays as a warning.
#[derive(Debug)]
pub enum Repair {
    /// A call was cut short before it could be checked what its agent changed.
    Call(UncheckedCall),
    /// An interrupted archiving was finished or reverted.
    Archive(Recovered),
    /// An interrupted archiving could not be repaired.
    ArchiveFailed(ArchiveError),
    /// A file that was edited since an archiving was interrupted keeps its text.
    Edited(RelPath),
    /// A journal was being written.
    Journal(Interrupted),
    /// A journal that was being written could not be looked at.
    JournalFailed(DocumentError),
    /// What is left of a change that has moved into its worktree could not be removed.
    MoveFailed(DocumentError),
    /// An interrupted renaming was finished or taken back.
    Rename(rename::Recovered),
    /// An interrupted renaming could not be repaired.
    RenameFailed(RenameError),
    /// Files in the project that agentd does not act on.
    LeftAlone(Vec<RelPath>),
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(UncheckedCall::Call { call, tampered }) => write!(
                f,
                "{call} was interrupted after it changed files that are not its own; restored: {}",
                git_files::list(tampered)
            ),
            Self::Call(UncheckedCall::Unknown { path, why }) => write!(
                f,
                "an agent may have changed files that git executes, and they cannot be compared \
                 with {}: {why}; check .git/hooks and .git/config, then remove that file",
                path.display()
            ),
            Self::Archive(Recovered { change, archived: true, .. }) => {
                write!(f, "archiving `{change}` was interrupted; it is finished now")
            }
            Self::Archive(Recovered { change, archived: false, .. }) => {
                write!(f, "archiving `{change}` was interrupted and has been reverted")
            }
            Self::ArchiveFailed(error) => {
                write!(f, "an interrupted archiving cannot be repaired: {error}")
            }
            Self::Edited(file) => write!(f, "{file} was edited since and is left unchanged"),
            Self::Journal(Interrupted { change, completed, mismatch }) => {
                write!(f, "agentd was interrupted while it recorded something for `{change}`: ")?;
                match mismatch {
                    Some(mismatch) => write!(f, "{mismatch}"),
                    None if *completed => {
                        write!(f, "the journal was one entry short, and the entry was added")
                    }
                    None => write!(f, "the journal is whole"),
                }
            }
            Self::JournalFailed(error) => {
                write!(f, "an interrupted record cannot be completed: {error}")
            }
            Self::MoveFailed(error) => {
                write!(f, "cannot remove what is left of a change that is in a worktree: {error}")
            }
            Self::Rename(rename::Recovered { from, to, finished, notes }) => {
                let outcome = if *finished { "it is finished now" } else { "it was taken back" };
                write!(f, "renaming `{from}` to `{to}` was interrupted; {outcome}")?;
                notes.iter().try_for_each(|note| write!(f, "; {note}"))
            }
            Self::RenameFailed(error) => {
                write!(f, "an interrupted renaming cannot be finished: {error}")
            }
            Self::LeftAlone(files) => {
                let names: Vec<&str> = files.iter().map(RelPath::as_str).collect();
                write!(
                    f,
                    "ignored {}: recovery data of an older agentd, or files that came with the \
                     repository",
                    names.join(", ")
                )
            }
        }
    }
}

/// Opens the project that `start` is in: the nearest directory, upwards, that agentd was set
/// up in.
pub fn open(
    start: &Path,
    user: UserDirs,
    holder: &dyn Fn() -> Holder,
) -> Result<Opened, StoreError> {
    open_root(&root_of(start)?, user, holder)
}

/// Opens a directory as a project, even if agentd was not set up in it: `init` begins so.
pub fn open_root(
    root: &Path,
    user: UserDirs,
    holder: &dyn Fn() -> Holder,
) -> Result<Opened, StoreError> {
    let project = Project::open(root)?.for_user(user);
    let repaired = repair(&project, holder);
    Ok(Opened { project, repaired })
}

/// Opens the project that a change lives in: that of its worktree, or the given one (C36).
pub fn home_of(project: Project, id: &ChangeId, holder: &dyn Fn() -> Holder) -> Opened {
    let home = project.home_of(id);
    if home.root() == project.root() {
        return Opened { project, repaired: Vec::new() };
    }
    let repaired = repair(&home, holder);
    Opened { project: home, repaired }
}

/// The root of the project that `start` is in.
pub fn root_of(start: &Path) -> Result<PathBuf, StoreError> {
    Project::find_root(start)
}

/// Opens the project for a process that runs within a call of an agent. The agentd that makes
/// the call has repaired everything, and its own records must not be taken for leftovers.
pub fn open_within_call(start: &Path, user: UserDirs) -> Result<Project, StoreError> {
    Ok(Project::open(&root_of(start)?)?.for_user(user))
}

/// Opens the project that `start` is in for a list of names, as a shell completes them: nothing is
/// repaired, since nothing is read that a killed agentd could have left half done.
pub fn open_to_list(start: &Path, user: UserDirs) -> Result<Project, StoreError> {
    Ok(Project::open(&root_of(start)?)?.for_user(user))
}

/// Costs a few lookups of files that are hardly ever there.
fn repair(project: &Project, holder: &dyn Fn() -> Holder) -> Vec<Repair> {
    let mut repaired: Vec<Repair> = match project.user().state_path(project.root()) {
        Ok(state) => unchecked(project, &state, holder).into_iter().map(Repair::Call).collect(),
        // Then nothing was ever kept.
        Err(_) => Vec::new(),
    };
    // Temporary files of killed writers; elsewhere the next writer removes them.
    project.dir().sweep(&layout::locks_dir());
    sandbox::sweep(project);
    match archive::recover(project, holder) {
        Ok(None) => {}
        Ok(Some(mut recovered)) => {
            let edited = std::mem::take(&mut recovered.left);
            repaired.push(Repair::Archive(recovered));
            repaired.extend(edited.into_iter().map(Repair::Edited));
        }
        Err(error) => repaired.push(Repair::ArchiveFailed(error)),
    }
    match journal::recover(project, holder) {
        Ok(journals) => repaired.extend(journals.into_iter().map(Repair::Journal)),
        Err(error) => repaired.push(Repair::JournalFailed(error)),
    }
    match rename::recover(project, holder) {
        Ok(renamed) => repaired.extend(renamed.into_iter().map(Repair::Rename)),
        Err(error) => repaired.push(Repair::RenameFailed(error)),
    }
    if let Err(error) = relocation::recover(project, holder) {
        repaired.push(Repair::MoveFailed(error));
    }
    let is_there = |path: &RelPath| matches!(project.dir().kind(path), Ok(Some(_)));
    let ignored: Vec<RelPath> =
        layout::former_recovery_files().into_iter().filter(is_there).collect();
    if !ignored.is_empty() {
        repaired.push(Repair::LeftAlone(ignored));
    }
    repaired
}

fn unchecked(project: &Project, at: &Path, holder: &dyn Fn() -> Holder) -> Vec<UncheckedCall> {
    let abandoned = || -> Result<Vec<Claim>, StoreError> {
        let Some(state) = project.state_dir_if_there()? else { return Ok(Vec::new()) };
        calls::abandoned(&state)
    };
    match abandoned() {
        Ok(claims) => {
            let check = |claim: &Claim| {
                let git = git_files::recover(project, claim, at);
                [git, state_file::recover(project, claim, &holder())]
            };
            claims.iter().flat_map(check).flatten().collect()
        }
        Err(error) => vec![UncheckedCall::Unknown { path: at.to_owned(), why: error.to_string() }],
    }
}
