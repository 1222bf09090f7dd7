//! Claude Code: `claude -p --output-format stream-json --verbose`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{SeqAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;

use super::classify::{kind_of_message, kind_of_status};
use super::tally::{Tally, Text, split_mcp_name};
use super::{
    AgentRequest, CommandSpec, Decoder, MCP_SERVER, PrivateFile, Provider, Session, Sink, path_text,
};
use crate::agent::AgentKind;
use crate::event::{AgentEvent, Json, LazyText};
use crate::known_agent::CLAUDE_STATE;
use crate::outcome::{AgentOutcome, Exit, Failure, FailureKind, Usage};

/// Claude Code.
#[derive(Debug, Clone, Copy)]
pub struct Claude;

impl Provider for Claude {
    fn kind(&self) -> AgentKind {
        AgentKind::Claude
    }

    fn command(&self, request: &AgentRequest) -> CommandSpec {
        let config = request.private_dir.join("claude-mcp.json");
        let mut args: Vec<String> =
            ["-p", "--output-format", "stream-json", "--verbose"].map(str::to_owned).to_vec();
        let mut flag = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
        if let Some(model) = &request.model {
            flag("--model", model);
        }
        if let Some(effort) = &request.effort {
            flag("--effort", effort);
        }
        match &request.session {
            Session::Fresh => {}
            Session::FreshWithId(id) => flag("--session-id", id),
            Session::Resume { id, .. } => flag("--resume", id),
        }
        // Tools that are not listed do not exist for the model; MCP tools stay.
        if request.role.edits_the_work_tree() {
            // File tools are confined to the working tree by the mode, commands by ours.
            flag("--permission-mode", "acceptEdits");
            flag("--tools", "Read,Grep,Glob,Edit,Write,NotebookEdit,Bash,TodoWrite");
            flag("--allowedTools", &format!("mcp__{MCP_SERVER}__*,Bash"));
        } else {
            flag("--tools", "Read,Grep,Glob");
            flag("--allowedTools", &format!("mcp__{MCP_SERVER}__*"));
        }
        flag("--mcp-config", &path_text(&config));
        // Those of the project could run programs (hooks, apiKeyHelper), allow tools, and point
        // the user's key at another host (env).
        flag("--setting-sources", "user");
        // Without them CLAUDE.md is not read either.
        let instructions = request.found.instructions.as_ref().map(|text| {
            let path = request.private_dir.join("claude-instructions.md");
            flag("--append-system-prompt-file", &path_text(&path));
            let contents = format!("# CLAUDE.md, the instructions of this project\n\n{text}");
            PrivateFile { path, contents }
        });
        args.push("--strict-mcp-config".into());
        args.extend(request.extra_args.iter().cloned());

        let mut servers = serde_json::Map::new();
        if let Some(mcp) = &request.mcp {
            let entry = json!({"type": "stdio", "command": mcp.command, "args": mcp.args});
            servers.insert(MCP_SERVER.to_owned(), entry);
        }
        let mut env = vec![
            // No title request, no update check.
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC".into(), "1".into()),
            // Else the first turn may start before agentd's tools are there.
            ("MCP_CONNECTION_NONBLOCKING".into(), "0".into()),
        ];
        // Its own temporary files, and those of the commands that it runs.
        let directory = path_text(&request.surroundings.tmp_dir);
        env.push(("CLAUDE_CODE_TMPDIR".into(), directory.clone()));
        env.push(("TMPDIR".into(), directory));
        env.extend(request.extra_env.iter().cloned());
        let contents = json!({ "mcpServers": servers }).to_string();
        let config = PrivateFile { path: config, contents };
        CommandSpec {
            program: request.program.clone(),
            args,
            env,
            files: std::iter::once(config).chain(instructions).collect(),
            stdin: request.prompt.clone(),
            state: &CLAUDE_STATE,
            extra_state: request.extra_state.clone(),
            ..CommandSpec::default()
        }
    }

