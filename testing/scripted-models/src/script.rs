//! What the models will say: values to build in Rust or to load from JSON.
//!
//! Unknown keys are refused: a misspelt key would silently change a test.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::pattern::Pattern;

/// One of the three wire formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Gemini `generateContent` and `streamGenerateContent`.
    Gemini,
    /// `OpenAI` Responses.
    OpenAi,
    /// Anthropic Messages.
    Anthropic,
}

/// Everything the server will answer, as an ordered list of rules.
///
/// The first rule that matches a request answers it, so transient faults
/// (`times`) go before the rule that answers once they are over.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// Tried in order.
    pub rules: Vec<Rule>,
    /// The answer when no rule matches; without it the server answers 400.
    pub otherwise: Option<Reply>,
    /// Reported for every reply that does not set its own.
    pub usage: Usage,
    /// The MCP server that tools are assumed to belong to if the CLI does not
    /// name it to the model (codex's deferred tools and its code mode).
    pub mcp_server: String,
    /// Any other API key is answered as the provider answers a bad key.
    pub require_key: Option<String>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            otherwise: None,
            usage: Usage { input: 1000, cached: 200, cache_written: 0, output: 50, reasoning: 0 },
            mcp_server: "agentd".to_owned(),
            require_key: None,
        }
    }
}

impl Script {
    /// Makes a script without rules: every main request is answered 400.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a script from JSON text.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let script: Self = serde_json::from_str(text).map_err(ScriptError::Json)?;
        script.check()?;
        Ok(script)
    }

    /// Refuses rules that could never answer.
    pub(crate) fn check(&self) -> Result<(), ScriptError> {
        match self.rules.iter().position(|rule| rule.replies.is_empty()) {
            Some(index) => Err(ScriptError::NoReplies { rule: index }),
            None => Ok(()),
        }
    }

    /// Appends a rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets the answer for requests that no rule matches.
    #[must_use]
    pub fn otherwise(mut self, reply: Reply) -> Self {
        self.otherwise = Some(reply);
        self
    }

    /// Sets the usage of replies that do not set their own.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }
}

/// Which requests to answer, and with what.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// Only requests in this wire format.
    pub provider: Option<Provider>,
    /// Only prompts whose first line is `agentd <step> <change-id>`.
    pub step: Option<String>,
    /// Looked for in the latest prompt of the user.
    pub prompt: Option<Pattern>,
    /// Looked for in all that was said in the session so far.
    pub history: Option<Pattern>,
    /// Looked for in the system prompt and the context that the CLI adds.
    pub system: Option<Pattern>,
    /// Looked for in the model's name.
    pub model: Option<Pattern>,
    /// Looked for in the tool results that end the request.
    pub after_tool: Option<Pattern>,
    /// Only this round: the number of model replies since the latest prompt.
    pub round: Option<usize>,
    /// Main requests unless said otherwise.
    pub requests: RequestFilter,
    /// How many requests it answers at most; a CLI's own retries count. This is
    /// for transient faults.
    pub times: Option<u32>,
    /// How many prompts it answers at most, with all their rounds and retries.
    /// This is for "the first review fails, the second passes".
    pub prompts: Option<u32>,
    /// The answer to each round; the last one repeats. The round comes from the
    /// history in the request, so a retry gets the same answer.
    pub replies: Vec<Reply>,
}

impl Rule {
    /// Makes a rule that matches every main request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Restricts the rule to one wire format.
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Restricts the rule to prompts that start with `agentd <step> <change-id>`.
    #[must_use]
    pub fn step(mut self, step: &str) -> Self {
        self.step = Some(step.to_owned());
        self
    }

    /// Restricts the rule by the latest prompt.
    #[must_use]
    pub fn prompt(mut self, pattern: impl Into<Pattern>) -> Self {
        self.prompt = Some(pattern.into());
        self
    }

    /// Restricts the rule by what was said in the session so far.
    #[must_use]
    pub fn history(mut self, pattern: impl Into<Pattern>) -> Self {
        self.history = Some(pattern.into());
        self
    }

    /// Restricts the rule by the system prompt.
    #[must_use]
    pub fn system(mut self, pattern: impl Into<Pattern>) -> Self {
        self.system = Some(pattern.into());
        self
    }

    /// Restricts the rule by the model's name.
    #[must_use]
    pub fn model(mut self, pattern: impl Into<Pattern>) -> Self {
        self.model = Some(pattern.into());
        self
    }

    /// Restricts the rule by the tool results that end the request.
    #[must_use]
    pub fn after_tool(mut self, pattern: impl Into<Pattern>) -> Self {
        self.after_tool = Some(pattern.into());
        self
    }

    /// Restricts the rule to one round.
    #[must_use]
    pub fn round(mut self, round: usize) -> Self {
        self.round = Some(round);
        self
    }

    /// Sets which kind of request the rule is for.
    #[must_use]
    pub fn requests(mut self, filter: RequestFilter) -> Self {
        self.requests = filter;
        self
    }

