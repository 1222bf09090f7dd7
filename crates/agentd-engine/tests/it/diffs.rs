//! What has changed: plans since a round, specs against the main specs, code by layer and task.

use agentd_core::diff::{LineDiff, LineKind};
use agentd_core::document::tasks::Task;
use agentd_core::ids::Layer;
use agentd_core::state::{self, GitSetup, Placement};
use agentd_engine::change::Snapshot;
use agentd_engine::git::FileChange;
use agentd_engine::insight::diff::{
    self, CodeDiff, CodeFile, PlanVersion, code, plan, rounds, specs,
};
use agentd_engine::tools::{self, input};
use serde_json::json;
use test_project::{TestProject, stamp, write_script};

fn snapshot(project: &TestProject) -> Snapshot {
    project.store().change(&project.id()).unwrap().snapshot().unwrap()
}

/// As the challenger's tool does it, which keeps the plan that it saw.
fn review(project: &TestProject, at: &str) {
    let review = json!({
        "change_id": project.id(), "verdict": "NEEDS_REVISION", "summary": "Not yet.",
        "issues": [{"severity": "low", "title": "t", "description": "d", "location": "auth-flow:R1",
                    "recommendation": "r"}],
    });
    let input = input::read(review.as_object().unwrap().clone()).unwrap();
    project.as_agent("codex", stamp(at), |session| tools::append_review(session, input)).unwrap();
}

/// The lines that differ, with their numbers in the new text.
fn lines(diff: &LineDiff) -> Vec<String> {
    let all = diff.hunks.iter().flat_map(|hunk| &hunk.lines);
    all.filter(|line| line.kind != LineKind::Same)
        .map(|line| match (line.old, line.new) {
            (_, Some(new)) => format!("+{new} {}", line.text()),
            _ => format!("- {}", line.text()),
        })
        .collect()
}

#[test]
fn a_plan_is_compared_with_the_one_that_a_round_saw() {
    let project = TestProject::new().change("add-oauth");
    review(&project, "2026-11-10T09:00:00Z");
    project.replace("specs/auth-flow.md", "within 200 ms", "within 100 ms");
    review(&project, "2026-11-10T10:00:00Z");
    project.replace("proposal.md", "## Why", "## Why\n\nBecause.");
    project.write("specs/more.md", "# Specification: More\n");
    let change = snapshot(&project);
    assert_eq!(rounds(&change), [1, 2]);
    let between = plan(&change, PlanVersion::Round(1), PlanVersion::Round(2)).unwrap();
    assert_eq!(between.files.len(), 1);
    let spec = &between.files[0];
    assert_eq!(spec.file.path().as_str(), "specs/auth-flow.md");
    assert_eq!(spec.diff.hunks[0].under, "R1: Sign in");
    // Without the frontmatter, which was not kept.
    let expected = [
        "- The server MUST answer a sign-in within 200 ms.",
        "+13 The server MUST answer a sign-in within 100 ms.",
    ];
    assert_eq!(lines(&spec.diff), expected);
    let since = plan(&change, PlanVersion::Round(1), PlanVersion::Now).unwrap();
    let names: Vec<_> = since
        .files
        .iter()
        .map(|it| (it.file.path().to_string(), it.was_there, it.is_there))
        .collect();
    let expected = [
        ("proposal.md".to_owned(), true, true),
        ("specs/auth-flow.md".to_owned(), true, true),
        ("specs/more.md".to_owned(), false, true),
    ];
    assert_eq!(names, expected);
    // With the numbers of the file.
    let numbered = &lines(&since.files[1].diff)[1];
    let line = project.read("specs/auth-flow.md").lines().position(|l| l.contains("100 ms"));
    assert!(numbered.starts_with(&format!("+{} ", line.unwrap() + 1)), "{numbered}");
    assert_eq!(plan(&change, PlanVersion::Round(3), PlanVersion::Now), None);
    // Anybody can write to a file that was kept: it is compared, or it is none.
    project.write("rounds/0001.json", "{\"files\": {\"../../x\": \"\", \"tasks.md\": \"\"}}");
    let forged = plan(&snapshot(&project), PlanVersion::Round(1), PlanVersion::Now).unwrap();
    assert!(forged.files.iter().all(|it| !it.file.path().as_str().contains("..")));
    project.write("rounds/0001.json", "nonsense");
    assert_eq!(plan(&snapshot(&project), PlanVersion::Round(1), PlanVersion::Now), None);
}

