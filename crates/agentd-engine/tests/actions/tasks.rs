//! `complete_task`: no tick without evidence.

use std::fs;

use agentd_core::document::tasks as tasks_doc;
use agentd_engine::tools::{self, ActionError, Completed};
use serde_json::json;

use super::{Fixture, read, refused, tasks};

fn complete(fixture: &Fixture, id: &str) -> Result<Completed, ActionError> {
    let value = json!({"change_id": "add-oauth", "task_id": id, "note": "done"});
    fixture.with(|session| tools::complete_task(session, &read(value)?))
}

fn in_git() -> Fixture {
    let fixture = Fixture::planned();
    fs::create_dir_all(fixture.root().join("src/auth")).unwrap();
    fs::create_dir_all(fixture.root().join("src/models")).unwrap();
    fs::write(fixture.root().join("src/auth/oauth.rs"), "old\n").unwrap();
    fs::write(fixture.root().join("src/old.rs"), "old\n").unwrap();
    fixture.git(&["init", "-q"]);
    fixture.git(&["add", "."]);
    fixture.git(&["commit", "-q", "-m", "base"]);
    fixture
}

#[test]
fn each_action_wants_its_own_evidence() {
    let fixture = in_git();
    let before = fixture.read("tasks.md");
    let user = fixture.root().join("src/models/user.rs");
    assert!(refused(complete(&fixture, "1.1")).contains("does not exist"));
    fs::write(&user, "").unwrap();
    assert!(refused(complete(&fixture, "1.1")).contains("is empty"));
    assert!(refused(complete(&fixture, "2.1")).contains("depends on 1.1"));
    assert_eq!(fixture.read("tasks.md"), before);
    fs::write(&user, "struct User;\n").unwrap();
    let done = complete(&fixture, "data.1").unwrap();
    assert_eq!((done.completed, done.total), (1, 3));
    assert_eq!(done.ready.iter().map(ToString::to_string).collect::<Vec<_>>(), ["2.1", "4.1"]);
    assert!(refused(complete(&fixture, "2.1")).contains("as it was at HEAD"));
    fs::write(fixture.root().join("src/auth/oauth.rs"), "new\n").unwrap();
    complete(&fixture, "2.1").unwrap();
    assert!(refused(complete(&fixture, "4.1")).contains("still there"));
    fs::remove_file(fixture.root().join("src/old.rs")).unwrap();
    let done = complete(&fixture, "4.1").unwrap();
    assert_eq!((done.completed, done.total, done.ready.len()), (3, 3, 0));
    assert_eq!(tasks_doc::parse(&fixture.read("tasks.md")).value.completed(), 3);
    assert!(refused(complete(&fixture, "1.9")).contains("there is no task 1.9; the tasks are 1.1"));
}

#[test]
fn what_is_done_stays_done() {
    let fixture = in_git();
    fs::write(fixture.root().join("src/models/user.rs"), "x").unwrap();
    complete(&fixture, "1.1").unwrap();
    let after = fixture.read("tasks.md");
    fs::remove_file(fixture.root().join("src/models/user.rs")).unwrap();
    assert_eq!(complete(&fixture, "1.1").unwrap().completed, 1);
    assert_eq!(fixture.read("tasks.md"), after);
    // A new list of tasks keeps the tick of those that stay as they were.
    let mut again = tasks();
    again["tasks"][0]["title"] = json!("Another title");
    fixture.tasks(again).unwrap();
    assert_eq!(tasks_doc::parse(&fixture.read("tasks.md")).value.completed(), 1);
}

#[test]
fn the_base_commit_is_what_counts() {
    let fixture = in_git();
    fs::write(fixture.root().join("src/models/user.rs"), "x").unwrap();
    complete(&fixture, "1.1").unwrap();
    let head = fs::read_to_string(fixture.root().join(".git/HEAD")).unwrap();
    let head = head.trim().strip_prefix("ref: ").unwrap().to_owned();
    let base = fs::read_to_string(fixture.root().join(".git").join(head)).unwrap();
    fs::write(fixture.root().join("src/auth/oauth.rs"), "new\n").unwrap();
    fixture.git(&["commit", "-q", "-a", "-m", "work"]);
    assert!(refused(complete(&fixture, "2.1")).contains("as it was at HEAD"));
    let state = |base: &str| {
        format!(
            "change_id: add-oauth\nphase: implementing\ngit:\n  workflow: in-place\n  \
             base_commit: \"{base}\"\n"
        )
    };
    fixture.write("STATE.yaml", &state("--output=/tmp/x"));
    assert!(refused(complete(&fixture, "2.1")).contains("not a commit"));
    fixture.write("STATE.yaml", &state("0123456789abcdef0123456789abcdef01234567"));
    assert!(refused(complete(&fixture, "2.1")).contains("no such commit"));
    fixture.write("STATE.yaml", &state(base.trim()));
    complete(&fixture, "2.1").unwrap();
}

/// The files of a change that has a work tree are there, wherever STATE.yaml says that it is.
#[test]
fn in_a_work_tree_the_files_there_count() {
    let fixture = in_git();
    let beside = tempfile::tempdir().unwrap();
    let tree = beside.path().join("tree");
    let state = "change_id: add-oauth\nphase: implementing\ngit:\n  workflow: worktree\n  \
                 work_tree: ../anywhere\n";
    fixture.write("STATE.yaml", state);
    fs::write(fixture.root().join("src/models/user.rs"), "here").unwrap();
    assert!(refused(complete(&fixture, "1.1")).contains("no work tree on `agentd/add-oauth`"));
    fixture.git(&["worktree", "add", "-q", "-b", "agentd/add-oauth", tree.to_str().unwrap()]);
    assert!(refused(complete(&fixture, "1.1")).contains("is not done (CREATE"));
    fs::create_dir_all(tree.join("src/models")).unwrap();
    fs::write(tree.join("src/models/user.rs"), "there").unwrap();
    complete(&fixture, "1.1").unwrap();
    assert!(refused(complete(&fixture, "2.1")).contains("as it was at HEAD"));
    fs::write(tree.join("src/auth/oauth.rs"), "there").unwrap();
    complete(&fixture, "2.1").unwrap();
}

#[test]
fn without_git_a_modification_cannot_be_shown() {
    let fixture = Fixture::planned();
    fs::create_dir_all(fixture.root().join("src/auth")).unwrap();
    fs::create_dir_all(fixture.root().join("src/models")).unwrap();
    fs::write(fixture.root().join("src/models/user.rs"), "x").unwrap();
    fs::write(fixture.root().join("src/auth/oauth.rs"), "x").unwrap();
    complete(&fixture, "1.1").unwrap();
    let message = refused(complete(&fixture, "2.1"));
    assert!(message.contains("git repository") && message.contains("status: done"), "{message}");
}

#[test]
fn a_hand_written_checkbox_is_ticked_in_place() {
    let fixture = Fixture::new();
    let text = "## 1. Data Layer\n\n- [ ] 1.1 Make it\n  File: a.txt\n  Action: CREATE\n- [ ] 1.2 No file\n";
    fixture.write("tasks.md", text);
    fs::write(fixture.root().join("a.txt"), "x").unwrap();
    fixture.git(&["init", "-q"]);
    fixture.git(&["commit", "-q", "--allow-empty", "-m", "base"]);
    complete(&fixture, "1.1").unwrap();
    assert_eq!(fixture.read("tasks.md"), text.replacen("[ ]", "[x]", 1));
    assert!(refused(complete(&fixture, "1.2")).contains("names no file"));
}
