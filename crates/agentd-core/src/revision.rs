//! What a revision has changed in a plan, requirement by requirement, and which finished tasks that
//! concerns (W2).

use std::collections::BTreeMap;

use crate::document::proposal;
use crate::document::round::{self, Round};
use crate::document::spec::{self, Requirement, Scenario, Spec};
use crate::document::tasks::{self, Task};
use crate::documents::Documents;
use crate::ids::{SpecId, SpecRef, TaskId};
use crate::layout::ChangeFile;
use crate::rel_path::RelPath;
use crate::text::Prose;

/// How two versions of a plan differ.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanChanges {
    /// What differs in the specs, and how. A reference without a requirement is about everything in
    /// the spec.
    pub specs: Vec<(SpecRef, Difference)>,
    /// Tasks that were not in the earlier version, or were different.
    tasks: Vec<TaskId>,
    /// Tasks that are gone.
    removed_tasks: Vec<TaskId>,
    /// What else is different, in words.
    others: Vec<String>,
}

/// How a part of a plan differs from an earlier version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// It is new.
    Added,
    /// It has another text.
    Changed,
    /// It is gone.
    Removed,
}

impl Difference {
    /// What happened to it, as the end of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Added => "was added",
            Self::Changed => "has changed",
            Self::Removed => "was removed",
        }
    }
}

impl PlanChanges {
    /// Compares the plan as a round of review saw it with the plan as it is now.
    pub fn between(earlier: &Round, now: &Documents) -> Self {
        let mut before: BTreeMap<SpecId, Spec> = earlier
            .files
            .iter()
            .filter_map(|(path, text)| match ChangeFile::from_path(&RelPath::new(path).ok()?)? {
                ChangeFile::Spec(id) => Some((id, spec::parse(text).value)),
                _ => None,
            })
            .collect();
        let (mut specs, mut others) = (Vec::new(), Vec::new());
        let proposal = earlier.files.get(ChangeFile::Proposal.path().as_str());
        let proposal_now = now.proposal.text().map(proposal::reviewed_text);
        if proposal.map(|text| text.trim_end()) != proposal_now.as_deref().map(str::trim_end) {
            others.push("proposal.md has changed".to_owned());
        }
        for (id, now) in now.planned_specs() {
            let known = before.remove(id);
            if let Some(before) = &known {
                let about = |spec: &Spec| (spec.title.clone(), spec.overview.clone());
                if about(before) != about(now) || before.flow != now.flow {
                    others.push(format!("the title, overview or flow of {id} has changed"));
                }
            }
            let path = ChangeFile::Spec(id.clone()).path().to_string();
            match (earlier.main_edits.get(&path), round::main_edits(now)) {
                (before, now) if before == now.as_ref() => {}
                (_, Some(now)) => others.push(format!("{id} now {now} in the main spec")),
                (_, None) => others.push(format!("{id} no longer edits the main spec")),
            }
            compare(id, &known.unwrap_or_default(), now, &mut specs);
        }
        for (id, before) in &before {
            compare(id, before, &Spec::default(), &mut specs);
        }
        let tasks = earlier.files.get(ChangeFile::Tasks.path().as_str());
        let known = tasks.map(|text| tasks::parse(text).value).unwrap_or_default();
        let tasks = now.tasks.value().tasks.iter();
        let is_other = |task: &&Task| {
            let old = known.get(task.id).map(tasks::reviewed_text);
            old != Some(tasks::reviewed_text(task))
        };
        let gone = |task: &&Task| now.tasks.value().get(task.id).is_none();
        Self {
            specs,
            tasks: tasks.filter(is_other).map(|task| task.id).collect(),
            removed_tasks: known.tasks.iter().filter(gone).map(|task| task.id).collect(),
            others,
        }
    }

    /// What is different, a line each.
    pub fn lines(&self) -> Vec<String> {
        let others = self.others.iter().cloned();
        let specs = self.specs.iter().map(|(what, how)| format!("{what} {}", how.words()));
        let tasks = self.tasks.iter().map(|id| format!("task {id} is new or has changed"));
        let removed = self.removed_tasks.iter().map(|id| format!("task {id} was removed"));
        others.chain(specs).chain(tasks).chain(removed).collect()
    }

    /// Why a task that was done for the earlier plan is not done for this one, if so.
    pub fn reopens(&self, task: &Task) -> Option<String> {
        if self.tasks.contains(&task.id) {
            return Some("the task has changed".to_owned());
        }
        let concerns = |changed: &SpecRef, wanted: &SpecRef| {
            let whole = changed.requirement.is_none() || wanted.requirement.is_none();
            changed.spec == wanted.spec && (whole || changed.requirement == wanted.requirement)
        };
        let found = self
            .specs
            .iter()
            .find(|(changed, _)| task.spec_refs.iter().any(|wanted| concerns(changed, wanted)));
        found.map(|(changed, how)| format!("{changed} {}", how.words()))
    }
}

