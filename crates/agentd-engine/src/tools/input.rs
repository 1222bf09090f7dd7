//! The shapes in which tools take text, lists and numbers. Whatever has been
//! read into one of them is bounded and, where that matters, not empty; the
//! limits are the ones that the published schemas name.

use std::fmt;
use std::marker::PhantomData;

use agentd_core::diagnostic::Severity;
use agentd_core::ids::{RequirementId, SpecRef};
use agentd_core::rel_path::RelPath;
use agentd_core::text::{Line, Prose, counted, excerpt};
use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::outcome::{ActionError, Refusal};

/// The largest document that a tool writes, in bytes.
pub(crate) const MAX_DOCUMENT: usize = 1024 * 1024;

/// The most characters of a title or name.
pub const TITLE: usize = 200;
/// The most characters of a sentence or two: a bullet, a step of a scenario.
pub const SENTENCE: usize = 2_000;
/// The most characters of a text of several paragraphs.
pub const TEXT: usize = 20_000;

/// Reads the arguments of a tool. An error names the field: `tasks[2].layer: …`.
pub fn read<T: DeserializeOwned>(
    arguments: serde_json::Map<String, serde_json::Value>,
) -> Result<T, ActionError> {
    let value = serde_json::Value::Object(arguments);
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let message = error.into_inner().to_string();
        let message = if path == "." { message } else { format!("`{path}`: {message}") };
        Refusal::new(format!("The arguments do not fit the tool. {message}"))
            .hint("Correct that field and call the tool again; nothing was written.")
            .into()
    })
}

fn bounded<E: Error>(text: String, max: usize) -> Result<String, E> {
    // A text of n bytes has at most n characters, so most texts need no counting.
    if text.len() > max {
        let count = text.chars().count();
        if count > max {
            return Err(E::custom(format_args!(
                "the text is {count} characters long; at most {max} are allowed"
            )));
        }
    }
    Ok(text)
}

/// One line of text, not blank, of at most `MAX` characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShortText<const MAX: usize>(pub Line);

impl<'de, const MAX: usize> Deserialize<'de> for ShortText<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = Line::new(&bounded::<D::Error>(String::deserialize(deserializer)?, MAX)?);
        if line.is_empty() {
            return Err(D::Error::custom("the text is empty"));
        }
        Ok(Self(line))
    }
}

/// Text of any number of lines, not blank, of at most `MAX` characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongText<const MAX: usize>(pub Prose);

impl<'de, const MAX: usize> Deserialize<'de> for LongText<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let prose = Prose::new(&bounded::<D::Error>(String::deserialize(deserializer)?, MAX)?);
        if prose.is_empty() {
            return Err(D::Error::custom("the text is empty"));
        }
        Ok(Self(prose))
    }
}

/// Text exactly as it was sent, of at most `MAX` characters; it may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verbatim<const MAX: usize>(pub String);

impl<'de, const MAX: usize> Deserialize<'de> for Verbatim<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bounded(String::deserialize(deserializer)?, MAX).map(Self)
    }
}

/// An optional line: missing, `null` and blank mean the same.
pub(super) fn optional_line<'de, D: Deserializer<'de>, const MAX: usize>(
    deserializer: D,
) -> Result<Option<ShortText<MAX>>, D::Error> {
    let text = Option::<Verbatim<MAX>>::deserialize(deserializer)?;
    let line = text.map(|text| Line::new(&text.0)).filter(|line| !line.is_empty());
    Ok(line.map(ShortText))
}

/// Optional text: missing, `null` and blank mean the same.
pub(super) fn optional_text<'de, D: Deserializer<'de>, const MAX: usize>(
    deserializer: D,
) -> Result<Option<LongText<MAX>>, D::Error> {
    let text = Option::<Verbatim<MAX>>::deserialize(deserializer)?;
    let prose = text.map(|text| Prose::new(&text.0)).filter(|prose| !prose.is_empty());
    Ok(prose.map(LongText))
}

/// An optional value that may also be `null`.
pub(super) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// A list of at least `MIN` and at most `MAX` items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T, const MIN: usize, const MAX: usize> Default for List<T, MIN, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MIN: usize, const MAX: usize> Deserialize<'de>
    for List<T, MIN, MAX>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T, const MIN: usize, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MIN: usize, const MAX: usize> Visitor<'de>
            for Items<T, MIN, MAX>
        {
            type Value = Vec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of {MIN} to {MAX} items")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    if items.len() == MAX {
                        return Err(A::Error::custom(format_args!(
                            "the list is too long; at most {MAX} items are allowed"
                        )));
                    }
                    items.push(item);
                }
                if items.len() < MIN {
                    return Err(A::Error::custom(format_args!(
                        "the list has {}; the minimum is {MIN}",
                        counted(items.len(), "item")
                    )));
                }
                Ok(items)
            }
        }
        deserializer.deserialize_seq(Items::<T, MIN, MAX>(PhantomData)).map(Self)
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number<const MIN: u32, const MAX: u32>(pub u32);

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Number<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        match u32::try_from(number) {
            Ok(n) if (MIN..=MAX).contains(&n) => Ok(Self(n)),
            _ => Err(D::Error::custom(format_args!("{number} is not between {MIN} and {MAX}"))),
        }
    }
}

