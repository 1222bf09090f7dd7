//! Findings that documents allow, and what they cannot allow.

use agentd_core::check::{self, FileReport, Weight};
use agentd_core::diagnostic::{Counts, Severity};
use agentd_core::span::line_column;

use crate::example::Edit::{self, In, Rule};
use crate::example::reports;

const SPEC: &str = "specs/auth-flow.md";

/// What is found, and what is allowed, as `line CODE`.
fn outcome(edits: &[Edit]) -> (Vec<String>, Vec<String>) {
    let reports = reports(edits);
    let all = |of: &dyn Fn(&FileReport) -> Vec<String>| reports.iter().flat_map(of).collect();
    let line = |report: &FileReport, at: usize| line_column(&report.text, at).0;
    let found = all(&|report| {
        let found = report.diagnostics.iter();
        found.map(|d| format!("{} {}", line(report, d.span.start), d.rule.code)).collect()
    });
    let allowed = all(&|report| {
        let allowed = report.allowed.iter().map(|a| (&a.finding, &a.reason));
        allowed
            .map(|(d, why)| format!("{} {} {why}", line(report, d.span.start), d.rule.code))
            .collect()
    });
    (found, allowed)
}

fn check(edits: &[Edit], found: &[&str], allowed: &[&str]) {
    let (was_found, was_allowed) = outcome(edits);
    assert_eq!(
        (was_found, was_allowed.as_slice()),
        (
            found.iter().map(|s| (*s).to_owned()).collect(),
            &allowed.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..]
        )
    );
}

const TWO: &str =
    "The fast server MUST return 401.\n\n### R2: More\n\nThe fast server MUST return 402.";
const OLD: &str = "The server MUST return 401 when the password is wrong.";

// contract R6
#[test]
fn a_comment_allows_what_is_in_its_block_or_on_the_next_line() {
    let task = In("tasks.md", "auth-flow:R1", "auth-flow");
    let spec = |new: &'static str| [In(SPEC, OLD, new), task];
    check(&spec(TWO), &["20 Q001", "24 Q001"], &[]);
    // In the block of R1, in front of its text and behind it.
    check(
        &spec(
            "<!-- agentd:allow Q001: a name -->\nThe fast server MUST return 401.\n\n### R2: More\n\nThe fast server MUST return 402.",
        ),
        &["25 Q001"],
        &["21 Q001 a name"],
    );
    check(
        &spec(
            "The fast server MUST return 401, if possible.\n\n#### Note\n\nA fast one.\n\n<!--agentd:allow vague-word :a\n name-->",
        ),
        &["20 Q001", "20 Q001"],
        &["24 Q001 a name"],
    );
    check(
        &spec(
            "The fast server MUST return 401, if possible.\n\n<!--agentd:allow vague-word :a\n name-->\n\n#### Note\n\nA fast one.",
        ),
        &[],
        &["20 Q001 a name", "20 Q001 a name", "27 Q001 a name"],
    );
    // Above a heading, it is about that line: Q002 and Q003 are there.
    check(
        &spec(
            "The server MUST return 401.\n\n<!-- agentd:allow Q002: x -->\n<!-- agentd:allow Q003: y -->\n\n### R2: More\n\nThe server is fast.",
        ),
        &["27 Q001"],
        &["25 Q002 x", "25 Q003 y"],
    );
    // A section with requirements is more than one block, and so is the whole document.
    check(
        &[
            task,
            In(SPEC, OLD, TWO),
            In(
                SPEC,
                "## Requirements",
                "## Requirements\n\n<!-- agentd:allow Q001: all of them -->",
            ),
        ],
        &["16 A001", "22 Q001", "26 Q001"],
        &[],
    );
    check(
        &[
            task,
            In(SPEC, OLD, TWO),
            In(
                SPEC,
                "# Specification: Auth flow",
                "<!-- agentd:allow Q001: x -->\n# Specification: Auth flow\n<!-- agentd:allow Q001: y -->",
            ),
        ],
        &["8 A001", "10 A001", "22 Q001", "26 Q001"],
        &[],
    );
    // Of two for the same, one is enough.
    check(
        &spec(
            "<!-- agentd:allow Q001: a -->\n\nThe fast server MUST return 401.\n\n<!-- agentd:allow Q001: b -->",
        ),
        &["24 A001"],
        &["22 Q001 a"],
    );
    // What is in code or never closed is no such comment.
    for new in [
        "```\n<!-- agentd:allow Q001: a -->\n```\nThe fast server MUST return 401.",
        "`<!-- agentd:allow Q001: a -->` The fast server MUST return 401.",
        "The fast server MUST return 401 to `<!-- agentd:allow Q001: a -->`",
    ] {
        let (found, allowed) = outcome(&[In(SPEC, OLD, new)]);
        assert_eq!(allowed, [""; 0], "{new}");
        assert!(!found.iter().any(|found| found.contains("A00")), "{new}: {found:?}");
    }
    // In a sentence it does nothing, and says so.
    for new in [
        "The fast server MUST return 401. <!-- agentd:allow Q001: a -->",
        " <!-- agentd:allow Q001: a --> \nThe fast server MUST return 401.",
    ] {
        let (found, allowed) = outcome(&[In(SPEC, OLD, new)]);
        assert_eq!(allowed, [""; 0], "{new}");
        assert!(found.contains(&"20 A002".to_owned()), "{new}: {found:?}");
    }
    check(
        &spec("<!-- agentd:allow Q001: a\nThe fast server MUST return 401."),
        &["20 A002", "21 Q001"],
        &[],
    );
}

