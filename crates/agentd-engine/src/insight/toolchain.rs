//! How a project is tested, linted and built: reads the files that say so. What they mean is
//! decided in [`agentd_core::toolchain`].

use std::path::{Path, PathBuf};

use agentd_core::rel_path::RelPath;
use agentd_core::toolchain::{self, TEXTS, Tree};

pub use agentd_core::toolchain::{Commands, Detected};

use crate::store::{EntryKind, ProjectDir};

/// The largest manifest or CI file that is read.
const FILE_CAP: u64 = 512 * 1024;
/// The most CI files that are read.
const MOST_CI_FILES: usize = 40;
/// The most names of a directory that count.
const MOST_NAMES: usize = 5000;

/// The commands of the project in a directory. What cannot be read says nothing.
pub fn detect(dir: &ProjectDir) -> Commands {
    toolchain::detect(&tree(dir))
}

/// The commands of a package at `root`, whose lock file may be in a directory above it, up to
/// that of the repository.
pub fn detect_at(root: &Path) -> Commands {
    let Ok(dir) = ProjectDir::open(root) else { return Commands::default() };
    let mut tree = tree(&dir);
    if let Some(repository) = repository_of(root) {
        let above = root.ancestors().skip(1).take_while(|dir| dir.starts_with(&repository));
        for dir in above.filter_map(|dir| ProjectDir::open(dir).ok()) {
            tree.above.extend(names(&dir));
        }
    }
    toolchain::detect(&tree)
}

/// The root of the git repository that a directory is in. Only names are looked at.
pub fn repository_of(start: &Path) -> Option<PathBuf> {
    start.ancestors().find(|dir| dir.join(".git").exists()).map(Path::to_owned)
}

/// The nearest directory with a manifest of its own, from `start` upwards, that is below the root
/// of its git repository: a package of a monorepo.
pub fn package_of(start: &Path) -> Option<PathBuf> {
    let repository = repository_of(start)?;
    let below = start.ancestors().take_while(|dir| *dir != repository);
    let is_package = |dir: &&Path| {
        let open = ProjectDir::open(dir);
        open.is_ok_and(|dir| names(&dir).iter().any(|name| toolchain::is_manifest(name)))
    };
    below.into_iter().find(is_package).map(Path::to_owned)
}

fn tree(dir: &ProjectDir) -> Tree {
    let mut tree = Tree { names: names(dir).into_iter().collect(), ..Tree::default() };
    for name in TEXTS.into_iter().filter(|name| tree.names.contains(*name)) {
        if let Some(text) = text(dir, name) {
            tree.texts.insert(name.to_owned(), text);
        }
    }
    let workflows = ".github/workflows";
    let listed = RelPath::new(workflows).ok().and_then(|path| dir.list_dir(&path).ok());
    let mut files: Vec<String> = listed
        .into_iter()
        .flatten()
        .filter(|entry| entry.kind == EntryKind::File && toolchain::is_ci_file(&entry.name))
        .map(|entry| format!("{workflows}/{}", entry.name))
        .collect();
    files.sort_unstable();
    files.truncate(MOST_CI_FILES);
    files.push(".gitlab-ci.yml".to_owned());
    for path in files {
        if let Some(text) = text(dir, &path) {
            tree.ci.insert(path, text);
        }
    }
    tree
}

fn names(dir: &ProjectDir) -> Vec<String> {
    let entries = dir.list_dir(&RelPath::root()).unwrap_or_default();
    let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    names.sort_unstable();
    names.truncate(MOST_NAMES);
    names
}

fn text(dir: &ProjectDir, path: &str) -> Option<String> {
    let bytes = dir.read_capped(&RelPath::new(path).ok()?, FILE_CAP).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn command(found: Option<Detected>) -> Option<(String, String)> {
        found.map(|found| (found.command, found.source))
    }

    #[test]
    fn a_package_of_a_monorepo_uses_the_lock_file_above() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir(root.join(".git")).unwrap();
        write(root, "pnpm-lock.yaml", "");
        write(root, "apps/web/package.json", r#"{"scripts": {"test": "vitest"}}"#);
        write(root, "apps/web/src/lib/a.ts", "");
        let package = root.join("apps/web");
        assert_eq!(package_of(&package.join("src/lib")), Some(package.clone()));
        assert_eq!(package_of(&package), Some(package.clone()));
        assert_eq!(package_of(&root.join("apps")), None, "no manifest");
        assert_eq!(package_of(root), None, "the repository itself");
        let test = |commands: Commands| command(commands.test).map(|(command, _)| command);
        assert_eq!(test(detect_at(&package)).as_deref(), Some("pnpm test"));
        let alone = ProjectDir::open(&package).unwrap();
        assert_eq!(test(detect(&alone)).as_deref(), Some("npm test"));
    }

    #[test]
    fn files_that_cannot_be_read_say_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let outside = tempfile::tempdir().unwrap();
        write(outside.path(), "Makefile", "test:\n");
        std::os::unix::fs::symlink(outside.path().join("Makefile"), root.join("Makefile")).unwrap();
        write(root, "package.json", &"x".repeat(600 * 1024));
        std::fs::create_dir(root.join("Cargo.toml")).unwrap();
        let pipe = root.join("tox.ini");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        write(root, ".github/workflows/ci.yml", "run: cargo test\n");
        // The name of tox.ini is there; nothing was read to find that.
        let found = detect(&ProjectDir::open(root).unwrap());
        assert_eq!(command(found.test), Some(("tox".to_owned(), "tox.ini".to_owned())));
        assert_eq!((found.lint, found.build), (None, None));
    }
}
