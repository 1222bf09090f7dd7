//! `agentd rename`: another ID, and nothing else is different (W3).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use test_project::{TestProject, git};

const OLD: &str = "add-oauth";
const NEW: &str = "add-login";
const ROLES: &str = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";

/// A repository with an approved plan that is worked on like this.
fn project(placement: &str) -> TestProject {
    let project = TestProject::empty().programs(&["git"]).repository();
    project.write_root("README.md", "# Shop\n");
    project.commit("Start");
    let project = project.root_file("agentd/config.toml", ROLES).change(OLD).approved();
    project.run(["plan", OLD, "--auto", "--git", placement]).exits(0);
    project
}

/// The same with a plan that a challenger has approved, in a review.
fn judged() -> TestProject {
    let project = TestProject::empty().programs(&["git"]).repository();
    project.commit("Start");
    let project = project.root_file("agentd/config.toml", ROLES).about(OLD);
    let what = "Add login with email and password; lock after 5 attempts";
    project.run(["plan", OLD, what, "--auto", "--skip-clarify", "--git", "in-place"]).exits(0);
    project
}

/// Everything that agentd keeps about projects, by name.
fn kept(project: &TestProject) -> Vec<String> {
    let mut names = Vec::new();
    let mut open = vec![project.home().join(".local/state/agentd/projects")];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            names.push(entry.file_name().into_string().unwrap());
            open.push(entry.path());
        }
    }
    names.sort();
    names
}

fn json_in(project: &TestProject, dir: &Path, args: &[&str]) -> Value {
    project.run([&["-C", dir.to_str().unwrap()], args, &["--json"]].concat()).exits(0).json()
}

/// What holds of a renamed change, in every checkout, and what can be done with it.
fn is_renamed(project: &TestProject, checkouts: &[PathBuf]) {
    is_whole(project, checkouts);
    for checkout in checkouts {
        for command in ["validate", "log", "cost", "trace", "show", "overlap"] {
            json_in(project, checkout, &[command, NEW]);
        }
        let again = json_in(project, checkout, &["plan", NEW, "--auto"]);
        assert_eq!(again["action"], "already_challenged", "the verdict stands");
    }
}

fn is_whole(project: &TestProject, checkouts: &[PathBuf]) {
    for checkout in checkouts {
        let listed = json_in(project, checkout, &["list"]);
        let ids: Vec<&Value> =
            listed["changes"].as_array().unwrap().iter().map(|it| &it["change_id"]).collect();
        assert_eq!(ids, [NEW], "{listed:#}");
        let status = json_in(project, checkout, &["status", NEW]);
        assert_eq!((&status["phase"], &status["record"]), (&json!("challenged"), &Value::Null));
        assert_eq!((&status["stale"], &status["validation"]["high"]), (&json!([]), &json!(0)));
        assert_eq!(status["plan_changed_since_review"], false, "{status:#}");
        let next = status["next"].as_array().unwrap();
        assert_eq!(next.last(), Some(&json!("agentd impl add-login")), "{status:#}");
        let verified = json_in(project, checkout, &["verify", NEW]);
        assert_eq!(verified["valid"], true, "{verified:#}");
        let gone = project.run(["-C", checkout.to_str().unwrap(), "status", OLD, "--json"]);
        assert_eq!(gone.json()["error"]["kind"], "no_such_change");
    }
    let is_former = |name: &String| name == OLD || name.starts_with(&format!("{OLD}."));
    let former = kept(project).into_iter().filter(is_former);
    assert_eq!(former.collect::<Vec<_>>(), [""; 0], "nothing is kept under the former name");
}

