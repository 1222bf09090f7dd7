//! What a change waits for a person to say, one question after the other, for a front end that asks
//! without running the workflow (G6).
//!
//! The questions are those that [`begin`], [`clarify`] and [`decisions`] ask, and their answers go the
//! same way. What is different is the time between: nothing is locked while a person thinks, so an
//! answer counts only if what it is about is still asked, word for word.

use agentd_core::document::clarifications::Answered;
use agentd_core::document::questions::Questions;
use agentd_core::document::review_block::ReviewBlock;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::stamp::Stamp;
use agentd_core::state::{AgentQuestion, Choice, Placement};

use super::begin::{self, PlacementQuestion};
use super::clarify;
use super::decisions::{self, NewAnswer, NewDecision, PlanChoice, PlanQuestion};
use super::{Progress, Workflow, WorkflowError};
use crate::agents::step::Agents;
use crate::change::documents::{self, DocumentError};
use crate::store::{Holder, Project};

/// A question that a change waits with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenQuestion {
    /// An agent has asked it.
    Agent(Box<AgentQuestion>),
    /// What the description leaves open.
    Clarify(Questions),
    /// Where to work on it.
    Placement(PlacementQuestion),
    /// What becomes of a plan that needs revision.
    Plan(Box<PlanToDecide>),
}

/// A plan that needs revision, as a person is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanToDecide {
    /// The question.
    pub question: PlanQuestion,
    /// What the challenger has said.
    pub review: ReviewBlock,
    /// The round that is shown, from [`decisions::seen`].
    pub seen: Digest,
}

/// What a person says to an [`OpenQuestion`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenAnswer {
    /// To an agent, in words.
    Agent(Box<AgentQuestion>, String),
    /// To all that the description leaves open.
    Clarify(Questions, Vec<Answered>),
    /// Where to work.
    Placement(Placement),
    /// What becomes of the plan, and why, or what the planner should know.
    Plan(Box<PlanToDecide>, PlanChoice, String),
}

/// Where answers are recorded.
#[derive(Debug, Clone, Copy)]
pub struct Desk<'d> {
    /// The project that the change lives in.
    pub project: &'d Project,
    /// The change.
    pub change: &'d ChangeId,
    /// What git is asked with; without it, nobody is asked where to work.
    pub agents: Option<&'d Agents>,
    /// Who signs locks.
    pub holder: &'d Holder,
    /// The time.
    pub now: Stamp,
}

/// The question that comes next; none where the change waits for no person. Refused while somebody
/// works on the change: a workflow asks its questions itself.
pub fn next(desk: &Desk<'_>) -> Result<Option<OpenQuestion>, WorkflowError> {
    let Desk { project, change: id, agents, holder, .. } = *desk;
    let change = project.change(id)?;
    let _run = project.try_run_lock(id, holder)?;
    let Some(state) = documents::load_state_if_begun(&change)? else { return Ok(None) };
    if let Some(question) = state.open_question() {
        return Ok(Some(OpenQuestion::Agent(Box::new(question.clone()))));
    }
    if begin::needs_answers(&change, Some(&state))? {
        return Ok(clarify::kept_or_none(project, id)?.map(OpenQuestion::Clarify));
    }
    if let Some(agents) = agents
        && let Some(git) = begin::unplaced(agents, &state)?
    {
        return Ok(Some(OpenQuestion::Placement(begin::placement_question(&git, id)?)));
    }
    let snapshot = change.snapshot()?;
    let (state, documents) = (snapshot.state()?, &snapshot.documents);
    let Ok(question) = decisions::open_question(state, documents) else { return Ok(None) };
    // Then it is the planner's turn. Who has stopped is asked again, as by `agentd plan`.
    if decisions::decided(state, documents) == Some(Choice::Fix) {
        return Ok(None);
    }
    let review = documents.counted_review(state).cloned();
    Ok(review.map(|review| {
        let seen = decisions::seen(documents, &review);
        OpenQuestion::Plan(Box::new(PlanToDecide { question, review, seen }))
    }))
}

/// Records an answer to a question that was shown, in the name of `by`. Returns what there is to know
/// about it.
pub fn answer(desk: &Desk<'_>, given: &OpenAnswer, by: &str) -> Result<Vec<String>, WorkflowError> {
    let Desk { project, change: id, agents, holder, now } = *desk;
    let run = project.try_run_lock(id, holder)?;
    let mut notes = Vec::new();
    match given {
        OpenAnswer::Agent(question, text) => {
            let answer = NewAnswer { text, by, seen: Some(question) };
            decisions::answer(project, id, &answer, holder, now)?;
        }
        OpenAnswer::Clarify(questions, answers) => {
            clarify::write_to_asked(project, questions, answers, holder, now)?;
        }
        OpenAnswer::Plan(plan, choice, note) => {
            let decision = NewDecision { choice: *choice, note, by, seen: Some(&plan.seen) };
            decisions::decide(project, id, &decision, holder, now)?;
        }
        OpenAnswer::Placement(placement) => {
            let gone = || DocumentError::NotAskedAnyMore { change: id.clone() };
            let agents = agents.ok_or_else(gone)?;
            let mut watch = |event: Progress<'_>| {
                if let Progress::Note(text) | Progress::Warning(text) = event {
                    notes.push(text.to_owned());
                }
            };
            let clock = || now;
            let mut workflow = Workflow::new(agents, id.clone(), &clock, &mut watch, &run);
            begin::place(&mut workflow, *placement)?;
        }
    }
    Ok(notes)
}
