//! How texts become words: identifiers are split into their parts, and each part is reduced to its
//! stem, so that `HTTPServer`, `http_servers` and "the http server" are the same words.
//!
//! A stem is only ever compared, so all that is kept of it is a number of 32 bits. That number is
//! part of the cache format: it must not depend on the machine or on a library.

use rustc_hash::FxHashMap;

/// The shortest and the longest identifier that is looked at; longer ones are data.
const SHORTEST: usize = 2;
const LONGEST: usize = 64;
/// The longest run of letters that are not ASCII; scripts without spaces have long ones.
const LONGEST_RUN: usize = 4096;
/// How many identifiers are remembered with their stems before all are forgotten.
const REMEMBERED: usize = 1 << 17;

/// A stem, as a number.
pub(crate) type Stem = u32;

/// Calls `found` with each run of letters, digits and underscores, and with the index of its line.
pub(crate) fn runs(text: &[u8], mut found: impl FnMut(&[u8], u32)) {
    let mut line = 0;
    let mut start = None;
    for (at, byte) in text.iter().enumerate() {
        match CLASS[usize::from(*byte)] {
            Class::Word => {
                if start.is_none() {
                    start = Some(at);
                }
            }
            class => {
                if let Some(start) = start.take() {
                    found(&text[start..at], line);
                }
                line += u32::from(class == Class::NewLine);
            }
        }
    }
    if let Some(start) = start {
        found(&text[start..], line);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Word,
    NewLine,
    Other,
}

static CLASS: [Class; 256] = {
    let mut table = [Class::Other; 256];
    let mut byte = 0_u8;
    loop {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 {
            table[byte as usize] = Class::Word;
        }
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    table[b'\n' as usize] = Class::NewLine;
    table
};

/// The stems of runs, each worked out once.
#[derive(Default)]
pub(crate) struct Stems {
    known: FxHashMap<Box<[u8]>, (u32, u32)>,
    all: Vec<Stem>,
    scratch: Vec<Stem>,
}

impl Stems {
    /// The stems of a run of [`runs`].
    pub(crate) fn of(&mut self, run: &[u8]) -> &[Stem] {
        if !run.is_ascii() {
            self.scratch.clear();
            let scratch = &mut self.scratch;
            if run.len() <= LONGEST_RUN {
                foreign(run, |stem| scratch.push(stem));
            }
            return &self.scratch;
        }
        if run.len() < SHORTEST || run.len() > LONGEST || run[0].is_ascii_digit() {
            return &[];
        }
        if let Some((start, end)) = self.known.get(run) {
            return &self.all[*start as usize..*end as usize];
        }
        if self.known.len() == REMEMBERED {
            self.known.clear();
            self.all.clear();
        }
        let start = self.all.len();
        let all = &mut self.all;
        identifier(run, |stem| all.push(stem));
        let place = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        self.known.insert(run.into(), (place(start), place(self.all.len())));
        &self.all[start..]
    }
}

/// The stems of an ASCII identifier: those of its parts, and of all of it where that says more.
fn identifier(run: &[u8], mut found: impl FnMut(Stem)) {
    let mut joined = [0; LONGEST];
    let (mut length, mut parts) = (0, 0);
    let mut take = |part: &[u8]| {
        let mut lower = [0; LONGEST];
        let lower = &mut lower[..part.len()];
        lower.copy_from_slice(part);
        lower.make_ascii_lowercase();
        joined[length..length + part.len()].copy_from_slice(lower);
        length += part.len();
        parts += 1;
        if part.len() >= SHORTEST {
            found(number(stem(lower)));
        }
    };
    let mut start = 0;
    for at in 0..run.len() {
        let (byte, before) = (run[at], at.checked_sub(1).map(|before| run[before]));
        if byte == b'_' {
            if at > start {
                take(&run[start..at]);
            }
            start = at + 1;
            continue;
        }
        // `fooBar`, `v1Pod`, and the last capital of `HTTPServer`.
        let lower = |byte: Option<u8>| {
            byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        let capital = byte.is_ascii_uppercase() && at > start;
        if capital && (lower(before) || run.get(at + 1).is_some_and(u8::is_ascii_lowercase)) {
            take(&run[start..at]);
            start = at;
        }
    }
    if start < run.len() {
        take(&run[start..]);
    }
    if parts > 1 && length > SHORTEST {
        found(number(stem(&joined[..length])));
    }
}

/// The stems of a run with other letters than ASCII: words as they are, and each two neighbors of
/// a script that puts no spaces between words.
fn foreign(run: &[u8], mut found: impl FnMut(Stem)) {
    let text = String::from_utf8_lossy(run);
    let mut word = String::new();
    let mut last: Option<char> = None;
    let mut buffer = [0; 8];
    for c in text.chars().chain([' ']) {
        if is_dense(c) {
            finish(&mut word, &mut found);
            if let Some(before) = last {
                let length = before.encode_utf8(&mut buffer).len();
                let end = length + c.encode_utf8(&mut buffer[length..]).len();
                found(number(&buffer[..end]));
            }
            last = Some(c);
            continue;
        }
        last = None;
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
        } else {
            finish(&mut word, &mut found);
        }
    }
}

/// Takes a word as it is, or as an identifier if it is one.
fn finish(word: &mut String, found: &mut impl FnMut(Stem)) {
    let length = word.chars().count();
    if word.is_ascii() {
        let fits = (SHORTEST..=LONGEST).contains(&length);
        if fits && !word.as_bytes()[0].is_ascii_digit() {
            identifier(word.as_bytes(), found);
        }
    } else if (SHORTEST..=LONGEST).contains(&length) {
        found(number(word.to_lowercase().as_bytes()));
    }
    word.clear();
}

/// Whether a letter belongs to a script without spaces: Chinese, Japanese, Korean, Thai.
fn is_dense(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0e7f | 0x1100..=0x11ff | 0x3040..=0x30ff | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff)
}

/// The stem of a lowercase word: endings that say how a word is used are cut off. It is light on
/// purpose; a word that is cut too far finds what it does not mean.
fn stem(word: &[u8]) -> &[u8] {
    let mut word = word;
    let ends = |word: &[u8], end: &str| word.ends_with(end.as_bytes());
    if word.len() > 4 && ["ies", "sses", "xes", "ches"].iter().any(|end| ends(word, end)) {
        word = &word[..word.len() - 2];
    } else if word.len() > 3
        && ends(word, "s")
        && !ends(word, "ss")
        && !ends(word, "us")
        && !ends(word, "is")
    {
        word = &word[..word.len() - 1];
    }
    let cut = if word.len() > 5 && ends(word, "ing") {
        3
    } else if word.len() > 4 && ends(word, "ed") && !ends(word, "eed") {
        2
    } else {
        0
    };
    if cut > 0 {
        word = &word[..word.len() - cut];
        // `stopped` is `stop`, but `passed` is `pass`.
        if let [.., a, b] = word
            && a == b
            && !b"aeioslz".contains(a)
        {
            word = &word[..word.len() - 1];
        }
    }
    if word.len() > 3 {
        if ends(word, "e") {
            word = &word[..word.len() - 1];
        } else if ends(word, "y") {
            // `query` and `queries`, which became `queri`.
            return &word[..word.len() - 1];
        } else if ends(word, "i") {
            word = &word[..word.len() - 1];
        }
    }
    word
}

/// FNV-1a, folded to 32 bits.
fn number(word: &[u8]) -> Stem {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in word {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let low = u32::try_from(hash & u64::from(u32::MAX)).unwrap_or_default();
    low ^ u32::try_from(hash >> 32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems_of(text: &str) -> Vec<Stem> {
        let mut stems = Stems::default();
        let mut found = Vec::new();
        runs(text.as_bytes(), |run, _| found.extend(stems.of(run)));
        found
    }

    #[test]
    fn identifiers_are_split_into_words() {
        for (text, words) in [
            ("HTTPServer", "http server httpserver"),
            ("http_servers", "http server httpserver"),
            ("parseV1Pod", "parse v1 pod parsev1pod"),
            ("a_b_c_d", "abcd"),
            ("one_two_three_four", "one two three four onetwothreefour"),
            ("__init__", "init"),
            ("0xdeadbeef 12", ""),
            ("größen_ordnung", "GRÖßEN_ordnung"),
            ("読み込み", "読み み込 込み"),
        ] {
            assert_eq!(stems_of(text), stems_of(words), "{text}");
        }
        assert_eq!(
            stems_of("登录失败"),
            [stems_of("登录"), stems_of("录失"), stems_of("失败")].concat()
        );
    }

    #[test]
    fn words_of_one_root_are_the_same() {
        for (one, other) in [
            ("queries", "query"),
            ("serializing", "serialize"),
            ("stopped", "stopping"),
            ("classes", "class"),
            ("boxes", "box"),
            ("caches", "cached"),
            ("passed", "pass"),
        ] {
            assert_eq!(stems_of(one), stems_of(other), "{one}");
        }
        for (one, other) in [("status", "statu"), ("is", "i"), ("need", "ne"), ("bus", "bu")] {
            assert_ne!(stems_of(one), stems_of(other), "{one}");
        }
    }

    #[test]
    fn lines_are_counted() {
        let mut found = Vec::new();
        runs(b"a\n\nbb c", |run, line| found.push((run.to_vec(), line)));
        assert_eq!(found, [(b"a".to_vec(), 0), (b"bb".to_vec(), 2), (b"c".to_vec(), 2)]);
    }
}
