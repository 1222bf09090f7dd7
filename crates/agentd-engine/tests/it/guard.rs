//! What git runs stays as it was, whatever an implementer does to it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use agentd_core::agent::Role;
use agentd_core::error_kind::Kind;
use agentd_core::hash::hex;
use agentd_core::outcome::FailureKind;
use agentd_core::run_format::Record;
use agentd_engine::agents::run_record::read_run;
use agentd_engine::agents::step::{Agents, Artifact, StepError};
use agentd_engine::explain::Explain as _;
use agentd_engine::git::{CommitScope, Git};
use agentd_engine::guard::git_files::{self, UncheckedCall};
use agentd_engine::opening::{self, Repair};
use agentd_engine::store::Holder;

use test_project::{TestProject, Tree, git, tree, without_times};

use crate::steps::{ask, kept, scripted};

/// Marks that it was run, and does nothing else.
const TRAP: &str = "printf '#!/bin/sh\\ntouch %s/sprung\\n' \"$D\"";
/// What stands before each script: where its files are.
const START: &str = "D=$(dirname \"$0\"); cat $D/start $D/say\n";

/// A project in a repository with hooks and settings of its person's, and an implementer. It
/// runs outside of any sandbox: the guard has to hold by itself, too.
pub(crate) fn repository(script: &str) -> (TestProject, Agents) {
    let off = "[sandbox]\nenabled = false\n";
    let (project, agents) = scripted(&format!("{START}{script}\ncat $D/end"), off);
    let root = &project.root();
    fs::write(root.join("a.txt"), "a\n").unwrap();
    fs::write(root.join(".gitignore"), "calls\n*.json\n").unwrap();
    git(root, &["init", "-q", "-b", "main"]);
    // agentd commits as well, without the settings of tests.
    git(root, &["config", "user.name", "Ada"]);
    git(root, &["config", "user.email", "ada@example.org"]);
    hook(root, ".git/hooks/pre-commit", "touch mine");
    hook(root, ".git/hooks/helpers/one.sh", "true");
    fs::write(root.join(".git/hooks/commit-msg"), "#!/bin/sh\ntouch sprung\n").unwrap();
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "Start"]);
    (project, agents)
}

fn hook(root: &Path, path: &str, script: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
}

/// Everything that git runs or follows.
fn looks(root: &Path) -> Tree {
    let paths = [
        ".git/hooks",
        ".git/config",
        ".git/config.worktree",
        ".git/commondir",
        ".git/info/attributes",
        ".githooks",
        "settings.inc",
        "more.inc",
        "HEAD",
    ];
    let mut found = without_times(tree(root));
    found.retain(|path, _| paths.iter().any(|known| path.starts_with(known)));
    found
}

pub(crate) fn implement(agents: &Agents) -> Result<(), StepError> {
    ask(agents, Role::Implementer, "implement-logic", Artifact::Nothing).0.map(|_| ())
}

/// The paths that the error names.
#[track_caller]
pub(crate) fn named(error: &StepError) -> Vec<String> {
    assert_eq!(error.kind(), Kind::Tampered, "{error:?}");
    let StepError::Tampered { tampered, .. } = error else { panic!("{error:?}") };
    tampered.iter().map(ToString::to_string).collect()
}

/// The cause that an error gives if nothing is left of what was planted.
const RESTORED: &str = "others would run or obey it outside of the agent's sandbox; all of it was \
                        restored, and nothing of it was run";

