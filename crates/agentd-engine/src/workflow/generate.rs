//! Writing a plan: proposal, specs in their order, tasks, each in a fresh session and
//! each reviewed once more by its planner (PR1.1, PR2.3); or all of it in one session.

use agentd_core::agent::Role;
use agentd_core::complexity::{self, ChangeFacts};
use agentd_core::config::Generation;
use agentd_core::documents::Documents;
use agentd_core::graph;
use agentd_core::ids::SpecId;
use agentd_core::layout::ChangeFile;
use agentd_core::next_step::Command;
use agentd_core::outcome::ReviewMark;
use agentd_core::provider::sessions::SessionError;
use agentd_core::state::{Ranges, Track};
use agentd_core::step_name::StepName;
use agentd_core::text::counted;

use super::history::{History, PastRun};
use super::outlook::spec_label;
use super::{Action, Call, Progress, Report, Workflow, WorkflowError, format, prompts};
use crate::agents::context::{self, ContextKind, Tree};
use crate::agents::step::Artifact;
use crate::change::documents::main_specs_for;
use crate::insight::forecast::{self, Wanted};

/// What is said of a change that touches no spec (PR4.2).
const NO_SPECS: &str = "No specs required for this change";

/// Writes what is missing of a plan, and says what its structure check found (PR7).
pub fn propose(workflow: &mut Workflow<'_>) -> Result<Report, WorkflowError> {
    report_existing(workflow)?;
    if let Err(error) = generate(workflow) {
        return workflow.or_waiting(Err(error));
    }
    let counts = format::check(workflow)?.counts;
    if counts.high > 0 {
        let found = counted(counts.high, "HIGH finding");
        let text = format!("the plan has {found}: {}", Command::Validate.on(&workflow.change));
        workflow.warn(&text);
    }
    workflow.report(Action::Proposed)
}

/// Writes every document of the plan that is not there, and runs the self-reviews that
/// were not run.
pub(super) fn generate(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    while let Some(missing) = missing(workflow)? {
        write(workflow, &missing)?;
    }
    Ok(())
}

/// A document that is generated and reviewed.
#[derive(Debug)]
pub(super) struct PlanDocument {
    file: ChangeFile,
    generate: StepName,
    review: StepName,
    label: String,
}

/// What is missing of a plan: one call of the planner.
#[derive(Debug)]
pub(super) enum Missing {
    /// All documents, in one session.
    Plan,
    /// A document; why it is written again, if it is there.
    Document(PlanDocument, Option<String>),
    /// A review of a document by its planner, in this round.
    Review(PlanDocument, u32),
    /// A review of all documents in the session that wrote them, in this round.
    PlanReview(u32),
}

impl Missing {
    /// The step that is called for.
    pub(super) fn step(&self) -> StepName {
        match self {
            Self::Plan => StepName::PlanGen,
            Self::Document(part, _) => part.generate.clone(),
            Self::Review(part, _) => part.review.clone(),
            Self::PlanReview(_) => StepName::PlanReview,
        }
    }
}

/// The documents of a plan in the order in which they are written, as far as the proposal says
/// which there are.
fn parts(workflow: &Workflow<'_>) -> Result<Vec<PlanDocument>, WorkflowError> {
    let mut parts = vec![PlanDocument {
        file: ChangeFile::Proposal,
        generate: StepName::ProposalGen,
        review: StepName::ProposalReview,
        label: "Proposal".to_owned(),
    }];
    if !workflow.has(&ChangeFile::Proposal)? {
        return Ok(parts);
    }
    let specs = spec_order(workflow)?;
    let total = specs.len();
    parts.extend(specs.into_iter().enumerate().map(|(index, spec)| PlanDocument {
        file: ChangeFile::Spec(spec.clone()),
        generate: StepName::SpecGen(spec.clone()),
        review: StepName::SpecReview(spec.clone()),
        label: spec_label(&spec, index + 1, total),
    }));
    parts.push(PlanDocument {
        file: ChangeFile::Tasks,
        generate: StepName::TasksGen,
        review: StepName::TasksReview,
        label: "Tasks".to_owned(),
    });
    Ok(parts)
}

