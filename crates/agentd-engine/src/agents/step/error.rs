//! Why a step failed, and what to do about it (P28).

use agentd_core::agent::{AgentKind, Role};
use agentd_core::command_line::CommandLine;
use agentd_core::diagnostic::Diagnostic;
use agentd_core::error_kind::Kind;
use agentd_core::hint::Hint;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::outcome::{Failure, FailureKind};
use agentd_core::provider::sessions::SessionError;
use agentd_core::text::counted;

use crate::agents::runner::RunError;
use crate::change::documents::DocumentError;
use crate::explain::{ErrorDetails, ErrorReport, Explain, fresh_session};
use crate::guard::git_files::{self, TamperedFile};
use crate::guard::sandbox::SandboxError;
use crate::store::StoreError;

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// A document or the state could not be worked with.
    #[error(transparent)]
    Documents(#[from] DocumentError),
    /// The call could not be made or recorded.
    #[error(transparent)]
    Run(#[from] RunError),
    /// There is no sandbox to make the call in.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The session to resume was not found.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The change has used up what it may cost.
    #[error("`{change}` has used up its budget: {spent} of {limit}")]
    Budget {
        /// The change.
        change: ChangeId,
        /// What it has used.
        spent: String,
        /// What it may use.
        limit: String,
        /// The agent whose call was ended for it, if one was.
        ended: Option<AgentKind>,
    },
    /// Somebody wanted it to stop.
    #[error("interrupted")]
    Interrupted,
    /// The agent failed.
    #[error("{agent} failed: {failure}")]
    Agent {
        /// Who.
        agent: AgentKind,
        /// As what, where it was called.
        role: Option<Role>,
        /// How.
        failure: Box<Failure>,
    },
    /// A probe has shown that the agent cannot play the role (G3).
    #[error("{agent} cannot be {role}: {why}")]
    Unfit {
        /// Who.
        agent: AgentKind,
        /// As what.
        role: Role,
        /// Why not.
        why: String,
    },
    /// Something was changed that others run or obey, or that only agentd writes.
    #[error("{who} modified files that others run or obey: {}", git_files::list(tampered))]
    Tampered {
        /// The agent, or the tests.
        who: String,
        /// What.
        tampered: Vec<TamperedFile>,
    },
    /// Documents were changed during a step that did not write them.
    #[error("{} changed while {agent} was at work, and not through its tools", list(files))]
    WrittenBeside {
        /// Who was at work.
        agent: AgentKind,
        /// What was changed.
        files: Vec<ChangeFile>,
    },
    /// The agent reported success, and what it should have written is not there.
    #[error("{agent} reported success, but {} {}", file, if *.exists { "has not changed" } else { "does not exist" })]
    NoArtifact {
        /// Who.
        agent: AgentKind,
        /// What is missing.
        file: String,
        /// Whether there is an earlier one.
        exists: bool,
        /// Why, as far as the calls of tools and the disk show it.
        cause: String,
    },
    /// What the agent wrote is not valid.
    #[error("{file} is not valid after {agent}: {}", counted(findings.len(), "finding"))]
    InvalidArtifact {
        /// Who.
        agent: AgentKind,
        /// The file.
        file: String,
        /// The HIGH findings.
        findings: Vec<Diagnostic>,
    },
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Self::Documents(error.into())
    }
}

fn list(files: &[ChangeFile]) -> String {
    files.iter().map(|file| file.path().to_string()).collect::<Vec<_>>().join(", ")
}

