//! Why something about git failed: for code as a kind, for people as a card with the cause
//! and what to do.

use crate::process::ProcessError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why something about git failed.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git is not installed")]
    NotInstalled,
    /// There is a git that cannot do what agentd needs.
    #[error("this git is too old: {version}")]
    TooOld {
        /// What it says that it is.
        version: String,
    },
    /// The project is in no repository.
    #[error("{} is in no git repository", root.display())]
    NoRepository {
        /// The project.
        root: PathBuf,
    },
    /// There is a repository, but no files are checked out here.
    #[error("{} is in a bare git repository, or inside of `.git`", root.display())]
    NoWorkTree {
        /// The project.
        root: PathBuf,
    },
    /// There is no commit from which a branch could start.
    #[error("the repository has no commit yet, from which `{branch}` could start")]
    Unborn {
        /// The branch.
        branch: String,
    },
    /// A work tree of a submodule would lie inside of the repository around it.
    #[error("the project is in a submodule, which gets no work trees of its own")]
    Submodule {
        /// The repository around it.
        around: PathBuf,
    },
    /// A branch cannot be made, because another is in the way of its name.
    #[error("`{branch}` cannot be made while there is a branch `{blocking}`")]
    NameTaken {
        /// The branch.
        branch: String,
        /// The one in the way.
        blocking: String,
    },
    /// The branch is checked out in another work tree.
    #[error("`{branch}` is checked out in {}", path.display())]
    CheckedOutElsewhere {
        /// The branch.
        branch: String,
        /// Where.
        path: PathBuf,
        /// Whether that directory is gone.
        gone: bool,
    },
    /// The branch is checked out in the checkout that was to be left alone.
    #[error("`{branch}` is checked out here, so it cannot have a work tree of its own")]
    CheckedOutHere {
        /// The branch.
        branch: String,
    },
    /// The work tree of the change is not there.
    #[error("there is no work tree on `{branch}`")]
    NoWorkTreeOf {
        /// The branch.
        branch: String,
    },
    /// Git refused to switch.
    #[error("git cannot switch to `{branch}`{}", if lacks_room(output) { "" } else { " without losing something" })]
    SwitchRefused {
        /// The branch.
        branch: String,
        /// What git said.
        output: String,
    },
    /// Something lies where the work tree would be.
    #[error("{} is there already, and is no work tree of this repository", path.display())]
    PathTaken {
        /// Where.
        path: PathBuf,
    },
    /// The work tree of the change has another branch checked out.
    #[error("the work tree {} is not on `{branch}`", path.display())]
    OtherBranchThere {
        /// Where.
        path: PathBuf,
        /// The branch that it should be on.
        branch: String,
        /// The one that it is on; none when it is on none.
        found: Option<String>,
    },
    /// The directory of the project in a work tree leads out of it.
    #[error("{} leads out of its work tree", path.display())]
    LeadsOut {
        /// The directory.
        path: PathBuf,
    },
    /// What should be a commit is none.
    #[error("`{revision}` is not a commit of this repository")]
    NoSuchCommit {
        /// What was given.
        revision: String,
    },
    /// An object is not what its name says, or is missing.
    #[error("the object {object} of the repository is damaged or missing")]
    Damaged {
        /// Its hash.
        object: String,
    },
    /// Nothing can be committed while files are in conflict.
    #[error("files are in conflict: {}", files.join(", "))]
    Conflicts {
        /// The files.
        files: Vec<String>,
    },
    /// Git does not know who commits.
    #[error("git does not know who commits")]
    NoIdentity {
        /// What git said.
        output: String,
    },
    /// A hook or git itself refused the commit.
    #[error("the commit was refused")]
    CommitRefused {
        /// What git and its hooks said.
        output: String,
    },
    /// Git took too long.
    #[error("`{what}` did not end within {} s", limit.as_secs())]
    TimedOut {
        /// The command.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// Somebody pressed Ctrl-C.
    #[error("`{what}` was interrupted")]
    Interrupted {
        /// The command.
        what: String,
    },
    /// There is no sandbox to run it in.
    #[error("`{what}` cannot be run in the sandbox")]
    Sandbox {
        /// The command.
        what: String,
        /// Why.
        #[source]
        source: ProcessError,
    },
    /// Git failed in a way that nobody has foreseen.
    #[error("`{what}` failed with exit code {code}")]
    Failed {
        /// The command.
        what: String,
        /// The exit code.
        code: i32,
        /// What git said.
        output: String,
    },
    /// The system refused something.
    #[error("`{what}` cannot be run")]
    Start {
        /// The command.
        what: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file or directory could not be worked with.
    #[error("{} cannot be used", path.display())]
    Path {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl GitError {
    /// What kind of error it is; stable, in `snake_case`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotInstalled => "git_not_installed",
            Self::TooOld { .. } => "git_too_old",
            Self::NoRepository { .. } => "git_no_repository",
            Self::NoWorkTree { .. } => "git_no_work_tree",
            Self::Unborn { .. } => "git_no_commit",
            Self::Submodule { .. } => "git_submodule",
            Self::NameTaken { .. } => "git_branch_name_taken",
            Self::CheckedOutElsewhere { .. } => "git_checked_out_elsewhere",
            Self::CheckedOutHere { .. } => "git_checked_out_here",
            Self::NoWorkTreeOf { .. } => "git_no_work_tree_of_change",
            Self::SwitchRefused { .. } => "git_switch_refused",
            Self::PathTaken { .. } => "git_path_taken",
            Self::OtherBranchThere { .. } => "git_other_branch",
            Self::LeadsOut { .. } => "git_leads_out",
            Self::NoSuchCommit { .. } => "git_no_such_commit",
            Self::Damaged { .. } => "git_damaged",
            Self::Conflicts { .. } => "git_conflicts",
            Self::NoIdentity { .. } => "git_no_identity",
            Self::CommitRefused { .. } => "git_commit_refused",
            Self::TimedOut { .. } => "git_timed_out",
            Self::Interrupted { .. } => "interrupted",
            Self::Sandbox { .. } => "sandbox",
            Self::Failed { .. } | Self::Start { .. } | Self::Path { .. } => "git_failed",
        }
    }

    /// Why, as far as it is known.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::SwitchRefused { output, .. }
            | Self::NoIdentity { output }
            | Self::CommitRefused { output }
            | Self::Failed { output, .. } => (!output.is_empty()).then(|| output.clone()),
            Self::Start { source, .. } | Self::Path { source, .. } => Some(source.to_string()),
            Self::Sandbox { source, .. } => Some(source.to_string()),
            Self::Submodule { around } => {
                Some(format!("it would lie inside of {}", around.display()))
            }
            Self::OtherBranchThere { found, .. } => Some(match found {
                Some(found) => format!("it is on `{found}`"),
                None => "it is on no branch".to_owned(),
            }),
            Self::CheckedOutElsewhere { gone: true, .. } => {
                Some("that directory is gone, and git still knows of it".to_owned())
            }
            Self::Damaged { .. } => Some("its content is not what its hash stands for".to_owned()),
            Self::TooOld { .. } => Some("agentd needs git 2.36 or newer".to_owned()),
            Self::NotInstalled
            | Self::NoRepository { .. }
            | Self::NoWorkTree { .. }
            | Self::Unborn { .. }
            | Self::NameTaken { .. }
            | Self::CheckedOutElsewhere { .. }
            | Self::CheckedOutHere { .. }
            | Self::NoWorkTreeOf { .. }
            | Self::PathTaken { .. }
            | Self::LeadsOut { .. }
            | Self::NoSuchCommit { .. }
            | Self::Conflicts { .. }
            | Self::TimedOut { .. }
            | Self::Interrupted { .. } => None,
        }
    }

    /// What to do about it.
    pub fn solutions(&self) -> Vec<String> {
        const IN_PLACE: &str = "work where you are: --git in-place";
        let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        match self {
            Self::NotInstalled => own(&["install git 2.36 or newer", IN_PLACE]),
            Self::TooOld { .. } => own(&["install git 2.36 or newer", IN_PLACE]),
            Self::NoRepository { .. } => {
                own(&["make a repository: git init && git add -A && git commit -m Start", IN_PLACE])
            }
            Self::NoWorkTree { .. } => {
                own(&["run agentd in a checkout: git worktree add <directory>", IN_PLACE])
            }
            Self::Unborn { .. } => {
                own(&["make the first commit: git add -A && git commit -m Start", IN_PLACE])
            }
            Self::Submodule { .. } => own(&["work on a branch of it: --git branch", IN_PLACE]),
            Self::NameTaken { blocking, .. } => vec![
                format!("give it another name: git branch -m {blocking} {blocking}-old"),
                IN_PLACE.to_owned(),
            ],
            Self::CheckedOutElsewhere { gone: true, .. } => {
                own(&["let git forget it: git worktree prune"])
            }
            Self::CheckedOutElsewhere { path, .. } => vec![
                format!("work there: agentd -C {}", shown(path)),
                format!(
                    "or remove it, once its work is committed: git worktree remove {}",
                    shown(path)
                ),
            ],
            Self::CheckedOutHere { .. } => own(&[
                "work on it here: --git branch",
                "or go back to the branch before it: git switch -",
            ]),
            Self::NoWorkTreeOf { .. } => {
                own(&["run the workflow again: it makes the work tree where it is missing"])
            }
            Self::SwitchRefused { output, .. }
            | Self::CommitRefused { output }
            | Self::Failed { output, .. }
                if lacks_room(output) =>
            {
                own(&[
                    "make room on the disk, or see who may write there: df -h . && ls -la . .git",
                ])
            }
            Self::SwitchRefused { .. } => own(&[
                "commit what you have: git add -A && git commit",
                "or put it aside for now: git stash --include-untracked",
                "or leave this checkout alone: --git worktree",
            ]),
            Self::PathTaken { path } => vec![
                format!("move it away: mv {0} {0}-old", shown(path)),
                "or work on a branch in this checkout: --git branch".to_owned(),
            ],
            Self::OtherBranchThere { path, branch, .. } => {
                vec![format!("switch it back: git -C {} switch {branch}", shown(path))]
            }
            Self::LeadsOut { .. } => own(&["--git branch", IN_PLACE]),
            Self::NoSuchCommit { .. } => {
                own(&["it may have been rebased away; look at `git reflog`"])
            }
            Self::Damaged { .. } => own(&[
                "see what else is damaged: git fsck",
                "get the object again from a clone: git fetch --refetch",
            ]),
            Self::Conflicts { .. } => own(&["resolve them, `git add` them, and run it again"]),
            Self::NoIdentity { .. } => own(&[
                "git config --global user.name 'Your Name'",
                "git config --global user.email you@example.org",
                "or let agentd commit nothing: [git] commit = \"none\" in agentd/config.toml",
            ]),
            Self::CommitRefused { .. } => own(&[
                "fix what the hook reported, then run it again",
                "or let agentd commit nothing: [git] commit = \"none\" in agentd/config.toml",
            ]),
            Self::TimedOut { .. } => {
                own(&["check whether a hook, a signing key or a lock is waiting for input"])
            }
            Self::Sandbox { .. } => own(&["see what this system can enforce: agentd doctor"]),
            Self::Interrupted { .. }
            | Self::Failed { .. }
            | Self::Start { .. }
            | Self::Path { .. } => Vec::new(),
        }
    }
}

/// Whether git was refused by the disk, and not by what is on it.
fn lacks_room(output: &str) -> bool {
    ["No space left on device", "Read-only file system", "Permission denied"]
        .iter()
        .any(|reason| output.contains(reason))
}

/// A path as it can be pasted into a shell.
fn shown(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    // Only a NUL cannot be quoted, and no path has one.
    shlex::try_quote(&text).map(std::borrow::Cow::into_owned).unwrap_or(text)
}
