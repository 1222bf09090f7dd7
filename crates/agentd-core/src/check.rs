//! Validation: looks at the texts of a change or of a main spec and reports
//! everything that is wrong with them. Pure; the rules are in [`crate::rules`].

mod proposal;
mod quality;
mod spec;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};

pub use quality::{is_unhappy, open_points, vague_words};

use crate::diagnostic::{Counts, Diagnostic, Rule, Severity};
use crate::document;
use crate::document::clarifications::MAX_QUESTIONS;
use crate::document::proposal::Proposal;
use crate::document::spec::Spec;
use crate::hash::Digest;
use crate::ids::{ChangeId, RequirementId, SpecId};
use crate::outline::Outline;
use crate::rules;
use crate::span::Span;
use crate::state;

/// What a project may ask for beyond the built-in rules.
#[derive(Debug, Clone)]
pub struct Extras {
    /// Headings that every spec must have.
    pub required_headings: Vec<String>,
    /// A pattern that every scenario must match, its steps joined to one line.
    pub scenario_pattern: Option<regex_lite::Regex>,
    /// How many scenarios a spec must have.
    pub scenario_min_count: usize,
}

impl Default for Extras {
    fn default() -> Self {
        Self { required_headings: Vec::new(), scenario_pattern: None, scenario_min_count: 1 }
    }
}

/// The text of a document, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The text.
    Text(String),
    /// There is no such file.
    Missing,
    /// The file cannot be read, and why.
    Unreadable(String),
}

impl Source {
    /// The text, if there is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }
}

/// The texts of a change.
#[derive(Debug, Clone)]
pub struct ChangeTexts {
    /// Its id.
    pub id: ChangeId,
    /// `STATE.yaml`.
    pub state: Source,
    /// `clarifications.md`.
    pub clarifications: Source,
    /// `proposal.md`.
    pub proposal: Source,
    /// `specs/*.md`.
    pub specs: Vec<(SpecId, Source)>,
    /// `tasks.md`.
    pub tasks: Source,
    /// `REVIEW.md`.
    pub review: Source,
}

/// What is known of the main specs: their requirements.
pub type MainSpecs = BTreeMap<SpecId, BTreeSet<RequirementId>>;

/// What was found in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The file, relative to the change or to the main specs.
    pub file: String,
    /// Its text, for showing; empty where there was none.
    pub text: String,
    /// What is wrong, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// What is wrong too and was left out by [`cap`].
    pub omitted: Vec<Omitted>,
}

/// Findings of a rule that are counted, but not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Omitted {
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// How many more times.
    pub count: usize,
}

impl FileReport {
    /// How many findings there are of each severity, told or not.
    pub fn counts(&self) -> Counts {
        let told = Counts::of(self.diagnostics.iter().map(Diagnostic::severity));
        self.omitted.iter().fold(told, |sum, omitted| {
            let count = omitted.count;
            sum.plus(match omitted.rule.severity {
                Severity::High => Counts { high: count, ..Counts::default() },
                Severity::Medium => Counts { medium: count, ..Counts::default() },
                Severity::Low => Counts { low: count, ..Counts::default() },
            })
        })
    }
}

/// How many findings of one rule are told.
pub const FINDINGS_PER_RULE: usize = 1000;

/// Leaves out what nobody reads: of each rule the first thousand findings are told, the others
/// are counted. A file of two megabytes can break a rule a hundred thousand times.
pub fn cap(reports: &mut [FileReport]) {
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    for report in reports {
        let mut omitted: BTreeMap<&str, Omitted> = BTreeMap::new();
        report.diagnostics.retain(|diagnostic| {
            let rule = diagnostic.rule;
            let told = told.entry(rule.code).or_default();
            *told += 1;
            if *told > FINDINGS_PER_RULE {
                omitted.entry(rule.code).or_insert(Omitted { rule, count: 0 }).count += 1;
            }
            *told <= FINDINGS_PER_RULE
        });
        report.diagnostics.shrink_to_fit();
        report.omitted.extend(omitted.into_values());
    }
}

/// How many findings there are in several files.
pub fn counts(reports: &[FileReport]) -> Counts {
    reports.iter().fold(Counts::default(), |sum, report| sum.plus(report.counts()))
}

