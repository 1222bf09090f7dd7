//! Questions before a plan: proposed by a planner through the real MCP server, and
//! answered on a terminal or from a file.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use terminal::{CTRL_C, DOWN, Terminal};

use test_project::{Output, TestProject, mask};

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
/// server that it was given and calls the tool. Each call leaves a line in `calls`.
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

/// The state of the change, without what a clock wrote.
fn state(project: &TestProject) -> String {
    let text = project.read_root("agentd/changes/add-login/STATE.yaml");
    let kept = text.lines().filter(|line| !line.trim_start().starts_with("duration_ms:"));
    mask(&kept.collect::<Vec<_>>().join("\n"), &project.base())
}

fn ask(project: &TestProject) -> Terminal {
    let args = ["clarify", "add-login", "Add a login"];
    Terminal::start(project.command(args).env("NO_COLOR", "1"))
}

/// P2, P4: arrow keys, the recommended one first, own words, several.
#[test]
fn answers_with_arrow_keys_are_written() {
    let project = project();
    let mut terminal = ask(&project);
    terminal.wait_for("Method (1 of 3)");
    terminal.wait_for("Which Method?");
    terminal.wait_for("> OAuth (recommended)");
    terminal.wait_for("    Means OAuth.");
    terminal.press("\r");
    terminal.wait_for("Which Storage?");
    terminal.wait_for("other: type your own answer");
    // Typing is an answer of their own.
    terminal.press("A plain file");
    terminal.wait_for("> other: A plain file");
    terminal.press("\r");
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
    insta::assert_snapshot!(state(&project), @r#"
    # Written by agentd. Change it with agentd's commands, not by hand.
    change_id: add-login
    phase: proposed
    created_at: [TIME]
    updated_at: [TIME]
    description: "Add a login"
    last_action: clarify
    iteration: 0
    llm_calls:
      - step: clarify
        agent: claude
        model: claude-opus-4-8
        tokens_in: 10
        tokens_out: 2
        tokens_cached: 0
        cost: 0.25
        timestamp: [TIME]
        session_id: daa347b4
        run: 1
    total_cost: 0.25
    total_tokens_in: 10
    total_tokens_out: 2
    "#);
}

/// Issue 19: one can go back to the question before, and finds the answer that was given.
#[test]
fn one_can_go_back_to_the_question_before() {
    let project = project();
    let mut terminal = ask(&project);
    terminal.wait_for("Which Method?");
    terminal.press(DOWN);
    terminal.wait_for("> Password");
    terminal.press("\r");
    terminal.wait_for("Which Storage?");
    terminal.wait_for("← back");
    terminal.press("\u{1b}[D");
    terminal.wait_for("Which Method?");
    terminal.wait_for("> Password");
    terminal.press("\u{1b}[A");
    terminal.wait_for("> OAuth");
    terminal.press("\r");
    for question in ["Which Storage?", "Which Clients?"] {
        terminal.wait_for(question);
        terminal.press("\r");
    }
    terminal.wait_for(FILE);
    assert_eq!(terminal.end().0, Some(0));
    let parsed = agentd_core::document::clarifications::parse(&project.read_root(FILE)).value;
    assert_eq!(parsed.questions[0].answer.as_str(), "OAuth");
}

/// Issue 19: long text is written in an editor.
#[test]
fn an_own_answer_is_written_in_an_editor() {
    let project = project().program("ed", "printf 'in a\\nlong text' > \"$1\"");
    let mut command = project.command(["clarify", "add-login", "Add a login"]);
    let mut terminal = Terminal::start(command.env("NO_COLOR", "1").env("EDITOR", "ed"));
    terminal.wait_for("Which Method?");
    terminal.press("\u{5}");
    terminal.wait_for("> other: in a long text");
    terminal.press("\r");
    for question in ["Which Storage?", "Which Clients?"] {
        terminal.wait_for(question);
        terminal.press("\r");
    }
    terminal.wait_for(FILE);
    assert_eq!(terminal.end().0, Some(0));
    let parsed = agentd_core::document::clarifications::parse(&project.read_root(FILE)).value;
    assert_eq!(parsed.questions[0].answer.as_str(), "in a long text");
}

#[test]
fn stopped_questions_are_asked_again() {
    for (key, kept) in [
        (CTRL_C, "your answers are kept; continue: agentd clarify add-login"),
        ("\u{1b}", "Stopped. Your answers are kept."),
    ] {
        let project = project();
        let mut terminal = ask(&project);
        terminal.wait_for("Which Method?");
        terminal.press(DOWN);
        terminal.wait_for("> Password");
        terminal.press("\r");
        terminal.wait_for("Which Storage?");
        terminal.wait_for("type your own");
        terminal.press(key);
        let (code, seen) = terminal.end();
        assert_eq!(code, Some(130), "{seen}");
        assert!(seen.contains(kept), "{seen}");
        assert_eq!(seen.contains("error"), key == CTRL_C, "{seen}");
        assert!(!project.root().join(FILE).exists());
        // The first open question is asked; what was answered is shown, and can be changed.
        let mut terminal = Terminal::start(project.command(["clarify"]).env("NO_COLOR", "1"));
        terminal.wait_for("Which Method?  Password");
        terminal.wait_for("? Storage (2 of 3): Which Storage?");
        terminal.wait_for("← back");
        terminal.press("\u{1b}[D");
        // Its line goes with it.
        terminal.wait_for("\u{1b}[A\r\u{1b}[J");
        terminal.wait_for("Which Method?");
        terminal.wait_for("> Password");
        terminal.press(CTRL_C);
        assert_eq!(terminal.end().0, Some(130));
        assert_eq!(calls(&project), 1);
    }
}

/// C29: a skill asks with a tool of its own.
#[test]
fn questions_answered_from_file() {
    let project = project();
    let run = project.run(["clarify", "add-login", "Add a login", "--json"]).exits(0);
    let mut document = run.json();
    assert_eq!(document["questions"].take(), questions());
    insta::assert_snapshot!(format!("{document:#}"), @r#"
    {
      "version": 1,
      "action": "questions_proposed",
      "change_id": "add-login",
      "phase": "proposed",
      "questions": null,
      "cost_usd": 0.25,
      "next": [
        "agentd clarify add-login --answers answers.json"
      ]
    }
    "#);
    let again = project.run(["clarify", "--json"]).fine().json();
    assert_eq!((&again["questions"], &again["cost_usd"]), (&questions(), &json!(0.0)));
    assert_eq!(calls(&project), 1, "what is kept is not paid again");
    insta::assert_snapshot!(project.run(["clarify", "--show"]), @"
    exit 0
    Method: Which Method?
      - OAuth (recommended): Means OAuth.
      - Password: Means Password.
    Storage: Which Storage?
      - PostgreSQL (recommended): Means PostgreSQL.
      - SQLite: Means SQLite.
    Clients: Which Clients? (several)
      - Web (recommended): Means Web.
      - Phone: Means Phone.
    --- stderr
    ");
    let answers = json!({"Method": "password", "Storage": "SQLite", "Clients": ["Web", "Phone"]});
    let project = project.root_file("answers.json", answers.to_string());
    let args = ["clarify", "add-login", "--answers", "answers.json", "--json"];
    insta::assert_snapshot!(project.run(args), @r#"
    exit 0
    {
      "version": 1,
      "action": "clarified",
      "change_id": "add-login",
      "phase": "proposed",
      "file": "agentd/changes/add-login/clarifications.md",
      "answers": 3,
      "next": [
        "agentd plan add-login"
      ]
    }
    --- stderr
    "#);
    insta::assert_snapshot!(mask(&project.read_root(FILE), &project.base()), @"
    ---
    change: add-login
    date: [DATE]
    ---

    # Clarifications

    ## Q1: Method

    - **Question**: Which Method?
    - **Answer**: Password
    - **Rationale**: Means Password.

    ## Q2: Storage

    - **Question**: Which Storage?
    - **Answer**: SQLite
    - **Rationale**: Means SQLite.

    ## Q3: Clients

    - **Question**: Which Clients?
    - **Answer**: Web, Phone
    - **Rationale**:
      Means Web.
      Means Phone.
    ");
    insta::assert_snapshot!(project.run(["clarify", "--show"]), @"
    exit 0
    Method: Which Method?
      - OAuth (recommended): Means OAuth.
      - Password: Means Password.
    Storage: Which Storage?
      - PostgreSQL (recommended): Means PostgreSQL.
      - SQLite: Means SQLite.
    Clients: Which Clients? (several)
      - Web (recommended): Means Web.
      - Phone: Means Phone.
    Method → Password
    Storage → SQLite
    Clients → Web, Phone
    --- stderr
    ");
    let shown = project.run(["clarify", "--show", "--json"]).fine().json();
    assert_eq!(
        (&shown["clarified"], &shown["answers"][1]["answer"]),
        (&json!(true), &json!("SQLite"))
    );
}

#[test]
fn answers_from_stdin_begin_a_change() {
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
    let output = Output::new(child.wait_with_output().unwrap(), &project.base());
    insta::assert_snapshot!(output, @"
    exit 0
    agentd/changes/add-login/clarifications.md: 1 answer
    Next: agentd plan add-login
    --- stderr
    ");
    insta::assert_snapshot!(mask(&project.read_root(FILE), &project.base()), @"
    ---
    change: add-login
    date: [DATE]
    ---

    # Clarifications

    ## Q1: Lock

    - **Question**: When?
    - **Answer**: After 5
    ");
    assert_eq!(calls(&project), 0);
    project.run(["status", "add-login"]).fine();
}

#[test]
fn clarify_without_terminal() {
    let project = project();
    let before = project.tree();
    insta::assert_snapshot!(project.run(["clarify", "add-login", "Add a login"]).transcript(), @r#"
    exit 1
    --- stderr
    error: there is no terminal to ask on

    hint: print the questions: agentd clarify add-login 'Add a login' --json
    hint: then answer them: agentd clarify add-login --answers answers.json
    "#);
    let error = project.run(["clarify", "add-login", "--json"]).exits(1).json_error();
    assert_eq!(error["kind"], "no_such_change");
    project.run(["clarify", "Add-Login", "x", "--json"]).exits(2);
    let bad = ["clarify", "add-login", "x", "--answers", "nowhere.json", "--json"];
    assert_eq!(project.run(bad).exits(1).json_error()["kind"], "answers_unreadable");
    assert_eq!(project.tree(), before);
}

#[test]
fn invalid_answers_change_nothing() {
    let project = project();
    project.run(["clarify", "add-login", "Add a login", "--json"]).exits(0);
    let long = "x".repeat(2001);
    let refused = |answers: &str| {
        std::fs::write(project.root().join("answers.json"), answers).unwrap();
        let run = project.run(["clarify", "--answers", "answers.json"]).exits(1);
        assert!(!project.root().join(FILE).exists());
        run
    };
    insta::assert_snapshot!(refused(r#"{"Method": "x"}"#), @"
    exit 1
    --- stderr
    error: cannot use the answers in answers.json
      cause: `Storage`: this question is not answered

    hint: see the questions: agentd clarify add-login --show
    hint: see the accepted formats: agentd clarify --help
    ");
    insta::assert_snapshot!(refused(r#"{"Metod": "x"}"#), @"
    exit 1
    --- stderr
    error: cannot use the answers in answers.json
      cause: `Metod`: no question has this header; did you mean `Method`?

    hint: see the questions: agentd clarify add-login --show
    hint: see the accepted formats: agentd clarify --help
    ");
    insta::assert_snapshot!(refused("[1"), @"
    exit 1
    --- stderr
    error: cannot use the answers in answers.json
      cause: it is not JSON: EOF while parsing a list at line 1 column 2

    hint: see the questions: agentd clarify add-login --show
    hint: see the accepted formats: agentd clarify --help
    ");
    let long = json!({"Method": long, "Storage": "x", "Clients": "x"}).to_string();
    insta::assert_snapshot!(refused(&long), @"
    exit 1
    --- stderr
    error: The arguments do not fit the tool. `questions[0].answer`: the text is 2001 characters long; at most 2000 are allowed

    hint: Correct that field and call the tool again; nothing was written.
    ");
}

#[test]
fn new_description_asks_new_questions() {
    let project = project();
    project.run(["clarify", "add-login", "Add a login", "--json"]).exits(0);
    project.run(["clarify", "add-login", "Add a login", "--json"]).exits(0);
    assert_eq!(calls(&project), 1);
    project.run(["clarify", "add-login", "Add a login with a lock", "--json"]).exits(0);
    assert_eq!(calls(&project), 2);
    insta::assert_snapshot!(state(&project), @r#"
    # Written by agentd. Change it with agentd's commands, not by hand.
    change_id: add-login
    phase: proposed
    created_at: [TIME]
    updated_at: [TIME]
    description: "Add a login with a lock"
    last_action: clarify
    iteration: 0
    llm_calls:
      - step: clarify
        agent: claude
        model: claude-opus-4-8
        tokens_in: 10
        tokens_out: 2
        tokens_cached: 0
        cost: 0.25
        timestamp: [TIME]
        session_id: daa347b4
        run: 1
      - step: clarify
        agent: claude
        model: claude-opus-4-8
        tokens_in: 10
        tokens_out: 2
        tokens_cached: 0
        cost: 0.25
        timestamp: [TIME]
        session_id: daa347b4
        run: 2
    total_cost: 0.5
    total_tokens_in: 20
    total_tokens_out: 4
    "#);
    let project = project.root_file("agentd/changes/add-login/proposal.md", "# Change\n");
    let run = project.run(["clarify", "add-login", "Something else", "--json"]).exits(1);
    assert_eq!(run.json_error()["kind"], "refused");
}

#[test]
fn planner_without_questions_is_an_error() {
    let project = project().program(
        "claude",
        &format!("while read -r l; do :; done\necho '{START}'\necho '{SAY}'\necho '{END}'"),
    );
    let run = project.run(["clarify", "add-login", "Add a login", "--json"]).exits(1);
    insta::assert_snapshot!(format!("{:#}", run.json()["error"]), @r#"
    {
      "kind": "no_artefact",
      "message": "claude reported success, but the list of questions does not exist",
      "cause": "it called no tool; its last words were: Asked.",
      "hints": [
        "retry: a model may forget to call its tool",
        "see what it said and did: agentd log add-login --run last",
        "check that the MCP server starts: agentd doctor"
      ]
    }
    "#);
    // It has cost something all the same.
    insta::assert_snapshot!(state(&project), @r#"
    # Written by agentd. Change it with agentd's commands, not by hand.
    change_id: add-login
    phase: proposed
    created_at: [TIME]
    updated_at: [TIME]
    description: "Add a login"
    last_action: clarify
    iteration: 0
    llm_calls:
      - step: clarify
        agent: claude
        model: claude-opus-4-8
        tokens_in: 10
        tokens_out: 2
        tokens_cached: 0
        cost: 0.25
        timestamp: [TIME]
        session_id: daa347b4
        run: 1
        failure: no_artifact
    total_cost: 0.25
    total_tokens_in: 10
    total_tokens_out: 2
    "#);
}

/// Lesson 13: Ctrl-C ends the agent and what it has started, and is exit 130.
#[test]
fn interrupt_ends_planner_and_agentd() {
    let script =
        format!("echo '{START}'\n/bin/sleep 600 &\necho $! > \"$HOME/.claude/child\"\nwait");
    let project = project().program("claude", &script);
    let mut command = project.command(["clarify", "add-login", "Add a login", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&project.home().join(".claude/child"));
    let home = project.home();
    assert!(processes_of(&home).len() > 1);
    // Another process cannot begin meanwhile.
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
