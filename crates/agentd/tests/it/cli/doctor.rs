use serde_json::Value;

use test_project::{Output, TestProject, mask};

fn check<'a>(json: &'a Value, name: &str) -> &'a Value {
    let checks = json["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {json:#}"))
}

/// What is reported, except about the sandbox, which depends on the system. Checks are printed as
/// their results come; here they are sorted.
fn without_sandbox(run: &Output) -> String {
    let text = run.transcript();
    let (out, rest) = text.split_once("--- stderr").unwrap();
    let (code, out) = out.split_once('\n').unwrap();
    let mut checks: Vec<String> = Vec::new();
    for line in out.lines() {
        match checks.last_mut() {
            Some(check) if line.starts_with(' ') => *check += &format!("{line}\n"),
            _ => checks.push(format!("{line}\n")),
        }
    }
    checks.retain(|check| !check.contains("sandbox"));
    let name = |check: &String| check.split_whitespace().skip(1).take(2).collect::<String>();
    checks.sort_by_key(name);
    format!("{code}\n{}--- stderr{rest}", checks.concat())
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
    insta::assert_snapshot!(without_sandbox(&run), @r#"
    exit 0
    ✓ budget   none: a change may cost any amount
               hint: limit it with max_cost_usd under [budget]: agentd/config.toml
    ✓ changes  1 open
    ✓ claude   implementer: 2.0.1 (Claude Code) ([BIN]/claude)
    ✓ codex    challenger, reviewer: codex-cli 0.46.0 ([BIN]/codex)
    ✓ config   no agentd/config.toml; the defaults hold
    ✓ gemini   planner: 0.9.1 ([BIN]/gemini)
    ✓ git      git version 2.47.3 ([BIN]/git)
    ✓ identity git has no user.name and user.email; agentd makes no commits here
    ✓ locks    nobody is at work
    ✓ login    claude: not known, `claude auth status` does not say
    ✓ login    codex: not known, `codex login status` does not say
    ! login    gemini: not logged in, and no key is set
               hint: log in: gemini
    ✓ mcp      the server answers with 9 tools
    ✓ project  [ROOT]
    ! tests    no command: reviews rely on reading alone
               hint: let agentd run the tests before every review: set test_command = "…" under [implementation] in agentd/config.toml
    --- stderr
    "#);
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
    insta::assert_snapshot!(mask(&details, &project.base()), @r"
    planner: [BIN]/gemini: `--version` did not answer within 1 s
    challenger, reviewer: [BIN]/codex: `--version` failed: exit status: 3
    implementer: [BIN]/claude: `--version` did not answer within 1 s
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
    ✓ budget   none: a change may cost any amount
               hint: limit it with max_cost_usd under [budget]: agentd/config.toml
    ✓ changes  0 open
    ! claude   implementer: `claude` is not on PATH
               hint: set [claude] command, assign its roles to another agent, or install it: npm install -g @anthropic-ai/claude-code
    ! codex    challenger, reviewer: `/no/codex` is not a program
               hint: set [codex] command, assign its roles to another agent, or install it: npm install -g @openai/codex
    ✓ config   agentd/config.toml is valid
    ✓ gemini   planner: 1.0 [31m ([BIN]/my-gemini)
    ! git      `git` is not on PATH
               hint: install git; agentd keeps changes apart with branches and worktrees
    ✓ identity git has no user.name and user.email; agentd makes no commits here
    ✓ locks    nobody is at work
    ! login    gemini: not logged in, and no key is set
               hint: log in: gemini
    ✓ mcp      the server answers with 9 tools
    ✓ project  [ROOT]
    ! tests    no command: reviews rely on reading alone
               hint: let agentd run the tests before every review: set test_command = "…" under [implementation] in agentd/config.toml
    ✓ trust    you have agreed to gemini.command = "[BIN]/my-gemini"; codex.command = "/no/codex"
    --- stderr
    "#);
}

#[test]
fn doctor_reports_broken_change() {
    let project = TestProject::new().change("add-oauth").file("STATE.yaml", "phase: [");
    std::fs::create_dir(project.root().join("agentd/changes/Odd")).unwrap();
    insta::assert_snapshot!(without_sandbox(&project.run(["doctor"])), @r#"
    exit 1
    ✓ budget   none: a change may cost any amount
               hint: limit it with max_cost_usd under [budget]: agentd/config.toml
    ! changes  agentd/changes/Odd is not a change
               hint: rename it to an id, or move it away
    ! claude   implementer: `claude` is not on PATH
               hint: set [claude] command, assign its roles to another agent, or install it: npm install -g @anthropic-ai/claude-code
    ! codex    challenger, reviewer: `codex` is not on PATH
               hint: set [codex] command, assign its roles to another agent, or install it: npm install -g @openai/codex
    ✓ config   no agentd/config.toml; the defaults hold
    ! gemini   planner: `gemini` is not on PATH
               hint: set [gemini] command, assign its roles to another agent, or install it: npm install -g @google/gemini-cli
    ! git      `git` is not on PATH
               hint: install git; agentd keeps changes apart with branches and worktrees
    ✓ identity git has no user.name and user.email; agentd makes no commits here
    ✓ locks    nobody is at work
    ✓ mcp      the server answers with 9 tools
    ✓ project  [ROOT]
    ✗ state    cannot use the STATE.yaml of `add-oauth`: externally tagged enum expected scalar or mapping (line 1, column 8)
               hint: restore it: git checkout -- agentd/changes/add-oauth/STATE.yaml
    ! tests    no command: reviews rely on reading alone
               hint: let agentd run the tests before every review: set test_command = "…" under [implementation] in agentd/config.toml
    --- stderr
    "#);
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
    insta::assert_snapshot!(without_sandbox(&project.run(["doctor"])), @r"
    exit 0
    ! claude   implementer: `claude` is not on PATH
               hint: set [claude] command, assign its roles to another agent, or install it: npm install -g @anthropic-ai/claude-code
    ! codex    challenger, reviewer: `codex` is not on PATH
               hint: set [codex] command, assign its roles to another agent, or install it: npm install -g @openai/codex
    ! gemini   planner: `gemini` is not on PATH
               hint: set [gemini] command, assign its roles to another agent, or install it: npm install -g @google/gemini-cli
    ✓ git      git version 2.47.3 ([BIN]/git)
    ! project  there is no agentd project here
               hint: set one up in [ROOT]: agentd init
    --- stderr
    ");
}

/// R3: all of it takes as long as the slowest check, and what is known is printed meanwhile.
#[test]
fn doctor_waits_for_the_slowest_check_only() {
    let slow = |seconds: u32| format!("/bin/sleep {seconds}; echo 1.0");
    let project = TestProject::new()
        .program("gemini", &slow(3))
        .program("codex", &slow(2))
        .program("claude", &slow(2))
        .program("git", &slow(2));
    let started = std::time::Instant::now();
    let run = project.run(["doctor"]).fine();
    // One after the other: 3 + 2 for each of two agents and their logins + 2 for git.
    assert!(started.elapsed().as_secs() < 8, "{:?}", started.elapsed());
    let last = run.stdout.lines().last().unwrap();
    assert!(last.starts_with("✓ gemini"), "{}", run.stdout);
    assert!(run.stdout.starts_with("✓ project"), "{}", run.stdout);
}

// contract R3
#[test]
fn doctor_checks_roles_and_not_vendors() {
    let config = "[roles]\nplanner = \"claude\"\nchallenger = \"builtin\"\nimplementer = \"claude\"\n\
        reviewer = \"claude\"\n[implementation]\ntest_command = \"A=1 no-such-program x\"\n\
        [git]\ncommit = \"layer\"\n[budget]\nmax_cost_usd = 5.0\n";
    let status = "case $1 in auth) echo '{\"loggedIn\": false, \"authMethod\": \"none\"}';; *) echo 2.0;; esac";
    let project = TestProject::new()
        .root_file("agentd/config.toml", config)
        .root_file("Cargo.toml", "")
        .program("claude", status);
    project.run(["trust", "--yes"]).fine();
    insta::assert_snapshot!(without_sandbox(&project.run(["doctor"])), @r#"
    exit 0
    ✓ budget   at most $5 for a change
    ✓ builtin  challenger: part of agentd
    ✓ changes  0 open
    ✓ claude   planner, implementer, reviewer: 2.0 ([BIN]/claude)
    ✓ config   agentd/config.toml is valid
    ! git      `git` is not on PATH
               hint: install git; agentd keeps changes apart with branches and worktrees
    ! identity git has no user.name and user.email, and [git] commit makes commits
               hint: set both, user.email like user.name: git config --global user.name 'Your Name'
    ✓ locks    nobody is at work
    ! login    claude: not logged in, and no key is set
               hint: log in: claude auth login
    ✓ mcp      the server answers with 9 tools
    ✓ project  [ROOT]
    ! tests    `A=1 no-such-program x`: `no-such-program` is not on PATH
               hint: install `no-such-program`, or correct test_command: agentd/config.toml
    ✓ trust    you have agreed to implementation.test_command = "A=1 no-such-program x"
    --- stderr
    "#);
    let json = project.run(["doctor", "--json"]).fine().json();
    assert_eq!(check(&json, "login")["status"], "warning");
    assert_eq!(check(&json, "identity")["status"], "warning");
    let names: Vec<&Value> =
        json["checks"].as_array().unwrap().iter().map(|check| &check["name"]).collect();
    assert!(!names.contains(&&Value::from("gemini")), "it plays nothing: {names:?}");
    // A test command that nobody has set, but that could be.
    project.write_root("agentd/config.toml", "[roles]\nplanner = \"builtin\"\n");
    let json = project.run(["doctor", "--json"]).fine().json();
    assert!(check(&json, "tests")["hint"].as_str().unwrap().contains("\"cargo test\""));
    assert_eq!(check(&json, "identity")["status"], "ok", "no commits are made");
}
