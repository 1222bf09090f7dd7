//! Each verdict in both modes, and what follows from it.

use std::collections::BTreeSet;

use agentd_core::step_name::StepName;
use real_agents::{CODEX, CODEX_QUICK, Cli, Sandbox};
use scripted_models::Script;
use serde_json::json;

use real_agents::models::{
    approved, calls, challenges, edit, edit_proposal, plan, planner, reproposals, review, says,
};

const QUICK: &str = "[workflow]\nself_review_iterations = 0\n";

/// C10, WF2, WF6, WF7, P21, P22, P23
#[test]
fn approved_is_challenged() {
    let script = challenges(planner(&["auth-flow"]), &[approved()]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(QUICK);
        let json = sandbox.plan(&["--json"]).exits(0).json();
        assert_eq!(json["action"], "challenged");
        assert_eq!(json["phase"], "challenged");
        assert_eq!(json["verdict"], "APPROVED");
        assert_eq!((&json["change_id"], &json["iteration"]), (&json!("add-login"), &json!(0)));
        assert_eq!(json["next"], json!(["agentd impl add-login"]));
        assert_eq!(json["issues"], json!({"high": 0, "medium": 0, "low": 0}));
        assert!(json["cost_usd"].as_f64().unwrap() > 0.0);
        let last = sandbox.calls().pop().unwrap();
        assert_eq!(last.program, "codex");
        assert!(sandbox.path("CHALLENGE.md").is_file() && sandbox.path("AGENTS.md").is_file());
        let review = sandbox.state().plan_review.unwrap();
        assert_eq!(review.planner_vendor.as_str(), "Google");
        assert_eq!(review.challenger_vendor.as_str(), "OpenAI");
        let calls = sandbox.calls().len();
        let again = sandbox.run(["plan", "--json"]).exits(0).json();
        assert_eq!(again["action"], "already_challenged");
        assert_eq!(again["next"], json!(["agentd impl add-login"]));
        assert_eq!(sandbox.calls().len(), calls, "nothing is paid twice");
    });
}

/// C10, P22, P23, P24: a person is waited for, and nobody is paid meanwhile; `decide` answers,
/// `plan` goes on. RP7, WF2, C8, C12
#[test]
fn needs_revision_waits_for_a_person() {
    let found = review("NEEDS_REVISION", &[("high", "No lock"), ("low", "Typo")]);
    let script = challenges(planner(&["auth-flow"]), &[found, approved()]);
    let script = reproposals(script, &[edit_proposal("their own data", "their own data, safely")]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        let ran = sandbox.plan(&[]).exits(0);
        ran.says("NEEDS_REVISION - Found 1 HIGH, 0 MEDIUM, 1 LOW severity issues");
        ran.says("No lock");
        ran.says("agentd reproposal add-login");
        ran.says("planner and challenger are both of OpenAI");
        assert_eq!(sandbox.state().phase.name(), "proposed");
        assert!(sandbox.read("CHALLENGE.md").contains("No lock"), "C8");
        let calls = sandbox.calls().len();
        let waiting = sandbox.run(["plan", "--json"]).exits(0).json();
        assert_eq!(waiting["action"], "waiting_for_decision");
        assert_eq!(waiting["verdict"], "NEEDS_REVISION");
        sandbox.run(["plan", "--exit-code"]).exits(1);
        sandbox.run(["decide", "accept"]).exits(1);
        assert_eq!(sandbox.calls().len(), calls);

        sandbox.run(["decide", "fix"]).exits(0);
        let json = sandbox.run(["plan", "--json"]).exits(0).json();
        assert_eq!(json["verdict"], "APPROVED");
        assert_eq!(json["phase"], "challenged");
        assert_eq!(json["iteration"], 1);
        let steps = ["reproposal", "challenge"];
        assert!(sandbox.steps().ends_with(&steps.map(str::to_owned)), "{:?}", sandbox.steps());
        assert_eq!(sandbox.proposal().reviews.len(), 2);
        let state = sandbox.state();
        let challenges = state.llm_calls.iter().filter(|call| call.step == StepName::Challenge);
        let sessions: BTreeSet<_> = challenges.map(|call| call.session_id.clone()).collect();
        assert_eq!(sessions.len(), 2, "C27: a fresh one for each");
    });
}

