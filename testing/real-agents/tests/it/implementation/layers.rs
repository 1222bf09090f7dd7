//! Layers: their order, their sessions, parts of them, and ticks.

use std::collections::BTreeSet;
use std::fs;

use real_agents::{Sandbox, lines_with};
use scripted_models::{Reply, Rule, Script};

use super::project::{
    GREET, RIGHT, approve, approved, bash, does, greets, look, says, tick, write,
};

/// WF4: one fresh session for each layer, in the order data, logic, integration, testing;
/// `--tasks` does a part, and only the whole is reviewed.
#[test]
fn layers_in_their_order_and_parts_of_them() {
    let creates = |layer: &str, file: &str, task: &str| {
        does(&format!("implement-{layer}"), [write(file, "x\n"), tick(task)])
    };
    let script = Script::new()
        .rule(creates("data", "data.txt", "1.1"))
        .rule(does("implement-logic", [look("greet.sh"), write("greet.sh", RIGHT), tick("2.1")]))
        .rule(creates("integration", "whole.txt", "3.1"))
        .rule(creates("testing", "tests/more.txt", "4.1"));
    Sandbox::enter(script, |sandbox| {
        // Not in the order of the layers: that comes from agentd.
        let tasks = [
            ("testing", "tests/more.txt", "CREATE"),
            ("integration", "whole.txt", "CREATE"),
            GREET,
            ("data", "data.txt", "CREATE"),
        ];
        approved(sandbox, "", &tasks);
        insta::assert_snapshot!(sandbox.run(["impl", "--tasks", "9.9", "--json"]), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "no_such_task",
            "message": "`add-login` has no task 9.9",
            "cause": null,
            "hints": [
              "see which tasks there are: agentd show add-login tasks"
            ]
          }
        }
        --- stderr
        note: working in place; use --git branch or --git worktree to isolate it
        "#);
        sandbox.run(["impl", "--tasks", "x"]).exits(2);
        let part = sandbox.run(["impl", "--tasks", "2.1,1.1", "--json"]).exits(0);
        assert_eq!(part.json()["action"], "implemented");
        assert_eq!(part.json()["phase"], "implementing");
        assert_eq!(sandbox.steps(), ["implement-data", "implement-logic"]);
        insta::assert_snapshot!(sandbox.run(["implement"]).without_usage(), @"
        exit 0
        ✓ add-login: the tasks are done
        cost so far: $[COST]

        Next: agentd review add-login
        --- stderr
        Layer 1/4: data: skipped, its tasks are ticked already
        Layer 2/4: logic: skipped, its tasks are ticked already
        Layer 3/4: integration: started (claude)
        Layer 3/4: integration: done, [DURATION], [USAGE], 1 of 1 tasks ticked
        Layer 4/4: testing: started (claude)
        Layer 4/4: testing: done, [DURATION], [USAGE], 1 of 1 tasks ticked
        ");
        let steps =
            ["implement-data", "implement-logic", "implement-integration", "implement-testing"];
        assert_eq!(sandbox.steps(), steps);
        let sessions: BTreeSet<_> =
            sandbox.state().llm_calls.into_iter().map(|call| call.session_id.unwrap()).collect();
        assert_eq!(sessions.len(), 4);
        assert!(sandbox.calls().iter().all(|call| !call.has("--resume")));
        let prompt = sandbox.models().requests()[0].prompt.clone();
        insta::assert_snapshot!(lines_with(&prompt, "1.1"), @"1.1 CREATE data.txt");
        assert_eq!(lines_with(&prompt, "2.1"), "");
        insta::assert_snapshot!(lines_with(&prompt, "Hello, "), @"
        greet.sh MUST print `Hello, <name>!` within 1 s.
        THEN `Hello, Ada!` is printed
        ");
    });
}

/// A layer with open tasks is asked once more in its session, and then reported. A task checked
/// off without evidence is refused, and one checked off without the tool is reopened.
#[test]
fn a_task_that_is_not_done_is_not_checked_off() {
    let around = "sed -i 's/status: pending/status: done/' agentd/changes/add-login/tasks.md";
    let script = Script::new()
        .rule(does("implement-logic", [tick("2.1"), bash(around)]).prompts(1))
        .rule(Rule::new().step("implement-logic").reply(Reply::text("I cannot.")));
    Sandbox::enter(script, |sandbox| {
        approved(sandbox, "", &[GREET]);
        insta::assert_snapshot!(sandbox.run(["impl", "--json"]).without_usage(), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "tasks_left",
            "message": "tasks of the logic layer are not done: 2.1",
            "cause": "they are not checked off, or were checked off without being done",
            "hints": [
              "see what it did in the newest file of agentd/changes/add-login/runs/",
              "do them by hand and check them off in tasks.md, then: agentd impl add-login",
              "or ask again: agentd impl add-login"
            ]
          }
        }
        --- stderr
        note: working in place; use --git branch or --git worktree to isolate it
        step_started: Layer 1/1: logic, claude
        step_done: Layer 1/1: logic, 0 of 1 tasks ticked
        warning: the tick of 2.1 is taken back: Task 2.1 is not done (MODIFY greet.sh): the file is as it was at [COMMIT].
        Change the file as the task says, then call complete_task again.
        warning: logic: not ticked: 2.1; asking once more
        step_started: Layer 1/1: logic, once more, claude, resumed
        step_done: Layer 1/1: logic, once more, 0 of 1 tasks ticked
        "#);
        let refused = sandbox.tool_result("the file is as it was");
        insta::assert_snapshot!(sandbox.mask(refused), @"
        Task 2.1 is not done (MODIFY greet.sh): the file is as it was at [COMMIT].
        Change the file as the task says, then call complete_task again.
        ");
        assert_eq!(lines_with(&sandbox.read("tasks.md"), "status:"), "status: pending");
        let calls = sandbox.calls();
        assert_eq!(calls.len(), 2);
        let first = sandbox.state().llm_calls[0].session_id.clone();
        assert_eq!(calls[1].after("--resume"), first.as_deref());
        assert_eq!(sandbox.state().phase.name(), "implementing");
    });
}

/// Ticks of later layers that are set during the first are ticks like others: nothing shows
/// them, so those layers are built.
#[test]
fn ticks_of_later_layers_need_evidence_too() {
    let around = "sed -i 's/status: pending/status: done/' agentd/changes/add-login/tasks.md";
    let script = Script::new()
        .rule(does("implement-data", [write("data.txt", "x\n"), bash(around)]))
        .rule(greets(RIGHT))
        .rule(says("APPROVED", &[]));
    Sandbox::enter(script, |sandbox| {
        approved(sandbox, "", &[("data", "data.txt", "CREATE"), GREET]);
        insta::assert_snapshot!(sandbox.run(["impl"]).without_usage(), @r#"
        exit 0
        ✓ APPROVED - add-login is complete
        cost so far: $[COST]

        Next: agentd archive add-login
        --- stderr
        working in place; use --git branch or --git worktree to isolate it
        Layer 1/2: data: started (claude)
        Layer 1/2: data: done, [DURATION], [USAGE], 1 of 1 tasks ticked
        warning: the tick of 2.1 is taken back: Task 2.1 is not done (MODIFY greet.sh): the file is as it was at [COMMIT].
        Change the file as the task says, then call complete_task again.
        Layer 2/2: logic: started (claude)
        Layer 2/2: logic: done, [DURATION], [USAGE], 1 of 1 tasks ticked
        warning: no tests were run: set implementation.test_command in agentd/config.toml, such as "cargo test"
        Review: started (codex)
        Review: done, [DURATION], [USAGE], APPROVED - Ready for the archive!
        "#);
        assert_eq!(sandbox.steps(), ["implement-data", "implement-logic", "review"]);
        assert_eq!(fs::read_to_string(sandbox.root().join("greet.sh")).unwrap(), RIGHT);
        // One that is contradicted later is found before the next review.
        let state = sandbox.read("STATE.yaml").replace("phase: complete", "phase: implementing");
        fs::write(sandbox.path("STATE.yaml"), state).unwrap();
        fs::remove_file(sandbox.root().join("data.txt")).unwrap();
        let ran = sandbox.run(["review", "--json"]).exits(1);
        assert_eq!(ran.json()["error"]["kind"], "tasks_left", "{ran:#?}");
        assert_eq!(sandbox.steps().len(), 3, "no reviewer was called");
    });
}

/// Scenario: Task Layer Inference (WF5). Layers come from headings, and checkboxes are
/// ticked where they are.
#[test]
fn tasks_without_frontmatter_have_layers_by_their_headings() {
    let script = Script::new()
        .rule(does("implement-data", [write("data.txt", "x\n"), tick("1.1")]))
        .rule(greets(RIGHT));
    Sandbox::enter(script, |sandbox| {
        approved(sandbox, "", &[GREET]);
        let text = "# Tasks\n\n## 1. Data Layer\n\n- [ ] 1.1 Make the data\n  - File: data.txt (CREATE)\n\n\
            ## 2. Logic Layer\n\n- [ ] 2.1 Greet\n  - File: greet.sh (MODIFY)\n  - Spec: greeting:R1\n";
        fs::write(sandbox.path("tasks.md"), text).unwrap();
        approve(sandbox);
        sandbox.run(["implement"]).exits(0);
        assert_eq!(sandbox.steps(), ["implement-data", "implement-logic"]);
        assert_eq!(sandbox.read("tasks.md"), text.replace("[ ]", "[x]"));
    });
}

/// WF4: only an approved plan is implemented, and only as it was approved.
#[test]
fn only_the_approved_plan_is_implemented() {
    let weaker = "sed -i 's/within 1 s/within 9 s/' agentd/changes/add-login/specs/greeting.md";
    let script = Script::new().rule(does(
        "implement-logic",
        [look("greet.sh"), write("greet.sh", RIGHT), tick("2.1"), bash(weaker)],
    ));
    Sandbox::enter(script, |sandbox| {
        approved(sandbox, "", &[GREET]);
        let state = sandbox.read("STATE.yaml");
        for phase in ["proposed", "rejected", "complete", "archived"] {
            let other = state.replace("phase: challenged", &format!("phase: {phase}"));
            fs::write(sandbox.path("STATE.yaml"), other).unwrap();
            for command in ["impl", "implement", "review", "fix"] {
                let error = sandbox.run([command, "add-login", "--json"]).exits(1).json();
                // Only what was recorded as complete is answered with "already complete".
                let forged = (command, phase) == ("impl", "complete");
                let kind = if forged { "state_edited" } else { "change_not_ready" };
                assert_eq!(error["error"]["kind"], kind, "{command} {phase}: {error}");
            }
        }
        fs::write(sandbox.path("STATE.yaml"), &state).unwrap();
        let early = sandbox.run(["review", "--json"]).exits(1).json();
        assert_eq!(early["error"]["kind"], "change_not_ready", "{early:#}");
        let spec = sandbox.read("specs/greeting.md");
        fs::write(sandbox.path("specs/greeting.md"), spec.replace("within 1 s", "within 5 s"))
            .unwrap();
        insta::assert_snapshot!(sandbox.run(["impl", "--json"]), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "refused",
            "message": "a change that is challenged cannot be implemented: the plan has changed since it was approved",
            "cause": null,
            "hints": [
              "have it challenged again: agentd challenge add-login"
            ]
          }
        }
        --- stderr
        note: working in place; use --git branch or --git worktree to isolate it
        "#);
        assert!(sandbox.calls().is_empty(), "no agent was called");

        // Nor may an implementer change what it is measured by.
        fs::write(sandbox.path("specs/greeting.md"), spec).unwrap();
        insta::assert_snapshot!(sandbox.run(["impl"]).without_usage(), @"
        exit 1
        --- stderr
        Layer 1/1: logic: started (claude)
        Layer 1/1: logic: done, [DURATION], [USAGE], 1 of 1 tasks ticked
        error: a change that is implementing cannot be implemented: the plan has changed since it was approved

        hint: go back to planning with the plan as it is now; the code stays: agentd revise add-login
        ");
        assert_eq!(sandbox.steps(), ["implement-logic"]);
        insta::assert_snapshot!(sandbox.run(["review"]), @"
        exit 1
        --- stderr
        error: a change that is implementing cannot be implemented: the plan has changed since it was approved

        hint: go back to planning with the plan as it is now; the code stays: agentd revise add-login
        ");
        assert_eq!(sandbox.calls().len(), 1);
    });
}
