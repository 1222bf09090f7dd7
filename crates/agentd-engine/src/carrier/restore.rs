//! Continuing a change from a snapshot that another machine has pushed.
//!
//! What is taken over is what a clone of the branch would bring, and what was not committed there.
//! Everything in it is text from outside: settings need consent as in any clone, and verdicts count as
//! far as the journal agrees with itself, or was signed by someone on a list.

use std::path::Path;

use agentd_core::ids::ChangeId;
use agentd_core::journal::{self, Record};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::rel_path::RelPath;

use super::CarrierError;
use super::remote::Remote;
use crate::agents::receipts;
use crate::change::documents::{DocumentError, read_state};
use crate::change::signing::AllowedSigners;
use crate::change::{journal as record, uncommitted};
use crate::git::{Git, GitError, GitTool, branch_of, is_hash};
use crate::insight::signatures::Signatures;
use crate::store::{Holder, Project, ProjectDir, StoreError};

/// What is done about files and commits that are only here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnlyHere {
    /// Nothing is overwritten: it is somebody's checkout.
    Keep,
    /// They are discarded: the clone is there for changes that are carried, and what is only here was
    /// never accepted by the remote.
    Discard,
}

/// A snapshot to continue from.
pub(super) struct Restore<'r> {
    pub(super) project: &'r Project,
    pub(super) git: &'r Git,
    pub(super) tool: &'r GitTool,
    pub(super) remote: &'r Remote,
    pub(super) change: &'r ChangeId,
    /// The snapshot, which was fetched.
    pub(super) commit: &'r str,
    /// Whether it is a commit of the branch rather than a snapshot.
    pub(super) is_branch: bool,
    pub(super) only_here: OnlyHere,
    /// Whether the checkout is what was pushed last.
    pub(super) is_as_pushed: bool,
    /// Whether a push was refused since then.
    pub(super) was_lost: bool,
    pub(super) signers: Option<&'r AllowedSigners>,
    pub(super) holder: &'r Holder,
}

