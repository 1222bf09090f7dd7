//! `cargo xtask mutants`: whether the tests notice when the code that decides is wrong.
//!
//! cargo-mutants breaks one expression at a time and runs the tests that cover the module. A
//! mutant that no test notices is a missing test, or is listed with a reason in
//! `testing/mutants.toml`. This takes minutes to hours, so it is not part of CI.

mod accepted;

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::ExitCode;

use lexopt::Arg;
use lexopt::ValueExt;

use self::accepted::Accepted;
use crate::Result;
use crate::process;
use crate::tools;
use crate::workspace::Workspace;

/// The share of mutants that tests must catch, in percent of those that are not accepted.
const BAR: f64 = 95.0;

/// How long the tests of one mutant may take. One that loops forever counts as caught.
const TIMEOUT_SECONDS: &str = "60";

/// A part of the product whose mistakes nothing else would catch.
struct Module {
    name: &'static str,
    package: &'static str,
    /// Its files, from the top of the repository; `*` matches within a name.
    files: &'static [&'static str],
    /// The tests that cover it, as a filter of nextest. The narrower it is, the faster.
    tests: &'static str,
}

const MODULES: [Module; 13] = [
    Module {
        name: "phase",
        package: "agentd-core",
        files: &["crates/agentd-core/src/phase.rs"],
        tests: "test(/^(phases|states)::/)",
    },
    Module {
        name: "transitions",
        package: "agentd-core",
        files: &["crates/agentd-core/src/state/transitions.rs"],
        tests: "test(/^(phases|states)::/)",
    },
    Module {
        name: "state",
        package: "agentd-core",
        files: &["crates/agentd-core/src/state.rs", "crates/agentd-core/src/state/records.rs"],
        tests: "test(/^(phases|records|states)::/)",
    },
    Module {
        name: "journal",
        package: "agentd-core",
        files: &["crates/agentd-core/src/journal.rs", "crates/agentd-core/src/journal/*.rs"],
        tests: "test(/^journal::/)",
    },
    Module {
        name: "receipt",
        package: "agentd-core",
        files: &["crates/agentd-core/src/receipt.rs"],
        tests: "test(/^receipt::/)",
    },
    Module {
        name: "review_mark",
        package: "agentd-core",
        files: &["crates/agentd-core/src/provider/review.rs"],
        tests: "test(/^provider::review::/)",
    },
    Module {
        name: "review",
        package: "agentd-core",
        files: &["crates/agentd-core/src/document/review.rs"],
        tests: "test(/^(hand_written|phases|reviews|round_trip|rules)::/)",
    },
    Module {
        name: "review_block",
        package: "agentd-core",
        files: &["crates/agentd-core/src/document/review_block.rs"],
        tests: "test(/^(hand_written|phases|reviews|round_trip|rules)::/)",
    },
    Module {
        name: "issue_fate",
        package: "agentd-core",
        files: &[
            "crates/agentd-core/src/document/issue_fate.rs",
            "crates/agentd-core/src/document/previous.rs",
        ],
        tests: "test(/^(document::issue_fate|reviews)::/)",
    },
    Module {
        name: "merge",
        package: "agentd-core",
        files: &["crates/agentd-core/src/merge.rs", "crates/agentd-core/src/merge/*.rs"],
        tests: "test(/^merge::/)",
    },
    Module {
        name: "check",
        package: "agentd-core",
        files: &["crates/agentd-core/src/check.rs", "crates/agentd-core/src/check/*.rs"],
        tests: "test(/^(check|corpus|example|rules)::/)",
    },
    Module {
        name: "evidence",
        package: "agentd-engine",
        files: &["crates/agentd-engine/src/tools/evidence.rs"],
        tests: "test(/^actions::tasks::/)",
    },
    Module {
        name: "staleness",
        package: "agentd-engine",
        files: &["crates/agentd-engine/src/change/staleness.rs"],
        tests: "test(/^stale::/)",
    },
];

