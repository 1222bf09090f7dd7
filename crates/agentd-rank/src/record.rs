//! What is kept of a file: which stems are in which of its passages, in a few bytes for each.
//!
//! A record is a number of stems and one of all words, then for each stem, in ascending order, its
//! four bytes, the length of its places, and the places: the distance to the passage before and
//! how often it is there. A record may come from a cache that somebody else has written, so
//! reading it never trusts it.

use crate::query::Query;
use crate::words::{Stem, Stems, runs};

/// How many lines are a passage.
pub(crate) const PASSAGE_LINES: u32 = 40;
/// How many times a stem counts in one passage.
const MOST_TIMES: u32 = 8;

/// Makes records of texts, and remembers what it can use again.
#[derive(Default)]
pub(crate) struct Recorder {
    stems: Stems,
    /// A stem and the passage that it is in.
    places: Vec<u64>,
}

impl Recorder {
    /// Appends the record of a text.
    pub(crate) fn record(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let Self { stems, places } = self;
        places.clear();
        runs(text, |run, line| {
            let passage = u64::from(line / PASSAGE_LINES);
            places.extend(stems.of(run).iter().map(|stem| u64::from(*stem) << 32 | passage));
        });
        places.sort_unstable();
        put(u32::try_from(places.len()).unwrap_or(u32::MAX), out);
        let mut rest = places.as_slice();
        while let Some(first) = rest.first() {
            let stem = first >> 32;
            let count = rest.iter().take_while(|place| **place >> 32 == stem).count();
            let (same, after) = rest.split_at(count);
            rest = after;
            out.extend((stem as u32).to_le_bytes());
            let start = out.len();
            out.push(0);
            put_places(same, out);
            // Almost always one byte; otherwise the length is put in front again.
            match u8::try_from(out.len() - start - 1) {
                Ok(length) if length < 0x80 => out[start] = length,
                _ => {
                    let places = out.split_off(start + 1);
                    out.pop();
                    put(u32::try_from(places.len()).unwrap_or(u32::MAX), out);
                    out.extend(places);
                }
            }
        }
    }
}

/// The places of one stem.
fn put_places(same: &[u64], out: &mut Vec<u8>) {
    let mut last = 0;
    let mut rest = same;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|place| *place == first).count();
        rest = &rest[count..];
        #[expect(clippy::cast_possible_truncation, reason = "the lower half of a u64")]
        let passage = *first as u32;
        let times = u32::try_from(count).unwrap_or(MOST_TIMES).min(MOST_TIMES);
        put((passage - last) * MOST_TIMES + times - 1, out);
        last = passage;
    }
}

/// A word of the query in a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) passage: u16,
    pub(crate) word: u8,
    pub(crate) times: u8,
}

/// Where the words of a query are in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    /// How many words the file has.
    pub(crate) length: u32,
    /// By word, then by passage.
    pub(crate) hits: Box<[Hit]>,
}

/// Reads from a record what a query asks for; none if it is not a record.
pub(crate) fn hits(record: &[u8], query: &Query) -> Option<Hits> {
    let mut rest = record;
    let length = take(&mut rest)?;
    let mut found = Vec::new();
    let mut words = query.words.iter().map(|word| word.stem).enumerate().peekable();
    while !rest.is_empty() && words.peek().is_some() {
        let (stem, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        let stem: Stem = u32::from_le_bytes(*stem);
        let size = take(&mut rest)? as usize;
        let (mut places, after) = rest.split_at_checked(size)?;
        rest = after;
        while words.next_if(|(_, wanted)| *wanted < stem).is_some() {}
        let Some((word, _)) = words.next_if(|(_, wanted)| *wanted == stem) else { continue };
        let word = u8::try_from(word).ok()?;
        let mut passage: u16 = 0;
        while !places.is_empty() {
            let place = take(&mut places)?;
            passage = passage.checked_add(u16::try_from(place / MOST_TIMES).ok()?)?;
            let times = u8::try_from(place % MOST_TIMES + 1).ok()?;
            found.push(Hit { passage, word, times });
        }
    }
    Some(Hits { length, hits: found.into() })
}

/// Appends a number with seven bits in each byte.
pub(crate) fn put(mut number: u32, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            return out.push(low & 0x7f);
        }
        out.push(low | 0x80);
    }
}

/// Reads a number of [`put`].
pub(crate) fn take(rest: &mut &[u8]) -> Option<u32> {
    let mut number: u32 = 0;
    for shift in (0..35).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        Recorder::default().record(text.as_bytes(), &mut out);
        out
    }

    #[test]
    fn words_are_found_in_their_passages() {
        let text = format!("login\n{}login logins\n", "x1\n".repeat(100));
        let query = Query::new("Lock the login");
        let login = query.words.iter().position(|word| word.text == "login").unwrap();
        let word = u8::try_from(login).unwrap();
        let found = hits(&record(&text), &query).unwrap();
        let expected = [Hit { passage: 0, word, times: 1 }, Hit { passage: 2, word, times: 2 }];
        assert_eq!((found.length, &*found.hits), (103, &expected[..]));
    }

    #[test]
    fn a_stem_with_many_places_is_read_back() {
        let text = format!("login{}", "\n".repeat(40)).repeat(500);
        let found = hits(&record(&text), &Query::new("login")).unwrap();
        assert_eq!(found.hits.len(), 500);
        assert_eq!(found.hits[499].passage, 499);
    }

    proptest! {
        #[test]
        fn no_bytes_are_trusted(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = hits(&bytes, &Query::new("login form"));
        }

        #[test]
        fn numbers_are_read_back(number in any::<u32>()) {
            let mut out = Vec::new();
            put(number, &mut out);
            prop_assert_eq!(take(&mut out.as_slice()), Some(number));
        }
    }
}
