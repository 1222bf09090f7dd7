//! A repository that agentd makes itself, to show something in it.

use std::path::Path;

use super::{Git, GitError, GitTool};

/// What holds in a new repository, whatever the user has chosen for others: nobody is
/// asked for a key, nobody's hooks run, and files stay as they are written.
const SETTINGS: [(&str, &str); 3] =
    [("commit.gpgsign", "false"), ("core.hooksPath", "/dev/null"), ("core.autocrlf", "false")];

/// Who commits where nobody else is known.
const NOBODY: [(&str, &str); 2] =
    [("user.name", "agentd demo"), ("user.email", "demo@agentd.invalid")];

impl Git {
    /// Makes a repository of a directory, with all that lies in it as its first commit.
    /// Where git does not know who commits, it is told a name, for this repository only.
    pub fn create(tool: &GitTool, root: &Path, message: &str) -> Result<Self, GitError> {
        tool.call(root, "init").args(["--quiet", "--initial-branch=main"]).run()?;
        let configure = |(name, value): (&str, &str)| {
            tool.call(root, "config").args(["--local", name, value]).run().map(drop)
        };
        SETTINGS.into_iter().try_for_each(configure)?;
        // Not asked of git, which would take a name from the host where there is none.
        let named = |name: &str| -> Result<bool, GitError> {
            Ok(tool.call(root, "config").args(["--get", name]).ask()?.code == 0)
        };
        if !(named("user.name")? && named("user.email")?) {
            NOBODY.into_iter().try_for_each(configure)?;
        }
        let Some(git) = Self::discover_with(tool, root)? else {
            return Err(GitError::NoWorkTree { root: root.to_owned() });
        };
        git.call("add").args(["--all"]).run()?;
        git.call("commit").args(["--quiet", "-m", message]).run()?;
        Ok(git)
    }
}
