use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use agentd_core::carried::WorkerName;
use agentd_core::ids::ChangeId;
use agentd_core::next_step::NextStep;
use agentd_engine::carrier::Begun;
use agentd_engine::change::position;
use serde::Serialize;

use super::carry::PersonArgs;
use super::{Context, planning};
use crate::error::CommandError;
use crate::ui::{BOLD, Output, Screen};

/// Take a change that is worked on by a fleet, to work on it here.
///
/// Claims the change on the remote, so that no worker continues it, and checks it out as it is
/// there. Read it, edit it, decide, run any command of agentd; then give it back with
/// `agentd give`. A new ID is claimed, too: nobody else begins it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd take add-oauth\n  agentd take add-oauth --force     from the worker or person who has it"
)]
pub(crate) struct Args {
    /// Change ID.
    id: String,

    /// Take it from the worker or person who has it; what they push after that is refused.
    #[arg(long)]
    force: bool,

    /// Take only what someone on this list has signed, as for `agentd verify`.
    #[arg(long, value_name = "FILE")]
    allowed_signers: Option<PathBuf>,

    #[command(flatten)]
    person: PersonArgs,
}

/// A change that a person has taken.
#[derive(Debug, Serialize)]
pub(super) struct TakeReport {
    /// `taken`
    action: &'static str,
    /// The change.
    change_id: ChangeId,
    /// Who has it now.
    worker: WorkerName,
    /// Commands that continue from here, the best one first.
    next: Vec<NextStep>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let id = planning::new_id(&args.id)?;
    let project = context.home_of(planning::project(context)?, Some(id.as_str()))?;
    let list = args.allowed_signers.as_deref();
    let carrier = args.person.open(context, &project, &id, args.force, list)?;
    if carrier.begin()? == Begun::Restored {
        context.ui.note(&format!("`{id}` is here as the remote has it"));
    }
    carrier.take()?;
    let next = match project.change_if_open(&id)? {
        Some(_) => position::next_steps(&project, &id)?,
        None => Vec::new(),
    };
    let worker = carrier.worker().clone();
    context.ui.print(&TakeReport { action: "taken", change_id: id, worker, next })?;
    Ok(ExitCode::SUCCESS)
}

impl Output for TakeReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let Self { change_id: id, worker, .. } = self;
        writeln!(screen, "{BOLD}{id}{BOLD:#} is yours ({worker}) until you run: agentd give {id}")?;
        if let Some(command) = self.next.first() {
            writeln!(screen, "\nNext: {BOLD}{command}{BOLD:#}")?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::next_step::Command;
        let change_id = ChangeId::new("add-oauth").unwrap();
        Self {
            action: "taken",
            worker: WorkerName::like("ada-laptop"),
            next: vec![Command::Decide.on(&change_id)],
            change_id,
        }
    }
}
