//! Which program a name means.
//!
//! The `which` crate is not used for this. It resolves relative entries of `PATH` against the
//! current directory and has no way to skip entries in the project, so every entry would
//! have to be checked here before it is asked; what remains is one test for an executable file.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The program that a name or a path means, looked up in a `PATH`. A plain name never means a
/// program of the project at `root`: a person with `./node_modules/.bin` in their `PATH` has not
/// thereby agreed to what a clone has there.
pub fn find_program(name: &str, path: &OsStr, root: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(root.join(name)).filter(|program| is_program(program));
    }
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    std::env::split_paths(path)
        .filter(|dir| !is_inside(dir, &root))
        .map(|dir| dir.join(name))
        .find(|candidate| is_program(candidate))
}

/// Whether an entry of `PATH` depends on the current directory, or is in the project.
fn is_inside(dir: &Path, root: &Path) -> bool {
    dir.is_relative() || dir.canonicalize().is_ok_and(|dir| dir.starts_with(root))
}

/// The program that a plain name would mean by `PATH` is one of the project's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "only the project itself has it, {}; set its `command` in agentd/config.toml to that path if it is meant",
    .0.display()
)]
pub struct InsideProject(pub PathBuf);

/// What to start for a name or a path: the name as it is where `PATH` leads to no program of
/// the project, otherwise the path of the program that was meant.
pub fn resolve(
    name: &str,
    environment: &[(OsString, OsString)],
    root: &Path,
) -> Result<String, InsideProject> {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
    let (Some(path), false) = (path, name.contains('/')) else { return Ok(name.to_owned()) };
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut dirs = std::env::split_paths(path);
    let first = dirs.find(|dir| is_program(&root.join(dir).join(name)));
    let Some(first) = first.filter(|dir| is_inside(dir, &real)) else {
        return Ok(name.to_owned());
    };
    let outside = find_program(name, path, root);
    let outside = outside.and_then(|program| program.into_os_string().into_string().ok());
    outside.ok_or_else(|| InsideProject(root.join(first).join(name)))
}

/// An environment whose `PATH` means the same in every directory. Agents are scripts, and their
/// interpreter is looked up, too.
pub(crate) fn without_relative_paths(
    environment: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let mut environment = environment.to_vec();
    for (name, value) in &mut environment {
        if name == "PATH" && std::env::split_paths(value).any(|dir| dir.is_relative()) {
            let kept = std::env::split_paths(value).filter(|dir| dir.is_absolute());
            // Only an entry with a colon could not be joined, and there is none.
            *value = std::env::join_paths(kept).unwrap_or_default();
        }
    }
    environment
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path() {
        let path = OsStr::new("/nowhere::/usr/bin:/bin");
        let root = Path::new("/nowhere/project");
        assert!(find_program("sh", path, root).is_some());
        assert!(find_program("no-such-program-at-all", path, root).is_none());
        assert!(find_program("/etc/passwd", path, root).is_none(), "a file that cannot be run");
        assert_eq!(find_program("../../bin/sh", path, root), None, "there is no such project");
    }

    // contract T7
    #[test]
    fn a_plain_name_never_means_a_program_of_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (root, outside) = (base.join("project"), base.join("bin"));
        let bin = root.join("node_modules/.bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::os::unix::fs::symlink(&bin, base.join("link")).unwrap();
        let mode = || std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let program = |path: PathBuf| {
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(path, mode()).unwrap();
        };
        program(bin.join("gemini"));
        let link = base.join("link");
        for inside in [
            "./node_modules/.bin",
            "node_modules/.bin",
            bin.to_str().unwrap(),
            link.to_str().unwrap(),
        ] {
            let path = OsString::from(format!("{inside}:{}", outside.display()));
            let environment = [("PATH".into(), path.clone())];
            assert_eq!(find_program("gemini", &path, &root), None, "{inside}");
            assert!(resolve("gemini", &environment, &root).is_err(), "{inside}");
            assert_eq!(resolve("codex", &environment, &root).unwrap(), "codex");
            program(outside.join("gemini"));
            let meant = outside.join("gemini");
            assert_eq!(find_program("gemini", &path, &root), Some(meant.clone()), "{inside}");
            assert_eq!(resolve("gemini", &environment, &root).unwrap(), meant.to_str().unwrap());
            std::fs::remove_file(&meant).unwrap();
        }
        let environment = [("PATH".into(), OsString::from(format!(".::x:{}", outside.display())))];
        let cleaned = without_relative_paths(&environment);
        assert_eq!(cleaned, [("PATH".into(), outside.clone().into_os_string())]);
        program(outside.join("gemini"));
        assert_eq!(resolve("gemini", &environment, &root).unwrap(), "gemini", "as it is on PATH");
    }
}
