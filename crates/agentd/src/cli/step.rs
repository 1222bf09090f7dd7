use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::ids::ChangeId;
use agentd_core::phase::Phase;
use agentd_core::text::Prose;
use agentd_engine::archive::{self, ArchiveError, Request};
use agentd_engine::carrier::{Beating, Begun, Carrier, Landed};
use agentd_engine::change::documents;
use agentd_engine::store::Project;
use agentd_engine::workflow::begin::{CodeStep, Person};
use agentd_engine::workflow::{self, Coming, ComingStep, StepKind, Stepping, Until};
use serde::Serialize;

use super::agents_setup::{AgentRun, CallArgs, agents_for};
use super::carry::{self, CarryArgs, Given};
use super::planning::{self, GitArg, run_workflow};
use super::{Context, user};
use crate::error::CommandError;
use crate::ui::{BOLD, DIM, GOOD, Output, Screen, WARN};

/// Do exactly the next step of a change, and say what comes after it.
///
/// A step is one call of an agent, one run of the tests, or the archiving. `agentd plan` and
/// `agentd impl` are loops over steps; this command is for schedulers: a fleet of
/// machines, a CI matrix, a batch queue. It asks nobody. If a person has to decide something, it
/// does nothing, says so in `waiting_for`, and exits with 0.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd step add-oauth \"Let people sign in with GitHub\" --skip-clarify --json\n  agentd step add-oauth --json\n  agentd step add-oauth --next --json     only say what comes next"
)]
pub(crate) struct Args {
    /// Change ID.
    id: String,

    /// What you want; required for a new change.
    description: Option<String>,

    /// Only say what comes next, without doing it.
    #[arg(long)]
    next: bool,

    /// How far to take the change.
    #[arg(long, value_enum, value_name = "STAGE", default_value = "archive")]
    until: UntilArg,

    #[command(flatten)]
    answers: Answers,

    #[command(flatten)]
    clarify: planning::ClarifyArgs,

    /// Where to work: on a branch, in a worktree, or in the current checkout.
    #[arg(long, value_enum, value_name = "WORKFLOW")]
    git: Option<GitArg>,

    #[command(flatten)]
    carry: CarryArgs,

    #[command(flatten)]
    pub(super) calls: CallArgs,
}

/// What a person would be asked.
#[derive(Debug, clap::Args)]
struct Answers {
    /// Don't wait for decisions about the plan: revise and re-challenge until it is approved.
    #[arg(long)]
    auto: bool,

    /// Try again where a limit of rounds was reached.
    #[arg(long)]
    again: bool,

    /// Begin even if the forecast is above `[budget] ask_above_usd`.
    #[arg(long)]
    yes: bool,
}

/// What `--until` takes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum UntilArg {
    /// An approved plan.
    Plan,
    /// Approved code.
    Impl,
    /// The archive.
    Archive,
}

impl From<UntilArg> for Until {
    fn from(arg: UntilArg) -> Self {
        match arg {
            UntilArg::Plan => Self::Plan,
            UntilArg::Impl => Self::Code,
            UntilArg::Archive => Self::Archive,
        }
    }
}

/// What a step has done, and what comes next.
#[derive(Debug, Serialize)]
pub(super) struct StepReport {
    /// The change.
    change_id: ChangeId,
    /// What was done; none if a person has to decide first, or nothing was left to do.
    did: Option<StepKind>,
    /// What comes next; none if a person has to decide first, or nothing is left to do.
    next: Option<ComingStep>,
    /// `decision` if a person has to decide something.
    waiting_for: Option<&'static str>,
    /// What a person has to decide.
    why: Option<String>,
    /// Whether nothing is left to do.
    done: bool,
    /// The branch on the remote that has the result, of a change that was carried and is done.
    landed: Option<String>,
    /// The phase of the change.
    phase: Phase,
    /// What the change has cost so far, in US dollars.
    cost_usd: f64,
    /// The snapshot that the remote has, if the change is carried and not done.
    tip: Option<String>,
}

