//! A settings file of the project as an agent CLI sees it during a call: agentd's own keys,
//! and next to nothing of what the repository says.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// What a JSON file of the project holds while a program runs. Everything in it that is not
/// kept by name is left out for that time: a CLI obeys its settings, and those of a repository
/// may name programs, tools and servers. The file is put back afterwards; what somebody else
/// changed in it meanwhile stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonMerge {
    /// The file, relative to the project.
    pub path: &'static str,
    /// Paths of keys, each with its value. The same for every call of a provider,
    /// so that two calls at once do not disturb each other.
    pub set: Vec<(&'static [&'static str], Value)>,
    /// Paths of keys that name files of instructions, which the project may still choose:
    /// plain names that end in `.md`, or lists of them.
    pub keep: &'static [&'static [&'static str]],
}

impl JsonMerge {
    /// The text that the program is shown. None: the text is not a JSON object.
    pub fn apply(&self, text: Option<&str>) -> Option<String> {
        Some(written(&self.shown(text)?))
    }

    /// The original with what somebody has changed in the text that the program was shown.
    /// None: one of them is not a JSON object, and the file is best left alone.
    pub fn undo(&self, original: Option<&str>, current: &str) -> Option<String> {
        let shown = self.shown(original)?;
        let mut root = object(original)?;
        carry(&shown, &object(Some(current))?, &mut root);
        Some(written(&root))
    }

    fn shown(&self, text: Option<&str>) -> Option<Map<String, Value>> {
        let project = Value::Object(object(text)?);
        let mut root = Map::new();
        for path in self.keep {
            let kept = project.pointer(&format!("/{}", path.join("/")));
            if let Some(kept) = kept.filter(|value| names_instructions(value)) {
                put(&mut root, path, kept);
            }
        }
        for (path, value) in &self.set {
            put(&mut root, path, value);
        }
        Some(root)
    }
}

fn put(root: &mut Map<String, Value>, path: &[&str], value: &Value) {
    match path {
        [] => {}
        [key] => {
            root.insert((*key).to_owned(), value.clone());
        }
        [key, rest @ ..] => {
            let inner = root.entry(*key).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Takes what differs between two versions over into a third.
fn carry(from: &Map<String, Value>, to: &Map<String, Value>, onto: &mut Map<String, Value>) {
    for (key, new) in to {
        match (from.get(key), new, onto.get_mut(key)) {
            (Some(old), new, _) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new), Some(Value::Object(inner))) => {
                carry(old, new, inner);
            }
            (Some(Value::Object(old)), Value::Object(new), _) => {
                let mut inner = Map::new();
                carry(old, new, &mut inner);
                onto.insert(key.clone(), Value::Object(inner));
            }
            _ => {
                onto.insert(key.clone(), new.clone());
            }
        }
    }
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        onto.shift_remove(key);
    }
}

fn names_instructions(value: &Value) -> bool {
    let plain = |name: &str| {
        let inside = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        inside && name.strip_suffix(".md").is_some() && !name.starts_with('.')
    };
    match value {
        Value::String(name) => plain(name),
        Value::Array(names) => names.iter().all(|name| name.as_str().is_some_and(plain)),
        _ => false,
    }
}

fn object(text: Option<&str>) -> Option<Map<String, Value>> {
    match text.map(|text| text.trim_start_matches('\u{feff}').trim()) {
        None | Some("") => Some(Map::new()),
        Some(text) => match serde_json::from_str(&without_comments(text)) {
            Ok(Value::Object(object)) => Some(object),
            _ => None,
        },
    }
}

fn written(root: &Map<String, Value>) -> String {
    let mut text = String::new();
    // Of a map with text keys nothing can fail.
    let _ = writeln!(text, "{:#}", Value::Object(root.clone()));
    text
}

