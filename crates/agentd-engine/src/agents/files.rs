//! What is put on disk for one call of an agent and taken away after it: files in
//! a private directory, and keys in a settings file of the project.
//!
//! The settings file is merged and restored. Calls may run side by side: each holds
//! a shared lock while it needs the keys, and the last to let go restores. If agentd
//! is killed, the original is still in a backup, and the next call, or
//! `restore_leftovers`, puts it back.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use agentd_core::hash::Digest;
use agentd_core::provider::{CommandSpec, JsonMerge};
use agentd_core::rel_path::RelPath;
use serde::{Deserialize, Serialize};

use crate::store::{OutsideDir, PRIVATE, ProjectDir, StoreError, own_dir};

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
    /// A settings file of the project, or what is kept about it, could not be read or written.
    #[error("cannot prepare the agent's files: {0}")]
    Store(#[from] StoreError),
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
    /// The directory of all private directories, and the name of this one.
    calls: OutsideDir,
    name: OsString,
    merged: Option<Merged>,
}

impl AgentFiles {
    /// Writes what the command needs. `private_dir` is emptied first: what is in it
    /// was left by a call that was killed. What is kept about settings is beside it.
    pub fn prepare(
        spec: &CommandSpec,
        project_root: &Path,
        private_dir: &Path,
    ) -> Result<Self, FilesError> {
        let calls = OutsideDir::own(private_dir.parent().unwrap_or(private_dir))?;
        let name = private_dir.file_name().unwrap_or_default();
        at(private_dir, calls.remove(name))?;
        let private = at(private_dir, calls.create_dir(name, PRIVATE))?;
        let kept = at(calls.path(), calls.confined())?;
        let mut files = Self { calls, name: name.to_owned(), merged: None };
        for file in &spec.files {
            // Only names in the private directory: a path could lead elsewhere.
            let name = file.path.strip_prefix(private_dir).unwrap_or(&file.path);
            at(&file.path, private.create_file(name, file.contents.as_bytes(), 0o600))?;
        }
        if let Some(merge) = spec.merge.as_ref().filter(|merge| !merge.set.is_empty()) {
            files.merged =
                Some(Merged::apply(SettingsFile::new(project_root, &kept, merge)?, merge)?);
        }
        Ok(files)
    }
}

impl Drop for AgentFiles {
    fn drop(&mut self) {
        // Nothing depends on it: the next call empties the directory anyway.
        let _ = self.calls.remove(&self.name);
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
    place: SettingsFile,
    merge: JsonMerge,
    /// Held shared by everyone who needs the keys.
    users: File,
}

/// A settings file of a project, which a link may lead to as long as it stays inside of it, and
/// what is kept about it elsewhere.
#[derive(Debug, Clone)]
struct SettingsFile {
    project: ProjectDir,
    file: RelPath,
    /// Where it is, for messages.
    path: PathBuf,
    kept: ProjectDir,
    name: String,
}

impl SettingsFile {
    fn new(project_root: &Path, kept: &ProjectDir, merge: &JsonMerge) -> Result<Self, StoreError> {
        let path = project_root.join(merge.path);
        // Worktrees of a project share the directory in which this is kept.
        let digest = Digest::of(path.as_os_str().as_bytes()).to_string();
        let digits = digest.trim_start_matches("sha256:");
        let name = merge.path.trim_start_matches('.').replace('/', "-");
        Ok(Self {
            project: ProjectDir::open(project_root)?,
            file: RelPath::new(merge.path)?,
            path,
            kept: kept.clone(),
            name: format!("{name}.{}", digits.get(..16).unwrap_or(digits)),
        })
    }

    fn kept(&self, what: &str) -> Result<RelPath, StoreError> {
        Ok(RelPath::new(&format!("{}.{what}", self.name))?)
    }

    /// Held exclusively, and briefly, by the process that changes the file.
    fn mutex(&self) -> Result<File, FilesError> {
        let mutex = self.open_kept("lock")?;
        at(&self.path, mutex.lock())?;
        Ok(mutex)
    }

