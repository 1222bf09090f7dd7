//! One call of an agent as a dialogue: greet it, open a session, choose its mode and model, prompt
//! it, answer what it asks, and read what it says until its turn is over.
//!
//! Pure: lines come in, events and lines to be written come out. The same code reads a recorded
//! call again, in which nobody answers.

mod said;

use std::time::Duration;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::connection::{Abilities, Connection};
use super::message::{
    Initialized, Message, NO_METHOD, Notification, Opened, PROTOCOL, PermissionRequest,
};
use super::tool_call::Calls;
use super::usage::PromptResult;
use super::{failure, options, permission, start};
use crate::agent::AgentKind;
use crate::event::AgentEvent;
use crate::known_agent::{CostScope, known};
use crate::outcome::{AgentOutcome, Exit, Failure, FailureKind, Usage};
use crate::provider::tally::{Tally, is_session_id};
use crate::provider::{AgentRequest, Decoder, Session, Sink};
use crate::text::head;

/// How long an agent has to be silent after a session was loaded: some report its history after
/// they have said that it is there, and an old answer must not pass for the new one.
const HISTORY_PAUSE: Duration = Duration::from_millis(300);
/// The most that an agent may ask for in one turn: what agentd answers is kept until the agent reads it.
const MOST_REQUESTS: u32 = 10_000;
/// The longest ID of a request; agentd sends it back.
const ID_BYTES: usize = 256;
/// How many refused tools are named.
const KEPT_DENIALS: usize = 32;

/// What the dialogue waits for.
#[derive(Debug)]
enum Stage {
    /// The answer to `initialize`.
    Greeting,
    /// The answer to the request that opens a session.
    Opening { id: u64 },
    /// Silence, after a session was loaded with its history.
    Settling { opened: Box<OpenedSession> },
    /// The answers to requests that change options.
    Choosing { id: u64, changes: Vec<options::Change> },
    /// The end of the turn.
    Prompting { id: u64 },
    /// Nothing more.
    Over,
    /// A recorded call is read again: whatever comes is taken for what it looks like.
    Recorded,
}

#[derive(Debug)]
struct OpenedSession {
    plan: options::Plan,
}

/// A call that is under way.
pub(super) struct Dialogue {
    agent: AgentKind,
    request: AgentRequest,
    connection: Connection,
    stage: Stage,
    /// What is to be written.
    output: String,
    tally: Tally,
    calls: Calls,
    /// The id of the message that the last text was part of.
    message_id: String,
    /// What requests to the model have used that were reported one by one.
    counted: Usage,
    /// The cost that the session had before.
    cost_before: f64,
    /// The adapter of codex has reported that the turn broke down; what it says next is why.
    broken: Option<String>,
    /// It was told to stop.
    is_told: bool,
    /// How often it has asked for something.
    requests: u32,
}

impl Dialogue {
    /// Begins a call on a connection.
    pub(super) fn new(agent: AgentKind, request: &AgentRequest, connection: Connection) -> Self {
        let mut dialogue = Self::with(agent, request, connection, Stage::Greeting);
        if let Some(abilities) = dialogue.connection.abilities().cloned() {
            dialogue.open(&abilities, &mut |_| {});
        }
        dialogue
    }

    /// Reads a recorded call again.
    pub(super) fn recorded(agent: AgentKind, request: &AgentRequest) -> Self {
        Self::with(agent, request, Connection::new().0, Stage::Recorded)
    }

    fn with(
        agent: AgentKind,
        request: &AgentRequest,
        connection: Connection,
        stage: Stage,
    ) -> Self {
        let cost_before = match &request.session {
            Session::Resume { cost_before, .. } => cost_before.unwrap_or(0.0),
            Session::Fresh | Session::FreshWithId(_) => 0.0,
        };
        let counts_whole = known(agent).is_some_and(|row| row.cost == CostScope::Whole);
        Self {
            agent,
            connection,
            stage,
            output: String::new(),
            tally: Tally::new(agent, request),
            calls: Calls::default(),
            message_id: String::new(),
            counted: Usage::default(),
            cost_before: if counts_whole { cost_before } else { 0.0 },
            broken: None,
            is_told: false,
            requests: 0,
            request: request.clone(),
        }
    }

    fn send(&mut self, message: &Value) {
        self.output.push_str(&message.to_string());
        self.output.push('\n');
    }

