//! A run file for people to read: what the agent said, which tools it called and what they answered,
//! which files changed, how it ended.

use std::collections::BTreeMap;

use agentd_core::diff;
use agentd_core::event::AgentEvent;
use agentd_core::figures::{clock, duration, tokens};
use agentd_core::hash::Digest;
use agentd_core::run_format::{FileEdit, Record, RunHeader, parse_line};
use agentd_core::text::{counted, head};
use maud::{Markup, html};

/// How much of one text or argument is shown.
const SHOWN: usize = 16 << 10;

/// Something to show of a run.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// A piece of the text that is being written.
    Delta(String),
    /// What a tool answered to the call with this id.
    Answer { call: String, html: Markup, ok: bool },
    /// A call of a tool.
    Call { id: String, t: u64, summary: Markup, arguments: String },
    /// Anything else.
    Entry(Markup),
}

/// What files were before, by path and digest, as far as it is known.
pub(super) type Earlier = BTreeMap<(String, Digest), String>;

/// What one line of a run file shows, if anything, and whether it is the last one.
pub(super) fn item(line: &str, earlier: &Earlier) -> (Option<Item>, bool) {
    match parse_line(line) {
        Some(record) => {
            let last = matches!(record, Record::End { .. });
            (of_record(&record, earlier), last)
        }
        None => (None, false),
    }
}

/// An entry of the log, with the time since the start.
fn entry(class: &str, t: Option<u64>, body: &Markup) -> Markup {
    html! {
        div.entry.(class) {
            span.t { @if let Some(t) = t { (clock(std::time::Duration::from_millis(t))) } }
            div.said { (body) }
        }
    }
}

fn of_record(record: &Record, earlier: &Earlier) -> Option<Item> {
    let shown = match record {
        Record::Header(header) => entry("step", None, &step(header)),
        Record::Event { t, event } => return of_event(*t, event),
        // The events say the same, decoded.
        Record::Raw { .. } => return None,
        Record::Stderr { t, text } => {
            entry("stderr", Some(*t), &html! { pre { (head(text.trim_end(), SHOWN)) } })
        }
        Record::Files { t, files } => entry("files", Some(*t), &edited(files, earlier)),
        Record::Note { t, text } => note(*t, text),
        Record::End { t, end } => {
            let (class, how) = match (&end.outcome.failure, end.exit_code) {
                (Some(failure), _) => ("end bad", format!("failed: {}", failure.message)),
                (None, Some(0)) => ("end good", "finished".to_owned()),
                (None, Some(code)) => ("end bad", format!("ended with exit code {code}")),
                (None, None) => ("end bad", "was stopped".to_owned()),
            };
            entry(class, Some(*t), &html! { (how) " after " (duration(end.duration_ms)) })
        }
    };
    Some(Item::Entry(shown))
}

fn step(header: &RunHeader) -> Markup {
    html! {
        strong { (header.step) } " "
        span { (header.agent) " as " (header.role) }
        @if header.attempt > 1 { " " span { "attempt " (header.attempt) } }
    }
}

/// The prompt, folded.
pub(super) fn prompt(header: &RunHeader) -> Markup {
    html! {
        details.prompt {
            summary { "Prompt " span.quiet { (counted(header.prompt.lines().count(), "line")) } }
            pre tabindex="0" { (header.prompt) }
        }
    }
}

fn of_event(t: u64, event: &AgentEvent<'_>) -> Option<Item> {
    let shown = match event {
        AgentEvent::Text { text, delta: true } => return Some(Item::Delta(text.to_string())),
        AgentEvent::Text { text, delta: false } => text_entry(Some(t), text),
        AgentEvent::Session { session_id, model } => {
            let model = model.as_deref().unwrap_or("unknown model");
            note(t, &format!("{model} · session {session_id}"))
        }
        AgentEvent::ToolCall { id, server, name, arguments, .. } => {
            let summary = html! {
                code { @if let Some(server) = server { (server) "." } (name) }
                " " span.gist { (gist(&arguments.to_value())) }
            };
            let arguments = head(&pretty(arguments.get()), SHOWN).to_owned();
            return Some(Item::Call { id: id.to_string(), t, summary, arguments });
        }
        AgentEvent::ToolResult { id, ok, output, .. } => {
            let text = output.text();
            let html = html! { pre { (head(&text, SHOWN)) } };
            return Some(Item::Answer { call: id.to_string(), html, ok: *ok });
        }
        AgentEvent::Retry { attempt, reason, .. } => note(t, &format!("retry {attempt}: {reason}")),
        AgentEvent::Usage { usage, .. } => {
            note(t, &format!("{} tokens in, {} out", tokens(usage.input), tokens(usage.output)))
        }
        AgentEvent::Warning { message } => note(t, message),
        AgentEvent::Failed { failure } => entry("end bad", Some(t), &html! { (failure.message) }),
        AgentEvent::Finished { .. } | AgentEvent::Raw { .. } => return None,
    };
    Some(Item::Entry(shown))
}

/// A call of a tool, with its answer once that is there.
pub(super) fn call(
    id: &str,
    t: u64,
    summary: &Markup,
    arguments: &str,
    answer: Option<&(Markup, bool)>,
) -> Markup {
    let class = match answer {
        Some((_, true)) => "call good",
        Some((_, false)) => "call bad",
        None => "call",
    };
    entry(
        class,
        Some(t),
        &html! {
            details data-call=(id) {
                summary { (summary) }
                pre { (arguments) }
                @if let Some((answer, _)) = answer { (answer) }
            }
        },
    )
}

fn note(t: u64, text: &str) -> Markup {
    entry("note", Some(t), &html! { (text) })
}

