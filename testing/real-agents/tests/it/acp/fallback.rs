//! When a quota is used up or nobody is logged in, the next agent of the list takes over (G4).

use real_agents::models::{approved, calls, plan};
use real_agents::{Sandbox, lines_with};
use scripted_models::{Fault, Provider, Reply, Rule, Script, StatusFault};
use serde_json::{Value, json};

use super::settings;

fn refuses(provider: Provider, code: u16, body: Value) -> Rule {
    let fault = StatusFault { code, headers: std::collections::BTreeMap::new(), body: Some(body) };
    Rule::new().provider(provider).reply(Reply::fault(Fault::Status(fault)))
}

/// What `OpenAI` answers for a key without credit.
fn no_credit() -> Value {
    json!({"error": {
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "type": "insufficient_quota", "param": null, "code": "insufficient_quota"}})
}

const CHAIN: &str = "[roles]\nplanner = [\"codex\", \"claude\"]\n\
    challenger = [\"codex\", \"opencode\", \"gemini\"]\n\
    [workflow]\nscript_retries = 1\nretry_delay_secs = 0\nself_review_iterations = 0\n";

/// A plan whose first planner and first challenger have no credit: claude writes it, and gemini,
/// not opencode with the models of the author's vendor, judges it.
// contract G4, T4
#[test]
fn a_chain_finishes_a_plan_and_stays_independent() {
    let script = Script::new().rule(refuses(Provider::OpenAi, 429, no_credit())).rule(calls(
        "challenge",
        "append_review",
        approved(),
    ));
    Sandbox::enter_acp(plan(script, &["auth-flow"]), |sandbox| {
        let models = "[agents.opencode.models]\nlow = \"anthropic/claude-sonnet-4-5\"\n\
            medium = \"anthropic/claude-sonnet-4-5\"\nhigh = \"anthropic/claude-sonnet-4-5\"\n\
            critical = \"anthropic/claude-sonnet-4-5\"\n";
        sandbox.set_up(&format!("{CHAIN}{models}"));
        let ran = sandbox.plan(&["--auto", "--json"]);
        println!("{ran}");
        let ran = ran.exits(0);
        assert_ne!(lines_with(&ran.stderr, "codex has used up its quota: claude takes over"), "");
        let json = ran.json();
        assert_eq!(json["agents"], json!({"planner": "claude", "challenger": "gemini"}));
        let state = sandbox.state();
        let played: Vec<String> = (state.llm_calls.iter())
            .map(|call| format!("{} {}", call.step, call.agent.unwrap()))
            .collect();
        let expected = [
            "proposal-gen codex",
            "proposal-gen claude",
            "spec-gen-auth-flow claude",
            "tasks-gen claude",
            "challenge gemini",
        ];
        assert_eq!(played, expected, "one call finds out, and nobody asks codex again");
        assert_eq!(state.llm_calls[0].failure.unwrap().words(), "its quota is used up");
        assert_eq!(state.phase.name(), "challenged");
    });
}

/// A rate limit that passes is waited for: nobody takes over.
// contract G4
#[test]
fn a_passing_429_changes_nobody() {
    let body = json!({"error": {
        "message": "Rate limit reached for gpt-6 on tokens per min (TPM): Limit 30000, Used 28000, \
            Requested 4000. Please try again in 20ms.",
        "type": "tokens", "param": null, "code": "rate_limit_exceeded"}});
    // The CLI itself does not try again.
    let limited = refuses(Provider::OpenAi, 429, body).times(3);
    let script = Script::new().rule(limited).rule(calls("challenge", "append_review", approved()));
    Sandbox::enter(plan(script, &["auth-flow"]), |sandbox| {
        let chain = CHAIN.replace("script_retries = 1", "script_retries = 5");
        sandbox.set_up(&chain.replace("\"codex\", \"opencode\", \"gemini\"", "\"gemini\""));
        let ran = sandbox.plan(&["--auto", "--json"]);
        println!("{ran}");
        let ran = ran.exits(0);
        assert_eq!(lines_with(&ran.stderr, "takes over"), "");
        assert_eq!(ran.json()["agents"], json!({"planner": "codex", "challenger": "gemini"}));
    });
}

