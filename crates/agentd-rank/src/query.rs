//! What somebody wants, as weighted words.

use crate::words::{Stem, Stems, runs};

/// The most words that count, those with the most weight first.
pub(crate) const MOST_WORDS: usize = 60;
/// How much of a text is read for words.
const READ_BYTES: usize = 32 << 10;
/// The weight of the lines after the first: they explain it.
const FURTHER_LINES: f32 = 0.5;
/// What a word is worth more that looks like a name in code.
const CODE_LIKE: f32 = 1.3;

/// A word of a query.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    pub(crate) stem: Stem,
    pub(crate) weight: f32,
    /// As it was written.
    pub(crate) text: String,
}

/// The words of a query, sorted by their stems.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) words: Vec<Word>,
}

impl Query {
    pub(crate) fn new(text: &str) -> Self {
        let text = text.trim_start();
        let text = &text.as_bytes()[..text.floor_char_boundary(READ_BYTES)];
        let mut stems = Stems::default();
        let mut words: Vec<Word> = Vec::new();
        let stop: Vec<Stem> = STOP_WORDS
            .split_whitespace()
            .flat_map(|word| stems.of(word.as_bytes()).to_vec())
            .collect();
        runs(text, |run, line| {
            let shown = String::from_utf8_lossy(run);
            let weight = if line == 0 { 1.0 } else { FURTHER_LINES };
            let found = stems.of(run).to_vec();
            let is_code = found.len() > 1 && run.is_ascii();
            let weight = if is_code { weight * CODE_LIKE } else { weight };
            for stem in found {
                if stop.contains(&stem) {
                    continue;
                }
                match words.iter_mut().find(|word| word.stem == stem) {
                    Some(known) => known.weight = known.weight.max(weight),
                    None => {
                        let text = shown.chars().take(40).collect();
                        words.push(Word { stem, weight, text });
                    }
                }
            }
        });
        words.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        words.truncate(MOST_WORDS);
        words.sort_by_key(|word| word.stem);
        Self { words }
    }

    /// The index of the word with a stem.
    pub(crate) fn find(&self, stem: Stem) -> Option<usize> {
        self.words.binary_search_by_key(&stem, |word| word.stem).ok()
    }
}

/// Words that say nothing about where something is: those of the language, and those that every
/// description of a change has.
const STOP_WORDS: &str = "
    a about above add added adding adds after again all allow allowed allows also always an and any are as at
    avoid be because been before being below better between both bug bugs but by call called can cannot case cases
    change changed changes changing check clean cleanup co code commit could currently did do does doesn don
    done down due during each ensure even every existing fail failed fails few file files first fix
    fixed fixes fixing follow following for from further get gets give given go had has have having he
    her here him his how however if implement implemented improve improved improves in instead into is issue issues it
    its itself just keep know like longer made make makes making may me merge might more most move
    moved must my need needed needs never new no nor not note now of off old on once one only or other
    our out over own patch please possible pr previously problem properly pull re refactor refs related
    remove removed removes removing rename renamed replace replaced request result return returns revert s same see
    set she should show simplify since small so some still such sure support supported supports t than that the
    their them then there these they thing this those though through ticket tidy to todo too two under unless until up
    update updated updates updating us use used user users uses using very via want was way we well were what when where
    whether which while who why will wip with within without work working works would wrong yet you your
    thanks signed reviewed authored regression closes resolves";
