//! agentd is killed at random moments: nothing is left, every run file is readable.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use agentd_core::outcome::{AgentOutcome, FailureKind};
use agentd_core::run_format::Record;
use agentd_engine::agents::run_record::read_run;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{assert_none_left, environment, example, mark};

#[test]
fn heavy_fifty_kills_leave_no_process_and_readable_files() {
    // Moments are spread over the first fraction of a second in steps that do not
    // repeat: before, while and after the agent starts. Most of the time is waiting,
    // so ten run side by side.
    std::thread::scope(|scope| {
        for lane in 0..10_u64 {
            scope.spawn(move || {
                for round in (0..5).map(|step| step * 10 + lane) {
                    let signal = [Signal::KILL, Signal::TERM, Signal::INT][(round % 3) as usize];
                    let moment = Duration::from_micros((round * 7919) % 120_000);
                    kill_once(signal, moment, round);
                }
            });
        }
    });
}

#[test]
fn an_interrupted_run_is_recorded_to_its_end() {
    let dir = test_project::temp_dir();
    let mark = mark();
    let mut driver = Command::new(example("drive"))
        .args(["gemini", dir.path().to_str().unwrap()])
        .arg(example("fake-agent"))
        .args([
            "ignore-term",
            "daemon",
            "say",
            "{\"type\":\"init\",\"session_id\":\"s\"}",
            "forever",
        ])
        .env_clear()
        .envs(environment(&mark))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "started");
    kill_process(Pid::from_child(&driver), Signal::INT).unwrap();
    let outcome: AgentOutcome = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(outcome.failure.unwrap().kind, FailureKind::Cancelled);
    assert_eq!(driver.wait().unwrap().code(), Some(1));
    assert_none_left(&mark);
    let file = dir.path().join("agentd/changes/add-oauth/runs/0001-proposal-gen.jsonl");
    let last = read_run(&file).unwrap().last().unwrap().unwrap();
    let Record::End { end, .. } = last else { panic!("{last:?}") };
    assert_eq!(end.outcome.session_id.as_deref(), Some("s"));
}

fn kill_once(signal: Signal, moment: Duration, round: u64) {
    let dir = test_project::temp_dir();
    let mark = mark();
    let actions: &[&str] = match round % 4 {
        0 => {
            &["daemon", "grandchild", "say", "{\"type\":\"init\",\"session_id\":\"s\"}", "forever"]
        }
        1 => &["ignore-term", "quiet-daemon", "events", "gemini", "100000"],
        2 => &["read", "events", "gemini", "100000"],
        _ => &["grandchild", "ignore-term", "sleep", "20", "forever"],
    };
    let mut driver = Command::new(example("drive"))
        .args(["gemini", dir.path().to_str().unwrap()])
        .arg(example("fake-agent"))
        .args(actions)
        .env_clear()
        .envs(environment(&mark))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(moment);
    // It may have ended already, and that is fine too.
    let _ = kill_process(Pid::from_child(&driver), signal);
    driver.wait().unwrap();
    assert_none_left(&mark);
    let runs = dir.path().join("agentd/changes/add-oauth/runs");
    for file in std::fs::read_dir(runs).into_iter().flatten().flatten() {
        let records: Vec<Record> =
            read_run(&file.path()).unwrap().collect::<Result<_, _>>().unwrap();
        let size = file.metadata().unwrap().len();
        let fine = size == 0 || matches!(records.first(), Some(Record::Header(_)));
        assert!(fine, "round {round}: {size} bytes, {:?}", records.first());
    }
}
