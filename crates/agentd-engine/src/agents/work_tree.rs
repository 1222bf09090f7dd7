//! The files of a worktree: walking them as git sees them, and noticing what an
//! implementer has changed, so that it can be recorded and done again.
//!
//! What git ignores is not looked at, and neither are `.git` and `agentd/`: documents
//! are written through tools, which are recorded by themselves.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use agentd_core::event::KEPT_BYTES;
use agentd_core::hash::{Digest, Digester, hex};
use agentd_core::layout::AGENTD_DIR;
use agentd_core::run_format::FileEdit;

/// Files beyond this many are not looked at.
const MOST_FILES: usize = 100_000;
/// How much is read beforehand, to know what files were; a file beyond it has no digest.
const DIGESTED: u64 = 64 << 20;
/// The largest content that is kept of one file, and of all files of one look.
const KEPT: u64 = KEPT_BYTES as u64;
const KEPT_IN_ALL: u64 = 16 << 20;

/// A file as it was at the last look.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileState {
    /// Inode, size, and both times: what cannot change without one of them.
    mark: (u64, u64, i64, i64, i64, i64),
    digest: Option<Digest>,
    executable: bool,
}

/// Notices what changes in a worktree.
#[derive(Debug)]
pub(crate) struct WorkTree {
    root: PathBuf,
    /// A file that agentd itself changes for the time of a call.
    except: Option<String>,
    seen: BTreeMap<String, FileState>,
}

impl WorkTree {
    /// Looks at everything once. `except` is not looked at.
    pub(crate) fn look(root: &Path, except: Option<&str>) -> Self {
        let mut tree = Self {
            root: root.to_owned(),
            except: except.map(str::to_owned),
            seen: BTreeMap::new(),
        };
        let mut left = DIGESTED;
        for (path, place, metadata) in tree.files() {
            let small = metadata.len() <= KEPT && metadata.len() <= left;
            let digest = if small { read(&place).ok().map(|it| it.digest()) } else { None };
            left -= if digest.is_some() { metadata.len() } else { 0 };
            tree.seen.insert(path, seen(&metadata, digest));
        }
        tree
    }

    fn files(&self) -> impl Iterator<Item = (String, PathBuf, Metadata)> + use<> {
        let except = self.except.clone();
        agentd_walk::files(&self.root, AGENTD_DIR)
            .take(MOST_FILES)
            .filter(move |(path, ..)| except.as_ref() != Some(path))
    }

    /// What has changed since the last look.
    pub(crate) fn changes(&mut self) -> Vec<FileEdit> {
        let mut edits = Vec::new();
        let mut now = BTreeMap::new();
        let mut left = KEPT_IN_ALL;
        for (path, place, metadata) in self.files() {
            let before = self.seen.remove(&path);
            if let Some(same) = before.as_ref().filter(|b| b.mark == mark(&metadata)) {
                now.insert(path, same.clone());
                continue;
            }
            let Ok(bytes) = read(&place) else { continue };
            let digest = bytes.digest();
            let current = seen(&metadata, Some(digest.clone()));
            let touched = before.as_ref().is_some_and(|before| {
                before.digest.as_ref() == Some(&digest) && before.executable == current.executable
            });
            if !touched {
                let (text, hex) = bytes.kept(&mut left);
                edits.push(FileEdit {
                    path: path.clone(),
                    created: before.is_none(),
                    before: before.and_then(|before| before.digest),
                    after: Some(digest),
                    text,
                    hex,
                    executable: current.executable,
                });
            }
            now.insert(path, current);
        }
        // What is left was there, and is not any more.
        for (path, before) in std::mem::replace(&mut self.seen, now) {
            edits.push(FileEdit {
                path,
                created: false,
                before: before.digest,
                after: None,
                text: None,
                hex: None,
                executable: false,
            });
        }
        edits
    }
}

fn mark(metadata: &Metadata) -> (u64, u64, i64, i64, i64, i64) {
    let m = metadata;
    (m.ino(), m.len(), m.mtime(), m.mtime_nsec(), m.ctime(), m.ctime_nsec())
}

fn seen(metadata: &Metadata, digest: Option<Digest>) -> FileState {
    FileState {
        mark: mark(metadata),
        digest,
        executable: metadata.permissions().mode() & 0o111 != 0,
    }
}

