use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::command_line::CommandLine;
use agentd_core::diagnostic::Counts;
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::ids::ChangeId;
use agentd_core::next_step::{Command, NextStep};
use agentd_core::phase::Phase;
use agentd_core::stamp::Stamp;
use agentd_core::state::{AgentQuestion, Choice, State};
use agentd_core::step_name::StepName;
use agentd_core::text::{Line, Prose};
use agentd_engine::change::glance::{self, Glance};
use agentd_engine::change::{Snapshot, position};
use agentd_engine::store::Project;
#[cfg(test)]
use agentd_engine::workflow::decisions::Gate;
use agentd_engine::workflow::decisions::{self, NewAnswer, NewDecision, PlanAnswer, PlanChoice};
use clap::ValueEnum as _;
use serde::Serialize;

use super::{Context, user};
use crate::error::CommandError;
use crate::ui::{BOLD, Output, Screen, ask};

/// Answer what a change waits for: a question of an agent, or a plan that needs revision.
///
/// Without a decision, shows what is asked and asks you; without a terminal, prints the commands that
/// answer it. A decision is recorded in STATE.yaml: who made it, when, why, and for which plan. With
/// `fix`, the planner is given your note; with `answer`, the agent that asked is. You can accept a
/// plan only if no HIGH issue and at most one MEDIUM issue is open,
/// and the plan has not changed since the review.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd decide add-oauth                    what is asked\n  agentd decide add-oauth fix --note \"lock after 5 attempts\"\n  agentd decide add-oauth accept --note \"the LOW ones can wait\"\n  agentd decide add-oauth answer --note \"GitHub only\"\n  agentd decide add-oauth stop"
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// Decision to record: fix, accept, stop or answer.
    #[arg(value_enum)]
    choice: Option<ChoiceArg>,

    /// Reason for the decision; what the planner should know; your answer.
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
    /// Answer the question of an agent with your note.
    Answer,
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
        Some(ChoiceArg::Answer) if note.trim().is_empty() => {
            let answer = CommandLine::from(&Command::Decide.on(change.id()).arg("answer"));
            return Err(CommandError::usage("an answer has words")
                .run("give them", answer.placeholder("--note \"<your answer>\"")));
        }
        Some(ChoiceArg::Answer) => return answered(context, &project, change.id(), &note, None),
        None if args.note.is_some() => {
            let decide = CommandLine::from(&Command::Decide.on(change.id()));
            return Err(CommandError::usage("--note belongs to a decision")
                .run("name it", decide.placeholder("<fix|accept|stop>").placeholder("--note …")));
        }
        None => {
            let snapshot = change.snapshot()?;
            if !can_ask {
                context.ui.print(&asked(&snapshot)?)?;
                return Ok(ExitCode::SUCCESS);
            }
            if let Some(question) = snapshot.state()?.open_question() {
                let text = ask::agent_question(change.id(), question, project.root())?;
                return answered(context, &project, change.id(), &text, Some(question));
            }
            let answer = ask_person(context, &snapshot)?;
            if answer == PlanAnswer::Tell {
                note = ask::note_for_planner(change.id(), project.root())?;
            }
            match answer {
                PlanAnswer::Accept => PlanChoice::Accept,
                PlanAnswer::Stop => PlanChoice::Stop,
                _ => PlanChoice::Fix,
            }
        }
    };
    let decision = NewDecision { choice, note: &note, by: &user(&project), seen: None };
    let (holder, now) = (context.holder(), context.now());
    let state = decisions::decide(&project, change.id(), &decision, &holder, now)?;
    report(context, &project, state, choice.into())
}

/// Records an answer, and says what comes next.
fn answered(
    context: &Context,
    project: &Project,
    id: &ChangeId,
    text: &str,
    seen: Option<&AgentQuestion>,
) -> Result<ExitCode, CommandError> {
    let state = record_answer(context, project, id, text, seen)?;
    report(context, project, state, Choice::Answer)
}

/// Records what a person answers to the question of an agent.
pub(super) fn record_answer(
    context: &Context,
    project: &Project,
    id: &ChangeId,
    text: &str,
    seen: Option<&AgentQuestion>,
) -> Result<State, CommandError> {
    let (by, holder, now) = (user(project), context.holder(), context.now());
    let answer = NewAnswer { text, by: &by, seen };
    Ok(decisions::answer(project, id, &answer, &holder, now)?)
}

