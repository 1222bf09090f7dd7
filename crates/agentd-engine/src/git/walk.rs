//! The files of a project on the disk, whatever the index says about them.
//!
//! What the commit from which a change started ignores is left out: that is build output. Its
//! rules are those of that commit, so that none that was added since can hide a file.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use agentd_walk::{parse, read_rules};
use ignore::Match;
use ignore::gitignore::Gitignore;

use super::seen::Seen;

/// Beyond this many files and directories, only those that git knows are visited.
pub(super) const MOST: usize = 500_000;
/// The name of a file with ignore rules.
pub(super) const RULES: &[u8] = b".gitignore";

/// What is known before the walk.
pub(super) struct WalkInput<'k> {
    /// The top of the checkout.
    pub(super) top: &'k Path,
    /// From there to the project; empty where they are the same.
    pub(super) start: &'k [u8],
    /// The files with ignore rules of the first commit, by their paths.
    pub(super) rules: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Whether git knows a file of this path.
    pub(super) is_tracked: &'k dyn Fn(&[u8]) -> bool,
    /// Whether git knows a file below this path.
    pub(super) has_tracked: &'k dyn Fn(&[u8]) -> bool,
    /// What is not looked at.
    pub(super) excluded: &'k dyn Fn(&[u8]) -> bool,
}

/// A file or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WalkEntry {
    /// From the top of the checkout.
    pub(super) path: Vec<u8>,
    pub(super) kind: WalkEntryKind,
    pub(super) size: u64,
    /// What a rule ignores that is newer than the first commit: the file or a directory above.
    pub(super) ignored_since: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkEntryKind {
    File { executable: bool },
    Link,
}

/// The result of a walk.
#[derive(Debug)]
pub(super) struct WalkResult {
    pub(super) files: Vec<WalkEntry>,
    /// Directories that are repositories of their own.
    pub(super) repositories: Vec<Vec<u8>>,
    /// What is neither file nor link nor directory.
    pub(super) special: Vec<Vec<u8>>,
    pub(super) unreadable: Vec<Vec<u8>>,
    /// Whether there were more files than are visited.
    pub(super) cut: bool,
    /// All that was looked at, as it was before.
    pub(super) seen: Seen,
}

/// The rules of a directory, then and now, and of those above it.
struct Rules {
    above: Option<Rc<Rules>>,
    then: Option<Rc<Gitignore>>,
    now: Option<Rc<Gitignore>>,
}

#[derive(Clone, Copy)]
enum Age {
    Then,
    Now,
}

/// Which files are still added.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkBudget {
    All,
    /// What git knows; no flood of other files hides an edit of those.
    WalkInput,
}

struct Dir {
    path: Vec<u8>,
    above: Option<Rc<Rules>>,
    /// Whether the first commit ignores it: only what git knows counts.
    ignored: bool,
    ignored_since: Option<Vec<u8>>,
}

/// Walks over the project.
pub(super) fn walk(known: &WalkInput<'_>, seen: Seen) -> WalkResult {
    let mut walked = WalkResult {
        files: Vec::new(),
        repositories: Vec::new(),
        special: Vec::new(),
        unreadable: Vec::new(),
        cut: false,
        seen,
    };
    let mut above = None;
    // The rules of the directories above the project hold in it too.
    if !known.start.is_empty() {
        above = Some(rules(known, b"", None, &mut walked.seen));
        for (at, _) in known.start.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            above = Some(rules(known, &known.start[..at], above, &mut walked.seen));
        }
    }
    let start = Dir { path: known.start.to_vec(), above, ignored: false, ignored_since: None };
    let mut left = vec![start];
    let mut count = 0;
    while let Some(dir) = left.pop() {
        walked.seen.look(place(known.top, &dir.path));
        let Ok(entries) = fs::read_dir(place(known.top, &dir.path)) else {
            walked.unreadable.push(dir.path);
            continue;
        };
        let mut entries: Vec<fs::DirEntry> = entries.flatten().collect();
        if dir.path != known.start
            && is_repository(known.top, &dir.path, &entries, &mut walked.seen)
            && !(known.has_tracked)(&dir.path)
        {
            walked.repositories.push(dir.path);
            continue;
        }
        entries.sort_by_key(fs::DirEntry::file_name);
        let here = rules(known, &dir.path, dir.above.clone(), &mut walked.seen);
        let mut below = Vec::new();
        for entry in entries {
            count += 1;
            let room = if count > MOST { WalkBudget::WalkInput } else { WalkBudget::All };
            below.extend(look(known, &dir, &here, &entry, room, &mut walked));
        }
        left.extend(below.into_iter().rev());
    }
    walked
}

