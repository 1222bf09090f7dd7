//! What some places of the disk look like, and putting them back as they were.
//!
//! A symbolic link is never followed on the way: each directory that leads to a place is
//! looked at before what is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use agentd_core::hash::{hex, unhex};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::GuardError;
use super::obeyed::{Obeyed, deciding, with_deciding};
use super::restore::restore;
use crate::git::runnable::{HOOKS, Runnable};

/// The most that is kept: places, bytes of one file and of all.
const MOST_PLACES: usize = 8192;
const LARGEST: u64 = 4 << 20;
const KEPT: u64 = 32 << 20;
/// How deep a directory of hooks is looked into.
const DEPTH: usize = 6;

/// Bytes, as hex digits where they are written down: names and hooks need not be text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        unhex(&digits).map(Self).ok_or_else(|| de::Error::custom("not hex digits"))
    }
}

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl Bytes {
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsString::from_vec(self.0.clone()))
    }
}

/// What is at a place.
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
    /// A file that is too large to be kept, or something that is neither.
    Other,
}

impl PathState {
    /// Looks, without following a link or waiting for anybody.
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
            // Nobody can read it, which was not so when the snapshot was taken.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Self::Other);
            }
            read => read?,
        };
        Ok(Self::File { mode: mode(&metadata), bytes: Bytes(bytes) })
    }

    /// The content and whether it can be run, of a file.
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

/// What a place is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Watch {
    /// It is to stay what it is.
    All,
    /// It may become anything.
    Name,
    /// It is a directory that leads to a watched place, and must not lead elsewhere.
    #[serde(rename = "way")]
    Parent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    path: Bytes,
    watch: Watch,
    was: PathState,
}

/// The values of a file that decide something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    path: Bytes,
    was: serde_json::Value,
    /// All of it, for a file that cannot be understood any more.
    text: Bytes,
}

/// What some places looked like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Snapshot {
    /// Directories before what is in them.
    places: Vec<Place>,
    /// Directories in which nothing may be that was not there.
    closed: Vec<Bytes>,
    /// Files of which only some values are watched.
    parts: Vec<Part>,
    /// Files that the plan says are to be changed.
    allowed: Vec<Bytes>,
    /// Directories without which nothing can be put back.
    needed: Vec<Bytes>,
    /// Where the agent works, to name places from there.
    work_tree: Bytes,
    /// The directory of the repository, which may lie elsewhere.
    repository: Option<Bytes>,
}

/// A place that does not look as it did.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) path: PathBuf,
    pub(super) was: PathState,
    pub(super) now: PathState,
    /// Whether it looks again as it did.
    pub(super) restored: bool,
}

impl Snapshot {
    pub(super) fn take(
        runnable: &Runnable,
        obeyed: &Obeyed,
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
        // Of the settings of agents as much as can be kept: a user's skills may be large, and
        // are no reason to do nothing.
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
                parts.push(Part { path: Bytes::from(&**path), was, text: bytes });
            }
        }
        let SnapshotBuilder { places, closed, .. } = taking;
        let places = places.into_iter();
        let place = |(path, (watch, was)): (PathBuf, (Watch, PathState))| Place {
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

    /// Lets these files be changed: the plan says so.
    pub(super) fn allow(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        self.allowed.extend(files.into_iter().map(|file| Bytes::from(&*file)));
    }

    /// Whether the plan says that a place changes: it is such a file, or the way to one.
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

    /// Whether this snapshot speaks of a place, where that is now. A directory is named only
    /// inside of one that holds nothing but what is watched: a repository that somebody has made
    /// since is not to be removed.
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

    /// A place in words: from the work tree, or from `.git` where that is elsewhere.
    pub(super) fn name(&self, path: &Path) -> String {
        let from = |dir: &Bytes| path.strip_prefix(dir.path()).ok().map(Path::to_owned);
        let in_repository =
            || self.repository.as_ref().and_then(from).map(|rest| Path::new(".git").join(rest));
        let short = from(&self.work_tree).or_else(in_repository);
        short.as_deref().unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Compares with what is there now, and puts it back as it was, where `may` allows it.
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
            // A directory of git's is not made anew without all that was in it.
            let what = if is_needed { &PathState::Absent } else { &was };
            // One that cannot be put back is told, and does not keep the others from it.
            let restored = may(&path, &now) && restore(&path, &now, what).is_ok();
            if is_needed || !restored {
                lost.push(path.clone());
            }
            // What is in a directory that was replaced goes without saying.
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

/// What a snapshot is taken for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    /// To put everything back: what cannot be kept is an error.
    Whole,
    /// To put back as much as can be kept.
    Most,
    /// To know which places there are, whatever is in them.
    Names,
}

/// A snapshot that is being taken.
struct SnapshotBuilder<'r> {
    runnable: &'r Runnable,
    taken: Coverage,
    places: BTreeMap<PathBuf, (Watch, PathState)>,
    closed: BTreeSet<PathBuf>,
    /// How many more bytes may be kept.
    left: u64,
}

impl SnapshotBuilder<'_> {
    /// Watches a place, and the directories on the way to it.
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
            // It is there, and that is all that is known of it.
            (Coverage::Most, _) => {
                self.places.insert(path.to_owned(), (Watch::Name, PathState::Other));
                return Ok(PathState::Other);
            }
            (Coverage::Names, _) => {}
        }
        // A repository is the way to much, and changes all the time.
        let is_way = matches!(thing, PathState::Directory { .. })
            && self.runnable.repositories.contains(path);
        let watch = if is_way { Watch::Parent } else { Watch::All };
        self.places.insert(path.to_owned(), (watch, thing.clone()));
        Ok(thing)
    }

    /// Watches a file; where it is a link, also what it leads to.
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

    /// Watches a directory of hooks, all of it.
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

    /// Watches the hooks in a directory that may hold other things.
    fn mixed(&mut self, dir: &Path) -> Result<(), GuardError> {
        HOOKS.iter().try_for_each(|name| self.file(&dir.join(name)))
    }

    /// Where a link leads, if an implementer may write there.
    fn target(&self, path: &Path) -> Option<PathBuf> {
        fs::canonicalize(path).ok().filter(|target| self.runnable.is_inside(target))
    }
}
