//! Why a workflow stopped: for code as a kind, for people as a card with the cause and
//! what to do (P28).

use agentd_core::agent::AgentKind;
use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::Diagnostic;
use agentd_core::graph;
use agentd_core::ids::{ChangeId, Layer, SpecId, TaskId};
use agentd_core::phase::{Phase, Refused};
use agentd_core::provider::sessions::SessionError;
use agentd_core::rules;
use agentd_core::step_name::StepName;

use crate::agents::context::ContextError;
use crate::agents::step::StepError;
use crate::change::documents::DocumentError;
use crate::git::GitError;
use crate::store::{LockError, StoreError, causes};

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
    #[error("Could not determine the verdict of the {step}: it is Unknown")]
    VerdictUnknown {
        /// The change.
        change: ChangeId,
        /// The step.
        step: StepName,
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
    #[error(
        "planner and challenger are both of {vendor}, and workflow.require_independent_review is set"
    )]
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
    /// The change is not in a phase in which it can be implemented (WF4).
    #[error("ChangeNotReady: `{change}` is {phase}")]
    ChangeNotReady {
        /// The change.
        change: ChangeId,
        /// Where it stands.
        phase: Phase,
    },
    /// The implementer has left tasks open, also when it was asked again.
    #[error("tasks of the {layer} layer are not done: {}", task_ids(tasks))]
    TasksLeft {
        /// The change.
        change: ChangeId,
        /// The layer.
        layer: Layer,
        /// The tasks.
        tasks: Vec<TaskId>,
    },
    /// A task was asked for that the plan does not have.
    #[error("`{change}` has no task {task}")]
    NoSuchTask {
        /// The change.
        change: ChangeId,
        /// The task.
        task: TaskId,
    },
    /// Git could not do its part.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A document that a step works on is not there.
    #[error("`{change}` has no {file}")]
    NoDocument {
        /// The change.
        change: ChangeId,
        /// The file.
        file: &'static str,
    },
}

fn task_ids(tasks: &[TaskId]) -> String {
    tasks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
            Self::ChangeNotReady { .. } => "change_not_ready",
            Self::TasksLeft { .. } => "tasks_left",
            Self::NoSuchTask { .. } => "no_such_task",
            Self::Git(error) => error.kind(),
        }
    }

    /// Why, as far as it is known.
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Step(error) => error.cause(),
            Self::Documents(error) => causes(error),
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
            Self::VerdictUnknown { agent, step, said, .. } => {
                let tool =
                    if *step == StepName::Review { "create_review" } else { "append_review" };
                let ended = format!("{agent} ended without calling {tool}");
                Some(if said.is_empty() {
                    ended
                } else {
                    format!("{ended}; its last words were: {said}")
                })
            }
            Self::StaleVerdict { .. } => {
                Some("a verdict counts for the plan that was reviewed, and for no other".to_owned())
            }
            Self::NotIndependent { .. } => {
                Some("whoever wrote a plan does not see what is missing in it".to_owned())
            }
            Self::SpecCycle { .. } => {
                Some("no order exists in which they could be written".to_owned())
            }
            Self::ChangeNotReady { .. } => {
                Some("only a change whose plan is approved can be implemented".to_owned())
            }
            Self::TasksLeft { .. } => {
                Some("they are not ticked, or were ticked and are visibly not done".to_owned())
            }
            Self::Git(error) => error.cause(),
            Self::NoReview { .. } | Self::NoDocument { .. } | Self::NoSuchTask { .. } => None,
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
            Self::VerdictUnknown { change, step, .. } => vec![
                format!("ask again: agentd {step} {change}"),
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
            Self::NoReview { change } => {
                vec![format!("challenge it first: agentd challenge {change}")]
            }
            Self::NoDocument { change, .. } => {
                vec![format!("write it first: agentd plan {change}")]
            }
            Self::ChangeNotReady { change, phase } => vec![match phase {
                Phase::Complete => format!("it is complete: agentd archive {change}"),
                Phase::Archived => "it is archived already".to_owned(),
                _ => format!("plan it first: agentd plan {change}"),
            }],
            Self::TasksLeft { change, .. } => vec![
                format!("see what it said: the newest file in agentd/changes/{change}/runs/"),
                format!("do them by hand and tick them in tasks.md, then: agentd impl {change}"),
                format!("ask again: agentd impl {change}"),
            ],
            Self::NoSuchTask { change, .. } => vec![format!("agentd show {change} tasks")],
            Self::Git(error) => error.solutions(),
        }
    }

    /// Whether somebody has asked for the stop.
    pub fn is_interrupt(&self) -> bool {
        self.kind() == "interrupted"
    }
}
