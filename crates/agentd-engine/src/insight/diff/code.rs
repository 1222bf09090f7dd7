//! The code of a change: from the commit that it started from to its working tree.
//!
//! The comparison is that of the reviewer (`git/compare`): files on the disk with checked objects,
//! in a git directory of our own. No filter, hook or setting of the repository runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use agentd_core::diff::{self, FilePatch, LineDiff};
use agentd_core::document::tasks::Task;
use agentd_core::ids::{Layer, TaskId};
use agentd_core::layout::RunName;
use agentd_core::run_format::Record;
use agentd_core::step_name::StepName;

use crate::change::staleness::code_root;
use crate::change::{Snapshot, documents::DocumentError};
use crate::explain::{ErrorReport, Explain};
use crate::git::{Diff, FileChange, Git, GitError, OmittedFile, Seen};
use crate::insight::kept::Kept;
use crate::store::Project;

/// How much of a diff is read; longer files are cut.
const MOST_BYTES: usize = 4 << 20;

/// The code of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeDiff {
    /// The commit that the change started from.
    pub base: String,
    /// The files that differ, by path.
    pub files: Vec<CodeFile>,
    /// What differs, or may, and is not shown.
    pub left_out: Vec<OmittedFile>,
    /// Whether something was cut because there is too much of it.
    pub cut: bool,
}

/// A file that a change has touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeFile {
    /// Its path from the project; from the top of the checkout if it is elsewhere in it.
    pub path: String,
    /// What was done to it.
    pub change: FileChange,
    /// Lines that were added and removed; none for a binary file.
    pub lines: Option<(u64, u64)>,
    /// The lines that differ.
    pub diff: LineDiff,
    /// Whether more of it differs than is here.
    pub cut: bool,
    /// The tasks that name it.
    pub tasks: Vec<TaskId>,
    /// The layers of these tasks; where no task names it, those in whose calls it was written.
    pub layers: BTreeSet<Layer>,
}

impl CodeDiff {
    /// How many lines were added and removed in all.
    pub fn totals(&self) -> (u64, u64) {
        let lines = self.files.iter().filter_map(|file| file.lines);
        lines.fold((0, 0), |all, file| (all.0 + file.0, all.1 + file.1))
    }

    /// The files of each layer, in their order; those that belong to no layer come last. A file
    /// of several layers is listed with the first one.
    pub fn by_layer(&self) -> Vec<(Option<Layer>, Vec<&CodeFile>)> {
        let layers = Layer::ALL.into_iter().map(Some).chain([None]);
        let of = |layer: Option<Layer>| {
            let is_it = |file: &&CodeFile| file.layers.first().copied() == layer;
            (layer, self.files.iter().filter(is_it).collect::<Vec<_>>())
        };
        layers.map(of).filter(|(_, files)| !files.is_empty()).collect()
    }

    /// The files of each task, in the order of the tasks; those that no task names come last. A
    /// file of several tasks is listed with each of them.
    pub fn by_task<'t>(&self, tasks: &'t [Task]) -> Vec<(Option<&'t Task>, Vec<&CodeFile>)> {
        let named = tasks.iter().map(|task| {
            let is_it = |file: &&CodeFile| file.tasks.contains(&task.id);
            (Some(task), self.files.iter().filter(is_it).collect::<Vec<_>>())
        });
        let others = self.files.iter().filter(|file| file.tasks.is_empty()).collect();
        named.chain([(None, others)]).filter(|(_, files)| !files.is_empty()).collect()
    }
}

/// Why the code of a change cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// Its state cannot be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// Git said no.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Explain for CodeError {
    fn explain(&self) -> ErrorReport {
        match self {
            Self::Document(error) => error.explain(),
            Self::Git(error) => error.explain(),
        }
    }
}

/// What differs in a checkout.
#[derive(Debug)]
pub(in crate::insight) struct Compared {
    found: Diff,
    /// The lines that differ, by path.
    patches: BTreeMap<String, FilePatch>,
    /// From the top of the checkout to the project.
    subdirectory: Option<PathBuf>,
}

/// The code of an open change; none if nothing is known to compare it with, because the project is
/// no repository or had no commit when the change began.
pub fn code(project: &Project, snapshot: &Snapshot) -> Result<Option<CodeDiff>, CodeError> {
    code_kept(project, snapshot, &Kept::default())
}

