//! What a revision changes in the documents of a plan.

use std::fs;

use real_agents::models::{approved, calls, challenges, plan, proposal, review, spec, tasks};
use real_agents::{CODEX_QUICK, Sandbox, lines_with};
use scripted_models::Script;
use serde_json::json;

/// RP3, F7: a revision that replaces one affected spec by another. The file of the dropped one
/// goes, the new one is written, the tasks are renewed, and the dropped one is never merged.
#[test]
fn a_dropped_spec_is_dropped_everywhere() {
    let script = Script::new()
        .rule(calls("tasks-gen", "create_tasks", tasks(&["auth-flow", "user-model"])).prompts(1))
        .rule(calls("tasks-gen", "create_tasks", tasks(&["user-model", "session-flow"])))
        .rule(calls("spec-gen-session-flow", "create_spec", spec("session-flow")))
        .rule(calls(
            "reproposal",
            "create_proposal",
            proposal(&json!(["user-model", "session-flow"])),
        ));
    let script = plan(script, &["auth-flow", "user-model"]);
    let found = review("NEEDS_REVISION", &[("high", "The wrong part")]);
    Sandbox::enter(challenges(script, &[found, approved()]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        sandbox.plan(&[]).exits(0);
        assert!(sandbox.path("base/auth-flow.md").exists());
        // Somebody's own notes, which the plan never listed.
        fs::write(sandbox.path("specs/notes.md"), "# Notes\n").unwrap();
        insta::assert_snapshot!(sandbox.run(["reproposal"]).without_usage(), @"
        exit 0
        ✓ Proposal updated based on challenge feedback
        cost so far: $[COST]

        Next: agentd challenge add-login
        --- stderr
        Reproposal 1: started (codex, resumed)
        Reproposal 1: done, [DURATION], [USAGE], 1 issue, 1 file changed
        fixed: proposal.md
        removed: specs/auth-flow.md, which proposal.md no longer lists
        Spec 2/2: session-flow: started (codex)
        Spec 2/2: session-flow: done, [DURATION], [USAGE], specs/session-flow.md is written
        tasks.md is written again: task 2.1 implements auth-flow:R1, which is not part of the plan (and 1 more)
        Tasks: started (codex)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Proposal updated based on challenge feedback
        ");
        for gone in ["specs/auth-flow.md", "base/auth-flow.md"] {
            assert!(!sandbox.path(gone).exists(), "{gone}");
        }
        assert!(sandbox.path("specs/notes.md").exists());
        assert_eq!(
            lines_with(&sandbox.read("tasks.md"), "spec_ref"),
            "spec_ref: \"user-model:R1\"\nspec_ref: \"session-flow:R1\""
        );
        insta::assert_snapshot!(lines_with(&sandbox.prompt("tasks-gen"), "auth-flow"), @"task 2.1 implements auth-flow:R1, which is not part of the plan");
        let found = sandbox.run(["validate", "--json"]).json();
        let codes: Vec<_> =
            found["diagnostics"].as_array().unwrap().iter().map(|d| d["code"].clone()).collect();
        assert!(codes.contains(&json!("P005")), "{codes:?}");
        fs::remove_file(sandbox.path("specs/notes.md")).unwrap();

        let calls = sandbox.calls().len();
        let json = sandbox.run(["challenge", "--json"]).exits(0).json();
        assert_eq!(json["verdict"], "APPROVED", "{json:#}");
        assert_eq!(sandbox.calls().len(), calls + 1);

        // A stale file that comes back, as from a merge of branches, is named and not merged.
        fs::write(sandbox.path("specs/auth-flow.md"), sandbox.read("specs/user-model.md")).unwrap();
        sandbox.replace("specs/auth-flow.md", "id: user-model", "id: auth-flow");
        let json = sandbox.run(["archive", "--force", "a test", "--json"]).exits(0).json();
        assert_eq!(json["unlisted"], json!(["auth-flow"]));
        let mut main: Vec<String> = fs::read_dir(sandbox.root().join("agentd/specs"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "CHANGELOG.md")
            .collect();
        main.sort();
        assert_eq!(main, ["session-flow.md", "user-model.md"]);
    });
}
