//! `plan` and its steps, where no agent has to be called to see what they do.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use crate::cli::stand_in::{self, CHANGE};
use test_project::TestProject;

/// WF6: what is beyond planning is left alone, and said to be.
#[test]
fn plan_beyond_planning_does_nothing() {
    for phase in ["implementing", "complete"] {
        let project = TestProject::new().change("add-oauth");
        let project = project.edit("STATE.yaml", "phase: proposed", &format!("phase: {phase}"));
        let before = project.read("STATE.yaml");
        let run = project.run(["plan", "--git", "in-place", "--json"]).exits(0);
        assert_eq!(run.json()["action"], "beyond_planning", "{run:#?}");
        assert_eq!(run.json()["phase"], phase);
        let after = project.read("STATE.yaml");
        assert_eq!(
            after.lines().find(|line| line.starts_with("phase")),
            before.lines().find(|line| line.starts_with("phase"))
        );
        project.run(["reproposal"]).exits(1);
        project.run(["challenge"]).exits(1);
    }
}

/// PR7: what the structure check finds in a new proposal is a warning, and no more.
#[test]
fn a_new_proposal_that_is_invalid_is_warned_of() {
    let project = stand_in::project("self_review_iterations = 0\n", &[]);
    // Somebody edits the proposal while the tasks are written.
    let program = project.bin().join("claude");
    let script = fs::read_to_string(&program).unwrap();
    let proposal = "agentd/changes/$change/proposal.md";
    let damage = format!("sed -i 's/^## Why$/## Wherefore/' {proposal}");
    let script = format!("{script}\nif [ $step = tasks-gen ]; then {damage}; fi\n");
    fs::write(&program, script).unwrap();
    let args = ["proposal", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];
    let run = project.run(args).exits(0);
    run.stderr_has("Format validation failed: 1 HIGH")
        .stderr_has("warning: the plan has 1 HIGH findings: agentd validate add-login");
    let state = project.read_root("agentd/changes/add-login/STATE.yaml");
    assert!(state.contains("\nphase: proposed\n"), "{state}");
}

/// PR2.3: the limit of self-reviews is a warning also where one session writes everything.
#[test]
fn the_last_review_of_a_plan_in_one_session_is_warned_of() {
    let project = stand_in::project("generation = \"one-shot\"\n", &[]);
    let answers = project.home().join("answers");
    fs::copy(answers.join("proposal-gen"), answers.join("plan-gen")).unwrap();
    let program = project.bin().join("claude");
    let script = fs::read_to_string(&program).unwrap();
    fs::write(&program, script.replace("PASS", "NEEDS_REVISION")).unwrap();
    let args = ["proposal", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];
    let run = project.run(args).exits(0);
    run.stderr_has("the plan: the planner still found something in review 1, the last one");
    let steps = ["plan-gen", "spec-gen-auth-flow", "tasks-gen", "plan-review"];
    assert_eq!(stand_in::calls(&project), steps);
}

/// Agents get the path of the project as text; what cannot go on is not begun.
#[test]
fn a_path_that_is_not_utf8_is_refused_before_anything_is_written() {
    let project = TestProject::new();
    for marker in ["agentd/config.toml", ".git/HEAD"] {
        let root = project.home().join(OsStr::from_bytes(b"caf\xe9-"));
        let marker = root.join(marker);
        let dir = marker.parent().unwrap();
        fs::create_dir_all(dir).unwrap();
        fs::write(&marker, "").unwrap();
        let mut command = project.command(["plan", "new", "x", "--git", "branch", "--json"]);
        let run = project.finish(command.current_dir(&root)).exits(1);
        let error = run.json_error();
        assert_eq!(error["kind"], "path_not_utf8", "{run:#?}");
        assert!(error["cause"].as_str().unwrap().ends_with("/caf\\xe9-"), "{run:#?}");
        for (place, only) in [(&*root, dir), (dir, &*marker)] {
            let found: Vec<_> = fs::read_dir(place).unwrap().map(|it| it.unwrap().path()).collect();
            assert_eq!(found, [only]);
        }
        fs::remove_dir_all(root).unwrap();
    }
}
