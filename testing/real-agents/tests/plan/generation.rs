//! Seeds PR and WF: proposal, specs and tasks, in their order.

use real_agents::Sandbox;
use serde_json::json;

use crate::models::{calls, edit, passes, planner, proposal, spec, tasks};
use crate::world::{CHANGE, World};

/// Scenario: New proposal with specs. PR1.1, PR1.2, PR2.4, PR7, PR9, E1.1, E1.3, E2.1, E2.4,
/// P13, P15; order and flags are those that the shims saw.
#[test]
fn new_proposal_with_specs() {
    Sandbox::enter(planner(&["auth-flow", "token-management"]), |sandbox| {
        let world = World::new(sandbox, "");
        let args = ["proposal", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];
        let ran = world.run(&args).expect(0);
        for text in ["Spec 1/2: auth-flow", "Spec 2/2: token-management", "Review 1: PASS"] {
            ran.says(text);
        }
        for file in ["proposal.md", "specs/auth-flow.md", "specs/token-management.md", "tasks.md"] {
            assert!(world.file(file).is_file(), "{file}");
        }
        assert!(world.text("tasks.md").contains("change_id: add-login"));
        let steps = [
            "proposal-gen",
            "proposal-review",
            "spec-gen-auth-flow",
            "spec-review-auth-flow",
            "spec-gen-token-management",
            "spec-review-token-management",
            "tasks-gen",
            "tasks-review",
        ];
        assert_eq!(world.steps(), steps);
        let state = world.state();
        assert_eq!(state.phase.name(), "proposed");
        assert!(state.complexity.is_some());
        let sessions: std::collections::BTreeSet<_> =
            state.llm_calls.iter().map(|call| call.session_id.clone().unwrap()).collect();
        assert_eq!(sessions.len(), steps.len(), "a fresh session for every phase");
        assert_eq!(state.session_id, state.llm_calls[0].session_id, "the one of proposal.md");
        assert!(state.llm_calls.iter().all(|call| call.tokens_in > 0));
        for call in world.calls() {
            assert_eq!(call.program, "gemini");
            assert_eq!(call.cwd, world.root(), "E2.4");
            assert!(!call.has("--resume"), "{call:?}");
        }
        let asked = sandbox.models().requests();
        let prompt = |step: &str| {
            let first = format!("agentd {step} {CHANGE}\n");
            asked.iter().map(|r| r.prompt.clone()).find(|p| p.starts_with(&first)).unwrap()
        };
        let read = prompt("spec-gen-token-management");
        assert!(read.contains("proposal.md") && read.contains("specs/auth-flow.md"), "{read}");
        let review = prompt("proposal-review");
        assert!(review.contains("<review>PASS</review>"));
        assert!(review.contains("<review>NEEDS_REVISION</review>"));
    });
}

/// Scenario: Proposal without specs. PR4.2
#[test]
fn proposal_without_specs() {
    Sandbox::enter(planner(&[]), |sandbox| {
        let world = World::new(sandbox, "[workflow]\nself_review_iterations = 0\n");
        let args = ["proposal", CHANGE, "Tidy up", "--skip-clarify", "--git", "in-place"];
        world.run(&args).expect(0).says("No specs required for this change");
        assert_eq!(world.steps(), ["proposal-gen", "tasks-gen"]);
    });
}

/// Scenario: Self-review finds issues. E1.4, PR2.3, PR2.4
#[test]
fn self_review_finds_issues() {
    let script = planner(&[]).rule(passes("unused"));
    let mut script = script;
    script.rules.retain(|rule| rule.step.as_deref() != Some("proposal-review"));
    let mend = edit("proposal.md", "come back to their own data", "come back safely");
    let found = calls("proposal-review", "edit_file", mend);
    let mut found = found;
    found.replies[1] = scripted_models::Reply::text("Mended. <review>NEEDS_REVISION</review>");
    let script = script.rule(found);
    Sandbox::enter(script, |sandbox| {
        let world = World::new(sandbox, "");
        let args = ["proposal", CHANGE, "Tidy up", "--skip-clarify", "--git", "in-place"];
        let ran = world.run(&args).expect(0);
        ran.says("Review 1: NEEDS_REVISION (auto-fixed)");
        assert!(world.text("proposal.md").contains("come back safely"), "the edit is kept");
    });
}

/// Scenario: Change ID conflict. C18, PR6
#[test]
fn change_id_conflict() {
    Sandbox::enter(planner(&[]), |sandbox| {
        let world = World::new(sandbox, "[workflow]\nself_review_iterations = 0\n");
        std::fs::create_dir_all(world.file("specs")).unwrap();
        std::fs::write(world.file("proposal.md"), "# Change: mine\n").unwrap();
        let script = json!(null);
        let _ = (script, spec("x"), tasks(&[]), proposal(&json!([])));
        let args = ["proposal", CHANGE, "Tidy up", "--skip-clarify", "--git", "in-place", "--json"];
        let ran = world.run(&args);
        // The scripted model names the change by its first id, which the tool refuses: the
        // id alone is looked at here.
        ran.says("add-login-1");
        assert_eq!(world.text("proposal.md"), "# Change: mine\n", "nothing of it is lost");
    });
}
