//! Gemini CLI: `gemini --output-format stream-json`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::classify::{kind_of_message, kind_of_status};
use super::tally::{Tally, Text, split_mcp_name};
use super::{
    AgentRequest, CommandSpec, Decoder, EnvFile, JsonMerge, MCP_SERVER, McpServer, PrivateFile,
    Provider, Session, Sink, path_text,
};
use crate::agent::AgentKind;
use crate::event::{AgentEvent, Json, LazyText};
use crate::known_agent::GEMINI_STATE;
use crate::outcome::{AgentOutcome, Exit, Failure, FailureKind, Usage};

/// Gemini CLI.
#[derive(Debug, Clone, Copy)]
pub struct Gemini;

/// Variables that every call needs.
pub(super) const TRUSTED_ENV: [(&str, &str); 2] = [
    // Else a project is untrusted, its settings are ignored and the exit is 55. The settings are
    // ours for the call, so this trusts nothing of the repository.
    ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    // Else a wrapper process starts, ignores signals and costs 0.7 s.
    ("GEMINI_CLI_NO_RELAUNCH", "true"),
];

/// What Gemini CLI takes from `.gemini/.env` of any directory above its own; there is no way to
/// tell it not to. These are what it accepts from a folder that nobody trusts.
pub(super) const ENV_FILE: EnvFile = EnvFile {
    path: ".gemini/.env",
    allowed: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"],
};

/// The tools with which a model can read the project and nothing else.
const READ_TOOLS: [&str; 5] =
    ["glob", "grep_search", "list_directory", "read_file", "read_many_files"];
/// What an implementer needs besides.
const WRITE_TOOLS: [&str; 4] = ["write_file", "replace", "run_shell_command", "write_todos"];

impl Provider for Gemini {
    fn kind(&self) -> AgentKind {
        AgentKind::Gemini
    }

    fn command(&self, request: &AgentRequest) -> CommandSpec {
        let policy = request.private_dir.join("gemini-policy.toml");
        let mut args = Vec::new();
        if let Some(model) = &request.model {
            args.extend(["-m".into(), model.clone()]);
        }
        args.extend(["--output-format".into(), "stream-json".into()]);
        match &request.session {
            Session::Fresh => {}
            Session::FreshWithId(id) => args.extend(["--session-id".into(), id.clone()]),
            Session::Resume { id, index, .. } => {
                let which = index.map_or_else(|| id.clone(), |index| index.to_string());
                args.extend(["--resume".into(), which]);
            }
        }
        args.extend(["--policy".into(), path_text(&policy)]);
        // Other servers of the project or the user are not part of the step. Without
        // a server of ours the name filters everything.
        args.extend(["--allowed-mcp-server-names".into(), MCP_SERVER.into()]);
        args.extend(request.extra_args.iter().cloned());

        let mut env: Vec<(String, String)> =
            TRUSTED_ENV.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        // Crash reports go to the temporary directory.
        env.push(("TMPDIR".into(), path_text(&request.surroundings.tmp_dir)));
        if let Some(mcp) = &request.mcp {
            env.extend(mcp_env(mcp));
        }
        env.extend(request.extra_env.iter().cloned());
        CommandSpec {
            program: request.program.clone(),
            args,
            env,
            files: vec![PrivateFile { path: policy, contents: policy_text(request) }],
            merge: Some(settings(request)),
            env_file: Some(ENV_FILE),
            stdin: request.prompt.clone(),
            state: &GEMINI_STATE,
            extra_state: request.extra_state.clone(),
            ..CommandSpec::default()
        }
    }

    fn decoder(&self, request: &AgentRequest) -> Box<dyn Decoder> {
        Box::new(GeminiDecoder { tally: Tally::new(AgentKind::Gemini, request), attempts: 0 })
    }
}

/// The names of the variables that carry the MCP command to the settings file.
const MCP_VARIABLES: [&str; 12] = [
    "AGENTD_MCP_COMMAND",
    "AGENTD_MCP_ARG_1",
    "AGENTD_MCP_ARG_2",
    "AGENTD_MCP_ARG_3",
    "AGENTD_MCP_ARG_4",
    "AGENTD_MCP_ARG_5",
    "AGENTD_MCP_ARG_6",
    "AGENTD_MCP_ARG_7",
    "AGENTD_MCP_ARG_8",
    "AGENTD_MCP_ARG_9",
    "AGENTD_MCP_ARG_10",
    "AGENTD_MCP_ARG_11",
];

