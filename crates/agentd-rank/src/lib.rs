//! Which files of a project matter for what somebody wants.
//!
//! A file is scored by the words of its text (BM25), by its best passages, by its path, and by git
//! history: commits whose messages have the same words, and files that change together. Nothing is
//! trained, and no language is parsed; what this finds, and what it misses, was measured on real commits
//! (`cargo xtask bench --only context`).
//!
//! This crate has no effects: it is given a list of files, a way to read them, the output of `git
//! log`, and the bytes of a cache. All of these may be hostile. Only what the words of the query
//! hit is kept in memory, so a large project takes time, not space.

mod cache;
mod history;
mod kind;
mod query;
mod record;
mod score;
mod symbols;
mod words;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustc_hash::FxHashMap;

use crate::cache::Cached;
use crate::history::{History, f32_of};
use crate::query::Query;
use crate::record::{Hits, PASSAGE_LINES, Recorder};
use crate::score::Rarity;
use crate::words::Stems;

pub use history::{LOG_COMMITS, LOG_FORMAT};
pub use kind::{Kind, kind};
pub use symbols::defined;

/// How much of a file is read.
const READ_BYTES: usize = 512 << 10;
/// From how many files, and from how many tests, others are found that change together with them.
const SEEDS: (usize, usize) = (12, 8);
/// What each score counts, after all are brought to the same scale. Set by hand; weights that were
/// fitted to the same commits were not better on others.
const WEIGHTS: Weights = Weights {
    content: 1.0,
    passage: 0.7,
    path: 0.7,
    similar: 0.5,
    messages: 0.7,
    recency: 0.2,
    together: 0.4,
};

struct Weights {
    content: f32,
    passage: f32,
    path: f32,
    similar: f32,
    messages: f32,
    recency: f32,
    together: f32,
}

/// How many files come first by their scores alone. Behind them a file also counts if it changes
/// together with a good one, or is in the directory of one: that finds what has none of the words, but
/// would put it before what has all of them.
const FIRST: usize = 8;
/// What that counts.
const BEHIND: Behind = Behind { together: 0.25, beside: 0.1 };

struct Behind {
    together: f32,
    beside: f32,
}

/// A file that can be ranked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// From the root of the project, with `/`.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was changed, in nanoseconds.
    pub mtime: i64,
    /// What it is; see [`kind()`].
    pub kind: Kind,
}

/// What a ranking is made from.
pub struct Project<'a> {
    /// The files, each once.
    pub files: &'a [File],
    /// Reads at most so many bytes of a file into an empty buffer; nothing if that fails.
    pub read: &'a (dyn Fn(&File, usize, &mut Vec<u8>) + Sync),
    /// The output of `git log --no-merges --no-renames --name-only` with [`LOG_FORMAT`], or nothing.
    pub log: &'a str,
    /// What [`Ranking::cache`] was before, or nothing.
    pub cache: &'a [u8],
}

/// The files of a project, best first.
#[derive(Debug, Default)]
pub struct Ranking {
    /// Code that a change may have to edit.
    pub sources: Vec<Ranked>,
    /// Tests, by the same scores.
    pub tests: Vec<Ranked>,
    /// Commits whose messages match, best first.
    pub commits: Vec<Related>,
    /// What to keep for the next time, if it is worth writing.
    pub cache: Option<Vec<u8>>,
    query: Query,
}

