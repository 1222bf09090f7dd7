//! Where agentd keeps what neither a repository nor an agent may write: the state of a project
//! on this machine, in the user's own state directory.
//!
//! Everything that recovery acts on (snapshots of what git runs, the journal of an archive, copies
//! of settings, consent) is here. A clone cannot bring it along, and an agent's sandbox does not
//! include it. Caches are separate, because agents do write to those.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use agentd_core::hash::Digest;

use super::confined::ProjectDir;
use super::error::StoreError;
use super::outside::{OutsideDir, SHARED, create_own, open_own, remove_outside};
use super::rank_cache;

/// How much of a project's name is kept in the name of its directory.
const NAME_CHARS: usize = 40;

/// The user's own directories for agentd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDirs {
    state: Option<PathBuf>,
    cache: Option<PathBuf>,
}

impl UserDirs {
    /// Those of this process's environment.
    pub fn from_env() -> Self {
        Self::from_variables(std::env::home_dir(), |name| std::env::var_os(name))
    }

    /// Those of an environment. A relative `XDG_*` is ignored, as its specification asks.
    pub(crate) fn from_variables(
        home: Option<PathBuf>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let home = home.filter(|home| home.is_absolute());
        let dir = |name: &str, default: &str| {
            let set = variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
            let base = set.or_else(|| home.as_ref().map(|home| home.join(default)));
            base.map(|base| base.join("agentd"))
        };
        Self {
            state: dir("XDG_STATE_HOME", ".local/state"),
            cache: dir("XDG_CACHE_HOME", ".cache"),
        }
    }

    /// Those of a directory that stands for the user's home.
    pub fn below(home: &Path) -> Self {
        Self::from_variables(Some(home.to_owned()), |_| None)
    }

    /// The state of the project at `root`, created if it does not exist yet.
    pub fn state_of(&self, root: &Path) -> Result<ProjectDir, StoreError> {
        let (base, name) = self.place(root)?;
        let failed = |source| StoreError::OpenRoot { path: base.join(&name), source };
        OutsideDir::open_or_create(base.parent().unwrap_or(&base), SHARED).map_err(failed)?;
        let mut path = base.clone();
        let mut dir: Option<File> = None;
        for part in [None, Some("projects"), Some(&*name)] {
            path.extend(part);
            create_own(&path)?;
            dir = Some(open_own(dir.as_ref(), &path)?);
        }
        let Some(dir) = dir else { return Err(failed(io::ErrorKind::NotFound.into())) };
        Ok(ProjectDir::from_file(dir))
    }

    /// Where it is kept what probes have found out about agents (G3), created if it does not exist
    /// yet. Agents cannot write there.
    pub(crate) fn probes(&self) -> Result<ProjectDir, StoreError> {
        let base = self.state.clone().ok_or(StoreError::NoUserDir)?;
        let path = base.join("probes");
        let failed = |source| StoreError::OpenRoot { path: path.clone(), source };
        OutsideDir::open_or_create(base.parent().unwrap_or(&base), SHARED).map_err(failed)?;
        create_own(&base)?;
        let parent = open_own(None, &base)?;
        create_own(&path)?;
        Ok(ProjectDir::from_file(open_own(Some(&parent), &path)?))
    }

    /// The same for reading: none if no agent was ever probed.
    pub(crate) fn probes_if_there(&self) -> Result<Option<ProjectDir>, StoreError> {
        let Some(base) = &self.state else { return Ok(None) };
        if fs::symlink_metadata(base.join("probes")).is_err() {
            return Ok(None);
        }
        self.probes().map(Some)
    }

