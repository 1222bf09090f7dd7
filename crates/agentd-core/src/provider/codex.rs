//! Codex CLI: `codex exec --json`.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::classify::kind_of_message;
use super::tally::{Tally, Text};
use super::{AgentRequest, CommandSpec, Decoder, MCP_SERVER, Provider, Session, Sink, path_text};
use crate::agent::AgentKind;
use crate::event::{AgentEvent, Json, LazyText};
use crate::known_agent::CODEX_STATE;
use crate::outcome::{AgentOutcome, Exit, Failure, FailureKind, Usage};
use crate::prompt::{KeepEnd, fenced};

/// Codex CLI.
#[derive(Debug, Clone, Copy)]
pub struct Codex;

/// How much of AGENTS.md codex itself would take.
const INSTRUCTIONS: usize = 32 << 10;

impl Provider for Codex {
    fn kind(&self) -> AgentKind {
        AgentKind::Codex
    }

    fn command(&self, request: &AgentRequest) -> CommandSpec {
        let mut args: Vec<String> = vec!["exec".into(), "--json".into()];
        let mut config = |text: String| args.extend(["-c".into(), text]);
        if let Some(effort) = &request.effort {
            config(format!("model_reasoning_effort={}", toml_text(effort)));
        }
        if let Some(mcp) = &request.mcp {
            let words: Vec<String> = mcp.args.iter().map(|word| toml_text(word)).collect();
            // required: else a server that fails to start is not even mentioned.
            // approve: with the policy "never" every other tool call is refused.
            config(format!(
                "mcp_servers.{MCP_SERVER}={{command={},args=[{}],required=true,\
                 startup_timeout_sec=30,default_tools_approval_mode=\"approve\"}}",
                toml_text(&mcp.command),
                words.join(",")
            ));
        }
        // MCP servers run outside the sandbox: read-only plus MCP is the profile of
        // everybody who writes documents only.
        let sandbox =
            if request.role.edits_the_work_tree() { "workspace-write" } else { "read-only" };
        config(format!("sandbox_mode=\"{sandbox}\""));
        let around = &request.surroundings;
        let mut env = vec![("TMPDIR".to_owned(), path_text(&around.tmp_dir))];
        if request.role.edits_the_work_tree() {
            // /tmp is open by default, and other people's projects may be in it.
            let key = "sandbox_workspace_write";
            config(format!("{key}.exclude_slash_tmp={}", !around.private_tmp));
            config(format!("{key}.network_access={}", around.network));
            let roots: Vec<String> =
                around.writable.iter().map(|path| toml_text(&path_text(path))).collect();
            config(format!("{key}.writable_roots=[{}]", roots.join(",")));
        }
        env.extend(request.extra_env.iter().cloned());
        config("approval_policy=\"never\"".into());
        let untrusted: Vec<String> = (request.found.settings_dirs.iter())
            .map(|dir| format!("{}={{trust_level=\"untrusted\"}}", toml_text(&path_text(dir))))
            .collect();
        if !untrusted.is_empty() {
            // A person who has trusted the directory for their own work has not done so for this: its
            // `.codex/` could start servers and run hooks. Dotted keys are not understood here.
            config(format!("projects={{{}}}", untrusted.join(",")));
        }
        // Both together save 5 s at the end of a run without network.
        config("analytics.enabled=false".into());
        args.extend(["--disable".into(), "plugins".into()]);
        // A project need not be a git repository; running agentd in it is the consent.
        args.push("--skip-git-repo-check".into());
        if let Some(model) = &request.model {
            args.extend(["-m".into(), model.clone()]);
        }
        args.extend(request.extra_args.iter().cloned());
        if let Session::Resume { id, .. } = &request.session {
            args.extend(["resume".into(), id.clone()]);
        }
        args.push("-".into());
        let mut stdin = request.prompt.clone();
        if let (Some(text), false) =
            (&request.found.instructions, matches!(request.session, Session::Resume { .. }))
        {
            stdin = with_instructions(&stdin, text);
        }
        CommandSpec {
            program: request.program.clone(),
            args,
            env,
            stdin,
            state: &CODEX_STATE,
            extra_state: request.extra_state.clone(),
            makes_mounts: true,
            ..CommandSpec::default()
        }
    }

    fn decoder(&self, request: &AgentRequest) -> Box<dyn Decoder> {
        let before = match &request.session {
            Session::Resume { thread_usage, .. } => thread_usage.unwrap_or_default(),
            _ => Usage::default(),
        };
        Box::new(CodexDecoder {
            tally: Tally::new(AgentKind::Codex, request),
            before,
            reconnects: 0,
            last_started: String::new(),
        })
    }
}

/// A prompt with AGENTS.md behind it: from a directory that is not trusted, codex does not read
/// that either.
pub(super) fn with_instructions(prompt: &str, text: &str) -> String {
    let fenced = fenced("AGENTS.md", text, INSTRUCTIONS, KeepEnd::Head);
    format!("{prompt}\n\n# The instructions of this project\n\n{fenced}")
}

/// A basic string of TOML; JSON's escapes are all TOML's too.
fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    thread_id: Option<Text<'a>>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    usage: Option<Totals>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(borrow)]
    error: Option<ErrorBody<'a>>,
}

#[derive(Deserialize)]
struct ErrorBody<'a> {
    #[serde(borrow)]
    message: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(borrow)]
    server: Option<Text<'a>>,
    #[serde(borrow)]
    tool: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<ToolAnswer<'a>>,
    #[serde(borrow)]
    error: Option<ErrorBody<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    aggregated_output: Option<&'a RawValue>,
    #[serde(borrow)]
    changes: Option<&'a RawValue>,
    #[serde(borrow)]
    query: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolAnswer<'a> {
    #[serde(borrow, default)]
    content: Vec<Content<'a>>,
    #[serde(borrow)]
    structured_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[expect(clippy::struct_field_names, reason = "the names are the CLI's")]
