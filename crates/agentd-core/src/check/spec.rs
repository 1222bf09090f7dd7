//! Rules for specs, of a change and of the project.

use std::collections::BTreeSet;

use super::{Context, Extras, has, looked_up, missing_section, quality};
use crate::diagnostic::Diagnostic;
use crate::document::spec::{Keyword, Scenario, Spec};
use crate::frontmatter;
use crate::ids::SpecId;
use crate::language;
use crate::outline::Outline;
use crate::rules;
use crate::span::{Span, word_in};
use crate::text::counted;

const SECTIONS: [&str; 6] =
    ["Overview", "Requirements", "Acceptance Criteria", "Flow", "Interfaces", "Data Model"];

/// Rules for a spec of a change.
pub(super) fn check(
    id: &SpecId,
    spec: &Spec,
    text: &str,
    context: &Context<'_>,
    found: &mut Vec<Diagnostic>,
) {
    check_text(id, spec, text, context.extras, found);
    let main = context.main.get(id);
    let top = spec.place.frontmatter.0;
    let mut look = looked_up(top);
    for (what, requirement) in spec
        .removes
        .iter()
        .map(|id| ("removed", id))
        .chain(spec.renames.keys().map(|id| ("renamed", id)))
    {
        if !main.is_some_and(|known| known.contains(requirement)) {
            let message = format!(
                "{requirement} is {what}, but agentd/specs/{id}.md has no such requirement"
            );
            let key = if what == "removed" { "removes" } else { "renames" };
            let place = look(&|| {
                word_in(text, frontmatter::value_of(text, top, key), &requirement.to_string())
            });
            found.push(rules::REMOVED_REQUIREMENT.at(place, message));
        }
    }
    for requirement in spec.requirements.iter().filter(|r| spec.removes.contains(&r.id)) {
        let message = format!("{} is removed and defined in the same file", requirement.id);
        found.push(rules::REMOVED_REQUIREMENT.at(requirement.place.0, message));
    }
}

/// Rules for any spec.
pub(super) fn check_text(
    id: &SpecId,
    spec: &Spec,
    text: &str,
    extras: &Extras,
    found: &mut Vec<Diagnostic>,
) {
    let top = spec.place.frontmatter.0;
    if !spec.place.has_frontmatter.0 && !has(found, &rules::FRONTMATTER_UNCLOSED) {
        found.push(rules::FRONTMATTER_MISSING.at(top, format!("{id}.md has no frontmatter")));
    }
    if let Some(own) = spec.id.as_ref().filter(|own| *own != id) {
        found.push(
            rules::ID_MISMATCH.at(top, format!("this is the spec `{own}`, in the file of `{id}`")),
        );
    }
    // A spec that only removes or renames needs no requirements and no scenarios of its own.
    let only_removes =
        spec.requirements.is_empty() && !(spec.removes.is_empty() && spec.renames.is_empty());
    check_sections(spec, text, only_removes, extras, found);
    if !only_removes && spec.requirements.is_empty() && !has(found, &rules::BAD_REQUIREMENT_ID) {
        let place = spec.place.requirements.0.unwrap_or(top);
        found.push(rules::NO_REQUIREMENTS.at(place, "there is no requirement"));
    }
    let mut seen = BTreeSet::new();
    for requirement in &spec.requirements {
        if !seen.insert(requirement.id) {
            let message = format!("{} is there twice", requirement.id);
            found.push(rules::DUPLICATE_REQUIREMENT.at(requirement.place.0, message));
        }
        if requirement.text.is_empty() {
            let message = format!("{} has no text", requirement.id);
            found.push(rules::REQUIREMENT_EMPTY.at(requirement.place.0, message));
        } else {
            quality::requirement(requirement, text, found);
        }
    }
    let scenarios: Vec<&Scenario> =
        spec.scenarios.iter().chain(spec.requirements.iter().flat_map(|r| &r.scenarios)).collect();
    check_scenarios(spec, &scenarios, only_removes, extras, found);
}

