//! A fleet with nothing but the remote repository: the list is a ref for each change, and the worker
//! whose push was first has the change.
//!
//! `refs/agentd/queue/<id>` says what was submitted and who has claimed it; `refs/agentd/wip/<id>` is
//! what `agentd step` carries. A worker whose refs have not moved for a while, by the clock of the one who
//! looks, is dead. There are no limits and no budgets over several workers: they need a place to count.

mod refs;
mod row;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agentd_core::carried::Carried;
use agentd_core::ids::ChangeId;
use agentd_core::text::Line;
use serde::{Deserialize, Serialize};

use super::throttle::{RECOVERY, Throttle, lowered};
use super::{
    BudgetScope, Claim, Engine, Finished, Limit, Outcome, Overview, Pace, Pulse, Signal,
    StepReport, Submission, Submitted, Worker,
};
use crate::account::Account;
use crate::error::{FleetError, Result};
use crate::repository::Repository;
use refs::{Moved, Refs};
use row::{Entry, Row, workers};

const QUEUE: &str = "refs/agentd/queue/";
const WIP: &str = "refs/agentd/wip/";
const CONTROL: &str = "refs/agentd/fleet/control";

/// What stands in front of an entry in the message of a commit.
const KEY: &str = "Agentd-Queued: ";

/// How long a worker may be silent. It pushes a sign of life more often.
pub const PATIENCE: Duration = Duration::from_secs(14);

/// The fleet of a repository.
#[derive(Debug)]
pub struct GitEngine {
    refs: Refs,
    repository: Repository,
    patience: Duration,
    seen: RefCell<Seen>,
}

/// What was seen of the remote.
#[derive(Debug, Default)]
struct Seen {
    /// The messages of commits.
    messages: HashMap<String, String>,
    /// Since when each ref is where it is, by this machine's clock.
    since: HashMap<String, (String, Instant)>,
    /// When the remote has last answered, and whether it has not answered since.
    answered: Option<Instant>,
    is_away: bool,
    /// Changes that nobody has begun, and that this worker has no account for.
    not_ours: HashSet<ChangeId>,
    /// Agents whose vendors have refused calls of this worker: how often in a row, and until when they
    /// rest.
    resting: HashMap<String, (u32, Instant)>,
    /// How it was when this process first looked.
    began: Option<Began>,
}

/// What was said to the whole fleet at the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Began {
    /// Where its ref was, if it was there.
    tip: Option<String>,
    control: Control,
}

/// What is said to the whole fleet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Control {
    #[serde(default)]
    paused: bool,
    /// How often all workers were asked to end.
    #[serde(default)]
    drains: u64,
}

impl Seen {
    /// How long a ref has been where it is.
    fn still(&mut self, name: &str, tip: &str) -> Duration {
        let now = Instant::now();
        let since = self.since.entry(name.to_owned()).or_insert_with(|| (tip.to_owned(), now));
        if since.0 != tip {
            *since = (tip.to_owned(), now);
        }
        since.1.elapsed()
    }

    /// The remote has answered, or not. Time in which it does not answer counts against nobody: those who
    /// have changes could not show that they are alive.
    fn asked(&mut self, has_answered: bool, patience: Duration) {
        if !has_answered {
            self.is_away = true;
            return;
        }
        let now = Instant::now();
        let before = self.answered.replace(now);
        if std::mem::take(&mut self.is_away)
            && let Some(before) = before
        {
            let away = now.duration_since(before).saturating_sub(patience / 3);
            for (_, since) in self.since.values_mut() {
                *since = (*since + away).min(now);
            }
        }
    }
}

fn read<T: for<'de> Deserialize<'de>>(message: &str) -> Option<T> {
    let json = message.lines().find_map(|line| line.strip_prefix(KEY))?;
    serde_json::from_str(json).ok()
}

fn written(title: &str, value: &impl Serialize) -> String {
    format!("{title}\n\n{KEY}{}\n", serde_json::to_string(value).unwrap_or_default())
}

impl GitEngine {
    /// The fleet of a repository. What it needs to know of the remote is kept in a directory.
    pub fn new(repository: Repository, dir: PathBuf, patience: Duration) -> Self {
        let refs = Refs::new(dir, repository.url.clone());
        Self { refs, repository, patience, seen: RefCell::default() }
    }

