use std::collections::BTreeSet;

use serde_json::{Value, json};

use test_project::TestProject;

fn sarif(project: &TestProject, code: i32) -> Value {
    let run = project.run(["validate", "--all", "--sarif"]).exits(code);
    assert_eq!(run.stderr, "");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn sarif_structure() {
    let project = TestProject::new()
        .change("add-oauth")
        .edit("tasks.md", "src/auth.rs", "/etc/passwd")
        .edit("specs/auth-flow.md", "### Scenario: A wrong password", "### Scenario: Signing in")
        .begun("fix-bug");
    let log = sarif(&project, 1);
    assert_eq!(log["version"], "2.1.0");
    insta::assert_snapshot!(log["$schema"], @r#""https://json.schemastore.org/sarif-2.1.0.json""#);
    let runs = log["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let driver = &runs[0]["tool"]["driver"];
    assert_eq!(driver["name"], "agentd");
    let rules = driver["rules"].as_array().unwrap();
    let ids: BTreeSet<&str> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), rules.len(), "rule ids are unique");
    let results = runs[0]["results"].as_array().unwrap();
    assert!(results.len() >= 4, "{log:#}");
    for result in results {
        let id = result["ruleId"].as_str().unwrap();
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], id);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._/".contains(c);
        assert!(!uri.starts_with('/') && uri.chars().all(plain), "{uri}");
        let region = &place["region"];
        let at = |key: &str| region[key].as_u64().unwrap();
        assert!(at("startLine") >= 1 && at("startColumn") >= 1, "{region}");
        let (start, end) = ((at("startLine"), at("startColumn")), (at("endLine"), at("endColumn")));
        assert!(start <= end, "{region}");
    }
}

#[test]
fn sarif_of_sound_project() {
    let log = sarif(&TestProject::new().change("add-oauth"), 0);
    assert_eq!(log["runs"][0]["results"], json!([]));
}
