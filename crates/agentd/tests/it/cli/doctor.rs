use serde_json::Value;

use test_project::TestProject;

fn check<'a>(json: &'a Value, name: &str) -> &'a Value {
    let checks = json["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {json:#}"))
}

#[test]
fn agents_are_found_with_their_versions() {
    let project = TestProject::new()
        .change("add-oauth")
        .program("gemini", "echo 0.9.1")
        .program("codex", "echo codex-cli 0.46.0; echo more")
        .program("claude", "echo '2.0.1 (Claude Code)'")
        .program("git", "echo git version 2.47.3");
    let run = project.run(["doctor"]).fine();
    let text = run.transcript().replace(&project.bin().display().to_string(), "[BIN]");
    // What it says of the sandbox depends on the system.
    let lines = text.lines().filter(|line| !line.contains("sandbox"));
    let text = lines.collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(text, @r"
    exit 0
    ✓ gemini   0.9.1 ([BIN]/gemini)
    ✓ codex    codex-cli 0.46.0 ([BIN]/codex)
    ✓ claude   2.0.1 (Claude Code) ([BIN]/claude)
    ✓ git      git version 2.47.3 ([BIN]/git)
    ✓ project  [ROOT]
    ✓ config   no agentd/config.toml; the defaults hold
    ✓ mcp      the server answers with 11 tools
    ✓ changes  1 open
    ✓ locks    nobody is at work
    --- stderr
    ");
    let json = project.run(["doctor", "--json"]).fine().json();
    assert_eq!(json["healthy"], true);
    assert_eq!(check(&json, "gemini")["status"], "ok");
    let sandbox = check(&json, "sandbox")["detail"].as_str().unwrap().to_owned();
    assert!(sandbox.contains("agents and tests write to the work tree"), "{sandbox}");
}

#[test]
fn a_sandbox_that_is_off_is_warned_of() {
    let config = "[sandbox]\nenabled = false\n";
    let project = TestProject::new().root_file("agentd/config.toml", config);
    let json = project.run(["doctor", "--json"]).json();
    assert_eq!(check(&json, "sandbox")["status"], "warning");
}

#[test]
fn missing_failing_and_hanging_agents_are_warned_of_within_the_limit() {
    let project = TestProject::new()
        .program("gemini", "exec /bin/sleep 600")
        .program("codex", "echo broken >&2; exit 3")
        .program("claude", "exec /bin/sleep 600 >&-");
    let json = project.run(["doctor", "--timeout", "1", "--json"]).fine().json();
    assert_eq!(json["healthy"], true, "agentd works without agents");
    let detail = |name: &str| {
        let check = check(&json, name);
        assert_eq!(check["status"], "warning");
        assert!(check["hint"].is_string());
        check["detail"].as_str().unwrap().to_owned()
    };
    for hanging in ["gemini", "claude"] {
        assert!(detail(hanging).ends_with("`--version` did not answer within 1 s"));
    }
    assert!(detail("codex").contains("`--version` failed: exit status: 3"));
    assert_eq!(detail("git"), "`git` is not on PATH");
}

#[test]
fn what_a_program_leaves_running_does_not_hold_the_doctor_up() {
    let project = TestProject::new().program("gemini", "/bin/sleep 5 & echo 0.9.1");
    let json = project.run(["doctor", "--json"]).fine().json();
    assert_eq!(check(&json, "gemini")["status"], "ok", "{json:#}");
}

#[test]
fn the_configured_command_is_asked() {
    let project = TestProject::new().program("my-gemini", "printf '1.0\\033[31m\\n'");
    let command = project.bin().join("my-gemini").display().to_string();
    let config = format!("[gemini]\ncommand = \"{command}\"\n[codex]\ncommand = \"/no/codex\"\n");
    let project = project.root_file("agentd/config.toml", config);
    project.run(["trust", "--yes"]).fine();
    let run = project.run(["doctor"]).exits(0);
    assert!(!run.stdout.contains('\u{1b}'), "{run:#?}");
    run.stdout_has(&format!("({command})")).stdout_has("`/no/codex` is not on PATH");
}

#[test]
fn a_broken_change_makes_the_project_unsound() {
    let project = TestProject::new().change("add-oauth").file("STATE.yaml", "phase: [");
    std::fs::create_dir(project.root().join("agentd/changes/Odd")).unwrap();
    let run = project.run(["doctor"]).exits(1);
    run.stdout_has("✗ state    cannot use the STATE.yaml of `add-oauth`")
        .stdout_has("hint: restore it: git checkout -- agentd/changes/add-oauth/STATE.yaml")
        .stdout_has("! changes  agentd/changes/Odd is not a change");
    assert_eq!(project.run(["doctor", "--json"]).exits(1).json()["healthy"], false);
}

#[test]
fn nothing_from_the_settings_can_steer_a_terminal() {
    let config = r#""\u001b[2Jgone" = 1"#;
    let project = TestProject::new().root_file("agentd/config.toml", config);
    for args in [vec!["doctor"], vec!["validate", "--all"], vec!["doctor", "--json"]] {
        let mut forced = project.command(&args);
        project.finish(forced.env("CLICOLOR_FORCE", "1")).exits(1).cannot_steer_a_terminal();
    }
}

#[test]
fn who_is_at_work_is_named() {
    let project = TestProject::new().change("add-oauth");
    let store = project.store();
    let holder = agentd_engine::store::Holder::this_process("agentd plan", jiff::Timestamp::now());
    let lock = store.try_run_lock(&project.id(), &holder).unwrap();
    let pid = std::process::id().to_string();
    project.run(["doctor"]).fine().stdout_has("✓ lock ").stdout_has(&pid).stdout_has("agentd plan");
    drop(lock);
    project.run(["doctor"]).fine().stdout_has("✓ locks    nobody is at work");
}

#[test]
fn outside_of_a_project_the_programs_are_still_looked_at() {
    let project = TestProject::empty().program("git", "echo git version 2.47.3");
    let run = project.run(["doctor"]).fine();
    run.stdout_has("✓ git").stdout_has("! project").stdout_has("hint: set one up in ");
}
