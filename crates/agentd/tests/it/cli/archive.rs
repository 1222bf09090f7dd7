//! `archive`, `unarchive`, `overlap` and `trace`.

use std::fs;

use agentd_core::hash::Digest;
use agentd_engine::store::UserDirs;
use serde_json::json;

use test_project::TestProject;

const MAIN: &str = include_str!("../../../../../testing/project/fixtures/auth-flow.md");

/// What a state tells of an approval.
const APPROVED: &str = "code_review:\n  verdict: APPROVED\n  iteration: 1\n  reviewer: codex\n  at: 2026-11-04T12:00:00Z\n  run: 1";

/// A change that is complete and edits R1 of a main spec; its base is that main spec.
fn project() -> TestProject {
    let own = MAIN.replace("within 200 ms", "within 100 ms");
    TestProject::new()
        .root_file("agentd/specs/auth-flow.md", MAIN)
        .change("add-oauth")
        .edit("STATE.yaml", "phase: proposed", &format!("phase: complete\n{APPROVED}"))
        .file("runs/0001-review.jsonl", "")
        .file("base/auth-flow.md", MAIN)
        .file("specs/auth-flow.md", own)
}

/// The main spec was edited since the change began.
fn contradicted() -> TestProject {
    project().root_file("agentd/specs/auth-flow.md", MAIN.replace("within 200 ms", "within 300 ms"))
}

/// Everything but the locks.
fn files(project: &TestProject) -> Vec<(String, Vec<u8>)> {
    let names = project.names().into_iter().filter(|name| !name.contains(".locks"));
    names
        .map(|name| {
            let bytes = fs::read(project.root().join(&name)).unwrap_or_default();
            (name, bytes)
        })
        .collect()
}

#[test]
fn archiving_says_where_it_went_and_ends_with_the_totals() {
    let project = project();
    let run = project.run(["archive"]).exits(0);
    let date = &run.stdout.split("agentd/archive/").nth(1).unwrap()[..10];
    let expected = format!(
        "add-oauth is archived in agentd/archive/{date}-add-oauth\n  auth-flow  ~R1\n+0 ~1 -0 →0 in 1 spec\n"
    );
    assert_eq!(run.stdout, expected);
    assert_eq!(run.stderr, "To undo this: agentd unarchive add-oauth\n");
    assert!(project.read_root("agentd/specs/auth-flow.md").contains("within 100 ms"));
    project.run(["list", "--archived"]).fine().stdout_has("add-oauth");
    project.run(["archive", "add-oauth"]).exits(1).stderr_has("it is archived");
}

/// contract, section 4: `--json` of archive
#[test]
fn archiving_as_json_has_the_fields_of_every_workflow() {
    let document = project().run(["archive", "add-oauth", "--json"]).fine().json();
    let keys: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    let common = [
        "version",
        "action",
        "change_id",
        "phase",
        "verdict",
        "iteration",
        "issues",
        "cost_usd",
        "next",
    ];
    assert_eq!(keys[..common.len()], common);
    assert_eq!(document["action"], "archived");
    assert_eq!(
        (&document["change_id"], &document["phase"]),
        (&json!("add-oauth"), &json!("archived"))
    );
    assert_eq!(
        document["totals"],
        json!({"specs": 1, "added": 0, "edited": 1, "removed": 0, "renamed": 0})
    );
    assert_eq!(document["specs"][0]["edited"], json!(["R1"]));
}

#[test]
fn a_dry_run_prints_a_diff_and_changes_nothing() {
    let project = project();
    let before = files(&project);
    let run = project.run(["archive", "--dry-run"]).exits(0).stderr_has("+0 ~1 -0 →0 in 1 spec");
    let run =
        run.stdout_has("--- a/agentd/specs/auth-flow.md\n+++ b/agentd/specs/auth-flow.md\n@@ ");
    let run = run.stdout_has("\n-The server MUST answer a sign-in within 200 ms.\n");
    run.stdout_has("\n+The server MUST answer a sign-in within 100 ms.\n");
    assert_eq!(files(&project), before);
    let project = project.edit("STATE.yaml", "phase: complete", "phase: proposed");
    project.run(["archive", "--dry-run"]).exits(0).stderr_has("it would not be archived now");
}

#[test]
fn a_contradiction_shows_all_texts_changes_nothing_and_says_how_to_go_on() {
    let project = contradicted();
    let before = files(&project);
    let run = project.run(["archive"]).exits(1);
    let run = run
        .stdout_has("conflict: auth-flow: R1 was edited in the main spec too, and differently\n");
    let run = run.stdout_has("<<<<<<< agentd/specs/auth-flow.md\n### R1: Sign in\n");
    let run = run.stdout_has("within 300 ms.\n||||||| when the change began\n");
    let run = run.stdout_has("within 200 ms.\n=======\n");
    let run =
        run.stdout_has("within 100 ms.\n>>>>>>> agentd/changes/add-oauth/specs/auth-flow.md\n");
    run.stderr_has("error: 1 edit of the change").stderr_has("agentd archive add-oauth --continue");
    let error = project.run(["archive", "--json"]).exits(1).json_error();
    assert_eq!(error["kind"], "conflict");
    assert_eq!(error["conflicts"][0]["what"], "R1");
    assert_eq!(error["conflicts"][0]["kind"], "both_edited");
    assert_eq!(files(&project), before);
    project.run(["archive", "--dry-run"]).exits(1).stdout_has("<<<<<<<");
    project.run(["archive", "--continue"]).exits(0).stdout_has("~R1");
    assert!(project.read_root("agentd/specs/auth-flow.md").contains("within 100 ms"));
}

