//! `<!-- agentd:allow Q001: reason -->`: what a document says does not matter, and why.
//!
//! Agents write documents, so a comment can take back only what is about wording and what no gate
//! depends on: rules in Q, as long as the project does not make them HIGH. What is allowed is
//! counted and listed with its reason wherever findings are.

use std::collections::{BTreeMap, BTreeSet};

use super::CheckedFile;
use crate::diagnostic::{Diagnostic, Rule, Severity};
use crate::document::review_block;
use crate::layout::ChangeFile;
use crate::outline::{Heading, Outline, next_line};
use crate::rules;
use crate::span::Span;
use crate::text::{Line, excerpt};

/// How such a comment starts.
const MARK: &str = "agentd:allow";

/// A finding that a document says does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// What was found.
    pub finding: Diagnostic,
    /// Why it does not matter, in the document's words.
    pub reason: Line,
}

/// The part of a text in which comments count: what a reviewer wrote is not the author's.
pub(super) fn own_text<'t>(file: &CheckedFile, text: &'t str) -> &'t str {
    match file {
        CheckedFile::MainSpec(_)
        | CheckedFile::Change(_, ChangeFile::Spec(_) | ChangeFile::Tasks)
        | CheckedFile::Archived(_, ChangeFile::Spec(_) | ChangeFile::Tasks) => text,
        CheckedFile::Change(_, ChangeFile::Proposal)
        | CheckedFile::Archived(_, ChangeFile::Proposal)
            if text.contains(MARK) =>
        {
            let end = review_block::find(text).first().map_or(text.len(), |(span, _)| span.start);
            &text[..end]
        }
        CheckedFile::Change(..) | CheckedFile::Archived(..) | CheckedFile::Stray(_) => "",
    }
}

/// The comments of a text.
#[derive(Default)]
pub(super) struct Comments {
    allows: Vec<Allow>,
    headings: Vec<Heading>,
    /// The heading above each heading, of which it is a part.
    parents: Vec<Option<usize>>,
    /// What is wrong with the comments themselves.
    wrong: Vec<Diagnostic>,
}

struct Allow {
    rule: &'static Rule,
    reason: Line,
    place: Span,
    /// The line behind the comment.
    next: Span,
}

