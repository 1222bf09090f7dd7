//! What every engine promises, tried with both.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use agentd_core::carried::WorkerName;
use agentd_core::ids::ChangeId;
use agentd_fleet::engine::git::GitEngine;
use agentd_fleet::engine::postgres::{PostgresEngine, Timing};
use agentd_fleet::engine::{
    Claim, Engine, Finished, NextStep, Outcome, Pace, Pulse, Signal, StepReport, Submission,
    Submitted, Worker, throttle::Throttle,
};
use agentd_fleet::repository::Repository;
use tempfile::TempDir;
use test_project::git;

use crate::server::Server;

/// Runs a statement on the server, beside the engine.
pub(crate) async fn ask(server: &Server, statement: &'static str) -> Vec<sqlx::postgres::PgRow> {
    use sqlx::Connection as _;
    let mut connection = sqlx::PgConnection::connect(&server.url()).await.unwrap();
    sqlx::query(statement).fetch_all(&mut connection).await.unwrap()
}

/// A remote repository, and how to get at an engine for it.
pub(crate) struct Place {
    pub(crate) temp: TempDir,
    pub(crate) server: Option<Server>,
    pub(crate) dead_after: Duration,
}

/// Whether the heavier numbers of the issue are tried.
pub(crate) fn bars() -> bool {
    std::env::var_os("AGENTD_BARS").is_some()
}

impl Place {
    fn new(server: Option<Server>) -> Self {
        let temp = test_project::temp_dir();
        let base = temp.path();
        git(base, &["init", "-q", "--bare", "-b", "main", "remote.git"]);
        git(base, &["clone", "-q", "remote.git", "project"]);
        Self { temp, server, dead_after: Duration::from_secs(3) }
    }

    pub(crate) fn git() -> Self {
        Self::new(None)
    }

    pub(crate) fn postgres() -> Option<Self> {
        Some(Self::new(Some(Server::start()?)))
    }

    pub(crate) fn on<E>(&self, number: usize, work: impl AsyncFnOnce(&AnyEngine) -> E) -> E {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { work(&self.engine(number).await).await })
    }

    /// What a process of the fleet has.
    pub(crate) async fn engine(&self, number: usize) -> AnyEngine {
        let root = self.temp.path().join("project");
        let repository = Repository::at(&root, "origin").await.unwrap();
        match &self.server {
            None => {
                let dir: PathBuf = self.temp.path().join(format!("queue-{number}.git"));
                AnyEngine::Git(Box::new(GitEngine::new(repository, dir, self.dead_after)))
            }
            Some(server) => {
                let timing = Timing { dead_after: self.dead_after };
                let engine = PostgresEngine::connect(&server.url(), repository, timing).await;
                AnyEngine::Postgres(Box::new(engine.unwrap()))
            }
        }
    }
}

/// One of the two.
pub(crate) enum AnyEngine {
    Git(Box<GitEngine>),
    Postgres(Box<PostgresEngine>),
}

macro_rules! any {
    ($engine:expr, $e:ident => $call:expr) => {
        match $engine {
            AnyEngine::Git($e) => $call.await.unwrap(),
            AnyEngine::Postgres($e) => $call.await.unwrap(),
        }
    };
}
pub(crate) use any;

pub(crate) fn worker(name: &str) -> Worker {
    let accounts = vec!["replay:team1".parse().unwrap()];
    Worker { name: WorkerName::like(name), slots: 8, accounts }
}

pub(crate) fn submission() -> Submission {
    Submission { description: "x".to_owned(), priority: 1, budget_usd: None, auto: true }
}

pub(crate) fn change(number: usize) -> ChangeId {
    ChangeId::new(&format!("change-{number}")).unwrap()
}

/// The report of a step after which this one comes.
pub(crate) fn next(step: &str, agent: Option<&str>, cost_usd: f64) -> Outcome {
    let agent = agent.map(str::to_owned);
    let next = NextStep { step: step.to_owned(), agent, estimate_usd: 0.5 };
    let report = StepReport { next: Some(next), cost_usd, ..StepReport::default() };
    Outcome::Stepped { report, cost_before: None }
}

pub(crate) fn done() -> Outcome {
    let report = StepReport { done: true, ..StepReport::default() };
    Outcome::Stepped { report, cost_before: None }
}

