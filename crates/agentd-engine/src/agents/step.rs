//! One step of a workflow: the agent that plays a role is called, and what came of
//! it is judged by what is on the disk.
//!
//! The order is always the same: budget, call, ledger, artifact. A step has
//! succeeded when the agent said so *and* the file that the step was for is there,
//! is new, and is valid. Every attempt goes into `llm_calls` before anything is
//! judged, so that no failure can hide what it has cost.

mod artifact;
mod budget;
mod cause;
mod error;
mod guarded;
pub(crate) mod ledger;
mod request;
mod resume;
mod session_turn;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::config::Config;
use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::outcome::{AgentOutcome, Failure, FailureKind};
use agentd_core::provider::sessions::ListOutput;
use agentd_core::provider::{AgentRequest, CommandSpec, Gemini, Provider};
use agentd_core::stamp::Stamp;
use agentd_core::state::State;
use agentd_core::step_name::StepName;

use crate::agents::asked;
use crate::agents::files::restore_leftovers;
use crate::agents::probe;
use crate::agents::receipts;
use crate::agents::redact::Redactor;
use crate::agents::run_record::RecordLimits;
use crate::agents::runner::{Attempt, Observer, Retry, RunError, Runner, Spending};
use crate::agents::warm::WarmAgents;
use crate::carrier::Carrier;
use crate::change::Snapshot;
use crate::change::documents::{update_state, updated_state};
use crate::change::signing;
use crate::git::{GitSandbox, GitTool};
use crate::guard::git_files::TamperedFile;
use crate::guard::sandbox::{Sandbox, SandboxError};
use crate::guard::trust::Trusted;
use crate::insight::forecast;
use crate::process::{self, Cancel, Limits, Supervisor};
use crate::store::{Holder, Project};

pub use artifact::Artifact;
use artifact::{OnDisk, judge};
use budget::{check_budget, spending};
pub(crate) use error::BY_RULES;
pub use error::StepError;
use guarded::Guarded;
pub use guarded::run_tests;
pub(crate) use request::usage_of_session;
pub(super) use request::{identity, program};
use request::{private_dir, provider_of, request};
use session_turn::SessionTurn;

/// What a step needs of the world.
#[derive(Debug)]
pub struct Agents {
    /// The project.
    pub project: Project,
    /// Its settings, which somebody has agreed to.
    pub config: Trusted,
    /// Where the agents work: the project, or a worktree of it.
    pub work_tree: PathBuf,
    /// The user's own environment, which every agent gets.
    pub environment: Vec<(OsString, OsString)>,
    /// The agentd program, for the MCP server that agents start.
    pub agentd: String,
    /// How children are supervised.
    pub supervisor: Supervisor,
    /// Set when the step should stop.
    pub cancel: Cancel,
    /// Who records.
    pub holder: Holder,
    /// Processes of agents that wait for their next call.
    pub warm: Arc<WarmAgents>,
    /// Carries the change to where others can continue it; none where it stays here.
    pub carrier: Option<Carrier>,
}

impl Agents {
    /// Takes out of texts what is secret here: for agents, and for everybody who runs them.
    pub fn redactor(&self) -> Redactor {
        Redactor::with_settings(&self.environment, &self.config)
    }

    /// Where programs are looked up.
    pub(crate) fn path(&self) -> OsString {
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        path.map(|(_, path)| path.clone()).unwrap_or_default()
    }

    /// Git for a look that runs nothing of the repository.
    pub(crate) fn git_tool_outside(&self) -> GitTool {
        GitTool {
            env: self.environment.clone(),
            cancel: Some(self.cancel.clone()),
            ..GitTool::default()
        }
    }
}

impl Agents {
    /// Git, with the environment that agents have and ended with them. What may run files of
    /// the working tree runs in the sandbox.
    pub(crate) fn git_tool(&self) -> Result<GitTool, SandboxError> {
        let sandbox = Sandbox::open(self, None)?;
        let caged = sandbox.map(|sandbox| {
            let (supervisor, cancel) = (self.supervisor.clone(), self.cancel.clone());
            Box::new(GitSandbox { sandbox, supervisor, cancel })
        });
        Ok(GitTool { caged, ..self.git_tool_outside() })
    }
}

