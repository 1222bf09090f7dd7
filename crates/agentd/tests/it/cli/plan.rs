//! `plan` and its steps, where no agent has to be called to see what they do.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use crate::cli::stand_in::{self, CHANGE};
use test_project::TestProject;

/// WF6: what is beyond planning is left alone, and reported as such.
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

/// C39: an approval is of one text. Another one is challenged, not called approved.
#[test]
fn an_approved_plan_that_was_edited_is_challenged_again() {
    let project = stand_in::project("self_review_iterations = 0\n", &[]);
    let plan = ["plan", CHANGE, "Add a login", "--auto", "--skip-clarify", "--git", "in-place"];
    // The stand-in approves what is fixed.
    project.run(plan).exits(1);
    let proposal = format!("agentd/changes/{CHANGE}/proposal.md");
    let fixed = project.read_root(&proposal).replace(stand_in::AS_WRITTEN, stand_in::AS_FIXED);
    project.write_root(&proposal, fixed);
    let approved = project.run(["plan", "--auto", "--json"]).exits(0).json();
    assert_eq!(
        (&approved["action"], &approved["phase"]),
        (&"challenged".into(), &"challenged".into())
    );
    let again = project.run(["plan", "--auto", "--json"]).exits(0).json();
    assert_eq!(again["action"], "already_challenged");
    let calls = stand_in::calls(&project).len();
    let edited = project.read_root(&proposal).replace("which is locked", "which is locked well");
    project.write_root(&proposal, edited.replace("locked well", "which is locked well"));
    insta::assert_snapshot!(project.run(["impl"]), @"
    exit 1
    --- stderr
    Working in place, without git: git is not installed.
    error: a change that is challenged cannot be implemented: the plan has changed since it was approved

    hint: have it challenged again: agentd challenge add-login
    ");
    let third = project.run(["plan", "--auto", "--json"]).json();
    assert_eq!(third["action"], "challenged", "{third:#}");
    assert_eq!(stand_in::calls(&project)[calls..], ["challenge"]);
}

/// PR7: what the structure check finds in a new proposal is a warning, and no more.
#[test]
fn invalid_new_proposal_is_a_warning() {
    let project = stand_in::project("self_review_iterations = 0\n", &[]);
    // The proposal is edited while the tasks are written.
    let program = project.bin().join("claude");
    let script = fs::read_to_string(&program).unwrap();
    let proposal = "agentd/changes/$change/proposal.md";
    let damage = format!("sed -i 's/^## Why$/## Wherefore/' {proposal}");
    let script = format!("{script}\nif [ $step = tasks-gen ]; then {damage}; fi\n");
    fs::write(&program, script).unwrap();
    let args = ["proposal", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];
    insta::assert_snapshot!(project.run(args), @"
    exit 0
    ✓ add-login: the plan is written
    cost so far: $0.75

    Next: agentd validate add-login
    --- stderr
    forecast: [FIGURES] (from built-in guesses)
    Working in place, without git: git is not installed.
    complexity: high (security (`login`))
    Proposal: started (claude)
    Proposal: done, [DURATION], 10 in, 2 out, $0.2500, proposal.md is written
    Spec 1/1: auth-flow: started (claude)
    Spec 1/1: auth-flow: done, [DURATION], 10 in, 2 out, $0.2500, specs/auth-flow.md is written
    Tasks: started (claude)
    Tasks: done, [DURATION], 10 in, 2 out, $0.2500, tasks.md is written
    Format validation failed: 1 HIGH, 0 MEDIUM, 0 LOW
    warning: the plan has 1 HIGH finding: agentd validate add-login
    ");
    assert_eq!(project.run(["status", "--json"]).fine().json()["phase"], "proposed");
}

/// PR2.3: the limit of self-reviews is a warning also where one session writes everything.
#[test]
fn one_shot_last_review_is_a_warning() {
    let project = stand_in::project("generation = \"one-shot\"\n", &[]);
    let answers = project.home().join("answers");
    fs::copy(answers.join("proposal-gen"), answers.join("plan-gen")).unwrap();
    let program = project.bin().join("claude");
    let script = fs::read_to_string(&program).unwrap();
    fs::write(&program, script.replace("PASS", "NEEDS_REVISION")).unwrap();
    let args = ["proposal", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];
    insta::assert_snapshot!(project.run(args), @"
    exit 0
    ✓ add-login: the plan is written
    cost so far: $1.00

    Next: agentd challenge add-login
    --- stderr
    forecast: [FIGURES] (from built-in guesses)
    Working in place, without git: git is not installed.
    complexity: high (security (`login`))
    Plan: started (claude)
    Plan: done, [DURATION], 10 in, 2 out, $0.2500, proposal.md is written
    Spec 1/1: auth-flow: started (claude)
    Spec 1/1: auth-flow: done, [DURATION], 10 in, 2 out, $0.2500, specs/auth-flow.md is written
    Tasks: started (claude)
    Tasks: done, [DURATION], 10 in, 2 out, $0.2500, tasks.md is written
    Plan, review: started (claude, resumed)
    Plan, review: done, [DURATION], 10 in, 2 out, $0.2500, Review 1: NEEDS_REVISION (auto-fixed)
    warning: plan-review asked for a revision and changed nothing
    warning: the plan: the planner still found something in review 1, the last one; continuing
    Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
    ");
    let steps = ["plan-gen", "spec-gen-auth-flow", "tasks-gen", "plan-review"];
    assert_eq!(stand_in::calls(&project), steps);
}

/// Agents get the path of the project as text; what cannot continue is not begun.
#[test]
fn path_not_utf8_is_refused() {
    let project = TestProject::new();
    for marker in ["agentd/config.toml", ".git/HEAD"] {
        let root = project.home().join(OsStr::from_bytes(b"caf\xe9-"));
        let marker = root.join(marker);
        let dir = marker.parent().unwrap();
        fs::create_dir_all(dir).unwrap();
        fs::write(&marker, "").unwrap();
        let mut command = project.command(["plan", "new", "x", "--git", "branch", "--json"]);
        let run = project.finish(command.current_dir(&root));
        insta::allow_duplicates! { insta::assert_snapshot!(run, @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "path_not_utf8",
            "message": "cannot run agents here: the path of the project is not UTF-8",
            "cause": "[HOME]/caf\\xe9-",
            "hints": [
              "move the project, or rename the directory, to a name that is UTF-8"
            ]
          }
        }
        --- stderr
        "#); }
        for (place, only) in [(&*root, dir), (dir, &*marker)] {
            let found: Vec<_> = fs::read_dir(place).unwrap().map(|it| it.unwrap().path()).collect();
            assert_eq!(found, [only]);
        }
        fs::remove_dir_all(root).unwrap();
    }
}

/// F16: what is refused writes nothing, and its hint is another command.
#[test]
fn refused_steps_leave_the_state_as_it_is() {
    let planned = || {
        let config = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n[git]\nworkflow = \"in-place\"\n";
        let project = TestProject::new().root_file("agentd/config.toml", config);
        let project = project.change("add-oauth").programs(&["git"]).repository();
        project.commit("start");
        project
    };
    let edited = planned().approved().edit("tasks.md", "src/auth.rs", "src/other.rs");
    let mut said = String::new();
    for (name, project, commands) in [
        ("planned", planned(), &["review", "fix", "impl", "implement"][..]),
        ("approved", planned().approved(), &["review", "fix"]),
        ("edited", edited, &["review", "fix"]),
    ] {
        let before = project.contents();
        for command in commands {
            let error = project.run([command, "--json"]).exits(1).json_error();
            assert_eq!(project.contents(), before, "{name}: {command}");
            let hint = error["hints"][0].as_str().unwrap();
            assert!(!hint.ends_with(&format!("agentd {command} add-oauth")), "{name}: {hint}");
            said.push_str(&format!(
                "{name}, {command}: {}: {hint}\n",
                error["kind"].as_str().unwrap()
            ));
        }
    }
    insta::assert_snapshot!(said, @"
    planned, review: change_not_ready: plan it first: agentd plan add-oauth
    planned, fix: change_not_ready: plan it first: agentd plan add-oauth
    planned, impl: change_not_ready: plan it first: agentd plan add-oauth
    planned, implement: change_not_ready: plan it first: agentd plan add-oauth
    approved, review: change_not_ready: implement it first: agentd impl add-oauth
    approved, fix: change_not_ready: implement it first: agentd impl add-oauth
    edited, review: refused: have it challenged again: agentd challenge add-oauth
    edited, fix: refused: have it challenged again: agentd challenge add-oauth
    ");
}
