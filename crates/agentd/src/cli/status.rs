mod carried;
mod place;
mod project;
mod text;

use std::io;
use std::process::ExitCode;

use agentd_core::agent::Complexity;
use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::{Counts, Diagnostic, Severity};
use agentd_core::document::issue_fate::{EarlierIssue, earlier, fates};
use agentd_core::document::review::Review;
use agentd_core::document::review_block::{Issue, PlanVerdict, ReviewBlock};
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
#[cfg(test)]
use agentd_core::next_step::Command;
use agentd_core::next_step::NextStep;
use agentd_core::outcome::FailureKind;
use agentd_core::phase::Phase;
use agentd_core::rules;
use agentd_core::stamp::Stamp;
use agentd_core::standing::Standing;
#[cfg(test)]
use agentd_core::state::Placement;
use agentd_core::state::{Choice, Decision, LastAction, PlanReview, Ranges, State, TestRun};
use agentd_core::text::{Line, printable};
use agentd_engine::carrier;
use agentd_engine::change::Snapshot;
use agentd_engine::change::documents::{self, DocumentError};
use agentd_engine::change::position::{self, Position, Running};
use agentd_engine::change::staleness::Stale;
use agentd_engine::change::summary::{self, LayerProgress, Progress, Summary};
use agentd_engine::git::GitTool;
use agentd_engine::insight::validate;
use serde::Serialize;

use self::carried::CarriedReport;
use self::place::GitPlace;
#[cfg(test)]
pub(super) use self::project::ProjectStatus;
use super::Context;
use super::decide::AgentQuestionReport;
use crate::error::CommandError;
use crate::ui::{Output, Screen};

/// Show where a change stands, or all of them: what waits, what runs, what comes next.
///
/// With an ID, or if only one change is open, tells its story: phase, who is at work, the verdicts
/// on plan and code, tests, tasks, cost, and the next command. Otherwise shows the project at a
/// glance. Archived changes can be named too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd status\n  agentd status add-oauth\n  agentd status --all\n  agentd status --json"
)]
pub(crate) struct Args {
    /// Change ID, or the name of an archived change; optional if only one change is open.
    id: Option<String>,

    /// Show the whole project, also if only one change is open.
    #[arg(long, short = 'a', conflicts_with = "id")]
    all: bool,

    /// Ask the remote repository first which worker has the change.
    #[arg(long, conflicts_with = "all")]
    fleet: bool,
}

/// Where a change stands.
#[derive(Debug, Serialize)]
pub(super) struct StatusReport {
    change_id: ChangeId,
    /// The name of its directory in the archive, if it is there.
    archived: Option<String>,
    /// None if no workflow has run on the change yet.
    phase: Option<Phase>,
    /// What it is waiting for.
    standing: Standing,
    /// The command that is working on it.
    running: Option<Running>,
    /// Which worker has it, if it is carried between machines.
    carried: Option<CarriedReport>,
    /// What an agent asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<AgentQuestionReport>,
    title: String,
    created_at: Option<Stamp>,
    updated_at: Option<Stamp>,
    last_action: Option<LastAction>,
    /// Why the last call failed, if it did and nothing came after it.
    #[serde(skip)]
    last_failure: Option<FailureKind>,
    iteration: u32,
    complexity: Option<Complexity>,
    /// The latest verdict on the plan.
    verdict: Option<PlanVerdict>,
    /// The issues of that review.
    issues: Option<Counts>,
    /// What became of the issues of earlier rounds.
    previous: Vec<EarlierIssue>,
    /// The latest verdict on the plan, and what was found.
    plan_review: Option<VerdictReport>,
    /// The latest verdict on the code, and what was found.
    code_review: Option<VerdictReport>,
    /// The latest run of the tests.
    tests: Option<TestsReport>,
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
    /// How much of the plan is missing, in words, if something is.
    #[serde(skip)]
    unwritten: Option<&'static str>,
    /// How many findings the documents allow.
    allowed: usize,
    tasks: Progress,
    layers: Vec<LayerProgress>,
    calls: usize,
    /// How many of the calls failed.
    failed: usize,
    cost_usd: f64,
    tokens_in: u64,
    tokens_out: u64,
    /// What the whole change was expected to use when it began.
    forecast: Option<Ranges>,
    /// What it may cost, in US dollars.
    budget_usd: Option<f64>,
    /// Where it is worked on; none if git was not asked yet.
    git: Option<GitPlace>,
    next: Vec<NextStep>,
    /// The same for a person at a terminal, who can be asked.
    #[serde(skip)]
    next_for_people: Vec<NextStep>,
    /// Whether it was given up.
    #[serde(skip)]
    was_dropped: bool,
    /// How much of its cost is an estimate, in US dollars.
    #[serde(skip)]
    estimated_usd: f64,
    /// Who has accepted the plan with its minor issues.
    #[serde(skip)]
    accepted_by: Option<Line>,
}

