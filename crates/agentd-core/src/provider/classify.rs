//! From what a CLI said on its way out to a kind of failure.

use std::borrow::Cow;

use crate::agent::AgentKind;
use crate::known_agent::{KnownAgent, known};
use crate::outcome::{Exit, Failure, FailureKind, Stopped};
use crate::text::tail;

use super::quota::{self, retry_after_ms};

/// How much of standard error a failure carries.
const STDERR_KEPT: usize = 4096;

/// Words of messages, from the most specific to the vaguest: an error about a
/// session may also mention a request, one about a quota also a status.
const WORDS: [(FailureKind, &[&str]); 12] = [
    (
        FailureKind::SessionNotFound,
        &[
            "no rollout found",
            "no conversation found",
            "invalid session identifier",
            "no previous sessions found",
            "error resuming session",
        ],
    ),
    (
        FailureKind::Config,
        &[
            "not running in a trusted directory",
            "not inside a trusted directory",
            "unknown argument",
            "unexpected argument",
            "unknown option",
            "invalid session id",
            "already in use",
            "session id \"",
            "root/sudo privileges",
            "error loading config",
            "invalid configuration",
        ],
    ),
    (FailureKind::McpUnavailable, &["mcp server", "mcp servers failed", "required mcp"]),
    (
        FailureKind::PromptTooLarge,
        &["prompt is too long", "input exceeds", "context_length", "context window", "too large"],
    ),
    (FailureKind::OutputLimit, &["max_output_tokens", "output token maximum", "max_tokens"]),
    (
        FailureKind::LimitReached,
        &["max turns", "maximum number of turns", "turn limit", "max budget"],
    ),
    // Whether it passes is looked at apart.
    (
        FailureKind::RateLimited,
        &[
            "rate limit",
            "rate_limit",
            "ratelimit",
            "rate-limit",
            "throttl",
            "quota",
            "resource_exhausted",
            "resource has been exhausted",
            "too many requests",
            "usage limit",
            "limit reached",
            "exhausted your capacity",
        ],
    ),
    (
        FailureKind::Auth,
        &[
            "not logged in",
            "/login",
            "invalid auth method",
            "auth method",
            "api key not valid",
            "invalid api key",
            "api_key",
            "unauthorized",
            "unauthenticated",
            "authentication",
            "permission_denied",
            "missing environment variable",
        ],
    ),
    (
        FailureKind::InvalidRequest,
        &["invalid_argument", "invalid_request", "bad request", "not_found_error"],
    ),
    (
        FailureKind::ServerError,
        &[
            "high demand",
            "overloaded",
            "no capacity available",
            "internal server error",
            "unavailable",
            "bad gateway",
        ],
    ),
    (
        FailureKind::Network,
        &[
            "terminated",
            "not valid json",
            "failed to parse json",
            "stream disconnected",
            "connection",
            "econnre",
            "etimedout",
            "enotfound",
            "eai_again",
            "fetch failed",
            "socket hang up",
            "error sending request",
            "network",
            "premature close",
            "timed out",
            "unable to connect",
        ],
    ),
    (
        FailureKind::Refused,
        &["safety", "refus", "content filter", "content_filter", "usage policy"],
    ),
];

/// The kind that a message of a CLI or a provider speaks of.
pub(super) fn kind_of_message(message: &str) -> Option<FailureKind> {
    use FailureKind as K;
    let text = message.to_ascii_lowercase();
    // Whatever else is said: a credit that is used up also limits tokens, and asks for a login.
    if quota::is_used_up(&text) {
        return Some(K::QuotaExhausted);
    }
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let found = WORDS.iter().find(|(_, words)| has(words)).map(|(kind, _)| *kind);
    match (found, http_status(&text)) {
        // A status says more than the words that are on every error page.
        (None | Some(K::Network | K::Refused | K::InvalidRequest), Some(status)) => {
            kind_of_status(status).or(found)
        }
        _ => found,
    }
    .map(|kind| match kind {
        K::RateLimited if quota::is_limit_used_up(&text) || http_status(&text) == Some(402) => {
            K::QuotaExhausted
        }
        kind => kind,
    })
}

/// A status of HTTP that stands in a text as a word of its own.
fn http_status(text: &str) -> Option<u16> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| word.len() == 3)
        .filter_map(|word| word.parse().ok())
        .find(|status| kind_of_status(*status).is_some())
}

/// What a status of HTTP means for a retry.
pub(super) fn kind_of_status(status: u16) -> Option<FailureKind> {
    Some(match status {
        400 | 404 | 405 | 409 | 415 | 422 => FailureKind::InvalidRequest,
        401 | 403 => FailureKind::Auth,
        402 => FailureKind::QuotaExhausted,
        429 => FailureKind::RateLimited,
        408 => FailureKind::Network,
        413 => FailureKind::PromptTooLarge,
        500..=504 | 520..=529 => FailureKind::ServerError,
        _ => return None,
    })
}

