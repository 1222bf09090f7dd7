//! A question that an agent asks a person (G6): from the tool that keeps it until its call is over, to
//! the answer that the next call is given.

use serde::{Deserialize, Serialize};

use super::{Choice, Decision, LlmCall, State};
use crate::agent::{AgentKind, Role};
use crate::hash::Digest;
use crate::receipt::Receipt;
use crate::stamp::Stamp;
use crate::step_name::StepName;
use crate::text::{Line, Prose, head};

/// How often an agent may ask in a step, until another step is called.
pub const MAX_ASKED: u32 = 3;
/// The most answers that it may suggest.
pub const MAX_CHOICES: usize = 6;
/// The longest answer, in bytes.
const MAX_ANSWER: usize = 4000;
/// The longest question and the longest choice that are kept, in bytes.
const MAX_QUESTION: usize = 8000;
const MAX_CHOICE: usize = 800;

/// The roles whose agents may ask.
pub const ASKING: [Role; 2] = [Role::Planner, Role::Implementer];

/// What an agent has asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The question.
    pub question: Prose,
    /// Answers that it suggests; none if any will do.
    #[serde(default)]
    pub choices: Vec<Line>,
}

impl Asked {
    /// What a receipt for it is about.
    pub fn digest(&self) -> Digest {
        Digest::of(serde_json::to_string(self).unwrap_or_default())
    }

    /// The same, no longer than it can be if the tool has written it.
    fn bounded(self) -> Self {
        let question = Prose::new(head(self.question.as_str(), MAX_QUESTION));
        let choices = self.choices.iter().take(MAX_CHOICES);
        let choices = choices.map(|choice| Line::new(head(choice.as_str(), MAX_CHOICE)));
        Self { question, choices: choices.filter(|choice| !choice.is_empty()).collect() }
    }
}

/// A question as its tool leaves it, with the proof that it was asked in a call that agentd started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptQuestion {
    /// What was asked.
    pub asked: Asked,
    /// The proof.
    pub receipt: Receipt,
}

impl KeptQuestion {
    /// Reads one; a text that is none asks nothing.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Writes it.
    pub fn render(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// A question of an agent in the state of its change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentQuestion {
    /// The step in which it was asked.
    pub step: StepName,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentKind>,
    /// What.
    pub asked: Asked,
    /// When the call ended.
    pub at: Stamp,
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The session that goes on with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How many questions the step has asked, with this one.
    pub number: u32,
    /// What a person has answered, until the agent was given it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Prose>,
}

impl AgentQuestion {
    /// Who asks: the agent, or its role where the agent is not known.
    pub fn asker(&self) -> String {
        match (self.agent, self.step.role()) {
            (Some(agent), _) => agent.to_string(),
            (None, Some(role)) => format!("the {role}"),
            (None, None) => "an agent".to_owned(),
        }
    }
}

impl State {
    /// The question that waits for a person.
    pub fn open_question(&self) -> Option<&AgentQuestion> {
        self.question.as_ref().filter(|question| question.answer.is_none())
    }

    /// The answer that an agent of this role was not given yet, with its question.
    pub fn new_answer(&self, role: Role) -> Option<(&AgentQuestion, &Prose)> {
        let question = self.question.as_ref().filter(|it| it.step.role() == Some(role))?;
        Some((question, question.answer.as_ref()?))
    }

    /// Whether an agent may ask in this step: an agent that asks for ever does nothing.
    pub fn may_ask(&self, step: &StepName) -> bool {
        let asks = step.role().is_some_and(|role| ASKING.contains(&role));
        asks && self.questions_of(step) < MAX_ASKED
    }

    /// How many questions its calls have asked since another step was called.
    fn questions_of(&self, step: &StepName) -> u32 {
        let calls = self.llm_calls.iter().rev().take_while(|call| call.step == *step);
        u32::try_from(calls.filter(|call| call.asked).count()).unwrap_or(u32::MAX)
    }

    /// A call has ended well: it was given what was answered, and what it asks waits for a person. Says
    /// whether it asks something.
    pub fn take_question(&mut self, call: &mut LlmCall, asked: Option<Asked>, at: Stamp) -> bool {
        let step = call.step.clone();
        let asked = asked.map(Asked::bounded).filter(|asked| !asked.question.is_empty());
        let asked = asked.filter(|_| self.may_ask(&step));
        let number = self.questions_of(&step) + 1;
        if step.role().is_some_and(|role| self.new_answer(role).is_some()) {
            self.question = None;
        }
        let Some(asked) = asked else { return false };
        call.asked = true;
        let (agent, run, session_id) = (call.agent, call.run, call.session_id.clone());
        let answer = None;
        self.question =
            Some(AgentQuestion { step, agent, asked, at, run, session_id, number, answer });
        true
    }

