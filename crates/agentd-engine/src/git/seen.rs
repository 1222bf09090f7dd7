//! What an answer about a repository was made from, so that it can be kept for as long as it is
//! true. Only for answers that are shown: anyone who can set the clock, or writes through a mapping of
//! a file, can hide an edit from it. What is decided is compared again.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Git;
use super::status::records;
use super::tool::Call;
use agentd_walk::read_rules;

/// Two edits within this time may have the same time: what was changed more recently than this
/// before it was looked at is not kept.
const RACY: Duration = Duration::from_secs(2);

/// How many names of branches are followed to a commit.
const MOST_NAMES: usize = 5;

/// A version of something on the disk. Nobody can choose the time of the last change of an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Version {
    fn of(it: &Metadata) -> Self {
        Self {
            device: it.dev(),
            inode: it.ino(),
            mode: it.mode(),
            size: it.size(),
            modified: (it.mtime(), it.mtime_nsec()),
            changed: (it.ctime(), it.ctime_nsec()),
        }
    }
}

/// Files and directories, as they were before they were read.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    begun: SystemTime,
    /// What is there, itself: a link is not followed.
    places: Vec<(PathBuf, Option<Version>)>,
    /// What links lead to.
    targets: Vec<(PathBuf, Option<Version>)>,
    /// Whether something could not be looked at.
    is_partial: bool,
}

impl Seen {
    pub(crate) fn begin() -> Self {
        let (places, targets) = (Vec::new(), Vec::new());
        Self { begun: SystemTime::now(), places, targets, is_partial: false }
    }

    /// Adds what was just looked at.
    pub(super) fn found(&mut self, path: PathBuf, it: &Metadata) {
        self.places.push((path, Some(Version::of(it))));
    }

    /// Looks at something that is read next.
    pub(super) fn look(&mut self, path: PathBuf) {
        let version = version(&path);
        self.places.push((path, version));
    }

    /// The same with what a link leads to.
    fn look_through(&mut self, path: PathBuf) {
        self.follow(path.clone());
        self.look(path);
    }

    /// The same with a text that is not read if it is a link.
    fn look_at_text(&mut self, path: PathBuf) {
        self.is_partial |= path.is_symlink();
        self.look(path);
    }

    /// Looks at what a link leads to.
    fn follow(&mut self, path: PathBuf) {
        let version = target(&path);
        self.targets.push((path, version));
    }

    /// Something that the answer depends on is not known.
    pub(super) fn miss(&mut self) {
        self.is_partial = true;
    }

    /// Adds what another part of the same answer was made from.
    pub(crate) fn and(&mut self, other: Self) {
        self.begun = self.begun.min(other.begun);
        self.places.extend(other.places);
        self.targets.extend(other.targets);
        self.is_partial |= other.is_partial;
    }

    /// Whether an edit of any of it would be noticed.
    pub(crate) fn can_be_kept(&self) -> bool {
        let Ok(begun) = self.begun.duration_since(UNIX_EPOCH) else { return false };
        let is_old = |(_, version): &(PathBuf, Option<Version>)| {
            version.is_none_or(|version| {
                let seconds = u64::try_from(version.changed.0).unwrap_or(0);
                let nanos = u32::try_from(version.changed.1).unwrap_or(0);
                Duration::new(seconds, nanos) + RACY <= begun
            })
        };
        !self.is_partial && self.places.iter().chain(&self.targets).all(is_old)
    }

    /// Whether all of it is still as it was.
    pub(crate) fn holds(&self) -> bool {
        self.places.iter().all(|(path, seen)| version(path) == *seen)
            && self.targets.iter().all(|(path, seen)| target(path) == *seen)
    }

    /// Adds what git reads to know where a project is in which repository, what is checked out
    /// there and in its other worktrees, and how it is set up. No process is started.
    pub(crate) fn repository_of(&mut self, root: &Path) {
        for dir in root.ancestors() {
            let git = dir.join(".git");
            self.look(git.clone());
            if git.symlink_metadata().is_ok() {
                return self.git_directory(&git);
            }
        }
    }

    /// Adds a git directory, or the one that a file leads to.
    pub(super) fn git_directory(&mut self, git: &Path) {
        self.look_through(git.to_owned());
        let own = link_of(git, "gitdir:").unwrap_or_else(|| git.to_owned());
        self.look_at_text(own.join("commondir"));
        let common = link_of(&own.join("commondir"), "").unwrap_or_else(|| own.clone());
        for name in ["index", "config.worktree", "info/sparse-checkout", "info/attributes"] {
            self.look_through(own.join(name));
        }
        for name in ["config", "packed-refs", "shallow", "info/attributes", "reftable/tables.list"]
        {
            self.look_through(common.join(name));
        }
        self.head(&own, &common);
        // The other worktrees: which branch is checked out where.
        let trees = common.join("worktrees");
        self.look(trees.clone());
        for tree in fs::read_dir(trees).into_iter().flatten().flatten() {
            self.look(tree.path().join("gitdir"));
            self.look(tree.path().join("locked"));
            self.head(&tree.path(), &common);
        }
        if common != own {
            self.head(&common, &common);
        }
    }

    /// Adds what `HEAD` is, down to the file with the commit.
    fn head(&mut self, own: &Path, common: &Path) {
        let mut place = own.join("HEAD");
        for _ in 0..MOST_NAMES {
            self.look_at_text(place.clone());
            let text = read_rules(&place).unwrap_or_default();
            // From here, names are those of all worktrees.
            let Some(name) = text.strip_prefix(b"ref:") else { return };
            place = common.join(OsStr::from_bytes(name.trim_ascii()));
        }
        self.miss();
    }
}

impl Git {
    /// Asks which files settings come from.
    pub(super) fn list_settings(&self) -> Call<'_> {
        let call = self.call("config").args(["--list", "-z", "--includes", "--show-origin"]);
        call.args(["--name-only"])
    }

    /// Adds the files that the settings come from, those of the user included.
    pub(super) fn see_settings(&self, listed: &[u8], seen: &mut Seen) {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let settings = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let settings = settings.or_else(|| Some(home.as_ref()?.join(".config")));
        seen.follow(PathBuf::from("/etc/gitconfig"));
        for path in [home.map(|it| it.join(".gitconfig")), settings.map(|it| it.join("git/config"))]
            .into_iter()
            .flatten()
        {
            seen.follow(path);
        }
        // Files that others include.
        let mut paths: Vec<PathBuf> = records(listed)
            .step_by(2)
            .filter_map(|origin| origin.strip_prefix(b"file:"))
            .map(|path| self.root.join(OsStr::from_bytes(path)))
            .collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            seen.follow(path);
        }
    }
}

fn version(path: &Path) -> Option<Version> {
    path.symlink_metadata().ok().map(|it| Version::of(&it))
}

fn target(path: &Path) -> Option<Version> {
    path.metadata().ok().map(|it| Version::of(&it))
}

/// The path that a small file of git contains, from the directory of the file.
fn link_of(file: &Path, start: &str) -> Option<PathBuf> {
    let text = read_rules(file)?;
    let path = text.strip_prefix(start.as_bytes())?.trim_ascii();
    Some(file.parent()?.join(OsStr::from_bytes(path)))
}
