use test_project::TestProject;

#[test]
fn uninstall_leaves_nothing() {
    let project = TestProject::empty();
    project.run(["init", "--agents", "all"]).fine();
    assert!(project.names().len() > 8);
    insta::assert_snapshot!(project.run(["uninstall"]), @r"
    exit 0
    [ROOT]

    removed    GEMINI.md
    removed    .gemini/settings.json
    removed    .gemini/commands/agentd/plan.toml
    removed    .gemini/commands/agentd/impl.toml
    removed    .gemini/commands/agentd/archive.toml
    removed    .gemini/commands/agentd/revise.toml
    removed    .gemini/commands/agentd/rename.toml
    removed    .gemini/commands/agentd/drop.toml
    removed    AGENTS.md
    removed    .codex/config.toml
    removed    .agents/skills/agentd-plan/SKILL.md
    removed    .agents/skills/agentd-impl/SKILL.md
    removed    .agents/skills/agentd-archive/SKILL.md
    removed    .agents/skills/agentd-revise/SKILL.md
    removed    .agents/skills/agentd-rename/SKILL.md
    removed    .agents/skills/agentd-drop/SKILL.md
    removed    CLAUDE.md
    removed    .mcp.json
    removed    .claude/commands/agentd/plan.md
    removed    .claude/commands/agentd/impl.md
    removed    .claude/commands/agentd/archive.md
    removed    .claude/commands/agentd/revise.md
    removed    .claude/commands/agentd/rename.md
    removed    .claude/commands/agentd/drop.md
    removed    agentd/config.toml
    removed    agentd/project.md
    removed    agentd/.gitignore
    --- stderr
    ");
    assert_eq!(project.names(), Vec::<String>::new());
    insta::assert_snapshot!(project.run(["uninstall"]), @"
    exit 1
    --- stderr
    error: there is no agentd project here
      cause: no agentd project in [ROOT] or any directory above it

    hint: set one up in [ROOT]: agentd init
    ");
}

#[test]
fn uninstall_restores_files() {
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
fn uninstall_keeps_edits() {
    let project = TestProject::empty();
    project.run(["init", "--agents", "claude"]).fine();
    let project = project.change("add-oauth").root_file("agentd/project.md", "# Ours\n");
    let edited = project.read_root("CLAUDE.md").replace("agentd list", "agentd list --json");
    let project = project.root_file("CLAUDE.md", &edited);
    insta::assert_snapshot!(project.run(["uninstall"]), @"
    exit 0
    [ROOT]

    left       CLAUDE.md: its agentd block was edited
    removed    .mcp.json
    removed    .claude/commands/agentd/plan.md
    removed    .claude/commands/agentd/impl.md
    removed    .claude/commands/agentd/archive.md
    removed    .claude/commands/agentd/revise.md
    removed    .claude/commands/agentd/rename.md
    removed    .claude/commands/agentd/drop.md
    removed    agentd/config.toml
    left       agentd/project.md: it was edited
    removed    agentd/.gitignore
    --- stderr
    ");
    assert_eq!(project.read_root("CLAUDE.md"), edited);
    assert_eq!(project.read_root("agentd/project.md"), "# Ours\n");
    insta::assert_snapshot!(project.run(["list"]), @"
    exit 0
    add-oauth  proposed  not challenged  challenge  1/2  -  [TIME]  -  Sign in with OAuth.
    --- stderr
    ");
}

#[test]
fn uninstall_keeps_links() {
    let project = TestProject::empty();
    let link = project.root().join("GEMINI.md");
    std::os::unix::fs::symlink("AGENTS.md", &link).unwrap();
    project.run(["init", "--agents", "codex,gemini"]).fine();
    let shared = project.read_root("AGENTS.md");
    assert_eq!(project.read_root("GEMINI.md"), shared, "both read the one file");
    assert_eq!(shared.matches("agentd:begin").count(), 1, "{shared}");
    project.run(["uninstall"]).fine();
    assert_eq!(project.names(), ["GEMINI.md"]);
    assert!(link.is_symlink());
}

#[test]
fn uninstall_dry_run() {
    let project = TestProject::empty();
    project.run(["init", "--agents", "all"]).fine();
    let before = project.tree();
    insta::assert_snapshot!(project.run(["uninstall", "--dry-run"]), @r"
    exit 0
    [ROOT]

    remove     GEMINI.md
    remove     .gemini/settings.json
    remove     .gemini/commands/agentd/plan.toml
    remove     .gemini/commands/agentd/impl.toml
    remove     .gemini/commands/agentd/archive.toml
    remove     .gemini/commands/agentd/revise.toml
    remove     .gemini/commands/agentd/rename.toml
    remove     .gemini/commands/agentd/drop.toml
    remove     AGENTS.md
    remove     .codex/config.toml
    remove     .agents/skills/agentd-plan/SKILL.md
    remove     .agents/skills/agentd-impl/SKILL.md
    remove     .agents/skills/agentd-archive/SKILL.md
    remove     .agents/skills/agentd-revise/SKILL.md
    remove     .agents/skills/agentd-rename/SKILL.md
    remove     .agents/skills/agentd-drop/SKILL.md
    remove     CLAUDE.md
    remove     .mcp.json
    remove     .claude/commands/agentd/plan.md
    remove     .claude/commands/agentd/impl.md
    remove     .claude/commands/agentd/archive.md
    remove     .claude/commands/agentd/revise.md
    remove     .claude/commands/agentd/rename.md
    remove     .claude/commands/agentd/drop.md
    remove     agentd/config.toml
    remove     agentd/project.md
    remove     agentd/.gitignore

    Nothing was written: this was a dry run.
    --- stderr
    ");
    assert_eq!(project.tree(), before);
    let json = project.run(["uninstall", "--dry-run", "--json"]).fine().json();
    assert_eq!(json["dry_run"], true);
    assert_eq!(project.tree(), before);
}
