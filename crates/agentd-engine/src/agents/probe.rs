//! A conformance probe: what an agent can do is shown by real turns in a project made for it, and
//! judged by what is on disk, not by what the agent says (G3).
//!
//! What was found out is kept for this program of the agent with these settings, in the user's state
//! directory, and decides which roles it is given.

mod prompts;
mod record;
mod turn;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use agentd_core::agent::{AgentKind, Role};
use agentd_core::error_kind::Kind;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::outcome::FailureKind;
use agentd_core::probe::{CheckName, ProbeCheck, ProbeReport};
use agentd_core::stamp::Stamp;
use agentd_core::text::Line;
use serde_json::json;

use super::step::{Agents, StepError};
use crate::agents::receipts;
use crate::change::Snapshot;
use crate::explain::{ErrorReport, Explain};
use crate::process::{Cancel, CancelReason};
use crate::store::StoreError;
use crate::tools::{self, ActionError, Session, input};
use crate::workflow::clarify::{self, ClarifyError};

pub(crate) use record::objection;
use turn::{Surroundings, Turn};

/// How long an agent gets to end by itself once nobody talks to it any more.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the turn that is to be ended runs before that.
const BEFORE_CANCEL: Duration = Duration::from_millis(1500);
/// How long the end of a turn may take. After five seconds the agent is killed.
const END_LIMIT: Duration = Duration::from_secs(4);
/// About how many requests to the model a probe takes.
pub const REQUESTS: u32 = 15;

