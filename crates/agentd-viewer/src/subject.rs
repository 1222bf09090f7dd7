//! A change as its pages show it: open or archived, with its documents.

use agentd_core::check::{self, FileReport};
use agentd_core::diagnostic::Diagnostic;
use agentd_core::document::comments::{Comment, Comments};
use agentd_core::document::proposal::Proposal;
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::document::spec::Spec;
use agentd_core::document::tasks::{Status, Task};
use agentd_core::documents::{Documents, Source};
use agentd_core::ids::{ChangeId, RequirementId, SpecId};
use agentd_core::layout::{ArchiveName, ChangeFile, RunName};
use agentd_core::phase::Phase;
use agentd_core::state::State;
use agentd_engine::change::position::{Position, position};
use agentd_engine::change::{Snapshot, comments, documents};
use agentd_engine::store::{Change, LockName, LockState, Project, lock_state};

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
            Self::Archived(_) => project.clone(),
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
    snapshot: Snapshot,
    /// Why the state cannot be read.
    pub(super) problem: Option<String>,
    /// What `agentd validate` reports. Archived changes are no longer checked.
    pub(super) reports: Vec<FileReport>,
    pub(super) comments: Comments,
    /// The command that is working on it now.
    pub(super) running: Option<String>,
    home: Project,
}

impl Subject {
    pub(super) fn load(project: &Project, which: ChangeRef) -> Result<Self, Problem> {
        let project = &which.home(project);
        let snapshot = which.open(project)?.snapshot()?;
        let problem = snapshot.state_if_begun().err().map(|error| error.to_string());
        let (reports, running) = match &which {
            ChangeRef::Open(id) => {
                let config = documents::load_config(project).unwrap_or_default();
                (snapshot.findings(project, &config.extras()), running(project, id))
            }
            ChangeRef::Archived(_) => (Vec::new(), None),
        };
        let comments = comments::list(snapshot.change())?;
        let home = project.clone();
        Ok(Self { which, snapshot, problem, reports, comments, running, home })
    }

    /// Where it stands; none where it is archived, or that cannot be found out.
    pub(super) fn position(&self) -> Option<Position> {
        let high = check::counts(&self.reports).high;
        self.is_open().then(|| position(&self.home, &self.snapshot, high).ok()).flatten()
    }

    pub(super) fn id(&self) -> &ChangeId {
        self.snapshot.id()
    }

    /// The calls of agents, oldest first.
    pub(super) fn runs(&self) -> Result<&[RunName], Problem> {
        Ok(self.snapshot.runs()?)
    }

    /// The change on disk, for its rounds and for the text of a run.
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

    /// The address of its first page.
    pub(super) fn address(&self) -> String {
        self.which.address()
    }

    /// Whether it can be commented on and decided.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.which, ChangeRef::Open(_))
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
        match (summary.is_empty(), asked) {
            (true, Some(asked)) => headline(asked.first_paragraph().as_str()),
            (true, None) => self.id().to_string(),
            (false, _) => headline(summary.as_str()),
        }
    }

    /// How many tasks are done.
    pub(super) fn completed(&self) -> usize {
        self.tasks().iter().filter(|task| task.status == Status::Done).count()
    }

    /// The text of a document and the findings of `validate` in it.
    pub(super) fn diagnostics(&self, file: &ChangeFile) -> (&str, &[Diagnostic]) {
        let found = check::of_file(&self.reports, file);
        let text = if found.is_empty() { None } else { self.documents().get(file).text() };
        (text.unwrap_or_default(), found)
    }

    /// The comments on a document.
    pub(super) fn comments_on(&self, file: &ChangeFile) -> impl Iterator<Item = &Comment> {
        let path = file.path();
        self.comments.comments.iter().filter(move |comment| comment.on.as_str() == path.as_str())
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
        let others = [
            (ChangeFile::Tasks, "Tasks"),
            (ChangeFile::Clarifications, "Clarifications"),
            (ChangeFile::Review, "Code review"),
        ];
        let all = [(ChangeFile::Proposal, "Proposal")].into_iter().chain(specs).chain(others);
        let there = all.filter(|(file, _)| self.documents().has(file));
        there.map(|(file, title)| (file, title.to_owned())).collect()
    }

    /// The text of a document.
    pub(super) fn source(&self, file: &ChangeFile) -> Option<&Source> {
        let is_document = match file {
            ChangeFile::Spec(id) => self.documents().specs.contains_key(id),
            ChangeFile::State => false,
            file => Documents::FILES.contains(file),
        };
        is_document.then(|| self.documents().get(file))
    }

    /// The address of a document.
    pub(super) fn document_address(&self, file: &ChangeFile) -> String {
        let base = self.address();
        match file {
            ChangeFile::Spec(id) => format!("{base}/specs/{id}"),
            ChangeFile::Tasks => format!("{base}/tasks"),
            ChangeFile::Clarifications => format!("{base}/clarifications"),
            ChangeFile::Review => format!("{base}/code-review"),
            _ => format!("{base}/proposal"),
        }
    }

    /// The latest verdict on the plan.
    pub(super) fn verdict(&self) -> Option<PlanVerdict> {
        self.proposal().reviews.last().map(|review| review.verdict)
    }
}

/// The command that runs a workflow on a change.
pub(super) fn running(project: &Project, id: &ChangeId) -> Option<String> {
    match lock_state(project.dir(), &LockName::Run(id.clone())) {
        Ok(LockState::Held(holder)) => {
            Some(holder.map_or_else(|| "agentd".to_owned(), |holder| holder.command))
        }
        Ok(LockState::Free) | Err(_) => None,
    }
}
