//! Findings of validation: with a piece of the source for people, as JSON, and
//! as SARIF for CI.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, Write};

use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::{Diagnostic, Severity};
use agentd_core::rules;
use agentd_core::span::LineIndex;
use agentd_core::text::{self, printable};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::measure::fold;
use super::{Ui, columns_of};

/// More findings than this are not read on a terminal.
const SHOWN: usize = 100;

/// Writes the findings with their source, as many as anyone would read, for a terminal of so many
/// columns.
pub(crate) fn write_human(
    out: &mut impl Write,
    reports: &[FileReport],
    columns: Option<usize>,
) -> io::Result<()> {
    let renderer = Renderer::styled();
    let renderer = match columns {
        Some(columns) => renderer.term_width(columns),
        None => renderer,
    };
    let total = reports.iter().map(|report| report.counts().total()).sum::<usize>();
    let mut left = SHOWN;
    for report in reports {
        let index = LineIndex::new(&report.text);
        for diagnostic in report.diagnostics.iter().take(left) {
            writeln!(out, "{}\n", render(&renderer, report, &index, diagnostic))?;
        }
        left = left.saturating_sub(report.diagnostics.len());
    }
    if total > SHOWN {
        let most = if reports.iter().any(|report| !report.omitted.is_empty()) {
            format!("the first {} of each rule", check::FINDINGS_PER_RULE)
        } else {
            "them all".to_owned()
        };
        writeln!(out, "… and {} more; `--json` gives {most}\n", total - SHOWN)?;
    }
    Ok(())
}

impl Ui {
    /// Shows findings on stderr, before the error that they lead to.
    pub(crate) fn show_findings(&self, reports: &[FileReport]) {
        let columns = columns_of(io::stderr());
        let mut text = Vec::new();
        // Into memory, which does not fail.
        let _ = write_human(&mut text, reports, columns);
        let text = String::from_utf8_lossy(&text);
        for line in text.lines() {
            let folded = columns.map_or_else(|| vec![line.to_owned()], |room| fold(line, room));
            // If this fails, there is no one left to report that to; the error itself comes next.
            let _ = writeln!(anstream::stderr(), "{}", folded.join("\n"));
        }
    }
}

fn render(
    renderer: &Renderer,
    report: &FileReport,
    index: &LineIndex<'_>,
    diagnostic: &Diagnostic,
) -> String {
    let level = match diagnostic.severity() {
        Severity::High => Level::ERROR.with_name("HIGH"),
        Severity::Medium => Level::WARNING.with_name("MEDIUM"),
        Severity::Low => Level::INFO.with_name("LOW"),
    };
    let message = printable(&diagnostic.message);
    let path = report.file.path();
    let file = printable(&path);
    let title = level.primary_title(message.as_ref()).id(diagnostic.rule.code);
    let advice = printable(diagnostic.advice());
    // A whole frontmatter underlined says less than its first line, and only that line
    // need be looked at.
    let (line, _) = index.line_column(diagnostic.span.start);
    let source = aligned(index.line(line));
    let group = if report.text.is_empty() {
        title.element(annotate_snippets::Origin::path(file.as_ref()))
    } else {
        let inside = |at: usize| at.saturating_sub(index.line_start(line)).min(source.len());
        let annotation = AnnotationKind::Primary
            .span(inside(diagnostic.span.start)..inside(diagnostic.span.end));
        let snippet = Snippet::source(source.as_ref()).line_start(line).path(file.as_ref());
        title.element(snippet.annotation(annotation))
    };
    renderer.render(&[group.element(Level::HELP.message(advice.as_ref()))])
}

/// The line and column at which a finding starts, and those behind its end.
fn place(index: &LineIndex<'_>, diagnostic: &Diagnostic) -> [usize; 4] {
    let (line, column) = index.line_column(diagnostic.span.start);
    let (end_line, end_column) = index.line_column(diagnostic.span.end);
    [line, column, end_line, end_column]
}

