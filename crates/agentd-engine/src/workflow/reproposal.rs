//! Fixing a plan after a review: the planner resumes the session in which it wrote
//! the proposal, with the issues in its prompt (RP). Where that session is gone, a new one that is
//! given the plan takes its place (C31).

use std::collections::BTreeSet;

use agentd_core::agent::Role;
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::document::{proposal, round};
use agentd_core::documents::Documents;
use agentd_core::ids::SpecId;
use agentd_core::issue_places;
use agentd_core::layout::ChangeFile;
use agentd_core::next_step::Command;
use agentd_core::phase::Phase;
use agentd_core::prompt::one_line;
use agentd_core::provider::sessions::SessionError;
use agentd_core::step_name::StepName;
use agentd_core::text::counted;

use super::generate::{self, write_context};
use super::prompts::{self, RevisionReason};
use super::{Action, Call, LOST, OTHERS, Report, Workflow, WorkflowError, revision};
use crate::agents::context::ContextKind;
use crate::agents::step::Artifact;

/// The session in which a plan is revised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannerSession {
    /// The one in which the proposal was written; it is an error if that is gone (E2.7).
    Resume,
    /// The same, or a new one with a warning if that is gone.
    ResumeOrFresh,
    /// A new one.
    Fresh,
}

/// How much of the title of an issue is logged.
const TITLE_BYTES: usize = 80;

/// Has the planner fix what the latest review found, and has written what is missing then.
pub fn repropose(
    workflow: &mut Workflow<'_>,
    session: PlannerSession,
) -> Result<Report, WorkflowError> {
    let report = revise_whole(workflow, session);
    workflow.or_waiting(report)
}

fn revise_whole(
    workflow: &mut Workflow<'_>,
    session: PlannerSession,
) -> Result<Report, WorkflowError> {
    let revised = revise(workflow, session)?;
    if revised.specs == SpecsAfter::Others {
        generate::generate(workflow)?;
    }
    workflow.note(revised.says);
    workflow.report(Action::Reproposed)
}

/// What a revision has come to.
pub(super) struct Revised {
    specs: SpecsAfter,
    /// In one sentence.
    pub(super) says: &'static str,
}

/// Which specs a plan affects after a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpecsAfter {
    /// The same as before.
    Same,
    /// Others: some documents may be missing.
    Others,
}

/// Has the planner fix what the latest review found, by one call.
pub(super) fn revise(
    workflow: &mut Workflow<'_>,
    session: PlannerSession,
) -> Result<Revised, WorkflowError> {
    workflow.check_record()?;
    let history = workflow.history()?;
    let state = workflow.state()?;
    if state.phase != Phase::Proposed {
        return Err(state.refuse("be revised", None).into());
    }
    let before = workflow.documents()?;
    let request = revision::asked(&state, &history);
    let review = before.reviews().last().filter(|review| asks_for_revision(review));
    // After a person went back to planning, only what is found from then on is to be fixed.
    let review = review.filter(|_| request.is_none());
    if review.is_none() && request.is_none() {
        let (change, review) = (workflow.change.clone(), Command::Challenge);
        return Err(WorkflowError::NoReview { change, review });
    }
    let reason = RevisionReason { review, request };
    let mut resumed = match session {
        PlannerSession::Resume => Some(state.session_id.clone().ok_or(SessionError::NotStored)?),
        PlannerSession::ResumeOrFresh => state.session_id.clone(),
        PlannerSession::Fresh => None,
    };
    // Another agent cannot open it.
    let is_own = |session: &String| workflow.is_own_session(Role::Planner, session);
    if resumed.as_ref().is_some_and(|session| !is_own(session)) {
        workflow.warn(OTHERS);
        resumed = None;
    }
    write_context(workflow, ContextKind::Planner)?;
    // A reproposal that was cut short may have done all of it, or a person has: then there
    // may be nothing left to change.
    let reviewed = review.and_then(|review| review.plan.as_ref());
    let is_as_asked = request.is_some() || reviewed == Some(&before.digest());
    let artifact = if is_as_asked { Artifact::Plan } else { Artifact::Nothing };
    let ask = |workflow: &mut Workflow<'_>, resume: Option<String>| {
        let prompt = match resume {
            Some(_) => prompts::reproposal(workflow, reason)?,
            None => prompts::fresh_reproposal(workflow, reason)?,
        };
        workflow.run(
            Call {
                step: StepName::Reproposal,
                role: Role::Planner,
                label: format!("Reproposal {}", state.iteration + 1),
                prompt,
                resume,
                artifact: artifact.clone(),
            },
            |report| {
                let changed = report.after.documents.changed_since(&before).len();
                let changed = format!("{} changed", counted(changed, "file"));
                match review {
                    Some(review) => format!("{}, {changed}", counted(review.issues.len(), "issue")),
                    None => changed,
                }
            },
        )
    };
    let was_resumed = resumed.is_some();
    if !was_resumed && session == PlannerSession::ResumeOrFresh {
        workflow.warn("no session of the planner is known: a fresh one is begun");
    }
    let report = match ask(workflow, resumed) {
        Err(WorkflowError::HandedOver { .. }) => ask(workflow, None),
        Err(error)
            if was_resumed
                && session == PlannerSession::ResumeOrFresh
                && error.is_lost_session() =>
        {
            workflow.warn(LOST);
            ask(workflow, None)
        }
        asked => asked,
    }?;
    if report.outcome.session_id.is_none() {
        // What was written stays, as with a proposal (C5).
        return Err(SessionError::NotCaptured.into());
    }
    log_fixes(workflow, review, &before, &report.after.documents);
    if request.is_some() {
        revision::answered(workflow)?;
    }
    let specs = settle_specs(workflow, &before, review)?;
    let says = match review {
        Some(_) => "Proposal updated based on challenge feedback",
        None => "The plan was revised as asked",
    };
    Ok(Revised { specs, says })
}

