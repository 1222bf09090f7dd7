//! Pieces of long texts, such as prompts, to compare.

/// The lines with these words in them.
pub fn lines_with(text: &str, words: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(words)).collect();
    lines.join("\n")
}

/// The lines from the first one that begins with these words, until the next empty line.
#[track_caller]
pub fn paragraph(text: &str, begin: &str) -> String {
    let lines = text.lines().skip_while(|line| !line.starts_with(begin));
    let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    assert!(!lines.is_empty(), "no line begins with {begin:?}: {text}");
    lines.join("\n")
}
