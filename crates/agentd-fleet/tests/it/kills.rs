//! Machines are killed with all their files, frozen, and the server is killed: every change is done, and no
//! checkpointed call is paid for again.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::Row as _;
use test_project::git;

use crate::conformance::bars;
use crate::machines::{Machine, RUNS, World};
use crate::server::Server;

/// How much is broken while how much is done.
#[derive(Debug, Clone, Copy)]
struct Plan {
    changes: usize,
    machines: usize,
    slots: usize,
    kills: usize,
    server_kills: usize,
    freezes: usize,
    every: Duration,
    within: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
struct Outcome {
    /// Which machines were killed or frozen, and when.
    broken: Vec<(String, Instant)>,
    killed: usize,
    server_kills: usize,
    freezes: usize,
    megabytes: f64,
    took: Duration,
}

/// A row of numbers that look random, and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }
}

fn run(world: &World, server: Option<&Server>, plan: Plan) -> (Vec<String>, Outcome) {
    let changes: Vec<String> = (0..plan.changes).map(|number| format!("greet-{number}")).collect();
    for change in &changes {
        world.submit(change);
    }
    let mut made = 0;
    let mut machine = || {
        made += 1;
        world.machine(&format!("m{made}"), plan.slots)
    };
    let mut machines: Vec<Machine> = (0..plan.machines).map(|_| machine()).collect();
    let (mut numbers, mut outcome) = (Numbers(7), Outcome::default());
    let start = Instant::now();
    let mut next = Instant::now() + plan.every;
    loop {
        sleep(Duration::from_millis(100));
        if changes.iter().all(|change| world.is_done(change)) {
            break;
        }
        if start.elapsed() > plan.within {
            let logs: Vec<String> =
                machines.iter().map(|machine| world.log(&machine.name)).collect();
            panic!("not done: {:#}\n{}", world.fleet(&["status"]), logs.join("\n---\n"));
        }
        for machine in &mut machines {
            assert!(machine.is_alive(), "{}", world.log(&machine.name));
            outcome.megabytes = outcome.megabytes.max(machine.megabytes());
        }
        if Instant::now() < next {
            continue;
        }
        let which = numbers.below(machines.len());
        if outcome.killed < plan.kills {
            let dead = machines.swap_remove(which);
            outcome.killed += 1;
            outcome.broken.push((dead.name.clone(), Instant::now()));
            dead.kill();
            machines.push(machine());
        }
        let part = |of: usize| outcome.killed * of / plan.kills.max(1);
        if let Some(server) = server
            && outcome.server_kills < part(plan.server_kills)
        {
            server.kill();
            sleep(Duration::from_secs(1));
            server.run();
            outcome.server_kills += 1;
        }
        if outcome.freezes < part(plan.freezes) {
            let frozen = &machines[numbers.below(plan.machines)];
            outcome.broken.push((frozen.name.clone(), Instant::now()));
            frozen.freeze(Duration::from_secs(world.patience + 3));
            outcome.freezes += 1;
        }
        next = Instant::now() + plan.every;
    }
    outcome.took = start.elapsed();
    // The engine learns of the last one a moment later.
    sleep(Duration::from_secs(1));
    (changes, outcome)
}

/// How many calls of each step a change needs.
fn needed() -> BTreeMap<String, usize> {
    let mut needed = BTreeMap::new();
    for run in RUNS {
        *needed.entry(run[5..].to_owned()).or_default() += 1;
    }
    needed
}

/// Checks the books of all changes against what was paid. Returns what was paid and not needed.
fn check_books(world: &World, changes: &[String], plan: Plan) -> BTreeMap<(String, String), usize> {
    let (needed, payments) = (needed(), world.payments());
    let mut extra: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut again = 0;
    for change in changes {
        let books = world.books(change);
        for (step, needed) in &needed {
            let recorded = books.iter().filter(|call| call.0 == *step && !call.2).count();
            again += recorded.saturating_sub(*needed);
            assert!(recorded >= *needed, "{change} {step}: {books:?}");
            let paid = |of: &&crate::machines::Payment| of.change == *change && of.step == *step;
            let paid = payments.iter().filter(paid).count();
            assert!(paid >= *needed, "{change} {step} was never paid");
            if paid > *needed {
                extra.insert((change.clone(), step.clone()), paid - needed);
            }
        }
    }
    let lost: usize = extra.values().sum();
    println!(
        "paid {} calls, {} needed: {lost} cut short or ended before they were pushed, \
         {again} checkpointed and paid again",
        payments.len(),
        changes.len() * RUNS.len(),
    );
    assert_eq!(again, 0, "a checkpointed call is never paid again");
    let seen: usize = changes.iter().map(|change| world.forgets_nothing(change)).sum();
    println!("{seen} entries of books in all snapshots, all of them in the last ones");
    assert!(seen >= changes.len() * RUNS.len());
    let breaks = (plan.kills + plan.freezes) * plan.slots;
    assert!(lost <= breaks, "at most one call per change and kill: {extra:?}");
    extra
}

