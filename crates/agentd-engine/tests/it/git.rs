//! Where a change is worked on (contract P6), with the real git.

use std::fs;
use std::path::{Path, PathBuf};

use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::state::{GitSetup, Placement};
use agentd_engine::explain::Explain as _;
use agentd_engine::git::{
    Dirty, Git, GitError, GitTool, Head, Setup, SetupResult, begin, set_up, work_tree,
};
use agentd_engine::store::Created;
use test_project::{TestProject, git};

/// A repository with a commit.
pub(crate) fn repository() -> TestProject {
    let repo = TestProject::empty().repository();
    repo.write_root("a.txt", "one\n");
    repo.write_root("agentd/config.toml", "");
    repo.commit("start");
    repo
}

/// git as the engine uses it, which knows nothing of this machine.
pub(crate) trait Repository {
    fn tool(&self) -> GitTool;
    fn found(&self) -> Git;
    fn set_up(&self, workflow: Placement) -> Result<Setup, GitError>;
    fn begin(&self, asked: Option<Placement>) -> Result<SetupResult, GitError>;
    fn in_worktree(&self) -> PathBuf;
    fn branch(&self) -> String;
}

impl Repository for TestProject {
    fn tool(&self) -> GitTool {
        GitTool { env: self.git_environment(), ..GitTool::default() }
    }

    fn found(&self) -> Git {
        Git::discover_with(&self.tool(), &self.root()).unwrap().unwrap()
    }

    fn set_up(&self, workflow: Placement) -> Result<Setup, GitError> {
        set_up(&self.found(), &change(), workflow, None, None)
    }

    fn begin(&self, asked: Option<Placement>) -> Result<SetupResult, GitError> {
        begin(&self.tool(), &self.root(), &change(), asked, None, None)
    }

    fn in_worktree(&self) -> PathBuf {
        self.base().join("project-agentd/add-oauth")
    }

    fn branch(&self) -> String {
        self.git(&["branch", "--show-current"])
    }
}

fn change() -> ChangeId {
    ChangeId::new("add-oauth").unwrap()
}

#[track_caller]
fn ready(begun: Result<SetupResult, GitError>) -> Setup {
    match begun.unwrap() {
        SetupResult::Ready(setup) => setup,
        SetupResult::Ask(git) => panic!("asks about {git:?}"),
    }
}

#[track_caller]
fn fails(result: Result<Setup, GitError>, kind: Kind) -> GitError {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error:?}");
    assert!(!error.explain().hints.is_empty(), "{error:?}");
    error
}

#[test]
fn facts_are_those_of_git() {
    let repo = TestProject::empty().repository();
    assert_eq!(repo.found().head().unwrap(), Head::Unborn { name: "main".into() });
    repo.write_root("a.txt", "one\n");
    repo.write_root("b.txt", "one\n");
    let commit = repo.commit("start");
    let git = repo.found();
    let head = Head::Branch { name: "main".into(), commit: commit.clone() };
    assert_eq!(git.head().unwrap(), head);
    assert_eq!(git.dirty().unwrap(), Dirty::default());
    assert_eq!((git.top(), git.subdirectory()), (&*repo.root(), None));
    assert_eq!(git.superproject().unwrap(), None);
    repo.write_root("a.txt", "two\n");
    repo.write_root("new file", "two\n");
    repo.write_root("agentd/changes/x/STATE.yaml", "what agentd writes does not count");
    fs::remove_file(repo.root().join("b.txt")).unwrap();
    assert_eq!(git.dirty().unwrap(), Dirty { changed: 2, untracked: 1, conflicts: vec![] });
    repo.git(&["checkout", "-q", "--detach"]);
    assert_eq!(git.head().unwrap(), Head::Detached { commit: commit.clone() });
    repo.git(&["branch", "other"]);
    assert_eq!(git.branch_commit("other").unwrap(), Some(commit));
    assert_eq!(git.branch_commit("--help").unwrap(), None);
}

/// The same, set up before: there is nothing to report, and nothing is created.
fn set_up_before(setup: &Setup) -> Setup {
    Setup { notes: vec![], created: Created::default(), ..setup.clone() }
}