#[test]
fn a_spec_is_compared_with_the_main_spec() {
    let project = TestProject::new().change("add-oauth");
    let own = project.read("specs/auth-flow.md");
    // New as a whole.
    let deltas = specs(&project.store(), &snapshot(&project)).unwrap();
    assert!(deltas[0].touched.created);
    assert_eq!(deltas[0].diff.removed, 0);
    // The main spec has R1 in other words, and R2; R3 goes.
    let r1 = own.replace("within 200 ms", "at once");
    let more = "### R2: Stay\n\n**Priority**: high\n\nIt MUST stay.\n\n### R3: Go\n\n**Priority**: low\n\nIt MUST go.\n\n";
    let main = r1.replace("## Acceptance", &format!("{more}## Acceptance"));
    project.write_root("agentd/specs/auth-flow.md", &main);
    project.write("base/auth-flow.md", &main);
    project.write("specs/auth-flow.md", own.replace("version: 1", "version: 1\nremoves: [R3]"));
    let deltas = specs(&project.store(), &snapshot(&project)).unwrap();
    let [delta] = &deltas[..] else { panic!("{deltas:?}") };
    let ids = |ids: &[agentd_core::ids::RequirementId]| {
        ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        (ids(&delta.touched.edited), ids(&delta.touched.removed)),
        ("R1".into(), "R3".into())
    );
    assert!(delta.touched.added.is_empty() && delta.conflicts.is_empty());
    let differ = lines(&delta.diff).join("\n");
    assert!(differ.contains("within 200 ms") && differ.contains("It MUST go."), "{differ}");
    assert!(!differ.contains("version:") && !differ.contains("It MUST stay."), "{differ}");
    // Somebody else has edited R1 meanwhile.
    let other = main.replace("at once", "some time");
    project.write_root("agentd/specs/auth-flow.md", &other);
    let deltas = specs(&project.store(), &snapshot(&project)).unwrap();
    assert_eq!(deltas[0].conflicts[0].what, "R1");
    // Once it is archived, the main spec has it all; what it did is still known.
    project.write_root("agentd/specs/auth-flow.md", "# Specification: Other\n");
    let archive = project.root().join("agentd/archive");
    std::fs::create_dir_all(&archive).unwrap();
    std::fs::rename(project.change_dir(), archive.join("2026-11-10-add-oauth")).unwrap();
    let archived = project.store().find_change("add-oauth").unwrap().unwrap();
    let deltas = specs(&project.store(), &archived.snapshot().unwrap()).unwrap();
    assert_eq!(ids(&deltas[0].touched.removed), "R3");
}

/// A change whose work started at this commit.
fn started(project: &TestProject, base: &str) {
    let mut state = project.state();
    state.git = Some(GitSetup {
        workflow: Placement::InPlace,
        branch: None,
        work_tree: None,
        base_commit: Some(base.to_owned()),
        base_branch: None,
    });
    project.write("STATE.yaml", state::render(&state));
}

fn shown(files: &[&CodeFile]) -> Vec<String> {
    files.iter().map(|file| file.path.clone()).collect()
}

fn found(project: &TestProject) -> CodeDiff {
    code(&project.store(), &snapshot(project)).unwrap().unwrap()
}

