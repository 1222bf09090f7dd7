//! Another ID for a change (W3): its directory, its documents, its record, its branch.
//!
//! A note in the user's state directory says what is about to happen, with the state and the journal
//! as they will be. Then the branch gets its new name, and the **move of the directory** decides: found
//! before it, the rest is taken back; found after it, the rest is done. Each step of the rest can be
//! done twice. Nothing that the project or a repository holds is taken for such a note.
//!
//! What was recorded is not rewritten: entries of the journal, reviews and runs keep the name of their
//! time. A verdict holds because the digest of a plan does not depend on its name
//! (`Documents::digest`), and the entry `renamed` connects the two.

use std::path::PathBuf;

use agentd_core::command_line::CommandLine;
use agentd_core::document::{questions, rename};
use agentd_core::documents::{Documents, Source};
use agentd_core::error_kind::Kind;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{self, ChangeFile};
use agentd_core::stamp::Stamp;
use agentd_core::state::{Placement, Rename, State};
use agentd_core::text::Line;
use serde::{Deserialize, Serialize};

use crate::agents::receipts;
use crate::change::documents::{DocumentError, read_state};
use crate::change::journal;
use crate::explain::{ErrorReport, Explain};
use crate::git::{Git, GitError, GitTool, branch_of};
use crate::store::{
    Change, EntryKind, Holder, LockError, Project, ProjectDir, StoreError, WriteLock,
};

/// Why a change was not renamed.
#[derive(Debug, thiserror::Error)]
pub enum RenameError {
    /// A document, its record or a lock stands in the way.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Git said no.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Another change has the ID.
    #[error("there is a change `{id}` already")]
    Taken {
        /// The ID.
        id: ChangeId,
        /// Whether it is archived.
        archived: bool,
    },
    /// The note of an interrupted renaming cannot be read.
    #[error("cannot read the note of a renaming, `{path}` in the state directory: {why}")]
    BadNote {
        /// The note.
        path: String,
        /// Why.
        why: String,
    },
}

impl From<StoreError> for RenameError {
    fn from(error: StoreError) -> Self {
        Self::Document(error.into())
    }
}

impl From<LockError> for RenameError {
    fn from(error: LockError) -> Self {
        Self::Document(error.into())
    }
}

impl Explain for RenameError {
    fn explain(&self) -> ErrorReport {
        let report = |kind| ErrorReport::of(kind, self);
        match self {
            Self::Document(error) => error.explain(),
            Self::Git(error) => error.explain(),
            Self::Taken { archived, .. } => {
                let list: &[&str] = if *archived { &["list", "--archived"] } else { &["list"] };
                report(Kind::IdTaken)
                    .run("see which IDs are taken", CommandLine::agentd(list.iter().copied()))
            }
            Self::BadNote { .. } => report(Kind::BadRecord).hint("remove it by hand"),
        }
    }
}

/// What is to be renamed, and who wants it.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The change.
    pub from: &'a ChangeId,
    /// Its new ID.
    pub to: &'a ChangeId,
    /// Who asks.
    pub by: &'a str,
    /// Who holds the locks.
    pub holder: &'a Holder,
    /// The time.
    pub now: Stamp,
}

/// A change that was renamed.
#[derive(Debug)]
pub struct Renamed {
    /// Its branch now; none if it has none.
    pub branch: Option<String>,
    /// Its worktree, which stays where it is.
    pub work_tree: Option<PathBuf>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A renaming that a killed agentd left.
#[derive(Debug)]
pub struct Recovered {
    /// The ID before.
    pub from: ChangeId,
    /// The ID that was wanted.
    pub to: ChangeId,
    /// Whether the change has it now.
    pub finished: bool,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// `rename.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    from: ChangeId,
    to: ChangeId,
    /// None for a change on which no workflow has run.
    record: Option<Record>,
    /// Whether its branch is renamed.
    branch: bool,
}

/// What is written after the move, byte for byte: signing may need a person, and happens once.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    state: String,
    journal: String,
}

