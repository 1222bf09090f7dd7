//! `agentd context`: what a planner would be told.

use std::fs;
use std::process::Command;

use test_project::TestProject;

fn project() -> TestProject {
    let project = TestProject::empty()
        .root_file("src/login.py", "def log_in(): pass\n\ndef lock_account(): pass\n")
        .root_file("src/form.py", "# the login form\n")
        .root_file("src/other.py", "def other(): pass\n")
        .root_file("tests/test_login.py", "def test_lock(): pass\n");
    let status = Command::new("git").arg("-C").arg(project.root()).args(["init", "-q"]).status();
    assert!(status.unwrap().success());
    project.programs(&["git"])
}

// contract R2
#[test]
fn a_context_is_shown_without_init() {
    let project = project();
    let wanted = "Lock the account after five failed logins";
    insta::assert_snapshot!(project.run(["context", wanted, "--files", "2"]), @"
    exit 0
    src/login.py
    src/form.py
    --- stderr
    ");
    let text = project.run(["context", wanted]).exits(0).stdout;
    assert!(text.contains("## Files that matter\n") && text.contains("lock_account:3"), "{text}");
    assert!(text.len() <= 12_288, "{}", text.len());
    assert!(project.run(["context", wanted, "--bytes", "4096"]).exits(0).stdout.len() <= 4096);
    let document = project.run(["context", wanted, "--json"]).exits(0).json();
    assert_eq!(document["files"][0]["path"], "src/login.py");
    assert_eq!(document["tests"][0]["path"], "tests/test_login.py");
    assert!(!project.root().join("agentd").exists(), "nothing is written to the project");
    let below = project.root().join("src");
    let found = project.run(["-C", below.to_str().unwrap(), "context", wanted, "--files", "1"]);
    assert_eq!(found.exits(0).stdout, "src/login.py\n");
}

#[test]
fn a_wrong_question_is_refused() {
    let project = project();
    for args in [
        &["context", " "][..],
        &["context"],
        &["context", "login", "--bytes", "100"],
        &["context", "login", "--bytes", "10000000"],
        &["context", "login", "--bytes", "8192", "--files", "3"],
        &["context", "login", "--files", "0"],
    ] {
        project.run(args).exits(2);
    }
    fs::remove_dir_all(project.root().join(".git")).unwrap();
    let error = project.run(["context", "login", "--json"]).exits(1).json_error();
    assert_eq!(error["kind"], "not_initialised");
}

#[test]
fn odd_files_and_settings_are_survived() {
    let project = project();
    let root = project.root();
    let script =
        "mkfifo src/pipe.py fifo; ln -s /dev/zero src/zero.py; ln -s /etc/passwd src/link.py
        printf 'def login(): pass' > \"$(printf 'src/a\\nlogin.py')\"
        printf 'def login(): pass' > \"$(printf 'src/\\377.py')\"
        git config diff.orderFile \"$PWD/fifo\"; git config mailmap.file \"$PWD/fifo\"
        git config log.showSignature true; git config gpg.program \"$PWD/evil\"
        printf '#!/bin/sh\ntouch ran' > evil; chmod +x evil
        git add src/login.py && git -c user.name=t -c user.email=t@t commit -qm 'Add login'";
    let status = Command::new("sh").args(["-ec", script]).current_dir(&root).status();
    assert!(status.unwrap().success());
    let found = project.run(["context", "the login is slow", "--files", "20"]).exits(0).stdout;
    let mut paths: Vec<&str> = found.lines().collect();
    paths.sort_unstable();
    assert_eq!(paths, ["src/form.py", "src/login.py", "src/other.py"]);
    assert!(!root.join("ran").exists());
}

#[test]
fn a_cache_of_somebody_else_is_ignored() {
    let project = project();
    let ask = || project.run(["context", "login", "--files", "2"]).exits(0).stdout;
    let first = ask();
    let dir = project.home().join(".cache/agentd/rank");
    let caches: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!caches.is_empty());
    for text in ["", "agdrank1", "agdrank1aaaaaaaabbbbbbbbbbbbbbbbbbbbbbb"] {
        for cache in &caches {
            fs::write(cache, text).unwrap();
        }
        assert_eq!(ask(), first);
    }
    fs::remove_dir_all(&dir).unwrap();
    fs::write(&dir, "not a directory").unwrap();
    assert_eq!(ask(), first);
}
