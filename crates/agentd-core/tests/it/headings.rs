//! Documents with headings in other languages (contract R5).

use agentd_core::check::{self, Extras};
use agentd_core::document::{proposal, review, rewrite, spec, tasks};
use agentd_core::documents::{Doc, Source};
use agentd_core::ids::{Layer, SpecId};
use agentd_core::merge::{self, Sides};
use agentd_core::text::Prose;

/// Per language: Overview, Requirements, Acceptance Criteria, Flow, Interfaces, Data Model, Scenario.
const SPECS: [[&str; 7]; 7] = [
    [
        "Overview",
        "Requirements",
        "Acceptance Criteria",
        "Flow",
        "Interfaces",
        "Data Model",
        "Scenario:",
    ],
    ["概覽", "需求", "驗收標準", "流程", "介面", "資料模型", "情境："],
    ["概览", "需求", "验收标准", "流程", "接口", "数据模型", "场景："],
    ["概要", "要件", "受け入れ基準", "フロー", "インターフェース", "データモデル", "シナリオ："],
    [
        "Überblick",
        "Anforderungen",
        "Akzeptanzkriterien",
        "Ablauf",
        "Schnittstellen",
        "Datenmodell",
        "Szenario 1:",
    ],
    [
        "Aperçu",
        "Exigences",
        "Critères d’acceptation",
        "Flux",
        "Interfaces",
        "Modèle de données",
        "Scénario :",
    ],
    [
        "Visión general",
        "Requisitos",
        "Criterios de aceptación",
        "Flujo",
        "Interfaces",
        "Modelo de datos",
        "Escenario:",
    ],
];

fn spec_text(
    [overview, requirements, criteria, flow, interfaces, data, scenario]: [&str; 7],
) -> String {
    format!(
        "---\nid: a\ntype: spec\ntitle: A\nversion: 1\n---\n\n# A\n\n## {overview}\n\nO.\n\n## {requirements}\n\n\
         ### R1: One\n\nIt MUST return 1.\n\n#### {scenario} Below\n\n- **WHEN** b\n- **THEN** 2\n\n\
         ## {criteria}\n\n### {scenario} No\n\n- **WHEN** no\n- **THEN** 1\n\n\
         ## {flow}\n\nF.\n\n## {interfaces}\n\nI.\n\n## {data}\n\nD.\n"
    )
}

#[test]
fn specs_say_the_same_in_every_language() {
    let english = spec::parse(&spec_text(SPECS[0])).value;
    for names in SPECS {
        let text = spec_text(names);
        let read = spec::parse(&text).value;
        assert_eq!(read, english, "{names:?}");
        assert_eq!(spec::parse(&spec::render(&read)).value, english, "{names:?}");
        let doc = Doc::new(Source::Text(text), spec::parse);
        let report = check::main_spec(&SpecId::new("a").unwrap(), &doc, &Extras::default());
        assert!(report.is_none(), "{names:?}: {report:?}");
    }
}

#[test]
fn a_merge_goes_into_the_sections_that_are_there() {
    let change = "---\nid: a\ntype: spec\ntitle: A\nversion: 1\n---\n\n# A\n\n## Overview\n\nO.\n\n## Requirements\n\n\
                  ### R2: Two\n\nIt MUST return 2.\n\n## Acceptance Criteria\n\n### Scenario: Two\n\n- **WHEN** x\n- **THEN** y\n";
    for names in SPECS {
        let main = spec_text(names);
        let merged =
            merge::spec(&Sides { base: Some(&main), main: Some(&main), change }, &|_| false);
        assert_eq!(merged.conflicts, [], "{names:?}");
        let count = merged.text.lines().filter(|line| line.starts_with("## ")).count();
        assert_eq!(count, 6, "{}", merged.text);
        let read = spec::parse(&merged.text).value;
        let ids: Vec<String> = read.requirements.iter().map(|r| r.id.to_string()).collect();
        assert_eq!(ids, ["R1", "R2"], "{}", merged.text);
        assert_eq!(read.scenarios.len(), 2, "{}", merged.text);
    }
}

#[test]
fn a_spec_is_written_over_with_its_headings() {
    for names in SPECS {
        let text = spec_text(names);
        let mut changed = spec::parse(&text).value;
        changed.overview = Prose::new("Other.");
        let over = rewrite::spec(&text, &changed);
        assert!(over.contains(&format!("## {}\n\nOther.\n", names[0])), "{over}");
        assert_eq!(spec::parse(&over).value, changed, "{over}");
    }
}