/// The same for a page: what was compared before is not compared again, unless something has
/// changed that it was made from.
pub fn code_kept(
    project: &Project,
    snapshot: &Snapshot,
    kept: &Kept,
) -> Result<Option<CodeDiff>, CodeError> {
    let Some(state) = snapshot.state_if_begun()? else { return Ok(None) };
    let Some(base) = state.base_commit() else { return Ok(None) };
    let question = format!(
        "{:?} {:?} {:?} {base}",
        project.root().as_os_str().as_encoded_bytes(),
        state.change_id,
        state.git
    );
    if let Some(known) = kept.compared.get(&question) {
        return Ok(Some(with_tasks(snapshot, base, &known.1)));
    }
    let mut before = Seen::begin();
    before.repository_of(project.root());
    let root = code_root(project, state)?;
    let Some(git) = Git::discover(&root)? else { return Ok(None) };
    let (found, mut seen) = git.diff_to_keep(base, MOST_BYTES)?;
    seen.and(before);
    let patches = diff::patches(&found.text);
    let patches = patches.into_iter().map(|patch| (patch.path.clone(), patch)).collect();
    let subdirectory = git.subdirectory().map(Path::to_owned);
    let known = kept.compared.keep(question, seen, Compared { found, patches, subdirectory });
    Ok(Some(with_tasks(snapshot, base, &known.1)))
}

/// What differs, by the tasks and layers of the change.
fn with_tasks(snapshot: &Snapshot, base: &str, compared: &Compared) -> CodeDiff {
    let tasks = &snapshot.documents.tasks.value().tasks;
    let written = Written::default();
    let mut files = Vec::new();
    for changed in &compared.found.files {
        let patch = compared.patches.get(&changed.path);
        let path = in_project(&changed.path, compared.subdirectory.as_deref());
        let own: Vec<&Task> = tasks.iter().filter(|task| names(task, &path)).collect();
        let layers: BTreeSet<Layer> = match own.as_slice() {
            [] => written.layers_of(snapshot, &path),
            own => own.iter().filter_map(|task| task.layer).collect(),
        };
        let is_empty = patch.is_none() && changed.lines.is_some_and(|lines| lines != (0, 0));
        files.push(CodeFile {
            path,
            change: changed.change.clone(),
            lines: changed.lines,
            diff: patch.map(|patch| patch.diff.clone()).unwrap_or_default(),
            cut: patch.map_or(is_empty, |patch| patch.cut),
            tasks: own.iter().map(|task| task.id).collect(),
            layers,
        });
    }
    let (left_out, cut) = (compared.found.left_out.clone(), compared.found.truncated);
    CodeDiff { base: base.to_owned(), files, left_out, cut }
}

/// A path from the top of the checkout, from the project.
fn in_project(path: &str, subdirectory: Option<&Path>) -> String {
    let inside = subdirectory.and_then(|dir| Path::new(path).strip_prefix(dir).ok());
    inside.and_then(Path::to_str).unwrap_or(path).to_owned()
}

fn names(task: &Task, path: &str) -> bool {
    task.file.as_ref().is_some_and(|file| file.as_str().trim_start_matches("./") == path)
}

/// Which files were written in the calls for which layers, read when it is first needed.
#[derive(Default)]
struct Written(std::cell::OnceCell<BTreeMap<String, BTreeSet<Layer>>>);

impl Written {
    fn layers_of(&self, snapshot: &Snapshot, path: &str) -> BTreeSet<Layer> {
        let all = self.0.get_or_init(|| written(snapshot));
        all.get(path).cloned().unwrap_or_default()
    }
}

fn written(snapshot: &Snapshot) -> BTreeMap<String, BTreeSet<Layer>> {
    let mut written: BTreeMap<String, BTreeSet<Layer>> = BTreeMap::new();
    for run in snapshot.runs().unwrap_or_default() {
        let StepName::Implement(layer) = run.step() else { continue };
        for path in edited_in(snapshot, run) {
            written.entry(path).or_default().insert(layer);
        }
    }
    written
}

/// The files that changed in a call. A record that cannot be read says nothing.
fn edited_in(snapshot: &Snapshot, run: &RunName) -> Vec<String> {
    let records = snapshot.records_with(run, "\"files\"").unwrap_or_default();
    let files = records.into_iter().filter_map(|record| match record {
        Record::Files { files, .. } => Some(files),
        _ => None,
    });
    files.flatten().map(|edit| edit.path).collect()
}
