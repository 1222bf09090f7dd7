//! Changes in worktrees: where their documents are, and who finds them (P6, C36).

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use test_project::{Output, TestProject, git, write};

use crate::mcp::{Client, Servers as _};
use crate::viewer::Viewer;

const ID: &str = "add-login";
const ROLES: &str = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";
const WHAT: &str = "Add login with email and password; lock after 5 attempts";
const DOCUMENTS: [&str; 5] =
    ["STATE.yaml", "journal.jsonl", "proposal.md", "specs/login.md", "tasks.md"];

/// A repository with one commit, in which agentd was set up and nobody has committed that.
fn project() -> TestProject {
    let project = TestProject::empty().programs(&["git"]).repository();
    project.write_root("README.md", "# Shop\n");
    project.commit("Start");
    project.root_file("agentd/config.toml", ROLES).about(ID)
}

fn plan(project: &TestProject) -> Output {
    project.run(["plan", ID, WHAT, "--auto", "--skip-clarify", "--git", "worktree"]).exits(0)
}

fn run_in(project: &TestProject, dir: &Path, args: &[&str]) -> Output {
    project.run(["-C", dir.to_str().unwrap()].iter().chain(args))
}

fn json_in(project: &TestProject, dir: &Path, args: &[&str]) -> Value {
    run_in(project, dir, &[args, &["--json"]].concat()).exits(0).json()
}

