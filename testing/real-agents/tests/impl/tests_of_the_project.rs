//! The project's tests, as agentd runs them.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use real_agents::world::{Ran, World};
use real_agents::{Sandbox, Signal, signal};
use scripted_models::Script;

use crate::project::{GREET, approved, says, until};

/// A change whose one task is ticked, so that only the review is left.
fn built<'s>(sandbox: &'s Sandbox, tests: &str) -> World<'s> {
    let world = approved(sandbox, "", &[GREET]);
    configure(&world, tests);
    fs::write(world.root().join("greet.sh"), crate::project::RIGHT).unwrap();
    let tasks = world.text("tasks.md").replace("status: pending", "status: done");
    fs::write(world.file("tasks.md"), tasks).unwrap();
    let state = world.text("STATE.yaml").replace("phase: challenged", "phase: implementing");
    fs::write(world.file("STATE.yaml"), state).unwrap();
    world
}

fn configure(world: &World<'_>, tests: &str) {
    let text = format!("[implementation]\n{tests}\n");
    fs::write(world.root().join("agentd/config.toml"), text).unwrap();
}

/// What is recorded is what was seen; what cannot be run or does not end has failed.
#[test]
fn runs_are_recorded_as_they_were() {
    let needs_fix = says("NEEDS_FIX", &[("high", "Tests")]);
    Sandbox::enter(Script::new().rule(needs_fix), |sandbox| {
        let world = built(sandbox, "");
        world.run(&["review"]).expect(0).says("no tests were run");
        assert!(world.state().test_run.is_none());

        // Megabytes on both streams: the end of it is kept, in order.
        let loud = "test_command = \"yes abcdefgh | head -c 4500000; echo last words >&2; exit 3\"";
        configure(&world, loud);
        world.run(&["review"]).expect(0).says("the tests failed with exit code 3");
        let run = world.state().test_run.unwrap();
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
        assert!(prompt.contains("last words") && prompt.len() < 64 << 10, "{}", prompt.len());

        configure(&world, "test_command = \"echo begun; sleep 600\"\ntest_timeout_secs = 1");
        world.run(&["review"]).expect(0).says("the tests were stopped");
        let run = world.state().test_run.unwrap();
        assert_eq!(run.exit_code, None);
        assert!((1000..20_000).contains(&run.duration_ms), "{}", run.duration_ms);
        assert!(run.output_tail.as_str().starts_with("begun"), "{:?}", run.output_tail);

        configure(&world, "test_command = \"no-such-program\"");
        world.run(&["review", "--exit-code"]).expect(1).says("the tests failed with exit code 127");
        assert_eq!(world.state().phase.name(), "implementing");
        assert!(world.calls().iter().all(|call| call.program == "codex"));
    });
}

/// Lesson 13: Ctrl-C ends the tests with all that they have started.
#[test]
fn ctrl_c_leaves_nothing_running() {
    Sandbox::enter(Script::new(), |sandbox| {
        let hangs = "test_command = \"setsid sleep 611 & sleep 612\"";
        let world = built(sandbox, hangs);
        let mut command = world.command(&["review"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // By its home: inside of the sandbox processes have numbers of their own.
        let mark = format!("HOME={}", sandbox.home().display());
        let sleepers = || {
            let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
            let is_one = |path: &std::path::PathBuf| {
                let read = |name: &str| fs::read(path.join(name)).unwrap_or_default();
                read("cmdline").starts_with(b"sleep\0")
                    && read("environ").split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
            };
            processes.filter(is_one).count()
        };
        until("the tests run", || sleepers() == 2);
        let start = Instant::now();
        signal(&child, Signal::INT);
        Ran::of(child.wait_with_output().unwrap()).expect(130);
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
        until("they are gone", || sleepers() == 0);
        assert!(world.calls().is_empty(), "nobody was paid");
    });
}
