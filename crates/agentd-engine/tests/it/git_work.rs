//! What the work on a change has changed, and its commits, with the real git.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime};

use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::rel_path::RelPath;
use agentd_core::state::Placement;
use agentd_engine::explain::Explain as _;
use agentd_engine::git::{ChangedFile, CommitScope, FileChange, Git, GitError, GitTool, set_up};
use agentd_engine::process::{Cancel, CancelReason};

use test_project::{TestProject, git};

use crate::git::{Repository as _, repository};

fn file(path: &str, change: FileChange, lines: Option<(u64, u64)>) -> ChangedFile {
    ChangedFile { path: path.into(), change, lines }
}

fn hook(repo: &TestProject, name: &str, script: &str) {
    let path = repo.root().join(".git/hooks").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A repository in which one of everything has happened since the commit that is given back.
fn worked_on() -> (TestProject, String) {
    let repo = repository();
    repo.write_root("gone.txt", "x\n");
    repo.write_root("old name.txt", "1\n2\n3\n4\n5\n6\n7\n8\n");
    repo.write_root(".gitignore", "ignored\n");
    let base = repo.commit("base");
    repo.write_root("committed.txt", "1\n");
    repo.commit("committed since");
    repo.write_root("a.txt", "one\ntwo\n");
    repo.git(&["mv", "old name.txt", "new name.txt"]);
    fs::remove_file(repo.root().join("gone.txt")).unwrap();
    repo.write_root("-new\nname.txt", "new\n");
    repo.write_root("ignored", "secret");
    repo.write_root("agentd/changes/x/proposal.md", "not code");
    fs::write(repo.root().join("binary"), [0, 159, 146, 150]).unwrap();
    repo.git(&["init", "-q", "nested"]);
    (repo, base)
}

#[test]
fn a_diff_shows_all_changes_and_leaves_the_index_alone() {
    let (repo, base) = worked_on();
    let before = (
        repo.git(&["status", "--porcelain=v2"]),
        fs::read(repo.root().join(".git/index")).unwrap(),
    );
    let diff = repo.found().diff(&base, 1 << 20).unwrap();
    let renamed = FileChange::Renamed { from: "old name.txt".into() };
    let expected = [
        file("-new\nname.txt", FileChange::Added, Some((1, 0))),
        file("a.txt", FileChange::Modified, Some((1, 0))),
        file("binary", FileChange::Added, None),
        file("committed.txt", FileChange::Added, Some((1, 0))),
        file("gone.txt", FileChange::Deleted, Some((0, 1))),
        file("new name.txt", renamed, Some((0, 0))),
    ];
    assert_eq!(diff.files, expected);
    assert!(!diff.truncated);
    insta::assert_snapshot!(diff.text, @r#"
    diff --git "a/-new\nname.txt" "b/-new\nname.txt"
    new file mode 100644
    index 0000000..3e75765
    --- /dev/null
    +++ "b/-new\nname.txt"
    @@ -0,0 +1 @@
    +new
    diff --git a/a.txt b/a.txt
    index 5626abf..814f4a4 100644
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1,2 @@
     one
    +two
    diff --git a/binary b/binary
    new file mode 100644
    index 0000000..e1bcee3
    Binary files /dev/null and b/binary differ
    diff --git a/committed.txt b/committed.txt
    new file mode 100644
    index 0000000..d00491f
    --- /dev/null
    +++ b/committed.txt
    @@ -0,0 +1 @@
    +1
    diff --git a/gone.txt b/gone.txt
    deleted file mode 100644
    index 587be6b..0000000
    --- a/gone.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -x
    diff --git a/old name.txt b/new name.txt
    similarity index 100%
    rename from old name.txt
    rename to new name.txt
    "#);
    assert_eq!(repo.found().changed_files(&base[..10]).unwrap(), expected);
    let after = (
        repo.git(&["status", "--porcelain=v2"]),
        fs::read(repo.root().join(".git/index")).unwrap(),
    );
    assert_eq!(after, before);
    let left = repo.names().into_iter().filter(|name| name.starts_with(".git/"));
    assert_eq!(left.filter(|name| name.contains("agentd")).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_diff_keeps_to_its_limit_and_to_the_project() {
    let repo = repository();
    let base = repo.git(&["rev-parse", "HEAD"]);
    repo.write_root("sub/agentd/config.toml", "");
    repo.write_root("sub/big.txt", "line\n".repeat(100_000));
    repo.write_root("sub/small.txt", "small\n");
    repo.write_root("outside.txt", "outside\n");
    repo.write_root("sub/agentd/changes/x/tasks.md", "not code\n");
    let git = Git::discover_with(&repo.tool(), &repo.root().join("sub")).unwrap().unwrap();
    let diff = git.diff(&base, 4000).unwrap();
    assert!(diff.truncated && diff.text.len() <= 4000, "{}", diff.text.len());
    assert_eq!(diff.text.matches("+line\n").count(), 100_000 - 99_408);
    insta::assert_snapshot!(diff.text.replace("+line\n", ""), @"
    diff --git a/sub/agentd/config.toml b/sub/agentd/config.toml
    new file mode 100644
    index 0000000..e69de29
    diff --git a/sub/big.txt b/sub/big.txt
    new file mode 100644
    index 0000000..7c57e20
    --- /dev/null
    +++ b/sub/big.txt
    @@ -0,0 +1,100000 @@
    [agentd: cut, lines of this file left out: 99408]
    diff --git a/sub/small.txt b/sub/small.txt
    new file mode 100644
    index 0000000..ac79041
    --- /dev/null
    +++ b/sub/small.txt
    @@ -0,0 +1 @@
    +small
    ");
    let paths: Vec<&str> = diff.files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["sub/agentd/config.toml", "sub/big.txt", "sub/small.txt"]);
}

#[test]
fn a_change_in_the_same_second_and_of_the_same_size_is_seen() {
    let repo = repository();
    // The index and the file have one time, so that only reading the file shows the difference.
    repo.git(&["config", "core.checkStat", "minimal"]);
    repo.git(&["config", "core.trustctime", "false"]);
    let at_once = SystemTime::now() - Duration::from_secs(100);
    let set_time = |path: &str| {
        let file = File::options().write(true).open(repo.root().join(path)).unwrap();
        file.set_modified(at_once).unwrap();
    };
    set_time("a.txt");
    repo.git(&["update-index", "--really-refresh"]);
    set_time(".git/index");
    let base = repo.git(&["rev-parse", "HEAD"]);
    repo.write_root("a.txt", "two\n");
    set_time("a.txt");
    let files = repo.found().changed_files(&base).unwrap();
    assert_eq!(files, [file("a.txt", FileChange::Modified, Some((1, 1)))]);
}

#[test]
fn a_diff_runs_nothing_that_the_repository_configures() {
    let repo = repository();
    let base = repo.git(&["rev-parse", "HEAD"]);
    let trap = format!("touch {}; cat", repo.base().join("sprung").display());
    // A repository inside, which anybody can make a submodule of this one.
    repo.write_root("inner/b.txt", "b\n");
    let inner = repo.root().join("inner");
    git(&inner, &["init", "-q"]);
    git(&inner, &["add", "-A"]);
    git(&inner, &["commit", "-q", "-m", "Inner"]);
    let commit = git(&inner, &["rev-parse", "HEAD"]);
    repo.git(&["-c", "advice.addEmbeddedRepo=false", "add", "inner"]);
    repo.write_root("inner/b.txt", "c\n");
    git(&inner, &["config", "filter.trap.clean", &trap]);
    repo.write_root("inner/.git/info/attributes", "* filter=trap\n");
    repo.git(&["config", "diff.external", &trap]);
    repo.git(&["config", "diff.trap.textconv", &trap]);
    repo.git(&["config", "core.fsmonitor", &trap]);
    repo.git(&["config", "core.pager", &trap]);
    repo.git(&["config", "color.ui", "always"]);
    repo.write_root(".gitattributes", "* diff=trap\n");
    repo.write_root("a.txt", "two\n");
    let git = repo.found();
    git.head().unwrap();
    let diff = git.diff(&base, 1 << 20).unwrap();
    let text = diff.text.replace(&commit, "[COMMIT]").replace(&commit[..7], "[COMMIT]");
    insta::assert_snapshot!(text, @"
    diff --git a/.gitattributes b/.gitattributes
    new file mode 100644
    index 0000000..6e02241
    --- /dev/null
    +++ b/.gitattributes
    @@ -0,0 +1 @@
    +* diff=trap
    diff --git a/a.txt b/a.txt
    index 5626abf..f719efd 100644
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -one
    +two
    diff --git a/inner b/inner
    new file mode 160000
    index 0000000..[COMMIT]
    --- /dev/null
    +++ b/inner
    @@ -0,0 +1 @@
    +Subproject commit [COMMIT]
    ");
    git.dirty().unwrap();
    git.commits_since(&base).unwrap();
    assert!(!repo.base().join("sprung").exists());
}

#[test]
fn a_bad_commit_is_not_taken_as_an_option() {
    let repo = repository();
    let blob = repo.git(&["rev-parse", "HEAD:a.txt"]);
    let out = repo.base().join("written");
    let option = format!("--output={}", out.display());
    for base in ["HEAD", "main", "", "-", &option, "0123456789abcdef", &blob, "HEAD..HEAD"] {
        let git = repo.found();
        for error in [
            git.diff(base, 100).unwrap_err(),
            git.changed_files(base).unwrap_err(),
            git.commits_since(base).unwrap_err(),
        ] {
            assert_eq!(error.kind(), Kind::GitNoSuchCommit, "{base}: {error:?}");
        }
    }
    assert!(!out.exists());
}

#[test]
fn everything_is_committed_except_what_belongs_to_changes() {
    let (repo, base) = worked_on();
    repo.write_root("agentd/changes/x/staged.md", "by the user");
    repo.git(&["add", "agentd/changes/x/staged.md"]);
    let git = repo.found();
    let message = "Do 1.1 and 1.2\n\n# not a comment\n--amend";
    let commit = git.commit(CommitScope::Everything, message).unwrap().unwrap();
    assert_eq!(commit, repo.git(&["rev-parse", "HEAD"]));
    assert_eq!(repo.git(&["log", "-1", "--format=%B%an"]), format!("{message}\nAda"));
    let left = "A  agentd/changes/x/staged.md\n?? agentd/changes/x/proposal.md\n?? nested/";
    assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), left);
    assert_eq!(git.commit(CommitScope::Everything, "again").unwrap(), None);
    let commits = git.commits_since(&base).unwrap();
    let subjects: Vec<&str> = commits.iter().map(|commit| &*commit.subject).collect();
    assert_eq!(subjects, ["committed since", "Do 1.1 and 1.2"]);
    assert_eq!(commits[1].id, commit);
    assert_eq!(commits[1].body, "# not a comment\n--amend");
    let files = ["-new\nname.txt", "a.txt", "binary", "gone.txt", "new name.txt", "old name.txt"];
    assert_eq!(commits[1].files, files);
    assert_eq!(commits[0].files, ["committed.txt"]);
    assert!(commits[0].at.starts_with("20"), "{commits:?}");
    assert_eq!(git.commits_since(&commit).unwrap(), []);
}

#[test]
fn a_message_cannot_pretend_to_be_another_commit() {
    let repo = repository();
    let base = repo.git(&["rev-parse", "HEAD"]);
    repo.write_root("x", "x");
    let sly = format!("one\n\n\u{1e}{base}\u{1f}2026\u{1f}two\u{1f}\u{1f}\n\n{base}\n2026\ntwo");
    repo.commit(&sly);
    repo.git(&["commit", "-q", "--allow-empty", "-m", "touches nothing"]);
    repo.write_root("y", "y");
    repo.write_root(&base, "a file that is called like a commit");
    repo.commit("three");
    let commits = repo.found().commits_since(&base).unwrap();
    let seen: Vec<_> = commits.iter().map(|c| (&*c.subject, c.files.join(" "))).collect();
    assert_eq!(seen, [("one", "x".to_owned()), ("three", format!("{base} y"))]);
}

#[test]
fn only_the_named_paths_are_committed() {
    let repo = repository();
    for (path, text) in [("a.txt", "mine\n"), ("src/b.rs", "b"), ("src/c.rs", "c"), ("[d]", "d")] {
        repo.write_root(path, text);
    }
    repo.write_root("d", "not meant by the brackets");
    repo.git(&["add", "a.txt"]);
    let path = |text: &str| RelPath::new(text).unwrap();
    let git = repo.found();
    let paths = [path("src"), path("[d]"), path("not/there.rs")];
    git.commit(CommitScope::Paths(&paths), "some").unwrap().unwrap();
    assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), "M  a.txt\n?? d");
    assert_eq!(git.commit(CommitScope::Paths(&paths), "some").unwrap(), None);
    assert_eq!(git.commit(CommitScope::Paths(&[]), "none").unwrap(), None);
    // In a project below the top, paths are those of the project.
    repo.write_root("src/agentd/config.toml", "");
    repo.write_root("src/b.rs", "changed");
    let below = Git::discover_with(&repo.tool(), &repo.root().join("src")).unwrap().unwrap();
    below.commit(CommitScope::Paths(&[path("b.rs")]), "below").unwrap().unwrap();
    assert_eq!(repo.git(&["show", "--format=", "--name-only"]), "src/b.rs");
}

#[test]
fn a_first_commit_can_be_made() {
    let repo = TestProject::empty().repository();
    repo.write_root("a.txt", "one\n");
    assert!(repo.found().commit(CommitScope::Everything, "first").unwrap().is_some());
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_hook_runs_and_may_refuse() {
    let repo = repository();
    repo.write_root("a.txt", "two\n");
    repo.write_root("new.txt", "new\n");
    let before = repo.git(&["status", "--porcelain=v2"]);
    hook(&repo, "pre-commit", "echo it smells >&2; exit 1");
    let git = repo.found();
    let error = git.commit(CommitScope::Everything, "work").unwrap_err();
    insta::assert_snapshot!(repo.explained(&error), @r#"
    git_commit_refused: git refused the commit
    cause: it smells
    hint: fix what the hook reported, then retry
    hint: or do not let agentd commit: set `[git] commit = "none"` in agentd/config.toml
    "#);
    assert_eq!(repo.git(&["status", "--porcelain=v2"]), before, "nothing is left staged");
    // One that leaves a process behind does not block agentd forever.
    hook(&repo, "pre-commit", "sleep 20 & exit 0");
    let start = std::time::Instant::now();
    git.commit(CommitScope::Everything, "work").unwrap().unwrap();
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[test]
fn ctrl_c_ends_git_and_its_hooks() {
    let repo = repository();
    repo.write_root("new.txt", "two\n");
    hook(&repo, "pre-commit", "touch started; exec sleep 60");
    let cancel = Cancel::new().unwrap();
    let tool = GitTool { cancel: Some(cancel.clone()), ..repo.tool() };
    let git = Git::discover_with(&tool, &repo.root()).unwrap().unwrap();
    let started = repo.root().join("started");
    let thread = std::thread::spawn(move || {
        while !started.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        cancel.cancel(CancelReason::Interrupt);
    });
    let error = git.commit(CommitScope::Everything, "work").unwrap_err();
    thread.join().unwrap();
    assert!(matches!(error, GitError::Interrupted { .. }), "{error:?}");
    assert!(!repo.root().join(".git/index.lock").exists());
    assert_eq!(repo.git(&["log", "--format=%s"]), "start");
    assert_eq!(repo.git(&["status", "--porcelain"]), "?? new.txt\n?? started");
}

#[test]
fn a_commit_needs_an_identity() {
    let repo = repository();
    fs::write(repo.base().join("gitconfig"), "[user]\nuseConfigOnly = true\n").unwrap();
    repo.write_root("a.txt", "two\n");
    repo.write_root("new.txt", "two\n");
    let before = repo.git(&["status", "--porcelain=v2"]);
    let error = repo.found().commit(CommitScope::Everything, "work").unwrap_err();
    insta::assert_snapshot!(repo.explained(&error), @r#"
    git_no_identity: git does not know your name and email address
    cause: Author identity unknown

    *** Please tell me who you are.

    Run

      git config --global user.email "you@example.com"
      git config --global user.name "Your Name"

    to set your account's default identity.
    Omit --global to set the identity only in this repository.

    fatal: no email was given and auto-detection is disabled
    hint: set your name: git config --global user.name 'Your Name'
    hint: set your email address: git config --global user.email you@example.org
    hint: or do not let agentd commit: set `[git] commit = "none"` in agentd/config.toml
    "#);
    assert_eq!(repo.git(&["status", "--porcelain=v2"]), before);
}

#[test]
fn files_in_conflict_are_not_committed() {
    let repo = repository();
    repo.git(&["switch", "-q", "-c", "other"]);
    repo.write_root("a.txt", "theirs\n");
    repo.commit("theirs");
    repo.git(&["switch", "-q", "main"]);
    repo.write_root("a.txt", "mine\n");
    repo.commit("mine");
    let env = repo.git_environment();
    let mut merge = std::process::Command::new("git");
    let merged = merge.args(["merge", "-q", "other"]).current_dir(repo.root()).envs(env).output();
    assert!(!merged.unwrap().status.success());
    let error = repo.found().commit(CommitScope::Everything, "work").unwrap_err();
    assert!(matches!(&error, GitError::Conflicts { files } if files == &["a.txt"]), "{error:?}");
    assert_eq!(repo.found().dirty().unwrap().conflicts, ["a.txt"]);
}

#[test]
fn a_failed_hook_does_not_undo_the_switch() {
    let id = ChangeId::new("add-oauth").unwrap();
    for (workflow, place) in
        [(Placement::Branch, "project"), (Placement::Worktree, "project-agentd/add-oauth")]
    {
        let repo = repository();
        hook(&repo, "post-checkout", "echo it is not content >&2; exit 3");
        let setup = set_up(&repo.found(), &id, workflow, None, None).unwrap();
        assert_eq!(setup.work_tree, repo.base().join(place));
        let note = "`agentd/add-oauth` is checked out, but the post-checkout hook failed: \
                    it is not content";
        assert!(setup.notes.iter().any(|it| it == note), "{:?}", setup.notes);
        let branch = git(&setup.work_tree, &["branch", "--show-current"]);
        assert_eq!(branch, "agentd/add-oauth");
    }
    // One that git refuses is still refused.
    let repo = repository();
    repo.git(&["switch", "-q", "-c", "agentd/add-oauth"]);
    repo.write_root("a.txt", "theirs\n");
    repo.commit("theirs");
    repo.git(&["switch", "-q", "main"]);
    repo.write_root("a.txt", "mine\n");
    let error = set_up(&repo.found(), &id, Placement::Branch, None, None).unwrap_err();
    assert_eq!(error.kind(), Kind::GitSwitchRefused);
}

#[test]
fn a_commit_in_a_sparse_checkout_takes_new_files_outside_of_it() {
    let repo = repository();
    repo.write_root("in/a", "a\n");
    repo.write_root("out/b", "b\n");
    repo.commit("more");
    repo.git(&["sparse-checkout", "set", "in", "agentd"]);
    repo.write_root("in/new", "new\n");
    repo.write_root("elsewhere/new", "new\n");
    let git = repo.found();
    git.commit(CommitScope::Everything, "work").unwrap().unwrap();
    let committed = repo.git(&["show", "--format=", "--name-only"]);
    assert_eq!(committed, "elsewhere/new\nin/new");
    // Nothing is left staged where a hook refuses.
    repo.write_root("elsewhere/again", "new\n");
    let before = repo.git(&["status", "--porcelain=v2"]);
    hook(&repo, "pre-commit", "exit 1");
    git.commit(CommitScope::Everything, "work").unwrap_err();
    assert_eq!(repo.git(&["status", "--porcelain=v2"]), before);
}
