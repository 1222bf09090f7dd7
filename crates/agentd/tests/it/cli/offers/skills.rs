//! What the skills tell an agent to run for each decision about a plan is accepted in that state.

use std::collections::BTreeSet;

use agentd_core::diagnostic::Severity;
use test_project::TestProject;

use super::{ID, REFUSALS, after, approved, now, planned, rejected, update_state};

const SKILLS: [&str; 3] = [
    ".claude/commands/agentd/plan.md",
    ".gemini/commands/agentd/plan.toml",
    ".agents/skills/agentd-plan/SKILL.md",
];

/// A plan is edited before the next command.
const EDIT: &str = "edit";

/// A state in which a plan waits, and what is run there, in order.
type Decision = (fn() -> TestProject, &'static [&'static str]);

const DECISIONS: [Decision; 10] = [
    (is_approved, &["agentd impl <id> --json"]),
    (
        is_approved,
        &[
            "agentd show <id> --json",
            "agentd show <id> <spec> --json",
            "agentd show <id> tasks --json",
        ],
    ),
    (is_rejected, &["agentd show <id> challenge --json", EDIT, "agentd challenge <id> --json"]),
    (is_rejected, &["agentd revise <id> \"<what>\" --json"]),
    (waits, &["agentd show <id> challenge --json", "agentd decide <id> --json"]),
    (
        waits,
        &[
            "agentd decide <id> fix --json",
            "agentd reproposal <id> --json",
            "agentd challenge <id> --json",
        ],
    ),
    (waits, &["agentd decide <id> accept --json", "agentd impl <id> --json"]),
    (waits, &["agentd decide <id> fix --note \"<note>\" --json", "agentd reproposal <id> --json"]),
    (waits, &["agentd validate <id> --json"]),
    (waits, &["agentd decide <id> stop --json", "agentd reproposal <id>"]),
];

fn is_approved() -> TestProject {
    after(planned(), &[approved])
}

fn is_rejected() -> TestProject {
    after(planned(), &[rejected]).file("CHALLENGE.md", "# Challenge\n")
}

fn waits() -> TestProject {
    planned().challenged(&[Severity::Low]).file("CHALLENGE.md", "# Challenge\n")
}

/// The step of each skill that decides about a plan.
fn decisions() -> Vec<String> {
    let project = planned();
    project.run(["init", "--yes", "--agents", "claude,codex,gemini"]).exits(0);
    let decides = |path: &str| {
        let text = project.read_root(path);
        text.split_once("5. **Decide**").unwrap_or_else(|| panic!("{path}: {text}")).1.to_owned()
    };
    SKILLS.map(decides).to_vec()
}

/// The commands that a text names.
fn commands(text: &str) -> BTreeSet<String> {
    // A command may go over the end of a line.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| span.starts_with("agentd ")).map(str::to_owned).collect()
}

/// The words of a command, with something in its places.
fn filled_in(command: &str) -> Vec<String> {
    let places = [
        ("<id>", ID),
        ("<new-id>", "add-login"),
        ("<spec>", "auth-flow"),
        ("<answer>", "in-place"),
        ("<description>", "Sign in"),
        ("<what is wrong>", "It never ends"),
        ("<what is different>", "Sessions end after 30 minutes"),
        ("<what>", "Sessions end after 30 minutes"),
        ("<why>", "We use SAML"),
        ("<note>", "lock after 5 attempts"),
    ];
    let fill = |text: String, (place, value): (&str, &str)| text.replace(place, value);
    shell_words::split(&places.into_iter().fold(command.to_owned(), fill)).unwrap()
}

// contract P24, C34
#[test]
fn commands_of_the_skills_are_accepted_where_they_are_named() {
    let all = DECISIONS.iter().flat_map(|(_, commands)| *commands);
    let all: BTreeSet<String> =
        all.filter(|command| **command != EDIT).map(|command| (*command).to_owned()).collect();
    for (skill, path) in decisions().iter().zip(SKILLS) {
        assert_eq!(commands(skill), all, "{path}");
    }
    for (state, commands) in DECISIONS {
        let project = state();
        let mut edits = false;
        for command in commands {
            if *command == EDIT {
                edits = true;
                continue;
            }
            let words = filled_in(command);
            if std::mem::take(&mut edits) {
                project.replace("tasks.md", "src/auth.rs", "src/other.rs");
            }
            let run = project.run(&words[1..]);
            // Agents may be missing here, which is no refusal.
            let calls = ["impl", "challenge", "reproposal"].contains(&&*words[1]);
            assert!(run.code == 0 || calls, "{command}: {run:#?}");
            assert!(
                !REFUSALS.iter().any(|kind| run.stdout.contains(&format!("\"{kind}\""))),
                "{command}: {run:#?}"
            );
        }
    }
}