#[derive(Deserialize, Default)]
#[serde(default)]
struct Totals {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
    reasoning_output_tokens: u64,
}

struct CodexDecoder {
    tally: Tally,
    /// The total of the thread before this call.
    before: Usage,
    reconnects: u32,
    /// The id of the item that was announced last.
    last_started: String,
}

impl Decoder for CodexDecoder {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) {
        let Ok(parsed) = serde_json::from_str::<Line<'_>>(line) else {
            return sink(AgentEvent::Raw { line: line.into() });
        };
        let tally = &mut self.tally;
        match (&*parsed.kind.0, parsed.item) {
            ("item.started", Some(item)) => {
                str::clone_into(&item.id, &mut self.last_started);
                started(item, line, tally, sink);
            }
            ("item.completed", Some(item)) => {
                let announced = *item.id == *self.last_started;
                completed(item, announced, line, tally, sink);
            }
            ("thread.started", _) => {
                tally.session(&parsed.thread_id.unwrap_or_default(), None, sink);
            }
            ("turn.started", _) => {}
            ("turn.completed", _) => {
                if let Some(totals) = parsed.usage {
                    let thread = totals.usage();
                    let usage = thread.since(self.before);
                    tally.thread_usage = Some(thread);
                    tally.usage = Some(usage);
                    sink(AgentEvent::Usage { usage, cost_usd: None });
                }
                tally.succeeded(None, sink);
            }
            ("turn.failed", _) => {
                let message = parsed.error.and_then(|error| error.message).unwrap_or_default();
                let kind = kind_of_message(&message).unwrap_or(FailureKind::Other);
                tally.failed(Failure::new(kind, &*message), sink);
            }
            // "Reconnecting... 1/5 (…)" and its like: not the end.
            ("error", _) => {
                let message = parsed.message.unwrap_or_default();
                if message.starts_with("Reconnecting") {
                    self.reconnects += 1;
                    tally.retry(self.reconnects, None, message.0, sink);
                } else {
                    sink(AgentEvent::Warning { message: message.0 });
                }
            }
            _ => sink(AgentEvent::Raw { line: line.into() }),
        }
    }

    fn is_hopeless(&self) -> bool {
        self.tally.hopeless.is_some()
    }

    fn finish(self: Box<Self>, exit: &Exit) -> AgentOutcome {
        self.tally.finish(exit, |_| None)
    }
}

fn started(item: Item<'_>, line: &str, tally: &mut Tally, sink: &mut Sink<'_>) {
    let (server, name, arguments) = match &*item.kind.0 {
        "mcp_tool_call" => {
            (item.server.map(|s| s.0), item.tool.unwrap_or_default().0, item.arguments)
        }
        "command_execution" => (None, "command_execution".into(), item.command),
        "file_change" => (None, "file_change".into(), item.changes),
        "web_search" => (None, "web_search".into(), item.query),
        "agent_message" | "reasoning" => return,
        _ => return sink(AgentEvent::Raw { line: line.into() }),
    };
    let arguments = arguments.map_or_else(Json::null, Json::from);
    tally.text.end_message();
    tally.tool_call(AgentEvent::ToolCall { id: item.id.0, server, name, arguments }, sink);
}

fn completed(item: Item<'_>, announced: bool, line: &str, tally: &mut Tally, sink: &mut Sink<'_>) {
    let ok = item.status.as_deref() == Some("completed");
    match &*item.kind.0 {
        "agent_message" => {
            let text = item.text.unwrap_or_default();
            tally.text.whole(&text);
            sink(AgentEvent::Text { text: text.0, delta: false });
        }
        "mcp_tool_call" => {
            let said = item.error.and_then(|error| error.message);
            let output = said.map(|said| said.0.into());
            let output = output.or_else(|| item.result.map(ToolAnswer::output));
            tally.tool_result(item.id.0, ok, output.unwrap_or_default(), sink);
        }
        "command_execution" => {
            let output = item.aggregated_output.map(LazyText::from_json);
            tally.tool_result(item.id.0, ok, output.unwrap_or_default(), sink);
        }
        "file_change" => {
            // Some versions do not announce it.
            if !announced {
                let call = AgentEvent::ToolCall {
                    id: Cow::Borrowed(&item.id.0),
                    server: None,
                    name: "file_change".into(),
                    arguments: item.changes.map_or_else(Json::null, Json::from),
                };
                tally.tool_call(call, sink);
            }
            tally.tool_result(item.id.0.clone(), ok, "".into(), sink);
        }
        "error" => {
            sink(AgentEvent::Warning { message: item.message.unwrap_or_default().0 });
        }
        "reasoning" | "web_search" => {}
        _ => sink(AgentEvent::Raw { line: line.into() }),
    }
}

impl<'a> ToolAnswer<'a> {
    fn output(self) -> LazyText<'a> {
        let texts = self.content.into_iter().filter_map(|content| content.text);
        let mut texts: Vec<_> = texts.map(LazyText::from_json).collect();
        match (texts.len(), self.structured_content) {
            (0, structured) => structured.map(LazyText::from_json).unwrap_or_default(),
            (1, _) => texts.remove(0),
            _ => {
                let texts: Vec<_> = texts.iter().map(LazyText::text).collect();
                texts.join("\n").into()
            }
        }
    }
}

impl Totals {
    fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens,
            cached: self.cached_input_tokens,
            cache_write: self.cache_write_input_tokens,
            output: self.output_tokens,
            reasoning: self.reasoning_output_tokens,
        }
    }
}

#[cfg(test)]
#[path = "codex_tests.rs"]
mod tests;
