//! The YAML at the top of a document: reading it into a type, and changing one
//! value in it without touching anything else.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::diagnostic::Diagnostic;
use crate::outline::{Outline, lines};
use crate::rules;
use crate::span::Span;
use crate::yaml::from_yaml;

/// Reads the frontmatter into a type. Whatever is wrong becomes a diagnostic,
/// and the default stands in.
pub(crate) fn read<T: DeserializeOwned + Default>(
    text: &str,
    outline: &Outline,
    diagnostics: &mut Vec<Diagnostic>,
) -> T {
    let Some(front) = outline.frontmatter else {
        return T::default();
    };
    if !front.closed {
        let span = Span::new(outline.body_start, outline.body_start + "---".len());
        diagnostics.push(rules::FRONTMATTER_UNCLOSED.at(span, "the frontmatter is never closed"));
        return T::default();
    }
    match from_yaml(front.content.of(text)) {
        Ok(value) => value,
        Err((message, span)) => {
            let span = span.shifted(front.content.start);
            diagnostics.push(rules::FRONTMATTER_INVALID.at(span, message));
            T::default()
        }
    }
}

/// Where the value of a key is, with all of its lines; all of the frontmatter if there is no such key.
pub(crate) fn value_of(text: &str, front: Span, key: &str) -> Span {
    let Some((found, own, block)) = find_key(text, front, 0, key) else { return front };
    let end = own.end.max(block.start + owned_block_len(block.of(text)));
    if own.start < end { Span::new(own.start, end) } else { found }
}

/// Why a value could not be patched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the frontmatter has no `{path}` that can be changed in place")]
pub struct PatchError {
    /// The dotted path that was wanted.
    pub path: String,
}

/// Sets `key` or `parent.key` in the frontmatter to a scalar, which must be
/// valid YAML as it is. Only that value's bytes change; a missing key is
/// added at the end of its parent.
pub fn set(text: &str, path: &str, value: &str) -> Result<String, PatchError> {
    let refused = || PatchError { path: path.to_owned() };
    let front = Outline::scan(text).frontmatter.filter(|f| f.closed).ok_or_else(refused)?;
    let newline = newline_of(text);
    let (parent, key) = match path.split_once('.') {
        Some((parent, key)) => (Some(parent), key),
        None => (None, path),
    };
    let mut scope = front.content;
    let mut indent = 0;
    if let Some(parent) = parent {
        let (_, parent_value, block) = find_key(text, scope, 0, parent).ok_or_else(refused)?;
        if !parent_value.of(text).trim().is_empty() {
            return Err(refused());
        }
        scope = block;
        indent = lines(block.of(text))
            .find(|(_, line, _)| !line.trim().is_empty())
            .map_or(2, |(_, line, _)| line.len() - line.trim_start().len());
    }
    let mut out = text.to_owned();
    match find_key(text, scope, indent, key) {
        Some((_, old, block)) if lines(block.of(text)).all(|(_, l, _)| l.trim().is_empty()) => {
            out.replace_range(old.range(), &format!("{}{value}", space_before(text, old)));
        }
        Some(_) => return Err(refused()),
        None => {
            out.insert_str(scope.end, &format!("{}{key}: {value}{newline}", " ".repeat(indent)));
        }
    }
    if only_changed(text, &out, parent.unwrap_or(key)) { Ok(out) } else { Err(refused()) }
}

/// Takes `key` with its value out of the frontmatter; a text without it stays as it is.
pub fn without(text: &str, key: &str) -> String {
    let Some(front) = Outline::scan(text).frontmatter.filter(|f| f.closed) else {
        return text.to_owned();
    };
    let Some((found, _, block)) = find_key(text, front.content, 0, key) else {
        return text.to_owned();
    };
    let end = block.start + owned_block_len(block.of(text));
    let out = format!("{}{}", &text[..found.start], &text[end..]);
    if only_changed(text, &out, key) { out } else { text.to_owned() }
}

/// A value that stands right behind its colon would be no value.
fn space_before(text: &str, value: Span) -> &'static str {
    if text[..value.start].ends_with(':') { " " } else { "" }
}

/// Whether the frontmatter still says what it said, but for one entry. YAML has
/// notations, such as `{a: 1}`, in which a line cannot be changed or added so.
fn only_changed(old: &str, new: &str, key: &str) -> bool {
    let entries = |text: &str| -> Option<BTreeMap<String, serde_json::Value>> {
        let front = Outline::scan(text).frontmatter?;
        let mut entries: BTreeMap<_, _> = from_yaml(front.content.of(text)).ok()?;
        entries.remove(key);
        Some(entries)
    };
    let says_nothing = Outline::scan(old).frontmatter.is_some_and(|front| {
        lines(front.content.of(old)).all(|(_, line, _)| is_blank_or_comment(line))
    });
    match entries(new) {
        Some(after) if says_nothing => after.is_empty(),
        after => after.is_some() && after == entries(old),
    }
}

