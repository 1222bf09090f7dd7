//! The blocks of a page, and how what they show is compared with what is.

use std::fs;
use std::path::Path;

/// A page with all its fenced blocks.
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
}

/// A fenced block.
pub(crate) struct Block {
    /// The line of its fence.
    pub(crate) line: usize,
    pub(crate) language: String,
    attributes: Vec<String>,
    pub(crate) text: String,
}

/// A command, and the output that the page shows for it, if any.
pub(crate) struct Shown {
    pub(crate) line: String,
    pub(crate) output: Vec<String>,
}

impl Page {
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let blocks = blocks(&text);
        Self { name, text, blocks }
    }

    /// Whether a block begins in that place.
    pub(crate) fn uses(&self, place: &str) -> bool {
        self.blocks.iter().any(|block| block.value("in") == Some(place))
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, Block)> = None;
    for (number, line) in text.lines().enumerate() {
        let fence: String = line.chars().take_while(|c| *c == '`').collect();
        match &mut open {
            Some((opened, _)) if line == opened => blocks.extend(open.take().map(|(_, b)| b)),
            Some((_, block)) => block.text.push_str(&format!("{line}\n")),
            None if fence.len() >= 3 => {
                let mut words = line[fence.len()..].split_whitespace().map(str::to_owned);
                let block = Block {
                    line: number + 1,
                    language: words.next().unwrap_or_default(),
                    attributes: words.collect(),
                    text: String::new(),
                };
                open = Some((fence, block));
            }
            None => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

impl Block {
    pub(crate) fn has(&self, attribute: &str) -> bool {
        self.attributes.iter().any(|have| have == attribute)
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find_map(|have| have.strip_prefix(name)?.strip_prefix('='))
    }

    pub(crate) fn commands(&self) -> Vec<Shown> {
        let mut commands: Vec<Shown> = Vec::new();
        for line in self.text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                commands.push(Shown { line: command.to_owned(), output: Vec::new() });
            } else if let Some(command) = commands.last_mut() {
                command.output.push(line.to_owned());
            } else {
                panic!("{line:?} stands before the first command");
            }
        }
        commands
    }
}

/// Why the output is not as it is shown; nothing is shown where anything goes.
pub(crate) fn differs(shown: &[String], output: &str) -> Option<String> {
    if shown.is_empty() {
        return None;
    }
    let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
    if fits(shown, &lines) {
        return None;
    }
    Some(format!("is not what the page shows:\n{}", shown.join("\n")))
}

fn fits(shown: &[String], lines: &[&str]) -> bool {
    match (shown, lines) {
        ([], lines) => lines.iter().all(|line| line.is_empty()),
        ([any, rest @ ..], _) if any.trim() == "…" => {
            (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..]))
        }
        ([first, rest @ ..], [line, more @ ..]) => line_fits(first, line) && fits(rest, more),
        (_, []) => false,
    }
}

/// `…` matches anything, and a date matches any date.
fn line_fits(shown: &str, line: &str) -> bool {
    let (shown, line) = (without_days(shown.trim_end()), without_days(line));
    let pieces: Vec<&str> = shown.split('…').map(str::trim_end).collect();
    let [first, rest @ ..] = pieces.as_slice() else { return false };
    let Some(mut left) = line.strip_prefix(first) else { return false };
    for piece in rest {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.is_empty() || rest.last().is_some_and(|last| last.is_empty())
}

fn without_days(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let day = rest.get(..10).filter(|day| {
            day.chars().enumerate().all(|(at, c)| match at {
                4 | 7 => c == '-',
                _ => c.is_ascii_digit(),
            })
        });
        let taken = if day.is_some() { 10 } else { c.len_utf8() };
        out.push_str(if day.is_some() { "DAY" } else { &rest[..taken] });
        rest = &rest[taken..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn output_is_compared_line_by_line() {
        let output = "one\nin 2026-11-16\nthree and more\n";
        assert_eq!(differs(&shown(&["one", "in 2020-01-01", "three …"]), output), None);
        assert_eq!(differs(&shown(&["…", "three and more"]), output), None);
        assert_eq!(differs(&shown(&["one", "…"]), output), None);
        assert!(differs(&shown(&["one"]), output).is_some());
        assert!(differs(&shown(&["…", "three"]), output).is_some());
        assert!(differs(&shown(&["three …", "…"]), output).is_some());
    }

    #[test]
    fn blocks_have_words_behind_their_language() {
        let text = "# T\n\n```console in=planned exit=1\n$ a\nb\n$ c\n```\n````markdown\n```yaml\n```\n````\n";
        let blocks = blocks(text);
        assert_eq!(blocks.len(), 2);
        assert_eq!((blocks[0].value("in"), blocks[0].value("exit")), (Some("planned"), Some("1")));
        let commands = blocks[0].commands();
        assert_eq!((commands[0].line.as_str(), commands[0].output.len()), ("a", 1));
        assert_eq!(blocks[1].text, "```yaml\n```\n");
    }
}
