//! The affected specs of a proposal, in the forms in which people list them.
//!
//! Backticks, arrays, plain names with commas, lists with bullets, numbers or checkboxes: what is
//! around a name is stripped, then the text is split (C17). What does not look like a name is
//! returned as it is, so that it becomes a finding instead of vanishing.

use super::proposal::{is_none, list_item};
use crate::outline::lines;
use crate::text::Line;

/// The names in a list, in order; none and n/a are dropped.
pub(super) fn names(text: &str) -> Vec<String> {
    let mut items: Vec<Item> = Vec::new();
    for (number, (_, line, _)) in lines(text).enumerate() {
        let bare = line.trim();
        // A list may be set in below its label; its deeper levels explain its items.
        let indent = line.len() - line.trim_start().len();
        match (list_item(bare), items.last_mut()) {
            _ if bare.is_empty() => {}
            (Some(_), Some(Item { bullet: Some(outer), text })) if indent > *outer => {
                text.push_str(": ");
                text.push_str(bare);
            }
            (Some(item), _) => {
                items.push(Item { bullet: Some(indent), text: item.to_owned() });
            }
            (None, Some(last)) if number > 0 && indent > 0 && last.bullet.is_some() => {
                // A wrapped list continues after a comma; anything else explains the item.
                last.text.push_str(if last.text.ends_with(',') { " " } else { ": " });
                last.text.push_str(bare);
            }
            (None, _) => items.push(Item { bullet: None, text: bare.to_owned() }),
        }
    }
    let has_bullets = items.iter().any(|item| item.bullet.is_some());
    let mut all = Vec::new();
    for Item { bullet, text } in items {
        let found = if bullet.is_some() { of_bullet(&text) } else { of_line(&text) };
        // Sentences around a list are no part of it.
        if bullet.is_some() || !has_bullets || found.iter().all(|name| is_name(name)) {
            all.extend(found);
        }
    }
    all
}

struct Item {
    /// How far its mark is set in, if it has one.
    bullet: Option<usize>,
    text: String,
}

/// One line of names: `` `a`, b `` or `["a", "b"]`, each with an explanation or without.
fn of_line(text: &str) -> Vec<String> {
    let plain = without_parentheses(text);
    let parts =
        plain.split([',', ';', '、', '，', '；']).map(|part| name(before_explanation(part)));
    parts.flat_map(|part| split_by_and(&part)).filter(|part| !is_none(part)).collect()
}

/// What an item names, most often one spec, and may explain: `` - `auth-flow`: new ``,
/// `- [ ] auth-flow - new`, `- auth-flow is new`.
fn of_bullet(text: &str) -> Vec<String> {
    let text =
        ["[ ] ", "[x] ", "[X] "].iter().find_map(|mark| text.strip_prefix(mark)).unwrap_or(text);
    let plain = without_parentheses(text);
    let mut names = of_line(before_explanation(&plain));
    if let Some(first) = names.first_mut()
        && let Some((name, _)) = first.split_once(' ')
        && is_name(name)
    {
        *first = name.to_owned();
    }
    names
}

/// The text in front of an explanation: a colon, or a dash between spaces.
fn before_explanation(text: &str) -> &str {
    let ends = [": ", " - ", " – ", " — ", "：", " → ", " -> "];
    let end = ends.iter().filter_map(|mark| text.find(mark)).min();
    let text = &text[..end.unwrap_or(text.len())];
    text.trim_end().trim_end_matches(':')
}

/// The text without what is in parentheses; one that is never closed stays.
fn without_parentheses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find(['(', '（']) {
        let Some(close) = rest[open..].find([')', '）']) else { break };
        out.push_str(&rest[..open]);
        rest = rest[open + close..].trim_start_matches([')', '）']);
    }
    out.push_str(rest);
    out
}

/// A name without what people put around it.
fn name(text: &str) -> String {
    let stripped: String = text.chars().filter(|c| !"[]`\"'*“”‘’".contains(*c)).collect();
    let line = Line::new(&stripped);
    let bare = line.as_str().trim_matches(['_', ' ']).trim_end_matches('.');
    let bare = bare.strip_prefix("specs/").unwrap_or(bare);
    bare.strip_suffix(".md").unwrap_or(bare).to_owned()
}

fn split_by_and(text: &str) -> Vec<String> {
    let parts = text.split(" and ").flat_map(|part| part.split(" & "));
    parts.map(name).collect()
}

/// Whether a text could be meant as a name: one word of lower case.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// C17, F12: nothing that is listed vanishes.
    #[test]
    fn lists_are_read_in_every_form() {
        let both = ["auth-flow", "user-model"];
        for text in [
            "`auth-flow`, `user-model`",
            "[auth-flow, `user-model`]",
            "[\"auth-flow\", 'user-model']",
            "auth-flow, user-model.",
            "``auth-flow``, `` `user-model` ``",
            "auth-flow (new, with tokens), user-model (edited)",
            "auth-flow: new, user-model: edited",
            "auth-flow and `user-model`",
            "auth-flow、user-model",
            "1. auth-flow\n2. user-model\n",
            "1) `auth-flow`: new, and large\n2) user-model – edited",
            "* auth-flow\n* user-model",
            "+ **auth-flow**\n+ [user-model](specs/user-model.md)",
            "- [ ] auth-flow\n- [x] `user-model`",
            "- auth-flow is new\n- user-model was there",
            "- auth-flow, user-model",
            "- auth-flow,\n  user-model",
            "- `auth-flow` and `user-model`: both new",
            "The specs are:\n\n- auth-flow\n  - tokens\n  and more\n- specs/user-model.md\n\nThat is all.",
            "\n  - auth-flow\n  - user-model\n",
            "auth-flow\nuser-model",
            "auth-flow\n\n- user-model",
        ] {
            assert_eq!(names(text), both, "{text}");
        }
        for none in
            ["none", "n/a", "N/A", "[]", "", "`none`", "- none", "None (a refactoring)", "1. n/a"]
        {
            assert!(names(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn what_is_no_name_is_returned_as_it_is() {
        for (text, expected) in [
            ("see below", &["see below"][..]),
            ("Auth Flow, user-model", &["Auth Flow", "user-model"]),
            ("- auth-flow, user-model are new", &["auth-flow", "user-model are new"]),
            ("- Login page", &["Login page"]),
            ("| auth-flow | new |", &["| auth-flow | new |"]),
            ("auth-flow (new, user-model", &["auth-flow (new", "user-model"]),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    proptest! {
        /// Every name of a list is found, whatever the notation of each item.
        #[test]
        fn no_name_is_lost(list in prop::collection::vec(("[a-z][a-z0-9]{3,6}-x", 0usize..8), 1..6)) {
            let mut text = String::new();
            for (index, (name, form)) in list.iter().enumerate() {
                text += &match form {
                    0 => format!("- {name}\n"),
                    1 => format!("* `{name}`: it is new\n"),
                    2 => format!("{}. {name} (edited)\n", index + 1),
                    3 => format!("- [ ] **{name}**\n"),
                    4 => format!("+ [{name}](specs/{name}.md)\n  more, of it\n"),
                    5 => format!("{}) specs/{name}.md\n", index + 1),
                    6 => format!("- \"{name}\" - why\n"),
                    _ => format!("- ``{name}``\n"),
                };
            }
            let wanted: Vec<String> = list.into_iter().map(|(name, _)| name).collect();
            prop_assert_eq!(names(&text), wanted);
        }

        #[test]
        fn anything_is_read(text in "(\\PC|\n|- |[(（]|[)）]|`|\\[|: |, ){0,40}") {
            names(&text);
        }
    }
}
