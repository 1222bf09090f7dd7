//! Reviews: found in a text, read, written and numbered.

use agentd_core::diagnostic::{Counts, Severity};
use agentd_core::document::review::{self, CodeVerdict, Review};
use agentd_core::document::review_block::{self, Issue, PlanVerdict, ReviewBlock};
use agentd_core::document::{previous, proposal};
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::span::Uncompared;

fn issue(number: u32, severity: Severity, title: &str) -> Issue {
    Issue {
        number,
        severity,
        title: title.into(),
        location: "auth-flow:R1".into(),
        description: "It is wrong.".into(),
        recommendation: "Change it.".into(),
    }
}

fn block(issues: Vec<Issue>) -> ReviewBlock {
    ReviewBlock {
        iteration: 2,
        reviewer: "codex".into(),
        date: Some("2026-01-19T10:30:00Z".parse().unwrap()),
        plan: Some(Digest::of("plan")),
        verdict: PlanVerdict::NeedsRevision,
        summary: "Almost.".into(),
        previous: Vec::new(),
        issues,
        place: Uncompared::default(),
    }
}

fn three() -> Vec<Issue> {
    vec![issue(1, Severity::High, "A"), issue(2, Severity::Low, "B"), issue(3, Severity::Low, "C")]
}

/// The text of each block that is found.
fn found(text: &str) -> Vec<&str> {
    review_block::spans(text).into_iter().map(|span| span.of(text)).collect()
}

/// A block whose digest is wrong, as an edit leaves it.
fn edited(mark: &str) -> String {
    format!("<!-- agentd:review {mark} -->\n## Review 1\n<!-- /agentd:review {mark} -->\n")
}

#[test]
fn a_block_is_found_wherever_its_line_starts() {
    let block = edited("k");
    let authentic = review_block::render(&self::block(three()));
    for before in ["", "\n", "x\n", "# Change: x\r\n", "é\n"] {
        for after in ["", "\n", "x\n", "<!-- /agentd:review k -->\n"] {
            assert_eq!(found(&format!("{before}{block}{after}")), [&block]);
            assert_eq!(found(&format!("{before}{authentic}{after}")), [&authentic]);
        }
    }
    // Markers of Windows, and of an editor that takes the last newline.
    let windows = block.replace('\n', "\r\n");
    assert_eq!(found(&windows), [&windows]);
    assert_eq!(found(block.trim_end()), [block.trim_end()]);
    let empty = "<!-- agentd:review k -->\n<!-- /agentd:review k -->\n";
    assert_eq!(found(empty), [empty]);
    let both = format!("{block}{authentic}x\n{block}");
    assert_eq!(found(&both), [&block, &authentic, &block]);
}

#[test]
fn what_only_resembles_a_block_is_none() {
    let (open, close) = ("<!-- agentd:review k -->\n", "<!-- /agentd:review k -->\n");
    for text in [
        format!("x {open}{close}"),
        format!(" {open}{close}"),
        format!("{open}x {close}"),
        format!("{close}{open}"),
        format!("{close}x\n{open}"),
        open.to_owned(),
        format!("{open}{}", close.replace('k', "other")),
        format!("{}{close}", open.replace(" -->", "")),
        edited("k k"),
        edited(&"k".repeat(65)),
        format!("```\n{}```\n", edited("k")),
    ] {
        assert_eq!(found(&text), [""; 0], "{text:?}");
    }
    let longest = edited(&"k".repeat(64));
    assert_eq!(found(&longest), [&longest]);
    // A block ends where the first marker with its own mark says.
    let nested = format!("{open}{}{close}{close}", edited("other"));
    assert_eq!(found(&nested), [nested.strip_suffix(close).unwrap()]);
}

/// An unclosed fence or comment in front must not hide a verdict.
#[test]
fn what_has_its_digest_is_a_block_in_code_too() {
    let rendered = review_block::render(&block(three()));
    for before in ["```\n", "~~~\nx\n", "<!--\n", "````markdown\n\n"] {
        let text = format!("{before}{rendered}");
        assert_eq!(found(&text), [&rendered], "{before:?}");
        assert_eq!(proposal::parse(&text).value.reviews, [block(three())], "{before:?}");
        let many = format!("{before}{}", rendered.repeat(20));
        assert_eq!(found(&many).len(), 20, "{before:?}");
    }
    let changed = format!("```\n{}```\n", rendered.replace("Almost.", "Fine."));
    assert_eq!(found(&changed), [""; 0]);
}

