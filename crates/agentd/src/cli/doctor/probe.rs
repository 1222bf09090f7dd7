//! `agentd doctor --probe`: what an agent can do, shown by real turns.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use agentd_core::agent::{AgentKind, Complexity};
use agentd_core::command_line::CommandLine;
use agentd_core::config::{Config, Implementation, Project as ProjectSettings};
use agentd_core::error_kind::Kind;
use agentd_core::probe::ProbeReport;
use agentd_core::provider::prices::PriceTable;
use agentd_core::text::printable;
use agentd_engine::agents::installed;
use agentd_engine::agents::probe::{Probe, REQUESTS};
use agentd_engine::change::documents;
use agentd_engine::git::{Git, GitTool};
use agentd_engine::guard::sandbox;
use agentd_engine::guard::trust::Trusted;
use agentd_engine::process;
use serde::Serialize;

use super::Args;
use crate::cli::agents_setup::{agents_in, roles_by};
use crate::cli::demo::place::Temporary;
use crate::cli::trust::trusted;
use crate::cli::{Context, init};
use crate::error::CommandError;
use crate::install::Players;
use crate::ui::{BAD, BOLD, DIM, GOOD, Output, Screen, ask};

/// What one request of an agent sends at most for these short turns, with its own instructions and
/// tools: tens of thousands of tokens in most, nearly all of them cached from the second one on.
const TOKENS_PER_REQUEST: u32 = 20_000;

/// The result of a probe.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct Probed(ProbeReport);

pub(super) fn run(
    context: &Context,
    args: &Args,
    agent: AgentKind,
) -> Result<ExitCode, CommandError> {
    if agent.is_own() {
        let message = format!("`{agent}` is part of agentd and needs no probe");
        return Err(CommandError::usage(message));
    }
    // Without a project, the agent is probed as it is set up by default.
    let config = match context.project() {
        Ok(project) => trusted(context, &project, documents::load_config(&project)?)?,
        Err(error) if error.kind == Kind::NotInitialised => {
            Trusted::written_here(Config::default())
        }
        Err(error) => return Err(error),
    };
    let roles = roles_by(agent, &config)?;
    let version = version(&config, agent, &context.start, args.timeout)?;
    if !args.yes {
        agree(context, &config, agent)?;
    }
    let place = Temporary::project("agentd-probe-")?;
    let project = context.project_at(place.root())?;
    init::set_up_least(&project, Players::Default)?;
    let config = Trusted::written_here(for_probe(&config)).with_roles(roles);
    let mut agents = agents_in(context, &project, config)?;
    let tool = GitTool { env: agents.environment.clone(), ..GitTool::default() };
    Git::create(&tool, place.root(), "A project in which an agent is tried out")?;
    for warning in sandbox::warnings(&agents) {
        context.ui.warn(&warning);
    }
    let probe = Probe {
        agents: &mut agents,
        agent,
        version,
        now: &|| context.now(),
        on_turn: &mut |what| context.ui.note(&format!("{agent}: {what}")),
    };
    let report = probe.run()?;
    let passed = report.checks.iter().all(|check| check.ok);
    context.ui.print(&Probed(report))?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The settings of the user, without those that are about a change.
fn for_probe(config: &Config) -> Config {
    let mut config = config.clone();
    config.project = ProjectSettings::default();
    config.implementation = Implementation::default();
    // A failure is a result.
    config.workflow.script_retries = 0;
    // What it may cost was asked; the probe must not end in its middle.
    config.budget = agentd_core::config::Budget::default();
    config
}

/// The version of the program, in its own words; none if it does not say.
fn version(
    config: &Config,
    agent: AgentKind,
    start: &Path,
    timeout: u64,
) -> Result<Option<String>, CommandError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let command = config.command(agent).into_iter().next().unwrap_or_else(|| agent.to_string());
    let Some(program) = process::find_program(&command, &path, start) else {
        let message = format!("cannot probe {agent}: `{command}` is not on PATH");
        return Err(CommandError::new(Kind::AgentNotInstalled, message)
            .hint(super::programs::install_hint(agent)));
    };
    Ok(installed::version(&program, Duration::from_secs(timeout)).ok())
}

/// Says what the probe may cost, and asks.
fn agree(context: &Context, config: &Config, agent: AgentKind) -> Result<(), CommandError> {
    let model = config.model(agent, Complexity::Medium).model.unwrap_or_default();
    let tokens = REQUESTS * TOKENS_PER_REQUEST;
    let price = PriceTable::default().with(config.prices.clone()).price(&model);
    let cost = match price {
        Some(price) => format!(
            "about ${:.2} at the price of {model}",
            price.input * f64::from(tokens) / 1_000_000.0
        ),
        None => "agentd does not know the price of its model".to_owned(),
    };
    let may = format!(
        "the probe calls {agent} five times, with about {REQUESTS} requests to its model and at most \
         {tokens} tokens: {cost}"
    );
    if !context.ui.can_prompt() {
        let yes = CommandLine::agentd(["doctor", "--probe", agent.name(), "--yes"]);
        let message = "a probe costs money, and there is no terminal to ask on";
        return Err(CommandError::new(Kind::NoTerminal, message)
            .cause(may)
            .run("agree in advance", yes));
    }
    context.ui.note(&may);
    if ask::probe(agent)? { Ok(()) } else { Err(CommandError::interrupted()) }
}

impl Output for Probed {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let report = &self.0;
        writeln!(screen, "{BOLD}{}{BOLD:#} {}", report.agent, printable(&report.agent_version))?;
        for check in &report.checks {
            let (mark, style) = if check.ok { ("✓", GOOD) } else { ("✗", BAD) };
            let words = check.name.words();
            write!(screen, "{style}{mark}{style:#} {words:24} {DIM}{:>6} ms{DIM:#}", check.ms)?;
            if check.detail.is_empty() {
                writeln!(screen)?;
            } else {
                writeln!(screen, "  {}", printable(&check.detail))?;
            }
        }
        let roles: Vec<&str> = report.roles.iter().map(|role| role.name()).collect();
        let roles = if roles.is_empty() { "none".to_owned() } else { roles.join(", ") };
        writeln!(screen, "roles that it can play: {roles}")
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::probe::{CheckName, ProbeCheck};
        let checks =
            CheckName::ALL.map(|name| ProbeCheck { name, ok: true, ms: 12, detail: String::new() });
        Self(ProbeReport::new(AgentKind::Gemini, "0.61.0".to_owned(), checks.to_vec()))
    }
}
