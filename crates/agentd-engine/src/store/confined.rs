//! A directory that nothing can leave: listing and reading. Writing is in `write`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use agentd_core::layout::TEMP_PREFIX;
use agentd_core::rel_path::RelPath;
use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::MetadataExt;
use cap_std::fs::{Dir, FileType, OpenOptions};

use super::error::StoreError;

/// The largest document that is read: far above any real one, far below what hurts.
pub const DOCUMENT_CAP: u64 = 8 * 1024 * 1024;

/// An open directory of a project; every path is looked up below it and stays below it.
///
/// The kernel (or cap-std, where the kernel cannot) resolves each path beneath
/// the handle, so a symlink swapped in at the worst moment gains nothing.
/// Clones share the handle.
#[derive(Debug, Clone)]
pub struct ProjectDir {
    pub(super) dir: Arc<Dir>,
    /// Where this directory is in its project; for messages only.
    at: RelPath,
    pub(super) symlinks: Symlinks,
}

/// What is done about symlinks that stay inside the directory. Those that leave it never work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symlinks {
    /// They are followed: people do link `CLAUDE.md` to `AGENTS.md`.
    Follow,
    /// They are refused: in a change, a link from `proposal.md` to `STATE.yaml`
    /// would turn a permitted write into a forbidden one.
    Refuse,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name; bytes that are not UTF-8 are shown as `�`.
    pub name: String,
    /// What it is; symlinks are not followed.
    pub kind: EntryKind,
}

/// What a name in a directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link, to anywhere.
    Symlink,
    /// A pipe, a socket, a device: nothing that agentd opens.
    Other,
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Dir => "a directory",
            Self::Symlink => "a symbolic link",
            Self::Other => "a special file",
        })
    }
}

/// Distinguishes one version of a file from the next. agentd replaces files, which gives them
/// another inode; editors that write in place change the time or the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    size: u64,
    modified: Option<std::time::SystemTime>,
    inode: u64,
}

impl FileStamp {
    /// The size of the file, and when it was written.
    pub(super) fn size_and_time(&self) -> (u64, Option<std::time::SystemTime>) {
        (self.size, self.modified)
    }
}

impl EntryKind {
    pub(super) fn of(file_type: FileType) -> Self {
        if file_type.is_file() {
            Self::File
        } else if file_type.is_dir() {
            Self::Dir
        } else if file_type.is_symlink() {
            Self::Symlink
        } else {
            Self::Other
        }
    }
}