impl Ranking {
    /// What a text defines whose name has words of the query: lines and names, those with the most
    /// of them first, then in their order.
    pub fn symbols<'t>(&self, text: &'t str, most: usize) -> Vec<(u32, &'t str)> {
        let mut stems = Stems::default();
        let mut found: Vec<(f32, u32, &str)> = Vec::new();
        for (line, name) in (1..).zip(text.lines().map(defined)) {
            let Some(name) = name else { continue };
            let known = stems.of(name.as_bytes()).iter().filter_map(|stem| self.query.find(*stem));
            let weight: f32 = known.map(|word| self.query.words[word].weight).sum();
            if weight > 0.0 && found.iter().all(|(_, _, known)| *known != name) {
                found.push((weight, line, name));
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.into_iter().take(most).map(|(_, line, name)| (line, name)).collect()
    }
}

/// A file with its place in a ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// The index of the file in [`Project::files`].
    pub file: usize,
    /// How well it matches; only a comparison with others says something.
    pub score: f32,
    /// The words of the query that are in it, the most telling first.
    pub words: Vec<String>,
    /// How many similar commits touched it.
    pub commits: usize,
    /// The first and the last line of its best passage.
    pub passage: Option<(u32, u32)>,
}

/// A commit whose message matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// The day of the commit.
    pub date: String,
    /// Its subject.
    pub subject: String,
    /// The files that it touched and that still exist, as indexes.
    pub files: Vec<usize>,
}

/// Ranks the files of a project by what somebody wants.
pub fn rank(project: &Project<'_>, wanted: &str) -> Ranking {
    let query = Query::new(wanted);
    let index = by_path(project.files);
    let (hits, cache) = look_up(project, &query, &index);
    Ranking { cache, ..ranking(project.files, &hits, project.log, &index, query) }
}

/// Files that were read once and can be asked about many times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    files: Vec<File>,
    records: Vec<Vec<u8>>,
}

impl Index {
    /// Keeps what is needed of files and their texts.
    pub fn new(texts: impl IntoIterator<Item = (File, String)>) -> Self {
        let mut recorder = Recorder::default();
        let mut index = Self::default();
        for (file, text) in texts {
            let mut record = Vec::new();
            recorder.record(&text.as_bytes()[..text.len().min(READ_BYTES)], &mut record);
            index.files.push(file);
            index.records.push(record);
        }
        index
    }

    /// Ranks the files by what somebody wants.
    pub fn rank(&self, wanted: &str) -> Ranking {
        let query = Query::new(wanted);
        let hits = |record: &Vec<u8>| record::hits(record, &query).unwrap_or_default();
        let hits: Vec<Hits> = self.records.iter().map(hits).collect();
        ranking(&self.files, &hits, "", &by_path(&self.files), query)
    }
}

fn by_path(files: &[File]) -> FxHashMap<&str, u32> {
    (0..).zip(files).map(|(number, file)| (file.path.as_str(), number)).collect()
}

/// The ranking of files in which the words of a query were found.
fn ranking(
    files: &[File],
    hits: &[Hits],
    log: &str,
    index: &FxHashMap<&str, u32>,
    query: Query,
) -> Ranking {
    let rarity = Rarity::of(hits, &query);
    let history = History::read(log, &query, index);
    let Scores { first, behind } = scores(files, hits, &query, &rarity, &history);
    let similar = history.similar();
    let touched = touched(files.len(), &history, &similar);
    let ranked = |kind: Kind| {
        let mut found: Vec<usize> = (0..files.len()).filter(|at| files[*at].kind == kind).collect();
        let sort = |found: &mut [usize], scores: &[f32]| {
            found.sort_by(|a, b| {
                scores[*b].total_cmp(&scores[*a]).then_with(|| files[*a].path.cmp(&files[*b].path))
            });
        };
        sort(&mut found, &first);
        // No score is above one of a file that comes before it.
        let least = found.get(FIRST - 1).map_or(0.0, |file| first[*file]);
        if let Some(rest) = found.get_mut(FIRST..) {
            sort(rest, &behind);
        }
        found.truncate(MOST_RANKED);
        let ranked = |(place, file): (usize, usize)| Ranked {
            file,
            score: if place < FIRST { first[file] } else { behind[file].min(least) },
            words: best_words(&hits[file], &query, &rarity),
            commits: touched[file],
            passage: rarity.passages(&hits[file], &query).first().map(|(passage, _)| {
                let start = u32::from(*passage) * PASSAGE_LINES;
                (start + 1, start + PASSAGE_LINES)
            }),
        };
        found.into_iter().enumerate().map(ranked).collect()
    };
    let related = |at: &usize| {
        let commit = &history.commits[*at];
        Related {
            date: commit.date.to_owned(),
            subject: commit.subject.to_owned(),
            files: commit.files.iter().map(|file| *file as usize).collect(),
        }
    };
    Ranking {
        sources: ranked(Kind::Source),
        tests: ranked(Kind::Test),
        commits: similar.iter().map(related).collect(),
        cache: None,
        query,
    }
}

