//! `specs/<spec>.md`: requirements and the scenarios that prove them.

mod steps;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::{frontmatter_place, prose_of, push_prose, push_section, read_id, section, title};
use crate::diagnostic::{Diagnostic, Parsed};
use crate::frontmatter::{self, scalar};
use crate::ids::{RequirementId, SpecId};
use crate::outline::{Outline, Section, lines};
use crate::rules;
use crate::span::{Location, Span, Uncompared};
use crate::stamp::Stamp;
use crate::text::{Line, Prose};

use steps::scenario;
pub(crate) use steps::scenario_name;

/// A specification, or the part of one that a change adds or edits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec {
    /// Its id, as its frontmatter says.
    pub id: Option<SpecId>,
    /// Its title.
    pub title: Line,
    /// How often it was written.
    pub version: u32,
    /// When it was first written.
    pub created_at: Option<Stamp>,
    /// When it was last written.
    pub updated_at: Option<Stamp>,
    /// Requirements that leave the main spec.
    pub removes: Vec<RequirementId>,
    /// Requirements of the main spec that get a new title.
    pub renames: BTreeMap<RequirementId, Line>,
    /// What it is about.
    pub overview: Prose,
    /// What must hold.
    pub requirements: Vec<Requirement>,
    /// How it is seen to hold.
    pub scenarios: Vec<Scenario>,
    /// A diagram of the flow, as Markdown.
    pub flow: Prose,
    /// Interfaces, as Markdown.
    pub interfaces: Prose,
    /// The data model, as Markdown.
    pub data_model: Prose,
    /// Which sections the text has.
    pub place: SpecLocations,
}

/// Where the parts of a spec stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpecLocations {
    /// The frontmatter's content, or the top of the text.
    pub frontmatter: Location,
    /// Whether there is a frontmatter.
    pub has_frontmatter: Uncompared<bool>,
    /// The `## Overview` heading.
    pub overview: Uncompared<Option<Span>>,
    /// The `## Requirements` heading.
    pub requirements: Uncompared<Option<Span>>,
    /// The `## Acceptance Criteria` heading.
    pub criteria: Uncompared<Option<Span>>,
}

/// One requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// `R1`, `R2`, …
    pub id: RequirementId,
    /// Its title.
    pub title: Line,
    /// How important it is.
    pub priority: Priority,
    /// What must hold.
    pub text: Prose,
    /// Scenarios that stand under the requirement itself.
    pub scenarios: Vec<Scenario>,
    /// Its heading.
    pub place: Location,
    /// Its whole section, from its heading to the next one.
    pub section: Location,
}

/// How important a requirement is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoStaticStr, EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum Priority {
    /// The change is pointless without it.
    High,
    /// It belongs to the change.
    #[default]
    Medium,
    /// It would be good to have.
    Low,
}

impl Priority {
    /// `high`, `medium` or `low`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// One scenario: GIVEN, WHEN, THEN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: Line,
    /// Its steps, in order.
    pub steps: Vec<Step>,
    /// Its heading.
    pub place: Location,
    /// Its whole section.
    pub section: Location,
}

impl Scenario {
    /// Whether a step of this kind is there.
    pub fn has(&self, keyword: Keyword) -> bool {
        self.steps.iter().any(|step| step.keyword == keyword)
    }
}

/// One step of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What kind of step.
    pub keyword: Keyword,
    /// What is given, done or seen.
    pub text: Line,
}

impl Step {
    /// A step; bold keywords inside the text lose their stars and colons at its
    /// start go, since they would be read as further steps and as punctuation.
    pub fn new(keyword: Keyword, text: &str) -> Self {
        let mut text = Cow::Borrowed(text);
        // Hardly any text has stars, and every step of a spec comes through here.
        while memchr::memchr(b'*', text.as_bytes()).is_some()
            && let Some(bold) = BOLD_KEYWORDS.iter().find(|bold| text.contains(**bold))
        {
            text = Cow::Owned(text.replace(bold, bold.trim_matches('*')));
        }
        let text = Line::new(
            text.trim_start_matches(|c: char| c == ':' || c.is_whitespace() || c.is_control()),
        );
        Self { keyword, text }
    }
}

const BOLD_KEYWORDS: [&str; 4] = ["**GIVEN**", "**WHEN**", "**THEN**", "**AND**"];

/// The word that a step starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub enum Keyword {
    /// What holds before.
    Given,
    /// What happens.
    When,
    /// What is seen then.
    Then,
    /// More of the same.
    And,
}

