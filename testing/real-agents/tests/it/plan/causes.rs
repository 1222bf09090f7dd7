//! P28, P22, lesson 2: why a document or a verdict is missing. A tool that was called and refused is
//! not one that was not called, and its reason is the cause. The kinds that a real CLI cannot be
//! brought to show on demand are in the tests of the engine's steps.

use std::fmt::Write as _;

use real_agents::models::{calls, planner, proposal, spec};
use real_agents::{CODEX_QUICK, Sandbox};
use scripted_models::{Reply, Rule, Script};
use serde_json::{Value, json};

const CLAUDE: &str =
    "[roles]\nplanner = \"claude\"\n[workflow]\nscript_retries = 0\nself_review_iterations = 0\n";
const GEMINI: &str = "[workflow]\nscript_retries = 0\nself_review_iterations = 0\n";
const PROPOSAL: [&str; 7] =
    ["proposal", "add-login", "Add a login", "--skip-clarify", "--git", "in-place", "--json"];

/// What an agent does, and a name for it.
type Case = (&'static str, Vec<(&'static str, Value)>);

/// A script in which the prompts of a step are answered by one case after the other.
fn in_turn(mut script: Script, step: &str, cases: &[Case]) -> Script {
    for (name, done) in cases {
        let rule = Rule::new().step(step).prompts(1);
        let rule = done
            .iter()
            .fold(rule, |rule, (tool, arguments)| rule.reply(Reply::call(tool, arguments.clone())));
        script = script.rule(rule.reply(Reply::text(format!("That was {name}."))));
    }
    script
}

/// Runs a command once for each case: the cause of each failure.
fn causes(sandbox: &Sandbox, command: &[&str], cases: &[Case]) -> String {
    let mut table = String::new();
    for (name, _) in cases {
        let error = sandbox.run(command).exits(1).json()["error"].clone();
        let cause = error["cause"].as_str().unwrap_or_default();
        writeln!(table, "{name}\n  {}", cause.replace('\n', "\n  ")).unwrap();
    }
    sandbox.mask(&table)
}

/// A proposal with one field set to something else, or left out.
fn but(field: &str, value: Value) -> Value {
    let mut arguments = proposal(&json!([]));
    match value {
        Value::Null => {
            arguments.as_object_mut().unwrap().remove(field);
        }
        value => arguments[field] = value,
    }
    arguments
}

