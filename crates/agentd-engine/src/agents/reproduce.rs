//! A recorded change, done again in another project: every recorded run, in order,
//! through the same steps as the first time, and a comparison at the end.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use agentd_core::agent::{AgentKind, Role};
use agentd_core::config::{Budget, Config, Roles};
use agentd_core::documents::Documents;
use agentd_core::error_kind::Kind;
use agentd_core::event::AgentEvent;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::layout::{ChangeFile, RunName};
use agentd_core::outcome::FailureKind;
use agentd_core::phase::Transition;
use agentd_core::recording::{DIVERGES, Run};
use agentd_core::rel_path::RelPath;
use agentd_core::run_format::Record;
use agentd_core::stamp::Stamp;
use agentd_core::state::{self, State};
use jiff::SignedDuration;

use crate::agents::receipts;
use crate::agents::recording::{Recording, RecordingError};
use crate::agents::runner::Observer;
use crate::agents::step::{self, Agents, Artifact, Step, StepError};
use crate::agents::work_tree::digest_of;
use crate::change::documents::{self, DocumentError};
use crate::explain::{ErrorReport, Explain};
use crate::guard::trust::Trusted;
use crate::store::{ProjectDir, StoreError};
use crate::workflow;

/// The most that is read of a document of the recorded change.
const LARGEST_DOCUMENT: u64 = 64 << 20;

/// Why a change could not be reproduced.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The recording cannot be played.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// Documents could not be read or written.
    #[error(transparent)]
    Documents(#[from] DocumentError),
    /// A step could not be made at all.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The target has this change already.
    #[error("`{change}` already exists")]
    Exists {
        /// The change.
        change: ChangeId,
    },
    /// Somebody has stopped it.
    #[error("interrupted")]
    Interrupted,
    /// A file of the source cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Explain for ReproduceError {
    fn explain(&self) -> ErrorReport {
        let report = |kind| ErrorReport::of(kind, self);
        match self {
            Self::Documents(error) | Self::Step(StepError::Documents(error)) => error.explain(),
            Self::Interrupted => ErrorReport::interrupted(),
            Self::Step(_) => report(Kind::Replay),
            Self::Exists { change } => report(Kind::AlreadyThere).hint(format!(
                "replay into a directory that has no change `{change}`, such as a fresh clone"
            )),
            Self::Recording(_) | Self::Io { .. } => report(Kind::Recording).hint(
                "name a change, its directory, or a directory of run files (NNNN-<step>.jsonl)",
            ),
        }
    }
}

