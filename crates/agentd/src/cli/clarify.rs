mod report;

use std::process::ExitCode;

use agentd_core::command_line::CommandLine;
use agentd_core::document::clarifications::{self, Answered};
use agentd_core::document::questions::Questions;
use agentd_core::error_kind::Kind;
use agentd_core::hint::Hint;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::next_step::Command;
use agentd_core::state::State;
use agentd_engine::change::documents;
use agentd_engine::store::{Change, Project};
use agentd_engine::workflow::Workflow;
use agentd_engine::workflow::begin::{self, ProposedQuestions};
use agentd_engine::workflow::clarify;

use self::report::AnswerReport;
pub(super) use self::report::{ClarificationsReport, ClarifyReport, QuestionsReport};
use super::Context;
use super::agents_setup::{CallArgs, agents_for};
use super::planning::{self, run_workflow};
use crate::error::CommandError;
use crate::ui::ask::{STOPPED, not_asked};
use crate::ui::questions as asking;

/// Answer open questions about a change before planning it.
///
/// The planner reads the project and proposes 3 to 5 questions. You answer them with the arrow
/// keys, and the answers are written to clarifications.md. A new change is created from the
/// description. The questions are kept: if you stop, the same command asks them again without
/// calling the planner.
///
/// Without a terminal, `--json` proposes the questions and prints them, and
/// `--answers` takes the answers: either complete entries,
/// `{"answers": [{"topic": "…", "question": "…", "answer": "…", "rationale": "…"}]}`,
/// or, for proposed questions, `{"<header>": "<label, or your own words>"}`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd clarify add-oauth \"Let people log in with Google\"\n  agentd clarify add-oauth --json\n  agentd clarify add-oauth --answers answers.json\n  agentd clarify add-oauth --show"
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// What you want; required for a new change.
    description: Option<String>,

    /// Read the answers from a JSON file, or from standard input if `-`.
    #[arg(long, value_name = "FILE", conflicts_with = "show")]
    answers: Option<String>,

    /// Show the questions and answers, without asking.
    #[arg(long)]
    show: bool,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    if args.show {
        return show(context, &project, &context.change(&project, args.id.as_deref())?);
    }
    let id = which(context, &project, args)?;
    if let Some(file) = &args.answers {
        let text = read_answers(file)?;
        // Read before anything is begun, so that a mistake leaves nothing behind.
        let answers = begin::parse_answers(&project, &id, file, &text)?;
        let state = started(context, &project, &id, args.description.as_deref())?;
        return write(context, &project, &state, &answers);
    }
    if !context.ui.json && !context.ui.can_prompt() {
        return Err(CommandError::new(Kind::NoTerminal, "there is no terminal to ask on")
            .hints(without_terminal(&id, args.description.as_deref())));
    }
    let state = started(context, &project, &id, args.description.as_deref())?;
    let (asked, cancel) = match clarify::kept_or_none(&project, &id)? {
        Some(questions) => (ProposedQuestions { questions, cost_usd: 0.0 }, None),
        None => {
            let agents = agents_for(context, &project, &id)?;
            let propose = |w: &mut Workflow<'_>| begin::propose_questions(w, &state);
            let asked = run_workflow(context, &agents, &id, propose)?;
            (asked, Some(agents.cancel.clone()))
        }
    };
    if context.ui.json {
        return print_questions(context, &state, &asked.questions, asked.cost_usd);
    }
    let ask = || ask_person(&project, &asked.questions, Command::Clarify);
    let answers = match cancel {
        Some(cancel) => cancel.while_waiting(ask),
        None => ask(),
    }?;
    write(context, &project, &state, &answers)
}

/// How to clarify a change in two commands. One that does not exist yet needs its description.
fn without_terminal(id: &ChangeId, description: Option<&str>) -> [Hint; 2] {
    let clarify = || CommandLine::agentd(["clarify", id.as_str()]);
    [
        Hint::run("print the questions", clarify().args(description).args(["--json"])),
        Hint::run("then answer them", clarify().args(["--answers", "answers.json"])),
    ]
}

