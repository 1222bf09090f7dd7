//! Validation: looks at the texts of a change or of a main spec and reports
//! everything that is wrong with them. Pure; the rules are in [`crate::rules`].

mod allow;
mod proposal;
mod quality;
mod settings;
mod spec;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};

pub use allow::Allowed;
pub use quality::{obligations, obliges, open_points, vague_words};
pub use settings::{RuleSettings, SettingError, Weight};

use crate::diagnostic::{Counts, Diagnostic, Rule, Severity};
use crate::document;
use crate::document::clarifications::MAX_QUESTIONS;
use crate::document::spec::Spec;
use crate::documents::{Doc, Documents, Source};
use crate::ids::{ChangeId, RequirementId, SpecId};
use crate::language;
use crate::layout::{self, ArchiveName, ChangeFile};
use crate::nearest::nearest;
use crate::outline::Outline;
use crate::rules;
use crate::span::Span;
use crate::text::excerpt;

/// What a project may ask for beyond the built-in rules.
#[derive(Debug, Clone)]
pub struct Extras {
    /// Headings that every spec must have.
    pub required_headings: Vec<String>,
    /// A pattern that every scenario must match, its steps joined to one line.
    pub scenario_pattern: Option<regex_lite::Regex>,
    /// How many scenarios a spec must have.
    pub scenario_min_count: usize,
    /// How much rules weigh here.
    pub rules: RuleSettings,
}

impl Default for Extras {
    fn default() -> Self {
        Self {
            required_headings: Vec::new(),
            scenario_pattern: None,
            scenario_min_count: 1,
            rules: RuleSettings::default(),
        }
    }
}

/// What is known of the main specs: their requirements.
pub type MainSpecs = BTreeMap<SpecId, BTreeSet<RequirementId>>;

/// A file that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckedFile {
    /// A document of an open change.
    Change(ChangeId, ChangeFile),
    /// A document of an archived change.
    Archived(ArchiveName, ChangeFile),
    /// A main spec.
    MainSpec(SpecId),
    /// Something among specs that is not a spec, by its path in the project.
    Stray(String),
}

impl CheckedFile {
    /// Which document of its change it is, if it is one.
    pub fn in_change(&self) -> Option<&ChangeFile> {
        match self {
            Self::Change(_, file) | Self::Archived(_, file) => Some(file),
            Self::MainSpec(_) | Self::Stray(_) => None,
        }
    }

    /// The same document of a change that was archived.
    #[must_use]
    pub fn in_archive(self, name: &ArchiveName) -> Self {
        match self {
            Self::Change(_, file) => Self::Archived(name.clone(), file),
            elsewhere => elsewhere,
        }
    }

    /// The path from the root of the project.
    pub fn path(&self) -> String {
        match self {
            Self::Change(change, file) => file.path_in_project(change).to_string(),
            Self::Archived(name, file) => {
                layout::archived_change(name).join(&file.path()).to_string()
            }
            Self::MainSpec(spec) => layout::main_spec(spec).to_string(),
            Self::Stray(path) => path.clone(),
        }
    }
}

/// What was found in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub file: CheckedFile,
    /// Its text, for showing; empty where there was none.
    pub text: String,
    /// What is wrong, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// What is wrong too and was left out by [`cap`].
    pub omitted: Vec<Omitted>,
    /// What the document says does not matter, with its reasons. It counts as no finding.
    pub allowed: Vec<Allowed>,
}

/// Findings of a rule that are counted, but not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Omitted {
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// How much it weighs in this project.
    pub severity: Severity,
    /// How many more times.
    pub count: usize,
}

impl FileReport {
    /// How many findings there are of each severity, listed or not.
    pub fn counts(&self) -> Counts {
        let listed = Counts::of(self.diagnostics.iter().map(Diagnostic::severity));
        self.omitted.iter().fold(listed, |sum, omitted| {
            let count = omitted.count;
            sum.plus(match omitted.severity {
                Severity::High => Counts { high: count, ..Counts::default() },
                Severity::Medium => Counts { medium: count, ..Counts::default() },
                Severity::Low => Counts { low: count, ..Counts::default() },
            })
        })
    }
}

/// How many findings of one rule are listed.
pub const FINDINGS_PER_RULE: usize = 1000;

/// Leaves out what nobody reads: of each rule the first thousand findings are listed, the others
/// are counted. A file of two megabytes can break a rule a hundred thousand times.
pub fn cap(reports: &mut [FileReport]) {
    let mut listed: BTreeMap<&str, usize> = BTreeMap::new();
    for report in reports {
        let mut omitted: BTreeMap<&str, Omitted> = BTreeMap::new();
        report.diagnostics.retain(|diagnostic| {
            let (rule, severity) = (diagnostic.rule, diagnostic.severity());
            let listed = listed.entry(rule.code).or_default();
            *listed += 1;
            if *listed > FINDINGS_PER_RULE {
                omitted.entry(rule.code).or_insert(Omitted { rule, severity, count: 0 }).count += 1;
            }
            *listed <= FINDINGS_PER_RULE
        });
        report.diagnostics.shrink_to_fit();
        report.allowed.truncate(FINDINGS_PER_RULE);
        report.omitted.extend(omitted.into_values());
    }
}