#[test]
fn heavy_killed_machines_over_git() {
    let plan = Plan {
        changes: 2,
        machines: 2,
        slots: 1,
        kills: if bars() { 8 } else { 2 },
        server_kills: 0,
        freezes: usize::from(bars()),
        every: Duration::from_secs(6),
        within: Duration::from_secs(200),
    };
    let world = World::new(None);
    let (changes, outcome) = run(&world, None, plan);
    println!(
        "git: {} of {} done, {} machines killed, {} frozen, in {:.0?}; a worker has {:.1} MB",
        changes.len(),
        plan.changes,
        outcome.killed,
        outcome.freezes,
        outcome.took,
        outcome.megabytes
    );
    check_books(&world, &changes, plan);
    merges_without_conflicts(&world, &changes);
}

#[test]
fn heavy_killed_machines_over_postgres() {
    let Some(server) = Server::start() else { return };
    let mut world = World::new(Some(server.url()));
    let plan = if bars() {
        // Long enough for all the kills to come before the last change is done, on a fast machine, too.
        (world.patience, world.call_ms) = (14, 2500);
        // `AGENTD_BARS=8` is a fifth of it.
        let size = std::env::var("AGENTD_BARS").ok().and_then(|text| text.parse().ok());
        let size: usize = size.filter(|size| *size > 1).unwrap_or(40);
        Plan {
            changes: size,
            machines: 4,
            slots: 2,
            kills: size,
            server_kills: size.div_ceil(8),
            freezes: size.div_ceil(8),
            every: Duration::from_secs(6),
            within: Duration::from_mins(50),
        }
    } else {
        Plan {
            changes: 4,
            machines: 2,
            slots: 2,
            kills: 8,
            server_kills: 1,
            freezes: 0,
            every: Duration::from_secs(3),
            within: Duration::from_secs(220),
        }
    };
    let (changes, outcome) = run(&world, Some(&server), plan);
    println!(
        "postgres: {} of {} done, {} machines killed, {} frozen, {} kills of Postgres, in {:.0?}; a worker has {:.1} MB",
        changes.len(),
        plan.changes,
        outcome.killed,
        outcome.freezes,
        outcome.server_kills,
        outcome.took,
        outcome.megabytes
    );
    let extra = check_books(&world, &changes, plan);
    takeovers(&server, &outcome, &extra, world.patience);
    ledger_is_what_was_paid(&world, &changes, extra, plan);
    merges_without_conflicts(&world, &changes);
}

/// Before anything is settled, what was cut short counts by its estimate; after that, to the cent.
fn ledger_is_what_was_paid(
    world: &World,
    changes: &[String],
    mut extra: BTreeMap<(String, String), usize>,
    plan: Plan,
) {
    let prices = world.prices(changes);
    let price = |step: &str| prices.get(step).copied().unwrap_or(0.0);
    let paid: f64 = world.payments().iter().map(|payment| price(&payment.step)).sum();
    let ledger = |status: &Value| {
        let budgets = status["budgets"].as_array().unwrap();
        let of = |budget: &&Value| budget["scope"].as_str().unwrap().starts_with("repository:");
        let budget = budgets.iter().find(of).unwrap();
        (budget["spent_usd"].as_f64().unwrap(), budget["reserved_usd"].as_f64().unwrap())
    };
    let status = world.fleet(&["status"]);
    let unsettled = status["unsettled"].as_array().unwrap().clone();
    let before = ledger(&status);
    println!(
        "ledger ${:.4} spent and ${:.4} reserved for {} calls that were cut short; paid ${paid:.4}",
        before.0,
        before.1,
        unsettled.len()
    );
    assert!(unsettled.len() <= (plan.kills + plan.freezes) * plan.slots, "{unsettled:#?}");
    for call in &unsettled {
        let (change, step) = (call["change"].as_str().unwrap(), call["step"].as_str().unwrap());
        // The vendor says what it was; one that was killed before it began was nothing.
        let was_paid =
            extra.get_mut(&(change.to_owned(), step.to_owned())).filter(|left| **left > 0);
        let usd = if let Some(left) = was_paid {
            *left -= 1;
            price(step)
        } else {
            0.0
        };
        world.fleet(&["settle", call["call"].as_str().unwrap(), &usd.to_string()]);
    }
    let after = ledger(&world.fleet(&["status"]));
    println!(
        "after fleet settle: ${:.4} spent, ${:.4} reserved, paid ${paid:.4}",
        after.0, after.1
    );
    assert!(after.1.abs() < 1e-6, "{after:?}");
    assert!((after.0 - paid).abs() <= paid * 0.01, "{} is not {paid}", after.0);
}

