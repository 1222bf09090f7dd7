//! The journal: what happened, in lines that show when they are changed.

use agentd_core::agent::AgentKind;
use agentd_core::document::review::CodeVerdict;
use agentd_core::document::review_block::PlanVerdict;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::journal::{
    self, Broken, Compared, Event, Files, Head, Journal, Mismatch, Public, Record, Signature,
    compare,
};
use agentd_core::phase::{Phase, Transition};
use agentd_core::stamp::Stamp;
use agentd_core::state::{
    self, Actor, Choice, Decision, GitSetup, LlmCall, Placement, State, TestRun,
};
use agentd_core::text::Line;
use proptest::prelude::*;

fn at(second: i64) -> Stamp {
    Stamp::new(jiff::Timestamp::from_second(1_790_000_000 + second).unwrap())
}

fn call(run: u32) -> LlmCall {
    LlmCall {
        step: "challenge".into(),
        agent: Some(AgentKind::Codex),
        model: "gpt".to_owned(),
        tokens_in: 1,
        tokens_out: 1,
        tokens_cached: 0,
        duration_ms: 1,
        cost: 0.5,
        unsettled: false,
        timestamp: Some(at(1)),
        session_id: None,
        run: Some(run),
        failure: None,
        asked: false,
    }
}

/// A change as agentd writes it: each state with its text, and the journal after it.
struct Story {
    states: Vec<(State, String)>,
    journals: Vec<String>,
}

impl Story {
    fn new() -> Self {
        let state = State::new(ChangeId::new("add-login").unwrap(), "Sign in", at(0));
        let mut story = Self { states: Vec::new(), journals: Vec::new() };
        story.write(state);
        story
    }

    fn write(&mut self, state: State) {
        let known = self.journals.last().map(|text| journal::parse(text).unwrap());
        let head = known.map_or_else(Head::default, |journal| journal.head);
        let events = journal::events(self.states.last().map(|(state, _)| state), &state);
        let text = state::render(&state);
        let files = Files::from([("proposal.md".to_owned(), Digest::of("proposal"))]);
        let Ok(new) =
            journal::entries(&head, events, &state, &text, &files, at(1), journal::unsigned);
        let lines: String = new.iter().map(|entry| entry.line() + "\n").collect();
        let old = self.journals.last().cloned().unwrap_or_default();
        self.journals.push(old + &lines);
        self.states.push((state, text));
    }

    fn update(&mut self, update: impl FnOnce(&mut State)) {
        let mut state = self.state().clone();
        update(&mut state);
        self.write(state);
    }

    fn state(&self) -> &State {
        &self.states.last().unwrap().0
    }

    fn journal(&self) -> &str {
        self.journals.last().unwrap()
    }

    /// Compares the files of one moment with the copy of another.
    fn compare(
        &self,
        state: usize,
        public: Option<&str>,
        private: Option<&str>,
    ) -> Result<Option<Compared>, Mismatch> {
        let (state, text) = &self.states[state];
        compare(state, text, public, private)
    }
}

/// A plan that was challenged twice, implemented, tested, approved and archived.
fn story() -> Story {
    let mut story = Story::new();
    story.update(|state| state.record_call(call(1)));
    story.update(|state| {
        state.record_call(call(2));
        state.record_call(call(3));
    });
    let reviewed = |verdict| Transition::PlanReviewed {
        verdict,
        plan: Digest::of("plan"),
        reviewer: Line::new("codex"),
        at: at(2),
    };
    story.update(|state| *state = state.apply(&reviewed(PlanVerdict::NeedsRevision)).unwrap());
    story.update(|state| {
        state.decisions.push(Decision {
            choice: Choice::Fix,
            note: Line::new("15 minutes"),
            by: Line::new("ada"),
            at: at(3),
            plan_hash: None,
        });
    });
    story.update(|state| {
        *state = state.apply(&reviewed(PlanVerdict::Approved)).unwrap();
        let review = state.plan_review.as_mut().unwrap();
        review.challenger = Some(Actor::new(AgentKind::Codex, "gpt"));
        review.authors = vec![Actor::new(AgentKind::Gemini, "pro")];
        review.independent = Some(true);
        review.review_hash = Some(Digest::of("block"));
    });
    let plan = Digest::of("plan");
    story.update(|state| {
        *state = state.apply(&Transition::ImplementationStarted { plan }).unwrap();
    });
    story.update(|state| {
        state.test_run = Some(TestRun {
            command: "cargo test".to_owned(),
            exit_code: Some(0),
            output_tail: "".into(),
            duration_ms: 1,
            at: at(4),
            tree: Some(Digest::of("tree")),
            tree_after: None,
        });
    });
    story.update(|state| {
        let verdict = CodeVerdict::Approved;
        let reviewer = Line::new("codex");
        *state = state.apply(&Transition::CodeReviewed { verdict, reviewer, at: at(5) }).unwrap();
        let review = state.code_review.as_mut().unwrap();
        review.tree = Some(Digest::of("tree"));
        review.review_hash = Some(Digest::of("REVIEW.md"));
    });
    story.update(|state| {
        *state = state.apply(&Transition::Archived { forced: false }).unwrap();
    });
    story
}

