//! Workflows: the steps of a plan in their order, resumable at every one of them.
//!
//! The phase picks the stage, and what is on the disk picks the step inside it (C19). No
//! workflow remembers anything but in the files of the change: the documents, STATE.yaml
//! and the run files. So a workflow that is killed anywhere and started again continues
//! where it stood, and a step that is done and still valid is not paid for twice.

pub mod begin;
pub(crate) mod bug_test;
mod challenge;
pub mod clarify;
mod code_review;
mod commits;
pub mod decisions;
pub mod deletion;
mod error;
mod format;
mod generate;
mod history;
mod implement;
mod implementation;
mod plan;
mod prompts;
mod provenance;
mod reading;
pub(crate) mod relocation;
pub mod rename;
mod report;
mod reproposal;
pub(crate) mod revision;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::check;
use agentd_core::command_line::CommandLine;
use agentd_core::config::GitCommit;
use agentd_core::diagnostic::Counts;
use agentd_core::document::issue_fate::{EarlierIssue, earlier, fates};
use agentd_core::document::review::CodeVerdict;
use agentd_core::document::review_block::{Issue, PlanVerdict};
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::next_step::NextStep;
use agentd_core::outcome::AgentOutcome;
use agentd_core::phase::Phase;
use agentd_core::stamp::Stamp;
use agentd_core::state::State;
use agentd_core::step_name::StepName;
use agentd_core::text::Line;

use strum::IntoStaticStr;

use crate::agents::step::{self, Agents, Artifact, Step, StepReport};
use crate::change::{Snapshot, position};
use crate::insight::overlap::{self, OverlapKind};
use crate::store::{Bytes, RunLock};

pub use challenge::challenge;
pub use code_review::{fix, review};
pub use commits::commit_archived;
pub use error::WorkflowError;
pub use generate::propose;
pub use implement::{TaskSelection, implement};
pub use implementation::implementation;
pub use plan::{LostSession, LostSessionQuestion, Mode, Planned, plan};
pub use report::{Progress, Watch};
pub use reproposal::{PlannerSession, repropose};

/// What an approval of a plan by the built-in agent is worth.
const PLAN_PASSES_RULES: &str = "passes the rules; nobody has judged the idea";

/// How many overlaps with other changes are listed one by one.
const MOST_OVERLAPS: usize = 5;

/// The warning where a session is gone and its work does not depend on it.
const LOST: &str = "the session to resume is gone: a fresh one is begun";

/// A workflow on one change, under its run lock.
pub struct Workflow<'w> {
    /// What steps need of the world.
    pub agents: &'w Agents,
    /// The change.
    pub change: ChangeId,
    /// The time.
    pub now: &'w dyn Fn() -> Stamp,
    /// Who watches.
    pub watch: &'w mut Watch<'w>,
    /// Nobody else runs this change.
    pub lock: &'w RunLock,
    /// The files as they were when a reviewer was called.
    reviewed_tree: Option<Digest>,
    /// The files that the user had changed and not committed before an agent was called.
    users_files: Option<BTreeSet<Bytes>>,
    /// The change as it was read last; none where somebody may have written to it since.
    kept: RefCell<Option<Snapshot>>,
    /// The agents that were called, by the role that they played.
    played: BTreeMap<Role, AgentKind>,
}

impl std::fmt::Debug for Workflow<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workflow").field("change", &self.change).finish_non_exhaustive()
    }
}

/// What a workflow or a step of it has done.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was done.
    pub action: Action,
    /// Where the change stands now.
    pub phase: Phase,
    /// The verdict on the plan as it is, or on its code, where there is one.
    pub verdict: Option<Verdict>,
    /// The rounds of revision so far.
    pub iteration: u32,
    /// What the change has cost so far.
    pub cost_usd: f64,
    /// The issues of that verdict.
    pub issues: Vec<Issue>,
    /// The summary of that verdict.
    pub summary: String,
    /// Who gave that verdict.
    pub reviewer: Line,
    /// What became of the issues of earlier rounds.
    pub previous: Vec<EarlierIssue>,
    /// The commands that take the change on from here.
    pub next: Vec<NextStep>,
}

