//! Commands that go on by themselves after a person has asked for them in the viewer: what can be
//! started like that, what came of it, and how it is stopped.
//!
//! The list of commands is fixed and none of them takes a free argument, so that nothing that a page
//! sends becomes part of a command line. They are ordinary processes of agentd without a terminal:
//! the run lock decides who works on a change, as it does between two terminals.

mod stop;

use std::ffi::OsString;
use std::path::Path;

use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, BackgroundFile};
use agentd_core::next_step::{Command, NextStep};
use agentd_core::state::Placement;
use agentd_core::text::tail;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::explain::{ErrorReport, Explain};
use crate::process::{ProcessId, detached};
use crate::store::{LockName, LockState, Project, ProjectDir, StoreError, lock_state};

pub use stop::{CAN_STOP, StopError, stop};

/// How much of what a command has printed is read.
const MOST_OUTPUT: u64 = 1 << 20;

/// How much of its last words is kept for a page.
const LAST_WORDS: usize = 4 << 10;

/// What can be started.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    EnumString,
    IntoStaticStr,
    VariantArray,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum BackgroundCommand {
    /// The planner proposes questions.
    Clarify,
    /// The plan is written, judged or revised.
    Plan,
    /// The same without questions.
    PlanWithoutQuestions,
    /// The same, repaired and revised without asking.
    PlanAuto,
    /// The same, although it may cost more than is spent without asking.
    PlanAtThisCost,
    /// The plan is judged.
    Challenge,
    /// The plan is revised.
    Reproposal,
    /// The plan is revised in a new session.
    ReproposalFresh,
    /// The plan is implemented.
    Impl,
    /// The code is reviewed.
    Review,
    /// The code is fixed.
    Fix,
    /// The specs are merged.
    Archive,
}

impl BackgroundCommand {
    /// The name in addresses and records, such as `plan-auto`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What it does, as the words on a button.
    pub fn label(self) -> &'static str {
        match self {
            Self::Clarify => "Propose questions",
            Self::Plan => "Continue the plan",
            Self::PlanWithoutQuestions => "Plan without questions",
            Self::PlanAuto => "Repair and plan without asking",
            Self::PlanAtThisCost => "Plan at this cost",
            Self::Challenge => "Challenge the plan",
            Self::Reproposal => "Revise the plan",
            Self::ReproposalFresh => "Revise the plan in a new session",
            Self::Impl => "Implement",
            Self::Review => "Review the code",
            Self::Fix => "Fix the code",
            Self::Archive => "Archive",
        }
    }

    /// The command for a terminal.
    pub fn step(self, change: &ChangeId) -> NextStep {
        match self {
            Self::Clarify => Command::Clarify.on(change),
            Self::Plan => Command::Plan.on(change),
            Self::PlanWithoutQuestions => Command::Plan.on(change).arg("--skip-clarify"),
            Self::PlanAuto => Command::Plan.on(change).arg("--auto"),
            Self::PlanAtThisCost => Command::Plan.on(change).arg("--yes"),
            Self::Challenge => Command::Challenge.on(change),
            Self::Reproposal => Command::Reproposal.on(change),
            Self::ReproposalFresh => Command::Reproposal.on(change).arg("--fresh"),
            Self::Impl => Command::Impl.on(change),
            Self::Review => Command::Review.on(change),
            Self::Fix => Command::Fix.on(change),
            Self::Archive => Command::Archive.on(change),
        }
    }

    /// The command that does what comes next, if it can be started like this.
    pub fn of(next: &NextStep, change: &ChangeId) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|command| command.step(change) == *next)
    }

    /// Whether it takes a choice of where to work.
    pub fn takes_placement(self) -> bool {
        matches!(
            self,
            Self::Plan | Self::PlanWithoutQuestions | Self::PlanAuto | Self::PlanAtThisCost
        )
    }

    fn args(self, change: &ChangeId, placement: Option<Placement>) -> Vec<OsString> {
        let step = self.step(change);
        let mut args: Vec<OsString> = step.words().map(OsString::from).collect();
        if let Some(placement) = placement.filter(|_| self.takes_placement()) {
            args.extend(["--git".into(), placement.name().into()]);
        }
        args.push("--json".into());
        args
    }
}

/// What was started last for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundRun {
    /// The command.
    pub command: BackgroundCommand,
    /// When it began.
    pub started_at: Timestamp,
    /// When it last said something.
    pub ended_at: Option<Timestamp>,
    /// Where the change is to be worked on, if the person said that with it.
    pub placement: Option<Placement>,
    /// What came of it.
    pub outcome: BackgroundOutcome,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackgroundOutcome {
    /// It is still running.
    Running,
    /// It has ended, and done what it does.
    Done,
    /// It has ended with an error.
    Failed(BackgroundFailure),
}

