//! One step of a change, for schedulers: exactly the next call of an agent, the next run
//! of the tests, or the archiving; and what comes after it.
//!
//! `plan` and `impl` are loops over the same decisions. Nothing is remembered from one step to the
//! next but in the files of the change, so each may be done by another process on another machine.

use std::fmt;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::phase::Phase;
use agentd_core::step_name::StepName;
use serde::{Serialize, Serializer};

use super::implement::{Asked, TaskSelection, Ticked, commit_done, prove_ticks, start};
use super::implementation::{self, CodeStep};
use super::plan::{self, PlanStep};
use super::{Action, Mode, PlannerSession, Report, Rounds, Workflow, WorkflowError};
use crate::change::staleness;
use crate::insight::forecast;

/// A scheduler of steps has no sessions to offer: the one that is known, or a fresh one (C31).
const SESSION: PlannerSession = PlannerSession::ResumeOrFresh;

/// How far a change is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// To an approved plan.
    Plan,
    /// To approved code.
    Code,
    /// Into the archive.
    Archive,
}

/// How the steps of a change are chosen.
#[derive(Debug, Clone, Copy)]
pub struct Stepping {
    /// Who decides.
    pub mode: Mode,
    /// How far it is taken.
    pub until: Until,
    /// Whether limits that were reached count again from zero: somebody has looked, and wants it tried again.
    pub again: bool,
}

/// What a step is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepKind {
    /// A call of an agent.
    Call(StepName),
    /// A run of the tests.
    Tests,
    /// The archiving.
    Archive,
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(step) => step.fmt(f),
            Self::Tests => f.pad("tests"),
            Self::Archive => f.pad("archive"),
        }
    }
}

impl Serialize for StepKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A step that comes next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComingStep {
    /// What it is.
    pub step: StepKind,
    /// The role of the agent that is called; none where none is.
    pub role: Option<Role>,
    /// That agent.
    pub agent: Option<AgentKind>,
    /// Whose models it uses.
    pub vendor: Option<&'static str>,
    /// What it is expected to cost, in US dollars.
    pub estimate_usd: f64,
}

/// What comes next for a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Coming {
    /// A step, which needs nobody.
    Step(ComingStep),
    /// A person has to decide something first.
    Decision {
        /// What, in a few words.
        why: String,
    },
    /// Nothing is left to do.
    Nothing,
}

/// What is decided to come next.
enum Decided {
    Plan(PlanStep, StepName),
    Code(StepKind),
    Archive,
    Wait(String),
    Done,
}

/// What comes next for a change. Nothing is called.
pub fn coming(workflow: &mut Workflow<'_>, how: Stepping) -> Result<Coming, WorkflowError> {
    let step = match decide(workflow, how)? {
        Decided::Plan(_, call) => StepKind::Call(call),
        Decided::Code(step) => step,
        Decided::Archive => StepKind::Archive,
        Decided::Wait(why) => return Ok(Coming::Decision { why }),
        Decided::Done => return Ok(Coming::Nothing),
    };
    Ok(Coming::Step(described(workflow, step)?))
}

/// Does the next step, except for the archiving, and returns what it was; nothing if a person has to
/// decide first, or nothing is left to do.
pub fn step(workflow: &mut Workflow<'_>, how: Stepping) -> Result<Option<StepKind>, WorkflowError> {
    workflow.check_record()?;
    match decide(workflow, how)? {
        Decided::Plan(step, call) => {
            or_asked(plan::perform(workflow, step, how.mode, SESSION))?;
            Ok(Some(StepKind::Call(call)))
        }
        Decided::Code(_) => {
            let wanted = TaskSelection::Open;
            start(workflow)?;
            prove_ticks(workflow)?;
            commit_done(workflow, &wanted, Ticked::Silent)?;
            // The ticks that were taken back may have changed it.
            let step = implementation::next(workflow, &wanted, rounds(workflow, how)?)?;
            let did = kind_of(&step).ok();
            or_asked(implementation::perform(workflow, step, &wanted))?;
            Ok(did)
        }
        Decided::Archive | Decided::Wait(_) | Decided::Done => Ok(None),
    }
}

/// A step that ends with a question to a person was done as far as it goes.
fn or_asked(done: Result<Option<Report>, WorkflowError>) -> Result<(), WorkflowError> {
    match done {
        Err(WorkflowError::Unanswered { .. }) => Ok(()),
        done => done.map(drop),
    }
}

