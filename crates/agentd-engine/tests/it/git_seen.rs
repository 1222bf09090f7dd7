//! A diff shows what is on the disk, whatever an implementer has made git believe.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use agentd_core::error_kind::Kind;
use agentd_engine::explain::Explain as _;
use agentd_engine::git::{Diff, FileChange, Git, OmitReason, OmittedFile};

use test_project::TestProject;

use crate::git::{Repository as _, repository};

/// A repository with some files, and the commit that has them.
fn start(files: &[(&str, &str)]) -> (TestProject, String) {
    let repo = repository();
    for (path, text) in files {
        repo.write_root(path, text);
    }
    let base = repo.commit("base");
    (repo, base)
}

fn diff(repo: &TestProject, base: &str) -> Diff {
    repo.found().diff(base, 1 << 20).unwrap()
}

fn paths(diff: &Diff) -> Vec<&str> {
    diff.files.iter().map(|file| &*file.path).collect()
}

fn named(diff: &Diff) -> Vec<(&str, &OmitReason, u64, Option<u64>)> {
    diff.left_out.iter().map(|it| (&*it.path, &it.why, it.files, it.size)).collect()
}

fn put(repo: &TestProject, path: &str, bytes: &[u8]) {
    fs::write(repo.root().join(path), bytes).unwrap();
}

#[test]
fn no_setting_of_the_repository_hides_an_edit() {
    type Hide = fn(&TestProject, &str);
    let ways: [(&str, Hide); 9] = [
        ("skip-worktree", |repo, _| {
            repo.git(&["update-index", "--skip-worktree", "code.rs"]);
        }),
        ("assume-unchanged", |repo, _| {
            repo.git(&["update-index", "--assume-unchanged", "code.rs"]);
        }),
        ("info/exclude", |repo, _| repo.write_root(".git/info/exclude", "*.rs\n")),
        ("core.excludesFile", |repo, _| {
            repo.write_root(".git/mine", "*.rs\n");
            let file = repo.root().join(".git/mine");
            repo.git(&["config", "core.excludesFile", file.to_str().unwrap()]);
        }),
        (".gitattributes", |repo, _| {
            repo.write_root(".gitattributes", "*.rs -diff binary\n");
        }),
        ("info/attributes", |repo, _| {
            repo.write_root(".git/info/attributes", "*.rs -diff filter=hide\n");
            repo.git(&["config", "filter.hide.clean", "git show HEAD:%f"]);
        }),
        (".gitignore", |repo, _| repo.write_root(".gitignore", "*.rs\n")),
        ("replace", |repo, base| {
            let add = |path: &str| {
                repo.git(&["add", path]);
            };
            add("code.rs");
            add("new.rs");
            let tree = repo.git(&["write-tree"]);
            let commit = repo.git(&["commit-tree", "-m", "other", &tree]);
            repo.git(&["replace", base, &commit]);
        }),
        ("sparse checkout", |repo, _| {
            repo.git(&["config", "core.sparseCheckout", "true"]);
            repo.write_root(".git/info/sparse-checkout", "/a.txt\n");
            repo.git(&["update-index", "--skip-worktree", "code.rs"]);
        }),
    ];
    for (way, hide) in ways {
        let (repo, base) = start(&[("code.rs", "fn good() {}\n")]);
        repo.write_root("code.rs", "fn evil() {}\n");
        repo.write_root("new.rs", "fn also_evil() {}\n");
        hide(&repo, &base);
        let diff = diff(&repo, &base);
        let mut changes: Vec<&str> =
            diff.text.lines().filter(|line| line.contains("fn ")).collect();
        changes.sort_unstable();
        assert_eq!(changes, ["+fn also_evil() {}", "+fn evil() {}", "-fn good() {}"], "{way}");
        let code: Vec<&str> =
            paths(&diff).into_iter().filter(|path| !path.starts_with('.')).collect();
        assert_eq!(code, ["code.rs", "new.rs"], "{way}");
    }
}

