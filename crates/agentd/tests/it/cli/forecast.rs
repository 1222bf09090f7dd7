//! `plan --forecast`, the forecast before the first call, and what is asked above a limit (W8).

use serde_json::{Value, json};
use terminal::{DOWN, Terminal};
use test_project::{TestProject, without_times};

use crate::cli::stand_in::{self, CHANGE, calls};

const PLAN: [&str; 6] = ["plan", CHANGE, "Add a login", "--skip-clarify", "--git", "in-place"];

/// A project in which the stand-in plays the planner, with a limit.
fn limited(usd: &str) -> TestProject {
    let settings = format!("self_review_iterations = 0\n[budget]\nask_above_usd = {usd}\n");
    stand_in::project(&settings, &[("high", "No lock")])
}

fn has_begun(project: &TestProject) -> bool {
    project.has_root(&format!("agentd/changes/{CHANGE}"))
}

/// The state of a change that is complete, with calls that cost these dollars each.
fn finished(id: &str, usd: f64, more: &str) -> String {
    let calls = [
        ("proposal-gen", "gemini-3.8-flash"),
        ("proposal-review", "gemini-3.8-flash"),
        ("spec-gen-auth-flow", "gemini-3.8-flash"),
        ("spec-review-auth-flow", "gemini-3.8-flash"),
        ("tasks-gen", "gemini-3.8-flash"),
        ("tasks-review", "gemini-3.8-flash"),
        ("challenge", "gpt-6.1-sol"),
        ("implement-logic", "claude-sonnet-5-5"),
        ("implement-testing", "claude-sonnet-5-5"),
        ("review", "gpt-6.1-sol"),
    ];
    let total = usd * 10.0;
    let calls = calls.map(|(step, model)| {
        format!(
            "  - step: {step}\n    model: {model}\n    tokens_in: 40000\n    tokens_out: 1000\n    \
             duration_ms: 20000\n    cost: {usd}\n"
        )
    });
    format!(
        "change_id: {id}\nphase: complete\ncomplexity: medium\n{more}llm_calls:\n{}total_cost: {total}\n",
        calls.concat()
    )
}

fn forecast(project: &TestProject, more: &[&str]) -> Value {
    let command = ["plan", "add-login", "Show a dark mode to readers", "--forecast", "--json"];
    project.run(command.iter().chain(more)).fine().json()
}

fn usd(forecast: &Value) -> [f64; 2] {
    serde_json::from_value(forecast["cost_usd"].clone()).unwrap()
}

// contract W8
#[test]
fn forecast_calls_nobody_and_writes_nothing() {
    // A program that leaves a trace, and a repository in which agentd was never set up.
    let project = TestProject::empty().repository();
    let trace = project.home().join("called");
    let project = project.program("gemini", &format!("touch {}", trace.display()));
    let before = without_times(project.tree());
    insta::assert_snapshot!(
        project.run(["plan", "add-dark", "Add a dark mode", "--forecast"]).transcript(), @"
    exit 0
    clarify          gemini  flash         0–1       0–84.0k      $0–$0.048        0 s–80 s
    proposal-gen     gemini  flash         1–2  47.0k–380.0k   $0.023–$0.19      37 s–5 min
    proposal-review  gemini  flash           1  31.0k–130.0k  $0.014–$0.057       22 s–90 s
    spec-gen         gemini  flash         1–6    42.0k–1.1M   $0.021–$0.51     35 s–14 min
    spec-review      gemini  flash         1–3  31.0k–370.0k   $0.014–$0.17      22 s–5 min
    tasks-gen        gemini  flash         1–2  42.0k–340.0k   $0.021–$0.17      35 s–5 min
    tasks-review     gemini  flash           1  31.0k–130.0k  $0.014–$0.057       22 s–90 s
    format-fix       gemini  flash         0–2      0–330.0k       $0–$0.16       0 s–3 min
    challenge        codex   gpt-6.1-sol   1–3   100.0k–1.3M    $0.10–$1.30     75 s–15 min
    reproposal       gemini  flash         0–2      0–630.0k       $0–$0.28       0 s–7 min
    implement        claude  sonnet        1–8  460.0k–15.0M    $0.24–$7.90    3 min–97 min
    review           codex   gpt-6.1-sol   1–3   170.0k–2.2M    $0.13–$1.70    100 s–20 min
    fix              claude  sonnet        0–2        0–2.1M       $0–$1.40      0 s–15 min
    all              -       -            9–25    1.2M–14.0M    $0.66–$9.00  11 min–100 min

    medium complexity; from built-in guesses: this project has no ledger yet
    --- stderr
    "
    );
    let json = project.run(["plan", "add-dark", "Add a dark mode", "--forecast", "--json"]);
    let json = json.fine().json();
    for key in ["calls", "tokens", "cost_usd", "seconds"] {
        let [least, most]: [f64; 2] = serde_json::from_value(json[key].clone()).unwrap();
        assert!(0.0 < least && least < most, "{key}: {least} to {most}");
    }
    assert_eq!(json["basis"], "built-in");
    assert_eq!(json["error"], json!({"changes": 0, "inside": 0}));
    assert_eq!(without_times(project.tree()), before);
    assert!(!trace.exists());
    let unknown = project.run(["plan", "add-dark", "--forecast", "--json"]);
    assert_eq!(unknown.json_error()["kind"], "no_description");
}

