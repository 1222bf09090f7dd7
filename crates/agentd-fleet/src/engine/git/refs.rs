//! The refs of a remote repository, by way of a bare directory of our own that no agent can write.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use agentd_core::error_kind::Kind;
use tokio::sync::OnceCell;

use crate::error::{FleetError, Result};
use crate::program::{self, GitOutput};

/// The tree without files.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A remote repository.
#[derive(Debug)]
pub(super) struct Refs {
    dir: PathBuf,
    url: String,
    ready: OnceCell<()>,
}

/// What became of a push.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// It is there, at this commit.
    To(String),
    /// Somebody else was faster.
    Refused,
}

impl Refs {
    pub(super) fn new(dir: PathBuf, url: String) -> Self {
        Self { dir, url, ready: OnceCell::new() }
    }

    async fn git(&self, args: &[&str], input: &[u8]) -> Result<GitOutput> {
        let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
        self.ready.get_or_try_init(|| self.set_up()).await?;
        program::git(&self.dir, &args, input).await
    }

    async fn set_up(&self) -> Result<()> {
        let failed = |error| FleetError::unusable(&self.dir, &error);
        fs::create_dir_all(&self.dir).map_err(failed)?;
        let words = ["init", "--quiet", "--bare", "--template="].map(OsStr::new);
        let made = program::git(&self.dir, &words, b"").await?;
        if made.ok { Ok(()) } else { Err(unreachable(&made.stderr)) }
    }

    /// Where refs are whose names match.
    pub(super) async fn list(&self, patterns: &[&str]) -> Result<BTreeMap<String, String>> {
        let words = [&["ls-remote", "--quiet", "--", &self.url], patterns].concat();
        let output = self.git(&words, b"").await?;
        if !output.ok {
            return Err(unreachable(&output.stderr));
        }
        let line = |line: &str| {
            let (commit, name) = line.split_once('\t')?;
            let is_hash = commit.len() >= 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
            is_hash.then(|| (name.to_owned(), commit.to_owned()))
        };
        Ok(output.stdout.lines().filter_map(line).collect())
    }

    /// The messages of the commits that these refs are at. A ref that has moved on is left out.
    pub(super) async fn messages(&self, refs: &[(&str, &str)]) -> Result<BTreeMap<String, String>> {
        let mut messages = BTreeMap::new();
        if refs.is_empty() {
            return Ok(messages);
        }
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--depth=1", "--"];
        let names: Vec<&str> = refs.iter().map(|(name, _)| *name).collect();
        let words = [&fetch[..], &[&self.url], &names].concat();
        // A ref may have gone since it was listed; the others are tried one by one then.
        if !self.git(&words, b"").await?.ok && refs.len() > 1 {
            for name in names {
                self.git(&[&fetch[..], &[&self.url, name]].concat(), b"").await?;
            }
        }
        for (_, commit) in refs {
            let show = ["log", "-1", "--no-show-signature", "--format=%B", commit, "--"];
            let output = self.git(&show, b"").await?;
            if output.ok {
                messages.insert((*commit).to_owned(), output.stdout);
            }
        }
        Ok(messages)
    }

    /// Moves a ref to a new commit with a message and without files, if it is where it was.
    pub(super) async fn put(&self, name: &str, from: Option<&str>, message: &str) -> Result<Moved> {
        let tree = self.git(&["hash-object", "-t", "tree", "-w", "--stdin"], b"").await?;
        let tree = if tree.ok { tree.stdout.trim().to_owned() } else { EMPTY_TREE.to_owned() };
        // Two commits of the same second are two commits.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let message = format!("{message}\nAgentd-Nonce: {now}-{}\n", std::process::id());
        let words = [
            "-c",
            "user.name=agentd-fleet",
            "-c",
            "user.email=agentd@localhost",
            "-c",
            "commit.gpgsign=false",
            "commit-tree",
            &tree,
        ];
        let commit = self.git(&words, message.as_bytes()).await?;
        if !commit.ok {
            return Err(unreachable(&commit.stderr));
        }
        self.push(name, from, Some(commit.stdout.trim())).await
    }

    /// Removes a ref, if it is where it was.
    pub(super) async fn remove(&self, name: &str, from: &str) -> Result<Moved> {
        self.push(name, Some(from), None).await
    }

    async fn push(&self, name: &str, from: Option<&str>, to: Option<&str>) -> Result<Moved> {
        let lease = format!("--force-with-lease={name}:{}", from.unwrap_or_default());
        let spec = format!("{}:{name}", to.unwrap_or_default());
        let words =
            ["push", "--quiet", "--no-verify", "--no-signed", &lease, "--", &self.url, &spec];
        let mut output = None;
        // A ref that somebody has locked for a moment is as it was.
        for _ in 0..5 {
            let pushed = self.git(&words, b"").await?;
            if pushed.ok {
                return Ok(Moved::To(to.unwrap_or_default().to_owned()));
            }
            let there = self.list(&[name]).await?.remove(name);
            if there.as_deref() == to {
                return Ok(Moved::To(to.unwrap_or_default().to_owned()));
            }
            if there.as_deref() != from {
                return Ok(Moved::Refused);
            }
            output = Some(pushed.stderr);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        Err(unreachable(&output.unwrap_or_default()))
    }
}

fn unreachable(output: &str) -> FleetError {
    FleetError::new(Kind::RemoteUnreachable, "the remote repository does not answer, or refuses")
        .cause(output)
        .hint("check that `git push` works, and that the server accepts refs below refs/agentd/")
}