/// A line without what [`printable`] takes out or shows, byte for byte as long as before, so
/// that places still fit.
fn aligned(line: &str) -> Cow<'_, str> {
    let bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    let hidden: BTreeSet<usize> = text::hidden(line).map(|(at, _)| at).collect();
    if hidden.is_empty() && !line.contains(bad) {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    for (at, c) in line.char_indices() {
        match c.len_utf8() {
            length if bad(c) => out.extend(std::iter::repeat_n(' ', length)),
            // As long as nearly all that cannot be seen.
            3 if hidden.contains(&at) => out.push('\u{fffd}'),
            length if hidden.contains(&at) => out.extend(std::iter::repeat_n('?', length)),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A finding, as it is in `--json`.
#[derive(Debug, Serialize)]
struct Finding<'a> {
    /// How much it weighs.
    severity: Severity,
    /// The code of the rule.
    code: &'static str,
    /// The name of the rule.
    name: &'static str,
    /// What is wrong.
    message: &'a str,
    /// The file.
    file: String,
    /// Where it starts; the first line is 1.
    line: usize,
    /// Where it starts; the first column is 1.
    column: usize,
    /// Where it ends.
    end_line: usize,
    /// Where it ends, one past the last column.
    end_column: usize,
    /// What to do about it.
    fix: &'a str,
}

/// Serializes reports as a list of their findings. Lines and columns are computed only here:
/// for text they are not needed.
pub(crate) fn serialize_findings<S: Serializer>(
    reports: &[FileReport],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(reports.iter().flat_map(|report| {
        let (path, index) = (report.file.path(), LineIndex::new(&report.text));
        report.diagnostics.iter().map(move |diagnostic| {
            let [line, column, end_line, end_column] = place(&index, diagnostic);
            Finding {
                severity: diagnostic.severity(),
                code: diagnostic.rule.code,
                name: diagnostic.rule.name,
                message: &diagnostic.message,
                file: path.clone(),
                line,
                column,
                end_line,
                end_column,
                fix: diagnostic.advice(),
            }
        })
    }))
}

/// Findings of one rule that were left out, because there are too many of them.
#[derive(Debug, Serialize)]
pub(crate) struct Omitted {
    /// The code of the rule.
    pub(crate) code: &'static str,
    /// The file.
    pub(crate) file: String,
    /// How many were left out.
    pub(crate) count: usize,
}

/// How many findings of which rule were left out.
pub(crate) fn omitted(reports: &[FileReport]) -> Vec<Omitted> {
    let omitted = reports.iter().flat_map(|report| {
        report.omitted.iter().map(|omitted| Omitted {
            code: omitted.rule.code,
            file: report.file.path(),
            count: omitted.count,
        })
    });
    omitted.collect()
}

/// A finding that a document says does not matter, as it is in `--json`.
#[derive(Debug, Serialize)]
pub(crate) struct Allowed {
    /// The code of the rule.
    pub(crate) code: &'static str,
    /// The name of the rule.
    pub(crate) name: &'static str,
    /// What was found.
    pub(crate) message: String,
    /// The file.
    pub(crate) file: String,
    /// Where it starts; the first line is 1.
    pub(crate) line: usize,
    /// Where it starts; the first column is 1.
    pub(crate) column: usize,
    /// Why it does not matter, in the document's words.
    pub(crate) reason: String,
}

/// What documents say does not matter.
pub(crate) fn allowed(reports: &[FileReport]) -> Vec<Allowed> {
    let allowed = reports.iter().flat_map(|report| {
        let index = LineIndex::new(&report.text);
        report.allowed.iter().map(move |allowed| {
            let finding = &allowed.finding;
            let (line, column) = index.line_column(finding.span.start);
            Allowed {
                code: finding.rule.code,
                name: finding.rule.name,
                message: finding.message.clone(),
                file: report.file.path(),
                line,
                column,
                reason: allowed.reason.to_string(),
            }
        })
    });
    allowed.collect()
}

/// How many findings are allowed, behind a count of findings.
pub(crate) fn allowed_count(count: usize) -> String {
    if count == 0 { String::new() } else { format!(", {count} allowed") }
}

/// The findings as SARIF 2.1.0, which code hosts show at the lines of a change.
pub(crate) fn sarif(reports: &[FileReport]) -> Value {
    let level = |severity| match severity {
        Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low => "note",
    };
    let rules: Vec<Value> = rules::ALL
        .iter()
        .map(|rule| {
            json!({
                "id": rule.code,
                "name": rule.name,
                "shortDescription": { "text": rule.summary },
                "fullDescription": { "text": rule.why },
                "help": { "text": rule.fix },
                "defaultConfiguration": { "level": level(rule.severity) },
            })
        })
        .collect();
    let mut results = Vec::new();
    for report in reports {
        let index = LineIndex::new(&report.text);
        let found = report.diagnostics.iter().map(|finding| (finding, None));
        let allowed = report.allowed.iter().map(|a| (&a.finding, Some(a.reason.as_str())));
        for (diagnostic, reason) in found.chain(allowed) {
            let [line, column, end_line, end_column] = place(&index, diagnostic);
            let mut result = json!({
                "ruleId": diagnostic.rule.code,
                "ruleIndex": rules::ALL.iter().position(|rule| *rule == diagnostic.rule),
                "level": level(diagnostic.severity()),
                "message": { "text": format!("{}. {}", diagnostic.message, diagnostic.advice()) },
                "locations": [{ "physicalLocation": {
                    "artifactLocation": { "uri": report.file.path() },
                    "region": {
                        "startLine": line,
                        "startColumn": column,
                        "endLine": end_line,
                        "endColumn": end_column,
                    },
                } }],
            });
            if let Some(reason) = reason {
                result["suppressions"] = json!([{ "kind": "inSource", "justification": reason }]);
            }
            results.push(result);
        }
    }
    let mut document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "agentd",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    let omitted = omitted(reports);
    if !omitted.is_empty() {
        document["runs"][0]["properties"] = json!({ "omitted": omitted });
    }
    document
}
