//! What people see: every screen on a real terminal of 60, 80, 120 and 200 columns, with colors and
//! without, in English and Chinese, with no change, one, and fifty.

use agentd_core::diagnostic::Severity;
use agentd_core::document::round;
use terminal::Terminal;
use test_project::{TestProject, mask};
use unicode_width::UnicodeWidthStr as _;

/// When the screens are looked at: the fixtures are from two and a half hours before.
const NOW: &str = "2026-11-04T12:30:00Z";

const WIDTHS: [u16; 4] = [60, 80, 120, 200];

const CALLS: &str = "llm_calls:\n  - step: proposal-gen\n    agent: gemini\n    model: gemini-3.8-flash\n    tokens_in: 15234\n    tokens_out: 892\n    tokens_cached: 4096\n    duration_ms: 4521\n    cost: 0.0145\n    timestamp: 2026-11-04T10:01:00Z\n    run: 1\n  - step: spec-gen-auth-flow\n    agent: gemini\n    model: gemini-3.8-flash\n    tokens_in: 24500\n    tokens_out: 2310\n    duration_ms: 68000\n    cost: 0.0726\n    timestamp: 2026-11-04T10:04:00Z\n    run: 2\n    failure: cancelled\n  - step: challenge\n    agent: codex\n    model: gpt-6.1-sol\n    tokens_in: 144000\n    tokens_out: 5120\n    duration_ms: 125000\n    cost: 0.31\n    timestamp: 2026-11-04T11:00:00Z\n    run: 3\ntotal_cost: 0.3971\ntotal_tokens_in: 183734\ntotal_tokens_out: 8322\n";

const CODE: &str = "code_review:\n  verdict: NEEDS_FIX\n  iteration: 1\n  reviewer: codex\n  at: 2026-11-04T12:10:00Z\ntest_run:\n  command: cargo test\n  exit_code: 101\n  output_tail: \"test token::expires ... FAILED\\n\\nfailures:\\n    token::expires\\n\\ntest result: FAILED. 41 passed; 1 failed\"\n  duration_ms: 640\n  at: 2026-11-04T12:05:00Z\n";

/// A change whose state was written by hand: nothing says that it was not.
fn without_record(project: TestProject) -> TestProject {
    std::fs::remove_file(project.path("journal.jsonl")).unwrap();
    let _ = std::fs::remove_dir_all(project.home().join(".local"));
    project
}

/// A change that was planned, challenged and paid for.
fn one(project: TestProject) -> TestProject {
    let project = project
        .change("add-oauth")
        .edit(
            "STATE.yaml",
            "llm_calls: []\ntotal_cost: 0.0\ntotal_tokens_in: 0\ntotal_tokens_out: 0\n",
            CALLS,
        )
        .challenged(&[Severity::High, Severity::Medium, Severity::Low]);
    let asked = "\niteration: 0\ndescription: \"Let people sign in with OAuth\"\n";
    project.replace("STATE.yaml", "\niteration: 0\n", asked);
    without_record(project)
}

/// One that is being implemented, and whose tests fail.
fn building(project: TestProject) -> TestProject {
    let project = project.change("fix-tokens").approved();
    project.replace("STATE.yaml", "phase: challenged\n", &format!("phase: implementing\n{CODE}"));
    without_record(project)
}

/// One whose challenger could not be called, and whose plan breaks a rule.
fn failed(project: TestProject) -> TestProject {
    let project = project.change("add-oauth").edit(
        "STATE.yaml",
        "llm_calls: []\ntotal_cost: 0.0\ntotal_tokens_in: 0\ntotal_tokens_out: 0\n",
        "llm_calls:\n  - step: challenge\n    agent: codex\n    model: gpt-6.1-sol\n    tokens_in: 0\n    tokens_out: 0\n    duration_ms: 2400\n    cost: 0.0\n    timestamp: 2026-11-04T12:20:00Z\n    run: 1\n    failure: rate_limited\ntotal_cost: 0.0\ntotal_tokens_in: 0\ntotal_tokens_out: 0\n",
    );
    project.replace("STATE.yaml", "last_action: proposal", "last_action: challenge");
    project.replace("tasks.md", "depends_on: [\"1.1\"]", "depends_on: [\"9.9\"]");
    project
}

