//! Git as teams use it: several changes in one repository, files of the user's that nobody has
//! committed, and branches that are merged in any order (R4).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use test_project::TestProject;

use super::stand_in::{self, CHANGE};

const WHAT: &str = "Add a login";

fn plan(project: &TestProject) {
    project.run(["plan", CHANGE, WHAT, "--auto", "--skip-clarify", "--git", "branch"]).exits(0);
}

fn refused(project: &TestProject, args: &[&str]) -> Value {
    let error = project.run(args.iter().chain(&["--json"])).exits(1).json_error();
    assert_eq!(error["kind"], "locked", "{args:?}: {error:#}");
    error
}

// contract R4
#[test]
fn nobody_switches_the_branch_or_writes_code_under_a_run() {
    let project = stand_in::repository("[git]\ncommit = \"layer\"\n");
    plan(&project);
    let project = project.change("other").approved().about(CHANGE);
    let mut running = stand_in::begin_impl(&project);

    let error = refused(&project, &["plan", "other", "--auto", "--git", "branch"]);
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("the branch of this checkout is held by pid "), "{message}");
    assert!(message.contains("(agentd impl add-login)"), "{message}");
    project.run(["plan", "other", "--auto", "--git", "in-place"]).exits(0);
    let error = refused(&project, &["impl", "other"]);
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("the code in this checkout is held by pid "), "{message}");
    assert_eq!(project.git(&["branch", "--show-current"]), "agentd/add-login");
    // Commands that look are not in the way.
    project.run(["status", "other"]).exits(0);

    fs::remove_file(stand_in::hold(&project)).unwrap();
    assert!(running.wait().unwrap().success());
    let on_branch = project.git(&["log", "--format=%s", "--name-only", "main..agentd/add-login"]);
    assert!(on_branch.contains("add-login: logic layer") && on_branch.contains("src/login.rs"));
    assert!(!on_branch.contains("agentd/changes/other"), "{on_branch}");
    // Nothing runs any more.
    project.run(["plan", "other", "--auto", "--git", "branch"]).exits(0);
    assert_eq!(project.git(&["branch", "--show-current"]), "agentd/other");
}

/// The name of the only archived change, which begins with today's date.
fn archived(project: &TestProject) -> String {
    let listed = project.run(["list", "--archived", "--json"]).exits(0).json();
    listed["archived"][0].as_str().unwrap().to_owned()
}

