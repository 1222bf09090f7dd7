use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::agent::Complexity;
use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::Counts;
use agentd_core::document::issue_fate::{EarlierIssue, earlier, fates};
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::documents::Documents;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::next_step::{Command, NextStep};
use agentd_core::phase::{Phase, allowed};
use agentd_core::rules;
use agentd_core::stamp::Stamp;
use agentd_core::state::{GitSetup, LastAction, Placement, PlanReview, State};
use agentd_core::text::printable;
use agentd_engine::change::Snapshot;
use agentd_engine::change::documents::{self, DocumentError};
use agentd_engine::change::journal::record_problem;
use agentd_engine::change::staleness::{self, Stale};
use agentd_engine::change::summary::{self, LayerProgress, Progress, Summary};
use agentd_engine::insight::validate;
use agentd_engine::store::Project;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM, Output, Screen};

/// Show where a change stands: phase, verdict, tasks, findings, cost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agentd status add-oauth\n  agentd status --json")]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,
}

/// Where a change stands.
#[derive(Debug, Serialize)]
pub(super) struct StatusReport {
    change_id: ChangeId,
    /// None if no workflow has run on the change yet.
    phase: Option<Phase>,
    title: String,
    created_at: Option<Stamp>,
    updated_at: Option<Stamp>,
    last_action: Option<LastAction>,
    iteration: u32,
    complexity: Option<Complexity>,
    /// The latest verdict on the plan.
    verdict: Option<PlanVerdict>,
    /// The issues of that review.
    issues: Option<Counts>,
    /// What became of the issues of earlier rounds.
    previous: Vec<EarlierIssue>,
    /// Reviews that do not count, since no call that agentd started wrote them.
    foreign_reviews: Vec<String>,
    /// None if the plan was not reviewed.
    plan_changed_since_review: Option<bool>,
    /// What was edited since it was reviewed or tested.
    stale: Vec<Stale>,
    /// Why the record of the change does not match its files, if so.
    record: Option<String>,
    /// What `agentd validate` finds.
    validation: Counts,
    tasks: Progress,
    layers: Vec<LayerProgress>,
    calls: usize,
    cost_usd: f64,
    tokens_in: u64,
    tokens_out: u64,
    /// Where it is worked on; none if git was not asked yet.
    git: Option<GitPlace>,
    next: Vec<NextStep>,
}

/// Where a change is worked on.
#[derive(Debug, Serialize)]
struct GitPlace {
    workflow: Placement,
    /// None in place.
    branch: Option<String>,
    /// The commit that the work starts from; none without git.
    base_commit: Option<String>,
    /// The checkout with its code and its documents.
    work_tree: String,
}

