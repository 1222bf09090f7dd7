//! The files of a work tree: walking them as git sees them, and noticing what an
//! implementer has changed, so that it can be recorded and done again.
//!
//! What git ignores is not looked at, and neither are `.git` and `agentd/`: documents
//! are written through tools, which are recorded by themselves.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use agentd_core::draft::{SourceFile, Survey};
use agentd_core::event::KEPT_BYTES;
use agentd_core::hash::{Digest, Digester, hex, unhex};
use agentd_core::layout::AGENTD_DIR;
use agentd_core::rel_path::RelPath;
use agentd_core::run_format::FileEdit;
use ignore::DirEntry;

use crate::store::{ProjectDir, StoreError};

/// Files beyond this many are not looked at.
const MOST_FILES: usize = 100_000;
/// How much is read beforehand, to know what files were; a file beyond it has no digest.
const DIGESTED: u64 = 64 << 20;
/// The largest content that is kept of one file, and of all files of one look.
const KEPT: u64 = KEPT_BYTES as u64;
const KEPT_IN_ALL: u64 = 16 << 20;

/// The files of a work tree in the order of their paths: path with `/`, place, metadata.
fn files(root: &Path) -> impl Iterator<Item = (String, PathBuf, Metadata)> + use<> {
    let looked_at = |entry: &DirEntry| {
        let name = entry.file_name();
        name != ".git" && !(entry.depth() == 1 && name == AGENTD_DIR)
    };
    let walk = agentd_walk::walk(root, looked_at)
        .hidden(false)
        .sort_by_file_name(std::cmp::Ord::cmp)
        .build();
    let root = root.to_owned();
    walk.filter_map(move |entry| {
        let entry = entry.ok()?;
        let metadata = entry.metadata().ok().filter(Metadata::is_file)?;
        let relative = entry.path().strip_prefix(&root).ok()?.to_str()?.to_owned();
        Some((relative, entry.into_path(), metadata))
    })
    .take(MOST_FILES)
}

/// How many source files are looked through for a survey, and how much of them.
const SURVEYED_FILES: usize = 5000;
const SURVEYED_BYTES: u64 = 32 << 20;
const SURVEYED_FILE: u64 = 256 << 10;

/// What the source files of a project define. Bounded: a huge project is looked at in part.
pub fn survey(root: &Path) -> Survey {
    let mut survey = Survey::default();
    let mut left = SURVEYED_BYTES;
    for (path, place, metadata) in files(root) {
        // Cheap: the name alone tells whether it is source code.
        if SourceFile::scan(&path, "").is_none() {
            continue;
        }
        if survey.files.len() == SURVEYED_FILES || left == 0 {
            survey.cut = true;
            break;
        }
        let read = metadata.len() <= SURVEYED_FILE;
        let text =
            if read { fs::read_to_string(&place).unwrap_or_default() } else { String::new() };
        left = left.saturating_sub(text.len() as u64);
        survey.files.extend(SourceFile::scan(&path, &text));
    }
    survey
}

/// A file as it was at the last look.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// Inode, size, and both times: what cannot change without one of them.
    mark: (u64, u64, i64, i64, i64, i64),
    digest: Option<Digest>,
    executable: bool,
}

/// Notices what changes in a work tree.
#[derive(Debug)]
pub struct WorkTree {
    root: PathBuf,
    /// A file that agentd itself changes for the time of a call.
    except: Option<String>,
    seen: BTreeMap<String, Seen>,
}

impl WorkTree {
    /// Looks at everything once. `except` is not looked at.
    pub fn look(root: &Path, except: Option<&str>) -> Self {
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
        files(&self.root).filter(move |(path, ..)| except.as_ref() != Some(path))
    }

