//! What `agentd init` installs, met by the real CLIs: what a person types becomes the
//! text of the workflow before the model sees it.

use std::fs;

use real_agents::{Cli, Finished, Sandbox};
use scripted_models::{ModelRequest, Reply, Rule, Script};

/// Sets a project up and gives the CLI what a person types; the requests of the model.
fn type_in(cli: Cli, typed: &str) -> (Finished, Vec<ModelRequest>) {
    let script = Script::new().rule(Rule::new().reply(Reply::text("I have read it.")));
    Sandbox::enter(script, |sandbox| {
        sandbox.run(["init", "--agents", "all"]).exits(0);
        // The server that is registered is `agentd` on PATH, which is not there.
        for name in [".mcp.json", ".gemini/settings.json"] {
            fs::remove_file(sandbox.root().join(name)).unwrap();
        }
        let run = sandbox.call(cli, typed).run();
        (run, sandbox.models().requests())
    })
}

/// The conversation and what stands before it.
fn seen(requests: &[ModelRequest]) -> String {
    let all = requests.iter().map(|request| {
        let messages: Vec<&str> = request.messages.iter().map(|m| m.text.as_str()).collect();
        format!("{}\n{}\n", request.system, messages.join("\n"))
    });
    all.collect()
}

#[test]
fn claude_expands_the_commands() {
    for (typed, part) in [
        ("/agentd:plan add-oauth Log in with Google", "agentd plan <id> \"<description>\""),
        ("/agentd:impl add-oauth", "agentd impl <id> --json"),
        ("/agentd:archive add-oauth", "agentd archive <id> --dry-run --json"),
        ("/agentd:revise add-oauth Sessions end", "agentd revise <id> \"<what is different>\""),
        ("/agentd:rename add-oauth add-login", "agentd rename <id> <new-id> --json"),
        ("/agentd:drop add-oauth We use SAML", "agentd drop <id> --note \"<why>\" --yes --json"),
    ] {
        let (run, requests) = type_in(Cli::Claude, typed);
        assert_eq!(run.exit_code, Some(0), "{run:?}");
        let seen = seen(&requests);
        let given = typed.split_once(' ').unwrap().1;
        assert!(seen.contains(&format!("Given by the user: {given}")), "{seen}");
        assert!(seen.contains(part) && seen.contains("AskUserQuestion"), "{seen}");
        assert!(!seen.contains("$ARGUMENTS") && !seen.contains("agentd wrote this file"), "{seen}");
    }
}

#[test]
fn gemini_expands_the_commands() {
    let (run, requests) = type_in(Cli::Gemini, "/agentd:plan add-oauth Log in with Google");
    let seen = seen(&requests);
    assert_eq!(run.exit_code, Some(0), "{run:?}");
    assert!(seen.contains("Given by the user: add-oauth Log in with Google"), "{run:?}\n{seen}");
    assert!(seen.contains("agentd clarify <id>"), "{seen}");
}

#[test]
fn codex_finds_the_skills() {
    let (run, requests) = type_in(Cli::Codex, "$agentd-plan add-oauth Log in with Google");
    let seen = seen(&requests);
    assert_eq!(run.exit_code, Some(0), "{run:?}");
    assert!(seen.contains("- agentd-impl: Implement an approved change"), "{run:?}\n{seen}");
    assert!(seen.contains("agentd clarify <id>"), "the named skill is read: {seen}");
}
