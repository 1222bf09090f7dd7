mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentd_core::agent::AgentKind;
use agentd_core::command_line::CommandLine;
use agentd_core::config::{Config, Roles};
use agentd_core::hint::Hint;
use agentd_core::known_agent::{self, KNOWN};
use agentd_core::layout;
use agentd_core::nearest::nearest;
use agentd_engine::agents::installed;
use agentd_engine::change::documents;
use agentd_engine::git::{self, GitTool};
use agentd_engine::guard::trust;
use agentd_engine::insight::toolchain::{self, Commands};
use agentd_engine::opening;
use agentd_engine::store::{Project, StoreError};

use super::Context;
use crate::error::CommandError;
use crate::install::{self, FileAction, FileChange, Players, Settings};
use crate::ui::ask;

pub(super) use report::{InstallReport, SetUp};

/// Set up agentd in a project.
///
/// Writes agentd/config.toml, with the roles of the agents and the commands that test, lint and
/// build the project, and agentd/project.md. For each agent, adds a block to the file
/// that it reads (CLAUDE.md, AGENTS.md, GEMINI.md), an entry for the MCP server (.mcp.json,
/// .gemini/settings.json, .codex/config.toml), and the workflow as commands or skills:
/// /agentd:plan, /agentd:impl, /agentd:archive and so on in Claude Code and Gemini CLI,
/// $agentd-plan and so on in Codex. Existing content is kept, and running the command again
/// changes nothing. Nothing outside the repository is written: its .git/config and
/// .git/info/attributes register agentd as the merge driver for specs.
///
/// The project is the git repository. In a package of a monorepo, a directory below its root
/// with a manifest of its own, agentd asks; without a terminal it takes the directory that it is
/// started in, or `-C`, if that is a package. If the repository is set up already, only --here
/// sets up a package of it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd init\n  agentd init --yes --agents claude,codex\n  agentd init --here          this directory, not the whole repository\n  agentd init --dry-run"
)]
pub(crate) struct Args {
    /// Agents to set up: claude, codex, gemini, all, or none; the default is those on PATH. With
    /// none, the built-in agent plans and reviews by rules, without a model.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    agents: Option<Vec<String>>,

    #[command(flatten)]
    place: Place,

    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,

    /// Show what would be written, without writing anything.
    #[arg(long)]
    dry_run: bool,
}

/// Where the project is, in a monorepo.
#[derive(Debug, clap::Args)]
struct Place {
    /// Set up this directory, also in a git repository or in another project.
    #[arg(long, conflicts_with = "root")]
    here: bool,

    /// Set up the whole git repository, also in one of its packages.
    #[arg(long)]
    root: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let root = root(context, args)?;
    let project = context.project_at(&root)?;
    let agents = choose(context, args, &root)?;
    // Only where no agents are wanted: that none is on PATH may be a mistake.
    let none = args.agents.is_some() && agents.is_empty();
    let players = if none { Players::Builtin } else { players(&agents) };
    let unset = install::is_unset(project.dir());
    let commands = if unset { commands(context, args, &root)? } else { Commands::default() };
    let settings = Settings { players, commands };
    let changes = install::install(project.dir(), &agents, &settings)?;
    if none && !unset && !plans_by_rules(&project)? {
        context.ui.note(
            "agentd/config.toml is yours and stays as it is; to plan without agents, set planner, \
             challenger and reviewer in [roles] to \"builtin\"",
        );
    }
    let config = config_after(&project, &changes);
    let set_up = SetUp::new(&root, agents, config.as_ref(), settings.commands, &here(&root));
    if !args.dry_run {
        write(&project, &changes)?;
        register_merge_driver(context, &project);
    }
    context.ui.print(&InstallReport::new(&root, changes, args.dry_run, Some(set_up)))?;
    Ok(ExitCode::SUCCESS)
}

/// The roles for these agents.
fn players(agents: &[AgentKind]) -> Players {
    Roles::among(agents).map_or(Players::Default, Players::Agents)
}

/// The roles for the agents on PATH.
pub(super) fn players_here(root: &Path) -> Players {
    players(&here(root))
}

/// The agents on PATH.
fn here(root: &Path) -> Vec<AgentKind> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    installed::on_path(&path, root).collect()
}

/// The commands that are written into `[implementation]`: those that are found, if a person who
/// can be asked agrees to them. They run what the repository says, in the sandbox.
fn commands(context: &Context, args: &Args, root: &Path) -> Result<Commands, CommandError> {
    let found = toolchain::detect_at(root);
    let asks = !args.yes && !args.dry_run && context.ui.can_prompt();
    if asks && found.by_purpose().next().is_some() {
        for (label, command) in report::command_lines(&found) {
            context.ui.labeled(&label, &command);
        }
        if !ask::write_commands()? {
            return Ok(Commands::default());
        }
    }
    Ok(found)
}

/// The settings that hold once the changes are written, if they can be read.
fn config_after(project: &Project, changes: &[FileChange]) -> Option<Config> {
    let written = changes.iter().find_map(|change| match &change.action {
        FileAction::Create(text) | FileAction::Update(text) if change.path == layout::config() => {
            Some(text)
        }
        _ => None,
    });
    match written {
        Some(text) => Config::parse(text).ok(),
        None => documents::load_config(project).ok(),
    }
}

/// Whether the settings that are there let the built-in agent plan.
fn plans_by_rules(project: &Project) -> Result<bool, CommandError> {
    Ok(documents::load_config(project)?.roles.planner == AgentKind::Builtin)
}

