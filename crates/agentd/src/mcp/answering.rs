//! `answer_questions`: asks the person at a client what a change waits for (G6).
//!
//! Only a client that a person has started is asked: a server that agentd starts for an agent has no
//! such tool and sends no request. What is asked, and what becomes of an answer, is in
//! [`open_questions`]; here it is shown and read.

use std::sync::Arc;

use agentd_core::document::clarifications::Answered;
use agentd_core::ids::ChangeId;
use agentd_core::stamp::Stamp;
use agentd_core::text::{counted, excerpt, printable};
use agentd_engine::change::{documents, position};
use agentd_engine::guard::trust::{self, Consent};
use agentd_engine::process::Cancel;
use agentd_engine::store::{Holder, Project};
use agentd_engine::tools::{ActionError, Refusal, Toolset, input};
use agentd_engine::workflow::decisions::{PlanAnswer, PlanChoice};
use agentd_engine::workflow::open_questions::{self, Desk, OpenAnswer, OpenQuestion};
use jiff::Timestamp;
use rmcp::model::{
    CallToolResult, ClientResult, ContentBlock, ElicitRequest, ElicitRequestParams,
    ElicitationAction, ElicitationSchema, InitializeRequestParams, JsonObject, ServerRequest,
    Tool as Description, ToolAnnotations,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};

use super::form::{self, Filled, Form};
use super::server::{Inner, Server, cancelled};
use super::transport::RequestPermit;
use crate::cli::{agents_outside_of_calls, user};
use crate::error::CommandError;

/// The name of the tool.
pub(super) const NAME: &str = "answer_questions";

/// How many questions are asked in a call: each answer can bring up another one.
const MOST: usize = 8;

/// The arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerQuestions {
    change_id: ChangeId,
}

/// The tool as clients see it.
pub(super) fn describe() -> Description {
    let mut fields = JsonObject::new();
    fields.insert(
        "change_id".to_owned(),
        json!({"type": "string", "description": "The open change"}),
    );
    let purpose = "Have the person at this client answer what a change waits for: open questions, \
                   where to work on it, what becomes of its plan. They are shown forms; you do not \
                   answer.";
    let annotations = ToolAnnotations::new().read_only(false).destructive(false).open_world(false);
    Description::new(NAME, purpose, Arc::new(form::object(fields, &["change_id"])))
        .with_annotations(annotations)
}

/// Whether a client can be asked: it was not started by agentd, and has said in the handshake that it
/// shows forms.
pub(super) fn is_offered(toolset: Toolset, client: Option<&InitializeRequestParams>) -> bool {
    let elicitation = client.and_then(|client| client.capabilities.elicitation.as_ref());
    // One that names no mode means forms: there was nothing else in the first version.
    let forms = elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
    toolset == Toolset::All && forms
}