impl Keyword {
    /// All keywords.
    pub const ALL: [Self; 4] = [Self::Given, Self::When, Self::Then, Self::And];

    /// The word, in capitals.
    pub fn label(self) -> &'static str {
        self.into()
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FrontmatterFields {
    id: Option<String>,
    r#type: Option<String>,
    title: Option<Line>,
    version: Option<u32>,
    created_at: Option<Stamp>,
    updated_at: Option<Stamp>,
    removes: Vec<String>,
    renames: BTreeMap<String, Line>,
}

/// Reads a spec.
pub fn parse(text: &str) -> Parsed<Spec> {
    let outline = Outline::scan(text);
    let mut diagnostics = super::structure_diagnostics(&outline);
    let front: FrontmatterFields = frontmatter::read(text, &outline, &mut diagnostics);
    let top = frontmatter_place(&outline);
    if let Some(kind) = front.r#type.as_deref().filter(|kind| *kind != "spec") {
        diagnostics.push(rules::WRONG_TYPE.at(top, format!("type is `{kind}`, not `spec`")));
    }
    let heading = title(text, &outline, "Specification:");
    let sections = outline.sections(text, 2, outline.body(text));
    let body =
        |name: &str| section(&sections, name).map(|s| prose_of(text, s.body)).unwrap_or_default();
    let place = |name: &str| Uncompared(section(&sections, name).map(|s| s.heading.span));
    let mut spec = Spec {
        id: read_id(front.id.as_ref(), &rules::BAD_ID, top, &mut diagnostics),
        title: front.title.or(heading.map(|(title, _)| title)).unwrap_or_default(),
        version: front.version.unwrap_or(1),
        created_at: front.created_at,
        updated_at: front.updated_at,
        removes: requirement_ids(front.removes.iter(), top, &mut diagnostics),
        renames: front
            .renames
            .into_iter()
            .filter_map(|(id, title)| {
                requirement_ids([&id].into_iter(), top, &mut diagnostics)
                    .pop()
                    .map(|id| (id, title))
            })
            .collect(),
        overview: body("Overview"),
        requirements: Vec::new(),
        scenarios: Vec::new(),
        flow: body("Flow"),
        interfaces: body("Interfaces"),
        data_model: body("Data Model"),
        place: SpecLocations {
            frontmatter: Uncompared(top),
            has_frontmatter: Uncompared(outline.frontmatter.is_some_and(|f| f.closed)),
            overview: place("Overview"),
            requirements: place("Requirements"),
            criteria: place("Acceptance Criteria"),
        },
    };
    if let Some(requirements) = section(&sections, "Requirements") {
        for part in outline.sections(text, 3, requirements.body) {
            match requirement(text, &outline, &part, &mut diagnostics) {
                Some(requirement) => spec.requirements.push(requirement),
                None => diagnostics.push(rules::BAD_REQUIREMENT_ID.at(
                    part.heading.span,
                    format!("`{}` is not the heading of a requirement", part.title),
                )),
            }
        }
    }
    if let Some(criteria) = section(&sections, "Acceptance Criteria") {
        let parts = outline.sections(text, 3, criteria.body);
        spec.scenarios = parts.iter().filter_map(|part| scenario(text, part)).collect();
    }
    Parsed { value: spec, diagnostics }
}

fn requirement_ids<'a>(
    ids: impl Iterator<Item = &'a String>,
    place: Span,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<RequirementId> {
    ids.filter_map(|id| {
        let parsed = id.trim().parse::<RequirementId>();
        if let Err(error) = &parsed {
            diagnostics.push(rules::BAD_REQUIREMENT_ID.at(place, error.to_string()));
        }
        parsed.ok()
    })
    .collect()
}

/// Splits `R1: title` or `WF-R1: title` into its parts.
pub(crate) fn requirement_heading(title: &str) -> Option<(RequirementId, &str)> {
    let (id, rest) = RequirementId::split(title)?;
    let rest = rest.trim_start();
    let rest = rest.strip_prefix([':', '：', '.', '-', '–', '—']).unwrap_or(rest);
    Some((id, rest))
}

