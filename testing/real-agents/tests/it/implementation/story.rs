//! The whole of it, once: from an approved plan to living specs.

use std::fs;

use real_agents::Sandbox;
use scripted_models::{Reply, Rule, Script};

use super::project::{
    RIGHT, TESTED, WRONG, approved, bash, does, edit, greets, look, says, tick, verdict_of, write,
};

/// WF4, C30, lesson 2. Code is written by claude's own tools, the tests are red and then
/// green, a verdict that forgets that is refused, findings keep their ids over the rounds,
/// fixes resume the implementer, and the specs are merged at the end.
#[test]
fn from_an_approved_plan_to_living_specs() {
    let hasty = Rule::new()
        .step("review")
        .prompts(1)
        .reply(Reply::call("create_review", verdict_of("APPROVED", &[])))
        .reply(Reply::call(
            "create_review",
            verdict_of("NEEDS_FIX", &[("high", "Wrong greeting"), ("medium", "No error test")]),
        ))
        .reply(Reply::text("Done."));
    let again = [("medium", "I2: No test of an error"), ("low", "No comment")];
    let script = Script::new()
        .rule(greets(WRONG))
        .rule(does("implement-testing", [write("tests/no_name.sh", "exit 0\n"), tick("4.1")]))
        .rule(hasty)
        .rule(says("NEEDS_FIX", &again).prompts(1))
        .rule(says("APPROVED", &[]))
        .rule(does("fix", [look("greet.sh"), write("greet.sh", RIGHT)]).prompts(1))
        .rule(does(
            "fix",
            [
                look("tests/no_name.sh"),
                edit("tests/no_name.sh", "exit 0", "sh greet.sh Bob | grep -q Bob"),
                bash("sh test.sh"),
            ],
        ));
    Sandbox::enter(script, |sandbox| {
        let config = format!("{TESTED}[git]\ncommit = \"layer\"\n");
        let tasks = [("logic", "greet.sh", "MODIFY"), ("testing", "tests/no_name.sh", "CREATE")];
        approved(sandbox, &config, &tasks);
        let ran = sandbox.run(["impl"]).exits(0);
        for text in [
            "the tests failed with exit code 1",
            "the tests passed",
            "2 findings",
            "APPROVED - add-login is complete",
            "agentd archive add-login",
        ] {
            ran.says(text);
        }
        let steps =
            ["implement-logic", "implement-testing", "review", "fix", "review", "fix", "review"];
        assert_eq!(sandbox.steps(), steps);

        // The code is there, and its tests are green.
        assert_eq!(fs::read_to_string(sandbox.root().join("greet.sh")).unwrap(), RIGHT);
        let state = sandbox.state();
        let run = state.test_run.unwrap();
        assert_eq!((run.command.as_str(), run.exit_code), ("sh test.sh", Some(0)));

        // The first verdict was refused, because the tests were red.
        let requests = sandbox.models().requests();
        let refused =
            |text: &String| text.contains("The tests failed") && text.contains("no greeting");
        assert!(requests.iter().any(|request| request.tool_results.iter().any(refused)));
        // The prompt lists what was found before, by its ID, which stays the same.
        let asked: Vec<&str> = requests
            .iter()
            .filter(|request| request.round == 0 && request.prompt.starts_with("agentd review"))
            .map(|request| &*request.prompt)
            .collect();
        assert_eq!(asked.len(), 3);
        assert!(asked[0].contains("+echo \"Hello $1\"") && asked[0].contains("no greeting"));
        assert!(asked[1].contains("I1") && asked[1].contains("I2"));
        assert!(asked[2].contains("I2") && asked[2].contains("I3"), "{}", asked[2]);

        // Fresh sessions for the layers; the fixes go on in the last of them.
        let claude: Vec<_> =
            sandbox.calls().into_iter().filter(|call| call.program == "claude").collect();
        assert_eq!(claude.len(), 4);
        assert!(claude[..2].iter().all(|call| call.after("--resume").is_none()));
        let session = state.llm_calls[1].session_id.as_deref();
        assert!(claude[2..].iter().all(|call| call.after("--resume") == session), "{claude:#?}");
        assert_ne!(state.llm_calls[0].session_id, state.llm_calls[1].session_id);

        // The commits say which tasks and findings they are about.
        let log = sandbox.git(&["log", "--reverse", "--format=%s%n%b", "HEAD~4..HEAD"]);
        for text in [
            "add-login: logic layer\nTasks: 2.1\n",
            "add-login: testing layer\nTasks: 4.1\n",
            "add-login: fix the findings of review 1\n- I1 Wrong greeting",
            "add-login: fix the findings of review 2\n- I2 No test of an error",
        ] {
            assert!(log.contains(text), "{text:?} is not in\n{log}");
        }
        let log = sandbox.run(["log"]).exits(0);
        log.says("fix the findings of review 1");
        log.says("fix 2 by claude");
        assert_all_rounds_are_told(sandbox);

        // Nothing is paid twice; then it becomes part of the specs.
        let calls = sandbox.calls().len();
        sandbox.run(["impl", "--json"]).exits(1).says("change_not_ready");
        assert_eq!(sandbox.calls().len(), calls);
        let archived = sandbox.run(["archive", "--json"]).exits(0).json();
        for key in ["action", "phase"] {
            assert_eq!(archived[key], "archived", "{archived:#}");
        }
        let spec = fs::read_to_string(sandbox.root().join("agentd/specs/greeting.md")).unwrap();
        assert!(spec.contains("### R1: By name"), "{spec}");
        assert!(!sandbox.path("STATE.yaml").exists());
        let archive = fs::read_dir(sandbox.root().join("agentd/archive")).unwrap();
        let names = archive.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(names.into_iter().any(|name| name.ends_with("-add-login")));
    });
}

/// With what came of the tests before each.
#[track_caller]
fn assert_all_rounds_are_told(sandbox: &Sandbox) {
    let log = sandbox.run(["log", "--json"]).exits(0).json();
    let of = |kind: &str| -> Vec<String> {
        let events = log["events"].as_array().unwrap().iter();
        let events = events.filter(|event| event["kind"] == kind);
        events.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
    };
    let reviews = [
        "NEEDS_FIX by codex, round 1: 1 HIGH, 1 MEDIUM, 0 LOW",
        "NEEDS_FIX by codex, round 2: 0 HIGH, 1 MEDIUM, 1 LOW",
        "APPROVED by codex, round 3: 0 HIGH, 0 MEDIUM, 0 LOW",
    ];
    assert_eq!(of("review"), reviews);
    let tests: Vec<String> = of("tests");
    let results: Vec<&str> = tests.iter().filter_map(|text| text.split(' ').next()).collect();
    assert_eq!(results, ["failed", "passed", "passed"], "{tests:?}");
    assert!(tests.iter().all(|text| text.ends_with(": sh test.sh")), "{tests:?}");
}
