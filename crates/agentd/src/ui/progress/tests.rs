//! Progress on a real terminal: this test program again, as a child on a pseudo-terminal.

use std::process::{Command, Stdio};
use std::time::Duration;

use agentd_core::agent::AgentKind;
use agentd_core::diagnostic::Severity;
use agentd_core::document::review_block::{Issue, PlanVerdict};
use agentd_core::event::{AgentEvent, Json};
use agentd_core::ids::ChangeId;
use agentd_core::outcome::Usage;
use agentd_core::state::TestRun;
use agentd_core::step_name::StepName;
use agentd_core::text::{Line, Prose};
use agentd_engine::git::Git;
use agentd_engine::process::Cancel;
use agentd_engine::workflow::decisions::{Gate, PlanAnswer, PlanQuestion};
use agentd_engine::workflow::{Outlook, Verdict};
use rustix::process::Signal;
use terminal::{CTRL_C, DOWN, Terminal};

use super::*;
use crate::ui::{ask, measure};

const DRIVER: &str = "AGENTD_PROGRESS_DRIVER";
const ESC: &str = "\u{1b}";

fn driver(what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "--nocapture", "ui::progress::tests::is_driven"])
        .env(DRIVER, what)
        .env_remove("NO_COLOR")
        .env_remove("CI")
        .env("RUST_BACKTRACE", "0");
    command
}

#[test]
#[ignore = "started by the tests below"]
fn is_driven() {
    let what = std::env::var(DRIVER).unwrap();
    let mode = ProgressMode::auto(std::env::var_os("AGENTD_PROGRESS_JSON").is_some());
    let mut progress = ProgressUi::new(mode, Roots::default(), None);
    match &*what {
        "steps" => steps(&mut progress),
        "running" => running(&mut progress, &ENGLISH),
        "運行中" => running(&mut progress, &CHINESE),
        "interrupt" => interrupted(&mut progress),
        "kill" => {
            let cancel = Cancel::new().unwrap();
            cancel.on_signals().unwrap();
            let again = Some(cancel.clone());
            let mut progress = ProgressUi::new(mode, Roots::default(), again)
                .continued_by("agentd impl add-oauth");
            begin(&mut progress, "Data layer");
            // An agent that does not care.
            loop {
                std::thread::park();
            }
        }
        "panic" => {
            begin(&mut progress, "Proposal");
            std::thread::sleep(TICK * 2);
            panic!("as a test");
        }
        "prompt" => {
            begin(&mut progress, "Challenge");
            done(&mut progress, "Challenge");
            let answers =
                vec![PlanAnswer::Fix, PlanAnswer::Accept, PlanAnswer::Review, PlanAnswer::Stop];
            let question = PlanQuestion { gate: Gate::NeedsRevision, answers };
            let answer = ask::plan(&ChangeId::new("add-oauth").unwrap(), &question, false);
            eprintln!("over");
            progress.watch(&Progress::Note(&match &answer {
                Ok(answer) => format!("answered {answer:?}"),
                Err(error) => format!("exit {}", error.kind.exit_code()),
            }));
            std::thread::sleep(TICK * 2);
        }
        "git" => {
            let git = Git::discover(std::path::Path::new(".")).unwrap().unwrap();
            let answer = ask::git_workflow(&git, &ChangeId::new("add-oauth").unwrap()).unwrap();
            progress.watch(&Progress::Note(&format!("answered {answer:?}")));
        }
        other => panic!("{other}"),
    }
}

fn begin(progress: &mut ProgressUi, label: &str) {
    let agent = AgentKind::Gemini;
    progress.watch(&Progress::Started {
        step: &StepName::ProposalGen,
        label,
        agent,
        resumed: false,
        outlook: &Outlook::default(),
    });
}

fn done(progress: &mut ProgressUi, label: &str) {
    progress.watch(&Progress::Done {
        step: &StepName::ProposalGen,
        label,
        summary: "4 requirements",
        verdict: None,
        usage: Usage { input: 12_000, output: 345, ..Usage::default() },
        cost_usd: 0.0123,
        duration: Duration::from_millis(4_521),
    });
}

