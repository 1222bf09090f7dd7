//! What people are asked at the gates of a plan, and what they decide: the terminal, `decide`, the
//! skills and the viewer all ask the same.

use std::collections::BTreeSet;

use agentd_core::diagnostic::{Counts, Diagnostic};
use agentd_core::diff;
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::document::round::Round;
use agentd_core::documents::Documents;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{ChangeFile, RunName};
use agentd_core::next_step::{Command, NextStep};
use agentd_core::phase::{Phase, Refused, Transition};
use agentd_core::rules;
use agentd_core::stamp::Stamp;
use agentd_core::state::LastAction;
use agentd_core::state::{AgentQuestion, Choice, Decision, Revision, State};
use agentd_core::text::Line;
use serde::Deserialize;
use strum::IntoStaticStr;

use super::{Mode, Verdict};
use crate::change::documents::{DocumentError, update_state};
use crate::change::{Snapshot, position};
use crate::store::{Holder, Project};

/// After so many rounds a person is asked whether it is the right plan at all (C12).
const MANY_ROUNDS: u32 = 3;

/// A gate at which a plan waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It is approved, or was accepted with its minor issues (C34).
    Approved,
    /// It needs revision (P24).
    NeedsRevision,
    /// It still does after so many rounds that the plan itself is in doubt (C12, C34).
    ManyRounds(u32),
}

/// What a person can say to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum PlanAnswer {
    /// The planner fixes the issues, then the plan is challenged again.
    Fix,
    /// The plan is taken with its minor issues (C11).
    Accept,
    /// It is implemented, with its minor issues if it has some.
    Implement,
    /// It is shown, and the question comes again.
    View,
    /// Its issues are shown, and the person says who fixes them.
    Review,
    /// The planner fixes them, and is given what the person says.
    Tell,
    /// The person edits the plan in their editor, and it is challenged again.
    Edit,
    /// What the last revision has changed is shown, and the question comes again.
    Diff,
    /// It stays as it is, which is recorded.
    Stop,
    /// It is implemented some other time.
    Later,
}

impl PlanAnswer {
    /// The name in `--json`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What it says to a person at this gate.
    pub fn label(self, gate: Gate) -> &'static str {
        match (self, gate) {
            (Self::Fix, Gate::ManyRounds(_)) => "Continue with another round",
            (Self::Fix, _) => "Auto-fix and rechallenge (recommended)",
            (Self::Accept, _) => "Accept it with its minor issues",
            (Self::Implement, Gate::Approved) => "Implement it now",
            (Self::Implement, _) => "Implement it with its minor issues",
            (Self::View, Gate::Approved) => "View the plan",
            (Self::View, _) => "View the issues",
            (Self::Review, _) => "Review manually",
            (Self::Tell, _) => "Tell the planner something, then fix",
            (Self::Edit, _) => "Edit the plan in your editor",
            (Self::Diff, _) => "Show what the last revision changed",
            (Self::Stop, _) => "Stop here",
            (Self::Later, _) => "Later",
        }
    }

    /// What comes of it, for somebody who sees the question for the first time.
    pub fn details(self, gate: Gate) -> &'static str {
        match (self, gate) {
            (Self::Fix, _) => "The planner revises the plan, then it is reviewed again.",
            (Self::Accept, _) => {
                "The plan counts as approved. It is recorded that you accepted it."
            }
            (Self::Implement, Gate::Approved) => "The agents write the code, test and review it.",
            (Self::Implement, _) => {
                "The plan counts as approved, and the agents write the code, test and review it."
            }
            (Self::View, Gate::Approved) => "Shows proposal, specs and tasks, then asks again.",
            (Self::View, _) => "Shows all of them, then asks again.",
            (Self::Review, _) => "Shows the issues, and asks who fixes them.",
            (Self::Tell, _) => "You say in your own words how it is to be fixed.",
            (Self::Edit, _) => "You fix it yourself, then it is reviewed again.",
            (Self::Diff, _) => "Shows the differences line by line, then asks again.",
            (Self::Stop, _) => "Nothing is lost. `agentd plan` asks again.",
            (Self::Later, _) => "Nothing is lost. `agentd impl` implements it.",
        }
    }

    /// The commands that do it, in order.
    pub fn commands(self, gate: Gate, change: &ChangeId) -> Vec<NextStep> {
        let decide = |choice| Command::Decide.on(change).arg(choice);
        let issues = || Command::Show.on(change).arg("challenge");
        match (self, gate) {
            (Self::Fix | Self::Tell, _) => vec![decide("fix"), Command::Plan.on(change)],
            (Self::Edit | Self::Diff, _) => Vec::new(),
            (Self::Accept, _) => vec![decide("accept")],
            (Self::Implement, Gate::Approved) => vec![Command::Impl.on(change)],
            (Self::Implement, _) => vec![decide("accept"), Command::Impl.on(change)],
            (Self::View, Gate::Approved) => vec![Command::Show.on(change)],
            (Self::View | Self::Review, _) => vec![issues()],
            (Self::Stop, _) => vec![decide("stop")],
            (Self::Later, _) => Vec::new(),
        }
    }
}