    /// All entries, those that come first at the front; and what is said to the whole fleet.
    async fn rows(&self) -> Result<(Vec<Row>, Control)> {
        let patterns = [&format!("{QUEUE}*"), &format!("{WIP}*"), CONTROL];
        let there = self.refs.list(&patterns).await;
        self.seen.borrow_mut().asked(there.is_ok(), self.patience);
        let there = there?;
        let known = |commit: &String| self.seen.borrow().messages.contains_key(commit);
        let queued = |name: &str| {
            let change = name.strip_prefix(QUEUE).or_else(|| name.strip_prefix(WIP));
            change.is_some_and(|change| {
                ChangeId::new(change).is_ok() && there.contains_key(&format!("{QUEUE}{change}"))
            })
        };
        let new: Vec<(&str, &str)> = there
            .iter()
            .filter(|(name, commit)| !known(commit) && (*name == CONTROL || queued(name)))
            .map(|(name, commit)| (&**name, &**commit))
            .collect();
        let messages = self.refs.messages(&new).await?;
        let mut seen = self.seen.borrow_mut();
        seen.messages.extend(messages);
        seen.messages.retain(|commit, _| there.values().any(|there| there == commit));
        let tip = there.get(CONTROL);
        let said = tip.and_then(|tip| seen.messages.get(tip));
        let control: Control = said.and_then(|said| read(said)).unwrap_or_default();
        if tip.is_none() || said.is_some() {
            seen.began.get_or_insert_with(|| Began { tip: tip.cloned(), control });
        }
        let mut rows = rows_of(&there, &mut seen);
        rows.sort_by(|a, b| {
            let first = |row: &Row| (row.entry.submission.priority, row.change.clone());
            first(a).cmp(&first(b))
        });
        Ok((rows, control))
    }

    /// Whether this worker leaves an agent alone for now. Without a server, each worker finds that out
    /// by itself.
    fn rests(&self, agent: &str) -> bool {
        let seen = self.seen.borrow();
        seen.resting.get(agent).is_some_and(|(_, until)| Instant::now() < *until)
    }

    fn rest(&self, throttle: &Throttle) {
        let resting = &mut self.seen.borrow_mut().resting;
        let now = Instant::now();
        let before = resting.get(&throttle.agent);
        let times =
            before.filter(|(_, until)| now < *until + RECOVERY).map_or(0, |(times, _)| *times);
        let lowered = lowered(throttle, 1, times);
        resting.insert(throttle.agent.clone(), (lowered.times, now + lowered.rest));
    }

    async fn put(&self, change: &ChangeId, from: Option<&str>, entry: &Entry) -> Result<Moved> {
        let message = written(&format!("{change}: queued"), entry);
        self.refs.put(&format!("{QUEUE}{change}"), from, &message).await
    }

    /// Whether a worker does the next step, too.
    fn goes_on(&self, worker: &Worker, row: &Row, report: &StepReport) -> bool {
        if report.done {
            return false;
        }
        let agent = report.next.as_ref().and_then(|next| next.agent.as_deref());
        let has = |agent: &str| worker.account_for(agent).is_some() && !self.rests(agent);
        let can = report.next.is_some() && agent.is_none_or(has);
        if !can && row.carried.is_none() {
            // Others cannot see what it needs, and this worker would claim it again and again.
            self.seen.borrow_mut().not_ours.insert(row.change.clone());
        }
        can && !row.entry.paused
    }

    /// Nobody has a change any more, or it is done.
    async fn given_up(&self, row: &Row, outcome: &Outcome) -> Result<Moved> {
        let failed = match outcome {
            Outcome::Stepped { report, .. } if report.done => {
                return self.refs.remove(&format!("{QUEUE}{}", row.change), &row.tip).await;
            }
            Outcome::Failed(why) => Some(Line::new(why)),
            Outcome::Stepped { .. }
            | Outcome::Busy(_)
            | Outcome::Away(_)
            | Outcome::Unfit(_)
            | Outcome::Throttled(_)
            | Outcome::Lost => None,
        };
        let entry = Entry { worker: None, failed, ..row.entry.clone() };
        self.put(&row.change, Some(&row.tip), &entry).await
    }

