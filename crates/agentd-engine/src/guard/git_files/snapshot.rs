//! A snapshot of paths on the disk, and restoring them.
//!
//! A symbolic link is never followed on the way: each directory that leads to a path is checked
//! before what is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::GuardError;
use super::agent_settings::{AgentSettings, deciding, with_deciding};
use super::restore::restore;
use crate::git::runnable::{HOOKS, Runnable};
use crate::store::Bytes;

/// The most that a snapshot holds: paths, bytes of one file, and bytes of all files.
const MOST_PLACES: usize = 8192;
const LARGEST: u64 = 4 << 20;
const KEPT: u64 = 32 << 20;
/// How deep a directory of hooks is walked.
const DEPTH: usize = 6;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PathState {
    #[serde(rename = "nothing")]
    Absent,
    File {
        mode: u32,
        bytes: Bytes,
    },
    Directory {
        mode: u32,
    },
    Link {
        target: Bytes,
    },
    /// A file that is too large for a snapshot, or something that is none of these.
    Other,
}

impl PathState {
    /// Reads it, without following a link or blocking on a pipe.
    fn at(path: &Path) -> io::Result<Self> {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if is_absent(&error) => return Ok(Self::Absent),
            Err(error) => return Err(error),
        };
        let mode = |metadata: &Metadata| metadata.permissions().mode() & 0o7777;
        if metadata.is_dir() {
            return Ok(Self::Directory { mode: mode(&metadata) });
        }
        if metadata.is_symlink() {
            return Ok(Self::Link { target: Bytes::from(&*fs::read_link(path)?) });
        }
        if !metadata.is_file() || metadata.len() > LARGEST {
            return Ok(Self::Other);
        }
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|f| f.take(LARGEST + 1).read_to_end(&mut bytes));
        match read {
            // It was readable when the snapshot was taken.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Self::Other);
            }
            read => read?,
        };
        Ok(Self::File { mode: mode(&metadata), bytes: Bytes(bytes) })
    }

    /// The content of a file, and whether it is executable.
    pub(super) fn file(&self) -> Option<(&[u8], bool)> {
        match self {
            Self::File { mode, bytes } => Some((&bytes.0, mode & 0o111 != 0)),
            Self::Absent | Self::Directory { .. } | Self::Link { .. } | Self::Other => None,
        }
    }
}

pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What must not change about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Watch {
    /// Anything: it must stay what it is.
    All,
    /// Nothing: it is only known to exist.
    Name,
    /// It is a directory that leads to a watched path, and must not lead elsewhere.
    #[serde(rename = "way")]
    Parent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WatchedPath {
    path: Bytes,
    watch: Watch,
    was: PathState,
}

/// The values of a file that decide something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WatchedValues {
    path: Bytes,
    was: serde_json::Value,
    /// The whole text, for a file that can no longer be parsed.
    text: Bytes,
}

/// The state of paths at some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Snapshot {
    /// Directories come before what is in them.
    places: Vec<WatchedPath>,
    /// Directories in which nothing may be added.
    closed: Vec<Bytes>,
    /// Files of which only some values are watched.
    parts: Vec<WatchedValues>,
    /// Files that the plan names, and that may be changed.
    allowed: Vec<Bytes>,
    /// Directories without which nothing can be restored.
    needed: Vec<Bytes>,
    /// Where the agent works; paths are shown from there.
    work_tree: Bytes,
    /// The directory of the repository, which may be elsewhere.
    repository: Option<Bytes>,
}

/// A path that was changed.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) path: PathBuf,
    pub(super) was: PathState,
    pub(super) now: PathState,
    /// Whether it was restored.
    pub(super) restored: bool,
}

impl Snapshot {
    pub(super) fn take(
        runnable: &Runnable,
        obeyed: &AgentSettings,
        taken: Coverage,
    ) -> Result<Self, GuardError> {
        let (places, closed) = (BTreeMap::new(), BTreeSet::new());
        let mut taking = SnapshotBuilder { runnable, taken, places, closed, left: KEPT };
        for file in &runnable.files {
            taking.file(file)?;
        }
        for dir in &runnable.hooks {
            taking.directory(dir, DEPTH)?;
        }
        for dir in &runnable.mixed_hooks {
            taking.mixed(dir)?;
        }
        // As many of the agents' settings as fit: a user's skills may be large, and are no reason
        // to refuse the call.
        if taken == Coverage::Whole {
            taking.taken = Coverage::Most;
        }
        for file in &obeyed.files {
            taking.file(file)?;
        }
        for dir in &obeyed.dirs {
            taking.directory(dir, DEPTH)?;
        }
        let mut parts = Vec::new();
        for path in &obeyed.parts {
            if let PathState::File { bytes, .. } = at(path, PathState::at(path))? {
                let was = deciding(&bytes.0);
                parts.push(WatchedValues { path: Bytes::from(&**path), was, text: bytes });
            }
        }
        let SnapshotBuilder { places, closed, .. } = taking;
        let places = places.into_iter();
        let place = |(path, (watch, was)): (PathBuf, (Watch, PathState))| WatchedPath {
            path: Bytes::from(&*path),
            watch,
            was,
        };
        let as_bytes =
            |dirs: &BTreeSet<PathBuf>| dirs.iter().map(|dir| Bytes::from(&**dir)).collect();
        Ok(Self {
            places: places.map(place).collect(),
            closed: as_bytes(&closed),
            parts,
            allowed: Vec::new(),
            needed: as_bytes(&runnable.repositories),
            work_tree: Bytes::from(runnable.roots.first().map_or(Path::new(""), |root| root)),
            repository: runnable
                .repositories
                .iter()
                .min_by_key(|dir| dir.as_os_str().len())
                .map(|dir| Bytes::from(&**dir)),
        })
    }

