//! Writing below a [`ProjectDir`], so that a crash leaves the old text or the new.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use agentd_core::layout::{AGENTD_DIR, TEMP_PREFIX};
use agentd_core::rel_path::RelPath;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, OpenOptions, Permissions};

use super::confined::{EntryKind, MaybeOwned, ProjectDir, Symlinks};
use super::error::StoreError;

/// How often a write starts again because a sweeper removed its temporary file.
const ATTEMPTS: u32 = 8;
/// How many files are open at once.
const BATCH: usize = 256;

impl ProjectDir {
    /// Replaces or creates a file, whole and durable; missing directories are created.
    ///
    /// The mode of an existing file is kept. Where symlinks are followed at
    /// all, a link stays and the file it names is replaced.
    pub fn write_atomic(&self, path: &RelPath, bytes: &[u8]) -> Result<(), StoreError> {
        match self.replace(path, bytes) {
            Err(StoreError::Symlink { path: link }) if self.symlinks == Symlinks::Follow => {
                match self.resolve(path) {
                    // It is dangling, and nothing is created at its target.
                    Err(error) if error.is_not_found() => Err(StoreError::Symlink { path: link }),
                    real => self.replace(&real?, bytes),
                }
            }
            result => result,
        }
    }

    /// Writes a file that must not exist yet, whole and durable.
    pub fn write_new(&self, path: &RelPath, bytes: &[u8]) -> Result<(), StoreError> {
        let (parent, name) = self.parent_for_writing(path)?;
        publish(parent.get(), bytes, None, |dir, temp| rename_noreplace(dir, temp, dir, name))
            .map_err(|error| StoreError::from_io("write", self.shown(path), error))
    }

    /// Replaces or creates many files, each whole, and waits once until all are durable: the
    /// first wait for the disk takes the others with it. A crash leaves some of them new.
    pub(crate) fn write_batch(&self, files: &[(RelPath, &[u8])]) -> Result<(), StoreError> {
        let mut by_dir: BTreeMap<RelPath, Vec<&(RelPath, &[u8])>> = BTreeMap::new();
        for file in files {
            by_dir.entry(file.0.parent().unwrap_or_else(RelPath::root)).or_default().push(file);
        }
        for (dir, files) in by_dir {
            let parent = self.open_or_create_dir(&dir)?;
            sweep(parent.get());
            for chunk in files.chunks(BATCH) {
                self.replace_all(parent.get(), chunk)?;
            }
        }
        Ok(())
    }

