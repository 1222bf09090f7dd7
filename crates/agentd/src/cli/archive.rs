use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::agent::{AgentKind, Role};
use agentd_core::command_line::CommandLine;
use agentd_core::config::GitCommit;
use agentd_core::diagnostic::Counts;
use agentd_core::diff;
use agentd_core::document::changelog::Touched;
use agentd_core::document::review;
use agentd_core::error_kind::Kind;
use agentd_core::ids::{ChangeId, RequirementId, SpecId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::next_step::{Command, NextStep};
use agentd_core::phase::Phase;
use agentd_core::rel_path::RelPath;
use agentd_core::text::{counted, printable};
use agentd_engine::archive::{
    self, ArchiveError, Archived, Preview, Renumbering, Request, SpecChange, SpecConflict, Totals,
};
use agentd_engine::change::documents;
use agentd_engine::explain::ErrorDetails;
use agentd_engine::git::Git;
use agentd_engine::store::Project;
use agentd_engine::workflow;
use anstyle::Style;
use serde::Serialize;

use super::agents_setup::agents_for;
use super::init::register_merge_driver;
use super::{Context, user};
use crate::error::CommandError;
use crate::ui::markdown::diff_style;
use crate::ui::{BAD, BOLD, DIM, Output, Screen};

/// Merge the specs of a change into the main specs and move the change to the archive.
///
/// The implementation must be approved, unless you use `--force`, and neither the code nor the
/// documents may have been edited since, unless you use `--accept-stale`. Archiving is atomic; if it
/// is interrupted, the next command completes or reverts it. If the change conflicts with
/// edits that others made, the conflicts are shown and nothing is changed; edit the change's
/// spec to say what you want to keep, then run the command again with `--continue`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd archive add-oauth\n  agentd archive add-oauth --dry-run\n  agentd archive add-oauth --continue           after resolving conflicts\n  agentd archive add-oauth --force \"done by hand\""
)]
pub(crate) struct Args {
    /// Change ID; optional if only one change is open.
    id: Option<String>,

    /// Show what would change in the main specs, without changing anything.
    #[arg(long)]
    dry_run: bool,

    /// Resolve the conflicts shown last time in favor of the change's specs.
    #[arg(long = "continue")]
    resume: bool,

    /// Archive even if the implementation is not approved, and record the reason.
    #[arg(long, value_name = "REASON", value_parser = reason)]
    force: Option<String>,

    #[command(flatten)]
    stale: AcceptStale,
}

#[derive(Debug, Clone, clap::Args)]
struct AcceptStale {
    /// Archive even if files or documents were edited since they were approved; needs --note.
    #[arg(long, requires = "note")]
    accept_stale: bool,

    /// Why it is archived although it is stale.
    #[arg(long, value_name = "TEXT", value_parser = reason, requires = "accept_stale")]
    note: Option<String>,
}

