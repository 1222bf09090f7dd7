//! The agents' programs on this machine.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use agentd_core::agent::{AgentKind, Role};
use agentd_core::config::{Config, Roles};

pub use crate::mcp_client::ClientError as HandshakeError;
use crate::mcp_client::McpClient;

/// The program that a name or a path means, looked up in a `PATH`. A plain name never means a
/// program of the project at `root`: a person with `./node_modules/.bin` in their `PATH` has not
/// thereby agreed to what a clone has there.
pub fn find_program(name: &str, path: &OsStr, root: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(root.join(name)).filter(|program| is_program(program));
    }
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    std::env::split_paths(path)
        .filter(|dir| !is_inside(dir, &root))
        .map(|dir| dir.join(name))
        .find(|candidate| is_program(candidate))
}

/// Whether an entry of `PATH` depends on where one stands, or lies in the project.
fn is_inside(dir: &Path, root: &Path) -> bool {
    dir.is_relative() || dir.canonicalize().is_ok_and(|dir| dir.starts_with(root))
}

/// The program that a plain name would mean by `PATH` is one of the project's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "only the project itself has it, {}; set its `command` in agentd/config.toml to that path if it is meant",
    .0.display()
)]
pub struct InsideProject(pub PathBuf);

/// What to start for a name or a path: the name as it is where `PATH` leads to no program of
/// the project, else the path of the program that was meant.
pub fn resolve(
    name: &str,
    environment: &[(OsString, OsString)],
    root: &Path,
) -> Result<String, InsideProject> {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
    let (Some(path), false) = (path, name.contains('/')) else { return Ok(name.to_owned()) };
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut dirs = std::env::split_paths(path);
    let first = dirs.find(|dir| is_program(&root.join(dir).join(name)));
    let Some(first) = first.filter(|dir| is_inside(dir, &real)) else {
        return Ok(name.to_owned());
    };
    let outside = find_program(name, path, root);
    let outside = outside.and_then(|program| program.into_os_string().into_string().ok());
    outside.ok_or_else(|| InsideProject(root.join(first).join(name)))
}

