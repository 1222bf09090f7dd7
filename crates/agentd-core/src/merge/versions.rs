//! Two versions of a main spec, as git merges or rebases them: block by block instead of line by line.
//!
//! Each side has archived changes of its own, so both have edited the version in the frontmatter, and
//! both may have added a requirement under the next number. Neither is a disagreement. What is one
//! (both have edited the same block) is left to git and to a person.

use std::collections::{BTreeMap, BTreeSet};

use super::Sides;
use super::renumber::{collisions, renumber_spec};
use crate::document::spec::{self, requirement_heading};
use crate::frontmatter::{self, newline_of};
use crate::ids::SpecId;
use crate::outline::Outline;

/// Three versions of a main spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// The one that both sides began with; empty if each has created the spec.
    pub base: String,
    /// The one that is merged into.
    pub ours: String,
    /// The one that is merged.
    pub theirs: String,
}

impl Versions {
    /// The same with what is no disagreement out of the way: version and time are those of the
    /// result, and requirements that both have added under one number have two.
    #[must_use]
    pub fn settled(&self, spec: &SpecId) -> Self {
        let parsed = [&self.base, &self.ours, &self.theirs].map(|text| spec::parse(text).value);
        let [base, ours, theirs] = &parsed;
        let both = self.ours != self.theirs
            && ours.version != base.version
            && theirs.version != base.version;
        let version = ours.version.max(theirs.version).saturating_add(u32::from(both));
        let updated = ours.updated_at.max(theirs.updated_at);
        let set = |text: &str| {
            let text = frontmatter::set(text, "version", &version.to_string());
            let text = text.unwrap_or_default();
            let time = updated.map(|at| frontmatter::set(&text, "updated_at", &at.to_string()));
            time.and_then(Result::ok).unwrap_or(text)
        };
        let level = |text: &str, has: bool| if has { set(text) } else { text.to_owned() };
        let has = |index: usize| parsed[index].place.has_frontmatter.0;
        let theirs = level(&self.theirs, has(2));
        let sides = Sides { base: Some(&self.base), main: Some(&self.ours), change: &self.theirs };
        let theirs = renumber_spec(&theirs, spec, &collisions(&sides));
        Self { base: level(&self.base, has(0)), ours: level(&self.ours, has(1)), theirs }
    }

    /// The merged text; none if both sides have edited the same block. To be asked of versions that
    /// are [settled](Self::settled).
    pub fn merge(&self) -> Option<String> {
        let [base, ours, theirs] =
            [&self.base, &self.ours, &self.theirs].map(|text| Blocks::of(text));
        let mut merged: Vec<&str> = Vec::new();
        for key in order(&ours, &theirs) {
            let [base, ours, theirs] = [&base, &ours, &theirs].map(|blocks| blocks.get(key));
            let same =
                |a: Option<&str>, b: Option<&str>| a.map(str::trim_end) == b.map(str::trim_end);
            let chosen = if same(ours, theirs) || same(theirs, base) {
                ours
            } else if same(ours, base) {
                theirs
            } else {
                return None;
            };
            merged.extend(chosen);
        }
        Some(joined(&merged, newline_of(&self.ours)))
    }
}

/// A text in blocks: the frontmatter with what is in front of the first heading, and each heading of
/// level 2 to 4 with what follows it.
struct Blocks<'t> {
    keys: Vec<String>,
    texts: BTreeMap<String, &'t str>,
}

impl<'t> Blocks<'t> {
    fn of(text: &'t str) -> Self {
        let outline = Outline::scan(text);
        let headings: Vec<_> =
            outline.headings.iter().filter(|heading| (2..=4).contains(&heading.level)).collect();
        let first = headings.first().map_or(text.len(), |heading| heading.span.start);
        let mut blocks = Self { keys: Vec::new(), texts: BTreeMap::new() };
        blocks.push("", &text[..first]);
        let mut above: Vec<(u8, String)> = Vec::new();
        for (index, heading) in headings.iter().enumerate() {
            let title = &text[heading.title.range()];
            // A requirement may get another title.
            let name = match requirement_heading(title) {
                Some((id, _)) => id.to_string(),
                None => title.trim().to_lowercase(),
            };
            above.retain(|(level, _)| *level < heading.level);
            above.push((heading.level, name));
            let names: Vec<&str> = above.iter().map(|(_, name)| &**name).collect();
            let end = headings.get(index + 1).map_or(text.len(), |next| next.span.start);
            blocks.push(&names.join("\n"), &text[heading.span.start..end]);
        }
        blocks
    }

    /// The second block of the same name is another one.
    fn push(&mut self, key: &str, text: &'t str) {
        let mut unique = key.to_owned();
        let mut number = 1;
        while self.texts.contains_key(&unique) {
            number += 1;
            unique = format!("{key}\n\n{number}");
        }
        self.keys.push(unique.clone());
        self.texts.insert(unique, text);
    }

    fn get(&self, key: &str) -> Option<&'t str> {
        self.texts.get(key).copied()
    }
}

