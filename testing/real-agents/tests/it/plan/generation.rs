//! Seeds PR, WF and E: proposal, specs and tasks, in their order, and their self-reviews.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use agentd_core::agent::AgentKind;
use agentd_core::provider::models::default_model;
use real_agents::{CHANGE, CODEX, CODEX_QUICK, Called, Cli, Sandbox};
use scripted_models::{Reply, Rule, Script};
use serde_json::json;

use real_agents::models::{
    approved, calls, calls_and_says, challenges, edit_proposal, passes, plan, planner, proposal,
    says, spec, tasks,
};

const PROPOSAL: [&str; 6] =
    ["proposal", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];

/// The arguments of a call without the path of its policy, which each call has its own of.
fn flags(call: &Called) -> Vec<String> {
    let policy = call.after("--policy").unwrap_or_default();
    call.args.iter().filter(|arg| *arg != policy).cloned().collect()
}

/// Has gemini note what each of its calls may do, before it is run: the text of its policy,
/// and the command line of its tool server.
fn note_permissions(sandbox: &Sandbox, file: &Path) {
    let (real, file) = (sandbox.path_of(Cli::Gemini), file.display());
    let script = format!(
        "for word; do [ \"$last\" = --policy ] && policy=$word; last=$word; done\n\
         {{ cat \"$policy\"; env | grep '^AGENTD_MCP_' | sort; printf '\\036'; }} >> '{file}'\n\
         exec {real} \"$@\""
    );
    sandbox.instead_of(Cli::Gemini, &script);
}

/// PR scenario "New proposal with specs", WF scenario "Sequential Generation with Metadata",
/// PR scenario "Self-review passes". PR1.1, PR1.2, PR2.4, PR5, PR6, PR7, PR9, E1.1, E1.3,
/// E1.5 – E1.8, E2.1, E2.3, E2.4, C1 – C5, C14, C22, P8, P11 – P13, P15, P26, P27; order and
/// flags are those that the shims saw.
#[test]
fn new_proposal_with_specs() {
    // The tag comes in pieces of five letters, with a line break before it; the last review
    // has none, and the prompt, which gemini echoes, has both. Whatever is not a PASS would
    // lead to a second round.
    let mut pieces = Reply::text("Fine.\n\n<review>PASS</review>\n");
    pieces.piece = 5;
    let script = Script::new()
        .rule(Rule::new().step("spec-review-auth-flow").reply(pieces))
        .rule(says("tasks-review", "I have looked at it."));
    Sandbox::enter(plan(script, &["auth-flow", "token-management"]), |sandbox| {
        sandbox.set_up("[workflow]\nself_review_iterations = 2\n");
        let noted = sandbox.root().join("agentd/.locks/permissions");
        note_permissions(sandbox, &noted);
        // Somebody is further down in the project.
        let below = sandbox.root().join("src/login");
        fs::create_dir_all(&below).unwrap();
        let ran = sandbox.finish(sandbox.command(PROPOSAL).current_dir(below)).exits(0);
        for text in ["Spec 1/2: auth-flow", "Spec 2/2: token-management"] {
            ran.says(text);
        }
        assert_eq!(ran.stderr.matches("Review 1: PASS").count(), 3, "{}", ran.stderr);
        ran.says("tasks-review ended without a review marker; it is taken as PASS");
        assert_eq!(ran.stderr.matches("without a review marker").count(), 1, "{}", ran.stderr);
        ran.says("Format validation passed");
        for file in ["specs/auth-flow.md", "specs/token-management.md", "GEMINI.md"] {
            assert!(sandbox.path(file).is_file(), "{file}");
        }
        assert!(sandbox.read("tasks.md").contains("change_id: add-login"));
        assert!(sandbox.read("proposal.md").contains("checksum: "));
        let steps = [
            "proposal-gen",
            "proposal-review",
            "spec-gen-auth-flow",
            "spec-review-auth-flow",
            "spec-gen-token-management",
            "spec-review-token-management",
            "tasks-gen",
            "tasks-review",
        ];
        assert_eq!(sandbox.steps(), steps);
        let state = sandbox.state();
        assert_eq!(state.phase.name(), "proposed");
        let model = default_model(AgentKind::Gemini, state.complexity.unwrap()).model;
        let sessions: BTreeSet<_> =
            state.llm_calls.iter().map(|call| call.session_id.clone().unwrap()).collect();
        assert_eq!(sessions.len(), steps.len(), "a fresh session for every phase");
        assert_eq!(state.session_id, state.llm_calls[0].session_id, "the one of proposal.md");
        for call in &state.llm_calls {
            assert!(call.tokens_in > 0 && call.tokens_out > 0 && call.cost > 0.0, "{call:?}");
            assert!(call.duration_ms > 0 && !call.model.is_empty(), "{call:?}");
            assert!(call.timestamp >= state.created_at, "{call:?}");
        }
        let sum: f64 = state.llm_calls.iter().map(|call| call.cost).sum();
        assert!((state.total_cost - sum).abs() < 1e-9);
        let sum: u64 = state.llm_calls.iter().map(|call| call.tokens_in).sum();
        assert_eq!(state.total_tokens_in, sum);
        let all = sandbox.calls();
        for call in &all {
            assert_eq!(call.program, "gemini");
            assert_eq!(call.cwd, sandbox.root(), "E2.4");
            assert!(!call.has("--resume") && !call.has("--list-sessions"), "{call:?}");
            // One model for all (C14), the one for so hard a change (PR5).
            assert_eq!(flags(call), flags(&all[0]));
            assert_eq!(call.after("-m"), model.as_deref());
        }
        // E1.5: reviews may do what generations may. The tool server gets the name of its
        // step, and has the tools of the role in all of these.
        let noted = fs::read_to_string(noted).unwrap();
        let noted = noted.split_terminator('\u{1e}').zip(steps);
        let may: BTreeSet<String> = noted.map(|(text, step)| text.replace(step, "…")).collect();
        assert_eq!(may.len(), 1, "{may:#?}");
        let may = may.first().unwrap();
        assert!(may.contains("mcpName = \"agentd\"") && may.contains("=planner\n"), "{may}");
        let read = sandbox.prompt("spec-gen-token-management");
        assert!(read.contains("proposal.md") && read.contains("specs/auth-flow.md"), "{read}");
        let review = sandbox.prompt("proposal-review");
        assert!(review.contains("<review>PASS</review>"));
        assert!(review.contains("<review>NEEDS_REVISION</review>"));
    });
}

