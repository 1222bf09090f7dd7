//! What was done before: the run files of a change, and the ledger brought up to date
//! with them. A workflow that was killed finds out here where it stood.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::PathBuf;

use agentd_core::agent::{AgentKind, Role, Transport};
use agentd_core::event::AgentEvent;
use agentd_core::layout::RunName;
use agentd_core::outcome::{AgentOutcome, Exit, Failure, FailureKind};
use agentd_core::provider::{AgentRequest, FoundInProject, Session, Surroundings, provider};
use agentd_core::run_format::{Record, RunEnd, RunHeader, parse_line};
use agentd_core::state::State;
use agentd_core::step_name::StepName;

use super::{Workflow, WorkflowError, effect_of};
use crate::agents::asked;
use crate::agents::run_record::{last_line, read_records};
use crate::agents::step::{self, Agents, ledger};
use crate::change::Snapshot;
use crate::change::documents::{self, DocumentError};
use crate::store::Change;

/// A call that was made.
#[derive(Debug, Clone)]
pub(crate) struct PastRun {
    name: RunName,
    pub(crate) number: u32,
    pub(crate) step: StepName,
    /// The session, where the agent got as far as saying it.
    pub(crate) session_id: Option<String>,
    pub(crate) model: Option<String>,
    agent: Option<AgentKind>,
    /// What it was expected to cost.
    estimate_usd: Option<f64>,
    /// How it ended; nothing where agentd was killed.
    pub(crate) end: Option<RunEnd>,
    /// Whether it ended with a question to a person.
    asked: bool,
}

impl PastRun {
    /// Whether the agent reported success, and did not stop for an answer.
    pub(crate) fn succeeded(&self) -> bool {
        !self.asked && self.reported_success()
    }

    fn reported_success(&self) -> bool {
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
    pub(crate) fn read(snapshot: &Snapshot) -> Result<Self, DocumentError> {
        let names = snapshot.runs()?.iter().cloned();
        let runs = names.map(|name| read(snapshot.change(), name)).collect();
        let mut history = Self { runs };
        history.mark(snapshot.state()?);
        Ok(history)
    }

    /// Marks the calls that ended with a question.
    fn mark(&mut self, state: &State) {
        let asked = state.llm_calls.iter().filter(|call| call.asked);
        let asked: BTreeSet<u32> = asked.filter_map(|call| call.run).collect();
        for run in &mut self.runs {
            run.asked = asked.contains(&run.number);
        }
    }

    /// The calls that are not in the ledger.
    fn lost(&self, state: &State) -> Vec<&PastRun> {
        let known: BTreeSet<u32> = state.llm_calls.iter().filter_map(|call| call.run).collect();
        self.runs.iter().filter(|run| !known.contains(&run.number)).collect()
    }

    /// The last call of a step.
    pub(crate) fn last(&self, step: &StepName) -> Option<&PastRun> {
        self.runs.iter().rfind(|run| run.step == *step)
    }

    /// The calls of a step that succeeded since the last call of another.
    pub(crate) fn succeeded_since(&self, step: &StepName, since: &StepName) -> Vec<&PastRun> {
        let after = self.last(since).map_or(0, |run| run.number);
        let is_meant = |run: &&PastRun| run.number > after && run.step == *step && run.succeeded();
        self.runs.iter().filter(is_meant).collect()
    }

    /// The calls of a step that succeeded after a call of this number.
    pub(crate) fn succeeded_after(&self, step: &StepName, number: u32) -> usize {
        let is_meant = |run: &&PastRun| run.number > number && run.step == *step && run.succeeded();
        self.runs.iter().filter(is_meant).count()
    }

    /// The number of the last call of any of some steps; 0 where there was none.
    pub(crate) fn last_number(&self, is_meant: impl Fn(&StepName) -> bool) -> u32 {
        self.runs.iter().rfind(|run| is_meant(&run.step)).map_or(0, |run| run.number)
    }

    /// The number of the last call of any of some steps that succeeded; 0 for none.
    pub(crate) fn last_success(&self, is_meant: impl Fn(&StepName) -> bool) -> u32 {
        let found = self.runs.iter().rfind(|run| is_meant(&run.step) && run.succeeded());
        found.map_or(0, |run| run.number)
    }

    /// How many of the last calls, all of this step, succeeded after a call of this number.
    pub(crate) fn in_a_row(&self, step: &StepName, after: u32) -> u32 {
        let last = self.runs.iter().rev().take_while(|run| run.number > after && run.step == *step);
        u32::try_from(last.filter(|run| run.succeeded()).count()).unwrap_or(u32::MAX)
    }

    /// Whether a step was begun after the last call of another and has not succeeded since.
    pub(crate) fn interrupted_since(&self, step: &StepName, since: &StepName) -> bool {
        let after = self.last(since).map_or(0, |run| run.number);
        self.last(step).is_some_and(|run| run.number > after && !run.succeeded())
    }
}

/// Which calls count where the number of rounds is limited.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds {
    /// Those with a higher number.
    pub(super) since: u32,
    /// Whether they are those of a command that a person runs until it comes to an end.
    pub(super) of_this_command: bool,
}

