use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::command_line::CommandLine;
use agentd_core::diff::{LineDiff, LineKind};
use agentd_core::error_kind::Kind;
use agentd_core::ids::{ChangeId, Layer, SpecId, TaskId};
use agentd_core::text::{counted, printable};
use agentd_engine::change::Snapshot;
use agentd_engine::git::FileChange;
use agentd_engine::insight::diff::{self, CodeDiff, PlanVersion, SpecDelta};
use agentd_engine::store::Project;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::measure::{fit, width, wrap};
use crate::ui::table::{Cell, Column, Table};
use crate::ui::{BAD, BOLD, DIM, GOOD, Output, Screen, WARN};

/// Show what a change has changed: its plan since the last review, the main specs, and the code.
///
/// Without an option, shows all three. Archived changes can be named too, without their code.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[command(
    after_help = "Examples:\n  agentd diff add-oauth\n  agentd diff add-oauth --plan              since the last review\n  agentd diff add-oauth --plan --round 1    since the first one\n  agentd diff add-oauth --specs             against the main specs\n  agentd diff add-oauth --code --stat"
)]
pub(crate) struct Args {
    /// Change ID, or the name of an archived change; optional if only one change is open.
    id: Option<String>,

    /// Show what has changed in the plan since it was last reviewed.
    #[arg(long)]
    plan: bool,

    /// The review to compare the plan with.
    #[arg(long, value_name = "NUMBER", requires = "plan")]
    round: Option<u32>,

    /// Show what archiving the change does to the main specs.
    #[arg(long)]
    specs: bool,

    /// Show the code since the change began.
    #[arg(long)]
    code: bool,

    /// Show only which files have changed, and how much.
    #[arg(long)]
    stat: bool,
}

/// What a change has changed.
#[derive(Debug, Serialize)]
pub(super) struct DiffReport {
    change_id: ChangeId,
    /// None if it was not asked for, or there is no review to compare with.
    plan: Option<PlanReport>,
    /// None if it was not asked for.
    specs: Option<Vec<SpecReport>>,
    /// None if it was not asked for, or there is no commit to compare with.
    code: Option<CodeReport>,
    #[serde(skip)]
    stat: bool,
    #[serde(skip)]
    is_archived: bool,
}

/// What has changed in the plan.
#[derive(Debug, Serialize)]
struct PlanReport {
    /// The review since which it has changed.
    since_round: u32,
    files: Vec<FileReport>,
}

/// What has changed in a file.
#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    /// `added`, `modified`, `deleted` or `renamed`.
    change: &'static str,
    added: u64,
    removed: u64,
    /// The tasks that name it.
    tasks: Vec<TaskId>,
    /// The layers that it belongs to.
    layers: Vec<Layer>,
    /// Whether more of it differs than is here.
    cut: bool,
    diff: LineDiff,
}

/// What happens to a main spec.
#[derive(Debug, Serialize)]
struct SpecReport {
    spec: SpecId,
    added: Vec<String>,
    edited: Vec<String>,
    removed: Vec<String>,
    renamed: Vec<String>,
    /// What others have edited meanwhile, and differently.
    conflicts: Vec<String>,
    /// Requirements that get another ID.
    renumbered: Vec<String>,
    diff: LineDiff,
}

/// The code since the change began.
#[derive(Debug, Serialize)]
struct CodeReport {
    /// The commit that it began from.
    base: String,
    files: Vec<FileReport>,
    /// What differs, or may, and is not shown.
    left_out: Vec<String>,
    cut: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project_of(args.id.as_deref())?;
    let snapshot = context.change_to_read(&project, args.id.as_deref())?.snapshot()?;
    let all = !(args.plan || args.specs || args.code);
    let is_archived = snapshot.change().archived().is_some();
    let plan = if all || args.plan { plan(&snapshot, args.round)? } else { None };
    if args.plan && plan.is_none() {
        context.ui.note("The plan was not reviewed yet: there is nothing to compare it with.");
    }
    let specs = if all || args.specs { Some(specs(&project, &snapshot)?) } else { None };
    let code = if (all || args.code) && !is_archived { code(&project, &snapshot)? } else { None };
    if args.code && is_archived {
        let log = CommandLine::agentd(["log", snapshot.id().as_str()]);
        context.ui.note(&format!(
            "The code of an archived change is in git, and its branch may be gone. Its commits: {log}"
        ));
    } else if args.code && code.is_none() {
        context.ui.note("There is no commit from when the change began to compare its code with.");
    }
    let report = DiffReport {
        change_id: snapshot.id().clone(),
        plan,
        specs,
        code,
        stat: args.stat,
        is_archived,
    };
    context.ui.print_paged(&report, project.root())?;
    Ok(ExitCode::SUCCESS)
}

