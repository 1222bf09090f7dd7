//! agentd-fleet: changes of agentd on many machines.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentd_fleet::cli::main()
}
