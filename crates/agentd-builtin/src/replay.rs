//! Does again what a recorded agent did: its calls of agentd's tools against the real server, its
//! edits in the working tree, and its output, usage and end.
//!
//! The engine decides what is replayed (`agents::recording`, `agents::reproduce`) and starts this as
//! the agent of a step. So the player reads its run file itself, and everything that it shares
//! with the engine is in `agentd_core::recording`.

mod answers;
mod edits;
mod payments;

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, RunName};
use agentd_core::outcome::FailureKind;
use agentd_core::recording::{DIVERGES, NOW, RecordedCall, Run, plays_line};
use agentd_core::run_format::{FileEdit, Record, parse_line};
use agentd_core::step_name::StepName;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::{Value, json};

use crate::call::Call;
use crate::error::AgentError;
use crate::mcp_client::McpClient;
use crate::transcript::Transcript;
use payments::Payment;

/// The largest run file that is read, and the longest line of it: agentd writes no longer ones.
const LARGEST_RUN: u64 = 512 << 20;
const LONGEST_LINE: usize = 8 << 20;

/// Plays the recorded run that a call asks for.
pub(crate) fn run(
    call: &Call,
    cwd: &Path,
    transcript: &mut Transcript<'_>,
) -> Result<(), AgentError> {
    let run = find(call)?;
    let payment = Payment::make(call, &run)?;
    transcript.line(&plays_line(run.agent))?;
    let needs_server = run.records.iter().any(|record| RecordedCall::of(record).is_some());
    let signs = ["--agent", run.agent.name(), "--replaying"];
    let client =
        if needs_server { Some(call.start_server(cwd, "agentd-replay", &signs)?) } else { None };
    let work_tree = Dir::open_ambient_dir(cwd, ambient_authority())
        .map_err(|error| AgentError::other(format!("cannot open {}: {error}", cwd.display())))?;
    let mut player = Player {
        call,
        transcript,
        client,
        work_tree,
        renamed: Some(run.header.change.clone()).filter(|id| *id != call.change),
        run: &run,
        last_t: 0,
        answered: Vec::new(),
    };
    for record in &run.records {
        player.play(record)?;
    }
    if let Some(payment) = payment {
        payment.end()?;
    }
    player.end()
}

fn unusable(message: String) -> AgentError {
    AgentError::new(
        FailureKind::Config,
        message,
        "set `recording` in [replay] to a directory of run files that has this call",
    )
}

/// The recorded run that this call is to be: the next one of its step.
fn find(call: &Call) -> Result<Run, AgentError> {
    let Some(recording) = &call.recording else {
        return Err(unusable("there is no recorded run in [replay] recording".to_owned()));
    };
    let failed = |path: &Path, error: &io::Error| {
        unusable(format!("cannot read {}: {error}", path.display()))
    };
    let (dir, recorded) = run_names(recording).map_err(|error| failed(recording, &error))?;
    if recorded.is_empty() {
        return Err(unusable(format!("there is no recorded run in {}", dir.display())));
    }
    let of_step = |runs: &[RunName]| -> Vec<RunName> {
        runs.iter().filter(|run| run.step() == call.step).cloned().collect()
    };
    let played = call.runs.as_deref().map_or(0, |runs| played(runs, &call.step));
    let Some(name) = of_step(&recorded).into_iter().nth(played) else {
        let mut counts: Vec<(StepName, usize)> = Vec::new();
        for run in &recorded {
            match counts.iter_mut().find(|(step, _)| *step == run.step()) {
                Some((_, count)) => *count += 1,
                None => counts.push((run.step(), 1)),
            }
        }
        let has: Vec<String> =
            counts.iter().map(|(step, count)| format!("{step} ({count})")).collect();
        let (step, has, number) = (&call.step, has.join(", "), played + 1);
        return Err(unusable(format!(
            "the recording has no call number {number} of `{step}`; it has {has}"
        )));
    };
    let path = dir.join(name.to_string());
    let run = read(&path, name).map_err(|error| failed(&path, &error))?;
    run.ok_or_else(|| unusable(format!("{} is not the record of a run", path.display())))
}

