use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::state::{LlmCall, State};
use agentd_core::text::printable;
use agentd_engine::change::documents;
use serde::Serialize;
use serde_json::json;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM};
use agentd_core::figures::{duration, tokens};

/// Show what a change has cost, step by step.
///
/// Tokens that went in include cached ones; what is cached costs less. A model
/// without a known price counts as nothing: set it in `[prices]`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd cost add-oauth\n  agentd cost --json | jq '.total_cost_usd'"
)]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,
}

/// All calls of one step with one model.
#[derive(Debug, Default, Serialize)]
struct StepCost {
    step: String,
    model: String,
    calls: usize,
    tokens_in: u64,
    tokens_cached: u64,
    tokens_out: u64,
    duration_ms: u64,
    cost_usd: f64,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let change = context.change(&project, args.id.as_deref())?;
    let state = documents::load_state(&change)?;
    let budget = documents::load_config(&project)?.budget;
    let steps = by_step(&state.llm_calls);
    if context.ui.json {
        let document = json!({
            "version": 1,
            "change_id": change.id(),
            "total_cost_usd": state.total_cost,
            "tokens_in": state.total_tokens_in,
            "tokens_cached": state.llm_calls.iter().map(|call| call.tokens_cached).sum::<u64>(),
            "tokens_out": state.total_tokens_out,
            "duration_ms": state.llm_calls.iter().map(|call| call.duration_ms).sum::<u64>(),
            "calls": state.llm_calls.len(),
            "budget": { "max_cost_usd": budget.max_cost_usd, "max_tokens": budget.max_tokens },
            "steps": steps,
        });
        context.ui.print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    if steps.is_empty() {
        context.ui.note(&format!("`{}` has cost nothing yet: no agent was called.", change.id()));
        return Ok(ExitCode::SUCCESS);
    }
    print(context, &state, &steps)?;
    Ok(ExitCode::SUCCESS)
}

/// Calls of the same step and model together, in the order of their first call.
fn by_step(calls: &[LlmCall]) -> Vec<StepCost> {
    let mut steps: Vec<StepCost> = Vec::new();
    for call in calls {
        let same = |step: &&mut StepCost| step.step == call.step && step.model == call.model;
        let step = match steps.iter_mut().find(same) {
            Some(step) => step,
            None => {
                let (step, model) = (call.step.clone(), call.model.clone());
                steps.push(StepCost { step, model, ..StepCost::default() });
                let Some(last) = steps.last_mut() else { continue };
                last
            }
        };
        step.calls += 1;
        step.tokens_in = step.tokens_in.saturating_add(call.tokens_in);
        step.tokens_cached = step.tokens_cached.saturating_add(call.tokens_cached);
        step.tokens_out = step.tokens_out.saturating_add(call.tokens_out);
        step.duration_ms = step.duration_ms.saturating_add(call.duration_ms);
        step.cost_usd += call.cost;
    }
    steps
}

fn print(context: &Context, state: &State, steps: &[StepCost]) -> Result<(), CommandError> {
    let mut out = context.ui.out();
    let most = steps.iter().map(|step| step.cost_usd).fold(0.0, f64::max);
    let name = |step: &StepCost| match step.calls {
        1 => printable(&step.step).into_owned(),
        calls => format!("{} ×{calls}", printable(&step.step)),
    };
    let width = steps.iter().map(|step| name(step).chars().count()).max().unwrap_or(0);
    for step in steps {
        let bar = bar(step.cost_usd, most);
        writeln!(
            out,
            "{:width$}  {:>8} in  {:>8} out  {:>8}  {BOLD}${:<8.4}{BOLD:#}  {bar:BAR_WIDTH$}  {DIM}{}{DIM:#}",
            name(step),
            tokens(step.tokens_in),
            tokens(step.tokens_out),
            duration(step.duration_ms),
            step.cost_usd,
            printable(&step.model),
        )?;
    }
    let took: u64 = state.llm_calls.iter().map(|call| call.duration_ms).sum();
    writeln!(
        out,
        "\n{} calls, {} tokens in, {} out, {}, {BOLD}${:.4}{BOLD:#}",
        state.llm_calls.len(),
        tokens(state.total_tokens_in),
        tokens(state.total_tokens_out),
        duration(took),
        state.total_cost
    )?;
    out.flush()?;
    Ok(())
}

const BAR_WIDTH: usize = 20;

/// A bar as long as its share of the dearest step; whatever costs something shows.
fn bar(cost: f64, most: f64) -> String {
    if most <= 0.0 || cost <= 0.0 {
        return String::new();
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "between 1 and the width of the bar"
    )]
    let length = ((cost / most * BAR_WIDTH as f64).round() as usize).clamp(1, BAR_WIDTH);
    "█".repeat(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_a_share_of_the_dearest() {
        assert_eq!(bar(2.0, 2.0).chars().count(), BAR_WIDTH);
        assert_eq!(bar(0.001, 2.0).chars().count(), 1);
        assert_eq!(bar(0.0, 2.0), "");
        assert_eq!(bar(0.0, 0.0), "");
    }
}
