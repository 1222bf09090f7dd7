use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentd_core::error_kind::Kind;
use agentd_core::rules;
use agentd_engine::opening;
use agentd_engine::store::{Project, UserDirs};
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

/// Print a completion script for a shell.
///
/// Completes commands, options, and the names of changes, specs, documents and codes: the script asks
/// agentd, so it stays right when agentd is updated.
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
    if args.shell == Shell::Zsh {
        script.push_str(ZSH_FIRST);
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
    /// A document of a change.
    Documents,
    /// The code of a rule, or the kind of an error.
    Codes,
    /// A command of agentd.
    Commands,
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
    ("implement", "id", Names::Open),
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
    ("trace", "id", Names::ChangesAndSpecs),
    ("unarchive", "id", Names::Archived),
    ("validate", "id", Names::Open),
    ("verify", "id", Names::Changes),
    ("view", "id", Names::Changes),
];

/// The commands, with the names that their arguments can have.
fn definition() -> Command {
    NAMED.iter().fold(super::definition(), |all, (command, argument, names)| {
        let names = *names;
        let complete = move |typed: &OsStr| candidates(names, typed);
        all.mut_subcommand(command, |command| {
            command.mut_args(|known| {
                let is_it = known.get_id() == argument;
                if is_it { known.add(ArgValueCompleter::new(complete)) } else { known }
            })
        })
    })
}

fn candidates(names: Names, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let words: Vec<OsString> = std::env::args_os().collect();
    let all = match names {
        Names::Codes => codes(),
        Names::Commands => commands(),
        names => project(&words).map(|project| listed(&project, names, &words)).unwrap_or_default(),
    };
    let fitting = all.into_iter().filter(|name| name.starts_with(&*typed));
    fitting.map(CompletionCandidate::new).collect()
}

fn commands() -> Vec<String> {
    let all = super::definition();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(|command| command.get_name().to_owned()).collect()
}

fn codes() -> Vec<String> {
    let rules = rules::ALL.iter().map(|rule| rule.code.to_string());
    rules.chain(Kind::ALL.iter().map(ToString::to_string)).collect()
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

fn listed(project: &Project, names: Names, words: &[OsString]) -> Vec<String> {
    let open = || project.open_everywhere().unwrap_or_default().into_iter();
    let open = || open().map(|(id, _)| id.to_string());
    let archived = || project.archived_everywhere().unwrap_or_default().into_iter();
    // The newest first, by the ID that people know.
    let archived = || archived().rev().map(|(name, _)| name.change.to_string());
    let specs = || project.spec_ids().map(|listed| listed.ids).unwrap_or_default();
    let specs = || specs().into_iter().map(|id| id.to_string());
    let mut found: Vec<String> = match names {
        Names::Open => open().collect(),
        Names::Archived => archived().collect(),
        Names::Changes => open().chain(archived()).collect(),
        Names::ChangesAndSpecs => open().chain(specs()).chain(archived()).collect(),
        Names::Documents => return documents(project, words),
        Names::Codes => codes(),
        Names::Commands => commands(),
    };
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|name| seen.insert(name.clone()));
    found
}

/// The documents of the change that is named on the line.
fn documents(project: &Project, words: &[OsString]) -> Vec<String> {
    let named = words.iter().rev().filter_map(|word| word.to_str());
    let change = named.into_iter().find_map(|word| {
        let home = project.home_of(&agentd_core::ids::ChangeId::new(word).ok()?);
        home.find_change(word).ok().flatten()
    });
    let specs = change.and_then(|change| change.spec_ids().ok()).map(|listed| listed.ids);
    let fixed = super::show::NAMED.iter().map(|(name, _)| (*name).to_owned());
    let specs = specs.unwrap_or_default().into_iter().map(|id| id.to_string());
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
