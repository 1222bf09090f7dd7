//! What has changed, for people to read: a plan since a round of its review, the specs of a change
//! against the main specs, and its code. `agentd diff` and the viewer draw the same values.

mod code;
mod plan;
mod specs;

pub(super) use code::Compared;
pub use code::{CodeDiff, CodeError, CodeFile, code, code_kept};
pub use plan::{DocumentDiff, PlanDiff, PlanVersion, plan, rounds};
pub use specs::{SpecDelta, specs};
