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
use super::{Action, Call, Progress, Report, Workflow, WorkflowError, format, prompts};
use crate::agents::context::{self, ContextKind, Tree};
use crate::agents::step::Artifact;
use crate::change::documents::main_specs_for;
use crate::insight::forecast::{self, Wanted};

/// Whether to report which documents exist already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// To a person who starts a workflow again.
    Reported,
    /// From the second round of a workflow on.
    Silent,
}

/// Writes what is missing of a plan, and says what its structure check found (PR7).
pub fn propose(workflow: &mut Workflow<'_>) -> Result<Report, WorkflowError> {
    generate(workflow, Existing::Reported)?;
    let counts = format::check(workflow)?.counts;
    if counts.high > 0 {
        let found = counted(counts.high, "HIGH finding");
        let text = format!("the plan has {found}: {}", Command::Validate.on(&workflow.change));
        workflow.warn(&text);
    }
    workflow.report(Action::Proposed)
}

/// A document that is generated and reviewed.
struct PlanDocument {
    file: ChangeFile,
    generate: StepName,
    review: StepName,
    label: String,
}

/// How the documents of a plan are written.
struct PlanWriter {
    found: Existing,
    /// Whether each is reviewed by its planner.
    review: bool,
    /// Whether the context was written in this round.
    context_is_new: bool,
    /// A document that is there and has to be written again.
    outdated: Option<ChangeFile>,
}

