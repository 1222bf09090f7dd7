//! What a change does to the main specs.

use agentd_core::diff::{self, LineDiff};
use agentd_core::document::changelog::Touched;
use agentd_core::ids::SpecId;
use agentd_core::layout::ChangeFile;
use agentd_core::merge::{self, Conflict, Sides};
use agentd_core::outline::Outline;

use crate::archive::{self, ArchiveError, Renumbering};
use crate::change::Snapshot;
use crate::store::Project;

/// What a change does to one main spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecDelta {
    /// The spec.
    pub spec: SpecId,
    /// Which requirements come, change and go.
    pub touched: Touched,
    /// The main spec without its frontmatter, before and after.
    pub diff: LineDiff,
    /// What others have edited meanwhile, and differently. It is not in the difference.
    pub conflicts: Vec<Conflict>,
    /// Requirements that get another ID, since their own was given away meanwhile.
    pub renumbered: Vec<Renumbering>,
}

/// What archiving an open change would do to the main specs as they are now; for an archived one,
/// what it has done to them as they were when it began.
pub fn specs(project: &Project, snapshot: &Snapshot) -> Result<Vec<SpecDelta>, ArchiveError> {
    if snapshot.change().archived().is_some() {
        return Ok(of_archived(snapshot));
    }
    let merged = archive::merged(project, snapshot.change())?;
    let mut deltas: Vec<SpecDelta> = merged
        .specs
        .into_iter()
        .map(|change| SpecDelta {
            diff: between(change.before.as_deref(), &change.after),
            spec: change.spec,
            touched: change.touched,
            conflicts: Vec::new(),
            renumbered: Vec::new(),
        })
        .collect();
    for conflict in merged.conflicts {
        delta_of(&mut deltas, &conflict.spec).conflicts.push(conflict.conflict);
    }
    for renumbering in merged.renumbered {
        delta_of(&mut deltas, &renumbering.spec).renumbered.push(renumbering);
    }
    deltas.sort_by(|a, b| a.spec.cmp(&b.spec));
    Ok(deltas)
}

/// The delta of a spec. One that is in conflict as a whole has none yet.
fn delta_of<'d>(deltas: &'d mut Vec<SpecDelta>, spec: &SpecId) -> &'d mut SpecDelta {
    let at = deltas.iter().position(|delta| delta.spec == *spec).unwrap_or_else(|| {
        deltas.push(SpecDelta {
            spec: spec.clone(),
            touched: Touched::default(),
            diff: LineDiff::default(),
            conflicts: Vec::new(),
            renumbered: Vec::new(),
        });
        deltas.len() - 1
    });
    &mut deltas[at]
}

fn of_archived(snapshot: &Snapshot) -> Vec<SpecDelta> {
    let documents = &snapshot.documents;
    let mut deltas = Vec::new();
    for (id, spec) in documents.specs.iter().filter(|(id, _)| documents.lists(id)) {
        let Some(change) = spec.text() else { continue };
        let base = snapshot.change().read_if_exists(&ChangeFile::Base(id.clone())).ok().flatten();
        let base = base.filter(|base| !base.trim().is_empty());
        let sides = Sides { base: base.as_deref(), main: base.as_deref(), change };
        let merged = merge::spec(&sides, &|_| false);
        deltas.push(SpecDelta {
            spec: id.clone(),
            diff: between(base.as_deref(), &merged.text),
            touched: merged.touched,
            conflicts: merged.conflicts,
            renumbered: Vec::new(),
        });
    }
    deltas
}

/// Without the frontmatter, whose times and versions move by themselves.
fn between(before: Option<&str>, after: &str) -> LineDiff {
    let body = |text: &str| text[Outline::scan(text).body_start..].trim_start().to_owned();
    diff::markdown(&before.map(body).unwrap_or_default(), &body(after))
}
