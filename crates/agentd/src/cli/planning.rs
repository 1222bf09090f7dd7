//! What `plan`, `proposal`, `challenge` and `reproposal` share: how they begin, what they
//! print at the end, and with which exit code.

mod report;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::next_step::{Command, NextStep};
use agentd_core::state::{AgentQuestion, Placement, Track};
use agentd_engine::opening;
use agentd_engine::store::{Project, StoreError};
use agentd_engine::workflow::begin::{
    self, Clarify, CodeAt, CodeStep, CostConsent, Person, Planner, Prepared, Question, Request,
};
use agentd_engine::workflow::{self, Mode, Report, WorkflowError};

use self::report::Issues;
pub(super) use self::report::WorkflowReport;
#[cfg(test)]
pub(super) use self::report::earlier_issue;
use super::Context;
use super::agents_setup::{AgentRun, agents_for, root_is_text};
use super::{clarify, decide};
use crate::error::CommandError;
use crate::ui::ask;
use crate::ui::progress::ProgressUi;
use crate::ui::progress::activity::Roots;

/// What `--git` takes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum GitArg {
    /// Work on the branch `agentd/<id>`.
    Branch,
    /// Work in a worktree next to the project, on that branch.
    Worktree,
    /// Work in the current checkout.
    InPlace,
}

/// How what is meant is found out.
#[derive(Debug, clap::Args)]
pub(crate) struct ClarifyArgs {
    /// Don't ask questions about the change first.
    #[arg(long)]
    pub(crate) skip_clarify: bool,

    /// Read the answers to the questions from a JSON file, or from standard input if `-`.
    #[arg(long, value_name = "FILE", conflicts_with = "skip_clarify")]
    pub(crate) answers: Option<String>,
}

/// What a change begins with.
pub(crate) struct Begin<'b> {
    pub(crate) description: Option<&'b str>,
    pub(crate) clarify: &'b ClarifyArgs,
    pub(crate) track: Option<Track>,
    pub(crate) git: Option<GitArg>,
    /// Whether it may cost more than is spent without asking.
    pub(crate) yes: bool,
    /// Whether somebody is there to answer questions.
    pub(crate) person: Person,
}