    /// Limits how many requests the rule answers.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Limits how many prompts the rule answers.
    #[must_use]
    pub fn prompts(mut self, prompts: u32) -> Self {
        self.prompts = Some(prompts);
        self
    }

    /// Appends the reply to the next round.
    #[must_use]
    pub fn reply(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }
}

/// Which requests a rule is for.
///
/// The CLIs ask for titles, routing and summaries beside the user's prompts.
/// Such side requests are answered to their schema without a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestFilter {
    /// The user's prompts.
    #[default]
    Main,
    /// What the CLI asks for itself.
    Side,
    /// Both.
    Any,
}

/// One answer of a model, or the fault that takes its place.
///
/// In every string, `${prompt}`, `${tool_result}`, `${model}`, `${round}`,
/// `${cwd}` and the groups of the rule's patterns are filled in, and `${change}`
/// where the prompt starts with `agentd <step> <change-id>`; any other `${…}`
/// stays as it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reply {
    /// Reasoning, sent before the text.
    pub thinking: Option<String>,
    /// What the model says.
    pub text: Option<String>,
    /// The tools that it calls, after the text.
    pub calls: Vec<ToolCall>,
    /// Instead of the script's usage.
    pub usage: Option<Usage>,
    /// Why the answer ends, if not because it is complete.
    pub stop: Option<Stop>,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// Milliseconds before the first byte.
    pub delay_ms: u64,
    /// Milliseconds after each event of a stream.
    pub event_delay_ms: u64,
    /// Characters per text event of a stream; 400 when zero.
    pub piece: usize,
}

impl Reply {
    /// Answers with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Calls one tool, by its bare name.
    pub fn call(tool: &str, arguments: Value) -> Self {
        Self::default().and_call(tool, arguments)
    }

    /// Answers with nothing at all.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Answers with an HTTP status and the provider's error body for it.
    pub fn status(code: u16) -> Self {
        Self::fault(Fault::Status(StatusFault { code, headers: BTreeMap::new(), body: None }))
    }

    /// Fails in some other way.
    pub fn fault(fault: Fault) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }

    /// Says something before the tool calls, or before the fault midway.
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn and_call(mut self, tool: &str, arguments: Value) -> Self {
        self.calls.push(ToolCall { tool: tool.to_owned(), server: None, arguments });
        self
    }

    /// Adds reasoning.
    #[must_use]
    pub fn thinking(mut self, text: impl Into<String>) -> Self {
        self.thinking = Some(text.into());
        self
    }

    /// Sets the usage.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Ends abnormally.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Adds a header to a status fault; without one, it does nothing.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Some(Fault::Status(status)) = &mut self.fault {
            status.headers.insert(name.to_owned(), value.to_owned());
        }
        self
    }

    /// Waits before the first byte.
    #[must_use]
    pub fn delay_ms(mut self, milliseconds: u64) -> Self {
        self.delay_ms = milliseconds;
        self
    }
}

/// A call of a tool by its bare name.
///
/// Each CLI offers `write_note` to the model under a name of its own; the
/// server finds that name among the tools offered in the request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The bare name, such as `write_note`.
    pub tool: String,
    /// The MCP server, where the bare name is not enough.
    #[serde(default)]
    pub server: Option<String>,
    /// The arguments.
    #[serde(default)]
    pub arguments: Value,
}

/// Token counts in one convention, which each wire format turns into its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// All tokens of the prompt, cached ones included.
    pub input: u64,
    /// Of the input, how many were read from the cache.
    pub cached: u64,
    /// Of the input, how many were written to the cache (Anthropic only).
    pub cache_written: u64,
    /// All generated tokens, reasoning included.
    pub output: u64,
    /// Of the output, how many were reasoning (not Anthropic).
    pub reasoning: u64,
}

/// Abnormal ends that providers report inside a well-formed answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The output limit was reached.
    MaxTokens,
    /// The model or a safety filter refused.
    Refusal,
}

/// What goes wrong instead of, or during, an answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// An HTTP error.
    Status(StatusFault),
    /// Nothing is sent until the client or the server gives up.
    Hang,
    /// The first half is sent, then nothing more.
    HangMidway,
    /// The connection is closed without an answer.
    Close,
    /// The first half is sent, then the connection is reset, as when a server
    /// or a proxy dies.
    CutMidway,
    /// The first half is sent, then the connection is closed in good order.
    /// Not every client takes that for an error.
    EndMidway,
    /// The stream is not what it should be.
    Garbage,
}

/// An HTTP error.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusFault {
    /// The status code.
    pub code: u16,
    /// Further headers, such as `retry-after`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Instead of the provider's usual error body.
    #[serde(default)]
    pub body: Option<Value>,
}

/// Why a script was refused.
#[derive(Debug)]
pub enum ScriptError {
    /// It is not JSON, or not a script.
    Json(serde_json::Error),
    /// A rule has no replies.
    NoReplies {
        /// Its position.
        rule: usize,
    },
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(formatter, "not a script: {error}"),
            Self::NoReplies { rule } => write!(formatter, "rules[{rule}] has no replies"),
        }
    }
}

impl std::error::Error for ScriptError {}