/// What is to be written next; nothing if the plan is whole.
pub(super) fn missing(workflow: &Workflow<'_>) -> Result<Option<Missing>, WorkflowError> {
    let history = workflow.history()?;
    let settings = &workflow.agents.config.workflow;
    let quick = workflow.state()?.track != Track::Full;
    let one_shot = quick || settings.generation == Generation::OneShot;
    if one_shot && !workflow.has(&ChangeFile::Proposal)? {
        return Ok(Some(Missing::Plan));
    }
    for part in parts(workflow)? {
        if !workflow.has(&part.file)? {
            return Ok(Some(Missing::Document(part, None)));
        }
        if part.file == ChangeFile::Tasks
            && let Some(why) = tasks_are_outdated(workflow, &history)?
        {
            return Ok(Some(Missing::Document(part, Some(why))));
        }
        // If somebody else has written it, there is no planner who could look again.
        if one_shot || history.last(&part.generate).is_none() {
            continue;
        }
        let reviewed = history.succeeded_since(&part.review, &part.generate);
        if let Some(round) = next_round(&reviewed, settings.self_review_iterations) {
            return Ok(Some(Missing::Review(part, round)));
        }
    }
    if one_shot && !quick {
        let reviewed = history.succeeded_since(&StepName::PlanReview, &StepName::PlanGen);
        let round = next_round(&reviewed, settings.self_review_iterations);
        return Ok(round.map(Missing::PlanReview));
    }
    Ok(None)
}

/// The next round of self-reviews, if there is one: they end with the first that finds nothing, or at
/// their limit (C1).
fn next_round(done: &[&PastRun], rounds: u32) -> Option<u32> {
    let mark = |run: &PastRun| run.end.as_ref().and_then(|end| end.outcome.review);
    if done.last().is_some_and(|run| mark(run) != Some(ReviewMark::NeedsRevision)) {
        return None;
    }
    let next = u32::try_from(done.len()).unwrap_or(u32::MAX).saturating_add(1);
    (next <= rounds).then_some(next)
}

/// Has what is missing written, by one call of the planner.
pub(super) fn write(workflow: &mut Workflow<'_>, missing: &Missing) -> Result<(), WorkflowError> {
    begin(workflow)?;
    match missing {
        Missing::Plan => plan_at_once(workflow),
        Missing::Document(part, why) => write_document(workflow, part, why.as_deref()),
        Missing::Review(part, round) => self_review(workflow, part, *round),
        Missing::PlanReview(round) => review_at_once(workflow, *round),
    }
}

/// What comes before every step of a plan, if it was not done.
pub(super) fn begin(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    recover_session(workflow)?;
    assess(workflow)
}

/// Reports which documents exist already, to a person who starts a workflow again.
pub(super) fn report_existing(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    let quick = workflow.state()?.track != Track::Full;
    let one_shot = quick || workflow.agents.config.workflow.generation == Generation::OneShot;
    if one_shot && !workflow.has(&ChangeFile::Proposal)? {
        return Ok(());
    }
    let parts = match parts(workflow) {
        // Reported when they are to be written in an order.
        Err(WorkflowError::SpecCycle { .. }) => return Ok(()),
        parts => parts?,
    };
    for part in &parts {
        if workflow.has(&part.file)? {
            let (step, label) = (&part.generate, &*part.label);
            (workflow.watch)(Progress::Skipped { step, label, why: "it is written already" });
        }
        let is_proposal = part.file == ChangeFile::Proposal;
        if is_proposal && parts.len() == 2 && workflow.has(&ChangeFile::Tasks)? {
            workflow.note(NO_SPECS);
        }
    }
    Ok(())
}

/// Says how hard the change is, once: the models of all steps are chosen by it (C14).
fn assess(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    if workflow.state()?.complexity.is_some() {
        return Ok(());
    }
    let description = prompts::description(workflow)?;
    let known = ChangeFacts {
        description: &description,
        project_files: Tree::scan(workflow.agents.project.root()).files(),
    };
    let (complexity, reasons) = complexity::assess(&known);
    let forecast = expected(workflow)?;
    workflow.update(|state| {
        state.complexity = Some(complexity);
        state.forecast = forecast;
        Ok(())
    })?;
    let name = complexity.name();
    let reasons =
        if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
    workflow.note(&format!("complexity: {name}{reasons}"));
    Ok(())
}

