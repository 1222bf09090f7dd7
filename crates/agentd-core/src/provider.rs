//! What agentd knows about each agent CLI: how to call it and how to read what it
//! prints. Pure: a [`Provider`] turns an [`AgentRequest`] into a [`CommandSpec`],
//! and its [`Decoder`] turns lines into [`AgentEvent`]s. Starting the program is
//! the engine's business.
//!
//! The invocations and formats are those of gemini 0.61, codex 0.166 and claude
//! 2.1, as observed. Unknown fields and unknown lines are never an error.

pub mod acp;
mod assistant_text;
pub mod classify;
mod claude;
mod codex;
mod env_file;
mod gemini;
mod json_merge;
pub mod models;
mod own;
pub mod prices;
mod quota;
pub mod review;
pub mod sessions;
mod tally;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use acp::{Acp, Connection};
pub use claude::Claude;
pub use codex::Codex;
pub use env_file::EnvFile;
pub use gemini::Gemini;
pub use json_merge::JsonMerge;
pub use own::{BUILTIN, Builtin, REPLAY, Replay};

use crate::agent::{AgentKind, Role, Transport};
use crate::event::AgentEvent;
use crate::ids::ChangeId;
use crate::known_agent::{CliState, HomeSettings};
use crate::outcome::{AgentOutcome, Exit, Usage};
use crate::step_name::StepName;

/// The name under which agents know agentd's MCP server.
pub const MCP_SERVER: &str = "agentd";

/// Where a decoder puts its events.
pub(crate) type Sink<'s> = dyn FnMut(AgentEvent<'_>) + 's;

/// Knows one agent CLI: how to call it, how to read it.
pub trait Provider: Send + Sync {
    /// Which CLI this is.
    fn kind(&self) -> AgentKind;
    /// The command that makes the call.
    fn command(&self, request: &AgentRequest) -> CommandSpec;
    /// A reader for the output of that call.
    fn decoder(&self, request: &AgentRequest) -> Box<dyn Decoder>;
}