/// How a form came back.
enum Reply {
    /// With these fields.
    Filled(Value),
    /// The person has done this instead of answering.
    Without(&'static str),
    /// As something that is no answer, for this reason.
    Unusable(String),
}

/// What came of a question.
enum Asked {
    /// It was answered; the sentence says how.
    Answered(OpenAnswer, String),
    /// As in [`Reply`].
    Without(&'static str),
    /// As in [`Reply`].
    Unusable(String),
}

impl Server {
    /// Asks one question after the other, and records each answer before the next is asked.
    pub(super) async fn answer_questions(
        &self,
        arguments: JsonObject,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let inner = Arc::clone(&self.inner);
        let Ok(_alone) = inner.asking.try_lock() else {
            let refusal = Refusal::new("The person is being asked already.")
                .hint("Wait until they have answered.");
            return Ok(refused(&refusal.into()));
        };
        let id = match self.asked_change(arguments) {
            Ok(id) => id,
            Err(error) => return Ok(refused(&error)),
        };
        // People take their time: other requests need the room.
        context.extensions.remove::<RequestPermit>();
        let client = inner.actor(context.client_info());
        let mut recorded = Vec::new();
        let mut without = None;
        for _ in 0..MOST {
            let change = id.clone();
            let next = move |inner: &Inner| {
                Ok(inner.at_desk(&change, |desk| Ok(open_questions::next(desk)?)))
            };
            let question = match self.blocking(next).await? {
                Ok(Some(question)) => question,
                Ok(None) => break,
                Err(error) => return Ok(failed(&error, &recorded)),
            };
            let (answer, what) = match self.ask(&id, question, &context).await? {
                Asked::Answered(answer, what) => (answer, what),
                Asked::Without(why) => {
                    without = Some(why);
                    break;
                }
                Asked::Unusable(why) => {
                    let error = Refusal::new(format!("The answer cannot be used: {why}."));
                    return Ok(failed(&ActionError::from(error).into(), &recorded));
                }
            };
            // What comes after it is for the agents, or for another day.
            let is_last = matches!(answer, OpenAnswer::Plan(..));
            let (change, client) = (id.clone(), client.clone());
            let record = move |inner: &Inner| {
                Ok(inner.at_desk(&change, |desk| {
                    let by = format!("{}, through the MCP client {client}", user(desk.project));
                    Ok(open_questions::answer(desk, &answer, &by)?)
                }))
            };
            let _turn = inner.turn(&context).await?;
            match self.blocking(record).await? {
                Ok(notes) => recorded.extend([what].into_iter().chain(notes)),
                Err(error) => return Ok(failed(&error, &recorded)),
            }
            if is_last {
                break;
            }
        }
        let change = id.clone();
        let next = move |inner: &Inner| {
            let home = inner.home(&change);
            Ok(position::next_steps(&home, &change).unwrap_or_default())
        };
        let next = self.blocking(next).await?;
        let next = next.first().map(|next| format!("Next: {next}"));
        let outcome = match without {
            None if recorded.is_empty() => format!("`{id}` waits for no answer."),
            None => "Nothing else waits for an answer.".to_owned(),
            Some(why) => {
                let what = if recorded.is_empty() { "Nothing" } else { "Nothing else" };
                format!("The person has {why}. {what} was recorded; do not answer in their place.")
            }
        };
        let lines: Vec<String> = recorded.into_iter().chain([outcome]).chain(next).collect();
        Ok(CallToolResult::success(vec![ContentBlock::text(lines.join("\n"))]))
    }

    /// The change that a call is about.
    fn asked_change(&self, arguments: JsonObject) -> Result<ChangeId, ActionError> {
        let AnswerQuestions { change_id } = input::read(arguments)?;
        match &self.inner.change {
            Some(bound) if *bound != change_id => {
                Err(Refusal::new(format!("This server is for the change `{bound}` only.")).into())
            }
            _ => Ok(change_id),
        }
    }

    /// Shows a question, in as many forms as it has parts.
    async fn ask(
        &self,
        id: &ChangeId,
        question: OpenQuestion,
        context: &RequestContext<RoleServer>,
    ) -> Result<Asked, ErrorData> {
        let forms = match &question {
            OpenQuestion::Agent(question) => vec![form::of_agent(id, question)],
            OpenQuestion::Clarify(questions) => form::of_questions(questions),
            OpenQuestion::Placement(question) => vec![form::of_placement(question)],
            OpenQuestion::Plan(plan) => vec![form::of_plan(id, plan)],
        };
        let mut filled = Vec::new();
        for form in &forms {
            match self.elicit(form, context).await? {
                Reply::Filled(content) => match form.read(&content) {
                    Ok(answer) => filled.push(answer),
                    Err(why) => return Ok(Asked::Unusable(why)),
                },
                Reply::Without(why) => return Ok(Asked::Without(why)),
                Reply::Unusable(why) => return Ok(Asked::Unusable(why)),
            }
        }
        let answered = answer_of(question, &forms, &filled);
        Ok(answered.unwrap_or_else(|| Asked::Unusable("that answer was not offered".to_owned())))
    }

