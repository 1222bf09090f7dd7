//! A change on more than one machine: ends that can be asked for again, and clones that continue what
//! another one began.

use std::fs;

use serde_json::{Value, json};
use test_project::TestProject;

use super::clones::Clones;
use super::stand_in::{self, CHANGE};

const PLAN: [&str; 6] = ["--auto", "--skip-clarify", "--git", "branch", "--trust", "--json"];
const STATE: &str = "agentd/changes/add-login/STATE.yaml";

fn plan(project: &TestProject) -> Value {
    let begin = ["plan", CHANGE, "Let people sign in"];
    project.run(begin.into_iter().chain(PLAN)).exits(0).json()
}

// contract S1
#[test]
fn the_end_of_a_workflow_can_be_asked_for_again() {
    let project = stand_in::repository("[git]\ncommit = \"layer\"\n");
    plan(&project);
    project.run(["impl", CHANGE]).exits(0);
    let (calls, state) = (stand_in::calls(&project), project.read_root(STATE));
    let again = project.run(["impl", CHANGE, "--json"]).exits(0).json();
    assert_eq!(
        json!([again["action"], again["phase"], again["verdict"], again["next"]]),
        json!(["already_complete", "complete", "APPROVED", ["agentd archive add-login"]])
    );
    insta::assert_snapshot!(project.run(["impl", CHANGE]), @"
    exit 0
    ✓ add-login is complete already
    cost so far: $1.50

    Next: agentd archive add-login
    --- stderr
    ");
    assert_eq!((stand_in::calls(&project), project.read_root(STATE)), (calls, state));

    project.write_root("src/login.rs", "edited\n");
    insta::assert_snapshot!(project.run(["impl", CHANGE]), @"
    exit 1
    --- stderr
    error: `add-login` is complete, and was edited since
      cause: code: files were edited since they were reviewed; tests: files were edited since the tests ran

    hint: undo the edit
    hint: or go back to planning: agentd revise add-login
    ");
    project.git(&["checkout", "-q", "--", "src/login.rs"]);

    project.run(["archive", CHANGE]).exits(0);
    let names = project.names();
    let again = project.run(["archive", CHANGE, "--json"]).exits(0).json();
    let path = again["path"].as_str().unwrap();
    assert!(path.starts_with("agentd/archive/") && path.ends_with(CHANGE), "{path}");
    assert_eq!(
        json!([again["action"], again["phase"], again["specs"]]),
        json!(["already_archived", "archived", []])
    );
    let shown = project.run(["archive", CHANGE]).exits(0).stdout;
    assert_eq!(shown, format!("{CHANGE} is archived already in {path}\n"));
    assert_eq!(project.names(), names);
}

/// What was dropped was not merged, so it is not archived.
#[test]
fn a_dropped_change_is_not_taken_for_archived() {
    let project = stand_in::repository("");
    plan(&project);
    project.run(["drop", CHANGE, "--yes"]).exits(0);
    let error = project.run(["archive", CHANGE, "--json"]).exits(1).json();
    assert_eq!(error["error"]["kind"], "no_such_change");
}

// contract S1
#[test]
fn a_fresh_clone_continues_what_the_remote_has() {
    let clones = Clones::new("[git]\ncommit = \"step\"\n");
    plan(&clones.first);
    // F9: the branch knows where it is pushed.
    clones.first.git(&["push", "-q"]);
    let calls = stand_in::calls(&clones.first);
    clones.clone_again();
    assert_eq!(clones.git(&["branch", "--show-current"]), "main");
    let hint = clones.second(&["status", CHANGE]).exits(1);
    assert!(hint.stderr.contains("git switch agentd/add-login"), "{hint}");

    let begin = [&["plan", CHANGE, "Let people sign in"][..], &PLAN].concat();
    let planned = clones.second(&begin).exits(0);
    assert_eq!(planned.json()["action"], "already_challenged", "{planned}");
    let said = "`add-login` was begun elsewhere: continuing with `origin/agentd/add-login`";
    assert!(planned.stderr.contains(said), "{planned}");
    assert_eq!(stand_in::calls(&clones.first), calls, "nothing is paid again");
    assert_eq!(clones.git(&["branch", "--show-current"]), "agentd/add-login");

    // The code is written here, and the first clone has it after a pull.
    clones.second(&["impl", CHANGE, "--trust"]).exits(0);
    clones.git(&["push", "-q"]);
    clones.first.git(&["pull", "-q"]);
    assert!(clones.first.has_root("src/login.rs"));
    clones.first.run(["verify", CHANGE, "--accept"]);
    let again = clones.first.run(["impl", CHANGE, "--json"]).exits(0).json();
    assert_eq!(again["action"], "already_complete");
}

#[test]
fn a_change_is_continued_in_a_worktree_too_but_not_in_place() {
    let clones = Clones::new("[git]\ncommit = \"step\"\n");
    plan(&clones.first);
    clones.first.git(&["push", "-q"]);
    clones.clone_again();
    let calls = stand_in::calls(&clones.first);
    let with = |placement| {
        let place = ["plan", CHANGE, "--auto", "--trust", "--json", "--git", placement];
        clones.second(&place)
    };
    let error = &with("in-place").exits(1).json()["error"];
    assert_eq!(error["hints"], json!(["check it out: git switch agentd/add-login"]), "{error}");
    assert_eq!(clones.git(&["branch", "--list", "agentd/*"]), "");
    let planned = with("worktree").exits(0);
    assert_eq!(planned.json()["action"], "already_challenged", "{planned}");
    assert_eq!(clones.git(&["branch", "--show-current"]), "main");
    let place = clones.first.base().join("second-agentd").join(CHANGE);
    assert!(place.join("agentd/changes").join(CHANGE).join("STATE.yaml").is_file());
    // From the clone itself it is found where it is.
    let status = clones.second(&["status", CHANGE, "--json"]).exits(0).json();
    assert_eq!(status["phase"], "challenged");
    assert_eq!(stand_in::calls(&clones.first), calls);
}

/// A branch of that name which is about something else is left alone.
#[test]
fn a_remote_branch_without_the_change_is_not_taken() {
    let clones = Clones::new("");
    clones.first.git(&["push", "-q", "origin", "main:refs/heads/agentd/add-login"]);
    clones.clone_again();
    let begin = [&["plan", CHANGE, "Let people sign in"][..], &PLAN].concat();
    let planned = clones.second(&begin).exits(0);
    assert!(planned.stderr.contains("does not start from it"), "{planned}");
    assert_eq!(planned.json()["action"], "challenged");
    fs::metadata(clones.second.join("agentd/changes").join(CHANGE)).unwrap();
}

/// Nobody knows what a call has cost that died with agentd: it counts as if it had been paid (F8).
#[test]
fn a_call_that_was_killed_is_spent_until_it_is_settled() {
    let project = stand_in::repository("");
    plan(&project);
    let planned = project.run(["cost", CHANGE, "--json"]).exits(0).json();
    assert_eq!(planned["unsettled"], json!([]));
    let mut running = stand_in::begin_impl(&project);
    running.kill().unwrap();
    running.wait().unwrap();
    fs::remove_file(stand_in::hold(&project)).unwrap();
    project.run(["impl", CHANGE]).exits(0);

    let cost = project.run(["cost", CHANGE, "--json"]).exits(0).json();
    let [killed] = &cost["unsettled"].as_array().unwrap()[..] else { panic!("{cost:#}") };
    let (run, reserved) = (killed["run"].as_u64().unwrap(), killed["cost_usd"].as_f64().unwrap());
    assert_eq!(killed["step"], "implement-logic");
    assert!(reserved > 0.0, "{killed}");
    // Six calls of 0.25 came to an end: four of the plan, one for the code, one for its review.
    let total = |cost: &Value| cost["total_cost_usd"].as_f64().unwrap();
    assert!((total(&cost) - 1.5 - reserved).abs() < 1e-9, "{cost:#}");
    let shown = project.run(["cost", CHANGE]).exits(0).stdout;
    let line =
        format!("estimated ${reserved:.4} for calls that were cut short: {run} implement-logic");
    assert!(shown.contains(&line), "{shown}");

    let settle = format!("{run}=0.12");
    let cost = project.run(["cost", CHANGE, "--json", "--settle", &settle]).exits(0).json();
    assert_eq!(cost["unsettled"], json!([]));
    assert!((total(&cost) - 1.62).abs() < 1e-9, "{cost:#}");
    let journal = project.read_root("agentd/changes/add-login/journal.jsonl");
    assert!(journal.lines().any(|line| line.contains(r#""event":"settled""#)), "{journal}");
    project.run(["verify", CHANGE]).exits(0);
    let again = project.run(["cost", CHANGE, "--json", "--settle", &settle]).exits(1).json();
    assert_eq!(again["error"]["kind"], "nothing_to_settle");
    for wrong in ["3", "x=1", "3=", "3=-1", "3=NaN"] {
        project.run(["cost", CHANGE, "--settle", wrong]).exits(2);
    }
}
