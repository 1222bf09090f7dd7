use agentd_core::phase::Phase;
use agentd_engine::archive::ArchiveError;
use proptest::prelude::*;

use super::{Fixture, part, spec};

#[test]
fn what_was_forced_into_the_archive_comes_back_as_it_was() {
    let fixture = Fixture::new();
    fixture.main("s", &spec(&[(1, "a")]));
    fixture.change("one", "s", &part("", &[(1, "a one")]));
    fixture.change_in("one", "implementing");
    let before = fixture.tree();
    fixture.archive_with("one", Some("why not"), false).unwrap();
    let back = fixture.unarchive("2026-11-15-one").unwrap();
    assert_eq!(back.state.unwrap().phase, Phase::Implementing);
    assert_eq!(fixture.tree(), before);
}

#[test]
fn a_later_change_of_the_same_spec_stands_in_the_way_and_one_of_another_does_not() {
    let fixture = Fixture::new();
    fixture.main("s", &spec(&[(1, "a"), (2, "b")]));
    fixture.change("one", "s", &part("", &[(1, "a one")]));
    fixture.change("two", "s", &part("", &[(2, "b two")]));
    fixture.change("other", "t", &part("", &[(1, "t")]));
    let first = fixture.main_text("s");
    for change in ["one", "two", "other"] {
        fixture.archive(change).unwrap();
    }
    let before = fixture.tree();
    let error = fixture.unarchive("one").unwrap_err();
    let ArchiveError::ChangedSince { files, .. } = &error else { panic!("{error}") };
    assert_eq!(files[0].as_str(), "agentd/specs/s.md");
    assert_eq!(fixture.tree(), before);
    fixture.unarchive("two").unwrap();
    fixture.unarchive("one").unwrap();
    assert_eq!(fixture.main_text("s"), first);
    let log = fixture.main_text("CHANGELOG");
    assert!(
        log.contains(": other\n") && !log.contains(": one\n") && !log.contains(": two\n"),
        "{log}"
    );
}

#[test]
fn what_is_not_there_or_open_is_not_taken_back() {
    let fixture = Fixture::new();
    fixture.change("one", "s", &part("", &[(1, "a")]));
    assert!(matches!(fixture.unarchive("one").unwrap_err(), ArchiveError::IsOpen { .. }));
    assert!(matches!(fixture.unarchive("none").unwrap_err(), ArchiveError::NotArchived { .. }));
    assert!(matches!(fixture.unarchive("../x").unwrap_err(), ArchiveError::NotArchived { .. }));
    fixture.archive("one").unwrap();
    fixture.change("one", "s", &part("", &[(1, "a")]));
    assert!(matches!(fixture.unarchive("one").unwrap_err(), ArchiveError::IsOpen { .. }));
    fixture.write("agentd/archive/2026-01-01-old/STATE.yaml", "change_id: old\nphase: archived\n");
    assert!(matches!(fixture.unarchive("old").unwrap_err(), ArchiveError::NoRecord { .. }));
}

#[test]
fn a_state_that_was_written_since_moves_on_instead_of_being_replaced() {
    let fixture = Fixture::new();
    fixture.change("one", "s", &part("", &[(1, "a")]));
    fixture.archive("one").unwrap();
    let state = "agentd/archive/2026-11-15-one/STATE.yaml";
    let text = fixture.read(state).replace("iteration: 1", "iteration: 7");
    fixture.write(state, &text);
    let back = fixture.unarchive("one").unwrap().state.unwrap();
    assert_eq!((back.phase, back.iteration), (Phase::Complete, 7));
}

/// What the changes of a project do: for each spec, its requirements and what happens to them.
fn deeds() -> impl Strategy<Value = Vec<(bool, Vec<u8>)>> {
    prop::collection::vec((any::<bool>(), prop::collection::vec(0..5_u8, 1..5)), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn archive_then_unarchive_is_the_identity(
        specs in deeds(), crlf in any::<bool>(), log in any::<bool>()
    ) {
        let fixture = Fixture::new();
        fixture.change_in("one", "complete");
        for (i, (exists, deeds)) in specs.iter().enumerate() {
            let name = format!("spec-{i}");
            let numbered: Vec<(u32, u8)> = (1..).zip(deeds.iter().copied()).collect();
            if *exists {
                let all: Vec<(u32, &str)> = numbered.iter().map(|(n, _)| (*n, "text")).collect();
                let text = spec(&all);
                fixture.main(&name, &if crlf { text.replace('\n', "\r\n") } else { text });
            }
            let of = |wanted: u8| {
                let ids = numbered.iter().filter(move |(_, deed)| *deed == wanted);
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
            fixture.spec_of("one", &name, &part(&front, &own));
        }
        if log {
            fixture.main("CHANGELOG", "# Mine\n\n## 1.0\n\nx\n");
        }
        let before = fixture.tree();
        fixture.archive("one").unwrap();
        prop_assert_ne!(&fixture.tree(), &before);
        let archived = fixture.tree();
        fixture.unarchive("one").unwrap();
        prop_assert_eq!(&fixture.tree(), &before);
        // And again, to the very same end.
        fixture.archive("one").unwrap();
        prop_assert_eq!(fixture.tree(), archived);
    }
}
