//! Whatever a file holds: a diagnostic, never a panic or a hang, and every place inside of the text.

use agentd_core::check::{self, Extras, MainSpecs};
use agentd_core::config::Config;
use agentd_core::diagnostic::Diagnostic;
use agentd_core::document::tasks::Status;
use agentd_core::document::{
    clarifications, proposal, review, review_block, rewrite, spec, tasks, tasks_edit,
};
use agentd_core::documents::{Doc, Documents, Source};
use agentd_core::frontmatter;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::outline::Outline;
use agentd_core::span::line_column;
use agentd_core::stamp::Stamp;
use agentd_core::state;
use proptest::prelude::*;

use crate::corpus;
use crate::example::{CLARIFICATIONS, PROPOSAL, REVIEW, SPEC, STATE, TASKS};

fn now() -> Stamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn check_diagnostics(text: &str, found: &[Diagnostic]) {
    let (lines, most) = (text.split('\n').count(), text.len() + 1);
    for (i, Diagnostic { span, rule, message, .. }) in found.iter().enumerate() {
        assert!(span.start <= span.end, "{span:?} of {}", rule.code);
        assert!(
            text.get(span.range()).is_some(),
            "{span:?} of {} is no part of the text",
            rule.code
        );
        assert!(!message.is_empty(), "{}", rule.code);
        // Counting lines for each of 100,000 findings is the front end's business.
        if i < 50 {
            let (line, column) = line_column(text, span.start);
            assert!((1..=lines).contains(&line) && (1..=most).contains(&column), "{}", rule.code);
        }
    }
}

/// A change in which every document is this text.
fn documents(text: &str) -> Documents {
    let spec = ChangeFile::Spec(SpecId::new("auth-flow").unwrap());
    let files = Documents::FILES.into_iter().chain([spec]);
    let texts = files.map(|file| (file, Source::Text(text.to_owned())));
    Documents::read(ChangeId::new("add-login").unwrap(), texts)
}

/// Hands a text to all parsers and rules, as every document that it could be.
fn check(text: &str) {
    let outline = Outline::scan(text);
    for heading in &outline.headings {
        assert!(
            text.get(heading.span.range()).is_some() && text.get(heading.title.range()).is_some()
        );
    }
    for fence in &outline.fences {
        assert!(
            text.get(fence.span.range()).is_some() && text.get(fence.content.range()).is_some()
        );
    }
    assert!(outline.comments.iter().all(|comment| text.get(comment.range()).is_some()));

    for report in documents(text).findings(&MainSpecs::new(), &Extras::default()) {
        check_diagnostics(&report.text, &report.diagnostics);
        assert_eq!(report.text, text);
    }
}

/// What else reads or changes texts; for texts that are not large.
fn check_the_rest(text: &str) {
    let id = SpecId::new("auth-flow").unwrap();
    let main = Doc::new(Source::Text(text.to_owned()), spec::parse);
    if let Some(report) = check::main_spec(&id, &main, &Extras::default()) {
        check_diagnostics(text, &report.diagnostics);
    }
    if let Err(error) = Config::parse(text) {
        assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
    }
    let digest = documents(text).digest();
    let touched = Source::Text(proposal::touch(text, now()));
    let edits_nothing_reviewed = documents(text).with(&ChangeFile::Proposal, touched).digest();
    assert_eq!(digest, edits_nothing_reviewed, "{text:?}");
}

/// Changes a text in every way that agentd knows, and reads it again.
fn check_edits(text: &str) {
    check_the_rest(text);
    let document = tasks::parse(text).value;
    if let Some(task) = document.tasks.first()
        && let Ok(ticked) = tasks_edit::set_status(text, task.id, Status::Done, now())
    {
        assert_eq!(tasks::parse(&ticked).value.get(task.id).unwrap().status, Status::Done);
    }
    for path in ["id", "summary.completed", "a"] {
        let _ = frontmatter::set(text, path, "2");
    }
    let block = review_block::ReviewBlock {
        iteration: 1,
        reviewer: "codex".into(),
        date: None,
        plan: None,
        verdict: review_block::PlanVerdict::Rejected,
        summary: text.into(),
        previous: Vec::new(),
        issues: Vec::new(),
        place: agentd_core::span::Uncompared::default(),
    };
    let with_review = review_block::append(text, &block);
    assert_eq!(proposal::parse(&with_review).value.reviews.last(), Some(&block), "{text:?}");
    check(&rewrite::proposal(&with_review, &proposal::parse(PROPOSAL).value));
    check(&rewrite::spec(text, &spec::parse(SPEC).value));
}

