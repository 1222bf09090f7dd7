//! The prompts of a workflow, filled in from the files of the change.

use agentd_core::check::FileReport;
use agentd_core::document::comments::Comment;
use agentd_core::document::issue_fate::{IssueFate, fates};
use agentd_core::document::review::Review;
use agentd_core::document::review_block::ReviewBlock;
use agentd_core::document::spec::Spec;
use agentd_core::document::tasks::Task;
use agentd_core::ids::{Layer, RequirementId, SpecId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::prompt::{
    Challenge, CommentView, Fix, FormatFix, FreshReproposal, Implement, ImplementAgain, IssueView,
    NewPlan, Reproduce, Reproduced, Reproposal, Review as ReviewCode, Reviewed, SelfReview,
    SpecGen, SpecView, TaskView, TasksGen, TestEvidence,
};
use agentd_core::revision::Difference;
use agentd_core::step_name::StepName;

use super::generate::spec_order;
use super::implement::{read_tasks, referred};
use super::{Workflow, WorkflowError, bug_test, decisions, revision};
use crate::agents::context;
use crate::change::comments;
use crate::change::documents;
use crate::guard::sandbox;
use crate::insight::overlap;

/// How many other open changes a planner's prompt lists.
const OTHERS: usize = 40;

/// What the person has asked for.
pub(super) fn description(workflow: &Workflow<'_>) -> Result<String, WorkflowError> {
    Ok(workflow.state()?.description.map(|text| text.to_string()).unwrap_or_default())
}

fn clarified(workflow: &Workflow<'_>) -> Result<bool, WorkflowError> {
    workflow.has(&ChangeFile::Clarifications)
}

/// The prompt of a step that writes a document.
pub(super) fn generate(workflow: &Workflow<'_>, step: &StepName) -> Result<String, WorkflowError> {
    let (change, clarified) = (&workflow.change, clarified(workflow)?);
    Ok(match step {
        StepName::SpecGen(spec) => {
            let order = spec_order(workflow)?;
            let number = order.iter().position(|id| id == spec).unwrap_or(0);
            let edits_main_spec =
                documents::load_main_spec(&workflow.agents.project, spec).text().is_some();
            SpecGen {
                change,
                spec,
                number: number + 1,
                total: order.len(),
                earlier: &order[..number],
                clarified,
                edits_main_spec,
            }
            .render()
        }
        StepName::TasksGen => {
            let documents = workflow.documents()?;
            let outdated = if documents.has(&ChangeFile::Tasks) {
                let main = documents::main_specs_for(&workflow.agents.project, &documents);
                let mut outdated = documents.outdated_tasks(&main);
                outdated.extend(removed_with_code(workflow)?);
                outdated
            } else {
                Vec::new()
            };
            let specs = &spec_order(workflow)?;
            TasksGen { change, specs, clarified, outdated: &outdated }.render()
        }
        _ => {
            let project = &workflow.agents.project;
            let new_plan = NewPlan {
                change,
                description: &description(workflow)?,
                clarified,
                main_specs: &context::main_specs(project)?,
                overlaps: &overlap::open_ground(project, change, OTHERS)?,
                track: workflow.state()?.track,
            };
            match step {
                StepName::PlanGen => new_plan.render_plan(),
                _ => new_plan.render_proposal(),
            }
        }
    })
}

/// The requirements that are gone and have code, with what is to be done about it (W2).
fn removed_with_code(workflow: &Workflow<'_>) -> Result<Vec<String>, WorkflowError> {
    let snapshot = workflow.snapshot()?;
    let changes = revision::changes(&snapshot, snapshot.state()?).unwrap_or_default();
    let gone = changes.specs.into_iter().filter(|(_, how)| *how == Difference::Removed);
    Ok(gone
        .map(|(what, _)| format!("{what} was removed: add a task that removes its code"))
        .collect())
}

/// The prompt of a self-review.
pub(super) fn self_review(
    workflow: &Workflow<'_>,
    step: &StepName,
) -> Result<String, WorkflowError> {
    let order: Vec<SpecId> = match step {
        StepName::ProposalReview => Vec::new(),
        _ => spec_order(workflow)?,
    };
    let reviewed = match step {
        StepName::SpecReview(id) => {
            let number = order.iter().position(|spec| spec == id).unwrap_or(0);
            Reviewed::Spec { id, earlier: &order[..number] }
        }
        StepName::TasksReview => Reviewed::Tasks { specs: &order },
        StepName::PlanReview => Reviewed::Plan { specs: &order },
        _ => Reviewed::Proposal,
    };
    let (description, clarified) = (description(workflow)?, clarified(workflow)?);
    let change = &workflow.change;
    Ok(SelfReview { change, reviewed, description: &description, clarified }.render())
}

/// The prompt that asks for the repair of what validation has found.
pub(super) fn format_fix(workflow: &Workflow<'_>, reports: &[FileReport]) -> String {
    FormatFix { change: &workflow.change, reports }.render()
}

/// The prompt of the challenger, with what is still open of earlier rounds.
pub(super) fn challenge(workflow: &Workflow<'_>) -> Result<String, WorkflowError> {
    let specs = spec_order(workflow)?;
    let documents = workflow.documents()?;
    let (earlier, settled) = earlier_issues(&fates(documents.reviews()));
    let (change, clarified) = (&workflow.change, clarified(workflow)?);
    let (specs, earlier, settled) = (&specs, &earlier, &settled);
    let snapshot = workflow.snapshot()?;
    let changes = revision::since_verdict(&snapshot, snapshot.state()?);
    let changed = &changes.map(|changes| changes.lines()).unwrap_or_default();
    Ok(Challenge { change, specs, clarified, earlier, settled, changed }.render())
}

/// The issues of earlier rounds that a reviewer has to look at, and those that are settled, which
/// may be back.
fn earlier_issues(fates: &[IssueFate<'_>]) -> (Vec<IssueView>, Vec<IssueView>) {
    let (settled, open): (Vec<_>, Vec<_>) = fates.iter().partition(|known| known.fate.is_settled());
    let views = |known: Vec<&IssueFate<'_>>| known.into_iter().map(IssueView::from).collect();
    (views(open), views(settled))
}

/// Why a plan is revised: a review, or what a person asks for.
#[derive(Clone, Copy)]
pub(super) struct RevisionReason<'r> {
    pub(super) review: Option<&'r ReviewBlock>,
    pub(super) request: Option<&'r str>,
}

/// The prompt that asks for a revision of the plan, of a session that knows it.
pub(super) fn reproposal(
    workflow: &Workflow<'_>,
    reason: RevisionReason<'_>,
) -> Result<String, WorkflowError> {
    revised(workflow, reason, |reproposal| Ok(reproposal.render()))
}

/// The same for a new session, which is given the plan as well (C31).
pub(super) fn fresh_reproposal(
    workflow: &Workflow<'_>,
    reason: RevisionReason<'_>,
) -> Result<String, WorkflowError> {
    let plan = workflow.documents()?;
    let specs = spec_order(workflow)?.into_iter().map(ChangeFile::Spec);
    let files = [ChangeFile::Proposal].into_iter().chain(specs).chain([ChangeFile::Tasks]);
    let documents: Vec<(String, &str)> = files
        .filter_map(|file| {
            let path = format!("{}/{}", layout::change_dir(&workflow.change), file.path());
            Some((path, plan.get(&file).text()?))
        })
        .collect();
    let (description, clarified) = (description(workflow)?, clarified(workflow)?);
    revised(workflow, reason, |reproposal| {
        let (description, documents) = (&*description, &*documents);
        Ok(FreshReproposal { reproposal, description, clarified, documents }.render())
    })
}

fn revised(
    workflow: &Workflow<'_>,
    reason: RevisionReason<'_>,
    render: impl FnOnce(Reproposal<'_>) -> Result<String, WorkflowError>,
) -> Result<String, WorkflowError> {
    let RevisionReason { review, request } = reason;
    let issues = review.iter().flat_map(|review| &review.issues);
    let issues: Vec<IssueView> = issues.map(IssueView::from).collect();
    let comments = comment_views(workflow, &comments::open(&workflow.change()?)?)?;
    let state = workflow.state()?;
    let notes = review.into_iter().flat_map(|review| decisions::notes(&state, review));
    let notes = notes.map(|made| made.note.as_str());
    let note: Vec<&str> = notes.chain(request).collect();
    let (change, note) = (&workflow.change, &*note.join("\n"));
    render(Reproposal { change, issues: &issues, comments: &comments, note })
}

/// The prompt of the implementer for a layer.
pub(super) fn implement(
    workflow: &Workflow<'_>,
    layer: Layer,
    open: &[Task],
) -> Result<String, WorkflowError> {
    let tasks = task_views(open);
    let specs = spec_views(workflow, Some(open))?;
    let commands = &workflow.agents.config.implementation;
    Ok(Implement {
        change: &workflow.change,
        layer,
        tasks: &tasks,
        specs: &specs,
        rules: &rules(workflow),
        test_command: commands.test_command.as_deref(),
        lint_command: commands.lint_command.as_deref(),
        build_command: commands.build_command.as_deref(),
        sandbox: &sandbox::for_prompt(workflow.agents),
    }
    .render())
}

/// The prompt that asks for a test that shows a bug. `passed`: what was written does not.
pub(super) fn reproduce(
    workflow: &Workflow<'_>,
    open: &[Task],
    passed: bool,
) -> Result<String, WorkflowError> {
    let (tasks, specs) = (task_views(open), spec_views(workflow, Some(open))?);
    let implementation = &workflow.agents.config.implementation;
    Ok(Reproduce {
        change: &workflow.change,
        description: &description(workflow)?,
        tasks: &tasks,
        specs: &specs,
        rules: &rules(workflow),
        test_command: implementation.test_command.as_deref().unwrap_or_default(),
        sandbox: &sandbox::for_prompt(workflow.agents),
        passed,
    }
    .render())
}

/// How the project is built, as it says itself.
fn rules(workflow: &Workflow<'_>) -> String {
    let project = &workflow.agents.project;
    project.dir().read_to_string(&layout::project_context()).unwrap_or_default()
}

/// The prompt that asks for what was left of a layer.
pub(super) fn implement_again(workflow: &Workflow<'_>, layer: Layer, left: &[Task]) -> String {
    let tasks = task_views(left);
    ImplementAgain { change: &workflow.change, layer, tasks: &tasks }.render()
}

/// The prompt of the reviewer.
pub(super) fn review(
    workflow: &Workflow<'_>,
    diff: &str,
    rounds: &[Review],
) -> Result<String, WorkflowError> {
    let tasks = task_views(&read_tasks(workflow)?);
    let specs = spec_views(workflow, None)?;
    let tests = test_evidence(workflow)?;
    let state = workflow.state()?;
    let output = state.reproduction.as_ref().map(|seen| seen.run.output_tail.to_string());
    let changed = bug_test::changed(workflow.agents.project.root(), &state);
    let reproduced = output.as_deref().map(|output| Reproduced { output, changed: &changed });
    let (earlier, settled) = earlier_issues(&fates(rounds));
    Ok(ReviewCode {
        change: &workflow.change,
        specs: &specs,
        tasks: &tasks,
        diff,
        tests: tests.as_ref(),
        reproduced,
        earlier: &earlier,
        settled: &settled,
    }
    .render())
}

/// The prompt that asks for fixes of what a code review found, and of what people say.
pub(super) fn fix(
    workflow: &Workflow<'_>,
    review: Option<&Review>,
    open: &[Comment],
) -> Result<String, WorkflowError> {
    let findings = review.iter().flat_map(|review| &review.issues);
    let findings: Vec<IssueView> = findings.map(IssueView::from).collect();
    let comments = comment_views(workflow, open)?;
    let tests = test_evidence(workflow)?;
    let sandbox = sandbox::for_prompt(workflow.agents);
    let (change, tests) = (&workflow.change, tests.as_ref());
    let (findings, comments, sandbox) = (&*findings, &*comments, &*sandbox);
    Ok(Fix { change, findings, comments, tests, sandbox }.render())
}

fn comment_views(
    workflow: &Workflow<'_>,
    comments: &[Comment],
) -> Result<Vec<CommentView>, WorkflowError> {
    let (project, change) = (&workflow.agents.project, workflow.change()?);
    let view = |comment: &Comment| CommentView {
        id: format!("C{}", comment.number),
        author: comment.by.to_string(),
        place: comments::place(project, &change, comment),
        text: comment.text.to_string(),
    };
    Ok(comments.iter().map(view).collect())
}

fn task_views(tasks: &[Task]) -> Vec<TaskView> {
    tasks.iter().map(TaskView::from).collect()
}

/// The specs of the change, or what tasks refer to in them and in the main specs.
fn spec_views(
    workflow: &Workflow<'_>,
    tasks: Option<&[Task]>,
) -> Result<Vec<SpecView>, WorkflowError> {
    let documents = workflow.documents()?;
    let Some(tasks) = tasks else {
        let specs = documents.planned_specs();
        return Ok(specs.map(|(id, spec)| SpecView::whole(id, spec)).collect());
    };
    let mut views = Vec::new();
    for (id, wanted) in referred(tasks) {
        let spec_view = |spec: &Spec| match &wanted {
            Some(wanted) => SpecView::part(&id, spec, wanted),
            None => SpecView::whole(&id, spec),
        };
        let main = documents::load_main_spec(&workflow.agents.project, &id);
        let own = documents.specs.get(&id).and_then(|spec| spec.value_if_there());
        let main = main.value_if_there();
        let Some(mut view) = own.or(main).map(spec_view) else { continue };
        if let (Some(own), Some(main)) = (own, main) {
            // What the change leaves as it is stands in the main spec only.
            let has = |id: RequirementId| own.requirements.iter().any(|r| r.id == id);
            let missing = wanted.iter().flatten().copied().filter(|id| !has(*id)).collect();
            view.requirements.extend(SpecView::part(&id, main, &missing).requirements);
        }
        views.push(view);
    }
    Ok(views)
}

fn test_evidence(workflow: &Workflow<'_>) -> Result<Option<TestEvidence>, WorkflowError> {
    Ok(workflow.state()?.test_run.map(|run| TestEvidence {
        command: run.command,
        exit_code: run.exit_code,
        seconds: run.duration_ms / 1000,
        output: run.output_tail.to_string(),
    }))
}
