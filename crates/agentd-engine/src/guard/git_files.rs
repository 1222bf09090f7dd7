//! What git runs by itself stays as it was while an implementer works.
//!
//! An implementer may write in the work tree, and so in `.git`: a hook or a setting that it
//! leaves there would be run by the next git command of agentd or of its user, outside of the
//! confinement of the agent. Landlock cannot take a part out of what it allows. So a snapshot
//! is taken before each call, and what does not look the same after it is put back before
//! anybody calls git.
//!
//! The snapshot is kept in the user's state directory for the time of the call, where neither a
//! repository nor an agent can write. Where agentd was killed, the next command finds it, and
//! `recover` does what is left to do: in the places that git and others name by then, and
//! nowhere else.

mod obeyed;
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
pub(crate) use obeyed::Homes;
use obeyed::Obeyed;
use snapshot::{Coverage, Difference, PathState, Snapshot};

/// Why git could not be guarded.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// Git could not say where it looks.
    #[error("git cannot say what it runs in this repository")]
    Git(#[from] GitError),
    /// A file or directory could not be read or written.
    #[error("{} cannot be kept as it is", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The snapshot could not be kept.
    #[error("what git runs cannot be kept as it is")]
    Kept(#[from] StoreError),
    /// A snapshot speaks of a directory that is not the project's.
    #[error("{} is no work tree of this project", path.display())]
    Elsewhere {
        /// Which.
        path: PathBuf,
    },
    /// There is more than can be kept, or something that is no file.
    #[error("{} is too large or no plain file, so it could not be put back", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
    },
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, GuardError> {
    result.map_err(|source| GuardError::Io { path: path.to_owned(), source })
}

/// Something that git would have run or followed, and that was not like that before a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tampered {
    /// Where, from the work tree; what is in the repository starts with `.git`.
    pub path: String,
    /// What was done to it.
    pub how: Tampering,
    /// Whether it is as it was again.
    pub restored: bool,
    /// What it was, for the record.
    edit: FileEdit,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tampering {
    /// It was not there.
    Planted,
    /// It was something else.
    Changed,
    /// It is not there any more.
    Removed,
}

impl Tampered {
    /// A text file of a change that was put back.
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

impl std::fmt::Display for Tampered {
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

/// All of it in one line.
pub fn list(tampered: &[Tampered]) -> String {
    const SHOWN: usize = 8;
    let mut texts: Vec<String> = tampered.iter().take(SHOWN).map(ToString::to_string).collect();
    if let Some(more @ 1..) = tampered.len().checked_sub(SHOWN) {
        texts.push(format!("{more} more"));
    }
    texts.join(", ")
}

/// The edits, as a run file keeps them.
pub(crate) fn edits(tampered: &[Tampered]) -> Vec<FileEdit> {
    tampered.iter().map(|one| one.edit.clone()).collect()
}

/// Watches over what others run or obey, for the time of a call.
#[derive(Debug)]
pub(crate) struct GitGuard {
    snapshot: Snapshot,
}

impl GitGuard {
    /// Takes a snapshot, and keeps it with the call until it was compared with: where agentd is
    /// killed, the next command does it.
    pub(crate) fn take(
        tool: &GitTool,
        work_tree: &Path,
        homes: Homes,
        planned: &[String],
        claim: &Claim,
    ) -> Result<Self, GuardError> {
        let mut snapshot = snapshot(tool, work_tree, homes, Coverage::Whole)?;
        let root = snapshot.work_tree();
        // Which programs agentd runs, and what git runs, no plan decides.
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

    /// Puts back what does not look as it did. To be called when the agent has ended, and
    /// before git is.
    pub(crate) fn check(mut self, claim: &Claim) -> Result<Vec<Tampered>, GuardError> {
        allow_merged(&mut self.snapshot, claim);
        let found = self.snapshot.put_back(&|_, _| true)?;
        claim.forget(calls::SNAPSHOT)?;
        Ok(found.iter().map(|one| tampered(&self.snapshot, one)).collect())
    }
}

/// While another call needs its keys in the settings of Gemini CLI they come and go; whoever
/// takes them out keeps what else is there.
fn allow_merged(snapshot: &mut Snapshot, claim: &Claim) {
    if claim.settings_are_merged() {
        snapshot.allow([snapshot.work_tree().join(".gemini/settings.json")]);
    }
}

/// A snapshot of what git runs in a work tree, and of what others obey.
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
    let obeyed = Obeyed::of(&mut runnable, environment, homes);
    Snapshot::take(&runnable, &obeyed, taken)
}

fn tampered(snapshot: &Snapshot, found: &Difference) -> Tampered {
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
    Tampered { path, how, restored: found.restored, edit }
}

/// What a killed agentd has left unchecked, and what was found there.
#[derive(Debug)]
pub enum Unchecked {
    /// A call, and what was changed since it began.
    Call {
        /// The change and the step.
        call: String,
        /// What was found.
        tampered: Vec<Tampered>,
    },
    /// A snapshot that cannot be read, or cannot be compared with.
    Unknown {
        /// Where it is.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Checks what a killed agentd could not, for a call that nobody makes any more.
/// `state` is where the state of the project lies.
pub(crate) fn recover(project: &Project, claim: &Claim, state: &Path) -> Option<Unchecked> {
    let call = claim.name().to_owned();
    let checked = || -> Result<Vec<Tampered>, String> {
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
        Ok(tampered) => Some(Unchecked::Call { call, tampered }),
        Err(why) => {
            let path = calls::private_dir(state, &format!("{call}.{}", calls::SNAPSHOT));
            Some(Unchecked::Unknown { path, why })
        }
    }
}

/// How often it is looked up again what git runs: a setting that is put back may name another file,
/// and that one another.
const ROUNDS: usize = 5;

/// Puts back what git runs and others obey *now*, and nothing else: a snapshot tells how
/// something was, and never what may be written or removed.
fn put_back_known(project: &Project, snapshot: &Snapshot) -> Result<Vec<Tampered>, GuardError> {
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
