//! `edit_file`, `read_file`, `list_directory`.

use agentd_core::document::{proposal as proposal_doc, spec as spec_doc, tasks as tasks_doc};
use agentd_engine::tools::{self, ActionError, ReadText};
use serde_json::json;

use test_project::TestProject;

use super::{Tools as _, planned, project, read, refused};

#[test]
fn an_edit_changes_its_place_and_the_frontmatter() {
    let project = planned();
    let before = project.read("specs/auth-flow.md");
    project.edit_file("specs/auth-flow.md", "offer Google.", "offer GitHub.").unwrap();
    let after = project.read("specs/auth-flow.md");
    assert_eq!(
        after,
        before.replace("offer Google.", "offer GitHub.").replace("version: 1", "version: 2")
    );
    assert_eq!(spec_doc::parse(&after).value.version, 2);
    project.edit_file("agentd/changes/add-oauth/proposal.md", "Google/GitHub", "GitHub").unwrap();
    let text = project.read("proposal.md");
    let read = proposal_doc::parse(&text).value;
    let (stored, now) = read.place.checksums.0.unwrap();
    assert_eq!((read.version, stored), (2, now));
    project
        .edit_file("tasks.md", "### Task 4.1: Drop the old one", "### Task 4.1: Remove it")
        .unwrap();
    assert_eq!(tasks_doc::parse(&project.read("tasks.md")).value.version, 2);
}

