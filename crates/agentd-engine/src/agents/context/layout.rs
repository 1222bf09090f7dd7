//! How sections share the bytes of a context.
//!
//! Each section has a share; what a section does not need goes to those that want more, in their
//! order. How long a section becomes is only known when it is written, so sections are written
//! again until nothing is left over that somebody wants.

use std::fmt::Write as _;

use agentd_core::document::review_block;
use agentd_core::documents::{Documents, Source};
use agentd_core::layout::ChangeFile;
use agentd_core::prompt::{FENCE_OVERHEAD, KeepEnd, fenced, one_line};
use agentd_core::text::head;

/// How often sections are written again to use what is left.
const ROUNDS: usize = 12;
/// What is not worth another round.
const SCRAPS: usize = 48;
/// Less of a text than this says nothing.
const LEAST: usize = 40;

/// A part of a context: a heading, a sentence, and texts under it.
pub(super) struct Section<'a> {
    pub(super) title: &'static str,
    /// Its share of the budget.
    pub(super) percent: usize,
    /// What is said before the texts, in words of agentd.
    pub(super) note: &'static str,
    pub(super) body: Body<'a>,
}

/// What a section has to say.
pub(super) enum Body<'a> {
    /// Texts, of which the beginning is kept.
    Texts(Vec<Excerpt>),
    /// A text that is made for a number of bytes; `wanted` is what all of it would take.
    Made {
        label: &'static str,
        wanted: usize,
        make: Box<dyn Fn(usize) -> (String, Vec<String>) + 'a>,
    },
}

/// A text, or the beginning of one.
pub(super) struct Excerpt {
    pub(super) label: String,
    pub(super) text: String,
    /// How long all of it is, in bytes.
    pub(super) size: u64,
}

impl<'a> Section<'a> {
    pub(super) fn texts(title: &'static str, percent: usize) -> Self {
        Self { title, percent, note: "", body: Body::Texts(Vec::new()) }
    }

    /// A section whose text is made to fit.
    pub(super) fn made(
        title: &'static str,
        percent: usize,
        note: &'static str,
        label: &'static str,
        make: impl Fn(usize) -> (String, Vec<String>) + 'a,
    ) -> Self {
        let wanted = make(usize::MAX).0.len();
        Self { title, percent, note, body: Body::Made { label, wanted, make: Box::new(make) } }
    }

    pub(super) fn push(&mut self, label: impl Into<String>, text: String) {
        let size = text.len() as u64;
        self.push_excerpt(Excerpt { label: label.into(), text, size });
    }

    pub(super) fn push_excerpt(&mut self, excerpt: Excerpt) {
        if let Body::Texts(texts) = &mut self.body
            && !excerpt.text.trim().is_empty()
        {
            texts.push(excerpt);
        }
    }

    /// Adds a document of the change, without reviews.
    pub(super) fn push_document(
        &mut self,
        documents: &Documents,
        file: &ChangeFile,
        left_out: &mut Vec<String>,
    ) {
        let path = file.path().to_string();
        match documents.get(file) {
            Source::Text(text) if *file == ChangeFile::Proposal => {
                self.push(path, review_block::without(text));
            }
            Source::Text(text) => self.push(path, text.clone()),
            Source::Missing => {}
            Source::Unreadable(why) => left_out.push(format!("{path}: {}", one_line(why, 150))),
        }
    }

    fn wanted(&self) -> usize {
        match &self.body {
            Body::Texts(texts) => texts.iter().map(|excerpt| excerpt.text.len()).sum(),
            Body::Made { wanted, .. } => *wanted,
        }
    }

    /// Writes the section with at most so many bytes of its texts.
    fn write(&self, given: usize, out: &mut String, left_out: &mut Vec<String>) {
        match &self.body {
            Body::Texts(texts) => {
                let sizes: Vec<usize> = texts.iter().map(|excerpt| excerpt.text.len()).collect();
                self.write_texts(texts, &in_order(given, &sizes), out, left_out);
            }
            Body::Made { label, wanted, make } if *wanted > 0 => {
                let (text, more) = make(if given < *wanted { given } else { usize::MAX });
                left_out.extend(more);
                if text.is_empty() {
                    return;
                }
                self.write_title(out);
                let text = text.trim_end();
                let _ = write!(out, "{}\n\n", fenced(label, text, text.len(), KeepEnd::Head));
            }
            Body::Made { .. } => {}
        }
    }

    fn write_title(&self, out: &mut String) {
        let _ = write!(out, "## {}\n\n", self.title);
        if !self.note.is_empty() {
            let _ = write!(out, "{}\n\n", self.note);
        }
    }

