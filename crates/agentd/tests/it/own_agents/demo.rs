//! `agentd demo`, on a machine that has git and a shell and nothing else.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agentd_core::document::proposal;
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::recording::DIVERGES;
use serde_json::{Value, json};
use test_project::{TestProject, agentd, mask};

/// A machine with an empty home, and a PATH of a few programs.
fn machine() -> TestProject {
    let machine = TestProject::empty().programs(&["sh", "git"]);
    fs::create_dir(machine.base().join("tmp")).unwrap();
    machine
}

/// A program on the machine, with a directory of its own for temporary files.
fn command(machine: &TestProject, program: impl AsRef<OsStr>, args: &[&str]) -> Command {
    let mut command = machine.any_command(program);
    command.args(args).env("TMPDIR", machine.base().join("tmp"));
    command
}

/// Runs agentd, which has to succeed; what it prints.
#[track_caller]
fn succeeds(machine: &TestProject, args: &[&str]) -> String {
    machine.finish(&mut command(machine, agentd(), args)).exits(0).stdout
}

fn git(machine: &TestProject, dir: &str, args: &[&str]) -> String {
    test_project::git(&machine.root().join(dir), args)
}

fn names(machine: &TestProject, folder: &str) -> Vec<OsString> {
    let entries = fs::read_dir(machine.base().join(folder)).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name()).collect()
}

/// Whether nothing is in the home directory but what is kept about projects.
fn keeps_state_at_most(machine: &TestProject) -> bool {
    names(machine, "home").iter().all(|name| name == ".local" || name == ".cache")
        && names(machine, "home/.local/state").iter().all(|name| name == "agentd")
}

/// Whether nothing is kept about any project either.
fn keeps_no_state(machine: &TestProject) -> bool {
    let kept = ["home/.local/state/agentd/projects", "home/.cache/agentd/projects"];
    keeps_state_at_most(machine) && kept.iter().all(|dir| names(machine, dir).is_empty())
}

fn leaves_no_temporary_files(machine: &TestProject) -> bool {
    names(machine, "tmp").is_empty()
}

/// All files below a directory but those of git, by their paths.
fn files(root: &Path) -> BTreeMap<String, String> {
    let all = test_project::tree(root).into_iter().filter(|(path, _)| !path.starts_with(".git"));
    all.filter_map(|(path, node)| Some((path.display().to_string(), node.text()?.to_owned())))
        .collect()
}

/// What agents and agentd have written for people: not the ledger and the runs, which have
/// the times of the very call in them.
fn documents(root: &Path) -> BTreeMap<String, String> {
    let mut all = files(root);
    let timed = ["/STATE.yaml", "/journal.jsonl", "/archive.json", "/CHANGELOG.md"];
    all.retain(|name, _| {
        !name.contains("/runs/")
            && !name.contains("/.locks/")
            && !timed.iter().any(|end| name.ends_with(end))
    });
    all
}

/// Words apart by one space, however long the path of the test is, and without commits.
fn unaligned(text: &str) -> String {
    let is_commit = |word: &str| word.len() == 7 && word.chars().all(|c| c.is_ascii_hexdigit());
    let plain = |word| if is_commit(word) { "[COMMIT]" } else { word };
    let lines = text.lines().map(|line| line.split_whitespace().map(plain).collect::<Vec<_>>());
    lines.map(|words| format!("{}\n", words.join(" "))).collect()
}

fn archived(root: &Path) -> PathBuf {
    let entries: Vec<_> = fs::read_dir(root.join("agentd/archive")).unwrap().collect();
    assert_eq!(entries.len(), 1);
    entries.into_iter().next().unwrap().unwrap().path()
}

