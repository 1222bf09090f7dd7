//! Where the result of a carried change goes: its branch, or the base branch where the team wants that.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use test_project::TestProject;

use super::teams::{Archive, PAIRS, archive_on, requirements_in, with_spec};

/// A repository with a remote one, two changes that are archived on their branches, and a clone for
/// the worker that has the second.
struct Team {
    project: TestProject,
    second: PathBuf,
}

const LOCK: Archive<'_> = ("login", "", &["R4: Lock"]);
const UNLOCK: Archive<'_> = ("login", "", &["R4: Unlock"]);

impl Team {
    fn new(land: &str, a: Archive<'_>, b: Archive<'_>) -> Self {
        let project = with_spec();
        let config = project.read_root("agentd/config.toml");
        project.write_root("agentd/config.toml", config + &format!("[git]\nland = \"{land}\"\n"));
        project.commit("Say where it lands");
        let (remote, second) = (project.base().join("remote.git"), project.base().join("second"));
        project.git(&["init", "-q", "--bare", "-b", "main", remote.to_str().unwrap()]);
        project.git(&["remote", "add", "origin", remote.to_str().unwrap()]);
        project.git(&["push", "-q", "-u", "origin", "main"]);
        let team = Self { project, second };
        archive_on(&team.project, "agentd/b", "b", b);
        let to = team.second.to_str().unwrap();
        team.project.git(&["clone", "-q", remote.to_str().unwrap(), to]);
        for (name, value) in [("user.name", "Bob"), ("user.email", "bob@example.org")] {
            team.in_second(&["config", name, value]);
        }
        let root = team.project.root();
        team.in_second(&["fetch", "-q", root.to_str().unwrap(), "agentd/b:agentd/b"]);
        team.in_second(&["switch", "-q", "agentd/b"]);
        team.project.git(&["switch", "-q", "main"]);
        archive_on(&team.project, "agentd/a", "a", a);
        team
    }

    fn in_second(&self, args: &[&str]) -> String {
        self.project.git(&[&["-C", self.second.to_str().unwrap()], args].concat())
    }

    fn start(&self, id: &str) -> Child {
        let mut command = self.project.command([] as [&str; 0]);
        if id == "b" {
            command.arg("-C").arg(&self.second);
        }
        let words = ["step", id, "--carry", "origin", "--as", id, "--trust", "--json"];
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn step(&self, id: &str) -> (Value, String) {
        ended(self.start(id))
    }

    /// A person pushes something to main.
    fn push(&self, file: &str, text: &str) {
        let dir = self.project.base().join("person");
        let to = dir.to_str().unwrap();
        let remote = self.project.base().join("remote.git");
        self.project.git(&["clone", "-q", remote.to_str().unwrap(), to]);
        test_project::write(&dir.join(file), text);
        let who = ["-c", "user.name=Eve", "-c", "user.email=eve@example.org"];
        for args in [&["add", "-A"][..], &["commit", "-q", "-m", "By hand"], &["push", "-q"]] {
            self.project.git(&[&["-C", to][..], &who, args].concat());
        }
        fs::remove_dir_all(dir).unwrap();
    }

    fn remote(&self, args: &[&str]) -> String {
        let remote = self.project.base().join("remote.git");
        self.project.git(&[&["-C", remote.to_str().unwrap()], args].concat())
    }

    /// A fresh clone of main.
    fn main(&self) -> PathBuf {
        let dir = self.project.base().join("main");
        let _ = fs::remove_dir_all(&dir);
        let remote = self.project.base().join("remote.git");
        self.project.git(&["clone", "-q", remote.to_str().unwrap(), dir.to_str().unwrap()]);
        dir
    }

    /// Both changes are on main, and everything in it is well.
    fn both_are_there(&self, expected: &str, what: &str) {
        let main = self.main();
        assert_eq!(requirements_in(&main), expected, "{what}");
        let log = fs::read_to_string(main.join("agentd/specs/CHANGELOG.md")).unwrap();
        assert_eq!(log.lines().filter(|line| line.starts_with("## ")).count(), 2, "{what}: {log}");
        for file in ["src/a.txt", "src/b.txt"] {
            assert!(main.join(file).is_file(), "{what}: {file}");
        }
        let mut validate = self.project.command(["-C", main.to_str().unwrap()]);
        self.project.finish(validate.args(["validate", "--all"])).exits(0);
        assert_eq!(self.remote(&["for-each-ref", "refs/agentd/wip"]), "", "{what}");
    }
}

fn ended(child: Child) -> (Value, String) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text} {stderr}"));
    (json, stderr)
}