impl Report {
    /// How many issues there are of each severity.
    pub fn counts(&self) -> Counts {
        Counts::of(self.issues.iter().map(|issue| issue.severity))
    }

    /// What the approval is worth if only rules were applied.
    pub fn rules_only(&self) -> Option<&'static str> {
        self.verdict.and_then(|verdict| verdict.rules_only(&self.reviewer))
    }

    /// Whether the command that did it has failed (C10). Under `strict`, a verdict that waits
    /// for a person is a failure too.
    pub fn failed(&self, mode: Mode, strict: bool) -> bool {
        let waiting_fails = mode == Mode::Automatic || strict;
        match (self.action, self.verdict) {
            (Action::Rejected | Action::StillNeedsRevision | Action::StillNeedsFix, _) => true,
            (Action::Challenged, Some(Verdict::Plan(PlanVerdict::Rejected))) => true,
            (
                Action::Challenged | Action::WaitingForDecision,
                Some(Verdict::Plan(PlanVerdict::NeedsRevision)),
            ) => waiting_fails,
            (Action::Reviewed, Some(Verdict::Code(CodeVerdict::MajorIssues))) => true,
            (Action::Reviewed, Some(Verdict::Code(CodeVerdict::NeedsFix))) => waiting_fails,
            _ => false,
        }
    }
}

/// What was said of a plan, or of its implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Of the plan.
    Plan(PlanVerdict),
    /// Of the code.
    Code(CodeVerdict),
}

impl Verdict {
    /// The label in documents and in `--json`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Plan(verdict) => verdict.label(),
            Self::Code(verdict) => verdict.label(),
        }
    }

    /// What the approval of a reviewer is worth that has only applied rules: it must not pass
    /// for a judgment (T2). Nothing for other reviewers and verdicts.
    pub fn rules_only(self, reviewer: &Line) -> Option<&'static str> {
        if reviewer.as_str() != AgentKind::Builtin.name() {
            return None;
        }
        match self {
            Self::Plan(PlanVerdict::Approved) => Some(PLAN_PASSES_RULES),
            Self::Code(CodeVerdict::Approved) => Some("passes the rules; nobody has read the code"),
            Self::Plan(PlanVerdict::NeedsRevision | PlanVerdict::Rejected)
            | Self::Code(CodeVerdict::NeedsFix | CodeVerdict::MajorIssues) => None,
        }
    }
}

/// What a workflow has done last, for `--json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    /// The documents of the plan were written.
    Proposed,
    /// The plan was challenged.
    Challenged,
    /// The plan was revised after a review.
    Reproposed,
    /// The plan was taken with its minor issues (C11).
    AcceptedMinor,
    /// A person has to decide; nothing was done.
    WaitingForDecision,
    /// The rounds are used up, or bring nothing more; the plan still needs revision.
    StillNeedsRevision,
    /// The plan is approved already.
    AlreadyChallenged,
    /// The plan was rejected, and has not changed since.
    Rejected,
    /// The change is beyond planning.
    BeyondPlanning,
    /// Tasks were done.
    Implemented,
    /// The code was reviewed.
    Reviewed,
    /// What a review found was fixed.
    Fixed,
    /// The rounds are used up, or a person has to look; the code is not approved.
    StillNeedsFix,
}

