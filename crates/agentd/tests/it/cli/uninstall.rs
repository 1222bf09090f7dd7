use test_project::TestProject;

#[test]
fn nothing_is_left_where_nothing_was() {
    let project = TestProject::empty();
    project.run(["init", "--agents", "all"]).fine();
    assert!(project.names().len() > 8);
    let run = project.run(["uninstall"]).fine();
    run.stdout_has("removed    CLAUDE.md").stdout_has("removed    agentd/config.toml");
    assert_eq!(project.names(), Vec::<String>::new());
    project.run(["uninstall"]).exits(1).stderr_has("there is no agentd project here");
}

#[test]
fn what_was_there_is_as_it_was() {
    let mine = "{\n    \"a\": 1,\n    \"mcpServers\": {\n        \"other\": {\n            \"command\": \"x\"\n        }\n    }\n}\n";
    let project = TestProject::empty()
        .root_file("CLAUDE.md", "# Mine\n\nRules.\n")
        .root_file(".mcp.json", mine)
        .root_file(".gemini/settings.json", "{\n  \"theme\": \"dark\"\n}\n")
        .root_file("src/main.rs", "");
    let bytes = |project: &TestProject| {
        project
            .names()
            .into_iter()
            .map(|name| (std::fs::read(project.root().join(&name)).ok(), name))
            .collect::<Vec<_>>()
    };
    let before = bytes(&project);
    project.run(["init", "--agents", "all"]).fine();
    assert_ne!(bytes(&project), before);
    project.run(["uninstall"]).fine();
    assert_eq!(bytes(&project), before);
}

#[test]
fn what_people_wrote_or_edited_stays() {
    let project = TestProject::empty();
    project.run(["init", "--agents", "claude"]).fine();
    let project = project.change("add-oauth").root_file("agentd/project.md", "# Ours\n");
    let edited = project.read_root("CLAUDE.md").replace("agentd list", "agentd list --json");
    let project = project.root_file("CLAUDE.md", &edited);
    let run = project.run(["uninstall"]).fine();
    run.stdout_has("left       CLAUDE.md: its agentd block was edited")
        .stdout_has("left       agentd/project.md: it was edited")
        .stdout_has("removed    .mcp.json");
    assert_eq!(project.read_root("CLAUDE.md"), edited);
    assert_eq!(project.read_root("agentd/project.md"), "# Ours\n");
    project.run(["list"]).fine().stdout_has("add-oauth");
}

#[test]
fn a_link_that_people_made_stays() {
    let project = TestProject::empty();
    let link = project.root().join("GEMINI.md");
    std::os::unix::fs::symlink("AGENTS.md", &link).unwrap();
    project.run(["init", "--agents", "codex,gemini"]).fine();
    assert!(project.read_root("GEMINI.md").contains("agentd:begin"), "both read the one file");
    project.run(["uninstall"]).fine();
    assert_eq!(project.names(), ["GEMINI.md"]);
    assert!(link.is_symlink());
}

#[test]
fn a_dry_run_removes_nothing() {
    let project = TestProject::empty();
    project.run(["init", "--agents", "all"]).fine();
    let before = project.tree();
    let run = project.run(["uninstall", "--dry-run"]).fine();
    run.stdout_has("remove     CLAUDE.md").stdout_has("Nothing was written");
    assert_eq!(project.tree(), before);
    let json = project.run(["uninstall", "--dry-run", "--json"]).fine().json();
    assert_eq!(json["dry_run"], true);
    assert_eq!(project.tree(), before);
}