// contract P24, C34
#[test]
fn skills_know_every_answer_to_a_plan() {
    let project = waits();
    let mut names = BTreeSet::new();
    for rounds in [0, 3] {
        update_state(&project.store(), &project.id(), &project.holder(), now(), |state| {
            state.iteration = rounds;
            Ok(())
        })
        .unwrap();
        let asked = project.run(["decide", "--json"]).exits(0).json();
        let choices = asked["choices"].as_array().unwrap().iter();
        names.extend(choices.map(|choice| choice["choice"].as_str().unwrap().to_owned()));
    }
    assert_eq!(names.len(), 6, "{names:?}");
    for skill in decisions() {
        for name in &names {
            assert!(skill.contains(&format!("- `{name}`")), "{name}: {skill}");
        }
        for words in ["implement / view", "manually or let me help?", "agentd reproposal <id>"] {
            assert!(skill.contains(words), "{words}: {skill}");
        }
    }
}

/// All workflows, as every agent reads them.
fn workflows(project: &TestProject) -> Vec<(String, String)> {
    project.run(["init", "--yes", "--agents", "claude,codex,gemini"]).exits(0);
    let names = ["plan", "impl", "archive", "revise", "rename", "drop"];
    let paths = names.iter().flat_map(|name| SKILLS.map(|path| path.replace("plan", name)));
    paths.map(|path| (project.read_root(&path), path)).map(|(text, path)| (path, text)).collect()
}

// contract W9
#[test]
fn every_command_of_the_workflows_exists() {
    for (path, text) in workflows(&planned()) {
        let commands = commands(&text);
        assert!(commands.len() > 1, "{path}: {text}");
        // Named as the first line of a prompt.
        for command in commands.iter().filter(|command| *command != "agentd <step> <id>") {
            let mut words = filled_in(command);
            assert!(!words.iter().any(|word| word.contains('<')), "{path}: {command}");
            if words.ends_with(&["--answers".into(), "-".into(), "--json".into()]) {
                continue;
            }
            words.push("--json".to_owned());
            words.dedup();
            let run = planned().run(&words[1..]);
            assert_ne!(run.code, 2, "{path}: {command}: {run:#?}");
        }
    }
}

/// A mistake in a command is not taken for an old program, and no workflow has tools that it does
/// not use.
// contract W9
#[test]
fn workflows_ask_for_no_more_than_they_need() {
    for (path, text) in workflows(&planned()) {
        assert!(text.contains("`usage`") && !text.contains("exit code"), "{path}: {text}");
        let allowed = text.lines().find(|line| line.starts_with("allowed-tools:"));
        let writes = text.contains("call the tool `create_clarifications`");
        assert_eq!(writes, path.contains("plan"), "{path}");
        if path.starts_with(".claude") {
            let allows = allowed.unwrap().contains("mcp__agentd__create_clarifications");
            assert_eq!(allows, writes, "{path}: {allowed:?}");
        }
    }
}

/// Someone who leaves the questions is asked them again, and is still asked where to work (M20).
// contract W9
#[test]
fn plan_goes_on_where_its_questions_were_left() {
    let project = TestProject::empty().programs(&["git"]).repository();
    project.commit("Start");
    let project = project.root_file("agentd/config.toml", super::ROLES);
    let json = |arguments: &[&str]| project.run(arguments).exits(0).json();
    // The first command does not fail where nothing is open yet.
    assert_eq!(json(&["list", "--json"])["changes"], serde_json::json!([]));
    let asked = json(&["clarify", ID, "Sign in with Google", "--json"]);
    // Here the person presses Esc, and starts the workflow again.
    let listed = json(&["list", "--json"]);
    assert_eq!(listed["changes"][0]["phase"], "proposed");
    assert_eq!(json(&["clarify", ID, "--show", "--json"])["needed"], true);
    assert_eq!(json(&["status", ID, "--json"])["git"], serde_json::Value::Null);
    let refused = project.run(["plan", ID, "--json"]).json();
    assert_eq!(refused["error"]["kind"], "clarifications_missing");

    assert_eq!(json(&["clarify", ID, "--json"])["questions"], asked["questions"]);
    let questions = asked["questions"].as_array().unwrap();
    let answer = |question: &serde_json::Value| {
        let label = question["options"][0]["label"].clone();
        (question["header"].as_str().unwrap().to_owned(), label)
    };
    let answers: serde_json::Map<_, _> = questions.iter().map(answer).collect();
    let project = project.root_file("answers.json", serde_json::Value::from(answers).to_string());
    project.run(["clarify", ID, "--answers", "answers.json", "--json"]).exits(0);
    let shown = project.run(["clarify", ID, "--show", "--json"]).exits(0).json();
    assert_eq!((&shown["clarified"], &shown["needed"]), (&true.into(), &false.into()));
    let planned = project.run(["plan", ID, "--git", "branch", "--json"]).json();
    assert_eq!(planned["change_id"], ID, "{planned:#}");
    let status = project.run(["status", ID, "--json"]).exits(0).json();
    assert_eq!(status["git"]["branch"], "agentd/add-oauth");
    for (path, text) in workflows(&project).into_iter().filter(|(path, _)| path.contains("plan")) {
        for words in ["agentd clarify <id> --show --json", "`needed`", "whose `git` is `null`"] {
            assert!(text.contains(words), "{path}: {words}: {text}");
        }
        assert!(text.find("agentd list --json") < text.find("agentd status <id>"), "{path}");
    }
}