#[test]
fn a_branch_keeps_uncommitted_files_and_is_created_once() {
    let repo = repository();
    let base = repo.git(&["rev-parse", "HEAD"]);
    repo.write_root("a.txt", "mine\n");
    repo.write_root("new.txt", "mine too\n");
    repo.git(&["add", "a.txt"]);
    repo.write_root("a.txt", "mine, later\n");
    let before = repo.git(&["status", "--porcelain=v2"]);
    let setup = repo.set_up(Placement::Branch).unwrap();
    assert_eq!(setup.branch.as_deref(), Some("agentd/add-oauth"));
    assert_eq!((&setup.work_tree, setup.base_commit.as_ref()), (&repo.root(), Some(&base)));
    insta::assert_snapshot!(repo.mask(setup.notes.join("\n")), @"
    `agentd/add-oauth` starts from `main`.
    2 uncommitted files came along to `agentd/add-oauth`, unchanged.
    ");
    assert_eq!(repo.branch(), "agentd/add-oauth");
    assert_eq!(repo.git(&["status", "--porcelain=v2"]), before, "staged and not, as it was");
    assert_eq!(repo.git(&["stash", "list"]), "");
    // Again, with a commit on it: the start is kept where it is known.
    repo.commit("work");
    let known = setup.to_state(&repo.root());
    let again = set_up(&repo.found(), &change(), Placement::Branch, Some(&known), None).unwrap();
    assert_eq!(setup.created, Created { branch: true, work_tree: false });
    assert_eq!(again, set_up_before(&setup));
    // A start that was rebased away, or never was, counts for nothing.
    for base in ["0123456789abcdef0123456789abcdef01234567", "--help", ""] {
        let known = GitSetup { base_commit: Some(base.to_owned()), ..known.clone() };
        let again =
            set_up(&repo.found(), &change(), Placement::Branch, Some(&known), None).unwrap();
        assert_eq!(again.base_commit, Some(repo.git(&["rev-parse", "HEAD"])), "{base}");
    }
}

#[test]
fn an_existing_branch_is_used_if_nothing_is_lost() {
    let repo = repository();
    repo.git(&["switch", "-q", "-c", "agentd/add-oauth"]);
    repo.write_root("b.txt", "theirs\n");
    let tip = repo.commit("earlier work");
    repo.git(&["switch", "-q", "main"]);
    // In the way: git would have to overwrite it.
    repo.write_root("b.txt", "mine\n");
    let error = fails(repo.set_up(Placement::Branch), Kind::GitSwitchRefused);
    insta::assert_snapshot!(repo.explained(&error), @"
    git_switch_refused: cannot switch to `agentd/add-oauth` without losing changes
    cause: error: The following untracked working tree files would be overwritten by checkout:
    	b.txt
    Please move or remove them before you switch branches.
    Aborting
    hint: commit your changes: git add -A && git commit
    hint: or stash them: git stash --include-untracked
    hint: or leave this checkout alone: agentd plan <id> --git worktree
    ");
    assert_eq!((repo.branch(), repo.read_root("b.txt")), ("main".into(), "mine\n".into()));
    // Not in the way.
    fs::rename(repo.root().join("b.txt"), repo.root().join("c.txt")).unwrap();
    let setup = repo.set_up(Placement::Branch).unwrap();
    assert_eq!(setup.base_commit, Some(tip));
    insta::assert_snapshot!(repo.mask(setup.notes.join("\n")), @"
    Switched to `agentd/add-oauth`, which was there already.
    1 uncommitted file came along to `agentd/add-oauth`, unchanged.
    ");
    assert_eq!(
        (repo.branch(), repo.read_root("c.txt")),
        ("agentd/add-oauth".into(), "mine\n".into())
    );
}

#[test]
fn a_work_tree_is_created_beside_the_project_and_reused() {
    let repo = repository();
    repo.write_root("a.txt", "mine\n");
    repo.git(&["config", "branch.autoSetupMerge", "always"]);
    let setup = repo.set_up(Placement::Worktree).unwrap();
    assert_eq!(setup.work_tree, repo.in_worktree());
    insta::assert_snapshot!(repo.mask(setup.notes.join("\n")), @"
    `agentd/add-oauth` starts from `main`.
    1 uncommitted file did not come along to the worktree.
    ");
    assert_eq!(repo.branch(), "main");
    assert_eq!(repo.read_root("a.txt"), "mine\n");
    assert_eq!(fs::read_to_string(repo.in_worktree().join("a.txt")).unwrap(), "one\n");
    let there = |args: &[&str]| git(&repo.in_worktree(), args);
    assert_eq!(there(&["branch", "--show-current"]), "agentd/add-oauth");
    let state = setup.to_state(&repo.root());
    assert_eq!(state.work_tree.as_deref(), Some("../project-agentd/add-oauth"));
    assert_eq!(setup.created, Created { branch: true, work_tree: true });
    assert_eq!(repo.set_up(Placement::Worktree).unwrap(), set_up_before(&setup));
    // From inside of it, too.
    let inside = Git::discover_with(&repo.tool(), &repo.in_worktree()).unwrap().unwrap();
    for workflow in [Placement::Worktree, Placement::Branch] {
        let again = set_up(&inside, &change(), workflow, None, None).unwrap();
        assert_eq!((again.work_tree, again.notes), (repo.in_worktree(), vec![]), "{workflow:?}");
    }
    let found = work_tree(&repo.tool(), &repo.root(), &change(), &state).unwrap();
    assert_eq!(found, repo.in_worktree());
    // Moved by the user: used where it is.
    let moved = repo.base().join("elsewhere");
    repo.git(&["worktree", "move", repo.in_worktree().to_str().unwrap(), moved.to_str().unwrap()]);
    let setup = repo.set_up(Placement::Worktree).unwrap();
    assert_eq!(setup.work_tree, moved);
    insta::assert_snapshot!(repo.mask(setup.notes.join("\n")), @"`agentd/add-oauth` has a worktree already, which is used: [BASE]/elsewhere.");
    let error = fails(repo.set_up(Placement::Branch), Kind::GitCheckedOutElsewhere);
    insta::assert_snapshot!(repo.explained(&error), @"
    git_checked_out_elsewhere: `agentd/add-oauth` is checked out in [BASE]/elsewhere
    hint: work there: agentd -C [BASE]/elsewhere plan <id>
    hint: or remove it, once its work is committed: git worktree remove [BASE]/elsewhere
    ");
}

#[test]
fn a_path_in_the_state_leads_nowhere() {
    let repo = repository();
    let state = GitSetup {
        workflow: Placement::Worktree,
        branch: Some("main".into()),
        work_tree: Some("../../../etc".into()),
        base_commit: None,
        base_branch: None,
    };
    let error = work_tree(&repo.tool(), &repo.root(), &change(), &state).unwrap_err();
    assert_eq!(error.kind(), Kind::GitNoWorkTreeOfChange);
}

#[test]
fn a_work_tree_without_its_directory_is_created_again() {
    let repo = repository();
    repo.set_up(Placement::Worktree).unwrap();
    git(&repo.in_worktree(), &["commit", "-q", "--allow-empty", "-m", "work"]);
    let tip = repo.git(&["rev-parse", "agentd/add-oauth"]);
    fs::remove_dir_all(repo.in_worktree()).unwrap();
    let error = fails(repo.set_up(Placement::Branch), Kind::GitCheckedOutElsewhere);
    insta::assert_snapshot!(repo.explained(&error), @"
    git_checked_out_elsewhere: `agentd/add-oauth` is checked out in [ROOT]-agentd/add-oauth
    cause: that directory is gone, but git still lists it
    hint: make git forget it: git worktree prune
    ");
    let setup = repo.set_up(Placement::Worktree).unwrap();
    assert_eq!((setup.work_tree, setup.base_commit), (repo.in_worktree(), Some(tip)));
}

#[test]
fn a_work_tree_replaces_nothing() {
    // A directory that someone else has created.
    let repo = repository();
    fs::create_dir_all(repo.in_worktree()).unwrap();
    fs::write(repo.in_worktree().join("theirs"), "x").unwrap();
    fails(repo.set_up(Placement::Worktree), Kind::GitPathTaken);
    assert_eq!(fs::read_to_string(repo.in_worktree().join("theirs")).unwrap(), "x");
    assert_eq!(repo.git(&["branch", "--list", "agentd/*"]), "", "nothing is half done");
    // An empty one is no obstacle.
    fs::remove_file(repo.in_worktree().join("theirs")).unwrap();
    repo.set_up(Placement::Worktree).unwrap();
    // A worktree that was switched to another branch.
    git(&repo.in_worktree(), &["switch", "-q", "-c", "other"]);
    let error = fails(repo.set_up(Placement::Worktree), Kind::GitOtherBranch);
    insta::assert_snapshot!(repo.explained(&error), @"
    git_other_branch: the worktree [ROOT]-agentd/add-oauth is not on `agentd/add-oauth`
    cause: it is on `other`
    hint: switch it back: git -C [ROOT]-agentd/add-oauth switch agentd/add-oauth
    ");
    // The branch is checked out in the project itself.
    let repo = repository();
    repo.set_up(Placement::Branch).unwrap();
    fails(repo.set_up(Placement::Worktree), Kind::GitCheckedOutHere);
}

#[test]
fn a_branch_that_takes_the_name_is_named() {
    let cases = [
        ("agentd", Placement::Branch),
        ("agentd", Placement::Worktree),
        ("agentd/add-oauth/old", Placement::Branch),
    ];
    let errors = cases.map(|(blocking, workflow)| {
        let repo = repository();
        repo.git(&["branch", blocking]);
        let error = fails(repo.set_up(workflow), Kind::GitBranchNameTaken);
        assert_eq!(repo.branch(), "main");
        repo.explained(&error)
    });
    insta::assert_snapshot!(errors.join("\n"), @"
    git_branch_name_taken: cannot create the branch `agentd/add-oauth` while there is a branch `agentd`
    hint: rename that branch: git branch -m agentd agentd-old
    hint: work in the current checkout: agentd plan <id> --git in-place

    git_branch_name_taken: cannot create the branch `agentd/add-oauth` while there is a branch `agentd`
    hint: rename that branch: git branch -m agentd agentd-old
    hint: work in the current checkout: agentd plan <id> --git in-place

    git_branch_name_taken: cannot create the branch `agentd/add-oauth` while there is a branch `agentd/add-oauth/old`
    hint: rename that branch: git branch -m agentd/add-oauth/old agentd/add-oauth/old-old
    hint: work in the current checkout: agentd plan <id> --git in-place
    ");
}

#[test]
fn a_pushed_branch_is_mentioned() {
    let repo = repository();
    repo.git(&["update-ref", "refs/remotes/origin/agentd/add-oauth", "HEAD"]);
    let setup = repo.set_up(Placement::Branch).unwrap();
    insta::assert_snapshot!(repo.mask(setup.notes.join("\n")), @"
    `agentd/add-oauth` starts from `main`.
    There is a branch `origin/agentd/add-oauth`, too: `agentd/add-oauth` does not start from it.
    ");
}

/// The work of another change, or of a person, does not come along.
#[test]
fn a_new_branch_starts_from_the_base_branch() {
    for workflow in [Placement::Branch, Placement::Worktree] {
        let repo = repository();
        let main = repo.git(&["rev-parse", "HEAD"]);
        repo.git(&["switch", "-c", "agentd/other"]);
        repo.write_root("other.txt", "other\n");
        repo.commit("other work");
        let setup = repo.set_up(workflow).unwrap();
        assert_eq!(
            (setup.base_branch.as_deref(), setup.base_commit.as_ref()),
            (Some("main"), Some(&main))
        );
        assert_eq!(repo.git(&["rev-parse", "agentd/add-oauth"]), main);
        insta::allow_duplicates! {
            insta::assert_snapshot!(setup.notes[0], @"`agentd/add-oauth` starts from `main`, not from `agentd/other`, which is checked out.");
        }
        // Once more: what was the base stays known.
        let known = setup.to_state(&repo.root());
        let again = set_up(&repo.found(), &change(), workflow, Some(&known), None).unwrap();
        assert_eq!(again.base_branch.as_deref(), Some("main"));
        assert_eq!(again.base_commit, Some(main));
    }
}

#[test]
fn the_base_branch_is_the_one_that_is_set_or_that_a_clone_has() {
    let base_of = |repo: &TestProject, base: Option<&str>| {
        let setup = set_up(&repo.found(), &change(), Placement::Branch, None, base);
        setup.map(|setup| (setup.base_branch, setup.notes[0].clone()))
    };
    let on_work = || {
        let repo = repository();
        repo.git(&["branch", "release"]);
        repo.git(&["switch", "-c", "work"]);
        repo
    };
    insta::assert_debug_snapshot!(base_of(&on_work(), Some("release")).unwrap(), @r#"
    (
        Some(
            "release",
        ),
        "`agentd/add-oauth` starts from `release`, not from `work`, which is checked out.",
    )
    "#);
    insta::assert_debug_snapshot!(base_of(&on_work(), Some("HEAD")).unwrap(), @r#"
    (
        Some(
            "work",
        ),
        "`agentd/add-oauth` starts from `work`.",
    )
    "#);
    let error = base_of(&on_work(), Some("--gone")).unwrap_err();
    assert_eq!(error.kind(), Kind::GitNoBaseBranch);
    insta::assert_snapshot!(error, @"there is no branch `--gone` to start from");
    // A clone knows which branch its repository is about, also if that is not here.
    let repo = on_work();
    repo.git(&["update-ref", "refs/remotes/origin/trunk", "HEAD"]);
    repo.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"]);
    insta::assert_debug_snapshot!(base_of(&repo, None).unwrap(), @r#"
    (
        Some(
            "origin/trunk",
        ),
        "`agentd/add-oauth` starts from `origin/trunk`, not from `work`, which is checked out.",
    )
    "#);
    // Settings that only the branch that is checked out has would not apply elsewhere.
    let repo = on_work();
    repo.git(&["switch", "main"]);
    repo.git(&["rm", "-q", "agentd/config.toml"]);
    repo.commit("Without agentd");
    repo.git(&["switch", "work"]);
    insta::assert_debug_snapshot!(base_of(&repo, None).unwrap(), @r#"
    (
        Some(
            "work",
        ),
        "`agentd/add-oauth` starts from `work`, which is checked out: `main` has no agentd/config.toml.",
    )
    "#);
    // Without any of these, the branch that is checked out.
    let repo = repository();
    repo.git(&["branch", "-m", "work"]);
    insta::assert_debug_snapshot!(base_of(&repo, None).unwrap(), @r#"
    (
        Some(
            "work",
        ),
        "`agentd/add-oauth` starts from `work`.",
    )
    "#);
    // A commit without a branch was checked out for a reason.
    let repo = repository();
    repo.git(&["switch", "--detach"]);
    repo.git(&["commit", "--allow-empty", "-m", "on no branch"]);
    let (base, note) = base_of(&repo, None).unwrap();
    assert_eq!(base, None);
    assert!(note.starts_with("HEAD was on no branch: `agentd/add-oauth` starts from "), "{note}");
}

#[test]
fn in_place_nothing_is_touched() {
    let repo = repository();
    repo.write_root("a.txt", "mine\n");
    let setup = repo.set_up(Placement::InPlace).unwrap();
    let base = repo.git(&["rev-parse", "HEAD"]);
    let expected = Setup {
        workflow: Placement::InPlace,
        branch: None,
        work_tree: repo.root(),
        base_commit: Some(base.clone()),
        base_branch: None,
        created: Created::default(),
        notes: vec![],
    };
    assert_eq!(setup, expected);
    let state = setup.to_state(&repo.root());
    assert_eq!((state.work_tree, state.base_commit), (None, Some(base)));
    assert_eq!(repo.git(&["branch"]), "* main");
}

#[test]
fn without_a_commit_only_in_place_works() {
    let repo = TestProject::empty().repository();
    let errors = [Placement::Branch, Placement::Worktree]
        .map(|workflow| repo.explained(&fails(repo.set_up(workflow), Kind::GitNoCommit)));
    insta::assert_snapshot!(errors.join("\n"), @"
    git_no_commit: the repository has no commit for `agentd/add-oauth` to start from
    hint: create the first commit: git add -A && git commit -m Start
    hint: work in the current checkout: agentd plan <id> --git in-place

    git_no_commit: the repository has no commit for `agentd/add-oauth` to start from
    hint: create the first commit: git add -A && git commit -m Start
    hint: work in the current checkout: agentd plan <id> --git in-place
    ");
    let setup = ready(repo.begin(None));
    assert_eq!((setup.workflow, setup.base_commit), (Placement::InPlace, None));
    insta::assert_snapshot!(repo.mask(setup.notes.join("\n")), @"The repository has no commit yet: working in place.");
    assert_eq!(ready(repo.begin(Some(Placement::InPlace))).notes, Vec::<String>::new());
}

#[test]
fn on_a_detached_head_the_branch_starts_there() {
    let repo = repository();
    let first = repo.git(&["rev-parse", "HEAD"]);
    repo.write_root("a.txt", "two\n");
    repo.commit("second");
    repo.git(&["checkout", "-q", &first]);
    let setup = repo.set_up(Placement::Branch).unwrap();
    let notes = setup.notes.join("\n").replace(&first[..10], "[FIRST]");
    insta::assert_snapshot!(notes, @"HEAD was on no branch: `agentd/add-oauth` starts from [FIRST].");
    assert_eq!((repo.branch(), setup.base_commit), ("agentd/add-oauth".into(), Some(first)));
}

#[test]
fn without_a_repository_only_in_place_works() {
    let repo = TestProject::empty();
    assert!(Git::discover_with(&repo.tool(), &repo.root()).unwrap().is_none());
    let errors = [Placement::Branch, Placement::Worktree]
        .map(|workflow| repo.explained(&repo.begin(Some(workflow)).unwrap_err()));
    insta::assert_snapshot!(errors.join("\n"), @"
    git_no_repository: [ROOT] is not in a git repository
    hint: create a repository: git init && git add -A && git commit -m Start
    hint: work in the current checkout: agentd plan <id> --git in-place

    git_no_repository: [ROOT] is not in a git repository
    hint: create a repository: git init && git add -A && git commit -m Start
    hint: work in the current checkout: agentd plan <id> --git in-place
    ");
    let notes = [None, Some(Placement::InPlace)].map(|asked| {
        let setup = ready(repo.begin(asked));
        assert_eq!((setup.workflow, &setup.work_tree), (Placement::InPlace, &repo.root()));
        repo.mask(setup.notes.join("\n"))
    });
    insta::assert_snapshot!(notes.join("\n"), @"
    There is no git repository: working in place, without a way back.

    There is no git repository: working in place, without a way back.
    ");
    // No git at all.
    let repo = repository();
    let tool = GitTool { program: "/nowhere/git".into(), ..GitTool::default() };
    let begin = |asked| begin(&tool, &repo.root(), &change(), asked, None, None);
    assert_eq!(begin(Some(Placement::Branch)).unwrap_err().kind(), Kind::GitNotInstalled);
    insta::assert_snapshot!(ready(begin(None)).notes.join("\n"), @"Working in place, without git: git is not installed.");
}

#[test]
fn a_choice_of_workflow_is_asked_for_once() {
    let repo = repository();
    assert!(matches!(repo.begin(None).unwrap(), SetupResult::Ask(_)));
    let setup = ready(repo.begin(Some(Placement::Branch)));
    let known = setup.to_state(&repo.root());
    repo.git(&["switch", "-q", "main"]);
    let again = ready(begin(&repo.tool(), &repo.root(), &change(), None, Some(&known), None));
    assert_eq!((again.workflow, repo.branch()), (Placement::Branch, "agentd/add-oauth".into()));
}

#[test]
fn a_bare_repository_has_no_work_tree() {
    let repo = TestProject::empty();
    repo.git(&["init", "-q", "--bare"]);
    let error = repo.begin(Some(Placement::Branch)).unwrap_err();
    insta::assert_snapshot!(repo.explained(&error), @"
    git_no_work_tree: [ROOT] is in a bare git repository or inside `.git`
    hint: check the repository out and run agentd there: git worktree add <directory>
    hint: work in the current checkout: agentd plan <id> --git in-place
    ");
    insta::assert_snapshot!(repo.mask(ready(repo.begin(None)).notes.join("\n")), @"Working in place, without git: [ROOT] is in a bare git repository or inside `.git`.");
    // A checkout of a bare repository is as good as any; its worktrees are beside it.
    let tree = repo.git(&["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let commit = repo.git(&["commit-tree", "-m", "start", &tree]);
    let checkout = repo.base().join("checkout");
    repo.git(&["worktree", "add", "-q", "-b", "main", checkout.to_str().unwrap(), &commit]);
    let git = Git::discover_with(&repo.tool(), &checkout).unwrap().unwrap();
    let setup = set_up(&git, &change(), Placement::Worktree, None, None).unwrap();
    assert_eq!(setup.work_tree, repo.base().join("checkout-agentd/add-oauth"));
}

#[test]
fn a_project_in_a_subdirectory_stays_there() {
    let repo = repository();
    repo.write_root("api/x/agentd/config.toml", "");
    repo.write_root("api/x/main.rs", "");
    repo.commit("more");
    let project = repo.root().join("api/x");
    let git = Git::discover_with(&repo.tool(), &project).unwrap().unwrap();
    assert_eq!((git.top(), git.subdirectory()), (&*repo.root(), Some(Path::new("api/x"))));
    let setup = set_up(&git, &change(), Placement::Worktree, None, None).unwrap();
    assert_eq!(setup.work_tree, repo.in_worktree().join("api/x"));
    let state = setup.to_state(&project);
    assert_eq!(state.work_tree.as_deref(), Some("../../../project-agentd/add-oauth/api/x"));
    // A project that is not committed yet has its directory there all the same.
    repo.write_root("new/agentd/config.toml", "");
    let git = Git::discover_with(&repo.tool(), &repo.root().join("new")).unwrap().unwrap();
    let other = ChangeId::new("other").unwrap();
    assert!(set_up(&git, &other, Placement::Worktree, None, None).unwrap().work_tree.is_dir());
    let third = ChangeId::new("third").unwrap();
    let setup = set_up(&git, &third, Placement::Branch, None, None).unwrap();
    insta::assert_snapshot!(repo.mask(setup.notes.join("\n")), @"
    `agentd/third` starts from `main`.
    1 uncommitted file came along to `agentd/third`, unchanged.
    The project is in `new` of the repository [ROOT]: the branch covers all of it.
    ");
}

#[test]
fn a_project_that_was_a_link_does_not_lead_outside() {
    let repo = repository();
    std::os::unix::fs::symlink(repo.base(), repo.root().join("sub")).unwrap();
    repo.commit("a link");
    fs::remove_file(repo.root().join("sub")).unwrap();
    fs::create_dir(repo.root().join("sub")).unwrap();
    let git = Git::discover_with(&repo.tool(), &repo.root().join("sub")).unwrap().unwrap();
    fails(set_up(&git, &change(), Placement::Worktree, None, None), Kind::GitLeadsOut);
}

#[test]
fn a_submodule_has_branches_and_no_work_trees() {
    let repo = repository();
    let library = repo.base().join("library");
    git(&repo.base(), &["clone", "-q", "project", "library"]);
    repo.git(&["submodule", "--quiet", "add", library.to_str().unwrap(), "lib"]);
    repo.commit("with a submodule");
    let git = Git::discover_with(&repo.tool(), &repo.root().join("lib")).unwrap().unwrap();
    assert_eq!(git.superproject().unwrap(), Some(repo.root()));
    fails(set_up(&git, &change(), Placement::Worktree, None, None), Kind::GitSubmodule);
    set_up(&git, &change(), Placement::Branch, None, None).unwrap();
    assert_eq!(repo.branch(), "main", "that of the repository around it");
    // A repository with submodules: the working tree says that they are missing.
    let setup = repo.set_up(Placement::Worktree).unwrap();
    insta::assert_snapshot!(repo.mask(setup.notes.join("\n")), @"
    `agentd/add-oauth` starts from `main`.
    Its submodules are not there yet: git -C [ROOT]-agentd/add-oauth submodule update --init
    ");
}

#[test]
fn a_repository_with_a_broken_link_is_an_error() {
    let repo = TestProject::empty();
    repo.write_root(".git", "gitdir: /nowhere/at/all\n");
    let error = Git::discover_with(&repo.tool(), &repo.root()).unwrap_err();
    insta::assert_snapshot!(repo.explained(&error), @"
    git_failed: `git rev-parse` failed with exit code 128
    cause: fatal: not a git repository: /nowhere/at/all
    ");
}

#[test]
fn a_git_that_is_too_old_is_named() {
    let repo = repository();
    let script = repo.base().join("old-git");
    let text = "#!/bin/sh\ncase \"$*\" in\n*' version'*) echo git version 2.25.1;;\n\
                *worktree*) echo 'usage: git worktree' >&2; exit 129;;\n*) exec git \"$@\";;\nesac\n";
    fs::write(&script, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).unwrap();
    let tool = GitTool { program: script.into(), ..repo.tool() };
    let git = Git::discover_with(&tool, &repo.root()).unwrap().unwrap();
    let error = fails(set_up(&git, &change(), Placement::Worktree, None, None), Kind::GitTooOld);
    insta::assert_snapshot!(repo.explained(&error), @"
    git_too_old: this git is too old: git version 2.25.1
    cause: agentd needs git 2.36 or newer
    hint: install git 2.36 or newer
    hint: work in the current checkout: agentd plan <id> --git in-place
    ");
}
