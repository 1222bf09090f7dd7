//! How a change leaves a machine, and what stops one that has lost it.
//!
//! A ref of the remote repository, `refs/agentd/wip/<id>`, holds the claim on a change, the sign of
//! life of who has it, and its latest snapshot, all in one commit. Every push says where the ref must
//! be, so of several who want to move it one succeeds, and the others know at once: a push that is
//! refused means that somebody else has the change, and ends the agent and the command.
//!
//! Before a call its record is pushed, so that another machine knows that it was made and may have
//! been paid for. After the step the result is pushed, and the claim released.

mod error;
mod landing;
mod remote;
mod restore;
pub mod sightings;
mod snapshot;

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use agentd_core::carried::{Carried, CarriedState, CarriedStep, WorkerName};
use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::stamp::Stamp;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::change::signing::AllowedSigners;
use crate::git::{self, Git, GitTool, branch_of};
use crate::process::{Cancel, CancelReason};
use crate::store::{Holder, Project};

pub use error::CarrierError;
pub use landing::Landed;
use remote::{Purpose, Pushed, Remote, Update};
pub use restore::OnlyHere;
use restore::Restore;
pub use snapshot::CarriedRuns;
use snapshot::{Scope, Snapshot};

/// How often the ref is looked at while somebody else has the change.
const LOOK: Duration = Duration::from_secs(1);

/// How a change is carried.
#[derive(Debug)]
pub struct CarryOptions {
    /// The remote, by its name.
    pub remote: String,
    /// Who carries it.
    pub worker: WorkerName,
    /// How long somebody else who has the change may be silent.
    pub patience: Duration,
    /// Whether it is taken from the worker or person who has it.
    pub force: bool,
    /// How often a sign of life is pushed during a call; never where this is zero.
    pub beat: Duration,
    /// Whose signatures are wanted; anyone's where this is none.
    pub signers: Option<AllowedSigners>,
    /// What is done about what is only here.
    pub only_here: OnlyHere,
    /// How the records of calls are carried.
    pub runs: CarriedRuns,
}

/// Carries one change. Clones share it.
#[derive(Debug, Clone)]
pub struct Carrier(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    project: Project,
    git: Git,
    tool: GitTool,
    remote: Remote,
    change: ChangeId,
    options: CarryOptions,
    holder: Holder,
    held: Mutex<Held>,
}

/// What is known about the ref.
#[derive(Debug, Default)]
struct Held {
    /// Where it was last.
    tip: Option<String>,
    /// What it said then.
    carried: Option<Carried>,
    /// Whether this process has the claim.
    claimed: bool,
    /// Whether somebody else has it now.
    lost: bool,
}

/// The note of which snapshot the checkout is, or has grown out of.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TipNote {
    tip: Option<String>,
    /// Whether a push was refused since: what was recorded after the snapshot was never accepted.
    #[serde(default)]
    lost: bool,
}

/// What became of a change before a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// The remote does not know it.
    New,
    /// It is here as the remote has it.
    Here,
    /// It was brought here.
    Restored,
}

/// A sign of life is pushed from time to time for as long as this lives.
#[derive(Debug)]
pub struct Beating {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Beating {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The ref of a change that is carried.
pub(crate) fn wip_ref(change: &ChangeId) -> String {
    format!("refs/agentd/wip/{change}")
}

impl Carrier {
    /// Gets ready to carry a change of a project.
    pub fn open(
        project: &Project,
        change: &ChangeId,
        options: CarryOptions,
        tool: &GitTool,
        holder: &Holder,
    ) -> Result<Self, CarrierError> {
        let no_commit = || CarrierError::NoCommit { change: change.clone() };
        let git = Git::discover_with(tool, project.root())?.ok_or_else(no_commit)?;
        let remote = Remote::open(project, &git, tool, &options.remote, Purpose::Carrying)?;
        sightings::expect(project)?;
        Ok(Self(Arc::new(Inner {
            project: project.clone(),
            git,
            tool: GitTool { caged: None, cancel: None, ..tool.clone() },
            remote,
            change: change.clone(),
            options,
            holder: holder.clone(),
            held: Mutex::default(),
        })))
    }

