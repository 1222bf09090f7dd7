//! A change as its pages show it: open or archived, with its documents.

use std::cell::OnceCell;

use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::{Counts, Diagnostic};
use agentd_core::document::comments::{Comment, Commented, Comments};
use agentd_core::document::proposal::Proposal;
use agentd_core::document::spec::Spec;
use agentd_core::document::tasks::{Status, Task};
use agentd_core::documents::{Documents, Source};
use agentd_core::ids::{ChangeId, RequirementId, SpecId};
use agentd_core::layout::{ArchiveName, ChangeFile, RunName};
use agentd_core::phase::Phase;
use agentd_core::rules;
use agentd_core::standing::Standing;
use agentd_core::state::State;
use agentd_engine::archive::ArchiveError;
use agentd_engine::change::position::{Position, position};
use agentd_engine::change::{Snapshot, comments, documents};
use agentd_engine::insight::code_rounds::{CodeRounds, code_rounds};
use agentd_engine::insight::diff::{self, SpecDelta};
use agentd_engine::store::{Change, Project};

use super::live::Position as Shown;
use super::markdown::headline;
use super::problem::Problem;

/// Which change an address means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChangeRef {
    Open(ChangeId),
    Archived(ArchiveName),
}

impl ChangeRef {
    /// The address of its first page.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Open(id) => format!("/changes/{id}"),
            Self::Archived(name) => format!("/archive/{name}"),
        }
    }

    /// The project that it lives in.
    fn home(&self, project: &Project) -> Project {
        match self {
            Self::Open(id) => project.home_of(id),
            Self::Archived(name) => project.home_of_archived(name),
        }
    }

    fn open(&self, project: &Project) -> Result<Change, Problem> {
        Ok(match self {
            Self::Open(id) => project.change(id)?,
            Self::Archived(name) => project.archived_change(name)?,
        })
    }
}

/// A change with everything that a page may show of it, each document read once.
pub(super) struct Subject {
    pub(super) which: ChangeRef,
    /// How far an open change had got before it was read: what is newer is not shown.
    pub(super) seen: Option<Shown>,
    snapshot: Snapshot,
    /// Why the state cannot be read.
    pub(super) problem: Option<String>,
    /// What `agentd validate` reports. Archived changes are no longer checked.
    pub(super) reports: Vec<FileReport>,
    pub(super) comments: Comments,
    home: Project,
    position: Option<Position>,
    /// Worked out when a page first needs it.
    deltas: OnceCell<Result<Vec<SpecDelta>, String>>,
    code_rounds: OnceCell<CodeRounds>,
    /// Whether it is shown to people who do not have the project.
    is_for_others: bool,
}

impl Subject {
    pub(super) fn load(project: &Project, which: ChangeRef) -> Result<Self, Problem> {
        let home = which.home(project);
        let change = which.open(&home)?;
        let is_open = matches!(which, ChangeRef::Open(_));
        let seen = is_open.then(|| Shown::of(&[project.clone(), home.clone()], &change));
        let snapshot = change.snapshot()?;
        let problem = snapshot.state_if_begun().err().map(|error| error.to_string());
        let mut reports = Vec::new();
        if is_open {
            let config = documents::load_config(&home).unwrap_or_default();
            reports = snapshot.findings(&home, &config.extras());
        }
        let comments = comments::list(snapshot.change())?;
        let position = position(&home, &snapshot, check::counts(&reports).high).ok();
        let (deltas, code_rounds) = (OnceCell::new(), OnceCell::new());
        let mut subject = Self {
            which,
            seen,
            snapshot,
            problem,
            reports,
            comments,
            home,
            position,
            deltas,
            code_rounds,
            is_for_others: false,
        };
        if subject.is_being_written() {
            for report in &mut subject.reports {
                report.diagnostics.retain(|found| !NOT_YET.contains(&found.rule));
            }
        }
        Ok(subject)
    }

    /// Where it stands; none if that cannot be found out.
    pub(super) fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// Whether a command is working on it now.
    pub(super) fn is_running(&self) -> bool {
        self.position().is_some_and(|position| position.running.is_some())
    }

    /// Whether parts of its plan are still to come.
    pub(super) fn is_being_written(&self) -> bool {
        let standing = self.position().map(|position| position.course.standing);
        let is_planned = !matches!(self.phase(), None | Some(Phase::Proposed));
        // It was only begun, or questions about it are open.
        let is_new = !self.documents().has(&ChangeFile::Proposal);
        let is_unfinished = matches!(standing, Some(Standing::Running | Standing::Unfinished));
        !is_planned && (is_new || is_unfinished)
    }

    /// The project that the change lives in.
    pub(super) fn home(&self) -> &Project {
        &self.home
    }

    pub(super) fn id(&self) -> &ChangeId {
        self.snapshot.id()
    }

    /// The calls of agents, oldest first.
    pub(super) fn runs(&self) -> Result<&[RunName], Problem> {
        Ok(self.snapshot.runs()?)
    }

    /// The change as it was read.
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The change on disk, for the text of a run.
    pub(super) fn change(&self) -> &Change {
        self.snapshot.change()
    }

    pub(super) fn documents(&self) -> &Documents {
        &self.snapshot.documents
    }

    /// None if the change has no STATE.yaml, or it cannot be read.
    pub(super) fn state(&self) -> Option<&State> {
        self.documents().state.value()?.ok()
    }

    pub(super) fn proposal(&self) -> &Proposal {
        self.documents().proposal.value()
    }

    pub(super) fn tasks(&self) -> &[Task] {
        &self.documents().tasks.value().tasks
    }

    pub(super) fn specs(&self) -> impl Iterator<Item = (&SpecId, &Spec)> {
        self.documents().specs.iter().map(|(id, spec)| (id, spec.value()))
    }