/// Renames a change that lives in this project.
pub fn rename(project: &Project, request: &Request<'_>) -> Result<Renamed, RenameError> {
    let Request { from, to, holder, .. } = *request;
    // Asked before the locks, so that a wrong ID leaves no lock file behind.
    project.change(from)?;
    must_be_free(project, to)?;
    let _run = project.try_run_lock(from, holder)?;
    let _run_there = project.try_run_lock(to, holder)?;
    let _project = project.project_lock(holder)?;
    let tool = GitTool::default();
    recover_locked(project, holder, &tool)?;
    let lock = project.write_lock(from, holder)?;
    let change = project.change(from)?;
    must_be_free(project, to)?;
    let (note, state) = prepare(project, &change, &lock, request, &tool)?;
    note.write(project)?;
    let begun = begin(project, &note, &tool);
    drop(lock);
    let settled = settle(project, &note, holder, &tool)?;
    if !settled.finished {
        begun?;
        return Err(StoreError::NoSuchChange { change: to.clone() }.into());
    }
    let git = state.as_ref().and_then(|state| state.git.as_ref());
    let in_worktree = git.is_some_and(|git| git.workflow == Placement::Worktree);
    Ok(Renamed {
        branch: git.and_then(|git| git.branch.clone()),
        work_tree: in_worktree.then(|| project.root().to_owned()),
        notes: settled.notes,
    })
}

fn must_be_free(project: &Project, id: &ChangeId) -> Result<(), RenameError> {
    // Whatever has the name, even a link.
    let is_there = project.dir().kind(&layout::change_dir(id))?.is_some();
    match project.knows(id) {
        Some(archived) => Err(RenameError::Taken { id: id.clone(), archived }),
        None if is_there => Err(RenameError::Taken { id: id.clone(), archived: false }),
        None => Ok(()),
    }
}

/// Works out what to write. Nothing is changed yet.
fn prepare(
    project: &Project,
    change: &Change,
    lock: &WriteLock,
    request: &Request<'_>,
    tool: &GitTool,
) -> Result<(Note, Option<State>), RenameError> {
    let Request { from, to, by, now, .. } = *request;
    let note = |record, branch| Note { from: from.clone(), to: to.clone(), record, branch };
    let (text, before) = match read_state(change) {
        Err(DocumentError::NoState { .. }) => return Ok((note(None, false), None)),
        state => state?,
    };
    let mut after = before.clone();
    after.change_id = to.clone();
    after.updated_at = Some(now);
    after.renamed.push(Rename { from: from.clone(), by: Line::new(by), at: now });
    let mut has_branch = false;
    if let Some(git) = after.git.as_mut().filter(|git| git.branch == Some(branch_of(from))) {
        git.branch = Some(branch_of(to));
        let repository = Git::discover_with(tool, project.root())?;
        has_branch = match &repository {
            Some(git) => git.can_rename_branch(&branch_of(from), &branch_of(to))?,
            None => false,
        };
    }
    let documents = change.snapshot()?.documents;
    let texts = rename::FILES.iter().map(|file| (file.clone(), documents.get(file)));
    let specs = documents.specs.iter();
    let specs = specs.map(|(id, spec)| (ChangeFile::Spec(id.clone()), spec.source().clone()));
    let renamed = texts.map(|(file, source)| match source {
        Source::Text(text) => (file.clone(), Source::Text(rename::renamed(&file, text, from, to))),
        source => (file, source.clone()),
    });
    let review = (ChangeFile::Review, documents.get(&ChangeFile::Review).clone());
    let documents = Documents::read(to.clone(), renamed.chain(specs).chain([review]));
    let prepared = journal::Write {
        project,
        change,
        lock,
        before: Some((&before, &text)),
        after: &after,
        files: journal::files(&documents),
        now,
    }
    .prepare()?;
    let record = Record { state: prepared.state_text, journal: prepared.public_after };
    Ok((note(Some(record), has_branch), Some(after)))
}

