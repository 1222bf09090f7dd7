//! What agentd knows about each agent CLI: how to call it and how to read what it
//! prints. Pure: a [`Provider`] turns an [`AgentRequest`] into a [`CommandSpec`],
//! and its [`Decoder`] turns lines into [`AgentEvent`]s. Starting the program is
//! the engine's business.
//!
//! The invocations and formats are those of gemini 0.61, codex 0.166 and claude
//! 2.1, as observed. Unknown fields and unknown lines are never an error.

mod assistant_text;
pub mod classify;
mod claude;
mod codex;
mod gemini;
pub mod models;
mod own;
pub mod prices;
pub mod review;
pub mod sessions;
mod tally;

use std::path::{Path, PathBuf};

pub use claude::Claude;
pub use codex::Codex;
pub use gemini::Gemini;
pub use own::{BUILTIN, Builtin, REPLAY, Replay};

use crate::agent::{AgentKind, Role};
use crate::event::{AgentEvent, Usage};
use crate::ids::ChangeId;
use crate::outcome::{AgentOutcome, Exit};

/// The name under which agents know agentd's MCP server.
pub const MCP_SERVER: &str = "agentd";

/// Where a decoder puts its events.
pub type Sink<'s> = dyn FnMut(AgentEvent<'_>) + 's;

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
    /// The program has ended: what came of the call.
    fn finish(self: Box<Self>, exit: &Exit) -> AgentOutcome;
}

/// The provider for a kind of agent.
pub fn provider(kind: AgentKind) -> &'static dyn Provider {
    match kind {
        AgentKind::Gemini => &Gemini,
        AgentKind::Codex => &Codex,
        AgentKind::Claude => &Claude,
        AgentKind::Builtin => &Builtin,
        AgentKind::Replay => &Replay,
    }
}

/// One call to an agent, whatever CLI it is.
#[derive(Debug, Clone)]
pub struct AgentRequest {
    /// What the agent is asked to be; decides what it may touch.
    pub role: Role,
    /// The change that it works on.
    pub change: ChangeId,
    /// The step, such as `proposal-gen`.
    pub step: String,
    /// The prompt, given on standard input.
    pub prompt: String,
    /// The work tree, which is also the working directory (E2.4).
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
    /// The names (never values) that the environment of the call already has.
    pub env_names: Vec<String>,
    /// The model; none leaves it to the CLI.
    pub model: Option<String>,
    /// The effort, for CLIs that know one.
    pub effort: Option<String>,
    /// The session to go on with; none starts a fresh one.
    pub session: Session,
    /// agentd's MCP server; none for a call that needs no tools.
    pub mcp: Option<McpServer>,
    /// What the call finds around it.
    pub surroundings: Surroundings,
}

/// What a call finds around it: the sandbox as it looks from inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Where temporary files go.
    pub tmp_dir: PathBuf,
    /// Whether `/tmp` is the call's own, and is where temporary files go.
    pub private_tmp: bool,
    /// Where an implementer may write besides the work tree and the temporary directory.
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

/// Which session a call runs in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Session {
    /// A fresh one, whose id the CLI chooses.
    #[default]
    Fresh,
    /// A fresh one with this id (gemini, claude; codex chooses its own).
    FreshWithId(String),
    /// An earlier one. The id that the CLI reports must be the same, else the
    /// call fails (C6).
    Resume {
        /// The id.
        id: String,
        /// Gemini only: resume by this index of `--list-sessions`.
        index: Option<u32>,
        /// Codex only: [`AgentOutcome::thread_usage`] of the call before.
        thread_usage: Option<Usage>,
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
    /// Its arguments: `-C <project> mcp --change <id> --role <role> --step <step>`.
    pub args: Vec<String>,
}

impl McpServer {
    /// The server for a step of a change. The role decides which tools there are;
    /// some steps have tools of their own. The project is named, because an agent may
    /// work in a work tree that has an `agentd/` of its own.
    pub fn new(
        program: impl Into<String>,
        project: &str,
        change: &ChangeId,
        role: Role,
        step: &str,
    ) -> Self {
        // Always of the same length: see the variables of Gemini CLI.
        let (change, role) = (change.as_str(), role.name());
        let args = ["-C", project, "mcp", "--change", change, "--role", role, "--step", step];
        Self { command: program.into(), args: args.map(str::to_owned).to_vec() }
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
    /// What to write to standard input, which is then closed.
    pub stdin: String,
    /// Where the CLI keeps its own files, which it writes to in every role.
    pub state: Option<CliState>,
    /// Whether the CLI confines its commands by itself, with mounts.
    pub makes_mounts: bool,
}

/// Where a CLI keeps its own files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CliState {
    /// A directory in the user's home, which the CLI makes when it is missing.
    pub directory: &'static str,
    /// A file in the user's home, beside it.
    pub file: Option<&'static str>,
    /// A variable by which the user may have put them elsewhere.
    pub variable: &'static str,
}

