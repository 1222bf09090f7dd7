//! Doing again what a recorded agent did: its calls of agentd's tools against the real
//! server, its edits in the work tree, and what it said, used and how it ended.

use std::path::Path;
use std::time::Duration;

use agentd_core::event::{AgentEvent, CUT_MARK, Json};
use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::provider::MCP_SERVER;
use agentd_core::run_format::{FileEdit, Record};
use agentd_core::text::head;
use serde_json::{Value, json};

use super::{Call, OwnError, Voice};
use crate::agents::recording::{Answer, OwnCall, Recording, RecordingError, Run, plays};
use crate::agents::work_tree::{Redone, redo};
use crate::mcp_client::{McpClient, ToolAnswer};
use crate::store::ProjectDir;

/// How a warning begins that tells of a difference to the recording.
pub const DIVERGES: &str = "the replay diverges: ";

/// The key of `_meta` under which a replaying server is told the time.
pub const NOW: &str = "agentd/now";

pub(super) fn run(call: &Call, cwd: &Path, voice: &mut Voice<'_>) -> Result<(), OwnError> {
    let run = find(call)?;
    let signs = ["--agent", run.agent.name(), "--replaying"].map(str::to_owned);
    voice.line(&plays(run.agent))?;
    let needs_server = run.records.iter().any(|record| OwnCall::of(record).is_some());
    let client = if needs_server { Some(call.client(cwd, "agentd-replay", &signs)?) } else { None };
    let mut player = Player {
        call,
        voice,
        client,
        dir: ProjectDir::open(cwd)?,
        renamed: ChangeId::new(&run.header.change).ok().filter(|id| *id != call.change),
        run: &run,
        last_t: 0,
        answered: Vec::new(),
    };
    for record in &run.records {
        player.play(record)?;
    }
    player.end()
}

/// The recorded run that this call is to be.
fn find(call: &Call) -> Result<Run, OwnError> {
    let Some(dir) = &call.recording else {
        return Err(RecordingError::Empty { path: "[replay] recording".into() }.into());
    };
    let recording = Recording::open(dir)?;
    // The record of this very call is among them already.
    let number = call.runs.as_deref().and_then(|runs| Recording::open(runs).ok());
    let number = number.map_or(1, |runs| runs.count(&call.step).max(1));
    let name = recording.call(&call.step, number)?.clone();
    Ok(recording.read(&name)?)
}

struct Player<'a, 'w> {
    call: &'a Call,
    voice: &'a mut Voice<'w>,
    client: Option<McpClient>,
    dir: ProjectDir,
    run: &'a Run,
    /// The change as it was called when it was recorded, if that was another name.
    renamed: Option<ChangeId>,
    last_t: u64,
    /// Calls whose real answer was told.
    answered: Vec<String>,
}

impl Player<'_, '_> {
    fn play(&mut self, record: &Record) -> Result<(), OwnError> {
        let (Record::Event { t, .. } | Record::Files { t, .. }) = record else { return Ok(()) };
        let pause = self.call.speed.pause(t.saturating_sub(self.last_t));
        std::thread::sleep(Duration::from_millis(pause));
        self.last_t = *t;
        if let Some(call) = OwnCall::of(record) {
            return self.tool(call);
        }
        match record {
            Record::Files { files, .. } => files.iter().try_for_each(|edit| self.edit(edit)),
            Record::Event { event, .. } => self.event(event),
            _ => Ok(()),
        }
    }

    fn event(&mut self, event: &AgentEvent<'static>) -> Result<(), OwnError> {
        match event {
            AgentEvent::Session { session_id, model } => {
                let outcome = self.run.end.as_ref().map(|end| &end.outcome);
                // The model with the most tokens is known at the end only.
                let model = outcome.and_then(|o| o.model.clone().map(Into::into)).or(model.clone());
                let session_id = self.call.session.clone().map_or(session_id.clone(), Into::into);
                self.voice.event(&AgentEvent::Session { session_id, model })
            }
            AgentEvent::ToolResult { id, .. } if self.answered.iter().any(|done| *done == **id) => {
                Ok(())
            }
            // Told at the end, as the whole call was reckoned.
            AgentEvent::Usage { .. } => Ok(()),
            other => self.voice.event(other),
        }
    }

    /// Calls a tool again and compares the answers.
    fn tool(&mut self, call: OwnCall<'_>) -> Result<(), OwnError> {
        let OwnCall { id, tool, arguments } = call;
        let mut value = arguments.to_value();
        if let Some(old) = &self.renamed {
            rename(&mut value, old, &self.call.change);
        }
        let raw = serde_json::value::to_raw_value(&value).map_err(std::io::Error::from)?;
        self.voice.event(&AgentEvent::ToolCall {
            id: id.into(),
            server: Some(MCP_SERVER.into()),
            name: tool.into(),
            arguments: Json::from(raw),
        })?;
        let recorded = self.run.answer(id);
        let now = self.run.moment(recorded.as_ref(), self.last_t);
        let Some(client) = self.client.as_mut() else { return Ok(()) };
        let answer = client.call(tool, &value, Some(json!({ NOW: now })))?;
        self.answered.push(id.to_owned());
        let output = answer.text.as_str().into();
        self.voice.event(&AgentEvent::ToolResult { id: id.into(), ok: answer.ok, output })?;
        if let Some(recorded) = recorded
            && let Some(difference) = difference(&recorded, &answer)
        {
            self.diverges(&format!("{tool} {difference}"))?;
        }
        Ok(())
    }