/// The question with which a plan waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanQuestion {
    /// Where it waits.
    pub gate: Gate,
    /// What can be answered, the first thing first.
    pub answers: Vec<PlanAnswer>,
}

impl PlanQuestion {
    /// What can be answered in a terminal, where a person can also write and read (W5).
    pub fn terminal_answers(&self, has_diff: bool) -> Vec<PlanAnswer> {
        let mut answers = self.answers.clone();
        if self.gate != Gate::Approved {
            let diff = has_diff.then_some(PlanAnswer::Diff);
            let more = [PlanAnswer::Tell, PlanAnswer::Edit].into_iter().chain(diff);
            let at = answers.len().saturating_sub(1);
            answers.splice(at..at, more);
        }
        answers
    }

    /// The answers that are decisions, for somebody who only wants to record one.
    pub fn decisions(&self) -> Vec<PlanAnswer> {
        use PlanAnswer::{Accept, Fix, Implement, Stop, Tell};
        let can_accept = self.answers.iter().any(|answer| matches!(answer, Accept | Implement));
        let accept = can_accept.then_some(Accept);
        [Fix, Tell].into_iter().chain(accept).chain([Stop]).collect()
    }

    /// The question itself.
    pub fn text(&self) -> String {
        match self.gate {
            Gate::Approved => "The plan is approved. What next?".to_owned(),
            Gate::NeedsRevision => "The plan needs revision. What next?".to_owned(),
            Gate::ManyRounds(rounds) => {
                format!("The plan still needs revision after {rounds} rounds. What next?")
            }
        }
    }
}

/// The question that a plan waits with after a run of the workflow, if it does.
pub fn question(
    project: &Project,
    id: &ChangeId,
    mode: Mode,
) -> Result<Option<PlanQuestion>, DocumentError> {
    if mode != Mode::HumanInLoop {
        return Ok(None);
    }
    let snapshot = project.change(id)?.snapshot()?;
    Ok(waiting(snapshot.state()?, &snapshot.documents))
}

/// The question that a plan waits with.
pub fn waiting(state: &State, documents: &Documents) -> Option<PlanQuestion> {
    use PlanAnswer::{Accept, Fix, Implement, Later, Review, Stop, View};
    // What an agent asks comes first.
    if state.open_question().is_some() {
        return None;
    }
    let review = documents.counted_review(state);
    let acceptable = accepted(state, documents).is_ok();
    let (gate, answers) = match state.phase {
        Phase::Challenged if is_reviewed(state, documents) => {
            let verdict = Verdict::Plan(PlanVerdict::Approved);
            // Nobody has judged the idea yet: a person reads the plan first.
            match review.and_then(|review| verdict.rules_only(&review.reviewer)) {
                Some(_) => (Gate::Approved, vec![View, Implement, Later]),
                None => (Gate::Approved, vec![Implement, View, Later]),
            }
        }
        Phase::Proposed if review?.verdict != PlanVerdict::NeedsRevision => return None,
        Phase::Proposed if state.iteration >= MANY_ROUNDS => {
            let implement = acceptable.then_some(Implement);
            let answers = implement.into_iter().chain([View, Fix, Stop]).collect();
            (Gate::ManyRounds(state.iteration), answers)
        }
        Phase::Proposed => {
            let accept = acceptable.then_some(Accept);
            let answers = [Fix].into_iter().chain(accept).chain([Review, Stop]).collect();
            (Gate::NeedsRevision, answers)
        }
        Phase::Challenged
        | Phase::Rejected
        | Phase::Implementing
        | Phase::Complete
        | Phase::Archived => return None,
    };
    Some(PlanQuestion { gate, answers })
}

/// What has changed in the plan since the review before the last one, file by file, as `diff -u` shows
/// it; none before the second review.
pub fn last_revision(snapshot: &Snapshot) -> Option<String> {
    let [.., before, last] = snapshot.documents.reviews() else { return None };
    let (before, last) = (snapshot.round(before.iteration)?, snapshot.round(last.iteration)?);
    let files: BTreeSet<&String> = before.files.keys().chain(last.files.keys()).collect();
    let of = |round: &'_ Round, file: &String| round.files.get(file).cloned();
    let diffs = files.into_iter().map(|file| {
        let (old, new) = (of(&before, file), of(&last, file));
        diff::unified(file, old.as_deref(), new.as_deref())
    });
    Some(diffs.collect())
}

