use agentd_core::merge::ConflictKind;
use agentd_core::phase::Phase;
use agentd_core::state::Choice;
use agentd_engine::archive::{self, ArchiveError, Request};
use agentd_engine::change::documents::DocumentError;

use super::{Fixture, holder, id, now, part, spec};

const ARCHIVED: &str = "agentd/archive/2026-11-15-one";

fn conflicts(error: ArchiveError) -> Vec<(String, ConflictKind)> {
    match error {
        ArchiveError::Conflicts { conflicts } => {
            conflicts.into_iter().map(|c| (c.conflict.what, c.conflict.kind)).collect()
        }
        other => panic!("{other}"),
    }
}

#[test]
fn an_archived_change_is_merged_moved_and_written_down() {
    let fixture = Fixture::new();
    fixture.main("s", &spec(&[(1, "a"), (2, "b"), (3, "c"), (4, "d")]));
    let front = "removes: [R3]\nrenames:\n  R4: \"Four\"\n";
    fixture.change("one", "s", &part(front, &[(2, "b new"), (5, "e")]));
    fixture.write(
        "agentd/changes/one/specs/fresh.md",
        &part("", &[(1, "x")]).replace("id: s", "id: fresh"),
    );
    let archived = fixture.archive("one").unwrap();
    assert_eq!(archived.totals.to_string(), "+2 ~1 -1 →1");
    assert_eq!(archived.state.phase, Phase::Archived);
    assert_eq!(archived.name.to_string(), "2026-11-15-one");
    let expected = spec(&[(1, "a"), (2, "b new"), (4, "d"), (5, "e")])
        .replace("Title 4", "Four")
        .replace("version: 3", "version: 4")
        .replace("updated_at: 2026-01-01T00:00:00Z", "updated_at: 2026-11-15T10:00:00Z");
    assert_eq!(fixture.main_text("s"), expected);
    assert!(fixture.main_text("fresh").contains("### R1: Title 1"));
    assert!(
        !fixture.exists("agentd/changes/one") && fixture.exists(&format!("{ARCHIVED}/specs/s.md"))
    );
    let state = fixture.read(&format!("{ARCHIVED}/STATE.yaml"));
    assert!(
        state.contains("phase: archived\n") && state.contains("archived_from: complete"),
        "{state}"
    );
    let log = fixture.main_text("CHANGELOG");
    let entry = "## 2026-11-15: one\n\nAbout one\n\n- `fresh`: new; added R1\n\
                 - `s`: added R5; edited R2; removed R3; renamed R4\n";
    assert!(log.ends_with(entry), "{log}");
    let listed = fixture.project.archived().unwrap().ids;
    assert_eq!(listed.len(), 1);
}

#[test]
fn only_a_complete_change_is_archived_unless_forced_with_a_reason() {
    for phase in ["proposed", "challenged", "rejected", "implementing"] {
        let fixture = Fixture::new();
        fixture.change("one", "s", &part("", &[(1, "a")]));
        fixture.change_in("one", phase);
        let before = fixture.tree();
        let error = fixture.archive("one").unwrap_err();
        assert!(matches!(error, ArchiveError::Document(DocumentError::Refused(_))), "{error}");
        assert_eq!(fixture.tree(), before);
        let archived = fixture.archive_with("one", Some("done by hand"), false).unwrap();
        let [decision] = archived.state.decisions.as_slice() else { panic!("{archived:?}") };
        assert_eq!((decision.choice, decision.note.as_str()), (Choice::Archive, "done by hand"));
        assert_eq!(decision.by.as_str(), "ada");
    }
    // Force that was not needed decides nothing.
    let fixture = Fixture::new();
    fixture.change("one", "s", &part("", &[(1, "a")]));
    assert!(fixture.archive_with("one", Some("x"), false).unwrap().state.decisions.is_empty());
}