/// A path inside the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(pub RelPath);

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        RelPath::new(&text).map(Self).map_err(D::Error::custom)
    }
}

/// How much an issue weighs; the word may be written in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeverityInput(pub Severity);

impl<'de> Deserialize<'de> for SeverityInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Severity::from_name(&text).map(Self).ok_or_else(|| {
            let shown = excerpt(&text, 40);
            D::Error::custom(format_args!("`{shown}` is not a severity; it is high, medium or low"))
        })
    }
}

/// The id of a requirement, exactly in the form in which it is written: `R1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requirement(pub RequirementId);

impl<'de> Deserialize<'de> for Requirement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.parse::<RequirementId>() {
            Ok(id) if id.to_string() == text => Ok(Self(id)),
            Ok(id) => Err(D::Error::custom(format_args!("write the requirement as `{id}`"))),
            Err(error) => Err(D::Error::custom(error)),
        }
    }
}

/// The id of an issue of an earlier review, exactly in the form in which it is written: `I1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IssueNumber(pub u32);

impl<'de> Deserialize<'de> for IssueNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text.strip_prefix('I').and_then(|digits| digits.parse::<u32>().ok());
        match number.filter(|number| *number > 0 && format!("I{number}") == text) {
            Some(number) => Ok(Self(number)),
            None => {
                let shown = excerpt(&text, 40);
                Err(D::Error::custom(format_args!(
                    "`{shown}` is not the id of an issue, as in `I1`"
                )))
            }
        }
    }
}

/// A reference from a task to the requirement that it implements: `auth-flow:R1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference(pub SpecRef);

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const FORM: &str = "write `<spec>:R<number>`, as in `auth-flow:R1`";
        let text = String::deserialize(deserializer)?;
        match text.parse::<SpecRef>() {
            Ok(found) if found.requirement.is_some() && found.to_string() == text => {
                Ok(Self(found))
            }
            Ok(_) => {
                Err(D::Error::custom(format_args!("the reference names no requirement; {FORM}")))
            }
            Err(error) => Err(D::Error::custom(format_args!("{error}; {FORM}"))),
        }
    }
}

/// An object or, in its short form, a text. Untagged enums would lose the name
/// of the field in errors.
pub(super) fn text_or_object<'de, D, T>(
    deserializer: D,
    expecting: &'static str,
    from_text: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Either<T, F>(&'static str, F, PhantomData<T>);
    impl<'de, T, F> Visitor<'de> for Either<T, F>
    where
        T: Deserialize<'de>,
        F: FnOnce(&str) -> Result<T, String>,
    {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            (self.1)(text).map_err(E::custom)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            PhantomData::<T>.deserialize(serde::de::value::MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(Either(expecting, from_text, PhantomData))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Sample {
        title: ShortText<5>,
        #[serde(default, deserialize_with = "optional_text")]
        note: Option<LongText<5>>,
        items: List<Number<1, 3>, 1, 2>,
    }

    fn error(value: serde_json::Value) -> String {
        let serde_json::Value::Object(map) = value else { panic!("an object") };
        read::<Sample>(map).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_field() {
        insta::assert_snapshot!(error(json!({"title": "123456", "items": [1]})), @"
        The arguments do not fit the tool. `title`: the text is 6 characters long; at most 5 are allowed
        Correct that field and call the tool again; nothing was written.
        ");
        insta::assert_snapshot!(error(json!({"title": " \n", "items": [1]})), @"
        The arguments do not fit the tool. `title`: the text is empty
        Correct that field and call the tool again; nothing was written.
        ");
        insta::assert_snapshot!(error(json!({"title": "a", "items": [1, 9]})), @"
        The arguments do not fit the tool. `items[1]`: 9 is not between 1 and 3
        Correct that field and call the tool again; nothing was written.
        ");
        insta::assert_snapshot!(error(json!({"title": "a", "items": []})), @"
        The arguments do not fit the tool. `items`: the list has 0 items; the minimum is 1
        Correct that field and call the tool again; nothing was written.
        ");
        insta::assert_snapshot!(error(json!({"title": "a", "items": [1, 1, 1]})), @"
        The arguments do not fit the tool. `items`: the list is too long; at most 2 items are allowed
        Correct that field and call the tool again; nothing was written.
        ");
        insta::assert_snapshot!(error(json!({"title": "a", "items": [1], "x": 1})), @"
        The arguments do not fit the tool. `x`: unknown field `x`, expected one of `title`, `note`, `items`
        Correct that field and call the tool again; nothing was written.
        ");
        insta::assert_snapshot!(error(json!({"title": "a"})), @"
        The arguments do not fit the tool. missing field `items`
        Correct that field and call the tool again; nothing was written.
        ");
    }

    #[test]
    fn characters_are_counted_and_blank_is_nothing() {
        let map = json!({"title": "ééééé", "note": " ", "items": [1]});
        let sample: Sample = read(map.as_object().unwrap().clone()).unwrap();
        assert_eq!(sample.title.0.as_str(), "ééééé");
        assert!(sample.note.is_none());
    }
}
