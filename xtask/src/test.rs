//! `cargo xtask test`: everything that must hold before a change lands.
//!
//! [`STEPS`] is the whole list. A new step is a row in it and a function from
//! [`Run`] to [`Outcome`]; what a step installs for later ones it leaves on disk
//! for them to find (see `npm`), so that any selection of steps works.

use std::collections::BTreeSet;
use std::env;
use std::process::Command;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use lexopt::Arg;
use lexopt::ValueExt;

use crate::Result;
use crate::fuzz;
use crate::npm;
use crate::packages::{self, Package};
use crate::process;
use crate::readme;
use crate::tidy;
use crate::tools;
use crate::workspace::Workspace;

/// One thing that must hold.
struct Step {
    /// What `--only` and `--skip` call it.
    name: &'static str,
    /// What it establishes, for the header line.
    about: &'static str,
    run: fn(&Run<'_>) -> Result<Outcome>,
}

/// How a step ended, if not in failure.
enum Outcome {
    Passed,
    /// It did not look, or not with the preferred tool; the text says why.
    Skipped(String),
}

/// What every step is given.
struct Run<'a> {
    workspace: &'a Workspace,
}

/// In order: the cheap ones first, so that a slip shows within seconds. `doc`
/// comes before `test`, so that the last count of tests in the output is that of
/// the real ones.
const STEPS: &[Step] = &[
    Step { name: "fmt", about: "rustfmt would change nothing", run: fmt },
    Step { name: "tidy", about: "house rules that no compiler knows", run: tidy_step },
    Step { name: "npm", about: "programs from npm that tests run", run: npm_step },
    Step { name: "browser", about: "Chromium, for the pages of the viewer", run: browser_step },
    Step { name: "strace", about: "which counts the files that are opened", run: strace_step },
    Step { name: "shells", about: "zsh and fish, for the completions", run: shells_step },
    Step { name: "postgres", about: "the server of a fleet", run: postgres_step },
    Step { name: "clippy", about: "no warnings, in all targets", run: clippy },
    Step { name: "doc", about: "examples in documentation, and its links", run: doc },
    Step { name: "test", about: "unit, property and integration tests", run: test },
    Step { name: "readme", about: "what the pages say of this repository", run: readme_step },
    Step { name: "fuzz", about: "a few seconds of random input per parser", run: fuzz_step },
    Step { name: "deny", about: "licenses, bans and sources of dependencies", run: deny },
];

/// Reads the arguments and runs the steps they select.
pub(crate) fn main(workspace: &Workspace, mut args: lexopt::Parser) -> Result<ExitCode> {
    let mut only: Option<BTreeSet<String>> = None;
    let mut skip = BTreeSet::new();
    let mut fail_fast = false;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("only") => {
                only.get_or_insert_default().extend(step_names(&args.value()?.string()?)?);
            }
            Arg::Long("skip") => skip.extend(step_names(&args.value()?.string()?)?),
            Arg::Long("fail-fast") => fail_fast = true,
            Arg::Long("list") => {
                for step in STEPS {
                    println!("{:8} {}", step.name, step.about);
                }
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let selected: Vec<&Step> = STEPS
        .iter()
        .filter(|step| only.as_ref().is_none_or(|names| names.contains(step.name)))
        .filter(|step| !skip.contains(step.name))
        .collect();
    Ok(run_steps(&Run { workspace }, &selected, fail_fast))
}

/// Splits `fmt,clippy`, refusing names that no step has.
fn step_names(list: &str) -> std::result::Result<Vec<String>, lexopt::Error> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            if STEPS.iter().any(|step| step.name == name) {
                return Ok(name.to_owned());
            }
            let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
            Err(format!("no step {name:?}; there are: {}", known.join(", ")).into())
        })
        .collect()
}

struct Report {
    name: &'static str,
    result: Result<Outcome>,
    took: Duration,
}

