//! Which files of a worktree git ignores, by rules that are read with care.
//!
//! The walker of the `ignore` crate opens anything that is called `.gitignore`: a pipe would hang
//! it, and a link to `/dev/zero` would fill the memory. A repository can contain such a link, and
//! an agent can create such a pipe. So the walker gets no rules of its own, and is given ours.
//!
//! This is a crate of its own, and knows nothing of agentd, because two crates walk worktrees that
//! must not know each other: the engine, and the built-in agent, which stands for a stranger's CLI.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{Match, WalkBuilder};
use rustix::fs::{Mode, OFlags};

/// The most that is read of a file with rules.
const RULES_BYTES: u64 = 1 << 20;
/// The files with rules; what the first says counts for more.
const NAMES: [&str; 2] = [".ignore", ".gitignore"];

/// A walk over a worktree that reads no ignore rules by itself, and leaves out what those of the
/// worktree say. The caller says what else is left out: only one filter counts.
pub fn walk(
    root: &Path,
    keep: impl Fn(&ignore::DirEntry) -> bool + Send + Sync + 'static,
) -> WalkBuilder {
    let rules = Rules::new(root);
    let mut builder = WalkBuilder::new(root);
    builder.ignore(false).git_ignore(false).git_exclude(false).git_global(false).parents(false);
    builder.filter_entry(move |entry| {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        keep(entry) && !rules.ignore(entry.path(), is_dir)
    });
    builder
}

/// The files of a worktree in the order of their paths: path with `/`, place, metadata. Nothing
/// of `.git` is among them, and nothing of the directory `except` at the top.
pub fn files(
    root: &Path,
    except: &'static str,
) -> impl Iterator<Item = (String, PathBuf, Metadata)> + use<> {
    let keep = move |entry: &ignore::DirEntry| {
        let name = entry.file_name();
        name != ".git" && !(entry.depth() == 1 && name == except)
    };
    let walk = walk(root, keep).hidden(false).sort_by_file_name(Ord::cmp).build();
    let root = root.to_owned();
    walk.filter_map(move |entry| {
        let entry = entry.ok()?;
        let metadata = entry.metadata().ok().filter(Metadata::is_file)?;
        let relative = entry.path().strip_prefix(&root).ok()?.to_str()?.to_owned();
        Some((relative, entry.into_path(), metadata))
    })
}

/// Opens a file to read it, if it is a regular one. A pipe in its place would block the reader
/// until somebody writes to it.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// The rules of each directory that was looked at, those of [`NAMES`] in their order.
struct Rules {
    /// The directory of the repository that the root is in; the root where there is none.
    top: PathBuf,
    /// What the repository excludes for this user alone; counts for less than all others.
    exclude: Gitignore,
    of_dirs: Mutex<HashMap<PathBuf, Arc<[Gitignore]>>>,
}

impl Rules {
    fn new(root: &Path) -> Self {
        let has_git = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
        let top = root.ancestors().find(has_git).unwrap_or(root).to_owned();
        let exclude = exclude_file(&top).map_or_else(Gitignore::empty, |text| parse(&top, &text));
        Self { top, exclude, of_dirs: Mutex::default() }
    }

    /// Whether the rules of a directory above say so; the nearest that says anything counts.
    fn ignore(&self, path: &Path, is_dir: bool) -> bool {
        for dir in path.ancestors().skip(1).take_while(|dir| dir.starts_with(&self.top)) {
            for rules in &*self.of_dir(dir) {
                match rules.matched(path, is_dir) {
                    Match::None => {}
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                }
            }
        }
        self.exclude.matched(path, is_dir).is_ignore()
    }

    fn of_dir(&self, dir: &Path) -> Arc<[Gitignore]> {
        let mut of_dirs = self.of_dirs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = of_dirs.get(dir) {
            return Arc::clone(known);
        }
        let read = |name: &&str| read_rules(&dir.join(name)).map(|text| parse(dir, &text));
        let rules: Arc<[Gitignore]> = NAMES.iter().filter_map(read).collect();
        of_dirs.insert(dir.to_owned(), Arc::clone(&rules));
        rules
    }
}

/// The text of `info/exclude`, also if the repository of a linked worktree is elsewhere.
fn exclude_file(top: &Path) -> Option<Vec<u8>> {
    let git = top.join(".git");
    let dirs = match read_rules(&git) {
        None => vec![git],
        Some(text) => {
            let text = String::from_utf8(text).ok()?;
            let git = top.join(text.strip_prefix("gitdir:")?.trim());
            vec![git.join("../.."), git]
        }
    };
    dirs.iter().find_map(|dir| read_rules(&dir.join("info/exclude")))
}

/// The text of a file with rules.
pub fn read_rules(path: &Path) -> Option<Vec<u8>> {
    // Git does not follow a link here either, and a pipe would hang us.
    if !path.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(RULES_BYTES).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The rules in a text, for what is below a directory.
pub fn parse(root: &Path, text: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(root);
    for line in String::from_utf8_lossy(text).lines() {
        // A line that is no rule is none.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(root: &Path) -> Vec<String> {
        let walk = walk(root, |entry| entry.file_name() != ".git").hidden(false).build();
        let files = walk.flatten().filter(|entry| entry.path().is_file());
        let name = |entry: ignore::DirEntry| {
            entry.path().strip_prefix(root).unwrap().to_str().unwrap().to_owned()
        };
        let mut names: Vec<String> = files.map(name).collect();
        names.sort();
        names
    }

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    #[test]
    fn rules_hold_as_git_has_them() {
        let dir = tree(&[
            (".git/info/exclude", "/mine\n"),
            ("mine", ""),
            (".gitignore", "*.log\n/top\nout/\n"),
            (".ignore", "!kept.log\n"),
            ("a.log", ""),
            ("kept.log", ""),
            ("top", ""),
            ("out/x", ""),
            ("sub/top", ""),
            ("sub/b.log", ""),
            ("sub/.gitignore", "!b.log\nout2\n"),
            ("sub/out2/y", ""),
        ]);
        let all = [".gitignore", ".ignore", "kept.log", "sub/.gitignore", "sub/b.log", "sub/top"];
        assert_eq!(names(dir.path()), all);
        let of_sub = [".gitignore", "b.log", "top"];
        assert_eq!(names(&dir.path().join("sub")), of_sub, "those above hold up to the repository");
    }

    #[test]
    fn a_pipe_or_an_endless_link_in_place_of_rules_is_none() {
        let dir = tree(&[("a/x", ""), ("b/y", ""), ("c/z", "")]);
        symlink("/dev/zero", dir.path().join("a/.gitignore")).unwrap();
        let pipe = dir.path().join("b/.ignore");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        fs::create_dir(dir.path().join("c/.gitignore")).unwrap();
        assert_eq!(names(dir.path()), ["a/x", "b/y", "c/z"]);
    }

    #[test]
    fn only_a_regular_file_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert!(open_regular(&file).is_ok());
        let pipe = dir.path().join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for other in [pipe.as_path(), dir.path(), Path::new("/dev/null")] {
            let error = open_regular(other).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", other.display());
        }
    }
}
