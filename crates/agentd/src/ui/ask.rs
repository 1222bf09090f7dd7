//! The questions of the workflows. Whether somebody can be asked, the caller has found out
//! ([`Ui::can_prompt`](super::Ui::can_prompt)).

use std::path::Path;

use agentd_core::agent::AgentKind;
use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_core::hint::Hint;
use agentd_core::ids::ChangeId;
use agentd_core::next_step::{Command, NextStep};
use agentd_core::state::{AgentQuestion, Placement};
use agentd_core::text::printable;
use agentd_engine::change::glance::Glance;
use agentd_engine::git::Git;
use agentd_engine::workflow::begin::{self, BuiltinAnswer, CostQuestion, PlacementQuestion};
use agentd_engine::workflow::decisions::{Gate, PlanAnswer, PlanQuestion};

use super::prompt::{self, Choice, Menu, NoAnswer};
use crate::error::CommandError;

/// What is said if somebody leaves a question with Esc.
pub(crate) const STOPPED: &str = "Stopped.";

/// Where there is nothing more to say.
const NOTHING: &str = "";

/// Asks what to do with a plan (P24, C34). What it is about was shown before.
pub(crate) fn plan(
    change: &ChangeId,
    question: &PlanQuestion,
    has_diff: bool,
) -> Result<PlanAnswer, CommandError> {
    let gate = question.gate;
    let answers = question.terminal_answers(has_diff);
    let later = match gate {
        Gate::Approved => Hint::run("implement it later", &Command::Impl.on(change)),
        Gate::NeedsRevision | Gate::ManyRounds(_) => {
            Hint::run("answer it later", &Command::Plan.on(change))
        }
    };
    choose(&question.text(), plan_offers(answers, gate), NOTHING, later)
}

fn plan_offers(answers: Vec<PlanAnswer>, gate: Gate) -> Vec<Offer<PlanAnswer>> {
    let offer =
        |answer: PlanAnswer| Offer::new(answer, answer.label(gate)).meaning(answer.details(gate));
    answers.into_iter().map(offer).collect()
}

/// Asks which decision to record about a plan. Its issues were shown before.
pub(crate) fn decision(
    change: &ChangeId,
    question: &PlanQuestion,
) -> Result<PlanAnswer, CommandError> {
    let later = Hint::run("answer it later", &Command::Decide.on(change));
    let offers = plan_offers(question.decisions(), question.gate);
    choose(&question.text(), offers, NOTHING, later)
}

/// Who fixes the issues of a plan that a person has looked at (P24).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhoFixes {
    /// They do, and come back.
    Person,
    /// The planner, to whom they say how.
    Planner,
}

/// Asks who fixes the issues, which were shown before.
pub(crate) fn who_fixes(change: &ChangeId) -> Result<WhoFixes, CommandError> {
    let offers = vec![
        Offer::new(WhoFixes::Person, "Fix manually")
            .meaning("You edit the documents of the plan. The next `agentd plan` challenges it."),
        Offer::new(WhoFixes::Planner, "Let me help: the planner fixes them as you say")
            .meaning("You are asked what it should know. Then the plan is challenged again."),
    ];
    let later = Hint::run("answer it later", &Command::Plan.on(change));
    choose("Fix manually or let me help?", offers, NOTHING, later)
}

/// Asks what the planner should know; enter alone says nothing more than the review.
pub(crate) fn note_for_planner(change: &ChangeId, root: &Path) -> Result<String, CommandError> {
    let decide =
        CommandLine::from(&Command::Decide.on(change).arg("fix")).placeholder("--note \"…\"");
    let hint = Hint::run("say it later", decide);
    let mut menu = text("What should the planner know?");
    menu.may_be_empty = true;
    "optional; enter alone continues".clone_into(&mut menu.remark);
    Ok(answered(prompt::ask(&mut menu, root), hint)?.own.unwrap_or_default())
}

/// Asks what an agent asks (G6).
pub(crate) fn agent_question(
    change: &ChangeId,
    question: &AgentQuestion,
    root: &Path,
) -> Result<String, CommandError> {
    let later = Hint::run("answer it later", &Command::Decide.on(change));
    let choices = question.asked.choices.iter();
    let choices: Vec<Choice> = choices.map(|it| choice(printable(it.as_str()))).collect();
    let asked =
        format!("{} asks: {}", question.asker(), printable(question.asked.question.as_str()));
    let mut menu = Menu::new(asked, choices).with_own_words();
    let answer = answered(prompt::ask(&mut menu, root), later)?;
    let picked = answer.picks.first().and_then(|at| question.asked.choices.get(*at));
    Ok(answer.own.or_else(|| picked.map(ToString::to_string)).unwrap_or_default())
}

/// Asks which of the open changes is to be planned; none for a new one.
pub(crate) fn which_change(open: &[Glance]) -> Result<Option<String>, CommandError> {
    if open.is_empty() {
        return Ok(None);
    }
    let new = Offer::new(None, "Something new").meaning("You are asked what you want.");
    let offers = std::iter::once(new).chain(open.iter().map(|glance| {
        let Offer { value, text, details } = change_offer(glance);
        Offer { value: Some(value), text, details }
    }));
    let hint = Hint::Text("name it: agentd plan <id>".to_owned());
    choose("Which change?", offers.collect(), NOTHING, hint)
}

