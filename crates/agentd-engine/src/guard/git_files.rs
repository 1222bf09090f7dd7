//! What git runs by itself stays as it was while an implementer works.
//!
//! An implementer may write in the working tree, and so in `.git`: a hook or a setting that it
//! leaves there would be run by the next git command of agentd or of its user, outside of the
//! sandbox of the agent. Landlock cannot exclude a part of what it allows. So a snapshot is taken
//! before each call, and every difference is restored after it, before anyone calls git.
//!
//! During the call the snapshot is in the user's state directory, where neither a repository nor
//! an agent can write. If agentd is killed, the next command finds it and `recover` restores the
//! rest: in the places that git and the agents use at that time, and nowhere else.

mod agent_settings;
mod restore;
mod snapshot;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentd_core::event::KEPT_BYTES;
use agentd_core::hash::{Digest, hex};
use agentd_core::layout;
use agentd_core::rel_path::RelPath;
use agentd_core::run_format::FileEdit;

use crate::git::runnable::Runnable;
use crate::git::{Git, GitError, GitTool};
use crate::guard::calls::{self, Claim};
use crate::store::{Project, StoreError};
use agent_settings::AgentSettings;
pub(crate) use agent_settings::Homes;
use snapshot::{Coverage, Difference, PathState, Snapshot};

/// Why git could not be guarded.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// Git failed to report which files it runs.
    #[error("git failed to report which files it runs in this repository")]
    Git(#[from] GitError),
    /// A file or directory could not be read or written.
    #[error("cannot protect {} from changes", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The snapshot could not be saved.
    #[error("cannot save a snapshot of the files that git runs")]
    Kept(#[from] StoreError),
    /// A snapshot is of a directory that does not belong to the project.
    #[error("{} is not a worktree of this project", path.display())]
    Elsewhere {
        /// The path.
        path: PathBuf,
    },
    /// There is more than a snapshot can hold, or something that is not a file.
    #[error("{} is too large or not a regular file, so it could not be restored", path.display())]
    TooLarge {
        /// The path.
        path: PathBuf,
    },
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, GuardError> {
    result.map_err(|source| GuardError::Io { path: path.to_owned(), source })
}

/// A file that git would run or an agent would obey, and that was changed during a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TamperedFile {
    /// Its path from the working tree; in the repository it starts with `.git`.
    pub path: String,
    /// What was done to it.
    pub how: Tampering,
    /// Whether it was restored.
    pub restored: bool,
    /// What was changed, for the record.
    edit: FileEdit,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tampering {
    /// It did not exist before.
    Planted,
    /// It had other content, or was of another kind.
    Changed,
    /// It no longer exists.
    Removed,
}

impl TamperedFile {
    /// A text file of a change that was restored.
    pub(crate) fn text(path: &RelPath, was: &str, now: Option<&str>) -> Self {
        let how = if now.is_some() { Tampering::Changed } else { Tampering::Removed };
        let edit = FileEdit {
            path: path.to_string(),
            created: false,
            before: Some(Digest::of(was)),
            after: now.map(Digest::of),
            text: now.filter(|now| now.len() <= KEPT_BYTES).map(str::to_owned),
            hex: None,
            executable: false,
        };
        Self { path: path.to_string(), how, restored: true, edit }
    }
}

impl std::fmt::Display for TamperedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.how {
            Tampering::Planted => "new",
            Tampering::Changed => "changed",
            Tampering::Removed => "removed",
        };
        let left = if self.restored { "" } else { ", left as it is" };
        write!(f, "{} ({how}{left})", self.path)
    }
}

/// All of them in one line.
pub fn list(tampered: &[TamperedFile]) -> String {
    const SHOWN: usize = 8;
    let mut texts: Vec<String> = tampered.iter().take(SHOWN).map(ToString::to_string).collect();
    if let Some(more @ 1..) = tampered.len().checked_sub(SHOWN) {
        texts.push(format!("{more} more"));
    }
    texts.join(", ")
}

/// The edits, as they are recorded in a run file.
pub(crate) fn edits(tampered: &[TamperedFile]) -> Vec<FileEdit> {
    tampered.iter().map(|one| one.edit.clone()).collect()
}

/// Protects what git runs and agents obey, during a call.
#[derive(Debug)]
pub(crate) struct GitGuard {
    snapshot: Snapshot,
}

impl GitGuard {
    /// Takes a snapshot, and saves it with the call until it has been compared: if agentd is
    /// killed, the next command does that.
    pub(crate) fn take(
        tool: &GitTool,
        work_tree: &Path,
        homes: Homes,
        planned: &[String],
        claim: &Claim,
    ) -> Result<Self, GuardError> {
        let mut snapshot = snapshot(tool, work_tree, homes, Coverage::Whole)?;
        let root = snapshot.work_tree();
        // No plan decides which programs agentd runs, or what git runs.
        let mine = |file: &&String| {
            let path = Path::new(file);
            !path.starts_with(layout::AGENTD_DIR)
                && !path.components().any(|part| part.as_os_str() == ".git")
        };
        snapshot.allow(planned.iter().filter(mine).map(|file| root.join(file)));
        allow_merged(&mut snapshot, claim);
        let bytes = serde_json::to_vec(&snapshot).map_err(|error| {
            GuardError::Kept(StoreError::from_io("write", RelPath::root(), error.into()))
        })?;
        claim.keep(calls::SNAPSHOT, &bytes)?;
        Ok(Self { snapshot })
    }

