//! What the documentation shows is what the program reads.

use agentd_core::agent::AgentKind;
use agentd_core::config::Config;
use agentd_core::outline::Outline;

/// Lesson 11: every sample of configuration in the docs loads.
#[test]
fn samples_of_configuration_load() {
    let page = include_str!("../../../../docs/configuration.md");
    let outline = Outline::scan(page);
    let samples: Vec<&str> = outline
        .fences
        .iter()
        .filter(|fence| fence.info.of(page) == "toml")
        .map(|fence| fence.content.of(page))
        .collect();
    assert!(!samples.is_empty());
    for sample in samples {
        let config = Config::parse(sample).unwrap();
        assert_eq!(config.roles.planner, AgentKind::Gemini);
        let misspelt = sample.replacen("planning_iterations", "planing_iterations", 1);
        let error = Config::parse(&misspelt).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("did you mean `planning_iterations`?"));
    }
}
