//! The command line: one file per command, each with its arguments and what it does.

mod agents_setup;
mod archive;
mod bug;
mod carry;
mod challenge;
mod clarify;
mod completions;
mod context;
#[cfg(test)]
mod contract;
mod cost;
mod decide;
mod demo;
mod diff;
mod doctor;
mod drop;
mod explain;
mod export;
mod fix;
mod fleet;
mod forecast;
mod give;
mod help;
mod implement;
mod implementation;
mod init;
mod list;
mod log;
mod man;
mod mcp;
mod overlap;
mod person;
mod plan;
mod planning;
mod proposal;
#[cfg(test)]
mod reference;
mod rename;
mod replay;
mod reproposal;
mod review;
mod revise;
mod show;
mod status;
mod step;
mod take;
mod trace;
pub(crate) mod trust;
mod unarchive;
mod uninstall;
mod usage;
mod validate;
mod verify;
mod view;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentd_core::agent::AgentKind;
use agentd_core::command_line::CommandLine;
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::layout::ArchiveName;
use agentd_core::nearest::nearest;
use agentd_core::stamp::Stamp;
use agentd_engine::git::{self, GitTool};
use agentd_engine::guard::trust::Consent;
use agentd_engine::opening::{self, Opened};
use agentd_engine::store::{Change, Holder, Project, StoreError, UserDirs};
use clap::{FromArgMatches as _, Parser, Subcommand};
use jiff::Timestamp;

use self::agents_setup::CallArgs;
pub(crate) use self::agents_setup::agents_outside_of_calls;
use self::help::HELP_COLUMNS;
pub(crate) use self::help::definition;
use self::person::login_name;
pub(crate) use self::person::user;
use crate::error::CommandError;
use crate::ui::Ui;
use crate::ui::progress::ProgressMode;

/// Spec-driven development with several coding agents.
#[derive(Debug, Parser)]
#[command(name = "agentd", version, max_term_width = HELP_COLUMNS)]
#[command(
    after_help = "Examples:\n  agentd demo                                    watch a whole change happen, without agents\n  agentd init                                    set up this project\n  agentd plan add-oauth \"Sign in with GitHub\"    from a sentence to a plan that was challenged\n  agentd impl add-oauth                          from the plan to code that was reviewed\n  agentd archive add-oauth                       merge its specs\n  agentd list                                    what waits for you, what runs, what comes next"
)]
struct Cli {
    /// Run as if agentd was started in DIR.
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    #[arg(help_heading = GLOBAL)]
    directory: Option<PathBuf>,

    /// Print exactly one JSON document to stdout.
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,

    /// Do not use a pager for long output.
    #[arg(long, global = true, help_heading = GLOBAL)]
    no_pager: bool,

    #[command(subcommand)]
    command: Command,
}

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Init(init::Args),
    #[command(alias = "new")]
    Plan(plan::Args),
    Bug(bug::Args),
    #[command(name = "impl")]
    Implementation(implementation::Args),
    Step(step::Args),
    Take(take::Args),
    Give(give::Args),
    Fleet(fleet::FleetArgs),
    Worker(fleet::WorkerArgs),
    Clarify(clarify::Args),
    Proposal(proposal::Args),
    Challenge(challenge::Args),
    Reproposal(reproposal::Args),
    Implement(implement::Args),
    Review(review::Args),
    Fix(fix::Args),
    List(list::Args),
    Status(status::Args),
    Show(show::Args),
    Diff(diff::Args),
    #[command(visible_alias = "validate-proposal")]
    Validate(validate::Args),
    Verify(verify::Args),
    Explain(explain::Args),
    Context(context::Args),
    Log(log::Args),
    Cost(cost::Args),
    Decide(decide::Args),
    Revise(revise::Args),
    Rename(rename::Args),
    Archive(archive::Args),
    Drop(drop::Args),
    Unarchive(unarchive::Args),
    Overlap(overlap::Args),
    Trace(trace::Args),
    Export(export::Args),
    Replay(replay::Args),
    View(view::Args),
    Mcp(mcp::Args),
    Trust(trust::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Man(man::Args),
    Uninstall(uninstall::Args),
}

