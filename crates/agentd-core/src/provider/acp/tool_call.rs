//! The calls of tools in a dialogue: which tool, with which arguments, and what it answered.
//!
//! Agents report a call in several messages, and only some of them say what is wanted: the first
//! may have no arguments, none may have a name. What is known is put together until it is enough
//! for one event.

use std::borrow::Cow;
use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::message::{PermissionOption, Update, joined, texts};
use crate::event::{AgentEvent, Json, LazyText};
use crate::provider::MCP_SERVER;
use crate::provider::tally::Text;
use crate::text::head;

/// How many calls are kept in mind; older ones are taken for answered.
const KEPT: usize = 64;
/// The longest name of a tool that is reported, and the longest text that is looked at for one.
const NAME_BYTES: usize = 100;
/// The most arguments that are kept before a call is reported.
const ARGUMENT_BYTES: usize = 4 << 20;

/// What a tool does, in the words of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolKind {
    /// It reads files or searches them, or only thinks.
    Reads,
    /// It changes files, runs commands, uses the network, or changes how the agent works.
    Acts,
    /// It can be anything; tools of MCP servers are of this kind.
    Other,
}

impl ToolKind {
    fn of(word: &str) -> Self {
        match word {
            "read" | "search" | "think" => Self::Reads,
            "edit" | "delete" | "move" | "execute" | "fetch" | "switch_mode" => Self::Acts,
            _ => Self::Other,
        }
    }
}

/// A call of a tool, as far as it is known.
#[derive(Debug)]
pub(super) struct SeenCall {
    id: String,
    title: String,
    kind: Option<ToolKind>,
    /// The name that the agent gives it besides the title.
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
    reported: bool,
}

/// The calls that were not answered yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: VecDeque<SeenCall>,
}

/// `rawInput` of agents that say which server a tool is of. Anything else in it is that of another tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct McpInput<'a> {
    #[serde(borrow)]
    server: Text<'a>,
    #[serde(borrow)]
    tool: Text<'a>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// What is known about a name in `_meta`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NameMeta<'a> {
    #[serde(borrow)]
    tool_name: Option<Text<'a>>,
    #[serde(borrow)]
    claude_code: Option<ClaudeMeta<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaudeMeta<'a> {
    #[serde(borrow)]
    tool_name: Option<Text<'a>>,
}

impl Calls {
    /// Takes what a message says about a call. None if it names no call.
    pub(super) fn see(&mut self, update: &Update<'_>) -> Option<&mut SeenCall> {
        let id = update.tool_call_id.as_deref()?;
        let at = match self.open.iter().rposition(|call| call.id == id) {
            Some(at) => at,
            None => {
                if self.open.len() >= KEPT {
                    self.open.pop_front();
                }
                self.open.push_back(SeenCall {
                    id: head(id, 4 * NAME_BYTES).to_owned(),
                    title: String::new(),
                    kind: None,
                    name: None,
                    arguments: None,
                    reported: false,
                });
                self.open.len() - 1
            }
        };
        let call = self.open.get_mut(at)?;
        call.take(update);
        Some(call)
    }

    /// Forgets a call that was answered.
    pub(super) fn close(&mut self, id: &str) {
        self.open.retain(|call| call.id != id);
    }
}

impl SeenCall {
    fn take(&mut self, update: &Update<'_>) {
        if let Some(title) = &update.title {
            head(title, 4 * NAME_BYTES).clone_into(&mut self.title);
        }
        if let Some(kind) = &update.kind {
            self.kind = Some(ToolKind::of(kind));
        }
        let meta =
            update.meta.and_then(|meta| serde_json::from_str::<NameMeta<'_>>(meta.get()).ok());
        let name = meta.and_then(|meta| {
            meta.claude_code.and_then(|claude| claude.tool_name).or(meta.tool_name)
        });
        if let Some(name) = name {
            self.name = Some(head(&name, NAME_BYTES).to_owned());
        }
        let input = update.raw_input.filter(|input| says_something(input));
        if let Some(input) = input.filter(|input| input.get().len() <= ARGUMENT_BYTES) {
            self.arguments = Some(input.to_owned());
        }
    }

    /// What it does.
    pub(super) fn kind(&self) -> ToolKind {
        self.kind.unwrap_or(ToolKind::Other)
    }

    /// Whether its arguments are known.
    pub(super) fn has_arguments(&self) -> bool {
        self.arguments.is_some()
    }

    /// Arguments that only a request for permission shows, as a text.
    pub(super) fn take_shown_arguments(&mut self, content: Option<&RawValue>) {
        if self.arguments.is_some() {
            return;
        }
        let shown = content.map(texts).unwrap_or_default();
        let object = shown.iter().map(LazyText::text).find(|text| text.starts_with('{'));
        self.arguments = object.and_then(|text| RawValue::from_string(text.into_owned()).ok());
    }

    /// The name of agentd's tool that is called, if it is one. `tools` are those that the session
    /// has.
    ///
    /// A title may hold what a model has written, such as the command that it wants to run. So the
    /// name has to be all of it, in one of the forms in which agents write names. A tool that
    /// acts has to name agentd too: the agent may have an `edit_file` of its own.
    pub(super) fn own_tool<'t>(
        &self,
        tools: &'t [String],
        options: &[PermissionOption<'_>],
    ) -> Option<&'t str> {
        if let Some(input) = self.mcp_input() {
            let is_named = |tool: &&String| ***tool == *input.tool;
            let tool = tools.iter().find(is_named).map(String::as_str);
            return tool.filter(|_| &*input.server == MCP_SERVER);
        }
        let names = [self.name.as_deref().unwrap_or_default(), &self.title];
        let find = |texts: &[&str], is_tool: fn(&str, &str) -> bool| {
            let named = |tool: &&String| texts.iter().any(|text| is_tool(text, tool));
            tools.iter().find(named).map(String::as_str)
        };
        let named = find(&names, names_tool_of_agentd);
        if named.is_some() || self.kind() == ToolKind::Acts {
            return named;
        }
        let bare = find(&names, |text, tool| text == tool);
        if self.kind() == ToolKind::Other && bare.is_some() {
            return bare;
        }
        // Some agents ask for permission without any name but those of their options.
        let options: Vec<&str> = options.iter().map(|option| &*option.name).collect();
        find(&options, |text, tool| text.rsplit_once(": ").is_some_and(|(_, name)| name == tool))
    }

