use agentd_core::merge::ConflictKind;
use agentd_core::phase::Phase;
use agentd_core::state::Choice;
use agentd_engine::archive::{self, ArchiveError, Request};
use agentd_engine::change::documents::DocumentError;

use test_project::TestProject;

use super::{Archiving as _, holder, id, now, part, spec};

const ARCHIVED: &str = "agentd/archive/2026-11-15-one";

fn conflicts(error: ArchiveError) -> Vec<(String, ConflictKind)> {
    match error {
        ArchiveError::Conflicts { conflicts } => {
            conflicts.into_iter().map(|c| (c.conflict.what, c.conflict.kind)).collect()
        }
        other => panic!("{other}"),
    }
}

/// The main spec `s`, as it would be if nothing had been merged into it.
fn requirements(project: &TestProject) -> String {
    let text = project.main_text("s");
    let mut lines: Vec<&str> = text.lines().collect();
    for line in &mut lines {
        if line.starts_with("version: ") {
            *line = "version: 3";
        } else if line.starts_with("updated_at: ") {
            *line = "updated_at: 2026-01-01T00:00:00Z";
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn an_archived_change_is_merged_moved_and_logged() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a"), (2, "b"), (3, "c"), (4, "d")]));
    let front = "removes: [R3]\nrenames:\n  R4: \"Four\"\n";
    project.complete("one", "s", &part(front, &[(2, "b new"), (5, "e")]));
    project.write_root(
        "agentd/changes/one/specs/fresh.md",
        part("", &[(1, "x")]).replace("id: s", "id: fresh"),
    );
    project.lists("one", "fresh");
    let archived = project.archive("one").unwrap();
    assert_eq!(
        archived.totals.to_string(),
        "2 requirements added, 1 edited, 1 removed, 1 renamed, in 2 specs"
    );
    assert_eq!(archived.state.phase, Phase::Archived);
    assert_eq!(archived.name.to_string(), "2026-11-15-one");
    let expected = spec(&[(1, "a"), (2, "b new"), (4, "d"), (5, "e")])
        .replace("Title 4", "Four")
        .replace("version: 3", "version: 4")
        .replace("updated_at: 2026-01-01T00:00:00Z", "updated_at: 2026-11-15T10:00:00Z");
    assert_eq!(project.main_text("s"), expected);
    insta::assert_snapshot!(project.main_text("fresh"), @"
    ---
    id: fresh
    type: spec
    ---

    # Specification: S

    ## Requirements

    ### R1: Title 1

    x
    ");
    assert!(
        !project.has_root("agentd/changes/one")
            && project.has_root(&format!("{ARCHIVED}/specs/s.md"))
    );
    let state = project.read_root(&format!("{ARCHIVED}/STATE.yaml"));
    insta::assert_snapshot!(state, @r#"
    # Written by agentd. Change it with agentd's commands, not by hand.
    change_id: one
    phase: archived
    updated_at: 2026-11-15T10:00:00Z
    description: "About one"
    last_action: archive
    iteration: 1
    code_review:
      verdict: "APPROVED"
      iteration: 1
      reviewer: codex
      at: 2026-11-15T09:00:00Z
      run: 1
    archived_from: complete
    llm_calls:
      - step: review
        model: ""
        tokens_in: 0
        tokens_out: 0
        tokens_cached: 0
        duration_ms: 0
        cost: 0.0
        run: 1
    total_cost: 0.0
    total_tokens_in: 0
    total_tokens_out: 0
    "#);
    insta::assert_snapshot!(project.main_text("CHANGELOG"), @"
    # Changelog

    What archived changes have done to the specs, newest first.

    ## 2026-11-15: one

    About one

    - `fresh`: new; added R1
    - `s`: added R5; edited R2; removed R3; renamed R4
    ");
    let listed = project.store().archived().unwrap().ids;
    assert_eq!(listed.len(), 1);
}

#[test]
fn only_a_complete_change_is_archived_unless_forced_with_a_reason() {
    for phase in ["proposed", "challenged", "rejected", "implementing"] {
        let project = TestProject::new();
        project.complete("one", "s", &part("", &[(1, "a")]));
        project.in_phase("one", phase);
        let before = project.contents();
        let error = project.archive("one").unwrap_err();
        assert!(matches!(error, ArchiveError::Document(DocumentError::Refused(_))), "{error}");
        assert_eq!(project.contents(), before);
        let archived = project.archive_with("one", Some("done by hand"), false).unwrap();
        let [decision] = archived.state.decisions.as_slice() else { panic!("{archived:?}") };
        assert_eq!((decision.choice, decision.note.as_str()), (Choice::Archive, "done by hand"));
        assert_eq!(decision.by.as_str(), "ada");
    }
    // Force that was not needed decides nothing.
    let project = TestProject::new();
    project.complete("one", "s", &part("", &[(1, "a")]));
    assert!(project.archive_with("one", Some("x"), false).unwrap().state.decisions.is_empty());
}

/// The case that loses data elsewhere.
#[test]
fn two_edits_of_one_requirement_conflict_and_lose_nothing() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "five attempts"), (2, "b")]));
    project.complete("one", "s", &part("", &[(1, "three attempts")]));
    project.complete("two", "s", &part("", &[(1, "five attempts, then a captcha"), (2, "b two")]));
    project.archive("one").unwrap();
    let before = project.contents();
    for _ in 0..2 {
        let error = project.archive("two").unwrap_err();
        assert_eq!(conflicts(error), [("R1".to_owned(), ConflictKind::BothEdited)]);
        assert_eq!(project.contents(), before, "nothing has changed");
    }
    // A person writes what shall hold.
    let both = "three attempts, then a captcha";
    project.write_root("agentd/changes/two/specs/s.md", part("", &[(1, both), (2, "b two")]));
    assert!(project.archive("two").is_err(), "only those who say so overrule main");
    let archived = project.archive_with("two", None, true).unwrap();
    assert_eq!(archived.totals.edited, 2);
    assert_eq!(requirements(&project), spec(&[(1, both), (2, "b two")]));
}

