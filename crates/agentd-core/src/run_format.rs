//! The format of `runs/NNNN-<step>.jsonl`: one JSON object per line.
//!
//! | line | is |
//! |---|---|
//! | `{"run":1,"step":…}` | [`RunHeader`], the first line |
//! | `{"t":12,"raw":"…"}` | a line that the agent printed, 12 ms after the start |
//! | `{"t":12,"event":"text",…}` | an [`AgentEvent`] that was decoded from the line above it |
//! | `{"t":12,"stderr":"…"}` | what the agent wrote to standard error |
//! | `{"t":12,"files":[…]}` | [`FileEdit`]s: what an implementer has changed since the last such line |
//! | `{"t":12,"note":"…"}` | a remark by agentd, such as "raw lines are no longer kept" |
//! | `{"t":99,"end":{…}}` | [`RunEnd`], the last line; missing when agentd was killed |
//!
//! The file is written while the call happens. After a kill the last line may be
//! half a line; [`parse_line`] refuses it and readers skip it. Texts are kept
//! whole up to [`crate::event::KEPT_BYTES`] each, so that a run can be replayed:
//! tool calls with their arguments and outputs are all there.
//! A file has a limit: after 64 MiB raw lines and standard error are no longer kept,
//! after 256 MiB of texts and tools neither are those; a note says so, and the lines that say
//! how the call ended are always there.
//! Of the environment only names are in the file, and secrets are replaced by
//! `[redacted]` before a line is written.

use serde::{Deserialize, Serialize};

use crate::agent::{AgentKind, Role, Transport};
use crate::event::AgentEvent;
use crate::hash::Digest;
use crate::ids::ChangeId;
use crate::outcome::AgentOutcome;
use crate::step_name::StepName;

/// The version that this code writes.
pub const RUN_VERSION: u32 = 1;

/// The first line of a run file: what was called, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// [`RUN_VERSION`].
    pub run: u32,
    /// The step.
    pub step: StepName,
    /// The change.
    pub change: ChangeId,
    /// The agent program.
    pub agent: AgentKind,
    /// How it was talked to.
    #[serde(default, skip_serializing_if = "is_cli")]
    pub transport: Transport,
    /// The role that it played.
    pub role: Role,
    /// Which attempt at the step this is, from 1.
    pub attempt: u32,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The names of the environment variables that were added; never a value.
    pub env: Vec<String>,
    /// The working directory.
    pub cwd: String,
    /// The prompt, whole.
    pub prompt: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// What it is expected to cost, in US dollars: so much counts as spent if nobody learns more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_usd: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_cli(transport: &Transport) -> bool {
    *transport == Transport::Cli
}

/// The last line of a run file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The exit code, unless a signal ended the program.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// How long the call took.
    pub duration_ms: u64,
    /// What came of it.
    pub outcome: AgentOutcome,
}

/// A file of the working tree that has changed, with what is in it now. Seen on the disk,
/// not in what the agent says of its tools, so that it also holds what commands did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEdit {
    /// From the root of the working tree, with `/`.
    pub path: String,
    /// It was not there before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub created: bool,
    /// What it was before, where that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// What it is now; none: it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
    /// Its text; left out where it is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its bytes as hex digits, where it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
    /// Whether it can be run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// One line of a run file.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// The first line.
    Header(Box<RunHeader>),
    /// A decoded event.
    Event {
        /// Milliseconds since the start.
        t: u64,
        /// The event.
        event: AgentEvent<'static>,
    },
    /// A line as the agent printed it.
    Raw {
        /// Milliseconds since the start.
        t: u64,
        /// The line, perhaps cut.
        line: String,
    },
    /// A piece of standard error.
    Stderr {
        /// Milliseconds since the start.
        t: u64,
        /// The text.
        text: String,
    },
    /// What has changed in the working tree.
    Files {
        /// Milliseconds since the start.
        t: u64,
        /// The files.
        files: Vec<FileEdit>,
    },
    /// A remark by agentd.
    Note {
        /// Milliseconds since the start.
        t: u64,
        /// The remark.
        text: String,
    },
    /// The last line.
    End {
        /// Milliseconds since the start.
        t: u64,
        /// How it ended.
        end: Box<RunEnd>,
    },
}

/// Reads one line of a run file. None: the line is cut short, or of a later
/// version; either way the reader continues with the next.
pub fn parse_line(line: &str) -> Option<Record> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    if value.get("run").is_some() {
        return serde_json::from_value(value).ok().map(|header| Record::Header(Box::new(header)));
    }
    let t = value.get("t")?.as_u64()?;
    let text = |key: &str| value.get(key).and_then(|text| text.as_str()).map(str::to_owned);
    if let Some(line) = text("raw") {
        Some(Record::Raw { t, line })
    } else if let Some(text) = text("stderr") {
        Some(Record::Stderr { t, text })
    } else if let Some(text) = text("note") {
        Some(Record::Note { t, text })
    } else if let Some(files) = value.get("files") {
        Some(Record::Files { t, files: Vec::deserialize(files).ok()? })
    } else if let Some(end) = value.get("end") {
        let end = RunEnd::deserialize(end).ok()?;
        Some(Record::End { t, end: Box::new(end) })
    } else {
        let event = serde_json::from_value(value).ok()?;
        Some(Record::Event { t, event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_halves_are_refused() {
        let line = r#"{"t":12,"event":"text","text":"hello","delta":true}"#;
        let expected =
            Record::Event { t: 12, event: AgentEvent::Text { text: "hello".into(), delta: true } };
        assert_eq!(parse_line(line), Some(expected));
        for cut in 0..line.len() {
            assert_eq!(parse_line(&line[..cut]), None);
        }
        assert_eq!(
            parse_line(r#"{"t":1,"raw":"{\"type\":\"x\"}"}"#),
            Some(Record::Raw { t: 1, line: r#"{"type":"x"}"#.into() })
        );
        let end = r#"{"t":9,"end":{"exit_code":0,"duration_ms":9,"outcome":{"tool_calls":2}}}"#;
        let Some(Record::End { end, .. }) = parse_line(end) else { panic!() };
        assert!(end.outcome.reported_success());
        assert_eq!(parse_line(r#"{"t":9,"later_version":1}"#), None);
        let files = r#"{"t":1,"files":[{"path":"a.rs","created":true,"text":"x"}]}"#;
        let Some(Record::Files { files, .. }) = parse_line(files) else { panic!() };
        assert!(files[0].created && files[0].after.is_none() && !files[0].executable);
    }
}
