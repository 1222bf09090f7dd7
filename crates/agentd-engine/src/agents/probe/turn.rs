//! One turn of a probe, and what was seen of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use agentd_core::agent::Role;
use agentd_core::event::AgentEvent;
use agentd_core::hash::Digest;
use agentd_core::ids::{ChangeId, Layer};
use agentd_core::outcome::{FailureKind, Usage};
use agentd_core::provider::MCP_SERVER;
use agentd_core::step_name::StepName;
use agentd_core::text::{Line, head};

use super::{Probe, prompts};
use crate::agents::step::{self, Artifact, Step, StepError};

/// The most that is kept of what an agent says about a failure.
const WHY_BYTES: usize = 300;

/// What was seen of a turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// How long it took.
    pub(super) took: Duration,
    /// The session.
    pub(super) session: Option<String>,
    /// When a tool of agentd was called.
    pub(super) own_call: Option<Duration>,
    own_calls: BTreeSet<String>,
    /// Whether it says that such a call has worked.
    pub(super) claims_success: bool,
    /// Whether it called other tools, or asked to.
    pub(super) tried_more: bool,
    /// What it has used.
    pub(super) usage: Option<Usage>,
    /// How many processes it left behind.
    pub(super) left_behind: u32,
    /// Why it failed.
    pub(super) failure: Option<(Option<FailureKind>, String)>,
}

impl Turn {
    /// Why a check has failed: because the turn has, or for this reason.
    pub(super) fn why(&self, otherwise: &str) -> String {
        self.failure.as_ref().map_or_else(|| otherwise.to_owned(), |(_, why)| why.clone())
    }
}

/// A turn of a reviewer of plans.
pub(super) fn review(
    probe: &Probe<'_>,
    change: &ChangeId,
    prompt: &str,
    resume: Option<String>,
) -> Turn {
    take(probe, change, (Role::Challenger, StepName::Challenge), prompt, resume, &mut |_| {})
}

/// A turn of an implementer.
pub(super) fn implement(probe: &Probe<'_>, change: &ChangeId, prompt: &str) -> Turn {
    let step = (Role::Implementer, StepName::Implement(Layer::Logic));
    take(probe, change, step, prompt, None, &mut |_| {})
}

/// A turn that is to be ended: `opened` hears when it has begun.
pub(super) fn long(probe: &Probe<'_>, change: &ChangeId, prompt: &str, opened: Sender<()>) -> Turn {
    take(probe, change, (Role::Reviewer, StepName::Review), prompt, None, &mut move |event| {
        if matches!(event, AgentEvent::Session { .. }) {
            // Nobody waits any more once it was told.
            let _ = opened.send(());
        }
    })
}

fn take(
    probe: &Probe<'_>,
    change: &ChangeId,
    (role, name): (Role, StepName),
    prompt: &str,
    resume: Option<String>,
    also: &mut dyn FnMut(&AgentEvent<'_>),
) -> Turn {
    let step = Step {
        change: change.clone(),
        role,
        agent: probe.agent,
        name,
        prompt: prompt.to_owned(),
        resume,
        artifact: Artifact::Nothing,
        on_success: None,
    };
    let began = Instant::now();
    let mut turn = Turn::default();
    let result = step::run(probe.agents, &step, probe.now, &mut |event| {
        turn.see(event, began);
        also(event);
    });
    turn.took = began.elapsed();
    match result {
        Ok(report) => {
            turn.usage = report.outcome.usage.or(turn.usage);
            turn.session = report.outcome.session_id.or(turn.session);
            turn.tried_more |= !report.outcome.denied_tools.is_empty();
            turn.left_behind = report.left_behind;
        }
        Err(error) => {
            let kind = match &error {
                StepError::Agent { failure, .. } => Some(failure.kind),
                StepError::Interrupted => Some(FailureKind::Cancelled),
                _ => Some(FailureKind::Other),
            };
            turn.tried_more |= matches!(&error, StepError::Agent { failure, .. }
                if failure.kind == FailureKind::Denied);
            let words = Line::new(&error.to_string()).to_string();
            turn.failure = Some((kind, head(&words, WHY_BYTES).to_owned()));
        }
    }
    turn
}

impl Turn {
    fn see(&mut self, event: &AgentEvent<'_>, began: Instant) {
        match event {
            AgentEvent::Session { session_id, .. } => {
                self.session = Some(session_id.clone().into_owned());
            }
            AgentEvent::ToolCall { id, server: Some(server), .. } if server == MCP_SERVER => {
                self.own_call.get_or_insert(began.elapsed());
                self.own_calls.insert(id.clone().into_owned());
            }
            AgentEvent::ToolResult { id, ok: true, .. } => {
                self.claims_success |= self.own_calls.contains(&**id);
            }
            AgentEvent::ToolCall { .. } => self.tried_more = true,
            AgentEvent::Usage { usage, .. } => self.usage = Some(*usage),
            _ => {}
        }
    }
}

/// What is on disk where agents of the probe may not write, or only as implementers.
pub(super) struct Surroundings {
    root: PathBuf,
    before: BTreeMap<String, Digest>,
}

impl Surroundings {
    pub(super) fn look(root: &Path) -> Self {
        Self { root: root.to_owned(), before: listed(root) }
    }

    /// What a file of the working tree holds; nothing if it is not a plain file.
    pub(super) fn read(&self, name: &str) -> String {
        let path = self.root.join(name);
        let is_plain = fs::symlink_metadata(&path).is_ok_and(|it| it.is_file() && it.len() < 4096);
        if is_plain { fs::read_to_string(path).unwrap_or_default() } else { String::new() }
    }

    /// What has changed in the working tree.
    pub(super) fn changes(&self) -> Vec<String> {
        let after = listed(&self.root);
        let mut changed: Vec<String> = (after.iter())
            .filter(|(name, digest)| self.before.get(*name) != Some(digest))
            .map(|(name, _)| name.clone())
            .collect();
        changed.extend(self.before.keys().filter(|name| !after.contains_key(*name)).cloned());
        changed.truncate(5);
        changed
    }

    /// What was written beside the working tree.
    pub(super) fn outside(&self) -> Option<String> {
        let path = self.root.parent()?.join(prompts::OUTSIDE);
        fs::symlink_metadata(path).is_ok().then(|| format!("../{}", prompts::OUTSIDE))
    }
}

/// The files of the working tree but for those of agentd, with their digests. A file that the probe did
/// not make may be of any size, or a pipe: that it is there says enough.
fn listed(root: &Path) -> BTreeMap<String, Digest> {
    let digest = |path: &Path, data: &fs::Metadata| {
        let is_small = data.is_file() && data.len() < 1 << 20;
        let text = if is_small { fs::read(path).unwrap_or_default() } else { Vec::new() };
        Digest::of([&data.len().to_le_bytes()[..], &text].concat())
    };
    agentd_walk::files(root, "agentd")
        .map(|(name, path, data)| (name, digest(&path, &data)))
        .collect()
}