/// Asks which of the changes that wait is decided about.
pub(crate) fn which_waiting(waiting: &[Glance]) -> Result<String, CommandError> {
    let hint = Hint::Text("name it: agentd decide <id>".to_owned());
    choose("Which change?", waiting.iter().map(change_offer).collect(), NOTHING, hint)
}

/// A change, where it stands, and what it is about.
fn change_offer(glance: &Glance) -> Offer<String> {
    let id = glance.summary.change_id.to_string();
    let details = [glance.state, &*glance.summary.title];
    let details: Vec<&str> = details.into_iter().filter(|text| !text.is_empty()).collect();
    Offer::new(id.clone(), id).meaning(&details.join(" · "))
}

/// Asks what a new change is to do.
pub(crate) fn description(root: &Path) -> Result<String, CommandError> {
    let hint = Hint::Text("say it: agentd plan <id> \"<what you want>\", or --file".to_owned());
    let mut menu = text("What do you want?");
    "One sentence is enough to begin with; what it leaves open is asked next."
        .clone_into(&mut menu.remark);
    Ok(answered(prompt::ask(&mut menu, root), hint)?.own.unwrap_or_default())
}

/// What is said when a new change is to be named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// This.
    As(String),
    /// What it is to do is to be said again.
    Back,
}

/// Asks for the ID of a new change. `suggested` is made from its description, or what was typed
/// before; `problem` says why that cannot be.
pub(crate) fn new_id(
    suggested: &str,
    problem: Option<&str>,
    can_go_back: bool,
    root: &Path,
) -> Result<Named, CommandError> {
    let hint = Hint::Text("say it: agentd plan <id> \"<what you want>\"".to_owned());
    let mut menu = text("What is it called?").answered(&[], Some(suggested));
    menu.can_go_back = can_go_back;
    "lower-case letters, digits and hyphens; names the branch and the directory"
        .clone_into(&mut menu.remark);
    if let Some(problem) = problem {
        menu.set_problem(problem);
    }
    match prompt::ask(&mut menu, root) {
        Err(NoAnswer::Back) => {
            let _ = prompt::take_back();
            Ok(Named::Back)
        }
        answer => Ok(Named::As(answered(answer, hint)?.own.unwrap_or_default())),
    }
}

/// Asks which agents are used; those on PATH are marked.
pub(crate) fn agents(
    names: &[&str],
    marked: &[bool],
    hint: Hint,
) -> Result<Vec<usize>, CommandError> {
    let choices = names.iter().map(|name| choice(*name)).collect();
    let mut menu = Menu::new("Which agents work on this project?", choices);
    menu.several = true;
    menu.marked = marked.to_vec();
    let remark = if marked.contains(&true) {
        "agents on PATH are marked"
    } else {
        "none of them is on PATH; without one, plans are drafted and checked by rules"
    };
    remark.clone_into(&mut menu.remark);
    Ok(answered(prompt::ask(&mut menu, Path::new("/")), hint)?.picks)
}

fn text(question: &str) -> Menu {
    Menu::new(question, Vec::new()).with_own_words()
}

fn choice(label: impl Into<String>) -> Choice {
    Choice { label: label.into(), ..Choice::default() }
}

/// What a person says where the session of the planner is gone (C31).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionAnswer {
    /// Begin a new one.
    Fresh,
    /// Leave it here.
    Stop,
}

/// Asks whether to begin a new session of the planner.
pub(crate) fn lost_session(change: &ChangeId) -> Result<SessionAnswer, CommandError> {
    let offers = vec![
        Offer::new(
            SessionAnswer::Fresh,
            "Begin a new one, with the plan and its review (recommended)",
        ),
        Offer::new(SessionAnswer::Stop, "Stop here"),
    ];
    let fresh = &Command::Reproposal.on(change).arg("--fresh");
    let question = "The session in which the plan was written is gone. What next?";
    choose(question, offers, NOTHING, Hint::run("begin a new one later", fresh))
}

/// Asks whether the built-in agent is to plan. Why was shown before.
pub(crate) fn builtin() -> Result<BuiltinAnswer, CommandError> {
    let yes = Offer::new(BuiltinAnswer::Accept, "Yes, with the built-in agent");
    let no = Offer::new(BuiltinAnswer::Decline, "No, I will set up an agent first");
    choose(
        "Draft and check the plan by rules, without a model?",
        vec![yes, no],
        NOTHING,
        Hint::edit("name agents in [roles]", "agentd/config.toml"),
    )
}

/// What a person says to what a repository's settings would run (T7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustAnswer {
    /// No.
    No,
    /// Yes, until the settings change.
    Yes,
    /// Yes, this time.
    Once,
}

