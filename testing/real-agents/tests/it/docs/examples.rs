//! The examples in the help of each command, which docs/cli.md shows, do what they say.

use std::process::Command;

use real_agents::Sandbox;

use super::page::Page;
use super::places::Places;
use super::repository;
use super::shell::Shell;
use super::story::{self, FirstIssues};

/// The examples of the whole reference.
fn examples() -> Vec<String> {
    let page = Page::read(&repository().join("docs/cli.md"));
    let mut examples = Vec::new();
    for block in page.blocks {
        let lines = block.text.lines().skip_while(|line| *line != "Examples:").skip(1);
        for line in lines {
            // A remark that did not fit behind its example.
            let Some(line) = line.strip_prefix("  ") else { continue };
            if line.starts_with(' ') || !line.contains("agentd") {
                continue;
            }
            let example = without_remark(line).to_owned();
            // The first page shows some that their commands show, too.
            if !examples.contains(&example) {
                examples.push(example);
            }
        }
    }
    examples
}

/// Remarks stand behind two spaces or more.
fn without_remark(line: &str) -> &str {
    line.split("  ").next().unwrap_or(line)
}

/// How an example is run: where, with which preparation, whether its questions are answered,
/// and the exit code.
struct How {
    place: &'static str,
    before: &'static str,
    answers: bool,
    code: i32,
}

/// Where the page names a day, a place of this machine or a shell that is not there.
fn here(example: &str) -> String {
    let example = example
        .replace("2026-11-04-add-oauth", "$(ls agentd/archive)")
        .replace("/tmp/", "$TMPDIR/")
        .replace("\"${fpath[1]}/_agentd\"", "$TMPDIR/_agentd");
    let is_here = |program: &str| Command::new(program).arg("--version").output().is_ok();
    match example.split_once(" | ") {
        // It would ask GitHub; and the code is the one of the last program.
        Some((left, right)) if right.starts_with("gh ") || left.contains("--probe") => {
            left.to_owned()
        }
        Some((left, right)) if right.split(' ').next().is_some_and(|name| !is_here(name)) => {
            left.to_owned()
        }
        _ => example,
    }
}

const QUESTIONS: &str = "agentd clarify add-oauth 'Let people log in' --json";
const ANSWERS: &str = "agentd clarify add-oauth 'Let people log in' --json && echo '{\"Provider\": \
    \"GitHub only\", \"Accounts\": \"Link by email\", \"Session\": \"A cookie\"}' > answers.json";

const REMOTE: &str = "git init -q --bare ../origin.git && git remote add origin ../origin.git && \
    git push -q origin main";
const CARRIED: &str = "git init -q --bare ../origin.git && git remote add origin ../origin.git && \
    git push -q origin main && agentd give add-oauth && git switch -q main";

const IDEA: &str = "echo 'Let people sign in with GitHub' > idea.md";

const TESTED: &str = "grep -q ^test_command agentd/config.toml || printf '[implementation]\\ntest_command = \"true\"\\n' >> agentd/config.toml; \
    agentd trust --yes";

