//! A worker: it claims steps, does them with the real `agentd`, and says what came of them.
//!
//! One thread does everything, so a worker is small, and the children that end with the thread that has
//! started them end with the worker.

mod place;
mod step;
mod trouble;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agentd_core::carried::WorkerName;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::account::Account;
use crate::engine::{Claim, Engine, Finished, Outcome, Worker};
use crate::error::{FleetError, Result};
use crate::program;
use crate::repository::Repository;
use place::Place;
use step::Stepping;
use trouble::Trouble;

/// How long leaving may take.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);
/// How long a worker waits at first where nothing is to do; each further time longer.
const IDLE: Duration = Duration::from_millis(50);
/// How often a step is tried while the remote does not answer, each time for a minute.
const AWAY_TRIES: u32 = 10;
const AWAY_PAUSE: Duration = Duration::from_secs(2);
/// How often the outcome of a step is tried to be recorded.
const TRIES: u32 = 240;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The beginning of its name.
    pub name: WorkerName,
    /// How many steps it does at the same time.
    pub slots: usize,
    /// The accounts whose keys it has.
    pub accounts: Vec<Account>,
    /// Below this are its clones.
    pub dir: PathBuf,
    /// The remote, by its name in a clone.
    pub remote: String,
    /// After how much silence somebody who has a change is dead.
    pub patience: Duration,
    /// Whether the project's settings may run programs.
    pub trust: bool,
    /// Whether it ends when nothing is left to do for anybody.
    pub until_done: bool,
    /// Whether its lines are JSON.
    pub json: bool,
}

/// Why a worker has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Somebody wanted it to, or nothing is left to do.
    Done,
    /// The others take it for dead.
    Dead,
}

/// A step that came to an end.
type Stepped = (Claim, Result<Outcome>);

/// Works until it is asked to stop.
pub async fn run<E: Engine>(
    engine: &E,
    repository: &Repository,
    options: &WorkerOptions,
) -> Result<()> {
    let agentd = program::agentd(&repository.root)?;
    let place = Place::take(&options.dir)?;
    let stepping = Stepping {
        agentd,
        remote: options.remote.clone(),
        trust: options.trust,
        patience: options.patience.as_secs(),
    };
    loop {
        let worker = Worker {
            name: fresh_name(&options.name)?,
            slots: options.slots,
            accounts: options.accounts.clone(),
        };
        let this =
            Running { engine, repository, options, place: &place, stepping: &stepping, worker };
        this.registered().await?;
        this.say(None, "ready");
        if this.work().await? == Ended::Done {
            return Ok(());
        }
        this.say(
            None,
            "was taken for dead: its agents were ended, and it goes on under another name",
        );
    }
}

/// A name that no other process has, nor this one after it was taken for dead.
fn fresh_name(like: &WorkerName) -> Result<WorkerName> {
    let mut random = [0; 4];
    getrandom::fill(&mut random)
        .map_err(|error| FleetError::usage("there is no source of randomness").cause(error))?;
    let stem: String = like.as_str().chars().take(50).collect();
    Ok(WorkerName::like(&format!("{stem}-{}", hex::encode(random))))
}

/// The name of this machine.
pub(crate) fn machine_name() -> WorkerName {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    WorkerName::like(name.trim())
}

/// What the two halves of a worker share.
#[derive(Debug, Default)]
struct Shared {
    running: RefCell<HashMap<ChangeId, Claim>>,
    draining: Cell<bool>,
    trouble: RefCell<Trouble>,
}

struct Running<'a, E> {
    engine: &'a E,
    repository: &'a Repository,
    options: &'a WorkerOptions,
    place: &'a Place,
    stepping: &'a Stepping,
    worker: Worker,
}