/// Why a probe could not be made. That an agent fails is no error but a result.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// It was interrupted.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The project of the probe could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its change could not be begun.
    #[error(transparent)]
    Begin(#[from] ClarifyError),
    /// Its plan could not be written.
    #[error("cannot prepare the project of the probe: {0}")]
    Prepare(#[from] ActionError),
    /// The system refused something.
    #[error("cannot prepare the probe: {0}")]
    System(#[from] std::io::Error),
}

impl Explain for ProbeError {
    fn explain(&self) -> ErrorReport {
        match self {
            Self::Step(error) => error.explain(),
            Self::Store(error) => error.explain(),
            Self::Begin(error) => error.explain(),
            Self::Prepare(_) | Self::System(_) => ErrorReport::of(Kind::Internal, self),
        }
    }
}

/// A probe of one agent.
pub struct Probe<'a> {
    /// What calls need, in a project made for the probe.
    pub agents: &'a mut Agents,
    /// Who is probed.
    pub agent: AgentKind,
    /// Its version, in its own words; none if its program does not say.
    pub version: Option<String>,
    /// The time.
    pub now: &'a dyn Fn() -> Stamp,
    /// Hears which check is made.
    pub on_turn: &'a mut dyn FnMut(&str),
}

impl std::fmt::Debug for Probe<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probe").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl Probe<'_> {
    /// Makes all checks and keeps the result. A check that cannot be made, because an earlier one has
    /// failed, has failed.
    pub fn run(mut self) -> Result<ProbeReport, ProbeError> {
        record::forget(self.agents, self.agent)?;
        let change = self.begin()?;
        let plan = self.plan(&change)?;
        let mut checks = Checks::default();
        let around = Surroundings::look(&self.agents.work_tree);
        let words = prompts::Words::new();

        (self.on_turn)("tools, usage");
        let first = turn::review(&self, &change, &prompts::first(&change, &words), None);
        self.go_on()?;
        let session = self.judge_first(&change, &first, &words, &mut checks)?;
        let version = self.version.take().or_else(|| self.agents.warm.says_it_is(self.agent));
        let mut end = self.end_of(&first);
        let (mut tried, mut written) = (Turn::default(), around.changes());
        // Around the tools, since what they write has a receipt.
        let reviewed = self.snapshot(&change)?.documents.reviews().len();
        if reviewed > usize::from(self.has_review(&change, &words.written)?) {
            written.push("a review in proposal.md".to_owned());
        }

        if let Some(session) = session {
            (self.on_turn)("the same session in another process");
            let again = turn::review(&self, &change, &prompts::second(&change), Some(session));
            self.go_on()?;
            let ok = again.failure.is_none() && self.has_review(&change, &words.remembered)?;
            let why = again.why("it did not know what it was told before");
            checks.add(CheckName::SessionResumed, ok, again.took, why);
            end.add(&self.end_of(&again));

            // By itself, and whatever becomes of the turn: some agents end it when they are refused.
            (self.on_turn)("a forbidden write");
            tried = turn::review(&self, &change, &prompts::forbidden(&change, &words), None);
            self.go_on()?;
            written = around.changes();

            (self.on_turn)("an edit of the working tree");
            let edit = turn::implement(&self, &change, &prompts::edit(&change, &words));
            self.go_on()?;
            let file = around.read(prompts::ALLOWED);
            let ok = edit.failure.is_none() && file.trim() == words.written;
            checks.add(CheckName::EditsFiles, ok, edit.took, edit.why("the file was not written"));
            end.left += edit.left_behind;

            (self.on_turn)("a turn that is ended");
            self.cancelled_turn(&change, &mut checks)?;
            // One that was just told to stop may be killed for it, which the check before says.
            end.left += self.end_of(&Turn::default()).left;
        }
        end.judge(&first, &mut checks);
        written.extend(around.outside());
        if self.plan(&change)? != plan {
            written.push("the plan that it was to review".to_owned());
        }
        let detail = match (written.is_empty(), tried.tried_more) {
            (false, _) => format!("written although it was forbidden: {}", written.join(", ")),
            (true, true) => "tried, and refused".to_owned(),
            (true, false) => "not tried".to_owned(),
        };
        checks.add(CheckName::ForbiddenWriteRefused, written.is_empty(), tried.took, detail);
        let version = version.unwrap_or_else(|| "unknown".to_owned());
        let report = ProbeReport::new(self.agent, version, checks.finish());
        record::keep(self.agents, &report)?;
        Ok(report)
    }

    fn go_on(&self) -> Result<(), ProbeError> {
        match self.agents.cancel.reason() {
            Some(_) => Err(StepError::Interrupted.into()),
            None => Ok(()),
        }
    }

    /// A change with a plan of one document, for the turns to be about.
    fn begin(&self) -> Result<ChangeId, ProbeError> {
        let id = prompts::change_id();
        let (agents, now) = (&*self.agents, (self.now)());
        let what = Some("Try out an agent");
        clarify::begin(&agents.project, &id, what, None, &agents.holder, now)?;
        let session = Session {
            project: &agents.project,
            actor: Line::new("agentd"),
            holder: agents.holder.clone(),
            now,
            names_change: true,
            step: None,
            receipt: None,
            on_wait: &|_| ControlFlow::Continue(()),
        };
        let proposal = json!({
            "change_id": id,
            "summary": "Try out an agent.",
            "why": "To see what it can do before it is given a role.",
            "what_changes": ["Add a file"],
            "impact": { "scope": "patch", "affected_specs": [], "affected_files": 1, "new_files": 1 },
        });
        let arguments = proposal.as_object().cloned().unwrap_or_default();
        tools::create_proposal(&session, input::read(arguments)?)?;
        Ok(id)
    }

    fn snapshot(&self, change: &ChangeId) -> Result<Snapshot, ProbeError> {
        Ok(self.agents.project.change(change)?.snapshot_without_state()?)
    }

    fn plan(&self, change: &ChangeId) -> Result<Digest, ProbeError> {
        Ok(self.snapshot(change)?.documents.digest())
    }

    /// Whether the last call has written a review with this word, through the tool.
    fn has_review(&self, change: &ChangeId, word: &str) -> Result<bool, ProbeError> {
        let snapshot = self.snapshot(change)?;
        let change = self.agents.project.change(change)?;
        let Some(review) = snapshot.documents.reviews().last() else { return Ok(false) };
        let project = &self.agents.project;
        let wrote = receipts::wrote(project, &change, Role::Challenger, &review.hash())?;
        Ok(wrote && review.summary.to_string().contains(word))
    }

    /// Judges the first turn. Returns the session to resume, if there is one worth resuming.
    fn judge_first(
        &self,
        change: &ChangeId,
        turn: &Turn,
        words: &prompts::Words,
        checks: &mut Checks,
    ) -> Result<Option<String>, ProbeError> {
        let answers = turn.failure.is_none();
        checks.add(CheckName::Answers, answers, turn.took, turn.why(""));
        let written = self.has_review(change, &words.written)?;
        // A call that is claimed to have worked, and of which nothing is there, was none.
        let sees = written || turn.own_call.is_some() && !turn.claims_success;
        let took = turn.own_call.unwrap_or(turn.took);
        checks.add(CheckName::SeesTools, sees, took, turn.why("it called none of them"));
        let why = turn.why("no review of this call is in proposal.md");
        checks.add(CheckName::WritesThroughTools, written, turn.took, why);
        let usage = turn.usage.is_some_and(|usage| usage.input > 0 && usage.output > 0);
        checks.add(CheckName::UsageReported, usage, turn.took, turn.why("no tokens were reported"));
        Ok(turn.session.clone().filter(|_| answers))
    }

    /// Ends the process of a turn, and says how that went.
    fn end_of(&self, turn: &Turn) -> End {
        let began = Instant::now();
        let ended = self.agents.warm.close_all(PATIENCE);
        End {
            took: began.elapsed(),
            left: turn.left_behind + ended.iter().map(|end| end.stragglers).sum::<u32>(),
            killed: ended.iter().any(|end| end.signal == Some(9)),
        }
    }

    /// A turn that would take long is ended after a moment.
    fn cancelled_turn(&mut self, change: &ChangeId, checks: &mut Checks) -> Result<(), ProbeError> {
        let cancel = Cancel::new()?;
        let users = std::mem::replace(&mut self.agents.cancel, cancel.clone());
        let (opened, is_open) = std::sync::mpsc::channel();
        let prompt = prompts::long(change);
        let (turn, told) = std::thread::scope(|scope| {
            let (users, cancel) = (&users, &cancel);
            let waiting = scope.spawn(move || {
                // Ends without a word if the turn does.
                let () = is_open.recv().ok()?;
                users.sleep(BEFORE_CANCEL);
                cancel.cancel(CancelReason::Interrupt);
                Some(Instant::now())
            });
            let turn = turn::long(self, change, &prompt, opened);
            let ended = Instant::now();
            let told = waiting.join().ok().flatten();
            // It may have ended before it was told to.
            let told = told.filter(|told| *told < ended);
            (turn, told.map(|told| ended.saturating_duration_since(told)))
        });
        self.agents.cancel = users;
        self.go_on()?;
        let Some(took) = told else {
            let why = turn.why("its turn was over before it was told to end it");
            checks.add(CheckName::EndsWhenTold, false, turn.took, why);
            return Ok(());
        };
        let cancelled = turn
            .failure
            .as_ref()
            .is_none_or(|(kind, _)| matches!(kind, Some(FailureKind::Cancelled) | None));
        let ok = cancelled && turn.session.is_some() && took < END_LIMIT;
        let detail = if cancelled { "it did not end, and was killed" } else { "" };
        let detail = if cancelled { detail.to_owned() } else { turn.why("") };
        checks.add(CheckName::EndsWhenTold, ok, took, detail);
        Ok(())
    }
}

