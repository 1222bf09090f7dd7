//! Locks that work across processes and name their holder.
//!
//! A lock is a file in `agentd/.locks/` that is locked by the operating system
//! and holds one line of JSON about who locked it. The system's lock is the
//! truth: it ends with its process, so a line that a dead holder left means
//! nothing. The files are never removed, because removing a lock file while
//! another process waits for it gives both of them the lock.
//!
//! The order in which locks are taken is written in [the module](super).

mod error;

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::ops::ControlFlow;
use std::process;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use agentd_core::ids::ChangeId;
use agentd_core::layout;
use agentd_core::rel_path::RelPath;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::OpenOptions;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::confined::{EntryKind, ProjectDir};
use super::error::StoreError;

pub use error::LockError;

/// How long a wait goes unreported, and the interval of reports afterwards.
const FIRST_NOTICE: Duration = Duration::from_millis(200);
const NEXT_NOTICE: Duration = Duration::from_millis(100);
/// Attempts of [`try_lock`]: another process may just be checking, see [`lock_state`].
const TRIES: u32 = 4;
/// How long to wait for one who has a lock alone that is otherwise shared: git switches a branch
/// meanwhile.
const SHARED_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_COMMAND_CHARS: usize = 200;

/// Which lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LockName {
    /// Held for the whole of a workflow on a change.
    Run(ChangeId),
    /// Held for one read-modify-write of a change.
    Write(ChangeId),
    /// Held for as long as a workflow runs in a checkout, by all of them together; alone while
    /// another branch is switched to.
    Branch,
    /// Held for as long as somebody works on the code in a checkout.
    Code,
    /// Held from the list of an agent's sessions until the session to resume has been opened.
    Sessions,
    /// Held while main specs or the archive are rewritten.
    Project,
}

impl LockName {
    fn file_name(&self) -> String {
        match self {
            Self::Run(change) => format!("{change}.run"),
            Self::Write(change) => format!("{change}.write"),
            // No id has an underscore, so no change can be meant.
            Self::Branch => "_branch.run".to_owned(),
            Self::Code => "_code.run".to_owned(),
            Self::Sessions => "_sessions.run".to_owned(),
            Self::Project => "_project.write".to_owned(),
        }
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(change) => write!(f, "change `{change}`"),
            Self::Write(change) => write!(f, "the files of change `{change}`"),
            Self::Branch => f.write_str("the branch of this checkout"),
            Self::Code => f.write_str("the code in this checkout"),
            Self::Sessions => f.write_str("the list of Gemini's sessions"),
            Self::Project => f.write_str("the project"),
        }
    }
}

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// What it was called with, for people: `agentd plan add-oauth`.
    pub command: String,
    /// When it took the lock, or began.
    pub since: Timestamp,
    /// The machine, since a project may be on a shared disk.
    pub host: String,
}

impl Holder {
    /// This process, under the name by which others should know it.
    pub fn this_process(command: &str, since: Timestamp) -> Self {
        let command = command.chars().take(MAX_COMMAND_CHARS).collect();
        Self { pid: process::id(), command, since, host: host() }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since.strftime("%Y-%m-%d %H:%M:%S UTC");
        write!(f, "pid {} ({}) since {since}", self.pid, self.command)?;
        if self.host.is_empty() { Ok(()) } else { write!(f, " on {}", self.host) }
    }
}

/// The name of this machine.
#[cfg(unix)]
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
pub(crate) fn host() -> String {
    String::new()
}

/// What is reported to a waiting caller from time to time.
#[derive(Debug)]
pub struct Waiting {
    /// The lock.
    pub name: LockName,
    /// Who has it now, where that could be read.
    pub holder: Option<Holder>,
    /// How long we have waited.
    pub waited: Duration,
}

/// Whether a lock is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// Nobody holds it.
    Free,
    /// Somebody holds it; who, where that could be read.
    Held(Option<Holder>),
}

/// A lock that is held until this value is dropped, or its process ends in any way.
#[derive(Debug)]
pub struct Lock {
    name: LockName,
    file: File,
    /// Whether others hold it, too; then it does not say by whom it is held.
    shared: bool,
}

impl Lock {
    /// Which lock this is.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// Makes a shared lock an exclusive one, unless somebody else holds it.
    pub(super) fn try_alone(&self) -> Result<bool, LockError> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            // The system gives up the shared lock before it tries.
            Err(TryLockError::WouldBlock) => self.share_again().map(|()| false),
            Err(TryLockError::Error(source)) => Err(self.unsupported(source)),
        }
    }

    /// Shares a lock again; another process has it alone for a moment only.
    pub(super) fn share_again(&self) -> Result<(), LockError> {
        self.file.lock_shared().map_err(|source| self.unsupported(source))
    }

    fn unsupported(&self, source: io::Error) -> LockError {
        LockError::Unsupported { name: self.name.clone(), source }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.shared {
            // So that a process that checks before the next holder has signed does not read our name.
            let _ = self.file.set_len(0);
        }
        let _ = self.file.unlock();
    }
}