impl From<StoreError> for ReproduceError {
    fn from(error: StoreError) -> Self {
        Self::Documents(error.into())
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Reproduced {
    /// The change.
    pub change: ChangeId,
    /// The runs that were played.
    pub runs: Vec<RunName>,
    /// How many documents and files were compared at the end.
    pub compared: usize,
    /// Where it is not as it was, in words.
    pub divergences: Vec<String>,
}

/// Plays all runs of `source`, a change or a directory of run files, in the project of
/// `agents`, whose roles it takes over. The change must not be there yet.
pub fn reproduce(
    agents: Agents,
    source: &Path,
    observer: &mut Observer<'_>,
    on_run: &mut dyn FnMut(&RunName),
) -> Result<Reproduced, ReproduceError> {
    let recording = Recording::open(source)?;
    let agents = playing(agents, &recording);
    let Some(first) = recording.runs().first() else {
        return Err(RecordingError::Empty { path: source.to_owned() }.into());
    };
    let first = recording.read(first)?;
    let id = first.header.change.clone();
    let original = source_of(&recording, &id);
    begin(&agents, &id, &first, original.as_deref(), &recording)?;
    let mut report =
        Reproduced { change: id.clone(), runs: Vec::new(), compared: 0, divergences: Vec::new() };
    let mut edited: Vec<(String, Option<Digest>)> = Vec::new();
    for name in recording.runs() {
        on_run(name);
        let run = recording.read(name)?;
        play(&agents, &id, &run, &mut report, observer)?;
        for record in &run.records {
            if let Record::Files { files, .. } = record {
                for edit in files {
                    edited.retain(|(path, _)| *path != edit.path);
                    edited.push((edit.path.clone(), edit.after.clone()));
                }
            }
        }
        report.runs.push(name.clone());
    }
    compare_files(&agents, &edited, &mut report);
    if let Some(original) = &original {
        compare_documents(&agents, &id, original, &mut report)?;
    }
    Ok(report)
}

/// The agents with the recording in every role. One recorded attempt is one run, so
/// that nothing is tried again by itself.
fn playing(agents: Agents, recording: &Recording) -> Agents {
    let mut config = Config::clone(&agents.config);
    let play = AgentKind::Replay;
    config.roles = Roles::all_by(play);
    config.fallbacks.clear();
    config.replay.recording = Some(recording.dir().to_string_lossy().into_owned());
    config.workflow.script_retries = 0;
    // It was paid for when it was recorded.
    config.budget = Budget::default();
    Agents { config: Trusted::harmless(config), ..agents }
}

/// Reads a file of the change that was recorded, which may be anybody's.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    agentd_walk::open_regular(path)?.take(LARGEST_DOCUMENT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read(path).ok()?).ok()
}

/// The change that the runs were recorded in, if they are still in it.
fn source_of(recording: &Recording, id: &ChangeId) -> Option<PathBuf> {
    let dir = recording.dir().parent()?;
    let state = read_text(&dir.join("STATE.yaml"))?;
    state::parse(&state, id).ok().map(|_| dir.to_owned())
}

/// Begins the change with what the runs were given: the description and the answers.
fn begin(
    agents: &Agents,
    id: &ChangeId,
    first: &Run,
    original: Option<&Path>,
    recording: &Recording,
) -> Result<(), ReproduceError> {
    let change = match agents.project.create_change(id) {
        Err(StoreError::AlreadyExists { .. }) => {
            return Err(ReproduceError::Exists { change: id.clone() });
        }
        created => created?,
    };
    let started = first.header.started_at.parse().map(Stamp::new).ok();
    let old = original.and_then(|dir| read_text(&dir.join("STATE.yaml")));
    let old = old.and_then(|text| state::parse(&text, id).ok());
    let created_at = old.as_ref().and_then(|state| state.created_at).or(started);
    let Some(created_at) = created_at else {
        return Err(RecordingError::NotARun { path: recording.dir().to_owned() }.into());
    };
    let description = old.as_ref().and_then(|state| state.description.clone()).unwrap_or_default();
    let mut state = State::new(id.clone(), description.as_str(), created_at);
    state.complexity = old.and_then(|state| state.complexity);
    let lock = agents.project.write_lock(id, &agents.holder).map_err(DocumentError::from)?;
    documents::create_state(&agents.project, &change, &lock, &state, created_at)?;
    let asked = original.map(|dir| dir.join(ChangeFile::Clarifications.path().as_path()));
    if let Some(path) = asked.filter(|path| path.is_file()) {
        let text = read(&path).map_err(|source| ReproduceError::Io { path, source })?;
        change.write(&lock, &ChangeFile::Clarifications, &text)?;
    }
    Ok(())
}

fn play(
    agents: &Agents,
    id: &ChangeId,
    run: &Run,
    report: &mut Reproduced,
    observer: &mut Observer<'_>,
) -> Result<(), ReproduceError> {
    let step = Step {
        change: id.clone(),
        role: run.header.role,
        agent: AgentKind::Replay,
        name: run.header.step.clone(),
        prompt: run.header.prompt.clone(),
        resume: None,
        artifact: Artifact::Nothing,
        on_success: workflow::effect_of(&run.header.step),
    };
    let ended = ended_at(run).unwrap_or_else(|| Stamp::new(jiff::Timestamp::UNIX_EPOCH));
    if run.header.role == Role::Implementer {
        move_on(agents, id, ended, &|documents, _| {
            Some(Transition::ImplementationStarted { plan: documents.digest() })
        })?;
    }
    let result = step::run(agents, &step, &|| ended, &mut |event| {
        if let AgentEvent::Warning { message } = event
            && let Some(what) = message.strip_prefix(DIVERGES)
        {
            report.divergences.push(what.to_owned());
        }
        observer(event);
    });
    let then = run.end.as_ref().and_then(|end| end.outcome.failure.as_ref());
    match (&result, then) {
        (Err(StepError::Agent { failure, .. }), _) if failure.kind == FailureKind::Cancelled => {
            return Err(ReproduceError::Interrupted);
        }
        (Err(StepError::Agent { failure, .. }), None) if run.end.is_some() => {
            report
                .divergences
                .push(format!("{}: it failed now, and not then: {failure}", run.name));
        }
        (Ok(_), Some(then)) => {
            report.divergences.push(format!("{}: it failed then, and not now: {then}", run.name));
        }
        (Ok(_) | Err(StepError::Agent { .. }), _) => {}
        (Err(_), _) => {
            result?;
        }
    }
    match run.header.role {
        Role::Challenger => move_on(agents, id, ended, &plan_reviewed)?,
        Role::Reviewer => move_on(agents, id, ended, &code_reviewed)?,
        Role::Planner | Role::Implementer => return Ok(()),
    }
    Ok(receipts::close(&agents.project, id, &agents.holder)?)
}

fn ended_at(run: &Run) -> Option<Stamp> {
    let started: jiff::Timestamp = run.header.started_at.parse().ok()?;
    let took = run.end.as_ref().map_or(0, |end| end.duration_ms);
    let took = SignedDuration::from_millis(i64::try_from(took).ok()?);
    Some(Stamp::new(started.saturating_add(took).ok()?))
}

type Next<'f> = dyn Fn(&Documents, &State) -> Option<Transition> + 'f;

/// Moves the change on where that is allowed; what a person decided in between is not
/// recorded as a run, and shows at the end.
fn move_on(
    agents: &Agents,
    id: &ChangeId,
    at: Stamp,
    next: &Next<'_>,
) -> Result<(), ReproduceError> {
    let snapshot = agents.project.change(id)?.snapshot()?;
    let state = snapshot.state()?;
    let Some(transition) = next(&snapshot.documents, state) else { return Ok(()) };
    if state.apply(&transition).is_err() {
        return Ok(());
    }
    documents::update_state(&agents.project, id, &agents.holder, at, |state| {
        *state = state.apply(&transition)?;
        Ok(())
    })?;
    Ok(())
}

fn plan_reviewed(documents: &Documents, state: &State) -> Option<Transition> {
    let block = documents.reviews().last()?;
    let (plan, at) = (block.plan.clone()?, block.date?);
    let known = state.plan_review.as_ref().is_some_and(|r| r.at == at && r.plan_hash == plan);
    let (verdict, reviewer) = (block.verdict, block.reviewer.clone());
    (!known).then_some(Transition::PlanReviewed { verdict, plan, reviewer, at })
}

fn code_reviewed(documents: &Documents, state: &State) -> Option<Transition> {
    let latest = documents.review.value();
    let (verdict, at) = latest.verdict.zip(latest.created_at)?;
    let known = state.code_review.as_ref().is_some_and(|review| review.at == at);
    let reviewer = latest.reviewer.clone();
    (!known).then_some(Transition::CodeReviewed { verdict, reviewer, at })
}

fn compare_files(agents: &Agents, edited: &[(String, Option<Digest>)], report: &mut Reproduced) {
    let work_tree = ProjectDir::open(&agents.work_tree).ok();
    // A path comes from the recording, and must not lead out of the working tree.
    let digest = |path: &str| {
        let (file, _) = work_tree.as_ref()?.open_file(&RelPath::new(path).ok()?).ok()?;
        digest_of(file).ok().map(|(digest, _)| digest)
    };
    for (path, after) in edited {
        report.compared += 1;
        let there = digest(path);
        if there != *after {
            report.divergences.push(format!("{path} is not as it was at the end"));
        }
    }
}

/// The documents that agents and agentd write, compared byte for byte.
fn compare_documents(
    agents: &Agents,
    id: &ChangeId,
    original: &Path,
    report: &mut Reproduced,
) -> Result<(), ReproduceError> {
    let copy = agents.project.change(id).map_err(DocumentError::from)?.path().to_owned();
    let mut names: Vec<String> =
        ["proposal.md", "tasks.md", "clarifications.md", "CHALLENGE.md", "REVIEW.md"]
            .map(str::to_owned)
            .to_vec();
    for dir in ["specs", "base"] {
        for root in [original, &copy] {
            let Ok(entries) = fs::read_dir(root.join(dir)) else { continue };
            let found = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            names.extend(found.map(|name| format!("{dir}/{name}")));
        }
    }
    names.sort_unstable();
    names.dedup();
    for name in names {
        let read = |root: &Path| match read(&root.join(&name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ReproduceError::Io { path: root.join(&name), source }),
        };
        let (then, now) = (read(original)?, read(&copy)?);
        report.compared += usize::from(then.is_some() || now.is_some());
        if then != now {
            let how = match (then, now) {
                (Some(_), None) => "is missing now",
                (None, Some(_)) => "was not there then",
                _ => "differs",
            };
            report.divergences.push(format!("{name} {how}"));
        }
    }
    Ok(())
}
