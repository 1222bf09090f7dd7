//! One model request, whatever wire format it came in.

use serde::Serialize;
use serde_json::Value;

use crate::script::Provider;
use crate::tools::SEARCH;

/// What a CLI asked of a model.
#[derive(Clone, Debug, Serialize)]
pub struct ModelRequest {
    /// The wire format.
    pub provider: Provider,
    /// Whether the user's prompt is behind it.
    pub kind: RequestKind,
    /// The model asked for.
    pub model: String,
    /// Whether the answer is to be a stream of events.
    pub stream: bool,
    /// The CLI's own id of the session, where the request has one.
    pub session: String,
    /// The system prompt and the context that the CLI adds to it.
    pub system: String,
    /// The conversation without that context.
    pub messages: Vec<Message>,
    /// The tools offered to the model.
    pub tools: Vec<Offered>,
    /// The JSON schema that the answer must follow.
    pub schema: Option<Value>,
    /// The latest prompt of the user.
    pub prompt: String,
    /// How many times the model has answered since that prompt.
    pub round: usize,
    /// The tool results that end the request.
    pub tool_results: Vec<String>,
}

/// Whether a request is the user's or the CLI's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestKind {
    /// The user's prompt, or what follows from it.
    Main,
    /// A title, a routing decision, a summary.
    Side,
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// The text in it.
    pub text: String,
    /// The results of tools in it.
    pub tool_results: Vec<String>,
    /// The names of the tools called in it.
    pub tool_calls: Vec<String>,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, or a tool.
    User,
    /// The model.
    Model,
}

/// A tool that a request offers to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offered {
    /// The name on the wire.
    pub name: String,
    /// The group it is in (`OpenAI` only).
    pub namespace: Option<String>,
    /// Whether it takes text rather than JSON (`OpenAI` only).
    pub freeform: bool,
}

impl ModelRequest {
    /// Starts an empty main request.
    pub(crate) fn new(provider: Provider, model: &str) -> Self {
        Self {
            provider,
            kind: RequestKind::Main,
            model: model.to_owned(),
            stream: false,
            session: String::new(),
            system: String::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            schema: None,
            prompt: String::new(),
            round: 0,
            tool_results: Vec::new(),
        }
    }

    /// Adds text that the CLI put in, which is not a prompt.
    pub(crate) fn add_context(&mut self, text: &str) {
        self.system.push('\n');
        self.system.push_str(text);
    }

    /// Adds a message of the model, as part of the round before if that is not
    /// over: some formats spread one answer over several items.
    pub(crate) fn add_to_round(&mut self, text: &str, call: Option<&str>) {
        if self.messages.last().is_none_or(|last| last.role != Role::Model) {
            self.messages.push(Message {
                role: Role::Model,
                text: String::new(),
                tool_results: Vec::new(),
                tool_calls: Vec::new(),
            });
        }
        if let Some(last) = self.messages.last_mut() {
            last.text.push_str(text);
            last.tool_calls.extend(call.map(str::to_owned));
        }
    }

    /// Derives the latest prompt, the round and the trailing tool results.
    pub(crate) fn derive_round(&mut self) {
        self.prompt.clear();
        self.round = 0;
        for message in &self.messages {
            match message.role {
                // A search for tools is no answer of the script.
                Role::Model if message.tool_calls.iter().any(|tool| tool == SEARCH) => {}
                Role::Model => self.round += 1,
                // Text beside tool results is a reminder of the CLI, no prompt.
                Role::User if message.tool_results.is_empty() => {
                    if !message.text.trim().is_empty() {
                        self.prompt.clone_from(&message.text);
                        self.round = 0;
                    }
                }
                Role::User => {}
            }
        }
        self.tool_results =
            self.messages.last().map(|last| last.tool_results.clone()).unwrap_or_default();
    }

    /// How many prompts the user has given, the latest included.
    pub(crate) fn prompts(&self) -> usize {
        let is_prompt = |message: &&Message| {
            message.role == Role::User
                && message.tool_results.is_empty()
                && !message.text.trim().is_empty()
        };
        self.messages.iter().filter(is_prompt).count()
    }

    /// The working directory that the CLI names to the model, or nothing.
    pub(crate) fn working_directory(&self) -> String {
        const MARKS: [&str; 4] = [
            "<cwd>",
            "Primary working directory: ",
            "Working directory: ",
            "Workspace Directories:**\n  - ",
        ];
        let texts = std::iter::once(&self.system).chain(self.messages.iter().map(|m| &m.text));
        for text in texts {
            for mark in MARKS {
                if let Some((_, rest)) = text.split_once(mark) {
                    let end = rest.find(['<', '\n']).unwrap_or(rest.len());
                    return rest[..end].trim().to_owned();
                }
            }
        }
        String::new()
    }
}

/// Flattens the ways in which the formats nest text.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => ["text", "content", "output"]
            .iter()
            .find_map(|key| fields.get(*key))
            .map_or_else(|| value.to_string(), text_of),
        other => other.to_string(),
    }
}

/// The items of an array, or nothing.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text of a string, or nothing.
pub(crate) fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
