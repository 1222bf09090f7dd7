//! The agents that agentd plays itself: `builtin` and `replay`. Each call is a process
//! of agentd's own, `agentd __builtin …` or `agentd __replay …`, so that supervision,
//! records, ledger and budgets are the same as for everybody else's CLI. They print
//! [`AgentEvent`]s, one JSON object per line.

use super::tally::Tally;
use super::{AgentRequest, CommandSpec, Decoder, Provider, Session, Sink};
use crate::agent::AgentKind;
use crate::event::AgentEvent;
use crate::outcome::{AgentOutcome, Exit};

/// The first argument that makes agentd be the built-in agent.
pub const BUILTIN: &str = "__builtin";
/// The first argument that makes agentd play a recording.
pub const REPLAY: &str = "__replay";

/// agentd itself, by rule.
#[derive(Debug, Clone, Copy)]
pub struct Builtin;

/// agentd itself, doing again what a recorded agent did. Which recording, and how
/// fast, stands in the request's extra arguments.
#[derive(Debug, Clone, Copy)]
pub struct Replay;

impl Provider for Builtin {
    fn kind(&self) -> AgentKind {
        AgentKind::Builtin
    }

    fn command(&self, request: &AgentRequest) -> CommandSpec {
        command(BUILTIN, request)
    }

    fn decoder(&self, request: &AgentRequest) -> Box<dyn Decoder> {
        Box::new(OwnDecoder { tally: Tally::new(AgentKind::Builtin, request) })
    }
}

impl Provider for Replay {
    fn kind(&self) -> AgentKind {
        AgentKind::Replay
    }

    fn command(&self, request: &AgentRequest) -> CommandSpec {
        command(REPLAY, request)
    }

    fn decoder(&self, request: &AgentRequest) -> Box<dyn Decoder> {
        Box::new(OwnDecoder { tally: Tally::new(AgentKind::Replay, request) })
    }
}

/// `agentd __builtin --change add-oauth --step proposal-gen -- <the MCP server>`
fn command(first: &str, request: &AgentRequest) -> CommandSpec {
    let mut args = vec![first.to_owned()];
    let mut flag = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
    flag("--change", request.change.as_str());
    flag("--step", &request.step.to_string());
    match &request.session {
        Session::Fresh => {}
        Session::FreshWithId(id) | Session::Resume { id, .. } => flag("--session", id),
    }
    args.extend(request.extra_args.iter().cloned());
    if let Some(mcp) = &request.mcp {
        args.extend(["--".to_owned(), mcp.command.clone()]);
        args.extend(mcp.args.iter().cloned());
    }
    CommandSpec {
        program: request.program.clone(),
        args,
        env: request.extra_env.clone(),
        stdin: request.prompt.clone(),
        ..CommandSpec::default()
    }
}

struct OwnDecoder {
    tally: Tally,
}

impl Decoder for OwnDecoder {
    fn line(&mut self, line: &str, sink: &mut Sink<'_>) {
        let Ok(event) = serde_json::from_str::<AgentEvent<'static>>(line) else {
            return sink(AgentEvent::Raw { line: line.into() });
        };
        let tally = &mut self.tally;
        match event {
            AgentEvent::Session { session_id, model } => {
                tally.session(&session_id, model.as_deref(), sink);
            }
            AgentEvent::Text { text, delta } => {
                if delta {
                    tally.text.delta(&text);
                } else {
                    tally.text.whole(&text);
                }
                sink(AgentEvent::Text { text, delta });
            }
            call @ AgentEvent::ToolCall { .. } => {
                tally.text.end_message();
                tally.tool_call(call, sink);
            }
            AgentEvent::ToolResult { id, ok, output } => tally.tool_result(id, ok, output, sink),
            AgentEvent::Retry { attempt, delay_ms, reason } => {
                tally.retry(attempt, delay_ms, reason, sink);
            }
            AgentEvent::Usage { usage, cost_usd } => {
                tally.usage = Some(usage);
                let cost_usd = tally.cost(cost_usd, sink);
                sink(AgentEvent::Usage { usage, cost_usd });
            }
            AgentEvent::Failed { failure } => tally.failed(failure, sink),
            AgentEvent::Finished { text } => {
                tally.text.end_message();
                tally.succeeded(text.as_deref(), sink);
            }
            other @ (AgentEvent::Warning { .. } | AgentEvent::Raw { .. }) => sink(other),
        }
    }

    fn is_hopeless(&self) -> bool {
        self.tally.hopeless.is_some()
    }

    fn finish(self: Box<Self>, exit: &Exit) -> AgentOutcome {
        self.tally.finish(exit, |_| None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Role;
    use crate::outcome::FailureKind;
    use crate::provider::tests::{decode, exit, request};

    #[test]
    fn the_command_is_agentd_with_its_server_after_two_dashes() {
        let planner = request(Role::Planner);
        let spec = Builtin.command(&planner);
        let server = planner.mcp.unwrap();
        assert_eq!(
            spec.args.join(" "),
            format!(
                "__builtin --change add-oauth --step proposal-gen -- {} {}",
                server.command,
                server.args.join(" ")
            )
        );
        assert_eq!(spec.stdin, "agentd proposal-gen add-oauth\nhello");
        let mut resumed = request(Role::Planner);
        resumed.session =
            Session::Resume { id: "s1".into(), index: None, thread_usage: None, cost_before: None };
        resumed.extra_args = vec!["--recording".into(), "/r".into()];
        let args = Replay.command(&resumed).args.join(" ");
        insta::assert_snapshot!(args, @"__replay --change add-oauth --step proposal-gen --session s1 --recording /r -- /opt/agentd -C /p mcp --change add-oauth --role planner --step proposal-gen --receipt -");
    }

    #[test]
    fn the_stream_is_our_own_events() {
        let stream = r#"{"event":"session","session_id":"s","model":"builtin"}
{"event":"text","text":"a <review>PASS</review>"}
{"event":"tool_call","id":"1","server":"agentd","name":"read_file","arguments":{"a":1}}
{"event":"tool_result","id":"1","ok":true,"output":"x"}
what is this
{"event":"usage","input":0,"output":0,"cached":0,"cost_usd":0.0}
{"event":"finished"}"#;
        let (events, outcome) = decode(&Builtin, &request(Role::Planner), stream, &exit(0));
        assert_eq!(events.len(), 7);
        assert_eq!(outcome.session_id.as_deref(), Some("s"));
        assert_eq!((outcome.tool_calls, outcome.cost_usd), (1, Some(0.0)));
        assert!(outcome.review.is_some() && outcome.reported_success());
        let failed = r#"{"event":"failed","failure":{"kind":"refused","message":"no","hint":"h"}}"#;
        let (_, outcome) = decode(&Builtin, &request(Role::Implementer), failed, &exit(1));
        let failure = outcome.failure.unwrap();
        assert_eq!((failure.kind, failure.hint.as_deref()), (FailureKind::Refused, Some("h")));
    }
}
