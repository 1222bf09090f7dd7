//! Where things are on this machine.

use std::env;
use std::path::Path;
use std::path::PathBuf;

use crate::Result;

/// The checkout that this xtask was built from, and the directories around it.
pub(crate) struct Workspace {
    /// The repository's top directory.
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target: PathBuf,
    /// Tools that we build ourselves. It is outside of `target`, because a
    /// tool that took minutes to build should outlive `cargo clean` and serve
    /// the next clone.
    pub(crate) tools: PathBuf,
    /// Whether this is a run without a person: `CI` is set and not "false".
    pub(crate) ci: bool,
}

impl Workspace {
    pub(crate) fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .ok_or("xtask has no parent directory")?
            .to_path_buf();
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(directory) => root.join(directory),
            None => root.join("target"),
        };
        let cache = match (env::var_os("AGENTD_XTASK_CACHE"), env::var_os("XDG_CACHE_HOME")) {
            (Some(directory), _) => PathBuf::from(directory),
            (None, Some(directory)) => Path::new(&directory).join("agentd-xtask"),
            (None, None) => env::home_dir()
                .ok_or("no home directory; set AGENTD_XTASK_CACHE")?
                .join(".cache/agentd-xtask"),
        };
        let tools = cache.join("tools");
        let ci = env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
        Ok(Self { root, target, tools, ci })
    }

    /// Every file that git tracks or would add, relative to the root.
    pub(crate) fn files(&self) -> Result<Vec<String>> {
        let mut git = crate::process::command("git", &self.root);
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listing = crate::process::capture(&mut git)?;
        let mut files: Vec<String> = listing
            .split('\0')
            // A file deleted but not yet staged is still in the index.
            .filter(|path| !path.is_empty() && self.root.join(path).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }
}
