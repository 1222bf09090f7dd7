//! `agentd plan` at a terminal: its questions, its decision, Ctrl-C.

use terminal::{CTRL_C, DOWN, Terminal};

use crate::cli::stand_in::{AS_MENDED, CHANGE, calls, project};
use test_project::TestProject;

const MINOR: [(&str, &str); 2] = [("medium", "No limit"), ("low", "Typo")];
const MAJOR: [(&str, &str); 1] = [("high", "No lock")];
const QUICK: &str = "self_review_iterations = 0\n";
const PLAN: [&str; 6] = ["plan", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];

fn start(project: &TestProject, args: &[&str]) -> Terminal {
    Terminal::start(project.command(args).env("NO_COLOR", "1"))
}

fn state(project: &TestProject) -> String {
    project.read_root(&format!("agentd/changes/{CHANGE}/STATE.yaml"))
}

/// P2, P4, P6, P24, C29: the whole way of a person, from the questions to the approval.
#[test]
fn a_person_answers_chooses_a_branch_and_has_the_issues_fixed() {
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
    assert!(project.read_root("agentd/changes/add-login/proposal.md").contains(AS_MENDED));
    assert!(project.read_root("agentd/changes/add-login/clarifications.md").contains("OAuth"));
    assert_eq!(project.read_root(".git/HEAD").trim(), "ref: refs/heads/agentd/add-login");
    let state = state(&project);
    assert!(state.contains("phase: challenged") && state.contains("choice: fix"), "{state}");
    assert!(state.contains("by: ada"), "{state}");
}

/// P24, C10, C11: the other answers, each of which leaves the plan as it is.
#[test]
fn a_person_stops_reviews_by_hand_or_accepts() {
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
    assert!(state(&project).contains("phase: proposed"));
    assert!(!state(&project).contains("choice:"), "nothing is decided");
    let asked = calls(&project).len();

    // It is asked again, and nobody is paid for that.
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
    assert!(seen.contains("agentd reproposal add-login"), "{seen}");
    assert!(state(&project).contains("choice: stop"));

    let mut terminal = start(&project, &["plan"]);
    terminal.wait_for("> Auto-fix");
    terminal.press(DOWN);
    terminal.wait_for("> Accept it with its minor issues");
    terminal.press("\r");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(state(&project).contains("phase: challenged"), "{seen}");
    assert_eq!(calls(&project).len(), asked);
}

/// C11: what is not minor cannot be accepted.
#[test]
fn a_plan_with_a_high_issue_is_not_offered_to_be_accepted() {
    let project = project(QUICK, &MAJOR);
    let mut terminal = start(&project, &PLAN);
    terminal.wait_for("What next?");
    terminal.wait_until(|seen| seen.contains("Stop here"));
    terminal.press(CTRL_C);
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(130), "{seen}");
    assert!(!seen.contains("Accept it"), "{seen}");
}

/// Ctrl-C at each question ends with 130; the plan goes on from there, and nothing is paid
/// again.
#[test]
fn ctrl_c_at_a_question_loses_nothing() {
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
    assert!(!state(&project).contains("choice:"));
}

/// C12: after three rounds the person is told how many there were.
#[test]
fn after_three_rounds_the_question_says_so() {
    let project = project(QUICK, &MAJOR);
    project.run(PLAN).exits(0);
    let path = "agentd/changes/add-login/STATE.yaml";
    let text = project.read_root(path).replace("\niteration: 0\n", "\niteration: 3\n");
    assert!(text.contains("iteration: 3"), "{text}");
    std::fs::write(project.root().join(path), text).unwrap();
    let mut terminal = start(&project, &["plan"]);
    terminal.wait_for("3 rounds have not settled it");
    terminal.wait_for("What next?");
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().0, Some(130));
}
