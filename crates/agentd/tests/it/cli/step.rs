//! `agentd step`: one call, test run or archiving at a time, each by a process of its own.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use test_project::TestProject;

use super::stand_in::{self, CHANGE};

const WHAT: &str = "Let people sign in";
const BEGIN: [&str; 6] = ["step", CHANGE, WHAT, "--skip-clarify", "--git", "branch"];

fn step(project: &TestProject, more: &[&str]) -> Value {
    let words = BEGIN.iter().chain(more).chain(&["--json"]);
    project.run(words).exits(0).json()
}

/// All steps to the end, or to where a person has to decide.
fn steps(project: &TestProject, more: &[&str]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let before = stand_in::calls(project).len();
        let done = step(project, more);
        let calls = stand_in::calls(project).len() - before;
        let is_call = done["did"].as_str().is_some_and(|did| did != "tests" && did != "archive");
        assert_eq!(calls, usize::from(is_call), "{done:#}");
        if let Some(last) = all.last() {
            assert_eq!(last["next"]["step"], done["did"], "{last:#}\n{done:#}");
        }
        let ends = done["next"].is_null();
        all.push(done);
        assert!(all.len() < 30, "{all:#?}");
        if ends {
            return all;
        }
    }
}

fn names(steps: &[Value]) -> Vec<&str> {
    steps.iter().map(|step| step["did"].as_str().unwrap_or("-")).collect()
}

// contract S2
#[test]
fn steps_come_to_what_plan_and_impl_come_to() {
    let settings = "[git]\ncommit = \"layer\"\n";
    let (whole, single) = (stand_in::repository(settings), stand_in::repository(settings));
    whole.run(["plan", CHANGE, WHAT, "--auto", "--skip-clarify", "--git", "branch"]).exits(0);
    whole.run(["impl", CHANGE]).exits(0);
    whole.run(["archive", CHANGE]).exits(0);
    let all = steps(&single, &["--auto"]);
    assert_eq!(
        names(&all),
        [
            "proposal-gen",
            "spec-gen-auth-flow",
            "tasks-gen",
            "challenge",
            "implement-logic",
            "tests",
            "review",
            "archive",
        ]
    );
    assert_eq!(stand_in::calls(&single), stand_in::calls(&whole));
    let subjects = |project: &TestProject| project.git(&["log", "--format=%s", "main..HEAD"]);
    assert_eq!(subjects(&single), subjects(&whole));
    let documents = |project: &TestProject| -> BTreeSet<String> {
        project.names().into_iter().filter(|name| !name.starts_with(".git/")).collect()
    };
    assert_eq!(documents(&single), documents(&whole));

    let first = &all[0];
    assert_eq!(
        first["next"],
        json!({"step": "spec-gen-auth-flow", "role": "planner", "agent": "claude",
            "vendor": "Anthropic", "estimate_usd": first["next"]["estimate_usd"]})
    );
    assert!(first["next"]["estimate_usd"].as_f64().unwrap() > 0.0, "{first:#}");
    let tests = all.iter().find(|step| step["next"]["step"] == "tests").unwrap();
    assert_eq!(
        tests["next"],
        json!({"step": "tests", "role": null, "agent": null, "vendor": null, "estimate_usd": 0.0})
    );
    let last = all.last().unwrap();
    assert_eq!(
        json!([last["done"], last["waiting_for"], last["phase"]]),
        json!([true, null, "archived"])
    );
    // The same command again, as an engine that was killed would give it.
    let calls = stand_in::calls(&single);
    let again = step(&single, &["--auto"]);
    assert_eq!(json!([again["did"], again["done"]]), json!([null, true]));
    assert_eq!(stand_in::calls(&single), calls);
}

