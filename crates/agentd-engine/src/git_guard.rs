//! What git runs by itself stays as it was while an implementer works.
//!
//! An implementer may write in the work tree, and so in `.git`: a hook or a setting that it
//! leaves there would be run by the next git command of agentd or of its user, outside of the
//! confinement of the agent. Landlock cannot take a part out of what it allows. So a picture
//! is taken before each call, and what does not look the same after it is put back before
//! anybody calls git.
//!
//! The picture is on the disk for the time of the call, locked by whoever takes care of it.
//! Where agentd was killed, the next command finds it, and [`recover`] does what is left to
//! do. An agent may have written to that file where it works in the project itself: so it is
//! only ever used to write where the agent could have written, too.

mod picture;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use agentd_core::event::KEPT_BYTES;
use agentd_core::hash::{Digest, hex};
use agentd_core::layout;
use agentd_core::run_format::FileEdit;

use crate::git::runnable::Runnable;
use crate::git::{GitError, GitTool};
use crate::store::Project;
use picture::{Difference, Picture, Thing};

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
    /// There is more than can be kept, or something that is no file.
    #[error("{} is too large or no plain file, so it could not be put back", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
    },
}

/// The largest picture that is read.
const LARGEST: u64 = 128 << 20;

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

/// Watches over git for the time of a call.
#[derive(Debug)]
pub(crate) struct GitGuard {
    picture: Picture,
    kept: PathBuf,
    /// Locked: whoever finds the picture knows that somebody takes care of it.
    _lock: File,
}

impl GitGuard {
    /// Takes a picture. `dir` is where pictures are kept, `name` is that of the call.
    pub(crate) fn take(
        tool: &GitTool,
        work_tree: &Path,
        dir: &Path,
        name: &str,
    ) -> Result<Self, GuardError> {
        let picture = Picture::take(&Runnable::of(tool, work_tree)?)?;
        at(dir, DirBuilder::new().recursive(true).mode(0o700).create(dir))?;
        let kept = dir.join(format!("{name}.json"));
        let temporary = dir.join(format!("{name}.{}", std::process::id()));
        let write = || {
            let mut file = File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&temporary)?;
            // Where there are no locks nobody looks for what was left either.
            let _ = file.try_lock();
            file.write_all(&serde_json::to_vec(&picture)?)?;
            file.sync_data()?;
            fs::rename(&temporary, &kept)?;
            Ok(file)
        };
        let lock = at(&kept, write())?;
        Ok(Self { picture, kept, _lock: lock })
    }

    /// Puts back what does not look as it did. To be called when the agent has ended, and
    /// before git is.
    pub(crate) fn check(self) -> Result<Vec<Tampered>, GuardError> {
        let found = self.picture.put_back(&|_| true)?;
        forget(&self.kept)?;
        Ok(found.iter().map(|one| tampered(&self.picture, one)).collect())
    }
}

/// Removes a picture, and its directory with the last one, so that a command that looks for
/// pictures usually finds nothing to look into.
fn forget(kept: &Path) -> Result<(), GuardError> {
    at(kept, fs::remove_file(kept))?;
    if let Some(dir) = kept.parent() {
        let _ = fs::remove_dir(dir);
    }
    Ok(())
}

fn tampered(picture: &Picture, found: &Difference) -> Tampered {
    let path = picture.name(&found.path);
    let how = match (&found.was, &found.now) {
        (Thing::Nothing, _) => Tampering::Planted,
        (_, Thing::Nothing) => Tampering::Removed,
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
    /// A picture that cannot be read, or cannot be compared with.
    Unknown {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Checks what a killed agentd could not. Everyone who opens a project calls this before git;
/// it costs one look for a directory that is hardly ever there.
pub fn recover(project: &Project) -> Vec<Unchecked> {
    let dir = project.root().join(layout::git_pictures_dir().as_path());
    let Ok(entries) = fs::read_dir(&dir) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if !entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LARGEST) {
            continue;
        }
        // Whoever holds the lock lives, and looks after the call.
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_err() {
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "json") {
            // Its writer was killed before the call began.
            let _ = fs::remove_file(&path);
            continue;
        }
        let call = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let unknown = |why: String| Unchecked::Unknown { path: path.clone(), why };
        match fs::read(&path).map(|bytes| serde_json::from_slice::<Picture>(&bytes)) {
            Ok(Ok(picture)) => match put_back_inside(project, &picture).and_then(|found| {
                forget(&path)?;
                Ok(found)
            }) {
                Ok(tampered) if tampered.is_empty() => {}
                Ok(tampered) => found.push(Unchecked::Call { call, tampered }),
                Err(error) => found.push(unknown(error.to_string())),
            },
            Ok(Err(error)) => found.push(unknown(error.to_string())),
            // Somebody else has just done it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => found.push(unknown(error.to_string())),
        }
    }
    found
}

/// Puts back what is in the project and in its repository, and nothing else: an agent that
/// works in the project can write its own picture, and must gain nothing by it.
fn put_back_inside(project: &Project, picture: &Picture) -> Result<Vec<Tampered>, GuardError> {
    let root = at(project.root(), fs::canonicalize(project.root()))?;
    let repository = root
        .ancestors()
        .map(|dir| dir.join(".git"))
        .find(|dir| fs::symlink_metadata(dir).is_ok_and(|metadata| metadata.is_dir()));
    let may = |path: &Path| {
        let parent =
            path.parent().and_then(|dir| existing(dir)).and_then(|dir| fs::canonicalize(dir).ok());
        parent.is_some_and(|dir| {
            dir.starts_with(&root) || repository.as_ref().is_some_and(|git| dir.starts_with(git))
        })
    };
    let found = picture.put_back(&may)?;
    Ok(found.iter().map(|one| tampered(picture, one)).collect())
}

/// The nearest directory above that is there.
fn existing(dir: &Path) -> Option<&Path> {
    dir.ancestors().find(|dir| dir.symlink_metadata().is_ok())
}
