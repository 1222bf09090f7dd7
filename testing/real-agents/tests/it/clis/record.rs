//! Records what the real CLIs print, as test data for agentd's decoders.
//!
//! ```text
//! cargo test -p real-agents --test it -- --ignored clis::record
//! ```

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use real_agents::{Call, Cli, Finished, Profile, Sandbox, Signal};
use scripted_models::{Fault, Reply, Rule, Script, Stop, Usage};
use serde_json::json;

use super::{notes, side_requests};

const PROMPT: &str = "agentd plan add-login\n\nWrite the note.\n";
const SECOND_PROMPT: &str = "agentd revise add-login\n\nWrite it again.\n";

/// What to record.
struct Case {
    name: &'static str,
    /// Of the file with stdout: not every output is a stream.
    extension: &'static str,
    clis: &'static [Cli],
    script: fn(Cli) -> Script,
    /// Makes the calls, and returns the one to keep.
    run: fn(&Sandbox, Cli) -> Finished,
}

const ALL: &[Cli] = &Cli::ALL;
const GEMINI: &[Cli] = &[Cli::Gemini];
const CODEX: &[Cli] = &[Cli::Codex];
const CLAUDE: &[Cli] = &[Cli::Claude];

fn cases() -> Vec<Case> {
    let case = |name, clis, script, run| Case { name, extension: "jsonl", clis, script, run };
    let text = |name, clis, script, run| Case { name, extension: "txt", clis, script, run };
    vec![
        // As it should be.
        case("plain", ALL, plain, once),
        case("tool-call", ALL, tool_call, with_notes),
        case("tool-error", ALL, tool_error, with_notes),
        case("unknown-tool", ALL, unknown_tool, with_notes),
        case("work", ALL, super::work, |sandbox, cli| {
            call(sandbox, cli).profile(Profile::Writer).run()
        }),
        case("work-denied", ALL, super::work, once),
        case("thinking", ALL, thinking, once),
        case("resume", ALL, plain, resumed),
        // Requests that fail.
        case("error-400", ALL, |_| always(Reply::status(400)), once),
        case("error-401", ALL, |_| always(Reply::status(401)), once),
        // gemini would take minutes, and has no variable to limit that.
        case("error-500", &[Cli::Codex, Cli::Claude], |_| always(Reply::status(500)), once),
        case("retry-429", ALL, |_| after(Reply::status(429).header("retry-after", "1")), once),
        case("retry-500", ALL, |_| after(Reply::status(500)), once),
        case("cut-once", ALL, |_| after(half(Fault::CutMidway)), once),
        case("cut-always", ALL, |_| always(half(Fault::CutMidway)), once),
        case("ended-once", ALL, |_| after(half(Fault::EndMidway)), once),
        case("ended-always", ALL, |_| always(half(Fault::EndMidway)), once),
        case("closed-once", ALL, |_| after(Reply::fault(Fault::Close)), once),
        case("garbage", ALL, |_| always(Reply::fault(Fault::Garbage)), once),
        // Answers that are none.
        case("empty", ALL, |_| always(Reply::empty()), once),
        case("max-tokens", ALL, |_| always(Reply::text("I was cut").stop(Stop::MaxTokens)), once),
        case("refusal", ALL, |_| always(Reply::text("I can not").stop(Stop::Refusal)), once),
        // Ended from outside.
        case(
            "hang",
            ALL,
            |_| always(Reply::fault(Fault::Hang)),
            |sandbox, cli| signalled(sandbox, cli, Signal::KILL),
        ),
        case(
            "hang-midway",
            ALL,
            |_| always(half(Fault::HangMidway)),
            |sandbox, cli| signalled(sandbox, cli, Signal::KILL),
        ),
        case(
            "interrupted",
            ALL,
            |_| always(half(Fault::HangMidway)),
            |sandbox, cli| signalled(sandbox, cli, Signal::INT),
        ),
        case(
            "terminated",
            ALL,
            |_| always(half(Fault::HangMidway)),
            |sandbox, cli| signalled(sandbox, cli, Signal::TERM),
        ),
        // Failures to start.
        case("resume-unknown", ALL, plain, |sandbox, cli| {
            call(sandbox, cli).resume("0a1b2c3d-0000-4000-8000-000000000000").run()
        }),
        case("mcp-dead", ALL, plain, with_dead_mcp),
        case("no-key", ALL, plain, without_key),
        case("empty-prompt", ALL, plain, |sandbox, cli| sandbox.call(cli, "").run()),
        case("untrusted-folder", GEMINI, plain, |sandbox, cli| {
            call(sandbox, cli).without_variable("GEMINI_CLI_TRUST_WORKSPACE").run()
        }),
        case("no-auth-choice", GEMINI, plain, without_auth_choice),
        // What one CLI alone has.
        text("list-sessions", GEMINI, plain, listed_sessions),
        text("list-sessions-none", GEMINI, plain, list_sessions),
        case("deferred-tool-call", CODEX, tool_call, |sandbox, cli| {
            call(sandbox, cli).mcp(&notes(sandbox)).model("gpt-5.5").run()
        }),
        case("function-tool-call", CODEX, tool_call, |sandbox, cli| {
            call(sandbox, cli).mcp(&notes(sandbox)).model("scripted-model").run()
        }),
        case("resume-other-model", CODEX, plain, resumed_with_other_model),
        case("side-requests", CLAUDE, plain, |sandbox, cli| {
            let variable = "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC";
            call(sandbox, cli).without_variable(variable).run()
        }),
        case("max-turns", CLAUDE, tool_call, |sandbox, cli| {
            call(sandbox, cli).mcp(&notes(sandbox)).argument("--max-turns").argument("1").run()
        }),
        case("partial-messages", CLAUDE, tool_call, |sandbox, cli| {
            let call = call(sandbox, cli).mcp(&notes(sandbox));
            call.argument("--include-partial-messages").run()
        }),
        case("tool-not-allowed", CLAUDE, super::work, |sandbox, cli| {
            call(sandbox, cli).argument("--tools").argument("Write,Bash").run()
        }),
    ]
}