fn how(example: &str) -> How {
    let at = |place| How { place, before: "true", answers: false, code: 0 };
    let words: Vec<&str> = example.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    match words.get(1).copied().unwrap_or_default() {
        "demo" | "explain" => at("project"),
        "completions" => How {
            before: "mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions",
            ..at("project")
        },
        "init" => How { answers: !has("--yes"), ..at("project") },
        "mcp" if words[0] == "claude" => at("initialised"),
        "doctor" if !has("--probe") => at("initialised"),
        "uninstall" | "context" => at("initialised"),
        "plan" if words.len() == 3 => at("waiting"),
        "plan" if has("--file") => How { before: IDEA, answers: true, ..at("initialised") },
        "bug" => How { before: TESTED, answers: true, ..at("initialised") },
        "plan" | "proposal" => How { answers: !has("--skip-clarify"), ..at("initialised") },
        "clarify" if has("--answers") => How { before: ANSWERS, ..at("initialised") },
        "clarify" if has("--json") || has("--show") => {
            How { before: QUESTIONS, ..at("initialised") }
        }
        "clarify" => How { answers: true, ..at("initialised") },
        // No agent has asked anything.
        "decide" if has("answer") => How { code: 1, ..at("waiting") },
        "challenge" | "reproposal" | "decide" => at("waiting"),
        // Enter alone keeps it.
        "drop" => How { answers: !has("--yes"), ..at("planned") },
        "review" => at("implemented"),
        "fix" => at("to-fix"),
        "archive" if has("--force") => at("planned"),
        "archive" | "trace" => at("built"),
        "show" if has("auth-flow") && !has("add-oauth") => {
            How { before: "agentd archive add-oauth", ..at("built") }
        }
        "unarchive" => How { before: "agentd archive add-oauth", ..at("built") },
        "replay" if has("add-oauth") => {
            How { before: "git clone -q -b main . ../clone", ..at("built") }
        }
        "replay" => How {
            before: "agentd archive add-oauth; cp -r agentd/archive/*/runs runs; \
                     rm -rf $TMPDIR/again; git clone -q -b main . $TMPDIR/again",
            ..at("built")
        },
        // Nobody is on the list, so nothing was signed by someone on it.
        "verify" if has("--allowed-signers") => {
            How { before: "touch ~/allowed_signers", code: 1, ..at("planned") }
        }
        // No call of it was cut short.
        "cost" if has("--settle") => How { code: 1, ..at("planned") },
        // None of them is here.
        "doctor" if has("--probe") => How { code: 1, ..at("initialised") },
        "fleet" | "worker" => How { before: REMOTE, ..at("initialised") },
        "give" => How { before: REMOTE, ..at("planned") },
        "take" => How { before: CARRIED, ..at("planned") },
        "step" if has("--skip-clarify") => at("initialised"),
        _ => at("planned"),
    }
}

/// Runs all examples of these commands.
fn run(is_wanted: impl Fn(&str) -> bool + Send) {
    let all = examples();
    assert!(all.len() > 75, "{all:#?}");
    let wanted: Vec<String> = all
        .into_iter()
        .filter(|example| is_wanted(example.split_whitespace().nth(1).unwrap_or_default()))
        .collect();
    assert!(!wanted.is_empty());
    let issues = FirstIssues { plan: true, code: true };
    Sandbox::enter(story::script(issues), |sandbox| {
        let shell = Shell::new(sandbox);
        let mut places = Places::new(sandbox, &shell).quick();
        // The first verdicts are those that these places are made of.
        places.enter("waiting");
        places.enter("to-fix");
        let mut wrong = String::new();
        for example in wanted {
            let how = how(&example);
            places.enter(how.place);
            let before = shell.run(how.before, false);
            assert_eq!(before.code, 0, "{}: {}", how.before, before.stdout);
            let ran = shell.run(&here(&example), how.answers);
            if ran.code != how.code {
                wrong.push_str(&format!("$ {example}\n{}\nexit {}\n\n", ran.stdout, ran.code));
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    });
}

/// Commands that call agents, and take their time.
const WITH_AGENTS: [&str; 10] = [
    "plan",
    "bug",
    "proposal",
    "clarify",
    "challenge",
    "reproposal",
    "impl",
    "implement",
    "review",
    "fix",
];

#[test]
fn the_examples_of_commands_that_call_agents_work() {
    run(|command| WITH_AGENTS.contains(&command));
}

/// Commands that play at the speed at which people can follow.
const PLAYED: [&str; 2] = ["demo", "replay"];

#[test]
fn the_examples_of_commands_that_play_recordings_work() {
    run(|command| PLAYED.contains(&command));
}

#[test]
fn the_examples_of_all_other_commands_work() {
    run(|command| !WITH_AGENTS.contains(&command) && !PLAYED.contains(&command));
}