/// What is said of the reviews of a proposal, and what they are.
fn read(text: &str) -> (Vec<String>, Vec<ReviewBlock>) {
    let parsed = proposal::parse(text);
    let reviews = parsed.diagnostics.iter().filter(|d| d.rule.code.starts_with('R'));
    let said =
        reviews.map(|d| format!("{} {}: {}", d.rule.code, d.span.of(text).trim(), d.message));
    (said.collect(), parsed.value.reviews)
}

#[test]
fn a_block_that_cannot_be_read_says_why() {
    let check = |content: &str, expected: &[&str]| {
        let text = edited("k").replace("## Review 1\n", content);
        let (said, reviews) = read(&text);
        let edited = "R003 <!-- agentd:review k -->: this review was changed after it was given";
        assert_eq!(said, [&[edited], expected].concat(), "{content:?}");
        reviews
    };
    let none = "R001 <!-- agentd:review k -->: this review has no verdict that can be read";
    assert_eq!(check("## Review 1\n", &[none]), []);
    assert_eq!(check("- Verdict: not approved\n", &[none]), []);
    // A verdict below the first issue belongs to it.
    assert_eq!(check("### I1: A\n- Severity: LOW\n- Verdict: APPROVED\n", &[none]), []);
    let two = "R001 <!-- agentd:review k -->: this review has more than one verdict";
    assert_eq!(check("- Verdict: APPROVED\n- Verdict: APPROVED\n", &[two]), []);
    let severity = "R002 ### I2: B: `I2: B` has no severity HIGH, MEDIUM or LOW";
    let reviews = check(
        "## Review x\n- Verdict: REJECTED\n\nNo.\n\n### I2: B\n- Severity: urgent\n### C\n- Severity: LOW\n",
        &[severity],
    );
    let only = Issue {
        location: "".into(),
        description: "".into(),
        recommendation: "".into(),
        ..issue(1, Severity::Low, "C")
    };
    let expected = ReviewBlock {
        iteration: 1,
        reviewer: "".into(),
        date: None,
        plan: None,
        verdict: PlanVerdict::Rejected,
        summary: "No.".into(),
        ..block(vec![only])
    };
    assert_eq!(reviews, [expected]);
}

#[test]
fn issues_without_a_number_are_counted() {
    let text = "- Verdict: REJECTED\n### A\n- Severity: LOW\n### Issue #7: B\n- Severity: LOW\n\
                ### C: c\n- Severity: LOW\n### I9: D\n- Severity: LOW\n";
    let (_, reviews) = read(&edited("k").replace("## Review 1\n", text));
    let numbers = reviews[0].issues.iter().map(|issue| (issue.number, issue.title.as_str()));
    assert_eq!(numbers.collect::<Vec<_>>(), [(1, "A"), (7, "B"), (3, "C: c"), (9, "D")]);
}

#[test]
fn a_block_is_appended_on_a_line_of_its_own() {
    let rendered = review_block::render(&block(Vec::new()));
    for (text, between) in [
        ("", "\n"),
        ("x", "\n\n"),
        ("x\n", "\n"),
        ("x\n\n", "\n"),
        ("x\r\ny", "\r\n\r\n"),
        ("x\r\n", "\r\n"),
    ] {
        let appended = review_block::append(text, &block(Vec::new()));
        assert_eq!(appended, format!("{text}{between}{rendered}"), "{text:?}");
        assert_eq!(proposal::parse(&appended).value.reviews, [block(Vec::new())], "{text:?}");
    }
}

#[test]
fn the_report_of_a_challenge_counts_its_issues() {
    let report = review_block::render_report(&ChangeId::new("add-login").unwrap(), &block(three()));
    let expected = "\
# Challenge: add-login

<!-- Written by agentd from the latest review in proposal.md. Edit that, not this. -->

**Verdict**: NEEDS_REVISION

1 HIGH, 0 MEDIUM, 2 LOW

## Review 2

";
    assert_eq!(report.split_inclusive('\n').take(10).collect::<String>(), expected);
    assert!(report.ends_with("- **Recommendation**: Change it.\n"), "{report}");
}

/// The numbers and titles that new issues get.
fn numbered(earlier: &[&[Issue]], highest: u32, titles: &[&str]) -> Vec<(u32, String)> {
    let earlier: Vec<ReviewBlock> = earlier.iter().map(|issues| block(issues.to_vec())).collect();
    let mut issues: Vec<Issue> =
        titles.iter().map(|title| issue(0, Severity::Low, title)).collect();
    review_block::number_issues(&earlier, highest, &mut issues);
    issues.into_iter().map(|issue| (issue.number, issue.title.to_string())).collect()
}

