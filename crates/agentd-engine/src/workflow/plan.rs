//! `plan`: from one sentence to an approved plan.

use agentd_core::document::issue_fate::made_progress;
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::phase::Phase;
use agentd_core::state::{Choice, State};
use agentd_core::step_name::StepName;
use agentd_core::text::counted;

use super::challenge::challenge_valid;
use super::decisions::{self, NewDecision, PlanChoice};
use super::format::{self, Format};
use super::generate::{self, Missing};
use super::report::Found;
use super::reproposal::revise;
use super::{Action, PlannerSession, Report, Rounds, Verdict, Workflow, WorkflowError, revision};

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A person, at every gate.
    HumanInLoop,
    /// The configuration.
    Automatic,
}

/// What to do where the session of the planner is gone (C31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostSession {
    /// A person is there to be asked.
    Ask,
    /// Begin a new one, with a warning. Without a person that is what is always done.
    Fresh,
    /// It is an error.
    Fail,
}

/// What [`plan`] came to.
#[derive(Debug)]
pub enum Planned {
    /// As far as it gets.
    Done(Box<Report>),
    /// A person has to answer first.
    Ask(LostSessionQuestion),
}

/// Whether to begin a new session of the planner. To accept is to plan again with
/// [`LostSession::Fresh`].
#[derive(Debug)]
pub struct LostSessionQuestion(WorkflowError);

impl LostSessionQuestion {
    /// What it means to stop here.
    pub fn decline(self) -> WorkflowError {
        self.0
    }
}

/// What comes next for a plan. Each but the last is at most one call of an agent.
#[derive(Debug)]
pub(super) enum PlanStep {
    /// A document is written, or reviewed by its planner.
    Write(Missing),
    /// The planner repairs what the check of the plan has found, in this round.
    Repair(u32),
    /// The plan is challenged, or a verdict that was given is taken.
    Challenge,
    /// The planner revises the plan.
    Repropose,
    /// The plan is taken with its minor issues, as the configuration says (C11).
    Accept,
    /// Nothing more can be done without a person, or nothing is left to do.
    Stop(Stop),
}

/// Where a plan stops.
#[derive(Debug)]
pub(super) struct Stop {
    /// How it is reported.
    pub(super) action: Action,
    /// What a person should know about it.
    why: Option<String>,
    /// Whether it stops because its documents are not valid, which is an error.
    invalid: bool,
}

impl Stop {
    /// What a person has to decide, in a few words.
    pub(super) fn says(&self) -> String {
        match (&self.why, self.action) {
            (Some(why), _) => why.clone(),
            (None, Action::Rejected) => "its plan is rejected".to_owned(),
            (None, _) if self.invalid => "its documents break rules".to_owned(),
            (None, _) => "its plan needs revision".to_owned(),
        }
    }
}

impl From<Action> for PlanStep {
    fn from(action: Action) -> Self {
        Self::Stop(Stop { action, why: None, invalid: false })
    }
}

/// Takes a change as far as it gets without a person, or as far as `mode` allows.
pub fn plan(
    workflow: &mut Workflow<'_>,
    mode: Mode,
    lost: LostSession,
) -> Result<Planned, WorkflowError> {
    let session = match (mode, lost) {
        (Mode::Automatic, _) | (_, LostSession::Fresh) => PlannerSession::ResumeOrFresh,
        (Mode::HumanInLoop, LostSession::Ask | LostSession::Fail) => PlannerSession::Resume,
    };
    let report = go_on(workflow, mode, session);
    match workflow.or_waiting(report) {
        Err(error) if lost == LostSession::Ask && error.is_lost_session() => {
            Ok(Planned::Ask(LostSessionQuestion(error)))
        }
        report => report.map(|report| Planned::Done(Box::new(report))),
    }
}

fn go_on(
    workflow: &mut Workflow<'_>,
    mode: Mode,
    session: PlannerSession,
) -> Result<Report, WorkflowError> {
    workflow.check_record()?;
    workflow.warn_of_overlaps()?;
    if workflow.state()?.phase == Phase::Proposed {
        generate::report_existing(workflow)?;
    }
    let rounds = Rounds::of_this_command(workflow)?;
    loop {
        let step = next(workflow, mode, rounds)?;
        if let Some(report) = perform(workflow, step, mode, session)? {
            return Ok(report);
        }
    }
}

/// Does what comes next. Returns a report where a person should see what came of it.
pub(super) fn perform(
    workflow: &mut Workflow<'_>,
    step: PlanStep,
    mode: Mode,
    session: PlannerSession,
) -> Result<Option<Report>, WorkflowError> {
    if workflow.state()?.phase == Phase::Proposed {
        generate::begin(workflow)?;
    }
    match step {
        PlanStep::Write(missing) => generate::write(workflow, &missing)?,
        PlanStep::Repair(round) => format::repair(workflow, round)?,
        PlanStep::Challenge => {
            format::must_be_valid(workflow, mode)?;
            let report = challenge_valid(workflow)?;
            let revise = report.verdict == Some(Verdict::Plan(PlanVerdict::NeedsRevision));
            return Ok(Some(report).filter(|_| mode == Mode::HumanInLoop || !revise));
        }
        PlanStep::Repropose => {
            // A person who decides has seen them.
            if mode == Mode::Automatic
                && let Some(review) = workflow.documents()?.reviews().last()
            {
                let found = Found::in_plan(review);
                workflow.show_unless_shown(found);
            }
            let revised = revise(workflow, session)?;
            workflow.note(revised.says);
            workflow.report(Action::Reproposed)?;
        }
        PlanStep::Accept => {
            let (project, holder) = (&workflow.agents.project, &workflow.agents.holder);
            let (note, now) = ("workflow.accept_minor", (workflow.now)());
            let accept = NewDecision { choice: PlanChoice::Accept, note, by: "agentd", seen: None };
            decisions::decide(project, &workflow.change, &accept, holder, now)?;
            workflow.forget();
            return workflow.report(Action::AcceptedMinor).map(Some);
        }
        PlanStep::Stop(Stop { action, why, invalid }) => {
            if invalid {
                format::must_be_valid(workflow, mode)?;
            }
            if let Some(why) = why {
                workflow.warn(&why);
            }
            return workflow.report(action).map(Some);
        }
    }
    Ok(None)
}