impl GitPlace {
    fn new(project: &Project, setup: &GitSetup) -> Self {
        Self {
            workflow: setup.workflow,
            branch: setup.branch.clone(),
            base_commit: setup.base_commit.clone(),
            work_tree: project.root().display().to_string(),
        }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let snapshot = context.change(&project, args.id.as_deref())?.snapshot()?;
    let extras = documents::load_config(&project)?.extras();
    let reports = validate::validate(&project, &snapshot, &extras);
    let findings = check::counts(&reports);
    let mut report = report(&snapshot, findings, context.now())?;
    let setup = snapshot.state_if_begun()?.and_then(|state| state.git.as_ref());
    report.git = setup.map(|setup| GitPlace::new(&project, setup));
    report.stale = staleness::stale(&project, &snapshot)?;
    report.foreign_reviews = foreign_reviews(&reports);
    report.record = record_problem(&project, &snapshot)?;
    context.ui.print(&report)?;
    Ok(ExitCode::SUCCESS)
}

fn foreign_reviews(reports: &[FileReport]) -> Vec<String> {
    let found = reports.iter().flat_map(|report| {
        let file = report.file.in_change();
        report.diagnostics.iter().map(move |diagnostic| (file, diagnostic))
    });
    let foreign = found.filter(|(_, diagnostic)| *diagnostic.rule == rules::FOREIGN_REVIEW);
    foreign
        .filter_map(|(file, diagnostic)| Some(format!("{}: {}", file?.path(), diagnostic.message)))
        .collect()
}

fn report(
    snapshot: &Snapshot,
    validation: Counts,
    now: Stamp,
) -> Result<StatusReport, DocumentError> {
    let begun = snapshot.state_if_begun()?.cloned();
    let phase = begun.as_ref().map(|state| state.phase);
    // A change that no workflow has touched yet has cost nothing and was judged by nobody.
    let state = begun.unwrap_or_else(|| State::new(snapshot.id().clone(), "", now));
    let review = state.plan_review.as_ref();
    let taken = |known: &&PlanReview| {
        snapshot.documents.reviews().iter().rfind(|review| known.is_of(review))
    };
    let taken = review.as_ref().and_then(taken);
    let summary = Summary::of(snapshot);
    let is_changed = |review: &PlanReview| snapshot.documents.digest() != review.plan_hash;
    let plan_changed_since_review = state.plan_review.as_ref().map(is_changed);
    let next =
        next_steps(&summary, &snapshot.documents, validation.high, plan_changed_since_review);
    Ok(StatusReport {
        change_id: summary.change_id,
        phase,
        title: summary.title,
        created_at: state.created_at,
        updated_at: state.updated_at,
        last_action: state.last_action,
        iteration: state.iteration,
        complexity: state.complexity,
        verdict: review.map(|review| review.verdict),
        issues: taken.map(ReviewBlock::counts),
        previous: earlier(&fates(snapshot.documents.reviews())),
        plan_changed_since_review,
        foreign_reviews: Vec::new(),
        stale: Vec::new(),
        record: None,
        validation,
        tasks: summary.tasks,
        layers: summary::layers(&snapshot.documents),
        calls: state.llm_calls.len(),
        cost_usd: state.total_cost,
        tokens_in: state.total_tokens_in,
        tokens_out: state.total_tokens_out,
        git: None,
        next,
    })
}

impl Output for StatusReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let phase = self.phase.map_or("new", Phase::name);
        writeln!(screen, "{BOLD}{}{BOLD:#}  {phase}", self.change_id)?;
        if !self.title.is_empty() {
            writeln!(screen, "{DIM}{}{DIM:#}", printable(&self.title))?;
        }
        writeln!(screen)?;
        if let (Some(verdict), Some(Counts { high, medium, low })) = (self.verdict, self.issues) {
            let stale = self.plan_changed_since_review == Some(true);
            let stale = if stale { ", of an earlier plan" } else { "" };
            let verdict = verdict.label();
            writeln!(
                screen,
                "review    {verdict}: {high} HIGH, {medium} MEDIUM, {low} LOW{stale}"
            )?;
            for EarlierIssue { id, status, title, .. } in &self.previous {
                let (status, title) = (status.name(), printable(title.as_str()));
                writeln!(screen, "          {id} {status}: {title}")?;
            }
        }
        for review in &self.foreign_reviews {
            writeln!(screen, "ignored   {review}")?;
        }
        for Stale { what, why } in &self.stale {
            writeln!(screen, "stale     {what}: {why}")?;
        }
        if let Some(problem) = &self.record {
            writeln!(screen, "record    {problem}")?;
        }
        let Counts { high, medium, low } = self.validation;
        writeln!(screen, "documents {high} HIGH, {medium} MEDIUM, {low} LOW findings")?;
        writeln!(screen, "tasks     {} of {} done", self.tasks.completed, self.tasks.total)?;
        for LayerProgress { layer, progress: Progress { total, completed } } in &self.layers {
            writeln!(screen, "          {:12} {completed}/{total}", layer.name())?;
        }
        writeln!(
            screen,
            "cost      ${:.4}, {} tokens in, {} out, {} calls",
            self.cost_usd, self.tokens_in, self.tokens_out, self.calls
        )?;
        if let Some(GitPlace { branch: Some(branch), base_commit, work_tree, .. }) = &self.git {
            let base = base_commit.as_deref().map(|commit| commit.get(..10).unwrap_or(commit));
            let base = base.map(|base| format!(" from {base}")).unwrap_or_default();
            let (branch, work_tree) = (printable(branch), printable(work_tree));
            writeln!(screen, "branch    {branch}{base}, in {work_tree}")?;
        }
        if let Some(action) = &self.last_action {
            writeln!(screen, "last      {}", printable(&action.to_string()))?;
        }
        for command in &self.next {
            writeln!(screen, "\nNext: {command}")?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::ids::Layer;
        let change_id = ChangeId::new("add-oauth").unwrap();
        let at = "2026-11-04T10:00:00Z".parse().ok();
        let tasks = Progress { total: 4, completed: 1 };
        Self {
            phase: Some(Phase::Proposed),
            title: "Sign in with Google".to_owned(),
            created_at: at,
            updated_at: at,
            last_action: Some(LastAction::Decide),
            iteration: 1,
            complexity: Some(Complexity::Low),
            verdict: Some(PlanVerdict::NeedsRevision),
            issues: Some(Counts::default()),
            previous: vec![crate::cli::planning::earlier_issue()],
            plan_changed_since_review: Some(false),
            foreign_reviews: vec!["proposal.md: review 2 (APPROVED) …".to_owned()],
            stale: vec![Stale { what: "code".into(), why: "files were edited".into() }],
            record: Some("STATE.yaml was edited".to_owned()),
            validation: Counts::default(),
            tasks,
            layers: vec![LayerProgress { layer: Layer::Data, progress: tasks }],
            calls: 3,
            cost_usd: 0.02,
            tokens_in: 12_000,
            tokens_out: 800,
            git: Some(GitPlace {
                workflow: Placement::Worktree,
                branch: Some("agentd/add-oauth".to_owned()),
                base_commit: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
                work_tree: "/home/me/shop-agentd/add-oauth".to_owned(),
            }),
            next: vec![Command::Challenge.on(&change_id)],
            change_id,
        }
    }
}

/// What to run next.
fn next_steps(
    summary: &Summary,
    documents: &Documents,
    high: usize,
    plan_changed: Option<bool>,
) -> Vec<NextStep> {
    let id = &summary.change_id;
    if high > 0 {
        return vec![Command::Validate.on(id)];
    }
    let command = match (summary.phase, plan_changed) {
        // What was written without agentd is adopted (W4).
        (None, _) if documents.has(&ChangeFile::Proposal) => Command::Plan,
        // A plan is not judged twice, and no plan is implemented but the one that was approved.
        (Some(Phase::Rejected), Some(false)) | (None, _) => Command::Show,
        (Some(Phase::Challenged), Some(true)) => Command::Challenge,
        (Some(Phase::Implementing | Phase::Complete), Some(true)) => Command::Revise,
        (Some(phase), _) => allowed(phase).first().copied().unwrap_or(Command::Show),
    };
    vec![command.on(id)]
}