/// What is asked of an agent.
#[derive(Debug, Clone)]
pub struct Step {
    /// The change.
    pub change: ChangeId,
    /// The role.
    pub role: Role,
    /// Who plays it.
    pub agent: AgentKind,
    /// Which step it is.
    pub name: StepName,
    /// The prompt.
    pub prompt: String,
    /// The session to resume; none starts a fresh one.
    pub resume: Option<String>,
    /// What must be on the disk afterwards.
    pub artifact: Artifact,
    /// What a success changes in the state, in the same write in which the call is
    /// recorded: a kill between the two would lose a session or count a round twice.
    pub on_success: Option<fn(&mut State, &AgentOutcome)>,
}

/// What came of a step that succeeded.
#[derive(Debug, Clone)]
pub struct StepReport {
    /// Who did it.
    pub agent: AgentKind,
    /// What the agent reported.
    pub outcome: AgentOutcome,
    /// What all attempts cost together, as far as it is known.
    pub cost_usd: f64,
    /// How long all attempts took.
    pub duration: Duration,
    /// How many processes agents have left behind, which were ended for them.
    pub left_behind: u32,
    /// The record of the last attempt.
    pub run_file: PathBuf,
    /// The change as the step has left it.
    pub after: Snapshot,
    /// Whether it ended with a question to a person; then it has done nothing else that counts.
    pub asked: bool,
    /// Whether its output has shown what agentd's tools have written.
    pub shows_writes: bool,
}

/// Runs a step. `now` gives the time at which things are recorded.
pub fn run(
    agents: &Agents,
    step: &Step,
    now: &dyn Fn() -> Stamp,
    observer: &mut Observer<'_>,
) -> Result<StepReport, StepError> {
    let before = agents.project.change(&step.change)?.snapshot()?;
    run_on(agents, step, &before, now, observer)
}

