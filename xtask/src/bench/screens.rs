//! Screens that people wait for: a long list of changes, and completions while they type.

use std::process::Command;

use super::Bench;
use super::grep;
use super::measure;
use super::probe;
use super::report::Report;
use super::report::Row;
use super::report::Unit;
use crate::Result;

/// `agentd list` in the large project, against grep over its files, and completions there, in each
/// shell.
pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let project = bench.project("screens", bench.size)?;
    let changes = bench.size.changes;

    // Twice what it was when it showed neither verdicts nor what comes next.
    let (name, bar) = (format!("agentd list, {changes} changes"), "9x grep -rc");
    match probe(bench, &project, &["list"]) {
        Err(why) => report.add(Row::not_measurable(&name, bar, why)),
        Ok(_) => {
            let make_agentd = || bench.agentd(&project, &["list"]);
            let make_grep = || grep(&project);
            let rounds = bench.rounds.div_ceil(4);
            let [agentd, reference] =
                measure::alternate([&make_agentd, &make_grep], rounds, |status| status.success())?;
            let limit = 9.0 * reference.median();
            let row = Row::measured(&name, Unit::Milliseconds, agentd.median(), limit, bar);
            report.add(row.against("grep -rc", reference.median()));
        }
    }

    for shell in ["bash", "zsh", "fish"] {
        let (name, bar) = (format!("completions for {shell}, {changes} changes"), "20 ms");
        let ask = || -> Command {
            let mut command = bench.agentd(&project, &["--", "agentd", "impl", ""]);
            command.env("AGENTD_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "2");
            command.env("_CLAP_IFS", "\n");
            command
        };
        let offered = String::from_utf8_lossy(&ask().output()?.stdout).lines().count();
        if offered < changes {
            let why = format!("only {offered} of {changes} changes are offered");
            report.add(Row::not_measurable(&name, bar, why));
            continue;
        }
        let [agentd] = measure::alternate([&ask], bench.rounds, |status| status.success())?;
        report.add(Row::measured(&name, Unit::Milliseconds, agentd.median(), 20.0, bar));
    }
    Ok(())
}
