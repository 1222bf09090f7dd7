//! `agentd drop`: a change is given up, and its record is never lost (W3).

use std::fs;

use agentd_core::diagnostic::Severity;
use serde_json::json;
use test_project::{TestProject, git};

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
    let listed = project.run(["list", "--archived", "--json"]).exits(0).json();
    let path = format!("agentd/archive/{}", listed["archived"][0].as_str().unwrap());
    assert_eq!(
        dropped,
        json!({"version": 1, "action": "dropped", "change_id": ID, "path": path,
            "branch": null, "work_tree": null, "deleted": null})
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
    its branch is kept: agentd/add-oauth
    --- stderr
    To undo this: agentd unarchive add-oauth
    ");
    assert_eq!(
        project.git(&["branch", "--list", "agentd/*", "--format=%(refname:short)"]),
        "agentd/add-oauth"
    );
    assert!(tree.join("agentd/archive").is_dir());
}

const ROLES: &str = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";

/// A repository with an approved plan that is worked on like this.
fn placed(placement: &str) -> TestProject {
    let project = TestProject::empty().programs(&["git"]).repository();
    let project = project.root_file("agentd/config.toml", ROLES);
    project.commit("Start");
    let project = project.change(ID).approved();
    project.run(["plan", ID, "--auto", "--git", placement]).exits(0);
    project
}

fn branches(project: &TestProject) -> String {
    project.git(&["branch", "--list", "agentd/*", "--format=%(refname:short)"])
}

/// The record of a change that was dropped, in the main checkout.
fn is_recorded(project: &TestProject) {
    let listed = project.run(["list", "--json"]).exits(0).json();
    assert_eq!(listed["changes"], json!([]));
    let verified = project.run(["verify", ID, "--json"]).exits(0).json();
    assert_eq!(verified["valid"], true, "{verified:#}");
    project.run(["unarchive", ID]).exits(0);
    let status = project.run(["status", ID, "--json"]).exits(0).json();
    assert_eq!((&status["phase"], &status["record"]), (&json!("challenged"), &json!(null)));
    assert_eq!(status["git"]["work_tree"], project.root().to_str().unwrap());
}