/// The same in the language of the author of agentd.
fn chinese(project: TestProject) -> TestProject {
    let project = project.change("zh-login");
    let text = "新增密碼登入：使用者必須輸入電子郵件與密碼，五次失敗後鎖定帳號，並顯示錯誤訊息。";
    project.replace("proposal.md", "Sign in with OAuth.", text);
    project.replace(
        "specs/auth-flow.md",
        "### R1: Sign in",
        "### R1: 以密碼登入，五次失敗後鎖定帳號",
    );
    project.replace(
        "specs/auth-flow.md",
        "Signing in",
        "使用者以正確的電子郵件與密碼登入，並看到自己的首頁",
    );
    project.replace("specs/auth-flow.md", "the server answers with 200", text);
    project.replace("tasks.md", "Task 2.1: Sign in", "Task 2.1: 新增密碼登入的頁面與錯誤訊息");
    let project = project.challenged(&[Severity::High]);
    without_record(project)
}

fn archived(project: TestProject) -> TestProject {
    let state = format!("change_id: add-sessions\nphase: archived\ncreated_at: 2026-10-01T10:00:00Z\nupdated_at: 2026-10-02T10:00:00Z\ndescription: \"Keep people signed in\"\n{CALLS}")
        .replace("2026-11-04", "2026-10-02");
    project
        .root_file("agentd/archive/2026-10-02-add-sessions/STATE.yaml", state)
        .root_file("agentd/archive/2026-10-02-add-sessions/proposal.md", "# Change: add-sessions\n")
        .root_file("agentd/specs/sessions.md", "---\nid: sessions\ntype: spec\ntitle: Sessions\nversion: 2\nupdated_at: 2026-10-02T10:00:00Z\n---\n\n# Specification: Sessions\n\n## Requirements\n\n### R1: Stay\n\nIt MUST.\n")
}

fn fifty() -> TestProject {
    let mut project = chinese(building(one(archived(TestProject::new()))));
    for number in 1..=47 {
        project = project.change(&format!("add-report-number-{number}"));
    }
    project
}

/// What a command shows on a terminal: its exit code, and the text, with and without colors.
fn show(project: &TestProject, args: &[&str], columns: u16, color: bool) -> (i32, String, String) {
    let mut command = project.command(args);
    command.env("AGENTD_SHOWN_NOW", NOW).env("PAGER", "cat");
    if !color {
        command.env("NO_COLOR", "1");
    }
    let (code, seen) = Terminal::start_wide(&mut command, columns).end();
    let text = seen.replace('\r', "");
    let plain = anstream::adapter::strip_str(&text).to_string();
    for line in plain.lines() {
        assert!(line.width() <= columns.into(), "{columns}: {line:?}");
    }
    (code.unwrap(), text, plain)
}

/// At any width from 50, lines fit and no word is cut.
fn fits(project: &TestProject, args: &[&str]) {
    // Times are masked: the next second may begin between two of them.
    let shown = |columns| mask(&show(project, args, columns, false).1, &project.base());
    let widest = shown(250);
    for columns in [50, 60, 73, 80, 100, 120] {
        no_word_is_cut(&shown(columns), &widest);
    }
}

/// What a command shows at each width, and at 80 columns with its colors.
fn seen(project: &TestProject, args: &[&str]) -> String {
    fits(project, args);
    seen_by(|columns, color| {
        let (code, text, plain) = show(project, args, columns, color);
        (code, mask(&text, &project.base()), mask(&plain, &project.base()))
    })
}

/// The same of a command that changes something, in a new project each time.
fn seen_once(project: impl Fn() -> TestProject, args: &[&str]) -> String {
    let show = |columns, color| {
        let project = project();
        let (code, text, plain) = show(&project, args, columns, color);
        (code, mask(&text, &project.base()), mask(&plain, &project.base()))
    };
    let (_, _, widest) = show(250, false);
    for columns in [50, 60, 73, 80, 100, 120] {
        no_word_is_cut(&show(columns, false).2, &widest);
    }
    seen_by(show)
}

fn seen_by(show: impl Fn(u16, bool) -> (i32, String, String)) -> String {
    let mut all = String::new();
    for columns in WIDTHS {
        let (code, text, _) = show(columns, false);
        all.push_str(&format!("=== {columns} columns, exit {code}\n{text}"));
    }
    let (_, _, plain) = show(80, false);
    let (_, colored, stripped) = show(80, true);
    assert_eq!(stripped, plain, "colors change nothing else");
    all.push_str(&format!("=== 80 columns, with colors\n{}", colored.replace('\u{1b}', "␛")));
    all
}

