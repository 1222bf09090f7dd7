//! STATE.yaml: written as it is read, and never guessed at.

use agentd_core::agent::Complexity;
use agentd_core::ids::ChangeId;
use agentd_core::phase::Phase;
use agentd_core::state::{self, GitSetup, LlmCall, Placement, State, StateError};
use proptest::prelude::*;

use crate::corpus;

/// P appendix B, as the seed has it.
const SEED: &str = include_str!("fixtures/seed_state.yaml");

fn id(text: &str) -> ChangeId {
    ChangeId::new(text).unwrap()
}

fn call(step: &str, model: &str, numbers: (u64, u64, u64, u64), cost: f64, at: &str) -> LlmCall {
    LlmCall {
        agent: None,
        step: step.into(),
        model: model.to_owned(),
        tokens_in: numbers.0,
        tokens_out: numbers.1,
        tokens_cached: numbers.2,
        duration_ms: numbers.3,
        cost,
        unsettled: false,
        timestamp: Some(at.parse().unwrap()),
        session_id: None,
        run: None,
        failure: None,
        asked: false,
    }
}

/// An error has a place inside of the text, and says where that is.
fn check_error(text: &str, error: &StateError) {
    let span = error.span();
    assert!(span.start <= span.end && text.get(span.range()).is_some(), "{error:?} in {text:?}");
    if let StateError::Unreadable { message, line, column, .. } = error {
        assert!(!message.is_empty());
        assert!((1..=text.lines().count().max(1) + 1).contains(line), "{error:?} in {text:?}");
        assert!(*column >= 1);
    }
}

/// P appendix B, C22, P27.
#[test]
fn the_example_of_the_seed_is_read() {
    let flash = "gemini-3-flash-preview";
    let expected = State {
        phase: Phase::Challenged,
        created_at: Some("2026-01-19T10:30:00Z".parse().unwrap()),
        updated_at: Some("2026-01-19T10:45:00Z".parse().unwrap()),
        session_id: Some("abc123-uuid-xyz".to_owned()),
        llm_calls: vec![
            call("proposal-gen", flash, (15234, 892, 0, 4521), 0.0019, "2026-01-19T10:30:15Z"),
            call("proposal-review", flash, (8234, 234, 0, 1821), 0.0010, "2026-01-19T10:30:45Z"),
            call(
                "spec-gen-auth-flow",
                flash,
                (12456, 1234, 0, 3245),
                0.0018,
                "2026-01-19T10:32:00Z",
            ),
            call(
                "challenge",
                "gpt-5.2-codex",
                (24567, 2345, 0, 8934),
                0.0678,
                "2026-01-19T10:44:30Z",
            ),
        ],
        total_cost: 0.1234,
        total_tokens_in: 156_789,
        total_tokens_out: 12_345,
        ..State::new(id("add-oauth"), "", "2026-01-19".parse().unwrap())
    };
    assert_eq!(state::parse(SEED, &id("add-oauth")).unwrap(), expected);
}

#[test]
fn a_state_is_written_in_block_style() {
    let mut state = State::new(
        id("add-oauth"),
        "Sign in: \"now\"\n# really",
        "2026-01-19T10:30:00Z".parse().unwrap(),
    );
    state.session_id = Some("1e3".to_owned());
    state.complexity = Some(Complexity::Medium);
    state.last_action = Some("challenge".into());
    state.git = Some(GitSetup {
        workflow: Placement::InPlace,
        branch: Some("agentd/add-oauth".to_owned()),
        work_tree: Some("../p-agentd/add-oauth".to_owned()),
        base_commit: Some("0123456".to_owned()),
        base_branch: Some("main".to_owned()),
    });
    let mut challenge = call("challenge", "gpt-5", (10, 2, 4, 7), 0.5, "2026-01-19T10:31:00Z");
    challenge.session_id = Some("0199".to_owned());
    state.record_call(challenge);
    let expected = "\
# Written by agentd. Change it with agentd's commands, not by hand.
change_id: add-oauth
phase: proposed
created_at: 2026-01-19T10:30:00Z
updated_at: 2026-01-19T10:30:00Z
description: \"Sign in: \\\"now\\\"\\n# really\"
session_id: \"1e3\"
complexity: medium
last_action: challenge
iteration: 0
git:
  workflow: in-place
  branch: agentd/add-oauth
  work_tree: \"../p-agentd/add-oauth\"
  base_commit: \"0123456\"
  base_branch: main
llm_calls:
  - step: challenge
    model: gpt-5
    tokens_in: 10
    tokens_out: 2
    tokens_cached: 4
    duration_ms: 7
    cost: 0.5
    timestamp: 2026-01-19T10:31:00Z
    session_id: \"0199\"
total_cost: 0.5
total_tokens_in: 10
total_tokens_out: 2
";
    assert_eq!(state::render(&state), expected);
}

#[test]
fn what_could_be_taken_for_something_else_is_quoted() {
    let cases = [
        ("abc-1", "abc-1"),
        ("2026-01-19T10:30:00Z", "2026-01-19T10:30:00Z"),
        ("2026-01-19", "\"2026-01-19\""),
        ("# Z", "\"# Z\""),
        ("a Z", "\"a Z\""),
        ("true", "\"true\""),
    ];
    for (session, written) in cases {
        let mut state = State::new(id("a"), "", "2026-01-19".parse().unwrap());
        state.session_id = Some(session.to_owned());
        let text = state::render(&state);
        assert!(text.contains(&format!("\nsession_id: {written}\n")), "{text}");
        assert_eq!(state::parse(&text, &id("a")).unwrap(), state);
    }
}