    /// Allows changes to these files: the plan names them.
    pub(super) fn allow(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        self.allowed.extend(files.into_iter().map(|file| Bytes::from(&*file)));
    }

    /// Whether the plan allows a change of a path: it is such a file, or leads to one.
    fn is_allowed(&self, path: &Path, now: &PathState) -> bool {
        let is_way = matches!(now, PathState::Directory { .. });
        self.allowed
            .iter()
            .map(Bytes::path)
            .any(|file| file == path || (is_way && file.starts_with(path)))
    }

    /// Where the agent worked.
    pub(super) fn work_tree(&self) -> PathBuf {
        self.work_tree.path()
    }

    /// Whether this snapshot covers a path in its current state. A directory is covered only
    /// inside of one that holds nothing but what is watched: a repository that was created since
    /// must not be removed.
    pub(super) fn names(&self, path: &Path, now: &PathState) -> bool {
        if self.parts.iter().any(|part| part.path.path() == path) {
            return true;
        }
        let is_plain = path.is_absolute()
            && path
                .components()
                .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let in_closed = self.closed.iter().any(|dir| {
            let dir = dir.path();
            path.starts_with(&dir) && path != dir
        });
        let is_directory = matches!(now, PathState::Directory { .. });
        let is_place = || {
            let bytes = Bytes::from(path);
            let named = self.places.iter().any(|place| place.path == bytes);
            named && (!is_directory || self.closed.contains(&bytes))
        };
        is_plain && (in_closed || is_place())
    }

    /// A path for people: from the working tree, or from `.git` if that is elsewhere.
    pub(super) fn name(&self, path: &Path) -> String {
        let from = |dir: &Bytes| path.strip_prefix(dir.path()).ok().map(Path::to_owned);
        let in_repository =
            || self.repository.as_ref().and_then(from).map(|rest| Path::new(".git").join(rest));
        let short = from(&self.work_tree).or_else(in_repository);
        short.as_deref().unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Compares with what is there now, and restores it where `may` allows that.
    pub(super) fn put_back(
        &self,
        may: &dyn Fn(&Path, &PathState) -> bool,
    ) -> Result<Vec<Difference>, GuardError> {
        let mut found: Vec<Difference> = Vec::new();
        let mut lost: Vec<PathBuf> = Vec::new();
        for place in &self.places {
            let path = place.path.path();
            if lost.iter().any(|dir| path.starts_with(dir) && path != *dir) {
                continue;
            }
            let now = at(&path, PathState::at(&path))?;
            let is_needed = self.needed.contains(&place.path);
            let is_same = match (place.watch, &now) {
                (Watch::Name, _) => true,
                (Watch::Parent, PathState::Directory { .. }) => true,
                (Watch::Parent, PathState::Absent) => !is_needed || place.was == PathState::Absent,
                (Watch::Parent | Watch::All, now) => *now == place.was,
            };
            if is_same || self.is_allowed(&path, &now) {
                continue;
            }
            let was = place.was.clone();
            // A directory of git is not created again without everything that was in it.
            let what = if is_needed { &PathState::Absent } else { &was };
            // One that cannot be restored is reported, and does not stop the others.
            let restored = may(&path, &now) && restore(&path, &now, what).is_ok();
            if is_needed || !restored {
                lost.push(path.clone());
            }
            // What is in a replaced directory is not reported as well.
            if !found.iter().any(|above| path.starts_with(&above.path)) {
                found.push(Difference { path, was, now, restored: restored && !is_needed });
            }
        }
        for dir in self.closed.iter().map(Bytes::path) {
            self.empty(&dir, &lost, may, &mut found)?;
        }
        for part in &self.parts {
            let path = part.path.path();
            let now = at(&path, PathState::at(&path))?;
            let (mode, right) = match &now {
                PathState::Absent => continue,
                PathState::File { bytes, .. } if deciding(&bytes.0) == part.was => continue,
                PathState::File { mode, bytes } => (*mode, with_deciding(&bytes.0, &part.was)),
                PathState::Directory { .. } | PathState::Link { .. } | PathState::Other => {
                    (0o600, None)
                }
            };
            let right = right.map_or_else(|| part.text.clone(), Bytes);
            let was = PathState::File { mode, bytes: right };
            let restored = may(&path, &now) && restore(&path, &now, &was).is_ok();
            found.push(Difference { path, was, now, restored });
        }
        Ok(found)
    }

    /// Removes what is new in a directory.
    fn empty(
        &self,
        dir: &Path,
        lost: &[PathBuf],
        may: &dyn Fn(&Path, &PathState) -> bool,
        found: &mut Vec<Difference>,
    ) -> Result<(), GuardError> {
        if lost.iter().any(|lost| dir.starts_with(lost))
            || !matches!(at(dir, PathState::at(dir))?, PathState::Directory { .. })
        {
            return Ok(());
        }
        for entry in at(dir, fs::read_dir(dir))? {
            let path = at(dir, entry)?.path();
            let bytes = Bytes::from(&*path);
            if self.places.iter().any(|place| place.path == bytes) {
                continue;
            }
            let now = at(&path, PathState::at(&path))?;
            if self.is_allowed(&path, &now) {
                continue;
            }
            let restored = may(&path, &now) && restore(&path, &now, &PathState::Absent).is_ok();
            found.push(Difference { path, was: PathState::Absent, now, restored });
        }
        Ok(())
    }
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, GuardError> {
    result.map_err(|source| GuardError::Io { path: path.to_owned(), source })
}

/// How much a snapshot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    /// Everything: what does not fit is an error.
    Whole,
    /// As much as fits.
    Most,
    /// Only the names of the paths, whatever is there.
    Names,
}

/// A snapshot while it is being taken.
struct SnapshotBuilder<'r> {
    runnable: &'r Runnable,
    taken: Coverage,
    places: BTreeMap<PathBuf, (Watch, PathState)>,
    closed: BTreeSet<PathBuf>,
    /// How many more bytes fit.
    left: u64,
}

