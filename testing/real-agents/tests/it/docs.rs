//! The README and the pages of docs/ are true: what they show is run, with the real CLIs.
//!
//! - ```` ```console ````: lines that start with `$ ` are run by `sh`, one after the other; what
//!   stands below a command is compared with what it prints (`…` stands for anything, a line of
//!   it for any lines). `in=NAME` begins in a fresh project (see [`places`]), otherwise the block
//!   continues where the one before ended. `answers`: on a terminal, each question is answered
//!   by Enter. `exit=N`: how the last command ends. `repository`: of this repository, and run by
//!   the step `readme` of `cargo xtask test`. `npm`: the packages that all these tests run, which
//!   the step `npm` installs.
//! - ```` ```toml ````: is a configuration that loads.
//! - ```` ```yaml ````: the lines `- run:` are run.
//! - ```` ```json ````: can be read, and so can ```` ```markdown ````, as documents of a change.
//! - ```` ```text ````: is only shown.

mod contract;
mod documents;
mod examples;
mod page;
mod places;
mod shell;
mod story;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use real_agents::Sandbox;

use self::page::{Block, Page};
use self::places::Places;
use self::shell::Shell;
use self::story::FirstIssues;

/// The root of this repository.
fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The npm packages of the agents.
fn npm_packages() -> Vec<String> {
    let package = fs::read_to_string(repository().join("testing/agents/package.json")).unwrap();
    let package: serde_json::Value = serde_json::from_str(&package).unwrap();
    let all = package["dependencies"].as_object().unwrap();
    all.keys().cloned().collect::<BTreeSet<String>>().into_iter().collect()
}

/// Runs a page from its beginning to its end.
fn run(name: &str) {
    let page = Page::read(&repository().join(name));
    let issues = FirstIssues { plan: page.uses("waiting"), code: false };
    Sandbox::enter(story::script(issues), |sandbox| {
        let shell = Shell::new(sandbox);
        let mut places = Places::new(sandbox, &shell);
        // A newcomer's pages run with all three agents; for the others the fastest will do.
        if !matches!(name, "README.md" | "docs/quick-start.md") {
            places = places.quick();
        }
        // The first verdict is the one that this place is made of.
        if issues.plan {
            places.enter("waiting");
        }
        for block in &page.blocks {
            run_block(&page, block, &shell, &mut places);
        }
    });
}

fn run_block(page: &Page, block: &Block, shell: &Shell<'_>, places: &mut Places<'_>) {
    let at = format!("{}:{}", page.name, block.line);
    match block.language.as_str() {
        "console" if block.has("repository") => {
            assert!(block.commands().iter().all(|c| c.line.starts_with("cargo ")), "{at}");
        }
        "console" if block.has("npm") => {
            let commands: Vec<String> = block.commands().into_iter().map(|c| c.line).collect();
            assert_eq!(commands, [format!("npm install -g {}", npm_packages().join(" "))], "{at}");
        }
        "console" => {
            if let Some(place) = block.value("in") {
                places.enter(place);
            }
            let commands = block.commands();
            assert!(!commands.is_empty(), "{at} has no line with `$ `");
            for (index, command) in commands.iter().enumerate() {
                let last = index + 1 == commands.len();
                let exit = block.value("exit").filter(|_| last).unwrap_or("0");
                let ran = shell.run(&command.line, block.has("answers"));
                let shown = format!("{at}: $ {}\n{}", command.line, ran.stdout);
                assert_eq!(ran.code.to_string(), exit, "{shown}");
                if let Some(why) = page::differs(&command.output, &ran.stdout) {
                    panic!("{shown}\n{why}");
                }
            }
        }
        "toml" => {
            places.enter("initialised");
            fs::write(shell.project().join("agentd/config.toml"), &block.text).unwrap();
            let ran = shell.run("agentd list", false);
            assert_eq!(ran.code, 0, "{at}: {}", ran.stdout);
        }
        "yaml" => {
            places.enter("built");
            let steps = block.text.lines().filter_map(|line| line.trim().strip_prefix("- run: "));
            let steps: Vec<&str> = steps.collect();
            assert!(!steps.is_empty(), "{at} has no `- run:`");
            for step in steps {
                let ran = shell.run(step, false);
                assert_eq!(ran.code, 0, "{at}: {step}\n{}", ran.stdout);
            }
        }
        "json" => {
            let read: Result<serde_json::Value, _> = serde_json::from_str(&block.text);
            assert!(read.is_ok(), "{at}: {read:?}");
        }
        // documents.rs reads them together.
        "markdown" => {}
        // The reference is made of these; examples.rs runs its examples.
        "text" if page.name == "cli.md" => {}
        "text" => {
            let command = |line: &&str| line.starts_with("$ ") || line.starts_with("agentd ");
            assert_eq!(block.text.lines().find(command), None, "{at} hides a command");
        }
        other => panic!("{at}: no test runs a block of `{other}`"),
    }
}

macro_rules! pages {
    ($($test:ident $file:literal,)*) => {
        $(#[test] fn $test() { run($file); })*
        const PAGES: &[&str] = &[$($file),*];
    };
}

pages! {
    readme "README.md",
    agent_contract "docs/agent-contract.md",
    agents "docs/agents.md",
    archive "docs/archive.md",
    brownfield "docs/brownfield.md",
    cli "docs/cli.md",
    configuration "docs/configuration.md",
    contract "docs/contract.md",
    documents_page "docs/documents.md",
    evidence "docs/evidence.md",
    fleet "docs/fleet.md",
    implementation "docs/implementation.md",
    quick_start "docs/quick-start.md",
    replay "docs/replay.md",
    sandbox "docs/sandbox.md",
    troubleshooting "docs/troubleshooting.md",
    teams "docs/teams.md",
    viewer "docs/viewer.md",
}

#[test]
fn every_page_is_run() {
    let docs = fs::read_dir(repository().join("docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages = names.filter(|name| Path::new(name).extension().is_some_and(|e| e == "md"));
    let mut there: BTreeSet<String> = pages.map(|name| format!("docs/{name}")).collect();
    there.insert("README.md".to_owned());
    let run: BTreeSet<String> = PAGES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(there, run);
}
