//! Why a workflow stopped: for code as a kind, for people as a card with the cause and
//! what to do (P28).

use agentd_core::agent::AgentKind;
use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::Diagnostic;
use agentd_core::graph;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::phase::Refused;
use agentd_core::provider::sessions::SessionError;
use agentd_core::rules;

use crate::context::ContextError;
use crate::documents::DocumentError;
use crate::step::StepError;
use crate::store::{LockError, StoreError};

/// Why a workflow stopped.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError {
    /// A step failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A document or the state could not be worked with.
    #[error(transparent)]
    Documents(#[from] DocumentError),
    /// A context could not be written.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// Documents of the plan are not valid.
    #[error("{}", format_failed(*.rounds))]
    Format {
        /// The change.
        change: ChangeId,
        /// What is wrong.
        reports: Vec<FileReport>,
        /// How often a planner has tried to mend it.
        rounds: u32,
    },
    /// The challenger said nothing that counts.
    #[error("Could not determine the challenge verdict: it is Unknown")]
    VerdictUnknown {
        /// The change.
        change: ChangeId,
        /// Who it was.
        agent: AgentKind,
        /// What it said instead.
        said: String,
    },
    /// The plan was edited while it was challenged.
    #[error("the plan of `{change}` was edited while it was being challenged")]
    StaleVerdict {
        /// The change.
        change: ChangeId,
    },
    /// Planner and challenger are of one vendor, and the project forbids that.
    #[error("planner and challenger are both of {vendor}, and workflow.require_independent_review is set")]
    NotIndependent {
        /// The vendor.
        vendor: &'static str,
    },
    /// The affected specs depend on each other in a circle (C16).
    #[error("the affected specs depend on each other: {}", graph::chain(circle.iter().map(ToString::to_string)))]
    SpecCycle {
        /// The circle.
        circle: Vec<SpecId>,
    },
    /// There is no review to work on.
    #[error("`{change}` has no review that asks for a revision")]
    NoReview {
        /// The change.
        change: ChangeId,
    },
    /// A document that a step works on is not there.
    #[error("`{change}` has no {file}")]
    NoDocument {
        /// The change.
        change: ChangeId,
        /// The file.
        file: &'static str,
    },
}

fn format_failed(rounds: u32) -> String {
    match rounds {
        0 => "the plan is not valid".to_owned(),
        1 => "Format validation still failing after 1 iteration".to_owned(),
        n => format!("Format validation still failing after {n} iterations"),
    }
}

impl From<StoreError> for WorkflowError {
    fn from(error: StoreError) -> Self {
        Self::Documents(error.into())
    }
}

impl From<LockError> for WorkflowError {
    fn from(error: LockError) -> Self {
        Self::Documents(error.into())
    }
}

impl From<Refused> for WorkflowError {
    fn from(refused: Refused) -> Self {
        Self::Documents(refused.into())
    }
}

impl From<SessionError> for WorkflowError {
    fn from(error: SessionError) -> Self {
        Self::Step(error.into())
    }
}

impl WorkflowError {
    /// What kind of error it is; stable, in `snake_case`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Step(error) => error.kind(),
            Self::Documents(_) => "documents",
            Self::Context(_) => "context",
            Self::Format { .. } => "format_invalid",
            Self::VerdictUnknown { .. } => "verdict_unknown",
            Self::StaleVerdict { .. } => "stale_verdict",
            Self::NotIndependent { .. } => "not_independent",
            Self::SpecCycle { .. } => "spec_cycle",
            Self::NoReview { .. } => "no_review",
            Self::NoDocument { .. } => "no_document",
        }
    }

    /// Why, as far as it is known.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Step(error) => error.cause(),
            Self::Documents(_) => None,
            Self::Context(error) => std::error::Error::source(error).map(ToString::to_string),
            Self::Format { reports, rounds, .. } => {
                let counts = check::counts(reports);
                let found = format!(
                    "{} HIGH, {} MEDIUM, {} LOW findings",
                    counts.high, counts.medium, counts.low
                );
                let all = || reports.iter().flat_map(|report| &report.diagnostics);
                let circle = all().find(|finding| finding.rule.code == rules::TASK_CYCLE.code);
                Some(match (circle, rounds) {
                    (Some(circle), _) => {
                        format!("Circular dependency detected: {}; {found}", circle.message)
                    }
                    (None, 0) => found,
                    (None, _) => format!("the planner could not mend it by itself; {found}"),
                })
            }
            Self::VerdictUnknown { agent, said, .. } => Some(if said.is_empty() {
                format!("{agent} ended without calling append_review")
            } else {
                format!("{agent} ended without calling append_review; its last words were: {said}")
            }),
            Self::StaleVerdict { .. } => {
                Some("a verdict counts for the plan that was reviewed, and for no other".to_owned())
            }
            Self::NotIndependent { .. } => {
                Some("whoever wrote a plan does not see what is missing in it".to_owned())
            }
            Self::SpecCycle { .. } => {
                Some("no order exists in which they could be written".to_owned())
            }
            Self::NoReview { .. } | Self::NoDocument { .. } => None,
        }
    }

    /// What to do about it.
    pub fn solutions(&self) -> Vec<String> {
        match self {
            Self::Step(error) => error.solutions(),
            Self::Documents(_) | Self::Context(_) => Vec::new(),
            Self::Format { change, reports, .. } => {
                let all = reports.iter().flat_map(|report| &report.diagnostics);
                let worst = all.min_by_key(|finding| Diagnostic::severity(finding));
                let mut lines = vec![
                    format!("edit the files in agentd/changes/{change}/ by hand"),
                    format!("check them: agentd validate {change}"),
                ];
                if let Some(worst) = worst {
                    lines.push(format!("what it means: agentd explain {}", worst.rule.code));
                }
                lines.push(format!("go on: agentd challenge {change}"));
                lines
            }
            Self::VerdictUnknown { change, .. } => vec![
                format!("ask again: agentd challenge {change}"),
                format!("see what it did: the newest file in agentd/changes/{change}/runs/"),
                "see whether the MCP server starts: agentd doctor".to_owned(),
                "nothing was approved: only a review through the tool counts".to_owned(),
            ],
            Self::StaleVerdict { change } => vec![format!("agentd challenge {change}")],
            Self::NotIndependent { .. } => vec![
                "give [roles] challenger in agentd/config.toml to another agent".to_owned(),
                "or set workflow.require_independent_review = false".to_owned(),
            ],
            Self::SpecCycle { .. } => {
                vec!["take a `depends` out of affected_specs in proposal.md".to_owned()]
            }
            Self::NoReview { change } => vec![format!("challenge it first: agentd challenge {change}")],
            Self::NoDocument { change, .. } => {
                vec![format!("write it first: agentd plan {change}")]
            }
        }
    }

    /// Whether somebody has asked for the stop.
    pub fn is_interrupt(&self) -> bool {
        self.kind() == "interrupted"
    }
}
