//! `cost` and `log`: what the ledger holds, as people and programs read it.

use crate::harness::Project;

const STATE: &str = "change_id: add-oauth\nphase: proposed\ncreated_at: 2026-11-04T10:00:00Z\ndescription: \"Add OAuth\"\nllm_calls:\n  - step: proposal-gen\n    model: gemini-3.8-flash\n    tokens_in: 15234\n    tokens_out: 892\n    tokens_cached: 600\n    duration_ms: 4521\n    cost: 0.0145\n    timestamp: 2026-11-04T10:01:00Z\n  - step: challenge\n    model: gpt-6.1-sol\n    tokens_in: 24567\n    tokens_out: 2345\n    duration_ms: 68934\n    cost: 0.0726\n    timestamp: 2026-11-04T10:05:00Z\n  - step: challenge\n    model: gpt-6.1-sol\n    tokens_in: 1\n    tokens_out: 1\n    duration_ms: 1\n    cost: 0.0\n    timestamp: 2026-11-04T10:06:00Z\ntotal_cost: 0.0871\ntotal_tokens_in: 39802\ntotal_tokens_out: 3238\n";

#[test]
fn cost_is_told_step_by_step_with_bars() {
    let project = Project::new().change("add-oauth").file("STATE.yaml", STATE);
    insta::assert_snapshot!(project.run(["cost"]).transcript(), @r"
    exit 0
    proposal-gen     15.2k in       892 out     4.5 s  $0.0145    ████                  gemini-3.8-flash
    challenge ×2     24.5k in      2.3k out  1 m 08 s  $0.0726    ████████████████████  gpt-6.1-sol

    3 calls, 39.8k tokens in, 3.2k out, 1 m 13 s, $0.0871
    --- stderr
    ");
    let json = project.run(["cost", "--json"]).fine().json();
    assert_eq!(json["calls"], 3);
    assert_eq!(json["steps"][1]["calls"], 2);
    assert_eq!(json["tokens_cached"], 600);
}

#[test]
fn a_change_that_cost_nothing_says_so() {
    let project = Project::new()
        .change("add-oauth")
        .file("STATE.yaml", "change_id: add-oauth\nphase: proposed\n");
    let run = project.run(["cost"]).exits(0);
    assert_eq!(run.stdout, "");
    run.stderr_has("no agent was called");
}

#[test]
fn the_log_tells_everything_in_order() {
    let project = Project::new().change("add-oauth").file("STATE.yaml", STATE);
    project.run(["decide", "stop", "--note", "not this year"]).fine();
    let run = project.run(["log"]).fine();
    let kinds: Vec<&str> =
        run.stdout.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(kinds, ["begun", "call", "call", "call", "decision"]);
    assert!(
        run.stdout.contains(
            "call      proposal-gen by gemini-3.8-flash: 15.2k in, 892 out, 4.5 s, $0.0145"
        ),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("stop by ada: not this year"), "{}", run.stdout);
    let json = project.run(["log", "--json"]).fine().json();
    assert_eq!(json["events"][0]["text"], "Add OAuth");
    assert_eq!(json["events"][4]["kind"], "decision");
}
