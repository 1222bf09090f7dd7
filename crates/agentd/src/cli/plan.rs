use std::process::ExitCode;

use agentd_core::next_step::Command;
use agentd_core::state::Choice;
use agentd_engine::workflow::decisions::{self, PlanQuestion};
use agentd_engine::workflow::{self, LostSession, Planned, Report, Workflow};

use super::Context;
use super::agents_setup::{AgentRun, CallArgs, agents_for};
use super::planning::{self, GitArg, Outcome, run_workflow};
use crate::error::CommandError;
use crate::ui::ask::{self, PlanAnswer, SessionAnswer};

/// Take a change from one sentence to an approved plan.
///
/// Clarifies what you want, sets up git, has the planner write the proposal, specs, and tasks,
/// checks them, and has another agent challenge them. If the plan needs revision, you decide
/// what to do; with `--auto`, the planner revises it by itself, up to
/// `workflow.planning_iterations` times.
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

    /// Also exit with 1 if the plan is waiting for a decision.
    #[arg(long)]
    exit_code: bool,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = planning::project(context)?;
    let id = planning::change_to_plan(context, &project, args.id.as_deref())?;
    let mut agents = agents_for(context, &project, &id)?;
    planning::find_planner(context, &mut agents)?;
    let begun = planning::Begin {
        description: args.description.as_deref(),
        clarify: &args.clarify,
        git: args.git,
    };
    planning::prepare(context, &agents, &id, &begun)?;
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
        let question = decisions::question(&project, &id, &report, mode)?;
        let Some(question) = question.filter(|_| context.ui.can_prompt()) else {
            break (report, false);
        };
        if !decide(context, &agents, &id, &report, question)? {
            break (report, true);
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

/// Asks what to do with a plan that needs revision (P24). True: continue.
fn decide(
    context: &Context,
    agents: &AgentRun,
    id: &agentd_core::ids::ChangeId,
    report: &Report,
    question: PlanQuestion,
) -> Result<bool, CommandError> {
    context.ui.note(&report.summary);
    context.ui.show_issues(&report.issues);
    if let Some(rounds) = question.many_rounds {
        context.ui.note(&format!("{rounds} rounds have not settled it: is it the right plan?"));
    }
    let asked = agents.cancel.while_waiting(|| ask::plan_decision(id, question.acceptable));
    let choice = match asked? {
        PlanAnswer::Fix => Choice::Fix,
        PlanAnswer::Accept => Choice::Accept,
        PlanAnswer::Stop => Choice::Stop,
        // The plan waits until it is edited and `agentd plan` runs again.
        PlanAnswer::Review => {
            let again = Command::Plan.on(id);
            context.ui.note(&format!("edit agentd/changes/{id}/, then: {again}"));
            return Ok(false);
        }
    };
    let by = super::user();
    let (holder, now) = (context.holder(), context.now());
    decisions::decide(&agents.project, id, choice, "", &by, &holder, now)?;
    Ok(choice != Choice::Stop)
}
