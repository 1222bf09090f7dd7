//! The state machine: every phase against every transition, and what no sequence of them can do.

use agentd_core::diagnostic::Counts;
use agentd_core::document::review::CodeVerdict;
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::next_step::NextStep;
use agentd_core::phase::{Phase, Refused, Transition, allowed};
use agentd_core::stamp::Stamp;
use agentd_core::state::{CodeReview, PlanReview, State, TestRun};
use agentd_core::text::Line;
use proptest::prelude::*;

fn stamp(second: u32) -> Stamp {
    format!("2026-01-19T10:00:{:02}Z", second % 60).parse().unwrap()
}

fn plan(text: &str) -> Digest {
    Digest::of(text)
}

/// A state in a phase, whose plan `reviewed` got this verdict.
fn state(phase: Phase, verdict: Option<PlanVerdict>) -> State {
    let id = ChangeId::new("add-login").unwrap();
    let plan_review = verdict
        .map(|verdict| PlanReview::new(verdict, plan("reviewed"), 3, Line::new("codex"), stamp(1)));
    State { phase, plan_review, iteration: 3, ..State::new(id, "Sign in", stamp(0)) }
}

/// The state that a phase usually has.
fn usual(phase: Phase) -> State {
    let verdict = match phase {
        Phase::Proposed => PlanVerdict::NeedsRevision,
        Phase::Rejected => PlanVerdict::Rejected,
        Phase::Challenged | Phase::Implementing | Phase::Complete | Phase::Archived => {
            PlanVerdict::Approved
        }
    };
    state(phase, Some(verdict))
}

/// What a refusal in a phase offers instead.
fn allowed_steps(phase: Phase) -> Vec<NextStep> {
    let id = ChangeId::new("add-login").unwrap();
    allowed(phase).iter().map(|command| command.on(&id)).collect()
}

fn reviewed(verdict: PlanVerdict, plan: Digest) -> Transition {
    Transition::PlanReviewed { verdict, plan, reviewer: Line::new("codex"), at: stamp(2) }
}

fn code_reviewed(verdict: CodeVerdict) -> Transition {
    Transition::CodeReviewed { verdict, reviewer: Line::new("claude"), at: stamp(3) }
}

fn accepted(plan: Digest, high: usize, medium: usize, low: usize) -> Transition {
    Transition::MinorIssuesAccepted { plan, left: Counts { high, medium, low } }
}

fn started(plan: Digest) -> Transition {
    Transition::ImplementationStarted { plan }
}

/// The new phase, or the reason of the refusal.
fn outcome(state: &State, transition: &Transition) -> Result<Phase, String> {
    let before = state.clone();
    let result = state.apply(transition);
    assert_eq!(*state, before, "apply leaves its state alone");
    result.map(|next| next.phase).map_err(|refused| refused.to_string())
}

fn table() -> Vec<(&'static str, Transition)> {
    let (old, new) = (|| plan("reviewed"), || plan("edited"));
    vec![
        ("approve the same plan", reviewed(PlanVerdict::Approved, old())),
        ("approve a new plan", reviewed(PlanVerdict::Approved, new())),
        ("revise a new plan", reviewed(PlanVerdict::NeedsRevision, new())),
        ("reject a new plan", reviewed(PlanVerdict::Rejected, new())),
        ("accept minor issues", accepted(old(), 0, 1, 9)),
        ("start", started(old())),
        ("start with a stale plan", started(new())),
        ("approve the code", code_reviewed(CodeVerdict::Approved)),
        ("ask for a fix", code_reviewed(CodeVerdict::NeedsFix)),
        ("major issues", code_reviewed(CodeVerdict::MajorIssues)),
        ("fix approved code", Transition::CodeReopened { plan: old() }),
        ("fix code of another plan", Transition::CodeReopened { plan: new() }),
        ("reopen", Transition::Reopened),
        ("archive", Transition::Archived { forced: false }),
        ("archive by force", Transition::Archived { forced: true }),
        ("unarchive", Transition::Unarchived),
    ]
}