impl Restore<'_> {
    /// Makes the checkout what the snapshot says.
    pub(super) fn run(&self) -> Result<(), CarrierError> {
        let head = self.head()?;
        let _run = self.project.try_run_lock(self.change, self.holder)?;
        if self.only_here == OnlyHere::Keep && !self.is_as_pushed {
            self.nothing_is_in_the_way(&head)?;
        }
        self.bring(&head)?;
        let check_out = || self.check_out(&head);
        self.project.alone_in(self.git.top(), self.holder, check_out)??;
        let _write = self.project.write_lock(self.change, self.holder)?;
        self.overlay(&head)?;
        self.take_record()?;
        let files = self.git.uncommitted()?;
        Ok(uncommitted::note_as_agents(self.project, self.change, files)?)
    }

    /// The commit on the branch that the snapshot is on top of.
    fn head(&self) -> Result<String, CarrierError> {
        if self.is_branch {
            return Ok(self.commit.to_owned());
        }
        let parents = format!("{}^@", self.commit);
        let all = self.remote.call("rev-parse").args([&parents]).run()?.text();
        let last = all.lines().next_back().map(str::to_owned).filter(|commit| is_hash(commit));
        last.ok_or_else(|| GitError::Damaged { object: self.commit.to_owned() }.into())
    }

    fn in_the_way(&self, what: &str) -> CarrierError {
        CarrierError::InTheWay { change: self.change.clone(), what: what.to_owned() }
    }

    fn nothing_is_in_the_way(&self, head: &str) -> Result<(), CarrierError> {
        if self.git.dirty()?.count() > 0 {
            return Err(self.in_the_way("there are uncommitted files"));
        }
        if let Some(here) = self.git.branch_commit(&branch_of(self.change))? {
            let ancestor = ["--is-ancestor", &here, head];
            if self.remote.call("merge-base").args(ancestor).ask()?.code != 0 {
                return Err(self.in_the_way("its branch has commits that the remote does not have"));
            }
        }
        let Some(change) = self.project.change_if_open(self.change)? else { return Ok(()) };
        if self.was_lost {
            // What was recorded for a call that was never accepted, or never made.
            return Ok(());
        }
        let here = change.read_if_exists(&ChangeFile::Journal)?.unwrap_or_default();
        let path = self.in_repository(&ChangeFile::Journal.path_in_project(self.change));
        let name = format!("{}:{path}", self.commit);
        let there = self.remote.call("cat-file").args(["blob", &name]).ask()?.text();
        if there.starts_with(&here) {
            return Ok(());
        }
        Err(self.in_the_way("more was recorded for it here than the remote has"))
    }

    /// A path of the project, from the top of the checkout, as text.
    fn in_repository(&self, path: &RelPath) -> String {
        let prefix = self.git.subdirectory().unwrap_or(Path::new(""));
        prefix.join(path.as_path()).to_string_lossy().into_owned()
    }

    /// Brings the commits of the branch into the repository.
    fn bring(&self, head: &str) -> Result<(), CarrierError> {
        let name = "refs/agentd/head";
        self.remote.call("update-ref").args([name, head]).run()?;
        let fetch = self.tool.call(self.git.root(), "fetch").long();
        let fetch = fetch.args(["--quiet", "--no-tags", "--no-write-fetch-head", "--"]);
        fetch.args([&self.remote.dir]).args([name]).run()?;
        Ok(())
    }

    /// Checks out the branch, without anything that is not committed.
    fn check_out(&self, head: &str) -> Result<(), GitError> {
        let branch = branch_of(self.change);
        let call = |subcommand| self.tool.call(self.git.top(), subcommand).long();
        call("checkout").args(["--quiet", "--force", "-B", &branch, head, "--"]).run()?;
        if self.only_here == OnlyHere::Discard || self.is_as_pushed {
            // Locks are held by open files, and must not be replaced.
            let locks = format!("--exclude={}", layout::locks_dir());
            call("clean").args(["--quiet", "--force", "-d", &locks]).run()?;
        }
        Ok(())
    }

    /// Puts what was not committed on top, and the documents.
    fn overlay(&self, head: &str) -> Result<(), CarrierError> {
        let dir = layout::change_dir(self.change);
        self.project.dir().remove_tree(&dir)?;
        let list = |args: &[&str]| -> Result<Vec<Vec<u8>>, GitError> {
            let call = self.remote.call(if args[0] == "-r" { "diff-tree" } else { "ls-tree" });
            let listed = call.args(args).run()?;
            Ok(listed
                .stdout
                .split(|b| *b == 0)
                .filter(|n| !n.is_empty())
                .map(<[u8]>::to_vec)
                .collect())
        };
        let differing = ["-r", "-z", "--no-renames", "--name-only", "--diff-filter=ACMT"];
        let mut paths = list(&[&differing[..], &[head, self.commit]].concat())?;
        let documents = self.in_repository(&dir);
        paths.extend(list(&[
            "-z",
            "-r",
            "--name-only",
            "--full-tree",
            self.commit,
            "--",
            &documents,
        ])?);
        let gone = ["-r", "-z", "--no-renames", "--name-only", "--diff-filter=D"];
        let gone = list(&[&gone[..], &[head, self.commit]].concat())?;
        let index = self.remote.dir.join("index");
        let read = self.remote.call("read-tree").args(["--empty"]);
        read.env("GIT_INDEX_FILE", &index).run()?;
        let read = self.remote.call("read-tree").args([self.commit]);
        read.env("GIT_INDEX_FILE", &index).run()?;
        let check_out = self.remote.call("checkout-index").args(["--force", "-z", "--stdin"]);
        let check_out =
            check_out.env("GIT_INDEX_FILE", &index).env("GIT_WORK_TREE", self.git.top());
        check_out.input(paths.join(&0)).run()?;
        let top = ProjectDir::open(self.git.top())?;
        for path in gone {
            let path = RelPath::new(&String::from_utf8_lossy(&path)).map_err(StoreError::from)?;
            match top.remove_file(&path) {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes the journal for the record of this machine.
    fn take_record(&self) -> Result<(), CarrierError> {
        receipts::withdraw(self.project, self.change)?;
        let Some(change) = self.project.change_if_open(self.change)? else { return Ok(()) };
        let Some(public) = change.read_if_exists(&ChangeFile::Journal)? else {
            return match self.signers {
                Some(_) => Err(self.not_signed("it has no journal".to_owned())),
                None => Ok(()),
            };
        };
        let (text, state) = read_state(&change)?;
        let failed = |source| DocumentError::Journal { change: self.change.clone(), source };
        let compared = journal::compare(&state, &text, Some(&public), None).map_err(failed)?;
        if let Some(signers) = self.signers {
            let known = compared.map(|compared| compared.journal).unwrap_or_default();
            let signatures = Signatures::of(&known, &Record::of(&known), Some(signers))
                .map_err(DocumentError::from)?;
            if let Some(why) = signatures.missing() {
                return Err(self.not_signed(why));
            }
        }
        Ok(record::take_over(self.project, self.change, &public)?)
    }

    fn not_signed(&self, why: String) -> CarrierError {
        CarrierError::NotSigned { change: self.change.clone(), why }
    }
}