/// Why a command has failed, in the words of its `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct BackgroundFailure {
    /// The stable name of the error; empty if it was killed.
    #[serde(default)]
    pub kind: String,
    /// What went wrong.
    #[serde(default)]
    pub message: String,
    /// Why, where more is known.
    #[serde(default)]
    pub cause: Option<String>,
    /// What to do.
    #[serde(default)]
    pub hints: Vec<String>,
}

/// What is noted about a command that was started.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Note {
    command: BackgroundCommand,
    process: ProcessId,
    started_at: Timestamp,
    /// Kept also for a command that does not take it: it is for the one after the questions.
    #[serde(default)]
    placement: Option<Placement>,
}

#[derive(Debug, Deserialize)]
struct Printed {
    #[serde(default)]
    error: Option<BackgroundFailure>,
}

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// One is running already.
    #[error("`{change}` is being worked on already")]
    Running {
        /// The change.
        change: ChangeId,
    },
    /// Nothing can be noted about it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The program cannot be started.
    #[error("agentd cannot be started: {0}")]
    Start(#[from] std::io::Error),
}

impl Explain for StartError {
    fn explain(&self) -> ErrorReport {
        match self {
            Self::Running { .. } => ErrorReport::of(Kind::Locked, self),
            Self::Store(error) => error.explain(),
            Self::Start(_) => ErrorReport::of(Kind::Internal, self),
        }
    }
}

/// Starts a command for a change in its project, by the program at this path. The caller has checked
/// that it is one of those that come next.
pub fn start(
    project: &Project,
    change: &ChangeId,
    command: BackgroundCommand,
    placement: Option<Placement>,
    agentd: &Path,
) -> Result<(), StartError> {
    if last(project, change)?.is_some_and(|run| run.outcome == BackgroundOutcome::Running) {
        return Err(StartError::Running { change: change.clone() });
    }
    let state = project.state_dir()?;
    state.create_dir_all(&layout::background_dir())?;
    let file = |kind| {
        let path = layout::background(change, kind);
        match state.remove_file(&path) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        state.create_append(&path)
    };
    let (output, errors) = (file(BackgroundFile::Output)?, file(BackgroundFile::Errors)?);
    let started_at = Timestamp::now();
    let args = command.args(change, placement);
    let process = detached::start(agentd, &args, project.root(), output, errors)?;
    let note =
        serde_json::to_vec(&Note { command, process, started_at, placement }).unwrap_or_default();
    Ok(state.write_atomic(&layout::background(change, BackgroundFile::Note), &note)?)
}

/// What was started last for a change, if anything was.
pub fn last(project: &Project, change: &ChangeId) -> Result<Option<BackgroundRun>, StoreError> {
    let Some(state) = project.state_dir_if_there()? else { return Ok(None) };
    let read = |kind| match state.read_capped(&layout::background(change, kind), MOST_OUTPUT) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    };
    let note = read(BackgroundFile::Note)?;
    let Some(note) = note.and_then(|bytes| serde_json::from_slice::<Note>(&bytes).ok()) else {
        return Ok(None);
    };
    // Asked first: it may end meanwhile, and then it has printed all. Where the system says nothing
    // about processes, the lock does.
    let lock = lock_state(project.home_of(change).dir(), &LockName::Run(change.clone()));
    let is_alive = note.process.is_alive() || matches!(lock, Ok(LockState::Held(_)));
    let output = read(BackgroundFile::Output)?.unwrap_or_default();
    let outcome = match serde_json::from_slice::<Printed>(&output) {
        Ok(Printed { error: None }) => BackgroundOutcome::Done,
        Ok(Printed { error: Some(failure) }) => BackgroundOutcome::Failed(failure),
        Err(_) if is_alive => BackgroundOutcome::Running,
        Err(_) => {
            let errors = read(BackgroundFile::Errors).ok().flatten().unwrap_or_default();
            let errors = String::from_utf8_lossy(&errors).into_owned();
            let message = "it ended without a result".to_owned();
            let cause =
                Some(tail(errors.trim(), LAST_WORDS).to_owned()).filter(|it| !it.is_empty());
            BackgroundOutcome::Failed(BackgroundFailure { message, cause, ..Default::default() })
        }
    };
    let ended_at = last_word(&state, change);
    let Note { command, started_at, placement, .. } = note;
    Ok(Some(BackgroundRun { command, started_at, ended_at, placement, outcome }))
}

/// When a command last wrote something.
fn last_word(state: &ProjectDir, change: &ChangeId) -> Option<Timestamp> {
    let at = |kind| {
        let (file, _) = state.open_file(&layout::background(change, kind)).ok()?;
        Timestamp::try_from(file.metadata().ok()?.modified().ok()?).ok()
    };
    [BackgroundFile::Output, BackgroundFile::Errors].into_iter().filter_map(at).max()
}