    /// Sends a form to the client and waits for as long as the person, the client and its call last.
    async fn elicit(
        &self,
        form: &Form,
        context: &RequestContext<RoleServer>,
    ) -> Result<Reply, ErrorData> {
        let schema = ElicitationSchema::from_json_schema(form.schema())
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let params = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: form.message.clone(),
            requested_schema: schema,
        };
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let mut handle = match context.peer.send_cancellable_request(request, options).await {
            Ok(handle) => handle,
            Err(error) => {
                return Ok(Reply::Unusable(format!("the client cannot be asked ({error})")));
            }
        };
        let answer = tokio::select! {
            answer = &mut handle.rx => answer,
            () = context.ct.cancelled() => {
                // The form must not stay there, asking for something that nobody waits for.
                let _ = handle.cancel(Some("the call was cancelled".to_owned())).await;
                return Err(cancelled());
            }
            () = self.inner.hung_up.and_waited() => return Err(cancelled()),
        };
        let unknown = || Reply::Unusable("it is none that MCP knows".to_owned());
        Ok(match answer {
            Ok(Ok(ClientResult::ElicitResult(result))) => match result.action {
                ElicitationAction::Accept => Reply::Filled(result.content.unwrap_or_default()),
                ElicitationAction::Decline => Reply::Without("declined to answer"),
                ElicitationAction::Cancel => Reply::Without("dismissed the form"),
                _ => unknown(),
            },
            Ok(Ok(_)) => unknown(),
            Ok(Err(error)) => {
                let said = excerpt(&error.to_string(), 200);
                Reply::Unusable(format!("the client says: {said}"))
            }
            Err(_) => return Err(cancelled()),
        })
    }
}

impl Inner {
    /// The project that a change lives in.
    fn home(&self, id: &ChangeId) -> Project {
        if self.change.is_some() { self.project.clone() } else { self.project.home_of(id) }
    }

    fn at_desk<T>(
        &self,
        change: &ChangeId,
        work: impl FnOnce(&Desk<'_>) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let project = &self.home(change);
        let now = Timestamp::now();
        let holder = &Holder::this_process(&format!("agentd mcp: {NAME}"), now);
        // Setting up git may run what the settings name: without consent, nobody is asked about it.
        let config = documents::load_config(project)?;
        let agents = match trust::check(project, config, Consent::AsKept) {
            Ok(config) => {
                let cancel = Cancel::new()?;
                Some(agents_outside_of_calls(project, config, holder.clone(), cancel)?)
            }
            Err(_) => None,
        };
        work(&Desk { project, change, agents: agents.as_ref(), holder, now: Stamp::new(now) })
    }
}

/// What was answered, and a sentence about it; none if that was not offered.
fn answer_of(question: OpenQuestion, forms: &[Form], filled: &[Filled]) -> Option<Asked> {
    let first = filled.first()?;
    let picked = first.picks.first().copied();
    let (answer, what) = match question {
        OpenQuestion::Agent(question) => {
            let text = form::agent_answer(forms.first()?, first);
            let what = format!("Answered {}: {}", question.asker(), excerpt(&text, 200));
            (OpenAnswer::Agent(question, text), what)
        }
        OpenQuestion::Clarify(questions) => {
            let answers: Vec<Answered> = (questions.questions.iter().zip(filled))
                .map(|(question, filled)| question.answered(&form::picks(filled)))
                .collect();
            let what =
                format!("Wrote clarifications.md with {}.", counted(answers.len(), "answer"));
            (OpenAnswer::Clarify(questions, answers), what)
        }
        OpenQuestion::Placement(question) => {
            let offer = question.offers.get(picked?)?;
            (
                OpenAnswer::Placement(offer.placement),
                format!("Chose where to work: {}.", offer.label),
            )
        }
        OpenQuestion::Plan(plan) => {
            let answer = *form::plan_answers(&plan).get(picked?)?;
            let choice = match answer {
                PlanAnswer::Fix | PlanAnswer::Tell => PlanChoice::Fix,
                PlanAnswer::Accept | PlanAnswer::Implement => PlanChoice::Accept,
                PlanAnswer::Stop => PlanChoice::Stop,
                PlanAnswer::View
                | PlanAnswer::Review
                | PlanAnswer::Edit
                | PlanAnswer::Diff
                | PlanAnswer::Later => return None,
            };
            let what = format!("Decided about the plan: {}.", answer.label(plan.question.gate));
            (OpenAnswer::Plan(plan, choice, first.words.clone()), what)
        }
    };
    Some(Asked::Answered(answer, what))
}

/// The answer of a call that has recorded nothing.
fn refused(error: &ActionError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.to_string())])
}

/// The answer of a call that could not go on, with what it has recorded before.
fn failed(error: &CommandError, recorded: &[String]) -> CallToolResult {
    let cause = error.cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default();
    let what = if recorded.is_empty() { "Nothing was recorded." } else { "It ended there." };
    let hints = error.hints.iter().map(ToString::to_string);
    let message = printable(&format!("{}{cause}", error.message)).into_owned();
    let lines = recorded.iter().cloned().chain([message, what.to_owned()]).chain(hints);
    CallToolResult::error(vec![ContentBlock::text(lines.collect::<Vec<_>>().join("\n"))])
}
