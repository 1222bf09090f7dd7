//! What the pages show, and what can be done on them.

use agentd_core::document::comments::{self, Anchor};

use super::{Viewer, project};

/// Each piece of text is on the page.
fn shows(viewer: &Viewer, page: &str, wanted: &[&str]) -> String {
    let answer = viewer.get(page);
    assert_eq!(answer.status, 200, "{page}: {}", answer.body);
    for text in wanted {
        assert!(answer.body.contains(text), "{page} lacks {text:?}:\n{}", answer.body);
    }
    answer.body
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_page_shows_its_content() {
    let project = project();
    let viewer = Viewer::start(&project);
    shows(
        &viewer,
        "/",
        &[
            "href=\"/changes/add-oauth\"",
            "Planning",
            "Approved",
            "Implementing",
            "Complete",
            "Rejected",
            "2/6",
            "$0.86",
            "/archive/2026-10-01-add-passwords",
            "/specs/session-store",
            "just-an-idea",
            ">new<",
        ],
    );
    let overview = shows(
        &viewer,
        "/changes/add-oauth",
        &[
            "Your decision",
            "Accept with 2 minor issues",
            "NEEDS REVISION",
            "2 fixed",
            "<svg class=\"chart\"",
            "data-follow=\"/changes/add-oauth/live?after=1:",
            "agentd.append_review",
        ],
    );
    assert!(!overview.contains("disabled"), "C11 allows to accept this plan");
    shows(
        &viewer,
        "/changes/add-oauth/proposal",
        &["<table>", "1,204", "Half of all support requests", "On this page"],
    );
    let proposal = viewer.get("/changes/add-oauth/proposal").body;
    assert!(!proposal.contains("agentd:review"), "reviews have a page of their own");
    shows(
        &viewer,
        "/changes/add-oauth/specs/auth-flow",
        &[
            "id=\"R1\"",
            "○ task 2.1",
            "✓ task 1.2",
            "no task",
            "class=\"mermaid\"",
            "data-at=\"R2\"",
        ],
    );
    shows(
        &viewer,
        "/changes/add-oauth/tasks",
        &[
            "<svg class=\"graph\"",
            "node done",
            "node ready",
            "node waiting",
            "id=\"task-2-1\"",
            "specs/auth-flow#R1",
        ],
    );
    shows(&viewer, "/changes/add-oauth/clarifications", &["Which providers first?"]);
    shows(
        &viewer,
        "/changes/add-oauth/reviews",
        &[
            "Round 2",
            "badge open\">open",
            "badge fixed\">fixed",
            "badge new\">new",
            "/changes?from=1&amp;to=2",
        ],
    );
    shows(
        &viewer,
        "/changes/add-oauth/changes?from=1&to=2",
        &["class=\"added\"", "class=\"removed\"", "within 10 minutes, once"],
    );
    shows(&viewer, "/changes/add-oauth/changes?from=2", &["Nothing has changed."]);
    shows(
        &viewer,
        "/changes/add-oauth/trace",
        &["auth-flow:R3", "no task", "src/auth/exchange.rs"],
    );
    shows(
        &viewer,
        "/changes/add-oauth/runs",
        &["Tokens by step", "Cost by step", "Timeline", "All figures", "0001 challenge"],
    );
    shows(
        &viewer,
        "/changes/add-oauth/runs/0001-challenge.jsonl",
        &[
            "R2 now says that accounts are matched by subject. R3 still has no scenario.",
            "finished after 1 m 33 s",
        ],
    );
    shows(&viewer, "/specs/session-store", &["Sessions name their provider"]);
    let archived = shows(
        &viewer,
        "/archive/2026-10-01-add-passwords",
        &["Archived", "/archive/2026-10-01-add-passwords/tasks"],
    );
    assert!(!archived.contains("<form"), "what is archived is not decided on");
    let archived = shows(&viewer, "/archive/2026-10-01-add-passwords/proposal", &["Half of all"]);
    assert!(!archived.contains("add-comment"));
}

#[test]
fn findings_stand_at_their_lines() {
    let project = project();
    let tasks = project
        .read("tasks.md")
        .replace("spec_ref: \"auth-flow:R2\"", "spec_ref: \"auth-flow:R9\"");
    project.write("tasks.md", &tasks);
    let spec = project
        .read("specs/session-store.md")
        .replace("## Overview\n\nWhere sessions are kept.\n", "");
    project.write("specs/session-store.md", &spec);
    let viewer = Viewer::start(&project);
    let body = shows(&viewer, "/changes/add-oauth/tasks", &["class=\"finding", "R9"]);
    let (task, next) =
        (body.find("id=\"task-2-2\"").unwrap(), body.find("id=\"task-3-1\"").unwrap());
    assert!(body[task..next].contains("class=\"finding"), "under its task");
    shows(&viewer, "/changes/add-oauth/specs/session-store", &["class=\"finding"]);
    shows(
        &viewer,
        "/changes/add-oauth/tasks?view=source",
        &["class=\"finding", "data-at=\"line 12\""],
    );
    shows(&viewer, "/changes/add-oauth", &["/tasks?view=source#L", "count warn"]);
}

#[test]
fn comment_resolve_and_reopen() {
    let project = project();
    let viewer = Viewer::start(&project);
    for (at, text) in
        [("R2", "By+subject+of+which+issuer%3F"), ("line+3", "odd"), ("heading+Overview", "short")]
    {
        let body = format!("on=specs%2Fauth-flow.md&at={at}&text={text}");
        assert_eq!(viewer.post("/changes/add-oauth/comments", &body).status, 303);
    }
    let read = || comments::parse(&project.read("comments.md")).value;
    let first = &read().comments[0];
    assert_eq!((first.by.as_str(), first.text.as_str()), ("alice", "By subject of which issuer?"));
    assert_eq!(first.at, Anchor::Requirement("R2".parse().unwrap()));
    let body = shows(
        &viewer,
        "/changes/add-oauth/specs/auth-flow",
        &["By subject of which issuer?", "id=\"c1\""],
    );
    let (requirement, comment) = (body.find("id=\"R2\"").unwrap(), body.find("id=\"c1\"").unwrap());
    assert!(requirement < comment && comment < body.find("id=\"R3\"").unwrap());
    assert_eq!(viewer.post("/changes/add-oauth/comments/1", "fate=resolved").status, 303);
    assert_eq!(read().open().count(), 2);
    assert_eq!(read().comments[0].resolved.as_ref().unwrap().by.as_str(), "alice");
    shows(
        &viewer,
        "/changes/add-oauth/comments",
        &["Resolved", "Open again", "specs/auth-flow.md · R2"],
    );
    assert_eq!(viewer.post("/changes/add-oauth/comments/1", "fate=open").status, 303);
    assert_eq!(read().open().count(), 3);
    assert_eq!(viewer.post("/changes/add-oauth/comments/9", "fate=open").status, 404);
    assert_eq!(viewer.post("/changes/none/comments", "on=proposal.md&text=x").status, 404);
}

#[test]
fn decision_is_that_of_agentd_decide() {
    let project = project();
    let viewer = Viewer::start(&project);
    let answer = viewer.post("/changes/add-oauth/decide", "choice=fix&note=see+I2");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/changes/add-oauth")));
    let state = project.read("STATE.yaml");
    assert!(
        state.contains("choice: fix") && state.contains("see I2") && state.contains("by: alice"),
        "{state}"
    );
    shows(&viewer, "/changes/add-oauth", &["changes requested", "see I2"]);
    assert_eq!(viewer.post("/changes/add-oauth/decide", "choice=accept&note=").status, 303);
    assert!(project.read("STATE.yaml").contains("phase: challenged"));
    // What the phase does not allow is told, and changes nothing.
    let answer = viewer.post("/changes/dark-mode/decide", "choice=accept");
    assert_eq!(answer.status, 409, "{answer:?}");
    assert!(answer.body.contains("cannot be accepted"), "{}", answer.body);
    assert_eq!(viewer.post("/changes/add-oauth/decide", "choice=banana").status, 422);
}

/// C11: with a HIGH issue, or after an edit, the plan cannot be accepted, and the page says why.
#[test]
fn no_button_for_unacceptable_plan() {
    let project = project();
    project.write("tasks.md", project.read("tasks.md").replace("Match accounts", "Match people"));
    let viewer = Viewer::start(&project);
    shows(
        &viewer,
        "/changes/add-oauth",
        &["disabled aria-describedby", "the plan has changed since it was challenged"],
    );
    assert_eq!(viewer.post("/changes/add-oauth/decide", "choice=accept").status, 409);
}

#[test]
fn broken_files_are_reported_on_their_page() {
    let project = project();
    project.write("STATE.yaml", "phase: [");
    project.write("tasks.md", "\u{feff}no tasks here");
    project.write("rounds/0001.json", "{");
    project.write("comments.md", "---\nx: [\n");
    std::fs::write(project.path("clarifications.md"), b"\xff\xfe").unwrap();
    let viewer = Viewer::start(&project);
    shows(&viewer, "/", &["unreadable", "/changes/dark-mode"]);
    shows(&viewer, "/changes/add-oauth", &["role=\"alert\"", "STATE.yaml"]);
    for page in ["tasks", "comments", "reviews", "runs", "trace"] {
        shows(&viewer, &format!("/changes/add-oauth/{page}"), &[]);
    }
    assert_eq!(viewer.get("/changes/add-oauth/clarifications").status, 500);
    assert_eq!(viewer.get("/changes/add-oauth/changes?from=1").status, 404);
}

/// Summaries are kept between requests: what has changed must show all the same.
#[test]
fn first_page_is_up_to_date() {
    let project = project();
    let viewer = Viewer::start(&project);
    shows(&viewer, "/", &["2/6", "challenge"]);
    project.write("tasks.md", project.read("tasks.md").replace("status: pending", "status: done"));
    shows(&viewer, "/", &["6/6"]);
    assert_eq!(viewer.post("/changes/add-oauth/decide", "choice=stop").status, 303);
    shows(&viewer, "/", &["decide"]);
    std::fs::remove_dir_all(project.root().join("agentd/changes/dark-mode")).unwrap();
    assert!(!viewer.get("/").body.contains("dark-mode"));
}
