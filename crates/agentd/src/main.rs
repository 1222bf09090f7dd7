//! agentd: spec-driven development with several coding agents.

mod cli;
mod error;
mod install;
mod mcp;
mod ui;

use std::ffi::OsStr;
use std::process::ExitCode;

use agentd_builtin::{run_builtin, run_replay};
use agentd_core::provider::{BUILTIN, REPLAY};
use agentd_engine::git::{MERGE_DRIVER, merge_driver};
use agentd_engine::process::{SUPERVISE, supervise};

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    // Not commands but parts of agentd: one that watches over a child (see `process`), one that git
    // calls (see `git`), and agents that agentd plays itself (see `agentd_builtin`).
    let (stdin, stdout) = (&mut std::io::stdin(), &mut std::io::stdout());
    match args.nth(1).as_deref().and_then(OsStr::to_str) {
        Some(SUPERVISE) => return supervise(args),
        Some(MERGE_DRIVER) => return merge_driver(args).into(),
        Some(BUILTIN) => return run_builtin(args, stdin, stdout),
        Some(REPLAY) => return run_replay(args, stdin, stdout),
        _ => {}
    }
    cli::main(std::env::args_os())
}
