//! Seeds PR, WF and E: proposal, specs and tasks, in their order, and their self-reviews.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use agentd_core::agent::AgentKind;
use agentd_core::provider::models::default_model;
use real_agents::{CHANGE, CODEX, CODEX_QUICK, Called, Cli, Sandbox, lines_with, paragraph};
use scripted_models::{Reply, Rule, Script};
use serde_json::json;
use test_project::agentd;

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
        // The current directory is further down in the project.
        let below = sandbox.root().join("src/login");
        fs::create_dir_all(&below).unwrap();
        let ran = sandbox.finish(sandbox.command(PROPOSAL).current_dir(below)).exits(0);
        insta::assert_snapshot!(ran.without_usage(), @"
        exit 0
        ✓ add-login: the plan is written
        cost so far: $[COST]

        Next: agentd challenge add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (gemini)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        Proposal, review: started (gemini)
        Proposal, review: done, [DURATION], [USAGE], Review 1: PASS
        Spec 1/2: auth-flow: started (gemini)
        Spec 1/2: auth-flow: done, [DURATION], [USAGE], specs/auth-flow.md is written
        Spec 1/2: auth-flow, review: started (gemini)
        Spec 1/2: auth-flow, review: done, [DURATION], [USAGE], Review 1: PASS
        Spec 2/2: token-management: started (gemini)
        Spec 2/2: token-management: done, [DURATION], [USAGE], specs/token-management.md is written
        Spec 2/2: token-management, review: started (gemini)
        Spec 2/2: token-management, review: done, [DURATION], [USAGE], Review 1: PASS
        Tasks: started (gemini)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Tasks, review: started (gemini)
        Tasks, review: done, [DURATION], [USAGE], Review 1: no marker, taken as PASS
        warning: tasks-review ended without a review marker; it is taken as PASS
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        ");
        for file in ["specs/auth-flow.md", "specs/token-management.md", "GEMINI.md"] {
            assert!(sandbox.path(file).is_file(), "{file}");
        }
        assert_eq!(lines_with(&sandbox.read("tasks.md"), "change_id:"), "change_id: add-login");
        let checksum = lines_with(&sandbox.read("proposal.md"), "checksum: ");
        insta::assert_snapshot!(sandbox.mask(checksum), @"checksum: sha256:[DIGEST]");
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
        let may = sandbox.mask(may.replace(agentd().to_str().unwrap(), "agentd"));
        // The name of the project's directory has a hash of where the project is.
        let (before, after) = may.split_once("/projects/").unwrap();
        let (_, after) = after.split_once('/').unwrap();
        insta::assert_snapshot!(format!("{before}/projects/…/{after}"), @r#"
        # Written by agentd for one call.
        [[rule]]
        toolName = "*"
        decision = "deny"
        priority = 980

        [[rule]]
        toolName = ["glob", "grep_search", "list_directory", "read_file", "read_many_files"]
        decision = "allow"
        priority = 990

        [[rule]]
        toolName = "*"
        mcpName = "agentd"
        decision = "allow"
        priority = 990
        AGENTD_MCP_ARG_10=--receipt
        AGENTD_MCP_ARG_11=[HOME]/.local/state/agentd/projects/…/receipts/planner/add-login
        AGENTD_MCP_ARG_1=-C
        AGENTD_MCP_ARG_2=[ROOT]
        AGENTD_MCP_ARG_3=mcp
        AGENTD_MCP_ARG_4=--change
        AGENTD_MCP_ARG_5=add-login
        AGENTD_MCP_ARG_6=--role
        AGENTD_MCP_ARG_7=planner
        AGENTD_MCP_ARG_8=--step
        AGENTD_MCP_ARG_9=…
        AGENTD_MCP_COMMAND=agentd
        "#);
        insta::assert_snapshot!(lines_with(&sandbox.prompt("spec-gen-token-management"), ".md"), @"
        - agentd/changes/add-login/proposal.md
        - agentd/changes/add-login/GEMINI.md, the context of this project
        - agentd/changes/add-login/specs/auth-flow.md, written before this one; do not contradict it
        ");
        insta::assert_snapshot!(lines_with(&sandbox.prompt("proposal-review"), "<review>"), @"
        <review>NEEDS_REVISION</review>
        <review>PASS</review>
        ");
    });
}

/// PR scenario "Proposal without specs", PR4.2, and PR scenario "Change ID conflict", C18, PR6:
/// the second change of the name is the first free one, and nothing of the first is touched.
#[test]
fn proposal_without_specs_and_change_id_conflict() {
    Sandbox::enter(planner(&[]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        insta::assert_snapshot!(sandbox.run(PROPOSAL).without_usage(), @"
        exit 0
        ✓ add-login: the plan is written
        cost so far: $[COST]

        Next: agentd challenge add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (codex)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        No specs required for this change
        Tasks: started (codex)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        ");
        assert_eq!(sandbox.steps(), ["proposal-gen", "tasks-gen"]);
        let before = (sandbox.read("proposal.md"), sandbox.read("STATE.yaml"));
        let second = sandbox.run([&PROPOSAL[..], &["--json"]].concat());
        insta::assert_snapshot!(second.without_usage(), @r#"
        exit 0
        {
          "version": 1,
          "action": "proposed",
          "change_id": "add-login-1",
          "phase": "proposed",
          "verdict": null,
          "iteration": 0,
          "issues": {
            "high": 0,
            "medium": 0,
            "low": 0
          },
          "previous": [],
          "cost_usd": [COST],
          "agents": {
            "planner": "codex"
          },
          "next": [
            "agentd challenge add-login-1"
          ]
        }
        --- stderr
        note: `add-login` exists already; this change is `add-login-1`
        note: forecast: [FIGURES] (from calls of unfinished changes, and built-in guesses)
        note: complexity: high (security (`login`))
        step_started: Proposal, codex
        step_done: Proposal, proposal.md is written
        note: No specs required for this change
        step_started: Tasks, codex
        step_done: Tasks, tasks.md is written
        note: Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        "#);
        assert_eq!(sandbox.state_of("add-login-1").phase.name(), "proposed");
        assert_eq!(before, (sandbox.read("proposal.md"), sandbox.read("STATE.yaml")));
    });
}

/// C31, F13: a proposal that failed is continued by the same command, and nothing is paid for
/// twice; another description is another change.
#[test]
fn a_failed_proposal_is_continued() {
    Sandbox::enter(planner(&[]), |sandbox| {
        sandbox.set_up(&format!("{CODEX_QUICK}script_retries = 0\n"));
        let real = sandbox.path_of(Cli::Codex);
        let fails = |step: &str| {
            format!(
                "prompt=$(cat)\ncase \"$prompt\" in \"agentd {step} \"*) echo boom >&2; exit 7;; esac\n\
                 printf '%s' \"$prompt\" | {real} \"$@\""
            )
        };
        sandbox.instead_of(Cli::Codex, &fails("proposal-gen"));
        sandbox.run(PROPOSAL).exits(1);
        sandbox.instead_of(Cli::Codex, &fails("tasks-gen"));
        sandbox.run(PROPOSAL).exits(1);
        assert_eq!(sandbox.steps(), ["proposal-gen", "proposal-gen", "tasks-gen"]);
        sandbox.real(Cli::Codex);
        let mut other = PROPOSAL.map(str::to_owned).to_vec();
        other[2] = "Something else".to_owned();
        let other = sandbox.run(other.iter().map(String::as_str).chain(["--json"])).exits(0).json();
        assert_eq!(other["change_id"], "add-login-1");
        let again = sandbox.run([&PROPOSAL[..], &["--json"]].concat()).exits(0).json();
        assert_eq!(again["change_id"], "add-login");
        assert_eq!(sandbox.steps(), ["proposal-gen", "proposal-gen", "tasks-gen", "tasks-gen"]);
        let third = sandbox.run([&PROPOSAL[..], &["--json"]].concat()).exits(0).json();
        assert_eq!(third["change_id"], "add-login-2", "a plan that is whole is left alone");
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
        insta::assert_snapshot!(sandbox.run(PROPOSAL).without_usage(), @"
        exit 0
        ✓ add-login: the plan is written
        cost so far: $[COST]

        Next: agentd challenge add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (codex)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        Proposal, review: started (codex)
        Proposal, review: done, [DURATION], [USAGE], Review 1: NEEDS_REVISION (auto-fixed)
        Proposal, review: started (codex)
        Proposal, review: done, [DURATION], [USAGE], Review 2: NEEDS_REVISION (nothing was changed)
        warning: proposal-review asked for a revision and changed nothing
        warning: proposal.md: the planner still found something in review 2, the last one; continuing
        No specs required for this change
        Tasks: started (codex)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Tasks, review: started (codex)
        Tasks, review: done, [DURATION], [USAGE], Review 1: PASS
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        ");
        // The edit is kept.
        insta::assert_snapshot!(lines_with(&sandbox.read("proposal.md"), "come back"), @"People want to come back safely.");
        let steps =
            ["proposal-gen", "proposal-review", "proposal-review", "tasks-gen", "tasks-review"];
        assert_eq!(sandbox.steps(), steps, "the limit is a warning, and the plan continues");
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
        let ran = sandbox.run([&PROPOSAL[..], &["--json"]].concat());
        insta::assert_snapshot!(ran.without_usage(), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "session_not_captured",
            "message": "Failed to capture session ID",
            "cause": "the planner reported no session; what it has written stays",
            "hints": [
              "continue without it: agentd plan add-login"
            ]
          }
        }
        --- stderr
        note: forecast: [FIGURES] (from built-in guesses)
        note: complexity: high (security (`login`))
        step_started: Proposal, gemini
        step_done: Proposal, proposal.md is written
        "#);
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
        insta::assert_snapshot!(sandbox.plan(&["--auto"]).without_usage(), @"
        exit 0
        ✓ APPROVED - Ready for implementation!
        cost so far: $[COST]

        Next: agentd impl add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Plan: started (gemini)
        Plan: done, [DURATION], [USAGE], proposal.md is written
        Plan, review: started (gemini, resumed)
        Plan, review: done, [DURATION], [USAGE], Review 1: PASS
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        Challenge: started (codex)
        Challenge: done, [DURATION], [USAGE], APPROVED - Ready for implementation!
        ");
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
        insta::assert_snapshot!(sandbox.run(PROPOSAL).without_usage(), @"
        exit 0
        ✓ add-login: the plan is written
        cost so far: $[COST]

        Next: agentd challenge add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (codex)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        Spec 1/3: model: started (codex)
        Spec 1/3: model: done, [DURATION], [USAGE], specs/model.md is written
        Spec 2/3: store: started (codex)
        Spec 2/3: store: done, [DURATION], [USAGE], specs/store.md is written
        Spec 3/3: web: started (codex)
        Spec 3/3: web: done, [DURATION], [USAGE], specs/web.md is written
        Tasks: started (codex)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        ");
        let steps =
            ["proposal-gen", "spec-gen-model", "spec-gen-store", "spec-gen-web", "tasks-gen"];
        assert_eq!(sandbox.steps(), steps);
        insta::assert_snapshot!(lines_with(&sandbox.prompt("spec-gen-web"), "specs/"), @"
        - agentd/changes/add-login/specs/model.md, written before this one; do not contradict it
        - agentd/changes/add-login/specs/store.md, written before this one; do not contradict it
        ");
    });
}

/// C16, C17, C19: a proposal by hand, without frontmatter; its specs are read from a section,
/// and a cycle among them is an error before any agent is called.
#[test]
fn a_proposal_written_by_hand_is_continued() {
    let text = "# Change: add-login\n\n## Summary\n\nAdd a login.\n\n## Why\n\nPeople want it.\n\n\
        ## What Changes\n\n- Add a login\n\n## Impact\n\n- Scope: minor\n\n\
        ## Affected Specs\n\n- `auth-flow`\n- n/a\n";
    Sandbox::enter(planner(&["auth-flow"]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        fs::create_dir_all(sandbox.path("")).unwrap();
        let circle = "affected_specs:\n  - id: a\n    depends: [b]\n  - id: b\n    depends: [a]\n";
        let head = format!("---\nid: add-login\ntype: proposal\n{circle}---\n");
        fs::write(sandbox.path("proposal.md"), format!("{head}{text}")).unwrap();
        insta::assert_snapshot!(sandbox.plan(&["--json"]), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "spec_cycle",
            "message": "the affected specs depend on each other: a → b → a",
            "cause": "there is no order in which they could be written",
            "hints": [
              "remove a `depends` from affected_specs: proposal.md"
            ]
          }
        }
        --- stderr
        note: forecast: [FIGURES] (from built-in guesses)
        "#);
        assert_eq!(sandbox.calls().len(), 0);

        fs::write(sandbox.path("proposal.md"), text).unwrap();
        let challenged = sandbox.run(["plan"]);
        assert_eq!(sandbox.steps()[..2], ["spec-gen-auth-flow", "tasks-gen"], "{challenged:#?}");
        assert_eq!(
            paragraph(&sandbox.read("proposal.md"), "- `auth-flow`"),
            "- `auth-flow`\n- n/a"
        );
    });
}

/// WF8, F15: an agent that closes its input and ends without a word is called again, and reported
/// with a cause and a hint; the same command then continues.
#[test]
fn an_agent_that_closes_its_input_is_reported() {
    Sandbox::enter(planner(&[]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        sandbox.instead_of(Cli::Codex, "exec 0<&-; exit 3");
        let ran = sandbox.run([&PROPOSAL[..], &["--json"]].concat());
        insta::assert_snapshot!(ran.without_usage(), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "agent_failed",
            "message": "codex failed: the agent exited with code 3 before it had read its prompt",
            "cause": "it closed its input, or ended, without reading what it was given",
            "hints": [
              "start the agent by hand in this project, and check that it works"
            ],
            "agent": "codex",
            "failure": "stdin_closed",
            "retry_after_ms": null
          }
        }
        --- stderr
        note: forecast: [FIGURES] (from built-in guesses)
        note: complexity: high (security (`login`))
        step_started: Proposal, codex
        step_failed: Proposal, codex failed: the agent exited with code 3 before it had read its prompt
        "#);
        assert_eq!(sandbox.steps(), ["proposal-gen"; 3], "each try is in the ledger");
        // Once only: nobody notices.
        let once = sandbox.root().join("agentd/.locks/once");
        let real = sandbox.path_of(Cli::Codex);
        let script = format!(
            "[ -e '{0}' ] || {{ : > '{0}'; exec 0<&-; exit 3; }}\nexec {real} \"$@\"",
            once.display()
        );
        sandbox.instead_of(Cli::Codex, &script);
        sandbox.run(PROPOSAL).exits(0);
        assert_eq!(sandbox.steps()[3..], ["proposal-gen", "proposal-gen", "tasks-gen"]);
    });
}

/// PR9, F14: settings of Gemini CLI as people write them, with comments and trailing commas, work
/// and come back to the byte; what is no JSON at all is named, with what to do about it.
#[test]
fn settings_of_gemini_may_have_comments() {
    Sandbox::enter(planner(&[]), |sandbox| {
        sandbox.set_up("[workflow]\nself_review_iterations = 0\nscript_retries = 0\n");
        let file = ".gemini/settings.json";
        let settings = "// ours\r\n{ /* keep */ \"ui\": {\"theme\": \"x\",},\n\t\"context\": {\"fileName\": [\"AGENTS.md\",]}, }\n\n";
        sandbox.write_root(file, settings);
        sandbox.run(PROPOSAL).exits(0);
        assert_eq!(sandbox.read_root(file), settings);
        sandbox.write_root(file, "{ \"ui\": ");
        let mut other = PROPOSAL.to_vec();
        other[1] = "add-logout";
        other.push("--json");
        let error = sandbox.run(other).exits(1).json()["error"].clone();
        insta::assert_snapshot!(sandbox.mask(format!("{error:#}")), @r#"
        {
          "kind": "run",
          "message": "[ROOT]/.gemini/settings.json is not a JSON object, so agentd cannot add its MCP server to it",
          "cause": null,
          "hints": [
            "correct it; comments and trailing commas are fine: [ROOT]/.gemini/settings.json"
          ]
        }
        "#);
        assert_eq!(sandbox.read_root(file), "{ \"ui\": ");
    });
}
