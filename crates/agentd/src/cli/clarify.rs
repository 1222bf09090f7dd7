use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use agentd_core::description::detailed_enough;
use agentd_core::document::answers;
use agentd_core::document::clarifications::{self, Answered};
use agentd_core::document::questions::Questions;
use agentd_core::error_kind::Kind;
use agentd_core::event::AgentEvent;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use agentd_core::next_step::Command;
use agentd_core::state::State;
use agentd_core::step_name::StepName;
use agentd_core::text::printable;
use agentd_engine::agents::step::Agents;
use agentd_engine::change::documents;
use agentd_engine::store::{Change, Project};
use agentd_engine::workflow::Progress;
use agentd_engine::workflow::clarify::{self, ClarifyError};
use serde_json::{Value, json};

use super::Context;
use super::agents_setup::agents_for;
use super::trust::TrustArg;
use crate::error::CommandError;
use crate::ui::progress::ProgressUi;
use crate::ui::{BOLD, DIM, questions as asking};

/// Ask what a change leaves open, before it is planned.
///
/// The planner looks at the project and proposes 3 to 5 questions; you answer them
/// with the arrow keys, and the answers are written into clarifications.md. A change
/// that is not there yet is begun with the description. Questions are kept: stopped
/// half-way, the same command asks them again without another call of the planner.
///
/// Without a terminal, `--json` proposes the questions and prints them, and
/// `--answers` takes the answers: either all that there is to say,
/// `{"answers": [{"topic": "…", "question": "…", "answer": "…", "rationale": "…"}]}`,
/// or, for questions that were proposed, `{"<header>": "<label, or your own words>"}`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd clarify add-oauth \"Let people log in with Google\"\n  agentd clarify add-oauth --json\n  agentd clarify add-oauth --answers answers.json\n  agentd clarify add-oauth --show"
)]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,

    /// What you want; needed where the change is new.
    description: Option<String>,

    /// Take the answers from this JSON file; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "show")]
    answers: Option<String>,

    /// Only show the questions and answers that there are.
    #[arg(long)]
    show: bool,

    #[command(flatten)]
    pub(super) trust: TrustArg,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    if args.show {
        return show(context, &project, &context.change(&project, args.id.as_deref())?);
    }
    let id = which(context, &project, args)?;
    if let Some(file) = &args.answers {
        let text = read_answers(file)?;
        // Read before anything is begun, so that a mistake leaves nothing behind.
        let answers = parse_answers(&project, &id, file, &text)?;
        let state = begin(context, &project, &id, args.description.as_deref())?;
        return write(context, &project, &state, &answers);
    }
    if !context.ui.json && !context.ui.can_prompt() {
        return Err(CommandError::new(Kind::NoTerminal, "there is no terminal to ask on")
            .hint(format!("let the questions be proposed and printed: {} --json", again(&id, args)))
            .hint(format!("then answer them: agentd clarify {id} --answers answers.json")));
    }
    let state = begin(context, &project, &id, args.description.as_deref())?;
    let (mut cost_usd, mut cancel) = (0.0, None);
    let questions = match kept(&project, &id)? {
        Some(questions) => questions,
        None => {
            let agents = agents_for(context, &project, &id)?;
            let proposed = propose(context, &agents, &state)?;
            cost_usd = proposed.report.cost_usd;
            cancel = Some(agents.cancel.clone());
            proposed.questions
        }
    };
    if context.ui.json {
        return print_questions(context, &state, &questions, cost_usd);
    }
    let answers = match cancel {
        Some(cancel) => cancel.while_waiting(|| ask_person(context, &questions)),
        None => ask_person(context, &questions),
    }?;
    write(context, &project, &state, &answers)
}

/// The command that was given, to be given again.
fn again(id: &ChangeId, args: &Args) -> String {
    match &args.description {
        Some(text) => format!("agentd clarify {id} {text:?}"),
        None => format!("agentd clarify {id}"),
    }
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
                Err(error.hint(format!("to begin it: agentd clarify {id} \"<what you want>\"")))
            }
            Err(error) => Err(error),
        },
    }
}

fn begin(
    context: &Context,
    project: &Project,
    id: &ChangeId,
    description: Option<&str>,
) -> Result<State, CommandError> {
    Ok(clarify::begin(project, id, description, &context.holder(), context.now())?)
}

