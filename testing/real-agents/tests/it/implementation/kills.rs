//! An implementation that is killed at any point resumes where it stopped.

use std::process::Stdio;

use real_agents::{Sandbox, Signal, signal, until};
use scripted_models::{Fault, Reply, Rule, Script};

use super::project::{GREET, RIGHT, WRONG, approved, does, greets, look, says, verdict_of, write};

/// Kills `agentd impl` once something is so.
pub(crate) fn killed(sandbox: &Sandbox, what: &str, is_so: impl Fn() -> bool) {
    let mut command = sandbox.command(["impl"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(what, is_so);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
}

/// Only the interrupted step is paid twice, and no verdict is lost: killed in
/// implement, in review, between the verdict and the state, in fix, and in the review after
/// the fix.
#[test]
fn a_killed_implementation_resumes() {
    let hangs = |step: &str| Rule::new().step(step).prompts(1).reply(Reply::fault(Fault::Hang));
    let found = verdict_of("NEEDS_FIX", &[("high", "Wrong greeting")]);
    let speaks_and_hangs = Rule::new()
        .step("review")
        .prompts(1)
        .reply(Reply::call("create_review", found))
        .reply(Reply::fault(Fault::Hang));
    let script = Script::new()
        .rule(hangs("implement-logic"))
        .rule(greets(WRONG))
        .rule(hangs("review"))
        .rule(speaks_and_hangs)
        .rule(hangs("fix"))
        .rule(does("fix", [look("greet.sh"), write("greet.sh", RIGHT)]))
        .rule(hangs("review"))
        .rule(says("APPROVED", &[]));
    Sandbox::enter(script, |sandbox| {
        approved(sandbox, "", &[GREET]);
        let asked = |step: &str, times: usize| {
            let first = format!("agentd {step} ");
            let requests = sandbox.models().requests();
            let is_meant =
                |r: &&scripted_models::ModelRequest| r.round == 0 && r.prompt.starts_with(&first);
            requests.iter().filter(is_meant).count() >= times
        };
        killed(sandbox, "implementing", || asked("implement-logic", 1));
        killed(sandbox, "reviewing", || asked("review", 1));
        killed(sandbox, "a verdict", || sandbox.path("REVIEW.md").exists());
        assert!(sandbox.state().code_review.is_none(), "agentd has not seen it");
        killed(sandbox, "fixing", || asked("fix", 1));
        assert_eq!(sandbox.state().code_review.unwrap().iteration, 1);
        killed(sandbox, "reviewing again", || asked("review", 3));
        let ran = sandbox.run(["impl", "--json"]).exits(0);
        assert_eq!(ran.json()["phase"], "complete");
        assert_eq!(ran.json()["iteration"], 2);
        let steps = [
            "implement-logic",
            "implement-logic",
            "review",
            "review",
            "fix",
            "fix",
            "review",
            "review",
        ];
        assert_eq!(sandbox.steps(), steps);
        let fixes: Vec<_> =
            sandbox.calls().into_iter().filter(|call| call.has("--resume")).collect();
        assert_eq!(fixes.len(), 2, "{fixes:#?}");
        assert_eq!(fixes[0].after("--resume"), fixes[1].after("--resume"));
    });
}
