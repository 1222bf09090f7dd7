//! T2: a missing agent is an error, and the built-in one plays only where it was chosen.

use serde_json::{Value, json};
use terminal::Terminal;
use test_project::TestProject;

use crate::cli::stand_in;

const PLAN: [&str; 7] =
    ["plan", "add-login", "Add a login", "--auto", "--skip-clarify", "--git", "in-place"];

fn with_config(config: &str) -> TestProject {
    TestProject::new().root_file("agentd/config.toml", config)
}

fn planned(project: &TestProject, more: &[&str]) -> Value {
    let run = project.run(PLAN.iter().chain(&["--json"]).chain(more));
    assert_eq!(run.code == 0, run.json()["error"].is_null(), "{run:#?}");
    run.json()
}

/// contract T2: a broken PATH must not become an approved plan.
#[test]
fn without_a_terminal_a_missing_agent_is_an_error() {
    let written = "[roles]\nplanner = \"gemini\"\nchallenger = \"codex\"\n";
    for config in ["", written] {
        let project = with_config(config);
        let run = project.run(PLAN.iter().chain(&["--json"]));
        insta::allow_duplicates! { insta::assert_snapshot!(run, @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "agent_not_installed",
            "message": "gemini failed: cannot start `gemini`: no such program is on PATH",
            "cause": null,
            "hints": [
              "install it with `npm install -g @google/gemini-cli`, or set `command` in [gemini]",
              "or name another agent in [roles]: agentd/config.toml",
              "for a plan alone, `--agent builtin` drafts and checks it by rules, without a model"
            ],
            "agent": "gemini",
            "failure": "not_installed",
            "retry_after_ms": null
          }
        }
        --- stderr
        "#); }
        assert!(!project.has_root("agentd/changes/add-login"), "nothing was begun");
    }
}

/// The planner is there, and the challenger is not: the plan stays without a verdict.
#[test]
fn a_missing_challenger_approves_nothing() {
    let project = stand_in::project("self_review_iterations = 0\n", &[]);
    let config = project.read_root("agentd/config.toml");
    let config = config.replace("challenger = \"claude\"", "challenger = \"codex\"");
    project.write_root("agentd/config.toml", config);
    let error = planned(&project, &[]);
    assert_eq!(error["error"]["kind"], "agent_not_installed", "{error:#}");
    let status = project.run(["status", "--json"]).exits(0).json();
    assert_eq!((&status["phase"], &status["verdict"]), (&json!("proposed"), &Value::Null));
}

/// contract T2: where it was chosen, it plays, and `--json` and the screen say so.
#[test]
fn the_builtin_agent_plays_where_it_was_chosen() {
    let both = json!({"planner": "builtin", "challenger": "builtin"});
    let by_flag = with_config("[roles]\nplanner = \"gemini\"\n");
    let report = planned(&by_flag, &["--agent", "builtin"]);
    assert_eq!(report["agents"], both, "{report:#}");
    assert_eq!(report["next"], json!(["agentd show add-login", "agentd impl add-login"]));

    let by_roles = TestProject::empty();
    by_roles.run(["init", "--yes", "--agents", "none"]).exits(0);
    insta::assert_snapshot!(by_roles.run(PLAN), @"
    exit 0
    ✓ APPROVED - passes the rules; nobody has judged the idea
    cost so far: $0

    Next: agentd show add-login
    --- stderr
    Working in place, without git: git is not installed.
    complexity: high (security (`login`))
    Proposal: started (builtin)
    Proposal: done, [DURATION], proposal.md is written
    Proposal, review: started (builtin)
    Proposal, review: done, [DURATION], Review 1: PASS
    Spec 1/1: login: started (builtin)
    Spec 1/1: login: done, [DURATION], specs/login.md is written
    Spec 1/1: login, review: started (builtin)
    Spec 1/1: login, review: done, [DURATION], Review 1: PASS
    Tasks: started (builtin)
    Tasks: done, [DURATION], tasks.md is written
    Tasks, review: started (builtin)
    Tasks, review: done, [DURATION], Review 1: PASS
    Format validation passed: 0 HIGH, 0 MEDIUM, 1 LOW
    warning: planner and challenger are both from agentd: they have the same blind spots
    Challenge: started (builtin)
    Challenge: done, [DURATION], APPROVED - passes the rules; nobody has judged the idea
    Reviewed without a model, by the rules of `agentd validate`, which do not judge the idea: 1 issue.
    LOW     I1  Q004: no scenario says what happens when something goes wrong
                agentd/changes/add-login/specs/login.md:28
                A spec has a scenario for what happens when something goes wrong.
                Errors are where implementations guess.
                → Add a scenario for a wrong input, a missing thing, a time-out or a
                  refusal.
    ");
    // A second look calls nobody.
    let again = planned(&by_roles, &[]);
    assert_eq!((&again["action"], &again["agents"]), (&json!("already_challenged"), &json!({})));
}

/// The built-in agent plans; where code is missing, it is no way out.
#[test]
fn who_implements_is_not_told_how_to_plan() {
    let project = TestProject::new().change("add-oauth").approved();
    let hints = |args: &[&str]| {
        let error = project.run(args.iter().chain(&["--json"])).exits(1).json();
        assert_eq!(error["error"]["kind"], "agent_not_installed", "{error:#}");
        error["error"]["hints"].to_string()
    };
    let hints = hints(&["impl"]);
    assert!(hints.contains("name another agent in [roles]"), "{hints}");
    assert!(!hints.contains("for a plan alone"), "{hints}");
}

#[test]
fn agents_are_those_that_were_called() {
    let project = stand_in::project("self_review_iterations = 0\n", &[("high", "No lock")]);
    let step = |args: &[&str]| {
        let report = project.run(args.iter().chain(&["--json"])).exits(0).json();
        report["agents"].clone()
    };
    let planner = json!({"planner": "claude"});
    let challenger = json!({"challenger": "claude"});
    let propose = ["proposal", "add-login", "x", "--skip-clarify", "--git", "in-place"];
    assert_eq!(step(&propose), planner);
    assert_eq!(step(&["challenge"]), challenger);
    assert_eq!(step(&["reproposal"]), planner);
    assert_eq!(step(&["challenge", "--agent", "builtin"]), json!({"challenger": "builtin"}));
}

/// A person is asked only where nobody has chosen yet.
#[test]
fn on_a_terminal_a_person_can_choose_the_builtin_agent() {
    let start = |project: &TestProject| Terminal::start(project.command(PLAN).env("NO_COLOR", "1"));
    let project = with_config("");
    let mut terminal = start(&project);
    terminal.wait_for("no agent was found on PATH (gemini, codex, claude, opencode,");
    terminal.wait_for("Draft and check the plan by rules, without a model?");
    terminal.wait_for("> Yes, with the built-in agent");
    terminal.press("\r");
    terminal.wait_for("APPROVED - passes the rules; nobody has judged the idea");
    assert_eq!(terminal.end().0, Some(0));

    let project = with_config("[roles]\nplanner = \"gemini\"\n");
    let mut terminal = start(&project);
    terminal.wait_for("cannot start `gemini`");
    assert_eq!(terminal.end().0, Some(1));
}
