//! The agents' programs on this machine.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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
    let mut command = Command::new(program);
    let mut child = in_own_group(command.arg("--version"))
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
            kill_group(&mut child);
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

/// Agents are wrappers around other programs: they are ended together.
#[cfg(unix)]
pub(crate) fn in_own_group(command: &mut Command) -> &mut Command {
    std::os::unix::process::CommandExt::process_group(command, 0)
}

#[cfg(not(unix))]
pub(crate) fn in_own_group(command: &mut Command) -> &mut Command {
    command
}

/// Sends a signal to a child that has its own group, and to all that is in it.
#[cfg(unix)]
pub(crate) fn signal_group(child: &Child, signal: rustix::process::Signal) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

pub(crate) fn kill_group(child: &mut Child) {
    #[cfg(unix)]
    signal_group(child, rustix::process::Signal::KILL);
    let _ = child.kill();
    let _ = child.wait();
}

/// Why agentd's own MCP server did not answer.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// It could not be started.
    #[error("it cannot be started: {0}")]
    Start(#[from] std::io::Error),
    /// It took too long.
    #[error("it did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It answered something else.
    #[error("it ended or answered with something else: {0}")]
    Answer(String),
}

/// Starts the MCP server as an agent would, and asks it for its tools: how many there are.
pub fn mcp_handshake(
    agentd: &Path,
    project: &Path,
    limit: Duration,
) -> Result<usize, HandshakeError> {
    let mut command = Command::new(agentd);
    let mut child = in_own_group(command.arg("mcp"))
        .current_dir(project)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let asked = ask_for_tools(&mut child, limit);
    kill_group(&mut child);
    asked
}

fn ask_for_tools(child: &mut Child, limit: Duration) -> Result<usize, HandshakeError> {
    let closed = || HandshakeError::Answer("no pipe".to_owned());
    let mut stdin = child.stdin.take().ok_or_else(closed)?;
    let stdout = child.stdout.take().ok_or_else(closed)?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let hello = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "agentd-doctor", "version": env!("CARGO_PKG_VERSION") },
    }});
    let ready = serde_json::json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let tools = serde_json::json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let mut answer = None;
    for (message, wants_answer) in [(hello, true), (ready, false), (tools, true)] {
        writeln!(stdin, "{message}")?;
        if wants_answer {
            let line = receiver.recv_timeout(limit).map_err(|_| HandshakeError::TimedOut(limit))?;
            answer = serde_json::from_str::<serde_json::Value>(&line)
                .ok()
                .filter(|a| a.get("result").is_some());
            if answer.is_none() {
                return Err(HandshakeError::Answer(line));
            }
        }
    }
    let count =
        answer.as_ref().and_then(|answer| answer["result"]["tools"].as_array()).map(Vec::len);
    count.ok_or_else(|| HandshakeError::Answer("no list of tools".to_owned()))
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
