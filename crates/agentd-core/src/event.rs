//! The one event model: whatever an agent CLI prints becomes a sequence of
//! [`AgentEvent`]s, and everything that watches a run (progress, run files, the
//! viewer, a replay) sees only these.
//!
//! Events borrow from the line that they were decoded from, because a stream may
//! be gigabytes long and most events are looked at once; [`AgentEvent::into_owned`]
//! is for code that keeps one.

mod texts;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::outcome::{Failure, Usage};

/// How much of one text, argument or tool output is kept in a run file, in bytes.
/// Longer ones are cut there, with [`CUT_MARK`] behind them; the count of bytes
/// that were dropped stands in the mark. Replays work up to this size.
pub const KEPT_BYTES: usize = 1 << 20;

/// Stands at the end of a text that was cut to [`KEPT_BYTES`].
pub const CUT_MARK: &str = "[agentd: cut, bytes dropped: ";

/// Something that an agent did or said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentEvent<'a> {
    /// The agent has a session. Comes once per call, normally first.
    Session {
        /// The id under which the session can be resumed.
        session_id: Cow<'a, str>,
        /// The model, where the CLI says it. May be an alias.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Cow<'a, str>>,
    },
    /// Text by the assistant; never an echo of the prompt.
    Text {
        /// The text.
        text: Cow<'a, str>,
        /// Whether it continues the text before it (true) or is a message of its own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        delta: bool,
    },
    /// The agent calls a tool.
    ToolCall {
        /// What ties the result to the call.
        id: Cow<'a, str>,
        /// The MCP server; none for a tool of the CLI's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<Cow<'a, str>>,
        /// The bare name of the tool, without the server.
        name: Cow<'a, str>,
        /// The arguments, whole, as JSON.
        arguments: Json<'a>,
    },
    /// A tool has answered.
    ToolResult {
        /// The id of the call.
        id: Cow<'a, str>,
        /// Whether the tool did what it was asked to.
        ok: bool,
        /// What it answered, as text.
        output: LazyText<'a>,
    },
    /// The CLI repeats a request to its model by itself.
    Retry {
        /// Which repetition this is, from 1.
        attempt: u32,
        /// How long it waits first, where it says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay_ms: Option<u64>,
        /// Why.
        reason: Cow<'a, str>,
    },
    /// What the call has used, for the whole of this call and nothing else.
    Usage {
        /// The tokens.
        #[serde(flatten)]
        usage: Usage,
        /// The cost by the CLI's own reckoning.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    /// Something is odd, and the run continues.
    Warning {
        /// What.
        message: Cow<'a, str>,
    },
    /// The call has failed.
    Failed {
        /// Why.
        failure: Failure,
    },
    /// The agent says that it has finished.
    Finished {
        /// Its last message, where the CLI repeats it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Cow<'a, str>>,
    },
    /// A line that no decoder understood. Run files hold it as a raw record only.
    Raw {
        /// The line.
        line: Cow<'a, str>,
    },
}

impl AgentEvent<'_> {
    /// The same event with texts of its own, for code that keeps it.
    #[must_use]
    pub fn into_owned(self) -> AgentEvent<'static> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        match self {
            Self::Session { session_id, model } => {
                AgentEvent::Session { session_id: own(session_id), model: model.map(own) }
            }
            Self::Text { text, delta } => AgentEvent::Text { text: own(text), delta },
            Self::ToolCall { id, server, name, arguments } => AgentEvent::ToolCall {
                id: own(id),
                server: server.map(own),
                name: own(name),
                arguments: arguments.into_owned(),
            },
            Self::ToolResult { id, ok, output } => {
                AgentEvent::ToolResult { id: own(id), ok, output: output.into_owned() }
            }
            Self::Retry { attempt, delay_ms, reason } => {
                AgentEvent::Retry { attempt, delay_ms, reason: own(reason) }
            }
            Self::Usage { usage, cost_usd } => AgentEvent::Usage { usage, cost_usd },
            Self::Warning { message } => AgentEvent::Warning { message: own(message) },
            Self::Failed { failure } => AgentEvent::Failed { failure },
            Self::Finished { text } => AgentEvent::Finished { text: text.map(own) },
            Self::Raw { line } => AgentEvent::Raw { line: own(line) },
        }
    }

    /// The event with every text cut to [`KEPT_BYTES`]; itself, untouched, when
    /// nothing is that long, which is nearly always.
    pub fn capped(&self) -> Cow<'_, Self> {
        let longest = match self {
            Self::Text { text, .. } => text.len(),
            Self::ToolCall { arguments, .. } => arguments.get().len(),
            Self::ToolResult { output, .. } => output.size(),
            Self::Warning { message } => message.len(),
            Self::Finished { text } => text.as_ref().map_or(0, |text| text.len()),
            _ => 0,
        };
        if longest <= KEPT_BYTES {
            return Cow::Borrowed(self);
        }
        let mut copy = self.clone();
        match &mut copy {
            Self::Text { text, .. } | Self::Finished { text: Some(text) } => *text = cut(text),
            Self::ToolCall { arguments, .. } => *arguments = Json::string(&cut(arguments.get())),
            Self::ToolResult { output, .. } => *output = cut(&output.text()).into(),
            Self::Warning { message } => *message = cut(message),
            _ => {}
        }
        Cow::Owned(copy)
    }
}

