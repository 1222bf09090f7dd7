//! Ways out of a project or a change, none of which works.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agentd_core::layout::{ChangeFile, agent_write_target};
use agentd_core::rel_path::RelPath;
use agentd_engine::store::{Project, StoreError, WriteLock};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use test_project::{TestProject, contents};

use super::{holder, id, path, sandbox};

const SECRET: &str = "the secret\n";

/// A project with every trap set that a symlink can be.
fn trapped() -> (TestProject, Project) {
    let (dir, project) = sandbox();
    let outside = dir.base().join("outside");
    fs::create_dir_all(outside.join("specs")).unwrap();
    fs::write(outside.join("secret.txt"), SECRET).unwrap();
    fs::write(outside.join("tasks.md"), SECRET).unwrap();
    fs::write(outside.join("specs/a.md"), SECRET).unwrap();
    let root = dir.base().join("project");
    fs::create_dir_all(root.join("deep/er")).unwrap();
    fs::write(root.join("plain.txt"), "plain\n").unwrap();
    for (link, target) in [
        ("link-file", "../outside/secret.txt"),
        ("link-dir", "../outside"),
        ("link-up", ".."),
        ("link-chain", "link-dir"),
        ("link-chain-file", "link-file"),
        ("link-dangling", "../outside/new.txt"),
        ("link-dangling-dir", "../outside/new"),
        ("link-root", "/"),
        ("link-proc", "/proc/self/root"),
        ("link-cwd", "/proc/self/cwd"),
        ("link-etc", "/etc/passwd"),
        ("link-loop", "link-loop"),
        ("deep/link", "../../outside"),
        ("deep/er/zigzag", "../../deep/../../outside/secret.txt"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    symlink(&outside, root.join("link-abs")).unwrap();
    symlink(outside.join("secret.txt"), root.join("link-abs-file")).unwrap();

    project.create_change(&id("other")).unwrap();
    let changes = root.join("agentd/changes");
    fs::write(changes.join("other/tasks.md"), "tasks of other\n").unwrap();
    fs::create_dir(changes.join("other/specs")).unwrap();
    fs::write(changes.join("mine/STATE.yaml"), "phase: proposed\n").unwrap();
    symlink("STATE.yaml", changes.join("mine/proposal.md")).unwrap();
    symlink("../other/tasks.md", changes.join("mine/tasks.md")).unwrap();
    symlink("../../../../outside/secret.txt", changes.join("mine/clarifications.md")).unwrap();
    symlink("../other/specs", changes.join("mine/specs")).unwrap();
    symlink("../../../outside", changes.join("linked")).unwrap();
    symlink("other", changes.join("alias")).unwrap();
    (dir, project)
}

fn unchanged(dir: &Path, attempts: &[&str], mut attempt: impl FnMut(&str)) {
    let before = contents(dir);
    for text in attempts {
        attempt(text);
        assert_eq!(contents(dir), before, "after {text:?}");
    }
}

#[test]
fn no_text_is_a_way_out() {
    let (dir, _project) = trapped();
    let long_name = "a".repeat(256);
    let long_path = "a/".repeat(2100);
    let absolute = dir.base().join("outside/secret.txt").to_str().unwrap().to_owned();
    let attempts = [
        "",
        "..",
        "../outside/secret.txt",
        "../project/plain.txt",
        "a/../../outside/secret.txt",
        "a/../plain.txt",
        "deep/../plain.txt",
        "./../outside/secret.txt",
        "deep/er/../../../outside/secret.txt",
        "agentd/changes/mine/../other/tasks.md",
        "a/..",
        "../",
        "a//../..//b",
        "/",
        "//",
        "/etc/passwd",
        "//etc/passwd",
        &absolute,
        "C:\\Windows\\win.ini",
        "C:/Windows/win.ini",
        "c:plain.txt",
        "\\\\server\\share\\x",
        "\\etc\\passwd",
        "..\\outside\\secret.txt",
        "deep\\plain.txt",
        "plain.txt\0",
        "plain.txt\0.md",
        "a\0/../b",
        "plain.txt:stream",
        "plain.txt\n",
        "\u{7}bell",
        "CON",
        "con",
        "nul",
        "NUL.txt",
        "deep/aux.md",
        "COM1",
        "lpt9.log",
        "com²",
        "conout$",
        "con .txt",
        "plain.txt.",
        "plain.txt ",
        "deep./plain.txt",
        "deep /x",
        "...",
        ".. /outside",
        "what?",
        "a*b",
        "<a>",
        "a|b",
        "\"a\"",
        &long_name,
        &long_path,
    ];
    assert!(attempts.len() >= 40);
    unchanged(&dir.base(), &attempts, |text| {
        assert!(RelPath::new(text).is_err(), "{text:?}");
    });
}

#[test]
fn no_symlink_is_a_way_out() {
    let (dir, project) = trapped();
    let files = [
        "link-file",
        "link-chain-file",
        "link-abs-file",
        "link-etc",
        "link-loop",
        "link-dangling",
        "deep/er/zigzag",
        "link-dir/secret.txt",
        "link-dir/new.txt",
        "link-dir/new/new.txt",
        "link-chain/secret.txt",
        "link-abs/secret.txt",
        "link-abs/new.txt",
        "deep/link/secret.txt",
        "deep/link/new.txt",
        "link-up/outside/secret.txt",
        "link-up/project/plain.txt",
        "link-dangling-dir/new.txt",
        "link-root/etc/passwd",
        "link-root/tmp/agentd-escaped.txt",
        "link-proc/etc/passwd",
        "link-cwd/Cargo.toml",
        "agentd/changes/linked/secret.txt",
        "agentd/changes/linked/new.txt",
        "agentd/changes/mine/clarifications.md",
    ];
    let root = project.dir();
    unchanged(&dir.base(), &files, |text| {
        let path = path(text);
        assert!(root.read(&path).is_err(), "read {text}");
        assert!(root.write_atomic(&path, b"x").is_err(), "write {text}");
        assert!(root.write_new(&path, b"x").is_err(), "write new {text}");
        assert!(root.append(&path, b"x").is_err(), "append {text}");
        assert!(root.append_line(&path, "x").is_err(), "append line {text}");
        assert!(root.create_dir_all(&path).is_err(), "create {text}");
        assert!(root.list_dir(&path).is_err(), "list {text}");
        assert!(root.rename_dir(&super::path("deep"), &path).is_err(), "move to {text}");
    });
    let dirs = ["link-dir", "link-up", "link-chain", "link-root", "link-proc", "link-abs"];
    unchanged(&dir.base(), &dirs, |text| {
        let path = path(text);
        let specs = path.join(&super::path("specs"));
        assert!(matches!(root.list_dir(&path), Err(StoreError::Escapes { .. })), "list {text}");
        assert!(root.strict_subdir(&path).is_err(), "{text}");
        assert!(root.strict_subdir(&specs).is_err(), "{text}/specs");
        assert!(root.create_dir_all(&specs).is_err(), "{text}/specs");
        assert!(root.rename_dir(&path, &super::path("moved")).is_err(), "{text}");
        assert!(root.remove_file(&specs.join(&super::path("a.md"))).is_err(), "{text}");
    });
}

#[test]
fn look_alikes_of_slashes_and_dots_are_ordinary_names() {
    let (_dir, project) = trapped();
    for text in
        ["a\u{2215}b", "..\u{2044}x", "\u{ff0e}\u{ff0e}", "a\u{29f8}..", "~", "-rf", "$HOME"]
    {
        // `a⧸..` ends in a dot, so it is refused; all others are names like any other.
        let Ok(path) = RelPath::new(text) else {
            assert!(text.ends_with('.'), "{text}");
            continue;
        };
        project.dir().write_atomic(&path, b"x").unwrap();
        assert_eq!(project.dir().read(&path).unwrap(), b"x");
        assert!(project.root().join(text).is_file());
    }
}

/// What a tool does with a path that an agent gave it.
fn agent_writes(project: &Project, lock: &WriteLock, text: &str) -> Result<(), String> {
    let path = RelPath::new(text).map_err(|error| error.to_string())?;
    let file = agent_write_target(&id("mine"), &path).map_err(|error| error.to_string())?;
    let change = project.change(&id("mine")).map_err(|error| error.to_string())?;
    change.write(lock, &file, b"written by an agent").map_err(|error| error.to_string())
}

#[test]
fn an_agent_cannot_leave_its_change() {
    let (dir, project) = trapped();
    let attempts = [
        ".",
        "agentd",
        "agentd/config.toml",
        "agentd/project.md",
        "agentd/specs/a.md",
        "agentd/.gitignore",
        "agentd/.locks/mine.write",
        "agentd/archive/2026-11-04-mine/tasks.md",
        "agentd/changes/other/tasks.md",
        "agentd/changes/other/../mine/tasks.md",
        "agentd/changes/mine/../other/tasks.md",
        "agentd/changes/mine-2/tasks.md",
        "agentd/changes/alias/tasks.md",
        "agentd/changes/linked/tasks.md",
        "agentd/changes/MINE/tasks.md",
        "agentd/changes/tasks.md",
        "STATE.yaml",
        "./STATE.yaml",
        "state.yaml",
        "agentd/changes/mine/STATE.yaml",
        "config.toml",
        "CHALLENGE.md",
        "REVIEW.md",
        "GEMINI.md",
        "AGENTS.md",
        "base/a.md",
        "runs/0001-challenge.jsonl",
        ".gitignore",
        "src/main.rs",
        "specs",
        "specs/",
        "specs/a/b.md",
        "specs/A.md",
        "specs/.md",
        "specs/con.md",
        "specs/a.md.bak",
        "specs/../STATE.yaml",
        "proposal.md/x",
        // Documents by name, but each a symlink to something else.
        "proposal.md",
        "tasks.md",
        "clarifications.md",
        "specs/a.md",
        "agentd/changes/mine/specs/new.md",
    ];
    assert!(attempts.len() >= 40);
    let lock = project.write_lock(&id("mine"), &holder("test")).unwrap();
    unchanged(&dir.base(), &attempts, |text| {
        assert!(agent_writes(&project, &lock, text).is_err(), "{text}");
    });
    for refused in ["alias", "linked"] {
        let error = project.change(&id(refused)).unwrap_err();
        assert!(matches!(error, StoreError::Symlink { .. }), "{error}");
    }
    let change = project.change(&id("mine")).unwrap();
    let error = change.read(&ChangeFile::Tasks).unwrap_err();
    assert!(matches!(error, StoreError::Symlink { .. }), "{error}");
}

#[test]
fn locks_do_not_follow_symlinks() {
    let (dir, project) = trapped();
    symlink("../../outside", project.root().join("agentd/.locks")).unwrap();
    let before = contents(&dir.base());
    assert!(project.write_lock(&id("mine"), &holder("test")).is_err());
    assert_eq!(contents(&dir.base()), before);
}

/// Calls `act` for a while, during which two paths change places as fast as they can.
fn while_swapping(one: &Path, other: &Path, mut act: impl FnMut()) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(700) {
            act();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_directory_swapped_for_a_symlink_gains_nothing() {
    let (dir, project) = trapped();
    let outside = contents(&dir.base().join("outside"));
    let root = project.root().to_owned();
    fs::create_dir(root.join("race")).unwrap();
    fs::write(root.join("race/secret.txt"), "harmless").unwrap();
    let (mut accepted, mut refused) = (0, 0);
    while_swapping(&root.join("race"), &root.join("link-dir"), || {
        let results = [
            project.dir().write_atomic(&path("race/new.txt"), b"x").is_ok(),
            project.dir().append(&path("race/log.txt"), b"x").is_ok(),
            project.dir().create_dir_all(&path("race/a/b")).is_ok(),
            project.dir().read(&path("race/secret.txt")).is_ok_and(|text| {
                assert_eq!(text, b"harmless");
                true
            }),
        ];
        let ok = results.into_iter().filter(|ok| *ok).count();
        accepted += ok;
        refused += results.len() - ok;
    });
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
    assert_eq!(contents(&dir.base().join("outside")), outside);
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_swapped_for_a_symlink_gains_nothing() {
    let (dir, project) = trapped();
    let outside = contents(&dir.base().join("outside"));
    let change = project.change(&id("mine")).unwrap();
    let lock = project.write_lock(&id("mine"), &holder("test")).unwrap();
    let mine = project.root().join("agentd/changes/mine");
    fs::remove_file(mine.join("tasks.md")).unwrap();
    let refill = || {
        // A write that replaced the link is fine; put the trap back.
        let _ = fs::remove_file(mine.join("trap"));
        let _ = fs::remove_file(mine.join("tasks.md"));
        fs::write(mine.join("tasks.md"), "harmless").unwrap();
        symlink("../../../../outside/tasks.md", mine.join("trap")).unwrap();
    };
    let mut refused = 0;
    let until = Instant::now() + Duration::from_secs(20);
    let mut rounds = 0;
    // Where one core does it all, the two may not meet in the first rounds.
    while rounds < 60 || refused == 0 && Instant::now() < until {
        rounds += 1;
        refill();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let (one, other) = (mine.join("tasks.md"), mine.join("trap"));
                    let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
                }
            });
            for _ in 0..20 {
                match change.read(&ChangeFile::Tasks) {
                    Ok(text) => assert_ne!(text, SECRET),
                    Err(_) => refused += 1,
                }
                refused += usize::from(change.write(&lock, &ChangeFile::Tasks, b"new").is_err());
                refused += usize::from(change.dir().append(&path("tasks.md"), b"+").is_err());
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
    assert!(refused > 0);
    assert_eq!(contents(&dir.base().join("outside")), outside);
}
