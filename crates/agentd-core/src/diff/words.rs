//! The words that make the lines of a difference different.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{DiffLine, LineKind, Part};

/// Blocks with more words than this are not compared word by word.
const MOST_WORDS: usize = 3000;

/// Where less than one part in so many is the same, marks would be noise.
const LEAST_IN_COMMON: usize = 3;

/// Marks the words that differ, wherever removed lines are followed by added ones.
pub(super) fn mark(lines: &mut [DiffLine]) {
    let mut at = 0;
    while at < lines.len() {
        let run = |from: usize, kind, lines: &[DiffLine]| {
            from + lines[from..].iter().take_while(|line| line.kind == kind).count()
        };
        let removed = run(at, LineKind::Removed, lines);
        let added = run(removed, LineKind::Added, lines);
        if removed > at && added > removed {
            let (old, new) = lines[at..added].split_at_mut(removed - at);
            mark_block(old, new);
        }
        at = added.max(at + 1);
    }
}

/// Marks the words of lines that took the place of others.
fn mark_block(old: &mut [DiffLine], new: &mut [DiffLine]) {
    let texts = |lines: &[DiffLine]| lines.iter().map(DiffLine::text).collect::<Vec<_>>();
    let (old_texts, new_texts) = (texts(old), texts(new));
    let (before, after) = (words(&old_texts), words(&new_texts));
    if before.len().max(after.len()) > MOST_WORDS {
        return;
    }
    // A text that was wrapped in another place is the same text.
    let key = |word: &Word<'_>| if word.text == "\n" { " " } else { word.text }.to_owned();
    let keys = |words: &[Word<'_>]| words.iter().map(key).collect::<Vec<String>>();
    let (old_keys, new_keys) = (keys(&before), keys(&after));
    let ops = capture_diff_slices(Algorithm::Myers, &old_keys, &new_keys);
    let mut same = (vec![false; before.len()], vec![false; after.len()]);
    let mut common = 0;
    for op in &ops {
        if let DiffOp::Equal { old_index, new_index, len } = *op {
            same.0[old_index..old_index + len].fill(true);
            same.1[new_index..new_index + len].fill(true);
            common += before[old_index..old_index + len].iter().filter(|w| w.is_word()).count();
        }
    }
    let count = |words: &[Word<'_>]| words.iter().filter(|word| word.is_word()).count();
    if common * LEAST_IN_COMMON < count(&before).max(count(&after)) {
        return;
    }
    put(old, &before, &same.0);
    put(new, &after, &same.1);
}

/// A word, what stands between two, or a line break.
struct Word<'t> {
    line: usize,
    text: &'t str,
}

impl Word<'_> {
    fn is_word(&self) -> bool {
        self.text.chars().any(char::is_alphanumeric)
    }
}

fn words(texts: &[String]) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for (line, text) in texts.iter().enumerate() {
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let kind = kind(first);
            let end = match kind {
                // Each sign, and each character of a script without spaces, is one of its own.
                Kind::Sign => first.len_utf8(),
                Kind::Letters | Kind::Space => {
                    rest.find(|c| self::kind(c) != kind).unwrap_or(rest.len())
                }
            };
            let (word, behind) = rest.split_at(end);
            words.push(Word { line, text: word });
            rest = behind;
        }
        words.push(Word { line, text: "\n" });
    }
    words
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letters,
    Space,
    Sign,
}

fn kind(c: char) -> Kind {
    // From here on come the scripts of East Asia.
    const WIDE: char = '\u{2e80}';
    match c {
        c if c >= WIDE => Kind::Sign,
        c if c.is_alphanumeric() || c == '_' => Kind::Letters,
        c if c.is_whitespace() => Kind::Space,
        _ => Kind::Sign,
    }
}

/// Replaces the parts of lines by words, marked where they differ.
fn put(lines: &mut [DiffLine], words: &[Word<'_>], same: &[bool]) {
    for (number, line) in lines.iter_mut().enumerate() {
        let own: Vec<(&str, bool)> = words
            .iter()
            .zip(same)
            .filter(|(word, _)| word.line == number && word.text != "\n")
            .map(|(word, same)| (word.text, !same))
            .collect();
        let mut parts: Vec<Part> = Vec::new();
        for (at, &(text, changed)) in own.iter().enumerate() {
            // A space between two words that differ differs, too: one mark instead of two.
            let beside = |at: Option<usize>| at.and_then(|at| own.get(at)).is_some_and(|it| it.1);
            let joins = text.trim().is_empty() && beside(at.checked_sub(1)) && beside(Some(at + 1));
            let changed = changed || joins;
            match parts.last_mut() {
                Some(last) if last.changed == changed => last.text.push_str(text),
                _ => parts.push(Part { text: text.to_owned(), changed }),
            }
        }
        if !parts.is_empty() {
            line.parts = parts;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::markdown;
    use super::super::tests::shown;

    fn check(old: &str, new: &str, expected: &str) {
        assert_eq!(shown(&markdown(old, new)), format!("@\n{expected}"));
    }

    #[test]
    fn the_words_that_differ_are_marked() {
        check(
            "A session MUST end after 12 hours.\n",
            "A session MUST end after 8 hours, always.\n",
            "-A session MUST end after [12] hours.\n+A session MUST end after [8] hours[, always].\n",
        );
        check(
            "one two three\nfour five\n",
            "one two\nthree four six\n",
            "-one two three\n-four [five]\n+one two\n+three four [six]\n",
        );
        check("登入後十二小時\n", "登入後八小時\n", "-登入後[十二]小時\n+登入後[八]小時\n");
    }

    #[test]
    fn lines_with_little_in_common_are_not_marked() {
        check("alpha beta gamma\n", "one two three\n", "-alpha beta gamma\n+one two three\n");
        check("gone\n", "", "-gone\n");
        let long = |word: &str| format!("{}end\n", format!("{word} ").repeat(4000));
        let diff = markdown(&long("a"), &long("a b"));
        assert!(diff.hunks[0].lines.iter().all(|line| line.parts.len() == 1));
    }
}
