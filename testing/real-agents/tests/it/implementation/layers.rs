//! Layers: their order, their sessions, parts of them, and ticks.

use std::collections::BTreeSet;
use std::fs;

use real_agents::Sandbox;
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
        sandbox.run(["impl", "--tasks", "9.9", "--json"]).exits(1).says("no_such_task");
        sandbox.run(["impl", "--tasks", "x"]).exits(2);
        let part = sandbox.run(["impl", "--tasks", "2.1,1.1", "--json"]).exits(0);
        assert_eq!(part.json()["action"], "implemented");
        assert_eq!(part.json()["phase"], "implementing");
        assert_eq!(sandbox.steps(), ["implement-data", "implement-logic"]);
        sandbox.run(["implement"]).exits(0).says("Layer 4/4: testing");
        let steps =
            ["implement-data", "implement-logic", "implement-integration", "implement-testing"];
        assert_eq!(sandbox.steps(), steps);
        let sessions: BTreeSet<_> =
            sandbox.state().llm_calls.into_iter().map(|call| call.session_id.unwrap()).collect();
        assert_eq!(sessions.len(), 4);
        assert!(sandbox.calls().iter().all(|call| !call.has("--resume")));
        let prompt = sandbox.models().requests()[0].prompt.clone();
        assert!(prompt.contains("1.1") && !prompt.contains("2.1"), "{prompt}");
        assert!(prompt.contains("Hello, <name>!"), "the prompt has the requirement: {prompt}");
    });
}

/// A layer with open tasks is asked once more in its session, and then reported. A tick
/// without evidence is refused, and one that goes around the tool is taken back.
#[test]
fn what_is_not_done_is_not_ticked() {
    let around = "sed -i 's/status: pending/status: done/' agentd/changes/add-login/tasks.md";
    let script = Script::new()
        .rule(does("implement-logic", [tick("2.1"), bash(around)]).prompts(1))
        .rule(Rule::new().step("implement-logic").reply(Reply::text("I cannot.")));
    Sandbox::enter(script, |sandbox| {
        approved(sandbox, "", &[GREET]);
        let ran = sandbox.run(["impl", "--json"]).exits(1);
        let error = &ran.json()["error"];
        assert_eq!(error["kind"], "tasks_left", "{ran:#?}");
        assert!(error["message"].as_str().unwrap().contains("2.1"));
        ran.says("the tick of 2.1 is taken back");
        ran.says("asking once more");
        let refused = |text: &String| text.contains("the file is as it was");
        let requests = sandbox.models().requests();
        assert!(requests.iter().any(|request| request.tool_results.iter().any(refused)));
        assert!(sandbox.read("tasks.md").contains("status: pending"));
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
        sandbox.run(["impl"]).exits(0).says("the tick of 2.1 is taken back");
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
                assert_eq!(
                    error["error"]["kind"], "change_not_ready",
                    "{command} {phase}: {error}"
                );
            }
        }
        fs::write(sandbox.path("STATE.yaml"), &state).unwrap();
        sandbox.run(["review", "--json"]).exits(1).says("change_not_ready");
        let spec = sandbox.read("specs/greeting.md");
        fs::write(sandbox.path("specs/greeting.md"), spec.replace("within 1 s", "within 5 s"))
            .unwrap();
        let refused = sandbox.run(["impl", "--json"]).exits(1);
        refused.says("the plan has changed since it was approved");
        assert!(sandbox.calls().is_empty(), "nobody was paid");

        // Nor may an implementer change what it is measured by.
        fs::write(sandbox.path("specs/greeting.md"), spec).unwrap();
        sandbox.run(["impl"]).exits(1).says("the plan has changed since it was approved");
        assert_eq!(sandbox.steps(), ["implement-logic"]);
        sandbox.run(["review"]).exits(1).says("the plan has changed since it was approved");
        assert_eq!(sandbox.calls().len(), 1);
    });
}