// contract W3
#[test]
fn renamed_change_keeps_its_verdict_and_its_record() {
    let project = judged();
    project.write("comments.md", "---\nchange_id: add-oauth\ntype: comments\n---\n\n# Comments\n");
    let proposal = project.read("proposal.md");
    let review = proposal.split_once("\n<!-- ").unwrap().1;
    let journal = project.read("journal.jsonl");
    insta::assert_snapshot!(project.run(["rename", OLD, NEW]), @"
    exit 0
    add-oauth is add-login now, in agentd/changes/add-login
    --- stderr
    ");
    let project = project.about(NEW);
    assert!(!project.has_root("agentd/changes/add-oauth"));
    is_renamed(&project, &[project.root()]);
    // What was said is as it was said.
    assert!(project.read("proposal.md").ends_with(review));
    let now = project.read("journal.jsonl");
    let entry: Value = serde_json::from_str(now.strip_prefix(&journal).unwrap()).unwrap();
    assert_eq!(
        (&entry["event"], &entry["from"], &entry["to"], &entry["by"]),
        (&json!("renamed"), &json!(OLD), &json!(NEW), &json!("ada"))
    );
    for (file, named) in [
        ("proposal.md", "id: add-login\n"),
        ("proposal.md", "# Change: add-login\n"),
        ("tasks.md", "change_id: add-login\n"),
        ("comments.md", "change_id: add-login\n"),
        ("STATE.yaml", "change_id: add-login\n"),
        ("STATE.yaml", "renamed:\n  - from: add-oauth\n"),
    ] {
        assert!(project.read(file).contains(named), "{file}: {}", project.read(file));
    }
    let verified = project.run(["verify", NEW]).exits(0).stdout;
    assert!(verified.contains("`add-oauth` until ada renamed it in entry"), "{verified}");

    // Back, and on to the archive.
    project.run(["rename", NEW, OLD, "--json"]).exits(0);
    project.run(["rename", OLD, NEW]).exits(0);
    is_renamed(&project, &[project.root()]);
    project.run(["archive", NEW, "--force", "by hand"]).exits(0);
    assert_eq!(project.run(["verify", NEW, "--json"]).exits(0).json()["valid"], true);
    let changelog = project.read_root("agentd/specs/CHANGELOG.md");
    assert!(changelog.contains(NEW) && !changelog.contains("add-oauth:"), "{changelog}");
    project.run(["unarchive", NEW]).exits(0);
    is_renamed(&project, &[project.root()]);
}

/// An edit of the plan is not taken for the approved one because the change was renamed.
#[test]
fn rename_hides_no_edit() {
    for edit_first in [true, false] {
        let project = project("in-place");
        let edit = |id: &str| {
            let file = project.root().join(format!("agentd/changes/{id}/tasks.md"));
            let text = fs::read_to_string(&file).unwrap();
            fs::write(file, text.replace("src/auth.rs", "src/other.rs")).unwrap();
        };
        if edit_first {
            edit(OLD);
        }
        project.run(["rename", OLD, NEW]).exits(0);
        if !edit_first {
            edit(NEW);
        }
        let status = project.run(["status", NEW, "--json"]).exits(0).json();
        assert_eq!(status["plan_changed_since_review"], true, "{edit_first}");
        assert_eq!(project.run(["verify", NEW]).code, 1, "{edit_first}");
        // Nor can a former name be added by hand.
        let state = project.root().join("agentd/changes/add-login/STATE.yaml");
        let text = fs::read_to_string(&state).unwrap();
        fs::write(&state, text.replace("from: add-oauth", "from: add-other")).unwrap();
        let refused = project.run(["challenge", NEW, "--json"]).json();
        assert_eq!(refused["error"]["kind"], "state_edited");
    }
}

// contract W3
#[test]
fn branch_is_renamed_and_commits_of_the_former_name_are_traced() {
    let project = project("branch");
    project.write_root("src/auth.rs", "fn main() {}\n");
    project.commit("add-oauth: task 1.1");
    let report = project.run(["rename", OLD, NEW, "--json"]).exits(0).json();
    assert_eq!(
        report,
        json!({"version": 1, "action": "renamed", "change_id": NEW, "from": OLD,
            "path": "agentd/changes/add-login", "branch": "agentd/add-login", "work_tree": null})
    );
    assert_eq!(project.git(&["branch", "--show-current"]), "agentd/add-login");
    assert_eq!(project.git(&["branch", "--list", "agentd/add-oauth"]), "");
    is_renamed(&project, &[project.root()]);
    let trace = project.run(["trace", NEW]).exits(0).stdout;
    assert!(trace.contains("add-oauth: task 1.1"), "{trace}");
}

// contract W3
#[test]
fn change_in_a_worktree_is_renamed_from_anywhere() {
    for from_worktree in [false, true] {
        let project = project("worktree");
        let (root, tree) = (project.root(), project.worktree());
        let start = if from_worktree { &tree } else { &root };
        let run = project.run(["-C", start.to_str().unwrap(), "rename", OLD, NEW]);
        let expected = "add-oauth is add-login now, in agentd/changes/add-login\n\
                        its branch: agentd/add-login\n\
                        its worktree stays where it is: [ROOT]-agentd/add-oauth\n";
        assert_eq!(project.mask(run.exits(0).stdout), expected);
        assert_eq!(git(&tree, &["branch", "--show-current"]), "agentd/add-login");
        is_renamed(&project, &[root, tree]);
    }
}

/// The main checkout has the documents from a commit, which would be another change now.
#[test]
fn committed_documents_of_the_former_name_are_removed() {
    let project = project("in-place");
    project.commit("Plan");
    project.run(["plan", OLD, "--auto", "--git", "worktree"]).exits(0);
    insta::assert_snapshot!(project.run(["rename", OLD, NEW]), @"
    exit 0
    add-oauth is add-login now, in agentd/changes/add-login
    its branch: agentd/add-login
    its worktree stays where it is: [ROOT]-agentd/add-oauth
    --- stderr
    [ROOT]/agentd/changes/add-oauth is removed; git has it in a commit.
    ");
    is_renamed(&project, &[project.root(), project.worktree()]);
}

/// Questions that wait are asked under the new name.
#[test]
fn questions_wait_under_the_new_name() {
    let project = TestProject::new().root_file("agentd/config.toml", ROLES);
    let asked = project.run(["clarify", OLD, "Sign in with Google", "--json"]).exits(0).json();
    project.run(["rename", OLD, NEW]).exits(0);
    let again = project.run(["clarify", NEW, "--json"]).exits(0).json();
    assert_eq!(again["questions"], asked["questions"]);
    assert_eq!(again["cost_usd"], 0.0);
    assert!(!project.has_root("agentd/.agents/questions/add-oauth.json"));
}

/// One that agentd never saw has documents only.
#[test]
fn change_without_a_state_can_be_renamed() {
    let project = TestProject::new().change(OLD);
    fs::remove_file(project.path("STATE.yaml")).unwrap();
    fs::remove_file(project.path("journal.jsonl")).ok();
    project.run(["rename", OLD, NEW]).exits(0);
    let project = project.about(NEW);
    assert!(project.read("tasks.md").contains("change_id: add-login"));
    assert!(!project.path("STATE.yaml").exists());
}

// contract W3
#[test]
fn rename_is_refused_where_it_would_take_something_over() {
    let project = project("branch").change("other");
    project.git(&["branch", "agentd/taken"]);
    project.git(&["branch", "agentd/deep/er"]);
    symlink("/nowhere", project.root().join("agentd/changes/linked")).unwrap();
    let archived = project.change("archived");
    archived.run(["drop", "archived", "--yes"]).exits(0);
    let before = archived.contents();
    let names = kept(&archived);
    for (from, to, code, kind) in [
        (OLD, "Add_Login", 2, "usage"),
        (OLD, "../x", 2, "usage"),
        (OLD, "", 2, "usage"),
        (OLD, OLD, 1, "id_taken"),
        (OLD, "other", 1, "id_taken"),
        (OLD, "linked", 1, "id_taken"),
        (OLD, "archived", 1, "id_taken"),
        (OLD, "taken", 1, "git_branch_name_taken"),
        (OLD, "deep", 1, "git_branch_name_taken"),
        ("archived", NEW, 1, "no_such_change"),
        ("nope", NEW, 1, "no_such_change"),
    ] {
        let run = archived.run(["rename", from, to, "--json"]).exits(code).json();
        assert_eq!(run["error"]["kind"], kind, "{from} → {to}: {run:#}");
    }
    assert_eq!(archived.contents(), before);
    assert_eq!(kept(&archived), names);
    let project = archived.about(OLD);
    let running = project.store().try_run_lock(&project.id(), &project.holder()).unwrap();
    let run = project.run(["rename", OLD, NEW, "--json"]).exits(1).json();
    assert_eq!(run["error"]["kind"], "locked");
    assert_eq!(project.contents(), before);
    drop(running);
    project.run(["rename", OLD, NEW]).exits(0);
}

/// Notes and links that came with the repository decide nothing, and lead nowhere.
#[test]
fn hostile_files_have_no_part_in_a_rename() {
    let project = project("in-place");
    let forged = json!({"from": OLD, "to": "evil", "branch": false,
        "record": {"state": "change_id: evil\nphase: complete\n", "journal": ""}});
    for place in ["rename.json", "agentd/rename.json", "agentd/.locks/rename.json"] {
        project.write_root(place, forged.to_string());
    }
    project.run(["list"]).exits(0);
    assert!(!project.has_root("agentd/changes/evil"));

    let outside = project.base().join("outside.md");
    fs::write(&outside, "---\nchange_id: add-oauth\n---\n# Challenge: add-oauth\n").unwrap();
    for file in ["comments.md", "CHALLENGE.md"] {
        fs::remove_file(project.path(file)).ok();
        symlink(&outside, project.path(file)).unwrap();
    }
    fs::create_dir(project.path("clarifications.md")).unwrap();
    fs::remove_file(project.path("journal.jsonl")).unwrap();
    symlink(&outside, project.path("journal.jsonl")).unwrap();
    project.run(["rename", OLD, NEW]).exits(0);
    let project = project.about(NEW);
    assert!(fs::read_to_string(outside).unwrap().contains("change_id: add-oauth"));
    assert!(project.path("journal.jsonl").symlink_metadata().unwrap().is_file());
    assert!(project.path("comments.md").symlink_metadata().unwrap().is_symlink());
    assert_eq!(project.run(["status", NEW, "--json"]).exits(0).json()["phase"], "challenged");
}

/// Killed in front of every call that changes the disk, the change has one of the two names, whole, and
/// the next command, wherever it is run, leaves nothing half done.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn heavy_killed_rename_leaves_one_name() {
    use crate::cli::archive_kills::{moments, traced, try_each};

    for placement in ["in-place", "branch", "worktree"] {
        let begin = || project(placement);
        let command = ["rename", OLD, NEW];
        let total = traced(&begin(), &command, None);
        let done = try_each(&moments(total), |at| {
            let project = begin();
            traced(&project, &command, Some(at));
            let listed = project.run(["list", "--json"]).exits(0).json();
            let ids = listed["changes"].as_array().unwrap();
            assert_eq!(ids.len(), 1, "{placement} call {at}: {listed:#}");
            let moved = ids[0]["change_id"] == NEW;
            assert!(moved || ids[0]["change_id"] == OLD, "{placement} call {at}");
            assert!(!kept(&project).contains(&"rename.json".to_owned()), "{placement} call {at}");
            let mut checkouts = vec![project.root()];
            checkouts.extend((placement == "worktree").then(|| project.worktree()));
            let branches =
                || project.git(&["branch", "--list", "agentd/*", "--format=%(refname:short)"]);
            if !moved {
                let expected = if placement == "in-place" { "" } else { "agentd/add-oauth" };
                assert_eq!(branches(), expected, "{placement} call {at}");
                for checkout in &checkouts {
                    let verified = json_in(&project, checkout, &["verify", OLD]);
                    assert_eq!(verified["valid"], true, "{placement} call {at}: {verified:#}");
                    let status = json_in(&project, checkout, &["status", OLD]);
                    let branch = (placement != "in-place").then_some("agentd/add-oauth");
                    assert_eq!(status["git"]["branch"], json!(branch), "{placement} call {at}");
                }
                project.run(command).exits(0);
            }
            is_whole(&project, &checkouts);
            let expected = if placement == "in-place" { "" } else { "agentd/add-login" };
            assert_eq!(branches(), expected, "{placement} call {at}");
            moved
        });
        let after = done.iter().filter(|moved| **moved).count();
        assert!(after > 5 && done.len() - after > 5, "{after} of {}", done.len());
    }
}
