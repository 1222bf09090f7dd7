//! What `plan`, `proposal`, `challenge` and `reproposal` share: how they begin, what they
//! print at the end, and with which exit code.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use agentd_core::document::review_block::PlanVerdict;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::phase::Phase;
use agentd_engine::documents;
use agentd_engine::store::{Project, StoreError};
use agentd_engine::workflow::{Action, Mode, Report, Workflow, WorkflowError};
use serde_json::json;

use super::agents_setup::AgentRun;
use super::{Context, next};
use crate::error::{CommandError, Exit, printed};
use crate::ui::progress::Display;
use crate::ui::{BAD, BOLD, GOOD, WARN, diagnostics, review};

/// What `--git` takes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum GitArg {
    /// On the branch agentd/<id>.
    Branch,
    /// In a work tree beside the project, on that branch.
    Worktree,
    /// Where you stand.
    InPlace,
}

/// How what is meant is found out.
#[derive(Debug, clap::Args)]
pub(crate) struct ClarifyArgs {
    /// Ask no questions first.
    #[arg(long)]
    pub(crate) skip_clarify: bool,

    /// Take the answers to the questions from this file; `-` is stdin.
    #[arg(long, value_name = "FILE", conflicts_with = "skip_clarify")]
    pub(crate) answers: Option<PathBuf>,
}

/// What a change begins with.
pub(crate) struct Begin<'b> {
    pub(crate) description: Option<&'b str>,
    pub(crate) clarify: &'b ClarifyArgs,
    pub(crate) git: Option<GitArg>,
}

/// Who decides: a person, unless the configuration or the command line says otherwise.
pub(crate) fn mode(agents: &AgentRun, auto: bool) -> Mode {
    if auto || !agents.config.workflow.human_in_loop { Mode::Automatic } else { Mode::HumanInLoop }
}

/// The id of a change, from the command line.
pub(crate) fn new_id(text: &str) -> Result<ChangeId, CommandError> {
    ChangeId::new(text).map_err(|error| {
        let wrong = CommandError::usage(error.to_string());
        if text.contains(' ') {
            wrong.hint(format!("the id comes first: {}", super::BEGIN))
        } else {
            wrong.hint("an id is made of a-z, 0-9 and hyphens, such as `add-oauth`")
        }
    })
}

/// The change that is to be planned: one that is named may be new.
pub(crate) fn change_to_plan(
    context: &Context,
    project: &Project,
    id: Option<&str>,
) -> Result<ChangeId, CommandError> {
    match id {
        Some(id) => new_id(id),
        None => Ok(context.change(project, None)?.id().clone()),
    }
}

/// The project; PLACEHOLDER
pub(crate) fn project(context: &Context) -> Result<Project, CommandError> {
    context.project()
}

/// PLACEHOLDER
pub(crate) fn begin(context: &Context, agents: &AgentRun, id: &ChangeId, begin: &Begin<'_>) -> Result<(), CommandError> {
    let _ = (begin.git, &begin.clarify);
    if agents.project.change(id).is_err() {
        agents.project.create_change(id)?;
        let lock = agents.project.write_lock(id, &agents.holder)?;
        let state = agentd_core::state::State::new(id.clone(), begin.description.unwrap_or_default(), context.now());
        documents::save_state(&agents.project.change(id)?, &lock, &state, context.now())?;
    }
    Ok(())
}

/// Whether nothing of a change is there, or nothing but what precedes its plan.
pub(crate) fn is_free(project: &Project, id: &ChangeId) -> Result<bool, CommandError> {
    let change = match project.change(id) {
        Err(StoreError::NoSuchChange { .. }) => return Ok(true),
        result => result?,
    };
    let begun = documents::load_state_if_begun(&change)?;
    let called = begun.is_some_and(|state| {
        state.phase != Phase::Proposed || state.llm_calls.iter().any(|call| call.step != "clarify")
    });
    let written = change.has(&ChangeFile::Proposal)? || change.has(&ChangeFile::Tasks)?;
    Ok(!called && !written)
}

/// Runs a workflow on a change, with its progress on the terminal.
pub(crate) fn run_workflow<T>(
    context: &Context,
    agents: &AgentRun,
    change: &ChangeId,
    work: impl FnOnce(&mut Workflow<'_>) -> Result<T, WorkflowError>,
) -> Result<T, CommandError> {
    let display = Display::new(&context.ui);
    let now = || context.now();
    let mut watch = |event: agentd_engine::workflow::Progress<'_>| display.show(&event);
    let mut workflow = Workflow {
        agents,
        change: change.clone(),
        now: &now,
        watch: &mut watch,
        lock: agents.lock(),
    };
    let result = work(&mut workflow);
    drop(display);
    result.map_err(|error| {
        show_findings(context, &error);
        error.into()
    })
}

/// What remains wrong is printed before the exit (E3.5).
fn show_findings(context: &Context, error: &WorkflowError) {
    if let WorkflowError::Format { reports, .. } = error
        && !context.ui.json
    {
        // Nobody is left to tell if this fails; the error itself comes next.
        let _ = diagnostics::write_human(&mut anstream::stderr(), reports);
    }
}

/// The result of a command that works on a plan.
pub(crate) struct Outcome<'o> {
    pub(crate) project: &'o Project,
    pub(crate) change: &'o ChangeId,
    pub(crate) report: &'o Report,
    pub(crate) mode: Mode,
    /// Whether a verdict that waits for a person is a failure too (C10).
    pub(crate) exit_code: bool,
}