/// PR scenario "Proposal without specs", PR4.2, and PR scenario "Change ID conflict", C18, PR6:
/// the second change of the name is the first free one, and nothing of the first is touched.
#[test]
fn proposal_without_specs_and_change_id_conflict() {
    Sandbox::enter(planner(&[]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        let first = sandbox.run(PROPOSAL).exits(0);
        first.says("No specs required for this change");
        assert_eq!(sandbox.steps(), ["proposal-gen", "tasks-gen"]);
        let before = (sandbox.read("proposal.md"), sandbox.read("STATE.yaml"));
        let second = sandbox.run([&PROPOSAL[..], &["--json"]].concat()).exits(0);
        assert_eq!(second.json()["change_id"], "add-login-1");
        assert_eq!(second.json()["action"], "proposed");
        assert!(second.stderr.contains("`add-login` exists already; this change is `add-login-1`"));
        assert_eq!(sandbox.state_of("add-login-1").phase.name(), "proposed");
        assert_eq!(before, (sandbox.read("proposal.md"), sandbox.read("STATE.yaml")));
    });
}

/// PR scenario "Self-review finds issues", E scenario "WHEN proposal generation completes THEN
/// self-review runs". E1.4, PR2.3, PR2.4, C1, C4
#[test]
fn self_review_finds_issues() {
    let edit = edit_proposal("come back to their own data", "come back safely");
    let words = "Not <review>PASS</review>. Fixed. <review>NEEDS_REVISION</review>";
    let fixed = calls_and_says("proposal-review", "edit_file", edit, words).prompts(1);
    let again = says("proposal-review", "NEEDS_REVISION\nsomething I cannot fix");
    let script = Script::new().rule(fixed).rule(again);
    Sandbox::enter(plan(script, &[]), |sandbox| {
        sandbox.set_up(&format!("{CODEX}self_review_iterations = 2\n"));
        let ran = sandbox.run(PROPOSAL).exits(0);
        ran.says("Review 1: NEEDS_REVISION (auto-fixed)");
        ran.says("Review 2: NEEDS_REVISION (nothing was changed)");
        ran.says("the planner still found something in review 2, the last one; going on");
        assert!(sandbox.read("proposal.md").contains("come back safely"), "the edit is kept");
        let steps =
            ["proposal-gen", "proposal-review", "proposal-review", "tasks-gen", "tasks-review"];
        assert_eq!(sandbox.steps(), steps, "the limit is a warning, and it goes on");
    });
}

/// PR scenario "Session ID capture fails", C5: what is written stays, and it is a failure.
#[test]
fn session_id_capture_fails() {
    Sandbox::enter(planner(&[]), |sandbox| {
        sandbox.set_up("[workflow]\nself_review_iterations = 0\n");
        let real = sandbox.path_of(Cli::Gemini);
        let script = format!("{real} \"$@\" | sed 's/\"session_id\":\"[^\"]*\",//'");
        sandbox.instead_of(Cli::Gemini, &script);
        let ran = sandbox.run([&PROPOSAL[..], &["--json"]].concat()).exits(1);
        ran.card("session_not_captured", "Failed to capture session ID");
        assert!(sandbox.path("proposal.md").is_file());
        assert_eq!(sandbox.steps(), ["proposal-gen"], "what it cost is known");
        assert_eq!(sandbox.state().session_id, None);
    });
}

