use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::diff;
use agentd_core::document::review;
use agentd_core::ids::RequirementId;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::text::{counted, printable};
use agentd_engine::archive::{
    self, ArchiveError, Archived, Preview, Renumbering, Request, SpecChange, SpecConflict,
};
use agentd_engine::store::Project;
use serde_json::{Value, json};

use super::{Context, user};
use crate::error::CommandError;
use crate::ui::{BAD, BOLD, DIM};

/// Merge the specs of a change into the main specs and put the change away.
///
/// Only a change whose implementation is approved is archived, unless forced. Everything
/// happens or nothing: a kill at any moment is put right by the next command. Edits that
/// contradict those of others are shown, and nothing is changed; edit the spec of the
/// change so that it says what shall hold, then go on with `--continue`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd archive add-oauth\n  agentd archive add-oauth --dry-run\n  agentd archive add-oauth --continue           after editing what was in conflict\n  agentd archive add-oauth --force \"done by hand\""
)]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,

    /// Print what would change in the main specs, and change nothing.
    #[arg(long)]
    dry_run: bool,

    /// Let the change's text win in the conflicts that were shown last time.
    #[arg(long = "continue")]
    resume: bool,

    /// Archive it although its implementation is not approved; the reason is recorded.
    #[arg(long, value_name = "REASON", value_parser = reason)]
    force: Option<String>,
}

fn reason(text: &str) -> Result<String, String> {
    let said = !text.trim().is_empty();
    if said { Ok(text.to_owned()) } else { Err("say why, in a few words".to_owned()) }
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let change = context.change(&project, args.id.as_deref())?;
    let (holder, by) = (context.holder(), user());
    let request = Request {
        change: change.id(),
        force: args.force.as_deref(),
        resume: args.resume,
        by: &by,
        holder: &holder,
        now: context.now(),
    };
    if args.dry_run {
        let preview = archive::preview(&project, &request)?;
        return show_preview(context, &request, &preview);
    }
    match archive::archive(&project, &request) {
        Ok(archived) => show_archived(context, &project, &archived),
        Err(ArchiveError::Conflicts { conflicts }) => {
            if !context.ui.json {
                show_conflicts(context, &request, &conflicts)?;
            }
            Err(conflict_error(&request, conflicts))
        }
        Err(error) => Err(error.into()),
    }
}