/// E3.3, WF2, WF6, P24; C20: a rejected plan is challenged again once it is another one, and in
/// automatic mode goes on from there.
#[test]
fn rejected_ends_at_once_until_the_plan_is_edited() {
    let no = review("REJECTED", &[("high", "The wrong thing")]);
    let almost = review("NEEDS_REVISION", &[("low", "Typo")]);
    let script = challenges(planner(&["auth-flow"]), &[no, almost, approved()]);
    let script = reproposals(script, &[edit_proposal("a better thing", "a still better thing")]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        let ran = sandbox.plan(&["--auto"]).exits(1);
        ran.says("REJECTED");
        ran.says("The wrong thing");
        assert_eq!(sandbox.runs("challenge"), 1, "E3.3");
        assert_eq!(sandbox.state().phase.name(), "rejected");
        let again = sandbox.run(["plan", "--json"]).exits(1).json();
        assert_eq!(again["action"], "rejected");
        sandbox.run(["challenge"]).exits(1).says("not changed since it was rejected");
        assert_eq!(sandbox.runs("challenge"), 1);

        sandbox.replace("proposal.md", "their own data", "a better thing");
        let json = sandbox.run(["plan", "--auto", "--json"]).exits(0).json();
        assert_eq!(json["verdict"], "APPROVED", "{json:#}");
        assert_eq!(sandbox.state().phase.name(), "challenged");
        assert_eq!((sandbox.runs("challenge"), sandbox.runs("reproposal")), (3, 1));
    });
}

/// C27: the challenger goes on in its thread. P25, C10, C12, E3.2
#[test]
fn automatic_mode_fixes_and_rechallenges_in_the_same_thread() {
    let found = review("NEEDS_REVISION", &[("high", "No lock"), ("medium", "No limit")]);
    let script = challenges(planner(&[]), &[found, approved()]);
    let script = reproposals(script, &[edit_proposal("their own data", "their own data, locked")]);
    Sandbox::enter(script, |sandbox| {
        let config = format!("{CODEX_QUICK}human_in_loop = false\nrechallenge = \"resume\"\n");
        sandbox.set_up(&config);
        let ran = sandbox.plan(&[]).exits(0);
        ran.says("Proposal updated based on challenge feedback");
        ran.says("issues fixed: I1, I2");
        let state = sandbox.state();
        let of = |step: &str| -> Vec<String> {
            let calls = state.llm_calls.iter().filter(|call| call.step.to_string() == step);
            calls.map(|call| call.session_id.clone().unwrap()).collect()
        };
        let challenges = of("challenge");
        assert_eq!(challenges[0], challenges[1]);
        assert_eq!(of("reproposal")[0], of("proposal-gen")[0]);
        // E2.3: codex is resumed by its id, and no list of gemini's is asked for.
        assert!(
            sandbox.programs_called().iter().all(|name| name == "codex"),
            "{:?}",
            sandbox.programs_called()
        );
        let last = sandbox.calls().pop().unwrap();
        assert_eq!(last.after("resume"), Some(&*challenges[0]), "{last:?}");
        // Tokens of a thread are a running total in codex: each call is counted for itself.
        assert!(state.llm_calls.iter().all(|call| call.tokens_in <= 3000), "{state:#?}");
    });
}

/// C11, C12, E3.2, E3.5, E scenario "WHEN validation fails after max iterations THEN exit
/// non-zero": the limit of rounds is the end, and what remains is said.
#[test]
fn the_limit_of_rounds_is_a_failure() {
    let high = review("NEEDS_REVISION", &[("high", "No lock"), ("medium", "No limit")]);
    let fewer = review("NEEDS_REVISION", &[("high", "No lock")]);
    let script = challenges(planner(&[]), &[high, fewer]);
    let edits = [
        edit_proposal("their own data", "what is theirs"),
        edit_proposal("what is theirs", "their data"),
    ];
    Sandbox::enter(reproposals(script, &edits), |sandbox| {
        sandbox.set_up(&format!("{CODEX_QUICK}planning_iterations = 1\n"));
        let ran = sandbox.plan(&["--auto"]).exits(1);
        ran.says("the plan still needs revision after 1 rounds");
        ran.says("No lock");
        assert_eq!(sandbox.state().phase.name(), "proposed");
        let json = sandbox.run(["plan", "--auto", "--json"]).exits(1).json();
        assert_eq!(json["action"], "still_needs_revision");
        assert_eq!(json["issues"], json!({"high": 1, "medium": 0, "low": 0}));
        assert_eq!((sandbox.runs("challenge"), sandbox.runs("reproposal")), (2, 1));
    });
}

