//! What an agent prints, as it comes.

use std::borrow::Cow;
use std::time::Duration;

use agentd_core::event::AgentEvent;
use agentd_core::provider::{Decoder, MCP_SERVER};

use super::{Observer, Spending};
use crate::agents::run_record::RunWriter;
use crate::agents::work_tree::WorkTree;
use crate::process::{Flow, Line, Watcher};

/// Decodes, records and shows what an agent prints.
pub(super) struct OutputHandler<'a, 'o> {
    pub(super) decoder: Box<dyn Decoder>,
    pub(super) record: RunWriter,
    pub(super) observer: &'a mut Observer<'o>,
    /// A failure has been reported already.
    pub(super) failed: bool,
    /// What an implementer changes.
    pub(super) tree: Option<WorkTree>,
    /// What the call may use.
    pub(super) spending: Spending,
    /// The model that it uses.
    pub(super) model: Option<String>,
    /// It has used more than it may, and was ended for that.
    pub(super) used_up: bool,
    /// Whether the agent is talked to.
    pub(super) is_dialogue: bool,
}

/// Whether what was done so far is about to be shown to agentd: a replay must have done it by then.
fn shows_work(event: &AgentEvent<'_>) -> bool {
    matches!(event, AgentEvent::ToolCall { server: Some(server), name, .. }
        if server == MCP_SERVER && name == "complete_task")
}

/// Lines that are not UTF-8 are looked at up to this size only: replacing what is
/// wrong in them may triple them.
pub(super) const LOSSY_BYTES: usize = 1 << 20;

impl Watcher for OutputHandler<'_, '_> {
    fn line(&mut self, line: Line<'_>) -> Flow {
        if line.bytes.is_empty() && line.dropped == 0 {
            return Flow::Continue;
        }
        let mut dropped = line.dropped;
        let text = if let Ok(text) = std::str::from_utf8(line.bytes) {
            Cow::Borrowed(text)
        } else {
            let kept = &line.bytes[..line.bytes.len().min(LOSSY_BYTES)];
            dropped += (line.bytes.len() - kept.len()) as u64;
            String::from_utf8_lossy(kept)
        };
        self.record.raw(&text);
        self.decode(|decoder, take| {
            if dropped > 0 {
                let message = format!("a line was cut: {dropped} bytes of it were dropped");
                take(AgentEvent::Warning { message: message.into() });
            } else {
                decoder.line(&text, take);
            }
        })
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.record.stderr(bytes);
    }

    fn pause(&mut self) {
        self.record.flush();
    }

    fn input(&mut self) -> Vec<u8> {
        self.decoder.take_output().into_bytes()
    }

    fn is_over(&self) -> bool {
        self.decoder.is_over()
    }

    fn wants_silence(&self) -> Option<Duration> {
        self.decoder.wants_silence()
    }

    fn silence(&mut self) {
        self.decode(|decoder, take| decoder.silence(take));
    }

    fn stop(&mut self) -> bool {
        self.decoder.cancel();
        self.is_dialogue
    }
}

impl OutputHandler<'_, '_> {
    /// Records and shows what the decoder makes of something, and says whether the call may
    /// continue.
    fn decode(
        &mut self,
        work: impl FnOnce(&mut Box<dyn Decoder>, &mut dyn FnMut(AgentEvent<'_>)),
    ) -> Flow {
        let Self { decoder, record, observer, failed, tree, spending, model, used_up, .. } = self;
        let was_used_up = *used_up;
        let mut take = |event: AgentEvent<'_>| {
            if let Some(tree) = tree.as_mut().filter(|_| shows_work(&event)) {
                record.files(&tree.changes());
            }
            record.event(&event);
            observer(&event);
            match &event {
                AgentEvent::Session { model: Some(said), .. } => {
                    *model = Some(said.clone().into_owned());
                }
                AgentEvent::Usage { usage, cost_usd } => {
                    *used_up |= spending.is_used_up(model.as_deref(), *usage, *cost_usd);
                }
                // Nothing is left to be ended; the next call is refused.
                AgentEvent::Finished { .. } => *used_up = was_used_up,
                _ => {}
            }
            *failed |= matches!(event, AgentEvent::Failed { .. });
        };
        work(decoder, &mut take);
        if *used_up || decoder.is_hopeless() { Flow::Stop } else { Flow::Continue }
    }
}
