//! Which rule answers, and how often.

use scripted_models::{
    Pattern, Provider, Reply, RequestFilter, RequestKind, Rule, Script, ScriptedModels, Usage,
};
use serde_json::json;

use crate::client::{ask, ask_with, said, send};

fn start(script: Script) -> ScriptedModels {
    ScriptedModels::start(script).unwrap()
}

#[test]
fn the_first_rule_that_matches_answers() {
    let models = start(
        Script::new()
            .rule(Rule::new().provider(Provider::Gemini).reply(Reply::text("not this format")))
            .rule(Rule::new().model("gpt").reply(Reply::text("not this model")))
            .rule(Rule::new().step("review").reply(Reply::text("not this step")))
            .rule(Rule::new().prompt("the plan").reply(Reply::text("text")))
            .rule(
                Rule::new()
                    .prompt(Pattern::regex(r"plan (?<what>\w+) (\d+)"))
                    .reply(Reply::text("${what} ${2} ${unknown}")),
            )
            .rule(Rule::new().step("plan").reply(Reply::text("step ${change}"))),
    );
    assert_eq!(said(&ask(&models, "make the plan")), "text");
    assert_eq!(said(&ask(&models, "plan bees 12")), "bees 12 ${unknown}");
    assert_eq!(said(&ask(&models, "agentd plan add-login\n\nagentd review x")), "step add-login");
    let rules: Vec<Option<usize>> = models.records().iter().map(|record| record.rule).collect();
    assert_eq!(rules, [Some(3), Some(4), Some(5)]);
}

#[test]
fn what_nothing_matches_is_an_error_and_a_surprise() {
    let models = start(Script::new().rule(Rule::new().step("plan").reply(Reply::text("yes"))));
    let answer = ask(&models, "agentd impl add-login");
    assert_eq!(answer.status(), 400);
    assert!(answer.body.contains("agentd impl add-login"), "{answer:?}");
    let surprises = models.surprises();
    assert_eq!(surprises.len(), 1);
    assert!(surprises[0].contains("round 0"), "{surprises:?}");

    let models = start(Script::new().otherwise(Reply::text("whatever")));
    assert_eq!(said(&ask(&models, "agentd impl add-login")), "whatever");
    assert!(models.surprises().is_empty());
}

#[test]
fn the_round_is_read_from_the_history() {
    let rule =
        Rule::new().reply(Reply::text("zero")).reply(Reply::text("one")).reply(Reply::text("last"));
    let models = start(Script::new().rule(rule));
    let round = |count: usize| {
        let mut messages = vec![
            json!({"role": "user", "content": "an earlier prompt"}),
            json!({"role": "assistant", "content": "an earlier answer"}),
            json!({"role": "user", "content": [
                {"type": "text", "text": "<system-reminder>not a prompt</system-reminder>"},
                {"type": "text", "text": "the prompt"},
            ]}),
        ];
        for index in 0..count {
            messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "name": "t", "id": index.to_string()}]}));
            messages.push(json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": index.to_string(), "content": "done"},
                {"type": "text", "text": "a reminder beside it"},
            ]}));
        }
        said(&ask_with(&models, &json!(messages)))
    };
    assert_eq!(
        [round(0), round(1), round(1), round(2), round(5)],
        ["zero", "one", "one", "last", "last"]
    );
    let requests = models.requests();
    assert!(requests.iter().all(|request| request.prompt == "the prompt"), "{requests:#?}");
    assert_eq!(requests[1].tool_results, ["done"]);
}

#[test]
fn times_counts_requests() {
    let models = start(
        Script::new()
            .rule(Rule::new().times(2).reply(Reply::status(503)))
            .rule(Rule::new().reply(Reply::text("fine"))),
    );
    let status = || ask(&models, "same prompt").status();
    assert_eq!([status(), status(), status(), status()], [503, 503, 200, 200]);
}

#[test]
fn prompts_counts_prompts_with_their_rounds_and_retries() {
    let models = start(
        Script::new()
            .rule(Rule::new().times(1).reply(Reply::status(500)))
            .rule(
                Rule::new()
                    .step("review")
                    .prompts(1)
                    .reply(Reply::text("looking"))
                    .reply(Reply::text("FAIL")),
            )
            .rule(Rule::new().step("review").reply(Reply::text("PASS"))),
    );
    let first = json!([{"role": "user", "content": "agentd review x"}]);
    let second = json!([
        {"role": "user", "content": "agentd review x"},
        {"role": "assistant", "content": "looking"},
        {"role": "user", "content": [{"type": "tool_result", "content": "ok"}]},
    ]);
    assert_eq!(ask_with(&models, &first).status(), 500);
    assert_eq!(said(&ask_with(&models, &first)), "looking");
    assert_eq!(said(&ask_with(&models, &second)), "FAIL");
    assert_eq!(said(&ask_with(&models, &second)), "FAIL");
    // The same words after a whole answer are another prompt.
    assert_eq!(said(&ask_with(&models, &first)), "PASS");
    assert_eq!(said(&ask_with(&models, &second)), "PASS");
}

