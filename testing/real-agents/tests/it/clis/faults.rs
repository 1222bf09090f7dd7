//! What the CLIs make of models that fail.

use real_agents::{Cli, Finished, Sandbox};
use scripted_models::{Fault, Reply, Rule, Script};

use super::{for_every_cli, notes};

for_every_cli!(
    survives_a_rate_limit,
    survives_a_server_error,
    survives_a_reset,
    gives_up_on_a_bad_request,
    is_killed_with_all_it_started,
);

const PROMPT: &str = "agentd plan add-login";

/// One fault, then an answer; returns the run and how many requests it took.
fn after(fault: Reply, cli: Cli) -> (Finished, usize) {
    let script = Script::new()
        .rule(Rule::new().times(1).reply(fault))
        .rule(Rule::new().reply(Reply::text("At last.")));
    Sandbox::enter(script, |sandbox| {
        let run = sandbox.call(cli, PROMPT).run();
        (run, sandbox.models().requests().len())
    })
}

fn survives(fault: Reply, cli: Cli) {
    let (run, requests) = after(fault, cli);
    assert!(run.is_success(), "{run:#?}");
    assert_eq!(requests, 2, "{run:#?}");
    assert!(run.final_text().ends_with("At last."), "{run:#?}");
}

fn survives_a_rate_limit(cli: Cli) {
    survives(Reply::status(429).header("retry-after", "1"), cli);
}

fn survives_a_server_error(cli: Cli) {
    survives(Reply::status(500), cli);
}

fn survives_a_reset(cli: Cli) {
    survives(Reply::fault(Fault::CutMidway).saying("It has begun and goes on"), cli);
}

/// What the first attempt said stays in gemini's stream, unmarked.
#[test]
fn gemini_repeats_itself_after_a_reset() {
    let (run, _) = after(Reply::fault(Fault::CutMidway).saying("Half an answer"), Cli::Gemini);
    assert_eq!(run.final_text(), "Half an At last.", "{run:#?}");
}

/// A stream that is closed in good order is the one cut it does not survive.
#[test]
fn gemini_gives_up_on_a_stream_that_ends_early() {
    let (run, requests) = after(Reply::fault(Fault::EndMidway).saying("Half"), Cli::Gemini);
    assert!(!run.is_success(), "{run:#?}");
    assert_eq!((run.exit_code, requests), (Some(1), 1), "{run:#?}");
    assert!(run.stdout.contains("[API Error: terminated]"), "{run:#?}");
}

/// The answer then comes without a stream, and its tokens are missing from
/// `usage`; `modelUsage` has them.
#[test]
fn claude_loses_usage_when_it_asks_again_without_a_stream() {
    let (run, requests) = after(Reply::fault(Fault::CutMidway).saying("Half"), Cli::Claude);
    assert_eq!(requests, 2, "{run:#?}");
    assert_eq!(run.usage().map(|usage| usage.output), Some(0), "{run:#?}");
    let events = run.events();
    let models = events.last().unwrap()["modelUsage"].as_object().unwrap().clone();
    let output: Vec<u64> =
        models.values().filter_map(|model| model["outputTokens"].as_u64()).collect();
    assert_eq!(output, [50], "{run:#?}");
}

fn gives_up_on_a_bad_request(cli: Cli) {
    let script = Script::new().rule(Rule::new().reply(Reply::status(400)));
    Sandbox::enter(script, |sandbox| {
        let run = sandbox.call(cli, PROMPT).run();
        assert!(!run.is_success(), "{run:#?}");
        let exit_code = if cli == Cli::Gemini { 144 } else { 1 };
        assert_eq!(run.exit_code, Some(exit_code), "{run:#?}");
        assert!(run.stdout.contains("scripted error 400"), "{run:#?}");
        assert_eq!(sandbox.models().requests().len(), 1);
    });
}

fn is_killed_with_all_it_started(cli: Cli) {
    let script = Script::new().rule(Rule::new().reply(Reply::fault(Fault::Hang)));
    Sandbox::enter(script, |sandbox| {
        let call = sandbox.call(cli, PROMPT).mcp(&notes(sandbox));
        let run = call.run_until(|| !sandbox.models().requests().is_empty());
        assert!(run.is_killed, "{run:#?}");
        assert_eq!(sandbox.models().requests().len(), 1, "it should hang in the request");
        // codex's MCP server is in a group of its own, and ends with its stdin.
        sandbox.until_nothing_runs();
    });
}
