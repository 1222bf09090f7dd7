//! What a person at a terminal meets: questions, keys, Ctrl-C.

use terminal::{CTRL_C, DOWN, Terminal};

use test_project::TestProject;

#[test]
fn init_asks_for_agents() {
    let project = TestProject::empty().program("codex", "");
    let mut terminal = Terminal::start(project.command(["init"]).env("NO_COLOR", "1"));
    terminal.wait_for("Which agents work on this project?");
    terminal.wait_for("[x] codex");
    // Not codex, which is marked because it is on PATH, but claude below it.
    terminal.press(DOWN);
    terminal.press(" ");
    terminal.wait_for("[ ] codex");
    terminal.press(DOWN);
    terminal.press(" ");
    terminal.wait_for("[x] claude");
    terminal.press("\r");
    terminal.wait_for("CLAUDE.md");
    let (code, _) = terminal.end();
    assert_eq!(code, Some(0));
    let mut names = vec!["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
    names.retain(|name| project.has_root(name));
    assert_eq!(names, ["CLAUDE.md"]);
}

#[test]
fn ctrl_c_at_init_writes_nothing() {
    let project = TestProject::empty();
    let mut terminal = Terminal::start(project.command(["init"]).env("NO_COLOR", "1"));
    terminal.wait_for("Which agents work on this project?");
    terminal.press(CTRL_C);
    let (code, _) = terminal.end();
    assert_eq!(code, Some(130));
    assert_eq!(project.names(), Vec::<String>::new());
}

#[test]
fn given_answers_are_not_asked_for() {
    for args in [vec!["init", "--yes"], vec!["init", "--agents", "none"], vec!["init", "--json"]] {
        let project = TestProject::empty();
        let (code, seen) = Terminal::start(&mut project.command(&args)).end();
        assert_eq!(code, Some(0), "{args:?}");
        assert!(!seen.contains("Which agents"), "{seen}");
        assert!(project.root().join("agentd/config.toml").is_file());
    }
}

#[test]
fn terminal_colors() {
    let project = TestProject::new().change("add-oauth");
    let (code, seen) = Terminal::start(&mut project.command(["list"])).end();
    assert_eq!(code, Some(0));
    assert!(seen.contains("\u{1b}[1madd-oauth\u{1b}[0m"), "{seen:?}");
    let plain = |seen: &str| anstream::adapter::strip_str(seen).to_string();
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (_, without) = Terminal::start(project.command(["list"]).env(name, value)).end();
        assert_eq!(without, plain(&seen), "{name}");
    }
}
