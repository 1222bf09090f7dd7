//! `proposal.md`: what a change is about, and the reviews of its plan.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use super::fields::{self, fields};
use super::review_block::{self, ReviewBlock};
use super::{
    english_titles, frontmatter_place, prose_of, push_section, read_id, section, spec_list, title,
};
use crate::diagnostic::{Diagnostic, Parsed};
use crate::frontmatter::{self, scalar};
use crate::hash::Digest;
use crate::ids::{ChangeId, SpecId};
use crate::outline::{Outline, Section, lines};
use crate::rules;
use crate::span::{Location, Span, Uncompared};
use crate::stamp::Stamp;
use crate::text::{Line, Prose, escape};

/// A proposal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proposal {
    /// The change it proposes.
    pub id: Option<ChangeId>,
    /// How often it was written.
    pub version: u32,
    /// When it was first written.
    pub created_at: Option<Stamp>,
    /// When it was last written.
    pub updated_at: Option<Stamp>,
    /// What it is, in short.
    pub summary: Prose,
    /// Why it is wanted.
    pub why: Prose,
    /// What will change.
    pub what_changes: Vec<Line>,
    /// How far it reaches.
    pub impact: Impact,
    /// The specs it touches, with the order between them.
    pub affected_specs: Vec<AffectedSpec>,
    /// The reviews of the plan, oldest first.
    pub reviews: Vec<ReviewBlock>,
    /// What was seen of the text.
    pub place: ProposalLocations,
}

/// Where the parts of a proposal stand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProposalLocations {
    /// The frontmatter's content, or the top of the text.
    pub frontmatter: Location,
    /// Whether there is a frontmatter.
    pub has_frontmatter: Uncompared<bool>,
    /// The sections of level 2, outside review blocks.
    pub sections: Uncompared<Vec<SectionLocation>>,
    /// Where the affected specs are listed.
    pub affected_specs: Location,
    /// The checksum that the frontmatter holds, and that of the text.
    pub checksums: Uncompared<Option<(String, String)>>,
}

/// Where a section of a proposal stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionLocation {
    /// Its title in lower case, in English where that is known.
    pub title: String,
    /// Its heading.
    pub heading: Span,
    /// What stands under it.
    pub body: Span,
}

impl SectionLocation {
    fn of((section, title): (&Section<'_>, &str)) -> Self {
        let (heading, body) = (section.heading.span, section.body);
        Self { title: title.to_lowercase(), heading, body }
    }

    /// Whether it has this title, in any case.
    pub fn is(&self, title: &str) -> bool {
        self.title.eq_ignore_ascii_case(title)
    }
}

/// How far a change reaches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Impact {
    /// patch, minor or major.
    pub scope: Scope,
    /// How many files will change, new ones included.
    pub affected_files: u32,
    /// How many of them are new.
    pub new_files: u32,
    /// Files and directories that will change.
    pub affected_code: Vec<Line>,
    /// What breaks, if anything.
    pub breaking_changes: Option<Line>,
}

/// The size of a change, as in semantic versioning.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoStaticStr, EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", ascii_case_insensitive)]
pub enum Scope {
    /// Nothing new to see from outside.
    Patch,
    /// Something new, nothing broken.
    #[default]
    Minor,
    /// Something breaks.
    Major,
}