/// The question that is answered with a decision, or why there is none (W5).
pub fn open_question(state: &State, documents: &Documents) -> Result<PlanQuestion, DocumentError> {
    let question = waiting(state, documents);
    let change = state.change_id.clone();
    question.filter(|question| question.gate != Gate::Approved).ok_or_else(|| {
        let (why, next) = match state.phase {
            _ if state.open_question().is_some() => {
                ("an agent waits for an answer first", Command::Decide)
            }
            Phase::Proposed if !documents.has(&ChangeFile::Proposal) => {
                ("it has no plan yet", Command::Plan)
            }
            Phase::Proposed if state.plan_review.is_none() => {
                ("its plan was not challenged yet", Command::Plan)
            }
            Phase::Proposed if is_reviewed(state, documents) => {
                ("the review of its plan was edited or removed", Command::Plan)
            }
            Phase::Proposed => ("its plan was edited since it was challenged", Command::Plan),
            Phase::Challenged if is_reviewed(state, documents) => {
                ("its plan is approved", Command::Impl)
            }
            Phase::Challenged => ("its plan was edited since it was approved", Command::Plan),
            Phase::Rejected => ("its plan is rejected", Command::Show),
            Phase::Implementing => ("its plan is being implemented", Command::Impl),
            Phase::Complete => ("it is complete", Command::Archive),
            Phase::Archived => ("it is archived", Command::Unarchive),
        };
        DocumentError::NothingToDecide { why, next: next.on(&change), change }
    })
}

/// Whether the plan is the one that the verdict is about.
pub(super) fn is_reviewed(state: &State, documents: &Documents) -> bool {
    state.plan_review.as_ref().is_some_and(|review| review.plan_hash == documents.digest())
}

/// What a person decides about a plan that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanChoice {
    /// The planner fixes the issues.
    Fix,
    /// The plan is taken with its minor issues.
    Accept,
    /// It stays as it is.
    Stop,
}

impl From<PlanChoice> for Choice {
    fn from(choice: PlanChoice) -> Self {
        match choice {
            PlanChoice::Fix => Self::Fix,
            PlanChoice::Accept => Self::Accept,
            PlanChoice::Stop => Self::Stop,
        }
    }
}

/// A decision that a person makes.
#[derive(Debug, Clone, Copy)]
pub struct NewDecision<'a> {
    /// What is to be done.
    pub choice: PlanChoice,
    /// Why, or what the planner should know.
    pub note: &'a str,
    /// Who decides.
    pub by: &'a str,
    /// The round that was shown, from [`seen`]. None if the person decides about the latest one,
    /// whatever it is.
    pub seen: Option<&'a Digest>,
}

/// A digest of what a person sees when they decide: the plan, and what its latest round said.
pub fn seen(documents: &Documents, review: &ReviewBlock) -> Digest {
    let issues: Vec<String> =
        review.issues.iter().map(|issue| format!("I{} {}", issue.number, issue.title)).collect();
    let (plan, round) = (documents.digest(), review.iteration);
    Digest::of(format!("{plan} {round} {:?} {}", review.date, issues.join("\n")))
}

/// What a person has decided about the plan as it is.
pub(super) fn decided(state: &State, documents: &Documents) -> Option<Choice> {
    let plan = documents.digest();
    let made = state.last_decision().filter(|made| made.plan_hash.as_ref() == Some(&plan));
    made.map(|made| made.choice)
}

/// Records a decision about a plan that waits for one: who, when, why, and for which plan.
/// Accepting a plan with minor issues also moves its phase, where C11 allows it.
pub fn decide(
    project: &Project,
    id: &ChangeId,
    new: &NewDecision<'_>,
    holder: &Holder,
    now: Stamp,
) -> Result<State, DocumentError> {
    update_state(project, id, holder, now, |state| {
        let documents = project.change(id)?.snapshot()?.documents;
        open_question(state, &documents)?;
        let latest = documents.counted_review(state).map(|review| seen(&documents, review));
        if new.seen.is_some_and(|shown| latest.as_ref() != Some(shown)) {
            return Err(DocumentError::OtherRound { change: id.clone() });
        }
        let NewDecision { choice, note, by, .. } = *new;
        let plan_hash = Some(documents.digest());
        if choice == PlanChoice::Accept {
            *state = accepted(state, &documents)?;
        }
        let (choice, note, by) = (choice.into(), Line::new(note), Line::new(by));
        state.decisions.push(Decision { choice, note, by, at: now, plan_hash });
        state.last_action = Some(LastAction::Decide);
        Ok(state.clone())
    })
}

/// What a person says to an agent.
#[derive(Debug, Clone, Copy)]
pub struct NewAnswer<'a> {
    /// Their words.
    pub text: &'a str,
    /// Who answers.
    pub by: &'a str,
    /// The question that was shown. None if the person answers the latest one, whatever it is.
    pub seen: Option<&'a AgentQuestion>,
}

