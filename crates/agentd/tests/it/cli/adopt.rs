//! Plans that were written by hand, or by an interactive agent, enter the workflow (W4).

use std::fs;

use test_project::TestProject;

const ID: &str = "add-oauth";
const ROLES: &str = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";
const ADOPTED: &str = "adopted `add-oauth`, which had no STATE.yaml";

/// A whole plan, and no state.
fn project() -> TestProject {
    let project = TestProject::new().root_file("agentd/config.toml", ROLES).change(ID);
    fs::remove_file(project.path("STATE.yaml")).ok();
    project
}

// contract W4
#[test]
fn plan_challenge_and_validate_adopt_a_plan_without_a_state() {
    for (command, phase) in [
        (&["plan", ID, "--auto", "--git", "in-place"][..], "challenged"),
        (&["challenge", ID], "challenged"),
        (&["validate", ID], "proposed"),
    ] {
        let project = project();
        let status = project.run(["status", ID, "--json"]).exits(0).json();
        assert_eq!(status["next"], serde_json::json!(["agentd plan add-oauth"]));
        let run = project.run(command).exits(0);
        assert_eq!(run.stderr.matches(ADOPTED).count(), 1, "{command:?}: {run:?}");
        let state = project.state();
        assert_eq!(state.phase.name(), phase, "{command:?}");
        let description = state.description.unwrap().to_string();
        assert!(project.read("proposal.md").contains(&description), "{description}");
        // Once is enough.
        let again = project.run(command);
        assert!(!again.stderr.contains("adopted"), "{again:?}");
    }
}

/// Without its state, a change has no verdicts. Removing the file is no way to lose a rejection.
#[test]
fn change_whose_state_was_removed_is_not_adopted() {
    let project = project();
    project.run(["challenge", ID]).exits(0);
    for also in ["", "journal.jsonl"] {
        let _ = fs::remove_file(project.path("STATE.yaml"));
        if !also.is_empty() {
            fs::remove_file(project.path(also)).unwrap();
        }
        for command in [
            &["plan", ID, "--auto", "--git", "in-place", "--json"][..],
            &["challenge", ID, "--json"],
        ] {
            let error = project.run(command).exits(1).json_error();
            assert_eq!(error["kind"], "no_state", "{command:?}: {error:#}");
        }
        project.run(["validate", ID]).exits(0);
        assert!(!project.path("STATE.yaml").exists());
    }
}
