//! What code differs in is kept between requests, and shown only as long as it is true.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use test_project::TestProject;

use super::Viewer;
use super::browser::in_browser;

const CODE: &str = "/changes/with-code/code";
const FILE: &str = "src/auth/accounts.rs";

/// A project whose `git` counts its calls.
fn counting() -> TestProject {
    let project = in_browser();
    // It is a link to the one of this machine.
    fs::remove_file(project.bin().join("git")).unwrap();
    let calls = project.root().with_file_name("git-calls");
    let script = format!(
        "PATH=/usr/bin:/bin:/usr/local/bin\necho \"$@\" >> '{}'\nexec git \"$@\"",
        calls.display()
    );
    project.program("git", &script)
}

fn calls(project: &TestProject) -> usize {
    let calls = fs::read_to_string(project.root().with_file_name("git-calls"));
    calls.unwrap_or_default().lines().count()
}

/// Waits until nothing in the project is as new as what could be edited again at the same time.
fn settle(root: &Path) {
    fn newest(dir: &Path) -> SystemTime {
        use std::os::unix::fs::MetadataExt as _;
        let changed = |path: &Path| {
            let it = path.symlink_metadata().unwrap();
            let since =
                Duration::new(it.ctime().unsigned_abs(), u32::try_from(it.ctime_nsec()).unwrap());
            SystemTime::UNIX_EPOCH + since
        };
        let below = fs::read_dir(dir).unwrap().flatten().map(|entry| {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() { newest(&path) } else { changed(&path) }
        });
        below.chain([changed(dir)]).max().unwrap()
    }
    let until = newest(root) + Duration::from_millis(2_100);
    while SystemTime::now() < until {
        std::thread::yield_now();
    }
}

#[test]
fn heavy_second_look_at_code_starts_no_git() {
    let project = counting();
    let viewer = Viewer::start(&project);
    // Before that, the same could be edited twice at one time.
    assert!(viewer.get(CODE).body.contains("by subject"));
    settle(&project.root());
    let first = viewer.get(CODE).body;
    let before = calls(&project);
    assert!(before > 20, "{before} calls");
    assert_eq!(viewer.get(CODE).body, first);
    assert_eq!(calls(&project), before, "git was asked again");

    // The same size, the same times that a program can set: what is shown is what is there.
    let file = project.root().join(FILE);
    let text = project.read_root(FILE);
    let modified = fs::metadata(&file).unwrap().modified().unwrap();
    fs::write(&file, text.replace("by subject", "by address")).unwrap();
    fs::File::options().append(true).open(&file).unwrap().set_modified(modified).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), modified);
    assert!(viewer.get(CODE).body.contains("by address"));
    // Twice within one tick of the clock: nothing was kept in between.
    fs::write(&file, text.replace("by subject", "by initial")).unwrap();
    fs::File::options().append(true).open(&file).unwrap().set_modified(modified).unwrap();
    assert!(viewer.get(CODE).body.contains("by initial"));
}

/// What is edited, how, and what is shown then.
type Edit<'e> = (&'e str, &'e dyn Fn(), &'e str);

/// Whatever has a say in what differs is looked at again.
#[test]
fn heavy_kept_code_follows_the_repository() {
    let project = in_browser();
    project.write_root(".gitignore", "*.tmp\n");
    let viewer = Viewer::start(&project);
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let person = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let done = command.current_dir(project.root()).args(person).args(arguments).output();
        assert!(done.unwrap().status.success());
    };
    let root = project.root();
    let edits: [Edit<'_>; 6] = [
        (
            "a new file",
            &|| project.write_root("src/new/deep.rs", "fn deep() {}\n"),
            "src/new/deep.rs",
        ),
        ("a link", &|| std::os::unix::fs::symlink("x", root.join("src/link")).unwrap(), "src/link"),
        (
            "a mode",
            &|| {
                use std::os::unix::fs::PermissionsExt as _;
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(root.join("agentd/config.toml"), mode).unwrap();
            },
            "id=\"file-agentd-config-toml\"",
        ),
        ("a file is gone", &|| fs::remove_file(root.join(".gitignore")).unwrap(), ""),
        ("rules", &|| project.write_root("src/.gitignore", "exchange.rs\n"), "src/.gitignore"),
        (
            "a commit",
            &|| {
                git(&["add", FILE]);
                git(&["commit", "-q", "-m", "with-code: 2.2 accounts"]);
            },
            "2.2 accounts",
        ),
    ];
    for (what, edit, shown) in edits {
        settle(&root);
        let before = viewer.get(CODE).body;
        assert_eq!(viewer.get(CODE).body, before);
        edit();
        let after = viewer.get(CODE).body;
        assert_ne!(after, before, "{what}");
        assert!(after.contains(shown), "{what}");
        assert!(shown.is_empty() || !before.contains(shown), "{what}");
    }
}
