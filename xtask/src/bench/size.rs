//! A project as large as they come (R8): how long the commands that only look take in it, and how much
//! memory they need.

use std::fs;
use std::path::Path;

use super::Bench;
use super::grep;
use super::measure;
use super::probe;
use super::report::Report;
use super::report::Row;
use super::report::Unit;
use crate::Result;
use crate::process;
use crate::sample_project::Size;

/// Directories of code, with [`FILES`] files each.
const DIRECTORIES: usize = 2000;
const FILES: usize = 50;
const SIZE: Size = Size { changes: 50, specs: 2000 };

/// The most memory that a command may need, in megabytes.
const MEMORY: (f64, &str) = (300.0, "300 MB");
/// The most processor time of a context, in milliseconds: as for kubernetes.
const CONTEXT: [(&str, f64, &str); 2] =
    [("cold", 4000.0, "4 s of CPU"), ("warm", 1000.0, "1 s of CPU")];
const QUESTION: &str = "Fix a crash when an object is deleted while it is being updated";

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let project = bench.project("size", SIZE)?;
    write_code(&project)?;
    let first =
        fs::read_dir(project.join("agentd/changes"))?.next().ok_or("there is no change")??;
    let change = first.file_name().into_string().map_err(|_| "a change whose name is not text")?;

    // Those that read documents, against grep over the same documents.
    for (arguments, times) in [
        (&["list"][..], 9.0),
        (&["status"], 9.0),
        (&["status", &change], 9.0),
        (&["overlap"], 9.0),
        // Of a spec, each word is judged; of the thousand changes of the group "validate", most are not.
        (&["validate", "--all"], 5.0),
    ] {
        let name = format!("agentd {}, 100,000 files", arguments.join(" "));
        let bar = format!("{times}x grep -rc");
        if let Err(why) = probe(bench, &project, arguments) {
            report.add(Row::not_measurable(&name, &bar, why));
            continue;
        }
        let make_agentd = || bench.agentd(&project, arguments);
        let make_grep = || grep(&project);
        let rounds = bench.rounds.div_ceil(8);
        let [agentd, reference] =
            measure::alternate([&make_agentd, &make_grep], rounds, |status| status.success())?;
        let limit = times * reference.median();
        let row = Row::measured(&name, Unit::Milliseconds, agentd.median(), limit, &bar);
        report.add(row.against("grep -rc", reference.median()));
        let peak = measure::peak_rss(&make_agentd())?;
        let name = format!("{name}: peak memory");
        report.add(Row::measured(&name, Unit::Megabytes, peak, MEMORY.0, MEMORY.1));
    }

    // The one that reads code.
    let context = || bench.agentd(&project, &["context", QUESTION, "--files", "20"]);
    // Files that were never read from disk would measure the disk.
    process::capture(&mut context())?;
    let cache = bench.scratch.join(".cache/agentd/rank");
    fs::remove_dir_all(&cache)?;
    for (what, limit, bar) in CONTEXT {
        let used = measure::cpu_milliseconds(&mut context())?;
        let name = format!("context of 100,000 files, {what}");
        report.add(Row::measured(&name, Unit::Milliseconds, used, limit, bar));
    }
    fs::remove_dir_all(&cache)?;
    let peak = measure::peak_rss(&context())?;
    let name = "context of 100,000 files: peak memory";
    report.add(Row::measured(name, Unit::Megabytes, peak, MEMORY.0, MEMORY.1));
    Ok(())
}

/// Writes and commits code that resembles a product: words that differ by place.
fn write_code(project: &Path) -> Result<()> {
    const VERBS: [&str; 7] = ["delete", "update", "create", "render", "parse", "send", "lock"];
    const NOUNS: [&str; 11] = [
        "object", "account", "order", "invoice", "session", "report", "image", "queue", "cache",
        "user", "message",
    ];
    for directory in 0..DIRECTORIES {
        let path = project.join(format!("src/part{}/module{directory}", directory % 40));
        fs::create_dir_all(&path)?;
        for file in 0..FILES {
            let (verb, noun) = (VERBS[(directory + file) % 7], NOUNS[directory % 11]);
            let text = format!(
                "//! How to {verb} an {noun} of module {directory}.\n\n\
                 pub fn {verb}_{noun}_{file}(id: usize) -> usize {{\n    id + {file}\n}}\n"
            );
            fs::write(path.join(format!("{verb}_{noun}_{file}.rs")), text)?;
        }
    }
    let person = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "Start"]] {
        process::capture(process::command("git", project).args(person).args(arguments))?;
    }
    // Else the system writes 100,000 files to the disk while others are timed.
    process::capture(&mut process::command("sync", project))?;
    Ok(())
}
