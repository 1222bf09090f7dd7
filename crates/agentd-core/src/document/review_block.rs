//! A review of the plan, as a block in `proposal.md`.
//!
//! A block stands between two comments that carry a digest of everything
//! between them. Text inside a block cannot imitate its end: it would have to
//! contain its own digest. The digest also shows when somebody has edited a
//! review after it was given.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::fields::{self, fields};
use super::previous::{self, Previous};
use super::prose_of;
use crate::diagnostic::{Counts, Diagnostic, Severity};
use crate::hash::{Digest, short_digest};
use crate::outline::{Outline, next_line};
use crate::rules;
use crate::span::{Location, Span, Uncompared};
use crate::stamp::Stamp;
use crate::text::{Line, Prose};

/// What a challenger says of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, EnumString)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", ascii_case_insensitive)]
pub enum PlanVerdict {
    /// Ready for implementation.
    #[serde(rename = "APPROVED")]
    Approved,
    /// It has faults that can be fixed.
    #[serde(rename = "NEEDS_REVISION")]
    NeedsRevision,
    /// It is fundamentally wrong.
    #[serde(rename = "REJECTED")]
    Rejected,
}

impl PlanVerdict {
    /// `APPROVED`, `NEEDS_REVISION` or `REJECTED`.
    pub fn label(self) -> &'static str {
        self.into()
    }

    /// The verdict with exactly this label, in any case: "not approved" is none.
    pub(crate) fn from_label(label: &str) -> Option<Self> {
        label.trim().parse().ok()
    }
}

/// One review of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewBlock {
    /// The round of review, from 1.
    pub iteration: u32,
    /// Who reviewed.
    pub reviewer: Line,
    /// When.
    pub date: Option<Stamp>,
    /// The digest of the plan that was reviewed.
    pub plan: Option<Digest>,
    /// What was said.
    pub verdict: PlanVerdict,
    /// Why, in short.
    pub summary: Prose,
    /// What became of the issues of earlier rounds.
    pub previous: Vec<Previous>,
    /// What was found.
    pub issues: Vec<Issue>,
    /// Where the block stands, its markers included.
    pub place: Location,
}

impl ReviewBlock {
    /// How many issues there are of each severity.
    pub fn counts(&self) -> Counts {
        Counts::of(self.issues.iter().map(|issue| issue.severity))
    }

    /// The digest of what it says.
    pub fn hash(&self) -> Digest {
        Digest::of(render(self))
    }
}

/// Something that a review has found, in a plan or in an implementation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Its number, kept over all rounds: `I1`, `I2`, …
    pub number: u32,
    /// How much it weighs.
    pub severity: Severity,
    /// What it is, in a few words.
    pub title: Line,
    /// Where: a spec, a requirement, a task, a file with or without a line.
    pub location: Line,
    /// What is wrong.
    pub description: Prose,
    /// What to do.
    pub recommendation: Prose,
}

const OPEN: &str = "<!-- agentd:review ";
const CLOSE: &str = "<!-- /agentd:review ";

/// Finds the review blocks of a proposal: each block's span and the span of what is inside.
///
/// A block whose digest is right is a block wherever it stands: an unclosed
/// code fence or comment in front of it must not hide a verdict. One whose
/// digest is wrong was edited, and counts unless it is an example in a code block.
pub(crate) fn find(text: &str) -> Vec<(Span, Span)> {
    let mut blocks = Vec::new();
    let mut outline = None;
    let mut closes = None;
    // Examples in code may overlap each other; that must not make hashing quadratic.
    let mut may_hash = text.len().saturating_mul(4);
    let mut at = 0;
    while let Some(found) = memchr::memmem::find(&text.as_bytes()[at..], OPEN.as_bytes()) {
        let start = at + found;
        let inside = next_line(text, start);
        at = inside;
        let line = text[start..inside].trim_end();
        let starts_line = start == 0 || text.as_bytes()[start - 1] == b'\n';
        let Some(mark) = line.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        if !starts_line || mark.len() > 64 || mark.contains(' ') {
            continue;
        }
        let ends = closes.get_or_insert_with(|| close_marks(text)).get(mark);
        let end = ends.and_then(|ends| ends.get(ends.partition_point(|end| *end < inside)));
        let Some(&end) = end else { continue };
        let content = Span::new(inside, end);
        let outline = outline.get_or_insert_with(|| Outline::scan(text));
        let is_comment = outline.comments.binary_search_by_key(&start, |c| c.start).is_ok();
        let mut authentic = || {
            let content = content.of(text);
            let affordable = content.len() <= may_hash;
            may_hash = may_hash.saturating_sub(content.len());
            affordable && mark == short_digest(content)
        };
        if is_comment || authentic() {
            at = next_line(text, content.end);
            blocks.push((Span::new(start, at), content));
        }
    }
    blocks
}

