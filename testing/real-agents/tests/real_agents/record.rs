//! Records what the real CLIs print, as test data for agentd's decoders.
//!
//! ```text
//! cargo test -p real-agents -- --ignored record
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use real_agents::{Call, Cli, Finished, Sandbox};
use scripted_models::{Fault, Reply, Rule, Script, Stop, Usage};
use serde_json::json;

use crate::{notes, side_requests};

const PROMPT: &str = "agentd plan add-login\n\nWrite the note.\n";
const SECOND_PROMPT: &str = "agentd revise add-login\n\nWrite it again.\n";

/// What to record.
struct Case {
    name: &'static str,
    clis: &'static [Cli],
    script: fn() -> Script,
    /// Makes the calls, and returns the one to keep.
    run: fn(&Sandbox, Cli) -> Finished,
}

const ALL: &[Cli] = &Cli::ALL;

const CASES: &[Case] = &[
    Case { name: "plain", clis: ALL, script: plain, run: once },
    Case { name: "tool-call", clis: ALL, script: tool_call, run: with_notes },
    Case { name: "tool-error", clis: ALL, script: tool_error, run: with_notes },
    Case { name: "unknown-tool", clis: ALL, script: unknown_tool, run: with_notes },
    Case { name: "thinking", clis: ALL, script: thinking, run: once },
    Case { name: "resume", clis: ALL, script: plain, run: resumed },
    Case { name: "resume-unknown", clis: ALL, script: plain, run: resume_unknown },
    Case { name: "mcp-dead", clis: ALL, script: plain, run: with_dead_mcp },
    Case { name: "error-400", clis: ALL, script: || always(Reply::status(400)), run: once },
    Case { name: "error-401", clis: ALL, script: || always(Reply::status(401)), run: once },
    Case {
        name: "error-500",
        clis: &[Cli::Codex, Cli::Claude],
        script: || always(Reply::status(500)),
        run: once,
    },
    Case {
        name: "retry-429",
        clis: ALL,
        script: || after(Reply::status(429).header("retry-after", "1")),
        run: once,
    },
    Case { name: "retry-500", clis: ALL, script: || after(Reply::status(500)), run: once },
    Case { name: "cut-once", clis: ALL, script: || after(cut()), run: once },
    Case { name: "cut-always", clis: ALL, script: || always(cut()), run: once },
    Case { name: "ended-once", clis: ALL, script: || after(ended()), run: once },
    Case { name: "ended-always", clis: ALL, script: || always(ended()), run: once },
    Case {
        name: "closed-once",
        clis: ALL,
        script: || after(Reply::fault(Fault::Close)),
        run: once,
    },
    Case { name: "garbage", clis: ALL, script: || always(Reply::fault(Fault::Garbage)), run: once },
    Case { name: "empty", clis: ALL, script: || always(Reply::empty()), run: once },
    Case {
        name: "max-tokens",
        clis: ALL,
        script: || always(Reply::text("I was cut").stop(Stop::MaxTokens)),
        run: once,
    },
    Case {
        name: "refusal",
        clis: ALL,
        script: || always(Reply::text("I can not").stop(Stop::Refusal)),
        run: once,
    },
    Case {
        name: "hang",
        clis: ALL,
        script: || always(Reply::fault(Fault::Hang)),
        run: until_killed,
    },
    Case {
        name: "hang-midway",
        clis: ALL,
        script: || always(Reply::fault(Fault::HangMidway).saying("I started")),
        run: until_killed,
    },
    Case { name: "no-key", clis: ALL, script: plain, run: without_key },
    Case { name: "empty-prompt", clis: ALL, script: plain, run: with_empty_prompt },
    Case { name: "untrusted-folder", clis: &[Cli::Gemini], script: plain, run: untrusted },
    Case { name: "no-auth-choice", clis: &[Cli::Gemini], script: plain, run: without_auth_choice },
    Case {
        name: "deferred-tool-call",
        clis: &[Cli::Codex],
        script: tool_call,
        run: |sandbox, cli| with_model(sandbox, cli, "gpt-5.5"),
    },
    Case {
        name: "function-tool-call",
        clis: &[Cli::Codex],
        script: tool_call,
        run: |sandbox, cli| with_model(sandbox, cli, "scripted-model"),
    },
    Case { name: "side-requests", clis: &[Cli::Claude], script: plain, run: with_title },
    Case { name: "max-turns", clis: &[Cli::Claude], script: tool_call, run: with_one_turn },
    Case {
        name: "partial-messages",
        clis: &[Cli::Claude],
        script: tool_call,
        run: with_partial_messages,
    },
];

#[test]
#[ignore = "regenerates testing/fixtures/streams"]
fn record() {
    let only = std::env::var("RECORD_ONLY").ok();
    let wanted = CASES.iter().filter(|case| only.as_deref().is_none_or(|only| only == case.name));
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
                    Sandbox::enter((case.script)(), |sandbox| {
                        let finished = (case.run)(sandbox, cli);
                        keep(sandbox, case.name, &finished);
                    });
                }
            });
        }
    });
}