/// Answers the question that an agent waits with (G6).
pub fn answer(
    project: &Project,
    id: &ChangeId,
    new: &NewAnswer<'_>,
    holder: &Holder,
    now: Stamp,
) -> Result<State, DocumentError> {
    update_state(project, id, holder, now, |state| {
        let is_open = state.open_question().is_some();
        if new.seen.is_some_and(|seen| state.open_question() != Some(seen)) {
            return Err(DocumentError::NotAskedAnyMore { change: id.clone() });
        }
        if !state.answer(new.text, new.by, now) {
            let change = id.clone();
            let (why, next) = if is_open {
                ("the answer is empty", vec![Command::Decide.on(id)])
            } else {
                ("no agent asks anything", position::next_steps(project, id)?)
            };
            let next = next.into_iter().next().unwrap_or_else(|| Command::Log.on(id));
            return Err(DocumentError::NothingToDecide { why, next, change });
        }
        state.last_action = Some(LastAction::Decide);
        Ok(state.clone())
    })
}

/// Takes a change back to planning, from wherever it is (W1). Code, ticks, verdicts and costs stay. A
/// note says what is to be different, for the planner; without one, people have edited the plan
/// themselves, or will.
pub fn revise(
    project: &Project,
    id: &ChangeId,
    note: &str,
    by: &str,
    holder: &Holder,
    now: Stamp,
) -> Result<State, DocumentError> {
    update_state(project, id, holder, now, |state| {
        let snapshot = project.change(id)?.snapshot()?;
        let (documents, runs) = (&snapshot.documents, snapshot.runs()?);
        let has_code = matches!(state.phase, Phase::Implementing | Phase::Complete);
        let reviewed = state
            .plan_review
            .as_ref()
            .and_then(|known| documents.reviews().iter().rfind(|review| known.is_of(review)));
        // Code that was written before an earlier revision is still that of the plan of then.
        let (built, built_hash) = match reviewed.filter(|_| has_code) {
            Some(review) => {
                let round = state.plan_review.as_ref().and_then(|known| known.round_hash.clone());
                (Some(review.iteration), round)
            }
            None => {
                let earlier = state.revision.as_ref();
                earlier.map(|it| (it.built, it.built_hash.clone())).unwrap_or_default()
            }
        };
        let note = Line::new(note);
        // A plan that is still being made is revised as they say.
        let tells = !note.is_empty() && documents.has(&ChangeFile::Tasks);
        let mut next = if state.phase == Phase::Proposed && tells {
            state.clone()
        } else {
            state.apply(&Transition::Reopened)?
        };
        let after_run = runs.last().map_or(0, RunName::number);
        next.revision = Some(Revision { note: note.clone(), after_run, built, built_hash });
        let (choice, by, plan_hash) = (Choice::Revise, Line::new(by), Some(documents.digest()));
        next.decisions.push(Decision { choice, note, by, at: now, plan_hash });
        next.last_action = Some(LastAction::Revise);
        // What was asked about the plan of before is not asked any more.
        next.question = None;
        *state = next;
        Ok(state.clone())
    })
}

/// What people have said when they had the issues of this review fixed, oldest first (W5).
pub(super) fn notes<'s>(
    state: &'s State,
    review: &'s ReviewBlock,
) -> impl Iterator<Item = &'s Decision> {
    let about = |made: &&Decision| {
        made.choice == Choice::Fix && made.plan_hash.is_some() && made.plan_hash == review.plan
    };
    state.decisions.iter().filter(about).filter(|made| !made.note.is_empty())
}

/// The state in which accepting this plan with its minor issues would leave it, or why
/// that cannot be. Writes nothing.
pub fn accepted(state: &State, documents: &Documents) -> Result<State, Refused> {
    let left = issues_left(state, documents);
    let plan = documents.digest();
    let accepted = Transition::MinorIssuesAccepted { plan, left: left.unwrap_or_default() };
    let next = state.apply(&accepted)?;
    if left.is_none() { Err(no_review(state)) } else { Ok(next) }
}

/// The issues of the latest review of this very plan. A review that is gone,
/// cannot be read or was edited says nothing of what is left.
fn issues_left(state: &State, documents: &Documents) -> Option<Counts> {
    let review = documents.counted_review(state)?;
    let edited =
        |d: &Diagnostic| d.rule == &rules::REVIEW_EDITED && d.span.start == review.place.0.start;
    (!documents.proposal.diagnostics().iter().any(edited)).then(|| review.counts())
}

fn no_review(state: &State) -> Refused {
    state.refuse(
        "be accepted with minor issues",
        Some("proposal.md holds no untouched review of this plan"),
    )
}
