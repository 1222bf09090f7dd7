//! `cost` and `log`: what the ledger holds, as people and programs read it.

use agentd_core::ids::ChangeId;
use agentd_core::prompt::{Review, TestEvidence};
use agentd_core::state::{Choice, Decision};
use agentd_core::text::Line;
use agentd_engine::change::documents::update_state;
use serde_json::json;

use test_project::TestProject;

const STATE: &str = "change_id: add-oauth\nphase: proposed\ncreated_at: 2026-11-04T10:00:00Z\ndescription: \"Add OAuth\"\nllm_calls:\n  - step: proposal-gen\n    model: gemini-3.8-flash\n    tokens_in: 15234\n    tokens_out: 892\n    tokens_cached: 600\n    duration_ms: 4521\n    cost: 0.0145\n    timestamp: 2026-11-04T10:01:00Z\n  - step: challenge\n    model: gpt-6.1-sol\n    tokens_in: 24567\n    tokens_out: 2345\n    duration_ms: 68934\n    cost: 0.0726\n    timestamp: 2026-11-04T10:05:00Z\n  - step: challenge\n    model: gpt-6.1-sol\n    tokens_in: 1\n    tokens_out: 1\n    duration_ms: 1\n    cost: 0.0\n    timestamp: 2026-11-04T10:06:00Z\ntotal_cost: 0.0871\ntotal_tokens_in: 39802\ntotal_tokens_out: 3238\n";

