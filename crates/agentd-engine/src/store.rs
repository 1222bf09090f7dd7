//! The files of a project: paths, bytes and locks.
//!
//! Everything agentd reads or writes in a project goes through [`ProjectDir`],
//! a handle that no path, symlink or race can leave. Documents and the state
//! of a change are typed on top of it. What agentd writes elsewhere (`.git`,
//! the user's state and caches, `/tmp`) goes through an `OutsideDir`. Clippy
//! refuses the functions of `std::fs` that write in all other modules.
//!
//! **Writes** are whole or absent: temporary file, fsync, rename, fsync of the
//! directory. A crash at any instant leaves the old text or the new one, and
//! at worst a `.agentd-tmp-…` file that the next writer in that directory
//! removes.
//!
//! **Locks** are kept by the operating system and so end with their process.
//! There are six kinds, and they are always taken in this order:
//!
//! 1. the *run* lock of a change, held by `plan`, `impl` and `archive` for as
//!    long as they run;
//! 2. the *branch* of a checkout, which runs in it share, and the *code* of a checkout, which the
//!    one that works on it holds alone; for as long as the run lasts;
//! 3. the *sessions* lock, held while the sessions of an agent are listed and one of them is
//!    opened;
//! 4. the *project* lock, held while main specs or the archive are rewritten;
//! 5. the *write* lock of a change, held for one read-modify-write.
//!
//! A parent that holds a run lock may start children that take write locks,
//! and so it must not itself hold a write lock while it waits for a child.
//! Nobody asks for an earlier lock while holding a later one.

mod archived;
mod bytes;
mod checkout;
mod confined;
mod error;
mod homes;
mod lock;
mod outside;
mod parallel;
mod project;
mod rank_cache;
mod remove_tree;
mod temporary;
mod user_dirs;
mod write;

pub(crate) use bytes::Bytes;
pub use confined::DOCUMENT_CAP;
pub use confined::Entry;
pub use confined::EntryKind;
pub use confined::FileStamp;
pub use confined::ProjectDir;
pub use error::StoreError;
pub use homes::Created;
pub(crate) use homes::MoveNote;
pub use lock::Holder;
pub use lock::Lock;
pub use lock::LockError;
pub use lock::LockName;
pub use lock::LockState;
pub use lock::Waiting;
pub(crate) use lock::host;
pub use lock::lock;
pub(crate) use lock::lock_file;
pub use lock::lock_state;
pub(crate) use outside::{Missing, OutsideDir, PRIVATE, SHARED};
pub use parallel::map_parallel;
pub use project::Change;
pub use project::Listed;
pub use project::Project;
pub use project::RunLock;
pub use project::WriteLock;
pub(crate) use rank_cache::RankCache;
pub(crate) use temporary::TemporaryDir;
pub use user_dirs::UserDirs;
pub(crate) use user_dirs::own_dir;
