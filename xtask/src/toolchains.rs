//! `cargo xtask toolchains`: the build tools of the languages, in the sandbox.
//!
//! For each tool that is installed: a user whose caches hold something already, a project, an
//! approved change, and the real `agentd impl`. A stand-in for the implementer adds a dependency
//! from the registry, builds and tests, all in the cage; then agentd runs the tests itself, and
//! its built-in agent reviews. Afterwards the user's home must be byte for byte as before.
//!
//! It is no step of `cargo xtask test`, because it needs the registries.

mod home;
mod project;
mod table;

use std::env;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use lexopt::Arg;
use lexopt::ValueExt as _;

use crate::Result;
use crate::process;
use crate::workspace::Workspace;

use self::home::Home;
use self::table::TOOLCHAINS;
use self::table::Toolchain;

/// How one of them went.
enum Outcome {
    Passed,
    Failed(String),
    /// It was not tried in the cage; the text says why.
    Skipped(String),
}

/// A directory for one toolchain, with `home/`, `bin/`, `warm/` and `project/`.
struct ToolchainDir {
    base: PathBuf,
    agentd: PathBuf,
    home: Home,
}

pub(crate) fn main(workspace: &Workspace, mut args: lexopt::Parser) -> Result<ExitCode> {
    let mut only: Option<Vec<String>> = None;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("only") => {
                let names = args.value()?.string()?;
                only.get_or_insert_default().extend(names.split(',').map(str::to_owned));
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let is_unknown = |name: &&String| !TOOLCHAINS.iter().any(|toolchain| toolchain.name == **name);
    if let Some(unknown) = only.iter().flatten().find(is_unknown) {
        let names: Vec<&str> = TOOLCHAINS.iter().map(|toolchain| toolchain.name).collect();
        let text = format!("no toolchain {unknown}; there are {}", names.join(", "));
        return Err(lexopt::Error::from(text).into());
    }
    process::run(process::command("cargo", &workspace.root).args(["build", "-p", "agentd"]))?;
    // Not below the workspace, which cargo would take the projects for parts of.
    let base = workspace.tools.with_file_name("toolchains");
    let mut rows = Vec::new();
    for toolchain in TOOLCHAINS {
        if only.as_ref().is_some_and(|only| !only.iter().any(|name| name == toolchain.name)) {
            continue;
        }
        println!("== {}", toolchain.name);
        let start = Instant::now();
        let place = ToolchainDir::make(&base.join(toolchain.name), workspace)?;
        let outcome = attempt(toolchain, &place)?;
        let passed = matches!(outcome, Outcome::Passed);
        rows.push((toolchain.name, outcome, start.elapsed()));
        if passed {
            home::remove(&place.base)?;
        } else {
            println!("what there is of it stays in {}", place.base.display());
        }
    }
    Ok(report(&rows))
}

fn report(rows: &[(&str, Outcome, Duration)]) -> ExitCode {
    println!("\n{:10} {:8} {:>7}", "toolchain", "result", "seconds");
    let mut failed = 0;
    for (name, outcome, took) in rows {
        let (result, why) = match outcome {
            Outcome::Passed => ("passed", ""),
            Outcome::Failed(why) => ("FAILED", why.as_str()),
            Outcome::Skipped(why) => ("skipped", why.as_str()),
        };
        failed += usize::from(matches!(outcome, Outcome::Failed(_)));
        println!(
            "{}",
            format!("{name:10} {result:8} {:7.1}  {why}", took.as_secs_f64()).trim_end()
        );
    }
    let passed = rows.iter().filter(|row| matches!(row.1, Outcome::Passed)).count();
    println!("\n{passed} passed, {failed} failed, {} skipped", rows.len() - passed - failed);
    ExitCode::from(u8::from(failed > 0))
}

fn attempt(toolchain: &Toolchain, place: &ToolchainDir) -> Result<Outcome> {
    if let Some(missing) = toolchain.programs.iter().find(|name| !is_on_path(name)) {
        return Ok(Outcome::Skipped(format!("{missing} is not installed")));
    }
    project::create(toolchain, place)?;
    // Outside of the cage: so the user's caches hold something, and what fails here says nothing
    // about the cage.
    let mut warm = place.command("sh", &place.base.join("warm"));
    warm.args(["-c", &format!("set -e\n{}\n{}", toolchain.before, toolchain.test)]);
    if let Err(error) = process::capture(&mut warm) {
        return Ok(Outcome::Skipped(format!("fails outside of the sandbox too: {}", last(&error))));
    }
    if !project::is_filled(&place.home.path().join(toolchain.users)) {
        return Ok(Outcome::Failed(format!("~/{} is empty: nothing to compare", toolchain.users)));
    }
    let before = place.home.contents()?;
    let outcome = project::implement(toolchain, place);
    let after = place.home.contents()?;
    let changed = before.changes(&after);
    let mut wrong: Vec<String> = outcome.err().map(|error| error.to_string()).into_iter().collect();
    if !changed.is_empty() {
        wrong.push(format!("the user's home has changed: {}", changed.join(", ")));
    }
    if !wrong.is_empty() {
        return Ok(Outcome::Failed(wrong.join("; ")));
    }
    println!("{} entries in the user's home are as before", before.len());
    Ok(Outcome::Passed)
}

impl ToolchainDir {
    fn make(base: &Path, workspace: &Workspace) -> Result<Self> {
        if base.exists() {
            home::remove(base)?;
        }
        for name in ["bin", "warm", "project"] {
            fs::create_dir_all(base.join(name))?;
        }
        let agentd = workspace.target.join("debug/agentd");
        Ok(Self { home: Home::make(&base.join("home"))?, base: base.to_owned(), agentd })
    }

    /// A command as the user of this place would start it.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>, directory: &Path) -> Command {
        let mut command = process::command(program, directory);
        self.home.apply(&mut command);
        let path = env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.base.join("bin")).chain(env::split_paths(&path));
        if let Ok(path) = env::join_paths(all) {
            command.env("PATH", path);
        }
        let proxy = self.base.join("proxy");
        if proxy.is_dir() {
            command.env("GOPROXY", format!("file://{}", proxy.display())).env("GOSUMDB", "off");
        }
        command
    }
}

fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// The end of an error that has many lines.
fn last(error: &crate::Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}
