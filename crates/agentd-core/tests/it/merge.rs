//! Merges of specs: a table of cases with their expected texts, and what holds for all.

use std::collections::BTreeMap;

use agentd_core::document::changelog::Touched;
use agentd_core::ids::RequirementId;
use agentd_core::merge::{self, Conflict, Merged, Sides};
use proptest::prelude::*;

const CASES: &str = include_str!("fixtures/merge.txt");

/// The parts of a case by their names; `absent` and `unknown` say that there is no text.
struct Case {
    name: String,
    parts: BTreeMap<String, String>,
}

impl Case {
    fn text(&self, name: &str) -> Option<&str> {
        self.parts.get(name).map(String::as_str)
    }

    fn base(&self) -> Option<&str> {
        match self.text("base") {
            None if self.parts.contains_key("base unknown") => None,
            None => Some(""),
            text => text,
        }
    }

    fn main(&self) -> Option<&str> {
        match self.text("main") {
            None if self.parts.contains_key("main absent") => None,
            None => self.text("base"),
            text => text,
        }
    }

    fn merge(&self) -> Merged {
        let change = self.text("change").unwrap();
        merge::spec(&Sides { base: self.base(), main: self.main(), change }, &|_| false)
    }
}

fn cases() -> Vec<Case> {
    let case = |text: &str| {
        let (name, rest) = text.split_once('\n').unwrap();
        let mut parts: BTreeMap<String, String> = BTreeMap::new();
        let mut current = String::new();
        for line in rest.lines() {
            match line.strip_prefix("--- ") {
                Some(part) => part.clone_into(&mut current),
                None => parts.entry(current.clone()).or_default().push_str(&format!("{line}\n")),
            }
            parts.entry(current.clone()).or_default();
        }
        // The blank line in front of the next case belongs to none.
        for text in parts.values_mut().filter(|text| text.ends_with("\n\n")) {
            text.pop();
        }
        Case { name: name.to_owned(), parts }
    };
    CASES.split("\n=== ").skip(1).map(case).collect()
}

fn shown(touched: &Touched) -> String {
    let mut words = Vec::new();
    if touched.created {
        words.push("new".to_owned());
    }
    let lists = [
        ('+', &touched.added),
        ('~', &touched.edited),
        ('-', &touched.removed),
        ('>', &touched.renamed),
    ];
    for (sign, ids) in lists {
        words.extend(ids.iter().map(|id| format!("{sign}{id}")));
    }
    words.join(" ")
}

fn named(conflict: &Conflict) -> String {
    let kind = format!("{:?}", conflict.kind);
    let mut snake = String::new();
    for (i, c) in kind.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    format!("{} {snake}\n", conflict.what)
}

#[test]
fn every_case_of_the_table_merges_as_written() {
    let cases = cases();
    assert!(cases.len() >= 40, "{}", cases.len());
    for case in &cases {
        let merged = case.merge();
        let conflicts: String = merged.conflicts.iter().map(named).collect();
        assert_eq!(conflicts, case.text("conflict").unwrap_or_default(), "{}", case.name);
        if let Some(expected) = case.text("expect") {
            assert_eq!(merged.text, expected, "{}", case.name);
        }
        if let Some(expected) = case.text("touched") {
            assert_eq!(shown(&merged.touched), expected.trim(), "{}", case.name);
        }
    }
}

#[test]
fn every_case_with_other_line_ends_keeps_them() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    for case in cases().iter().filter(|case| case.main().is_some()) {
        let Some(expected) = case.text("expect") else { continue };
        let (base, main) = (case.base().map(crlf), case.main().map(crlf));
        let change = case.text("change").unwrap();
        let sides = Sides { base: base.as_deref(), main: main.as_deref(), change };
        assert_eq!(merge::spec(&sides, &|_| false).text, crlf(expected), "{}", case.name);
    }
}

#[test]
fn a_merge_that_was_done_is_done() {
    for case in cases() {
        let Some(expected) = case.text("expect").filter(|_| case.main().is_some()) else {
            continue;
        };
        let change = case.text("change").unwrap();
        let again = Sides { base: case.base(), main: Some(expected), change };
        let merged = merge::spec(&again, &|_| false);
        assert_eq!((merged.text.as_str(), merged.conflicts), (expected, vec![]), "{}", case.name);
    }
}

#[test]
fn an_accepted_conflict_takes_the_change() {
    for case in cases() {
        let Some(conflicts) = case.text("conflict") else { continue };
        if conflicts.contains("ambiguous") || conflicts.contains("misread") {
            continue;
        }
        let (base, main) = (case.base(), case.main());
        let change = case.text("change").unwrap();
        let merged = merge::spec(&Sides { base, main, change }, &|_| true);
        assert!(merged.conflicts.is_empty(), "{}", case.name);
        let wanted = case.merge().conflicts;
        for conflict in wanted {
            let last = |text: &Option<String>| {
                text.as_deref().and_then(|text| text.lines().last()).map(str::to_owned)
            };
            match last(&conflict.change) {
                // A requirement that is gone has no title left.
                Some(_) if case.name.contains("a rename of what main has removed") => {}
                Some(line) => {
                    assert!(merged.text.contains(&line), "{}: {}", case.name, merged.text);
                }
                None => {
                    let line = last(&conflict.main).unwrap();
                    assert!(!merged.text.lines().any(|l| l == line), "{}", case.name);
                }
            }
        }
    }
}