/// What cargo-mutants found in a module.
#[derive(Default)]
struct Found {
    caught: usize,
    unviable: usize,
    /// As cargo-mutants names them: `file:line:column: what was replaced`.
    missed: Vec<String>,
}

/// `cargo xtask mutants [--only module] [--list]`.
pub(crate) fn main(workspace: &Workspace, mut args: lexopt::Parser) -> Result<ExitCode> {
    let mut only: Option<String> = None;
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("list") => {
                print!("{}", list());
                return Ok(ExitCode::SUCCESS);
            }
            Arg::Long("only") => only = Some(args.value()?.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let modules = selected(only.as_deref())?;
    let accepted = accepted::read(&workspace.root.join("testing/mutants.toml"))?;
    tools::find_or_install(workspace, &tools::MUTANTS)?;
    tools::find_or_install(workspace, &tools::NEXTEST)?;
    let mut lines = Vec::new();
    let mut passed = true;
    for module in modules {
        let found = run(workspace, module)?;
        let verdict = judge(module, &found, &accepted);
        passed &= verdict.passed;
        lines.push(verdict.text);
    }
    print!("\n{}", lines.concat());
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn selected(only: Option<&str>) -> Result<Vec<&'static Module>> {
    let Some(only) = only else { return Ok(MODULES.iter().collect()) };
    let mut modules = Vec::new();
    for name in only.split(',') {
        let Some(module) = MODULES.iter().find(|module| module.name == name) else {
            let names = MODULES.each_ref().map(|module| module.name).join(", ");
            let message = format!("no module {name:?}; there are: {names}");
            return Err(lexopt::Error::from(message).into());
        };
        modules.push(module);
    }
    Ok(modules)
}

fn list() -> String {
    MODULES
        .iter()
        .map(|module| format!("{:13} {}\n", module.name, module.files.join(" ")))
        .collect()
}

/// Runs the tests of a module against each of its mutants.
fn run(workspace: &Workspace, module: &Module) -> Result<Found> {
    let output = workspace.target.join("mutants").join(module.name);
    fs::create_dir_all(&output)?;
    let mut cargo = command(workspace, module, &output)?;
    println!("{}: {}", module.name, module.files.join(" "));
    let status = cargo.status()?;
    // Its exit codes: 2 if mutants were missed, 3 if tests took too long. Both are results.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo mutants: {status}; its log is in {}", output.display()).into());
    }
    let results = output.join("mutants.out");
    let read = |name: &str| -> Result<Vec<String>> {
        let text = fs::read_to_string(results.join(name))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    Ok(Found {
        caught: read("caught.txt")?.len() + read("timeout.txt")?.len(),
        unviable: read("unviable.txt")?.len(),
        missed: read("missed.txt")?,
    })
}

fn command(workspace: &Workspace, module: &Module, output: &Path) -> Result<Command> {
    let mut cargo = process::command("cargo", &workspace.root);
    cargo.args(["mutants", "--jobs", "1", "--profile", "mutants", "--test-tool", "nextest"]);
    cargo.args(["--no-times", "--colors", "never", "--timeout", TIMEOUT_SECONDS]);
    cargo.args(["--package", module.package]);
    for file in module.files {
        cargo.args(["--file", file]);
    }
    cargo.arg("--output").arg(output);
    cargo.args(["--", "--lib", "--test", "it", "-E", module.tests]);
    // Mutants are built in a copy of the tree. Dependencies are built once for all of them.
    cargo.env("CARGO_TARGET_DIR", workspace.target.join("mutants").join("build"));
    cargo.env("PATH", with_tools(&workspace.tools.join("bin"))?);
    cargo.env("INSTA_UPDATE", "no");
    Ok(cargo)
}

fn with_tools(tools: &Path) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut entries: Vec<PathBuf> = env::split_paths(&path).collect();
    entries.push(tools.to_path_buf());
    Ok(env::join_paths(entries)?)
}

