//! The documents of one change, each read once: its text, what the text says, and what is wrong
//! with it. Everything that looks at a change as a whole takes this.
//!
//! A text is parsed when somebody first asks for its value, and never twice: copies share what
//! was parsed, and [`Documents::with`] replaces one document and keeps the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use crate::diagnostic::{Diagnostic, Parsed};
use crate::document::clarifications::{self, Clarifications};
use crate::document::proposal::{self, Proposal};
use crate::document::rename;
use crate::document::review::{self, Review};
use crate::document::review_block::ReviewBlock;
use crate::document::round::{self, Round};
use crate::document::spec::{self, Spec};
use crate::document::tasks::{self, Tasks};
use crate::hash::Digest;
use crate::ids::{ChangeId, SpecId};
use crate::layout::ChangeFile;
use crate::rules;
use crate::span::Span;
use crate::state::{self, State, StateError};

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

static MISSING: Source = Source::Missing;

impl Source {
    /// The text, if there is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }

    /// What is wrong with the file itself.
    fn diagnostics(&self) -> Vec<Diagnostic> {
        match self {
            Self::Unreadable(why) => vec![rules::FILE_UNREADABLE.at(Span::at(0), why.clone())],
            Self::Text(_) | Self::Missing => Vec::new(),
        }
    }
}

/// One document: its text, what the text says, and what is wrong with it.
#[derive(Debug)]
pub struct Doc<T> {
    source: Source,
    parse: fn(&str) -> Parsed<T>,
    parsed: OnceLock<Parsed<T>>,
}

impl<T> Doc<T> {
    /// A document with the parser of its kind.
    pub fn new(source: Source, parse: fn(&str) -> Parsed<T>) -> Self {
        Self { source, parse, parsed: OnceLock::new() }
    }

    /// The text, or why there is none.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The text, if there is one.
    pub fn text(&self) -> Option<&str> {
        self.source.text()
    }

    /// What the document says. Without a text, what an empty one would say.
    pub fn value(&self) -> &T {
        &self.parsed().value
    }

    /// What the document says, if there is a text.
    pub fn value_if_there(&self) -> Option<&T> {
        self.text().map(|_| self.value())
    }

    /// What is wrong with the text by itself. What the other documents make wrong with it is in
    /// [`Documents::findings`].
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.parsed().diagnostics
    }

    fn parsed(&self) -> &Parsed<T> {
        self.parsed.get_or_init(|| match &self.source {
            Source::Text(text) => (self.parse)(text),
            source => Parsed { value: (self.parse)("").value, diagnostics: source.diagnostics() },
        })
    }
}

/// `STATE.yaml`, which belongs to agentd: what is not understood there is an error.
#[derive(Debug)]
pub struct StateDoc {
    change: ChangeId,
    source: Source,
    parsed: OnceLock<Option<Result<State, StateError>>>,
}

impl StateDoc {
    fn new(change: &ChangeId, source: Source) -> Self {
        Self { change: change.clone(), source, parsed: OnceLock::new() }
    }

    /// The text, or why there is none.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The state, or why it cannot be used; none where there is no text.
    pub fn value(&self) -> Option<Result<&State, &StateError>> {
        let parse = || self.source.text().map(|text| state::parse(text, &self.change));
        self.parsed.get_or_init(parse).as_ref().map(Result::as_ref)
    }

    /// What is wrong with it.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        match self.value() {
            Some(Err(error)) => vec![rules::STATE_INVALID.at(error.span(), error.to_string())],
            Some(Ok(_)) => Vec::new(),
            None => self.source.diagnostics(),
        }
    }
}

/// The documents of a change. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Documents {
    /// The change.
    pub id: ChangeId,
    /// `STATE.yaml`.
    pub state: Arc<StateDoc>,
    /// `clarifications.md`.
    pub clarifications: Arc<Doc<Clarifications>>,
    /// `proposal.md`.
    pub proposal: Arc<Doc<Proposal>>,
    /// `specs/*.md`.
    pub specs: BTreeMap<SpecId, Arc<Doc<Spec>>>,
    /// `tasks.md`.
    pub tasks: Arc<Doc<Tasks>>,
    /// `REVIEW.md`.
    pub review: Arc<Doc<Review>>,
}

impl Documents {
    /// The files that are documents of every change; its specs come on top.
    pub const FILES: [ChangeFile; 5] = [
        ChangeFile::State,
        ChangeFile::Clarifications,
        ChangeFile::Proposal,
        ChangeFile::Tasks,
        ChangeFile::Review,
    ];