    /// Restores what was changed. Call it when the agent has ended, and before any call of git.
    pub(crate) fn check(mut self, claim: &Claim) -> Result<Vec<TamperedFile>, GuardError> {
        allow_merged(&mut self.snapshot, claim);
        let found = self.snapshot.put_back(&|_, _| true)?;
        claim.forget(calls::SNAPSHOT)?;
        Ok(found.iter().map(|one| tampered(&self.snapshot, one)).collect())
    }
}

/// While another call needs its keys in the settings of Gemini CLI, they come and go. Taking them
/// out keeps everything else in the file.
fn allow_merged(snapshot: &mut Snapshot, claim: &Claim) {
    if claim.settings_are_merged() {
        snapshot.allow([snapshot.work_tree().join(".gemini/settings.json")]);
    }
}

/// A snapshot of what git runs in a worktree, and of what agents obey.
fn snapshot(
    tool: &GitTool,
    work_tree: &Path,
    homes: Homes,
    taken: Coverage,
) -> Result<Snapshot, GuardError> {
    let mut runnable = Runnable::of(tool, work_tree)?;
    let own: Vec<_>;
    let environment = if tool.env.is_empty() {
        own = std::env::vars_os().collect();
        &own
    } else {
        &tool.env
    };
    let obeyed = AgentSettings::of(&mut runnable, environment, homes);
    Snapshot::take(&runnable, &obeyed, taken)
}

fn tampered(snapshot: &Snapshot, found: &Difference) -> TamperedFile {
    let path = snapshot.name(&found.path);
    let how = match (&found.was, &found.now) {
        (PathState::Absent, _) => Tampering::Planted,
        (_, PathState::Absent) => Tampering::Removed,
        _ => Tampering::Changed,
    };
    let now = found.now.file();
    let kept = now.map(|(bytes, _)| bytes).filter(|bytes| bytes.len() <= KEPT_BYTES);
    let text = kept.and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
    let edit = FileEdit {
        path: path.clone(),
        created: how == Tampering::Planted,
        before: found.was.file().map(|(bytes, _)| Digest::of(bytes)),
        after: now.map(|(bytes, _)| Digest::of(bytes)),
        hex: if text.is_none() { kept.map(hex) } else { None },
        text,
        executable: now.is_some_and(|(_, executable)| executable),
    };
    TamperedFile { path, how, restored: found.restored, edit }
}

/// A call that a killed agentd left unchecked, and what was found.
#[derive(Debug)]
pub enum UncheckedCall {
    /// What was changed since the call began.
    Call {
        /// The change and the step.
        call: String,
        /// What was found.
        tampered: Vec<TamperedFile>,
    },
    /// The snapshot cannot be read or compared.
    Unknown {
        /// Where it is.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Checks an abandoned call in place of the agentd that was killed.
/// `state` is the path of the project's state directory.
pub(crate) fn recover(project: &Project, claim: &Claim, state: &Path) -> Option<UncheckedCall> {
    let call = claim.name().to_owned();
    let checked = || -> Result<Vec<TamperedFile>, String> {
        let Some(bytes) = claim.read(calls::SNAPSHOT).map_err(|error| error.to_string())? else {
            return Ok(Vec::new());
        };
        let snapshot: Snapshot =
            serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        let found = put_back_known(project, &snapshot).map_err(|error| error.to_string())?;
        claim.forget(calls::SNAPSHOT).map_err(|error| error.to_string())?;
        Ok(found)
    };
    match checked() {
        Ok(tampered) if tampered.is_empty() => None,
        Ok(tampered) => Some(UncheckedCall::Call { call, tampered }),
        Err(why) => {
            let path = calls::private_dir(state, &format!("{call}.{}", calls::SNAPSHOT));
            Some(UncheckedCall::Unknown { path, why })
        }
    }
}

/// How often the files that git runs are listed again: a restored setting may name another file,
/// and that one another.
const ROUNDS: usize = 5;

/// Restores what git runs and agents obey *now*, and nothing else: a snapshot describes how
/// something was, and never decides what may be written or removed.
fn put_back_known(project: &Project, snapshot: &Snapshot) -> Result<Vec<TamperedFile>, GuardError> {
    let work_tree = snapshot.work_tree();
    let tool = GitTool::default();
    if !is_of_project(&tool, project, &work_tree)? {
        return Err(GuardError::Elsewhere { path: work_tree });
    }
    let mut all: Vec<Difference> = Vec::new();
    for _ in 0..ROUNDS {
        let known = self::snapshot(&tool, &work_tree, Homes::All, Coverage::Names)?;
        let found = snapshot.put_back(&|path, now| known.names(path, now))?;
        let (restored, left): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.restored);
        let is_done = restored.is_empty();
        all.extend(restored);
        if is_done {
            all.extend(left);
            break;
        }
    }
    Ok(all.iter().map(|one| tampered(snapshot, one)).collect())
}

/// Whether a directory is the project, or is in another checkout of its repository.
fn is_of_project(tool: &GitTool, project: &Project, dir: &Path) -> Result<bool, GuardError> {
    let root = at(project.root(), fs::canonicalize(project.root()))?;
    if dir == root {
        return Ok(true);
    }
    let Some(git) = Git::discover_with(tool, &root)? else { return Ok(false) };
    let trees = git.worktrees()?;
    Ok(trees
        .iter()
        .any(|tree| fs::canonicalize(&tree.path).is_ok_and(|tree| dir.starts_with(tree))))
}