/// Runs a step on a change that was read before.
pub(crate) fn run_on(
    agents: &Agents,
    step: &Step,
    before: &Snapshot,
    now: &dyn Fn() -> Stamp,
    observer: &mut Observer<'_>,
) -> Result<StepReport, StepError> {
    let change = agents.project.change(&step.change)?;
    let state = before.state()?;
    check_budget(&step.change, state, &agents.config.budget, None)?;
    signing::check(&agents.project)?;
    let agent = step.agent;
    if let Some(why) = probe::objection(agents, agent, step.role) {
        return Err(StepError::Unfit { agent, role: step.role, why });
    }
    let sandbox = Sandbox::open(agents, Some(&step.change))?;
    let mut runner = runner(agents, sandbox);
    runner.spending = spending(state, &agents.config);
    runner.estimate_usd =
        forecast::of_call(&agents.project, &agents.config, &change, state, &step.name);
    // No agent runs while the key of an earlier call could be read.
    receipts::withdraw(&agents.project, &step.change)?;
    asked::clear(&agents.project, &step.change)?;
    if receipts::gives_verdicts(step.role) {
        agents.warm.freeze_all();
    }
    let plan = before.documents.digest();
    let receipt = receipts::issue(&agents.project, &step.change, step.role, &plan)?;
    let mut turn = SessionTurn::take(agents, step, agent, observer)?;
    let request = request(agents, &runner, step, agent, state, Some(&receipt))?;
    restore_settings(&request)?;
    let on_disk = OnDisk::of(agents, before, &step.artifact)?;
    // Else a call could pass for an earlier one whose file is not here, and not be counted.
    runner.record.last_run =
        state.llm_calls.iter().filter_map(|call| call.run).max().unwrap_or_default();
    let guarded = Guarded::take(agents, &step.change, step.role, &request.private_dir)?;
    if !resume::may_load(agents, step, state, observer) {
        return Err(StepError::Interrupted);
    }
    let mut written_by_tools = BTreeSet::new();
    let mut watch = |event: &AgentEvent<'_>| {
        turn.watch(event);
        artifact::note_written(event, &mut written_by_tools);
        observer(event);
    };
    let (provider, limits) = (provider_of(agents, agent), limits(&agents.config, agent));
    let report = runner.call(&*provider, &request, &change, limits, &mut watch);
    drop(turn);
    // Before anything is recorded, and also where the call could not be finished.
    let forged = guarded.check(agents);
    let mut report = report?;
    // Opened again: the agent may have put another directory in its place.
    let written = agents.project.change(&step.change)?.snapshot_without_state()?;
    let (cost_usd, state) =
        record(agents, step, &request, &report.attempts, &written, now(), observer)?;
    let forged = forged?;
    if let Some(error) = report.attempts.last_mut().and_then(|last| last.error.take()) {
        return Err(error.into());
    }
    let role = Some(step.role);
    let Some(last) = report.attempts.last() else {
        let message = "there was no attempt at all";
        let failure = Failure::new(FailureKind::Other, message);
        return Err(StepError::Agent { agent, role, failure: Box::new(failure) });
    };
    let tampered: Vec<TamperedFile> = last.tampered.iter().cloned().chain(forged).collect();
    if !tampered.is_empty() {
        return Err(StepError::Tampered { who: agent.to_string(), tampered });
    }
    if let Some(failure) = &last.outcome.failure {
        if failure.kind == FailureKind::Budget {
            let ended = Some(agent);
            check_budget(&step.change, &state, &agents.config.budget, ended)?;
        }
        return Err(StepError::Agent { agent, role, failure: Box::new(failure.clone()) });
    }
    let asked = state.llm_calls.last().is_some_and(|call| call.asked);
    let after = written.with_state(state);
    let changed = artifact::changed(&before.documents, &after.documents);
    if agents.warm.is_any_awake() {
        let strays = artifact::strays(step, &before.documents, &after.documents, &written_by_tools);
        if !strays.is_empty() {
            return Err(StepError::WrittenBeside { agent, files: strays });
        }
    }
    let outcome = &last.outcome;
    let judged = || judge(agents, &after, step, agent, &on_disk, &changed, outcome);
    if !asked && let Err(error) = judged() {
        note_failure(agents, step, &error, before.state()?, now())?;
        return Err(error);
    }
    Ok(StepReport {
        after,
        asked,
        shows_writes: !written_by_tools.is_empty(),
        agent,
        outcome: last.outcome.clone(),
        cost_usd,
        duration: report.attempts.iter().map(|attempt| attempt.duration).sum(),
        left_behind: report.attempts.iter().map(|attempt| attempt.left_behind).sum(),
        run_file: last.run_file.clone(),
    })
}

/// Runs a command line of the project's own in the working tree, under the same supervision as an
/// agent. What it prints on both streams is kept, the end of it where it is long.
pub fn run_shell(agents: &Agents, command: &str, limits: Limits) -> Result<ListOutput, StepError> {
    let args = ["-c".to_owned(), format!("exec 2>&1\n{command}")];
    let spec =
        CommandSpec { program: "sh".to_owned(), args: args.into(), ..CommandSpec::default() };
    let sandbox = Sandbox::open(agents, None)?;
    // A person has agreed to the command, and may mean a program of the project by it.
    let environment = agents.environment.clone();
    let runner = Runner { environment, ..runner(agents, sandbox) };
    let output = runner.run_tests(&spec, &agents.work_tree, limits)?;
    if agents.cancel.reason().is_some() { Err(StepError::Interrupted) } else { Ok(output) }
}

/// An agentd that was killed may have left its keys in the project's settings of
/// Gemini CLI; whichever agent is called next, they go first.
fn restore_settings(request: &AgentRequest) -> Result<(), StepError> {
    let calls = request.private_dir.parent().unwrap_or(&request.private_dir);
    if let Some(merge) = Gemini.command(request).merge {
        restore_leftovers(&request.project_root, calls, &merge).map_err(RunError::from)?;
    }
    Ok(())
}

fn limits(config: &Config, agent: AgentKind) -> Limits {
    let settings = config.agent(agent);
    Limits {
        whole: Duration::from_secs(settings.timeout_secs),
        idle: Duration::from_secs(settings.idle_timeout_secs),
        ..Limits::default()
    }
}