impl Rounds {
    /// All that the files show: single steps belong to no command.
    pub(super) const ALL: Self = Self { since: 0, of_this_command: false };

    /// Those that this command makes: a person who runs it again wants more of them.
    pub(super) fn of_this_command(workflow: &Workflow<'_>) -> Result<Self, WorkflowError> {
        let since = workflow.history()?.last_number(|_| true);
        Ok(Self { since, of_this_command: true })
    }
}

/// How far into a file the session is looked for, in lines: agents say it first.
const FIRST_LINES: usize = 64;
/// And in bytes, whatever is there.
const FIRST_BYTES: u64 = 16 << 20;

fn read(change: &Change, name: RunName) -> PastRun {
    let file = change.open_run(&name);
    let mut run = PastRun {
        number: name.number(),
        step: name.step(),
        name,
        session_id: None,
        model: None,
        agent: None,
        estimate_usd: None,
        end: None,
        asked: false,
    };
    // What cannot be read stays unknown.
    let _ = file.map(|file| read_into(&mut run, file));
    if let Some(end) = &run.end {
        run.session_id = end.outcome.session_id.clone().or(run.session_id);
        run.model = end.outcome.model.clone().or(run.model);
    }
    run
}

fn read_into(run: &mut PastRun, file: File) -> io::Result<()> {
    let mut reader = BufReader::new(file.take(FIRST_BYTES));
    let mut line = Vec::new();
    for _ in 0..FIRST_LINES {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let record = std::str::from_utf8(&line).ok().and_then(parse_line);
        if let Some(Record::Header(header)) = &record {
            run.agent = Some(header.agent);
            run.estimate_usd = header.estimate_usd;
        }
        if let Some(Record::Event { event: AgentEvent::Session { session_id, model }, .. }) = record
        {
            run.session_id = Some(session_id.into_owned());
            run.model = model.map(std::borrow::Cow::into_owned);
            break;
        }
    }
    run.end = last_line(reader.into_inner().into_inner())?;
    Ok(())
}

/// What is known of a call that was killed with agentd: what its lines said until then, read
/// again as they were read the first time.
fn unfinished(change: &Change, run: &PastRun, state: &State) -> AgentOutcome {
    let mut decoder = None;
    let mut used = None;
    // What cannot be read stays unknown.
    let records = change.open_run(&run.name).ok().and_then(|file| read_records(file).ok());
    for record in records.into_iter().flatten().map_while(Result::ok) {
        match record {
            Record::Header(header) => {
                let request = request_of(&header, run, state);
                decoder = Some(provider(header.agent, header.transport).decoder(&request));
            }
            Record::Raw { line, .. } => {
                if let Some(decoder) = &mut decoder {
                    decoder.line(&line, &mut |_| {});
                }
            }
            // Kept also where there were too many lines for all of them to be kept.
            Record::Event { event: AgentEvent::Usage { usage, cost_usd }, .. } => {
                used = Some((usage, cost_usd));
            }
            Record::Event { .. }
            | Record::Stderr { .. }
            | Record::Files { .. }
            | Record::Note { .. }
            | Record::End { .. } => {}
        }
    }
    // Killed before anything was written about the call: it has not succeeded.
    let nothing = || AgentOutcome {
        failure: Some(Failure::new(FailureKind::Cancelled, "agentd was killed before the call")),
        ..AgentOutcome::default()
    };
    let mut outcome = decoder.map_or_else(nothing, |decoder| decoder.finish(&Exit::default()));
    if let Some((usage, cost_usd)) = used {
        outcome.usage = Some(usage);
        outcome.cost_usd = cost_usd;
    }
    outcome.session_id = outcome.session_id.or_else(|| run.session_id.clone());
    outcome.model = run.model.clone().or(outcome.model);
    outcome
}

