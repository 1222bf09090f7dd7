//! How well `agentd context` finds the files that a real commit touched, and what that costs.
//!
//! For each case a repository is checked out at the parent of a commit, and agentd is asked for what
//! the commit's message says. The cases are a file of JSON lines (`AGENTD_CONTEXT_CASES`), the
//! repositories bare mirrors (`AGENTD_MIRRORS`); neither is part of this project, so if one of them is
//! missing, the rows are not measurable. Figures are means over the cases of a repository, then over repositories.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;

use serde_json::Value;

use super::Bench;
use super::measure;
use super::plan_contexts;
use super::report::Report;
use super::report::Row;
use super::report::Unit;
use crate::Result;
use crate::process;

/// The size of the contexts in which files are looked for.
const CONTEXT_BYTES: usize = 8192;
/// What is asked where only time and memory matter.
const QUESTION: &str = "Fix a crash when an object is deleted while it is being updated";
/// The size of each context of the first edition in django, in bytes.
const FIRST_EDITION: f64 = 63_270.0;
/// Where the repositories come from.
const OWNERS: [(&str, &str); 7] = [
    ("django", "django"),
    ("ripgrep", "BurntSushi"),
    ("cli", "cli"),
    ("excalidraw", "excalidraw"),
    ("gson", "google"),
    ("rails", "rails"),
    ("kubernetes", "kubernetes"),
];

/// A commit, as far as it is asked about.
struct Case {
    parent: String,
    query: String,
    files: Vec<String>,
}

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let place = |name: &str, default: &str| {
        env::var_os(name).map_or_else(|| PathBuf::from(default), PathBuf::from)
    };
    let cases = place("AGENTD_CONTEXT_CASES", "../shared/context/cases-public.jsonl");
    let mirrors = place("AGENTD_MIRRORS", "../.mirror");
    let bars = [
        ("wanted files missed among 20", 10.0, "10 %"),
        ("wanted files missed among 8", 18.0, "18 %"),
        ("wanted files not named in 8 kB", 5.0, "5 %"),
        ("missed among 20 in the worst repository", 25.0, "25 %"),
    ];
    let found = match read_cases(&cases) {
        Ok(cases) => quality(bench, &mirrors, &cases)?,
        Err(error) => Err(format!("{}: {error}", cases.display())),
    };
    for (index, (name, limit, bar)) in bars.into_iter().enumerate() {
        report.add(match &found {
            Ok(missed) => Row::measured(name, Unit::Percent, missed[index], limit, bar),
            Err(why) => Row::not_measurable(name, bar, why.clone()),
        });
    }
    costs(bench, &mirrors, report)?;
    plan_of_three_specs(bench, &mirrors, report)
}

fn read_cases(path: &Path) -> Result<BTreeMap<String, Vec<Case>>> {
    let mut cases: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for line in fs::read_to_string(path)?.lines() {
        let case: Value = serde_json::from_str(line)?;
        let text = |key: &str| case[key].as_str().unwrap_or_default().to_owned();
        let files = case["files"].as_array().into_iter().flatten();
        let files = files.filter_map(Value::as_str).map(str::to_owned).collect();
        let (parent, query) = (text("parent"), text("query_leakfree"));
        cases.entry(text("repo")).or_default().push(Case { parent, query, files });
    }
    if cases.is_empty() {
        return Err("it has no cases".into());
    }
    Ok(cases)
}

/// What is missed, in percent: among 20, among 8, in a context, and among 20 where it is worst. If a
/// repository is missing, a reason: means over the others would be figures of something else.
fn quality(
    bench: &Bench,
    mirrors: &Path,
    cases: &BTreeMap<String, Vec<Case>>,
) -> Result<std::result::Result<[f64; 4], String>> {
    let mut rows: Vec<[f64; 3]> = Vec::new();
    let mut missing: Vec<&str> = Vec::new();
    for (repository, cases) in cases {
        let Some(clone) = clone(bench, mirrors, repository)? else {
            missing.push(repository);
            continue;
        };
        let mut sums = [0.0; 3];
        for case in cases {
            check_out(&clone, &case.parent)?;
            let agentd = |arguments: &[&str]| {
                let mut words = vec!["context", case.query.as_str()];
                words.extend(arguments);
                process::capture(&mut bench.agentd(&clone, &words))
            };
            let listed = agentd(&["--files", "20"])?;
            let listed: Vec<&str> = listed.lines().collect();
            let text = agentd(&["--bytes", &CONTEXT_BYTES.to_string()])?;
            let share = |found: &dyn Fn(&str) -> bool| {
                let hits = case.files.iter().filter(|file| found(file)).count();
                count(hits) / count(case.files.len())
            };
            sums[0] += share(&|file| listed.contains(&file));
            sums[1] += share(&|file| listed.iter().take(8).any(|listed| *listed == file));
            sums[2] += share(&|file| names(&text, file));
        }
        let means = sums.map(|sum| sum / count(cases.len()));
        println!(
            "{repository:12} {:3} cases: {:.3} @20, {:.3} @8, {:.3} in {CONTEXT_BYTES} bytes",
            cases.len(),
            means[0],
            means[1],
            means[2]
        );
        rows.push(means);
    }
    if !missing.is_empty() {
        let why = format!("no mirror of {} in {}", missing.join(", "), mirrors.display());
        return Ok(Err(why));
    }
    let missed = |index: usize| {
        let sum: f64 = rows.iter().map(|row| row[index]).sum();
        (1.0 - sum / count(rows.len())) * 100.0
    };
    let worst = rows.iter().map(|row| row[0]).fold(1.0, f64::min);
    Ok(Ok([missed(0), missed(1), missed(2), (1.0 - worst) * 100.0]))
}