fn is_blank_or_comment(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Lays the entries of another frontmatter over that of a text: an entry that is
/// there is replaced, a missing one added at the end, everything else stays.
pub(crate) fn lay_over(text: &str, entries: &str) -> String {
    let newline = newline_of(text);
    let Some(front) = Outline::scan(text).frontmatter.filter(|f| f.closed) else {
        return format!(
            "---{newline}{}---{newline}{newline}{text}",
            entries.replace('\n', newline)
        );
    };
    let mut content = front.content.of(text).to_owned();
    for (key, entry) in top_level_entries(entries) {
        let whole = Span::new(0, content.len());
        match find_key(&content, whole, 0, key) {
            Some((_, value, block)) => {
                let new_value = entry[key.len() + 1..].trim_start_matches(' ').trim_end();
                let one_line = !new_value.contains('\n') && block.of(&content).trim().is_empty();
                if one_line {
                    let entry = format!("{}{new_value}", space_before(&content, value));
                    content.replace_range(value.range(), &entry);
                } else {
                    let owned = owned_block_len(block.of(&content));
                    let (end, newline_behind) =
                        if owned > 0 { (block.start + owned, newline) } else { (value.end, "") };
                    let new_value = new_value.replace('\n', newline);
                    let bare = content[..value.start].ends_with(':')
                        && !new_value.starts_with(['\r', '\n']);
                    let space = if bare { " " } else { "" };
                    let entry = format!("{space}{new_value}{newline_behind}");
                    content.replace_range(value.start..end, &entry);
                }
            }
            None => content.push_str(&entry.replace('\n', newline)),
        }
    }
    format!("{}{content}{}", &text[..front.content.start], &text[front.content.end..])
}

/// How much of what follows a key belongs to its value: trailing blank lines and
/// comments at the left edge belong to their author.
fn owned_block_len(block: &str) -> usize {
    let mut len = 0;
    for (_, line, next) in lines(block) {
        if !line.trim().is_empty() && !line.starts_with('#') {
            len = next;
        }
    }
    len
}

/// The entries of a frontmatter that agentd wrote: key, and text with its line break.
fn top_level_entries(content: &str) -> Vec<(&str, &str)> {
    let starts: Vec<usize> = lines(content)
        .filter(|(_, line, _)| line.starts_with(|c: char| c.is_ascii_alphabetic()))
        .map(|(start, _, _)| start)
        .collect();
    let mut entries = Vec::new();
    for (i, &start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(content.len());
        if let Some((key, _)) = content[start..end].split_once(':') {
            entries.push((key, &content[start..end]));
        }
    }
    entries
}

/// The line end that a text uses.
pub fn newline_of(text: &str) -> &'static str {
    let first = memchr::memchr(b'\n', text.as_bytes());
    if first.is_some_and(|at| at > 0 && text.as_bytes()[at - 1] == b'\r') { "\r\n" } else { "\n" }
}

/// Finds a key at an indentation: the key's span, its value on the same line
/// (without a comment behind it), and the more deeply indented block below.
fn find_key(text: &str, scope: Span, indent: usize, key: &str) -> Option<(Span, Span, Span)> {
    let mut found: Option<(Span, Span, usize)> = None;
    for (start, line, next) in lines(scope.of(text)) {
        let depth = line.len() - line.trim_start_matches(' ').len();
        let start = start + scope.start;
        if let Some((key, value, block_start)) = found {
            let is_item = line[depth..].starts_with("- ") && depth == indent;
            if !line.trim().is_empty() && depth <= indent && !is_item {
                return Some((key, value, Span::new(block_start, start)));
            }
        } else if depth == indent
            && let Some(rest) = line[depth..].strip_prefix(key)
            && let Some(value) = rest.strip_prefix(':')
            && (value.is_empty() || value.starts_with([' ', '\t']))
        {
            let key_span = Span::new(start + depth, start + depth + key.len());
            let value_start = key_span.end + 1 + (value.len() - value.trim_start().len());
            let value = without_comment(value.trim_start());
            let value = Span::new(value_start, value_start + value.len());
            found = Some((key_span, value, next + scope.start));
        }
    }
    found.map(|(key, value, block_start)| (key, value, Span::new(block_start, scope.end)))
}

