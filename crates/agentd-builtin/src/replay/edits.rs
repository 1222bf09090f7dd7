//! Recorded edits of files, done again as a CLI would do them: as plain files of the working tree.
//!
//! A recording may have come with a repository, so its paths are confined also where there is no
//! cage: no link is followed, and nothing of git's or agentd's is written.

use std::io::{self, Write as _};

use agentd_core::hash::{Digest, Digester, unhex};
use agentd_core::layout::{AGENTD_DIR, TEMP_PREFIX};
use agentd_core::rel_path::RelPath;
use agentd_core::run_format::FileEdit;
use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, File, OpenOptions, Permissions, PermissionsExt as _};

/// Does a recorded edit again, or says why not. What is there and is not what was there then is
/// left alone.
pub(super) fn redo(root: &Dir, edit: &FileEdit) -> Result<(), String> {
    let path = RelPath::new(&edit.path).map_err(|error| error.to_string())?;
    let is_git = |name: &str| name.eq_ignore_ascii_case(".git");
    let top = path.components().next();
    if top.is_none_or(|top| top == AGENTD_DIR) || path.components().any(is_git) {
        return Err("it is not a file of the working tree".to_owned());
    }
    let there = look(root, &path).map_err(|error| error.to_string())?;
    let digest = there.as_ref().map(|file| &file.digest);
    if digest == edit.after.as_ref() {
        let there = there.as_ref().map_or(Ok(()), |file| file.set_executable(edit.executable));
        return there.map_err(|error| error.to_string());
    }
    let as_before = match (digest, edit.created) {
        (None, created) => created,
        (Some(_), true) => false,
        (Some(there), false) => edit.before.as_ref().is_none_or(|before| before == there),
    };
    if !as_before {
        let found = if there.is_some() { "has other content" } else { "is not there" };
        return Err(format!("before the edit it {found}, and was left alone"));
    }
    let done = match &edit.after {
        None => parent(root, &path, Missing::Fail).and_then(|(dir, name)| dir.remove_file(name)),
        Some(after) => {
            let permissions =
                there.and_then(|found| Some(found.file.metadata().ok()?.permissions()));
            write(root, &path, &content(edit, after)?, permissions, edit.executable)
        }
    };
    done.map_err(|error| error.to_string())
}

/// The content that a file had after an edit.
fn content(edit: &FileEdit, after: &Digest) -> Result<Vec<u8>, String> {
    let bytes = match (&edit.text, &edit.hex) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(digits)) => unhex(digits),
        (None, None) => None,
    };
    let bytes = bytes.ok_or("its content was too long to be recorded")?;
    if Digest::of(&bytes) != *after {
        return Err("a part of its content was redacted when it was recorded".to_owned());
    }
    Ok(bytes)
}

/// A file that is there.
struct ExistingFile {
    file: File,
    digest: Digest,
}

impl ExistingFile {
    fn set_executable(&self, executable: bool) -> io::Result<()> {
        set_executable(&self.file, executable)
    }
}

fn look(root: &Dir, path: &RelPath) -> io::Result<Option<ExistingFile>> {
    let mut options = OpenOptions::new();
    // A pipe must not keep us waiting.
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    let opened =
        parent(root, path, Missing::Fail).and_then(|(dir, name)| dir.open_with(name, &options));
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut digester = Digester::default();
    io::copy(&mut file, &mut digester)?;
    Ok(Some(ExistingFile { file, digest: digester.finish() }))
}

/// Replaces or creates a file, whole: a killed replay leaves no half of one.
fn write(
    root: &Dir,
    path: &RelPath,
    bytes: &[u8],
    permissions: Option<Permissions>,
    executable: bool,
) -> io::Result<()> {
    let (dir, name) = parent(root, path, Missing::Create)?;
    let temporary = format!("{TEMP_PREFIX}{}", std::process::id());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).follow(FollowSymlinks::No);
    let mut file = dir.open_with(&temporary, &options)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions)))
        .and_then(|()| set_executable(&file, executable))
        .and_then(|()| dir.rename(&temporary, &dir, name));
    if written.is_err() {
        let _ = dir.remove_file(&temporary);
    }
    written
}

fn set_executable(file: &File, executable: bool) -> io::Result<()> {
    let mode = file.metadata()?.permissions().mode();
    let wanted = if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
    if wanted == mode { Ok(()) } else { file.set_permissions(Permissions::from_mode(wanted)) }
}

/// What is done about a directory that is missing on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fail,
    Create,
}

