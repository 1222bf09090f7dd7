//! `real-agents install`: puts the pinned agent CLIs into the cache.

use std::process::ExitCode;

use real_agents::AgentClis;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for developers")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["install"] {
        eprintln!("usage: real-agents install");
        return ExitCode::from(2);
    }
    match AgentClis::install() {
        Ok(clis) => {
            println!("{}", clis.bin_folder().display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("real-agents: {error}");
            ExitCode::FAILURE
        }
    }
}
