//! Why a change could not be carried.

use agentd_core::carried::WorkerName;
use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::stamp::Stamp;

use crate::change::documents::DocumentError;
use crate::explain::{ErrorReport, Explain};
use crate::git::GitError;
use crate::store::{LockError, StoreError};

/// Why a change could not be carried.
#[derive(Debug, thiserror::Error)]
pub enum CarrierError {
    /// Somebody else has the change.
    #[error("`{change}` is with `{worker}`, since {since}")]
    Claimed {
        /// The change.
        change: ChangeId,
        /// Who has it.
        worker: WorkerName,
        /// Since when, by their clock.
        since: Stamp,
        /// Whether a person has taken it.
        taken: bool,
    },
    /// Somebody else has taken the change over.
    #[error("`{change}` was taken over by somebody else")]
    Lost {
        /// The change.
        change: ChangeId,
    },
    /// The remote repository does not answer, or refuses for another reason.
    #[error("cannot reach `{remote}`")]
    Unreachable {
        /// The remote.
        remote: String,
        /// What git said.
        output: String,
    },
    /// There is no such remote.
    #[error("this repository has no remote `{remote}`")]
    NoRemote {
        /// Its name.
        remote: String,
    },
    /// There is no repository, or nothing was committed.
    #[error("there is no commit to start from, so `{change}` cannot be carried")]
    NoCommit {
        /// The change.
        change: ChangeId,
    },
    /// The branch of the change is not checked out.
    #[error("`{change}` is not on its branch, so it cannot be carried")]
    NotOnItsBranch {
        /// The change.
        change: ChangeId,
    },
    /// Taking the change over would overwrite something of the user's.
    #[error("cannot take over `{change}` here: {what}")]
    InTheWay {
        /// The change.
        change: ChangeId,
        /// What.
        what: String,
    },
    /// What was carried is not signed by someone who is trusted.
    #[error("`{change}` comes from the remote, and nobody on the list has signed it: {why}")]
    NotSigned {
        /// The change.
        change: ChangeId,
        /// What is wrong.
        why: String,
    },
    /// A snapshot would be larger than is carried.
    #[error("`{change}` has {megabytes} MB of uncommitted files, and at most {most} are carried")]
    TooLarge {
        /// The change.
        change: ChangeId,
        /// How much there is.
        megabytes: u64,
        /// How much is carried.
        most: u64,
    },
    /// Git could not do its part.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A document could not be worked with.
    #[error(transparent)]
    Documents(#[from] DocumentError),
}

impl From<StoreError> for CarrierError {
    fn from(error: StoreError) -> Self {
        Self::Documents(error.into())
    }
}

impl From<LockError> for CarrierError {
    fn from(error: LockError) -> Self {
        Self::Documents(error.into())
    }
}

impl Explain for CarrierError {
    fn explain(&self) -> ErrorReport {
        let report = |kind| ErrorReport::of(kind, self);
        match self {
            Self::Git(error) => error.explain(),
            Self::Documents(error) => error.explain(),
            Self::Claimed { change, taken, .. } => {
                let report = report(Kind::Claimed);
                let take = CommandLine::agentd(["take", change.as_str(), "--force"]);
                if *taken {
                    report.hint("ask them to give it back").run("or take it from them", take)
                } else {
                    report.hint("wait until it is done").run("or take it from the worker", take)
                }
            }
            Self::Lost { .. } => report(Kind::ClaimLost)
                .cause("the remote refused a push: its copy of the change has moved on")
                .hint("nothing that others have done is lost; what this command did last may be"),
            Self::Unreachable { output, .. } => report(Kind::RemoteUnreachable)
                .cause(output.clone())
                .hint("run the same command again when it answers"),
            Self::NoRemote { .. } => report(Kind::RemoteUnreachable)
                .run("see which there are", CommandLine::git(["remote", "-v"])),
            Self::NoCommit { .. } => report(Kind::NotCarried)
                .hint("commit something first: changes are carried as commits"),
            Self::NotOnItsBranch { change } => {
                let branch = crate::git::branch_of(change);
                report(Kind::NotCarried)
                    .cause("only what is on a branch of its own can be continued elsewhere")
                    .run("check it out", CommandLine::git(["switch", &branch]))
                    .run(
                        "or begin it on a branch",
                        CommandLine::agentd(["step", change.as_str(), "--git", "branch"]),
                    )
            }
            Self::InTheWay { .. } => report(Kind::NotCarried)
                .hint("commit or stash it, or use a clone of its own for changes that are carried")
                .hint("--discard discards what is only in this clone"),
            Self::NotSigned { .. } => report(Kind::NotCarried)
                .cause("`--allowed-signers` wants verdicts and decisions to be signed")
                .hint("set `[policy] sign = \"ssh\"`, and put the keys of all workers on the list"),
            Self::TooLarge { .. } => {
                report(Kind::NotCarried).hint("add what is built to .gitignore, or commit it")
            }
        }
    }
}
