//! The texts of an event, for code that has to change them.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{AgentEvent, Form, Json, LazyText};

/// Gives another text, or None where it stays as it is.
pub(super) type Change<'c> = dyn FnMut(&str) -> Option<String> + 'c;

impl AgentEvent<'_> {
    /// The event with other texts; None where all of them stay. What is JSON is given as JSON
    /// first; where that makes it something else, as the text that it stands for.
    pub fn with_texts(&self, change: &mut Change<'_>) -> Option<AgentEvent<'static>> {
        fn text(text: &mut Cow<'_, str>, changed: &mut bool, change: &mut Change<'_>) {
            if let Some(other) = change(text) {
                *text = Cow::Owned(other);
                *changed = true;
            }
        }
        let mut event = self.clone();
        let mut changed = false;
        let mut put = |one: &mut Cow<'_, str>| text(one, &mut changed, change);
        match &mut event {
            Self::Session { session_id, model } => {
                put(session_id);
                model.iter_mut().for_each(put);
            }
            Self::Text { text, .. } => put(text),
            Self::ToolCall { id, server, name, arguments } => {
                [id, name].into_iter().chain(server).for_each(put);
                if let Some(other) = arguments.with_texts(change) {
                    *arguments = other;
                    changed = true;
                }
            }
            Self::ToolResult { id, output, .. } => {
                put(id);
                if let Some(other) = output.with_texts(change) {
                    *output = other;
                    changed = true;
                }
            }
            Self::Retry { reason, .. } => put(reason),
            Self::Usage { .. } => {}
            Self::Warning { message } => put(message),
            Self::Failed { failure } => {
                let hint = failure.hint.iter_mut();
                let texts = [&mut failure.message, &mut failure.stderr_tail].into_iter();
                for text in texts.chain(hint) {
                    if let Some(other) = change(text) {
                        *text = other;
                        changed = true;
                    }
                }
            }
            Self::Finished { text } => text.iter_mut().for_each(put),
            Self::Raw { line } => put(line),
        }
        changed.then(|| event.into_owned())
    }
}

impl Json<'_> {
    fn with_texts(&self, change: &mut Change<'_>) -> Option<Json<'static>> {
        let other = change(self.get())?;
        let raw = RawValue::from_string(other.clone());
        Some(raw.map_or_else(|_| Json::string(&other), Json::from))
    }
}

impl LazyText<'_> {
    fn with_texts(&self, change: &mut Change<'_>) -> Option<LazyText<'static>> {
        if let Form::Quoted(raw) = &self.0 {
            let other = change(raw.get())?;
            if let Ok(raw) = RawValue::from_string(other)
                && raw.get().starts_with('"')
            {
                return Some(LazyText(Form::Quoted(Cow::Owned(raw))));
            }
        }
        change(&self.text()).map(LazyText::from)
    }
}
