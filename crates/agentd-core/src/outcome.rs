//! How a call ended: [`AgentOutcome`], and [`Failure`] with a kind that code can
//! act on and a hint that a person can act on.

use serde::{Deserialize, Serialize};

use crate::text::head;

/// What kind of failure it was. The kind alone decides whether a retry helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The program is not installed, or cannot be started.
    NotInstalled,
    /// No key, a wrong key, not logged in.
    Auth,
    /// The CLI refuses its flags, settings or the directory.
    Config,
    /// The session to resume does not exist.
    SessionNotFound,
    /// The session that came up is not the one that was asked for.
    WrongSession,
    /// The provider refused the request (HTTP 400 and its like).
    InvalidRequest,
    /// Too many requests for a moment.
    RateLimited,
    /// A quota or a credit is used up, for hours or until somebody pays.
    QuotaExhausted,
    /// The provider's servers failed.
    ServerError,
    /// The connection failed or broke off.
    Network,
    /// The model answered with nothing.
    EmptyAnswer,
    /// The answer was cut at the limit of output tokens.
    OutputLimit,
    /// The model or a filter declined to answer.
    Refused,
    /// The agent ended its turn, because its role may not do what it wanted to.
    Denied,
    /// A limit of turns or of money set on the CLI was reached.
    LimitReached,
    /// agentd has ended the call: the change has used up its budget (T8).
    Budget,
    /// The prompt is longer than the CLI takes.
    PromptTooLarge,
    /// The CLI closed its input before the prompt was written (WF8).
    StdinClosed,
    /// The MCP server of agentd did not come up in the CLI.
    McpUnavailable,
    /// The whole call took longer than allowed.
    TimedOut,
    /// Nothing was printed for longer than allowed.
    Idle,
    /// The user interrupted.
    Cancelled,
    /// The program was killed by a signal, or panicked.
    Crashed,
    /// The program ended without saying whether it had succeeded.
    NoResult,
    /// Something was changed that others run or obey, or that only agentd writes.
    #[serde(alias = "git_tampered")]
    Tampered,
    /// The agent reported success, and what it should have written is not there.
    NoArtifact,
    /// What the agent wrote is not valid.
    InvalidArtifact,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// Whether the agent cannot be used by anybody here until somebody does something, or for a long
    /// time, so that another agent may take over (G4).
    pub fn drops_out(self) -> bool {
        matches!(self, Self::QuotaExhausted | Self::Auth)
    }

    /// Whether the same call may succeed when it is made again.
    pub fn is_transient(self) -> bool {
        match self {
            Self::RateLimited
            | Self::ServerError
            | Self::Network
            | Self::EmptyAnswer
            | Self::StdinClosed
            | Self::Idle
            | Self::Crashed
            | Self::NoResult => true,
            Self::NotInstalled
            | Self::Auth
            | Self::QuotaExhausted
            | Self::Config
            | Self::SessionNotFound
            | Self::WrongSession
            | Self::InvalidRequest
            | Self::OutputLimit
            | Self::Refused
            | Self::LimitReached
            | Self::Budget
            | Self::PromptTooLarge
            | Self::McpUnavailable
            | Self::TimedOut
            | Self::Denied
            | Self::Cancelled
            | Self::Tampered
            | Self::NoArtifact
            | Self::InvalidArtifact
            | Self::Other => false,
        }
    }

    /// What happened, in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotInstalled => "it cannot be started",
            Self::Auth => "it is not logged in",
            Self::Config => "it refuses its settings",
            Self::SessionNotFound => "its session is gone",
            Self::WrongSession => "it resumed another session",
            Self::InvalidRequest => "the request was refused",
            Self::RateLimited => "rate limit",
            Self::QuotaExhausted => "its quota is used up",
            Self::ServerError => "server error",
            Self::Network => "network error",
            Self::EmptyAnswer => "empty answer",
            Self::OutputLimit => "output limit",
            Self::Refused => "the model declined",
            Self::Denied => "it stopped at what its role may not do",
            Self::LimitReached => "its own limit was reached",
            Self::Budget => "out of budget",
            Self::PromptTooLarge => "the prompt is too long",
            Self::StdinClosed => "it did not read its prompt",
            Self::McpUnavailable => "its MCP server did not start",
            Self::TimedOut => "timed out",
            Self::Idle => "no output for too long",
            Self::Cancelled => "interrupted",
            Self::Crashed => "crashed",
            Self::NoResult => "it ended without a result",
            Self::Tampered => "it changed files that are not its own",
            Self::NoArtifact => "it did not write what was asked for",
            Self::InvalidArtifact => "what it wrote is not valid",
            Self::Other => "failed",
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind, for code.
    pub kind: FailureKind,
    /// What the CLI or the system said, in one or a few lines.
    pub message: String,
    /// The end of what the CLI wrote to standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    /// What a person can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// How long to wait before a retry, where the CLI says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl Failure {
    /// A failure of this kind; the rest is filled in where it is known.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let message = message.into();
        let message = head(message.trim(), 4096).to_owned();
        Self { kind, message, stderr_tail: String::new(), hint: None, retry_after_ms: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the same call may succeed when it is made again.
    pub fn is_transient(&self) -> bool {
        self.kind.is_transient()
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// What the process did, as the decoder of its output needs to know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why agentd stopped it, if agentd did.
    pub stopped: Option<Stopped>,
    /// The CLI closed its input with so many bytes of the prompt unread.
    pub stdin_unread: Option<u64>,
    /// The end of what it wrote to standard error.
    pub stderr_tail: String,
}

/// Why agentd ended a process that had not ended itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// The whole call took too long.
    TimeLimit,
    /// Nothing was printed for too long.
    IdleLimit,
    /// The user asked for it.
    Cancelled,
}