    fn decoder(&self, request: &AgentRequest) -> Box<dyn Decoder> {
        Box::new(ClaudeDecoder {
            tally: Tally::new(AgentKind::Claude, request),
            so_far: UsageSoFar::default(),
        })
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    subtype: Option<Text<'a>>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    parent_tool_use_id: Option<Text<'a>>,
    is_error: Option<bool>,
    api_error_status: Option<u16>,
    #[serde(borrow)]
    result: Option<Text<'a>>,
    #[serde(borrow)]
    errors: Option<Vec<Text<'a>>>,
    total_cost_usd: Option<f64>,
    usage: Option<LoopUsage>,
    #[serde(rename = "modelUsage")]
    model_usage: Option<BTreeMap<String, ModelUsage>>,
    #[serde(borrow)]
    permission_denials: Option<Vec<Denial<'a>>>,
    #[serde(borrow)]
    mcp_servers: Option<Vec<Server<'a>>>,
    attempt: Option<u32>,
    retry_delay_ms: Option<f64>,
    error_status: Option<u16>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    usage: Option<LoopUsage>,
    #[serde(borrow, default)]
    content: Contents<'a>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
}

/// The content of a message is a text or a list of blocks.
#[derive(Default)]
enum Contents<'a> {
    /// Of no interest: a text is an echo of the prompt.
    #[default]
    None,
    Blocks(Vec<Block<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Contents<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Contents<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of blocks")
            }
            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(Contents::None)
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Contents::None)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut blocks = Vec::with_capacity(1);
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Contents::Blocks(blocks))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// What a tool answered: a text, or blocks of which some are texts.
fn output(content: &RawValue) -> LazyText<'_> {
    if !content.get().starts_with('[') {
        return LazyText::from_json(content);
    }
    let blocks: Vec<TextBlock<'_>> = serde_json::from_str(content.get()).unwrap_or_default();
    let texts = blocks.into_iter().filter_map(|block| block.text);
    let mut texts: Vec<_> = texts.map(LazyText::from_json).collect();
    if texts.len() == 1 {
        return texts.remove(0);
    }
    let texts: Vec<_> = texts.iter().map(LazyText::text).collect();
    texts.join("\n").into()
}

#[derive(Deserialize)]
struct TextBlock<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Denial<'a> {
    #[serde(borrow)]
    tool_name: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Server<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    status: Text<'a>,
}

#[expect(clippy::struct_field_names, reason = "the names are the CLI's")]
#[derive(Deserialize, Default)]
#[serde(default)]
struct LoopUsage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

#[expect(clippy::struct_field_names, reason = "the names are the CLI's")]
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
}

/// Claude's input excludes what was read from a cache or written to one.
fn usage(input: u64, read: u64, write: u64, output: u64) -> Usage {
    Usage { input: input + read + write, cached: read, cache_write: write, output, reasoning: 0 }
}

impl LoopUsage {
    fn usage(&self) -> Usage {
        usage(
            self.input_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
            self.output_tokens,
        )
    }
}

impl ModelUsage {
    fn usage(&self) -> Usage {
        usage(
            self.input_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
            self.output_tokens,
        )
    }
}

/// What the messages of a call have used until now, as far as they say so (T8): input is known
/// when a message begins, output only in part.
#[derive(Default)]
struct UsageSoFar {
    /// Of the messages before.
    before: Usage,
    /// Of the message at hand, which comes in pieces of the same id.
    message: String,
    of_message: Usage,
}

impl UsageSoFar {
    /// Takes a piece of a message; the sum, where it has grown.
    fn add(&mut self, id: &str, usage: Usage) -> Option<Usage> {
        let known = self.before + self.of_message;
        if self.message != id {
            self.before = known;
            id.clone_into(&mut self.message);
            self.of_message = Usage::default();
        }
        if usage.total() > self.of_message.total() {
            self.of_message = usage;
        }
        let sum = self.before + self.of_message;
        (sum.total() > known.total()).then_some(sum)
    }
}

/// After so many refusals nobody is logged in. Claude Code itself tries ten times, for minutes; it uses the
/// first ones to renew a login that has expired.
const LOGIN_ATTEMPTS: u32 = 3;

struct ClaudeDecoder {
    tally: Tally,
    so_far: UsageSoFar,
}

impl Decoder for ClaudeDecoder {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) {
        let Ok(parsed) = serde_json::from_str::<Line<'_>>(line) else {
            return sink(AgentEvent::Raw { line: line.into() });
        };
        match (&*parsed.kind.0, parsed.subtype.as_deref()) {
            ("assistant", _) => self.assistant(parsed, sink),
            ("user", _) => self.tool_results(parsed, sink),
            ("result", _) => self.result(parsed, sink),
            ("system", Some("init")) => self.init(parsed, sink),
            ("system", Some("api_retry")) => {
                let reason = parsed.error.map_or(Cow::default(), |raw| {
                    serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().into())
                });
                let reason = match parsed.error_status {
                    Some(status) => format!("{status} {reason}").into(),
                    None => reason,
                };
                // Milliseconds with a fraction; never negative.
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "saturates"
                )]
                let delay = parsed.retry_delay_ms.map(|ms| ms.ceil() as u64);
                let attempt = parsed.attempt.unwrap_or(1);
                let said = reason.to_string();
                self.tally.retry(attempt, delay, reason, sink);
                let is_refused = matches!(parsed.error_status, Some(401 | 403));
                if is_refused && attempt >= LOGIN_ATTEMPTS && self.tally.hopeless.is_none() {
                    self.tally.give_up(Failure::new(FailureKind::Auth, said), sink);
                }
            }
            ("system" | "stream_event", _) => {}
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

