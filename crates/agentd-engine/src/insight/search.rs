//! Words in the documents, findings, comments and transcripts of a project, archived changes included.
//!
//! There is no index: the documents of a thousand changes are read in the time that a person takes to
//! press a key. Transcripts are much larger, so only so much of them is read, the newest first, and
//! the answer says so.

use std::io::{BufRead as _, BufReader, Read as _};
use std::time::{Duration, Instant};

use agentd_core::document::review_block;
use agentd_core::event::AgentEvent;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::{self, ArchiveName, ChangeFile, RunName};
use agentd_core::run_format::{Record, parse_line};
use agentd_core::span::Span;
use agentd_core::text::excerpt;
use aho_corasick::AhoCorasick;

use crate::agents::redact::Redactor;
use crate::agents::run_record::LONGEST_LINE;
use crate::store::{Change, Project, StoreError, map_parallel};

/// How many places are found at most, and how many in one document.
const MOST: usize = 200;
const MOST_OF_ONE: usize = 5;

/// How much of a line is shown.
const SHOWN: usize = 240;

/// How much of transcripts is read, and how long that may take.
const MOST_BYTES: u64 = 512 << 20;
const LONGEST: Duration = Duration::from_secs(3);

/// More words than this are not looked for.
const MOST_WORDS: usize = 8;

/// A place where words were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// What they were found in.
    pub place: HitPlace,
    /// The line, from 1.
    pub line: usize,
    /// The words around them, in one line, without secrets.
    pub text: String,
}

/// What words were found in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HitPlace {
    /// A main spec.
    MainSpec(SpecId),
    /// A document of a change.
    Document {
        /// The change.
        change: ChangeId,
        /// Its directory in the archive, if it is there.
        archived: Option<ArchiveName>,
        /// The document.
        file: ChangeFile,
        /// What of it.
        part: HitPart,
    },
    /// What was recorded of a call.
    Run {
        /// The change.
        change: ChangeId,
        /// Its directory in the archive, if it is there.
        archived: Option<ArchiveName>,
        /// The run.
        run: RunName,
    },
}

/// A part of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HitPart {
    /// What the document says itself.
    Text,
    /// A review in it, but not one of the issues.
    Review,
    /// The issue with this number.
    Issue(u32),
}

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Main specs and the documents of changes.
    Documents,
    /// The records of calls.
    Runs,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The places, those of open changes first.
    pub hits: Vec<Hit>,
    /// Whether there may be more of them.
    pub is_cut: bool,
}

/// The words that are looked for.
struct Words(AhoCorasick, usize);

impl Words {
    fn of(query: &str) -> Option<Self> {
        let words: Vec<&str> = query.split_whitespace().take(MOST_WORDS).collect();
        let all = AhoCorasick::builder().ascii_case_insensitive(true).build(&words).ok()?;
        (!words.is_empty()).then_some(Self(all, words.len()))
    }

    /// How many of the words are in a text.
    fn count(&self, text: &[u8]) -> usize {
        let mut seen = [false; MOST_WORDS];
        // Words may be parts of each other.
        if let Ok(found) = self.0.try_find_overlapping_iter(text) {
            found.for_each(|found| seen[found.pattern().as_usize()] = true);
        }
        seen.iter().filter(|seen| **seen).count()
    }

    fn all_in(&self, text: &[u8]) -> bool {
        self.count(text) == self.1
    }
}

/// Looks for words. All of them have to be in a document, or in one record of a call.
pub fn search(
    project: &Project,
    query: &str,
    scope: Scope,
    redactor: &Redactor,
) -> Result<Found, StoreError> {
    let Some(words) = Words::of(query) else { return Ok(Found::default()) };
    let mut changes = Vec::new();
    for (id, home) in project.open_everywhere()? {
        changes.extend(home.change_if_open(&id)?);
    }
    let archived = project.archived_everywhere()?;
    for (name, home) in archived.iter().rev() {
        match home.archived_change(name) {
            Err(error) if error.is_not_found() => {}
            change => changes.push(change?),
        }
    }
    Ok(match scope {
        Scope::Documents => in_documents(project, &changes, &words)?,
        Scope::Runs => in_runs(&changes, &words, redactor),
    })
}