    /// Changes an entry, however often others do at the same time.
    async fn update(&self, change: &ChangeId, with: impl Fn(&mut Entry)) -> Result<bool> {
        loop {
            let (rows, _) = self.rows().await?;
            let Some(row) = rows.into_iter().find(|row| row.change == *change) else {
                return Ok(false);
            };
            let mut entry = row.entry;
            with(&mut entry);
            if let Moved::To(_) = self.put(change, Some(&row.tip), &entry).await? {
                return Ok(true);
            }
        }
    }

    async fn control(&self, with: impl Fn(&mut Control)) -> Result<()> {
        loop {
            let there = self.refs.list(&[CONTROL]).await?.remove(CONTROL);
            let (_, mut control) = self.rows().await?;
            with(&mut control);
            let message = written("fleet", &control);
            if let Moved::To(_) = self.refs.put(CONTROL, there.as_deref(), &message).await? {
                return Ok(());
            }
        }
    }
}

fn rows_of(there: &BTreeMap<String, String>, seen: &mut Seen) -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, tip) in there {
        let Some(change) = name.strip_prefix(QUEUE).and_then(|id| ChangeId::new(id).ok()) else {
            continue;
        };
        let wip = there.get(&format!("{WIP}{change}"));
        let listed_still = seen.still(name, tip);
        let carried_still = wip.map(|wip| seen.still(&format!("{WIP}{change}"), wip));
        let still = carried_still.map_or(listed_still, |carried| carried.min(listed_still));
        let carried_still = carried_still.unwrap_or_default();
        let Some(entry) = seen.messages.get(tip).and_then(|message| read::<Entry>(message)) else {
            continue;
        };
        // Anyone who can push has written it.
        let carried = wip.and_then(|wip| Carried::of_message(seen.messages.get(wip)?));
        let carried = carried.map(Carried::cut);
        // It has moved on since it was listed.
        if wip.is_some() && carried.is_none() {
            continue;
        }
        rows.push(Row { change, tip: tip.clone(), entry, carried, still, carried_still });
    }
    seen.since.retain(|name, _| there.contains_key(name));
    rows
}

impl Engine for GitEngine {
    fn pace(&self) -> Pace {
        // Each of them is a conversation with the remote.
        let beat = Duration::from_secs(10);
        // Nobody waits for a sign of life: that is the ref, which each step moves by itself.
        Pace { beat, limit: beat * 6, look: beat, idle: Duration::from_secs(2) }
    }

    async fn submit(&self, change: &ChangeId, what: &Submission) -> Result<Submitted> {
        if what.budget_usd.is_some() {
            return Err(FleetError::needs_server("--budget").hint(
                "or set [budget] max_cost_usd in agentd/config.toml, which holds everywhere",
            ));
        }
        let (submission, worker, failed) = (what.clone(), None, None);
        let entry = Entry { version: 1, submission, worker, paused: false, failed };
        Ok(match self.put(change, None, &entry).await? {
            Moved::To(_) => Submitted::Submitted,
            Moved::Refused => Submitted::AlreadySubmitted,
        })
    }

    async fn register(&self, _worker: &Worker) -> Result<()> {
        self.rows().await.map(|_| ())
    }

    async fn claim(&self, worker: &Worker) -> Result<Option<Claim>> {
        let (rows, control) = self.rows().await?;
        if control.paused {
            return Ok(None);
        }
        let not_ours = self.seen.borrow().not_ours.clone();
        let free = |row: &Row| {
            let is_ours = row.carried.is_some() || !not_ours.contains(&row.change);
            is_ours && row.is_free_for(worker, self.patience, |agent| self.rests(agent))
        };
        for row in rows.into_iter().filter(free) {
            let taken_over = row.entry.worker.is_some()
                || row.carried.as_ref().is_some_and(|carried| carried.state.is_claimed());
            let entry = Entry { worker: Some(worker.name.clone()), ..row.entry };
            let Moved::To(token) = self.put(&row.change, Some(&row.tip), &entry).await? else {
                continue;
            };
            return Ok(Some(Claim {
                change: row.change,
                submission: entry.submission,
                agents: worker.accounts.iter().map(|account| account.agent().to_owned()).collect(),
                look: row.carried.is_none(),
                sequence: 0,
                step: None,
                attempt: if taken_over { 2 } else { 1 },
                orphaned: taken_over,
                token,
            }));
        }
        Ok(None)
    }

