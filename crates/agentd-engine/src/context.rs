//! PLACEHOLDER until wip-prompts lands.
use agentd_core::ids::ChangeId;
use agentd_core::layout::ChangeFile;
use crate::step::Agents;
/// x
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct ContextError;
/// x
#[derive(Debug, Clone, Copy)]
pub enum ContextKind { /// x
 Planner, /// x
 Challenger }
impl ContextKind { /// x
 pub fn file(self) -> ChangeFile { match self { Self::Planner => ChangeFile::GeminiContext, Self::Challenger => ChangeFile::AgentsContext } } }
/// x
#[derive(Debug)]
pub struct Written { /// x
 pub left_out: Vec<String> }
/// x
pub fn write(_a: &Agents, _c: &ChangeId, _k: ContextKind) -> Result<Written, ContextError> { Ok(Written { left_out: Vec::new() }) }
