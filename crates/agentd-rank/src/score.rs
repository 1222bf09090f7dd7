//! How much files have to do with a query, by what is in them and what they are called.

use crate::history::f32_of;
use crate::query::Query;
use crate::record::Hits;
use crate::words::{Stem, Stems, runs};

/// How rare a word is: found in `df` of `number` texts.
pub(crate) fn idf(df: usize, number: usize) -> f32 {
    (1.0 + (f32_of(number) - f32_of(df) + 0.5).max(0.0) / (f32_of(df) + 0.5)).ln()
}

/// BM25 for texts of an average length.
pub(crate) struct Bm25 {
    average: f32,
}

impl Bm25 {
    const K1: f32 = 1.2;
    const B: f32 = 0.5;

    pub(crate) fn of_lengths(lengths: impl Iterator<Item = f32>) -> Self {
        let (mut sum, mut count) = (0.0_f64, 0_usize);
        for length in lengths {
            sum += f64::from(length);
            count += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "an average needs no more")]
        let average = (sum / f64::from(u32::try_from(count).unwrap_or(u32::MAX).max(1))) as f32;
        Self { average: average.max(1.0) }
    }

    /// What a word counts that is `times` in a text.
    pub(crate) fn part(&self, times: f32, length: f32) -> f32 {
        let norm = Self::K1 * (1.0 - Self::B + Self::B * length / self.average);
        times * (Self::K1 + 1.0) / (times + norm)
    }
}

/// What is known of the words of a query in all files.
pub(crate) struct Rarity {
    /// Of each word, its weight and how rare it is.
    pub(crate) idf: Vec<f32>,
    bm25: Bm25,
}

impl Rarity {
    pub(crate) fn of(files: &[Hits], query: &Query) -> Self {
        let mut df = vec![0; query.words.len()];
        for file in files {
            let mut last = None;
            for hit in &file.hits {
                if last != Some(hit.word) {
                    last = Some(hit.word);
                    if let Some(df) = df.get_mut(usize::from(hit.word)) {
                        *df += 1;
                    }
                }
            }
        }
        let bm25 = Bm25::of_lengths(files.iter().map(|file| f32_of(file.length as usize)));
        Self { idf: df.into_iter().map(|df| idf(df, files.len())).collect(), bm25 }
    }

    /// What a word of the query is worth, wherever it is found.
    fn worth(&self, query: &Query, word: usize) -> f32 {
        query.words[word].weight * self.idf[word]
    }

    /// How much the whole text of a file matches.
    pub(crate) fn content(&self, file: &Hits, query: &Query) -> f32 {
        let length = f32_of(file.length as usize);
        let of_word = |hits: &[crate::record::Hit]| {
            let times: f32 = hits.iter().map(|hit| f32::from(hit.times)).sum();
            let word = usize::from(hits[0].word);
            self.worth(query, word) * self.bm25.part(times, length)
        };
        file.hits.chunk_by(|a, b| a.word == b.word).map(of_word).sum()
    }

    /// How much each passage of a file matches, best first: passage and score.
    pub(crate) fn passages(&self, file: &Hits, query: &Query) -> Vec<(u16, f32)> {
        let mut hits: Vec<crate::record::Hit> = file.hits.to_vec();
        hits.sort_unstable_by_key(|hit| (hit.passage, hit.word));
        let of_passage = |hits: &[crate::record::Hit]| {
            let part = |hit: &crate::record::Hit| {
                let times = f32::from(hit.times);
                self.worth(query, usize::from(hit.word)) * times * 2.0 / (times + 1.0)
            };
            (hits[0].passage, hits.iter().map(part).sum::<f32>())
        };
        let mut found: Vec<(u16, f32)> =
            hits.chunk_by(|a, b| a.passage == b.passage).map(of_passage).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found
    }

    /// How much a path matches: its name most, then its directory, then those above.
    pub(crate) fn path(&self, path: &str, query: &Query, stems: &mut Stems) -> f32 {
        let mut best = vec![0.0_f32; query.words.len()];
        let mut count = 0;
        for (depth, part) in path.rsplit('/').enumerate() {
            let place = match depth {
                0 => 2.0,
                1 => 1.2,
                _ => 0.8,
            };
            // The ending of a file is no word of its name.
            let part = if depth == 0 {
                part.rsplit_once('.').map_or(part, |(stem, _)| stem)
            } else {
                part
            };
            runs(part.as_bytes(), |run, _| {
                for stem in stems.of(run) {
                    count += 1;
                    if let Some(word) = query.find(*stem as Stem) {
                        let value = query.words[word].weight * self.idf[word].min(6.0) * place;
                        best[word] = best[word].max(value);
                    }
                }
            });
        }
        best.iter().sum::<f32>() / (1.0 + 0.08 * f32_of(count))
    }
}