/// contract T5
#[test]
fn an_issue_keeps_its_number_over_the_rounds() {
    let (high, low) = (issue(4, Severity::High, "Lost"), issue(2, Severity::Low, "Slow"));
    let rounds: [&[Issue]; 2] = [&[high], &[low]];
    let check = |earlier: &[&[Issue]], highest, titles: &[&str], expected: &[(u32, &str)]| {
        let expected: Vec<(u32, String)> =
            expected.iter().map(|(number, title)| (*number, (*title).to_owned())).collect();
        assert_eq!(numbered(earlier, highest, titles), expected, "{titles:?}");
    };
    check(&[], 0, &["A", "B"], &[(1, "A"), (2, "B")]);
    check(&[], 7, &["A", "B"], &[(8, "A"), (9, "B")]);
    // The next free number is above all, in whatever round they were given.
    check(&rounds, 0, &["A", "B"], &[(5, "A"), (6, "B")]);
    check(&rounds, 3, &["A"], &[(5, "A")]);
    check(&rounds, 9, &["A"], &[(10, "A")]);
    // The same title, in any case, is the same issue, but only one is.
    check(&rounds, 0, &["slow", "LOST"], &[(2, "slow"), (4, "LOST")]);
    check(&rounds, 0, &["Slow", "Slow"], &[(2, "Slow"), (5, "Slow")]);
    // A reviewer may call it by its number.
    check(&rounds, 0, &["I4: Still lost"], &[(4, "Still lost")]);
    check(&rounds, 0, &["Issue #2: It is slow"], &[(2, "It is slow")]);
    check(&rounds, 0, &["I4: Lost", "I4: Again"], &[(4, "Lost"), (5, "I4: Again")]);
    check(
        &rounds,
        0,
        &["I4: ", "I3: New", "I5: New"],
        &[(5, "I4:"), (6, "I3: New"), (7, "I5: New")],
    );
    // One that is no longer among the earlier ones was given all the same.
    check(&rounds, 9, &["I9: Old", "I10: New"], &[(9, "Old"), (10, "I10: New")]);
    // Of two with one title, the later one is meant.
    let twice: [&[Issue]; 2] = [&[issue(1, Severity::Low, "A")], &[issue(2, Severity::Low, "A")]];
    check(&twice, 0, &["a", "a", "a"], &[(2, "a"), (1, "a"), (3, "a")]);
    check(&[&[issue(u32::MAX, Severity::Low, "A")]], 0, &["B"], &[(u32::MAX, "B")]);
}

fn code_review() -> Review {
    Review {
        change_id: Some(ChangeId::new("add-login").unwrap()),
        iteration: 1,
        reviewer: "codex".into(),
        created_at: None,
        verdict: Some(CodeVerdict::NeedsFix),
        summary: "Almost.".into(),
        previous: Vec::new(),
        issues: vec![issue(1, Severity::Medium, "A")],
        numbered: 0,
    }
}

#[test]
fn a_code_review_is_written_with_what_it_has() {
    let expected = "\
---
change_id: add-login
type: review
iteration: 1
reviewer: codex
verdict: NEEDS_FIX
---

# Review: add-login

## Summary

Almost.

## Issues

### I1: A

- **Severity**: MEDIUM
- **Location**: auth-flow:R1
- **Description**: It is wrong.
- **Recommendation**: Change it.
";
    assert_eq!(review::render(&code_review()), expected);
    // What was numbered counts, also where the text does not say so.
    let read = review::parse(expected).value;
    assert_eq!(read, Review { numbered: 1, ..code_review() });
    assert_eq!(read.counts(), Counts { high: 0, medium: 1, low: 0 });
    let more = Review {
        previous: vec![previous::Previous {
            number: 1,
            status: previous::IssueStatus::Fixed,
            reason: "see R3".into(),
        }],
        numbered: 7,
        ..code_review()
    };
    let text = review::render(&more);
    assert!(text.contains("\nnumbered: 7\n"), "{text}");
    assert!(text.contains("\n## Earlier issues\n\n- **Earlier I1**: fixed: see R3\n\n"), "{text}");
    assert_eq!(review::parse(&text).value, more);
}