/// Takes a lock if it is free, otherwise reports who has it.
pub(crate) fn try_lock(
    project: &ProjectDir,
    name: &LockName,
    holder: &Holder,
) -> Result<Lock, LockError> {
    let locks = Locks::open(project, name)?;
    for attempt in 1..=TRIES {
        if let Some(lock) = locks.attempt(name, holder)? {
            return Ok(lock);
        }
        if attempt < TRIES {
            thread::sleep(Duration::from_millis(2));
        }
    }
    Err(LockError::Held { name: name.clone(), holder: locks.holder() })
}

/// Takes a lock that others may have, too, waiting for one who has it alone.
pub(super) fn lock_shared(project: &ProjectDir, name: &LockName) -> Result<Lock, LockError> {
    let locks = Locks::open(project, name)?;
    let start = Instant::now();
    loop {
        let fail = |source| LockError::Store { name: name.clone(), source };
        let file = locks.open_lock_file().map_err(fail)?;
        match file.try_lock_shared() {
            Ok(()) => return Ok(Lock { name: name.clone(), file, shared: true }),
            Err(TryLockError::WouldBlock) if start.elapsed() < SHARED_TIMEOUT => {
                thread::sleep(NEXT_NOTICE);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { name: name.clone(), holder: None });
            }
            Err(TryLockError::Error(source)) => {
                return Err(LockError::Unsupported { name: name.clone(), source });
            }
        }
    }
}

/// Takes a lock, waiting for up to `timeout` while somebody else has it.
///
/// `on_wait` is called once the wait is worth a report, then about ten times
/// a second, and may end it.
pub fn lock(
    project: &ProjectDir,
    name: &LockName,
    holder: &Holder,
    timeout: Duration,
    mut on_wait: impl FnMut(&Waiting) -> ControlFlow<()>,
) -> Result<Lock, LockError> {
    let locks = Locks::open(project, name)?;
    if let Some(lock) = locks.attempt(name, holder)? {
        return Ok(lock);
    }
    let start = Instant::now();
    let mut next_notice = FIRST_NOTICE;
    let mut turn = locks.turn(name)?;
    loop {
        let waited = start.elapsed();
        let pause = next_notice.min(timeout).saturating_sub(waited);
        match turn.recv_timeout(pause) {
            Ok(Ok(file)) => match locks.signed(file, name, holder)? {
                Some(lock) => return Ok(lock),
                None => turn = locks.turn(name)?,
            },
            Ok(Err(source)) => return Err(LockError::Unsupported { name: name.clone(), source }),
            Err(RecvTimeoutError::Timeout) => {}
            // The thread has died, which it has no reason to do.
            Err(RecvTimeoutError::Disconnected) => turn = locks.turn(name)?,
        }
        let waited = start.elapsed();
        if waited >= timeout {
            let holder = locks.holder();
            return Err(LockError::TimedOut { name: name.clone(), holder, waited });
        }
        if waited >= next_notice {
            next_notice = waited + NEXT_NOTICE;
            let waiting = Waiting { name: name.clone(), holder: locks.holder(), waited };
            if on_wait(&waiting).is_break() {
                return Err(LockError::Cancelled { name: name.clone() });
            }
        }
    }
}

