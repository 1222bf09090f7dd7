//! One step of a workflow: the agent that plays a role is called, and what came of
//! it is judged by what is on the disk.
//!
//! The order is always the same: budget, call, ledger, artifact. A step has
//! succeeded when the agent said so *and* the file that the step was for is there,
//! is new, and is valid. Every attempt goes into `llm_calls` before anything is
//! judged, so that no failure can hide what it has cost.

mod artifact;
mod cause;
mod error;
mod guarded;
pub(crate) mod ledger;
mod session_turn;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentd_core::agent::{AgentKind, Complexity, Role};
use agentd_core::config::{Budget, Config};
use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::outcome::{AgentOutcome, Failure, FailureKind, Usage};
use agentd_core::prompt::in_language;
use agentd_core::provider::classify::not_installed;
use agentd_core::provider::models::choose;
use agentd_core::provider::prices::PriceTable;
use agentd_core::provider::sessions::{ListOutput, find};
use agentd_core::provider::{
    AgentRequest, CommandSpec, Gemini, McpServer, Provider as _, Session, provider,
};
use agentd_core::stamp::Stamp;
use agentd_core::state::State;
use agentd_core::step_name::StepName;

use crate::agents::files::restore_leftovers;
use crate::agents::receipts;
use crate::agents::redact::Redactor;
use crate::agents::run_record::RecordLimits;
use crate::agents::runner::{Attempt, Observer, Retry, RunError, Runner, Spending};
use crate::change::Snapshot;
use crate::change::documents::updated_state;
use crate::change::signing;
use crate::git::{GitSandbox, GitTool};
use crate::guard::calls;
use crate::guard::git_files::TamperedFile;
use crate::guard::project_files;
use crate::guard::sandbox::{self, Sandbox, SandboxError};
use crate::guard::trust::Trusted;
use crate::process::{self, Cancel, Limits, Supervisor};
use crate::store::{Holder, Project, StoreError};