    /// The documents with these texts; those that are not listed are missing.
    pub fn read(id: ChangeId, texts: impl IntoIterator<Item = (ChangeFile, Source)>) -> Self {
        let mut documents = Self {
            state: Arc::new(StateDoc::new(&id, Source::Missing)),
            id,
            clarifications: doc(Source::Missing, clarifications::parse),
            proposal: doc(Source::Missing, proposal::parse),
            specs: BTreeMap::new(),
            tasks: doc(Source::Missing, tasks::parse),
            review: doc(Source::Missing, review::parse),
        };
        for (file, source) in texts {
            documents.set(&file, source);
        }
        documents
    }

    /// The same documents with another text of one file. Only that one is parsed again.
    #[must_use]
    pub fn with(&self, file: &ChangeFile, source: Source) -> Self {
        let mut documents = self.clone();
        documents.set(file, source);
        documents
    }

    /// The same documents with a state that was just written.
    #[must_use]
    pub fn with_state(&self, state: State) -> Self {
        let source = Source::Text(state::render(&state));
        let parsed = OnceLock::from(Some(Ok(state)));
        let state = Arc::new(StateDoc { change: self.id.clone(), source, parsed });
        Self { state, ..self.clone() }
    }

    fn set(&mut self, file: &ChangeFile, source: Source) {
        match file {
            ChangeFile::State => self.state = Arc::new(StateDoc::new(&self.id, source)),
            ChangeFile::Clarifications => self.clarifications = doc(source, clarifications::parse),
            ChangeFile::Proposal => self.proposal = doc(source, proposal::parse),
            ChangeFile::Spec(id) if source == Source::Missing => {
                self.specs.remove(id);
            }
            ChangeFile::Spec(id) => {
                self.specs.insert(id.clone(), doc(source, spec::parse));
            }
            ChangeFile::Tasks => self.tasks = doc(source, tasks::parse),
            ChangeFile::Review => self.review = doc(source, review::parse),
            // Records of agentd, which no rule looks at.
            ChangeFile::Journal
            | ChangeFile::Receipt
            | ChangeFile::Challenge
            | ChangeFile::Comments
            | ChangeFile::Round(_)
            | ChangeFile::GeminiContext
            | ChangeFile::AgentsContext
            | ChangeFile::Base(_)
            | ChangeFile::ArchiveRecord
            | ChangeFile::Run(_) => {}
        }
    }

    /// The text of a document; missing for files that are no documents.
    pub fn get(&self, file: &ChangeFile) -> &Source {
        match file {
            ChangeFile::State => self.state.source(),
            ChangeFile::Clarifications => self.clarifications.source(),
            ChangeFile::Proposal => self.proposal.source(),
            ChangeFile::Spec(id) => self.specs.get(id).map_or(&MISSING, |spec| spec.source()),
            ChangeFile::Tasks => self.tasks.source(),
            ChangeFile::Review => self.review.source(),
            ChangeFile::Journal
            | ChangeFile::Receipt
            | ChangeFile::Challenge
            | ChangeFile::Comments
            | ChangeFile::Round(_)
            | ChangeFile::GeminiContext
            | ChangeFile::AgentsContext
            | ChangeFile::Base(_)
            | ChangeFile::ArchiveRecord
            | ChangeFile::Run(_) => &MISSING,
        }
    }

    /// Whether a document is there, readable or not.
    pub fn has(&self, file: &ChangeFile) -> bool {
        *self.get(file) != Source::Missing
    }

    /// The specs that can be read.
    pub fn readable_specs(&self) -> impl Iterator<Item = (&SpecId, &Spec)> {
        self.specs.iter().filter_map(|(id, spec)| Some((id, spec.value_if_there()?)))
    }

    /// Whether a spec is part of the plan: the proposal lists it, or there is no proposal yet. A
    /// spec that was dropped from the list is not, even while its file is still there.
    pub fn lists(&self, id: &SpecId) -> bool {
        let listed = |proposal: &Proposal| proposal.affected_specs.iter().any(|s| s.id == *id);
        self.proposal.value_if_there().is_none_or(listed)
    }

    /// The specs of the plan that can be read.
    pub fn planned_specs(&self) -> impl Iterator<Item = (&SpecId, &Spec)> {
        self.readable_specs().filter(|(id, _)| self.lists(id))
    }

    /// The documents that are judged as a plan: the proposal, its specs and the tasks.
    pub fn plan_files(&self) -> impl Iterator<Item = ChangeFile> {
        let specs = self.specs.keys().filter(|id| self.lists(id)).cloned().map(ChangeFile::Spec);
        [ChangeFile::Proposal].into_iter().chain(specs).chain([ChangeFile::Tasks])
    }

    /// The specs whose requirements the change may refer to: those it edits, and those that its
    /// tasks name.
    pub fn referred_specs(&self) -> BTreeSet<&SpecId> {
        let refs = self.tasks.value().tasks.iter().flat_map(|task| &task.spec_refs);
        self.specs.keys().chain(refs.map(|spec_ref| &spec_ref.spec)).collect()
    }

