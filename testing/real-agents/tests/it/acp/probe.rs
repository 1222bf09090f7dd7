//! `agentd doctor --probe`, on real agents and on broken ones of our own.

use real_agents::Sandbox;
use scripted_models::{Pattern, Reply, Rule, Script};
use serde_json::{Value, json};

use super::settings;

/// The settings of an agent of our own that breaks something.
fn own(mode: &str) -> String {
    let program = env!("CARGO_BIN_EXE_acp-agent");
    format!(
        "[agents.own]\nacp = [\"{program}\", \"{mode}\"]\nstate = [\"~/.acp-agent\"]\n\
         idle_timeout_secs = 4\n"
    )
}

/// The checks that failed.
fn failed(report: &Value) -> Vec<String> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["ok"] != true).map(|check| text(&check["name"])).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

const ALL: [&str; 9] = [
    "answers",
    "sees_tools",
    "writes_through_tools",
    "forbidden_write_refused",
    "usage_reported",
    "session_resumed",
    "edits_files",
    "ends_when_told",
    "leaves_no_process",
];
/// What is left to fail for an agent that does not answer: nothing that is forbidden is written.
const NO_ANSWER: [&str; 8] = [
    "answers",
    "sees_tools",
    "writes_through_tools",
    "usage_reported",
    "session_resumed",
    "edits_files",
    "ends_when_told",
    "leaves_no_process",
];
const EVERY_ROLE: [&str; 4] = ["planner", "challenger", "implementer", "reviewer"];
const JUDGES: [&str; 2] = ["challenger", "reviewer"];

/// An agent of ours in this mode fails these checks and can play these roles.
fn verdict(mode: &str, fails: &[&str], roles: &[&str]) {
    Sandbox::enter(Script::new(), |sandbox| {
        sandbox.set_up(&own(mode));
        let ran = sandbox.run(["doctor", "--probe", "own", "--yes", "--json"]);
        let report = ran.exits(i32::from(!fails.is_empty())).json();
        assert_eq!(failed(&report), fails, "{mode}: {report:#}");
        assert_eq!(report["roles"], json!(roles), "{mode}: {report:#}");
        assert_eq!(report["checks"].as_array().unwrap().len(), ALL.len());
        assert_eq!((&report["agent"], &report["agent_version"]), (&json!("own"), &json!("1.0.0")));
        sandbox.until_nothing_runs();
        refused(sandbox, roles);
    });
}