fn reason(text: &str) -> Result<String, String> {
    let said = !text.trim().is_empty();
    if said { Ok(text.to_owned()) } else { Err("say why, in a few words".to_owned()) }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    if !args.dry_run
        && let Some(id) = args.id.as_deref().and_then(|id| ChangeId::new(id).ok())
        && let Some(archived) = archive::archived_before(&project, &id)?
    {
        context.ui.print(&ArchiveReport::new(
            ArchiveAction::AlreadyArchived,
            &project,
            archived,
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let change = context.change(&project, args.id.as_deref())?;
    let (holder, by) = (context.holder(), user(&project));
    let request = Request {
        change: change.id(),
        force: args.force.as_deref(),
        accept_stale: args.stale.note.as_deref().filter(|_| args.stale.accept_stale),
        drop: None,
        resume: args.resume,
        by: &by,
        holder: &holder,
        now: context.now(),
    };
    if args.dry_run {
        let preview = archive::preview(&project, &request)?;
        if !preview.conflicts.is_empty() {
            return Err(conflict(context, &request, preview.conflicts)?);
        }
        context.ui.print(&ArchivePreview::new(change.id(), preview))?;
        return Ok(ExitCode::SUCCESS);
    }
    match archive::archive(&project, &request) {
        Ok(archived) => {
            register_merge_driver(context, &project);
            let report = ArchiveReport::new(ArchiveAction::Archived, &project, archived.clone());
            context.ui.print(&report)?;
            let is_committed = commit(context, &project, &archived);
            let in_git = Git::discover(project.root()).is_ok_and(|git| git.is_some());
            if in_git {
                context.ui.remark(next_in_git(change.id(), is_committed).as_str());
            }
            context.ui.remark(&format!("To undo this: {}", Command::Unarchive.on(change.id())));
            Ok(ExitCode::SUCCESS)
        }
        Err(ArchiveError::Conflicts { conflicts }) => Err(conflict(context, &request, conflicts)?),
        Err(error) => Err(error.into()),
    }
}

/// What people do with an archived change.
fn next_in_git(change: &ChangeId, is_committed: bool) -> String {
    if is_committed {
        return "Next: open a pull request".to_owned();
    }
    let add = CommandLine::git(["add", "agentd"]);
    let message = format!("Archive {change}");
    format!("Next: {}", add.and(CommandLine::git(["commit", "-m", &message])))
}

/// Commits the result where the project wants that; says whether it did. The change is archived in any
/// case.
pub(super) fn commit(context: &Context, project: &Project, archived: &Archived) -> bool {
    let name = &archived.name;
    let specs: Vec<SpecId> = archived.specs.iter().map(|change| change.spec.clone()).collect();
    let wanted =
        documents::load_config(project).is_ok_and(|config| config.git.commit != GitCommit::None);
    if !wanted {
        return false;
    }
    let committed = agents_for(context, project, &name.change)
        .and_then(|agents| Ok(workflow::commit_archived(&agents, name, &specs)?));
    match committed {
        Ok(Some(commit)) => {
            let short = commit.get(..10).unwrap_or(&commit);
            context.ui.note(&format!("committed {short} {}: archive", name.change));
            true
        }
        Ok(None) => false,
        Err(error) => {
            context.ui.warn(&format!("it is not committed: {}", error.message));
            false
        }
    }
}

/// What archiving a change would do.
#[derive(Debug, Serialize)]
pub(super) struct ArchivePreview {
    /// `previewed`
    action: &'static str,
    /// The change.
    change_id: ChangeId,
    /// What would happen to each main spec.
    specs: Vec<SpecChange>,
    /// Requirements that would get another id.
    renumbered: Vec<Renumbering>,
    /// Specs of the change that would not be merged, because its proposal does not list them.
    unlisted: Vec<SpecId>,
    /// How much would change.
    totals: Totals,
    /// Why the change cannot be archived now, if so.
    refused: Option<String>,
    /// The changes to the main specs, as a unified diff.
    diff: String,
}

impl ArchivePreview {
    fn new(change: &ChangeId, preview: Preview) -> Self {
        let diff = preview.specs.iter().map(|spec| {
            let path = layout::main_spec(&spec.spec);
            diff::unified(path.as_str(), spec.before.as_deref(), Some(&spec.after))
        });
        Self {
            action: "previewed",
            change_id: change.clone(),
            diff: diff.collect(),
            specs: preview.specs,
            renumbered: preview.renumbered,
            unlisted: preview.unlisted,
            totals: preview.totals,
            refused: preview.refused,
        }
    }
}

impl Output for ArchivePreview {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        for line in printable(&self.diff).lines() {
            let style = diff_style(line);
            writeln!(screen, "{style}{line}{style:#}")?;
        }
        for renumbering in &self.renumbered {
            screen.note(&renumbered(renumbering));
        }
        warn_of_unlisted(screen, &self.unlisted);
        screen.note(&self.totals.to_string());
        if let Some(refused) = &self.refused {
            screen.warn(&format!("it would not be archived now: {refused}"));
        } else if screen.columns().is_some() {
            let archive = Command::Archive.on(&self.change_id);
            screen.note(&format!(
                "Nothing was changed: this was a dry run. To archive it: {archive}"
            ));
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let ArchiveReport { change_id, specs, renumbered, unlisted, totals, .. } =
            ArchiveReport::sample();
        Self {
            action: "previewed",
            change_id,
            specs,
            renumbered,
            unlisted,
            totals,
            refused: Some("the change is proposed".to_owned()),
            diff: "+### R1".to_owned(),
        }
    }
}

/// What `archive` found to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ArchiveAction {
    /// The change was archived.
    Archived,
    /// It was archived before.
    AlreadyArchived,
}

/// A change that was archived.
#[derive(Debug, Serialize)]
pub(super) struct ArchiveReport {
    /// `archived`, or `already_archived` if there was nothing left to do.
    action: ArchiveAction,
    /// The change.
    change_id: ChangeId,
    /// `archived`
    phase: Phase,
    /// The verdict of the last review of its code.
    verdict: Option<&'static str>,
    /// How many rounds of revision there were.
    iteration: u32,
    /// The issues of that review.
    issues: Option<Counts>,
    /// What the change has cost, in US dollars.
    cost_usd: f64,
    /// The agents that were called: none, specs are merged by code.
    agents: BTreeMap<Role, AgentKind>,
    /// Commands that continue from here; none.
    next: Vec<NextStep>,
    /// Its directory in the archive.
    path: RelPath,
    /// What has happened to each main spec.
    pub(super) specs: Vec<SpecChange>,
    /// Requirements that have got another id.
    renumbered: Vec<Renumbering>,
    /// Specs of the change that were not merged, because its proposal does not list them.
    unlisted: Vec<SpecId>,
    /// How much has changed.
    totals: Totals,
}

impl ArchiveReport {
    pub(super) fn new(action: ArchiveAction, project: &Project, archived: Archived) -> Self {
        let path = layout::archived_change(&archived.name);
        let review = project.dir().read_to_string(&path.join(&ChangeFile::Review.path())).ok();
        let state = archived.state;
        Self {
            action,
            change_id: state.change_id,
            phase: state.phase,
            verdict: state.code_review.map(|review| review.verdict.label()),
            iteration: state.iteration,
            issues: review.map(|text| review::parse(&text).value.counts()),
            cost_usd: state.total_cost,
            agents: BTreeMap::new(),
            next: Vec::new(),
            path,
            specs: archived.specs,
            renumbered: archived.renumbered,
            unlisted: archived.unlisted,
            totals: archived.totals,
        }
    }
}

impl Output for ArchiveReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let (id, path) = (&self.change_id, &self.path);
        if self.action == ArchiveAction::AlreadyArchived {
            return writeln!(screen, "{BOLD}{id}{BOLD:#} is archived already in {path}");
        }
        writeln!(screen, "{BOLD}{id}{BOLD:#} is archived in {path}")?;
        let width = self.specs.iter().map(|spec| spec.spec.as_str().len()).max().unwrap_or(0);
        for spec in &self.specs {
            match screen.columns() {
                Some(_) => {
                    let label = format!("  {:width$}  ", spec.spec.as_str());
                    screen.labeled(&label, &in_words(&spec.touched))?;
                }
                None => writeln!(screen, "  {:width$}  {}", spec.spec, fit_list(spec))?,
            }
        }
        for renumbering in &self.renumbered {
            writeln!(screen, "  {}", renumbered(renumbering))?;
        }
        warn_of_unlisted(screen, &self.unlisted);
        writeln!(screen, "{}", self.totals)
    }

    #[cfg(test)]
    fn sample() -> Self {
        let spec = SpecId::new("auth-flow").unwrap();
        let [from, to] = ["R1", "R2"].map(|id| id.parse::<RequirementId>().unwrap());
        let touched = Touched {
            created: true,
            added: vec![to],
            edited: vec![to],
            removed: vec![to],
            renamed: vec![to],
            other: vec!["Overview".to_owned()],
        };
        let specs =
            vec![SpecChange { spec: spec.clone(), touched, before: None, after: String::new() }];
        Self {
            action: ArchiveAction::Archived,
            change_id: ChangeId::new("add-oauth").unwrap(),
            phase: Phase::Archived,
            verdict: Some("APPROVED"),
            iteration: 1,
            issues: Some(Counts::default()),
            cost_usd: 0.4,
            agents: BTreeMap::from([(Role::Challenger, AgentKind::Codex)]),
            next: vec![NextStep::new(Command::List)],
            path: RelPath::new("agentd/archive/2026-11-04-add-oauth").unwrap(),
            specs,
            renumbered: vec![Renumbering { spec: spec.clone(), from, to }],
            unlisted: vec![spec],
            totals: Totals { specs: 1, added: 1, edited: 1, removed: 1, renamed: 1 },
        }
    }
}

