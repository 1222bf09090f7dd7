//! agentd is killed in front of every system call by which it changes the disk: the journal is whole
//! or one entry short, the next command says which, and repairs it.

use std::fs;
use std::path::PathBuf;

use agentd_core::diagnostic::Severity;
use agentd_core::hash::Digest;
use agentd_core::journal::{self, Entry, Event};
use agentd_core::phase::Phase;
use test_project::{TestProject, write};

use crate::cli::archive_kills::{traced, try_each};

const ID: &str = "add-oauth";
const ROLES: &str = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";

fn project() -> TestProject {
    TestProject::new().root_file("agentd/config.toml", ROLES).change(ID)
}

/// Where a plan waits for a decision.
fn waiting() -> TestProject {
    project().challenged(&[Severity::High])
}

/// The same, and what is decided is signed.
fn waiting_and_signed() -> TestProject {
    let project = waiting().programs(&["git", "ssh-keygen"]);
    let mut keygen = project.any_command("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(project.home().join("key"));
    assert!(keygen.status().unwrap().success());
    write(&project.home().join(".gitconfig"), "[user]\nsigningkey = ~/key\n");
    project.write_root("agentd/config.toml", format!("{ROLES}[policy]\nsign = \"ssh\"\n"));
    project
}

fn copy(project: &TestProject) -> Option<PathBuf> {
    let projects = fs::read_dir(project.home().join(".local/state/agentd/projects")).ok()?;
    Some(projects.flatten().next()?.path().join("journals"))
}

/// The journal of the project, and the copy of it.
fn journals(project: &TestProject) -> [Option<String>; 2] {
    let copy = copy(project).map(|dir| dir.join(format!("{ID}.jsonl")));
    [Some(project.path("journal.jsonl")), copy].map(|path| fs::read_to_string(path?).ok())
}

/// How a kill has left a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// It ends with the state on disk.
    Whole,
    /// The state on disk is the one of the entries that are missing at its end.
    Short,
}

#[track_caller]
fn left(project: &TestProject, at: usize) -> Left {
    let state = Digest::of(project.read("STATE.yaml"));
    let [public, copy] = journals(project);
    let is_last = |entries: &[Entry]| entries.last().is_some_and(|entry| entry.state == state);
    let read = |text: &Option<String>| {
        let text = text.as_deref().unwrap_or_default();
        let journal = journal::parse(text).unwrap_or_else(|error| panic!("call {at}: {error}"));
        assert!(text.is_empty() || text.ends_with('\n'), "call {at}: {text}");
        journal.entries
    };
    let (public, copy) = (read(&public), read(&copy));
    if public.is_empty() && !is_last(&copy) || is_last(&public) {
        return Left::Whole;
    }
    // The last write may be several entries, which have one state.
    let before = copy.iter().rposition(|entry| entry.state != state).map_or(0, |index| index + 1);
    // The first one also takes over a state from before journals.
    let is_first = public.is_empty() && matches!(copy[0].event, Event::Adopted { .. });
    assert!(is_last(&copy) && (is_first || public.len() >= before), "call {at}: {public:?}");
    assert_eq!(public[..], copy[..public.len()], "call {at}");
    Left::Short
}

/// Kills a command in front of each call, each time from the same beginning.
fn whole_or_short(begin: fn() -> TestProject, command: &[&str]) {
    let total = traced(&begin(), command, None);
    let found = try_each(&(0..total).collect::<Vec<_>>(), |at| {
        let project = begin();
        traced(&project, command, Some(at));
        let found = left(&project, at);
        let marked = copy(&project).is_some_and(|dir| dir.join(format!("{ID}.writing")).exists());
        let run = project.run(["status", ID]).exits(0);
        let says = |words: &str| run.stderr.contains(words);
        let said = (
            says("the journal was one entry short, and the entry was added"),
            says("the journal is whole"),
        );
        assert!(found == Left::Whole || marked, "call {at}: nothing makes the next command look");
        let expected = (found == Left::Short, found == Left::Whole && marked);
        assert_eq!(said, expected, "call {at} of {total}: {}", run.stderr);
        // It is repaired: the next command does not warn again, and the journal holds.
        let [public, private] = journals(&project);
        assert_eq!(left(&project, at), Left::Whole, "call {at}");
        if found == Left::Short {
            assert_eq!(public, private, "call {at}");
        }
        let verified = project.run(["verify", ID, "--json"]);
        assert!(!verified.stderr.contains("interrupted"), "call {at}: {}", verified.stderr);
        let claim = verified.json()["changes"][0]["claims"][0].clone();
        let proven = public.is_none() || claim["status"] == "proven";
        assert!(proven, "call {at}: {claim}");
        // And the work goes on, where it was not done.
        if project.state().phase == Phase::Proposed {
            project.run(command.iter().copied()).exits(0);
        }
        let verified = project.run(["verify", ID, "--json"]).exits(0);
        assert_eq!(verified.json()["valid"], true, "call {at}");
        found
    });
    assert!(found.contains(&Left::Whole) && found.contains(&Left::Short), "{found:?}");
}

// contract T6
#[test]
fn heavy_killed_decision_leaves_the_journal_whole_or_one_entry_short() {
    whole_or_short(waiting, &["decide", ID, "fix"]);
}

// contract T6
#[test]
fn heavy_killed_signed_decision_leaves_the_journal_whole_or_one_entry_short() {
    whole_or_short(waiting_and_signed, &["decide", ID, "fix"]);
}

// contract T6
#[test]
fn heavy_killed_call_leaves_the_journal_whole_or_one_entry_short() {
    whole_or_short(project, &["challenge", ID]);
}
