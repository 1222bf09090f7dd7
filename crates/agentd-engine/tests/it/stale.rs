//! What was edited since it was reviewed or tested.

use agentd_core::document::review::CodeVerdict;
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::hash::Digest;
use agentd_core::state::{self, CodeReview, GitSetup, Placement, PlanReview, State, TestRun};
use agentd_core::text::Line;
use agentd_engine::change::staleness;
use agentd_engine::change::tree::tree;
use agentd_engine::git::GitTool;
use test_project::{TestProject, now};

/// A state whose verdicts are about this plan, these files, and tests of these files.
fn state(
    project: &TestProject,
    plan: Option<&Digest>,
    code: Option<&Digest>,
    tests: Option<&Digest>,
) -> State {
    let reviewer = Line::new("codex");
    let plan_review = plan.map(|plan| {
        PlanReview::new(PlanVerdict::Approved, plan.clone(), 1, reviewer.clone(), now())
    });
    let code_review = code.map(|tree| CodeReview {
        tree: Some(tree.clone()),
        ..CodeReview::new(CodeVerdict::Approved, 1, reviewer.clone(), now())
    });
    let test_run = tests.map(|tree| TestRun {
        command: "true".to_owned(),
        exit_code: Some(0),
        output_tail: "".into(),
        duration_ms: 1,
        at: now(),
        tree: Some(tree.clone()),
        tree_after: None,
    });
    State { plan_review, code_review, test_run, ..State::new(project.id(), "", now()) }
}

fn check(project: &TestProject, state: &State, expected: &[&str]) {
    project.write("STATE.yaml", state::render(state));
    let store = project.store();
    let snapshot = store.change(&project.id()).unwrap().snapshot().unwrap();
    let stale = staleness::stale(&store, &snapshot).unwrap();
    assert_eq!(stale.iter().map(|stale| &*stale.what).collect::<Vec<_>>(), expected, "{stale:?}");
}

/// contract T3
#[test]
fn a_verdict_is_about_the_files_that_it_was_given_on() {
    let project = TestProject::new().change("add-oauth").root_file("src/a.rs", "old\n");
    let project = project.repository();
    let store = project.store();
    let snapshot = store.change(&project.id()).unwrap().snapshot().unwrap();
    let (plan, other) = (&snapshot.documents.digest(), &Digest::of("other"));
    let files = &tree(&GitTool::default(), &project.root()).unwrap();
    let cases: [(_, _, _, &[&str]); 8] = [
        (None, None, None, &[]),
        (Some(plan), Some(files), Some(files), &[]),
        (Some(other), None, None, &["plan"]),
        (Some(plan), Some(other), None, &["code"]),
        (None, None, Some(files), &[]),
        (None, None, Some(other), &["tests"]),
        (Some(plan), Some(files), Some(other), &["tests"]),
        (Some(other), Some(other), Some(other), &["plan", "code", "tests"]),
    ];
    for (plan, code, tests, expected) in cases {
        check(&project, &state(&project, plan, code, tests), expected);
    }
    let approved = state(&project, Some(plan), Some(files), Some(files));
    project.write_root("src/a.rs", "new\n");
    check(&project, &approved, &["code", "tests"]);
    // Files that cannot be found are not those that were reviewed.
    let setup = GitSetup {
        workflow: Placement::Worktree,
        branch: None,
        work_tree: None,
        base_commit: None,
        base_branch: None,
    };
    check(&project, &State { git: Some(setup), ..approved }, &["code"]);
}

/// A planted file that cannot be read must not free a verdict from what it is about.
#[test]
fn a_verdict_on_files_that_could_not_be_read_is_stale() {
    let project = TestProject::new().change("add-oauth").root_file("src/a.rs", "old\n");
    let project = project.repository();
    let files = tree(&GitTool::default(), &project.root()).unwrap();
    let huge = std::fs::File::create(project.root().join("huge")).unwrap();
    huge.set_len(1 << 42).unwrap();
    let error = tree(&GitTool::default(), &project.root()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "huge is larger than 1 GiB and not tracked; add it to .gitignore, or to git"
    );
    let mut state = state(&project, None, Some(&files), None);
    check(&project, &state, &["code"]);
    project.write_root(".gitignore", "huge\n");
    let review = state.code_review.as_mut().unwrap();
    (review.tree, review.review_hash) = (None, Some(Digest::of("review")));
    check(&project, &state, &["code"]);
    // Versions before the journal recorded neither.
    state.code_review.as_mut().unwrap().review_hash = None;
    check(&project, &state, &[]);
}
