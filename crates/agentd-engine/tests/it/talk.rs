//! Programs that are talked to: turn by turn, frozen in between, and ended with everything that
//! they have started.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentd_core::outcome::Stopped;
use agentd_engine::process::{
    Cage, Cancel, CancelReason, Enforced, Flow, Limits, Line, Program, Running, Talk, Watcher,
};

use crate::support::{assert_none_left, environment, mark, supervisor};

/// Says something, and is content with an answer that ends in a word.
#[derive(Default)]
struct Speaker {
    says: Vec<u8>,
    until: &'static str,
    heard: Vec<String>,
    /// Whether it would rather tell the program to stop than have a signal sent.
    asks_to_stop: bool,
}

impl Watcher for Speaker {
    fn line(&mut self, line: Line<'_>) -> Flow {
        self.heard.push(String::from_utf8_lossy(line.bytes).into_owned());
        Flow::Continue
    }

    fn stderr(&mut self, _: &[u8]) {}

    fn pause(&mut self) {}

    fn input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.says)
    }

    fn is_over(&self) -> bool {
        self.heard.last().is_some_and(|line| line.ends_with(self.until))
    }

    fn stop(&mut self) -> bool {
        self.says = b"stop\n".to_vec();
        self.asks_to_stop
    }
}

struct Script {
    mark: String,
    running: Running,
    cancel: Cancel,
    dir: tempfile::TempDir,
}

impl Script {
    /// Starts a shell script that is talked to.
    fn start(script: &str, caged: bool) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["work", "tmp"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let (mark, work) = (mark(), dir.path().join("work"));
        let cage = Cage {
            writable: vec![work.clone()],
            visible: vec![dir.path().to_owned()],
            tmp: Some(dir.path().join("tmp/tmp")),
            layers: supervisor().enforceable().layers(),
            ..Cage::default()
        };
        fs::create_dir(dir.path().join("tmp/tmp")).unwrap();
        let program = Program {
            program: "/bin/sh",
            args: &["-c".to_owned(), script.to_owned()],
            env: &environment(&mark),
            cwd: &work,
            stdin: b"",
            keeps_input_open: true,
            cage: caged.then_some(&cage),
        };
        let running = Running::start(&supervisor(), program, Limits::default()).unwrap();
        Self { mark, running, cancel: Cancel::new().unwrap(), dir }
    }

    fn say(&mut self, says: &str, until: &'static str) -> (Talk, Vec<String>) {
        let mut speaker = Speaker { says: says.as_bytes().to_vec(), until, ..Speaker::default() };
        let talk = self.talk(&mut speaker, Limits::default());
        (talk, speaker.heard)
    }

    fn talk(&mut self, speaker: &mut Speaker, limits: Limits) -> Talk {
        self.running.talk(limits, &self.cancel, speaker).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }
}

const ECHO: &str = "while read line; do echo \"got $line\"; done; echo bye";

#[test]
fn a_program_answers_turn_by_turn_and_then_ends() {
    let mut script = Script::start(ECHO, false);
    for word in ["one", "two"] {
        let (talk, heard) = script.say(&format!("{word}\n"), word);
        assert!(matches!(talk, Talk::Over { stopped: None }), "{talk:?}");
        assert_eq!(heard, [format!("got {word}")]);
        assert!(script.running.is_alive());
    }
    let mark = script.mark.clone();
    // It is killed, unless the end of its input was quicker.
    let end = script.running.end();
    assert!(matches!((end.code, end.signal), (Some(0), None) | (None, Some(9))), "{end:?}");
    assert_none_left(&mark);
}

#[test]
fn what_is_dropped_is_ended_with_all_that_it_started() {
    let mut script = Script::start("sleep 60 & setsid sleep 61 & echo here; read x", false);
    script.say("", "here");
    let mark = script.mark.clone();
    drop(script);
    assert_none_left(&mark);
}

#[test]
fn a_program_that_ends_in_its_turn_is_noticed() {
    let mut script = Script::start("read line; exit 3", false);
    let (talk, heard) = script.say("x\n", "never");
    assert!(matches!(talk, Talk::Ended(end) if end.code == Some(3)));
    assert!(heard.is_empty());
    assert_none_left(&script.mark);
}

#[test]
fn a_program_is_asked_to_stop_and_killed_if_it_does_not() {
    let limits = Limits { grace: Duration::from_millis(300), ..Limits::default() };
    for (script, stops) in [(ECHO, true), ("trap '' TERM; echo on; sleep 60", false)] {
        let mut script = Script::start(script, false);
        script.cancel.cancel(CancelReason::Terminate);
        let mut speaker = Speaker { until: "got stop", asks_to_stop: true, ..Speaker::default() };
        // On a loaded machine, an answer may take longer than the usual grace period.
        let grace = if stops { Duration::from_secs(20) } else { limits.grace };
        match script.talk(&mut speaker, Limits { grace, ..limits }) {
            Talk::Over { stopped } => assert!(stops && stopped == Some(Stopped::Cancelled)),
            Talk::Ended(end) => assert!(!stops && end.stopped == Some(Stopped::Cancelled)),
        }
        let mark = script.mark.clone();
        drop(script);
        assert_none_left(&mark);
    }
}

// contract G5
#[test]
fn a_frozen_program_does_nothing_until_it_is_thawed() {
    if !namespaces() {
        return;
    }
    // One that counts, and one that has left the group and counts as well.
    let count = "i=0; while :; do i=$((i+1)); echo $i > ";
    let mut script = Script::start(
        &format!("setsid sh -c '{count} far; done' & ({count} near; done) & echo here; read x"),
        true,
    );
    script.say("", "here");
    let (near, far) = (script.file("near"), script.file("far"));
    until_it_grows(&near);
    until_it_grows(&far);
    assert!(script.running.freeze());
    let before = [&near, &far].map(|file| fs::read_to_string(file).unwrap());
    std::thread::sleep(Duration::from_millis(300));
    let after = [&near, &far].map(|file| fs::read_to_string(file).unwrap());
    assert_eq!(before, after, "something ran on");
    assert!(script.running.is_alive());
    script.running.thaw();
    until_it_grows(&near);
    until_it_grows(&far);
    // A frozen one can be ended, too.
    assert!(script.running.freeze());
    let mark = script.mark.clone();
    drop(script);
    assert_none_left(&mark);
}

// contract G5
#[test]
fn a_program_whose_processes_nobody_knows_is_not_taken_for_frozen() {
    let mut script = Script::start("echo here; read x", false);
    script.say("", "here");
    assert!(!script.running.freeze());
}

fn namespaces() -> bool {
    let Enforced { processes, .. } = supervisor().enforceable();
    processes
}

fn until_it_grows(file: &Path) {
    let number = || fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let before = number().unwrap_or(0);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while number().is_none_or(|now| now <= before) {
        assert!(std::time::Instant::now() < until, "{} does not grow", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}
