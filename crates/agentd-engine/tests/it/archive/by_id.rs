//! Archived changes by ID, and what changes have cost.

use agentd_core::layout::ArchiveName;
use agentd_core::standing::Standing;
use agentd_engine::change::position;
use agentd_engine::insight::cost::{self, Month, Share};
use agentd_engine::insight::trace::of_change;
use test_project::TestProject;

use super::{Archiving as _, id, part};

/// A change that can be archived, and has made these calls.
fn complete(project: &TestProject, change: &str, calls: &str) {
    project.complete(change, "s", &part("", &[(1, "It MUST be.")]));
    let file = format!("agentd/changes/{change}/STATE.yaml");
    let began = "created_at: 2026-11-01T00:00:00Z\n";
    project.write_root(&file, project.read_root(&file) + calls + began);
}

fn names(project: &TestProject, which: &str) -> Vec<String> {
    project.store().archived_as(which).unwrap().iter().map(ArchiveName::to_string).collect()
}

#[test]
fn several_of_one_id_are_told_apart_by_their_states() {
    let project = TestProject::new();
    // The last one has an ID of its own that looks like the second of `one`.
    for change in ["one", "one", "one-3"] {
        complete(&project, change, "");
        project.archive(change).unwrap();
    }
    for _ in 2..=11 {
        complete(&project, "one", "");
        project.archive("one").unwrap();
    }
    let all = names(&project, "one");
    assert_eq!(all.len(), 12);
    assert_eq!(all[..2], ["2026-11-15-one-12", "2026-11-15-one-11"], "10 is after 9");
    assert_eq!(all[11], "2026-11-15-one");
    assert_eq!(names(&project, "one-3"), ["2026-11-15-one-3"]);
    assert_eq!(names(&project, "2026-11-15-one-4"), ["2026-11-15-one-4"]);
    assert!(names(&project, "on").is_empty() && names(&project, "one-4").is_empty());
    let found = project.store().find_change("2026-11-15-one-4").unwrap().unwrap();
    assert_eq!(found.id(), &id("one"));
    assert_eq!(found.snapshot().unwrap().state().unwrap().change_id, id("one"));
    assert_eq!(found.dir_in_project().as_str(), "agentd/archive/2026-11-15-one-4");
}

#[test]
fn an_open_change_goes_before_an_archived_one_of_its_id() {
    let project = TestProject::new();
    complete(&project, "one", "");
    project.archive("one").unwrap();
    let store = project.store();
    let place = |which: &str| store.find_change(which).unwrap().unwrap().archived().cloned();
    assert!(place("one").is_some());
    assert_eq!(
        of_change(&store, "one").unwrap().unwrap()[0].archived.as_deref(),
        Some("2026-11-15-one")
    );
    let next = |which: &str| {
        let snapshot = store.find_change(which).unwrap().unwrap().snapshot().unwrap();
        let course = position::of(&store, &snapshot).unwrap().course;
        assert_eq!((course.standing, course.why), (Standing::Done, "it is archived"));
        course.next[0].to_string()
    };
    assert_eq!(next("one"), "agentd show one");
    complete(&project, "one", "");
    assert!(place("one").is_none());
    assert_eq!(next("2026-11-15-one"), "agentd show 2026-11-15-one");
    assert!(store.find_change("two").unwrap().is_none());
    assert!(store.find_change("../one").unwrap().is_none());
}

#[test]
fn a_project_has_cost_what_its_changes_have_archived_ones_included() {
    let call = |step: &str, model: &str, cost: f64, at: &str| {
        format!(
            "  - step: {step}\n    model: {model}\n    tokens_in: 1000\n    tokens_out: 10\n    \
             duration_ms: 500\n    cost: {cost}\n    timestamp: {at}T10:00:00Z\n"
        )
    };
    let project = TestProject::new();
    let october = call("proposal-gen", "flash", 1.0, "2026-10-31");
    let failed = call("spec-gen-a", "flash", -5.0, "2026-11-01") + "    failure: timed_out\n";
    complete(&project, "one", &(october + &failed));
    project.archive("one").unwrap();
    let challenge = call("challenge", "gpt", 0.25, "2026-11-02");
    complete(&project, "two", &(challenge + &call("spec-gen-b", "pro", 0.5, "2026-11-03")));
    project.write_root("agentd/changes/new/proposal.md", "# Change: new\n");
    project.write_root("agentd/changes/odd/STATE.yaml", "phase: banana\n");
    let report = cost::of_project(&project.store(), None).unwrap();
    let shown = |shares: &[Share]| -> Vec<String> {
        shares
            .iter()
            .map(|s| format!("{} {} {}", s.name, s.spent.calls, s.spent.cost_usd))
            .collect()
    };
    // `review` is in the state of every change that may be archived.
    assert_eq!(shown(&report.models), ["flash 2 1", "pro 1 0.5", "gpt 1 0.25", "unknown 2 0"]);
    assert_eq!(shown(&report.roles), ["planner 3 1.5", "challenger 1 0.25", "reviewer 2 0"]);
    assert_eq!(shown(&report.steps)[1], "spec-gen 2 0.5", "no spec has a row of its own");
    assert_eq!(shown(&report.months), ["unknown 2 0", "2026-11 3 0.75", "2026-10 1 1"]);
    let changes: Vec<_> =
        report.changes.iter().map(|c| (c.change_id.as_str(), c.archived.as_deref())).collect();
    assert_eq!(changes, [("two", None), ("one", Some("2026-11-15-one"))]);
    assert_eq!((report.spent.calls, report.spent.failed), (6, 1));
    assert!((report.total_cost_usd - 1.75).abs() < 1e-9, "{}", report.total_cost_usd);
    assert_eq!(report.unreadable.len(), 1, "{:?}", report.unreadable);
    let october = cost::of_project(&project.store(), Some(&"2026-10".parse().unwrap())).unwrap();
    assert_eq!(shown(&october.months), ["2026-10 1 1"]);
    assert_eq!(october.changes.len(), 1);
    for wrong in ["2026", "2026-13", "2026-1", "11-2026", "2026-11-01", ""] {
        assert!(wrong.parse::<Month>().is_err(), "{wrong}");
    }
}
