//! The forecast, back-tested on recorded ledgers: real CLIs, but scripted models, so that the usage of
//! a turn is made up (see testing/real-agents/tests/it/ledgers.rs).

use std::fs;
use std::path::Path;

use agentd_core::config::Config;
use agentd_core::forecast::{Basis, Outlook, PastChange, Stage, forecast};
use agentd_core::ids::ChangeId;
use agentd_core::state::{self, Ranges, State, Track};

fn ledgers() -> Vec<State> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/fixtures/ledgers");
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let id = ChangeId::new(file.file_stem().unwrap().to_str().unwrap()).unwrap();
        state::parse(&fs::read_to_string(file).unwrap(), &id).unwrap()
    };
    files.iter().map(read).collect()
}

/// Which of calls, tokens, cost and seconds were in the range.
fn inside(ranges: &Ranges, state: &State) -> [bool; 4] {
    let within = |[least, most]: [u64; 2], used: u64| (least..=most).contains(&used);
    let milliseconds: u64 = state.llm_calls.iter().map(|call| call.duration_ms).sum();
    let [least, most] = ranges.cost_usd;
    [
        within(ranges.calls, state.llm_calls.len() as u64),
        within(ranges.tokens, state.total_tokens_in + state.total_tokens_out),
        least <= state.total_cost && state.total_cost <= most,
        within(ranges.seconds, milliseconds / 1000),
    ]
}

// contract W8
#[test]
fn recorded_changes_are_inside_their_forecast() {
    let states = ledgers();
    assert!(states.len() >= 8, "{} ledgers", states.len());
    let config = Config::default();
    let mut hits = [0_usize; 4];
    let mut report = String::new();
    for (i, state) in states.iter().enumerate() {
        let others = states.iter().enumerate().filter(|(other, _)| *other != i);
        let past: Vec<PastChange> = others.map(|(_, state)| PastChange::of(state)).collect();
        let complexity = state.complexity.unwrap();
        let stage =
            Stage::Planning { questions: false, proposal: false, specs_left: None, tasks: false };
        let forecast =
            forecast(&Outlook { complexity, config: &config, track: Track::Full, stage }, &past);
        assert_eq!((forecast.basis, forecast.based_on), (Basis::Ledger, states.len() - 1));
        let inside = inside(&forecast.ranges, state);
        for (all, hit) in hits.iter_mut().zip(inside) {
            *all += usize::from(hit);
        }
        let (id, cost) = (&state.change_id, state.total_cost);
        report += &format!("{id}: ${cost:.3}, {}, {inside:?}\n", forecast.summary());
    }
    println!("{report}{hits:?} of {}", states.len());
    for hit in hits {
        assert!(hit * 10 >= states.len() * 8, "{hits:?} of {}:\n{report}", states.len());
    }
}