impl<E: Engine> Running<'_, E> {
    /// A server that is being started is waited for.
    async fn registered(&self) -> Result<()> {
        let start = Instant::now();
        loop {
            match self.engine.register(&self.worker).await {
                Err(error) if start.elapsed() > Duration::from_mins(1) => return Err(error),
                Err(_) => sleep(Duration::from_millis(500)).await,
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Works, and shows all the while that it is alive.
    async fn work(&self) -> Result<Ended> {
        let shared = Shared::default();
        tokio::select! {
            ended = self.steps(&shared) => ended.map(|()| Ended::Done),
            // What is dropped with the other future ends with it: the steps, and their processes.
            () = self.beats(&shared) => Ok(Ended::Dead),
            // Neither of these holds up a sign of life, however slow the server or the remote is.
            never = self.sweeps(&shared) => match never {},
            never = self.looks() => match never {},
        }
    }

    /// Shows that it is alive, until the others do not believe it any more.
    async fn beats(&self, shared: &Shared) {
        let pace = self.engine.pace();
        // It is said once that the server is away.
        let mut away = false;
        loop {
            let wait = match timeout(pace.limit, self.engine.heartbeat(&self.worker)).await {
                Ok(Ok(pulse)) if pulse.dead => return,
                Ok(Ok(pulse)) => {
                    if pulse.drain {
                        shared.draining.set(true);
                    }
                    away = false;
                    pace.beat
                }
                // Steps go on while the server is away.
                Ok(Err(error)) => {
                    if !std::mem::replace(&mut away, true) {
                        self.say(None, &error.to_string());
                    }
                    pace.beat / 10
                }
                Err(_) => {
                    if !std::mem::replace(&mut away, true) {
                        self.say(None, "the server is slow to answer");
                    }
                    Duration::ZERO
                }
            };
            sleep(wait).await;
        }
    }

    /// Does what others have left undone. That the server is away, the signs of life say.
    async fn sweeps(&self, shared: &Shared) -> Infallible {
        loop {
            sleep(self.engine.pace().beat).await;
            let running: Vec<Claim> = shared.running.borrow().values().cloned().collect();
            let _ = self.engine.sweep(&self.worker, &running).await;
        }
    }

    /// Finds out what people have decided. A remote that does not answer is asked again.
    async fn looks(&self) -> Infallible {
        loop {
            sleep(self.engine.pace().look).await;
            let _ = self.engine.look().await;
        }
    }

    /// Does steps, until it is asked to stop.
    async fn steps(&self, shared: &Shared) -> Result<()> {
        let failed = |error| FleetError::usage("cannot wait for signals").cause(error);
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut steps: JoinSet<Stepped> = JoinSet::new();
        let (longest, mut idle) = (self.engine.pace().idle, IDLE);
        // It is said once that the server or the remote is away.
        let mut said = None;
        loop {
            let running = shared.running.borrow().len();
            if shared.draining.get() && running == 0 {
                self.leave().await;
                return Ok(());
            }
            let is_full = running >= self.worker.slots;
            let wait = if shared.draining.get() || is_full { longest } else { idle };
            tokio::select! {
                biased;
                Some(ended) = steps.join_next() => {
                    let Ok((claim, outcome)) = ended else { continue };
                    let kept = self.finished(&claim, outcome, shared).await;
                    shared.running.borrow_mut().remove(&claim.change);
                    idle = Duration::ZERO;
                    if let Some(claim) = kept {
                        self.start(claim, &mut steps, shared);
                    }
                }
                _ = interrupt.recv() => {
                    if shared.draining.replace(true) {
                        steps.shutdown().await;
                        self.leave().await;
                        return Ok(());
                    }
                    self.say(None, "stops when its steps have ended; again to end them now");
                }
                _ = terminate.recv() => shared.draining.set(true),
                () = sleep(wait) => {
                    let rests = shared.trouble.borrow().rests();
                    if shared.draining.get() || rests || running > self.worker.slots {
                        idle = longest;
                        continue;
                    }
                    let claimed = if is_full {
                        self.engine.claim_orphan(&self.worker).await
                    } else {
                        self.engine.claim(&self.worker).await
                    };
                    match claimed {
                        Ok(Some(claim)) => {
                            (idle, said) = (Duration::ZERO, None);
                            self.start(claim, &mut steps, shared);
                        }
                        Ok(None) => {
                            said = None;
                            idle = (idle.max(IDLE) * 2).min(longest);
                            let last = self.options.until_done && running == 0;
                            if last && self.all_done().await {
                                shared.draining.set(true);
                            }
                        }
                        Err(error) => {
                            let error = Some(error.to_string());
                            if error != said {
                                self.say(None, error.as_deref().unwrap_or_default());
                            }
                            (idle, said) = (longest, error);
                        }
                    }
                }
            }
        }
    }

    fn start(&self, claim: Claim, steps: &mut JoinSet<Stepped>, shared: &Shared) {
        let change = claim.change.clone();
        shared.running.borrow_mut().insert(change.clone(), claim.clone());
        let (stepping, name) = (self.stepping.clone(), self.worker.name.clone());
        let (repository, clone) = (self.repository.clone(), self.place.clone_of(&change));
        let preparing = self.place.preparing(&change);
        steps.spawn(async move {
            let mut trying = claim.clone();
            let mut tries = 0;
            // While the remote is away, nobody else can do it, and what came of a call is only here.
            let outcome = loop {
                let outcome = match preparing.make(&repository, &clone).await {
                    Ok(()) => stepping.run(&trying, &clone, &name).await,
                    Err(error) if error.kind == Kind::RemoteUnreachable => {
                        Ok(Outcome::Away(error.to_string()))
                    }
                    Err(error) => Err(error),
                };
                tries += 1;
                match outcome {
                    Ok(Outcome::Away(_)) if tries < AWAY_TRIES => sleep(AWAY_PAUSE).await,
                    // What was found was paid for by this claim.
                    Ok(Outcome::Stepped { report, .. }) if tries > 1 => {
                        break Ok(Outcome::Stepped { report, cost_before: None });
                    }
                    outcome => break outcome,
                }
                // It may have been done, and then something else comes next.
                trying.look = true;
            };
            (claim, outcome)
        });
    }

    /// Says what came of a step; the claim with which it goes on at once, if any.
    async fn finished(
        &self,
        claim: &Claim,
        outcome: Result<Outcome>,
        shared: &Shared,
    ) -> Option<Claim> {
        let outcome = outcome.unwrap_or_else(|error| Outcome::Unfit(error.to_string()));
        let outcome = shared.trouble.borrow_mut().judge(&claim.change, outcome);
        if let Outcome::Stepped { report, .. } = &outcome {
            report.notes.iter().for_each(|note| self.say(Some(claim), note));
        }
        self.say(Some(claim), &in_words(&outcome));
        if let Some(rest) = shared.trouble.borrow().rest() {
            self.say(None, &format!("does no steps for {} s", rest.as_secs_f64().ceil()));
        }
        // The result is in git already; while the server is away, nothing of it is lost.
        for _ in 0..TRIES {
            match self.engine.finish(&self.worker, claim.clone(), &outcome).await {
                Ok(Finished::Kept(claim)) if !shared.draining.get() => return Some(*claim),
                Ok(Finished::Kept(_) | Finished::Released) => {
                    if matches!(&outcome, Outcome::Stepped { report, .. } if report.done) {
                        self.place.remove(&claim.change).await;
                    }
                    return None;
                }
                Ok(Finished::Lost) => return None,
                Err(_) => sleep(Duration::from_millis(500)).await,
            }
        }
        None
    }

    async fn all_done(&self) -> bool {
        let open = |state: &str| state != "done";
        let list = self.engine.list().await;
        list.is_ok_and(|list| !list.changes.iter().any(|change| open(&change.state)))
    }

    async fn leave(&self) {
        // It ends in any case; without this the others notice a little later.
        let _ = timeout(LEAVE_LIMIT, self.engine.leave(&self.worker)).await;
        self.say(None, "has ended");
    }

    /// A line for the log of the worker.
    fn say(&self, claim: Option<&Claim>, what: &str) {
        let what = agentd_core::text::printable(what);
        let change = claim.map(|claim| claim.change.as_str());
        if self.options.json {
            let at = jiff::Timestamp::now().to_string();
            let line =
                json!({"at": at, "worker": self.worker.name, "change": change, "what": what});
            anstream::eprintln!("{line}");
            return;
        }
        let change = change.map(|change| format!(" {change}:")).unwrap_or_default();
        anstream::eprintln!("{}{change} {what}", self.worker.name);
    }
}

fn in_words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Stepped { report, .. } => {
            let did = report.did.as_deref().unwrap_or("nothing to do");
            match (&report.next, &report.why) {
                _ if report.done => {
                    let on = report.landed.as_ref().map(|branch| format!(", on {branch}"));
                    format!("{did}; done{}", on.unwrap_or_default())
                }
                (Some(next), _) => format!("{did}; next {}", next.step),
                (None, Some(why)) => format!("{did}; waits for a decision: {why}"),
                (None, None) => did.to_owned(),
            }
        }
        Outcome::Busy(why) => format!("later: {why}"),
        Outcome::Away(why) => format!("the remote does not answer: {why}"),
        Outcome::Unfit(why) => format!("this machine cannot do it: {why}"),
        Outcome::Lost => "was taken over by another worker".to_owned(),
        Outcome::Throttled(throttle) => {
            format!("{} is refused by its vendor, later again: {}", throttle.agent, throttle.why)
        }
        Outcome::Failed(why) => format!("failed: {why}"),
    }
}
