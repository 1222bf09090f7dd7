//! Where the result of a finished change goes: its branch, and the base branch where the team wants that.
//!
//! Whether it does is said by the settings on the default branch of the remote repository. What the
//! branch of the change says about it counts for nothing: an agent has written it.
//!
//! The merge is made in our own git directory, in which no filter, hook or driver of the repository has a
//! say. Specs and their changelog are merged by agentd, everything else by git. The push compares and
//! swaps: of two changes that land at once one is first, and the other is merged again on top of it.

use std::path::Path;

use agentd_core::config::{Config, GitLand};
use agentd_core::layout;

use super::remote::{Pushed, Update};
use super::{Carrier, CarrierError, Held, branch_of, wip_ref};
use crate::git::{GitError, MERGE_DRIVER, is_hash};

/// How often somebody else may have been faster.
const TRIES: usize = 50;
/// The most that is read of settings.
const SETTINGS: usize = 1 << 20;
/// How many files in conflict are named.
const NAMED: usize = 3;

/// Where the result of a change is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landed {
    /// On this branch of the remote.
    On(String),
    /// On its own branch, since the base branch, which the team wants it on, takes no pushes from here.
    NotAllowed {
        /// Its branch.
        branch: String,
        /// The base branch.
        base: String,
        /// What the remote says.
        why: String,
    },
    /// Only in the snapshot: somebody has to merge it.
    Conflict {
        /// The base branch.
        base: String,
        /// The files that git cannot merge.
        files: Vec<String>,
    },
}

impl Landed {
    /// What a person has to do, if so.
    pub fn needs(&self) -> Option<String> {
        match self {
            Self::Conflict { base, files } => {
                let named = files.get(..NAMED).unwrap_or(files).join(", ");
                let more = match files.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                Some(format!(
                    "it is archived, and conflicts with `{base}` in {named}{more}: take it, merge \
                     `{base}` into it, and give it back"
                ))
            }
            Self::On(_) | Self::NotAllowed { .. } => None,
        }
    }
}

/// A branch of the remote that changes land on.
struct Base {
    name: String,
    commit: String,
}

impl Base {
    fn reference(&self) -> String {
        format!("refs/heads/{}", self.name)
    }
}

impl Carrier {
    /// Pushes the result of a change that is finished, and removes what was carried. Everything is
    /// committed on its branch. An archived one goes on to the base branch, where the team wants that.
    pub fn publish(&self, is_archived: bool) -> Result<Landed, CarrierError> {
        let inner = &self.0;
        let no_commit = || CarrierError::NoCommit { change: inner.change.clone() };
        let head = inner.git.head_commit()?.ok_or_else(no_commit)?;
        let wanted = if is_archived { self.base()? } else { None };
        let Some(mut base) = wanted else {
            self.publish_branch(&head)?;
            return Ok(Landed::On(branch_of(&inner.change)));
        };
        self.set_up_driver()?;
        for _ in 0..TRIES {
            let on_base = if self.is_ancestor(&head, &base.commit)? {
                None
            } else {
                match self.merged(&base, &head)? {
                    Ok(commit) => Some(commit),
                    Err(files) => return Ok(Landed::Conflict { base: base.name, files }),
                }
            };
            let mut updates = self.branch_updates(&head)?;
            let from = Some(base.commit.clone());
            updates.extend(on_base.map(|to| Update { name: base.reference(), from, to: Some(to) }));
            if updates.is_empty() {
                *self.held() = Held::default();
                return Ok(Landed::On(base.name));
            }
            match inner.remote.push_if_allowed(&updates, &base.reference())? {
                Ok(Pushed::Yes) => {
                    *self.held() = Held::default();
                    return Ok(Landed::On(base.name));
                }
                Ok(Pushed::Refused) => {
                    let Some(now) = self.base_at(&base.name)? else { break };
                    if now.commit == base.commit {
                        return Err(self.lost()?);
                    }
                    base = now;
                }
                Err(why) => {
                    self.publish_branch(&head)?;
                    let branch = branch_of(&inner.change);
                    return Ok(Landed::NotAllowed { branch, base: base.name, why });
                }
            }
        }
        let output = format!("`{}` moves faster than changes can be merged into it", base.name);
        Err(CarrierError::Unreachable { remote: inner.options.remote.clone(), output })
    }

    fn publish_branch(&self, head: &str) -> Result<(), CarrierError> {
        let updates = self.branch_updates(head)?;
        if !updates.is_empty() {
            self.pushed(&updates)?;
        }
        *self.held() = Held::default();
        Ok(())
    }

