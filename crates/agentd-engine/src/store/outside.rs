//! Directories outside of the project: what git and the CLIs keep, the user's own state and
//! caches, private directories below `/tmp`.
//!
//! A path is resolved once, into an [`OutsideDir`]. From then on everything is done to single
//! names in an open directory, so that no link that somebody puts in the way misleads it.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the layer that writes outside of the project; everyone else goes through it"
)]

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, Permissions, PermissionsExt as _};
use rustix::fs::{Mode, OFlags};

use super::confined::ProjectDir;
use super::error::StoreError;
use super::write;

/// An open directory outside of the project. Names are single components.
#[derive(Debug, Clone)]
pub(crate) struct OutsideDir {
    dir: Arc<Dir>,
    path: PathBuf,
}

/// What is done about directories that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Fail,
    Create,
}

/// Only the owner may look into it.
pub(crate) const PRIVATE: u32 = 0o700;
/// What the umask of the user leaves of it.
pub(crate) const SHARED: u32 = 0o777;

#[cfg(target_os = "linux")]
const FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl OutsideDir {
    /// Opens a directory of the user's, by whatever links the user has set up.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(path, cap_std::ambient_authority())?;
        Ok(Self { dir: Arc::new(dir), path: path.to_owned() })
    }

    /// Opens a directory of the user's; it and those above it are created if they are missing.
    pub(crate) fn open_or_create(path: &Path, mode: u32) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(mode).create(path)?;
        Self::open(path)
    }

    /// Opens a directory, name by name from the root. No link is followed on the way.
    pub(crate) fn reach(path: &Path, missing: Missing) -> io::Result<Self> {
        let mut components = path.components();
        if components.next() != Some(Component::RootDir) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut dir = rustix::fs::open("/", FLAGS, Mode::empty())?;
        for component in components {
            let Component::Normal(name) = component else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            let opened = match rustix::fs::openat(&dir, name, FLAGS, Mode::empty()) {
                Err(rustix::io::Errno::NOENT) if missing == Missing::Create => {
                    rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(SHARED))?;
                    rustix::fs::openat(&dir, name, FLAGS, Mode::empty())
                }
                opened => opened,
            };
            dir = opened?;
        }
        let dir = Arc::new(Dir::from_std_file(File::from(dir)));
        Ok(Self { dir, path: path.to_owned() })
    }

    /// Opens a directory that must be the user's alone, below one that is there; it is created
    /// if it is missing. A link in its place is not followed.
    pub(crate) fn own(path: &Path) -> Result<Self, StoreError> {
        create_own(path)?;
        Ok(Self { dir: Arc::new(Dir::from_std_file(open_own(None, path)?)), path: path.to_owned() })
    }

    /// The same directory for documents: its files have relative paths, and symlinks are refused.
    pub(crate) fn confined(&self) -> io::Result<ProjectDir> {
        Ok(ProjectDir::from_file(self.dir.try_clone()?.into_std_file()))
    }

    /// Where it is, for messages and for programs.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory in this one. A link in its place is not followed.
    pub(crate) fn subdir(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = single(name.as_ref())?;
        let dir = Arc::new(self.dir.open_dir_nofollow(name)?);
        Ok(Self { dir, path: self.path.join(name) })
    }

    /// Creates a directory that must not exist yet.
    pub(crate) fn create_dir(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Self> {
        let name = single(name.as_ref())?;
        rustix::fs::mkdirat(&self.dir, name, Mode::from_raw_mode(mode))?;
        self.subdir(name)
    }

    /// Opens a directory, or creates it. Something else in its place, such as a link that an
    /// agent has put there, is replaced.
    pub(crate) fn subdir_or_create(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        match self.subdir(name) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
            Err(_) => {
                self.remove(name)?;
                self.create_dir(name, SHARED)
            }
            opened => opened,
        }
    }

    /// Creates directories below this one, by links that stay below it.
    pub(crate) fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.dir.create_dir_all(path)
    }

    /// Whether anything is there, be it a link to nothing.
    pub(crate) fn has(&self, name: impl AsRef<OsStr>) -> bool {
        self.dir.symlink_metadata(name.as_ref()).is_ok()
    }

    /// The names in it.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        self.dir.entries()?.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Writes a file that must not exist yet and need not survive a crash.
    pub(crate) fn create_file(
        &self,
        name: impl AsRef<OsStr>,
        bytes: &[u8],
        mode: u32,
    ) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let name = single(name.as_ref())?;
        let file = rustix::fs::openat(&self.dir, name, flags, Mode::from_raw_mode(mode))?;
        File::from(file).write_all(bytes)
    }

    /// Replaces or creates a file, whole and durable.
    pub(crate) fn write_atomic(
        &self,
        name: impl AsRef<OsStr>,
        bytes: &[u8],
        mode: u32,
    ) -> io::Result<()> {
        let name = single(name.as_ref())?;
        write::publish(&self.dir, bytes, Some(&Permissions::from_mode(mode)), |dir, temp| {
            dir.rename(temp, dir, name)
        })
    }

    /// Creates a link that must not exist yet, to anywhere.
    pub(crate) fn symlink(&self, target: &Path, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.dir, single(name.as_ref())?)?)
    }

    /// Sets the mode of a file or a directory. A link that leads out is not followed.
    pub(crate) fn set_mode(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<()> {
        self.dir.set_permissions(single(name.as_ref())?, Permissions::from_mode(mode))
    }

    /// Removes whatever is there, with everything in it. Nothing there is fine.
    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        super::remove_tree::remove_tree(&self.dir, single(name.as_ref())?)
    }
}