pub use artifact::Artifact;
use artifact::{OnDisk, judge};
pub(crate) use error::BY_RULES;
pub use error::StepError;
use guarded::Guarded;
pub use guarded::run_tests;
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
    /// The role; the config says who plays it.
    pub role: Role,
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
    /// The record of the last attempt.
    pub run_file: PathBuf,
    /// The change as the step has left it.
    pub after: Snapshot,
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
    let agent = agents.config.roles.agent(step.role);
    let sandbox = Sandbox::open(agents, Some(&step.change))?;
    let mut runner = runner(agents, sandbox);
    runner.spending = spending(state, &agents.config);
    // No agent runs while the key of an earlier call could be read.
    receipts::withdraw(&agents.project, &step.change)?;
    let receipt = if receipts::gives_verdicts(step.role) {
        Some(receipts::issue(&agents.project, &step.change)?)
    } else {
        None
    };
    let mut turn = SessionTurn::take(agents, step, agent, observer)?;
    let request = request(agents, &runner, step, agent, state, receipt.as_deref())?;
    restore_settings(&request)?;
    let on_disk = OnDisk::of(agents, before, &step.artifact)?;
    // Else a call could pass for an earlier one whose file is not here, and not be counted.
    runner.record.last_run =
        state.llm_calls.iter().filter_map(|call| call.run).max().unwrap_or_default();
    let guarded = Guarded::take(agents, &step.change, step.role, &request.private_dir)?;
    let mut watch = |event: &AgentEvent<'_>| {
        turn.watch(event);
        observer(event);
    };
    let report =
        runner.call(provider(agent), &request, &change, limits(&agents.config, agent), &mut watch);
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
    let Some(last) = report.attempts.last() else {
        let message = "there was no attempt at all";
        let failure = Failure::new(FailureKind::Other, message);
        return Err(StepError::Agent { agent, failure });
    };
    let tampered: Vec<TamperedFile> = last.tampered.iter().cloned().chain(forged).collect();
    if !tampered.is_empty() {
        return Err(StepError::Tampered { who: agent.name(), tampered });
    }
    if let Some(failure) = &last.outcome.failure {
        if failure.kind == FailureKind::Budget {
            let ended = Some(agent);
            check_budget(&step.change, &state, &agents.config.budget, ended)?;
        }
        return Err(StepError::Agent { agent, failure: failure.clone() });
    }
    let after = written.with_state(state);
    let changed = artifact::changed(&before.documents, &after.documents);
    judge(agents, &after, step, agent, &on_disk, &changed, &last.outcome)?;
    Ok(StepReport {
        after,
        agent,
        outcome: last.outcome.clone(),
        cost_usd,
        duration: report.attempts.iter().map(|attempt| attempt.duration).sum(),
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

/// The private directory of a call, in the user's state directory.
fn private_dir(agents: &Agents, call: &str) -> Result<PathBuf, StoreError> {
    // Made here, so that it is the user's own.
    agents.project.state_dir()?;
    let state = agents.project.user().state_path(agents.project.root())?;
    Ok(calls::private_dir(&state, call))
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

/// What a call may use of the budget, after what the change has used (T8).
fn spending(state: &State, config: &Config) -> Spending {
    let tokens = state.total_tokens_in + state.total_tokens_out;
    Spending {
        tokens: config.budget.max_tokens.map(|limit| limit.saturating_sub(tokens)),
        cost_usd: config.budget.max_cost_usd.map(|limit| limit - state.total_cost),
        prices: PriceTable::default().with(config.prices.clone()),
    }
}

/// Fails where the budget is used up; `ended` is the agent whose call was ended for it.
fn check_budget(
    change: &ChangeId,
    state: &State,
    budget: &Budget,
    ended: Option<AgentKind>,
) -> Result<(), StepError> {
    let used_up = |spent: String, limit: String| {
        Err(StepError::Budget { change: change.clone(), spent, limit, ended })
    };
    if let Some(limit) = budget.max_cost_usd
        && state.total_cost >= limit
    {
        return used_up(format!("${:.4}", state.total_cost), format!("${limit:.4}"));
    }
    let tokens = state.total_tokens_in + state.total_tokens_out;
    if let Some(limit) = budget.max_tokens
        && tokens >= limit
    {
        return used_up(format!("{tokens} tokens"), format!("{limit} tokens"));
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
    }
}

fn request(
    agents: &Agents,
    runner: &Runner,
    step: &Step,
    agent: AgentKind,
    state: &State,
    receipt: Option<&Path>,
) -> Result<AgentRequest, StepError> {
    let settings = agents.config.agent(agent);
    let complexity = state.complexity.unwrap_or(Complexity::Medium);
    let model = choose(agent, complexity, settings.models.get(&complexity));
    let change_dir = agents.project.root().join(layout::change_dir(&step.change).as_path());
    let private_dir = private_dir(agents, &format!("{}-{}", step.change, step.name))?;
    let mut request = AgentRequest {
        role: step.role,
        change: step.change.clone(),
        step: step.name.clone(),
        prompt: in_language(&step.prompt, agents.config.project.language.as_ref()),
        project_root: agents.work_tree.clone(),
        private_dir,
        program: if agent.is_own() { agents.agentd.clone() } else { program(agents, agent)? },
        extra_args: extra_args(agents, agent, &change_dir),
        extra_env: settings.env.clone().into_iter().collect(),
        env_names: agents
            .environment
            .iter()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect(),
        model: model.model,
        effort: model.effort,
        session: Session::Fresh,
        mcp: Some(McpServer::new(
            agents.agentd.clone(),
            &agents.project.root().to_string_lossy(),
            &step.change,
            step.role,
            &step.name,
            receipt,
        )),
        surroundings: match &runner.sandbox {
            Some(sandbox) => sandbox.surroundings(),
            None => sandbox::no_surroundings(&agents.environment),
        },
        found: project_files::look(agent, &agents.work_tree, &agents.environment),
    };
    if let Some(id) = &step.resume {
        let index = if session_turn::by_index(agents, agent) {
            let output = runner.list_sessions(&request, limits(&agents.config, agent))?;
            Some(find(&output, id)?.index)
        } else {
            None
        };
        let thread_usage = (agent == AgentKind::Codex).then(|| usage_of_session(state, id));
        request.session = Session::Resume { id: id.clone(), index, thread_usage };
    }
    Ok(request)
}

/// The program of an agent. A plain name never means a program of the repository.
pub(super) fn program(agents: &Agents, agent: AgentKind) -> Result<String, StepError> {
    let name = agents.config.agent(agent).command.as_deref().unwrap_or(agent.name());
    process::resolve(name, &agents.environment, agents.project.root()).map_err(|inside| {
        let failure = not_installed(agent, name, &inside.to_string());
        StepError::Agent { agent, failure }
    })
}

/// The user's own arguments; for a replay, which recording is played and what has been
/// played of it, as the runs of the change show.
fn extra_args(agents: &Agents, agent: AgentKind, change_dir: &Path) -> Vec<String> {
    let replay = &agents.config.replay;
    let (AgentKind::Replay, Some(recording)) = (agent, &replay.recording) else {
        return agents.config.agent(agent).args.clone();
    };
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let recording = text(agents.project.root().join(recording));
    let (speed, runs) = (replay.speed.to_string(), text(change_dir.join("runs")));
    ["--recording", &recording, "--speed", &speed, "--runs", &runs].map(str::to_owned).to_vec()
}

/// What a session has used so far, from the ledger: codex reports a thread's running
/// total, and each call was recorded for itself.
pub(crate) fn usage_of_session(state: &State, id: &str) -> Usage {
    let mut sum = Usage::default();
    for call in state.llm_calls.iter().filter(|call| call.session_id.as_deref() == Some(id)) {
        sum.input += call.tokens_in;
        sum.cached += call.tokens_cached;
        sum.output += call.tokens_out;
    }
    sum
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
    let agent = agents.config.roles.agent(step.role);
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
        total += entry.call.cost;
        entry.call.duration_ms = u64::try_from(attempt.duration.as_millis()).unwrap_or(u64::MAX);
        entry.call.timestamp = Some(now);
        entry.call.run = ledger::run_number(&attempt.run_file);
        calls.push(entry.call);
    }
    let succeeded = attempts.last().map(|last| &last.outcome).filter(|o| o.reported_success());
    let (project, documents) = (&agents.project, Some(&written.documents));
    let (id, holder) = (&step.change, &agents.holder);
    let ((), state) = updated_state(project, id, holder, now, documents, |state| {
        for call in calls {
            state.record_call(call);
        }
        state.last_action = Some(step.name.clone().into());
        if let (Some(on_success), Some(outcome)) = (step.on_success, succeeded) {
            on_success(state, outcome);
        }
        Ok(())
    })?;
    Ok((total, state))
}
