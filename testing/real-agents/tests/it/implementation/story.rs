//! The whole story once: from an approved plan to living specs.

use std::fs;

use real_agents::models::{calls, settles};
use real_agents::{Sandbox, lines_with, paragraph};
use scripted_models::{Reply, Rule, Script};

use super::project::{
    RIGHT, TESTED, WRONG, approved, bash, commits_logged, does, edit, greets, logged, look, tick,
    verdict_of, write,
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
    let again = settles(verdict_of("NEEDS_FIX", &again), &[("I1", "fixed")]);
    let fixed = settles(verdict_of("APPROVED", &[]), &[("I2", "fixed"), ("I3", "fixed")]);
    let script = Script::new()
        .rule(greets(WRONG))
        .rule(does("implement-testing", [write("tests/no_name.sh", "exit 0\n"), tick("4.1")]))
        .rule(hasty)
        .rule(calls("review", "create_review", again).prompts(1))
        .rule(calls("review", "create_review", fixed))
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
        insta::assert_snapshot!(sandbox.run(["impl"]).without_usage(), @"
        exit 0
        ✓ APPROVED - add-login is complete
        cost so far: $[COST]

        Next: agentd archive add-login
        --- stderr
        working in place; use --git branch or --git worktree to isolate it
        Layer 1/2: logic: started (claude)
        Layer 1/2: logic: done, [DURATION], [USAGE], 1 of 1 tasks ticked
        committed [COMMIT] add-login: logic layer
        Layer 2/2: testing: started (claude)
        Layer 2/2: testing: done, [DURATION], [USAGE], 1 of 1 tasks ticked
        committed [COMMIT] add-login: testing layer
        running the tests: sh test.sh
        the tests failed with exit code 1 after [DURATION]
            no greeting
        Review: started (codex)
        Review: done, [DURATION], [USAGE], NEEDS_FIX - Found 1 HIGH, 1 MEDIUM, 0 LOW severity issues
        Read all of it.
        HIGH    I1  Wrong greeting
                    greet.sh:2
                    Wrong greeting goes wrong.
                    → Fix it.

        MEDIUM  I2  No error test
                    greet.sh:2
                    No error test goes wrong.
                    → Fix it.
        Fix 1: started (claude, resumed)
        Fix 1: done, [DURATION], [USAGE], 2 findings
        committed [COMMIT] add-login: fix the findings of review 1
        running the tests: sh test.sh
        the tests passed after [DURATION]
        Review 2: started (codex)
        Review 2: done, [DURATION], [USAGE], NEEDS_FIX - Found 0 HIGH, 1 MEDIUM, 1 LOW severity issues
        Read all of it.
        MEDIUM  I2  No test of an error
                    greet.sh:2
                    I2: No test of an error goes wrong.
                    → Fix it.

        LOW     I3  No comment
                    greet.sh:2
                    No comment goes wrong.
                    → Fix it.
        issues open: I2; new: I3; fixed: I1
        Fix 2: started (claude, resumed)
        Fix 2: done, [DURATION], [USAGE], 2 findings
        committed [COMMIT] add-login: fix the findings of review 2
        running the tests: sh test.sh
        the tests passed after [DURATION]
        Review 3: started (codex)
        Review 3: done, [DURATION], [USAGE], APPROVED - Ready for the archive!
        issues fixed: I1, I2, I3
        ");
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
        let refused = sandbox.tool_result("The tests failed");
        assert_ne!(lines_with(&refused, "no greeting"), "", "{refused}");
        // The prompt lists what was found before, by its ID, which stays the same.
        let asked: Vec<&str> = requests
            .iter()
            .filter(|request| request.round == 0 && request.prompt.starts_with("agentd review"))
            .map(|request| &*request.prompt)
            .collect();
        assert_eq!(asked.len(), 3);
        assert_eq!(lines_with(asked[0], "+echo"), "+echo \"Hello $1\"");
        assert_eq!(lines_with(asked[0], "no greeting"), "no greeting");
        insta::assert_snapshot!(paragraph(asked[1], "I1 HIGH"), @"
        I1 HIGH: Wrong greeting
          where: greet.sh:2
          what: Wrong greeting goes wrong.
          do: Fix it.
        I2 MEDIUM: No error test
          where: greet.sh:2
          what: No error test goes wrong.
          do: Fix it.
        ```
        ");
        insta::assert_snapshot!(paragraph(asked[2], "I2 MEDIUM"), @"
        I2 MEDIUM: No test of an error
          where: greet.sh:2
          what: I2: No test of an error goes wrong.
          do: Fix it.
        I3 LOW: No comment
          where: greet.sh:2
          what: No comment goes wrong.
          do: Fix it.
        ```
        ");

        // Fresh sessions for the layers; the fixes resume the last of them.
        let claude: Vec<_> =
            sandbox.calls().into_iter().filter(|call| call.program == "claude").collect();
        assert_eq!(claude.len(), 4);
        assert!(claude[..2].iter().all(|call| call.after("--resume").is_none()));
        let session = state.llm_calls[1].session_id.as_deref();
        assert!(claude[2..].iter().all(|call| call.after("--resume") == session), "{claude:#?}");
        assert_ne!(state.llm_calls[0].session_id, state.llm_calls[1].session_id);

        // The commits say which tasks and findings they are about.
        let log = sandbox.git(&["log", "--reverse", "--format=%s%n%b", "HEAD~4..HEAD"]);
        insta::assert_snapshot!(log, @"
        add-login: logic layer
        Tasks: 2.1

        - 2.1 MODIFY greet.sh

        add-login: testing layer
        Tasks: 4.1

        - 4.1 CREATE tests/no_name.sh

        add-login: fix the findings of review 1
        - I1 Wrong greeting
        - I2 No error test

        add-login: fix the findings of review 2
        - I2 No test of an error
        - I3 No comment
        ");
        let subjects: Vec<&str> =
            log.lines().filter(|line| line.starts_with("add-login: ")).collect();
        assert_eq!(commits_logged(sandbox), subjects);
        insta::assert_snapshot!(calls_logged(sandbox), @"
        implement-logic by claude (claude-sonnet-5)
        implement-testing by claude (claude-sonnet-5)
        review by codex (gpt-6.1-sol)
        fix 1 by claude (claude-sonnet-5)
        review by codex (gpt-6.1-sol)
        fix 2 by claude (claude-sonnet-5)
        review by codex (gpt-6.1-sol)
        ");
        assert_all_rounds_are_logged(sandbox);

        // Nothing is paid twice; then it becomes part of the specs.
        let calls = sandbox.calls().len();
        let again = sandbox.run(["impl", "--json"]).exits(0).json();
        assert_eq!(again["action"], "already_complete", "{again:#}");
        assert_eq!(sandbox.calls().len(), calls);
        let archived = sandbox.run(["archive", "--json"]).exits(0).json();
        for key in ["action", "phase"] {
            assert_eq!(archived[key], "archived", "{archived:#}");
        }
        let spec = fs::read_to_string(sandbox.root().join("agentd/specs/greeting.md")).unwrap();
        assert_eq!(lines_with(&spec, "### R"), "### R1: By name");
        assert!(!sandbox.path("STATE.yaml").exists());
        let archive = fs::read_dir(sandbox.root().join("agentd/archive")).unwrap();
        let names = archive.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(names.into_iter().any(|name| name.ends_with("-add-login")));
    });
}

/// The steps and models of the calls in `agentd log`.
fn calls_logged(sandbox: &Sandbox) -> String {
    let calls = logged(sandbox, "call").into_iter();
    calls.map(|text| text.split_once(':').unwrap().0.to_owned() + "\n").collect()
}

/// Each review is logged, with the result of the tests before it.
#[track_caller]
fn assert_all_rounds_are_logged(sandbox: &Sandbox) {
    let reviews = [
        "NEEDS_FIX by codex, round 1: 1 HIGH, 1 MEDIUM, 0 LOW",
        "NEEDS_FIX by codex, round 2: 0 HIGH, 1 MEDIUM, 1 LOW; open: I2; new: I3; fixed: I1",
        "APPROVED by codex, round 3: 0 HIGH, 0 MEDIUM, 0 LOW; fixed: I1, I2, I3",
    ];
    assert_eq!(logged(sandbox, "review"), reviews);
    let tests = logged(sandbox, "tests");
    let results: Vec<&str> = tests.iter().filter_map(|text| text.split(' ').next()).collect();
    assert_eq!(results, ["failed", "passed", "passed"], "{tests:?}");
    assert!(tests.iter().all(|text| text.ends_with(": sh test.sh")), "{tests:?}");
}