    fn edit(&mut self, edit: &FileEdit) -> Result<(), OwnError> {
        match redo(&self.dir, edit) {
            Ok(Redone::Done | Redone::Already) => Ok(()),
            Ok(Redone::Diverged(why)) => self.diverges(&format!("{}: {why}", edit.path)),
            Err(error) => self.diverges(&error.to_string()),
        }
    }

    fn diverges(&mut self, what: &str) -> Result<(), OwnError> {
        let message = format!("{DIVERGES}{}: {what}", self.run.name);
        self.voice.event(&AgentEvent::Warning { message: message.into() })
    }

    fn end(self) -> Result<(), OwnError> {
        let Some(end) = &self.run.end else { return Ok(()) };
        let outcome = &end.outcome;
        if let Some(usage) = outcome.usage {
            self.voice.event(&AgentEvent::Usage { usage, cost_usd: outcome.cost_usd })?;
        }
        let told = |wanted: fn(&AgentEvent<'_>) -> bool| {
            let mut records = self.run.records.iter();
            records.any(|record| matches!(record, Record::Event { event, .. } if wanted(event)))
        };
        match &outcome.failure {
            Some(failure) if !told(|event| matches!(event, AgentEvent::Failed { .. })) => {
                self.voice.event(&AgentEvent::Failed { failure: failure.clone() })
            }
            None if !told(|event| matches!(event, AgentEvent::Finished { .. })) => {
                self.voice.event(&AgentEvent::Finished { text: None })
            }
            _ => Ok(()),
        }
    }
}

/// The arguments of a call for a change of another name.
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

/// The digest that the answer of a tool names, in either form.
fn told_digest(text: &str) -> Option<&str> {
    text.match_indices("sha256").find_map(|(at, word)| {
        let behind = text[at + word.len()..].trim_start_matches(['"', '\\', ':', ' ']);
        behind.get(..64).filter(|digest| digest.bytes().all(|b| b.is_ascii_hexdigit()))
    })
}

/// How an answer differs from the recorded one. CLIs wrap what a tool says, so that
/// only what it says itself is looked for.
fn difference(recorded: &Answer, now: &ToolAnswer) -> Option<String> {
    let (old, new) = (recorded.text.as_str(), now.text.as_str());
    if recorded.ok != now.ok {
        let word = |ok: bool| if ok { "was accepted" } else { "was refused" };
        let said = head(new, 300);
        return Some(format!("{} then and {} now: {said}", word(recorded.ok), word(now.ok)));
    }
    if !now.ok {
        // Some CLIs check arguments themselves, and refuse in words of their own.
        return None;
    }
    if let (Some(old), Some(new)) = (told_digest(old), told_digest(new)) {
        return (old != new).then(|| "has written another text than then".to_owned());
    }
    // Some CLIs show the structured answer instead of the words.
    let shown: Option<Value> = serde_json::from_str(old).ok();
    if shown.is_some() && shown == now.structured {
        return None;
    }
    let quoted = Value::from(new).to_string();
    let quoted = &quoted[1..quoted.len() - 1];
    let same = old.contains(CUT_MARK)
        || old.trim() == new.trim()
        || old.contains(new.trim())
        || old.contains(quoted)
        // Some CLIs cut long answers, and some leave failures without their text.
        || (new.len() > 2000 && old.contains(head(new, 500)))
        || old.trim().is_empty();
    (!same).then(|| format!("has answered something else than then: {}", head(new.trim(), 300)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::recording::told_time;

    fn recorded(text: &str) -> Answer {
        Answer { t: 0, ok: true, text: text.to_owned() }
    }

    fn answer(ok: bool, text: &str) -> ToolAnswer {
        ToolAnswer { ok, text: text.to_owned(), structured: None }
    }

    #[test]
    fn times_and_digests_are_found_in_answers() {
        let digest = "0".repeat(64);
        let text = format!(
            "Wrote agentd/changes/at x/proposal.md at 2026-11-15T20:00:00Z (sha256 {digest})."
        );
        assert_eq!(told_time(&text).unwrap().to_string(), "2026-11-15T20:00:00Z");
        assert_eq!(told_digest(&text), Some(digest.as_str()));
        let structured = format!(
            r#"{{\"path\":\"a\",\"sha256\":\"{digest}\",\"at\":\"2026-11-15T20:00:00Z\"}}"#
        );
        assert_eq!(told_time(&structured).unwrap().to_string(), "2026-11-15T20:00:00Z");
        assert_eq!(told_digest(&structured), Some(digest.as_str()));
        assert_eq!(told_time("Look at it, at 2026 äöüäöüäöüäöü."), None);
        assert_eq!(told_digest("(sha256 äöü"), None);
    }

    #[test]
    fn answers_are_compared_by_what_the_tool_said() {
        let old = recorded("{\"output\":\"line\\nother\"}");
        assert_eq!(difference(&old, &answer(true, "line\nother")), None);
        assert!(difference(&old, &answer(true, "something")).is_some());
        assert!(difference(&old, &answer(false, "line\nother")).is_some());
        // In words now, and as data then.
        let old = recorded(r#"{"task_id":"2.1","completed":1}"#);
        let mut new = answer(true, "Task 2.1 is done.");
        assert!(difference(&old, &new).is_some());
        new.structured = Some(json!({"completed": 1, "task_id": "2.1"}));
        assert_eq!(difference(&old, &new), None);
        new.structured = Some(json!({"completed": 2, "task_id": "2.1"}));
        assert!(difference(&old, &new).is_some());
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