// contract W8
#[test]
fn the_ledger_of_the_project_is_the_basis() {
    let project = TestProject::new();
    let built_in = forecast(&project, &[]);
    let right = "forecast:\n  calls: [5, 20]\n  tokens: [1, 2]\n  cost_usd: [0.05, 0.5]\n  seconds: [1, 2]\n";
    for (id, more) in [("one", right), ("two", right), ("three", "")] {
        project.write_root(&format!("agentd/changes/{id}/STATE.yaml"), finished(id, 0.01, more));
    }
    let wrong = right.replace("0.05, 0.5", "0.5, 5.0");
    let archived = finished("four", 0.01, &wrong).replace("phase: complete", "phase: archived");
    project.write_root("agentd/archive/2026-11-04-four/STATE.yaml", archived);
    // One that cannot be read says nothing.
    project.write_root("agentd/changes/five/STATE.yaml", "change_id: five\nphase: ?\n");
    let json = forecast(&project, &[]);
    assert_eq!((&json["basis"], &json["based_on"]), (&json!("ledger"), &json!(4)));
    assert_eq!(json["error"], json!({"changes": 3, "inside": 2}));
    let [least, most] = usd(&json);
    assert!(least <= 0.1 && 0.1 <= most, "{least} to {most}");
    assert!(most < usd(&built_in)[0], "{most}");
    let text = project.run(["plan", "add-login", "Show a dark mode", "--forecast"]).transcript();
    assert!(text.contains("from 4 finished changes of this project\nof 3 earlier changes with a forecast, 2 were inside the range\n"), "{text}");
}

