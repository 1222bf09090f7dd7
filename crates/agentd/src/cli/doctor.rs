mod checks;
pub(super) mod probe;
mod programs;

use std::io;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use agentd_core::agent::AgentKind;
use agentd_core::config::Config;
use agentd_core::hint::Hint;
use agentd_engine::change::documents;
use agentd_engine::guard::trust::{self, Consent};
use agentd_engine::store::Project;
use serde::Serialize;

use self::programs::Programs;
use super::Context;
use crate::error::CommandError;
use crate::ui::{BAD, BOLD, GOOD, Output, Screen, WARN};

/// Check the setup: agents, git, and the project.
///
/// Checks who plays which role, and whether they are installed and logged in; the test command,
/// the git identity, how git merges specs, the sandbox, the budget, the MCP server, the settings and the changes. The
/// checks run at the same time, and each is printed as soon as its result is known. No agent
/// is called, and nothing is run that the project's settings name before you have agreed to it.
///
/// With --probe, an agent is called: a few short turns in a temporary project show whether it uses
/// agentd's tools, stays out of files that are not its own, reports its usage, resumes a session,
/// and ends when it is told to. The result is kept, and an agent that failed what a role needs is
/// not given that role until it is probed again, updated, or set up differently.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd doctor\n  agentd doctor --json | jq '.checks[] | select(.status != \"ok\")'\n  agentd doctor --probe opencode\n  agentd doctor --probe qwen --yes --json | jq .roles"
)]
pub(crate) struct Args {
    /// How long to wait for a program to answer; some take seconds on a busy machine.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    timeout: u64,

    /// Call this agent to find out which roles it can play; asks first, since models cost money.
    #[arg(long, value_name = "AGENT")]
    probe: Option<AgentKind>,

    /// Probe without asking.
    #[arg(long, short = 'y', requires = "probe")]
    yes: bool,
}

/// What was found out about the setup.
#[derive(Debug, Serialize)]
pub(super) struct DoctorReport {
    /// Whether no check has failed.
    healthy: bool,
    /// The checks.
    checks: Vec<Check>,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Check {
    /// What was checked.
    name: String,
    /// The result.
    status: Status,
    /// What was found.
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Hint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warning,
    Failed,
}

impl Check {
    fn new(name: impl Into<String>, status: Status, detail: impl Into<String>) -> Self {
        Self { name: name.into(), status, detail: detail.into(), hint: None }
    }

    /// What a command would say, with the first of its hints.
    fn of_error(name: &str, status: Status, error: &CommandError) -> Self {
        Self { hint: error.hints.first().cloned(), ..Self::new(name, status, &error.message) }
    }

    fn hint(self, hint: impl Into<Hint>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Something to find out, with a result that is independent of all others.
type Job<'a> = Box<dyn FnOnce() -> Result<Vec<Check>, CommandError> + Send + 'a>;

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    if let Some(agent) = args.probe {
        return probe::run(context, args, agent);
    }
    let project = context.project();
    let config = project.as_ref().ok().map(documents::load_config);
    let settings = match &config {
        Some(Ok(config)) => config.clone(),
        _ => Config::default(),
    };
    let standing = project.as_ref().ok().map(|project| trust::standing(project, &settings));
    let consent = super::trust::from_environment();
    let trusted = consent == Consent::Given
        || standing.as_ref().is_none_or(|s| s.as_ref().is_ok_and(|s| s.trusted));
    let root = project.as_ref().map_or(&*context.start, Project::root);
    let limit = Duration::from_secs(args.timeout);
    let programs = Programs::new(&settings, trusted, root, limit);
    // Those that need no other program come first, in their order.
    let mut at_once: Vec<Job<'_>> = Vec::new();
    let mut jobs: Vec<Job<'_>> = Vec::new();
    match &project {
        Err(error) => {
            at_once.push(job(|| Check::of_error("project", Status::Warning, error)));
        }
        Ok(project) => {
            let shown = project.root().display().to_string();
            at_once.push(job(move || Check::new("project", Status::Ok, shown)));
            at_once.push(Box::new(|| Ok(vec![checks::config(project, config)?])));
            let trust = standing.and_then(|standing| checks::trust(standing, consent));
            at_once.push(Box::new(|| Ok(trust.into_iter().collect())));
            at_once.push(job(|| checks::tests(&settings, root)));
            at_once.push(job(|| checks::budget(&settings)));
            at_once.push(Box::new(|| checks::changes(project)));
            at_once.push(Box::new(|| checks::locks(project)));
            jobs.push(job(|| checks::identity(&settings, root)));
            jobs.push(Box::new(|| Ok(checks::merging(root).into_iter().collect())));
            jobs.push(job(|| checks::sandbox(&settings)));
            jobs.push(job(|| checks::mcp(project, limit)));
        }
    }
    jobs.push(job(|| programs.git()));
    for agent in settings.all_agents() {
        if !settings.roles.of_agent(agent).is_empty() {
            let programs = &programs;
            jobs.push(job(move || programs.agent(agent)));
            jobs.push(Box::new(move || Ok(programs.login(agent).into_iter().collect())));
        }
    }
    let known = |checks: &[Check]| {
        if context.ui.json { Ok(()) } else { context.ui.print(&Found(checks)) }
    };
    let mut checks = Vec::new();
    for job in at_once {
        let found = job()?;
        known(&found)?;
        checks.extend(found);
    }
    checks.extend(side_by_side(jobs, known)?);
    let healthy = checks.iter().all(|check| check.status != Status::Failed);
    let code = if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if context.ui.json {
        context.ui.print(&DoctorReport { healthy, checks })?;
    }
    Ok(code)
}

fn job<'a>(check: impl FnOnce() -> Check + Send + 'a) -> Job<'a> {
    Box::new(|| Ok(vec![check()]))
}

/// Does all jobs at the same time, each on a thread, since they wait for other programs. `known`
/// gets each result as soon as it is known; all of them come back in the order of the jobs.
fn side_by_side(
    jobs: Vec<Job<'_>>,
    known: impl Fn(&[Check]) -> Result<(), CommandError>,
) -> Result<Vec<Check>, CommandError> {
    std::thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for (place, job) in jobs.into_iter().enumerate() {
            let sender = sender.clone();
            // Nobody listens any more once printing has failed.
            scope.spawn(move || drop(sender.send((place, job()))));
        }
        drop(sender);
        let mut all = Vec::new();
        for (place, checks) in results {
            let checks = checks?;
            known(&checks)?;
            all.push((place, checks));
        }
        all.sort_by_key(|(place, _)| *place);
        Ok(all.into_iter().flat_map(|(_, checks)| checks).collect())
    })
}

/// Some of the checks, as a person reads them.
#[derive(Serialize)]
struct Found<'a>(&'a [Check]);

impl Output for Found<'_> {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        for check in self.0 {
            let (mark, style) = match check.status {
                Status::Ok => ("✓", GOOD),
                Status::Warning => ("!", WARN),
                Status::Failed => ("✗", BAD),
            };
            let label = format!("{style}{mark}{style:#} {BOLD}{:8}{BOLD:#} ", check.name);
            screen.labeled(&label, &check.detail)?;
            if let Some(hint) = &check.hint {
                screen.labeled("           hint: ", &hint.to_string())?;
            }
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self(&[])
    }
}

impl Output for DoctorReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        Found(&self.checks).text(screen)
    }

    #[cfg(test)]
    fn sample() -> Self {
        let check = Check::new("git", Status::Warning, "`git` is not on PATH").hint("install git");
        Self { healthy: true, checks: vec![check] }
    }
}
