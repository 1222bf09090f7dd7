//! What happens in the demonstration, by the functions that the commands call.

use std::time::Duration;

use agentd_core::config::Speed;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::phase::Phase;
use agentd_core::text::printable;
use agentd_engine::agents::step::{Agents, run_shell};
use agentd_engine::archive::{self, Archived, Request};
use agentd_engine::git::{ChangedFile, Commit, CommitScope, Git, GitTool};
use agentd_engine::process::{Cancel, Limits};
use agentd_engine::store::Project;
use agentd_engine::workflow::begin::CodeStep;
use agentd_engine::workflow::{self, LostSession, Mode, Planned, Report, TaskSelection};

use super::place::{self, TEST_COMMAND};
use crate::cli::agents_setup::agents_for;
use crate::cli::archive::{ArchiveAction, ArchiveReport};
use crate::cli::planning::{self, Begin, ClarifyArgs, GitArg, Outcome, run_workflow};
use crate::cli::{Context, user};
use crate::error::CommandError;

pub(super) const CHANGE: &str = "greet-by-name";
const DESCRIPTION: &str = "Greet people by name";

/// The tests of so small a project end at once.
const TEST_LIMIT: Duration = Duration::from_mins(1);

/// What has happened.
pub(super) struct Story {
    pub(super) archived: Archived,
    /// The exit codes of the tests, before and after.
    pub(super) tests: [Option<i32>; 2],
    /// The commits of the change, oldest first.
    pub(super) commits: Vec<Commit>,
    /// The files of the project that are not as they were.
    pub(super) files: Vec<ChangedFile>,
}

impl Story {
    /// Plays all of it where the context was started, which is empty yet.
    pub(super) fn play(
        context: &Context,
        cancel: &Cancel,
        speed: Speed,
    ) -> Result<Self, CommandError> {
        let tool = GitTool { cancel: Some(cancel.clone()), ..GitTool::default() };
        context.ui.remark("A small project with a test that fails, and recorded agents:");
        place::furnish(context, &context.start, speed, &tool)?;
        let id = planning::new_id(CHANGE)?;
        let project = context.project()?;
        let stage = |command: &str| {
            context.ui.remark(&format!("\n$ {command}"));
            if cancel.reason().is_some() { Err(CommandError::interrupted()) } else { Ok(()) }
        };

        stage(TEST_COMMAND)?;
        let agents = agents_for(context, &project, &id)?;
        let before = test(context, &agents)?;
        drop(agents);

        stage(&format!(
            "agentd plan {CHANGE} \"{DESCRIPTION}\" --auto --skip-clarify --git branch"
        ))?;
        plan(context, &project, &id)?;

        stage(&format!("agentd impl {CHANGE}"))?;
        let after = implement(context)?;

        stage(&format!("agentd archive {CHANGE}"))?;
        let archived = put_away(context, &project, &id)?;

        stage(&format!("git add agentd && git commit -m \"Archive {CHANGE}\""))?;
        let (commits, files) = commit(&tool, &project, &archived)?;
        Ok(Self { archived, tests: [before, after], commits, files })
    }
}

/// Runs the tests of the project as agentd does before a review.
fn test(context: &Context, agents: &Agents) -> Result<Option<i32>, CommandError> {
    let limits = Limits { whole: TEST_LIMIT, idle: TEST_LIMIT, ..Limits::default() };
    let output = run_shell(agents, TEST_COMMAND, limits)?;
    context.ui.remark(printable(output.stdout.trim_end()).as_ref());
    Ok(output.code)
}

fn plan(context: &Context, project: &Project, id: &ChangeId) -> Result<(), CommandError> {
    let agents = agents_for(context, project, id)?;
    let clarify = ClarifyArgs { skip_clarify: true, answers: None };
    let git = Some(GitArg::Branch);
    let begun = Begin {
        description: Some(DESCRIPTION),
        clarify: &clarify,
        track: None,
        git,
        yes: true,
        person: planning::person(context),
    };
    let agents = planning::prepare(context, agents, id, &begun)?;
    let mode = Mode::Automatic;
    let lost = LostSession::Fail;
    let report = match run_workflow(context, &agents, id, |w| workflow::plan(w, mode, lost))? {
        Planned::Done(report) => *report,
        Planned::Ask(question) => return Err(question.decline().into()),
    };
    if !context.ui.json {
        let (report, agents) = (&report, agents.played());
        let (exit_code, shown) = (false, false);
        let outcome = Outcome { change: id, report, mode, agents, exit_code, shown, next: None };
        planning::finish(context, &outcome)?;
    }
    reached(&report, Phase::Challenged)
}

fn implement(context: &Context) -> Result<Option<i32>, CommandError> {
    let built = planning::building(context, Some(CHANGE), CodeStep::Implement)?;
    let report = run_workflow(context, &built.agents, &built.id, |workflow| {
        workflow::implementation(workflow, &TaskSelection::Open)
    })?;
    if !context.ui.json {
        built.finish(context, &report, false)?;
    }
    reached(&report, Phase::Complete)?;
    context.ui.remark(&format!("\n$ {TEST_COMMAND}"));
    test(context, &built.agents)
}

/// The recording leads there, unless it no longer matches this agentd.
fn reached(report: &Report, phase: Phase) -> Result<(), CommandError> {
    if report.phase == phase {
        return Ok(());
    }
    let message = format!("the change is {}, but should be {phase}", report.phase);
    Err(CommandError::new(Kind::Demo, message).cause("the recording does not match this agentd"))
}

fn put_away(context: &Context, project: &Project, id: &ChangeId) -> Result<Archived, CommandError> {
    let (holder, by) = (context.holder(), user(project));
    let now = context.now();
    let request = Request {
        change: id,
        force: None,
        accept_stale: None,
        drop: None,
        resume: false,
        by: &by,
        holder: &holder,
        now,
    };
    let archived = archive::archive(project, &request)?;
    if !context.ui.json {
        context.ui.print(&ArchiveReport::new(
            ArchiveAction::Archived,
            project,
            archived.clone(),
        ))?;
    }
    Ok(archived)
}

/// Commits the specs and the archive; what git knows of the change.
fn commit(
    tool: &GitTool,
    project: &Project,
    archived: &Archived,
) -> Result<(Vec<Commit>, Vec<ChangedFile>), CommandError> {
    let lost = || CommandError::new(Kind::Git, "the repository of the demo is gone");
    let git = Git::discover_with(tool, project.root())?.ok_or_else(lost)?;
    let base = archived.state.git.as_ref().and_then(|git| git.base_commit.as_deref());
    let base = base.ok_or_else(lost)?;
    let files = git.changed_files(base)?;
    let files = files.into_iter().filter(|file| !file.path.starts_with("agentd/")).collect();
    git.commit(CommitScope::Paths(&[layout::agentd_dir()]), &format!("Archive {CHANGE}"))?;
    Ok((git.commits_since(base)?, files))
}