#[test]
fn a_change_that_is_not_complete_needs_a_reason() {
    let project = project().edit("STATE.yaml", "phase: complete", "phase: implementing");
    project.run(["archive"]).exits(1).stderr_has("its implementation is not approved");
    project.run(["archive", "--force"]).exits(2);
    project.run(["archive", "--force", " "]).exits(2).stderr_has("say why");
    project.run(["archive", "--force", "done by hand"]).exits(0);
    project.run(["unarchive", "add-oauth"]).fine().stdout_has("add-oauth is open again");
    project.run(["status"]).fine().stdout_has("implementing");
}

#[test]
fn unarchive_takes_it_back_and_refuses_where_that_would_lose_something() {
    let project = project();
    let before = files(&project);
    project.run(["archive"]).exits(0);
    let document = project.run(["unarchive", "add-oauth", "--json"]).fine().json();
    assert_eq!(
        (&document["action"], &document["phase"]),
        (&json!("unarchived"), &json!("complete"))
    );
    assert_eq!(files(&project), before);
    project.run(["archive"]).exits(0);
    let project = project.root_file("agentd/specs/auth-flow.md", "Mine.\n");
    let error = project.run(["unarchive", "add-oauth", "--json"]).exits(1).json_error();
    assert_eq!(
        (&error["kind"], &error["cause"]),
        (&json!("changed_since"), &json!("agentd/specs/auth-flow.md"))
    );
    let error = project.run(["unarchive", "none", "--json"]).exits(1).json_error();
    assert_eq!(error["kind"], "not_archived");
}

#[test]
fn overlaps_are_listed_with_what_each_change_does() {
    let project = TestProject::new().change("add-oauth");
    project.run(["overlap"]).exits(0).stderr_has("No two open changes");
    let project = project.change("add-login");
    let run = project.run(["overlap"]).fine();
    let expected = "requirement  auth-flow:R1\n             add-login adds it\n             add-oauth adds it\n";
    assert!(run.stdout.starts_with(expected), "{}", run.stdout);
    let document = project.run(["overlap", "add-login", "--json"]).fine().json();
    assert_eq!(document["overlaps"][0]["what"], "auth-flow:R1");
    assert_eq!(
        document["overlaps"][0]["changes"][0],
        json!({"change_id": "add-login", "how": "adds"})
    );
    project.run(["overlap", "none"]).exits(1);
}

#[test]
fn a_trace_leads_from_the_requirement_to_the_review() {
    let project = project();
    let run = project.run(["trace", "auth-flow:R1"]).fine();
    assert!(
        run.stdout
            .starts_with("auth-flow:R1  Sign in\n  change    add-oauth edits it (complete)\n"),
        "{}",
        run.stdout
    );
    let run = run.stdout_has("  task      1.1").stdout_has("  scenario  Signing in\n");
    run.stdout_has("  review    APPROVED");
    let document = project.run(["trace", "add-oauth", "--json"]).fine().json();
    assert_eq!(document["traces"][0]["requirement"], "auth-flow:R1");
    project.run(["trace", "auth-flow:R99"]).exits(1).stderr_has("no change touches");
    project.run(["trace", "R1:x"]).exits(2);
}

#[test]
fn what_a_kill_has_left_is_told_once() {
    let project = project();
    project.run(["archive"]).exits(0);
    let name = project.run(["list", "--archived"]).fine().stdout.trim().to_owned();
    let digest = Digest::of("");
    let journal = json!({
        "action": "archive", "change_id": "add-oauth", "name": name, "record": digest,
    });
    let root = project.root().canonicalize().unwrap();
    let state = UserDirs::below(&project.home()).state_path(&root).unwrap();
    fs::write(state.join("archive.json"), journal.to_string()).unwrap();
    project
        .run(["list"])
        .exits(0)
        .stderr_has("archiving `add-oauth` was interrupted; it is finished");
    project.run(["list"]).exits(0).stderr_lacks("interrupted");
}

/// A phase is a word that anybody who can write to the file can write.
#[test]
fn complete_without_a_run_that_approved_it_is_not_archived() {
    for (from, to) in [
        (APPROVED, "complexity: low"),
        ("verdict: APPROVED", "verdict: NEEDS_FIX"),
        ("run: 1", "run: 2"),
    ] {
        let project = project().edit("STATE.yaml", from, to);
        let before = files(&project);
        let run = project.run(["archive"]).exits(1);
        run.stderr_has("no run of a reviewer is known that has approved its code")
            .stderr_has("--force");
        assert_eq!(files(&project), before, "{to}");
        project.run(["archive", "--force", "looked at it"]).exits(0);
    }
}
