//! Where a change is worked on: on a branch, in a worktree beside the project, or in place
//! (P6). Doing it twice changes nothing, and nothing of the user's is lost.

use std::path::{Path, PathBuf};

use agentd_core::ids::ChangeId;
use agentd_core::state::{GitSetup, Placement};
use agentd_core::text::counted;

use super::error::GitError;
use super::start::{Start, branch_with, start};
use super::status::{Dirty, Head, Worktree};
use super::tool::{GitOutput, GitTool};
use super::{Git, canonical};
use crate::store::{Created, OutsideDir};

/// Where a change is worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The way that was chosen.
    pub workflow: Placement,
    /// The branch; none in place.
    pub branch: Option<String>,
    /// The directory of the project in which the code is changed.
    pub work_tree: PathBuf,
    /// The commit from which the work starts; none without git.
    pub base_commit: Option<String>,
    /// The branch from which a new branch was started.
    pub base_branch: Option<String>,
    /// What was created for it now.
    pub created: Created,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Setup {
    /// The form in which STATE.yaml stores it.
    pub fn to_state(&self, root: &Path) -> GitSetup {
        let root = canonical(root).unwrap_or_else(|_| root.to_owned());
        let elsewhere = self.work_tree != root;
        GitSetup {
            workflow: self.workflow,
            branch: self.branch.clone(),
            work_tree: elsewhere.then(|| relative(&root, &self.work_tree)),
            base_commit: self.base_commit.clone(),
            base_branch: self.base_branch.clone(),
        }
    }
}

/// The result of [`begin`].
#[derive(Debug)]
pub enum SetupResult {
    /// The change can be worked on.
    Ready(Setup),
    /// There is a choice that the user has to make.
    Ask(Git),
}

/// The branch of a change.
pub fn branch_of(change: &ChangeId) -> String {
    format!("agentd/{change}")
}

/// The change whose branch is checked out in a directory, by its name.
pub fn change_of_branch(tool: &GitTool, dir: &Path) -> Option<ChangeId> {
    let head = tool.call(dir, "symbolic-ref").args(["--quiet", "--short", "HEAD"]).ask().ok()?;
    ChangeId::new(head.text().trim_end().strip_prefix("agentd/")?).ok()
}

/// Sets a change up in the requested way, otherwise as it was before. If nothing was requested and
/// git offers no choice, it is worked on in place, with a note that says why.
pub fn begin(
    tool: &GitTool,
    root: &Path,
    change: &ChangeId,
    asked: Option<Placement>,
    known: Option<&GitSetup>,
    base: Option<&str>,
) -> Result<SetupResult, GitError> {
    let asked = asked.or(known.map(|known| known.workflow));
    let found = Git::discover_with(tool, root);
    let without = |note: String| -> Result<SetupResult, GitError> {
        let work_tree = canonical(root)?;
        let (workflow, notes) = (Placement::InPlace, vec![note]);
        Ok(SetupResult::Ready(Setup {
            workflow,
            branch: None,
            work_tree,
            base_commit: None,
            base_branch: None,
            created: Created::default(),
            notes,
        }))
    };
    match (found, asked) {
        (Ok(Some(git)), Some(workflow)) => {
            Ok(SetupResult::Ready(set_up(&git, change, workflow, known, base)?))
        }
        (Ok(Some(git)), None) if git.head_commit()?.is_some() => Ok(SetupResult::Ask(git)),
        (Ok(Some(_)), None) => {
            without("The repository has no commit yet: working in place.".into())
        }
        (Ok(None), None | Some(Placement::InPlace)) => {
            without("There is no git repository: working in place, without a way back.".into())
        }
        (Ok(None), Some(_)) => Err(GitError::NoRepository { root: root.to_owned() }),
        (Err(error @ GitError::Interrupted { .. }), _) => Err(error),
        (Err(error), None | Some(Placement::InPlace)) => {
            without(format!("Working in place, without git: {error}."))
        }
        (Err(error), Some(_)) => Err(error),
    }
}

