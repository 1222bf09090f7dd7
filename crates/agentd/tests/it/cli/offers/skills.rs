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

const DECISIONS: [Decision; 9] = [
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
            let command = command.replace("<id>", ID).replace("<spec>", "auth-flow");
            let command = command.replace("<note>", "lock after 5 attempts");
            if std::mem::take(&mut edits) {
                project.replace("tasks.md", "src/auth.rs", "src/other.rs");
            }
            let words = shell_words::split(&command).unwrap();
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