// contract W8
#[test]
fn only_the_rest_of_a_change_is_forecast() {
    let steps = |project: &TestProject| -> Vec<String> {
        let json = project.run(["plan", "add-oauth", "--forecast", "--json"]).fine().json();
        let steps = json["steps"].as_array().unwrap().iter();
        steps.map(|step| step["step"].as_str().unwrap().to_owned()).collect()
    };
    let project = TestProject::new().change("add-oauth");
    assert_eq!(steps(&project), ["challenge", "reproposal", "implement", "review", "fix"]);
    let project = TestProject::new().change("add-oauth").challenged(&[]).approved();
    assert_eq!(steps(&project), ["implement", "review", "fix"]);
    let project =
        TestProject::new().change("add-oauth").file("STATE.yaml", finished("add-oauth", 0.01, ""));
    insta::assert_snapshot!(project.run(["plan", "add-oauth", "--forecast"]).transcript(), @"
    exit 0
    --- stderr
    `add-oauth` needs no more calls of agents.
    ");
}

// contract W8
#[test]
fn above_the_limit_nothing_begins_without_consent() {
    let project = limited("0.5");
    let refused = project.run(PLAN.iter().chain(&["--auto", "--json"])).exits(1);
    insta::assert_snapshot!(format!("{:#}", refused.json_error()), @r#"
    {
      "kind": "above_ask_limit",
      "message": "`add-login` may cost $2.50–$34, which is above $0.50",
      "cause": "`[budget] ask_above_usd` wants a person to agree to it first",
      "hints": [
        "see what it is made of: agentd plan add-login 'Add a login' --skip-clarify --forecast",
        "agree to it: agentd plan add-login 'Add a login' --skip-clarify --yes",
        "or raise ask_above_usd in [budget]: agentd/config.toml"
      ]
    }
    "#);
    assert!(!has_begun(&project) && calls(&project).is_empty());
    let begun = project.run(PLAN.iter().chain(&["--auto", "--yes", "--json"])).exits(0);
    assert_eq!(begun.json()["phase"], "challenged");
    assert_eq!(begun.stderr.matches("forecast: ").count(), 1, "{}", begun.stderr);
    // A change that has begun goes on.
    assert_eq!(project.run(["plan", CHANGE, "--json"]).fine().json()["phase"], "challenged");
    // What it may cost less than needs no consent.
    let project = limited("1000.0");
    project.run(PLAN.iter().chain(&["--auto"])).exits(0);
}

// contract W8
#[test]
fn what_was_expected_is_kept_and_held_against_the_truth() {
    let project = limited("1000.0");
    project.run(PLAN.iter().chain(&["--auto"])).exits(0);
    let state = format!("agentd/changes/{CHANGE}/STATE.yaml");
    let text = project.read_root(&state);
    let kept = text.lines().skip_while(|line| *line != "forecast:").take(13);
    insta::assert_snapshot!(kept.collect::<Vec<_>>().join("\n"), @"
    forecast:
      calls:
        - 7
        - 21
      tokens:
        - 2100000
        - 24000000
      cost_usd:
        - 2.5
        - 34.0
      seconds:
        - 1100
        - 11000
    ");
    // Finished by hand: a dollar and a half, which is less than the least.
    project.write_root(&state, text.replace("phase: challenged", "phase: complete"));
    let error = |description| {
        let json = project.run(["plan", "add-more", description, "--forecast", "--json"]);
        json.fine().json()["error"].clone()
    };
    assert_eq!(error("Add more"), json!({"changes": 1, "inside": 0}));
    let inside = text.replace("phase: challenged", "phase: complete").replace("- 2.5\n", "- 0.5\n");
    project.write_root(&state, inside);
    assert_eq!(error("Add more"), json!({"changes": 1, "inside": 1}));
    let plan = ["plan", "add-more", "Add more", "--skip-clarify", "--git", "in-place", "--auto"];
    let next = project.run(plan);
    let line = "1 finished change of this project; of 1 earlier change with a forecast, 1 was inside the range)";
    assert!(next.stderr.contains(line), "{}", next.stderr);
}

// contract W8
#[test]
fn on_a_terminal_a_person_is_asked_above_the_limit() {
    let project = limited("0.5");
    let start = || Terminal::start(project.command(PLAN).env("NO_COLOR", "1"));
    let mut terminal = start();
    terminal.wait_for("`add-login` may cost $");
    terminal.wait_for("> No, stop here");
    terminal.press("\r");
    terminal.wait_for("more: agentd explain above_ask_limit");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(1), "{seen}");
    assert!(!has_begun(&project) && calls(&project).is_empty());
    let mut terminal = start();
    terminal.wait_for("> No, stop here");
    terminal.press(DOWN);
    terminal.wait_for("> Yes, begin");
    terminal.press("\r");
    terminal.wait_for("What next?");
    assert_eq!(calls(&project).len(), 4);
}
