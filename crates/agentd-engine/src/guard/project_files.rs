//! What a repository contains for the agent CLIs: settings that must have no effect, and
//! instructions that are passed on as text.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use agentd_core::agent::AgentKind;
use agentd_core::provider::{CommandSpec, EnvFile, FoundInProject};
use agentd_core::rel_path::RelPath;
use agentd_core::text::printable;

use crate::store::ProjectDir;

/// The most that is passed on of CLAUDE.md or AGENTS.md.
const INSTRUCTIONS: u64 = 64 << 10;
/// A file of variables that is larger than this is not read.
const ENV_FILE: u64 = 64 << 10;

/// A file of the repository that an agent would obey, which agentd cannot prevent.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The agent would take settings from it.
    #[error("{} has settings that the agent would obey, and agentd cannot prevent it", path.display())]
    Obeyed {
        /// The file or directory.
        path: PathBuf,
    },
    /// It sets something that it may not.
    #[error("{} sets variables for the agent, and a repository may not: {line}", path.display())]
    Sets {
        /// The file.
        path: PathBuf,
        /// The first line that is refused.
        line: String,
    },
    /// It cannot be read, so its content is unknown.
    #[error("{} sets variables for the agent, and cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

/// What the working tree contains for an agent.
pub(crate) fn look(
    agent: AgentKind,
    work_tree: &Path,
    environment: &[(OsString, OsString)],
) -> FoundInProject {
    match agent {
        AgentKind::Claude => FoundInProject {
            settings_dirs: Vec::new(),
            instructions: instructions(work_tree, &["CLAUDE.md", ".claude/CLAUDE.md"]),
        },
        AgentKind::Codex => {
            let dirs = repository_dirs(work_tree, environment);
            if !dirs.iter().any(|dir| is_there(&dir.join(".codex"))) {
                // Then it reads AGENTS.md by itself.
                return FoundInProject::default();
            }
            let instructions = instructions(work_tree, &["AGENTS.md"]);
            FoundInProject { settings_dirs: dirs, instructions }
        }
        AgentKind::Gemini | AgentKind::Builtin | AgentKind::Replay | AgentKind::Named(_) => {
            FoundInProject::default()
        }
    }
}

/// Fails if the repository has a say in what an agent does.
pub(crate) fn check_repository(
    spec: &CommandSpec,
    work_tree: &Path,
    environment: &[(OsString, OsString)],
) -> Result<(), RepositoryError> {
    if spec.obeys.is_empty() && spec.env_file.is_none() {
        return Ok(());
    }
    let dirs = repository_dirs(work_tree, environment);
    let obeyed = dirs.iter().flat_map(|dir| spec.obeys.iter().map(|name| dir.join(name)));
    if let Some(path) = obeyed.into_iter().find(|path| is_there(path)) {
        return Err(RepositoryError::Obeyed { path });
    }
    match &spec.env_file {
        Some(file) => check_env_file(file, dirs),
        None => Ok(()),
    }
}

/// Fails if the repository sets variables for an agent.
fn check_env_file(file: &EnvFile, dirs: Vec<PathBuf>) -> Result<(), RepositoryError> {
    for dir in dirs {
        let path = dir.join(file.path);
        if !is_there(&path) {
            continue;
        }
        let text = match read(&path) {
            Ok(text) => text,
            Err(source) => return Err(RepositoryError::Unreadable { path, source }),
        };
        if let Some(line) = file.refused_line(&text) {
            // A value may be a secret.
            let line = line.split_once('=').map_or("a line without a name", |(name, _)| name);
            let line = printable(line.trim()).into_owned();
            return Err(RepositoryError::Sets { path, line });
        }
    }
    Ok(())
}

