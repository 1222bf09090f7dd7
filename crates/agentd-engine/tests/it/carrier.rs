//! Claims on changes that many want at the same moment.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use agentd_core::carried::WorkerName;
use agentd_core::ids::ChangeId;
use agentd_engine::carrier::{CarriedRuns, Carrier, CarrierError, CarryOptions, OnlyHere};
use agentd_engine::git::GitTool;
use agentd_engine::opening::open_root;
use agentd_engine::store::{Holder, UserDirs};
use test_project::temp_dir;

fn git(args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=a@example.org"]).args(args);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Of all who want a change, exactly one gets it, each time (issue 20: 8 claimers, 500 claims).
// contract S3
#[test]
fn heavy_each_claim_is_won_exactly_once() {
    const CLAIMERS: usize = 8;
    let claims: usize =
        std::env::var("AGENTD_CLAIMS").ok().and_then(|text| text.parse().ok()).unwrap_or(24);
    let temp = temp_dir();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    let (seed, remote) = (path("seed"), path("remote.git"));
    git(&["init", "-q", "-b", "main", &seed]);
    std::fs::create_dir_all(format!("{seed}/agentd/changes")).unwrap();
    std::fs::write(format!("{seed}/agentd/config.toml"), "").unwrap();
    git(&["-C", &seed, "add", "-A"]);
    git(&["-C", &seed, "commit", "-q", "-m", "Start"]);
    git(&["clone", "-q", "--bare", &seed, &remote]);
    let won: Mutex<BTreeMap<String, Vec<usize>>> = Mutex::default();
    let barrier = Barrier::new(CLAIMERS);
    let started = Instant::now();
    thread::scope(|scope| {
        for claimer in 0..CLAIMERS {
            let (won, barrier, path, remote) = (&won, &barrier, &path, &remote);
            scope.spawn(move || {
                let clone = path(&format!("clone-{claimer}"));
                git(&["clone", "-q", remote, &clone]);
                let holder = Holder::this_process("test", jiff::Timestamp::UNIX_EPOCH);
                let user = UserDirs::below(std::path::Path::new(&path(&format!("home-{claimer}"))));
                let project = open_root(clone.as_ref(), user, &|| holder.clone()).unwrap().project;
                for number in 0..claims {
                    let id = format!("change-{number}");
                    let change = ChangeId::new(&id).unwrap();
                    let options = CarryOptions {
                        remote: "origin".to_owned(),
                        worker: WorkerName::like(&format!("box-{claimer}")),
                        patience: Duration::ZERO,
                        force: false,
                        beat: Duration::ZERO,
                        signers: None,
                        only_here: OnlyHere::Keep,
                        runs: CarriedRuns::Slim,
                    };
                    let tool = GitTool::default();
                    let carrier = Carrier::open(&project, &change, options, &tool, &holder);
                    let carrier = carrier.unwrap();
                    barrier.wait();
                    // What others have claimed meanwhile is theirs.
                    match carrier.begin().and_then(|_| carrier.take()) {
                        Ok(()) => won.lock().unwrap().entry(id).or_default().push(claimer),
                        Err(CarrierError::Lost { .. } | CarrierError::Claimed { .. }) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
    });
    let won = won.into_inner().unwrap();
    eprintln!("{claims} claims by {CLAIMERS} in {:?}", started.elapsed());
    assert_eq!(won.len(), claims);
    let twice: Vec<_> = won.iter().filter(|(_, winners)| winners.len() != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}