/// Issue 7, item 3 and its bars: the whole story with git and a shell alone, the same twice,
/// and the same again by `agentd replay` into a clone.
#[test]
fn heavy_demo_needs_only_git_and_shell() {
    let machine = machine();
    let started = Instant::now();
    let printed = succeeds(&machine, &["demo", "--fast", "--json", "--dir", "one"]);
    let took = started.elapsed();
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["version"], 1);
    assert_eq!(report["phase"], "archived");
    assert_eq!(report["verdict"], "APPROVED");
    assert_eq!(report["iteration"], 1, "one round of revision");
    assert_eq!(report["tests"], json!({"before": 1, "after": 0}), "red, then green");
    assert_eq!(report["kept"], true);
    let steps: Vec<&str> =
        report["steps"].as_array().unwrap().iter().map(|s| s["step"].as_str().unwrap()).collect();
    let wanted = [
        "proposal-gen",
        "proposal-review",
        "spec-gen-greeting",
        "spec-review-greeting",
        "tasks-gen",
        "tasks-review",
        "challenge",
        "reproposal",
        "challenge",
        "implement-logic",
        "implement-testing",
        "review",
        "fix",
        "review",
    ];
    assert_eq!(steps, wanted);
    assert!(report["cost_usd"].as_f64().unwrap() > 0.0);
    assert_eq!(report["files"], json!(["bin/greet", "tests/no-name.sh"]));
    assert_eq!(report["next"].as_array().unwrap().len(), 3);
    // Generous: the bar of 10 s is for a release build on a machine that does nothing else.
    assert!(took < Duration::from_mins(1), "{took:?}");

    // The specs are merged, the code is there, and the documents are where the tour says.
    let one = machine.root().join("one");
    let spec = fs::read_to_string(one.join("agentd/specs/greeting.md")).unwrap();
    let requirements: Vec<&str> = spec.lines().filter(|line| line.starts_with("### R")).collect();
    assert_eq!(requirements, ["### R1: By name", "### R2: Without a name"]);
    let tests = command(&machine, "sh", &["test.sh"]).current_dir(&one).output().unwrap();
    assert!(tests.status.success(), "{tests:?}");
    let proposal = fs::read_to_string(archived(&one).join("proposal.md")).unwrap();
    let reviews = proposal::parse(&proposal).value.reviews;
    let verdicts: Vec<PlanVerdict> = reviews.iter().map(|review| review.verdict).collect();
    assert_eq!(verdicts, [PlanVerdict::NeedsRevision, PlanVerdict::Approved]);

    let diverged: Vec<String> = files(&archived(&one).join("runs"))
        .into_iter()
        .filter_map(|(name, run)| run.contains(DIVERGES).then_some(name))
        .collect();
    assert!(diverged.is_empty(), "record it again (docs/replay.md): {diverged:?}");

    // Reviews are where they were given, though the recording has dates of its own.
    let log = succeeds(&machine, &["-C", "one", "log", "greet-by-name", "--json"]);
    let log: Value = serde_json::from_str(&log).unwrap();
    let events = log["events"].as_array().unwrap();
    assert_eq!(events[0]["kind"], "begun", "{log:#}");
    let last = &events[events.len() - 1]["kind"];
    assert!(last == "phase" || last == "commit", "{log:#}");

    // The history: the tests are red before the change, which is on a branch of its own.
    let log = git(&machine, "one", &["log", "--reverse", "--format=%s", "main..HEAD"]);
    let wanted = [
        "greet-by-name: review the plan",
        "greet-by-name: revise the plan",
        "greet-by-name: review the plan",
        "greet-by-name: logic layer",
        "greet-by-name: testing layer",
        "greet-by-name: review the code",
        "greet-by-name: fix the findings of review 1",
        "greet-by-name: review the code",
        "Archive greet-by-name",
    ];
    assert_eq!(log.lines().collect::<Vec<_>>(), wanted);
    assert_eq!(git(&machine, "one", &["branch", "--show-current"]), "agentd/greet-by-name");
    assert_eq!(git(&machine, "one", &["status", "--porcelain"]), "");

    // Nothing else was written.
    assert!(keeps_state_at_most(&machine) && leaves_no_temporary_files(&machine));

    // Once more, elsewhere, and in words.
    let tour = succeeds(&machine, &["demo", "--fast", "--dir", "two"]);
    let end = tour.split_once("What was written").unwrap().1;
    insta::assert_snapshot!(unaligned(&mask(end, &machine.base())), @"

    bin/greet changed code
    tests/no-name.sh new code
    agentd/specs/greeting.md what holds from now on
    agentd/archive/[DATE]-greet-by-name proposal, specs, tasks and reviews
    runs/ all that agents did, to be replayed

    Commits
    [COMMIT] greet-by-name: review the plan
    [COMMIT] greet-by-name: revise the plan
    [COMMIT] greet-by-name: review the plan
    [COMMIT] greet-by-name: logic layer
    [COMMIT] greet-by-name: testing layer
    [COMMIT] greet-by-name: review the code
    [COMMIT] greet-by-name: fix the findings of review 1
    [COMMIT] greet-by-name: review the code
    [COMMIT] Archive greet-by-name

    What it cost
    gemini-3.8-flash 7 calls $0.0644
    gpt-6.1-sol 4 calls $0.1008
    claude-sonnet-5 3 calls $0.3168
    14 calls, 333.0k tokens in, 22.2k out, $0.4819
    As recorded, from gemini, codex and claude with scripted models; nothing was paid now.
    Commands, tools, tests and git were real.

    What to do next
    agentd -C [ROOT]/two view all of it in a browser
    agentd -C [ROOT]/two trace greeting:R2 from a requirement to its tasks, commits and review
    agentd init in your own project

    All of it is in [ROOT]/two.
    ");
    let two = machine.root().join("two");
    let (first, second) = (documents(&one), documents(&two));
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, text) in &first {
        assert_eq!(text, &second[name], "{name}");
    }

    // What the demonstration has recorded, done again in a clone of what was there before.
    git(&machine, "one", &["clone", "--quiet", "--branch", "main", ".", "../three"]);
    let clone = machine.root().join("three");
    let red = command(&machine, "sh", &["test.sh"]).current_dir(&clone).output().unwrap();
    assert_eq!(red.status.code(), Some(1), "{red:?}");
    let source = archived(&one);
    let played =
        succeeds(&machine, &["replay", source.to_str().unwrap(), "--json", "--into", "three"]);
    let played: Value = serde_json::from_str(&played).unwrap();
    assert_eq!(played["divergences"], json!([]));
    assert_eq!(played["runs"].as_array().unwrap().len(), 14);
    for file in ["bin/greet", "tests/no-name.sh"] {
        assert_eq!(
            fs::read(clone.join(file)).unwrap(),
            fs::read(one.join(file)).unwrap(),
            "{file}"
        );
    }
    let change = clone.join("agentd/changes/greet-by-name");
    for file in ["proposal.md", "specs/greeting.md", "tasks.md", "REVIEW.md"] {
        let again = fs::read_to_string(change.join(file)).unwrap();
        assert_eq!(again, fs::read_to_string(source.join(file)).unwrap(), "{file}");
    }

    // So does the recording that came with the program.
    git(&machine, "one", &["clone", "--quiet", "--branch", "main", ".", "../four"]);
    succeeds(&machine, &["replay", "one/recordings/greet-by-name", "--json", "--into", "four"]);
    let change = machine.root().join("four").join("agentd/changes/greet-by-name");
    for file in ["proposal.md", "specs/greeting.md", "tasks.md", "REVIEW.md"] {
        let again = fs::read_to_string(change.join(file)).unwrap();
        assert_eq!(again, fs::read_to_string(source.join(file)).unwrap(), "{file}");
    }
}

