//! agentd is killed at random moments of a plan, and started again: the same documents in the
//! end, nothing paid twice but what was cut short, and a state that is always readable
//! (issue 5, bar 2).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agentd_core::ids::ChangeId;
use agentd_core::run_format::Record;
use agentd_core::state::{self, State};
use agentd_engine::agents::run_record::read_run;

use crate::cli::stand_in::{self, CHANGE};
use test_project::TestProject;

/// Kills before a plan is left to end.
const KILLS_PER_PLAN: u32 = 3;

/// Who plans.
#[derive(Debug, Clone, Copy)]
enum Planner {
    /// Reviews, a challenge that finds something, a reproposal, and another challenge.
    StandIn,
    /// The agent inside agentd, which approves of its own plan.
    Builtin,
}

impl Planner {
    fn project(self) -> TestProject {
        match self {
            Self::StandIn => stand_in::project("", &[("high", "No lock")]),
            Self::Builtin => TestProject::new().root_file(
                "agentd/config.toml",
                "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n",
            ),
        }
    }
}

fn command(project: &TestProject) -> Command {
    let description = "Add login with email and password; lock after 5 attempts";
    let mut command = project.command([
        "plan",
        CHANGE,
        description,
        "--auto",
        "--skip-clarify",
        "--git",
        "in-place",
    ]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A small generator: the moments must be the same when a failure is reproduced.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// The documents with everything that a clock has written taken out, digests of it included.
fn documents(project: &TestProject) -> BTreeMap<String, String> {
    let is_time = |word: &str| {
        let (date, time) = word.split_at_checked(10).unwrap_or_default();
        date.bytes().filter(|b| *b == b'-').count() == 2 && time.starts_with('T')
    };
    let is_digest = |word: &str| {
        let hex = word.trim_start_matches("sha256:");
        hex.len() >= 12 && hex.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let plain = |text: &str| {
        let border = |c: char| !c.is_ascii_alphanumeric() && !"-:.".contains(c);
        let words = text.split_inclusive(border).map(|word| {
            let core = word.trim_end_matches(border);
            if is_time(core) || is_digest(core) {
                word.replace(core, "…")
            } else {
                word.to_owned()
            }
        });
        words.collect::<String>()
    };
    let names = project.names();
    let prefix = format!("agentd/changes/{CHANGE}/");
    let of_plan = names.iter().filter_map(|name| name.strip_prefix(&prefix));
    let of_plan = of_plan.filter(|name| Path::new(name).extension().is_some_and(|end| end == "md"));
    of_plan
        .map(|name| (name.to_owned(), plain(&project.read_root(&format!("{prefix}{name}")))))
        .collect()
}

fn state(project: &TestProject) -> Option<State> {
    let path = project.root().join(format!("agentd/changes/{CHANGE}/STATE.yaml"));
    let text = fs::read_to_string(path).ok()?;
    Some(state::parse(&text, &ChangeId::new(CHANGE).unwrap()).expect("STATE.yaml is readable"))
}

/// The runs of each step: all of them, and those that ended well.
fn runs(project: &TestProject) -> BTreeMap<String, (usize, usize)> {
    let dir = project.root().join(format!("agentd/changes/{CHANGE}/runs"));
    let mut steps: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for file in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let step = name.trim_end_matches(".jsonl").split_once('-').unwrap().1.to_owned();
        let records: Vec<Record> = read_run(&file.path()).unwrap().filter_map(Result::ok).collect();
        let ended = matches!(records.last(), Some(Record::End { end, .. }) if end.outcome.reported_success());
        let count = steps.entry(step).or_default();
        count.0 += 1;
        count.1 += usize::from(ended);
    }
    steps
}

/// A plan that is not interrupted, and how long it takes.
struct Clean {
    documents: BTreeMap<String, String>,
    runs: BTreeMap<String, (usize, usize)>,
    iteration: u32,
    took: Duration,
}

impl Clean {
    fn of(planner: Planner) -> Self {
        let project = planner.project();
        let started = Instant::now();
        assert!(command(&project).status().unwrap().success(), "{planner:?}");
        let took = started.elapsed();
        let iteration = state(&project).unwrap().iteration;
        Self { documents: documents(&project), runs: runs(&project), iteration, took }
    }
}

/// Kills a plan up to so many times, then lets it end, and checks the result.
fn kill_and_go_on(planner: Planner, clean: &Clean, seed: u64, most: u32) -> u32 {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let project = planner.project();
    let mut kills = 0;
    while kills < most {
        let mut child = command(&project).spawn().unwrap();
        let limit = u64::try_from(clean.took.as_micros()).unwrap();
        std::thread::sleep(Duration::from_micros(random.below(limit)));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        state(&project);
    }
    let what = format!("{planner:?}, seed {seed}, {kills} kills");
    let last = project.finish(command(&project).stdout(Stdio::piped()).stderr(Stdio::piped()));
    assert_eq!(last.code, 0, "{what}: {last:#?}");
    let state = state(&project).unwrap();
    assert_eq!(state.phase.name(), "challenged", "{what}");
    assert_eq!(state.iteration, clean.iteration, "{what}: {:?}", state.llm_calls);
    assert_eq!(documents(&project), clean.documents, "{what}");
    let runs = runs(&project);
    for (step, (all, ended)) in &runs {
        let (_, expected) = clean.runs.get(step).unwrap_or_else(|| panic!("{what}: {step}"));
        assert!(ended <= expected, "{what}: {step} was paid {ended} times, {all} times begun");
    }
    let begun =
        |runs: &BTreeMap<String, (usize, usize)>| runs.values().map(|run| run.0).sum::<usize>();
    assert!(begun(&runs) <= begun(&clean.runs) + kills as usize, "{what}: {runs:?}");
    // Every run is in the ledger, once.
    let mut numbers: Vec<u32> = state.llm_calls.iter().filter_map(|call| call.run).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), begun(&runs), "{what}: {:?}", state.llm_calls);
    assert_eq!(state.llm_calls.len(), numbers.len(), "{what}");
    kills
}

#[test]
fn heavy_killed_plan_pays_nothing_twice() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let wanted: u32 = variable("AGENTD_KILLS").unwrap_or(24);
    let first: u64 = variable("AGENTD_KILLS_SEED").map_or(1, u64::from);
    let clean = [Planner::StandIn, Planner::Builtin].map(|planner| (planner, Clean::of(planner)));
    let done = std::sync::atomic::AtomicU32::new(0);
    let seeds = std::sync::atomic::AtomicU64::new(first);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while done.load(order) < wanted {
                    let seed = seeds.fetch_add(1, order);
                    // Two of three plans have all the steps.
                    let (planner, clean) = &clean[usize::from(seed.is_multiple_of(3))];
                    done.fetch_add(kill_and_go_on(*planner, clean, seed, KILLS_PER_PLAN), order);
                }
            });
        }
    });
    eprintln!("{} kills", done.load(order));
}