    fn replace_all(&self, dir: &Dir, files: &[&(RelPath, &[u8])]) -> Result<(), StoreError> {
        let mut temps = Vec::with_capacity(files.len());
        for (path, bytes) in files {
            let fail = |error| StoreError::from_io("write", self.shown(path), error);
            match self.permissions_for_replacing(dir, path) {
                Err(StoreError::Symlink { .. }) if self.symlinks == Symlinks::Follow => {
                    self.write_atomic(path, bytes)?;
                }
                permissions => {
                    let permissions = permissions?;
                    let temp = Temp::write(dir, bytes, permissions.as_ref()).map_err(fail)?;
                    temps.push((path, *bytes, temp));
                }
            }
        }
        for (path, _, temp) in &temps {
            let synced = temp.file.sync_all();
            synced.map_err(|error| StoreError::from_io("write", self.shown(path), error))?;
        }
        for (path, bytes, mut temp) in temps {
            match dir.rename(&temp.name, dir, path.file_name().unwrap_or(".")) {
                Ok(()) => temp.name.clear(),
                // A sweeper found the file before it was locked.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.write_atomic(path, bytes)?;
                }
                Err(error) => return Err(StoreError::from_io("write", self.shown(path), error)),
            }
        }
        let at = files.first().map_or_else(RelPath::root, |(path, _)| self.shown(path));
        sync_dir(dir).map_err(|error| StoreError::from_io("write", at, error))
    }

    /// Removes what dead writers left in a directory, if it is there.
    pub(crate) fn sweep(&self, path: &RelPath) {
        if let Ok(dir) = self.dir_to_change(path) {
            sweep(dir.get());
        }
    }

    /// Adds bytes to the end of a file, creating it if need be, and waits until they are durable.
    ///
    /// A crash may leave a part of `bytes`; see [`ProjectDir::append_line`].
    pub fn append(&self, path: &RelPath, bytes: &[u8]) -> Result<(), StoreError> {
        let mut file = self.open_append(path)?;
        file.write_all(bytes)
            .and_then(|()| file.sync_data())
            .map_err(|error| StoreError::from_io("append to", self.shown(path), error))
    }

    /// Adds one line. What a crash left of an earlier line is closed off first,
    /// so that only that line is lost and never this one.
    pub fn append_line(&self, path: &RelPath, line: &str) -> Result<(), StoreError> {
        let mut file = self.open_append(path)?;
        let mut append = || {
            let mut bytes = Vec::with_capacity(line.len() + 2);
            if file.metadata()?.len() > 0 {
                let mut last = [0];
                file.seek(SeekFrom::End(-1))?;
                file.read_exact(&mut last)?;
                if last != *b"\n" {
                    bytes.push(b'\n');
                }
            }
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
            file.write_all(&bytes)?;
            file.sync_data()
        };
        append().map_err(|error| StoreError::from_io("append to", self.shown(path), error))
    }

    /// Opens a file to which every write is added at the end, for logs with many lines.
    pub(crate) fn open_append(&self, path: &RelPath) -> Result<File, StoreError> {
        let (parent, name) = self.parent_for_writing(path)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).nonblock(true).follow(FollowSymlinks::No);
        let file = parent
            .get()
            .open_with(name, &options)
            .map_err(|error| self.explain("open", path, &parent, name, error))?;
        let fail = |error| StoreError::from_io("open", self.shown(path), error);
        let metadata = file.metadata().map_err(fail)?;
        match EntryKind::of(metadata.file_type()) {
            EntryKind::File => {}
            kind => return Err(StoreError::NotAFile { path: self.shown(path), kind }),
        }
        if metadata.len() == 0 {
            sync_dir(parent.get()).map_err(fail)?;
        }
        Ok(file.into_std())
    }

    /// Creates a file that must not exist yet, to which every write is added at the end.
    pub(crate) fn create_append(&self, path: &RelPath) -> Result<File, StoreError> {
        let (parent, name) = self.parent_for_writing(path)?;
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).follow(FollowSymlinks::No);
        let file = parent
            .get()
            .open_with(name, &options)
            .map_err(|error| StoreError::from_io("create", self.shown(path), error))?;
        sync_dir(parent.get())
            .map_err(|error| StoreError::from_io("create", self.shown(path), error))?;
        Ok(file.into_std())
    }

    /// Creates a directory and those above it; one that exists is fine.
    pub fn create_dir_all(&self, path: &RelPath) -> Result<(), StoreError> {
        self.open_or_create_dir(path).map(drop)
    }

    /// Creates a directory that must not exist yet; those above it are created too.
    /// Of many who try, one succeeds.
    pub(crate) fn create_dir_new(&self, path: &RelPath) -> Result<(), StoreError> {
        let (parent, name) = self.parent_for_writing(path)?;
        let created = parent.get().create_dir(name).and_then(|()| sync_dir(parent.get()));
        created.map_err(|error| StoreError::from_io("create", self.shown(path), error))
    }

    /// Removes a file. A symlink is removed itself, never what it names.
    pub fn remove_file(&self, path: &RelPath) -> Result<(), StoreError> {
        let (parent, name) = self.parent_to_change(path)?;
        let fail = |error| StoreError::from_io("remove", self.shown(path), error);
        let metadata = parent.get().symlink_metadata(name).map_err(fail)?;
        if metadata.is_dir() {
            let kind = EntryKind::Dir;
            return Err(StoreError::NotAFile { path: self.shown(path), kind });
        }
        parent.get().remove_file(name).and_then(|()| sync_dir(parent.get())).map_err(fail)
    }

    /// Removes what is at a path, with everything in it. Nothing there is fine.
    pub(crate) fn remove_tree(&self, path: &RelPath) -> Result<(), StoreError> {
        let (parent, name) = match self.parent_to_change(path) {
            Err(error) if error.is_not_found() => return Ok(()),
            result => result?,
        };
        super::remove_tree::remove_tree(parent.get(), name.as_ref())
            .map_err(|error| StoreError::from_io("remove", self.shown(path), error))
    }

    /// Removes a directory if it is empty, and returns whether it did.
    pub fn remove_empty_dir(&self, path: &RelPath) -> Result<bool, StoreError> {
        let (parent, name) = match self.parent_to_change(path) {
            Err(error) if error.is_not_found() => return Ok(false),
            result => result?,
        };
        match parent.get().remove_dir(name) {
            Ok(()) => Ok(true),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::DirectoryNotEmpty => Ok(false),
                _ => Err(StoreError::from_io("remove", self.shown(path), error)),
            },
        }
    }

    /// Moves a directory inside the project in one step. The new name must be
    /// free, even of an empty directory; directories above it are created.
    pub fn rename_dir(&self, from: &RelPath, to: &RelPath) -> Result<(), StoreError> {
        let (from_parent, from_name) = self.parent_to_change(from)?;
        let fail = |error| StoreError::from_io("move", self.shown(from), error);
        let metadata = from_parent.get().symlink_metadata(from_name).map_err(fail)?;
        if !metadata.is_dir() {
            return Err(StoreError::NotADirectory { path: self.shown(from) });
        }
        let (to_parent, to_name) = self.parent_for_writing(to)?;
        rename_noreplace(from_parent.get(), from_name, to_parent.get(), to_name).map_err(
            |error| match error.kind() {
                io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
                    StoreError::AlreadyExists { path: self.shown(to) }
                }
                _ => fail(error),
            },
        )?;
        sync_dir(to_parent.get()).and_then(|()| sync_dir(from_parent.get())).map_err(fail)
    }

    fn replace(&self, path: &RelPath, bytes: &[u8]) -> Result<(), StoreError> {
        let (parent, name) = self.parent_for_writing(path)?;
        let dir = parent.get();
        let permissions = self.permissions_for_replacing(dir, path)?;
        publish(dir, bytes, permissions.as_ref(), |dir, temp| dir.rename(temp, dir, name))
            .map_err(|error| StoreError::from_io("write", self.shown(path), error))
    }

    /// The permissions of the file that is replaced; none if there is no file.
    fn permissions_for_replacing(
        &self,
        dir: &Dir,
        path: &RelPath,
    ) -> Result<Option<Permissions>, StoreError> {
        match dir.symlink_metadata(path.file_name().unwrap_or(".")) {
            Ok(metadata) => match EntryKind::of(metadata.file_type()) {
                EntryKind::File => Ok(Some(metadata.permissions())),
                EntryKind::Symlink => Err(StoreError::Symlink { path: self.shown(path) }),
                kind => Err(StoreError::NotAFile { path: self.shown(path), kind }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::from_io("write", self.shown(path), error)),
        }
    }

    /// The target of a symlink that stays inside, if it may be changed.
    fn resolve(&self, path: &RelPath) -> Result<RelPath, StoreError> {
        let real = self.real_path(path)?;
        if may_lead(path, &real) {
            Ok(real)
        } else {
            Err(StoreError::Symlink { path: self.shown(path) })
        }
    }

    /// The directory at a path, to change something in it.
    fn dir_to_change(&self, path: &RelPath) -> Result<MaybeOwned<'_>, StoreError> {
        if self.symlinks == Symlinks::Refuse || path.is_root() {
            return self.open_dir(path);
        }
        let strict = self.without_symlinks();
        let opened = match strict.open_dir(path) {
            Err(StoreError::Symlink { .. }) => strict.open_dir(&self.resolve(path)?)?,
            result => result?,
        };
        Ok(match opened {
            MaybeOwned::Owned(dir) => MaybeOwned::Owned(dir),
            // A link to the root of the project itself.
            MaybeOwned::Borrowed(_) => MaybeOwned::Borrowed(&self.dir),
        })
    }

    fn parent_to_change<'a>(
        &'a self,
        path: &'a RelPath,
    ) -> Result<(MaybeOwned<'a>, &'a str), StoreError> {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok((self.dir_to_change(&parent)?, name)),
            _ => Err(StoreError::NotAFile { path: self.shown(path), kind: EntryKind::Dir }),
        }
    }

    fn parent_for_writing<'a>(
        &'a self,
        path: &'a RelPath,
    ) -> Result<(MaybeOwned<'a>, &'a str), StoreError> {
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok((self.open_or_create_dir(&parent)?, name)),
            _ => Err(StoreError::NotAFile { path: self.shown(path), kind: EntryKind::Dir }),
        }
    }

    fn open_or_create_dir(&self, path: &RelPath) -> Result<MaybeOwned<'_>, StoreError> {
        match self.dir_to_change(path) {
            Err(StoreError::NotFound { .. }) => {}
            result => return result,
        }
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
            let parent = self.open_or_create_dir(&parent)?;
            match parent.get().create_dir(name).and_then(|()| sync_dir(parent.get())) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(StoreError::from_io("create", self.shown(path), error));
                }
                _ => {}
            }
        }
        self.dir_to_change(path)
    }
}

