//! The unified diff of git, read back into files, hunks and lines.
//!
//! Every line of content has a marker in front of it and hunks say how many lines they have, so no
//! content can pass for the header of a file.

use super::{DiffLine, Hunk, LineDiff, LineKind};

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilePatch {
    /// Its path; of a file that is gone, the one that it had.
    pub path: String,
    /// The lines that differ.
    pub diff: LineDiff,
    /// Whether more of it differs than is here.
    pub cut: bool,
}

/// Reads a patch. What is not a hunk of a file, such as a note about a binary file, is left out.
pub fn patches(text: &str) -> Vec<FilePatch> {
    let mut files: Vec<(String, Vec<Hunk>, bool)> = Vec::new();
    let mut rest = text.lines().peekable();
    let mut old_path = String::new();
    while let Some(line) = rest.next() {
        if let Some(path) = line.strip_prefix("--- ") {
            old_path = name(path, "a/").unwrap_or_default();
        } else if let Some(path) = line.strip_prefix("+++ ") {
            let path = name(path, "b/").unwrap_or_else(|| std::mem::take(&mut old_path));
            files.push((path, Vec::new(), false));
        } else if let Some(head) = line.strip_prefix("@@ ") {
            let (Some(mut range), Some(file)) = (Range::parse(head), files.last_mut()) else {
                continue;
            };
            let mut hunk = Hunk { under: range.under.clone(), lines: Vec::new() };
            while let Some(line) = rest.next_if(|line| range.takes(line)) {
                hunk.lines.extend(range.line(line));
            }
            file.2 |= range.left();
            file.1.push(hunk);
        }
    }
    let file = |(path, hunks, cut)| FilePatch { path, diff: LineDiff::of(hunks), cut };
    files.into_iter().map(file).collect()
}

/// The name in a header; none for a side that is not there.
fn name(text: &str, side: &str) -> Option<String> {
    // A name with a space in it ends with a tab.
    let text = text.trim_end_matches(['\t', '\r']);
    let text = match text.strip_prefix('"') {
        Some(quoted) => unquoted(quoted.strip_suffix('"').unwrap_or(quoted)),
        None => text.to_owned(),
    };
    text.strip_prefix(side).map(str::to_owned)
}

/// A name without the C-style quotes that git puts around it.
fn unquoted(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let octal = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(byte);
            rest = &rest[3..];
        } else if let Some((&escaped, behind)) = rest.split_first() {
            bytes.push(match escaped {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                other => other,
            });
            rest = behind;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What is still to come of a hunk.
struct Range {
    old: usize,
    old_left: usize,
    new: usize,
    new_left: usize,
    under: String,
}

impl Range {
    /// Reads `-1,2 +3,4 @@ function`.
    fn parse(text: &str) -> Option<Self> {
        let (numbers, under) = text.split_once(" @@")?;
        let (old, new) = numbers.split_once(' ')?;
        let side = |text: &str, mark| -> Option<(usize, usize)> {
            let text = text.strip_prefix(mark)?;
            let (start, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((start.parse().ok()?, count.parse().ok()?))
        };
        let ((old, old_left), (new, new_left)) = (side(old, '-')?, side(new, '+')?);
        Some(Self { old, old_left, new, new_left, under: under.trim().to_owned() })
    }

    fn left(&self) -> bool {
        self.old_left > 0 || self.new_left > 0
    }

    /// Whether a line belongs to this hunk.
    fn takes(&self, line: &str) -> bool {
        match line.as_bytes().first() {
            // Git leaves the space of an empty line, but programs that trim lines do not.
            Some(b' ') | None => self.old_left > 0 && self.new_left > 0,
            Some(b'-') => self.old_left > 0,
            Some(b'+') => self.new_left > 0,
            Some(b'\\') => true,
            Some(_) => false,
        }
    }

    /// A line of the hunk; none for a note such as `\ No newline at end of file`.
    fn line(&mut self, line: &str) -> Option<DiffLine> {
        let step = |number: &mut usize, left: &mut usize| {
            let this = *number;
            *number = this.saturating_add(1);
            *left -= 1;
            Some(this)
        };
        let (kind, text) = match line.as_bytes().first() {
            Some(b'\\') => return None,
            Some(b'-') => (LineKind::Removed, &line[1..]),
            Some(b'+') => (LineKind::Added, &line[1..]),
            _ => (LineKind::Same, line.get(1..).unwrap_or_default()),
        };
        let mut old = || step(&mut self.old, &mut self.old_left);
        let (old, new) = match kind {
            LineKind::Same => (old(), step(&mut self.new, &mut self.new_left)),
            LineKind::Removed => (old(), None),
            LineKind::Added => (None, step(&mut self.new, &mut self.new_left)),
        };
        Some(DiffLine::new(kind, old, new, text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::shown;
    use super::*;

    #[test]
    fn files_hunks_and_lines_are_read() {
        let text = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n\
            @@ -1,3 +1,3 @@ fn main() {\n same line\n-let a = 1;\n+let a = 2;\n \n\
            @@ -10 +10,2 @@\n x\n+y\n\\ No newline at end of file\n\
            diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n\
            @@ -1 +0,0 @@\n--- a/fake\n\
            diff --git \"a/\\303\\274 x\" \"b/\\303\\274 x\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/\\303\\274 x\"\t\n\
            @@ -0,0 +1 @@\n+++ b/fake\n\
            diff --git a/x.png b/x.png\nBinary files a/x.png and b/x.png differ\n";
        let files = patches(text);
        let all: Vec<(&str, String)> =
            files.iter().map(|file| (file.path.as_str(), shown(&file.diff))).collect();
        assert_eq!(
            all,
            [
                (
                    "src/a.rs",
                    "@fn main() {\n same line\n-let a = [1];\n+let a = [2];\n \n@\n x\n+y\n".into()
                ),
                ("gone", "@\n--- a/fake\n".into()),
                ("ü x", "@\n+++ b/fake\n".into()),
            ]
        );
        let last = &files[0].diff.hunks[1].lines[1];
        assert_eq!((last.old, last.new), (None, Some(11)));
        assert!(files.iter().all(|file| !file.cut));
    }

    #[test]
    fn what_was_cut_is_known() {
        let text = "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n[agentd: cut, lines of this file left out: 8]\n";
        assert!(patches(text)[0].cut);
        assert_eq!(patches("@@ -1 +1 @@\n-a\n+b\n"), []);
        assert_eq!(
            patches("+++ b/x\n@@ nonsense\n"),
            [FilePatch { path: "x".into(), ..FilePatch::default() }]
        );
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "([-+ @\\\\a\"0-9,/]{0,9}\n){0,20}") {
            patches(&text);
        }

        /// What one file holds never becomes another file.
        #[test]
        fn content_stays_content(lines in proptest::collection::vec("[-+ @ab/]{0,8}", 1..8)) {
            let content: String = lines.iter().map(|line| format!("+{line}\n")).collect();
            let text = format!("--- /dev/null\n+++ b/x\n@@ -0,0 +1,{} @@\n{content}", lines.len());
            let files = patches(&text);
            prop_assert_eq!(files.len(), 1);
            prop_assert_eq!(files[0].diff.added, lines.len());
        }
    }
}