/// Adds findings about a document to what was found in it already. They are about what was
/// proven, which is not for a project to set.
pub fn add(
    reports: &mut Vec<FileReport>,
    documents: &Documents,
    file: ChangeFile,
    found: Vec<Diagnostic>,
) {
    match reports.iter_mut().find(|report| report.file.in_change() == Some(&file)) {
        Some(report) => {
            report.diagnostics.extend(found);
            report.diagnostics.sort_by_key(|d| (d.span.start, d.rule.code));
        }
        None => {
            let (source, extras) = (documents.get(&file), Extras::default());
            push(reports, CheckedFile::Change(documents.id.clone(), file), source, &extras, found);
        }
    }
}

/// A file among specs that is not a spec: no rule would ever look at it.
pub fn stray_spec(name: &str, path: String) -> FileReport {
    let message = format!("`{name}` is not the file of a spec and is ignored");
    let finding = rules::BAD_ID.at(Span::at(0), message);
    let finding =
        finding.with_fix("Name it `<spec id>.md`, such as `auth-flow.md`, or move it away.");
    FileReport {
        file: CheckedFile::Stray(path),
        text: String::new(),
        diagnostics: vec![finding],
        omitted: Vec::new(),
        allowed: Vec::new(),
    }
}

/// How many findings there are in several files.
pub fn counts(reports: &[FileReport]) -> Counts {
    reports.iter().fold(Counts::default(), |sum, report| sum.plus(report.counts()))
}

/// How many findings the documents say do not matter.
pub fn allowed(reports: &[FileReport]) -> usize {
    reports.iter().map(|report| report.allowed.len()).sum()
}

/// The diagnostics of one document of a change.
pub fn of_file<'r>(reports: &'r [FileReport], file: &ChangeFile) -> &'r [Diagnostic] {
    let report = reports.iter().find(|report| report.file.in_change() == Some(file));
    report.map(|report| report.diagnostics.as_slice()).unwrap_or_default()
}

/// Everything a rule may want to know about a change.
struct Context<'a> {
    id: &'a ChangeId,
    main: &'a MainSpecs,
    extras: &'a Extras,
    specs: BTreeMap<&'a SpecId, &'a Spec>,
    /// The requirements of those that the proposal lists.
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

impl Documents {
    /// What is wrong with the change, by file. Files without findings are left out.
    pub fn findings(&self, main: &MainSpecs, extras: &Extras) -> Vec<FileReport> {
        let specs: BTreeMap<&SpecId, &Spec> = self.readable_specs().collect();
        let own = self.planned_specs();
        let own = own.map(|(id, spec)| (id.clone(), requirement_ids(spec))).collect();
        let context = Context { id: &self.id, main, extras, specs, own };
        let mut reports = Vec::new();
        let mut add = |file: ChangeFile, found: Vec<Diagnostic>| {
            let source = self.get(&file);
            let file = CheckedFile::Change(self.id.clone(), file);
            push(&mut reports, file, source, extras, found);
        };
        add(ChangeFile::Proposal, self.check_proposal(&context));
        for (id, spec) in &self.specs {
            let mut found = spec.diagnostics().to_vec();
            if let Some(text) = spec.text() {
                spec::check(id, spec.value(), text, &context, &mut found);
            }
            add(ChangeFile::Spec(id.clone()), found);
        }
        add(ChangeFile::Tasks, self.check_tasks(&context));
        add(ChangeFile::Clarifications, self.check_clarifications());
        add(ChangeFile::Review, self.check_review());
        add(ChangeFile::State, self.state.diagnostics());
        reports
    }

    fn check_proposal(&self, context: &Context<'_>) -> Vec<Diagnostic> {
        let mut found = self.proposal.diagnostics().to_vec();
        check_presence(self.proposal.source(), "proposal.md", &mut found);
        if let Some(text) = self.proposal.text() {
            proposal::check(self.proposal.value(), text, context, &mut found);
        }
        found
    }

    fn check_tasks(&self, context: &Context<'_>) -> Vec<Diagnostic> {
        let mut found = self.tasks.diagnostics().to_vec();
        check_presence(self.tasks.source(), "tasks.md", &mut found);
        if let Some(text) = self.tasks.text() {
            tasks::check(self.tasks.value(), text, context, &mut found);
        }
        found
    }

    fn check_clarifications(&self) -> Vec<Diagnostic> {
        let mut found = self.clarifications.diagnostics().to_vec();
        let Some(text) = self.clarifications.text() else { return found };
        let clarifications = self.clarifications.value();
        if let Some(sixth) = clarifications.questions.get(MAX_QUESTIONS) {
            let message = format!("there are {} questions", clarifications.questions.len());
            found.push(rules::TOO_MANY_QUESTIONS.at(sixth.place.0, message));
        }
        check_owner(clarifications.change.as_ref(), &self.id, text, &mut found);
        found
    }