fn runner(agents: &Agents, sandbox: Option<Sandbox>) -> Runner {
    let workflow = &agents.config.workflow;
    Runner {
        supervisor: agents.supervisor.clone(),
        environment: process::without_relative_paths(&agents.environment),
        retry: Retry {
            retries: workflow.script_retries,
            delay: Duration::from_secs(workflow.retry_delay_secs),
            ..Retry::default()
        },
        record: RecordLimits::default(),
        cancel: agents.cancel.clone(),
        sandbox,
        spending: Spending::default(),
        warm: Arc::clone(&agents.warm),
        estimate_usd: None,
        carrier: agents.carrier.clone(),
    }
}

/// Starts the process of an agent for a later step, so that it is there when its turn comes (G5).
/// Only for agents that are talked to. What goes wrong is for the step itself to report.
pub(crate) fn start_early(agents: &Agents, step: &Step, state: &State) {
    let Ok(sandbox) = Sandbox::open(agents, Some(&step.change)) else { return };
    let runner = runner(agents, sandbox);
    if let Ok(request) = request(agents, &runner, step, step.agent, state, None) {
        let provider = provider_of(agents, step.agent);
        let _ = runner.start_early(&*provider, &request, limits(&agents.config, step.agent));
    }
}

/// Adds to the ledger that a call has not done what it was for: it was recorded before it was judged.
fn note_failure(
    agents: &Agents,
    step: &Step,
    error: &StepError,
    before: &State,
    now: Stamp,
) -> Result<(), StepError> {
    let failure = match error {
        StepError::NoArtifact { .. } => FailureKind::NoArtifact,
        StepError::InvalidArtifact { .. } => FailureKind::InvalidArtifact,
        _ => return Ok(()),
    };
    update_state(&agents.project, &step.change, &agents.holder, now, |state| {
        if let Some(call) = state.llm_calls.last_mut().filter(|call| call.step == step.name) {
            call.failure = Some(failure);
        }
        // What a person has answered was not made use of.
        state.question.clone_from(&before.question);
        Ok(())
    })?;
    Ok(())
}

/// Puts every attempt into the ledger; returns what they cost, and the state as recorded.
fn record(
    agents: &Agents,
    step: &Step,
    request: &AgentRequest,
    attempts: &[Attempt],
    written: &Snapshot,
    now: Stamp,
    observer: &mut Observer<'_>,
) -> Result<(f64, State), StepError> {
    let agent = step.agent;
    let mut total = 0.0;
    let mut calls = Vec::new();
    for attempt in attempts {
        let outcome = &attempt.outcome;
        let mut entry =
            ledger::entry(&agents.config, &step.name, agent, outcome, request.model.as_deref());
        if !entry.priced && outcome.usage.is_some() {
            let name =
                if entry.call.model.is_empty() { "of this agent" } else { &entry.call.model };
            let text = format!(
                "no price is known for the model {name}; set [prices.\"{name}\"] to count its cost"
            );
            observer(&AgentEvent::Warning { message: text.into() });
        }
        if !outcome.is_settled() {
            ledger::reserve(&mut entry.call, attempt.estimate_usd);
        }
        total += entry.call.cost;
        entry.call.duration_ms = u64::try_from(attempt.duration.as_millis()).unwrap_or(u64::MAX);
        entry.call.timestamp = Some(now);
        entry.call.run = ledger::run_number(&attempt.run_file);
        calls.push(entry.call);
    }
    let succeeded = attempts.last().map(|last| &last.outcome).filter(|o| o.reported_success());
    let (project, documents) = (&agents.project, Some(&written.documents));
    let (id, holder) = (&step.change, &agents.holder);
    let question = match succeeded {
        Some(_) => asked::take(agents, id, step.role)?,
        None => None,
    };
    let ((), state) = updated_state(project, id, holder, now, documents, |state| {
        let mut asks = false;
        if let Some(last) = calls.last_mut().filter(|_| succeeded.is_some()) {
            asks = state.take_question(last, question, now);
        }
        for call in calls {
            state.record_call(call);
        }
        state.last_action = Some(step.name.clone().into());
        // A step that waits for an answer is not done.
        if let (Some(on_success), Some(outcome), false) = (step.on_success, succeeded, asks) {
            on_success(state, outcome);
        }
        Ok(())
    })?;
    asked::clear(project, id)?;
    Ok((total, state))
}