/// Adds a file, or returns a directory to walk.
fn look(
    known: &WalkInput<'_>,
    dir: &Dir,
    here: &Rc<Rules>,
    entry: &fs::DirEntry,
    room: WalkBudget,
    walked: &mut WalkResult,
) -> Option<Dir> {
    let name = entry.file_name();
    if name == ".git" {
        return None;
    }
    let path = join(&dir.path, name.as_bytes());
    if (known.excluded)(&path) {
        return None;
    }
    let Ok(metadata) = entry.metadata() else {
        walked.seen.miss();
        walked.unreadable.push(path);
        return None;
    };
    let is_dir = metadata.is_dir();
    let tracked = if is_dir { (known.has_tracked)(&path) } else { (known.is_tracked)(&path) };
    let full = entry.path();
    let ignored = dir.ignored || here.ignores(Age::Then, &full, is_dir);
    if ignored && !tracked {
        return None;
    }
    if room == WalkBudget::WalkInput && !tracked {
        walked.cut = true;
        return None;
    }
    let is_known = !is_dir && tracked;
    let ignored_since = match &dir.ignored_since {
        _ if is_known => None,
        Some(by) => Some(by.clone()),
        None if !ignored && here.ignores(Age::Now, &full, is_dir) => Some(path.clone()),
        None => None,
    };
    if is_dir {
        return Some(Dir { path, above: Some(Rc::clone(here)), ignored, ignored_since });
    }
    walked.seen.found(full, &metadata);
    let kind = if metadata.is_file() {
        WalkEntryKind::File { executable: metadata.permissions().mode() & 0o100 != 0 }
    } else if metadata.is_symlink() {
        WalkEntryKind::Link
    } else {
        walked.special.push(path);
        return None;
    };
    walked.files.push(WalkEntry { path, kind, size: metadata.len(), ignored_since });
    None
}

/// Whether git treats a directory as a repository of its own. A `.git` alone is not enough: git
/// itself would enter such a directory.
fn is_repository(top: &Path, dir: &[u8], entries: &[fs::DirEntry], seen: &mut Seen) -> bool {
    let Some(git) = entries.iter().find(|entry| entry.file_name() == ".git") else { return false };
    let path = place(top, dir).join(".git");
    seen.git_directory(&path);
    seen.look(path.join("objects"));
    if git.file_type().is_ok_and(|kind| kind.is_dir()) {
        return path.join("HEAD").symlink_metadata().is_ok() && path.join("objects").is_dir();
    }
    read_rules(&path).is_some_and(|text| text.starts_with(b"gitdir:"))
}

fn rules(
    known: &WalkInput<'_>,
    dir: &[u8],
    above: Option<Rc<Rules>>,
    seen: &mut Seen,
) -> Rc<Rules> {
    let path = join(dir, RULES);
    let root = place(known.top, dir);
    let was = known.rules.get(&path);
    seen.look(place(known.top, &path));
    let is = read_rules(&place(known.top, &path));
    let then = was.map(|text| Rc::new(parse(&root, text)));
    let now = match &is {
        Some(text) if was == Some(text) => then.clone(),
        Some(text) => Some(Rc::new(parse(&root, text))),
        None => None,
    };
    Rc::new(Rules { above, then, now })
}

impl Rules {
    fn ignores(&self, age: Age, path: &Path, is_dir: bool) -> bool {
        let own = match age {
            Age::Then => &self.then,
            Age::Now => &self.now,
        };
        match own.as_ref().map_or(Match::None, |rules| rules.matched(path, is_dir)) {
            Match::Ignore(_) => true,
            Match::Whitelist(_) => false,
            Match::None => self.above.as_ref().is_some_and(|up| up.ignores(age, path, is_dir)),
        }
    }
}

fn place(top: &Path, path: &[u8]) -> PathBuf {
    if path.is_empty() { top.to_owned() } else { top.join(super::private::as_path(path)) }
}

fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}