/// How many files of a kind are in a ranking.
const MOST_RANKED: usize = 1000;

/// Finds the words of the query in every file: by the cache where a file is as it was, otherwise by
/// reading it, on several threads.
fn look_up(
    project: &Project<'_>,
    query: &Query,
    index: &FxHashMap<&str, u32>,
) -> (Vec<Hits>, Option<Vec<u8>>) {
    let mut hits: Vec<Option<Hits>> = vec![None; project.files.len()];
    let cached = Cached::read(project.cache, project.files, index);
    for (file, record) in cached.records() {
        hits[file] = record::hits(record, query);
    }
    let fresh: Vec<usize> = (0..hits.len()).filter(|file| hits[*file].is_none()).collect();
    let next = AtomicUsize::new(0);
    let bytes_left = AtomicUsize::new(cache::MOST_BYTES);
    let work = || {
        let mut recorder = Recorder::default();
        let (mut text, mut found, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let mut record = Vec::new();
        while let Some(at) = fresh.get(next.fetch_add(1, Ordering::Relaxed)) {
            let file = &project.files[*at];
            text.clear();
            (project.read)(file, READ_BYTES, &mut text);
            // What is no text has no words.
            if memchr::memchr(0, &text[..text.len().min(8192)]).is_some() {
                text.clear();
            }
            record.clear();
            recorder.record(&text, &mut record);
            found.push((*at, record::hits(&record, query).unwrap_or_default()));
            cache::append(file, &record, &bytes_left, &mut kept);
        }
        (found, kept)
    };
    let threads = thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    let threads = threads.min(fresh.len().div_ceil(16));
    let done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = vec![work()];
        done.extend(workers.into_iter().filter_map(|worker| worker.join().ok()));
        done
    });
    let mut kept = Vec::new();
    for (found, records) in done {
        kept.push(records);
        for (file, found) in found {
            hits[file] = Some(found);
        }
    }
    let cache = cached.renewed(fresh.len(), &kept);
    (hits.into_iter().map(Option::unwrap_or_default).collect(), cache)
}

/// How well each file matches.
struct Scores {
    /// For the first places.
    first: Vec<f32>,
    /// For those behind them.
    behind: Vec<f32>,
}

/// Scores all files. They are brought to the same scale within their kind.
fn scores(
    files: &[File],
    hits: &[Hits],
    query: &Query,
    rarity: &Rarity,
    history: &History<'_>,
) -> Scores {
    let mut stems = Stems::default();
    let passages = |file: &Hits| {
        let best = rarity.passages(file, query);
        best.iter().zip([1.0, 0.3, 0.15]).map(|((_, score), part)| score * part).sum()
    };
    let parts: [(f32, Vec<f32>); 6] = [
        (WEIGHTS.content, hits.iter().map(|file| rarity.content(file, query)).collect()),
        (WEIGHTS.passage, hits.iter().map(passages).collect()),
        (
            WEIGHTS.path,
            files.iter().map(|file| rarity.path(&file.path, query, &mut stems)).collect(),
        ),
        (WEIGHTS.similar, history.similar_scores(files.len())),
        (WEIGHTS.messages, history.message_scores(files.len(), query)),
        (WEIGHTS.recency, history.recency_scores(files.len())),
    ];
    let mut sums = vec![0.0; files.len()];
    for (weight, scores) in &parts {
        add(files, *weight, scores, &mut sums);
    }
    for (sum, file) in sums.iter_mut().zip(files) {
        *sum *= kind::share(&file.path);
    }
    let seeds = seeds(files, &sums);
    let together = history.together_scores(files.len(), &seeds);
    add(files, WEIGHTS.together, &together, &mut sums);
    let mut behind = sums.clone();
    add(files, BEHIND.together, &together, &mut behind);
    add(files, BEHIND.beside, &beside(files, &sums), &mut behind);
    Scores { first: sums, behind }
}

