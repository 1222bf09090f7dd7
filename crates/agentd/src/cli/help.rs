//! The help of agentd itself: its commands in groups.

use super::Cli;
use crate::ui;
use crate::ui::measure::wrap;

/// Lines of help that are longer than this are hard to read.
pub(super) const HELP_COLUMNS: usize = 100;

/// The commands by what they are for, the ten that people need first.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Everyday commands",
        &["init", "plan", "decide", "impl", "archive", "list", "status", "show", "view", "doctor"],
    ),
    ("Change a plan", &["bug", "clarify", "revise", "rename", "drop", "unarchive"]),
    (
        "Inspect",
        &[
            "diff", "log", "cost", "validate", "verify", "trace", "overlap", "context", "explain",
            "export",
        ],
    ),
    ("Single steps", &["proposal", "challenge", "reproposal", "implement", "review", "fix"]),
    ("On several machines", &["step", "take", "give", "fleet", "worker"]),
    ("Try and replay", &["demo", "replay"]),
    ("Set up", &["trust", "mcp", "completions", "man", "uninstall"]),
];

/// The command as clap knows it, with its subcommands in groups, for the terminal that it is on.
pub(crate) fn definition() -> clap::Command {
    definition_in(ui::columns_of_help().min(HELP_COLUMNS))
}

/// The same in so many columns.
pub(crate) fn definition_in(columns: usize) -> clap::Command {
    let all = <Cli as clap::CommandFactory>::command();
    let heading = *all.get_styles().get_header();
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}\
         {heading}Options:{heading:#}\n{{options}}{{after-help}}",
        groups(&all, columns)
    );
    all.help_template(template)
}

/// The commands with what they do, in groups. One that is in no group stands at the end.
fn groups(all: &clap::Command, columns: usize) -> String {
    let grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let rest: Vec<&str> = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(clap::Command::get_name)
        .filter(|name| !grouped(name))
        .collect();
    let width = all.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let styles = all.get_styles();
    let (heading, literal) = (styles.get_header(), styles.get_literal());
    let mut text = String::new();
    for (title, names) in GROUPS.iter().copied().chain([("More", &*rest)]) {
        if names.is_empty() {
            continue;
        }
        text.push_str(&format!("{heading}{title}:{heading:#}\n"));
        for name in names {
            let about = all.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let about = wrap(&about, columns.saturating_sub(width + 4).max(20));
            let about = about.join(&format!("\n{}", " ".repeat(width + 4)));
            text.push_str(&format!("  {literal}{name:width$}{literal:#}  {about}\n"));
        }
        text.push('\n');
    }
    text
}
