use std::io::{self, Write as _};
use std::process::ExitCode;

use clap_complete::Shell;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::{Output, Screen};

/// Print a completion script for a shell.
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
    clap_complete::generate(args.shell, &mut super::definition(), "agentd", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
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