fn report(
    context: &Context,
    project: &Project,
    state: State,
    choice: Choice,
) -> Result<ExitCode, CommandError> {
    context.ui.print(&DecisionReport {
        action: "decided",
        next: position::next_steps(project, &state.change_id)?,
        change_id: state.change_id,
        phase: state.phase,
        choice,
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
fn ask_person(context: &Context, snapshot: &Snapshot) -> Result<PlanAnswer, CommandError> {
    let (state, documents) = (snapshot.state()?, &snapshot.documents);
    let question = decisions::open_question(state, documents)?;
    if let Some(review) = documents.counted_review(state) {
        context.ui.note(&review.summary.to_string());
        context.ui.show_issues(&review.issues);
    }
    ask::decision(snapshot.id(), &question)
}

/// What a change waits with.
fn asked(snapshot: &Snapshot) -> Result<QuestionReport, CommandError> {
    let (state, documents, id) = (snapshot.state()?, &snapshot.documents, snapshot.id());
    let review = documents.counted_review(state);
    if let Some(asked) = state.open_question() {
        let choices = asked.asked.choices.iter().map(|choice| Offered {
            choice: "answer",
            label: choice.to_string(),
            commands: vec![Command::Decide.on(id).arg("answer").arg("--note").arg(choice.as_str())],
        });
        return Ok(QuestionReport {
            change_id: id.clone(),
            phase: state.phase,
            verdict: review.map(|review| review.verdict),
            iteration: state.iteration,
            issues: review.map(ReviewBlock::counts).unwrap_or_default(),
            question: asked.asked.question.to_string(),
            asker: Some(asked.asker()),
            choices: choices.collect(),
        });
    }
    let question = decisions::open_question(state, documents)?;
    let choices = question.answers.iter().map(|answer| Offered {
        choice: answer.name(),
        label: answer.label(question.gate).to_owned(),
        commands: answer.commands(question.gate, id),
    });
    Ok(QuestionReport {
        asker: None,
        change_id: id.clone(),
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
    /// The agent that asks; none if agentd does.
    #[serde(skip_serializing_if = "Option::is_none")]
    asker: Option<String>,
    /// What can be answered.
    choices: Vec<Offered>,
}

/// An answer and the commands that give it.
#[derive(Debug, Serialize)]
struct Offered {
    choice: &'static str,
    label: String,
    commands: Vec<NextStep>,
}

impl Output for QuestionReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        match &self.asker {
            Some(asker) => {
                writeln!(screen, "{}: {asker} asks", self.change_id)?;
                screen.paragraph(&self.question, BOLD)?;
            }
            None => {
                let Counts { high, medium, low } = self.issues;
                let id = &self.change_id;
                writeln!(screen, "{id}: {high} HIGH, {medium} MEDIUM, {low} LOW issues")?;
                writeln!(screen, "{BOLD}{}{BOLD:#}", self.question)?;
            }
        }
        for offered in &self.choices {
            let commands: Vec<String> = offered.commands.iter().map(NextStep::to_string).collect();
            writeln!(screen, "\n  {}\n    {}", offered.label, commands.join(" && "))?;
        }
        if self.asker.is_some() {
            let answer = CommandLine::from(&Command::Decide.on(&self.change_id).arg("answer"));
            let answer = answer.placeholder("--note \"<your answer>\"");
            return writeln!(screen, "\nTo answer in your own words: {answer}");
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
            asker: Some("gemini".to_owned()),
            choices: vec![Offered {
                choice: answer.name(),
                label: answer.label(gate).to_owned(),
                commands,
            }],
            change_id,
        }
    }
}

/// A question of an agent, in the reports of other commands.
#[derive(Debug, Serialize)]
pub(super) struct AgentQuestionReport {
    /// The step in which it was asked.
    step: StepName,
    /// The agent that asks.
    asker: String,
    /// What it asks.
    pub(super) question: Prose,
    /// Answers that it suggests.
    pub(super) choices: Vec<Line>,
    /// When it was asked.
    asked_at: Stamp,
    /// What was answered, until the agent is given it.
    pub(super) answer: Option<Prose>,
}

impl AgentQuestionReport {
    pub(super) fn new(question: &AgentQuestion) -> Self {
        Self {
            step: question.step.clone(),
            asker: question.asker(),
            question: question.asked.question.clone(),
            choices: question.asked.choices.clone(),
            asked_at: question.at,
            answer: question.answer.clone(),
        }
    }

    /// Who asks what, in one paragraph.
    pub(super) fn line(&self) -> String {
        format!("{} asks: {}", self.asker, self.question.as_str().replace('\n', " "))
    }

    #[cfg(test)]
    pub(super) fn sample() -> Self {
        Self {
            step: StepName::ProposalGen,
            asker: "gemini".to_owned(),
            question: Prose::new("Which providers can people sign in with?"),
            choices: vec![Line::new("GitHub only"), Line::new("GitHub and Google")],
            asked_at: "2026-11-04T10:00:00Z".parse().unwrap(),
            answer: Some(Prose::new("GitHub only")),
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
