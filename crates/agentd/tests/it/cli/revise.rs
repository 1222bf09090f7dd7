//! `agentd revise`: no phase is a dead end (W1).

use agentd_core::diagnostic::Severity;
use agentd_core::phase::Phase;
use agentd_engine::change::documents::update_state;
use serde_json::json;
use test_project::{TestProject, now};

use super::stand_in::{self, CHANGE};

const ID: &str = "add-oauth";
const ROLES: &str = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";

/// A change whose plan is approved, in this phase.
fn project(phase: Phase) -> TestProject {
    let project = TestProject::new().root_file("agentd/config.toml", ROLES).change(ID);
    project.run(["challenge", ID]).exits(0);
    let (store, holder) = (project.store(), project.holder());
    update_state(&store, &project.id(), &holder, now(), |state| {
        state.phase = phase;
        Ok(())
    })
    .unwrap();
    project
}

// contract W1
#[test]
fn edited_plan_goes_back_to_planning_from_every_later_phase() {
    for phase in [Phase::Challenged, Phase::Rejected, Phase::Implementing, Phase::Complete] {
        let project = project(phase);
        let before = project.state();
        project.replace("specs/auth-flow.md", "MUST", "SHALL");
        let revised = project.run(["revise", ID, "--json"]).exits(0).json();
        assert_eq!(
            revised,
            json!({"version": 1, "action": "revised", "change_id": ID, "phase": "proposed",
                "next": ["agentd challenge add-oauth"]})
        );
        let state = project.state();
        assert_eq!(state.plan_review, before.plan_review, "{phase}: nothing is lost");
        assert_eq!((state.llm_calls, state.total_cost), (before.llm_calls, before.total_cost));
        let has_code = matches!(phase, Phase::Implementing | Phase::Complete);
        assert_eq!(state.revision.unwrap().built, has_code.then_some(1), "{phase}");
        // Nobody was asked to change anything, so it is challenged as it is.
        let plan = project.run(["plan", ID, "--auto", "--json"]).exits(0).json();
        assert_eq!(plan["phase"], "challenged", "{phase}: {plan:#}");
        let steps: Vec<String> =
            project.state().llm_calls.iter().map(|call| call.step.to_string()).collect();
        assert_eq!(steps, ["challenge", "challenge"], "{phase}");
        assert_eq!(project.run(["verify", ID, "--json"]).exits(0).json()["valid"], true);
        let log = project.run(["log", ID]).exits(0).stdout;
        assert!(log.contains("revise"), "{log}");
    }
}

#[test]
fn plan_that_is_being_made_is_revised_only_as_somebody_says() {
    let project = TestProject::new().change(ID).challenged(&[Severity::High]);
    insta::assert_snapshot!(project.run(["revise", ID]), @"
    exit 1
    --- stderr
    error: a change that is proposed cannot go back to planning

    hint: see what comes next: agentd status add-oauth
    ");
    assert_eq!(project.state().decisions, []);
    insta::assert_snapshot!(project.run(["revise", ID, "Something else"]), @"
    exit 0
    the plan of add-oauth will be revised as you say

    Next: agentd reproposal add-oauth --fresh
    --- stderr
    ");
    assert_eq!(project.state().decisions.len(), 1);
    assert_eq!(project.state().phase, Phase::Proposed);
    let wrong = project.run(["revise", "add-oath", "--json"]).exits(1).json_error();
    assert_eq!(wrong["kind"], "no_such_change");
}

/// The edit that used to be a dead end: each command that refuses it names the way on.
#[test]
fn refused_commands_name_revise() {
    let project = project(Phase::Implementing);
    project.replace("specs/auth-flow.md", "MUST", "SHALL");
    for command in ["impl", "implement", "review", "fix"] {
        let error = project.run([command, ID, "--json"]).exits(1).json_error();
        let hint = "go back to planning with the plan as it is now; the code stays: agentd revise add-oauth";
        assert_eq!(error["hints"], json!([hint]), "{command}: {error:#}");
    }
    let status = project.run(["status", ID, "--json"]).exits(0).json();
    assert_eq!(status["next"], json!(["agentd revise add-oauth"]));
}

/// Code that was written before the first of two revisions is still that of the plan of then.
#[test]
fn second_revision_remembers_the_plan_that_was_built() {
    let project = project(Phase::Implementing);
    project.run(["revise", ID]).exits(0);
    project.replace("specs/auth-flow.md", "MUST", "SHALL");
    project.run(["plan", ID, "--auto"]).exits(0);
    project.run(["revise", ID]).exits(0);
    assert_eq!(project.state().revision.unwrap().built, Some(1));
    let status = project.run(["status", ID, "--json"]).exits(0).json();
    assert_eq!(status["stale"][0]["what"], "auth-flow:R1", "{status:#}");
}

/// W2: the challenger judges what is new, and the record of what was judged before is believed only
/// where it is the one that agentd wrote.
#[test]
fn challenger_of_a_revised_plan_is_told_what_is_new() {
    let project = stand_in::project("self_review_iterations = 0\n", &[]);
    let approved =
        json!({"change_id": CHANGE, "verdict": "APPROVED", "summary": "Read.", "issues": []});
    stand_in::answers(&project, "challenge", &[("append_review", approved)]);
    let plan = ["plan", CHANGE, "Add a login", "--quick", "--auto", "--git", "in-place"];
    project.run(plan).exits(0);
    let prompt = stand_in::prompt(&project, "challenge");
    assert!(!prompt.contains("Only this is new"), "{prompt}");
    let spec = format!("agentd/changes/{CHANGE}/specs/auth-flow.md");
    let edit = |from: &str, to: &str| {
        project.write_root(&spec, project.read_root(&spec).replace(from, to));
        project.run(["revise", CHANGE]).exits(0);
        project.run(["challenge", CHANGE]).exits(0);
        stand_in::prompt(&project, "challenge")
    };
    let prompt = edit("within 2 s", "within 3 s");
    let told = "Only this is new:\n```data: what has changed\nauth-flow:R1 has changed\n```\n";
    assert!(prompt.contains(told), "{prompt}");

    let round = format!("agentd/changes/{CHANGE}/rounds/0002.json");
    let forged = project.read_root(&round).replace("within 3 s", "within 4 s");
    project.write_root(&round, forged);
    let prompt = edit("within 3 s", "within 4 s");
    assert!(!prompt.contains("Only this is new"), "{prompt}");
}

/// A plan that goes back to planning and stays the same is approved by the verdict that it has.
#[test]
fn unchanged_plan_is_approved_again_without_a_call() {
    let project = project(Phase::Implementing);
    project.run(["revise", ID]).exits(0);
    let calls = project.state().llm_calls.len();
    let report = project.run(["challenge", ID, "--json"]).exits(0).json();
    assert_eq!(report["phase"], "challenged", "{report:#}");
    assert_eq!(project.state().llm_calls.len(), calls);
    assert_eq!(project.run(["verify", ID, "--json"]).exits(0).json()["valid"], true);
}
