//! A run file for people to read: what the agent said, which tools it called, how it ended.

use agentd_core::event::AgentEvent;
use agentd_core::figures::{duration, tokens};
use agentd_core::run_format::{Record, parse_line};
use agentd_core::text::head;
use maud::{Markup, html};

/// How much of one text or argument is shown.
const SHOWN: usize = 16 << 10;

/// Something to show of a run.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// A piece of the text that is being written.
    Delta(String),
    /// Anything else, as an entry of a list.
    Entry(Markup),
}

/// What one line of a run file shows, if anything, and whether it is the last one.
pub(super) fn item(line: &str) -> (Option<Item>, bool) {
    match parse_line(line) {
        Some(record) => {
            let last = matches!(record, Record::End { .. });
            (of_record(&record), last)
        }
        None => (None, false),
    }
}

fn of_record(record: &Record) -> Option<Item> {
    let entry = match record {
        Record::Header(header) => html! {
            li.step {
                strong { (header.step) }
                " "
                span { (header.agent) " as " (header.role) }
                @if header.attempt > 1 {
                    " " span { "attempt " (header.attempt) }
                }
            }
        },
        Record::Event { event, .. } => return of_event(event),
        // The events say the same, decoded.
        Record::Raw { .. } => return None,
        Record::Stderr { text, .. } => html! {
            li.stderr { pre { (head(text.trim_end(), SHOWN)) } }
        },
        Record::Files { files, .. } => html! {
            li.note {
                "changed "
                @for (at, file) in files.iter().enumerate() {
                    @if at > 0 { ", " }
                    code { (file.path) }
                }
            }
        },
        Record::Note { text, .. } => note(text),
        Record::End { end, .. } => {
            let (class, how) = match (&end.outcome.failure, end.exit_code) {
                (Some(failure), _) => ("bad", format!("failed: {}", failure.message)),
                (None, Some(0)) => ("good", "finished".to_owned()),
                (None, Some(code)) => ("bad", format!("ended with exit code {code}")),
                (None, None) => ("bad", "was stopped".to_owned()),
            };
            html! { li.end.(class) { (how) " after " (duration(end.duration_ms)) } }
        }
    };
    Some(Item::Entry(entry))
}

fn of_event(event: &AgentEvent<'_>) -> Option<Item> {
    let entry = match event {
        AgentEvent::Text { text, delta: true } => return Some(Item::Delta(text.to_string())),
        AgentEvent::Text { text, delta: false } => text_entry(text),
        AgentEvent::Session { session_id, model } => {
            let model = model.as_deref().unwrap_or("unknown model");
            note(&format!("{model} · session {session_id}"))
        }
        AgentEvent::ToolCall { server, name, arguments, .. } => html! {
            li.call {
                details {
                    summary {
                        code {
                            @if let Some(server) = server { (server) "." }
                            (name)
                        }
                        " "
                        span { (gist(&arguments.to_value())) }
                    }
                    pre { (head(&pretty(arguments.get()), SHOWN)) }
                }
            }
        },
        AgentEvent::ToolResult { ok, output, .. } => {
            let (class, mark) = if *ok { ("good", "✓") } else { ("bad", "✗") };
            let text = output.text();
            let first: String = text.lines().next().unwrap_or_default().chars().take(120).collect();
            html! {
                li.result.(class) {
                    details {
                        summary { (mark) " " span { (first) } }
                        pre { (head(&text, SHOWN)) }
                    }
                }
            }
        }
        AgentEvent::Retry { attempt, reason, .. } => note(&format!("retry {attempt}: {reason}")),
        AgentEvent::Usage { usage, .. } => {
            note(&format!("{} tokens in, {} out", tokens(usage.input), tokens(usage.output)))
        }
        AgentEvent::Warning { message } => note(message),
        AgentEvent::Failed { failure } => html! { li.end.bad { (failure.message) } },
        AgentEvent::Finished { .. } | AgentEvent::Raw { .. } => return None,
    };
    Some(Item::Entry(entry))
}

fn note(text: &str) -> Markup {
    html! { li.note { (text) } }
}

fn text_entry(text: &str) -> Markup {
    html! { li.text { (head(text, SHOWN)) } }
}

/// The arguments of a call in a few words: the short texts among them.
fn gist(arguments: &serde_json::Value) -> String {
    let values = arguments.as_object().into_iter().flatten();
    let short = values.filter_map(|(key, value)| match value {
        serde_json::Value::String(text) if text.len() <= 60 && key != "change_id" => {
            Some(text.as_str())
        }
        _ => None,
    });
    short.take(3).collect::<Vec<_>>().join(" · ")
}

fn pretty(json: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(json);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| json.to_owned())
}

/// The entries of a piece of a run file; only the last `most` of them.
pub(super) fn entries(text: &str, most: usize) -> Vec<Markup> {
    let mut entries: Vec<Markup> = Vec::new();
    let mut writing: Option<String> = None;
    for line in text.lines() {
        match item(line).0 {
            Some(Item::Delta(delta)) => writing.get_or_insert_default().push_str(&delta),
            Some(Item::Entry(entry)) => {
                entries.extend(writing.take().map(|text| text_entry(&text)));
                entries.push(entry);
            }
            None => {}
        }
    }
    entries.extend(writing.map(|text| text_entry(&text)));
    let skipped = entries.len().saturating_sub(most);
    if skipped > 0 {
        entries.drain(..skipped);
        entries.insert(0, note(&format!("{skipped} earlier entries are not shown")));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_shown_as_a_list() {
        let text = [
            r#"{"t":1,"event":"text","text":"<b>Hel","delta":true}"#,
            r#"{"t":2,"event":"text","text":"lo","delta":true}"#,
            r#"{"t":3,"event":"tool_call","id":"1","server":"agentd","name":"create_spec","arguments":{"change_id":"x","title":"Auth"}}"#,
            r#"{"t":4,"event":"tool_result","id":"1","ok":false,"output":"<script>"}"#,
            r#"{"t":5,"raw":"{}"}"#,
            "{\"t\":6,\"ev",
        ]
        .join("\n");
        let shown = |most| -> String {
            entries(&text, most).into_iter().map(Markup::into_string).collect()
        };
        let html = shown(10);
        assert!(html.contains("<li class=\"text\">&lt;b&gt;Hello</li>"), "{html}");
        assert!(html.contains("<code>agentd.create_spec</code> <span>Auth</span>"), "{html}");
        assert!(html.contains("class=\"result bad\"") && !html.contains("<script>"), "{html}");
        assert!(shown(1).starts_with("<li class=\"note\">2 earlier"));
    }
}
