//! A run file as people read it: what the agent said, which tools it called, how it ended.

use agentd_core::event::AgentEvent;
use agentd_core::run_format::{Record, parse_line};
use agentd_core::text::head;

use super::html::esc;
use agentd_core::figures::{duration, tokens};

/// How much of one text or argument is shown.
const SHOWN: usize = 16 << 10;

/// Something to show of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// A piece of the text that is being written.
    Delta(String),
    /// Anything else, as HTML.
    Html(String),
}

/// What one line of a run file shows, if anything; and whether it is the last one.
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
    let html = match record {
        Record::Header(header) => format!(
            "<li class=\"step\"><strong>{}</strong> <span>{} as {}</span>{}</li>",
            esc(&header.step),
            esc(&header.agent),
            esc(&header.role),
            if header.attempt > 1 {
                format!(" <span>attempt {}</span>", header.attempt)
            } else {
                String::new()
            },
        ),
        Record::Event { event, .. } => return of_event(event),
        // The events say the same, decoded.
        Record::Raw { .. } => return None,
        Record::Stderr { text, .. } => {
            format!("<li class=\"stderr\"><pre>{}</pre></li>", esc(head(text.trim_end(), SHOWN)))
        }
        Record::Files { files, .. } => {
            let names: Vec<String> =
                files.iter().map(|file| format!("<code>{}</code>", esc(&file.path))).collect();
            format!("<li class=\"note\">changed {}</li>", names.join(", "))
        }
        Record::Note { text, .. } => format!("<li class=\"note\">{}</li>", esc(text)),
        Record::End { end, .. } => {
            let (class, how) = match (&end.outcome.failure, end.exit_code) {
                (Some(failure), _) => ("bad", format!("failed: {}", failure.message)),
                (None, Some(0)) => ("good", "finished".to_owned()),
                (None, Some(code)) => ("bad", format!("ended with exit code {code}")),
                (None, None) => ("bad", "was stopped".to_owned()),
            };
            format!(
                "<li class=\"end {class}\">{} after {}</li>",
                esc(&how),
                esc(&duration(end.duration_ms))
            )
        }
    };
    Some(Item::Html(html))
}

fn of_event(event: &AgentEvent<'_>) -> Option<Item> {
    let html = match event {
        AgentEvent::Text { text, delta: true } => return Some(Item::Delta(text.to_string())),
        AgentEvent::Text { text, delta: false } => {
            format!("<li class=\"text\">{}</li>", esc(head(text, SHOWN)))
        }
        AgentEvent::Session { session_id, model } => {
            let model = model.as_deref().unwrap_or("unknown model");
            format!("<li class=\"note\">{} · session {}</li>", esc(model), esc(session_id))
        }
        AgentEvent::ToolCall { server, name, arguments, .. } => {
            let server = server.as_deref().map(|server| format!("{server}.")).unwrap_or_default();
            format!(
                "<li class=\"call\"><details><summary><code>{}{}</code> <span>{}</span></summary><pre>{}</pre></details></li>",
                esc(&server),
                esc(name),
                esc(&gist(&arguments.to_value())),
                esc(head(&pretty(arguments.get()), SHOWN)),
            )
        }
        AgentEvent::ToolResult { ok, output, .. } => {
            let (class, mark) = if *ok { ("good", "✓") } else { ("bad", "✗") };
            let text = output.text();
            let first: String = text.lines().next().unwrap_or_default().chars().take(120).collect();
            format!(
                "<li class=\"result {class}\"><details><summary>{mark} <span>{}</span></summary><pre>{}</pre></details></li>",
                esc(&first),
                esc(head(&text, SHOWN)),
            )
        }
        AgentEvent::Retry { attempt, reason, .. } => {
            format!("<li class=\"note\">retry {attempt}: {}</li>", esc(reason))
        }
        AgentEvent::Usage { usage, .. } => format!(
            "<li class=\"note\">{} tokens in, {} out</li>",
            tokens(usage.input),
            tokens(usage.output)
        ),
        AgentEvent::Warning { message } => format!("<li class=\"note\">{}</li>", esc(message)),
        AgentEvent::Failed { failure } => {
            format!("<li class=\"end bad\">{}</li>", esc(&failure.message))
        }
        AgentEvent::Finished { .. } | AgentEvent::Raw { .. } => return None,
    };
    Some(Item::Html(html))
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

/// The items of a piece of a run file as a list's content; the last ones, where there are many.
pub(super) fn list(text: &str, most: usize) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut writing: Option<String> = None;
    for line in text.lines() {
        match item(line).0 {
            Some(Item::Delta(delta)) => writing.get_or_insert_default().push_str(&delta),
            Some(Item::Html(html)) => {
                shown.extend(writing.take().map(|text| text_item(&text)));
                shown.push(html);
            }
            None => {}
        }
    }
    shown.extend(writing.map(|text| text_item(&text)));
    let skipped = shown.len().saturating_sub(most);
    let mut out = String::new();
    if skipped > 0 {
        out.push_str(&format!("<li class=\"note\">{skipped} earlier entries are not shown</li>"));
    }
    out.extend(shown.into_iter().skip(skipped));
    out
}

fn text_item(text: &str) -> String {
    format!("<li class=\"text\">{}</li>", esc(head(text, SHOWN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_as_a_list() {
        let text = [
            r#"{"t":1,"event":"text","text":"<b>Hel","delta":true}"#,
            r#"{"t":2,"event":"text","text":"lo","delta":true}"#,
            r#"{"t":3,"event":"tool_call","id":"1","server":"agentd","name":"create_spec","arguments":{"change_id":"x","title":"Auth"}}"#,
            r#"{"t":4,"event":"tool_result","id":"1","ok":false,"output":"<script>"}"#,
            r#"{"t":5,"raw":"{}"}"#,
            "{\"t\":6,\"ev",
        ]
        .join("\n");
        let html = list(&text, 10);
        assert!(html.contains("<li class=\"text\">&lt;b&gt;Hello</li>"), "{html}");
        assert!(html.contains("<code>agentd.create_spec</code> <span>Auth</span>"), "{html}");
        assert!(html.contains("class=\"result bad\"") && !html.contains("<script>"), "{html}");
        assert!(list(&text, 1).starts_with("<li class=\"note\">2 earlier"));
    }
}
