//! The journal of a change, and the copy of it that decides.
//!
//! `journal.jsonl` is in the directory of the change and goes into git with it, so anyone who can
//! write to the project can write to it. The copy is in the user's state directory, where neither a
//! repository nor an agent can. A verdict counts if the state that has it is the one that the copy
//! ends with.
//!
//! A write goes: mark, copy, STATE.yaml, `journal.jsonl`, unmark. Killed before STATE.yaml, the last
//! entry of the copy is of something that did not happen, and is dropped. Killed after it, the
//! journal is one entry short, and is completed from the copy. The mark makes the next command look.

use std::ops::ControlFlow;

use agentd_core::documents::Documents;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::journal::{self, Compared, Event, Files, Journal, Mismatch, Public};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::stamp::Stamp;
use agentd_core::state::{self, State};
use agentd_core::text::Line;

use super::Snapshot;
use super::documents::{DocumentError, read_state};
use super::signing::{Signer, SigningError};
use crate::store::{Change, Holder, Project, ProjectDir, StoreError, WriteLock};

/// The largest journal that is read.
const LARGEST: u64 = 64 << 20;

/// The digests of the documents of a change, for an entry.
pub(crate) fn files(documents: &Documents) -> Files {
    let specs = documents.specs.keys().cloned().map(ChangeFile::Spec);
    let files = Documents::FILES.into_iter().filter(|file| *file != ChangeFile::State);
    let digest = |file: ChangeFile| {
        let text = documents.get(&file).text()?;
        Some((file.path().to_string(), Digest::of(text)))
    };
    files.chain(specs).filter_map(digest).collect()
}

/// A state that is about to be written.
pub(crate) struct Write<'w> {
    pub(crate) project: &'w Project,
    pub(crate) change: &'w Change,
    pub(crate) lock: &'w WriteLock,
    /// The state on disk and its text; none where the change begins.
    pub(crate) before: Option<(&'w State, &'w str)>,
    pub(crate) after: &'w State,
    /// The documents, where they are known.
    pub(crate) files: Files,
    pub(crate) now: Stamp,
}

/// Entries that are about to be written, with the journal that they follow.
pub(crate) struct Prepared {
    /// The state to be written.
    pub(crate) state_text: String,
    /// `journal.jsonl` as it is, and as it will be.
    pub(crate) public_before: Option<String>,
    pub(crate) public_after: String,
    private_before: Option<String>,
}

impl Write<'_> {
    /// Writes the state and records it.
    pub(crate) fn commit(&self) -> Result<(), DocumentError> {
        let prepared = self.prepare()?;
        let copy = Copy::of(self.project, self.change.id())?;
        prepared.begin(copy.as_ref())?;
        self.change.write(self.lock, &ChangeFile::State, prepared.state_text.as_bytes())?;
        let old = prepared.public_before.as_deref().unwrap_or_default();
        match prepared.public_after.strip_prefix(old).filter(|_| !old.is_empty()) {
            Some(more) => self.change.append(self.lock, &ChangeFile::Journal, more.as_bytes())?,
            None => {
                let text = prepared.public_after.as_bytes();
                self.change.write(self.lock, &ChangeFile::Journal, text)?;
            }
        }
        end(copy.as_ref())
    }

    /// Works out what to write.
    pub(crate) fn prepare(&self) -> Result<Prepared, DocumentError> {
        let public = read_public(self.change)?;
        let copy = Copy::of(self.project, self.change.id())?;
        let private = copy.as_ref().map(Copy::read).transpose()?.flatten();
        let mut events = journal::events(self.before.map(|(state, _)| state), self.after);
        // Asked and used before anything is written.
        let signer = Signer::of(self.project)?;
        let mut known = Journal::default();
        if let Some((state, text)) = self.before {
            let compared =
                compare(self.change.id(), state, text, public.as_deref(), private.as_deref())?;
            known = match compared {
                Some(compared) => compared.journal,
                None => {
                    let (phase, by) = (state.phase, Line::default());
                    let adopted = vec![Event::Adopted { phase, by }];
                    let nothing = Journal::default();
                    journal_of(self.entries(&nothing, adopted, state, text, signer.as_ref())?)
                }
            };
            events.retain(|event| *event != Event::Begun {});
        }
        let state_text = state::render(self.after);
        let new = self.entries(&known, events, self.after, &state_text, signer.as_ref())?;
        let lines: String = new.iter().map(|entry| entry.line() + "\n").collect();
        let public_after = known.text() + &lines;
        Ok(Prepared { state_text, public_before: public, public_after, private_before: private })
    }

    fn entries(
        &self,
        known: &Journal,
        events: Vec<Event>,
        state: &State,
        text: &str,
        signer: Option<&Signer>,
    ) -> Result<Vec<journal::Entry>, SigningError> {
        let sign = |text: &str| signer.map(|signer| signer.sign(text)).transpose();
        journal::entries(&known.head, events, state, text, &self.files, self.now, sign)
    }
}

