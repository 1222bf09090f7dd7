mod target;

use std::path::PathBuf;
use std::process::ExitCode;

use agentd_core::ids::ChangeId;
use agentd_core::next_step::Command;
use agentd_core::state::Track;
use agentd_engine::insight::forecast::Wanted;
use agentd_engine::workflow::decisions::{
    self, Gate, NewDecision, PlanAnswer, PlanChoice, PlanQuestion,
};
use agentd_engine::workflow::{self, LostSession, Mode, Planned, Report, Workflow};

use self::target::Target;
use super::Context;
use super::agents_setup::{AgentRun, CallArgs, agents_for};
use super::planning::{self, GitArg, Outcome, run_workflow};
use super::show::ShownPlan;
use super::{forecast, implement};
use crate::error::CommandError;
use crate::ui::ask::{self, SessionAnswer, WhoFixes};
use crate::ui::editor;

/// Take a change from one sentence to an approved plan.
///
/// Without a description, asks what you want; without an ID, makes one from the description.
/// Clarifies what you want, sets up git, has the planner write the proposal, specs, and tasks,
/// checks them, and has another agent challenge them. If the plan needs revision, you decide
/// what to do; with `--auto`, the planner revises it by itself, up to
/// `workflow.planning_iterations` times. An approved plan can be implemented right away.
///
/// If interrupted, run the command again to resume; finished steps are not repeated.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd plan add-oauth \"Let people sign in with GitHub\"\n  agentd plan \"Let people sign in with GitHub\"    makes an ID from it\n  agentd plan add-oauth --file idea.md\n  agentd plan add-oauth                           resume\n  agentd plan fix-typo \"Say receive, not recieve\" --quick\n  agentd plan add-oauth \"…\" --auto --skip-clarify --git in-place --json     in CI"
)]
pub(crate) struct Args {
    /// Change ID, or what you want; optional if only one change is open.
    id: Option<String>,

    /// What you want; required for a new change, unless there is a terminal to ask on.
    description: Option<String>,

    /// Read what you want from a file, or from standard input if `-`.
    #[arg(long, short = 'F', value_name = "FILE", conflicts_with = "description")]
    file: Option<String>,

    /// Don't ask: revise and re-challenge until the plan is approved.
    #[arg(long)]
    auto: bool,

    /// Plan a small change in one call: no questions, no self-reviews.
    #[arg(long)]
    quick: bool,

    #[command(flatten)]
    clarify: planning::ClarifyArgs,

    /// Where to work: on a branch, in a worktree, or in the current checkout.
    #[arg(long, value_enum, value_name = "WORKFLOW")]
    git: Option<GitArg>,

    #[command(flatten)]
    cost: forecast::ForecastArgs,

    /// Also exit with 1 if the plan is waiting for a decision.
    #[arg(long)]
    exit_code: bool,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let target = Target::of(args)?;
    if args.cost.forecast {
        let questions = !args.clarify.skip_clarify && args.clarify.answers.is_none();
        let track = args.quick.then_some(Track::Quick);
        let wanted = Wanted { description: target.description.as_deref(), questions, track };
        return forecast::run(context, target.id.as_deref(), wanted);
    }
    let target = target.ask(context, args)?;
    let begin = planning::Begin {
        description: target.description.as_deref(),
        clarify: &args.clarify,
        track: args.quick.then_some(Track::Quick),
        git: args.git,
        yes: args.cost.yes,
        person: planning::person(context),
    };
    let (auto, exit_code) = (args.auto, args.exit_code);
    take_to_plan(context, target.id.as_deref(), &begin, &Ending { auto, exit_code })
}

/// How a plan comes to its end.
pub(super) struct Ending {
    /// Nobody is asked.
    pub(super) auto: bool,
    /// A plan that waits for a decision is a failure.
    pub(super) exit_code: bool,
}

/// Takes a change to an approved plan, and on to its implementation if a person says so.
pub(super) fn take_to_plan(
    context: &Context,
    id: Option<&str>,
    begin: &planning::Begin<'_>,
    ending: &Ending,
) -> Result<ExitCode, CommandError> {
    let project = context.home_of(planning::project(context)?, id)?;
    let id = planning::change_to_plan(context, &project, id)?;
    if begin.description.is_none()
        && let Some(error) = super::archived(&project, id.as_str())
    {
        return Err(error);
    }
    let mut agents = agents_for(context, &project, &id)?;
    planning::find_planner(context, &mut agents)?;
    let agents = planning::prepare(context, agents, &id, begin)?;
    let mode = planning::mode(&agents, ending.auto);
    let mut lost = if context.ui.can_prompt() { LostSession::Ask } else { LostSession::Fail };
    let (report, shown, next) = loop {
        let plan = |w: &mut Workflow<'_>| workflow::plan(w, mode, lost);
        let report = match run_workflow(context, &agents, &id, plan)? {
            Planned::Done(report) => *report,
            Planned::Ask(question) => {
                match agents.cancel.while_waiting(|| ask::lost_session(&id))? {
                    SessionAnswer::Fresh => lost = LostSession::Fresh,
                    SessionAnswer::Stop => {
                        return Err(CommandError::from(question.decline()).for_change(&id));
                    }
                }
                continue;
            }
        };
        if let Some(question) = &report.question
            && mode == Mode::HumanInLoop
            && context.ui.can_prompt()
        {
            planning::answer_agent(context, &agents, &id, question)?;
            continue;
        }
        let question = decisions::question(&agents.project, &id, mode)?;
        let Some(question) = question.filter(|_| context.ui.can_prompt()) else {
            let shown = agents.has_shown(&report);
            break (report, shown, None);
        };
        match answer(context, &agents, &id, &report, &question)? {
            Then::Continue => {}
            Then::Stop => break (report, true, None),
            Then::Edit => break (report, true, Some(vec![Command::Plan.on(&id)])),
            Then::Implement => {
                // Its lock and its agents; those of the implementation are others.
                drop(agents);
                return implement::run_all(context, &id);
            }
        }
    };
    let (change, report) = (&id, &report);
    planning::finish(
        context,
        &Outcome {
            change,
            report,
            mode,
            agents: agents.played(),
            exit_code: ending.exit_code,
            shown,
            next,
        },
    )
}

