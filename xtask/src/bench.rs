//! `cargo xtask bench`: the bars of the issues, measured side by side.
//!
//! Times mean little by themselves on a shared machine, so every bar is set
//! against a program that everyone has. The two are timed by our own loop and
//! not by hyperfine, which runs all rounds of one command before the next: a
//! neighbor who wakes up in between then decides the ratio. Here the rounds
//! alternate, so that a slow second hits both sides. It also needs no install.
//! `--hyperfine` shows hyperfine's numbers beside ours, where it is installed.

mod archive;
mod context;
mod context_cases;
mod mcp;
mod measure;
mod plan_contexts;
mod report;
mod runner;
mod screens;
mod size;
mod viewer;

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::ExitCode;

use lexopt::Arg;
use lexopt::ValueExt;
use serde_json::Value;

use self::measure::Samples;
pub(crate) use self::measure::peak_rss_main;
use self::report::Report;
use self::report::Row;
use self::report::Unit;
use crate::Result;
use crate::process;
use crate::sample_project;
use crate::sample_project::Size;
use crate::workspace::Workspace;

/// What the bars are set on.
const FULL: Size = Size { changes: 1000, specs: 1000 };

/// A set of rows; a row is added to the report even when it cannot be measured.
type Group = (&'static str, fn(&Bench, &mut Report) -> Result<()>);

const GROUPS: [Group; 9] = [
    ("startup", startup),
    ("validate", validate),
    ("screens", screens::measure),
    ("mcp", mcp::measure),
    ("runner", runner::measure),
    ("context", context::measure),
    ("size", size::measure),
    ("archive", archive::measure),
    ("viewer", viewer::measure),
];

/// What every measurement is given.
struct Bench {
    agentd: PathBuf,
    /// A directory for projects, remade at each run.
    scratch: PathBuf,
    /// Rounds of the cheap commands; dear ones take a fraction.
    rounds: usize,
    size: Size,
}

impl Bench {
    fn agentd(&self, project: &Path, arguments: &[&str]) -> Command {
        let mut command = process::command(&self.agentd, project);
        // The same for everyone: no colors, no settings of this user's.
        command.args(arguments).env("NO_COLOR", "1").env("HOME", &self.scratch);
        for name in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"] {
            command.env_remove(name);
        }
        command
    }

    fn project(&self, name: &str, size: Size) -> Result<PathBuf> {
        let project = self.scratch.join(name);
        sample_project::write(&project, size)?;
        Ok(project)
    }
}

