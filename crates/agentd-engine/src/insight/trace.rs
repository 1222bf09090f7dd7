//! From a requirement to what was done for it: tasks, files, commits, scenarios, review.

mod commits;

use std::collections::BTreeSet;

use agentd_core::document::spec::{self, Spec};
use agentd_core::document::tasks::{self, Action, Status, Task};
use agentd_core::ids::{ChangeId, RequirementId, SpecId, SpecRef, TaskId};
use agentd_core::layout::{self, ArchiveName, ChangeFile};
use agentd_core::phase::Phase;
use agentd_core::rel_path::RelPath;
use agentd_core::stamp::Stamp;
use agentd_core::state::{self, State};
use agentd_core::text::Line;
use serde::Serialize;

use crate::insight::kept::Kept;
use crate::insight::overlap::Operation;
use crate::store::{Change, Project, ProjectDir, StoreError};

pub use commits::Commit;

/// What was done for a requirement, for those of a spec, or for those of a change.
#[derive(Debug, Clone, Serialize)]
pub struct TraceReport {
    /// What was asked for: a requirement, a spec or a change.
    pub id: String,
    /// Each requirement with each change that touches it.
    pub traces: Vec<Trace>,
}

/// What one change has done for one requirement.
#[derive(Debug, Clone, Serialize)]
pub struct Trace {
    /// The requirement: `auth-flow:R1`.
    pub requirement: String,
    /// Its title.
    pub title: Line,
    /// What the change does to it.
    pub how: Operation,
    /// The change.
    pub change_id: ChangeId,
    /// Where the change stands.
    pub phase: Option<Phase>,
    /// Its directory in the archive, if it is there.
    pub archived: Option<String>,
    /// The tasks that name the requirement or its spec.
    pub tasks: Vec<TaskTrace>,
    /// The scenarios that prove it.
    pub scenarios: Vec<Line>,
    /// Commits that belong to one of the tasks.
    pub commits: Vec<Commit>,
    /// The latest review of the implementation.
    pub review: Option<ReviewTrace>,
}

/// One task.
#[derive(Debug, Clone, Serialize)]
pub struct TaskTrace {
    /// Its id.
    pub id: TaskId,
    /// Its title.
    pub title: Line,
    /// Whether it is done.
    pub status: Status,
    /// What it does to its file.
    pub action: Option<Action>,
    /// The file.
    pub file: Option<Line>,
    /// The commits, by their ids.
    pub commits: Vec<String>,
}

/// A verdict.
#[derive(Debug, Clone, Serialize)]
pub struct ReviewTrace {
    /// What was said.
    pub verdict: &'static str,
    /// The round.
    pub iteration: u32,
    /// Who said it.
    pub reviewer: Line,
    /// When.
    pub at: Stamp,
    /// Whether the tests passed that agentd has run last.
    pub tests_passed: Option<bool>,
}

/// A change, open or archived, for reading.
struct Source {
    id: ChangeId,
    archived: Option<ArchiveName>,
    dir: ProjectDir,
    state: Option<State>,
}

impl Source {
    fn new(change: &Change) -> Self {
        let text = change.read(&ChangeFile::State).unwrap_or_default();
        let state = state::parse(&text, change.id()).ok();
        let (id, archived) = (change.id().clone(), change.archived().cloned());
        Self { id, archived, dir: change.dir().clone(), state }
    }

    fn text(&self, file: &ChangeFile) -> String {
        self.dir.read_to_string(&file.path()).unwrap_or_default()
    }

    fn spec(&self, id: &SpecId) -> Option<Spec> {
        let text = self.dir.read_to_string(&ChangeFile::Spec(id.clone()).path()).ok()?;
        Some(spec::parse(&text).value)
    }

    fn spec_ids(&self) -> Vec<SpecId> {
        let Ok(dir) = RelPath::new("specs") else { return Vec::new() };
        let entries = self.dir.list_dir(&dir).unwrap_or_default();
        entries.iter().filter_map(|entry| layout::spec_of_file_name(&entry.name)).collect()
    }
}

/// Every change, the archived ones first, oldest first.
fn sources(project: &Project) -> Result<Vec<Source>, StoreError> {
    // The open ones are looked for first: what is archived meanwhile is found there.
    let mut open = Vec::new();
    for (id, home) in project.open_everywhere()? {
        open.extend(home.change_if_open(&id)?.as_ref().map(Source::new));
    }
    let mut sources = Vec::new();
    for (name, home) in project.archived_everywhere()? {
        match home.archived_change(&name) {
            // It was taken back since it was listed.
            Err(error) if error.is_not_found() => {}
            change => sources.push(Source::new(&change?)),
        }
    }
    sources.extend(open);
    Ok(sources)
}

/// What every change has done for a requirement, or for all of a spec.
pub fn of_requirement(project: &Project, wanted: &SpecRef) -> Result<Vec<Trace>, StoreError> {
    let mut traces = Vec::new();
    for source in sources(project)? {
        let Some(spec) = source.spec(&wanted.spec) else { continue };
        let touched = touched(&source, &wanted.spec, &spec);
        let mut mine = touched
            .into_iter()
            .filter(|(id, _)| wanted.requirement.is_none_or(|wanted| wanted == *id))
            .peekable();
        if mine.peek().is_some() {
            let kept = Kept::default();
            traces.extend(trace((project, &kept), &source, &wanted.spec, &spec, mine));
        }
    }
    Ok(traces)
}

/// What a change has done for each of its requirements; which one an ID or the name of a directory
/// in the archive means, [`Project::find_change`] says. Nothing where there is no such change.
pub fn of_change(project: &Project, which: &str) -> Result<Option<Vec<Trace>>, StoreError> {
    Ok(project.find_change(which)?.map(|change| of(project, &change)))
}