/// What every command gets.
pub(crate) struct Context {
    /// Where output goes.
    pub(crate) ui: Ui,
    /// Where the command was started, or `-C`.
    pub(crate) start: PathBuf,
    /// The command line, to name the holder of a lock.
    pub(crate) command_line: String,
    /// Whether a person has agreed, for this command, to what the project's settings run.
    pub(crate) consent: Consent,
    /// The agent that plays every role in this command, if one was named.
    pub(crate) agent: Option<AgentKind>,
}

impl Command {
    /// What the command line says about the agents that the command calls; nothing if it calls
    /// none.
    fn calls(&self) -> Option<CallArgs> {
        Some(match self {
            Self::Plan(args) => args.calls,
            Self::Bug(args) => args.calls,
            Self::Implementation(args) => args.calls,
            Self::Step(args) => args.calls,
            Self::Give(args) => args.calls,
            Self::Implement(args) => args.calls,
            Self::Review(args) => args.calls,
            Self::Fix(args) => args.calls,
            Self::Proposal(args) => args.calls,
            Self::Challenge(args) => args.calls,
            Self::Reproposal(args) => args.calls,
            Self::Clarify(args) => args.calls,
            // They call no agents, and run nothing of the project's settings.
            Self::Demo(_)
            | Self::Init(_)
            | Self::Take(_)
            | Self::Fleet(_)
            | Self::Worker(_)
            | Self::List(_)
            | Self::Status(_)
            | Self::Show(_)
            | Self::Diff(_)
            | Self::Validate(_)
            | Self::Verify(_)
            | Self::Explain(_)
            | Self::Context(_)
            | Self::Log(_)
            | Self::Cost(_)
            | Self::Decide(_)
            | Self::Revise(_)
            | Self::Rename(_)
            | Self::Archive(_)
            | Self::Drop(_)
            | Self::Unarchive(_)
            | Self::Overlap(_)
            | Self::Trace(_)
            | Self::Export(_)
            | Self::Replay(_)
            | Self::View(_)
            | Self::Mcp(_)
            | Self::Trust(_)
            | Self::Doctor(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Uninstall(_) => return None,
        })
    }
}

impl Context {
    /// The project that the command was started in.
    pub(crate) fn project(&self) -> Result<Project, CommandError> {
        Ok(self.opened(opening::open(&self.start, UserDirs::from_env(), &|| self.holder())?))
    }

    /// The project that a change lives in: that of its worktree, or the one that the command was
    /// started in.
    pub(crate) fn project_of(&self, id: Option<&str>) -> Result<Project, CommandError> {
        self.home_of(self.project()?, id)
    }

    /// The same, from a project that is open.
    pub(crate) fn home_of(
        &self,
        project: Project,
        id: Option<&str>,
    ) -> Result<Project, CommandError> {
        let archived = |id: &str| Some(id.parse::<ArchiveName>().ok()?.change);
        let id = match id {
            Some(id) => ChangeId::new(id).ok().or_else(|| archived(id)),
            None => only_change(&project)?.ok().map(|(id, _)| id),
        };
        Ok(match id {
            Some(id) => self.opened(opening::home_of(project, &id, &|| self.holder())),
            None => project,
        })
    }

    /// This directory as a project, even if agentd was not set up in it.
    pub(crate) fn project_at(&self, root: &Path) -> Result<Project, CommandError> {
        Ok(self.opened(opening::open_root(root, UserDirs::from_env(), &|| self.holder())?))
    }

    fn opened(&self, opened: Opened) -> Project {
        self.ui.repaired(&opened.repaired);
        opened.project
    }

    /// The time.
    pub(crate) fn now(&self) -> Stamp {
        Stamp::new(Timestamp::now())
    }

    /// Who holds the locks that this command takes.
    pub(crate) fn holder(&self) -> Holder {
        Holder::this_process(&self.command_line, Timestamp::now())
    }

    /// The change that is meant: the one named, the only one that is open, or the one whose branch
    /// is checked out.
    pub(crate) fn change(
        &self,
        project: &Project,
        id: Option<&str>,
    ) -> Result<Change, CommandError> {
        let Some(id) = id else {
            return match only_change(project)? {
                Ok((id, home)) => Ok(home.change(&id)?),
                Err(none) if none.is_empty() => Err(no_change()),
                Err(several) => Err(which_one(&several)),
            };
        };
        let wrong = |error: &dyn std::fmt::Display| {
            let error = CommandError::new(Kind::NoSuchChange, error.to_string());
            archived(project, id).unwrap_or_else(|| not_found(project, id, error))
        };
        let id = ChangeId::new(id).map_err(|error| wrong(&error))?;
        match project.change(&id) {
            Err(error @ StoreError::NoSuchChange { .. }) => Err(wrong(&error)),
            result => Ok(result?),
        }
    }

