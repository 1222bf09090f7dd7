//! Reading YAML into types.
//!
//! The library does it, with all of YAML and with places for its errors. In
//! front of it stands a reader for the plain block style that agentd itself
//! writes, which is most of what there is to read: it is ten times as fast, and
//! validating a whole project is mostly reading YAML. It gives up on anything
//! out of the ordinary, and on every error, and then the library decides. A
//! property test holds the two together: whatever the quick reader accepts, the
//! library reads as the same value.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use crate::span::Span;

/// Reads YAML into a type; an error comes as a message and its place.
pub(crate) fn from_yaml<T: DeserializeOwned>(yaml: &str) -> Result<T, (String, Span)> {
    match quick(yaml) {
        Some(value) => Ok(value),
        None => by_the_library(yaml),
    }
}

fn by_the_library<T: DeserializeOwned>(yaml: &str) -> Result<T, (String, Span)> {
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

/// Reads plain block style, or gives up.
fn quick<T: DeserializeOwned>(yaml: &str) -> Option<T> {
    let mut reader = Reader { lines: plain_lines(yaml)?, at: 0, depth: 0 };
    if reader.lines.first().is_none_or(|line| line.indent != 0) {
        return None;
    }
    let node = reader.map(0, None)?;
    if reader.at != reader.lines.len() {
        return None;
    }
    T::deserialize(node).ok()
}

/// A value of plain YAML.
enum Node<'t> {
    /// A scalar without quotes.
    Plain(&'t str),
    /// A scalar in quotes, without escapes.
    Quoted(&'t str),
    List(Vec<Node<'t>>),
    Map(Vec<(&'t str, Node<'t>)>),
}

/// A line that says something.
struct PlainLine<'t> {
    indent: usize,
    text: &'t str,
}

fn plain_lines(yaml: &str) -> Option<Vec<PlainLine<'_>>> {
    let mut lines = Vec::with_capacity(16);
    for line in yaml.split('\n') {
        let text = line.trim_start_matches(' ');
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        // Control characters, among them tabs and carriage returns, are for the library.
        if text.bytes().any(|b| b < b' ' || b == 0x7f) {
            return None;
        }
        lines.push(PlainLine { indent: line.len() - text.len(), text: text.trim_end_matches(' ') });
    }
    Some(lines)
}

struct Reader<'t> {
    lines: Vec<PlainLine<'t>>,
    at: usize,
    depth: usize,
}

/// More keys are out of the ordinary, and each is compared with all others.
const MAX_KEYS: usize = 64;

/// Deeper nesting is out of the ordinary, and recursion has to end somewhere.
const MAX_DEPTH: usize = 16;

impl<'t> Reader<'t> {
    /// Reads the entries at an indentation. `first` is an entry that stands behind a `- `.
    fn map(&mut self, indent: usize, first: Option<&'t str>) -> Option<Node<'t>> {
        let mut entries: Vec<(&'t str, Node<'t>)> = Vec::new();
        let mut next = first;
        loop {
            let text = match next.take() {
                Some(text) => text,
                None => match self.lines.get(self.at) {
                    Some(line) if line.indent == indent && !is_item(line.text) => line.text,
                    Some(line) if line.indent > indent => return None,
                    _ => break,
                },
            };
            self.at += 1;
            let (key, value) = text.split_once(':')?;
            let named = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
            // Words that YAML reads as something else than texts are no keys for us.
            if !named || !key.starts_with(|c: char| c.is_ascii_alphabetic()) || is_special(key) {
                return None;
            }
            if entries.len() == MAX_KEYS || entries.iter().any(|(there, _)| *there == key) {
                return None;
            }
            let value = if value.is_empty() {
                self.block(indent)?
            } else {
                let value = scalar_or_list(value.strip_prefix(' ')?.trim_start_matches(' '))?;
                // A deeper line would continue this value.
                if self.lines.get(self.at).is_some_and(|line| line.indent > indent) {
                    return None;
                }
                value
            };
            entries.push((key, value));
        }
        Some(Node::Map(entries))
    }

    /// Reads what stands below a key: a map further in, or a list there or at the key's own place.
    fn block(&mut self, indent: usize) -> Option<Node<'t>> {
        let line = self.lines.get(self.at)?;
        let (inner, item) = (line.indent, is_item(line.text));
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let node = match (item, inner) {
            (true, inner) if inner >= indent => self.list(inner),
            (false, inner) if inner > indent => self.map(inner, None),
            _ => None,
        };
        self.depth -= 1;
        node
    }

    fn list(&mut self, indent: usize) -> Option<Node<'t>> {
        let mut items = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            if line.indent != indent || !is_item(line.text) {
                if line.indent > indent {
                    return None;
                }
                break;
            }
            let text = line.text.strip_prefix("- ")?;
            let inner = text.trim_start_matches(' ');
            let depth = indent + line.text.len() - inner.len();
            if inner.starts_with("- ") || inner == "-" {
                return None;
            }
            let is_entry = inner.split_once(':').is_some_and(|(key, rest)| {
                !key.starts_with(['"', '\'', '[', '{'])
                    && (rest.is_empty() || rest.starts_with(' '))
            });
            if is_entry {
                items.push(self.map(depth, Some(inner))?);
            } else {
                self.at += 1;
                items.push(scalar_or_list(inner)?);
                if self.lines.get(self.at).is_some_and(|line| line.indent > indent) {
                    return None;
                }
            }
        }
        Some(Node::List(items))
    }
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