/// For each file, the best score in its directory.
fn beside(files: &[File], sums: &[f32]) -> Vec<f32> {
    fn dir(file: &File) -> (bool, &str) {
        let dir = file.path.rsplit_once('/').map_or("", |(dir, _)| dir);
        (file.kind == Kind::Source, dir)
    }
    let mut best: FxHashMap<(bool, &str), f32> = FxHashMap::default();
    for (file, sum) in files.iter().zip(sums) {
        let known = best.entry(dir(file)).or_default();
        *known = known.max(*sum);
    }
    files.iter().map(|file| best.get(&dir(file)).copied().unwrap_or_default()).collect()
}

/// Adds scores, each divided by the best of its kind of file.
fn add(files: &[File], weight: f32, scores: &[f32], sums: &mut [f32]) {
    for kind in [Kind::Source, Kind::Test] {
        let of_kind = || (0..files.len()).filter(|at| files[*at].kind == kind);
        let best = of_kind().map(|at| scores[at]).fold(0.0, f32::max);
        if best > 0.0 {
            for at in of_kind() {
                sums[at] += weight * scores[at] / best;
            }
        }
    }
}

/// The best files and the best tests so far, with how good they are compared with the best.
fn seeds(files: &[File], sums: &[f32]) -> Vec<(u32, f32)> {
    let mut seeds = Vec::new();
    for (kind, count) in [(Kind::Source, SEEDS.0), (Kind::Test, SEEDS.1)] {
        let mut found: Vec<(u32, f32)> = (0..)
            .zip(files)
            .zip(sums)
            .filter(|((_, file), sum)| file.kind == kind && **sum > 0.0)
            .map(|((at, _), sum)| (at, *sum))
            .collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found.truncate(count);
        let best = found.first().map_or(1.0, |(_, sum)| *sum);
        seeds.extend(found.into_iter().map(|(at, sum)| (at, sum / best)));
    }
    seeds
}

/// How many of the similar commits touched each file.
fn touched(files: usize, history: &History<'_>, similar: &[usize]) -> Vec<usize> {
    let mut counts = vec![0; files];
    let best = similar.first().map_or(0.0, |at| history.commits[*at].score);
    for at in similar {
        let commit = &history.commits[*at];
        if commit.score >= 0.4 * best {
            for file in &commit.files {
                counts[*file as usize] += 1;
            }
        }
    }
    counts
}