/// Reads the arguments, measures, prints; fails where a bar is missed, and where something that was
/// asked for by name cannot be measured.
pub(crate) fn main(workspace: &Workspace, mut args: lexopt::Parser) -> Result<ExitCode> {
    let (mut json, mut build, mut hyperfine) = (false, true, false);
    let mut only: Option<String> = None;
    let mut bench = Bench {
        agentd: workspace
            .target
            .join("release")
            .join(format!("agentd{}", std::env::consts::EXE_SUFFIX)),
        scratch: workspace.target.join("bench"),
        rounds: 40,
        size: FULL,
    };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("json") => json = true,
            Arg::Long("no-build") => build = false,
            Arg::Long("hyperfine") => hyperfine = true,
            Arg::Long("rounds") => bench.rounds = args.value()?.parse::<usize>()?.max(3),
            Arg::Long("size") => {
                let size = args.value()?.parse()?;
                bench.size = Size { changes: size, specs: size };
            }
            Arg::Long("only") => only = Some(args.value()?.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if let Some(name) = only.as_deref().filter(|name| GROUPS.iter().all(|group| group.0 != *name)) {
        let message =
            format!("no group {name:?}; there are: {}", GROUPS.map(|group| group.0).join(", "));
        return Err(lexopt::Error::from(message).into());
    }
    if build {
        let mut cargo = process::command("cargo", &workspace.root);
        cargo.args(["build", "--release", "--locked", "--package", "agentd"]);
        if !cargo.status()?.success() {
            return Err("agentd does not build".into());
        }
        let mut examples = process::command("cargo", &workspace.root);
        examples.args([
            "build",
            "--release",
            "--locked",
            "--package",
            "agentd-engine",
            "--examples",
        ]);
        if !examples.status()?.success() {
            return Err("the programs around the engine do not build".into());
        }
    }
    if bench.scratch.exists() {
        fs::remove_dir_all(&bench.scratch)?;
    }
    fs::create_dir_all(&bench.scratch)?;

    let mut report = Report::default();
    for (name, measure) in GROUPS {
        if only.as_ref().is_none_or(|only| only == name) {
            eprintln!("measuring {name} ...");
            measure(&bench, &mut report)?;
        }
    }
    if json {
        println!("{:#}", report.json());
    } else {
        print!("{}", report.table());
    }
    if hyperfine {
        compare_with_hyperfine(&bench)?;
    }
    // Who asks for one group wants its figures, and not the news that there are none.
    let failed = report.missed() || (only.is_some() && report.has_gaps());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Asks a command for `--json` once, so that a command which does not exist yet
/// (or answers something else) is not mistaken for one that is very fast.
fn probe(bench: &Bench, project: &Path, arguments: &[&str]) -> std::result::Result<Value, String> {
    let mut with_json = arguments.to_vec();
    with_json.push("--json");
    let output = bench.agentd(project, &with_json).output().map_err(|error| error.to_string())?;
    let name = format!("agentd {}", with_json.join(" "));
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("nothing on stderr").to_owned();
    let answer: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("`{name}` printed no JSON ({}; {said})", output.status))?;
    if answer["version"] != 1 || answer.get("error").is_some() {
        return Err(format!("`{name}` answered with an error ({}; {said})", output.status));
    }
    Ok(answer)
}

/// `agentd --version` and `agentd list`, against the cheapest program there is.
fn startup(bench: &Bench, report: &mut Report) -> Result<()> {
    let project = bench.project("empty", Size { changes: 0, specs: 0 })?;
    let version = bench.agentd(&project, &["--version"]).output()?;
    let version = if String::from_utf8_lossy(&version.stdout).starts_with("agentd ") {
        Ok(())
    } else {
        Err("`agentd --version` does not print \"agentd <version>\"".to_owned())
    };
    let list = probe(bench, &project, &["list"]).map(drop);

    let make_true = || process::command("true", &project);
    for (arguments, state) in [("--version", version), ("list", list)] {
        let name = format!("agentd {arguments}");
        let bar = "3x true + 5 ms";
        if let Err(why) = state {
            report.add(Row::not_measurable(&name, bar, why));
            continue;
        }
        let make_agentd = || bench.agentd(&project, &[arguments]);
        let [agentd, reference] =
            measure::alternate([&make_agentd, &make_true], bench.rounds, |status| {
                status.success()
            })?;
        let limit = 3.0 * reference.median() + 5.0;
        let row = Row::measured(&name, Unit::Milliseconds, agentd.median(), limit, bar);
        report.add(row.against("true", reference.median()));
    }
    Ok(())
}

/// `agentd validate --all` on the large project, against grep over its files.
fn validate(bench: &Bench, report: &mut Report) -> Result<()> {
    let project = bench.project("large", bench.size)?;
    let name = format!("agentd validate --all, {} + {}", bench.size.changes, bench.size.specs);
    let (time_bar, memory_bar) = ("4x grep -rc", "40 MB");
    let memory_name = format!("{name}: peak memory");
    let answer = probe(bench, &project, &["validate", "--all"]).and_then(|answer| {
        if answer["valid"] == true {
            return Ok(());
        }
        let first = &answer["diagnostics"][0];
        Err(format!(
            "the sample project is said to be invalid: {} {}",
            first["file"], first["message"]
        ))
    });
    if let Err(why) = answer {
        report.add(Row::not_measurable(&name, time_bar, why.clone()));
        report.add(Row::not_measurable(&memory_name, memory_bar, why));
        return Ok(());
    }
    let make_agentd = || bench.agentd(&project, &["validate", "--all"]);
    let make_grep = || grep(&project);
    let rounds = bench.rounds.div_ceil(4);
    let [agentd, reference]: [Samples; 2] =
        measure::alternate([&make_agentd, &make_grep], rounds, |status| status.success())?;
    let limit = 4.0 * reference.median();
    let row = Row::measured(&name, Unit::Milliseconds, agentd.median(), limit, time_bar);
    report.add(row.against("grep -rc", reference.median()));

    report.add(match measure::peak_rss(&make_agentd()) {
        Ok(megabytes) => Row::measured(&memory_name, Unit::Megabytes, megabytes, 40.0, memory_bar),
        Err(error) => Row::not_measurable(&memory_name, memory_bar, error.to_string()),
    });
    Ok(())
}

fn grep(project: &Path) -> Command {
    let mut grep = process::command("grep", project);
    grep.args(["-rc", "Requirement"]).arg(project.join("agentd"));
    grep
}

/// hyperfine's view of the same commands. Their output goes into a pipe: grep
/// stops at the first match when it sees that nobody reads it.
fn compare_with_hyperfine(bench: &Bench) -> Result<()> {
    let agentd = bench.agentd.display();
    let large = bench.scratch.join("large");
    let sets = [
        ("empty", vec!["true".to_owned(), format!("{agentd} --version"), format!("{agentd} list")]),
        (
            "large",
            vec![
                format!("grep -rc Requirement {}/agentd", large.display()),
                format!("{agentd} validate --all"),
            ],
        ),
    ];
    for (project, commands) in sets {
        let directory = bench.scratch.join(project);
        if !directory.exists() {
            continue;
        }
        let mut hyperfine = process::command("hyperfine", &directory);
        hyperfine.args(["--shell=none", "--warmup=3", "--output=pipe"]).args(commands);
        process::run(&mut hyperfine)?;
    }
    Ok(())
}