fn steps(progress: &mut ProgressUi) {
    progress.watch(&Progress::Skipped {
        step: &StepName::ProposalGen,
        label: "Proposal",
        why: "done already",
    });
    begin(progress, "Spec 1/3: auth-flow");
    std::thread::sleep(TICK * 3);
    let call = AgentEvent::ToolCall {
        id: "1".into(),
        server: None,
        name: "create_spec".into(),
        arguments: Json::string("none"),
    };
    progress.watch(&Progress::Agent(&call));
    progress.watch(&Progress::Warning("something\u{1b}[2J is odd"));
    std::thread::sleep(TICK * 3);
    done(progress, "Spec 1/3: auth-flow");
    progress.watch(&Progress::Note("No specs required for this change"));
    begin(progress, "Tasks");
    let duration = Duration::from_secs(65);
    progress.watch(&Progress::Failed {
        step: &StepName::ProposalGen,
        label: "Tasks",
        message: "no",
        duration,
    });
}

fn interrupted(progress: &mut ProgressUi) {
    let cancel = Cancel::new().unwrap();
    cancel.on_signals().unwrap();
    begin(progress, "Spec 1/3: auth-flow with a name that is rather long");
    cancel.sleep(Duration::from_mins(1));
    let (label, duration) = ("Spec 1/3: auth-flow", Duration::from_secs(1));
    progress.watch(&Progress::Failed {
        step: &StepName::ProposalGen,
        label,
        message: "interrupted",
        duration,
    });
}

/// What agents and people say in a workflow.
struct Texts {
    spec: &'static str,
    summary: &'static str,
    title: &'static str,
    description: &'static str,
    recommendation: &'static str,
    failure: &'static str,
    doing: &'static str,
}

const ENGLISH: Texts = Texts {
    spec: "Spec 1/2: auth-flow",
    summary: "The limits of a session are not said, so nobody can test them.",
    title: "A session never ends",
    description: "R3 says that people stay signed in, and no requirement says for how long.",
    recommendation: "Add a requirement with a limit, such as 30 minutes without a request.",
    failure: "thread 'token::expires' panicked at src/very/long/path/to/the/tests/of/token.rs:41:9",
    doing: "/home/me/src/a/rather/long/path/to/the/project/src/session/token.rs",
};

const CHINESE: Texts = Texts {
    spec: "規格 1/2：登入流程",
    summary: "會話的期限沒有說明，因此沒有人可以測試。",
    title: "會話永遠不會結束",
    description: "R3 要求使用者保持登入，但沒有任何需求說明多久。新增密碼登入：使用者必須輸入電子郵件與密碼，五次失敗後鎖定帳號。",
    recommendation: "新增一個有期限的需求，例如三十分鐘沒有請求就登出，並顯示錯誤訊息。",
    failure: "執行緒 'token::expires' 發生錯誤：預期三十分鐘後登出，但會話仍然有效，位於 src/session/token.rs:41:9",
    doing: "src/會話/期限/以及/一個/相當/長的/路徑/通往/專案/的/檔案/token.rs",
};

/// Steps that ended in each way, what a review found, tests that failed, and a step that runs.
#[expect(clippy::exit, reason = "the view stays as it is")]
fn running(progress: &mut ProgressUi, texts: &Texts) {
    let step = &StepName::ProposalGen;
    progress.watch(&Progress::Skipped { step, label: "Proposal", why: "it is written already" });
    begin(progress, texts.spec);
    done(progress, texts.spec);
    progress.watch(&Progress::Done {
        step: &StepName::Challenge,
        label: "Challenge",
        summary: "NEEDS_REVISION - Found 1 HIGH, 0 MEDIUM, 1 LOW severity issues",
        verdict: Some(Verdict::Plan(PlanVerdict::NeedsRevision)),
        usage: Usage { input: 144_000, output: 5_120, ..Usage::default() },
        cost_usd: 0.31,
        duration: Duration::from_secs(125),
    });
    let issue = |number, severity| Issue {
        number,
        severity,
        title: Line::new(texts.title),
        location: Line::new("agentd/changes/add-oauth/specs/auth-flow.md:12"),
        description: Prose::new(texts.description),
        recommendation: Prose::new(texts.recommendation),
    };
    let issues = [issue(2, Severity::Low), issue(1, Severity::High)];
    progress.watch(&Progress::Findings { summary: texts.summary, issues: &issues });
    progress.watch(&Progress::Note("committed 0123456789 add-oauth: review the plan"));
    progress.watch(&Progress::Warning(texts.summary));
    progress.watch(&Progress::TestsEnded(&TestRun {
        command: "cargo test".to_owned(),
        exit_code: Some(101),
        output_tail: Prose::new(&format!(
            "{}\ntest result: FAILED. 41 passed; 1 failed",
            texts.failure
        )),
        duration_ms: 640,
        at: "2026-11-04T10:00:00Z".parse().unwrap(),
        tree: None,
        tree_after: None,
    }));
    progress.watch(&Progress::Started {
        step: &StepName::Fix,
        label: "Fix 1",
        agent: AgentKind::Claude,
        resumed: true,
        outlook: &Outlook {
            number: 7,
            of: 9,
            to_come: vec!["Tests".to_owned(), "Review 2".to_owned()],
            model: Some("claude-opus-5".to_owned()),
            spent_usd: 0.4,
            budget_usd: Some(5.0),
            forecast_usd: Some([0.9, 2.4]),
        },
    });
    let call = AgentEvent::ToolCall {
        id: "1".into(),
        server: None,
        name: "Write".into(),
        arguments: Json::from(
            serde_json::value::to_raw_value(&serde_json::json!({ "file_path": texts.doing }))
                .unwrap(),
        ),
    };
    progress.watch(&Progress::Agent(&call));
    std::thread::sleep(TICK * 2);
    std::process::exit(0);
}

