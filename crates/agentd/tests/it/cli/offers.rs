//! Every command that agentd suggests, in a hint or as the next step, can be run as it is shown:
//! agentd does not refuse it.

mod kinds;
mod skills;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use agentd_core::document::review::CodeVerdict;
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::phase::Transition;
use agentd_core::stamp::Stamp;
use agentd_core::text::Line;
use agentd_engine::change::documents::update_state;
use serde_json::{Value, json};
use test_project::{Output, TestProject};

const ID: &str = "add-oauth";
const NOW: &str = "2026-11-04T11:00:00Z";
/// Plans are written and reviewed by rules. There is no implementer, which is not a refusal.
const ROLES: &str = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";

/// Kinds that mean: this command makes no sense here.
pub(crate) const REFUSALS: [&str; 16] = [
    "change_not_ready",
    "change_open",
    "internal",
    "no_change",
    "no_description",
    "no_document",
    "no_review",
    "no_such_change",
    "no_such_document",
    "no_such_rule",
    "no_such_task",
    "not_archived",
    "nothing_to_decide",
    "nothing_to_trace",
    "refused",
    "usage",
];

/// Commands that are run in every state; most are refused in most of them.
const COMMANDS: [&[&str]; 24] = [
    &["status"],
    &["list"],
    &["validate"],
    &["show", "nope"],
    &["clarify", "--answers", "bad.json"],
    &["clarify"],
    &["plan", ID, "--git", "worktree"],
    &["challenge"],
    &["reproposal"],
    &["impl"],
    &["implement", "--tasks", "9.9"],
    &["review"],
    &["fix"],
    &["decide"],
    &["decide", "stop"],
    &["decide", "accept"],
    &["decide", "fix"],
    &["archive"],
    &["archive", "--continue"],
    &["unarchive", ID],
    &["status", "nope"],
    &["unarchive", "nope"],
    &["trace", "nope:R1"],
    &["explain", "nope"],
];

fn project() -> TestProject {
    TestProject::new().root_file("agentd/config.toml", ROLES).root_file("bad.json", "[]")
}

/// Moves the change through phases, as the workflow does.
fn after(project: TestProject, transitions: &[fn() -> Transition]) -> TestProject {
    let (store, id, holder) = (project.store(), project.id(), project.holder());
    let digest = store.change(&id).unwrap().snapshot().unwrap().documents.digest();
    for transition in transitions {
        update_state(&store, &id, &holder, now(), |state| {
            let transition = match transition() {
                Transition::PlanReviewed { verdict, reviewer, at, .. } => {
                    Transition::PlanReviewed { verdict, plan: digest.clone(), reviewer, at }
                }
                Transition::ImplementationStarted { .. } => {
                    Transition::ImplementationStarted { plan: digest.clone() }
                }
                other => other,
            };
            *state = state.apply(&transition)?;
            Ok(())
        })
        .unwrap();
    }
    project
}

fn now() -> Stamp {
    NOW.parse().unwrap()
}

fn reviewed(verdict: PlanVerdict) -> Transition {
    let plan = agentd_core::hash::Digest::of(b"");
    Transition::PlanReviewed { verdict, plan, reviewer: Line::new("codex"), at: now() }
}

fn approved() -> Transition {
    reviewed(PlanVerdict::Approved)
}

fn needs_revision() -> Transition {
    reviewed(PlanVerdict::NeedsRevision)
}

fn rejected() -> Transition {
    reviewed(PlanVerdict::Rejected)
}

fn started() -> Transition {
    Transition::ImplementationStarted { plan: agentd_core::hash::Digest::of(b"") }
}

fn code_reviewed() -> Transition {
    let reviewer = Line::new("claude");
    Transition::CodeReviewed { verdict: CodeVerdict::Approved, reviewer, at: now() }
}

fn needs_fix() -> Transition {
    let reviewer = Line::new("claude");
    Transition::CodeReviewed { verdict: CodeVerdict::NeedsFix, reviewer, at: now() }
}

/// The ledger has the call of the reviewer.
fn known_review(project: TestProject) -> TestProject {
    update_state(&project.store(), &project.id(), &project.holder(), now(), |state| {
        let call = json!({"step": "review", "model": "claude", "run": 1});
        state.record_call(serde_json::from_value(call).unwrap());
        Ok(())
    })
    .unwrap();
    project
}

fn planned() -> TestProject {
    project().change(ID)
}

