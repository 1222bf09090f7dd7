use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentd_core::agent::AgentKind;
use agentd_core::command_line::CommandLine;
use agentd_core::config::Config;
use agentd_core::hint::Hint;
use agentd_core::nearest::nearest;
use agentd_core::next_step::{Command, NextStep};
use agentd_core::rel_path::RelPath;
use agentd_core::text::printable;
use agentd_engine::change::documents;
use agentd_engine::guard::trust;
use agentd_engine::opening;
use agentd_engine::process;
use agentd_engine::store::{Project, StoreError};
use inquire::MultiSelect;
use serde::{Serialize, Serializer};

use super::Context;
use crate::error::CommandError;
use crate::install::{self, FileAction, FileChange, Players};
use crate::ui::ask::answered;
use crate::ui::{BOLD, DIM, Output, Screen, WARN};

/// Set up agentd in a project.
///
/// Writes agentd/config.toml and agentd/project.md. For each agent, adds a block to the file
/// that it reads (CLAUDE.md, AGENTS.md, GEMINI.md), an entry for the MCP server (.mcp.json,
/// .gemini/settings.json), and the workflow as commands or skills: /agentd:plan, /agentd:impl,
/// /agentd:archive and so on in Claude Code and Gemini CLI, $agentd-plan and so on in Codex.
/// Existing content is kept, and running the command again changes nothing. Nothing outside
/// the project is written.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd init\n  agentd init --yes --agents claude,codex\n  agentd init --dry-run"
)]
pub(crate) struct Args {
    /// Agents to set up: claude, codex, gemini, all, or none; the default is those on PATH. With
    /// none, the built-in agent plans and reviews by rules, without a model.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    agents: Option<Vec<String>>,

    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,

    /// Show what would be written, without writing anything.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let root = root(&context.start)?;
    let project = context.project_at(&root)?;
    let agents = choose(context, args, &root)?;
    // Only where no agents are wanted: that none is on PATH may be a mistake.
    let none = args.agents.is_some() && agents.is_empty();
    let players = if none { Players::Builtin } else { Players::Default };
    let changes = install::install(project.dir(), &agents, players)?;
    let kept = |change: &FileChange| {
        change.path == agentd_core::layout::config() && change.action == FileAction::Unchanged
    };
    if none && changes.iter().any(kept) && !plans_by_rules(&project)? {
        context.ui.note(
            "agentd/config.toml is yours and stays as it is; to plan without agents, set planner, \
             challenger and reviewer in [roles] to \"builtin\"",
        );
    }
    if !args.dry_run {
        write(&project, &changes)?;
    }
    context.ui.print(&InstallReport::new(&root, changes, args.dry_run, agents))?;
    Ok(ExitCode::SUCCESS)
}

/// Whether the settings that are there let the built-in agent plan.
fn plans_by_rules(project: &Project) -> Result<bool, CommandError> {
    Ok(documents::load_config(project)?.roles.planner == AgentKind::Builtin)
}

fn write(project: &Project, changes: &[FileChange]) -> Result<(), CommandError> {
    install::apply(project.dir(), changes)?;
    for dir in [agentd_core::layout::changes_dir(), agentd_core::layout::main_specs_dir()] {
        project.dir().create_dir_all(&dir)?;
    }
    trust_own(project, changes)
}

/// Settings that were just written here are trusted by that. Those that were there already are
/// the repository's, and a person has to agree to them.
fn trust_own(project: &Project, changes: &[FileChange]) -> Result<(), CommandError> {
    let written = changes.iter().find_map(|change| match &change.action {
        FileAction::Create(text) if change.path == agentd_core::layout::config() => Some(text),
        _ => None,
    });
    let config = written.and_then(|text| Config::parse(text).ok());
    if let Some(config) = config.filter(|config| !config.executable().is_empty()) {
        trust::grant(project, config)?;
    }
    Ok(())
}