/// Whether a write may follow a link. A repository can bring links along, so none leads into
/// what git keeps, and none from agentd's own directory to the rest of the project.
fn may_lead(path: &RelPath, real: &RelPath) -> bool {
    let is_git = |name: &str| name.eq_ignore_ascii_case(".git");
    let own = |path: &RelPath| path.components().next() == Some(AGENTD_DIR);
    !real.components().any(is_git) && (!own(path) || own(real))
}

/// Writes a temporary file in a directory, renames it, and waits until all of that is durable.
pub(super) fn publish(
    dir: &Dir,
    bytes: &[u8],
    permissions: Option<&Permissions>,
    rename: impl Fn(&Dir, &str) -> io::Result<()>,
) -> io::Result<()> {
    sweep(dir);
    let mut attempt = 1;
    loop {
        let renamed = Temp::write(dir, bytes, permissions).and_then(|mut temp| {
            temp.file.sync_all()?;
            rename(dir, &temp.name)?;
            temp.name.clear();
            Ok(())
        });
        match renamed {
            Ok(()) => return sync_dir(dir),
            // A sweeper found the file before it was locked. Nothing is lost.
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < ATTEMPTS => {
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// A temporary file, complete but perhaps not durable yet, and locked by us. It is removed unless
/// it was renamed; then it has no name.
struct Temp<'a> {
    dir: &'a Dir,
    name: String,
    /// Holds the lock that shows a sweeper that this process is alive.
    file: File,
}

impl<'a> Temp<'a> {
    fn write(dir: &'a Dir, bytes: &[u8], permissions: Option<&Permissions>) -> io::Result<Self> {
        let name = temp_name();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        let file = dir.open_with(&name, &options)?.into_std();
        let mut temp = Self { dir, name, file };
        match temp.file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::NotFound.into()),
            // Where there are no locks, nothing is swept; the write itself is safe without.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        if let Some(permissions) = permissions {
            let permissions = permissions.clone().into_std(&temp.file)?;
            temp.file.set_permissions(permissions)?;
        }
        temp.file.write_all(bytes)?;
        Ok(temp)
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

fn temp_name() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{TEMP_PREFIX}{}-{count}-{nanos:x}", process::id())
}

/// Removes what dead writers left in a directory. A living one holds a lock on its file.
fn sweep(dir: &Dir) {
    let Ok(entries) = dir.entries() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !name.as_encoded_bytes().starts_with(TEMP_PREFIX.as_bytes()) {
            continue;
        }
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        let Ok(file) = dir.open_with(&name, &options) else { continue };
        if file.into_std().try_lock().is_ok() {
            let _ = dir.remove_file(&name);
        }
    }
}

/// Makes renames and new names in a directory durable.
fn sync_dir(dir: &Dir) -> io::Result<()> {
    // Windows has no such call, and some file systems refuse it: then there is nothing to wait for.
    if cfg!(windows) {
        return Ok(());
    }
    match dir.open(".").and_then(|handle| handle.sync_all()) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
        {
            Ok(())
        }
        result => result,
    }
}

