//! Limits and budgets over the whole fleet, which need the server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agentd_fleet::engine::{BudgetScope, Claim, Engine as _, Limit, Outcome, Worker};
use sqlx::{Connection as _, PgConnection};

use crate::conformance::{
    AnyEngine, Place, any, bars, change, claim, done, finish, next, refused, submission, worker,
};
use crate::machines::World;
use crate::server::Server;

fn postgres(engine: &AnyEngine) -> &agentd_fleet::engine::postgres::PostgresEngine {
    match engine {
        AnyEngine::Postgres(engine) => engine,
        AnyEngine::Git(_) => panic!("this needs the server"),
    }
}

/// Two workers with more slots than an account may have calls. Also what a call costs in time.
#[test]
fn heavy_a_limit_holds_over_the_fleet() {
    const CHANGES: usize = 20;
    const CALLS: usize = 200;
    let Some(place) = Place::postgres() else { return };
    let place = Place { dead_after: Duration::from_mins(1), ..place };
    place.on(0, async |engine| {
        for number in 0..CHANGES {
            any!(engine, e => e.submit(&change(number), &submission()));
        }
        let limit = Limit { concurrency: Some(3), rpm: None };
        postgres(engine).limit(&"replay:team1".parse().unwrap(), limit).await.unwrap();
    });
    let (now, most, calls) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let overhead: Vec<Duration> = thread::scope(|scope| {
        // Each is one slot; four of them are one worker.
        let slot = |number: usize| {
            place.on(number, async |engine| {
                let me = worker(&format!("worker-{}", number % 2));
                any!(engine, e => e.register(&me));
                let mut overhead = Vec::new();
                while calls.load(Ordering::SeqCst) < CALLS {
                    let start = Instant::now();
                    let Some(claim) = claim(engine, &me).await else {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        continue;
                    };
                    let claimed = start.elapsed();
                    let is_call = !claim.agents.is_empty();
                    if is_call {
                        calls.fetch_add(1, Ordering::SeqCst);
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        now.fetch_sub(1, Ordering::SeqCst);
                    }
                    let start = Instant::now();
                    finish(engine, &me, claim, &next("fix", Some("replay"), 0.0)).await;
                    if is_call {
                        overhead.push(claimed + start.elapsed());
                    }
                }
                overhead
            })
        };
        let slots: Vec<_> = (1..=8).map(|number| scope.spawn(move || slot(number))).collect();
        slots.into_iter().flat_map(|slot| slot.join().unwrap()).collect()
    });
    assert!(calls.load(Ordering::SeqCst) >= CALLS);
    assert_eq!(most.load(Ordering::SeqCst), 3, "the limit is used, and never exceeded");
    let mut overhead = overhead;
    overhead.sort();
    println!("limit 3: {} calls, at most 3 at once", calls.load(Ordering::SeqCst));
    println!("engine per call, 8 slots at once: median {:?}", overhead[overhead.len() / 2]);
}

/// What a call costs in time where nobody else wants anything, beside what the server takes for the least that
/// anybody can ask of it: a row that is read, and a row that is changed and on disk.
#[test]
fn heavy_an_idle_engine_is_fast() {
    let Some(place) = Place::postgres() else { return };
    let place = Place { dead_after: Duration::from_mins(1), ..place };
    place.on(0, async |engine| {
        let me = worker("a");
        any!(engine, e => e.register(&me));
        any!(engine, e => e.submit(&change(1), &submission()));
        any!(engine, e => e.submit(&change(2), &submission()));
        let url = place.server.as_ref().unwrap().url();
        let mut bare = sqlx::PgConnection::connect(&url).await.unwrap();
        let (mut took, mut reads, mut writes) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..200 {
            let start = Instant::now();
            let claim = claim(engine, &me).await.unwrap();
            finish(engine, &me, claim, &next("fix", Some("replay"), f64::from(number))).await;
            took.push(start.elapsed());
            let start = Instant::now();
            sqlx::query("SELECT 1").execute(&mut bare).await.unwrap();
            reads.push(start.elapsed());
            let write = "UPDATE agentd_fleet.change SET why = $1 WHERE change = 'change-2'";
            let start = Instant::now();
            sqlx::query(write).bind(number.to_string()).execute(&mut bare).await.unwrap();
            writes.push(start.elapsed());
        }
        let middle = |times: &mut Vec<Duration>| {
            times.sort();
            times[times.len() / 2]
        };
        let (call, read, write) = (middle(&mut took), middle(&mut reads), middle(&mut writes));
        let ratio = call.as_secs_f64() / write.as_secs_f64();
        println!(
            "engine per call: median {call:.1?}, 9 of 10 within {:.1?}; SELECT 1 takes {read:.2?}, one row on disk {write:.2?}: {ratio:.1} times that",
            took[180]
        );
        // On a busy machine, all of them take longer alike; the bar of 10 ms is for an idle one.
        assert!(ratio < 30.0, "{took:?}");
        if bars() && read < Duration::from_micros(300) {
            assert!(call < Duration::from_millis(10), "{took:?}");
        }
    });
}

