//! Which open changes touch the same: known while they are planned, not when the second
//! of them is archived.

use std::collections::{BTreeMap, BTreeSet};

use agentd_core::document::{spec, tasks};
use agentd_core::documents::Documents;
use agentd_core::ids::{ChangeId, RequirementId, SpecId};
use agentd_core::layout::{self, ChangeFile};
use agentd_core::rel_path::RelPath;
use agentd_core::text::Line;
use serde::Serialize;
use strum::IntoStaticStr;

use crate::store::{Project, StoreError, map_parallel};

/// What open changes have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverlapReport {
    /// The change whose overlaps these are; none for those of all changes.
    pub change_id: Option<ChangeId>,
    /// What several changes touch, by kind and name.
    pub overlaps: Vec<Overlap>,
}

/// Something that several open changes touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overlap {
    /// What kind of thing.
    pub kind: OverlapKind,
    /// Its name: `auth-flow:R2`, `src/auth.rs`, `auth-flow: wrong password`.
    pub what: String,
    /// Who touches it, in the order of their ids.
    pub changes: Vec<Touch>,
}

/// What changes overlap in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapKind {
    /// A requirement: archiving the second may end in a conflict.
    Requirement,
    /// A scenario, by its name.
    Scenario,
    /// A file that tasks or the proposal name.
    File,
}

/// One change and what it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Touch {
    /// The change.
    pub change_id: ChangeId,
    /// What it does.
    pub how: Operation,
}

/// What a change does to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum Operation {
    /// It is new. Two new requirements of one id both survive.
    Adds,
    /// It is there and changes.
    Edits,
    /// It leaves.
    Removes,
    /// It gets another title.
    Renames,
    /// It is named, and what happens to it is not known.
    Touches,
}

impl Operation {
    /// The verb.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A kind and a name.
type Key = (OverlapKind, String);

/// What is done, and of a requirement, to which.
type Effect = (Operation, Option<(SpecId, RequirementId)>);

/// What one change touches.
type Effects = BTreeMap<Key, Effect>;

/// The overlaps of all open changes, or those of one change with the others.
pub fn overlaps(project: &Project, only: Option<&Documents>) -> Result<Vec<Overlap>, StoreError> {
    let open = project.open_everywhere()?;
    let own = only.map(|documents| touched_by(documents, &Filter::Everything));
    if own.as_ref().is_some_and(Effects::is_empty) {
        return Ok(Vec::new());
    }
    let interest = own.as_ref().map_or(Filter::Everything, Filter::of);
    let touched = map_parallel(&open, |(id, project)| match &own {
        Some(own) if only.is_some_and(|only| only.id == *id) => Ok(own.clone()),
        _ => touched_in(project, id, &interest),
    });
    let mut all: BTreeMap<Key, Vec<(usize, Effect)>> = BTreeMap::new();
    for (i, touched) in touched.into_iter().enumerate() {
        for (key, effect) in touched? {
            all.entry(key).or_default().push((i, effect));
        }
    }
    let wanted = only.and_then(|only| open.iter().position(|(id, _)| *id == only.id));
    let concerns = |who: &[(usize, Effect)]| {
        who.len() > 1 && (only.is_none() || who.iter().any(|(i, ..)| Some(*i) == wanted))
    };
    let shared = all.into_iter().filter(|(_, who)| concerns(who));
    let overlaps = shared.map(|((kind, what), who)| {
        let changes = who.into_iter().map(|(i, (how, requirement))| {
            let (change_id, project) = &open[i];
            let how = match requirement {
                Some((spec, id)) if how == Operation::Touches => {
                    adds_or_edits(project, change_id, &spec, id)
                }
                _ => how,
            };
            Touch { change_id: change_id.clone(), how }
        });
        Overlap { kind, what, changes: changes.collect() }
    });
    Ok(overlaps.collect())
}

/// What is looked for. Reading a document whole takes much longer than seeing that nothing
/// of interest is in it, and most changes have nothing to do with each other.
enum Filter {
    Everything,
    /// What a certain change touches: its specs, and the names of its files without their
    /// directories, which may be written in several ways.
    Of {
        specs: BTreeSet<SpecId>,
        files: BTreeSet<String>,
    },
}

impl Filter {
    fn of(touched: &Effects) -> Self {
        let (mut specs, mut files) = (BTreeSet::new(), BTreeSet::new());
        for (kind, what) in touched.keys() {
            match kind {
                OverlapKind::File => {
                    let name = what.trim_end_matches('/').rsplit('/').next();
                    files.extend(name.map(str::to_owned));
                }
                OverlapKind::Requirement | OverlapKind::Scenario => {
                    let id = what.split(':').next().unwrap_or_default();
                    specs.extend(SpecId::new(id));
                }
            }
        }
        Self::Of { specs, files }
    }

    fn in_spec(&self, id: &SpecId) -> bool {
        match self {
            Self::Everything => true,
            Self::Of { specs, .. } => specs.contains(id),
        }
    }

