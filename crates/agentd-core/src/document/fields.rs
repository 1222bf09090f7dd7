//! Labelled values: `- **Severity**: high`, with further lines indented below.

use std::fmt::Write as _;

use crate::outline::lines;
use crate::span::{Span, word_in};
use crate::text::{Line, Prose, escape, unescape};

/// One labelled value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field<'t> {
    /// The label.
    pub(crate) name: &'t str,
    /// The whole field.
    pub(crate) span: Span,
    /// Everything behind the colon.
    pub(crate) value: Span,
    text: &'t str,
}

impl Field<'_> {
    pub(crate) fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.name.eq_ignore_ascii_case(name))
    }

    pub(crate) fn line(&self) -> Line {
        Line::new(self.value.of(self.text))
    }

    pub(crate) fn prose(&self) -> Prose {
        let mut out = String::new();
        for (i, (_, line, _)) in lines(self.value.of(self.text)).enumerate() {
            match i {
                0 => out.push_str(line.trim()),
                _ => {
                    out.push('\n');
                    out.push_str(line.strip_prefix("  ").unwrap_or_else(|| line.trim_start()));
                }
            }
        }
        Prose::new(&unescape(Prose::new(&out).as_str()))
    }
}

/// The label that a line starts with, and where its value begins in the line.
fn label(line: &str) -> Option<(&str, usize)> {
    let (bullet, rest) = match line.strip_prefix(['-', '*', '+']) {
        Some(rest) if rest.starts_with(' ') => (true, rest.trim_start()),
        _ => (false, line),
    };
    let offset = line.len() - rest.len();
    if let Some(bold) = rest.strip_prefix("**") {
        let (name, behind) = bold.split_once("**")?;
        let (name, colon) = match name.strip_suffix(':') {
            Some(name) => (name, 0),
            None => (name, usize::from(behind.starts_with(':'))),
        };
        let inside = bold.len() - behind.len() + 2;
        let has_colon = colon == 1 || bold[..inside - 4].ends_with(':');
        return has_colon.then_some((name.trim(), offset + inside + colon));
    }
    if bullet {
        let (name, _) = rest.split_once(':')?;
        let plain =
            name.len() <= 30 && name.chars().all(|c| c.is_alphanumeric() || c == ' ' || c == '_');
        return plain.then_some((name.trim(), offset + name.len() + 1));
    }
    None
}

/// The fields inside a range, in order.
pub(crate) fn fields(text: &str, within: Span) -> Vec<Field<'_>> {
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut open = false;
    let mut blank = false;
    for (start, line, next) in lines(within.of(text)) {
        let (start, next) = (start + within.start, next + within.start);
        if line.trim().is_empty() {
            blank = true;
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        if !indented && let Some((name, value_at)) = label(line) {
            let value = Span::new(start + value_at, start + line.len());
            fields.push(Field { name, span: Span::new(start, next), value, text });
            open = true;
        } else if open
            && (indented || !blank)
            && let Some(last) = fields.last_mut()
        {
            last.value.end = start + line.len();
            last.span.end = next;
        } else {
            open = false;
        }
        blank = false;
    }
    fields
}

/// Where a value is behind one of these labels, in YAML or in a list: the value, or else the line of
/// the label.
pub(crate) fn value_in(text: &str, within: Span, labels: &[&str], value: &str) -> Option<Span> {
    let found = lines(within.of(text)).find_map(|(start, line, _)| {
        let bare = line.trim_start_matches([' ', '\t', '-', '*', '+']);
        let rest = labels.iter().find_map(|label| {
            let own = bare.get(..label.len())?;
            let rest = &bare[label.len()..];
            let is_label =
                own.eq_ignore_ascii_case(label) && rest.trim_start_matches('*').starts_with(':');
            is_label.then_some(rest)
        })?;
        let line_start = within.start + start + (line.len() - bare.len());
        Some((Span::new(line_start, within.start + start + line.len()), rest.len()))
    });
    let (line, rest) = found?;
    Some(word_in(text, Span::new(line.end - rest, within.end), value).unwrap_or(line))
}

/// Writes a one-line field.
pub(crate) fn push_line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "- **{name}**: {value}");
}

/// Writes a field of any number of lines.
pub(crate) fn push_prose(out: &mut String, name: &str, value: &Prose) {
    let escaped = escape(value.as_str());
    let simple = !escaped.contains('\n')
        && !escaped.starts_with(|c: char| c.is_whitespace() || "\\`~".contains(c));
    if simple {
        push_line(out, name, escaped);
        return;
    }
    let _ = writeln!(out, "- **{name}**:");
    for line in escaped.split('\n') {
        if line.is_empty() {
            out.push('\n');
        } else {
            let _ = writeln!(out, "  {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_are_read_in_the_forms_that_people_write() {
        let text = "- **Severity**: High\n* **Spec Reference:** a\n**Priority**: low\n- Depends: 1.1, 1.2\nx\n\nnot this\n- **bold** text\n";
        let read: Vec<_> = fields(text, Span::new(0, text.len()))
            .iter()
            .map(|f| (f.name, f.line().to_string()))
            .collect();
        let expected = [
            ("Severity", "High"),
            ("Spec Reference", "a"),
            ("Priority", "low"),
            ("Depends", "1.1, 1.2 x"),
        ];
        assert_eq!(read, expected.map(|(n, v)| (n, v.to_owned())));
    }

    proptest! {
        #[test]
        fn prose_fields_come_back(a in "(\\PC|\n|```|- \\*\\*x\\*\\*: |#){0,20}", b in "(\\PC|\n|```|<!--){0,20}") {
            let (a, b) = (Prose::new(&a), Prose::new(&b));
            let mut text = String::new();
            push_prose(&mut text, "A", &a);
            push_prose(&mut text, "B", &b);
            let read = fields(&text, Span::new(0, text.len()));
            prop_assert_eq!(read.len(), 2);
            prop_assert_eq!(read[0].prose(), a);
            prop_assert_eq!(read[1].prose(), b);
        }
    }
}
