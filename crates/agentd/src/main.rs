//! agentd: spec-driven development with several coding agents.

mod cli;
mod error;
mod install;
mod mcp;
mod ui;
mod viewer;

use std::process::ExitCode;

use agentd_engine::process::{SUPERVISE, supervise};

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    // Not a command but a part of agentd that watches over a child; see `process`.
    if args.nth(1).is_some_and(|first| first == SUPERVISE) {
        return supervise(args);
    }
    cli::main(std::env::args_os())
}