/// All that comes before the move, and the move.
fn begin(project: &Project, note: &Note, tool: &GitTool) -> Result<(), RenameError> {
    let (from, to) = (&note.from, &note.to);
    if note.branch {
        repository(project, tool)?.rename_branch(&branch_of(from), &branch_of(to))?;
    }
    if let Some(origin) = project.began_in(from) {
        origin.copy_move_note(from, to)?;
    }
    Ok(project.dir().rename_dir(&layout::change_dir(from), &layout::change_dir(to))?)
}

fn repository(project: &Project, tool: &GitTool) -> Result<Git, GitError> {
    let root = project.root();
    Git::discover_with(tool, root)?.ok_or_else(|| GitError::NoRepository { root: root.to_owned() })
}

/// Finishes or takes back what was begun.
fn settle(
    project: &Project,
    note: &Note,
    holder: &Holder,
    tool: &GitTool,
) -> Result<Recovered, RenameError> {
    let is_open = |id| Ok::<_, StoreError>(project.change_if_open(id)?.is_some());
    // Whatever has taken the new name meanwhile, the change is where it was.
    let finished = !is_open(&note.from)? && is_open(&note.to)?;
    let notes = if finished {
        finish(project, note, holder, tool)?
    } else {
        take_back(project, note, tool)?;
        Vec::new()
    };
    Note::remove(project)?;
    Ok(Recovered { from: note.from.clone(), to: note.to.clone(), finished, notes })
}

fn take_back(project: &Project, note: &Note, tool: &GitTool) -> Result<(), RenameError> {
    let (from, to) = (&note.from, &note.to);
    if let Some(origin) = project.began_in(from) {
        origin.forget_move(to)?;
    }
    if note.branch {
        let git = repository(project, tool)?;
        if git.branch_commit(&branch_of(from))?.is_none() {
            git.rename_branch(&branch_of(to), &branch_of(from))?;
        }
    }
    Ok(())
}

/// Everything after the move. Done twice, it does the same.
fn finish(
    project: &Project,
    note: &Note,
    holder: &Holder,
    tool: &GitTool,
) -> Result<Vec<String>, RenameError> {
    let (from, to) = (&note.from, &note.to);
    let lock = project.write_lock(to, holder)?;
    let change = project.change(to)?;
    let state = project.state_dir()?;
    if let Some(record) = &note.record {
        state.write_atomic(&layout::journal_copy(to), record.journal.as_bytes())?;
    }
    if let Ok(note) = state.read(&layout::created_note(from)) {
        state.write_atomic(&layout::created_note(to), &note)?;
    }
    receipts::rename(project, &change, &lock, from)?;
    rename_questions(project.dir(), from, to)?;
    for file in rename::FILES {
        // What is no plain text names nothing.
        let Ok(Some(text)) = change.read_if_exists(&file) else { continue };
        let renamed = rename::renamed(&file, &text, from, to);
        if renamed != text {
            change.write(&lock, &file, renamed.as_bytes())?;
        }
    }
    if let Some(record) = &note.record {
        for (file, text) in
            [(ChangeFile::State, &record.state), (ChangeFile::Journal, &record.journal)]
        {
            if matches!(change.read_if_exists(&file), Ok(Some(there)) if there == *text) {
                continue;
            }
            if change.dir().kind(&file.path())?.is_some_and(|kind| kind != EntryKind::File) {
                change.remove(&lock, &file)?;
            }
            change.write(&lock, &file, text.as_bytes())?;
        }
    }
    let kept = [layout::journal_copy(from), layout::journal_mark(from), layout::created_note(from)];
    for file in kept.into_iter().chain(layout::receipt_keys_of(from)) {
        state.remove_tree(&file)?;
    }
    for id in [from, to] {
        project.dir().remove_tree(&layout::shown_conflicts(id))?;
    }
    let mut notes = Vec::new();
    if let Some(origin) = project.began_in(from) {
        notes.extend(leave_origin(&origin, from, tool)?);
        origin.forget_move(from)?;
    }
    if note.branch {
        notes.extend(repository(project, tool)?.remote_of(&branch_of(from))?.map(|remote| {
            format!("The branch `{remote}` keeps its name: push the new one, and delete that one.")
        }));
    }
    Ok(notes)
}

