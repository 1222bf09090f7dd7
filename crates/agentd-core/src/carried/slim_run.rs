//! What of the record of a call another machine needs to continue the change, without what is nobody's
//! business: prompts, outputs and commands stay where the call was made.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The tools whose calls say what a reviewer has found.
const REVIEWS: [&str; 2] = ["append_review", "create_review"];

/// Goes over the lines of a run file, in order.
#[derive(Debug, Default)]
pub struct SlimRun {
    /// The calls that are kept, whose answers are kept, too.
    calls: BTreeSet<String>,
}

impl SlimRun {
    /// The line as it is carried along, without its end; nothing if it stays behind.
    pub fn line(&mut self, line: &str) -> Option<String> {
        let mut value: Value = serde_json::from_str(line).ok()?;
        if value.get("run").is_some() {
            slim_header(&mut value);
        } else if let Some(end) = value.get_mut("end") {
            slim_end(end);
        } else if !self.keeps(value.get("event")?.as_str()?, &value) {
            return None;
        }
        Some(value.to_string())
    }

    fn keeps(&mut self, event: &str, value: &Value) -> bool {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        match event {
            "session" | "usage" => true,
            "tool_call" if REVIEWS.contains(&text("name")) => {
                self.calls.insert(text("id").to_owned());
                true
            }
            "tool_result" => self.calls.contains(text("id")),
            _ => false,
        }
    }
}

/// How it was called is not carried along, except for the first line of the prompt, which says for
/// which step and change.
fn slim_header(header: &mut Value) {
    let Some(header) = header.as_object_mut() else { return };
    let prompt = header.get("prompt").and_then(Value::as_str).unwrap_or_default();
    let prompt = prompt.lines().next().unwrap_or_default().to_owned();
    let program = header.get("argv").and_then(|argv| argv.get(0)).and_then(Value::as_str);
    let program = program.and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let argv = json!([program]);
    header.insert("prompt".to_owned(), json!(prompt));
    header.insert("argv".to_owned(), argv);
    header.insert("env".to_owned(), json!([]));
    header.insert("cwd".to_owned(), json!(""));
}

fn slim_end(end: &mut Value) {
    let Some(outcome) = end.get_mut("outcome").and_then(Value::as_object_mut) else { return };
    for key in ["text", "tools", "denied_tools"] {
        outcome.remove(key);
    }
    if let Some(failure) = outcome.get_mut("failure").and_then(Value::as_object_mut) {
        failure.remove("stderr_tail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_format::{Record, parse_line};

    #[test]
    fn what_is_needed_stays_and_the_rest_does_not() {
        let review = json!({"t": 3, "event": "tool_call", "id": "7", "server": "agentd",
            "name": "create_review", "arguments": {"verdict": "APPROVED"}});
        let lines = [
            json!({"run": 1, "step": "review", "change": "x", "agent": "codex", "role": "reviewer",
                "attempt": 1, "argv": ["/opt/codex", "--key", "secret"], "env": ["KEY"], "cwd": "/home/ada",
                "prompt": "agentd review x\nsecret", "started_at": "2026-01-02T03:04:05Z",
                "estimate_usd": 0.5}),
            json!({"t": 1, "raw": "secret"}),
            json!({"t": 1, "event": "session", "session_id": "s-1", "model": "m"}),
            json!({"t": 2, "event": "text", "text": "secret", "delta": false}),
            json!({"t": 2, "event": "tool_call", "id": "6", "name": "bash", "arguments": {"c": "secret"}}),
            json!({"t": 2, "event": "tool_result", "id": "6", "ok": true, "output": "secret"}),
            review.clone(),
            json!({"t": 4, "event": "tool_result", "id": "7", "ok": true, "output": "done"}),
            json!({"t": 5, "stderr": "secret"}),
            json!({"t": 5, "files": [{"path": "secret", "text": "secret"}]}),
            json!({"t": 6, "event": "usage", "input": 1, "cached": 0, "output": 2, "cost_usd": 0.1}),
            json!({"t": 9, "end": {"exit_code": 1, "duration_ms": 9, "outcome": {"session_id": "s-1",
                "text": "secret", "tool_calls": 1, "review": "PASS", "failure": {"kind": "timed_out",
                "message": "too long", "stderr_tail": "secret"}}}}),
        ];
        let mut slim = SlimRun::default();
        let kept: Vec<String> =
            lines.iter().filter_map(|line| slim.line(&line.to_string())).collect();
        assert_eq!(kept.len(), 6, "{kept:#?}");
        assert!(!kept.iter().any(|line| line.contains("secret")), "{kept:#?}");
        let records: Vec<Record> = kept.iter().filter_map(|line| parse_line(line)).collect();
        assert_eq!(records.len(), kept.len());
        let Some(Record::Header(header)) = records.first() else { panic!("{records:#?}") };
        assert_eq!((&*header.prompt, header.estimate_usd), ("agentd review x", Some(0.5)));
        assert_eq!(header.argv, ["codex"]);
        let Some(Record::End { end, .. }) = records.last() else { panic!("{records:#?}") };
        assert_eq!(end.outcome.session_id.as_deref(), Some("s-1"));
        assert!(end.outcome.review.is_some() && !end.outcome.is_settled());
        assert_eq!(kept[2], review.to_string());
        for odd in ["", "{", "[]", "{\"t\":1}", "{\"event\":3}", "{\"run\":1}", "{\"end\":[]}"] {
            let _ = SlimRun::default().line(odd);
        }
    }
}