    fn open_kept(&self, what: &str) -> Result<File, StoreError> {
        self.kept.open_append(&self.kept(what)?)
    }

    fn backup(&self) -> Option<Backup> {
        let text = self.kept.read(&self.kept("backup").ok()?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn current(&self) -> Result<Option<String>, StoreError> {
        match self.project.read_to_string(&self.file) {
            Err(error) if error.is_not_found() => Ok(None),
            read => read.map(Some),
        }
    }

    fn dir(&self) -> RelPath {
        self.file.parent().unwrap_or_else(RelPath::root)
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
                self.project.write_atomic(&self.file, text.as_bytes())?;
            } else {
                self.project.remove_file(&self.file)?;
                if backup.made_dir {
                    // Stays where something else is in it by now.
                    self.project.remove_empty_dir(&self.dir())?;
                }
            }
        }
        Ok(self.kept.remove_file(&self.kept("backup")?)?)
    }
}

impl Merged {
    fn apply(place: SettingsFile, merge: &JsonMerge) -> Result<Self, FilesError> {
        let _mutex = place.mutex()?;
        let users = place.open_kept("users")?;
        if users.try_lock().is_ok() {
            // Nobody else is at it: a backup is of a call that was killed.
            place.restore(merge)?;
            at(&place.path, users.unlock())?;
        }
        at(&place.path, users.lock_shared())?;
        let current = place.current()?;
        let Some(merged) = merge.apply(current.as_deref()) else {
            return Err(FilesError::NotJson { path: place.path });
        };
        if current.as_deref() != Some(&merged) {
            if place.backup().is_none() {
                let made_dir = place.project.kind(&place.dir())?.is_none();
                let backup = Backup { text: current, made_dir };
                let text = serde_json::to_vec(&backup).unwrap_or_default();
                place.kept.write_atomic(&place.kept("backup")?, &text)?;
            }
            place.project.write_atomic(&place.file, merged.as_bytes())?;
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

/// Restores a settings file that a killed agentd has left changed. `kept` is the directory in
/// which private directories are. Does nothing while a call needs it.
pub(crate) fn restore_leftovers(
    project_root: &Path,
    kept: &Path,
    merge: &JsonMerge,
) -> Result<(), FilesError> {
    let place = SettingsFile::new(project_root, &own_dir(kept)?, merge)?;
    if place.backup().is_none() {
        return Ok(());
    }
    let _mutex = place.mutex()?;
    let users = place.open_kept("users")?;
    if users.try_lock().is_ok() { place.restore(merge) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A project, and a directory beside it in which things are kept.
    fn places() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (root, calls) = (dir.path().join("project"), dir.path().join("calls"));
        fs::create_dir(&root).unwrap();
        (dir, root, calls)
    }

    fn spec() -> CommandSpec {
        let set: Vec<(&'static [&'static str], _)> =
            vec![(&["mcpServers", "agentd"], serde_json::json!({"command": "${X}"}))];
        let merge = Some(JsonMerge { path: ".gemini/settings.json", set, keep: &[] });
        CommandSpec { merge, ..CommandSpec::default() }
    }

    #[test]
    fn the_settings_file_comes_and_goes() {
        let (_dir, root, calls) = places();
        let (root, private) = (&*root, calls.join("1"));
        let settings = root.join(".gemini/settings.json");
        let files = AgentFiles::prepare(&spec(), root, &private).unwrap();
        insta::assert_snapshot!(fs::read_to_string(&settings).unwrap(), @r#"
        {
          "mcpServers": {
            "agentd": {
              "command": "${X}"
            }
          }
        }
        "#);
        assert_eq!(fs::metadata(&private).unwrap().permissions().mode() & 0o777, 0o700);
        drop(files);
        assert!(!root.join(".gemini").exists());
        assert!(!private.exists());
    }

    #[test]
    fn user_settings_are_restored_to_the_byte() {
        let (_dir, root, agents) = places();
        let root = &*root;
        let settings = root.join(".gemini/settings.json");
        fs::create_dir(root.join(".gemini")).unwrap();
        let original = "// mine\n{ \"ui\" : {\"theme\":1} ,\n\t\"hooks\":{}, /* x */ }";
        fs::write(&settings, original).unwrap();
        let first = AgentFiles::prepare(&spec(), root, &agents.join("1")).unwrap();
        let second = AgentFiles::prepare(&spec(), root, &agents.join("2")).unwrap();
        drop(first);
        // The second call still needs it.
        insta::assert_snapshot!(fs::read_to_string(&settings).unwrap(), @r#"
        {
          "mcpServers": {
            "agentd": {
              "command": "${X}"
            }
          }
        }
        "#);
        drop(second);
        assert_eq!(fs::read_to_string(&settings).unwrap(), original);
    }

    #[test]
    fn a_killed_call_is_cleaned_up_and_later_edits_survive() {
        let (_dir, root, agents) = places();
        let root = &*root;
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
        let (_dir, root, calls) = places();
        fs::create_dir(root.join(".gemini")).unwrap();
        let settings = root.join(".gemini/settings.json");
        fs::write(&settings, "{ mine").unwrap();
        let error = AgentFiles::prepare(&spec(), &root, &calls.join("1")).unwrap_err();
        assert!(matches!(error, FilesError::NotJson { .. }));
        assert_eq!(fs::read_to_string(&settings).unwrap(), "{ mine");
    }

    /// The plants of a repository: each leads to a file or a directory outside of it.
    #[test]
    fn no_link_leads_a_write_out_of_the_project() {
        let mut errors = Vec::new();
        for (link, target) in [
            (".gemini/settings.json", "outside/settings.json"),
            (".gemini/settings.json", "outside/new.json"),
            (".gemini", "outside"),
            (".gemini/.agentd-tmp-1-0-0", "outside/settings.json"),
            ("agentd/.agents", "outside"),
        ] {
            let (dir, root, calls) = places();
            let outside = dir.path().join("outside");
            fs::create_dir(&outside).unwrap();
            fs::write(outside.join("settings.json"), "{}").unwrap();
            let (from, link) = (link, root.join(link));
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(dir.path().join(target), &link).unwrap();
            let prepared = AgentFiles::prepare(&spec(), &root, &calls.join("1"));
            let error = prepared.as_ref().map_or_else(ToString::to_string, |_| "not used".into());
            errors.push(format!("{from}: {error}"));
            drop(prepared);
            let names: Vec<_> =
                fs::read_dir(&outside).unwrap().map(|e| e.unwrap().file_name()).collect();
            assert_eq!(names, ["settings.json"], "{link:?}");
            assert_eq!(fs::read_to_string(outside.join("settings.json")).unwrap(), "{}");
        }
        insta::assert_snapshot!(errors.join("\n"), @"
        .gemini/settings.json: cannot prepare the agent's files: `.gemini/settings.json` leads outside of the directory it must stay in
        .gemini/settings.json: cannot prepare the agent's files: `.gemini/settings.json` leads outside of the directory it must stay in
        .gemini: cannot prepare the agent's files: `.gemini/settings.json` leads outside of the directory it must stay in
        .gemini/.agentd-tmp-1-0-0: not used
        agentd/.agents: not used
        ");
    }

    #[test]
    fn a_link_inside_the_project_is_followed_and_restored() {
        let (_dir, root, calls) = places();
        fs::create_dir_all(root.join(".gemini")).unwrap();
        fs::create_dir_all(root.join("shared")).unwrap();
        let (link, target) = (root.join(".gemini/settings.json"), root.join("shared/gemini.json"));
        fs::write(&target, "{ \"mine\":1 }").unwrap();
        symlink("../shared/gemini.json", &link).unwrap();
        let files = AgentFiles::prepare(&spec(), &root, &calls.join("1")).unwrap();
        insta::assert_snapshot!(fs::read_to_string(&target).unwrap(), @r#"
        {
          "mcpServers": {
            "agentd": {
              "command": "${X}"
            }
          }
        }
        "#);
        drop(files);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "{ \"mine\":1 }");
    }
}