struct Verdict {
    passed: bool,
    text: String,
}

/// Compares what was found with the bar, and with what is accepted.
fn judge(module: &Module, found: &Found, accepted: &[Accepted]) -> Verdict {
    let mut left: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for entry in accepted.iter().filter(|entry| entry.module == module.name) {
        *left.entry((&entry.file, &entry.mutant)).or_default() += entry.count;
    }
    let mut missed = Vec::new();
    for mutant in &found.missed {
        match left.get_mut(&identity(mutant)) {
            Some(count) if *count > 0 => *count -= 1,
            Some(_) | None => missed.push(mutant),
        }
    }
    let accepted_here = found.missed.len() - missed.len();
    let share = percent(found.caught, found.caught + missed.len());
    let unused: Vec<_> = left.into_iter().filter(|(_, count)| *count > 0).collect();
    let passed = share >= BAR && unused.is_empty();
    let mut text = format!(
        "{:13} {:4} caught {:3} missed {accepted_here:3} accepted {:3} unviable {share:6.1} %  {}\n",
        module.name,
        found.caught,
        missed.len(),
        found.unviable,
        if passed { "pass" } else { "FAIL" },
    );
    for mutant in missed {
        text += &format!("  missed: {mutant}\n");
    }
    for ((file, mutant), _) in unused {
        text += &format!("  no longer missed, remove it from mutants.toml: {file}: {mutant}\n");
    }
    Verdict { passed, text }
}

/// A mutant without its line and column, which move with every edit.
fn identity(mutant: &str) -> (&str, &str) {
    let Some((place, what)) = mutant.split_once(": ") else { return ("", mutant) };
    (place.split(':').next().unwrap_or(place), what)
}

#[expect(clippy::cast_precision_loss, reason = "mutants are counted in hundreds")]
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(mutant: &str, count: usize) -> Accepted {
        Accepted {
            module: "phase".to_owned(),
            file: "src/phase.rs".to_owned(),
            mutant: mutant.to_owned(),
            count,
        }
    }

    fn found(caught: usize, missed: &[&str]) -> Found {
        let missed = missed.iter().map(|mutant| (*mutant).to_owned()).collect();
        Found { caught, unviable: 0, missed }
    }

    #[test]
    fn a_module_passes_from_95_percent_on() {
        let missed = "src/phase.rs:3:9: replace f -> bool with true";
        assert!(judge(&MODULES[0], &found(19, &[missed]), &[]).passed);
        assert!(!judge(&MODULES[0], &found(18, &[missed]), &[]).passed);
    }

    #[test]
    fn an_accepted_mutant_is_not_counted_wherever_its_line_is() {
        let missed = "src/phase.rs:3:9: replace f -> bool with true";
        let accepted = [entry("replace f -> bool with true", 1)];
        assert!(judge(&MODULES[0], &found(0, &[missed]), &accepted).passed);
        // A second one of the same name is not accepted with the first.
        let second = "src/phase.rs:8:9: replace f -> bool with true";
        assert!(!judge(&MODULES[0], &found(0, &[missed, second]), &accepted).passed);
        let both = [entry("replace f -> bool with true", 2)];
        assert!(judge(&MODULES[0], &found(0, &[missed, second]), &both).passed);
        // Neither is one of another module.
        assert!(!judge(&MODULES[1], &found(0, &[missed]), &accepted).passed);
    }

    #[test]
    fn an_entry_that_is_no_longer_needed_fails() {
        let verdict = judge(&MODULES[0], &found(1, &[]), &[entry("replace f", 1)]);
        assert!(!verdict.passed);
        assert!(verdict.text.contains("remove it from mutants.toml: src/phase.rs: replace f"));
    }

    #[test]
    fn an_unknown_module_is_refused() {
        assert!(selected(Some("phase,nothing")).is_err());
        assert_eq!(selected(Some("phase,check")).map(|modules| modules.len()).ok(), Some(2));
    }
}