/// What is reserved counts; what dies unsettled stays spent until somebody says what it was.
#[test]
fn budgets_are_reserved_and_settled() {
    let Some(place) = Place::postgres() else { return };
    place.on(0, async |engine| {
        let server = postgres(engine);
        let (a, b) = (worker("a"), worker("b"));
        for worker in [&a, &b] {
            server.register(worker).await.unwrap();
        }
        for number in 1..=2 {
            server.submit(&change(number), &submission()).await.unwrap();
        }
        // 0.5 is expected of each call: two fit into 1.2, three do not.
        server.budget(&BudgetScope::Team("team1".to_owned()), 1.2).await.unwrap();
        for worker in [&a, &b] {
            let look = claim(engine, worker).await.unwrap();
            finish(engine, worker, look, &next("fix", Some("replay"), 0.0)).await;
        }
        let first = claim(engine, &a).await.unwrap();
        let second = claim(engine, &b).await.unwrap();
        let budget = async |scope: &str| {
            let budgets = server.list().await.unwrap().budgets;
            let of = budgets.into_iter().find(|budget| budget.scope.starts_with(scope)).unwrap();
            (of.spent_usd, of.reserved_usd)
        };
        assert_eq!(budget("team:").await, (0.0, 1.0));
        // It was cheaper than expected.
        finish(engine, &a, first, &next("fix", Some("replay"), 0.3)).await;
        for scope in ["team:", "day:", "repository:"] {
            assert_eq!(budget(scope).await, (0.3, 0.5), "{scope}");
        }
        // 0.3 and 0.5 and 0.5 is too much.
        assert!(claim(engine, &a).await.is_none());
        let states = async || -> Vec<String> {
            server.list().await.unwrap().changes.into_iter().map(|change| change.state).collect()
        };
        assert_eq!(states().await, ["over_budget", "running"]);
        // The other dies, in a way.
        server.leave(&b).await.unwrap();
        assert_eq!(budget("team:").await, (0.3, 0.5));
        let [cut_short] = &server.list().await.unwrap().unsettled[..] else { panic!() };
        assert_eq!(cut_short.call, format!("{}/{}#1", second.change, second.sequence));
        server.settle(&cut_short.call, 0.1).await.unwrap();
        assert_eq!(budget("team:").await, (0.4, 0.0));
        assert!(server.settle(&cut_short.call, 0.1).await.is_err());
        // There is more money.
        server.budget(&BudgetScope::Team("team1".to_owned()), 2.0).await.unwrap();
        for _ in 0..2 {
            let claim = claim(engine, &a).await.unwrap();
            finish(engine, &a, claim, &done()).await;
        }
        assert_eq!(states().await, ["done", "done"]);
    });
}

