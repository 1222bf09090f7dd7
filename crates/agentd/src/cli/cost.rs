use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::text::{counted, printable};
use agentd_engine::change::documents;
use agentd_engine::insight::cost::{self, CostReport, StepCost};

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM, Output, Screen};
use agentd_core::figures::{duration, tokens};

/// Show the cost of a change by step.
///
/// Input tokens include cached ones, which cost less. Models without a known price count as
/// free; set their prices in `[prices]` in agentd/config.toml.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd cost add-oauth\n  agentd cost --json | jq '.total_cost_usd'"
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let change = context.change(&project, args.id.as_deref())?;
    let state = documents::load_state(&change)?;
    let budget = documents::load_config(&project)?.budget;
    let report = cost::report(&state, budget);
    context.ui.print(&report)?;
    Ok(ExitCode::SUCCESS)
}

impl Output for CostReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        if self.steps.is_empty() {
            let id = &self.change_id;
            screen.note(&format!("`{id}` has cost nothing yet: no agent was called."));
            return Ok(());
        }
        let most = self.steps.iter().map(|step| step.cost_usd).fold(0.0, f64::max);
        let width = self.steps.iter().map(|step| name(step).chars().count()).max().unwrap_or(0);
        for step in &self.steps {
            let bar = bar(step.cost_usd, most);
            writeln!(
                screen,
                "{:width$}  {:>8} in  {:>8} out  {:>8}  {BOLD}${:<8.4}{BOLD:#}  {bar:BAR_WIDTH$}  {DIM}{}{DIM:#}",
                name(step),
                tokens(step.tokens_in),
                tokens(step.tokens_out),
                duration(step.duration_ms),
                step.cost_usd,
                printable(&step.model),
            )?;
        }
        writeln!(
            screen,
            "\n{}, {} tokens in, {} out, {}, {BOLD}${:.4}{BOLD:#}",
            counted(self.calls, "call"),
            tokens(self.tokens_in),
            tokens(self.tokens_out),
            duration(self.duration_ms),
            self.total_cost_usd
        )
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::config::Budget;
        use agentd_core::ids::ChangeId;
        let step = StepCost {
            step: agentd_core::step_name::StepName::ProposalGen,
            model: "gemini".to_owned(),
            calls: 1,
            tokens_in: 12_000,
            tokens_cached: 9_000,
            tokens_out: 800,
            duration_ms: 4_500,
            cost_usd: 0.02,
        };
        Self {
            change_id: ChangeId::new("add-oauth").unwrap(),
            total_cost_usd: step.cost_usd,
            tokens_in: step.tokens_in,
            tokens_cached: step.tokens_cached,
            tokens_out: step.tokens_out,
            duration_ms: step.duration_ms,
            calls: step.calls,
            budget: Budget {
                max_cost_usd: Some(5.0),
                max_tokens: Some(1_000_000),
                ask_above_usd: Some(10.0),
            },
            steps: vec![step],
        }
    }
}

/// A step, with the number of its calls where there are several.
fn name(step: &StepCost) -> String {
    match step.calls {
        1 => printable(&step.step.to_string()).into_owned(),
        calls => format!("{} ×{calls}", printable(&step.step.to_string())),
    }
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
