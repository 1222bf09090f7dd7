use proptest::prelude::*;

use super::*;
use agentd_core::check::{self, MainSpecs};
use agentd_core::documents::{Documents, Source};
use agentd_core::layout::ChangeFile;
use agentd_core::span::Uncompared;
use agentd_core::text::Prose;

fn brief(description: &str) -> Brief {
    Brief {
        change: ChangeId::new("add-login").unwrap(),
        description: description.to_owned(),
        answers: Vec::new(),
        survey: Survey::default(),
        main_specs: Vec::new(),
        extras: Extras::default(),
    }
}

#[test]
fn a_spec_is_named_after_the_change_or_a_main_spec() {
    let named = |change: &str, main: &[&str]| {
        let mut brief = brief("x");
        brief.change = ChangeId::new(change).unwrap();
        brief.main_specs =
            main.iter().map(|id| (SpecId::new(id).unwrap(), RequirementId::new(3))).collect();
        brief.spec_id().to_string()
    };
    assert_eq!(named("add-login", &[]), "login");
    assert_eq!(named("add", &[]), "add");
    assert_eq!(named("add-login-lock", &["login", "lock", "auth"]), "login");
    assert_eq!(named("fix-user-export", &["user-export", "user"]), "user-export");
}

#[test]
fn figures_are_tried_below_and_at_their_limit() {
    let spec = spec(&brief("Lock the account after 5 attempts"), &SpecId::new("login").unwrap());
    let text = spec.to_string();
    assert!(text.contains("a count of 5 where") && text.contains("a count of 4 where"), "{text}");
    assert!(text.contains("The system MUST lock the account after 5 attempts."), "{text}");
}

#[test]
fn what_is_vague_is_quoted_and_named_as_unsettled() {
    let brief = brief("Make search fast");
    let text = spec(&brief, &brief.spec_id()).to_string();
    assert!(text.contains("`Make search fast`") && text.contains("says no figure"), "{text}");
    assert_eq!(unsettled("a TODO list", &[]).len(), 1);
    let asked = questions(&brief.change, "Make search fast");
    assert_eq!(asked["questions"].as_array().unwrap().len(), 4);
}

#[test]
fn every_change_finds_files_by_their_names() {
    let mut brief = brief("Add login with email");
    let file = |path: &str, text: &str| {
        let kind = agentd_rank::Kind::Source;
        (agentd_rank::File { path: path.to_owned(), size: 0, mtime: 0, kind }, text.to_owned())
    };
    brief.survey = Survey::new([
        file("src/login.rs", "pub fn log_in() {}"),
        file("src/main.rs", "fn main() {}"),
    ]);
    let proposal = proposal(&brief);
    assert_eq!(proposal["impact"]["affected_code"], json!(["src/login.rs"]));
    assert!(proposal["why"].as_str().unwrap().contains("`src/login.rs` defines `log_in`"));
}

#[test]
fn answers_become_requirements_and_settle_what_was_vague() {
    let mut brief = brief("Make search fast");
    assert_eq!(unsettled(&brief.description, &brief.answers).len(), 1);
    brief.answers = vec![Answered {
        topic: Line::new("Figure"),
        question: Prose::new("The description says \"fast\": which figure?"),
        answer: Prose::new("Within 1 second"),
        rationale: Prose::default(),
        place: Uncompared::default(),
    }];
    assert_eq!(unsettled(&brief.description, &brief.answers), Vec::<String>::new());
    let text = spec(&brief, &brief.spec_id()).to_string();
    assert!(text.contains("\"R2\"") && text.contains("`Within 1 second`"), "{text}");
}

proptest! {
    /// Whatever a person writes: drafting never panics, and the texts fit into the tools.
    #[test]
    fn anything_can_be_drafted(text in "[\\PC\n]{0,300}") {
        let brief = brief(&text);
        let id = brief.spec_id();
        let drafted = spec(&brief, &id);
        prop_assert!(!drafted["requirements"].as_array().unwrap().is_empty());
        for requirement in drafted["requirements"].as_array().unwrap() {
            let words = requirement["description"].as_str().unwrap();
            prop_assert!(check::open_points(words).is_empty());
            prop_assert!(requirement["title"].as_str().unwrap().chars().count() <= 200);
        }
        prop_assert!(proposal(&brief)["why"].as_str().unwrap().len() <= 20_000);
    }

    /// Fixing a spec leaves nothing that could be fixed.
    #[test]
    fn fixing_twice_changes_nothing(text in "(### R[1-3]: [a-z]{0,4}\n([a-z ]{0,6}\n)?){0,3}## Acceptance Criteria\n(### Scenario: [ab]\n(- \\*\\*WHEN\\*\\* x\n)?){0,3}") {
        let text = format!("## Overview\nx\n## Requirements\n{text}");
        let parsed = agentd_core::document::spec::parse(&text).value;
        let (once, _) = fixed_spec(&parsed);
        let (_, notes) = fixed_spec(&once);
        prop_assert_eq!(notes, Vec::<String>::new());
    }
}

#[test]
fn a_fixed_spec_is_free_of_what_can_be_fixed() {
    let text = "---\nid: a\ntype: spec\ntitle: A\nversion: 1\n---\n# Specification: A\n## Overview\nx\n## Requirements\n### R1: Users log in\nUsers log in.\n### R2: empty\n## Acceptance Criteria\n### Scenario: S\n- **WHEN** x\n### Scenario: S\n- **THEN** y\n";
    let id = SpecId::new("a").unwrap();
    let parsed = agentd_core::document::spec::parse(text).value;
    let (fixed, notes) = fixed_spec(&parsed);
    assert!(notes.len() >= 6, "{notes:?}");
    let rendered = agentd_core::document::spec::render(&fixed);
    let file = ChangeFile::Spec(id);
    let texts = [(file.clone(), Source::Text(rendered))];
    let documents = Documents::read(ChangeId::new("c").unwrap(), texts);
    let reports = documents.findings(&MainSpecs::new(), &Extras::default());
    let found = check::of_file(&reports, &file);
    let bad: Vec<_> =
        found.iter().filter(|d| d.severity() != agentd_core::diagnostic::Severity::Low).collect();
    assert!(bad.is_empty(), "{bad:?}");
}