/// Processor time and memory, without and with what was kept from the last time.
fn costs(bench: &Bench, mirrors: &Path, report: &mut Report) -> Result<()> {
    for (repository, cold_bar, warm_bar, memory_bar) in
        [("django", 1200.0, 300.0, 200.0), ("kubernetes", 4000.0, 1000.0, 300.0)]
    {
        let name = |what: &str| format!("context of {repository}, {what}");
        let Some(clone) = head(bench, mirrors, repository)? else {
            for (what, bar) in [("cold", cold_bar), ("warm", warm_bar)] {
                let why = format!("no mirror in {}", mirrors.display());
                report.add(Row::not_measurable(&name(what), &format!("{bar} ms of CPU"), why));
            }
            continue;
        };
        let command = || bench.agentd(&clone, &["context", QUESTION, "--files", "20"]);
        // Files that were never read from disk would measure the disk.
        process::capture(&mut command())?;
        let cache = bench.scratch.join(".cache/agentd/rank");
        let _ = fs::remove_dir_all(&cache);
        for (what, bar) in [("cold", cold_bar), ("warm", warm_bar)] {
            let used = measure::cpu_milliseconds(&mut command())?;
            let words = format!("{bar} ms of CPU");
            report.add(Row::measured(&name(what), Unit::Milliseconds, used, bar, &words));
        }
        let _ = fs::remove_dir_all(&cache);
        let peak = measure::peak_rss(&command())?;
        let words = format!("{memory_bar} MB");
        report.add(Row::measured(&name("memory"), Unit::Megabytes, peak, memory_bar, &words));
    }
    Ok(())
}

/// What the agents of a plan with three specs are given to read, all in all, in django.
fn plan_of_three_specs(bench: &Bench, mirrors: &Path, report: &mut Report) -> Result<()> {
    let (name, bar) = ("contexts of a plan with three specs, django", "25 % of the first edition");
    let Some(clone) = head(bench, mirrors, "django")? else {
        let why = format!("no mirror in {}", mirrors.display());
        report.add(Row::not_measurable(name, bar, why));
        return Ok(());
    };
    let read = plan_contexts::read_by_agents(bench, &clone)?;
    for (step, bytes) in &read {
        println!("django       {step:32} has a context of {bytes} bytes");
    }
    let now = count(read.iter().map(|(_, bytes)| bytes).sum()) / 1000.0;
    let before = count(read.len()) * FIRST_EDITION / 1000.0;
    let row = Row::measured(name, Unit::Kilobytes, now, before / 4.0, bar);
    report.add(row.against("first edition", before));
    Ok(())
}

/// A clone that shares the objects of a mirror; none if there is no mirror.
fn clone(bench: &Bench, mirrors: &Path, repository: &str) -> Result<Option<PathBuf>> {
    let owner = OWNERS.iter().find(|(name, _)| *name == repository).map(|(_, owner)| *owner);
    let mirror = mirrors.join(format!("{}+{repository}/repo", owner.unwrap_or(repository)));
    let Ok(mirror) = mirror.canonicalize() else { return Ok(None) };
    let clone = bench.scratch.join("clones").join(repository);
    if !clone.exists() {
        fs::create_dir_all(&clone)?;
        let source = mirror.to_str().ok_or("a mirror whose path is not text")?;
        git(&clone, &["clone", "--quiet", "--shared", "--no-checkout", source, "."])?;
        git(&clone, &["config", "gc.auto", "0"])?;
    }
    Ok(Some(clone))
}

/// A clone with the newest commit of its mirror checked out; none if there is no mirror.
fn head(bench: &Bench, mirrors: &Path, repository: &str) -> Result<Option<PathBuf>> {
    let Some(clone) = clone(bench, mirrors, repository)? else { return Ok(None) };
    let head = git(&clone, &["rev-parse", "origin/HEAD"]);
    check_out(&clone, head.unwrap_or_else(|_| "HEAD".to_owned()).trim())?;
    Ok(Some(clone))
}