/// Who and what, as a person would tell it.
fn names(journal: &Journal) -> Vec<String> {
    let name = |event: &Event| {
        let value = serde_json::to_value(event).unwrap();
        value["event"].as_str().unwrap().to_owned()
    };
    journal.entries.iter().map(|entry| format!("{} {}", entry.seq, name(&entry.event))).collect()
}

#[test]
fn what_happened_follows_from_the_states() {
    let story = story();
    let journal = journal::parse(story.journal()).unwrap();
    let expected = [
        "1 begun",
        "2 call",
        "3 call",
        "4 call",
        "5 plan_reviewed",
        "6 decided",
        "7 plan_reviewed",
        "8 moved",
        "9 tests_run",
        "10 code_reviewed",
        "11 moved",
    ];
    assert_eq!(names(&journal), expected);
    assert_eq!(journal.text(), story.journal());
    assert_eq!(journal.reviews(), ["block", "REVIEW.md"].map(Digest::of).into());
    let record = Record::of(&journal);
    let plan = record.plan.unwrap();
    assert_eq!((plan.seq, plan.verdict, plan.independent), (7, PlanVerdict::Approved, Some(true)));
    assert_eq!(plan.reviewer, Some(Actor::new(AgentKind::Codex, "gpt")));
    let code = record.code.unwrap();
    assert_eq!((code.seq, code.tree), (10, Some(Digest::of("tree"))));
    let tests = record.tests.unwrap();
    assert_eq!((tests.seq, tests.exit_code, tests.trees), (9, Some(0), vec![Digest::of("tree")]));
    let (seq, choice, by, note) = &record.decisions[0];
    assert_eq!((*seq, *choice, by.as_str(), note.as_str()), (6, Choice::Fix, "ada", "15 minutes"));
    assert_eq!((record.calls, record.adopted), ((3, 1.5), None));
}

/// The events after an update, and the number of the call where it is one.
fn news(before: &State, after: &State) -> Vec<String> {
    let events = journal::events(Some(before), after);
    let name = |event: &Event| match event {
        Event::Call { run, .. } => format!("call {run:?}"),
        Event::Placed { git } => format!("placed {}", git.workflow.name()),
        Event::Updated {} => "updated".to_owned(),
        other => panic!("{other:?}"),
    };
    events.iter().map(name).collect()
}

#[test]
fn every_call_is_recorded_once() {
    let new = State::new(ChangeId::new("a").unwrap(), "", at(0));
    let with = |runs: &[Option<u32>]| State {
        llm_calls: runs.iter().map(|run| LlmCall { run: *run, ..call(1) }).collect(),
        ..new.clone()
    };
    let check = |before: &[Option<u32>], after: &[Option<u32>], expected: &[&str]| {
        assert_eq!(news(&with(before), &with(after)), expected, "{before:?} {after:?}");
    };
    check(&[], &[None, Some(1)], &["call None", "call Some(1)"]);
    check(&[None], &[None], &["updated"]);
    check(&[None], &[None, None], &["call None"]);
    check(&[Some(1)], &[Some(1), Some(2)], &["call Some(2)"]);
    // The call of a run that was killed stands in front of later ones.
    check(&[Some(2)], &[Some(1), Some(2)], &["call Some(1)"]);
    check(&[Some(2), None], &[Some(1), Some(2), None], &["call Some(1)"]);
}

