//! Questions before a plan: proposed by a planner through the real MCP server, and
//! answered on a terminal or from a file.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use terminal::{CTRL_C, DOWN, Terminal};

use test_project::TestProject;

const START: &str = r#"{"type":"system","subtype":"init","session_id":"daa347b4","mcp_servers":[{"name":"agentd","status":"connected"}],"model":"claude-opus-4-8"}"#;
const SAY: &str = r#"{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-opus-4-8","content":[{"type":"text","text":"Asked."}]},"session_id":"daa347b4"}"#;
const END: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"Asked.","session_id":"daa347b4","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":2}}"#;
const FILE: &str = "agentd/changes/add-login/clarifications.md";

fn questions() -> Value {
    let question = |header: &str, labels: [&str; 2], multi_select: bool| {
        let option =
            |label: &str| json!({"label": label, "description": format!("Means {label}.")});
        json!({"header": header, "question": format!("Which {header}?"),
            "options": labels.map(option), "multi_select": multi_select})
    };
    json!([
        question("Method", ["OAuth", "Password"], false),
        question("Storage", ["PostgreSQL", "SQLite"], false),
        question("Clients", ["Web", "Phone"], true),
    ])
}

/// A project whose planner proposes questions, as a real one does: it starts the MCP
/// server that it was told of and calls the tool. Each call leaves a line in `calls`.
fn project() -> TestProject {
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "propose_questions",
        "arguments": {"change_id": "add-login", "questions": questions()}}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "stand-in", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let script = format!(
        "while read -r line; do case \"$line\" in agentd\\ clarify*) echo \"$line\" >> \"$HOME/.claude/calls\";; esac; done\n\
         echo '{START}'\n\
         printf '%s\\n' '{hello}' '{ready}' '{call}' | '{}' mcp --change add-login --role planner --step clarify >/dev/null\n\
         echo '{SAY}'\necho '{END}'",
        test_project::agentd().display()
    );
    TestProject::new()
        .root_file(
            "agentd/config.toml",
            "[workflow]\nscript_retries = 0\n[roles]\nplanner = \"claude\"\n",
        )
        .program("claude", &script)
}

fn calls(project: &TestProject) -> usize {
    let text = std::fs::read_to_string(project.home().join(".claude/calls")).unwrap_or_default();
    text.lines().count()
}

fn ask(project: &TestProject) -> Terminal {
    let args = ["clarify", "add-login", "Add a login"];
    Terminal::start(project.command(args).env("NO_COLOR", "1"))
}

/// P2, P4: arrow keys, the recommended one first, own words, several.
#[test]
fn a_person_answers_with_arrow_keys_and_the_answers_are_written() {
    let project = project();
    let mut terminal = ask(&project);
    terminal.wait_for("Method (1 of 3)");
    terminal.wait_for("Which Method?");
    terminal.wait_for("> OAuth (recommended): Means OAuth.");
    terminal.press("\r");
    terminal.wait_for("Which Storage?");
    terminal.wait_for("other: type your own answer");
    terminal.press(DOWN);
    terminal.press(DOWN);
    terminal.press("\r");
    terminal.wait_for("Your answer:");
    terminal.press("A plain file\r");
    terminal.wait_for("Which Clients?");
    terminal.wait_for("[ ] Web (recommended)");
    terminal.press(" ");
    terminal.wait_for("[x] Web");
    terminal.press(DOWN);
    terminal.press(" ");
    terminal.wait_for("[x] Phone");
    terminal.press("\r");
    terminal.wait_for(FILE);
    assert_eq!(terminal.end().0, Some(0));
    let text = project.read_root(FILE);
    let parsed = agentd_core::document::clarifications::parse(&text).value;
    let answers: Vec<&str> = parsed.questions.iter().map(|q| q.answer.as_str()).collect();
    assert_eq!(answers, ["OAuth", "A plain file", "Web, Phone"]);
    assert_eq!(parsed.questions[0].rationale.as_str(), "Means OAuth.");
    let state = project.read_root("agentd/changes/add-login/STATE.yaml");
    assert!(
        state.contains("description: \"Add a login\"") && state.contains("step: clarify"),
        "{state}"
    );
    assert!(state.contains("total_cost: 0.25"), "{state}");
}

