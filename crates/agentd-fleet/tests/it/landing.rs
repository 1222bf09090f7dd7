//! What changes come to when they are done: on main, by real workers, with nothing lost.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_project::git;

use crate::machines::{Machine, RUNS, World};
use crate::server::Server;

const LANDING: &str = "commit = \"layer\"\nland = \"base\"\n";

fn until(world: &World, machines: &[&Machine], what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        let logs = || machines.iter().map(|machine| world.log(&machine.name)).collect::<Vec<_>>();
        assert!(
            start.elapsed() < Duration::from_mins(4),
            "{what}: {:#}\n{}",
            world.fleet(&["status"]),
            logs().join("\n---\n")
        );
        sleep(Duration::from_millis(200));
    }
}

/// A clone for a person.
fn clone(world: &World, name: &str) -> PathBuf {
    let dir = world.base().join(name);
    git(&world.base(), &["clone", "-q", world.remote().to_str().unwrap(), dir.to_str().unwrap()]);
    for (key, value) in [("user.name", "Eve"), ("user.email", "eve@example.org")] {
        git(&dir, &["config", key, value]);
    }
    dir
}

fn change(world: &World) -> Value {
    world.fleet(&["status"])["changes"][0].take()
}

/// Two changes at once, and a person who pushes to main meanwhile: all of it is there.
fn two_changes_land(url: Option<String>) {
    let world = World::with(url, "replay", LANDING);
    for change in ["greet-0", "greet-1"] {
        world.submit(change);
    }
    let (a, b) = (world.machine("a", 1), world.machine("b", 1));
    until(&world, &[&a, &b], "nobody has begun", || !world.payments().is_empty());
    let person = clone(&world, "person");
    test_project::write(&person.join("notes.txt"), "By hand\n");
    git(&person, &["add", "-A"]);
    git(&person, &["commit", "-q", "-m", "By hand"]);
    git(&person, &["push", "-q"]);
    let done = || ["greet-0", "greet-1"].iter().all(|change| world.is_done(change));
    until(&world, &[&a, &b], "not done", done);
    let main = clone(&world, "main");
    let log = fs::read_to_string(main.join("agentd/specs/CHANGELOG.md")).unwrap();
    assert_eq!(log.lines().filter(|line| line.starts_with("## ")).count(), 2, "{log}");
    assert!(main.join("notes.txt").is_file() && main.join("agentd/specs/greeting.md").is_file());
    let archived = fs::read_dir(main.join("agentd/archive")).unwrap().count();
    assert_eq!(archived, 2);
    let subjects = git(&main, &["log", "--first-parent", "--format=%s"]);
    let merges = subjects.lines().filter(|line| line.starts_with("Merge branch 'agentd/greet-"));
    assert_eq!(merges.count(), 2, "{subjects}");
    world.agentd(&main, &["validate", "--all"]);
    assert_eq!(world.payments().len(), 2 * RUNS.len());
}

#[test]
fn heavy_git_two_changes_land_on_main() {
    two_changes_land(None);
}

#[test]
fn heavy_postgres_two_changes_land_on_main() {
    let Some(server) = Server::start() else { return };
    two_changes_land(Some(server.url()));
}

/// Somebody has edited the same lines on main: a person merges, and nothing is paid again.
#[test]
fn heavy_a_conflict_with_main_waits_for_a_person() {
    let Some(server) = Server::start() else { return };
    let world = World::with(Some(server.url()), "replay", LANDING);
    world.submit("greet-0");
    let machine = world.machine("a", 1);
    until(&world, &[&machine], "nobody has begun", || !world.payments().is_empty());
    let person = clone(&world, "person");
    let greet = fs::read_to_string(person.join("bin/greet")).unwrap();
    let edited: String = greet.lines().map(|line| format!("{line} # by hand\n")).collect();
    test_project::write(&person.join("bin/greet"), edited);
    git(&person, &["commit", "-q", "-a", "-m", "By hand"]);
    git(&person, &["push", "-q"]);
    let main = git(&world.remote(), &["rev-parse", "main"]);
    until(&world, &[&machine], "nobody waits", || change(&world)["state"] == "waiting");
    let why = change(&world)["why"].as_str().unwrap().to_owned();
    assert!(why.contains("conflicts with `main` in bin/greet"), "{why}");
    assert_eq!(git(&world.remote(), &["rev-parse", "main"]), main, "main is as it was");
    world.agentd(&person, &["take", "greet-0", "--as", "eve"]);
    git(&person, &["fetch", "-q", "origin"]);
    git(&person, &["merge", "-q", "-X", "ours", "--no-edit", "origin/main"]);
    world.agentd(&person, &["give", "greet-0", "--as", "eve"]);
    until(&world, &[&machine], "not done", || world.is_done("greet-0"));
    let main = clone(&world, "main");
    assert!(main.join("agentd/specs/CHANGELOG.md").is_file());
    assert!(git(&main, &["log", "--format=%s"]).contains("By hand"));
    until(&world, &[&machine], "the fleet does not know", || change(&world)["state"] == "done");
    assert_eq!(world.payments().len(), RUNS.len(), "{:#?}", world.payments());
}
