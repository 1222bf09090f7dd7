use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::ids::ChangeId;
use agentd_core::state::State;
use agentd_engine::archive;
use agentd_engine::change::documents;
use agentd_engine::store::Project;
use agentd_engine::workflow::{self, Coming, ComingStep, Mode, Stepping, Until};
use serde::Serialize;

use super::Context;
use super::agents_setup::{CallArgs, agents_for};
use super::carry::{self, PersonArgs};
use super::planning::{mode, run_workflow};
use crate::error::CommandError;
use crate::ui::{BOLD, DIM, Output, Screen, WARN};

/// Give a change to the fleet: one that you have taken, or one that you have begun here.
///
/// Pushes the change as it is here, with what is not committed, and lets workers continue it. It
/// has to be on a branch of its own (`--git branch`).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agentd give add-oauth")]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    #[command(flatten)]
    person: PersonArgs,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

/// A change that was given to the fleet.
#[derive(Debug, Serialize)]
pub(super) struct GiveReport {
    /// `given`
    action: &'static str,
    /// The change.
    change_id: ChangeId,
    /// What comes next; none if a person has to decide first.
    next: Option<ComingStep>,
    /// `decision` if a person has to decide something.
    waiting_for: Option<&'static str>,
    /// What a person has to decide.
    why: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let id = args.id.as_deref();
    let project = context.project_of(id)?;
    if let Some(id) = id.and_then(|id| ChangeId::new(id).ok())
        && let Some(archived) = archive::archived_before(&project, &id)?
    {
        return give_archived(context, args, &project, id, &archived.state);
    }
    let id = context.change(&project, id)?.id().clone();
    let carrier = args.person.open(context, &project, &id, false, None)?;
    carrier.resume()?;
    let agents = agents_for(context, &project, &id)?;
    let mode: Mode = mode(&agents, false);
    let how = Stepping { mode, until: Until::Archive, again: false };
    let coming = run_workflow(context, &agents, &id, |w| workflow::coming(w, how))?;
    let state = documents::load_state(&agents.project.change(&id)?)?;
    drop(agents);
    carrier.release(carry::after(&carrier, &coming, (state.phase, state.total_cost)))?;
    let (next, why) = match coming {
        Coming::Step(next) => (Some(next), None),
        Coming::Decision { why } => (None, Some(why)),
        Coming::Nothing => (None, None),
    };
    let waiting_for = why.is_some().then_some("decision");
    context.ui.print(&GiveReport { action: "given", change_id: id, next, waiting_for, why })?;
    Ok(ExitCode::SUCCESS)
}

/// An archived change is given back where its result could not be merged, and somebody has done that.
fn give_archived(
    context: &Context,
    args: &Args,
    project: &Project,
    id: ChangeId,
    state: &State,
) -> Result<ExitCode, CommandError> {
    let carrier = args.person.open(context, project, &id, false, None)?;
    carrier.resume()?;
    let known = (state.phase, state.total_cost);
    carrier.release(carry::after(&carrier, &Coming::Nothing, known))?;
    let (next, waiting_for, why) = (None, None, None);
    context.ui.print(&GiveReport { action: "given", change_id: id, next, waiting_for, why })?;
    Ok(ExitCode::SUCCESS)
}

impl Output for GiveReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let id = &self.change_id;
        writeln!(screen, "{BOLD}{id}{BOLD:#} can be continued by anyone")?;
        if let Some(why) = &self.why {
            writeln!(screen, "{WARN}it waits for a decision{WARN:#}: {why}")?;
        }
        if let Some(next) = &self.next {
            writeln!(screen, "{DIM}next:{DIM:#} {}", next.step)?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self {
            action: "given",
            change_id: ChangeId::new("add-oauth").unwrap(),
            next: Some(super::step::sample_step()),
            waiting_for: Some("decision"),
            why: Some("its plan needs revision".to_owned()),
        }
    }
}
