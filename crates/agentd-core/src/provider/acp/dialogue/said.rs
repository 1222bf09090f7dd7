//! What an agent says during its turn.

use super::Dialogue;
use crate::agent::AgentKind;
use crate::event::AgentEvent;
use crate::provider::Sink;
use crate::provider::acp::failure;
use crate::provider::acp::message::{Update, joined, texts};
use crate::provider::acp::tool_call::output;
use crate::provider::acp::usage::ChunkMeta;
use crate::text::head;

impl Dialogue {
    pub(super) fn update(&mut self, update: &Update<'_>, sink: &mut Sink<'_>) {
        match &*update.what {
            "agent_message_chunk" => self.chunk(update, sink),
            "tool_call" | "tool_call_update" => self.tool(update, sink),
            "session_info_update" if update.meta.is_some_and(failure::is_breakdown) => {
                self.broken.get_or_insert_default();
            }
            "usage_update" => {
                if let Some(amount) = update.cost.as_ref().and_then(|cost| cost.amount) {
                    self.tally.cost(Some((amount - self.cost_before).max(0.0)), sink);
                    let usage = self.tally.usage.unwrap_or_default();
                    sink(AgentEvent::Usage { usage, cost_usd: self.tally.cost_usd() });
                }
            }
            _ => {}
        }
    }

    fn chunk(&mut self, update: &Update<'_>, sink: &mut Sink<'_>) {
        let meta = update.meta.and_then(|meta| serde_json::from_str::<ChunkMeta>(meta.get()).ok());
        if let Some(usage) = meta.and_then(|meta| meta.usage) {
            self.counted = self.counted + usage.usage();
            self.report_usage(self.counted, sink);
        }
        let text = joined(update.content.map(texts).unwrap_or_default());
        let text = text.text();
        if text.is_empty() {
            return;
        }
        let id = update.message_id.as_deref().unwrap_or_default();
        // The adapter of codex has an id for all that a model says; the rest are its own remarks.
        if self.agent == AgentKind::Codex && id.is_empty() {
            match &mut self.broken {
                Some(broken) => broken.push_str(head(&text, 2000)),
                None => sink(AgentEvent::Warning { message: text }),
            }
            return;
        }
        if id != self.message_id {
            self.tally.text.end_message();
            head(id, 200).clone_into(&mut self.message_id);
        }
        self.tally.text.delta(&text);
        sink(AgentEvent::Text { text, delta: true });
    }

    fn tool(&mut self, update: &Update<'_>, sink: &mut Sink<'_>) {
        let Some(call) = self.calls.see(update) else { return };
        let status = update.status.as_deref().unwrap_or_default();
        let is_answered = matches!(status, "completed" | "failed");
        if is_answered || status == "in_progress" || call.has_arguments() {
            let own = call.own_tool(self.request.own_tools(), &[]);
            if let Some(event) = call.report(own) {
                self.tally.text.end_message();
                self.tally.tool_call(event, sink);
            }
        }
        if is_answered {
            let id = update.tool_call_id.clone().unwrap_or_default();
            self.calls.close(&id);
            let ok = status == "completed";
            self.tally.tool_result(id.0, ok, output(update), sink);
        }
    }
}
