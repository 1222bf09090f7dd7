//! agentd: spec-driven development with several coding agents.

mod cli;
mod error;
mod install;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main(std::env::args_os())
}