fn kept(project: &Project, id: &ChangeId) -> Result<Option<Questions>, CommandError> {
    match clarify::kept(project, id) {
        // It is agentd's own file and can be made again; what is in it was not answered.
        Err(ClarifyError::Questions { .. }) => Ok(None),
        result => Ok(result?),
    }
}

/// Lets the planner propose questions, with its progress on the terminal.
fn propose(
    context: &Context,
    agents: &Agents,
    state: &State,
) -> Result<clarify::Proposed, CommandError> {
    let id = &state.change_id;
    let description = state.description.as_ref().map(ToString::to_string).unwrap_or_default();
    let (step, label) = (&StepName::Clarify, "Questions");
    let mut display = ProgressUi::new(&context.ui);
    let agent = agents.config.roles.planner;
    display.watch(&Progress::Started { step, label, agent, resumed: false });
    let started = Instant::now();
    let prompt = clarify::prompt(id, &description);
    let mut observer = |event: &AgentEvent<'_>| display.watch(&Progress::Agent(event));
    let proposed = clarify::propose(agents, id, prompt, &|| context.now(), &mut observer);
    match &proposed {
        Ok(proposed) => display.watch(&Progress::Done {
            step,
            label,
            summary: &agentd_core::text::counted(proposed.questions.questions.len(), "question"),
            usage: proposed.report.outcome.usage.unwrap_or_default(),
            cost_usd: proposed.report.cost_usd,
            duration: proposed.report.duration,
        }),
        Err(error) => {
            let (message, duration) = (error.to_string(), started.elapsed());
            display.watch(&Progress::Failed { step, label, message: &message, duration });
        }
    }
    Ok(proposed?)
}

/// Asks on the terminal. Whoever stops loses nothing but the answers of this time.
fn ask_person(context: &Context, questions: &Questions) -> Result<Vec<Answered>, CommandError> {
    asking::ask(&context.ui, &questions.questions).map_err(|error| match error.kind {
        Kind::Interrupted => {
            let id = &questions.change_id;
            error.hint(format!("nothing was written; the questions are kept: agentd clarify {id}"))
        }
        _ => error,
    })
}