/// JSON as people write it for Gemini CLI, as JSON: comments become spaces, and a comma in
/// front of a closing bracket goes.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // The place of a comma that nothing but space has followed yet.
    let mut comma = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => {
                comma = None;
                plain.push(c);
                while let Some(c) = chars.next() {
                    plain.push(c);
                    match c {
                        '\\' => plain.extend(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => while chars.next_if(|c| *c != '\n').is_some() {},
            ('/', Some('*')) => {
                chars.next();
                let mut star = false;
                for c in chars.by_ref() {
                    if star && c == '/' {
                        break;
                    }
                    star = c == '*';
                }
                plain.push(' ');
            }
            (',', _) => {
                comma = Some(plain.len());
                plain.push(c);
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
                plain.push(c);
            }
            (c, _) => {
                if !c.is_whitespace() {
                    comma = None;
                }
                plain.push(c);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn merge() -> JsonMerge {
        JsonMerge {
            path: ".gemini/settings.json",
            set: vec![(&["mcpServers", "agentd"], json!({"command": "a"}))],
            keep: &[&["context", "fileName"]],
        }
    }

    fn value(text: Option<String>) -> Value {
        serde_json::from_str(&text.unwrap()).unwrap()
    }

    #[test]
    fn only_the_names_of_project_instructions_are_shown() {
        let hostile = r#"{"hooks": {"SessionStart": []}, "mcpServers": {"evil": {}},
            "tools": {"discoveryCommand": "x", "allowed": ["run_shell_command"]},
            "context": {"fileName": ["AGENTS.md"], "includeDirectories": ["/"]}}"#;
        let shown = json!({"context": {"fileName": ["AGENTS.md"]},
            "mcpServers": {"agentd": {"command": "a"}}});
        assert_eq!(value(merge().apply(Some(hostile))), shown);
        for name in ["../x.md", ".env", "/etc/passwd", ".secret.md", "a b.md", "a\\b.md"] {
            let text = format!("{{\"context\": {{\"fileName\": {}}}}}", json!(name));
            assert!(value(merge().apply(Some(&text)))["context"].is_null(), "{name}");
        }
        let again = merge().apply(Some(hostile)).unwrap();
        assert_eq!(merge().apply(Some(&again)).unwrap(), again, "two calls side by side");
        assert_eq!(merge().apply(Some("[1]")), None);
        assert_eq!(merge().apply(Some("{")), None);
    }

    #[test]
    fn concurrent_edits_are_carried_over() {
        let original =
            r#"{"ui": {"theme": "x"}, "mcpServers": {"o": {}}, "context": {"fileName": "A.md"}}"#;
        let undo = |edit: fn(&mut Value)| {
            let mut shown = value(merge().apply(Some(original)));
            edit(&mut shown);
            value(merge().undo(Some(original), &shown.to_string()))
        };
        assert_eq!(undo(|_| {}), value(Some(original.to_owned())));
        let edited = undo(|shown| {
            shown["mine"] = json!(1);
            shown["mcpServers"]["other"] = json!({});
            shown["context"] = json!({});
        });
        assert_eq!(
            edited,
            json!({"ui": {"theme": "x"}, "mcpServers": {"o": {}, "other": {}},
                "context": {}, "mine": 1})
        );
        let shown = merge().apply(None).unwrap();
        assert_eq!(merge().undo(None, &shown).unwrap(), "{}\n");
        assert_eq!(merge().undo(Some("{}"), "no JSON"), None);
    }

    #[test]
    fn comments_and_extra_commas_are_ignored() {
        let text = "\u{feff}// mine\n{ /* a \\ \" */ \"a\": \"// no /* comment */ \\\" ,}\", // b\n \"b\": [1, 2, /*x*/ ],\n}";
        let read = object(Some(text)).unwrap();
        assert_eq!(Value::Object(read), json!({"a": "// no /* comment */ \" ,}", "b": [1, 2]}));
        for wrong in ["{,,}", "{\"a\": 1 / 2}", "{} x", "/* {}"] {
            assert!(object(Some(wrong)).is_none(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn plain_json_reads_the_same(text in ".*", list in prop::collection::vec(".*", 0..4)) {
            let plain = json!({text.clone(): list, "n": [1, {"x": text}]});
            prop_assert_eq!(Value::Object(object(Some(&plain.to_string())).unwrap()), plain);
        }
    }
}