/// A file in the private directory of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateFile {
    /// Its absolute path, inside the private directory.
    pub path: PathBuf,
    /// What it holds.
    pub contents: String,
}

/// Keys that a JSON file of the project must have while a program runs. The file
/// is put back afterwards; what somebody else changed in it meanwhile stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonMerge {
    /// The file, relative to the project.
    pub path: &'static str,
    /// Paths of keys, each with its value. The same for every call of a provider,
    /// so that two calls at once do not disturb each other.
    pub set: Vec<(&'static [&'static str], serde_json::Value)>,
}

impl JsonMerge {
    /// The text of the file with the keys set. None: the text is not a JSON object.
    pub fn apply(&self, text: Option<&str>) -> Option<String> {
        let mut root = match text.map(str::trim) {
            None | Some("") => serde_json::Value::Object(serde_json::Map::new()),
            Some(text) => serde_json::from_str(text).ok().filter(serde_json::Value::is_object)?,
        };
        for (path, value) in &self.set {
            let mut place = &mut root;
            for key in *path {
                if !place.is_object() {
                    *place = serde_json::Value::Object(serde_json::Map::new());
                }
                place = place.as_object_mut()?.entry(*key).or_insert(serde_json::Value::Null);
            }
            *place = value.clone();
        }
        serde_json::to_string_pretty(&root).ok().map(|text| text + "\n")
    }

    /// The text with the keys taken out again and everything else kept. None: it
    /// is not a JSON object any more, and is best left alone.
    pub fn remove(&self, text: &str) -> Option<String> {
        fn take(value: &mut serde_json::Value, path: &[&str]) {
            let (Some(object), [key, rest @ ..]) = (value.as_object_mut(), path) else { return };
            let emptied = match object.get_mut(*key) {
                Some(inner) if !rest.is_empty() => {
                    take(inner, rest);
                    inner.as_object().is_some_and(serde_json::Map::is_empty)
                }
                _ => true,
            };
            if emptied {
                object.shift_remove(*key);
            }
        }
        let mut root: serde_json::Value = serde_json::from_str(text).ok()?;
        root.as_object()?;
        for (path, value) in &self.set {
            let pointer = format!("/{}", path.join("/"));
            if root.pointer(&pointer) == Some(value) {
                take(&mut root, path);
            }
        }
        serde_json::to_string_pretty(&root).ok().map(|text| text + "\n")
    }
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
            mcp: Some(McpServer::new("/opt/agentd", "/p", &change, role, "proposal-gen")),
            change,
            step: "proposal-gen".into(),
            prompt: "agentd proposal-gen add-oauth\nhello".into(),
            project_root: "/work/p".into(),
            private_dir: "/work/p/agentd/.agents/1".into(),
            program: "prog".into(),
            extra_args: vec![],
            extra_env: vec![],
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

    #[test]
    fn a_merge_can_be_undone_and_keeps_what_others_wrote() {
        let merge = JsonMerge {
            path: ".gemini/settings.json",
            set: vec![(&["mcpServers", "agentd"], serde_json::json!({"command": "a"}))],
        };
        let merged = merge.apply(Some(r#"{"ui":{"theme":"x"},"mcpServers":{"o":{}}}"#)).unwrap();
        assert!(merged.contains("agentd"));
        let edited = merged.replace("\"x\"", "\"y\"");
        let back: serde_json::Value =
            serde_json::from_str(&merge.remove(&edited).unwrap()).unwrap();
        assert_eq!(back, serde_json::json!({"ui":{"theme":"y"},"mcpServers":{"o":{}}}));
        assert_eq!(merge.remove(&merge.apply(None).unwrap()).unwrap(), "{}\n");
        assert_eq!(merge.apply(Some("[1]")), None);
        assert_eq!(merge.apply(Some("// comment\n{}")), None);
    }
}
