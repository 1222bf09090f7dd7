//! Workflows: the steps of a plan in their order, resumable at every one of them.
//!
//! The phase picks the stage, and what is on the disk picks the step inside it (C19). No
//! workflow remembers anything but in the files of the change: the documents, STATE.yaml
//! and the run files. So a workflow that is killed anywhere and started again continues
//! where it stood, and a step that is done and still valid is not paid for twice.

mod asking;
pub mod background;
pub mod begin;
pub(crate) mod bug_test;
mod challenge;
pub mod clarify;
mod code_review;
mod commits;
pub mod decisions;
pub mod deletion;
mod done;
mod error;
mod format;
mod generate;
mod history;
mod implement;
mod implementation;
pub mod open_questions;
mod outlook;
mod plan;
mod players;
mod prompts;
mod provenance;
mod reading;
pub(crate) mod relocation;
pub mod rename;
mod report;
mod reproposal;
pub(crate) mod revision;
mod single_step;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use agentd_core::agent::{AgentKind, Role, Transport};
use agentd_core::check;
use agentd_core::command_line::CommandLine;
use agentd_core::config::GitCommit;
use agentd_core::document::issue_fate::{earlier, fates};
use agentd_core::error_kind::Kind;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::outcome::AgentOutcome;
use agentd_core::phase::Phase;
use agentd_core::stamp::Stamp;
use agentd_core::standing::Course;
use agentd_core::state::{SeenFile, State};
use agentd_core::step_name::StepName;
use agentd_core::text::Line;

use crate::agents::step::{self, Agents, Artifact, Step, StepReport};
use crate::change::{Snapshot, position};
use crate::explain::Explain as _;
use crate::insight::overlap::{self, OverlapKind};
use crate::store::{Bytes, RunLock};
use asking::Prompted;
use history::Rounds;

pub use challenge::challenge;
pub use code_review::{fix, review};
pub use commits::{commit_archived, commit_rest};
pub use done::{Action, Report, Verdict};
pub use error::WorkflowError;
pub use generate::propose;
pub use implement::{TaskSelection, implement};
pub use implementation::implementation;
pub use outlook::Outlook;
pub use plan::{LostSession, LostSessionQuestion, Mode, Planned, plan};
pub use provenance::NotIndependent;
use report::{Found, StepSummary};
pub use report::{Progress, Watch};
pub use reproposal::{PlannerSession, repropose};
pub use single_step::{Coming, ComingStep, StepKind, Stepping, Until, coming, step as single_step};

/// What an approval of a plan by the built-in agent is worth.
const PLAN_PASSES_RULES: &str = "passes the rules; nobody has judged the idea";

/// How many overlaps with other changes are listed one by one.
const MOST_OVERLAPS: usize = 5;

/// The warning where a session is gone and its work does not depend on it.
const LOST: &str = "the session to resume is gone: a fresh one is begun";

/// The warning where a session cannot be resumed by the agent that plays the role now.
const OTHERS: &str = "the session to resume is one of another agent: a fresh one is begun";

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
    /// The agents that have dropped out.
    out: BTreeSet<AgentKind>,
    /// The agents whose output shows what agentd's tools have written.
    show_writes: BTreeSet<AgentKind>,
    /// Whether the context of the planner was written for this plan.
    context_is_new: bool,
    /// Whether the tests were run.
    tested: bool,
    /// The files that were changed before the test for a bug was written.
    changed_before: Vec<SeenFile>,
    /// How many steps were begun.
    begun: usize,
    /// Whether what a review found was shown.
    showed_findings: bool,
}