/// The case that loses data elsewhere: two open changes edit one requirement.
#[test]
fn a_second_archive_does_not_undo_the_first() {
    let base = "## Requirements\n\n### R1: One\n\nfive attempts\n\n### R2: Two\n\nb\n";
    let first = "## Requirements\n\n### R1: One\n\nthree attempts\n";
    let second = "## Requirements\n\n### R1: One\n\nfive attempts, then a captcha\n";
    let none = |_: &Conflict| false;
    let main = merge::spec(&Sides { base: Some(base), main: Some(base), change: first }, &none);
    assert!(main.conflicts.is_empty());
    let both =
        merge::spec(&Sides { base: Some(base), main: Some(&main.text), change: second }, &none);
    let [conflict] = both.conflicts.as_slice() else { panic!("{both:?}") };
    assert_eq!(conflict.main.as_deref(), Some("### R1: One\n\nthree attempts"));
    assert_eq!(conflict.change.as_deref(), Some("### R1: One\n\nfive attempts, then a captcha"));
    assert_eq!(both.text, main.text, "nothing of it was merged");
}

#[test]
fn a_new_id_that_is_taken_becomes_the_next_free_one() {
    let id = |n| RequirementId::new(n).unwrap();
    let base = "## Requirements\n\n### R1: One\n\na\n";
    let main = format!("{base}\n### R2: Theirs\n\nt\n\n### R4: Four\n\nd\n");
    let change = "## Requirements\n\n### R2: Ours\n\nSee R2.\n\n### R3: Three\n\nBuilds on R2.\n";
    let sides = Sides { base: Some(base), main: Some(&main), change };
    let renumbered = merge::collisions(&sides);
    assert_eq!(renumbered, BTreeMap::from([(id(2), id(5))]));
    let spec = "s".parse().unwrap();
    let change = merge::renumber_spec(change, &spec, &renumbered);
    let merged = merge::spec(&Sides { change: &change, ..sides }, &|_| false);
    assert_eq!(merged.conflicts, []);
    let expected = "## Requirements\n\n### R1: One\n\na\n\n### R2: Theirs\n\nt\n\n### R3: Three\n\n\
                    Builds on R5.\n\n### R4: Four\n\nd\n\n### R5: Ours\n\nSee R5.\n";
    assert_eq!(merged.text, expected);
    // The same requirement on both sides is no collision; the same title or text alone is.
    for (change, collides) in [
        ("## Requirements\n\n### R2: Theirs\n\nt\n", false),
        ("## Requirements\n\n### R2: Theirs\n\nu\n", true),
        ("## Requirements\n\n### R2: Ours\n\nt\n", true),
    ] {
        assert_eq!(!merge::collisions(&Sides { change, ..sides }).is_empty(), collides, "{change}");
    }
}

#[test]
fn a_merged_text_has_the_next_version_and_the_time() {
    let touched = |text: &str| merge::touch(text, "2026-01-19T10:30:00Z".parse().unwrap());
    let text = "---\nid: s\nversion: 3 # mine\nupdated_at: 2025-01-01\n---\n\n# S\n\nversion: 3\n";
    let expected = text.replacen('3', "4", 1).replacen("2025-01-01", "2026-01-19T10:30:00Z", 1);
    assert_eq!(touched(text), expected);
    assert_eq!(touched("# S\n\nversion: 3\n"), "# S\n\nversion: 3\n");
}

#[test]
fn every_conflict_is_said_in_words() {
    use merge::ConflictKind as Kind;
    let kinds = [
        (Kind::BothEdited, "was edited in the main spec too, and differently"),
        (Kind::BothRenamed, "was renamed in the main spec too, and differently"),
        (Kind::BothAdded, "was added to the main spec too, and differently"),
        (Kind::RemovedInMain, "was removed from the main spec since, and is edited here"),
        (Kind::RemovedInChange, "is removed here, and was edited in the main spec since"),
        (Kind::SpecRemoved, "was removed since, and is edited here"),
        (
            Kind::NoBase,
            "differs from the main spec, and it is not known what the change started from",
        ),
        (Kind::Ambiguous, "is there more than once"),
        (
            Kind::Misread,
            "would be read differently in the merged text: is a code block never closed?",
        ),
    ];
    for (kind, words) in kinds {
        assert_eq!(kind.says(), words);
    }
}

/// What one side does to a requirement of the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EditKind {
    Leave,
    Edit,
    Rename,
    Remove,
}

/// A spec and, for each of its requirements, who does what to it; and how many each adds.
#[derive(Debug, Clone)]
struct Plan {
    edits: Vec<(bool, EditKind)>,
    adds: (u32, u32),
    crlf: bool,
}