/// What follows an answer.
enum Then {
    /// Planning continues.
    Continue,
    /// It is left as it is.
    Stop,
    /// The person edits it, and comes back.
    Edit,
    /// It is implemented.
    Implement,
}

/// Asks what to do with a plan (P24, C34), until it is something that is not just to be shown.
fn answer(
    context: &Context,
    agents: &AgentRun,
    id: &ChangeId,
    report: &Report,
    question: &PlanQuestion,
) -> Result<Then, CommandError> {
    let record = |choice, note: &str| -> Result<(), CommandError> {
        let by = super::user(&agents.project);
        let (holder, now) = (context.holder(), context.now());
        let decision = NewDecision { choice, note, by: &by, seen: None };
        decisions::decide(&agents.project, id, &decision, &holder, now)?;
        Ok(())
    };
    let show_issues = || {
        context.ui.note(&report.summary);
        context.ui.show_issues(&report.issues);
    };
    let tell = || {
        let root = agents.project.root();
        agents.cancel.while_waiting(|| ask::note_for_planner(id, root))
    };
    if question.gate != Gate::Approved && !agents.has_shown(report) {
        show_issues();
    }
    let last_revision = decisions::last_revision(&agents.project.change(id)?.snapshot()?);
    loop {
        let ask = || ask::plan(id, question, last_revision.is_some());
        let answer = agents.cancel.while_waiting(ask)?;
        return Ok(match answer {
            PlanAnswer::Fix => {
                record(PlanChoice::Fix, "")?;
                Then::Continue
            }
            PlanAnswer::Accept => {
                record(PlanChoice::Accept, "")?;
                Then::Continue
            }
            PlanAnswer::Implement => {
                if question.gate != Gate::Approved {
                    record(PlanChoice::Accept, "")?;
                }
                Then::Implement
            }
            PlanAnswer::View if question.gate == Gate::Approved => {
                show_plan(context, agents, id)?;
                continue;
            }
            PlanAnswer::View => {
                show_issues();
                continue;
            }
            PlanAnswer::Review => {
                show_issues();
                match agents.cancel.while_waiting(|| ask::who_fixes(id))? {
                    // The plan waits until it is edited and `agentd plan` runs again.
                    WhoFixes::Person => {
                        let again = Command::Plan.on(id);
                        context.ui.note(&format!("edit agentd/changes/{id}/, then: {again}"));
                        Then::Edit
                    }
                    WhoFixes::Planner => {
                        record(PlanChoice::Fix, &tell()?)?;
                        Then::Continue
                    }
                }
            }
            PlanAnswer::Tell => {
                record(PlanChoice::Fix, &tell()?)?;
                Then::Continue
            }
            PlanAnswer::Edit => {
                if !edit(agents, id)? {
                    context.ui.note("the plan is as it was");
                    continue;
                }
                Then::Continue
            }
            PlanAnswer::Diff => {
                let diff = last_revision.as_deref().unwrap_or_default();
                context.ui.note(if diff.is_empty() { "nothing was changed" } else { diff });
                continue;
            }
            PlanAnswer::Stop => {
                record(PlanChoice::Stop, "")?;
                Then::Stop
            }
            PlanAnswer::Later => Then::Stop,
        });
    }
}

/// Lets the person edit the plan; says whether they have changed it.
fn edit(agents: &AgentRun, id: &ChangeId) -> Result<bool, CommandError> {
    let change = agents.project.change(id)?;
    let before = change.snapshot()?.documents;
    let files: Vec<PathBuf> =
        before.plan_files().map(|file| change.path().join(file.path().as_path())).collect();
    agents.cancel.while_waiting(|| editor::edit(&files, agents.project.root()))?;
    Ok(change.snapshot()?.documents.digest() != before.digest())
}

/// Shows the documents of a plan, without its reviews.
fn show_plan(context: &Context, agents: &AgentRun, id: &ChangeId) -> Result<(), CommandError> {
    let shown = ShownPlan::of(&agents.project.change(id)?, false)?;
    agents.cancel.while_waiting(|| context.ui.print_paged(&shown, agents.project.root()))
}