fn plan(snapshot: &Snapshot, round: Option<u32>) -> Result<Option<PlanReport>, CommandError> {
    let rounds = diff::rounds(snapshot);
    let Some(last) = rounds.last().copied() else { return Ok(None) };
    let since = round.unwrap_or(last);
    let found = diff::plan(snapshot, PlanVersion::Round(since), PlanVersion::Now);
    let Some(found) = found else {
        let message = format!("the plan of review {since} was not kept");
        let known: Vec<String> = rounds.iter().map(ToString::to_string).collect();
        let error = CommandError::new(Kind::NoSuchDocument, message);
        return Err(error.hint(format!("there are: {}", known.join(", "))));
    };
    let files = found.files.into_iter().map(|document| FileReport {
        path: document.file.path().to_string(),
        change: match (document.was_there, document.is_there) {
            (false, _) => "added",
            (true, false) => "deleted",
            (true, true) => "modified",
        },
        added: document.diff.added as u64,
        removed: document.diff.removed as u64,
        tasks: Vec::new(),
        layers: Vec::new(),
        cut: false,
        diff: document.diff,
    });
    Ok(Some(PlanReport { since_round: since, files: files.collect() }))
}

fn specs(project: &Project, snapshot: &Snapshot) -> Result<Vec<SpecReport>, CommandError> {
    let deltas = diff::specs(project, snapshot)?;
    let ids =
        |ids: &[agentd_core::ids::RequirementId]| ids.iter().map(ToString::to_string).collect();
    let report = |delta: SpecDelta| SpecReport {
        added: ids(&delta.touched.added),
        edited: ids(&delta.touched.edited),
        removed: ids(&delta.touched.removed),
        renamed: ids(&delta.touched.renamed),
        conflicts: delta.conflicts.into_iter().map(|conflict| conflict.what).collect(),
        renumbered: delta.renumbered.iter().map(|it| format!("{} → {}", it.from, it.to)).collect(),
        spec: delta.spec,
        diff: delta.diff,
    };
    Ok(deltas.into_iter().map(report).collect())
}

fn code(project: &Project, snapshot: &Snapshot) -> Result<Option<CodeReport>, CommandError> {
    let Some(found) = diff::code(project, snapshot)? else { return Ok(None) };
    let CodeDiff { base, files, left_out, cut } = found;
    let files = files.into_iter().map(|file| FileReport {
        path: file.path,
        change: match file.change {
            FileChange::Added => "added",
            FileChange::Modified => "modified",
            FileChange::Deleted => "deleted",
            FileChange::Renamed { .. } => "renamed",
        },
        added: file.lines.map_or(0, |lines| lines.0),
        removed: file.lines.map_or(0, |lines| lines.1),
        tasks: file.tasks,
        layers: file.layers.into_iter().collect(),
        cut: file.cut,
        diff: file.diff,
    });
    let left_out = left_out.into_iter().map(|file| file.path).collect();
    Ok(Some(CodeReport { base, files: files.collect(), left_out, cut }))
}

impl Output for DiffReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let mut sections = 0;
        let mut heading = |screen: &mut Screen<'_>, text: &str| {
            sections += 1;
            let gap = if sections > 1 { "\n" } else { "" };
            writeln!(screen, "{gap}{BOLD}{text}{BOLD:#}\n")
        };
        if let Some(plan) = &self.plan {
            heading(screen, &format!("Plan, since review {}", plan.since_round))?;
            files(screen, &plan.files, self.stat, Wrapping::Words)?;
        }
        if let Some(specs) = &self.specs {
            let when = if self.is_archived { "by archiving it" } else { "once it is archived" };
            heading(screen, &format!("Main specs, {when}"))?;
            if specs.is_empty() {
                writeln!(screen, "{DIM}unchanged{DIM:#}")?;
            }
            for spec in specs {
                write_spec(screen, spec, self.stat)?;
            }
        }
        if let Some(code) = &self.code {
            let base = code.base.get(..10).unwrap_or(&code.base);
            heading(screen, &format!("Code, since {base}"))?;
            files(screen, &code.files, self.stat, Wrapping::Cut)?;
            for path in &code.left_out {
                screen.paragraph(&format!("not shown: {path}"), DIM)?;
            }
            if code.cut {
                screen.paragraph("there is more than is shown here; git diff has it", DIM)?;
            }
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        let diff = agentd_core::diff::markdown("# A\n\nOne.\n", "# A\n\nTwo.\n");
        let file = || FileReport {
            path: "src/token.rs".to_owned(),
            change: "modified",
            added: 1,
            removed: 1,
            tasks: vec!["1.1".parse().unwrap()],
            layers: vec![Layer::Data],
            cut: false,
            diff: diff.clone(),
        };
        let ids = || vec!["R1".to_owned()];
        Self {
            change_id: ChangeId::new("add-oauth").unwrap(),
            plan: Some(PlanReport { since_round: 1, files: vec![file()] }),
            specs: Some(vec![SpecReport {
                spec: SpecId::new("auth-flow").unwrap(),
                added: ids(),
                edited: ids(),
                removed: ids(),
                renamed: ids(),
                conflicts: ids(),
                renumbered: ids(),
                diff: diff.clone(),
            }]),
            code: Some(CodeReport {
                base: "0123456789abcdef0123456789abcdef01234567".to_owned(),
                files: vec![file()],
                left_out: vec!["target/".to_owned()],
                cut: true,
            }),
            stat: false,
            is_archived: false,
        }
    }
}