/// A scalar without the ` # comment` behind it.
fn without_comment(value: &str) -> &str {
    let bytes = value.as_bytes();
    let end = match bytes.first() {
        Some(b'"') => {
            let mut at = 1;
            while at < bytes.len() && bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at + 1
        }
        Some(b'\'') => {
            let mut at = 1;
            while at < bytes.len() && (bytes[at] != b'\'' || bytes.get(at + 1) == Some(&b'\'')) {
                at += if bytes[at] == b'\'' { 2 } else { 1 };
            }
            at + 1
        }
        _ => value.find(" #").unwrap_or(value.len()),
    };
    value.get(..end).unwrap_or(value).trim_end()
}

/// A text as a YAML scalar on one line, quoted where it has to be.
pub fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " -_./".contains(c))
        && !text.ends_with(' ')
        && text.contains(|c: char| c.is_ascii_lowercase())
        && !["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word));
    if plain { text.to_owned() } else { quoted(text) }
}

/// A text as a double-quoted YAML scalar.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{85}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c if c.is_control() || (0xfff0..=0xffff).contains(&u32::from(c)) => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "---\n# mine\nid: a # why\nsummary:\n  total: 3   # all\n  completed: 1\nlist: [1]\n---\nbody\n";

    #[test]
    fn a_patch_changes_only_its_value() {
        let text = set(TEXT, "summary.completed", "2").unwrap();
        assert_eq!(text, TEXT.replace("completed: 1", "completed: 2"));
        let text = set(TEXT, "summary.total", "4").unwrap();
        assert_eq!(text, TEXT.replace("total: 3 ", "total: 4 "));
        let text = set(TEXT, "id", "b").unwrap();
        assert_eq!(text, TEXT.replace("id: a #", "id: b #"));
    }

    #[test]
    fn missing_keys_are_added_and_others_refused() {
        let text = set(TEXT, "version", "2").unwrap();
        assert_eq!(text, TEXT.replace("list: [1]\n", "list: [1]\nversion: 2\n"));
        let text = set(TEXT, "summary.open", "2").unwrap();
        assert_eq!(text, TEXT.replace("completed: 1\n", "completed: 1\n  open: 2\n"));
        assert!(set(TEXT, "nothing.here", "2").is_err());
        assert!(set(TEXT, "list.x", "2").is_err(), "a flow value is not patched");
        assert!(set(TEXT, "summary", "2").is_err(), "a block is not replaced by a scalar");
        assert!(set("no frontmatter\n", "id", "b").is_err());
        assert!(set("---\n{id: a}\n---\n", "id", "b").is_err(), "no line can be added to this");
    }

    #[test]
    fn empty_and_quoted_values_are_replaced_whole() {
        let text = "---\na:\nb: 'it''s' # x\nc: \n---\n";
        assert_eq!(set(text, "a", "1").unwrap(), text.replace("a:\n", "a: 1\n"));
        assert_eq!(set(text, "b", "1").unwrap(), text.replace("'it''s'", "1"));
        assert_eq!(set(text, "c", "1").unwrap(), text.replace("c: \n", "c: 1\n"));
        assert_eq!(lay_over(text, "a: 1\nc: 2\n"), "---\na: 1\nb: 'it''s' # x\nc: 2\n---\n");
    }

    #[test]
    fn an_entry_is_taken_out_whole() {
        let text = "---\r\nid: a\r\nrenames:\r\n  R1: \"x\"\r\n# mine\r\nb: 1\r\n---\r\nbody\r\n";
        let expected = "---\r\nid: a\r\n# mine\r\nb: 1\r\n---\r\nbody\r\n";
        assert_eq!(without(text, "renames"), expected);
        assert_eq!(without(TEXT, "list"), TEXT.replace("list: [1]\n", ""));
        assert_eq!(without(TEXT, "nothing"), TEXT);
        assert_eq!(without("---\n{a: 1}\n---\n", "a"), "---\n{a: 1}\n---\n");
    }

    #[test]
    fn errors_say_where() {
        let error = from_yaml::<BTreeMap<String, u32>>("a: 1\nb: x\n").unwrap_err();
        assert_eq!(error, ("`x` is not a whole number".to_owned(), Span::new(8, 9)));
    }

    #[test]
    fn bombs_are_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..12 {
            let p = format!("*a{}", i - 1);
            bomb += &format!("a{i}: &a{i} [{p}, {p}, {p}, {p}, {p}, {p}, {p}, {p}, {p}, {p}]\n");
        }
        assert!(from_yaml::<BTreeMap<String, serde_json::Value>>(&bomb).is_err());
        let deep = format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(from_yaml::<BTreeMap<String, serde_json::Value>>(&deep).is_err());
    }

    proptest! {
        #[test]
        fn scalars_come_back(text in any::<String>()) {
            for form in [scalar(&text), quoted(&text)] {
                let read: BTreeMap<String, String> = from_yaml(&format!("k: {form}\n")).unwrap();
                prop_assert_eq!(&read["k"], &text);
            }
        }
    }
}