fn run_steps(run: &Run<'_>, steps: &[&Step], fail_fast: bool) -> ExitCode {
    let started = Instant::now();
    let mut reports = Vec::new();
    for step in steps {
        println!("\n==> {}: {}", step.name, step.about);
        let begun = Instant::now();
        let result = (step.run)(run);
        let report = Report { name: step.name, result, took: begun.elapsed() };
        println!("<== {}", line(&report));
        let failed = report.result.is_err();
        reports.push(report);
        if failed && fail_fast {
            break;
        }
    }
    println!("\nSummary");
    for report in &reports {
        println!("  {}", line(report));
    }
    let failed = reports.iter().filter(|report| report.result.is_err()).count();
    let skipped =
        reports.iter().filter(|report| matches!(report.result, Ok(Outcome::Skipped(_)))).count();
    let left = steps.len() - reports.len();
    print!("{} steps in {:.0?}", reports.len(), started.elapsed());
    match (failed, left) {
        (0, _) if skipped > 0 => println!(", all well but {skipped} skipped"),
        (0, _) => println!(", all well"),
        (_, 0) => println!(", {failed} failed"),
        (_, _) => println!(", {failed} failed, {left} not run"),
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn line(report: &Report) -> String {
    let (state, detail) = match &report.result {
        Ok(Outcome::Passed) => ("ok", String::new()),
        Ok(Outcome::Skipped(why)) => ("skipped", why.clone()),
        Err(error) => ("FAILED", error.to_string()),
    };
    let detail = detail.lines().next().unwrap_or_default();
    format!("{:8} {state:8} {:6.1} s  {detail}", report.name, report.took.as_secs_f64())
        .trim_end()
        .to_owned()
}

fn cargo(run: &Run<'_>, arguments: &[&str]) -> Command {
    let mut cargo = process::command("cargo", &run.workspace.root);
    cargo.args(arguments);
    cargo
}

fn fmt(run: &Run<'_>) -> Result<Outcome> {
    process::run(&mut cargo(run, &["fmt", "--all", "--check"]))?;
    Ok(Outcome::Passed)
}

fn tidy_step(run: &Run<'_>) -> Result<Outcome> {
    tidy::check(run.workspace)?;
    Ok(Outcome::Passed)
}

fn npm_step(run: &Run<'_>) -> Result<Outcome> {
    npm::install_all(run.workspace)?;
    Ok(Outcome::Passed)
}

fn browser_step(run: &Run<'_>) -> Result<Outcome> {
    find_or_install(run, &packages::CHROMIUM)
}

fn strace_step(run: &Run<'_>) -> Result<Outcome> {
    find_or_install(run, &packages::STRACE)
}

fn shells_step(run: &Run<'_>) -> Result<Outcome> {
    let mut missing = Vec::new();
    for shell in &packages::SHELLS {
        missing.extend(packages::find_or_install(run.workspace, shell)?);
    }
    Ok(if missing.is_empty() { Outcome::Passed } else { Outcome::Skipped(missing.join("; ")) })
}

fn postgres_step(run: &Run<'_>) -> Result<Outcome> {
    find_or_install(run, &packages::POSTGRES)
}

fn find_or_install(run: &Run<'_>, package: &Package) -> Result<Outcome> {
    let missing = packages::find_or_install(run.workspace, package)?;
    Ok(missing.map_or(Outcome::Passed, Outcome::Skipped))
}

fn clippy(run: &Run<'_>) -> Result<Outcome> {
    let arguments =
        ["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"];
    process::run(&mut cargo(run, &arguments))?;
    Ok(Outcome::Passed)
}

fn test(run: &Run<'_>) -> Result<Outcome> {
    let mut command = match tools::find(run.workspace, &tools::NEXTEST) {
        Ok(nextest) => {
            let profile = if run.workspace.ci { "ci" } else { "default" };
            let mut command = process::command(nextest, &run.workspace.root);
            command.args(["nextest", "run", "--workspace", "--locked", "--profile", profile]);
            // The heavy ones too, which the inner loop leaves out.
            command.arg("--ignore-default-filter");
            command
        }
        Err(why) => {
            println!("with cargo test, because {why}");
            cargo(run, &["test", "--workspace", "--locked", "--lib", "--bins", "--tests"])
        }
    };
    for (name, path) in npm::environment(run.workspace)? {
        println!("{name}={}", path.display());
        command.env(name, path);
    }
    // Snapshots are compared, never written.
    if run.workspace.ci {
        command.env("INSTA_UPDATE", "no");
    }
    process::run(&mut command)?;
    Ok(Outcome::Passed)
}

fn readme_step(run: &Run<'_>) -> Result<Outcome> {
    readme::run(run.workspace)?;
    Ok(Outcome::Passed)
}

fn fuzz_step(run: &Run<'_>) -> Result<Outcome> {
    fuzz::short_run(run.workspace)?;
    Ok(Outcome::Passed)
}

fn doc(run: &Run<'_>) -> Result<Outcome> {
    process::run(&mut cargo(run, &["test", "--workspace", "--locked", "--doc"]))?;
    let mut links = cargo(run, &["doc", "--workspace", "--locked", "--no-deps"]);
    links.arg("--document-private-items");
    let mut flags = env::var_os("RUSTDOCFLAGS").unwrap_or_default();
    flags.push(" --deny warnings");
    process::run(links.env("RUSTDOCFLAGS", flags))?;
    Ok(Outcome::Passed)
}

fn deny(run: &Run<'_>) -> Result<Outcome> {
    let deny = match tools::find(run.workspace, &tools::DENY) {
        Ok(deny) => deny,
        Err(why) => return Ok(Outcome::Skipped(why.to_string())),
    };
    // The check itself is offline, and looks at the crates of every platform.
    process::run(&mut cargo(run, &["fetch", "--quiet", "--locked"]))?;
    let mut command = process::command(deny, &run.workspace.root);
    command.args(["--offline", "--workspace"]);
    command.args(["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    process::run(&mut command)?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_name_that_no_step_has_is_refused_with_the_names_there_are() {
        assert_eq!(step_names("fmt, clippy").unwrap(), ["fmt", "clippy"]);
        let error = step_names("fmt,clipy").unwrap_err().to_string();
        assert!(error.contains("clipy") && error.contains("clippy"), "{error}");
    }

    #[test]
    fn later_steps_run_after_a_failure_unless_told_otherwise() {
        fn good(run: &Run<'_>) -> Result<Outcome> {
            std::fs::write(run.workspace.root.join("ran"), "")?;
            Ok(Outcome::Passed)
        }
        fn bad(_: &Run<'_>) -> Result<Outcome> {
            Err("as planned".into())
        }
        let steps = [
            Step { name: "bad", about: "fails", run: bad },
            Step { name: "good", about: "leaves a mark", run: good },
        ];
        let steps: Vec<&Step> = steps.iter().collect();
        for (fail_fast, expected) in [(true, false), (false, true)] {
            let temporary = tempfile::tempdir().unwrap();
            let root = temporary.path().to_path_buf();
            let tools = PathBuf::new();
            let workspace = Workspace { target: root.join("target"), root, tools, ci: true };
            let code = run_steps(&Run { workspace: &workspace }, &steps, fail_fast);
            assert_eq!(code, ExitCode::FAILURE);
            assert_eq!(workspace.root.join("ran").exists(), expected);
        }
    }
}
