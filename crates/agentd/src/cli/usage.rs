//! Wrong command lines, in our own words and widths.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use agentd_core::command_line::CommandLine;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::CommandError;
use crate::ui::Ui;
use crate::ui::progress::ProgressMode;

/// Help, version, or a wrong command line; the latter as JSON where that was asked for.
pub(super) fn not_parsed(error: &clap::Error, args: &[OsString]) -> ExitCode {
    let wrong = error.use_stderr();
    let json = args.iter().any(|arg| arg == "--json");
    // Without a command, people get the help, as it is.
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if wrong && (json || (std::io::stderr().is_terminal() && !is_help)) {
        // On a terminal, too: clap does not break its lines.
        let ui = Ui { json, pages: false, progress: ProgressMode::Plain };
        let usage = usage_error(error);
        ui.error(&if json { usage } else { usage.hint("for more information, try `--help`") });
    } else if let Err(error) = error.print() {
        return ExitCode::from(CommandError::from(error).kind.exit_code());
    }
    ExitCode::from(if wrong { 2 } else { 0 })
}

/// What clap says, as data: its first paragraph, and its tips.
fn usage_error(error: &clap::Error) -> CommandError {
    let rendered = error.render().to_string();
    let lines = || rendered.lines().map(str::trim);
    let message: Vec<&str> = lines().take_while(|line| !line.is_empty()).collect();
    let message = message.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let usage = lines().find(|line| line.starts_with("Usage: "));
    let tips = lines().filter_map(|line| line.strip_prefix("tip: ")).chain(usage);
    let wanted = error.get(ContextKind::InvalidSubcommand);
    if matches!(wanted, Some(ContextValue::String(word)) if word == "version") {
        // Nothing that is spelled like it is meant.
        let version = CommandLine::agentd(["--version"]);
        return CommandError::usage(message).run("see the version", version);
    }
    tips.fold(CommandError::usage(message), CommandError::hint)
}
