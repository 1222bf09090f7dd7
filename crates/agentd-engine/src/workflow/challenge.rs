//! The challenge: another agent looks for what is wrong with the plan. Its verdict is
//! what it gave to the tool, bound to the plan that it saw, and nothing else.

use agentd_core::agent::Role;
use agentd_core::config::Rechallenge;
use agentd_core::document::issue_fate::{fates, in_words};
use agentd_core::document::review_block::{self, PlanVerdict, ReviewBlock};
use agentd_core::document::round;
use agentd_core::hash::Digest;
use agentd_core::layout::ChangeFile;
use agentd_core::phase::{Phase, Transition};
use agentd_core::state::{State, is_independent};
use agentd_core::step_name::StepName;

use super::clarify;
use super::generate::write_context;
use super::provenance::{authors_of, last_actor};
use super::report::{Found, StepSummary};
use super::{Action, Call, Mode, Report, Verdict, Workflow, WorkflowError, format, prompts};
use crate::agents::context::ContextKind;
use crate::agents::receipts;
use crate::agents::step::{Artifact, StepError};

/// Challenges the plan, unless a verdict on this very plan waits to be taken. The
/// structure check of P21 comes first: nobody is paid for reading what cannot be worked with.
pub fn challenge(workflow: &mut Workflow<'_>) -> Result<Report, WorkflowError> {
    let (agents, now) = (workflow.agents, (workflow.now)());
    if clarify::adopt(&agents.project, &workflow.change, &agents.holder, now)?.is_some() {
        workflow.forget();
        workflow.note(&clarify::adopted(&workflow.change));
    }
    workflow.check_record()?;
    if let Err(waiting) = workflow.unanswered() {
        return workflow.or_waiting(Err(waiting));
    }
    format::must_be_valid(workflow, Mode::HumanInLoop)?;
    challenge_valid(workflow)
}

/// The same for a plan that was just found valid.
pub(super) fn challenge_valid(workflow: &mut Workflow<'_>) -> Result<Report, WorkflowError> {
    workflow.history()?;
    let plan = workflow.documents()?.digest();
    let state = workflow.state()?;
    state.may_be_challenged(&plan)?;
    workflow.check_independence(Role::Planner, Role::Challenger)?;
    if stands(workflow, &state)? {
        return retake(workflow, plan);
    }
    match unread_verdict(workflow)? {
        None => ask(workflow)?,
        Some(review) => {
            workflow.note("a review of this plan is there already; taking its verdict");
            workflow.show_found(Found::in_plan(&review));
        }
    }
    take_verdict(workflow)?;
    workflow.report(Action::Challenged)
}

/// Whether this very plan was approved, before somebody went back to planning.
fn stands(workflow: &Workflow<'_>, state: &State) -> Result<bool, WorkflowError> {
    let documents = workflow.documents()?;
    let review = documents.counted_review(state);
    let is_approved = review.is_some_and(|review| review.verdict == PlanVerdict::Approved);
    Ok(is_approved && state.phase == Phase::Proposed)
}

/// Approves a plan by the verdict that it has: nothing of it has changed (W2).
fn retake(workflow: &mut Workflow<'_>, plan: Digest) -> Result<Report, WorkflowError> {
    workflow.note("this plan was approved before, and is the same");
    workflow.update(|state| {
        let Some(known) = state.plan_review.clone() else { return Ok(()) };
        let (verdict, reviewer, at) = (known.verdict, known.reviewer.clone(), known.at);
        *state = state.apply(&Transition::PlanReviewed { verdict, plan, reviewer, at })?;
        state.plan_review = Some(known);
        Ok(())
    })?;
    workflow.report(Action::Challenged)
}

/// The review of the plan as it is that the last call of a challenger wrote, where the state does
/// not know of it yet: agentd may have been killed between the tool and the record. A block that
/// this call did not write is nobody's verdict, no matter whom it names (T1).
fn unread_verdict(workflow: &Workflow<'_>) -> Result<Option<ReviewBlock>, WorkflowError> {
    let documents = workflow.documents()?;
    let Some(review) = documents.standing_review() else { return Ok(None) };
    let (project, change) = (&workflow.agents.project, workflow.change()?);
    let (hash, plan) = (review.hash(), documents.digest());
    let proven = receipts::proves(project, &change, Role::Challenger, &hash, &plan)?;
    Ok(proven.then(|| review.clone()))
}

