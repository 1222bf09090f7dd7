//! What a revision changes in the documents of a plan.

use std::fs;

use real_agents::models::{approved, calls, challenges, edit, plan, proposal, review, spec, tasks};
use real_agents::{CODEX_QUICK, Sandbox, lines_with};
use scripted_models::{Reply, Rule, Script};
use serde_json::json;

/// RP2, RP3: issues in three files, in the prompt by severity and each with its place; the planner,
/// which resumes its session, fixes each where it is.
#[test]
fn issues_in_three_files_are_fixed_in_place() {
    let mut found =
        review("NEEDS_REVISION", &[("low", "Vague"), ("high", "Too slow"), ("medium", "No test")]);
    for (index, place) in ["proposal.md", "auth-flow:R1", "task 2.1"].into_iter().enumerate() {
        found["issues"][index]["location"] = json!(place);
    }
    let edits = [
        edit("proposal.md", "their own data", "their own notes"),
        edit("specs/auth-flow.md", "within 2 s", "within 1 s"),
        edit("tasks.md", "Write it.", "Write it, with a test."),
    ];
    let rule = edits.into_iter().fold(Rule::new().step("reproposal"), |rule, edit| {
        rule.reply(Reply::call("edit_file", edit).saying("I fix it."))
    });
    let script = Script::new().rule(rule.reply(Reply::text("Done.")));
    let script = challenges(plan(script, &["auth-flow"]), &[found]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up("[workflow]\nself_review_iterations = 0\n");
        sandbox.plan(&[]).exits(0);
        let session = sandbox.state().session_id;
        insta::assert_snapshot!(sandbox.run(["reproposal"]).without_usage(), @"
        exit 0
        ✓ Proposal updated based on challenge feedback
        cost so far: $[COST]

        Next: agentd challenge add-login
        --- stderr
        Reproposal 1: started (gemini, resumed)
        Reproposal 1: done, [DURATION], [USAGE], 3 issues, 3 files changed
        I1 Vague: proposal.md has changed
        I2 Too slow: auth-flow:R1 has changed
        I3 No test: tasks.md has changed
        Proposal updated based on challenge feedback
        ");
        let prompt = sandbox.prompt("reproposal");
        let places = ["I2 HIGH", "auth-flow:R1", "I3 MEDIUM", "task 2.1", "I1 LOW", "proposal.md"];
        let mut rest = prompt.as_str();
        for place in places {
            rest = rest.split_once(place).unwrap_or_else(|| panic!("no {place}:\n{prompt}")).1;
        }
        for (file, fixed) in [
            ("proposal.md", "their own notes"),
            ("specs/auth-flow.md", "within 1 s"),
            ("tasks.md", "Write it, with a test."),
        ] {
            assert_eq!(sandbox.read(file).matches(fixed).count(), 1, "{file}");
        }
        let state = sandbox.state();
        assert_eq!((state.session_id, state.phase.name()), (session, "proposed"));
        assert!(sandbox.calls().last().unwrap().has("--resume"));
    });
}

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

        Next: agentd validate add-login
        --- stderr
        Reproposal 1: started (codex, resumed)
        Reproposal 1: done, [DURATION], [USAGE], 1 issue, 1 file changed
        I1 The wrong part: proposal.md has changed
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