#[test]
fn whoever_stops_is_asked_the_same_again_without_another_call() {
    for key in [CTRL_C, "\u{1b}"] {
        let project = project();
        let mut terminal = ask(&project);
        terminal.wait_for("Which Method?");
        terminal.press("\r");
        terminal.wait_for("Which Storage?");
        terminal.wait_for("type your own");
        terminal.press(key);
        let (code, seen) = terminal.end();
        assert_eq!(code, Some(130), "{seen}");
        assert!(seen.contains("agentd clarify add-login"), "{seen}");
        assert!(!project.root().join(FILE).exists());
        let mut terminal = Terminal::start(project.command(["clarify"]).env("NO_COLOR", "1"));
        terminal.wait_for("Which Method?");
        terminal.press(CTRL_C);
        assert_eq!(terminal.end().0, Some(130));
        assert_eq!(calls(&project), 1);
    }
}

/// C29: a skill asks with a tool of its own.
#[test]
fn without_a_terminal_questions_are_printed_and_answered_from_a_file() {
    let project = project();
    let run = project.run(["clarify", "add-login", "Add a login", "--json"]).exits(0);
    let document = run.json();
    assert_eq!(document["action"], "questions_proposed");
    assert_eq!(document["change_id"], "add-login");
    assert_eq!(document["phase"], "proposed");
    assert_eq!(document["questions"], questions());
    assert_eq!(document["cost_usd"], 0.25);
    let again = project.run(["clarify", "--json"]).fine().json();
    assert_eq!((&again["questions"], &again["cost_usd"]), (&questions(), &json!(0.0)));
    assert_eq!(calls(&project), 1, "what is kept is not paid again");
    project.run(["clarify", "--show"]).fine().stdout_has("- OAuth (recommended): Means OAuth.");
    let answers = json!({"Method": "password", "Storage": "SQLite", "Clients": ["Web", "Phone"]});
    let project = project.root_file("answers.json", answers.to_string());
    let args = ["clarify", "add-login", "--answers", "answers.json", "--json"];
    let document = project.run(args).fine().json();
    assert_eq!((&document["action"], &document["file"]), (&json!("clarified"), &json!(FILE)));
    assert!(project.read_root(FILE).contains("Password"));
    project.run(["clarify", "--show"]).fine().stdout_has("Clients → Web, Phone");
    let shown = project.run(["clarify", "--show", "--json"]).fine().json();
    assert_eq!(
        (&shown["clarified"], &shown["answers"][1]["answer"]),
        (&json!(true), &json!("SQLite"))
    );
}