    /// Finds out who has the change, waits for their turn to end if they are silent, and brings the
    /// change here if it was worked on elsewhere. Nothing is claimed yet.
    pub fn begin(&self) -> Result<Begun, CarrierError> {
        let (name, branch) = (wip_ref(&self.0.change), self.branch_ref());
        let refs = self.0.remote.refs(&[&name, &branch])?;
        let Some(tip) = refs.get(&name) else {
            return match refs.get(&branch) {
                Some(commit) => self.begin_on_branch(&branch, commit),
                None => Ok(Begun::New),
            };
        };
        let tip = self.wait_for_turn(tip.clone())?;
        if self.noted().tip.as_deref() == Some(&*tip) {
            return Ok(Begun::Here);
        }
        self.restore(&tip, false)?;
        Ok(Begun::Restored)
    }

    /// The change was finished, or is worked on by hand: its branch is there.
    fn begin_on_branch(&self, branch: &str, commit: &str) -> Result<Begun, CarrierError> {
        let here = self.0.git.branch_commit(&branch_of(&self.0.change))?;
        if here.as_deref() == Some(commit) {
            return Ok(Begun::Here);
        }
        self.0.remote.fetch(&[branch])?;
        if let Some(here) = here {
            let ancestor = ["--is-ancestor", commit, &here];
            if self.0.remote.call("merge-base").args(ancestor).ask()?.code == 0 {
                return Ok(Begun::Here);
            }
        }
        self.restore(commit, true)?;
        Ok(Begun::Restored)
    }

    fn restore(&self, commit: &str, is_branch: bool) -> Result<(), CarrierError> {
        let inner = &self.0;
        let noted = self.noted();
        let restore = Restore {
            project: &inner.project,
            git: &inner.git,
            tool: &inner.tool,
            remote: &inner.remote,
            change: &inner.change,
            commit,
            is_branch,
            only_here: inner.options.only_here,
            is_as_pushed: self.is_as_pushed(noted.tip.as_deref())?,
            was_lost: noted.lost,
            signers: inner.options.signers.as_ref(),
            holder: &inner.holder,
        };
        restore.run()?;
        if is_branch { Ok(()) } else { self.note(commit) }
    }

    /// Whether the checkout is what was pushed last: then nothing is only here.
    fn is_as_pushed(&self, tip: Option<&str>) -> Result<bool, CarrierError> {
        let Some(tip) = tip else { return Ok(false) };
        let tree = |commit: &str| -> Result<String, CarrierError> {
            let tree = format!("{commit}^{{tree}}");
            let call = self.0.remote.call("rev-parse").args(["--verify", "--quiet", &tree]);
            Ok(call.ask()?.text())
        };
        let carried = self.says(CarriedState::Ready);
        let lock = self.0.project.write_lock(&self.0.change, &self.0.holder)?;
        let now = self.snapshot(None, Scope::All, &carried).commit(&self.0.remote)?;
        drop(lock);
        Ok(tree(&now)? == tree(tip)?)
    }

    fn snapshot<'s>(
        &'s self,
        before: Option<&'s str>,
        scope: Scope,
        carried: &'s Carried,
    ) -> Snapshot<'s> {
        let Inner { project, git, change, options, .. } = &*self.0;
        Snapshot { project, git, change, before, scope, runs: options.runs, carried }
    }

