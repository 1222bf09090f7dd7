//! Inputs made from other inputs, at random but repeatable.

/// Pieces of our formats, among which the interesting accidents happen.
const TOKENS: &[&str] = &[
    "\n",
    "\r\n",
    "\n\n",
    "---\n",
    "...\n",
    "```",
    "```yaml\n",
    "~~~",
    "# ",
    "## ",
    "### ",
    "- ",
    "* ",
    "- [ ] ",
    "- [x] ",
    "> ",
    "    ",
    "\t",
    ": ",
    "\"",
    "'",
    "|",
    "|-\n",
    ">",
    "&a ",
    "*a ",
    "<<: *a\n",
    "[",
    "]",
    "{",
    "}",
    "[[[[",
    "!!binary ",
    "!t ",
    "null",
    "~",
    "1e309",
    "-0",
    "0x1F",
    "1.10",
    "R1",
    "R0",
    "### R1: ",
    "### R99999999999999999999: ",
    "## Requirements\n",
    "<!--",
    "-->",
    "<review>",
    "</review>",
    "id: ",
    "type: spec\n",
    "depends_on: [\"1.1\"]\n",
    "**WHEN** ",
    "**THEN** ",
    "### Scenario: ",
    "### Task 1.1: ",
    "../",
    "/etc/passwd",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "\u{0301}",
    "\u{1f469}\u{200d}\u{1f4bb}",
    "\\",
    "\\u0000",
    "%",
    "=",
    "\"a\":",
    "[table]\n",
    "a.b.c = 1\n",
];

/// Longer inputs find little more and cost much.
const MAX_LEN: usize = 64 * 1024;

/// Makes new inputs out of a corpus. The same seed makes the same inputs.
pub struct Mutator {
    corpus: Vec<Vec<u8>>,
    state: u64,
}

impl Mutator {
    /// Starts from a corpus, which may be empty.
    pub fn new(corpus: Vec<Vec<u8>>, seed: u64) -> Self {
        Self { corpus, state: seed }
    }

    /// The next input: one of the corpus (or nothing) after one to eight changes.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = match self.corpus.len() {
            0 => Vec::new(),
            count => {
                let chosen = self.below(count);
                self.corpus[chosen].clone()
            }
        };
        for _ in 0..=self.below(8) {
            self.change(&mut input);
        }
        input.truncate(MAX_LEN);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        match self.below(9) {
            0 => {
                let token = self.token();
                self.insert(input, &token);
            }
            1 => {
                // Depth and length: what a person never types.
                let count = 1 << self.below(12);
                let piece = self.token().repeat(count);
                self.insert(input, &piece);
            }
            2 => {
                let bytes: Vec<u8> = (0..=self.below(8)).map(|_| self.byte()).collect();
                self.insert(input, &bytes);
            }
            3 => {
                let (from, to) = self.range(input.len());
                input.drain(from..to);
            }
            4 => {
                let (from, to) = self.range(input.len());
                let copy = input[from..to].to_vec();
                self.insert(input, &copy);
            }
            5 => {
                let at = self.below(input.len() + 1);
                input.truncate(at);
            }
            6 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] ^= 1 << self.below(8);
            }
            7 if !self.corpus.is_empty() => {
                // The tail of another input behind the head of this one.
                let other = self.below(self.corpus.len());
                let (head, tail) = (self.below(input.len() + 1), self.corpus[other].len() + 1);
                let tail = self.below(tail);
                input.truncate(head);
                input.extend_from_slice(&self.corpus[other][tail..]);
            }
            _ => self.swap_lines(input),
        }
    }

    fn swap_lines(&mut self, input: &mut Vec<u8>) {
        let mut lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
        if lines.len() < 2 {
            return;
        }
        let (a, b) = (self.below(lines.len()), self.below(lines.len()));
        lines.swap(a, b);
        *input = lines.concat();
    }

    fn insert(&mut self, input: &mut Vec<u8>, piece: &[u8]) {
        let at = self.below(input.len() + 1);
        input.splice(at..at, piece.iter().copied());
        // Repeated doubling must not fill the memory before the final cut.
        input.truncate(2 * MAX_LEN);
    }

    fn range(&mut self, len: usize) -> (usize, usize) {
        let (a, b) = (self.below(len + 1), self.below(len + 1));
        (a.min(b), a.max(b))
    }

    fn token(&mut self) -> Vec<u8> {
        TOKENS[self.below(TOKENS.len())].as_bytes().to_vec()
    }

    fn byte(&mut self) -> u8 {
        self.random().to_le_bytes()[0]
    }

    /// A number below `bound`, which must not be 0.
    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.random() % bound).unwrap_or(0)
    }

    /// `SplitMix64`, by Steele, Lea and Flood: small, and good enough here.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_inputs_of_bounded_length() {
        let corpus = || vec![b"# Change: a\n\n## Why\n".to_vec(), b"id: b\n".to_vec()];
        let mut one = Mutator::new(corpus(), 7);
        let mut two = Mutator::new(corpus(), 7);
        let mut other = Mutator::new(corpus(), 8);
        let mut same_as_other = 0;
        for _ in 0..2000 {
            let input = one.next_input();
            assert_eq!(input, two.next_input());
            assert!(input.len() <= MAX_LEN);
            same_as_other += usize::from(input == other.next_input());
        }
        assert!(same_as_other < 200, "{same_as_other} of 2000 inputs agree between two seeds");
    }

    #[test]
    fn nothing_to_start_from_is_fine() {
        let mut mutator = Mutator::new(Vec::new(), 1);
        assert!((0..100).any(|_| mutator.next_input().len() > 10));
    }
}