/// How long it took until another worker had what a killed or frozen one had; and that each of them has cut
/// short at most one call of each change, for which at most one was paid in vain.
fn takeovers(
    server: &Server,
    outcome: &Outcome,
    extra: &BTreeMap<(String, String), usize>,
    patience: u64,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let now = Instant::now();
    let cut = runtime.block_on(crate::conformance::ask(
        server,
        "SELECT c.change, l.worker, l.step, l.account IS NOT NULL, \
           extract(epoch FROM now() - l.began)::float8, \
           (SELECT extract(epoch FROM now() - min(n.began))::float8 FROM agentd_fleet.call n \
            WHERE n.change = l.change AND n.began > l.began) \
         FROM agentd_fleet.call l JOIN agentd_fleet.change c ON c.id = l.change \
         WHERE l.state IN ('unsettled', 'found') ORDER BY l.began",
    ));
    let (mut waits, mut by_nobody) = (Vec::new(), 0);
    let mut of_change: BTreeMap<String, usize> = BTreeMap::new();
    let mut of_worker: BTreeMap<(String, String), usize> = BTreeMap::new();
    for row in &cut {
        let (change, worker): (String, String) = (row.get(0), row.get(1));
        let (began, next): (f64, Option<f64>) = (row.get(4), row.get(5));
        let next = next.expect("every change is done");
        if row.get(3) {
            *of_change.entry(change.clone()).or_default() += 1;
            *of_worker.entry((change.clone(), worker.clone())).or_default() += 1;
        }
        // The one that has cut it short: after it began, and before it was taken over.
        let of = |(name, at): &(String, Instant)| {
            let ago = (now - *at).as_secs_f64();
            let is_of = worker.starts_with(&format!("{name}-")) && ago < began && ago > next;
            is_of.then_some(ago)
        };
        match outcome.broken.iter().rev().find_map(of) {
            Some(ago) => waits.push((ago - next, change, worker)),
            None => {
                by_nobody += 1;
                println!(
                    "{change}: {} of {worker} was cut short, and nobody killed it",
                    row.get::<String, _>(2)
                );
            }
        }
    }
    waits.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some((median, ..)), Some(longest)) = (waits.get(waits.len() / 2), waits.last()) {
        println!(
            "{} takeovers: median {median:.1} s, longest {:.1} s ({} of {}), with a patience of {patience} s; \
             {by_nobody} cut short by nobody",
            waits.len(),
            longest.0,
            longest.1,
            longest.2
        );
        assert!(longest.0 < f64::from(u32::try_from(patience).unwrap()) + 6.0, "{waits:#?}");
    }
    let of_one = of_worker.values().max();
    assert!(of_one.is_none_or(|most| *most == 1), "{of_worker:#?}");
    let mut in_vain: BTreeMap<&str, usize> = BTreeMap::new();
    for ((change, _), paid) in extra {
        *in_vain.entry(change).or_default() += paid;
    }
    for (change, paid) in &in_vain {
        let cut = of_change.get(*change).copied().unwrap_or(0);
        assert!(*paid <= cut, "{change}: {paid} paid in vain, {cut} cut short");
    }
    let most = in_vain.values().max().copied().unwrap_or(0);
    println!("paid in vain: at most {most} calls of one change, never more than were cut short");
}

/// Each change was archived on its branch; merged one after the other, their changelogs do not conflict.
fn merges_without_conflicts(world: &World, changes: &[String]) {
    let clone = world.base().join("merging");
    git(&world.base(), &["clone", "-q", world.remote().to_str().unwrap(), clone.to_str().unwrap()]);
    // As agentd sets it up where a change is begun.
    let driver = format!("{} merge-driver %O %A %B %P", test_project::agentd().display());
    git(&clone, &["config", "merge.agentd.driver", &driver]);
    test_project::write(&clone.join(".git/info/attributes"), "**/agentd/specs/*.md merge=agentd\n");
    let mut conflicts = 0;
    for change in changes.iter().take(2) {
        let merge = std::process::Command::new("git")
            .args(["-c", "user.name=Ada", "-c", "user.email=a@b.c", "merge", "--no-edit", "-q"])
            .arg(format!("origin/agentd/{change}"))
            .current_dir(&clone)
            .output()
            .unwrap();
        let unmerged = git(&clone, &["diff", "--name-only", "--diff-filter=U"]);
        conflicts += usize::from(unmerged.lines().any(|line| line.ends_with("CHANGELOG.md")));
        if !merge.status.success() {
            println!("{change}: {}", unmerged.replace('\n', " "));
            git(&clone, &["merge", "--abort"]);
        }
    }
    println!("{conflicts} conflicts in CHANGELOG.md");
    assert_eq!(conflicts, 0);
}
