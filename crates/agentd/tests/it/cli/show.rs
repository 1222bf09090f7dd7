use test_project::TestProject;

#[test]
fn a_document_is_shown_as_it_is() {
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
fn a_main_spec_is_shown_by_its_name() {
    let project =
        TestProject::new().change("add-oauth").root_file("agentd/specs/auth-flow.md", "main\n");
    assert_eq!(project.run(["show", "auth-flow"]).fine().stdout, "main\n");
    let json = project.run(["show", "auth-flow", "--json"]).fine().json();
    assert_eq!(json["file"], "agentd/specs/auth-flow.md");
    project.run(["show", "auth-flow", "tasks"]).exits(1).stderr_has("no change `auth-flow`");
}

#[test]
fn a_document_that_is_not_there_names_those_that_are() {
    let project = TestProject::new().change("add-oauth");
    insta::assert_snapshot!(project.run(["show", "add-oauth", "review"]).transcript(), @r"
    exit 1
    --- stderr
    error: `add-oauth` has no document `review`

    hint: it has: proposal, tasks, state, auth-flow
    ");
    project.run(["show", "add-oauth", "taks"]).exits(1).stderr_has("did you mean `tasks`?");
    let error = project.run(["show", "review", "--json"]).exits(1).json_error();
    assert_eq!(error["kind"], "no_such_document");
    project.run(["show", "nothing"]).exits(1).stderr_has("there is no change `nothing`");
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
    let run = project.run(["show", "add-oauth", "leak"]).exits(1);
    assert_eq!(run.stdout, "");
    run.stderr_has("symbolic link");
}

#[test]
fn control_characters_do_not_reach_a_terminal() {
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
fn characters_that_turn_text_around_are_shown() {
    let project = TestProject::new().change("add-oauth").edit(
        "proposal.md",
        "Sign in with OAuth.",
        "Sign in \u{202e}htuAO\u{2066} with \u{200b}OAuth.",
    );
    for command in ["list", "status", "show"] {
        let run = project.run([command]).fine();
        assert!(run.stdout.contains("‹U+202E›"), "{command}: {}", run.stdout);
        let hidden = |c: char| matches!(c, '\u{200b}' | '\u{202e}' | '\u{2066}');
        assert!(!run.stdout.contains(hidden), "{command}: {}", run.stdout);
    }
}
