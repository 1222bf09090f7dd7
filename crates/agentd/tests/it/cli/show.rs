use test_project::TestProject;

#[test]
fn show_document() {
    let project = TestProject::new().change("add-oauth");
    let proposal = project.read("proposal.md");
    for args in [
        vec!["show"],
        vec!["show", "add-oauth"],
        vec!["show", "add-oauth", "proposal"],
        vec!["show", "add-oauth", "proposal.md"],
        vec!["show", "proposal"],
    ] {
        assert_eq!(project.run(&args).fine().stdout, proposal, "{args:?}");
    }
    let spec = project.read("specs/auth-flow.md");
    for name in ["auth-flow", "auth-flow.md", "specs/auth-flow.md"] {
        assert_eq!(project.run(["show", "add-oauth", name]).fine().stdout, spec);
    }
    for name in ["state", "STATE.yaml"] {
        let state = project.run(["show", "add-oauth", name]).fine().stdout;
        assert_eq!(state, project.read("STATE.yaml"));
    }
    assert_eq!(project.run(["show", "tasks"]).fine().stdout, project.read("tasks.md"));
    assert_eq!(project.run(["show", "auth-flow"]).fine().stdout, spec, "of the only change");
    let json = project.run(["show", "--json"]).fine().json();
    assert_eq!(json["file"], "agentd/changes/add-oauth/proposal.md");
    assert_eq!(json["text"], *proposal);
}

#[test]
fn show_main_spec() {
    let project =
        TestProject::new().change("add-oauth").root_file("agentd/specs/auth-flow.md", "main\n");
    assert_eq!(project.run(["show", "auth-flow"]).fine().stdout, "main\n");
    let json = project.run(["show", "auth-flow", "--json"]).fine().json();
    assert_eq!(json["file"], "agentd/specs/auth-flow.md");
    insta::assert_snapshot!(project.run(["show", "auth-flow", "tasks"]), @"
    exit 1
    --- stderr
    error: there is no change `auth-flow`

    hint: see which changes are open: agentd list
    ");
}

#[test]
fn missing_document_names_the_others() {
    let project = TestProject::new().change("add-oauth");
    insta::assert_snapshot!(project.run(["show", "add-oauth", "review"]).transcript(), @r"
    exit 1
    --- stderr
    error: `add-oauth` has no document `review`

    hint: it has: proposal, tasks, state, auth-flow
    ");
    insta::assert_snapshot!(project.run(["show", "add-oauth", "taks"]), @"
    exit 1
    --- stderr
    error: `add-oauth` has no document `taks`

    hint: did you mean `tasks`?
    ");
    insta::assert_snapshot!(project.run(["show", "review", "--json"]), @r#"
    exit 1
    {
      "version": 1,
      "error": {
        "kind": "no_such_document",
        "message": "`add-oauth` has no document `review`",
        "cause": null,
        "hints": [
          "it has: proposal, tasks, state, auth-flow"
        ]
      }
    }
    --- stderr
    "#);
    insta::assert_snapshot!(project.run(["show", "nothing"]), @"
    exit 1
    --- stderr
    error: there is no change `nothing`

    hint: see which changes are open: agentd list
    ");
}

#[test]
fn no_name_leads_out_of_the_change() {
    let project = TestProject::new().change("add-oauth").root_file("secret.md", "secret\n");
    for name in ["../../../secret", "../../../secret.md", "/etc/passwd", "specs/../../secret", ""] {
        for args in [vec!["show", "add-oauth", name], vec!["show", name]] {
            let run = project.run(&args).exits(1);
            assert_eq!(run.stdout, "", "{args:?}");
        }
    }
    let link = project.root().join("agentd/changes/add-oauth/specs/leak.md");
    std::os::unix::fs::symlink(project.root().join("secret.md"), link).unwrap();
    insta::assert_snapshot!(project.run(["show", "add-oauth", "leak"]), @"
    exit 1
    --- stderr
    error: `agentd/changes/add-oauth/specs/leak.md` is or contains a symbolic link, which is not followed here
    ");
}

#[test]
fn show_strips_control_characters() {
    let text = "a\u{1b}]0;owned\u{7}b\u{9b}31mc\rd\u{7f}\te\n";
    let project = TestProject::new().change("add-oauth").file("proposal.md", text);
    assert_eq!(project.run(["show"]).fine().stdout, "a]0;ownedb31mcd\te\n");
    let mut forced = project.command(["show"]);
    project.finish(forced.env("CLICOLOR_FORCE", "1")).cannot_steer_a_terminal();
    let run = project.run(["show", "--json"]).fine();
    assert!(!run.stdout.contains(|c: char| c.is_control() && c != '\n'), "{run:#?}");
    assert_eq!(run.json()["text"], *text, "programs get the text as it is");
}

/// Attack L7: a text that is read in another direction than it is written.
#[test]
fn bidi_characters_are_shown() {
    let project = TestProject::new().change("add-oauth").edit(
        "proposal.md",
        "Sign in with OAuth.",
        "Sign in \u{202e}htuAO\u{2066} with \u{200b}OAuth.",
    );
    let shown = |command: &str| {
        let text = project.run([command]).fine().stdout;
        text.lines().find(|line| line.contains("htuAO")).unwrap().escape_debug().to_string()
    };
    insta::assert_snapshot!(shown("list"), @"add-oauth  proposed  not challenged  challenge  1/2  -  2026-11-04T10:00:00Z  -  Sign in ‹U+202E›htuAO‹U+2066› with ‹U+200B›OAuth.");
    insta::assert_snapshot!(shown("status"), @"Sign in ‹U+202E›htuAO‹U+2066› with ‹U+200B›OAuth.");
    insta::assert_snapshot!(shown("show"), @"Sign in ‹U+202E›htuAO‹U+2066› with ‹U+200B›OAuth.");
}
