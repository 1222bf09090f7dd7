//! What confinement costs: reading 5000 small files plainly, through the
//! store, and with `grep -rc` for comparison.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints and may panic")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::rel_path::RelPath;
use agentd_engine::store::{Holder, Project, map_parallel};
use jiff::Timestamp;

const CHANGES: usize = 1000;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let paths = generate(dir.path());
    let project = agentd_engine::opening::open_within_call(
        dir.path(),
        agentd_engine::store::UserDirs::from_env(),
    )
    .unwrap();
    let plain = |path: &RelPath| fs::read(dir.path().join(path.as_str())).unwrap().len();
    let confined = |path: &RelPath| project.dir().read(path).unwrap().len();

    let grep = best("grep -rc Requirement", || {
        let mut grep = Command::new("grep");
        grep.args(["-rc", "Requirement", "agentd"]).current_dir(dir.path()).stdout(Stdio::null());
        usize::from(grep.status().unwrap().success())
    });
    let report = |name: &str, work: &dyn Fn() -> usize| {
        let time = best(name, work);
        println!("    = {:.2} x grep", time.as_secs_f64() / grep.as_secs_f64());
    };
    report("std::fs::read, one thread", &|| paths.iter().map(plain).sum());
    report("std::fs::read, parallel", &|| map_parallel(&paths, plain).into_iter().sum());
    report("ProjectDir::read, one thread", &|| paths.iter().map(confined).sum());
    report("ProjectDir::read, parallel", &|| map_parallel(&paths, confined).into_iter().sum());
    report("change_ids", &|| project.change_ids().unwrap().ids.len());
    report("list and read everything, one thread", &|| {
        let changes = project.change_ids().unwrap().ids;
        let specs = project.spec_ids().unwrap().ids;
        changes.iter().map(|id| read_change(&project, id)).sum::<usize>()
            + specs.iter().map(|id| read_spec(&project, id)).sum::<usize>()
    });
    report("list and read everything, parallel", &|| {
        let changes = project.change_ids().unwrap().ids;
        let specs = project.spec_ids().unwrap().ids;
        map_parallel(&changes, |id| read_change(&project, id)).into_iter().sum::<usize>()
            + map_parallel(&specs, |id| read_spec(&project, id)).into_iter().sum::<usize>()
    });
    record(&project);
}

/// What one record costs: lock, read, write, unlock.
fn record(project: &Project) {
    let id = ChangeId::new("change-0").unwrap();
    let holder = Holder::this_process("bench", Timestamp::now());
    let change = project.change(&id).unwrap();
    best("100 locks, taken and left", || {
        (0..100).map(|_| drop(project.write_lock(&id, &holder).unwrap())).count()
    });
    best("100 records: lock, read, write, unlock", || {
        let record = |_| {
            let lock = project.write_lock(&id, &holder).unwrap();
            let text = change.read(&ChangeFile::State).unwrap();
            change.write(&lock, &ChangeFile::State, text.as_bytes()).unwrap();
        };
        (0..100).map(record).count()
    });
}

fn read_change(project: &Project, id: &ChangeId) -> usize {
    let change = project.change(id).unwrap();
    let mut files = vec![ChangeFile::State, ChangeFile::Proposal, ChangeFile::Tasks];
    files.extend(change.spec_ids().unwrap().ids.into_iter().map(ChangeFile::Spec));
    files.iter().map(|file| change.read(file).unwrap().len()).sum()
}

fn read_spec(project: &Project, id: &SpecId) -> usize {
    project.dir().read_to_string(&layout::main_spec(id)).unwrap().len()
}

fn generate(root: &Path) -> Vec<RelPath> {
    let text = "### Requirement R1: A requirement of middling length that SHALL hold\n".repeat(25);
    let mut paths = Vec::new();
    for i in 0..CHANGES {
        let change = ChangeId::new(&format!("change-{i}")).unwrap();
        let spec = SpecId::new(&format!("spec-{i}")).unwrap();
        for file in [
            ChangeFile::State,
            ChangeFile::Proposal,
            ChangeFile::Tasks,
            ChangeFile::Spec(spec.clone()),
        ] {
            paths.push(file.path_in_project(&change));
        }
        paths.push(layout::main_spec(&spec));
    }
    for path in &paths {
        let path = root.join(path.as_str());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &text).unwrap();
    }
    paths
}

/// The best of several runs: the machine is noisy, and noise only ever adds.
fn best(name: &str, work: impl Fn() -> usize) -> Duration {
    let run = |_| {
        let start = Instant::now();
        assert!(work() > 0);
        start.elapsed()
    };
    let time = (0..15).map(run).min().unwrap_or_default();
    println!("{name:40} {:8.2} ms", time.as_secs_f64() * 1e3);
    time
}
