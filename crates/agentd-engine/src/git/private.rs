//! A git directory of our own, for a look at what was changed.
//!
//! It has its own settings, attributes, index and place for new objects, and takes from the
//! repository nothing but its objects. So nothing in `.git` has a say in what is
//! shown: no bits in the index, no excludes, no filters, no replaced commits.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::error::GitError;
use super::object_name::{ObjectFormat, ObjectKind};
use super::status::{os, path_line};
use super::tool::{Call, StartedCall};
use super::{Git, is_hash};
use crate::store::{OutsideDir, PRIVATE, TemporaryDir};

/// The mode of its files. Other users cannot get into the directory anyway.
const FILE_MODE: u32 = 0o600;

/// The most that is read of objects and hashes at a time.
const MOST_BYTES: usize = 256 << 20;

/// The git directory, removed when this is dropped.
pub(super) struct PrivateGitDir<'g> {
    git: &'g Git,
    _temporary: TemporaryDir,
    dir: OutsideDir,
    /// Its directory of files to be hashed.
    files: OutsideDir,
    /// Where the objects of the repository are, in the form that git expects.
    objects: OsString,
    /// How the repository names its objects.
    format: ObjectFormat,
    last_file: AtomicU32,
}

impl<'g> PrivateGitDir<'g> {
    /// Asks what [`PrivateGitDir::create`] needs to know of a repository.
    pub(super) fn ask(git: &Git) -> Result<StartedCall<'_>, GitError> {
        let questions = ["--show-object-format", "--git-path", "objects"];
        git.call("rev-parse").args(questions).begin()
    }

    /// Creates one for a repository, where no other user can write.
    pub(super) fn create(git: &'g Git, asked: StartedCall<'_>) -> Result<Self, GitError> {
        let output = asked.run()?.stdout;
        // The path comes last: there may be a line end in it.
        let end = output.iter().position(|byte| *byte == b'\n').unwrap_or(output.len());
        let (format, objects) = output.split_at(end);
        let objects = path_line(objects.get(1..).unwrap_or_default()).unwrap_or_default();
        let objects = git.root.join(objects);
        let format = ObjectFormat::read(&String::from_utf8_lossy(format))?;
        let failed = |source| GitError::Path { path: std::env::temp_dir(), source };
        let temporary = TemporaryDir::create("git").map_err(failed)?;
        let dir = temporary.dir().clone();
        let files = dir.create_dir("files", PRIVATE).map_err(failed)?;
        let objects = OsString::from_vec(quoted(objects.as_os_str().as_bytes()));
        let last_file = AtomicU32::new(0);
        let private = Self { git, _temporary: temporary, dir, files, objects, format, last_file };
        private.fill().map_err(|source| private.failed(source))?;
        Ok(private)
    }

    fn fill(&self) -> io::Result<()> {
        for dir in ["objects", "refs", "info"] {
            self.dir.create_dir(dir, PRIVATE)?;
        }
        self.dir.create_file("HEAD", b"ref: refs/heads/none\n", FILE_MODE)?;
        // The commit graph and the multi-pack index are caches that anyone could have written.
        let mut config = "[core]\nbare = true\nattributesFile = /dev/null\ncommitGraph = false\n\
             multiPackIndex = false\n"
            .to_owned();
        config.push_str(match self.format {
            ObjectFormat::Sha1 => "repositoryFormatVersion = 0\n",
            ObjectFormat::Sha256 => {
                "repositoryFormatVersion = 1\n[extensions]\nobjectFormat = sha256\n"
            }
        });
        self.dir.create_file("config", config.as_bytes(), FILE_MODE)
    }

    /// A call of git at the top of the checkout, with the objects of the repository.
    pub(super) fn call(&self, subcommand: &'static str) -> Call<'_> {
        self.alone(subcommand).env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.objects.clone())
    }

    /// A call of git with no objects but those that were created for this comparison.
    fn alone(&self, subcommand: &'static str) -> Call<'_> {
        self.git
            .tool
            .call(&self.git.top, subcommand)
            .env("GIT_DIR", self.dir.path())
            .env("GIT_INDEX_FILE", self.dir.path().join("index"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            // All of the files may have to be read.
            .patient()
    }

    /// Makes the diff treat some paths as text, whatever is in them, and others as binary.
    pub(super) fn set_kinds(&self, text: &[&[u8]], binary: &[&[u8]]) -> Result<(), GitError> {
        let mut lines = Vec::new();
        for (paths, attribute) in [(text, " diff\n"), (binary, " -diff\n")] {
            for path in paths {
                lines.extend_from_slice(&quoted(&pattern(path)));
                lines.extend_from_slice(attribute.as_bytes());
            }
        }
        let info = self.dir.subdir("info");
        info.and_then(|info| info.create_file("attributes", &lines, FILE_MODE))
            .map_err(|source| self.failed(source))
    }

    /// How the repository names its objects.
    pub(super) fn format(&self) -> ObjectFormat {
        self.format
    }

    /// Writes a file for [`PrivateGitDir::store`].
    pub(super) fn file(&self, content: &[u8]) -> Result<PathBuf, GitError> {
        let name = self.last_file.fetch_add(1, Ordering::Relaxed).to_string();
        self.files.create_file(&name, content, FILE_MODE).map_err(|source| self.failed(source))?;
        Ok(self.files.path().join(name))
    }

    /// Stores files as they are, for the diff, and returns the names of their objects, in order; paths
    /// are from the top of the checkout.
    pub(super) fn store<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p Path>,
    ) -> Result<Vec<String>, GitError> {
        let mut input = Vec::new();
        let mut count = 0;
        for path in paths {
            input.extend_from_slice(&quoted(path.as_os_str().as_bytes()));
            input.push(b'\n');
            count += 1;
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        let call =
            self.alone("hash-object").args(["-w", "-t", "blob", "--no-filters", "--stdin-paths"]);
        let output = call.input(input).at_most(MOST_BYTES).run()?;
        let hashes: Vec<String> = output.text().lines().map(str::to_owned).collect();
        if hashes.len() == count && hashes.iter().all(|hash| is_hash(hash)) {
            return Ok(hashes);
        }
        Err(GitError::Failed {
            what: "git hash-object".to_owned(),
            code: output.code,
            output: format!("{} answers for {count} files", hashes.len()),
        })
    }

    /// Reads objects, and checks that each is what its name says: git does not, and anyone who can write
    /// to the repository can write to their files.
    pub(super) fn objects(&self, names: &[(ObjectKind, &str)]) -> Result<Vec<Vec<u8>>, GitError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = names.iter().flat_map(|(_, name)| [*name, "\n"]).collect();
        let call = self.call("cat-file").args(["--batch"]).input(input.into_bytes());
        let output = call.at_most(MOST_BYTES).run()?;
        let mut rest = output.stdout.as_slice();
        let mut contents = Vec::new();
        for (kind, name) in names {
            let (content, more) = read_object(rest, name)
                .filter(|(content, _)| self.format.name(*kind, content) == *name)
                .ok_or_else(|| GitError::Damaged { object: (*name).to_owned() })?;
            contents.push(content.to_vec());
            rest = more;
        }
        Ok(contents)
    }

    fn failed(&self, source: io::Error) -> GitError {
        GitError::Path { path: self.dir.path().to_owned(), source }
    }
}

/// Reads one answer of `git cat-file --batch`: the content, and what follows.
fn read_object<'a>(bytes: &'a [u8], name: &str) -> Option<(&'a [u8], &'a [u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    let (head, rest) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let mut fields = head.split(' ');
    let (found, _, size) = (fields.next()?, fields.next()?, fields.next()?);
    let (content, rest) = rest.split_at_checked(size.parse().ok()?)?;
    (found == name).then_some((content, rest.strip_prefix(b"\n")?))
}

/// Bytes in C-style quotes, as git reads them in many places.
pub(crate) fn quoted(bytes: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend_from_slice(&[b'\\', byte]),
            0..32 | 127 => quoted.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// A pattern for attributes that matches only this path.
fn pattern(path: &[u8]) -> Vec<u8> {
    let mut pattern = vec![b'/'];
    for &byte in path {
        if b"*?[\\".contains(&byte) {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    pattern
}

/// A path from the top of the checkout.
pub(super) fn as_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(os(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_as_git_reads_them() {
        for (path, expected) in [
            ("a b", r#""a b""#),
            ("\"x\\", r#""\"x\\""#),
            ("new\nline\r", r#""new\012line\015""#),
            ("ü", "\"ü\""),
        ] {
            assert_eq!(quoted(path.as_bytes()), expected.as_bytes(), "{path}");
        }
        assert_eq!(pattern(b"a[1]*"), b"/a\\[1]\\*");
    }

    #[test]
    fn an_object_is_read_with_what_follows_it() {
        let bytes = b"12 blob 3\na\nb\n34 blob 0\n\n56 missing\n";
        let (content, rest) = read_object(bytes, "12").unwrap();
        assert_eq!(content, b"a\nb");
        let (content, rest) = read_object(rest, "34").unwrap();
        assert_eq!(content, b"");
        assert_eq!(read_object(rest, "56"), None);
        assert_eq!(read_object(bytes, "13"), None);
    }
}
