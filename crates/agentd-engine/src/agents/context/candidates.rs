//! The files of a project that matter for what somebody wants, with the reasons.
//!
//! Files are read through the confined project directory, and git is asked in a way that runs
//! nothing of the repository. What was found in unchanged files is cached outside of it.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use agentd_core::prompt::one_line;
use agentd_core::rel_path::RelPath;
use agentd_rank::{File, LOG_COMMITS, LOG_FORMAT, Ranked, Ranking};
use serde::Serialize;

use crate::git::GitTool;
use crate::store::{Project, ProjectDir, RankCache};

/// How many files are described, and not only named.
const DESCRIBED: usize = 12;
/// How many names of what a file defines are given.
const SYMBOLS: usize = 6;
/// How much of a file is read to describe it.
const READ_BYTES: u64 = 512 << 10;
/// How many commits are given.
const COMMITS: usize = 6;
/// How long git may take to list its commits; without them the ranking is only a little worse.
const LOG_PATIENCE: Duration = Duration::from_secs(20);
/// The most that is kept of the list.
const LOG_BYTES: usize = 16 << 20;

/// What was found for what somebody wants.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Candidates {
    /// Code, the best first.
    pub files: Vec<Candidate>,
    /// Tests, likewise.
    pub tests: Vec<Candidate>,
    /// Commits with the same words.
    pub commits: Vec<RelatedCommit>,
}

/// A file that may matter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// From the root of the project.
    pub path: String,
    /// How well it matches, compared with the others.
    pub score: f64,
    /// The words of the query that are in it.
    pub words: Vec<String>,
    /// How many commits with the same words touched it.
    pub commits: usize,
    /// What it defines that has such words in its name; of the best files only.
    pub symbols: Vec<Symbol>,
    /// The lines that match best.
    pub lines: Option<(u32, u32)>,
}

/// Something that a file defines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub line: u32,
}

/// A commit whose message has the same words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RelatedCommit {
    /// The day.
    pub date: String,
    /// The first line of its message.
    pub subject: String,
    /// The files that it touched and that are still there.
    pub files: Vec<String>,
}

/// Ranks files of a project by what is wanted.
pub(super) fn find(project: &Project, files: &[File], wanted: &str) -> Candidates {
    let cache = RankCache::open(project.user(), project.root());
    let log = log(project.root(), cache.as_ref());
    let known = cache.as_ref().and_then(RankCache::index).unwrap_or_default();
    let dir = project.dir();
    let read = |file: &File, most: usize, text: &mut Vec<u8>| read(dir, file, most as u64, text);
    let input = agentd_rank::Project { files, read: &read, log: &log, cache: &known };
    let ranking = agentd_rank::rank(&input, wanted);
    drop(known);
    if let (Some(cache), Some(index)) = (&cache, &ranking.cache) {
        cache.write_index(index);
    }
    Candidates {
        files: candidates(dir, files, &ranking, &ranking.sources, DESCRIBED),
        tests: candidates(dir, files, &ranking, &ranking.tests, 0),
        commits: ranking
            .commits
            .iter()
            .take(COMMITS)
            .map(|commit| related(files, commit))
            .collect(),
    }
}

/// Puts texts in order by what is wanted: the indexes of those that match, the best first.
pub(super) fn order(texts: &[(String, String)], wanted: &str) -> Vec<usize> {
    let file = |(name, text): &(String, String)| File {
        path: name.clone(),
        size: text.len() as u64,
        mtime: 0,
        kind: agentd_rank::Kind::Source,
    };
    let files: Vec<File> = texts.iter().map(file).collect();
    let read = |file: &File, most: usize, out: &mut Vec<u8>| {
        if let Some((_, text)) = texts.iter().find(|(name, _)| *name == file.path) {
            out.extend(text.bytes().take(most));
        }
    };
    let input = agentd_rank::Project { files: &files, read: &read, log: "", cache: b"" };
    let ranking = agentd_rank::rank(&input, wanted);
    ranking.sources.iter().filter(|found| found.score > 0.0).map(|found| found.file).collect()
}

fn candidates(
    dir: &ProjectDir,
    files: &[File],
    ranking: &Ranking,
    ranked: &[Ranked],
    described: usize,
) -> Vec<Candidate> {
    let candidate = |(place, found): (usize, &Ranked)| {
        let file = &files[found.file];
        let mut candidate = Candidate {
            path: file.path.clone(),
            score: (f64::from(found.score) * 1000.0).round() / 1000.0,
            words: found.words.clone(),
            commits: found.commits,
            symbols: Vec::new(),
            lines: found.passage,
        };
        if place < described {
            let mut bytes = Vec::new();
            read(dir, file, READ_BYTES, &mut bytes);
            let text = String::from_utf8_lossy(&bytes);
            let symbol = |(line, name): (u32, &str)| Symbol { name: name.to_owned(), line };
            candidate.symbols = ranking.symbols(&text, SYMBOLS).into_iter().map(symbol).collect();
            let last = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
            candidate.lines = found.passage.map(|(start, end)| (start, end.min(last).max(start)));
        }
        candidate
    };
    ranked.iter().enumerate().map(candidate).collect()
}

fn related(files: &[File], commit: &agentd_rank::Related) -> RelatedCommit {
    RelatedCommit {
        date: one_line(&commit.date, 10),
        subject: one_line(&commit.subject, 200),
        files: commit.files.iter().map(|file| files[*file].path.clone()).collect(),
    }
}

/// Reads the beginning of a file; nothing if it is not there or is no longer a file.
fn read(dir: &ProjectDir, file: &File, most: u64, text: &mut Vec<u8>) {
    let Ok(path) = RelPath::new(&file.path) else { return };
    let Ok((opened, _)) = dir.open_file(&path) else { return };
    // What was read before an error is good enough to rank.
    let _ = opened.take(most).read_to_end(text);
}

/// The commits of the project as git lists them; nothing where there is no git.
fn log(root: &Path, cache: Option<&RankCache>) -> String {
    let tool = GitTool::default();
    let place = tool.call(root, "rev-parse").args(["--show-prefix", "HEAD"]).run();
    let Ok(place) = place.map(|output| output.text()) else { return String::new() };
    let Some((prefix, head)) = place.trim_end().rsplit_once('\n') else { return String::new() };
    if let Some(known) = cache.and_then(|cache| cache.log(head)) {
        return known;
    }
    let limit = format!("-n{LOG_COMMITS}");
    let mut call = tool
        .call(root, "log")
        .literal_paths()
        .within(LOG_PATIENCE)
        .at_most(LOG_BYTES)
        // A clone that lacks objects would fetch them, by a program that its settings name.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .args(["--no-color", "--no-show-signature", "--no-ext-diff", "--no-textconv"])
        // Files that settings name would be read, and might be pipes.
        .args(["--no-mailmap", "-O/dev/null", "--encoding=UTF-8"])
        .args([&*limit, "--no-merges", "--no-renames", "--relative", "--name-only", LOG_FORMAT])
        .args([head]);
    if !prefix.is_empty() {
        call = call.args(["--", "."]);
    }
    let Ok(output) = call.ask() else { return String::new() };
    let text = output.text();
    if let Some(cache) = cache.filter(|_| output.code == 0) {
        cache.write_log(head, &text);
    }
    text
}
