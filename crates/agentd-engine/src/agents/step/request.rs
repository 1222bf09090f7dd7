//! What is asked of an agent, in the terms of its provider.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use agentd_core::agent::{AgentKind, Complexity, Transport};
use agentd_core::config::places;
use agentd_core::hash::Digest;
use agentd_core::layout;
use agentd_core::outcome::Usage;
use agentd_core::prompt::in_language;
use agentd_core::provider::classify::not_installed;
use agentd_core::provider::sessions::find;
use agentd_core::provider::{AgentRequest, McpServer, Provider, Session, provider};
use agentd_core::state::State;

use super::{Agents, Step, StepError, limits, session_turn};
use crate::agents::runner::Runner;
use crate::guard::sandbox::{self, variable};
use crate::guard::{calls, project_files};
use crate::process;
use crate::store::StoreError;
use crate::tools;

/// How an agent is called here.
pub(super) fn provider_of(agents: &Agents, agent: AgentKind) -> Box<dyn Provider> {
    provider(agent, agents.config.transport(agent))
}

/// The private directory of a call, in the user's state directory.
pub(super) fn private_dir(agents: &Agents, call: &str) -> Result<PathBuf, StoreError> {
    // Made here, so that it is the user's own.
    agents.project.state_dir()?;
    let state = agents.project.user().state_path(agents.project.root())?;
    Ok(calls::private_dir(&state, call))
}

/// The request for a step.
pub(super) fn request(
    agents: &Agents,
    runner: &Runner,
    step: &Step,
    agent: AgentKind,
    state: &State,
    receipt: Option<&Path>,
) -> Result<AgentRequest, StepError> {
    let settings = agents.config.agent(agent);
    let complexity = state.complexity.unwrap_or(Complexity::Medium);
    let model = agents.config.model(agent, complexity);
    let change_dir = agents.project.root().join(layout::change_dir(&step.change).as_path());
    let private_dir = private_dir(agents, &format!("{}-{}", step.change, step.name))?;
    let (program, first_args) = program(agents, agent)?;
    let mut request = AgentRequest {
        role: step.role,
        change: step.change.clone(),
        step: step.name.clone(),
        prompt: in_language(&step.prompt, agents.config.project.language.as_ref()),
        project_root: agents.work_tree.clone(),
        private_dir,
        program,
        extra_args: [first_args, extra_args(agents, agent, &change_dir)].concat(),
        extra_env: extra_env(agents, agent)?,
        extra_state: places(&settings.state, variable(&agents.environment, "HOME").as_deref()),
        env_names: agents
            .environment
            .iter()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect(),
        model: model.model,
        effort: model.effort,
        session: Session::Fresh,
        mcp: Some(McpServer {
            tools: tools::names_for(step.role, &step.name),
            ..McpServer::new(
                agents.agentd.clone(),
                &agents.project.root().to_string_lossy(),
                &step.change,
                step.role,
                &step.name,
                receipt,
            )
        }),
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
        let cost_before = Some(cost_of_session(state, id));
        request.session = Session::Resume { id: id.clone(), index, thread_usage, cost_before };
    }
    Ok(request)
}

/// The program of an agent, and its first arguments. A plain name never means a program of the
/// repository.
pub(in crate::agents) fn program(
    agents: &Agents,
    agent: AgentKind,
) -> Result<(String, Vec<String>), StepError> {
    if agent.is_own() {
        return Ok((agents.agentd.clone(), Vec::new()));
    }
    let mut words = agents.config.command(agent);
    // The settings name none where nobody has agreed to what they name.
    let name = if words.is_empty() { agent.to_string() } else { words.remove(0) };
    Ok((resolved(agents, agent, &name)?, words))
}

/// What tells a program of an agent, as it is set and as it is installed now, from others: what a
/// probe has found out is about this one. Another version of it is another file.
pub(in crate::agents) fn identity(agents: &Agents, agent: AgentKind) -> Option<Digest> {
    let words = agents.config.command(agent);
    let settings = agents.config.agent(agent);
    let program = process::find_program(words.first()?, &agents.path(), agents.project.root())?;
    let program = program.canonicalize().ok()?;
    let metadata = program.metadata().ok()?;
    let models: Vec<_> = Complexity::ALL.map(|it| agents.config.model(agent, it)).to_vec();
    let transport = agents.config.transport(agent);
    Some(Digest::of(format!(
        "{} {} {} {} {words:?} {:?} {:?} {transport:?} {models:?} {}",
        program.display(),
        metadata.len(),
        metadata.ino(),
        // Not that of the content: npm installs every version with the same one.
        metadata.ctime(),
        settings.args,
        settings.env,
        agents.config.sandbox.enabled,
    )))
}

fn resolved(agents: &Agents, agent: AgentKind, name: &str) -> Result<String, StepError> {
    process::resolve(name, &agents.environment, agents.project.root()).map_err(|inside| {
        let failure = not_installed(agent, name, &inside.to_string());
        StepError::Agent { agent, role: None, failure: Box::new(failure) }
    })
}

/// The user's own variables for an agent. Adapters that speak ACP for a CLI start the one that is
/// set, if one is.
fn extra_env(agents: &Agents, agent: AgentKind) -> Result<Vec<(String, String)>, StepError> {
    let settings = agents.config.agent(agent);
    let mut env = Vec::new();
    let adapter = match agent {
        AgentKind::Codex => Some("CODEX_PATH"),
        AgentKind::Claude => Some("CLAUDE_CODE_EXECUTABLE"),
        _ => None,
    };
    if let (Some(variable), Some(command), Transport::Acp) =
        (adapter, &settings.command, agents.config.transport(agent))
    {
        env.push((variable.to_owned(), resolved(agents, agent, command)?));
    }
    env.extend(settings.env.clone());
    Ok(env)
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
    let calls = state.llm_calls.iter().filter(|call| call.session_id.as_deref() == Some(id));
    let usage = calls.map(|call| Usage {
        input: call.tokens_in,
        cached: call.tokens_cached,
        output: call.tokens_out,
        ..Usage::default()
    });
    usage.sum()
}

/// What a session has cost so far, from the ledger.
fn cost_of_session(state: &State, id: &str) -> f64 {
    let calls = state.llm_calls.iter().filter(|call| call.session_id.as_deref() == Some(id));
    calls.map(|call| call.cost).sum()
}
