//! The tables of docs/agent-contract.md.

use std::collections::BTreeSet;

use real_agents::Sandbox;
use serde_json::Value;

use super::page::Page;
use super::places::Places;
use super::repository;
use super::shell::Shell;
use super::story::{self, FirstIssues};

/// The rows of the table with this heading: what stands in the code spans of their cells.
fn table(page: &Page, heading: &str) -> Vec<Vec<Vec<String>>> {
    let rows = page.text.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    let spans = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let rows: Vec<_> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(spans).collect())
        .collect();
    assert!(!rows.is_empty(), "{heading}");
    rows
}

#[test]
fn the_keys_of_json_are_as_documented() {
    let page = Page::read(&repository().join("docs/agent-contract.md"));
    // The first verdict is the one that `decide` is asked about.
    let issues = FirstIssues { plan: true, code: false };
    Sandbox::enter(story::script(issues), |sandbox| {
        let shell = Shell::new(sandbox);
        let mut places = Places::new(sandbox, &shell);
        let mut rows = table(&page, "| command | keys beside");
        let waits = |row: &Vec<Vec<String>>| row[0][0].starts_with("agentd decide");
        rows.sort_by_key(|row| !waits(row));
        assert_eq!(rows.iter().filter(|row| waits(row)).count(), 1);
        places.enter("waiting");
        // It takes an agent that is installed; the tests of the probe have some.
        rows.retain(|row| row[0][0] != "agentd doctor --probe");
        for row in rows {
            if !waits(&row) {
                places.enter("planned");
            }
            let command = format!("{} --json 2>/dev/null", row[0][0]);
            let documented: BTreeSet<&str> = row[1].iter().map(String::as_str).collect();
            let ran = shell.run(&command, false);
            let document: Value = serde_json::from_str(&ran.stdout).expect(&command);
            assert_eq!(document["version"], 1, "{command}");
            let keys = document.as_object().unwrap().keys().map(String::as_str);
            let keys: BTreeSet<&str> = keys.filter(|key| *key != "version").collect();
            let optional = |key: &str| page.text.contains(&format!("`{key}` (optional)"));
            let expected: BTreeSet<&str> =
                documented.into_iter().filter(|key| keys.contains(key) || !optional(key)).collect();
            assert_eq!(keys, expected, "{command}");
        }
    });
}