/// The words of the query that say most about a file.
fn best_words(file: &Hits, query: &Query, rarity: &Rarity) -> Vec<String> {
    let mut found: Vec<(f32, &str)> = file
        .hits
        .chunk_by(|a, b| a.word == b.word)
        .map(|hits| {
            let word = usize::from(hits[0].word);
            let times: usize = hits.iter().map(|hit| usize::from(hit.times)).sum();
            let worth = query.words[word].weight * rarity.idf[word];
            (worth * f32_of(times) / (f32_of(times) + 1.0), &*query.words[word].text)
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut words: Vec<String> = Vec::new();
    for (_, word) in found {
        if words.len() < 6 && words.iter().all(|known| known != word) {
            words.push(word.to_owned());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranked(texts: &[(&str, &str)], log: &str, wanted: &str) -> (Vec<File>, Ranking) {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            size: text.len() as u64,
            mtime: 0,
            kind: kind(path, 0).unwrap(),
        };
        let files: Vec<File> = texts.iter().map(file).collect();
        let read = |file: &File, most: usize, out: &mut Vec<u8>| {
            let text = texts.iter().find(|(path, _)| *path == file.path).unwrap().1;
            out.extend(text.bytes().take(most));
        };
        let ranking = rank(&Project { files: &files, read: &read, log, cache: b"" }, wanted);
        (files, ranking)
    }

    fn paths(texts: &[(&str, &str)], log: &str, wanted: &str) -> Vec<String> {
        let (files, ranking) = ranked(texts, log, wanted);
        ranking.sources.iter().map(|found| files[found.file].path.clone()).collect()
    }

    #[test]
    fn files_are_ranked_by_what_is_in_them_and_what_they_are_called() {
        let texts = [
            ("src/a.ts", "function x() {}"),
            ("src/auth/LoginForm.tsx", "export class Form {}"),
            ("src/z.ts", "export function lockAccount() {}\nexport function lockedAccounts() {}"),
            ("tests/login.ts", "login"),
        ];
        let found = paths(&texts, "", "Lock accounts after login failures");
        assert_eq!(found, ["src/z.ts", "src/auth/LoginForm.tsx", "src/a.ts"]);
        let (files, ranking) = ranked(&texts, "", "Lock accounts after login failures");
        assert_eq!(files[ranking.tests[0].file].path, "tests/login.ts");
        assert_eq!(ranking.sources[0].passage, Some((1, 40)));
        assert_eq!(ranking.symbols(texts[2].1, 5), [(1, "lockAccount"), (2, "lockedAccounts")]);
    }

    #[test]
    fn the_past_finds_what_no_word_shows() {
        let texts =
            [("src/a.rs", "fn a() {}"), ("src/b.rs", "fn b() {}"), ("src/c.rs", "fn c() {}")];
        let log = "\u{1e}2026-01-02\u{1f}Fix the login\u{1f}\u{1f}\n\nsrc/c.rs\n\
                   \u{1e}2026-01-01\u{1f}Other\u{1f}login\u{1f}\n\nsrc/a.rs\nsrc/b.rs\n";
        assert_eq!(paths(&texts, log, "login is slow")[0], "src/c.rs");
        let (_, ranking) = ranked(&texts, log, "login is slow");
        assert_eq!(ranking.commits[0].subject, "Fix the login");
        assert_eq!(
            (ranking.commits[0].files.as_slice(), ranking.sources[0].commits),
            (&[2][..], 1)
        );
    }

    #[test]
    fn behind_the_first_files_come_their_neighbors() {
        let mut texts: Vec<(String, &str)> =
            (0..FIRST).map(|number| (format!("a/{number}.rs"), "login")).collect();
        texts.push(("0/x.rs".to_owned(), "nothing"));
        texts.push(("a/x.rs".to_owned(), "nothing"));
        let texts: Vec<(&str, &str)> =
            texts.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        assert_eq!(paths(&texts, "", "login")[FIRST..], ["a/x.rs", "0/x.rs"]);
        let (_, ranking) = ranked(&texts, "", "login");
        assert!(ranking.sources.is_sorted_by(|a, b| a.score >= b.score));
    }

    #[test]
    fn chinese_finds_chinese_and_the_names_in_it() {
        let texts = [
            ("src/a.py", "# 用户登录失败后锁定账户\ndef f(): pass\n"),
            ("src/b.py", "# 导出报表\ndef g(): pass\n"),
            ("src/c.py", "class SessionStore: pass\n"),
        ];
        assert_eq!(paths(&texts, "", "登录失败五次后锁定")[0], "src/a.py");
        assert_eq!(paths(&texts, "", "修改SessionStore的过期时间")[0], "src/c.py");
    }

    proptest! {
        #[test]
        fn anything_can_be_asked_and_read(
            wanted in "\\PC{0,80}",
            text in "\\PC{0,300}",
            log in "[\u{1e}\u{1f}\na-c./ ]{0,80}",
        ) {
            ranked(&[("a.rs", &text), ("b/c.rs", "x")], &log, &wanted);
        }
    }
}
