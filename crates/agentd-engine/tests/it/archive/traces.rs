use agentd_engine::insight::overlap::Operation;
use agentd_engine::insight::trace::{of_change, of_requirement};

use test_project::TestProject;

use super::{Archiving as _, part, spec};

const TASKS: &str = "# Tasks: one\n\n## 1. Data Layer\n\n### Task 1.1: Store it\n\n```yaml\nid: \"1.1\"\naction: CREATE\nfile: src/store.rs\nspec_ref: \"s:R1\"\nstatus: done\n```\n\n### Task 1.2: Tell it\n\n```yaml\nid: \"1.2\"\naction: CREATE\nfile: src/tell.rs\nspec_ref: \"s:R2\"\n```\n";

fn project() -> TestProject {
    let project = TestProject::new();
    project.main("s", &spec(&[(1, "a")]));
    let text = part("", &[(1, "a one"), (2, "b")])
        + "## Acceptance Criteria\n\n### Scenario: R1 holds\n\n- **WHEN** a\n- **THEN** b\n";
    project.complete("one", "s", &text);
    project.write_root("agentd/changes/one/tasks.md", TASKS);
    project
}

#[test]
fn a_requirement_is_traced_to_tasks_commits_and_review() {
    let project = project().repository();
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "-m", "Begin"]);
    let base = project.git(&["rev-parse", "HEAD"]);
    for (file, message) in [
        ("src/store.rs", "Store it"),
        ("src/other.rs", "Something else"),
        ("docs.md", "one: tasks 1.1 and 1.10"),
    ] {
        project.write_root(file, message);
        project.git(&["add", "."]);
        project.git(&["commit", "--quiet", "-m", message]);
    }
    let state = project.read_root("agentd/changes/one/STATE.yaml");
    project.write_root(
        "agentd/changes/one/STATE.yaml",
        format!("{state}git:\n  workflow: in-place\n  base_commit: \"{base}\"\n"),
    );
    let check = || {
        let traces = of_requirement(&project.store(), &"s:R1".parse().unwrap()).unwrap();
        let [trace] = traces.as_slice() else { panic!("{traces:?}") };
        assert_eq!((trace.how, trace.title.as_str()), (Operation::Edits, "Title 1"));
        assert_eq!(trace.tasks.iter().map(|t| t.id.to_string()).collect::<Vec<_>>(), ["1.1"]);
        let mut subjects: Vec<&str> = trace.commits.iter().map(|c| c.subject.as_str()).collect();
        subjects.sort_unstable();
        assert_eq!(subjects, ["Store it", "one: tasks 1.1 and 1.10"]);
        assert_eq!(trace.tasks[0].commits.len(), 2);
        assert_eq!(trace.scenarios[0].as_str(), "R1 holds");
        let review = trace.review.as_ref().unwrap();
        assert_eq!((review.verdict, review.reviewer.as_str()), ("APPROVED", "codex"));
        trace.archived.clone()
    };
    assert_eq!(check(), None);
    project.archive("one").unwrap();
    assert_eq!(check().as_deref(), Some("2026-11-15-one"), "the same from the archive");
    let of_change = of_change(&project.store(), "one").unwrap().unwrap();
    let ids: Vec<&str> = of_change.iter().map(|trace| trace.requirement.as_str()).collect();
    assert_eq!(ids, ["s:R1", "s:R2"]);
    assert!(of_change[1].commits.is_empty() && of_change[1].scenarios.is_empty());
}

#[test]
fn without_git_there_are_no_commits_and_no_error() {
    let project = project();
    let traces = of_change(&project.store(), "one").unwrap().unwrap();
    assert!(traces.iter().all(|trace| trace.commits.is_empty()) && traces.len() == 2);
    assert!(of_change(&project.store(), "none").unwrap().is_none());
    assert!(of_requirement(&project.store(), &"s:R9".parse().unwrap()).unwrap().is_empty());
}
