use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use agentd_builtin::{ClientError, count_tools};
use agentd_core::agent::AgentKind;
use agentd_core::command_line::CommandLine;
use agentd_core::config::Config;
use agentd_core::hint::Hint;
use agentd_core::layout;
use agentd_core::text::printable;
use agentd_engine::agents::installed;
use agentd_engine::change::documents::{self, DocumentError};
use agentd_engine::guard::sandbox;
use agentd_engine::guard::trust::{self, TrustError, TrustStatus};
use agentd_engine::process::{self, Supervisor};
use agentd_engine::store::{LockName, LockState, Project, lock_state, map_parallel};
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{BAD, BOLD, GOOD, Output, Screen, WARN};

/// Check the setup: agents, git, and the project.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd doctor\n  agentd doctor --json | jq '.checks[] | select(.status != \"ok\")'"
)]
pub(crate) struct Args {
    /// How long to wait for a program to print its version; some take seconds on a busy machine.
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    timeout: u64,
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

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project();
    let config = project.as_ref().ok().map(documents::load_config);
    let settings = match &config {
        Some(Ok(config)) => config.clone(),
        _ => Config::default(),
    };
    let standing = project.as_ref().ok().map(|project| trust::standing(project, &settings));
    let trusted = standing.as_ref().is_none_or(|s| s.as_ref().is_ok_and(|s| s.trusted));
    let root = project.as_ref().map_or(&*context.start, Project::root);
    let mut checks = programs(&settings, trusted, root, Duration::from_secs(args.timeout));
    match &project {
        Err(error) => {
            checks.push(Check::of_error("project", Status::Warning, error));
        }
        Ok(project) => {
            checks.push(Check::new("project", Status::Ok, project.root().display().to_string()));
            checks.push(config_check(project, config)?);
            checks.push(mcp_check(project, Duration::from_secs(args.timeout)));
            checks.push(sandbox_check(&settings));
            checks.extend(standing.and_then(trust_check));
            checks.extend(changes(project)?);
            checks.extend(locks(project)?);
        }
    }
    let failed = checks.iter().any(|check| check.status == Status::Failed);
    context.ui.print(&DoctorReport { healthy: !failed, checks })?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What the settings run, where somebody has to agree to it.
fn trust_check(standing: Result<TrustStatus, TrustError>) -> Option<Check> {
    Some(match standing {
        Err(error) => Check::of_error("trust", Status::Warning, &error.into()),
        Ok(standing) if standing.settings.is_empty() => return None,
        Ok(standing) => {
            let settings: Vec<String> = standing.settings.iter().map(ToString::to_string).collect();
            let settings = settings.join("; ");
            if standing.trusted {
                Check::new("trust", Status::Ok, format!("you have agreed to {settings}"))
            } else {
                Check::new(
                    "trust",
                    Status::Warning,
                    format!("not trusted, and not run: {settings}"),
                )
                .hint(agree())
            }
        }
    })
}

/// The agents and git, asked for their versions side by side. A command of settings that
/// nobody has agreed to is named and not run.
fn programs(config: &Config, trusted: bool, root: &Path, limit: Duration) -> Vec<Check> {
    let mut unasked = Vec::new();
    let mut wanted: Vec<(String, String, Hint)> = AgentKind::CLIS
        .into_iter()
        .map(|agent| {
            let command =
                config.agent(agent).command.clone().unwrap_or_else(|| agent.name().to_owned());
            (agent.name().to_owned(), command, install_hint(agent))
        })
        .filter(|(name, command, _)| {
            let ask = trusted || command == name;
            if !ask {
                let detail =
                    format!("`{command}` of agentd/config.toml is not trusted, and not run");
                unasked.push(Check::new(name, Status::Warning, detail).hint(agree()));
            }
            ask
        })
        .collect();
    let git = "install git; agentd keeps changes apart with branches and worktrees".into();
    wanted.push(("git".to_owned(), "git".to_owned(), git));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let asked = map_parallel(&wanted, |(name, command, hint)| {
        match process::find_program(command, &path, root) {
            None => match process::resolve(command, &[("PATH".into(), path.clone())], root) {
                Err(inside) => Check::new(name, Status::Warning, format!("`{command}`: {inside}")),
                Ok(_) => {
                    let is_path = command.contains('/');
                    let missing = if is_path { "is not a program" } else { "is not on PATH" };
                    Check::new(name, Status::Warning, format!("`{command}` {missing}"))
                        .hint(hint.clone())
                }
            },
            Some(program) => match installed::version(&program, limit) {
                Ok(version) => {
                    Check::new(name, Status::Ok, format!("{version} ({})", program.display()))
                }
                Err(error) => {
                    Check::new(name, Status::Warning, format!("{}: {error}", program.display()))
                        .hint(hint.clone())
                }
            },
        }
    });
    unasked.extend(asked);
    unasked
}

fn install_hint(agent: AgentKind) -> Hint {
    let package = match agent {
        AgentKind::Gemini => "@google/gemini-cli",
        AgentKind::Codex => "@openai/codex",
        AgentKind::Claude => "@anthropic-ai/claude-code",
        AgentKind::Builtin | AgentKind::Replay => return "it is part of agentd".into(),
    };
    Hint::run(
        format!("set [{agent}] command, assign its roles to another agent, or install it"),
        CommandLine::new(["npm", "install", "-g", package]),
    )
}

fn agree() -> Hint {
    Hint::run("see what would run, and agree to it", CommandLine::agentd(["trust"]))
}

fn sandbox_setting(purpose: &str, value: &'static str) -> Hint {
    Hint::Set { purpose: purpose.to_owned(), table: "sandbox", key: "enabled", value }
}

/// Whether the MCP server starts and answers, asked as an agent asks it.
fn mcp_check(project: &Project, limit: Duration) -> Check {
    let answer = std::env::current_exe()
        .map_err(ClientError::from)
        .and_then(|agentd| count_tools(&agentd, project.root(), "agentd-doctor", limit));
    match answer {
        Ok(tools) => {
            Check::new("mcp", Status::Ok, format!("the server answers with {tools} tools"))
        }
        Err(error) => {
            Check::new("mcp", Status::Failed, format!("the server does not answer: {error}")).hint(
                Hint::run(
                    "agents cannot write anything without it; see why",
                    CommandLine::agentd(["mcp"]),
                ),
            )
        }
    }
}

/// What agents and tests may do here, and whether the system holds them to it: tried, in a
/// directory that is removed again.
fn sandbox_check(settings: &Config) -> Check {
    const NAME: &str = "sandbox";
    let words = sandbox::in_words(&settings.sandbox);
    if !settings.sandbox.enabled {
        return Check::new(NAME, Status::Warning, words)
            .hint(sandbox_setting("confine agents", "true"));
    }
    let made = tempfile::Builder::new().prefix("agentd-doctor-").tempdir();
    let tried = Supervisor::this_program().map_err(|error| error.to_string()).and_then(|guard| {
        let dir = made.map_err(|error| error.to_string())?;
        sandbox::try_out(&guard, dir.path())
    });
    match tried {
        Err(why) => Check::new(NAME, Status::Failed, format!("cannot be set up: {why}"))
            .hint(sandbox_setting("run agents without it", "false")),
        Ok(tried) if tried.outside || !tried.inside => {
            Check::new(NAME, Status::Warning, format!("{words}; this system does not enforce it"))
                .hint("what an agent writes is not confined here: see docs/sandbox.md")
        }
        Ok(tried) => {
            let gaps = tried.enforced.gaps(settings.sandbox.network);
            if gaps.is_empty() {
                return Check::new(NAME, Status::Ok, format!("{words} (tried)"));
            }
            let detail = format!("{words}; an agent could still {}", gaps.join(", "));
            Check::new(NAME, Status::Warning, detail).hint("see docs/sandbox.md")
        }
    }
}

fn config_check(
    project: &Project,
    config: Option<Result<Config, DocumentError>>,
) -> Result<Check, CommandError> {
    Ok(match config {
        Some(Err(error)) => Check::of_error("config", Status::Failed, &error.into()),
        _ if project.dir().is_file(&layout::config())? => {
            Check::new("config", Status::Ok, "agentd/config.toml is sound")
        }
        _ => Check::new("config", Status::Ok, "no agentd/config.toml; the defaults hold"),
    })
}

/// Changes whose state cannot be read, and directories that are no changes.
fn changes(project: &Project) -> Result<Vec<Check>, CommandError> {
    let listed = project.change_ids()?;
    let mut checks: Vec<Check> = Vec::new();
    for entry in &listed.odd {
        let detail = format!("agentd/changes/{} is not a change", entry.name);
        checks.push(
            Check::new("changes", Status::Warning, detail)
                .hint("rename it to an id, or move it away"),
        );
    }
    for id in &listed.ids {
        let Some(change) = project.change_if_open(id)? else { continue };
        if let Err(error) = documents::load_state_if_begun(&change) {
            checks.push(Check::of_error("state", Status::Failed, &error.into()));
        }
    }
    if checks.is_empty() {
        checks.push(Check::new("changes", Status::Ok, format!("{} open", listed.ids.len())));
    }
    Ok(checks)
}

/// Which locks are held.
fn locks(project: &Project) -> Result<Vec<Check>, CommandError> {
    let mut checks = Vec::new();
    let ids = project.change_ids()?.ids;
    let runs = ids.iter().cloned().map(LockName::Run);
    for name in runs.chain([LockName::Sessions, LockName::Project]) {
        if let LockState::Held(holder) = lock_state(project.dir(), &name)? {
            let who =
                holder.map_or_else(|| "another process".to_owned(), |holder| holder.to_string());
            checks.push(Check::new("lock", Status::Ok, format!("{name}: held by {who}")));
        }
    }
    if checks.is_empty() {
        checks.push(Check::new("locks", Status::Ok, "nobody is at work"));
    }
    Ok(checks)
}

impl Output for DoctorReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        for check in &self.checks {
            let (mark, style) = match check.status {
                Status::Ok => ("✓", GOOD),
                Status::Warning => ("!", WARN),
                Status::Failed => ("✗", BAD),
            };
            let detail = printable(&check.detail);
            writeln!(screen, "{style}{mark}{style:#} {BOLD}{:8}{BOLD:#} {detail}", check.name)?;
            if let Some(hint) = &check.hint {
                writeln!(screen, "           hint: {}", printable(&hint.to_string()))?;
            }
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let check = Check::new("git", Status::Warning, "`git` is not on PATH").hint("install git");
        Self { healthy: true, checks: vec![check] }
    }
}