    fn mcp_input(&self) -> Option<McpInput<'_>> {
        serde_json::from_str(self.arguments.as_ref()?.get()).ok()
    }

    /// The event of the call, once.
    pub(super) fn report(&mut self, own: Option<&str>) -> Option<AgentEvent<'static>> {
        if std::mem::replace(&mut self.reported, true) {
            return None;
        }
        let arguments = match self.mcp_input().filter(|_| own.is_some()) {
            Some(input) => input.arguments.map(ToOwned::to_owned),
            None => self.arguments.clone(),
        };
        let arguments = arguments.map_or_else(Json::null, Json::from);
        let name = own.unwrap_or_else(|| match &self.name {
            Some(name) => name,
            None => head(&self.title, NAME_BYTES),
        });
        Some(AgentEvent::ToolCall {
            id: Cow::Owned(self.id.clone()),
            server: own.map(|_| Cow::Borrowed(MCP_SERVER)),
            name: Cow::Owned(name.to_owned()),
            arguments,
        })
    }

    /// What people call it, for a list of what was refused.
    pub(super) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| head(&self.title, NAME_BYTES))
    }
}

/// Whether arguments are more than a placeholder.
fn says_something(input: &RawValue) -> bool {
    !matches!(input.get().trim(), "{}" | "null" | "\"\"")
}

/// Whether a text is the name of a tool of agentd's server, and nothing else.
fn names_tool_of_agentd(text: &str, tool: &str) -> bool {
    const JOINTS: [&str; 6] = ["__", "_", ".", "/", ":", " "];
    let with_server = |text: &str| {
        let rest = text.strip_prefix(MCP_SERVER).and_then(|rest| rest.strip_suffix(tool));
        rest.is_some_and(|joint| JOINTS.contains(&joint))
    };
    let after_mcp = text.strip_prefix("mcp");
    let rest = after_mcp.and_then(|text| JOINTS.iter().find_map(|joint| text.strip_prefix(joint)));
    let in_words = text.strip_prefix(tool).and_then(|rest| rest.strip_prefix(" ("));
    with_server(text)
        || rest.is_some_and(with_server)
        || in_words.and_then(|rest| rest.strip_suffix(" MCP Server)")) == Some(MCP_SERVER)
}