#[test]
fn where_it_is_worked_on_is_recorded_when_it_changes() {
    let new = State::new(ChangeId::new("a").unwrap(), "", at(0));
    let setup = |workflow| GitSetup {
        workflow,
        branch: None,
        work_tree: None,
        base_commit: None,
        base_branch: None,
    };
    let with = |workflow| State { git: Some(setup(workflow)), ..new.clone() };
    assert_eq!(news(&new, &with(Placement::Branch)), ["placed branch"]);
    assert_eq!(news(&with(Placement::Branch), &with(Placement::Branch)), ["updated"]);
    assert_eq!(news(&with(Placement::Branch), &with(Placement::InPlace)), ["placed in-place"]);
    assert_eq!(news(&with(Placement::Branch), &new), ["updated"]);
}

#[test]
fn the_last_entry_of_a_write_has_the_documents() {
    let mut journal = journal::parse(story().journal()).unwrap();
    let without = journal.entries.iter().filter(|entry| entry.files.is_empty());
    assert_eq!(without.map(|entry| entry.seq).collect::<Vec<_>>(), [3], "the first of two calls");
    let last = |journal: &Journal| journal.files().map(|(entry, files)| (entry.seq, files.len()));
    assert_eq!(last(&journal), Some((11, 1)));
    journal.entries.truncate(3);
    assert_eq!(last(&journal), Some((2, 1)));
    assert_eq!(last(&Journal::default()), None);
}

#[test]
fn a_journal_that_is_not_one_says_where() {
    let story = story();
    let lines: Vec<&str> = story.journal().split_inclusive('\n').collect();
    let check = |lines: &[&str], expected: &str| {
        let broken = journal::parse(&lines.concat()).unwrap_err();
        assert_eq!(broken.to_string(), expected);
    };
    let number = "its number does not follow the line before";
    check(&[lines[0], lines[2]], &format!("line 2: {number}"));
    check(&lines[1..], &format!("line 1: {number}"));
    check(&[lines[0], lines[1], lines[1]], &format!("line 3: {number}"));
    check(&[lines[0], "{}\n"], "line 2: it was changed after it was written");
    // A line of another journal.
    let (state, text) = &story.states[0];
    let entry = |head: Head, command: String| {
        let event = Event::TestsRun { command, exit_code: None, tree: None, tree_after: None };
        let files = Files::new();
        let new =
            journal::entries(&head, vec![event], state, text, &files, at(1), journal::unsigned);
        let Ok(new) = new;
        format!("{}\n", new[0].line())
    };
    let other = entry(Head { seq: 1, line: Some(Digest::of("x")) }, String::new());
    check(&[lines[0], &other], "line 2: it does not name the line before");
    // A line has at most a megabyte.
    let room = (1 << 20) - (entry(Head::default(), String::new()).len() - 1);
    let longest = entry(Head::default(), "x".repeat(room));
    assert_eq!(journal::parse(&longest).unwrap().entries.len(), 1);
    check(&[&entry(Head::default(), "x".repeat(room + 1))], "line 1: it is too long");
    // A line that was cut short does not count; line ends of Windows do not hurt.
    assert_eq!(journal::parse(lines[0].trim_end()), Ok(Journal::default()));
    let windows = story.journal().replace('\n', "\r\n");
    assert_eq!(journal::parse(&windows).map(|journal| journal.entries.len()), Ok(11));
}

/// What is not a verdict, a decision or a call is still an entry: the state was written.
#[test]
fn every_write_of_the_state_has_an_entry() {
    let mut story = Story::new();
    story.update(|state| state.session_id = Some("s".to_owned()));
    let journal = journal::parse(story.journal()).unwrap();
    assert_eq!(names(&journal), ["1 begun", "2 updated"]);
    let last = journal.last().unwrap();
    assert_eq!(last.state, Digest::of(&story.states[1].1));
    assert_eq!(journal.entries[0].claims, last.claims, "a session is nothing that counts");
}