// contract S5
#[test]
fn heavy_two_changes_land_on_main_in_any_order() {
    for (what, a, b, expected) in PAIRS {
        for at_once in [false, true] {
            let team = Team::new("base", a, b);
            let children = if at_once {
                vec![team.start("a"), team.start("b")].into_iter().map(ended).collect()
            } else {
                let first = team.step("b");
                // Somebody has worked on main in between.
                team.push("notes.txt", "By hand\n");
                vec![first, team.step("a")]
            };
            for (report, stderr) in &children {
                let now = json!([report["done"], report["landed"]]);
                assert_eq!(now, json!([true, "main"]), "{what}: {report:#} {stderr}");
            }
            team.both_are_there(expected, what);
            if !at_once {
                assert!(team.main().join("notes.txt").is_file());
            }
            // What people see in the history of main is one merge for each change.
            let log = team.remote(&["log", "--first-parent", "--format=%s", "main"]);
            let merges = log.lines().filter(|line| line.starts_with("Merge branch 'agentd/"));
            assert_eq!(merges.count(), 2, "{what}: {log}");
            // Anyone who asks again is answered that it is done, and nothing moves.
            let tip = team.remote(&["rev-parse", "main"]);
            assert_eq!(team.step("a").0["landed"], "main");
            assert_eq!(team.remote(&["rev-parse", "main"]), tip);
        }
    }
}

// contract S5
#[test]
fn a_conflict_in_code_waits_for_a_person_and_loses_nothing() {
    let team = Team::new("base", LOCK, UNLOCK);
    team.push("src/a.txt", "by hand\n");
    let main = team.remote(&["rev-parse", "main"]);
    let (report, stderr) = team.step("a");
    let now = json!([report["done"], report["waiting_for"], report["landed"]]);
    assert_eq!(now, json!([false, "decision", null]), "{report:#} {stderr}");
    let why = report["why"].as_str().unwrap();
    assert!(why.contains("conflicts with `main` in src/a.txt"), "{why}");
    assert_eq!(team.remote(&["rev-parse", "main"]), main);
    let carried = team.remote(&["log", "-1", "--format=%B", "refs/agentd/wip/a"]);
    assert!(carried.contains(r#""state":"waiting""#), "{carried}");
    // It is the only one that waits.
    assert_eq!(team.step("b").0["landed"], "main");
    // Asking again changes nothing.
    let tip = team.remote(&["rev-parse", "refs/agentd/wip/a"]);
    assert_eq!(team.step("a").0["waiting_for"], "decision");
    assert_eq!(team.remote(&["rev-parse", "refs/agentd/wip/a"]), tip);
    // A person takes it somewhere else, merges it, and gives it back.
    let second = |args: &[&str]| {
        let mut command = team.project.command(["-C", team.second.to_str().unwrap()]);
        team.project.finish(command.args(args))
    };
    second(&["take", "a", "--as", "bob"]).exits(0);
    assert_eq!(team.in_second(&["branch", "--show-current"]), "agentd/a");
    let file = team.second.join("src/a.txt");
    assert_eq!(fs::read_to_string(&file).unwrap(), "a");
    team.in_second(&["fetch", "-q", "origin"]);
    team.in_second(&["merge", "-q", "-s", "ours", "--no-edit", "origin/main"]);
    // `-s ours` took nothing of what the other change has brought.
    team.in_second(&["checkout", "-q", "origin/main", "--", "src/b.txt"]);
    fs::write(&file, "both\n").unwrap();
    team.in_second(&["commit", "-q", "-a", "-m", "Both"]);
    let given = second(&["give", "a", "--as", "bob", "--json"]).exits(0).json();
    assert_eq!(given["action"], "given");
    let (report, stderr) = team.step("a");
    assert_eq!(report["landed"], "main", "{report:#} {stderr}");
    let main = team.main();
    assert_eq!(fs::read_to_string(main.join("src/a.txt")).unwrap(), "both\n");
    assert_eq!(team.remote(&["for-each-ref", "refs/agentd/wip"]), "");
}

// contract S5
#[test]
fn a_protected_main_is_left_to_people() {
    let team = Team::new("base", LOCK, UNLOCK);
    let hook = team.project.base().join("remote.git/hooks/update");
    test_project::write_script(&hook, "[ \"$1\" != refs/heads/main ]");
    let main = team.remote(&["rev-parse", "main"]);
    let (report, stderr) = team.step("a");
    assert_eq!(json!([report["done"], report["landed"]]), json!([true, "agentd/a"]), "{stderr}");
    assert!(stderr.contains("merge `agentd/a` into it yourself"), "{stderr}");
    assert_eq!(team.remote(&["rev-parse", "main"]), main);
    assert!(team.remote(&["for-each-ref", "refs/heads/agentd/a"]).contains("agentd/a"));
}

/// What the branch of a change says about where it lands was written by an agent.
// contract S5
#[test]
fn only_the_base_branch_says_where_changes_land() {
    let team = Team::new("branch", LOCK, UNLOCK);
    team.project.git(&["switch", "-q", "agentd/a"]);
    let config = team.project.read_root("agentd/config.toml");
    team.project.write_root("agentd/config.toml", config.replace("\"branch\"", "\"base\""));
    team.project.commit("Land on main");
    let main = team.remote(&["rev-parse", "main"]);
    let (report, stderr) = team.step("a");
    assert_eq!(report["landed"], "agentd/a", "{report:#} {stderr}");
    assert_eq!(team.remote(&["rev-parse", "main"]), main);
}
