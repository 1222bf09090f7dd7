//! Writing a document again over a text that people may have edited: the
//! sections and frontmatter keys that agentd owns are replaced, everything
//! around them stays byte for byte.

use super::fields::fields;
use super::proposal::{self, Proposal};
use super::spec::{self, Spec};
use super::{review_block, section};
use crate::frontmatter;
use crate::ids::SpecId;
use crate::outline::Outline;
use crate::span::Span;
use crate::stamp::Stamp;

/// Writes a proposal over an earlier text; the reviews in that text are kept.
pub fn proposal(old: &str, new: &Proposal) -> String {
    let body_end = review_block::find(old).first().map_or(old.len(), |(span, _)| span.start);
    let kept = &old[body_end..];
    let fresh = proposal::render(&Proposal { reviews: Vec::new(), ..new.clone() });
    let own = over(&old[..body_end], &fresh, &proposal::render_sections(new), &[]);
    // The checksum is that of the body as it is now, hand-written parts included.
    let own = proposal::with_checksum(&own);
    if kept.is_empty() { own } else { format!("{}\n\n{kept}", own.trim_end()) }
}

/// The text without a spec among the affected ones, and without dependencies on it; nothing
/// where it is listed in a way that cannot be edited without touching anything else.
pub fn without_spec(text: &str, spec: &SpecId, now: Stamp) -> Option<String> {
    let before = proposal::parse(text).value;
    let mut left = before.affected_specs.clone();
    left.retain(|affected| affected.id != *spec);
    for affected in &mut left {
        affected.depends.retain(|id| id != spec);
    }
    if left == before.affected_specs {
        return Some(text.to_owned());
    }
    let own = &text[..review_block::find(text).first().map_or(text.len(), |(span, _)| span.start)];
    let outline = Outline::scan(own);
    let mut out = text.to_owned();
    let sections = outline.sections(own, 2, outline.body(own));
    let impact = section(&sections, "Impact").map_or(Span::default(), |s| s.body);
    if let Some(field) = fields(own, impact).iter().find(|f| f.is(&["Affected specs"])) {
        out.replace_range(
            field.value.range(),
            &format!(" {}", proposal::ticked(proposal::spec_names(&left))),
        );
    }
    let front = outline.frontmatter.filter(|f| f.closed).map(|f| f.content.of(own));
    if front.is_some_and(|front| front.lines().any(|line| line.starts_with("affected_specs:"))) {
        let value = proposal::render_affected(&left);
        let space = if value.starts_with('\n') { "" } else { " " };
        out = frontmatter::lay_over(&out, &format!("affected_specs:{space}{value}\n"));
    }
    let out = proposal::touch(&out, now);
    let after = proposal::parse(&out).value;
    let (version, updated_at) = (after.version, after.updated_at);
    let wanted = Proposal { affected_specs: left, version, updated_at, ..before };
    (after == wanted).then_some(out)
}

/// Writes a spec over an earlier text.
pub fn spec(old: &str, new: &Spec) -> String {
    let optional = ["Flow", "Interfaces", "Data Model"];
    over(old, &spec::render(new), &spec::render_sections(new), &optional)
}

/// Lays the owned parts of `fresh` over `old`.
fn over(old: &str, fresh: &str, sections: &[(&'static str, String)], optional: &[&str]) -> String {
    let outline = Outline::scan(old);
    if outline.headings.is_empty() || outline.frontmatter.is_some_and(|f| !f.closed) {
        // No part of this text can be identified: it is not a document that a person edited.
        return fresh.to_owned();
    }
    let newline = frontmatter::newline_of(old);
    let mut edits: Vec<(Span, String)> = Vec::new();
    let body = outline.body(old);
    let old_sections = outline.sections(old, 2, body);
    let mut missing_at = old_sections.first().map_or(old.len(), |s| s.span.start);
    for (heading, text) in sections {
        let text = text.trim_end().replace('\n', newline);
        match section(&old_sections, heading) {
            Some(part) => {
                let more = if part.body.end < old.len() { newline } else { "" };
                edits.push((part.body, format!("{newline}{text}{newline}{more}")));
                missing_at = part.span.end;
            }
            None => edits.push((
                Span::at(missing_at),
                format!("## {heading}{newline}{newline}{text}{newline}{newline}"),
            )),
        }
    }
    for heading in optional {
        if !sections.iter().any(|(name, _)| name == heading)
            && let Some(part) = section(&old_sections, heading)
        {
            edits.push((part.span, String::new()));
        }
    }
    let fresh_outline = Outline::scan(fresh);
    let title = |outline: &Outline| outline.headings.iter().find(|h| h.level == 1).map(|h| h.span);
    if let (Some(old_title), Some(new_title)) = (title(&outline), title(&fresh_outline)) {
        edits.push((old_title, new_title.of(fresh).to_owned()));
    }
    edits.sort_by_key(|(span, _)| span.start);
    let mut out = String::with_capacity(old.len() + fresh.len());
    let mut at = 0;
    for (span, text) in edits {
        out.push_str(old.get(at..span.start).unwrap_or_default());
        if span.start == span.end && !out.is_empty() && !out.ends_with('\n') {
            out.push_str(newline);
        }
        out.push_str(&text);
        at = span.end.max(at);
    }
    out.push_str(&old[at..]);
    let front = fresh_outline.frontmatter.map(|f| f.content.of(fresh)).unwrap_or_default();
    frontmatter::lay_over(&out, front)
}
