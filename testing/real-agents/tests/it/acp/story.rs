//! A whole change by four agents over ACP, one in each role: planned, revised, challenged again,
//! implemented, reviewed, fixed, approved and archived.

use std::fs;

use real_agents::models::{
    approved, calls, challenges, edit_proposal, passes, proposal, reproposals, review, settles,
};
use real_agents::{CHANGE, Sandbox, lines_with};
use scripted_models::Script;
use serde_json::json;

use super::implementers::red_then_green;
use super::{all_settings, surprises};
use crate::implementation::project::{GREET, RIGHT, TESTED, begun, does, plan, says, spec};

/// The roles in their order: planner, challenger, implementer, reviewer.
const ROLES: [&str; 4] = ["planner", "challenger", "implementer", "reviewer"];

/// What is done, and by which role.
const STEPS: [(&str, usize); 13] = [
    ("proposal-gen", 0),
    ("proposal-review", 0),
    ("spec-gen-greeting", 0),
    ("spec-review-greeting", 0),
    ("tasks-gen", 0),
    ("tasks-review", 0),
    ("challenge", 1),
    ("reproposal", 0),
    ("challenge", 1),
    ("implement-logic", 2),
    ("review", 3),
    ("fix", 2),
    ("review", 3),
];

fn story(players: [&str; 4]) {
    let [first, second] = red_then_green(players[2]);
    let why = "People want to come back to their own data.";
    let script = challenges(
        Script::new(),
        &[
            review("NEEDS_REVISION", &[("high", "No reason")]),
            settles(approved(), &[("I1", "fixed")]),
        ],
    );
    let script = reproposals(script, &[edit_proposal(why, "People want to be called by name.")])
        .rule(calls("proposal-gen", "create_proposal", proposal(&json!(["greeting"]))))
        .rule(passes("proposal-review"))
        .rule(calls("spec-gen-greeting", "create_spec", spec()))
        .rule(passes("spec-review-greeting"))
        .rule(calls("tasks-gen", "create_tasks", plan(&[GREET])))
        .rule(passes("tasks-review"))
        .rule(does("implement-logic", first))
        .rule(says("NEEDS_FIX", &[("high", "Wrong greeting")]).prompts(1))
        .rule(does("fix", second))
        .rule(says("APPROVED", &[]));
    Sandbox::enter_acp(script, |sandbox| {
        let roles: String = ROLES
            .iter()
            .zip(players)
            .map(|(role, agent)| format!("{role} = \"{agent}\"\n"))
            .collect();
        let config = format!(
            "[roles]\n{roles}[workflow]\nscript_retries = 0\n{TESTED}{}",
            all_settings(&players)
        );
        begun(sandbox, &config);
        let planned = sandbox.plan(&["--auto"]).exits(0);
        assert_ne!(lines_with(&planned.stdout, "APPROVED"), "", "{planned}");
        let implemented = sandbox.run(["impl"]).exits(0);
        assert_eq!(implemented.stdout.lines().next(), Some("✓ APPROVED - add-login is complete"));
        assert_eq!(surprises(sandbox), Vec::<String>::new());

        let state = sandbox.state();
        let expected: Vec<(String, String)> = STEPS
            .iter()
            .map(|(step, role)| ((*step).to_owned(), players[*role].to_owned()))
            .collect();
        let done: Vec<(String, String)> = state
            .llm_calls
            .iter()
            .map(|call| (call.step.to_string(), call.agent.unwrap().to_string()))
            .collect();
        assert_eq!(done, expected);
        for call in &state.llm_calls {
            assert!(call.failure.is_none() && call.session_id.is_some(), "{call:?}");
            assert!(call.tokens_in > 0 && call.tokens_out > 0, "{call:?}");
        }
        let root = sandbox.root();
        assert_eq!(fs::read_to_string(root.join("greet.sh")).unwrap(), RIGHT);
        assert!(!root.parent().unwrap().join("outside.txt").exists());
        assert!(!sandbox.home().join("outside.txt").exists());
        sandbox.run(["verify", CHANGE]).exits(0);
        sandbox.run(["archive"]).exits(0);
        assert!(root.join("agentd/specs/greeting.md").exists());
        let archived = sandbox.run(["list", "--archived", "--json"]).exits(0).json();
        assert_eq!(archived["changes"][0]["change_id"], CHANGE, "{archived:#}");
        sandbox.until_nothing_runs();
    });
}

// contract G1, G2
#[test]
fn gemini_codex_opencode_and_claude_make_a_whole_change() {
    story(["gemini", "codex", "opencode", "claude"]);
}

#[test]
fn opencode_claude_codex_and_gemini_make_a_whole_change() {
    story(["opencode", "claude", "codex", "gemini"]);
}
