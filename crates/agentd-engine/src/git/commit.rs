//! Committing what an agent has done, with the user's hooks and in the user's name.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ArchiveName};
use agentd_core::rel_path::RelPath;

use super::Git;
use super::error::GitError;
use super::status::{Uncommitted, UncommittedKind};
use crate::store::Bytes;

/// What is committed.
#[derive(Debug, Clone, Copy)]
pub enum CommitScope<'a> {
    /// Everything in the project, except what belongs to agentd's changes.
    Everything,
    /// The same, and if there is any of it, the documents of this change: they belong to its branch.
    WithDocuments {
        /// The change.
        change: &'a ChangeId,
        /// Whether the records of its calls are committed, too.
        runs: bool,
    },
    /// The documents of this change.
    Documents {
        /// The change.
        change: &'a ChangeId,
        /// Whether the records of its calls are committed, too.
        runs: bool,
    },
    /// What archiving this change has done.
    Archived {
        /// The change.
        change: &'a ArchiveName,
        /// Whether the records of its calls are committed, too.
        runs: bool,
        /// The main specs that were edited.
        specs: &'a [SpecId],
    },
    /// These files or directories of the project, as far as they are changed.
    Paths(&'a [RelPath]),
}

/// The pathspecs for the directory of a change, without what is of one machine or of one call.
fn documents(dir: &RelPath, runs: bool) -> Vec<String> {
    let local = layout::LOCAL_FILES.iter().filter(|name| !(runs && **name == "runs"));
    let mut paths = vec![format!(":(literal){dir}")];
    paths.extend(local.map(|name| format!(":(exclude,literal){dir}/{name}")));
    paths
}

impl Git {
    /// The files of the project that are not committed, except what belongs to agentd's changes; by
    /// their paths from the top of the checkout.
    pub(crate) fn uncommitted(&self) -> Result<BTreeSet<Bytes>, GitError> {
        let files = self.status(&["-uall"], &self.everything())?;
        Ok(files.iter().map(Uncommitted::bytes).collect())
    }

    /// Commits, and returns the commit; none if there is nothing to commit. What the user has
    /// staged besides stays staged; a commit that is refused leaves the index unchanged.
    pub fn commit(&self, what: CommitScope<'_>, message: &str) -> Result<Option<String>, GitError> {
        self.commit_without(what, &BTreeSet::new(), message)
    }

    /// The same without files that are to be `left` out, named by their paths from the top of the
    /// checkout.
    pub(crate) fn commit_without(
        &self,
        what: CommitScope<'_>,
        left: &BTreeSet<Bytes>,
        message: &str,
    ) -> Result<Option<String>, GitError> {
        let mut files = match what {
            CommitScope::Everything => self.status(&["-uall"], &self.everything())?,
            CommitScope::WithDocuments { change, runs } => {
                let mut files = self.status(&["-uall"], &self.everything())?;
                if !files.is_empty() {
                    let dir = layout::change_dir(change);
                    files.extend(self.status(&["-uall"], &documents(&dir, runs))?);
                }
                files
            }
            CommitScope::Documents { change, runs } => {
                self.status(&["-uall"], &documents(&layout::change_dir(change), runs))?
            }
            CommitScope::Archived { change, runs, specs } => {
                let mut paths = documents(&layout::archived_change(change), runs);
                let before = layout::change_dir(&change.change);
                let others = specs.iter().map(layout::main_spec);
                let others = others.chain([before, layout::changelog()]);
                paths.extend(others.map(|path| format!(":(literal){path}")));
                self.status(&["-uall"], &paths)?
            }
            CommitScope::Paths([]) => Vec::new(),
            CommitScope::Paths(paths) => {
                let literal = |path: &RelPath| format!(":(literal){path}");
                let paths: Vec<String> = paths.iter().map(literal).collect();
                self.status(&["-uall"], &paths)?
            }
        };
        files.retain(|file| !left.contains(&file.bytes()));
        let of = |kind| files.iter().filter(move |file: &&Uncommitted| file.kind == kind);
        let conflicts: Vec<String> = of(UncommittedKind::Conflict)
            .map(|file| file.path.to_string_lossy().into_owned())
            .collect();
        if !conflicts.is_empty() {
            return Err(GitError::Conflicts { files: conflicts });
        }
        // A directory is a repository of its own, which is not ours to add.
        let new: Vec<&OsString> = of(UncommittedKind::Untracked)
            .map(|file| &file.path)
            .filter(|path| !path.as_bytes().ends_with(b"/"))
            .collect();
        let all: Vec<&OsString> = of(UncommittedKind::Changed)
            .map(|file| &file.path)
            .chain(new.iter().copied())
            .collect();
        if all.is_empty() {
            return Ok(None);
        }
        self.knows_who_commits()?;
        if !new.is_empty() {
            self.on_paths("add", &["--intent-to-add", "--sparse"], &new).run()?;
        }
        let mut args = vec!["--quiet", "--only", "-m", message];
        // In the sandbox, where hooks are run, keys cannot be reached.
        let sign = self.tool.caged.is_some() && self.wants_signatures()?;
        if sign {
            args.push("--no-gpg-sign");
        }
        let output = self.on_paths("commit", &args, &all).long().in_own_words().ask();
        match output {
            Ok(output) if output.code == 0 && sign => self.sign_head().map(Some),
            Ok(output) if output.code == 0 => self.head_commit(),
            Ok(output) => {
                self.forget(&new)?;
                Err(GitError::CommitRefused { output: output.combined() })
            }
            Err(error) => {
                let _ = self.forget(&new);
                Err(error)
            }
        }
    }

