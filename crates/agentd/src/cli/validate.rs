use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::Counts;
use agentd_core::text::counted;
use agentd_engine::change::documents;
use serde_json::json;

use super::Context;
use crate::error::{CommandError, printed};
use crate::ui::diagnostics;
use crate::ui::{BAD, GOOD};

/// Check the documents of a change, or of the whole project.
///
/// Looks at frontmatter, headings, requirement ids, scenarios, references,
/// tasks and their order, and at the words of requirements. Ends with 1 where
/// HIGH findings stand, with `--strict` also for MEDIUM ones.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd validate add-oauth\n  agentd validate --all --strict\n  agentd validate --all --sarif > agentd.sarif     for a code host\n  agentd validate --json | jq '.diagnostics[].code'"
)]
pub(crate) struct Args {
    /// The change; may be left out where exactly one is open.
    id: Option<String>,

    /// Check every change and every main spec.
    #[arg(long, conflicts_with = "id")]
    all: bool,

    /// Fail for MEDIUM findings too.
    #[arg(long)]
    strict: bool,

    /// Print the findings as SARIF 2.1.0.
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let project = context.project()?;
    let extras = documents::load_config(&project)?.extras();
    let (what, reports) = if args.all {
        let found = documents::validate_all(&project, &extras)?;
        let what =
            format!("{} and {}", counted(found.changes, "change"), counted(found.specs, "spec"));
        (what, found.reports)
    } else {
        let change = context.change(&project, args.id.as_deref())?;
        (change.id().to_string(), documents::validate_change(&project, &change, &extras)?)
    };
    let counts = check::counts(&reports);
    let valid = counts.high == 0 && !(args.strict && counts.medium > 0);
    printed(if args.sarif {
        context.ui.print_json(&diagnostics::sarif(&reports))
    } else if context.ui.json {
        let mut document = json!({
            "version": 1,
            "valid": valid,
            "counts": counts,
            "diagnostics": diagnostics::json(&reports),
        });
        let omitted = diagnostics::omitted(&reports);
        if !omitted.is_empty() {
            document["omitted"] = omitted.into();
        }
        context.ui.print_json(&document)
    } else {
        print(context, &what, &reports, counts, valid)
    })?;
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(
    context: &Context,
    what: &str,
    reports: &[FileReport],
    counts: Counts,
    valid: bool,
) -> Result<(), CommandError> {
    let mut out = context.ui.out();
    diagnostics::write_human(&mut out, reports)?;
    writeln!(out, "{what}: {} HIGH, {} MEDIUM, {} LOW", counts.high, counts.medium, counts.low)?;
    if valid {
        writeln!(out, "{GOOD}✓{GOOD:#} Proposal format validation passed")?;
    } else {
        writeln!(out, "{BAD}✗{BAD:#} Format validation failed")?;
        let all = reports.iter().flat_map(|report| &report.diagnostics);
        // Of the worst ones, the first.
        if let Some(worst) = all.min_by_key(|diagnostic| diagnostic.severity()) {
            writeln!(out, "\nNext: agentd explain {}", worst.rule.code)?;
        }
    }
    out.flush()?;
    Ok(())
}
