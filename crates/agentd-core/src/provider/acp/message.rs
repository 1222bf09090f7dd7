//! The messages of the Agent Client Protocol, version 1, as far as they are needed: what agents
//! send is read leniently, since a field that nobody here wants may be anything.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::LazyText;
use crate::provider::tally::Text;

/// The version of the protocol that is spoken here.
pub(super) const PROTOCOL: u64 = 1;

/// The code of an error that says that somebody has to log in.
pub(super) const AUTH_REQUIRED: i64 = -32_000;
/// The code of an error that says that something is not there.
pub(super) const NOT_FOUND: i64 = -32_002;
/// The code of an error that says that there is no such method.
pub(super) const NO_METHOD: i64 = -32_601;

/// A line of an agent: a request, a notification or a response.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) error: Option<ErrorBody<'a>>,
}

#[derive(Deserialize)]
pub(super) struct ErrorBody<'a> {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(borrow, default)]
    pub(super) message: Text<'a>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
}

/// The result of `initialize`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialized {
    pub(super) protocol_version: Option<u64>,
    #[serde(default)]
    pub(super) agent_info: Option<AgentInfo>,
    #[serde(default)]
    pub(super) agent_capabilities: AgentCapabilities,
}

#[derive(Deserialize, Default)]
pub(super) struct AgentInfo {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) version: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AgentCapabilities {
    pub(super) load_session: bool,
    pub(super) session_capabilities: SessionCapabilities,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct SessionCapabilities {
    pub(super) resume: Option<serde::de::IgnoredAny>,
    pub(super) close: Option<serde::de::IgnoredAny>,
}

/// The result of `session/new`, `session/load` and `session/resume`.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Opened {
    pub(super) session_id: Option<String>,
    pub(super) modes: Option<Modes>,
    pub(super) models: Option<Models>,
    pub(super) config_options: Vec<ConfigOption>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Modes {
    pub(super) current_mode_id: String,
    pub(super) available_modes: Vec<Mode>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Mode {
    pub(super) id: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Models {
    pub(super) current_model_id: String,
    pub(super) available_models: Vec<Model>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Model {
    pub(super) model_id: String,
}

/// An option of a session: its mode, its model, its effort.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ConfigOption {
    pub(super) id: String,
    pub(super) category: Option<String>,
    pub(super) current_value: serde_json::Value,
    pub(super) options: Vec<ConfigChoice>,
}

/// A value of an option, or a group of values.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ConfigChoice {
    pub(super) value: Option<String>,
    pub(super) options: Vec<ConfigChoice>,
}

impl ConfigOption {
    /// The values that it can have.
    pub(super) fn values(&self) -> Vec<&str> {
        let groups = self.options.iter().flat_map(|choice| &choice.options);
        let all = self.options.iter().chain(groups);
        all.filter_map(|choice| choice.value.as_deref()).collect()
    }
}

/// The params of `session/update`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Notification<'a> {
    #[serde(borrow, default)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) update: Update<'a>,
}

/// What a `session/update` says. All kinds share one type: most fields are missing in most.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Update<'a> {
    #[serde(borrow, default, rename = "sessionUpdate")]
    pub(super) what: Text<'a>,
    /// A block for a chunk, a list of blocks for a tool.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) tool_call_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) title: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) raw_input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) raw_output: Option<&'a RawValue>,
    pub(super) cost: Option<Cost>,
    #[serde(borrow, rename = "_meta")]
    pub(super) meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Cost {
    pub(super) amount: Option<f64>,
}

/// The params of `session/request_permission`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionRequest<'a> {
    #[serde(borrow)]
    pub(super) tool_call: Update<'a>,
    #[serde(borrow, default)]
    pub(super) options: Vec<PermissionOption<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption<'a> {
    #[serde(borrow, default)]
    pub(super) option_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) kind: Text<'a>,
}

/// A block of content.
#[derive(Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Option<&'a RawValue>,
    /// In the content of a tool, the block itself is one level down.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
}

/// The texts in a block, in a list of blocks, or in a text itself.
pub(super) fn texts(content: &RawValue) -> Vec<LazyText<'_>> {
    let text = content.get();
    if text.starts_with('"') {
        return vec![LazyText::from_json(content)];
    }
    let blocks: Vec<Block<'_>> = match serde_json::from_str(text) {
        Ok(blocks) => blocks,
        Err(_) => serde_json::from_str(text).map(|block| vec![block]).unwrap_or_default(),
    };
    let inner = blocks.into_iter().flat_map(|block| match (block.text, block.content) {
        (Some(text), _) if &*block.kind == "text" => vec![LazyText::from_json(text)],
        (None, Some(content)) => texts_below(content),
        _ => Vec::new(),
    });
    inner.collect()
}

/// One level down, and no further: nothing that an agent sends may make this recurse.
fn texts_below(content: &RawValue) -> Vec<LazyText<'_>> {
    let block: Result<Block<'_>, _> = serde_json::from_str(content.get());
    let text = block.ok().filter(|block| &*block.kind == "text").and_then(|block| block.text);
    text.map(LazyText::from_json).into_iter().collect()
}

/// Several texts as one.
pub(super) fn joined(mut texts: Vec<LazyText<'_>>) -> LazyText<'_> {
    match texts.len() {
        0 => LazyText::default(),
        1 => texts.remove(0),
        _ => {
            let texts: Vec<_> = texts.iter().map(LazyText::text).collect();
            texts.join("\n").into()
        }
    }
}
