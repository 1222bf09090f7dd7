//! The runner of agents: what a call costs over the program itself, and how fast
//! and with how little memory a flood of events is read.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use super::Bench;
use super::measure;
use super::report::Report;
use super::report::Row;
use super::report::Unit;
use crate::Result;
use crate::process;

/// How much an agent prints, in MiB.
const FLOOD: u32 = 1024;

/// The slowest that is allowed, in megabytes per second of one core.
const SLOWEST: f64 = 300.0;

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let examples = bench.agentd.with_file_name("examples");
    let project = bench.scratch.join("runner");
    std::fs::create_dir_all(&project)?;
    let programs =
        Programs { drive: examples.join("drive"), fake: examples.join("fake-agent"), project };
    overhead(bench, &programs, report)?;
    cage(bench, &programs, report)?;
    for cli in ["gemini", "codex", "claude"] {
        flood(&programs, cli, report)?;
    }
    Ok(())
}

struct Programs {
    /// What is to the runner what agentd is.
    drive: PathBuf,
    fake: PathBuf,
    project: PathBuf,
}

impl Programs {
    fn drive(&self, cli: &str, actions: &[&str]) -> Command {
        let mut command = process::command(&self.drive, &self.project);
        command.arg(cli).arg(&self.project).arg(&self.fake).args(actions);
        command
    }
}

/// The same program through the runner and from a shell.
fn overhead(bench: &Bench, programs: &Programs, report: &mut Report) -> Result<()> {
    let stream = programs.project.join("stream.jsonl");
    let text = process::capture(
        process::command(&programs.fake, &programs.project).args(["--", "events", "claude", "1"]),
    )?;
    std::fs::write(&stream, text)?;
    let stream = path_text(&stream)?;
    let through_runner = || programs.drive("claude", &["read", "script", stream]);
    let from_shell = || {
        let mut shell = process::command("sh", &programs.project);
        let fake = programs.fake.display();
        shell.arg("-c").arg(format!("echo hello | '{fake}' -- read script '{stream}'"));
        shell
    };
    let [runner, shell] =
        measure::alternate([&through_runner, &from_shell], bench.rounds, |status| {
            status.success()
        })?;
    let limit = shell.median() + 30.0;
    let row = Row::measured(
        "a call through the runner",
        Unit::Milliseconds,
        runner.median(),
        limit,
        "shell + 30 ms",
    );
    report.add(row.against("shell", shell.median()));
    Ok(())
}

/// A gigabyte of events: read, decoded, recorded.
fn flood(programs: &Programs, cli: &str, report: &mut Report) -> Result<()> {
    let megabytes = FLOOD.to_string();
    let output = process::capture(&mut programs.drive(cli, &["read", "events", cli, &megabytes]))?;
    let last = output.lines().last().unwrap_or_default();
    // "events N, <wall>, cpu S s, peak memory K kB"
    let number_behind = |label: &str| -> Result<f64> {
        let rest = last.split(label).nth(1).ok_or_else(|| format!("no {label:?} in {last:?}"))?;
        Ok(rest.split_whitespace().next().unwrap_or_default().parse()?)
    };
    let seconds = number_behind("cpu ")?;
    let kilobytes = number_behind("peak memory ")?;
    let size = f64::from(FLOOD) * 1.048_576;
    let name =
        format!("{FLOOD} MiB of {cli}'s events, processor time ({:.0} MB/s)", size / seconds);
    let limit = size / SLOWEST * 1000.0;
    report.add(Row::measured(&name, Unit::Milliseconds, seconds * 1000.0, limit, "300 MB/s"));
    let name = format!("{FLOOD} MiB of {cli}'s events, peak memory");
    report.add(Row::measured(&name, Unit::Megabytes, kilobytes * 1.024 / 1000.0, 50.0, "50 MB"));
    Ok(())
}

/// The same program in a cage and without one, both under a supervisor.
fn cage(bench: &Bench, programs: &Programs, report: &mut Report) -> Result<()> {
    let run = |cage: &[&str]| {
        let mut command =
            process::command(programs.drive.with_file_name("caged"), &programs.project);
        command.args(cage).args(["--", "true"]).stderr(std::process::Stdio::null());
        command
    };
    let project = path_text(&programs.project)?;
    let caged = || run(&["--writable", project]);
    let plain = || run(&["--no-cage"]);
    let [caged, plain] =
        measure::alternate([&caged, &plain], bench.rounds, |status| status.success())?;
    let limit = plain.median() + 15.0;
    let row = Row::measured(
        "a call in the cage",
        Unit::Milliseconds,
        caged.median(),
        limit,
        "no cage + 15 ms",
    );
    report.add(row.against("no cage", plain.median()));
    Ok(())
}

fn path_text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| "the path of the workspace is not UTF-8".into())
}