/// Sets a change up. `known` is how it was set up before, if it was: the work still starts
/// from the same commit, as long as that makes sense. A new branch starts from `base`, or from the
/// branch that the repository is about.
pub fn set_up(
    git: &Git,
    change: &ChangeId,
    workflow: Placement,
    known: Option<&GitSetup>,
    base: Option<&str>,
) -> Result<Setup, GitError> {
    let mut setup = match workflow {
        Placement::InPlace => in_place(git)?,
        Placement::Branch => on_branch(git, change, base)?,
        Placement::Worktree => in_worktree(git, change, base)?,
    };
    if setup.base_branch.is_none() && workflow != Placement::InPlace {
        setup.base_branch = match (known, &setup.base_commit) {
            (None, Some(commit)) => branch_with(git, commit, base)?,
            _ => known.and_then(|known| known.base_branch.clone()),
        };
    }
    if let (Some(base), Some(tip)) =
        (known.and_then(|known| known.base_commit.as_deref()), setup.base_commit.as_deref())
        && let Ok(base) = git.commit_by_hash(base)
        && git.call("merge-base").args(["--is-ancestor", &base, tip]).ask()?.code == 0
    {
        setup.base_commit = Some(base);
    }
    Ok(setup)
}

/// Where the code of a change is, according to git: the path in STATE.yaml is text in a
/// repository, and could name any directory.
pub fn work_tree(
    tool: &GitTool,
    root: &Path,
    change: &ChangeId,
    setup: &GitSetup,
) -> Result<PathBuf, GitError> {
    match setup.workflow {
        Placement::Branch | Placement::InPlace => canonical(root),
        Placement::Worktree => {
            let git = Git::discover_with(tool, root)?
                .ok_or_else(|| GitError::NoRepository { root: root.to_owned() })?;
            let branch = branch_of(change);
            let trees = git.worktrees()?;
            match checked_out(&trees, &branch).filter(|tree| !tree.gone) {
                Some(tree) => project_in(&git, &tree.path),
                None => Err(GitError::NoWorkTreeOf { branch }),
            }
        }
    }
}

fn in_place(git: &Git) -> Result<Setup, GitError> {
    Ok(Setup {
        workflow: Placement::InPlace,
        branch: None,
        work_tree: git.root.clone(),
        base_commit: git.head_commit()?,
        base_branch: None,
        created: Created::default(),
        notes: Vec::new(),
    })
}

fn on_branch(git: &Git, change: &ChangeId, base: Option<&str>) -> Result<Setup, GitError> {
    let branch = branch_of(change);
    let (head, tip) = born(git, &branch)?;
    let ready = |base_commit: String, base_branch, created, notes| Setup {
        workflow: Placement::Branch,
        branch: Some(branch_of(change)),
        work_tree: git.root.clone(),
        base_commit: Some(base_commit),
        base_branch,
        created,
        notes,
    };
    if head.branch() == Some(&branch) {
        return Ok(ready(tip, None, Created::default(), Vec::new()));
    }
    let trees = git.worktrees()?;
    if let Some(other) = checked_out(&trees, &branch) {
        return Err(elsewhere(branch, other));
    }
    let dirty = git.dirty()?;
    let mut notes = Vec::new();
    let existing = git.branch_commit(&branch)?;
    // Quietly: to report what is changed, git would enter submodules and follow their settings.
    let switch = git.call("switch").args(["--quiet"]).long();
    let (mut base_commit, mut base_branch) = (existing.clone(), None);
    let output = if existing.is_some() {
        notes.push(format!("Switched to `{branch}`, which was there already."));
        switch.args(["--no-guess", &branch]).ask()?
    } else {
        name_is_free(git, &branch)?;
        let start = start(git, &head, tip, base)?;
        notes.push(start.note(&branch, &head));
        notes.extend(remote_note(git, &branch)?);
        let output = switch.args(["--no-track", "-c", &branch, &start.commit]).ask()?;
        (base_commit, base_branch) = (Some(start.commit), start.branch);
        output
    };
    if output.code != 0 {
        // Git also fails if it has switched and a hook failed afterwards.
        if git.head()?.branch() != Some(&branch) {
            return Err(GitError::SwitchRefused { branch, output: output.combined() });
        }
        notes.push(hook_note(&branch, &output));
    }
    if existing.is_none() {
        git.set_upstream(&branch)?;
    }
    if !dirty.is_clean() {
        notes.push(format!("{} came along to `{branch}`, unchanged.", uncommitted(&dirty)));
    }
    if let Some(subdirectory) = git.subdirectory() {
        let (top, sub) = (git.top.display(), subdirectory.display());
        notes.push(format!(
            "The project is in `{sub}` of the repository {top}: the branch covers all of it."
        ));
    }
    let created = Created { branch: existing.is_none(), work_tree: false };
    Ok(ready(base_commit.unwrap_or_default(), base_branch, created, notes))
}