/// What is known about a call when it is over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentOutcome {
    /// The session, for resuming it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The model actually used: the one with the most tokens where there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tokens of this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Codex only: the running total of the thread, to be given back on resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_usage: Option<Usage>,
    /// The cost by the CLI's own reckoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The last message of the assistant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The review marker in the assistant's text, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewMark>,
    /// How many tools were called.
    #[serde(default)]
    pub tool_calls: u32,
    /// Tools that the CLI refused to run, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
    /// What became of the tools that it called.
    #[serde(default, skip_serializing_if = "ToolUse::is_empty")]
    pub tools: ToolUse,
    /// Why it failed; none means that the CLI reported success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

impl AgentOutcome {
    /// Whether the CLI reported success. Necessary, not sufficient: the step must
    /// also find its artifact on disk.
    pub fn reported_success(&self) -> bool {
        self.failure.is_none()
    }

    /// Whether the agent came to its own end, so that what it reported to have used is all of it.
    pub fn is_settled(&self) -> bool {
        use FailureKind::{Cancelled, Crashed, Idle, NoResult, TimedOut};
        let kind = self.failure.as_ref().map(|failure| failure.kind);
        !matches!(kind, Some(Cancelled | Crashed | Idle | NoResult | TimedOut))
    }
}

/// What became of the tools that an agent called: where something is missing on the disk, this
/// says why.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The tools of agentd that did what they were asked to, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// The last calls that were refused or failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedCall>,
    /// The tools of agentd that were called and have not answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<String>,
}

/// A call of a tool that was refused, or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCall {
    /// The tool, by its bare name.
    pub tool: String,
    /// What the tool or the CLI answered.
    pub reason: String,
}

impl ToolUse {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Tokens, counted the same way whatever the CLI counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input, including what came from a cache or went into one.
    pub input: u64,
    /// The part of the input that was read from a cache.
    #[serde(default)]
    pub cached: u64,
    /// The part of the input that was written to a cache (billed higher by some).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
    /// All output, including reasoning.
    pub output: u64,
    /// The part of the output that was reasoning, where the CLI says so.
    #[serde(default)]
    pub reasoning: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// What has been added since `before`; used where a CLI reports running totals.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            cached: self.cached.saturating_sub(before.cached),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
            output: self.output.saturating_sub(before.output),
            reasoning: self.reasoning.saturating_sub(before.reasoning),
        }
    }

    /// Input and output together.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::Add for Usage {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), |sum, usage| sum + usage)
    }
}

/// What a self-review said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReviewMark {
    /// Nothing to change.
    Pass,
    /// Something was wrong; the agent has edited the files itself.
    NeedsRevision,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_failures_are_final() {
        assert!(FailureKind::RateLimited.is_transient());
        assert!(!FailureKind::Auth.is_transient());
        assert!(!FailureKind::TimedOut.is_transient());
        assert!(!FailureKind::Cancelled.is_transient());
    }
}