/// A step that a person has to decide about does nothing, and holds nothing.
// contract S2
#[test]
fn a_decision_is_waited_for() {
    let project = stand_in::repository("");
    stand_in::verdicts(&project, "NEEDS_REVISION", "NEEDS_FIX");
    let all = steps(&project, &[]);
    assert_eq!(names(&all), ["proposal-gen", "spec-gen-auth-flow", "tasks-gen", "challenge"]);
    let calls = stand_in::calls(&project);
    let waits = step(&project, &[]);
    assert_eq!(
        json!([waits["did"], waits["next"], waits["waiting_for"], waits["why"], waits["done"]]),
        json!([null, null, "decision", "its plan needs revision", false])
    );
    assert_eq!(stand_in::calls(&project), calls);
    insta::assert_snapshot!(project.run(["step", CHANGE]), @"
    exit 0
    add-login waits for a decision: its plan needs revision
    --- stderr
    ");

    project.run(["decide", CHANGE, "fix"]).exits(0);
    assert_eq!(step(&project, &["--next"])["next"]["step"], "reproposal");
    assert_eq!(stand_in::calls(&project), calls, "--next only looks");
    stand_in::verdicts(&project, "APPROVED", "NEEDS_FIX");
    let all = steps(&project, &["--until", "plan"]);
    assert_eq!(names(&all), ["reproposal", "challenge"]);
    assert_eq!(all[1]["done"], true);

    // Two rounds of fixes, then a person.
    let all = steps(&project, &[]);
    let fixes = ["implement-logic", "tests", "review", "fix", "tests", "review", "fix", "tests"];
    assert_eq!(names(&all)[..8], fixes);
    let last = all.last().unwrap();
    assert_eq!(last["why"], "the code still needs fixing after 2 rounds");
    assert_eq!(step(&project, &[])["did"], Value::Null);
}

/// What is limited is limited over all processes, until somebody wants it tried again.
#[test]
fn limits_hold_over_single_steps() {
    let project = stand_in::repository("");
    // The implementer never ticks its task.
    stand_in::answers(&project, "implement-logic", &[]);
    let all = steps_until_error(&project);
    assert_eq!(&all[4..], ["implement-logic", "implement-logic"]);
    let calls = stand_in::calls(&project).len();
    let waits = step(&project, &["--auto"]);
    assert_eq!(waits["why"], "tasks of the logic layer are not done");
    assert_eq!(stand_in::calls(&project).len(), calls);
    // Tried again, it is asked twice more.
    stand_in::verdicts(&project, "APPROVED", "APPROVED");
    assert_eq!(step(&project, &["--auto", "--again"])["did"], "implement-logic");
    let all = steps(&project, &["--auto"]);
    assert_eq!(names(&all), ["tests", "review", "archive"]);
}

/// The steps up to one that fails.
fn steps_until_error(project: &TestProject) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let run = project.run(BEGIN.iter().chain(&["--auto", "--json"]));
        let calls = stand_in::calls(project);
        if run.code != 0 {
            assert_eq!(run.json()["error"]["kind"], "tasks_left", "{run}");
            all.push(calls.last().unwrap().clone());
            return all;
        }
        all.push(run.json()["did"].as_str().unwrap().to_owned());
        assert!(all.len() < 30);
    }
}

/// The repair of documents that break rules is limited, too.
#[test]
fn repairs_are_limited_over_single_steps() {
    let project = stand_in::repository("");
    for _ in 0..3 {
        step(&project, &["--auto"]);
    }
    let tasks = "agentd/changes/add-login/tasks.md";
    let broken = project.read_root(tasks).replace("auth-flow:R1", "auth-flow:R9");
    fs::write(project.root().join(tasks), broken).unwrap();
    assert_eq!(step(&project, &["--next"])["why"], "its documents break rules");
    let all = steps(&project, &["--auto"]);
    assert_eq!(names(&all), ["format-fix", "format-fix"]);
    assert_eq!(all[1]["why"], "its documents break rules");
    assert_eq!(step(&project, &["--auto"])["did"], Value::Null);
}

#[test]
fn conflicting_specs_wait_for_a_person() {
    let project = stand_in::repository("");
    let spec = |text: &str| {
        format!(
            "---\nid: auth-flow\ntype: spec\ntitle: Login\nversion: 1\n---\n\n# Specification: Login\n\n\
             ## Overview\n\nLogin.\n\n## Requirements\n\n### R1: Answer\n\n**Priority**: high\n\n\
             The server MUST answer {text}.\n\n## Acceptance Criteria\n\n### Scenario: Good\n\n\
             - **WHEN** asked\n- **THEN** it answers\n"
        )
    };
    project.write_root("agentd/specs/auth-flow.md", spec("at once"));
    project.commit("A spec");
    let all = steps(&project, &["--auto", "--until", "impl"]);
    assert_eq!(all.last().unwrap()["done"], true);
    // Somebody else has edited the same requirement meanwhile.
    project.write_root("agentd/specs/auth-flow.md", spec("within 9 s"));
    let waits = step(&project, &["--auto"]);
    assert_eq!(waits["waiting_for"], "decision", "{waits:#}");
    assert!(project.has_root("agentd/changes/add-login/STATE.yaml"));
}