/// C2, C3, C9, P25 (appendix A): one session writes all of it and reviews all of it. E scenario
/// "WHEN resuming session THEN explicit index is used".
#[test]
fn one_shot_generation_reviews_in_the_same_session() {
    let whole = Rule::new()
        .step("plan-gen")
        .reply(Reply::call("create_proposal", proposal(&json!(["auth-flow"]))))
        .reply(Reply::call("create_spec", spec("auth-flow")))
        .reply(Reply::call("create_tasks", tasks(&["auth-flow"])))
        .reply(Reply::text("All written."));
    let script = Script::new().rule(whole).rule(passes("plan-review"));
    Sandbox::enter(challenges(script, &[approved()]), |sandbox| {
        sandbox.set_up("[workflow]\ngeneration = \"one-shot\"\n");
        sandbox.plan(&["--auto"]).exits(0).says("Review 1: PASS");
        assert_eq!(sandbox.steps(), ["plan-gen", "plan-review", "challenge"]);
        let state = sandbox.state();
        assert_eq!(state.llm_calls[0].session_id, state.llm_calls[1].session_id);
        let calls = sandbox.calls();
        assert_eq!(sandbox.programs_called(), ["gemini", "gemini", "gemini", "codex"]);
        assert_eq!(calls[1].args, ["--list-sessions"]);
        assert_eq!(calls[2].after("--resume"), Some("1"), "{:?}", calls[2]);
        for file in ["proposal.md", "specs/auth-flow.md", "tasks.md"] {
            assert!(sandbox.path(file).is_file(), "{file}");
        }
    });
}

/// C16: dependencies first, ties as listed.
#[test]
fn specs_are_written_in_the_order_of_their_dependencies() {
    let specs = ["web", "store", "model"];
    let affected = json!([{"id": "web", "depends": ["store"]}, {"id": "store", "depends": ["model"]}, "model"]);
    let script = Script::new().rule(calls("proposal-gen", "create_proposal", proposal(&affected)));
    Sandbox::enter(plan(script, &specs), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        let ran = sandbox.run(PROPOSAL).exits(0);
        ran.says("Spec 1/3: model");
        ran.says("Spec 3/3: web");
        let steps =
            ["proposal-gen", "spec-gen-model", "spec-gen-store", "spec-gen-web", "tasks-gen"];
        assert_eq!(sandbox.steps(), steps);
        assert!(sandbox.prompt("spec-gen-web").contains("specs/store.md"));
    });
}

/// C16, C17, C19: a proposal by hand, without frontmatter; its specs are read from a section,
/// and a circle among them is an error before anybody is paid.
#[test]
fn a_proposal_by_hand_is_gone_on_with() {
    let text = "# Change: add-login\n\n## Summary\n\nAdd a login.\n\n## Why\n\nPeople want it.\n\n\
        ## What Changes\n\n- Add a login\n\n## Impact\n\n- Scope: minor\n\n\
        ## Affected Specs\n\n- `auth-flow`\n- n/a\n";
    Sandbox::enter(planner(&["auth-flow"]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        fs::create_dir_all(sandbox.path("")).unwrap();
        let circle = "affected_specs:\n  - id: a\n    depends: [b]\n  - id: b\n    depends: [a]\n";
        let head = format!("---\nid: add-login\ntype: proposal\n{circle}---\n");
        fs::write(sandbox.path("proposal.md"), format!("{head}{text}")).unwrap();
        let ran = sandbox.plan(&["--json"]).exits(1);
        let error = ran.card("spec_cycle", "the affected specs depend on each other");
        assert!(error["message"].as_str().unwrap().contains("a → b → a"), "{error:#}");
        assert_eq!(sandbox.calls().len(), 0);

        fs::write(sandbox.path("proposal.md"), text).unwrap();
        let challenged = sandbox.run(["plan"]);
        assert_eq!(sandbox.steps()[..2], ["spec-gen-auth-flow", "tasks-gen"], "{challenged:#?}");
        assert!(sandbox.read("proposal.md").contains("- `auth-flow`\n- n/a"), "it is as it was");
    });
}

/// WF scenario "Orchestration Robustness", WF8: a child that closes its input and dies is
/// reported as what it is, and the same command goes on. That what cannot be written is tried
/// again, `a_closed_input_is_reported` of the engine shows: a prompt fits into a pipe.
#[test]
fn an_agent_that_closes_its_input_is_reported() {
    Sandbox::enter(planner(&[]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        sandbox.instead_of(Cli::Codex, "exec 0<&-; echo 'write EPIPE: broken pipe' >&2; exit 1");
        let error =
            sandbox.run([&PROPOSAL[..], &["--json"]].concat()).exits(1).json()["error"].clone();
        assert_eq!(error["kind"], "agent_failed", "{error:#}");
        assert!(error["message"].as_str().unwrap().contains("broken pipe"), "{error:#}");
        let tries = sandbox.state().llm_calls.len();
        assert!(tries >= 1, "each try is in the ledger");
        sandbox.real(Cli::Codex);
        sandbox.plan(&[]);
        assert_eq!(sandbox.steps()[tries..tries + 2], ["proposal-gen", "tasks-gen"]);
    });
}