    fn ask(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.connection.next_id();
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    fn fail(&mut self, failure: Failure, sink: &mut Sink<'_>) {
        self.tally.failed(failure, sink);
        self.stage = Stage::Over;
    }

    /// Opens the session that is asked for.
    fn open(&mut self, abilities: &Abilities, sink: &mut Sink<'_>) {
        let mut params = start::session(self.agent, &self.request);
        let method = match &self.request.session {
            Session::Fresh | Session::FreshWithId(_) => "session/new",
            Session::Resume { id, .. } => {
                params["sessionId"] = json!(id);
                match (abilities.resume, abilities.load) {
                    (true, _) => "session/resume",
                    (false, true) => "session/load",
                    (false, false) => {
                        let message = "the agent cannot open an earlier session";
                        let failure = Failure::new(FailureKind::SessionNotFound, message);
                        return self.fail(failure, sink);
                    }
                }
            }
        };
        let id = self.ask(method, &params);
        self.stage = Stage::Opening { id };
    }

    fn greeted(&mut self, result: Result<Initialized, Failure>, sink: &mut Sink<'_>) {
        let answer = match result {
            Ok(answer) => answer,
            Err(failure) => return self.fail(failure, sink),
        };
        if answer.protocol_version != Some(PROTOCOL) {
            let version = answer.protocol_version.unwrap_or_default();
            let message = format!("the agent speaks version {version} of ACP, not {PROTOCOL}");
            return self.fail(Failure::new(FailureKind::Config, message), sink);
        }
        let abilities = Abilities::of(answer);
        self.connection.greeted(abilities.clone());
        self.open(&abilities, sink);
    }

    /// What is left of the abilities of an agent that has promised to resume sessions, and does not
    /// know how; none if it does, or cannot load them either.
    fn without_resume(&mut self, message: &Message<'_>) -> Option<Abilities> {
        let no_method = message.error.as_ref().is_some_and(|error| error.code == NO_METHOD);
        let abilities =
            self.connection.abilities().filter(|it| no_method && it.resume && it.load)?;
        let abilities = Abilities { resume: false, ..abilities.clone() };
        let is_resumed = matches!(self.request.session, Session::Resume { .. });
        self.connection.greeted(abilities.clone());
        is_resumed.then_some(abilities)
    }

    fn opened(&mut self, result: Result<Opened, Failure>, sink: &mut Sink<'_>) {
        let opened = match result {
            Ok(opened) => opened,
            Err(failure) => return self.fail(failure, sink),
        };
        let (id, is_loaded) = match &self.request.session {
            Session::Resume { id, .. } => {
                (id.clone(), !self.connection.abilities().is_some_and(|a| a.resume))
            }
            Session::Fresh | Session::FreshWithId(_) => {
                (opened.session_id.clone().unwrap_or_default(), false)
            }
        };
        if !is_session_id(&id) {
            let message = "the agent has opened a session without an ID that can be kept";
            return self.fail(Failure::new(FailureKind::Other, message), sink);
        }
        let model = options::model(&opened);
        self.tally.session(&id, model.as_deref(), sink);
        let plan = options::plan(&opened, &self.request);
        if is_loaded {
            let opened = Box::new(OpenedSession { plan });
            self.stage = Stage::Settling { opened };
        } else {
            self.settled(plan, sink);
        }
    }

    fn settled(&mut self, plan: options::Plan, sink: &mut Sink<'_>) {
        for warning in plan.warnings {
            sink(AgentEvent::Warning { message: warning.into() });
        }
        self.choose(plan.changes);
    }

    /// Sends the next change of an option, or the prompt if none is left.
    fn choose(&mut self, mut changes: Vec<options::Change>) {
        let session = self.tally.session_id.clone().unwrap_or_default();
        if changes.is_empty() {
            let prompt = start::prompt(self.agent, &self.request);
            let params = json!({
                "sessionId": session,
                "prompt": [{ "type": "text", "text": prompt }],
            });
            let id = self.ask("session/prompt", &params);
            self.stage = Stage::Prompting { id };
            return;
        }
        changes[0].params["sessionId"] = json!(session);
        let params = changes[0].params.clone();
        let id = self.ask(changes[0].method, &params);
        self.stage = Stage::Choosing { id, changes };
    }

    fn chosen(
        &mut self,
        mut changes: Vec<options::Change>,
        result: Result<IgnoredAny, Failure>,
        sink: &mut Sink<'_>,
    ) {
        let change = changes.remove(0);
        match result {
            Ok(_) => self.tally.model = change.model.or(self.tally.model.take()),
            Err(failure) => {
                let message = format!("the agent refuses {}: {}", change.method, failure.message);
                sink(AgentEvent::Warning { message: message.into() });
            }
        }
        self.choose(changes);
    }

    fn prompted(&mut self, result: Result<PromptResult, Failure>, sink: &mut Sink<'_>) {
        self.tally.text.end_message();
        self.stage = Stage::Over;
        self.close_session();
        let result = match result {
            Ok(result) => result,
            Err(failure) => return self.tally.failed(failure, sink),
        };
        let quota = result.quota();
        if let Some(model) = quota.as_ref().and_then(|quota| quota.model()) {
            self.tally.model = Some(model.to_owned());
        }
        let usage = result.usage().or_else(|| quota?.usage());
        if let Some(usage) = usage {
            self.report_usage(usage, sink);
        }
        let broken = self.broken.take().map(|said| failure::of_text(&said));
        let stopped = failure::of_stop(result.stop_reason.as_deref().unwrap_or_default());
        let stopped = stopped.map(|failure| match failure.kind {
            FailureKind::Cancelled if !self.is_told => failure::of_denied(&self.tally.denied_tools),
            _ => failure,
        });
        match stopped.or(broken) {
            None => self.tally.succeeded(None, sink),
            Some(failure) => self.tally.failed(failure, sink),
        }
    }

    /// The agent may forget a session that is over; its files stay.
    fn close_session(&mut self) {
        if self.connection.abilities().is_some_and(|abilities| abilities.close)
            && let Some(session) = self.tally.session_id.clone()
        {
            self.ask("session/close", &json!({ "sessionId": session }));
        }
    }

    fn report_usage(&mut self, usage: Usage, sink: &mut Sink<'_>) {
        self.tally.usage = Some(usage);
        sink(AgentEvent::Usage { usage, cost_usd: self.tally.cost_usd() });
    }

    /// A response to something that was asked here. Others are old, or made up.
    fn response(&mut self, message: &Message<'_>, sink: &mut Sink<'_>) {
        let id: Option<u64> = message.id.and_then(|id| serde_json::from_str(id.get()).ok());
        let is = |wanted: u64| id == Some(wanted);
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Greeting if self.connection.greeting() == id => {
                self.greeted(answer(message), sink);
            }
            Stage::Opening { id } if is(id) => match self.without_resume(message) {
                Some(abilities) => self.open(&abilities, sink),
                None => self.opened(answer(message), sink),
            },
            Stage::Choosing { id, changes } if is(id) => {
                self.chosen(changes, answer(message), sink);
            }
            Stage::Prompting { id } if is(id) => {
                self.prompted(answer(message), sink);
            }
            Stage::Recorded => self.recorded_response(message, sink),
            stage => self.stage = stage,
        }
    }

