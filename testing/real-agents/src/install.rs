//! The pinned CLIs, installed from npm into a cache.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Cli;

const LOCK: &[u8] = include_bytes!("../../agents/package-lock.json");
const ACP_LOCK: &[u8] = include_bytes!("../../acp-agents/package-lock.json");

/// The installed CLIs.
#[derive(Clone, Debug)]
pub struct AgentClis {
    folder: PathBuf,
}

impl AgentClis {
    /// Where `cargo xtask test` installs the CLIs.
    pub fn folder() -> PathBuf {
        std::env::var_os("AGENTD_NPM_AGENTS").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/npm/agents"),
            PathBuf::from,
        )
    }

    /// Finds the CLIs, which must be installed at the pinned versions.
    pub fn get() -> Result<Self, NotInstalled> {
        let folder = Self::folder();
        let lock = fs::read(folder.join("package-lock.json")).unwrap_or_default();
        let finished = folder.join(".installed").is_file();
        match fs::canonicalize(&folder) {
            Ok(folder) if finished && lock == LOCK => Ok(Self { folder }),
            _ => Err(NotInstalled { folder }),
        }
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

/// The installed agents that speak ACP.
#[derive(Clone, Debug)]
pub struct AcpAgents {
    folder: PathBuf,
}

impl AcpAgents {
    /// Finds the agents, which must be installed at the pinned versions.
    pub fn get() -> Result<Self, NotInstalled> {
        let folder = std::env::var_os("AGENTD_NPM_ACP_AGENTS").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/npm/acp-agents"),
            PathBuf::from,
        );
        let lock = fs::read(folder.join("package-lock.json")).unwrap_or_default();
        let finished = folder.join(".installed").is_file();
        match fs::canonicalize(&folder) {
            Ok(folder) if finished && lock == ACP_LOCK => Ok(Self { folder }),
            _ => Err(NotInstalled { folder }),
        }
    }

    /// The folder with the programs, to be put on a `PATH`.
    pub fn bin_folder(&self) -> PathBuf {
        self.folder.join("node_modules/.bin")
    }
}

/// The CLIs are not installed, or not at the pinned versions.
#[derive(Debug)]
pub struct NotInstalled {
    /// Where they were looked for.
    pub folder: PathBuf,
}

impl fmt::Display for NotInstalled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display();
        write!(
            formatter,
            "the pinned agent CLIs are not in {folder}; `cargo xtask test --only npm` installs them"
        )
    }
}

impl std::error::Error for NotInstalled {}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const MANIFEST: &[u8] = include_bytes!("../../agents/package.json");

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