fn in_worktree(git: &Git, change: &ChangeId, base: Option<&str>) -> Result<Setup, GitError> {
    let branch = branch_of(change);
    let (head, tip) = born(git, &branch)?;
    let trees = git.worktrees()?;
    let mut notes = Vec::new();
    let mut created = Created::default();
    let existing = git.branch_commit(&branch)?;
    let (mut base_commit, mut base_branch) = (existing.clone(), None);
    let path = place(git, &trees, change);
    let path = match checked_out(&trees, &branch) {
        Some(tree) if tree.main => return Err(GitError::CheckedOutHere { branch }),
        Some(tree) if tree.gone && tree.path != path => return Err(elsewhere(branch, tree)),
        Some(tree) if !tree.gone => {
            if canonical(&tree.path)? != canonical_or(&path) {
                let place = tree.path.display();
                notes.push(format!("`{branch}` has a worktree already, which is used: {place}."));
            }
            tree.path.clone()
        }
        Some(_) | None => {
            let existing_branch = existing.is_some().then_some(&*branch);
            let start = match existing {
                Some(_) => Start { commit: tip, branch: None, not_set_up: None },
                None => start(git, &head, tip, base)?,
            };
            notes.extend(make(git, &trees, &path, &branch, existing_branch, &start.commit)?);
            created = Created { branch: existing.is_none(), work_tree: true };
            if existing.is_none() {
                git.set_upstream(&branch)?;
                notes.push(start.note(&branch, &head));
                notes.extend(remote_note(git, &branch)?);
                (base_commit, base_branch) = (Some(start.commit), start.branch);
            }
            // Settings and main specs come along, and the change itself.
            let dirty = git.dirty_outside_agentd()?;
            if !dirty.is_clean() {
                notes.push(format!("{} did not come along to the worktree.", uncommitted(&dirty)));
            }
            if path.join(".gitmodules").is_file() {
                notes.push(format!(
                    "Its submodules are not there yet: git -C {} submodule update --init",
                    path.display()
                ));
            }
            path
        }
    };
    Ok(Setup {
        workflow: Placement::Worktree,
        branch: Some(branch),
        work_tree: project_in(git, &path)?,
        base_commit,
        base_branch,
        created,
        notes,
    })
}

/// A note about a hook that failed after a branch was checked out.
fn hook_note(branch: &str, output: &GitOutput) -> String {
    let reason = output.stderr.lines().next_back().unwrap_or("it printed nothing");
    format!("`{branch}` is checked out, but the post-checkout hook failed: {reason}")
}

/// Creates a worktree, for an existing branch or a new one. Returns a note, if there is
/// something to report.
fn make(
    git: &Git,
    trees: &[Worktree],
    path: &Path,
    branch: &str,
    existing: Option<&str>,
    start: &str,
) -> Result<Option<String>, GitError> {
    if let Some(around) = git.superproject()? {
        return Err(GitError::Submodule { around });
    }
    let known = trees.iter().find(|tree| tree.path == path || canonical_or(&tree.path) == path);
    if let Some(tree) = known.filter(|tree| !tree.gone) {
        let (path, branch) = (tree.path.clone(), branch.to_owned());
        return Err(GitError::OtherBranchThere { path, branch, found: tree.branch.clone() });
    }
    // Git itself accepts an empty directory.
    let empty = || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if path.symlink_metadata().is_ok() && !empty() {
        return Err(GitError::PathTaken { path: path.to_owned() });
    }
    let add = git.call("worktree").long().args(["add"]);
    // Git still lists one here whose directory is gone.
    let add = if known.is_some() { add.args(["--force"]) } else { add };
    let output = match existing {
        Some(branch) => add.args(["--"]).args([path]).args([branch]).ask()?,
        None => {
            name_is_free(git, branch)?;
            let add = add.args(["--no-track", "-b", branch, "--"]);
            add.args([path]).args([start]).ask()?
        }
    };
    if output.code == 0 {
        return Ok(None);
    }
    // Here too, git fails if a hook does, and the working tree exists nevertheless.
    let is_made = |tree: &Worktree| !tree.gone && canonical_or(&tree.path) == canonical_or(path);
    if checked_out(&git.worktrees()?, branch).is_some_and(is_made) {
        return Ok(Some(hook_note(branch, &output)));
    }
    let what = "git worktree".to_owned();
    Err(GitError::Failed { what, code: output.code, output: output.combined() })
}

