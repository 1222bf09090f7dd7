//! A requirement that gets another number, and everything that refers to it.

use std::collections::BTreeMap;

use super::Sides;
use super::parts::{Parts, same_requirement};
use crate::document::{spec, tasks};
use crate::ids::{RequirementId, SpecId};
use crate::outline::Outline;
use crate::span::Span;

/// The new numbers of requirements, by their old ones.
pub type Renumbered = BTreeMap<RequirementId, RequirementId>;

/// The requirements that a change adds under an id which the main spec has given to
/// another one since, each with the next id that is free.
pub fn collisions(sides: &Sides<'_>) -> Renumbered {
    let (Some(base), Some(main)) = (sides.base, sides.main) else { return Renumbered::new() };
    let (base, main, change) = (Parts::of(base), Parts::of(main), Parts::of(sides.change));
    let front = spec::parse(sides.change).value;
    let numbers = [&base, &main, &change].into_iter().flat_map(Parts::requirements);
    let mut last = numbers
        .map(|(id, _)| id)
        .chain(front.removes)
        .chain(front.renames.into_keys())
        .map(RequirementId::number)
        .max()
        .unwrap_or(0);
    let mut renumbered = Renumbered::new();
    for (id, part) in change.requirements() {
        let Some(other) = main.requirement(id).filter(|_| base.requirement(id).is_none()) else {
            continue;
        };
        let same = change.title_of(part) == main.title_of(other)
            && same_requirement(change.body_of(part), main.body_of(other));
        if same || renumbered.contains_key(&id) {
            continue;
        }
        last = last.saturating_add(1);
        renumbered.extend(id.with_number(last).map(|free| (id, free)));
    }
    renumbered
}

/// The text of the spec of a change, with other numbers: `R5` and `auth-flow:R5`
/// follow, `other-spec:R5` does not. The frontmatter speaks of the main spec and stays.
pub fn renumber_spec(text: &str, spec: &SpecId, renumbered: &Renumbered) -> String {
    let body = Outline::scan(text).body(text);
    replaced(text, spec, renumbered, |_| Some(body))
}

/// Any other text of the change: only `auth-flow:R5` follows.
pub fn renumber_references(text: &str, spec: &SpecId, renumbered: &Renumbered) -> String {
    replaced(text, spec, renumbered, |_| None)
}

/// The tasks of the change: `auth-flow:R5` follows everywhere, `R5` in tasks that are
/// about this spec only.
pub fn renumber_tasks(text: &str, spec: &SpecId, renumbered: &Renumbered) -> String {
    let mut tasks = tasks::parse(text).value.tasks;
    tasks.sort_by_key(|task| task.place.0.start);
    let starts: Vec<usize> = tasks.iter().map(|task| task.place.0.start).collect();
    let about: Vec<Span> = tasks
        .iter()
        .enumerate()
        .filter(|(_, task)| {
            !task.spec_refs.is_empty() && task.spec_refs.iter().all(|r| r.spec == *spec)
        })
        .map(|(i, task)| {
            let end = starts.get(i + 1).copied().unwrap_or(text.len());
            Span::new(task.place.0.start, end)
        })
        .collect();
    replaced(text, spec, renumbered, |at| {
        let behind = about.partition_point(|span| span.start <= at);
        behind.checked_sub(1).map(|i| about[i])
    })
}