/// How the processes of an agent ended.
struct End {
    took: Duration,
    /// How many processes were left behind.
    left: u32,
    killed: bool,
}

impl End {
    fn add(&mut self, other: &Self) {
        self.left += other.left;
        self.killed |= other.killed;
    }

    fn judge(&self, first: &Turn, checks: &mut Checks) {
        let detail = match (self.left, self.killed) {
            (0, false) => String::new(),
            (0, true) => "it had to be killed".to_owned(),
            (left, _) => format!("processes that it left behind: {left}"),
        };
        let ok = first.failure.is_none() && self.left == 0 && !self.killed;
        checks.add(CheckName::LeavesNoProcess, ok, self.took, first.why(&detail));
    }
}

/// The checks that were made.
#[derive(Debug, Default)]
struct Checks(Vec<ProbeCheck>);

impl Checks {
    /// `why` is for a check that has failed, or for what is worth knowing of the forbidden write.
    fn add(&mut self, name: CheckName, ok: bool, took: Duration, why: String) {
        let says = !ok || name == CheckName::ForbiddenWriteRefused;
        let detail = if says { why } else { String::new() };
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.0.push(ProbeCheck { name, ok, ms, detail });
    }

    /// All checks in their order; those that were not made have failed.
    fn finish(mut self) -> Vec<ProbeCheck> {
        for name in CheckName::ALL {
            if !self.0.iter().any(|check| check.name == name) {
                let detail = "not tried, since it did not answer before".to_owned();
                self.0.push(ProbeCheck { name, ok: false, ms: 0, detail });
            }
        }
        self.0.sort_by_key(|check| check.name);
        self.0
    }
}