/// The text cut to [`KEPT_BYTES`] at a character, with a mark that says so.
pub fn cut<'b>(text: &str) -> Cow<'b, str> {
    let head = crate::text::head(text, KEPT_BYTES);
    if head.len() == text.len() {
        return Cow::Owned(text.to_owned());
    }
    Cow::Owned(format!("{head}{CUT_MARK}{}]", text.len() - head.len()))
}

/// A piece of JSON, kept as the text that it came as: arguments of a tool are
/// passed on and replayed, not looked into.
#[derive(Debug, Clone)]
pub struct Json<'a>(Cow<'a, RawValue>);

impl<'a> Json<'a> {
    /// The JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// A JSON string with this text.
    pub fn string(text: &str) -> Json<'static> {
        serde_json::value::to_raw_value(text).map_or_else(|_| Json::null(), Json::from)
    }

    /// `null`, for a tool without arguments.
    pub fn null() -> Json<'a> {
        Json(Cow::Borrowed(RawValue::NULL))
    }

    /// The value in it.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(self.get()).unwrap_or_default()
    }

    fn into_owned(self) -> Json<'static> {
        Json(Cow::Owned(self.0.into_owned()))
    }
}

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(Cow::Borrowed(raw))
    }
}

impl From<Box<RawValue>> for Json<'static> {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Cow::Owned(raw))
    }
}

impl PartialEq for Json<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get() || self.to_value() == other.to_value()
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Through a value: inside a tagged enum serde has already taken the text apart.
        let value = serde_json::Value::deserialize(deserializer)?;
        let raw = serde_json::value::to_raw_value(&value).map_err(serde::de::Error::custom)?;
        Ok(Json(Cow::Owned(raw)))
    }
}

/// A text that is taken out of its JSON form only when somebody looks at it. Outputs
/// of tools are most of a stream, are recorded as they came, and are rarely read.
#[derive(Debug, Clone)]
pub struct LazyText<'a>(Form<'a>);

#[derive(Debug, Clone)]
enum Form<'a> {
    Plain(Cow<'a, str>),
    /// A JSON string, with its quotes.
    Quoted(Cow<'a, RawValue>),
}

impl<'a> LazyText<'a> {
    /// The text.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Plain(text) => Cow::Borrowed(text),
            Form::Quoted(raw) => {
                let inner = &raw.get()[1..raw.get().len() - 1];
                if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
                    return Cow::Borrowed(inner);
                }
                // It was parsed as a string before; if that were wrong, better its
                // JSON form than nothing.
                serde_json::from_str(raw.get()).map_or(Cow::Borrowed(raw.get()), Cow::Owned)
            }
        }
    }

    /// About how long it is, in bytes: as JSON if it still is JSON.
    pub fn size(&self) -> usize {
        match &self.0 {
            Form::Plain(text) => text.len(),
            Form::Quoted(raw) => raw.get().len(),
        }
    }

    /// A JSON value as a text: what a string says, otherwise the JSON.
    pub(crate) fn from_json(raw: &'a RawValue) -> Self {
        match raw.get().as_bytes() {
            [b'"', .., b'"'] => Self(Form::Quoted(Cow::Borrowed(raw))),
            b"null" => Self(Form::Plain(Cow::Borrowed(""))),
            _ => Self(Form::Plain(Cow::Borrowed(raw.get()))),
        }
    }

    fn into_owned(self) -> LazyText<'static> {
        LazyText(match self.0 {
            Form::Plain(text) => Form::Plain(Cow::Owned(text.into_owned())),
            Form::Quoted(raw) => Form::Quoted(Cow::Owned(raw.into_owned())),
        })
    }
}

