//! Small changes and bugs, which take a shorter way (W7).

use std::fs;

use agentd_core::phase::Phase;
use real_agents::models::{approved, challenges, proposal};
use real_agents::{CHANGE, Sandbox};
use scripted_models::{Reply, Rule, Script};
use serde_json::{Value, json};

use super::project::{RIGHT, TESTED, does, look, says, tick, write};

/// A plan without specs, in one session.
fn plans(tasks: &[(&str, &str, &str)]) -> Rule {
    let task = |(layer, file, action): &(&str, &str, &str)| {
        json!({"layer": layer, "number": 1, "title": format!("{action} {file}"),
            "file": {"path": file, "action": action}, "description": "As it should be.",
            "depends": []})
    };
    let tasks: Vec<Value> = tasks.iter().map(task).collect();
    Rule::new()
        .step("plan-gen")
        .reply(Reply::call("create_proposal", proposal(&json!([]))))
        .reply(Reply::call("create_tasks", json!({"change_id": CHANGE, "tasks": tasks})))
        .reply(Reply::text("Planned."))
}

/// The commit that a change begins with.
fn commit(sandbox: &Sandbox, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = sandbox.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-q", "-m", "Start"]);
}

/// The bar of issue 16: a typo takes two calls before its code, and one review after it. The
/// description would leave questions open otherwise.
#[test]
fn typo_takes_two_calls_before_its_code() {
    let script = Script::new()
        .rule(plans(&[("logic", "README.md", "MODIFY")]))
        .rule(does(
            "implement-logic",
            [look("README.md"), write("README.md", "You receive it.\n"), tick("2.1")],
        ))
        .rule(says("APPROVED", &[]));
    Sandbox::enter(challenges(script, &[approved()]), |sandbox| {
        sandbox.set_up("");
        commit(sandbox, &[("README.md", "You recieve it.\n")]);
        let plan = ["plan", CHANGE, "Fix the typo", "--quick", "--git", "in-place"];
        insta::assert_snapshot!(sandbox.run(plan).without_usage(), @"
        exit 0
        ✓ APPROVED - Ready for implementation!
        cost so far: $[COST]

        Next: agentd impl add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: low (a small matter (`typo`))
        Plan: started (gemini)
        Plan: done, [DURATION], [USAGE], proposal.md is written
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        Challenge: started (codex)
        Challenge: done, [DURATION], [USAGE], APPROVED - Ready for implementation!
        ");
        assert_eq!(sandbox.steps(), ["plan-gen", "challenge"]);
        insta::assert_snapshot!(sandbox.run(["impl"]).without_usage(), @r#"
        exit 0
        ✓ APPROVED - add-login is complete
        cost so far: $[COST]

        Next: agentd archive add-login
        --- stderr
        Layer 1/1: logic: started (claude)
        Layer 1/1: logic: done, [DURATION], [USAGE], 1 of 1 tasks ticked
        warning: no tests were run: set implementation.test_command in agentd/config.toml, such as "cargo test"
        Review: started (codex)
        Review: done, [DURATION], [USAGE], APPROVED - Ready for the archive!
        "#);
        assert_eq!(sandbox.steps(), ["plan-gen", "challenge", "implement-logic", "review"]);
        assert_eq!(sandbox.state().phase, Phase::Complete);
    });
}

/// What is simple is planned in one call where the project says so, and what is not is not.
#[test]
fn ceremony_follows_complexity() {
    let script = real_agents::models::plan(Script::new().rule(plans(&[])), &[]);
    Sandbox::enter(challenges(script, &[approved()]), |sandbox| {
        sandbox.set_up("[workflow]\nceremony = \"auto\"\n");
        let begin = |id: &str, text: &str| {
            sandbox.run(["plan", id, text, "--auto", "--skip-clarify", "--git", "in-place"]);
            let state = sandbox.root().join(format!("agentd/changes/{id}/STATE.yaml"));
            fs::read_to_string(state).unwrap()
        };
        let typo = begin("fix-typo", "Fix the typo in README.md");
        assert!(typo.contains("complexity: low") && typo.contains("step: plan-gen"), "{typo}");
        let login = begin("add-login", "Add a login with passwords and tokens");
        assert!(login.contains("complexity: high"), "{login}");
        assert!(login.contains("step: proposal-gen") && !login.contains("plan-gen"), "{login}");
    });
}

const GREETS: &str = "test \"$(sh greet.sh Ada)\" = 'Hello, Ada!'\n";

fn bug(sandbox: &Sandbox) {
    sandbox.set_up(TESTED);
    let test = "set -e\nfor test in tests/*.sh; do sh \"$test\"; done\n";
    let greets = "#!/bin/sh\necho \"Hello $1!\"\n";
    commit(sandbox, &[("test.sh", test), ("tests/runs.sh", "sh greet.sh\n"), ("greet.sh", greets)]);
    let said = "greet.sh prints no comma";
    let ran = sandbox.run(["bug", CHANGE, said, "--git", "in-place"]).exits(0);
    assert_eq!(ran.stdout.lines().last(), Some("Next: agentd impl add-login"), "{ran}");
    assert_eq!(sandbox.steps(), ["plan-gen", "challenge"]);
}

fn bug_plan() -> Rule {
    plans(&[("testing", "tests/comma.sh", "CREATE"), ("logic", "greet.sh", "MODIFY")])
}

/// A test first, which agentd has seen fail, then the fix, which it has seen pass.
#[test]
fn bug_is_fixed_after_its_test_has_failed() {
    let script = Script::new()
        .rule(bug_plan())
        // The first one passes, and so shows nothing.
        .rule(does("reproduce", [write("tests/comma.sh", "true\n")]).prompts(1))
        .rule(does(
            "reproduce",
            [look("tests/comma.sh"), write("tests/comma.sh", GREETS), tick("4.1")],
        ))
        .rule(does("implement-logic", [look("greet.sh"), write("greet.sh", RIGHT), tick("2.1")]))
        .rule(says("APPROVED", &[]));
    Sandbox::enter(challenges(script, &[approved()]), |sandbox| {
        bug(sandbox);
        insta::assert_snapshot!(sandbox.run(["impl"]).without_usage(), @"
        exit 0
        ✓ APPROVED - add-login is complete
        cost so far: $[COST]

        Next: agentd archive add-login
        --- stderr
        running the tests: sh test.sh
        the tests passed after [DURATION]
        Test for the bug: started (claude)
        Test for the bug: done, [DURATION], [USAGE], 0 of 1 tasks ticked
        running the tests: sh test.sh
        the tests passed after [DURATION]
        warning: the tests passed, so they do not show the bug; asking once more
        Test for the bug, once more: started (claude, resumed)
        Test for the bug, once more: done, [DURATION], [USAGE], 1 of 1 tasks ticked
        running the tests: sh test.sh
        the tests failed with exit code 1 after [DURATION]
        the tests fail, as they should before the fix
        Layer 1/2: logic: started (claude)
        Layer 1/2: logic: done, [DURATION], [USAGE], 1 of 1 tasks ticked
        running the tests: sh test.sh
        the tests passed after [DURATION]
        Review: started (codex)
        Review: done, [DURATION], [USAGE], APPROVED - Ready for the archive!
        ");
        let state = sandbox.state();
        assert_eq!(state.phase, Phase::Complete);
        let seen = state.reproduction.unwrap();
        assert_eq!(seen.run.exit_code, Some(1));
        assert_eq!(seen.files.len(), 1, "{seen:?}");
        assert_eq!(seen.files[0].path, "tests/comma.sh");
        assert_eq!(state.test_run.unwrap().exit_code, Some(0));
        let prompt = sandbox.prompt("review");
        assert!(prompt.contains("output of the tests before the fix"), "{prompt}");

        // A test that is another one now was not seen to fail.
        fs::write(sandbox.root().join("tests/comma.sh"), "true\n").unwrap();
        let status = sandbox.run(["status", "--json"]).json();
        let stale: Vec<&Value> = status["stale"].as_array().unwrap().iter().collect();
        assert!(stale.iter().any(|it| it["what"] == "tests/comma.sh"), "{status:#}");
        let error = sandbox.run(["archive", "--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "review_stale", "{error:#}");
    });
}

/// Nobody gets to the fix without a test that fails.
#[test]
fn bug_without_a_failing_test_is_not_fixed() {
    let script = Script::new()
        .rule(bug_plan())
        .rule(does("reproduce", [look("test.sh"), write("tests/comma.sh", "true\n")]))
        .rule(says("APPROVED", &[]));
    Sandbox::enter(challenges(script, &[approved()]), |sandbox| {
        bug(sandbox);
        let error = sandbox.run(["impl", "--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "not_reproduced", "{error:#}");
        assert_eq!(sandbox.steps(), ["plan-gen", "challenge", "reproduce", "reproduce"]);
        // Nor if somebody says that there was one.
        let state = sandbox.read("STATE.yaml");
        fs::write(sandbox.path("STATE.yaml"), state.replace("track: bug\n", "")).unwrap();
        let error = sandbox.run(["impl", "--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "state_edited", "{error:#}");
    });
}

/// Tests that fail anyway prove nothing, and without tests nothing can be proven.
#[test]
fn bug_needs_tests_that_pass() {
    Sandbox::enter(challenges(Script::new().rule(bug_plan()), &[approved()]), |sandbox| {
        sandbox.set_up("");
        let error = sandbox.run(["bug", CHANGE, "It is wrong", "--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "no_tests", "{error:#}");
        assert!(!sandbox.path("STATE.yaml").exists());
        bug(sandbox);
        fs::write(sandbox.root().join("tests/other.sh"), "exit 1\n").unwrap();
        let error = sandbox.run(["impl", "--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "tests_failing", "{error:#}");
        assert_eq!(sandbox.steps(), ["plan-gen", "challenge"]);
    });
}