/// Each word of a narrow screen is also on the widest one, unless `…` says that it was cut. Chinese
/// may be broken anywhere, long names at their punctuation.
fn no_word_is_cut(narrow: &str, widest: &str) {
    let words = |text: &'_ str| -> Vec<String> {
        let words = text.split_whitespace().filter(|word| word.is_ascii());
        let parts = words.flat_map(|word| word.split(|c: char| !c.is_ascii_alphanumeric()));
        parts.map(str::to_owned).collect()
    };
    let whole = words(widest);
    for word in words(narrow) {
        assert!(whole.contains(&word), "{word:?} is not a word of\n{widest}\nin\n{narrow}");
    }
}

/// A main spec that changes edit.
const MAIN: &str = include_str!("../../../../../testing/project/fixtures/auth-flow.md");

/// A change that can be archived: it edits a requirement of a main spec.
fn complete(project: TestProject) -> TestProject {
    project
        .root_file("agentd/specs/auth-flow.md", MAIN)
        .change("add-oauth")
        .edit("STATE.yaml", "phase: proposed", "phase: complete\ncode_review:\n  verdict: APPROVED\n  iteration: 1\n  reviewer: codex\n  at: 2026-11-04T12:00:00Z\n  run: 1")
        .file("runs/0001-review.jsonl", "")
        .file("base/auth-flow.md", MAIN)
        .file("specs/auth-flow.md", MAIN.replace("within 200 ms", "within 100 ms"))
}

/// The same with an edit in Chinese.
fn complete_in_chinese(project: TestProject) -> TestProject {
    let text = "within 100 ms（新增密碼登入：使用者必須輸入電子郵件與密碼，五次失敗後鎖定帳號，並顯示錯誤訊息）";
    let project = complete(project);
    project.write("specs/auth-flow.md", MAIN.replace("within 200 ms", text));
    project
}

/// Somebody else has edited the same requirement since.
fn contradicted(project: TestProject) -> TestProject {
    let project = complete(project);
    project.root_file("agentd/specs/auth-flow.md", MAIN.replace("within 200 ms", "within 300 ms"))
}

/// A plan that was edited after its review.
fn edited(project: TestProject) -> TestProject {
    revised(one(project), "Sign in with OAuth, and stay signed in for thirty minutes.")
}

fn edited_in_chinese(project: TestProject) -> TestProject {
    let text = "新增密碼登入：使用者必須輸入電子郵件與密碼，五次失敗後鎖定帳號，並顯示錯誤訊息，三十分鐘後登出。";
    revised(one(project), text)
}

fn revised(project: TestProject, text: &str) -> TestProject {
    let documents = project.store().change(&project.id()).unwrap().snapshot().unwrap().documents;
    project.write("rounds/0001.json", round::render(&documents.round()));
    project.replace("proposal.md", "Sign in with OAuth.", text);
    project
}

/// A package that agentd was not set up in.
fn package(project: TestProject) -> TestProject {
    project
        .root_file("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\n")
        .repository()
}

macro_rules! screens {
    ($($test:ident: $project:expr, $($name:literal => [$($arg:literal),*]),+;)*) => {
        $(#[test]
        fn $test() {
            let project = $project;
            $(insta::assert_snapshot!(
                concat!(stringify!($test), "_", $name),
                seen(&project, &[$($arg),*])
            );)+
        })*
    };
}