/// Issue 19, part 3: what a person sees while agents work, at each width, in both languages.
#[test]
fn screens_of_running() {
    let shown = |what: &str, columns: u16, color: bool| {
        let mut command = driver(what);
        if !color {
            command.env("NO_COLOR", "1");
        }
        let (code, seen) = Terminal::start_wide_for_stderr(&mut command, columns).end();
        assert_eq!(code, Some(0), "{seen}");
        // How often the spinner has moved by then does not matter.
        let still = |text: String| {
            let moves = |c: char| ('\u{2800}'..='\u{28ff}').contains(&c);
            text.replace(moves, "⠋").replace('\u{1b}', "␛")
        };
        let (plain, colored) = terminal::at_last(&seen, columns);
        for line in plain.lines() {
            assert!(measure::width(line) <= columns.into(), "{columns}: {line:?}");
        }
        (still(plain), still(colored))
    };
    for (what, name) in [("running", "english"), ("運行中", "chinese")] {
        let widths = std::thread::scope(|scope| {
            let started = [60, 80, 120, 200]
                .map(|columns| (columns, scope.spawn(move || shown(what, columns, false).0)));
            started
                .map(|(columns, seen)| format!("=== {columns} columns\n{}", seen.join().unwrap()))
        });
        let colored = shown(what, 80, true).1;
        let all = format!("{}=== 80 columns, with colors\n{colored}", widths.concat());
        insta::assert_snapshot!(format!("screens_of_running_{name}"), all);
    }
}

/// What is on a screen of so many columns after all that was printed on it. Knows what
/// progress uses, and no more.
fn screen(printed: &str, columns: usize) -> String {
    let (mut lines, mut row, mut column, mut wraps) = (vec![Vec::new()], 0_usize, 0, true);
    let mut rest = printed.chars();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\u{1b}' => {
                assert_eq!(rest.next(), Some('['), "{printed:?}");
                let sequence = rest.as_str();
                let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap();
                let (code, letter) = (&sequence[..end], sequence.as_bytes()[end]);
                rest = sequence[end + 1..].chars();
                let count = code.parse().unwrap_or(1);
                match (code, letter) {
                    ("?7", _) => wraps = letter == b'h',
                    (_, b'A') => row = row.saturating_sub(count),
                    (_, b'K') => lines[row].truncate(column),
                    (_, b'J') => {
                        lines.truncate(row + 1);
                        lines[row].truncate(column);
                    }
                    (_, b'm') => {}
                    other => panic!("{other:?} in {printed:?}"),
                }
            }
            c => {
                if column == columns {
                    assert!(wraps, "a line is too long: {printed:?}");
                    (row, column) = (row + 1, 0);
                }
                if lines.len() <= row {
                    lines.resize(row + 1, Vec::new());
                }
                if lines[row].len() <= column {
                    lines[row].resize(column + 1, ' ');
                }
                lines[row][column] = c;
                column += 1;
            }
        }
        if lines.len() <= row {
            lines.resize(row + 1, Vec::new());
        }
    }
    let text = |line: Vec<char>| line.into_iter().collect::<String>().trim_end().to_owned();
    lines.into_iter().map(text).collect::<Vec<_>>().join("\n")
}