const DOCUMENTS: [&str; 6] = [PROPOSAL, SPEC, TASKS, CLARIFICATIONS, REVIEW, STATE];

#[test]
fn every_document_truncated_at_every_byte() {
    for document in DOCUMENTS {
        for end in 0..=document.len() {
            check(&document[..end]);
        }
    }
}

#[test]
fn line_ends_control_characters_and_byte_order_marks() {
    for document in DOCUMENTS {
        for text in [
            document.replace('\n', "\r\n"),
            document.replace('\n', "\r"),
            document.replace('\n', "\n\r"),
            format!("\u{feff}{document}"),
            format!("\u{feff}\u{feff}{document}"),
            document.replace(' ', "\0"),
            document.replace(' ', "\u{1b}[31m"),
            document.replace(' ', "\u{3000}"),
            document.replace(' ', "\u{85}"),
            document.replace('-', "\u{2028}"),
            document.replace('e', "e\u{301}\u{202e}"),
            document.replacen("---\n", "---\u{3000} \n", 1).replacen("\n---\n", "\n--\n", 1),
        ] {
            check(&text);
            check_edits(&text);
        }
    }
    // The same text with other line ends, or behind a mark, is the same document.
    let windows = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(proposal::parse(&windows(PROPOSAL)).value, proposal::parse(PROPOSAL).value);
    assert_eq!(spec::parse(&windows(SPEC)).value, spec::parse(SPEC).value);
    assert_eq!(tasks::parse(&windows(TASKS)).value, tasks::parse(TASKS).value);
    assert_eq!(
        clarifications::parse(&windows(CLARIFICATIONS)).value,
        clarifications::parse(CLARIFICATIONS).value
    );
    assert_eq!(review::parse(&windows(REVIEW)).value, review::parse(REVIEW).value);
    let id = ChangeId::new("add-login").unwrap();
    assert_eq!(state::parse(&windows(STATE), &id), state::parse(STATE, &id));
}