// contract P6, C36
#[test]
fn documents_of_a_change_are_in_its_worktree() {
    let project = project();
    let (root, tree) = (project.root(), project.worktree());
    insta::assert_snapshot!(plan(&project).without_usage(), @"
    exit 0
    ✓ APPROVED - passes the rules; nobody has judged the idea
    cost so far: $[COST]

    Next: agentd show add-login
    --- stderr
    `agentd/add-login` starts from `main`.
    Not committed, but copied to the worktree: agentd/config.toml.
    The documents of `add-login` are in the worktree: [ROOT]-agentd/add-login/agentd/changes/add-login.
    complexity: high (security (`login`))
    Proposal: started (builtin)
    Proposal: done, [DURATION], proposal.md is written
    Proposal, review: started (builtin)
    Proposal, review: done, [DURATION], Review 1: PASS
    Spec 1/1: login: started (builtin)
    Spec 1/1: login: done, [DURATION], specs/login.md is written
    Spec 1/1: login, review: started (builtin)
    Spec 1/1: login, review: done, [DURATION], Review 1: PASS
    Tasks: started (builtin)
    Tasks: done, [DURATION], tasks.md is written
    Tasks, review: started (builtin)
    Tasks, review: done, [DURATION], Review 1: PASS
    Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
    warning: planner and challenger are both from agentd: they have the same blind spots
    Challenge: started (builtin)
    Challenge: done, [DURATION], APPROVED - passes the rules; nobody has judged the idea
    ");
    for file in DOCUMENTS {
        assert!(tree.join("agentd/changes").join(ID).join(file).is_file(), "{file}");
    }
    assert!(!root.join("agentd/changes").join(ID).exists());
    assert_eq!(git(&tree, &["branch", "--show-current"]), "agentd/add-login");
    assert_eq!(project.git(&["branch", "--show-current"]), "main");
    assert_eq!(fs::read_to_string(tree.join("agentd/config.toml")).unwrap(), ROLES);

    // Both checkouts find it, by its id and as the only one.
    for checkout in [&root, &tree] {
        for args in [&["status", ID][..], &["status"]] {
            let status = json_in(&project, checkout, args);
            assert_eq!(status["phase"], "challenged", "{status:#}");
            assert_eq!(status["git"]["work_tree"], tree.to_str().unwrap());
            assert_eq!(status["git"]["branch"], "agentd/add-login");
        }
        let listed = json_in(&project, checkout, &["list"]);
        assert_eq!(listed["changes"][0]["change_id"], ID);
        let shown = json_in(&project, checkout, &["show", ID, "login"]);
        assert_eq!(shown["file"], "agentd/changes/add-login/specs/login.md");
        assert_eq!(json_in(&project, checkout, &["verify", ID])["valid"], true);
        for command in ["validate", "log", "cost", "overlap", "trace"] {
            run_in(&project, checkout, &[command, ID]).exits(0);
        }
        let again = json_in(&project, checkout, &["plan", ID, "--auto"]);
        assert_eq!(again["action"], "already_challenged");
    }
    // Everything is everything in this checkout.
    assert_eq!(json_in(&project, &root, &["verify", "--all"])["changes"], json!([]));
    assert_eq!(json_in(&project, &tree, &["verify", "--all"])["changes"][0]["change_id"], ID);
    insta::assert_snapshot!(project.run(["list"]), @"
    exit 0
    add-login  challenged  passes the rules  show  0/5  -  [TIME]  [ROOT]-agentd/add-login  Add login with email and password (and 1 more)
    --- stderr
    ");
    let base = project.git(&["rev-parse", "--short=10", "HEAD"]);
    insta::assert_snapshot!(project.run(["status"]).to_string().replace(&base, "[BASE]"), @"
    exit 0
    add-login  challenged
    Add login with email and password (and 1 more)

    plan      APPROVED by builtin, round 1: 0 HIGH, 0 MEDIUM, 0 LOW, [TIME]
    documents 0 HIGH, 0 MEDIUM, 0 LOW findings
    tasks     0 of 5 done
              data 0/1, logic 0/2, integration 0/1, testing 0/1
    cost      $0 for 7 calls
    branch    agentd/add-login from main ([BASE]), in [ROOT]-agentd/add-login
    last      challenge, [TIME]

    Next: agentd show add-login
      or: agentd impl add-login
    --- stderr
    ");
    assert!(!root.join("agentd/changes").join(ID).exists(), "nothing came back");
}

/// The other changes are where they were, and every checkout knows of all.
#[test]
fn changes_of_several_checkouts_are_told_apart() {
    let project = project().change(ID).approved();
    let (root, tree) = (project.root(), project.worktree());
    project.run(["plan", ID, "--auto", "--git", "worktree"]).exits(0);
    let project = project.change("other").approved();
    project.run(["plan", "other", "--auto", "--git", "in-place"]).exits(0);
    for checkout in [&root, &tree] {
        let listed = json_in(&project, checkout, &["list"]);
        let listed = listed["changes"].as_array().unwrap().iter();
        // Both were changed within a second or two: either may be the newer one.
        let ids: BTreeSet<&str> = listed.filter_map(|it| it["change_id"].as_str()).collect();
        assert_eq!(ids, BTreeSet::from([ID, "other"]));
        let status = json_in(&project, checkout, &["status", "other"]);
        assert_eq!(status["git"]["workflow"], "in-place");
        let overlaps = json_in(&project, checkout, &["overlap"]);
        let touches = overlaps["overlaps"][0]["changes"].as_array();
        let touches = touches.unwrap_or_else(|| panic!("{checkout:?}: {overlaps:#}"));
        assert_eq!(touches.len(), 2, "{overlaps:#}");
    }
    // In the worktree, the change of its branch is meant.
    assert_eq!(json_in(&project, &tree, &["status"])["change_id"], ID);
    let all = json_in(&project, &root, &["status"]);
    assert_eq!(all["changes"].as_array().unwrap().len(), 2, "and here, none is meant");
    assert!(!tree.join("agentd/changes/other").exists());
    // The name is taken, wherever the change is.
    let second = project.run([
        "proposal",
        ID,
        "Something else, and more than that",
        "--skip-clarify",
        "--git",
        "in-place",
    ]);
    assert_eq!(lines(&second.exits(0)), "`add-login` exists already; this change is `add-login-1`");
}

fn lines(output: &Output) -> &str {
    output.stderr.lines().find(|line| line.contains("exists already")).unwrap_or_default()
}

/// A server and a viewer that were started in the main checkout write where the change is.
#[test]
fn tools_and_viewer_reach_a_change_in_its_worktree() {
    let project = project();
    plan(&project);
    let mut client = Client::start(project.server(&[]));
    let edit = json!({
        "change_id": ID,
        "path": "tasks.md",
        "old_string": "Test the scenarios of",
        "new_string": "Check the scenarios of",
    });
    client.ok("edit_file", edit);
    let tasks = project.read("tasks.md");
    assert!(tasks.contains("### Task 4.1: Check the scenarios of Login"), "{tasks}");
    let resources = client.result("resources/list", json!({}));
    let uri = format!("agentd://changes/{ID}/tasks.md");
    let listed = resources["resources"].as_array().unwrap();
    assert!(listed.iter().any(|resource| resource["uri"] == *uri), "{resources:#}");
    let read = client.result("resources/read", json!({"uri": uri}));
    assert_eq!(read["contents"][0]["text"], project.read("tasks.md"));
    // What comes next is the same everywhere (W6).
    let uri = format!("agentd://changes/{ID}/status.json");
    let read = client.result("resources/read", json!({"uri": uri}));
    let status: Value =
        serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    let shown = project.run(["status", ID, "--json"]).exits(0).json();
    for key in ["standing", "next"] {
        assert_eq!(status[key], shown[key], "{key}");
    }

    let viewer = Viewer::start(&project);
    assert_eq!(viewer.get(&format!("/changes/{ID}/tasks")).status, 200);
    let comment = "on=tasks.md&at=&text=Why%20all%20of%20them";
    assert_eq!(viewer.post(&format!("/changes/{ID}/comments"), comment).status, 303);
    assert!(project.worktree().join("agentd/changes").join(ID).join("comments.md").is_file());
    assert!(!project.has_root("agentd/changes/add-login"));
}

/// Documents that are part of a commit stay in the main checkout, as they are; what counts is in the
/// worktree.
#[test]
fn committed_documents_stay() {
    let project = project();
    project.run(["plan", ID, WHAT, "--auto", "--skip-clarify", "--git", "in-place"]).exits(0);
    project.commit("Plan");
    let here = project.root().join("agentd/changes").join(ID);
    let state = fs::read_to_string(here.join("STATE.yaml")).unwrap();
    project.run(["plan", ID, "--auto", "--git", "worktree"]).exits(0);
    assert_eq!(fs::read_to_string(here.join("STATE.yaml")).unwrap(), state);
    assert_eq!(project.git(&["status", "--porcelain"]), "");
    let status = json_in(&project, &project.root(), &["status", ID]);
    assert_eq!(status["git"]["workflow"], "worktree");
    assert_ne!(project.read("STATE.yaml"), state);
    assert_eq!(
        json_in(&project, &project.root(), &["list"])["changes"].as_array().unwrap().len(),
        1
    );
    assert_eq!(json_in(&project, &project.worktree(), &["verify", ID])["valid"], true);
}

/// A change of the first edition has its worktree, and its documents in the main checkout.
#[test]
fn change_of_the_first_edition_moves_with_the_next_step() {
    let project = project().change(ID);
    let state = "change_id: add-login\nphase: proposed\ngit:\n  workflow: worktree\n  \
                 branch: agentd/add-login\n  work_tree: ../project-agentd/add-login\n";
    project.write("STATE.yaml", state);
    let tree = project.worktree();
    project.git(&["worktree", "add", "-q", "-b", "agentd/add-login", tree.to_str().unwrap()]);
    let status = json_in(&project, &project.root(), &["status", ID]);
    assert_eq!(status["git"]["work_tree"], project.root().to_str().unwrap());
    project.run(["plan", ID, "--auto", "--git", "worktree"]).exits(0);
    assert!(tree.join("agentd/changes").join(ID).join("STATE.yaml").is_file());
    assert!(!project.has_root("agentd/changes/add-login"));
    assert_eq!(json_in(&project, &project.root(), &["status", ID])["phase"], "challenged");
}

/// A worktree that nobody but an agent has made decides nothing, whatever it holds.
#[test]
fn worktree_of_somebody_else_does_not_take_a_change_over() {
    let project = project();
    project.run(["plan", ID, WHAT, "--auto", "--skip-clarify", "--git", "in-place"]).exits(0);
    let tree = project.worktree();
    project.git(&["worktree", "add", "-q", "-b", "agentd/add-login", tree.to_str().unwrap()]);
    let forged = tree.join("agentd/changes").join(ID);
    for file in DOCUMENTS {
        let text = fs::read_to_string(project.root().join("agentd/changes").join(ID).join(file));
        write(&forged.join(file), text.unwrap().replace("phase: challenged", "phase: complete"));
    }
    let status = json_in(&project, &project.root(), &["status", ID]);
    assert_eq!((&status["phase"], &status["record"]), (&json!("challenged"), &Value::Null));
    // Nor is it overwritten, even where git does not look at it.
    write(&project.root().join(".git/info/exclude"), "agentd/\n");
    let refused = project.run(["plan", ID, "--auto", "--git", "worktree"]);
    insta::assert_snapshot!(refused, @"
    exit 1
    --- stderr
    error: the worktree has other documents of `add-login`: [ROOT]-agentd/add-login/agentd/changes/add-login
      cause: they are not committed, and would be replaced

    hint: move them away: mv [ROOT]-agentd/add-login/agentd/changes/add-login [ROOT]-agentd/add-login/agentd/changes/add-login-old
    ");
    assert!(forged.join("STATE.yaml").is_file());
    assert!(project.has_root("agentd/changes/add-login/STATE.yaml"));
}

/// Killed in front of every call that changes the disk, the change is in one place or the other, whole,
/// and the next command goes on from there.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn heavy_killed_move_leaves_the_change_whole() {
    use crate::cli::archive_kills::{moments, traced, try_each};

    let begin = || {
        let project = project();
        // Beside the project, so that the move is all that the command does.
        let tree = project.worktree();
        project.git(&["worktree", "add", "-q", "-b", "agentd/add-login", tree.to_str().unwrap()]);
        project.change(ID).approved()
    };
    let command = ["plan", ID, "--auto", "--git", "worktree"];
    let total = traced(&begin(), &command, None);
    let moved = try_each(&moments(total), |at| {
        let project = begin();
        let proposal = project.read("proposal.md");
        traced(&project, &command, Some(at));
        let moved = project.worktree().join("agentd/changes").join(ID).exists();
        for checkout in [project.root(), project.worktree()] {
            let status = run_in(&project, &checkout, &["status", ID, "--json"]);
            if status.code == 0 {
                let status = status.json();
                assert_eq!(
                    (&status["phase"], &status["record"]),
                    (&json!("challenged"), &Value::Null),
                    "call {at}"
                );
            } else {
                assert!(!moved && checkout == project.worktree(), "call {at}: {status:?}");
            }
        }
        assert_eq!(project.read("proposal.md"), proposal, "call {at}");
        project.run(command).exits(0);
        assert!(!project.has_root("agentd/changes/add-login"), "call {at}");
        assert_eq!(project.read("proposal.md"), proposal, "call {at}");
        let status = json_in(&project, &project.root(), &["status", ID]);
        assert_eq!(status["git"]["workflow"], "worktree", "call {at}");
        let left = fs::read_dir(project.worktree().join("agentd/changes")).unwrap();
        assert_eq!(left.count(), 1, "call {at}: nothing half copied is left");
        moved
    });
    let after = moved.iter().filter(|moved| **moved).count();
    assert!(after > 5 && moved.len() - after > 10, "{after} of {}", moved.len());
}

/// Consent to what settings run goes along, for exactly these settings.
#[test]
fn consent_holds_in_the_worktree_for_the_same_settings() {
    let tested = |command: &str| format!("{ROLES}[implementation]\ntest_command = \"{command}\"\n");
    let shared = project();
    shared.write_root("agentd/config.toml", tested("make test"));
    shared.run(["trust", "--yes"]).exits(0);
    plan(&shared);
    assert_eq!(json_in(&shared, &shared.worktree(), &["trust", "--show"])["trusted"], true);

    let edited = project();
    edited.write_root("agentd/config.toml", tested("make test"));
    edited.commit("Settings");
    edited.write_root("agentd/config.toml", tested("make check"));
    edited.run(["trust", "--yes"]).exits(0);
    let command = ["plan", ID, WHAT, "--auto", "--skip-clarify", "--git", "worktree"];
    insta::assert_snapshot!(edited.run(command), @r#"
    exit 1
    --- stderr
    `agentd/add-login` starts from `main`.
    agentd/config.toml has uncommitted changes; the worktree uses the committed version.
    The documents of `add-login` are in the worktree: [ROOT]-agentd/add-login/agentd/changes/add-login.
    error: agentd/config.toml of this project makes agentd run programs, and you have not trusted it
      cause: implementation.test_command = "make test"

    hint: see what would run, and agree to it: agentd -C [ROOT]-agentd/add-login trust
    hint: for this one command: --trust; for a CI job: AGENTD_TRUST=all
    "#);
}
