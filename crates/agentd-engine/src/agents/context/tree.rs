//! What a repository looks like from above: directories with counts, and the files that
//! say most about it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use agentd_core::layout;
use agentd_core::prompt::one_line;
use agentd_core::text::counted;
use agentd_rank::{File, Kind};

/// Counting stops here; if there are more files, the text says so.
pub(crate) const MAX_FILES: usize = 200_000;

/// The longest path that is shown whole.
const MAX_PATH: usize = 200;

/// How many files are named beforehand as the ones to look at first.
const MAX_IMPORTANT: usize = 40;

/// Files by which a project is recognized, wherever they are.
const MANIFESTS: [&str; 24] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
    "Makefile",
    "justfile",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "Package.swift",
    "deno.json",
    "tsconfig.json",
    "Dockerfile",
    "docker-compose.yml",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "STYLE.md",
];

/// Where programs begin.
const ENTRIES: [&str; 16] = [
    "main.rs",
    "lib.rs",
    "main.go",
    "main.py",
    "app.py",
    "__main__.py",
    "manage.py",
    "index.ts",
    "index.js",
    "main.ts",
    "main.js",
    "app.ts",
    "server.ts",
    "Main.java",
    "Program.cs",
    "main.c",
];

/// The files of a repository, without what git ignores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// The names of the files of each directory; the root is the empty path.
    dirs: BTreeMap<String, Vec<String>>,
    files: usize,
    stopped: bool,
}

impl Tree {
    /// Looks at a repository. Symlinks are neither followed nor counted, so that nothing
    /// outside is seen; hidden files, what git ignores, and the changes that agentd keeps
    /// are left aside. What cannot be read is not there.
    pub fn scan(root: &Path) -> Self {
        Self::walk(root, |_, _| {})
    }

    /// The same, and the files with code in it.
    pub(super) fn with_code(root: &Path) -> (Self, Vec<File>) {
        let mut code = Vec::new();
        let tree = Self::walk(root, |path, entry| {
            // A path with a line break would be two paths in a list.
            let shown = path.to_str().filter(|path| !path.contains(char::is_control));
            let Some(path) = shown.filter(|path| agentd_rank::kind(path, 0).is_some()) else {
                return;
            };
            let Ok(metadata) = entry.metadata() else { return };
            if let Some(kind) = agentd_rank::kind(path, metadata.len()) {
                let mtime = metadata.mtime().wrapping_mul(1_000_000_000);
                let mtime = mtime.wrapping_add(metadata.mtime_nsec());
                code.push(File { path: path.to_owned(), size: metadata.len(), mtime, kind });
            }
        });
        (tree, code)
    }

    fn walk(root: &Path, mut found: impl FnMut(&Path, &ignore::DirEntry)) -> Self {
        let skipped =
            [layout::changes_dir(), layout::archive_dir()].map(|dir| root.join(dir.as_path()));
        // The user's own ignore file would make the context another one on every machine.
        let mut builder =
            agentd_walk::walk(root, move |entry| skipped.iter().all(|dir| entry.path() != dir));
        builder.follow_links(false);
        let mut tree = Self::default();
        let mut last = (PathBuf::new(), String::new());
        for entry in builder.build().flatten() {
            let Some(kind) = entry.file_type() else { continue };
            let Ok(path) = entry.path().strip_prefix(root) else { continue };
            if kind.is_dir() {
                tree.dirs.entry(shown(path)).or_default();
            } else if kind.is_file() {
                if tree.files == MAX_FILES {
                    tree.stopped = true;
                    break;
                }
                let parent = path.parent().unwrap_or(Path::new(""));
                // The files of a directory come one after the other.
                if last.0 != parent {
                    last = (parent.to_owned(), shown(parent));
                }
                let name = shown(Path::new(path.file_name().unwrap_or_default()));
                match tree.dirs.get_mut(&last.1) {
                    Some(names) => names.push(name),
                    None => drop(tree.dirs.insert(last.1.clone(), vec![name])),
                }
                tree.files += 1;
                found(path, &entry);
            }
        }
        for names in tree.dirs.values_mut() {
            names.sort_unstable();
        }
        tree
    }

    /// How many files there are, up to `MAX_FILES`.
    pub fn files(&self) -> usize {
        self.files
    }

    /// How large it is, in words.
    fn size(&self) -> String {
        let files = counted(self.files, "file");
        match self.dirs.len() {
            1 => format!("{files} in 1 directory"),
            count => format!("{files} in {count} directories"),
        }
    }

