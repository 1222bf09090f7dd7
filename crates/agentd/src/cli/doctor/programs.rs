//! The programs that play roles, and git.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentd_core::agent::AgentKind;
use agentd_core::command_line::CommandLine;
use agentd_core::config::Config;
use agentd_core::hint::Hint;
use agentd_core::known_agent::known;
use agentd_engine::agents::installed;
use agentd_engine::agents::login::{self, Login};
use agentd_engine::process;

use super::{Check, Status};

/// What is needed to look for programs.
pub(super) struct Programs<'a> {
    settings: &'a Config,
    /// Whether somebody has agreed to what the settings run.
    trusted: bool,
    root: &'a Path,
    limit: Duration,
    path: OsString,
}

impl<'a> Programs<'a> {
    pub(super) fn new(
        settings: &'a Config,
        trusted: bool,
        root: &'a Path,
        limit: Duration,
    ) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self { settings, trusted, root, limit, path }
    }

    pub(super) fn git(&self) -> Check {
        let hint = "install git; agentd keeps changes apart with branches and worktrees";
        self.version("git", "git", "", hint.into())
    }

    /// An agent that plays roles: whether it is installed, and its version.
    pub(super) fn agent(&self, agent: AgentKind) -> Check {
        let roles = self.settings.roles.of_agent(agent);
        let roles: Vec<&str> = roles.into_iter().map(agentd_core::agent::Role::name).collect();
        let roles = format!("{}: ", roles.join(", "));
        if agent.is_own() {
            return Check::new(agent.name(), Status::Ok, format!("{roles}part of agentd"));
        }
        let command = self.command(agent);
        if !self.may_run(agent) {
            let detail =
                format!("{roles}`{command}` of agentd/config.toml is not trusted, and not run");
            return Check::new(agent.name(), Status::Warning, detail).hint(agree());
        }
        self.version(agent.name(), &command, &roles, install_hint(agent))
    }

    /// Whether an agent that plays roles is logged in; nothing if it is not there to be asked.
    pub(super) fn login(&self, agent: AgentKind) -> Option<Check> {
        const NAME: &str = "login";
        if agent.is_own() || !self.may_run(agent) {
            return None;
        }
        let program = self.find(&self.command(agent))?;
        // What a repository adds to the environment counts once somebody has agreed to it.
        let nothing = std::collections::BTreeMap::new();
        let env = if self.trusted { &self.settings.agent(agent).env } else { &nothing };
        Some(match login::status(agent, &program, env, |name| std::env::var_os(name), self.limit) {
            Login::Known(by) => Check::new(NAME, Status::Ok, format!("{agent}: yes, {by}")),
            Login::Unknown(why) => {
                Check::new(NAME, Status::Ok, format!("{agent}: not known, {why}"))
            }
            Login::Missing => Check::new(
                NAME,
                Status::Warning,
                format!("{agent}: not logged in, and no key is set"),
            )
            .hint(login_hint(agent)),
        })
    }

    /// The program of an agent, as it is set or as it is known.
    fn command(&self, agent: AgentKind) -> String {
        let command = self.settings.command(agent).into_iter().next();
        command.unwrap_or_else(|| agent.to_string())
    }

    /// Whether a plain name would be run, or somebody has agreed to what is set instead.
    fn may_run(&self, agent: AgentKind) -> bool {
        let usual = known(agent).map(|row| [row.program, row.acp.first().unwrap_or(&row.program)]);
        self.trusted || usual.is_some_and(|usual| usual.contains(&self.command(agent).as_str()))
    }

    fn find(&self, command: &str) -> Option<PathBuf> {
        process::find_program(command, &self.path, self.root)
    }

    fn version(&self, name: &str, command: &str, roles: &str, hint: Hint) -> Check {
        let warning =
            |detail: String| Check::new(name, Status::Warning, format!("{roles}{detail}"));
        let Some(program) = self.find(command) else {
            let path = ("PATH".into(), self.path.clone());
            return match process::resolve(command, &[path], self.root) {
                Err(inside) => warning(format!("`{command}`: {inside}")),
                Ok(_) => {
                    let is_path = command.contains('/');
                    let missing = if is_path { "is not a program" } else { "is not on PATH" };
                    warning(format!("`{command}` {missing}")).hint(hint)
                }
            };
        };
        match installed::version(&program, self.limit) {
            Ok(version) => {
                let detail = format!("{roles}{version} ({})", program.display());
                Check::new(name, Status::Ok, detail)
            }
            Err(error) => warning(format!("{}: {error}", program.display())).hint(hint),
        }
    }
}

fn login_hint(agent: AgentKind) -> Hint {
    let words: &[&str] = match agent {
        AgentKind::Codex => &["codex", "login"],
        AgentKind::Claude => &["claude", "auth", "login"],
        AgentKind::Gemini => &["gemini"],
        AgentKind::Builtin | AgentKind::Replay | AgentKind::Named(_) => {
            return known(agent).map_or("log in", |row| row.login).into();
        }
    };
    Hint::run("log in", CommandLine::new(words.iter().copied()))
}

pub(super) fn install_hint(agent: AgentKind) -> Hint {
    let Some(row) = known(agent) else {
        return format!("set [agents.{agent}] acp to a program that is there").into();
    };
    let set = match agent {
        AgentKind::Named(_) => format!("[agents.{agent}] acp"),
        _ => format!("[{agent}] command"),
    };
    if row.install.starts_with("see ") {
        return format!("set {set}, assign its roles to another agent, or {}", row.install).into();
    }
    Hint::run(
        format!("set {set}, assign its roles to another agent, or install it"),
        CommandLine::new(row.install.split(' ')),
    )
}

pub(super) fn agree() -> Hint {
    Hint::run("see what would run, and agree to it", CommandLine::agentd(["trust"]))
}
