//! `plan`: from one sentence to an approved plan.

use agentd_core::document::issue_fate::made_progress;
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::phase::Phase;
use agentd_core::state::{Choice, State};
use agentd_core::step_name::StepName;
use agentd_core::text::counted;

use super::challenge::challenge_valid;
use super::generate::Existing;
use super::revision;
use super::{
    Action, PlannerSession, Report, Verdict, Workflow, WorkflowError, format, generate, repropose,
};
use crate::workflow::decisions::{self, PlanChoice};

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
    Done(Report),
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

/// What is to be done next with a plan whose documents are all there.
enum Next {
    Challenge,
    Repropose,
    Stop(Action),
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
    match go_on(workflow, mode, session) {
        Err(error) if lost == LostSession::Ask && error.is_lost_session() => {
            Ok(Planned::Ask(LostSessionQuestion(error)))
        }
        report => report.map(Planned::Done),
    }
}

fn go_on(
    workflow: &mut Workflow<'_>,
    mode: Mode,
    session: PlannerSession,
) -> Result<Report, WorkflowError> {
    let mut found = Existing::Reported;
    workflow.check_record()?;
    workflow.warn_of_overlaps()?;
    loop {
        let state = workflow.state()?;
        let action = match state.phase {
            Phase::Proposed => {
                match next(workflow, mode, &state, std::mem::replace(&mut found, Existing::Silent))?
                {
                    Next::Stop(action) => action,
                    Next::Challenge => match judged(workflow, mode)? {
                        Some(report) => return Ok(report),
                        None => continue,
                    },
                    Next::Repropose => {
                        repropose(workflow, session)?;
                        continue;
                    }
                }
            }
            // A rejection stands until the plan is another one (C20).
            Phase::Rejected if decisions::is_reviewed(&state, &workflow.documents()?) => {
                Action::Rejected
            }
            Phase::Challenged if decisions::is_reviewed(&state, &workflow.documents()?) => {
                Action::AlreadyChallenged
            }
            // A text that was edited since is not the one that was approved (C39).
            Phase::Rejected | Phase::Challenged => match judged(workflow, mode)? {
                Some(report) => return Ok(report),
                None => continue,
            },
            Phase::Implementing | Phase::Complete | Phase::Archived => Action::BeyondPlanning,
        };
        return workflow.report(action);
    }
}

/// Has a plan challenged that is valid or was made so. Nothing: it needs revision, and
/// nobody has to be asked.
fn judged(workflow: &mut Workflow<'_>, mode: Mode) -> Result<Option<Report>, WorkflowError> {
    let before = workflow.documents()?.digest();
    format::ensure(workflow, mode)?;
    let plan = workflow.documents()?.digest();
    if plan != before && workflow.state()?.may_be_challenged(&plan).is_err() {
        // What was edited is now what was judged.
        return Ok(None);
    }
    let report = challenge_valid(workflow)?;
    let revise = report.verdict == Some(Verdict::Plan(PlanVerdict::NeedsRevision));
    Ok(Some(report).filter(|_| mode == Mode::HumanInLoop || !revise))
}

/// What comes next for a plan that is proposed.
fn next(
    workflow: &mut Workflow<'_>,
    mode: Mode,
    state: &State,
    found: Existing,
) -> Result<Next, WorkflowError> {
    generate::generate(workflow, found)?;
    let history = workflow.history()?;
    let documents = workflow.documents()?;
    let reviews = documents.reviews();
    // A reproposal that was cut short may have changed half of what it meant to.
    if !reviews.is_empty() && history.interrupted_since(&StepName::Reproposal, &StepName::Challenge)
    {
        return Ok(Next::Repropose);
    }
    if revision::asked(state, &history).is_some() {
        return Ok(Next::Repropose);
    }
    let Some(review) = documents.counted_review(state) else {
        // Its review may be gone; what was rejected is rejected (C20).
        let may_be = state.may_be_challenged(&documents.digest()).is_ok();
        return Ok(if may_be { Next::Challenge } else { Next::Stop(Action::Rejected) });
    };
    match (review.verdict, mode) {
        // Somebody went back to planning, and has changed nothing.
        (PlanVerdict::Approved, _) => Ok(Next::Challenge),
        (PlanVerdict::Rejected, _) => Ok(Next::Stop(Action::Rejected)),
        (PlanVerdict::NeedsRevision, Mode::HumanInLoop) => Ok(decided(workflow, state)?),
        (PlanVerdict::NeedsRevision, Mode::Automatic) => automatic(workflow, state, reviews),
    }
}

/// What a person has decided about the plan as it is.
fn decided(workflow: &Workflow<'_>, state: &State) -> Result<Next, WorkflowError> {
    let plan = workflow.documents()?.digest();
    let decision = state.decisions.last().filter(|d| d.plan_hash.as_ref() == Some(&plan));
    Ok(match decision.map(|decision| decision.choice) {
        Some(Choice::Fix) => Next::Repropose,
        Some(
            Choice::Accept
            | Choice::Stop
            | Choice::Revise
            | Choice::Drop
            | Choice::Archive
            | Choice::AcceptStale,
        )
        | None => Next::Stop(Action::WaitingForDecision),
    })
}

/// What the configuration says about a plan that needs revision (C11, C12).
fn automatic(
    workflow: &mut Workflow<'_>,
    state: &State,
    reviews: &[ReviewBlock],
) -> Result<Next, WorkflowError> {
    let settings = &workflow.agents.config.workflow;
    let (limit, accept_minor) = (settings.planning_iterations, settings.accept_minor);
    let stuck = !made_progress(reviews);
    let rounds = revision::rounds(state, &workflow.history()?);
    if rounds < limit && !stuck {
        return Ok(Next::Repropose);
    }
    if accept_minor && decisions::accepted(state, &workflow.documents()?).is_ok() {
        let (project, holder) = (&workflow.agents.project, &workflow.agents.holder);
        let note = "workflow.accept_minor";
        let now = (workflow.now)();
        let accept = PlanChoice::Accept;
        decisions::decide(project, &workflow.change, accept, note, "agentd", holder, now)?;
        workflow.forget();
        return Ok(Next::Stop(Action::AcceptedMinor));
    }
    workflow.warn(&if stuck {
        "the last round has settled none of the issues; another one would not either".to_owned()
    } else {
        format!("the plan still needs revision after {}", counted(limit as usize, "round"))
    });
    Ok(Next::Stop(Action::StillNeedsRevision))
}