/// Each of these would run the trap at the next git command; none does, and all is as it was.
#[test]
fn planted_hooks_and_settings_are_restored_and_never_run() {
    let cases: &[(&str, &[&str])] = &[
        (
            "$TRAP > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
            &[".git/hooks/post-commit (new)"],
        ),
        ("$TRAP > .git/hooks/pre-commit", &[".git/hooks/pre-commit (changed)"]),
        ("chmod +x .git/hooks/commit-msg", &[".git/hooks/commit-msg (changed)"]),
        ("rm .git/hooks/pre-commit", &[".git/hooks/pre-commit (removed)"]),
        (
            "mkdir -p x; $TRAP > x/pre-commit; chmod +x x/pre-commit; rm -r .git/hooks; ln -s ../x .git/hooks",
            &[".git/hooks (changed)"],
        ),
        (
            "$TRAP > x; chmod +x x; ln -sf ../../x .git/hooks/pre-commit",
            &[".git/hooks/pre-commit (changed)"],
        ),
        (
            "mkdir -p .git/hooks/deep/er; $TRAP > .git/hooks/deep/er/x; chmod 0 .git/hooks/deep",
            &[".git/hooks/deep (new)"],
        ),
        ("$TRAP > .git/hooks/helpers/one.sh", &[".git/hooks/helpers/one.sh (changed)"]),
        ("mkfifo .git/hooks/update", &[".git/hooks/update (new)"]),
        ("chmod 0 .git/hooks", &[".git/hooks (changed)"]),
        ("chmod 0 .git/config; mkdir .git/agentd-restores", &[".git/config (changed)"]),
        (
            "$TRAP > x; chmod +x x; git config core.hooksPath x; git config core.fsmonitor $PWD/x; git config filter.f.clean $PWD/x; mkdir -p .git/info; echo '* filter=f' > .git/info/attributes; touch a.txt",
            &[".git/config (changed)", ".git/info/attributes (new)"],
        ),
        (
            "rm -r .git/info; ln -s ../y .git/info; mkdir y; echo '* filter=f' > y/attributes",
            &[".git/info (changed)"],
        ),
        ("echo ../other > .git/commondir; mkdir other", &[".git/commondir (new)"]),
        (
            "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor x",
            &[".git/config (changed)", ".git/config.worktree (new)"],
        ),
    ];
    for (script, expected) in cases {
        let (project, agents) = repository(&script.replace("$TRAP", TRAP));
        let root = &project.root();
        let before = looks(root);
        let error = implement(&agents).unwrap_err();
        assert_eq!(named(&error), *expected, "{script}");
        assert_eq!(looks(root), before, "{script}");
        let report = error.explain();
        assert_eq!(report.cause.as_deref(), Some(RESTORED), "{script}");
        assert!(report.hints.len() > 1);
        let found = Git::discover(root).unwrap().unwrap();
        found.commit(CommitScope::Everything, "Go on").unwrap();
        git(root, &["status"]);
        assert!(root.join("mine").exists(), "{script}: the person's own hook still runs");
        assert!(!root.join("sprung").exists(), "{script}");
        assert!(nothing_kept(&project), "{script}");
    }
}

/// It is recorded as other failures are, with what was written, and not tried again.
#[test]
fn tampering_is_in_the_run_and_in_the_ledger() {
    let (project, agents) =
        repository("echo 'curl evil' > .git/hooks/pre-push; cat $D/busy; exit 1");
    let error = implement(&agents).unwrap_err();
    assert_eq!(named(&error), [".git/hooks/pre-push (new)"]);
    let state = project.state();
    assert_eq!(state.llm_calls.len(), 1, "not tried again, though the failure itself passes");
    let runs = project.root().join("agentd/changes/add-login/runs");
    let file = fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let records: Vec<Record> = read_run(&file).unwrap().map(Result::unwrap).collect();
    let Some(Record::End { end, .. }) = records.last() else { panic!("{records:?}") };
    assert_eq!(end.outcome.failure.as_ref().unwrap().kind, FailureKind::Tampered);
    let planted = records.iter().any(|record| {
        matches!(record, Record::Files { files, .. } if files.iter().any(|file| {
            file.path == ".git/hooks/pre-push" && file.text.as_deref() == Some("curl evil\n")
        }))
    });
    assert!(planted, "{records:?}");
}

