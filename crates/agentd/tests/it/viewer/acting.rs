//! What a person does on the pages, up to starting and stopping commands, and what comes of it in the
//! project and in the prompts of agents.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use agentd_core::hash::Digest;
use agentd_core::phase::Phase;
use agentd_core::state::Choice;
use test_project::TestProject;

use super::security::encode;
use super::{Viewer, project};
use crate::cli::stand_in::{self, CHANGE, calls, prompt, repository, verdicts, wait_until};

const BASE: &str = "/changes/add-login";

/// A viewer in which commands can be started.
fn acting(project: &TestProject) -> Viewer {
    Viewer::start_with(project, &["--act"])
}

/// The bar that says what is next.
fn next(viewer: &Viewer, base: &str) -> String {
    viewer.get(base).between("aria-label=\"What is next\">", "</section>")
}

fn waits_for(viewer: &Viewer, words: &str) {
    let begun = Instant::now();
    while !viewer.get(BASE).body.contains(words) {
        let shown = || next(viewer, BASE);
        assert!(begun.elapsed() < Duration::from_mins(1), "no {words}: {}", shown());
        thread::sleep(Duration::from_millis(50));
    }
}

#[track_caller]
fn posts(viewer: &Viewer, page: &str, body: &str) {
    let answer = viewer.post(&format!("{BASE}/{page}"), body);
    assert_eq!(answer.status, 303, "{page} {body}: {}", answer.shown());
}