#[test]
fn files_that_agree_are_taken_as_they_are() {
    let story = story();
    let last = story.states.len() - 1;
    let journal = story.journal();
    let compared = story.compare(last, Some(journal), Some(journal)).unwrap().unwrap();
    assert_eq!((compared.public, compared.known_here), (Public::AsIs, true));
    assert_eq!(compared.journal.text(), journal);
    // In a fresh clone there is no copy.
    let compared = story.compare(last, Some(journal), None).unwrap().unwrap();
    assert_eq!((compared.public, compared.known_here), (Public::AsIs, false));
    // Before journals there was neither.
    assert_eq!(story.compare(last, None, None), Ok(None));
    // A copy that is damaged says nothing: then the journal has to agree by itself.
    let compared = story.compare(last, Some(journal), Some("{}\n")).unwrap().unwrap();
    assert!(!compared.known_here);
    assert_eq!(story.compare(last, None, Some("{}\n")), Err(Mismatch::StateEdited));
}

/// Where a write may have ended: around each end of a line, and here and there in it.
fn cuts(before: &str, after: &str) -> Vec<usize> {
    let ends = |at: usize| after.as_bytes().get(at).is_none_or(|byte| *byte == b'\n');
    let near = |cut: usize| (cut - 1..=cut + 1).any(ends);
    (before.len()..=after.len()).filter(|cut| near(*cut) || cut % 61 == 0).collect()
}

/// A kill leaves the copy, the state and the journal written up to some point, in this order.
#[test]
fn a_kill_leaves_the_journal_whole_or_one_entry_short() {
    let story = story();
    for write in 1..story.states.len() {
        let (before, after) = (&story.journals[write - 1], &story.journals[write]);
        for cut in cuts(before, after) {
            // Before the state: the last entries are of something that did not happen.
            let compared = story.compare(write - 1, Some(before), Some(&after[..cut]));
            let compared = compared.unwrap().unwrap();
            assert_eq!(compared.public, Public::AsIs, "write {write}, {cut} bytes");
            assert_eq!(compared.journal.text(), *before, "write {write}, {cut} bytes");
            // After it: the journal is completed from the copy.
            let compared = story.compare(write, Some(&after[..cut]), Some(after));
            let compared = compared.unwrap().unwrap();
            let expected = if cut < after.len() { Public::OneShort } else { Public::AsIs };
            assert_eq!(compared.public, expected, "write {write}, {cut} bytes");
            assert_eq!(compared.journal.text(), *after, "write {write}, {cut} bytes");
        }
        // What was there before the write does not get lost with it.
        let compared = story.compare(write, Some(&before[..before.len() - 1]), Some(after));
        assert_eq!(compared.unwrap().unwrap().public, Public::Changed, "write {write}");
    }
    // The first write: nothing was there before.
    let first = &story.journals[0];
    let compared = story.compare(0, None, Some(first)).unwrap().unwrap();
    assert_eq!(compared.public, Public::OneShort);
    // A second one that did not happen does not make the first undone, with or without a file.
    let compared = story.compare(0, None, Some(&story.journals[1])).unwrap().unwrap();
    assert_eq!((compared.public, compared.journal.text()), (Public::OneShort, first.clone()));
}

#[test]
fn files_that_somebody_else_wrote_are_named() {
    let story = story();
    let last = story.states.len() - 1;
    let journal = story.journal();
    let check = |state, public, private, expected| {
        assert_eq!(story.compare(state, public, private).map(|_| ()), Err(expected));
    };
    // An earlier state with the journal of today: a verdict was taken back by hand.
    for state in 0..last {
        check(state, Some(journal), Some(journal), Mismatch::StateEdited);
        check(state, Some(journal), None, Mismatch::StateEdited);
    }
    // A later state than the journal knows: a verdict was forged.
    let early = &*story.journals[4];
    for state in 5..=last {
        check(state, Some(early), Some(early), Mismatch::StateEdited);
        check(state, Some(early), None, Mismatch::StateEdited);
        check(state, None, Some(early), Mismatch::StateEdited);
    }
    // Entries that this machine did not write: a teammate's, or forged ones with sound digests.
    let count = journal.lines().count() as u64 - early.lines().count() as u64;
    check(last, Some(journal), Some(early), Mismatch::Foreign { count });
    // Git has checked out an older version of both.
    check(4, Some(early), Some(journal), Mismatch::Behind { count });
    // A journal that was edited is restored, as long as the state is the one that was recorded.
    let flipped = journal.replacen("begun", "begum", 1);
    for edited in ["", "nonsense\n", early, &flipped] {
        let compared = story.compare(last, Some(edited), Some(journal)).unwrap().unwrap();
        assert_eq!(compared.public, Public::Changed, "{edited:.20}");
        assert_eq!(compared.journal.text(), journal);
    }
    // Without a copy there is nothing to restore it from.
    check(last, Some(""), None, Mismatch::StateEdited);
    let cut = Broken { line: 11, why: "it has no end" };
    check(last, journal.strip_suffix('\n'), None, Mismatch::Damaged(cut));
    let edited = journal.replacen("\"ada\"", "\"eve\"", 1);
    assert!(matches!(
        story.compare(last, Some(&edited), None),
        Err(Mismatch::Damaged(broken)) if broken.line == 6
    ));
}

