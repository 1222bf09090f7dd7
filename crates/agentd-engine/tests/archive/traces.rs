use std::process::Command;

use agentd_engine::insight::overlap::How;
use agentd_engine::insight::trace::{of_change, of_requirement};

use super::{Fixture, id, part, spec};

const TASKS: &str = "# Tasks: one\n\n## 1. Data Layer\n\n### Task 1.1: Store it\n\n```yaml\nid: \"1.1\"\naction: CREATE\nfile: src/store.rs\nspec_ref: \"s:R1\"\nstatus: done\n```\n\n### Task 1.2: Tell it\n\n```yaml\nid: \"1.2\"\naction: CREATE\nfile: src/tell.rs\nspec_ref: \"s:R2\"\n```\n";

fn git(fixture: &Fixture, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.com",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(fixture.root())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.main("s", &spec(&[(1, "a")]));
    let text = part("", &[(1, "a one"), (2, "b")])
        + "## Acceptance Criteria\n\n### Scenario: R1 holds\n\n- **WHEN** a\n- **THEN** b\n";
    fixture.change("one", "s", &text);
    fixture.write("agentd/changes/one/tasks.md", TASKS);
    fixture
}

#[test]
fn a_requirement_leads_to_its_tasks_commits_scenarios_and_review() {
    let fixture = fixture();
    git(&fixture, &["init", "--quiet"]);
    git(&fixture, &["add", "."]);
    git(&fixture, &["commit", "--quiet", "-m", "Begin"]);
    let base = git(&fixture, &["rev-parse", "HEAD"]);
    for (file, message) in [
        ("src/store.rs", "Store it"),
        ("src/other.rs", "Something else"),
        ("docs.md", "one: tasks 1.1 and 1.10"),
    ] {
        fixture.write(file, message);
        git(&fixture, &["add", "."]);
        git(&fixture, &["commit", "--quiet", "-m", message]);
    }
    let state = fixture.read("agentd/changes/one/STATE.yaml");
    fixture.write(
        "agentd/changes/one/STATE.yaml",
        &format!("{state}git:\n  workflow: in-place\n  base_commit: \"{base}\"\n"),
    );
    let check = || {
        let traces = of_requirement(&fixture.project, &"s:R1".parse().unwrap()).unwrap();
        let [trace] = traces.as_slice() else { panic!("{traces:?}") };
        assert_eq!((trace.how, trace.title.as_str()), (How::Edits, "Title 1"));
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
    fixture.archive("one").unwrap();
    assert_eq!(check().as_deref(), Some("2026-11-15-one"), "the same from the archive");
    let of_change = of_change(&fixture.project, &id("one")).unwrap().unwrap();
    let ids: Vec<&str> = of_change.iter().map(|trace| trace.requirement.as_str()).collect();
    assert_eq!(ids, ["s:R1", "s:R2"]);
    assert!(of_change[1].commits.is_empty() && of_change[1].scenarios.is_empty());
}

#[test]
fn without_git_there_are_no_commits_and_no_error() {
    let fixture = fixture();
    let traces = of_change(&fixture.project, &id("one")).unwrap().unwrap();
    assert!(traces.iter().all(|trace| trace.commits.is_empty()) && traces.len() == 2);
    assert!(of_change(&fixture.project, &id("none")).unwrap().is_none());
    assert!(of_requirement(&fixture.project, &"s:R9".parse().unwrap()).unwrap().is_empty());
}
