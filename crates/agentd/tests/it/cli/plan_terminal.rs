//! `agentd plan` at a terminal: its questions, its decision, Ctrl-C.

use agentd_core::document::clarifications::parse;
use agentd_core::ids::ChangeId;
use agentd_core::state::{self, State};
use terminal::{CTRL_C, DOWN, Terminal};

use crate::cli::stand_in::{AS_FIXED, CHANGE, calls, lost, project};
use test_project::TestProject;

const MINOR: [(&str, &str); 2] = [("medium", "No limit"), ("low", "Typo")];
const MAJOR: [(&str, &str); 1] = [("high", "No lock")];
const QUICK: &str = "self_review_iterations = 0\n";
const PLAN: [&str; 6] = ["plan", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];

fn start(project: &TestProject, args: &[&str]) -> Terminal {
    Terminal::start(project.command(args).env("NO_COLOR", "1"))
}

fn state(project: &TestProject) -> State {
    let text = project.read_root(&format!("agentd/changes/{CHANGE}/STATE.yaml"));
    state::parse(&text, &ChangeId::new(CHANGE).unwrap()).unwrap()
}

fn phase(project: &TestProject) -> &'static str {
    state(project).phase.name()
}

/// What was decided, and by whom.
fn decisions(project: &TestProject) -> Vec<String> {
    let decisions = state(project).decisions.into_iter();
    decisions.map(|made| format!("{:?} by {}", made.choice, made.by)).collect()
}

