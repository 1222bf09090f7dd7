//! Where a change stands, and the commands that take it on from there: one answer for the terminal,
//! `--json`, the skills and the viewer (W6).
//!
//! Every command named here is accepted in that state, and following them always leads to the
//! archive; a test walks through random commands, edits and kills to see that.

use serde::Serialize;
use strum::IntoStaticStr;

use crate::agent::AgentKind;
use crate::document::review::CodeVerdict;
use crate::document::review_block::PlanVerdict;
use crate::document::tasks::Status;
use crate::documents::Documents;
use crate::graph;
use crate::layout::ChangeFile;
use crate::next_step::{Command, NextStep};
use crate::phase::Phase;
use crate::state::{Choice, CodeReview, State, Track};
use crate::step_name::StepName;

/// What a change is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Standing {
    /// Its plan is not whole.
    Unfinished,
    /// A command is working on it.
    Running,
    /// A person has to answer, decide or edit something.
    Waiting,
    /// Something was edited since it was judged.
    Stale,
    /// The next step can begin.
    Ready,
    /// Nothing is left to do.
    Done,
}

impl Standing {
    /// `unfinished`, `running`, …
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Where a change stands, and what comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// Where it stands.
    pub standing: Standing,
    /// The same in a word or two, for a list.
    pub brief: &'static str,
    /// Why, as the end of a sentence.
    pub why: &'static str,
    /// The commands that take it on, the usual one first.
    pub next: Vec<NextStep>,
    /// The command that asks a person at a terminal first, if one does.
    pub asks: Option<NextStep>,
}

impl Course {
    /// The commands for a person at a terminal: one that asks comes instead of the usual one, which
    /// does the usual thing without asking.
    pub fn next_for_people(&self) -> Vec<NextStep> {
        match &self.asks {
            Some(asks) => std::iter::once(asks).chain(self.next.iter().skip(1)).cloned().collect(),
            None => self.next.clone(),
        }
    }
}

/// A change in the archive.
#[derive(Debug, Clone, Copy)]
pub struct InArchive<'f> {
    /// What commands call it: its ID, or the name of its directory if a newer one has that ID.
    pub name: &'f str,
    /// Whether it can be taken back: no open change has its ID, and it is known what archiving it did.
    pub can_return: bool,
}

/// What is known of a change.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'f> {
    /// Its documents.
    pub documents: &'f Documents,
    /// Its state; none if no workflow has run on it yet.
    pub state: Option<&'f State>,
    /// How many HIGH findings its documents have.
    pub high: usize,
    /// Whether a command is working on it.
    pub is_running: bool,
    /// Whether its files are not those that its record is about.
    pub record_differs: bool,
    /// Whether code or tests were edited since they were judged.
    pub code_is_stale: bool,
    /// How many comments people have made on its code since it was last fixed.
    pub new_code_comments: usize,
    /// Where it is in the archive, if it is there.
    pub archived: Option<InArchive<'f>>,
}

/// Whether the built-in agent was the last to revise the plan, and could not.
fn rules_cannot_fix(state: &State) -> bool {
    state.llm_calls.last().is_some_and(|call| {
        call.step == StepName::Reproposal
            && call.agent == Some(AgentKind::Builtin)
            && call.failure.is_some()
    })
}

/// Why code is fixed that no reviewer has complained about.
const COMMENTED: &str = "people have commented on its code";

