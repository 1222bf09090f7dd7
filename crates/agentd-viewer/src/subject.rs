//! A change as the viewer looks at it: open or archived, its documents read once.

use agentd_core::check::{ChangeTexts, FileReport, Source};
use agentd_core::diagnostic::Diagnostic;
use agentd_core::document::comments::{Comment, Comments};
use agentd_core::document::proposal::{self, Proposal};
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::document::spec::{self, Spec};
use agentd_core::document::tasks::{self, Status, Task, Tasks};
use agentd_core::ids::{ChangeId, RequirementId, SpecId};
use agentd_core::layout::{ArchiveName, ChangeFile};
use agentd_core::phase::Phase;
use agentd_core::state::State;
use agentd_engine::change::{comments, documents};
use agentd_engine::store::{Change, LockName, LockState, Project, lock_state};

use super::markdown::headline;
use super::problem::Problem;

/// Which change is meant by an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Which {
    Open(ChangeId),
    Archived(ArchiveName),
}

impl Which {
    /// The address of its first page.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Open(id) => format!("/changes/{id}"),
            Self::Archived(name) => format!("/archive/{name}"),
        }
    }

    pub(super) fn open(&self, project: &Project) -> Result<Change, Problem> {
        Ok(match self {
            Self::Open(id) => project.change(id)?,
            Self::Archived(name) => project.archived_change(name)?,
        })
    }
}

/// A change with everything that a page may show of it.
pub(super) struct Subject {
    pub(super) which: Which,
    pub(super) change: Change,
    pub(super) texts: ChangeTexts,
    /// Nothing where the change has no STATE.yaml, or it cannot be read.
    pub(super) state: Option<State>,
    /// Why the state cannot be read.
    pub(super) problem: Option<String>,
    pub(super) proposal: Proposal,
    pub(super) specs: Vec<(SpecId, Spec)>,
    pub(super) tasks: Tasks,
    /// What `agentd validate` says. An archived change is not judged any more.
    pub(super) reports: Vec<FileReport>,
    pub(super) comments: Comments,
    /// Who is at work on it now.
    pub(super) running: Option<String>,
}

impl Subject {
    pub(super) fn load(project: &Project, which: Which) -> Result<Self, Problem> {
        let change = which.open(project)?;
        let texts = documents::load_texts(&change)?;
        let (state, problem) = match documents::load_state_if_begun(&change) {
            Ok(state) => (state, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let open = matches!(which, Which::Open(_));
        let extras =
            documents::load_config(project).map(|config| config.extras()).unwrap_or_default();
        let reports =
            if open { documents::validate_change(project, &change, &extras)? } else { Vec::new() };
        let running = match &which {
            Which::Open(id) => running(project, id),
            Which::Archived(_) => None,
        };
        let text = |source: &Source| source.text().unwrap_or_default().to_owned();
        let proposal = proposal::parse(&text(&texts.proposal)).value;
        let tasks = tasks::parse(&text(&texts.tasks)).value;
        let specs =
            texts.specs.iter().map(|(id, source)| (id.clone(), spec::parse(&text(source)).value));
        let specs = specs.collect();
        let comments = comments::list(&change)?;
        Ok(Self {
            which,
            change,
            texts,
            state,
            problem,
            proposal,
            specs,
            tasks,
            reports,
            comments,
            running,
        })
    }

    pub(super) fn id(&self) -> &ChangeId {
        self.change.id()
    }

    /// The address of its first page.
    pub(super) fn address(&self) -> String {
        self.which.address()
    }

    /// Whether comments and decisions can be made on it.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.which, Which::Open(_))
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        match self.which {
            Which::Archived(_) => Some(Phase::Archived),
            Which::Open(_) => self.state.as_ref().map(|state| state.phase),
        }
    }

    /// What it is about, in one line.
    pub(super) fn title(&self) -> String {
        let asked = self.state.as_ref().and_then(|state| state.description.as_ref());
        let summary = self.proposal.summary.first_paragraph();
        match (summary.is_empty(), asked) {
            (true, Some(asked)) => headline(asked.first_paragraph().as_str()),
            (true, None) => self.id().to_string(),
            (false, _) => headline(summary.as_str()),
        }
    }

    /// How many tasks are done.
    pub(super) fn completed(&self) -> usize {
        self.tasks.tasks.iter().filter(|task| task.status == Status::Done).count()
    }

    /// The findings of `validate` in a document.
    pub(super) fn diagnostics(&self, file: &ChangeFile) -> (&str, &[Diagnostic]) {
        let path = file.path_in_project(self.id());
        let report = self.reports.iter().find(|report| report.file == path.as_str());
        report.map_or(("", &[]), |report| (report.text.as_str(), report.diagnostics.as_slice()))
    }

    /// The comments on a document.
    pub(super) fn comments_on(&self, file: &ChangeFile) -> impl Iterator<Item = &Comment> {
        let path = file.path();
        self.comments.comments.iter().filter(move |comment| comment.on.as_str() == path.as_str())
    }

    /// The tasks that say that they implement a requirement.
    pub(super) fn tasks_for(&self, spec: &SpecId, requirement: RequirementId) -> Vec<&Task> {
        let names = |task: &&Task| {
            task.spec_refs.iter().any(|r| r.spec == *spec && r.requirement == Some(requirement))
        };
        self.tasks.tasks.iter().filter(names).collect()
    }

    /// The documents that are there, with their titles.
    pub(super) fn documents(&self) -> Vec<(ChangeFile, String)> {
        let mut all = Vec::new();
        let mut add = |file: ChangeFile, title: &str, source: &Source| {
            if *source != Source::Missing {
                all.push((file, title.to_owned()));
            }
        };
        add(ChangeFile::Proposal, "Proposal", &self.texts.proposal);
        for (id, source) in &self.texts.specs {
            add(ChangeFile::Spec(id.clone()), id.as_str(), source);
        }
        add(ChangeFile::Tasks, "Tasks", &self.texts.tasks);
        add(ChangeFile::Clarifications, "Clarifications", &self.texts.clarifications);
        add(ChangeFile::Review, "Code review", &self.texts.review);
        all
    }

    /// The text of a document.
    pub(super) fn source(&self, file: &ChangeFile) -> Option<&Source> {
        match file {
            ChangeFile::Proposal => Some(&self.texts.proposal),
            ChangeFile::Spec(id) => {
                self.texts.specs.iter().find(|(spec, _)| spec == id).map(|(_, source)| source)
            }
            ChangeFile::Tasks => Some(&self.texts.tasks),
            ChangeFile::Clarifications => Some(&self.texts.clarifications),
            ChangeFile::Review => Some(&self.texts.review),
            ChangeFile::State
            | ChangeFile::Challenge
            | ChangeFile::Comments
            | ChangeFile::Round(_)
            | ChangeFile::GeminiContext
            | ChangeFile::AgentsContext
            | ChangeFile::Base(_)
            | ChangeFile::ArchiveRecord
            | ChangeFile::Run(_) => None,
        }
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
        self.proposal.reviews.last().map(|review| review.verdict)
    }
}

/// Who runs a workflow on a change.
pub(super) fn running(project: &Project, id: &ChangeId) -> Option<String> {
    match lock_state(project.dir(), &LockName::Run(id.clone())) {
        Ok(LockState::Held(holder)) => {
            Some(holder.map_or_else(|| "agentd".to_owned(), |holder| holder.command))
        }
        Ok(LockState::Free) | Err(_) => None,
    }
}
