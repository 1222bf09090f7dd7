use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::agent::Complexity;
use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::{Counts, Diagnostic};
use agentd_core::document::issue_fate::{EarlierIssue, earlier, fates};
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::ids::ChangeId;
#[cfg(test)]
use agentd_core::next_step::Command;
use agentd_core::next_step::NextStep;
use agentd_core::phase::Phase;
use agentd_core::rules;
use agentd_core::stamp::Stamp;
use agentd_core::standing::Standing;
use agentd_core::state::{GitSetup, LastAction, Placement, PlanReview, State};
use agentd_core::text::printable;
use agentd_engine::change::Snapshot;
use agentd_engine::change::documents::{self, DocumentError};
use agentd_engine::change::position::{self, Position, Running};
use agentd_engine::change::staleness::Stale;
use agentd_engine::change::summary::{self, LayerProgress, Progress, Summary};
use agentd_engine::insight::validate;
use agentd_engine::store::Project;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM, Output, Screen, diagnostics};

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
    /// What it is waiting for.
    standing: Standing,
    /// The command that is working on it.
    running: Option<Running>,
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
    /// How many findings the documents allow.
    allowed: usize,
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
    /// The branch that its branch was started from.
    base_branch: Option<String>,
    /// The checkout with its code and its documents.
    work_tree: String,
}

impl GitPlace {
    fn new(project: &Project, setup: &GitSetup) -> Self {
        Self {
            workflow: setup.workflow,
            branch: setup.branch.clone(),
            base_commit: setup.base_commit.clone(),
            base_branch: setup.base_branch.clone(),
            work_tree: project.root().display().to_string(),
        }
    }

    /// Where the work starts, for people.
    fn base(&self) -> Option<String> {
        let short = |commit: &String| commit.get(..10).unwrap_or(commit).to_owned();
        match (&self.base_branch, self.base_commit.as_ref().map(short)) {
            (Some(branch), Some(commit)) => Some(format!("{} ({commit})", printable(branch))),
            (Some(branch), None) => Some(printable(branch).into_owned()),
            (None, commit) => commit,
        }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let snapshot = context.change(&project, args.id.as_deref())?.snapshot()?;
    let extras = documents::load_config(&project)?.extras();
    let reports = validate::validate(&project, &snapshot, &extras);
    let findings = check::counts(&reports);
    let position = position::position(&project, &snapshot, findings.high)?;
    // What is not written yet is no mistake.
    let findings = match position.course.standing {
        Standing::Unfinished => counts_without_missing(&reports),
        _ => findings,
    };
    let mut report = report(&snapshot, findings, position, context.now())?;
    let setup = snapshot.state_if_begun()?.and_then(|state| state.git.as_ref());
    report.git = setup.map(|setup| GitPlace::new(&project, setup));
    report.allowed = check::allowed(&reports);
    report.foreign_reviews = foreign_reviews(&reports);
    context.ui.print(&report)?;
    Ok(ExitCode::SUCCESS)
}

/// The findings, without documents that are missing.
fn counts_without_missing(reports: &[FileReport]) -> Counts {
    let all = reports.iter().flat_map(|report| &report.diagnostics);
    let missing = [&rules::FILE_MISSING, &rules::AFFECTED_SPEC_MISSING];
    Counts::of(all.filter(|found| !missing.contains(&found.rule)).map(Diagnostic::severity))
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
    position: Position,
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
    let Position { course, stale, record, running } = position;
    Ok(StatusReport {
        change_id: summary.change_id,
        phase,
        standing: course.standing,
        running,
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
        stale,
        record,
        validation,
        allowed: 0,
        tasks: summary.tasks,
        layers: summary::layers(&snapshot.documents),
        calls: state.llm_calls.len(),
        cost_usd: state.total_cost,
        tokens_in: state.total_tokens_in,
        tokens_out: state.total_tokens_out,
        git: None,
        next: course.next,
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
        if let Some(Running { command, since, step, agent, .. }) = &self.running {
            let step = step.as_ref().map(|step| format!(", at {step}")).unwrap_or_default();
            let agent = agent.map(|agent| format!(" with {agent}")).unwrap_or_default();
            let (command, at) = (printable(command), since.strftime("%Y-%m-%d %H:%M:%S UTC"));
            writeln!(screen, "running   {command}{step}{agent}, since {at}")?;
        }
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
        let allowed = diagnostics::allowed_count(self.allowed);
        writeln!(screen, "documents {high} HIGH, {medium} MEDIUM, {low} LOW findings{allowed}")?;
        writeln!(screen, "tasks     {} of {} done", self.tasks.completed, self.tasks.total)?;
        for LayerProgress { layer, progress: Progress { total, completed } } in &self.layers {
            writeln!(screen, "          {:12} {completed}/{total}", layer.name())?;
        }
        writeln!(
            screen,
            "cost      ${:.4}, {} tokens in, {} out, {} calls",
            self.cost_usd, self.tokens_in, self.tokens_out, self.calls
        )?;
        if let Some(place @ GitPlace { branch: Some(branch), work_tree, .. }) = &self.git {
            let base = place.base().map(|base| format!(" from {base}")).unwrap_or_default();
            let (branch, work_tree) = (printable(branch), printable(work_tree));
            writeln!(screen, "branch    {branch}{base}, in {work_tree}")?;
        }
        if let Some(action) = &self.last_action {
            writeln!(screen, "last      {}", printable(&action.to_string()))?;
        }
        for (index, command) in self.next.iter().enumerate() {
            let words = if index == 0 { "\nNext:" } else { "  or:" };
            writeln!(screen, "{words} {command}")?;
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
            standing: Standing::Ready,
            running: Some(Running {
                pid: 4711,
                command: "agentd plan add-oauth".to_owned(),
                since: jiff::Timestamp::UNIX_EPOCH,
                step: Some("challenge".into()),
                agent: Some(agentd_core::agent::AgentKind::Codex),
            }),
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
            allowed: 2,
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
                base_branch: Some("main".to_owned()),
                work_tree: "/home/me/shop-agentd/add-oauth".to_owned(),
            }),
            next: vec![Command::Challenge.on(&change_id)],
            change_id,
        }
    }
}
