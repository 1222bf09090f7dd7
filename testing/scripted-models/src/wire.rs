//! What the three wire formats have in common.

use serde_json::{Map, Value, json};

use crate::request::ModelRequest;
use crate::script::{Provider, Reply, Usage};
use crate::{anthropic, gemini, openai};

/// A tool call with the name that the request offers it under.
#[derive(Clone, Debug)]
pub(crate) struct WireCall {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) input: WireInput,
}

/// What a tool is called with.
#[derive(Clone, Debug)]
pub(crate) enum WireInput {
    Json(Value),
    /// For `OpenAI`'s freeform tools.
    Text(String),
}

impl WireInput {
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Json(value) => value.clone(),
            Self::Text(text) => Value::String(text.clone()),
        }
    }
}

/// One event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) name: Option<&'static str>,
    pub(crate) data: Value,
}

/// An answer in both shapes: clients that saw a stream break ask again without.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) events: Vec<Event>,
    pub(crate) whole: Value,
}

/// Everything an encoder needs.
pub(crate) struct Encoding<'a> {
    pub(crate) request: &'a ModelRequest,
    pub(crate) reply: &'a Reply,
    pub(crate) usage: Usage,
    pub(crate) calls: &'a [WireCall],
    /// Makes the ids in the answer unique, and the same in every run.
    pub(crate) sequence: usize,
}

impl Encoding<'_> {
    /// Makes an id such as `msg_00030001`.
    pub(crate) fn id(&self, prefix: &str, index: usize) -> String {
        format!("{prefix}_{:012x}{index:04x}", self.sequence)
    }

    /// Cuts the text into the pieces of a stream; at least one, maybe empty.
    pub(crate) fn pieces(&self, text: &str) -> Vec<String> {
        let size = if self.reply.piece == 0 { 400 } else { self.reply.piece };
        let characters: Vec<char> = text.chars().collect();
        if characters.is_empty() {
            return vec![String::new()];
        }
        characters.chunks(size).map(|piece| piece.iter().collect()).collect()
    }

    /// Encodes in the format that the request came in.
    pub(crate) fn answer(&self) -> Answer {
        match self.request.provider {
            Provider::Gemini => gemini::encode(self),
            Provider::OpenAi => openai::encode(self),
            Provider::Anthropic => anthropic::encode(self),
        }
    }
}

/// The body that a provider sends with an HTTP error.
pub(crate) fn error_body(provider: Provider, status: u16, message: &str) -> Value {
    match provider {
        Provider::Gemini => gemini::error_body(status, message),
        Provider::OpenAi => openai::error_body(status, message),
        Provider::Anthropic => anthropic::error_body(status, message),
    }
}

/// Makes up a value that follows a JSON schema, to answer side requests with.
pub(crate) fn example(schema: &Value, name: &str) -> Value {
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    if let Some(first) = schema.get("enum").and_then(|values| values.get(0)) {
        return first.clone();
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) = schema.get(choice).and_then(|choices| choices.get(0)) {
            return example(first, name);
        }
    }
    let kind = &schema["type"];
    let kind = kind.as_str().or_else(|| kind[0].as_str()).unwrap_or("object");
    match kind.to_lowercase().as_str() {
        "object" => {
            let none = Map::new();
            let properties = schema["properties"].as_object().unwrap_or(&none);
            let fields = properties.iter().map(|(key, value)| (key.clone(), example(value, key)));
            Value::Object(fields.collect())
        }
        "array" => json!([]),
        "number" | "integer" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "boolean" => json!(false),
        "null" => Value::Null,
        _ => json!(format!("scripted {name}")),
    }
}
