//! The table of what proves the contract: every id has a row, every test in it exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::Result;
use crate::workspace::Workspace;

const IDS: &str = "docs/contract.md";
const TABLE: &str = "testing/coverage.md";

/// Compares the table with the ids and with the tests of the workspace.
pub(super) fn check(
    workspace: &Workspace,
    files: &[String],
    problems: &mut Vec<String>,
) -> Result<()> {
    let read = |file: &str| {
        fs::read_to_string(workspace.root.join(file))
            .map_err(|error| format!("cannot read {file}: {error}"))
    };
    let contract = read(IDS)?;
    let known = ids_of(&contract);
    let mut tests = BTreeSet::new();
    for file in
        files.iter().filter(|file| Path::new(file).extension().is_some_and(|end| end == "rs"))
    {
        let text = read(file)?;
        tests.extend(tests_in(&text));
        for (line, id) in cited(&text) {
            if !known.contains(id) {
                problems.push(format!("{file}:{line}: {id} is not in {IDS}"));
            }
        }
    }
    compare(&known, &read(TABLE)?, &tests, problems);
    Ok(())
}

/// The ids of the contract: those that the page has anchors for.
fn ids_of(contract: &str) -> BTreeSet<&str> {
    let anchored = contract.lines().filter_map(|line| {
        let (anchor, rest) = line.strip_prefix("| <a id=\"")?.split_once("\"></a>")?;
        let id = rest.split(' ').next()?;
        (anchor == id.to_ascii_lowercase()).then_some(id)
    });
    anchored.collect()
}

/// The ids that comments cite, with their lines: alone in a comment, or in parentheses.
fn cited(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let comment = comment.trim_start_matches(['/', '!']).trim();
        let groups = comment.split('(').skip(1).filter_map(|rest| rest.split(')').next());
        for group in groups.chain([comment]) {
            let ids: Vec<&str> = group.split(", ").collect();
            if ids.iter().all(|id| is_id(id)) {
                found.extend(ids.into_iter().map(|id| (number, id)));
            }
        }
    }
    found
}

/// Whether a word looks like an id of the contract. `R1` is also the id of a requirement in any
/// spec, so those are left out.
fn is_id(word: &str) -> bool {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let letters = word.strip_suffix(digits).unwrap_or_default();
    ["C", "E", "P", "PR", "RP", "WF", "T"].contains(&letters)
        && digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.len() < 4
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn compare(
    ids: &BTreeSet<&str>,
    table: &str,
    tests: &BTreeSet<String>,
    problems: &mut Vec<String>,
) {
    let rows = rows(table);
    for id in ids {
        if !rows.iter().any(|(_, row, _)| row == id) {
            problems
                .push(format!("{TABLE}: no row for {id}; name its tests, or say `none:` and why"));
        }
    }
    let mut seen = BTreeSet::new();
    for (line, row, proof) in rows {
        let looks_like_an_id =
            !row.contains(' ') && row.ends_with(|last: char| last.is_ascii_digit());
        if looks_like_an_id && !ids.contains(row) {
            problems.push(format!("{TABLE}:{line}: {row} is not in {IDS}"));
        }
        if !seen.insert(row) {
            problems.push(format!("{TABLE}:{line}: {row} has two rows; make it one"));
        }
        let names: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        let excused = proof.trim().strip_prefix("none:").is_some_and(|why| why.trim().len() > 10);
        if names.is_empty() && !excused {
            problems.push(format!("{TABLE}:{line}: {row} has no test; say `none:` and why"));
        }
        for name in names.iter().filter(|name| !tests.contains(**name)) {
            problems
                .push(format!("{TABLE}:{line}: no test `{name}` runs: it is missing or ignored"));
        }
    }
}

/// The rows of the tables, with their line, their first and their second column.
fn rows(table: &str) -> Vec<(usize, &str, &str)> {
    let lines = table.lines().zip(1..);
    lines
        .filter_map(|(line, number)| {
            let (first, second) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
            (second != "tests").then_some((number, first, second))
        })
        .collect()
}

/// The functions that are tests and run: those behind `#[test]` without `#[ignore]`, those in
/// `proptest!`, and those that `for_every_cli!` makes tests of.
fn tests_in(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let rest = line.trim_start().strip_prefix("fn ")?;
        Some(rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()?.to_owned())
    };
    let mut found = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") {
            marked = true;
        } else if line.starts_with("#[ignore") {
            marked = false;
        } else if marked && let Some(name) = name(line) {
            found.push(name);
            marked = false;
        }
    }
    for piece in text.split("for_every_cli!").skip(1) {
        let list = piece.split([')', '}', ']']).next().unwrap_or_default();
        let names = list.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        found.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(ids: &str, table: &str) -> Vec<String> {
        let source = "#[test]\n#[should_panic]\nfn it_works() {}\nfn helper() {}\n\
            #[test]\n#[ignore = \"slow\"]\nfn never_runs() {}\nfor_every_cli!(twice, thrice);";
        let mut problems = Vec::new();
        let ids: BTreeSet<&str> = ids.split(' ').collect();
        compare(&ids, table, &tests_in(source).into_iter().collect(), &mut problems);
        problems
    }

    #[test]
    fn a_row_with_tests_that_exist_or_with_a_reason_is_fine() {
        let table = "| id | tests |\n|---|---|\n| A1 | `it_works` `thrice` |\n| A2 | none: nobody can observe it |\n\
            | A story of more words | `twice` |\n";
        assert_eq!(problems("A1 A2", table), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_unknown_or_unproven_is_named() {
        let table = "| A1 | `helper` `never_runs` |\n| A1 | none: |\n| A9 | `it_works` |\n";
        let expected = [
            "testing/coverage.md: no row for A2; name its tests, or say `none:` and why",
            "testing/coverage.md:1: no test `helper` runs: it is missing or ignored",
            "testing/coverage.md:1: no test `never_runs` runs: it is missing or ignored",
            "testing/coverage.md:2: A1 has two rows; make it one",
            "testing/coverage.md:2: A1 has no test; say `none:` and why",
            "testing/coverage.md:3: A9 is not in docs/contract.md",
        ];
        assert_eq!(problems("A1 A2", table), expected);
    }

    #[test]
    fn ids_are_read_from_the_page_and_from_comments() {
        let page =
            "| ID | Requirement |\n| <a id=\"c12\"></a>C12 | Rounds. |\n| C13 | No anchor. |\n";
        assert_eq!(ids_of(page).into_iter().collect::<Vec<_>>(), ["C12"]);
        let source = "/// Rounds (C12, P2), and a spec (R1).\n// E2.4\nlet x = (1); // not here\n";
        assert_eq!(cited(source), [(1, "C12"), (1, "P2"), (2, "E2.4")]);
    }
}