/// Reads the output of one call, line by line.
pub trait Decoder: Send {
    /// Takes one line, without its line end, and hands out what it means.
    fn line(&mut self, line: &str, sink: &mut Sink<'_>);
    /// Whether the call cannot succeed any more, although the agent goes on: it should be ended.
    fn is_hopeless(&self) -> bool;
    /// The program has ended: what came of the call.
    fn finish(self: Box<Self>, exit: &Exit) -> AgentOutcome;
    /// In a dialogue: what is to be written to the agent now.
    fn take_output(&mut self) -> String {
        String::new()
    }
    /// In a dialogue: whether the turn is over, although the program still runs.
    fn is_over(&self) -> bool {
        false
    }
    /// In a dialogue: how long the agent has to be silent before [`Decoder::silence`].
    fn wants_silence(&self) -> Option<Duration> {
        None
    }
    /// In a dialogue: the agent was silent for as long as was wanted.
    fn silence(&mut self, _sink: &mut Sink<'_>) {}
    /// In a dialogue: asks the agent to stop.
    fn cancel(&mut self) {}
    /// In a dialogue: what is known about the process, for the next call of it.
    fn connection(&self) -> Option<Connection> {
        None
    }
}

/// The provider for an agent.
pub fn provider(agent: AgentKind, transport: Transport) -> Box<dyn Provider> {
    match (agent, transport) {
        (AgentKind::Builtin, _) => Box::new(Builtin),
        (AgentKind::Replay, _) => Box::new(Replay),
        (AgentKind::Gemini, Transport::Cli) => Box::new(Gemini),
        (AgentKind::Codex, Transport::Cli) => Box::new(Codex),
        (AgentKind::Claude, Transport::Cli) => Box::new(Claude),
        (
            AgentKind::Gemini | AgentKind::Codex | AgentKind::Claude | AgentKind::Named(_),
            Transport::Cli | Transport::Acp,
        ) => Box::new(Acp::new(agent)),
    }
}

/// One call to an agent, whatever CLI it is.
#[derive(Debug, Clone)]
pub struct AgentRequest {
    /// What the agent is asked to be; decides what it may touch.
    pub role: Role,
    /// The change that it works on.
    pub change: ChangeId,
    /// The step.
    pub step: StepName,
    /// The prompt, given on standard input.
    pub prompt: String,
    /// The working tree, which is also the working directory (E2.4).
    pub project_root: PathBuf,
    /// A directory for this call alone, outside version control, that exists when
    /// the program starts and is removed afterwards.
    pub private_dir: PathBuf,
    /// The program of this agent: a name or a path.
    pub program: String,
    /// Extra arguments of the user's, passed as they are.
    pub extra_args: Vec<String>,
    /// Extra environment of the user's for this agent.
    pub extra_env: Vec<(String, String)>,
    /// Where this agent keeps its own files, by the user's settings.
    pub extra_state: Vec<PathBuf>,
    /// The names (never values) that the environment of the call already has.
    pub env_names: Vec<String>,
    /// The model; none leaves it to the CLI.
    pub model: Option<String>,
    /// The effort, for CLIs that know one.
    pub effort: Option<String>,
    /// The session to resume; none starts a fresh one.
    pub session: Session,
    /// agentd's MCP server; none for a call that needs no tools.
    pub mcp: Option<McpServer>,
    /// What the call finds around it.
    pub surroundings: Surroundings,
    /// What the repository itself has for this CLI.
    pub found: FoundInProject,
}

impl AgentRequest {
    /// The tools of agentd that the call has.
    fn own_tools(&self) -> &[String] {
        self.mcp.as_ref().map(|mcp| mcp.tools.as_slice()).unwrap_or_default()
    }
}

/// What a call finds around it: the sandbox as it looks from inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Where temporary files go.
    pub tmp_dir: PathBuf,
    /// Whether `/tmp` is the call's own, and is where temporary files go.
    pub private_tmp: bool,
    /// Where an implementer may write besides the working tree and the temporary directory.
    pub writable: Vec<PathBuf>,
    /// Whether commands may use the network.
    pub network: bool,
}

impl Default for Surroundings {
    /// No sandbox at all.
    fn default() -> Self {
        Self { tmp_dir: "/tmp".into(), private_tmp: false, writable: Vec::new(), network: true }
    }
}

/// What a repository has for an agent CLI. Its instructions are handed to the agent as text;
/// its settings have no effect: a person who clones a repository has not agreed to them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundInProject {
    /// The directories, from the working tree up to the top of the repository, whose settings the
    /// CLI has to be kept from; empty where there are none.
    pub settings_dirs: Vec<PathBuf>,
    /// CLAUDE.md or AGENTS.md of the working tree, where the CLI does not read it by itself.
    pub instructions: Option<String>,
}

/// Which session a call runs in.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Session {
    /// A fresh one, whose id the CLI chooses.
    #[default]
    Fresh,
    /// A fresh one with this id (gemini, claude; codex chooses its own).
    FreshWithId(String),
    /// An earlier one. The id that the CLI reports must be the same, otherwise the
    /// call fails (C6).
    Resume {
        /// The id.
        id: String,
        /// Gemini only: resume by this index of `--list-sessions`.
        index: Option<u32>,
        /// Codex only: [`AgentOutcome::thread_usage`] of the call before.
        thread_usage: Option<Usage>,
        /// What the session has cost so far, for agents that report the cost of all of it.
        cost_before: Option<f64>,
    },
}