    fn in_text(&self, text: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Of { files, .. } => files.iter().any(|name| text.contains(name.as_str())),
        }
    }

    fn in_any_file(&self) -> bool {
        !matches!(self, Self::Of { files, .. } if files.is_empty())
    }
}

/// What a change on disk touches, as far as it is of interest. Only that much of it is read.
fn touched_in(project: &Project, id: &ChangeId, interest: &Filter) -> Result<Effects, StoreError> {
    let Some(change) = project.change_if_open(id)? else { return Ok(Effects::new()) };
    let specs = change.spec_ids()?.ids.into_iter().filter(|id| interest.in_spec(id));
    let files = [ChangeFile::Tasks, ChangeFile::Proposal].into_iter();
    let files = files.filter(|_| interest.in_any_file());
    Ok(touched_by(&change.documents(specs.map(ChangeFile::Spec).chain(files)), interest))
}

/// What a change touches, as far as it is of interest. What cannot be read touches nothing:
/// others report that.
fn touched_by(documents: &Documents, interest: &Filter) -> Effects {
    let mut touched = Effects::new();
    let mut add = |kind, what: String, how, requirement| {
        touched.entry((kind, what)).or_insert((how, requirement));
    };
    for (spec, parsed) in documents.readable_specs() {
        let mut requirement = |id: RequirementId, how| {
            let place = (spec.clone(), id);
            add(OverlapKind::Requirement, format!("{spec}:{id}"), how, Some(place));
        };
        parsed.removes.iter().for_each(|id| requirement(*id, Operation::Removes));
        parsed.requirements.iter().for_each(|r| requirement(r.id, Operation::Touches));
        parsed.renames.keys().for_each(|id| requirement(*id, Operation::Renames));
        for scenario in &parsed.scenarios {
            let name = scenario.name.as_str().to_lowercase();
            add(OverlapKind::Scenario, format!("{spec}: {name}"), Operation::Touches, None);
        }
    }
    let path = |file: &Line| {
        RelPath::new(file.as_str()).map_or_else(|_| file.to_string(), |path| path.to_string())
    };
    // Parsing is what takes long.
    if documents.tasks.text().is_some_and(|text| interest.in_text(text)) {
        for task in &documents.tasks.value().tasks {
            let how = match task.action {
                Some(tasks::Action::Create) => Operation::Adds,
                Some(tasks::Action::Modify) => Operation::Edits,
                Some(tasks::Action::Delete) => Operation::Removes,
                None => Operation::Touches,
            };
            if let Some(file) = &task.file {
                add(OverlapKind::File, path(file), how, None);
            }
        }
    }
    if documents.proposal.text().is_some_and(|text| interest.in_text(text)) {
        // Directories are named there as well; nearly every two changes share one.
        let is_file =
            |path: &String| path.rsplit('/').next().is_some_and(|name| name.contains('.'));
        let named = &documents.proposal.value().impact.affected_code;
        for file in named.iter().map(path).filter(is_file) {
            add(OverlapKind::File, file, Operation::Touches, None);
        }
    }
    touched
}

/// What the other open changes touch, a line each, for a planner of another: those that
/// were worked on last, up to a number of them.
pub(crate) fn open_ground(
    project: &Project,
    except: &ChangeId,
    most: usize,
) -> Result<Vec<String>, StoreError> {
    let mut open = project.open_everywhere()?;
    open.retain(|(id, _)| id != except);
    if open.len() > most {
        let touched = |(id, project): &(ChangeId, Project)| {
            let path = project.root().join(layout::change_dir(id).as_path()).join("STATE.yaml");
            std::fs::metadata(path).and_then(|file| file.modified()).ok()
        };
        open.sort_by_cached_key(|change| std::cmp::Reverse(touched(change)));
        open.truncate(most);
    }
    let touched = map_parallel(&open, |(id, project)| touched_in(project, id, &Filter::Everything));
    let mut lines = Vec::new();
    for ((id, _), touched) in open.iter().zip(touched) {
        // Of a spec its requirements say enough.
        let named = touched?.into_keys().filter(|(kind, _)| *kind != OverlapKind::Scenario);
        let named: Vec<String> = named.map(|(_, what)| what).collect();
        if !named.is_empty() {
            lines.push(format!("{id}: {}", named.join(", ")));
        }
    }
    Ok(lines)
}

/// Whether a requirement was there when the change began.
fn adds_or_edits(
    project: &Project,
    change: &ChangeId,
    spec: &SpecId,
    id: RequirementId,
) -> Operation {
    let base = project.change(change).and_then(|c| c.read(&ChangeFile::Base(spec.clone())));
    let before = base.or_else(|_| project.dir().read_to_string(&layout::main_spec(spec)));
    let known = before.is_ok_and(|text| {
        agentd_core::check::requirement_ids(&spec::parse(&text).value).contains(&id)
    });
    if known { Operation::Edits } else { Operation::Adds }
}