/// WF1, WF2, WF4, C11, C20: one line per phase, one word per transition of [`table`].
#[test]
fn every_phase_takes_exactly_the_transitions_of_the_table() {
    const EXPECTED: [(Phase, &str); 6] = [
        (
            Phase::Proposed,
            "chal chal prop reje chal -    -    -    -    -    -    -    -    -    arch -",
        ),
        (
            Phase::Challenged,
            "-    chal prop reje -    impl -    -    -    -    -    -    prop -    arch -",
        ),
        (
            Phase::Rejected,
            "-    chal prop reje -    -    -    -    -    -    -    -    prop -    arch -",
        ),
        (
            Phase::Implementing,
            "-    -    -    -    -    impl -    comp impl impl -    -    prop -    arch -",
        ),
        (
            Phase::Complete,
            "-    -    -    -    -    -    -    -    -    -    impl -    prop arch arch -",
        ),
        (
            Phase::Archived,
            "-    -    -    -    -    -    -    -    -    -    -    -    -    -    -    comp",
        ),
    ];
    for (phase, expected) in EXPECTED {
        let found: Vec<String> = table()
            .iter()
            .map(|(_, transition)| match outcome(&usual(phase), transition) {
                Ok(phase) => phase.name()[..4].to_owned(),
                Err(_) => "-".to_owned(),
            })
            .collect();
        assert_eq!(found, expected.split_whitespace().collect::<Vec<_>>(), "{phase}");
    }
}

/// Whether to pay a challenger is decided as its verdict will be (C20).
#[test]
fn a_plan_may_be_challenged_exactly_if_a_verdict_on_it_is_taken() {
    for phase in Phase::ALL {
        for text in ["reviewed", "edited"] {
            let (state, plan) = (usual(phase), plan(text));
            let verdict = reviewed(PlanVerdict::NeedsRevision, plan.clone());
            let asked = state.may_be_challenged(&plan);
            assert_eq!(asked, state.apply(&verdict).map(drop), "{phase}, {text}");
        }
    }
}

#[test]
fn refusals_say_why_and_what_is_allowed() {
    let cases = [
        (
            Phase::Rejected,
            0,
            "a change that is rejected cannot be challenged: the plan has not changed since it was rejected",
        ),
        (
            Phase::Challenged,
            0,
            "a change that is challenged cannot be challenged: this plan is already approved",
        ),
        (Phase::Complete, 1, "a change that is complete cannot be challenged: it is past planning"),
        (
            Phase::Challenged,
            6,
            "a change that is challenged cannot be implemented: the plan has changed since it was approved",
        ),
        (
            Phase::Implementing,
            6,
            "a change that is implementing cannot be implemented: the plan has changed since it was approved",
        ),
        (Phase::Proposed, 5, "a change that is proposed cannot be implemented"),
        (Phase::Complete, 4, "a change that is complete cannot be accepted with minor issues"),
        (
            Phase::Challenged,
            7,
            "a change that is challenged cannot have its implementation reviewed",
        ),
        (Phase::Implementing, 10, "a change that is implementing cannot have its code fixed"),
        (
            Phase::Complete,
            11,
            "a change that is complete cannot have its code fixed: the plan has changed since it was approved",
        ),
        (Phase::Proposed, 12, "a change that is proposed cannot go back to planning"),
        (
            Phase::Implementing,
            13,
            "a change that is implementing cannot be archived: its implementation is not approved",
        ),
        (Phase::Archived, 14, "a change that is archived cannot be archived"),
        (Phase::Complete, 15, "a change that is complete cannot be unarchived"),
    ];
    for (phase, row, expected) in cases {
        let refused = usual(phase).apply(&table()[row].1).unwrap_err();
        assert_eq!(refused.to_string(), expected);
        assert_eq!((refused.phase, &refused.allowed), (phase, &allowed_steps(phase)));
        assert!(!refused.allowed.is_empty());
    }
}

/// C11: no HIGH and at most one MEDIUM issue, of the plan as it is, and never a rejected one.
#[test]
fn c11_only_minor_issues_are_accepted() {
    let proposed = usual(Phase::Proposed);
    let cases = [
        (proposed.clone(), accepted(plan("reviewed"), 0, 1, 99), Ok(Phase::Challenged)),
        (
            proposed.clone(),
            accepted(plan("reviewed"), 0, 2, 0),
            Err("HIGH issues or more than one MEDIUM issue are left"),
        ),
        (
            proposed.clone(),
            accepted(plan("reviewed"), 1, 0, 0),
            Err("HIGH issues or more than one MEDIUM issue are left"),
        ),
        (
            proposed,
            accepted(plan("edited"), 0, 0, 0),
            Err("the plan has changed since it was challenged"),
        ),
        (
            state(Phase::Proposed, None),
            accepted(plan("reviewed"), 0, 0, 0),
            Err("nobody has challenged the plan yet"),
        ),
        (
            state(Phase::Proposed, Some(PlanVerdict::Rejected)),
            accepted(plan("reviewed"), 0, 0, 0),
            Err("the plan was rejected"),
        ),
    ];
    for (state, transition, expected) in cases {
        let found = state
            .apply(&transition)
            .map(|next| next.phase)
            .map_err(|refused| refused.reason.unwrap());
        assert_eq!(found, expected);
    }
}