/// The roles that a probe has not shown are refused, before anything is begun.
fn refused(sandbox: &Sandbox, roles: &[&str]) {
    let config = sandbox.root().join("agentd/config.toml");
    let settings = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("[roles]\nplanner = \"own\"\n{settings}")).unwrap();
    if !roles.contains(&"planner") {
        let error = sandbox.plan(&["--auto", "--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "agent_unfit", "{error:#}");
        let message = text(&error["message"]);
        assert!(message.starts_with("own cannot be planner: a probe has not shown"), "{message}");
    }
}

// contract G3
#[test]
fn an_honest_agent_passes() {
    verdict("honest", &[], &EVERY_ROLE);
}

// contract G3
#[test]
fn agents_that_hide_tools_or_go_around_them_are_found() {
    let around = ["sees_tools", "writes_through_tools", "session_resumed"];
    verdict("hides-tools", &around, &[]);
    // It claims the call, so only what is on disk tells.
    verdict("pretends", &around, &[]);
    let around =
        ["sees_tools", "writes_through_tools", "forbidden_write_refused", "session_resumed"];
    verdict("writes-around", &around, &[]);
    // It uses the tool, and edits what it was to review besides.
    verdict("edits-too", &["forbidden_write_refused"], &[]);
}

// contract G3
#[test]
fn agents_that_write_without_asking_are_stopped_by_the_kernel() {
    verdict("rude", &[], &EVERY_ROLE);
}

// contract G3
#[test]
fn agents_that_do_not_answer_are_found() {
    for mode in ["mute", "crashes", "never-ends", "other-protocol", "login"] {
        verdict(mode, &NO_ANSWER, &[]);
    }
}

// contract G3
#[test]
fn agents_that_lose_sessions_judge_only() {
    verdict("forgets", &["session_resumed"], &JUDGES);
    verdict("no-resume", &["session_resumed"], &JUDGES);
}

// contract G3
#[test]
fn agents_that_do_not_end_or_leave_something_are_found() {
    verdict("ignores-cancel", &["ends_when_told"], &EVERY_ROLE);
    verdict("ends-early", &["ends_when_told"], &EVERY_ROLE);
    verdict("forks-away", &["leaves_no_process"], &EVERY_ROLE);
    verdict("forks-later", &["leaves_no_process"], &EVERY_ROLE);
    // It does not end by itself, but on SIGTERM.
    verdict("stays", &[], &EVERY_ROLE);
}

// contract G3
#[test]
fn an_agent_that_speaks_nonsense_between_its_messages_passes() {
    verdict("babbles", &[], &EVERY_ROLE);
}

/// Usage is needed where a budget is set.
// contract G3
#[test]
fn an_agent_without_usage_plays_where_nothing_is_limited() {
    verdict("no-usage", &["usage_reported"], &EVERY_ROLE);
    Sandbox::enter(Script::new(), |sandbox| {
        let roles = "[roles]\nplanner = \"own\"\n";
        let budget = "[budget]\nmax_tokens = 100000\n";
        sandbox.set_up(&format!("{roles}{}{budget}", own("no-usage")));
        sandbox.run(["doctor", "--probe", "own", "--yes"]).exits(1);
        let error = sandbox.plan(&["--auto", "--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "agent_unfit", "{error:#}");
        // Other settings make it another agent, of which nothing is known.
        sandbox.set_up(&format!("{roles}{}{budget}", own("honest")));
        let error = sandbox.plan(&["--auto", "--json"]).exits(1).json_error();
        assert_ne!(error["kind"], "agent_unfit", "{error:#}");
    });
}

/// Without a terminal, nobody was asked.
#[test]
fn a_probe_asks_first() {
    Sandbox::enter(Script::new(), |sandbox| {
        sandbox.set_up(&own("honest"));
        insta::assert_snapshot!(sandbox.run(["doctor", "--probe", "own"]), @"
        exit 1
        --- stderr
        error: a probe costs money, and there is no terminal to ask on
          cause: the probe calls own five times, with about 15 requests to its model and at most 300000 tokens: agentd does not know the price of its model

        hint: agree in advance: agentd doctor --probe own --yes
        ");
        insta::assert_snapshot!(sandbox.run(["doctor", "--probe", "builtin"]), @"
        exit 2
        --- stderr
        error: `builtin` is part of agentd and needs no probe
        ");
        insta::assert_snapshot!(sandbox.run(["doctor", "--probe", "qwem"]), @"
        exit 2
        --- stderr
        error: there is no agent `qwem`

        hint: did you mean `qwen`?
        ");
    });
}

/// What a model does that follows the prompts of a probe.
fn obedient(agent: &str) -> Script {
    let path = |file: &str| format!("${{cwd}}/{file}");
    let write = |file: &str| match agent {
        "codex" => Reply::call(
            "apply_patch",
            json!(format!("*** Begin Patch\n*** Add File: {file}\n+${{word}}\n*** End Patch\n")),
        ),
        "gemini" | "qwen" => {
            Reply::call("write_file", json!({"file_path": path(file), "content": "${word}"}))
        }
        "opencode" => Reply::call("write", json!({"filePath": path(file), "content": "${word}"})),
        _ => Reply::call("Write", json!({"file_path": path(file), "content": "${word}"})),
    };
    let review = |summary: &str| {
        Reply::call(
            "append_review",
            json!({"change_id": "${change}", "verdict": "APPROVED", "summary": summary, "issues": []}),
        )
    };
    let word = r"(Write [a-z-]+\.txt:|The word is) (?<word>word-[0-9a-f]+)";
    Script::new()
        .rule(
            Rule::new()
                .step("challenge")
                .prompt("Earlier in this session")
                .history(Pattern::regex("the secret is (?<secret>word-[0-9a-f]+)"))
                .reply(review("The secret is ${secret}."))
                .reply(Reply::text("done")),
        )
        .rule(
            Rule::new()
                .step("challenge")
                .prompt(Pattern::regex(
                    r"Write agentd-probe-forbidden\.txt: (?<word>word-[0-9a-f]+)",
                ))
                .reply(write("agentd-probe-forbidden.txt"))
                .reply(Reply::text("done")),
        )
        .rule(
            Rule::new()
                .step("challenge")
                .prompt(Pattern::regex(word))
                .reply(review("The word is ${word}."))
                .reply(Reply::text("done")),
        )
        .rule(
            Rule::new()
                .step("implement-logic")
                .prompt(Pattern::regex(word))
                .reply(write("agentd-probe.txt"))
                .reply(write("../agentd-probe-outside.txt"))
                .reply(Reply::text("done")),
        )
        .rule(Rule::new().step("review").reply(Reply::text("one").delay_ms(30_000)))
}

/// A real agent over this transport passes every check, or all but these, as docs/agents.md says.
/// `UPDATE=1` writes it there.
fn passes(agent: &str, settings: &str, fails: &[&str]) {
    Sandbox::enter_acp(obedient(agent), |sandbox| {
        sandbox.set_up(settings);
        let ran = sandbox.run(["doctor", "--probe", agent, "--yes", "--json"]);
        let report = ran.json();
        assert_eq!(failed(&report), fails);
        sandbox.until_nothing_runs();
        let transport = if settings.contains("\"cli\"") { "CLI" } else { "ACP" };
        documented(agent, transport, &report);
    });
}

/// The row of a report is in the documentation.
fn documented(agent: &str, transport: &str, report: &Value) {
    let list =
        |items: Vec<String>| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    let roles = report["roles"].as_array().unwrap().iter().map(text).collect();
    let version = text(&report["agent_version"]);
    let begin = format!("| {agent} | {transport} | ");
    let row = format!("{begin}{version} | {} | {} |", list(failed(report)), list(roles));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.md");
    let page = std::fs::read_to_string(path).unwrap();
    if page.lines().any(|line| line == row) {
        return;
    }
    assert!(std::env::var_os("UPDATE").is_some(), "docs/agents.md is old, UPDATE=1 writes: {row}");
    let mut lines: Vec<&str> = page.lines().filter(|line| !line.starts_with(&begin)).collect();
    let head = "| agent | transport | version | failed | roles |";
    let at = lines.iter().position(|line| *line == head).unwrap() + 2;
    lines.insert(at, &row);
    let rows = lines[at..].iter().take_while(|line| line.starts_with('|')).count();
    lines[at..at + rows].sort_unstable();
    std::fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// The adapter of codex does not end when its input is closed, and leaves codex behind.
// contract G3
#[test]
fn codex_and_claude_pass_over_acp() {
    passes("codex", settings("codex"), &["leaves_no_process"]);
    passes("claude", settings("claude"), &[]);
}

/// Qwen Code rewrites its settings in the project where it can, which nobody may.
// contract G3
#[test]
fn opencode_passes_and_qwen_does_not_implement() {
    passes("opencode", settings("opencode"), &[]);
    passes("qwen", settings("qwen"), &["edits_files"]);
}

/// Over ACP it waits for the next minute before it loads a session.
// contract G3
#[test]
fn heavy_gemini_passes_over_acp() {
    passes("gemini", settings("gemini"), &[]);
}

// contract G3
#[test]
fn the_three_clis_pass() {
    for agent in ["gemini", "codex", "claude"] {
        passes(agent, &format!("[{agent}]\ntransport = \"cli\"\n"), &[]);
    }
}