/// P2, P4, P6, P24, C29: the whole way of a person, from the questions to the approval.
#[test]
fn plan_with_questions_branch_and_fix() {
    let project = project(QUICK, &MAJOR).programs(&["git"]);
    project.git(&["init", "-q", "-b", "main"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    let mut terminal = start(&project, &["plan", CHANGE, "Add a login"]);
    for question in ["Which Method?", "Which Storage?", "Which Clients?"] {
        terminal.wait_for(question);
        terminal.wait_for("(recommended)");
        terminal.press("\r");
    }
    terminal.wait_for("Where is `add-login` worked on?");
    terminal.wait_for("> On the branch agentd/add-login (recommended)");
    terminal.press("\r");
    // The issues come before the question.
    terminal.wait_for("No lock");
    terminal.wait_for("What next?");
    terminal.wait_for("> Auto-fix and rechallenge (recommended)");
    terminal.press("\r");
    terminal.wait_for("Proposal updated based on challenge feedback");
    terminal.wait_for("APPROVED");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    let steps = [
        "clarify",
        "proposal-gen",
        "spec-gen-auth-flow",
        "tasks-gen",
        "challenge",
        "reproposal",
        "challenge",
    ];
    assert_eq!(calls(&project), steps);
    let read = |name: &str| project.read_root(&format!("agentd/changes/{CHANGE}/{name}"));
    assert_eq!(read("proposal.md").matches(AS_FIXED).count(), 1);
    let answers = parse(&read("clarifications.md")).value.questions;
    let answers: Vec<&str> = answers.iter().map(|question| question.answer.as_str()).collect();
    assert_eq!(answers, ["OAuth", "PostgreSQL", "Web"]);
    assert_eq!(project.read_root(".git/HEAD").trim(), "ref: refs/heads/agentd/add-login");
    assert_eq!(decisions(&project), ["Fix by ada"]);
    assert_eq!(phase(&project), "challenged");
}

/// C31: where the session of the planner is gone, a person is asked; to stop is the error with its
/// hint, and to go on is a new session.
#[test]
fn a_lost_session_is_offered_on_a_terminal() {
    let project = project(QUICK, &MAJOR);
    std::fs::write(lost(&project), "").unwrap();
    let mut terminal = start(&project, &PLAN);
    terminal.wait_for("> Auto-fix and rechallenge (recommended)");
    terminal.press("\r");
    terminal.wait_for("The session in which the plan was written is gone. What next?");
    terminal.wait_for("> Begin a new one");
    terminal.press(DOWN);
    terminal.wait_for("> Stop here");
    terminal.press("\r");
    terminal.wait_for("agentd reproposal add-login --fresh");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(1), "{seen}");
    assert_eq!(phase(&project), "proposed");

    let mut terminal = start(&project, &["plan"]);
    terminal.wait_for("> Begin a new one");
    terminal.press("\r");
    terminal.wait_for("APPROVED");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(phase(&project), "challenged");
    let made = calls(&project);
    let tail = ["reproposal", "reproposal", "reproposal", "reproposal", "challenge"];
    assert!(made.ends_with(&tail.map(str::to_owned)), "{made:?}");
}

/// P24, C10, C11: the other answers, each of which leaves the plan as it is.
#[test]
fn review_manually_stop_and_accept() {
    let project = project(QUICK, &MINOR);
    let mut terminal = start(&project, &PLAN);
    terminal.wait_for("What next?");
    terminal.wait_for("Review manually");
    for _ in 0..2 {
        terminal.press(DOWN);
    }
    terminal.wait_for("> Review manually");
    terminal.press("\r");
    terminal.wait_for("then: agentd plan add-login");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(phase(&project), "proposed");
    assert_eq!(decisions(&project), [""; 0]);
    let asked = calls(&project).len();

    // The question comes again, without another call.
    let mut terminal = start(&project, &["plan"]);
    terminal.wait_for("No limit");
    terminal.wait_for("> Auto-fix");
    for _ in 0..3 {
        terminal.press(DOWN);
    }
    terminal.wait_for("> Stop here");
    terminal.press("\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    // The question ends with this code of the terminal.
    let behind = seen.rsplit_once("\u{1b}[?2004l").unwrap().1;
    insta::assert_snapshot!(behind.replace('\r', ""), @"
    NEEDS_REVISION - Found 0 HIGH, 1 MEDIUM, 1 LOW severity issues (round 0)
    cost so far: $1.0000

    Next: agentd reproposal add-login
    ");
    assert_eq!(decisions(&project), ["Stop by ada"]);

    let mut terminal = start(&project, &["plan"]);
    terminal.wait_for("> Auto-fix");
    terminal.press(DOWN);
    terminal.wait_for("> Accept it with its minor issues");
    terminal.press("\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert_eq!(phase(&project), "challenged", "{seen}");
    assert_eq!(decisions(&project), ["Stop by ada", "Accept by ada"]);
    assert_eq!(calls(&project).len(), asked);
}

/// C11: what is not minor cannot be accepted.
#[test]
fn high_issue_is_not_offered_to_accept() {
    let project = project(QUICK, &MAJOR);
    let mut terminal = start(&project, &PLAN);
    terminal.wait_for("What next?");
    terminal.wait_for("Stop here");
    terminal.press(CTRL_C);
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(130), "{seen}");
    assert!(!seen.contains("Accept it"), "{seen}");
}

/// Ctrl-C at each question ends with 130; the plan continues from there, and nothing is paid
/// again.
#[test]
fn ctrl_c_at_plan_loses_nothing() {
    let project = project(QUICK, &MAJOR).programs(&["git"]);
    project.git(&["init", "-q", "-b", "main"]);
    project.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    let stop_at = |args: &[&str], question: &str| {
        let mut terminal = start(&project, args);
        terminal.wait_for(question);
        terminal.wait_for("> ");
        terminal.press(CTRL_C);
        let (code, seen) = terminal.end();
        assert_eq!(code, Some(130), "{question}: {seen}");
    };
    stop_at(&["plan", CHANGE, "Add a login"], "Which Method?");
    assert_eq!(calls(&project), ["clarify"]);
    let mut terminal = start(&project, &["plan", CHANGE]);
    for question in ["Which Method?", "Which Storage?", "Which Clients?"] {
        terminal.wait_for(question);
        terminal.wait_for("(recommended)");
        terminal.press("\r");
    }
    terminal.wait_for("Where is `add-login` worked on?");
    terminal.wait_for("> On the branch");
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().0, Some(130));
    assert_eq!(project.read_root(".git/HEAD").trim(), "ref: refs/heads/main");
    assert_eq!(calls(&project), ["clarify"]);

    stop_at(&["plan", CHANGE, "--git", "in-place"], "What next?");
    let asked = calls(&project);
    assert_eq!(asked.last().unwrap(), "challenge");
    stop_at(&["plan"], "What next?");
    assert_eq!(calls(&project), asked, "nothing is paid again");
    assert_eq!(decisions(&project), [""; 0]);
}

/// C12: after three rounds the question says how many there were.
#[test]
fn question_after_three_rounds() {
    let project = project(QUICK, &MAJOR);
    project.run(PLAN).exits(0);
    let path = "agentd/changes/add-login/STATE.yaml";
    let text = project.read_root(path).replace("\niteration: 0\n", "\niteration: 3\n");
    std::fs::write(project.root().join(path), text).unwrap();
    assert_eq!(state(&project).iteration, 3);
    let mut terminal = start(&project, &["plan"]);
    terminal.wait_for("3 rounds have not settled it");
    terminal.wait_for("What next?");
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().0, Some(130));
}
