//! Ctrl-C, kills and closed pipes, while a real CLI is at work.

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use real_agents::{CODEX_QUICK, Sandbox, Signal, signal, until};
use scripted_models::{Reply, Rule, Script};
use test_project::Output;

use real_agents::models::{
    approved, calls, challenges, edit_proposal, plan, planner, reproposals, review,
};

const PLAN: [&str; 7] =
    ["plan", "add-login", "Add a login", "--skip-clarify", "--git", "in-place", "--auto"];

fn start(sandbox: &Sandbox, args: &[&str]) -> Child {
    sandbox.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Lesson 13, issue 5 item 7: the model never answers, the user presses Ctrl-C, and the same
/// command resumes.
#[test]
fn ctrl_c_ends_the_agent_and_the_same_command_resumes() {
    let hangs = Rule::new().step("tasks-gen").prompts(1).reply(Reply::text("…").delay_ms(60_000));
    let script = challenges(plan(Script::new().rule(hangs), &["auth-flow"]), &[approved()]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        let child = start(sandbox, &PLAN);
        let asked = || sandbox.models().requests().iter().any(|r| r.prompt.contains("tasks-gen "));
        until("tasks-gen is asked for", asked);
        let pressed = Instant::now();
        signal(&child, Signal::INT);
        let ran = Output::new(child.wait_with_output().unwrap(), &sandbox.base()).exits(130);
        assert!(pressed.elapsed() < Duration::from_secs(10));
        insta::assert_snapshot!(ran.without_usage(), @"
        exit 130
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (codex)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        Spec 1/1: auth-flow: started (codex)
        Spec 1/1: auth-flow: done, [DURATION], [USAGE], specs/auth-flow.md is written
        Tasks: started (codex)
        Tasks: failed, [DURATION], interrupted
        error: interrupted

        hint: nothing is lost: run the same command again to resume
        ");
        sandbox.until_nothing_runs();
        assert_eq!(sandbox.steps(), ["proposal-gen", "spec-gen-auth-flow", "tasks-gen"]);
        sandbox.run(PLAN).exits(0);
        let steps = ["proposal-gen", "spec-gen-auth-flow", "tasks-gen", "tasks-gen", "challenge"];
        assert_eq!(sandbox.steps(), steps, "only the interrupted step is done again");
    });
}

/// Lesson 15: if stdout is closed, the plan is still made, without a panic.
#[test]
fn a_closed_stdout_does_not_panic() {
    Sandbox::enter(challenges(planner(&[]), &[approved()]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        for args in [&PLAN[..], &["plan", "--json"]] {
            let mut child = start(sandbox, args);
            drop(child.stdout.take());
            let ran = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(!said.contains("panicked"), "{said}");
            assert_ne!(ran.status.code(), Some(101), "{said}");
        }
        assert_eq!(sandbox.state().phase.name(), "challenged");
    });
}

/// Kills at any moment of a plan by the real codex: the same documents in the end, and no step
/// but the interrupted one paid again. The many kills are those of the built-in agent, in
/// `crates/agentd/tests/it/cli/plan_kills.rs`.
#[test]
fn heavy_kills_of_a_plan_by_the_real_codex() {
    // A challenge that is killed and asked for again must hear the same as the first time.
    let found = review("NEEDS_REVISION", &[("high", "No lock")]);
    let again = calls("challenge", "append_review", approved()).prompt("Earlier rounds");
    let first = calls("challenge", "append_review", found);
    let script = planner(&["auth-flow"]).rule(again).rule(first);
    // A reproposal that is asked for again finds its work done, and says it in other words.
    let edits = [edit_proposal("their own data", "their own data, locked")];
    let script = reproposals(script, &edits);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(&format!("{CODEX_QUICK}script_retries = 0\n"));
        let mut kills = 0;
        for moment in [1500, 300, 700, 450, 250, 620, 900, 350] {
            let mut child = start(sandbox, &PLAN);
            sleep(Duration::from_millis(moment));
            if child.try_wait().unwrap().is_some() {
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            sandbox.until_nothing_runs();
            if sandbox.path("STATE.yaml").exists() {
                sandbox.state();
            }
        }
        let ran = sandbox.run(PLAN).exits(0);
        assert_eq!(sandbox.state().phase.name(), "challenged", "{ran:#?}");
        let proposal = sandbox.read("proposal.md");
        assert_eq!(proposal.matches("their own data, locked").count(), 1, "{proposal}");
        let steps = sandbox.steps();
        let expected =
            ["proposal-gen", "spec-gen-auth-flow", "tasks-gen", "challenge", "reproposal"];
        for step in expected {
            assert!(steps.contains(&step.to_owned()), "{steps:?}");
            assert_eq!(sandbox.runs(step), steps.iter().filter(|have| *have == step).count());
        }
        // Two challenges, the others once, and at most one more for every kill.
        assert!(steps.len() <= 6 + kills, "{kills} kills: {steps:?}");
    });
}