/// The content of a file, or only its digest where it is long.
enum Bytes {
    Short(Vec<u8>),
    Long(Digest),
}

fn read(place: &Path) -> io::Result<Bytes> {
    let mut bytes = Vec::new();
    // Not by its size, which may be another one by now.
    fs::File::open(place)?.take(KEPT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= KEPT {
        return Ok(Bytes::Short(bytes));
    }
    Ok(Bytes::Long(digest_of(fs::File::open(place)?)?.0))
}

/// The digest and the size of a file, which may be larger than the memory.
pub(crate) fn digest_of(mut file: fs::File) -> io::Result<(Digest, u64)> {
    let mut digester = Digester::default();
    let mut piece = vec![0; 256 << 10];
    let mut size = 0;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok((digester.finish(), size)),
            Ok(read) => {
                digester.update(&piece[..read]);
                size += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl Bytes {
    fn digest(&self) -> Digest {
        match self {
            Self::Short(bytes) => Digest::of(bytes),
            Self::Long(digest) => digest.clone(),
        }
    }

    /// As text or as hex digits, as long as there is room.
    fn kept(self, left: &mut u64) -> (Option<String>, Option<String>) {
        let Self::Short(bytes) = self else { return (None, None) };
        let length = bytes.len() as u64;
        if length > *left {
            return (None, None);
        }
        *left -= length;
        match String::from_utf8(bytes) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(hex(error.as_bytes()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("src/a.rs", "fn a() {}\n"),
            ("src/gone.rs", "x"),
            (".gitignore", "target/\n"),
            ("target/out", "1"),
            ("agentd/changes/c/tasks.md", "x"),
            (".git/HEAD", "x"),
        ] {
            let place = dir.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        dir
    }

    fn edit(dir: &Path) {
        fs::write(dir.join("src/a.rs"), "fn a() { b() }\n").unwrap();
        fs::write(dir.join("src/ü.rs"), "new").unwrap();
        fs::write(dir.join("run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(dir.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(dir.join("logo.bin"), [0, 159, 146, 150]).unwrap();
        fs::remove_file(dir.join("src/gone.rs")).unwrap();
        fs::write(dir.join("target/out"), "2").unwrap();
        fs::write(dir.join("agentd/changes/c/tasks.md"), "y").unwrap();
    }

    #[test]
    fn what_changes_is_noticed_once() {
        let dir = tree();
        let mut watched = WorkTree::look(dir.path(), None);
        assert!(watched.changes().is_empty());
        edit(dir.path());
        let created = |path: &str, bytes: &[u8]| FileEdit {
            path: path.to_owned(),
            created: true,
            before: None,
            after: Some(Digest::of(bytes)),
            text: str::from_utf8(bytes).ok().map(str::to_owned),
            hex: None,
            executable: false,
        };
        let expected = [
            FileEdit {
                hex: Some("009f9296".to_owned()),
                ..created("logo.bin", &[0, 159, 146, 150])
            },
            FileEdit { executable: true, ..created("run.sh", b"#!/bin/sh\n") },
            FileEdit {
                created: false,
                before: Some(Digest::of("fn a() {}\n")),
                ..created("src/a.rs", b"fn a() { b() }\n")
            },
            created("src/ü.rs", b"new"),
            FileEdit {
                created: false,
                before: Some(Digest::of("x")),
                after: None,
                text: None,
                ..created("src/gone.rs", b"")
            },
        ];
        assert_eq!(watched.changes(), expected);
        assert!(watched.changes().is_empty(), "reported once");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_large_file_does_not_take_its_size_in_memory() {
        let peak = || -> u64 {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
        };
        let dir = tree();
        let mut watched = WorkTree::look(dir.path(), None);
        let before = peak();
        fs::File::create(dir.path().join("large")).unwrap().set_len(64 << 20).unwrap();
        let edits = watched.changes();
        assert!(peak() - before < 16 << 20, "{} bytes more", peak() - before);
        let digest = Digest::of(vec![0; 64 << 20]);
        assert_eq!((&*edits[0].path, &edits[0].after), ("large", &Some(digest)));
    }
}
