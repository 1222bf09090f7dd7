//! The project's tests, as agentd runs them.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use real_agents::{Sandbox, Signal, lines_with, signal, until};
use scripted_models::Script;
use test_project::Output;

use super::project::{GREET, approved, says};

/// A change whose one task is ticked, so that only the review is left.
fn built<'s>(sandbox: &'s Sandbox, tests: &str) -> &'s Sandbox {
    approved(sandbox, "", &[GREET]);
    configure(sandbox, tests);
    fs::write(sandbox.root().join("greet.sh"), super::project::RIGHT).unwrap();
    let tasks = sandbox.read("tasks.md").replace("status: pending", "status: done");
    fs::write(sandbox.path("tasks.md"), tasks).unwrap();
    let state = sandbox.read("STATE.yaml").replace("phase: challenged", "phase: implementing");
    fs::write(sandbox.path("STATE.yaml"), state).unwrap();
    sandbox
}

fn configure(sandbox: &Sandbox, tests: &str) {
    let text = format!("[implementation]\n{tests}\n");
    fs::write(sandbox.root().join("agentd/config.toml"), text).unwrap();
}

/// Reviews; the lines about the tests.
fn review_and_tests(sandbox: &Sandbox) -> String {
    let ran = sandbox.run(["review"]).exits(0);
    lines_with(&ran.without_usage(), "tests ")
}

/// What is recorded is what was seen; what cannot be run or does not end has failed.
#[test]
fn runs_are_recorded_as_they_were() {
    let needs_fix = says("NEEDS_FIX", &[("high", "Tests")]);
    Sandbox::enter(Script::new().rule(needs_fix), |sandbox| {
        let sandbox = built(sandbox, "");
        insta::assert_snapshot!(review_and_tests(sandbox), @r#"warning: no tests were run: set implementation.test_command in agentd/config.toml, such as "cargo test""#);
        assert!(sandbox.state().test_run.is_none());

        // Megabytes on both streams: the end of it is kept, in order.
        let loud = "test_command = \"yes abcdefgh | head -c 4500000; echo last words >&2; exit 3\"";
        configure(sandbox, loud);
        insta::assert_snapshot!(review_and_tests(sandbox), @"the tests failed with exit code 3 after [DURATION]");
        let run = sandbox.state().test_run.unwrap();
        assert_eq!(run.exit_code, Some(3));
        let tail = run.output_tail.as_str();
        assert!(
            tail.trim_end().ends_with("abcdefgh\nlast words"),
            "{:?}",
            &tail[tail.len() - 200..]
        );
        assert!(run.output_tail.as_str().len() <= 17_000);
        let prompts = sandbox.models().requests();
        let prompt = &prompts.iter().rfind(|request| request.round == 0).unwrap().prompt;
        assert!(prompt.contains("\nlast words\n"), "{prompt}");
        assert!(prompt.len() < 64 << 10, "{}", prompt.len());

        configure(sandbox, "test_command = \"echo begun; sleep 600\"\ntest_timeout_secs = 1");
        insta::assert_snapshot!(review_and_tests(sandbox), @"the tests were stopped after [DURATION]");
        let run = sandbox.state().test_run.unwrap();
        assert_eq!(run.exit_code, None);
        assert!((1000..20_000).contains(&run.duration_ms), "{}", run.duration_ms);
        assert!(run.output_tail.as_str().starts_with("begun"), "{:?}", run.output_tail);

        configure(sandbox, "test_command = \"no-such-program\"");
        insta::assert_snapshot!(review_and_tests(sandbox), @"the tests failed with exit code 127 after [DURATION]");
        sandbox.run(["review", "--exit-code"]).exits(1);
        assert_eq!(sandbox.state().phase.name(), "implementing");
        assert!(sandbox.calls().iter().all(|call| call.program == "codex"));
    });
}

/// Lesson 13: Ctrl-C ends the tests with all that they have started.
#[test]
fn ctrl_c_leaves_nothing_running() {
    Sandbox::enter(Script::new(), |sandbox| {
        let hangs = "test_command = \"setsid sleep 611 & sleep 612\"";
        let sandbox = built(sandbox, hangs);
        let mut command = sandbox.command(["review"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let sleepers = || {
            let processes = sandbox.processes();
            processes.iter().filter(|command| command.starts_with("sleep ")).count()
        };
        until("the tests run", || sleepers() == 2);
        let start = Instant::now();
        signal(&child, Signal::INT);
        Output::new(child.wait_with_output().unwrap(), &sandbox.base()).exits(130);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        until("they are gone", || sleepers() == 0);
        assert!(sandbox.calls().is_empty(), "no agent was called");
    });
}
