//! The tab of the code: what differs, the way from requirements to it, comments on it, and what fixes
//! did about findings.

use std::fs;

use super::Viewer;
use super::browser::in_browser;
use serde_json::json;

const BASE: &str = "/changes/with-code";

#[test]
fn code_is_shown_with_its_requirements() {
    let project = in_browser();
    let viewer = Viewer::start(&project);
    let code = viewer.get(&format!("{BASE}/code"));
    insta::assert_snapshot!(code.between("id=\"file-src-auth-accounts-rs\"", "</details>"), @r#"
    src/auth/accounts.rs (added) +2 (removed) −1 task 2.2
    Viewed
    (#file-src-auth-accounts-rs-L1) 1 (comments?on=code%2Fsrc%2Fauth%2Faccounts.rs&at=line%201) + /// Finds an account.
    1 2 (comments?on=code%2Fsrc%2Fauth%2Faccounts.rs&at=line%202) fn find() {
    2 (comments?on=code%2Fsrc%2Fauth%2Faccounts.rs&at=removed%20line%202) − old();
    3 (comments?on=code%2Fsrc%2Fauth%2Faccounts.rs&at=line%203) + new ( "by subject", 42 ); // not by e-mail
    3 4 (comments?on=code%2Fsrc%2Fauth%2Faccounts.rs&at=line%204) }
    "#);
    // R1 has no test, so the tests of the project say nothing about it.
    insta::assert_snapshot!(code.between("<table class=\"trace\">", "</table>"), @r#"
    | Requirement | Scenarios | Tasks | Files | Commits | Tests
    | auth-flow:R1 (/changes/with-code/specs/auth-flow#R1) Authorization with PKCE new | 2 scenarios of the whole spec | ✓ 1.2 (/changes/with-code/tasks#task-1-2) ✓ 2.1 (/changes/with-code/tasks#task-2-1) ✓ 3.1 (/changes/with-code/tasks#task-3-1) |
    - src/auth/pending.rs
    - src/auth/exchange.rs:1 (/changes/with-code/code#file-src-auth-exchange-rs-L1)
    - src/routes.rs
    |
    |
    no test of its own
    | auth-flow:R2 (/changes/with-code/specs/auth-flow#R2) Accounts are matched by subject new | 2 scenarios of the whole spec | ✓ 2.2 (/changes/with-code/tasks#task-2-2) ✓ 4.1 (/changes/with-code/tasks#task-4-1) |
    - src/auth/accounts.rs:1 (/changes/with-code/code#file-src-auth-accounts-rs-L1)
    - tests/sign_in.rs
    |
    |
    - tests/sign_in.rs
    not run
    | auth-flow:R3 (/changes/with-code/specs/auth-flow#R3) A provider that does not answer new | 2 scenarios of the whole spec | no task |
    |
    |
    no test of its own
    | session-store:R1 (/changes/with-code/specs/session-store#R1) Sessions name their provider new | 1 scenario of the whole spec | ✓ 1.1 (/changes/with-code/tasks#task-1-1) |
    - migrations/0007_sessions.sql
    |
    |
    no test of its own
    "#);
    // The line that is named is the one that the link leads to.
    assert!(code.body.contains("href=\"/changes/with-code/code#file-src-auth-exchange-rs-L1\""));
    assert!(code.body.contains("id=\"file-src-auth-exchange-rs-L1\""));
    let passed = format!(
        "{}test_run:\n  command: make test\n  exit_code: 0\n  duration_ms: 100\n  at: 2026-11-10T10:00:00Z\n  output_tail: ''\n",
        project.read_root("agentd/changes/with-code/STATE.yaml")
    );
    project.write_root("agentd/changes/with-code/STATE.yaml", passed);
    let table = viewer.get(&format!("{BASE}/code")).between("<table class=\"trace\">", "</table>");
    let rows: Vec<&str> = table.split("\n| auth-flow:").collect();
    assert!(rows[1].contains("no test of its own") && !rows[1].contains("passed"), "{table}");
    assert!(rows[2].contains("passed"), "{table}");
}

/// A comment is shown where it was made, also when its file is gone from the difference, and quotes
/// nothing that is not code of the change.
#[test]
fn comments_on_code_do_not_vanish() {
    let project = in_browser();
    let viewer = Viewer::start(&project);
    let comment = |on: &str| {
        let form = format!("on={}&at=line+1&text=Why+so%3F", super::security::encode(on));
        viewer.post(&format!("{BASE}/comments"), &form)
    };
    for on in ["code/.git/config", "code/.git/HEAD", "code/agentd/config.toml", "code/src/none.rs"]
    {
        let refused = comment(on);
        assert_eq!(refused.status, 404, "{on}: {refused:?}");
    }
    assert!(!project.has_root("agentd/changes/with-code/comments.md"));
    let made = comment("code/src/auth/accounts.rs");
    assert_eq!(made.header("location"), Some("/changes/with-code/code#C1"), "{made:?}");
    let shown = || viewer.get(&format!("{BASE}/code")).body;
    assert!(shown().contains("id=\"C1\""));
    project.git(&["checkout", "--", "src/auth/accounts.rs"]);
    let without = shown();
    assert!(!without.contains("file-src-auth-accounts-rs\" open"), "it does not differ now");
    assert!(without.contains("id=\"C1\"") && without.contains("On files that do not differ now"));
}

/// A finding on the code is shown with what the fix did to its file, and linked to from elsewhere.
#[test]
fn finding_on_code_is_shown_with_its_fix() {
    let project = in_browser();
    let viewer = Viewer::start(&project);
    let issue = json!({"severity": "medium", "title": "Found by e-mail", "description": "Wrong.",
        "file": "src/auth/accounts.rs", "line": 2, "recommendation": "Use the subject."});
    let run = |number: u32, step: &str, lines: &[serde_json::Value]| {
        let header = json!({"run": 1, "step": step, "change": "with-code", "agent": "codex",
            "role": "reviewer", "attempt": 1, "argv": [], "env": [], "cwd": "/p", "prompt": "",
            "started_at": format!("2026-11-10T1{number}:00:00Z")});
        let text: String =
            std::iter::once(&header).chain(lines).map(|it| format!("{it}\n")).collect();
        project
            .write_root(&format!("agentd/changes/with-code/runs/000{number}-{step}.jsonl"), text);
    };
    let reviewed = |arguments: serde_json::Value| {
        [
            json!({"t": 1, "event": "tool_call", "id": "1", "server": "agentd", "name": "create_review", "arguments": arguments}),
            json!({"t": 2, "event": "tool_result", "id": "1", "ok": true, "output": "Wrote it."}),
        ]
    };
    let said = |verdict: &str, more: serde_json::Value| {
        let mut all = json!({"change_id": "with-code", "verdict": verdict, "summary": "Read."});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let (was, is) = ("fn find() { by_mail() }\n", "fn find() { by_subject() }\n");
    let digest = |text: &str| agentd_core::hash::Digest::of(text).to_string();
    let edit = |before: Option<&str>, text: &str| {
        json!({"t": 3, "files": [{"path": "src/auth/accounts.rs", "created": before.is_none(),
            "before": before.map(digest), "after": digest(text), "text": text}]})
    };
    run(1, "implement-logic", &[edit(None, was)]);
    run(2, "review", &reviewed(said("NEEDS_FIX", json!({"issues": [issue]}))));
    run(3, "fix", &[edit(Some(was), is)]);
    let fixed = json!({"previous": [{"id": "I1", "status": "fixed"}], "issues": []});
    run(4, "review", &reviewed(said("APPROVED", fixed)));
    let state = format!(
        "{}code_review:\n  verdict: APPROVED\n  iteration: 2\n  reviewer: codex\n  at: 2026-11-10T14:00:00Z\n  run: 4\n",
        project.read_root("agentd/changes/with-code/STATE.yaml")
    );
    fs::write(project.root().join("agentd/changes/with-code/STATE.yaml"), state).unwrap();
    let row = viewer
        .get(&format!("{BASE}/review?show=all&of=code"))
        .between("id=\"code-I1\"", "<form class=\"reply\"");
    insta::assert_snapshot!(row, @r#"
    MEDIUM I1 Found by e-mail ● ✓ fixed code
    codex
    [TIME]
    at src/auth/accounts.rs:2 (/changes/with-code/code#file-src-auth-accounts-rs)
    Wrong.
    Recommendation
    Use the subject.
    What the fix did to src/auth/accounts.rs, run 3
    --- a/src/auth/accounts.rs
    +++ b/src/auth/accounts.rs
    @@ -1 +1 @@
    -fn find() { by_mail() }
    +fn find() { by_subject() }
    "#);
    // What is said about it leads to it, also while others are open.
    let form = "on=REVIEW.md&at=I1&text=Thanks";
    project.write_root("agentd/changes/with-code/REVIEW.md", "# Review\n");
    let made = viewer.post(&format!("{BASE}/comments"), form);
    assert_eq!(made.header("location"), Some("/changes/with-code/review?show=all#C1"), "{made:?}");
    let comments = viewer.get(&format!("{BASE}/comments")).body;
    assert!(comments.contains("href=\"/changes/with-code/review?show=all#code-I1\""), "{comments}");
}