/// Nobody is logged in to the first one.
// contract G4
#[test]
fn a_missing_login_hands_the_step_on() {
    let body = json!({"type": "error", "error": {
        "type": "authentication_error", "message": "invalid x-api-key"}});
    let script = Script::new().rule(refuses(Provider::Anthropic, 401, body)).rule(calls(
        "challenge",
        "append_review",
        approved(),
    ));
    Sandbox::enter(plan(script, &["auth-flow"]), |sandbox| {
        sandbox.set_up(
            "[roles]\nplanner = [\"claude\", \"codex\"]\nchallenger = \"gemini\"\n\
             [workflow]\nscript_retries = 0\nself_review_iterations = 0\n",
        );
        let ran = sandbox.plan(&["--auto", "--json"]);
        println!("{ran}");
        let ran = ran.exits(0);
        assert_ne!(lines_with(&ran.stderr, "claude is not logged in: codex takes over"), "");
        assert_eq!(ran.json()["agents"], json!({"planner": "codex", "challenger": "gemini"}));
    });
}

/// What an agent of each kind makes of a key of Anthropic without credit, which is a 400.
fn hands_on_without_credit(agent: &str, settings: &str) {
    let body = json!({"type": "error", "error": {
        "type": "invalid_request_error",
        "message": "Your credit balance is too low to access the Anthropic API. Please go to Plans & \
            Billing to upgrade or purchase credits."}});
    let script = Script::new().rule(refuses(Provider::Anthropic, 400, body)).rule(calls(
        "challenge",
        "append_review",
        approved(),
    ));
    Sandbox::enter_acp(plan(script, &["auth-flow"]), |sandbox| {
        sandbox.set_up(&format!(
            "[roles]\nplanner = [\"{agent}\", \"codex\"]\nchallenger = \"gemini\"\n\
             [workflow]\nscript_retries = 0\nself_review_iterations = 0\n{settings}",
        ));
        let ran = sandbox.plan(&["--auto", "--json"]).exits(0);
        let said = format!("{agent} has used up its quota: codex takes over");
        assert_ne!(lines_with(&ran.stderr, &said), "");
        assert_eq!(ran.json()["agents"], json!({"planner": "codex", "challenger": "gemini"}));
    });
}

// contract G4
#[test]
fn a_used_up_credit_hands_the_step_on_by_cli_and_over_acp() {
    hands_on_without_credit("claude", "");
    hands_on_without_credit("claude", settings("claude"));
    hands_on_without_credit("opencode", "");
    hands_on_without_credit("qwen", settings("qwen"));
}

/// A limit of a minute over ACP, as Anthropic reports it.
// contract G4
#[test]
fn a_passing_429_changes_nobody_over_acp() {
    for agent in ["claude", "opencode"] {
        let body = json!({"type": "error", "error": {
            "type": "rate_limit_error",
            "message": "This request would exceed your organization's rate limit of 30,000 input tokens \
                per minute (org: x). For details, refer to: https://docs.claude.com/en/api/rate-limits."}});
        let limited = refuses(Provider::Anthropic, 429, body).times(2);
        let script =
            Script::new().rule(limited).rule(calls("challenge", "append_review", approved()));
        Sandbox::enter_acp(plan(script, &["auth-flow"]), |sandbox| {
            sandbox.set_up(&format!(
                "[roles]\nplanner = [\"{agent}\", \"codex\"]\nchallenger = \"gemini\"\n\
                 [workflow]\nscript_retries = 5\nretry_delay_secs = 0\nself_review_iterations = 0\n{}",
                settings(agent)
            ));
            let ran = sandbox.plan(&["--auto", "--json"]);
            println!("{ran}");
            let ran = ran.exits(0);
            assert_eq!(lines_with(&ran.stderr, "takes over"), "");
            assert_eq!(ran.json()["agents"], json!({"planner": agent, "challenger": "gemini"}));
        });
    }
}