/// C11: minor issues are accepted where the project says so, and only minor ones; rounds that
/// settle nothing stop early (issue 5).
#[test]
fn rounds_without_progress_stop_and_minor_issues_may_be_accepted() {
    let same = review("NEEDS_REVISION", &[("medium", "No limit"), ("low", "Typo")]);
    let script = challenges(planner(&[]), &[same]);
    let edits = [
        edit_proposal("their own data", "what is theirs"),
        edit_proposal("what is theirs", "their data"),
    ];
    Sandbox::enter(reproposals(script, &edits), |sandbox| {
        sandbox.set_up(&format!("{CODEX_QUICK}planning_iterations = 5\n"));
        let ran = sandbox.plan(&["--auto"]).exits(1);
        ran.says("settled none of the issues");
        assert_eq!((sandbox.runs("challenge"), sandbox.runs("reproposal")), (2, 1));

        let config = sandbox.root().join("agentd/config.toml");
        std::fs::write(config, format!("{CODEX_QUICK}accept_minor = true\n")).unwrap();
        let json = sandbox.run(["plan", "--auto", "--json"]).exits(0).json();
        assert_eq!(json["action"], "accepted_minor");
        assert_eq!(json["phase"], "challenged");
        let decision = sandbox.state().decisions.pop().unwrap();
        assert_eq!(decision.by.as_str(), "agentd");
        assert_eq!(sandbox.runs("challenge"), 2, "nobody is asked again");
    });
}

/// P22, P28 card 4: a verdict in prose is no verdict; it is Unknown and blocks.
#[test]
fn a_verdict_in_prose_is_unknown_and_blocks() {
    let words = "Verdict: APPROVED. <review>PASS</review>";
    let script = Script::new().rule(says("challenge", words).prompts(1));
    Sandbox::enter(challenges(plan(script, &[]), &[approved()]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        let ran = sandbox.plan(&["--auto", "--json"]).exits(1);
        let error = ran.card("verdict_unknown", "it is Unknown");
        let cause = error["cause"].as_str().unwrap();
        assert!(cause.contains("append_review") && cause.contains("APPROVED"), "{error:#}");
        assert_eq!(error["hints"][0], "ask again: agentd challenge add-login");
        assert_eq!(sandbox.state().phase.name(), "proposed");
        assert!(sandbox.state().plan_review.is_none());
        assert_eq!(sandbox.steps().last().unwrap(), "challenge", "it is paid for");
        let json = sandbox.run(["challenge", "--json"]).exits(0).json();
        assert_eq!(json["verdict"], "APPROVED");
    });
}

/// Independence is an error where the project asks for it, before anybody is paid to look.
#[test]
fn an_independent_review_can_be_required() {
    Sandbox::enter(challenges(planner(&[]), &[approved()]), |sandbox| {
        let config = format!("{CODEX_QUICK}require_independent_review = true\n");
        sandbox.set_up(&config);
        sandbox.plan(&["--json"]).card("not_independent", "both from OpenAI");
        assert_eq!(sandbox.runs("challenge"), 0);
        assert_eq!(sandbox.state().phase.name(), "proposed");
    });
}

/// A budget ends a plan before the call that would exceed it, and nothing is lost.
#[test]
fn a_budget_stops_before_the_next_call() {
    Sandbox::enter(challenges(planner(&[]), &[approved()]), |sandbox| {
        let config = format!("{CODEX_QUICK}[budget]\nmax_tokens = 1000\n");
        sandbox.set_up(&config);
        let error = sandbox.plan(&["--json"]).exits(1).json()["error"].clone();
        assert_eq!(error["kind"], "budget");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("`add-login` has used up its budget"), "{error:#}");
        assert_eq!(sandbox.steps(), ["proposal-gen"]);
        std::fs::write(sandbox.root().join("agentd/config.toml"), CODEX_QUICK).unwrap();
        sandbox.run(["plan"]).exits(0);
        assert_eq!(sandbox.steps(), ["proposal-gen", "tasks-gen", "challenge"]);
    });
}

