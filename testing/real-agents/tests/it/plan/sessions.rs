//! Seeds E and RP: going on in a session, and every way in which it cannot be found.

use std::fs;

use agentd_core::agent::{AgentKind, Complexity};
use agentd_core::step_name::StepName;

use agentd_core::provider::models::default_model;
use real_agents::{Cli, Sandbox};
use serde_json::json;

use real_agents::models::{challenges, edit, edit_proposal, planner, reproposals, review};

const QUICK: &str = "[workflow]\nself_review_iterations = 0\nscript_retries = 0\n";

/// RP scenarios "Successful reproposal", "Session ID not found", "Session index lookup fails",
/// "Multiple issues fixed", "Spec file needs update"; E scenarios "WHEN resuming session THEN
/// explicit index is used" and "WHEN session UUID not found THEN command exits with error".
/// RP1 – RP7, E2.2, E2.4, E2.5, E2.7 – E2.9, C6, C14, C28, P28 card 2.
#[test]
#[expect(clippy::too_many_lines, reason = "one session of the slow CLI serves all of it")]
fn a_reproposal_goes_on_by_index_and_never_guesses() {
    let issues = [("high", "No lock"), ("high", "No limit"), ("high", "No log")];
    let later = review("NEEDS_REVISION", &[("medium", "No help")]);
    let found = [review("NEEDS_REVISION", &issues), later];
    let script = challenges(planner(&["auth-flow"]), &found);
    let mut script =
        reproposals(script, &[edit_proposal("their own data", "their own data, locked")]);
    // Two files in one reproposal.
    let rule = script.rules.last_mut().unwrap();
    let read = scripted_models::Reply::call(
        "read_file",
        json!({"change_id": "${change}", "path": "specs/auth-flow.md"}),
    );
    let spec = edit("specs/auth-flow.md", "within 2 s", "within 1 s");
    rule.replies.insert(1, scripted_models::Reply::call("edit_file", spec));
    rule.replies.insert(1, read);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(QUICK);
        sandbox.plan(&[]).exits(0);
        let state = sandbox.state();
        let session = state.session_id.clone().unwrap();
        let plan = sandbox.read("proposal.md");
        let calls = sandbox.calls().len();
        let real = sandbox.path_of(Cli::Gemini);

        // The session was begun in an earlier minute, as all are in life: a resume then leaves a
        // stub of the session beside it, and the clean-up of the CLI would delete both.
        let chats = sandbox.home().join(".gemini/tmp/project/chats");
        for file in fs::read_dir(&chats).unwrap().flatten().map(|entry| entry.path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let (_, id) = name.rsplit_once('-').unwrap();
            fs::rename(&file, chats.join(format!("session-2026-01-01T00-00-{id}"))).unwrap();
        }

        // Each way in which the list can be wrong: the words, what it prints, and what of that
        // is shown.
        let not_found = "Session not found, please re-run proposal";
        let header = "Available sessions for this project (1):";
        let other = "  1. [not this] (Just now) [00000000-0000-4000-8000-000000000000]";
        let wrong = [
            ("session_not_found", not_found, format!("echo '{header}'; echo '{other}'"), ""),
            ("session_not_found", not_found, "echo 'No previous sessions found.'".to_owned(), ""),
            (
                "session_list_failed",
                "exit code 41",
                "echo 'half a list'; echo 'no key' >&2; exit 41".to_owned(),
                "no key\nhalf a list",
            ),
            (
                "session_list_unparseable",
                "Failed to parse session list",
                "echo soon".to_owned(),
                "soon",
            ),
            (
                "session_list_unparseable",
                "Failed to parse session list",
                format!("echo '{header}'; echo '  1. no id'"),
                "  1. no id",
            ),
        ];
        for (kind, message, list, shown) in wrong {
            sandbox.instead_of(
                Cli::Gemini,
                &format!(
                    "[ \"$1\" = --list-sessions ] && {{ {list}; exit 0; }}\nexec {real} \"$@\""
                ),
            );
            let error = sandbox.run(["reproposal", "--json"]).card(kind, message);
            assert!(error["cause"].as_str().unwrap().contains(shown), "{error:#}");
        }
        let timeout = format!("{QUICK}[gemini]\ntimeout_secs = 1\n");
        fs::write(sandbox.root().join("agentd/config.toml"), timeout).unwrap();
        sandbox.instead_of(Cli::Gemini, "echo patience >&2; exec sleep 30");
        let error =
            sandbox.run(["reproposal", "--json"]).card("session_list_timed_out", "too long");
        assert!(error["cause"].as_str().unwrap().contains("patience"), "{error:#}");
        fs::write(sandbox.root().join("agentd/config.toml"), QUICK).unwrap();

        let tried: Vec<_> = sandbox.calls().split_off(calls);
        assert_eq!(tried.len(), 6, "nothing is resumed, and nothing falls back to `latest`");
        assert!(tried.iter().all(|call| call.args == ["--list-sessions"]));
        assert!(tried.iter().all(|call| call.cwd == sandbox.root()));
        assert_eq!(sandbox.read("proposal.md"), plan);
        assert_eq!(sandbox.state().llm_calls, state.llm_calls);

        // The session that answers is another one.
        let swap =
            format!("sed 's/\"session_id\":\"{session}\"/\"session_id\":\"{session}-not\"/'");
        let script =
            format!("[ \"$1\" = --list-sessions ] && exec {real} \"$@\"\n{real} \"$@\" | {swap}");
        sandbox.instead_of(Cli::Gemini, &script);
        let error = sandbox.run(["reproposal", "--json"]).exits(1).json()["error"].clone();
        assert!(error.to_string().contains(&format!("{session}-not")), "{error:#}");
        assert_eq!(sandbox.state().phase.name(), "proposed");
        assert_eq!(sandbox.state().iteration, 0, "it does not count");
        fs::write(sandbox.path("proposal.md"), &plan).unwrap();
        sandbox.replace("specs/auth-flow.md", "within 1 s", "within 2 s");

        // And now as it should be, also where documents are reviewed by their planner. The shim
        // keeps the context that the CLI finds.
        fs::write(sandbox.root().join("agentd/config.toml"), "[workflow]\nscript_retries = 0\n")
            .unwrap();
        let found = sandbox.root().join("agentd/.locks/context");
        let keep = format!(
            "[ \"$1\" = --list-sessions ] || cp '{}' '{}'\nexec {real} \"$@\"",
            sandbox.path("GEMINI.md").display(),
            found.display()
        );
        sandbox.instead_of(Cli::Gemini, &keep);
        fs::write(sandbox.path("GEMINI.md"), "old").unwrap();
        let paid = sandbox.state().llm_calls.len();
        let calls = sandbox.calls().len();
        let ran = sandbox.run(["reproposal"]).exits(0);
        for text in [
            "Proposal updated based on challenge feedback",
            "fixed: proposal.md",
            "fixed: specs/auth-flow.md",
        ] {
            ran.says(text);
        }
        let calls = sandbox.calls().split_off(calls);
        assert_eq!(calls.len(), 2, "one list and one resume, with nothing between: {calls:?}");
        assert_eq!(calls[0].args, ["--list-sessions"]);
        let index: u32 = calls[1].after("--resume").unwrap().parse().unwrap();
        assert!(index >= 1);
        assert_eq!(calls[1].after("-m"), sandbox.calls()[0].after("-m"), "RP5");
        let prompt = sandbox.prompt("reproposal");
        for (_, title) in issues {
            for part in [
                format!(" HIGH: {title}\n  where: proposal.md\n"),
                format!("  what: {title} goes wrong.\n  do: Fix {title}.\n"),
            ] {
                assert!(prompt.contains(&part), "{part:?} is not in {prompt}");
            }
        }
        assert!(sandbox.read("specs/auth-flow.md").contains("within 1 s"), "RP3");
        let context = fs::read_to_string(&found).unwrap();
        assert!(context.starts_with("# Context: add-login\n"), "RP4: {context}");
        let after = sandbox.state();
        let [revision] = &after.llm_calls[paid..] else { panic!("{:#?}", after.llm_calls) };
        assert_eq!(
            (&revision.step, &revision.session_id),
            (&StepName::Reproposal, &state.session_id)
        );
        assert!(revision.tokens_in > 0 && revision.cost > 0.0, "RP6: {revision:?}");
        assert_eq!(after.phase.name(), "proposed");
        assert_eq!(after.last_action, Some(StepName::Reproposal.into()));
        assert_eq!(after.session_id, state.session_id);
        assert_eq!(after.iteration, 1);
        assert!(!sandbox.steps().iter().any(|step| step.ends_with("-review")), "RP7");
        assert!(
            sandbox.history("reproposal").contains("agentd proposal-gen"),
            "it has its history"
        );

        // It is repeatable; the latest review counts, and the complexity that is stored (C14).
        sandbox.replace("proposal.md", "their own data, locked", "their own data");
        sandbox.replace("specs/auth-flow.md", "within 1 s", "within 2 s");
        sandbox.run(["challenge"]).exits(0).says("No help");
        let stored = format!("complexity: {}", after.complexity.unwrap().name());
        sandbox.replace("STATE.yaml", &stored, "complexity: low");
        sandbox.run(["reproposal"]).exits(0);
        assert_eq!(sandbox.state().iteration, 2);
        let prompt = sandbox.prompt("reproposal");
        assert!(
            prompt.contains("MEDIUM: No help") && !prompt.contains("HIGH: No lock"),
            "{prompt}"
        );
        let model = default_model(AgentKind::Gemini, Complexity::Low).model;
        assert_ne!(calls[1].after("-m"), model.as_deref());
        assert_eq!(sandbox.calls().pop().unwrap().after("-m"), model.as_deref());

        // Nothing was stored.
        let yaml = sandbox.read("STATE.yaml").replace(&session, "").replace("session_id: ''", "");
        let yaml: String = yaml
            .lines()
            .filter(|line| !line.starts_with("session_id:"))
            .map(|line| format!("{line}\n"))
            .collect();
        fs::write(sandbox.path("STATE.yaml"), yaml).unwrap();
        sandbox
            .run(["reproposal", "--json"])
            .card("session_not_captured", "Failed to capture session ID");
    });
}

/// C6: the id itself, where the project wants that; no list is asked for.
#[test]
fn gemini_resumes_by_uuid_where_it_is_told_to() {
    let found = review("NEEDS_REVISION", &[("high", "No lock")]);
    let script = challenges(planner(&[]), &[found]);
    let script = reproposals(script, &[edit_proposal("their own data", "their own data, locked")]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(&format!("{QUICK}[gemini]\nresume = \"uuid\"\n"));
        sandbox.plan(&[]).exits(0);
        sandbox.run(["reproposal", "--json"]).exits(0);
        let session = sandbox.state().session_id.unwrap();
        let last = sandbox.calls().pop().unwrap();
        assert_eq!(last.after("--resume"), Some(&*session));
        assert!(!sandbox.calls().iter().any(|call| call.has("--list-sessions")));
        assert!(sandbox.read("proposal.md").contains("their own data, locked"));
    });
}
