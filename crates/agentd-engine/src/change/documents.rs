//! The documents of a project, typed, on top of the store: settings, main specs, states, and
//! the validation of all of them.

use agentd_core::check::{self, MainSpecs};
use agentd_core::command_line::CommandLine;
use agentd_core::config::{Config, ConfigError};
use agentd_core::document::spec::{self, Spec};
use agentd_core::documents::{Doc, Documents, Source};
use agentd_core::error_kind::Kind;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::journal::{Files, Mismatch};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::next_step::NextStep;
use agentd_core::phase::Refused;
use agentd_core::stamp::Stamp;
use agentd_core::state::{self, State, StateError};

use super::journal;
use super::signing::SigningError;
use crate::explain::{ErrorReport, Explain};
use crate::store::{Change, Holder, LockError, Project, StoreError, WriteLock};

/// Why a document could not be worked with.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The file system said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody else is at work.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The state of a change cannot be read. It is never overwritten.
    #[error("cannot use the STATE.yaml of `{change}`: {source}")]
    State {
        /// The change.
        change: ChangeId,
        /// Why.
        source: StateError,
    },
    /// A change has no state: it was not begun by agentd.
    #[error("`{change}` has no STATE.yaml")]
    NoState {
        /// The change.
        change: ChangeId,
    },
    /// The configuration cannot be read.
    #[error("cannot use agentd/config.toml: {0}")]
    Config(#[from] ConfigError),
    /// The phase does not allow it.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// No plan waits for a decision (W5).
    #[error("`{change}` has nothing to decide: {why}")]
    NothingToDecide {
        /// The change.
        change: ChangeId,
        /// Why nothing waits.
        why: &'static str,
        /// The command that comes next.
        next: NextStep,
    },
    /// The plan was challenged again since it was shown to the person who decides.
    #[error("`{change}` was challenged again since you saw it; nothing was decided")]
    OtherRound {
        /// The change.
        change: ChangeId,
    },
    /// What was asked was answered since, or has changed.
    #[error("`{change}` does not wait for this answer any more; nothing was recorded")]
    NotAskedAnyMore {
        /// The change.
        change: ChangeId,
    },
    /// A call is not one whose cost is unknown.
    #[error("run {run} of `{change}` is not unsettled")]
    NothingToSettle {
        /// The change.
        change: ChangeId,
        /// The number of the run.
        run: u32,
    },
    /// The files of a change are not what agentd recorded.
    #[error("the record of `{change}` does not match: {source}")]
    Journal {
        /// The change.
        change: ChangeId,
        /// How.
        source: Mismatch,
    },
    /// What is recorded is to be signed, and cannot be.
    #[error(transparent)]
    Signing(#[from] SigningError),
}

impl Explain for DocumentError {
    fn explain(&self) -> ErrorReport {
        match self {
            Self::Store(error) => error.explain(),
            Self::Lock(error) => error.explain(),
            Self::Refused(refused) => refused.explain(),
            Self::Config(error) => error.explain(),
            Self::Signing(error) => error.explain(),
            Self::State { change, .. } => {
                let file = layout::change_dir(change).to_string() + "/STATE.yaml";
                ErrorReport::of(Kind::StateInvalid, self)
                    .run("restore it", CommandLine::git(["checkout", "--", &file]))
                    .hint("agentd never overwrites a state that it cannot read")
            }
            Self::NothingToDecide { next, .. } => {
                ErrorReport::of(Kind::NothingToDecide, self).run("continue with", next)
            }
            Self::OtherRound { .. } => ErrorReport::of(Kind::NothingToDecide, self)
                .hint("read the latest round, then decide"),
            Self::NotAskedAnyMore { change } => ErrorReport::of(Kind::NothingToDecide, self)
                .run("see what it waits for", CommandLine::agentd(["status", change.as_str()])),
            Self::NothingToSettle { change, .. } => ErrorReport::of(Kind::NothingToSettle, self)
                .run("see which calls are", CommandLine::agentd(["cost", change.as_str()])),
            Self::Journal { change, source } => explain_mismatch(self, change, source),
            Self::NoState { .. } => ErrorReport::of(Kind::NoState, self)
                .hint("restore STATE.yaml from git; without it, agentd did not start the change"),
        }
    }
}

fn explain_mismatch(error: &DocumentError, change: &ChangeId, mismatch: &Mismatch) -> ErrorReport {
    let (kind, cause) = match mismatch {
        Mismatch::StateEdited => (
            Kind::StateEdited,
            "a phase, a verdict or a decision counts only if agentd wrote it, so what the file says \
             now does not",
        ),
        Mismatch::Damaged(_) => {
            (Kind::JournalChanged, "each line names the one before by its digest, and one does not")
        }
        Mismatch::Foreign { .. } => (
            Kind::JournalChanged,
            "another machine or person wrote them, for example before you ran `git pull`; nothing \
             here can show who",
        ),
        Mismatch::Behind { .. } => {
            (Kind::JournalChanged, "git may have checked out an earlier version of the change")
        }
    };
    let id = change.as_str();
    ErrorReport::of(kind, error)
        .cause(cause)
        .run("see what is proven", CommandLine::agentd(["verify", id]))
        .run("if the files are right", CommandLine::agentd(["verify", id, "--accept"]))
        .hint("otherwise undo the edit")
}

/// The settings of a project; the defaults where it has none.
pub fn load_config(project: &Project) -> Result<Config, DocumentError> {
    match project.dir().read_to_string(&layout::config()) {
        Ok(text) => Ok(Config::parse(&text)?),
        Err(error) if error.is_not_found() => Ok(Config::default()),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn source(read: Result<String, StoreError>) -> Source {
    match read {
        Ok(text) => Source::Text(text),
        Err(error) if error.is_not_found() => Source::Missing,
        Err(error) => Source::Unreadable(error.to_string()),
    }
}

/// A main spec.
pub fn load_main_spec(project: &Project, id: &SpecId) -> Doc<Spec> {
    Doc::new(source(project.dir().read_to_string(&layout::main_spec(id))), spec::parse)
}

/// The requirements of the main specs that a change may refer to: those it
/// edits, and those that its tasks name.
pub(crate) fn main_specs_for(project: &Project, documents: &Documents) -> MainSpecs {
    let known = documents.referred_specs().into_iter().filter_map(|id| {
        let spec = load_main_spec(project, id);
        Some((id.clone(), check::requirement_ids(spec.value_if_there()?)))
    });
    known.collect()
}

/// The state of a change.
pub fn load_state(change: &Change) -> Result<State, DocumentError> {
    Ok(read_state(change)?.1)
}

/// The state of a change with its text.
pub(crate) fn read_state(change: &Change) -> Result<(String, State), DocumentError> {
    let text = change
        .read_if_exists(&ChangeFile::State)?
        .ok_or_else(|| DocumentError::NoState { change: change.id().clone() })?;
    let state = state::parse(&text, change.id())
        .map_err(|source| DocumentError::State { change: change.id().clone(), source })?;
    Ok((text, state))
}

/// The state of a change, or none where there is no STATE.yaml: its documents were
/// begun by hand or through an interactive client, and no workflow has run on it yet.
pub fn load_state_if_begun(change: &Change) -> Result<Option<State>, DocumentError> {
    match load_state(change) {
        Err(DocumentError::NoState { .. }) => Ok(None),
        state => state.map(Some),
    }
}

/// Writes the first state of a change.
pub(crate) fn create_state(
    project: &Project,
    change: &Change,
    lock: &WriteLock,
    state: &State,
    now: Stamp,
) -> Result<(), DocumentError> {
    let files = Files::new();
    journal::Write { project, change, lock, before: None, after: state, files, now }.commit()
}

/// Reads the state under the write lock, lets `update` change it, and writes it
/// back: the one way in which anything is recorded.
pub fn update_state<T>(
    project: &Project,
    id: &ChangeId,
    holder: &Holder,
    now: Stamp,
    update: impl FnOnce(&mut State) -> Result<T, DocumentError>,
) -> Result<T, DocumentError> {
    Ok(updated_state(project, id, holder, now, None, update)?.0)
}

/// Like [`update_state`]; also returns the state as it was written. The journal gets the digests of
/// the documents where the caller has read them.
pub(crate) fn updated_state<T>(
    project: &Project,
    id: &ChangeId,
    holder: &Holder,
    now: Stamp,
    documents: Option<&Documents>,
    update: impl FnOnce(&mut State) -> Result<T, DocumentError>,
) -> Result<(T, State), DocumentError> {
    let lock = project.write_lock(id, holder)?;
    let change = project.change(id)?;
    let (text, old) = read_state(&change)?;
    let mut state = old.clone();
    let value = update(&mut state)?;
    state.updated_at = Some(now);
    let files = documents.map(journal::files).unwrap_or_default();
    let (change, lock, before) = (&change, &lock, Some((&old, &*text)));
    journal::Write { project, change, lock, before, after: &state, files, now }.commit()?;
    Ok((value, state))
}
