//! Writes docs/cli.md from the definition of the command line, so that the
//! reference cannot differ from the program.

use std::path::Path;

use clap::Command;

/// The reference as it should be.
fn reference() -> String {
    let mut text = "# Command line\n\n\
        <!-- Made from the program: UPDATE=1 cargo test -p agentd reference -->\n\n\
        Every command takes `--json`: exactly one JSON document on stdout, with a\n\
        `\"version\": 1`, and everything else on stderr. Exit codes: 0, 1 for a failure,\n\
        2 for a wrong command line, 130 when interrupted.\n"
        .to_owned();
    let mut all = super::definition().term_width(80);
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

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let wanted = reference();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &wanted).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == wanted, "docs/cli.md is old: UPDATE=1 cargo test -p agentd reference");
}