fn ask(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    write_context(workflow, ContextKind::Challenger)?;
    let round = workflow.documents()?.reviews().len();
    if round == 0 {
        write_skeleton(workflow)?;
    }
    let again = workflow.agents.config.workflow.rechallenge == Rechallenge::Resume;
    let resume = if again && round > 0 { last_session(&workflow.state()?) } else { None };
    let label =
        if round == 0 { "Challenge".to_owned() } else { format!("Challenge {}", round + 1) };
    let prompt = prompts::challenge(workflow)?;
    let call = Call {
        step: StepName::Challenge,
        role: Role::Challenger,
        label,
        prompt,
        resume,
        artifact: Artifact::PlanReview,
    };
    let result = workflow.run(call, |report| {
        let review = report.after.documents.reviews().last();
        let verdict = review.map(|review| Verdict::Plan(review.verdict));
        let text = review.map(verdict_line).unwrap_or_default();
        StepSummary { text, verdict, found: review.and_then(Found::in_plan) }
    });
    match result {
        Err(WorkflowError::Step(StepError::NoArtifact { agent, cause, .. })) => {
            let (change, step) = (workflow.change.clone(), StepName::Challenge);
            Err(WorkflowError::VerdictUnknown { change, step, agent, cause })
        }
        result => result.map(|_| ()),
    }
}

/// Writes CHALLENGE.md before there is a review to render it from (C33). From then on it is the
/// report of the latest one (C8), and stays that during the next.
fn write_skeleton(workflow: &Workflow<'_>) -> Result<(), WorkflowError> {
    let text = review_block::render_skeleton(&workflow.change);
    let (project, holder) = (&workflow.agents.project, &workflow.agents.holder);
    let lock = project.write_lock(&workflow.change, holder)?;
    Ok(workflow.change()?.write(&lock, &ChangeFile::Challenge, text.as_bytes())?)
}

/// The session of the last challenge (C27).
fn last_session(state: &State) -> Option<String> {
    state.llm_calls.iter().rfind(|call| call.step == StepName::Challenge)?.session_id.clone()
}

/// Moves the phase by the verdict that stands in proposal.md.
fn take_verdict(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let Some(review) = unread_verdict(workflow)? else {
        return Err(WorkflowError::StaleVerdict { change: workflow.change.clone() });
    };
    let Some(plan) = review.plan.clone() else {
        return Err(WorkflowError::StaleVerdict { change: workflow.change.clone() });
    };
    let round = workflow.change()?.read_if_exists(&ChangeFile::Round(review.iteration))?;
    let round_hash = round.filter(|text| is_of(text, &plan)).map(Digest::of);
    let at = review.date.unwrap_or_else(|| (workflow.now)());
    workflow.update(|state| {
        let (verdict, reviewer) = (review.verdict, review.reviewer.clone());
        *state = state.apply(&Transition::PlanReviewed { verdict, plan, reviewer, at })?;
        let authors = authors_of(state, Role::Planner);
        let challenger = last_actor(state, &StepName::Challenge);
        if let Some(recorded) = &mut state.plan_review {
            recorded.run = challenger.as_ref().and_then(|(_, run)| *run);
            recorded.review_hash = Some(review.hash());
            recorded.round_hash = round_hash;
            recorded.challenger = challenger.map(|(actor, _)| actor);
            recorded.independent =
                recorded.challenger.as_ref().map(|actor| is_independent(&authors, actor));
            recorded.authors = authors;
        }
        state.last_action = Some(StepName::Challenge.into());
        Ok(())
    })?;
    workflow.close_receipt()?;
    report_fates(workflow)
}

/// Whether this is the record of a plan.
fn is_of(round: &str, plan: &Digest) -> bool {
    round::parse(round).is_some_and(|round| round.plan.as_ref() == Some(plan))
}

/// Reports what the challenger has said of earlier issues, from the second round on.
fn report_fates(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let documents = workflow.documents()?;
    let fates = fates(documents.reviews());
    let words = in_words(fates.iter().map(|known| (known.issue.number, known.fate)));
    if !words.is_empty() {
        workflow.note(&format!("issues {words}"));
    }
    Ok(())
}

/// The verdict in one line, with the words of P22.
pub(super) fn verdict_line(review: &ReviewBlock) -> String {
    let counts = review.counts();
    let label = review.verdict.label();
    match review.verdict {
        PlanVerdict::Approved => {
            let rules_only = Verdict::Plan(review.verdict).rules_only(&review.reviewer);
            format!("{label} - {}", rules_only.unwrap_or("Ready for implementation!"))
        }
        PlanVerdict::NeedsRevision => format!(
            "{label} - Found {} HIGH, {} MEDIUM, {} LOW severity issues",
            counts.high, counts.medium, counts.low
        ),
        PlanVerdict::Rejected => format!("{label} - Fundamental problems"),
    }
}