#[test]
fn the_cause_of_a_missing_document_is_what_became_of_its_tool() {
    let mut banana = proposal(&json!([]));
    banana["impact"]["scope"] = json!("banana");
    let cases: Vec<Case> = vec![
        ("no tool", vec![]),
        (
            "reading only",
            vec![("list_directory", json!({"change_id": "${change}", "path": "agentd"}))],
        ),
        ("a field is missing", vec![("create_proposal", but("summary", Value::Null))]),
        ("a field is unknown", vec![("create_proposal", but("mood", json!("good")))]),
        ("a field has another type", vec![("create_proposal", but("what_changes", json!(5)))]),
        ("a value is unknown", vec![("create_proposal", banana)]),
        ("another change", vec![("create_proposal", but("change_id", json!("add-logout")))]),
        ("a path as the ID of a spec", vec![("create_proposal", proposal(&json!(["../x"])))]),
        ("a tool of another role", vec![("append_review", json!({"change_id": "${change}"}))]),
        ("no such tool", vec![("create_propsal", proposal(&json!([])))]),
        (
            "a tool of the CLI that is not offered",
            vec![("Write", json!({"file_path": "${cwd}/x", "content": "x"}))],
        ),
        (
            "a file that agents may not edit",
            vec![(
                "edit_file",
                json!({"change_id": "${change}", "path": "STATE.yaml", "old_string": "a", "new_string": "b"}),
            )],
        ),
        (
            "refused twice",
            vec![
                ("create_proposal", but("why", json!(""))),
                ("create_proposal", but("summary", json!(""))),
            ],
        ),
        ("another document", vec![("create_spec", spec("auth-flow"))]),
    ];
    let script = in_turn(Script::new(), "proposal-gen", &cases);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(CLAUDE);
        insta::assert_snapshot!(causes(sandbox, &PROPOSAL, &cases), @r#"
        no tool
          it called no tool; its last words were: That was no tool.
        reading only
          it called `list_directory`, and no tool that writes; its last words were: That was reading only.
        a field is missing
          `create_proposal` was refused: The arguments do not fit the tool. missing field `summary` Correct that field and call the tool again; nothing was written; its last words were: That was a field is missing.
        a field is unknown
          `create_proposal` was refused: The arguments do not fit the tool. `mood`: unknown field `mood`, expected one of `change_id`, `summary`, `why`, `what_changes`, `impact` Correct that field and call the tool again; nothing was written; its last words were: That was a field is unknown.
        a field has another type
          `create_proposal` was refused: The arguments do not fit the tool. `what_changes`: invalid type: integer `5`, expected a list of 1 to 100 items Correct that field and call the tool again; nothing was written; its last words were: That was a field has another type.
        a value is unknown
          `create_proposal` was refused: The arguments do not fit the tool. `impact.scope`: unknown variant `banana`, expected one of `patch`, `minor`, `major` Correct that field and call the tool again; nothing was written; its last words were: That was a value is unknown.
        another change
          `create_proposal` was refused: This server works on the change `add-login` and on no other, so not on `add-logout`. Call the tool with change_id "add-login"; its last words were: That was another change.
        a path as the ID of a spec
          `create_proposal` was refused: The arguments do not fit the tool. `impact.affected_specs[0]`: spec id `../x` has '.' at position 1; ids are lower-case letters, digits and `-`, and start with a letter or digit Correct that field and call the tool again; nothing was written; its last words were: That was a path as the ID of a spec.
        a tool of another role
          `append_review` was refused: Error: No such tool available: append_review; its last words were: That was a tool of another role.
        no such tool
          `create_propsal` was refused: Error: No such tool available: create_propsal; its last words were: That was no such tool.
        a tool of the CLI that is not offered
          `Write` was refused: Error: No such tool available: Write. Write exists but is not enabled in this context. Use one of the available tools instead; its last words were: That was a tool of the CLI that is not offered.
        a file that agents may not edit
          `edit_file` was refused: `STATE.yaml` is written by agentd itself and cannot be edited through a tool; its last words were: That was a file that agents may not edit.
        refused twice
          `create_proposal` was refused 2 times, most recently: The arguments do not fit the tool. `summary`: the text is empty Correct that field and call the tool again; nothing was written; its last words were: That was refused twice.
        another document
          it changed specs/auth-flow.md instead; its last words were: That was another document.
        "#);
        assert_eq!(sandbox.steps().len(), cases.len(), "no call was made twice");
    });
}

#[test]
fn the_cause_of_an_unknown_verdict_is_what_became_of_its_tool() {
    let review = |edit: fn(&mut Value)| {
        let mut arguments = real_agents::models::review("NEEDS_REVISION", &[("high", "No lock")]);
        edit(&mut arguments);
        arguments
    };
    let cases: Vec<Case> = vec![
        ("no tool", vec![]),
        (
            "reading only",
            vec![("read_file", json!({"change_id": "${change}", "path": "tasks.md"}))],
        ),
        ("an unknown verdict", vec![("append_review", review(|r| r["verdict"] = json!("MAYBE")))]),
        (
            "an unknown severity",
            vec![("append_review", review(|r| r["issues"][0]["severity"] = json!("fatal")))],
        ),
        (
            "no summary",
            vec![(
                "append_review",
                review(|r| {
                    r.as_object_mut().unwrap().remove("summary");
                }),
            )],
        ),
        (
            "approval with a HIGH issue",
            vec![("append_review", review(|r| r["verdict"] = json!("APPROVED")))],
        ),
        (
            "another change",
            vec![("append_review", review(|r| r["change_id"] = json!("add-logout")))],
        ),
        (
            "a file outside",
            vec![("read_file", json!({"change_id": "${change}", "path": "../../etc/passwd"}))],
        ),
    ];
    let script = in_turn(planner(&[]), "challenge", &cases);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(&format!("{CODEX_QUICK}script_retries = 0\n"));
        sandbox.run(PROPOSAL).exits(0);
        insta::assert_snapshot!(causes(sandbox, &["challenge", "--json"], &cases), @r#"
        no tool
          codex has given no verdict to `append_review`: it called no tool; its last words were: That was no tool.
        reading only
          codex has given no verdict to `append_review`: it called `read_file`, and no tool that writes; its last words were: That was reading only.
        an unknown verdict
          codex has given no verdict to `append_review`: `append_review` was refused: The arguments do not fit the tool. `verdict`: unknown variant `MAYBE`, expected one of `APPROVED`, `NEEDS_REVISION`, `REJECTED` Correct that field and call the tool again; nothing was written; its last words were: That was an unknown verdict.
        an unknown severity
          codex has given no verdict to `append_review`: `append_review` was refused: The arguments do not fit the tool. `issues[0].severity`: `fatal` is not a severity; it is high, medium or low Correct that field and call the tool again; nothing was written; its last words were: That was an unknown severity.
        no summary
          codex has given no verdict to `append_review`: `append_review` was refused: The arguments do not fit the tool. missing field `summary` Correct that field and call the tool again; nothing was written; its last words were: That was no summary.
        approval with a HIGH issue
          codex has given no verdict to `append_review`: `append_review` was refused: The verdict is APPROVED, but the severity of `No lock` is high. Say NEEDS_REVISION or REJECTED, or lower the severity if it does not stop the work; its last words were: That was approval with a HIGH issue.
        another change
          codex has given no verdict to `append_review`: `append_review` was refused: This server works on the change `add-login` and on no other, so not on `add-logout`. Call the tool with change_id "add-login"; its last words were: That was another change.
        a file outside
          codex has given no verdict to `append_review`: `read_file` was refused: The arguments do not fit the tool. `path`: path `../../etc/passwd` contains `..` Correct that field and call the tool again; nothing was written; its last words were: That was a file outside.
        "#);
        assert_eq!(sandbox.state().phase.name(), "proposed");
    });
}