fn in_documents(project: &Project, changes: &[Change], words: &Words) -> Result<Found, StoreError> {
    let specs = map_parallel(&project.spec_ids()?.ids, |id| {
        let text = project.dir().read_to_string(&layout::main_spec(id)).unwrap_or_default();
        hits(&text, words, |_| HitPlace::MainSpec(id.clone()))
    });
    let documents = map_parallel(changes, |change| of_change(change, words));
    let all: Vec<Hit> = documents.into_iter().chain(specs).flatten().collect();
    let is_cut = all.len() > MOST;
    Ok(Found { hits: all.into_iter().take(MOST).collect(), is_cut })
}

fn of_change(change: &Change, words: &Words) -> Vec<Hit> {
    let specs = change.spec_ids().map(|specs| specs.ids).unwrap_or_default();
    let files = [
        ChangeFile::Proposal,
        ChangeFile::Tasks,
        ChangeFile::Clarifications,
        ChangeFile::Review,
        ChangeFile::Comments,
    ];
    let files = files.into_iter().chain(specs.into_iter().map(ChangeFile::Spec));
    let mut found = Vec::new();
    for file in files {
        let Ok(text) = change.read(&file) else { continue };
        let reviews = match file {
            ChangeFile::Proposal => review_block::spans(&text),
            ChangeFile::Review => vec![Span::new(0, text.len())],
            _ => Vec::new(),
        };
        found.extend(hits(&text, words, |offset| HitPlace::Document {
            change: change.id().clone(),
            archived: change.archived().cloned(),
            file: file.clone(),
            part: part(&text, &reviews, offset),
        }));
    }
    found
}

/// What a line is a part of, where these are the reviews in a text.
fn part(text: &str, reviews: &[Span], offset: usize) -> HitPart {
    let Some(review) = reviews.iter().find(|span| span.range().contains(&offset)) else {
        return HitPart::Text;
    };
    let end = text[offset..].find('\n').map_or(text.len(), |length| offset + length);
    let above = text.get(review.start..end).unwrap_or_default().lines().rev();
    let heading =
        above.into_iter().find(|line| line.starts_with("## ") || line.starts_with("### "));
    let number = |heading: &str| heading.strip_prefix("### I")?.split(':').next()?.parse().ok();
    heading.and_then(number).map_or(HitPart::Review, HitPart::Issue)
}

/// The lines of a document that has all of the words: those with the most of them.
fn hits(text: &str, words: &Words, place: impl Fn(usize) -> HitPlace) -> Vec<Hit> {
    if !words.all_in(text.as_bytes()) {
        return Vec::new();
    }
    let mut lines: Vec<(usize, usize, usize, &str)> = Vec::new();
    let mut offset = 0;
    // Names and dates at the top are not what a document says, and are in its heading again.
    let begin = frontmatter_end(text);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let count = words.count(line.as_bytes());
        if count > 0 && offset >= begin {
            lines.push((count, index + 1, offset, line));
        }
        offset += line.len();
    }
    lines.sort_by_key(|(count, line, ..)| (std::cmp::Reverse(*count), *line));
    let hit = |(_, line, offset, text): (usize, usize, usize, &str)| Hit {
        place: place(offset),
        line,
        text: excerpt(text.trim(), SHOWN),
    };
    lines.into_iter().take(MOST_OF_ONE).map(hit).collect()
}

/// Where the text after the frontmatter begins.
fn frontmatter_end(text: &str) -> usize {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_end() == "---";
        match offset {
            0 if !is_fence => return 0,
            1.. if is_fence => return offset,
            _ => offset += line.len(),
        }
    }
    0
}

