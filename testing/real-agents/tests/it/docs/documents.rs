//! The documents that docs/documents.md shows are sound.

use std::fs;

use real_agents::Sandbox;

use super::page::Page;
use super::places::Places;
use super::repository;
use super::shell::Shell;
use super::story::{self, FirstIssues};

fn page() -> Page {
    Page::read(&repository().join("docs/documents.md"))
}

/// The document with this line in it.
fn document(line: &str) -> String {
    let blocks = page().blocks.into_iter().filter(|block| block.language == "markdown");
    let found = blocks.map(|block| block.text).find(|text| text.contains(line));
    found.unwrap_or_else(|| panic!("docs/documents.md has no document with {line:?}"))
}

/// The spec that is shown.
pub(crate) fn spec() -> String {
    document("type: spec")
}

#[test]
fn the_documents_shown_are_valid() {
    Sandbox::enter(story::script(FirstIssues::default()), |sandbox| {
        let shell = Shell::new(sandbox);
        Places::new(sandbox, &shell).enter("planned");
        let change = shell.project().join("agentd/changes/add-oauth");
        fs::write(change.join("proposal.md"), document("type: proposal")).unwrap();
        fs::write(change.join("specs/auth-flow.md"), spec()).unwrap();
        let other = spec().replace("id: auth-flow", "id: user-model");
        fs::write(change.join("specs/user-model.md"), other).unwrap();
        let long = document("type: tasks");
        let short = document("- [ ] 1.1 Add the user model");
        for tasks in [long, short] {
            fs::write(change.join("tasks.md"), &tasks).unwrap();
            let ran = shell.run("agentd validate add-oauth", false);
            assert_eq!(ran.code, 0, "{tasks}\n{}", ran.stdout);
            let status = shell.run("agentd status add-oauth --json", false).json();
            assert_eq!(status["tasks"]["total"], 1, "{status:#}");
        }
    });
}
