//! The part of a document that an anchor names: what a person edits in place.

use super::comments::Anchor;
use super::review_block;
use crate::ids::{RequirementId, TaskId};
use crate::layout::ChangeFile;
use crate::outline::{Outline, Section};
use crate::span::Span;
use crate::text::Line;

/// What the title of a heading stands for: a requirement, a task, or itself.
pub fn anchor_of(title: &str) -> Anchor {
    let mark = title.split(':').next().unwrap_or_default().trim();
    if let Ok(requirement) = mark.parse::<RequirementId>() {
        return Anchor::Requirement(requirement);
    }
    let task = mark.strip_prefix("Task ").and_then(|id| id.trim().parse::<TaskId>().ok());
    task.map_or_else(|| Anchor::Heading(Line::new(title)), Anchor::Task)
}

/// Where the named part of a document is: the heading and what is under it, or the whole document.
/// Reviews are no part of a proposal that people edit. None if there is no such part.
pub fn part(text: &str, file: &ChangeFile, at: &Anchor) -> Option<Span> {
    let outline = Outline::scan(text);
    let end = match file {
        ChangeFile::Proposal => review_block::spans(text).first().map_or(text.len(), |it| it.start),
        _ => text.len(),
    };
    if *at == Anchor::Document {
        return Some(Span::new(0, end));
    }
    let within = Span::new(outline.body_start.min(end), end);
    let named = |section: &Section<'_>| anchor_of(section.title) == *at;
    (1..=6).find_map(|level| {
        let sections = outline.sections(text, level, within);
        sections.into_iter().find(named).map(|section| section.span)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::review_block::{PlanVerdict, ReviewBlock};
    use crate::span::Uncompared;

    fn check(at: &str, expected: Option<&str>) {
        let text = "---\na: b\n---\n\n# S\n\n## Requirements\n\n### R1: One\n\none\n\n\
                    ### R2: Two\n\ntwo\n\n#### More\n\nm\n\n## Task 1.1: Do\n\ndo\n";
        let Ok(at) = at.parse();
        let found = part(text, &ChangeFile::Tasks, &at).map(|span| span.of(text));
        assert_eq!(found, expected, "{at}");
    }

    #[test]
    fn a_part_is_a_heading_and_what_is_under_it() {
        check("R1", Some("### R1: One\n\none\n\n"));
        check("R2", Some("### R2: Two\n\ntwo\n\n#### More\n\nm\n\n"));
        check("task 1.1", Some("## Task 1.1: Do\n\ndo\n"));
        check("heading More", Some("#### More\n\nm\n\n"));
        check("R3", None);
        check("line 3", None);
    }

    #[test]
    fn reviews_are_no_part_of_a_proposal() {
        let plan = "# Change: a\n\n## Why\n\nx\n";
        let block = ReviewBlock {
            iteration: 1,
            reviewer: Line::new("codex"),
            date: None,
            plan: None,
            verdict: PlanVerdict::Approved,
            summary: "Fine.".into(),
            previous: Vec::new(),
            issues: Vec::new(),
            place: Uncompared::default(),
        };
        let text = review_block::append(plan, &block);
        let of = |at: &Anchor| part(&text, &ChangeFile::Proposal, at).map(|it| it.of(&text).trim());
        assert_eq!(of(&Anchor::Document), Some(plan.trim()));
        assert_eq!(of(&Anchor::Heading(Line::new("Why"))), Some("## Why\n\nx"));
        assert_eq!(of(&Anchor::Heading(Line::new("Summary"))), None);
    }
}
