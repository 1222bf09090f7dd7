//! `REVIEW.md`: the review of an implementation.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::fields::fields;
use super::previous::{self, Previous};
use super::review_block::{self, Issue};
use super::{frontmatter_place, prose_of, push_prose, read_id, section};
use crate::diagnostic::{Counts, Parsed};
use crate::frontmatter::{self, scalar};
use crate::ids::ChangeId;
use crate::outline::Outline;
use crate::rules;
use crate::stamp::Stamp;
use crate::text::{Line, Prose};

/// What a reviewer says of an implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, EnumString)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE", ascii_case_insensitive)]
pub enum CodeVerdict {
    /// Ready for the archive.
    #[serde(rename = "APPROVED")]
    Approved,
    /// It has faults that can be fixed.
    #[serde(rename = "NEEDS_FIX")]
    NeedsFix,
    /// A person has to look at it.
    #[serde(rename = "MAJOR_ISSUES")]
    MajorIssues,
}

impl CodeVerdict {
    /// `APPROVED`, `NEEDS_FIX` or `MAJOR_ISSUES`.
    pub fn label(self) -> &'static str {
        self.into()
    }

    /// The verdict with exactly this label, in any case.
    pub(crate) fn from_label(label: &str) -> Option<Self> {
        label.trim().parse().ok()
    }
}

/// A review of an implementation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The change.
    pub change_id: Option<ChangeId>,
    /// The round of review, from 1.
    pub iteration: u32,
    /// Who reviewed.
    pub reviewer: Line,
    /// When.
    pub created_at: Option<Stamp>,
    /// What was said; nothing where the text has no verdict that can be read.
    pub verdict: Option<CodeVerdict>,
    /// Why, in short.
    pub summary: Prose,
    /// What became of the issues of earlier rounds.
    pub previous: Vec<Previous>,
    /// What was found.
    pub issues: Vec<Issue>,
    /// The highest number that an issue has had in any round, so that none is given twice.
    pub numbered: u32,
}

impl Review {
    /// How many issues there are of each severity.
    pub fn counts(&self) -> Counts {
        Counts::of(self.issues.iter().map(|issue| issue.severity))
    }
}

/// The heading above what became of the issues of earlier rounds.
const EARLIER: &str = "Earlier issues";

#[derive(Deserialize, Default)]
#[serde(default)]
struct FrontmatterFields {
    change_id: Option<String>,
    r#type: Option<String>,
    iteration: Option<u32>,
    reviewer: Option<Line>,
    created_at: Option<Stamp>,
    verdict: Option<String>,
    numbered: Option<u32>,
}

/// Reads a review.
pub fn parse(text: &str) -> Parsed<Review> {
    let outline = Outline::scan(text);
    let mut diagnostics = super::structure_diagnostics(&outline);
    let front: FrontmatterFields = frontmatter::read(text, &outline, &mut diagnostics);
    let top = frontmatter_place(&outline);
    if let Some(kind) = front.r#type.as_deref().filter(|kind| *kind != "review") {
        diagnostics.push(rules::WRONG_TYPE.at(top, format!("type is `{kind}`, not `review`")));
    }
    let verdict = front.verdict.as_deref().and_then(CodeVerdict::from_label);
    if verdict.is_none() {
        diagnostics
            .push(rules::REVIEW_VERDICT.at(top, "this review has no verdict that can be read"));
    }
    let sections = outline.sections(text, 2, outline.body(text));
    let mut issues = Vec::new();
    if let Some(part) = section(&sections, "Issues") {
        for section in outline.sections(text, 3, part.body) {
            match review_block::issue(text, section.title, section.body, issues.len()) {
                Some(issue) => issues.push(issue),
                None => diagnostics.push(rules::REVIEW_ISSUE.at(
                    section.heading.span,
                    format!("`{}` has no severity HIGH, MEDIUM or LOW", section.title),
                )),
            }
        }
    }
    let highest = issues.iter().map(|issue: &Issue| issue.number).max().unwrap_or(0);
    let review = Review {
        numbered: front.numbered.unwrap_or(0).max(highest),
        change_id: read_id(front.change_id.as_ref(), &rules::BAD_ID, top, &mut diagnostics),
        iteration: front.iteration.unwrap_or(1),
        reviewer: front.reviewer.unwrap_or_default(),
        created_at: front.created_at,
        verdict,
        summary: section(&sections, "Summary").map(|s| prose_of(text, s.body)).unwrap_or_default(),
        previous: section(&sections, EARLIER)
            .map(|s| previous::read(&fields(text, s.body)))
            .unwrap_or_default(),
        issues,
    };
    Parsed { value: review, diagnostics }
}

/// Writes a review as agentd does.
pub fn render(review: &Review) -> String {
    let mut out = String::from("---\n");
    if let Some(id) = &review.change_id {
        let _ = writeln!(out, "change_id: {}", scalar(id.as_str()));
    }
    let _ = write!(out, "type: review\niteration: {}\n", review.iteration);
    let _ = writeln!(out, "reviewer: {}", scalar(review.reviewer.as_str()));
    if let Some(stamp) = review.created_at {
        let _ = writeln!(out, "created_at: {stamp}");
    }
    if let Some(verdict) = review.verdict {
        let _ = writeln!(out, "verdict: {}", verdict.label());
    }
    if review.numbered > 0 {
        let _ = writeln!(out, "numbered: {}", review.numbered);
    }
    let id = review.change_id.as_ref().map(ChangeId::as_str).unwrap_or_default();
    let _ = write!(out, "---\n\n# Review: {id}\n\n## Summary\n\n");
    push_prose(&mut out, &review.summary);
    if !review.previous.is_empty() {
        let _ = write!(out, "## {EARLIER}\n\n");
        previous::push(&mut out, &review.previous);
        out.push('\n');
    }
    out.push_str("## Issues\n\n");
    for issue in &review.issues {
        review_block::push_issue(&mut out, issue);
    }
    super::end_with_one_newline(out)
}