/// The directory of a file, opened name by name without following a link, and the file's name.
fn parent<'p>(root: &Dir, path: &'p RelPath, missing: Missing) -> io::Result<(Dir, &'p str)> {
    let mut names: Vec<&str> = path.components().collect();
    let name = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
    let mut dir = root.try_clone()?;
    for name in names {
        dir = match dir.open_dir_nofollow(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && missing == Missing::Create => {
                dir.create_dir(name)?;
                dir.open_dir_nofollow(name)?
            }
            opened => opened?,
        };
    }
    Ok((dir, name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;

    use cap_std::ambient_authority;

    use super::*;

    /// A worktree as it was before the edits.
    fn tree() -> (tempfile::TempDir, Dir) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [("src/a.rs", "fn a() {}\n"), ("src/gone.rs", "x"), (".git/HEAD", "x")]
        {
            let place = dir.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        let root = Dir::open_ambient_dir(dir.path(), ambient_authority()).unwrap();
        (dir, root)
    }

    fn created(path: &str, bytes: &[u8]) -> FileEdit {
        FileEdit {
            path: path.to_owned(),
            created: true,
            before: None,
            after: Some(Digest::of(bytes)),
            text: str::from_utf8(bytes).ok().map(str::to_owned),
            hex: None,
            executable: false,
        }
    }

    fn edits() -> [FileEdit; 5] {
        let was = |text: &str| Some(Digest::of(text));
        [
            FileEdit {
                hex: Some("009f9296".to_owned()),
                ..created("logo.bin", &[0, 159, 146, 150])
            },
            FileEdit { executable: true, ..created("new/run.sh", b"#!/bin/sh\n") },
            FileEdit { created: false, before: was("fn a() {}\n"), ..created("src/a.rs", b"b\n") },
            created("src/ü.rs", b"new"),
            FileEdit {
                created: false,
                before: was("x"),
                after: None,
                text: None,
                ..created("src/gone.rs", b"")
            },
        ]
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn edits_are_done_again_and_a_second_time_changes_nothing() {
        let (dir, root) = tree();
        fs::set_permissions(dir.path().join("src/a.rs"), fs::Permissions::from_mode(0o640))
            .unwrap();
        for edit in edits() {
            assert_eq!(redo(&root, &edit), Ok(()), "{edit:?}");
            assert_eq!(redo(&root, &edit), Ok(()), "{edit:?}");
        }
        let read = |path: &str| fs::read(dir.path().join(path)).unwrap();
        assert_eq!(read("logo.bin"), [0, 159, 146, 150]);
        assert_eq!(read("new/run.sh"), b"#!/bin/sh\n");
        assert_eq!(read("src/a.rs"), b"b\n");
        assert_eq!(read("src/ü.rs"), b"new");
        assert!(!dir.path().join("src/gone.rs").exists());
        let script = mode(&dir.path().join("new/run.sh"));
        assert_eq!(script & 0o111, (script & 0o444) >> 2, "{script:o}");
        assert_eq!(mode(&dir.path().join("src/a.rs")), 0o640);
        let names = fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name());
        assert!(names.into_iter().all(|name| !name.to_str().unwrap().starts_with(TEMP_PREFIX)));
    }

    #[test]
    fn what_is_different_is_left_alone() {
        let (dir, root) = tree();
        fs::create_dir(dir.path().join("new")).unwrap();
        for mine in ["src/a.rs", "new/run.sh"] {
            fs::write(dir.path().join(mine), "mine").unwrap();
        }
        for edit in edits() {
            let mine = ["src/a.rs", "new/run.sh"].contains(&edit.path.as_str());
            assert_eq!(redo(&root, &edit).is_err(), mine, "{edit:?}");
        }
        assert_eq!(fs::read_to_string(dir.path().join("src/a.rs")).unwrap(), "mine");
        let redacted = FileEdit { text: Some("[redacted]".to_owned()), ..created("new.rs", b"x") };
        assert!(redo(&root, &redacted).unwrap_err().contains("redacted"));
        let long = FileEdit { text: None, ..created("new.rs", b"x") };
        assert!(redo(&root, &long).unwrap_err().contains("too long"));
    }

    #[test]
    fn no_path_leads_out_of_the_work_tree_or_into_git_or_agentd() {
        let (dir, root) = tree();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), dir.path().join("out")).unwrap();
        symlink(".git", dir.path().join("git")).unwrap();
        symlink(outside.path().join("file"), dir.path().join("file")).unwrap();
        for path in [
            "../out",
            "/tmp/out",
            "agentd/config.toml",
            ".git/hooks/pre-commit",
            "sub/.GIT/config",
            "out/x",
            "git/x",
            "file",
        ] {
            assert!(redo(&root, &created(path, b"x")).is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        assert_eq!(fs::read_dir(dir.path().join(".git")).unwrap().count(), 1);
    }
}
