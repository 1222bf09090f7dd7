use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use test_project::TestProject;

#[test]
fn init_in_fresh_directory() {
    let project = TestProject::empty().program("claude", "").program("gemini", "");
    let run = project.run(["init"]);
    insta::assert_snapshot!(run.transcript(), @r"
    exit 0
    [ROOT]

    created    agentd/config.toml
    created    agentd/project.md
    created    agentd/.gitignore
    created    GEMINI.md
    created    .gemini/settings.json
    created    .gemini/commands/agentd/plan.toml
    created    .gemini/commands/agentd/impl.toml
    created    .gemini/commands/agentd/archive.toml
    created    .gemini/commands/agentd/revise.toml
    created    .gemini/commands/agentd/rename.toml
    created    .gemini/commands/agentd/drop.toml
    created    CLAUDE.md
    created    .mcp.json
    created    .claude/commands/agentd/plan.md
    created    .claude/commands/agentd/impl.md
    created    .claude/commands/agentd/archive.md
    created    .claude/commands/agentd/revise.md
    created    .claude/commands/agentd/rename.md
    created    .claude/commands/agentd/drop.md

    Roles:
      planner      gemini
      challenger   claude
      implementer  claude
      reviewer     gemini

    This is not a git repository: changes are worked on in place, without branches and commits, and code reviews have no diff. Create one with `git init`.

    Next: describe your project in agentd/project.md, then: agentd doctor
    --- stderr
    ");
    for name in ["agentd/changes", "agentd/specs"] {
        assert!(project.root().join(name).is_dir(), "{name}");
    }
    let entry = json!({ "mcpServers": { "agentd": { "command": "agentd", "args": ["mcp"] } } });
    for name in [".mcp.json", ".gemini/settings.json"] {
        assert_eq!(serde_json::from_str::<Value>(&project.read_root(name)).unwrap(), entry);
    }
    assert_eq!(fs::read_dir(project.home()).unwrap().count(), 0, "the home is not ours");
    project.run(["list"]).exits(0);
}

#[test]
fn init_twice_changes_nothing() {
    let project = TestProject::empty().root_file("CLAUDE.md", "# Mine\n");
    project.run(["init", "--agents", "all"]).fine();
    let before = project.tree();
    insta::assert_snapshot!(project.run(["init", "--agents", "all"]), @r"
    exit 0
    [ROOT]

    unchanged  agentd/config.toml
    unchanged  agentd/project.md
    unchanged  agentd/.gitignore
    unchanged  GEMINI.md
    unchanged  .gemini/settings.json
    unchanged  .gemini/commands/agentd/plan.toml
    unchanged  .gemini/commands/agentd/impl.toml
    unchanged  .gemini/commands/agentd/archive.toml
    unchanged  .gemini/commands/agentd/revise.toml
    unchanged  .gemini/commands/agentd/rename.toml
    unchanged  .gemini/commands/agentd/drop.toml
    unchanged  AGENTS.md
    unchanged  .codex/config.toml
    unchanged  .agents/skills/agentd-plan/SKILL.md
    unchanged  .agents/skills/agentd-impl/SKILL.md
    unchanged  .agents/skills/agentd-archive/SKILL.md
    unchanged  .agents/skills/agentd-revise/SKILL.md
    unchanged  .agents/skills/agentd-rename/SKILL.md
    unchanged  .agents/skills/agentd-drop/SKILL.md
    unchanged  CLAUDE.md
    unchanged  .mcp.json
    unchanged  .claude/commands/agentd/plan.md
    unchanged  .claude/commands/agentd/impl.md
    unchanged  .claude/commands/agentd/archive.md
    unchanged  .claude/commands/agentd/revise.md
    unchanged  .claude/commands/agentd/rename.md
    unchanged  .claude/commands/agentd/drop.md

    Roles:
      planner      gemini
      challenger   codex
      implementer  claude
      reviewer     codex

    Not on PATH: gemini (planner); codex (challenger, reviewer); claude (implementer). Install what is missing, or change [roles] in agentd/config.toml.

    This is not a git repository: changes are worked on in place, without branches and commits, and code reviews have no diff. Create one with `git init`.

    Nothing to do.
    --- stderr
    ");
    assert_eq!(project.tree(), before, "bytes, modes and times");
}

#[test]
fn init_in_repository_uses_its_root() {
    let project = TestProject::empty().root_file(".git/HEAD", "").root_file("src/deep/x", "");
    project.run(["-C", "src/deep", "init", "--agents", "claude"]).fine();
    assert!(project.root().join("agentd/config.toml").is_file());
    assert!(project.root().join("CLAUDE.md").is_file());
    assert!(!project.root().join("src/deep/agentd").exists());
    // A project inside of it stays what it is.
    let inner =
        TestProject::empty().root_file(".git/HEAD", "").root_file("part/agentd/config.toml", "");
    inner.run(["-C", "part", "init", "--agents", "claude"]).fine();
    assert!(inner.root().join("part/CLAUDE.md").is_file());
    assert!(!inner.root().join("agentd").exists());
}

/// Lesson 12.
#[test]
fn init_keeps_what_people_wrote() {
    let mine = "# Rules\r\n\r\n- mine \u{fffd}\r\n";
    let mcp = "{\n\t\"mcpServers\": {\n\t\t\"other\": { \"command\": \"x\", \"args\": [1.50, 1e3] }\n\t},\n\t\"z\": 1,\n\t\"a\": 12345678901234567890\n}";
    let settings =
        "{\"theme\": \"dark\", \"mcpServers\": {\"agentd\": {\"command\": \"/my/agentd\"}}}";
    let project = TestProject::empty()
        .root_file("CLAUDE.md", mine)
        .root_file(".mcp.json", mcp)
        .root_file(".gemini/settings.json", settings)
        .root_file("agentd/config.toml", "[workflow]\naccept_minor = true\n")
        .root_file("agentd/.gitignore", "mine");
    project.run(["init", "--agents", "all"]).fine();
    let text = project.read_root("CLAUDE.md");
    let (kept, block) = text.split_at(mine.len());
    assert_eq!(kept, mine);
    assert_eq!(block.lines().nth(1).unwrap().split(' ').nth(1), Some("agentd:begin"), "{block}");
    let merged = project.read_root(".mcp.json");
    let new: Value = serde_json::from_str(&merged).unwrap();
    let mut old: Value = serde_json::from_str(mcp).unwrap();
    old["mcpServers"]["agentd"] = json!({ "command": "agentd", "args": ["mcp"] });
    assert_eq!(new, old);
    let keys: Vec<&String> = new.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["mcpServers", "z", "a"], "in their order");
    insta::assert_snapshot!(merged.replace('\t', "→"), @r#"
    {
    →"mcpServers": {
    →→"other": {
    →→→"command": "x",
    →→→"args": [
    →→→→1.5,
    →→→→1000.0
    →→→]
    →→},
    →→"agentd": {
    →→→"command": "agentd",
    →→→"args": [
    →→→→"mcp"
    →→→]
    →→}
    →},
    →"z": 1,
    →"a": 12345678901234567890
    }
    "#);
    assert_eq!(
        project.read_root(".gemini/settings.json"),
        settings,
        "an entry of theirs is theirs"
    );
    assert_eq!(project.read_root("agentd/config.toml"), "[workflow]\naccept_minor = true\n");
    assert!(project.read_root("agentd/.gitignore").starts_with("mine\n"));
}

#[test]
fn init_leaves_unknown_files() {
    let outside = TestProject::empty().root_file("theirs.md", "theirs\n");
    let project = TestProject::empty()
        .root_file(".mcp.json", "// mine\n{}\n")
        .root_file("GEMINI.md", [0xff, 0xfe])
        .root_file("AGENTS.md", "<!-- agentd:begin -->\nno end\n");
    let theirs = outside.root().join("theirs.md");
    std::os::unix::fs::symlink(&theirs, project.root().join("CLAUDE.md")).unwrap();
    let before = project.tree();
    insta::assert_snapshot!(project.run(["init", "--agents", "all"]), @r"
    exit 0
    [ROOT]

    created    agentd/config.toml
    created    agentd/project.md
    created    agentd/.gitignore
    left       GEMINI.md: `GEMINI.md` is not valid UTF-8: bad byte at offset 0
    created    .gemini/settings.json
    created    .gemini/commands/agentd/plan.toml
    created    .gemini/commands/agentd/impl.toml
    created    .gemini/commands/agentd/archive.toml
    created    .gemini/commands/agentd/revise.toml
    created    .gemini/commands/agentd/rename.toml
    created    .gemini/commands/agentd/drop.toml
    left       AGENTS.md: its agentd block has no `<!-- agentd:end -->`
    created    .codex/config.toml
    created    .agents/skills/agentd-plan/SKILL.md
    created    .agents/skills/agentd-impl/SKILL.md
    created    .agents/skills/agentd-archive/SKILL.md
    created    .agents/skills/agentd-revise/SKILL.md
    created    .agents/skills/agentd-rename/SKILL.md
    created    .agents/skills/agentd-drop/SKILL.md
    left       CLAUDE.md: `CLAUDE.md` leads outside of the directory it must stay in
    left       .mcp.json: it is not plain JSON; add the server `agentd` with the command `agentd mcp` by hand
    created    .claude/commands/agentd/plan.md
    created    .claude/commands/agentd/impl.md
    created    .claude/commands/agentd/archive.md
    created    .claude/commands/agentd/revise.md
    created    .claude/commands/agentd/rename.md
    created    .claude/commands/agentd/drop.md

    Roles:
      planner      gemini
      challenger   codex
      implementer  claude
      reviewer     codex

    Not on PATH: gemini (planner); codex (challenger, reviewer); claude (implementer). Install what is missing, or change [roles] in agentd/config.toml.

    This is not a git repository: changes are worked on in place, without branches and commits, and code reviews have no diff. Create one with `git init`.

    Next: describe your project in agentd/project.md, then: agentd doctor
    --- stderr
    ");
    for name in [".mcp.json", "GEMINI.md", "AGENTS.md", "CLAUDE.md"] {
        let path = Path::new(name);
        assert_eq!(project.tree()[path], before[path], "{name}");
    }
    assert_eq!(fs::read_to_string(theirs).unwrap(), "theirs\n");
    let json = project.run(["init", "--agents", "all", "--json"]).fine().json();
    let left = json["files"].as_array().unwrap().iter().filter(|file| file["action"] == "left");
    assert_eq!(left.filter(|file| file["reason"].is_string()).count(), 4);
}

#[test]
fn init_keeps_links_between_files() {
    let project = TestProject::empty().root_file("AGENTS.md", "# Ours\n");
    let link = project.root().join("CLAUDE.md");
    std::os::unix::fs::symlink("AGENTS.md", &link).unwrap();
    project.run(["init", "--agents", "all"]).fine();
    assert_eq!(fs::read_link(&link).unwrap().to_str(), Some("AGENTS.md"));
    let text = project.read_root("AGENTS.md");
    assert!(text.starts_with("# Ours\n"));
    assert_eq!(text.matches("<!-- agentd:begin").count(), 1, "{text}");
    let before = project.tree();
    project.run(["init", "--agents", "all"]).fine();
    assert_eq!(project.tree(), before);
    project.run(["uninstall"]).fine();
    assert_eq!(project.read_root("AGENTS.md"), "# Ours\n");
    assert!(link.is_symlink());
}

#[test]
fn init_agents_named_or_on_path() {
    let files = |agents: &[&str]| {
        let project = TestProject::empty().program("codex", "");
        let json = project.run(["init", "--json"].iter().chain(agents)).exits(0).json();
        let names = project.names();
        let there =
            ["CLAUDE.md", "AGENTS.md", "GEMINI.md"].map(|name| names.contains(&name.to_owned()));
        (json["agents"].clone(), there)
    };
    assert_eq!(files(&[]), (json!(["codex"]), [false, true, false]));
    assert_eq!(files(&["--yes"]), (json!(["codex"]), [false, true, false]));
    assert_eq!(files(&["--agents", "all"]), (json!(["gemini", "codex", "claude"]), [true; 3]));
    assert_eq!(files(&["--agents", "none"]), (json!([]), [false; 3]));
    let two = (json!(["gemini", "claude"]), [true, false, true]);
    assert_eq!(files(&["--yes", "--agents", "claude,gemini"]), two);
    assert_eq!(files(&["--agents", "claude, gemini,claude"]), two);
    let none = TestProject::empty();
    insta::assert_snapshot!(none.run(["init"]), @"
    exit 0
    [ROOT]

    created    agentd/config.toml
    created    agentd/project.md
    created    agentd/.gitignore

    This is not a git repository: changes are worked on in place, without branches and commits, and code reviews have no diff. Create one with `git init`.

    Next: describe your project in agentd/project.md, then: agentd doctor
    --- stderr
    No agent was found on PATH; `--agents` names those that you use: claude, codex, gemini, opencode, …
    ");
}

/// Most agents share their files: each is named once.
// contract G7
#[test]
fn agents_over_acp_are_found_and_share_their_files() {
    let project = TestProject::empty();
    let project = ["codex", "opencode", "goose", "agy"]
        .iter()
        .fold(project, |project, agent| project.program(agent, ""));
    let json = project.run(["init", "--json"]).fine().json();
    assert_eq!(json["agents"], serde_json::json!(["codex", "opencode", "goose", "agy"]));
    let files = json["files"].as_array().unwrap().iter();
    let files: Vec<&str> = files.map(|file| file["path"].as_str().unwrap()).collect();
    let unique: std::collections::BTreeSet<&&str> = files.iter().collect();
    assert_eq!(unique.len(), files.len(), "{files:?}");
    assert!(files.contains(&"AGENTS.md"), "{files:?}");
    // Nobody has said whose models two of them use.
    let project = TestProject::empty().program("opencode", "").program("qwen", "");
    let notes = project.run(["init", "--json"]).fine().json()["notes"].to_string();
    assert!(notes.contains("opencode and qwen may use models of the same vendor"), "{notes}");
}

#[test]
fn init_without_terminal_asks_nothing() {
    let project = TestProject::empty().program("codex", "");
    let (reader, writer) = std::io::pipe().unwrap();
    let run = project.finish(project.command(["init"]).stdin(reader)).fine();
    drop(writer);
    insta::assert_snapshot!(run, @r"
    exit 0
    [ROOT]

    created    agentd/config.toml
    created    agentd/project.md
    created    agentd/.gitignore
    created    AGENTS.md
    created    .codex/config.toml
    created    .agents/skills/agentd-plan/SKILL.md
    created    .agents/skills/agentd-impl/SKILL.md
    created    .agents/skills/agentd-archive/SKILL.md
    created    .agents/skills/agentd-revise/SKILL.md
    created    .agents/skills/agentd-rename/SKILL.md
    created    .agents/skills/agentd-drop/SKILL.md

    Roles:
      planner      codex
      challenger   codex
      implementer  codex
      reviewer     codex

    Reviews will not be independent: codex reviews its own plans and code. With a second agent, change [roles].

    This is not a git repository: changes are worked on in place, without branches and commits, and code reviews have no diff. Create one with `git init`.

    Next: describe your project in agentd/project.md, then: agentd doctor
    --- stderr
    ");
}

#[test]
fn misspelled_agent_is_a_usage_error() {
    let project = TestProject::empty();
    insta::assert_snapshot!(project.run(["init", "--agents", "claude,gemni"]).transcript(), @r"
    exit 2
    --- stderr
    error: there is no agent `gemni`

    hint: did you mean `gemini`?
    ");
    insta::assert_snapshot!(project.run(["init", "--agents", "emacs"]), @"
    exit 2
    --- stderr
    error: there is no agent `emacs`

    hint: the agents are gemini, codex, claude, opencode, qwen, copilot, mistral-vibe, cline, kimi, goose, agy; `all` (claude, codex, gemini) and `none` work as well
    ");
    assert_eq!(project.names(), Vec::<String>::new());
}

#[test]
fn init_dry_run_writes_nothing() {
    let project = TestProject::empty().root_file("CLAUDE.md", "# Mine\n");
    let before = project.tree();
    insta::assert_snapshot!(project.run(["init", "--dry-run", "--agents", "claude"]), @r"
    exit 0
    [ROOT]

    create     agentd/config.toml
    create     agentd/project.md
    create     agentd/.gitignore
    update     CLAUDE.md
    create     .mcp.json
    create     .claude/commands/agentd/plan.md
    create     .claude/commands/agentd/impl.md
    create     .claude/commands/agentd/archive.md
    create     .claude/commands/agentd/revise.md
    create     .claude/commands/agentd/rename.md
    create     .claude/commands/agentd/drop.md

    Roles:
      planner      claude
      challenger   claude
      implementer  claude
      reviewer     claude

    Reviews will not be independent: claude reviews its own plans and code. With a second agent, change [roles].

    Not on PATH: claude (planner, challenger, implementer, reviewer). Install what is missing, or change [roles] in agentd/config.toml.

    This is not a git repository: changes are worked on in place, without branches and commits, and code reviews have no diff. Create one with `git init`.

    Nothing was written: this was a dry run.
    --- stderr
    ");
    let json = project.run(["init", "--dry-run", "--agents", "claude", "--json"]).fine().json();
    assert_eq!(json["dry_run"], true);
    assert_eq!(project.tree(), before);
}

/// Root may write everywhere, so it becomes another user first.
fn as_user_who_may_not_write(project: &TestProject, args: &[&str]) -> Command {
    let program = project.bin().join("agentd");
    fs::copy(test_project::agentd(), &program).unwrap();
    for dir in [project.bin(), project.root(), project.root().parent().unwrap().to_owned()] {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o555)).unwrap();
    }
    let mut command = Command::new(program);
    command.args(args).current_dir(project.root()).env_clear().env("PATH", project.bin());
    if rustix::process::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    command
}

#[test]
fn init_in_read_only_directory() {
    let project = TestProject::empty();
    let mut command = as_user_who_may_not_write(&project, &["init", "--agents", "all"]);
    insta::assert_snapshot!(project.finish(&mut command), @"
    exit 1
    --- stderr
    error: cannot create `agentd`
      cause: Permission denied (os error 13)

    hint: check who owns the files and who may write to them: ls -la agentd
    ");
    let writable = fs::Permissions::from_mode(0o755);
    for dir in [project.root().parent().unwrap().to_owned(), project.bin(), project.root()] {
        fs::set_permissions(dir, writable.clone()).unwrap();
    }
    assert_eq!(project.names(), Vec::<String>::new());
}

#[test]
fn init_with_file_in_the_way() {
    let project = TestProject::empty().root_file("agentd", "a file\n");
    insta::assert_snapshot!(project.run(["init", "--agents", "none"]), @"
    exit 1
    --- stderr
    error: `agentd` is not a directory, or leads through something that is not one
    ");
    assert_eq!(project.read_root("agentd"), "a file\n");
}

const WORKFLOWS: [&str; 18] = [
    ".claude/commands/agentd/plan.md",
    ".claude/commands/agentd/impl.md",
    ".claude/commands/agentd/archive.md",
    ".claude/commands/agentd/revise.md",
    ".claude/commands/agentd/rename.md",
    ".claude/commands/agentd/drop.md",
    ".gemini/commands/agentd/plan.toml",
    ".gemini/commands/agentd/impl.toml",
    ".gemini/commands/agentd/archive.toml",
    ".gemini/commands/agentd/revise.toml",
    ".gemini/commands/agentd/rename.toml",
    ".gemini/commands/agentd/drop.toml",
    ".agents/skills/agentd-plan/SKILL.md",
    ".agents/skills/agentd-impl/SKILL.md",
    ".agents/skills/agentd-archive/SKILL.md",
    ".agents/skills/agentd-revise/SKILL.md",
    ".agents/skills/agentd-rename/SKILL.md",
    ".agents/skills/agentd-drop/SKILL.md",
];

#[test]
fn workflows_for_every_agent() {
    let project = TestProject::empty();
    insta::assert_snapshot!(project.run(["init", "--agents", "all", "--dry-run"]), @r"
    exit 0
    [ROOT]

    create     agentd/config.toml
    create     agentd/project.md
    create     agentd/.gitignore
    create     GEMINI.md
    create     .gemini/settings.json
    create     .gemini/commands/agentd/plan.toml
    create     .gemini/commands/agentd/impl.toml
    create     .gemini/commands/agentd/archive.toml
    create     .gemini/commands/agentd/revise.toml
    create     .gemini/commands/agentd/rename.toml
    create     .gemini/commands/agentd/drop.toml
    create     AGENTS.md
    create     .codex/config.toml
    create     .agents/skills/agentd-plan/SKILL.md
    create     .agents/skills/agentd-impl/SKILL.md
    create     .agents/skills/agentd-archive/SKILL.md
    create     .agents/skills/agentd-revise/SKILL.md
    create     .agents/skills/agentd-rename/SKILL.md
    create     .agents/skills/agentd-drop/SKILL.md
    create     CLAUDE.md
    create     .mcp.json
    create     .claude/commands/agentd/plan.md
    create     .claude/commands/agentd/impl.md
    create     .claude/commands/agentd/archive.md
    create     .claude/commands/agentd/revise.md
    create     .claude/commands/agentd/rename.md
    create     .claude/commands/agentd/drop.md

    Roles:
      planner      gemini
      challenger   codex
      implementer  claude
      reviewer     codex

    Not on PATH: gemini (planner); codex (challenger, reviewer); claude (implementer). Install what is missing, or change [roles] in agentd/config.toml.

    This is not a git repository: changes are worked on in place, without branches and commits, and code reviews have no diff. Create one with `git init`.

    Nothing was written: this was a dry run.
    --- stderr
    ");
    assert_eq!(project.names(), Vec::<String>::new());
    project.run(["init", "--agents", "all"]).fine();
    let asking = |name: &str| {
        let text = project.read_root(name);
        let lines = text
            .lines()
            .filter(|line| line.starts_with("- Ask ") || line.contains("agentd clarify <id>"));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    insta::assert_snapshot!(asking(".claude/commands/agentd/plan.md"), @r#"
       - `proposed`, or `null`: `agentd clarify <id> --show --json`. With `needed` true, continue
       `agentd clarify <id> "<description>" --json` answers with 3 to 5 `questions`. Ask the user
       `agentd clarify <id> --answers - --json` on standard input.
    - Ask with the tool AskUserQuestion: at most four questions in one call, headers of at most 12 characters, the recommended option first with " (Recommended)" behind its label.
    "#);
    insta::assert_snapshot!(asking(".gemini/commands/agentd/plan.toml"), @r#"
       - `proposed`, or `null`: `agentd clarify <id> --show --json`. With `needed` true, continue
       `agentd clarify <id> "<description>" --json` answers with 3 to 5 `questions`. Ask the user
       `agentd clarify <id> --answers - --json` on standard input.
    - Ask with the tool `ask_user` if you have it, else in plain words with numbered options, the recommended one first; then wait for the answer.
    "#);
    insta::assert_snapshot!(asking(".agents/skills/agentd-plan/SKILL.md"), @r#"
       - `proposed`, or `null`: `agentd clarify <id> --show --json`. With `needed` true, continue
       `agentd clarify <id> "<description>" --json` answers with 3 to 5 `questions`. Ask the user
       `agentd clarify <id> --answers - --json` on standard input.
    - Ask in plain words with numbered options, the recommended one first, or with a question tool if you have one; then wait for the answer.
    "#);
    let claude = TestProject::empty();
    claude.run(["init", "--agents", "claude"]).fine();
    let there = |name: &&&str| claude.root().join(name).exists();
    assert_eq!(
        WORKFLOWS.iter().filter(there).count(),
        WORKFLOWS.len() / 3,
        "those of the agent only"
    );
}

/// Lesson 12.
#[test]
fn edited_workflow_is_kept() {
    let project = TestProject::empty();
    project.run(["init", "--agents", "all"]).fine();
    let mine = "# My own plan\n";
    let project = project
        .root_file(".claude/commands/agentd/plan.md", mine)
        .root_file(".gemini/commands/agentd/archive.toml", mine);
    let before = project.tree();
    insta::assert_snapshot!(project.run(["init", "--agents", "all"]), @r"
    exit 0
    [ROOT]

    unchanged  agentd/config.toml
    unchanged  agentd/project.md
    unchanged  agentd/.gitignore
    unchanged  GEMINI.md
    unchanged  .gemini/settings.json
    unchanged  .gemini/commands/agentd/plan.toml
    unchanged  .gemini/commands/agentd/impl.toml
    left       .gemini/commands/agentd/archive.toml: it was edited; remove it to get agentd's own
    unchanged  .gemini/commands/agentd/revise.toml
    unchanged  .gemini/commands/agentd/rename.toml
    unchanged  .gemini/commands/agentd/drop.toml
    unchanged  AGENTS.md
    unchanged  .codex/config.toml
    unchanged  .agents/skills/agentd-plan/SKILL.md
    unchanged  .agents/skills/agentd-impl/SKILL.md
    unchanged  .agents/skills/agentd-archive/SKILL.md
    unchanged  .agents/skills/agentd-revise/SKILL.md
    unchanged  .agents/skills/agentd-rename/SKILL.md
    unchanged  .agents/skills/agentd-drop/SKILL.md
    unchanged  CLAUDE.md
    unchanged  .mcp.json
    left       .claude/commands/agentd/plan.md: it was edited; remove it to get agentd's own
    unchanged  .claude/commands/agentd/impl.md
    unchanged  .claude/commands/agentd/archive.md
    unchanged  .claude/commands/agentd/revise.md
    unchanged  .claude/commands/agentd/rename.md
    unchanged  .claude/commands/agentd/drop.md

    Roles:
      planner      gemini
      challenger   codex
      implementer  claude
      reviewer     codex

    Not on PATH: gemini (planner); codex (challenger, reviewer); claude (implementer). Install what is missing, or change [roles] in agentd/config.toml.

    This is not a git repository: changes are worked on in place, without branches and commits, and code reviews have no diff. Create one with `git init`.
    --- stderr
    ");
    assert_eq!(project.tree(), before);
    insta::assert_snapshot!(project.run(["uninstall"]), @r"
    exit 0
    [ROOT]

    removed    GEMINI.md
    removed    .gemini/settings.json
    removed    .gemini/commands/agentd/plan.toml
    removed    .gemini/commands/agentd/impl.toml
    left       .gemini/commands/agentd/archive.toml: it was edited
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
    left       .claude/commands/agentd/plan.md: it was edited
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
    assert_eq!(project.read_root(".claude/commands/agentd/plan.md"), mine);
    insta::assert_snapshot!(project.names().join("\n"), @"
    .claude
    .claude/commands
    .claude/commands/agentd
    .claude/commands/agentd/plan.md
    .gemini
    .gemini/commands
    .gemini/commands/agentd
    .gemini/commands/agentd/archive.toml
    ");
}
