use std::path::Path;
use std::time::Duration;

use agentd_core::outcome::Stopped;
use agentd_engine::process::{CancelReason, Input, ProcessError};

use crate::support::{Fake, assert_none_left};

#[test]
fn output_errors_and_exit_code_come_through() {
    let mut fake = Fake::new();
    let ended = fake.run(&["read", "say", "one", "err", "oops", "half", "two", "exit", "7"]);
    assert_eq!(fake.kept.texts(), ["one", "two"]);
    assert_eq!((ended.code, ended.signal, ended.stopped), (Some(7), None, None));
    assert_eq!(ended.stderr_tail, "oops\n");
    assert_eq!(fake.kept.stderr, b"oops\n");
    assert_eq!(ended.input, Input::Written);
    assert_eq!(ended.stragglers, 0);
}

#[test]
fn it_runs_in_the_given_directory_and_environment() {
    let dir = tempfile::tempdir().unwrap();
    let mut fake = Fake::new();
    fake.cwd = dir.path().canonicalize().unwrap();
    fake.run(&["cwd", "env", "IT_MARK", "env", "CARGO_MANIFEST_DIR"]);
    let expected = [
        fake.cwd.to_str().unwrap().to_owned(),
        format!("IT_MARK={}", fake.mark),
        "CARGO_MANIFEST_DIR=".to_owned(),
    ];
    assert_eq!(fake.kept.texts(), expected);
}

#[test]
fn a_line_in_pieces_is_one_line() {
    let mut fake = Fake::new();
    fake.run(&["half", "{\"a\":", "sleep", "50", "half", "1}", "sleep", "50", "say", ""]);
    assert_eq!(fake.kept.texts(), ["{\"a\":1}"]);
}

#[test]
fn a_line_of_50_mb_is_cut_and_counted() {
    let mut fake = Fake::new();
    fake.limits.line_bytes = 1 << 20;
    fake.run(&["long", "52428800", "say", "after"]);
    assert_eq!(fake.kept.lines[0].0.len(), 1 << 20);
    assert_eq!(fake.kept.lines[0].1, 52_428_800 - (1 << 20));
    assert_eq!(fake.kept.lines[1], (b"after".to_vec(), 0));
}

#[test]
fn bytes_that_are_not_utf8_come_through() {
    let mut fake = Fake::new();
    fake.run(&["bytes", "ff fe 41 0a", "say", "ok"]);
    assert_eq!(fake.kept.lines[0].0, [0xff, 0xfe, b'A']);
    assert_eq!(fake.kept.lines[1].0, b"ok");
}

#[test]
fn a_death_by_signal_is_reported() {
    let ended = Fake::new().run(&["kill-self"]);
    assert_eq!((ended.code, ended.signal), (None, Some(9)));
    assert_eq!(Fake::new().run(&["exit", "137"]).code, Some(137));
}

#[test]
fn input_that_is_not_taken_is_reported() {
    let mut fake = Fake::new();
    fake.stdin = vec![b'x'; 4 << 20];
    let ended = fake.run(&["close-stdin", "sleep", "200", "say", "bye"]);
    assert!(matches!(ended.input, Input::ClosedEarly { unread } if unread > 3 << 20), "{ended:?}");
    assert_eq!(fake.kept.texts(), ["bye"]);
}

#[test]
fn input_of_any_size_is_taken() {
    let mut fake = Fake::new();
    fake.stdin = vec![b'x'; 8 << 20];
    assert_eq!(fake.run(&["sleep", "50", "read"]).input, Input::Written);
    fake.stdin = Vec::new();
    assert_eq!(fake.run(&["read"]).input, Input::Written);
}

#[test]
fn a_program_that_never_ends_is_stopped() {
    let mut fake = Fake::new();
    fake.limits.whole = Duration::from_millis(300);
    let ended = fake.run(&["say", "hi", "forever"]);
    assert_eq!(ended.stopped, Some(Stopped::TimeLimit));
    assert_eq!(ended.signal, Some(15));
    assert_eq!(fake.kept.texts(), ["hi"]);
}

