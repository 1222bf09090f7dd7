//! Tools and their answers in the words of the protocol.

use std::sync::Arc;

use agentd_core::ids::ChangeId;
use agentd_engine::tools::{Answer, Tool};
use rmcp::model::{CallToolResult, ContentBlock, Tool as Description, ToolAnnotations};

/// The tool as clients see it.
pub(super) fn describe(tool: &Tool, bound: Option<&ChangeId>) -> Description {
    // What clients decide by. `idempotentHint` is left out: nobody asks for it, and
    // the list has to stay small.
    let annotations = ToolAnnotations::new().read_only(tool.read_only).open_world(false);
    // Of a tool that only reads, it says nothing.
    let annotations = if tool.read_only { annotations } else { annotations.destructive(false) };
    let description = Description::new(tool.name, tool.purpose, Arc::new(tool.input(bound)))
        .with_annotations(annotations);
    match tool.output() {
        Some(schema) => description.with_raw_output_schema(Arc::new(schema)),
        None => description,
    }
}

/// The answer as clients get it: the words as text, and the value beside them.
pub(super) fn result(answer: Answer) -> CallToolResult {
    let Answer { value, words, note } = answer;
    let content = [Some(words), note].into_iter().flatten().map(ContentBlock::text).collect();
    match value {
        Some(value) => {
            let mut result = CallToolResult::structured(value);
            result.content = content;
            result
        }
        None => CallToolResult::success(content),
    }
}