    /// A person answers the question that waits. Says whether there is one, and an answer.
    pub fn answer(&mut self, text: &str, by: &str, at: Stamp) -> bool {
        let answer = Prose::new(head(text, MAX_ANSWER));
        let question = self.question.as_mut().filter(|question| question.answer.is_none());
        let Some(question) = question.filter(|_| !answer.is_empty()) else { return false };
        let (note, by) = (Line::new(answer.as_str()), Line::new(by));
        question.answer = Some(answer);
        let choice = Choice::Answer;
        self.decisions.push(Decision { choice, note, by, at, plan_hash: None });
        true
    }

    /// The last decision about the change itself: an answer to an agent is none.
    pub fn last_decision(&self) -> Option<&Decision> {
        self.decisions.iter().rfind(|made| made.choice != Choice::Answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ChangeId;

    fn now() -> Stamp {
        "2026-11-04T10:00:00Z".parse().unwrap()
    }

    fn state() -> State {
        State::new(ChangeId::new("add-login").unwrap(), "Add a login", now())
    }

    fn asked(question: &str) -> Asked {
        let choices = vec![Line::new("Yes"), Line::new("No")];
        Asked { question: Prose::new(question), choices }
    }

    /// A call of a step ends well, and asks this.
    fn call(state: &mut State, step: &str, asked: impl Into<Option<Asked>>) -> bool {
        let call = serde_json::json!({"step": step, "run": 1, "session_id": "s"});
        let mut call: LlmCall = serde_json::from_value(call).unwrap();
        let asks = state.take_question(&mut call, asked.into(), now());
        assert_eq!(call.asked, asks);
        state.llm_calls.push(call);
        asks
    }

    #[test]
    fn a_question_waits_until_it_is_answered_and_the_answer_until_it_is_given() {
        let mut state = state();
        assert!(call(&mut state, "proposal-gen", asked("Which one?")));
        let open = state.open_question().unwrap();
        assert_eq!((open.number, open.session_id.as_deref()), (1, Some("s")));
        assert!(!state.answer(" \n", "me", now()), "an empty answer is none");
        assert!(state.answer("This one", "me", now()));
        assert!(!state.answer("That one", "me", now()), "nothing waits any more");
        assert_eq!(state.open_question(), None);
        assert_eq!(state.decisions[0].choice, Choice::Answer);
        assert_eq!(state.last_decision(), None);
        assert!(state.new_answer(Role::Implementer).is_none(), "it is for the planner");
        assert_eq!(state.new_answer(Role::Planner).unwrap().1.as_str(), "This one");
        // Of another role, which was given nothing.
        assert!(!call(&mut state, "challenge", None));
        assert!(state.new_answer(Role::Planner).is_some());
        assert!(!call(&mut state, "proposal-gen", None));
        assert_eq!(state.question, None);
    }

    #[test]
    fn only_authors_ask_and_only_so_often_in_a_step() {
        let mut state = state();
        assert!(!call(&mut state, "challenge", asked("Which one?")));
        assert!(!call(&mut state, "review", asked("Which one?")));
        for _ in 0..MAX_ASKED {
            assert!(call(&mut state, "implement-logic", asked("Which one?")));
            assert!(state.answer("This one", "me", now()));
        }
        assert!(!call(&mut state, "implement-logic", asked("Which one?")));
        assert_eq!(state.question, None, "it was given the last answer");
        assert!(
            !call(&mut state, "implement-logic", asked("And now?")),
            "it has done nothing else"
        );
        assert!(!call(&mut state, "review", None));
        assert!(call(&mut state, "implement-logic", asked("And now?")));
    }

    #[test]
    fn what_the_tool_would_not_write_is_cut() {
        let mut state = state();
        let choices = vec![Line::new(&"c".repeat(9000)); 50];
        let huge = Asked { question: Prose::new(&"q".repeat(1 << 20)), choices };
        assert!(call(&mut state, "fix", Some(huge)));
        let Asked { question, choices } = &state.open_question().unwrap().asked;
        assert_eq!((question.as_str().len(), choices.len()), (MAX_QUESTION, MAX_CHOICES));
        assert!(choices.iter().all(|choice| choice.as_str().len() <= MAX_CHOICE));
    }
}
