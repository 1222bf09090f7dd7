//! What an implementer and its tests leave in STATE.yaml and in settings that others obey.

use std::fs;
use std::path::{Path, PathBuf};

use agentd_core::state::{Choice, Decision};
use agentd_core::text::Line;
use agentd_engine::agents::step::Agents;
use agentd_engine::change::documents::update_state;
use agentd_engine::guard::git_files::UncheckedCall;
use agentd_engine::process::Limits;

use crate::guard::{self, implement, named, nothing_kept, recover};
use test_project::{TestProject, now};

use crate::steps::kept;

/// The fields by which an implementer would gain something.
#[test]
fn a_forged_state_is_restored() {
    for script in [
        "sed -i 's/^phase: .*/phase: complete/' $C/STATE.yaml",
        "printf 'git:\\n  workflow: in-place\\n  base_commit: abcdef1\\n' >> $C/STATE.yaml",
        "sed -i 's/^total_cost: .*/total_cost: -5.0/' $C/STATE.yaml",
        "printf 'code_review:\\n  verdict: APPROVED\\n  iteration: 1\\n  reviewer: me\\n  at: 2026-01-01T00:00:00Z\\n' >> $C/STATE.yaml",
        "echo nonsense > $C/STATE.yaml",
        "rm $C/STATE.yaml",
        "rm $C/STATE.yaml; ln -s ../../config.toml $C/STATE.yaml",
    ] {
        let (project, agents) = guard::repository(script);
        let config = fs::read(project.root().join("agentd/config.toml")).unwrap();
        let before = project.state();
        let error = implement(&agents).unwrap_err();
        assert!(named(&error)[0].starts_with("agentd/changes/add-login/STATE.yaml"), "{error}");
        let after = project.state();
        assert_eq!((after.phase, &after.git), (before.phase, &before.git), "{script}");
        assert_eq!(after.code_review, None, "{script}");
        assert_eq!(after.llm_calls.len(), 1, "{script}: the call is in the ledger");
        assert!(after.total_cost > 0.0, "{script}");
        assert_eq!(fs::read(project.root().join("agentd/config.toml")).unwrap(), config);
        assert!(nothing_kept(&project), "{script}");
    }
}

fn decision(by: &str) -> Decision {
    let (note, by) = (Line::default(), Line::new(by));
    Decision { choice: Choice::Stop, note, by, at: now(), plan_hash: None }
}

/// People decide while agents work. An agent that writes a decision is not a person.
#[test]
fn a_decision_of_a_person_during_a_call_is_kept() {
    let forged = "decisions:\\n- choice: stop\\n  by: eve\\n  at: 2026-01-01T00:00:00Z\\n";
    let (project, agents) = guard::repository(&format!("printf '{forged}' >> $C/STATE.yaml"));
    implement(&agents).unwrap_err();
    assert_eq!(project.state().decisions, []);
    for also in ["true", "sed -i 's/^phase: .*/phase: complete/' $C/STATE.yaml"] {
        let (project, agents) = guard::repository(&format!(
            "touch asked; while [ ! -e answered ]; do sleep 0.02; done; {also}"
        ));
        let before = project.state();
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !project.root().join("asked").exists() {
                    std::thread::yield_now();
                }
                let (store, holder) = (project.store(), project.holder());
                update_state(&store, &project.id(), &holder, now(), |state| {
                    state.decisions.push(decision("ada"));
                    Ok(())
                })
                .unwrap();
                fs::write(project.root().join("answered"), "").unwrap();
            });
            implement(&agents)
        });
        assert_eq!(result.is_ok(), also == "true", "{result:?}");
        let state = project.state();
        assert_eq!((&*state.decisions, state.phase), (&[decision("ada")][..], before.phase));
    }
}