#[cfg(target_os = "linux")]
fn rename_noreplace(from: &Dir, from_name: &str, to: &Dir, to_name: &str) -> io::Result<()> {
    use rustix::fs::{RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(from, from_name, to, to_name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => rename_checked(from, from_name, to, to_name),
        result => Ok(result?),
    }
}

#[cfg(not(target_os = "linux"))]
use rename_checked as rename_noreplace;

/// Where the system cannot rename without replacing: a check first, and the
/// system itself still refuses to replace a directory that is not empty.
fn rename_checked(from: &Dir, from_name: &str, to: &Dir, to_name: &str) -> io::Result<()> {
    match to.symlink_metadata(to_name) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            from.rename(from_name, to, to_name)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_leads_a_write_into_git_or_out_of_agentd() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        for dir in [".git/hooks", "agentd/kept", "docs"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        fs::write(root.join(".git/HEAD"), "head").unwrap();
        fs::write(root.join("docs/CLAUDE.md"), "").unwrap();
        for (link, target) in [
            ("CLAUDE.md", ".git/HEAD"),
            (".claude", ".git/hooks"),
            ("agentd/specs", "../docs"),
            ("agentd/archive", "kept"),
            ("AGENTS.md", "docs/CLAUDE.md"),
            (".gemini", "docs"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let dir = ProjectDir::open(root).unwrap();
        let path = |text: &str| RelPath::new(text).unwrap();
        for refused in ["CLAUDE.md", ".claude/x", ".claude/new/x", "agentd/specs/x"] {
            let written = dir.write_atomic(&path(refused), b"x");
            assert!(matches!(written, Err(StoreError::Symlink { .. })), "{refused}: {written:?}");
            assert!(dir.open_append(&path(refused)).is_err());
        }
        assert!(dir.remove_file(&path(".claude/x")).is_err());
        assert!(dir.rename_dir(&path("agentd/kept"), &path("agentd/specs/x")).is_err());
        assert_eq!(fs::read(root.join(".git/HEAD")).unwrap(), b"head");
        assert_eq!(fs::read_dir(root.join(".git/hooks")).unwrap().count(), 0);
        for followed in ["agentd/archive/x", "agentd/archive/new/x", "AGENTS.md", ".gemini/a/x"] {
            dir.write_atomic(&path(followed), b"x").unwrap();
            assert_eq!(dir.read(&path(followed)).unwrap(), b"x");
        }
    }
}
