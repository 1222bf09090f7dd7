//! `agentd/specs/CHANGELOG.md`: what was archived, newest first. People may write into it.

use std::fmt::Write as _;

use serde::Serialize;

use super::end_with_one_newline;
use crate::frontmatter::newline_of;
use crate::ids::{ChangeId, RequirementId, SpecId};
use crate::outline::Outline;
use crate::text::{Line, escape};

const HEADING: &str =
    "# Changelog\n\nWhat archived changes have done to the specs, newest first.\n";

/// What a change does to a main spec.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Touched {
    /// Whether the spec is new.
    pub created: bool,
    /// Requirements that come in.
    pub added: Vec<RequirementId>,
    /// Requirements whose text or scenarios change.
    pub edited: Vec<RequirementId>,
    /// Requirements that leave.
    pub removed: Vec<RequirementId>,
    /// Requirements that get another title.
    pub renamed: Vec<RequirementId>,
    /// Other pieces that come in or change: scenarios and sections.
    pub other: Vec<String>,
}

impl Touched {
    /// Whether the main spec stays as it is.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The entry of a change.
pub fn entry(date: &str, change: &ChangeId, summary: &Line, specs: &[(SpecId, Touched)]) -> String {
    let mut out = format!("## {date}: {change}\n\n");
    if !summary.is_empty() {
        let _ = write!(out, "{}\n\n", escape(summary.as_str()));
    }
    for (spec, touched) in specs {
        let mut parts: Vec<String> = Vec::new();
        let lists = [
            ("added", &touched.added),
            ("edited", &touched.edited),
            ("removed", &touched.removed),
            ("renamed", &touched.renamed),
        ];
        if touched.created {
            parts.push("new".to_owned());
        }
        for (verb, ids) in lists {
            if !ids.is_empty() {
                let ids: Vec<String> = ids.iter().map(RequirementId::to_string).collect();
                parts.push(format!("{verb} {}", ids.join(", ")));
            }
        }
        if !touched.other.is_empty() {
            let names: Vec<String> =
                touched.other.iter().map(|name| Line::new(name).to_string()).collect();
            parts.push(format!("changed {}", names.join(", ")));
        }
        if !parts.is_empty() {
            let _ = writeln!(out, "- `{spec}`: {}", parts.join("; "));
        }
    }
    end_with_one_newline(out)
}

/// The text with an entry in front of all others.
pub fn add(text: Option<&str>, entry: &str) -> String {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
        return format!("{HEADING}\n{entry}");
    };
    let newline = newline_of(text);
    let entry = entry.replace('\n', newline);
    let outline = Outline::scan(text);
    let first = outline.sections(text, 2, outline.body(text)).first().map(|s| s.span.start);
    match first {
        Some(at) => format!("{}{entry}{newline}{}", &text[..at], &text[at..]),
        None => format!("{}{newline}{newline}{entry}", text.trim_end()),
    }
}

/// The text without an entry; none where the entry does not stand there as it was written.
pub fn remove(text: &str, entry: &str) -> Option<String> {
    let newline = newline_of(text);
    let entry = entry.replace('\n', newline);
    let at = text.find(&entry)?;
    let (before, after) = (&text[..at], &text[at + entry.len()..]);
    let after = after.strip_prefix(newline).unwrap_or(after);
    let rest = format!("{before}{after}");
    Some(if after.is_empty() { format!("{}{newline}", before.trim_end()) } else { rest })
}

/// Two versions of a changelog, each with entries of its own, in one; none if both have edited the
/// same. What a person has written between entries belongs to the entry above it.
pub fn merge(base: &str, ours: &str, theirs: &str) -> Option<String> {
    let [base, ours, theirs] = [base, ours, theirs].map(Entries::of);
    // Where each side has created the file, there is no base.
    let heading = match base.heading.trim() {
        old if old == theirs.heading.trim() || theirs.heading.trim() == ours.heading.trim() => {
            ours.heading
        }
        old if old == ours.heading.trim() => theirs.heading,
        _ => return None,
    };
    let has = |side: &Entries<'_>, entry: &str| side.entries.contains(&entry);
    let kept = ours.entries.iter().filter(|it| has(&theirs, it) || !has(&base, it));
    let came = theirs.entries.iter().filter(|it| !has(&ours, it) && !has(&base, it));
    let (old, mut new): (Vec<&str>, Vec<&str>) =
        kept.chain(came).copied().partition(|it| has(&base, it));
    let title = |entry: &str| entry.lines().next().unwrap_or_default().to_owned();
    // An entry that both sides have edited is there twice.
    let mut titles: Vec<String> = new.iter().chain(&old).map(|entry| title(entry)).collect();
    titles.sort_unstable();
    if titles.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    new.sort_by_key(|entry| std::cmp::Reverse(title(entry)));
    let newline = newline_of(heading);
    let texts = new.iter().chain(&old).map(|entry| entry.trim_end());
    let mut out = heading.trim_end().to_owned();
    for text in texts {
        out.push_str(&newline.repeat(2));
        out.push_str(text);
    }
    out.push_str(newline);
    Some(out)
}

