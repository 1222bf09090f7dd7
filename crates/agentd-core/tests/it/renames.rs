//! A change that gets another ID: what was said about it stands, and nothing else does (W3).

use agentd_core::check::{Extras, MainSpecs};
use agentd_core::document::{proposal, rename, tasks};
use agentd_core::documents::{Documents, Source};
use agentd_core::ids::ChangeId;
use agentd_core::journal::{self, Event, Files, Head, Record};
use agentd_core::layout::ChangeFile;
use agentd_core::stamp::Stamp;
use agentd_core::state::{self, Rename, State};
use agentd_core::text::Line;
use proptest::prelude::*;

use crate::corpus;

fn id(id: &str) -> ChangeId {
    ChangeId::new(id).unwrap()
}

fn at() -> Stamp {
    Stamp::new(jiff::Timestamp::from_second(1_790_000_000).unwrap())
}

fn renamed(state: &State, to: &str) -> State {
    let mut after = state.clone();
    let from = std::mem::replace(&mut after.change_id, id(to));
    after.renamed.push(Rename { from, by: Line::new("Ada"), at: at() });
    after
}

fn documents(state: &State, texts: &[(ChangeFile, String)]) -> Documents {
    let state_file = (ChangeFile::State, Source::Text(state::render(state)));
    let texts = texts.iter().map(|(file, text)| (file.clone(), Source::Text(text.clone())));
    Documents::read(state.change_id.clone(), texts.chain([state_file]))
}

#[test]
fn a_rename_is_recorded_and_counts() {
    let before = State::new(id("add-oauth"), "Sign in", at());
    let after = renamed(&before, "add-login");
    let by = Line::new("Ada");
    let event = Event::Renamed { from: id("add-oauth"), to: id("add-login"), by: by.clone() };
    assert_eq!(journal::events(Some(&before), &after), vec![event.clone()]);
    assert_ne!(journal::claims(&before), journal::claims(&after), "it cannot be edited in");
    assert_eq!(after.ids().map(ChangeId::as_str).collect::<Vec<_>>(), ["add-login", "add-oauth"]);
    let text = state::render(&after);
    assert_eq!(state::parse(&text, &id("add-login")).unwrap(), after);
    let Ok(entries) = journal::entries(
        &Head::default(),
        vec![event],
        &after,
        &text,
        &Files::new(),
        at(),
        journal::unsigned,
    );
    let lines: String = entries.iter().map(|entry| entry.line() + "\n").collect();
    let record = Record::of(&journal::parse(&lines).unwrap());
    assert_eq!(record.renamed, [(1, id("add-oauth"), by)]);
}

proptest! {
    /// A verdict on a plan stands when its change is renamed, any number of times; it does not when
    /// the plan is edited on the way.
    #[test]
    fn the_digest_of_a_plan_outlives_its_name(
        proposal in corpus::proposal(),
        tasks in corpus::tasks(),
        // Not `con`, `prn` and their like, which are no IDs.
        names in prop::collection::vec("[a-z]{4,8}", 1..4),
    ) {
        let first = id("first-name");
        let mut state = State::new(first.clone(), "Sign in", at());
        let mut proposal = proposal;
        proposal.id = Some(first.clone());
        let mut tasks = tasks;
        tasks.change_id = Some(first);
        let mut texts = vec![
            (ChangeFile::Proposal, proposal::render(&proposal)),
            (ChangeFile::Tasks, tasks::render(&tasks)),
        ];
        let judged = documents(&state, &texts).digest();
        for name in names {
            let from = state.change_id.clone();
            state = renamed(&state, &name);
            for (file, text) in &mut texts {
                *text = rename::renamed(file, text, &from, &state.change_id);
            }
            let now = documents(&state, &texts);
            prop_assert_eq!(now.digest(), judged.clone());
            prop_assert_eq!(now.proposal.value().id.as_ref(), Some(&state.change_id));
            prop_assert_eq!(now.tasks.value().change_id.as_ref(), Some(&state.change_id));
            let reviews = &now.proposal.value().reviews;
            prop_assert_eq!(reviews, &proposal::parse(&proposal::render(&proposal)).value.reviews);
        }
        let (_, text) = &mut texts[0];
        let title = format!("# Change: {}\n", state.change_id);
        *text = text.replacen(&title, &format!("{title}\nSomething else.\n"), 1);
        prop_assert_ne!(documents(&state, &texts).digest(), judged);
    }
}

/// A review stays as its reviewer wrote it, with the name of then; one of another change does not
/// become the change's own.
#[test]
fn a_review_under_a_former_name_belongs_to_the_change() {
    let state = renamed(&State::new(id("add-oauth"), "Sign in", at()), "add-login");
    let review = |name: &str| {
        let text = format!("---\nchange_id: {name}\ntype: review\n---\n\n# Review: {name}\n");
        let documents = documents(&state, &[(ChangeFile::Review, text)]);
        let reports = documents.findings(&MainSpecs::default(), &Extras::default());
        reports.iter().flat_map(|report| &report.diagnostics).any(|found| found.rule.code == "F007")
    };
    assert!(!review("add-oauth") && !review("add-login"));
    assert!(review("another"));
}
