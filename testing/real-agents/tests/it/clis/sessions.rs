//! Resumed sessions.

use real_agents::{Cli, Sandbox, Usage};
use scripted_models::{Reply, Role, Rule, Script};

use super::for_every_cli;

for_every_cli!(resumes_with_its_history);

fn resumes_with_its_history(cli: Cli) {
    let usage = |input, output| scripted_models::Usage {
        input,
        output,
        ..scripted_models::Usage::default()
    };
    let script = Script::new()
        .rule(Rule::new().step("plan").reply(Reply::text("First.").usage(usage(1000, 10))))
        .rule(Rule::new().step("revise").reply(Reply::text("Second.").usage(usage(2000, 20))));
    let model = match cli {
        Cli::Gemini => "gemini-3.8-flash",
        Cli::Codex => "gpt-5.5",
        Cli::Claude => "claude-opus-4-8",
    };
    Sandbox::enter(script, |sandbox| {
        let first = sandbox.call(cli, "agentd plan add-login").model(model).run();
        assert_eq!(first.final_text(), "First.", "{first:#?}");
        let id = first.session_id().unwrap();

        let call = sandbox.call(cli, "agentd revise add-login").model(model);
        let second = call.resume(&id).run();
        assert!(second.is_success(), "{second:#?}");
        assert_eq!(second.final_text(), "Second.");
        assert_eq!(second.session_id().as_deref(), Some(id.as_str()));

        let requests = sandbox.models().requests();
        assert_eq!(requests.len(), 2, "{requests:#?}");
        let history: Vec<(Role, &str)> = requests[1]
            .messages
            .iter()
            .map(|message| (message.role, message.text.trim()))
            .filter(|(_, text)| !text.is_empty())
            .collect();
        let expected = [
            (Role::User, "agentd plan add-login"),
            (Role::Model, "First."),
            (Role::User, "agentd revise add-login"),
        ];
        assert_eq!(history, expected);

        // Only codex adds up over the whole thread.
        let expected = match cli {
            Cli::Codex => Usage { input: 3000, cached: 0, output: 30 },
            Cli::Gemini | Cli::Claude => Usage { input: 2000, cached: 0, output: 20 },
        };
        assert_eq!(second.usage(), Some(expected), "{second:#?}");
    });
}
