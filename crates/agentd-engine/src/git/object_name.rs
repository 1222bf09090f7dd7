//! The names of git's objects: hashes of their kind, size, and content.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use agentd_core::hash::{Digester, hex};
use rustix::fs::{Mode, OFlags};

use super::error::GitError;

/// How often a file is read that changes meanwhile.
const TRIES: usize = 3;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    /// The content of a file.
    Blob,
    /// The entries of a directory.
    Tree,
    /// A commit.
    Commit,
}

impl ObjectKind {
    fn word(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::Tree => "tree",
            Self::Commit => "commit",
        }
    }
}

/// How a repository names its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// Reads what `git rev-parse --show-object-format` prints.
    pub(super) fn read(name: &str) -> Result<Self, GitError> {
        match name {
            "sha1" => Ok(Self::Sha1),
            "sha256" => Ok(Self::Sha256),
            other => Err(GitError::Failed {
                what: "git rev-parse".to_owned(),
                code: 0,
                output: format!("agentd does not know the object format `{other}`"),
            }),
        }
    }

    /// The name of an object with this content.
    pub(super) fn name(self, kind: ObjectKind, content: &[u8]) -> String {
        let mut hasher = self.hasher(kind, content.len() as u64);
        hasher.update(content);
        hasher.finish()
    }

    /// The name that the content of a file would have, as it is. A link is not followed.
    pub(super) fn name_of_file(self, path: &Path) -> io::Result<String> {
        let mut buffer = vec![0; 64 << 10];
        for _ in 0..TRIES {
            let mut file = open(path)?;
            let size = file.metadata()?.len();
            let mut hasher = self.hasher(ObjectKind::Blob, size);
            let mut read = 0;
            loop {
                let count = match file.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                hasher.update(&buffer[..count]);
                read += count as u64;
                // It grows while it is read.
                if read > size {
                    break;
                }
            }
            if read == size {
                return Ok(hasher.finish());
            }
        }
        Err(io::Error::other("it changes while it is read"))
    }

    /// The name that a link would have.
    pub(super) fn name_of_link(self, path: &Path) -> io::Result<String> {
        Ok(self.name(ObjectKind::Blob, fs::read_link(path)?.as_os_str().as_bytes()))
    }

    fn hasher(self, kind: ObjectKind, size: u64) -> Hasher {
        let mut hasher = match self {
            Self::Sha1 => Hasher::Sha1(Box::default()),
            Self::Sha256 => Hasher::Sha256(Box::default()),
        };
        hasher.update(format!("{} {size}\0", kind.word()).as_bytes());
        hasher
    }
}

/// Opens a regular file; what took its place meanwhile must not block or lead elsewhere.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

enum Hasher {
    /// With the detection of collisions that git has: two contents with one name could be made
    /// since 2017.
    Sha1(Box<sha1_checked::Sha1>),
    Sha256(Box<Digester>),
}

impl Hasher {
    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => sha1_checked::Digest::update(&mut **hasher, bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            Self::Sha1(hasher) => hex(&sha1_checked::Digest::finalize(*hasher)),
            Self::Sha256(hasher) => hasher.finish().to_string().replace("sha256:", ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_git() {
        let content = b"hello\n";
        let (sha1, sha256) = (ObjectFormat::Sha1, ObjectFormat::Sha256);
        assert_eq!(
            sha1.name(ObjectKind::Blob, content),
            "ce013625030ba8dba906f756967f9e9ca394464a"
        );
        assert_eq!(
            sha256.name(ObjectKind::Blob, content),
            "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4"
        );
        assert_eq!(sha1.name(ObjectKind::Tree, b""), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, content).unwrap();
        std::os::unix::fs::symlink("hello\n", &link).unwrap();
        let expected = sha1.name(ObjectKind::Blob, content);
        assert_eq!(sha1.name_of_file(&file).unwrap(), expected);
        assert_eq!(sha1.name_of_link(&link).unwrap(), expected);
        assert!(
            sha1.name_of_file(&link).is_err(),
            "a link that took a file's place is not followed"
        );
        assert!(sha1.name_of_file(dir.path()).is_err());
    }
}