/// Where the review blocks of a proposal stand, their markers included, those
/// that cannot be read among them: code that edits around them asks this.
pub fn spans(text: &str) -> Vec<Span> {
    find(text).into_iter().map(|(span, _)| span).collect()
}

/// A proposal without its reviews.
pub fn without(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (block, _) in find(text) {
        out.push_str(text.get(at..block.start).unwrap_or_default());
        at = block.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Where the closing markers of each block stand, in order.
fn close_marks(text: &str) -> BTreeMap<&str, Vec<usize>> {
    let mut marks: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for start in memchr::memmem::find_iter(text.as_bytes(), CLOSE.as_bytes()) {
        let rest = &text[start + CLOSE.len()..next_line(text, start)];
        let starts_line = start > 0 && text.as_bytes()[start - 1] == b'\n';
        if let Some((mark, _)) = rest.split_once(" -->").filter(|_| starts_line) {
            marks.entry(mark).or_default().push(start);
        }
    }
    marks
}

/// Reads one block.
pub(crate) fn parse(
    text: &str,
    (span, content): (Span, Span),
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<ReviewBlock> {
    let marker = Span::new(span.start, next_line(text, span.start));
    let mark = marker.of(text).trim().strip_prefix(OPEN)?.trim_end_matches("-->").trim();
    if mark != short_digest(content.of(text)) {
        diagnostics
            .push(rules::REVIEW_EDITED.at(marker, "this review was changed after it was given"));
    }
    let inner = content.of(text);
    let outline = Outline::scan(inner);
    let first_issue =
        outline.headings.iter().find(|h| h.level == 3).map_or(inner.len(), |h| h.span.start);
    let heading = outline.headings.iter().find(|h| h.level == 2);
    let head = Span::new(heading.map_or(0, |h| next_line(inner, h.span.end)), first_issue);
    let labels = fields(inner, head);
    let labelled = |names: &[&str]| labels.iter().find(|f| f.is(names));
    let verdicts: Vec<&fields::Field<'_>> = labels.iter().filter(|f| f.is(&["Verdict"])).collect();
    let verdict = match verdicts.as_slice() {
        [one] => PlanVerdict::from_label(one.line().as_str()),
        _ => None,
    };
    let Some(verdict) = verdict else {
        let what = if verdicts.len() > 1 {
            "more than one verdict"
        } else {
            "no verdict that can be read"
        };
        diagnostics.push(rules::REVIEW_VERDICT.at(marker, format!("this review has {what}")));
        return None;
    };
    let behind_labels = labels.last().map_or(head.start, |f| f.span.end);
    let mut issues = Vec::new();
    for section in outline.sections(inner, 3, Span::new(first_issue, inner.len())) {
        match issue(inner, section.title, section.body, issues.len()) {
            Some(issue) => issues.push(issue),
            None => diagnostics.push(rules::REVIEW_ISSUE.at(
                section.heading.span.shifted(content.start),
                format!("`{}` has no severity HIGH, MEDIUM or LOW", section.title),
            )),
        }
    }
    Some(ReviewBlock {
        iteration: heading
            .and_then(|h| h.title.of(inner).rsplit(' ').next().and_then(|n| n.parse().ok()))
            .unwrap_or(1),
        reviewer: labelled(&["Reviewer"]).map(fields::Field::line).unwrap_or_default(),
        date: labelled(&["Date"]).and_then(|f| f.line().as_str().parse().ok()),
        plan: labelled(&["Plan"]).and_then(|f| f.line().as_str().parse().ok()),
        verdict,
        summary: labelled(&["Summary"]).map_or_else(
            || prose_of(inner, Span::new(behind_labels, first_issue)),
            fields::Field::prose,
        ),
        previous: previous::read(&labels),
        issues,
        place: Uncompared(span),
    })
}

/// Reads an issue; field names are those of the contract and their older twins.
pub(crate) fn issue(text: &str, title: &str, body: Span, index: usize) -> Option<Issue> {
    let labels = fields(text, body);
    let labelled = |names: &[&str]| labels.iter().find(|f| f.is(names));
    let prose = |names: &[&str]| labelled(names).map(fields::Field::prose).unwrap_or_default();
    let (number, title) = issue_heading(title);
    Some(Issue {
        number: number.or_else(|| u32::try_from(index + 1).ok())?,
        severity: labelled(&["Severity"]).and_then(|f| Severity::from_name(f.line().as_str()))?,
        title: Line::new(title),
        location: labelled(&["Location", "Spec Reference", "File"])
            .map(fields::Field::line)
            .unwrap_or_default(),
        description: prose(&["Description"]),
        recommendation: prose(&["Recommendation", "Suggestion"]),
    })
}

/// `I3: title`; `Issue #3: title` and a bare title are read too.
fn issue_heading(heading: &str) -> (Option<u32>, &str) {
    let Some((mark, title)) = heading.split_once(':') else { return (None, heading) };
    let digits = mark.trim_start_matches("Issue").trim_start_matches([' ', '#', 'I']);
    match digits.parse() {
        Ok(number) => (Some(number), title),
        Err(_) => (None, heading),
    }
}

/// Writes an issue under a heading of level 3.
pub(crate) fn push_issue(out: &mut String, issue: &Issue) {
    let _ = write!(out, "### I{}: {}\n\n", issue.number, issue.title);
    fields::push_line(out, "Severity", issue.severity.label());
    fields::push_line(out, "Location", &issue.location);
    fields::push_prose(out, "Description", &issue.description);
    fields::push_prose(out, "Recommendation", &issue.recommendation);
    out.push('\n');
}

fn render_content(block: &ReviewBlock) -> String {
    let mut out = String::new();
    let _ = write!(out, "\n## Review {}\n\n", block.iteration);
    fields::push_line(&mut out, "Verdict", block.verdict.label());
    fields::push_line(&mut out, "Reviewer", &block.reviewer);
    if let Some(date) = block.date {
        fields::push_line(&mut out, "Date", date);
    }
    if let Some(plan) = &block.plan {
        fields::push_line(&mut out, "Plan", plan);
    }
    fields::push_prose(&mut out, "Summary", &block.summary);
    previous::push(&mut out, &block.previous);
    out.push('\n');
    for issue in &block.issues {
        push_issue(&mut out, issue);
    }
    out
}

/// Writes a block with its markers.
pub fn render(block: &ReviewBlock) -> String {
    let content = render_content(block);
    let mark = short_digest(&content);
    format!("{OPEN}{mark} -->\n{content}{CLOSE}{mark} -->\n")
}

/// Appends a block to a proposal; nothing else in the text changes.
pub fn append(text: &str, block: &ReviewBlock) -> String {
    let newline = crate::frontmatter::newline_of(text);
    let mut out = text.to_owned();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push_str(newline);
    }
    out.push_str(newline);
    out.push_str(&render(block));
    out
}

/// The report that stands beside the proposal as `CHALLENGE.md`.
pub fn render_report(change: &crate::ids::ChangeId, block: &ReviewBlock) -> String {
    let counts = block.counts();
    let mut out = format!("# Challenge: {change}\n\n");
    out.push_str("<!-- Written by agentd from the latest review in proposal.md. Edit that, not this. -->\n\n");
    let _ = write!(
        out,
        "**Verdict**: {}\n\n{} HIGH, {} MEDIUM, {} LOW\n",
        block.verdict.label(),
        counts.high,
        counts.medium,
        counts.low
    );
    out.push_str(&render_content(block));
    super::end_with_one_newline(out)
}

/// What stands as `CHALLENGE.md` until a plan has its first review: the sections of a report,
/// without anything that could be taken for a verdict (C33).
pub fn render_skeleton(change: &crate::ids::ChangeId) -> String {
    format!(
        "# Challenge: {change}\n\n\
         <!-- Written by agentd before the review, whose report replaces it. -->\n\n\
         ## Verdict\n\nNot given yet.\n\n## Issues\n\n## Summary\n"
    )
}

/// Gives the issues of a new review their numbers: an issue with the title of an earlier
/// one keeps its number, and so does one that a reviewer calls by it (`I3: …`); others
/// take the next free one, above `numbered`, the highest that was ever given, also to issues
/// that are no longer among the earlier ones.
pub fn number_issues(earlier: &[ReviewBlock], numbered: u32, issues: &mut [Issue]) {
    let key = |issue: &Issue| issue.title.as_str().to_lowercase();
    let known: Vec<(String, u32)> = earlier
        .iter()
        .flat_map(|block| &block.issues)
        .map(|issue| (key(issue), issue.number))
        .collect();
    let mut next = known.iter().map(|(_, number)| number.saturating_add(1)).max().unwrap_or(1);
    next = next.max(numbered.saturating_add(1));
    let mut taken: Vec<u32> = Vec::new();
    for issue in issues {
        let free = |n: &u32| !taken.contains(n);
        let called = match issue_heading(issue.title.as_str()) {
            (Some(number), title) if !title.trim().is_empty() => {
                let found = known.iter().any(|(_, n)| *n == number) || number <= numbered;
                found.then(|| (number, Line::new(title)))
            }
            _ => None,
        };
        if let Some((number, title)) = called.filter(|(number, _)| free(number)) {
            issue.title = title;
            issue.number = number;
        } else {
            let same = known.iter().rev().find(|(title, n)| *title == key(issue) && free(n));
            issue.number = same.map_or(next, |(_, number)| *number);
        }
        if issue.number == next {
            next = next.saturating_add(1);
        }
        taken.push(issue.number);
    }
}