    /// What has changed since the last look.
    pub fn changes(&mut self) -> Vec<FileEdit> {
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

fn seen(metadata: &Metadata, digest: Option<Digest>) -> Seen {
    Seen { mark: mark(metadata), digest, executable: metadata.permissions().mode() & 0o111 != 0 }
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

/// What came of doing an edit again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redone {
    /// It is on the disk now.
    Done,
    /// It was on the disk already.
    Already,
    /// It was not done, and why.
    Diverged(String),
}

/// Does a recorded edit again. What is there and is not what was there then is left alone.
pub fn redo(dir: &ProjectDir, edit: &FileEdit) -> Result<Redone, StoreError> {
    let path = RelPath::new(&edit.path)?;
    if path.components().next().is_none_or(|first| first == AGENTD_DIR || first == ".git") {
        return Ok(Redone::Diverged("it is not a file of the work tree".to_owned()));
    }
    let there = match dir.open_file(&path) {
        Ok((file, _)) => {
            let failed = |source| StoreError::from_io("read", path.clone(), source);
            Some(digest_of(file).map_err(failed)?.0)
        }
        Err(error) if error.is_not_found() => None,
        Err(error) => return Ok(Redone::Diverged(error.to_string())),
    };
    if there == edit.after {
        if there.is_some() {
            set_executable(dir, &path, edit.executable)?;
        }
        return Ok(Redone::Already);
    }
    let as_before = match (&there, edit.created) {
        (None, created) => created,
        (Some(_), true) => false,
        (Some(there), false) => edit.before.as_ref().is_none_or(|before| before == there),
    };
    if !as_before {
        let found = if there.is_some() { "has other content" } else { "is not there" };
        return Ok(Redone::Diverged(format!("before the edit it {found}, and was left alone")));
    }
    let Some(after) = &edit.after else {
        dir.remove_file(&path)?;
        return Ok(Redone::Done);
    };
    let bytes = match (&edit.text, &edit.hex) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(digits)) => unhex(digits),
        (None, None) => None,
    };
    let Some(bytes) = bytes else {
        return Ok(Redone::Diverged("its content was too long to be recorded".to_owned()));
    };
    if Digest::of(&bytes) != *after {
        return Ok(Redone::Diverged(
            "a part of its content was redacted when it was recorded".to_owned(),
        ));
    }
    dir.write_atomic(&path, &bytes)?;
    set_executable(dir, &path, edit.executable)?;
    Ok(Redone::Done)
}

fn set_executable(dir: &ProjectDir, path: &RelPath, executable: bool) -> Result<(), StoreError> {
    let (file, _) = dir.open_file(path)?;
    let failed = |source| StoreError::from_io("write", path.clone(), source);
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    let wanted = if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
    if wanted != mode {
        file.set_permissions(fs::Permissions::from_mode(wanted)).map_err(failed)?;
    }
    Ok(())
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
    fn what_changes_is_noticed_and_can_be_done_again() {
        let (first, second) = (tree(), tree());
        let mut watched = WorkTree::look(first.path(), None);
        assert!(watched.changes().is_empty());
        edit(first.path());
        let edits = watched.changes();
        let paths: Vec<&str> = edits.iter().map(|edit| edit.path.as_str()).collect();
        assert_eq!(paths, ["logo.bin", "run.sh", "src/a.rs", "src/ü.rs", "src/gone.rs"]);
        assert!(watched.changes().is_empty(), "told once");
        let dir = ProjectDir::open(second.path()).unwrap();
        for edit in &edits {
            assert_eq!(redo(&dir, edit).unwrap(), Redone::Done, "{edit:?}");
            assert_eq!(redo(&dir, edit).unwrap(), Redone::Already, "{edit:?}");
        }
        let look = |dir: &Path| -> Vec<(String, Option<Digest>, bool)> {
            let tree = WorkTree::look(dir, None);
            tree.seen.into_iter().map(|(path, s)| (path, s.digest, s.executable)).collect()
        };
        assert_eq!(look(first.path()), look(second.path()));
    }

    #[test]
    fn what_is_different_is_left_alone() {
        let (first, second) = (tree(), tree());
        let mut watched = WorkTree::look(first.path(), None);
        edit(first.path());
        let dir = ProjectDir::open(second.path()).unwrap();
        fs::write(second.path().join("src/a.rs"), "mine").unwrap();
        fs::write(second.path().join("run.sh"), "mine").unwrap();
        for edit in watched.changes() {
            let redone = redo(&dir, &edit).unwrap();
            let mine = ["src/a.rs", "run.sh"].contains(&edit.path.as_str());
            assert_eq!(matches!(redone, Redone::Diverged(_)), mine, "{edit:?}");
        }
        assert_eq!(fs::read_to_string(second.path().join("src/a.rs")).unwrap(), "mine");
        let bad = |path: &str| FileEdit {
            path: path.to_owned(),
            created: true,
            before: None,
            after: Some(Digest::of("x")),
            text: Some("x".to_owned()),
            hex: None,
            executable: false,
        };
        assert!(redo(&dir, &bad("../out")).is_err());
        for protected in ["agentd/config.toml", ".git/hooks/pre-commit"] {
            let redone = redo(&dir, &bad(protected)).unwrap();
            assert!(matches!(redone, Redone::Diverged(_)), "{protected}");
        }
        let redacted = FileEdit { text: Some("[redacted]".to_owned()), ..bad("new") };
        assert!(matches!(redo(&dir, &redacted).unwrap(), Redone::Diverged(_)));
    }

    #[test]
    fn a_survey_sees_source_files_only() {
        let dir = tree();
        let found = survey(dir.path());
        let paths: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["src/a.rs", "src/gone.rs"]);
        assert_eq!(found.files[0].names, ["a"]);
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