fn journal_of(entries: Vec<journal::Entry>) -> Journal {
    let last = entries.last();
    let line = last.map(|entry| Digest::of(entry.line()));
    let head = journal::Head { seq: last.map_or(0, |entry| entry.seq), line };
    Journal { entries, head }
}

impl Prepared {
    /// Makes the copy say what is about to happen.
    pub(crate) fn begin(&self, copy: Option<&Copy>) -> Result<(), DocumentError> {
        let Some(copy) = copy else { return Ok(()) };
        copy.mark()?;
        let old = self.private_before.as_deref().unwrap_or_default();
        match self.public_after.strip_prefix(old).filter(|_| !old.is_empty()) {
            Some(more) => copy.dir.append(&copy.journal, more.as_bytes())?,
            None => copy.dir.write_atomic(&copy.journal, self.public_after.as_bytes())?,
        }
        Ok(())
    }
}

/// What is written is whole.
pub(crate) fn end(copy: Option<&Copy>) -> Result<(), DocumentError> {
    Ok(copy.map_or(Ok(()), Copy::unmark)?)
}

/// Where the copy of a journal is.
pub(crate) struct Copy {
    dir: ProjectDir,
    journal: agentd_core::rel_path::RelPath,
    mark: agentd_core::rel_path::RelPath,
}

impl Copy {
    /// None where the user has no directory for state: then nothing is kept apart.
    pub(crate) fn of(project: &Project, change: &ChangeId) -> Result<Option<Self>, StoreError> {
        let dir = match project.state_dir() {
            Err(StoreError::NoUserDir | StoreError::StateInProject { .. }) => return Ok(None),
            dir => dir?,
        };
        let (journal, mark) = (layout::journal_copy(change), layout::journal_mark(change));
        Ok(Some(Self { dir, journal, mark }))
    }

    fn read(&self) -> Result<Option<String>, StoreError> {
        read(&self.dir, &self.journal)
    }

    /// Not synced: after a power cut every command that relies on the journal compares it anyway.
    fn mark(&self) -> Result<(), StoreError> {
        self.dir.open_append(&self.mark).map(drop)
    }

    fn unmark(&self) -> Result<(), StoreError> {
        match self.dir.remove_file(&self.mark) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => removed,
        }
    }
}