fn read_answers(file: &str) -> Result<String, CommandError> {
    const MAX: u64 = 1 << 20;
    let unreadable = |error: &dyn std::fmt::Display| {
        CommandError::new(Kind::AnswersUnreadable, format!("{file} cannot be read"))
            .cause(error.to_string())
    };
    let mut text = String::new();
    let read = if file == "-" {
        std::io::stdin().lock().take(MAX + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(Path::new(file))
            .and_then(|file| file.take(MAX + 1).read_to_string(&mut text))
    };
    read.map_err(|error| unreadable(&error))?;
    if text.len() as u64 > MAX {
        return Err(unreadable(&format!("it is larger than {MAX} bytes")));
    }
    Ok(text)
}

fn parse_answers(
    project: &Project,
    id: &ChangeId,
    file: &str,
    text: &str,
) -> Result<Vec<Answered>, CommandError> {
    answers::parse(text, kept(project, id)?.as_ref()).map_err(|error| {
        CommandError::new(Kind::AnswersInvalid, format!("the answers in {file} cannot be used"))
            .cause(error.to_string())
            .hint(format!("what is asked: agentd clarify {id} --show"))
            .hint("the forms that are read: agentd clarify --help")
    })
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
    let next = [Command::Plan.on(id)];
    if context.ui.json {
        context.ui.print_json(&json!({
            "version": 1,
            "action": "clarified",
            "change_id": id,
            "phase": state.phase,
            "file": written.path.as_str(),
            "answers": answers.len(),
            "next": next,
        }))?;
    } else {
        let mut out = context.ui.out();
        let count = agentd_core::text::counted(answers.len(), "answer");
        writeln!(out, "{BOLD}{}{BOLD:#}: {count}", written.path)?;
        for next in next {
            writeln!(out, "Next: {next}")?;
        }
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_questions(
    context: &Context,
    state: &State,
    questions: &Questions,
    cost_usd: f64,
) -> Result<ExitCode, CommandError> {
    let id = &state.change_id;
    context.ui.print_json(&json!({
        "version": 1,
        "action": "questions_proposed",
        "change_id": id,
        "phase": state.phase,
        "questions": questions.questions,
        "cost_usd": cost_usd,
        "next": [Command::Clarify.on(id).arg("--answers").arg("answers.json")],
    }))?;
    Ok(ExitCode::SUCCESS)
}

fn show(context: &Context, project: &Project, change: &Change) -> Result<ExitCode, CommandError> {
    let id = change.id();
    let questions = kept(project, id)?;
    let text = change.read_if_exists(&ChangeFile::Clarifications)?;
    let answered = text.map(|text| clarifications::parse(&text).value.questions);
    if context.ui.json {
        let answers = answered.iter().flatten().map(|answered| {
            json!({ "topic": answered.topic, "question": answered.question,
                "answer": answered.answer, "rationale": answered.rationale })
        });
        let answers: Vec<Value> = answers.collect();
        let questions = questions.map(|kept| kept.questions).unwrap_or_default();
        context.ui.print_json(&json!({ "version": 1, "action": "shown", "change_id": id,
            "clarified": answered.is_some(), "questions": questions, "answers": answers }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = context.ui.out();
    if questions.is_none() && answered.is_none() {
        writeln!(out, "Nothing was asked about {id} yet.")?;
    }
    for question in questions.iter().flat_map(|kept| &kept.questions) {
        let several = if question.multi_select { " (several)" } else { "" };
        let (header, asked) = (question.header.as_str(), question.question.as_str());
        writeln!(out, "{BOLD}{}{BOLD:#}: {}{several}", printable(header), printable(asked))?;
        for (i, option) in question.options.iter().enumerate() {
            let mark = if i == 0 { " (recommended)" } else { "" };
            let label = printable(option.label.as_str());
            let means = printable(option.description.as_str());
            writeln!(out, "  - {label}{mark}{DIM}: {means}{DIM:#}")?;
        }
    }
    for answered in answered.iter().flatten() {
        let (topic, answer) = (answered.topic.as_str(), answered.answer.as_str());
        writeln!(out, "{BOLD}{}{BOLD:#} → {}", printable(topic), printable(answer))?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// How a change came to be clear enough to be planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clarified {
    /// The user said that it is.
    Skipped,
    /// It was clarified before.
    Before,
    /// The description says it all.
    DetailedEnough,
    /// So many questions were answered now.
    Now(usize),
}

/// What a command that plans was told about clarifying.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wish<'a> {
    /// `--skip-clarify`
    pub(crate) skip: bool,
    /// `--answers`
    pub(crate) answers: Option<&'a str>,
}

/// Sees to it that a change is clear before it is planned (P2, C29). The change has
/// been begun; on a terminal its planner is called for questions where none are kept.
pub(crate) fn ensure_clarified(
    context: &Context,
    agents: &Agents,
    change: &ChangeId,
    wish: Wish<'_>,
) -> Result<Clarified, CommandError> {
    let project = &agents.project;
    if let Some(file) = wish.answers {
        let answers = parse_answers(project, change, file, &read_answers(file)?)?;
        save(context, project, change, &answers)?;
        return Ok(Clarified::Now(answers.len()));
    }
    let there = project.change(change)?;
    if there.has(&ChangeFile::Clarifications)? {
        return Ok(Clarified::Before);
    }
    if wish.skip {
        return Ok(Clarified::Skipped);
    }
    let state = documents::load_state(&there)?;
    if state.description.as_ref().is_some_and(|text| detailed_enough(text.as_str())) {
        return Ok(Clarified::DetailedEnough);
    }
    if !context.ui.can_prompt() {
        return Err(missing(change));
    }
    let questions = match kept(project, change)? {
        Some(questions) => questions,
        None => propose(context, agents, &state)?.questions,
    };
    let answers = agents.cancel.while_waiting(|| ask_person(context, &questions))?;
    save(context, project, change, &answers)?;
    Ok(Clarified::Now(answers.len()))
}

/// Whether a change that is to be begun could be clarified at all, so that nothing is begun
/// that could not go on (C29).
pub(crate) fn can_be_clarified(
    context: &Context,
    project: &Project,
    id: &ChangeId,
    description: &str,
    wish: Wish<'_>,
) -> Result<(), CommandError> {
    if let Some(file) = wish.answers.filter(|file| *file != "-") {
        parse_answers(project, id, file, &read_answers(file)?)?;
        return Ok(());
    }
    let there = project.change(id);
    let clarified = there.is_ok_and(|c| c.has(&ChangeFile::Clarifications).unwrap_or_default());
    let clear = clarified || wish.skip || wish.answers.is_some() || detailed_enough(description);
    // Without a description the change cannot begin, and that is said elsewhere.
    if clear || context.ui.can_prompt() || description.trim().is_empty() {
        return Ok(());
    }
    Err(missing(id))
}

/// C29
fn missing(id: &ChangeId) -> CommandError {
    CommandError::new(
        Kind::ClarificationsMissing,
        format!("`{id}` has no clarifications.md, and there is no terminal to ask on"),
    )
    .cause("the description leaves questions open, and a plan would have to guess")
    .hint(format!("see what is asked: agentd clarify {id} --json"))
    .hint(format!("answer it: agentd clarify {id} --answers answers.json"))
    .hint("or plan without: --skip-clarify")
}

#[cfg(test)]
mod tests {
    use agentd_core::stamp::Stamp;
    use agentd_engine::opening;
    use agentd_engine::store::UserDirs;

    use super::*;
    use crate::ui::Ui;

    /// A project with a begun change, and no terminal.
    struct World {
        dir: tempfile::TempDir,
        context: Context,
        id: ChangeId,
    }

    impl World {
        fn new(description: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join("agentd/changes")).unwrap();
            let context = Context {
                ui: Ui { json: true },
                start: dir.path().to_owned(),
                command_line: "agentd plan".to_owned(),
                consent: agentd_engine::guard::trust::Consent::AsKept,
            };
            let id = ChangeId::new("add-login").unwrap();
            let project = opening::open_within_call(dir.path(), UserDirs::from_env()).unwrap();
            let now: Stamp = "2026-01-02T03:04:05Z".parse().unwrap();
            clarify::begin(&project, &id, Some(description), &context.holder(), now).unwrap();
            Self { dir, context, id }
        }

        fn ensure(&self, wish: Wish<'_>) -> Result<Clarified, CommandError> {
            let project = self.context.project()?;
            let agents = agents_for(&self.context, &project, &self.id)?;
            ensure_clarified(&self.context, &agents, &self.id, wish)
        }
    }

    /// C29
    #[test]
    fn a_plan_without_clarifications_is_an_error_unless_it_need_not_be_clarified() {
        let world = World::new("Add a login");
        let error = world.ensure(Wish::default()).unwrap_err();
        assert_eq!(error.kind, Kind::ClarificationsMissing);
        assert!(
            error.hints.iter().any(|hint| hint.to_string().contains("--skip-clarify")),
            "{error:?}"
        );
        assert!(
            error
                .hints
                .iter()
                .any(|hint| hint.to_string().contains("agentd clarify add-login --answers"))
        );
        let skip = Wish { skip: true, ..Wish::default() };
        assert_eq!(world.ensure(skip).unwrap(), Clarified::Skipped);
        let file = world.dir.path().join("answers.json");
        let answers = Wish { answers: file.to_str(), ..Wish::default() };
        assert_eq!(world.ensure(answers).unwrap_err().kind, Kind::AnswersUnreadable);
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(world.ensure(answers).unwrap_err().kind, Kind::AnswersInvalid);
        let text = r#"{"answers": [{"topic": "Lock", "question": "When?", "answer": "After 5"}]}"#;
        std::fs::write(&file, text).unwrap();
        assert_eq!(world.ensure(answers).unwrap(), Clarified::Now(1));
        assert_eq!(world.ensure(Wish::default()).unwrap(), Clarified::Before);
    }

    /// P2
    #[test]
    fn a_detailed_description_needs_no_questions() {
        let detailed =
            "The server must answer `POST /login` with 200 and a cookie for 30 days. ".repeat(6);
        let world = World::new(&detailed);
        assert_eq!(world.ensure(Wish::default()).unwrap(), Clarified::DetailedEnough);
    }
}