// contract R6
#[test]
fn nothing_that_a_gate_depends_on_is_allowed() {
    let comment = "<!-- agentd:allow Q001: a name -->\nThe fast server MUST return 401.";
    check(&[In(SPEC, OLD, comment)], &[], &["21 Q001 a name"]);
    let high = [In(SPEC, OLD, comment), Rule("Q001", Weight::High)];
    check(&high, &["20 A002", "21 Q001"], &[]);
    assert_eq!(check::counts(&reports(&high)), Counts { high: 1, medium: 1, low: 0 });
    check(&[In(SPEC, OLD, comment), Rule("Q001", Weight::Off)], &["20 A001"], &[]);
    check(
        &[In(SPEC, OLD, comment), Rule("Q001", Weight::Off), Rule("A001", Weight::Off)],
        &[],
        &[],
    );
    // Only rules about wording; and a reviewer's comments are not the author's.
    for code in ["S004", "T011", "F003", "R004", "P001", "A001", "A002", "*", "Q"] {
        let text: &'static str = format!("<!-- agentd:allow {code}: x -->\n{OLD}").leak();
        check(&[In(SPEC, OLD, text)], &["20 A002"], &[]);
    }
    let review = "They ask, TBD.\n\n<!-- agentd:allow Q005: x -->";
    check(&[In("proposal.md", "They ask for it.", review)], &[], &["18 Q005 x"]);
    let in_review = "\n<!-- reviews -->\n## Review 1\n\n<!-- agentd:allow Q005: x -->\n";
    let edits = [
        In("proposal.md", "They ask for it.", "They ask, TBD."),
        Edit::Append("proposal.md", in_review),
    ];
    assert_eq!(outcome(&edits).1, [""; 0]);
}

#[test]
fn a_comment_requires_nothing_itself() {
    check(
        &[In(SPEC, OLD, "<!-- It MUST return 401, fast. -->\nUsers are happy.")],
        &["16 Q002", "16 Q003"],
        &[],
    );
    check(&[In(SPEC, OLD, "The server MUST return 401.\n<!-- fast -->\n")], &[], &[]);
}

// contract R6
#[test]
fn rules_weigh_what_the_project_says_in_every_document() {
    let edits = [
        In(SPEC, OLD, "The fast server returns 401."),
        In("tasks.md", "Write the table.", "TBD"),
        Rule("Q001", Weight::High),
        Rule("Q002", Weight::Off),
        Rule("Q005", Weight::Low),
    ];
    let found = reports(&edits);
    let severities: Vec<(&str, Severity)> = found
        .iter()
        .flat_map(|report| report.diagnostics.iter().map(|d| (d.rule.code, d.severity())))
        .collect();
    assert_eq!(severities, [("Q001", Severity::High), ("Q005", Severity::Low)]);
    assert_eq!(check::counts(&found), Counts { high: 1, medium: 0, low: 1 });
}
