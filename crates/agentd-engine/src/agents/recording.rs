//! A directory of run files, as something that can be played: which runs it has, and
//! what happened in them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agentd_core::agent::AgentKind;
use agentd_core::event::{AgentEvent, Json};
use agentd_core::layout::RunName;
use agentd_core::provider::MCP_SERVER;
use agentd_core::run_format::{Record, RunEnd, RunHeader};
use agentd_core::stamp::Stamp;
use jiff::{SignedDuration, Timestamp};

use crate::agents::run_record::read_run;

/// A recording that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// What.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("there is no recorded run in {}", path.display())]
    Empty {
        /// Where.
        path: PathBuf,
    },
    /// A file does not begin as a run file does.
    #[error("{} is not the record of a run", path.display())]
    NotARun {
        /// The file.
        path: PathBuf,
    },
    /// The step was not called so often.
    #[error("the recording has no call number {number} of `{step}`; it has {has}")]
    NoSuchCall {
        /// The step.
        step: String,
        /// Which call of it.
        number: usize,
        /// What there is.
        has: String,
    },
}

/// The runs of a change, in order.
#[derive(Debug, Clone)]
pub struct Recording {
    dir: PathBuf,
    runs: Vec<RunName>,
}

/// What happened in one run.
#[derive(Debug, Clone)]
pub struct Run {
    /// The name of its file.
    pub name: RunName,
    /// What was called, and how.
    pub header: RunHeader,
    /// Who did it the first time: a replay tells whom it played.
    pub agent: AgentKind,
    /// What happened, without what the agent printed literally.
    pub records: Vec<Record>,
    /// How it ended, unless agentd was killed.
    pub end: Option<RunEnd>,
}

impl Recording {
    /// Opens a directory of run files, or a change that has one.
    pub fn open(dir: &Path) -> Result<Self, RecordingError> {
        let below = dir.join("runs");
        let dir = if below.is_dir() { below } else { dir.to_owned() };
        let failed = |source| RecordingError::Io { path: dir.clone(), source };
        let mut runs: Vec<RunName> = Vec::new();
        for entry in fs::read_dir(&dir).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            runs.extend(name.to_str().and_then(|name| name.parse().ok()));
        }
        runs.sort_unstable();
        if runs.is_empty() {
            return Err(RecordingError::Empty { path: dir });
        }
        Ok(Self { dir, runs })
    }

    /// Where the run files are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The runs, in order.
    pub fn runs(&self) -> &[RunName] {
        &self.runs
    }

    /// The n-th call of a step, from 1.
    pub fn call(&self, step: &str, number: usize) -> Result<&RunName, RecordingError> {
        let mut of_step = self.runs.iter().filter(|run| run.step() == step);
        of_step.nth(number.saturating_sub(1)).ok_or_else(|| {
            let mut steps: Vec<(&str, usize)> = Vec::new();
            for run in &self.runs {
                match steps.iter_mut().find(|(step, _)| *step == run.step()) {
                    Some((_, count)) => *count += 1,
                    None => steps.push((run.step(), 1)),
                }
            }
            let has: Vec<String> =
                steps.iter().map(|(step, count)| format!("{step} ({count})")).collect();
            RecordingError::NoSuchCall { step: step.to_owned(), number, has: has.join(", ") }
        })
    }

    /// How often a step was called.
    pub fn count(&self, step: &str) -> usize {
        self.runs.iter().filter(|run| run.step() == step).count()
    }

    /// Reads a run.
    pub fn read(&self, name: &RunName) -> Result<Run, RecordingError> {
        let path = self.dir.join(name.to_string());
        let failed = |source| RecordingError::Io { path: path.clone(), source };
        let mut header = None;
        let mut played = None;
        let mut end = None;
        let mut records = Vec::new();
        for record in read_run(&path).map_err(failed)? {
            match record.map_err(failed)? {
                Record::Header(first) => header = Some(*first),
                Record::End { end: last, .. } => end = Some(*last),
                Record::Raw { line, .. } => played = played.or_else(|| told_agent(&line)),
                Record::Stderr { .. } | Record::Note { .. } => {}
                record @ (Record::Event { .. } | Record::Files { .. }) => records.push(record),
            }
        }
        let header: RunHeader = header.ok_or(RecordingError::NotARun { path })?;
        let played = played.filter(|_| header.agent == AgentKind::Replay);
        let agent = played.unwrap_or(header.agent);
        Ok(Run { name: name.clone(), header, agent, records, end })
    }
}

/// A call of a tool of agentd's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnCall<'r> {
    pub(crate) id: &'r str,
    pub(crate) tool: &'r str,
    pub(crate) arguments: &'r Json<'static>,
}

/// What a tool has answered.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Milliseconds since the start.
    pub(crate) t: u64,
    /// Whether it did what it was asked to.
    pub(crate) ok: bool,
    pub(crate) text: String,
}

impl<'r> OwnCall<'r> {
    /// The call that a record tells of.
    pub(crate) fn of(record: &'r Record) -> Option<Self> {
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
    /// The answer to a call.
    pub(crate) fn answer(&self, call: &str) -> Option<Answer> {
        self.records.iter().find_map(|record| match record {
            Record::Event { t, event: AgentEvent::ToolResult { id, ok, output } } if id == call => {
                Some(Answer { t: *t, ok: *ok, text: output.text().into_owned() })
            }
            _ => None,
        })
    }

    /// When it was begun.
    pub(crate) fn started(&self) -> Timestamp {
        self.header.started_at.parse().unwrap_or_default()
    }

    /// When a tool was at work: as its answer tells, else by the clock of the recording.
    pub(crate) fn moment(&self, answer: Option<&Answer>, last_t: u64) -> Stamp {
        answer.and_then(|answer| told_time(&answer.text)).unwrap_or_else(|| {
            let t = answer.map_or(last_t, |answer| answer.t);
            let passed = SignedDuration::from_millis(i64::try_from(t).unwrap_or(0));
            let started = self.started();
            Stamp::new(started.saturating_add(passed).unwrap_or(started))
        })
    }
}

/// `… at 2026-11-15T20:00:00Z (sha256 …` in the answer of a tool that writes, or
/// `"at":"2026-11-15T20:00:00Z"`, since some CLIs show the structured answer.
pub(crate) fn told_time(text: &str) -> Option<Stamp> {
    let length = "2026-11-15T20:00:00Z".len();
    text.match_indices("at").find_map(|(at, word)| {
        let behind = text[at + word.len()..].trim_start_matches(['"', '\\', ':', ' ']);
        behind.get(..length).filter(|time| time.ends_with('Z'))?.parse().ok()
    })
}

/// The line with which a replay tells whom it plays.
pub(crate) fn plays(agent: AgentKind) -> String {
    format!("{{\"plays\":\"{agent}\"}}")
}

fn told_agent(line: &str) -> Option<AgentKind> {
    AgentKind::ALL.into_iter().find(|agent| plays(*agent) == line)
}
