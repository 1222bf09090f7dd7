//! Why a turn failed, from an error of the protocol or from the reason of its stop.

use serde_json::Value;
use serde_json::value::RawValue;

use super::message::{AUTH_REQUIRED, ErrorBody, NOT_FOUND};
use crate::outcome::{Failure, FailureKind};
use crate::provider::classify::kind_of_message;
use crate::text::head;

/// The most of the details of an error that is kept.
const DETAIL_BYTES: usize = 2000;

/// The failure that an error of an agent reports.
pub(super) fn of_error(error: &ErrorBody<'_>) -> Failure {
    let said = error.data.and_then(|data| serde_json::from_str(data.get()).ok());
    let said = said.map(|data: Value| in_words(&data)).unwrap_or_default();
    let message = match (&*error.message, said.as_str()) {
        ("" | "Internal error", said) if !said.is_empty() => said.to_owned(),
        (message, "") => message.to_owned(),
        (message, said) if message.contains(said) => message.to_owned(),
        (message, said) => format!("{message}: {said}"),
    };
    // What kind of error it is may only be in the details, for programs: a message about too many
    // requests, or a login, may stand for a credit that is used up.
    let words = kind_of_message(&message);
    let details = error.data.and_then(|data| kind_of_message(data.get()));
    let kind = match error.code {
        NOT_FOUND => FailureKind::SessionNotFound,
        _ if [words, details].contains(&Some(FailureKind::QuotaExhausted)) => {
            FailureKind::QuotaExhausted
        }
        AUTH_REQUIRED => FailureKind::Auth,
        _ => words.or(details).unwrap_or(FailureKind::Other),
    };
    let message = if message.is_empty() { "the agent reports an error" } else { &message };
    Failure::new(kind, message)
}

/// The details of an error, where they are words.
fn in_words(data: &Value) -> String {
    let text = match data {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let named = ["details", "message", "error"].iter().find_map(|key| fields.get(*key));
            match named {
                Some(Value::String(text)) => text.clone(),
                _ => data.to_string(),
            }
        }
        other => other.to_string(),
    };
    head(text.trim(), DETAIL_BYTES).to_owned()
}

/// The failure that a reason of a stop stands for; none for a turn that ended as it should.
pub(super) fn of_stop(reason: &str) -> Option<Failure> {
    let (kind, message) = match reason {
        "end_turn" => return None,
        "max_tokens" => (FailureKind::OutputLimit, "the answer was cut at its limit of tokens"),
        "max_turn_requests" => {
            (FailureKind::LimitReached, "the agent has reached its limit of requests for a turn")
        }
        "refusal" => (FailureKind::Refused, "the model declined to answer"),
        "cancelled" => (FailureKind::Cancelled, "the agent says that the turn was cancelled"),
        _ => (FailureKind::Other, "the agent ended the turn for a reason that is not known"),
    };
    Some(Failure::new(kind, message))
}

/// The failure of an agent that has ended its turn as if somebody had told it to: some do when they
/// are denied something.
pub(super) fn of_denied(tools: &[String]) -> Failure {
    let Some(last) = tools.last() else {
        let message = "the agent ended its turn as if it had been told to";
        return Failure::new(FailureKind::Other, message);
    };
    let message = format!("the agent ended its turn: its role may not use {}", head(last, 200));
    Failure::new(FailureKind::Denied, message)
}

/// The failure that an agent only speaks about.
pub(super) fn of_text(text: &str) -> Failure {
    let text = text.trim();
    let kind = kind_of_message(text).unwrap_or(FailureKind::Other);
    Failure::new(
        kind,
        if text.is_empty() { "the agent says that its turn broke down" } else { text },
    )
}

/// Whether the adapter of codex says that a turn has broken down: it then ends the turn as if
/// nothing were wrong.
pub(super) fn is_breakdown(meta: &RawValue) -> bool {
    let meta: Option<Value> = serde_json::from_str(meta.get()).ok();
    meta.is_some_and(|meta| meta["codex"]["threadStatus"]["type"] == "systemError")
}
