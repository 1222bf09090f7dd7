//! Developer commands: `cargo xtask test`, `bench`, `fuzz`, `mutants`, `sample-project`,
//! `toolchains`.
//!
//! This crate is the one door for developers and for CI. It starts other
//! programs and reports on them; it links none of agentd's own crates, so that
//! it builds in seconds and works while they do not compile.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

mod bench;
mod fuzz;
mod mermaid;
mod mutants;
mod npm;
mod packages;
mod picture;
mod process;
mod readme;
mod sample_project;
mod test;
mod tidy;
mod toolchains;
mod tools;
mod workspace;

use std::process::ExitCode;

use lexopt::Arg;

use crate::workspace::Workspace;

/// Any failure of a developer command; its text is all that anyone needs.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;
pub(crate) type Result<T> = std::result::Result<T, Error>;

const HELP: &str = "\
Developer commands of agentd.

Usage: cargo xtask <command>

  test [--only a,b] [--skip a,b] [--fail-fast] [--list]
          everything CI runs: format, tidiness, lints, tests, fuzzing, licenses
  tidy    the tidiness checks alone
  bench [--only startup|validate|mcp|runner|viewer] [--json] [--rounds N] [--size N] [--no-build] [--hyperfine]
          the bars of the issues: value, ratio, pass or fail
  fuzz [target]... [--seconds N] [--seed N] [--input FILE] [--random]
          the parsers, on inputs that nobody would write
  mutants [--only a,b] [--list]
          whether the tests notice when the code that decides is wrong; takes long, not part of CI
  sample-project <dir> [--changes N] [--specs N]
          writes a valid project of that size
  toolchains [--only cargo,npm,..]
          adds a dependency, builds and tests in the sandbox, with each build tool that is installed
  vendor-mermaid
          makes the compressed Mermaid in crates/agentd-viewer/assets
  picture
          makes docs/demo.svg, the picture of the README, from a run of agentd demo
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            // Arguments that cannot be read are the caller's: 2, as everywhere.
            ExitCode::from(if error.is::<lexopt::Error>() { 2 } else { 1 })
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut args = lexopt::Parser::from_env();
    let workspace = Workspace::find()?;
    let command = match args.next()? {
        None | Some(Arg::Long("help") | Arg::Short('h')) => {
            print!("{HELP}");
            return Ok(ExitCode::SUCCESS);
        }
        Some(Arg::Value(command)) => command,
        Some(option) => return Err(option.unexpected().into()),
    };
    match command.to_str() {
        Some("test") => test::main(&workspace, args),
        Some("tidy") => tidy::main(&workspace, args),
        Some("fuzz") => fuzz::main(&workspace, args),
        Some("mutants") => mutants::main(&workspace, args),
        Some("bench") => bench::main(&workspace, args),
        Some("__peak-rss") => bench::peak_rss_main(args),
        Some("vendor-mermaid") => {
            no_more(args)?;
            mermaid::vendor(&workspace)?;
            Ok(ExitCode::SUCCESS)
        }
        Some("picture") => {
            no_more(args)?;
            picture::make(&workspace)?;
            Ok(ExitCode::SUCCESS)
        }
        Some("toolchains") => toolchains::main(&workspace, args),
        Some("sample-project") => sample_project::main(args),
        Some("help") => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(lexopt::Error::from(format!("no command {}\n\n{HELP}", command.display())).into()),
    }
}

fn no_more(mut args: lexopt::Parser) -> Result<()> {
    match args.next()? {
        None => Ok(()),
        Some(arg) => Err(arg.unexpected().into()),
    }
}
