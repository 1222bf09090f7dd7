use serde_json::{Value, json};

use test_project::TestProject;

fn broken() -> TestProject {
    TestProject::new().change("add-oauth").edit("tasks.md", "src/auth.rs", "/etc/passwd").edit(
        "specs/auth-flow.md",
        "MUST answer a sign-in within 200 ms",
        "MUST be fast within 200 ms",
    )
}

#[test]
fn sound_change_passes() {
    let project = TestProject::new().change("add-oauth");
    let run = project.run(["validate", "add-oauth"]);
    insta::assert_snapshot!(run.transcript(), @r"
    exit 0
    add-oauth: 0 HIGH, 0 MEDIUM, 0 LOW
    ✓ Proposal format validation passed
    --- stderr
    ");
    for args in
        [vec!["validate"], vec!["validate-proposal", "add-oauth"], vec!["validate", "--strict"]]
    {
        assert_eq!(project.run(args).fine().stdout, run.stdout);
    }
    let json = project.run(["validate", "--json"]).fine().json();
    let counts = json!({ "high": 0, "medium": 0, "low": 0 });
    let expected = json!({
        "version": 1,
        "valid": true,
        "counts": counts,
        "diagnostics": [],
        "allowed": [],
        "rules": [],
    });
    assert_eq!(json, expected);
}

// contract R6
#[test]
fn rules_and_comments_of_a_project_count() {
    let spec = "specs/auth-flow.md";
    let fast = "<!-- agentd:allow Q001: `fast` is\u{1b}[2J a mode -->\nThe server MUST be fast";
    let project = TestProject::new().change("add-oauth").edit(spec, "The server MUST answer", fast);
    let config = "agentd/config.toml";
    project.write_root(config, "[rules]\nQ001 = \"low\"\nQ004 = \"off\"\n");
    insta::assert_snapshot!(project.run(["validate", "--strict"]).transcript(), @r"
    exit 0
    allowed: agentd/changes/add-oauth/specs/auth-flow.md:23:20: Q001: `fast` is [2J a mode
    rules of this project: Q001 = low, Q004 = off
    add-oauth: 0 HIGH, 0 MEDIUM, 0 LOW, 1 allowed
    ✓ Proposal format validation passed
    --- stderr
    ");
    let json = project.run(["validate", "--json"]).fine().json();
    let rules = json!([{ "code": "Q001", "weight": "low" }, { "code": "Q004", "weight": "off" }]);
    assert_eq!(json["rules"], rules);
    let allowed = &json["allowed"][0];
    assert_eq!((&allowed["code"], &allowed["line"]), (&json!("Q001"), &json!(23)));
    assert_eq!(allowed["reason"], json!("`fast` is [2J a mode"));
    let status = project.run(["status"]).fine().stdout;
    assert!(status.contains("documents 0 HIGH, 0 MEDIUM, 0 LOW findings, 1 allowed"), "{status}");
    assert_eq!(project.run(["status", "--json"]).fine().json()["allowed"], json!(1));
    let sarif = project.run(["validate", "--sarif"]);
    let sarif: Value = serde_json::from_str(&sarif.stdout).unwrap();
    let suppressed = &sarif["runs"][0]["results"][0]["suppressions"][0];
    assert_eq!(suppressed["kind"], json!("inSource"));
    // What the project makes HIGH is a gate, whatever a document says.
    project.write_root(config, "[rules]\nQ001 = \"high\"\n");
    let json = project.run(["validate", "--json"]).json();
    assert_eq!(json["counts"], json!({ "high": 1, "medium": 1, "low": 0 }));
    assert_eq!(project.run(["status", "--json"]).fine().json()["validation"]["high"], json!(1));
    project.write_root(config, "[rules]\nS004 = \"off\"\n");
    let refused = project.run(["validate"]).exits(1);
    let why = "the rule S004 (bad-requirement-id) is always HIGH";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
}

#[test]
fn findings_have_place_snippet_and_help() {
    insta::assert_snapshot!(broken().run(["validate"]).transcript(), @"
    exit 1
    MEDIUM[Q001]: `fast` can mean anything in R1
      --> agentd/changes/add-oauth/specs/auth-flow.md:22:20
       |
    22 | The server MUST be fast within 200 ms.
       |                    ^^^^
       |
       = help: Say how much, how long, how many, or which.

    HIGH[T012]: task 2.1: path `/etc/passwd` is absolute; paths are relative to the project
      --> agentd/changes/add-oauth/tasks.md:36:7
       |
    36 | file: /etc/passwd
       |       ^^^^^^^^^^^
       |
       = help: Write the path relative to the project's root, with `/`.

    add-oauth: 1 HIGH, 1 MEDIUM, 0 LOW
    ✗ Format validation failed

    Next: edit agentd/changes/add-oauth/tasks.md:36
    More about it: agentd explain T012
    --- stderr
    ");
}

#[test]
fn validate_json() {
    insta::assert_snapshot!(broken().run(["validate", "--json"]), @r#"
    exit 1
    {
      "version": 1,
      "valid": false,
      "counts": {
        "high": 1,
        "medium": 1,
        "low": 0
      },
      "diagnostics": [
        {
          "severity": "medium",
          "code": "Q001",
          "name": "vague-word",
          "message": "`fast` can mean anything in R1",
          "file": "agentd/changes/add-oauth/specs/auth-flow.md",
          "line": 22,
          "column": 20,
          "end_line": 22,
          "end_column": 24,
          "fix": "Say how much, how long, how many, or which."
        },
        {
          "severity": "high",
          "code": "T012",
          "name": "bad-path",
          "message": "task 2.1: path `/etc/passwd` is absolute; paths are relative to the project",
          "file": "agentd/changes/add-oauth/tasks.md",
          "line": 36,
          "column": 7,
          "end_line": 36,
          "end_column": 18,
          "fix": "Write the path relative to the project's root, with `/`."
        }
      ],
      "allowed": [],
      "rules": []
    }
    --- stderr
    "#);
}

#[test]
fn strict_fails_for_medium_findings() {
    let project = TestProject::new().change("add-oauth").edit(
        "specs/auth-flow.md",
        "MUST answer a sign-in within 200 ms",
        "MUST be fast within 200 ms",
    );
    insta::assert_snapshot!(project.run(["validate"]), @"
    exit 0
    MEDIUM[Q001]: `fast` can mean anything in R1
      --> agentd/changes/add-oauth/specs/auth-flow.md:22:20
       |
    22 | The server MUST be fast within 200 ms.
       |                    ^^^^
       |
       = help: Say how much, how long, how many, or which.

    add-oauth: 0 HIGH, 1 MEDIUM, 0 LOW
    ✓ Proposal format validation passed
    --- stderr
    ");
    insta::assert_snapshot!(project.run(["validate", "--strict"]), @"
    exit 1
    MEDIUM[Q001]: `fast` can mean anything in R1
      --> agentd/changes/add-oauth/specs/auth-flow.md:22:20
       |
    22 | The server MUST be fast within 200 ms.
       |                    ^^^^
       |
       = help: Say how much, how long, how many, or which.

    add-oauth: 0 HIGH, 1 MEDIUM, 0 LOW
    ✗ Format validation failed

    Next: edit agentd/changes/add-oauth/specs/auth-flow.md:22
    More about it: agentd explain Q001
    --- stderr
    ");
    let json = project.run(["validate", "--strict", "--json"]).exits(1).json();
    assert_eq!(json["valid"], false);
}

#[test]
fn validate_all() {
    let project = TestProject::new()
        .change("add-oauth")
        .change("fix-bug")
        .edit("tasks.md", "src/auth.rs", "../outside.rs")
        .root_file("agentd/specs/login.md", "nothing of a spec\n");
    insta::assert_snapshot!(project.run(["validate", "--all"]), @"
    exit 1
    HIGH[T012]: task 2.1: path `../outside.rs` contains `..`
      --> agentd/changes/fix-bug/tasks.md:36:7
       |
    36 | file: ../outside.rs
       |       ^^^^^^^^^^^^^
       |
       = help: Write the path relative to the project's root, with `/`.

    MEDIUM[F002]: login.md has no frontmatter
     --> agentd/specs/login.md:1:1
      |
    1 | nothing of a spec
      | ^
      |
      = help: Add a frontmatter at the top, or let the planner write the document again.

    HIGH[S001]: the section `## Overview` is missing
     --> agentd/specs/login.md:1:1
      |
    1 | nothing of a spec
      | ^
      |
      = help: Add the section.

    HIGH[S001]: the section `## Requirements` is missing
     --> agentd/specs/login.md:1:1
      |
    1 | nothing of a spec
      | ^
      |
      = help: Add the section.

    HIGH[S001]: the section `## Acceptance Criteria` is missing
     --> agentd/specs/login.md:1:1
      |
    1 | nothing of a spec
      | ^
      |
      = help: Add the section.

    HIGH[S003]: there is no requirement
     --> agentd/specs/login.md:1:1
      |
    1 | nothing of a spec
      | ^
      |
      = help: Add `### R1: <title>` under `## Requirements`.

    HIGH[S008]: the spec has 0 scenarios; the minimum is 1
     --> agentd/specs/login.md:1:1
      |
    1 | nothing of a spec
      | ^
      |
      = help: Add `### Scenario: <name>` under `## Acceptance Criteria`, with WHEN and THEN.

    2 changes and 1 spec: 6 HIGH, 1 MEDIUM, 0 LOW
    ✗ Format validation failed

    Next: edit agentd/changes/fix-bug/tasks.md:36
    More about it: agentd explain T012
    --- stderr
    ");
    let json = project.run(["validate", "--all", "--json"]).exits(1).json();
    let found = json["diagnostics"].as_array().unwrap();
    let of = |file: &str| found.iter().filter(|f| f["file"] == file).count();
    assert_eq!(of("agentd/changes/fix-bug/tasks.md"), 1);
    assert!(of("agentd/specs/login.md") > 0);
    project.run(["validate", "--all", "add-oauth"]).exits(2);
    insta::assert_snapshot!(TestProject::new().run(["validate", "--all"]), @"
    exit 0
    0 changes and 0 specs: 0 HIGH, 0 MEDIUM, 0 LOW
    ✓ Proposal format validation passed
    --- stderr
    ");
}

#[test]
fn known_defects_are_found() {
    let cases = [
        ("tasks.md", "depends_on: []", "depends_on: [\"2.1\"]", "T005"),
        ("tasks.md", "src/auth.rs", "src/../../outside", "T012"),
        ("tasks.md", "auth-flow:R1", "auth-flow:R9", "T008"),
        ("tasks.md", "depends_on: [\"1.1\"]", "depends_on: [\"1.9\"]", "T006"),
        (
            "specs/auth-flow.md",
            "## Acceptance",
            "### R1: Again\n\nIt MUST give 200.\n\n## Acceptance",
            "S005",
        ),
        ("specs/auth-flow.md", "- **THEN** the server answers with 401\n", "", "S010"),
    ];
    for (file, from, to, code) in cases {
        let project = TestProject::new().change("add-oauth").edit(file, from, to);
        let json = project.run(["validate", "--json"]).exits(1).json();
        let codes: Vec<&Value> = json["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| &finding["code"])
            .collect();
        assert!(codes.contains(&&json!(code)), "{code} not in {codes:?}");
    }
    let cyclic = TestProject::new().change("add-oauth").edit(
        "tasks.md",
        "depends_on: []",
        "depends_on: [\"2.1\"]",
    );
    insta::assert_snapshot!(cyclic.run(["validate"]), @r#"
    exit 1
    HIGH[T005]: Circular dependency detected: data.1 → logic.1 → data.1 (1.1 → 2.1 → 1.1)
      --> agentd/changes/add-oauth/tasks.md:16:1
       |
    16 | ### Task 1.1: Keep sessions
       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: Remove one of the dependencies of the chain in tasks.md.

    MEDIUM[T016]: task 1.1 depends on 2.1 of a later layer
      --> agentd/changes/add-oauth/tasks.md:23:15
       |
    23 | depends_on: ["2.1"]
       |               ^^^
       |
       = help: Move the task to the layer where it belongs.

    add-oauth: 1 HIGH, 1 MEDIUM, 0 LOW
    ✗ Format validation failed

    Next: edit agentd/changes/add-oauth/tasks.md:16
    More about it: agentd explain T005
    --- stderr
    "#);
}

#[test]
fn missing_and_binary_files_are_findings() {
    insta::assert_snapshot!(TestProject::new().begun("add-oauth").run(["validate"]), @"
    exit 1
    HIGH[F009]: proposal.md is missing
    --> agentd/changes/add-oauth/proposal.md
     = help: Write the document, or let the planner write it.

    HIGH[F009]: tasks.md is missing
    --> agentd/changes/add-oauth/tasks.md
     = help: Write the document, or let the planner write it.

    add-oauth: 2 HIGH, 0 MEDIUM, 0 LOW
    ✗ Format validation failed

    Next: edit agentd/changes/add-oauth/proposal.md:1
    More about it: agentd explain F009
    --- stderr
    ");
    let project = TestProject::new().change("add-oauth").file("tasks.md", [0xff, 0xfe, 0x00]);
    insta::assert_snapshot!(project.run(["validate"]), @"
    exit 1
    HIGH[F001]: `agentd/changes/add-oauth/tasks.md` is not valid UTF-8: bad byte at offset 0
    --> agentd/changes/add-oauth/tasks.md
     = help: Save the file as UTF-8 text, or restore it from git.

    add-oauth: 1 HIGH, 0 MEDIUM, 0 LOW
    ✗ Format validation failed

    Next: edit agentd/changes/add-oauth/tasks.md:1
    More about it: agentd explain F001
    --- stderr
    ");
}

#[test]
fn files_cannot_control_a_terminal() {
    let evil = "\u{1b}[2Jgone\u{1b}]0;title\u{7}\u{9b}2J\u{8}\u{7f}";
    let project = TestProject::new()
        .change("add-oauth")
        .edit("tasks.md", "src/auth.rs", &format!("\"/etc/{evil}\""))
        .edit(
            "specs/auth-flow.md",
            "The server MUST answer",
            &format!("The {evil} server is fast, answers"),
        )
        .edit("proposal.md", "Sign in with OAuth.", &format!("Sign {evil} in."))
        .edit("proposal.md", "type: proposal", r#"type: "\e[2Jspec""#)
        .edit("proposal.md", "scope: minor", r#"scope: "\e[2Jhuge""#);
    for args in [
        vec!["validate"],
        vec!["validate", "--all"],
        vec!["validate", "--json"],
        vec!["validate", "--sarif"],
        vec!["list"],
        vec!["status"],
        vec!["show"],
        vec!["status", evil],
        vec!["show", "add-oauth", evil],
        vec!["explain", evil],
        vec!["decide", "add-oauth", "fix", "--note", evil],
        vec!["show", "state"],
    ] {
        project.run(&args).cannot_steer_a_terminal();
        // What goes to a terminal is not filtered by anybody else.
        let mut forced = project.command(&args);
        project.finish(forced.env("CLICOLOR_FORCE", "1")).cannot_steer_a_terminal();
    }
}

#[test]
fn colors_only_for_terminals() {
    let project = broken();
    for set in
        [&[][..], &[("NO_COLOR", "1")], &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]]
    {
        let first = |args: &[&str]| {
            let run = project.finish(project.command(args).envs(set.iter().copied()));
            let text = run.stdout + &run.stderr;
            text.lines().next().unwrap().escape_debug().to_string()
        };
        insta::allow_duplicates! {
            insta::assert_snapshot!(first(&["validate"]), @"MEDIUM[Q001]: `fast` can mean anything in R1");
            insta::assert_snapshot!(first(&["status", "nothing"]), @"error: there is no change `nothing`");
        }
    }
    // Or the checks above prove nothing.
    let run = project.finish(project.command(["validate"]).env("CLICOLOR_FORCE", "1"));
    insta::assert_snapshot!(run.stdout.lines().next().unwrap().escape_debug(), @r"\u{1b}[1m\u{1b}[33mMEDIUM[Q001]\u{1b}[0m\u{1b}[1m: `fast` can mean anything in R1\u{1b}[0m");
}

/// A file that is ignored must not look like a part of the plan.
#[test]
fn stray_spec_file_is_a_finding() {
    let project = TestProject::new().change("add-oauth").file("specs/Auth Flow.md", "# Mine\n");
    insta::assert_snapshot!(project.run(["validate", "add-oauth"]), @"
    exit 1
    HIGH[F006]: `Auth Flow.md` is not the file of a spec and is ignored
    --> agentd/changes/add-oauth/specs/Auth Flow.md
     = help: Name it `<spec id>.md`, such as `auth-flow.md`, or move it away.

    add-oauth: 1 HIGH, 0 MEDIUM, 0 LOW
    ✗ Format validation failed

    Next: edit agentd/changes/add-oauth/specs/Auth Flow.md:1
    More about it: agentd explain F006
    --- stderr
    ");
    let json = project.run(["validate", "--all", "--json"]).exits(1).json();
    assert_eq!(json["counts"]["high"], 1);
}

/// What is printed after the last of very many findings.
fn summary(project: &TestProject) -> String {
    let text = project.run(["validate"]).exits(1).stdout;
    text.rsplit_once("= help: ").unwrap().1.split_once('\n').unwrap().1.trim_start().to_owned()
}

/// What is more than a terminal shows is still all there for programs.
#[test]
fn json_has_every_finding() {
    let tasks: String = (1..=900).map(|n| format!("- [ ] 1.{n} T\n")).collect();
    let project = TestProject::new().change("add-oauth").file("tasks.md", tasks);
    let json = project.run(["validate", "--json"]).exits(1).json();
    let found = json["diagnostics"].as_array().unwrap();
    assert!(found.len() > 2700, "{}", found.len());
    assert_eq!(found.last().unwrap()["line"], 900);
    insta::assert_snapshot!(summary(&project), @"
    … and 3502 more; `--json` gives them all

    add-oauth: 1800 HIGH, 902 MEDIUM, 900 LOW
    ✗ Format validation failed

    Next: edit agentd/changes/add-oauth/tasks.md:1
    More about it: agentd explain T011
    ");
}

/// Attack M5: 100,000 tasks took 14 s and 2 GB.
#[test]
fn findings_beyond_a_thousand_are_counted() {
    let mut tasks = "\n## 9. Odds and ends\n\n".to_owned();
    for n in 1..=20_000 {
        tasks.push_str(&format!("- [ ] 9.{n} Title\n"));
    }
    let project = TestProject::new().change("add-oauth");
    let path = project.root().join("agentd/changes/add-oauth/tasks.md");
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, before + &tasks).unwrap();
    let json = project.run(["validate", "--json"]).exits(1).json();
    let shown = json["diagnostics"].as_array().unwrap().len();
    let omitted = json["omitted"].as_array().unwrap();
    assert!(!omitted.is_empty() && shown <= 1000 * omitted.len(), "{shown}: {omitted:?}");
    assert_eq!(omitted[0]["count"], 19_000);
    assert_eq!(omitted[0]["file"], "agentd/changes/add-oauth/tasks.md");
    let sum = omitted.iter().map(|rule| rule["count"].as_u64().unwrap()).sum::<u64>();
    let counts = json["counts"].as_object().unwrap();
    let counted = counts.values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum + shown as u64, counted);
    insta::assert_snapshot!(summary(&project), @"
    … and 99900 more; `--json` gives the first 1000 of each rule

    add-oauth: 40000 HIGH, 40000 MEDIUM, 20000 LOW
    ✗ Format validation failed

    Next: edit agentd/changes/add-oauth/tasks.md:46
    More about it: agentd explain T011
    ");
    let sarif = project.run(["validate", "--sarif"]).exits(1).stdout;
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    assert_eq!(sarif["runs"][0]["properties"]["omitted"], json["omitted"]);
}