/// `rawOutput`, in the forms that agents give it.
#[derive(Deserialize)]
struct OutputForms<'a> {
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<OutputResult<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OutputResult<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// What a tool answered, as text. The content may be dressed up for people, so the raw output
/// comes first.
pub(super) fn output<'a>(update: &Update<'a>) -> LazyText<'a> {
    if let Some(raw) = update.raw_output {
        let direct = texts(raw);
        if !direct.is_empty() {
            return joined(direct);
        }
        if let Ok(forms) = serde_json::from_str::<OutputForms<'a>>(raw.get()) {
            let content = forms.result.and_then(|result| result.content);
            let said = [content, forms.output, forms.error].into_iter().flatten();
            for form in said {
                let found = texts(form);
                if !found.is_empty() {
                    return joined(found);
                }
            }
        }
    }
    let content = update.content.map(texts).unwrap_or_default();
    match (content.is_empty(), update.raw_output) {
        (true, Some(raw)) => LazyText::from_json(raw),
        _ => joined(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<String> {
        ["create_spec", "read_file", "edit_file", "append_review"].map(str::to_owned).to_vec()
    }

    fn own(json: &str, options: &[&str]) -> Option<String> {
        let update: Update<'_> = serde_json::from_str(json).unwrap();
        let options: Vec<String> =
            options.iter().map(|name| format!(r#"{{"optionId":"x","name":"{name}"}}"#)).collect();
        let options: Vec<PermissionOption<'_>> =
            options.iter().map(|option| serde_json::from_str(option).unwrap()).collect();
        let mut calls = Calls::default();
        calls.see(&update)?.own_tool(&tools(), &options).map(str::to_owned)
    }

    // As the real agents name them: gemini, claude, codex, opencode, qwen.
    #[test]
    fn tools_of_agentd_are_known_under_each_name() {
        let cases: [(&str, &[&str], Option<&str>); 22] = [
            (
                r#"{"toolCallId":"mcp_agentd_create_spec__mcp_agentd_create_spec_17_0","title":"create_spec (agentd MCP Server)","kind":"other"}"#,
                &[],
                Some("create_spec"),
            ),
            (
                r#"{"toolCallId":"t","title":"mcp__agentd__create_spec","kind":"other"}"#,
                &[],
                Some("create_spec"),
            ),
            (
                r#"{"toolCallId":"t","title":"mcp.agentd.create_spec","kind":"execute","rawInput":{"server":"agentd","tool":"create_spec","arguments":{}}}"#,
                &[],
                Some("create_spec"),
            ),
            (
                r#"{"toolCallId":"t","title":"agentd_create_spec","kind":"other"}"#,
                &[],
                Some("create_spec"),
            ),
            (
                r#"{"toolCallId":"t","title":"{\"id\":1}","kind":"other","rawInput":{"id":1}}"#,
                &["Always Allow in project: create_spec", "Allow"],
                Some("create_spec"),
            ),
            // Another server, or the agent's own tools.
            (
                r#"{"toolCallId":"t","title":"x","kind":"execute","rawInput":{"server":"evil","tool":"create_spec"}}"#,
                &[],
                None,
            ),
            (r#"{"toolCallId":"t","title":"edit_file","kind":"edit"}"#, &[], None),
            (r#"{"toolCallId":"t","title":"rm -rf agentd","kind":"execute"}"#, &[], None),
            (r#"{"toolCallId":"t","title":"create_specs","kind":"other"}"#, &[], None),
            (r#"{"toolCallId":"t","title":"recreate_spec","kind":"other"}"#, &[], None),
            (r#"{"toolCallId":"t","title":"echo create_spec","kind":"execute"}"#, &["Allow"], None),
            (r#"{"title":"create_spec"}"#, &[], None),
            // What a model wants to run is in the title, or beside the names in the input.
            (
                r#"{"toolCallId":"t","title":"curl http://evil/?agentd create_spec","kind":"execute"}"#,
                &[],
                None,
            ),
            (
                r#"{"toolCallId":"t","title":"cat agentd/x; sh -c read_file","kind":"execute"}"#,
                &[],
                None,
            ),
            (
                r#"{"toolCallId":"t","title":"grep append_review agentd/","kind":"execute"}"#,
                &[],
                None,
            ),
            (r#"{"toolCallId":"t","title":"sh agentd/create_spec","kind":"edit"}"#, &[], None),
            (
                r#"{"toolCallId":"agentd_create_spec","title":"rm -rf /","kind":"execute"}"#,
                &[],
                None,
            ),
            (
                r#"{"toolCallId":"t","title":"rm -rf x","kind":"execute","rawInput":{"server":"agentd","tool":"create_spec","command":"rm -rf x"}}"#,
                &[],
                None,
            ),
            (
                r#"{"toolCallId":"t","title":"create_spec (evil MCP Server)","kind":"other"}"#,
                &[],
                None,
            ),
            (r#"{"toolCallId":"t","title":"run create_spec","kind":"other"}"#, &[], None),
            (r#"{"toolCallId":"t","title":"x","kind":"other"}"#, &["run create_spec"], None),
            (
                r#"{"toolCallId":"t","title":"create_spec","kind":"other"}"#,
                &[],
                Some("create_spec"),
            ),
        ];
        for (json, options, expected) in cases {
            assert_eq!(own(json, options).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn answers_are_found_in_every_form() {
        for (json, expected) in [
            (r#"{"rawOutput":"noted","content":[]}"#, "noted"),
            (r#"{"rawOutput":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, "a\nb"),
            (r#"{"rawOutput":{"output":"noted","metadata":{}}}"#, "noted"),
            (
                r#"{"rawOutput":{"result":{"content":[{"type":"text","text":"x"}]},"error":null}}"#,
                "x",
            ),
            (r#"{"content":[{"type":"content","content":{"type":"text","text":"y"}}]}"#, "y"),
            (r#"{"rawOutput":{"exit":1}}"#, r#"{"exit":1}"#),
            ("{}", ""),
        ] {
            let update: Update<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(output(&update).text(), expected, "{json}");
        }
    }
}
