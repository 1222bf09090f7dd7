use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentd_core::agent::AgentKind;
use agentd_core::config::{Config, nearest};
use agentd_core::text::printable;
use agentd_engine::guard::trust;
use agentd_engine::opening;
use agentd_engine::process;
use agentd_engine::store::{Project, StoreError};
use inquire::MultiSelect;
use serde_json::{Value, json};

use super::{Context, next};
use crate::error::CommandError;
use crate::install::{self, FileAction, FileChange};
use crate::ui::ask::answered;
use crate::ui::{BOLD, DIM, WARN};

/// Set up agentd in a project.
///
/// Writes agentd/config.toml and agentd/project.md, and for each agent a block
/// in the file that it reads (CLAUDE.md, AGENTS.md, GEMINI.md), an entry for
/// the MCP server (.mcp.json, .gemini/settings.json), and the workflow as commands
/// or skills: /agentd:plan, /agentd:impl and /agentd:archive in Claude Code and
/// Gemini CLI, $agentd-plan and so on in Codex. What is there already is
/// kept; run twice, nothing changes. Nothing outside the project is written.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd init\n  agentd init --yes --agents claude,codex\n  agentd init --dry-run"
)]
pub(crate) struct Args {
    /// Which agents to set up: claude, codex, gemini, all or none. Without it, those on PATH.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    agents: Option<Vec<String>>,

    /// Ask nothing.
    #[arg(long, short = 'y')]
    yes: bool,

    /// Only say what would be written.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let root = root(&context.start)?;
    let project = context.project_at(&root)?;
    let agents = choose(context, args, &root)?;
    let changes = install::install(project.dir(), &agents)?;
    if !args.dry_run {
        write(&project, &changes)?;
    }
    report(context, &root, &changes, args.dry_run, &agents)?;
    Ok(ExitCode::SUCCESS)
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
    write(project, &install::install(project.dir(), &[])?)
}

/// An existing project above, else the repository, else the current directory.
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
        .with_help_message("space marks, enter goes on; those on PATH are marked")
        .prompt();
    let hint = "name the agents: agentd init --agents claude,codex,gemini";
    let names = answered(chosen, hint)?;
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
                    None => {
                        error.hint("agents are claude, codex and gemini; all and none work too")
                    }
                });
            }
        }
    }
    agents.sort_unstable();
    agents.dedup();
    Ok(agents)
}

/// Says what was done with which file.
pub(super) fn report(
    context: &Context,
    root: &Path,
    changes: &[FileChange],
    dry_run: bool,
    agents: &[AgentKind],
) -> Result<(), CommandError> {
    if context.ui.json {
        let files: Vec<Value> = changes
            .iter()
            .map(|change| {
                let reason = match &change.action {
                    FileAction::Leave(reason) => Some(reason),
                    _ => None,
                };
                json!({ "path": change.path.as_str(), "action": change.action.verb(false), "reason": reason })
            })
            .collect();
        let agents: Vec<&str> = agents.iter().map(|agent| agent.name()).collect();
        let document = json!({
            "version": 1,
            "root": root.display().to_string(),
            "dry_run": dry_run,
            "agents": agents,
            "files": files,
        });
        return context.ui.print_json(&document);
    }
    let mut out = context.ui.out();
    writeln!(out, "{BOLD}{}{BOLD:#}\n", printable(&root.display().to_string()))?;
    for change in changes {
        let path = change.path.as_str();
        let verb = change.action.verb(dry_run);
        match &change.action {
            FileAction::Unchanged => writeln!(out, "{DIM}{verb:10} {path}{DIM:#}")?,
            FileAction::Leave(reason) => {
                writeln!(out, "{WARN}{verb:10}{WARN:#} {path}: {}", printable(reason))?;
            }
            _ => writeln!(out, "{BOLD}{verb:10}{BOLD:#} {path}")?,
        }
    }
    if dry_run {
        writeln!(out, "\nNothing was written: this was a dry run.")?;
    } else if agents.contains(&AgentKind::Codex) && next::exists("mcp") {
        writeln!(
            out,
            "\nCodex keeps its MCP servers in your home: codex mcp add agentd -- agentd mcp"
        )?;
    }
    if changes.iter().all(|change| change.action == FileAction::Unchanged) {
        writeln!(out, "\nNothing to do.")?;
    }
    if !dry_run && changes.iter().any(|change| matches!(change.action, FileAction::Create(_))) {
        writeln!(out, "\nNext: describe your project in agentd/project.md, then: agentd doctor")?;
    }
    out.flush()?;
    Ok(())
}
