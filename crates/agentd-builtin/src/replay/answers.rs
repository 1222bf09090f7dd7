//! Whether a tool answers as it did when it was recorded.

use agentd_core::event::CUT_MARK;
use agentd_core::recording::{RecordedAnswer, digest_in_answer};
use agentd_core::text::head;
use serde_json::Value;

use crate::mcp_client::ToolAnswer;

/// How an answer differs from the recorded one. CLIs wrap the answer of a tool, so only the
/// tool's own words are searched for.
pub(super) fn difference(recorded: &RecordedAnswer, now: &ToolAnswer) -> Option<String> {
    let (old, new) = (recorded.text.as_str(), now.text.as_str());
    if recorded.ok != now.ok {
        let word = |ok: bool| if ok { "was accepted" } else { "was refused" };
        let said = head(new, 300);
        return Some(format!("{} then and {} now: {said}", word(recorded.ok), word(now.ok)));
    }
    if !now.ok {
        // Some CLIs check arguments themselves, and refuse in words of their own.
        return None;
    }
    if let (Some(old), Some(new)) = (digest_in_answer(old), digest_in_answer(new)) {
        return (old != new).then(|| "has written another text than then".to_owned());
    }
    // Some CLIs show the structured answer instead of the words.
    let shown: Option<Value> = serde_json::from_str(old).ok();
    if shown.is_some() && shown == now.structured {
        return None;
    }
    let quoted = Value::from(new).to_string();
    let quoted = &quoted[1..quoted.len() - 1];
    let same = old.contains(CUT_MARK)
        || old.trim() == new.trim()
        || old.contains(new.trim())
        || old.contains(quoted)
        // Some CLIs cut long answers, and some leave failures without their text.
        || (new.len() > 2000 && old.contains(head(new, 500)))
        || old.trim().is_empty();
    (!same).then(|| format!("has answered something else than then: {}", head(new.trim(), 300)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn recorded(text: &str) -> RecordedAnswer {
        RecordedAnswer { t: 0, ok: true, text: text.to_owned() }
    }

    fn answer(ok: bool, text: &str) -> ToolAnswer {
        ToolAnswer { ok, text: text.to_owned(), blocks: vec![text.to_owned()], structured: None }
    }

    #[test]
    fn answers_are_compared_by_what_the_tool_said() {
        let old = recorded("{\"output\":\"line\\nother\"}");
        assert_eq!(difference(&old, &answer(true, "line\nother")), None);
        assert!(difference(&old, &answer(true, "something")).is_some());
        assert!(difference(&old, &answer(false, "line\nother")).is_some());
        // In words now, and as data then.
        let old = recorded(r#"{"task_id":"2.1","completed":1}"#);
        let mut new = answer(true, "Task 2.1 is done.");
        assert!(difference(&old, &new).is_some());
        new.structured = Some(json!({"completed": 1, "task_id": "2.1"}));
        assert_eq!(difference(&old, &new), None);
        new.structured = Some(json!({"completed": 2, "task_id": "2.1"}));
        assert!(difference(&old, &new).is_some());
    }
}
