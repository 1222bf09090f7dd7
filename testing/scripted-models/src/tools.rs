//! Finding the name under which a CLI offers a tool.
//!
//! A script says `write_note`. gemini offers `mcp_agentd_write_note`, claude
//! `mcp__agentd__write_note`, and codex, depending on the model, a function in
//! a namespace, a function that its `tool_search` would find, or JavaScript.

use serde_json::Value;

use crate::request::{ModelRequest, Offered};
use crate::script::{Provider, ToolCall};
use crate::wire::{WireCall, WireInput};

/// What the JavaScript prints if there is no such tool: in code mode only the
/// program, not the model, can know whether there is one.
const NOT_OFFERED: &str = "scripted-models: not offered: ";

/// Turns a scripted call into one that the request allows; `Err` is the bare
/// call, to be sent although no such tool was offered.
pub(crate) fn resolve(
    call: &ToolCall,
    request: &ModelRequest,
    mcp_server: &str,
) -> Result<WireCall, WireCall> {
    if let Some(tool) = find(call, &request.tools) {
        let input = if tool.freeform {
            WireInput::Text(freeform_text(&call.arguments))
        } else {
            WireInput::Json(arguments(call))
        };
        let name = tool.name.clone();
        return Ok(WireCall { name, namespace: tool.namespace.clone(), input });
    }
    let server = call.server.as_deref().unwrap_or(mcp_server);
    let bare = WireCall {
        name: call.tool.clone(),
        namespace: None,
        input: WireInput::Json(arguments(call)),
    };
    if request.provider != Provider::OpenAi {
        // Some CLIs offer tools of servers only to a model that has searched for them.
        let search = request.tools.iter().find(|tool| tool.name == SEARCH);
        return search.map(|_| searching(call, server)).ok_or(bare);
    }
    if let Some(exec) = request.tools.iter().find(|tool| tool.freeform && tool.name == "exec") {
        return Ok(WireCall {
            name: exec.name.clone(),
            namespace: exec.namespace.clone(),
            input: WireInput::Text(javascript(call, server)),
        });
    }
    if request.tools.iter().any(|tool| tool.name == SEARCH) {
        // A deferred tool may be called without having been searched for.
        return Ok(WireCall { namespace: Some(format!("mcp__{server}")), ..bare });
    }
    Err(bare)
}

/// The tool with which a model searches for others.
pub(crate) const SEARCH: &str = "tool_search";

/// A search for a tool by its name.
fn searching(call: &ToolCall, server: &str) -> WireCall {
    let query = format!("select:mcp__{server}__{}", call.tool);
    WireCall {
        name: SEARCH.to_owned(),
        namespace: None,
        input: WireInput::Json(serde_json::json!({ "query": query })),
    }
}

/// The tools that a program looked for in vain, as its result says.
pub(crate) fn missed_by_program(request: &ModelRequest) -> Vec<String> {
    let results = request.tool_results.iter();
    let missed = results.filter_map(|result| Some(result.split_once(NOT_OFFERED)?.1));
    missed.map(|rest| rest.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

/// Finds the tool by its own name, otherwise by a name that ends in it.
fn find<'a>(call: &ToolCall, tools: &'a [Offered]) -> Option<&'a Offered> {
    let is_of_server = |tool: &&Offered| {
        let Some(server) = &call.server else { return true };
        tool.name.contains(server.as_str())
            || tool.namespace.as_ref().is_some_and(|namespace| namespace.contains(server.as_str()))
    };
    let ends_in_it = |tool: &&Offered| {
        tool.name.strip_suffix(&call.tool).is_some_and(|prefix| prefix.ends_with('_'))
    };
    let mut candidates = tools.iter().filter(is_of_server);
    candidates.clone().find(|tool| tool.name == call.tool).or_else(|| candidates.find(ends_in_it))
}

/// No arguments are an empty object to a tool.
fn arguments(call: &ToolCall) -> Value {
    if call.arguments.is_null() {
        Value::Object(serde_json::Map::new())
    } else {
        call.arguments.clone()
    }
}

fn freeform_text(arguments: &Value) -> String {
    arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned)
}

/// The program that makes codex's code mode call one tool and return what it
/// said. `tools`, `ALL_TOOLS` and `text` are what code mode offers.
fn javascript(call: &ToolCall, server: &str) -> String {
    let names = serde_json::json!([call.tool, format!("mcp__{server}__{}", call.tool)]);
    format!(
        "const names = {names};\n\
         const offered = ALL_TOOLS.map((tool) => tool.name);\n\
         const name = names.find((name) => offered.includes(name));\n\
         if (name === undefined) {{\n\
         \x20 text(`{NOT_OFFERED}${{names[0]}}`);\n\
         }} else {{\n\
         \x20 const result = await tools[name]({arguments});\n\
         \x20 text(typeof result === \"string\" ? result : JSON.stringify(result));\n\
         }}\n",
        arguments = arguments(call),
    )
}
