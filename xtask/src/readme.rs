//! The step `readme`: runs what the README and docs/ say about this repository itself, the
//! blocks of commands that are marked with the word `repository`. All other blocks are run by
//! the tests in testing/real-agents/tests/it/docs.

use std::collections::BTreeSet;
use std::fs;

use crate::Result;
use crate::process;
use crate::workspace::Workspace;

/// The command that is already running this step.
const THIS: &str = "cargo xtask test";

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut seen = BTreeSet::new();
    for page in pages(workspace)? {
        for line in commands(&page) {
            if line == THIS || !seen.insert(line.clone()) {
                continue;
            }
            let mut words = line.split_whitespace();
            let program = words.next().unwrap_or_default();
            let mut command = process::command(program, &workspace.root);
            command.args(words);
            // A build of its own, as in a fresh clone.
            let target = workspace.target.join("readme");
            command.env("CARGO_TARGET_DIR", &target);
            if line.starts_with("cargo install") {
                // Not into the home of the user who runs the tests.
                command.arg("--force").arg("--root").arg(target);
            }
            process::run(&mut command)?;
        }
    }
    if seen.is_empty() {
        return Err("no page says anything about this repository".into());
    }
    Ok(())
}

/// The README and the pages of docs/.
fn pages(workspace: &Workspace) -> Result<Vec<String>> {
    let mut paths = vec![workspace.root.join("README.md")];
    for entry in fs::read_dir(workspace.root.join("docs"))? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    paths.sort();
    paths.into_iter().map(|path| Ok(fs::read_to_string(path)?)).collect()
}

/// The commands in the marked blocks of a page.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console repository";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            commands.push(command.to_owned());
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_marked_blocks_are_run() {
        let page = "```console repository\n$ cargo one\n```\n```console in=x\n$ agentd list\n```\n";
        assert_eq!(commands(page), ["cargo one"]);
    }

    #[test]
    fn the_two_commands_are_there() {
        let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md"));
        let commands = commands(&page.unwrap());
        assert!(commands.iter().any(|command| command == "cargo run --release -- demo"));
        assert!(commands.iter().any(|command| command == THIS));
    }
}