impl Explain for StepError {
    fn explain(&self) -> ErrorReport {
        let report = |kind| ErrorReport::of(kind, self);
        match self {
            Self::Documents(error) => error.explain(),
            Self::Run(error) => error.explain(),
            Self::Sandbox(error) => error.explain(),
            Self::Session(error) => error.explain(),
            Self::Interrupted => ErrorReport::interrupted(),
            Self::Budget { change, ended, .. } => ErrorReport {
                cause: ended.map(|agent| {
                    format!("the call of {agent} was ended when its usage showed it; what it had written stays")
                }),
                ..report(Kind::Budget)
            }
                .run("see where it went", CommandLine::agentd(["cost", change.as_str()]))
                .edit("raise the limits in [budget], or finish by hand", "agentd/config.toml"),
            Self::Agent { failure, .. } if failure.kind == FailureKind::Cancelled => {
                ErrorReport::interrupted()
            }
            Self::Agent { agent, role, failure } => {
                explain_failure(report, failure, *role).details(ErrorDetails::Call {
                    agent: *agent,
                    failure: failure.kind,
                    retry_after_ms: failure.retry_after_ms,
                })
            }
            Self::Unfit { agent, .. } => report(Kind::AgentUnfit)
                .edit("give the role to another agent in [roles]", "agentd/config.toml")
                .run(
                    "after an update of the agent, probe it again",
                    CommandLine::agentd(["doctor", "--probe", agent.name()]),
                ),
            Self::WrittenBeside { .. } => report(Kind::Tampered)
                .cause("the agent of the next step had been started, and could write there too")
                .hint(whole_call())
                .hint("check the plan; if you have edited it yourself, retry"),
            Self::Tampered { tampered, .. } => {
                let left = tampered.iter().filter(|one| !one.restored);
                report(Kind::Tampered)
                    .cause(if tampered.iter().all(|one| one.restored) {
                        "others would run or obey it outside of the agent's sandbox; all of it was \
                         restored, and nothing of it was run"
                    } else {
                        "others would run or obey it outside of the agent's sandbox, and not all of \
                         it could be restored"
                    })
                    .hints(left.map(|one| {
                        Hint::edit("check it before you run git or an agent", one.path.clone())
                    }))
                    .hint(whole_call())
                    .hint("if you want that change, make it yourself, then retry")
            }
            Self::NoArtifact { cause, .. } => report(Kind::NoArtefact)
                .cause(cause.as_str())
                .hint("retry: a model may forget to call its tool")
                .hint(whole_call())
                .hint(check_server()),
            Self::InvalidArtifact { findings, file, .. } => ErrorReport {
                cause: findings.first().map(|finding| finding.message.clone()),
                ..report(Kind::InvalidArtefact)
            }
            .edit("fix it, or retry", file)
            .hints(findings.iter().take(5).map(|finding| {
                format!("{}: {}. {}", finding.rule.code, finding.message, finding.advice())
            })),
        }
    }
}

/// How to plan without any agent. Code cannot be written that way.
pub(crate) const BY_RULES: &str =
    "for a plan alone, `--agent builtin` drafts and checks it by rules, without a model";

/// With more lines than this, the words of an agent are shortened where people read them.
const FEW_LINES: usize = 8;

/// How an agent failed: its own words are the cause.
fn explain_failure(
    report: impl Fn(Kind) -> ErrorReport,
    failure: &Failure,
    role: Option<Role>,
) -> ErrorReport {
    let kind = match failure.kind {
        FailureKind::SessionNotFound => Kind::SessionNotFound,
        FailureKind::McpUnavailable => Kind::McpUnavailable,
        FailureKind::NotInstalled => Kind::AgentNotInstalled,
        FailureKind::Auth => Kind::AgentAuth,
        _ => Kind::AgentFailed,
    };
    let mut report = report(kind);
    let tail = failure.stderr_tail.trim();
    // One line is in the message already.
    if !tail.is_empty() && !failure.message.ends_with(tail) {
        report = report.cause(failure.stderr_tail.clone());
    } else if failure.kind == FailureKind::StdinClosed {
        report = report.cause("it closed its input, or ended, without reading what it was given");
    } else if kind == Kind::McpUnavailable {
        report = report.cause("its tool server did not start, or its settings forbid it");
    }
    if kind == Kind::McpUnavailable {
        return report
            .hint(check_server())
            .hint("check that the agent's settings allow MCP servers");
    }
    if matches!(failure.kind, FailureKind::SessionNotFound | FailureKind::WrongSession) {
        report = report.hint(fresh_session());
    }
    let report = report.hints(failure.hint.clone());
    let report = if failure.stderr_tail.lines().count() > FEW_LINES {
        report.hint(whole_call())
    } else {
        report
    };
    match kind {
        Kind::AgentAuth => report.run("then check", CommandLine::agentd(["doctor"])),
        Kind::AgentNotInstalled => {
            let report = report.edit("or name another agent in [roles]", "agentd/config.toml");
            let plans = !matches!(role, Some(Role::Implementer | Role::Reviewer));
            if plans { report.hint(BY_RULES) } else { report }
        }
        _ => report,
    }
}

/// Where everything is that an agent has said and done.
fn whole_call() -> Hint {
    let last = CommandLine::agentd(["log"]).change().args(["--run", "last"]);
    Hint::run("see what it said and did", last)
}

fn check_server() -> Hint {
    Hint::run("check that the MCP server starts", CommandLine::agentd(["doctor"]))
}