/// A changelog in pieces.
struct Entries<'t> {
    heading: &'t str,
    entries: Vec<&'t str>,
}

impl<'t> Entries<'t> {
    fn of(text: &'t str) -> Self {
        let outline = Outline::scan(text);
        let sections = outline.sections(text, 2, outline.body(text));
        let first = sections.first().map_or(text.len(), |section| section.span.start);
        let entries = sections.iter().map(|section| text[section.span.range()].trim_end());
        Self { heading: &text[..first], entries: entries.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_of(change: &str) -> String {
        let id = |n| RequirementId::new(n).unwrap();
        let touched = Touched {
            added: vec![id(5), id(6)],
            removed: vec![id(3)],
            other: vec!["scenario \"x\"".to_owned()],
            ..Touched::default()
        };
        let specs = [("auth-flow".parse().unwrap(), touched)];
        entry("2026-11-15", &change.parse().unwrap(), &Line::new("Add OAuth."), &specs)
    }

    #[test]
    fn entries_of_both_sides_come_together() {
        let base = add(None, &entry_of("one"));
        let [ours, theirs] = ["two", "three"].map(|id| add(Some(&base), &entry_of(id)));
        let both = add(Some(&add(Some(&base), &entry_of("three"))), &entry_of("two"));
        assert_eq!(merge(&base, &ours, &theirs).unwrap(), both);
        assert_eq!(merge(&base, &theirs, &ours).unwrap(), both, "in either order");
        let [first, second] = ["two", "three"].map(|id| add(None, &entry_of(id)));
        let created = add(Some(&second), &entry_of("two"));
        assert_eq!(merge("", &first, &second).unwrap(), created, "each has created it");
        // One that is removed stays so.
        let without = remove(&ours, &entry_of("one")).unwrap();
        let merged = merge(&base, &without, &theirs).unwrap();
        assert_eq!(merged, remove(&both, &entry_of("one")).unwrap());
        // Both have edited the same.
        let [a, b] = ["a", "b"].map(|by| base.replace("Add OAuth", &format!("Add {by}")));
        assert_eq!(merge(&base, &a, &b), None);
        assert_eq!(merge(&base, &a, &base).unwrap(), a);
        let [a, b] = ["a", "b"].map(|by| base.replace("newest first", by));
        assert_eq!(merge(&base, &a, &b), None);
    }

    #[test]
    fn entries_are_newest_first_and_are_removed_whole() {
        let one = add(None, &entry_of("one"));
        let expected = "# Changelog\n\nWhat archived changes have done to the specs, newest first.\n\n\
                        ## 2026-11-15: one\n\nAdd OAuth.\n\n- `auth-flow`: added R5, R6; removed R3; \
                        changed scenario \"x\"\n";
        assert_eq!(one, expected);
        let two = add(Some(&one), &entry_of("two"));
        assert!(two.find(": two").unwrap() < two.find(": one").unwrap(), "{two}");
        assert_eq!(remove(&two, &entry_of("two")).unwrap(), one);
        let left = remove(&two, &entry_of("one")).unwrap();
        assert_eq!(left, add(None, &entry_of("two")));
        assert_eq!(remove(&two, &entry_of("three")), None);
    }

    #[test]
    fn hand_written_changelogs_keep_their_text_and_line_ends() {
        let mine = "Mine.\r\n\r\n## 1.0\r\n\r\nx\r\n";
        let with = add(Some(mine), &entry_of("one"));
        assert!(with.starts_with("Mine.\r\n\r\n## 2026-11-15: one\r\n\r\n"), "{with:?}");
        assert!(with.ends_with("\r\n\r\n## 1.0\r\n\r\nx\r\n"), "{with:?}");
        assert_eq!(remove(&with, &entry_of("one")).unwrap(), mine);
        assert!(add(Some("Mine."), &entry_of("one")).starts_with("Mine.\n\n## 2026"));
    }
}