fn requirement(
    text: &str,
    outline: &Outline,
    part: &Section<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Requirement> {
    let (id, title) = requirement_heading(part.title)?;
    let nested: Vec<Section<'_>> = outline
        .sections(text, 4, part.body)
        .into_iter()
        .filter(|s| scenario_name(s.title).is_some())
        .collect();
    let mut body =
        Span::new(part.body.start, nested.first().map_or(part.body.end, |s| s.span.start));
    let mut priority = Priority::default();
    let first = lines(body.of(text)).find(|(_, line, _)| !line.trim().is_empty());
    if let Some((start, line, next)) = first
        && let Some(name) = priority_line(line)
    {
        match Priority::from_name(name) {
            Some(known) => priority = known,
            None => {
                let span = Span::new(body.start + start, body.start + start + line.len());
                diagnostics
                    .push(rules::BAD_PRIORITY.at(span, format!("`{name}` is not a priority")));
            }
        }
        body.start += next;
    }
    Some(Requirement {
        id,
        title: Line::new(title),
        priority,
        text: prose_of(text, body),
        scenarios: nested.iter().filter_map(|part| scenario(text, part)).collect(),
        place: Uncompared(part.heading.span),
        section: Uncompared(part.span),
    })
}

pub(crate) fn priority_line(line: &str) -> Option<&str> {
    let bare = line.trim().trim_start_matches(['-', '*', ' ']);
    let rest = bare.get(..8).filter(|p| p.eq_ignore_ascii_case("priority")).map(|_| &bare[8..])?;
    let rest = rest.trim_start_matches('*').strip_prefix(':')?;
    Some(rest.trim_matches(['*', ' ', '`', '\t']))
}

/// Writes a spec as agentd does.
pub fn render(spec: &Spec) -> String {
    let mut out = String::from("---\n");
    if let Some(id) = &spec.id {
        let _ = writeln!(out, "id: {}", scalar(id.as_str()));
    }
    out.push_str("type: spec\n");
    let _ = writeln!(out, "title: {}", scalar(spec.title.as_str()));
    let _ = writeln!(out, "version: {}", spec.version);
    super::push_stamps(&mut out, spec.created_at, spec.updated_at);
    if !spec.removes.is_empty() {
        let ids: Vec<String> = spec.removes.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "removes: [{}]", ids.join(", "));
    }
    if !spec.renames.is_empty() {
        out.push_str("renames:\n");
        for (id, title) in &spec.renames {
            let _ = writeln!(out, "  {id}: {}", frontmatter::quoted(title.as_str()));
        }
    }
    let _ = write!(out, "---\n\n# Specification: {}\n\n", spec.title);
    for (heading, body) in render_sections(spec) {
        push_section(&mut out, heading, &body);
    }
    super::end_with_one_newline(out)
}

/// The sections that agentd owns, in order; optional ones only where they hold something.
pub(crate) fn render_sections(spec: &Spec) -> Vec<(&'static str, String)> {
    let prose = |prose: &Prose| crate::text::escape(prose.as_str()).into_owned();
    let mut requirements = String::new();
    for requirement in &spec.requirements {
        requirements.push_str(&render_requirement(requirement));
    }
    let mut criteria = String::new();
    for scenario in &spec.scenarios {
        criteria.push_str(&render_scenario(scenario, 3));
    }
    let mut sections = vec![
        ("Overview", prose(&spec.overview)),
        ("Requirements", requirements),
        ("Acceptance Criteria", criteria),
    ];
    for (heading, text) in
        [("Flow", &spec.flow), ("Interfaces", &spec.interfaces), ("Data Model", &spec.data_model)]
    {
        if !text.is_empty() {
            sections.push((heading, prose(text)));
        }
    }
    sections
}

/// Writes one requirement, its heading included.
pub(crate) fn render_requirement(requirement: &Requirement) -> String {
    let mut out = String::new();
    let _ = write!(out, "### {}: {}\n\n", requirement.id, requirement.title);
    let _ = write!(out, "**Priority**: {}\n\n", requirement.priority.name());
    push_prose(&mut out, &requirement.text);
    for scenario in &requirement.scenarios {
        out.push_str(&render_scenario(scenario, 4));
    }
    out
}

/// Writes one scenario under a heading of this level.
pub(crate) fn render_scenario(scenario: &Scenario, level: usize) -> String {
    let mut out = String::new();
    let _ = write!(out, "{} Scenario: {}\n\n", "#".repeat(level), scenario.name);
    for step in &scenario.steps {
        let _ = writeln!(out, "- **{}** {}", step.keyword.label(), step.text);
    }
    out.push('\n');
    out
}

/// What a reviewer judges of a spec: its body, and what it removes and renames.
pub fn reviewed_text(text: &str, spec: &Spec) -> String {
    let outline = Outline::scan(text);
    format!("{:?} {:?}\n{}", spec.removes, spec.renames, outline.body(text).of(text).trim())
}