const ENDS: &str = "\
– Proposal  done already
warning: something[2J is odd
✓ Spec 1/3: auth-flow  4.5 s · 12.0k in, 345 out · $0.0123 · 4 requirements
No specs required for this change
✗ Tasks  1 m 05 s · failed
";

#[test]
fn a_terminal_has_a_line_that_lives_and_then_one_that_stays() {
    let mut terminal = Terminal::start_for_stderr(driver("steps").env("NO_COLOR", "1"));
    let colored = Terminal::start_for_stderr(&mut driver("steps"));
    let live = "Spec 1/3: auth-flow  0:00 · gemini";
    let moves =
        |seen: &str| seen.contains(&format!("⠋ {live}")) && seen.contains(&format!("⠙ {live}"));
    terminal.wait_until(moves);
    terminal.wait_until(|seen| seen.contains("gemini\u{1b}[K\r\r\n  create_spec"));
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0), "{seen:?}");
    assert_eq!(screen(&seen, 80), ENDS);
    assert!(!seen.contains("\u{1b}[3") && !seen.contains("\u{1b}[1m"), "colors: {seen:?}");
    assert!(!seen.contains("?25"), "the cursor is left alone: {seen:?}");
    let (_, seen) = colored.end();
    assert!(seen.contains("\u{1b}[32m✓"), "{seen:?}");
    assert_eq!(screen(&seen, 80), ENDS);
}

const PLAIN: &str = "\
Proposal: skipped, done already
Spec 1/3: auth-flow: started (gemini)
warning: something[2J is odd
Spec 1/3: auth-flow: done, 4.5 s, 12.0k in, 345 out, $0.0123, 4 requirements
No specs required for this change
Tasks: started (gemini)
Tasks: failed, 1 m 05 s, no
";

#[test]
fn elsewhere_there_are_plain_lines() {
    let dumb = Terminal::start_for_stderr(driver("steps").env("TERM", "dumb"));
    let output = driver("steps").stdin(Stdio::null()).env("TERM", "xterm").output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), PLAIN);
    let (code, seen) = dumb.end();
    assert_eq!(code, Some(0));
    assert!(!seen.contains(ESC), "{seen:?}");
    assert!(seen.replace('\r', "").contains(PLAIN), "{seen:?}");
}

#[test]
fn ctrl_c_leaves_a_clean_screen_also_after_a_resize() {
    let mut terminal = Terminal::start_for_stderr(driver("interrupt").env("NO_COLOR", "1"));
    terminal.wait_until(|seen| seen.contains("rather long  0:00 · gemini"));
    terminal.resize(30);
    // 66 columns are three lines of 30 now: they go, and a shorter line comes.
    let up = "\r\u{1b}[2A\u{1b}[J";
    terminal.wait_until(|seen| seen.contains(up));
    let shorter = |seen: &str| seen.split(up).nth(1).is_some_and(|rest| rest.contains("…  0:00"));
    terminal.wait_until(shorter);
    terminal.signal(Signal::INT);
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(0));
    let after = seen.split(up).nth(1).unwrap();
    assert_eq!(screen(after, 30), "✗ Spec 1/3: auth-flow\n  1.0 s · interrupted\n");
}

/// Issue 19: Ctrl-C twice kills, and leaves nothing of the view behind.
#[test]
fn a_second_ctrl_c_leaves_one_line() {
    let mut terminal = Terminal::start_for_stderr(driver("kill").env("NO_COLOR", "1"));
    terminal.wait_until(|seen| seen.contains("Data layer  0:00 · gemini"));
    terminal.signal(Signal::INT);
    terminal.wait_until(|seen| seen.contains("stopping; Ctrl-C again kills it"));
    terminal.signal(Signal::INT);
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(130), "{seen:?}");
    let shown = screen(&seen, 80);
    assert_eq!(shown.trim_start(), "killed; continue: agentd impl add-oauth\n");
}

/// A writer that counts.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<(usize, usize)>>);

