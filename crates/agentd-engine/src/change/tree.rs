//! The files that a verdict or a test run is about, as one digest (T3).
//!
//! They are what git would commit of the working tree: tracked files and those that it does not
//! ignore, without `agentd/`, by path, executable bit and content. Line endings count as they are on
//! disk. A repository within the tree counts by its name alone.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use agentd_core::hash::{Digest, Digester};
use agentd_core::layout::AGENTD_DIR;

use crate::agents::work_tree::digest_of;
use crate::git::GitTool;
use crate::store::map_parallel;

/// The most that is read of git's list of files.
const LISTED_BYTES: usize = 256 << 20;

/// The largest file that git does not know of.
const LARGEST_UNTRACKED: u64 = 1 << 30;

/// The digest of the files of a working tree.
pub fn tree(tool: &GitTool, root: &Path) -> io::Result<Digest> {
    let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
    // A tracked file counts, whatever rule ignores it. The index may name too much, which does no
    // harm; what it leaves out is in the commit.
    for (subcommand, args) in [
        ("ls-files", &["-z", "--cached"][..]),
        ("ls-tree", &["-r", "-z", "--name-only", "HEAD"][..]),
    ] {
        // Without a repository, or before its first commit, there is nothing to add.
        let listed = tool.call(root, subcommand).args(args).at_most(LISTED_BYTES).ask();
        let Some(listed) = listed.ok().filter(|listed| listed.code == 0) else { continue };
        if listed.cut {
            return Err(io::Error::other("git lists more files than agentd reads"));
        }
        let names = listed.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let path = |name: &[u8]| PathBuf::from(std::ffi::OsString::from_vec(name.to_vec()));
        paths.extend(names.map(path).filter(|path| is_counted(path)));
    }
    for entry in agentd_walk::walk(root, keep).hidden(false).build().flatten() {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        let Ok(path) = entry.path().strip_prefix(root) else { continue };
        if entry.depth() > 0 && !is_dir && paths.insert(path.to_owned()) {
            refuse_huge(&entry, path)?;
        }
    }
    let paths: Vec<PathBuf> = paths.into_iter().collect();
    let lines = map_parallel(&paths, |path| line(root, path));
    let mut digester = Digester::default();
    for line in lines {
        digester.update(&line?.unwrap_or_default());
    }
    Ok(digester.finish())
}

/// A file that nobody has added to git can claim any size, and reading it would never end.
fn refuse_huge(entry: &ignore::DirEntry, path: &Path) -> io::Result<()> {
    let is_huge =
        entry.metadata().is_ok_and(|data| data.is_file() && data.len() > LARGEST_UNTRACKED);
    if is_huge {
        let path = path.display();
        return Err(io::Error::other(format!(
            "{path} is larger than 1 GiB and not tracked; add it to .gitignore, or to git"
        )));
    }
    Ok(())
}

fn keep(entry: &ignore::DirEntry) -> bool {
    let name = entry.file_name();
    if name == ".git" || (entry.depth() == 1 && name == AGENTD_DIR) {
        return false;
    }
    let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
    entry.depth() == 0 || !is_dir || entry.path().join(".git").symlink_metadata().is_err()
}

/// Not what is agentd's own, and nothing that leads out of the tree.
fn is_counted(path: &Path) -> bool {
    let first = path.components().next();
    let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    plain && first.is_some_and(|first| first.as_os_str() != AGENTD_DIR)
}

/// What a file adds to the digest: nothing where it is not there.
fn line(root: &Path, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let place = root.join(path);
    let metadata = match fs::symlink_metadata(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ENOTDIR) => return Ok(None),
        metadata => metadata?,
    };
    let (mode, digest) = if metadata.is_symlink() {
        ("120000", Digest::of(fs::read_link(&place)?.as_os_str().as_bytes()))
    } else if metadata.is_file() {
        let mode = metadata.permissions().mode();
        let executable = if mode & 0o100 == 0 { "100644" } else { "100755" };
        (executable, digest_of(agentd_walk::open_regular(&place)?)?.0)
    } else {
        // A repository of its own, or a pipe.
        ("160000", Digest::of(""))
    };
    let mut line = format!("{mode} {digest} {} ", path.as_os_str().len()).into_bytes();
    line.extend_from_slice(path.as_os_str().as_bytes());
    line.push(b'\n');
    Ok(Some(line))
}
