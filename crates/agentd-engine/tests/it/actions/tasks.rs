//! `complete_task`: no tick without evidence.

use std::fs;

use agentd_core::check::{Extras, of_file};
use agentd_core::document::tasks as tasks_doc;
use agentd_core::layout::ChangeFile;
use agentd_core::rules;
use agentd_engine::insight::validate::validate;
use agentd_engine::tools::{self, ActionError, Completed};
use serde_json::json;

use test_project::TestProject;

use super::{Tools as _, planned, project, read, refused, tasks};

fn complete(project: &TestProject, id: &str) -> Result<Completed, ActionError> {
    let value = json!({"change_id": "add-oauth", "task_id": id, "note": "done"});
    project.with(|session| tools::complete_task(session, &read(value)?))
}

fn in_git() -> TestProject {
    let project = planned();
    fs::create_dir_all(project.root().join("src/auth")).unwrap();
    fs::create_dir_all(project.root().join("src/models")).unwrap();
    fs::write(project.root().join("src/auth/oauth.rs"), "old\n").unwrap();
    fs::write(project.root().join("src/old.rs"), "old\n").unwrap();
    project.git(&["init", "-q"]);
    project.git(&["add", "."]);
    project.git(&["commit", "-q", "-m", "base"]);
    project
}

#[test]
fn each_action_needs_its_own_evidence() {
    let project = in_git();
    let before = project.read("tasks.md");
    let user = project.root().join("src/models/user.rs");
    insta::assert_snapshot!(refused(complete(&project, "1.1")), @"
    Task 1.1 is not done (CREATE src/models/user.rs): `src/models/user.rs` does not exist.
    Do the work first, then call complete_task again.
    ");
    fs::write(&user, "").unwrap();
    insta::assert_snapshot!(refused(complete(&project, "1.1")), @"
    Task 1.1 is not done (CREATE src/models/user.rs): the file is empty.
    Do the work first, then call complete_task again.
    ");
    insta::assert_snapshot!(refused(complete(&project, "2.1")), @"
    Task 2.1 depends on 1.1, which is not done yet.
    Complete those first.
    ");
    assert_eq!(project.read("tasks.md"), before);
    fs::write(&user, "struct User;\n").unwrap();
    let done = complete(&project, "data.1").unwrap();
    assert_eq!((done.completed, done.total), (1, 3));
    assert_eq!(done.ready.iter().map(ToString::to_string).collect::<Vec<_>>(), ["2.1", "4.1"]);
    insta::assert_snapshot!(refused(complete(&project, "2.1")), @"
    Task 2.1 is not done (MODIFY src/auth/oauth.rs): the file is as it was at HEAD.
    Change the file as the task says, then call complete_task again.
    ");
    fs::write(project.root().join("src/auth/oauth.rs"), "new\n").unwrap();
    complete(&project, "2.1").unwrap();
    insta::assert_snapshot!(refused(complete(&project, "4.1")), @"
    Task 4.1 is not done (DELETE src/old.rs): the file is still there.
    Delete it, then call complete_task again.
    ");
    fs::remove_file(project.root().join("src/old.rs")).unwrap();
    let done = complete(&project, "4.1").unwrap();
    assert_eq!((done.completed, done.total, done.ready.len()), (3, 3, 0));
    assert_eq!(tasks_doc::parse(&project.read("tasks.md")).value.completed(), 3);
    insta::assert_snapshot!(refused(complete(&project, "1.9")), @"there is no task 1.9; the tasks are 1.1, 2.1, 4.1.");
}

#[test]
fn what_is_done_stays_done() {
    let project = in_git();
    fs::write(project.root().join("src/models/user.rs"), "x").unwrap();
    complete(&project, "1.1").unwrap();
    let after = project.read("tasks.md");
    fs::remove_file(project.root().join("src/models/user.rs")).unwrap();
    assert_eq!(complete(&project, "1.1").unwrap().completed, 1);
    assert_eq!(project.read("tasks.md"), after);
    // A new list of tasks keeps the tick of those that stay as they were.
    let mut again = tasks();
    again["tasks"][0]["title"] = json!("Another title");
    project.tasks(again).unwrap();
    assert_eq!(tasks_doc::parse(&project.read("tasks.md")).value.completed(), 1);
}

#[test]
fn the_base_commit_is_what_counts() {
    let project = in_git();
    fs::write(project.root().join("src/models/user.rs"), "x").unwrap();
    complete(&project, "1.1").unwrap();
    let head = fs::read_to_string(project.root().join(".git/HEAD")).unwrap();
    let head = head.trim().strip_prefix("ref: ").unwrap().to_owned();
    let base = fs::read_to_string(project.root().join(".git").join(head)).unwrap();
    fs::write(project.root().join("src/auth/oauth.rs"), "new\n").unwrap();
    project.git(&["commit", "-q", "-a", "-m", "work"]);
    insta::assert_snapshot!(refused(complete(&project, "2.1")), @"
    Task 2.1 is not done (MODIFY src/auth/oauth.rs): the file is as it was at HEAD.
    Change the file as the task says, then call complete_task again.
    ");
    let state = |base: &str| {
        format!(
            "change_id: add-oauth\nphase: implementing\ngit:\n  workflow: in-place\n  \
             base_commit: \"{base}\"\n"
        )
    };
    project.write("STATE.yaml", state("--output=/tmp/x"));
    insta::assert_snapshot!(refused(complete(&project, "2.1")), @"
    Task 2.1 (MODIFY src/auth/oauth.rs) cannot be shown to be done: `base_commit` in STATE.yaml is not a commit, so it is not known what the file was before.
    A person can set `status: done` in tasks.md.
    ");
    project.write("STATE.yaml", state("0123456789abcdef0123456789abcdef01234567"));
    insta::assert_snapshot!(refused(complete(&project, "2.1")), @"
    Task 2.1 (MODIFY src/auth/oauth.rs) cannot be shown to be done: this is not a git repository, or it has no such commit, so it is not known what the file was before.
    A person can set `status: done` in tasks.md.
    ");
    project.write("STATE.yaml", state(base.trim()));
    complete(&project, "2.1").unwrap();
}

/// The files of a change that has a worktree are there, wherever STATE.yaml says that it is.
#[test]
fn in_a_work_tree_its_own_files_count() {
    let project = in_git();
    let beside = tempfile::tempdir().unwrap();
    let tree = beside.path().join("tree");
    let state = "change_id: add-oauth\nphase: implementing\ngit:\n  workflow: worktree\n  \
                 work_tree: ../anywhere\n";
    project.write("STATE.yaml", state);
    fs::write(project.root().join("src/models/user.rs"), "here").unwrap();
    insta::assert_snapshot!(refused(complete(&project, "1.1")), @"
    The working tree cannot be read: there is no worktree on `agentd/add-oauth`.
    create the worktree again: agentd plan add-oauth --git worktree
    ");
    project.git(&["worktree", "add", "-q", "-b", "agentd/add-oauth", tree.to_str().unwrap()]);
    insta::assert_snapshot!(refused(complete(&project, "1.1")), @"
    Task 1.1 is not done (CREATE src/models/user.rs): `src/models/user.rs` does not exist.
    Do the work first, then call complete_task again.
    ");
    fs::create_dir_all(tree.join("src/models")).unwrap();
    fs::write(tree.join("src/models/user.rs"), "there").unwrap();
    complete(&project, "1.1").unwrap();
    insta::assert_snapshot!(refused(complete(&project, "2.1")), @"
    Task 2.1 is not done (MODIFY src/auth/oauth.rs): the file is as it was at HEAD.
    Change the file as the task says, then call complete_task again.
    ");
    fs::write(tree.join("src/auth/oauth.rs"), "there").unwrap();
    complete(&project, "2.1").unwrap();
}

#[test]
fn without_git_a_modification_has_no_evidence() {
    let project = planned();
    fs::create_dir_all(project.root().join("src/auth")).unwrap();
    fs::create_dir_all(project.root().join("src/models")).unwrap();
    fs::write(project.root().join("src/models/user.rs"), "x").unwrap();
    fs::write(project.root().join("src/auth/oauth.rs"), "x").unwrap();
    complete(&project, "1.1").unwrap();
    let message = refused(complete(&project, "2.1"));
    insta::assert_snapshot!(message, @"
    Task 2.1 (MODIFY src/auth/oauth.rs) cannot be shown to be done: this is not a git repository, or it has no such commit, so it is not known what the file was before.
    A person can set `status: done` in tasks.md.
    ");
}

/// The tasks that are ticked although their files say otherwise.
fn contradicted(project: &TestProject) -> Vec<String> {
    let store = project.store();
    let snapshot = store.change(&project.id()).unwrap().snapshot().unwrap();
    let reports = validate(&store, &snapshot, &Extras::default());
    let ticks = of_file(&reports, &ChangeFile::Tasks).iter();
    let ticks = ticks.filter(|found| found.rule == &rules::TICK_WITHOUT_EVIDENCE);
    ticks.map(|found| found.message.split(' ').nth(1).unwrap().to_owned()).collect()
}

/// contract C38
#[test]
fn ticks_that_files_contradict_are_named() {
    let project = in_git();
    project.write("tasks.md", project.read("tasks.md").replace("status: pending", "status: done"));
    let file = |name: &str| project.root().join("src").join(name);
    let (user, oauth, old) = (file("models/user.rs"), file("auth/oauth.rs"), file("old.rs"));
    assert_eq!(contradicted(&project), ["1.1", "2.1", "4.1"]);
    // An edit shows nothing about what should be gone.
    fs::write(&oauth, "new\n").unwrap();
    fs::write(&old, "new\n").unwrap();
    assert_eq!(contradicted(&project), ["1.1", "4.1"]);
    fs::write(&user, "new\n").unwrap();
    fs::remove_file(&old).unwrap();
    assert_eq!(contradicted(&project), [""; 0]);
    // What is gone or empty is not edited, whatever git calls it.
    fs::write(&oauth, "").unwrap();
    assert_eq!(contradicted(&project), ["2.1"]);
    fs::remove_file(&oauth).unwrap();
    fs::remove_file(&user).unwrap();
    assert_eq!(contradicted(&project), ["1.1", "2.1"]);
    // A base that is an option is not given to git.
    let written = project.root().join("written");
    fs::write(&oauth, "new\n").unwrap();
    let state = "change_id: add-oauth\nphase: implementing\ngit:\n  workflow: in-place\n  \
                 base_commit: \"--output=written\"\n";
    project.write("STATE.yaml", state);
    assert_eq!(contradicted(&project), ["1.1"]);
    assert!(!written.exists());
}

#[test]
fn a_hand_written_checkbox_is_ticked_in_place() {
    let project = project();
    let text = "## 1. Data Layer\n\n- [ ] 1.1 Make it\n  File: a.txt\n  Action: CREATE\n- [ ] 1.2 No file\n";
    project.write("tasks.md", text);
    fs::write(project.root().join("a.txt"), "x").unwrap();
    project.git(&["init", "-q"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", "base"]);
    complete(&project, "1.1").unwrap();
    assert_eq!(project.read("tasks.md"), text.replacen("[ ]", "[x]", 1));
    insta::assert_snapshot!(refused(complete(&project, "1.2")), @"
    Task 1.2 names no file, so nothing can show that it was done.
    A person has to tick it, or the planner has to name its file.
    ");
}
