use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::config::Config;
use agentd_core::known_agent;
use agentd_core::next_step::{Command, NextStep};
use agentd_core::rel_path::RelPath;
use agentd_core::text::printable;
use agentd_engine::insight::toolchain::{self, Commands, Detected};
use serde::{Serialize, Serializer};

use crate::install::{FileAction, FileChange};
use crate::ui::{BOLD, DIM, Output, Screen, WARN};

/// What setting up a project has written, or taking agentd out of it has removed.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct InstallReport {
    /// The project.
    root: String,
    /// Whether nothing was written.
    dry_run: bool,
    /// The agents that were set up.
    agents: Vec<AgentKind>,
    /// What was done with each file.
    files: Vec<FileReport>,
    /// Who plays which role.
    roles: BTreeMap<Role, AgentKind>,
    /// The commands that were found and written, by what they are for.
    commands: BTreeMap<&'static str, Detected>,
    /// What a person should know about it.
    notes: Vec<String>,
}

/// What `init` has decided about a project.
pub(in crate::cli) struct SetUp {
    agents: Vec<AgentKind>,
    roles: BTreeMap<Role, AgentKind>,
    commands: Commands,
    notes: Vec<String>,
}

impl SetUp {
    /// `config` holds from now on, and the agents in `here` are on this machine.
    pub(super) fn new(
        root: &Path,
        agents: Vec<AgentKind>,
        config: Option<&Config>,
        commands: Commands,
        here: &[AgentKind],
    ) -> Self {
        let chosen = config.filter(|config| config.roles_are_written);
        let roles: BTreeMap<Role, AgentKind> = chosen
            .into_iter()
            .flat_map(|config| Role::ALL.map(|role| (role, config.roles.agent(role))))
            .collect();
        let mut notes = Vec::new();
        if let Some(config) = chosen
            && !config.roles.are_independent()
        {
            notes.push(dependent(config));
        }
        let plays = |agent: AgentKind| {
            let roles = roles.iter().filter(move |(_, player)| **player == agent);
            roles.map(|(role, _)| role.name()).collect::<Vec<_>>()
        };
        let is_set = |agent| {
            let settings = config.map(|config| config.agent(agent));
            settings.is_some_and(|agent| agent.command.is_some() || agent.acp.is_some())
        };
        let missing: Vec<String> = known_agent::agents()
            .filter(|agent| !plays(*agent).is_empty() && !is_set(*agent) && !here.contains(agent))
            .map(|agent| format!("{agent} ({})", plays(agent).join(", ")))
            .collect();
        if !missing.is_empty() {
            notes.push(format!(
                "Not on PATH: {}. Install what is missing, or change [roles] in \
                 agentd/config.toml.",
                missing.join("; ")
            ));
        }
        if toolchain::repository_of(root).is_none() {
            notes.push(
                "This is not a git repository: changes are worked on in place, without branches \
                 and commits, and code reviews have no diff. Create one with `git init`."
                    .to_owned(),
            );
        }
        Self { agents, roles, commands, notes }
    }
}

/// Which reviews are by the vendor that wrote, or may be.
fn dependent(config: &Config) -> String {
    let roles = &config.roles;
    let vendor = |agent| known_agent::vendor(agent, "");
    let pairs = [(roles.planner, roles.challenger), (roles.implementer, roles.reviewer)];
    let unclear = pairs.iter().find(|(writes, reviews)| {
        writes != reviews && !known_agent::are_independent(vendor(*writes), vendor(*reviews))
    });
    if let Some((writes, reviews)) = unclear {
        return format!(
            "Reviews may not be independent: {writes} and {reviews} may use models of the same vendor. \
             Set their models, or change [roles]."
        );
    }
    let (plans, code) = (roles.planner == roles.challenger, roles.implementer == roles.reviewer);
    let who = match (plans, code) {
        (true, true) if roles.planner == roles.reviewer => {
            format!("{} reviews its own plans and code", roles.reviewer)
        }
        (true, true) => format!(
            "{} reviews its own plans, and {} its own code",
            roles.challenger, roles.reviewer
        ),
        (true, false) => format!("{} reviews its own plans", roles.challenger),
        (false, _) => format!("{} reviews its own code", roles.reviewer),
    };
    format!("Reviews will not be independent: {who}. With a second agent, change [roles].")
}