fn show_preview(
    context: &Context,
    request: &Request<'_>,
    preview: &Preview,
) -> Result<ExitCode, CommandError> {
    let diffs: String = preview
        .specs
        .iter()
        .map(|spec| {
            let path = layout::main_spec(&spec.spec);
            diff::unified(path.as_str(), spec.before.as_deref(), Some(&spec.after))
        })
        .collect();
    if !preview.conflicts.is_empty() {
        if !context.ui.json {
            show_conflicts(context, request, &preview.conflicts)?;
        }
        return Err(conflict_error(request, preview.conflicts.clone()));
    }
    if context.ui.json {
        let document = json!({
            "version": 1,
            "action": "previewed",
            "change_id": request.change,
            "specs": preview.specs,
            "renumbered": preview.renumbered,
            "totals": preview.totals,
            "refused": preview.refused.as_ref().map(ToString::to_string),
            "diff": diffs,
        });
        context.ui.print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = context.ui.out();
    write!(out, "{}", printable(&diffs))?;
    out.flush()?;
    for renumbering in &preview.renumbered {
        context.ui.note(&renumbered(renumbering));
    }
    context.ui.note(&format!("{} in {}", preview.totals, counted(preview.totals.specs, "spec")));
    if let Some(refused) = &preview.refused {
        context.ui.warn(&format!("it would not be archived now: {refused}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn show_archived(
    context: &Context,
    project: &Project,
    archived: &Archived,
) -> Result<ExitCode, CommandError> {
    let path = layout::archived_change(&archived.name);
    let state = &archived.state;
    let next = format!("agentd unarchive {}", state.change_id);
    if context.ui.json {
        let review_path = path.join(&ChangeFile::Review.path());
        let issues = project.dir().read_to_string(&review_path).ok();
        let issues = issues.map(|text| review::parse(&text).value.counts());
        let document = json!({
            "version": 1,
            "action": "archived",
            "change_id": state.change_id,
            "phase": state.phase,
            "verdict": state.code_review.as_ref().map(|review| review.verdict.label()),
            "iteration": state.iteration,
            "issues": issues,
            "cost_usd": state.total_cost,
            "next": Vec::<Value>::new(),
            "path": path,
            "specs": archived.specs,
            "renumbered": archived.renumbered,
            "totals": archived.totals,
        });
        crate::error::printed(context.ui.print_json(&document))?;
        return Ok(ExitCode::SUCCESS);
    }
    crate::error::printed(print_archived(context, archived, path.as_str()))?;
    context.ui.note(&format!("To take it back: {next}"));
    Ok(ExitCode::SUCCESS)
}

/// Says what has become of the change and of the main specs.
pub(super) fn print_archived(
    context: &Context,
    archived: &Archived,
    path: &str,
) -> Result<(), CommandError> {
    let mut out = context.ui.out();
    let id = &archived.state.change_id;
    writeln!(out, "{BOLD}{id}{BOLD:#} is archived in {path}")?;
    let width = archived.specs.iter().map(|spec| spec.spec.as_str().len()).max().unwrap_or(0);
    for spec in &archived.specs {
        writeln!(out, "  {:width$}  {}", spec.spec, fit_list(spec))?;
    }
    for renumbering in &archived.renumbered {
        writeln!(out, "  {}", renumbered(renumbering))?;
    }
    writeln!(out, "{} in {}", archived.totals, counted(archived.totals.specs, "spec"))?;
    out.flush()?;
    Ok(())
}

/// What happens to a spec: `new +R1 ~R2 -R3 →R4`; of many, the first.
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

fn renumbered(renumbering: &Renumbering) -> String {
    let Renumbering { spec, from, to } = renumbering;
    format!("{spec}:{from} of the change is {spec}:{to} now, since {from} was given away meanwhile")
}

fn show_conflicts(
    context: &Context,
    request: &Request<'_>,
    conflicts: &[SpecConflict],
) -> Result<(), CommandError> {
    let mut out = context.ui.out();
    for SpecConflict { spec, conflict } in conflicts {
        let what = printable(&conflict.what);
        writeln!(out, "{BAD}conflict{BAD:#}: {spec}: {what} {}", conflict.kind.says())?;
        let ours = ChangeFile::Spec(spec.clone()).path_in_project(request.change);
        let side = |text: &Option<String>, none: &str| {
            text.as_deref().map_or_else(|| format!("({none})"), |text| printable(text).into_owned())
        };
        writeln!(out, "{DIM}<<<<<<< {}{DIM:#}", layout::main_spec(spec))?;
        writeln!(out, "{}", side(&conflict.main, "not there").trim_end())?;
        writeln!(out, "{DIM}||||||| when the change began{DIM:#}")?;
        writeln!(out, "{}", side(&conflict.base, "not there, or not known").trim_end())?;
        writeln!(out, "{DIM}======={DIM:#}")?;
        writeln!(out, "{}", side(&conflict.change, "removed").trim_end())?;
        writeln!(out, "{DIM}>>>>>>> {ours}{DIM:#}\n")?;
    }
    out.flush()?;
    Ok(())
}

fn conflict_error(request: &Request<'_>, conflicts: Vec<SpecConflict>) -> CommandError {
    let id = request.change;
    let first = conflicts.first().map(|conflict| conflict.spec.to_string()).unwrap_or_default();
    let details = json!({ "conflicts": conflicts });
    let message = ArchiveError::Conflicts { conflicts }.to_string();
    let dir = layout::change_dir(id);
    CommandError::new("conflict", message)
        .cause("the main specs have changed since the change began; nothing was archived")
        .hint(format!(
            "edit {dir}/specs/{first}.md so that it says what shall hold, then: agentd archive {id} --continue"
        ))
        .hint(format!(
            "to keep the text of the main spec, take the piece out of the change's spec, then: agentd archive {id}"
        ))
        .details(details)
}