impl Scope {
    /// `patch`, `minor` or `major`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A spec that a change touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AffectedSpec {
    /// The spec.
    pub id: SpecId,
    /// Specs of the same change that must be written before it.
    pub depends: Vec<SpecId>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FrontmatterFields {
    id: Option<String>,
    r#type: Option<String>,
    version: Option<u32>,
    created_at: Option<Stamp>,
    updated_at: Option<Stamp>,
    summary: Option<Prose>,
    impact: Option<ImpactField>,
    affected_specs: Option<Vec<AffectedSpecField>>,
    checksum: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ImpactField {
    scope: Option<String>,
    affected_files: Option<u32>,
    new_files: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AffectedSpecField {
    Id(String),
    Full {
        id: String,
        #[serde(default)]
        depends: Vec<String>,
    },
}

/// Reads a proposal.
pub fn parse(text: &str) -> Parsed<Proposal> {
    let blocks = review_block::find(text);
    // What a review says is no part of the proposal's own structure, and nothing
    // unclosed in front of a review may reach into it.
    let own = &text[..blocks.first().map_or(text.len(), |(span, _)| span.start)];
    let outline = Outline::scan(own);
    let mut diagnostics = super::structure_diagnostics(&outline);
    let front: FrontmatterFields = frontmatter::read(text, &outline, &mut diagnostics);
    let top = frontmatter_place(&outline);
    if let Some(kind) = front.r#type.as_deref().filter(|kind| *kind != "proposal") {
        diagnostics.push(rules::WRONG_TYPE.at(top, format!("type is `{kind}`, not `proposal`")));
    }
    let body = outline.body(own);
    let sections = outline.sections(text, 2, body);
    let prose =
        |name: &str| section(&sections, name).map(|s| prose_of(text, s.body)).unwrap_or_default();
    let (impact, listed) =
        impact(text, &sections, front.impact.unwrap_or_default(), top, &mut diagnostics);
    let (affected_specs, specs_place) = match front.affected_specs {
        Some(specs) => (front_specs(specs, top, &mut diagnostics), top),
        None => affected_specs(text, &sections, listed, &mut diagnostics),
    };
    let from_heading = title(text, &outline, "Change:").map(|(title, _)| title.to_string());
    let id = match &front.id {
        Some(_) => read_id(front.id.as_ref(), &rules::BAD_ID, top, &mut diagnostics),
        None => from_heading.and_then(|id| id.parse().ok()),
    };
    let summary = prose("Summary");
    let proposal = Proposal {
        id,
        version: front.version.unwrap_or(1),
        created_at: front.created_at,
        updated_at: front.updated_at,
        summary: if summary.is_empty() { front.summary.unwrap_or_default() } else { summary },
        why: prose("Why"),
        what_changes: section(&sections, "What Changes")
            .map(|s| bullets(s.body.of(text)))
            .unwrap_or_default(),
        impact,
        affected_specs,
        reviews: blocks
            .iter()
            .filter_map(|&b| review_block::parse(text, b, &mut diagnostics))
            .collect(),
        place: ProposalLocations {
            frontmatter: Uncompared(top),
            has_frontmatter: Uncompared(outline.frontmatter.is_some_and(|f| f.closed)),
            sections: Uncompared(
                sections.iter().zip(english_titles(&sections)).map(SectionLocation::of).collect(),
            ),
            affected_specs: Uncompared(specs_place),
            checksums: Uncompared(front.checksum.map(|stored| (stored, checksum(body.of(text))))),
        },
    };
    Parsed { value: proposal, diagnostics }
}

/// The items of a list; wrapped items are folded.
fn bullets(text: &str) -> Vec<Line> {
    let mut items: Vec<String> = Vec::new();
    for (_, line, _) in lines(text) {
        match (list_item(line), items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, Some(last)) if line.starts_with([' ', '\t']) => {
                last.push(' ');
                last.push_str(line);
            }
            _ => {}
        }
    }
    items.iter().map(|item| Line::new(item)).filter(|item| !item.is_empty()).collect()
}

fn front_specs(
    specs: Vec<AffectedSpecField>,
    place: Span,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<AffectedSpec> {
    let mut read = |id: &String| read_id::<SpecId>(Some(id), &rules::BAD_ID, place, diagnostics);
    specs
        .into_iter()
        .filter_map(|spec| match spec {
            AffectedSpecField::Id(id) => Some(AffectedSpec { id: read(&id)?, depends: Vec::new() }),
            AffectedSpecField::Full { id, depends } => Some(AffectedSpec {
                id: read(&id)?,
                depends: depends.iter().filter_map(&mut read).collect(),
            }),
        })
        .collect()
}

/// The impact from its section, filled up from the frontmatter, and the
/// "Affected specs:" bullet.
fn impact<'t>(
    text: &'t str,
    sections: &[Section<'t>],
    front: ImpactField,
    top: Span,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Impact, Option<fields::Field<'t>>) {
    let body = section(sections, "Impact").map_or(Span::default(), |s| s.body);
    let labels = fields(text, body);
    let labelled = |names: &[&str]| labels.iter().find(|f| f.is(names));
    let scope = labelled(&["Scope"])
        .map(|f| (f.line().to_string(), f.span))
        .or(front.scope.map(|s| (s, top)));
    let mut impact = Impact {
        new_files: front.new_files.unwrap_or(0),
        affected_files: front.affected_files.unwrap_or(0),
        ..Impact::default()
    };
    if let Some((name, span)) = scope {
        match name.trim_matches('`').parse() {
            Ok(scope) => impact.scope = scope,
            Err(_) => {
                diagnostics.push(rules::BAD_SCOPE.at(span, format!("`{name}` is not a scope")));
            }
        }
    }
    if let Some(field) = labelled(&["Affected files"]) {
        let line = field.line();
        let numbers: Vec<u32> = numbers(line.as_str()).collect();
        impact.affected_files = numbers.first().copied().unwrap_or(impact.affected_files);
        impact.new_files = numbers.get(1).copied().unwrap_or(impact.new_files);
    }
    if let Some(field) = labelled(&["Affected code"]) {
        impact.affected_code = list(field.line().as_str());
    }
    impact.breaking_changes = labelled(&["Breaking changes"])
        .map(fields::Field::line)
        .filter(|line| !is_none(line.as_str()));
    let listed = labelled(&["Affected specs"]).copied();
    (impact, listed)
}

fn numbers(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok())
}

/// What a line says behind the mark of a list: `- `, `* `, `+ `, `1. ` or `1) `.
pub(super) fn list_item(line: &str) -> Option<&str> {
    if let Some(item) = ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)) {
        return Some(item);
    }
    let behind = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = behind.len() < line.len() && line.len() - behind.len() < 10;
    [". ", ") "].iter().find_map(|mark| behind.strip_prefix(mark)).filter(|_| is_numbered)
}