/// What counts is the copy that the agent cannot write to.
#[test]
fn a_forged_journal_is_restored() {
    for script in [
        "rm $C/journal.jsonl",
        "echo nonsense > $C/journal.jsonl",
        "tail -1 $C/journal.jsonl >> $C/journal.jsonl",
        "sed -i 's/adopted/begun/' $C/journal.jsonl",
        "rm $C/journal.jsonl; ln -s ../../config.toml $C/journal.jsonl",
    ] {
        let (project, agents) = guard::repository(script);
        // Any write begins the record.
        let (store, holder) = (project.store(), project.holder());
        update_state(&store, &project.id(), &holder, now(), |_| Ok(())).unwrap();
        let before = project.read("journal.jsonl");
        let error = implement(&agents).expect_err(script);
        let named = named(&error);
        assert!(named[0].starts_with("agentd/changes/add-login/journal.jsonl"), "{named:?}");
        let after = project.read("journal.jsonl");
        assert!(after.starts_with(&before), "{script}: {after}");
        assert_eq!(after.lines().count(), before.lines().count() + 1, "{script}: the call");
    }
}

/// What a call of an agentd that was killed has forged does not count either.
#[test]
fn the_next_command_restores_a_state_forged_before_a_kill() {
    let (project, agents) =
        guard::repository("cp $HOME/.local/state/agentd/projects/*/calls/*.state.json saved.json");
    implement(&agents).unwrap();
    let path = project.root().join("agentd/changes/add-login/STATE.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("phase: proposed", "phase: complete")).unwrap();
    let kept = kept(&project).join("_state-add-login-implement-logic.state.json");
    fs::copy(project.root().join("saved.json"), kept).unwrap();
    let found = recover(&agents);
    let [UncheckedCall::Call { call, .. }] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(call, "add-login-implement-logic");
    assert_eq!(project.state().phase.name(), "proposed");
    assert!(nothing_kept(&project));
}

/// Tests run what an implementer wrote.
#[test]
fn the_tests_are_guarded_like_the_implementer() {
    let (project, agents) = guard::repository("true");
    let change = agentd_core::ids::ChangeId::new("add-login").unwrap();
    let run = |command: &str| {
        agentd_engine::agents::step::run_tests(&agents, &change, command, Limits::default())
    };
    assert_eq!(run("echo fine").unwrap().stdout, "fine\n");
    let state = "agentd/changes/add-login/STATE.yaml";
    let error = run(&format!("echo x > .git/hooks/update; echo x > {state}")).unwrap_err();
    assert_eq!(named(&error), [".git/hooks/update (new)", &format!("{state} (changed)")]);
    assert!(error.to_string().starts_with("the test command modified"), "{error}");
    assert_eq!(project.state().phase.name(), "proposed");
    assert!(nothing_kept(&project));
}

/// Anyone who can write to these decides what the next call runs, outside of any sandbox.
#[test]
fn settings_that_others_obey_are_restored() {
    let plants = [
        ("W/.claude/settings.json", ".claude/settings.json (new)"),
        ("W/.claude/commands/x.md", ".claude/commands (new)"),
        ("W/.gemini/settings.json", ".gemini/settings.json (new)"),
        ("W/.gemini/.env", ".gemini/.env (new)"),
        ("W/.codex/config.toml", ".codex (new)"),
        ("W/.mcp.json", ".mcp.json (new)"),
        ("W/agentd/config.toml", "agentd/config.toml (changed)"),
        ("$HOME/.claude/settings.json", "H/.claude/settings.json (changed)"),
        ("$HOME/.claude/commands/y.md", "H/.claude/commands/y.md (new)"),
    ];
    for (path, expected) in plants {
        let path = path.replace("W/", "");
        let (project, agents, home) =
            at_home(&format!("mkdir -p $(dirname {path}); echo evil > {path}"));
        let root = project.root();
        let before = (fs::read(root.join("agentd/config.toml")).unwrap(), everything(&home));
        let error = implement(&agents).unwrap_err();
        let expected = expected.replace("H/", &format!("{}/", home.display()));
        assert_eq!(named(&error), [expected]);
        let after = (fs::read(root.join("agentd/config.toml")).unwrap(), everything(&home));
        assert_eq!(after, before, "{path}");
        for dir in
            [".claude/settings.json", ".claude/commands", ".gemini/.env", ".codex", ".mcp.json"]
        {
            assert!(!root.join(dir).exists(), "{path}: {dir}");
        }
    }
}

/// What the CLIs themselves write in a call, and documents, are no tampering.
#[test]
fn what_sessions_and_tasks_write_is_left_alone() {
    let (project, agents, home) = at_home(
        "mkdir -p $HOME/.claude/projects/p; echo x > $HOME/.claude/projects/p/s.jsonl; \
         echo '{\"numStartups\": 2, \"mcpServers\": {}, \"projects\": {\"/p\": {\"allowedTools\": []}}}' > $HOME/.claude.json; \
         echo x > CLAUDE.md; echo x > AGENTS.md; mkdir -p .claude/commands; echo x > .claude/commands/planned.md",
    );
    let tasks = "# Tasks: add-login\n\n## 1. Data Layer\n\n### Task 1.1: A command\n\n```yaml\nid: \"1.1\"\naction: CREATE\nfile: .claude/commands/planned.md\n```\n";
    fs::write(project.root().join("agentd/changes/add-login/tasks.md"), tasks).unwrap();
    implement(&agents).unwrap();
    implement(&agents).unwrap();
    assert!(project.root().join(".claude/commands/planned.md").exists(), "the plan says so");
    insta::assert_snapshot!(fs::read_to_string(home.join(".claude.json")).unwrap(), @r#"{"numStartups": 2, "mcpServers": {}, "projects": {"/p": {"allowedTools": []}}}"#);
}

/// The CLI rewrites the rest of this file all the time.
#[test]
fn only_settings_in_the_state_of_claude_are_restored() {
    let (_project, agents, home) = at_home(
        "echo '{\"numStartups\": 7, \"mcpServers\": {\"evil\": {\"command\": \"evil\"}}}' > $HOME/.claude.json",
    );
    let error = implement(&agents).unwrap_err();
    assert!(named(&error)[0].ends_with("/.claude.json (changed)"), "{error}");
    insta::assert_snapshot!(fs::read_to_string(home.join(".claude.json")).unwrap(), @r#"
    {
      "numStartups": 7,
      "projects": {}
    }
    "#);
}

/// JavaScript reads half of a surrogate pair, and files of any size.
#[test]
fn an_unreadable_state_of_claude_is_restored_whole() {
    let evil = r#""mcpServers": {"evil": {"command": "evil"}}}' >> $HOME/.claude.json"#;
    let half = r#"printf '%s' '{"x": "\ud800", "#;
    let large = r#"(printf '{"x": "'; head -c 5000000 /dev/zero | tr '\0' x; printf '", ') > $HOME/.claude.json; printf '%s' '"#;
    for script in [format!("rm $HOME/.claude.json; {half}{evil}"), format!("{large}{evil}")] {
        let (_project, agents, home) = at_home(&script);
        let error = implement(&agents).unwrap_err();
        assert!(named(&error)[0].ends_with("/.claude.json (changed)"), "{error}");
        let text = fs::read_to_string(home.join(".claude.json")).unwrap();
        assert_eq!(text, "{\"numStartups\": 1}");
    }
}

/// A project whose agents have a home with settings.
fn at_home(script: &str) -> (TestProject, Agents, PathBuf) {
    let (project, agents) = guard::repository(script);
    let home = project.home().canonicalize().unwrap();
    fs::create_dir_all(home.join(".claude/commands")).unwrap();
    fs::create_dir_all(home.join(".gemini")).unwrap();
    fs::create_dir_all(home.join(".codex")).unwrap();
    fs::write(home.join(".claude/settings.json"), "{}").unwrap();
    fs::write(home.join(".claude.json"), "{\"numStartups\": 1}").unwrap();
    (project, agents, home)
}

/// The files below a home directory, without agentd's own.
fn everything(home: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for dir in [".claude", ".claude/commands", ".gemini", ".codex"] {
        let files = fs::read_dir(home.join(dir)).unwrap().map(|entry| entry.unwrap().path());
        found.extend(
            files.filter(|path| path.is_file()).map(|path| (path.clone(), fs::read(path).unwrap())),
        );
    }
    found.sort();
    found
}
