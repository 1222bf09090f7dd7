use std::fs;

use agentd_core::hash::Digest;
use agentd_engine::archive::{ArchiveError, recover};

use super::{Fixture, holder, part, spec};

/// A change that is half archived: its record is written, some main specs too.
fn half_done() -> Fixture {
    let done = Fixture::new();
    set_up(&done);
    done.archive("one").unwrap();
    let fixture = Fixture::new();
    set_up(&fixture);
    let record = done.read("agentd/archive/2026-11-15-one/archive.json");
    begin(&fixture, &record);
    fixture.write("agentd/changes/one/archive.json", &record);
    fixture.main("s", &done.main_text("s"));
    fixture
}

/// The journal of an archiving with this record.
fn begin(fixture: &Fixture, record: &str) {
    let digest = Digest::of(record);
    let journal = format!(
        "{{\"action\":\"archive\",\"change_id\":\"one\",\"name\":\"2026-11-15-one\",\"record\":\"{digest}\"}}"
    );
    fixture.project.state_dir().unwrap();
    fs::write(fixture.journal(), journal).unwrap();
}

fn set_up(fixture: &Fixture) {
    fixture.main("s", &spec(&[(1, "a")]));
    fixture.main("t", &spec(&[(1, "b")]));
    fixture.change("one", "s", &part("", &[(1, "a one")]));
    fixture.spec_of("one", "t", &part("", &[(1, "b one")]));
}

#[test]
fn what_is_half_done_is_taken_back() {
    let fixture = half_done();
    let recovered = recover(&fixture.project, holder).unwrap().unwrap();
    assert!(!recovered.archived && recovered.left.is_empty());
    let clean = Fixture::new();
    set_up(&clean);
    let names = |fixture: &Fixture| -> Vec<_> {
        let root = fixture.root().to_owned();
        let tree = fixture.tree().into_iter();
        tree.map(|(path, text)| (path.strip_prefix(&root).unwrap().to_owned(), text)).collect()
    };
    assert_eq!(names(&fixture), names(&clean));
    assert!(!fixture.journal().exists());
    assert!(recover(&fixture.project, holder).unwrap().is_none());
}

#[test]
fn what_somebody_has_edited_since_is_left_alone_and_named() {
    let fixture = half_done();
    fixture.main("s", "Mine now.\n");
    let recovered = recover(&fixture.project, holder).unwrap().unwrap();
    assert_eq!(recovered.left[0].as_str(), "agentd/specs/s.md");
    assert_eq!(fixture.main_text("s"), "Mine now.\n");
}

#[test]
fn a_journal_without_a_record_means_that_nothing_was_changed() {
    let fixture = half_done();
    std::fs::remove_file(fixture.root().join("agentd/changes/one/archive.json")).unwrap();
    fixture.main("s", &spec(&[(1, "a")]));
    let before = fixture.tree();
    assert!(!recover(&fixture.project, holder).unwrap().unwrap().archived);
    assert_eq!(fixture.tree(), before);
}

#[test]
fn nobody_takes_back_what_a_living_process_is_doing() {
    let fixture = half_done();
    let lock = fixture.project.project_lock(&holder()).unwrap();
    let before = fixture.tree();
    assert!(recover(&fixture.project, holder).unwrap().is_none());
    assert_eq!(fixture.tree(), before);
    drop(lock);
    assert!(recover(&fixture.project, holder).unwrap().is_some());
}

/// Without a journal of this machine a record in an open change is a file like others: it came
/// with the repository. The next archiving replaces it.
#[test]
fn a_record_that_no_journal_speaks_of_is_not_acted_on() {
    let fixture = half_done();
    fs::remove_file(fixture.journal()).unwrap();
    let before = fixture.tree();
    assert!(recover(&fixture.project, holder).unwrap().is_none());
    assert_eq!(fixture.tree(), before);
    fixture.main("s", &spec(&[(1, "a")]));
    fixture.archive("one").unwrap();
    fixture.unarchive("one").unwrap();
    assert_eq!(fixture.main_text("s"), spec(&[(1, "a")]));
}

/// A journal is bound to its record: another one, in its place, is nobody's.
#[test]
fn a_record_that_was_put_in_the_place_of_ours_is_not_acted_on() {
    let fixture = half_done();
    let file = "agentd/changes/one/archive.json";
    let forged = fixture.read(file).replace("It is.", "It was.");
    assert_ne!(forged, fixture.read(file));
    fixture.write(file, &forged);
    let before = fixture.tree();
    assert!(!recover(&fixture.project, holder).unwrap().unwrap().archived);
    assert_eq!(fixture.tree(), before);
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
        let fixture = Fixture::new();
        set_up(&fixture);
        fixture.archive("one").unwrap();
        let file = "agentd/archive/2026-11-15-one/archive.json";
        let quoted = |path: &str| format!("\"{path}\"");
        let forged = fixture.read(file).replacen(&quoted(known), &quoted(foreign), 1);
        assert_ne!(forged, fixture.read(file), "{known}");
        fixture.write(file, &forged);
        let before = fixture.tree();
        let error = fixture.unarchive("one").unwrap_err();
        assert!(matches!(error, ArchiveError::BadRecord { .. }), "{error:?}");
        assert_eq!(fixture.tree(), before, "{foreign}");
    }
}

/// A main spec that is a link leads to a file that was never archived.
#[test]
fn no_link_in_the_place_of_a_main_spec_is_written_through() {
    let fixture = Fixture::new();
    set_up(&fixture);
    fixture.archive("one").unwrap();
    let merged = fixture.main_text("s");
    fixture.write("elsewhere", &merged);
    fs::remove_file(fixture.root().join("agentd/specs/s.md")).unwrap();
    std::os::unix::fs::symlink("../../elsewhere", fixture.root().join("agentd/specs/s.md"))
        .unwrap();
    fixture.unarchive("one").unwrap();
    assert_eq!(fixture.read("elsewhere"), merged);
    let main = spec(&[(1, "a")]);
    fixture.write("elsewhere", &main);
    assert!(fixture.archive("one").is_err());
    assert_eq!(fixture.read("elsewhere"), main);
}

#[test]
fn a_journal_that_cannot_be_read_is_an_error_and_stays() {
    let fixture = half_done();
    fs::write(fixture.journal(), "{\"action\":").unwrap();
    assert!(recover(&fixture.project, holder).is_err());
    assert!(fixture.journal().exists());
}
