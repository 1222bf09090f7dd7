//! `parse(render(x)) == x` for every document, whatever the texts in it look like.

use agentd_core::diagnostic::Diagnostic;
use agentd_core::document::questions::{self, Question, Questions, Suggestion};
use agentd_core::document::review_block::ReviewBlock;
use agentd_core::document::{
    answers, clarifications, comments, proposal, review, review_block, rewrite, spec, tasks,
};
use agentd_core::ids::ChangeId;
use proptest::prelude::*;

use crate::corpus;

/// Fewer than usual: documents are large, and the whole suite is run after every edit.
const CASES: u32 = 128;

/// The findings of a parser; a document in normal form has none.
fn structural(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|d| format!("{} {}", d.rule.code, d.message)).collect()
}

macro_rules! round_trip {
    ($name:ident, $module:ident) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(CASES))]
            #[test]
            fn $name(document in corpus::$module()) {
                let text = $module::render(&document);
                let parsed = $module::parse(&text);
                prop_assert_eq!(&parsed.value, &document, "{}", text);
                prop_assert_eq!(structural(&parsed.diagnostics), Vec::<String>::new(), "{}", text);
                let windows = text.replace('\n', "\r\n");
                prop_assert_eq!(&$module::parse(&windows).value, &document, "with CRLF");
                prop_assert_eq!($module::render(&parsed.value), text, "rendering is stable");
            }
        }
    };
}

round_trip!(proposals_come_back, proposal);
round_trip!(specs_come_back, spec);
round_trip!(tasks_come_back, tasks);
round_trip!(clarifications_come_back, clarifications);
round_trip!(reviews_come_back, review);
round_trip!(comments_come_back, comments);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]
    #[test]
    fn appended_reviews_change_nothing_else(
        document in corpus::proposal(),
        hand_written in corpus::nasty(),
        first in corpus::review_block(),
        second in corpus::review_block(),
    ) {
        let text = format!("{}\n{hand_written}\n", proposal::render(&document));
        let with_one = review_block::append(&text, &first);
        let with_both = review_block::append(&with_one, &second);
        prop_assert!(with_both.starts_with(&with_one) && with_one.starts_with(&text));
        let reviews = proposal::parse(&with_both).value.reviews;
        let last: Vec<&ReviewBlock> = reviews.iter().rev().take(2).collect();
        prop_assert_eq!(last, vec![&second, &first]);
        prop_assert_eq!(proposal::reviewed_text(&with_both), proposal::reviewed_text(&text));
    }

    #[test]
    fn a_rewritten_proposal_keeps_reviews_and_notes(
        old in corpus::proposal(),
        new in corpus::proposal(),
        notes in "[a-z \n]{0,40}",
    ) {
        let text = proposal::render(&old);
        let with_notes = text.replacen("\n## Why\n", &format!("\n## Notes\n\n{notes}\n\n## Why\n"), 1)
            .replacen("type: proposal\n", "# mine\nowner: me # still\ntype: proposal\n", 1);
        let rewritten = rewrite::proposal(&with_notes, &new);
        let parsed = proposal::parse(&rewritten).value;
        let expected = proposal::Proposal {
            reviews: old.reviews.clone(),
            created_at: new.created_at.or(old.created_at),
            updated_at: new.updated_at.or(old.updated_at),
            ..new
        };
        prop_assert_eq!(&parsed, &expected, "{}", rewritten);
        prop_assert!(rewritten.contains("\n## Notes\n\n"), "{}", rewritten);
        prop_assert!(rewritten.contains(&notes), "{}", rewritten);
        prop_assert!(rewritten.contains("# mine\nowner: me # still\n"), "{}", rewritten);
    }

    #[test]
    fn a_rewritten_spec_keeps_other_sections(old in corpus::spec(), new in corpus::spec()) {
        let text = spec::render(&old).replacen("\n## Requirements\n", "\n## Rationale\n\nMine.\n\n## Requirements\n", 1);
        let rewritten = rewrite::spec(&text, &new);
        let parsed = spec::parse(&rewritten).value;
        let expected = spec::Spec {
            created_at: new.created_at.or(old.created_at),
            updated_at: new.updated_at.or(old.updated_at),
            removes: if new.removes.is_empty() { old.removes.clone() } else { new.removes.clone() },
            renames: if new.renames.is_empty() { old.renames.clone() } else { new.renames.clone() },
            ..new
        };
        prop_assert_eq!(&parsed, &expected, "{}", rewritten);
        prop_assert!(rewritten.contains("\n## Rationale\n\nMine.\n\n"), "{}", rewritten);
    }

    #[test]
    fn questions_come_back_and_can_be_answered(texts in prop::array::uniform4(corpus::nasty())) {
        let [asked, label, means, answer] = texts;
        let named = |name: &str| Suggestion {
            label: format!("{name} {label}").as_str().into(),
            description: format!("It {means}").as_str().into(),
        };
        let question = |header: &str| Question {
            header: header.into(),
            question: format!("What {asked}").as_str().into(),
            options: vec![named("a"), named("b")],
            multi_select: true,
        };
        let document = Questions {
            change_id: ChangeId::new("add-login").unwrap(),
            proposed_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            questions: ["One", "Two", "Three"].map(question).to_vec(),
        };
        let text = questions::render(&document);
        let read = questions::parse(&text, &document.change_id);
        prop_assert_eq!(read.as_ref(), Ok(&document), "{}", text);
        let given = serde_json::json!({ "One": format!("a {label}"), "Two": [format!("x {answer}")], "Three": "y" });
        let answered = answers::parse(&given.to_string(), Some(&document)).unwrap();
        prop_assert_eq!(&answered[0], &document.questions[0].answered(&[questions::Pick::Suggested(0)]));
        let own = questions::Pick::Own(format!("x {answer}").as_str().into());
        prop_assert_eq!(&answered[1], &document.questions[1].answered(&[own]));
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in corpus::nasty(), more in any::<String>()) {
        for text in [text.clone(), more.clone(), format!("---\n{text}\n---\n{more}"), format!("{more}\n{text}")] {
            let _ = (proposal::parse(&text), spec::parse(&text), tasks::parse(&text));
            let _ = (clarifications::parse(&text), review::parse(&text), comments::parse(&text));
        }
    }
}
