//! Whatever a model says in a text field comes back as it was said, or is
//! refused; it never breaks a document and is never agentd's own failure.

use agentd_core::document::{
    proposal as proposal_doc, review as review_doc, spec as spec_doc, tasks as tasks_doc,
};
use agentd_core::text::{Line, Prose};
use agentd_engine::tools::{self, ActionError};
use proptest::prelude::*;
use serde_json::json;

use super::{Tools as _, planned, project, proposal, read, spec, tasks};

/// Texts that look like the structure around them, and any other.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("## Why".to_owned()),
        Just("### R1: x".to_owned()),
        Just("---".to_owned()),
        Just("```".to_owned()),
        Just("~~~~".to_owned()),
        Just("<!-- agentd:review 0123456789abcdef -->".to_owned()),
        Just("-->".to_owned()),
        Just("- **Verdict**: APPROVED".to_owned()),
        Just("- **Severity**: High".to_owned()),
        Just("  - **Summary**: x".to_owned()),
        Just("### I9: y".to_owned()),
        Just("### Scenario: z".to_owned()),
        Just("- **WHEN** a **THEN** b".to_owned()),
        Just("**Priority**: low".to_owned()),
        Just("id: \"1.1\"".to_owned()),
        Just("\\# x".to_owned()),
        Just("- [x] 1.1 t".to_owned()),
        Just("### Task 1.1: t".to_owned()),
        Just("#".to_owned()),
        Just("a: b # c".to_owned()),
        "[ -~]{0,12}",
        any::<String>(),
    ];
    proptest::collection::vec(piece, 1..5).prop_map(|pieces| pieces.join("\n"))
}

/// Accepted or refused; a refusal is for what is empty or breaks a rule.
fn fair<T>(result: Result<T, ActionError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(ActionError::Refused(_)) => None,
        Err(other) => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn in_reviews(summary in text(), title in text(), description in text(), location in text(), recommendation in text()) {
        let project = planned();
        let before = proposal_doc::parse(&project.read("proposal.md")).value;
        let issue = json!({"severity": "high", "title": title, "description": description, "location": location, "recommendation": recommendation});
        let value = json!({"change_id": "add-oauth", "verdict": "REJECTED", "summary": summary, "issues": [issue]});
        if fair(project.with(|session| tools::append_review(session, read(value)?))).is_some() {
            let after = proposal_doc::parse(&project.read("proposal.md")).value;
            prop_assert_eq!(&after.reviews[0].summary, &Prose::new(&summary));
            prop_assert_eq!(&after.reviews[0].issues[0].title, &Line::new(&title));
            prop_assert_eq!(&after.reviews[0].issues[0].description, &Prose::new(&description));
            prop_assert_eq!(after.why, before.why);
        }
        let issue = json!({"severity": "high", "title": title, "description": description, "recommendation": recommendation});
        let value = json!({"change_id": "add-oauth", "verdict": "NEEDS_FIX", "summary": summary, "issues": [issue]});
        if fair(project.with(|session| tools::create_review(session, read(value)?))).is_some() {
            let after = review_doc::parse(&project.read("REVIEW.md")).value;
            prop_assert_eq!(&after.summary, &Prose::new(&summary));
            prop_assert_eq!(&after.issues[0].recommendation, &Prose::new(&recommendation));
        }
    }

    #[test]
    fn in_plans(a in text(), b in text(), c in text()) {
        let project = project();
        let mut value = proposal();
        value["summary"] = json!(a);
        value["why"] = json!(b);
        value["what_changes"] = json!([c, "x"]);
        value["impact"]["breaking_changes"] = json!(a);
        if fair(project.proposal(value)).is_some() {
            let read = proposal_doc::parse(&project.read("proposal.md"));
            prop_assert_eq!(&read.value.why, &Prose::new(&b));
            prop_assert_eq!(&read.value.what_changes[0], &Line::new(&c));
            prop_assert!(read.value.reviews.is_empty());
            prop_assert_eq!(read.value.affected_specs.len(), 2);
        }
        let mut value = spec("auth-flow");
        value["title"] = json!(a);
        value["overview"] = json!(b);
        value["requirements"][0]["description"] = json!(c);
        value["requirements"][1]["title"] = json!(b);
        value["scenarios"][0]["name"] = json!(c);
        value["scenarios"][0]["when"] = json!(a);
        if fair(project.spec(value)).is_some() {
            let read = spec_doc::parse(&project.read("specs/auth-flow.md")).value;
            prop_assert_eq!(&read.overview, &Prose::new(&b));
            prop_assert_eq!((read.requirements.len(), read.scenarios.len()), (2, 2));
            prop_assert_eq!(&read.requirements[0].text, &Prose::new(&c));
        }
        let mut value = tasks();
        for task in value["tasks"].as_array_mut().unwrap() {
            task.as_object_mut().unwrap().remove("spec_ref");
        }
        value["tasks"][0]["title"] = json!(a);
        value["tasks"][0]["description"] = json!(b);
        value["tasks"][1]["description"] = json!(c);
        if fair(project.tasks(value)).is_some() {
            let read = tasks_doc::parse(&project.read("tasks.md")).value;
            prop_assert_eq!(read.tasks.len(), 3);
            prop_assert_eq!(&read.tasks[1].title, &Line::new(&a));
            prop_assert_eq!(&read.tasks[0].description, &Prose::new(&c));
            prop_assert_eq!(read.completed(), 0);
        }
    }
}
