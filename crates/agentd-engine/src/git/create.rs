//! A repository that agentd creates itself, for a demo.

use std::path::Path;

use super::{Git, GitError, GitTool};

/// Settings of a new repository, whatever the user has chosen for others: no prompt for a key,
/// no hooks, and files stay as they are written.
const SETTINGS: [(&str, &str); 3] =
    [("commit.gpgsign", "false"), ("core.hooksPath", "/dev/null"), ("core.autocrlf", "false")];

/// The author, if git knows no other.
const NOBODY: [(&str, &str); 2] =
    [("user.name", "agentd demo"), ("user.email", "demo@agentd.invalid")];

impl Git {
    /// Creates a repository in a directory, with everything in it as the first commit.
    /// If git does not know an author, a name is set for this repository only.
    pub fn create(tool: &GitTool, root: &Path, message: &str) -> Result<Self, GitError> {
        tool.call(root, "init").args(["--quiet", "--initial-branch=main"]).run()?;
        let configure = |(name, value): (&str, &str)| {
            tool.call(root, "config").args(["--local", name, value]).run().map(drop)
        };
        SETTINGS.into_iter().try_for_each(configure)?;
        // `git var` is no help here: it would make up a name from the host.
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
