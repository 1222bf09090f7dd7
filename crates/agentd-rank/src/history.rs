//! What the past says: commits with the same words, and files that change together.

use rustc_hash::FxHashMap;

use crate::query::Query;
use crate::score::{Bm25, idf};
use crate::words::{Stems, runs};

/// The format that `git log` is asked for, with `--name-only`.
pub const LOG_FORMAT: &str = "--format=%x1e%cs%x1f%s%x1f%b%x1f";
/// How many commits are worth reading.
pub const LOG_COMMITS: usize = 3000;

/// Commits of more files are about everything.
const MOST_FILES: usize = 30;
/// Files that changed in a commit of more are not a pair.
const MOST_PAIRED: usize = 20;
/// What the body of a message weighs.
const BODY: f32 = 0.4;
/// How many similar commits count.
const SIMILAR: usize = 60;

/// A commit, as far as it matters here.
#[derive(Debug, Default)]
pub(crate) struct Commit<'a> {
    pub(crate) date: &'a str,
    pub(crate) subject: &'a str,
    /// The files that still exist, by their index.
    pub(crate) files: Vec<u32>,
    /// How many files it touched.
    touched: usize,
    /// Words of the query and what they weigh in the message.
    words: Vec<(u8, f32)>,
    length: f32,
    /// How well its message matches.
    pub(crate) score: f32,
}

/// The past of a project.
#[derive(Debug, Default)]
pub(crate) struct History<'a> {
    /// The newest first.
    pub(crate) commits: Vec<Commit<'a>>,
}

impl<'a> History<'a> {
    /// Reads the output of `git log`. What is not such an output gives commits without files.
    pub(crate) fn read(log: &'a str, query: &Query, index: &FxHashMap<&str, u32>) -> Self {
        let mut stems = Stems::default();
        let mut commits: Vec<Commit<'a>> = Vec::new();
        for record in log.split('\u{1e}').skip(1).take(LOG_COMMITS) {
            let mut fields = record.splitn(4, '\u{1f}');
            let mut field = || fields.next().unwrap_or_default();
            let (date, subject, body, names) = (field(), field(), field(), field());
            let mut commit = Commit { date, subject, ..Commit::default() };
            for name in names.lines().filter(|name| !name.is_empty()) {
                commit.touched += 1;
                if commit.touched <= MOST_FILES {
                    commit.files.extend(index.get(name));
                }
            }
            if commit.touched > MOST_FILES {
                commit.files.clear();
            }
            for (text, weight) in [(subject, 1.0), (body, BODY)] {
                runs(text.as_bytes(), |run, _| {
                    for stem in stems.of(run) {
                        commit.length += weight;
                        let Some(word) = query.find(*stem) else { continue };
                        let Ok(word) = u8::try_from(word) else { continue };
                        match commit.words.iter_mut().find(|(known, _)| *known == word) {
                            Some((_, known)) => *known += weight,
                            None => commit.words.push((word, weight)),
                        }
                    }
                });
            }
            commits.push(commit);
        }
        let mut history = Self { commits };
        history.score_messages(query);
        history
    }

    fn score_messages(&mut self, query: &Query) {
        let counted = || self.commits.iter().filter(|commit| !commit.files.is_empty());
        let mut df = vec![0; query.words.len()];
        for (word, _) in counted().flat_map(|commit| &commit.words) {
            df[usize::from(*word)] += 1;
        }
        let number = counted().count();
        let bm25 = Bm25::of_lengths(counted().map(|commit| commit.length));
        for commit in &mut self.commits {
            if commit.files.is_empty() {
                continue;
            }
            let part = |(word, times): &(u8, f32)| {
                let word = usize::from(*word);
                query.words[word].weight * idf(df[word], number) * bm25.part(*times, commit.length)
            };
            commit.score = commit.words.iter().map(part).sum();
        }
    }

    /// The commits whose messages match best, best first.
    pub(crate) fn similar(&self) -> Vec<usize> {
        let mut found: Vec<usize> =
            (0..self.commits.len()).filter(|at| self.commits[*at].score > 0.0).collect();
        found.sort_by(|a, b| self.commits[*b].score.total_cmp(&self.commits[*a].score));
        found.truncate(SIMILAR);
        found
    }

    /// For each file, how much it was part of similar commits.
    pub(crate) fn similar_scores(&self, files: usize) -> Vec<f32> {
        let mut scores = vec![0.0; files];
        let similar = self.similar();
        let Some(best) = similar.first().map(|at| self.commits[*at].score) else { return scores };
        for at in similar {
            let commit = &self.commits[at];
            let part = (commit.score / best).powi(2) * fade(at, 3000.0)
                / f32_of(commit.touched.max(1)).sqrt();
            for file in &commit.files {
                scores[*file as usize] += part;
            }
        }
        scores
    }

    /// For each file, how well all messages of its commits match, read as one text.
    pub(crate) fn message_scores(&self, files: usize, query: &Query) -> Vec<f32> {
        let mut lengths = vec![0.0_f32; files];
        let mut times: FxHashMap<(u32, u8), f32> = FxHashMap::default();
        for commit in &self.commits {
            for file in &commit.files {
                lengths[*file as usize] += commit.length;
                for (word, weight) in &commit.words {
                    *times.entry((*file, *word)).or_default() += weight;
                }
            }
        }
        let mut df = vec![0; query.words.len()];
        for (_, word) in times.keys() {
            df[usize::from(*word)] += 1;
        }
        let known = || lengths.iter().copied().filter(|length| *length > 0.0);
        let (number, bm25) = (known().count(), Bm25::of_lengths(known()));
        let mut scores = vec![0.0; files];
        let mut times: Vec<_> = times.into_iter().collect();
        // Sums of floats depend on their order, and the order of a map is nobody's.
        times.sort_unstable_by_key(|(key, _)| *key);
        for ((file, word), times) in times {
            let (file, word) = (file as usize, usize::from(word));
            let part = bm25.part(times, lengths[file]);
            scores[file] += query.words[word].weight * idf(df[word], number) * part;
        }
        scores
    }

    /// For each file, how much was going on in it lately.
    pub(crate) fn recency_scores(&self, files: usize) -> Vec<f32> {
        let mut sums = vec![0.0_f32; files];
        for (at, commit) in self.commits.iter().enumerate() {
            for file in &commit.files {
                sums[*file as usize] += fade(at, 400.0);
            }
        }
        sums.iter().map(|sum| sum.ln_1p()).collect()
    }

    /// For each file, how often it changed together with files that matter, given with how much
    /// they do.
    pub(crate) fn together_scores(&self, files: usize, seeds: &[(u32, f32)]) -> Vec<f32> {
        let mut scores = vec![0.0; files];
        let pairs = || self.commits.iter().filter(|commit| commit.touched <= MOST_PAIRED);
        for (seed, weight) in seeds {
            let of_seed: Vec<&Commit<'_>> =
                pairs().filter(|commit| commit.files.contains(seed)).collect();
            let part = weight.powi(2) / (f32_of(of_seed.len()) + 3.0);
            for file in of_seed.iter().flat_map(|commit| &commit.files) {
                if file != seed {
                    scores[*file as usize] += part;
                }
            }
        }
        scores
    }
}

/// What remains after so many commits, if half of it is left after `half`.
fn fade(age: usize, half: f32) -> f32 {
    0.5_f32.powf(f32_of(age) / half)
}

#[expect(clippy::cast_precision_loss, reason = "counts of files and commits are small")]
pub(crate) fn f32_of(count: usize) -> f32 {
    count as f32
}