impl ProjectDir {
    /// Opens the root of a project, by an absolute path. Everything else is relative to it.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let dir = Dir::open_ambient_dir(root, cap_std::ambient_authority())
            .map_err(|source| StoreError::OpenRoot { path: root.to_owned(), source })?;
        Ok(Self { dir: Arc::new(dir), at: RelPath::root(), symlinks: Symlinks::Follow })
    }

    /// A directory that is open already, in which symlinks are not followed at all.
    pub(super) fn from_file(dir: File) -> Self {
        let dir = Arc::new(Dir::from_std_file(dir));
        Self { dir, at: RelPath::root(), symlinks: Symlinks::Refuse }
    }

    /// A handle on a directory below, which again cannot be left, and in which
    /// symlinks are not followed at all. The last name must not be a symlink either.
    pub fn strict_subdir(&self, path: &RelPath) -> Result<Self, StoreError> {
        let (parent, name) = self.parent_and_name(path)?;
        let dir = parent
            .get()
            .open_dir_nofollow(name)
            .map_err(|error| self.explain("open", path, &parent, name, error))?;
        Ok(Self { dir: Arc::new(dir), at: self.at.join(path), symlinks: Symlinks::Refuse })
    }

    /// The whole file, up to [`DOCUMENT_CAP`].
    pub fn read(&self, path: &RelPath) -> Result<Vec<u8>, StoreError> {
        self.read_capped(path, DOCUMENT_CAP)
    }

    /// The whole file, or an error if it is larger than `cap`: memory use never
    /// depends on a file.
    pub fn read_capped(&self, path: &RelPath, cap: u64) -> Result<Vec<u8>, StoreError> {
        let (file, size) = self.open_file(path)?;
        if size > cap {
            return Err(StoreError::TooLarge { path: self.shown(path), size, cap });
        }
        // One byte more than the size, so that the end shows without growing the buffer.
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        let read = file.take(cap + 1).read_to_end(&mut bytes);
        read.map_err(|error| StoreError::from_io("read", self.shown(path), error))?;
        let size = bytes.len() as u64;
        if size > cap {
            return Err(StoreError::TooLarge { path: self.shown(path), size, cap });
        }
        Ok(bytes)
    }

    /// The whole file as text, up to [`DOCUMENT_CAP`].
    pub fn read_to_string(&self, path: &RelPath) -> Result<String, StoreError> {
        String::from_utf8(self.read(path)?).map_err(|error| StoreError::NotUtf8 {
            path: self.shown(path),
            offset: error.utf8_error().valid_up_to(),
        })
    }

    /// Opens a regular file for streaming, and returns its size.
    pub fn open_file(&self, path: &RelPath) -> Result<(File, u64), StoreError> {
        let mut options = OpenOptions::new();
        // Without `nonblock` a pipe with no writer would hang us.
        options.read(true).nonblock(true);
        let file = match self.symlinks {
            Symlinks::Follow => self
                .dir
                .open_with(path.as_path(), &options)
                .map_err(|error| StoreError::from_io("open", self.shown(path), error))?,
            Symlinks::Refuse => {
                let (parent, name) = self.parent_and_name(path)?;
                parent
                    .get()
                    .open_with(name, options.follow(FollowSymlinks::No))
                    .map_err(|error| self.explain("open", path, &parent, name, error))?
            }
        };
        let metadata = file
            .metadata()
            .map_err(|error| StoreError::from_io("look at", self.shown(path), error))?;
        match EntryKind::of(metadata.file_type()) {
            EntryKind::File => Ok((file.into_std(), metadata.len())),
            kind => Err(StoreError::NotAFile { path: self.shown(path), kind }),
        }
    }

    /// What is at this path, if anything. A symlink is reported as such.
    pub fn kind(&self, path: &RelPath) -> Result<Option<EntryKind>, StoreError> {
        let Some(name) = path.file_name() else { return Ok(Some(EntryKind::Dir)) };
        let parent = match self.open_parent(path) {
            Ok(parent) => parent,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        match parent.get().symlink_metadata(name) {
            Ok(metadata) => Ok(Some(EntryKind::of(metadata.file_type()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::from_io("look at", self.shown(path), error)),
        }
    }

    /// The stamp of the current version of a file, without opening it; none if there is no
    /// regular file.
    pub fn stamp(&self, path: &RelPath) -> Result<Option<FileStamp>, StoreError> {
        let (parent, name) = match self.parent_and_name(path) {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        match parent.get().symlink_metadata(name) {
            Ok(metadata) if metadata.is_file() => Ok(Some(FileStamp {
                size: metadata.len(),
                modified: metadata.modified().ok().map(cap_std::time::SystemTime::into_std),
                inode: MetadataExt::ino(&metadata),
            })),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::from_io("look at", self.shown(path), error)),
        }
    }

    /// Whether a regular file is at this path. A symlink counts where it would be followed.
    pub fn is_file(&self, path: &RelPath) -> Result<bool, StoreError> {
        match self.kind(path)? {
            Some(EntryKind::File) => Ok(true),
            Some(EntryKind::Symlink) if self.symlinks == Symlinks::Follow => {
                match self.open_file(path) {
                    Ok(_) => Ok(true),
                    Err(StoreError::NotFound { .. } | StoreError::NotAFile { .. }) => Ok(false),
                    Err(error) => Err(error),
                }
            }
            _ => Ok(false),
        }
    }

    /// The path of the same file or directory without any symlink on the way.
    /// One that leads outside is an error.
    pub(crate) fn real_path(&self, path: &RelPath) -> Result<RelPath, StoreError> {
        if path.is_root() {
            return Ok(path.clone());
        }
        let real = self
            .dir
            .canonicalize(path.as_path())
            .map_err(|error| StoreError::from_io("resolve", self.shown(path), error))?;
        match real.to_str() {
            Some("") => Ok(RelPath::root()),
            Some(text) => Ok(RelPath::new(text)?),
            None => Err(StoreError::Symlink { path: self.shown(path) }),
        }
    }

    /// The same directory, in which symlinks are not followed at all: for a
    /// [`ProjectDir::real_path`] that was judged and must not become another.
    #[must_use]
    pub(crate) fn without_symlinks(&self) -> Self {
        Self { symlinks: Symlinks::Refuse, ..self.clone() }
    }

    /// The names in a directory, sorted, without agentd's own temporary files.
    pub fn list_dir(&self, path: &RelPath) -> Result<Vec<Entry>, StoreError> {
        let fail = |error| StoreError::from_io("list", self.shown(path), error);
        let dir = self.open_dir(path)?;
        let mut entries = Vec::new();
        for entry in dir.get().entries().map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(TEMP_PREFIX) {
                continue;
            }
            let mut kind = EntryKind::of(entry.file_type().map_err(fail)?);
            if kind == EntryKind::Other {
                // Some file systems do not say; the entry itself knows, if it is still there.
                match dir.get().symlink_metadata(entry.file_name()) {
                    Ok(metadata) => kind = EntryKind::of(metadata.file_type()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(fail(error)),
                }
            }
            entries.push(Entry { name, kind });
        }
        entries.sort_unstable();
        Ok(entries)
    }

    /// The path as people should read it: from the root of the project.
    pub(super) fn shown(&self, path: &RelPath) -> RelPath {
        self.at.join(path)
    }

    pub(super) fn open_parent(&self, path: &RelPath) -> Result<MaybeOwned<'_>, StoreError> {
        match path.parent() {
            Some(parent) => self.open_dir(&parent),
            None => Err(StoreError::NotAFile { path: self.shown(path), kind: EntryKind::Dir }),
        }
    }

    /// The handle on the directory that holds the path, and the last name.
    /// An operation on the name relative to the handle cannot be redirected.
    pub(super) fn parent_and_name<'a>(
        &'a self,
        path: &'a RelPath,
    ) -> Result<(MaybeOwned<'a>, &'a str), StoreError> {
        let parent = self.open_parent(path)?;
        Ok((parent, path.file_name().unwrap_or(".")))
    }

    pub(super) fn open_dir(&self, path: &RelPath) -> Result<MaybeOwned<'_>, StoreError> {
        if path.is_root() {
            return Ok(MaybeOwned::Borrowed(&self.dir));
        }
        if self.symlinks == Symlinks::Follow {
            let opened = self.dir.open_dir(path.as_path());
            return opened
                .map(MaybeOwned::Owned)
                .map_err(|error| StoreError::from_io("open", self.shown(path), error));
        }
        let mut dir = MaybeOwned::Borrowed(&self.dir);
        for name in path.components() {
            let next = dir
                .get()
                .open_dir_nofollow(name)
                .map_err(|error| self.explain("open", path, &dir, name, error))?;
            dir = MaybeOwned::Owned(next);
        }
        Ok(dir)
    }

    /// The error for a failure at `name` in `parent` on the way to `path`; names a symlink as such.
    pub(super) fn explain(
        &self,
        action: &'static str,
        path: &RelPath,
        parent: &MaybeOwned<'_>,
        name: &str,
        error: io::Error,
    ) -> StoreError {
        let path = self.shown(path);
        let is_symlink = || parent.get().symlink_metadata(name).is_ok_and(|m| m.is_symlink());
        if error.kind() != io::ErrorKind::NotFound && is_symlink() {
            return StoreError::Symlink { path };
        }
        match StoreError::from_io(action, path, error) {
            // A name that is not a symlink leads nowhere else: it was moved at this very moment,
            // for example by a process that archives the change.
            StoreError::Escapes { path } => StoreError::NotFound { path },
            error => error,
        }
    }
}

/// A handle on a directory, owned or borrowed.
pub(super) enum MaybeOwned<'a> {
    Owned(Dir),
    Borrowed(&'a Dir),
}

impl MaybeOwned<'_> {
    pub(super) fn get(&self) -> &Dir {
        match self {
            Self::Owned(dir) => dir,
            Self::Borrowed(dir) => dir,
        }
    }
}
