//! Splitting a stream of bytes into lines in bounded memory.

/// A line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Its bytes; not necessarily UTF-8.
    pub bytes: &'a [u8],
    /// How many bytes of it were dropped, because it was longer than the cap.
    pub dropped: u64,
}

/// Collects the pieces of lines.
#[derive(Debug)]
pub(super) struct Lines {
    /// The start of a line whose end has not come yet.
    open: Vec<u8>,
    dropped: u64,
    cap: usize,
}

impl Lines {
    pub(super) fn new(cap: usize) -> Self {
        Self { open: Vec::new(), dropped: 0, cap: cap.max(1) }
    }

    /// Takes what was read and hands out the lines that are now complete. Lines
    /// within the chunk are not copied.
    pub(super) fn push(&mut self, mut chunk: &[u8], line: &mut impl FnMut(Line<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (head, rest) = chunk.split_at(end);
            chunk = &rest[1..];
            if self.open.is_empty() && head.len() <= self.cap {
                line(Line { bytes: without_return(head), dropped: 0 });
            } else {
                self.keep(head);
                self.hand_out(line);
            }
        }
        self.keep(chunk);
    }

    /// The stream has ended: what is left is a line too.
    pub(super) fn finish(&mut self, line: &mut impl FnMut(Line<'_>)) {
        if !self.open.is_empty() {
            self.hand_out(line);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(self.cap - self.open.len());
        self.open.extend_from_slice(&bytes[..fits]);
        self.dropped += (bytes.len() - fits) as u64;
    }

    fn hand_out(&mut self, line: &mut impl FnMut(Line<'_>)) {
        line(Line { bytes: without_return(&self.open), dropped: self.dropped });
        self.open.clear();
        self.open.shrink_to(1 << 20);
        self.dropped = 0;
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[&[u8]], cap: usize) -> Vec<(Vec<u8>, u64)> {
        let mut lines = Lines::new(cap);
        let mut found = Vec::new();
        let mut take = |line: Line<'_>| found.push((line.bytes.to_vec(), line.dropped));
        for chunk in chunks {
            lines.push(chunk, &mut take);
        }
        lines.finish(&mut take);
        found
    }

    #[test]
    fn long_lines_are_cut_and_counted() {
        let found = split(&[b"abc", b"defgh", b"ij\nkl\r\n", b"\nend"], 4);
        let expected: [(&[u8], u64); 4] = [(b"abcd", 6), (b"kl", 0), (b"", 0), (b"end", 0)];
        assert_eq!(found, expected.map(|(line, dropped)| (line.to_vec(), dropped)));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(text in "[a\n]{0,60}", cuts in prop::collection::vec(0usize..60, 0..6)) {
            let whole = split(&[text.as_bytes()], 8);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> =
                cuts.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(&pieces, 8), whole);
        }
    }
}
