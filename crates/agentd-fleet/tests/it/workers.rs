//! Whole workers, as processes, and what they must keep to.

use std::fs;
use std::net::TcpListener;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use agentd_fleet::engine::{Engine as _, postgres};
use agentd_fleet::repository::Repository;
use serde_json::Value;
use test_project::git;

use crate::conformance::{bars, change, submission};
use crate::machines::{Machine, RUNS, World};
use crate::server::Server;

/// Workers with more slots than an account may have calls.
#[test]
fn heavy_a_limit_holds_over_worker_processes() {
    let Some(server) = Server::start() else { return };
    let mut world = World::new(Some(server.url()));
    // 19 changes are 209 calls.
    let (changes, limit, slots) = if bars() { (19, 3, 5) } else { (3, 2, 2) };
    world.call_ms = 500;
    // Limits are of accounts that somebody has.
    let mut workers: Vec<Machine> =
        (0..2).map(|number| world.machine(&format!("m{number}"), slots)).collect();
    let limited = ["limit", "replay:team1", "--concurrency", &limit.to_string()];
    assert_eq!(world.fleet(&limited)["action"], "limited");
    let changes: Vec<String> = (0..changes).map(|number| format!("greet-{number}")).collect();
    for change in &changes {
        world.submit(change);
    }
    let start = Instant::now();
    while !changes.iter().all(|change| world.is_done(change)) {
        assert!(start.elapsed() < Duration::from_mins(20), "{:#}", world.fleet(&["status"]));
        assert!(workers.iter_mut().all(Machine::is_alive), "{}", world.log("m0"));
        sleep(Duration::from_millis(200));
    }
    let (calls, most) = world.most_at_once();
    println!(
        "limit {limit}: {calls} calls by 2 worker processes with {slots} slots each, at most {most} at once, in {:.0?}",
        start.elapsed()
    );
    assert_eq!(calls, changes.len() * RUNS.len());
    assert_eq!(most, limit, "the limit is used, and never exceeded");
}

/// A change waits for a person, and the remote that would say whether they have decided does not answer.
#[test]
fn heavy_a_remote_that_does_not_answer_stops_no_sign_of_life() {
    let Some(server) = Server::start() else { return };
    let world = World::new(Some(server.url()));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/remote", silent.local_addr().unwrap());
    let project = world.base().join("project");
    git(&project, &["remote", "set-url", "origin", &url]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let repository = Repository::at(&project, "origin").await.unwrap();
        let timing = postgres::Timing { dead_after: Duration::from_secs(3) };
        let url = server.url();
        let engine = postgres::PostgresEngine::connect(&url, repository, timing);
        let engine = engine.await.unwrap();
        engine.submit(&change(1), &submission()).await.unwrap();
        crate::conformance::ask(
            &server,
            "UPDATE agentd_fleet.change SET state = 'waiting', tip = 'x'",
        )
        .await;
        let home = world.base().join("home");
        fs::create_dir_all(&home).unwrap();
        let mut worker = world.command(&home, &crate::machines::program());
        worker.current_dir(&project).args(["worker", "--accounts", "replay:team1"]);
        worker.args(["--patience", "3"]).stdout(Stdio::null());
        let log = fs::File::create(world.base().join("slow.log")).unwrap();
        let _machine = Machine::of("slow", home, worker.stderr(log).spawn().unwrap());
        let (start, mut longest) = (Instant::now(), 0.0_f64);
        while start.elapsed() < Duration::from_secs(12) {
            tokio::time::sleep(Duration::from_millis(100)).await;
            for worker in engine.list().await.unwrap().workers {
                longest = longest.max(worker.silent_secs);
            }
        }
        println!("remote does not answer: at most {longest:.1} s without a sign of life");
        assert!(longest > 0.0 && longest < 2.5, "{longest}: {}", world.log("slow"));
    });
}

/// What carrying a change adds to a step: looking at the remote, the claim before a call, and the snapshot
/// after it.
#[test]
fn heavy_a_checkpoint_is_cheap() {
    let mut world = World::new(None);
    world.call_ms = 0;
    let dir = world.base().join("machines");
    let step = |change: &str, carried: bool| -> Duration {
        let mut command = world.command(&world.base().join("home"), &test_project::agentd());
        command.current_dir(dir.join(change)).args(["step", change, "Let greet take a name"]);
        command.args(["--json", "--progress", "none", "--skip-clarify", "--auto", "--trust"]);
        if carried {
            command.args(["--carry", "origin", "--as", "me", "--discard", "--patience", "14"]);
        } else {
            command.args(["--git", "branch"]);
        }
        let start = Instant::now();
        let output = command.output().unwrap();
        let took = start.elapsed();
        assert!(output.status.success(), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["did"].is_string(), "{report}");
        took
    };
    fs::create_dir_all(world.base().join("home")).unwrap();
    let mut extra = Vec::new();
    for round in 0..if bars() { 3 } else { 1 } {
        let names = [format!("plain-{round}"), format!("carried-{round}")];
        for name in &names {
            let (remote, clone) = (world.remote(), dir.join(name));
            git(&world.base(), &["clone", "-q", remote.to_str().unwrap(), clone.to_str().unwrap()]);
        }
        // The first eleven steps are calls or tests; each with and without.
        for _ in 0..RUNS.len() {
            let plain = step(&names[0], false);
            extra.push(step(&names[1], true).saturating_sub(plain));
        }
    }
    extra.sort();
    let (median, most) = (extra[extra.len() / 2], extra[extra.len() * 9 / 10]);
    println!(
        "carrying adds to a step (two checkpoints and two looks): median {median:.0?}, 9 of 10 within {most:.0?}"
    );
    // The bar is for each checkpoint, on an idle machine.
    let limit = if bars() { Duration::from_millis(600) } else { Duration::from_secs(5) };
    assert!(median < limit, "{extra:?}");
}

/// What came of a call is only on its machine while the remote is away: that worker tries again, and looks
/// first what comes next.
#[test]
fn heavy_a_step_is_tried_again_when_the_remote_is_back() {
    let world = World::new(None);
    let bin = world.base().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::copy(crate::machines::program(), bin.join("agentd-fleet")).unwrap();
    let (log, away) = (world.base().join("steps.log"), world.base().join("away"));
    fs::write(&away, "").unwrap();
    let script = format!(
        "case \"$*\" in\n\
         *--next*) echo look >> {log}\n\
         [ -e {away} ] || {{ echo '{{\"done\":true}}'; exit; }}\n\
         echo '{{\"next\":{{\"step\":\"fix\",\"agent\":\"replay\"}}}}';;\n\
         *) echo step >> {log}\n\
         [ -e {away} ] || {{ echo '{{\"done\":true}}'; exit; }}\n\
         rm {away}\n\
         echo '{{\"error\":{{\"kind\":\"remote_unreachable\",\"message\":\"away\"}}}}'; exit 1;;\n\
         esac",
        log = log.display(),
        away = away.display()
    );
    test_project::write_script(&bin.join("agentd"), &script);
    world.submit("greet-0");
    let home = world.base().join("home");
    let mut worker = world.command(&home, &bin.join("agentd-fleet"));
    worker.current_dir(world.base().join("project"));
    worker.args(["worker", "--accounts", "replay:team1", "--until-done"]);
    let output = worker.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let steps = fs::read_to_string(&log).unwrap();
    assert_eq!(steps.lines().collect::<Vec<_>>(), ["look", "step", "look", "step"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("greet-0: nothing to do; done"), "{said}");
}