#[test]
fn totals_are_sums_that_do_not_overflow() {
    let mut state = State::new(id("a"), "", "2026-01-19".parse().unwrap());
    for (tokens, cost) in [(u64::MAX, f64::MAX), (1, f64::MAX), (2, f64::NAN), (3, f64::INFINITY)] {
        state.record_call(call("x", "m", (tokens, tokens, 0, 0), cost, "2026-01-19"));
    }
    assert_eq!((state.total_tokens_in, state.total_tokens_out), (u64::MAX, u64::MAX));
    assert_eq!(state.llm_calls.len(), 4);
    assert_eq!(state::parse(&state::render(&state), &id("a")).unwrap(), state);
}

#[test]
fn totals_are_as_round_as_their_parts() {
    let mut state = State::new(id("a"), "", "2026-01-19".parse().unwrap());
    for cost in [0.1, 0.2, 0.000_3] {
        state.record_call(call("x", "m", (1, 1, 0, 0), cost, "2026-01-19"));
    }
    let text = state::render(&state);
    let total = text.lines().find(|line| line.starts_with("total_cost"));
    assert_eq!(total, Some("total_cost: 0.3003"));
}

/// What is wrong, the message and the place.
#[test]
fn an_invalid_state_is_an_error_with_place_and_reason() {
    let cases = [
        ("", "it is empty (line 1, column 1)"),
        ("\u{feff} \n\n", "it is empty (line 3, column 1)"),
        ("change_id: other\nphase: proposed\n", "it is the state of `other`, not of `a`"),
        ("phase: proposed\n", "missing field `change_id` (line 1, column 1)"),
        ("change_id: a\n", "missing field `phase` (line 1, column 1)"),
        (
            "change_id: a\nphase: banana\n",
            "unknown variant `banana`, expected one of proposed, challenged, rejected, implementing, complete, archived (line 2, column 8)",
        ),
        (
            "\u{feff}change_id: a\nphase: banana\n",
            "unknown variant `banana`, expected one of proposed, challenged, rejected, implementing, complete, archived (line 2, column 8)",
        ),
        (
            "change_id: ../a\nphase: proposed\n",
            "change id `../a` has '.' at position 1; ids are lower-case letters, digits and `-`, and start with a letter or digit (line 1, column 12)",
        ),
        (
            "change_id: a\nphase: proposed\nphase: complete\n",
            "duplicate mapping key: phase (line 3, column 1)",
        ),
        ("- a\n- b\n", "expected mapping start (line 1, column 1)"),
        ("{\"change_id\": \"a\"", "unclosed bracket '{' (line 1, column 1)"),
    ];
    let found = cases.map(|(text, _)| {
        let error = state::parse(text, &id("a")).unwrap_err();
        check_error(text, &error);
        error.to_string()
    });
    assert_eq!(found, cases.map(|(_, expected)| expected.to_owned()));
    let unknown = state::parse("change_id: a\nphase: proposed\nspent: 1\n", &id("a")).unwrap_err();
    assert!(unknown.to_string().starts_with("unknown field `spent`"), "{unknown}");
    assert_eq!(unknown.span().start, "change_id: a\nphase: proposed\n".len());
}

#[test]
fn a_span_points_behind_a_byte_order_mark() {
    let text = "\u{feff}change_id: a\nphase: b\n";
    assert_eq!(state::parse(text, &id("a")).unwrap_err().span().of(text), "b");
}

#[test]
fn a_bomb_is_refused() {
    let mut bomb =
        "change_id: a\nphase: proposed\nx0: &x0 [y, y, y, y, y, y, y, y, y]\n".to_owned();
    for i in 1..9 {
        let aliases = vec![format!("*x{}", i - 1); 9].join(", ");
        bomb += &format!("x{i}: &x{i} [{aliases}]\n");
    }
    let deep =
        format!("change_id: a\nphase: proposed\nx: {}{}\n", "[".repeat(50_000), "]".repeat(50_000));
    let mut stairs = "change_id: a\nphase: proposed\n".to_owned();
    for depth in 0..3000 {
        stairs += &format!("{}x:\n", " ".repeat(depth));
    }
    for text in [bomb, deep, stairs] {
        check_error(&text, &state::parse(&text, &id("a")).unwrap_err());
    }
}

/// No prefix panics, and none invents: what is read has nothing that was not written.
#[test]
fn a_truncated_state_is_an_error_or_a_shorter_state() {
    let whole = state::parse(SEED, &id("add-oauth")).unwrap();
    let mut errors = 0;
    for end in 0..SEED.len() {
        match state::parse(&SEED[..end], &id("add-oauth")) {
            Err(error) => {
                errors += 1;
                check_error(&SEED[..end], &error);
            }
            Ok(read) => {
                assert_eq!((&read.change_id, read.phase), (&whole.change_id, whole.phase));
                assert!(read.llm_calls.len() <= whole.llm_calls.len());
            }
        }
    }
    assert!(errors > 100, "{errors}");
}

proptest! {
    #[test]
    fn states_come_back(state in corpus::state()) {
        let text = state::render(&state);
        let read = state::parse(&text, &state.change_id);
        prop_assert_eq!(read.as_ref(), Ok(&state), "{}", text);
        let windows = state::parse(&text.replace('\n', "\r\n"), &state.change_id);
        prop_assert_eq!(windows.as_ref(), Ok(&state), "with CRLF");
    }

    #[test]
    fn no_text_makes_a_state_panic(text in corpus::nasty(), more in any::<String>(), at in any::<prop::sample::Index>()) {
        let mut inside = SEED.to_owned();
        let at = (0..=at.index(SEED.len())).rev().find(|at| SEED.is_char_boundary(*at)).unwrap_or(0);
        inside.insert_str(at, &text);
        for text in [text, more, inside] {
            if let Err(error) = state::parse(&text, &id("add-oauth")) {
                check_error(&text, &error);
            }
        }
    }
}
