//! The agents' programs on this machine.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The program that a name or a path means, looked up in a `PATH`.
pub fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    if name.contains('/') {
        return is_program(Path::new(name)).then(|| PathBuf::from(name));
    }
    std::env::split_paths(path)
        .filter(|dir| !dir.as_os_str().is_empty())
        .map(|dir| dir.join(name))
        .find(|candidate| is_program(candidate))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Why a program did not tell its version.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// It could not be started.
    #[error("it cannot be started: {0}")]
    Start(#[from] std::io::Error),
    /// It took too long.
    #[error("`--version` did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It failed.
    #[error("`--version` failed: {0}")]
    Failed(String),
}

/// More than this is no version.
const ENOUGH: usize = 4096;

/// What a program answers to `--version`, in its own words but on one line.
pub fn version(program: &Path, limit: Duration) -> Result<String, VersionError> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let Some(mut stdout) = child.stdout.take() else {
        return Err(VersionError::Failed("no output".to_owned()));
    };
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        // Read to the end, whoever listens: a closed pipe would kill the program.
        let mut piece = [0; 4096];
        let mut sent = 0;
        while let Ok(read @ 1..) = stdout.read(&mut piece) {
            if sent < ENOUGH {
                let _ = sender.send(piece[..read].to_vec());
                sent += read;
            }
        }
    });
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() >= limit {
            let _ = child.kill();
            let _ = child.wait();
            return Err(VersionError::TimedOut(limit));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    // It has ended, but something that it left behind may hold the pipe open.
    let mut text = Vec::new();
    while let Ok(piece) = receiver.recv_timeout(Duration::from_millis(500)) {
        text.extend(piece);
        if text.len() >= ENOUGH {
            break;
        }
    }
    let text = String::from_utf8_lossy(&text);
    let line = agentd_core::text::Line::new(text.lines().next().unwrap_or_default()).to_string();
    if status.success() && !line.is_empty() {
        Ok(line)
    } else {
        Err(VersionError::Failed(status.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path() {
        let path = OsStr::new("/nowhere::/usr/bin:/bin");
        assert!(find_program("sh", path).is_some());
        assert!(find_program("no-such-program-at-all", path).is_none());
        assert!(find_program("/etc/passwd", path).is_none(), "a file that cannot be run");
    }

    #[test]
    fn a_program_that_hangs_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("hangs");
        // Silent, and silent with its output closed.
        for hangs in ["exec sleep 60", "exec sleep 60 >&-"] {
            std::fs::write(&program, format!("#!/bin/sh\n{hangs}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&program, mode).unwrap();
            let error = version(&program, Duration::from_millis(200)).unwrap_err();
            assert!(matches!(error, VersionError::TimedOut(_)), "{hangs}: {error}");
        }
    }
}
