//! Where the stand-ins are, and how to see what they leave behind.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use agentd_engine::process::{
    Cage, Cancel, Flow, Limits, Line, ProcessEnd, ProcessError, Program, Supervisor, Watcher, run,
};

/// A program among the examples, which cargo builds along with the tests.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let path = profile.join("examples").join(name);
    assert!(
        path.exists(),
        "{} is not built: cargo build -p agentd-engine --examples",
        path.display()
    );
    path
}

pub(crate) fn supervisor() -> Supervisor {
    Supervisor::new(example("drive"))
}

/// A name for the environment by which the processes of one test are found.
pub(crate) fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("it-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}

pub(crate) fn environment(mark: &str) -> Vec<(OsString, OsString)> {
    let keep = ["PATH", "HOME", "TMPDIR"];
    let mut environment: Vec<(OsString, OsString)> =
        std::env::vars_os().filter(|(name, _)| keep.iter().any(|keep| name == keep)).collect();
    environment.push(("IT_MARK".into(), mark.into()));
    environment
}

/// The processes that carry the mark: their ids and command lines.
pub(crate) fn marked(mark: &str) -> Vec<(u32, String)> {
    let wanted = format!("IT_MARK={mark}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
        }
    }
    found
}

/// Waits until no process carries the mark. The time is a bound for a test that
/// has gone wrong, not a measurement.
pub(crate) fn assert_none_left(mark: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "left behind: {left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Keeps the lines of a program.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) lines: Vec<(Vec<u8>, u64)>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) stop_at: Option<&'static str>,
}

impl Watcher for Kept {
    fn line(&mut self, line: Line<'_>) -> Flow {
        self.lines.push((line.bytes.to_vec(), line.dropped));
        match self.stop_at {
            Some(text) if line.bytes == text.as_bytes() => Flow::Stop,
            _ => Flow::Continue,
        }
    }
    fn stderr(&mut self, bytes: &[u8]) {
        self.stderr.extend_from_slice(bytes);
    }
    fn pause(&mut self) {}
}

impl Kept {
    pub(crate) fn texts(&self) -> Vec<String> {
        self.lines.iter().map(|(line, _)| String::from_utf8_lossy(line).into_owned()).collect()
    }
}

/// A run of the fake agent.
pub(crate) struct Fake {
    pub(crate) limits: Limits,
    pub(crate) stdin: Vec<u8>,
    pub(crate) cancel: Cancel,
    pub(crate) kept: Kept,
    pub(crate) mark: String,
    pub(crate) cwd: PathBuf,
    pub(crate) cage: Option<Cage>,
    /// Not the home of the user who runs the tests.
    pub(crate) home: Option<PathBuf>,
}

impl Fake {
    pub(crate) fn new() -> Self {
        let limits = Limits { grace: Duration::from_millis(300), ..Limits::default() };
        Self {
            limits: Limits { drain: Duration::from_millis(500), ..limits },
            stdin: b"prompt\n".to_vec(),
            cancel: Cancel::new().unwrap(),
            kept: Kept::default(),
            mark: mark(),
            cwd: std::env::temp_dir(),
            cage: None,
            home: None,
        }
    }

    pub(crate) fn try_run(
        &mut self,
        program: &Path,
        args: &[&str],
    ) -> Result<ProcessEnd, ProcessError> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut environment = environment(&self.mark);
        if let Some(home) = &self.home {
            environment.retain(|(name, _)| name != "HOME");
            environment.push(("HOME".into(), home.into()));
        }
        let program = Program {
            program: program.to_str().unwrap(),
            args: &args,
            env: &environment,
            cwd: &self.cwd,
            stdin: &self.stdin,
            keeps_input_open: false,
            cage: self.cage.as_ref(),
        };
        run(&supervisor(), program, self.limits, &self.cancel, &mut self.kept)
    }

    /// Runs it and sees to it that nothing is left.
    pub(crate) fn run(&mut self, args: &[&str]) -> ProcessEnd {
        let ended = self.try_run(&example("fake-agent"), args).unwrap();
        let left = marked(&self.mark);
        assert!(left.is_empty(), "left behind: {left:?}");
        ended
    }
}