/// Asks whether to run it. What it is was shown before; enter alone agrees to nothing.
pub(crate) fn trust() -> Result<TrustAnswer, CommandError> {
    let offers = vec![
        Offer::new(TrustAnswer::No, "No, run nothing of it"),
        Offer::new(TrustAnswer::Yes, "Yes, until one of these settings changes"),
        Offer::new(TrustAnswer::Once, "Yes, this once"),
    ];
    choose(
        "Do you trust it?",
        offers,
        NOTHING,
        Hint::run("agree beforehand", &NextStep::new(Command::Trust)),
    )
}

/// Asks whether to give a change up. Enter alone keeps it.
pub(crate) fn drop_change(change: &ChangeId) -> Result<bool, CommandError> {
    let offers = vec![Offer::new(false, "No, keep it"), Offer::new(true, "Yes, drop it")];
    let question = format!("Drop {change}?");
    choose(&question, offers, NOTHING, Hint::Text("without asking: --yes".to_owned()))
}

/// Asks whether the commands that were found are right. They were shown before.
pub(crate) fn write_commands() -> Result<bool, CommandError> {
    let offers = vec![
        Offer::new(true, "Yes, write them to agentd/config.toml"),
        Offer::new(false, "No, I will set them myself"),
    ];
    let question = "Is this how the project is tested, checked and built?";
    choose(question, offers, NOTHING, Hint::Text("without asking: --yes".to_owned()))
}

/// Asks whether an agent is to be probed. What it may cost was shown before.
pub(crate) fn probe(agent: AgentKind) -> Result<bool, CommandError> {
    let offers =
        vec![Offer::new(true, format!("Yes, call {agent}")), Offer::new(false, "No, stop here")];
    let question = format!("Find out what {agent} can do?");
    choose(&question, offers, NOTHING, Hint::Text("without asking: --yes".to_owned()))
}

/// Asks whether agentd is for the whole repository or for one package of it.
pub(crate) fn whole_repository(package: &str) -> Result<bool, CommandError> {
    let package = printable(package);
    let offers = vec![
        Offer::new(false, format!("Here, in {package}")),
        Offer::new(true, "In the root of the repository, for all of it"),
    ];
    let question = format!("{package} is a package of its own. Where is agentd set up?");
    choose(&question, offers, NOTHING, Hint::Text("say it: --here or --root".to_owned()))
}

/// Asks whether a change may cost that much (W8). Enter alone spends nothing.
pub(crate) fn accept_cost(question: &CostQuestion) -> Result<bool, CommandError> {
    let offers = vec![Offer::new(false, "No, stop here"), Offer::new(true, "Yes, begin")];
    let text = format!("{}. Begin?", question.text());
    choose(&text, offers, NOTHING, Hint::Text("without asking: --yes".to_owned()))
}

/// Asks where a change is worked on (P6).
pub(crate) fn git_workflow(git: &Git, change: &ChangeId) -> Result<Placement, CommandError> {
    let PlacementQuestion { text, remark, offers } = begin::placement_question(git, change)?;
    let offers =
        offers.into_iter().map(|it| Offer::new(it.placement, it.label).meaning(it.meaning));
    let hint = "say it: --git branch, --git worktree or --git in-place";
    choose(&text, offers.collect(), &remark, hint.into())
}

/// Something to choose.
struct Offer<T> {
    value: T,
    text: String,
    /// What it means; may be empty.
    details: String,
}

impl<T> Offer<T> {
    fn new(value: T, text: impl Into<String>) -> Self {
        Self { value, text: text.into(), details: String::new() }
    }

    /// The same, with what it means.
    fn meaning(self, details: &str) -> Self {
        Self { details: details.to_owned(), ..self }
    }
}

/// Lets one of several be chosen; the first is where one starts.
fn choose<T>(
    question: &str,
    offers: Vec<Offer<T>>,
    remark: &str,
    hint: Hint,
) -> Result<T, CommandError> {
    let choices = offers
        .iter()
        .map(|offer| Choice { details: offer.details.clone(), ..choice(&offer.text) })
        .collect();
    let mut menu = Menu::new(question, choices);
    remark.clone_into(&mut menu.remark);
    // Nothing is typed here, so no editor is looked for.
    let answer = answered(prompt::ask(&mut menu, Path::new("/")), hint)?;
    let chosen = answer.picks.first().copied().unwrap_or(0);
    match offers.into_iter().nth(chosen) {
        Some(offer) => Ok(offer.value),
        None => Err(CommandError::new(Kind::Prompt, "nothing was chosen")),
    }
}

/// What was answered; `hint` says how to do without asking.
pub(crate) fn answered<T>(answer: Result<T, NoAnswer>, hint: Hint) -> Result<T, CommandError> {
    answer.map_err(|error| not_asked(error).hint(hint))
}

/// A question without an answer. Esc and Ctrl-C end the command; Esc is no
/// mistake.
pub(crate) fn not_asked(error: NoAnswer) -> CommandError {
    match error {
        NoAnswer::Stopped | NoAnswer::Back => {
            CommandError { message: STOPPED.to_owned(), ..CommandError::interrupted() }
        }
        NoAnswer::Interrupted => CommandError::interrupted(),
        NoAnswer::Failed(error) => {
            CommandError::new(Kind::Prompt, "cannot ask the question").cause(error.to_string())
        }
    }
}