impl Default for LazyText<'_> {
    fn default() -> Self {
        Self(Form::Plain(Cow::Borrowed("")))
    }
}

impl<'a> From<Cow<'a, str>> for LazyText<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self(Form::Plain(text))
    }
}

impl<'a> From<&'a str> for LazyText<'a> {
    fn from(text: &'a str) -> Self {
        Self(Form::Plain(Cow::Borrowed(text)))
    }
}

impl From<String> for LazyText<'_> {
    fn from(text: String) -> Self {
        Self(Form::Plain(Cow::Owned(text)))
    }
}

impl PartialEq for LazyText<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Serialize for LazyText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Form::Plain(text) => serializer.serialize_str(text),
            Form::Quoted(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LazyText<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(event: &AgentEvent<'_>) -> String {
        let text = serde_json::to_string(event).unwrap();
        let back: AgentEvent<'static> = serde_json::from_str(&text).unwrap();
        assert_eq!(&back, event);
        text
    }

    #[test]
    fn events_are_json_and_come_back() {
        let raw: &RawValue = serde_json::from_str(r#"{"b":1,"a":[2.50]}"#).unwrap();
        let call = AgentEvent::ToolCall {
            id: "t1".into(),
            server: Some("agentd".into()),
            name: "create_spec".into(),
            arguments: raw.into(),
        };
        assert_eq!(
            round_trip(&call),
            r#"{"event":"tool_call","id":"t1","server":"agentd","name":"create_spec","arguments":{"b":1,"a":[2.50]}}"#
        );
        let usage = Usage { input: 10, cached: 4, cache_write: 0, output: 3, reasoning: 1 };
        assert_eq!(
            round_trip(&AgentEvent::Usage { usage, cost_usd: None }),
            r#"{"event":"usage","input":10,"cached":4,"output":3,"reasoning":1}"#
        );
        round_trip(&AgentEvent::Text { text: "a\n\u{1F600}".into(), delta: true });
    }

    #[test]
    fn long_texts_are_cut_at_a_character_and_marked() {
        let text = "é".repeat(KEPT_BYTES);
        let event = AgentEvent::ToolResult { id: "1".into(), ok: true, output: text.into() };
        let AgentEvent::ToolResult { output, .. } = event.capped().into_owned() else { panic!() };
        assert!(output.size() < KEPT_BYTES + 100);
        assert!(output.text().ends_with(&format!("{CUT_MARK}{KEPT_BYTES}]")), "{}", output.size());
        let short = AgentEvent::Warning { message: "x".into() };
        assert!(matches!(short.capped(), Cow::Borrowed(_)));
    }

    #[test]
    fn lazy_texts_are_what_they_say() {
        for text in ["", "plain", "a \"b\" \\n\n\u{1F600}"] {
            let json = serde_json::to_string(text).unwrap();
            let raw: &RawValue = serde_json::from_str(&json).unwrap();
            let lazy = LazyText::from_json(raw);
            assert_eq!(lazy.text(), text);
            assert_eq!(lazy, LazyText::from(text));
            assert_eq!(serde_json::to_string(&lazy).unwrap(), json);
        }
        let raw: &RawValue = serde_json::from_str("{\"a\":1}").unwrap();
        assert_eq!(LazyText::from_json(raw).text(), "{\"a\":1}");
    }

    #[test]
    fn running_totals_become_differences() {
        let before = Usage { input: 100, cached: 50, cache_write: 0, output: 10, reasoning: 2 };
        let after = Usage { input: 300, cached: 90, cache_write: 0, output: 25, reasoning: 2 };
        let expected = Usage { input: 200, cached: 40, cache_write: 0, output: 15, reasoning: 0 };
        assert_eq!(after.since(before), expected);
        assert_eq!(before + expected, after);
    }
}