/// The case that loses data elsewhere.
#[test]
fn two_changes_that_edit_one_requirement_end_in_a_conflict_and_lose_nothing() {
    let fixture = Fixture::new();
    fixture.main("s", &spec(&[(1, "five attempts"), (2, "b")]));
    fixture.change("one", "s", &part("", &[(1, "three attempts")]));
    fixture.change("two", "s", &part("", &[(1, "five attempts, then a captcha"), (2, "b two")]));
    fixture.archive("one").unwrap();
    let before = fixture.tree();
    for _ in 0..2 {
        let error = fixture.archive("two").unwrap_err();
        assert_eq!(conflicts(error), [("R1".to_owned(), ConflictKind::BothEdited)]);
        assert_eq!(fixture.tree(), before, "nothing has changed");
    }
    // A person writes what shall hold.
    let both = "three attempts, then a captcha";
    fixture.write("agentd/changes/two/specs/s.md", &part("", &[(1, both), (2, "b two")]));
    assert!(fixture.archive("two").is_err(), "only those who say so overrule main");
    let archived = fixture.archive_with("two", None, true).unwrap();
    assert_eq!(archived.totals.edited, 2);
    let main = fixture.main_text("s");
    assert!(main.contains("three attempts, then a captcha") && main.contains("b two"), "{main}");
}

#[test]
fn going_on_accepts_only_what_was_shown() {
    let fixture = Fixture::new();
    fixture.main("s", &spec(&[(1, "a"), (2, "b")]));
    fixture.change("mine", "s", &part("", &[(1, "a mine"), (2, "b mine")]));
    fixture.change("one", "s", &part("", &[(1, "a one")]));
    fixture.change("two", "s", &part("", &[(2, "b two")]));
    fixture.archive("one").unwrap();
    // Never shown to anybody: not accepted.
    let error = fixture.archive_with("mine", None, true).unwrap_err();
    assert_eq!(conflicts(error), [("R1".to_owned(), ConflictKind::BothEdited)]);
    fixture.archive("two").unwrap();
    let error = fixture.archive_with("mine", None, true).unwrap_err();
    assert_eq!(conflicts(error), [("R2".to_owned(), ConflictKind::BothEdited)], "R1 was decided");
    fixture.archive_with("mine", None, true).unwrap();
    assert!(fixture.main_text("s").contains("a mine") && fixture.main_text("s").contains("b mine"));
}

#[test]
fn taking_a_piece_out_of_the_change_keeps_that_of_main() {
    let fixture = Fixture::new();
    fixture.main("s", &spec(&[(1, "a"), (2, "b")]));
    fixture.change("one", "s", &part("", &[(1, "a one")]));
    fixture.change("two", "s", &part("", &[(1, "a two"), (2, "b two")]));
    fixture.archive("one").unwrap();
    fixture.archive("two").unwrap_err();
    fixture.write("agentd/changes/two/specs/s.md", &part("", &[(2, "b two")]));
    fixture.archive("two").unwrap();
    assert!(fixture.main_text("s").contains("a one") && fixture.main_text("s").contains("b two"));
}

#[test]
fn two_new_requirements_of_one_id_both_survive_and_references_follow() {
    let fixture = Fixture::new();
    fixture.main("s", &spec(&[(1, "a")]));
    fixture.change("one", "s", &part("", &[(2, "from one")]));
    fixture.change("two", "s", &part("", &[(2, "from two, see R2"), (3, "builds on R2")]));
    fixture.write("agentd/changes/two/specs/t.md", &part("", &[(1, "as s:R2 says, not t:R2")]));
    let tasks = "# Tasks: two\n\n## 1. Data Layer\n\n### Task 1.1: T\n\n```yaml\nid: \"1.1\"\n\
                 spec_ref: \"s:R2\"\n```\n\nDo R2.\n";
    fixture.write("agentd/changes/two/tasks.md", tasks);
    fixture.archive("one").unwrap();
    let archived = fixture.archive("two").unwrap();
    let [renumbering] = archived.renumbered.as_slice() else { panic!("{archived:?}") };
    assert_eq!(
        (renumbering.from.to_string(), renumbering.to.to_string()),
        ("R2".into(), "R4".into())
    );
    let main = fixture.main_text("s");
    for text in [
        "### R2: Title 2\n\nfrom one",
        "### R3: Title 3\n\nbuilds on R4",
        "### R4: Title 2\n\nfrom two, see R4",
    ] {
        assert!(main.contains(text), "{text} in {main}");
    }
    assert!(fixture.main_text("t").contains("as s:R4 says, not t:R2"));
    let dir = "agentd/archive/2026-11-15-two";
    let expected = tasks.replace("s:R2", "s:R4").replace("Do R2", "Do R4");
    assert_eq!(fixture.read(&format!("{dir}/tasks.md")), expected);
    fixture.unarchive("two").unwrap();
    assert_eq!(fixture.read("agentd/changes/two/tasks.md"), tasks);
}

