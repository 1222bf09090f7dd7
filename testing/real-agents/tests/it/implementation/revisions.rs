//! Plans that change after code was written for them (W1, W2).

use std::fs;

use real_agents::models::{approved, calls, challenges, edit, passes, proposal};
use real_agents::{CHANGE, Sandbox, lines_with};
use scripted_models::{Reply, Rule, Script};
use serde_json::{Value, json};

use super::project::{does, says, tick, write};

/// Ten requirements, with a scenario for the good and the bad way each.
fn spec() -> Value {
    let requirements: Vec<Value> = (1..=10)
        .map(|n| {
            json!({"id": format!("R{n}"), "title": format!("Part {n}"), "priority": "high",
                "description": format!("part-{n}.sh MUST print `{n}` within 1 s.")})
        })
        .collect();
    json!({
        "change_id": CHANGE, "spec_id": "parts", "title": "Parts", "overview": "Ten parts.",
        "requirements": requirements,
        "scenarios": [
            {"name": "Good", "when": "part-1.sh is run", "then": "`1` is printed"},
            {"name": "Bad", "when": "part-1.sh is run with an argument", "then": "it fails with an error"},
        ],
    })
}

fn tasks() -> Value {
    let task = |n: u32| {
        json!({"layer": "logic", "number": n, "title": format!("Write part {n}"),
            "file": {"path": format!("part-{n}.sh"), "action": "CREATE"},
            "spec_ref": format!("parts:R{n}"), "description": "As the spec says.", "depends": []})
    };
    json!({"change_id": CHANGE, "tasks": (1..=10).map(task).collect::<Vec<_>>()})
}

/// The implementer writes these parts and ticks their tasks.
fn builds(parts: &[u32], text: &str) -> Rule {
    let replies =
        parts.iter().flat_map(|n| [write(&format!("part-{n}.sh"), text), tick(&format!("2.{n}"))]);
    does("implement-logic", replies)
}

fn done(sandbox: &Sandbox) -> Vec<u32> {
    let status = sandbox.run(["show", "tasks"]).stdout;
    let status = lines_with(&status, "status:");
    let all = status.lines().zip(1..);
    all.filter(|(line, _)| *line == "status: done").map(|(_, n)| n).collect()
}

/// The bar of issue 16: one of ten requirements is revised after half of the tasks are done. One
/// call of the planner, one challenge, and only what is stale or still open is implemented.
#[test]
fn only_what_a_revision_changed_is_implemented_again() {
    let script = Script::new()
        .rule(calls("proposal-gen", "create_proposal", proposal(&json!(["parts"]))))
        .rule(passes("proposal-review"))
        .rule(calls("spec-gen-parts", "create_spec", spec()))
        .rule(passes("spec-review-parts"))
        .rule(calls("tasks-gen", "create_tasks", tasks()))
        .rule(passes("tasks-review"))
        .rule(builds(&[1, 2, 3, 4, 5], "echo\n").prompts(1))
        .rule(
            Rule::new()
                .step("reproposal")
                .reply(Reply::call(
                    "edit_file",
                    edit(
                        "specs/parts.md",
                        "part-2.sh MUST print `2` within 1 s",
                        "part-2.sh MUST print `two` within 1 s",
                    ),
                ))
                .reply(Reply::text("Done.")),
        )
        .rule(does(
            "implement-logic",
            [super::project::look("part-2.sh")].into_iter().chain(
                [2, 6, 7, 8, 9, 10].into_iter().flat_map(|n| {
                    [write(&format!("part-{n}.sh"), "echo two\n"), tick(&format!("2.{n}"))]
                }),
            ),
        ))
        .rule(says("APPROVED", &[]));
    let script = challenges(script, &[approved()]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up("[workflow]\nself_review_iterations = 0\n");
        sandbox.git(&["commit", "-q", "--allow-empty", "-m", "Start"]);
        sandbox.plan(&["--auto"]).exits(0);
        sandbox.run(["impl", "--tasks", "2.1,2.2,2.3,2.4,2.5"]).exits(0);
        assert_eq!(done(sandbox), [1, 2, 3, 4, 5]);
        let (calls, requests) =
            (sandbox.state().llm_calls.len(), sandbox.models().requests().len());

        let text = "part-2.sh prints a word now";
        insta::assert_snapshot!(sandbox.run(["revise", CHANGE, text]), @"
        exit 0
        add-login is proposed again; its code and its records stay

        Next: agentd plan add-login
        --- stderr
        ");
        assert_eq!(done(sandbox), [1, 2, 3, 4, 5], "nothing is lost");
        insta::assert_snapshot!(sandbox.run(["plan", "--auto"]).without_usage(), @"
        exit 0
        ✓ APPROVED - Ready for implementation!
        cost so far: $[COST]

        Next: agentd impl add-login
        --- stderr
        Proposal: skipped, it is written already
        Spec 1/1: parts: skipped, it is written already
        Tasks: skipped, it is written already
        Reproposal 1: started (gemini, resumed)
        Reproposal 1: done, [DURATION], [USAGE], 1 file changed
        changed: specs/parts.md
        The plan was revised as asked
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        Challenge 2: started (codex)
        Challenge 2: done, [DURATION], [USAGE], APPROVED - Ready for implementation!
        ");
        // Another machine, which has none of the runs, does not ask again.
        assert_eq!(sandbox.state().revision.unwrap().note.as_str(), "");
        let prompt = sandbox.prompt("reproposal");
        assert_eq!(prompt.matches(text).count(), 1, "{prompt}");
        let status = sandbox.run(["status", "--json"]).json();
        assert_eq!(status["stale"][0]["what"], "parts:R2", "{status:#}");
        insta::assert_snapshot!(sandbox.run(["impl"]).without_usage(), @r#"
        exit 0
        ✓ APPROVED - add-login is complete
        cost so far: $[COST]

        Next: agentd archive add-login
        --- stderr
        task 2.2 is open again: parts:R2 has changed
        Layer 1/1: logic: started (claude)
        Layer 1/1: logic: done, [DURATION], [USAGE], 6 of 6 tasks ticked
        warning: no tests were run: set implementation.test_command in agentd/config.toml, such as "cargo test"
        Review: started (codex)
        Review: done, [DURATION], [USAGE], APPROVED - Ready for the archive!
        "#);
        assert_eq!(done(sandbox), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let steps: Vec<String> =
            sandbox.state().llm_calls[calls..].iter().map(|call| call.step.to_string()).collect();
        assert_eq!(steps, ["reproposal", "challenge", "implement-logic", "review"]);

        // The models saw no other prompt, and only these tasks.
        let asked = sandbox.models().requests();
        let prompts =
            asked[requests..].iter().filter(|request| request.prompt.starts_with("agentd "));
        let mut seen: Vec<&str> =
            prompts.map(|request| request.prompt.split(' ').nth(1).unwrap()).collect();
        seen.dedup();
        assert_eq!(seen, ["reproposal", "challenge", "implement-logic", "review"]);
        let asked =
            asked[requests..].iter().find(|it| it.prompt.starts_with("agentd implement-logic "));
        let wanted = lines_with(&asked.unwrap().prompt, "Write part ");
        assert_eq!(wanted.lines().count(), 6, "{wanted}");
        assert_eq!(fs::read_to_string(sandbox.root().join("part-2.sh")).unwrap(), "echo two\n");
        assert_eq!(fs::read_to_string(sandbox.root().join("part-1.sh")).unwrap(), "echo\n");
        assert_eq!(sandbox.run(["verify", "--json"]).exits(0).json()["valid"], true);
    });
}