fn mcp_env(mcp: &McpServer) -> impl Iterator<Item = (String, String)> {
    let words = std::iter::once(&mcp.command).chain(&mcp.args);
    MCP_VARIABLES.iter().zip(words).map(|(name, word)| ((*name).to_owned(), word.clone()))
}

/// What `.gemini/settings.json` holds during a call, instead of what the repository has there:
/// Gemini CLI would run its hooks and `discoveryCommand`, start its servers, and allow its
/// tools. There is no other way in: a settings
/// file named by `GEMINI_CLI_SYSTEM_SETTINGS_PATH` is skipped unless root owns it
/// and every directory above it. The values are variables that Gemini CLI fills in
/// from its environment, so that the file is the same for every change and role
/// and calls may run side by side.
pub(super) fn settings(request: &AgentRequest) -> JsonMerge {
    let mut set: Vec<(&'static [&'static str], serde_json::Value)> = Vec::new();
    if request.mcp.is_some() {
        let variable = |name: &&str| format!("${{{name}}}");
        let args: Vec<String> = MCP_VARIABLES[1..].iter().map(variable).collect();
        let entry = json!({
            "command": variable(&MCP_VARIABLES[0]),
            "args": args,
            "trust": true,
            "timeout": 60_000,
        });
        set.push((&["mcpServers", MCP_SERVER], entry));
    }
    // A resume in a later minute than the session's first leaves a stub of the same id beside it,
    // which the next call's clean-up takes for damaged and deletes together with the session.
    set.push((&["general", "sessionRetention", "enabled"], json!(false)));
    // Else variables of the repository's `.env` are loaded, among them the host of the models.
    set.push((&["advanced", "ignoreLocalEnv"], json!(true)));
    // With a base URL the auth type guessed from the environment is one that
    // headless runs refuse (exit 41).
    let has = |name: &str| {
        request.env_names.iter().any(|have| have == name)
            || request.extra_env.iter().any(|(have, _)| have == name)
    };
    if has("GEMINI_API_KEY") && has("GOOGLE_GEMINI_BASE_URL") {
        set.push((&["security", "auth", "selectedType"], json!("gemini-api-key")));
    }
    JsonMerge { path: ".gemini/settings.json", set, keep: &[&["context", "fileName"]] }
}

/// Denies every tool but those of the role. In headless mode a denied tool is not
/// even offered to the model. What settings allow or deny has priorities up to 900 in the
/// same tier (`tools.allowed` 300, `mcp.excluded` 900): these rules are above all of it.
fn policy_text(request: &AgentRequest) -> String {
    let mut allowed: Vec<&str> = READ_TOOLS.to_vec();
    let mut shell = "";
    if request.role.edits_the_work_tree() {
        allowed.extend(WRITE_TOOLS);
        // Otherwise a command with `>` in it, also `2>&1`, is a question, and nobody answers.
        shell = "\n[[rule]]\ntoolName = \"run_shell_command\"\ndecision = \"allow\"\n\
                 priority = 995\nallowRedirection = true\n";
    }
    let allowed: Vec<String> = allowed.iter().map(|tool| format!("\"{tool}\"")).collect();
    format!(
        "# Written by agentd for one call.\n\
         [[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 980\n\n\
         [[rule]]\ntoolName = [{}]\ndecision = \"allow\"\npriority = 990\n\n\
         [[rule]]\ntoolName = \"*\"\nmcpName = \"{MCP_SERVER}\"\ndecision = \"allow\"\npriority = 990\n{shell}",
        allowed.join(", ")
    )
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Text<'a>>,
    delta: Option<bool>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    tool_name: Option<Text<'a>>,
    #[serde(borrow)]
    tool_id: Option<Text<'a>>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    severity: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(borrow)]
    error: Option<ErrorBody<'a>>,
    stats: Option<Stats>,
}

