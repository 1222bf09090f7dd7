//! The block that `agentd init` keeps in CLAUDE.md, AGENTS.md and GEMINI.md, between two comments.
//! Everything outside of it is the user's.

use std::ops::Range;

/// How its first line begins.
const START: &str = "<!-- agentd:begin";
/// Its first line.
pub const BEGIN: &str =
    "<!-- agentd:begin (kept by `agentd init`; write outside of these lines) -->";
/// Its last line.
pub const END: &str = "<!-- agentd:end -->";

/// A block that begins and does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unclosed;

/// Where the block is: from its first line to the line break after its last.
pub fn find(text: &str) -> Option<Result<Range<usize>, Unclosed>> {
    let start = text.find(START)?;
    let Some(end) = text[start..].find(END) else { return Some(Err(Unclosed)) };
    let end = start + end + END.len();
    let line_break =
        text[end..].starts_with("\r\n").then_some(2).or(text[end..].starts_with('\n').then_some(1));
    Some(Ok(start..end + line_break.unwrap_or(0)))
}

/// The text without the block.
pub fn without(text: &str) -> String {
    match find(text) {
        Some(Ok(block)) => [&text[..block.start], &text[block.end..]].concat(),
        Some(Err(Unclosed)) | None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_block_is_left_out() {
        for (text, rest) in [
            (
                "mine\n<!-- agentd:begin x -->\ntheirs\n<!-- agentd:end -->\nmine too\n",
                "mine\nmine too\n",
            ),
            ("<!-- agentd:begin -->\r\n<!-- agentd:end -->\r\n", ""),
            ("<!-- agentd:begin -->\nno end\n", "<!-- agentd:begin -->\nno end\n"),
            (
                "<!-- agentd:end -->\n<!-- agentd:begin -->",
                "<!-- agentd:end -->\n<!-- agentd:begin -->",
            ),
            ("", ""),
        ] {
            assert_eq!(without(text), rest);
        }
    }
}