/// Checks out a commit. Mirrors may lack their largest files; those alone are left out.
fn check_out(clone: &Path, commit: &str) -> Result<()> {
    let tree = git(clone, &["ls-tree", "-r", commit])?;
    let entries = tree.lines().filter_map(|line| {
        let (head, path) = line.split_once('\t')?;
        Some((head.split_whitespace().nth(2)?, path))
    });
    let entries: Vec<(&str, &str)> = entries.collect();
    let ids: String = entries.iter().map(|(id, _)| format!("{id}\n")).collect();
    let list = clone.join(".git/objects-to-check");
    fs::write(&list, ids)?;
    let mut check = process::command("git", clone);
    check.args(["cat-file", "--batch-check"]).stdin(Stdio::from(fs::File::open(&list)?));
    let known = process::capture(&mut check)?;
    let mut rules = String::from("/*\n");
    for ((_, path), known) in entries.iter().zip(known.lines()) {
        if known.ends_with("missing") {
            rules.push_str(&format!("!/{path}\n"));
        }
    }
    fs::create_dir_all(clone.join(".git/info"))?;
    fs::write(clone.join(".git/info/sparse-checkout"), rules)?;
    git(clone, &["config", "core.sparseCheckout", "true"])?;
    git(clone, &["config", "core.sparseCheckoutCone", "false"])?;
    // It fails where it finds the objects missing that are left out anyway.
    let _ = git(clone, &["checkout", "--quiet", "--force", "--detach", commit]);
    let there = git(clone, &["rev-parse", "HEAD"])?;
    let wanted = git(clone, &["rev-parse", commit])?;
    if there != wanted {
        return Err(format!("{} cannot be checked out in {}", commit, clone.display()).into());
    }
    git(clone, &["clean", "-fdxq"]).map(drop)
}

fn git(directory: &Path, arguments: &[&str]) -> Result<String> {
    let mut command: Command = process::command("git", directory);
    process::capture(command.args(["-c", "core.quotepath=off"]).args(arguments))
}

/// Whether a context names a file: by its path, or in a line `directory/: name name`.
fn names(text: &str, path: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let stands_in = |text: &str, name: &str, before: &[char]| {
        text.match_indices(name).any(|(at, _)| {
            let last = text[..at].chars().next_back();
            let next = text[at + name.len()..].chars().next();
            !last.is_some_and(|c| is_word(c) || before.contains(&c))
                && !next.is_some_and(|c| is_word(c) || c == '/')
        })
    };
    let (dir, name) = path.rsplit_once('/').unwrap_or((".", path));
    let dir = format!("{dir}/");
    stands_in(text, path, &['/', '.'])
        || text
            .lines()
            .filter_map(|line| line.strip_prefix(&dir)?.strip_prefix(": "))
            .any(|rest| stands_in(rest, name, &['.']))
}

#[expect(clippy::cast_precision_loss, reason = "counts of files and cases are small")]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_project::Size;

    #[test]
    fn without_a_repository_or_cases_there_are_reasons_and_no_figures() {
        let dir = tempfile::tempdir().unwrap();
        let (cases, mirrors) = (dir.path().join("cases.jsonl"), dir.path().join("mirrors"));
        assert!(read_cases(&cases).is_err());
        fs::write(&cases, "").unwrap();
        assert!(read_cases(&cases).is_err());
        let line = r#"{"repo": "gson", "parent": "a", "query_leakfree": "b", "files": ["c"]}"#;
        fs::write(&cases, line).unwrap();
        let scratch = dir.path().to_owned();
        let size = Size { changes: 0, specs: 0 };
        let bench = Bench { agentd: PathBuf::new(), scratch, rounds: 3, size };
        let found = quality(&bench, &mirrors, &read_cases(&cases).unwrap()).unwrap();
        assert_eq!(found, Err(format!("no mirror of gson in {}", mirrors.display())));
        let mut report = Report::default();
        costs(&bench, &mirrors, &mut report).unwrap();
        plan_of_three_specs(&bench, &mirrors, &mut report).unwrap();
        assert!(report.has_gaps() && !report.missed());
    }

    #[test]
    fn a_file_is_named_by_its_path_or_behind_its_directory() {
        let text = "src/login.rs\n  lines 1-2\nsrc/auth/: form.rs my-list.rs\nREADME.md\n";
        for named in ["src/login.rs", "src/auth/form.rs", "src/auth/my-list.rs", "README.md"] {
            assert!(names(text, named), "{named}");
        }
        for other in ["login.rs", "src/auth/list.rs", "src/form.rs", "auth/form.rs", "src/log"] {
            assert!(!names(text, other), "{other}");
        }
    }
}
