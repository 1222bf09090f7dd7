use serde_json::Value;

use test_project::{Output, TestProject, mask};

fn check<'a>(json: &'a Value, name: &str) -> &'a Value {
    let checks = json["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {json:#}"))
}

/// What is reported, except about the sandbox: that depends on the system.
fn without_sandbox(run: &Output) -> String {
    let text = run.transcript();
    let lines = text.lines().filter(|line| !line.contains("sandbox"));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn doctor_finds_agents_and_versions() {
    let project = TestProject::new()
        .change("add-oauth")
        .program("gemini", "echo 0.9.1")
        .program("codex", "echo codex-cli 0.46.0; echo more")
        .program("claude", "echo '2.0.1 (Claude Code)'")
        .program("git", "echo git version 2.47.3");
    let run = project.run(["doctor"]).fine();
    insta::assert_snapshot!(without_sandbox(&run), @r"
    exit 0
    ✓ gemini   0.9.1 ([BIN]/gemini)
    ✓ codex    codex-cli 0.46.0 ([BIN]/codex)
    ✓ claude   2.0.1 (Claude Code) ([BIN]/claude)
    ✓ git      git version 2.47.3 ([BIN]/git)
    ✓ project  [ROOT]
    ✓ config   no agentd/config.toml; the defaults hold
    ✓ mcp      the server answers with 9 tools
    ✓ changes  1 open
    ✓ locks    nobody is at work
    --- stderr
    ");
    let json = project.run(["doctor", "--json"]).fine().json();
    assert_eq!(json["healthy"], true);
    assert_eq!(check(&json, "gemini")["status"], "ok");
    let sandbox = check(&json, "sandbox")["detail"].as_str().unwrap().to_owned();
    assert!(sandbox.contains("agents and tests write to the working tree"), "{sandbox}");
}

#[test]
fn doctor_warns_of_disabled_sandbox() {
    let config = "[sandbox]\nenabled = false\n";
    let project = TestProject::new().root_file("agentd/config.toml", config);
    let json = project.run(["doctor", "--json"]).json();
    assert_eq!(check(&json, "sandbox")["status"], "warning");
}

#[test]
fn doctor_warns_of_bad_agents() {
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
    let details = ["gemini", "codex", "claude", "git"].map(detail).join("\n");
    insta::assert_snapshot!(mask(&details, &project.base()), @"
    [BIN]/gemini: `--version` did not answer within 1 s
    [BIN]/codex: `--version` failed: exit status: 3
    [BIN]/claude: `--version` did not answer within 1 s
    `git` is not on PATH
    ");
}

#[test]
fn leftover_process_does_not_block_doctor() {
    let project = TestProject::new().program("gemini", "/bin/sleep 5 & echo 0.9.1");
    let json = project.run(["doctor", "--json"]).fine().json();
    assert_eq!(check(&json, "gemini")["status"], "ok", "{json:#}");
}

#[test]
fn doctor_asks_configured_command() {
    let project = TestProject::new().program("my-gemini", "printf '1.0\\033[31m\\n'");
    let command = project.bin().join("my-gemini").display().to_string();
    let config = format!("[gemini]\ncommand = \"{command}\"\n[codex]\ncommand = \"/no/codex\"\n");
    let project = project.root_file("agentd/config.toml", config);
    project.run(["trust", "--yes"]).fine();
    insta::assert_snapshot!(without_sandbox(&project.run(["doctor"])), @r#"
    exit 0
    ✓ gemini   1.0 [31m ([BIN]/my-gemini)
    ! codex    `/no/codex` is not a program
               hint: set [codex] command, assign its roles to another agent, or install it: npm install -g @openai/codex
    ! claude   `claude` is not on PATH
               hint: set [claude] command, assign its roles to another agent, or install it: npm install -g @anthropic-ai/claude-code
    ! git      `git` is not on PATH
               hint: install git; agentd keeps changes apart with branches and worktrees
    ✓ project  [ROOT]
    ✓ config   agentd/config.toml is sound
    ✓ mcp      the server answers with 9 tools
    ✓ trust    you have agreed to gemini.command = "[BIN]/my-gemini"; codex.command = "/no/codex"
    ✓ changes  0 open
    ✓ locks    nobody is at work
    --- stderr
    "#);
}

#[test]
fn doctor_reports_broken_change() {
    let project = TestProject::new().change("add-oauth").file("STATE.yaml", "phase: [");
    std::fs::create_dir(project.root().join("agentd/changes/Odd")).unwrap();
    insta::assert_snapshot!(without_sandbox(&project.run(["doctor"])), @"
    exit 1
    ! gemini   `gemini` is not on PATH
               hint: set [gemini] command, assign its roles to another agent, or install it: npm install -g @google/gemini-cli
    ! codex    `codex` is not on PATH
               hint: set [codex] command, assign its roles to another agent, or install it: npm install -g @openai/codex
    ! claude   `claude` is not on PATH
               hint: set [claude] command, assign its roles to another agent, or install it: npm install -g @anthropic-ai/claude-code
    ! git      `git` is not on PATH
               hint: install git; agentd keeps changes apart with branches and worktrees
    ✓ project  [ROOT]
    ✓ config   no agentd/config.toml; the defaults hold
    ✓ mcp      the server answers with 9 tools
    ! changes  agentd/changes/Odd is not a change
               hint: rename it to an id, or move it away
    ✗ state    cannot use the STATE.yaml of `add-oauth`: externally tagged enum expected scalar or mapping (line 1, column 8)
               hint: restore it: git checkout -- agentd/changes/add-oauth/STATE.yaml
    ✓ locks    nobody is at work
    --- stderr
    ");
    assert_eq!(project.run(["doctor", "--json"]).exits(1).json()["healthy"], false);
}

#[test]
fn settings_cannot_control_a_terminal() {
    let config = r#""\u001b[2Jgone" = 1"#;
    let project = TestProject::new().root_file("agentd/config.toml", config);
    for args in [vec!["doctor"], vec!["validate", "--all"], vec!["doctor", "--json"]] {
        let mut forced = project.command(&args);
        project.finish(forced.env("CLICOLOR_FORCE", "1")).exits(1).cannot_steer_a_terminal();
    }
}

#[test]
fn doctor_names_lock_holder() {
    let project = TestProject::new().change("add-oauth");
    let store = project.store();
    let holder = agentd_engine::store::Holder::this_process("agentd plan", jiff::Timestamp::now());
    let lock = store.try_run_lock(&project.id(), &holder).unwrap();
    let pid = std::process::id().to_string();
    let locks = || {
        let text = project.run(["doctor"]).fine().transcript().replace(&pid, "[PID]");
        let line = text.lines().find(|line| line.starts_with("✓ lock")).unwrap();
        // The name of the machine is at the end.
        line.split(" on ").next().unwrap().to_owned()
    };
    insta::assert_snapshot!(locks(), @"✓ lock     change `add-oauth`: held by pid [PID] (agentd plan) since [TIME]");
    drop(lock);
    insta::assert_snapshot!(locks(), @"✓ locks    nobody is at work");
}

#[test]
fn doctor_outside_of_a_project() {
    let project = TestProject::empty().program("git", "echo git version 2.47.3");
    insta::assert_snapshot!(without_sandbox(&project.run(["doctor"])), @"
    exit 0
    ! gemini   `gemini` is not on PATH
               hint: set [gemini] command, assign its roles to another agent, or install it: npm install -g @google/gemini-cli
    ! codex    `codex` is not on PATH
               hint: set [codex] command, assign its roles to another agent, or install it: npm install -g @openai/codex
    ! claude   `claude` is not on PATH
               hint: set [claude] command, assign its roles to another agent, or install it: npm install -g @anthropic-ai/claude-code
    ✓ git      git version 2.47.3 ([BIN]/git)
    ! project  there is no agentd project here
               hint: set one up in [ROOT]: agentd init
    --- stderr
    ");
}