impl io::Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut counted = self.0.lock().unwrap();
        *counted = (counted.0 + 1, counted.1 + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Issue 19: a frame is one write and takes less than 2 ms, here with long Chinese texts in 200 columns.
/// Others who use the machine only make it slower, so the fastest frame counts.
#[test]
fn a_frame_is_one_write_and_takes_no_time() {
    const FRAMES: usize = 100;
    let text = "新增密碼登入：使用者必須輸入電子郵件與密碼，五次失敗後鎖定帳號，並顯示錯誤訊息。";
    let outlook = Outlook {
        number: 3,
        of: 9,
        to_come: vec![text.to_owned(); 5],
        model: Some(text.to_owned()),
        spent_usd: 0.4,
        budget_usd: Some(5.0),
        forecast_usd: Some([0.1, 0.4]),
    };
    let step = Running {
        label: format!("Spec 1/3: {text}"),
        doing: text.repeat(1000),
        in_text: true,
        outlook,
        ..Running::default()
    };
    let counting = Counting::default();
    let live = Live::new(None);
    let mut screen = live.shared.lock();
    screen.out = Out(Box::new(counting.clone()));
    screen.step = Some((step, Instant::now()));
    let mut fastest = Duration::MAX;
    for frame in 1..=FRAMES {
        screen.frame = frame;
        let start = Instant::now();
        screen.draw_at(Size { columns: 200, rows: 50 });
        fastest = fastest.min(start.elapsed());
        assert_eq!(counting.0.lock().unwrap().0, frame, "one write per frame");
    }
    // Measured: 0.2 ms without optimization.
    assert!(fastest < Duration::from_millis(2), "{fastest:?}");
    screen.print("a line that stays");
    assert_eq!(counting.0.lock().unwrap().0, FRAMES + 1, "it comes with the next frame");
    screen.step = None;
}

#[test]
fn a_panic_is_told_on_a_clean_line() {
    let (code, seen) = Terminal::start_for_stderr(driver("panic").env("NO_COLOR", "1")).end();
    assert_eq!(code, Some(101));
    let screen = screen(&seen, 200);
    assert!(screen.lines().any(|line| line == "as a test"), "{screen}");
    assert!(!screen.contains("Proposal"), "{screen}");
}

#[test]
fn a_question_after_a_step_has_the_terminal_for_itself() {
    let check = |keys: &[&str], expected: &str| {
        let mut terminal = Terminal::start_for_stderr(driver("prompt").env("NO_COLOR", "1"));
        terminal.wait_for("What next?");
        terminal.wait_for("Stop here");
        // Time in which the line would be drawn, if it were.
        std::thread::sleep(TICK * 2);
        for key in keys {
            terminal.press(key);
        }
        let seen = terminal.wait_until(|seen| seen.contains("over"));
        let (until_then, _) = seen.split_once("over").unwrap();
        assert!(!until_then.contains("Challenge"), "{seen:?}");
        terminal.wait_for(expected);
        terminal.end();
    };
    // All that they do is to wait, so they do it side by side.
    std::thread::scope(|scope| {
        scope.spawn(|| check(&["\r"], "answered Fix"));
        scope.spawn(|| check(&[DOWN, "\r"], "answered Accept"));
        scope.spawn(|| check(&[DOWN, DOWN, "\r"], "answered Review"));
        scope.spawn(|| check(&[DOWN, DOWN, DOWN, DOWN, DOWN, "\r"], "answered Stop"));
        scope.spawn(|| check(&[CTRL_C], "exit 130"));
        scope.spawn(|| check(&[ESC], "exit 130"));
    });
}

#[test]
fn where_a_change_is_worked_on_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
        let mut command = Command::new("git");
        let output = command.args(identity).args(args).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["commit", "-q", "--allow-empty", "-m", "start"]);
    std::fs::write(dir.path().join("mine"), "x").unwrap();
    let mut command = driver("git");
    let mut terminal =
        Terminal::start_for_stderr(command.env("NO_COLOR", "1").current_dir(dir.path()));
    terminal.wait_for("Where should `add-oauth` be worked on?");
    terminal.wait_for("On the branch agentd/add-oauth (recommended)");
    terminal.wait_for("worktree of its own");
    terminal.wait_for("In place, on main");
    terminal.wait_for("1 uncommitted file will move to the branch");
    terminal.press(DOWN);
    terminal.press("\r");
    terminal.wait_for("answered Worktree");
    assert_eq!(terminal.end().0, Some(0));
}

/// A stream of gigabytes is not slowed down by being watched.
#[test]
fn an_event_costs_next_to_nothing() {
    let mut live = Live::new(None);
    live.shared.lock().step = Some((Running::default(), Instant::now()));
    let text = "x".repeat(1 << 16);
    let event = AgentEvent::Text { text: text.into(), delta: false };
    let start = Instant::now();
    for _ in 0..10_000 {
        live.watch(&Progress::Agent(&event), &Roots::default());
    }
    let each = start.elapsed() / 10_000;
    live.shared.lock().step = None;
    // Measured: well below a microsecond. The bound is for machines that stall.
    assert!(each < Duration::from_micros(50), "{each:?}");
}
