//! Writes docs/cli.md from the definition of the command line, the list of errors in
//! docs/troubleshooting.md from theirs, and the keys of JSON in docs/agent-contract.md from the
//! types of the outputs, so that the references cannot differ from the program.

use std::path::Path;

use agentd_core::error_kind::Kind;
use clap::Command;

use super::contract;

/// The reference as it should be.
fn reference() -> String {
    let mut text = "# Command line\n\n\
        <!-- Generated. To update it: UPDATE=1 cargo nextest run -p agentd reference -->\n\n\
        Every command takes `--json`: exactly one JSON document on stdout, with a\n\
        `\"version\": 1`, and everything else on stderr. Exit codes: 0, 1 for a failure,\n\
        2 for a wrong command line, 130 when interrupted.\n"
        .to_owned();
    let mut all = super::help::definition_in(80).term_width(80);
    all.build();
    text.push_str(&section(&mut all.clone(), "agentd"));
    for command in all.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        let name = format!("agentd {}", command.get_name());
        text.push_str(&section(command, &name));
    }
    text
}

fn section(command: &mut Command, name: &str) -> String {
    let help = command.render_long_help().to_string();
    let lines: String = help.trim().lines().map(|line| format!("{}\n", line.trim_end())).collect();
    format!("\n## {name}\n\n```text\n{lines}```\n")
}

/// What comes after it on a page is generated, up to [`END`] if the page has one.
const GENERATED: &str =
    "<!-- Generated. To update it: UPDATE=1 cargo nextest run -p agentd reference -->\n";
const END: &str = "\n<!-- End of the generated part -->\n";

fn errors() -> String {
    let mut text = String::new();
    for group in Kind::ALL.chunk_by(|one, next| one.group() == next.group()) {
        text.push_str(&format!("\n## {}\n", group[0].group()));
        for kind in group {
            text.push_str(&format!("\n**`{kind}`** {}\n{}\n", kind.means(), kind.remedy()));
        }
    }
    text
}

/// Compares a page with what it should be, or writes it again.
fn is_up_to_date(name: &str, wanted: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let wanted = wanted(&there);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
        return;
    }
    assert!(there == wanted, "docs/{name} is old: UPDATE=1 cargo test -p agentd reference");
}

#[test]
fn the_reference_is_up_to_date() {
    is_up_to_date("cli.md", |_| reference());
}

#[test]
fn the_reference_of_errors_is_up_to_date() {
    is_up_to_date("troubleshooting.md", |there| {
        let (by_hand, _) = there.split_once(GENERATED).expect("the place of the list is marked");
        format!("{by_hand}{GENERATED}{}", errors())
    });
}

#[test]
fn the_reference_of_json_keys_is_up_to_date() {
    is_up_to_date("agent-contract.md", |there| {
        let (before, rest) =
            there.split_once(GENERATED).expect("the place of the tables is marked");
        let (_, after) = rest.split_once(END).expect("the end of the tables is marked");
        format!("{before}{GENERATED}{}{END}{after}", contract::tables())
    });
}
