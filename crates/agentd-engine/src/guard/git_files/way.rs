//! A directory that was reached without following a link.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// What is done about directories that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Fail,
    Make,
}

/// An open directory. What is done to a name in it cannot be misled by links on the way.
#[derive(Debug)]
pub(super) struct Way {
    dir: OwnedFd,
    #[cfg(not(target_os = "linux"))]
    path: PathBuf,
}

#[cfg(target_os = "linux")]
const FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Way {
    /// Opens a directory, name by name from the root.
    pub(super) fn open(path: &Path, missing: Missing) -> io::Result<Self> {
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
                Err(rustix::io::Errno::NOENT) if missing == Missing::Make => {
                    rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777))?;
                    rustix::fs::openat(&dir, name, FLAGS, Mode::empty())
                }
                opened => opened,
            };
            dir = opened?;
        }
        Ok(Self {
            dir,
            #[cfg(not(target_os = "linux"))]
            path: path.to_owned(),
        })
    }

    /// A name in the directory, as a path that leads through the open handle.
    #[cfg(target_os = "linux")]
    pub(super) fn to(&self, name: &OsStr) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.dir.as_raw_fd())).join(name)
    }

    /// Elsewhere there are no such paths: that the way was free is all that is known.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn to(&self, name: &OsStr) -> PathBuf {
        let _ = self.dir.as_raw_fd();
        self.path.join(name)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_is_followed_on_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("outside")).unwrap();
        fs::create_dir(root.join("inside")).unwrap();
        symlink(root.join("outside"), root.join("inside/link")).unwrap();
        assert!(Way::open(&root.join("inside/link"), Missing::Make).is_err());
        assert!(Way::open(&root.join("inside/link/more"), Missing::Make).is_err());
        assert!(Way::open(&root.join("inside/../outside"), Missing::Make).is_err());
        assert!(Way::open(Path::new("inside"), Missing::Make).is_err());
        assert!(Way::open(&root.join("inside/new/er"), Missing::Fail).is_err());
        let way = Way::open(&root.join("inside/new/er"), Missing::Make).unwrap();
        fs::write(way.to("file".as_ref()), "x").unwrap();
        assert_eq!(fs::read(root.join("inside/new/er/file")).unwrap(), b"x");
        assert_eq!(fs::read_dir(root.join("outside")).unwrap().count(), 0);
    }
}