#[test]
fn answers_come_from_standard_input_and_begin_a_change() {
    let project = project();
    let text = r#"{"answers": [{"header": "Lock", "question": "When?", "answer": "After 5"}]}"#;
    let mut command = project.command(["clarify", "add-login", "Add a login", "--answers", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(project.read_root(FILE).contains("After 5"));
    assert_eq!(calls(&project), 0);
    project.run(["status", "add-login"]).fine();
}

#[test]
fn without_a_terminal_nothing_is_asked_or_paid() {
    let project = project();
    let before = project.tree();
    insta::assert_snapshot!(project.run(["clarify", "add-login", "Add a login"]).transcript(), @r#"
    exit 1
    --- stderr
    error: there is no terminal to ask on

    hint: print the questions: agentd clarify add-login 'Add a login' --json
    hint: then answer them: agentd clarify add-login --answers answers.json
    "#);
    project.run(["clarify", "add-login", "--json"]).exits(1).stdout_has("no_such_change");
    project.run(["clarify", "Add-Login", "x", "--json"]).exits(2);
    let bad = ["clarify", "add-login", "x", "--answers", "nowhere.json", "--json"];
    assert_eq!(project.run(bad).exits(1).json_error()["kind"], "answers_unreadable");
    assert_eq!(project.tree(), before);
}

#[test]
fn answers_that_do_not_fit_leave_everything_as_it_was() {
    let project = project();
    project.run(["clarify", "add-login", "Add a login", "--json"]).exits(0);
    let long = "x".repeat(2001);
    for (answers, expected) in [
        (r#"{"Method": "x"}"#.to_owned(), "`Storage`: this question is not answered"),
        (r#"{"Metod": "x"}"#.to_owned(), "did you mean `Method`"),
        ("[1".to_owned(), "it is not JSON"),
        (json!({"Method": long, "Storage": "x", "Clients": "x"}).to_string(), "at most 2000"),
    ] {
        let project = project_with(&project, &answers);
        let run = project.run(["clarify", "--answers", "answers.json"]).exits(1);
        assert!(run.stderr.contains(expected), "{expected} in {run:#?}");
        assert!(!project.root().join(FILE).exists());
    }
}

/// The same project with another file of answers.
fn project_with<'p>(project: &'p TestProject, answers: &str) -> &'p TestProject {
    std::fs::write(project.root().join("answers.json"), answers).unwrap();
    project
}

#[test]
fn another_description_asks_anew_until_there_is_a_plan() {
    let project = project();
    project.run(["clarify", "add-login", "Add a login", "--json"]).exits(0);
    project.run(["clarify", "add-login", "Add a login", "--json"]).exits(0);
    assert_eq!(calls(&project), 1);
    project.run(["clarify", "add-login", "Add a login with a lock", "--json"]).exits(0);
    assert_eq!(calls(&project), 2);
    let state = project.read_root("agentd/changes/add-login/STATE.yaml");
    assert!(state.contains("Add a login with a lock"), "{state}");
    let project = project.root_file("agentd/changes/add-login/proposal.md", "# Change\n");
    let run = project.run(["clarify", "add-login", "Something else", "--json"]).exits(1);
    assert_eq!(run.json_error()["kind"], "refused");
}

#[test]
fn a_planner_that_proposes_nothing_is_an_error_with_a_card() {
    let project = project().program(
        "claude",
        &format!("while read -r l; do :; done\necho '{START}'\necho '{SAY}'\necho '{END}'"),
    );
    let run = project.run(["clarify", "add-login", "Add a login", "--json"]).exits(1);
    let error = run.json()["error"].clone();
    assert_eq!(error["kind"], "no_artefact");
    assert!(error["hints"].as_array().unwrap().len() > 1, "{error}");
    let state = project.read_root("agentd/changes/add-login/STATE.yaml");
    assert!(state.contains("total_cost: 0.25"), "it has cost something all the same: {state}");
}

/// Lesson 13: Ctrl-C ends the agent and what it has started, and is exit 130.
#[test]
fn an_interrupt_ends_the_planner_and_agentd() {
    let script =
        format!("echo '{START}'\n/bin/sleep 600 &\necho $! > \"$HOME/.claude/child\"\nwait");
    let project = project().program("claude", &script);
    let mut command = project.command(["clarify", "add-login", "Add a login", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&project.home().join(".claude/child"));
    let home = project.home();
    assert!(processes_of(&home).len() > 1);
    // Somebody else cannot begin meanwhile.
    let run = project.run(["clarify", "add-login", "--json"]).exits(1);
    assert_eq!(run.json()["error"]["kind"], "locked");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["error"]["kind"], "interrupted");
    assert_eq!(processes_of(&home), Vec::<String>::new());
}

/// The processes of the user with this home, by their command lines.
fn processes_of(home: &Path) -> Vec<String> {
    let wanted = format!("HOME={}", home.display());
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let is_theirs = |entry: &std::fs::DirEntry| {
        let variables = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        variables.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let line = |entry: std::fs::DirEntry| {
        String::from_utf8_lossy(&std::fs::read(entry.path().join("cmdline")).unwrap_or_default())
            .replace('\0', " ")
    };
    entries.filter(is_theirs).map(line).collect()
}

fn wait_for(path: &Path) {
    let until = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(Instant::now() < until, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}
