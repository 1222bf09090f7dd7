//! One call of an agent: its prompt, and what the agent said and did.

use std::io::{self, Write as _};

use agentd_core::agent::{AgentKind, Role};
use agentd_core::error_kind::Kind;
use agentd_core::event::AgentEvent;
use agentd_core::figures::{clock, duration};
use agentd_core::ids::ChangeId;
use agentd_core::layout::{ChangeFile, RunName};
use agentd_core::outcome::FailureKind;
use agentd_core::run_format::Record;
use agentd_core::step_name::StepName;
use agentd_core::text::{head, printable};
use agentd_engine::change::Snapshot;
use serde::Serialize;
use std::time::Duration;

use super::WhichRun;
use crate::error::CommandError;
use crate::ui::progress::described;
use crate::ui::{BAD, BOLD, DIM, Output, Screen};

/// How much of a tool's answer is shown: it is often a whole file.
const ANSWER_BYTES: usize = 600;

/// One call of an agent.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct CallReport {
    change_id: ChangeId,
    /// The number of the call.
    run: u32,
    /// Its file, in the project.
    file: String,
    step: StepName,
    agent: AgentKind,
    role: Role,
    /// Which attempt at the step it was, from 1.
    attempt: u32,
    started_at: String,
    /// None if agentd was killed.
    duration_ms: Option<u64>,
    exit_code: Option<i32>,
    failure: Option<FailureKind>,
    /// What the agent or the system said about the failure.
    message: Option<String>,
    prompt: String,
    /// What the agent said and did.
    events: Vec<CallEvent>,
}