screens! {
    screens_of_no_change: TestProject::new(),
        "list" => ["list"],
        "status" => ["status"],
        "cost" => ["cost", "--all"],
        "archived" => ["list", "--archived"],
        "specs" => ["list", "--specs"],
        "error" => ["log"];
    screens_of_one_change: one(TestProject::new()),
        "list" => ["list"],
        "status" => ["status"],
        "log" => ["log"],
        "cost" => ["cost"],
        "show" => ["show"],
        "show_tasks" => ["show", "tasks"],
        "diff" => ["diff", "--specs"],
        "validate" => ["validate"],
        "trace" => ["trace", "auth-flow:R1"],
        "verify" => ["verify"],
        "overlap" => ["overlap"],
        "error" => ["status", "add-oatuh"];
    screens_of_code: building(TestProject::new()),
        "list" => ["list"],
        "status" => ["status"];
    screens_of_a_failure: failed(TestProject::new()),
        "list" => ["list"],
        "status" => ["status"],
        "log" => ["log"],
        "validate" => ["validate"];
    screens_in_chinese: chinese(TestProject::new()),
        "list" => ["list"],
        "status" => ["status"],
        "show" => ["show"],
        "diff" => ["diff", "--specs"],
        "trace" => ["trace", "auth-flow:R1"],
        "validate" => ["validate"];
    screens_of_fifty_changes: fifty(),
        "list" => ["list"],
        "status" => ["status"],
        "cost" => ["cost", "--all"],
        "archived" => ["list", "--archived"],
        "specs" => ["list", "--specs"],
        "everything" => ["list", "--all"],
        "archived_status" => ["status", "add-sessions"],
        "error" => ["log"];
    screens_of_archiving: complete(TestProject::new()),
        "preview" => ["archive", "--dry-run"];
    screens_of_archiving_in_chinese: complete_in_chinese(TestProject::new()),
        "preview" => ["archive", "--dry-run"];
    screens_of_a_conflict: contradicted(TestProject::new()),
        "archive" => ["archive"];
    screens_of_an_edited_plan: edited(TestProject::new()),
        "diff" => ["diff", "--plan"],
        "stat" => ["diff", "--plan", "--stat"];
    screens_of_an_edited_plan_in_chinese: edited_in_chinese(TestProject::new()),
        "diff" => ["diff", "--plan"];
    screens_of_setting_up: package(TestProject::empty()),
        "preview" => ["init", "--yes", "--dry-run", "--agents", "claude,codex"];
    screens_of_help: TestProject::empty(),
        "all" => ["--help"],
        "plan" => ["plan", "-h"],
        "wrong_value" => ["list", "--phase", "foo"],
        "wrong_command" => ["lits"],
        "version" => ["version"],
        "explain" => ["explain", "T005"];
}

/// What changes something, each time in a new project.
#[test]
fn screens_of_what_is_done_once() {
    insta::assert_snapshot!(
        "screens_once_archive",
        seen_once(|| complete(TestProject::new()), &["archive"])
    );
    insta::assert_snapshot!(
        "screens_once_archive_in_chinese",
        seen_once(|| complete_in_chinese(TestProject::new()), &["archive"])
    );
    insta::assert_snapshot!(
        "screens_once_init",
        seen_once(|| package(TestProject::empty()), &["init", "--yes", "--agents", "claude,codex"])
    );
}

/// In 50 columns a change is still one line, and no column falls below it.
#[test]
fn a_change_is_one_line_at_any_width() {
    let project = fifty();
    for command in ["list", "status"] {
        let (_, _, plain) = show(&project, &[command], 50, false);
        let table = plain.split("CHANGE").nth(1).unwrap();
        let rows: Vec<&str> = table.lines().skip(1).filter(|line| line.starts_with("  ")).collect();
        let folded = rows.iter().find(|line| line.starts_with("   "));
        assert_eq!(folded, None, "{plain}");
        let is_whole = |line: &&&str| line.split_whitespace().next_back() != Some("…");
        assert_eq!(rows.iter().filter(is_whole).count(), rows.len(), "{plain}");
        assert!(plain.contains("needs revision"), "{plain}");
    }
}

/// What was given up was not completed, and what a person has accepted says who.
#[test]
fn status_says_how_it_ended() {
    let project = TestProject::new().change("add-oauth").challenged(&[Severity::Low]);
    project.run(["decide", "add-oauth", "accept"]).exits(0);
    let (_, _, accepted) = show(&project, &["status"], 80, false);
    assert!(accepted.contains("NEEDS_REVISION") && accepted.contains("accepted by"), "{accepted}");
    project.run(["drop", "add-oauth", "--yes"]).exits(0);
    let (_, _, dropped) = show(&project, &["status", "add-oauth"], 80, false);
    assert!(dropped.contains("\n✗ dropped\n") && !dropped.contains("● complete"), "{dropped}");
    assert!(dropped.contains("Next: agentd show add-oauth"), "{dropped}");
}

/// A plan that is not whole has no mistakes yet.
#[test]
fn status_of_an_unfinished_plan_counts_no_findings() {
    let project = TestProject::new().change("add-oauth");
    std::fs::remove_file(project.path("tasks.md")).unwrap();
    let (_, _, plain) = show(&project, &["status"], 80, false);
    assert!(plain.contains("documents not all written yet"), "{plain}");
}

/// It prints what it has found as soon as it is known, hence in any order.
#[test]
fn doctor_fits() {
    fits(&one(TestProject::new()), &["doctor"]);
}
