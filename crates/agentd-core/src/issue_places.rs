//! Where an issue of a review points, and what was seen to change there.
//!
//! A revision is logged issue by issue. Nobody but the next reviewer can say whether an issue is
//! fixed; what can be said is whether the place that it names is another one now.

use std::collections::BTreeSet;

use crate::document::spec::Requirement;
use crate::documents::Documents;
use crate::ids::{RequirementId, SpecId, SpecRef, TaskId};
use crate::layout::{self, ChangeFile};

/// A part of a plan that an issue names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A document.
    File(ChangeFile),
    /// A requirement of a spec.
    Requirement(SpecId, RequirementId),
    /// A task.
    Task(TaskId),
}

impl Place {
    /// The document that it is in.
    pub fn file(&self) -> ChangeFile {
        match self {
            Self::File(file) => file.clone(),
            Self::Requirement(spec, _) => ChangeFile::Spec(spec.clone()),
            Self::Task(_) => ChangeFile::Tasks,
        }
    }
}

/// The parts of a plan that the location of an issue names.
pub fn named(location: &str, documents: &Documents) -> Vec<Place> {
    places(location, documents, documents).into_iter().collect()
}

/// What an issue names and how that has changed, in words; and the files that it names.
pub fn seen(location: &str, before: &Documents, after: &Documents) -> (String, Vec<ChangeFile>) {
    let changed = after.changed_since(before);
    let places = places(location, before, after);
    let has_changed = |file: &ChangeFile| {
        let verb = if changed.contains(file) { "has changed" } else { "has not changed" };
        format!("{} {verb}", file.path())
    };
    let mut words: Vec<String> = places
        .iter()
        .map(|place| match place {
            Place::File(file) => has_changed(file),
            Place::Task(_) => has_changed(&ChangeFile::Tasks),
            Place::Requirement(spec, id)
                if requirement(before, spec, *id) != requirement(after, spec, *id) =>
            {
                format!("{spec}:{id} has changed")
            }
            Place::Requirement(spec, id) => {
                let file = has_changed(&ChangeFile::Spec(spec.clone()));
                format!("{spec}:{id} has not changed ({file})")
            }
        })
        .collect();
    // Two tasks are in one document.
    words.dedup();
    let files = places.iter().map(Place::file);
    let words = if words.is_empty() {
        "it names no document of the plan".to_owned()
    } else {
        words.join("; ")
    };
    (words, files.collect())
}

fn requirement<'d>(
    documents: &'d Documents,
    spec: &SpecId,
    id: RequirementId,
) -> Option<&'d Requirement> {
    let spec = documents.specs.get(spec)?.value_if_there()?;
    spec.requirements.iter().find(|requirement| requirement.id == id)
}

/// The parts of the plan that a location names: `auth-flow:R1`, `specs/auth-flow.md`, `tasks.md:12`,
/// `task 2.1`.
fn places(location: &str, before: &Documents, after: &Documents) -> BTreeSet<Place> {
    let is_spec = |id: &SpecId| before.specs.contains_key(id) || after.specs.contains_key(id);
    let dir = format!("{}/", layout::change_dir(&before.id));
    let words = location.split(|c: char| c.is_whitespace() || ",;()[]`\"'".contains(c));
    let place = |word: &str| {
        let word = word.trim_matches(['.', ':']);
        let word = word.strip_prefix(&dir).unwrap_or(word);
        if let Some((path, _)) = word.split_once(".md") {
            let name = path.strip_prefix("specs/").unwrap_or(path);
            return match path {
                "proposal" => Some(Place::File(ChangeFile::Proposal)),
                "tasks" => Some(Place::File(ChangeFile::Tasks)),
                _ => SpecId::new(name).ok().filter(&is_spec).map(ChangeFile::Spec).map(Place::File),
            };
        }
        if let Ok(task) = word.parse::<TaskId>() {
            return Some(Place::Task(task));
        }
        let spec_ref: SpecRef = word.parse().ok()?;
        match (is_spec(&spec_ref.spec), spec_ref.requirement, word) {
            (true, Some(id), _) => Some(Place::Requirement(spec_ref.spec, id)),
            (true, None, _) => Some(Place::File(ChangeFile::Spec(spec_ref.spec))),
            (false, None, "proposal") => Some(Place::File(ChangeFile::Proposal)),
            (false, None, "tasks") => Some(Place::File(ChangeFile::Tasks)),
            (false, ..) => None,
        }
    };
    words.filter(|word| !word.is_empty()).filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::Source;
    use crate::ids::ChangeId;

    fn documents(spec: &str, tasks: &str) -> Documents {
        let text = |text: &str| Source::Text(text.to_owned());
        let texts = [
            (ChangeFile::Proposal, text("# Change: a\n")),
            (ChangeFile::Spec("auth-flow".parse().unwrap()), text(spec)),
            (ChangeFile::Tasks, text(tasks)),
        ];
        Documents::read(ChangeId::new("a").unwrap(), texts)
    }

    #[test]
    fn what_an_issue_names_is_looked_at_and_nothing_else() {
        let before = documents("## Requirements\n### R1: A\nx\n### R2: B\ny\n", "- [ ] 1.1 a\n");
        let after = documents("## Requirements\n### R1: A\nz\n### R2: B\ny\n", "- [ ] 1.1 a\n");
        for (location, expected) in [
            ("auth-flow:R1", "auth-flow:R1 has changed"),
            ("auth-flow:R2", "auth-flow:R2 has not changed (specs/auth-flow.md has changed)"),
            ("auth-flow:R9", "auth-flow:R9 has not changed (specs/auth-flow.md has changed)"),
            ("`specs/auth-flow.md`, line 4", "specs/auth-flow.md has changed"),
            ("agentd/changes/a/specs/auth-flow.md:12", "specs/auth-flow.md has changed"),
            ("auth-flow.md", "specs/auth-flow.md has changed"),
            (
                "tasks.md:3 and proposal.md.",
                "proposal.md has not changed; tasks.md has not changed",
            ),
            ("task 1.1", "tasks.md has not changed"),
            ("user-model:R1", "it names no document of the plan"),
            ("src/main.rs", "it names no document of the plan"),
            ("", "it names no document of the plan"),
            (".md .. ::: 1.", "it names no document of the plan"),
        ] {
            assert_eq!(seen(location, &before, &after).0, expected, "{location}");
        }
    }
}
