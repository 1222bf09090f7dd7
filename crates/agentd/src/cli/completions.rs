use std::io::Write as _;
use std::process::ExitCode;

use clap_complete::Shell;

use super::Context;
use crate::error::CommandError;

/// Print the completions for a shell.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd completions bash > ~/.local/share/bash-completion/completions/agentd\n  agentd completions zsh > \"${fpath[1]}/_agentd\"\n  agentd completions fish > ~/.config/fish/completions/agentd.fish"
)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::definition(), "agentd", &mut script);
    if context.ui.json {
        let script = String::from_utf8_lossy(&script);
        let shell = args.shell.to_string();
        context
            .ui
            .print_json(&serde_json::json!({ "version": 1, "shell": shell, "script": script }))?;
    } else {
        let mut out = context.ui.out();
        out.write_all(&script)?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}