#[test]
fn a_spec_that_was_removed_or_has_no_base_is_a_conflict() {
    let fixture = Fixture::new();
    fixture.main("s", &spec(&[(1, "a")]));
    fixture.change("one", "s", &part("", &[(1, "a one")]));
    std::fs::remove_file(fixture.root().join("agentd/specs/s.md")).unwrap();
    let error = fixture.archive("one").unwrap_err();
    assert_eq!(conflicts(error), [("the spec".to_owned(), ConflictKind::SpecRemoved)]);
    fixture.main("s", &spec(&[(1, "a")]));
    std::fs::remove_file(fixture.root().join("agentd/changes/one/base/s.md")).unwrap();
    let error = fixture.archive("one").unwrap_err();
    assert_eq!(conflicts(error), [("R1".to_owned(), ConflictKind::NoBase)]);
}

#[test]
fn a_spec_that_cannot_be_read_stops_it() {
    let fixture = Fixture::new();
    fixture.change("one", "s", &part("", &[(1, "a")]).replace("type: spec", "removes: [banana"));
    let before = fixture.tree();
    let error = fixture.archive("one").unwrap_err();
    assert!(matches!(error, ArchiveError::Unsound { .. }), "{error}");
    assert_eq!(fixture.tree(), before);
}

#[test]
fn a_change_without_specs_is_archived_too() {
    let fixture = Fixture::new();
    fixture.change_in("one", "complete");
    assert_eq!(fixture.archive("one").unwrap().totals.specs, 0);
    assert!(fixture.exists(ARCHIVED));
}

#[test]
fn a_second_change_of_the_same_id_and_day_gets_a_number() {
    let fixture = Fixture::new();
    for (n, dir) in [(1, ARCHIVED), (2, "agentd/archive/2026-11-15-one-1")] {
        fixture.change("one", "s", &part("", &[(n, "x")]));
        fixture.archive("one").unwrap();
        assert!(fixture.exists(dir), "{dir}");
    }
    fixture.unarchive("one").unwrap();
    assert!(fixture.exists(ARCHIVED), "the latest is taken back");
    assert!(!fixture.exists("agentd/archive/2026-11-15-one-1"));
}

#[test]
fn hand_written_main_specs_keep_every_other_byte() {
    let fixture = Fixture::new();
    let main = "\u{feff}Notes\r\n\r\n## Requirements\r\n\r\n### R1. One  \r\n\r\na\t\r\n\r\n\r\n### R2 - Two\r\n\r\nb\r\n## Mine\r\n\r\n***";
    fixture.main("s", main);
    fixture.change("one", "s", &part("", &[(2, "b new")]).replace("Title 2", "Two"));
    fixture.archive("one").unwrap();
    assert_eq!(fixture.main_text("s"), main.replace("\r\nb\r\n", "\r\nb new\r\n"));
}

#[test]
fn a_preview_changes_nothing_and_says_the_same() {
    let fixture = Fixture::new();
    fixture.main("s", &spec(&[(1, "a")]));
    fixture.change("one", "s", &part("", &[(1, "a one"), (2, "b")]));
    fixture.change_in("one", "implementing");
    let before = fixture.tree();
    let (change, holder) = (&id("one"), &holder());
    let request = Request { change, force: None, resume: false, by: "ada", holder, now: now() };
    let preview = archive::preview(&fixture.project, &request).unwrap();
    assert_eq!(preview.totals.to_string(), "+1 ~1 -0 →0");
    assert!(preview.refused.is_some() && preview.conflicts.is_empty());
    assert_eq!(fixture.tree(), before);
    fixture.change_in("one", "complete");
    fixture.archive("one").unwrap();
    assert_eq!(fixture.main_text("s"), preview.specs[0].after);
}

#[test]
fn a_change_that_somebody_works_on_is_not_archived() {
    let fixture = Fixture::new();
    fixture.change("one", "s", &part("", &[(1, "a")]));
    let lock = fixture.project.try_run_lock(&id("one"), &holder()).unwrap();
    let error = fixture.archive("one").unwrap_err();
    assert!(matches!(error, ArchiveError::Document(DocumentError::Lock(_))), "{error}");
    drop(lock);
    fixture.archive("one").unwrap();
}
