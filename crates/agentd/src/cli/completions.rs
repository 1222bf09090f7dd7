use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::document::spec;
use agentd_core::document::tasks::{self, Status};
use agentd_core::error_kind::Kind;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::known_agent;
use agentd_core::layout::ChangeFile;
use agentd_core::rules;
use agentd_engine::change::documents::{load_config, load_main_spec};
use agentd_engine::opening;
use agentd_engine::store::{Change, Project, UserDirs};
use clap::Command;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use clap_complete::{CompleteEnv, Shell};
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{Output, Screen};

/// The variable with which a script asks agentd what comes next.
const VARIABLE: &str = "AGENTD_COMPLETE";

/// zsh loads a script from `fpath` when something is completed for the first time, and takes the
/// script for the function that completes it.
const ZSH_FIRST: &str = "\nif [[ ${funcstack[1]} == _agentd ]]; then\n    \
    _clap_dynamic_completer_agentd \"$@\"\nfi\n";

/// What bash gets beyond the script of clap: bash breaks words at `:` and `=`, which are part of an ID
/// such as `auth-flow:R1`. The pieces are joined again before agentd is asked, and what bash has
/// already is taken off the answers.
const BASH_WORDS: &str = include_str!("completions/words.bash");

/// Print a completion script for a shell.
///
/// Completes commands, options, and the names of changes, specs, requirements, tasks, documents and
/// rules: the script asks agentd, so it stays right when agentd is updated.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd completions bash > ~/.local/share/bash-completion/completions/agentd\n  agentd completions zsh > \"${fpath[1]}/_agentd\"\n  agentd completions fish > ~/.config/fish/completions/agentd.fish"
)]
pub(crate) struct Args {
    /// Shell to print the script for.
    shell: Shell,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let mut script = Vec::new();
    let completer: &dyn EnvCompleter = match args.shell {
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::PowerShell => &Powershell,
        Shell::Zsh => &Zsh,
        _ => &Bash,
    };
    completer.write_registration(VARIABLE, "agentd", "agentd", "agentd", &mut script)?;
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match args.shell {
        Shell::Zsh => script.push_str(ZSH_FIRST),
        Shell::Bash => script.push_str(BASH_WORDS),
        _ => {}
    }
    context.ui.print(&CompletionScript { shell: args.shell.to_string(), script })?;
    Ok(ExitCode::SUCCESS)
}

/// A script for a shell.
#[derive(Debug, Serialize)]
pub(super) struct CompletionScript {
    /// The shell.
    shell: String,
    /// The script.
    script: String,
}

impl Output for CompletionScript {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        screen.write_all(self.script.as_bytes())
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self { shell: "bash".to_owned(), script: "complete agentd".to_owned() }
    }
}

/// Answers a script that asks what comes next. None if nobody asks.
pub(crate) fn answer(args: &[OsString]) -> Option<ExitCode> {
    std::env::var_os(VARIABLE).filter(|shell| !shell.is_empty() && shell != "0")?;
    let here = std::env::current_dir().ok();
    // What cannot be completed is nothing that a person wants to read about while they type.
    let answered = CompleteEnv::with_factory(definition)
        .var(VARIABLE)
        .try_complete(args.iter().cloned(), here.as_deref());
    Some(if answered.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What an argument is the name of.
#[derive(Debug, Clone, Copy)]
enum Names {
    /// An open change.
    Open,
    /// A change that is open or archived.
    Changes,
    /// An archived change.
    Archived,
    /// A change or a main spec.
    ChangesAndSpecs,
    /// A change, a spec, or a requirement of one.
    Requirements,
    /// Tasks of the change that is named.
    Tasks,
    /// A document of a change.
    Documents,
    /// The code or the name of a rule, or the kind of an error.
    Codes,
    /// A command of agentd.
    Commands,
    /// Agents that can be called: those that agentd knows, and those of the settings.
    Agents,
    /// Agents to set up, several of them.
    AgentsToSetUp,
    /// A role.
    Roles,
}

/// The arguments that name something, by command.
const NAMED: &[(&str, &str, Names)] = &[
    ("archive", "id", Names::Open),
    ("bug", "id", Names::Open),
    ("challenge", "id", Names::Open),
    ("clarify", "id", Names::Open),
    ("cost", "id", Names::Changes),
    ("decide", "id", Names::Open),
    ("diff", "id", Names::Changes),
    ("drop", "id", Names::Open),
    ("explain", "code", Names::Codes),
    ("export", "id", Names::Changes),
    ("fix", "id", Names::Open),
    ("give", "id", Names::Open),
    ("impl", "id", Names::Open),
    ("impl", "tasks", Names::Tasks),
    ("implement", "id", Names::Open),
    ("implement", "tasks", Names::Tasks),
    ("log", "id", Names::Changes),
    ("man", "command", Names::Commands),
    ("overlap", "id", Names::Open),
    ("plan", "id", Names::Open),
    ("proposal", "id", Names::Open),
    ("rename", "from", Names::Open),
    ("replay", "source", Names::Changes),
    ("reproposal", "id", Names::Open),
    ("review", "id", Names::Open),
    ("revise", "id", Names::Open),
    ("show", "id", Names::ChangesAndSpecs),
    ("show", "document", Names::Documents),
    ("status", "id", Names::Changes),
    ("step", "id", Names::Open),
    ("take", "id", Names::Open),
    ("trace", "id", Names::Requirements),
    ("unarchive", "id", Names::Archived),
    ("validate", "id", Names::Changes),
    ("verify", "id", Names::Changes),
    ("view", "id", Names::Changes),
];

/// The options that name something, in any command that has them.
const OPTIONS: &[(&str, Names)] = &[
    ("agent", Names::Agents),
    ("agents", Names::AgentsToSetUp),
    ("change", Names::Open),
    ("probe", Names::Agents),
    ("role", Names::Roles),
];

/// The commands, with the names that their arguments can have.
fn definition() -> Command {
    super::definition().mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|argument| {
            let id = argument.get_id().as_str();
            let named = NAMED.iter().find(|(command, known, _)| *command == name && *known == id);
            let option = OPTIONS.iter().find(|(known, _)| *known == id);
            match named.map(|(_, _, names)| *names).or(option.map(|(_, names)| *names)) {
                Some(names) => argument
                    .add(ArgValueCompleter::new(move |typed: &OsStr| candidates(names, typed))),
                None => argument,
            }
        })
    })
}