    /// The same for reading: none if nothing was ever stored.
    pub(crate) fn state_if_there(&self, root: &Path) -> Result<Option<ProjectDir>, StoreError> {
        let Ok((base, name)) = self.place(root) else { return Ok(None) };
        let path = base.join("projects").join(&name);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(None);
        }
        let base = open_own(None, &base)?;
        let projects = open_own(Some(&base), Path::new("projects"))?;
        Ok(Some(ProjectDir::from_file(open_own(Some(&projects), &path)?)))
    }

    /// The path of the state of a project, for messages and for the rules of sandboxes.
    pub fn state_path(&self, root: &Path) -> Result<PathBuf, StoreError> {
        let (base, name) = self.place(root)?;
        Ok(base.join("projects").join(name))
    }

    /// Removes the state and the caches of a project that no longer exists.
    pub fn forget(&self, root: &Path) {
        let ranked = self.rank_place(root).map(|(dir, name)| rank_cache::files(&dir, &name));
        let own = [self.state_path(root), self.cache_path(root)].into_iter().flatten();
        for path in own.chain(ranked.into_iter().flatten()) {
            // Nothing depends on it; a link in its place is not followed.
            let _ = remove_outside(&path);
        }
    }

    /// The path of the caches for the agents of a project. They may write there.
    pub(crate) fn cache_path(&self, root: &Path) -> Result<PathBuf, StoreError> {
        let cache = self.cache.as_ref().ok_or(StoreError::NoUserDir)?;
        Ok(cache.join("projects").join(name_of(root)))
    }

    /// Where the ranking of files keeps what it knows of a project: a directory for all projects,
    /// and the name of this one. Agents cannot write there.
    pub(super) fn rank_place(&self, root: &Path) -> Option<(PathBuf, String)> {
        let cache = self.cache.as_ref().filter(|cache| !cache.starts_with(root))?;
        Some((cache.join("rank"), name_of(root)))
    }

    fn place(&self, root: &Path) -> Result<(PathBuf, String), StoreError> {
        let base = self.state.clone().ok_or(StoreError::NoUserDir)?;
        // A home directory that is itself a repository: its content came with the clone.
        if base.starts_with(root) {
            return Err(StoreError::StateInProject { state: base, root: root.to_owned() });
        }
        Ok((base, name_of(root)))
    }
}

/// A unique name by which a person recognizes the project.
fn name_of(root: &Path) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(NAME_CHARS).map(plain).collect();
    let digest = Digest::of(root.as_os_str().as_bytes()).to_string();
    let digits = digest.trim_start_matches("sha256:");
    format!("{}-{}", name.trim_start_matches('.'), digits.get(..16).unwrap_or(digits))
}

/// A directory of the user's alone below one that is there, created if it is missing.
pub(crate) fn own_dir(path: &Path) -> Result<ProjectDir, StoreError> {
    let failed = |source| StoreError::OpenRoot { path: path.to_owned(), source };
    OutsideDir::own(path)?.confined().map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use agentd_core::rel_path::RelPath;

    use super::*;

    #[test]
    fn the_state_of_a_project_is_private_to_the_user() {
        let home = tempfile::tempdir().unwrap();
        let user = UserDirs::below(home.path());
        let root = Path::new("/work/shop");
        assert!(user.state_if_there(root).unwrap().is_none());
        let dir = user.state_of(root).unwrap();
        let file = RelPath::new("journal.json").unwrap();
        dir.write_atomic(&file, b"{}").unwrap();
        let path = user.state_path(root).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let again = user.state_if_there(root).unwrap().unwrap();
        assert_eq!(again.read(&file).unwrap(), b"{}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let other = user.state_path(Path::new("/elsewhere/shop")).unwrap();
        assert_ne!(other, path);
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with("shop-"));
    }

    #[test]
    fn a_link_in_its_place_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let user = UserDirs::below(home.path());
        let root = Path::new("/work/shop");
        let path = user.state_path(root).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink("/etc", &path).unwrap();
        assert!(matches!(user.state_of(root), Err(StoreError::OpenRoot { .. })));
        assert!(matches!(user.state_if_there(root), Err(StoreError::OpenRoot { .. })));
    }

    #[test]
    fn a_home_that_is_a_repository_keeps_no_state_for_itself() {
        let user = UserDirs::below(Path::new("/home/me"));
        let root = Path::new("/home/me");
        assert!(matches!(user.state_of(root), Err(StoreError::StateInProject { .. })));
        assert!(user.state_if_there(root).unwrap().is_none());
        assert!(UserDirs::from_variables(None, |_| None).state_of(root).is_err());
        let set = |name: &str| (name == "XDG_STATE_HOME").then(|| "relative".into());
        let relative = UserDirs::from_variables(Some("/home/me".into()), set);
        assert_eq!(relative, UserDirs::below(Path::new("/home/me")));
    }
}
