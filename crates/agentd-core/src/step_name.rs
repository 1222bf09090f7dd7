//! The names of the steps: what stands in `llm_calls`, in the names of run files and
//! in the first line of every prompt.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::agent::Role;
use crate::ids::{Layer, SpecId};

use crate::text::excerpt;

/// One kind of call of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepName {
    /// The planner proposes questions.
    Clarify,
    /// The planner writes `proposal.md`.
    ProposalGen,
    /// The planner reviews it.
    ProposalReview,
    /// The planner writes a spec.
    SpecGen(SpecId),
    /// The planner reviews it.
    SpecReview(SpecId),
    /// The planner writes `tasks.md`.
    TasksGen,
    /// The planner reviews it.
    TasksReview,
    /// The planner writes every document in one session.
    PlanGen,
    /// The planner reviews them all.
    PlanReview,
    /// The planner fixes what validation has found.
    FormatFix,
    /// The challenger judges the plan.
    Challenge,
    /// The planner fixes what the challenger has found.
    Reproposal,
    /// The implementer writes a test that shows a bug.
    Reproduce,
    /// The implementer builds a layer.
    Implement(Layer),
    /// The reviewer judges the implementation.
    Review,
    /// The implementer fixes what the reviewer has found.
    Fix,
    /// A step of another version of agentd, kept as it was written.
    Unknown(Box<str>),
}

const SPEC_GEN: &str = "spec-gen-";
const SPEC_REVIEW: &str = "spec-review-";
const IMPLEMENT: &str = "implement-";

impl StepName {
    /// The steps that are named without a spec or a layer.
    pub const PLAIN: [Self; 13] = [
        Self::Clarify,
        Self::ProposalGen,
        Self::ProposalReview,
        Self::TasksGen,
        Self::TasksReview,
        Self::PlanGen,
        Self::PlanReview,
        Self::FormatFix,
        Self::Challenge,
        Self::Reproposal,
        Self::Reproduce,
        Self::Review,
        Self::Fix,
    ];

    /// The step of this name. A name that is not known is kept: what an older or a newer
    /// version has recorded must still be readable, and be written back unchanged.
    pub fn of(name: &str) -> Self {
        name.parse().unwrap_or_else(|_| Self::Unknown(name.into()))
    }

    /// Who does it, where the step is known.
    pub fn role(&self) -> Option<Role> {
        Some(match self {
            Self::Clarify
            | Self::ProposalGen
            | Self::ProposalReview
            | Self::SpecGen(_)
            | Self::SpecReview(_)
            | Self::TasksGen
            | Self::TasksReview
            | Self::PlanGen
            | Self::PlanReview
            | Self::FormatFix
            | Self::Reproposal => Role::Planner,
            Self::Challenge => Role::Challenger,
            Self::Reproduce | Self::Implement(_) | Self::Fix => Role::Implementer,
            Self::Review => Role::Reviewer,
            Self::Unknown(_) => return None,
        })
    }

    /// The name without its spec or layer: `spec-gen`, `implement`, `challenge`.
    pub fn kind(&self) -> &str {
        self.stem().trim_end_matches('-')
    }

    /// The name, or the part of it in front of the spec or the layer.
    fn stem(&self) -> &str {
        match self {
            Self::Clarify => "clarify",
            Self::ProposalGen => "proposal-gen",
            Self::ProposalReview => "proposal-review",
            Self::SpecGen(_) => SPEC_GEN,
            Self::SpecReview(_) => SPEC_REVIEW,
            Self::TasksGen => "tasks-gen",
            Self::TasksReview => "tasks-review",
            Self::PlanGen => "plan-gen",
            Self::PlanReview => "plan-review",
            Self::FormatFix => "format-fix",
            Self::Challenge => "challenge",
            Self::Reproposal => "reproposal",
            Self::Reproduce => "reproduce",
            Self::Implement(_) => IMPLEMENT,
            Self::Review => "review",
            Self::Fix => "fix",
            Self::Unknown(name) => name,
        }
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SpecGen(spec) | Self::SpecReview(spec) => {
                f.pad(&format!("{}{spec}", self.stem()))
            }
            Self::Implement(layer) => f.pad(&format!("{}{layer}", self.stem())),
            _ => f.pad(self.stem()),
        }
    }
}

