//! Starting other programs.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::fs::File;
use std::path::Path;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use crate::Result;

/// A command in a directory, with nothing to read: no step may wait for a person.
pub(crate) fn command(program: impl AsRef<OsStr>, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// Shows the command line, runs it with our own stdout and stderr, and fails
/// where it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", line(command));
    let status = command.status().map_err(|error| not_started(command, &error))?;
    check(command, status)
}

/// As [`run`], but ends the command after `limit`.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<()> {
    println!("$ {}   (at most {} s)", line(command), limit.as_secs());
    let child = command.spawn().map_err(|error| not_started(command, &error))?;
    let status = wait_within(child, limit)?
        .ok_or_else(|| format!("{} took more than {} s", name(command), limit.as_secs()))?;
    check(command, status)
}

/// As [`run_within`], but what the command prints is shown only where it fails: for
/// what runs beside something else that prints.
pub(crate) fn run_quietly_within(command: &mut Command, limit: Duration) -> Result<()> {
    println!("$ {}   (beside the other steps, at most {} s)", line(command), limit.as_secs());
    // A file, because a service that the command starts would keep a pipe open.
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let path = env::temp_dir().join(format!("agentd-xtask-{}-{nanos}", std::process::id()));
    let printed = File::create_new(&path)?;
    command.stdout(printed.try_clone()?).stderr(printed);
    let result = match command.spawn() {
        Ok(child) => wait_within(child, limit).and_then(|status| match status {
            Some(status) => check(command, status),
            None => Err(format!("{} took more than {} s", name(command), limit.as_secs()).into()),
        }),
        Err(error) => Err(not_started(command, &error).into()),
    };
    let text = fs::read(&path).unwrap_or_default();
    fs::remove_file(&path)?;
    result.map_err(|error| {
        format!("{error}\n{}", String::from_utf8_lossy(&text)).trim_end().to_owned().into()
    })
}

/// Runs the command quietly and returns its stdout; its stderr is in the error.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}\n{stderr}", line(command), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether the command can be started and succeeds.
pub(crate) fn works(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Waits for a child; kills it after `limit` and then returns `None`.
fn wait_within(mut child: Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    Err(format!("{}: {status}", name(command)).into())
}

fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!("cannot start {}: {error}", command.get_program().display())
}

/// The program and its first argument: enough to name it in a sentence.
fn name(command: &Command) -> String {
    let first = command.get_args().next().unwrap_or_default();
    format!("{} {}", command.get_program().display(), first.display()).trim_end().to_owned()
}

fn line(command: &Command) -> String {
    let mut line = command.get_program().display().to_string();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
