//! agentd.

mod mcp;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Commands,
}

// TODO(lead): this is only the hook that runs `agentd mcp` until the CLI is merged.
#[derive(Subcommand)]
enum Commands {
    Mcp {
        #[arg(long)]
        change: Option<agentd_core::ids::ChangeId>,
        #[arg(long)]
        role: Option<mcp::Role>,
        #[arg(short = 'C', default_value = ".")]
        directory: std::path::PathBuf,
    },
}

fn main() -> ExitCode {
    let Commands::Mcp { change, role, directory } = Cli::parse().command;
    match mcp::run(mcp::McpOptions { start_dir: directory, change, role }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}