/// A person may move a change back by hand, and not forward.
#[test]
fn a_phase_may_be_moved_back_by_hand() {
    let story = story();
    let last = story.states.len() - 1;
    let moved = |from: usize, phase: Phase| {
        let state = State { phase, ..story.states[from].0.clone() };
        let (text, journal) = (state::render(&state), &story.journals[from]);
        [Some(&**journal), None].map(|copy| compare(&state, &text, Some(journal), copy).is_ok())
    };
    // Archived, complete, implementing, challenged, sent back.
    for (from, phase, ok) in [
        (last, Phase::Complete, true),
        (last - 1, Phase::Implementing, true),
        (last - 1, Phase::Proposed, true),
        (last - 1, Phase::Archived, false),
        (last - 2, Phase::Complete, false),
        (last - 2, Phase::Challenged, true),
        (5, Phase::Implementing, true),
        (5, Phase::Complete, false),
        (3, Phase::Challenged, false),
        (3, Phase::Rejected, true),
    ] {
        assert_eq!(moved(from, phase), [ok, ok], "{from} {phase}");
    }
}

/// What came before a state that somebody accepted is not known, whatever entries claim.
#[test]
fn an_accepted_state_starts_the_record_again() {
    let story = story();
    let mut journal = journal::parse(story.journal()).unwrap();
    let (state, text) = story.states.last().unwrap();
    let adopted = vec![Event::Adopted { phase: Phase::Complete, by: Line::new("eve") }];
    let (head, files) = (&journal.head, Files::new());
    let Ok(new) = journal::entries(head, adopted, state, text, &files, at(9), journal::unsigned);
    journal.entries.extend(new);
    let record = Record::of(&journal);
    assert_eq!((record.plan, record.code, record.tests), (None, None, None));
    assert_eq!(record.adopted, Some((12, Phase::Complete)));
    // What people decided and what agents cost is known all the same.
    assert_eq!((record.calls.0, record.decisions.len()), (3, 1));
}

/// The first write to a change from before journals may not happen either.
#[test]
fn a_first_write_that_did_not_happen_leaves_no_journal() {
    let story = story();
    let (state, text) = &story.states[3];
    let adopted = vec![Event::Adopted { phase: state.phase, by: Line::default() }];
    let entries = |head: &Head, events, state: &State, text: &str| {
        let files = Files::new();
        let Ok(new) = journal::entries(head, events, state, text, &files, at(9), journal::unsigned);
        new
    };
    let taken = entries(&Head::default(), adopted, state, text);
    let head = Head { seq: 1, line: Some(Digest::of(taken[0].line())) };
    let (next, next_text) = &story.states[4];
    let more = entries(&head, journal::events(Some(state), next), next, next_text);
    let copy: String = taken.iter().chain(&more).map(|entry| entry.line() + "\n").collect();
    assert_eq!(compare(state, text, None, Some(&copy)), Ok(None));
    // Where only the state was taken over, and agentd was killed before it wrote that down, it
    // happened.
    let alone = format!("{}\n", taken[0].line());
    let compared = compare(state, text, None, Some(&alone)).unwrap().unwrap();
    assert_eq!((compared.public, compared.journal.text()), (Public::OneShort, alone));
    let compared = compare(next, next_text, None, Some(&copy)).unwrap().unwrap();
    assert_eq!(compared.journal.text(), copy);
}

const SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgi7Oj7ABhE+///A/9+oU7cXEjQ3\nM3uv\n-----END SSH SIGNATURE-----\n";