/// Writes every document of the plan that is not there, and runs the self-reviews that
/// were not run.
pub(super) fn generate(
    workflow: &mut Workflow<'_>,
    mut found: Existing,
) -> Result<(), WorkflowError> {
    let history = workflow.history()?;
    recover_session(workflow, &history)?;
    assess(workflow)?;
    let quick = workflow.state()?.track != Track::Full;
    let one_shot = quick || workflow.agents.config.workflow.generation == Generation::OneShot;
    if one_shot && !workflow.has(&ChangeFile::Proposal)? {
        plan_at_once(workflow)?;
        found = Existing::Silent;
    }
    let mut writing =
        PlanWriter { found, review: !one_shot, context_is_new: false, outdated: None };
    let proposal = PlanDocument {
        file: ChangeFile::Proposal,
        generate: StepName::ProposalGen,
        review: StepName::ProposalReview,
        label: "Proposal".to_owned(),
    };
    write_part(workflow, &history, &proposal, &mut writing)?;
    let specs = spec_order(workflow)?;
    if specs.is_empty() && found == Existing::Reported {
        workflow.note("No specs required for this change");
    }
    let total = specs.len();
    for (index, spec) in specs.into_iter().enumerate() {
        let part = PlanDocument {
            file: ChangeFile::Spec(spec.clone()),
            generate: StepName::SpecGen(spec.clone()),
            review: StepName::SpecReview(spec.clone()),
            label: format!("Spec {}/{total}: {spec}", index + 1),
        };
        write_part(workflow, &history, &part, &mut writing)?;
    }
    let tasks = PlanDocument {
        file: ChangeFile::Tasks,
        generate: StepName::TasksGen,
        review: StepName::TasksReview,
        label: "Tasks".to_owned(),
    };
    if tasks_are_outdated(workflow, &history)? {
        writing.outdated = Some(ChangeFile::Tasks);
    }
    write_part(workflow, &history, &tasks, &mut writing)?;
    if one_shot && !quick {
        review_at_once(workflow, &history)?;
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
        if reasons.is_empty() { "nothing special".to_owned() } else { reasons.join(", ") };
    workflow.note(&format!("complexity: {name} ({reasons})"));
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

/// Whether a revision has left tasks that are not those of the specs. Asked once for each
/// revision, and only of tasks that a planner wrote: those of a person are theirs.
fn tasks_are_outdated(
    workflow: &mut Workflow<'_>,
    history: &History,
) -> Result<bool, WorkflowError> {
    let writes_tasks = |step: &StepName| matches!(step, StepName::TasksGen | StepName::PlanGen);
    let written = history.last_success(writes_tasks);
    if written == 0 || history.last_success(|step| *step == StepName::Reproposal) < written {
        return Ok(false);
    }
    let documents = workflow.documents()?;
    if !documents.has(&ChangeFile::Tasks) {
        return Ok(false);
    }
    let reasons = documents.outdated_tasks(&main_specs_for(&workflow.agents.project, &documents));
    if let Some(first) = reasons.first() {
        let more = match reasons.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        workflow.note(&format!("tasks.md is written again: {first}{more}"));
    }
    Ok(!reasons.is_empty())
}

/// The specs that the proposal names, dependencies first (C16, C17).
pub(super) fn spec_order(workflow: &Workflow<'_>) -> Result<Vec<SpecId>, WorkflowError> {
    let proposal = workflow.proposal()?;
    graph::spec_order(&proposal.value().affected_specs)
        .map_err(|circle| WorkflowError::SpecCycle { circle })
}

/// Writes a document, unless it is there, and has its planner review it.
fn write_part(
    workflow: &mut Workflow<'_>,
    history: &History,
    part: &PlanDocument,
    writing: &mut PlanWriter,
) -> Result<(), WorkflowError> {
    let generate = &part.generate;
    let mut reviewed: Vec<PastRun> = Vec::new();
    let outdated = writing.outdated.as_ref() == Some(&part.file);
    if !outdated && workflow.has(&part.file)? {
        let (step, label) = (generate, &*part.label);
        if writing.found == Existing::Reported {
            (workflow.watch)(Progress::Skipped { step, label, why: "it is written already" });
        }
        reviewed = history.succeeded_since(&part.review, generate).into_iter().cloned().collect();
        if history.last(generate).is_none() {
            // Somebody else has written it: there is no planner who could look again.
            return Ok(());
        }
    } else {
        if !writing.context_is_new {
            write_context(workflow, ContextKind::Planner)?;
            writing.context_is_new = true;
        }
        let is_proposal = part.file == ChangeFile::Proposal;
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
        if is_proposal && report.outcome.session_id.is_none() {
            // What was written stays; nothing can resume a session without its ID (C5).
            return Err(SessionError::NotCaptured.into());
        }
    }
    if writing.review { self_review(workflow, part, &reviewed) } else { Ok(()) }
}

/// agentd may have been killed between the proposal and its record: the run file knows
/// the session.
fn recover_session(workflow: &Workflow<'_>, history: &History) -> Result<(), WorkflowError> {
    if workflow.state()?.session_id.is_some() || !workflow.has(&ChangeFile::Proposal)? {
        return Ok(());
    }
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

/// Has the planner look at its document with fresh eyes, up to the configured number of
/// rounds (C1). It fixes what it finds by itself; agentd checks whether it did.
fn self_review(
    workflow: &mut Workflow<'_>,
    part: &PlanDocument,
    done: &[PastRun],
) -> Result<(), WorkflowError> {
    let mark = |run: &PastRun| run.end.as_ref().and_then(|end| end.outcome.review);
    if done.last().is_some_and(|run| mark(run) != Some(ReviewMark::NeedsRevision)) {
        return Ok(());
    }
    let rounds = workflow.agents.config.workflow.self_review_iterations;
    let first = u32::try_from(done.len()).unwrap_or(u32::MAX).saturating_add(1);
    for round in first..=rounds {
        let label = format!("{}, review", part.label);
        let marked = review_once(workflow, &part.review, label, None, round, &part.file)?;
        if marked != Some(ReviewMark::NeedsRevision) {
            return Ok(());
        }
        if round == rounds {
            warn_of_the_last_review(workflow, part.file.path().as_str(), round);
        }
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
fn review_at_once(workflow: &mut Workflow<'_>, history: &History) -> Result<(), WorkflowError> {
    let Some(session) = workflow.state()?.session_id else {
        return Err(SessionError::NotCaptured.into());
    };
    let rounds = workflow.agents.config.workflow.self_review_iterations;
    let done = history.succeeded_since(&StepName::PlanReview, &StepName::PlanGen);
    let passed = |run: &&PastRun| {
        run.end.as_ref().is_some_and(|end| end.outcome.review != Some(ReviewMark::NeedsRevision))
    };
    if done.last().is_some_and(passed) {
        return Ok(());
    }
    let first = u32::try_from(done.len()).unwrap_or(u32::MAX).saturating_add(1);
    for round in first..=rounds {
        let (step, resume) = (StepName::PlanReview, Some(session.clone()));
        let label = "Plan, review".to_owned();
        let mark = review_once(workflow, &step, label, resume, round, &ChangeFile::Proposal)?;
        if mark != Some(ReviewMark::NeedsRevision) {
            break;
        }
        if round == rounds {
            warn_of_the_last_review(workflow, "the plan", round);
        }
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
