use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::check;
use agentd_core::next_step::{Command, NextStep};
use agentd_core::phase::{Phase, allowed};
use agentd_core::state::State;
use agentd_core::text::printable;
use agentd_engine::change::{documents, summary};
use serde_json::json;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM};

/// Show where a change stands: phase, verdict, tasks, findings, cost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agentd status add-oauth\n  agentd status --json")]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let change = context.change(&project, args.id.as_deref())?;
    let snapshot = change.snapshot()?;
    let begun = snapshot.state_if_begun()?.cloned();
    let phase = begun.as_ref().map(|state| state.phase);
    // A change that no workflow has touched yet has cost nothing and was judged by nobody.
    let state = begun.unwrap_or_else(|| State::new(change.id().clone(), "", context.now()));
    let extras = documents::load_config(&project)?.extras();
    let counts = check::counts(&snapshot.findings(&project, &extras));
    let layers = summary::layers(&snapshot.documents);
    let review = snapshot.documents.reviews().last();
    let review = review.map(|review| (review.verdict.label(), review.counts()));
    let summary = summary::Summary::of(&snapshot);
    let plan = || snapshot.documents.digest();
    let plan_changed = state.plan_review.as_ref().map(|review| plan() != review.plan_hash);
    let next = next_steps(&summary, counts.high, plan_changed);
    if context.ui.json {
        let document = json!({
            "version": 1,
            "change_id": change.id(),
            "phase": phase,
            "title": summary.title,
            "created_at": state.created_at,
            "updated_at": state.updated_at,
            "last_action": state.last_action,
            "iteration": state.iteration,
            "complexity": state.complexity,
            "verdict": review.map(|(verdict, _)| verdict),
            "issues": review.map(|(_, counts)| counts),
            "plan_changed_since_review": plan_changed,
            "validation": counts,
            "tasks": summary.tasks,
            "layers": layers,
            "calls": state.llm_calls.len(),
            "cost_usd": state.total_cost,
            "tokens_in": state.total_tokens_in,
            "tokens_out": state.total_tokens_out,
            "next": next,
        });
        context.ui.print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = context.ui.out();
    writeln!(out, "{BOLD}{}{BOLD:#}  {}", change.id(), phase.map_or("new", Phase::name))?;
    if !summary.title.is_empty() {
        writeln!(out, "{DIM}{}{DIM:#}", printable(&summary.title))?;
    }
    writeln!(out)?;
    if let Some((verdict, issues)) = review {
        let stale = if plan_changed == Some(true) { ", of an earlier plan" } else { "" };
        writeln!(
            out,
            "review    {verdict}: {} HIGH, {} MEDIUM, {} LOW{stale}",
            issues.high, issues.medium, issues.low
        )?;
    }
    writeln!(
        out,
        "documents {} HIGH, {} MEDIUM, {} LOW findings",
        counts.high, counts.medium, counts.low
    )?;
    writeln!(out, "tasks     {} of {} done", summary.tasks.completed, summary.tasks.total)?;
    for layer in &layers {
        let name = layer.layer.name();
        writeln!(out, "          {name:12} {}/{}", layer.progress.completed, layer.progress.total)?;
    }
    writeln!(
        out,
        "cost      ${:.4}, {} tokens in, {} out, {} calls",
        state.total_cost,
        state.total_tokens_in,
        state.total_tokens_out,
        state.llm_calls.len()
    )?;
    if let Some(action) = &state.last_action {
        writeln!(out, "last      {}", printable(&action.to_string()))?;
    }
    for command in &next {
        writeln!(out, "\nNext: {command}")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// What to run next.
fn next_steps(
    summary: &summary::Summary,
    high: usize,
    plan_changed: Option<bool>,
) -> Vec<NextStep> {
    let id = &summary.change_id;
    if high > 0 {
        return vec![Command::Validate.on(id)];
    }
    let command = match (summary.phase, plan_changed) {
        // A plan is not judged twice, and no plan is implemented but the one that was approved.
        (Some(Phase::Rejected), Some(false)) | (None, _) => Command::Show,
        (Some(Phase::Challenged), Some(true)) => Command::Challenge,
        (Some(phase), _) => allowed(phase).first().copied().unwrap_or(Command::Show),
    };
    vec![command.on(id)]
}
