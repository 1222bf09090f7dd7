//! Calls of tools, through a real MCP server.

use real_agents::{Cli, Profile, Sandbox};
use scripted_models::{Reply, Rule, Script};
use serde_json::json;

use super::{for_every_cli, notes, work};

for_every_cli!(
    calls_a_tool,
    reports_a_failed_tool_to_the_model,
    writes_and_runs_in_the_project,
    only_reads_unless_allowed,
    a_tool_that_is_not_offered_is_a_surprise,
);

const PROMPT: &str = "agentd plan add-login\n\nWrite the note.";

fn write_note() -> Script {
    let note = json!({"name": "plan", "text": "# Plan for ${change} in \"${cwd}\"\n"});
    Script::new().rule(
        Rule::new()
            .step("plan")
            .reply(Reply::call("write_note", note).saying("I will write the note."))
            .reply(Reply::text("<review>PASS</review>")),
    )
}

fn check_note(cli: Cli, model: Option<&str>) {
    Sandbox::enter(write_note(), |sandbox| {
        let mut call = sandbox.call(cli, PROMPT).mcp(&notes(sandbox));
        if let Some(model) = model {
            call = call.model(model);
        }
        let run = call.run();
        assert!(run.is_success(), "{run:#?}");
        assert_eq!(run.final_text(), "<review>PASS</review>");
        assert_eq!(sandbox.models().surprises(), Vec::<String>::new());

        let note = std::fs::read_to_string(sandbox.base().join("notes/plan.md")).unwrap();
        let project = sandbox.root();
        assert_eq!(note, format!("# Plan for add-login in \"{}\"\n", project.display()));

        let requests = sandbox.models().requests();
        assert_eq!(requests.len(), 2, "{requests:#?}");
        assert_eq!((requests[0].round, requests[1].round), (0, 1));
        assert_eq!(requests[1].prompt, requests[0].prompt);
        let results = &requests[1].tool_results;
        assert!(results[0].contains("bytes to plan.md"), "{results:?}");
    });
}

fn calls_a_tool(cli: Cli) {
    check_note(cli, None);
}

/// By default codex has the model write JavaScript; these are its other ways.
#[test]
fn codex_calls_a_deferred_tool() {
    check_note(Cli::Codex, Some("gpt-5.5"));
}

#[test]
fn codex_calls_a_function() {
    check_note(Cli::Codex, Some("scripted-model"));
}

fn reports_a_failed_tool_to_the_model(cli: Cli) {
    let rule = Rule::new().reply(Reply::call("fail", json!({}))).reply(Reply::text("A pity."));
    Sandbox::enter(Script::new().rule(rule), |sandbox| {
        let run = sandbox.call(cli, PROMPT).mcp(&notes(sandbox)).run();
        assert!(run.is_success(), "{run:#?}");
        assert_eq!(run.final_text(), "A pity.");
        let requests = sandbox.models().requests();
        let results = &requests[1].tool_results;
        assert!(results[0].contains("this tool always fails"), "{results:?}");
    });
}

fn a_tool_that_is_not_offered_is_a_surprise(cli: Cli) {
    Sandbox::enter(write_note(), |sandbox| {
        sandbox.call(cli, PROMPT).run();
        assert_eq!(sandbox.models().surprises(), ["not offered: write_note"]);
    });
}

fn writes_and_runs_in_the_project(cli: Cli) {
    Sandbox::enter(work(cli), |sandbox| {
        let run = sandbox.call(cli, PROMPT).profile(Profile::Writer).run();
        assert!(run.is_success(), "{run:#?}");
        assert_eq!(run.final_text(), "Done.");
        assert_eq!(sandbox.models().surprises(), Vec::<String>::new());
        for name in ["hello.txt", "copy.txt"] {
            let text = std::fs::read_to_string(sandbox.root().join(name));
            assert_eq!(text.unwrap_or_default().trim(), "hello", "{name}: {run:#?}");
        }
    });
}

fn only_reads_unless_allowed(cli: Cli) {
    Sandbox::enter(work(cli), |sandbox| {
        let run = sandbox.call(cli, PROMPT).run();
        assert_eq!(run.final_text(), "Done.", "{run:#?}");
        assert_eq!(sandbox.models().requests().len(), 3, "it should have tried twice: {run:#?}");
        for name in ["hello.txt", "copy.txt"] {
            assert!(!sandbox.root().join(name).exists(), "{name}: {run:#?}");
        }
    });
}