/// How many calls of a step came to an end. One that was cut short is made again, and plays the same
/// recorded call; the record of this very call is there already, without an end.
fn played(runs: &Path, step: &StepName) -> usize {
    let Ok((dir, runs)) = run_names(runs) else { return 0 };
    let ended = |name: &RunName| {
        let run = read(&dir.join(name.to_string()), name.clone()).ok().flatten();
        run.and_then(|run| run.end).is_some_and(|end| end.outcome.is_settled())
    };
    runs.iter().filter(|name| name.step() == *step && ended(name)).count()
}

/// The run files in a directory, or in the `runs/` of a change, in order; and where they are.
fn run_names(dir: &Path) -> io::Result<(PathBuf, Vec<RunName>)> {
    let below = dir.join("runs");
    let dir = if below.is_dir() { below } else { dir.to_owned() };
    let mut runs: Vec<RunName> = Vec::new();
    for entry in fs::read_dir(&dir)? {
        runs.extend(entry?.file_name().to_str().and_then(|name| name.parse().ok()));
    }
    runs.sort_unstable();
    Ok((dir, runs))
}

/// Reads a run file. Lines that are cut short or too long to be agentd's are passed over.
fn read(path: &Path, name: RunName) -> io::Result<Option<Run>> {
    let mut bytes = Vec::new();
    agentd_walk::open_regular(path)?.take(LARGEST_RUN + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_RUN {
        let message = format!("it has more than {LARGEST_RUN} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| line.len() < LONGEST_LINE);
    let records = lines.filter_map(|line| str::from_utf8(line).ok().and_then(parse_line));
    Run::from_records(name, records.map(Ok))
}

struct Player<'a, 'w> {
    call: &'a Call,
    transcript: &'a mut Transcript<'w>,
    client: Option<McpClient>,
    work_tree: Dir,
    run: &'a Run,
    /// The change as it was called when it was recorded, if that was another name.
    renamed: Option<ChangeId>,
    last_t: u64,
    /// Calls whose real answer was reported.
    answered: Vec<String>,
}

impl Player<'_, '_> {
    fn play(&mut self, record: &Record) -> Result<(), AgentError> {
        let (Record::Event { t, .. } | Record::Files { t, .. }) = record else { return Ok(()) };
        let pause = self.call.speed.pause(t.saturating_sub(self.last_t));
        std::thread::sleep(Duration::from_millis(pause));
        self.last_t = *t;
        if let Some(call) = RecordedCall::of(record) {
            return self.tool(call);
        }
        match record {
            Record::Files { files, .. } => files.iter().try_for_each(|edit| self.edit(edit)),
            Record::Event { event, .. } => self.event(event),
            _ => Ok(()),
        }
    }

    fn event(&mut self, event: &AgentEvent<'static>) -> Result<(), AgentError> {
        match event {
            AgentEvent::Session { session_id, model } => {
                let outcome = self.run.end.as_ref().map(|end| &end.outcome);
                // The model with the most tokens is known at the end only.
                let model = outcome.and_then(|o| o.model.clone().map(Into::into)).or(model.clone());
                let session_id = self.call.session.clone().map_or(session_id.clone(), Into::into);
                self.transcript.event(&AgentEvent::Session { session_id, model })
            }
            AgentEvent::ToolResult { id, .. } if self.answered.iter().any(|done| *done == **id) => {
                Ok(())
            }
            // Reported at the end, for the whole call.
            AgentEvent::Usage { .. } => Ok(()),
            other => self.transcript.event(other),
        }
    }

    /// Calls a tool again and compares the answers.
    fn tool(&mut self, call: RecordedCall<'_>) -> Result<(), AgentError> {
        let RecordedCall { id, tool, arguments } = call;
        let mut value = arguments.to_value();
        if let Some(old) = &self.renamed {
            rename(&mut value, old, &self.call.change);
        }
        self.transcript.tool_call(id, tool, &value)?;
        let recorded = self.run.answer(id);
        let now = self.run.moment(recorded.as_ref(), self.last_t);
        let Some(client) = self.client.as_mut() else { return Ok(()) };
        let answer = client.call(tool, &value, Some(json!({ NOW: now })))?;
        self.answered.push(id.to_owned());
        self.transcript.tool_result(id, &answer)?;
        if let Some(recorded) = recorded
            && let Some(difference) = answers::difference(&recorded, &answer)
        {
            self.diverges(&format!("{tool} {difference}"))?;
        }
        Ok(())
    }

    fn edit(&mut self, edit: &FileEdit) -> Result<(), AgentError> {
        match edits::redo(&self.work_tree, edit) {
            Ok(()) => Ok(()),
            Err(why) => self.diverges(&format!("{}: {why}", edit.path)),
        }
    }

    fn diverges(&mut self, what: &str) -> Result<(), AgentError> {
        let message = format!("{DIVERGES}{}: {what}", self.run.name);
        self.transcript.event(&AgentEvent::Warning { message: message.into() })
    }

    fn end(self) -> Result<(), AgentError> {
        let Some(end) = &self.run.end else { return Ok(()) };
        let outcome = &end.outcome;
        if let Some(usage) = outcome.usage {
            self.transcript.event(&AgentEvent::Usage { usage, cost_usd: outcome.cost_usd })?;
        }
        let reported = |wanted: fn(&AgentEvent<'_>) -> bool| {
            let mut records = self.run.records.iter();
            records.any(|record| matches!(record, Record::Event { event, .. } if wanted(event)))
        };
        match &outcome.failure {
            Some(failure) if !reported(|event| matches!(event, AgentEvent::Failed { .. })) => {
                self.transcript.event(&AgentEvent::Failed { failure: failure.clone() })
            }
            None if !reported(|event| matches!(event, AgentEvent::Finished { .. })) => {
                self.transcript.event(&AgentEvent::Finished { text: None })
            }
            _ => Ok(()),
        }
    }
}

/// Changes the arguments of a call for a change of another name.
fn rename(value: &mut Value, old: &ChangeId, new: &ChangeId) {
    if value["change_id"].as_str() == Some(old.as_str()) {
        value["change_id"] = json!(new);
    }
    let (from, to) = (layout::change_dir(old), layout::change_dir(new));
    let path = value["path"].as_str().and_then(|path| path.strip_prefix(from.as_str()));
    if let Some(path) = path.map(|rest| format!("{to}{rest}")) {
        value["path"] = json!(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call that was cut short, by a kill or by Ctrl-C, is played again.
    #[test]
    fn calls_that_came_to_an_end_were_played() {
        let dir = tempfile::tempdir().unwrap();
        let header = json!({"run": 1, "step": "challenge", "change": "x", "agent": "replay",
            "role": "challenger", "attempt": 1, "argv": [], "env": [], "cwd": "/", "prompt": "",
            "started_at": "2026-01-02T03:04:05Z"});
        let end = |failure: Value| {
            json!({"t": 1, "end": {"exit_code": 0, "duration_ms": 1,
                "outcome": {"tool_calls": 0, "failure": failure}}})
        };
        let failed = |kind: &str| end(json!({"kind": kind, "message": "no"}));
        let runs = [
            ("0001-challenge", None),
            ("0002-challenge", Some(failed("cancelled"))),
            ("0003-challenge", Some(failed("rate_limited"))),
            ("0004-challenge", Some(end(Value::Null))),
            ("0005-review", Some(end(Value::Null))),
        ];
        for (name, end) in runs {
            let end = end.map(|end| format!("{end}\n")).unwrap_or_default();
            fs::write(dir.path().join(format!("{name}.jsonl")), format!("{header}\n{end}"))
                .unwrap();
        }
        assert_eq!(played(dir.path(), &StepName::Challenge), 2);
        assert_eq!(played(&dir.path().join("none"), &StepName::Challenge), 0);
    }

    #[test]
    fn a_change_may_have_another_name() {
        let (old, new) = (ChangeId::new("a").unwrap(), ChangeId::new("b").unwrap());
        let mut value = json!({"change_id": "a", "path": "agentd/changes/a/tasks.md", "x": "a"});
        rename(&mut value, &old, &new);
        let expected = json!({"change_id": "b", "path": "agentd/changes/b/tasks.md", "x": "a"});
        assert_eq!(value, expected);
    }
}