/// A name, and what it is in a few words.
struct Named {
    name: String,
    about: Option<String>,
}

impl From<String> for Named {
    fn from(name: String) -> Self {
        Self { name, about: None }
    }
}

fn candidates(names: Names, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let words: Vec<OsString> = std::env::args_os().collect();
    let all = match names {
        Names::Codes => codes(&typed),
        Names::Commands => commands(),
        Names::Agents => agents(project(&words).as_ref()),
        Names::AgentsToSetUp => agents_to_set_up(&typed),
        Names::Roles => Role::ALL.iter().map(|role| role.name().to_owned().into()).collect(),
        names => project(&words)
            .map(|project| listed(&project, names, &words, &typed))
            .unwrap_or_default(),
    };
    let fitting = all.into_iter().filter(|named| named.name.starts_with(&*typed));
    let candidate =
        |named: Named| CompletionCandidate::new(named.name).help(named.about.map(Into::into));
    fitting.map(candidate).collect()
}

fn commands() -> Vec<Named> {
    let all = super::definition();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(|command| command.get_name().to_owned().into()).collect()
}

/// The agents that can be called: that which a project adds, too.
fn agents(project: Option<&Project>) -> Vec<Named> {
    let config = project.and_then(|project| load_config(project).ok());
    let all = config.unwrap_or_default().all_agents().into_iter();
    let all = all.filter(|agent| *agent != AgentKind::Replay);
    all.map(|agent| agent.name().to_owned().into()).collect()
}

/// What can stand behind the agents that were typed already.
fn agents_to_set_up(typed: &str) -> Vec<Named> {
    let before = typed.rfind(',').map_or("", |comma| &typed[..=comma]);
    let alone = if before.is_empty() { ["all", "none"].as_slice() } else { &[] };
    let known = known_agent::agents().map(|agent| agent.name().to_owned());
    let all = known.chain(alone.iter().map(|word| (*word).to_owned()));
    all.map(|name| format!("{before}{name}").into()).collect()
}

/// Rules by their codes and, once something is typed, by their names; then the kinds of errors.
fn codes(typed: &str) -> Vec<Named> {
    let about = |about: &str| Some(about.to_owned());
    let rules = rules::ALL.iter();
    let codes =
        rules.clone().map(|rule| Named { name: rule.code.to_owned(), about: about(rule.name) });
    let names = rules.filter(|_| !typed.is_empty());
    let names = names.map(|rule| Named { name: rule.name.to_owned(), about: about(rule.code) });
    let kinds = Kind::ALL.iter().map(|kind| kind.to_string().into());
    codes.chain(names).chain(kinds).collect()
}

/// The project that is completed in: that of `-C`, or of the current directory. Nothing is repaired,
/// and nothing is written.
fn project(words: &[OsString]) -> Option<Project> {
    let mut words = words.iter();
    let named =
        words.find(|word| *word == "-C" || *word == "--directory").and_then(|_| words.next());
    let start = named.map_or_else(|| PathBuf::from("."), PathBuf::from);
    opening::open_to_list(Path::new(&start), UserDirs::from_env()).ok()
}

