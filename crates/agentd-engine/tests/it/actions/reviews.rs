//! `append_review` and `create_review`.

use agentd_core::document::review_block::PlanVerdict;
use agentd_core::document::{proposal as proposal_doc, review as review_doc};
use agentd_engine::tools::{self, ActionError, Written};
use serde_json::{Value, json};

use test_project::TestProject;

use super::{Tools as _, planned, project, read, refused};

fn append(project: &TestProject, verdict: &str, issues: Value) -> Result<Written, ActionError> {
    let value = json!({"change_id": "add-oauth", "verdict": verdict, "summary": "So it is.", "issues": issues});
    project.with(|session| tools::append_review(session, read(value)?))
}

fn review(project: &TestProject, verdict: &str, issues: Value) -> Result<Written, ActionError> {
    let value = json!({"change_id": "add-oauth", "verdict": verdict, "summary": "So it is.", "issues": issues});
    project.with(|session| tools::create_review(session, read(value)?))
}

#[test]
fn a_review_is_appended_with_its_round_and_plan() {
    let project = planned();
    let id = "add-oauth".parse().unwrap();
    let plan = project.store().change(&id).unwrap().snapshot().unwrap().documents.digest();
    let before = project.read("proposal.md");
    let high = json!([{"severity": "High", "title": "No timeout", "description": "None is set.",
        "location": "auth-flow:R1", "recommendation": "Set one."}]);
    assert_eq!(append(&project, "NEEDS_REVISION", high).unwrap().iteration, Some(1));
    assert_eq!(append(&project, "APPROVED", json!([])).unwrap().iteration, Some(2));
    let text = project.read("proposal.md");
    assert!(text.starts_with(&before), "what was there stays byte for byte");
    let read = proposal_doc::parse(&text);
    assert!(read.diagnostics.is_empty(), "{:?}", read.diagnostics);
    let [first, second] = read.value.reviews.as_slice() else { panic!("two blocks") };
    assert_eq!((first.verdict, first.reviewer.as_str()), (PlanVerdict::NeedsRevision, "codex"));
    assert_eq!(first.plan.as_ref(), Some(&plan));
    assert_eq!(first.issues[0].recommendation.as_str(), "Set one.");
    assert_eq!((second.verdict, second.iteration), (PlanVerdict::Approved, 2));
    insta::assert_snapshot!(project.read("CHALLENGE.md"), @"
    # Challenge: add-oauth

    <!-- Written by agentd from the latest review in proposal.md. Edit that, not this. -->

    **Verdict**: APPROVED

    0 HIGH, 0 MEDIUM, 0 LOW

    ## Review 2

    - **Verdict**: APPROVED
    - **Reviewer**: codex
    - **Date**: 2026-02-03T04:05:06Z
    - **Plan**: sha256:41cfc16c7cfa7267885032b9153d4f36f2ef6c1256017a6d49a5ad81c29b40fb
    - **Summary**: So it is.
    ");
}

#[test]
fn verdicts_and_issues_must_agree() {
    let project = planned();
    let before = project.read("proposal.md");
    let high = json!([{"severity": "high", "title": "T", "description": "D"}]);
    insta::assert_snapshot!(refused(append(&project, "APPROVED", high.clone())), @"
    The verdict is APPROVED, but the severity of `T` is high.
    Say NEEDS_REVISION or REJECTED, or lower the severity if it does not stop the work.
    ");
    insta::assert_snapshot!(refused(append(&project, "NEEDS_REVISION", json!([]))), @"
    The verdict is NEEDS_REVISION, but there is no issue.
    Name at least one issue, with what to do about it, or say APPROVED.
    ");
    insta::assert_snapshot!(refused(append(&project, "approved", json!([]))), @"
    The arguments do not fit the tool. `verdict`: unknown variant `approved`, expected one of `APPROVED`, `NEEDS_REVISION`, `REJECTED`
    Correct that field and call the tool again; nothing was written.
    ");
    insta::assert_snapshot!(refused(review(&project, "APPROVED", high)), @"
    The verdict is APPROVED, but the severity of `T` is high.
    Say NEEDS_FIX or MAJOR_ISSUES, or lower the severity if it does not stop the work.
    ");
    insta::assert_snapshot!(refused(review(&project, "NEEDS_FIX", json!([]))), @"
    The verdict is NEEDS_FIX, but there is no issue.
    Name at least one issue, with what to do about it, or say APPROVED.
    ");
    assert_eq!(project.read("proposal.md"), before);
    assert!(!project.root().join("agentd/changes/add-oauth/REVIEW.md").exists());
    let medium = json!([{"severity": "MEDIUM", "title": "T", "description": "D"}]);
    append(&project, "APPROVED", medium).unwrap();
    // A plan that is fundamentally wrong may be so for one reason, in the summary.
    append(&project, "REJECTED", json!([])).unwrap();
}

#[test]
fn there_must_be_something_to_review() {
    insta::assert_snapshot!(refused(append(&project(), "APPROVED", json!([]))), @"There is no proposal.md to review.");
}

#[test]
fn reviews_of_code_count_their_rounds_and_keep_the_numbers_of_issues() {
    let project = planned();
    let issue = |title: &str| json!({"severity": "high", "title": title, "description": "D", "file": "src/a.rs", "line": 12});
    assert_eq!(
        review(&project, "NEEDS_FIX", json!([issue("A"), issue("B")])).unwrap().iteration,
        Some(1)
    );
    assert_eq!(
        review(&project, "MAJOR_ISSUES", json!([issue("C"), issue("B")])).unwrap().iteration,
        Some(2)
    );
    let read = review_doc::parse(&project.read("REVIEW.md")).value;
    assert_eq!(read.iteration, 2);
    assert_eq!(read.issues[0].location.as_str(), "src/a.rs:12");
    assert_eq!((read.issues[0].number, read.issues[1].number), (3, 2));
    // A number is not given twice, also when the round before does not have it.
    review(&project, "NEEDS_FIX", json!([issue("B")])).unwrap();
    review(&project, "NEEDS_FIX", json!([issue("D"), issue("I2: B again")])).unwrap();
    let read = review_doc::parse(&project.read("REVIEW.md")).value;
    assert_eq!((read.issues[0].number, read.issues[1].number, read.numbered), (4, 2, 4));
    let no_file = json!([{"severity": "low", "title": "T", "description": "D", "line": 3}]);
    insta::assert_snapshot!(refused(review(&project, "NEEDS_FIX", no_file)), @"
    The issue `T` names line 3 but no file.
    Add `file`, or leave `line` out.
    ");
    let outside = json!([{"severity": "low", "title": "T", "description": "D", "file": "../x"}]);
    insta::assert_snapshot!(refused(review(&project, "NEEDS_FIX", outside)), @"
    The arguments do not fit the tool. `issues[0].file`: path `../x` contains `..`
    Correct that field and call the tool again; nothing was written.
    ");
}

#[test]
fn failed_tests_are_not_approved() {
    let project = planned();
    let state = |code: i32| {
        format!(
            "change_id: add-oauth\nphase: implementing\ntest_run:\n  command: cargo test\n  exit_code: {code}\n  output_tail: \"test login ... FAILED\"\n  at: 2026-01-01T00:00:00Z\n"
        )
    };
    project.write("STATE.yaml", state(101));
    let message = refused(review(&project, "APPROVED", json!([])));
    insta::assert_snapshot!(message, @"
    The tests failed, so the verdict cannot be APPROVED: `cargo test` exited with 101.
    1. Its last output:
    test login ... FAILED
    Say NEEDS_FIX, with an issue for every failing test.
    ");
    assert!(!project.root().join("agentd/changes/add-oauth/REVIEW.md").exists());
    project.write("STATE.yaml", state(0));
    let open = refused(review(&project, "APPROVED", json!([])));
    insta::assert_snapshot!(open, @"
    Tasks are not done, so the verdict cannot be APPROVED: 1.1, 2.1, 4.1.
    Say NEEDS_FIX, with an issue for what is missing.
    ");
    let done = project.read("tasks.md").replace("status: pending", "status: done");
    project.write("tasks.md", &done);
    review(&project, "APPROVED", json!([])).unwrap();
    project.write("STATE.yaml", "phase: [");
    insta::assert_snapshot!(refused(review(&project, "APPROVED", json!([]))), @"
    cannot use the STATE.yaml of `add-oauth`: externally tagged enum expected scalar or mapping (line 1, column 8)
    A person has to fix that file; no tool can.
    ");
}

/// contract T5
#[test]
fn what_became_of_earlier_issues_is_said_and_kept() {
    let project = planned();
    let said = |tool: &str, verdict: &str, previous: Value, issues: Value| {
        let value = json!({"change_id": "add-oauth", "verdict": verdict, "summary": "So it is.",
            "previous": previous, "issues": issues});
        project.with(|session| match tool {
            "append_review" => tools::append_review(session, read(value)?),
            _ => tools::create_review(session, read(value)?),
        })
    };
    let issues = || {
        json!([{"severity": "high", "title": "No lock", "description": "D"},
        {"severity": "low", "title": "Typo", "description": "D"}])
    };
    for (tool, again) in [("append_review", "NEEDS_REVISION"), ("create_review", "NEEDS_FIX")] {
        let say =
            |verdict: &str, previous: Value, issues: Value| said(tool, verdict, previous, issues);
        let none = json!([{"id": "I1", "status": "fixed"}]);
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused(say(again, none, issues())), @"
            `previous` names I1, which does not exist.
            Use the ids of the earlier issues in your prompt; new ones have none.
            ");
            say(again, json!([]), issues()).unwrap();
            let unknown = json!([{"id": "I3", "status": "fixed"}]);
            insta::assert_snapshot!(refused(say("APPROVED", unknown, json!([]))), @"
            `previous` names I3, which does not exist.
            Use the ids of the earlier issues in your prompt; new ones have none.
            ");
            let twice = json!([{"id": "I1", "status": "fixed"}, {"id": "I1", "status": "open"}]);
            insta::assert_snapshot!(refused(say("APPROVED", twice, json!([]))), @"`previous` names I1 more than once.");
            let both = json!([{"id": "I1", "status": "rejected"}]);
            insta::assert_snapshot!(refused(say(again, both, issues())), @"
            `previous` calls I1 rejected, but it is among the issues.
            Say `open`, or leave it out of `issues`.
            ");
            let wrong = json!([{"id": "1", "status": "fixed"}]);
            insta::assert_snapshot!(refused(say("APPROVED", wrong, json!([]))), @"
            The arguments do not fit the tool. `previous[0].id`: `1` is not the id of an issue, as in `I1`
            Correct that field and call the tool again; nothing was written.
            ");
        }
        // What is open counts, also where it is not described again.
        let open = json!([{"id": "I1", "status": "open", "reason": "still\nthere"}]);
        let refusal = refused(say("APPROVED", open.clone(), json!([])));
        assert!(
            refusal.starts_with("The verdict is APPROVED, but the severity of `No lock` is high."),
            "{refusal}"
        );
        say(again, open, json!([])).unwrap();
    }
    let plan = proposal_doc::parse(&project.read("proposal.md")).value.reviews.pop().unwrap();
    let code = review_doc::parse(&project.read("REVIEW.md")).value;
    for (previous, issues) in [(plan.previous, plan.issues), (code.previous, code.issues)] {
        let previous: Vec<String> = previous
            .iter()
            .map(|it| format!("I{} {}: {}", it.number, it.status.name(), it.reason))
            .collect();
        let issues: Vec<String> =
            issues.iter().map(|it| format!("I{} {}", it.number, it.title)).collect();
        assert_eq!(
            (previous, issues),
            (vec!["I1 open: still there".to_owned()], vec!["I1 No lock".to_owned()])
        );
    }
    // An issue of two rounds ago is still known by its id; its text is not in REVIEW.md anymore.
    let code =
        |previous: Value, issues: Value| said("create_review", "NEEDS_FIX", previous, issues);
    insta::assert_snapshot!(refused(code(json!([{"id": "I2", "status": "open"}]), json!([]))), @"
    I2 is open, but is not described.
    Add it to `issues`, with a title that starts with `I2:`.
    ");
    let named = json!([{"severity": "low", "title": "I2: Typo", "description": "D"}]);
    code(json!([{"id": "I2", "status": "open"}]), named).unwrap();
    let last = review_doc::parse(&project.read("REVIEW.md")).value;
    assert_eq!(last.issues.iter().map(|it| it.number).collect::<Vec<_>>(), [2]);
}