/// Sets up a project without anything for agents.
pub(super) fn set_up_least(project: &Project) -> Result<(), CommandError> {
    write(project, &install::install(project.dir(), &[], Players::Default)?)
}

/// An existing project above, otherwise the repository, otherwise the current directory.
fn root(start: &Path) -> Result<PathBuf, CommandError> {
    match opening::root_of(start) {
        Err(StoreError::NotInitialised { suggested, .. }) => Ok(suggested),
        root => Ok(root?),
    }
}

fn choose(context: &Context, args: &Args, root: &Path) -> Result<Vec<AgentKind>, CommandError> {
    if let Some(names) = &args.agents {
        return parse(names);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let here: Vec<AgentKind> = AgentKind::CLIS
        .into_iter()
        .filter(|agent| process::find_program(agent.name(), &path, root).is_some())
        .collect();
    if args.yes || args.dry_run || !context.ui.can_prompt() {
        if here.is_empty() {
            let known = "`--agents` names those that you use: claude, codex, gemini";
            context.ui.note(&format!("No agent was found on PATH; {known}"));
        }
        return Ok(here);
    }
    let options: Vec<&str> = AgentKind::CLIS.iter().map(|agent| agent.name()).collect();
    let marked: Vec<usize> = AgentKind::CLIS
        .iter()
        .enumerate()
        .filter(|(_, agent)| here.contains(agent))
        .map(|(i, _)| i)
        .collect();
    let chosen = MultiSelect::new("Which agents work on this project?", options)
        .with_default(&marked)
        .with_help_message("space to select, enter to confirm; agents on PATH are selected")
        .prompt();
    let by_name = CommandLine::agentd(["init", "--agents", "claude,codex,gemini"]);
    let names = answered(chosen, Hint::run("name the agents", by_name))?;
    Ok(names.into_iter().filter_map(|name| name.parse().ok()).collect())
}

fn parse(names: &[String]) -> Result<Vec<AgentKind>, CommandError> {
    let mut agents = Vec::new();
    for name in names.iter().map(|name| name.trim()) {
        match (name, AgentKind::CLIS.into_iter().find(|agent| agent.name() == name)) {
            ("all", _) => agents.extend(AgentKind::CLIS),
            ("none" | "", _) => {}
            (_, Some(agent)) => agents.push(agent),
            (_, None) => {
                let known = AgentKind::CLIS.into_iter().map(AgentKind::name).chain(["all", "none"]);
                let error = CommandError::usage(format!("there is no agent `{name}`"));
                return Err(match nearest(name, known) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint(
                        "the agents are claude, codex and gemini; `all` and `none` work as well",
                    ),
                });
            }
        }
    }
    agents.sort_unstable();
    agents.dedup();
    Ok(agents)
}

/// What setting up a project has written, or taking agentd out of it has removed.
#[derive(Debug, Serialize)]
pub(super) struct InstallReport {
    /// The project.
    root: String,
    /// Whether nothing was written.
    dry_run: bool,
    /// The agents that were set up.
    agents: Vec<AgentKind>,
    /// What was done with each file.
    files: Vec<FileReport>,
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
    pub(super) fn new(
        root: &Path,
        changes: Vec<FileChange>,
        dry_run: bool,
        agents: Vec<AgentKind>,
    ) -> Self {
        let files = changes.into_iter().map(|FileChange { path, action }| {
            let reason = match &action {
                FileAction::Leave(reason) => Some(reason.clone()),
                _ => None,
            };
            FileReport { path, action, reason }
        });
        Self { root: root.display().to_string(), dry_run, agents, files: files.collect() }
    }
}

impl Output for InstallReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let Self { root, dry_run, agents, files } = self;
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
        if *dry_run {
            writeln!(screen, "\nNothing was written: this was a dry run.")?;
        } else if agents.contains(&AgentKind::Codex) {
            writeln!(
                screen,
                "\nCodex keeps its MCP servers in your home: codex mcp add agentd -- agentd mcp"
            )?;
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
        }
    }
}
