//! The pinned CLIs, installed from npm into a cache.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Cli;

const MANIFEST: &[u8] = include_bytes!("../../agents/package.json");
const LOCK: &[u8] = include_bytes!("../../agents/package-lock.json");
/// A copy of the lock, written last: there is an installation of just this
/// lock if, and only if, the copy is the same.
const STAMP: &str = "installed-lock.json";

/// The installed CLIs.
#[derive(Clone, Debug)]
pub struct AgentClis {
    folder: PathBuf,
}

impl AgentClis {
    /// Where the CLIs are installed: `AGENTD_AGENTS_DIR`, else `target/agents`
    /// in the workspace.
    pub fn folder() -> PathBuf {
        std::env::var_os("AGENTD_AGENTS_DIR").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/agents"),
            PathBuf::from,
        )
    }

    /// Finds the CLIs, which must be installed at the pinned versions.
    pub fn get() -> Result<Self, InstallError> {
        let folder = Self::folder();
        let stamp = fs::read(folder.join(STAMP)).unwrap_or_default();
        if stamp != LOCK {
            return Err(InstallError::Missing { folder });
        }
        let folder = fs::canonicalize(&folder)
            .map_err(|source| InstallError::Io { what: "open the cache", source })?;
        Ok(Self { folder })
    }

    /// Installs the CLIs unless they are; needs npm and its registry.
    ///
    /// Processes that do this at the same time wait for each other.
    pub fn install() -> Result<Self, InstallError> {
        if let Ok(installed) = Self::get() {
            return Ok(installed);
        }
        let folder = Self::folder();
        let io = |what| move |source| InstallError::Io { what, source };
        fs::create_dir_all(&folder).map_err(io("make the cache"))?;
        let guard = File::create(folder.join("install.lock")).map_err(io("make the lock"))?;
        guard.lock().map_err(io("lock the cache"))?;
        if let Ok(installed) = Self::get() {
            return Ok(installed);
        }
        fs::write(folder.join("package.json"), MANIFEST).map_err(io("write package.json"))?;
        fs::write(folder.join("package-lock.json"), LOCK).map_err(io("write the lock file"))?;
        // Scripts of packages are off: some would compile optional native parts
        // that no test needs, and newer npm versions do not run them anyway.
        run(Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(&folder))?;
        // Except this one, which puts the native program in the wrapper's place.
        run(Command::new("node")
            .arg("install.cjs")
            .current_dir(folder.join("node_modules/@anthropic-ai/claude-code")))?;
        fs::write(folder.join(STAMP), LOCK).map_err(io("write the stamp"))?;
        Self::get()
    }

    /// The folder with the programs, to be put on a `PATH`.
    pub fn bin_folder(&self) -> PathBuf {
        self.folder.join("node_modules/.bin")
    }

    /// The program of a CLI.
    pub fn program(&self, cli: Cli) -> PathBuf {
        self.bin_folder().join(cli.program())
    }
}

fn run(command: &mut Command) -> Result<(), InstallError> {
    let described = || format!("{command:?}");
    let name = described();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|source| InstallError::Io { what: "start npm or node", source })?;
    if status.success() {
        Ok(())
    } else {
        Err(InstallError::Command { command: name, code: status.code() })
    }
}

/// Why the CLIs are not there.
#[derive(Debug)]
pub enum InstallError {
    /// They are not installed, or not at the pinned versions.
    Missing {
        /// Where they were looked for.
        folder: PathBuf,
    },
    /// A command of the installation failed.
    Command {
        /// What was run.
        command: String,
        /// Its exit code.
        code: Option<i32>,
    },
    /// The file system or a program start failed.
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl fmt::Display for InstallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { folder } => write!(
                formatter,
                "the pinned agent CLIs are not in {}; install them with \
                 `cargo run -p real-agents -- install`",
                folder.display()
            ),
            Self::Command { command, code: Some(code) } => {
                write!(formatter, "{command} exited with {code}")
            }
            Self::Command { command, code: None } => write!(formatter, "{command} was killed"),
            Self::Io { what, source } => write!(formatter, "cannot {what}: {source}"),
        }
    }
}

impl std::error::Error for InstallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Missing { .. } | Self::Command { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_lock_pins_exact_versions_and_names_no_host() {
        let manifest: Value = serde_json::from_slice(MANIFEST).unwrap();
        let lock: Value = serde_json::from_slice(LOCK).unwrap();
        let dependencies = manifest["dependencies"].as_object().unwrap();
        assert_eq!(dependencies.len(), Cli::ALL.len());
        for (name, version) in dependencies {
            let version = version.as_str().unwrap();
            assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{name} {version}");
            assert_eq!(lock["packages"][format!("node_modules/{name}")]["version"], version);
        }
        for (name, package) in lock["packages"].as_object().unwrap() {
            assert!(package.get("resolved").is_none(), "{name} names its host");
            assert!(name.is_empty() || package["integrity"].is_string(), "{name} has no hash");
        }
    }
}
