//! The context of a change in a large repository: how long it takes and how large it is.

use std::fs;
use std::path::Path;

use super::Bench;
use super::context_cases;
use super::report::Report;
use super::report::Row;
use super::report::Unit;
use crate::Result;
use crate::process;

/// Directories, with ten files each.
const DIRECTORIES: usize = 1000;

/// The longest that it may take, in milliseconds.
const SLOWEST: f64 = 300.0;

/// The default budget of a context, in bytes.
const BUDGET: f64 = 12_288.0;

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let project = bench.scratch.join("context");
    fs::create_dir_all(project.join("agentd/changes/large"))?;
    fs::write(project.join("agentd/config.toml"), "")?;
    fs::write(project.join("CLAUDE.md"), "a rule of the project\n".repeat(5000))?;
    for directory in 0..DIRECTORIES {
        let path = project.join(format!("src/part{}/module{directory}", directory % 20));
        fs::create_dir_all(&path)?;
        for file in 0..10 {
            fs::write(path.join(format!("some_source_file_{file}.rs")), "fn f() {}\n")?;
        }
    }
    let [milliseconds, bytes] = figures(bench, &project, "large")?;
    report.add(Row::measured(
        "context of 10,000 files",
        Unit::Milliseconds,
        milliseconds,
        SLOWEST,
        "300 ms",
    ));
    report.add(Row::measured(
        "its size",
        Unit::Kilobytes,
        bytes / 1000.0,
        BUDGET / 1000.0,
        "12 KiB",
    ));
    context_cases::measure(bench, report)
}

/// How long the context of a planner takes, in milliseconds, and its size, in bytes.
fn figures(bench: &Bench, project: &Path, change: &str) -> Result<[f64; 2]> {
    let program = bench.agentd.with_file_name("examples").join("context");
    let mut command = process::command(&program, project);
    let text = process::capture(command.arg(project).arg(change).env("HOME", &bench.scratch))?;
    let figures: Vec<f64> =
        text.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
    figures.try_into().map_err(|_| format!("two numbers were expected, not {text:?}").into())
}
