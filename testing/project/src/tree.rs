//! What a directory holds, to compare before and after.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What is at each path below a directory; the directory itself is not in it.
pub type Tree = BTreeMap<PathBuf, Node>;

/// A file that is larger is not read.
const LARGE: u64 = 8 << 20;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Node {
    /// A directory.
    Dir { mode: u32 },
    /// A symbolic link.
    Link { target: PathBuf },
    /// A file; without a time where times do not count.
    File { mode: u32, bytes: Vec<u8>, modified: Option<SystemTime> },
    /// A file that is too large to be read.
    Large { mode: u32, size: u64 },
    /// A pipe or a socket.
    Special { mode: u32 },
}

impl Node {
    /// The text of a file.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::File { bytes, .. } => std::str::from_utf8(bytes).ok(),
            Self::Dir { .. } | Self::Link { .. } | Self::Large { .. } | Self::Special { .. } => {
                None
            }
        }
    }
}

/// Everything below a directory.
pub fn tree(dir: &Path) -> Tree {
    let mut found = Tree::new();
    walk(dir, dir, &mut found);
    found
}

/// Everything below a directory but times and locks, which change by themselves.
pub fn contents(dir: &Path) -> Tree {
    let mut found = without_times(tree(dir));
    found.retain(|path, _| !path.to_string_lossy().contains("agentd/.locks"));
    found
}

/// The same without the times of the files.
pub fn without_times(mut tree: Tree) -> Tree {
    for node in tree.values_mut() {
        if let Node::File { modified, .. } = node {
            *modified = None;
        }
    }
    tree
}

fn walk(root: &Path, dir: &Path, found: &mut Tree) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let mode = metadata.permissions().mode();
        let node = if metadata.is_dir() {
            walk(root, &path, found);
            Node::Dir { mode }
        } else if metadata.is_symlink() {
            Node::Link { target: fs::read_link(&path).unwrap() }
        } else if !metadata.is_file() {
            Node::Special { mode }
        } else if metadata.len() > LARGE {
            Node::Large { mode, size: metadata.len() }
        } else {
            let bytes = fs::read(&path).unwrap();
            Node::File { mode, bytes, modified: metadata.modified().ok() }
        };
        found.insert(path.strip_prefix(root).unwrap().to_owned(), node);
    }
}