/// An environment whose `PATH` means the same wherever one stands. Agents are scripts whose
/// interpreter is looked up, too.
pub fn without_relative_paths(environment: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let mut environment = environment.to_vec();
    for (name, value) in &mut environment {
        if name == "PATH" && std::env::split_paths(value).any(|dir| dir.is_relative()) {
            let kept = std::env::split_paths(value).filter(|dir| dir.is_absolute());
            // Only an entry with a colon could not be joined, and there is none.
            *value = std::env::join_paths(kept).unwrap_or_default();
        }
    }
    environment
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
    // Not where we stand: some CLIs read settings of their directory before they answer.
    let mut child = in_own_group(command.arg("--version"))
        .current_dir("/")
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

/// Starts the MCP server as an agent would, and asks it for its tools: how many there are.
pub fn mcp_handshake(
    agentd: &Path,
    project: &Path,
    limit: Duration,
) -> Result<usize, HandshakeError> {
    let mut client =
        McpClient::start(agentd, &["mcp".to_owned()], project, "agentd-doctor", limit)?;
    client.tools().map(|tools| tools.len())
}

/// The roles whose agent is not on this machine, in the order of the work.
pub fn roles_without_agent(config: &Config, path: &OsStr, root: &Path) -> Vec<(Role, AgentKind)> {
    let is_here = |agent: AgentKind| {
        let name = config.agent(agent).command.as_deref().unwrap_or(agent.name());
        agent.is_own() || find_program(name, path, root).is_some()
    };
    let roles = Role::ALL.into_iter().map(|role| (role, config.roles.agent(role)));
    roles.filter(|(_, agent)| !is_here(*agent)).collect()
}

/// Whether the built-in agent should be offered for planning: nobody has chosen agents
/// in the configuration, and no agent at all is on this machine. Who has chosen one
/// that is missing wants to hear that, not to get another.
pub fn offers_builtin(config: &Config, path: &OsStr, root: &Path) -> bool {
    let chosen = config.roles != Roles::default()
        || AgentKind::CLIS.into_iter().any(|agent| config.agent(agent).command.is_some());
    let none_here =
        AgentKind::CLIS.into_iter().all(|agent| find_program(agent.name(), path, root).is_none());
    !chosen && none_here
}

/// The same roles with the built-in agent in every one that it can play. Code is
/// written by nobody then; the implementer stays who it was.
pub fn with_builtin(roles: Roles) -> Roles {
    Roles {
        planner: AgentKind::Builtin,
        challenger: AgentKind::Builtin,
        reviewer: AgentKind::Builtin,
        implementer: roles.implementer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path() {
        let path = OsStr::new("/nowhere::/usr/bin:/bin");
        let root = Path::new("/nowhere/project");
        assert!(find_program("sh", path, root).is_some());
        assert!(find_program("no-such-program-at-all", path, root).is_none());
        assert!(find_program("/etc/passwd", path, root).is_none(), "a file that cannot be run");
        assert_eq!(find_program("../../bin/sh", path, root), None, "there is no such project");
    }

    // contract T7
    #[test]
    fn a_plain_name_never_means_a_program_of_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (root, outside) = (base.join("project"), base.join("bin"));
        let bin = root.join("node_modules/.bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::os::unix::fs::symlink(&bin, base.join("link")).unwrap();
        let mode = || std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let program = |path: PathBuf| {
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(path, mode()).unwrap();
        };
        program(bin.join("gemini"));
        let link = base.join("link");
        for inside in [
            "./node_modules/.bin",
            "node_modules/.bin",
            bin.to_str().unwrap(),
            link.to_str().unwrap(),
        ] {
            let path = OsString::from(format!("{inside}:{}", outside.display()));
            let environment = [("PATH".into(), path.clone())];
            assert_eq!(find_program("gemini", &path, &root), None, "{inside}");
            assert!(resolve("gemini", &environment, &root).is_err(), "{inside}");
            assert_eq!(resolve("codex", &environment, &root).unwrap(), "codex");
            program(outside.join("gemini"));
            let meant = outside.join("gemini");
            assert_eq!(find_program("gemini", &path, &root), Some(meant.clone()), "{inside}");
            assert_eq!(resolve("gemini", &environment, &root).unwrap(), meant.to_str().unwrap());
            std::fs::remove_file(&meant).unwrap();
        }
        let environment = [("PATH".into(), OsString::from(format!(".::x:{}", outside.display())))];
        let cleaned = without_relative_paths(&environment);
        assert_eq!(cleaned, [("PATH".into(), outside.clone().into_os_string())]);
        program(outside.join("gemini"));
        assert_eq!(resolve("gemini", &environment, &root).unwrap(), "gemini", "as it is on PATH");
    }

    #[test]
    fn the_builtin_agent_is_offered_where_nobody_else_is_and_nothing_was_chosen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().as_os_str();
        let root = Path::new("/nowhere/project");
        let parse = |text: &str| Config::parse(text).unwrap();
        assert!(offers_builtin(&parse(""), path, root));
        assert!(!offers_builtin(&parse("[roles]\nplanner = \"claude\"\n"), path, root));
        assert!(!offers_builtin(&parse("[codex]\ncommand = \"mine\"\n"), path, root));
        assert_eq!(roles_without_agent(&parse(""), path, root).len(), 4);
        let own = Config { roles: with_builtin(Roles::default()), ..Config::default() };
        assert_eq!(roles_without_agent(&own, path, root), [(Role::Implementer, AgentKind::Claude)]);
        let program = dir.path().join("codex");
        std::fs::write(&program, "").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        assert!(!offers_builtin(&parse(""), path, root), "one agent is here");
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