impl Action {
    /// The name in `--json`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What the success of a step changes in the state, besides the ledger.
pub(crate) fn effect_of(step: &StepName) -> Option<fn(&mut State, &AgentOutcome)> {
    match step {
        // The session that later steps resume (C5). Those that resume it may have had to
        // begin a new one (C31).
        StepName::ProposalGen | StepName::PlanGen | StepName::PlanReview | StepName::FormatFix => {
            Some(planner_session)
        }
        StepName::Reproposal => Some(|state, outcome| {
            planner_session(state, outcome);
            state.iteration = state.iteration.saturating_add(1);
        }),
        _ => None,
    }
}

fn planner_session(state: &mut State, outcome: &AgentOutcome) {
    if outcome.session_id.is_some() {
        state.session_id.clone_from(&outcome.session_id);
    }
}

/// A step to be run, in the words of a workflow.
struct Call {
    step: StepName,
    role: Role,
    label: String,
    prompt: String,
    resume: Option<String>,
    artifact: Artifact,
}

impl<'w> Workflow<'w> {
    /// A workflow on a change, of which nothing is known yet.
    pub fn new(
        agents: &'w Agents,
        change: ChangeId,
        now: &'w dyn Fn() -> Stamp,
        watch: &'w mut Watch<'w>,
        lock: &'w RunLock,
    ) -> Self {
        let (kept, played) = (RefCell::new(None), BTreeMap::new());
        let (reviewed_tree, users_files) = (None, None);
        Self { agents, change, now, watch, lock, reviewed_tree, users_files, kept, played }
    }
}

impl Workflow<'_> {
    /// The agents that were called so far, by the role that they played (T2).
    pub fn played(&self) -> &BTreeMap<Role, AgentKind> {
        &self.played
    }

    fn note(&mut self, text: &str) {
        (self.watch)(Progress::Note(text));
    }

    fn warn(&mut self, text: &str) {
        (self.watch)(Progress::Warning(text));
    }

    /// Warns of other open changes that touch the same: now it is cheap to talk about it.
    fn warn_of_overlaps(&mut self) -> Result<(), WorkflowError> {
        let mut all = overlap::overlaps(&self.agents.project, Some(&self.documents()?))?;
        // Scenarios go with their requirements.
        all.retain(|overlap| overlap.kind != OverlapKind::Scenario);
        let shown = all.iter().take(MOST_OVERLAPS).map(|overlap| {
            let others = overlap.changes.iter().filter(|touch| touch.change_id != self.change);
            let others =
                others.map(|touch| format!("`{}` ({})", touch.change_id, touch.how.name()));
            let others: Vec<String> = others.take(MOST_OVERLAPS).collect();
            format!("{} is also touched by {}", overlap.what, others.join(", "))
        });
        for warning in shown.collect::<Vec<_>>() {
            self.warn(&warning);
        }
        if let Some(more @ 1..) = all.len().checked_sub(MOST_OVERLAPS) {
            let id = &self.change;
            let all = CommandLine::agentd(["overlap", id.as_str()]);
            self.warn(&format!("{more} more are shared with other changes: {all}"));
        }
        Ok(())
    }

    /// Runs a step and reports it; `summary` says in a few words what came of it.
    fn run(
        &mut self,
        call: Call,
        summary: impl FnOnce(&StepReport) -> String,
    ) -> Result<StepReport, WorkflowError> {
        let summary = |report: &StepReport, (): &()| summary(report);
        Ok(self.run_checked(call, |_, _| Ok(()), summary)?.0)
    }

    /// Runs a step, does with `check` what is to be done before it counts, and reports both.
    fn run_checked<T>(
        &mut self,
        call: Call,
        check: impl FnOnce(&Self, &StepReport) -> Result<T, WorkflowError>,
        summary: impl FnOnce(&StepReport, &T) -> String,
    ) -> Result<(StepReport, T), WorkflowError> {
        let (name, label, role) = (call.step, call.label, call.role);
        let agent = self.agents.config.roles.agent(role);
        let resumed = call.resume.is_some();
        (self.watch)(Progress::Started { step: &name, label: &label, agent, resumed });
        let step = Step {
            change: self.change.clone(),
            role,
            name: name.clone(),
            prompt: call.prompt,
            resume: call.resume,
            artifact: call.artifact,
            on_success: effect_of(&name),
        };
        let started = Instant::now();
        let result = self.call(&step).and_then(|report| {
            let checked = check(self, &report)?;
            Ok((report, checked))
        });
        match &result {
            Ok((report, checked)) => (self.watch)(Progress::Done {
                step: &name,
                label: &label,
                summary: &summary(report, checked),
                usage: report.outcome.usage.unwrap_or_default(),
                cost_usd: report.cost_usd,
                duration: report.duration,
            }),
            Err(error) => (self.watch)(Progress::Failed {
                step: &name,
                label: &label,
                message: &error.to_string(),
                duration: started.elapsed(),
            }),
        }
        if result.is_ok() && self.commits_each_step(role) {
            commits::commit_documents(self, &format!("{}: {label}", self.change))?;
        }
        result
    }