/// A label for each command that was found, and the command, with where.
pub(super) fn command_lines(commands: &Commands) -> Vec<(String, String)> {
    let line = |(purpose, found): (&str, &Detected)| {
        (format!("  {purpose:12} "), format!("{} (from {})", found.command, found.source))
    };
    commands.by_purpose().map(line).collect()
}

/// What was done with one file.
#[derive(Debug, Serialize)]
struct FileReport {
    /// The file.
    path: RelPath,
    /// What was done with it.
    #[serde(serialize_with = "in_the_past")]
    action: FileAction,
    /// Why it was left as it is, if so.
    reason: Option<String>,
}

fn in_the_past<S: Serializer>(action: &FileAction, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(action.verb(false))
}

impl InstallReport {
    pub(in crate::cli) fn new(
        root: &Path,
        changes: Vec<FileChange>,
        dry_run: bool,
        set_up: Option<SetUp>,
    ) -> Self {
        let files = changes.into_iter().map(|FileChange { path, action }| {
            let reason = match &action {
                FileAction::Leave(reason) => Some(reason.clone()),
                _ => None,
            };
            FileReport { path, action, reason }
        });
        let (root, files) = (root.display().to_string(), files.collect());
        let (agents, roles, commands, notes) = match set_up {
            Some(SetUp { agents, roles, commands, notes }) => (agents, roles, commands, notes),
            None => Default::default(),
        };
        let by_purpose = commands.by_purpose().map(|(purpose, found)| (purpose, found.clone()));
        let commands = by_purpose.collect();
        Self { root, dry_run, agents, files, roles, commands, notes }
    }
}

impl Output for InstallReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let Self { root, dry_run, agents: _, files, roles, commands, notes } = self;
        writeln!(screen, "{BOLD}{}{BOLD:#}\n", printable(root))?;
        for FileReport { path, action, .. } in files {
            let verb = action.verb(*dry_run);
            match action {
                FileAction::Unchanged => writeln!(screen, "{DIM}{verb:10} {path}{DIM:#}")?,
                FileAction::Leave(reason) => {
                    writeln!(screen, "{WARN}{verb:10}{WARN:#} {path}: {}", printable(reason))?;
                }
                _ => writeln!(screen, "{BOLD}{verb:10}{BOLD:#} {path}")?,
            }
        }
        if !roles.is_empty() {
            writeln!(screen, "\nRoles:")?;
            for (role, agent) in roles {
                writeln!(screen, "  {:12} {agent}", role.name())?;
            }
        }
        if !commands.is_empty() {
            let written = if *dry_run { " that would be written" } else { ", written" };
            writeln!(screen, "\nCommands{written} to [implementation]:")?;
            for purpose in ["test", "lint", "build"] {
                let Some(Detected { command, source }) = commands.get(purpose) else { continue };
                writeln!(screen, "  {purpose:12} {command} (from {})", printable(source))?;
            }
        }
        for note in notes {
            writeln!(screen, "\n{}", printable(note))?;
        }
        if *dry_run {
            writeln!(screen, "\nNothing was written: this was a dry run.")?;
        }
        if files.iter().all(|file| file.action == FileAction::Unchanged) {
            writeln!(screen, "\nNothing to do.")?;
        }
        if !dry_run && files.iter().any(|file| matches!(file.action, FileAction::Create(_))) {
            writeln!(
                screen,
                "\nNext: describe your project in agentd/project.md, then: {}",
                NextStep::new(Command::Doctor)
            )?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let file = FileReport {
            path: RelPath::new(".mcp.json").unwrap(),
            action: FileAction::Leave("it is not JSON".to_owned()),
            reason: Some("it is not JSON".to_owned()),
        };
        Self {
            root: "/home/ada/project".to_owned(),
            dry_run: true,
            agents: vec![AgentKind::Claude],
            files: vec![file],
            roles: [(Role::Planner, AgentKind::Claude)].into(),
            commands: [(
                "test",
                Detected { command: "cargo test".to_owned(), source: "Cargo.toml".to_owned() },
            )]
            .into(),
            notes: vec!["This is not a git repository.".to_owned()],
        }
    }
}
