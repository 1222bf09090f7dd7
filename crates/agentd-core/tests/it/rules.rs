//! Every rule of validation: what breaks it, where that is reported, and what just does not.

mod plans;
mod work;

use std::collections::BTreeSet;

use agentd_core::diagnostic::Diagnostic;
use agentd_core::rules;

use self::plans::{FILES, PROPOSALS, SPECS};
use self::work::{REVIEWS, TASK_CASES};
use crate::example::Edit::{In, Main};
use crate::example::{Edit, findings, reports};

const PROPOSAL: &str = "proposal.md";
const SPEC: &str = "specs/auth-flow.md";
const TASKS: &str = "tasks.md";
const CLARIFICATIONS: &str = "clarifications.md";
const REVIEW: &str = "REVIEW.md";
const STATE: &str = "STATE.yaml";

/// Edits that break a rule, all that is found then (file, place and code), and edits that do not.
type Case = (&'static [Edit], &'static [&'static str], &'static [Edit]);

fn check(cases: &[Case]) {
    assert_eq!(findings(&[]), [""; 0], "the example itself");
    let mut wrong = Vec::new();
    for (bad, expected, good) in cases {
        let found = findings(bad);
        let short: Vec<String> = found
            .iter()
            .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
            .collect();
        if short != *expected {
            wrong.push(format!("{expected:?} is {short:?}: {found:?}"));
        }
        let found = findings(good);
        if !found.is_empty() {
            wrong.push(format!("the good twin of {expected:?}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_and_frontmatter() {
    check(FILES);
}

#[test]
fn proposals() {
    check(PROPOSALS);
}

#[test]
fn specs_and_their_words() {
    check(SPECS);
}

#[test]
fn tasks() {
    check(TASK_CASES);
}

#[test]
fn reviews_and_clarifications() {
    check(REVIEWS);
}

#[test]
fn every_rule_has_a_case() {
    let cases = [FILES, PROPOSALS, SPECS, TASK_CASES, REVIEWS].concat();
    let tested: BTreeSet<&str> = cases
        .iter()
        .flat_map(|(_, expected, _)| expected.iter())
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    // These are about more than documents: the record of a change and the files of the project.
    let elsewhere = [&rules::FOREIGN_REVIEW, &rules::TICK_WITHOUT_EVIDENCE];
    let all = rules::ALL.iter().filter(|rule| !elsewhere.contains(rule));
    let all: BTreeSet<&str> = all.map(|rule| rule.code).collect();
    assert_eq!(tested, all);
}

/// Lesson 6: what earlier programs let pass, with the words that people see.
#[test]
fn lesson_6_is_reported_in_full() {
    let all = findings(&[
        In(TASKS, "depends_on: []", "depends_on: [\"2.1\", \"3.7\"]"),
        In(TASKS, "src/login.rs", "/etc/passwd"),
        In(TASKS, "auth-flow:R1", "auth-flow:R7"),
        In(SPEC, "## Acceptance", "### R1: Twice\n\nIt MUST end after 5 minutes.\n\n## Acceptance"),
    ]);
    let expected = [
        "specs/auth-flow.md:22:1 S005 R1 is there twice",
        "tasks.md:11:1 T005 Circular dependency detected: data.1 → logic.1 → data.1 (1.1 → 2.1 → 1.1)",
        "tasks.md:17:12 T008 task 1.1 points to auth-flow:R7, which does not exist",
        "tasks.md:18:15 T016 task 1.1 depends on 2.1 of a later layer",
        "tasks.md:18:22 T006 task 1.1 depends on 3.7, which does not exist",
        "tasks.md:31:7 T012 task 2.1: path `/etc/passwd` is absolute; paths are relative to the project",
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_dangling_reference_lists_what_exists() {
    let found = reports(&[In(TASKS, "auth-flow:R1", "auth-flow:R7"), Main("auth-flow", &["R3"])]);
    let advice: Vec<&str> = found[0].diagnostics.iter().map(Diagnostic::advice).collect();
    assert_eq!(advice, ["`auth-flow` has R1, R3."]);
}

#[test]
fn a_cycle_of_three_specs_is_shown_as_a_chain() {
    let specs = "affected_specs:\n  - {id: c, depends: [a]}\n  - {id: auth-flow, depends: [c]}\n  - {id: a, depends: [auth-flow]}\n";
    let found =
        findings(&[In(PROPOSAL, "affected_specs:\n  - id: auth-flow\n    depends: []\n", specs)]);
    let expected = [
        "proposal.md:2:1 P007 circular dependency of specs: c → a → auth-flow → c",
        "proposal.md:6:10 P004 specs/c.md is missing or cannot be read",
        "proposal.md:8:10 P004 specs/a.md is missing or cannot be read",
    ];
    assert_eq!(found, expected);
}