    /// Waits until the ref says that nobody has the change, or has not moved for as long as one is
    /// patient, by the clock of this machine. Returns where it is then.
    fn wait_for_turn(&self, mut tip: String) -> Result<String, CarrierError> {
        let name = wip_ref(&self.0.change);
        let mut since = Instant::now();
        let mut moved = false;
        loop {
            self.0.remote.fetch(&[&name])?;
            let carried = self.carried_at(&tip)?;
            let mut held = self.held();
            (held.tip, held.carried) = (Some(tip.clone()), carried.clone());
            drop(held);
            let Some(carried) = carried.filter(|carried| {
                carried.state.is_claimed() && carried.worker != self.0.options.worker
            }) else {
                return Ok(tip);
            };
            if self.0.options.force {
                return Ok(tip);
            }
            let taken = carried.state == CarriedState::Taken;
            // Somebody who moves the ref is alive.
            if taken || moved {
                let (change, worker, since) = (self.0.change.clone(), carried.worker, carried.at);
                return Err(CarrierError::Claimed { change, worker, since, taken });
            }
            loop {
                if since.elapsed() >= self.0.options.patience {
                    return Ok(tip);
                }
                thread::sleep(LOOK.min(self.0.options.patience));
                let asked = Instant::now();
                let now = self.0.remote.refs(&[&name])?.remove(&name);
                // Time in which the remote does not answer counts against nobody.
                since += asked.elapsed().saturating_sub(self.0.options.patience / 3);
                // It was finished meanwhile.
                let Some(now) = now else { return Ok(tip) };
                if now != tip {
                    (tip, since, moved) = (now, Instant::now(), true);
                    break;
                }
            }
        }
    }

    /// What a snapshot says of its change.
    fn carried_at(&self, commit: &str) -> Result<Option<Carried>, CarrierError> {
        let show = self.0.remote.call("log").args(["-1", "--no-show-signature", "--format=%B"]);
        Ok(Carried::of_message(&show.args([commit, "--"]).run()?.text()))
    }

    /// What the ref said when it was last looked at.
    pub fn carried(&self) -> Option<Carried> {
        self.held().carried.clone()
    }

    /// The snapshot that the remote has, as far as is known here.
    pub fn tip(&self) -> Option<String> {
        self.held().tip.clone()
    }

    /// Under which name the change is carried.
    pub fn worker(&self) -> &WorkerName {
        &self.0.options.worker
    }

    /// Whether somebody else has taken the change over.
    pub fn is_lost(&self) -> bool {
        self.held().lost
    }

    /// Whether this process has claimed the change.
    pub fn has_claimed(&self) -> bool {
        self.held().claimed
    }

    /// Claims the change for a step, with everything that is recorded about it so far: of a call, that
    /// it is made. A sign of life is pushed until the result is dropped; when somebody else has taken
    /// the change over, `cancel` is asked to end what is running.
    pub fn claim(&self, doing: CarriedStep, cancel: &Cancel) -> Result<Beating, CarrierError> {
        let carried = Carried { doing: Some(doing), ..self.says(CarriedState::Held) };
        self.push(carried, Scope::Documents)?;
        Ok(self.beat(cancel.clone()))
    }

    /// Continues a claim of an earlier command, which a person has taken, or begins to carry a change
    /// that the remote does not know.
    pub fn resume(&self) -> Result<(), CarrierError> {
        let name = wip_ref(&self.0.change);
        let Some(tip) = self.0.remote.refs(&[&name])?.remove(&name) else { return Ok(()) };
        self.0.remote.fetch(&[&name])?;
        let carried = self.carried_at(&tip)?;
        let is_ours = carried.as_ref().is_some_and(|carried| {
            carried.state.is_claimed() && carried.worker == self.0.options.worker
        });
        if !is_ours || self.noted().tip.as_deref() != Some(&*tip) {
            return Err(CarrierError::Lost { change: self.0.change.clone() });
        }
        let mut held = self.held();
        (held.tip, held.carried, held.claimed) = (Some(tip), carried, true);
        Ok(())
    }

    /// Takes the change for a person, until they give it back.
    pub fn take(&self) -> Result<(), CarrierError> {
        self.push(self.says(CarriedState::Taken), Scope::Documents)
    }

    /// Pushes the change as it is now, and lets others have it.
    pub fn release(&self, carried: Carried) -> Result<(), CarrierError> {
        self.push(carried, Scope::All)?;
        self.held().claimed = false;
        Ok(())
    }

    /// What is said of a change in this state, now.
    pub fn says(&self, state: CarriedState) -> Carried {
        Carried::new(state, self.0.options.worker.clone(), Stamp::new(Timestamp::now()))
    }

