use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::command_line::CommandLine;
use agentd_core::diagnostic::Counts;
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::ids::ChangeId;
use agentd_core::next_step::{Command, NextStep};
use agentd_core::phase::Phase;
use agentd_core::state::Choice;
use agentd_engine::change::glance::{self, Glance};
use agentd_engine::change::position;
use agentd_engine::store::Change;
#[cfg(test)]
use agentd_engine::workflow::decisions::Gate;
use agentd_engine::workflow::decisions::{self, PlanAnswer, PlanChoice};
use clap::ValueEnum as _;
use serde::Serialize;

use super::{Context, user};
use crate::error::CommandError;
use crate::ui::{BOLD, Output, Screen, ask};

/// Decide what to do with a plan that needs revision.
///
/// Without a decision, shows the issues and asks; without a terminal, prints what is asked and the
/// commands that answer it. A decision is recorded
/// in STATE.yaml: who made it, when, why, and for which plan. With `fix`, the planner is given
/// your note. You can accept a plan only if no HIGH issue and at most one MEDIUM issue is open,
/// and the plan has not changed since the review.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd decide add-oauth                    what is asked\n  agentd decide add-oauth fix --note \"lock after 5 attempts\"\n  agentd decide add-oauth accept --note \"the LOW ones can wait\"\n  agentd decide add-oauth stop"
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// Decision to record: fix, accept or stop.
    #[arg(value_enum)]
    choice: Option<ChoiceArg>,

    /// Reason for the decision; what the planner should know.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ChoiceArg {
    /// Have the planner fix the issues, then challenge the plan again.
    Fix,
    /// Accept the plan with its minor issues.
    Accept,
    /// Stop working on the plan.
    Stop,
}

impl Args {
    /// The change and the decision. One word alone is a decision if it reads like one, and
    /// otherwise a change.
    fn read(&self) -> (Option<&str>, Option<ChoiceArg>) {
        match (self.id.as_deref(), self.choice) {
            (Some(word), None) => match ChoiceArg::from_str(word, false) {
                Ok(choice) => (None, Some(choice)),
                Err(_) => (Some(word), None),
            },
            read => read,
        }
    }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let (id, choice) = args.read();
    let can_ask = context.ui.can_prompt() && !context.ui.json;
    let chosen = if can_ask && id.is_none() { one_that_waits(context)? } else { None };
    let id = chosen.as_deref().or(id);
    let project = context.project_of(id)?;
    let change = context.change(&project, id)?;
    let mut note = args.note.clone().unwrap_or_default();
    let choice = match choice {
        Some(ChoiceArg::Fix) => PlanChoice::Fix,
        Some(ChoiceArg::Accept) => PlanChoice::Accept,
        Some(ChoiceArg::Stop) => PlanChoice::Stop,
        None if args.note.is_some() => {
            let decide = CommandLine::from(&Command::Decide.on(change.id()));
            return Err(CommandError::usage("--note belongs to a decision")
                .run("name it", decide.placeholder("<fix|accept|stop>").placeholder("--note …")));
        }
        None if can_ask => {
            let answer = ask_person(context, &change)?;
            if answer == PlanAnswer::Tell {
                note = ask::note_for_planner(change.id(), project.root())?;
            }
            match answer {
                PlanAnswer::Accept => PlanChoice::Accept,
                PlanAnswer::Stop => PlanChoice::Stop,
                _ => PlanChoice::Fix,
            }
        }
        None => {
            context.ui.print(&asked(&change)?)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let state = decisions::decide(
        &project,
        change.id(),
        choice,
        &note,
        &user(&project),
        &context.holder(),
        context.now(),
    )?;
    context.ui.print(&DecisionReport {
        action: "decided",
        next: position::next_steps(&project, change.id())?,
        change_id: state.change_id,
        phase: state.phase,
        choice: choice.into(),
        decisions: state.decisions.len(),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The change that is meant if several are open: one of those that wait for a decision.
fn one_that_waits(context: &Context) -> Result<Option<String>, CommandError> {
    let project = context.project()?;
    if context.meant(&project)?.is_some() {
        return Ok(None);
    }
    let mut waiting = glance::open(&project)?;
    waiting.retain(Glance::waits_for_decision);
    match waiting.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.summary.change_id.to_string())),
        several => ask::which_waiting(several).map(Some),
    }
}

/// Shows the issues of a plan, and asks what is to be done about them.
fn ask_person(context: &Context, change: &Change) -> Result<PlanAnswer, CommandError> {
    let snapshot = change.snapshot()?;
    let (state, documents) = (snapshot.state()?, &snapshot.documents);
    let question = decisions::open_question(state, documents)?;
    if let Some(review) = documents.counted_review(state) {
        context.ui.note(&review.summary.to_string());
        context.ui.show_issues(&review.issues);
    }
    ask::decision(change.id(), &question)
}

/// What the plan waits with.
fn asked(change: &Change) -> Result<QuestionReport, CommandError> {
    let snapshot = change.snapshot()?;
    let (state, documents) = (snapshot.state()?, &snapshot.documents);
    let question = decisions::open_question(state, documents)?;
    let review = documents.counted_review(state);
    let choices = question.answers.iter().map(|answer| Offered {
        choice: answer.name(),
        label: answer.label(question.gate),
        commands: answer.commands(question.gate, change.id()),
    });
    Ok(QuestionReport {
        change_id: change.id().clone(),
        phase: state.phase,
        verdict: review.map(|review| review.verdict),
        iteration: state.iteration,
        issues: review.map(ReviewBlock::counts).unwrap_or_default(),
        question: question.text(),
        choices: choices.collect(),
    })
}

/// What a plan waits with.
#[derive(Debug, Serialize)]
pub(super) struct QuestionReport {
    /// The change.
    change_id: ChangeId,
    /// Its phase.
    phase: Phase,
    /// The verdict on its plan.
    verdict: Option<PlanVerdict>,
    /// How many rounds of revision there were.
    iteration: u32,
    /// How many issues of each severity are open.
    issues: Counts,
    /// What is asked.
    question: String,
    /// What can be answered.
    choices: Vec<Offered>,
}

/// An answer and the commands that give it.
#[derive(Debug, Serialize)]
struct Offered {
    choice: &'static str,
    label: &'static str,
    commands: Vec<NextStep>,
}

impl Output for QuestionReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let Counts { high, medium, low } = self.issues;
        writeln!(screen, "{}: {high} HIGH, {medium} MEDIUM, {low} LOW issues", self.change_id)?;
        writeln!(screen, "{BOLD}{}{BOLD:#}", self.question)?;
        for offered in &self.choices {
            let commands: Vec<String> = offered.commands.iter().map(NextStep::to_string).collect();
            writeln!(screen, "\n  {}\n    {}", offered.label, commands.join(" && "))?;
        }
        let fix = CommandLine::from(&Command::Decide.on(&self.change_id).arg("fix"));
        let fix = fix.placeholder("--note \"<what the planner should know>\"");
        writeln!(screen, "\nTo say how it is to be fixed: {fix}")
    }