/// As much of a request as a decoder wants to know.
fn request_of(header: &RunHeader, run: &PastRun, state: &State) -> AgentRequest {
    // Codex reports the total of a thread, which includes earlier calls.
    let session = match &run.session_id {
        Some(id) if header.agent == AgentKind::Codex && header.transport == Transport::Cli => {
            Session::Resume {
                id: id.clone(),
                index: None,
                thread_usage: Some(step::usage_of_session(state, id)),
                cost_before: None,
            }
        }
        _ => Session::Fresh,
    };
    AgentRequest {
        role: header.role,
        change: header.change.clone(),
        step: header.step.clone(),
        prompt: String::new(),
        project_root: PathBuf::new(),
        private_dir: PathBuf::new(),
        program: String::new(),
        extra_args: Vec::new(),
        extra_env: Vec::new(),
        extra_state: Vec::new(),
        env_names: Vec::new(),
        model: None,
        effort: None,
        session,
        mcp: None,
        surroundings: Surroundings::default(),
        found: FoundInProject::default(),
    }
}

/// Puts calls into the ledger that were made and are not there: agentd was killed before
/// it could. They count as they would have. The caller holds the run lock, so none of them is
/// still running. Also returns the state, if it was written.
pub(crate) fn reconcile(
    agents: &Agents,
    snapshot: &Snapshot,
    now: agentd_core::stamp::Stamp,
) -> Result<(History, Option<State>), DocumentError> {
    let mut history = History::read(snapshot)?;
    if history.lost(snapshot.state()?).is_empty() {
        return Ok((history, None));
    }
    let (project, holder) = (&agents.project, &agents.holder);
    let last = history.runs.last().filter(|run| run.reported_success());
    let last_role = last.and_then(|run| run.step.role());
    let mut question = match last_role {
        Some(role) => asked::take(agents, snapshot.id(), role)?,
        None => None,
    };
    let last = last.map(|run| run.number);
    let ((), state) =
        documents::updated_state(project, snapshot.id(), holder, now, None, |state| {
            for run in history.lost(state) {
                let known = run.end.as_ref().map(|end| end.outcome.clone());
                let outcome = known.unwrap_or_else(|| unfinished(snapshot.change(), run, state));
                let outcome = &outcome;
                let role = run.step.role().unwrap_or(Role::Planner);
                let agent = run.agent.unwrap_or_else(|| agents.config.roles.agent(role));
                let mut call = ledger::entry(&agents.config, &run.step, agent, outcome, None).call;
                if run.end.is_none() || !outcome.is_settled() {
                    ledger::reserve(&mut call, run.estimate_usd);
                }
                call.duration_ms = run.end.as_ref().map_or(0, |end| end.duration_ms);
                call.timestamp = Some(now);
                call.run = Some(run.number);
                let mut asks = false;
                if run.reported_success() {
                    let question = question.take_if(|_| Some(run.number) == last);
                    asks = state.take_question(&mut call, question, now);
                }
                state.record_call(call);
                let done = run.reported_success() && !asks;
                if let Some(effect) = effect_of(&run.step).filter(|_| done) {
                    effect(state, outcome);
                }
            }
            state.llm_calls.sort_by_key(|call| call.run);
            Ok(())
        })?;
    asked::clear(project, snapshot.id())?;
    history.mark(&state);
    Ok((history, Some(state)))
}