fn rounds(workflow: &Workflow<'_>, how: Stepping) -> Result<Rounds, WorkflowError> {
    if how.again { Rounds::of_this_command(workflow) } else { Ok(Rounds::ALL) }
}

fn decide(workflow: &mut Workflow<'_>, how: Stepping) -> Result<Decided, WorkflowError> {
    let rounds = rounds(workflow, how)?;
    match workflow.state()?.phase {
        Phase::Proposed | Phase::Rejected | Phase::Challenged => loop {
            let step = match plan::next(workflow, how.mode, rounds) {
                Err(error) if is_for_a_person(&error) => {
                    return Ok(Decided::Wait(error.to_string()));
                }
                step => step?,
            };
            let call = match &step {
                PlanStep::Write(missing) => missing.step(),
                PlanStep::Repair(_) => StepName::FormatFix,
                PlanStep::Challenge => StepName::Challenge,
                PlanStep::Repropose => StepName::Reproposal,
                // Nobody is called for that.
                PlanStep::Accept => {
                    plan::perform(workflow, step, how.mode, SESSION)?;
                    continue;
                }
                PlanStep::Stop(stop) if stop.action == Action::AlreadyChallenged => {
                    if how.until == Until::Plan {
                        return Ok(Decided::Done);
                    }
                    return decide_code(workflow, rounds);
                }
                PlanStep::Stop(stop) => return Ok(Decided::Wait(stop.says())),
            };
            return Ok(Decided::Plan(step, call));
        },
        Phase::Implementing | Phase::Complete if how.until == Until::Plan => Ok(Decided::Done),
        Phase::Implementing => decide_code(workflow, rounds),
        Phase::Complete if how.until == Until::Code => Ok(Decided::Done),
        Phase::Complete => {
            let stale = staleness::stale(&workflow.agents.project, &workflow.snapshot()?)?;
            if stale.is_empty() {
                return Ok(Decided::Archive);
            }
            Ok(Decided::Wait(format!("it was edited since: {}", staleness::listed(&stale))))
        }
        Phase::Archived => Ok(Decided::Done),
    }
}

fn decide_code(workflow: &Workflow<'_>, rounds: Rounds) -> Result<Decided, WorkflowError> {
    let step = match implementation::next(workflow, &TaskSelection::Open, rounds) {
        Err(error) if is_for_a_person(&error) => return Ok(Decided::Wait(error.to_string())),
        step => step?,
    };
    Ok(match kind_of(&step) {
        Ok(kind) => Decided::Code(kind),
        Err(why) => Decided::Wait(why),
    })
}

/// Whether nothing is wrong with the machine, and no other one would get any further.
fn is_for_a_person(error: &WorkflowError) -> bool {
    matches!(
        error,
        WorkflowError::SpecCycle { .. }
            | WorkflowError::Unanswered { .. }
            | WorkflowError::NoTests { .. }
            | WorkflowError::TestsFailing { .. }
            | WorkflowError::NotReproduced { .. }
    )
}

/// What a step for the code is, or why there is none.
fn kind_of(step: &CodeStep) -> Result<StepKind, String> {
    Ok(StepKind::Call(match step {
        CodeStep::Tests => return Ok(StepKind::Tests),
        CodeStep::Reproduce(_) => StepName::Reproduce,
        CodeStep::Implement(layer, Asked::Twice) => {
            return Err(format!("tasks of the {layer} layer are not done"));
        }
        CodeStep::Implement(layer, Asked::Never | Asked::Once) => StepName::Implement(*layer),
        CodeStep::Review => StepName::Review,
        CodeStep::Fix => StepName::Fix,
        CodeStep::Stop { why, .. } => {
            let nothing = || "the last fix has changed nothing".to_owned();
            return Err(why.clone().unwrap_or_else(nothing));
        }
    }))
}

fn described(workflow: &Workflow<'_>, step: StepKind) -> Result<ComingStep, WorkflowError> {
    let agents = workflow.agents;
    let StepKind::Call(name) = &step else {
        let (role, agent, vendor) = (None, None, None);
        return Ok(ComingStep { step, role, agent, vendor, estimate_usd: 0.0 });
    };
    let role = name.role();
    let agent = role.map(|role| workflow.player(role));
    let (change, state) = (workflow.change()?, workflow.state()?);
    let estimate = forecast::of_call(&agents.project, &agents.config, &change, &state, name);
    Ok(ComingStep {
        role,
        agent,
        vendor: role.map(|role| workflow.vendor_of(role)).transpose()?,
        estimate_usd: estimate.unwrap_or(0.0),
        step,
    })
}