    #[cfg(test)]
    fn sample() -> Self {
        let change_id = ChangeId::new("add-oauth").unwrap();
        let (answer, gate) = (PlanAnswer::Fix, Gate::NeedsRevision);
        let commands = answer.commands(gate, &change_id);
        Self {
            phase: Phase::Proposed,
            verdict: Some(PlanVerdict::NeedsRevision),
            iteration: 0,
            issues: Counts { high: 2, medium: 3, low: 1 },
            question: "The plan needs revision. What next?".to_owned(),
            choices: vec![Offered { choice: answer.name(), label: answer.label(gate), commands }],
            change_id,
        }
    }
}

/// A decision that was recorded.
#[derive(Debug, Serialize)]
pub(super) struct DecisionReport {
    /// `decided`
    action: &'static str,
    /// The change.
    change_id: ChangeId,
    /// Its phase after the decision.
    phase: Phase,
    /// What was decided.
    choice: Choice,
    /// How many decisions are recorded for the change.
    decisions: usize,
    /// Commands that continue from here.
    next: Vec<NextStep>,
}

impl Output for DecisionReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        writeln!(screen, "{} is {}; the decision is recorded", self.change_id, self.phase)?;
        match (self.choice, self.next.first()) {
            (Choice::Stop, Some(next)) => {
                writeln!(screen, "\nTo continue later: {BOLD}{next}{BOLD:#}")
            }
            _ => screen.next(&self.next),
        }
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self {
            action: "decided",
            next: vec![Command::Impl.on(&ChangeId::new("add-oauth").unwrap())],
            change_id: ChangeId::new("add-oauth").unwrap(),
            phase: Phase::Challenged,
            choice: Choice::Accept,
            decisions: 1,
        }
    }
}