#[test]
fn resuming_accepts_only_conflicts_that_were_shown() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a"), (2, "b")]));
    project.complete("mine", "s", &part("", &[(1, "a mine"), (2, "b mine")]));
    project.complete("one", "s", &part("", &[(1, "a one")]));
    project.complete("two", "s", &part("", &[(2, "b two")]));
    project.archive("one").unwrap();
    // Never shown to anybody: not accepted.
    let error = project.archive_with("mine", None, true).unwrap_err();
    assert_eq!(conflicts(error), [("R1".to_owned(), ConflictKind::BothEdited)]);
    project.archive("two").unwrap();
    let error = project.archive_with("mine", None, true).unwrap_err();
    assert_eq!(conflicts(error), [("R2".to_owned(), ConflictKind::BothEdited)], "R1 was decided");
    project.archive_with("mine", None, true).unwrap();
    assert_eq!(requirements(&project), spec(&[(1, "a mine"), (2, "b mine")]));
}

#[test]
fn removing_a_piece_from_the_change_keeps_that_of_main() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a"), (2, "b")]));
    project.complete("one", "s", &part("", &[(1, "a one")]));
    project.complete("two", "s", &part("", &[(1, "a two"), (2, "b two")]));
    project.archive("one").unwrap();
    project.archive("two").unwrap_err();
    project.write_root("agentd/changes/two/specs/s.md", part("", &[(2, "b two")]));
    project.archive("two").unwrap();
    assert_eq!(requirements(&project), spec(&[(1, "a one"), (2, "b two")]));
}

