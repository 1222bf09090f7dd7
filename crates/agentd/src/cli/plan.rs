use std::process::ExitCode;

use agentd_core::document::review_block;
use agentd_core::ids::ChangeId;
use agentd_core::next_step::Command;
use agentd_engine::insight::forecast::Wanted;
use agentd_engine::workflow::decisions::{self, Gate, PlanAnswer, PlanChoice, PlanQuestion};
use agentd_engine::workflow::{self, LostSession, Planned, Report, Workflow};

use super::Context;
use super::agents_setup::{AgentRun, CallArgs, agents_for};
use super::planning::{self, GitArg, Outcome, run_workflow};
use super::{forecast, implement};
use crate::error::CommandError;
use crate::ui::ask::{self, SessionAnswer, WhoFixes};

/// Take a change from one sentence to an approved plan.
///
/// Clarifies what you want, sets up git, has the planner write the proposal, specs, and tasks,
/// checks them, and has another agent challenge them. If the plan needs revision, you decide
/// what to do; with `--auto`, the planner revises it by itself, up to
/// `workflow.planning_iterations` times. An approved plan can be implemented right away.
///
/// If interrupted, run the command again to resume; finished steps are not repeated.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd plan add-oauth \"Let people sign in with GitHub\"\n  agentd plan add-oauth                          resume\n  agentd plan add-oauth \"…\" --auto --skip-clarify --git in-place --json     in CI"
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// What you want; required for a new change.
    description: Option<String>,

    /// Don't ask: revise and re-challenge until the plan is approved.
    #[arg(long)]
    auto: bool,

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
    if args.cost.forecast {
        let questions = !args.clarify.skip_clarify && args.clarify.answers.is_none();
        let wanted = Wanted { description: args.description.as_deref(), questions };
        return forecast::run(context, args.id.as_deref(), wanted);
    }
    let project = context.home_of(planning::project(context)?, args.id.as_deref())?;
    let id = planning::change_to_plan(context, &project, args.id.as_deref())?;
    let mut agents = agents_for(context, &project, &id)?;
    planning::find_planner(context, &mut agents)?;
    let begun = planning::Begin {
        description: args.description.as_deref(),
        clarify: &args.clarify,
        git: args.git,
        yes: args.cost.yes,
    };
    let agents = planning::prepare(context, agents, &id, &begun)?;
    let mode = planning::mode(&agents, args.auto);
    let mut lost = if context.ui.can_prompt() { LostSession::Ask } else { LostSession::Fail };
    let (report, shown) = loop {
        let plan = |w: &mut Workflow<'_>| workflow::plan(w, mode, lost);
        let report = match run_workflow(context, &agents, &id, plan)? {
            Planned::Done(report) => report,
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
        let question = decisions::question(&agents.project, &id, mode)?;
        let Some(question) = question.filter(|_| context.ui.can_prompt()) else {
            break (report, false);
        };
        match answer(context, &agents, &id, &report, &question)? {
            Then::Continue => {}
            Then::Stop => break (report, true),
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
            exit_code: args.exit_code,
            shown,
        },
    )
}

/// What follows an answer.
enum Then {
    /// Planning continues.
    Continue,
    /// It is left as it is.
    Stop,
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
        decisions::decide(&agents.project, id, choice, note, &by, &holder, now)?;
        Ok(())
    };
    let show_issues = || {
        context.ui.note(&report.summary);
        context.ui.show_issues(&report.issues);
    };
    if question.gate != Gate::Approved {
        show_issues();
    }
    loop {
        let answer = agents.cancel.while_waiting(|| ask::plan(id, question))?;
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
                        Then::Stop
                    }
                    WhoFixes::Planner => {
                        let note = agents.cancel.while_waiting(|| ask::note_for_planner(id))?;
                        record(PlanChoice::Fix, &note)?;
                        Then::Continue
                    }
                }
            }
            PlanAnswer::Stop => {
                record(PlanChoice::Stop, "")?;
                Then::Stop
            }
            PlanAnswer::Later => Then::Stop,
        });
    }
}

/// Shows the documents of a plan, without its reviews.
fn show_plan(context: &Context, agents: &AgentRun, id: &ChangeId) -> Result<(), CommandError> {
    let documents = agents.project.change(id)?.snapshot()?.documents;
    for file in documents.plan_files() {
        let text = review_block::without(documents.get(&file).text().unwrap_or_default());
        context.ui.note(&format!("\n=== {} ===\n\n{}\n", file.path(), text.trim_end()));
    }
    Ok(())
}
