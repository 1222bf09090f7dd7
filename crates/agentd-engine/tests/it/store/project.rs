//! Finding projects and what is in them.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use agentd_core::ids::SpecId;
use agentd_core::layout::{self, ChangeFile};
use agentd_engine::opening;
use agentd_engine::store::{StoreError, UserDirs};

use super::{holder, id, open, path, sandbox};

#[test]
fn a_project_is_found_from_below_and_nowhere_else() {
    let (dir, project) = sandbox();
    let below = project.root().join("src/deep");
    fs::create_dir_all(&below).unwrap();
    // Not every directory called agentd is a project's.
    fs::create_dir_all(project.root().join("src/agentd/src")).unwrap();
    assert_eq!(open(&below).unwrap().root(), project.root());

    fs::create_dir_all(dir.base().join("bare/.git")).unwrap();
    fs::create_dir_all(dir.base().join("bare/src")).unwrap();
    match open(&dir.base().join("bare/src")).unwrap_err() {
        StoreError::NotInitialised { suggested, start } => {
            assert!(suggested.ends_with("bare"), "{suggested:?}");
            assert!(start.ends_with("bare/src"), "{start:?}");
        }
        other => panic!("{other}"),
    }
    let missing = open(&dir.base().join("missing")).unwrap_err();
    assert!(matches!(missing, StoreError::OpenRoot { .. }), "{missing}");

    fs::remove_file(project.root().join("agentd/config.toml")).unwrap();
    assert!(open(&below).is_ok(), "changes/ is enough");
}

#[test]
fn lists_are_sorted_and_set_odd_names_apart() {
    let (_dir, project) = sandbox();
    let agentd = project.root().join("agentd");
    for dir in ["changes/b", "changes/a-1", "changes/Bad_Name", "changes/.hidden", "specs/sub"] {
        fs::create_dir_all(agentd.join(dir)).unwrap();
    }
    fs::write(agentd.join("changes/README.md"), "").unwrap();
    symlink("b", agentd.join("changes/linked")).unwrap();
    for file in ["specs/z.md", "specs/auth-flow.md", "specs/Bad.md", "specs/notes.txt"] {
        fs::write(agentd.join(file), "").unwrap();
    }
    for dir in ["archive/2026-11-04-b", "archive/2025-01-02-z", "archive/old"] {
        fs::create_dir_all(agentd.join(dir)).unwrap();
    }
    let changes = project.change_ids().unwrap();
    assert_eq!(changes.ids, [id("a-1"), id("b"), id("mine")]);
    let odd: Vec<_> = changes.odd.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(odd, ["Bad_Name", "linked"]);

    let specs = project.spec_ids().unwrap();
    assert_eq!(specs.ids, [SpecId::new("auth-flow").unwrap(), SpecId::new("z").unwrap()]);
    let odd: Vec<_> = specs.odd.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(odd, ["Bad.md", "notes.txt", "sub"]);

    let archived = project.archived().unwrap();
    let names: Vec<_> = archived.ids.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["2025-01-02-z", "2026-11-04-b"]);
    assert_eq!(archived.odd.len(), 1);
}

#[test]
fn a_project_without_directories_lists_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let project = opening::open_root(dir.path(), UserDirs::below(dir.path()), &|| holder("test"))
        .unwrap()
        .project;
    assert!(project.change_ids().unwrap().ids.is_empty());
    assert!(project.spec_ids().unwrap().ids.is_empty());
    assert!(project.archived().unwrap().ids.is_empty());
    let error = project.change(&id("x")).unwrap_err();
    assert_eq!(error.to_string(), "there is no change `x`");
}

#[test]
fn only_one_of_many_creates_a_change() {
    let (_dir, project) = sandbox();
    let created = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| match project.create_change(&id("new")) {
                Ok(_) => drop(created.fetch_add(1, Ordering::Relaxed)),
                Err(StoreError::AlreadyExists { .. }) => {}
                Err(error) => panic!("{error}"),
            });
        }
    });
    assert_eq!(created.into_inner(), 1);
}

#[test]
fn files_of_a_change_are_read_written_and_removed() {
    let (_dir, project) = sandbox();
    let change = project.change(&id("mine")).unwrap();
    let lock = project.write_lock(change.id(), &holder("test")).unwrap();
    let spec = SpecId::new("auth-flow").unwrap();
    let file = ChangeFile::Spec(spec.clone());
    assert_eq!(change.read_if_exists(&file).unwrap(), None);
    change.write(&lock, &file, b"text").unwrap();
    assert_eq!(change.read(&file).unwrap(), "text");
    assert!(change.has(&file).unwrap());
    assert_eq!(change.spec_ids().unwrap().ids, [spec]);
    let error = change.read(&ChangeFile::Tasks).unwrap_err();
    assert_eq!(error.to_string(), "`agentd/changes/mine/tasks.md` does not exist");
    change.remove(&lock, &file).unwrap();
    assert!(!change.has(&file).unwrap());
}

#[test]
fn run_logs_are_numbered() {
    let (_dir, project) = sandbox();
    let change = project.change(&id("mine")).unwrap();
    for (step, last_known) in [("proposal-gen", 0), ("challenge", 1), ("challenge", 7)] {
        change.create_run(&step.into(), last_known).unwrap();
    }
    assert!(change.create_run(&"../x".into(), 0).is_err());
    let names: Vec<_> = change.runs().unwrap().ids.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["0001-proposal-gen.jsonl", "0002-challenge.jsonl", "0008-challenge.jsonl"]);
}

#[test]
fn a_handle_does_not_write_into_the_archive() {
    let (_dir, project) = sandbox();
    let change = project.change(&id("mine")).unwrap();
    let to = path("agentd/archive/2026-11-04-mine");
    project.dir().rename_dir(&layout::change_dir(change.id()), &to).unwrap();
    let lock = project.write_lock(change.id(), &holder("test")).unwrap();
    let error = change.write(&lock, &ChangeFile::Tasks, b"late").unwrap_err();
    assert!(matches!(error, StoreError::NoSuchChange { .. }), "{error}");
    assert!(project.dir().list_dir(&to).unwrap().is_empty());
}