    fn branch_ref(&self) -> String {
        format!("refs/heads/{}", branch_of(&self.0.change))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pushes a snapshot.
    fn push(&self, carried: Carried, scope: Scope) -> Result<(), CarrierError> {
        let inner = &self.0;
        let on_branch = git::change_of_branch(&inner.tool, inner.git.top());
        let archived = || inner.project.archived();
        let is_here = inner.project.change_if_open(&inner.change)?.is_some()
            || archived()?.ids.iter().any(|name| name.change == inner.change);
        if is_here && on_branch.as_ref() != Some(&inner.change) {
            return Err(CarrierError::NotOnItsBranch { change: inner.change.clone() });
        }
        let before = self.held().tip.clone();
        let lock = inner.project.write_lock(&inner.change, &inner.holder)?;
        let commit = self.snapshot(before.as_deref(), scope, &carried).commit(&inner.remote)?;
        drop(lock);
        self.move_to(commit, carried)
    }

    /// Moves the ref to a commit.
    fn move_to(&self, commit: String, carried: Carried) -> Result<(), CarrierError> {
        let from = self.held().tip.clone();
        let name = wip_ref(&self.0.change);
        self.pushed(&[Update { name, from, to: Some(commit.clone()) }])?;
        self.note(&commit)?;
        let mut held = self.held();
        held.claimed = carried.state.is_claimed();
        (held.tip, held.carried) = (Some(commit), Some(carried));
        Ok(())
    }

    fn pushed(&self, updates: &[Update]) -> Result<(), CarrierError> {
        match self.0.remote.push(updates)? {
            Pushed::Yes => Ok(()),
            Pushed::Refused => Err(self.lost()?),
        }
    }

    /// Somebody else has the change: that is noted, and the error says it.
    fn lost(&self) -> Result<CarrierError, CarrierError> {
        let mut held = self.held();
        (held.claimed, held.lost) = (false, true);
        drop(held);
        self.keep_note(&TipNote { lost: true, ..self.noted() })?;
        Ok(CarrierError::Lost { change: self.0.change.clone() })
    }

    /// Pushes a sign of life from time to time, and ends the agent when the change is lost.
    fn beat(&self, cancel: Cancel) -> Beating {
        if self.0.options.beat.is_zero() {
            return Beating { stop: None, thread: None };
        }
        let (stop, stopped) = mpsc::channel::<()>();
        let carrier = self.clone();
        let work = move || {
            while stopped.recv_timeout(carrier.0.options.beat) == Err(RecvTimeoutError::Timeout) {
                if let Err(CarrierError::Lost { .. }) = carrier.sign_of_life() {
                    cancel.cancel(CancelReason::Terminate);
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("sign of life".to_owned()).spawn(work).ok();
        Beating { stop: Some(stop), thread }
    }

    /// Moves the ref to the same snapshot with a new time.
    fn sign_of_life(&self) -> Result<(), CarrierError> {
        let held = self.held();
        let (Some(tip), Some(carried)) = (held.tip.clone(), held.carried.clone()) else {
            return Ok(());
        };
        drop(held);
        let carried = Carried { at: Stamp::new(Timestamp::now()), ..carried };
        let message = carried.message(&self.0.change);
        let tree = format!("{tip}^{{tree}}");
        let commit = self.0.remote.call("commit-tree").args(["-p", &tip, &tree]);
        let mut commit = commit.input(message.into_bytes());
        for who in ["AUTHOR", "COMMITTER"] {
            commit = commit
                .env(format!("GIT_{who}_NAME"), self.0.options.worker.as_str())
                .env(format!("GIT_{who}_EMAIL"), "agentd@localhost");
        }
        let commit = commit.run()?.text().trim().to_owned();
        self.move_to(commit, carried)
    }

    fn noted(&self) -> TipNote {
        self.0.project.note(&layout::carried_note(&self.0.change)).unwrap_or_default()
    }

    fn note(&self, tip: &str) -> Result<(), CarrierError> {
        self.keep_note(&TipNote { tip: Some(tip.to_owned()), lost: false })
    }

    fn keep_note(&self, note: &TipNote) -> Result<(), CarrierError> {
        let text = serde_json::to_vec(note).unwrap_or_default();
        let state = self.0.project.state_dir()?;
        Ok(state.write_atomic(&layout::carried_note(&self.0.change), &text)?)
    }
}
