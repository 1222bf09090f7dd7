//! A change as a commit: what is committed on its branch, what is not, and its documents.
//!
//! The commit is made by git's plumbing in a git directory of our own. Neither the index nor HEAD of
//! the checkout is touched, and no filter or hook runs. Its parents are the snapshot before it and
//! the commit on the branch, so that commits of layers travel with it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use agentd_core::carried::{Carried, SlimRun};
use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, TEMP_PREFIX};
use agentd_core::rel_path::RelPath;

use super::CarrierError;
use super::remote::Remote;
use crate::git::{Git, GitError, is_hash, quoted};
use crate::store::{EntryKind, Project, ProjectDir, StoreError};

/// The most that is carried of files that are not committed.
const MOST: u64 = 100 << 20;

/// What is in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The documents as they are, and everything else as in the snapshot before.
    Documents,
    /// Everything.
    All,
}

/// How the records of calls are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CarriedRuns {
    /// Only what is needed to continue: prompts and outputs stay where the call was made.
    Slim,
    /// All of them, because the project has them in git anyway.
    Whole,
}

/// A file of a snapshot.
enum Content {
    File { executable: bool, bytes: Vec<u8> },
    Link(Vec<u8>),
    Gone,
}

/// What a snapshot is made of.
pub(super) struct Snapshot<'s> {
    pub(super) project: &'s Project,
    pub(super) git: &'s Git,
    pub(super) change: &'s ChangeId,
    /// The snapshot before.
    pub(super) before: Option<&'s str>,
    pub(super) scope: Scope,
    pub(super) runs: CarriedRuns,
    pub(super) carried: &'s Carried,
}

impl Snapshot<'_> {
    /// Makes the commit. The caller holds the write lock of the change, or nobody else can write to it.
    pub(super) fn commit(&self, remote: &Remote) -> Result<String, CarrierError> {
        let change = || self.change.clone();
        let Some(head) = self.git.head_commit()? else {
            return Err(CarrierError::NoCommit { change: change() });
        };
        let mut files = self.documents()?;
        if self.scope == Scope::All || self.before.is_none() {
            files.extend(self.uncommitted()?);
        }
        let size: u64 = files.iter().map(|(_, content)| content.size()).sum();
        if size > MOST {
            let (megabytes, most) = (size >> 20, MOST >> 20);
            return Err(CarrierError::TooLarge { change: change(), megabytes, most });
        }
        let tree = match (self.scope, self.before) {
            (Scope::Documents, Some(_)) => None,
            _ => Some(self.git.tree_of(&head)?),
        };
        let stream = self.stream(&head, tree.as_deref(), &files);
        let import = remote.call("fast-import").args(["--quiet", "--force", "--done"]);
        let output = import.env("GIT_CONFIG_GLOBAL", "/dev/null").input(stream).run()?;
        let commit = output.text().trim().to_owned();
        if is_hash(&commit) {
            return Ok(commit);
        }
        let what = "git fast-import".to_owned();
        Err(GitError::Failed { what, code: output.code, output: output.combined() }.into())
    }

    fn stream(&self, head: &str, tree: Option<&str>, files: &[(Vec<u8>, Content)]) -> Vec<u8> {
        let mut stream = Vec::new();
        let mut line = |text: &str| {
            stream.extend_from_slice(text.as_bytes());
            stream.push(b'\n');
        };
        line("feature done");
        line("commit refs/agentd/new");
        line("mark :1");
        let (worker, at) = (&self.carried.worker, self.carried.at.moment().as_second());
        line(&format!("committer {worker} <agentd@localhost> {at} +0000"));
        let message = self.carried.message(self.change);
        line(&format!("data {}\n{message}", message.len()));
        match self.before {
            Some(before) => line(&format!("from {before}\nmerge {head}")),
            None => line(&format!("from {head}")),
        }
        if let Some(tree) = tree {
            line(&format!("M 040000 {tree} \"\""));
        }
        let dir = self.in_repository(&layout::change_dir(self.change));
        delete(&mut stream, &dir);
        for (path, content) in files {
            put(&mut stream, path, content);
        }
        stream.extend_from_slice(b"get-mark :1\ndone\n");
        stream
    }

    /// A path of the project, from the top of the checkout.
    fn in_repository(&self, path: &RelPath) -> Vec<u8> {
        let prefix = self.git.subdirectory().unwrap_or(Path::new(""));
        prefix.join(path.as_path()).into_os_string().as_bytes().to_vec()
    }

    /// The files in the directory of the change.
    fn documents(&self) -> Result<Vec<(Vec<u8>, Content)>, CarrierError> {
        let mut files = Vec::new();
        if let Some(change) = self.project.change_if_open(self.change)? {
            let below = layout::change_dir(self.change);
            self.add_documents(change.dir(), &RelPath::root(), &below, &mut files)?;
        }
        Ok(files)
    }

    fn add_documents(
        &self,
        dir: &ProjectDir,
        at: &RelPath,
        below: &RelPath,
        files: &mut Vec<(Vec<u8>, Content)>,
    ) -> Result<(), CarrierError> {
        for entry in dir.list_dir(at)? {
            let Ok(name) = RelPath::new(&entry.name) else { continue };
            let path = at.join(&name);
            let is_runs = *at == RelPath::root() && entry.name == "runs";
            let is_local = *at == RelPath::root() && layout::LOCAL_FILES.contains(&&*entry.name);
            if entry.name.starts_with(TEMP_PREFIX) || (is_local && !is_runs) {
                continue;
            }
            match entry.kind {
                EntryKind::Dir => self.add_documents(dir, &path, below, files)?,
                EntryKind::File => {
                    let bytes = if at.as_str() == "runs" && self.runs == CarriedRuns::Slim {
                        slim(dir, &path)?
                    } else {
                        dir.read_capped(&path, MOST)?
                    };
                    let content = Content::File { executable: false, bytes };
                    files.push((self.in_repository(&below.join(&path)), content));
                }
                EntryKind::Symlink | EntryKind::Other => {}
            }
        }
        Ok(())
    }

    /// The files that are not committed, besides the documents of changes.
    fn uncommitted(&self) -> Result<Vec<(Vec<u8>, Content)>, CarrierError> {
        let mut files = Vec::new();
        let mut left = MOST;
        for file in self.git.uncommitted()? {
            let path = file.path();
            let content = content_of(&self.git.top().join(&path), &mut left);
            let content =
                content.map_err(|source| GitError::Path { path: path.clone(), source })?;
            files.extend(content.map(|content| (path.as_os_str().as_bytes().to_vec(), content)));
        }
        Ok(files)
    }
}