    /// The reviews of the plan, oldest first.
    pub fn reviews(&self) -> &[ReviewBlock] {
        &self.proposal.value().reviews
    }

    /// The latest review of the plan as it is now.
    pub fn standing_review(&self) -> Option<&ReviewBlock> {
        let plan = self.digest();
        self.reviews().iter().rfind(|review| review.plan.as_ref() == Some(&plan))
    }

    /// The review of the plan as it is now whose verdict was taken. Another block, no matter what it
    /// says, was not given in a call that agentd started (T1).
    pub fn counted_review(&self, state: &State) -> Option<&ReviewBlock> {
        let known = state.plan_review.as_ref()?;
        if known.plan_hash != self.digest() {
            return None;
        }
        self.reviews().iter().rfind(|review| known.is_of(review))
    }

    /// The state of a change that was renamed. That is rare, so others are not parsed for it.
    fn renamed(&self) -> Option<&State> {
        let text = self.state.source().text()?;
        text.contains("\nrenamed:").then(|| self.state.value()?.ok()).flatten()
    }

    /// The ID with which a change began that has another one now.
    fn first_id(&self) -> Option<&ChangeId> {
        Some(&self.renamed()?.renamed.first()?.from)
    }

    /// Whether the change has or had this ID.
    pub(crate) fn is_called(&self, id: &ChangeId) -> bool {
        *id == self.id || self.renamed().is_some_and(|state| state.ids().any(|its| its == id))
    }

    /// The digest of the plan: of everything that a reviewer judges and nothing that moves by
    /// itself, such as times, versions, reviews and ticks.
    pub fn digest(&self) -> Digest {
        let mut all = String::new();
        let mut add = |name: &str, text: &str| {
            // Lengths in front keep the parts apart.
            let text = text.replace("\r\n", "\n");
            all.push_str(&format!("{name} {}\n", text.len()));
            all.push_str(&text);
        };
        let proposal = self.proposal.text().unwrap_or_default();
        match self.first_id() {
            // A verdict is not about the name, which stands in the title.
            Some(first) => {
                let text = rename::with_title(proposal, &ChangeFile::Proposal, &self.id, first);
                add("proposal", &proposal::reviewed_text(&text));
            }
            None => add("proposal", &proposal::reviewed_text(proposal)),
        }
        for spec in &self.proposal.value().affected_specs {
            add("affected", spec.id.as_str());
        }
        for (id, spec) in &self.specs {
            let text = spec.text().unwrap_or_default();
            add(id.as_str(), &spec::reviewed_text(text, spec.value()));
        }
        for task in &self.tasks.value().tasks {
            add("task", &tasks::reviewed_text(task));
        }
        Digest::of(all)
    }

    /// The plan as it is now, for the record of a review.
    pub fn round(&self) -> Round {
        let mut files = BTreeMap::new();
        if let Some(text) = self.proposal.text() {
            let reviewed = proposal::reviewed_text(text) + "\n";
            files.insert(ChangeFile::Proposal.path().to_string(), reviewed);
        }
        let specs = self.specs.iter().map(|(id, spec)| (ChangeFile::Spec(id.clone()), spec.text()));
        for (file, text) in specs.chain([(ChangeFile::Tasks, self.tasks.text())]) {
            if let Some(text) = text {
                files.insert(file.path().to_string(), round::body(text).to_owned());
            }
        }
        let edits = self.readable_specs().filter_map(|(id, spec)| {
            Some((ChangeFile::Spec(id.clone()).path().to_string(), round::main_edits(spec)?))
        });
        Round { plan: Some(self.digest()), files, main_edits: edits.collect() }
    }

    /// The documents of the plan that differ from an earlier reading of them.
    pub fn changed_since(&self, earlier: &Self) -> Vec<ChangeFile> {
        let specs: BTreeSet<&SpecId> = self.specs.keys().chain(earlier.specs.keys()).collect();
        let specs = specs.into_iter().map(|id| ChangeFile::Spec(id.clone()));
        let files = [ChangeFile::Proposal, ChangeFile::Tasks].into_iter().chain(specs);
        // A review in the proposal is no change of the plan.
        let judged = |documents: &Self, file: &ChangeFile| match (file, documents.get(file).text())
        {
            (ChangeFile::Proposal, Some(text)) => Some(proposal::reviewed_text(text)),
            (_, text) => text.map(str::to_owned),
        };
        files.filter(|file| judged(self, file) != judged(earlier, file)).collect()
    }
}

fn doc<T>(source: Source, parse: fn(&str) -> Parsed<T>) -> Arc<Doc<T>> {
    Arc::new(Doc::new(source, parse))
}