/// A verdict on a plan or on code.
#[derive(Debug, Serialize)]
struct VerdictReport {
    verdict: &'static str,
    /// Who gave it.
    reviewer: Line,
    /// The round.
    iteration: u32,
    at: Stamp,
    /// What was found, the heaviest first; empty if the review itself is not there.
    issues: Vec<IssueReport>,
}

/// An issue of a review.
#[derive(Debug, Serialize)]
struct IssueReport {
    id: String,
    severity: Severity,
    title: Line,
    location: Line,
}

impl IssueReport {
    fn all(issues: &[Issue]) -> Vec<Self> {
        let mut sorted: Vec<&Issue> = issues.iter().collect();
        sorted.sort_by_key(|issue| (issue.severity, issue.number));
        sorted
            .into_iter()
            .map(|issue| Self {
                id: format!("I{}", issue.number),
                severity: issue.severity,
                title: issue.title.clone(),
                location: issue.location.clone(),
            })
            .collect()
    }
}

/// A run of the tests.
#[derive(Debug, Serialize)]
struct TestsReport {
    command: String,
    passed: bool,
    /// None if they were stopped.
    exit_code: Option<i32>,
    duration_ms: u64,
    at: Stamp,
    /// The end of what they printed.
    output_tail: String,
}

impl TestsReport {
    fn new(run: &TestRun) -> Self {
        Self {
            command: run.command.clone(),
            passed: run.passed(),
            exit_code: run.exit_code,
            duration_ms: run.duration_ms,
            at: run.at,
            output_tail: printable(run.output_tail.as_str()).into_owned(),
        }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if args.id.is_none() {
        let project = context.project()?;
        if args.all || context.meant(&project)?.is_none() {
            context.ui.print(&project::report(context, &project)?)?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    let project = context.project_of(args.id.as_deref())?;
    let snapshot = context.change_to_read(&project, args.id.as_deref())?.snapshot()?;
    let config = documents::load_config(&project)?;
    let extras = config.extras();
    // What is archived is checked no more: its specs are part of the main specs.
    let reports = match snapshot.change().archived() {
        Some(_) => Vec::new(),
        None => validate::validate(&project, &snapshot, &extras),
    };
    let findings = check::counts(&reports);
    let position = position::position(&project, &snapshot, findings.high)?;
    // What is not written yet is no mistake.
    let is_there = |file| snapshot.documents.has(&file);
    let unwritten = match (is_there(ChangeFile::Proposal), is_there(ChangeFile::Tasks)) {
        (false, false) => Some("not written yet"),
        (true, true) if position.course.standing != Standing::Unfinished => None,
        _ => Some("not all written yet"),
    };
    let unwritten = unwritten.filter(|_| snapshot.change().archived().is_none());
    let findings = if unwritten.is_some() { counts_without_missing(&reports) } else { findings };
    let mut report = report(&snapshot, findings, position, context.now())?;
    if args.fleet {
        carrier::sightings::look(&context.project()?, &GitTool::default(), context.now())?;
    }
    if snapshot.change().archived().is_none() {
        report.carried = CarriedReport::of(&context.project()?, snapshot.id());
    }
    let setup = snapshot.state_if_begun()?.and_then(|state| state.git.as_ref());
    report.git = setup.map(|setup| GitPlace::new(&project, setup));
    report.allowed = check::allowed(&reports);
    report.unwritten = unwritten;
    report.budget_usd = config.budget.max_cost_usd;
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
    let accepted_by = accepted_by(&state).cloned();
    Ok(StatusReport {
        change_id: summary.change_id,
        archived: snapshot.change().archived().map(ToString::to_string),
        phase,
        standing: course.standing,
        running,
        carried: None,
        question: state.question.as_ref().map(AgentQuestionReport::new),
        title: summary.title,
        created_at: state.created_at,
        updated_at: state.updated_at,
        last_action: state.last_action.clone(),
        last_failure: last_failure(&state),
        iteration: state.iteration,
        complexity: state.complexity,
        verdict: review.map(|review| review.verdict),
        issues: taken.map(ReviewBlock::counts),
        previous: earlier(&fates(snapshot.documents.reviews())),
        plan_review: review.map(|review| VerdictReport {
            verdict: review.verdict.label(),
            reviewer: review.reviewer.clone(),
            // It counts the revisions before it.
            iteration: taken.map_or(review.iteration.saturating_add(1), |taken| taken.iteration),
            at: review.at,
            issues: taken.map(|taken| IssueReport::all(&taken.issues)).unwrap_or_default(),
        }),
        code_review: code_review(snapshot, &state),
        tests: state.test_run.as_ref().map(TestsReport::new),
        plan_changed_since_review,
        foreign_reviews: Vec::new(),
        stale,
        record,
        validation,
        allowed: 0,
        unwritten: None,
        tasks: summary.tasks,
        layers: summary::layers(&snapshot.documents),
        calls: state.llm_calls.len(),
        failed: state.llm_calls.iter().filter(|call| call.failure.is_some()).count(),
        forecast: state.forecast,
        budget_usd: None,
        cost_usd: state.total_cost,
        tokens_in: state.total_tokens_in,
        tokens_out: state.total_tokens_out,
        git: None,
        next_for_people: course.next_for_people(),
        next: course.next,
        was_dropped: state.was_dropped(),
        estimated_usd: summary.estimated_usd,
        accepted_by,
    })
}

/// Why the last call failed, if that is what was done last.
fn last_failure(state: &State) -> Option<FailureKind> {
    let call = state.llm_calls.last()?;
    let is_last = matches!(&state.last_action, Some(LastAction::Step(step)) if *step == call.step);
    call.failure.filter(|_| is_last)
}

/// Who has accepted the plan with its minor issues, if that is why it counts as approved.
fn accepted_by(state: &State) -> Option<&Line> {
    let judged = &state.plan_review.as_ref()?.plan_hash;
    let accepted =
        |made: &&Decision| made.choice == Choice::Accept && made.plan_hash.as_ref() == Some(judged);
    state.decisions.iter().rfind(accepted).map(|made| &made.by)
}

/// The latest verdict on the code, with its issues if REVIEW.md is still the review that was taken.
fn code_review(snapshot: &Snapshot, state: &State) -> Option<VerdictReport> {
    let review = state.code_review.as_ref()?;
    let document = &snapshot.documents.review;
    let is_it = |found: &&Review| match &review.review_hash {
        Some(hash) => document.text().map(Digest::of).as_ref() == Some(hash),
        None => found.created_at == Some(review.at),
    };
    let found = document.value_if_there().filter(is_it);
    Some(VerdictReport {
        verdict: review.verdict.label(),
        reviewer: review.reviewer.clone(),
        iteration: review.iteration,
        at: review.at,
        issues: found.map(|found| IssueReport::all(&found.issues)).unwrap_or_default(),
    })
}

impl Output for StatusReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        text::write(self, screen)
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::ids::Layer;
        let change_id = ChangeId::new("add-oauth").unwrap();
        let at = "2026-11-04T10:00:00Z".parse().ok();
        let tasks = Progress { total: 4, completed: 1 };
        Self {
            archived: Some("2026-11-04-add-oauth".to_owned()),
            phase: Some(Phase::Proposed),
            standing: Standing::Ready,
            running: Some(running()),
            carried: Some(CarriedReport::sample()),
            question: Some(AgentQuestionReport::sample()),
            title: "Sign in with Google".to_owned(),
            created_at: at,
            updated_at: at,
            last_action: Some(LastAction::Decide),
            last_failure: Some(FailureKind::RateLimited),
            iteration: 1,
            complexity: Some(Complexity::Low),
            verdict: Some(PlanVerdict::NeedsRevision),
            issues: Some(Counts::default()),
            previous: vec![crate::cli::planning::earlier_issue()],
            plan_review: Some(verdict("NEEDS_REVISION")),
            code_review: Some(verdict("APPROVED")),
            tests: Some(TestsReport {
                command: "cargo test".to_owned(),
                passed: false,
                exit_code: Some(101),
                duration_ms: 600,
                at: "2026-11-04T10:00:00Z".parse().unwrap(),
                output_tail: "test token::expires ... FAILED".to_owned(),
            }),
            plan_changed_since_review: Some(false),
            foreign_reviews: vec!["proposal.md: review 2 (APPROVED) …".to_owned()],
            stale: vec![Stale { what: "code".into(), why: "files were edited".into() }],
            record: Some("STATE.yaml was edited".to_owned()),
            validation: Counts::default(),
            allowed: 2,
            unwritten: None,
            tasks,
            layers: vec![LayerProgress { layer: Layer::Data, progress: tasks }],
            calls: 3,
            failed: 1,
            forecast: Some(Ranges::default()),
            budget_usd: Some(5.0),
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
            next_for_people: vec![Command::Challenge.on(&change_id)],
            was_dropped: false,
            estimated_usd: 0.0,
            accepted_by: None,
            change_id,
        }
    }
}

/// One for the samples of reports.
#[cfg(test)]
pub(super) fn running() -> Running {
    Running {
        pid: 4711,
        command: "agentd plan add-oauth".to_owned(),
        since: jiff::Timestamp::UNIX_EPOCH,
        step: Some("challenge".into()),
        agent: Some(agentd_core::agent::AgentKind::Codex),
        step_since: Some(jiff::Timestamp::UNIX_EPOCH),
    }
}

#[cfg(test)]
fn verdict(verdict: &'static str) -> VerdictReport {
    VerdictReport {
        verdict,
        reviewer: "codex".into(),
        iteration: 1,
        at: "2026-11-04T10:00:00Z".parse().unwrap(),
        issues: vec![IssueReport {
            id: "I1".to_owned(),
            severity: Severity::High,
            title: "No lock".into(),
            location: "auth-flow:R1".into(),
        }],
    }
}
