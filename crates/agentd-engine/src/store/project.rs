//! A project and its changes, found on disk.

use std::cell::RefCell;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, AGENTD_DIR, ArchiveName, ChangeFile, RunName};
use agentd_core::rel_path::RelPath;
use agentd_core::step_name::StepName;

use super::checkout::Checkout;
use super::confined::{Entry, EntryKind, ProjectDir};
use super::error::StoreError;
use super::lock::{self, Holder, Lock, LockError, LockName, Waiting};
use super::user_dirs::UserDirs;

/// How long a tool call or a record waits for its turn: each turn takes
/// milliseconds, so a wait this long means that something is broken.
pub(crate) const WRITE_LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// A project in which agentd was initialized. Clones share the open directory.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    dir: ProjectDir,
    user: UserDirs,
}

/// The names in a directory: the valid ones, and the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// The valid names, sorted.
    pub ids: Vec<T>,
    /// The rest, sorted: worth a warning. Names that start with a dot are ignored.
    pub odd: Vec<Entry>,
}

/// The lock of a whole workflow on a change.
#[derive(Debug)]
#[must_use = "the lock ends when this is dropped"]
pub struct RunLock {
    pub(super) change: ChangeId,
    pub(super) checkout: RefCell<Option<Checkout>>,
    _lock: Lock,
}

impl RunLock {
    fn new(change: &ChangeId, lock: Lock) -> Self {
        Self { change: change.clone(), checkout: RefCell::default(), _lock: lock }
    }
}

/// The lock without which a change cannot be written.
#[derive(Debug)]
#[must_use = "the lock ends when this is dropped"]
pub struct WriteLock {
    change: ChangeId,
    _lock: Lock,
}

impl Project {
    /// The root of the project that `start` is in: the nearest directory, upwards, that
    /// holds `agentd/` with a config.toml or a changes/ in it.
    pub(crate) fn find_root(start: &Path) -> Result<PathBuf, StoreError> {
        let real = fs::canonicalize(start)
            .map_err(|source| StoreError::OpenRoot { path: start.to_owned(), source })?;
        let is_project = |dir: &&Path| {
            let agentd = dir.join(AGENTD_DIR);
            agentd.join("config.toml").is_file() || agentd.join("changes").is_dir()
        };
        if let Some(root) = real.ancestors().find(is_project) {
            return Ok(root.to_owned());
        }
        let repository = real.ancestors().find(|dir| dir.join(".git").exists());
        let suggested = repository.unwrap_or(&real).to_owned();
        Err(StoreError::NotInitialised { start: real, suggested })
    }

    /// Opens a directory as it is. Commands come in through [`crate::opening`], which repairs
    /// what a killed agentd left.
    pub(crate) fn open(root: &Path) -> Result<Self, StoreError> {
        let dir = ProjectDir::open(root)?;
        Ok(Self { root: root.to_owned(), dir, user: UserDirs::from_env() })
    }

    /// The same project for a user whose directories are elsewhere.
    #[must_use]
    pub(crate) fn for_user(self, user: UserDirs) -> Self {
        Self { user, ..self }
    }

    /// The user's own directories.
    pub fn user(&self) -> &UserDirs {
        &self.user
    }

    /// What agentd keeps about this project on this machine, where neither the repository nor
    /// an agent can write. Created if it does not exist yet.
    pub fn state_dir(&self) -> Result<ProjectDir, StoreError> {
        self.user.state_of(&self.root)
    }

    /// The same for reading: none if nothing was ever stored.
    pub(crate) fn state_dir_if_there(&self) -> Result<Option<ProjectDir>, StoreError> {
        self.user.state_if_there(&self.root)
    }

    /// The path of the project, for messages and for the working directory of agents.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The confined root, for everything that belongs to no change.
    pub fn dir(&self) -> &ProjectDir {
        &self.dir
    }