/// From one sentence to the archive, all of it on the pages.
#[test]
fn heavy_from_new_change_to_archive() {
    let project = repository("").about(CHANGE);
    let viewer = acting(&project);
    let new = "id=add-login&description=Let+people+log+in&then=clarify";
    let answer = viewer.post("/new", new);
    assert_eq!((answer.status, answer.header("location")), (303, Some(BASE)), "{answer:?}");
    // A second one with the same name is refused, and so is one that cannot be.
    assert_eq!(viewer.post("/new", new).status, 409);
    for bad in [
        "id=..&description=x&then=plan",
        "id=x&description=+&then=plan",
        "id=x&description=y&then=rm",
    ] {
        assert_eq!(viewer.post("/new", bad).status, 400, "{bad}");
    }
    waits_for(&viewer, "name=\"q0\"");
    insta::assert_snapshot!(next(&viewer, BASE), @r#"
    Waits for you Questions about it are open.
    (form /changes/add-login/answers)
    The planner asks:
    Method
    Which Method?
    OAuth (recommended) Means OAuth.
    Password Means Password.
    In your own words
    Storage
    Which Storage?
    PostgreSQL (recommended) Means PostgreSQL.
    SQLite Means SQLite.
    In your own words
    Clients
    Which Clients?
    Web (recommended) Means Web.
    Phone Means Phone.
    In your own words
    Work
    [ Answer and plan ]
    (form /changes/add-login/run)
    Work
    [ Plan without questions ]
    in a terminal agentd clarify add-login or agentd plan add-login --skip-clarify
    "#);
    // Every question has to be answered.
    let answers = |seen: &str, answers: &str| {
        viewer.post(&format!("{BASE}/answers"), &format!("seen={seen}&{answers}&then=plan")).status
    };
    let seen = viewer.seen(BASE, "questions");
    assert_eq!(answers(&seen, "q0=0"), 400);
    let all = "q0=0&own1=DuckDB&q2=1&placement=in-place";
    // Answers are numbers: those to other questions are refused.
    assert_eq!(answers(&Digest::of("other questions").to_string(), all), 409);
    assert!(!project.path("clarifications.md").exists());
    assert_eq!(answers(&seen, all), 303);
    assert!(project.read("clarifications.md").contains("DuckDB"));
    waits_for(&viewer, "plan: approved");
    wait_until("the plan ends", || viewer.get(BASE).body.contains("value=\"impl\""));

    // Only what comes next can be started.
    let refused = viewer.post(&format!("{BASE}/run"), "command=archive");
    assert_eq!(refused.status, 409, "{}", refused.shown());
    assert_eq!(viewer.post(&format!("{BASE}/run"), "command=rm").status, 400);
    assert_eq!(viewer.post(&format!("{BASE}/run"), "command=plan&placement=/tmp").status, 400);

    // A run is followed and stopped.
    fs::write(stand_in::hold(&project), "").unwrap();
    let begun = Instant::now();
    posts(&viewer, "run", "command=impl");
    waits_for(&viewer, "class=\"next live\"");
    eprintln!("a run that was started is on the page after {:?}", begun.elapsed());
    wait_until("the implementer writes", || project.has_root("src/login.rs"));
    assert_eq!(viewer.post(&format!("{BASE}/run"), "command=impl").status, 409);
    assert!(viewer.get("/").body.contains("id=\"running-title\""));
    posts(&viewer, "stop", "");
    wait_until("it stops", || !viewer.get(BASE).body.contains("class=\"next live\""));
    fs::remove_file(stand_in::hold(&project)).unwrap();
    assert_eq!(viewer.post(&format!("{BASE}/stop"), "").status, 409);

    // And goes on, up to approved code.
    posts(&viewer, "run", "command=impl");
    waits_for(&viewer, "code: approved");
    wait_until("archiving can be started", || viewer.get(BASE).body.contains("value=\"archive\""));
    insta::assert_snapshot!(next(&viewer, BASE), @r#"
    Next The code is approved.
    Archiving changes 1 main spec: 1 requirement added, 0 edited, 0 removed. Preview (/changes/add-login/archive)
    (form /changes/add-login/run) [ Archive ]
    in a terminal agentd archive add-login
    Change the plan
    (form /changes/add-login/revise)
    What should be different
    The change goes back to planning. Code, ticks and costs stay.
    [ Go back to planning ]
    "#);
    let code = viewer.get(&format!("{BASE}/code"));
    assert!(code.body.contains("src/login.rs") && code.body.contains("tests passed"));
    let preview = viewer.get(&format!("{BASE}/archive"));
    insta::assert_snapshot!(preview.shown(), @r#"
    ## What archiving changes
    The specs of the change are merged into the main specs, and its directory moves to the archive. agentd unarchive takes it back.
    ### auth-flow
    agentd/specs/auth-flow.md (/specs/auth-flow) (added) new (added) +1
    (added) +25 (removed) −0 lines
    ### Specification: Login
    1 + Specification: Login
    2 +
    3 + Overview
    4 +
    5 + What the login does.
    6 +
    7 + Requirements
    8 +
    9 + R1: Answer
    10 +
    11 + Priority: high
    12 +
    13 + The server MUST answer 200 within 2 s.
    14 +
    15 + Acceptance Criteria
    16 +
    17 + Scenario: Good
    18 +
    19 + WHEN the password is right
    20 + THEN 200 is answered
    21 +
    22 + Scenario: Bad
    23 +
    24 + WHEN the password is wrong
    25 + THEN 401 is answered as an error
    (form /changes/add-login/run) [ Archive ]
    "#);
    posts(&viewer, "run", "command=archive");
    wait_until("it is archived", || viewer.get(BASE).status == 303);
    // Its address leads to where it is now.
    for page in ["", "/code", "/specs/auth-flow"] {
        let to = viewer.get(&format!("{BASE}{page}"));
        let to = to.header("location").unwrap();
        assert!(to.starts_with("/archive/") && to.ends_with("-add-login"), "{page}: {to}");
        assert_eq!(viewer.get(to).status, 200, "{page}");
    }
    assert!(project.has_root("agentd/specs/auth-flow.md"));
    let archive = viewer.get("/archive");
    assert!(archive.body.contains(CHANGE), "{}", archive.shown());
}

/// D1: the planner is given what the person who decides has written.
#[test]
fn heavy_note_of_decision_is_in_next_prompt() {
    let project = stand_in::project(
        "self_review_iterations = 0\n",
        &[("medium", "No limit"), ("medium", "No log")],
    );
    let project = project.about(CHANGE);
    let viewer = acting(&project);
    viewer.post("/new", "id=add-login&description=Let+people+log+in&then=plan");
    waits_for(&viewer, "name=\"choice\"");
    // A decision comes before every command.
    let early = viewer.post(&format!("{BASE}/run"), "command=reproposal");
    assert_eq!(early.status, 409, "{}", early.shown());
    insta::assert_snapshot!(next(&viewer, BASE), @r#"
    Waits for you The plan needs revision.
    (form /changes/add-login/decide)
    Round 1 of claude ended with NEEDS REVISION: 0 high, 2 medium, 0 low.
    What the planner should know
    Revise the plan right away when changes are requested
    [ Request changes ] [ Stop here ]
    The plan cannot be accepted: HIGH issues or more than one MEDIUM issue are left.
    then agentd reproposal add-login
    "#);
    posts(&viewer, "comments", "on=proposal.md&at=heading+Why&text=Whose+data+exactly%3F");
    let fix = format!(
        "choice=fix&note=Lock+after+XYZZY+attempts&run=1&seen={}",
        viewer.seen(BASE, "decision")
    );
    posts(&viewer, "decide", &fix);
    wait_until("the planner is called", || calls(&project).contains(&"reproposal".to_owned()));
    waits_for(&viewer, "plan: approved");
    let prompt = prompt(&project, "reproposal");
    assert!(prompt.contains("Lock after XYZZY attempts"), "{prompt}");
    assert!(prompt.contains("Whose data exactly?"), "{prompt}");
    assert_eq!(project.state().decisions[0].choice, Choice::Fix);
}

/// What people say about lines of code is given to the implementer.
#[test]
fn heavy_comment_on_code_is_in_fix_prompt() {
    let project = repository("").about(CHANGE);
    project
        .run(["plan", CHANGE, "Let people log in", "--skip-clarify", "--git", "in-place"])
        .exits(0);
    project.run(["impl", CHANGE]).exits(0);
    assert_eq!(project.state().phase, Phase::Complete);
    let viewer = acting(&project);
    let code = viewer.get(&format!("{BASE}/code")).body;
    assert!(code.contains("comments?on=code%2Fsrc%2Flogin.rs&amp;at=line%201"), "{code}");
    posts(&viewer, "comments", "on=code%2Fsrc%2Flogin.rs&at=line+1&text=Name+this+number%2C+PLUGH");
    let shown = viewer.get(&format!("{BASE}/code"));
    assert!(shown.body.contains("Name this number, PLUGH"));
    wait_until("fixing comes next", || viewer.get(BASE).body.contains("value=\"fix\""));
    verdicts(&project, "APPROVED", "APPROVED");
    posts(&viewer, "run", "command=fix");
    wait_until("the implementer is called", || calls(&project).contains(&"fix".to_owned()));
    wait_until("it has its prompt", || prompt(&project, "fix").contains("PLUGH"));
    waits_for(&viewer, "value=\"review\"");
}

#[test]
fn nothing_is_started_unless_asked_for() {
    let project = project();
    let viewer = Viewer::start(&project);
    for (target, body) in [
        ("/changes/add-oauth/run", "command=reproposal"),
        ("/changes/add-oauth/stop", ""),
        ("/new", "id=x&description=y&then=plan"),
    ] {
        let answer = viewer.post(target, body);
        assert_eq!(answer.status, 403, "{target}");
        assert!(answer.body.contains("agentd view --act"), "{target}");
    }
    assert_eq!(viewer.get("/new").status, 403);
    assert!(!project.has_root("agentd/changes/x"));
    // The commands are there to be copied.
    let page = viewer.get("/changes/add-oauth").body;
    assert!(!page.contains("/run\"") && page.contains("data-copy=\"agentd reproposal"), "{page}");
}

/// Who accepts two minor issues has not accepted those of a round that ended meanwhile.
#[test]
fn decision_is_about_the_round_that_was_shown() {
    let project = project();
    let viewer = Viewer::start(&project);
    let page = "/changes/add-oauth";
    let decide = |seen: &str| {
        viewer.post_for_data(&format!("{page}/decide"), &format!("choice=accept&seen={seen}"))
    };
    let seen = viewer.seen(page, "decision");
    super::project::another_round(&project);
    let (status, said) = decide(&seen);
    insta::assert_snapshot!(format!("{status} {said}"), @r#"409 {"error":"`add-oauth` was challenged again since you saw it; nothing was decided","hints":["read the latest round, then decide"]}"#);
    assert_eq!(decide("").0, 400);
    assert_eq!((project.state().phase, project.state().decisions), (Phase::Proposed, vec![]));
    assert_eq!(decide(&viewer.seen(page, "decision")).0, 200);
    assert_eq!(project.state().phase, Phase::Challenged);
}

/// Every command would fail, with hints that a page cannot follow.
#[test]
fn untrusted_project_offers_trust_instead_of_commands() {
    let project = TestProject::new().change("add-oauth").approved();
    project.write_root("agentd/config.toml", "[implementation]\ntest_command = \"true\"\n");
    let viewer = acting(&project);
    let shown = next(&viewer, "/changes/add-oauth");
    assert!(
        shown.contains("agentd trust") && !shown.contains("(form /changes/add-oauth/run)"),
        "{shown}"
    );
    assert!(viewer.get("/new").body.contains("data-copy=\"agentd trust\""));
    project.run(["trust", "--yes"]).exits(0);
    let shown = next(&viewer, "/changes/add-oauth");
    assert!(
        !shown.contains("agentd trust") && shown.contains("(form /changes/add-oauth/run)"),
        "{shown}"
    );
}

#[test]
fn part_is_edited_checked_and_refused_when_stale() {
    let project = project();
    let viewer = Viewer::start(&project);
    let address = "/changes/add-oauth/specs/auth-flow?view=edit&at=R3";
    let seen = viewer.seen(address, "editor");
    let form =
        |text: &str| format!("on=specs%2Fauth-flow.md&at=R3&seen={seen}&text={}", encode(text));
    let good = "### R3: A provider that does not answer\n\n**Priority**: medium\n\nThe page SHOULD offer the password form after 7 seconds.\n";
    let check = |text: &str| viewer.post("/changes/add-oauth/check", &form(text));
    insta::assert_snapshot!(super::outline::outline(&check(good).body), @r#"✓ Valid"#);
    insta::assert_snapshot!(super::outline::outline(&check("### R3: <b>x</b>\n").body), @r#"- HIGH line 1: R3 has no text Say in one sentence what MUST hold."#);
    // A text with a new HIGH finding is not written, and nothing that was typed is lost.
    let before = project.read("specs/auth-flow.md");
    let (status, said) = viewer.post_for_data("/changes/add-oauth/edit", &form("### R1: Twice\n"));
    assert_eq!(status, 409, "{said}");
    assert_eq!(project.read("specs/auth-flow.md"), before);
    let (status, said) = viewer.post_for_data("/changes/add-oauth/edit", &form(good));
    assert_eq!((status, said["to"].as_str()), (200, Some("/changes/add-oauth/specs/auth-flow")));
    assert!(project.read("specs/auth-flow.md").contains("after 7 seconds"));
    // Somebody who began before that is told, and changes nothing.
    let stale = form(&good.replace('7', "9"));
    let (status, said) = viewer.post_for_data("/changes/add-oauth/edit", &stale);
    insta::assert_snapshot!(format!("{status} {said}"), @r#"409 {"error":"agentd/changes/add-oauth/specs/auth-flow.md was changed since you began to edit it","hints":["nothing was written; compare your text with the one that is there now"]}"#);
    assert!(project.read("specs/auth-flow.md").contains("after 7 seconds"));
    // Only documents of the plan, and only parts that are there.
    for (on, at) in [
        ("STATE.yaml", ""),
        ("comments.md", ""),
        ("../x.md", ""),
        ("specs/auth-flow.md", "R77"),
        ("journal.jsonl", ""),
    ] {
        let body = format!("on={}&at={at}&seen={seen}&text=x", encode(on));
        for page in ["edit", "check"] {
            let status = viewer.post(&format!("/changes/add-oauth/{page}"), &body).status;
            assert_eq!(status, 404, "{page} {on} {at}");
        }
    }
}

/// Words of a comment can be changed by who wrote it, answered by everybody, and stay at their place
/// when lines are inserted above (D3).
#[test]
fn comments_stay_at_their_words() {
    let project = project();
    let viewer = Viewer::start(&project);
    let line = project
        .read("specs/auth-flow.md")
        .lines()
        .position(|l| l.contains("within 10 minutes"))
        .unwrap()
        + 1;
    let body =
        format!("on=specs%2Fauth-flow.md&at=line+{line}&quote=within+10+minutes&text=Why+10%3F");
    let answer = viewer.post("/changes/add-oauth/comments", &body);
    assert_eq!(answer.header("location"), Some("/changes/add-oauth/specs/auth-flow#C1"));
    let moved = project
        .read("specs/auth-flow.md")
        .replace("## Requirements\n", "Four\n\nmore\n\nlines\n\n## Requirements\n");
    project.write("specs/auth-flow.md", &moved);
    let thread =
        |address: &str| viewer.get(address).between("<article class=\"thread", "</article>");
    let at = moved.lines().position(|l| l.contains("within 10 minutes")).unwrap() + 1;
    let source = viewer.get("/changes/add-oauth/specs/auth-flow?view=source").body;
    let (_, here) = source.split_once(&format!("<li id=\"L{at}\">")).unwrap();
    assert!(here.split("</li>").next().unwrap().contains("Why 10?"), "line {at}");
    // The words are gone: it says so, and is not hung on others.
    project.write("specs/auth-flow.md", moved.replace("within 10 minutes", "in time"));
    assert!(thread("/changes/add-oauth/specs/auth-flow").contains("outdated"));
    let post = |page: &str, body: &str| {
        viewer.post(&format!("/changes/add-oauth/comments/{page}"), body).status
    };
    assert_eq!(post("1/answer", "text=Because+of+RFC+6749"), 303);
    assert_eq!(post("1/edit", "text=Why+ten%3F"), 303);
    assert_eq!(post("1/remove", ""), 409, "it was answered");
    assert_eq!(post("2/edit", "text=+"), 400);
    assert_eq!(post("2/remove", ""), 303);
    assert_eq!(post("9/answer", "text=x"), 404);
    assert_eq!(post("1/burn", "text=x"), 404);
    insta::assert_snapshot!(thread("/changes/add-oauth/comments"), @r#"
    “within 10 minutes”
    (#comment-1)
    alice
    [TIME]
    C1
    Why ten?
    Edit
    (form /changes/add-oauth/comments/1/edit)
    Why ten?
    [ Save ]
    (form /changes/add-oauth/comments/1/remove) [ Remove ]
    (form /changes/add-oauth/comments/1) [ Resolve ]
    Reply
    (form /changes/add-oauth/comments/1/answer)
    [ Reply ]
    "#);
}

/// Going back to planning, with what is to be different.
#[test]
fn plan_is_revised_from_later_phases() {
    let project = TestProject::new().change("add-oauth").approved();
    let viewer = Viewer::start(&project);
    assert_eq!(project.state().phase, Phase::Challenged);
    assert!(viewer.get("/changes/add-oauth").body.contains("/changes/add-oauth/revise"));
    assert_eq!(viewer.post("/changes/add-oauth/revise", "note=Shorter+sessions").status, 303);
    let state = project.state();
    assert_eq!(
        (state.phase, state.decisions[0].note.as_str()),
        (Phase::Proposed, "Shorter sessions")
    );
}

/// What waits is said to every page, for its title and for notices.
#[test]
fn attention_says_what_waits() {
    let project = project();
    let viewer = Viewer::start(&project);
    let found: serde_json::Value = serde_json::from_str(&viewer.get("/attention").body).unwrap();
    let waiting: Vec<&str> =
        found["waiting"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert!(waiting.contains(&"add-oauth"), "{found}");
    assert_eq!(found["running"], serde_json::json!([]));
}