/// The failure of a call that the CLI did not explain in an event of its own.
pub(super) fn from_exit(exit: &Exit, terminal: bool) -> Option<Failure> {
    if let Some(stopped) = exit.stopped {
        return Some(match stopped {
            Stopped::TimeLimit => Failure::new(
                FailureKind::TimedOut,
                "the call took longer than allowed and was stopped",
            )
            .hint("raise timeout_secs of this agent, or split the work"),
            Stopped::IdleLimit => Failure::new(
                FailureKind::Idle,
                "the agent printed nothing for longer than allowed and was stopped",
            )
            .hint("raise idle_timeout_secs of this agent if its model needs longer to answer"),
            Stopped::Cancelled => Failure::new(FailureKind::Cancelled, "interrupted"),
        });
    }
    if let Some(signal) = exit.signal {
        let message = format!("the agent was killed by signal {signal}");
        return Some(Failure::new(FailureKind::Crashed, message));
    }
    if terminal && exit.code == Some(0) {
        return None;
    }
    let words = last_words(&exit.stderr_tail);
    // All of it is in the tail; where a traceback ends, it says what went wrong.
    let said = words.lines().next_back().unwrap_or_default();
    if let Some(kind) = kind_of_message(&words) {
        let names_it = |line: &&str| kind_of_message(line) == Some(kind);
        let mut failure = Failure::new(kind, words.lines().rfind(names_it).unwrap_or(said));
        failure.retry_after_ms = retry_after_ms(&words);
        return Some(failure);
    }
    if exit.stdin_unread.is_some() {
        let code = exit.code.map(|code| format!(" with code {code}")).unwrap_or_default();
        let message =
            format!("the agent exited{code} before it had read its prompt{}", after_colon(said));
        return Some(Failure::new(FailureKind::StdinClosed, message));
    }
    Some(match exit.code {
        Some(0) => Failure::new(FailureKind::NoResult, "the agent ended without a result"),
        Some(code @ (101 | 129..=143)) => {
            Failure::new(FailureKind::Crashed, with_words(code, said))
        }
        Some(code) => Failure::new(FailureKind::Other, with_words(code, said)),
        None => Failure::new(FailureKind::Other, "the agent ended in an unknown way"),
    })
}

fn with_words(code: i32, said: &str) -> String {
    format!("the agent exited with code {code}{}", after_colon(said))
}

fn after_colon(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

/// The lines of standard error that say something, without the noise that the
/// CLIs print on every run, and without stack traces.
fn last_words(stderr: &str) -> String {
    const NOISE: [&str; 8] = [
        "Warning: Basic terminal",
        "Warning: 256-color",
        "YOLO mode is enabled",
        "Ripgrep is not available",
        "WARNING: proceeding, even though",
        "Reading prompt from stdin",
        "Reading additional input from stdin",
        "Loaded cached credentials",
    ];
    let lines = stderr.lines().map(str::trim_end).filter(|line| {
        let line = line.trim_start();
        !line.is_empty()
            && !line.starts_with("at ")
            && !NOISE.iter().any(|noise| line.starts_with(noise))
    });
    let lines: Vec<&str> = lines.collect();
    let from = lines.len().saturating_sub(12);
    without_colours(tail(&lines[from..].join("\n"), 2000))
}

/// The text without escape sequences of terminals.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    plain
}

/// Adds the tail of standard error, and what a person can do.
pub(super) fn explain(agent: AgentKind, mut failure: Failure, exit: &Exit) -> Failure {
    tail(&exit.stderr_tail, STDERR_KEPT).clone_into(&mut failure.stderr_tail);
    if failure.hint.is_none() {
        failure.hint = hint(agent, failure.kind).map(Cow::into_owned);
    }
    failure
}

fn hint(agent: AgentKind, kind: FailureKind) -> Option<Cow<'static, str>> {
    let row = known(agent);
    let text = match kind {
        FailureKind::Auth => row?.login,
        FailureKind::NotInstalled => return row.map(|row| install_hint(agent, row).into()),
        FailureKind::RateLimited => "wait a moment, then retry",
        FailureKind::QuotaExhausted => {
            "wait until the quota is renewed, or name a second agent for the role in [roles], as in \
             reviewer = [\"codex\", \"opencode\"]"
        }
        FailureKind::InvalidRequest => {
            "check the model's name in [<agent>.models]; the provider refused the request"
        }
        FailureKind::McpUnavailable => "agentd's MCP server did not come up in the agent",
        FailureKind::OutputLimit => "the answer was cut: split the change into smaller specs",
        FailureKind::PromptTooLarge => {
            "the prompt is longer than the agent takes: shorten project.md or split the change"
        }
        FailureKind::StdinClosed => {
            "start the agent by hand in this project, and check that it works"
        }
        _ => return None,
    };
    Some(text.into())
}