    /// A command on files, whose paths are passed on standard input: there may be many, with any
    /// characters in them.
    fn on_paths(
        &self,
        subcommand: &'static str,
        args: &[&str],
        paths: &[&OsString],
    ) -> super::tool::Call<'_> {
        let mut input = Vec::new();
        for path in paths {
            input.extend_from_slice(path.as_bytes());
            input.push(0);
        }
        self.tool
            .call(&self.top, subcommand)
            .writing()
            .literal_paths()
            .args(args)
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"])
            .input(input)
    }

    fn forget(&self, new: &[&OsString]) -> Result<(), GitError> {
        if new.is_empty() {
            return Ok(());
        }
        // Also after Ctrl-C, which ended the commit and must not end this.
        let mut git = self.clone();
        git.tool.cancel = None;
        git.on_paths("rm", &["--cached", "--quiet", "--force", "--sparse"], new).run().map(drop)
    }

    /// Whether the user's settings ask for signed commits.
    fn wants_signatures(&self) -> Result<bool, GitError> {
        let output = self.call("config").args(["--type=bool", "--get", "commit.gpgsign"]).ask()?;
        Ok(output.text().trim() == "true")
    }

    /// Replaces the latest commit by the same one with a signature. No hook is run, and no file
    /// of the working tree is read.
    fn sign_head(&self) -> Result<String, GitError> {
        let head = self.call("rev-parse").args(["--verify", "HEAD^{commit}"]).run()?;
        let head = head.text().trim().to_owned();
        let format = "--format=%T%n%P%n%an%n%ae%n%aI%n%cn%n%ce%n%cI";
        let output = self.call("log").args(["-1", "--no-show-signature", format, &*head]).run()?;
        let text = output.text();
        let lines: Vec<&str> = text.lines().collect();
        let [tree, parents, author, author_mail, author_date, name, mail, date] = lines[..] else {
            let what = "git log".to_owned();
            return Err(GitError::Failed { what, code: 0, output: text });
        };
        let message = self.call("log").args(["-1", "--format=%B", &*head]).run()?;
        let mut call = self.call("commit-tree").args(["-S", tree]);
        for parent in parents.split_whitespace() {
            call = call.args(["-p", parent]);
        }
        let signed = call
            .env("GIT_AUTHOR_NAME", author)
            .env("GIT_AUTHOR_EMAIL", author_mail)
            .env("GIT_AUTHOR_DATE", author_date)
            .env("GIT_COMMITTER_NAME", name)
            .env("GIT_COMMITTER_EMAIL", mail)
            .env("GIT_COMMITTER_DATE", date)
            .input(message.text().trim_end().as_bytes().to_vec())
            .long()
            .in_own_words()
            .ask()?;
        if signed.code != 0 {
            // The work is committed; only the signature is missing.
            return Err(GitError::CommitRefused { output: signed.combined() });
        }
        let signed = signed.text().trim().to_owned();
        self.call("update-ref").args(["-m", "commit: signed", "HEAD", &*signed, &*head]).run()?;
        Ok(signed)
    }

    fn knows_who_commits(&self) -> Result<(), GitError> {
        for ident in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            let output = self.call("var").args([ident]).ask()?;
            if output.code != 0 {
                return Err(GitError::NoIdentity { output: output.combined() });
            }
        }
        Ok(())
    }
}