/// The directories whose content comes from a repository: from the working tree up to the one with
/// `.git`, and only the working tree if there is none. The user's home is their own.
fn repository_dirs(work_tree: &Path, environment: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let home = environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| Path::new(home));
    let real = fs::canonicalize(work_tree).unwrap_or_else(|_| work_tree.to_owned());
    let top = real.ancestors().position(|dir| is_there(&dir.join(".git"))).unwrap_or(0);
    let real_home = home.and_then(|home| fs::canonicalize(home).ok());
    let mut dirs: Vec<PathBuf> = vec![work_tree.to_owned()];
    dirs.extend(real.ancestors().take(top + 1).map(Path::to_owned));
    dirs.dedup();
    dirs.retain(|dir| Some(dir.as_path()) != home && Some(dir) != real_home.as_ref());
    dirs
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn read(path: &Path) -> io::Result<String> {
    // A pipe would hang us, and a device has no end.
    let meta = fs::metadata(path)?;
    if !meta.is_file() || meta.len() > ENV_FILE {
        return Err(io::Error::other("it is no small file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(ENV_FILE + 1).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// The first of these files that is in the working tree, up to a size. A link that leads out of it
/// is not followed.
fn instructions(work_tree: &Path, names: &[&str]) -> Option<String> {
    let dir = ProjectDir::open(work_tree).ok()?;
    names.iter().find_map(|name| {
        let (file, size) = dir.open_file(&RelPath::new(name).ok()?).ok()?;
        let mut bytes = Vec::new();
        file.take(INSTRUCTIONS).read_to_end(&mut bytes).ok()?;
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if size > INSTRUCTIONS {
            text.push_str(&format!("\n\n(cut: {name} has {size} bytes)\n"));
        }
        (!text.trim().is_empty()).then_some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: EnvFile = EnvFile { path: ".gemini/.env", allowed: &["GEMINI_API_KEY"] };

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn variables_are_refused_from_the_repository_but_not_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let environment = [("HOME".into(), home.clone().into_os_string())];
        let (top, work) = (home.join("repo"), home.join("repo/sub/project"));
        put(&work, "x", "");
        put(&home, ".gemini/.env", "GOOGLE_GEMINI_BASE_URL=http://mine\n");
        put(&home, "repo/.git/HEAD", "");
        let spec =
            CommandSpec { env_file: Some(FILE), obeys: &[".vibe"], ..CommandSpec::default() };
        let check = || check_repository(&spec, &work, &environment).map_err(|e| e.to_string());
        assert_eq!(check(), Ok(()));
        put(&top, ".gemini/.env", "GEMINI_API_KEY=abc\n");
        assert_eq!(check(), Ok(()));
        put(&top, ".gemini/.env", "GOOGLE_GEMINI_BASE_URL=http://evil\n");
        let refused = || check().unwrap_err().replace(home.to_str().unwrap(), "[HOME]");
        insta::assert_snapshot!(refused(), @"[HOME]/repo/.gemini/.env sets variables for the agent, and a repository may not: GOOGLE_GEMINI_BASE_URL");
        fs::remove_dir_all(top.join(".gemini")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", {
            fs::create_dir_all(work.join(".gemini")).unwrap();
            work.join(".gemini/.env")
        })
        .unwrap();
        insta::assert_snapshot!(refused(), @"[HOME]/repo/sub/project/.gemini/.env sets variables for the agent, and cannot be read");
        assert!(check_repository(&CommandSpec::default(), &work, &environment).is_ok());
        fs::remove_dir_all(work.join(".gemini")).unwrap();
        put(&home, ".vibe/config.toml", "");
        assert_eq!(check(), Ok(()), "the user's own");
        put(&top, ".vibe/config.toml", "");
        insta::assert_snapshot!(refused(), @"[HOME]/repo/.vibe has settings that the agent would obey, and agentd cannot prevent it");
    }

    #[test]
    fn settings_are_found_up_to_the_top_and_not_outside() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let work = top.join("sub");
        put(&top, ".git", "gitdir: elsewhere");
        put(&work, "AGENTS.md", "Use tabs.");
        let codex = || look(AgentKind::Codex, &work, &[]);
        assert_eq!(codex(), FoundInProject::default(), "it reads AGENTS.md by itself");
        put(&top, ".codex/config.toml", "");
        let instructions = Some("Use tabs.".to_owned());
        assert_eq!(
            codex(),
            FoundInProject { settings_dirs: vec![work.clone(), top.clone()], instructions }
        );
        put(&top, "secret", "secret");
        std::os::unix::fs::symlink("../secret", work.join("CLAUDE.md")).unwrap();
        assert_eq!(look(AgentKind::Claude, &work, &[]), FoundInProject::default());
        put(&work, ".claude/CLAUDE.md", "Use spaces.");
        assert_eq!(
            look(AgentKind::Claude, &work, &[]).instructions.as_deref(),
            Some("Use spaces.")
        );
    }
}
