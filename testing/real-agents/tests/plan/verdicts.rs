//! Each verdict in both modes, and what follows from it.

use real_agents::Sandbox;

use crate::models::{approved, challenges, planner, review};
use crate::world::World;

const QUICK: &str = "[workflow]\nself_review_iterations = 0\n";

/// C10, WF2, WF6, P22, P23
#[test]
fn approved_is_challenged() {
    let script = challenges(planner(&["auth-flow"]), &[approved()]);
    Sandbox::enter(script, |sandbox| {
        let world = World::new(sandbox, QUICK);
        let ran = world.plan(&["--json"]).expect(0);
        let json = ran.json();
        assert_eq!(json["action"], "challenged");
        assert_eq!(json["phase"], "challenged");
        assert_eq!(json["verdict"], "APPROVED");
        assert_eq!(json["iteration"], 0);
        assert_eq!(json["issues"], serde_json::json!({"high": 0, "medium": 0, "low": 0}));
        assert!(json["cost_usd"].as_f64().unwrap() > 0.0);
        let last = world.calls().pop().unwrap();
        assert_eq!(last.program, "codex");
        assert!(world.file("CHALLENGE.md").is_file() && world.file("AGENTS.md").is_file());
        let review = world.state().plan_review.unwrap();
        assert_eq!(review.planner_vendor.as_str(), "Google");
        assert_eq!(review.challenger_vendor.as_str(), "OpenAI");
        let calls = world.calls().len();
        let again = world.run(&["plan", "--json"]).expect(0).json();
        assert_eq!(again["action"], "already_challenged");
        assert_eq!(world.calls().len(), calls, "nothing is paid twice");
    });
}

/// C10, P22, P23: a person is waited for, and nobody is paid meanwhile.
#[test]
fn needs_revision_waits_for_a_person() {
    let found = review("NEEDS_REVISION", &[("high", "No lock"), ("low", "Typo")]);
    Sandbox::enter(challenges(planner(&["auth-flow"]), &[found]), |sandbox| {
        let world = World::new(sandbox, QUICK);
        let ran = world.plan(&[]).expect(0);
        ran.says("NEEDS_REVISION - Found 1 HIGH, 0 MEDIUM, 1 LOW severity issues");
        ran.says("No lock");
        ran.says("agentd reproposal add-login");
        assert_eq!(world.state().phase.name(), "proposed");
        let calls = world.calls().len();
        let waiting = world.run(&["plan", "--json"]).expect(0).json();
        assert_eq!(waiting["action"], "waiting_for_decision");
        assert_eq!(waiting["verdict"], "NEEDS_REVISION");
        world.run(&["plan", "--exit-code"]).expect(1);
        assert_eq!(world.calls().len(), calls);
    });
}

/// E3.3, WF2, C20
#[test]
fn rejected_ends_at_once() {
    let found = review("REJECTED", &[("high", "The wrong thing")]);
    Sandbox::enter(challenges(planner(&["auth-flow"]), &[found]), |sandbox| {
        let world = World::new(sandbox, QUICK);
        let ran = world.plan(&["--auto"]).expect(1);
        ran.says("REJECTED");
        ran.says("The wrong thing");
        assert_eq!(world.programs().iter().filter(|p| *p == "codex").count(), 1, "E3.3");
        assert_eq!(world.state().phase.name(), "rejected");
        let again = world.run(&["plan", "--json"]).expect(1).json();
        assert_eq!(again["action"], "rejected");
        world.run(&["challenge"]).expect(1).says("not changed since it was rejected");
    });
}