/// The path for the working tree of a change: `../<project>-agentd/<id>`, beside the main checkout
/// of the repository, and not inside of a repository.
fn place(git: &Git, trees: &[Worktree], change: &ChangeId) -> PathBuf {
    let main = trees.iter().find(|tree| tree.main && !tree.bare && !tree.gone);
    let top = main.map_or(&git.top, |tree| &tree.path);
    let mut name = top.file_name().unwrap_or_default().to_owned();
    name.push("-agentd");
    top.parent().unwrap_or(top).join(name).join(change.as_str())
}

/// The directory of the project in a checkout.
fn project_in(git: &Git, checkout: &Path) -> Result<PathBuf, GitError> {
    let checkout = canonical(checkout)?;
    let inside = checkout.join(&git.prefix);
    // The project may not be committed yet.
    let made = OutsideDir::open(&checkout).and_then(|dir| dir.create_dir_all(&git.prefix));
    if let (Err(source), false) = (made, inside.exists()) {
        return Err(GitError::Path { path: inside, source });
    }
    let real = canonical(&inside)?;
    if real.starts_with(&checkout) { Ok(real) } else { Err(GitError::LeadsOut { path: inside }) }
}

fn born(git: &Git, branch: &str) -> Result<(Head, String), GitError> {
    let head = git.head()?;
    match head.commit().map(str::to_owned) {
        Some(commit) => Ok((head, commit)),
        None => Err(GitError::Unborn { branch: branch.to_owned() }),
    }
}

fn checked_out<'t>(trees: &'t [Worktree], branch: &str) -> Option<&'t Worktree> {
    trees.iter().find(|tree| tree.branch.as_deref() == Some(branch))
}

fn elsewhere(branch: String, tree: &Worktree) -> GitError {
    GitError::CheckedOutElsewhere { branch, path: tree.path.clone(), gone: tree.gone }
}

/// A branch is a file, so `agentd/x` cannot exist beside `agentd` or `agentd/x/y`.
pub(super) fn name_is_free(git: &Git, branch: &str) -> Result<(), GitError> {
    let taken = |blocking: String| GitError::NameTaken { branch: branch.to_owned(), blocking };
    if let Some((above, _)) = branch.split_once('/')
        && git.branch_commit(above)?.is_some()
    {
        return Err(taken(above.to_owned()));
    }
    let below = format!("refs/heads/{branch}/");
    let output =
        git.call("for-each-ref").args(["--format=%(refname:short)", "--", &below]).run()?;
    match output.text().lines().next() {
        Some(below) => Err(taken(below.to_owned())),
        None => Ok(()),
    }
}

/// A branch of that name may have been pushed.
fn remote_note(git: &Git, branch: &str) -> Result<Option<String>, GitError> {
    let note = |remote: String| {
        format!("There is a branch `{remote}`, too: `{branch}` does not start from it.")
    };
    Ok(git.remote_of(branch)?.map(note))
}

fn uncommitted(dirty: &Dirty) -> String {
    counted(dirty.count(), "uncommitted file")
}

fn canonical_or(path: &Path) -> PathBuf {
    canonical(path).unwrap_or_else(|_| path.to_owned())
}

/// The relative path from one directory to another.
fn relative(from: &Path, to: &Path) -> String {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| "..".to_owned());
    let down = to.components().skip(shared);
    let down = down.map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_relative() {
        for (from, to, way) in [
            ("/a/p", "/a/p-agentd/x", "../p-agentd/x"),
            ("/a/p/sub", "/a/p-agentd/x/sub", "../../p-agentd/x/sub"),
            ("/a", "/a", ""),
            ("/a", "/a/b", "b"),
        ] {
            assert_eq!(relative(Path::new(from), Path::new(to)), way);
        }
    }
}