impl ClaudeDecoder {
    fn init(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        let id = line.session_id.unwrap_or_default();
        self.tally.session(&id, line.model.as_deref(), sink);
        let servers = line.mcp_servers.unwrap_or_default();
        if let Some(server) = servers.iter().find(|server| &*server.name == MCP_SERVER)
            && &*server.status != "connected"
        {
            let message = format!("agentd's MCP server is \"{}\" in Claude Code", &*server.status);
            sink(AgentEvent::Warning { message: message.as_str().into() });
            self.tally.mcp_broken = Some(message);
        }
    }

    fn assistant(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        let Some(message) = line.message else { return };
        if let (Some(id), Some(usage)) = (&message.id, &message.usage)
            && let Some(usage) = self.so_far.add(id, usage.usage())
        {
            self.tally.usage = Some(usage);
            sink(AgentEvent::Usage { usage, cost_usd: None });
        }
        // What a sub-agent says is not the answer, and neither is an error in its place.
        let own =
            line.parent_tool_use_id.is_none() && message.model.as_deref() != Some("<synthetic>");
        let Contents::Blocks(blocks) = message.content else { return };
        for block in blocks {
            match &*block.kind.0 {
                "text" if own => {
                    let text = block.text.unwrap_or_default();
                    self.tally.text.whole(&text);
                    sink(AgentEvent::Text { text: text.0, delta: false });
                }
                "tool_use" => {
                    let name = block.name.unwrap_or_default();
                    let (server, tool) = split_mcp_name(&name, "__");
                    let call = AgentEvent::ToolCall {
                        id: block.id.unwrap_or_default().0,
                        server: server.map(Cow::Borrowed),
                        name: tool.into(),
                        arguments: block.input.map_or_else(Json::null, Json::from),
                    };
                    self.tally.tool_call(call, sink);
                }
                _ => {}
            }
        }
    }

    fn tool_results(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        let contents = line.message.map_or(Contents::None, |message| message.content);
        let Contents::Blocks(blocks) = contents else { return };
        for block in blocks {
            if &*block.kind != "tool_result" {
                continue;
            }
            let ok = !block.is_error.unwrap_or(false);
            let output = block.content.map(output).unwrap_or_default();
            self.tally.tool_result(block.tool_use_id.unwrap_or_default().0, ok, output, sink);
        }
    }

    fn result(&mut self, line: Line<'_>, sink: &mut Sink<'_>) {
        let tally = &mut self.tally;
        if tally.session_id.is_none()
            && let Some(id) = &line.session_id
            && line.is_error != Some(true)
        {
            tally.session(id, None, sink);
        }
        // modelUsage also has the side requests, which are in the cost too.
        let models = line.model_usage.unwrap_or_default();
        let all: Usage = models.values().map(ModelUsage::usage).sum();
        let main_loop = line.usage.map(|usage| usage.usage());
        let used = if all.total() > 0 { Some(all) } else { main_loop };
        if let Some((model, _)) = models.iter().max_by_key(|(_, usage)| usage.usage().total()) {
            tally.model = Some(model.clone());
        }
        let cost_usd = tally.cost(line.total_cost_usd, sink);
        tally.usage = used.or(tally.usage);
        if let Some(usage) = used {
            sink(AgentEvent::Usage { usage, cost_usd });
        }
        for denial in line.permission_denials.unwrap_or_default() {
            if let Some(name) = denial.tool_name.filter(|_| tally.denied_tools.len() < 100) {
                tally.denied_tools.push(name.0.into_owned());
            }
        }
        let subtype = line.subtype.as_deref().unwrap_or_default();
        if line.is_error != Some(true) && subtype == "success" {
            return tally.succeeded(line.result.as_deref(), sink);
        }
        let errors = line.errors.unwrap_or_default();
        let errors: Vec<&str> = errors.iter().map(|error| &**error).collect();
        let said = line.result.as_deref().filter(|text| !text.is_empty());
        let message = said.map_or_else(|| errors.join("\n"), str::to_owned);
        let words = kind_of_message(&message);
        let kind = match (subtype, line.api_error_status.and_then(kind_of_status)) {
            ("error_max_turns" | "error_max_budget_usd", _) => FailureKind::LimitReached,
            // A missing credit is a 400, and a plan that is used up a 429.
            _ if words == Some(FailureKind::QuotaExhausted) => FailureKind::QuotaExhausted,
            (_, Some(kind)) => kind,
            _ => words.unwrap_or(FailureKind::Other),
        };
        let message = if message.is_empty() { subtype.to_owned() } else { message };
        tally.failed(Failure::new(kind, message), sink);
    }
}

#[cfg(test)]
#[path = "claude_tests.rs"]
mod tests;