fn check_sections(
    spec: &Spec,
    text: &str,
    only_removes: bool,
    extras: &Extras,
    found: &mut Vec<Diagnostic>,
) {
    let top = spec.place.frontmatter.0;
    let nested = spec.requirements.iter().any(|r| !r.scenarios.is_empty());
    let parts = [
        ("Overview", spec.place.overview.0.is_some()),
        ("Requirements", spec.place.requirements.0.is_some() || only_removes),
        // Scenarios may stand under their requirements instead.
        ("Acceptance Criteria", spec.place.criteria.0.is_some() || only_removes || nested),
    ];
    for (name, there) in parts {
        if !there {
            found.push(missing_section(&rules::SPEC_SECTION, name, &SECTIONS, text, top));
        }
    }
    if spec.overview.is_empty()
        && let Some(place) = spec.place.overview.0
    {
        found.push(rules::SPEC_EMPTY.at(place, "the section `## Overview` is empty"));
    }
    if let Some(heading) = spec.place.overview.0 {
        let later = [spec.place.requirements.0, spec.place.criteria.0];
        let later = later.into_iter().flatten().map(|h| h.start).filter(|at| *at > heading.end);
        let body = Span::new(heading.end, later.min().unwrap_or(text.len()));
        quality::placeholders(body.of(text), Span::at(body.start), found);
    }
    if !extras.required_headings.is_empty() {
        let outline = Outline::scan(text);
        for wanted in &extras.required_headings {
            let is_wanted = |title: &str| language::same_heading(title, wanted);
            if !outline.headings.iter().any(|heading| is_wanted(heading.title.of(text))) {
                found.push(
                    rules::REQUIRED_HEADING.at(top, format!("the heading `{wanted}` is missing")),
                );
            }
        }
    }
}

fn check_scenarios(
    spec: &Spec,
    scenarios: &[&Scenario],
    only_removes: bool,
    extras: &Extras,
    found: &mut Vec<Diagnostic>,
) {
    let top = spec.place.frontmatter.0;
    let place = spec.place.criteria.0.unwrap_or(top);
    if scenarios.len() < extras.scenario_min_count && !only_removes {
        let message = format!(
            "the spec has {}; the minimum is {}",
            counted(scenarios.len(), "scenario"),
            extras.scenario_min_count
        );
        found.push(rules::NO_SCENARIOS.at(place, message));
    }
    let mut names = BTreeSet::new();
    for scenario in scenarios {
        let at = scenario.place.0;
        let name = match scenario.name.as_str() {
            "" => "this scenario".to_owned(),
            name => format!("the scenario `{name}`"),
        };
        if scenario.name.is_empty() {
            found.push(rules::DUPLICATE_SCENARIO.at(at, "the scenario has no name"));
        } else if !names.insert(scenario.name.as_str().to_lowercase()) {
            found.push(rules::DUPLICATE_SCENARIO.at(at, format!("{name} is there twice")));
        }
        if !scenario.has(Keyword::When) {
            found.push(rules::SCENARIO_WITHOUT_WHEN.at(at, format!("{name} has no WHEN")));
        }
        if !scenario.has(Keyword::Then) {
            found.push(rules::SCENARIO_WITHOUT_THEN.at(at, format!("{name} has no THEN")));
        }
        if let Some(pattern) = &extras.scenario_pattern
            && !pattern.is_match(&one_line(scenario))
        {
            let message = format!("{name} does not match `{}`", pattern.as_str());
            found.push(rules::SCENARIO_PATTERN.at(at, message));
        }
    }
    if !scenarios.is_empty() && !scenarios.iter().any(|scenario| quality::is_unhappy(scenario)) {
        found.push(
            rules::NO_UNHAPPY_PATH
                .at(place, "no scenario says what happens when something goes wrong"),
        );
    }
}

/// A scenario as patterns see it: `GIVEN a WHEN b THEN c `.
fn one_line(scenario: &Scenario) -> String {
    scenario.steps.iter().map(|step| format!("{} {} ", step.keyword.label(), step.text)).collect()
}