#[test]
#[ignore = "regenerates testing/fixtures/streams"]
fn record() {
    let only = std::env::var("RECORD_ONLY").ok();
    let cases = cases();
    let wanted = cases.iter().filter(|case| only.as_deref().is_none_or(|only| only == case.name));
    let jobs: Vec<(&Case, Cli)> =
        wanted.flat_map(|case| case.clis.iter().map(move |&cli| (case, cli))).collect();
    let queue = std::sync::Mutex::new(jobs.into_iter());
    // Most of them wait for a retry most of the time.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let job = queue.lock().unwrap().next();
                    let Some((case, cli)) = job else { break };
                    Sandbox::enter((case.script)(cli), |sandbox| {
                        let finished = (case.run)(sandbox, cli);
                        keep(sandbox, case, &finished);
                    });
                }
            });
        }
    });
}

/// Writes the stream as it was, apart from the sandbox's own place.
fn keep(sandbox: &Sandbox, case: &Case, finished: &Finished) {
    let Case { name, extension, .. } = case;
    let folder = fixtures().join(finished.cli.program());
    fs::create_dir_all(&folder).unwrap();
    let base = sandbox.base();
    let place = base.to_str().unwrap();
    let slug = place.replace('/', "-");
    let url = sandbox.models().url();
    let clis = sandbox.clis().bin_folder();
    let clis = clis.parent().unwrap().to_str().unwrap();
    let anonymous = |text: &str| {
        let text = text.replace(place, "/sandbox").replace(&slug, "-sandbox");
        text.replace(&url, "http://127.0.0.1:1").replace(clis, "/agents/node_modules")
    };
    fs::write(folder.join(format!("{name}.{extension}")), anonymous(&finished.stdout)).unwrap();
    let run = json!({
        "exit_code": finished.exit_code,
        "signal": finished.signal,
        "signalled_by_us": finished.is_killed,
        "seconds": (finished.elapsed.as_secs_f64() * 10.0).round() / 10.0,
        "main_requests": sandbox.models().requests().len(),
        "side_requests": side_requests(&sandbox.models().records()),
        "stderr": anonymous(&finished.stderr),
    });
    let run = serde_json::to_string_pretty(&run).unwrap();
    fs::write(folder.join(format!("{name}.run.json")), run + "\n").unwrap();
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/streams")
}

fn plain(_: Cli) -> Script {
    Script::new()
        .rule(Rule::new().step("plan").reply(Reply::text("The plan is made.").usage(Usage {
            input: 1234,
            cached: 200,
            cache_written: 34,
            output: 56,
            reasoning: 7,
        })))
        .rule(Rule::new().step("revise").reply(Reply::text("The plan is better.").usage(Usage {
            input: 2345,
            cached: 300,
            cache_written: 45,
            output: 67,
            reasoning: 8,
        })))
}