/// What has happened to a spec, for people: `new, R1 and R2 added, R3 edited`.
fn in_words(touched: &Touched) -> String {
    const SHOWN: usize = 12;
    let named = |ids: &[RequirementId], how: &str| {
        let more = ids.len().saturating_sub(SHOWN);
        let named: Vec<String> = ids.iter().take(SHOWN).map(ToString::to_string).collect();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!ids.is_empty()).then(|| format!("{how} {}{more}", named.join(", ")))
    };
    let parts = [
        touched.created.then(|| "new".to_owned()),
        named(&touched.added, "added"),
        named(&touched.edited, "edited"),
        named(&touched.removed, "removed"),
        named(&touched.renamed, "renamed"),
        (!touched.other.is_empty()).then(|| counted(touched.other.len(), "other piece")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What has happened to a spec, for programs: `new +R1 ~R2 -R3 →R4`; of many, the first.
fn fit_list(spec: &SpecChange) -> String {
    const SHOWN: usize = 24;
    let touched = &spec.touched;
    let signed = |sign: &'static str, ids: &[RequirementId]| -> Vec<String> {
        ids.iter().map(|id| format!("{sign}{id}")).collect()
    };
    let mut words = Vec::new();
    if touched.created {
        words.push("new".to_owned());
    }
    words.extend(signed("+", &touched.added));
    words.extend(signed("~", &touched.edited));
    words.extend(signed("-", &touched.removed));
    words.extend(signed("→", &touched.renamed));
    if !touched.other.is_empty() {
        words.push(counted(touched.other.len(), "other piece"));
    }
    let more = words.len().saturating_sub(SHOWN);
    words.truncate(SHOWN);
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    words.join(" ")
}

fn warn_of_unlisted(screen: &mut Screen<'_>, specs: &[SpecId]) {
    for spec in specs {
        screen.warn(&format!("specs/{spec}.md is not merged: proposal.md does not list it"));
    }
}

fn renumbered(renumbering: &Renumbering) -> String {
    let Renumbering { spec, from, to } = renumbering;
    format!(
        "{spec}:{from} of the change is now {spec}:{to}, because {from} was taken in the meantime"
    )
}

/// Shows the conflicts to a person; the error that ends the command has them as data.
fn conflict(
    context: &Context,
    request: &Request<'_>,
    conflicts: Vec<SpecConflict>,
) -> Result<CommandError, CommandError> {
    if !context.ui.json {
        show_conflicts(context, request, &conflicts)?;
    }
    Ok(conflict_error(request, conflicts))
}

fn show_conflicts(
    context: &Context,
    request: &Request<'_>,
    conflicts: &[SpecConflict],
) -> Result<(), CommandError> {
    context.ui.show(|screen| conflicts.iter().try_for_each(|it| conflict_text(screen, request, it)))
}

/// A conflict, with its three sides as git shows them.
fn conflict_text(
    screen: &mut Screen<'_>,
    request: &Request<'_>,
    SpecConflict { spec, conflict }: &SpecConflict,
) -> io::Result<()> {
    let about = format!("{spec}: {} {}", conflict.what, conflict.kind.says());
    screen.labeled(&format!("{BAD}conflict{BAD:#}: "), &about)?;
    let ours = ChangeFile::Spec(spec.clone()).path_in_project(request.change);
    for (mark, side, none) in [
        (format!("<<<<<<< {}", layout::main_spec(spec)), &conflict.main, "not there"),
        ("||||||| when the change began".to_owned(), &conflict.base, "not there, or not known"),
        ("=======".to_owned(), &conflict.change, "removed"),
    ] {
        writeln!(screen, "{DIM}{mark}{DIM:#}")?;
        let text = side.as_ref().map_or_else(|| format!("({none})"), Clone::clone);
        screen.paragraph(text.trim_end(), Style::new())?;
    }
    writeln!(screen, "{DIM}>>>>>>> {ours}{DIM:#}\n")
}

fn conflict_error(request: &Request<'_>, conflicts: Vec<SpecConflict>) -> CommandError {
    let id = request.change;
    let first = conflicts.first().map(|conflict| conflict.spec.to_string()).unwrap_or_default();
    let details = ErrorDetails::Conflicts { conflicts: conflicts.clone() };
    let message = ArchiveError::Conflicts { conflicts }.to_string();
    let dir = layout::change_dir(id);
    // What was forced is refused without that.
    let force = request.force.into_iter().flat_map(|reason| ["--force", reason]);
    let archive = CommandLine::agentd(["archive", id.as_str()]).args(force);
    CommandError::new(Kind::Conflict, message)
        .cause("the main specs have changed since the change was started; nothing was archived")
        .run(
            format!("edit {dir}/specs/{first}.md to say what you want to keep, then"),
            archive.clone().args(["--continue"]),
        )
        .run(
            "to keep the text of the main spec, remove the piece from the change's spec, then",
            archive,
        )
        .details(details)
}
