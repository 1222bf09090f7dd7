//! `plan --forecast`: what the rest of a change will use.

use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::forecast::{Basis, StepForecast};
use agentd_core::state::Ranges;
use agentd_core::text::printable;
use agentd_engine::change::documents;
use agentd_engine::insight::forecast::{self, ForecastReport, Wanted};
use agentd_engine::opening;
use agentd_engine::store::StoreError;

use super::agents_setup::roles_by;
use super::{Context, planning};
use crate::error::CommandError;
use crate::ui::table::{Cell, Column, Table};
use crate::ui::{BOLD, Output, Screen};

/// What a command takes that begins a workflow.
#[derive(Debug, clap::Args)]
pub(crate) struct ForecastArgs {
    /// Only estimate what the change will use until its code is approved: calls, tokens, cost, and
    /// time. Calls no agent and writes nothing.
    #[arg(long)]
    pub(super) forecast: bool,

    /// Don't ask if the forecast is above `budget.ask_above_usd`.
    #[arg(long, short = 'y')]
    pub(super) yes: bool,
}

/// Forecasts a change. Nothing is written, not even where agentd was not set up yet.
pub(super) fn run(
    context: &Context,
    id: Option<&str>,
    wanted: Wanted<'_>,
) -> Result<ExitCode, CommandError> {
    let root = match opening::root_of(&context.start) {
        Err(StoreError::NotInitialised { suggested, .. }) if suggested.join(".git").exists() => {
            suggested
        }
        root => root?,
    };
    let project = context.home_of(context.project_at(&root)?, id)?;
    let id = planning::change_to_plan(context, &project, id)?;
    let mut config = documents::load_config(&project)?;
    if let Some(agent) = context.agent {
        config.roles = roles_by(agent, &config)?;
    }
    context.ui.print(&forecast::report(&project, &config, &id, wanted)?)?;
    Ok(ExitCode::SUCCESS)
}

impl Output for ForecastReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let forecast = &self.forecast;
        if forecast.steps.is_empty() {
            let id = &self.change_id;
            screen.note(&format!("`{id}` needs no more calls of agents."));
            return Ok(());
        }
        let mut table = Table::new([
            Column::new("STEP").least(14),
            Column::new("AGENT").optional(1),
            Column::new("MODEL").optional(0).least(8),
            Column::figures("CALLS").optional(2),
            Column::figures("TOKENS").optional(3),
            Column::figures("COST"),
            Column::figures("TIME"),
        ]);
        for step in &forecast.steps {
            table.row(row(step));
        }
        let total = ["all", "", ""].map(str::to_owned);
        let total = with_figures(total, &forecast.ranges);
        table.row(total.map(|text| Cell::styled(text, BOLD)));
        screen.table(&table)?;
        let (complexity, basis) = (self.complexity, forecast.basis_shown());
        let why = match forecast.basis {
            Basis::BuiltIn => ": this project has no ledger yet",
            Basis::Ledger => "",
        };
        writeln!(screen, "\n{complexity} complexity; from {basis}{why}")?;
        if let Some(error) = forecast.error.shown() {
            writeln!(screen, "{error}")?;
        }
        if let Some(limit) = self.budget.max_cost_usd.filter(|l| forecast.ranges.cost_usd[1] > *l) {
            writeln!(screen, "it ends at ${limit:.2}: [budget] max_cost_usd")?;
        }
        for model in &forecast.unpriced {
            let model = printable(model);
            screen.warn(&format!("no price is known for `{model}`, which counts as free"));
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::agent::{AgentKind, Complexity};
        use agentd_core::config::Budget;
        use agentd_core::forecast::{Forecast, PastError, StepKind};
        use agentd_core::ids::ChangeId;
        let ranges = Ranges {
            calls: [1, 2],
            tokens: [40_000, 180_000],
            cost_usd: [0.02, 0.1],
            seconds: [40, 150],
        };
        let step = StepForecast {
            step: StepKind::ProposalGen,
            agent: AgentKind::Gemini,
            model: "flash".to_owned(),
            ranges,
            basis: Basis::Ledger,
        };
        Self {
            change_id: ChangeId::new("add-oauth").unwrap(),
            complexity: Complexity::Medium,
            forecast: Forecast {
                ranges,
                basis: Basis::Ledger,
                based_on: 3,
                error: PastError { changes: 2, inside: 2 },
                steps: vec![step],
                unpriced: vec!["house-model".to_owned()],
            },
            budget: Budget {
                max_cost_usd: Some(5.0),
                max_tokens: Some(1_000_000),
                ask_above_usd: Some(10.0),
            },
        }
    }
}

fn row(step: &StepForecast) -> [String; 7] {
    let model = printable(&step.model).into_owned();
    with_figures([step.step.name().to_owned(), step.agent.to_string(), model], &step.ranges)
}

fn with_figures([step, agent, model]: [String; 3], ranges: &Ranges) -> [String; 7] {
    let (calls, tokens) = (ranges.calls_shown(), ranges.tokens_shown());
    [step, agent, model, calls, tokens, ranges.cost_shown(), ranges.time_shown()]
}