/// C20: a rejected plan is challenged again only once it has changed, reopened or not.
#[test]
fn c20_reopening_does_not_bypass_a_rejection() {
    let reopened = usual(Phase::Rejected).apply(&Transition::Reopened).unwrap();
    assert_eq!(reopened.phase, Phase::Proposed);
    let same = reopened.apply(&reviewed(PlanVerdict::Approved, plan("reviewed"))).unwrap_err();
    assert_eq!(same.reason, Some("the plan has not changed since it was rejected"));
    assert!(reopened.apply(&accepted(plan("reviewed"), 0, 0, 0)).is_err());
    let edited = reopened.apply(&reviewed(PlanVerdict::Approved, plan("edited"))).unwrap();
    assert_eq!(edited.phase, Phase::Challenged);
}

/// Lesson 1: what is approved can be implemented, reviewed, archived and taken back.
#[test]
fn lesson_1_an_approved_plan_reaches_the_archive() {
    use Phase::{Archived, Challenged, Complete, Implementing, Proposed};
    let begun = State::new(ChangeId::new("add-login").unwrap(), "", stamp(0));
    let steps = [
        reviewed(PlanVerdict::NeedsRevision, plan("a")),
        reviewed(PlanVerdict::Approved, plan("b")),
        started(plan("b")),
        code_reviewed(CodeVerdict::NeedsFix),
        started(plan("b")),
        code_reviewed(CodeVerdict::Approved),
        Transition::Archived { forced: false },
        Transition::Unarchived,
    ];
    let mut phases = vec![begun.phase];
    let mut state = begun.clone();
    for step in &steps {
        state = state.apply(step).unwrap();
        phases.push(state.phase);
    }
    let way = [
        Proposed,
        Proposed,
        Challenged,
        Implementing,
        Implementing,
        Implementing,
        Complete,
        Archived,
        Complete,
    ];
    assert_eq!(phases, way);
    let expected = State {
        phase: Complete,
        plan_review: Some(PlanReview::new(
            PlanVerdict::Approved,
            plan("b"),
            0,
            Line::new("codex"),
            stamp(2),
        )),
        code_review: Some(CodeReview::new(CodeVerdict::Approved, 2, Line::new("claude"), stamp(3))),
        ..begun
    };
    assert_eq!(state, expected);
    let accepted = usual(Phase::Proposed).apply(&accepted(plan("reviewed"), 0, 0, 1)).unwrap();
    assert_eq!(outcome(&accepted, &started(plan("reviewed"))), Ok(Implementing));
}

#[test]
fn a_failed_test_run_blocks_only_approval() {
    let run = |exit_code| TestRun {
        command: "cargo test".to_owned(),
        exit_code,
        output_tail: "".into(),
        duration_ms: 1,
        at: stamp(4),
        tree: None,
        tree_after: None,
    };
    let with = |run| State { test_run: run, ..usual(Phase::Implementing) };
    let approve = code_reviewed(CodeVerdict::Approved);
    for failed in [Some(1), Some(-1), None] {
        let state = with(Some(run(failed)));
        assert_eq!(state.apply(&approve).unwrap_err().reason, Some("the recorded test run failed"));
        assert_eq!(outcome(&state, &code_reviewed(CodeVerdict::NeedsFix)), Ok(Phase::Implementing));
    }
    assert_eq!(outcome(&with(Some(run(Some(0)))), &approve), Ok(Phase::Complete));
    assert_eq!(outcome(&with(None), &approve), Ok(Phase::Complete));
}

#[test]
fn what_is_archived_unfinished_comes_back_unfinished() {
    for phase in Phase::ALL.into_iter().filter(|phase| *phase != Phase::Archived) {
        let before = usual(phase);
        let archived = before.apply(&Transition::Archived { forced: true }).unwrap();
        assert_eq!(
            archived,
            State { phase: Phase::Archived, archived_from: Some(phase), ..before.clone() }
        );
        assert_eq!(archived.apply(&Transition::Unarchived).unwrap(), before);
    }
}

