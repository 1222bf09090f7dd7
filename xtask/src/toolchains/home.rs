//! The home of a user that nobody is, and what is in it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use sha2::Digest as _;
use sha2::Sha256;

use crate::Result;

/// Settings by which the tools of this machine find their registries. They are linked to: single
/// files, so that no tool writes beside them.
const SETTINGS: [&str; 6] = [
    ".cargo/config.toml",
    ".npmrc",
    ".m2/settings.xml",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".config/go/env",
];

/// What agentd and the CLI may write to.
const THEIR_OWN: [&str; 4] = [".cache/agentd", ".local/state/agentd", ".claude", ".claude.json"];

/// Variables of this process that would lead a tool to other caches.
const REMOVED: [&str; 10] = [
    "CARGO_HOME",
    "GOFLAGS",
    "GOMODCACHE",
    "GOPATH",
    "PIP_CACHE_DIR",
    "UV_CACHE_DIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

pub(super) struct Home {
    path: PathBuf,
    /// The home of the person who started us.
    real: PathBuf,
}

impl Home {
    pub(super) fn make(path: &Path) -> Result<Self> {
        let real = env::home_dir().ok_or("no home directory")?;
        for directory in &THEIR_OWN[..3] {
            fs::create_dir_all(path.join(directory))?;
        }
        for name in SETTINGS {
            let (from, to) = (real.join(name), path.join(name));
            if let (true, Some(parent)) = (from.exists(), to.parent()) {
                fs::create_dir_all(parent)?;
                symlink(from, to)?;
            }
        }
        let identity = "[user]\n\tname = Ada\n\temail = ada@example.org\n";
        fs::write(path.join(".gitconfig"), identity)?;
        Ok(Self { path: path.to_owned(), real })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the command run as its user. Programs in the real home are still found.
    pub(super) fn apply(&self, command: &mut Command) {
        for (name, _) in env::vars_os() {
            // The variables that cargo sets for its children describe this workspace.
            if name.to_string_lossy().starts_with("CARGO_") {
                command.env_remove(name);
            }
        }
        for name in REMOVED {
            command.env_remove(name);
        }
        for (name, directory) in [("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv")] {
            let path = self.real.join(directory);
            if env::var_os(name).is_none() && path.is_dir() {
                command.env(name, path);
            }
        }
        command.env("HOME", &self.path);
        // Java asks the system and not HOME.
        command.env("MAVEN_OPTS", format!("-Duser.home={}", self.path.display()));
    }

    /// Everything in it but what agentd and the CLI may write to.
    pub(super) fn contents(&self) -> Result<HomeContents> {
        let mut entries = BTreeMap::new();
        let skipped: Vec<PathBuf> = THEIR_OWN.iter().map(|name| self.path.join(name)).collect();
        look(&self.path, &skipped, &mut entries)?;
        Ok(HomeContents { home: self.path.clone(), entries })
    }
}

/// What a home holds.
pub(super) struct HomeContents {
    home: PathBuf,
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(PartialEq, Eq)]
struct Entry {
    mode: u32,
    modified: (i64, i64),
    /// The bytes of a file, or where a link leads.
    content: Vec<u8>,
}

impl HomeContents {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Where the other one differs: the first few places.
    pub(super) fn changes(&self, other: &Self) -> Vec<String> {
        let all = self.entries.keys().chain(other.entries.keys());
        let mut changed: Vec<&PathBuf> =
            all.filter(|path| self.entries.get(*path) != other.entries.get(*path)).collect();
        changed.sort_unstable();
        changed.dedup();
        let name =
            |path: &PathBuf| path.strip_prefix(&self.home).unwrap_or(path).display().to_string();
        changed.into_iter().take(8).map(name).collect()
    }
}

fn look(dir: &Path, skipped: &[PathBuf], entries: &mut BTreeMap<PathBuf, Entry>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if skipped.contains(&path) {
            continue;
        }
        let found = fs::symlink_metadata(&path)?;
        let content = if found.is_dir() {
            look(&path, skipped, entries)?;
            Vec::new()
        } else if found.is_symlink() {
            fs::read_link(&path)?.into_os_string().into_encoded_bytes()
        } else {
            Sha256::digest(fs::read(&path)?).to_vec()
        };
        let modified = (found.mtime(), found.mtime_nsec());
        entries.insert(path, Entry { mode: found.mode(), modified, content });
    }
    Ok(())
}

/// Removes a directory, also one that Go has made read-only. No link is followed.
pub(super) fn remove(path: &Path) -> Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return Ok(fs::remove_file(path)?);
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        remove(&entry?.path())?;
    }
    Ok(fs::remove_dir(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_shows_every_change_but_those_of_agentd() {
        let temporary = tempfile::tempdir().unwrap();
        let home = Home::make(&temporary.path().join("home")).unwrap();
        let write = |name: &str, text: &str| {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(".npm/one", "1");
        write(".npm/two", "2");
        let before = home.contents().unwrap();
        write(".claude/session", "x");
        write(".cache/agentd/projects/x", "x");
        assert_eq!(before.changes(&home.contents().unwrap()), Vec::<String>::new());
        write(".npm/one", "3");
        fs::remove_file(home.path().join(".npm/two")).unwrap();
        write(".config/tool", "x");
        let changed = before.changes(&home.contents().unwrap());
        for expected in [".npm/one", ".npm/two", ".config/tool"] {
            assert!(changed.iter().any(|path| path == expected), "{expected}: {changed:?}");
        }
    }
}