fn complete() -> TestProject {
    after(planned(), &[approved, started, code_reviewed])
}

fn archived() -> TestProject {
    let project = complete();
    project.run(["archive", ID, "--force", "reviewed by hand"]).exits(0);
    project
}

/// A command that a run suggests, as it is shown.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Debug)]
struct Offer {
    command: String,
    /// The plan is to be edited before.
    edits: bool,
    /// It is run after the one before it.
    follows: bool,
}

fn offered(run: &Output) -> Vec<Offer> {
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let choices = document["choices"].as_array().into_iter().flatten();
    let choices = choices.filter_map(|choice| texts(&choice["commands"]).into_iter().next());
    let next = texts(&document["next"]).into_iter().chain(choices.collect::<Vec<_>>());
    let mut commands: Vec<Offer> =
        next.map(|command| Offer { command, edits: false, follows: false }).collect();
    let mut edits = false;
    let checks = document["checks"].as_array().into_iter().flatten();
    let checks = checks.filter_map(|check| Some(check["hint"].as_str()?.to_owned()));
    for hint in texts(&document["error"]["hints"]).into_iter().chain(checks) {
        // It holds for the hints behind it, too: "edit …", "check …", "then continue …".
        edits |= hint.starts_with("edit ");
        let follows = hint.starts_with("then ");
        match command_in(&hint) {
            Some(command) => commands.push(Offer { command, edits, follows }),
            // A command in the middle of a sentence cannot be run.
            None => assert!(!names_a_command(&hint), "not a command line: {hint}"),
        }
    }
    commands
}

fn names_a_command(hint: &str) -> bool {
    let suggested = agentd_core::next_step::Command::ALL.iter().map(|command| command.name());
    let others = ["cost", "explain", "log", "mcp", "overlap", "status", "trace", "view"];
    suggested.chain(others).any(|name| hint.contains(&format!("agentd {name}")))
}

/// Programs that hints run.
const PROGRAMS: [&str; 6] = ["agentd", "git", "mv", "ls", "df", "npm"];

/// The command of a hint that has one: what is behind its purpose.
fn command_in(hint: &str) -> Option<String> {
    PROGRAMS.iter().find_map(|program| {
        let (_, rest) = hint.split_once(&format!(": {program} "))?;
        Some(format!("{program} {rest}"))
    })
}

