//! The documents of a project, typed, on top of the store: reading a change
//! whole, keeping its state, validating.

use std::collections::BTreeSet;

use agentd_core::check::{self, ChangeTexts, Extras, FileReport, MainSpecs, Source};
use agentd_core::command_line::CommandLine;
use agentd_core::config::{Config, ConfigError};
use agentd_core::error_kind::Kind;
use agentd_core::ids::{ChangeId, RequirementId, SpecId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::phase::Refused;
use agentd_core::rules;
use agentd_core::span::Span;
use agentd_core::stamp::Stamp;
use agentd_core::state::{self, State, StateError};

use crate::explain::{ErrorReport, Explain};
use crate::store::{
    Change, Entry, Holder, LockError, Project, StoreError, WriteLock, map_parallel,
};

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
}

impl Explain for DocumentError {
    fn explain(&self) -> ErrorReport {
        match self {
            Self::Store(error) => error.explain(),
            Self::Lock(error) => error.explain(),
            Self::Refused(refused) => refused.explain(),
            Self::Config(error) => error.explain(),
            Self::State { change, .. } => {
                let file = layout::change_dir(change).to_string() + "/STATE.yaml";
                ErrorReport::of(Kind::StateInvalid, self)
                    .run("restore it", CommandLine::git(["checkout", "--", &file]))
                    .hint("agentd never overwrites a state that it cannot read")
            }
            Self::NoState { .. } => ErrorReport::of(Kind::NoState, self)
                .hint("restore STATE.yaml from git; without it, agentd did not start the change"),
        }
    }
}

/// The settings of a project; the defaults where it has none.
pub fn load_config(project: &Project) -> Result<Config, DocumentError> {
    match project.dir().read_to_string(&layout::config()) {
        Ok(text) => Ok(Config::parse(&text)?),
        Err(error) if error.is_not_found() => Ok(Config::default()),
        Err(error) => Err(error.into()),
    }
}

fn source(read: Result<String, StoreError>) -> Source {
    match read {
        Ok(text) => Source::Text(text),
        Err(error) if error.is_not_found() => Source::Missing,
        Err(error) => Source::Unreadable(error.to_string()),
    }
}

/// All texts of a change. What cannot be read is part of the answer, not an error.
pub fn load_texts(change: &Change) -> Result<ChangeTexts, StoreError> {
    Ok(load_texts_and_strays(change)?.0)
}

/// All texts of a change, and the files among its specs that are none.
fn load_texts_and_strays(change: &Change) -> Result<(ChangeTexts, Vec<Entry>), StoreError> {
    let read = |file: &ChangeFile| source(change.read(file));
    let listed = change.spec_ids()?;
    let specs = listed.ids.into_iter();
    let texts = ChangeTexts {
        id: change.id().clone(),
        state: read(&ChangeFile::State),
        clarifications: read(&ChangeFile::Clarifications),
        proposal: read(&ChangeFile::Proposal),
        specs: specs.map(|id| (id.clone(), read(&ChangeFile::Spec(id)))).collect(),
        tasks: read(&ChangeFile::Tasks),
        review: read(&ChangeFile::Review),
    };
    Ok((texts, listed.odd))
}

/// The text of a main spec.
pub fn load_main_spec(project: &Project, id: &SpecId) -> Source {
    source(project.dir().read_to_string(&layout::main_spec(id)))
}

/// The requirements of the main specs that a change may refer to: those it
/// edits, and those that its tasks name.
pub fn main_specs_for(project: &Project, texts: &ChangeTexts) -> MainSpecs {
    let mut wanted: BTreeSet<SpecId> = texts.specs.iter().map(|(id, _)| id.clone()).collect();
    if let Some(text) = texts.tasks.text() {
        let tasks = agentd_core::document::tasks::parse(text).value.tasks;
        wanted.extend(
            tasks.into_iter().flat_map(|task| task.spec_refs).map(|spec_ref| spec_ref.spec),
        );
    }
    let known = wanted.into_iter().filter_map(|id| {
        let requirements = check::requirement_ids(load_main_spec(project, &id).text()?);
        Some((id, requirements))
    });
    known.collect()
}

/// What is wrong with a change.
pub fn validate_change(
    project: &Project,
    change: &Change,
    extras: &Extras,
) -> Result<Vec<FileReport>, StoreError> {
    let (texts, strays) = load_texts_and_strays(change)?;
    let main = main_specs_for(project, &texts);
    let mut reports = findings(&texts, &strays, &main, extras);
    check::cap(&mut reports);
    Ok(reports)
}

