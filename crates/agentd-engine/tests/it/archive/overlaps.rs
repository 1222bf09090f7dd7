use std::time::{Duration, Instant};

use agentd_engine::insight::overlap::{Operation, Overlap, OverlapKind, overlaps};

use test_project::TestProject;

use super::{Archiving as _, id, part, spec};

type Expected = (OverlapKind, String, Vec<(String, Operation)>);

fn found(project: &TestProject, only: Option<&str>) -> Vec<Expected> {
    let store = project.store();
    let only = only.map(|only| store.change(&id(only)).unwrap().snapshot().unwrap());
    let only = only.as_ref().map(|snapshot| &snapshot.documents);
    let all: Vec<Overlap> = overlaps(&store, only).unwrap();
    let all = all.into_iter().map(|overlap| {
        let changes = overlap.changes.into_iter().map(|t| (t.change_id.to_string(), t.how));
        (overlap.kind, overlap.what, changes.collect())
    });
    all.collect()
}

fn tasks(file: &str, action: &str) -> String {
    format!(
        "# Tasks: x\n\n## 1. Data Layer\n\n### Task 1.1: T\n\n```yaml\nid: \"1.1\"\naction: {action}\nfile: {file}\n```\n"
    )
}

#[test]
fn overlapping_changes_are_named_with_their_edits() {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a"), (2, "b"), (3, "c")]));
    project.complete("one", "s", &part("removes: [R2]\n", &[(1, "a one"), (9, "new")]));
    project.complete("two", "s", &part("renames:\n  R2: \"x\"\n", &[(1, "a two"), (9, "new")]));
    project.complete("three", "s", &part("", &[(3, "c three")]));
    project.write_root("agentd/changes/one/tasks.md", tasks("src/a.rs", "MODIFY"));
    project.write_root("agentd/changes/three/tasks.md", tasks("./src/a.rs", "DELETE"));
    let pair = |a: (&str, Operation), b: (&str, Operation)| {
        vec![(a.0.to_owned(), a.1), (b.0.to_owned(), b.1)]
    };
    let requirement = OverlapKind::Requirement;
    let expected = vec![
        (
            requirement,
            "s:R1".to_owned(),
            pair(("one", Operation::Edits), ("two", Operation::Edits)),
        ),
        (
            requirement,
            "s:R2".to_owned(),
            pair(("one", Operation::Removes), ("two", Operation::Renames)),
        ),
        (requirement, "s:R9".to_owned(), pair(("one", Operation::Adds), ("two", Operation::Adds))),
        (
            OverlapKind::File,
            "src/a.rs".to_owned(),
            pair(("one", Operation::Edits), ("three", Operation::Removes)),
        ),
    ];
    assert_eq!(found(&project, None), expected);
    assert_eq!(found(&project, Some("three")), expected[3..]);
    assert_eq!(found(&project, Some("two")), expected[..3]);
}

#[test]
fn a_thousand_changes_are_compared_in_less_than_a_second() {
    let project = TestProject::new();
    for n in 0..1000 {
        project.complete(
            &format!("change-{n}"),
            &format!("s-{n}"),
            &part("", &[(1, "a"), (2, "b")]),
        );
    }
    project.complete("again", "s-500", &part("", &[(2, "c")]));
    let start = Instant::now();
    assert_eq!(found(&project, Some("again")).len(), 1);
    // A tenth of a second of processor time in a release build; this is about how it grows.
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}
