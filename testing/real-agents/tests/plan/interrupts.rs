//! Ctrl-C, kills and closed pipes, while a real CLI is at work.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use real_agents::{Sandbox, Signal};
use rustix::process::{Pid, kill_process};
use scripted_models::{Reply, Rule, Script};

use crate::models::{
    approved, calls, challenges, edit_proposal, plan, planner, reproposals, review,
};
use crate::world::{CODEX_QUICK, Ran, World};

const PLAN: [&str; 7] =
    ["plan", "add-login", "Add a login", "--skip-clarify", "--git", "in-place", "--auto"];

/// Every process that has this in its environment, but for zombies.
fn running(world: &World<'_>) -> Vec<String> {
    let mark = world.root().parent().unwrap().join("home").display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes
        .filter(|path| {
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&mark)
        })
        .map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default())
        .collect()
}

#[track_caller]
fn assert_nothing_runs(world: &World<'_>) {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let left = running(world);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "still running: {left:?}");
        sleep(Duration::from_millis(20));
    }
}

fn start(world: &World<'_>, args: &[&str]) -> Child {
    world.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Lesson 13, issue 5 item 7: the model never answers, somebody presses Ctrl-C, and the same
/// command goes on where it stood.
#[test]
fn ctrl_c_ends_the_agent_and_the_same_command_goes_on() {
    let hangs = Rule::new().step("tasks-gen").prompts(1).reply(Reply::text("…").delay_ms(60_000));
    let script = challenges(plan(Script::new().rule(hangs), &["auth-flow"]), &[approved()]);
    Sandbox::enter(script, |sandbox| {
        let world = World::new(sandbox, CODEX_QUICK);
        let child = start(&world, &PLAN);
        let asked = || sandbox.models().requests().iter().any(|r| r.prompt.contains("tasks-gen "));
        let until = Instant::now() + Duration::from_secs(30);
        while !asked() {
            assert!(Instant::now() < until, "it never got there");
            sleep(Duration::from_millis(10));
        }
        let pressed = Instant::now();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let ran = Ran::of(child.wait_with_output().unwrap()).expect(130);
        assert!(pressed.elapsed() < Duration::from_secs(10));
        ran.says("nothing is lost: run the same command again to resume");
        assert_nothing_runs(&world);
        assert_eq!(world.steps(), ["proposal-gen", "spec-gen-auth-flow", "tasks-gen"]);
        world.run(&PLAN).expect(0);
        let steps = ["proposal-gen", "spec-gen-auth-flow", "tasks-gen", "tasks-gen", "challenge"];
        assert_eq!(world.steps(), steps, "only the interrupted step is done again");
    });
}

/// Lesson 15: nobody reads what agentd prints; the plan is made all the same, without a panic.
#[test]
fn a_closed_stdout_is_no_panic() {
    Sandbox::enter(challenges(planner(&[]), &[approved()]), |sandbox| {
        let world = World::new(sandbox, CODEX_QUICK);
        for args in [&PLAN[..], &["plan", "--json"]] {
            let mut child = start(&world, args);
            drop(child.stdout.take());
            let ran = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(!said.contains("panicked"), "{said}");
            assert_ne!(ran.status.code(), Some(101), "{said}");
        }
        assert_eq!(world.state().phase.name(), "challenged");
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
        let world = World::new(sandbox, &format!("{CODEX_QUICK}script_retries = 0\n"));
        let mut kills = 0;
        for moment in [1500, 300, 700, 450, 250, 620, 900, 350] {
            let mut child = start(&world, &PLAN);
            sleep(Duration::from_millis(moment));
            if child.try_wait().unwrap().is_some() {
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
            assert_nothing_runs(&world);
            if world.file("STATE.yaml").exists() {
                world.state();
            }
        }
        let ran = world.run(&PLAN).expect(0);
        assert_eq!(world.state().phase.name(), "challenged", "{ran:#?}");
        let proposal = world.text("proposal.md");
        assert_eq!(proposal.matches("their own data, locked").count(), 1, "{proposal}");
        let steps = world.steps();
        let expected =
            ["proposal-gen", "spec-gen-auth-flow", "tasks-gen", "challenge", "reproposal"];
        for step in expected {
            assert!(steps.contains(&step.to_owned()), "{steps:?}");
            assert_eq!(world.runs(step), steps.iter().filter(|have| *have == step).count());
        }
        // Two challenges, the others once, and at most one more for every kill.
        assert!(steps.len() <= 6 + kills, "{kills} kills: {steps:?}");
    });
}