/// The lines of a picture that stay, without what is different in every run: times, commits,
/// names of directories.
fn gist(lines: impl Iterator<Item = String>) -> Vec<String> {
    let plain = |word: &str| {
        let commit = word.len() >= 7 && word.chars().all(|c| c.is_ascii_hexdigit());
        let kept = if commit || word.contains("agentd-demo-") { "" } else { word };
        kept.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect::<String>()
    };
    lines
        .map(|line| {
            // 1.2 s or 900 ms.
            let line = line.replace(" ms ", " s ");
            line.split_whitespace().map(plain).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

/// The picture of the README is a picture of this program.
#[test]
fn heavy_readme_image_matches_demo() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.svg");
    let svg = fs::read_to_string(file).unwrap();
    let stays = svg.lines().filter(|line| line.starts_with("<text class=\"i\""));
    let drawn = stays.map(|line| {
        let mut text = String::new();
        for (index, part) in line.split(['<', '>']).enumerate() {
            text.push_str(if index % 2 == 0 { part } else { " " });
        }
        let text = text.replace("&lt;", "<").replace("&gt;", ">");
        text.replace("&quot;", "\"").replace("&amp;", "&")
    });
    let machine = machine();
    let mut command = command(&machine, agentd(), &["demo", "--fast"]);
    let (code, recording) = terminal::Terminal::start(&mut command).record(2 * terminal::COLUMNS);
    assert_eq!(code, Some(0));
    let shown = recording.rows().into_iter().filter_map(|row| row.at_last().cloned());
    let shown = shown.filter(|shown| !shown.runs.is_empty()).map(|shown| {
        // Styles are apart in the picture, wherever they meet.
        shown.runs.into_iter().map(|run| run.text).collect::<Vec<_>>().join(" ")
    });
    assert_eq!(gist(drawn), gist(shown), "make it again: cargo xtask picture");
}

#[test]
fn demo_leaves_full_directory_alone() {
    let machine = machine();
    fs::create_dir(machine.root().join("mine")).unwrap();
    fs::write(machine.root().join("mine/notes.txt"), "mine").unwrap();
    let output = machine.run(["demo", "--fast", "--json", "--dir", "mine"]).exits(1);
    assert_eq!(output.json_error()["kind"], "not_empty");
    assert_eq!(files(&machine.root().join("mine")).len(), 1);
}

#[test]
fn ctrl_c_ends_demo_with_130() {
    let machine = machine();
    let mut child = command(&machine, agentd(), &["demo"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // In the middle: the first agent has been called.
    let begun = || {
        let dir = fs::read_dir(machine.base().join("tmp")).unwrap().next()?.ok()?.path();
        fs::read_dir(dir.join("agentd/changes/greet-by-name/runs")).ok()?.next()?.ok()
    };
    let started = Instant::now();
    while begun().is_none() {
        assert!(started.elapsed() < Duration::from_mins(1), "it never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(leaves_no_temporary_files(&machine) && keeps_no_state(&machine));
}