/// Writes the stream as it was, apart from the sandbox's own place.
fn keep(sandbox: &Sandbox, name: &str, finished: &Finished) {
    let folder = fixtures().join(finished.cli.program());
    fs::create_dir_all(&folder).unwrap();
    let place = sandbox.root().to_str().unwrap();
    let slug = place.replace('/', "-");
    let url = sandbox.models().url();
    let clis = sandbox.clis().bin_folder();
    let clis = clis.parent().unwrap().to_str().unwrap();
    let anonymous = |text: &str| {
        let text = text.replace(place, "/sandbox").replace(&slug, "-sandbox");
        text.replace(&url, "http://127.0.0.1:1").replace(clis, "/agents/node_modules")
    };
    fs::write(folder.join(format!("{name}.jsonl")), anonymous(&finished.stdout)).unwrap();
    let run = json!({
        "exit_code": finished.exit_code,
        "signal": finished.signal,
        "killed_by_time_limit": finished.is_killed,
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

fn plain() -> Script {
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

fn tool_call() -> Script {
    let note = json!({"name": "plan", "text": "# Plan for ${change}\n"});
    Script::new().rule(
        Rule::new()
            .reply(Reply::call("write_note", note).saying("I will write the note."))
            .reply(Reply::text("<review>PASS</review>")),
    )
}

fn tool_error() -> Script {
    Script::new().rule(
        Rule::new()
            .reply(Reply::call("fail", json!({})).saying("I will try."))
            .reply(Reply::text("It failed: ${tool_result}")),
    )
}

fn unknown_tool() -> Script {
    Script::new().rule(
        Rule::new()
            .reply(Reply::call("no_such_tool", json!({"a": 1})))
            .reply(Reply::text("It said: ${tool_result}")),
    )
}

fn thinking() -> Script {
    let reply = Reply::text("Done thinking.").thinking("First I look, then I leap.");
    always(reply.usage(Usage { input: 500, output: 90, reasoning: 40, ..Usage::default() }))
}

fn cut() -> Reply {
    Reply::fault(Fault::CutMidway).saying("The plan is nearly made.")
}

fn ended() -> Reply {
    Reply::fault(Fault::EndMidway).saying("The plan is nearly made.")
}

/// The same answer for ever.
fn always(reply: Reply) -> Script {
    Script::new().rule(Rule::new().reply(reply))
}

/// One fault, then a plain answer.
fn after(fault: Reply) -> Script {
    let mut script = plain();
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

fn with_model(sandbox: &Sandbox, cli: Cli, model: &str) -> Finished {
    call(sandbox, cli).mcp(&notes(sandbox)).model(model).run()
}

fn resumed(sandbox: &Sandbox, cli: Cli) -> Finished {
    let first = once(sandbox, cli);
    sandbox.call(cli, SECOND_PROMPT).resume(&first.session_id().unwrap()).run()
}

fn resume_unknown(sandbox: &Sandbox, cli: Cli) -> Finished {
    call(sandbox, cli).resume("0a1b2c3d-0000-4000-8000-000000000000").run()
}

fn with_dead_mcp(sandbox: &Sandbox, cli: Cli) -> Finished {
    let mut dead = notes(sandbox);
    dead.command = "/bin/false".into();
    call(sandbox, cli).mcp(&dead).run()
}

fn until_killed(sandbox: &Sandbox, cli: Cli) -> Finished {
    call(sandbox, cli).limit(Duration::from_secs(12)).run()
}

fn without_key(sandbox: &Sandbox, cli: Cli) -> Finished {
    let call = call(sandbox, cli).without_variable("GEMINI_API_KEY");
    call.without_variable("OPENAI_API_KEY").without_variable("ANTHROPIC_API_KEY").run()
}

fn with_empty_prompt(sandbox: &Sandbox, cli: Cli) -> Finished {
    sandbox.call(cli, "").run()
}

fn untrusted(sandbox: &Sandbox, cli: Cli) -> Finished {
    call(sandbox, cli).without_variable("GEMINI_CLI_TRUST_WORKSPACE").run()
}

fn without_auth_choice(sandbox: &Sandbox, cli: Cli) -> Finished {
    fs::remove_file(sandbox.home().join(".gemini/settings.json")).unwrap();
    call(sandbox, cli).run()
}

fn with_title(sandbox: &Sandbox, cli: Cli) -> Finished {
    call(sandbox, cli).without_variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC").run()
}

fn with_one_turn(sandbox: &Sandbox, cli: Cli) -> Finished {
    let call = call(sandbox, cli).mcp(&notes(sandbox));
    call.argument("--max-turns").argument("1").run()
}

fn with_partial_messages(sandbox: &Sandbox, cli: Cli) -> Finished {
    call(sandbox, cli).mcp(&notes(sandbox)).argument("--include-partial-messages").run()
}