#[test]
fn gemini_shows_the_cause_too() {
    let cases: Vec<Case> = vec![
        ("a field is missing", vec![("create_proposal", but("summary", Value::Null))]),
        ("no such tool", vec![("mcp_agentd_create_propsal", proposal(&json!([])))]),
    ];
    let script = in_turn(Script::new(), "proposal-gen", &cases);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(GEMINI);
        insta::assert_snapshot!(causes(sandbox, &PROPOSAL, &cases), @r#"
        a field is missing
          `create_proposal` was refused: params must have required property 'summary'; its last words were: That was a field is missing.
        no such tool
          `create_propsal` was refused: Tool "mcp_agentd_create_propsal" not found. Did you mean one of: "mcp_agentd_create_proposal", "mcp_agentd_create_spec", "mcp_agentd_create_tasks"?; its last words were: That was no such tool.
        "#);
    });
}

/// T8: the real CLI is ended while its model still works, as soon as its usage shows that the budget
/// is used up; what it has used is in the ledger.
#[test]
fn a_budget_ends_a_call_of_claude() {
    let look = json!({"change_id": "${change}", "path": "agentd"});
    let rule = Rule::new()
        .step("proposal-gen")
        .reply(Reply::call("list_directory", look))
        .reply(Reply::text("Done.").delay_ms(100_000));
    Sandbox::enter(Script::new().rule(rule), |sandbox| {
        sandbox.set_up(&format!("{CLAUDE}[budget]\nmax_tokens = 100\n"));
        insta::assert_snapshot!(sandbox.run(PROPOSAL), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "budget",
            "message": "`add-login` has used up its budget: 1001 tokens of 100 tokens",
            "cause": "the call of claude was ended when its usage showed it; what it had written stays",
            "hints": [
              "see where it went: agentd cost add-login",
              "raise the limits in [budget], or finish by hand: agentd/config.toml"
            ]
          }
        }
        --- stderr
        note: forecast: [FIGURES] (from built-in guesses)
        note: complexity: high (security (`login`))
        step_started: Proposal, claude
        step_failed: Proposal, `add-login` has used up its budget: 1001 tokens of 100 tokens
        "#);
        let state = sandbox.state();
        let [call] = &state.llm_calls[..] else { panic!("{:?}", state.llm_calls) };
        assert!(call.tokens_in >= 100 && call.duration_ms < 60_000, "{call:?}");
        assert_eq!(state.total_tokens_in, call.tokens_in);
        // Nothing more is begun.
        let error = sandbox.run(PROPOSAL).exits(1).json()["error"].clone();
        assert_eq!((&error["kind"], &error["cause"]), (&json!("budget"), &Value::Null));
        assert_eq!(sandbox.calls().len(), 1);
    });
}

/// An agent that repairs what was refused has done its step.
#[test]
fn a_refusal_that_was_repaired_is_no_cause() {
    let again = Rule::new()
        .step("proposal-gen")
        .reply(Reply::call("create_proposal", but("summary", Value::Null)))
        .reply(Reply::call("create_proposal", proposal(&json!([]))))
        .reply(Reply::text("Done."));
    let script = Script::new().rule(again).rule(calls(
        "tasks-gen",
        "create_tasks",
        real_agents::models::tasks(&[]),
    ));
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        sandbox.run(PROPOSAL).exits(0);
    });
}