/// What the change is expected to use in the end: kept, so that it can be compared with what it did
/// use (W8). Nothing where agentd itself plans, which costs nothing.
fn expected(workflow: &Workflow<'_>) -> Result<Option<Ranges>, WorkflowError> {
    let agents = workflow.agents;
    if agents.config.roles.planner.is_own() {
        return Ok(None);
    }
    let (documents, state) = (workflow.documents()?, workflow.state()?);
    let wanted = Wanted { description: None, questions: false, track: None };
    let rest =
        forecast::of_documents(&agents.project, &agents.config, &documents, Some(&state), wanted);
    Ok(rest.map(|rest| forecast::with_spent(&state, &rest.forecast.ranges)))
}

/// Why the tasks are not those of the specs, after a revision. Asked once for each revision, and only
/// of tasks that a planner wrote: those of a person are theirs.
fn tasks_are_outdated(
    workflow: &Workflow<'_>,
    history: &History,
) -> Result<Option<String>, WorkflowError> {
    let writes_tasks = |step: &StepName| matches!(step, StepName::TasksGen | StepName::PlanGen);
    let written = history.last_success(writes_tasks);
    if written == 0 || history.last_success(|step| *step == StepName::Reproposal) < written {
        return Ok(None);
    }
    let documents = workflow.documents()?;
    let reasons = documents.outdated_tasks(&main_specs_for(&workflow.agents.project, &documents));
    Ok(reasons.first().map(|first| match reasons.len() - 1 {
        0 => first.clone(),
        more => format!("{first} (and {more} more)"),
    }))
}

/// The specs that the proposal names, dependencies first (C16, C17).
pub(super) fn spec_order(workflow: &Workflow<'_>) -> Result<Vec<SpecId>, WorkflowError> {
    let proposal = workflow.proposal()?;
    graph::spec_order(&proposal.value().affected_specs)
        .map_err(|circle| WorkflowError::SpecCycle { circle })
}

/// Has a document written.
fn write_document(
    workflow: &mut Workflow<'_>,
    part: &PlanDocument,
    again: Option<&str>,
) -> Result<(), WorkflowError> {
    if let Some(why) = again {
        workflow.note(&format!("tasks.md is written again: {why}"));
    }
    if part.file == ChangeFile::Tasks && spec_order(workflow)?.is_empty() {
        workflow.note(NO_SPECS);
    }
    if !std::mem::replace(&mut workflow.context_is_new, true) {
        write_context(workflow, ContextKind::Planner)?;
    }
    let report = workflow.run(
        Call {
            step: part.generate.clone(),
            role: Role::Planner,
            label: part.label.clone(),
            prompt: prompts::generate(workflow, &part.generate)?,
            resume: None,
            artifact: Artifact::File(part.file.clone()),
        },
        |_| format!("{} is written", part.file.path()),
    )?;
    if part.file == ChangeFile::Proposal && report.outcome.session_id.is_none() {
        // What was written stays; nothing can resume a session without its ID (C5).
        return Err(SessionError::NotCaptured.into());
    }
    Ok(())
}

/// agentd may have been killed between the proposal and its record: the run file knows
/// the session.
fn recover_session(workflow: &Workflow<'_>) -> Result<(), WorkflowError> {
    if workflow.state()?.session_id.is_some() || !workflow.has(&ChangeFile::Proposal)? {
        return Ok(());
    }
    let history = workflow.history()?;
    let steps = [StepName::ProposalGen, StepName::PlanGen];
    let session = steps.iter().find_map(|step| history.last(step)?.session_id.clone());
    if let Some(session) = session {
        workflow.update(|state| {
            state.session_id = Some(session);
            Ok(())
        })?;
    }
    Ok(())
}

/// Has the planner look at its document with fresh eyes. It fixes what it finds by itself; agentd
/// checks whether it did.
fn self_review(
    workflow: &mut Workflow<'_>,
    part: &PlanDocument,
    round: u32,
) -> Result<(), WorkflowError> {
    let label = format!("{}, review", part.label);
    let mark = review_once(workflow, &part.review, label, None, round, &part.file)?;
    let rounds = workflow.agents.config.workflow.self_review_iterations;
    if mark == Some(ReviewMark::NeedsRevision) && round == rounds {
        warn_of_the_last_review(workflow, part.file.path().as_str(), round);
    }
    Ok(())
}

