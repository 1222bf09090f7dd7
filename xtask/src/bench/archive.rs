//! Archiving a large change against a large spec.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

use super::Bench;
use super::measure::Samples;
use super::report::Report;
use super::report::Row;
use super::report::Unit;
use crate::Result;

/// How many requirements the main spec has, and how many of each kind the change touches.
const REQUIREMENTS: u32 = 1000;
const EACH: u32 = 50;

/// How often one archiving waits for the disk, at most.
const WAITS: u32 = 16;

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let bar = "60 ms + fsync";
    let name = format!("agentd archive, {EACH} each of + ~ - → against {REQUIREMENTS}");
    // The best of all rounds: there is nothing of the same length to alternate with.
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        let project = memory.join(format!("agentd-bench-{}", std::process::id()));
        let measured = archive(bench, &project);
        fs::remove_dir_all(&project)?;
        let row = format!("{name}, in memory");
        report.add(Row::measured(&row, Unit::Milliseconds, measured?.best(), 60.0, "60 ms"));
    }
    let project = bench.scratch.join("archive");
    let archived = archive(bench, &project)?;
    let fsync = fsyncs(&project, bench.rounds.div_ceil(4))?;
    let limit = 60.0 + fsync.best();
    let row = Row::measured(&name, Unit::Milliseconds, archived.best(), limit, bar);
    report.add(row.against("fsync", fsync.best()));
    Ok(())
}

/// Archives and takes back, in turn; only the archiving is timed.
fn archive(bench: &Bench, project: &Path) -> Result<Samples> {
    write_project(project)?;
    let mut durations = Vec::new();
    for _ in 0..=bench.rounds.div_ceil(4) {
        let mut command = bench.agentd(project, &["archive", "big", "--json"]);
        let begun = Instant::now();
        let output = command.output()?;
        durations.push(begun.elapsed());
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let totals = &answer["totals"];
        let done = ["added", "edited", "removed", "renamed"].map(|key| totals[key].as_u64());
        if done != [Some(u64::from(EACH)); 4] {
            return Err(format!("not everything was archived: {answer}").into());
        }
        let back = bench.agentd(project, &["unarchive", "big"]).output()?;
        if !back.status.success() {
            return Err(String::from_utf8_lossy(&back.stderr).into_owned().into());
        }
    }
    // The first one warms up.
    Ok(Samples::new(durations.into_iter().skip(1)))
}

/// What the disk itself takes for as many waits.
fn fsyncs(directory: &Path, rounds: usize) -> Result<Samples> {
    let mut durations: Vec<Duration> = Vec::new();
    for _ in 0..rounds {
        let begun = Instant::now();
        for n in 0..WAITS {
            let mut file = fs::File::create(directory.join(format!("fsync-{n}")))?;
            file.write_all(&[b'x'; 4096])?;
            file.sync_all()?;
        }
        durations.push(begun.elapsed());
    }
    Ok(Samples::new(durations))
}

fn requirement(out: &mut String, n: u32, text: &str) {
    let _ = write!(
        out,
        "### R{n}: Requirement number {n}\n\n**Priority**: high\n\nThe server MUST answer request {n} \
         within {n} ms{text}.\n\n#### Scenario: request {n} is answered\n\n- **GIVEN** a server that \
         runs\n- **WHEN** request {n} comes in\n- **THEN** it is answered{text}\n\n"
    );
}

fn write_project(project: &Path) -> Result<()> {
    let head = "---\nid: server\ntype: spec\ntitle: Server\nversion: 1\n";
    let title = "---\n\n# Specification: Server\n\n## Overview\n\nA server.\n\n## Requirements\n\n";
    let mut main = format!("{head}{title}");
    (1..=REQUIREMENTS).for_each(|n| requirement(&mut main, n, ""));
    let removed: Vec<String> = (101..=100 + EACH).map(|n| format!("R{n}")).collect();
    let mut change = format!("{head}removes: [{}]\nrenames:\n", removed.join(", "));
    for n in 201..=200 + EACH {
        let _ = writeln!(change, "  R{n}: \"Another name of {n}\"");
    }
    change.push_str(title);
    (1..=EACH).for_each(|n| requirement(&mut change, n, " or sooner"));
    (REQUIREMENTS + 1..=REQUIREMENTS + EACH).for_each(|n| requirement(&mut change, n, ""));
    // Only code that a known run has approved is archived.
    let state = "change_id: big\nphase: complete\niteration: 0\ncode_review:\n  verdict: APPROVED\n  \
                 iteration: 1\n  reviewer: codex\n  at: 2026-11-15T09:00:00Z\n  run: 1\nllm_calls:\n  \
                 - step: review\n    run: 1\n";
    let files = [
        ("agentd/specs/server.md", main.as_str()),
        ("agentd/changes/big/base/server.md", main.as_str()),
        ("agentd/changes/big/specs/server.md", change.as_str()),
        ("agentd/changes/big/STATE.yaml", state),
    ];
    for (path, text) in files {
        let path = project.join(path);
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}