fn listed(project: &Project, names: Names, words: &[OsString], typed: &str) -> Vec<Named> {
    let open = || project.open_everywhere().unwrap_or_default().into_iter();
    let open = || open().map(|(id, _)| id.to_string());
    let archived = || project.archived_everywhere().unwrap_or_default().into_iter();
    // The newest first, by the ID that people know.
    let archived = || archived().rev().map(|(name, _)| name.change.to_string());
    let specs = || project.spec_ids().map(|listed| listed.ids).unwrap_or_default();
    let specs = || specs().into_iter().map(|id| id.to_string());
    let found: Vec<String> = match names {
        Names::Open => open().collect(),
        Names::Archived => archived().collect(),
        Names::Changes => open().chain(archived()).collect(),
        Names::ChangesAndSpecs => open().chain(specs()).chain(archived()).collect(),
        Names::Requirements if typed.contains(':') => return requirements(project, typed),
        Names::Requirements => {
            let mut ids: Vec<String> = open().chain(specs()).chain(archived()).collect();
            // It costs more than the others, and is rarely the first place of a spec.
            if !ids.iter().any(|id| id.starts_with(typed)) {
                ids.extend(specs_of_changes(project));
            }
            let ids = ids.into_iter().map(Named::from);
            return once_each(ids.chain(requirements(project, typed)));
        }
        Names::Tasks => return tasks(project, words),
        Names::Documents => documents(project, words),
        // These are asked without a project.
        Names::Codes | Names::Commands | Names::Agents | Names::AgentsToSetUp | Names::Roles => {
            return Vec::new();
        }
    };
    once_each(found.into_iter().map(Named::from))
}

fn once_each(all: impl Iterator<Item = Named>) -> Vec<Named> {
    let mut seen = BTreeSet::new();
    all.filter(|named| seen.insert(named.name.clone())).collect()
}

/// In so many open changes specs are looked for: people wait for a completion.
const MOST_CHANGES: usize = 200;

/// The specs of open changes, which may not be main specs yet.
fn specs_of_changes(project: &Project) -> Vec<String> {
    let open = project.open_everywhere().unwrap_or_default().into_iter().take(MOST_CHANGES);
    let of_change =
        |(id, home): (ChangeId, Project)| Some(home.change(&id).ok()?.spec_ids().ok()?.ids);
    open.filter_map(of_change).flatten().map(|id| id.to_string()).collect()
}

/// The requirements of the spec that was typed: those of the main spec, then those that open changes
/// give it.
fn requirements(project: &Project, typed: &str) -> Vec<Named> {
    let Ok(id) = SpecId::new(typed.split(':').next().unwrap_or_default()) else {
        return Vec::new();
    };
    let main = load_main_spec(project, &id).text().map(str::to_owned);
    let open = project.open_everywhere().unwrap_or_default().into_iter().take(MOST_CHANGES);
    let of_change = |(change, home): (ChangeId, Project)| {
        home.change(&change).ok()?.read(&ChangeFile::Spec(id.clone())).ok()
    };
    let texts = main.into_iter().chain(open.filter_map(of_change));
    let named = texts.flat_map(|text| {
        let requirements = spec::parse(&text).value.requirements.into_iter();
        let named = requirements.map(|requirement| Named {
            name: format!("{id}:{}", requirement.id),
            about: Some(requirement.title.to_string()),
        });
        named.collect::<Vec<_>>()
    });
    once_each(named)
}

/// The change that is named on the line, or the only one that is open.
fn change(project: &Project, words: &[OsString]) -> Option<Change> {
    let named = words.iter().rev().filter_map(|word| word.to_str());
    let change = named.into_iter().find_map(|word| {
        let home = project.home_of(&ChangeId::new(word).ok()?);
        home.find_change(word).ok().flatten()
    });
    change.or_else(|| match project.open_everywhere().ok()?.as_slice() {
        [(only, home)] => home.change(only).ok(),
        _ => None,
    })
}

/// The tasks that are not done yet.
fn tasks(project: &Project, words: &[OsString]) -> Vec<Named> {
    let Some(change) = change(project, words) else { return Vec::new() };
    let text = change.read(&ChangeFile::Tasks).unwrap_or_default();
    let tasks = tasks::parse(&text).value.tasks.into_iter();
    let open = tasks.filter(|task| task.status != Status::Done);
    let named =
        open.map(|task| Named { name: task.id.to_string(), about: Some(task.title.to_string()) });
    named.collect()
}

/// The documents of the change that is named on the line.
fn documents(project: &Project, words: &[OsString]) -> Vec<String> {
    let specs = change(project, words).and_then(|change| change.spec_ids().ok());
    let specs = specs.map(|listed| listed.ids).unwrap_or_default();
    let fixed = super::show::NAMED.iter().map(|(name, _)| (*name).to_owned());
    let specs = specs.into_iter().map(|id| id.to_string());
    fixed.chain(["plan".to_owned()]).chain(specs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_that_names_a_change_is_completed() {
        for command in super::super::definition().get_subcommands() {
            let name = command.get_name();
            let ids = command.get_arguments().filter(|argument| argument.get_id() == "id");
            for _ in ids {
                assert!(NAMED.iter().any(|(known, id, _)| known == &name && id == &"id"), "{name}");
            }
        }
        for (command, argument, _) in NAMED {
            let definition = super::super::definition();
            let known = definition.find_subcommand(command).unwrap();
            let has = known.get_arguments().any(|known| known.get_id() == argument);
            assert!(has, "{command} has no {argument}");
        }
    }
}