/// Reads the comments of a text.
pub(super) fn read(text: &str) -> Comments {
    let mut comments = Comments::default();
    // Hardly any text has one.
    if memchr::memmem::find(text.as_bytes(), MARK.as_bytes()).is_none() {
        return comments;
    }
    let outline = Outline::scan(text);
    let marked = |place: &&Span| {
        let inside = place.of(text).trim_start_matches("<!--").trim_start();
        inside.strip_prefix(MARK).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let places: Vec<Span> = outline.comments.iter().filter(marked).copied().collect();
    let mut next = Span::at(text.len());
    // From the end, so that of several comments above a line each one is about that line.
    for (i, place) in places.iter().enumerate().rev() {
        let behind = &text[place.end..];
        let start = place.end + (behind.len() - behind.trim_start().len());
        if places.get(i + 1).is_none_or(|later| later.start != start) {
            next = Span::new(start, next_line(text, start.min(text.len())));
        }
        comments.read_one(text, *place, next);
    }
    comments.allows.reverse();
    comments.misplaced(text, &outline);
    comments.parents = parents(&outline.headings);
    comments.headings = outline.headings;
    comments
}

impl Comments {
    pub(super) fn is_empty(&self) -> bool {
        self.allows.is_empty() && self.wrong.is_empty()
    }

    /// Finds comments that are not at the start of a line: there they do nothing.
    fn misplaced(&mut self, text: &str, outline: &Outline) {
        let fences = outline.fences.iter().map(|fence| &fence.span);
        let mut read: Vec<Span> = outline.comments.iter().chain(fences).copied().collect();
        read.sort_unstable_by_key(|span| span.start);
        let mut read = read.into_iter().peekable();
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&text.as_bytes()[from..], MARK.as_bytes()) {
            let start = memchr::memrchr(b'\n', &text.as_bytes()[..from + at]).map_or(0, |n| n + 1);
            from = next_line(text, from + at);
            let line = text[start..from].trim_end();
            let Some(open) = line.rfind("<!--") else { continue };
            let place = Span::new(start + open, start + line.len());
            while read.next_if(|read| read.end <= place.start).is_some() {}
            if read.peek().is_some_and(|read| read.start <= place.start) {
                continue;
            }
            let inside = line[open + "<!--".len()..].trim_start();
            if inside.starts_with(MARK) && inside.ends_with("-->") {
                let message = "the comment is not on a line of its own".to_owned();
                self.wrong.push(rules::ALLOW_INVALID.at(place, message));
            }
        }
    }

    fn read_one(&mut self, text: &str, place: Span, next: Span) {
        let mut wrong = |message: String| self.wrong.push(rules::ALLOW_INVALID.at(place, message));
        let Some(inside) = place.of(text)["<!--".len()..].strip_suffix("-->") else {
            return wrong("the comment is never closed".to_owned());
        };
        let inside = inside.trim_start().strip_prefix(MARK).unwrap_or_default();
        let (codes, reason) = inside.split_once([':', '：']).unwrap_or((inside, ""));
        let reason = Line::new(reason);
        if reason.is_empty() {
            return wrong("the comment gives no reason".to_owned());
        }
        let codes: BTreeSet<&str> =
            codes.split([',', ' ', '\t', '\n', '\r']).filter(|code| !code.is_empty()).collect();
        if codes.is_empty() {
            return wrong("the comment names no rule".to_owned());
        }
        for code in codes {
            match rules::find(code) {
                Some(rule) if rule.is_advisory() => {
                    self.allows.push(Allow { rule, reason: reason.clone(), place, next });
                }
                Some(rule) => self.wrong.push(rules::ALLOW_INVALID.at(
                    place,
                    format!("{} cannot be allowed: only rules about wording can", rule.code),
                )),
                None => {
                    let message = format!("there is no rule `{}`", excerpt(code, 40));
                    self.wrong.push(rules::ALLOW_INVALID.at(place, message));
                }
            }
        }
    }

    /// Takes out the findings that are allowed, and says what is wrong with the comments.
    pub(super) fn apply(self, found: &mut Vec<Diagnostic>) -> (Vec<Allowed>, Vec<Diagnostic>) {
        let Self { allows, headings, parents, mut wrong } = self;
        if allows.is_empty() {
            return (Vec::new(), wrong);
        }
        let block = |at: usize| headings.partition_point(|h| h.span.start <= at).checked_sub(1);
        let mut in_block: BTreeMap<(Option<usize>, &str), usize> = BTreeMap::new();
        let mut on_line: BTreeMap<&str, BTreeMap<usize, usize>> = BTreeMap::new();
        for (i, allow) in allows.iter().enumerate() {
            in_block.entry((block(allow.place.start), allow.rule.code)).or_insert(i);
            on_line.entry(allow.rule.code).or_default().entry(allow.next.start).or_insert(i);
        }
        let covering = |finding: &Diagnostic| {
            let (at, code) = (finding.span.start, finding.rule.code);
            let line = on_line.get(code).and_then(|lines| lines.range(..=at).next_back());
            if let Some((_, i)) = line.filter(|(_, i)| allows[**i].next.end > at) {
                return Some(*i);
            }
            let mut heading = block(at);
            loop {
                if let Some(i) = in_block.get(&(heading, code)) {
                    return Some(*i);
                }
                // A requirement, a scenario or a task is one block. A whole `##` section is not:
                // one comment would cover every requirement.
                heading = parents[heading?];
                heading.filter(|parent| headings[*parent].level >= 3)?;
            }
        };
        let (mut used, mut gated) = (BTreeSet::new(), BTreeSet::new());
        let mut allowed = Vec::new();
        for finding in std::mem::take(found) {
            match covering(&finding) {
                Some(i) if finding.severity() == Severity::High => {
                    gated.insert(i);
                    found.push(finding);
                }
                Some(i) => {
                    used.insert(i);
                    allowed.push(Allowed { finding, reason: allows[i].reason.clone() });
                }
                None => found.push(finding),
            }
        }
        for (i, allow) in allows.iter().enumerate().filter(|(i, _)| !used.contains(i)) {
            let code = allow.rule.code;
            wrong.push(if gated.contains(&i) {
                let message = format!("{code} cannot be allowed: this project makes it HIGH");
                rules::ALLOW_INVALID
                    .at(allow.place, message)
                    .with_fix("Fix what it finds, or change its weight in agentd/config.toml.")
            } else {
                rules::ALLOW_UNUSED.at(allow.place, format!("there is no {code} to allow here"))
            });
        }
        (allowed, wrong)
    }
}

/// The heading above each heading, of which it is a part.
fn parents(headings: &[Heading]) -> Vec<Option<usize>> {
    let mut open: Vec<usize> = Vec::new();
    let mut parents = Vec::with_capacity(headings.len());
    for (i, heading) in headings.iter().enumerate() {
        while open.last().is_some_and(|last| headings[*last].level >= heading.level) {
            open.pop();
        }
        parents.push(open.last().copied());
        open.push(i);
    }
    parents
}