pub(crate) async fn claim(engine: &AnyEngine, worker: &Worker) -> Option<Claim> {
    any!(engine, e => e.claim(worker))
}

pub(crate) async fn finish(
    engine: &AnyEngine,
    worker: &Worker,
    claim: Claim,
    outcome: &Outcome,
) -> Finished {
    any!(engine, e => e.finish(worker, claim, outcome))
}

/// Claims, for as long as somebody else may still have to die.
async fn claim_within(engine: &AnyEngine, worker: &Worker, time: Duration) -> Option<Claim> {
    let start = Instant::now();
    loop {
        let pulse: Pulse = any!(engine, e => e.heartbeat(worker));
        assert!(!pulse.dead);
        any!(engine, e => e.sweep(worker, &[]));
        if let Some(claim) = claim(engine, worker).await {
            return Some(claim);
        }
        if start.elapsed() > time {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn one_change_is_done_by_one_worker_after_the_other(place: &Place) {
    place.on(0, async |engine| {
        let (a, b) = (worker("a"), worker("b"));
        let submit = |submission: Submission| async move {
            any!(engine, e => e.submit(&change(1), &submission))
        };
        assert_eq!(submit(submission()).await, Submitted::Submitted);
        assert_eq!(submit(submission()).await, Submitted::AlreadySubmitted);
        for worker in [&a, &b] {
            any!(engine, e => e.register(worker));
        }
        let first = claim(engine, &a).await.unwrap();
        assert!(first.look && first.attempt == 1, "{first:?}");
        assert!(claim(engine, &b).await.is_none(), "somebody has it");
        // Nobody goes on with what is paused.
        any!(engine, e => e.signal(&Signal::Pause(Some(change(1)))));
        finish(engine, &a, first, &next("proposal-gen", Some("replay"), 0.0)).await;
        assert!(claim(engine, &b).await.is_none());
        let listed = any!(engine, e => e.list());
        assert_eq!(listed.changes[0].state, "paused", "{listed:?}");
        any!(engine, e => e.signal(&Signal::Resume(Some(change(1)))));
        any!(engine, e => e.signal(&Signal::Pause(None)));
        assert!(claim(engine, &b).await.is_none());
        any!(engine, e => e.signal(&Signal::Resume(None)));
        let second = claim_within(engine, &b, Duration::from_secs(5)).await.unwrap();
        // What has failed waits for a person.
        finish(engine, &b, second, &Outcome::Failed("no".to_owned())).await;
        let listed = any!(engine, e => e.list());
        assert_eq!(
            (&*listed.changes[0].state, listed.changes[0].why.as_deref()),
            ("failed", Some("no"))
        );
        assert!(claim(engine, &a).await.is_none());
        any!(engine, e => e.signal(&Signal::Resume(Some(change(1)))));
        let third = claim_within(engine, &a, Duration::from_secs(5)).await.unwrap();
        finish(engine, &a, third, &done()).await;
        let listed = any!(engine, e => e.list());
        assert!(listed.changes.iter().all(|change| change.state == "done"), "{listed:?}");
        assert!(claim(engine, &a).await.is_none());
        // A worker is asked to end.
        any!(engine, e => e.signal(&Signal::Drain));
        let pulse = any!(engine, e => e.heartbeat(&a));
        assert_eq!(pulse, Pulse { dead: false, drain: true });
    });
}

fn a_dead_worker_loses_its_step_once(place: &Place) {
    place.on(0, async |engine| {
        let (a, b) = (worker("a"), worker("b"));
        any!(engine, e => e.submit(&change(1), &submission()));
        for worker in [&a, &b] {
            any!(engine, e => e.register(worker));
        }
        let held = claim(engine, &a).await.unwrap();
        let pace: Pace = match engine {
            AnyEngine::Git(engine) => engine.pace(),
            AnyEngine::Postgres(engine) => engine.pace(),
        };
        assert!(pace.idle < Duration::from_secs(5), "{pace:?}");
        // It is silent from now on.
        let start = Instant::now();
        let taken = claim_within(engine, &b, place.dead_after * 4).await.unwrap();
        assert!(start.elapsed() + Duration::from_millis(500) >= place.dead_after);
        assert!(taken.attempt == 2 && taken.orphaned, "{taken:?}");
        // It comes back, and nothing that it says counts.
        let late = finish(engine, &a, held, &done()).await;
        assert!(matches!(late, Finished::Lost), "{late:?}");
        assert!(claim(engine, &b).await.is_none());
        let ended = finish(engine, &b, taken, &done()).await;
        assert!(matches!(ended, Finished::Released), "{ended:?}");
    });
}

fn what_people_say_during_a_step_holds(place: &Place) {
    place.on(0, async |engine| {
        let a = worker("a");
        any!(engine, e => e.register(&a));
        any!(engine, e => e.submit(&change(1), &submission()));
        let held = claim(engine, &a).await.unwrap();
        any!(engine, e => e.signal(&Signal::Pause(Some(change(1)))));
        finish(engine, &a, held, &Outcome::Busy("the remote is away".to_owned())).await;
        let listed = any!(engine, e => e.list());
        assert_eq!(listed.changes[0].state, "paused", "{listed:?}");
        any!(engine, e => e.signal(&Signal::Drain));
    });
    // Who comes after that was not meant, whatever is said next.
    place.on(1, async |engine| {
        let b = worker("b");
        any!(engine, e => e.register(&b));
        any!(engine, e => e.signal(&Signal::Pause(None)));
        let pulse: Pulse = any!(engine, e => e.heartbeat(&b));
        assert_eq!(pulse, Pulse::default());
    });
}

/// Anyone who can push can write what they like about a change; other refs are left alone.
#[test]
fn git_what_others_have_pushed_is_cut_and_stops_nobody() {
    let place = Place::git();
    let remote = place.temp.path().join("remote.git");
    let tree = git(&remote, &["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let put = |name: &str, message: &str| {
        let who = ["-c", "user.name=Eve", "-c", "user.email=eve@example.org"];
        let make = [&who[..], &["commit-tree", tree.trim(), "-m", message]].concat();
        let commit = git(&remote, &make);
        git(&remote, &["update-ref", &format!("refs/agentd/{name}"), commit.trim()]);
    };
    put("queue/evil", "x\n\nAgentd-Queued: {\"version\":1,\"description\":\"x\"}");
    put(
        "wip/evil",
        "x\n\nAgentd-Carried: {\"version\":1,\"state\":\"waiting\",\"worker\":\"eve\",\
         \"at\":\"2026-11-18T10:00:00Z\",\"cost_usd\":-5}",
    );
    for name in ["queue/ä;x$IFS", "queue/junk", "fleet/control"] {
        put(name, "Agentd-Queued: []");
    }
    place.on(0, async |engine| {
        any!(engine, e => e.submit(&change(1), &submission()));
        let listed = any!(engine, e => e.list());
        let listed: Vec<_> =
            listed.changes.iter().map(|one| (&*one.change, one.cost_usd)).collect();
        assert_eq!(listed, [("evil", 0.0), ("change-1", 0.0)]);
        assert_eq!(claim(engine, &worker("a")).await.unwrap().change, change(1));
    });
}

/// A call that the vendor has refused.
pub(crate) fn refused(exhausted: bool, retry_after: Option<Duration>) -> Outcome {
    let (agent, why) = ("replay".to_owned(), "429 Too Many Requests".to_owned());
    Outcome::Throttled(Throttle { agent, exhausted, retry_after, why })
}

/// Returns what the list says of the first account then, where the engine knows accounts.
fn what_is_refused_waits_for_the_vendor_and_for_nobody_else(place: &Place) {
    place.on(0, async |engine| {
        let a = worker("a");
        any!(engine, e => e.register(&a));
        any!(engine, e => e.submit(&change(1), &submission()));
        let mut held = claim(engine, &a).await.unwrap();
        if held.look {
            let ended = finish(engine, &a, held, &next("fix", Some("replay"), 0.0)).await;
            held = match ended {
                Finished::Kept(claim) => *claim,
                _ => claim(engine, &a).await.unwrap(),
            };
        }
        let hour = Some(Duration::from_hours(1));
        finish(engine, &a, held, &refused(true, hour)).await;
        let listed = any!(engine, e => e.list());
        let change = &listed.changes[0];
        assert_eq!(change.state, "ready", "no person has to look: {listed:?}");
    });
}

/// So many claimers want so many changes: each is won once. Returns milliseconds per claim.
fn each_claim_is_won_once(place: &Place, claimers: usize, claims: usize) -> f64 {
    place.on(0, async |engine| {
        for number in 0..claims {
            any!(engine, e => e.submit(&change(number), &submission()));
        }
    });
    let start = Instant::now();
    let won: Vec<Vec<(ChangeId, Duration)>> = thread::scope(|scope| {
        let claimer = |number: usize| {
            place.on(number, async |engine| {
                let me = worker(&format!("claimer-{number}"));
                any!(engine, e => e.register(&me));
                let (mut won, mut misses) = (Vec::new(), 0);
                while misses < 3 {
                    let start = Instant::now();
                    match claim(engine, &me).await {
                        Some(claim) => won.push((claim.change, start.elapsed())),
                        None => misses += 1,
                    }
                }
                won
            })
        };
        let threads: Vec<_> = (1..=claimers).map(|n| scope.spawn(move || claimer(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for (change, _) in won.iter().flatten() {
        *count.entry(change.to_string()).or_default() += 1;
    }
    assert_eq!(count.len(), claims);
    assert!(count.values().all(|count| *count == 1), "{count:?}");
    let winners = won.iter().filter(|won| !won.is_empty()).count();
    println!("{claims} claims by {claimers}, {winners} of them won some, in {:?}", start.elapsed());
    let all: Duration = won.iter().flatten().map(|(_, took)| *took).sum();
    all.as_secs_f64() * 1000.0 / f64::from(u32::try_from(claims).unwrap())
}

#[test]
fn git_one_change_is_done_by_one_worker_after_the_other() {
    one_change_is_done_by_one_worker_after_the_other(&Place::git());
}

#[test]
fn postgres_one_change_is_done_by_one_worker_after_the_other() {
    let Some(place) = Place::postgres() else { return };
    one_change_is_done_by_one_worker_after_the_other(&place);
}

#[test]
fn git_what_is_refused_waits_for_the_vendor_and_for_nobody_else() {
    what_is_refused_waits_for_the_vendor_and_for_nobody_else(&Place::git());
}

#[test]
fn postgres_what_is_refused_waits_for_the_vendor_and_for_nobody_else() {
    let Some(place) = Place::postgres() else { return };
    what_is_refused_waits_for_the_vendor_and_for_nobody_else(&place);
}

#[test]
fn git_what_people_say_during_a_step_holds() {
    what_people_say_during_a_step_holds(&Place::git());
}

#[test]
fn postgres_what_people_say_during_a_step_holds() {
    let Some(place) = Place::postgres() else { return };
    what_people_say_during_a_step_holds(&place);
}

#[test]
fn heavy_workers_that_begin_together_set_up_a_server_once() {
    let Some(place) = Place::postgres() else { return };
    thread::scope(|scope| {
        for number in 0..4 {
            let place = &place;
            let me = worker(&format!("w{number}"));
            scope.spawn(move || {
                place.on(number, async |engine| any!(engine, e => e.register(&me)));
            });
        }
    });
    place.on(0, async |engine| assert_eq!(any!(engine, e => e.list()).workers.len(), 4));
}

#[test]
fn heavy_git_a_dead_worker_loses_its_step_once() {
    a_dead_worker_loses_its_step_once(&Place::git());
}

#[test]
fn heavy_postgres_a_dead_worker_loses_its_step_once() {
    let Some(place) = Place::postgres() else { return };
    a_dead_worker_loses_its_step_once(&place);
}

#[test]
fn heavy_git_each_claim_is_won_once() {
    let place = Place { dead_after: Duration::from_mins(10), ..Place::git() };
    let claims = if bars() { 500 } else { 8 };
    println!("{:.1} ms per claim", each_claim_is_won_once(&place, 8, claims));
}

#[test]
fn heavy_postgres_each_claim_is_won_once() {
    let Some(place) = Place::postgres() else { return };
    let place = Place { dead_after: Duration::from_mins(10), ..place };
    println!(
        "{:.1} ms per claim",
        each_claim_is_won_once(&place, 8, if bars() { 500 } else { 120 })
    );
}
