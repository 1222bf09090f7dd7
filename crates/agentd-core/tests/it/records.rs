//! What a state keeps of verdicts and test runs, and what these are about.

use agentd_core::agent::AgentKind;
use agentd_core::document::review_block::{PlanVerdict, ReviewBlock};
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::span::Uncompared;
use agentd_core::stamp::Stamp;
use agentd_core::state::{
    self, Actor, GitSetup, Placement, PlanReview, State, TestRun, is_independent,
};
use agentd_core::text::Line;

fn stamp(second: u32) -> Stamp {
    format!("2026-01-19T10:00:{second:02}Z").parse().unwrap()
}

fn actors(agents: &[AgentKind]) -> Vec<Actor> {
    agents.iter().map(|agent| Actor::new(*agent, "m")).collect()
}

/// contract T4
#[test]
fn a_reviewer_is_independent_of_authors_from_other_vendors_only() {
    use AgentKind::{Claude, Codex, Gemini};
    let cases: [(&[AgentKind], AgentKind, bool); 5] = [
        (&[], Codex, true),
        (&[Gemini], Codex, true),
        (&[Codex], Codex, false),
        (&[Gemini, Claude], Codex, true),
        (&[Gemini, Codex], Codex, false),
    ];
    for (authors, reviewer, expected) in cases {
        let found = is_independent(&actors(authors), &Actor::new(reviewer, "another"));
        assert_eq!(found, expected, "{reviewer:?} of {authors:?}");
    }
}

fn block() -> ReviewBlock {
    ReviewBlock {
        iteration: 1,
        reviewer: Line::new("codex"),
        date: Some(stamp(1)),
        plan: Some(Digest::of("plan")),
        verdict: PlanVerdict::Approved,
        summary: "Fine.".into(),
        previous: Vec::new(),
        issues: Vec::new(),
        place: Uncompared::default(),
    }
}

#[test]
fn a_verdict_is_of_the_review_that_it_was_read_from() {
    let verdict = |review_hash| PlanReview {
        review_hash,
        ..PlanReview::new(
            PlanVerdict::Approved,
            Digest::of("plan"),
            1,
            Line::new("codex"),
            stamp(1),
        )
    };
    // Whatever the review says, its digest decides.
    let rejected = ReviewBlock { verdict: PlanVerdict::Rejected, ..block() };
    assert!(verdict(Some(block().hash())).is_of(&block()));
    assert!(!verdict(Some(block().hash())).is_of(&rejected));
    assert!(verdict(Some(rejected.hash())).is_of(&rejected));
    // Without one, plan, time and verdict do.
    assert!(verdict(None).is_of(&ReviewBlock { summary: "Other.".into(), ..block() }));
    for other in [
        rejected,
        ReviewBlock { plan: Some(Digest::of("other")), ..block() },
        ReviewBlock { plan: None, ..block() },
        ReviewBlock { date: Some(stamp(2)), ..block() },
        ReviewBlock { date: None, ..block() },
    ] {
        assert!(!verdict(None).is_of(&other), "{other:?}");
    }
}

/// contract T3
#[test]
fn a_test_run_covers_what_it_tested_and_what_it_left() {
    let tree = |text: Option<&str>| text.map(Digest::of);
    let run = |before, after| TestRun {
        command: "cargo test".to_owned(),
        exit_code: Some(0),
        output_tail: "".into(),
        duration_ms: 1,
        at: stamp(0),
        tree: tree(before),
        tree_after: tree(after),
    };
    let now = Digest::of("now");
    let cases = [
        (None, None, false),
        (Some("now"), None, true),
        (Some("before"), None, false),
        (Some("before"), Some("now"), true),
        (Some("now"), Some("after"), true),
        (Some("before"), Some("after"), false),
    ];
    for (before, after, expected) in cases {
        assert_eq!(run(before, after).covers(&now), expected, "{before:?}, {after:?}");
    }
}

#[test]
fn a_placement_has_the_name_that_is_written() {
    assert_eq!(Placement::ALL.map(Placement::name), ["branch", "worktree", "in-place"]);
    for placement in Placement::ALL {
        assert_eq!(serde_json::to_value(placement).unwrap(), placement.name());
    }
}

#[test]
fn a_new_state_has_no_calls_and_no_commit() {
    let new = State::new(ChangeId::new("a").unwrap(), "", stamp(0));
    assert_eq!(new.base_commit(), None);
    let text = state::render(&new);
    assert!(text.contains("\nllm_calls: []\n"), "{text}");
    let commit = |base_commit: Option<&str>| GitSetup {
        workflow: Placement::Branch,
        branch: None,
        work_tree: None,
        base_commit: base_commit.map(str::to_owned),
        base_branch: None,
    };
    let begun = State { git: Some(commit(Some("0123456"))), ..new.clone() };
    assert_eq!(begun.base_commit(), Some("0123456"));
    assert_eq!(State { git: Some(commit(None)), ..new }.base_commit(), None);
}