/// Whether a text says that there is nothing.
pub(super) fn is_none(text: &str) -> bool {
    let bare = text.trim_matches(|c: char| !c.is_alphanumeric());
    ["", "none", "n/a", "na", "no", "null"].iter().any(|none| bare.eq_ignore_ascii_case(none))
}

/// A list as people write it: backticks, an array, or plain; commas between; none and n/a dropped.
fn list(text: &str) -> Vec<Line> {
    let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let items: Vec<&str> = if quoted.is_empty() {
        text.trim_matches(['[', ']', ' ']).split(',').collect()
    } else {
        quoted
    };
    let items = items.into_iter().map(|item| Line::new(item.trim().trim_matches(['"', '\'', '`'])));
    items.filter(|item| !is_none(item.as_str())).collect()
}

/// Affected specs of a text whose frontmatter does not list them: an "Affected
/// Specs" section, otherwise the bullet in the impact. What cannot be read as an id is a finding.
fn affected_specs(
    text: &str,
    sections: &[Section<'_>],
    listed: Option<fields::Field<'_>>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Vec<AffectedSpec>, Span) {
    let (body, place) = match (section(sections, "Affected Specs"), listed) {
        (Some(part), _) => (part.body.of(text), part.heading.span),
        (None, Some(field)) => (field.value.of(text), field.span),
        (None, None) => ("", Span::at(0)),
    };
    let specs = spec_list::names(body).into_iter().filter_map(|name| {
        let id = read_id::<SpecId>(Some(&name), &rules::BAD_ID, place, diagnostics)?;
        Some(AffectedSpec { id, depends: Vec::new() })
    });
    (specs.collect(), place)
}

/// The checksum of a proposal's own text: frontmatter and reviews do not count.
fn checksum(body: &str) -> String {
    let trimmed = body.trim();
    Digest::of(trimmed.replace("\r\n", "\n")).to_string()
}

/// Writes a proposal as agentd does.
pub fn render(proposal: &Proposal) -> String {
    let mut body = String::new();
    let id = proposal.id.as_ref().map(ChangeId::as_str).unwrap_or_default();
    let _ = write!(body, "# Change: {id}\n\n");
    for (heading, text) in render_sections(proposal) {
        push_section(&mut body, heading, &text);
    }
    let body = super::end_with_one_newline(body);
    let mut out = String::from("---\n");
    for (key, value) in front_values(proposal, &body) {
        let space = if value.starts_with('\n') { "" } else { " " };
        let _ = writeln!(out, "{key}:{space}{value}");
    }
    let _ = write!(out, "---\n\n{body}");
    for review in &proposal.reviews {
        out = review_block::append(&out, review);
    }
    out
}

/// The frontmatter in order; values of several lines start with a line break.
fn front_values(proposal: &Proposal, body: &str) -> Vec<(&'static str, String)> {
    let mut values = Vec::new();
    if let Some(id) = &proposal.id {
        values.push(("id", scalar(id.as_str())));
    }
    values.push(("type", "proposal".to_owned()));
    values.push(("version", proposal.version.to_string()));
    for (key, stamp) in [("created_at", proposal.created_at), ("updated_at", proposal.updated_at)] {
        values.extend(stamp.map(|stamp| (key, stamp.to_string())));
    }
    values.push(("summary", scalar(proposal.summary.first_line().as_str())));
    let impact = &proposal.impact;
    values.push((
        "impact",
        format!(
            "\n  scope: {}\n  affected_files: {}\n  new_files: {}",
            impact.scope.name(),
            impact.affected_files,
            impact.new_files
        ),
    ));
    values.push(("affected_specs", render_affected(&proposal.affected_specs)));
    values.push(("checksum", checksum(body)));
    values
}

/// The affected specs as a value of the frontmatter.
pub(super) fn render_affected(specs: &[AffectedSpec]) -> String {
    if specs.is_empty() {
        return "[]".to_owned();
    }
    let one = |spec: &AffectedSpec| {
        let depends: Vec<String> = spec.depends.iter().map(|id| scalar(id.as_str())).collect();
        format!("\n  - id: {}\n    depends: [{}]", scalar(spec.id.as_str()), depends.join(", "))
    };
    specs.iter().map(one).collect()
}

/// The sections that agentd owns, in order.
pub(crate) fn render_sections(proposal: &Proposal) -> Vec<(&'static str, String)> {
    let what: String = proposal.what_changes.iter().map(|item| format!("- {item}\n")).collect();
    vec![
        ("Summary", escape(proposal.summary.as_str()).into_owned()),
        ("Why", escape(proposal.why.as_str()).into_owned()),
        ("What Changes", what),
        ("Impact", render_impact(proposal)),
    ]
}

fn render_impact(proposal: &Proposal) -> String {
    let impact = &proposal.impact;
    let mut out = String::new();
    fields::push_line(&mut out, "Scope", impact.scope.name());
    fields::push_line(&mut out, "Affected specs", ticked(spec_names(&proposal.affected_specs)));
    let files = format!("{} ({} new)", impact.affected_files, impact.new_files);
    fields::push_line(&mut out, "Affected files", files);
    fields::push_line(
        &mut out,
        "Affected code",
        ticked(impact.affected_code.iter().map(Line::as_str)),
    );
    let breaking = impact.breaking_changes.as_ref().map_or("none", Line::as_str);
    fields::push_line(&mut out, "Breaking changes", breaking);
    out
}

pub(super) fn spec_names(specs: &[AffectedSpec]) -> impl Iterator<Item = &str> {
    specs.iter().map(|spec| spec.id.as_str())
}

/// A list in one line: names in backticks, or `none`.
pub(super) fn ticked<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The text of a proposal without frontmatter and reviews: what a reviewer judges.
pub fn reviewed_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = Outline::scan(text).body_start;
    for (block, _) in review_block::find(text) {
        out.push_str(text.get(at..block.start).unwrap_or_default().trim());
        out.push('\n');
        at = block.end;
    }
    out.push_str(text.get(at..).unwrap_or_default().trim());
    out.truncate(out.trim_end().len());
    out
}

/// The text with the checksum of its own body in the frontmatter.
pub(crate) fn with_checksum(text: &str) -> String {
    let own = review_block::find(text).first().map_or(text.len(), |(span, _)| span.start);
    let sum = checksum(&text[Outline::scan(text).body_start.min(own)..own]);
    frontmatter::set(text, "checksum", &sum).unwrap_or_else(|_| text.to_owned())
}

/// Brings the frontmatter's times, version and checksum up to date after the body was edited.
pub fn touch(text: &str, now: Stamp) -> String {
    let parsed = parse(text).value;
    if !parsed.place.has_frontmatter.0 {
        return text.to_owned();
    }
    let mut out = text.to_owned();
    for (key, value) in
        [("version", parsed.version.saturating_add(1).to_string()), ("updated_at", now.to_string())]
    {
        out = frontmatter::set(&out, key, &value).unwrap_or(out);
    }
    with_checksum(&out)
}