    /// The tree as text of at most `budget` bytes, and what had to be left out.
    ///
    /// First the important files, then the directories from the top down, then the
    /// names of files, again from the top down. `usize::MAX` gives all of it. A directory
    /// with directories below it and nothing but data, or nothing but tests, is one line.
    pub fn render(&self, budget: usize) -> (String, Vec<String>) {
        let mut left_out = Vec::new();
        let mut out = format!("{}\n", self.size());
        if self.stopped {
            left_out.push(format!("structure: files beyond the first {MAX_FILES}"));
        }
        let important = self.important();
        for path in &important {
            if out.len() + path.len() + 13 > budget / 4 {
                break;
            }
            let _ = writeln!(out, "important: {path}");
        }
        let mut left = budget.saturating_sub(out.len());
        let mut shown: BTreeMap<&str, Row> = BTreeMap::new();
        let rows = self.rows();
        for (dir, head, _) in &rows {
            if head.len() + 1 > left {
                break;
            }
            left -= head.len() + 1;
            shown.insert(dir, Row { head: head.clone(), names: None });
        }
        let hidden_dirs = rows.len() - shown.len();
        let mut unnamed = 0;
        for (dir, _, names) in rows.iter().filter(|(_, _, names)| !names.is_empty()) {
            let Some(row) = shown.get_mut(dir) else { continue };
            let text = names.join(" ");
            if text.len() + 2 > left {
                unnamed += 1;
                continue;
            }
            left -= text.len() + 2;
            row.names = Some(text);
        }
        for row in shown.values() {
            out.push_str(&row.head);
            if let Some(names) = &row.names {
                let _ = write!(out, ": {names}");
            }
            out.push('\n');
        }
        if hidden_dirs > 0 {
            left_out.push(format!("structure: {hidden_dirs} directories further down"));
        }
        if unnamed > 0 {
            left_out.push(format!("structure: the names of the files in {unnamed} directories"));
        }
        // Only a budget of a few bytes is less than the first line.
        out.truncate(out.floor_char_boundary(budget));
        (out, left_out)
    }

    /// The directories that get a line, from the top down: path, line, and names of files.
    fn rows(&self) -> Vec<(&str, String, &[String])> {
        let below = self.below();
        let mut rows = Vec::new();
        for (dir, names) in &self.dirs {
            let is_one_line = |dir: &str| {
                !dir.is_empty() && below.get(dir).is_some_and(|below| below.one_line().is_some())
            };
            let mut above = dir.match_indices('/').map(|(at, _)| &dir[..at]);
            if above.any(is_one_line) {
                continue;
            }
            let one_line = below.get(dir.as_str()).filter(|_| !dir.is_empty());
            match one_line.and_then(|below| Some((below, below.one_line()?))) {
                Some((below, what)) => {
                    let files = counted(below.files, "file");
                    let line = format!("{dir}/ {files} in {} directories, {what}", below.dirs);
                    rows.push((dir.as_str(), line, &[][..]));
                }
                None => rows.push((dir.as_str(), head(dir, names), names.as_slice())),
            }
        }
        rows.sort_by_key(|(dir, _, _)| (depth(dir), *dir));
        rows
    }

    /// For each directory, what is in it and below it.
    fn below(&self) -> BTreeMap<&str, Below> {
        let mut all: BTreeMap<&str, Below> = BTreeMap::new();
        for (dir, names) in &self.dirs {
            let mut own = Below { dirs: 1, files: names.len(), ..Below::default() };
            for name in names {
                match agentd_rank::kind(&format!("{dir}/{name}"), 0) {
                    Some(Kind::Source) => own.sources += 1,
                    Some(Kind::Test) => own.tests += 1,
                    None => {}
                }
            }
            let ends = dir.match_indices('/').map(|(at, _)| at).chain([dir.len()]);
            for end in ends {
                all.entry(&dir[..end]).or_default().add(&own);
            }
        }
        all
    }

    fn important(&self) -> Vec<String> {
        let mut found: Vec<(usize, usize, String)> = Vec::new();
        for (dir, names) in &self.dirs {
            for name in names {
                let rank = MANIFESTS.iter().chain(&ENTRIES).position(|known| known == name);
                if let Some(rank) = rank {
                    let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
                    found.push((depth(dir), rank, path));
                }
            }
        }
        found.sort();
        found.into_iter().take(MAX_IMPORTANT).map(|(_, _, path)| path).collect()
    }
}

/// What a directory and those below it have.
#[derive(Default)]
struct Below {
    dirs: usize,
    files: usize,
    sources: usize,
    tests: usize,
}

impl Below {
    fn add(&mut self, other: &Self) {
        self.dirs += other.dirs;
        self.files += other.files;
        self.sources += other.sources;
        self.tests += other.tests;
    }

    /// What to say if the directories below are not worth a line each.
    fn one_line(&self) -> Option<&'static str> {
        match self {
            Self { dirs: 0..3, .. } | Self { sources: 1.., .. } => None,
            Self { tests: 0, .. } => Some("no code, not listed"),
            Self { .. } => Some("tests, not listed"),
        }
    }
}

/// A line about a directory.
struct Row {
    head: String,
    names: Option<String>,
}

fn depth(dir: &str) -> usize {
    if dir.is_empty() { 0 } else { dir.matches('/').count() + 1 }
}

/// `src/auth/ 12 files (9 rs, 3 md)`
fn head(dir: &str, names: &[String]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for name in names {
        if let Some((_, kind)) = name.rsplit_once('.') {
            *kinds.entry(kind).or_default() += 1;
        }
    }
    let mut kinds: Vec<(&str, usize)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let kinds: Vec<String> =
        kinds.iter().take(3).map(|(kind, count)| format!("{count} {kind}")).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    let plural = if names.len() == 1 { "" } else { "s" };
    let dir = if dir.is_empty() { "." } else { dir };
    format!("{dir}/ {} file{plural}{kinds}", names.len())
}

/// A path as it can stand in a line.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let text = if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() };
    one_line(&text, MAX_PATH)
}