/// What a change has done for each of its requirements.
pub fn of(project: &Project, change: &Change) -> Vec<Trace> {
    of_kept(project, change, &Kept::default())
}

/// The same for a page: git is not asked again for commits, unless it may know more.
pub fn of_kept(project: &Project, change: &Change, kept: &Kept) -> Vec<Trace> {
    let source = Source::new(change);
    let mut traces = Vec::new();
    for spec_id in source.spec_ids() {
        let Some(spec) = source.spec(&spec_id) else { continue };
        let touched = touched(&source, &spec_id, &spec);
        let touched = touched.into_iter();
        traces.extend(trace((project, kept), &source, &spec_id, &spec, touched));
    }
    traces
}

/// The requirements that a change touches, and how.
fn touched(source: &Source, id: &SpecId, spec: &Spec) -> Vec<(RequirementId, Operation)> {
    let base = agentd_core::check::requirement_ids(
        &spec::parse(&source.text(&ChangeFile::Base(id.clone()))).value,
    );
    let mut touched: Vec<(RequirementId, Operation)> = Vec::new();
    for requirement in &spec.requirements {
        let how = if base.contains(&requirement.id) { Operation::Edits } else { Operation::Adds };
        touched.push((requirement.id, how));
    }
    let listed: BTreeSet<RequirementId> = touched.iter().map(|(id, _)| *id).collect();
    let renames = spec.renames.keys().filter(|id| !listed.contains(id));
    touched.extend(renames.map(|id| (*id, Operation::Renames)));
    touched.extend(spec.removes.iter().map(|id| (*id, Operation::Removes)));
    touched
}

fn trace(
    (project, kept): (&Project, &Kept),
    source: &Source,
    spec_id: &SpecId,
    spec: &Spec,
    touched: impl Iterator<Item = (RequirementId, Operation)>,
) -> Vec<Trace> {
    let all_tasks = tasks::parse(&source.text(&ChangeFile::Tasks)).value.tasks;
    let of_spec: Vec<&Task> =
        all_tasks.iter().filter(|task| task.spec_refs.iter().any(|r| r.spec == *spec_id)).collect();
    let commits = commits::kept(kept, project, &source.id, source.state.as_ref(), &of_spec);
    let review = source.state.as_ref().and_then(review);
    let base = spec::parse(&source.text(&ChangeFile::Base(spec_id.clone()))).value;
    let mut traces = Vec::new();
    for (id, how) in touched {
        let names = |task: &&&Task| {
            task.spec_refs
                .iter()
                .any(|r| r.spec == *spec_id && r.requirement.is_none_or(|own| own == id))
        };
        let own: Vec<TaskTrace> = of_spec
            .iter()
            .filter(names)
            .map(|task| TaskTrace {
                id: task.id,
                title: task.title.clone(),
                status: task.status,
                action: task.action,
                file: task.file.clone(),
                commits: commits
                    .iter()
                    .filter(|c| c.tasks.contains(&task.id))
                    .map(|c| c.id.clone())
                    .collect(),
            })
            .collect();
        let ids: BTreeSet<TaskId> = own.iter().map(|task| task.id).collect();
        let titled =
            |spec: &Spec| spec.requirements.iter().find(|r| r.id == id).map(|r| r.title.clone());
        let title =
            spec.renames.get(&id).cloned().or_else(|| titled(spec)).or_else(|| titled(&base));
        traces.push(Trace {
            requirement: format!("{spec_id}:{id}"),
            title: title.unwrap_or_default(),
            how,
            change_id: source.id.clone(),
            phase: source.state.as_ref().map(|state| state.phase),
            archived: source.archived.as_ref().map(ToString::to_string),
            scenarios: scenarios(spec, id).names,
            commits: commits.iter().filter(|c| !c.tasks.is_disjoint(&ids)).cloned().collect(),
            tasks: own,
            review: review.clone(),
        });
    }
    traces
}

fn review(state: &State) -> Option<ReviewTrace> {
    let review = state.code_review.as_ref()?;
    Some(ReviewTrace {
        verdict: review.verdict.label(),
        iteration: review.iteration,
        reviewer: review.reviewer.clone(),
        at: review.at,
        tests_passed: state.test_run.as_ref().map(agentd_core::state::TestRun::passed),
    })
}

/// The scenarios that prove a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenarios {
    /// Their names.
    pub names: Vec<Line>,
    /// Whether they are all scenarios of the spec, since none of them names a requirement.
    pub of_spec: bool,
}

/// The scenarios below a requirement and those that name it; where no scenario of the spec
/// names any requirement, all of them prove the spec as a whole.
pub fn scenarios(spec: &Spec, id: RequirementId) -> Scenarios {
    let own = spec.requirements.iter().filter(|r| r.id == id).flat_map(|r| &r.scenarios);
    let mut names: Vec<Line> = own.map(|scenario| scenario.name.clone()).collect();
    let says = |scenario: &spec::Scenario, wanted: &dyn Fn(RequirementId) -> bool| {
        let steps = scenario.steps.iter().map(|step| step.text.as_str());
        let mut words = std::iter::once(scenario.name.as_str())
            .chain(steps)
            .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()));
        words.any(|word| word.parse().is_ok_and(wanted))
    };
    let named = spec.scenarios.iter().filter(|s| says(s, &|found| found == id));
    names.extend(named.map(|scenario| scenario.name.clone()));
    let of_spec = names.is_empty() && !spec.scenarios.iter().any(|s| says(s, &|_| true));
    if of_spec {
        names.extend(spec.scenarios.iter().map(|scenario| scenario.name.clone()));
    }
    Scenarios { of_spec: of_spec && !names.is_empty(), names }
}