#[test]
fn an_edit_that_does_not_match_once_is_refused_with_help() {
    let project = planned();
    let path = "specs/auth-flow.md";
    let message = refused(project.edit_file(path, "The server MUST offer Facebook.", "x"));
    insta::assert_snapshot!(message, @"
    `old_string` is not in the file; it must match exactly.
    The nearest line is line 22: `The server MUST offer Google.`. Copy the text from read_file.
    ");
    let message = refused(project.edit_file(path, "The server MUST", "x"));
    insta::assert_snapshot!(message, @"
    `old_string` occurs 2 times, in lines 22, 28; it must be unique.
    Send more of the text around the place that you mean.
    ");
    insta::assert_snapshot!(refused(project.edit_file(path, "", "x")), @"
    `old_string` is empty.
    Send the text that is to be replaced, copied from read_file.
    ");
    insta::assert_snapshot!(refused(project.edit_file(path, "Login", "Login")), @"`old_string` and `new_string` are the same.");
    insta::assert_snapshot!(refused(project.edit_file("specs/none.md", "a", "b")), @"
    `specs/none.md` does not exist yet.
    Write it with the create tool of that document first.
    ");
}

#[test]
fn a_broken_file_can_be_fixed_step_by_step_but_not_broken_further() {
    let project = planned();
    let good = project.read("tasks.md");
    let broken = good
        .replace("spec_ref: \"auth-flow:R1\"", "spec_ref: \"auth-flow:R8\"")
        .replace("spec_ref: \"auth-flow:R2\"", "spec_ref: \"auth-flow:R9\"");
    project.write("tasks.md", &broken);
    let message = refused(project.edit_file("tasks.md", "src/models/user.rs", "/etc/passwd"));
    insta::assert_snapshot!(message, @"
    tasks.md was not written and nothing has changed: the text would have 1 problem.
    1. T012 at line 21 (`file: /etc/passwd`): task 1.1: path `/etc/passwd` is absolute; paths are relative to the project. Fix: Write the path relative to the project's root, with `/`.
    Correct the input and call the tool again.
    ");
    project.edit_file("tasks.md", "auth-flow:R8", "auth-flow:R1").unwrap();
    project.edit_file("tasks.md", "auth-flow:R9", "auth-flow:R2").unwrap();
    // What an unreadable block has hidden may come to light.
    project.write("tasks.md", broken.replace("action: MODIFY", "action: [MODIFY"));
    project.edit_file("tasks.md", "action: [MODIFY", "action: MODIFY").unwrap();
}

#[test]
fn reviews_and_ticks_are_not_edited() {
    let project = planned();
    let review = json!({"change_id": "add-oauth", "verdict": "NEEDS_REVISION", "summary": "Not yet.",
        "issues": [{"severity": "high", "title": "T", "description": "Enable users to wait."}]});
    project.with(|session| tools::append_review(session, read(review).unwrap()).unwrap());
    let before = project.read("proposal.md");
    let message = refused(project.edit_file("proposal.md", "NEEDS_REVISION", "APPROVED"));
    insta::assert_snapshot!(message, @"
    `old_string` is only in a review.
    Reviews stay as they were given. Edit the text above them.
    ");
    // The same words in a review do not make those above it ambiguous.
    project.edit_file("proposal.md", "Enable users to", "Let users").unwrap();
    let edited = project.read("proposal.md");
    let forged = before[before.find("<!-- agentd:review").unwrap()..].to_owned();
    let message =
        refused(project.edit_file("proposal.md", "Let users", &format!("Let users\n\n{forged}")));
    insta::assert_snapshot!(message, @"
    This edit would add or change a review in proposal.md.
    Reviews are written with append_review only. Edit the text above them.
    ");
    assert_eq!(project.read("proposal.md"), edited);
    let tasks = project.read("tasks.md");
    let block = &tasks[tasks.find("file: src/models/user.rs").unwrap()..];
    let block = &block[..block.find("pending").unwrap() + 7];
    let message = refused(project.edit_file("tasks.md", block, &block.replace("pending", "done")));
    insta::assert_snapshot!(message, @"
    This edit would mark task 1.1 as done.
    Tasks are ticked with complete_task only, which looks for evidence.
    ");
}

#[test]
fn line_ends_of_the_file_are_kept() {
    let (unix, windows) = (planned(), planned());
    windows.write("proposal.md", windows.read("proposal.md").replace('\n', "\r\n"));
    for project in [&unix, &windows] {
        project.edit_file("proposal.md", "## Why\n\nEnable", "## Why\n\nTo enable").unwrap();
    }
    assert_eq!(windows.read("proposal.md"), unix.read("proposal.md").replace('\n', "\r\n"));
}

fn text(project: &TestProject, path: &str, offset: Option<u64>) -> Result<ReadText, ActionError> {
    let value = json!({"change_id": "add-oauth", "path": path, "offset": offset});
    project.with(|session| tools::read_file(session, &read(value)?))
}

#[test]
fn files_are_found_in_the_change_first_and_then_in_the_project() {
    let project = planned();
    std::fs::write(project.root().join("tasks.md"), "of the project").unwrap();
    std::fs::write(project.root().join("README.md"), "read me").unwrap();
    assert_eq!(text(&project, "tasks.md", None).unwrap().text, project.read("tasks.md"));
    assert_eq!(text(&project, "README.md", None).unwrap().text, "read me");
    let whole = text(&project, "agentd/changes/add-oauth/proposal.md", None).unwrap();
    assert_eq!(whole.text, project.read("proposal.md"));
    insta::assert_snapshot!(refused(text(&project, "nothing.md", None)), @"`nothing.md` does not exist");
    insta::assert_snapshot!(refused(text(&project, "agentd/changes/other/x", None)), @"`agentd/changes/other/x` belongs to the change `other`; this call is about `add-oauth`.");
    insta::assert_snapshot!(refused(text(&project, "specs", None)), @"`agentd/changes/add-oauth/specs` is a directory, not a file");
}

#[test]
fn long_files_come_in_pieces_and_binary_files_do_not() {
    let project = project();
    let long = "aé€𝄞\n".repeat(70_000);
    std::fs::write(project.root().join("long.txt"), &long).unwrap();
    let mut whole = String::new();
    let mut offset = Some(0);
    while let Some(at) = offset {
        let piece = text(&project, "long.txt", Some(at)).unwrap();
        assert!(piece.text.len() as u64 <= tools::READ_CAP);
        whole.push_str(&piece.text);
        offset = piece.next_offset;
    }
    assert!(whole == long);
    std::fs::write(project.root().join("a.bin"), b"abc\0def").unwrap();
    std::fs::write(project.root().join("b.bin"), b"abc\xff\xfedef").unwrap();
    std::fs::write(project.root().join("cut.txt"), b"abc\xe2\x82").unwrap();
    let binary = ["a.bin", "b.bin", "cut.txt"].map(|file| refused(text(&project, file, None)));
    insta::assert_snapshot!(binary.join("\n"), @"
    `a.bin` is a binary file, not UTF-8 text.
    `b.bin` is a binary file, not UTF-8 text.
    `cut.txt` is a binary file, not UTF-8 text.
    ");
    insta::assert_snapshot!(refused(text(&project, "long.txt", Some(99_999_999))), @"`long.txt` has 770000 bytes; there is nothing at offset 99999999.");
}

#[cfg(unix)]
#[test]
fn a_link_inside_the_project_shows_no_secret() {
    use std::os::unix::fs::symlink;
    let project = project();
    std::fs::write(project.root().join(".env"), "KEY=1").unwrap();
    std::fs::write(project.root().join("plain"), "ok").unwrap();
    symlink(".env", project.root().join("notes.txt")).unwrap();
    symlink("plain", project.root().join("link.txt")).unwrap();
    symlink("/etc/hostname", project.root().join("out.txt")).unwrap();
    insta::assert_snapshot!(refused(text(&project, "notes.txt", None)), @"
    `.env` looks like a secret, and secrets are not shown to agents.
    Work without it; if a value is needed, ask for an example file.
    ");
    insta::assert_snapshot!(refused(text(&project, ".env", None)), @"
    `.env` looks like a secret, and secrets are not shown to agents.
    Work without it; if a value is needed, ask for an example file.
    ");
    assert_eq!(text(&project, "link.txt", None).unwrap().text, "ok");
    refused(text(&project, "out.txt", None));
}

#[test]
fn directories_are_listed_without_hidden_files() {
    let project = planned();
    std::fs::create_dir_all(project.root().join(".git/objects")).unwrap();
    std::fs::create_dir_all(project.root().join("src")).unwrap();
    let list = |path: &str| {
        let value = json!({"change_id": "add-oauth", "path": path});
        project.with(|session| tools::list_directory(session, &read(value)?))
    };
    assert_eq!(list(".").unwrap().entries, ["agentd/", "src/"]);
    assert_eq!(list("agentd").unwrap().entries, ["changes/", "config.toml"]);
    assert_eq!(list("specs").unwrap().entries, ["auth-flow.md", "user-model.md"]);
    assert_eq!(list("specs").unwrap().path.as_str(), "agentd/changes/add-oauth/specs");
    refused(list(".git"));
    refused(list("agentd/.locks"));
    refused(list("nowhere"));
}
