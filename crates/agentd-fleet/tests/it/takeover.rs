//! What delays a takeover, and what must not: a server that was away, a worker that is frozen while it talks
//! to the server, and a takeover that came to nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use agentd_fleet::engine::{
    Claim, Engine as _, NextStep, Outcome, Overview, Pulse, StepReport, Worker,
};
use tokio::time::sleep;

use crate::conformance::{
    AnyEngine, Place, any, bars, change, claim, finish, next, submission, worker,
};

/// What a worker does all the time; nothing while the server is away.
async fn live(engine: &AnyEngine, worker: &Worker) -> Option<Claim> {
    let AnyEngine::Postgres(engine) = engine else { panic!("this needs the server") };
    let pulse: Pulse = engine.heartbeat(worker).await.unwrap_or_default();
    assert!(!pulse.dead, "it is alive");
    let _ = engine.sweep(worker, &[]).await;
    engine.claim(worker).await.ok().flatten()
}

/// Lives until there is something to do.
async fn claims(engine: &AnyEngine, worker: &Worker, within: Duration) -> Claim {
    let start = Instant::now();
    loop {
        if let Some(claim) = live(engine, worker).await {
            return claim;
        }
        assert!(start.elapsed() < within, "nothing to do within {within:?}");
        sleep(Duration::from_millis(100)).await;
    }
}

/// Two workers, of which the first has claimed a change.
async fn two(place: &Place) -> (AnyEngine, Worker, Worker, Claim) {
    let engine = place.engine(0).await;
    let (a, b) = (worker("a"), worker("b"));
    any!(&engine, e => e.submit(&change(1), &submission()));
    for worker in [&a, &b] {
        any!(&engine, e => e.register(worker));
    }
    let held = claim(&engine, &a).await.unwrap();
    (engine, a, b, held)
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work);
}

#[test]
fn heavy_a_server_that_dies_with_a_worker_delays_nothing_but_its_own_absence() {
    let Some(place) = Place::postgres() else { return };
    let place = Place { dead_after: Duration::from_secs(6), ..place };
    run(async {
        let (engine, _a, b, _held) = two(&place).await;
        let server = place.server.as_ref().unwrap();
        let died = Instant::now();
        server.kill();
        sleep(Duration::from_secs(1)).await;
        server.run();
        let away = died.elapsed();
        let taken = claims(&engine, &b, place.dead_after * 4).await;
        let took = died.elapsed();
        println!("server away {away:.1?}, taken over after {took:.1?}");
        assert_eq!(taken.attempt, 2);
        assert!(took < away + place.dead_after + Duration::from_secs(1), "{took:?}");
    });
}

#[test]
fn heavy_time_without_the_server_counts_against_nobody() {
    let Some(place) = Place::postgres() else { return };
    run(async {
        let (engine, a, b, _held) = two(&place).await;
        let server = place.server.as_ref().unwrap();
        server.kill();
        sleep(place.dead_after * 2).await;
        server.run();
        // One is back first, and looks around.
        let start = Instant::now();
        while start.elapsed() < place.dead_after / 3 {
            assert!(live(&engine, &b).await.is_none(), "the other had no chance to show itself");
            sleep(Duration::from_millis(100)).await;
        }
        assert!(!any!(&engine, e => e.heartbeat(&a)).dead);
        // All are frozen, as when a lid is closed over the whole fleet: nobody has died.
        sleep(place.dead_after * 2).await;
        assert!(live(&engine, &b).await.is_none());
        assert!(!any!(&engine, e => e.heartbeat(&a)).dead);
        // One of them only: it has.
        let start = Instant::now();
        while start.elapsed() < place.dead_after + Duration::from_secs(1) {
            live(&engine, &b).await;
            sleep(Duration::from_millis(100)).await;
        }
        assert!(any!(&engine, e => e.heartbeat(&a)).dead);
    });
}

/// Those who have changes cannot show that they are alive while the remote is away.
#[test]
fn heavy_time_without_the_remote_counts_against_nobody() {
    let place = Place::git();
    run(async {
        let (a, b) = (place.engine(0).await, place.engine(1).await);
        let (one, other) = (worker("a"), worker("b"));
        any!(&a, e => e.submit(&change(1), &submission()));
        let held = claim(&a, &one).await.unwrap();
        assert!(claim(&b, &other).await.is_none());
        let AnyEngine::Git(looks) = &b else { panic!() };
        let (remote, away) = (place.temp.path().join("remote.git"), place.temp.path().join("away"));
        std::fs::rename(&remote, &away).unwrap();
        let start = Instant::now();
        while start.elapsed() < place.dead_after * 2 {
            assert!(looks.claim(&other).await.is_err());
            sleep(Duration::from_millis(200)).await;
        }
        std::fs::rename(&away, &remote).unwrap();
        let start = Instant::now();
        assert!(claim(&b, &other).await.is_none(), "the other had no chance to show itself");
        let taken = loop {
            if let Some(taken) = claim(&b, &other).await {
                break taken;
            }
            assert!(start.elapsed() < place.dead_after * 3);
            sleep(Duration::from_millis(100)).await;
        };
        assert!(taken.orphaned && taken.change == held.change, "{taken:?}");
        assert!(start.elapsed() > place.dead_after / 3, "{:?}", start.elapsed());
    });
}

