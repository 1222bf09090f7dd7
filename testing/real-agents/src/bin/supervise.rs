//! The supervisor of agentd's runner, as a program of its own for tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    agentd_engine::process::supervise(std::env::args_os().skip(2))
}
