use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use test_project::TestProject;

#[test]
fn a_fresh_directory() {
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
    created    CLAUDE.md
    created    .mcp.json
    created    .claude/commands/agentd/plan.md
    created    .claude/commands/agentd/impl.md
    created    .claude/commands/agentd/archive.md

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
fn twice_changes_nothing() {
    let project = TestProject::empty().root_file("CLAUDE.md", "# Mine\n");
    project.run(["init", "--agents", "all"]).fine();
    let before = project.tree();
    let run = project.run(["init", "--agents", "all"]).fine();
    run.stdout_has("unchanged  CLAUDE.md").stdout_has("\nNothing to do.\n");
    assert_eq!(project.tree(), before, "bytes, modes and times");
}

#[test]
fn in_a_repository_the_root_is_set_up() {
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
fn what_people_wrote_is_kept() {
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
    assert!(text.starts_with(mine) && text.contains("<!-- agentd:begin"), "{text}");
    let merged = project.read_root(".mcp.json");
    let new: Value = serde_json::from_str(&merged).unwrap();
    let mut old: Value = serde_json::from_str(mcp).unwrap();
    old["mcpServers"]["agentd"] = json!({ "command": "agentd", "args": ["mcp"] });
    assert_eq!(new, old);
    let keys: Vec<&String> = new.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["mcpServers", "z", "a"], "in their order");
    assert!(merged.contains("12345678901234567890") && merged.contains("\n\t\"z\": 1"), "{merged}");
    assert_eq!(
        project.read_root(".gemini/settings.json"),
        settings,
        "an entry of theirs is theirs"
    );
    assert_eq!(project.read_root("agentd/config.toml"), "[workflow]\naccept_minor = true\n");
    assert!(project.read_root("agentd/.gitignore").starts_with("mine\n"));
}

#[test]
fn files_in_a_shape_that_agentd_does_not_know_are_left() {
    let outside = TestProject::empty().root_file("theirs.md", "theirs\n");
    let project = TestProject::empty()
        .root_file(".mcp.json", "// mine\n{}\n")
        .root_file("GEMINI.md", [0xff, 0xfe])
        .root_file("AGENTS.md", "<!-- agentd:begin -->\nno end\n");
    let theirs = outside.root().join("theirs.md");
    std::os::unix::fs::symlink(&theirs, project.root().join("CLAUDE.md")).unwrap();
    let before = project.tree();
    let run = project.run(["init", "--agents", "all"]).fine();
    for name in [".mcp.json", "GEMINI.md", "AGENTS.md", "CLAUDE.md"] {
        assert!(run.stdout.contains(&format!("left       {name}: ")), "{run:#?}");
        let path = Path::new(name);
        assert_eq!(project.tree()[path], before[path], "{name}");
    }
    assert_eq!(fs::read_to_string(theirs).unwrap(), "theirs\n");
    let json = project.run(["init", "--agents", "all", "--json"]).fine().json();
    let left = json["files"].as_array().unwrap().iter().filter(|file| file["action"] == "left");
    assert_eq!(left.filter(|file| file["reason"].is_string()).count(), 4);
}

#[test]
fn a_link_between_the_files_stays_a_link() {
    let project = TestProject::empty().root_file("AGENTS.md", "# Ours\n");
    let link = project.root().join("CLAUDE.md");
    std::os::unix::fs::symlink("AGENTS.md", &link).unwrap();
    project.run(["init", "--agents", "all"]).fine();
    assert_eq!(fs::read_link(&link).unwrap().to_str(), Some("AGENTS.md"));
    let text = project.read_root("AGENTS.md");
    assert!(text.starts_with("# Ours\n"));
    assert_eq!(text.matches("<!-- agentd:begin").count(), 1, "{text}");
    let before = project.tree();
    project.run(["init", "--agents", "all"]).fine().stdout_has("Nothing to do.");
    assert_eq!(project.tree(), before);
    project.run(["uninstall"]).fine();
    assert_eq!(project.read_root("AGENTS.md"), "# Ours\n");
    assert!(link.is_symlink());
}

#[test]
fn agents_are_those_named_or_those_on_path() {
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
    none.run(["init"]).exits(0).stderr_has("No agent was found on PATH; `--agents` names");
}

#[test]
fn without_a_terminal_nothing_is_asked_even_if_somebody_could_answer() {
    let project = TestProject::empty().program("codex", "");
    let (reader, writer) = std::io::pipe().unwrap();
    let run = project.finish(project.command(["init"]).stdin(reader)).fine();
    drop(writer);
    run.stdout_has("created    AGENTS.md");
}

#[test]
fn a_misspelt_agent_is_wrong_usage_and_nothing_is_written() {
    let project = TestProject::empty();
    insta::assert_snapshot!(project.run(["init", "--agents", "claude,gemni"]).transcript(), @r"
    exit 2
    --- stderr
    error: there is no agent `gemni`

    hint: did you mean `gemini`?
    ");
    project.run(["init", "--agents", "emacs"]).exits(2).stderr_has("claude, codex and gemini");
    assert_eq!(project.names(), Vec::<String>::new());
}

#[test]
fn a_dry_run_says_what_it_would_do_and_writes_nothing() {
    let project = TestProject::empty().root_file("CLAUDE.md", "# Mine\n");
    let before = project.tree();
    let run = project.run(["init", "--dry-run", "--agents", "claude"]).fine();
    run.stdout_has("create     agentd/config.toml")
        .stdout_has("update     CLAUDE.md")
        .stdout_has("Nothing was written: this was a dry run.");
    let json = project.run(["init", "--dry-run", "--agents", "claude", "--json"]).fine().json();
    assert_eq!(json["dry_run"], true);
    assert_eq!(project.tree(), before);
}

/// Root may write everywhere, so it becomes somebody else first.
fn as_somebody_who_may_not_write(project: &TestProject, args: &[&str]) -> Command {
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
fn a_directory_that_cannot_be_written_is_an_error_with_its_cause() {
    let project = TestProject::empty();
    let mut command = as_somebody_who_may_not_write(&project, &["init", "--agents", "all"]);
    let run = project.finish(&mut command).exits(1);
    assert_eq!(run.stdout, "");
    let run = run.stderr_has("error: cannot create `agentd`");
    run.stderr_has("cause: Permission denied (os error 13)").stderr_lacks("panicked");
    let writable = fs::Permissions::from_mode(0o755);
    for dir in [project.root().parent().unwrap().to_owned(), project.bin(), project.root()] {
        fs::set_permissions(dir, writable.clone()).unwrap();
    }
    assert_eq!(project.names(), Vec::<String>::new());
}

#[test]
fn a_file_in_the_way_is_an_error() {
    let project = TestProject::empty().root_file("agentd", "a file\n");
    let run = project.run(["init", "--agents", "none"]).exits(1);
    run.stderr_has("`agentd").stderr_lacks("panicked");
    assert_eq!(project.read_root("agentd"), "a file\n");
}

const WORKFLOWS: [&str; 9] = [
    ".claude/commands/agentd/plan.md",
    ".claude/commands/agentd/impl.md",
    ".claude/commands/agentd/archive.md",
    ".gemini/commands/agentd/plan.toml",
    ".gemini/commands/agentd/impl.toml",
    ".gemini/commands/agentd/archive.toml",
    ".agents/skills/agentd-plan/SKILL.md",
    ".agents/skills/agentd-impl/SKILL.md",
    ".agents/skills/agentd-archive/SKILL.md",
];

#[test]
fn every_agent_gets_the_workflow_in_its_own_form() {
    let project = TestProject::empty();
    let planned = project.run(["init", "--agents", "all", "--dry-run"]).fine();
    for name in WORKFLOWS {
        assert!(planned.stdout.contains(&format!("create     {name}")), "{planned:#?}");
    }
    assert_eq!(project.names(), Vec::<String>::new());
    project.run(["init", "--agents", "all"]).fine();
    let ask = [("AskUserQuestion", 0), ("`ask_user`", 3), ("question tool", 6)];
    for (words, at) in ask {
        let text = project.read_root(WORKFLOWS[at]);
        assert!(text.contains(words) && text.contains("agentd clarify <id>"), "{text}");
    }
    let claude = TestProject::empty();
    claude.run(["init", "--agents", "claude"]).fine();
    let there = |name: &&&str| claude.root().join(name).exists();
    assert_eq!(WORKFLOWS.iter().filter(there).count(), 3, "those of the agent only");
}

/// Lesson 12.
#[test]
fn a_workflow_that_was_edited_is_theirs() {
    let project = TestProject::empty();
    project.run(["init", "--agents", "all"]).fine();
    let mine = "# My own plan\n";
    let project = project.root_file(WORKFLOWS[0], mine).root_file(WORKFLOWS[5], mine);
    let before = project.tree();
    let run = project.run(["init", "--agents", "all"]).fine();
    for name in [WORKFLOWS[0], WORKFLOWS[5]] {
        assert!(run.stdout.contains(&format!("left       {name}: it was edited")), "{run:#?}");
    }
    assert_eq!(project.tree(), before);
    let run = project.run(["uninstall"]).fine();
    run.stdout_has(&format!("left       {}: it was edited", WORKFLOWS[0]))
        .stdout_has(&format!("removed    {}", WORKFLOWS[1]));
    assert_eq!(project.read_root(WORKFLOWS[0]), mine);
    let names = project.names();
    assert!(!names.iter().any(|name| name.starts_with(".agents")), "{names:?}");
    assert!(names.contains(&WORKFLOWS[5].to_owned()) && !names.contains(&"AGENTS.md".to_owned()));
}