/// What a step has come to.
struct Stepped {
    did: Option<StepKind>,
    coming: Coming,
    /// Where its result is, of a change that was carried and is done.
    landed: Option<Landed>,
    phase: Phase,
    cost_usd: f64,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let id = planning::new_id(&args.id)?;
    let project = context.home_of(planning::project(context)?, Some(id.as_str()))?;
    let Some(carrier) = args.carry.open(context, &project, &id)? else {
        return print(context, &id, work(context, args, &project, &id, None)?, None);
    };
    if carrier.begin()? == Begun::Restored {
        context.ui.note(&format!("`{id}` was worked on elsewhere: continuing from there"));
    }
    let stepped = work(context, args, &project, &id, Some(&carrier));
    if args.next {
        return print(context, &id, stepped?, carrier.tip());
    }
    let stepped = match stepped {
        Ok(Stepped { did, coming, phase, cost_usd, .. }) => {
            let known = (phase, cost_usd);
            let given = carry::give_back(context, &project, &carrier, &id, coming, known);
            given.map(|Given { coming, landed }| Stepped { did, coming, landed, phase, cost_usd })
        }
        Err(error) => Err(carry::failed(&carrier, &id, error)),
    };
    print(context, &id, stepped?, carrier.tip())
}

/// Does the next step of a change.
fn work(
    context: &Context,
    args: &Args,
    project: &Project,
    id: &ChangeId,
    carrier: Option<&Carrier>,
) -> Result<Stepped, CommandError> {
    let description = args.description.as_deref().map(Prose::new);
    // With another description, it is another change.
    if let Some(archived) = archive::archived_before(project, id)?
        && (description.is_none() || description == archived.state.description)
    {
        let cost_usd = archived.state.total_cost;
        let (coming, phase) = (Coming::Nothing, Phase::Archived);
        return Ok(Stepped { did: None, coming, landed: None, phase, cost_usd });
    }
    let mut agents = agents_for(context, project, id)?;
    agents.agents.carrier = carrier.cloned();
    // Only a branch can be carried.
    let is_new = project.change_if_open(id)?.is_none();
    let branch = (carrier.is_some() && is_new).then_some(GitArg::Branch);
    let begin = planning::Begin {
        description: args.description.as_deref(),
        clarify: &args.clarify,
        track: None,
        git: args.git.or(branch),
        yes: args.answers.yes,
        person: Person::Absent,
    };
    agents = planning::prepare(context, agents, id, &begin)?;
    let mode = planning::mode(&agents, args.answers.auto);
    let how = Stepping { mode, until: args.until.into(), again: args.answers.again };
    let coming = run_workflow(context, &agents, id, |w| workflow::coming(w, how))?;
    let next = match &coming {
        Coming::Step(next) if !args.next => next.clone(),
        Coming::Step(_) | Coming::Decision { .. } | Coming::Nothing => {
            return stepped(&agents.project, id, None, coming);
        }
    };
    // Of a call, the claim is part of its announcement.
    let claim = |agents: &AgentRun| -> Result<Option<Beating>, CommandError> {
        let Some(carrier) = carrier else { return Ok(None) };
        Ok(Some(carrier.claim(carry::carried_step(&next), &agents.cancel)?))
    };
    if next.step == StepKind::Archive {
        let _beating = claim(&agents)?;
        let project = agents.project.clone();
        // Archiving takes the lock itself.
        drop(agents);
        return archive(context, &project, id);
    }
    if is_code(&next.step) {
        agents = planning::place(context, agents, id, CodeStep::Implement, Person::Absent)?;
    }
    let beating = if next.step == StepKind::Tests { claim(&agents)? } else { None };
    let did = run_workflow(context, &agents, id, |w| workflow::single_step(w, how))?;
    drop(beating);
    // What has to be tried again was tried.
    let how = Stepping { again: false, ..how };
    let coming = run_workflow(context, &agents, id, |w| workflow::coming(w, how))?;
    stepped(&agents.project, id, did, coming)
}

fn is_code(step: &StepKind) -> bool {
    use agentd_core::agent::Role::{Implementer, Reviewer};
    match step {
        StepKind::Call(name) => matches!(name.role(), Some(Implementer | Reviewer)),
        StepKind::Tests => true,
        StepKind::Archive => false,
    }
}