#[test]
fn a_silent_program_is_stopped_and_a_talking_one_is_not() {
    let check = |args: &[&str], stopped: Option<Stopped>| {
        let mut fake = Fake::new();
        fake.limits.idle = Duration::from_millis(700);
        assert_eq!(fake.run(args).stopped, stopped);
    };
    let talks =
        ["sleep", "300", "say", "a", "sleep", "300", "err", "b", "sleep", "300", "say", "c"];
    std::thread::scope(|scope| {
        scope.spawn(|| check(&talks, None));
        scope.spawn(|| check(&["forever"], Some(Stopped::IdleLimit)));
    });
}

#[test]
fn ignoring_term_does_not_help() {
    let mut fake = Fake::new();
    fake.limits.whole = Duration::from_millis(300);
    let ended = fake.run(&["ignore-term", "grandchild", "forever"]);
    assert_eq!(ended.stopped, Some(Stopped::TimeLimit));
    assert_eq!(ended.signal, Some(9));
}

#[test]
fn a_grandchild_that_holds_the_pipe_delays_and_dies() {
    let check = |action: &str| {
        let mut fake = Fake::new();
        let ended = fake.run(&["say", "hi", action, "exit", "0"]);
        assert_eq!(fake.kept.texts(), ["hi"], "{action}");
        assert_eq!(ended.code, Some(0));
        assert!(ended.undrained, "{action}");
        assert!(ended.stragglers >= 1, "{action}");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| check("grandchild"));
        scope.spawn(|| check("daemon"));
    });
}

#[test]
fn a_daemon_that_holds_nothing_dies_too() {
    let ended = Fake::new().run(&["quiet-daemon", "quiet-daemon", "say", "hi"]);
    assert!(!ended.undrained);
    assert!(ended.stragglers >= 2, "{}", ended.stragglers);
}

#[test]
fn cancelling_interrupts_the_program() {
    let mut fake = Fake::new();
    // It ends at once. On a loaded machine, at once may take longer than the usual grace period.
    fake.limits.grace = Duration::from_secs(20);
    let cancel = fake.cancel.clone();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        cancel.cancel(CancelReason::Interrupt);
    });
    let ended = fake.run(&["daemon", "forever"]);
    thread.join().unwrap();
    assert_eq!((ended.stopped, ended.signal), (Some(Stopped::Cancelled), Some(2)));
}

#[test]
fn a_watcher_can_stop_it() {
    let mut fake = Fake::new();
    fake.kept.stop_at = Some("stop");
    let ended = fake.run(&["say", "go", "say", "stop", "forever"]);
    assert_eq!(ended.stopped, Some(Stopped::Cancelled));
}

#[test]
fn reasons_for_not_starting_are_distinguished() {
    let mut fake = Fake::new();
    let missing = fake.try_run(Path::new("/nowhere/agent"), &[]).unwrap_err();
    assert!(matches!(&missing, ProcessError::Start { source, .. }
        if source.kind() == std::io::ErrorKind::NotFound));
    let directory = fake.try_run(Path::new("/tmp"), &[]).unwrap_err();
    assert!(matches!(directory, ProcessError::Start { .. }));
    assert_none_left(&fake.mark);
}

#[test]
fn a_long_standard_error_is_kept_as_a_tail() {
    let mut fake = Fake::new();
    fake.limits.stderr_bytes = 1000;
    let text = "y".repeat(100_000);
    let ended = fake.run(&["err", &text, "err", "the end"]);
    assert_eq!(ended.stderr_tail.len(), 1000);
    assert!(ended.stderr_tail.ends_with("the end\n"));
}

#[test]
fn a_killed_supervisor_ends_the_program() {
    let mut fake = Fake::new();
    let mark = fake.mark.clone();
    let thread = std::thread::spawn(move || {
        let until = std::time::Instant::now() + Duration::from_secs(10);
        // Both are there once the agent is.
        while std::time::Instant::now() < until {
            let all = crate::support::marked(&mark);
            if all.iter().any(|(_, line)| line.contains("fake-agent") && !line.contains("__super"))
                && let Some((pid, _)) = all.iter().find(|(_, line)| line.contains("__supervise"))
            {
                std::thread::sleep(Duration::from_millis(100));
                let pid = rustix::process::Pid::from_raw((*pid).try_into().unwrap()).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let error = fake.try_run(&crate::support::example("fake-agent"), &["forever"]).unwrap_err();
    thread.join().unwrap();
    assert!(matches!(error, ProcessError::SupervisorLost { .. }), "{error}");
    assert_none_left(&fake.mark);
}
