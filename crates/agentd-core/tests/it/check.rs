//! What is reported of a project: counted, capped and found again.

use agentd_core::check::{
    self, CheckedFile, Extras, FINDINGS_PER_RULE, FileReport, MainSpecs, Omitted,
};
use agentd_core::diagnostic::{Counts, Rule};
use agentd_core::document::spec;
use agentd_core::documents::{Doc, Source};
use agentd_core::ids::SpecId;
use agentd_core::layout::ChangeFile;
use agentd_core::rules;
use agentd_core::span::Span;

use crate::example::Edit::{self, In, Main};
use crate::example::{SPEC, documents, reports};

const HIGH: &Rule = &rules::FILE_MISSING;
const MEDIUM: &Rule = &rules::VAGUE_WORD;
const LOW: &Rule = &rules::TASK_EMPTY;

/// A report with so many findings of these rules.
fn report(findings: &[(&'static Rule, usize)]) -> FileReport {
    let found = findings
        .iter()
        .flat_map(|(rule, count)| (0..*count).map(|at| rule.at(Span::at(at), "it is wrong")));
    FileReport {
        file: CheckedFile::Stray("agentd/specs/x".to_owned()),
        text: String::new(),
        diagnostics: found.collect(),
        omitted: Vec::new(),
        allowed: Vec::new(),
    }
}

#[test]
fn of_each_rule_the_first_thousand_findings_are_listed() {
    let most = FINDINGS_PER_RULE;
    let all = [
        report(&[(HIGH, most - 1), (MEDIUM, 1), (LOW, most + 2)]),
        report(&[(HIGH, 1), (LOW, 1)]),
        report(&[(HIGH, 3), (MEDIUM, 2)]),
    ];
    let mut capped = all.clone();
    check::cap(&mut capped);
    let omitted = |rule: &'static Rule, count| Omitted { rule, severity: rule.severity, count };
    let expected = [
        FileReport {
            omitted: vec![omitted(LOW, 2)],
            ..report(&[(HIGH, most - 1), (MEDIUM, 1), (LOW, most)])
        },
        FileReport { omitted: vec![omitted(LOW, 1)], ..report(&[(HIGH, 1)]) },
        FileReport { omitted: vec![omitted(HIGH, 3)], ..report(&[(MEDIUM, 2)]) },
    ];
    assert_eq!(capped, expected);
    // What is not listed counts.
    let sums = |reports: &[FileReport]| reports.iter().map(FileReport::counts).collect::<Vec<_>>();
    assert_eq!(sums(&capped), sums(&all));
    let total = Counts { high: most + 3, medium: 3, low: most + 3 };
    assert_eq!((check::counts(&capped), check::counts(&all)), (total, total));
}

#[test]
fn every_severity_that_is_not_listed_counts() {
    let omitted = [(HIGH, 1), (MEDIUM, 2), (LOW, 4)];
    let omitted = omitted.map(|(rule, count)| Omitted { rule, severity: rule.severity, count });
    let report = FileReport { omitted: omitted.to_vec(), ..report(&[(LOW, 1)]) };
    assert_eq!(report.counts(), Counts { high: 1, medium: 2, low: 5 });
}

#[test]
fn findings_are_those_of_their_file() {
    let found =
        reports(&[In("tasks.md", "MODIFY", "RENAME"), In("proposal.md", "They ask", "TBD")]);
    let codes = |file: &ChangeFile| -> Vec<&str> {
        check::of_file(&found, file).iter().map(|d| d.rule.code).collect()
    };
    assert_eq!(codes(&ChangeFile::Tasks), ["T013"]);
    assert_eq!(codes(&ChangeFile::Proposal), ["Q005"]);
    assert_eq!(codes(&ChangeFile::Review), [""; 0]);
    let paths: Vec<String> = found.iter().map(|report| report.file.path()).collect();
    let change = "agentd/changes/add-login";
    assert_eq!(paths, [format!("{change}/proposal.md"), format!("{change}/tasks.md")]);
    let stray = check::stray_spec("x", "agentd/specs/x".to_owned());
    assert_eq!((stray.file.path().as_str(), stray.file.in_change()), ("agentd/specs/x", None));
}

#[test]
fn more_findings_join_those_of_their_file() {
    let edits = [In("tasks.md", "MODIFY", "RENAME")];
    let ((documents, ..), mut found) = (documents(&edits), reports(&edits));
    let finding = |at: usize| HIGH.at(Span::at(at), "it is wrong");
    check::add(&mut found, &documents, ChangeFile::Tasks, vec![finding(9999), finding(0)]);
    check::add(&mut found, &documents, ChangeFile::Review, Vec::new());
    check::add(&mut found, &documents, ChangeFile::Proposal, vec![finding(0)]);
    let codes = |report: &FileReport| -> Vec<&str> {
        report.diagnostics.iter().map(|d| d.rule.code).collect()
    };
    let [tasks, proposal] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(tasks.file.in_change(), Some(&ChangeFile::Tasks));
    assert_eq!(codes(tasks), [HIGH.code, "T013", HIGH.code], "in the order of the text");
    assert_eq!(proposal.file.in_change(), Some(&ChangeFile::Proposal));
    assert_eq!((codes(proposal), proposal.text.is_empty()), (vec![HIGH.code], false));
}

#[test]
fn a_main_spec_is_checked_by_itself() {
    let id = SpecId::new("auth-flow").unwrap();
    let check = |text: &str| {
        let doc = Doc::new(Source::Text(text.to_owned()), spec::parse);
        check::main_spec(&id, &doc, &Extras::default())
    };
    assert_eq!(check(SPEC), None);
    let spoiled = SPEC.replace("MUST return", "returns");
    let found = check(&spoiled).unwrap();
    assert_eq!((found.file.path().as_str(), &found.text), ("agentd/specs/auth-flow.md", &spoiled));
    assert_eq!(found.diagnostics.iter().map(|d| d.rule.code).collect::<Vec<_>>(), ["Q002"]);
}

#[test]
fn tasks_are_outdated_when_the_specs_of_the_plan_are_others() {
    let check = |edits: &[Edit], expected: &[&str]| {
        let (documents, main, _): (_, MainSpecs, _) = documents(edits);
        assert_eq!(documents.outdated_tasks(&main), expected);
    };
    check(&[], &[]);
    let other = In("tasks.md", "auth-flow:R1", "other:R2");
    let gone = "task 1.1 implements other:R2, which is not part of the plan";
    check(&[other], &[gone]);
    check(&[other, Main("other", &["R1"])], &[gone]);
    check(&[other, Main("other", &["R2"])], &[]);
    let whole = In("tasks.md", "auth-flow:R1", "other");
    check(&[whole, Main("other", &["R1"])], &[]);
    check(&[whole], &["task 1.1 implements other, which is not part of the plan"]);
    let both = [other, other, Main("other", &["R2"])];
    check(&both, &["no task implements auth-flow"]);
    // A spec without requirements needs no task.
    let empty = In("specs/auth-flow.md", "### R1: Session", "### Session");
    check(&[&both[..], &[empty]].concat(), &[]);
    check(&[In("tasks.md", "auth-flow:R1", "auth-flow:R9")], &[]);
}
