//! Documents that people edit in place.

use agentd_core::diagnostic::Severity;
use agentd_core::document::comments::Anchor;
use agentd_core::hash::Digest;
use agentd_core::layout::ChangeFile;
use agentd_engine::tools::{
    ActionError, DocumentEdit, EditError, Written, check_edit, edit_document, editable,
};
use test_project::{TestProject, now};

use super::planned;

fn at(text: &str) -> Anchor {
    let Ok(at) = text.parse();
    at
}

fn spec() -> ChangeFile {
    ChangeFile::Spec("auth-flow".parse().unwrap())
}

/// What a person sees of a part.
fn seen(project: &TestProject, file: &ChangeFile, at: &Anchor) -> (String, Digest) {
    editable(&project.read(file.path().as_str()), file, at).unwrap()
}

fn write(
    project: &TestProject,
    file: &ChangeFile,
    at: &Anchor,
    seen: &Digest,
    text: &str,
) -> Result<Written, EditError> {
    let edit = DocumentEdit { file, at, seen, text };
    edit_document(&project.store(), &project.id(), &edit, "ada", &project.holder(), now())
}

#[test]
fn a_part_is_edited_and_the_rest_stays() {
    let project = planned().about("add-oauth");
    let before = project.read("specs/auth-flow.md");
    let (file, at) = (spec(), at("R1"));
    let (text, digest) = seen(&project, &file, &at);
    assert!(text.starts_with("### R1: Provider\n"), "{text}");
    // As a browser sends it.
    let edited = text.replace("Google", "Google and GitHub").replace('\n', "\r\n");
    let written = write(&project, &file, &at, &digest, &edited).unwrap();
    assert_eq!(written.path.as_str(), "agentd/changes/add-oauth/specs/auth-flow.md");
    let after = project.read("specs/auth-flow.md");
    let expected = before.replace("offer Google", "offer Google and GitHub");
    let strip = |text: &str| {
        let moves = |line: &&str| !line.starts_with("version:") && !line.starts_with("updated_at:");
        text.lines().filter(moves).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(strip(&after), strip(&expected));
    assert!(after.contains("version: 2"), "{after}");
    // Nothing was changed: nothing is written.
    let (text, digest) = seen(&project, &file, &at);
    write(&project, &file, &at, &digest, &text).unwrap();
    assert_eq!(project.read("specs/auth-flow.md"), after);
}

#[test]
fn an_edit_of_what_somebody_else_has_edited_is_refused() {
    let project = planned().about("add-oauth");
    let (file, at) = (spec(), at("R1"));
    let (text, digest) = seen(&project, &file, &at);
    // Elsewhere in the document: that is no contradiction.
    project.replace("specs/auth-flow.md", "# Specification:", "# Specification: The");
    write(&project, &file, &at, &digest, &text.replace("Google", "GitHub")).unwrap();
    let before = project.read("specs/auth-flow.md");
    let stale = write(&project, &file, &at, &digest, &text.replace("Google", "Nobody"));
    assert!(matches!(stale, Err(EditError::Stale { .. })), "{stale:?}");
    assert_eq!(project.read("specs/auth-flow.md"), before);
    let gone = write(&project, &file, &self::at("R9"), &digest, "x");
    assert!(matches!(gone, Err(EditError::NoSuchPart { .. })), "{gone:?}");
}

#[test]
fn an_edit_that_breaks_a_rule_is_refused() {
    let project = planned().about("add-oauth");
    let (file, at) = (spec(), at("R1"));
    let (text, digest) = seen(&project, &file, &at);
    let before = project.read("specs/auth-flow.md");
    let broken = text.replace("### R1", "### R2");
    let store = project.store();
    let snapshot = || store.change(&project.id()).unwrap().snapshot().unwrap();
    let found = check_edit(&store, &snapshot(), &file, &at, &broken).unwrap();
    assert!(found.iter().any(|it| it.severity == Severity::High), "{found:?}");
    let refused = write(&project, &file, &at, &digest, &broken);
    let Err(EditError::Action(ActionError::Refused(refusal))) = refused else {
        panic!("{refused:?}")
    };
    assert!(!refusal.findings.is_empty());
    let long = "x".repeat(2 << 20);
    assert!(write(&project, &file, &at, &digest, &long).is_err());
    assert!(check_edit(&store, &snapshot(), &file, &at, &long).is_err());
    assert_eq!(project.read("specs/auth-flow.md"), before);
    // Places are lines of what is edited.
    let vague = text.replace("The server MUST", "\n\nThe server should perhaps");
    let found = check_edit(&store, &snapshot(), &file, &at, &vague).unwrap();
    assert!(found.iter().any(|it| it.line.is_some()), "{found:?}");
    let lines = vague.lines().count();
    assert!(found.iter().filter_map(|it| it.line).all(|line| (1..=lines).contains(&line)));
}

#[test]
fn reviews_and_records_cannot_be_edited() {
    let project = TestProject::new().change("add-oauth").challenged(&[Severity::Low]);
    let file = ChangeFile::Proposal;
    let (text, digest) = seen(&project, &file, &Anchor::Document);
    assert!(!text.contains("Not yet."), "{text}");
    let proposal = project.read("proposal.md");
    let block = proposal.split_once("<!--").unwrap().1;
    let forged = format!("{text}\n<!--{}", block.replace("NEEDS_REVISION", "APPROVED"));
    let refused = write(&project, &file, &Anchor::Document, &digest, &forged);
    assert!(matches!(refused, Err(EditError::Action(_))), "{refused:?}");
    for file in [ChangeFile::State, ChangeFile::Review, ChangeFile::Comments, ChangeFile::Journal] {
        let refused = write(&project, &file, &Anchor::Document, &digest, "x");
        assert!(matches!(refused, Err(EditError::NoSuchPart { .. })), "{refused:?}");
        assert_eq!(editable("x", &file, &Anchor::Document), None);
    }
    // The review stays when the text above it is edited.
    write(&project, &file, &Anchor::Document, &digest, &text.replace("## Why", "## Why\n\nSo."))
        .unwrap();
    let after = project.read("proposal.md");
    assert!(after.contains("Not yet.") && after.contains("So."), "{after}");
}