// contract W3
#[test]
fn worktree_and_branch_are_deleted_and_the_record_stays() {
    let project = placed("worktree");
    let tree = project.worktree();
    fs::write(tree.join("new.rs"), "fn main() {}\n").unwrap();
    git(&tree, &["add", "new.rs"]);
    git(&tree, &["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "Work"]);
    fs::write(tree.join("draft.rs"), "fn main() {}\n").unwrap();
    let asked = project.run(["drop", ID, "--delete"]);
    insta::assert_snapshot!(asked, @"
    exit 2
    --- stderr
    deletes the worktree [ROOT]-agentd/add-oauth: 1 uncommitted file would be lost
    deletes the branch `agentd/add-oauth`: 1 commit on no other branch would be lost
    error: there is no terminal to ask on

    hint: drop it: agentd drop add-oauth --delete --yes
    ");
    assert!(tree.join("draft.rs").is_file() && project.state().phase.name() == "challenged");
    insta::assert_snapshot!(project.run(["drop", ID, "--delete", "--yes"]), @"
    exit 0
    add-oauth is dropped; it is kept in agentd/archive/[DATE]-add-oauth
    its worktree is deleted: [ROOT]-agentd/add-oauth
    its branch is deleted: agentd/add-oauth
    --- stderr
    deletes the worktree [ROOT]-agentd/add-oauth: 1 uncommitted file would be lost
    deletes the branch `agentd/add-oauth`: 1 commit on no other branch would be lost
    To undo this: agentd unarchive add-oauth
    ");
    assert!(!tree.exists());
    assert_eq!(branches(&project), "");
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
    is_recorded(&project);
    // It can be worked on again.
    project.run(["plan", ID, "--auto", "--git", "worktree"]).exits(0);
    assert!(tree.is_dir());
}

// contract W3
#[test]
fn branch_that_is_checked_out_is_left_for_the_one_before() {
    let project = placed("branch");
    project.write_root("src/auth.rs", "fn main() {}\n");
    project.commit("add-oauth: task 1.1");
    project.write_root("mine.txt", "not committed\n");
    let dropped = project.run(["drop", ID, "--delete", "--yes", "--json"]).exits(0).json();
    assert_eq!(dropped["deleted"], json!({"branch": "agentd/add-oauth", "work_tree": null}));
    assert_eq!((&dropped["branch"], &dropped["work_tree"]), (&json!(null), &json!(null)));
    assert_eq!(project.git(&["branch", "--show-current"]), "main");
    assert_eq!(branches(&project), "");
    assert_eq!(project.read_root("mine.txt"), "not committed\n");
    is_recorded(&project);
}

/// What agentd did not create, or someone else uses, is left, with the reason.
// contract W3
#[test]
fn what_belongs_to_someone_else_is_not_deleted() {
    let check = |project: TestProject, reasons: &[&str]| {
        let dropped = project.run(["drop", ID, "--delete", "--yes"]).exits(0);
        let said = project.mask(&dropped.stderr);
        let left: Vec<&str> = said.lines().filter(|line| line.contains(" stays: ")).collect();
        assert_eq!(left, reasons, "{said}");
        assert_eq!(branches(&project), "agentd/add-oauth");
        assert!(dropped.stdout.contains("its branch is kept: agentd/add-oauth"), "{dropped}");
    };
    let base = || {
        let project = TestProject::empty().programs(&["git"]).repository();
        let project = project.root_file("agentd/config.toml", ROLES);
        project.commit("Start");
        project.change(ID).approved()
    };
    let not_created = "the branch `agentd/add-oauth` stays: agentd did not create it";
    // A branch, and a worktree, that were there before.
    let project = base();
    project.git(&["branch", "agentd/add-oauth"]);
    project.run(["plan", ID, "--auto", "--git", "branch"]).exits(0);
    check(project, &[not_created]);
    let project = base();
    let tree = project.worktree();
    project.git(&["worktree", "add", "-q", "-b", "agentd/add-oauth", tree.to_str().unwrap()]);
    project.run(["plan", ID, "--auto", "--git", "worktree"]).exits(0);
    let stays = "the worktree [ROOT]-agentd/add-oauth stays: agentd did not create it";
    check(project, &[stays, not_created]);
    // The branch is checked out in another place.
    let project = placed("branch");
    project.git(&["switch", "-q", "main"]);
    let other = project.base().join("other");
    project.git(&["worktree", "add", "-q", other.to_str().unwrap(), "agentd/add-oauth"]);
    check(project, &["the branch `agentd/add-oauth` stays: it is checked out in [BASE]/other"]);
    // The worktree has another change that is in no commit.
    let project = placed("worktree");
    let other = project.worktree().join("agentd/changes/other");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("proposal.md"), "# Change: other\n").unwrap();
    check(
        project,
        &[
            "the worktree [ROOT]-agentd/add-oauth stays: agentd/changes/other is not committed",
            "the branch `agentd/add-oauth` stays: it is checked out in [ROOT]-agentd/add-oauth",
        ],
    );
}

/// A repository cannot name a branch of the user's as one that agentd created.
#[test]
fn state_of_a_clone_deletes_nothing() {
    let project = placed("branch");
    // What this machine knows is gone: to it, the change came with the repository.
    fs::remove_dir_all(project.home().join(".local/state/agentd")).unwrap();
    let dropped = project.run(["drop", ID, "--delete", "--yes"]).exits(0);
    assert!(dropped.stderr.contains("agentd did not create it"), "{dropped}");
    assert_eq!(branches(&project), "agentd/add-oauth");
    // Nor can it name another branch, whatever agentd has created.
    let project = placed("branch");
    project.git(&["branch", "mine"]);
    let project = project.edit("STATE.yaml", "branch: agentd/add-oauth", "branch: mine");
    assert_ne!(project.run(["drop", ID, "--delete", "--yes"]).code, 0);
    assert_eq!(project.git(&["branch", "--list", "mine"]).trim(), "mine");
}

/// Killed in front of every call that changes the disk, the change is open or dropped, whole, and its
/// record is never lost with its worktree.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn heavy_killed_drop_keeps_the_record() {
    use crate::cli::archive_kills::{moments, traced, try_each};

    let command = ["drop", ID, "--delete", "--yes"];
    let total = traced(&placed("worktree"), &command, None);
    let done = try_each(&moments(total), |at| {
        let project = placed("worktree");
        traced(&project, &command, Some(at));
        let listed = project.run(["list", "--json"]).exits(0).json();
        let open = listed["changes"].as_array().unwrap().len();
        if open == 1 {
            let verified = project.run(["verify", ID, "--json"]).exits(0).json();
            assert_eq!(verified["valid"], true, "call {at}: {verified:#}");
            project.run(command).exits(0);
        }
        assert_eq!(project.run(["list", "--json"]).exits(0).json()["changes"], json!([]));
        is_recorded(&project);
        open == 0
    });
    let after = done.iter().filter(|dropped| **dropped).count();
    assert!(after > 0 && done.len() - after > 10, "{after} of {}", done.len());
}