#[test]
fn side_requests_are_answered_to_their_schema() {
    let schema = json!({"type": "object", "properties": {
        "title": {"type": "string"},
        "score": {"type": "integer", "minimum": 3},
        "kind": {"enum": ["a", "b"]},
    }});
    let body = json!({
        "model": "claude-x",
        "messages": [{"role": "user", "content": "agentd plan x"}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    });
    let models = start(Script::new().rule(Rule::new().reply(Reply::text("main"))));
    let answer: serde_json::Value =
        serde_json::from_str(&said(&send(&models, "POST", "/v1/messages", &body))).unwrap();
    assert_eq!(answer, json!({"title": "scripted title", "score": 3, "kind": "a"}));
    assert!(models.requests().is_empty());
    let kind = models.records()[0].request.as_ref().map(|request| request.kind);
    assert_eq!(kind, Some(RequestKind::Side));

    let side = Rule::new().requests(RequestFilter::Side).reply(Reply::text("scripted"));
    let models = start(Script::new().rule(side));
    assert_eq!(said(&send(&models, "POST", "/v1/messages", &body)), "scripted");
}

#[test]
fn a_script_can_be_json() {
    let script = Script::from_json(
        r#"{
            "usage": {"input": 7, "output": 3},
            "rules": [
                {"step": "plan", "times": 1, "replies": [{"fault": {"status": {"code": 429, "headers": {"retry-after": "1"}}}}]},
                {"provider": "anthropic", "prompt": {"regex": "^agentd (\\w+)"}, "replies": [
                    {"text": "${1}", "calls": [{"tool": "write_note", "arguments": {"name": "${change}"}}]}
                ]},
                {"replies": [{"fault": "close"}]}
            ]
        }"#,
    );
    let models = start(script.unwrap());
    let refused = ask(&models, "agentd plan x");
    assert_eq!(refused.status(), 429);
    assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
    let answer = ask(&models, "agentd plan x").json();
    assert_eq!(answer["content"][0]["text"], "plan");
    assert_eq!(answer["content"][1]["name"], "mcp__agentd__write_note");
    assert_eq!(answer["content"][1]["input"], json!({"name": "x"}));
    assert_eq!(answer["usage"]["input_tokens"], 7);
    assert_eq!(answer["usage"]["output_tokens"], 3);
    assert_eq!(ask(&models, "something else").status(), 0);
}

#[test]
fn a_script_with_mistakes_is_refused() {
    let mistakes = [
        (r#"{"rule": []}"#, "unknown field `rule`"),
        (r#"{"rules": [{"replies": [{"txt": "a"}]}]}"#, "unknown field `txt`"),
        (r#"{"rules": [{"prompt": {"regexp": "a"}, "replies": [{}]}]}"#, "did not match any"),
        (r#"{"rules": [{"prompt": {"regex": "("}, "replies": [{}]}]}"#, "group"),
        (r#"{"rules": [{"replies": [{"fault": "explode"}]}]}"#, "unknown variant `explode`"),
        (r#"{"rules": [{}]}"#, "rules[0] has no replies"),
        (r#"{"usage": {"inputs": 1}}"#, "unknown field `inputs`"),
    ];
    for (script, message) in mistakes {
        let error = Script::from_json(script).unwrap_err().to_string();
        assert!(error.contains(message), "{script}: {error}");
    }
    assert!(ScriptedModels::start(Script::new().rule(Rule::new())).is_err());
}

#[test]
fn usage_follows_each_format() {
    let usage = Usage { input: 1000, cached: 200, cache_written: 50, output: 60, reasoning: 10 };
    let models = start(Script::new().rule(Rule::new().reply(Reply::text("x"))).usage(usage));
    let anthropic = ask(&models, "p").json();
    assert_eq!(anthropic["usage"]["input_tokens"], 750);
    assert_eq!(anthropic["usage"]["cache_read_input_tokens"], 200);
    assert_eq!(anthropic["usage"]["cache_creation_input_tokens"], 50);
    assert_eq!(anthropic["usage"]["output_tokens"], 60);

    let body = json!({"model": "g", "input": "p", "tools": [{"type": "function", "name": "f"}]});
    let openai = send(&models, "POST", "/v1/responses", &body).json();
    assert_eq!(openai["usage"]["input_tokens"], 1000);
    assert_eq!(openai["usage"]["input_tokens_details"]["cached_tokens"], 200);
    assert_eq!(openai["usage"]["output_tokens"], 60);
    assert_eq!(openai["usage"]["output_tokens_details"]["reasoning_tokens"], 10);

    let body = json!({
        "contents": [{"role": "user", "parts": [{"text": "p"}]}],
        "tools": [{"functionDeclarations": [{"name": "f"}]}],
    });
    let gemini = send(&models, "POST", "/v1beta/models/g:generateContent", &body).json();
    assert_eq!(gemini["usageMetadata"]["promptTokenCount"], 1000);
    assert_eq!(gemini["usageMetadata"]["cachedContentTokenCount"], 200);
    assert_eq!(gemini["usageMetadata"]["candidatesTokenCount"], 50);
    assert_eq!(gemini["usageMetadata"]["thoughtsTokenCount"], 10);
    assert_eq!(gemini["usageMetadata"]["totalTokenCount"], 1060);
}