    /// What it does to the main specs, or why that is not known.
    pub(super) fn deltas(&self) -> Result<&[SpecDelta], &str> {
        let find = || {
            let found = diff::specs(&self.home, &self.snapshot);
            found.map_err(|error: ArchiveError| error.to_string())
        };
        self.deltas.get_or_init(find).as_deref().map_err(String::as_str)
    }

    /// The rounds in which its code was reviewed. What cannot be read is not there.
    pub(super) fn code_rounds(&self) -> &CodeRounds {
        self.code_rounds.get_or_init(|| {
            let begun = self.state().is_some_and(|state| {
                state.code_review.is_some() || self.documents().has(&ChangeFile::Review)
            });
            let mut rounds = if begun {
                code_rounds(&self.snapshot).unwrap_or_default()
            } else {
                CodeRounds::default()
            };
            // Where no run was kept, there is the latest.
            if rounds.reviews.is_empty() {
                rounds.reviews.extend(self.documents().review.value_if_there().cloned());
            }
            rounds
        })
    }

    /// The address of its first page.
    pub(super) fn address(&self) -> String {
        self.which.address()
    }

    /// The same for people who do not have the project: there is nothing to press.
    pub(super) fn for_others(self) -> Self {
        Self { is_for_others: true, ..self }
    }

    /// Whether pages that are not a part of this one cannot be reached.
    pub(super) fn is_for_others(&self) -> bool {
        self.is_for_others
    }

    /// Whether it can be commented on and decided.
    pub(super) fn is_open(&self) -> bool {
        !self.is_archived() && !self.is_for_others
    }

    pub(super) fn is_archived(&self) -> bool {
        matches!(self.which, ChangeRef::Archived(_))
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        match self.which {
            ChangeRef::Archived(_) => Some(Phase::Archived),
            ChangeRef::Open(_) => self.state().map(|state| state.phase),
        }
    }

    /// What it is about, in one line.
    pub(super) fn title(&self) -> String {
        let asked = self.state().and_then(|state| state.description.as_ref());
        let summary = self.proposal().summary.first_paragraph();
        let title = match (summary.is_empty(), asked) {
            (true, Some(asked)) => headline(asked.first_paragraph().as_str()),
            (true, None) => String::new(),
            (false, _) => headline(summary.as_str()),
        };
        if title.is_empty() { self.id().to_string() } else { title }
    }

    /// How many tasks are done.
    pub(super) fn completed(&self) -> usize {
        self.tasks().iter().filter(|task| task.status == Status::Done).count()
    }

    /// How many findings of `validate` there are.
    pub(super) fn finding_counts(&self) -> Counts {
        check::counts(&self.reports)
    }

    /// The text of a document and the findings of `validate` in it.
    pub(super) fn diagnostics(&self, file: &ChangeFile) -> (&str, &[Diagnostic]) {
        let found = check::of_file(&self.reports, file);
        let text = if found.is_empty() { None } else { self.documents().get(file).text() };
        (text.unwrap_or_default(), found)
    }

    /// The comments on a document or a file, without answers.
    pub(super) fn comments_on<'s>(
        &'s self,
        on: &Commented,
    ) -> impl Iterator<Item = &'s Comment> + use<'s> {
        let on = on.to_string();
        self.comments
            .comments
            .iter()
            .filter(move |comment| comment.on.as_str() == on && comment.answers.is_none())
    }

    /// The answers to a comment, oldest first.
    pub(super) fn answers(&self, number: u32) -> impl Iterator<Item = &Comment> {
        self.comments.comments.iter().filter(move |comment| comment.answers == Some(number))
    }

    /// The tasks that implement a requirement.
    pub(super) fn tasks_for(&self, spec: &SpecId, requirement: RequirementId) -> Vec<&Task> {
        let names = |task: &&Task| {
            task.spec_refs.iter().any(|r| r.spec == *spec && r.requirement == Some(requirement))
        };
        self.tasks().iter().filter(names).collect()
    }

    /// The documents that exist, with their titles.
    pub(super) fn titles(&self) -> Vec<(ChangeFile, String)> {
        let specs = self.specs().map(|(id, _)| (ChangeFile::Spec(id.clone()), id.as_str()));
        let others = [(ChangeFile::Tasks, "Tasks"), (ChangeFile::Clarifications, "Clarifications")];
        let all = [(ChangeFile::Proposal, "Proposal")].into_iter().chain(specs).chain(others);
        let there = all.filter(|(file, _)| self.documents().has(file));
        there.map(|(file, title)| (file, title.to_owned())).collect()
    }

    /// The text of a document that is there, also if it cannot be read.
    pub(super) fn source(&self, file: &ChangeFile) -> Option<&Source> {
        let is_document = match file {
            ChangeFile::Spec(id) => self.documents().specs.contains_key(id),
            ChangeFile::State => false,
            file => Documents::FILES.contains(file),
        };
        let source = is_document.then(|| self.documents().get(file));
        source.filter(|source| **source != Source::Missing)
    }

    /// The address of a document.
    pub(super) fn document_address(&self, file: &ChangeFile) -> String {
        let base = self.address();
        match file {
            ChangeFile::Spec(id) => format!("{base}/specs/{id}"),
            ChangeFile::Tasks => format!("{base}/tasks"),
            ChangeFile::Clarifications => format!("{base}/clarifications"),
            ChangeFile::Review => format!("{base}/review"),
            _ => format!("{base}/proposal"),
        }
    }
}

/// Findings that only say that another part of the plan is not written yet.
static NOT_YET: [&agentd_core::diagnostic::Rule; 2] =
    [&rules::FILE_MISSING, &rules::AFFECTED_SPEC_MISSING];