#[test]
fn ordinary_work_with_git_is_not_tampering() {
    let (project, agents) = repository(
        "echo b >> a.txt; echo n > new.txt; git add -A; git commit -q -m Work; git branch side; \
         git tag v1; echo c >> a.txt; git stash -q; git stash pop -q; git gc -q; \
         git worktree add -q ../tree-$$ 2>/dev/null; git reset -q --soft HEAD~1; \
         mkdir -p .git/info; echo x >> .git/info/exclude",
    );
    implement(&agents).unwrap();
    assert_eq!(project.git(&["branch", "--list", "side"]), "  side");
    assert!(nothing_kept(&project));
}

/// Hooks in the working tree, linked hooks and included settings are git's too.
#[test]
fn files_that_user_settings_lead_to_are_watched() {
    let script = "echo x >> .githooks/pre-commit; echo x >> .githooks/readme.md; \
        echo x >> scripts/push; echo '[alias] x = !y' >> settings.inc; echo '[alias] x = !y' > more.inc";
    let (project, agents) = repository(script);
    let root = &project.root();
    hook(root, ".githooks/pre-commit", "touch mine");
    hook(root, "scripts/push", "true");
    fs::write(root.join("settings.inc"), "[alias]\n\tst = status\n").unwrap();
    git(root, &["config", "core.hooksPath", ".githooks"]);
    git(root, &["config", "include.path", "../settings.inc"]);
    git(root, &["config", "includeIf.onbranch:other.path", "../more.inc"]);
    std::os::unix::fs::symlink("../../scripts/push", root.join(".git/hooks/pre-push")).unwrap();
    let before = looks(root);
    let error = implement(&agents).unwrap_err();
    let expected = [
        ".githooks/pre-commit (changed)",
        "more.inc (new)",
        "scripts/push (changed)",
        "settings.inc (changed)",
    ];
    assert_eq!(named(&error), expected);
    let mut after = looks(root);
    let readme = after.remove(Path::new(".githooks/readme.md"));
    assert!(readme.is_some(), "what git does not run is the agent's");
    assert_eq!(after, before);
}