/// Replaces numbers; `bare` says in which part around a place `R5` alone is meant.
fn replaced(
    text: &str,
    spec: &SpecId,
    renumbered: &Renumbered,
    bare: impl Fn(usize) -> Option<Span>,
) -> String {
    if renumbered.is_empty() {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len() + 16);
    let mut copied = 0;
    let mut from = 0;
    while let Some(found) = memchr::memchr2(b'R', b'r', &bytes[from..]) {
        let at = from + found;
        let digits = bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        let end = at + 1 + digits;
        from = end;
        let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'-' || *b >= 0x80;
        if digits == 0 || bytes.get(end).is_some_and(word) {
            continue;
        }
        // With a prefix, as in `WF-R5`, it is another id than `R5`.
        let letters =
            |at: usize| bytes[..at].iter().rev().take_while(|b| b.is_ascii_alphanumeric());
        let start = match bytes[..at].last() {
            Some(b'-') => at - 1 - letters(at - 1).count(),
            _ => at,
        };
        if start > 0 && word(&bytes[start - 1]) {
            continue;
        }
        let Some(new) = text[start..end].parse().ok().and_then(|id| renumbered.get(&id)) else {
            continue;
        };
        let meant = match qualifier(&text[..start]) {
            Some(name) => name == spec.as_str(),
            None => bare(start).is_some_and(|span| span.range().contains(&start)),
        };
        if meant {
            out.push_str(&text[copied..=at]);
            out.push_str(&new.number().to_string());
            copied = end;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// The name in front of a number, as in `auth-flow:R5`.
fn qualifier(before: &str) -> Option<&str> {
    let name = before.strip_suffix([':', '#'])?;
    let slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let own = &name[name.trim_end_matches(slug).len()..];
    (!own.is_empty()).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let spec = SpecId::new("auth-flow").unwrap();
        let id = |n| RequirementId::new(n).unwrap();
        let map = Renumbered::from([(id(5), id(7)), (id(6), id(8))]);
        assert_eq!(renumber_spec(text, &spec, &map), expected);
    }

    #[test]
    fn references_follow_renumbering() {
        check("### R5: a\n\nSee R6, (R5) and r5.", "### R7: a\n\nSee R8, (R7) and r7.");
        check("auth-flow:R5, other:R5, auth-flow#R6.", "auth-flow:R7, other:R5, auth-flow#R8.");
        check("R50 R5a OR5 R5-x éR5 R5é R5_", "R50 R5a OR5 R5-x éR5 R5é R5_");
        check("---\nremoves: [R5]\n---\nR5", "---\nremoves: [R5]\n---\nR7");
        check("R05 R R5", "R05 R R7");
    }

    #[test]
    fn prefixes_stay_and_keep_ids_apart() {
        let spec = SpecId::new("auth-flow").unwrap();
        let id = |text: &str| text.parse::<RequirementId>().unwrap();
        let map = Renumbered::from([(id("WF-R5"), id("WF-R7"))]);
        let check = |text: &str, expected: &str| {
            assert_eq!(renumber_spec(text, &spec, &map), expected);
        };
        check("### WF-R5: a\n\nSee R5, wf-r5, XWF-R5.", "### WF-R7: a\n\nSee R5, wf-r7, XWF-R5.");
        check("auth-flow:WF-R5, other:WF-R5, A-WF-R5", "auth-flow:WF-R7, other:WF-R5, A-WF-R5");
    }

    #[test]
    fn only_tasks_of_the_spec_know_a_bare_number() {
        let spec = SpecId::new("auth-flow").unwrap();
        let map =
            Renumbered::from([(RequirementId::new(5).unwrap(), RequirementId::new(7).unwrap())]);
        let text = "# Tasks: x\n\nR5\n\n## 1. Data Layer\n\n### Task 1.1: A\n\n```yaml\nid: \"1.1\"\n\
                    spec_ref: \"auth-flow:R5\"\n```\n\nDo R5.\n\n### Task 1.2: B\n\n```yaml\nid: \
                    \"1.2\"\nspec_ref: [\"auth-flow:R5\", \"b:R5\"]\n```\n\nDo R5.\n";
        let expected = text.replace("auth-flow:R5", "auth-flow:R7").replacen("Do R5", "Do R7", 1);
        assert_eq!(renumber_tasks(text, &spec, &map), expected);
        assert_eq!(renumber_references("R5 auth-flow:R5", &spec, &map), "R5 auth-flow:R7");
    }
}