impl std::fmt::Debug for Workflow<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workflow").field("change", &self.change).finish_non_exhaustive()
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
        let (out, show_writes) = (BTreeSet::new(), BTreeSet::new());
        let (context_is_new, tested, changed_before) = (false, false, Vec::new());
        let (begun, showed_findings) = (0, false);
        Self {
            agents,
            change,
            now,
            watch,
            lock,
            reviewed_tree,
            users_files,
            kept,
            played,
            out,
            show_writes,
            context_is_new,
            tested,
            changed_before,
            begun,
            showed_findings,
        }
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

    /// Shows what a review found.
    fn show_found(&mut self, found: Option<Found>) {
        let Some(Found { summary, issues }) = found else { return };
        self.showed_findings = true;
        (self.watch)(Progress::Findings { summary: &summary, issues: &issues });
    }

    /// Shows what is about to be worked on, if an earlier command has found it: nobody is asked, but
    /// somebody may watch.
    fn show_unless_shown(&mut self, found: Option<Found>) {
        if !self.showed_findings {
            self.show_found(found);
        }
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
    fn run<S: Into<StepSummary>>(
        &mut self,
        call: Call,
        summary: impl FnOnce(&StepReport) -> S,
    ) -> Result<StepReport, WorkflowError> {
        let summary = |report: &StepReport, (): &()| summary(report);
        Ok(self.run_checked(call, |_, _| Ok(()), summary)?.0)
    }

    /// Runs a step, does with `check` what is to be done before it counts, and reports both.
    fn run_checked<T, S: Into<StepSummary>>(
        &mut self,
        call: Call,
        check: impl FnOnce(&Self, &StepReport) -> Result<T, WorkflowError>,
        summary: impl FnOnce(&StepReport, &T) -> S,
    ) -> Result<(StepReport, T), WorkflowError> {
        let (name, label, role) = (call.step, call.label, call.role);
        self.unanswered()?;
        let agent = self.player(role);
        let resume = call.resume.filter(|session| self.is_own_session(role, session));
        let Prompted { prompt, fresh, resume } =
            self.with_answer(&name, role, call.prompt, resume)?;
        let resumed = resume.is_some();
        self.begun += 1;
        let (config, number) = (&self.agents.config, self.begun);
        let (documents, state) = (self.documents()?, self.state()?);
        let outlook = outlook::outlook(&documents, &state, config, &name, agent, number);
        let started =
            Progress::Started { step: &name, label: &label, agent, resumed, outlook: &outlook };
        (self.watch)(started);
        let mut step = Step {
            change: self.change.clone(),
            role,
            agent,
            name: name.clone(),
            prompt,
            resume,
            artifact: call.artifact,
            on_success: effect_of(&name),
        };
        let started = Instant::now();
        let result = self.call_in_turn(&mut step, &fresh).and_then(|report| {
            let checked = check(self, &report)?;
            Ok((report, checked))
        });
        match &result {
            Ok((report, checked)) => {
                let StepSummary { text, verdict, found } = if report.asked {
                    "asks you something".to_owned().into()
                } else {
                    summary(report, checked).into()
                };
                (self.watch)(Progress::Done {
                    step: &name,
                    label: &label,
                    summary: &text,
                    verdict,
                    usage: report.outcome.usage.unwrap_or_default(),
                    cost_usd: report.cost_usd,
                    duration: report.duration,
                });
                self.show_found(found);
            }
            Err(error) => {
                // Ctrl-C is not a failure of the agent.
                let is_interrupted = error.kind() == Kind::Interrupted;
                let message = if is_interrupted { "interrupted" } else { &*error.to_string() };
                let duration = started.elapsed();
                (self.watch)(Progress::Failed { step: &name, label: &label, message, duration });
            }
        }
        if result.is_ok() && self.commits_each_step(role) {
            commits::commit_documents(self, &format!("{}: {label}", self.change))?;
        }
        if result.as_ref().is_ok_and(|(report, _)| report.asked) {
            self.unanswered()?;
        }
        result
    }

    /// Calls the agent of a step; in a fresh session if the one to resume is gone. Only what a
    /// reproposal asks for needs to know the plan, and has a prompt of its own for that case.
    fn call(&mut self, step: &Step, fresh: &str) -> Result<StepReport, WorkflowError> {
        match self.call_once(step) {
            Err(error)
                if step.resume.is_some()
                    && step.name != StepName::Reproposal
                    && error.is_lost_session() =>
            {
                self.warn(LOST);
                let prompt = fresh.to_owned();
                self.call_once(&Step { resume: None, prompt, ..step.clone() })
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
        // Who was started beside an earlier step has had the time to start, and waits for its turn.
        self.agents.warm.freeze_all();
        self.start_reviewer(step, &before);
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
        if report.shows_writes {
            self.show_writes.insert(report.agent);
        }
        self.keep(report.after.clone());
        Ok(report)
    }

    /// Lets the agent that will review get ready while the author still works (G5). Not the same
    /// agent: what an author may write to its own settings, a second process of it would obey.
    fn start_reviewer(&self, author: &Step, before: &Snapshot) {
        let (role, name) = match author.name {
            // Of steps that write several documents, nobody could say who has written what; nor of an
            // author whose output does not show it.
            StepName::TasksGen if self.show_writes.contains(&author.agent) => {
                (Role::Challenger, StepName::Challenge)
            }
            StepName::Implement(_) | StepName::Fix => (Role::Reviewer, StepName::Review),
            _ => return,
        };
        let agent = self.player(role);
        let (Ok(state), true) = (before.state(), agent != author.agent) else { return };
        let reviewer = Step {
            role,
            agent,
            name,
            prompt: String::new(),
            resume: None,
            artifact: Artifact::Nothing,
            on_success: None,
            ..author.clone()
        };
        if self.agents.config.transport(agent) == Transport::Acp {
            step::start_early(self.agents, &reviewer, state);
        }
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

    /// Where the change stands, and the commands that take it on from here (W6).
    fn course(&self) -> Result<Course, WorkflowError> {
        let (snapshot, project) = (self.snapshot()?, &self.agents.project);
        let reports = snapshot.findings(project, &self.agents.config.extras());
        Ok(position::course(project, &snapshot, check::counts(&reports).high)?)
    }

    /// What is known of the plan as it stands, or of its code once that is begun.
    fn standing(&self, action: Action) -> Result<Report, WorkflowError> {
        let (state, course) = (self.state()?, self.course()?);
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
            question: state.open_question().cloned(),
            next_for_people: course.next_for_people(),
            next: course.next,
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
