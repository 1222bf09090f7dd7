//! Why a workflow stopped, and what to do about it (P28).

use agentd_core::agent::{AgentKind, Role};
use agentd_core::check::{self, FileReport};
use agentd_core::command_line::CommandLine;
use agentd_core::diagnostic::Diagnostic;
use agentd_core::error_kind::Kind;
use agentd_core::graph;
use agentd_core::hint::Hint;
use agentd_core::ids::{ChangeId, Layer, SpecId, TaskId};
use agentd_core::next_step::Command;
use agentd_core::outcome::FailureKind;
use agentd_core::phase::{Phase, Refused};
use agentd_core::provider::sessions::SessionError;
use agentd_core::rules;
use agentd_core::step_name::StepName;

use super::begin::NoAgent;
use super::clarify::ClarifyError;
use super::provenance::NotIndependent;
use crate::agents::context::ContextError;
use crate::agents::step::{BY_RULES, StepError};
use crate::change::documents::DocumentError;
use crate::change::staleness::{self, Stale};
use crate::explain::{ErrorReport, Explain};
use crate::git::GitError;
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
    /// Nobody is there to plan.
    #[error(transparent)]
    NoAgent(#[from] NoAgent),
    /// What is meant could not be clarified.
    #[error(transparent)]
    Clarify(#[from] ClarifyError),
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
        /// How often a planner has tried to fix it.
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
        /// Why, as far as the calls of its tools show it.
        cause: String,
    },
    /// The plan was edited while it was challenged.
    #[error("the plan of `{change}` was edited while it was being challenged")]
    StaleVerdict {
        /// The change.
        change: ChangeId,
    },
    /// Another agent has taken over, which needs another prompt.
    #[error("{to} has taken over from {from}")]
    HandedOver {
        /// Who has dropped out.
        from: AgentKind,
        /// Who takes over.
        to: AgentKind,
    },
    /// An agent waits for an answer (G6).
    #[error("{asker} asks: {question}")]
    Unanswered {
        /// The change.
        change: ChangeId,
        /// Who asks.
        asker: String,
        /// What, in one line.
        question: String,
    },
    /// Author and reviewer are from one vendor, and the project forbids that (T4).
    #[error("{author} and {reviewer} {why}, and policy.independent_review is \"require\"")]
    NotIndependent {
        /// Who writes.
        author: Role,
        /// Who reviews.
        reviewer: Role,
        /// Why they do not count as independent.
        why: NotIndependent,
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
        /// The command that asks for one.
        review: Command,
    },
    /// The change is not in a phase in which it can be implemented (WF4).
    #[error("ChangeNotReady: `{change}` is {phase}")]
    ChangeNotReady {
        /// The change.
        change: ChangeId,
        /// Where it stands.
        phase: Phase,
    },
    /// The code of a change, or its documents, were edited since they were approved.
    #[error("`{change}` is complete, and was edited since")]
    EditedSince {
        /// The change.
        change: ChangeId,
        /// What was edited.
        stale: Vec<Stale>,
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
    /// A bug cannot be fixed by its test where no tests can be run.
    #[error("no tests can be run, so a test for the bug of `{change}` proves nothing")]
    NoTests {
        /// The change.
        change: ChangeId,
    },
    /// The tests fail before the test for a bug is there.
    #[error("the tests fail already, before there is one for the bug of `{change}`")]
    TestsFailing {
        /// The change.
        change: ChangeId,
    },
    /// The implementer has written no test that fails.
    #[error("no test shows the bug of `{change}`: {why}")]
    NotReproduced {
        /// The change.
        change: ChangeId,
        /// What was seen instead.
        why: &'static str,
    },
    /// A task was asked for that the plan does not have.
    #[error("`{change}` has no task {task}")]
    NoSuchTask {
        /// The change.
        change: ChangeId,
        /// The task.
        task: TaskId,
    },
    /// The change may cost more than is spent without asking (W8).
    #[error("`{change}` may cost {cost}, which is above ${limit:.2}")]
    AboveAskLimit {
        /// The change.
        change: ChangeId,
        /// What it may cost.
        cost: String,
        /// From where on a person has to agree.
        limit: f64,
        /// The command that was given, without the name of the program.
        plan: Vec<String>,
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
    /// Whether the session to resume is gone or was never known. A list of sessions that could
    /// not be read says nothing about that (E2.8).
    pub(super) fn is_lost_session(&self) -> bool {
        match self {
            Self::Step(StepError::Session(error)) => {
                matches!(error, SessionError::NotFound { .. } | SessionError::NotStored)
            }
            Self::Step(StepError::Agent { failure, .. }) => {
                failure.kind == FailureKind::SessionNotFound
            }
            _ => false,
        }
    }
}

impl Explain for WorkflowError {
    fn explain(&self) -> ErrorReport {
        let report = |kind| ErrorReport::of(kind, self);
        let report = match self {
            Self::Step(error) => error.explain(),
            Self::Documents(error) => error.explain(),
            Self::Git(error) => error.explain(),
            Self::Clarify(error) => error.explain(),
            Self::NoAgent(_) => report(Kind::AgentNotInstalled)
                .run("install one, then check", CommandLine::agentd(["doctor"]))
                .hint(BY_RULES),
            Self::Context(_) => report(Kind::Context),
            Self::Format { change, reports, rounds } => {
                explain_format(report(Kind::FormatInvalid), change, reports, *rounds)
            }
            Self::VerdictUnknown { change, step, agent, cause } => {
                let tool =
                    if *step == StepName::Review { "create_review" } else { "append_review" };
                report(Kind::VerdictUnknown)
                    .cause(format!("{agent} has given no verdict to `{tool}`: {cause}"))
                    .run("ask again", CommandLine::agentd([&step.to_string(), change.as_str()]))
                    .hint(newest_run(change))
                    .run("check that the MCP server starts", CommandLine::agentd(["doctor"]))
                    .hint("nothing was approved: only a review through the tool counts")
            }
            Self::StaleVerdict { change } => report(Kind::StaleVerdict)
                .cause("a verdict applies only to the plan that was reviewed")
                .run("challenge it again", challenge(change)),
            Self::HandedOver { .. } => report(Kind::AgentFailed),
            Self::Unanswered { change, .. } => {
                report(Kind::Refused).run("answer it", &Command::Decide.on(change))
            }
            Self::NotIndependent { reviewer, .. } => report(Kind::NotIndependent)
                .cause("an agent reviewing its own work shares its blind spots")
                .edit(format!("set [roles] {reviewer} to another agent"), "agentd/config.toml")
                .set("or allow it", "policy", "independent_review", "warn"),
            Self::SpecCycle { .. } => report(Kind::SpecCycle)
                .cause("there is no order in which they could be written")
                .edit("remove a `depends` from affected_specs", "proposal.md"),
            Self::NoReview { change, review } => {
                report(Kind::NoReview).run("ask for one first", &review.on(change))
            }
            Self::NoDocument { change, .. } => {
                report(Kind::NoDocument).run("write it first", plan(change))
            }
            Self::ChangeNotReady { change, phase } => {
                explain_not_ready(report(Kind::ChangeNotReady), change, *phase)
            }
            Self::EditedSince { change, stale } => report(Kind::ReviewStale)
                .cause(staleness::listed(stale))
                .hint("undo the edit")
                .run("or go back to planning", &Command::Revise.on(change)),
            Self::TasksLeft { change, .. } => report(Kind::TasksLeft)
                .cause("they are not checked off, or were checked off without being done")
                .hint(newest_run(change))
                .run("do them by hand and check them off in tasks.md, then", implement(change))
                .run("or ask again", implement(change)),
            Self::NoTests { .. } => report(Kind::NoTests)
                .set("say how they are run", "implementation", "test_command", "…")
                .hint("then run the same command again"),
            Self::TestsFailing { change } => report(Kind::TestsFailing)
                .cause("a test for the bug could not be told from those that fail anyway")
                .run("see what failed", CommandLine::agentd(["log", change.as_str()]))
                .run("fix them, then", implement(change)),
            Self::NotReproduced { change, .. } => report(Kind::NotReproduced)
                .hint(newest_run(change))
                .run("ask again", implement(change))
                .run(
                    "or say more about the bug",
                    CommandLine::agentd(["revise", change.as_str()])
                        .placeholder("\"<how it shows>\""),
                ),
            Self::AboveAskLimit { plan, .. } => {
                let with = |flag: &str| {
                    let words = plan.iter().map(String::as_str).chain([flag]);
                    CommandLine::agentd(words)
                };
                let is_plan = plan.first().is_some_and(|word| word == "plan");
                let forecast = is_plan.then(|| with("--forecast"));
                report(Kind::AboveAskLimit)
                    .cause("`[budget] ask_above_usd` wants a person to agree to it first")
                    .hints(forecast.map(|line| Hint::run("see what it is made of", line)))
                    .run("agree to it", with("--yes"))
                    .edit("or raise ask_above_usd in [budget]", "agentd/config.toml")
            }
            Self::NoSuchTask { change, .. } => report(Kind::NoSuchTask).run(
                "see which tasks there are",
                CommandLine::agentd(["show", change.as_str(), "tasks"]),
            ),
        };
        if report.kind == Kind::Interrupted {
            return report.hint("nothing is lost: run the same command again to resume");
        }
        report
    }
}

fn plan(change: &ChangeId) -> CommandLine {
    CommandLine::agentd(["plan", change.as_str()])
}

fn challenge(change: &ChangeId) -> CommandLine {
    CommandLine::agentd(["challenge", change.as_str()])
}

fn implement(change: &ChangeId) -> CommandLine {
    CommandLine::agentd(["impl", change.as_str()])
}

fn explain_not_ready(report: ErrorReport, change: &ChangeId, phase: Phase) -> ErrorReport {
    let report = report.cause(match phase {
        Phase::Challenged => "nothing of it is implemented yet",
        _ => "only a change with an approved plan can be implemented",
    });
    match phase {
        Phase::Complete => report
            .run("it is complete; archive it", CommandLine::agentd(["archive", change.as_str()])),
        Phase::Archived => report.hint("it is archived already"),
        Phase::Challenged => report.run("implement it first", implement(change)),
        Phase::Rejected => report.run("edit the plan, then", challenge(change)),
        Phase::Proposed | Phase::Implementing => report.run("plan it first", plan(change)),
    }
}

fn newest_run(change: &ChangeId) -> String {
    format!("see what it did in the newest file of agentd/changes/{change}/runs/")
}

fn explain_format(
    report: ErrorReport,
    change: &ChangeId,
    reports: &[FileReport],
    rounds: u32,
) -> ErrorReport {
    let counts = check::counts(reports);
    let found =
        format!("{} HIGH, {} MEDIUM, {} LOW findings", counts.high, counts.medium, counts.low);
    let all = || reports.iter().flat_map(|report| &report.diagnostics);
    let circle = all().find(|finding| finding.rule.code == rules::TASK_CYCLE.code);
    let cause = match (circle, rounds) {
        (Some(circle), _) => format!("{}; {found}", circle.message),
        (None, 0) => found,
        (None, _) => format!("the planner could not fix it by itself; {found}"),
    };
    let worst = all().min_by_key(|finding| Diagnostic::severity(finding));
    let explain = worst.map(|worst| {
        Hint::run("see what it means", CommandLine::agentd(["explain", worst.rule.code]))
    });
    report
        .cause(cause)
        .edit("edit the documents by hand", format!("agentd/changes/{change}/"))
        .run("check them", CommandLine::agentd(["validate", change.as_str()]))
        .hints(explain)
        .run("then continue", challenge(change))
}