    fn recorded_response(&mut self, message: &Message<'_>, sink: &mut Sink<'_>) {
        self.stage = Stage::Recorded;
        if let Ok(opened) = answer::<Opened>(message)
            && let Some(id) = &opened.session_id
        {
            self.tally.session(id, options::model(&opened).as_deref(), sink);
        }
        if let Ok(result) = answer::<PromptResult>(message)
            && result.stop_reason.is_some()
        {
            self.prompted(Ok(result), sink);
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>, sink: &mut Sink<'_>) {
        let known = params.filter(|_| method == "session/update");
        let Some(notification) =
            known.and_then(|params| serde_json::from_str::<Notification<'_>>(params.get()).ok())
        else {
            return;
        };
        let is_ours =
            self.tally.session_id.as_deref().is_none_or(|ours| ours == &*notification.session_id);
        let update = &notification.update;
        match self.stage {
            Stage::Prompting { .. } if is_ours => self.update(update, sink),
            Stage::Recorded => self.update(update, sink),
            // The history of a session that is being opened. What it has cost is in there.
            Stage::Opening { .. } | Stage::Settling { .. } => {
                if let Some(cost) = update.cost.as_ref().and_then(|cost| cost.amount) {
                    self.cost_before = cost;
                }
            }
            _ => {}
        }
    }

    /// A request of the agent.
    fn asked(&mut self, method: &str, message: &Message<'_>, sink: &mut Sink<'_>) {
        self.requests += 1;
        let is_long = message.id.is_some_and(|id| id.get().len() > ID_BYTES);
        if self.requests > MOST_REQUESTS || is_long {
            if self.tally.hopeless.is_none() {
                let message = "the agent floods agentd with requests";
                self.tally.give_up(Failure::new(FailureKind::Other, message), sink);
            }
            return;
        }
        let result = match method {
            "session/request_permission" => self.permission(message.params, sink),
            // Files and terminals are not offered: an agent uses its own tools, in its cage.
            _ => None,
        };
        let id = message.id.map(|id| serde_json::from_str(id.get()).unwrap_or(Value::Null));
        let reply = match result {
            Some(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            None => {
                let text = format!("agentd does not offer {}", head(method, 80));
                let error = json!({ "code": NO_METHOD, "message": text });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
        };
        self.send(&reply);
    }

    fn permission(&mut self, params: Option<&RawValue>, sink: &mut Sink<'_>) -> Option<Value> {
        let asked: PermissionRequest<'_> = serde_json::from_str(params?.get()).ok()?;
        let Some(call) = self.calls.see(&asked.tool_call) else {
            return Some(permission::answer(&asked.options, false));
        };
        call.take_shown_arguments(asked.tool_call.content);
        let own = call.own_tool(self.request.own_tools(), &asked.options);
        let (kind, label) = (call.kind(), call.label().to_owned());
        let is_own = own.is_some();
        if let Some(event) = call.report(own) {
            self.tally.text.end_message();
            self.tally.tool_call(event, sink);
        }
        let prompted = matches!(self.stage, Stage::Prompting { .. });
        let allowed = prompted && permission::is_allowed(self.request.role, kind, is_own);
        if !allowed && self.tally.denied_tools.len() < KEPT_DENIALS {
            self.tally.denied_tools.push(label);
        }
        Some(permission::answer(&asked.options, allowed))
    }
}

impl Decoder for Dialogue {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) {
        let Ok(message) = serde_json::from_str::<Message<'_>>(line) else {
            return sink(AgentEvent::Raw { line: line.into() });
        };
        match (&message.method, message.id) {
            (Some(method), Some(_)) => {
                let method = method.clone();
                self.asked(&method, &message, sink);
            }
            (Some(method), None) => self.notification(method, message.params, sink),
            (None, Some(_)) => self.response(&message, sink),
            (None, None) => sink(AgentEvent::Raw { line: line.into() }),
        }
    }

    fn is_hopeless(&self) -> bool {
        self.tally.hopeless.is_some()
    }

    fn finish(self: Box<Self>, exit: &Exit) -> AgentOutcome {
        self.tally.finish(exit, |_| None)
    }

    fn take_output(&mut self) -> String {
        std::mem::take(&mut self.output)
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    fn wants_silence(&self) -> Option<Duration> {
        matches!(self.stage, Stage::Settling { .. }).then_some(HISTORY_PAUSE)
    }

    fn silence(&mut self, sink: &mut Sink<'_>) {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Settling { opened } => self.settled(opened.plan, sink),
            stage => self.stage = stage,
        }
    }

    fn cancel(&mut self) {
        self.is_told = true;
        if let (Stage::Prompting { .. }, Some(session)) = (&self.stage, &self.tally.session_id) {
            let params = json!({ "sessionId": session });
            self.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }));
        }
    }

    fn connection(&self) -> Option<Connection> {
        Some(self.connection.clone())
    }
}

/// What a response says. One that cannot be read is a failure of the agent.
fn answer<T: DeserializeOwned>(message: &Message<'_>) -> Result<T, Failure> {
    if let Some(error) = &message.error {
        return Err(failure::of_error(error));
    }
    let result = message.result.map_or("{}", RawValue::get);
    // Some requests are answered with nothing.
    let result = if result == "null" { "{}" } else { result };
    serde_json::from_str(result).map_err(|error| {
        let message = format!("the agent gave an answer that cannot be read: {error}");
        Failure::new(FailureKind::Other, message)
    })
}

#[cfg(test)]
#[path = "dialogue_tests.rs"]
mod tests;
