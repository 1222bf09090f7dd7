//! Reading YAML into types, with places for errors.

use serde::de::DeserializeOwned;

use crate::span::Span;
use crate::text::excerpt;

/// Reads YAML into a type; an error comes as a message and its place.
pub(crate) fn from_yaml<T: DeserializeOwned>(yaml: &str) -> Result<T, (String, Span)> {
    // A document has no use for more than a few aliases, and a text of many small
    // bombs must not cost what one large bomb may.
    let options = serde_saphyr::options! {
        with_snippet: false,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 1000 },
    };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|error| {
        let place = error.location().map_or(Span::at(0), |location| {
            let number = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok());
            let span = location.span();
            match (number(span.byte_offset()), number(span.byte_len())) {
                (Some(start), Some(len)) => {
                    Span::new(start.min(yaml.len()), (start + len).min(yaml.len()))
                }
                // Errors of syntax come with a line and a column only.
                _ => Span::at(offset_of(yaml, location.line(), location.column())),
            }
        });
        let text = error.without_snippet().to_string();
        // The place is reported beside the message, so the message need not repeat it.
        let message = text.lines().next().unwrap_or_default();
        let message = message.split(" at line ").next().unwrap_or_default();
        if message.starts_with("invalid u") {
            return (format!("`{}` is not a whole number", excerpt(place.of(yaml), 40)), place);
        }
        (message.replace(", set DuplicateKeyPolicy in Options if acceptable", ""), place)
    })
}

/// The place of a line and a column, both from 1, as YAML counts them.
fn offset_of(yaml: &str, line: u64, column: u64) -> usize {
    let (mut at, mut rest) = ((1, 1), yaml.char_indices().peekable());
    while let Some((offset, c)) = rest.next() {
        if at >= (line, column) {
            return offset;
        }
        let breaks = c == '\n' || (c == '\r' && rest.peek().is_none_or(|(_, c)| *c != '\n'));
        at = if breaks { (at.0 + 1, 1) } else { (at.0, at.1 + 1) };
    }
    yaml.len()
}