/// The words of steps, as Cucumber's languages have them: plain, with stars, with a colon.
#[test]
fn steps_are_read_in_every_language() {
    let read = |steps: &str| {
        let text = format!("## Acceptance Criteria\n\n### Scenario: A\n\n{steps}\n");
        let mut scenarios = spec::parse(&text).value.scenarios;
        let steps = scenarios.pop().unwrap().steps;
        steps.iter().map(|s| format!("{} {}", s.keyword.label(), s.text)).collect::<Vec<_>>()
    };
    for [given, when, then, and] in [
        ["Gegeben sei ", "Wenn ", "Dann ", "Und "],
        ["Gegeben: ", "wenn ", "DANN ", "Aber "],
        ["Étant donné que ", "Quand ", "Alors ", "Et "],
        ["Etant donnée ", "Lorsqu'", "Donc ", "Mais qu’"],
        ["Soit ", "Lorsque ", "Alors ", "Et que "],
        ["Dado ", "Cuando ", "Entonces ", "Y "],
        ["假如", "当", "那么", "并且"],
        ["假設", "當", "那麼", "而且"],
        ["前提 ", "もし、", "ならば", "かつ"],
    ] {
        let expected = ["GIVEN a", "WHEN b", "THEN c", "AND d"];
        let bold = |word: &str| {
            let word = word.trim_end_matches([' ', '、']);
            match word.strip_suffix(':') {
                Some(word) => format!("**{word}:** "),
                None => format!("**{word}** "),
            }
        };
        let steps = [(given, "a"), (when, "b"), (then, "c"), (and, "d")];
        let bullets = steps.map(|(word, text)| format!("- {}{text}\n", bold(word)));
        assert_eq!(read(&bullets.concat()), expected, "{given}");
        // Without stars, a small letter begins prose.
        if !when.starts_with(char::is_lowercase) {
            let bullets = steps.map(|(word, text)| format!("* {word}{text}\n"));
            assert_eq!(read(&bullets.concat()), expected, "{given}");
            let lines = steps.map(|(word, text)| format!("{word}{text}\n"));
            assert_eq!(read(&lines.concat()), expected, "{given}");
        }
    }
    for prose in [
        "- wenn es geht",
        "- Wenngleich",
        "- 当前用户的名字",
        "- もしくは",
        "- **Wenn es geht**",
        "- Dann-Zweig",
    ] {
        assert_eq!(read(&format!("- **WHEN** x\n- **THEN** y\n{prose}")), ["WHEN x", "THEN y"]);
    }
    // A wrapped line goes on, whatever its first word.
    assert_eq!(read("- **WHEN** x\n  Und y"), ["WHEN x Und y"]);
}

#[test]
fn required_headings_are_found_in_every_language() {
    for names in SPECS {
        let wanted = ["Data Model", "Modelo de datos", "schnittstellen"];
        let required_headings = wanted.map(str::to_owned).to_vec();
        let extras = Extras { required_headings, ..Extras::default() };
        let report = |text: String| {
            let doc = Doc::new(Source::Text(text), spec::parse);
            check::main_spec(&SpecId::new("a").unwrap(), &doc, &extras)
        };
        let report_of_all = report(spec_text(names));
        assert!(report_of_all.is_none(), "{names:?}: {report_of_all:?}");
        let without = spec_text(names).replace(&format!("## {}\n", names[5]), "## Else\n");
        let found = report(without).map(|report| report.diagnostics).unwrap_or_default();
        let codes: Vec<&str> = found.iter().map(|finding| finding.rule.code).collect();
        assert_eq!(codes, ["S014", "S014"], "{names:?}");
    }
}

/// What one document says twice is read where it is English.
#[test]
fn an_english_heading_comes_before_one_of_another_language() {
    let text =
        "## Anforderungen\n\n### R9: No\n\nx\n\n## Requirements\n\n### R1: Yes\n\nIt MUST.\n";
    let ids = |text: &str| -> Vec<String> {
        spec::parse(text).value.requirements.iter().map(|r| r.id.to_string()).collect()
    };
    assert_eq!(ids(text), ["R1"]);
    let change = "## Requirements\n\n### R2: New\n\nIt MUST be.\n";
    let merged = merge::spec(&Sides { base: Some(text), main: Some(text), change }, &|_| false);
    assert_eq!(ids(&merged.text), ["R1", "R2"], "{}", merged.text);
}

#[test]
fn proposals_say_the_same_in_every_language() {
    let text = |[summary, why, what, impact]: [&str; 4]| {
        format!(
            "---\nid: c\ntype: proposal\nversion: 1\naffected_specs: []\n---\n\n# C\n\n## {summary}\n\nS.\n\n\
             ## {why}\n\nW.\n\n## {what}\n\n- x\n\n## {impact}\n\n- **Scope**: patch\n"
        )
    };
    let english = ["Summary", "Why", "What Changes", "Impact"];
    let expected = proposal::parse(&text(english)).value;
    assert_eq!(expected.why.as_str(), "W.");
    for names in [
        ["摘要", "為什麼", "變更內容", "影響"],
        ["摘要", "为什么", "变更内容", "影响"],
        ["要約", "理由", "変更内容", "影響"],
        ["Zusammenfassung", "Warum", "Änderungen", "Auswirkungen"],
        ["Résumé", "Pourquoi", "Changements", "Impact"],
        ["Resumen", "Por qué", "Cambios", "Impacto"],
    ] {
        let read = proposal::parse(&text(names)).value;
        assert_eq!(read, expected, "{names:?}");
        for name in english {
            assert!(read.place.sections.0.iter().any(|section| section.is(name)), "{name}");
        }
    }
}

#[test]
fn layers_and_issues_are_read_in_every_language() {
    for (title, layer) in [
        ("2. Logikschicht", Layer::Logic),
        ("2. Couche logique", Layer::Logic),
        ("2. Capa de lógica", Layer::Logic),
        ("2. 邏輯層", Layer::Logic),
        ("2. 逻辑层", Layer::Logic),
        ("2. ロジック層", Layer::Logic),
        ("資料", Layer::Data),
        ("Pruebas", Layer::Testing),
    ] {
        let read = tasks::parse(&format!("# T\n\n## {title}\n\n- [ ] do it\n")).value;
        assert_eq!(read.tasks[0].layer, Some(layer), "{title}");
    }
    for title in ["Issues", "問題", "问题", "課題", "Befunde", "Problèmes", "Problemas"] {
        let text = format!("## {title}\n\n### I1: Broken\n\n- Severity: HIGH\n\nIt is.\n");
        assert_eq!(review::parse(&text).value.issues.len(), 1, "{title}");
    }
}