/// The change that is meant; with a description it may be new.
fn which(context: &Context, project: &Project, args: &Args) -> Result<ChangeId, CommandError> {
    match (&args.id, &args.description) {
        (Some(id), Some(_)) => {
            ChangeId::new(id).map_err(|error| CommandError::usage(error.to_string()))
        }
        (id, _) => match context.change(project, id.as_deref()) {
            Ok(change) => Ok(change.id().clone()),
            Err(error) if error.kind == Kind::NoSuchChange => {
                let id = id.as_deref().unwrap_or("<id>");
                if super::archived(project, id).is_some() {
                    return Err(error);
                }
                Err(error.run(
                    "start it",
                    CommandLine::agentd(["clarify", id]).placeholder("\"<what you want>\""),
                ))
            }
            Err(error) => Err(error),
        },
    }
}

fn started(
    context: &Context,
    project: &Project,
    id: &ChangeId,
    description: Option<&str>,
) -> Result<State, CommandError> {
    Ok(clarify::begin(project, id, description, None, &context.holder(), context.now())?)
}

/// Asks on the terminal. Stopping loses nothing: what was answered is offered the next time.
pub(super) fn ask_person(
    project: &Project,
    questions: &Questions,
    again: Command,
) -> Result<Vec<Answered>, CommandError> {
    let id = &questions.change_id;
    let mut given = clarify::given(project, id);
    asking::ask(&questions.questions, &mut given, project.root()).map_err(|error| {
        let mut error = not_asked(error);
        if error.kind != Kind::Interrupted {
            return error;
        }
        let kept = clarify::keep_given(project, id, &given).is_ok() && !given.is_empty();
        if kept && error.message == STOPPED {
            error.message = format!("{STOPPED} Your answers are kept.");
            return error.run("continue", &again.on(id));
        }
        let purpose = if kept { "your answers are kept; continue" } else { "answer them later" };
        error.run(purpose, &again.on(id))
    })
}

/// Reads a file with answers, or standard input.
pub(super) fn read_answers(file: &str) -> Result<String, CommandError> {
    planning::read_text(file, Kind::AnswersUnreadable)
}

fn save(
    context: &Context,
    project: &Project,
    id: &ChangeId,
    answers: &[Answered],
) -> Result<agentd_engine::tools::Written, CommandError> {
    Ok(clarify::write(project, id, answers, &context.holder(), context.now())?)
}

fn write(
    context: &Context,
    project: &Project,
    state: &State,
    answers: &[Answered],
) -> Result<ExitCode, CommandError> {
    let id = &state.change_id;
    let written = save(context, project, id, answers)?;
    context.ui.print(&ClarifyReport {
        action: "clarified",
        change_id: id.clone(),
        phase: state.phase,
        file: written.path.as_str().to_owned(),
        answers: answers.len(),
        next: vec![Command::Plan.on(id)],
    })?;
    Ok(ExitCode::SUCCESS)
}

fn print_questions(
    context: &Context,
    state: &State,
    questions: &Questions,
    cost_usd: f64,
) -> Result<ExitCode, CommandError> {
    let id = &state.change_id;
    context.ui.print(&QuestionsReport {
        action: "questions_proposed",
        change_id: id.clone(),
        phase: state.phase,
        questions: questions.questions.clone(),
        cost_usd,
        next: vec![Command::Clarify.on(id).arg("--answers").arg("answers.json")],
    })?;
    Ok(ExitCode::SUCCESS)
}

fn show(context: &Context, project: &Project, change: &Change) -> Result<ExitCode, CommandError> {
    let id = change.id();
    let questions = clarify::kept_or_none(project, id)?;
    let text = change.read_if_exists(&ChangeFile::Clarifications)?;
    let answered = text.map(|text| clarifications::parse(&text).value.questions);
    context.ui.print(&ClarificationsReport {
        action: "shown",
        change_id: id.clone(),
        clarified: answered.is_some(),
        needed: begin::needs_answers(change, documents::load_state_if_begun(change)?.as_ref())?,
        questions: questions.map(|kept| kept.questions).unwrap_or_default(),
        answers: answered.into_iter().flatten().map(AnswerReport::from).collect(),
    })?;
    Ok(ExitCode::SUCCESS)
}
