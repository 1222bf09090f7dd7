//! Every agent that speaks ACP, in the roles of a plan.

use agentd_core::agent::AgentKind;
use real_agents::models::{approved, calls, plan};
use real_agents::{Sandbox, lines_with};
use scripted_models::Script;

use super::{all_settings, surprises};

/// A plan with two specs, written and challenged over ACP. Every call is in the ledger, with its
/// agent, its model and its usage, and in a run file that `agentd log` can read again.
// contract G1, G2
fn plans(planner: &str, challenger: &str) {
    let script = Script::new().rule(calls("challenge", "append_review", approved()));
    Sandbox::enter_acp(plan(script, &["auth-flow", "sessions"]), |sandbox| {
        sandbox.set_up(&format!(
            "[roles]\nplanner = \"{planner}\"\nchallenger = \"{challenger}\"\n\
             [workflow]\nscript_retries = 0\n{}",
            all_settings(&[planner, challenger])
        ));
        let ran = sandbox.plan(&["--auto"]);
        let ran = ran.exits(0);
        assert_ne!(lines_with(&ran.stdout, "APPROVED"), "");
        assert_eq!(surprises(sandbox), Vec::<String>::new());
        let state = sandbox.state();
        assert_eq!(state.llm_calls.len(), 9, "{:#?}", state.llm_calls);
        for call in &state.llm_calls {
            let player = if call.step.to_string() == "challenge" { challenger } else { planner };
            assert_eq!(call.agent.map(|agent| agent.to_string()).as_deref(), Some(player));
            assert!(
                call.tokens_in > 0 && call.tokens_out > 0 && !call.model.is_empty(),
                "{call:?}"
            );
            assert!(call.session_id.is_some() && call.failure.is_none(), "{call:?}");
        }
        assert_eq!(state.llm_calls[0].agent, planner.parse::<AgentKind>().ok());
        // A proposal is written by a session of its own, as by the CLIs.
        assert_ne!(state.llm_calls[0].session_id, state.llm_calls[8].session_id);
        // Nothing of an agent is left, in the processes or in the project.
        sandbox.until_nothing_runs();
        for dir in [".gemini", ".qwen", ".claude", ".opencode", ".codex"] {
            assert!(!sandbox.root().join(dir).exists(), "{dir}");
        }
    });
}

#[test]
fn gemini_plans_and_codex_challenges() {
    plans("gemini", "codex");
}

#[test]
fn opencode_plans_and_claude_challenges() {
    plans("opencode", "claude");
}

#[test]
fn qwen_plans_and_gemini_challenges() {
    plans("qwen", "gemini");
}