    /// What is pushed in any case: the branch, and the end of what was carried.
    fn branch_updates(&self, head: &str) -> Result<Vec<Update>, CarrierError> {
        let inner = &self.0;
        let (branch, wip) = (self.branch_ref(), wip_ref(&inner.change));
        let there = inner.remote.refs(&[&branch])?.remove(&branch);
        if let Some(there) = &there {
            inner.remote.fetch(&[&branch])?;
            if !self.is_ancestor(there, head)? {
                let what =
                    format!("`{}` has other commits on the remote", branch_of(&inner.change));
                return Err(CarrierError::InTheWay { change: inner.change.clone(), what });
            }
        }
        let mut updates = Vec::new();
        if there.as_deref() != Some(head) {
            updates.push(Update { name: branch, from: there, to: Some(head.to_owned()) });
        }
        let tip = self.held().tip.clone();
        updates.extend(tip.map(|tip| Update { name: wip, from: Some(tip), to: None }));
        Ok(updates)
    }

    fn is_ancestor(&self, commit: &str, of: &str) -> Result<bool, CarrierError> {
        let call = self.0.remote.call("merge-base").args(["--is-ancestor", commit, of]);
        Ok(call.ask()?.code == 0)
    }

    /// The branch to land on, if the team wants that.
    fn base(&self) -> Result<Option<Base>, CarrierError> {
        let Some(name) = self.0.remote.default_branch()? else { return Ok(None) };
        let Some(base) = self.base_at(&name)? else { return Ok(None) };
        let prefix = self.0.git.subdirectory().unwrap_or(Path::new(""));
        let file = prefix.join(layout::config().as_path());
        let file = format!("{}:{}", base.commit, file.display());
        let settings = self.0.remote.call("cat-file").args(["blob", &file]).at_most(SETTINGS);
        let settings = settings.ask()?;
        // Settings that cannot be read want nothing.
        let config = Config::parse(&settings.text()).ok().filter(|_| settings.code == 0);
        let Some(git) = config.map(|config| config.git) else { return Ok(None) };
        match git.base.filter(|base| base != "HEAD") {
            _ if git.land == GitLand::Branch => Ok(None),
            Some(other) if other != name => self.base_at(&other),
            Some(_) | None => Ok(Some(base)),
        }
    }

    /// A branch of the remote, brought here.
    fn base_at(&self, name: &str) -> Result<Option<Base>, CarrierError> {
        let reference = format!("refs/heads/{name}");
        if !self.0.remote.refs(&[&reference])?.contains_key(&reference) {
            return Ok(None);
        }
        self.0.remote.fetch(&[&reference])?;
        // It may have moved on since it was listed.
        let commit = self.0.remote.call("rev-parse").args(["--verify", &reference]).run()?;
        Ok(Some(Base { name: name.to_owned(), commit: commit.text().trim().to_owned() }))
    }

    /// Specs are merged by this program.
    fn set_up_driver(&self) -> Result<(), CarrierError> {
        let failed = |source| GitError::Start { what: "agentd".to_owned(), source };
        let program = std::env::current_exe().map_err(failed)?;
        // Git gives it to a shell, after it has replaced what begins with a percent sign.
        let program = program.display().to_string().replace('%', "%%").replace('\'', "'\\''");
        let driver = format!("'{program}' {MERGE_DRIVER} %O %A %B %P");
        self.0.remote.call("config").args(["merge.agentd.driver", &driver]).run()?;
        Ok(())
    }

    /// A commit that merges the branch into the base; the files in conflict if git cannot.
    fn merged(&self, base: &Base, head: &str) -> Result<Result<String, Vec<String>>, CarrierError> {
        let remote = &self.0.remote;
        let words = ["--write-tree", "--name-only", "--no-messages", "-z", &base.commit, head];
        let output = remote.call("merge-tree").patient().args(words).ask()?;
        let text = output.text();
        let mut parts = text.split('\0').filter(|part| !part.is_empty());
        let tree = parts.next().unwrap_or_default().to_owned();
        if output.code == 1 && is_hash(&tree) {
            return Ok(Err(parts.map(str::to_owned).collect()));
        }
        if output.code != 0 || !is_hash(&tree) {
            let (what, output) = ("git merge-tree".to_owned(), (output.code, output.combined()));
            return Err(GitError::Failed { what, code: output.0, output: output.1 }.into());
        }
        let who = remote.call("log").args(["-1", "--no-show-signature", "--format=%cn%x00%ce"]);
        let who = who.args([head, "--"]).run()?.text();
        let (name, email) = who.trim_end().split_once('\0').unwrap_or(("agentd", ""));
        let message = format!("Merge branch '{}'\n", branch_of(&self.0.change));
        let commit = remote.call("commit-tree").args(["-p", &*base.commit, "-p", head, &*tree]);
        let mut commit = commit.input(message.into_bytes());
        for side in ["AUTHOR", "COMMITTER"] {
            commit = commit
                .env(format!("GIT_{side}_NAME"), name)
                .env(format!("GIT_{side}_EMAIL"), email);
        }
        Ok(Ok(commit.run()?.text().trim().to_owned()))
    }
}