/// What comes next for a plan, by its phase and its documents (C19).
pub(super) fn next(
    workflow: &Workflow<'_>,
    mode: Mode,
    rounds: Rounds,
) -> Result<PlanStep, WorkflowError> {
    workflow.unanswered()?;
    let state = workflow.state()?;
    match state.phase {
        Phase::Proposed => proposed(workflow, mode, rounds, &state),
        // A rejection stands until the plan is another one (C20).
        Phase::Rejected if decisions::is_reviewed(&state, &workflow.documents()?) => {
            Ok(Action::Rejected.into())
        }
        Phase::Challenged if decisions::is_reviewed(&state, &workflow.documents()?) => {
            Ok(Action::AlreadyChallenged.into())
        }
        // A text that was edited since is not the one that was approved (C39).
        Phase::Rejected | Phase::Challenged => for_challenge(workflow, mode, rounds),
        Phase::Implementing | Phase::Complete | Phase::Archived => {
            Ok(Action::BeyondPlanning.into())
        }
    }
}

/// What comes next for a plan that is to be challenged: it has to be valid first.
fn for_challenge(
    workflow: &Workflow<'_>,
    mode: Mode,
    rounds: Rounds,
) -> Result<PlanStep, WorkflowError> {
    Ok(match format::look(workflow, mode, rounds)? {
        Format::Valid => PlanStep::Challenge,
        Format::Repair(round) => PlanStep::Repair(round),
        Format::Invalid => {
            PlanStep::Stop(Stop { action: Action::Proposed, why: None, invalid: true })
        }
    })
}

/// What comes next for a plan that is proposed.
fn proposed(
    workflow: &Workflow<'_>,
    mode: Mode,
    rounds: Rounds,
    state: &State,
) -> Result<PlanStep, WorkflowError> {
    if let Some(missing) = generate::missing(workflow)? {
        return Ok(PlanStep::Write(missing));
    }
    let history = workflow.history()?;
    let documents = workflow.documents()?;
    let reviews = documents.reviews();
    // A reproposal that was cut short may have changed half of what it meant to.
    if !reviews.is_empty() && history.interrupted_since(&StepName::Reproposal, &StepName::Challenge)
    {
        return Ok(PlanStep::Repropose);
    }
    if revision::asked(state, &history).is_some() {
        return Ok(PlanStep::Repropose);
    }
    let Some(review) = documents.counted_review(state) else {
        // Its review may be gone; what was rejected is rejected (C20).
        return if state.may_be_challenged(&documents.digest()).is_ok() {
            for_challenge(workflow, mode, rounds)
        } else {
            Ok(Action::Rejected.into())
        };
    };
    match (review.verdict, mode) {
        // Somebody went back to planning, and has changed nothing.
        (PlanVerdict::Approved, _) => for_challenge(workflow, mode, rounds),
        (PlanVerdict::Rejected, _) => Ok(Action::Rejected.into()),
        (PlanVerdict::NeedsRevision, Mode::HumanInLoop) => decided(workflow, state),
        (PlanVerdict::NeedsRevision, Mode::Automatic) => automatic(workflow, state, reviews),
    }
}

/// What follows from what a person has decided about the plan.
fn decided(workflow: &Workflow<'_>, state: &State) -> Result<PlanStep, WorkflowError> {
    Ok(match decisions::decided(state, &workflow.documents()?) {
        Some(Choice::Fix) => PlanStep::Repropose,
        Some(
            Choice::Accept
            | Choice::Stop
            | Choice::Revise
            | Choice::Drop
            | Choice::Archive
            | Choice::AcceptStale
            | Choice::Answer,
        )
        | None => Action::WaitingForDecision.into(),
    })
}

/// What the configuration says about a plan that needs revision (C11, C12).
fn automatic(
    workflow: &Workflow<'_>,
    state: &State,
    reviews: &[ReviewBlock],
) -> Result<PlanStep, WorkflowError> {
    let settings = &workflow.agents.config.workflow;
    let (limit, accept_minor) = (settings.planning_iterations, settings.accept_minor);
    let stuck = !made_progress(reviews);
    let rounds = revision::rounds(state, &workflow.history()?);
    if rounds < limit && !stuck {
        return Ok(PlanStep::Repropose);
    }
    if accept_minor && decisions::accepted(state, &workflow.documents()?).is_ok() {
        return Ok(PlanStep::Accept);
    }
    let why = if stuck {
        "the last round has settled none of the issues; another one would not either".to_owned()
    } else {
        format!("the plan still needs revision after {}", counted(limit as usize, "round"))
    };
    Ok(PlanStep::Stop(Stop { action: Action::StillNeedsRevision, why: Some(why), invalid: false }))
}