/// The blocks of both sides: ours in their order, and each that only they have after the one that
/// it follows there and those that we have added in the same place.
fn order<'b>(ours: &'b Blocks<'_>, theirs: &'b Blocks<'_>) -> Vec<&'b str> {
    let mut keys: Vec<&str> = ours.keys.iter().map(String::as_str).collect();
    let mut known: BTreeSet<&str> = keys.iter().copied().collect();
    let mut at = 0;
    for key in &theirs.keys {
        if known.insert(key) {
            // Behind everything that belongs to the same heading, so that numbers go up.
            let above = key.rsplit_once('\n').map_or("", |(above, _)| above);
            let belongs = |other: &str| {
                !theirs.texts.contains_key(other) && !above.is_empty() && other.starts_with(above)
            };
            while keys.get(at + 1).is_some_and(|next| belongs(next)) {
                at += 1;
            }
            at += 1;
            keys.insert(at.min(keys.len()), key);
        } else if let Some(place) = keys.iter().position(|other| other == key) {
            at = place;
        }
    }
    keys
}

/// Blocks, with one empty line between those that come from different sides.
fn joined(blocks: &[&str], newline: &str) -> String {
    let mut text = String::new();
    for (index, block) in blocks.iter().enumerate() {
        if index + 1 == blocks.len() {
            text.push_str(block.trim_end());
            text.push_str(newline);
        } else if block.ends_with(&newline.repeat(2)) || block.is_empty() {
            text.push_str(block);
        } else {
            text.push_str(block.trim_end());
            text.push_str(&newline.repeat(2));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(version: u32, requirements: &[&str]) -> String {
        let requirements: String =
            requirements.iter().map(|it| format!("### {it}\n\nIt MUST be so: {it}.\n\n")).collect();
        format!(
            "---\nid: login\ntype: spec\ntitle: Login\nversion: {version}\n\
             created_at: 2026-11-01T00:00:00Z\nupdated_at: 2026-11-0{version}T00:00:00Z\n---\n\n\
             # Specification: Login\n\n## Overview\n\nLogin.\n\n## Requirements\n\n{requirements}\
             ## Acceptance Criteria\n\n### Scenario: It works\n\n- **WHEN** a\n- **THEN** b\n"
        )
    }

    fn merged(base: &str, ours: &str, theirs: &str) -> Option<String> {
        let [base, ours, theirs] = [base, ours, theirs].map(str::to_owned);
        Versions { base, ours, theirs }.settled(&SpecId::new("login").unwrap()).merge()
    }

    #[test]
    fn both_sides_come_together_in_either_order() {
        let base = version(1, &["R1: a", "R2: b"]);
        for (ours, theirs, expected) in [
            // Each adds one under the next number.
            (
                vec!["R1: a", "R2: b", "R3: c"],
                vec!["R1: a", "R2: b", "R3: d"],
                "R1: a|R2: b|R3: c|R4: d",
            ),
            // One edits what the other leaves.
            (vec!["R1: A", "R2: b"], vec!["R1: a", "R2: B"], "R1: A|R2: B"),
            (vec!["R1: a"], vec!["R1: A", "R2: b"], "R1: A"),
            (vec!["R1: a", "R2: b", "R3: c"], vec!["R2: b"], "R2: b|R3: c"),
        ] {
            let text = merged(&base, &version(2, &ours), &version(2, &theirs)).unwrap();
            let expected: Vec<&str> = expected.split('|').collect();
            assert_eq!(text, version(3, &expected).replace("-03T", "-02T"));
        }
    }

    #[test]
    fn a_new_number_keeps_the_prefix_of_its_id() {
        let base = version(1, &["WF-R1: a"]);
        let [ours, theirs] = ["WF-R2: b", "WF-R2: c"].map(|it| version(2, &["WF-R1: a", it]));
        let text = merged(&base, &ours, &theirs).unwrap();
        let expected = version(3, &["WF-R1: a", "WF-R2: b", "WF-R3: c"]);
        assert_eq!(text, expected.replace("-03T", "-02T"));
    }

    #[test]
    fn a_disagreement_is_none_of_ours() {
        let base = version(1, &["R1: a", "R2: b"]);
        for (ours, theirs) in [
            (vec!["R1: A", "R2: b"], vec!["R1: AA", "R2: b"]),
            (vec!["R1: A", "R2: b"], vec!["R2: b"]),
        ] {
            assert_eq!(merged(&base, &version(2, &ours), &version(2, &theirs)), None);
            assert_eq!(merged(&base, &version(2, &theirs), &version(2, &ours)), None);
        }
    }

    #[test]
    fn one_side_alone_wins_as_it_is() {
        let base = version(1, &["R1: a"]);
        let other = version(2, &["R1: a", "R2: b"]);
        assert_eq!(merged(&base, &base, &other).unwrap(), other);
        assert_eq!(merged(&base, &other, &base).unwrap(), other);
        assert_eq!(merged("", &other, &other).unwrap(), other);
    }

    #[test]
    fn what_is_no_spec_is_not_lost() {
        for (base, ours, theirs) in
            [("", "a", "b"), ("a", "", "b"), ("", "", ""), ("---\n", "x", "---\n")]
        {
            let _ = merged(base, ours, theirs);
        }
        assert_eq!(merged("", "a\n", "b\n"), None);
    }
}