impl Facts<'_> {
    /// Where the change stands, and what comes next.
    pub fn course(&self) -> Course {
        use Standing::{Done, Ready, Running, Unfinished, Waiting};
        let id = &self.documents.id;
        let is = |standing, brief, why, next| Course { standing, brief, why, next, asks: None };
        if let Some(InArchive { name, can_return }) = self.archived {
            let was_dropped = self.state.is_some_and(State::was_dropped);
            let (brief, why) = if was_dropped {
                ("dropped", "it was dropped")
            } else {
                ("archived", "it is archived")
            };
            let on = |command| NextStep::new(command).arg(name);
            let back = can_return.then(|| on(Command::Unarchive));
            return is(Done, brief, why, [on(Command::Show)].into_iter().chain(back).collect());
        }
        if self.is_running {
            return is(Running, "running", "a command is working on it", vec![Command::Log.on(id)]);
        }
        if self.record_differs {
            let verify = vec![Command::Verify.on(id)];
            return is(Waiting, "files differ", "its files are not as agentd wrote them", verify);
        }
        let Some(state) = self.state else {
            // What was written without agentd is adopted (W4).
            let has_plan = !self.documents.proposal.value().summary.is_empty();
            let next = if has_plan { Command::Plan } else { Command::Validate };
            return is(Unfinished, "new", "no workflow has run on it yet", vec![next.on(id)]);
        };
        if state.open_question().is_some() {
            let why = "an agent asks you something";
            return is(Waiting, "question", why, vec![Command::Decide.on(id)]);
        }
        let edited = !self.is_judged(state);
        match state.phase {
            Phase::Proposed => self.planning(state),
            Phase::Challenged | Phase::Rejected if edited => self.for_judgment(
                Standing::Stale,
                "plan edited",
                "its plan was edited since it was judged",
            ),
            Phase::Challenged if self.by_rules(state) => {
                let next = vec![Command::Show.on(id), Command::Impl.on(id)];
                let why = "its plan passes the rules; nobody has judged the idea";
                is(Ready, "passes the rules", why, next)
            }
            Phase::Challenged => {
                is(Ready, "plan approved", "its plan is approved", vec![Command::Impl.on(id)])
            }
            Phase::Rejected => {
                let next = vec![Command::Revise.on(id), Command::Show.on(id)];
                is(Waiting, "plan rejected", "its plan is rejected", next)
            }
            Phase::Implementing | Phase::Complete if edited => {
                let next = vec![Command::Revise.on(id)];
                is(
                    Standing::Stale,
                    "plan edited",
                    "its plan was edited since it was approved",
                    next,
                )
            }
            Phase::Implementing => self.building(state),
            Phase::Complete if self.code_is_stale => {
                let next = vec![Command::Revise.on(id)];
                is(
                    Standing::Stale,
                    "code edited",
                    "its code was edited since it was reviewed",
                    next,
                )
            }
            Phase::Complete if self.new_code_comments > 0 => {
                let next = vec![Command::Fix.on(id), Command::Archive.on(id)];
                is(Ready, "code commented", COMMENTED, next)
            }
            Phase::Complete => {
                is(Ready, "code approved", "its code is approved", vec![Command::Archive.on(id)])
            }
            Phase::Archived => {
                let next = vec![Command::Show.on(id), Command::Unarchive.on(id)];
                is(Done, "archived", "it is archived", next)
            }
        }
    }

    /// Whether the verdict on the plan is about the plan as it is.
    fn is_judged(&self, state: &State) -> bool {
        state.plan_review.as_ref().is_some_and(|known| known.plan_hash == self.documents.digest())
    }

    /// Whether only rules have approved the plan.
    fn by_rules(&self, state: &State) -> bool {
        let review = self.documents.counted_review(state);
        review.is_some_and(|review| review.reviewer.as_str() == AgentKind::Builtin.name())
    }

    /// A plan that a challenger is to judge, if it is valid.
    fn for_judgment(&self, standing: Standing, brief: &'static str, why: &'static str) -> Course {
        let id = &self.documents.id;
        if self.high > 0 {
            // The planner repairs it, or a person does.
            let next = vec![Command::Validate.on(id), Command::Plan.on(id).arg("--auto")];
            let (brief, why) = ("breaks rules", "its documents break rules");
            return Course { standing: Standing::Waiting, brief, why, next, asks: None };
        }
        Course { standing, brief, why, next: vec![Command::Challenge.on(id)], asks: None }
    }

    /// A plan that is proposed.
    fn planning(&self, state: &State) -> Course {
        use Standing::{Ready, Unfinished, Waiting};
        let id = &self.documents.id;
        let is = |standing, brief, why, next| Course { standing, brief, why, next, asks: None };
        let plan = || vec![Command::Plan.on(id)];
        let revise = || match state.session_id {
            Some(_) => Command::Reproposal.on(id),
            // Nothing can be resumed; a new session is given the plan.
            None => Command::Reproposal.on(id).arg("--fresh"),
        };
        if !self.documents.has(&ChangeFile::Proposal) {
            if self.documents.has(&ChangeFile::Clarifications) || state.is_clear() {
                return is(Unfinished, "no plan yet", "its plan is not written yet", plan());
            }
            let next = vec![Command::Clarify.on(id), Command::Plan.on(id).arg("--skip-clarify")];
            let asks = Some(Command::Plan.on(id));
            return Course {
                asks,
                ..is(Waiting, "open questions", "questions about it are open", next)
            };
        }
        let specs = &self.documents.proposal.value().affected_specs;
        if graph::spec_order(specs).is_err() {
            let next = vec![Command::Validate.on(id)];
            return is(Waiting, "circular specs", "its specs depend on each other", next);
        }
        let is_there = |file: ChangeFile| self.documents.has(&file);
        let is_whole = is_there(ChangeFile::Tasks)
            && specs.iter().all(|spec| is_there(ChangeFile::Spec(spec.id.clone())));
        if !is_whole {
            return is(Unfinished, "plan unfinished", "its plan is not written to the end", plan());
        }
        if state.revision.as_ref().is_some_and(|revision| !revision.note.is_empty()) {
            let next = if state.session_id.is_some() { plan() } else { vec![revise()] };
            return is(Ready, "to revise", "its plan is to be revised as you said", next);
        }
        let Some(review) = self.documents.counted_review(state) else {
            return match &state.plan_review {
                // Its review was removed, so the planner cannot be asked to follow it.
                Some(known) if self.is_judged(state) && known.verdict == PlanVerdict::Rejected => {
                    let why = "its plan is rejected: edit it";
                    is(Waiting, "plan rejected", why, vec![Command::Show.on(id)])
                }
                Some(_) => self.for_judgment(
                    Standing::Stale,
                    "plan edited",
                    "its plan was edited since it was judged",
                ),
                None => {
                    self.for_judgment(Ready, "not challenged", "its plan was not challenged yet")
                }
            };
        };
        let decided = state.last_decision();
        let decided = decided.filter(|made| made.plan_hash == review.plan).map(|made| made.choice);
        match review.verdict {
            PlanVerdict::Approved => {
                self.for_judgment(Ready, "approved before", "its plan was approved before")
            }
            PlanVerdict::NeedsRevision
                if decided == Some(Choice::Fix) && state.session_id.is_some() =>
            {
                is(Ready, "to fix", "its plan is to be fixed", plan())
            }
            // A planner without a model has said that it cannot.
            PlanVerdict::NeedsRevision if rules_cannot_fix(state) => {
                let why = "its plan needs revision: edit it, then have it challenged";
                let next = vec![Command::Show.on(id).arg("challenge"), Command::Challenge.on(id)];
                is(Waiting, "edit the plan", why, next)
            }
            PlanVerdict::NeedsRevision => Course {
                asks: Some(Command::Plan.on(id)),
                ..is(Waiting, "needs revision", "its plan needs revision", vec![revise()])
            },
            PlanVerdict::Rejected => {
                is(Waiting, "plan rejected", "its plan is rejected", vec![revise()])
            }
        }
    }

    /// A change whose code is being written or reviewed.
    fn building(&self, state: &State) -> Course {
        use Standing::{Ready, Waiting};
        let id = &self.documents.id;
        let is = |standing, brief, why, next| Course { standing, brief, why, next, asks: None };
        let tasks = &self.documents.tasks.value().tasks;
        if tasks.iter().any(|task| task.status == Status::Pending) {
            return is(Ready, "tasks open", "tasks are open", vec![Command::Impl.on(id)]);
        }
        if state.track == Track::Bug && state.reproduction.is_none() {
            return is(
                Ready,
                "no failing test",
                "no test was seen to fail because of the bug",
                vec![Command::Impl.on(id)],
            );
        }
        if self.new_code_comments > 0 {
            let next = vec![Command::Fix.on(id), Command::Review.on(id)];
            return is(Ready, "code commented", COMMENTED, next);
        }
        match state.code_review.as_ref().filter(|review| self.stands(state, review)) {
            Some(review) if review.verdict == CodeVerdict::MajorIssues => {
                let next = vec![Command::Fix.on(id), Command::Show.on(id).arg("review")];
                is(Waiting, "major issues", "its code has major issues", next)
            }
            Some(review) if review.verdict == CodeVerdict::NeedsFix => {
                is(Ready, "needs fixing", "its code needs fixing", vec![Command::Fix.on(id)])
            }
            Some(_) | None => {
                is(Ready, "to review", "its code is to be reviewed", vec![Command::Review.on(id)])
            }
        }
    }

    /// Whether the review of the code is there, asks for something, and nothing was done about it.
    fn stands(&self, state: &State, review: &CodeReview) -> bool {
        let is_work = |step: &StepName| matches!(step, StepName::Implement(_) | StepName::Fix);
        let worked = state.llm_calls.iter().rfind(|call| is_work(&call.step) && !call.asked);
        let since = worked.and_then(|call| call.run) > review.run;
        let found = self.documents.review.value_if_there();
        let asks = found.is_some_and(|found| !found.issues.is_empty());
        let text = self.documents.review.text().map(crate::hash::Digest::of);
        let is_it = review.review_hash.is_none() || review.review_hash == text;
        asks && is_it && !since && !self.code_is_stale
    }
}
