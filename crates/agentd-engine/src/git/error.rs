//! Why something about git failed, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_core::hint::Hint;
use agentd_core::ids::ChangeId;

use crate::explain::{ErrorReport, Explain};
use crate::process::ProcessError;

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
    #[error("{} is not in a git repository", root.display())]
    NoRepository {
        /// The project.
        root: PathBuf,
    },
    /// There is a repository, but no files are checked out here.
    #[error("{} is in a bare git repository or inside `.git`", root.display())]
    NoWorkTree {
        /// The project.
        root: PathBuf,
    },
    /// There is no commit from which a branch could start.
    #[error("the repository has no commit for `{branch}` to start from")]
    Unborn {
        /// The branch.
        branch: String,
    },
    /// A worktree of a submodule would be inside the repository around it.
    #[error("the project is in a submodule, which cannot have worktrees of its own")]
    Submodule {
        /// The repository around it.
        around: PathBuf,
    },
    /// A branch cannot be made, because another is in the way of its name.
    #[error("cannot create the branch `{branch}` while there is a branch `{blocking}`")]
    NameTaken {
        /// The branch.
        branch: String,
        /// The one in the way.
        blocking: String,
    },
    /// The branch is checked out in another worktree.
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
    #[error("`{branch}` is checked out here, so it cannot have a worktree of its own")]
    CheckedOutHere {
        /// The branch.
        branch: String,
    },
    /// The worktree of the change is not there.
    #[error("there is no worktree on `{branch}`")]
    NoWorkTreeOf {
        /// The branch.
        branch: String,
    },
    /// Git refused to switch.
    #[error("cannot switch to `{branch}`{}", if lacks_room(output) { "" } else { " without losing changes" })]
    SwitchRefused {
        /// The branch.
        branch: String,
        /// What git printed.
        output: String,
    },
    /// Something is where the working tree would be.
    #[error("{} already exists and is not a worktree of this repository", path.display())]
    PathTaken {
        /// Where.
        path: PathBuf,
    },
    /// The worktree has documents of the change that are in no commit.
    #[error("the worktree has other documents of `{change}`: {}", path.display())]
    DocumentsThere {
        /// The change.
        change: ChangeId,
        /// Where they are.
        path: PathBuf,
    },
    /// The worktree of the change has another branch checked out.
    #[error("the worktree {} is not on `{branch}`", path.display())]
    OtherBranchThere {
        /// Where.
        path: PathBuf,
        /// The branch that it should be on.
        branch: String,
        /// The one that it is on; none when it is on none.
        found: Option<String>,
    },
    /// The directory of the project in a worktree leads out of it.
    #[error("{} leads out of its worktree", path.display())]
    LeadsOut {
        /// The directory.
        path: PathBuf,
    },
    /// The documents of the change are on its branch, and another one is checked out.
    #[error("`{change}` is on the branch `{branch}`, which is not checked out")]
    OnItsBranch {
        /// The change.
        change: ChangeId,
        /// Its branch.
        branch: String,
    },
    /// The branch from which others are to start is not there.
    #[error("there is no branch `{base}` to start from")]
    NoBaseBranch {
        /// Its name, from the settings.
        base: String,
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
    #[error("cannot commit while files are in conflict: {}", files.join(", "))]
    Conflicts {
        /// The files.
        files: Vec<String>,
    },
    /// Git does not know who commits.
    #[error("git does not know your name and email address")]
    NoIdentity {
        /// What git printed.
        output: String,
    },
    /// A hook or git itself refused the commit.
    #[error("git refused the commit")]
    CommitRefused {
        /// What git and its hooks printed.
        output: String,
    },
    /// Git took too long.
    #[error("`{what}` did not finish within {} s", limit.as_secs())]
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
    #[error("cannot run `{what}` in the sandbox")]
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
        /// What git printed.
        output: String,
    },
    /// The system refused something.
    #[error("cannot run `{what}`")]
    Start {
        /// The command.
        what: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A file or directory could not be worked with.
    #[error("cannot use {}", path.display())]
    Path {
        /// Which.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl Explain for GitError {
    #[expect(
        clippy::too_many_lines,
        reason = "a table: one arm per variant, with its kind, its cause and its hints"
    )]
    fn explain(&self) -> ErrorReport {
        let report = |kind| ErrorReport::of(kind, self);
        let said = |kind, output: &str| {
            let cause = (!output.is_empty()).then(|| output.to_owned());
            ErrorReport { cause, ..ErrorReport::of(kind, self) }
        };
        match self {
            Self::NotInstalled => report(Kind::GitNotInstalled).hint(INSTALL).hint(in_place()),
            Self::TooOld { .. } => report(Kind::GitTooOld)
                .cause("agentd needs git 2.36 or newer")
                .hint(INSTALL)
                .hint(in_place()),
            Self::NoRepository { .. } => report(Kind::GitNoRepository)
                .run("create a repository", CommandLine::git(["init"]).and(first_commit()))
                .hint(in_place()),
            Self::NoWorkTree { .. } => report(Kind::GitNoWorkTree)
                .run(
                    "check the repository out and run agentd there",
                    CommandLine::git(["worktree", "add"]).placeholder("<directory>"),
                )
                .hint(in_place()),
            Self::Unborn { .. } => report(Kind::GitNoCommit)
                .run("create the first commit", first_commit())
                .hint(in_place()),
            Self::Submodule { around } => report(Kind::GitSubmodule)
                .cause(format!("it would be inside {}", around.display()))
                .run("work on a branch of it", with_git("branch"))
                .hint(in_place()),
            Self::NameTaken { blocking, .. } => report(Kind::GitBranchNameTaken)
                .run("rename that branch", rename_branch(blocking))
                .hint(in_place()),
            Self::CheckedOutElsewhere { gone: true, .. } => report(Kind::GitCheckedOutElsewhere)
                .cause("that directory is gone, but git still lists it")
                .run("make git forget it", CommandLine::git(["worktree", "prune"])),
            Self::CheckedOutElsewhere { path, .. } => report(Kind::GitCheckedOutElsewhere)
                .run("work there", CommandLine::agentd(["-C", &shown(path), "plan"]).change())
                .run(
                    "or remove it, once its work is committed",
                    CommandLine::git(["worktree", "remove", &shown(path)]),
                ),
            Self::CheckedOutHere { .. } => report(Kind::GitCheckedOutHere)
                .run("work on it here", with_git("branch"))
                .run("or switch back to the previous branch", CommandLine::git(["switch", "-"])),
            Self::NoWorkTreeOf { .. } => report(Kind::GitNoWorkTreeOfChange)
                .run("create the worktree again", with_git("worktree")),
            Self::SwitchRefused { output, .. } if lacks_room(output) => {
                said(Kind::GitSwitchRefused, output).hint(make_room())
            }
            Self::SwitchRefused { output, .. } => said(Kind::GitSwitchRefused, output)
                .run(
                    "commit your changes",
                    CommandLine::git(["add", "-A"]).and(CommandLine::git(["commit"])),
                )
                .run("or stash them", CommandLine::git(["stash", "--include-untracked"]))
                .run("or leave this checkout alone", with_git("worktree")),
            Self::DocumentsThere { path, .. } => report(Kind::GitPathTaken)
                .cause("they are not committed, and would be replaced")
                .run("move them away", move_away(path)),
            Self::PathTaken { path } => report(Kind::GitPathTaken)
                .run("move it away", move_away(path))
                .run("or work on a branch in this checkout", with_git("branch")),
            Self::OtherBranchThere { path, branch, found } => report(Kind::GitOtherBranch)
                .cause(match found {
                    Some(found) => format!("it is on `{found}`"),
                    None => "it is on no branch".to_owned(),
                })
                .run(
                    "switch it back",
                    CommandLine::git(["-C", &shown(path), "switch", branch.as_str()]),
                ),
            Self::LeadsOut { .. } => report(Kind::GitLeadsOut)
                .run("work on a branch in this checkout", with_git("branch"))
                .hint(in_place()),
            Self::OnItsBranch { branch, .. } => {
                report(Kind::NoSuchChange).run("check it out", CommandLine::git(["switch", branch]))
            }
            Self::NoBaseBranch { .. } => report(Kind::GitNoBaseBranch)
                .cause("`[git] base` in agentd/config.toml names it")
                .hint(
                    "set `[git] base` to a branch that exists, or to HEAD for what is checked out",
                ),
            Self::NoSuchCommit { .. } => report(Kind::GitNoSuchCommit)
                .run("check if it was rebased away", CommandLine::git(["reflog"])),
            Self::Damaged { .. } => report(Kind::GitDamaged)
                .cause("its content does not match its hash")
                .run("see what else is damaged", CommandLine::git(["fsck"]))
                .run(
                    "fetch the object again from a remote",
                    CommandLine::git(["fetch", "--refetch"]),
                ),
            Self::Conflicts { files } => report(Kind::GitConflicts).run(
                "resolve them, then mark them as resolved and retry",
                CommandLine::git(["add", "--"]).args(files.iter().map(String::as_str)),
            ),
            Self::NoIdentity { output } => said(Kind::GitNoIdentity, output)
                .run("set your name", identity("user.name", "Your Name"))
                .run("set your email address", identity("user.email", "you@example.org"))
                .hint(no_commits()),
            Self::CommitRefused { output } if lacks_room(output) => {
                said(Kind::GitCommitRefused, output).hint(make_room())
            }
            Self::CommitRefused { output } => said(Kind::GitCommitRefused, output)
                .hint("fix what the hook reported, then retry")
                .hint(no_commits()),
            Self::TimedOut { .. } => report(Kind::GitTimedOut)
                .hint("check if a hook, a signing key or a lock is waiting for input"),
            Self::Interrupted { .. } => ErrorReport::interrupted(),
            Self::Sandbox { .. } => report(Kind::Sandbox)
                .run("see what this system can enforce", CommandLine::agentd(["doctor"])),
            Self::Failed { output, .. } if lacks_room(output) => {
                said(Kind::GitFailed, output).hint(make_room())
            }
            Self::Failed { output, .. } => said(Kind::GitFailed, output),
            Self::Start { .. } | Self::Path { .. } => report(Kind::GitFailed),
        }
    }
}

