//! Sessions over ACP: each agent continues in the session of its plan.

use real_agents::Sandbox;
use real_agents::lines_with;
use real_agents::models::{approved, challenges, edit_proposal, planner, reproposals, review};

use super::{all_settings, surprises};

/// A reproposal continues in the session of the plan: the model sees what was said before.
// contract G1, RP2
fn resumes(planner_name: &str) {
    let found = [review("NEEDS_REVISION", &[("high", "No lock")]), approved()];
    let script = challenges(planner(&["auth-flow"]), &found);
    let edits = [edit_proposal("their own data", "their own data, locked")];
    Sandbox::enter_acp(reproposals(script, &edits), |sandbox| {
        sandbox.set_up(&format!(
            "[roles]\nplanner = \"{planner_name}\"\nchallenger = \"codex\"\n\
             [workflow]\nscript_retries = 0\nself_review_iterations = 0\n{}",
            all_settings(&[planner_name, "codex"])
        ));
        let ran = sandbox.plan(&["--auto"]);
        ran.exits(0);
        assert_eq!(surprises(sandbox), Vec::<String>::new());
        let state = sandbox.state();
        let steps = sandbox.steps();
        let at = steps.iter().position(|step| step == "reproposal").unwrap();
        assert_eq!(state.llm_calls[at].session_id, state.session_id, "{:#?}", state.llm_calls);
        let begun = state.llm_calls.iter().find(|call| call.session_id == state.session_id);
        let begun = begun.unwrap().step.to_string();
        assert_ne!(begun, "reproposal");
        let history = sandbox.history("reproposal");
        assert_ne!(lines_with(&history, &format!("agentd {begun} ")), "", "{history}");
        // The usage of the turn alone, not of the whole session.
        let one = state.llm_calls[0].tokens_in;
        assert!(state.llm_calls[at].tokens_in <= 3 * one, "{:#?}", state.llm_calls);
        sandbox.until_nothing_runs();
    });
}

#[test]
fn claude_resumes() {
    resumes("claude");
}

#[test]
fn opencode_resumes() {
    resumes("opencode");
}

#[test]
fn qwen_resumes() {
    resumes("qwen");
}

/// It only loads sessions, and not in the minute in which they began: agentd waits for the next.
#[test]
fn heavy_gemini_loads() {
    resumes("gemini");
}