    fn write_texts(
        &self,
        texts: &[Excerpt],
        caps: &[usize],
        out: &mut String,
        left_out: &mut Vec<String>,
    ) {
        let mut titled = false;
        for (Excerpt { label, text, size }, cap) in texts.iter().zip(caps) {
            let cap = (*cap).min(text.len());
            let kept = head(text, cap).len();
            let kept = if kept < text.len() && kept < LEAST { 0 } else { kept };
            if kept < text.len() || (kept as u64) < *size {
                left_out.push(match kept {
                    0 => format!("{label}: all {size} bytes"),
                    _ => format!("{label}: everything after the first {kept} of {size} bytes"),
                });
            }
            if kept > 0 {
                if !titled {
                    self.write_title(out);
                    titled = true;
                }
                let _ = write!(out, "{}\n\n", fenced(label, text, kept, KeepEnd::Head));
            }
        }
    }

    /// Writes a section of documents, each of which gets its part of so many bytes in all.
    pub(super) fn write_fairly(&self, most: usize, out: &mut String, left_out: &mut Vec<String>) {
        let Body::Texts(texts) = &self.body else { return };
        let overhead = self.title.len() + 6 + texts.len() * (FENCE_OVERHEAD + 2);
        let sizes: Vec<usize> = texts.iter().map(|excerpt| excerpt.text.len()).collect();
        self.write_texts(texts, &fairly(most.saturating_sub(overhead), &sizes), out, left_out);
    }
}

/// Writes sections in at most `budget` bytes, together with the list of what was left out, which is
/// measured by `listed`.
pub(super) fn lay_out(
    budget: usize,
    sections: &[Section<'_>],
    listed: impl Fn(&[String]) -> usize,
) -> (String, Vec<String>) {
    let wanted: Vec<usize> = sections.iter().map(Section::wanted).collect();
    let shares: Vec<(usize, usize)> =
        sections.iter().zip(&wanted).map(|(section, wanted)| (section.percent, *wanted)).collect();
    let write = |given: &[usize]| {
        let (mut text, mut left_out) = (String::new(), Vec::new());
        for (section, given) in sections.iter().zip(given) {
            section.write(*given, &mut text, &mut left_out);
        }
        (text, left_out)
    };
    let mut spare = budget;
    let mut given = share(spare, &shares);
    let mut best: Option<(String, Vec<String>)> = None;
    for _ in 0..ROUNDS {
        let (text, left_out) = write(&given);
        let used = text.len() + listed(&left_out);
        if used > budget {
            if best.is_some() {
                break;
            }
            // Headings and fences were not counted yet.
            spare = spare.saturating_sub(used - budget + SCRAPS / 2);
            given = share(spare, &shares);
            continue;
        }
        let mut left = budget - used;
        best = Some((text, left_out));
        if left < SCRAPS {
            break;
        }
        let before = given.clone();
        left -= SCRAPS / 2;
        for (given, wanted) in given.iter_mut().zip(&wanted) {
            let more = wanted.saturating_sub(*given).min(left);
            *given += more;
            left -= more;
        }
        if given == before {
            break;
        }
    }
    best.unwrap_or_else(|| write(&vec![0; sections.len()]))
}

/// Divides `spare` bytes by percentages and by what is wanted: each section gets its share as far
/// as it wants it, and what is then left goes to those that want more, in order.
fn share(spare: usize, sections: &[(usize, usize)]) -> Vec<usize> {
    let mut given: Vec<usize> =
        sections.iter().map(|(percent, wanted)| (spare / 100 * percent).min(*wanted)).collect();
    let mut left = spare.saturating_sub(given.iter().sum::<usize>());
    for (given, (_, wanted)) in given.iter_mut().zip(sections) {
        let more = (wanted - *given).min(left);
        *given += more;
        left -= more;
    }
    given
}

/// Gives texts of these sizes what they want, the first ones first.
fn in_order(mut left: usize, sizes: &[usize]) -> Vec<usize> {
    let take = |size: &usize| {
        let taken = left.min(*size);
        left -= taken;
        taken
    };
    sizes.iter().map(take).collect()
}

/// Gives each of these sizes the same, and what the small ones do not need to the others: a huge
/// document leaves the rest of a plan its place.
fn fairly(mut left: usize, sizes: &[usize]) -> Vec<usize> {
    let mut by_size: Vec<usize> = (0..sizes.len()).collect();
    by_size.sort_by_key(|index| sizes[*index]);
    let mut given = vec![0; sizes.len()];
    for (done, index) in by_size.into_iter().enumerate() {
        given[index] = sizes[index].min(left / (sizes.len() - done));
        left -= given[index];
    }
    given
}