/// P18 – P20: with a person, an invalid plan ends with what is wrong and no repair. P25, E3.1,
/// E3.5, P28 card 3: without one the planner fixes it, up to the limit.
#[test]
fn an_invalid_plan_is_shown_or_fixed() {
    let whole = "## Why\n\nPeople want to come back to their own data.";
    let broken = "## Wherefore\n\nPeople want to come back to their own data.";
    let useless = says("format-fix", "I see nothing.").prompts(2);
    let script = Script::new().rule(useless).rule(calls(
        "format-fix",
        "edit_file",
        edit("proposal.md", broken, whole),
    ));
    Sandbox::enter(challenges(plan(script, &[]), &[approved()]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        // Somebody edits the proposal while the tasks are written.
        let proposal = sandbox.path("proposal.md");
        let damage = format!(
            "[ $step = tasks-gen ] && sed -i 's/^## Why$/## Wherefore/' '{}'",
            proposal.display()
        );
        sandbox.after(Cli::Codex, &damage);
        let ran = sandbox.plan(&[]).exits(1);
        ran.says("Format validation failed: 1 HIGH");
        ran.says("Why");
        assert_eq!(sandbox.runs("format-fix"), 0, "P20");
        assert_eq!(sandbox.runs("challenge"), 0);

        let ran = sandbox.run(["plan", "--auto", "--json"]);
        let error =
            ran.card("format_invalid", "Format validation still failing after 2 iterations");
        assert!(error["cause"].as_str().unwrap().contains("1 HIGH"), "{error:#}");
        assert_eq!(error["hints"][1], "check them: agentd validate add-login");
        assert_eq!((sandbox.runs("format-fix"), sandbox.runs("challenge")), (2, 0));

        let json = sandbox.run(["plan", "--auto", "--json"]).exits(0).json();
        assert_eq!(json["verdict"], "APPROVED");
        assert_eq!(sandbox.runs("format-fix"), 3);
        let resumed = sandbox.calls().into_iter().filter(|call| call.has("resume")).count();
        assert_eq!(resumed, 3, "repairs go on in the planner's session");
    });
}

/// P28 card 5: tasks that wait for each other.
#[test]
fn a_circle_of_tasks_is_an_error_card() {
    Sandbox::enter(planner(&[]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        let args = ["proposal", "add-login", "Add a login", "--skip-clarify", "--git", "in-place"];
        sandbox.run(args).exits(0);
        let task = |number: u32, depends: u32| {
            format!(
                "### Task 2.{number}: Do it\n\n```yaml\nid: \"2.{number}\"\naction: CREATE\n\
                 file: src/{number}.rs\ndepends_on: [\"2.{depends}\"]\nstatus: pending\n```\n\nWrite it.\n\n"
            )
        };
        let text =
            format!("# Tasks: add-login\n\n## 2. Logic Layer\n\n{}{}", task(1, 2), task(2, 1));
        std::fs::write(sandbox.path("tasks.md"), text).unwrap();
        let error = sandbox.run(["challenge", "--json"]).card("format_invalid", "not valid");
        let cause = error["cause"].as_str().unwrap();
        assert!(cause.contains("Circular dependency detected"), "{error:#}");
        assert!(cause.contains("2.1 → 2.2 → 2.1"), "{error:#}");
        assert_eq!(sandbox.runs("challenge"), 0);
    });
}

/// P28 card 1: the tools cannot be reached, and nobody calls it a success.
#[test]
fn a_tool_server_that_does_not_start_is_an_error_card() {
    Sandbox::enter(planner(&[]), |sandbox| {
        let config = format!("{CODEX}self_review_iterations = 0\nscript_retries = 0\n");
        sandbox.set_up(&config);
        // The shim points the CLI to a server that ends at once.
        let real = sandbox.path_of(Cli::Codex);
        let script = format!(
            "for a; do shift; case \"$a\" in mcp_servers.agentd=*) a='mcp_servers.agentd={{command=\"false\",required=true}}';; esac; set -- \"$@\" \"$a\"; done\nexec {real} \"$@\""
        );
        sandbox.instead_of(Cli::Codex, &script);
        let error = sandbox.plan(&["--json"]).card("mcp_unavailable", "");
        assert!(error["hints"][0].as_str().unwrap().contains("agentd doctor"), "{error:#}");
        assert!(!sandbox.path("proposal.md").exists());
    });
}
