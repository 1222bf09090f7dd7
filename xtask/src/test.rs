//! `cargo xtask test`: everything that must hold before a change lands.
//!
//! [`STEPS`] is the whole list. A new step is a row in it and a function from
//! [`Run`] to [`Outcome`]; what a step installs for later ones it leaves on disk
//! for them to find (see `npm`), so that any selection of steps works.
//!
//! Steps that install mostly wait for downloads. They run one after another beside the
//! steps that need nothing of theirs, so a fresh machine does not wait for them twice.

use std::collections::BTreeSet;
use std::env;
use std::process::Command;
use std::process::ExitCode;
use std::thread;
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
    when: When,
    run: fn(&Run<'_>) -> Result<Outcome>,
}

/// How a step depends on what is installed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// It installs something, and runs beside the others.
    Installs,
    /// It needs nothing that is installed here.
    AtOnce,
    /// It begins when everything is installed.
    Installed,
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

/// In order: the cheap ones first, so that a mistake shows within seconds. `doc`
/// comes before `test`, so that the last count of tests in the output is that of
/// the real ones.
const STEPS: &[Step] = &[
    Step { name: "fmt", about: "rustfmt would change nothing", when: When::AtOnce, run: fmt },
    Step {
        name: "tidy",
        about: "house rules that no compiler knows",
        when: When::AtOnce,
        run: tidy_step,
    },
    Step {
        name: "npm",
        about: "programs from npm that tests run",
        when: When::Installs,
        run: npm_step,
    },
    Step {
        name: "browser",
        about: "Chromium, for the pages of the viewer",
        when: When::Installs,
        run: browser_step,
    },
    Step {
        name: "strace",
        about: "which counts the files that are opened",
        when: When::Installs,
        run: strace_step,
    },
    Step {
        name: "shells",
        about: "zsh and fish, for the completions",
        when: When::Installs,
        run: shells_step,
    },
    Step {
        name: "postgres",
        about: "the server of a fleet",
        when: When::Installs,
        run: postgres_step,
    },
    Step { name: "clippy", about: "no warnings, in all targets", when: When::AtOnce, run: clippy },
    Step {
        name: "doc",
        about: "examples in documentation, and its links",
        when: When::AtOnce,
        run: doc,
    },
    Step {
        name: "test",
        about: "unit, property and integration tests",
        when: When::Installed,
        run: test,
    },
    Step {
        name: "readme",
        about: "what the pages say of this repository",
        when: When::Installed,
        run: readme_step,
    },
    Step {
        name: "fuzz",
        about: "a few seconds of random input per parser",
        when: When::AtOnce,
        run: fuzz_step,
    },
    Step {
        name: "deny",
        about: "licenses, bans and sources of dependencies",
        when: When::AtOnce,
        run: deny,
    },
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
    let (installers, others): (Vec<&Step>, Vec<&Step>) =
        steps.iter().partition(|step| step.when == When::Installs);
    let mut reports = thread::scope(|scope| {
        let install = || installers.iter().map(|step| report(run, step)).collect::<Vec<_>>();
        let mut installing = Some(scope.spawn(install));
        let mut reports = Vec::new();
        for step in others {
            if step.when == When::Installed {
                reports.extend(installed(&mut installing));
            }
            if fail_fast && reports.iter().any(|report| report.result.is_err()) {
                break;
            }
            println!("\n==> {}: {}", step.name, step.about);
            reports.push(report(run, step));
        }
        reports.extend(installed(&mut installing));
        reports
    });
    let place = |report: &Report| steps.iter().position(|step| step.name == report.name);
    reports.sort_by_key(place);
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

/// Runs a step, and prints how it ended.
fn report(run: &Run<'_>, step: &Step) -> Report {
    let begun = Instant::now();
    let result = (step.run)(run);
    let report = Report { name: step.name, result, took: begun.elapsed() };
    if let Err(error) = &report.result {
        println!("{error}");
    }
    println!("<== {}", line(&report));
    report
}

/// Waits for the steps that install; empty if that was done before.
fn installed(installing: &mut Option<thread::ScopedJoinHandle<'_, Vec<Report>>>) -> Vec<Report> {
    let Some(installing) = installing.take() else { return Vec::new() };
    installing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
        let step = |name, when, run| Step { name, about: "is a test", when, run };
        for when in [When::AtOnce, When::Installs] {
            let steps = [step("bad", when, bad), step("good", When::Installed, good)];
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

    #[test]
    fn what_needs_an_installation_waits_for_it_and_what_does_not_runs_beside_it() {
        fn wait_for(run: &Run<'_>, name: &str) -> Result<Outcome> {
            let path = run.workspace.root.join(name);
            for _ in 0..500 {
                if path.exists() {
                    return Ok(Outcome::Passed);
                }
                thread::sleep(Duration::from_millis(20));
            }
            Err(format!("no {name}").into())
        }
        // Ends only after the check beside it has run.
        fn install(run: &Run<'_>) -> Result<Outcome> {
            wait_for(run, "checked")?;
            std::fs::write(run.workspace.root.join("installed"), "")?;
            Ok(Outcome::Passed)
        }
        fn check(run: &Run<'_>) -> Result<Outcome> {
            std::fs::write(run.workspace.root.join("checked"), "")?;
            Ok(Outcome::Passed)
        }
        fn uses(run: &Run<'_>) -> Result<Outcome> {
            std::fs::metadata(run.workspace.root.join("installed"))?;
            Ok(Outcome::Passed)
        }
        let step = |name, when, run| Step { name, about: "is a test", when, run };
        let steps = [
            step("install", When::Installs, install),
            step("check", When::AtOnce, check),
            step("uses", When::Installed, uses),
        ];
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().to_path_buf();
        let workspace =
            Workspace { target: root.join("target"), root, tools: PathBuf::new(), ci: true };
        let steps: Vec<&Step> = steps.iter().collect();
        let code = run_steps(&Run { workspace: &workspace }, &steps, true);
        assert_eq!(code, ExitCode::SUCCESS);
    }
}
