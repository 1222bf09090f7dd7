//! What is put on disk for one call of an agent and taken away after it: files in
//! a private directory, and keys in a settings file of the project.
//!
//! The settings file is merged and restored. Calls may run side by side: each holds
//! a shared lock while it needs the keys, and the last to let go restores. If agentd
//! is killed, the original is still in a backup, and the next call, or
//! [`restore_leftovers`], puts it back.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use agentd_core::provider::{CommandSpec, JsonMerge};
use serde::{Deserialize, Serialize};

/// Why an agent's files could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// A file or directory could not be read or written.
    #[error("cannot prepare {}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A settings file of the project is not a JSON object, so nothing can be merged
    /// into it without losing what is there.
    #[error("{} is not a JSON object, so agentd cannot add its MCP server to it", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
    },
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, FilesError> {
    result.map_err(|source| FilesError::Io { path: path.to_owned(), source })
}

/// The files of one call; dropping it takes them away.
#[derive(Debug)]
pub struct AgentFiles {
    private_dir: PathBuf,
    merged: Option<Merged>,
}

impl AgentFiles {
    /// Writes what the command needs. `private_dir` is emptied first: what is in it
    /// was left by a call that was killed.
    pub fn prepare(
        spec: &CommandSpec,
        project_root: &Path,
        private_dir: &Path,
    ) -> Result<Self, FilesError> {
        match fs::remove_dir_all(private_dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return at(private_dir, Err(error));
            }
            _ => {}
        }
        let mut builder = fs::DirBuilder::new();
        at(private_dir, builder.recursive(true).mode(0o700).create(private_dir))?;
        let mut files = Self { private_dir: private_dir.to_owned(), merged: None };
        for file in &spec.files {
            let open = File::options().write(true).create_new(true).mode(0o600).open(&file.path);
            at(&file.path, open.and_then(|mut open| open.write_all(file.contents.as_bytes())))?;
        }
        if let Some(merge) = spec.merge.as_ref().filter(|merge| !merge.set.is_empty()) {
            let state_dir = private_dir.parent().unwrap_or(private_dir);
            files.merged = Some(Merged::apply(project_root, state_dir, merge)?);
        }
        Ok(files)
    }
}

impl Drop for AgentFiles {
    fn drop(&mut self) {
        // Nothing depends on it: the next call empties the directory anyway.
        let _ = fs::remove_dir_all(&self.private_dir);
    }
}

/// The settings file as it was, kept while it is changed.
#[derive(Debug, Serialize, Deserialize)]
struct Backup {
    text: Option<String>,
    made_dir: bool,
}

/// A settings file that holds agentd's keys until this is dropped.
#[derive(Debug)]
struct Merged {
    place: Place,
    merge: JsonMerge,
    /// Held shared by everyone who needs the keys.
    users: File,
}

#[derive(Debug, Clone)]
struct Place {
    file: PathBuf,
    state_dir: PathBuf,
    name: String,
}

impl Place {
    fn new(project_root: &Path, state_dir: &Path, merge: &JsonMerge) -> Self {
        Self {
            file: project_root.join(merge.path),
            state_dir: state_dir.to_owned(),
            name: merge.path.trim_start_matches('.').replace('/', "-"),
        }
    }

    fn state(&self, what: &str) -> PathBuf {
        self.state_dir.join(format!("{}.{what}", self.name))
    }

    /// Held exclusively, and briefly, by whoever changes the file.
    fn mutex(&self) -> Result<File, FilesError> {
        let mutex = self.open_state("lock")?;
        at(&self.state("lock"), mutex.lock())?;
        Ok(mutex)
    }

    fn open_state(&self, what: &str) -> Result<File, FilesError> {
        let path = self.state(what);
        at(&path, File::options().write(true).create(true).truncate(false).open(&path))
    }

    fn backup(&self) -> Option<Backup> {
        let text = fs::read_to_string(self.state("backup")).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn current(&self) -> Result<Option<String>, FilesError> {
        match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => at(&self.file, read).map(Some),
        }
    }

    /// Puts the file back as it was; what somebody else changed in it stays.
    fn restore(&self, merge: &JsonMerge) -> Result<(), FilesError> {
        let Some(backup) = self.backup() else { return Ok(()) };
        if let Some(current) = self.current()? {
            let ours = merge.apply(backup.text.as_deref()).is_some_and(|ours| ours == current);
            let text = if ours {
                backup.text
            } else {
                merge.undo(backup.text.as_deref(), &current).or(Some(current))
            };
            if let Some(text) = text {
                write_atomically(&self.file, &text)?;
            } else {
                at(&self.file, fs::remove_file(&self.file))?;
                if let (true, Some(dir)) = (backup.made_dir, self.file.parent()) {
                    // Fails when something else is in it by now, and then it stays.
                    let _ = fs::remove_dir(dir);
                }
            }
        }
        at(&self.state("backup"), fs::remove_file(self.state("backup")))
    }
}

