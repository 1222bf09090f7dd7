//! Prompts in, answers and usage out.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use real_agents::{Cli, Sandbox, Usage};
use scripted_models::{Reply, Rule, Script};

use super::{for_every_cli, side_requests};

for_every_cli!(answers_with_usage, reports_a_refused_key);

const PROMPT: &str = "agentd plan add-login\n\nMake a plan.";

fn plan() -> Script {
    let usage = scripted_models::Usage {
        input: 1234,
        cached: 200,
        cache_written: 34,
        output: 56,
        reasoning: 7,
    };
    let reply = Reply::text("The plan for ${change} is made.").usage(usage);
    Script::new().rule(Rule::new().step("plan").reply(reply))
}

fn answers_with_usage(cli: Cli) {
    // Named, because gemini would first ask a model which model to ask.
    let (model, usage) = match cli {
        Cli::Gemini => ("gemini-3.8-flash", Usage { input: 1234, cached: 200, output: 49 }),
        Cli::Codex => ("gpt-5.5", Usage { input: 1234, cached: 200, output: 56 }),
        Cli::Claude => ("claude-opus-4-8", Usage { input: 1000, cached: 200, output: 56 }),
    };
    Sandbox::enter(plan(), |sandbox| {
        let run = sandbox.call(cli, PROMPT).model(model).run();
        assert_eq!(run.exit_code, Some(0), "{run:#?}");
        assert!(run.is_success(), "{run:#?}");
        assert_eq!(run.final_text(), "The plan for add-login is made.");
        assert_eq!(run.usage(), Some(usage), "{run:#?}");
        assert!(run.session_id().is_some_and(|id| id.len() == 36), "{run:#?}");

        let requests = sandbox.models().requests();
        assert_eq!(requests.len(), 1, "{requests:#?}");
        assert_eq!(requests[0].prompt.trim(), PROMPT);
        assert_eq!(requests[0].model, model);
        assert_eq!(side_requests(&sandbox.models().records()), 0);
        assert_eq!(sandbox.models().surprises(), Vec::<String>::new());
    });
}

fn reports_a_refused_key(cli: Cli) {
    let script = Script { require_key: Some("another-key".to_owned()), ..plan() };
    Sandbox::enter(script, |sandbox| {
        let run = sandbox.call(cli, PROMPT).variable("CLAUDE_CODE_MAX_RETRIES", "0").run();
        assert!(!run.is_success(), "{run:#?}");
        assert_ne!(run.exit_code, Some(0), "{run:#?}");
        assert!(run.stdout.contains("API key not valid"), "{run:#?}");
        assert!(!run.is_killed);
    });
}

#[test]
fn gemini_asks_which_model_to_ask() {
    Sandbox::enter(plan(), |sandbox| {
        let run = sandbox.call(Cli::Gemini, PROMPT).run();
        assert!(run.is_success(), "{run:#?}");
        let records = sandbox.models().records();
        assert_eq!(side_requests(&records), 1, "{records:#?}");
        assert_eq!(sandbox.models().requests().len(), 1);
    });
}

#[test]
fn claude_asks_for_a_title() {
    Sandbox::enter(plan(), |sandbox| {
        let call = sandbox.call(Cli::Claude, PROMPT);
        let run = call.without_variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC").run();
        assert!(run.is_success(), "{run:#?}");
        let records = sandbox.models().records();
        assert_eq!(side_requests(&records), 1, "{records:#?}");
        assert_eq!(sandbox.models().requests().len(), 1);
        assert_eq!(sandbox.models().surprises(), Vec::<String>::new());
    });
}

#[test]
fn codex_falls_back_from_a_websocket() {
    Sandbox::enter(plan(), |sandbox| {
        let url = format!("openai_base_url=\"{}/v1\"", sandbox.models().url());
        let call = sandbox.call(Cli::Codex, PROMPT).argument("-c").argument(&url);
        let call = call.argument("-c").argument("model_provider=\"openai\"");
        // The built-in provider has its own name for the key.
        let run = call.variable("CODEX_API_KEY", "test-key").run();
        assert!(run.is_success(), "{run:#?}");
        let records = sandbox.models().records();
        assert!(records.iter().any(|record| record.status == Some(426)), "{records:#?}");
        assert_eq!(sandbox.models().requests().len(), 1);
    });
}

#[test]
fn the_environment_of_the_test_does_not_leak() {
    Sandbox::enter(plan(), |sandbox| {
        let output = sandbox.finish(&mut sandbox.any_command("/usr/bin/env"));
        let lines = output.stdout.lines().filter_map(|line| line.split_once('='));
        let seen: BTreeMap<OsString, OsString> =
            lines.map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(seen, sandbox.environment().into_iter().collect());
        assert_eq!(seen[OsStr::new("HOME")], sandbox.home());
    });
}
