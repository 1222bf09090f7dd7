use std::fs;

use agentd_core::hash::Digest;
use agentd_engine::archive::{ArchiveError, recover};

use test_project::TestProject;

use super::{Archiving as _, holder, part, spec};

/// A change that is half archived: its record is written, some main specs too.
fn half_done() -> TestProject {
    let done = TestProject::new();
    set_up(&done);
    done.archive("one").unwrap();
    let project = TestProject::new();
    set_up(&project);
    let record = done.read_root("agentd/archive/2026-11-15-one/archive.json");
    begin(&project, &record);
    project.write_root("agentd/changes/one/archive.json", &record);
    project.main("s", &done.main_text("s"));
    project
}

/// The journal of an archiving with this record.
fn begin(project: &TestProject, record: &str) {
    let digest = Digest::of(record);
    let journal = format!(
        "{{\"action\":\"archive\",\"change_id\":\"one\",\"name\":\"2026-11-15-one\",\"record\":\"{digest}\"}}"
    );
    project.store().state_dir().unwrap();
    fs::write(project.journal(), journal).unwrap();
}

fn set_up(project: &TestProject) {
    project.main("s", &spec(&[(1, "a")]));
    project.main("t", &spec(&[(1, "b")]));
    project.complete("one", "s", &part("", &[(1, "a one")]));
    project.spec_of("one", "t", &part("", &[(1, "b one")]));
}

#[test]
fn half_done_archiving_is_undone() {
    let project = half_done();
    let recovered = recover(&project.store(), holder).unwrap().unwrap();
    assert!(!recovered.archived && recovered.left.is_empty());
    let clean = TestProject::new();
    set_up(&clean);
    assert_eq!(project.contents(), clean.contents());
    assert!(!project.journal().exists());
    assert!(recover(&project.store(), holder).unwrap().is_none());
}

#[test]
fn files_edited_since_are_left_alone_and_named() {
    let project = half_done();
    project.main("s", "Mine now.\n");
    let recovered = recover(&project.store(), holder).unwrap().unwrap();
    assert_eq!(recovered.left[0].as_str(), "agentd/specs/s.md");
    assert_eq!(project.main_text("s"), "Mine now.\n");
}

#[test]
fn a_journal_without_a_record_means_no_change() {
    let project = half_done();
    std::fs::remove_file(project.root().join("agentd/changes/one/archive.json")).unwrap();
    project.main("s", &spec(&[(1, "a")]));
    let before = project.contents();
    assert!(!recover(&project.store(), holder).unwrap().unwrap().archived);
    assert_eq!(project.contents(), before);
}

#[test]
fn the_work_of_a_living_process_is_not_undone() {
    let project = half_done();
    let lock = project.store().project_lock(&holder()).unwrap();
    let before = project.contents();
    assert!(recover(&project.store(), holder).unwrap().is_none());
    assert_eq!(project.contents(), before);
    drop(lock);
    assert!(recover(&project.store(), holder).unwrap().is_some());
}

/// Without a journal of this machine a record in an open change is a file like others: it came
/// with the repository. The next archiving replaces it.
#[test]
fn a_record_without_a_journal_is_not_acted_on() {
    let project = half_done();
    fs::remove_file(project.journal()).unwrap();
    let before = project.contents();
    assert!(recover(&project.store(), holder).unwrap().is_none());
    assert_eq!(project.contents(), before);
    project.main("s", &spec(&[(1, "a")]));
    project.archive("one").unwrap();
    project.unarchive("one").unwrap();
    assert_eq!(project.main_text("s"), spec(&[(1, "a")]));
}

/// A journal is bound to its record: another one, in its place, is nobody's.
#[test]
fn a_foreign_record_is_not_acted_on() {
    let project = half_done();
    let file = "agentd/changes/one/archive.json";
    let forged = project.read_root(file).replace("It is.", "It was.");
    assert_ne!(forged, project.read_root(file));
    project.write_root(file, &forged);
    let before = project.contents();
    assert!(!recover(&project.store(), holder).unwrap().unwrap().archived);
    assert_eq!(project.contents(), before);
}

/// A record may name main specs, the changelog and documents of its change.
#[test]
fn a_record_that_names_other_files_is_refused_whole() {
    for (known, foreign) in [
        ("agentd/specs/s.md", ".git/config"),
        ("agentd/specs/s.md", "agentd/specs/../config.toml"),
        ("STATE.yaml", "../../config.toml"),
        ("STATE.yaml", "runs/0001-review.jsonl"),
        ("agentd/archive", "agentd/changes"),
    ] {
        let project = TestProject::new();
        set_up(&project);
        project.archive("one").unwrap();
        let file = "agentd/archive/2026-11-15-one/archive.json";
        let quoted = |path: &str| format!("\"{path}\"");
        let forged = project.read_root(file).replacen(&quoted(known), &quoted(foreign), 1);
        assert_ne!(forged, project.read_root(file), "{known}");
        project.write_root(file, &forged);
        let before = project.contents();
        let error = project.unarchive("one").unwrap_err();
        assert!(matches!(error, ArchiveError::BadRecord { .. }), "{error:?}");
        assert_eq!(project.contents(), before, "{foreign}");
    }
}

/// A main spec that is a link leads to a file that was never archived.
#[test]
fn no_main_spec_is_written_through_a_link() {
    let project = TestProject::new();
    set_up(&project);
    project.archive("one").unwrap();
    let merged = project.main_text("s");
    project.write_root("elsewhere", &merged);
    fs::remove_file(project.root().join("agentd/specs/s.md")).unwrap();
    std::os::unix::fs::symlink("../../elsewhere", project.root().join("agentd/specs/s.md"))
        .unwrap();
    project.unarchive("one").unwrap();
    assert_eq!(project.read_root("elsewhere"), merged);
    let main = spec(&[(1, "a")]);
    project.write_root("elsewhere", &main);
    assert!(project.archive("one").is_err());
    assert_eq!(project.read_root("elsewhere"), main);
}

#[test]
fn a_journal_that_cannot_be_read_is_an_error_and_stays() {
    let project = half_done();
    fs::write(project.journal(), "{\"action\":").unwrap();
    assert!(recover(&project.store(), holder).is_err());
    assert!(project.journal().exists());
}