    async fn claim_orphan(&self, _worker: &Worker) -> Result<Option<Claim>> {
        // Each look is a conversation with the remote; a slot is free soon enough.
        Ok(None)
    }

    async fn heartbeat(&self, _worker: &Worker) -> Result<Pulse> {
        let there = self.refs.list(&[CONTROL]).await?.remove(CONTROL);
        let began = self.seen.borrow().began.clone();
        let Some(began) = began.filter(|began| began.tip != there) else {
            return Ok(Pulse::default());
        };
        let (_, control) = self.rows().await?;
        Ok(Pulse { dead: false, drain: control.drains > began.control.drains })
    }

    async fn sweep(&self, _worker: &Worker, _running: &[Claim]) -> Result<()> {
        // The dead have nothing but their refs, and each claim looks at these.
        Ok(())
    }

    async fn look(&self) -> Result<()> {
        Ok(())
    }

    async fn finish(&self, worker: &Worker, claim: Claim, outcome: &Outcome) -> Result<Finished> {
        if *outcome == Outcome::Lost {
            return Ok(Finished::Lost);
        }
        if let Outcome::Throttled(throttle) = outcome {
            self.rest(throttle);
        }
        loop {
            let (rows, control) = self.rows().await?;
            let row = rows.into_iter().find(|row| row.change == claim.change);
            let Some(row) = row.filter(|row| row.entry.worker.as_ref() == Some(&worker.name))
            else {
                return Ok(Finished::Lost);
            };
            if let Outcome::Stepped { report, .. } = outcome
                && self.goes_on(worker, &row, report)
                && !control.paused
            {
                // Its worker goes on: the claim holds for as long as one of the two refs moves.
                let claim = Claim { attempt: 1, orphaned: false, look: false, ..claim };
                return Ok(Finished::Kept(Box::new(Claim { token: row.tip, ..claim })));
            }
            if self.given_up(&row, outcome).await? != Moved::Refused {
                return Ok(Finished::Released);
            }
            // Somebody has said something about it in the same moment, such as that it is paused.
        }
    }

    async fn leave(&self, worker: &Worker) -> Result<()> {
        let (rows, _) = self.rows().await?;
        for row in rows.iter().filter(|row| row.entry.worker.as_ref() == Some(&worker.name)) {
            let entry = Entry { worker: None, ..row.entry.clone() };
            self.put(&row.change, Some(&row.tip), &entry).await?;
        }
        Ok(())
    }

    async fn signal(&self, signal: &Signal) -> Result<()> {
        let one = |change: &ChangeId| {
            FleetError::new(
                agentd_core::error_kind::Kind::NoSuchChange,
                format!("`{change}` was not submitted"),
            )
            .hint("see what was: agentd fleet status")
        };
        match signal {
            Signal::Pause(None) => self.control(|control| control.paused = true).await,
            Signal::Resume(None) => self.control(|control| control.paused = false).await,
            Signal::Drain => self.control(|control| control.drains += 1).await,
            Signal::Pause(Some(change)) => {
                let there = self.update(change, |entry| entry.paused = true).await?;
                if there { Ok(()) } else { Err(one(change)) }
            }
            Signal::Resume(Some(change)) => {
                let resume = |entry: &mut Entry| (entry.paused, entry.failed) = (false, None);
                let there = self.update(change, resume).await?;
                if there { Ok(()) } else { Err(one(change)) }
            }
        }
    }

    async fn limit(&self, _account: &Account, _limit: Limit) -> Result<()> {
        Err(FleetError::needs_server("a limit over several workers"))
    }

    async fn budget(&self, _scope: &BudgetScope, _cap_usd: f64) -> Result<()> {
        Err(FleetError::needs_server("a budget over several changes"))
    }

    async fn settle(&self, _call: &str, _cost_usd: f64) -> Result<()> {
        Err(FleetError::needs_server("`fleet settle`")
            .hint("in a clone that has the change: agentd cost <id> --settle <run>=<usd>"))
    }

    async fn list(&self) -> Result<Overview> {
        let (rows, control) = self.rows().await?;
        Ok(Overview {
            engine: "git",
            repository: self.repository.key.clone(),
            paused: control.paused,
            changes: rows.iter().map(Row::listed).collect(),
            workers: workers(&rows, self.patience),
            ..Overview::default()
        })
    }
}