const INSTALL: &str = "install git 2.36 or newer";

/// The way on with another choice of `--git`.
fn with_git(choice: &str) -> CommandLine {
    CommandLine::agentd(["plan"]).change().args(["--git", choice])
}

fn in_place() -> Hint {
    Hint::run("work in the current checkout", with_git("in-place"))
}

fn first_commit() -> CommandLine {
    CommandLine::git(["add", "-A"]).and(CommandLine::git(["commit", "-m", "Start"]))
}

fn rename_branch(name: &str) -> CommandLine {
    CommandLine::git(["branch", "-m", name, &format!("{name}-old")])
}

fn identity(key: &str, value: &str) -> CommandLine {
    CommandLine::git(["config", "--global", key, value])
}

fn no_commits() -> Hint {
    let purpose = "or do not let agentd commit".to_owned();
    Hint::Set { purpose, table: "git", key: "commit", value: "\"none\"" }
}

fn make_room() -> Hint {
    let list = CommandLine::new(["ls", "-la", ".", ".git"]);
    Hint::run(
        "free some space, or check who may write there",
        CommandLine::new(["df", "-h", "."]).and(list),
    )
}

fn move_away(path: &Path) -> CommandLine {
    CommandLine::new(["mv".to_owned(), shown(path), format!("{}-old", shown(path))])
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Whether the disk refused it, and not what is on it.
fn lacks_room(output: &str) -> bool {
    ["No space left on device", "Read-only file system", "Permission denied"]
        .iter()
        .any(|reason| output.contains(reason))
}
