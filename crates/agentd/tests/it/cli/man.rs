//! The man pages: one for each command, with all of its options, in troff that is right.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::cli::help::commands;
use test_project::TestProject;

/// The long options that a text names.
fn options(text: &str) -> BTreeSet<String> {
    let starts = text.match_indices("--").map(|(at, dashes)| &text[at + dashes.len()..]);
    let names = starts.map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        rest[..end.unwrap_or(rest.len())].to_owned()
    });
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase())).collect()
}

/// The first example in the help of a command, as it is in a page.
fn help_examples(project: &TestProject, command: &str) -> String {
    let help = project.run([command, "--help"]).fine().stdout;
    let (_, examples) = help.split_once("\nExamples:\n").unwrap();
    examples.lines().next().unwrap().trim_start().replace('\'', "\\*(Aq")
}

/// Issue 19: pages for all commands and no others, which name every option of the help.
#[test]
fn every_command_has_a_man_page_with_its_options() {
    let project = TestProject::empty();
    project.run(["man", "--dir", "pages"]).exits(0);
    let dir = project.root().join("pages");
    let written: BTreeSet<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let commands = commands(&project);
    let mut expected = BTreeSet::from(["agentd.1".to_owned()]);
    expected.extend(commands.iter().map(|command| format!("agentd-{command}.1")));
    assert_eq!(written, expected);

    // The help of these is that of another program.
    let own = commands.iter().filter(|command| !["fleet", "worker"].contains(&command.as_str()));
    for command in own {
        let help = project.run([command, "--help"]).fine().stdout;
        let (help, _) = help.split_once("\nExamples:\n").unwrap();
        let page = std::fs::read_to_string(dir.join(format!("agentd-{command}.1"))).unwrap();
        let named = options(&page.replace("\\-", "-"));
        let missing: Vec<String> = options(help).difference(&named).cloned().collect();
        assert_eq!(missing, Vec::<String>::new(), "of {command}");
        // The examples as they are typed: in a section of that name, and not filled like prose.
        let (_, examples) = page.split_once(".SH EXAMPLES\n.nf\n").unwrap();
        assert!(!page.contains(".SH EXTRA"), "{page}");
        let first = help_examples(&project, command);
        assert_eq!(examples.lines().next().unwrap().replace("\\-", "-"), first, "of {command}");
    }

    if !Path::new("/usr/bin/groff").exists() {
        return;
    }
    // As man does it, which knows that the pages are UTF-8.
    for name in &written {
        let mut groff = Command::new("/usr/bin/groff");
        let groff = groff.args(["-Kutf8", "-man", "-Tutf8", "-ww", "-z"]).arg(dir.join(name));
        let run = groff.output().unwrap();
        assert!(run.status.success(), "{name}");
        assert_eq!(String::from_utf8_lossy(&run.stderr), "", "{name}");
    }
}