    fn check_review(&self) -> Vec<Diagnostic> {
        let mut found = self.review.diagnostics().to_vec();
        // A reviewer names the change as it was called then.
        let named = self.review.value().change_id.as_ref().filter(|id| !self.is_called(id));
        if let Some(text) = self.review.text() {
            check_owner(named, &self.id, text, &mut found);
        }
        found
    }
}

/// Checks a main spec.
pub fn main_spec(id: &SpecId, spec: &Doc<Spec>, extras: &Extras) -> Option<FileReport> {
    let mut found = spec.diagnostics().to_vec();
    if let Some(text) = spec.text() {
        spec::check_text(id, spec.value(), text, extras, &mut found);
    }
    let mut reports = Vec::new();
    push(&mut reports, CheckedFile::MainSpec(id.clone()), spec.source(), extras, found);
    reports.pop()
}

/// The requirements of a spec, for [`MainSpecs`].
pub fn requirement_ids(spec: &Spec) -> BTreeSet<RequirementId> {
    spec.requirements.iter().map(|requirement| requirement.id).collect()
}

fn check_presence(source: &Source, file: &str, found: &mut Vec<Diagnostic>) {
    if *source == Source::Missing {
        found.push(rules::FILE_MISSING.at(Span::at(0), format!("{file} is missing")));
    }
}

/// Clarifications and reviews are those of their own change: a verdict copied from another counts for nothing.
fn check_owner(named: Option<&ChangeId>, id: &ChangeId, text: &str, found: &mut Vec<Diagnostic>) {
    if let Some(named) = named.filter(|named| *named != id) {
        let outline = Outline::scan(text);
        let message = format!("this belongs to `{named}`, in the directory of `{id}`");
        found.push(rules::ID_MISMATCH.at(document::frontmatter_place(&outline), message));
    }
}

/// For so many values the place is looked up in each list. A list of a megabyte may have a hundred
/// thousand that are wrong, and each look goes through all of it.
const LOOKED_UP: usize = 20;

/// Looks places up, as long as that is cheap; behind that, it is the place of the whole.
fn looked_up(whole: Span) -> impl FnMut(&dyn Fn() -> Option<Span>) -> Span {
    let mut left = LOOKED_UP;
    move |look| {
        if left == 0 {
            return whole;
        }
        left -= 1;
        look().unwrap_or(whole)
    }
}

/// Says that a section is missing: at the heading that was probably meant for it, or else at the
/// title of the document.
fn missing_section(
    rule: &'static Rule,
    name: &str,
    known: &[&str],
    text: &str,
    top: Span,
) -> Diagnostic {
    let outline = Outline::scan(text);
    let is_known = |title: &str| known.iter().any(|known| known.eq_ignore_ascii_case(title));
    // In many languages one word means both.
    let alike = match name {
        "Overview" => "Summary",
        "Summary" => "Overview",
        other => other,
    };
    let meant = outline.headings.iter().find(|heading| {
        let title = heading.title.of(text);
        let at_wrong_level = heading.level != 2 && title.eq_ignore_ascii_case(name);
        let translated = language::heading(title) == Some(name)
            || name != alike && language::same_heading(title, alike);
        let misspelled = || nearest(title, std::iter::once(name)).is_some();
        at_wrong_level || !is_known(title) && heading.level <= 3 && (translated || misspelled())
    });
    let message = format!("the section `## {name}` is missing");
    if let Some(heading) = meant {
        let shown = excerpt(heading.span.of(text), 60);
        return rule
            .at(heading.span, format!("{message}; did you mean it by `{shown}`?"))
            .with_fix(format!(
                "Write `## {name}`, or the same in another language that agentd reads."
            ));
    }
    let title = outline.headings.iter().find(|heading| heading.level == 1);
    rule.at(title.map_or(top, |title| title.span), message)
}

/// Whether a rule was broken already.
fn has(found: &[Diagnostic], rule: &Rule) -> bool {
    found.iter().any(|diagnostic| diagnostic.rule == rule)
}

/// Weighs what was found as the project does, and leaves out what it switched off and what the
/// document allows. All callers get findings from here.
fn push(
    reports: &mut Vec<FileReport>,
    file: CheckedFile,
    source: &Source,
    extras: &Extras,
    found: Vec<Diagnostic>,
) {
    let text = source.text().unwrap_or_default();
    let comments = allow::read(allow::own_text(&file, text));
    if found.is_empty() && comments.is_empty() {
        return;
    }
    let mut diagnostics = extras.rules.weigh(found);
    let (allowed, wrong) = comments.apply(&mut diagnostics);
    diagnostics.extend(extras.rules.weigh(wrong));
    if diagnostics.is_empty() && allowed.is_empty() {
        return;
    }
    diagnostics.sort_by_key(|d| (d.span.start, d.rule.code));
    reports.push(FileReport {
        file,
        text: text.to_owned(),
        diagnostics,
        omitted: Vec::new(),
        allowed,
    });
}
