use std::io::{self, Write as _};
use std::process::ExitCode;

use agentd_core::check::{self, FileReport, Weight};
use agentd_core::command_line::CommandLine;
use agentd_core::diagnostic::Counts;
use agentd_core::span::LineIndex;
use agentd_core::text::{counted, printable};
use agentd_engine::change::documents;
use agentd_engine::insight::validate;
use agentd_engine::workflow::clarify;
use serde::Serialize;

use super::Context;
use crate::error::CommandError;
use crate::ui::diagnostics::{self, Allowed, Omitted};
use crate::ui::{BAD, BOLD, DIM, GOOD, Output, Screen};

/// Check the documents of a change, or of the whole project.
///
/// Checks frontmatter, headings, requirement ids, scenarios, references, tasks and their
/// order, and the wording of requirements. Exits with 1 if there are HIGH findings; with
/// `--strict`, also if there are MEDIUM ones. An archived change is checked against the main specs
/// that it began with.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd validate add-oauth\n  agentd validate --all --strict\n  agentd validate --all --sarif > agentd.sarif     for code hosts\n  agentd validate --json | jq '.diagnostics[].code'"
)]
pub(crate) struct Args {
    /// Change ID, or the name of an archived change; optional if only one change is open.
    id: Option<String>,

    /// Check all open changes and main specs.
    #[arg(long, conflicts_with = "id")]
    all: bool,

    /// Also fail on MEDIUM findings.
    #[arg(long)]
    strict: bool,

    /// Print the findings as SARIF 2.1.0.
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project =
        if args.all { context.project()? } else { context.project_of(args.id.as_deref())? };
    let extras = documents::load_config(&project)?.extras();
    let (what, archived, reports) = if args.all {
        let found = validate::validate_all(&project, &extras)?;
        let what =
            format!("{} and {}", counted(found.changes, "change"), counted(found.specs, "spec"));
        (what, false, found.reports)
    } else {
        let change = context.change_to_read(&project, args.id.as_deref())?;
        let (holder, now) = (context.holder(), context.now());
        // Where it cannot be written, the documents can be checked nevertheless.
        if change.archived().is_none()
            && let Ok(Some(_)) = clarify::adopt(&project, change.id(), &holder, now)
        {
            context.ui.note(&clarify::adopted(change.id()));
        }
        let found = validate::validate(&project, &change.snapshot()?, &extras);
        let archived = change.archived().is_some();
        let what = if archived { " (archived)" } else { "" };
        (format!("{}{what}", change.id()), archived, found)
    };
    let counts = check::counts(&reports);
    let valid = counts.high == 0 && !(args.strict && counts.medium > 0);
    if args.sarif {
        context.ui.print_json(&diagnostics::sarif(&reports))?;
    } else {
        let omitted = diagnostics::omitted(&reports);
        let allowed = diagnostics::allowed(&reports);
        context.ui.print(&ValidationReport {
            valid,
            counts,
            diagnostics: reports,
            omitted,
            allowed,
            rules: extras.rules.iter().map(|(code, weight)| RuleSetting { code, weight }).collect(),
            what,
            archived,
        })?;
    }
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A rule that has another weight in this project.
#[derive(Debug, Serialize)]
struct RuleSetting {
    code: &'static str,
    weight: Weight,
}

/// What was found in documents.
#[derive(Debug, Serialize)]
pub(super) struct ValidationReport {
    /// Whether nothing was found that makes validation fail.
    valid: bool,
    /// How many findings there are of each severity.
    counts: Counts,
    /// The findings.
    #[serde(serialize_with = "diagnostics::serialize_findings")]
    diagnostics: Vec<FileReport>,
    /// Findings that are not listed, because there are too many of one rule in a file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    omitted: Vec<Omitted>,
    /// What documents say does not matter, with their reasons.
    allowed: Vec<Allowed>,
    /// The rules that the project sets.
    rules: Vec<RuleSetting>,
    /// What was checked, in words.
    #[serde(skip)]
    what: String,
    /// Whether that is over, so that nothing is to be edited.
    #[serde(skip)]
    archived: bool,
}

impl Output for ValidationReport {
    fn text(&self, screen: &mut Screen<'_>) -> io::Result<()> {
        let Self { valid, counts, diagnostics: reports, allowed, rules, what, .. } = self;
        let columns = screen.columns();
        diagnostics::write_human(screen, reports, columns)?;
        for Allowed { code, file, line, column, reason, .. } in allowed {
            let (file, reason) = (printable(file), printable(reason));
            writeln!(screen, "{DIM}allowed: {file}:{line}:{column}: {code}: {reason}{DIM:#}")?;
        }
        let set: Vec<String> =
            rules.iter().map(|rule| format!("{} = {}", rule.code, rule.weight.name())).collect();
        if !set.is_empty() {
            writeln!(screen, "{DIM}rules of this project: {}{DIM:#}", set.join(", "))?;
        }
        let Counts { high, medium, low } = counts;
        let count = diagnostics::allowed_count(allowed.len());
        writeln!(screen, "{what}: {high} HIGH, {medium} MEDIUM, {low} LOW{count}")?;
        if *valid {
            return writeln!(screen, "{GOOD}✓{GOOD:#} Proposal format validation passed");
        }
        writeln!(screen, "{BAD}✗{BAD:#} Format validation failed")?;
        let all = reports
            .iter()
            .flat_map(|report| report.diagnostics.iter().map(move |found| (report, found)));
        // Of the worst ones, the first.
        if let Some((report, worst)) = all.min_by_key(|(_, found)| found.severity()) {
            let (line, _) = LineIndex::new(&report.text).line_column(worst.span.start);
            let explain = CommandLine::agentd(["explain", worst.rule.code]);
            let path = report.file.path();
            if self.archived {
                writeln!(screen, "\nIt is archived: what counts now are the main specs.")?;
                let all = CommandLine::agentd(["validate", "--all"]);
                writeln!(screen, "\nNext: {BOLD}{all}{BOLD:#}")?;
            } else {
                writeln!(screen, "\nNext: edit {}:{line}", printable(&path))?;
            }
            writeln!(screen, "More about it: {explain}")?;
        }
        Ok(())
    }

    #[cfg(test)]
    fn sample() -> Self {
        use agentd_core::rules;
        use agentd_core::span::Span;
        let file = "agentd/changes/add-oauth/tasks.md".to_owned();
        let rule = &rules::FRONTMATTER_MISSING;
        let omitted = vec![Omitted { code: rule.code, file: file.clone(), count: 1 }];
        let report = FileReport {
            file: check::CheckedFile::Stray(file),
            text: "# Tasks".to_owned(),
            diagnostics: vec![rule.at(Span { start: 0, end: 7 }, "no frontmatter")],
            omitted: Vec::new(),
            allowed: Vec::new(),
        };
        let counts = report.counts();
        let what = "add-oauth".to_owned();
        let (code, name) = (rules::VAGUE_WORD.code, rules::VAGUE_WORD.name);
        let reason = "`fast` is the name of the mode".to_owned();
        let message = "`fast` can mean anything in R1".to_owned();
        let file = "agentd/changes/add-oauth/specs/auth-flow.md".to_owned();
        let allowed = vec![Allowed { code, name, message, file, line: 9, column: 4, reason }];
        let rules = vec![RuleSetting { code, weight: Weight::Low }];
        let diagnostics = vec![report];
        let archived = false;
        Self { valid: false, counts, diagnostics, omitted, allowed, rules, what, archived }
    }
}