    /// Calls the agent of a step; in a fresh session if the one to resume is gone. Only what a
    /// reproposal asks for needs to know the plan, and has a prompt of its own for that case.
    fn call(&mut self, step: &Step) -> Result<StepReport, WorkflowError> {
        match self.call_once(step) {
            Err(error)
                if step.resume.is_some()
                    && step.name != StepName::Reproposal
                    && error.is_lost_session() =>
            {
                self.warn(LOST);
                self.call_once(&Step { resume: None, ..step.clone() })
            }
            called => called,
        }
    }

    /// Calls the agent of a step. What it may have changed is read again.
    fn call_once(&mut self, step: &Step) -> Result<StepReport, WorkflowError> {
        let edits = step.role.edits_the_work_tree();
        if edits {
            commits::before_call(self)?;
        }
        let before = self.snapshot()?;
        self.forget();
        let watch = &mut *self.watch;
        let mut observer =
            |event: &agentd_core::event::AgentEvent<'_>| watch(Progress::Agent(event));
        let report = step::run_on(self.agents, step, &before, self.now, &mut observer);
        if edits {
            commits::after_call(self)?;
        }
        let report = report?;
        self.played.insert(step.role, report.agent);
        self.keep(report.after.clone());
        Ok(report)
    }

    /// Whether the documents are committed after each step. An implementer's are committed with
    /// the work.
    fn commits_each_step(&self, role: Role) -> bool {
        self.agents.config.git.commit == GitCommit::Step && !role.edits_the_work_tree()
    }

    /// Commits the documents, where the project wants that, and reports what was done.
    fn report(&mut self, action: Action) -> Result<Report, WorkflowError> {
        let message = format!("{}: {}", self.change, commits::subject(action));
        commits::commit_documents(self, &message)?;
        self.standing(action)
    }

    /// The commands that take the change on from here (W6).
    fn next_steps(&self) -> Result<Vec<NextStep>, WorkflowError> {
        let (snapshot, project) = (self.snapshot()?, &self.agents.project);
        let reports = snapshot.findings(project, &self.agents.config.extras());
        Ok(position::course(project, &snapshot, check::counts(&reports).high)?.next)
    }

    /// What is known of the plan as it stands, or of its code once that is begun.
    fn standing(&self, action: Action) -> Result<Report, WorkflowError> {
        let state = self.state()?;
        let mut report = Report {
            action,
            phase: state.phase,
            verdict: None,
            iteration: state.iteration,
            cost_usd: state.total_cost,
            issues: Vec::new(),
            summary: String::new(),
            reviewer: Line::default(),
            previous: Vec::new(),
            next: self.next_steps()?,
        };
        let begun = matches!(state.phase, Phase::Implementing | Phase::Complete | Phase::Archived);
        if begun {
            report.iteration = state.code_review.as_ref().map_or(0, |review| review.iteration);
            if let Some(review) = code_review::taken_review(self, &state)? {
                report.verdict = review.verdict.map(Verdict::Code);
                report.summary = review.summary.to_string();
                report.reviewer = review.reviewer;
                report.previous = earlier(&fates(&code_review::rounds(self)?));
                report.issues = review.issues;
            }
        } else if let Some(review) = self.documents()?.counted_review(&state) {
            report.verdict = Some(Verdict::Plan(review.verdict));
            report.summary = review.summary.to_string();
            report.reviewer = review.reviewer.clone();
            report.previous = earlier(&fates(self.documents()?.reviews()));
            report.issues.clone_from(&review.issues);
        }
        Ok(report)
    }
}