fn write(project: &Project, changes: &[FileChange]) -> Result<(), CommandError> {
    install::apply(project.dir(), changes)?;
    for dir in [layout::changes_dir(), layout::main_specs_dir()] {
        project.dir().create_dir_all(&dir)?;
    }
    trust_own(project, changes)
}

/// Settings that were just written here are trusted by that. Those that were there already are
/// the repository's, and a person has to agree to them.
fn trust_own(project: &Project, changes: &[FileChange]) -> Result<(), CommandError> {
    let written = changes.iter().find_map(|change| match &change.action {
        // An update is of a file in which nothing was set.
        FileAction::Create(text) | FileAction::Update(text) if change.path == layout::config() => {
            Some(text)
        }
        _ => None,
    });
    let config = written.and_then(|text| Config::parse(text).ok());
    if let Some(config) = config.filter(|config| !config.executable().is_empty()) {
        trust::grant(project, config)?;
    }
    Ok(())
}

/// Registers agentd as what merges specs in this clone.
pub(super) fn register_merge_driver(context: &Context, project: &Project) {
    if let Some(warning) = git::register_merge_driver(&GitTool::default(), project.root()) {
        context.ui.warn(&warning);
    }
}

/// Sets up a project without anything for agents.
pub(super) fn set_up_least(project: &Project, players: Players) -> Result<(), CommandError> {
    let settings = Settings { players, ..Settings::default() };
    write(project, &install::install(project.dir(), &[], &settings)?)
}

/// An existing project above, otherwise the repository or a package of it, otherwise the current
/// directory.
fn root(context: &Context, args: &Args) -> Result<PathBuf, CommandError> {
    let (start, repository) = match opening::root_of(&context.start) {
        Err(StoreError::NotInitialised { start, suggested }) => (start, suggested),
        Ok(root) if args.place.here => {
            let start = std::fs::canonicalize(&context.start).unwrap_or(root);
            return Ok(start);
        }
        Ok(root) if args.place.root => return Ok(toolchain::repository_of(&root).unwrap_or(root)),
        Ok(root) => {
            let start = std::fs::canonicalize(&context.start).unwrap_or_default();
            let package = toolchain::package_of(&start).filter(|package| *package == start);
            if let Some(package) = package.filter(|package| *package != root) {
                note_package(context, &root, &package, &CommandLine::agentd(["init", "--here"]));
            }
            return Ok(root);
        }
        Err(error) => return Err(error.into()),
    };
    if args.place.here {
        return Ok(start);
    }
    let package = toolchain::package_of(&start).filter(|_| !args.place.root);
    match package {
        Some(package) if !args.yes && !args.dry_run && context.ui.can_prompt() => {
            let shown = package.strip_prefix(&repository).unwrap_or(&package);
            let whole = ask::whole_repository(&shown.display().to_string())?;
            Ok(if whole { repository } else { package })
        }
        Some(package) if package == start => Ok(package),
        // The package above this directory may be meant or not.
        Some(package) => {
            let path = package.display().to_string();
            let command = CommandLine::agentd(["-C", &path, "init", "--here"]);
            note_package(context, &repository, &package, &command);
            Ok(repository)
        }
        None => Ok(repository),
    }
}

/// Names a package that is not set up, since the project around it is.
fn note_package(context: &Context, root: &Path, package: &Path, command: &CommandLine) {
    let shown = package.strip_prefix(root).unwrap_or(package);
    context.ui.note(&format!("{} is a package; `{command}` sets it up", shown.display()));
}

fn choose(context: &Context, args: &Args, root: &Path) -> Result<Vec<AgentKind>, CommandError> {
    if let Some(names) = &args.agents {
        return parse(names);
    }
    let here = here(root);
    if args.yes || args.dry_run || !context.ui.can_prompt() {
        if here.is_empty() {
            let known = "`--agents` names those that you use: claude, codex, gemini, opencode, …";
            context.ui.note(&format!("No agent was found on PATH; {known}"));
        }
        return Ok(here);
    }
    let names: Vec<&str> = KNOWN.iter().map(|row| row.name).collect();
    let is_here = |name: &str| here.iter().any(|agent| agent.name() == name);
    let marked: Vec<bool> = names.iter().map(|name| is_here(name)).collect();
    let by_name = CommandLine::agentd(["init", "--agents", "claude,codex,gemini"]);
    let chosen = ask::agents(&names, &marked, Hint::run("name the agents", by_name))?;
    Ok(chosen.into_iter().filter_map(|at| names.get(at)?.parse().ok()).collect())
}

fn parse(names: &[String]) -> Result<Vec<AgentKind>, CommandError> {
    let mut agents = Vec::new();
    for name in names.iter().map(|name| name.trim()) {
        match (name, known_agent::agents().find(|agent| agent.name() == name)) {
            ("all", _) => agents.extend(AgentKind::CLIS),
            ("none" | "", _) => {}
            (_, Some(agent)) => agents.push(agent),
            (_, None) => {
                let known = KNOWN.iter().map(|row| row.name).chain(["all", "none"]);
                let error = CommandError::usage(format!("there is no agent `{name}`"));
                return Err(match nearest(name, known) {
                    Some(near) => error.hint(format!("did you mean `{near}`?")),
                    None => error.hint(format!(
                        "the agents are {}; `all` (claude, codex, gemini) and `none` work as well",
                        KNOWN.map(|row| row.name).join(", ")
                    )),
                });
            }
        }
    }
    agents.sort_unstable();
    agents.dedup();
    Ok(agents)
}