/// Everything a rule may want to know about a change.
struct Context<'a> {
    id: &'a ChangeId,
    main: &'a MainSpecs,
    extras: &'a Extras,
    proposal: Option<Proposal>,
    specs: BTreeMap<SpecId, Spec>,
    /// The requirements of `specs`.
    own: MainSpecs,
}

impl Context<'_> {
    /// Whether a requirement, or a spec as a whole, exists in the change or in the main specs.
    fn has(&self, spec: &SpecId, requirement: Option<RequirementId>) -> bool {
        let among = |known: &MainSpecs| {
            known.get(spec).is_some_and(|ids| requirement.is_none_or(|id| ids.contains(&id)))
        };
        let removed = || {
            let own = self.specs.get(spec);
            requirement.is_some_and(|id| own.is_some_and(|spec| spec.removes.contains(&id)))
        };
        among(&self.own) || among(self.main) || removed()
    }
}

/// Checks a change. Files without findings are left out.
pub fn change(texts: &ChangeTexts, main: &MainSpecs, extras: &Extras) -> Vec<FileReport> {
    let mut reports = Vec::new();
    let (specs, own) = (BTreeMap::new(), MainSpecs::new());
    let mut context = Context { id: &texts.id, main, extras, proposal: None, specs, own };
    let mut spec_findings = Vec::new();
    for (id, source) in &texts.specs {
        let (parsed, found) = read(source, document::spec::parse);
        spec_findings.push((id, source, found));
        if let Some(spec) = parsed {
            context.own.insert(id.clone(), spec.requirements.iter().map(|r| r.id).collect());
            context.specs.insert(id.clone(), spec);
        }
    }
    let (parsed, mut found) = read(&texts.proposal, document::proposal::parse);
    context.proposal = parsed;
    check_presence(&texts.proposal, "proposal.md", &mut found);
    if let Some(proposal) = &context.proposal {
        let text = texts.proposal.text().unwrap_or_default();
        proposal::check(proposal, text, &context, &mut found);
    }
    push(&mut reports, "proposal.md", &texts.proposal, found);

    for (id, source, mut found) in spec_findings {
        if let Some(spec) = context.specs.get(id) {
            spec::check(id, spec, source.text().unwrap_or_default(), &context, &mut found);
        }
        push(&mut reports, &format!("specs/{id}.md"), source, found);
    }

    let (parsed, mut found) = read(&texts.tasks, document::tasks::parse);
    check_presence(&texts.tasks, "tasks.md", &mut found);
    if let Some(parsed) = &parsed {
        tasks::check(parsed, &context, &mut found);
    }
    push(&mut reports, "tasks.md", &texts.tasks, found);

    let (parsed, mut found) = read(&texts.clarifications, document::clarifications::parse);
    if let Some(parsed) = &parsed
        && let Some(sixth) = parsed.questions.get(MAX_QUESTIONS)
    {
        let message = format!("there are {} questions", parsed.questions.len());
        found.push(rules::TOO_MANY_QUESTIONS.at(sixth.place.0, message));
    }
    let change = parsed.as_ref().and_then(|parsed| parsed.change.as_ref());
    check_owner(change, &texts.id, &texts.clarifications, &mut found);
    push(&mut reports, "clarifications.md", &texts.clarifications, found);

    let (parsed, mut found) = read(&texts.review, document::review::parse);
    let change = parsed.as_ref().and_then(|parsed| parsed.change_id.as_ref());
    check_owner(change, &texts.id, &texts.review, &mut found);
    push(&mut reports, "REVIEW.md", &texts.review, found);

    let mut found = unreadable(&texts.state);
    if let Some(text) = texts.state.text()
        && let Err(error) = state::parse(text, &texts.id)
    {
        found.push(rules::STATE_INVALID.at(error.span(), error.to_string()));
    }
    push(&mut reports, "STATE.yaml", &texts.state, found);
    reports
}

/// Checks a main spec.
pub fn main_spec(id: &SpecId, source: &Source, extras: &Extras) -> Option<FileReport> {
    main_spec_with_ids(id, source, extras).0
}

/// Checks a main spec and tells its requirements, reading it once.
pub fn main_spec_with_ids(
    id: &SpecId,
    source: &Source,
    extras: &Extras,
) -> (Option<FileReport>, BTreeSet<RequirementId>) {
    let (parsed, mut found) = read(source, document::spec::parse);
    let mut requirements = BTreeSet::new();
    if let Some(spec) = &parsed {
        spec::check_text(id, spec, source.text().unwrap_or_default(), extras, &mut found);
        requirements = spec.requirements.iter().map(|requirement| requirement.id).collect();
    }
    let mut reports = Vec::new();
    push(&mut reports, &format!("{id}.md"), source, found);
    (reports.pop(), requirements)
}