/// Something that an agent said or did.
#[derive(Debug, Serialize)]
struct CallEvent {
    /// Milliseconds since the start.
    t: u64,
    kind: CallEventKind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum CallEventKind {
    Said,
    Tool,
    Refused,
    Retry,
    Warning,
    Stderr,
    File,
}

pub(super) fn report(snapshot: &Snapshot, which: WhichRun) -> Result<CallReport, CommandError> {
    let runs = snapshot.runs()?;
    let number = match which {
        WhichRun::Number(number) => Some(number),
        WhichRun::Last => runs.last().map(RunName::number),
    };
    let missing = || {
        let call = number.map(|number| format!(" {number}")).unwrap_or_default();
        let message = format!("`{}` has no record of a call{call}", snapshot.id());
        let error = CommandError::new(Kind::NoSuchDocument, message);
        match (runs.first(), runs.last()) {
            (Some(first), Some(last)) => {
                error.hint(format!("there are {} to {}", first.number(), last.number()))
            }
            _ => error.hint("records of calls are of one machine: git ignores runs/"),
        }
    };
    let name = runs.iter().find(|run| Some(run.number()) == number).ok_or_else(missing)?;
    let run = snapshot.read_run(name).ok().flatten().ok_or_else(missing)?;
    let failure = run.end.as_ref().and_then(|end| end.outcome.failure.as_ref());
    let file = snapshot.change().dir_in_project().join(&ChangeFile::Run(name.clone()).path());
    Ok(CallReport {
        change_id: snapshot.id().clone(),
        run: name.number(),
        file: file.to_string(),
        step: run.name.step(),
        agent: run.agent,
        role: run.header.role,
        attempt: run.header.attempt,
        started_at: run.header.started_at.clone(),
        duration_ms: run.end.as_ref().map(|end| end.duration_ms),
        exit_code: run.end.as_ref().and_then(|end| end.exit_code),
        failure: failure.map(|failure| failure.kind),
        message: failure.map(|failure| failure.message.clone()),
        prompt: run.header.prompt.clone(),
        events: events(&run.records),
    })
}

fn events(records: &[Record]) -> Vec<CallEvent> {
    let mut events: Vec<CallEvent> = Vec::new();
    for record in records {
        match record {
            Record::Event { t, event } => add(&mut events, *t, event),
            Record::Files { t, files } => events.extend(files.iter().map(|file| CallEvent {
                t: *t,
                kind: CallEventKind::File,
                text: file.path.clone(),
            })),
            Record::Stderr { t, text } => match events.last_mut() {
                Some(last) if last.kind == CallEventKind::Stderr => last.text.push_str(text),
                _ => events.push(CallEvent {
                    t: *t,
                    kind: CallEventKind::Stderr,
                    text: text.clone(),
                }),
            },
            _ => {}
        }
    }
    events
}

fn add(events: &mut Vec<CallEvent>, t: u64, event: &AgentEvent<'_>) {
    let kind = match event {
        AgentEvent::Text { text, delta: true } if continues(events) => {
            if let Some(last) = events.last_mut() {
                last.text.push_str(text);
            }
            return;
        }
        AgentEvent::Text { .. } => CallEventKind::Said,
        AgentEvent::ToolCall { .. } => CallEventKind::Tool,
        AgentEvent::ToolResult { ok: false, .. } => CallEventKind::Refused,
        AgentEvent::Retry { .. } => CallEventKind::Retry,
        AgentEvent::Warning { .. } | AgentEvent::Failed { .. } => CallEventKind::Warning,
        AgentEvent::Session { .. }
        | AgentEvent::ToolResult { ok: true, .. }
        | AgentEvent::Usage { .. }
        | AgentEvent::Finished { .. }
        | AgentEvent::Raw { .. } => return,
    };
    let text = match event {
        AgentEvent::Text { text, .. } => text.to_string(),
        AgentEvent::ToolResult { output, .. } => head(&output.text(), ANSWER_BYTES).to_owned(),
        AgentEvent::Failed { failure } => failure.message.clone(),
        event => described(event),
    };
    events.push(CallEvent { t, kind, text });
}

fn continues(events: &[CallEvent]) -> bool {
    events.last().is_some_and(|last| last.kind == CallEventKind::Said)
}

impl Output for CallReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let (run, step, agent) = (self.run, &self.step, self.agent);
        writeln!(screen, "{BOLD}call #{run}{BOLD:#}  {step} by {agent}, {}", self.role.name())?;
        let started = self.started_at.parse().ok().map(|at| screen.when(at));
        let took = self.duration_ms.map(|ms| format!(", {}", duration(ms)));
        let how = match self.failure {
            Some(failure) => format!(", failed: {}", failure.words()),
            None if self.duration_ms.is_none() => ", not ended".to_owned(),
            None => String::new(),
        };
        let started = started.unwrap_or_default();
        screen.labeled("began     ", &format!("{started}{}{how}", took.unwrap_or_default()))?;
        if let Some(message) = &self.message {
            screen.labeled("error     ", message)?;
        }
        screen.labeled("record    ", &self.file)?;
        writeln!(screen, "\n{BOLD}Prompt{BOLD:#}\n")?;
        screen.paragraph(&self.prompt, DIM)?;
        writeln!(screen, "\n{BOLD}What happened{BOLD:#}\n")?;
        for CallEvent { t, kind, text } in &self.events {
            let at = clock(Duration::from_millis(*t));
            let (mark, style) = match kind {
                CallEventKind::Said => ("", anstyle::Style::new()),
                CallEventKind::Tool => ("→ ", BOLD),
                CallEventKind::Refused => ("✗ ", BAD),
                CallEventKind::Retry | CallEventKind::Warning => ("! ", crate::ui::WARN),
                CallEventKind::Stderr => ("stderr ", DIM),
                CallEventKind::File => ("± ", DIM),
            };
            let label = format!("{DIM}{at:>7}{DIM:#}  {style}{mark}{style:#}");
            screen.labeled(&label, printable(text).trim())?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let event = |kind| CallEvent { t: 1200, kind, text: "create_spec auth-flow".to_owned() };
        Self {
            change_id: ChangeId::new("add-oauth").unwrap(),
            run: 3,
            file: "agentd/changes/add-oauth/runs/0003-challenge.jsonl".to_owned(),
            step: StepName::Challenge,
            agent: AgentKind::Codex,
            role: Role::Challenger,
            attempt: 1,
            started_at: "2026-11-04T10:00:00Z".to_owned(),
            duration_ms: Some(4_500),
            exit_code: Some(0),
            failure: Some(FailureKind::TimedOut),
            message: Some("no answer after 300 s".to_owned()),
            prompt: "agentd challenge add-oauth\n\nRead the plan.".to_owned(),
            events: vec![event(CallEventKind::Tool), event(CallEventKind::Said)],
        }
    }
}