/// A journal of one state with two signed lines, and what was signed.
fn signed() -> (State, String, Vec<String>) {
    let state = State::new(ChangeId::new("add-login").unwrap(), "Sign in", at(0));
    let (text, files) = (state::render(&state), Files::new());
    let events = vec![Event::Begun {}, Event::Updated {}];
    let texts = std::cell::RefCell::new(Vec::new());
    let sign = |text: &str| {
        texts.borrow_mut().push(text.to_owned());
        Ok::<_, std::convert::Infallible>(Signature::from_file(SIGNATURE))
    };
    let Ok(entries) =
        journal::entries(&Head::default(), events, &state, &text, &files, at(1), sign);
    let lines = entries.iter().map(|entry| entry.line() + "\n").collect();
    (state, lines, texts.into_inner())
}

#[test]
fn a_signature_is_part_of_its_line() {
    let (_, text, signed) = signed();
    let journal = journal::parse(&text).unwrap();
    assert_eq!(journal.text(), text);
    for (entry, signed) in journal.entries.iter().zip(&signed) {
        assert_eq!(entry.signed_text(), *signed);
        assert_eq!(entry.sig.as_ref().unwrap().to_file(), SIGNATURE);
        // As a person would check it, with `sha256sum`.
        let line = entry.line();
        let before = line.split(",\"sig\":").next().unwrap();
        assert_eq!(Digest::of(before).to_string(), *signed);
    }
    assert_ne!(signed[0], signed[1]);
    // The line after it names it with its signature.
    let mut without = journal.entries[0].clone();
    without.sig = None;
    let second = text.lines().nth(1).unwrap();
    assert!(journal::parse(&format!("{}\n{second}\n", without.line())).is_err());
}

#[test]
fn what_is_no_signature_is_not_read() {
    let inner = "-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----";
    assert!(Signature::from_file(inner).is_some());
    let long = inner.replace("U1NI", &"U1NI".repeat(5000));
    for wrong in ["", "U1NI", &inner.replace("U1NI", ""), &inner.replace("U1NI", "U1\"I"), &long] {
        assert_eq!(Signature::from_file(wrong), None, "{wrong:.80}");
    }
    let (_, text, _) = signed();
    let line = text.lines().next().unwrap();
    let (start, rest) = line.split_once(",\"sig\":\"").unwrap();
    let edited = format!("{start},\"sig\":\"\\n{}", rest.split_once(",\"hash\"").unwrap().0);
    let edited = format!("{edited},\"hash\":\"{}\"}}\n", Digest::of(&edited));
    assert_eq!(journal::parse(&edited).unwrap_err().why, "it is not an entry");
}

proptest! {
    /// The signature of the last line is covered by its digest, too.
    #[test]
    fn a_changed_byte_in_a_signature_is_noticed(
        place in any::<prop::sample::Index>(), flip in 1u8..=255
    ) {
        let (state, text, _) = signed();
        let mut bytes = text.as_bytes().to_vec();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        let edited = String::from_utf8_lossy(&bytes).into_owned();
        prop_assert!(compare(&state, "", Some(&edited), None).is_err(), "byte {place}");
    }

    /// One changed byte anywhere is noticed, also where no copy tells how it was.
    #[test]
    fn a_changed_byte_is_noticed(place in any::<prop::sample::Index>(), flip in 1u8..=255) {
        let story = story();
        let last = story.states.len() - 1;
        let mut bytes = story.journal().as_bytes().to_vec();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        let edited = String::from_utf8_lossy(&bytes).into_owned();
        let result = story.compare(last, Some(&edited), None);
        prop_assert!(result.is_err(), "byte {} of {}", place, edited);
        // With the copy it is restored.
        let compared = story.compare(last, Some(&edited), Some(story.journal()));
        let compared = compared.unwrap().unwrap();
        prop_assert_ne!(compared.public, Public::AsIs);
    }

    /// Whatever is in the files, comparing them never fails otherwise.
    #[test]
    fn no_text_is_too_odd(public in ".{0,200}", private in ".{0,200}") {
        let story = story();
        let _ = story.compare(0, Some(&public), Some(&private));
        let _ = journal::parse(&public);
    }
}