/// The requirements of a main spec, for [`MainSpecs`].
pub fn requirement_ids(text: &str) -> BTreeSet<RequirementId> {
    document::spec::parse(text)
        .value
        .requirements
        .iter()
        .map(|requirement| requirement.id)
        .collect()
}

/// Checks one document of a change as it would be after a write, the others as
/// they are; used by whoever is about to write. Only findings in that file count.
pub fn file(texts: &ChangeTexts, file: &str, main: &MainSpecs, extras: &Extras) -> Vec<Diagnostic> {
    let reports = change(texts, main, extras);
    reports
        .into_iter()
        .find(|report| report.file == file)
        .map(|report| report.diagnostics)
        .unwrap_or_default()
}

fn read<T>(
    source: &Source,
    parse: impl Fn(&str) -> crate::diagnostic::Parsed<T>,
) -> (Option<T>, Vec<Diagnostic>) {
    match source.text() {
        Some(text) => {
            let parsed = parse(text);
            (Some(parsed.value), parsed.diagnostics)
        }
        None => (None, unreadable(source)),
    }
}

fn unreadable(source: &Source) -> Vec<Diagnostic> {
    match source {
        Source::Unreadable(why) => vec![rules::FILE_UNREADABLE.at(Span::at(0), why.clone())],
        Source::Text(_) | Source::Missing => Vec::new(),
    }
}

fn check_presence(source: &Source, file: &str, found: &mut Vec<Diagnostic>) {
    if *source == Source::Missing {
        found.push(rules::FILE_MISSING.at(Span::at(0), format!("{file} is missing")));
    }
}

/// Clarifications and reviews are those of their own change: a verdict copied from another counts for nothing.
fn check_owner(
    named: Option<&ChangeId>,
    id: &ChangeId,
    source: &Source,
    found: &mut Vec<Diagnostic>,
) {
    if let Some(named) = named.filter(|named| *named != id) {
        let outline = Outline::scan(source.text().unwrap_or_default());
        let message = format!("this belongs to `{named}`, in the directory of `{id}`");
        found.push(rules::ID_MISMATCH.at(document::frontmatter_place(&outline), message));
    }
}

/// Whether a rule was broken already.
fn has(found: &[Diagnostic], rule: &Rule) -> bool {
    found.iter().any(|diagnostic| diagnostic.rule == rule)
}

fn push(
    reports: &mut Vec<FileReport>,
    file: &str,
    source: &Source,
    mut diagnostics: Vec<Diagnostic>,
) {
    if diagnostics.is_empty() {
        return;
    }
    diagnostics.sort_by_key(|d| (d.span.start, d.rule.code));
    let text = source.text().unwrap_or_default().to_owned();
    reports.push(FileReport { file: file.to_owned(), text, diagnostics, omitted: Vec::new() });
}

/// The digest of a plan: of everything that a reviewer judges and nothing that
/// moves by itself, such as times, versions, reviews and ticks.
pub fn plan_digest(texts: &ChangeTexts) -> Digest {
    let mut all = String::new();
    let mut add = |name: &str, text: &str| {
        // Lengths in front keep the parts apart.
        let text = text.replace("\r\n", "\n");
        all.push_str(&format!("{name} {}\n", text.len()));
        all.push_str(&text);
    };
    let proposal = texts.proposal.text().unwrap_or_default();
    let parsed = document::proposal::parse(proposal).value;
    add("proposal", &document::proposal::reviewed_text(proposal));
    for spec in &parsed.affected_specs {
        add("affected", spec.id.as_str());
    }
    let mut specs: Vec<&(SpecId, Source)> = texts.specs.iter().collect();
    specs.sort_by(|a, b| a.0.cmp(&b.0));
    for (id, source) in specs {
        let spec = document::spec::parse(source.text().unwrap_or_default()).value;
        add(id.as_str(), &document::spec::reviewed_text(source.text().unwrap_or_default(), &spec));
    }
    let tasks = texts.tasks.text().unwrap_or_default();
    for task in document::tasks::parse(tasks).value.tasks {
        add("task", &document::tasks::reviewed_text(&task));
    }
    Digest::of(all)
}