/// How to get the program of an agent.
fn install_hint(agent: AgentKind, row: &KnownAgent) -> String {
    let install = row.install;
    let how = if install.starts_with("see ") {
        install.to_owned()
    } else {
        format!("install it with `{install}`")
    };
    match agent {
        AgentKind::Named(_) => format!("{how}, or set `acp` in [agents.{agent}]"),
        _ => format!("{how}, or set `command` in [{agent}]"),
    }
}

/// The failure of a program that could not be started at all.
pub fn not_installed(agent: AgentKind, program: &str, why: &str) -> Failure {
    let message = format!("cannot start `{program}`: {why}");
    explain(agent, Failure::new(FailureKind::NotInstalled, message), &Exit::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureKind as K;

    #[test]
    fn messages_of_the_real_clis_are_understood() {
        let cases = [
            ("[API Error: terminated]", K::Network),
            (
                "[API Error: {\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}]",
                K::RateLimited,
            ),
            ("API Error: 400 {\"type\":\"error\"}", K::InvalidRequest),
            ("API Error: 500 Internal server error", K::ServerError),
            ("API Error: 529 overloaded_error", K::ServerError),
            ("Not logged in · Please run /login", K::Auth),
            ("unexpected status 401 Unauthorized", K::Auth),
            ("Missing environment variable: `OPENAI_API_KEY`.", K::Auth),
            ("We're currently experiencing high demand", K::ServerError),
            ("Incomplete response returned, reason: max_output_tokens", K::OutputLimit),
            ("stream disconnected before completion: error sending request", K::Network),
            (
                "Error: thread/resume failed: no rollout found for thread id x (code -32600)",
                K::SessionNotFound,
            ),
            ("No conversation found with session ID: x", K::SessionNotFound),
            ("Error resuming session: Invalid session identifier \"9\".", K::SessionNotFound),
            ("Gemini CLI is not running in a trusted directory.", K::Config),
            ("Invalid auth method selected.", K::Auth),
            ("exceeded retry limit, last status: 429 Too Many Requests", K::RateLimited),
        ];
        for (message, kind) in cases {
            assert_eq!(kind_of_message(message), Some(kind), "{message}");
        }
        assert_eq!(kind_of_message("something else happened"), None);
    }

    #[test]
    fn noise_is_not_a_reason() {
        let exit = Exit {
            code: Some(7),
            stderr_tail: "Warning: 256-color support\nboom\n    at foo (x.js:1)\n".into(),
            ..Exit::default()
        };
        let failure = from_exit(&exit, false).unwrap();
        assert_eq!(failure.message, "the agent exited with code 7: boom");
    }

    /// Issue 19, m6: the line that says what is wrong, not one from the middle.
    #[test]
    fn a_traceback_is_reported_by_its_last_line() {
        let frames = "  File \"/opt/agent.py\", line 7, in run\n    raise error\n".repeat(15);
        let stderr_tail =
            format!("Traceback (most recent call last):\n{frames}ValueError: no such key\n\n");
        let exit = Exit { code: Some(1), stderr_tail, ..Exit::default() };
        let failure = from_exit(&exit, false).unwrap();
        assert_eq!(failure.message, "the agent exited with code 1: ValueError: no such key");
        let stderr_tail = "429 Too Many Requests\nretry after 20\nsee the log".to_owned();
        let limited = from_exit(&Exit { code: Some(1), stderr_tail, ..exit }, false).unwrap();
        assert_eq!((limited.kind, &*limited.message), (K::RateLimited, "429 Too Many Requests"));
        assert_eq!(limited.retry_after_ms, Some(20_000));
    }

    // contract WF8
    #[test]
    fn a_prompt_that_nobody_read_is_the_reason() {
        let exit = Exit { code: Some(3), stdin_unread: Some(9), ..Exit::default() };
        let failure = from_exit(&exit, false).unwrap();
        assert_eq!(failure.message, "the agent exited with code 3 before it had read its prompt");
        assert!(failure.is_transient());
        let said = Exit { stderr_tail: "boom".into(), ..exit.clone() };
        let failure = from_exit(&said, false).unwrap();
        assert!(failure.message.ends_with("its prompt: boom"), "{failure}");
        let explained = Exit { stderr_tail: "401 Unauthorized".into(), ..exit };
        assert_eq!(from_exit(&explained, false).unwrap().kind, K::Auth);
    }

    #[test]
    fn a_zero_exit_without_a_result_is_a_failure() {
        let exit = Exit { code: Some(0), ..Exit::default() };
        assert_eq!(from_exit(&exit, false).unwrap().kind, K::NoResult);
        assert!(from_exit(&exit, true).is_none());
        let stopped = Exit { stopped: Some(Stopped::IdleLimit), ..exit };
        assert_eq!(from_exit(&stopped, true).unwrap().kind, K::Idle);
    }
}
