//! What was found in files before, for files that are as they were.
//!
//! A cache is a mark, a checksum and entries: the length of the entry, the path, size and time of a
//! file, and its record. It is in a directory of the user's, but nothing depends on that: whatever
//! else is read as a cache is ignored, and the worst that a forged one does is another order.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustc_hash::FxHashMap;

use crate::File;
use crate::record::{put, take};

/// The first bytes of a cache; another number for another format.
const MARK: &[u8; 8] = b"agdrank1";
/// The most that a cache holds of files that were read this time.
pub(crate) const MOST_BYTES: usize = 48 << 20;
/// Below this part of all files (one in so many), reading changed files again is cheaper than
/// writing a new cache.
const FEW: usize = 50;

/// A cache that was read.
pub(crate) struct Cached<'a> {
    /// Of files that are as they were: the index of the file, the whole entry, and the record.
    entries: Vec<(usize, &'a [u8], &'a [u8])>,
    /// Entries of files that are gone or have changed.
    stale: usize,
}

impl<'a> Cached<'a> {
    pub(crate) fn read(bytes: &'a [u8], files: &[File], index: &FxHashMap<&str, u32>) -> Self {
        let mut cached = Self { entries: Vec::new(), stale: 0 };
        let Some(mut rest) = content(bytes) else { return cached };
        while let Some((entry, after)) = entry(rest) {
            rest = after;
            let found = read_entry(entry).and_then(|(path, size, mtime, record)| {
                let at = *index.get(path)? as usize;
                let file = files.get(at)?;
                (file.size == size && file.mtime == mtime).then_some((at, entry, record))
            });
            match found {
                Some(found) => cached.entries.push(found),
                None => cached.stale += 1,
            }
        }
        cached
    }

    /// The files that are as they were, with their records.
    pub(crate) fn records(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        self.entries.iter().map(|(file, _, record)| (*file, *record))
    }

    /// The cache for the next time; none if it would hardly differ.
    pub(crate) fn renewed(&self, fresh: usize, new: &[Vec<u8>]) -> Option<Vec<u8>> {
        let few = self.entries.len() / FEW;
        let held: usize = self.entries.iter().map(|(_, entry, _)| entry.len()).sum();
        // A project that is larger than a cache would otherwise write one each time.
        let is_full = held > MOST_BYTES / 10 * 9;
        if (fresh <= few || is_full) && self.stale <= few + fresh.min(few) {
            return None;
        }
        let old = self.entries.iter().map(|(_, entry, _)| *entry);
        let mut bytes = MARK.to_vec();
        bytes.extend([0; 8]);
        for entry in old {
            if bytes.len() + entry.len() > MOST_BYTES {
                break;
            }
            put(u32::try_from(entry.len()).unwrap_or(u32::MAX), &mut bytes);
            bytes.extend(entry);
        }
        for records in new {
            let room = MOST_BYTES.saturating_sub(bytes.len());
            bytes.extend(whole_entries(records, room));
        }
        let sum = checksum(&bytes[16..]).to_le_bytes();
        bytes[8..16].copy_from_slice(&sum);
        Some(bytes)
    }
}

/// Appends the entry of a file, as long as there is room.
pub(crate) fn append(file: &File, record: &[u8], left: &AtomicUsize, out: &mut Vec<u8>) {
    let mut head = Vec::with_capacity(file.path.len() + 24);
    put(u32::try_from(file.path.len()).unwrap_or(u32::MAX), &mut head);
    head.extend(file.path.as_bytes());
    head.extend(file.size.to_le_bytes());
    head.extend(file.mtime.to_le_bytes());
    let length = head.len() + record.len();
    let enough = left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(length + 5))
        .is_ok();
    if let (true, Ok(length)) = (enough, u32::try_from(length)) {
        put(length, out);
        out.extend(head);
        out.extend(record);
    }
}

/// What is behind the head of a cache, if it is whole.
fn content(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(MARK)?;
    let (sum, rest) = rest.split_first_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == checksum(rest)).then_some(rest)
}

/// The first entry, and what is behind it.
fn entry(mut rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = take(&mut rest)? as usize;
    rest.split_at_checked(length)
}

fn read_entry(entry: &[u8]) -> Option<(&str, u64, i64, &[u8])> {
    let mut rest = entry;
    let length = take(&mut rest)? as usize;
    let (path, rest) = rest.split_at_checked(length)?;
    let (size, rest) = rest.split_first_chunk::<8>()?;
    let (mtime, record) = rest.split_first_chunk::<8>()?;
    let path = str::from_utf8(path).ok()?;
    Some((path, u64::from_le_bytes(*size), i64::from_le_bytes(*mtime), record))
}

/// As many whole entries as fit.
fn whole_entries(entries: &[u8], room: usize) -> &[u8] {
    let mut rest = entries;
    while let Some((_, after)) = entry(rest) {
        if entries.len() - after.len() > room {
            break;
        }
        rest = after;
    }
    &entries[..entries.len() - rest.len()]
}

/// Notices a cache that was cut off or damaged; it does not keep anyone from writing another.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let number = chunk.try_into().map_or(0, u64::from_le_bytes);
        sum = (sum ^ number).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
    for byte in chunks.remainder() {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
    sum ^ bytes.len() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Kind, Project, rank};

    fn file(path: &str, mtime: i64) -> File {
        File { path: path.to_owned(), size: 5, mtime, kind: Kind::Source }
    }

    fn ranked(files: &[File], cache: &[u8], text: &str) -> (Vec<usize>, Option<Vec<u8>>) {
        let read = |file: &File, _: usize, out: &mut Vec<u8>| {
            let text = if file.path == "a.rs" { text } else { "other" };
            out.extend(text.as_bytes());
        };
        let ranking = rank(&Project { files, read: &read, log: "", cache }, "login");
        let matching = ranking.sources.iter().filter(|found| !found.words.is_empty());
        (matching.map(|found| found.file).collect(), ranking.cache)
    }

    #[test]
    fn a_file_that_is_as_it_was_is_not_read_again() {
        let files = [file("a.rs", 1), file("b.rs", 1)];
        let (found, cache) = ranked(&files, b"", "login");
        assert_eq!(found, [0]);
        let cache = cache.unwrap();
        assert_eq!(ranked(&files, &cache, "nothing"), (vec![0], None));
        let changed = [file("a.rs", 2), file("b.rs", 1)];
        let (found, renewed) = ranked(&changed, &cache, "nothing");
        assert_eq!(found, [0; 0]);
        assert_eq!(ranked(&changed, &renewed.unwrap(), "login").0, [0; 0]);
    }

    #[test]
    fn a_damaged_cache_is_ignored() {
        let files = [file("a.rs", 1)];
        let cache = ranked(&files, b"", "login").1.unwrap();
        for at in 0..cache.len() {
            let mut damaged = cache.clone();
            damaged[at] ^= 0x11;
            assert_eq!(ranked(&files, &damaged, "nothing").0, [0; 0], "byte {at}");
            assert_eq!(ranked(&files, &cache[..at], "nothing").0, [0; 0], "cut at {at}");
        }
    }

    proptest! {
        #[test]
        fn a_forged_cache_does_no_harm(content in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = MARK.to_vec();
            bytes.extend(checksum(&content).to_le_bytes());
            bytes.extend(content);
            ranked(&[file("a.rs", 1)], &bytes, "login");
        }
    }
}