impl Merged {
    fn apply(project_root: &Path, state_dir: &Path, merge: &JsonMerge) -> Result<Self, FilesError> {
        let place = Place::new(project_root, state_dir, merge);
        let _mutex = place.mutex()?;
        let users = place.open_state("users")?;
        if users.try_lock().is_ok() {
            // Nobody else is at it: a backup is of a call that was killed.
            place.restore(merge)?;
            at(&place.state("users"), users.unlock())?;
        }
        at(&place.state("users"), users.lock_shared())?;
        let current = place.current()?;
        let Some(merged) = merge.apply(current.as_deref()) else {
            return Err(FilesError::NotJson { path: place.file });
        };
        if current.as_deref() != Some(&merged) {
            let dir = place.file.parent().unwrap_or(project_root);
            if place.backup().is_none() {
                let backup = Backup { text: current, made_dir: !dir.exists() };
                let text = serde_json::to_string(&backup).unwrap_or_default();
                write_atomically(&place.state("backup"), &text)?;
            }
            at(dir, fs::create_dir_all(dir))?;
            write_atomically(&place.file, &merged)?;
        }
        Ok(Self { place, merge: merge.clone(), users })
    }
}

impl Drop for Merged {
    fn drop(&mut self) {
        // On an error the backup stays, and the next call tries again.
        let Ok(_mutex) = self.place.mutex() else { return };
        let _ = self.users.unlock();
        if self.users.try_lock().is_ok() {
            let _ = self.place.restore(&self.merge);
        }
    }
}

/// Restores a settings file that a killed agentd has left changed. Does nothing
/// while a call needs it.
pub fn restore_leftovers(
    project_root: &Path,
    state_dir: &Path,
    merge: &JsonMerge,
) -> Result<(), FilesError> {
    let place = Place::new(project_root, state_dir, merge);
    if place.backup().is_none() {
        return Ok(());
    }
    let _mutex = place.mutex()?;
    let users = place.open_state("users")?;
    if users.try_lock().is_ok() { place.restore(merge) } else { Ok(()) }
}

/// Writes beside the file and renames, keeping the permissions of what was there.
fn write_atomically(path: &Path, text: &str) -> Result<(), FilesError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".agentd-tmp");
    let temporary = PathBuf::from(temporary);
    let mode = fs::metadata(path).map_or(0o600, |meta| meta.permissions().mode() & 0o777);
    let write = || {
        let mut file = File::create(&temporary)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    };
    at(path, write())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> CommandSpec {
        let set: Vec<(&'static [&'static str], _)> =
            vec![(&["mcpServers", "agentd"], serde_json::json!({"command": "${X}"}))];
        let merge = Some(JsonMerge { path: ".gemini/settings.json", set, keep: &[] });
        CommandSpec { merge, ..CommandSpec::default() }
    }

    #[test]
    fn the_settings_file_comes_and_goes() {
        let root = tempfile::tempdir().unwrap();
        let (root, private) = (root.path(), root.path().join("agentd/.agents/1"));
        let settings = root.join(".gemini/settings.json");
        let files = AgentFiles::prepare(&spec(), root, &private).unwrap();
        assert!(fs::read_to_string(&settings).unwrap().contains("agentd"));
        assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o700);
        drop(files);
        assert!(!root.join(".gemini").exists());
        assert!(!private.exists());
    }

    #[test]
    fn what_the_user_wrote_is_restored_to_the_byte() {
        let root = tempfile::tempdir().unwrap();
        let (root, agents) = (root.path(), root.path().join("agentd/.agents"));
        let settings = root.join(".gemini/settings.json");
        fs::create_dir(root.join(".gemini")).unwrap();
        let original = "// mine\n{ \"ui\" : {\"theme\":1} ,\n\t\"hooks\":{}, /* x */ }";
        fs::write(&settings, original).unwrap();
        let first = AgentFiles::prepare(&spec(), root, &agents.join("1")).unwrap();
        let second = AgentFiles::prepare(&spec(), root, &agents.join("2")).unwrap();
        drop(first);
        let shown = fs::read_to_string(&settings).unwrap();
        assert!(shown.contains("${X}") && !shown.contains("hooks"), "still needed: {shown}");
        drop(second);
        assert_eq!(fs::read_to_string(&settings).unwrap(), original);
    }

    #[test]
    fn a_killed_call_is_cleaned_up_after_and_edits_meanwhile_survive() {
        let root = tempfile::tempdir().unwrap();
        let (root, agents) = (root.path(), root.path().join("agentd/.agents"));
        let settings = root.join(".gemini/settings.json");
        let killed = AgentFiles::prepare(&spec(), root, &agents.join("1")).unwrap();
        killed.merged.as_ref().unwrap().users.unlock().unwrap();
        std::mem::forget(killed);
        let merged = fs::read_to_string(&settings).unwrap();
        fs::write(&settings, merged.replacen('{', "{\"mine\": 1,", 1)).unwrap();
        let merge = spec().merge.unwrap();
        restore_leftovers(root, &agents, &merge).unwrap();
        let left: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&settings).unwrap()).unwrap();
        assert_eq!(left, serde_json::json!({"mine": 1}));
        restore_leftovers(root, &agents, &merge).unwrap();
        let next = AgentFiles::prepare(&spec(), root, &agents.join("1")).unwrap();
        drop(next);
        assert!(settings.exists());
    }

    #[test]
    fn settings_that_cannot_be_read_are_not_touched() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".gemini")).unwrap();
        let settings = root.path().join(".gemini/settings.json");
        fs::write(&settings, "{ mine").unwrap();
        let error =
            AgentFiles::prepare(&spec(), root.path(), &root.path().join("a/1")).unwrap_err();
        assert!(matches!(error, FilesError::NotJson { .. }));
        assert_eq!(fs::read_to_string(&settings).unwrap(), "{ mine");
    }
}
