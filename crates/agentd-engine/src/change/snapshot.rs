//! A change, read once: its state, all its documents, and the calls of agents, as they were at one
//! moment.

use std::io;
use std::sync::{Arc, OnceLock};

use agentd_core::check::{self, Extras, FileReport, MainSpecs};
use agentd_core::document::round::{self, Round};
use agentd_core::document::spec;
use agentd_core::documents::Documents;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{ChangeFile, RunName};
use agentd_core::recording::Run;
use agentd_core::run_format::Record;
use agentd_core::state::State;

use super::documents::{DocumentError, main_specs_for, source};
use crate::agents::run_record::{read_records, read_records_with};
use crate::store::{Change, Entry, Project, StoreError};

/// A change as it was when it was read. Cloning is cheap: copies share what was read.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// What the documents say.
    pub documents: Documents,
    change: Change,
    /// Files among the specs that are not specs.
    strays: Arc<[Entry]>,
    /// Listed when somebody first asks for them: most commands need none.
    runs: Arc<OnceLock<Vec<RunName>>>,
}

impl Change {
    /// Reads the state and every document, each of them once. What cannot be read is part of
    /// the answer, not an error.
    pub fn snapshot(&self) -> Result<Snapshot, StoreError> {
        self.read_all(Documents::FILES.into_iter())
    }

    /// Reads every document but the state, which is about to be written.
    pub(crate) fn snapshot_without_state(&self) -> Result<Snapshot, StoreError> {
        self.read_all(Documents::FILES.into_iter().filter(|file| *file != ChangeFile::State))
    }

    fn read_all(&self, files: impl Iterator<Item = ChangeFile>) -> Result<Snapshot, StoreError> {
        let listed = self.spec_ids()?;
        let specs = listed.ids.into_iter().map(ChangeFile::Spec);
        let documents = self.documents(files.chain(specs));
        let strays = listed.odd.into();
        Ok(Snapshot { documents, change: self.clone(), strays, runs: Arc::default() })
    }

    /// Reads these documents; the others count as missing.
    pub(crate) fn documents(&self, files: impl IntoIterator<Item = ChangeFile>) -> Documents {
        let texts = files.into_iter().map(|file| {
            let text = source(self.read(&file));
            (file, text)
        });
        Documents::read(self.id().clone(), texts)
    }
}

impl Snapshot {
    /// The change.
    pub fn id(&self) -> &ChangeId {
        self.change.id()
    }

    /// The change on disk, to read what a snapshot does not hold, such as comments.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// The state of the change.
    pub fn state(&self) -> Result<&State, DocumentError> {
        let no_state = || DocumentError::NoState { change: self.id().clone() };
        self.state_if_begun()?.ok_or_else(no_state)
    }

    /// The state of the change, or none where there is no STATE.yaml: its documents were begun
    /// by hand or through an interactive client, and no workflow has run on it yet.
    pub fn state_if_begun(&self) -> Result<Option<&State>, DocumentError> {
        state_of(&self.documents, &self.change)
    }

    /// The calls of agents, oldest first, by the names of their records.
    pub fn runs(&self) -> Result<&[RunName], StoreError> {
        if let Some(runs) = self.runs.get() {
            return Ok(runs);
        }
        let listed = self.change.runs()?.ids;
        Ok(self.runs.get_or_init(|| listed))
    }

    /// What happened in a call. None if the file does not begin as the record of a call does.
    pub fn read_run(&self, name: &RunName) -> io::Result<Option<Run>> {
        let file = self.change.open_run(name).map_err(io::Error::other)?;
        Run::from_records(name.clone(), read_records(file)?)
    }

    /// The records of a call whose lines contain a text: the others, which are most of a long call,
    /// are not parsed.
    pub fn records_with(&self, name: &RunName, text: &str) -> io::Result<Vec<Record>> {
        let file = self.change.open_run(name).map_err(io::Error::other)?;
        read_records_with(file, text.as_bytes())?.collect()
    }

    /// The plan as a round of review saw it; none if it was not kept.
    pub fn round(&self, number: u32) -> Option<Round> {
        let text = self.change.read_if_exists(&ChangeFile::Round(number)).ok().flatten()?;
        round::parse(&text)
    }

    /// The same documents with a state that was just written.
    #[must_use]
    pub(crate) fn with_state(&self, state: State) -> Self {
        Self { documents: self.documents.with_state(state), ..self.clone() }
    }

    /// What is wrong with the change, by file.
    pub fn findings(&self, project: &Project, extras: &Extras) -> Vec<FileReport> {
        let mut main = main_specs_for(project, &self.documents);
        if self.change.archived().is_some() {
            self.add_bases(&mut main);
        }
        self.findings_against(&main, extras)
    }

    /// Adds what an archived change has removed or renamed: the main specs no longer have it.
    fn add_bases(&self, main: &mut MainSpecs) {
        for id in self.documents.specs.keys() {
            let base = self.change.read_if_exists(&ChangeFile::Base(id.clone()));
            if let Ok(Some(base)) = base {
                let base = spec::parse(&base).value;
                main.entry(id.clone()).or_default().extend(check::requirement_ids(&base));
            }
        }
    }

    /// The same, where the main specs are known.
    pub(crate) fn findings_against(&self, main: &MainSpecs, extras: &Extras) -> Vec<FileReport> {
        let mut reports = self.documents.findings(main, extras);
        let dir = self.change.dir_in_project();
        let path = |stray: &Entry| format!("{dir}/specs/{}", stray.name);
        reports.extend(self.strays.iter().map(|stray| check::stray_spec(&stray.name, path(stray))));
        check::cap(&mut reports);
        self.placed(reports)
    }

    /// Findings in the files of the change, where these are.
    pub(crate) fn placed(&self, reports: Vec<FileReport>) -> Vec<FileReport> {
        let Some(name) = self.change.archived() else { return reports };
        let placed =
            |report: FileReport| FileReport { file: report.file.in_archive(name), ..report };
        reports.into_iter().map(placed).collect()
    }
}

/// The state among the documents of a change.
pub(super) fn state_of<'d>(
    documents: &'d Documents,
    change: &Change,
) -> Result<Option<&'d State>, DocumentError> {
    match documents.state.value() {
        Some(Ok(state)) => Ok(Some(state)),
        Some(Err(error)) => {
            Err(DocumentError::State { change: change.id().clone(), source: error.clone() })
        }
        None if documents.has(&ChangeFile::State) => {
            // It could not be read, and of the error only the words were kept.
            change.read(&ChangeFile::State)?;
            Ok(None)
        }
        None => Ok(None),
    }
}
