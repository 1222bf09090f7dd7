//! What the documentation shows is what the program reads.

use agentd_core::agent::AgentKind;
use agentd_core::check::{self, Extras};
use agentd_core::config::Config;
use agentd_core::document::spec;
use agentd_core::documents::{Doc, Documents, Source};
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ChangeFile;
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

#[test]
fn samples_of_the_other_pages_load_too() {
    let pages =
        [include_str!("../../../../docs/agents.md"), include_str!("../../../../docs/replay.md")];
    for page in pages {
        let outline = Outline::scan(page);
        let samples = outline.fences.iter().filter(|fence| fence.info.of(page) == "toml");
        let loaded: Vec<Config> =
            samples.map(|fence| Config::parse(fence.content.of(page)).unwrap()).collect();
        assert!(loaded.iter().any(|config| config.roles.planner.is_own()), "{page}");
    }
}

/// The examples of documents are valid plans in themselves.
#[test]
fn examples_of_documents_are_valid() {
    let page = include_str!("../../../../docs/documents.md");
    let outline = Outline::scan(page);
    let examples: Vec<&str> = outline
        .fences
        .iter()
        .filter(|fence| fence.info.of(page) == "markdown")
        .map(|fence| fence.content.of(page))
        .collect();
    let [proposal, spec, tasks, short, allowing] = examples[..] else {
        panic!("{}", examples.len())
    };
    let proposal =
        proposal.replace("  - id: user-model\n    depends: []\n", "").replace("[user-model]", "[]");
    let spec_file = ChangeFile::Spec(SpecId::new("auth-flow").unwrap());
    let found = |tasks: &str| {
        let texts = [
            (ChangeFile::Proposal, &*proposal),
            (spec_file.clone(), spec),
            (ChangeFile::Tasks, tasks),
        ];
        let texts = texts.map(|(file, text)| (file, Source::Text(text.to_owned())));
        let documents = Documents::read(ChangeId::new("add-oauth").unwrap(), texts);
        documents.findings(&check::MainSpecs::new(), &Extras::default())
    };
    assert_eq!(found(tasks), [], "the long form");
    let found = found(short);
    let codes: Vec<&str> = found.iter().flat_map(|f| &f.diagnostics).map(|d| d.rule.code).collect();
    assert_eq!(codes, ["F002", "T017"], "the short form has no frontmatter and no description");
    let end = spec.find("## Acceptance").unwrap();
    let start = spec.find("### R1").unwrap();
    let spec = format!("{}{allowing}\n{}", &spec[..start], &spec[end..]);
    let doc = Doc::new(Source::Text(spec), spec::parse);
    let report = check::main_spec(&SpecId::new("auth-flow").unwrap(), &doc, &Extras::default());
    let report = report.unwrap();
    assert_eq!((report.diagnostics.as_slice(), report.allowed.len()), (&[][..], 1));
}