#[test]
fn cost_by_step_with_bars() {
    let project = TestProject::new().change("add-oauth").file("STATE.yaml", STATE);
    insta::assert_snapshot!(project.run(["cost"]).transcript(), @"
    exit 0
    proposal-gen  1  -  15.2k   892     4.5 s  $0.0145  ██            gemini-3.8-flash
    challenge     2  -  24.5k  2.3k  1 m 08 s  $0.0726  ████████████  gpt-6.1-sol

    $0.0871  3 calls, 39.8k tokens in, 3.2k out, 1 m 13 s
    --- stderr
    ");
    let json = project.run(["cost", "--json"]).fine().json();
    assert_eq!(json["calls"], 3);
    assert_eq!(json["steps"][1]["calls"], 2);
    assert_eq!(json["tokens_cached"], 600);
}

#[test]
fn cost_of_nothing() {
    let project = TestProject::new()
        .change("add-oauth")
        .file("STATE.yaml", "change_id: add-oauth\nphase: proposed\n");
    insta::assert_snapshot!(project.run(["cost"]), @"
    exit 0
    --- stderr
    `add-oauth` has cost nothing yet: no agent was called.
    ");
}

#[test]
fn log_is_in_order() {
    let project = TestProject::new().change("add-oauth").file("STATE.yaml", STATE);
    let at = test_project::stamp("2030-01-01T00:00:00Z");
    update_state(&project.store(), &project.id(), &project.holder(), at, |state| {
        let (note, by) = (Line::new("not this year"), Line::new("ada"));
        state.decisions.push(Decision { choice: Choice::Stop, note, by, at, plan_hash: None });
        Ok(())
    })
    .unwrap();
    insta::assert_snapshot!(project.run(["log"]), @"
    exit 0
    [TIME]  begun      Add OAuth
    [TIME]  call       proposal-gen by gemini-3.8-flash: 15.2k in, 892 out, 4.5 s, $0.0145
    [TIME]  call       challenge by gpt-6.1-sol: 24.5k in, 2.3k out, 1 m 08 s, $0.0726
    [TIME]  call       challenge by gpt-6.1-sol: 1 in, 1 out, 1 ms
    [TIME]  adopted    as proposed
    [TIME]  decision   stop by ada: not this year
    --- stderr
    ");
    insta::assert_snapshot!(project.run(["log", "--json"]), @r#"
    exit 0
    {
      "version": 1,
      "change_id": "add-oauth",
      "events": [
        {
          "at": "[TIME]",
          "kind": "begun",
          "text": "Add OAuth"
        },
        {
          "at": "[TIME]",
          "kind": "call",
          "text": "proposal-gen by gemini-3.8-flash: 15.2k in, 892 out, 4.5 s, $0.0145"
        },
        {
          "at": "[TIME]",
          "kind": "call",
          "text": "challenge by gpt-6.1-sol: 24.5k in, 2.3k out, 1 m 08 s, $0.0726"
        },
        {
          "at": "[TIME]",
          "kind": "call",
          "text": "challenge by gpt-6.1-sol: 1 in, 1 out, 1 ms"
        },
        {
          "at": "[TIME]",
          "kind": "adopted",
          "text": "as proposed"
        },
        {
          "at": "[TIME]",
          "kind": "decision",
          "text": "stop by ada: not this year"
        }
      ]
    }
    --- stderr
    "#);
}

/// The run of a reviewer who knew the test results and tried these verdicts; those that
/// were refused are marked.
fn review_run(hour: u32, exit_code: Option<i32>, verdicts: &[(&str, bool)]) -> String {
    let change = ChangeId::new("add-oauth").unwrap();
    let tests = TestEvidence {
        command: "make check".to_owned(),
        exit_code,
        seconds: 3,
        output: "ok".to_owned(),
    };
    let (tests, diff) = (Some(&tests), "+x");
    let prompt = Review {
        change: &change,
        specs: &[],
        tasks: &[],
        diff,
        tests,
        reproduced: None,
        earlier: &[],
        settled: &[],
    }
    .render();
    let mut lines = vec![json!({"run": 1, "step": "review", "change": "add-oauth",
        "agent": "codex", "role": "reviewer", "attempt": 1, "argv": ["codex"], "env": [],
        "cwd": "/p", "prompt": prompt, "started_at": format!("2026-11-04T{hour}:00:00Z")})];
    for (number, (verdict, taken)) in verdicts.iter().enumerate() {
        let issues: Vec<_> = (*verdict != "APPROVED")
            .then(|| json!({"severity": "high", "title": "Wrong", "description": "It is."}))
            .into_iter()
            .collect();
        let arguments = json!({"change_id": "add-oauth", "verdict": verdict,
            "summary": "Read.", "issues": issues});
        let id = number.to_string();
        lines.push(json!({"t": 1, "event": "tool_call", "id": id, "server": "agentd",
            "name": "create_review", "arguments": arguments}));
        let output =
            format!("Wrote REVIEW.md at 2026-11-04T{hour}:0{}:00Z (sha256 0).", number + 1);
        lines
            .push(json!({"t": 2, "event": "tool_result", "id": id, "ok": taken, "output": output}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// STATE.yaml and REVIEW.md have the latest round only; the runs have all of them.
#[test]
fn log_has_every_round_of_code_review() {
    let state = "change_id: add-oauth\nphase: implementing\n\
        test_run:\n  command: make check\n  exit_code: 0\n  duration_ms: 2500\n  at: 2026-11-04T13:59:00Z\n\
        code_review:\n  verdict: APPROVED\n  reviewer: codex\n  at: 2026-11-04T14:01:00Z\n  iteration: 3\n";
    let project = TestProject::new().change("add-oauth").file("STATE.yaml", state);
    let logged = |project: &TestProject| -> Vec<String> {
        let json = project.run(["log", "--json"]).fine().json();
        let events = json["events"].as_array().unwrap().iter();
        let text = |event: &serde_json::Value| {
            format!("{} {}", event["kind"].as_str().unwrap(), event["text"].as_str().unwrap())
        };
        events.map(text).filter(|text| !text.starts_with("begun")).collect()
    };
    // Without the runs, what the state knows.
    let latest = ["tests passed in 2.5 s: make check", "review APPROVED by codex, round 3"];
    assert_eq!(logged(&project), latest);
    let project = project
        .file(
            "runs/0003-review.jsonl",
            review_run(11, Some(2), &[("APPROVED", false), ("NEEDS_FIX", true)]),
        )
        .file("runs/0004-fix.jsonl", "not a run\n")
        .file("runs/0005-review.jsonl", review_run(12, None, &[("MAJOR_ISSUES", true)]))
        .file("runs/0006-review.jsonl", review_run(13, Some(0), &[]))
        .file("runs/0007-review.jsonl", review_run(14, Some(0), &[("APPROVED", true)]));
    let all = [
        "tests failed with exit code 2 after 3.0 s: make check",
        "review NEEDS_FIX by codex, round 1: 1 HIGH, 0 MEDIUM, 0 LOW",
        "tests stopped after 3.0 s: make check",
        "review MAJOR_ISSUES by codex, round 2: 1 HIGH, 0 MEDIUM, 0 LOW; open: I1",
        "tests passed in 3.0 s: make check",
        "tests passed in 2.5 s: make check",
        "review APPROVED by codex, round 3: 0 HIGH, 0 MEDIUM, 0 LOW; unconfirmed: I1",
    ];
    assert_eq!(logged(&project), all);
}

/// Lesson 3: what was used before agentd was killed counts, and the budget knows it.
#[test]
fn killed_call_counts_as_far_as_it_got() {
    let header = |agent: &str| {
        json!({"run": 1, "step": "proposal-gen", "change": crate::cli::stand_in::CHANGE, "agent": agent,
            "role": "planner", "attempt": 1, "argv": ["x"], "env": [], "cwd": "/p", "prompt": "",
            "started_at": "2026-11-04T10:00:00Z"})
    };
    let claude = json!({"type": "result", "subtype": "success", "is_error": false,
        "result": "x", "session_id": "s", "total_cost_usd": 5.0,
        "usage": {"input_tokens": 10, "output_tokens": 2}});
    let codex = json!({"type": "turn.completed", "usage": {"input_tokens": 3_000_000,
        "cached_input_tokens": 0, "output_tokens": 1000}});
    for (agent, line, tokens) in [("claude", claude, 10), ("codex", codex, 3_000_000)] {
        let project = crate::cli::stand_in::project(
            "[budget]\nmax_cost_usd = 4.0\nmax_tokens = 2000000\n",
            &[],
        )
        .begun(crate::cli::stand_in::CHANGE)
        .file(
            "runs/0001-proposal-gen.jsonl",
            format!(
                "{}\n{}\n{{\"t\":5,\"ra",
                header(agent),
                json!({"t": 4, "raw": line.to_string()})
            ),
        );
        let run = project
            .run(["plan", crate::cli::stand_in::CHANGE, "--skip-clarify", "--json"])
            .exits(1);
        assert_eq!(run.json()["error"]["kind"], "budget", "{}", run.stdout);
        assert!(crate::cli::stand_in::calls(&project).is_empty(), "nothing more was called");
        let cost = project.run(["cost", "--json"]).fine().json();
        assert_eq!((&cost["calls"], &cost["tokens_in"]), (&json!(1), &json!(tokens)), "{cost}");
    }
}