/// A text that is the name of no step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not the name of a step")]
pub struct UnknownStep {
    /// The text, cut and with control characters escaped.
    pub shown: String,
}

impl FromStr for StepName {
    type Err = UnknownStep;

    fn from_str(text: &str) -> Result<Self, UnknownStep> {
        let spec = |prefix: &str| text.strip_prefix(prefix).and_then(|id| SpecId::new(id).ok());
        let layer = |name: &str| Layer::ALL.into_iter().find(|layer| layer.name() == name);
        let plain = Self::PLAIN.into_iter().find(|step| step.stem() == text);
        plain
            .or_else(|| spec(SPEC_GEN).map(Self::SpecGen))
            .or_else(|| spec(SPEC_REVIEW).map(Self::SpecReview))
            .or_else(|| text.strip_prefix(IMPLEMENT).and_then(layer).map(Self::Implement))
            .ok_or_else(|| UnknownStep { shown: excerpt(text, 80) })
    }
}

impl Serialize for StepName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StepName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(&String::deserialize(deserializer)?))
    }
}

impl From<&str> for StepName {
    fn from(name: &str) -> Self {
        Self::of(name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layout::RunName;

    fn any_step() -> impl Strategy<Value = StepName> {
        let spec =
            || "[a-z0-9][a-z0-9-]{0,63}".prop_filter_map("reserved", |id| SpecId::new(&id).ok());
        prop_oneof![
            prop::sample::select(StepName::PLAIN.to_vec()),
            spec().prop_map(StepName::SpecGen),
            spec().prop_map(StepName::SpecReview),
            prop::sample::select(Layer::ALL.to_vec()).prop_map(StepName::Implement),
        ]
    }

    // contract P13 and section 4, "Steps and prompts"
    #[test]
    fn steps_are_called_as_the_contract_says() {
        let spec = SpecId::new("auth-flow").unwrap();
        let mut names: Vec<String> = StepName::PLAIN.iter().map(ToString::to_string).collect();
        names.push(StepName::SpecGen(spec.clone()).to_string());
        names.push(StepName::SpecReview(spec).to_string());
        names.extend(Layer::ALL.map(|layer| StepName::Implement(layer).to_string()));
        let expected = "clarify proposal-gen proposal-review tasks-gen tasks-review plan-gen \
                        plan-review format-fix challenge reproposal reproduce review fix spec-gen-auth-flow \
                        spec-review-auth-flow implement-data implement-logic \
                        implement-integration implement-testing";
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn other_texts_are_no_steps() {
        for text in [
            "",
            "Clarify",
            "clarify ",
            "spec-gen",
            "spec-gen-",
            "spec-gen-A",
            "spec-gen-../x",
            "implement",
            "implement-",
            "implement-tests",
            "implement-Data",
            "challenge-1",
        ] {
            assert!(text.parse::<StepName>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn unknown_steps_are_kept_as_they_were_written() {
        for text in ["", "proposal", "implement-ui", "spec-gen-../x", "\u{1b}[31m"] {
            let json = serde_json::to_string(text).unwrap();
            let step: StepName = serde_json::from_str(&json).unwrap();
            assert_eq!(step, StepName::Unknown(text.into()));
            assert_eq!((serde_json::to_string(&step).unwrap(), step.role()), (json, None));
        }
    }

    proptest! {
        #[test]
        fn a_step_is_read_as_it_is_written(step in any_step()) {
            let name = step.to_string();
            prop_assert_eq!(name.parse::<StepName>(), Ok(step.clone()));
            prop_assert!(RunName::new(1, &StepName::of(&name)).is_ok());
        }

        #[test]
        fn what_is_read_is_written_the_same(
            name in "(spec-gen-|spec-review-|implement-|clarify|fix|review)?[a-z0-9./-]{0,12}(data|logic)?"
        ) {
            if let Ok(step) = name.parse::<StepName>() {
                prop_assert_eq!(step.to_string(), name);
            }
        }
    }
}