/// Reports for each issue what has changed where it points (RP7), and what has changed elsewhere.
/// Whether it is fixed is for the next reviewer to say.
fn log_fixes(
    workflow: &mut Workflow<'_>,
    review: Option<&ReviewBlock>,
    before: &Documents,
    after: &Documents,
) {
    let mut named = Vec::new();
    for issue in review.iter().flat_map(|review| &review.issues) {
        let (words, files) = issue_places::seen(issue.location.as_str(), before, after);
        let title = one_line(issue.title.as_str(), TITLE_BYTES);
        workflow.note(&format!("I{} {title}: {words}", issue.number));
        named.extend(files);
    }
    for file in after.changed_since(before).iter().filter(|file| !named.contains(file)) {
        let also = if review.is_some() { "also " } else { "" };
        workflow.note(&format!("{also}changed: {}", file.path()));
    }
}

/// Where the revision has changed which specs are affected: removes the files of those that were
/// dropped. Dropped are specs that the plan had when it was
/// reviewed, or when the revision began; a file that was never listed is somebody's own.
fn settle_specs(
    workflow: &mut Workflow<'_>,
    before: &Documents,
    review: Option<&ReviewBlock>,
) -> Result<SpecsAfter, WorkflowError> {
    let round = review.map(|review| ChangeFile::Round(review.iteration));
    let change = workflow.change()?;
    let reviewed = round.map(|round| change.read_if_exists(&round)).transpose()?.flatten();
    let reviewed = reviewed.as_deref().and_then(round::parse).unwrap_or_default();
    let reviewed = reviewed.files.get(ChangeFile::Proposal.path().as_str());
    let mut had = before.proposal.value().affected_specs.clone();
    had.extend(reviewed.into_iter().flat_map(|text| proposal::parse(text).value.affected_specs));
    let had: BTreeSet<SpecId> = had.into_iter().map(|spec| spec.id).collect();
    let after = workflow.documents()?;
    let dropped: Vec<SpecId> = had
        .iter()
        .filter(|id| after.specs.contains_key(*id) && !after.lists(id))
        .cloned()
        .collect();
    if !dropped.is_empty() {
        let (project, holder) = (&workflow.agents.project, &workflow.agents.holder);
        let lock = project.write_lock(&workflow.change, holder)?;
        let change = workflow.change()?;
        for id in &dropped {
            for file in [ChangeFile::Spec(id.clone()), ChangeFile::Base(id.clone())] {
                if change.has(&file)? {
                    change.remove(&lock, &file)?;
                }
            }
        }
        drop(lock);
        workflow.forget();
        for id in dropped {
            let file = ChangeFile::Spec(id);
            workflow.note(&format!("removed: {}, which proposal.md no longer lists", file.path()));
        }
    }
    let now: BTreeSet<SpecId> =
        after.proposal.value().affected_specs.iter().map(|spec| spec.id.clone()).collect();
    Ok(if now == had { SpecsAfter::Same } else { SpecsAfter::Others })
}

fn asks_for_revision(review: &ReviewBlock) -> bool {
    match review.verdict {
        PlanVerdict::NeedsRevision | PlanVerdict::Rejected => true,
        // Minor issues of an approved plan can still be fixed until it is implemented.
        PlanVerdict::Approved => !review.issues.is_empty(),
    }
}
