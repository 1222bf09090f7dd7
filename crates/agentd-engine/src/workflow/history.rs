//! What was done before: the run files of a change, and the ledger brought up to date
//! with them. A workflow that was killed finds out here where it stood.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use agentd_core::event::{AgentEvent, KEPT_BYTES};
use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, RunName};
use agentd_core::outcome::AgentOutcome;
use agentd_core::run_format::{Record, RunEnd, parse_line};
use agentd_core::step_name::StepName;

use super::effect_of;
use crate::documents::{self, DocumentError};
use crate::step::{Agents, ledger};
use crate::store::Change;

/// A call that was made.
#[derive(Debug, Clone)]
pub(crate) struct PastRun {
    pub(crate) number: u32,
    pub(crate) step: String,
    /// The session, where the agent got as far as saying it.
    pub(crate) session_id: Option<String>,
    pub(crate) model: Option<String>,
    /// How it ended; nothing where agentd was killed.
    pub(crate) end: Option<RunEnd>,
}

impl PastRun {
    /// Whether the agent reported success.
    pub(crate) fn succeeded(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.outcome.reported_success())
    }
}

/// The calls of a change, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    runs: Vec<PastRun>,
}

impl History {
    /// Reads the run files of a change. A file that cannot be read is a call of which
    /// nothing is known but that it was made.
    pub(crate) fn read(change: &Change, root: &Path) -> Result<Self, DocumentError> {
        let dir = root.join(layout::change_dir(change.id()).as_path()).join("runs");
        let runs = change.runs()?.ids.into_iter().map(|name| read(&dir, &name)).collect();
        Ok(Self { runs })
    }

    /// The last call of a step.
    pub(crate) fn last(&self, step: &str) -> Option<&PastRun> {
        self.runs.iter().rfind(|run| run.step == step)
    }

    /// The calls of a step that succeeded since the last call of another.
    pub(crate) fn succeeded_since(&self, step: &str, since: &str) -> Vec<&PastRun> {
        let after = self.last(since).map_or(0, |run| run.number);
        let is_meant = |run: &&PastRun| run.number > after && run.step == step && run.succeeded();
        self.runs.iter().filter(is_meant).collect()
    }

    /// The calls of a step that succeeded after a call of this number.
    pub(crate) fn succeeded_after(&self, step: &str, number: u32) -> usize {
        let is_meant = |run: &&PastRun| run.number > number && run.step == step && run.succeeded();
        self.runs.iter().filter(is_meant).count()
    }

    /// The number of the last call of any of some steps; 0 where there was none.
    pub(crate) fn last_number(&self, is_meant: impl Fn(&str) -> bool) -> u32 {
        self.runs.iter().rfind(|run| is_meant(&run.step)).map_or(0, |run| run.number)
    }

    /// The number of the last call of any of some steps that succeeded; 0 for none.
    pub(crate) fn last_success(&self, is_meant: impl Fn(&str) -> bool) -> u32 {
        let found = self.runs.iter().rfind(|run| is_meant(&run.step) && run.succeeded());
        found.map_or(0, |run| run.number)
    }

    /// Whether a step was begun after the last call of another and has not succeeded since.
    pub(crate) fn interrupted_since(&self, step: &str, since: &str) -> bool {
        let after = self.last(since).map_or(0, |run| run.number);
        self.last(step).is_some_and(|run| run.number > after && !run.succeeded())
    }
}

/// How far into a file the session is looked for, in lines: agents say it first.
const FIRST_LINES: usize = 64;
/// And in bytes, whatever lies there.
const FIRST_BYTES: u64 = 16 << 20;

fn read(dir: &Path, name: &RunName) -> PastRun {
    let mut run = PastRun {
        number: name.number(),
        step: name.step().to_owned(),
        session_id: None,
        model: None,
        end: None,
    };
    // What cannot be read stays unknown.
    let _ = read_into(&mut run, &dir.join(name.to_string()));
    if let Some(end) = &run.end {
        run.session_id = end.outcome.session_id.clone().or(run.session_id);
        run.model = end.outcome.model.clone().or(run.model);
    }
    run
}

fn read_into(run: &mut PastRun, path: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(File::open(path)?.take(FIRST_BYTES));
    let mut line = Vec::new();
    for _ in 0..FIRST_LINES {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let record = std::str::from_utf8(&line).ok().and_then(parse_line);
        if let Some(Record::Event { event: AgentEvent::Session { session_id, model }, .. }) = record
        {
            run.session_id = Some(session_id.into_owned());
            run.model = model.map(std::borrow::Cow::into_owned);
            break;
        }
    }
    // The last line holds at most one text, which was cut to what is kept.
    let mut file = reader.into_inner().into_inner();
    let length = file.metadata()?.len();
    let tail = (2 * KEPT_BYTES as u64).min(length);
    file.seek(SeekFrom::Start(length - tail))?;
    let mut bytes = Vec::new();
    file.take(tail).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    if let Some(Record::End { end, .. }) = text.lines().next_back().and_then(parse_line) {
        run.end = Some(*end);
    }
    Ok(())
}

/// Puts calls into the ledger that were made and are not there: agentd was killed before
/// it could. They count as they would have. Whoever calls this holds the run lock, so none of
/// them is still going on.
pub(crate) fn reconcile(
    agents: &Agents,
    id: &ChangeId,
    now: agentd_core::stamp::Stamp,
) -> Result<History, DocumentError> {
    let change = agents.project.change(id)?;
    let history = History::read(&change, agents.project.root())?;
    let state = documents::load_state(&change)?;
    let known: BTreeSet<u32> = state.llm_calls.iter().filter_map(|call| call.run).collect();
    let lost: Vec<&PastRun> =
        history.runs.iter().filter(|run| !known.contains(&run.number)).collect();
    if lost.is_empty() {
        return Ok(history);
    }
    documents::update_state(&agents.project, id, &agents.holder, now, |state| {
        for run in lost {
            let unknown = AgentOutcome {
                session_id: run.session_id.clone(),
                model: run.model.clone(),
                ..AgentOutcome::default()
            };
            let outcome = run.end.as_ref().map_or(&unknown, |end| &end.outcome);
            let mut call = ledger::entry(&agents.config, &run.step, outcome, None).call;
            call.duration_ms = run.end.as_ref().map_or(0, |end| end.duration_ms);
            call.timestamp = Some(now);
            call.run = Some(run.number);
            state.record_call(call);
            let step: Option<StepName> = run.step.parse().ok();
            if let Some(effect) = step.as_ref().and_then(effect_of).filter(|_| run.succeeded()) {
                effect(state, outcome);
            }
        }
        state.llm_calls.sort_by_key(|call| call.run);
        Ok(())
    })?;
    Ok(history)
}