/// Prints the result and says how the command ends.
pub(crate) fn finish(context: &Context, outcome: &Outcome<'_>) -> Result<ExitCode, CommandError> {
    let Outcome { project, change, report, .. } = outcome;
    let state = documents::load_state(&project.change(change)?)?;
    let next = next_commands(change, report);
    printed(if context.ui.json {
        context.ui.print_json(&json!({
            "version": 1,
            "action": report.action.name(),
            "change_id": change,
            "phase": report.phase,
            "verdict": report.verdict.map(PlanVerdict::label),
            "iteration": report.iteration,
            "issues": report.counts(),
            "cost_usd": state.total_cost,
            "next": next,
        }))
    } else {
        print(context, change, report, state.total_cost, &next)
    })?;
    Ok(if failed(outcome) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether the result is a failure (C10).
fn failed(outcome: &Outcome<'_>) -> bool {
    let report = outcome.report;
    match (report.action, report.verdict) {
        (Action::Rejected | Action::StillNeedsRevision, _) => true,
        (Action::Challenged, Some(PlanVerdict::Rejected)) => true,
        (Action::Challenged | Action::WaitingForDecision, Some(PlanVerdict::NeedsRevision)) => {
            outcome.mode == Mode::Automatic || outcome.exit_code
        }
        _ => false,
    }
}

/// The commands that take the change on from here.
fn next_commands(change: &ChangeId, report: &Report) -> Vec<String> {
    let names: &[&'static str] = match (report.phase, report.action, report.verdict) {
        (Phase::Proposed, Action::Reproposed | Action::Proposed, _) => &["challenge"],
        (Phase::Proposed, _, Some(PlanVerdict::NeedsRevision)) => &["reproposal"],
        (Phase::Rejected, ..) => &["show"],
        (phase, ..) => agentd_core::phase::allowed(phase),
    };
    next::existing(names).take(1).map(|name| format!("agentd {name} {change}")).collect()
}

fn print(
    context: &Context,
    change: &ChangeId,
    report: &Report,
    cost: f64,
    next: &[String],
) -> Result<(), CommandError> {
    let mut out = context.ui.out();
    let counts = report.counts();
    let issues = format!("{} HIGH, {} MEDIUM, {} LOW", counts.high, counts.medium, counts.low);
    match (report.action, report.verdict) {
        (Action::Proposed, _) => writeln!(out, "{GOOD}✓{GOOD:#} {change}: the plan is written")?,
        (Action::Reproposed, _) => {
            writeln!(out, "{GOOD}✓{GOOD:#} Proposal updated based on challenge feedback")?;
        }
        (Action::AcceptedMinor, _) => {
            writeln!(out, "{GOOD}✓{GOOD:#} {change}: accepted with minor issues ({issues})")?;
        }
        (Action::AlreadyChallenged, _) => {
            writeln!(out, "{GOOD}✓{GOOD:#} {change}: planning is complete, the plan is approved")?;
        }
        (Action::BeyondPlanning, _) => {
            writeln!(out, "{change} is {}, beyond planning", report.phase)?;
        }
        (_, Some(PlanVerdict::Approved)) => {
            writeln!(out, "{GOOD}✓{GOOD:#} {BOLD}APPROVED{BOLD:#} - Ready for implementation!")?;
        }
        (_, Some(PlanVerdict::NeedsRevision)) => {
            review::write_issues(&mut out, &report.summary, &report.issues)?;
            writeln!(
                out,
                "{WARN}NEEDS_REVISION{WARN:#} - Found {issues} severity issues (round {})",
                report.iteration
            )?;
        }
        (_, Some(PlanVerdict::Rejected)) => {
            review::write_issues(&mut out, &report.summary, &report.issues)?;
            writeln!(out, "{BAD}REJECTED{BAD:#} - Fundamental problems")?;
            writeln!(out, "edit the plan in agentd/changes/{change}/, then: agentd challenge {change}")?;
        }
        (_, None) => writeln!(out, "{change} is {}", report.phase)?,
    }
    writeln!(out, "cost so far: ${cost:.4}")?;
    if let Some(command) = next.first() {
        writeln!(out, "\nNext: {BOLD}{command}{BOLD:#}")?;
    }
    out.flush()?;
    Ok(())
}

impl From<WorkflowError> for CommandError {
    fn from(error: WorkflowError) -> Self {
        if error.is_interrupt() {
            return Self::interrupted()
                .hint("nothing is lost: the same command goes on where it stopped");
        }
        let (kind, message) = (error.kind(), error.to_string());
        let (cause, hints) = (error.cause(), error.solutions());
        match error {
            WorkflowError::Documents(error) => error.into(),
            _ => Self { kind, message, cause, hints, exit: Exit::Failure },
        }
    }
}

