//! Rules for `proposal.md`.

use std::collections::BTreeSet;

use super::{Context, has, looked_up, missing_section, quality};
use crate::diagnostic::Diagnostic;
use crate::document::proposal::Proposal;
use crate::frontmatter;
use crate::graph;
use crate::ids::SpecId;
use crate::rules;
use crate::span::{Span, word_in};

const SECTIONS: [&str; 4] = ["Summary", "Why", "What Changes", "Impact"];

pub(super) fn check(
    proposal: &Proposal,
    text: &str,
    context: &Context<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let top = proposal.place.frontmatter.0;
    if !proposal.place.has_frontmatter.0 && !has(found, &rules::FRONTMATTER_UNCLOSED) {
        found.push(rules::PROPOSAL_FRONTMATTER.at(top, "proposal.md has no frontmatter"));
    }
    if let Some(id) = proposal.id.as_ref().filter(|id| *id != context.id) {
        let message =
            format!("this is the proposal of `{id}`, in the directory of `{}`", context.id);
        found.push(rules::ID_MISMATCH.at(top, message));
    }
    let parts = [
        ("Summary", proposal.summary.is_empty()),
        ("Why", proposal.why.is_empty()),
        ("What Changes", proposal.what_changes.is_empty()),
    ];
    let section = |name: &str| proposal.place.sections.0.iter().find(|s| s.is(name));
    for name in SECTIONS {
        if section(name).is_none() {
            found.push(missing_section(&rules::PROPOSAL_SECTION, name, &SECTIONS, text, top));
        }
    }
    for (name, empty) in parts {
        if empty && let Some(section) = section(name) {
            let message = format!("the section `## {name}` is empty");
            found.push(rules::PROPOSAL_EMPTY.at(section.heading, message));
        }
    }
    for section in ["Summary", "Why"].into_iter().filter_map(section) {
        quality::placeholders(section.body.of(text), Span::at(section.body.start), found);
    }
    check_specs(proposal, text, context, found);
}

fn check_specs(
    proposal: &Proposal,
    text: &str,
    context: &Context<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let place = proposal.place.affected_specs.0;
    let list = if place == proposal.place.frontmatter.0 {
        frontmatter::value_of(text, place, "affected_specs")
    } else {
        place
    };
    // Another spec may depend on it, which is not where it is listed.
    let own = |mark: &str, id: &SpecId| {
        let found = word_in(text, list, &format!("{mark}{id}"))?;
        Some(Span::new(found.start + mark.len(), found.end))
    };
    let mut look = looked_up(place);
    let mut listed_at =
        |id: &SpecId| look(&|| own("id: ", id).or_else(|| own("- ", id)).or_else(|| own("", id)));
    let mut listed = BTreeSet::new();
    for spec in &proposal.affected_specs {
        if !listed.insert(&spec.id) {
            let message = format!("`{}` is listed twice", spec.id);
            found.push(rules::SPEC_TWICE.at(listed_at(&spec.id), message));
        } else if !context.specs.contains_key(&spec.id) {
            let message = format!("specs/{}.md is missing or cannot be read", spec.id);
            found.push(rules::AFFECTED_SPEC_MISSING.at(listed_at(&spec.id), message));
        }
    }
    for spec in &proposal.affected_specs {
        for id in spec.depends.iter().filter(|id| !listed.contains(id)) {
            let message =
                format!("`{}` depends on `{id}`, which the change does not affect", spec.id);
            found.push(rules::SPEC_DEPENDENCY.at(listed_at(&spec.id), message));
        }
    }
    for id in context.specs.keys().filter(|id| !listed.contains(*id)) {
        let message = format!("specs/{id}.md is not listed as affected, so it is not merged");
        found.push(rules::SPEC_NOT_ANNOUNCED.at(place, message));
    }
    if let Err(cycle) = graph::spec_order(&proposal.affected_specs) {
        let chain = graph::chain(cycle.iter().map(ToString::to_string));
        found.push(rules::SPEC_CYCLE.at(place, format!("circular dependency of specs: {chain}")));
    }
}
