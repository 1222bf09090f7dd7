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
fn a_sound_change_passes() {
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
    assert_eq!(json, json!({ "version": 1, "valid": true, "counts": counts, "diagnostics": [] }));
}

#[test]
fn findings_have_a_place_a_snippet_a_code_and_advice() {
    insta::assert_snapshot!(broken().run(["validate"]).transcript(), @r"
    exit 1
    MEDIUM[Q001]: `fast` can mean anything in R1
      --> agentd/changes/add-oauth/specs/auth-flow.md:22:20
       |
    22 | The server MUST be fast within 200 ms.
       |                    ^^^^
       |
       = help: Say how much, how long, how many, or which.

    HIGH[T012]: task 2.1: path `/etc/passwd` is absolute; paths are relative to the project
      --> agentd/changes/add-oauth/tasks.md:31:1
       |
    31 | ### Task 2.1: Sign in
       | ^^^^^^^^^^^^^^^^^^^^^
       |
       = help: Write the path relative to the project's root, with `/`.

    add-oauth: 1 HIGH, 1 MEDIUM, 0 LOW
    ✗ Format validation failed

    Next: agentd explain T012
    --- stderr
    ");
}

#[test]
fn json_has_the_shape_of_the_contract() {
    let run = broken().run(["validate", "--json"]).exits(1);
    assert_eq!(run.stderr, "");
    let json = run.json();
    assert_eq!(json["valid"], false);
    assert_eq!(json["counts"], json!({ "high": 1, "medium": 1, "low": 0 }));
    let found = json["diagnostics"].as_array().unwrap();
    assert_eq!(found.len(), 2);
    for key in ["severity", "code", "message", "file", "fix"] {
        assert!(found.iter().all(|finding| finding[key].is_string()), "{key} in {json:#}");
    }
    let high = found.iter().find(|finding| finding["severity"] == "high").unwrap();
    assert_eq!(high["code"], "T012");
    assert_eq!(high["file"], "agentd/changes/add-oauth/tasks.md");
    assert_eq!((&high["line"], &high["column"]), (&json!(31), &json!(1)));
}

#[test]
fn strict_fails_for_medium_findings_too() {
    let project = TestProject::new().change("add-oauth").edit(
        "specs/auth-flow.md",
        "MUST answer a sign-in within 200 ms",
        "MUST be fast within 200 ms",
    );
    project.run(["validate"]).fine().stdout_has("0 HIGH, 1 MEDIUM, 0 LOW");
    let run = project.run(["validate", "--strict"]).exits(1);
    run.stdout_has("validation failed").stdout_has("Next: agentd explain Q001");
    let json = project.run(["validate", "--strict", "--json"]).exits(1).json();
    assert_eq!(json["valid"], false);
}

#[test]
fn all_means_every_change_and_every_main_spec() {
    let project = TestProject::new()
        .change("add-oauth")
        .change("fix-bug")
        .edit("tasks.md", "src/auth.rs", "../outside.rs")
        .root_file("agentd/specs/login.md", "nothing of a spec\n");
    let run = project.run(["validate", "--all"]).exits(1);
    let run = run
        .stdout_has("2 changes and 1 spec: ")
        .stdout_has("--> agentd/changes/fix-bug/tasks.md:")
        .stdout_has("--> agentd/specs/login.md:");
    assert!(!run.stdout.contains("agentd/changes/add-oauth"), "{run:#?}");
    let json = project.run(["validate", "--all", "--json"]).exits(1).json();
    let found = json["diagnostics"].as_array().unwrap();
    let of = |file: &str| found.iter().filter(|f| f["file"] == file).count();
    assert_eq!(of("agentd/changes/fix-bug/tasks.md"), 1);
    assert!(of("agentd/specs/login.md") > 0);
    project.run(["validate", "--all", "add-oauth"]).exits(2);
    TestProject::new().run(["validate", "--all"]).fine().stdout_has("0 changes and 0 specs");
}

#[test]
fn the_defects_of_earlier_programs_are_found() {
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
    cyclic.run(["validate"]).exits(1).stdout_has("data.1 → logic.1 → data.1");
}

#[test]
fn files_that_are_missing_or_no_text_are_findings() {
    let run = TestProject::new().begun("add-oauth").run(["validate"]).exits(1);
    run.stdout_has("HIGH[F009]: proposal.md is missing")
        .stdout_has("agentd/changes/add-oauth/proposal.md");
    let project = TestProject::new().change("add-oauth").file("tasks.md", [0xff, 0xfe, 0x00]);
    project.run(["validate"]).exits(1).stdout_has("HIGH[F001]").stderr_lacks("panicked");
}

#[test]
fn nothing_from_files_can_steer_a_terminal() {
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
fn colours_are_for_terminals_and_those_who_ask() {
    let project = broken();
    for set in
        [&[][..], &[("NO_COLOR", "1")], &[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]]
    {
        let run = project.finish(project.command(["validate"]).envs(set.iter().copied()));
        assert!(!run.stdout.contains('\u{1b}'), "{set:?}");
        let run = project.finish(project.command(["status", "nothing"]).envs(set.iter().copied()));
        assert!(!run.stderr.contains('\u{1b}'), "{set:?}");
    }
    let run = project.finish(project.command(["validate"]).env("CLICOLOR_FORCE", "1"));
    assert!(run.stdout.contains('\u{1b}'), "or the checks above prove nothing");
}

/// A file that nobody looks at must not look like a part of the plan.
#[test]
fn a_stray_file_among_the_specs_is_a_finding() {
    let project = TestProject::new().change("add-oauth").file("specs/Auth Flow.md", "# Mine\n");
    let run = project.run(["validate", "add-oauth"]).exits(1);
    run.stdout_has("HIGH[F006]: `Auth Flow.md` is not the file of a spec")
        .stdout_has("--> agentd/changes/add-oauth/specs/Auth Flow.md");
    let json = project.run(["validate", "--all", "--json"]).exits(1).json();
    assert_eq!(json["counts"]["high"], 1);
}

/// What is more than a terminal shows is still all there for programs.
#[test]
fn a_plan_with_very_many_findings_is_reported() {
    let tasks: String = (1..=900).map(|n| format!("- [ ] 1.{n} T\n")).collect();
    let project = TestProject::new().change("add-oauth").file("tasks.md", tasks);
    let json = project.run(["validate", "--json"]).exits(1).json();
    let found = json["diagnostics"].as_array().unwrap();
    assert!(found.len() > 2700, "{}", found.len());
    assert_eq!(found.last().unwrap()["line"], 900);
    let run = project.run(["validate"]).exits(1);
    run.stdout_has("`--json` gives them all");
}

/// Attack M5: 100,000 tasks took 14 s and 2 GB.
#[test]
fn findings_by_the_thousand_are_counted_and_a_thousand_are_told() {
    let mut tasks = "\n## 9. Odds and ends\n\n".to_owned();
    for n in 1..=20_000 {
        tasks.push_str(&format!("- [ ] 9.{n} Title\n"));
    }
    let project = TestProject::new().change("add-oauth");
    let path = project.root().join("agentd/changes/add-oauth/tasks.md");
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, before + &tasks).unwrap();
    let json = project.run(["validate", "--json"]).exits(1).json();
    let told = json["diagnostics"].as_array().unwrap().len();
    let omitted = json["omitted"].as_array().unwrap();
    assert!(!omitted.is_empty() && told <= 1000 * omitted.len(), "{told}: {omitted:?}");
    assert_eq!(omitted[0]["count"], 19_000);
    assert_eq!(omitted[0]["file"], "agentd/changes/add-oauth/tasks.md");
    let sum = omitted.iter().map(|rule| rule["count"].as_u64().unwrap()).sum::<u64>();
    let counts = json["counts"].as_object().unwrap();
    let counted = counts.values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum + told as u64, counted);
    project.run(["validate"]).exits(1).stdout_has("`--json` gives the first 1000 of each rule");
    let sarif = project.run(["validate", "--sarif"]).exits(1).stdout;
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    assert_eq!(sarif["runs"][0]["properties"]["omitted"], json["omitted"]);
}