#[test]
fn two_new_requirements_with_one_id_survive_with_references() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a")]));
    project.complete("one", "s", &part("", &[(2, "from one")]));
    project.complete("two", "s", &part("", &[(2, "from two, see R2"), (3, "builds on R2")]));
    project.write_root("agentd/changes/two/specs/t.md", part("", &[(1, "as s:R2 says, not t:R2")]));
    project.lists("two", "t");
    let tasks = "# Tasks: two\n\n## 1. Data Layer\n\n### Task 1.1: T\n\n```yaml\nid: \"1.1\"\n\
                 spec_ref: \"s:R2\"\n```\n\nDo R2.\n";
    project.write_root("agentd/changes/two/tasks.md", tasks);
    project.archive("one").unwrap();
    let archived = project.archive("two").unwrap();
    let [renumbering] = archived.renumbered.as_slice() else { panic!("{archived:?}") };
    assert_eq!(
        (renumbering.from.to_string(), renumbering.to.to_string()),
        ("R2".into(), "R4".into())
    );
    insta::assert_snapshot!(project.main_text("s"), @"
    ---
    id: s
    type: spec
    title: S
    version: 5
    created_at: 2026-01-01T00:00:00Z
    updated_at: 2026-11-15T10:00:00Z
    ---

    # Specification: S

    ## Overview

    It is.

    ## Requirements

    ### R1: Title 1

    a

    ### R2: Title 2

    from one

    ### R3: Title 3

    builds on R4

    ### R4: Title 2

    from two, see R4

    ## Acceptance Criteria

    ### Scenario: s

    - **WHEN** a
    - **THEN** b
    ");
    insta::assert_snapshot!(project.main_text("t"), @"
    ---
    id: s
    type: spec
    ---

    # Specification: S

    ## Requirements

    ### R1: Title 1

    as s:R4 says, not t:R2
    ");
    let dir = "agentd/archive/2026-11-15-two";
    let expected = tasks.replace("s:R2", "s:R4").replace("Do R2", "Do R4");
    assert_eq!(project.read_root(&format!("{dir}/tasks.md")), expected);
    project.unarchive("two").unwrap();
    assert_eq!(project.read_root("agentd/changes/two/tasks.md"), tasks);
}

#[test]
fn a_spec_that_was_removed_or_has_no_base_is_a_conflict() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a")]));
    project.complete("one", "s", &part("", &[(1, "a one")]));
    std::fs::remove_file(project.root().join("agentd/specs/s.md")).unwrap();
    let error = project.archive("one").unwrap_err();
    assert_eq!(conflicts(error), [("the spec".to_owned(), ConflictKind::SpecRemoved)]);
    project.main("s", &spec(&[(1, "a")]));
    std::fs::remove_file(project.root().join("agentd/changes/one/base/s.md")).unwrap();
    let error = project.archive("one").unwrap_err();
    assert_eq!(conflicts(error), [("R1".to_owned(), ConflictKind::NoBase)]);
}

#[test]
fn a_spec_that_cannot_be_read_stops_it() {
    let project = TestProject::new();
    project.complete("one", "s", &part("", &[(1, "a")]).replace("type: spec", "removes: [banana"));
    let before = project.contents();
    let error = project.archive("one").unwrap_err();
    assert!(matches!(error, ArchiveError::Unsound { .. }), "{error}");
    assert_eq!(project.contents(), before);
}

#[test]
fn a_change_without_specs_is_archived_too() {
    let project = TestProject::new();
    project.in_phase("one", "complete");
    assert_eq!(project.archive("one").unwrap().totals.specs, 0);
    assert!(project.has_root(ARCHIVED));
}

#[test]
fn a_second_change_of_the_same_id_and_day_gets_a_number() {
    let project = TestProject::new();
    for (n, dir) in [(1, ARCHIVED), (2, "agentd/archive/2026-11-15-one-1")] {
        project.complete("one", "s", &part("", &[(n, "x")]));
        project.archive("one").unwrap();
        assert!(project.has_root(dir), "{dir}");
    }
    project.unarchive("one").unwrap();
    assert!(project.has_root(ARCHIVED), "the latest is taken back");
    assert!(!project.has_root("agentd/archive/2026-11-15-one-1"));
}