impl SnapshotBuilder<'_> {
    /// Adds a path, and the directories that lead to it.
    fn place(&mut self, path: &Path) -> Result<PathState, GuardError> {
        for dir in path.ancestors().skip(1) {
            let is_root = self.runnable.roots.first().is_some_and(|root| dir == root);
            if is_root || !self.runnable.is_inside(dir) {
                break;
            }
            if !self.places.contains_key(dir) {
                let thing = at(dir, PathState::at(dir))?;
                self.places.insert(dir.to_owned(), (Watch::Parent, thing));
            }
        }
        let thing = at(path, PathState::at(path))?;
        let size = thing.file().map_or(0, |(bytes, _)| bytes.len() as u64);
        let too_large = || GuardError::TooLarge { path: path.to_owned() };
        let is_full = thing == PathState::Other || self.places.len() >= MOST_PLACES;
        match (self.taken, self.left.checked_sub(size)) {
            (Coverage::Whole, Some(left)) if !is_full => self.left = left,
            (Coverage::Whole, _) => return Err(too_large()),
            (Coverage::Most, Some(left)) if !is_full => self.left = left,
            // Nothing is known but that it exists.
            (Coverage::Most, _) => {
                self.places.insert(path.to_owned(), (Watch::Name, PathState::Other));
                return Ok(PathState::Other);
            }
            (Coverage::Names, _) => {}
        }
        // A repository leads to many paths, and changes all the time.
        let is_way = matches!(thing, PathState::Directory { .. })
            && self.runnable.repositories.contains(path);
        let watch = if is_way { Watch::Parent } else { Watch::All };
        self.places.insert(path.to_owned(), (watch, thing.clone()));
        Ok(thing)
    }

    /// Adds a file, and what it leads to if it is a link.
    fn file(&mut self, path: &Path) -> Result<(), GuardError> {
        if self.places.get(path).is_some_and(|(watch, _)| *watch == Watch::All) {
            return Ok(());
        }
        if let PathState::Link { .. } = self.place(path)?
            && let Some(target) = self.target(path)
            && !target.is_dir()
        {
            self.place(&target)?;
        }
        Ok(())
    }

    /// Adds a directory of hooks, with everything in it.
    fn directory(&mut self, dir: &Path, depth: usize) -> Result<(), GuardError> {
        match self.place(dir)? {
            PathState::Directory { .. } => {}
            PathState::Link { .. } => {
                return match self.target(dir) {
                    Some(target) => self.mixed(&target),
                    None => Ok(()),
                };
            }
            PathState::Absent | PathState::File { .. } | PathState::Other => return Ok(()),
        }
        if depth == 0 {
            if self.taken != Coverage::Whole {
                return Ok(());
            }
            return Err(GuardError::TooLarge { path: dir.to_owned() });
        }
        self.closed.insert(dir.to_owned());
        if self.taken == Coverage::Names {
            return Ok(());
        }
        for entry in at(dir, fs::read_dir(dir))? {
            let entry = at(dir, entry)?;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.directory(&entry.path(), depth - 1)?;
            } else {
                self.file(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Adds the hooks in a directory that may hold other files.
    fn mixed(&mut self, dir: &Path) -> Result<(), GuardError> {
        HOOKS.iter().try_for_each(|name| self.file(&dir.join(name)))
    }

    /// Where a link leads, if an implementer may write there.
    fn target(&self, path: &Path) -> Option<PathBuf> {
        fs::canonicalize(path).ok().filter(|target| self.runnable.is_inside(target))
    }
}