#[derive(Deserialize)]
struct ErrorBody<'a> {
    #[serde(borrow)]
    message: Option<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Stats {
    total_tokens: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached: u64,
    models: BTreeMap<String, ModelStats>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ModelStats {
    total_tokens: u64,
    input_tokens: u64,
}

impl Stats {
    /// `input_tokens` includes cached ones; thoughts are only in the total.
    fn usage(&self) -> Usage {
        let thoughts = self.total_tokens.saturating_sub(self.input_tokens + self.output_tokens);
        Usage {
            input: self.input_tokens,
            cached: self.cached,
            cache_write: 0,
            output: self.output_tokens + thoughts,
            reasoning: thoughts,
        }
    }
}

struct GeminiDecoder {
    tally: Tally,
    attempts: u32,
}

impl Decoder for GeminiDecoder {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) {
        let Ok(parsed) = serde_json::from_str::<Line<'_>>(line) else {
            return sink(AgentEvent::Raw { line: line.into() });
        };
        let tally = &mut self.tally;
        match &*parsed.kind.0 {
            "message" => {
                let (Some(role), Some(content)) = (parsed.role, parsed.content) else { return };
                if &*role != "assistant" {
                    return;
                }
                let delta = parsed.delta.unwrap_or(false);
                if delta {
                    tally.text.delta(&content);
                } else {
                    tally.text.whole(&content);
                }
                sink(AgentEvent::Text { text: content.0, delta });
            }
            "tool_use" => {
                let name = parsed.tool_name.unwrap_or_default();
                let (server, tool) = split_mcp_name(&name, "_");
                tally.text.end_message();
                let call = AgentEvent::ToolCall {
                    id: parsed.tool_id.unwrap_or_default().0,
                    server: server.map(Cow::Borrowed),
                    name: tool.into(),
                    arguments: parsed.parameters.map_or_else(Json::null, Json::from),
                };
                tally.tool_call(call, sink);
            }
            "tool_result" => {
                let ok = parsed.status.as_deref() == Some("success");
                let said = || parsed.error.and_then(|error| error.message);
                let output = parsed.output.map(LazyText::from_json);
                let output = output.or_else(|| said().map(|said| said.0.into()));
                let id = parsed.tool_id.unwrap_or_default();
                tally.tool_result(id.0, ok, output.unwrap_or_default(), sink);
            }
            "init" => {
                tally.session(
                    &parsed.session_id.unwrap_or_default(),
                    parsed.model.as_deref(),
                    sink,
                );
            }
            "error" => {
                let message = parsed.message.unwrap_or_default();
                if parsed.severity.as_deref() == Some("error") {
                    self.attempts += 1;
                }
                sink(AgentEvent::Warning { message: message.0 });
            }
            "result" => self.result(parsed, sink),
            _ => sink(AgentEvent::Raw { line: line.into() }),
        }
    }

    fn is_hopeless(&self) -> bool {
        self.tally.hopeless.is_some()
    }

    fn finish(mut self: Box<Self>, exit: &Exit) -> AgentOutcome {
        if exit.stderr_tail.contains("MCP issues detected") {
            self.tally.mcp_broken =
                Some("Gemini CLI could not start agentd's MCP server".to_owned());
        }
        self.tally.finish(exit, kind_of_exit)
    }
}

impl GeminiDecoder {
    fn result(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        let tally = &mut self.tally;
        if let Some(stats) = &line.stats {
            let usage = stats.usage();
            tally.usage = Some(usage);
            // The one that wrote most: with `auto` a small model has picked it first.
            let written =
                |stats: &ModelStats| stats.total_tokens.saturating_sub(stats.input_tokens);
            let most = stats.models.iter().max_by_key(|(_, stats)| written(stats));
            if let Some((model, _)) = most {
                tally.model = Some(model.clone());
            }
            sink(AgentEvent::Usage { usage, cost_usd: None });
        }
        if line.status.as_deref() == Some("success") {
            return tally.succeeded(None, sink);
        }
        let message = line.error.and_then(|error| error.message).unwrap_or_default();
        // The event that reports an empty answer comes before, as an error.
        let kind = match kind_of_message(&message) {
            Some(kind) => kind,
            None if self.attempts > 0 || message.is_empty() => FailureKind::EmptyAnswer,
            None => FailureKind::Other,
        };
        let message = if message.is_empty() { "the model answered with nothing" } else { &message };
        tally.failed(Failure::new(kind, message), sink);
    }
}

/// Gemini CLI turns a status of HTTP into an exit code by dropping the high bits.
fn kind_of_exit(code: i32) -> Option<FailureKind> {
    Some(match code {
        41 => FailureKind::Auth,
        42 | 52 | 55 => FailureKind::Config,
        53 => FailureKind::LimitReached,
        130 => FailureKind::Cancelled,
        code => {
            let status = (400..600).find(|status| status % 256 == code)?;
            return kind_of_status(u16::try_from(status).ok()?);
        }
    })
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