fn committed(project: &TestProject) -> Vec<String> {
    let log = project.git(&["log", "--format=", "--name-only", "main..agentd/add-login"]);
    log.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

// contract R4
#[test]
fn what_was_uncommitted_before_is_in_no_commit() {
    for in_the_way in [false, true] {
        let project = stand_in::repository("[git]\ncommit = \"step\"\n");
        project.write_root("src/known.rs", "known\n");
        project.commit("More");
        plan(&project);
        project.write_root("src/known.rs", "edited\n");
        project.write_root("notes.txt", "mine\n");
        project.write_root("staged.txt", "mine too\n");
        project.git(&["add", "staged.txt"]);
        if in_the_way {
            project.write_root("src/login.rs", "begun by hand\n");
        }
        let run = project.run(["impl", CHANGE]).exits(0);
        let warning = run.stderr.lines().find(|line| line.contains("uncommitted before")).unwrap();
        assert!(warning.contains("notes.txt, src/known.rs"), "{warning}");
        let committed = committed(&project);
        for file in ["src/known.rs", "notes.txt", "staged.txt"] {
            assert!(!committed.iter().any(|path| path == file), "{file}: {committed:?}");
        }
        assert_eq!(committed.iter().any(|path| path == "src/login.rs"), !in_the_way);
        let status = project.git(&["status", "--porcelain"]);
        assert!(status.contains("A  staged.txt") && status.contains("?? notes.txt"), "{status}");
    }
}

/// What an agent has left is its work, also for a later command; what somebody has edited in between
/// is not.
#[test]
fn work_that_a_killed_run_left_is_committed() {
    let project = stand_in::repository("[git]\ncommit = \"layer\"\n");
    plan(&project);
    project.write_root("mine.txt", "mine\n");
    let mut running = stand_in::begin_impl(&project);
    running.kill().unwrap();
    running.wait().unwrap();
    fs::remove_file(stand_in::hold(&project)).unwrap();
    project.run(["impl", CHANGE]).exits(0);
    let files = committed(&project);
    assert!(files.iter().any(|path| path == "src/login.rs"), "{files:?}");
    assert!(!files.iter().any(|path| path == "mine.txt"), "{files:?}");

    // The agent ends without its task; then a person edits a file.
    let project = stand_in::repository("[git]\ncommit = \"layer\"\n");
    plan(&project);
    stand_in::answers(&project, "implement-logic", &[]);
    project.run(["impl", CHANGE]).exits(1);
    project.write_root("later.txt", "mine\n");
    stand_in::verdicts(&project, "APPROVED", "APPROVED");
    project.run(["impl", CHANGE]).exits(0);
    let files = committed(&project);
    assert!(files.iter().any(|path| path == "src/login.rs"), "{files:?}");
    assert!(!files.iter().any(|path| path == "later.txt"), "{files:?}");
}

// contract R4
#[test]
fn documents_are_committed_on_the_branch_of_their_change() {
    let log = |commit: &str| {
        let project = stand_in::repository(&format!("[git]\ncommit = \"{commit}\"\n"));
        plan(&project);
        project.run(["impl", CHANGE]).exits(0);
        project.run(["archive", CHANGE]).exits(0);
        let left = project.git(&["status", "--porcelain"]);
        let left = left.replace(&archived(&project), "[DATE]-add-login");
        let log = project.git(&["log", "--reverse", "--format=%s", "main..agentd/add-login"]);
        // What is of one machine or of one call is not there.
        let files = committed(&project);
        let local = |path: &&String| path.contains("/runs/") || path.ends_with("GEMINI.md");
        assert_eq!(files.iter().find(local), None);
        // On another branch, nobody has to guess where it is.
        project.git(&["checkout", "-q", "HEAD~1"]);
        project.git(&["switch", "-q", "main"]);
        format!("{log}\n-- uncommitted:\n{left}")
    };
    insta::assert_snapshot!(log("layer"), @"
    add-login: review the plan
    add-login: logic layer
    add-login: review the code
    add-login: archive
    -- uncommitted:
    ?? agentd/archive/[DATE]-add-login/AGENTS.md
    ?? agentd/archive/[DATE]-add-login/GEMINI.md
    ?? agentd/archive/[DATE]-add-login/runs/
    ");
    insta::assert_snapshot!(log("step"), @"
    add-login: Proposal
    add-login: Spec 1/1: auth-flow
    add-login: Tasks
    add-login: Challenge
    add-login: review the plan
    add-login: logic layer
    add-login: Review
    add-login: review the code
    add-login: archive
    -- uncommitted:
    ?? agentd/archive/[DATE]-add-login/AGENTS.md
    ?? agentd/archive/[DATE]-add-login/GEMINI.md
    ?? agentd/archive/[DATE]-add-login/runs/
    ");
}

#[test]
fn a_change_on_another_branch_is_named() {
    let project = stand_in::repository("[git]\ncommit = \"layer\"\n");
    plan(&project);
    project.git(&["switch", "-q", "main"]);
    insta::assert_snapshot!(project.run(["status", CHANGE]).exits(1), @"
    exit 1
    --- stderr
    error: there is no change `add-login`

    hint: it is on the branch `agentd/add-login`: git switch agentd/add-login
    ");
    project.git(&["switch", "-q", "agentd/add-login"]);
    project.run(["status", CHANGE]).exits(0);
}

/// A repository with a main spec, in which git knows agentd's merge driver.
pub(super) fn with_spec() -> TestProject {
    let project = TestProject::empty().programs(&["git", "sh"]).repository();
    let agentd = test_project::agentd();
    let project = project.program("agentd", &format!("exec '{}' \"$@\"", agentd.display()));
    project.write_root(
        "agentd/config.toml",
        "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n",
    );
    project.write_root("agentd/specs/login.md", spec("login", "version: 1\n", &BASE));
    project.commit("Start");
    // The first change that is set up in a clone brings the driver along.
    project.run(["plan", "first", "Print it", "--auto", "--skip-clarify", "--git", "branch"]);
    assert!(project.git(&["config", "merge.agentd.driver"]).starts_with("agentd merge-driver "));
    project.git(&["switch", "-q", "main"]);
    fs::remove_dir_all(project.root().join("agentd/changes")).unwrap();
    project
}

const BASE: [&str; 3] = ["R1: Sign in", "R2: Sign out", "R3: Stay"];

/// A spec with these requirements, each `id: title`, or `id: title = text`.
fn spec(id: &str, more: &str, requirements: &[&str]) -> String {
    let mut text = format!(
        "---\nid: {id}\ntype: spec\ntitle: Login\n{more}created_at: 2026-11-01T10:00:00Z\n\
         updated_at: 2026-11-01T10:00:00Z\n---\n\n# Specification: Login\n\n## Overview\n\nHow people \
         sign in.\n\n## Requirements\n\n"
    );
    for requirement in requirements {
        let (heading, said) = requirement.split_once(" = ").unwrap_or((requirement, "be so"));
        text.push_str(&format!(
            "### {heading}\n\n**Priority**: high\n\nIt MUST {said} within 2 s.\n\n"
        ));
    }
    text.push_str("## Acceptance Criteria\n");
    for requirement in requirements {
        let name = requirement.split_once(" = ").map_or(*requirement, |(heading, _)| heading);
        text.push_str(&format!(
            "\n### Scenario: {name}\n\n- **WHEN** asked\n- **THEN** it is so\n"
        ));
    }
    text
}

/// What somebody archives on a branch: the spec, what is special in its frontmatter, requirements.
pub(super) type Archive<'a> = (&'a str, &'a str, &'a [&'a str]);

fn archive_on_branch(project: &TestProject, id: &str, archive: Archive<'_>) {
    archive_on(project, id, id, archive);
}

pub(super) fn archive_on(
    project: &TestProject,
    branch: &str,
    id: &str,
    (spec_id, front, requirements): Archive<'_>,
) {
    project.git(&["switch", "-q", "-c", branch, "main"]);
    let affected = format!(
        "affected_specs:\n  - id: {spec_id}\n    path: specs/{spec_id}.md\n    depends: []\n"
    );
    let proposal = format!(
        "---\nid: {id}\ntype: proposal\nversion: 1\ncreated_at: 2026-11-01T10:00:00Z\nupdated_at: \
         2026-11-01T10:00:00Z\nauthor: ada\nstatus: proposed\nimpact:\n  scope: minor\n{affected}---\n\n\
         # Change: {id}\n\n## Summary\n\nWhat {id} does.\n\n## Why\n\nIt is needed.\n\n## What Changes\n\n- {id}\n"
    );
    let dir = format!("agentd/changes/{id}");
    project.write_root(&format!("{dir}/proposal.md"), proposal);
    project.write_root(&format!("{dir}/specs/{spec_id}.md"), spec(spec_id, front, requirements));
    let main = format!("agentd/specs/{spec_id}.md");
    let base = if project.has_root(&main) { project.read_root(&main) } else { String::new() };
    project.write_root(&format!("{dir}/base/{spec_id}.md"), base);
    project.run(["archive", id, "--force", "a test"]).exits(0);
    project.write_root(&format!("src/{id}.txt"), id);
    project.commit(id);
}

fn git(project: &TestProject, args: &[&str]) -> bool {
    git_in(project, &project.root(), args)
}

fn git_in(project: &TestProject, dir: &Path, args: &[&str]) -> bool {
    let path = project.bin();
    let mut command = Command::new(path.join("git"));
    command.args(["-c", "user.name=Ada", "-c", "user.email=a@example.org"]).args(args);
    command.current_dir(dir).env("PATH", &path).env("HOME", project.home());
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_EDITOR", "true");
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// The orders in which two branches come together on main.
const ORDERS: [(&str, &[&[&str]]); 4] = [
    ("merge a, merge b", &[&["merge", "--no-ff", "--no-edit", "a"], &["merge", "--no-edit", "b"]]),
    ("merge b, merge a", &[&["merge", "--no-ff", "--no-edit", "b"], &["merge", "--no-edit", "a"]]),
    (
        "merge a, rebase b",
        &[
            &["merge", "--ff-only", "a"],
            &["rebase", "main", "b"],
            &["switch", "main"],
            &["merge", "--ff-only", "b"],
        ],
    ),
    ("merge b, pick a", &[&["merge", "--ff-only", "b"], &["cherry-pick", "a"]]),
];

/// What two people archive, and the requirements of the main spec afterwards.
pub(super) const PAIRS: [(&str, Archive<'_>, Archive<'_>, &str); 6] = [
    (
        "each adds one",
        ("login", "", &["R4: Lock"]),
        ("login", "", &["R4: Unlock"]),
        "R1 R2 R3 R4 R5",
    ),
    (
        "each edits one",
        ("login", "", &["R1: Sign in = ask"]),
        ("login", "", &["R3: Stay = end"]),
        "R1 R2 R3",
    ),
    (
        "neighbors",
        ("login", "", &["R1: Sign in = ask"]),
        ("login", "", &["R2: Sign out = ask"]),
        "R1 R2 R3",
    ),
    (
        "one removes, one adds",
        ("login", "removes: [R2]\n", &["R1: Sign in"]),
        ("login", "", &["R4: Lock", "R5: Unlock"]),
        "R1 R3 R4 R5",
    ),
    (
        "another spec",
        ("login", "", &["R4: Lock"]),
        ("logout", "version: 1\n", &["R1: Leave"]),
        "R1 R2 R3 R4",
    ),
    (
        "one renames, one edits",
        ("login", "renames: {R2: \"Leave\"}\n", &["R1: Sign in"]),
        ("login", "", &["R3: Stay = end"]),
        "R1 R2 R3",
    ),
];

fn requirements(project: &TestProject) -> String {
    requirements_in(&project.root())
}

pub(super) fn requirements_in(root: &Path) -> String {
    let text = fs::read_to_string(root.join("agentd/specs/login.md")).unwrap();
    let heading = |line: &str| line.strip_prefix("### R").map(|rest| format!("R{}", &rest[..1]));
    let mut ids: Vec<String> = text.lines().filter_map(heading).collect();
    ids.sort_unstable();
    ids.join(" ")
}

// contract R4
#[test]
fn heavy_branches_of_two_changes_come_together_in_any_order() {
    let mut orders = 0;
    for (what, a, b, expected) in PAIRS {
        let project = with_spec();
        archive_on_branch(&project, "a", a);
        archive_on_branch(&project, "b", b);
        let main = project.git(&["rev-parse", "main"]);
        let tips = ["a", "b"].map(|name| project.git(&["rev-parse", name]));
        for (order, steps) in ORDERS {
            project.git(&["switch", "-q", "-C", "b", &tips[1]]);
            project.git(&["branch", "-q", "-f", "a", &tips[0]]);
            project.git(&["switch", "-q", "-C", "main", &main]);
            for step in steps {
                let fine = git(&project, step);
                assert!(fine, "{what}: {order}: {step:?}\n{}", project.git(&["diff"]));
            }
            assert_eq!(requirements(&project), expected, "{what}: {order}");
            let log = project.read_root("agentd/specs/CHANGELOG.md");
            let entries: Vec<&str> = log.lines().filter(|line| line.starts_with("## ")).collect();
            assert_eq!(entries.len(), 2, "{log}");
            project.run(["validate", "--all"]).exits(0);
            orders += 1;
        }
    }
    assert!(orders >= 20);
}

/// The clone of somebody who has no change of their own. Git does not copy the settings of a
/// repository into its clones.
// contract R4
#[test]
fn a_clone_that_only_merges_gets_the_driver_by_init() {
    let project = with_spec();
    archive_on_branch(&project, "a", ("login", "", &["R4: Lock"]));
    archive_on_branch(&project, "b", ("login", "", &["R4: Unlock"]));
    let clone = project.base().join("clone");
    let root = project.root();
    assert!(git(&project, &["clone", "-q", root.to_str().unwrap(), clone.to_str().unwrap()]));
    let in_clone = |args: &[&str]| git_in(&project, &clone, args);
    let agentd =
        |args: &[&str]| project.run([&["-C", clone.to_str().unwrap()], args].concat()).exits(0);
    let merging = || {
        let checks = agentd(&["doctor", "--json"]).json()["checks"].take();
        let mut checks = checks.as_array().unwrap().iter();
        let check = checks.find(|check| check["name"] == "merging").unwrap();
        check["status"].as_str().unwrap().to_owned()
    };
    let merge = || {
        in_clone(&["switch", "-q", "-C", "main", "origin/main"])
            && in_clone(&["merge", "--no-ff", "--no-edit", "origin/a"])
            && in_clone(&["merge", "--no-edit", "origin/b"])
    };
    assert_eq!(merging(), "warning");
    assert!(!merge(), "line by line, versions and dates conflict");
    assert!(in_clone(&["merge", "--abort"]));
    agentd(&["init", "--yes", "--agents", "none"]);
    assert_eq!(merging(), "ok");
    assert!(in_clone(&["stash", "-q", "--include-untracked"]));
    assert!(merge());
    assert_eq!(requirements_in(&clone), "R1 R2 R3 R4 R5");
    agentd(&["validate", "--all"]);
}

/// Both have edited the same requirement: that is for a person, and the only thing that is.
#[test]
fn a_disagreement_is_left_to_a_person() {
    let project = with_spec();
    archive_on_branch(&project, "a", ("login", "", &["R2: Sign out = ask first"]));
    archive_on_branch(&project, "b", ("login", "", &["R2: Sign out = ask twice"]));
    project.git(&["switch", "-q", "main"]);
    assert!(git(&project, &["merge", "--no-edit", "a"]));
    assert!(!git(&project, &["merge", "--no-edit", "b"]));
    assert_eq!(project.git(&["diff", "--name-only", "--diff-filter=U"]), "agentd/specs/login.md");
    let text = project.read_root("agentd/specs/login.md");
    insta::assert_snapshot!(conflict(&text), @"
    <<<<<<< ours
    It MUST ask first within 2 s.
    =======
    It MUST ask twice within 2 s.
    >>>>>>> theirs
    ");
}

fn conflict(text: &str) -> String {
    let from = text.find("<<<<<<<").unwrap();
    let to = text.rfind(">>>>>>>").unwrap();
    text[from..to + 14].to_owned()
}

/// Files that are no specs, or not text, are merged as git does it.
#[test]
fn the_merge_driver_leaves_nothing_worse() {
    let project = TestProject::empty().programs(&["git", "sh"]);
    let dir = project.root();
    fs::create_dir_all(&dir).unwrap();
    let run = |files: [&[u8]; 3], name: &str| {
        for (file, bytes) in ["base", "ours", "theirs"].iter().zip(files) {
            fs::write(dir.join(file), bytes).unwrap();
        }
        let mut command = project.command(["merge-driver", "base", "ours", "theirs", name]);
        let code = command.current_dir(&dir).status().unwrap().code();
        (code, fs::read(Path::new(&dir).join("ours")).unwrap())
    };
    assert_eq!(run([b"a\n", b"a\n", b"b\n"], "agentd/specs/x.md"), (Some(0), b"b\n".to_vec()));
    let (code, text) = run([b"a\n", b"c\n", b"b\n"], "agentd/specs/x.md");
    assert_eq!((code, text.starts_with(b"<<<<<<< ours\n")), (Some(1), true));
    let (code, text) = run([b"\xff", b"\xff\xfe", b"\xff"], "agentd/specs/x.md");
    assert_eq!((code, &text[..]), (Some(0), &b"\xff\xfe"[..]));
    assert_eq!(run([b"a\n", b"a\n", b"b\n"], "agentd/specs/No id.md").0, Some(0));
    assert_eq!(project.run(["merge-driver"]).code, 129);
}