fn compare(id: &SpecId, before: &Spec, now: &Spec, into: &mut Vec<(SpecRef, Difference)>) {
    fn find<'s>(spec: &'s Spec, wanted: &Requirement) -> Option<&'s Requirement> {
        spec.requirements.iter().find(|it| it.id == wanted.id)
    }
    // These belong to no single requirement.
    fn shared(spec: &Spec) -> (&[Scenario], &Prose, &Prose) {
        (&spec.scenarios, &spec.interfaces, &spec.data_model)
    }
    let of =
        |requirement: &Requirement| SpecRef { spec: id.clone(), requirement: Some(requirement.id) };
    for requirement in &now.requirements {
        match find(before, requirement) {
            None => into.push((of(requirement), Difference::Added)),
            Some(old) if old != requirement => into.push((of(requirement), Difference::Changed)),
            Some(_) => {}
        }
    }
    for old in before.requirements.iter().filter(|old| find(now, old).is_none()) {
        into.push((of(old), Difference::Removed));
    }
    // Of a spec that is new or gone, the requirements say enough.
    let in_both = !before.requirements.is_empty() && !now.requirements.is_empty();
    if in_both && shared(before) != shared(now) {
        let whole = SpecRef { spec: id.clone(), requirement: None };
        into.push((whole, Difference::Changed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tasks::Status;
    use crate::documents::Source;
    use crate::ids::ChangeId;

    const PROPOSAL: &str = "# Change: x\n\n## Summary\n\nS.\n\n## Why\n\nW.\n\n## What Changes\n\n\
        - A\n\n## Impact\n\n- Affected specs: `a`, `b`\n";

    fn spec(two: &str, data: &str) -> String {
        format!(
            "# Specification: A\n\n## Overview\n\nO.\n\n## Requirements\n\n### R1: One\n\nOne MUST be.\n\n\
             #### Scenario: Yes\n\n- **WHEN** it is\n- **THEN** it is one\n\n{two}\n\
             ## Data Model\n\n{data}\n"
        )
    }

    const TWO: &str =
        "### R2: Two\n\nTwo MUST be.\n\n#### Scenario: No\n\n- **WHEN** x\n- **THEN** y\n";

    fn task(id: &str, refers: &str, status: &str) -> String {
        format!(
            "### Task {id}: Do {id}\n\n```yaml\nid: \"{id}\"\naction: CREATE\nfile: src/{id}\n\
             spec_ref: \"{refers}\"\ndepends_on: []\nstatus: {status}\n```\n\nDo it.\n\n"
        )
    }

    fn documents(a: &str, b: Option<&str>, tasks: &str) -> Documents {
        let tasks = format!("# Tasks: x\n\n## 2. Logic Layer\n\n{tasks}");
        let proposal =
            if b.is_some() { PROPOSAL.to_owned() } else { PROPOSAL.replace(", `b`", "") };
        let mut files = vec![
            (ChangeFile::Proposal, proposal),
            (ChangeFile::Spec(SpecId::new("a").unwrap()), a.to_owned()),
            (ChangeFile::Tasks, tasks),
        ];
        files.extend(b.map(|b| (ChangeFile::Spec(SpecId::new("b").unwrap()), b.to_owned())));
        let texts = files.into_iter().map(|(file, text)| (file, Source::Text(text)));
        Documents::read(ChangeId::new("x").unwrap(), texts)
    }

    fn found(changes: &PlanChanges) -> Vec<String> {
        changes.specs.iter().map(|(what, how)| format!("{what} {}", how.words())).collect()
    }

    // contract W2
    #[test]
    fn only_what_changed_is_open_again() {
        let tasks = |status: &str| {
            let lines = [("2.1", "a:R1"), ("2.2", "a:R2"), ("2.3", "b:R1"), ("2.4", "a")];
            lines.map(|(id, refers)| task(id, refers, status)).concat()
        };
        let b = spec("", "None.");
        let plan = |a: &str, tasks: &str| documents(a, Some(&b), tasks);
        let built = plan(&spec(TWO, "None."), &tasks("pending")).round();
        let reopened = |now: &Documents| -> Vec<String> {
            let changes = PlanChanges::between(&built, now);
            let all = now.tasks.value().tasks.iter();
            let done = all.filter(|task| task.status == Status::Done);
            done.filter_map(|task| Some(format!("{}: {}", task.id, changes.reopens(task)?)))
                .collect()
        };
        // Ticks, times and versions are no change.
        let same = plan(&spec(TWO, "None."), &tasks("done"));
        assert_eq!(found(&PlanChanges::between(&built, &same)), Vec::<String>::new());
        assert_eq!(reopened(&same), Vec::<String>::new());

        let edited = plan(&spec(&TWO.replace("Two MUST", "Three MUST"), "None."), &tasks("done"));
        assert_eq!(found(&PlanChanges::between(&built, &edited)), ["a:R2 has changed"]);
        assert_eq!(reopened(&edited), ["2.2: a:R2 has changed", "2.4: a:R2 has changed"]);

        let scenario =
            plan(&spec(&TWO.replace("**THEN** y", "**THEN** z"), "None."), &tasks("done"));
        assert_eq!(reopened(&scenario), ["2.2: a:R2 has changed", "2.4: a:R2 has changed"]);

        let removed = plan(&spec("", "None."), &tasks("done"));
        assert_eq!(found(&PlanChanges::between(&built, &removed)), ["a:R2 was removed"]);
        let added = TWO.replace("R2", "R3").replace("Two", "Three");
        let added = plan(&spec(&format!("{TWO}\n{added}"), "None."), &tasks("done"));
        assert_eq!(found(&PlanChanges::between(&built, &added)), ["a:R3 was added"]);
        assert_eq!(reopened(&added), ["2.4: a:R3 was added"]);

        let shared = plan(&spec(TWO, "A table."), &tasks("done"));
        assert_eq!(found(&PlanChanges::between(&built, &shared)), ["a has changed"]);
        assert_eq!(reopened(&shared).len(), 3, "the tasks of the other spec stay");

        let words = tasks("done").replacen("Do it.", "Do it well.", 1);
        assert_eq!(reopened(&plan(&spec(TWO, "None."), &words)), ["2.1: the task has changed"]);

        let dropped = documents(&spec(TWO, "None."), None, &tasks("done"));
        assert_eq!(found(&PlanChanges::between(&built, &dropped)), ["b:R1 was removed"]);
        assert_eq!(reopened(&dropped), ["2.3: b:R1 was removed"]);
    }
}