#[test]
fn code_is_shown_by_layer_and_task() {
    let project = TestProject::new().change("add-oauth").repository();
    project.write_root("src/auth.rs", "fn sign_in() {\n    old();\n}\n");
    project.write_root("src/gone.rs", "gone\n");
    std::fs::remove_file(project.root().join("src/session.rs")).unwrap();
    let base = project.commit("before");
    started(&project, &base);
    assert_eq!(found(&project).files, []);
    project.write_root("src/session.rs", "struct Session;\n");
    project.write_root("src/auth.rs", "fn sign_in() {\n    new();\n}\n");
    project.commit("half of it is committed");
    std::fs::remove_file(project.root().join("src/gone.rs")).unwrap();
    project.write_root("src/helper.rs", "fn help() {}\n");
    let files = json!({"t": 5, "files": [{"path": "src/helper.rs", "text": "fn help() {}\n"}]});
    project
        .write("runs/0001-implement-logic.jsonl", format!("{{\"t\":1,\"note\":\"x\"}}\n{files}\n"));
    let diff = found(&project);
    assert_eq!(diff.totals(), (3, 2));
    let by_layer: Vec<(Option<Layer>, Vec<String>)> =
        diff.by_layer().into_iter().map(|(layer, files)| (layer, shown(&files))).collect();
    let expected = [
        (Some(Layer::Data), vec!["src/session.rs".to_owned()]),
        (Some(Layer::Logic), vec!["src/auth.rs".to_owned(), "src/helper.rs".to_owned()]),
        (None, vec!["src/gone.rs".to_owned()]),
    ];
    assert_eq!(by_layer, expected);
    let tasks: Vec<Task> = snapshot(&project).documents.tasks.value().tasks.clone();
    let by_task: Vec<(String, Vec<String>)> = diff
        .by_task(&tasks)
        .into_iter()
        .map(|(task, files)| (task.map_or_else(String::new, |t| t.id.to_string()), shown(&files)))
        .collect();
    let expected = [
        ("1.1".to_owned(), vec!["src/session.rs".to_owned()]),
        ("2.1".to_owned(), vec!["src/auth.rs".to_owned()]),
        (String::new(), vec!["src/gone.rs".to_owned(), "src/helper.rs".to_owned()]),
    ];
    assert_eq!(by_task, expected);
    let auth = diff.files.iter().find(|file| file.path == "src/auth.rs").unwrap();
    assert_eq!(lines(&auth.diff), ["-     old();", "+2     new();"]);
    assert_eq!((&auth.change, auth.lines), (&FileChange::Modified, Some((1, 1))));
}

#[test]
fn code_of_a_project_in_a_directory_of_its_repository_is_named_from_there() {
    let project = TestProject::new().change("add-oauth");
    let top = project.base();
    let git = |args: &[&str]| test_project::git(&top, args);
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "before"]);
    started(&project, &git(&["rev-parse", "HEAD"]));
    project.write_root("src/auth.rs", "new\n");
    let diff = found(&project);
    assert_eq!(diff.files.len(), 1, "{diff:?}");
    assert_eq!((diff.files[0].path.as_str(), diff.files[0].tasks.len()), ("src/auth.rs", 1));
}

#[test]
fn nothing_to_compare_with_is_no_error() {
    let project = TestProject::new().change("add-oauth");
    assert_eq!(code(&project.store(), &snapshot(&project)).unwrap(), None);
    let project = project.repository();
    assert_eq!(code(&project.store(), &snapshot(&project)).unwrap(), None);
    started(&project, &"0".repeat(40));
    assert!(code(&project.store(), &snapshot(&project)).is_err());
    started(&project, "--output=/tmp/x");
    assert!(code(&project.store(), &snapshot(&project)).is_err());
    assert_eq!(diff::rounds(&snapshot(&project)), [0_u32; 0]);
}

/// A repository whose settings run a program wherever git lets them.
#[test]
fn nothing_of_a_hostile_repository_runs() {
    let project = TestProject::new().change("add-oauth").repository();
    project.write_root("src/auth.rs", "old\n");
    let base = project.commit("before");
    started(&project, &base);
    let (script, trace) = (project.base().join("evil"), project.base().join("ran"));
    write_script(&script, &format!("echo \"$0 $*\" >> {}; cat", trace.display()));
    let evil = script.to_str().unwrap();
    for (key, value) in [
        ("core.fsmonitor", evil),
        ("diff.external", evil),
        ("diff.evil.command", evil),
        ("diff.evil.textconv", evil),
        ("filter.evil.clean", evil),
        ("filter.evil.smudge", evil),
        ("filter.evil.process", evil),
        ("core.pager", evil),
        ("core.hooksPath", project.base().to_str().unwrap()),
    ] {
        project.git(&["config", key, value]);
    }
    project.write_root(".gitattributes", "* filter=evil diff=evil\n");
    project.write_root(".git/info/attributes", "* filter=evil diff=evil\n");
    project.write_root("src/auth.rs", "new\n");
    let diff = found(&project);
    assert!(diff.files.iter().any(|file| file.path == "src/auth.rs"), "{diff:?}");
    assert!(!trace.exists(), "{}", std::fs::read_to_string(&trace).unwrap());
}