/// A call was cheaper than expected, or another day has begun: nobody has to say that there is money.
#[test]
fn a_change_over_budget_goes_on_when_there_is_room() {
    let Some(place) = Place::postgres() else { return };
    let url = place.server.as_ref().unwrap().url();
    place.on(0, async |engine| {
        let server = postgres(engine);
        let a = worker("a");
        server.register(&a).await.unwrap();
        for number in 1..=2 {
            server.submit(&change(number), &submission()).await.unwrap();
        }
        for _ in 1..=2 {
            let look = claim(engine, &a).await.unwrap();
            finish(engine, &a, look, &next("fix", Some("replay"), 0.0)).await;
        }
        let again = async || {
            server.sweep(&a, &[]).await.unwrap();
            claim(engine, &a).await
        };
        // 0.5 is expected of each.
        server.budget(&BudgetScope::Team("team1".to_owned()), 0.8).await.unwrap();
        let first = claim(engine, &a).await.unwrap();
        assert!(again().await.is_none());
        let mut cheap = done();
        if let Outcome::Stepped { report, .. } = &mut cheap {
            report.cost_usd = 0.1;
        }
        finish(engine, &a, first, &cheap).await;
        let second = again().await.expect("the first has cost 0.1");
        server.budget(&BudgetScope::Team("team1".to_owned()), 10.0).await.unwrap();
        server.budget(&BudgetScope::Day, 0.55).await.unwrap();
        finish(engine, &a, second, &next("fix", Some("replay"), 0.1)).await;
        assert!(again().await.is_none(), "0.2 and 0.5 is too much for this day");
        let mut own = PgConnection::connect(&url).await.unwrap();
        for yesterday in [
            "UPDATE agentd_fleet.budget SET scope = 'day:2000-01-01' WHERE scope LIKE 'day:2%'",
            "UPDATE agentd_fleet.change SET refused_by = 'day:2000-01-01' WHERE refused_by LIKE 'day:%'",
        ] {
            sqlx::query(yesterday).execute(&mut own).await.unwrap();
        }
        let third = again().await.expect("it is another day");
        // Of a budget that is used up, nothing is left for a call of which nobody knows the price.
        let own_budget = BudgetScope::Change(third.change.clone());
        server.budget(&own_budget, 0.1).await.unwrap();
        let mut unknown = next("fix", Some("replay"), 0.1);
        if let Outcome::Stepped { report, .. } = &mut unknown {
            report.next.as_mut().unwrap().estimate_usd = 0.0;
        }
        server.budget(&BudgetScope::Day, 10.0).await.unwrap();
        finish(engine, &a, third, &unknown).await;
        assert!(again().await.is_none());
        server.budget(&own_budget, 1.0).await.unwrap();
        assert!(claim(engine, &a).await.is_some());
    });
}

