use agentd_core::phase::Phase;
use agentd_engine::archive::ArchiveError;
use proptest::prelude::*;

use test_project::TestProject;

use super::{Archiving as _, part, spec};

#[test]
fn a_forced_archive_comes_back_unchanged() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a")]));
    project.complete("one", "s", &part("", &[(1, "a one")]));
    project.in_phase("one", "implementing");
    let before = project.contents();
    project.archive_with("one", Some("why not"), false).unwrap();
    let back = project.unarchive("2026-11-15-one").unwrap();
    assert_eq!(back.state.unwrap().phase, Phase::Implementing);
    assert_eq!(project.contents(), before);
}

#[test]
fn only_a_later_change_of_the_same_spec_blocks_unarchive() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a"), (2, "b")]));
    project.complete("one", "s", &part("", &[(1, "a one")]));
    project.complete("two", "s", &part("", &[(2, "b two")]));
    project.complete("other", "t", &part("", &[(1, "t")]));
    let first = project.main_text("s");
    for change in ["one", "two", "other"] {
        project.archive(change).unwrap();
    }
    let before = project.contents();
    let error = project.unarchive("one").unwrap_err();
    let ArchiveError::ChangedSince { files, .. } = &error else { panic!("{error}") };
    assert_eq!(files[0].as_str(), "agentd/specs/s.md");
    assert_eq!(project.contents(), before);
    project.unarchive("two").unwrap();
    project.unarchive("one").unwrap();
    assert_eq!(project.main_text("s"), first);
    insta::assert_snapshot!(project.main_text("CHANGELOG"), @"
    # Changelog

    What archived changes have done to the specs, newest first.

    ## 2026-11-15: other

    About other

    - `t`: new; added R1
    ");
}

#[test]
fn missing_and_open_changes_are_not_unarchived() {
    let project = TestProject::new();
    project.complete("one", "s", &part("", &[(1, "a")]));
    assert!(matches!(project.unarchive("one").unwrap_err(), ArchiveError::IsOpen { .. }));
    assert!(matches!(project.unarchive("none").unwrap_err(), ArchiveError::NotArchived { .. }));
    assert!(matches!(project.unarchive("../x").unwrap_err(), ArchiveError::NotArchived { .. }));
    project.archive("one").unwrap();
    project.complete("one", "s", &part("", &[(1, "a")]));
    assert!(matches!(project.unarchive("one").unwrap_err(), ArchiveError::IsOpen { .. }));
    project.write_root(
        "agentd/archive/2026-01-01-old/STATE.yaml",
        "change_id: old\nphase: archived\n",
    );
    assert!(matches!(project.unarchive("old").unwrap_err(), ArchiveError::NoRecord { .. }));
}

#[test]
fn a_state_written_since_is_updated_and_not_replaced() {
    let project = TestProject::new();
    project.complete("one", "s", &part("", &[(1, "a")]));
    project.archive("one").unwrap();
    let state = "agentd/archive/2026-11-15-one/STATE.yaml";
    let text = project.read_root(state).replace("iteration: 1", "iteration: 7");
    project.write_root(state, &text);
    let back = project.unarchive("one").unwrap().state.unwrap();
    assert_eq!((back.phase, back.iteration), (Phase::Complete, 7));
}

/// What the changes of a project do: for each spec, its requirements and what happens to them.
fn edits() -> impl Strategy<Value = Vec<(bool, Vec<u8>)>> {
    prop::collection::vec((any::<bool>(), prop::collection::vec(0..5_u8, 1..5)), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn archive_then_unarchive_is_the_identity(
        specs in edits(), crlf in any::<bool>(), log in any::<bool>()
    ) {
        let project = TestProject::new();
        project.in_phase("one", "complete");
        for (i, (exists, edits)) in specs.iter().enumerate() {
            let name = format!("spec-{i}");
            let numbered: Vec<(u32, u8)> = (1..).zip(edits.iter().copied()).collect();
            if *exists {
                let all: Vec<(u32, &str)> = numbered.iter().map(|(n, _)| (*n, "text")).collect();
                let text = spec(&all);
                project.main(&name, &if crlf { text.replace('\n', "\r\n") } else { text });
            }
            let of = |wanted: u8| {
                let ids = numbered.iter().filter(move |(_, edit)| *edit == wanted);
                ids.map(|(n, _)| *n).collect::<Vec<u32>>()
            };
            let removes: Vec<String> = of(1).iter().map(|n| format!("R{n}")).collect();
            let mut front = format!("removes: [{}]\n", removes.join(", "));
            if !of(2).is_empty() {
                front += "renames:\n";
                for n in of(2) {
                    front += &format!("  R{n}: \"New {n}\"\n");
                }
            }
            let mut own: Vec<(u32, &str)> = of(3).iter().map(|n| (*n, "edited")).collect();
            own.extend(of(4).iter().map(|n| (n + 50, "added")));
            project.spec_of("one", &name, &part(&front, &own));
        }
        if log {
            project.main("CHANGELOG", "# Mine\n\n## 1.0\n\nx\n");
        }
        let before = project.contents();
        project.archive("one").unwrap();
        prop_assert_ne!(&project.contents(), &before);
        let archived = project.contents();
        project.unarchive("one").unwrap();
        prop_assert_eq!(&project.contents(), &before);
        // And again, to the very same end.
        project.archive("one").unwrap();
        prop_assert_eq!(project.contents(), archived);
    }
}