impl Content {
    fn size(&self) -> u64 {
        match self {
            Self::File { bytes, .. } | Self::Link(bytes) => bytes.len() as u64,
            Self::Gone => 0,
        }
    }
}

/// What is at a path; nothing for what is not carried: a repository of its own, a pipe.
fn content_of(place: &PathBuf, left: &mut u64) -> std::io::Result<Option<Content>> {
    let metadata = match fs::symlink_metadata(place) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some(Content::Gone));
        }
        metadata => metadata?,
    };
    if metadata.is_symlink() {
        let target = fs::read_link(place)?;
        return Ok(Some(Content::Link(target.as_os_str().as_bytes().to_vec())));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    let executable = metadata.permissions().mode() & 0o100 != 0;
    let mut bytes = Vec::new();
    // One more than is carried, so that too much is noticed and no memory is filled.
    let mut file = std::io::Read::take(agentd_walk::open_regular(place)?, *left + 1);
    std::io::Read::read_to_end(&mut file, &mut bytes)?;
    *left = left.saturating_sub(bytes.len() as u64);
    Ok(Some(Content::File { executable, bytes }))
}

/// The record of a call without what stays where it was made. A line that is cut short is of a call
/// that is running, or was killed.
fn slim(dir: &ProjectDir, path: &RelPath) -> Result<Vec<u8>, CarrierError> {
    let (file, _) = dir.open_file(path)?;
    let mut slim = SlimRun::default();
    let mut kept = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(|error| StoreError::from_io("read", path.clone(), error))?;
        let line = std::str::from_utf8(&line).ok().and_then(|line| slim.line(line));
        if let Some(line) = line {
            kept.extend_from_slice(line.as_bytes());
            kept.push(b'\n');
        }
    }
    Ok(kept)
}

fn delete(stream: &mut Vec<u8>, path: &[u8]) {
    stream.extend_from_slice(b"D ");
    stream.extend_from_slice(&quoted(path));
    stream.push(b'\n');
}

fn put(stream: &mut Vec<u8>, path: &[u8], content: &Content) {
    let (mode, bytes) = match content {
        Content::File { executable: true, bytes } => ("100755", bytes),
        Content::File { executable: false, bytes } => ("100644", bytes),
        Content::Link(target) => ("120000", target),
        Content::Gone => return delete(stream, path),
    };
    stream.extend_from_slice(format!("M {mode} inline ").as_bytes());
    stream.extend_from_slice(&quoted(path));
    stream.extend_from_slice(format!("\ndata {}\n", bytes.len()).as_bytes());
    stream.extend_from_slice(bytes);
    stream.push(b'\n');
}