fn in_runs(changes: &[Change], words: &Words, redactor: &Redactor) -> Found {
    let mut found = Found::default();
    let begun = Instant::now();
    let mut left = MOST_BYTES;
    for change in changes {
        let runs = change.runs().map(|runs| runs.ids).unwrap_or_default();
        for run in runs.into_iter().rev() {
            if found.hits.len() >= MOST || left == 0 || begun.elapsed() > LONGEST {
                found.is_cut = true;
                return found;
            }
            let Ok(file) = change.open_run(&run) else { continue };
            let mut reader = BufReader::new(file.take(left));
            let (mut line, mut number, mut own) = (Vec::new(), 0, 0);
            while own < MOST_OF_ONE && begun.elapsed() <= LONGEST {
                line.clear();
                let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
                let Ok(read @ 1..) = read else { break };
                left = left.saturating_sub(read as u64);
                number += 1;
                if !words.all_in(&line) {
                    continue;
                }
                let Some(text) = said(&line, words) else { continue };
                own += 1;
                found.hits.push(Hit {
                    place: HitPlace::Run {
                        change: change.id().clone(),
                        archived: change.archived().cloned(),
                        run: run.clone(),
                    },
                    line: number,
                    text: redactor.clean(&text).into_owned(),
                });
            }
        }
    }
    found
}

/// What a record says, around the words; none if they are only in its form.
fn said(line: &[u8], words: &Words) -> Option<String> {
    let record = parse_line(std::str::from_utf8(line).ok()?)?;
    let text = match record {
        Record::Header(header) => header.prompt,
        Record::Event { event, .. } => match event {
            AgentEvent::Text { text, .. } => text.into_owned(),
            AgentEvent::ToolCall { name, arguments, .. } => format!("{name} {}", arguments.get()),
            AgentEvent::ToolResult { output, .. } => output.text().into_owned(),
            AgentEvent::Warning { message } => message.into_owned(),
            AgentEvent::Failed { failure } => failure.message.clone(),
            _ => return None,
        },
        Record::Stderr { text, .. } | Record::Note { text, .. } => text,
        Record::Raw { .. } | Record::Files { .. } | Record::End { .. } => return None,
    };
    let best = text.lines().max_by_key(|line| words.count(line.as_bytes()))?;
    (words.count(best.as_bytes()) > 0).then(|| around(best, words))
}

/// A part of a long line with the first of the words in it.
fn around(line: &str, words: &Words) -> String {
    let at = words.0.find(line.as_bytes()).map_or(0, |found| found.start());
    let from = line[..at].char_indices().rev().nth(60).map_or(0, |(at, _)| at);
    let start = if from > 0 { "…" } else { "" };
    format!("{start}{}", excerpt(line[from..].trim(), SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_have_to_be_there() {
        let words = Words::of("Session in end").unwrap();
        assert!(words.all_in(b"sessions begin and END"));
        assert!(!words.all_in(b"sessions begin"));
        assert!(Words::of("  ").is_none());
        let text = "one\nA session ends.\nsession in the end\n";
        let found: Vec<usize> =
            hits(text, &words, |_| HitPlace::MainSpec(SpecId::new("a").unwrap()))
                .iter()
                .map(|hit| hit.line)
                .collect();
        assert_eq!(found, [3, 2]);
        let text = "---\nid: session-end\n----\n---\n# In session-end\n";
        let found = hits(text, &words, |_| HitPlace::MainSpec(SpecId::new("a").unwrap()));
        assert_eq!(found.iter().map(|hit| hit.line).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn long_lines_are_shown_around_the_words() {
        let words = Words::of("needle").unwrap();
        let line = format!("{}needle{}", "hay ".repeat(100), " hay".repeat(200));
        let shown = around(&line, &words);
        assert!(shown.starts_with('…') && shown.contains("needle"), "{shown}");
        assert!(shown.chars().count() < 300);
    }
}