    /// The change that is meant without an ID, if one is: the only one that is open, or the one
    /// whose branch is checked out.
    pub(crate) fn meant(&self, project: &Project) -> Result<Option<ChangeId>, CommandError> {
        Ok(only_change(project)?.ok().map(|(id, _)| id))
    }

    /// The change that is meant, for a command that only reads: an archived one, too.
    pub(crate) fn change_to_read(
        &self,
        project: &Project,
        id: Option<&str>,
    ) -> Result<Change, CommandError> {
        let Some(id) = id else { return self.change(project, None) };
        match project.find_change(id)? {
            Some(change) => Ok(change),
            None => self.change(project, Some(id)),
        }
    }
}

/// The error of a command that works on open changes, if a change of this ID is archived and none is
/// open.
pub(crate) fn archived(project: &Project, id: &str) -> Option<CommandError> {
    let is_open = ChangeId::new(id).is_ok_and(|id| project.change(&id).is_ok());
    let is_archived = || project.archived_as(id).is_ok_and(|archived| !archived.is_empty());
    (!is_open && is_archived()).then(|| {
        CommandError::new(Kind::NoSuchChange, format!("`{id}` is archived"))
            .run("look at it", CommandLine::agentd(["status", id]))
            .run("take it back", CommandLine::agentd(["unarchive", id]))
    })
}

/// What may be meant by an ID that no change here has.
fn not_found(project: &Project, id: &str, error: CommandError) -> CommandError {
    if let Some(branch) = on_another_branch(project, id) {
        let switch = CommandLine::git(["switch", &branch]);
        return error.run(format!("it is on the branch `{branch}`"), switch);
    }
    let open = project.open_everywhere().unwrap_or_default();
    let open: Vec<String> = open.into_iter().map(|(id, _)| id.to_string()).collect();
    if let Some(near) = nearest(id, open.iter().map(String::as_str)) {
        return error.hint(format!("did you mean `{near}`?"));
    }
    let archived = project.archived_everywhere().unwrap_or_default();
    let archived: Vec<String> =
        archived.into_iter().map(|(name, _)| name.change.to_string()).collect();
    match nearest(id, archived.iter().map(String::as_str)) {
        Some(near) => error.hint(format!("did you mean `{near}`, which is archived?")),
        None if open.is_empty() => error.hint("no change is open"),
        None => error.run("see which changes are open", CommandLine::agentd(["list"])),
    }
}

/// The branch of a change whose documents are there and not in this checkout.
fn on_another_branch(project: &Project, id: &str) -> Option<String> {
    let id = ChangeId::new(id).ok()?;
    let repository = git::Git::discover(project.root()).ok()??;
    // From a remote repository, `git switch` brings it along.
    let elsewhere = || repository.on_remote_branch(&id).is_ok_and(|remote| remote.is_some());
    (repository.is_on_its_branch(&id) || elsewhere()).then(|| git::branch_of(&id))
}

/// The only open change, or the one whose branch is checked out, with its project; otherwise all.
fn only_change(
    project: &Project,
) -> Result<Result<(ChangeId, Project), Vec<ChangeId>>, StoreError> {
    let mut open = project.open_everywhere()?;
    if open.len() > 1
        && let Some(current) = git::change_of_branch(&GitTool::default(), project.root())
        && let Some(at) = open.iter().position(|(id, _)| *id == current)
    {
        return Ok(Ok(open.swap_remove(at)));
    }
    match open.pop() {
        Some(only) if open.is_empty() => Ok(Ok(only)),
        last => Ok(Err(open.into_iter().chain(last).map(|(id, _)| id).collect())),
    }
}

fn no_change() -> CommandError {
    let error = CommandError::new(Kind::NoChange, "no change is open");
    error.run("begin one", begin())
}

/// How a change begins.
pub(crate) fn begin() -> CommandLine {
    CommandLine::agentd(["plan"]).change().placeholder("\"<what you want>\"")
}

fn which_one(open: &[ChangeId]) -> CommandError {
    const SHOWN: usize = 8;
    let mut names: Vec<&str> = open.iter().map(ChangeId::as_str).collect();
    names.sort_by(|a, b| list::natural(a, b));
    names.truncate(SHOWN);
    let more = if open.len() > SHOWN { ", …" } else { "" };
    CommandError::usage(format!("{} changes are open: which one?", open.len()))
        .hint(format!("name one: {}{more}", names.join(", ")))
        .run("see where each one stands", CommandLine::agentd(["list"]))
}

/// Runs agentd and returns its exit code.
pub(crate) fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.collect();
    if let Some(answered) = completions::answer(&args) {
        return answered;
    }
    let parsed = definition().try_get_matches_from(&args);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage::not_parsed(&error, &args),
    };
    let words: Vec<String> =
        args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let calls = cli.command.calls();
    let progress = calls.map_or(ProgressMode::Plain, |calls| calls.progress(cli.json));
    let calls = calls.unwrap_or_default();
    let start = cli.directory.unwrap_or_else(|| Path::new(".").to_owned());
    let context = Context {
        ui: Ui { json: cli.json, pages: !cli.no_pager, progress },
        start,
        command_line: format!("agentd {}", words.join(" ")),
        consent: calls.consent(),
        agent: calls.agent(),
    };
    let result = match &cli.command {
        Command::Demo(args) => demo::run(&context, args),
        Command::Init(args) => init::run(&context, args),
        Command::Plan(args) => plan::run(&context, args),
        Command::Bug(args) => bug::run(&context, args),
        Command::Implementation(args) => implementation::run(&context, args),
        Command::Step(args) => step::run(&context, args),
        Command::Take(args) => take::run(&context, args),
        Command::Give(args) => give::run(&context, args),
        Command::Fleet(args) => fleet::fleet(&context, args),
        Command::Worker(args) => fleet::worker(&context, args),
        Command::Implement(args) => implement::run(&context, args),
        Command::Review(args) => review::run(&context, args),
        Command::Fix(args) => fix::run(&context, args),
        Command::Proposal(args) => proposal::run(&context, args),
        Command::Challenge(args) => challenge::run(&context, args),
        Command::Reproposal(args) => reproposal::run(&context, args),
        Command::Clarify(args) => clarify::run(&context, args),
        Command::List(args) => list::run(&context, args),
        Command::Status(args) => status::run(&context, args),
        Command::Show(args) => show::run(&context, args),
        Command::Diff(args) => diff::run(&context, args),
        Command::Validate(args) => validate::run(&context, args),
        Command::Verify(args) => verify::run(&context, args),
        Command::Explain(args) => explain::run(&context, args),
        Command::Context(args) => context::run(&context, args),
        Command::Log(args) => log::run(&context, args),
        Command::Cost(args) => cost::run(&context, args),
        Command::Decide(args) => decide::run(&context, args),
        Command::Revise(args) => revise::run(&context, args),
        Command::Rename(args) => rename::run(&context, args),
        Command::Archive(args) => archive::run(&context, args),
        Command::Drop(args) => drop::run(&context, args),
        Command::Unarchive(args) => unarchive::run(&context, args),
        Command::Overlap(args) => overlap::run(&context, args),
        Command::Trace(args) => trace::run(&context, args),
        Command::Export(args) => export::run(&context, args),
        Command::Replay(args) => replay::run(&context, args),
        Command::View(args) => view::run(&context, args),
        Command::Mcp(args) => mcp::run(&context, args),
        Command::Trust(args) => trust::run(&context, args),
        Command::Doctor(args) => doctor::run(&context, args),
        Command::Completions(args) => completions::run(&context, args),
        Command::Man(args) => man::run(&context, args),
        Command::Uninstall(args) => uninstall::run(&context, args),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            if error.kind != Kind::OutputClosed {
                context.ui.error(&error);
            }
            ExitCode::from(error.kind.exit_code())
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_core::next_step::Command;

    #[test]
    fn every_command_that_is_suggested_exists() {
        for command in Command::ALL {
            let name = command.name();
            assert!(super::definition().find_subcommand(name).is_some(), "{name}");
        }
    }
}