fn read(
    dir: &ProjectDir,
    path: &agentd_core::rel_path::RelPath,
) -> Result<Option<String>, StoreError> {
    match dir.read_capped(path, LARGEST) {
        // Bytes that are not text are not a journal; nothing of it counts then.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn read_public(change: &Change) -> Result<Option<String>, StoreError> {
    match read(change.dir(), &ChangeFile::Journal.path()) {
        // A link or a directory in its place is not a journal.
        Err(StoreError::Symlink { .. } | StoreError::NotAFile { .. }) => Ok(Some(String::new())),
        text => text,
    }
}

fn compare(
    id: &ChangeId,
    state: &State,
    text: &str,
    public: Option<&str>,
    private: Option<&str>,
) -> Result<Option<Compared>, DocumentError> {
    journal::compare(state, text, public, private)
        .map_err(|source| DocumentError::Journal { change: id.clone(), source })
}

/// Compares a change with its record. None where there is no record: the change is from before
/// journals, or was made by hand.
///
/// The copy is by the ID of the change, which another one may have had since a change was archived:
/// then it is none of this one.
pub(crate) fn check(
    project: &Project,
    change: &Change,
    state: &State,
    text: &str,
) -> Result<Option<Compared>, DocumentError> {
    let public = read_public(change)?;
    let mut private = read_copy(project, change.id())?;
    if change.archived().is_some() {
        let first = |journal: &String| journal.lines().next().map(Digest::of);
        let begins = public.as_ref().and_then(first);
        private = private.filter(|copy| first(copy) == begins);
    }
    compare(change.id(), state, text, public.as_deref(), private.as_deref())
}

/// The copy of a journal, without creating anything.
pub(crate) fn read_copy(project: &Project, id: &ChangeId) -> Result<Option<String>, StoreError> {
    let Some(dir) = project.state_dir_if_there()? else { return Ok(None) };
    read(&dir, &layout::journal_copy(id))
}

/// Restores `journal.jsonl` where it is not what the copy says. Returns whether it had to be.
pub(crate) fn restore(
    project: &Project,
    change: &Change,
    lock: &WriteLock,
) -> Result<Option<Public>, DocumentError> {
    let (text, state) = read_state(change)?;
    let Some(compared) = check(project, change, &state, &text)? else { return Ok(None) };
    if compared.public == Public::AsIs {
        return Ok(None);
    }
    if change.read(&ChangeFile::Journal).is_err() {
        // One that cannot be removed is reported by the write.
        let _ = change.remove(lock, &ChangeFile::Journal);
    }
    change.write(lock, &ChangeFile::Journal, compared.journal.text().as_bytes())?;
    Ok(Some(compared.public))
}

/// Takes the files of a change as they are for its record: a person says that they are right.
pub fn accept(
    project: &Project,
    id: &ChangeId,
    by: &str,
    holder: &Holder,
    now: Stamp,
) -> Result<(), DocumentError> {
    let lock = project.write_lock(id, holder)?;
    let change = project.change(id)?;
    let (text, state) = read_state(&change)?;
    let Some(copy) = Copy::of(project, id)? else { return Ok(()) };
    let public = read_public(&change)?.unwrap_or_default();
    // Entries of a teammate that agree with the state are taken as they are.
    if let Ok(Some(_)) = journal::compare(&state, &text, Some(&public), None) {
        copy.dir.write_atomic(&copy.journal, public.as_bytes())?;
        return Ok(());
    }
    // Otherwise the record continues from what this machine knows, and says that the rest was accepted.
    let known = copy.read()?.and_then(|text| journal::parse(&text).ok());
    let known = known.or_else(|| journal::parse(&public).ok()).unwrap_or_default();
    let adopted = vec![Event::Adopted { phase: state.phase, by: Line::new(by) }];
    let signer = Signer::of(project)?;
    let sign = |text: &str| signer.as_ref().map(|signer| signer.sign(text)).transpose();
    let new = journal::entries(&known.head, adopted, &state, &text, &Files::new(), now, sign)?;
    let all = known.text() + &new.iter().map(|entry| entry.line() + "\n").collect::<String>();
    copy.dir.write_atomic(&copy.journal, all.as_bytes())?;
    Ok(change.write(&lock, &ChangeFile::Journal, all.as_bytes())?)
}

/// Takes a journal that came from another machine for the record of this one.
pub(crate) fn take_over(
    project: &Project,
    id: &ChangeId,
    journal: &str,
) -> Result<(), DocumentError> {
    let Some(copy) = Copy::of(project, id)? else { return Ok(()) };
    copy.dir.write_atomic(&copy.journal, journal.as_bytes())?;
    Ok(copy.unmark()?)
}

/// A journal that an agentd was writing when it was killed.
#[derive(Debug)]
pub struct Interrupted {
    /// The change.
    pub change: ChangeId,
    /// Whether its last entry was missing, and was written now.
    pub completed: bool,
    /// Why it could not be compared, if so.
    pub mismatch: Option<Mismatch>,
}

/// Completes journals that a killed agentd was writing.
pub(crate) fn recover(
    project: &Project,
    holder: &dyn Fn() -> Holder,
) -> Result<Vec<Interrupted>, DocumentError> {
    let Some(dir) = project.state_dir_if_there()? else { return Ok(Vec::new()) };
    let entries = match dir.list_dir(&layout::journals_dir()) {
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for id in entries.iter().filter_map(|entry| layout::change_of_mark(&entry.name)) {
        found.extend(recover_one(project, &dir, &id, holder)?);
    }
    Ok(found)
}

fn recover_one(
    project: &Project,
    dir: &ProjectDir,
    id: &ChangeId,
    holder: &dyn Fn() -> Holder,
) -> Result<Option<Interrupted>, DocumentError> {
    // Someone who is alive and writing holds the lock.
    let Ok(lock) = project.write_lock_or(id, &holder(), |_| ControlFlow::Break(())) else {
        return Ok(None);
    };
    let restored = match project.change(id) {
        Ok(change) => match restore(project, &change, &lock) {
            Ok(restored) => Some(Interrupted {
                change: id.clone(),
                completed: restored.is_some(),
                mismatch: None,
            }),
            Err(DocumentError::Journal { source, .. }) => {
                Some(Interrupted { change: id.clone(), completed: false, mismatch: Some(source) })
            }
            Err(DocumentError::NoState { .. }) => None,
            Err(error) => return Err(error),
        },
        // It was archived since.
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(error.into()),
    };
    match dir.remove_file(&layout::journal_mark(id)) {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(restored),
    }
}

/// Why the record of a change does not match its files, if so.
pub(crate) fn record_problem(
    project: &Project,
    snapshot: &Snapshot,
) -> Result<Option<String>, DocumentError> {
    let Some(state) = snapshot.state_if_begun()? else { return Ok(None) };
    let text = snapshot.documents.state.source().text().unwrap_or_default();
    match check(project, snapshot.change(), state, text) {
        Ok(_) => Ok(None),
        Err(DocumentError::Journal { source, .. }) => Ok(Some(source.to_string())),
        Err(error) => Err(error),
    }
}