/// Checks whether a lock is held, for reports. By the time the
/// caller reads the answer it may be wrong.
pub fn lock_state(project: &ProjectDir, name: &LockName) -> Result<LockState, LockError> {
    let fail = |source| LockError::Store { name: name.clone(), source };
    let dir = match project.strict_subdir(&layout::locks_dir()) {
        Ok(dir) => dir,
        Err(error) if error.is_not_found() => return Ok(LockState::Free),
        Err(error) => return Err(fail(error)),
    };
    let path = RelPath::new(&name.file_name()).map_err(|error| fail(error.into()))?;
    let locks = Locks { dir, path };
    let file = match locks.dir.open_file(&locks.path) {
        Ok((file, _)) => file,
        Err(error) if error.is_not_found() => return Ok(LockState::Free),
        Err(error) => return Err(fail(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(LockState::Free),
        Err(TryLockError::WouldBlock) => Ok(LockState::Held(locks.holder())),
        Err(TryLockError::Error(source)) => {
            Err(LockError::Unsupported { name: name.clone(), source })
        }
    }
}

/// The file of a lock, to compare it with what a process has open.
pub(crate) fn lock_file(project: &ProjectDir, name: &LockName) -> Result<File, StoreError> {
    let dir = project.strict_subdir(&layout::locks_dir())?;
    Ok(dir.open_file(&RelPath::new(&name.file_name())?)?.0)
}

/// The directory of the locks, and one lock in it.
struct Locks {
    dir: ProjectDir,
    path: RelPath,
}

impl Locks {
    fn open(project: &ProjectDir, name: &LockName) -> Result<Self, LockError> {
        let open = || {
            let path = RelPath::new(&name.file_name())?;
            let dir = match project.strict_subdir(&layout::locks_dir()) {
                Err(error) if error.is_not_found() => create_locks_dir(project)?,
                result => result?,
            };
            Ok(Self { dir, path })
        };
        open().map_err(|source| LockError::Store { name: name.clone(), source })
    }

    /// One try. `None` where somebody else has the lock.
    fn attempt(&self, name: &LockName, holder: &Holder) -> Result<Option<Lock>, LockError> {
        let fail = |source| LockError::Store { name: name.clone(), source };
        loop {
            let file = self.open_lock_file().map_err(fail)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(source)) => {
                    return Err(LockError::Unsupported { name: name.clone(), source });
                }
            }
            if let Some(lock) = self.signed(file, name, holder)? {
                return Ok(Some(lock));
            }
        }
    }

    /// A file that is locked becomes the lock. `None` where it is not the file any more:
    /// `git clean` may have removed it between opening and locking it.
    fn signed(
        &self,
        file: File,
        name: &LockName,
        holder: &Holder,
    ) -> Result<Option<Lock>, LockError> {
        let fail = |error| {
            let source = StoreError::from_io("lock", self.dir.shown(&self.path), error);
            LockError::Store { name: name.clone(), source }
        };
        if !self.is_current(&file).map_err(fail)? {
            return Ok(None);
        }
        let mut lock = Lock { name: name.clone(), file, shared: false };
        sign(&mut lock.file, holder).map_err(fail)?;
        if !matches!(name, LockName::Write(_)) {
            // What killed writers left beside the locks: nobody else comes by here often.
            self.dir.sweep(&RelPath::root());
        }
        Ok(Some(lock))
    }

    /// Waits for the system's lock in a thread of its own: the system wakes those who wait in
    /// the order in which they came, nearly, while of those who ask again and again the lucky
    /// ones win. A wait that is given up continues in its thread, and releases what it gets.
    fn turn(&self, name: &LockName) -> Result<Receiver<io::Result<File>>, LockError> {
        let fail = |source| LockError::Store { name: name.clone(), source };
        let file = self.open_lock_file().map_err(fail)?;
        let (sender, turn) = mpsc::sync_channel(1);
        let wait = move || {
            let taken = loop {
                match file.lock() {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    result => break result,
                }
            };
            let _ = sender.send(taken.map(|()| file));
        };
        let started = thread::Builder::new().name("lock".to_owned()).spawn(wait);
        started.map_err(|error| {
            fail(StoreError::from_io("wait for", self.dir.shown(&self.path), error))
        })?;
        Ok(turn)
    }

    fn open_lock_file(&self) -> Result<File, StoreError> {
        let (parent, name) = self.dir.parent_and_name(&self.path)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).nonblock(true).follow(FollowSymlinks::No);
        let file = parent
            .get()
            .open_with(name, &options)
            .map_err(|error| self.dir.explain("open", &self.path, &parent, name, error))?;
        let fail = |error| StoreError::from_io("open", self.dir.shown(&self.path), error);
        match EntryKind::of(file.metadata().map_err(fail)?.file_type()) {
            EntryKind::File => Ok(file.into_std()),
            kind => Err(StoreError::NotAFile { path: self.dir.shown(&self.path), kind }),
        }
    }

    #[cfg(unix)]
    fn is_current(&self, file: &File) -> io::Result<bool> {
        use cap_fs_ext::MetadataExt as _;
        let ours = file.metadata()?;
        match self.dir.dir.symlink_metadata(self.path.as_path()) {
            Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// An open file cannot be removed here.
    #[cfg(not(unix))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "same form as on Unix")]
    fn is_current(&self, _file: &File) -> io::Result<bool> {
        Ok(true)
    }

    /// Who has signed the lock. The line may not be there yet, so it is read twice.
    fn holder(&self) -> Option<Holder> {
        const MAX_LINE: u64 = 4096;
        for _ in 0..3 {
            let (file, _) = self.dir.open_file(&self.path).ok()?;
            let mut line = Vec::new();
            file.take(MAX_LINE).read_to_end(&mut line).ok()?;
            if let Ok(holder) = serde_json::from_slice(&line) {
                return Some(holder);
            }
            thread::sleep(Duration::from_millis(2));
        }
        None
    }
}

fn create_locks_dir(project: &ProjectDir) -> Result<ProjectDir, StoreError> {
    let dir = layout::locks_dir();
    project.create_dir_all(&dir)?;
    // The directory ignores itself, also in a project whose .gitignore nobody has updated.
    let ignore = RelPath::new(".gitignore")?;
    let locks = project.strict_subdir(&dir)?;
    match locks.write_new(&ignore, b"*\n") {
        Ok(()) | Err(StoreError::AlreadyExists { .. }) => Ok(locks),
        Err(error) => Err(error),
    }
}

fn sign(file: &mut File, holder: &Holder) -> io::Result<()> {
    let mut line = serde_json::to_vec(holder)?;
    line.push(b'\n');
    file.set_len(0)?;
    file.write_all(&line)
}