/// Removes what is at a path, with everything in it. Nothing there is fine.
pub(crate) fn remove_outside(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    match OutsideDir::open(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        parent => parent?.remove(name),
    }
}

/// A name that is a single component: neither a path nor `.` nor `..`.
fn single(name: &OsStr) -> io::Result<&OsStr> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(only)), None) if only == name => Ok(name),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Creates a directory of the user's alone, durably: what is kept in it describes files on other
/// disks, and must not be gone when those are not.
pub(super) fn create_own(path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::OpenRoot { path: path.to_owned(), source };
    match DirBuilder::new().mode(PRIVATE).create(path) {
        Ok(()) => {
            let parent = path.parent().unwrap_or(path);
            File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Opens a directory that must be the user's alone. A link is not followed.
pub(super) fn open_own(parent: Option<&File>, path: &Path) -> Result<File, StoreError> {
    let failed = |source: io::Error| StoreError::OpenRoot { path: path.to_owned(), source };
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    let opened = match (parent, path.file_name()) {
        (Some(parent), Some(name)) => rustix::fs::openat(parent, name, flags, Mode::empty()),
        _ => rustix::fs::open(path, flags, Mode::empty()),
    };
    let dir = File::from(opened.map_err(|error| failed(error.into()))?);
    let found = rustix::fs::fstat(&dir).map_err(|error| failed(error.into()))?;
    if found.st_uid != rustix::process::geteuid().as_raw() {
        return Err(StoreError::ForeignState { path: path.to_owned(), owner: found.st_uid });
    }
    let mode = Mode::from_raw_mode(found.st_mode);
    if mode.intersects(Mode::RWXG | Mode::RWXO) {
        rustix::fs::fchmod(&dir, Mode::RWXU).map_err(|error| failed(error.into()))?;
    }
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn scene() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("outside")).unwrap();
        fs::create_dir(root.join("inside")).unwrap();
        fs::write(root.join("outside/file"), "theirs").unwrap();
        symlink(root.join("outside"), root.join("inside/link")).unwrap();
        (dir, root)
    }

    #[test]
    fn no_link_is_followed_on_the_way() {
        let (_dir, root) = scene();
        for refused in ["inside/link", "inside/link/more", "inside/../outside"] {
            assert!(OutsideDir::reach(&root.join(refused), Missing::Create).is_err(), "{refused}");
        }
        assert!(OutsideDir::reach(Path::new("inside"), Missing::Create).is_err());
        assert!(OutsideDir::reach(&root.join("inside/new/er"), Missing::Fail).is_err());
        let dir = OutsideDir::reach(&root.join("inside/new/er"), Missing::Create).unwrap();
        dir.write_atomic("file", b"x", 0o640).unwrap();
        let file = root.join("inside/new/er/file");
        assert_eq!(fs::read(&file).unwrap(), b"x");
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(fs::read_dir(root.join("outside")).unwrap().count(), 1);
    }

    #[test]
    fn names_are_single_and_links_are_replaced_not_followed() {
        let (_dir, root) = scene();
        let inside = OutsideDir::open(&root.join("inside")).unwrap();
        for name in ["../outside/file", "..", ".", "", "/etc", "link/file", "x/"] {
            assert!(inside.write_atomic(name, b"x", 0o600).is_err(), "{name}");
            assert!(inside.create_file(name, b"x", 0o600).is_err(), "{name}");
            assert!(inside.remove(name).is_err(), "{name}");
            assert!(inside.set_mode(name, 0o600).is_err(), "{name}");
        }
        assert!(inside.subdir("link").is_err());
        assert!(inside.create_file("link", b"x", 0o600).is_err());
        assert!(inside.set_mode("link", 0o000).is_err());
        inside.subdir_or_create("link").unwrap().create_file("new", b"x", 0o600).unwrap();
        assert!(fs::symlink_metadata(root.join("inside/link")).unwrap().is_dir());
        assert_eq!(fs::read(root.join("outside/file")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(root.join("outside")).unwrap().count(), 1);
    }

    #[test]
    fn a_tree_is_removed_without_following_links() {
        let (_dir, root) = scene();
        let closed = root.join("inside/module/closed");
        fs::create_dir_all(&closed).unwrap();
        fs::write(closed.join("file"), "").unwrap();
        symlink(root.join("outside"), closed.join("link")).unwrap();
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
        let inside = OutsideDir::open(&root.join("inside")).unwrap();
        inside.remove("module").unwrap();
        inside.remove("module").unwrap();
        inside.remove("link").unwrap();
        assert_eq!(inside.names().unwrap(), Vec::<OsString>::new());
        assert_eq!(fs::read(root.join("outside/file")).unwrap(), b"theirs");
        remove_outside(&root.join("nothing/here")).unwrap();
        remove_outside(&root.join("outside")).unwrap();
        assert!(!root.join("outside").exists());
    }
}