/// What is wrong with the texts of a change, by files of the project.
fn findings(
    texts: &ChangeTexts,
    strays: &[Entry],
    main: &MainSpecs,
    extras: &Extras,
) -> Vec<FileReport> {
    let dir = layout::change_dir(&texts.id);
    let mut reports = check::change(texts, main, extras);
    reports.extend(strays.iter().map(|stray| stray_spec("specs", stray)));
    for report in &mut reports {
        report.file = format!("{}/{}", dir.as_str(), report.file);
    }
    reports
}

/// A file among specs that is none: nobody would ever look at it.
fn stray_spec(dir: &str, stray: &Entry) -> FileReport {
    let message = format!("`{}` is not the file of a spec and is not looked at", stray.name);
    let finding = rules::BAD_ID.at(Span::at(0), message);
    let finding =
        finding.with_fix("Call it `<spec id>.md`, such as `auth-flow.md`, or move it away.");
    FileReport {
        file: format!("{dir}/{}", stray.name),
        text: String::new(),
        diagnostics: vec![finding],
        omitted: Vec::new(),
    }
}

/// How much was looked at and what was found.
#[derive(Debug, Clone, Default)]
pub struct Validated {
    /// How many changes were looked at.
    pub changes: usize,
    /// How many main specs were looked at.
    pub specs: usize,
    /// The files with findings, in order.
    pub reports: Vec<FileReport>,
}

/// What is wrong with every change and every main spec, on all cores.
pub fn validate_all(project: &Project, extras: &Extras) -> Result<Validated, StoreError> {
    let listed = project.spec_ids()?;
    let spec_ids = listed.ids;
    let change_ids = project.change_ids()?.ids;
    let specs = map_parallel(&spec_ids, |id| {
        let source = load_main_spec(project, id);
        let (report, requirements) = check::main_spec_with_ids(id, &source, extras);
        let report = report
            .map(|report| FileReport { file: layout::main_spec(id).as_str().to_owned(), ..report });
        (requirements, report)
    });
    let mut main = MainSpecs::new();
    let mut reports = Vec::new();
    for (id, (requirements, report)) in spec_ids.iter().zip(specs) {
        main.insert(id.clone(), requirements);
        reports.extend(report);
    }
    let changes = map_parallel(&change_ids, |id| -> Result<Option<_>, StoreError> {
        let Some(change) = project.change_if_open(id)? else { return Ok(None) };
        let (texts, strays) = load_texts_and_strays(&change)?;
        let mut reports = findings(&texts, &strays, &main, extras);
        check::cap(&mut reports);
        Ok(Some(reports))
    });
    let mut validated = Validated { changes: 0, specs: spec_ids.len(), reports: Vec::new() };
    for found in changes {
        if let Some(found) = found? {
            validated.changes += 1;
            validated.reports.extend(found);
        }
    }
    validated.reports.extend(reports);
    // Notes for people, such as README.md and CHANGELOG.md, may stand among the main specs.
    let is_note = |stray: &&Entry| stray.name.starts_with(|c: char| c.is_ascii_uppercase());
    let dir = layout::main_specs_dir();
    let strays = listed.odd.iter().filter(|stray| !is_note(stray));
    validated.reports.extend(strays.map(|stray| stray_spec(dir.as_str(), stray)));
    check::cap(&mut validated.reports);
    Ok(validated)
}

/// The requirements of one main spec.
pub fn main_requirements(project: &Project, id: &SpecId) -> Option<BTreeSet<RequirementId>> {
    load_main_spec(project, id).text().map(check::requirement_ids)
}

/// The state of a change.
pub fn load_state(change: &Change) -> Result<State, DocumentError> {
    let text = change
        .read_if_exists(&ChangeFile::State)?
        .ok_or_else(|| DocumentError::NoState { change: change.id().clone() })?;
    state::parse(&text, change.id())
        .map_err(|source| DocumentError::State { change: change.id().clone(), source })
}

/// The state of a change, or none where there is no STATE.yaml: its documents were
/// begun by hand or through an interactive client, and no workflow has run on it yet.
pub fn load_state_if_begun(change: &Change) -> Result<Option<State>, DocumentError> {
    match load_state(change) {
        Err(DocumentError::NoState { .. }) => Ok(None),
        state => state.map(Some),
    }
}

/// Writes a state. The lock says that nobody else has changed it since it was read.
pub fn save_state(
    change: &Change,
    lock: &WriteLock,
    state: &State,
    now: Stamp,
) -> Result<(), DocumentError> {
    let stamped = State { updated_at: Some(now), ..state.clone() };
    Ok(change.write(lock, &ChangeFile::State, state::render(&stamped).as_bytes())?)
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
    let lock = project.write_lock(id, holder)?;
    let change = project.change(id)?;
    let mut state = load_state(&change)?;
    let value = update(&mut state)?;
    save_state(&change, &lock, &state, now)?;
    Ok(value)
}
