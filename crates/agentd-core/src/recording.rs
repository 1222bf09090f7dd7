//! What happened in one recorded run, read from its records, and the few words by which a replay
//! and agentd understand each other.
//!
//! Two sides read recordings and must not know each other: the engine, which decides what is
//! replayed and judges the result, and the player in `agentd-builtin`, which is started like any
//! agent's CLI. So what they share is here, as values.

use jiff::{SignedDuration, Timestamp};

use crate::agent::AgentKind;
use crate::event::{AgentEvent, Json};
use crate::layout::RunName;
use crate::provider::MCP_SERVER;
use crate::run_format::{Record, RunEnd, RunHeader};
use crate::stamp::Stamp;

/// How a warning begins that reports a difference from the recording.
pub const DIVERGES: &str = "the replay diverges: ";

/// The key of `_meta` under which a replaying server gets the time.
pub const NOW: &str = "agentd/now";

/// What happened in one run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The name of its file.
    pub name: RunName,
    /// What was called, and how.
    pub header: RunHeader,
    /// Who did it the first time: a replay names the agent that it plays.
    pub agent: AgentKind,
    /// What happened, without what the agent printed literally.
    pub records: Vec<Record>,
    /// How it ended, unless agentd was killed.
    pub end: Option<RunEnd>,
}

/// A call of one of agentd's tools.
#[derive(Debug, Clone, Copy)]
pub struct RecordedCall<'r> {
    /// The id by which its answer refers to it.
    pub id: &'r str,
    /// The tool.
    pub tool: &'r str,
    /// Its arguments.
    pub arguments: &'r Json<'static>,
}

/// What a tool answered.
#[derive(Debug, Clone)]
pub struct RecordedAnswer {
    /// Milliseconds since the start.
    pub t: u64,
    /// Whether it did what it was asked to.
    pub ok: bool,
    /// The answer in words.
    pub text: String,
}

impl<'r> RecordedCall<'r> {
    /// The call that a record is about.
    pub fn of(record: &'r Record) -> Option<Self> {
        match record {
            Record::Event {
                event: AgentEvent::ToolCall { id, server: Some(server), name, arguments },
                ..
            } if server == MCP_SERVER => Some(Self { id, tool: name, arguments }),
            _ => None,
        }
    }
}

impl Run {
    /// A run from its records, which may fail to be read. None where they do not begin as those
    /// of a run do.
    pub fn from_records<E>(
        name: RunName,
        all: impl IntoIterator<Item = Result<Record, E>>,
    ) -> Result<Option<Self>, E> {
        let (mut header, mut played, mut end) = (None, None, None);
        let mut records = Vec::new();
        for record in all {
            match record? {
                Record::Header(first) => header = Some(*first),
                Record::End { end: last, .. } => end = Some(*last),
                Record::Raw { line, .. } => played = played.or_else(|| played_agent(&line)),
                Record::Stderr { .. } | Record::Note { .. } => {}
                record @ (Record::Event { .. } | Record::Files { .. }) => records.push(record),
            }
        }
        Ok(header.map(|header: RunHeader| {
            let played = played.filter(|_| header.agent == AgentKind::Replay);
            let agent = played.unwrap_or(header.agent);
            Self { name, header, agent, records, end }
        }))
    }

    /// The answer to a call.
    pub fn answer(&self, call: &str) -> Option<RecordedAnswer> {
        self.records.iter().find_map(|record| match record {
            Record::Event { t, event: AgentEvent::ToolResult { id, ok, output } } if id == call => {
                Some(RecordedAnswer { t: *t, ok: *ok, text: output.text().into_owned() })
            }
            _ => None,
        })
    }

    /// When it began.
    pub fn started(&self) -> Timestamp {
        self.header.started_at.parse().unwrap_or_default()
    }

    /// When a tool was at work: the time in its answer, otherwise by the clock of the recording.
    pub fn moment(&self, answer: Option<&RecordedAnswer>, last_t: u64) -> Stamp {
        answer.and_then(|answer| time_in_answer(&answer.text)).unwrap_or_else(|| {
            let t = answer.map_or(last_t, |answer| answer.t);
            let passed = SignedDuration::from_millis(i64::try_from(t).unwrap_or(0));
            let started = self.started();
            Stamp::new(started.saturating_add(passed).unwrap_or(started))
        })
    }
}

/// `… at 2026-11-15T20:00:00Z (sha256 …` in the answer of a tool that writes, or
/// `"at":"2026-11-15T20:00:00Z"`, since some CLIs show the structured answer.
fn time_in_answer(text: &str) -> Option<Stamp> {
    let length = "2026-11-15T20:00:00Z".len();
    behind(text, "at")
        .find_map(|rest| rest.get(..length).filter(|time| time.ends_with('Z'))?.parse().ok())
}

/// The digest in the answer of a tool that writes, in either form.
pub fn digest_in_answer(text: &str) -> Option<&str> {
    behind(text, "sha256").find_map(|rest| {
        rest.get(..64).filter(|digest| digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
    })
}

/// What follows on a word, wherever it occurs, without the marks of JSON in between.
fn behind<'t>(text: &'t str, word: &str) -> impl Iterator<Item = &'t str> {
    let marks = ['"', '\\', ':', ' '];
    text.match_indices(word)
        .map(move |(at, word)| text[at + word.len()..].trim_start_matches(marks))
}

/// The line with which a replay names the agent that it plays.
pub fn plays_line(agent: AgentKind) -> String {
    format!("{{\"plays\":\"{agent}\"}}")
}

fn played_agent(line: &str) -> Option<AgentKind> {
    let name = line.strip_prefix("{\"plays\":\"")?.strip_suffix("\"}")?;
    name.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_digests_are_found_in_answers() {
        let digest = "0".repeat(64);
        let text = format!(
            "Wrote agentd/changes/at x/proposal.md at 2026-11-15T20:00:00Z (sha256 {digest})."
        );
        assert_eq!(time_in_answer(&text).unwrap().to_string(), "2026-11-15T20:00:00Z");
        assert_eq!(digest_in_answer(&text), Some(digest.as_str()));
        let structured = format!(
            r#"{{\"path\":\"a\",\"sha256\":\"{digest}\",\"at\":\"2026-11-15T20:00:00Z\"}}"#
        );
        assert_eq!(time_in_answer(&structured).unwrap().to_string(), "2026-11-15T20:00:00Z");
        assert_eq!(digest_in_answer(&structured), Some(digest.as_str()));
        assert_eq!(time_in_answer("Look at it, at 2026 äöüäöüäöüäöü."), None);
        assert_eq!(digest_in_answer("(sha256 äöü"), None);
    }
}
