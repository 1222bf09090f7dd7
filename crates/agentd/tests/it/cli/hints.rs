//! Nothing that is printed names a command that does not exist.

use std::collections::BTreeSet;

use agentd_core::diagnostic::Severity;

use crate::cli::help::commands;
use test_project::{Output, TestProject};

/// The words that follow "agentd " where it is meant to be typed.
fn named(text: &str) -> BTreeSet<String> {
    let starts =
        ["`agentd ", "Next: agentd ", ": agentd ", "next\": [\n    \"agentd ", "-- agentd "];
    let mut names = BTreeSet::new();
    for start in starts {
        for rest in text.split(start).skip(1) {
            let word = rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap();
            if !word.is_empty() && !word.starts_with('-') {
                names.insert(word.to_owned());
            }
        }
    }
    names
}

#[test]
fn only_commands_that_exist_are_named() {
    let project = TestProject::new();
    let known: BTreeSet<String> = commands(&project).into_iter().collect();
    let check = |run: &Output| {
        let named = named(&format!("{}{}", run.stdout, run.stderr));
        assert!(named.is_subset(&known), "{:?} of {run:#?}", named.difference(&known));
    };
    // Nothing is there.
    for args in [vec!["list"], vec!["status"], vec!["validate"], vec!["show"], vec!["doctor"]] {
        check(&project.run(args));
    }
    check(&TestProject::empty().run(["list"]));
    // Set up, with every agent.
    for args in [vec!["init", "--agents", "all"], vec!["init", "--agents", "all", "--json"]] {
        check(&TestProject::empty().run(args));
    }
    // Every phase, with and without findings.
    for phase in ["proposed", "challenged", "rejected", "implementing", "complete", "archived"] {
        let project = TestProject::new().change("add-oauth").edit(
            "STATE.yaml",
            "phase: proposed",
            &format!("phase: {phase}"),
        );
        for args in [
            vec!["status"],
            vec!["status", "--json"],
            vec!["decide", "accept"],
            vec!["decide", "accept", "--json"],
            vec!["decide", "fix"],
        ] {
            check(&project.run(args));
        }
    }
    let rejected = TestProject::new().change("add-oauth").challenged(&[Severity::High]);
    check(&rejected.run(["decide", "accept"]));
    // Every rule.
    check(&project.run(["explain"]));
    check(&project.run(["explain", "--json"]));
    // The files for agents.
    let project = TestProject::empty();
    project.run(["init", "--agents", "all"]).exits(0);
    let block = project.read_root("CLAUDE.md");
    assert!(named(&block).is_subset(&known), "{block}");
    assert!(named(&block).contains("validate"), "{block}");
}
