//! What runs in a sandbox.

use std::fs;
use std::time::{Duration, Instant};

use crate::Sandbox;

impl Sandbox {
    /// The command lines of all processes in the sandbox. They are found by their home directory,
    /// because process IDs differ inside the containers of the agents.
    pub fn processes(&self) -> Vec<String> {
        let mark = format!("HOME={}", self.home().display());
        let all = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let read = |path: std::path::PathBuf| {
            String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
        };
        all.filter(|path| read(path.join("environ")).split('\0').any(|entry| entry == mark))
            .map(|path| read(path.join("cmdline")).replace('\0', " "))
            .collect()
    }

    /// Waits until nothing runs in the sandbox.
    #[track_caller]
    pub fn until_nothing_runs(&self) {
        let start = Instant::now();
        let mut left = self.processes();
        while !left.is_empty() {
            assert!(start.elapsed() < Duration::from_secs(10), "still running: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
            left = self.processes();
        }
    }
}

/// Waits for something that another process does.
#[track_caller]
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_mins(1), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
