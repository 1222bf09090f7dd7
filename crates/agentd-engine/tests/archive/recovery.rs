use agentd_engine::archive::recover;

use super::{Fixture, holder, part, spec};

const JOURNAL: &str = "agentd/.locks/_archive.json";

/// A change that is half archived: its record is written, some main specs too.
fn half_done() -> Fixture {
    let done = Fixture::new();
    set_up(&done);
    done.archive("one").unwrap();
    let fixture = Fixture::new();
    set_up(&fixture);
    fixture.write(
        JOURNAL,
        "{\"action\":\"archive\",\"change_id\":\"one\",\"name\":\"2026-11-15-one\"}",
    );
    let record = done.read("agentd/archive/2026-11-15-one/archive.json");
    fixture.write("agentd/changes/one/archive.json", &record);
    fixture.main("s", &done.main_text("s"));
    fixture
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
    assert!(!fixture.exists(JOURNAL));
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

/// `git clean` and the like take the locks away, and the journal with them.
#[test]
fn a_record_in_an_open_change_is_played_back_before_it_is_archived_again() {
    let fixture = half_done();
    std::fs::remove_dir_all(fixture.root().join("agentd/.locks")).unwrap();
    fixture.archive("one").unwrap();
    let main = fixture.main_text("s");
    assert!(main.contains("version: 4\n") && main.contains("a one"), "once and not twice: {main}");
    fixture.unarchive("one").unwrap();
    assert_eq!(fixture.main_text("s"), spec(&[(1, "a")]));
}

#[test]
fn a_journal_that_cannot_be_read_is_an_error_and_stays() {
    let fixture = half_done();
    fixture.write(JOURNAL, "{\"action\":");
    assert!(recover(&fixture.project, holder).is_err());
    assert!(fixture.exists(JOURNAL));
}