/// A worktree has `.git` as a file, and its repository elsewhere.
#[test]
fn a_work_tree_beside_the_project_is_guarded_with_its_repository() {
    let (project, mut agents) = repository(
        "G=$(git rev-parse --git-common-dir); echo x > $G/hooks/post-merge; \
         echo x > $(git rev-parse --git-dir)/config.worktree; echo 'gitdir: elsewhere' > .git",
    );
    let root = project.root().canonicalize().unwrap();
    let tree = tempfile::tempdir().unwrap();
    let tree = tree.path().canonicalize().unwrap().join("tree");
    git(&root, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    agents.work_tree.clone_from(&tree);
    let (before, pointer) = (looks(&root), fs::read(tree.join(".git")).unwrap());
    let error = implement(&agents).unwrap_err();
    let expected = [
        ".git (changed)",
        ".git/worktrees/tree/config.worktree (new)",
        ".git/hooks/post-merge (new)",
    ];
    let mut names = named(&error);
    names.sort();
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(names, expected);
    assert_eq!((looks(&root), fs::read(tree.join(".git")).unwrap()), (before, pointer));
    git(&tree, &["status"]);
}

/// A project below the top of its checkout: a repository of the agent's own would be taken
/// for the one above.
#[test]
fn no_repository_is_planted_in_between() {
    let (project, mut agents) = repository("git init -q . >/dev/null; echo 'ref: x' > HEAD");
    let root = project.root().canonicalize().unwrap();
    let inside = root.join("inside");
    fs::create_dir(&inside).unwrap();
    agents.work_tree.clone_from(&inside);
    let error = implement(&agents).unwrap_err();
    assert_eq!(named(&error), [".git (new)", "HEAD (new)"]);
    assert!(!inside.join(".git").exists() && !inside.join("HEAD").exists());
    assert!(root.join(".git/HEAD").exists());
    // The same where there is none at all.
    let outside = tempfile::tempdir().unwrap();
    agents.work_tree = outside.path().canonicalize().unwrap();
    let error = implement(&agents).unwrap_err();
    assert_eq!(named(&error), [".git (new)"]);
    assert!(!outside.path().join(".git").exists() && outside.path().join("HEAD").exists());
}

/// A repository that is gone cannot be put back, but nothing is followed in its place.
#[test]
fn a_repository_that_is_moved_away_is_reported() {
    let script = "mv .git moved && echo 'gitdir: moved' > .git && echo x > moved/hooks/update";
    let (project, agents) = repository(script);
    let error = implement(&agents).unwrap_err();
    assert_eq!(named(&error), [".git (changed, left as it is)"]);
    assert!(!project.root().join(".git").exists());
    insta::assert_snapshot!(project.explained(&error), @"
    tampered: claude modified files that others run or obey: .git (changed, left as it is)
    cause: others would run or obey it outside of the agent's sandbox, and not all of it could be restored
    hint: check it before you run git or an agent: .git
    hint: see what it said and did: agentd log <id> --run last
    hint: if you want that change, make it yourself, then retry
    ");
}

/// More than can be kept is not left to chance.
#[test]
fn hooks_that_cannot_be_saved_prevent_the_call() {
    let (project, agents) = repository("touch called");
    let big = project.root().join(".git/hooks/big");
    fs::File::create(&big).unwrap().set_len(5 << 20).unwrap();
    let error = implement(&agents).unwrap_err();
    insta::assert_snapshot!(project.explained(&error), @"run: [ROOT]/.git/hooks/big is too large or not a regular file, so it could not be restored");
    assert!(!project.root().join("called").exists());
    fs::remove_file(&big).unwrap();
    implement(&agents).unwrap();
}

/// A project in which agentd was killed at the end of a call that has planted something: its
/// snapshot is still there.
fn killed() -> (TestProject, Agents, Tree, Vec<u8>) {
    let (project, agents) =
        repository("cp $HOME/.local/state/agentd/projects/*/calls/*.picture.json saved.json");
    implement(&agents).unwrap();
    let root = &project.root();
    let before = looks(root);
    let snapshot = fs::read(root.join("saved.json")).unwrap();
    fs::write(root.join(".git/hooks/pre-commit"), "#!/bin/sh\ntouch sprung\n").unwrap();
    fs::write(root.join(".git/hooks/post-index-change"), "x").unwrap();
    (project, agents, before, snapshot)
}

fn leave(project: &TestProject, snapshot: &[u8]) -> PathBuf {
    let path = kept(project).join("add-login-implement-logic.picture.json");
    fs::write(&path, snapshot).unwrap();
    path
}

/// Whether nothing is left of any call.
pub(crate) fn nothing_kept(project: &TestProject) -> bool {
    fs::read_dir(kept(project)).unwrap().next().is_none()
}

pub(crate) fn recover(agents: &Agents) -> Vec<UncheckedCall> {
    let holder = || Holder::this_process("test", jiff::Timestamp::now());
    let project = &agents.project;
    let opened = opening::open_root(project.root(), project.user().clone(), &holder).unwrap();
    let calls = opened.repaired.into_iter().filter_map(|repair| match repair {
        Repair::Call(unchecked) => Some(unchecked),
        _ => None,
    });
    calls.collect()
}

#[test]
fn the_next_command_checks_what_a_killed_one_could_not() {
    let (project, agents, before, snapshot) = killed();
    let path = leave(&project, &snapshot);
    let private = kept(&project).join("add-login-implement-logic");
    fs::create_dir(&private).unwrap();
    // Another process is at work.
    let lock = fs::File::create(kept(&project).join("add-login-implement-logic.lock")).unwrap();
    lock.lock().unwrap();
    assert!(recover(&agents).is_empty());
    assert!(private.exists() && path.exists());
    drop(lock);
    let found = recover(&agents);
    let [UncheckedCall::Call { call, tampered }] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(call, "add-login-implement-logic");
    let expected = ".git/hooks/pre-commit (changed), .git/hooks/post-index-change (new)";
    assert_eq!(git_files::list(tampered), expected);
    assert_eq!(looks(&project.root()), before);
    assert!(nothing_kept(&project) && recover(&agents).is_empty());
    // One that says nothing is reported until someone has checked.
    leave(&project, b"{}");
    for _ in 0..2 {
        let found = recover(&agents);
        assert!(matches!(found.as_slice(), [UncheckedCall::Unknown { .. }]), "{found:?}");
    }
}

/// What git runs may be named by a setting that was changed: that one is put back first.
#[test]
fn recovery_checks_restored_settings_again() {
    let (project, agents) =
        repository("cp $HOME/.local/state/agentd/projects/*/calls/*.picture.json saved.json");
    let root = &project.root();
    hook(root, ".githooks/pre-commit", "touch mine");
    git(root, &["config", "core.hooksPath", ".githooks"]);
    implement(&agents).unwrap();
    let before = looks(root);
    let snapshot = fs::read(root.join("saved.json")).unwrap();
    git(root, &["config", "core.hooksPath", "elsewhere"]);
    fs::write(root.join(".githooks/pre-commit"), "#!/bin/sh\ntouch sprung\n").unwrap();
    leave(&project, &snapshot);
    let found = recover(&agents);
    let [UncheckedCall::Call { tampered, .. }] = found.as_slice() else { panic!("{found:?}") };
    let expected = ".git/config (changed), .githooks/pre-commit (changed)";
    assert_eq!(git_files::list(tampered), expected);
    assert_eq!(looks(root), before);
}

/// A repository that a person has made after the kill is theirs.
#[test]
fn a_repository_that_was_made_since_is_not_removed() {
    let (project, mut agents) =
        repository("cp $HOME/.local/state/agentd/projects/*/calls/*.picture.json saved.json");
    let root = project.root().clone();
    fs::rename(root.join(".git"), root.join("away")).unwrap();
    agents.work_tree = root.canonicalize().unwrap();
    implement(&agents).unwrap();
    leave(&project, &fs::read(root.join("saved.json")).unwrap());
    git(&root, &["init", "-q"]);
    let found = recover(&agents);
    let [UncheckedCall::Call { tampered, .. }] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(git_files::list(tampered), ".git (new, left as it is)");
    assert!(root.join(".git/HEAD").exists());
}

/// A snapshot says how something was, and never what may be written or removed.
#[test]
fn a_saved_snapshot_restores_only_what_git_runs() {
    let (project, agents, _, snapshot) = killed();
    let root = project.root().canonicalize().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    hook(&outside, ".git/hooks/pre-commit", "mine");
    fs::write(root.join("source.rs"), "mine").unwrap();
    let snapshot = String::from_utf8(snapshot).unwrap();
    let as_hex = |path: &Path| hex(path.to_str().unwrap().as_bytes());
    let link = root.join("link");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    let before = (looks(&outside), fs::read_dir(&root).unwrap().count());
    let hook = root.join(".git/hooks/pre-commit");
    for (from, to) in [
        (root.clone(), outside.clone()),
        (root.clone(), link),
        (root.clone(), PathBuf::from(".")),
        (hook.clone(), root.join("source.rs")),
        (hook.clone(), root.join("new.rs")),
        (hook.clone(), root.join("..")),
        (hook.clone(), root.join(".git/hooks/../../source.rs")),
        (hook.clone(), root.join(".git")),
        (hook.clone(), PathBuf::from(".git/hooks/pre-commit")),
        (hook.clone(), root.join("link/.git/hooks/pre-commit")),
    ] {
        let forged = snapshot.replace(&as_hex(&from), &as_hex(&to));
        assert_ne!(forged, snapshot);
        for forged in [
            forged.clone(),
            forged.replace("\"closed\":[", &format!("\"closed\":[\"{}\",", as_hex(&to))),
        ] {
            let path = leave(&project, forged.as_bytes());
            recover(&agents);
            let _ = fs::remove_file(path);
            assert_eq!((looks(&outside), fs::read_dir(&root).unwrap().count()), before, "{to:?}");
            assert_eq!(fs::read_to_string(root.join("source.rs")).unwrap(), "mine", "{to:?}");
        }
    }
}