fn many(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

/// 10,000 tasks that wait for each other, all wrong; the time limit of the test is the bar.
#[test]
fn heavy_ten_thousand_tasks() {
    let task = |n: usize| {
        let (id, next) = (n + 1, (n + 1) % 10_000 + 1);
        format!(
            "### Task 1.{id}: T\n```yaml\nid: \"1.{id}\"\nfile: /x\nspec_ref: auth-flow:R9999\ndepends_on: [\"1.{next}\"]\n```\n"
        )
    };
    let requirement = |n: usize| format!("### R{}: T\nIt MUST be fast.\n", n + 1);
    let text = format!(
        "## 1. Data Layer\n{}## Requirements\n{}",
        many(10_000, task),
        many(9_000, requirement)
    );
    assert_eq!(tasks::parse(&text).value.tasks.len(), 10_000);
    check(&text);
    let boxes = many(10_000, |n| format!("- [ ] 1.{} T\n  Depends: 1.{}\n", n + 1, n + 2));
    assert_eq!(tasks::parse(&boxes).value.tasks.len(), 10_000);
    check(&boxes);
}

#[test]
fn heavy_hundred_thousand_of_anything() {
    let n = 100_000;
    for text in [
        "# \n".repeat(n),
        "## a\n### R1: b\n#### Scenario: c\n".repeat(n / 10),
        "```\n".repeat(n + 1),
        "```yaml\nx\n~~~\n".repeat(n / 10),
        "<!--\n".repeat(n),
        "<!-- a -->\n".repeat(n / 5),
        "- **Severity**: x\n".repeat(n / 5),
        "---\n".repeat(n),
        "### Task x:\n".repeat(n / 10),
        "\n".repeat(n),
        "`".repeat(n),
        "> ".repeat(n),
        // Ever shorter fences, none of which is closed.
        many(1000, |i| format!("{}\n", "`".repeat(1000 - i))),
        // Every key of a map is compared with the others.
        many(n, |i| format!("a{i}: 1\n")),
        format!("---\n{}---\n", many(n / 20, |i| format!("a{i}: 1\n"))),
    ] {
        check(&text);
    }
}

/// Markers of reviews in every arrangement that could make a search start over.
#[test]
fn a_hundred_thousand_markers_of_reviews() {
    let open = |i: usize| format!("<!-- agentd:review {i:016x} -->\n");
    let close = |i: usize| format!("<!-- /agentd:review {i:016x} -->\n");
    let n = 10_000;
    for text in [
        many(n, open),
        many(n, |_| open(1)),
        many(n, close),
        format!("{}{}", many(n, open), many(n, close)),
        format!("```\n{}{}```\n", many(n, open), many(n, close)),
        format!("```\n{}{}```\n", many(n, |_| open(1)), close(1)),
        many(n, |i| open(i) + &close(i)),
    ] {
        check(&text);
    }
}

#[test]
fn lines_of_a_megabyte() {
    let long = "x".repeat(1_000_000);
    for text in [
        long.clone(),
        format!("# {long}\n"),
        format!("---\nid: {long}\n---\n"),
        format!("---\n{long}\n"),
        format!("## 1. Data Layer\n### Task 1.1: {long}\n```yaml\nfile: {long}\n```\n{long}\n"),
        format!("## Requirements\n### R1: x\n{long} MUST {}\n", "fast ".repeat(200_000)),
        format!(
            "## Acceptance Criteria\n### Scenario: a\n- WHEN {}\n",
            "a THEN **WHEN** ".repeat(50_000)
        ),
        format!("## Impact\n- Affected specs: {}\n", "a,".repeat(100_000)),
        format!("## Issues\n### I1: {long}\n- **Severity**: {long}\n"),
        "\"".repeat(1_000_000),
        "é".repeat(500_000),
    ] {
        check(&text);
    }
}

fn bomb(levels: usize) -> String {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..levels {
        let aliases = vec![format!("*a{}", i - 1); 9].join(", ");
        bomb += &format!("a{i}: &a{i} [{aliases}]\n");
    }
    bomb
}

/// Bombs in a frontmatter, and small ones in many task blocks; deep nesting in every notation.
#[test]
fn yaml_bombs_and_deep_nesting() {
    let n = 5_000;
    let stairs = many(1000, |depth| format!("{}a:\n", " ".repeat(depth)));
    let items = many(600, |depth| format!("{}- a:\n", " ".repeat(depth * 2)));
    let mut nested = vec![
        bomb(20),
        format!("a: {}{}\n", "[".repeat(n), "]".repeat(n)),
        format!("a: {}\n", "{a: ".repeat(n)),
        format!("{}a\n", "- ".repeat(n)),
        format!("{}a\n", "? ".repeat(n)),
        format!("a:\n{items}"),
        stairs,
        format!("a: {}x\n", "!t ".repeat(n)),
        format!("<<: {}", bomb(5)),
    ];
    nested.push(format!("affected_specs:\n{}", bomb(8)));
    for yaml in nested {
        check(&yaml);
        check(&format!("---\n{yaml}---\n# T\n"));
        check(&format!("### Task 1.1: T\n```yaml\n{yaml}```\n"));
    }
    let small = bomb(7);
    check(&many(100, |i| format!("### Task 1.{}: T\n```yaml\n{small}file: [\n```\n", i + 1)));
    check(&many(100, |i| format!("### Task 1.{}: T\n```yaml\n{small}file: x\n```\n", i + 1)));
    check(&format!("{}x", "> - ".repeat(n)));
    check(&"- [ ] 1.1 ".repeat(n));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        check(&text);
        check_edits(&text);
    }

    #[test]
    fn random_text_in_the_middle_of_a_document(
        document in prop::sample::select(DOCUMENTS.to_vec()),
        at in any::<prop::sample::Index>(),
        length in 0..40_usize,
        piece in prop_oneof![corpus::nasty(), any::<String>(), "[-:'\"#\\[\\]{}|>&*!% \t\n\r]{0,8}"],
    ) {
        let from = at.index(document.len());
        let to = (from + length).min(document.len());
        let text = format!("{}{piece}{}", &document[..from], &document[to..]);
        check(&text);
        check_edits(&text);
    }
}