#[test]
fn hand_written_main_specs_keep_every_other_byte() {
    let project = TestProject::new();
    let main = "\u{feff}Notes\r\n\r\n## Requirements\r\n\r\n### R1. One  \r\n\r\na\t\r\n\r\n\r\n### R2 - Two\r\n\r\nb\r\n## Mine\r\n\r\n***";
    project.main("s", main);
    project.complete("one", "s", &part("", &[(2, "b new")]).replace("Title 2", "Two"));
    project.archive("one").unwrap();
    assert_eq!(project.main_text("s"), main.replace("\r\nb\r\n", "\r\nb new\r\n"));
}

#[test]
fn a_preview_changes_nothing_and_says_the_same() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a")]));
    project.complete("one", "s", &part("", &[(1, "a one"), (2, "b")]));
    project.in_phase("one", "implementing");
    let before = project.contents();
    let (change, holder) = (&id("one"), &holder());
    let request = Request {
        change,
        force: None,
        accept_stale: None,
        drop: None,
        resume: false,
        by: "ada",
        holder,
        now: now(),
    };
    let preview = archive::preview(&project.store(), &request).unwrap();
    assert_eq!(preview.totals.to_string(), "1 requirement added, 1 edited, in 1 spec");
    assert!(preview.refused.is_some() && preview.conflicts.is_empty());
    assert_eq!(project.contents(), before);
    project.in_phase("one", "complete");
    project.archive("one").unwrap();
    assert_eq!(project.main_text("s"), preview.specs[0].after);
}

#[test]
fn a_change_that_somebody_works_on_is_not_archived() {
    let project = TestProject::new();
    project.complete("one", "s", &part("", &[(1, "a")]));
    let lock = project.store().try_run_lock(&id("one"), &holder()).unwrap();
    let error = project.archive("one").unwrap_err();
    assert!(matches!(error, ArchiveError::Document(DocumentError::Lock(_))), "{error}");
    drop(lock);
    project.archive("one").unwrap();
}

/// RP3: what the proposal does not list was dropped from the plan, or never part of it.
#[test]
fn a_spec_that_the_proposal_does_not_list_is_not_merged() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a")]));
    project.complete("one", "s", &part("", &[(2, "b")]));
    for (name, main) in [("dropped", "base/dropped.md"), ("own", "base/other.md")] {
        let text = part("", &[(1, "x")]).replace("id: s", &format!("id: {name}"));
        project.write_root(&format!("agentd/changes/one/specs/{name}.md"), text);
        project.write_root(&format!("agentd/changes/one/{main}"), "");
    }
    let holder = holder();
    let request = Request {
        change: &id("one"),
        force: None,
        accept_stale: None,
        drop: None,
        resume: false,
        by: "ada",
        holder: &holder,
        now: now(),
    };
    let preview = archive::preview(&project.store(), &request).unwrap();
    assert_eq!(preview.unlisted, ["dropped", "own"].map(|name| name.parse().unwrap()));
    let archived = project.archive("one").unwrap();
    assert_eq!(archived.unlisted, preview.unlisted);
    assert_eq!(archived.totals.to_string(), "1 requirement added, in 1 spec");
    assert!(!project.root().join("agentd/specs/dropped.md").exists());
    assert!(!project.root().join("agentd/specs/own.md").exists());
}

/// Without a proposal nothing says that a spec was dropped.
#[test]
fn without_a_proposal_all_specs_are_merged() {
    let project = TestProject::new();
    project.complete("one", "s", &part("", &[(1, "a")]));
    std::fs::remove_file(project.root().join("agentd/changes/one/proposal.md")).unwrap();
    let archived = project.archive_with("one", Some("done by hand"), false).unwrap();
    assert_eq!(archived.unlisted, []);
    assert!(project.root().join("agentd/specs/s.md").exists());
}