/// Reads a text from a file, or from standard input.
pub(crate) fn read_text(file: &str, kind: Kind) -> Result<String, CommandError> {
    const MAX: u64 = 1 << 20;
    let unreadable = |error: &dyn std::fmt::Display| {
        CommandError::new(kind, format!("cannot read {file}")).cause(error.to_string())
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

/// Finds out who plans, and asks if only a person can say.
pub(crate) fn find_planner(context: &Context, agents: &mut AgentRun) -> Result<(), CommandError> {
    let mut answer = None;
    loop {
        match begin::find_planner(&mut agents.agents, answer, person(context))? {
            Planner::Configured | Planner::Builtin => return Ok(()),
            Planner::Ask(why) => {
                context.ui.note(&why.to_string());
                answer = Some(agents.cancel.while_waiting(ask::builtin)?);
            }
        }
    }
}

/// Who decides: a person, unless the configuration or the command line says otherwise.
pub(crate) fn mode(agents: &AgentRun, auto: bool) -> Mode {
    if auto || !agents.config.workflow.human_in_loop { Mode::Automatic } else { Mode::HumanInLoop }
}

/// The id of a change, from the command line.
pub(crate) fn new_id(text: &str) -> Result<ChangeId, CommandError> {
    ChangeId::new(text).map_err(|error| {
        let wrong = CommandError::usage(error.to_string());
        if text.contains(' ') {
            wrong.run("the ID comes first", super::begin())
        } else {
            wrong.hint("an ID consists of a-z, 0-9 and hyphens, such as `add-oauth`")
        }
    })
}

/// The change that is to be planned: one that is named may be new.
pub(crate) fn change_to_plan(
    context: &Context,
    project: &Project,
    id: Option<&str>,
) -> Result<ChangeId, CommandError> {
    match id {
        Some(id) => new_id(id),
        None => Ok(context.change(project, None)?.id().clone()),
    }
}

/// The project. In a repository that agentd was not set up in, the least is set up that a
/// plan needs: a person who runs `agentd plan` there wants one.
pub(crate) fn project(context: &Context) -> Result<Project, CommandError> {
    match opening::root_of(&context.start) {
        Err(StoreError::NotInitialised { suggested, .. }) if suggested.join(".git").exists() => {
            root_is_text(&suggested)?;
            let project = context.project_at(&suggested)?;
            super::init::set_up_least(&project, super::init::players_here(&suggested))?;
            context.ui.note(&format!(
                "agentd is set up in {}; `agentd init` adds what agents need to know of it",
                suggested.join("agentd").display()
            ));
            Ok(project)
        }
        root => context.project_at(&root?),
    }
}

/// Gets a change ready to be planned, and asks what only a person can answer. Returns the agents,
/// who may have to work in another project by now.
pub(crate) fn prepare(
    context: &Context,
    mut agents: AgentRun,
    id: &ChangeId,
    begin: &Begin<'_>,
) -> Result<AgentRun, CommandError> {
    let clarify = match &begin.clarify.answers {
        Some(file) => Clarify::File { name: file.clone(), text: clarify::read_answers(file)? },
        None if begin.clarify.skip_clarify => Clarify::Skip,
        None => Clarify::Ask,
    };
    let mut request = Request {
        description: begin.description,
        clarify,
        track: begin.track,
        placement: begin.git.map(Placement::from),
        cost: if begin.yes { CostConsent::Given } else { CostConsent::Ask },
        person: begin.person,
    };
    loop {
        let prepared = run_workflow(context, &agents, id, |w| begin::prepare(w, &mut request))?;
        match prepared {
            Prepared::Ready => return Ok(agents),
            Prepared::Moved(root) => agents = moved(context, agents, &root, id)?,
            Prepared::Ask(Question::Clarify(questions)) => {
                let ask = || clarify::ask_person(&agents.project, &questions, Command::Plan);
                request.clarify = Clarify::Answered(agents.cancel.while_waiting(ask)?);
            }
            Prepared::Ask(Question::Placement(git)) => {
                let ask = || ask::git_workflow(&git, id);
                request.placement = Some(agents.cancel.while_waiting(ask)?);
            }
            Prepared::Ask(Question::Cost(question)) => {
                let ask = || ask::accept_cost(&question);
                if !agents.cancel.while_waiting(ask)? {
                    return Err(question.decline().into());
                }
                request.cost = CostConsent::Given;
            }
        }
    }
}

/// The agents for a change that has moved into its worktree. The lock on where it was is released.
fn moved(
    context: &Context,
    agents: AgentRun,
    root: &Path,
    id: &ChangeId,
) -> Result<AgentRun, CommandError> {
    let (roles, played) = (agents.config.roles, agents.played());
    drop(agents);
    let mut there = agents_for(context, &context.project_at(root)?, id)?;
    // A person may have agreed to the built-in agent, which is for this command only.
    if roles.planner == AgentKind::Builtin {
        there.agents.config = there.agents.config.with_roles(roles);
    }
    there.have_played(&played);
    Ok(there)
}

/// Whether somebody sits at a terminal.
pub(crate) fn person(context: &Context) -> Person {
    if context.ui.can_prompt() { Person::Present } else { Person::Absent }
}

impl From<GitArg> for Placement {
    fn from(arg: GitArg) -> Self {
        match arg {
            GitArg::Branch => Self::Branch,
            GitArg::Worktree => Self::Worktree,
            GitArg::InPlace => Self::InPlace,
        }
    }
}

/// Asks a person what an agent wants to know, and records the answer (G6).
pub(crate) fn answer_agent(
    context: &Context,
    agents: &AgentRun,
    id: &ChangeId,
    question: &AgentQuestion,
) -> Result<(), CommandError> {
    let root = agents.project.root();
    let text = agents.cancel.while_waiting(|| ask::agent_question(id, question, root))?;
    decide::record_answer(context, &agents.project, id, &text, Some(question))?;
    Ok(())
}

/// Runs a workflow on a change, with its progress on the terminal.
pub(crate) fn run_workflow<T>(
    context: &Context,
    agents: &AgentRun,
    change: &ChangeId,
    work: impl FnOnce(&mut workflow::Workflow<'_>) -> Result<T, WorkflowError>,
) -> Result<T, CommandError> {
    agents.warn_once(&context.ui);
    let roots = Roots::new([agents.project.root(), agents.work_tree.as_path()]);
    let display = ProgressUi::new(context.ui.progress, roots, Some(agents.cancel.clone()));
    let mut display = display.continued_by(&again(context, change).to_string());
    let now = || context.now();
    let mut watch = |event: workflow::Progress<'_>| display.watch(&event);
    let mut workflow =
        workflow::Workflow::new(agents, change.clone(), &now, &mut watch, agents.lock());
    let result = work(&mut workflow);
    agents.have_played(workflow.played());
    agents.have_shown(display.found());
    drop(display);
    result.map_err(|error| {
        show_findings(context, &error);
        CommandError::from(error).for_change(change)
    })
}

/// The command that is running, to be started again.
fn again(context: &Context, change: &ChangeId) -> CommandLine {
    let is_it = |word: &str| Command::ALL.iter().find(|command| command.name() == word);
    match context.command_line.split(' ').find_map(is_it) {
        Some(command) => CommandLine::from(&command.on(change)),
        None => CommandLine::agentd(["status", change.as_str()]),
    }
}

/// What remains wrong is printed before the exit (E3.5).
fn show_findings(context: &Context, error: &WorkflowError) {
    if let WorkflowError::Format { reports, .. } = error
        && !context.ui.json
    {
        context.ui.show_findings(reports);
    }
}

/// A change whose code is worked on, in its worktree.
pub(crate) struct CodeWork {
    pub(crate) id: ChangeId,
    pub(crate) agents: AgentRun,
}

/// Gets a change ready for work on its code: agents run where git says that it is worked on.
pub(crate) fn building(
    context: &Context,
    id: Option<&str>,
    step: CodeStep,
) -> Result<CodeWork, CommandError> {
    let project = context.project_of(id)?;
    let change = context.change(&project, id)?;
    let id = change.id().clone();
    let agents = agents_for(context, &project, &id)?;
    let agents = place(context, agents, &id, step, person(context))?;
    Ok(CodeWork { id, agents })
}

/// Gets the directory ready in which the code of a change is worked on. Returns the agents, who may
/// have to work in another project by now.
pub(crate) fn place(
    context: &Context,
    mut agents: AgentRun,
    id: &ChangeId,
    step: CodeStep,
    person: Person,
) -> Result<AgentRun, CommandError> {
    let mut placement = None;
    loop {
        let place = |w: &mut workflow::Workflow<'_>| begin::place_code(w, step, placement, person);
        match run_workflow(context, &agents, id, place)? {
            CodeAt::Nowhere | CodeAt::Here => return Ok(agents),
            CodeAt::Moved(root) => agents = moved(context, agents, &root, id)?,
            CodeAt::Ask(git) => {
                let ask = || ask::git_workflow(&git, id);
                placement = Some(agents.cancel.while_waiting(ask)?);
            }
        }
    }
}

impl CodeWork {
    /// Prints the result and says how the command ends.
    pub(crate) fn finish(
        &self,
        context: &Context,
        report: &Report,
        exit_code: bool,
    ) -> Result<ExitCode, CommandError> {
        let outcome = Outcome::new(&self.id, report, &self.agents);
        finish(context, &Outcome { exit_code, ..outcome })
    }
}

/// The result of a command that works on a plan.
pub(crate) struct Outcome<'o> {
    pub(crate) change: &'o ChangeId,
    pub(crate) report: &'o Report,
    pub(crate) mode: Mode,
    /// The agents that were called, by the role that they played.
    pub(crate) agents: BTreeMap<Role, AgentKind>,
    /// Whether a verdict that waits for a person is a failure too (C10).
    pub(crate) exit_code: bool,
    /// Whether the person has seen the issues already.
    pub(crate) shown: bool,
    /// What comes next, where the person has just said it.
    pub(crate) next: Option<Vec<NextStep>>,
}

impl<'o> Outcome<'o> {
    /// The result of a command that asks nobody: what comes next is for the report to say.
    pub(crate) fn new(change: &'o ChangeId, report: &'o Report, agents: &AgentRun) -> Self {
        let shown = agents.has_shown(report);
        let (mode, agents) = (mode(agents, false), agents.played());
        Self { change, report, mode, agents, exit_code: false, shown, next: None }
    }
}

/// Prints the result and says how the command ends.
pub(crate) fn finish(context: &Context, outcome: &Outcome<'_>) -> Result<ExitCode, CommandError> {
    let Outcome { change, report, .. } = outcome;
    let next = outcome.next.clone().unwrap_or_else(|| match person(context) {
        Person::Present => report.next_for_people.clone(),
        Person::Absent => report.next.clone(),
    });
    let issues = if outcome.shown { Issues::Seen } else { Issues::New };
    let agents = outcome.agents.clone();
    context.ui.print(&WorkflowReport::new(change, report, agents, next, issues))?;
    Ok(if report.failed(outcome.mode, outcome.exit_code) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