fn text_entry(t: Option<u64>, text: &str) -> Markup {
    entry("text", t, &html! { (head(text, SHOWN)) })
}

/// The files that changed, each with what changed in it where that is known.
fn edited(files: &[FileEdit], earlier: &Earlier) -> Markup {
    html! {
        "changed " (counted(files.len(), "file"))
        @for file in files {
            details {
                summary {
                    code { (file.path) }
                    @if file.created { " " span.badge { "new" } }
                    @if file.after.is_none() { " " span.badge { "deleted" } }
                }
                (content(file, earlier))
            }
        }
    }
}

/// What was done to a file.
pub(super) fn content(file: &FileEdit, earlier: &Earlier) -> Markup {
    let before = match &file.before {
        Some(digest) => earlier.get(&(file.path.clone(), digest.clone())).map(String::as_str),
        None if file.created => Some(""),
        None => None,
    };
    html! {
        @match (before, &file.text) {
            (Some(before), Some(after)) => {
                pre.unified { (head(&diff::unified(&file.path, Some(before), Some(after)), SHOWN)) }
            }
            (None, Some(after)) => {
                p.quiet { "What it was before is not in these records; now:" }
                pre { (head(after, SHOWN)) }
            }
            (_, None) => {
                p.quiet { @if file.after.is_none() { "It is gone." } @else { "Its text was not kept." } }
            }
        }
    }
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

/// An entry that is not finished.
enum Kept {
    Done(Markup),
    Text(String),
    Call { id: String, t: u64, summary: Markup, arguments: String, answer: Option<(Markup, bool)> },
}

/// The entries of a piece of a run file; only the last `most` of them.
pub(super) fn entries(text: &str, most: usize, earlier: &Earlier) -> Vec<Markup> {
    let mut entries: Vec<Kept> = Vec::new();
    for line in text.lines() {
        match item(line, earlier).0 {
            Some(Item::Delta(delta)) => match entries.last_mut() {
                Some(Kept::Text(text)) => text.push_str(&delta),
                _ => entries.push(Kept::Text(delta)),
            },
            Some(Item::Call { id, t, summary, arguments }) => {
                entries.push(Kept::Call { id, t, summary, arguments, answer: None });
            }
            Some(Item::Answer { call, html, ok }) => {
                let waits = entries.iter_mut().rev().find_map(|entry| match entry {
                    Kept::Call { id, answer: answer @ None, .. } if *id == call => Some(answer),
                    _ => None,
                });
                match waits {
                    Some(answer) => *answer = Some((html, ok)),
                    None => entries.push(Kept::Done(lost_answer(&html, ok))),
                }
            }
            Some(Item::Entry(shown)) => entries.push(Kept::Done(shown)),
            None => {}
        }
    }
    let skipped = entries.len().saturating_sub(most);
    let mut shown: Vec<Markup> = Vec::new();
    if skipped > 0 {
        let text = match skipped {
            1 => "1 earlier entry is not shown".to_owned(),
            skipped => format!("{skipped} earlier entries are not shown"),
        };
        shown.push(entry("note", None, &html! { (text) }));
    }
    shown.extend(entries.into_iter().skip(skipped).map(|entry| match entry {
        Kept::Done(shown) => shown,
        Kept::Text(text) => text_entry(None, &text),
        Kept::Call { id, t, summary, arguments, answer } => {
            call(&id, t, &summary, &arguments, answer.as_ref())
        }
    }));
    shown
}

/// An answer whose call is not shown.
pub(super) fn lost_answer(answer: &Markup, ok: bool) -> Markup {
    let class = if ok { "result good" } else { "result bad" };
    entry(class, None, &html! { details { summary { "answer of a tool" } (answer) } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_shown_as_a_list() {
        let text = [
            r#"{"t":1,"event":"text","text":"<b>Hel","delta":true}"#,
            r#"{"t":2,"event":"text","text":"lo","delta":true}"#,
            r#"{"t":61003,"event":"tool_call","id":"1","server":"agentd","name":"create_spec","arguments":{"change_id":"x","title":"Auth"}}"#,
            r#"{"t":4,"event":"tool_result","id":"1","ok":false,"output":"<script>"}"#,
            r#"{"t":5,"raw":"{}"}"#,
            "{\"t\":6,\"ev",
        ]
        .join("\n");
        let shown = |most| -> String {
            entries(&text, most, &Earlier::new()).into_iter().map(Markup::into_string).collect()
        };
        let html = shown(10);
        assert!(html.contains("<div class=\"said\">&lt;b&gt;Hello</div>"), "{html}");
        assert!(
            html.contains("<code>agentd.create_spec</code> <span class=\"gist\">Auth</span>"),
            "{html}"
        );
        // The call and its answer are one entry, with the time of the call.
        assert!(html.contains("class=\"entry call bad\"><span class=\"t\">1:01</span>"), "{html}");
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"), "{html}");
        assert_eq!(html.matches("class=\"entry").count(), 2);
        assert!(shown(1).contains("1 earlier entry is not shown"));
    }

    #[test]
    fn files_are_compared_with_what_they_were() {
        let before = Digest::of("a\n");
        let edit = |before: &Digest| {
            format!(
                r#"{{"t":1,"files":[{{"path":"x.rs","before":"{before}","after":"{}","text":"b\n"}}]}}"#,
                Digest::of("b\n")
            )
        };
        let mut earlier = Earlier::new();
        earlier.insert(("x.rs".to_owned(), before.clone()), "a\n".to_owned());
        let shown = |line: &str| entries(line, 9, &earlier).remove(0).into_string();
        assert!(shown(&edit(&before)).contains("-a\n+b\n"));
        assert!(shown(&edit(&Digest::of("?"))).contains("not in these records"));
    }
}
