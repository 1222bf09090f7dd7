//! A small project with tests, an approved plan for it, and what the models do about it.

use std::fs;

use agentd_core::document::review_block::PlanVerdict;
use agentd_core::phase::Phase;
use agentd_engine::change::documents;
use agentd_engine::tools::{self, input};
use agentd_engine::workflow::clarify;
use real_agents::models::{calls, proposal};
pub(crate) use real_agents::models::{look, write};
use real_agents::{CHANGE, Sandbox};
use scripted_models::{Reply, Rule};
use serde_json::{Value, json};
use test_project::now;

/// Tests that fail until greet.sh greets by name.
const TESTS: &str = "set -e\nfor test in tests/*.sh; do sh \"$test\"; done\n";
const BY_NAME: &str =
    "test \"$(sh greet.sh Ada)\" = 'Hello, Ada!' || { echo 'no greeting'; exit 1; }\n";

/// The greeting as it has to be, and one that is wrong.
pub(crate) const RIGHT: &str = "#!/bin/sh\necho \"Hello, $1!\"\n";
pub(crate) const WRONG: &str = "#!/bin/sh\necho \"Hello $1\"\n";

pub(crate) const TESTED: &str = "[implementation]\ntest_command = \"sh test.sh\"\n";

/// A task: layer, file, what happens to it.
pub(crate) type TaskOf<'t> = (&'t str, &'t str, &'t str);

/// The one task that most tests need.
pub(crate) const GREET: TaskOf<'static> = ("logic", "greet.sh", "MODIFY");

/// A project with a commit and an approved plan of these tasks.
pub(crate) fn approved<'s>(
    sandbox: &'s Sandbox,
    config: &str,
    tasks: &[TaskOf<'_>],
) -> &'s Sandbox {
    begun(sandbox, config);
    let (project, holder) = (sandbox.store(), sandbox.holder());
    let what = Some("Greet people by name");
    clarify::begin(&project, &sandbox.id(), what, None, &holder, now()).unwrap();
    sandbox.as_agent("planner", now(), |session| {
        let proposal = object(&proposal(&json!(["greeting"])));
        tools::create_proposal(session, input::read(proposal).unwrap()).unwrap();
        tools::create_spec(session, input::read(object(&spec())).unwrap()).unwrap();
        tools::create_tasks(session, input::read(object(&plan(tasks))).unwrap()).unwrap();
    });
    approve(sandbox);
    sandbox
}

/// The same project without a plan.
pub(crate) fn begun(sandbox: &Sandbox, config: &str) {
    sandbox.set_up(config);
    let root = sandbox.root();
    fs::create_dir_all(root.join("tests")).unwrap();
    fs::write(root.join("test.sh"), TESTS).unwrap();
    fs::write(root.join("tests/by_name.sh"), BY_NAME).unwrap();
    fs::write(root.join("greet.sh"), "#!/bin/sh\necho hi\n").unwrap();
    sandbox.git(&["config", "user.name", "Tester"]);
    sandbox.git(&["config", "user.email", "tester@example.org"]);
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-q", "-m", "Start"]);
}

/// Marks the plan as approved, as it is.
pub(crate) fn approve(sandbox: &Sandbox) {
    let (project, holder) = (sandbox.store(), sandbox.holder());
    documents::update_state(&project, &sandbox.id(), &holder, now(), |state| {
        state.phase = Phase::Proposed;
        Ok(())
    })
    .unwrap();
    sandbox.plan_reviewed(PlanVerdict::Approved, now());
}

/// The arguments of a tool that is called here and not by a model, which would fill in the
/// change that its prompt names.
fn object(value: &Value) -> serde_json::Map<String, Value> {
    let mut arguments = value.as_object().unwrap().clone();
    arguments.insert("change_id".to_owned(), json!(CHANGE));
    arguments
}

/// The spec of the plan.
pub(crate) fn spec() -> Value {
    json!({
        "change_id": CHANGE,
        "spec_id": "greeting",
        "title": "Greeting",
        "overview": "How people are greeted.",
        "requirements": [
            {"id": "R1", "title": "By name", "description": "greet.sh MUST print `Hello, <name>!` within 1 s.", "priority": "high"},
        ],
        "scenarios": [
            {"name": "A name", "when": "greet.sh is run with Ada", "then": "`Hello, Ada!` is printed"},
            {"name": "No name", "when": "greet.sh is run without a name", "then": "it fails with an error"},
        ],
    })
}

/// The tasks of the plan.
pub(crate) fn plan(tasks: &[TaskOf<'_>]) -> Value {
    let mut seen: Vec<&str> = Vec::new();
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|(layer, file, action)| {
            seen.push(layer);
            let number = seen.iter().filter(|other| *other == layer).count();
            json!({"layer": layer, "number": number, "title": format!("{action} {file}"),
                "file": {"path": file, "action": action}, "spec_ref": "greeting:R1",
                "description": "As the spec says.", "depends": []})
        })
        .collect();
    json!({ "change_id": CHANGE, "tasks": tasks })
}

pub(crate) fn edit(file: &str, old: &str, new: &str) -> Reply {
    let path = format!("${{cwd}}/{file}");
    Reply::call("Edit", json!({"file_path": path, "old_string": old, "new_string": new}))
}

pub(crate) fn bash(command: &str) -> Reply {
    Reply::call("Bash", json!({"command": command}))
}

pub(crate) fn tick(task: &str) -> Reply {
    let note = "sh test.sh";
    Reply::call("complete_task", json!({"change_id": CHANGE, "task_id": task, "note": note}))
}

/// A step that is answered so, and then by a closing word.
pub(crate) fn does(step: &str, replies: impl IntoIterator<Item = Reply>) -> Rule {
    let rule = Rule::new().step(step);
    replies.into_iter().fold(rule, Rule::reply).reply(Reply::text("Done."))
}

/// The implementer writes greet.sh and ticks its task.
pub(crate) fn greets(text: &str) -> Rule {
    does("implement-logic", [look("greet.sh"), write("greet.sh", text), tick("2.1")])
}

/// The reviewer's verdict.
pub(crate) fn says(verdict: &str, issues: &[(&str, &str)]) -> Rule {
    calls("review", "create_review", verdict_of(verdict, issues))
}

pub(crate) fn verdict_of(verdict: &str, issues: &[(&str, &str)]) -> Value {
    let issues: Vec<Value> = issues
        .iter()
        .map(|(severity, title)| {
            json!({"severity": severity, "title": title, "description": format!("{title} goes wrong."),
                "file": "greet.sh", "line": 2, "recommendation": "Fix it."})
        })
        .collect();
    json!({ "change_id": CHANGE, "verdict": verdict, "summary": "Read all of it.", "issues": issues })
}

/// The texts of the events of one kind in `agentd log`.
pub(crate) fn logged(sandbox: &Sandbox, kind: &str) -> Vec<String> {
    let log = sandbox.run(["log", "--json"]).exits(0).json();
    let events = log["events"].as_array().unwrap().iter().filter(|event| event["kind"] == kind);
    events.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

/// The subjects of the commits in `agentd log`.
pub(crate) fn commits_logged(sandbox: &Sandbox) -> Vec<String> {
    let commits = logged(sandbox, "commit").into_iter();
    commits.map(|text| text.split_once(' ').unwrap().1.to_owned()).collect()
}