fn tool_call(_: Cli) -> Script {
    let note = json!({"name": "plan", "text": "# Plan for ${change}\n"});
    Script::new().rule(
        Rule::new()
            .reply(Reply::call("write_note", note).saying("I will write the note."))
            .reply(Reply::text("<review>PASS</review>")),
    )
}

fn tool_error(_: Cli) -> Script {
    Script::new().rule(
        Rule::new()
            .reply(Reply::call("fail", json!({})).saying("I will try."))
            .reply(Reply::text("It failed: ${tool_result}")),
    )
}

fn unknown_tool(_: Cli) -> Script {
    Script::new().rule(
        Rule::new()
            .reply(Reply::call("no_such_tool", json!({"a": 1})))
            .reply(Reply::text("It said: ${tool_result}")),
    )
}

fn thinking(_: Cli) -> Script {
    let reply = Reply::text("Done thinking.").thinking("First I look, then I leap.");
    always(reply.usage(Usage { input: 500, output: 90, reasoning: 40, ..Usage::default() }))
}

fn half(fault: Fault) -> Reply {
    Reply::fault(fault).saying("The plan is nearly made.")
}

/// Always the same answer.
fn always(reply: Reply) -> Script {
    Script::new().rule(Rule::new().reply(reply))
}

/// One fault, then a plain answer.
fn after(fault: Reply) -> Script {
    let mut script = plain(Cli::Gemini);
    script.rules.insert(0, Rule::new().times(1).reply(fault));
    script
}

/// The call that most cases make, with claude's retries limited: its own limit
/// takes minutes.
fn call(sandbox: &Sandbox, cli: Cli) -> Call<'_> {
    sandbox.call(cli, PROMPT).variable("CLAUDE_CODE_MAX_RETRIES", "2")
}

fn once(sandbox: &Sandbox, cli: Cli) -> Finished {
    call(sandbox, cli).run()
}

fn with_notes(sandbox: &Sandbox, cli: Cli) -> Finished {
    call(sandbox, cli).mcp(&notes(sandbox)).run()
}

fn resumed(sandbox: &Sandbox, cli: Cli) -> Finished {
    let first = once(sandbox, cli);
    sandbox.call(cli, SECOND_PROMPT).resume(&first.session_id().unwrap()).run()
}

fn resumed_with_other_model(sandbox: &Sandbox, cli: Cli) -> Finished {
    let first = call(sandbox, cli).model("gpt-5.5").run();
    let second = sandbox.call(cli, SECOND_PROMPT).model("gpt-6.1-sol");
    second.resume(&first.session_id().unwrap()).run()
}

fn list_sessions(sandbox: &Sandbox, cli: Cli) -> Finished {
    sandbox.call(cli, "").argument("--list-sessions").run()
}

/// Sessions whose titles could be mistaken for something else.
fn listed_sessions(sandbox: &Sandbox, cli: Cli) -> Finished {
    let first = once(sandbox, cli);
    sandbox.call(cli, "agentd plan odd (Just now) [not-an-id]\n\n  2. second line\n").run();
    let long = format!("agentd plan {}é", "long-".repeat(60));
    sandbox.call(cli, &long).run();
    sandbox.call(cli, SECOND_PROMPT).resume(&first.session_id().unwrap()).run();
    list_sessions(sandbox, cli)
}

fn with_dead_mcp(sandbox: &Sandbox, cli: Cli) -> Finished {
    let mut dead = notes(sandbox);
    dead.command = "/bin/false".into();
    call(sandbox, cli).mcp(&dead).run()
}

/// Ends it by a signal, two seconds into the request.
fn signalled(sandbox: &Sandbox, cli: Cli, signal: Signal) -> Finished {
    let seen = OnceCell::new();
    call(sandbox, cli).signal(signal).run_until(|| {
        let is_asked = seen.get().is_some() || !sandbox.models().requests().is_empty();
        is_asked && seen.get_or_init(Instant::now).elapsed() > Duration::from_secs(2)
    })
}

fn without_key(sandbox: &Sandbox, cli: Cli) -> Finished {
    let call = call(sandbox, cli).without_variable("GEMINI_API_KEY");
    call.without_variable("OPENAI_API_KEY").without_variable("ANTHROPIC_API_KEY").run()
}

fn without_auth_choice(sandbox: &Sandbox, cli: Cli) -> Finished {
    fs::remove_file(sandbox.home().join(".gemini/settings.json")).unwrap();
    call(sandbox, cli).run()
}