/// Many who want the last of a budget: no more of them get it than it has room for.
#[test]
fn heavy_a_budget_holds_over_claimers() {
    const CHANGES: usize = 30;
    let Some(place) = Place::postgres() else { return };
    let place = Place { dead_after: Duration::from_mins(1), ..place };
    place.on(0, async |engine| {
        let a = worker("a");
        any!(engine, e => e.register(&a));
        for number in 0..CHANGES {
            any!(engine, e => e.submit(&change(number), &submission()));
        }
        while let Some(look) = claim(engine, &a).await {
            finish(engine, &a, look.clone(), &next("fix", Some("replay"), 0.0)).await;
            if look.change == change(CHANGES - 1) {
                break;
            }
        }
        let team = BudgetScope::Team("team1".to_owned());
        postgres(engine).budget(&team, 5.0).await.unwrap();
    });
    let won: usize = thread::scope(|scope| {
        let claimer = |number: usize| {
            place.on(number, async |engine| {
                let me = worker(&format!("claimer-{number}"));
                any!(engine, e => e.register(&me));
                let (mut won, mut misses) = (0, 0);
                while misses < 3 {
                    match claim(engine, &me).await {
                        Some(claim) if !claim.agents.is_empty() => won += 1,
                        Some(_) => {}
                        None => misses += 1,
                    }
                }
                won
            })
        };
        let threads: Vec<_> = (1..=8).map(|n| scope.spawn(move || claimer(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(won, 10, "calls of 0.5 in a budget of 5");
}

/// A person decides, and holds no slot meanwhile.
#[test]
fn a_change_that_waits_goes_on_when_it_is_resumed() {
    let Some(place) = Place::postgres() else { return };
    place.on(0, async |engine| {
        let server = postgres(engine);
        let a = worker("a");
        server.register(&a).await.unwrap();
        server.submit(&change(1), &submission()).await.unwrap();
        let look = claim(engine, &a).await.unwrap();
        let report = agentd_fleet::engine::StepReport {
            why: Some("its plan needs revision".to_owned()),
            ..Default::default()
        };
        finish(engine, &a, look, &Outcome::Stepped { report, cost_before: None }).await;
        let list = server.list().await.unwrap();
        assert_eq!(list.changes[0].state, "waiting");
        assert_eq!((list.workers[0].running, list.accounts[0].running), (0, 0));
        assert!(claim(engine, &a).await.is_none());
        server.signal(&agentd_fleet::engine::Signal::Resume(Some(change(1)))).await.unwrap();
        assert!(claim(engine, &a).await.unwrap().look);
    });
}

/// So many calls begin per minute, over all workers; and one change after the other is archived.
#[test]
fn rates_hold_and_archives_take_turns() {
    let Some(place) = Place::postgres() else { return };
    place.on(0, async |engine| {
        let server = postgres(engine);
        let (a, b) = (worker("a"), worker("b"));
        for worker in [&a, &b] {
            server.register(worker).await.unwrap();
        }
        for number in 1..=6 {
            server.submit(&change(number), &submission()).await.unwrap();
        }
        let limit = Limit { concurrency: None, rpm: Some(4) };
        server.limit(&"replay:team1".parse().unwrap(), limit).await.unwrap();
        for number in 1..=6 {
            let look = claim(engine, &a).await.unwrap();
            // The last two are to be archived.
            let then = if number <= 4 { ("fix", Some("replay")) } else { ("archive", None) };
            finish(engine, &a, look, &next(then.0, then.1, 0.0)).await;
        }
        let mut calls = Vec::new();
        let mut archives = Vec::new();
        while let Some(claim) = claim(engine, if calls.len() < 2 { &a } else { &b }).await {
            if claim.agents.is_empty() { archives.push(claim) } else { calls.push(claim) }
        }
        assert_eq!((calls.len(), archives.len()), (4, 1));
        // Another minute has not begun, and the next archive has.
        for call in calls {
            finish(
                engine,
                if call.attempt == 1 { &a } else { &b },
                call,
                &next("fix", Some("replay"), 0.0),
            )
            .await;
        }
        let archive = archives.remove(0);
        let first = archive.change.clone();
        for worker in [&a, &b] {
            finish(engine, worker, archive.clone(), &done()).await;
        }
        let second = claim(engine, &a).await.unwrap();
        assert!(second.agents.is_empty() && second.change != first, "{second:?}");
        assert!(claim(engine, &b).await.is_none());
    });
}

/// A vendor that refuses calls gets fewer of them, and all of them again after a while.
#[test]
fn a_refusal_lowers_an_account_for_a_while() {
    let Some(place) = Place::postgres() else { return };
    let url = place.server.as_ref().unwrap().url();
    place.on(0, async |engine| {
        let server = postgres(engine);
        let a = worker("a");
        server.register(&a).await.unwrap();
        for number in 1..=6 {
            server.submit(&change(number), &submission()).await.unwrap();
        }
        let mut looks = Vec::new();
        for _ in 1..=6 {
            looks.push(claim(engine, &a).await.unwrap());
        }
        for look in looks {
            finish(engine, &a, look, &next("fix", Some("replay"), 0.0)).await;
        }
        let limit = Limit { concurrency: Some(5), rpm: None };
        server.limit(&"replay:team1".parse().unwrap(), limit).await.unwrap();
        let all = async |worker: &Worker| {
            let mut claims: Vec<Claim> = Vec::new();
            while let Some(claim) = claim(engine, worker).await {
                claims.push(claim);
            }
            claims
        };
        let account = async || {
            let accounts = server.list().await.unwrap().accounts;
            accounts.into_iter().find(|account| account.account == "replay:team1").unwrap()
        };
        // The rest of the account has ended so many seconds ago.
        let rested = async |seconds: f64| {
            let mut own = PgConnection::connect(&url).await.unwrap();
            let shift = "UPDATE agentd_fleet.throttle SET since = now() - interval '1 hour', \
                         until = now() - make_interval(secs => $1)";
            sqlx::query(shift).bind(seconds).execute(&mut own).await.unwrap();
        };
        let mut calls = all(&a).await;
        assert_eq!(calls.len(), 5);
        // Two calls that ran together are refused together: that is one refusal.
        for _ in 0..2 {
            finish(engine, &a, calls.remove(0), &refused(false, None)).await;
        }
        let lowered = account().await;
        assert_eq!((lowered.lowered_to, lowered.limit), (Some(2), limit), "{lowered:?}");
        assert_eq!(lowered.why.as_deref(), Some("429 Too Many Requests"));
        assert!(lowered.lowered_until.unwrap().ends_with('Z'));
        assert!(claim(engine, &a).await.is_none(), "three are still running");
        for call in calls {
            finish(engine, &a, call, &next("fix", Some("replay"), 0.0)).await;
        }
        let mut calls = all(&a).await;
        assert_eq!(calls.len(), 2);
        // Its rest is over: twice as many, and then as before.
        rested(1.0).await;
        calls.extend(all(&a).await);
        assert_eq!((calls.len(), account().await.lowered_to), (4, Some(4)));
        rested(180.0).await;
        assert_eq!(account().await.lowered_to, None);
        calls.extend(all(&a).await);
        // The two that were refused still rest.
        assert_eq!(calls.len(), 4);
        let limit = Limit { concurrency: Some(3), rpm: None };
        server.limit(&"replay:team1".parse().unwrap(), limit).await.unwrap();
        finish(engine, &a, calls.remove(0), &next("fix", Some("replay"), 0.0)).await;
        assert!(claim(engine, &a).await.is_none(), "it waits for a place");
        // A quota is used up: what waits goes to another account of the agent, and nothing else is called.
        let b = Worker { accounts: vec!["replay:team2".parse().unwrap()], ..worker("b") };
        server.register(&b).await.unwrap();
        finish(engine, &a, calls.remove(0), &refused(true, Some(Duration::from_hours(1)))).await;
        assert_eq!(account().await.lowered_to, Some(0));
        let looks = all(&a).await;
        assert!(looks.iter().all(|claim| claim.look && claim.agents.is_empty()), "{looks:?}");
        let taken = all(&b).await;
        assert_eq!(taken.iter().filter(|claim| !claim.agents.is_empty()).count(), 1, "{taken:?}");
        let list = server.list().await.unwrap();
        assert!(list.changes.iter().all(|change| change.state != "failed"), "{list:?}");
        // One call tries whether the quota is renewed.
        server.leave(&b).await.unwrap();
        for call in looks.into_iter().chain(calls) {
            finish(engine, &a, call, &next("fix", Some("replay"), 0.0)).await;
        }
        assert!(claim(engine, &a).await.is_none_or(|claim| claim.look));
        rested(1.0).await;
        assert_eq!(account().await.lowered_to, Some(1));
    });
}

/// The real `agentd step` with a CLI whose vendor refuses: nobody has to look, the account is used less.
#[test]
fn heavy_a_refusal_of_a_real_step_is_understood() {
    let Some(server) = Server::start() else { return };
    for (agent, words, lowered_to) in [
        (
            "claude",
            "API Error: Request rejected (429) · This request would exceed your account's rate limit. \
             Please try again later.",
            1,
        ),
        (
            "codex",
            r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":13872},"status_code":429}"#,
            0,
        ),
    ] {
        let world = World::with(Some(server.url()), agent, "commit = \"layer\"\n");
        let calls = world.base().join("pay/calls");
        let script = format!(
            "case \"$*\" in *version*) echo '{agent} 1.0.0'; exit;; esac\n\
             echo called >> '{}'\ncat > /dev/null\necho '{}' >&2\nexit 1",
            calls.display(),
            words.replace('\'', "'\\''"),
        );
        test_project::write_script(&world.base().join("bin").join(agent), &script);
        world.submit("greet-0");
        let machine = world.machine_for("a", 1, &format!("{agent}:team1"));
        let start = Instant::now();
        let name = format!("{agent}:team1");
        let list = loop {
            let list = world.fleet(&["status"]);
            let mut accounts = list["accounts"].as_array().unwrap().iter();
            let is_lowered =
                accounts.any(|one| one["account"] == *name && !one["lowered_to"].is_null());
            // The account is lowered a moment before the change is given back.
            if is_lowered && list["changes"][0]["state"] != "running" {
                break list;
            }
            let log = world.log(&machine.name);
            assert!(start.elapsed() < Duration::from_mins(1), "{list:#} {log}");
            thread::sleep(Duration::from_millis(200));
        };
        let mut accounts = list["accounts"].as_array().unwrap().iter();
        let account = accounts.find(|one| one["account"] == *name).unwrap();
        assert_eq!(account["lowered_to"], lowered_to, "{list:#}");
        assert_eq!(list["changes"][0]["state"], "ready", "{list:#}");
        let log = world.log(&machine.name);
        assert!(log.contains("is refused by its vendor, later again"), "{log}");
        // It rests: nothing is called meanwhile.
        let called = std::fs::read_to_string(&calls).unwrap();
        thread::sleep(Duration::from_secs(3));
        assert_eq!(std::fs::read_to_string(&calls).unwrap(), called);
    }
}
