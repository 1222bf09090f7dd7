//! `agentd drop`: a change is given up, and nothing of it is lost (W3).

use std::fs;

use agentd_core::diagnostic::Severity;
use serde_json::json;
use test_project::TestProject;

const ID: &str = "add-oauth";

// contract W3
#[test]
fn dropped_change_is_kept_in_the_archive_and_can_come_back() {
    let project = TestProject::new().change(ID).challenged(&[Severity::High]);
    let before = project.contents();
    let asked = project.run(["drop", ID]);
    insta::assert_snapshot!(asked, @"
    exit 2
    --- stderr
    error: there is no terminal to ask on

    hint: drop it: agentd drop add-oauth --yes
    ");
    assert_eq!(project.contents(), before);

    let dropped =
        project.run(["drop", ID, "--note", "We use SAML", "--yes", "--json"]).exits(0).json();
    let name = project.run(["list", "--archived"]).exits(0).stdout;
    let path = format!("agentd/archive/{}", name.trim());
    assert_eq!(
        dropped,
        json!({"version": 1, "action": "dropped", "change_id": ID, "path": path,
            "branch": null, "work_tree": null})
    );
    assert!(!project.has_root("agentd/specs/auth-flow.md"), "nothing is merged");
    assert!(!project.has_root("agentd/changes/add-oauth"));
    let state = project.read_root(&format!("{path}/STATE.yaml"));
    assert!(state.contains("choice: drop") && state.contains("We use SAML"), "{state}");
    let log = project.read_root("agentd/specs/CHANGELOG.md");
    assert!(log.contains("Dropped: "), "{log}");
    assert_eq!(project.run(["verify", ID, "--json"]).exits(0).json()["valid"], true);

    project.run(["unarchive", ID]).exits(0);
    assert_eq!(project.state().phase.name(), "proposed");
    assert!(!project.has_root("agentd/specs/CHANGELOG.md"));
}

/// One that agentd never saw can be dropped, too.
#[test]
fn change_without_a_state_can_be_dropped() {
    let project = TestProject::new().change(ID);
    let _ = fs::remove_file(project.path("STATE.yaml"));
    project.run(["drop", ID, "--yes"]).exits(0);
    assert!(!project.has_root("agentd/changes/add-oauth"));
    project.run(["unarchive", ID]).exits(0);
    assert!(project.path("proposal.md").is_file());
}

/// Branch and worktree are named, and left.
#[test]
fn branch_and_worktree_of_a_dropped_change_are_left() {
    let roles = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";
    let project = TestProject::empty().programs(&["git"]).repository();
    project.commit("Start");
    let project = project.root_file("agentd/config.toml", roles).change(ID).approved();
    project.run(["plan", ID, "--auto", "--git", "worktree"]).exits(0);
    let tree = project.worktree();
    insta::assert_snapshot!(project.run(["drop", ID, "--yes"]), @"
    exit 0
    add-oauth is dropped; it is kept in agentd/archive/[DATE]-add-oauth
    its worktree is left: [ROOT]-agentd/add-oauth
    its branch is left: agentd/add-oauth
    --- stderr
    To undo this: agentd unarchive add-oauth
    ");
    assert_eq!(
        project.git(&["branch", "--list", "agentd/*", "--format=%(refname:short)"]),
        "agentd/add-oauth"
    );
    assert!(tree.join("agentd/archive").is_dir());
}