fn plans() -> impl Strategy<Value = Plan> {
    let edit = prop::sample::select(vec![
        EditKind::Leave,
        EditKind::Edit,
        EditKind::Rename,
        EditKind::Remove,
    ]);
    let edits = prop::collection::vec((any::<bool>(), edit), 1..12);
    (edits, 0..4_u32, 0..4_u32, any::<bool>()).prop_map(|(edits, a, b, crlf)| Plan {
        edits,
        adds: (a, b),
        crlf,
    })
}

impl Plan {
    fn base(&self) -> String {
        let mut out =
            "---\nid: s\n---\n\n# Specification: S\n\n<!-- mine -->\n\n## Requirements\n\n"
                .to_owned();
        for n in 1..=self.edits.len() {
            out += &format!("### R{n}: Title {n}\n\n**Priority**: high\n\nText {n} MUST be.\n\n");
        }
        out += "## Acceptance Criteria\n\n### Scenario: s\n\n- **WHEN** a\n- **THEN** b\n\n## Mine\n\nx\n";
        if self.crlf { out.replace('\n', "\r\n") } else { out }
    }

    /// The spec of one of the two changes, which touch different requirements.
    fn change(&self, second: bool) -> String {
        let name = if second { "second" } else { "first" };
        let own = || {
            let all = self.edits.iter().zip(1..);
            all.filter(move |((who, _), _)| *who == second).map(|((_, edit), n)| (*edit, n))
        };
        let ids = |wanted: EditKind| {
            own().filter(move |(edit, _)| *edit == wanted).map(|(_, n): (_, u32)| n)
        };
        let removes: Vec<String> = ids(EditKind::Remove).map(|n| format!("R{n}")).collect();
        let mut out = format!("---\nid: s\nremoves: [{}]\nrenames:\n", removes.join(", "));
        for n in ids(EditKind::Rename) {
            out += &format!("  R{n}: \"{name} {n}\"\n");
        }
        out += "---\n\n# Specification: S\n\n## Requirements\n\n";
        for n in ids(EditKind::Edit) {
            out += &format!("### R{n}: Title {n}\n\n**Priority**: high\n\nText {n} of {name}.\n\n");
        }
        let (count, from) = if second { (self.adds.1, 200) } else { (self.adds.0, 100) };
        for n in from..from + count {
            out += &format!("### R{n}: New {n}\n\n**Priority**: low\n\nNew {n} of {name}.\n\n");
        }
        out
    }
}

fn apply(base: &str, main: &str, change: &str) -> Result<String, TestCaseError> {
    let merged = merge::spec(&Sides { base: Some(base), main: Some(main), change }, &|_| false);
    prop_assert_eq!(&merged.conflicts, &[]);
    Ok(merged.text)
}

proptest! {
    #[test]
    fn disjoint_edits_commute(plan in plans()) {
        let (base, a, b) = (plan.base(), plan.change(false), plan.change(true));
        let a_then_b = apply(&base, &apply(&base, &base, &a)?, &b)?;
        let b_then_a = apply(&base, &apply(&base, &base, &b)?, &a)?;
        prop_assert_eq!(&a_then_b, &b_then_a);
        // Nothing but what was edited has moved.
        for kept in ["<!-- mine -->", "### Scenario: s", "## Mine"] {
            prop_assert!(a_then_b.contains(kept));
        }
        let parsed = agentd_core::document::spec::parse(&a_then_b).value;
        let left = plan.edits.iter().filter(|(_, edit)| *edit != EditKind::Remove).count();
        let added = usize::try_from(plan.adds.0 + plan.adds.1).unwrap();
        prop_assert_eq!(parsed.requirements.len(), left + added);
        prop_assert_eq!(!plan.crlf || !a_then_b.replace("\r\n", "").contains('\n'), true);
    }

    #[test]
    fn a_change_equal_to_its_base_changes_nothing(plan in plans()) {
        let (base, change) = (plan.base(), plan.change(true));
        let main = apply(&base, &base, &change)?;
        prop_assert_eq!(apply(&base, &main, &base)?, main);
    }

    #[test]
    fn any_three_texts_merge_without_a_panic(
        base in text(), main in text(), change in text(), known in any::<bool>()
    ) {
        let base = known.then_some(base.as_str());
        let sides = Sides { base, main: Some(&main), change: &change };
        let merged = merge::spec(&sides, &|_| true);
        let _ = merge::collisions(&sides);
        if merged.conflicts.is_empty() && merged.touched.is_empty() {
            prop_assert_eq!(merged.text, main);
        }
    }
}

/// Texts that imitate structure.
fn text() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "## Requirements",
        "## Acceptance Criteria",
        "## Overview",
        "## Flow",
        "### R1: a",
        "### R2: b",
        "### r1",
        "#### Scenario: x",
        "### Scenario: x",
        "### Note",
        "a",
        "  b",
        "",
        "```",
        "~~~",
        "<!--",
        "-->",
        "---",
        "removes: [R1]",
        "renames: {R2: \"c\"}",
        "# T",
        "- **WHEN** a",
        "\u{feff}",
        "é\r",
    ]);
    prop::collection::vec(line, 0..20).prop_map(|lines| lines.join("\n"))
}