/// What happens to lines that are too long for the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrapping {
    /// They are broken between words, as prose is.
    Words,
    /// They are cut, as code is.
    Cut,
}

/// Files with their lines, or a table of them.
fn files(
    screen: &mut Screen<'_>,
    files: &[FileReport],
    stat: bool,
    wrapping: Wrapping,
) -> io::Result<()> {
    if files.is_empty() {
        return writeln!(screen, "{DIM}unchanged{DIM:#}");
    }
    if stat {
        let mut table = Table::new([
            Column::new("").least_end(20),
            Column::new("").optional(1),
            Column::figures(""),
            Column::figures(""),
            Column::new("").optional(0).least(10),
        ]);
        for file in files {
            let tasks: Vec<String> = file.tasks.iter().map(ToString::to_string).collect();
            table.row([
                Cell::new(&file.path),
                Cell::styled(file.change, DIM),
                Cell::styled(format!("+{}", file.added), GOOD),
                Cell::styled(format!("-{}", file.removed), BAD),
                Cell::styled(tasks.join(", "), DIM),
            ]);
        }
        screen.table(&table)?;
        let (added, removed) =
            files.iter().fold((0, 0), |all, file| (all.0 + file.added, all.1 + file.removed));
        let count = counted(files.len(), "file");
        return writeln!(screen, "{count}, {GOOD}+{added}{GOOD:#} {BAD}-{removed}{BAD:#}");
    }
    for (index, file) in files.iter().enumerate() {
        if index > 0 {
            writeln!(screen)?;
        }
        let tasks: Vec<String> = file.tasks.iter().map(ToString::to_string).collect();
        let tasks =
            if tasks.is_empty() { String::new() } else { format!(", task {}", tasks.join(", ")) };
        let (added, removed) = (file.added, file.removed);
        let about = format!("{} (+{added} -{removed}){tasks}", file.change);
        screen.labeled(&format!("{BOLD}{}{BOLD:#}  ", printable(&file.path)), &about)?;
        lines(screen, &file.diff, wrapping)?;
        if file.cut {
            writeln!(screen, "{DIM}… more of it differs{DIM:#}")?;
        }
    }
    Ok(())
}

fn write_spec(screen: &mut Screen<'_>, spec: &SpecReport, stat: bool) -> io::Result<()> {
    let mut parts = Vec::new();
    for (words, ids) in [
        ("adds", &spec.added),
        ("edits", &spec.edited),
        ("removes", &spec.removed),
        ("renames", &spec.renamed),
        ("renumbers", &spec.renumbered),
    ] {
        if !ids.is_empty() {
            parts.push(format!("{words} {}", ids.join(", ")));
        }
    }
    let about = if parts.is_empty() { "unchanged".to_owned() } else { parts.join("; ") };
    screen.labeled(&format!("{BOLD}{}{BOLD:#}  ", spec.spec), &about)?;
    for conflict in &spec.conflicts {
        screen.paragraph(&format!("conflict: {conflict} was edited in the main spec too"), WARN)?;
    }
    if !stat {
        lines(screen, &spec.diff, Wrapping::Words)?;
    }
    Ok(())
}

/// The lines that differ, with some around them.
fn lines(screen: &mut Screen<'_>, diff: &LineDiff, wrapping: Wrapping) -> io::Result<()> {
    for hunk in &diff.hunks {
        let under = printable(&hunk.under);
        let under = screen
            .columns()
            .map_or_else(|| under.to_string(), |room| fit(&under, room.saturating_sub(3)));
        writeln!(screen, "{DIM}@@ {under}{DIM:#}")?;
        for line in &hunk.lines {
            let (sign, style) = match line.kind {
                LineKind::Same => (' ', anstyle::Style::new()),
                LineKind::Removed => ('-', BAD),
                LineKind::Added => ('+', GOOD),
            };
            let text = line.text().replace('\t', "    ");
            let Some(columns) = screen.columns() else {
                writeln!(screen, "{sign}{}", printable(&text))?;
                continue;
            };
            let room = columns.saturating_sub(1);
            let pieces = match wrapping {
                Wrapping::Words if width(&text) > room => wrap(&text, room),
                _ => vec![fit(&text, room)],
            };
            for piece in pieces {
                writeln!(screen, "{style}{sign}{piece}{style:#}")?;
            }
        }
    }
    Ok(())
}