    /// The open changes.
    pub fn change_ids(&self) -> Result<Listed<ChangeId>, StoreError> {
        self.listed(&layout::changes_dir(), |entry| match entry.kind {
            EntryKind::Dir => match ChangeId::new(&entry.name) {
                Ok(id) if self.is_left_over(&id) => ListedName::Ignored,
                id => ListedName::from(id.ok()),
            },
            EntryKind::Symlink => ListedName::Odd,
            EntryKind::File | EntryKind::Other => ListedName::Ignored,
        })
    }

    /// Whether of a change only those files are here that git ignores: its documents are on a branch
    /// that is not checked out.
    fn is_left_over(&self, id: &ChangeId) -> bool {
        let dir = layout::change_dir(id);
        if self.dir.is_file(&dir.join(&ChangeFile::State.path())).unwrap_or(true) {
            return false;
        }
        let entries = self.dir.list_dir(&dir).unwrap_or_default();
        let is_local = |entry: &Entry| layout::LOCAL_FILES.contains(&&*entry.name);
        !entries.is_empty() && entries.iter().all(is_local)
    }

    /// The main specs.
    pub fn spec_ids(&self) -> Result<Listed<SpecId>, StoreError> {
        self.listed(&layout::main_specs_dir(), spec_file)
    }

    /// Opens a change that exists.
    pub fn change(&self, id: &ChangeId) -> Result<Change, StoreError> {
        match self.dir.strict_subdir(&layout::change_dir(id)) {
            Ok(_) if self.is_left_over(id) => Err(StoreError::NoSuchChange { change: id.clone() }),
            Ok(dir) => Ok(self.opened(id, dir, &layout::change_dir(id))),
            Err(StoreError::NotFound { .. }) => {
                Err(StoreError::NoSuchChange { change: id.clone() })
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a change that was listed, or nothing where it has been archived since. One that is
    /// open stays readable when it moves: its directory is held, not its path.
    pub fn change_if_open(&self, id: &ChangeId) -> Result<Option<Change>, StoreError> {
        match self.change(id) {
            Ok(change) => Ok(Some(change)),
            Err(StoreError::NoSuchChange { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn opened(&self, id: &ChangeId, dir: ProjectDir, path: &RelPath) -> Change {
        let path = self.root.join(path.as_path());
        Change { id: id.clone(), dir, project: self.dir.clone(), path, archived: None }
    }

    /// Creates a change that must not exist yet. Of many who try, one succeeds,
    /// and the others get [`StoreError::AlreadyExists`].
    pub fn create_change(&self, id: &ChangeId) -> Result<Change, StoreError> {
        let path = layout::change_dir(id);
        if !self.is_left_over(id) {
            self.dir.create_dir_new(&path)?;
        }
        Ok(self.opened(id, self.dir.strict_subdir(&path)?, &path))
    }

    /// Takes the run lock of a change, or reports who has it.
    pub fn try_run_lock(&self, change: &ChangeId, holder: &Holder) -> Result<RunLock, LockError> {
        let lock = lock::try_lock(&self.dir, &LockName::Run(change.clone()), holder)?;
        Ok(RunLock::new(change, lock))
    }

    /// Takes the run lock of a change, waiting for it.
    pub fn run_lock(
        &self,
        change: &ChangeId,
        holder: &Holder,
        timeout: Duration,
        on_wait: impl FnMut(&Waiting) -> ControlFlow<()>,
    ) -> Result<RunLock, LockError> {
        let name = LockName::Run(change.clone());
        let lock = lock::lock(&self.dir, &name, holder, timeout, on_wait)?;
        Ok(RunLock::new(change, lock))
    }

    /// Takes the write lock of a change, waiting for its turn.
    pub fn write_lock(&self, change: &ChangeId, holder: &Holder) -> Result<WriteLock, LockError> {
        self.write_lock_or(change, holder, |_| ControlFlow::Continue(()))
    }

    /// Takes the write lock of a change; `on_wait` is called during the wait and may end it.
    pub fn write_lock_or(
        &self,
        change: &ChangeId,
        holder: &Holder,
        on_wait: impl FnMut(&Waiting) -> ControlFlow<()>,
    ) -> Result<WriteLock, LockError> {
        let name = LockName::Write(change.clone());
        let lock = lock::lock(&self.dir, &name, holder, WRITE_LOCK_TIMEOUT, on_wait)?;
        Ok(WriteLock { change: change.clone(), _lock: lock })
    }

    /// Takes the lock under which main specs and the archive are rewritten.
    pub fn project_lock(&self, holder: &Holder) -> Result<Lock, LockError> {
        self.take_turn(&LockName::Project, holder)
    }

    /// Takes the lock under which sessions of an agent are listed and resumed (C32), waiting for
    /// up to `timeout`.
    pub(crate) fn sessions_lock(
        &self,
        holder: &Holder,
        timeout: Duration,
        on_wait: impl FnMut(&Waiting) -> ControlFlow<()>,
    ) -> Result<Lock, LockError> {
        lock::lock(&self.dir, &LockName::Sessions, holder, timeout, on_wait)
    }

    /// Takes the project lock if it is free, otherwise reports who has it.
    pub(crate) fn try_project_lock(&self, holder: &Holder) -> Result<Lock, LockError> {
        lock::try_lock(&self.dir, &LockName::Project, holder)
    }

    fn take_turn(&self, name: &LockName, holder: &Holder) -> Result<Lock, LockError> {
        lock::lock(&self.dir, name, holder, WRITE_LOCK_TIMEOUT, |_| ControlFlow::Continue(()))
    }

    pub(super) fn listed<T: Ord>(
        &self,
        dir: &RelPath,
        name: impl Fn(&Entry) -> ListedName<T>,
    ) -> Result<Listed<T>, StoreError> {
        listed(&self.dir, dir, name)
    }
}

/// A change that was opened. Reading needs no lock; writing needs its [`WriteLock`].
#[derive(Debug, Clone)]
pub struct Change {
    id: ChangeId,
    dir: ProjectDir,
    project: ProjectDir,
    path: PathBuf,
    archived: Option<ArchiveName>,
}

impl Change {
    pub(super) fn in_archive(self, id: ChangeId, name: ArchiveName) -> Self {
        Self { id, archived: Some(name), ..self }
    }

    /// The id.
    pub fn id(&self) -> &ChangeId {
        &self.id
    }

    /// The directory, confined: not even another change can be reached from it.
    /// For looking and reading; what is written through it is written without the lock.
    pub fn dir(&self) -> &ProjectDir {
        &self.dir
    }

    /// Its path when it was opened, for messages and for programs that are given its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of its directory in the archive, if it is there.
    pub fn archived(&self) -> Option<&ArchiveName> {
        self.archived.as_ref()
    }

    /// Its directory in the project.
    pub fn dir_in_project(&self) -> RelPath {
        match &self.archived {
            Some(name) => layout::archived_change(name),
            None => layout::change_dir(&self.id),
        }
    }

    /// The text of a file.
    pub fn read(&self, file: &ChangeFile) -> Result<String, StoreError> {
        self.dir.read_to_string(&file.path())
    }

    /// The text of a file, or none where there is no such file.
    pub fn read_if_exists(&self, file: &ChangeFile) -> Result<Option<String>, StoreError> {
        match self.read(file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a file is there.
    pub fn has(&self, file: &ChangeFile) -> Result<bool, StoreError> {
        self.dir.is_file(&file.path())
    }

    /// The specs of the change.
    pub fn spec_ids(&self) -> Result<Listed<SpecId>, StoreError> {
        listed(&self.dir, &RelPath::new("specs")?, spec_file)
    }

    /// The logs of agent calls, in the order of the calls.
    pub fn runs(&self) -> Result<Listed<RunName>, StoreError> {
        listed(&self.dir, &RelPath::new("runs")?, |entry| match entry.kind {
            EntryKind::File => ListedName::from(entry.name.parse().ok()),
            EntryKind::Dir | EntryKind::Symlink | EntryKind::Other => ListedName::Odd,
        })
    }

    /// Replaces or creates a file, whole and durable.
    pub fn write(
        &self,
        lock: &WriteLock,
        file: &ChangeFile,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        self.writable(&lock.change)?.write_atomic(&file.path(), bytes)
    }

    /// Adds bytes to the end of a file, durably.
    pub(crate) fn append(
        &self,
        lock: &WriteLock,
        file: &ChangeFile,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        self.writable(&lock.change)?.append(&file.path(), bytes)
    }

    /// Removes a file.
    pub fn remove(&self, lock: &WriteLock, file: &ChangeFile) -> Result<(), StoreError> {
        self.writable(&lock.change)?.remove_file(&file.path())
    }

    /// Begins the record of the next agent call: an empty file, with a number that is higher than
    /// those of all runs here, and than `last_known`. Needs no lock, since of two that want the
    /// same number one gets the next.
    pub fn create_run(
        &self,
        step: &StepName,
        last_known: u32,
    ) -> Result<(RunName, File), StoreError> {
        let dir = self.writable(&self.id)?;
        let last = self.runs()?.ids.last().map_or(0, RunName::number);
        let mut number = last.max(last_known);
        loop {
            number = number.saturating_add(1);
            let run = RunName::new(number, step)?;
            match dir.create_append(&ChangeFile::Run(run.clone()).path()) {
                Err(StoreError::AlreadyExists { .. }) if number < u32::MAX => {}
                file => return Ok((run, file?)),
            }
        }
    }

    /// Opens the record of an agent call for reading.
    pub(crate) fn open_run(&self, run: &RunName) -> Result<File, StoreError> {
        let (file, _) = self.dir.open_file(&ChangeFile::Run(run.clone()).path())?;
        Ok(file)
    }

    /// The directory as it is now, under the lock: the change may have been
    /// archived since it was opened, and a write must not land there.
    fn writable(&self, locked: &ChangeId) -> Result<ProjectDir, StoreError> {
        if *locked != self.id {
            let (change, locked) = (self.id.clone(), locked.clone());
            return Err(StoreError::WrongLock { change, locked });
        }
        match self.project.strict_subdir(&layout::change_dir(&self.id)) {
            Err(StoreError::NotFound { .. }) => {
                Err(StoreError::NoSuchChange { change: self.id.clone() })
            }
            result => result,
        }
    }
}

/// What a name in a directory is to a list.
pub(super) enum ListedName<T> {
    Id(T),
    Odd,
    Ignored,
}

impl<T> From<Option<T>> for ListedName<T> {
    fn from(id: Option<T>) -> Self {
        id.map_or(Self::Odd, Self::Id)
    }
}

fn spec_file(entry: &Entry) -> ListedName<SpecId> {
    match entry.kind {
        EntryKind::File => ListedName::from(layout::spec_of_file_name(&entry.name)),
        EntryKind::Dir | EntryKind::Symlink | EntryKind::Other => ListedName::Odd,
    }
}

/// A missing directory lists nothing.
fn listed<T: Ord>(
    dir: &ProjectDir,
    path: &RelPath,
    name: impl Fn(&Entry) -> ListedName<T>,
) -> Result<Listed<T>, StoreError> {
    let entries = match dir.list_dir(path) {
        Err(error) if error.is_not_found() => Vec::new(),
        result => result?,
    };
    let mut listed = Listed { ids: Vec::new(), odd: Vec::new() };
    for entry in entries.into_iter().filter(|entry| !entry.name.starts_with('.')) {
        match name(&entry) {
            ListedName::Id(id) => listed.ids.push(id),
            ListedName::Odd => listed.odd.push(entry),
            ListedName::Ignored => {}
        }
    }
    listed.ids.sort_unstable();
    Ok(listed)
}