/// The checkout where the change began may have its documents, from a commit. They would be taken for
/// a change with the former name.
fn leave_origin(
    origin: &Project,
    from: &ChangeId,
    tool: &GitTool,
) -> Result<Option<String>, RenameError> {
    let dir = layout::change_dir(from);
    if origin.dir().kind(&dir)? != Some(EntryKind::Dir) {
        return Ok(None);
    }
    let path = origin.root().join(dir.as_path());
    let git = repository(origin, tool)?;
    if !git.is_tracked(&dir)? || !git.is_committed(&dir)? {
        return Ok(Some(format!("{} was edited, and is left.", path.display())));
    }
    origin.dir().remove_tree(&dir)?;
    let state = origin.state_dir()?;
    let kept = [layout::journal_copy(from), layout::created_note(from)];
    for file in kept.into_iter().chain(layout::receipt_keys_of(from)) {
        state.remove_tree(&file)?;
    }
    Ok(Some(format!("{} is removed; git has it in a commit.", path.display())))
}

/// The questions that wait for answers.
fn rename_questions(dir: &ProjectDir, from: &ChangeId, to: &ChangeId) -> Result<(), StoreError> {
    let path = layout::questions(from);
    let kept = dir.read_to_string(&path).ok().and_then(|text| questions::parse(&text, from).ok());
    if let Some(mut kept) = kept {
        kept.change_id = to.clone();
        dir.write_atomic(&layout::questions(to), questions::render(&kept).as_bytes())?;
    }
    dir.remove_tree(&path)
}

impl Note {
    fn write(&self, project: &Project) -> Result<(), StoreError> {
        let text = serde_json::to_vec(self).unwrap_or_default();
        project.state_dir()?.write_atomic(&layout::rename_note(), &text)
    }

    fn read(state: &ProjectDir) -> Result<Option<Self>, RenameError> {
        let path = layout::rename_note();
        let bytes = match state.read(&path) {
            Err(error) if error.is_not_found() => return Ok(None),
            bytes => bytes?,
        };
        let bad = |error: serde_json::Error| RenameError::BadNote {
            path: path.to_string(),
            why: error.to_string(),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(bad)
    }

    fn remove(project: &Project) -> Result<(), StoreError> {
        project.state_dir()?.remove_file(&layout::rename_note())
    }
}

/// Finishes or takes back a renaming that a killed agentd left here or in a worktree.
pub(crate) fn recover(
    project: &Project,
    holder: &dyn Fn() -> Holder,
) -> Result<Vec<Recovered>, RenameError> {
    let worktrees = project.in_worktrees().into_iter().map(|(_, home)| home);
    let mut recovered = Vec::new();
    for home in std::iter::once(project.clone()).chain(worktrees) {
        let Some(state) = home.state_dir_if_there()? else { continue };
        if state.kind(&layout::rename_note())? != Some(EntryKind::File) {
            continue;
        }
        // Someone who is alive and at work holds the lock.
        let holder = holder();
        let _project = match home.try_project_lock(&holder) {
            Err(LockError::Held { .. }) => continue,
            lock => lock?,
        };
        recovered.extend(recover_locked(&home, &holder, &GitTool::default())?);
    }
    Ok(recovered)
}

/// The same for who holds the lock of the project.
fn recover_locked(
    project: &Project,
    holder: &Holder,
    tool: &GitTool,
) -> Result<Option<Recovered>, RenameError> {
    let Some(state) = project.state_dir_if_there()? else { return Ok(None) };
    let Some(note) = Note::read(&state)? else { return Ok(None) };
    settle(project, &note, holder, tool).map(Some)
}