/// What a person fills in.
fn filled_in(command: &str) -> String {
    command
        .replace("\"<what you want>\"", "'Print the greeting, and exit with 0'")
        .replace("\"<why>\"", "'It was reviewed by hand'")
        .replace("<id>", "new-one")
        .replace("<new-id>", "another-one")
        .replace("<directory>", "../checkout")
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Runs a command as it is shown, and says why it was refused.
fn refusal(project: &TestProject, offer: &Offer) -> Option<String> {
    let command = &offer.command;
    let tasks = project.root().join(format!("agentd/changes/{ID}/tasks.md"));
    if offer.edits
        && let Ok(text) = fs::read_to_string(&tasks)
    {
        fs::write(&tasks, text.replace("src/auth.rs", "src/other.rs")).unwrap();
    }
    let words = shell_words::split(&filled_in(command)).unwrap();
    let (program, args) = words.split_first().unwrap();
    if program != "agentd" {
        return failure(project, &filled_in(command));
    }
    if args.iter().any(|arg| arg == "answers.json") {
        let answers = r#"{"answers": [{"topic": "Scope", "question": "All?", "answer": "Yes"}]}"#;
        fs::write(project.root().join("answers.json"), answers).unwrap();
    }
    let json = !args.iter().any(|arg| arg == "--help" || arg == "--json");
    let run = project.run(args.iter().map(String::as_str).chain(json.then_some("--json")));
    if run.code == 0 {
        return None;
    }
    let kind = run.json()["error"]["kind"].as_str().map(str::to_owned);
    // A command that did its work may still end with 1: a verdict that waits, findings.
    let kind = kind?;
    REFUSALS.contains(&kind.as_str()).then(|| format!("{kind}: {}", run.stdout))
}

/// Runs a command of another program, and says why it failed.
fn failure(project: &TestProject, command: &str) -> Option<String> {
    // It would need the network.
    if command.starts_with("npm ") {
        return None;
    }
    let mut shell = project.any_command("/bin/sh");
    // A person writes a message.
    shell.args(["-c", command]).env("GIT_EDITOR", "echo Work >");
    let run = project.finish(&mut shell);
    (run.code != 0).then(|| format!("{}{}", run.stdout, run.stderr))
}

/// Runs every command in a project, and then everything that it suggests.
fn check(state: &str, project: &TestProject) {
    let mut refused = Vec::new();
    let (root, kept) = (project.root(), project.home().join("kept"));
    copy(&root, &kept);
    // A project goes with what agentd keeps about it.
    let (state_dir, kept_state) =
        (project.home().join(".local/state"), project.home().join("kept-state"));
    fs::create_dir_all(&state_dir).unwrap();
    copy(&state_dir, &kept_state);
    let restore = || {
        copy(&kept, &root);
        copy(&kept_state, &state_dir);
    };
    let mut commands = BTreeSet::new();
    for args in COMMANDS {
        // A rejected plan is planned again only once it is edited, wherever that is.
        if state == "rejected" && args[0] == "plan" {
            continue;
        }
        let run = project.run(args.iter().copied().chain(["--json"]));
        commands.extend(offered(&run).into_iter().map(|offer| (offer, args)));
        restore();
    }
    let mut seen = BTreeSet::new();
    for (offer, args) in commands {
        if !seen.insert(offer.clone()) {
            continue;
        }
        // What comes next, comes after the command that says so.
        project.run(args.iter().copied().chain(["--json"]));
        if let Some(why) = refusal(project, &offer) {
            let command = offer.command;
            let from = args.join(" ");
            refused.push(format!("{state}: `agentd {from}` suggests `{command}`: {why}"));
        }
        restore();
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert!(seen.len() > 3, "{state}: {seen:?}");
}

#[test]
fn heavy_suggestions_without_a_verdict_are_accepted() {
    check("nothing", &project());
    check("begun", &project().begun(ID));
    check("planned", &planned());
    check("broken", &planned().edit("tasks.md", "## ", "# "));
    check("two open changes", &planned().change("fix-bug").about(ID));
}

#[test]
fn heavy_suggestions_about_a_judged_plan_are_accepted() {
    check("needs revision", &after(planned(), &[needs_revision]));
    let waiting = planned().challenged(&[agentd_core::diagnostic::Severity::Low]);
    check("waiting", &waiting.file("CHALLENGE.md", "# Challenge\n"));
    check("rejected", &after(planned(), &[rejected]));
    check("approved", &after(planned(), &[approved]));
    let edited = after(planned(), &[approved]).edit("tasks.md", "src/auth.rs", "src/other.rs");
    check("edited", &edited);
}

#[test]
fn heavy_suggestions_about_code_are_accepted() {
    check("implementing", &after(planned(), &[approved, started]));
    check("needs fix", &after(planned(), &[approved, started, needs_fix]));
}

#[test]
fn heavy_suggestions_at_the_end_are_accepted() {
    check("complete", &known_review(complete()));
    check("archived", &archived());
}

/// A state that says `complete` is not believed without the call of a reviewer.
#[test]
fn unknown_review_hints_at_force() {
    let project = complete();
    let run = project.run(["archive", ID, "--json"]).exits(1);
    let offers = offered(&run);
    assert_eq!(offers.len(), 1, "{offers:?}");
    assert_eq!(refusal(&project, &offers[0]), None, "{offers:?}");
}

/// A plan that leaves questions open can be clarified with the commands that its hints show.
#[test]
fn missing_clarifications_hints_work() {
    let project = project();
    let run = project.run(["plan", "new-one", "Make it better", "--json"]).exits(1);
    assert_eq!(run.json_error()["kind"], "clarifications_missing");
    let commands = offered(&run);
    assert_eq!(commands.len(), 3, "{commands:?}");
    let kept = project.home().join("kept");
    copy(&project.root(), &kept);
    for command in &commands[..2] {
        assert_eq!(refusal(&project, command), None, "{command:?}");
    }
    assert!(project.root().join("agentd/changes/new-one/clarifications.md").exists());
    copy(&kept, &project.root());
    assert_eq!(refusal(&project, &commands[2]), None, "{commands:?}");
}

/// A decision is recorded only for a plan that waits for one.
#[test]
fn approved_plan_cannot_be_sent_back() {
    let project = after(project().change(ID), &[approved]);
    let before = project.read("STATE.yaml");
    let error = project.run(["decide", "fix", "--json"]).exits(1).json_error();
    assert_eq!(error["kind"], "nothing_to_decide", "{error:#}");
    assert_eq!(project.read("STATE.yaml"), before);
}