#[test]
fn an_uncountable_round_does_not_panic() {
    let review = CodeReview::new(CodeVerdict::NeedsFix, u32::MAX, Line::new("x"), stamp(0));
    let state = State { code_review: Some(review), ..usual(Phase::Implementing) };
    assert_eq!(outcome(&state, &code_reviewed(CodeVerdict::NeedsFix)), Ok(Phase::Implementing));
}

fn any_transition() -> impl Strategy<Value = Transition> {
    let digest = || prop::sample::select(vec!["a", "b"]).prop_map(plan);
    let verdict = prop::sample::select(vec![
        PlanVerdict::Approved,
        PlanVerdict::NeedsRevision,
        PlanVerdict::Rejected,
    ]);
    let code = prop::sample::select(vec![
        CodeVerdict::Approved,
        CodeVerdict::NeedsFix,
        CodeVerdict::MajorIssues,
    ]);
    prop_oneof![
        3 => (verdict, digest()).prop_map(|(verdict, plan)| reviewed(verdict, plan)),
        1 => (digest(), 0..2_usize, 0..3_usize).prop_map(|(plan, high, medium)| accepted(plan, high, medium, 0)),
        3 => digest().prop_map(started),
        2 => code.prop_map(code_reviewed),
        1 => digest().prop_map(|plan| Transition::CodeReopened { plan }),
        1 => Just(Transition::Reopened),
        1 => any::<bool>().prop_map(|forced| Transition::Archived { forced }),
        1 => Just(Transition::Unarchived),
    ]
}

/// The phases that a transition may lead to, by the contract alone.
fn may_lead_to(from: &State, transition: &Transition) -> Vec<Phase> {
    match transition {
        Transition::PlanReviewed { verdict: PlanVerdict::Approved, .. } => vec![Phase::Challenged],
        Transition::PlanReviewed { verdict: PlanVerdict::NeedsRevision, .. } => {
            vec![Phase::Proposed]
        }
        Transition::PlanReviewed { verdict: PlanVerdict::Rejected, .. } => vec![Phase::Rejected],
        Transition::MinorIssuesAccepted { .. } => vec![Phase::Challenged],
        Transition::ImplementationStarted { .. } => vec![Phase::Implementing],
        Transition::CodeReviewed { verdict: CodeVerdict::Approved, .. } => vec![Phase::Complete],
        Transition::CodeReviewed { .. } => vec![Phase::Implementing],
        Transition::CodeReopened { .. } => vec![Phase::Implementing],
        Transition::Reopened => vec![Phase::Proposed],
        Transition::Archived { .. } => vec![Phase::Archived],
        Transition::Unarchived => from.archived_from.into_iter().collect(),
    }
}

proptest! {
    #[test]
    fn no_sequence_bends_the_machine(transitions in prop::collection::vec(any_transition(), 0..40)) {
        let mut state = State::new(ChangeId::new("add-login").unwrap(), "d", stamp(0));
        for transition in &transitions {
            let next = match state.apply(transition) {
                Ok(next) => next,
                Err(Refused { phase, allowed: list, .. }) => {
                    prop_assert_eq!((phase, list), (state.phase, allowed_steps(state.phase)));
                    continue;
                }
            };
            prop_assert!(may_lead_to(&state, transition).contains(&next.phase), "{:?} {:?}", state, transition);
            // Only its own fields change.
            let mut rest = next.clone();
            rest.phase = state.phase;
            match transition {
                Transition::PlanReviewed { .. } => rest.plan_review.clone_from(&state.plan_review),
                Transition::CodeReviewed { .. } => rest.code_review.clone_from(&state.code_review),
                Transition::Archived { .. } | Transition::Unarchived => rest.archived_from = state.archived_from,
                Transition::MinorIssuesAccepted { .. }
                | Transition::ImplementationStarted { .. }
                | Transition::CodeReopened { .. }
                | Transition::Reopened => {}
            }
            prop_assert_eq!(&rest, &state);
            // Nobody implements what was not judged, or was judged otherwise.
            if next.phase == Phase::Implementing {
                let review = next.plan_review.as_ref().unwrap();
                prop_assert_ne!(review.verdict, PlanVerdict::Rejected);
                if let Transition::ImplementationStarted { plan } = transition {
                    prop_assert_eq!(&review.plan_hash, plan);
                }
            }
            if next.phase == Phase::Complete {
                prop_assert_eq!(next.code_review.as_ref().map(|r| r.verdict), Some(CodeVerdict::Approved));
            }
            state = next;
        }
    }
}
