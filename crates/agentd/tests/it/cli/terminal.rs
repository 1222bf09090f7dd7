//! What a person at a terminal meets: questions, keys, Ctrl-C.

use agentd_core::diagnostic::Severity;
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

/// Issue 19: at a terminal `decide` shows the issues and asks, also which of several is meant; Esc is
/// no error, and says how to come back.
#[test]
fn decide_asks() {
    let project = TestProject::new()
        .change("add-oauth")
        .challenged(&[Severity::High])
        .change("add-login")
        .challenged(&[Severity::Low])
        .change("add-search");
    let start = |args: &[&str]| Terminal::start(project.command(args).env("NO_COLOR", "1"));
    let mut terminal = start(&["decide"]);
    terminal.wait_for("Which change?");
    terminal.wait_for("> add-login");
    terminal.wait_for("needs revision · Sign in with OAuth.");
    terminal.press(DOWN);
    terminal.press("\r");
    terminal.wait_for("HIGH");
    terminal.wait_for("The plan needs revision. What next?");
    terminal.wait_for("The planner revises the plan, then it is reviewed again.");
    terminal.press("\u{1b}");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(130), "{seen}");
    assert!(seen.contains("Stopped.") && !seen.contains("error"), "{seen}");
    assert!(seen.contains("hint: answer it later: agentd decide add-oauth"), "{seen}");
    assert!(!seen.contains("Accept it"), "{seen}");

    let mut terminal = start(&["decide", "add-login"]);
    terminal.wait_for("Accept it with its minor issues");
    for _ in 0..2 {
        terminal.press(DOWN);
    }
    terminal.wait_for("> Accept it");
    terminal.press("\r");
    terminal.wait_for("add-login is challenged; the decision is recorded");
    let (code, seen) = terminal.end();
    assert_eq!((code, seen.matches("Next: ").count()), (Some(0), 1), "{seen}");
}

/// Issue 19: an ID may be typed as people write it, one can go back, and where a sentence gives no ID,
/// none is made up.
#[test]
fn a_new_change_is_named() {
    let project = TestProject::new();
    let mut terminal = Terminal::start(project.command(["plan"]).env("NO_COLOR", "1"));
    terminal.wait_for("What do you want?");
    terminal.press("新增登入\r");
    terminal.wait_for("? What is it called?");
    terminal.wait_for("lower-case letters, digits and hyphens");
    terminal.press("\u{1b}[Z");
    terminal.wait_for("? What do you want?");
    terminal.press("Greet people\r");
    terminal.wait_for("? What is it called?");
    terminal.wait_for("greet");
    terminal.press("\u{15}Greet By Name\r");
    terminal.wait_for("The change is called `greet-by-name`.");
    terminal.wait_for("Esc stops");
    terminal.press(CTRL_C);
    assert_eq!(terminal.end().0, Some(130));
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