#[test]
fn a_forged_index_hides_no_edit() {
    let (repo, base) = start(&[("code.rs", "fn good() {}\n")]);
    repo.write_root("code.rs", "fn evil() {}\n");
    // The index has the times of the new file, and the content of the old one.
    let old = repo.git(&["rev-parse", "HEAD:code.rs"]);
    let blob = repo.root().join(".git/objects").join(&old[..2]).join(&old[2..]);
    repo.git(&["add", "code.rs"]);
    let new = repo.git(&["rev-parse", ":code.rs"]);
    let mut index = fs::read(repo.root().join(".git/index")).unwrap();
    let bytes = |hash: &str| agentd_core::hash::unhex(hash).unwrap();
    let at = index.windows(20).position(|it| it == bytes(&new)).unwrap();
    index[at..at + 20].copy_from_slice(&bytes(&old));
    let end = index.len() - 20;
    index[end..].fill(0);
    fs::write(repo.root().join(".git/index"), index).unwrap();
    insta::assert_snapshot!(diff(&repo, &base).text, @"
    diff --git a/code.rs b/code.rs
    index dec9d46..aa7fcd7 100644
    --- a/code.rs
    +++ b/code.rs
    @@ -1 +1 @@
    -fn good() {}
    +fn evil() {}
    ");
    // The object of the old file has the content of the new one.
    let other = repo.root().join(".git/objects").join(&new[..2]).join(&new[2..]);
    fs::set_permissions(&blob, fs::Permissions::from_mode(0o644)).unwrap();
    fs::copy(other, &blob).unwrap();
    let error = repo.found().diff(&base, 1 << 20).unwrap_err();
    assert_eq!(error.kind(), Kind::GitDamaged, "{error:?}");
}

/// Git believes what the file of an object says. A directory that pretends to have had the edit already
/// is found out; one of agentd's changes, which are not compared, changes nothing.
#[test]
fn a_forged_tree_hides_no_edit() {
    let files = [("src/code.rs", "fn good() {}\n"), ("agentd/changes/x/proposal.md", "# One\n")];
    for (dir, is_compared) in [("src", true), ("agentd/changes/x", false), ("", true)] {
        let (repo, base) = start(&files);
        repo.write_root("src/code.rs", "fn evil() {}\n");
        repo.write_root("agentd/changes/x/proposal.md", "# Two\n");
        let tree_of = |commit: &str| repo.git(&["rev-parse", &format!("{commit}:{dir}")]);
        let old = tree_of(&base);
        repo.git(&["add", "."]);
        let index = repo.git(&["write-tree"]);
        let commit = repo.git(&["commit-tree", "-m", "evil", &index]);
        let file = |hash: &str| repo.root().join(".git/objects").join(&hash[..2]).join(&hash[2..]);
        let (old, new) = (file(&old), file(&tree_of(&commit)));
        fs::set_permissions(&old, fs::Permissions::from_mode(0o644)).unwrap();
        fs::copy(new, &old).unwrap();
        match repo.found().diff(&base, 1 << 20) {
            // Git itself may notice it first.
            Err(error) => {
                let is_refused = matches!(error.kind(), Kind::GitDamaged | Kind::GitFailed);
                assert!(is_compared && is_refused, "{dir}: {error}");
                assert!(dir != "src" || error.kind() == Kind::GitDamaged, "{error}");
            }
            Ok(diff) => {
                assert_eq!((paths(&diff), is_compared), (vec!["src/code.rs"], false), "{dir}");
                assert!(diff.text.contains("+fn evil() {}"), "{}", diff.text);
            }
        }
    }
}

#[test]
fn files_changed_only_in_commits_are_named() {
    let (repo, base) = start(&[("code.rs", "good\n"), ("kept.rs", "kept\n")]);
    repo.write_root("code.rs", "evil\n");
    repo.write_root("new.rs", "evil\n");
    repo.commit("evil");
    repo.write_root("code.rs", "good\n");
    fs::remove_file(repo.root().join("new.rs")).unwrap();
    let diff = diff(&repo, &base);
    assert_eq!(diff.text, "");
    let why = &OmitReason::OnlyCommitted;
    assert_eq!(named(&diff), [("code.rs", why, 1, None), ("new.rs", why, 1, None)]);
}

#[test]
fn only_ignore_rules_of_the_first_commit_count() {
    let (repo, base) = start(&[
        (".gitignore", "target/\n*.log\n!kept.log\n"),
        ("sub/.gitignore", "out\n"),
        ("sub/x.rs", "x\n"),
    ]);
    for ignored in ["target/a", "b.log", "sub/out/c"] {
        repo.write_root(ignored, "built\n");
    }
    repo.write_root("kept.log", "kept\n");
    repo.write_root(".gitignore", "target/\n*.log\n!kept.log\nsrc/\n");
    repo.write_root("src/evil.rs", "evil\n");
    repo.write_root("target/forced.rs", "forced\n");
    repo.git(&["add", "-f", "target/forced.rs"]);
    repo.write_root("agentd/.agents/x/settings.json", "agentd's own\n");
    let found = diff(&repo, &base);
    let expected = [".gitignore", "kept.log", "src/evil.rs", "target/forced.rs"];
    assert_eq!(paths(&found), expected);
    assert_eq!(named(&found), []);
    // Build output that was ignored since, and is too much to be shown.
    for i in 0..60 {
        repo.write_root(&format!("src/{i}"), "12");
    }
    let found = diff(&repo, &base);
    assert_eq!(paths(&found), [".gitignore", "kept.log", "target/forced.rs"]);
    let why = &OmitReason::IgnoredSince;
    assert_eq!(named(&found), [("src/", why, 61, Some(125))]);
}

#[test]
fn text_is_shown_and_binaries_are_named_with_their_size() {
    let (repo, base) = start(&[("code.rs", "fn good() {}\n"), ("logo.png", "\0\u{fffd}")]);
    put(&repo, "code.rs", b"// \0\xff\nfn evil() {}\n");
    put(&repo, "readable", b"a NUL: \0\n");
    put(&repo, "logo.png", b"\0\xff\xfe");
    put(&repo, "large.txt", &b"line\n".repeat(300_000));
    let found = diff(&repo, &base);
    insta::assert_snapshot!(found.text, @"
    diff --git a/code.rs b/code.rs
    index dec9d46..bfca7ce 100644
    --- a/code.rs
    +++ b/code.rs
    @@ -1 +1,2 @@
    -fn good() {}
    +// ␀�
    +fn evil() {}
    diff --git a/logo.png b/logo.png
    index d9fbab9..f225cce 100644
    Binary files a/logo.png and b/logo.png differ
    diff --git a/readable b/readable
    new file mode 100644
    index 0000000..af37010
    --- /dev/null
    +++ b/readable
    @@ -0,0 +1 @@
    +a NUL: ␀
    ");
    let large = found.files.iter().find(|file| file.path == "large.txt").unwrap();
    assert_eq!((&large.change, large.lines), (&FileChange::Added, None));
    let expected = [
        ("large.txt", &OmitReason::TooLarge, 1, Some(1_500_000)),
        ("logo.png", &OmitReason::Binary, 1, Some(3)),
    ];
    assert_eq!(named(&found), expected);
}

#[test]
fn converted_line_ends_are_not_a_change() {
    let (repo, base) = start(&[("a.rs", "one\ntwo\n"), ("b.rs", "one\n"), ("crlf", "1\r\n")]);
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.write_root("a.rs", "one\r\ntwo\r\n");
    repo.write_root("b.rs", "one\r\ntwo\r\n");
    let found = diff(&repo, &base);
    assert_eq!(paths(&found), ["b.rs"]);
    insta::assert_snapshot!(found.text, @"
    diff --git a/b.rs b/b.rs
    index 5626abf..814f4a4 100644
    --- a/b.rs
    +++ b/b.rs
    @@ -1 +1,2 @@
     one
    +two
    ");
    assert_eq!(named(&found), []);
    // Where nothing converts them, they are.
    repo.git(&["config", "core.autocrlf", "false"]);
    assert_eq!(paths(&diff(&repo, &base)), ["a.rs", "b.rs"]);
    // By an attribute of the commit, and not by one that is newer.
    repo.write_root(".gitattributes", "*.rs text\n");
    assert_eq!(paths(&diff(&repo, &base)), [".gitattributes", "a.rs", "b.rs"]);
    repo.git(&["add", ".gitattributes"]);
    repo.git(&["commit", "-q", "-m", "attributes"]);
    let base = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(paths(&diff(&repo, &base)), ["b.rs"]);
}

#[test]
fn filters_are_not_run_and_filtered_files_not_all_changed() {
    let repo = repository();
    let sprung = repo.base().join("sprung");
    repo.git(&["config", "filter.rot.clean", "tr a-z n-za-m"]);
    repo.git(&["config", "filter.rot.smudge", "tr a-z n-za-m"]);
    repo.git(&["config", "filter.lfs.clean", "true"]);
    repo.write_root(".gitattributes", "*.rot filter=rot\n*.big filter=lfs -text\n");
    repo.write_root("same.rot", "secret\n");
    repo.write_root("edited.rot", "secret\n");
    // Older than the index, so that git need not look into it.
    let file = fs::File::options().write(true).open(repo.root().join("same.rot")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(100)).unwrap();
    repo.git(&["add", "-A"]);
    let pointer = |content: &str| {
        let digest = agentd_core::hash::Digest::of(content);
        format!(
            "version https://git-lfs.github.com/spec/v1\noid {digest}\nsize {}\n",
            content.len()
        )
    };
    for name in ["same.big", "edited.big"] {
        let file = repo.base().join("pointer");
        fs::write(&file, pointer("large content")).unwrap();
        let hash = repo.git(&["hash-object", "-w", "--no-filters", file.to_str().unwrap()]);
        repo.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{hash},{name}")]);
        repo.write_root(name, "large content");
    }
    repo.git(&["commit", "-q", "-m", "base"]);
    let base = repo.git(&["rev-parse", "HEAD"]);
    let trap = format!("touch {}; cat", sprung.display());
    for driver in ["rot", "lfs"] {
        for kind in ["clean", "smudge", "process"] {
            repo.git(&["config", &format!("filter.{driver}.{kind}"), &trap]);
        }
        repo.git(&["config", &format!("filter.{driver}.required"), "true"]);
    }
    repo.write_root("edited.rot", "another\n");
    repo.write_root("edited.big", "other content");
    let found = diff(&repo, &base);
    assert!(!sprung.exists(), "a filter was run");
    assert_eq!(paths(&found), ["edited.big", "edited.rot"]);
    insta::assert_snapshot!(found.text, @"
    diff --git a/edited.big b/edited.big
    index 0ff0f55..49b527d 100644
    --- a/edited.big
    +++ b/edited.big
    @@ -1,3 +1,3 @@
     version https://git-lfs.github.com/spec/v1
    -oid sha256:b40f7e910f04aa4f15e98e9a9250aba22a43fe4744f7398f24bf5acf9352d8ba
    +oid sha256:923b805711041e23a99f07e146591c500261d1c289f62a9d39f8581ceb8a10ca
     size 13
    diff --git a/edited.rot b/edited.rot
    index 825b847..9b24da9 100644
    --- a/edited.rot
    +++ b/edited.rot
    @@ -1 +1 @@
    -frperg
    +another
    ");
    let why = OmitReason::Filtered { filter: "rot".into() };
    assert_eq!(named(&found), [("same.rot", &why, 1, Some(7))]);
}

#[test]
fn a_sparse_checkout_is_not_a_deletion() {
    let (repo, base) = start(&[("in/a", "a\n"), ("out/b", "b\n"), ("out/c/d", "d\n")]);
    repo.git(&["sparse-checkout", "set", "in", "agentd"]);
    assert!(!repo.root().join("out").exists());
    let found = diff(&repo, &base);
    assert_eq!(paths(&found), Vec::<&str>::new());
    assert_eq!(named(&found), [("out/", &OmitReason::NotCheckedOut, 2, None)]);
    // The bit alone makes no sparse checkout.
    repo.git(&["sparse-checkout", "disable"]);
    repo.git(&["config", "core.sparseCheckout", "false"]);
    repo.git(&["update-index", "--skip-worktree", "out/b"]);
    fs::remove_file(repo.root().join("out/b")).unwrap();
    assert_eq!(paths(&diff(&repo, &base)), ["out/b"]);
}

#[test]
fn odd_things_in_the_tree_are_named_and_hide_nothing() {
    let (repo, base) = start(&[("src/a.rs", "a\n"), ("link", "x\n"), ("dir", "x\n")]);
    repo.git(&["init", "-q", "nested"]);
    repo.write_root("nested/evil.rs", "evil\n");
    repo.git(&["init", "-q", "src"]);
    repo.write_root("src/a.rs", "evil\n");
    repo.write_root("fake/.git", "not a repository");
    repo.write_root("fake/evil.rs", "evil in fake\n");
    fs::remove_file(repo.root().join("link")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", repo.root().join("link")).unwrap();
    fs::remove_file(repo.root().join("dir")).unwrap();
    repo.write_root("dir/x", "now a directory\n");
    let pipe = repo.root().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let found = diff(&repo, &base);
    let expected = ["dir", "dir/x", "fake/evil.rs", "link", "src/a.rs"];
    assert_eq!(paths(&found), expected);
    insta::assert_snapshot!(found.text, @r"
    diff --git a/dir b/dir
    deleted file mode 100644
    index 587be6b..0000000
    --- a/dir
    +++ /dev/null
    @@ -1 +0,0 @@
    -x
    diff --git a/dir/x b/dir/x
    new file mode 100644
    index 0000000..d9930cb
    --- /dev/null
    +++ b/dir/x
    @@ -0,0 +1 @@
    +now a directory
    diff --git a/fake/evil.rs b/fake/evil.rs
    new file mode 100644
    index 0000000..a55957b
    --- /dev/null
    +++ b/fake/evil.rs
    @@ -0,0 +1 @@
    +evil in fake
    diff --git a/link b/link
    deleted file mode 100644
    index 587be6b..0000000
    --- a/link
    +++ /dev/null
    @@ -1 +0,0 @@
    -x
    diff --git a/link b/link
    new file mode 120000
    index 0000000..3594e94
    --- /dev/null
    +++ b/link
    @@ -0,0 +1 @@
    +/etc/passwd
    \ No newline at end of file
    diff --git a/src/a.rs b/src/a.rs
    index 7898192..53c74cd 100644
    --- a/src/a.rs
    +++ b/src/a.rs
    @@ -1 +1 @@
    -a
    +evil
    ");
    let expected =
        [("nested", &OmitReason::Repository, 1, None), ("pipe", &OmitReason::Special, 1, None)];
    assert_eq!(named(&found), expected);
}

#[test]
fn a_diff_leaves_nothing_in_or_beside_the_repository() {
    let (repo, base) = start(&[("code.rs", "good\n")]);
    repo.write_root("code.rs", "other\n");
    repo.write_root("new.rs", "new\n");
    let listed = |dir: PathBuf| {
        let mut found = Vec::new();
        let mut left = vec![dir];
        while let Some(dir) = left.pop() {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    left.push(entry.path());
                }
                found.push((entry.path(), entry.metadata().unwrap().len()));
            }
        }
        found.sort();
        found
    };
    let before = listed(repo.root());
    diff(&repo, &base);
    assert_eq!(listed(repo.root()), before);
}

#[test]
fn sha256_repositories_and_subdirectories_are_compared() {
    let repo = TestProject::empty();
    repo.git(&["init", "-q", "--object-format=sha256"]);
    for (path, text) in [
        (".gitignore", "*.o\n"),
        ("sub/.gitignore", "*.out\n"),
        ("sub/agentd/config.toml", ""),
        ("sub/a \"quoted\".rs", "a\n"),
        ("sub/gone.rs", "gone\n"),
    ] {
        repo.write_root(path, text);
    }
    let base = repo.commit("base");
    fs::remove_file(repo.root().join("sub/gone.rs")).unwrap();
    for path in ["sub/a \"quoted\".rs", "sub/x.o", "sub/x.out", "sub/new\n.rs", "outside"] {
        repo.write_root(path, "changed\n");
    }
    let git = Git::discover_with(&repo.tool(), &repo.root().join("sub")).unwrap().unwrap();
    let found = git.diff(&base, 1 << 20).unwrap();
    assert_eq!(paths(&found), ["sub/a \"quoted\".rs", "sub/gone.rs", "sub/new\n.rs"]);
    assert_eq!(found.left_out, Vec::<OmittedFile>::new());
}