fn scalar_or_list(text: &str) -> Option<Node<'_>> {
    let Some(inner) = text.strip_prefix('[') else { return scalar(text) };
    let inner = inner.strip_suffix(']')?.trim_matches(' ');
    if inner.is_empty() {
        return Some(Node::List(Vec::new()));
    }
    let items = inner.split(',').map(|item| {
        let item = item.trim_matches(' ');
        // Inside brackets more characters mean something.
        if item.contains(['[', ']', '{', '}', '#', ':']) && !item.starts_with('"') {
            return None;
        }
        scalar(item)
    });
    items.collect::<Option<Vec<_>>>().map(Node::List)
}

fn scalar(text: &str) -> Option<Node<'_>> {
    if let Some(inner) = text.strip_prefix('"') {
        let inner = inner.strip_suffix('"')?;
        return (!inner.contains(['"', '\\'])).then_some(Node::Quoted(inner));
    }
    let first = text.bytes().next()?;
    let safe_start =
        first.is_ascii_alphanumeric() || first == b'_' || first == b'/' || first == b'.';
    let safe = safe_start
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':')
        && text.is_ascii();
    // The library refuses these even where nobody reads them.
    let number = !(text.eq_ignore_ascii_case(".inf") || text.eq_ignore_ascii_case(".nan"));
    (safe && number).then_some(Node::Plain(text))
}

/// Words that mean a truth value or nothing in one version of YAML or another.
fn is_special(text: &str) -> bool {
    const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// The quick reader never explains: the library does.
#[derive(Debug)]
struct GiveUp;

impl fmt::Display for GiveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("left to the library")
    }
}

impl std::error::Error for GiveUp {}

impl de::Error for GiveUp {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'t> Node<'t> {
    /// A whole number in plain decimal digits.
    fn number<T: std::str::FromStr>(&self) -> Result<T, GiveUp> {
        let Self::Plain(text) = self else { return Err(GiveUp) };
        let decimal =
            text.bytes().all(|b| b.is_ascii_digit()) && (*text == "0" || !text.starts_with('0'));
        if decimal { text.parse().map_err(|_| GiveUp) } else { Err(GiveUp) }
    }

    fn float(&self) -> Result<f64, GiveUp> {
        let Self::Plain(text) = self else { return Err(GiveUp) };
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let decimal = match text.split_once('.') {
            Some((whole, part)) => digits(whole) && digits(part),
            None => digits(text) && (*text == "0" || !text.starts_with('0')),
        };
        if decimal { text.parse().map_err(|_| GiveUp) } else { Err(GiveUp) }
    }

    fn text(&self) -> Result<&'t str, GiveUp> {
        match self {
            Self::Quoted(text) => Ok(text),
            Self::Plain(text) if !is_special(text) => Ok(text),
            _ => Err(GiveUp),
        }
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
                visitor.$visit(self.number()?)
            }
        )*
    };
}

macro_rules! left_to_the_library {
    ($($method:ident)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, GiveUp> {
                Err(GiveUp)
            }
        )*
    };
}

impl<'de> de::Deserializer<'de> for Node<'de> {
    type Error = GiveUp;

    /// For types that look before they decide: only what can be nothing but a text.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        match self {
            Self::Quoted(text) => visitor.visit_str(text),
            Self::Plain(text)
                if text.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_special(text) =>
            {
                visitor.visit_str(text)
            }
            Self::Plain(_) => Err(GiveUp),
            Self::List(_) => self.deserialize_seq(visitor),
            Self::Map(_) => self.deserialize_map(visitor),
        }
    }

    numbers! {
        deserialize_u8 visit_u8 deserialize_u16 visit_u16 deserialize_u32 visit_u32 deserialize_u64 visit_u64
        deserialize_i8 visit_i8 deserialize_i16 visit_i16 deserialize_i32 visit_i32 deserialize_i64 visit_i64
    }

    left_to_the_library! {
        deserialize_f32 deserialize_char deserialize_bytes deserialize_byte_buf deserialize_unit
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        visitor.visit_f64(self.float()?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        match self {
            Self::Plain("true") => visitor.visit_bool(true),
            Self::Plain("false") => visitor.visit_bool(false),
            _ => Err(GiveUp),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        match self {
            Self::Plain("null") => visitor.visit_none(),
            Self::Plain(text) if text.eq_ignore_ascii_case("null") => Err(GiveUp),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: V,
    ) -> Result<V::Value, GiveUp> {
        Err(GiveUp)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, GiveUp> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        match self {
            Self::List(items) => visitor.visit_seq(Items(items.into_iter())),
            _ => Err(GiveUp),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, GiveUp> {
        Err(GiveUp)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, GiveUp> {
        Err(GiveUp)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        match self {
            Self::Map(entries) => {
                visitor.visit_map(Entries { rest: entries.into_iter(), value: None })
            }
            _ => Err(GiveUp),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GiveUp> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, GiveUp> {
        let name: StrDeserializer<'_, GiveUp> = self.text()?.into_deserializer();
        visitor.visit_enum(name)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GiveUp> {
        visitor.visit_unit()
    }
}

struct Items<'t>(std::vec::IntoIter<Node<'t>>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = GiveUp;

    fn next_element_seed<T: de::DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, GiveUp> {
        self.0.next().map(|node| seed.deserialize(node)).transpose()
    }
}

struct Entries<'t> {
    rest: std::vec::IntoIter<(&'t str, Node<'t>)>,
    value: Option<Node<'t>>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = GiveUp;

    fn next_key_seed<K: de::DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, GiveUp> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(Node::Quoted(key)).map(Some)
    }

    fn next_value_seed<V: de::DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, GiveUp> {
        seed.deserialize(self.value.take().ok_or(GiveUp)?)
    }
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