/// The limit of rounds is no failure: the challenge is still to come (PR2.3).
fn warn_of_the_last_review(workflow: &mut Workflow<'_>, what: &str, round: u32) {
    workflow.warn(&format!(
        "{what}: the planner still found something in review {round}, the last one; continuing"
    ));
}

/// One round of self-review.
fn review_once(
    workflow: &mut Workflow<'_>,
    step: &StepName,
    label: String,
    resume: Option<String>,
    round: u32,
    file: &ChangeFile,
) -> Result<Option<ReviewMark>, WorkflowError> {
    let before = workflow.documents()?;
    let prompt = prompts::self_review(workflow, step)?;
    let of_all = *step == StepName::PlanReview;
    let same = |after: &Documents| after.get(file) == before.get(file);
    let report = workflow.run(
        Call {
            step: step.clone(),
            role: Role::Planner,
            label,
            prompt,
            resume,
            artifact: Artifact::Nothing,
        },
        |report| match report.outcome.review {
            Some(ReviewMark::Pass) => format!("Review {round}: PASS"),
            Some(ReviewMark::NeedsRevision) if of_all || !same(&report.after.documents) => {
                format!("Review {round}: NEEDS_REVISION (auto-fixed)")
            }
            Some(ReviewMark::NeedsRevision) => {
                format!("Review {round}: NEEDS_REVISION (nothing was changed)")
            }
            None => format!("Review {round}: no marker, taken as PASS"),
        },
    )?;
    let mark = report.outcome.review;
    if mark.is_none() {
        workflow.warn(&format!("{step} ended without a review marker; it is taken as PASS"));
    }
    let after = &report.after.documents;
    let unchanged = if of_all { after.changed_since(&before).is_empty() } else { same(after) };
    if mark == Some(ReviewMark::NeedsRevision) && unchanged {
        workflow.warn(&format!("{step} asked for a revision and changed nothing"));
    }
    Ok(mark)
}

/// The opt-in way: one session writes all documents.
fn plan_at_once(workflow: &mut Workflow<'_>) -> Result<(), WorkflowError> {
    write_context(workflow, ContextKind::Planner)?;
    let report = workflow.run(
        Call {
            step: StepName::PlanGen,
            role: Role::Planner,
            label: "Plan".to_owned(),
            prompt: prompts::generate(workflow, &StepName::PlanGen)?,
            resume: None,
            artifact: Artifact::File(ChangeFile::Proposal),
        },
        |_| "proposal.md is written".to_owned(),
    )?;
    if report.outcome.session_id.is_none() {
        return Err(SessionError::NotCaptured.into());
    }
    Ok(())
}

/// One review of all documents, in the session that wrote them (C2, C3).
fn review_at_once(workflow: &mut Workflow<'_>, round: u32) -> Result<(), WorkflowError> {
    let Some(session) = workflow.state()?.session_id else {
        return Err(SessionError::NotCaptured.into());
    };
    let (step, label) = (StepName::PlanReview, "Plan, review".to_owned());
    let mark = review_once(workflow, &step, label, Some(session), round, &ChangeFile::Proposal)?;
    let rounds = workflow.agents.config.workflow.self_review_iterations;
    if mark == Some(ReviewMark::NeedsRevision) && round == rounds {
        warn_of_the_last_review(workflow, "the plan", round);
    }
    Ok(())
}

/// Writes a context again and reports what did not fit.
pub(super) fn write_context(
    workflow: &mut Workflow<'_>,
    kind: ContextKind,
) -> Result<(), WorkflowError> {
    let agents = workflow.agents;
    let description = prompts::description(workflow)?;
    let budget = agents.config.workflow.context_bytes;
    let (project, holder) = (&agents.project, &agents.holder);
    let written =
        context::write(project, &workflow.documents()?, kind, &description, budget, holder)?;
    if !written.left_out.is_empty() {
        let text = format!("left out of {}: {}", kind.file().path(), written.left_out.join("; "));
        workflow.note(&text);
    }
    Ok(())
}
