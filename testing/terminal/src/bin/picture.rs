//! Writes a picture of a program on a terminal: `picture <file.svg> <label> <command>...`.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a tool for developers")]

use std::process::{Command, ExitCode};

use terminal::{COLUMNS, Terminal};

const LINES: usize = 30;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, label, program, rest @ ..] = args.as_slice() else {
        eprintln!("usage: picture <file.svg> <label> <command>...");
        return ExitCode::from(2);
    };
    let mut command = Command::new(program);
    command.args(rest).env("TERM", "xterm-256color").env_remove("NO_COLOR");
    let (code, recording) = Terminal::start(&mut command).record(COLUMNS);
    if code != Some(0) {
        eprintln!("{program} ended with {code:?}; {file} stays as it was");
        return ExitCode::FAILURE;
    }
    let name = std::path::Path::new(program).file_stem().unwrap().to_string_lossy();
    let typed = [&[name.into_owned()], rest].concat().join(" ");
    std::fs::write(file, terminal::picture(&recording, &typed, label, LINES)).unwrap();
    ExitCode::SUCCESS
}