impl Session {
    /// The id that the CLI must report, if it is known beforehand.
    fn expected_id(&self) -> Option<&str> {
        match self {
            Self::Resume { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// How an agent starts agentd's MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// The path of the agentd program.
    pub command: String,
    /// Its arguments: `-C <project> mcp --change <id> --role <role> --step <step> --receipt <file>`.
    pub args: Vec<String>,
    /// The tools that it has.
    pub tools: Vec<String>,
}

impl McpServer {
    /// The server for a step of a change. The role decides which tools there are;
    /// some steps have tools of their own. A review gets its receipt with the key in the file
    /// `receipt`. The project is named, because an agent may
    /// work in a worktree that has an `agentd/` of its own.
    pub fn new(
        program: impl Into<String>,
        project: &str,
        change: &ChangeId,
        role: Role,
        step: &StepName,
        receipt: Option<&Path>,
    ) -> Self {
        let receipt = receipt.map_or_else(|| "-".to_owned(), path_text);
        // Always of the same length: see the variables of Gemini CLI.
        let (change, role, step) = (change.as_str(), role.name(), step.to_string());
        let bound = ["--change", change, "--role", role, "--step", &step, "--receipt", &receipt];
        let args = ["-C", project, "mcp"].into_iter().chain(bound);
        Self { command: program.into(), args: args.map(str::to_owned).collect(), tools: Vec::new() }
    }
}

/// A program to run, and what to prepare for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandSpec {
    /// A program name or path.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What is added to the environment.
    pub env: Vec<(String, String)>,
    /// Files to write into the private directory before the start.
    pub files: Vec<PrivateFile>,
    /// A file of the project that must hold some keys while the program runs.
    pub merge: Option<JsonMerge>,
    /// A file of variables that the program takes from the repository, whatever its settings say.
    pub env_file: Option<EnvFile>,
    /// What to write to standard input, which is then closed.
    pub stdin: String,
    /// Where the agent keeps its own files, which it writes to in every role.
    pub state: &'static [CliState],
    /// Where else it does, by the user's settings.
    pub extra_state: Vec<PathBuf>,
    /// Whether the CLI confines its commands by itself, with mounts.
    pub makes_mounts: bool,
    /// Settings among its own files that it only reads.
    pub settings: Option<HomeSettings>,
    /// Files and directories of the repository that the agent would obey, and cannot be kept from.
    pub obeys: &'static [&'static str],
    /// Whether standard input stays open: the agent is talked to, and nothing of `stdin` is written
    /// as it is.
    pub is_dialogue: bool,
}

/// A file in the private directory of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateFile {
    /// Its absolute path, inside the private directory.
    pub path: PathBuf,
    /// What it holds.
    pub contents: String,
}

/// A path as an argument. Paths of agentd are UTF-8, because they also stand in
/// JSON and YAML; anything else would have been refused earlier.
fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A request as the tests of the providers start from.
    pub(crate) fn request(role: Role) -> AgentRequest {
        let change = ChangeId::new("add-oauth").unwrap();
        AgentRequest {
            role,
            mcp: Some(McpServer::new(
                "/opt/agentd",
                "/p",
                &change,
                role,
                &StepName::ProposalGen,
                None,
            )),
            change,
            step: StepName::ProposalGen,
            prompt: "agentd proposal-gen add-oauth\nhello".into(),
            project_root: "/work/p".into(),
            private_dir: "/work/p/agentd/.agents/1".into(),
            program: "prog".into(),
            extra_args: vec![],
            extra_env: vec![],
            extra_state: vec![],
            env_names: vec![],
            model: None,
            effort: None,
            session: Session::Fresh,
            surroundings: Surroundings {
                tmp_dir: "/tmp".into(),
                private_tmp: true,
                writable: vec!["/cache/p".into()],
                network: true,
            },
            found: FoundInProject::default(),
        }
    }

    /// Decodes a whole stream; the events as JSON lines, and the outcome.
    pub(crate) fn decode(
        provider: &dyn Provider,
        request: &AgentRequest,
        stream: &str,
        exit: &Exit,
    ) -> (Vec<String>, AgentOutcome) {
        let mut decoder = provider.decoder(request);
        let mut events = Vec::new();
        for line in stream.lines() {
            decoder.line(line, &mut |event| events.push(serde_json::to_string(&event).unwrap()));
        }
        (events, decoder.finish(exit))
    }

    pub(crate) fn exit(code: i32) -> Exit {
        Exit { code: Some(code), ..Exit::default() }
    }
}
