//! agentd is killed at any moment of a plan by a warm agent: nothing of it is left, and no session is
//! paid twice.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use real_agents::Sandbox;
use real_agents::models::{approved, calls, plan, proposal, spec, tasks};
use scripted_models::Script;
use serde_json::json;

use super::all_settings;

/// Makes plans and kills agentd in them until it was killed this many times, at moments between
/// these two, in milliseconds. The last plan is left to end, however slow the machine is.
fn kills(sandbox: &Sandbox, wanted: usize, (from, to): (u64, u64)) {
    let (mut kills, mut finished, mut change) = (0, 0, 0);
    let mut seen = BTreeSet::new();
    // Counted by attempts, not by kills: a moment after the end of a plan must not come again for ever.
    for attempt in 0_u64.. {
        let is_last = kills == wanted;
        let id = format!("add-login-{change}");
        let args = ["plan", &id, "Add a login", "--skip-clarify", "--git", "in-place", "--auto"];
        let mut command = sandbox.command(args);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Spread over the whole of a run, and the same in every run of the test.
        let step = attempt * 7919 % (to - from);
        let ended = if is_last {
            Some(child.wait().unwrap())
        } else {
            sleep(Duration::from_millis(from + step));
            child.try_wait().unwrap()
        };
        if ended.is_none() {
            child.kill().unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        sandbox.until_nothing_runs();
        let done = ended.is_some_and(|status| status.success());
        assert!(ended.is_none() || done, "{} is not finished: {ended:?}", sandbox.run(args));
        if done {
            finished += 1;
            change += 1;
            let state = sandbox.state_of(&id);
            assert_eq!(state.phase.name(), "challenged");
            let good = state.llm_calls.iter().filter(|call| call.failure.is_none());
            let steps: Vec<String> = good.clone().map(|call| call.step.to_string()).collect();
            let unique: BTreeSet<&String> = steps.iter().collect();
            assert_eq!(unique.len(), steps.len(), "a step that was done was paid again: {steps:?}");
            for session in state.llm_calls.iter().filter_map(|call| call.session_id.clone()) {
                assert!(seen.insert(session.clone()), "{session} was counted twice");
            }
        }
        if is_last {
            break;
        }
    }
    assert!(finished > 0, "no plan was ever finished in {kills} runs");
}

/// With an agent of our own that starts quickly; 100 kills where `AGENTD_BARS` is set.
// contract G5
#[test]
fn heavy_kills_with_a_warm_agent() {
    let wanted = if std::env::var_os("AGENTD_BARS").is_some() { 100 } else { 12 };
    Sandbox::enter(Script::new(), |sandbox| {
        let call = |tool: &str, arguments| json!({"tool": tool, "arguments": arguments});
        let script = json!({
            "proposal-gen": call("create_proposal", proposal(&json!(["auth-flow"]))),
            "spec-gen-auth-flow": call("create_spec", spec("auth-flow")),
            "tasks-gen": call("create_tasks", tasks(&["auth-flow"])),
            "challenge": call("append_review", approved()),
        });
        let file = sandbox.home().join("script.json");
        fs::write(&file, script.to_string()).unwrap();
        let agent = |name: &str| {
            format!(
                "[agents.{name}]\nacp = [\"{}\"]\nstate = [\"~/.acp-agent\"]\n\
                 env = {{ ACP_SCRIPT = \"{}\" }}\n",
                env!("CARGO_BIN_EXE_acp-agent"),
                file.display()
            )
        };
        sandbox.set_up(&format!(
            "[roles]\nplanner = \"own\"\nchallenger = \"other\"\n\
             [workflow]\nscript_retries = 0\nself_review_iterations = 0\n{}{}",
            agent("own"),
            agent("other")
        ));
        kills(sandbox, wanted, (30, 1500));
    });
}

/// The same with the real gemini and codex, which take seconds to start.
#[test]
#[ignore = "starts the real agents again and again, which takes most of a minute"]
fn heavy_kills_of_a_plan_by_warm_gemini_and_codex() {
    let script = Script::new().rule(calls("challenge", "append_review", approved()));
    Sandbox::enter_acp(plan(script, &["auth-flow"]), |sandbox| {
        sandbox.set_up(&format!(
            "[roles]\nplanner = \"gemini\"\nchallenger = \"codex\"\n\
             [workflow]\nscript_retries = 0\nself_review_iterations = 0\n{}",
            all_settings(&["gemini", "codex"])
        ));
        kills(sandbox, 3, (2000, 12_000));
    });
}