#[test]
fn heavy_a_takeover_that_came_to_nothing_is_still_one() {
    let Some(place) = Place::postgres() else { return };
    run(async {
        let (engine, _a, b, _held) = two(&place).await;
        let taken = claims(&engine, &b, place.dead_after * 3).await;
        assert!(taken.orphaned, "{taken:?}");
        // The clone failed, for instance. Whom it was taken from is as dead as before.
        finish(&engine, &b, taken, &Outcome::Busy("no space".to_owned())).await;
        let again = claims(&engine, &b, Duration::from_secs(10)).await;
        assert!(again.orphaned, "{again:?}");
        // Once somebody has done something, it is theirs.
        let report = StepReport { did: Some("fix".to_owned()), ..StepReport::default() };
        let report = StepReport { next: Some(NextStep::default()), ..report };
        finish(&engine, &b, again, &Outcome::Stepped { report, cost_before: Some(0.0) }).await;
        assert!(!claims(&engine, &b, Duration::from_secs(5)).await.orphaned);
    });
}

/// What somebody has died over waits for no slot, and nothing else is done beyond the slots.
#[test]
fn heavy_a_worker_without_a_free_slot_takes_what_the_dead_have_left() {
    let Some(place) = Place::postgres() else { return };
    run(async {
        let (engine, _a, b, held) = two(&place).await;
        any!(&engine, e => e.submit(&change(2), &submission()));
        let start = Instant::now();
        let taken = loop {
            assert!(!any!(&engine, e => e.heartbeat(&b)).dead);
            any!(&engine, e => e.sweep(&b, &[]));
            if let Some(claim) = any!(&engine, e => e.claim_orphan(&b)) {
                break claim;
            }
            assert!(start.elapsed() < place.dead_after * 3);
            sleep(Duration::from_millis(100)).await;
        };
        assert!(taken.orphaned && taken.change == held.change, "{taken:?}");
        assert!(any!(&engine, e => e.claim_orphan(&b)).is_none(), "nobody has died over the other");
    });
}

/// What people see, and a claim, is on disk before anyone sees it.
#[test]
fn heavy_a_crash_of_the_server_forgets_nothing_that_counts() {
    let Some(place) = Place::postgres() else { return };
    run(async {
        let (engine, a, _b, look) = two(&place).await;
        let server = place.server.as_ref().unwrap();
        finish(&engine, &a, look, &next("fix", Some("replay"), 0.0)).await;
        let held = claim(&engine, &a).await.unwrap();
        server.kill();
        server.run();
        let AnyEngine::Postgres(engine) = &engine else { panic!() };
        let listed = |list: Overview| -> Vec<(String, String)> {
            list.changes.into_iter().map(|change| (change.change, change.state)).collect()
        };
        let running = (held.change.to_string(), "running".to_owned());
        assert_eq!(listed(again(|| engine.list()).await), std::slice::from_ref(&running));
        engine.submit(&change(2), &submission()).await.unwrap();
        server.kill();
        server.run();
        let submitted = ("change-2".to_owned(), "ready".to_owned());
        assert_eq!(listed(again(|| engine.list()).await), [running, submitted]);
    });
}

/// Asks again where a connection has died with the server.
async fn again<T, F: Future<Output = agentd_fleet::error::Result<T>>>(ask: impl Fn() -> F) -> T {
    let start = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(start.elapsed() < Duration::from_secs(10), "{error}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Goes on with something until it has waited so many times, and then never again.
async fn freezes<F: Future>(mut work: Pin<&mut F>, mut waits: usize) -> Option<F::Output> {
    std::future::poll_fn(move |context| match work.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if waits == 0 => Poll::Ready(None),
        Poll::Pending => {
            waits -= 1;
            Poll::Pending
        }
    })
    .await
}

/// A worker is frozen at any moment while it claims a step or finishes one. Its connections stay open, as
/// those of a process that was stopped do.
#[test]
fn heavy_a_worker_that_is_frozen_at_any_moment_holds_up_nobody() {
    let stride = if bars() { 1 } else { 6 };
    for claims_it in [true, false] {
        let Some(place) = Place::postgres() else { return };
        let place = Place { dead_after: Duration::from_secs(4), ..place };
        run(async {
            let other = place.engine(0).await;
            let b = worker("b");
            any!(&other, e => e.register(&b));
            let mut longest = Duration::ZERO;
            for waits in (0..).step_by(stride) {
                let engine = place.engine(0).await;
                let a = worker(&format!("a{waits}"));
                any!(&engine, e => e.register(&a));
                any!(&engine, e => e.submit(&change(waits), &submission()));
                // A paid call is to be done: it has budgets.
                let look = claim(&engine, &a).await.unwrap();
                let outcome = next("fix", Some("replay"), 0.0);
                finish(&engine, &a, look, &outcome).await;
                let AnyEngine::Postgres(frozen) = &engine else { panic!() };
                let (mut claiming, mut finishing);
                let done = if claims_it {
                    claiming = Box::pin(frozen.claim(&a));
                    freezes(claiming.as_mut(), waits).await.is_some()
                } else {
                    let held = frozen.claim(&a).await.unwrap().unwrap();
                    finishing = Box::pin(frozen.finish(&a, held, &outcome));
                    freezes(finishing.as_mut(), waits).await.is_some()
                };
                let start = Instant::now();
                let taken = claims(&other, &b, Duration::from_secs(20)).await;
                assert_eq!(taken.change, change(waits), "after {waits} waits");
                longest = longest.max(start.elapsed());
                let end = StepReport { done: true, ..StepReport::default() };
                let end = Outcome::Stepped { report: end, cost_before: Some(0.0) };
                finish(&other, &b, taken, &end).await;
                println!("frozen after {waits} waits: taken over after {:.1?}", start.elapsed());
                if done {
                    break;
                }
            }
            println!(
                "frozen while it {}: longest {longest:.1?}",
                if claims_it { "claims" } else { "finishes" }
            );
            // Those who are frozen in the middle of something are thrown out after three seconds.
            assert!(longest < place.dead_after + Duration::from_secs(5), "{longest:?}");
        });
    }
}