fn archive(context: &Context, project: &Project, id: &ChangeId) -> Result<Stepped, CommandError> {
    let (holder, by) = (context.holder(), user(project));
    let request = Request {
        change: id,
        force: None,
        accept_stale: None,
        drop: None,
        resume: false,
        by: &by,
        holder: &holder,
        now: context.now(),
    };
    match archive::archive(project, &request) {
        Ok(archived) => {
            super::archive::commit(context, project, &archived);
            let (did, coming) = (Some(StepKind::Archive), Coming::Nothing);
            let (phase, cost_usd) = (archived.state.phase, archived.state.total_cost);
            Ok(Stepped { did, coming, landed: None, phase, cost_usd })
        }
        Err(error @ ArchiveError::Conflicts { .. }) => {
            let coming = Coming::Decision { why: error.to_string() };
            stepped(project, id, None, coming)
        }
        Err(error) => Err(error.into()),
    }
}

fn stepped(
    project: &Project,
    id: &ChangeId,
    did: Option<StepKind>,
    coming: Coming,
) -> Result<Stepped, CommandError> {
    let state = documents::load_state(&project.change(id)?)?;
    let (phase, cost_usd) = (state.phase, state.total_cost);
    Ok(Stepped { did, coming, landed: None, phase, cost_usd })
}

fn print(
    context: &Context,
    id: &ChangeId,
    stepped: Stepped,
    tip: Option<String>,
) -> Result<ExitCode, CommandError> {
    let Stepped { did, coming, landed, phase, cost_usd } = stepped;
    let (next, why, done) = match coming {
        Coming::Step(next) => (Some(next), None, false),
        Coming::Decision { why } => (None, Some(why), false),
        Coming::Nothing => (None, None, true),
    };
    let waiting_for = why.is_some().then_some("decision");
    let landed = match landed {
        Some(Landed::On(branch)) => Some(branch),
        Some(Landed::NotAllowed { branch, base, why }) => {
            context.ui.warn(&format!(
                "`{base}` takes no pushes from here ({why}): merge `{branch}` into it yourself"
            ));
            Some(branch)
        }
        Some(Landed::Conflict { .. }) | None => None,
    };
    let change_id = id.clone();
    let report =
        StepReport { change_id, did, next, waiting_for, why, done, landed, phase, cost_usd, tip };
    context.ui.print(&report)?;
    Ok(ExitCode::SUCCESS)
}

impl Output for StepReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let id = &self.change_id;
        match &self.did {
            Some(did) => writeln!(screen, "{GOOD}✓{GOOD:#} {id}: {BOLD}{did}{BOLD:#}")?,
            None if self.done => writeln!(screen, "{id}: nothing is left to do")?,
            None => {}
        }
        if let Some(branch) = &self.landed {
            writeln!(screen, "{DIM}its result is on{DIM:#} {branch}")?;
        }
        if let Some(why) = &self.why {
            writeln!(screen, "{WARN}{id} waits for a decision{WARN:#}: {why}")?;
        }
        if let Some(next) = &self.next {
            let by = next.agent.map(|agent| format!(" by {agent}")).unwrap_or_default();
            let about = match next.estimate_usd {
                0.0 => String::new(),
                usd => format!(", about ${usd:.2}"),
            };
            writeln!(screen, "{DIM}next:{DIM:#} {}{by}{about}", next.step)?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self {
            change_id: ChangeId::new("add-oauth").unwrap(),
            did: Some(StepKind::Call(agentd_core::step_name::StepName::ProposalGen)),
            next: Some(sample_step()),
            waiting_for: Some("decision"),
            why: Some("its plan needs revision".to_owned()),
            done: false,
            landed: Some("main".to_owned()),
            phase: Phase::Proposed,
            cost_usd: 0.04,
            tip: Some("8a4c2e07b1d95f36a0c7e418d2b96f5371ce0a84".to_owned()),
        }
    }
}

/// One for the samples of reports.
#[cfg(test)]
pub(super) fn sample_step() -> ComingStep {
    use agentd_core::agent::{AgentKind, Role};
    ComingStep {
        step: StepKind::Call(agentd_core::step_name::StepName::TasksGen),
        role: Some(Role::Planner),
        agent: Some(AgentKind::Gemini),
        vendor: Some("Google"),
        estimate_usd: 0.01,
    }
}
