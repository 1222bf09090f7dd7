//! How a call is made: by a process of its own, or as a turn of one that is talked to.

use std::ffi::OsString;
use std::path::Path;

use agentd_core::provider::{Acp, AgentRequest, CommandSpec, Decoder, Provider};

use super::output::OutputHandler;
use super::{RunError, Runner};
use crate::agents::warm::{Start, WarmAgent, WarmError, WarmKey};
use crate::guard::calls;
use crate::process::{Cage, Limits, ProcessEnd, ProcessError, Program, Talk, run};

/// What a call is made with.
pub(super) enum Channel {
    /// A process for this call alone.
    Process { environment: Vec<(OsString, OsString)>, cage: Option<Cage> },
    /// A process that is talked to, and may serve further calls.
    Dialogue(Box<WarmAgent>),
}

impl Channel {
    /// The reader of the call.
    pub(super) fn decoder(
        &self,
        provider: &dyn Provider,
        request: &AgentRequest,
    ) -> Box<dyn Decoder> {
        match self {
            Self::Process { .. } => provider.decoder(request),
            Self::Dialogue(agent) => {
                Acp::new(provider.kind()).dialogue(request, agent.connection())
            }
        }
    }
}

impl From<WarmError> for RunError {
    fn from(error: WarmError) -> Self {
        match error {
            WarmError::Files(error) => error.into(),
            WarmError::Process(error) => error.into(),
        }
    }
}

impl Runner {
    /// Gets ready what a call is made with: for a dialogue, a process that runs.
    pub(super) fn channel(
        &self,
        provider: &dyn Provider,
        request: &AgentRequest,
        spec: &CommandSpec,
        environment: Vec<(OsString, OsString)>,
        cage: Option<Cage>,
        limits: Limits,
    ) -> Result<Channel, RunError> {
        if !spec.is_dialogue {
            return Ok(Channel::Process { environment, cage });
        }
        let key = warm_key(provider, request);
        let start = start(spec, environment);
        if let Some(agent) = self.warm.take(&key, &start) {
            return Ok(Channel::Dialogue(Box::new(agent)));
        }
        let agent = self.start_agent(key, start, cage, limits, request)?;
        Ok(Channel::Dialogue(Box::new(agent)))
    }

    /// Starts the process for a later call, unless one waits for it already.
    pub(crate) fn start_early(
        &self,
        provider: &dyn Provider,
        request: &AgentRequest,
        limits: Limits,
    ) -> Result<(), RunError> {
        let spec = provider.command(request);
        let key = warm_key(provider, request);
        if !spec.is_dialogue || self.warm.has(&key) {
            return Ok(());
        }
        let who = crate::guard::sandbox::SandboxUser::Agent(request.role, &spec);
        let start = start(&spec, self.environment_for(who, &spec.env));
        let cage = self.sandbox.as_ref().map(|sandbox| sandbox.cage(who));
        self.warm.add(self.start_agent(key, start, cage, limits, request)?);
        Ok(())
    }

    fn start_agent(
        &self,
        key: WarmKey,
        start: Start,
        cage: Option<Cage>,
        limits: Limits,
        request: &AgentRequest,
    ) -> Result<WarmAgent, WarmError> {
        let sandbox = self.sandbox.clone().zip(cage);
        let name = format!("{}-{}-process", request.change, request.role);
        let place = calls::beside(&request.private_dir, &name);
        WarmAgent::start(key, start, &self.supervisor, sandbox, limits, &place)
    }

    /// Makes the call. The process of a dialogue is kept if all went well, so that nothing odd is
    /// carried from one call to the next.
    pub(super) fn perform(
        &self,
        channel: Channel,
        spec: &CommandSpec,
        cwd: &Path,
        limits: Limits,
        watching: &mut OutputHandler<'_, '_>,
    ) -> Result<ProcessEnd, ProcessError> {
        match channel {
            Channel::Process { environment, cage } => {
                let program = Program {
                    program: &spec.program,
                    args: &spec.args,
                    env: &environment,
                    cwd,
                    stdin: spec.stdin.as_bytes(),
                    keeps_input_open: false,
                    cage: cage.as_ref(),
                };
                run(&self.supervisor, program, limits, &self.cancel, watching)
            }
            Channel::Dialogue(mut agent) => {
                let running = agent.wake();
                let stopped = match running.talk(limits, &self.cancel, watching)? {
                    Talk::Ended(end) => return Ok(end),
                    Talk::Over { stopped } => stopped,
                };
                let end = running.so_far(stopped);
                let connection = watching.decoder.connection();
                match connection.filter(|_| stopped.is_none() && !watching.failed) {
                    Some(connection) => drop(self.warm.keep(*agent, connection)),
                    None => drop(agent.end()),
                }
                Ok(end)
            }
        }
    }
}

fn warm_key(provider: &dyn Provider, request: &AgentRequest) -> WarmKey {
    WarmKey {
        agent: provider.kind(),
        role: request.role,
        change: request.change.clone(),
        work_tree: request.project_root.clone(),
    }
}

fn start(spec: &CommandSpec, environment: Vec<(OsString, OsString)>) -> Start {
    Start { program: spec.program.clone(), args: spec.args.clone(), environment }
}
