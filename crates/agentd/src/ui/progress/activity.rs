//! What an agent is doing now, in a few words.

use std::path::Path;

use agentd_core::event::AgentEvent;
use agentd_core::text::{head, tail};

use super::view::Running;

/// The most of a text that is kept: no terminal shows more on a line.
const WORDS: usize = 300;

/// The arguments of a tool that say what it does, the most informative first.
const INFORMATIVE: [&str; 11] = [
    "\"command\"",
    "\"cmd\"",
    "\"file_path\"",
    "\"path\"",
    "\"pattern\"",
    "\"query\"",
    "\"url\"",
    "\"spec_id\"",
    "\"task_id\"",
    "\"verdict\"",
    "\"description\"",
];

/// How much of the arguments is looked at. Streams can be gigabytes long.
const LOOKED_AT: usize = 1 << 10;

/// Directories whose files are named without them: those of the project.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roots(Vec<String>);

impl Roots {
    /// These, each with what is below it.
    pub(crate) fn new<'p>(roots: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut roots: Vec<String> =
            roots.into_iter().map(|root| format!("{}/", root.display())).collect();
        // A worktree may be inside of another directory of the project.
        roots.sort_by_key(|root| std::cmp::Reverse(root.len()));
        roots.dedup();
        Self(roots)
    }

    /// A text in which files of the project are named from its root.
    fn shorten(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, root| text.replace(root.as_str(), ""))
    }
}

/// Takes note of what an agent did. Costs next to nothing, whatever the size of the event.
pub(super) fn note(step: &mut Running, event: &AgentEvent<'_>, roots: &Roots) {
    match event {
        AgentEvent::Text { text, delta } => {
            if !(*delta && step.in_text) {
                step.doing.clear();
            }
            step.in_text = true;
            // Of a long text the end, which is new.
            let new = tail(text, WORDS);
            if step.doing.len() + new.len() > WORDS {
                let kept = tail(&step.doing, WORDS - new.len()).to_owned();
                step.doing = kept;
            }
            step.doing.push_str(new);
        }
        AgentEvent::ToolCall { name, arguments, .. } => {
            step.in_text = false;
            head(name, WORDS).clone_into(&mut step.doing);
            if let Some(what) = informative(arguments.get()) {
                step.doing.push(' ');
                step.doing.push_str(&roots.shorten(&what));
            }
        }
        AgentEvent::Retry { attempt, delay_ms, reason } => {
            step.in_text = false;
            let wait =
                delay_ms.map_or_else(String::new, |ms| format!(" in {} s", ms.div_ceil(1000)));
            step.doing = format!("retry {attempt}{wait}: {}", head(reason, WORDS));
        }
        AgentEvent::Usage { usage, cost_usd } => {
            step.usage = Some(*usage);
            step.cost_usd = cost_usd.or(step.cost_usd);
        }
        AgentEvent::Warning { message } => {
            step.in_text = false;
            step.doing = format!("warning: {}", head(message, WORDS));
        }
        AgentEvent::Session { .. }
        | AgentEvent::ToolResult { .. }
        | AgentEvent::Failed { .. }
        | AgentEvent::Finished { .. }
        | AgentEvent::Raw { .. } => {}
    }
}

/// What an event is, in a few words: the tool and what it works on, a retry, a warning.
pub(crate) fn described(event: &AgentEvent<'_>) -> String {
    described_in(event, &Roots::default())
}

/// The same with short names for the files of a project.
pub(super) fn described_in(event: &AgentEvent<'_>, roots: &Roots) -> String {
    let mut step = Running::default();
    note(&mut step, event, roots);
    step.doing
}

/// The most informative text among the arguments of a tool. Only for a person's eyes, so that
/// looking at the text of the JSON is good enough, and quick.
fn informative(arguments: &str) -> Option<String> {
    let head = head(arguments, LOOKED_AT);
    INFORMATIVE.iter().find_map(|key| {
        let value = head[head.find(key)? + key.len()..].trim_start().strip_prefix(':')?;
        // A list is a command with its arguments.
        let value = value.trim_start().trim_start_matches('[').trim_start().strip_prefix('"')?;
        let mut escaped = false;
        let end = value.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let text = &value[..end.unwrap_or(value.len())];
        let unquoted = serde_json::from_str::<String>(&format!("\"{text}\""));
        Some(unquoted.unwrap_or_else(|_| text.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use agentd_core::event::Json;
    use agentd_core::outcome::Usage;

    use super::*;

    fn check(events: &[AgentEvent<'_>], doing: &str) {
        let mut step = Running::default();
        let roots = Roots::new([Path::new("/home/me/shop"), Path::new("/home/me/shop-agentd/x")]);
        for event in events {
            note(&mut step, event, &roots);
        }
        assert_eq!(step.doing, doing);
    }

    fn text(text: &str, delta: bool) -> AgentEvent<'_> {
        AgentEvent::Text { text: text.into(), delta }
    }

    fn tool(arguments: &str) -> AgentEvent<'static> {
        let raw: Box<serde_json::value::RawValue> = serde_json::from_str(arguments).unwrap();
        let (id, name) = ("1".into(), "run_tool".into());
        AgentEvent::ToolCall { id, server: None, name, arguments: Json::from(raw) }
    }

    #[test]
    fn the_last_thing_counts() {
        check(&[text("I look ", true), text("at it", true)], "I look at it");
        check(&[text("One.", false), text("Two.", false)], "Two.");
        check(&[text("One.", false), tool("{}"), text("Two", true)], "Two");
        check(&[tool(r#"{"content": "x", "path": "src/a \"b\".rs"}"#)], r#"run_tool src/a "b".rs"#);
        check(&[tool(r#"{"command": ["cargo", "test"]}"#)], "run_tool cargo");
        check(&[tool(r#"{"path": {"a": 1}, "spec_id": "auth"}"#)], "run_tool auth");
        check(&[tool("null")], "run_tool");
        // Issue 19, M17: names of files, not the directories that all of them are in.
        check(&[tool(r#"{"file_path": "/home/me/shop/src/auth.rs"}"#)], "run_tool src/auth.rs");
        let command = r#"{"command": "cat /home/me/shop-agentd/x/a /home/me/shop/b /etc/c"}"#;
        check(&[tool(command)], "run_tool cat a b /etc/c");
        let retry = |delay_ms| AgentEvent::Retry { attempt: 2, delay_ms, reason: "busy".into() };
        check(&[retry(Some(1500))], "retry 2 in 2 s: busy");
        check(&[text("a", false), AgentEvent::Raw { line: "x".into() }], "a");
    }

    #[test]
    fn long_texts_are_not_kept() {
        let long = "ü".repeat(1 << 20);
        let mut step = Running::default();
        let roots = Roots::default();
        for delta in [false, true, true] {
            note(&mut step, &text(&long, delta), &roots);
        }
        assert!(step.doing.len() <= WORDS, "{}", step.doing.len());
        note(&mut step, &text("and its end", true), &roots);
        assert!(step.doing.ends_with("üand its end"), "{}", step.doing);
        note(&mut step, &tool(&format!(r#"{{"path": "{}"}}"#, "x\\n".repeat(1 << 16))), &roots);
        assert!(step.doing.len() <= LOOKED_AT + 100, "{}", step.doing.len());
        let usage = Usage { input: 1, ..Usage::default() };
        note(&mut step, &AgentEvent::Usage { usage, cost_usd: None }, &roots);
        assert_eq!(step.usage, Some(usage));
    }
}
