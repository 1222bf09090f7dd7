//! Reading and writing files, one process at a time.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::thread;

use agentd_engine::store::{DOCUMENT_CAP, Entry, EntryKind, StoreError};
use proptest::prelude::*;

use super::{path, sandbox};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn what_is_written_is_read(
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5000), 1..5),
        names in prop::collection::vec("[a-z][a-z0-9_ é-]{0,20}[a-z]", 1..4),
    ) {
        let (_dir, project) = sandbox();
        let target = path(&format!("dir/{}", names.join("/")));
        for text in &texts {
            project.dir().write_atomic(&target, text).unwrap();
            prop_assert_eq!(&project.dir().read(&target).unwrap(), text);
        }
        let parent = target.parent().unwrap();
        prop_assert_eq!(fs::read_dir(project.root().join(parent.as_str())).unwrap().count(), 1);
    }
}

#[test]
fn a_huge_file_is_an_error_and_not_memory() {
    let (_dir, project) = sandbox();
    let size = 100 * 1024 * 1024;
    File::create(project.root().join("huge.md")).unwrap().set_len(size).unwrap();
    let error = project.dir().read(&path("huge.md")).unwrap_err();
    assert!(
        matches!(error, StoreError::TooLarge { size: s, cap: DOCUMENT_CAP, .. } if s == size),
        "{error}"
    );
    let cap = 10;
    project.dir().write_atomic(&path("ten"), &[b'x'; 10]).unwrap();
    assert_eq!(project.dir().read_capped(&path("ten"), cap).unwrap().len(), 10);
    // A file that says it is empty and is not, as in /proc.
    assert!(project.dir().read_capped(&path("ten"), cap - 1).is_err());
}

#[test]
fn text_that_is_not_utf8_is_an_error_with_its_place() {
    let (_dir, project) = sandbox();
    project.dir().write_atomic(&path("bad.md"), b"caf\xc3\xa9 \xff!").unwrap();
    let error = project.dir().read_to_string(&path("bad.md")).unwrap_err();
    assert_eq!(error.to_string(), "`bad.md` is not valid UTF-8: bad byte at offset 6");
}

#[test]
fn special_files_are_not_read_and_do_not_hang() {
    let (_dir, project) = sandbox();
    let pipe = project.root().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let dir = project.dir();
    for (name, kind) in [("pipe", EntryKind::Other), ("agentd", EntryKind::Dir)] {
        for error in
            [dir.read(&path(name)).unwrap_err(), dir.write_atomic(&path(name), b"x").unwrap_err()]
        {
            let right = matches!(&error, StoreError::NotAFile { kind: k, .. } if *k == kind);
            assert!(right, "{name}: {error}");
        }
        assert!(dir.append(&path(name), b"x").is_err(), "{name}");
    }
    let error = dir.read(&path("agentd/config.toml/x")).unwrap_err();
    assert!(matches!(error, StoreError::NotADirectory { .. }), "{error}");
    assert!(dir.read(&path("nothing")).unwrap_err().is_not_found());
    assert!(dir.remove_file(&path("agentd")).is_err());
}

#[test]
fn the_mode_of_a_file_and_a_link_inside_survive_a_write() {
    let (_dir, project) = sandbox();
    let root = project.root();
    fs::write(root.join("AGENTS.md"), "old").unwrap();
    fs::set_permissions(root.join("AGENTS.md"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(root.join("docs")).unwrap();
    symlink("../AGENTS.md", root.join("docs/CLAUDE.md")).unwrap();
    project.dir().write_atomic(&path("docs/CLAUDE.md"), b"new").unwrap();
    assert!(root.join("docs/CLAUDE.md").is_symlink());
    assert_eq!(fs::read_to_string(root.join("AGENTS.md")).unwrap(), "new");
    let mode = fs::metadata(root.join("AGENTS.md")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o640);
    assert!(project.dir().is_file(&path("docs/CLAUDE.md")).unwrap());
}

#[test]
fn a_new_file_never_replaces() {
    let (_dir, project) = sandbox();
    project.dir().write_new(&path("a/b.md"), b"first").unwrap();
    let error = project.dir().write_new(&path("a/b.md"), b"second").unwrap_err();
    assert!(matches!(error, StoreError::AlreadyExists { .. }), "{error}");
    assert_eq!(project.dir().read(&path("a/b.md")).unwrap(), b"first");
    assert_eq!(project.dir().list_dir(&path("a")).unwrap().len(), 1);
}

#[test]
fn lines_are_appended_even_after_a_torn_one() {
    let (_dir, project) = sandbox();
    let log = path("runs/log.jsonl");
    project.dir().append_line(&log, "{\"a\":1}").unwrap();
    project.dir().append(&log, b"{\"torn").unwrap();
    project.dir().append_line(&log, "{\"b\":2}").unwrap();
    let text = project.dir().read_to_string(&log).unwrap();
    assert_eq!(text, "{\"a\":1}\n{\"torn\n{\"b\":2}\n");
}

#[test]
fn only_leftovers_of_dead_processes_are_removed() {
    let (_dir, project) = sandbox();
    let dead = project.root().join(".agentd-tmp-1-0-dead");
    let alive = project.root().join(".agentd-tmp-2-0-alive");
    fs::write(&dead, "half").unwrap();
    let writer = File::create(&alive).unwrap();
    writer.lock().unwrap();
    let entry = |name: &str, kind| Entry { name: name.to_owned(), kind };
    let visible = [entry("a.md", EntryKind::File), entry("agentd", EntryKind::Dir)];
    project.dir().write_atomic(&path("a.md"), b"x").unwrap();
    assert!(!dead.exists() && alive.exists());
    assert_eq!(project.dir().list_dir(&path(".")).unwrap(), visible);
    drop(writer);
    project.dir().write_atomic(&path("a.md"), b"y").unwrap();
    assert!(!alive.exists());
}

#[test]
fn writers_in_one_directory_do_not_sweep_each_other() {
    let (_dir, project) = sandbox();
    thread::scope(|scope| {
        for writer in 0..12 {
            let dir = project.dir();
            scope.spawn(move || {
                let target = path(&format!("specs/{writer}.md"));
                for version in 0..60 {
                    let text = format!("{writer} {version}");
                    dir.write_atomic(&target, text.as_bytes()).unwrap();
                    assert_eq!(dir.read_to_string(&target).unwrap(), text);
                }
            });
        }
    });
    assert_eq!(fs::read_dir(project.root().join("specs")).unwrap().count(), 12);
}

#[test]
fn a_directory_moves_only_to_a_free_name() {
    let (_dir, project) = sandbox();
    let (from, to) = (path("agentd/changes/mine"), path("agentd/archive/2026-11-04-mine"));
    project.dir().write_atomic(&path("agentd/changes/mine/tasks.md"), b"x").unwrap();
    project.dir().create_dir_all(&to).unwrap();
    let error = project.dir().rename_dir(&from, &to).unwrap_err();
    assert!(matches!(error, StoreError::AlreadyExists { .. }), "{error}");
    fs::remove_dir(project.root().join(to.as_str())).unwrap();
    project.dir().rename_dir(&from, &to).unwrap();
    assert_eq!(project.dir().read(&to.join(&path("tasks.md"))).unwrap(), b"x");
    assert_eq!(project.dir().kind(&from).unwrap(), None);
    assert!(project.dir().rename_dir(&from, &to).unwrap_err().is_not_found());
    assert!(project.dir().rename_dir(&path("agentd/config.toml"), &path("x")).is_err());
}
