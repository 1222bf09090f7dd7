//! What commands share that carry a change to and from a remote repository.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agentd_core::carried::{Carried, CarriedState, CarriedStep, WorkerName};
use agentd_core::ids::ChangeId;
use agentd_core::phase::Phase;
use agentd_core::text::Line;
use agentd_engine::carrier::{CarriedRuns, Carrier, CarrierError, CarryOptions, Landed, OnlyHere};
use agentd_engine::change::documents;
use agentd_engine::change::signing::AllowedSigners;
use agentd_engine::git::GitTool;
use agentd_engine::store::Project;
use agentd_engine::workflow::{self, Coming, ComingStep};

use super::Context;
use super::agents_setup::agents_for;
use crate::error::CommandError;

/// How a change is carried between machines.
#[derive(Debug, clap::Args)]
pub(crate) struct CarryArgs {
    /// Claim the change on this remote, continue it from there, and push what comes of it.
    #[arg(long, value_name = "REMOTE", num_args = 0..=1, default_missing_value = "origin")]
    carry: Option<String>,

    /// Name under which to claim the change; by default the name of this machine and a number.
    #[arg(long = "as", value_name = "WORKER", requires = "carry")]
    worker: Option<WorkerName>,

    /// Take over a change whose worker has been silent for so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "carry")]
    patience: u64,

    /// Push a sign of life every so many seconds during a call; 0 never does.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, requires = "carry")]
    beat: u64,

    /// Continue only what someone on this list has signed, as for `agentd verify`.
    #[arg(long, value_name = "FILE", requires = "carry")]
    allowed_signers: Option<PathBuf>,

    /// Discard what is only in this clone, which is there for changes that are carried.
    #[arg(long, requires = "carry")]
    discard: bool,
}

/// What a person says who takes a change, or gives it back.
#[derive(Debug, clap::Args)]
pub(crate) struct PersonArgs {
    /// Remote that has the change.
    #[arg(long, value_name = "REMOTE", default_value = "origin")]
    remote: String,

    /// Name under which you have it; by default your login name and the name of this machine.
    #[arg(long = "as", value_name = "NAME")]
    name: Option<WorkerName>,
}

impl PersonArgs {
    /// Gets ready to carry a change for a person.
    pub(super) fn open(
        &self,
        context: &Context,
        project: &Project,
        id: &ChangeId,
        force: bool,
        list: Option<&Path>,
    ) -> Result<Carrier, CommandError> {
        let holder = context.holder();
        let person = || WorkerName::like(&format!("{}-{}", super::login_name(), holder.host));
        let options = CarryOptions {
            remote: self.remote.clone(),
            worker: self.name.clone().unwrap_or_else(person),
            patience: Duration::ZERO,
            force,
            beat: Duration::ZERO,
            signers: signers(list, project)?,
            only_here: OnlyHere::Keep,
            runs: runs(project),
        };
        Ok(Carrier::open(project, id, options, &GitTool::default(), &holder)?)
    }
}

/// The list of signers in a file.
pub(super) fn signers(
    file: Option<&Path>,
    project: &Project,
) -> Result<Option<AllowedSigners>, CommandError> {
    Ok(file.map(|file| AllowedSigners::read(file, project.root())).transpose()?)
}

/// How the records of calls are carried: whole only if the project has them in git anyway.
pub(super) fn runs(project: &Project) -> CarriedRuns {
    let committed = documents::load_config(project).is_ok_and(|config| config.git.commit_runs);
    if committed { CarriedRuns::Whole } else { CarriedRuns::Slim }
}

impl CarryArgs {
    /// Gets ready to carry a change, if that is wanted.
    pub(super) fn open(
        &self,
        context: &Context,
        project: &Project,
        id: &ChangeId,
    ) -> Result<Option<Carrier>, CommandError> {
        let Some(remote) = &self.carry else { return Ok(None) };
        let (holder, patience) = (context.holder(), Duration::from_secs(self.patience));
        let process = || WorkerName::like(&format!("{}-{}", holder.host, holder.pid));
        let options = CarryOptions {
            remote: remote.clone(),
            worker: self.worker.clone().unwrap_or_else(process),
            patience,
            force: false,
            beat: Duration::from_secs(self.beat),
            signers: signers(self.allowed_signers.as_deref(), project)?,
            only_here: if self.discard { OnlyHere::Discard } else { OnlyHere::Keep },
            runs: runs(project),
        };
        Ok(Some(Carrier::open(project, id, options, &GitTool::default(), &holder)?))
    }
}

/// What became of a change that others may have now.
pub(super) struct Given {
    /// What comes next: a decision where its result could not be merged.
    pub(super) coming: Coming,
    /// Where its result is.
    pub(super) landed: Option<Landed>,
}

/// Lets others have a change after a step, or publishes it if nothing is left to do.
pub(super) fn give_back(
    context: &Context,
    project: &Project,
    carrier: &Carrier,
    id: &ChangeId,
    mut coming: Coming,
    known: (Phase, f64),
) -> Result<Given, CommandError> {
    if coming == Coming::Nothing {
        let agents = agents_for(context, project, id)?;
        workflow::commit_rest(&agents, id)?;
        drop(agents);
        let landed = carrier.publish(known.0 == Phase::Archived)?;
        let Some(why) = landed.needs() else {
            return Ok(Given { coming, landed: Some(landed) });
        };
        coming = Coming::Decision { why };
    }
    let carried = after(carrier, &coming, known);
    let as_before = carrier.carried().is_some_and(|before| {
        before.state == carried.state && before.why == carried.why && before.next == carried.next
    });
    // Nothing was done, and the remote says so already.
    if carrier.has_claimed() || !as_before {
        carrier.release(carried)?;
    }
    Ok(Given { coming, landed: None })
}

/// Lets others know that a step has failed. Returns the error with which the command ends.
pub(super) fn failed(carrier: &Carrier, id: &ChangeId, error: CommandError) -> CommandError {
    if carrier.is_lost() {
        return CarrierError::Lost { change: id.clone() }.into();
    }
    if !carrier.has_claimed() {
        return error;
    }
    // What has failed is what comes next, no matter who tries again.
    let before = carrier.carried();
    let carried = Carried {
        why: Line::new(&error.message),
        next: before.as_ref().and_then(|before| before.doing.clone()),
        phase: before.as_ref().and_then(|before| before.phase),
        cost_usd: before.map_or(0.0, |before| before.cost_usd),
        ..carrier.says(CarriedState::Failed)
    };
    match carrier.release(carried) {
        Err(lost @ CarrierError::Lost { .. }) => lost.into(),
        // Who takes over finds the claim of a worker that is silent.
        Err(_) | Ok(()) => error,
    }
}

/// What is said of a change after a step.
pub(super) fn after(
    carrier: &Carrier,
    coming: &Coming,
    (phase, cost_usd): (Phase, f64),
) -> Carried {
    let carried = match coming {
        Coming::Step(next) => {
            let next = Some(carried_step(next));
            Carried { next, ..carrier.says(CarriedState::Ready) }
        }
        Coming::Decision { why } => {
            Carried { why: Line::new(why), ..carrier.says(CarriedState::Waiting) }
        }
        Coming::Nothing => carrier.says(CarriedState::Ready),
    };
    Carried { phase: Some(phase), cost_usd, ..carried }
}

/// A step as it is carried along.
pub(super) fn carried_step(step: &ComingStep) -> CarriedStep {
    CarriedStep {
        step: Line::new(&step.step.to_string()),
        agent: step.agent.map(|agent| Line::new(agent.name())),
        estimate_usd: step.estimate_usd,
    }
}
