//! The pages in real Chromium. `cargo xtask test` installs playwright-core, and Chromium
//! where it may.

use std::path::PathBuf;
use std::process::Command;

use agentd_core::document::comments;
use agentd_core::state::{self, Choice};
use serde_json::json;
use test_project::TestProject;

use super::{Viewer, project};
use crate::cli::stand_in::{self, CHANGE};

/// Every page is accessible, fits, and can be used with the keyboard alone.
#[test]
fn heavy_viewer_looks_right_in_chromium() {
    drive(&in_browser(), "look");
}

#[test]
fn heavy_people_act_in_chromium() {
    let project = in_browser();
    if !drive(&project, "act") {
        return;
    }
    // What was done in the browser is on the disk.
    let comments = comments::parse(&project.read("comments.md")).value.comments;
    assert!(comments.iter().any(|comment| comment.text.as_str() == "Which clock?"));
    let state = state::parse(&project.read("STATE.yaml"), &project.id()).unwrap();
    assert_eq!(state.decisions.first().map(|made| made.choice), Some(Choice::Fix));
}

/// What a person writes beside a decision and at a line of code is in the prompts of the agents, and a
/// change gets from one sentence to the archive without a terminal.
#[test]
fn heavy_people_take_a_change_to_the_archive_in_chromium() {
    let project = stand_in::repository("").about(CHANGE);
    let issue = |title: &str| {
        json!({"severity": "medium", "title": title, "description": "It goes wrong.",
            "location": "proposal.md", "recommendation": "Say it."})
    };
    let review = json!({"change_id": CHANGE, "verdict": "NEEDS_REVISION", "summary": "Read it.",
        "issues": [issue("No limit"), issue("No log")]});
    stand_in::answers(&project, "challenge", &[("append_review", review)]);
    if !drive(&project, "story") {
        return;
    }
    // And they are what the agents were given, not only what is shown.
    let note = "Lock the account after XYZZY attempts";
    assert!(stand_in::prompt(&project, "reproposal").contains(note));
    assert!(stand_in::prompt(&project, "fix").contains("Name this number, PLUGH"));
}

/// Runs a part of the scripts in Chromium; false if that is not here, outside of `cargo xtask test`.
fn drive(project: &TestProject, part: &str) -> bool {
    let Ok(modules) = std::env::var("AGENTD_NPM_VIEWER") else {
        eprintln!("skipped: AGENTD_NPM_VIEWER is not set; `cargo xtask test` sets it");
        return false;
    };
    let Some(chromium) = chromium() else {
        let why = "there is no Chromium; `apt-get install chromium`";
        let may_skip = std::env::var_os("AGENTD_SKIP_CHROMIUM").is_some();
        assert!(may_skip, "{why}, or set AGENTD_SKIP_CHROMIUM to skip this test");
        eprintln!("skipped: {why}");
        return false;
    };
    let viewer = Viewer::start_with(project, &["--act"]);
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let pictures = target.parent().unwrap().join("screenshots");
    std::fs::create_dir_all(&pictures).unwrap();
    let script = if part == "story" { "story.mjs" } else { "browser.mjs" };
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/viewer");
    let output = Command::new("node")
        .arg(PathBuf::from(scripts).join(script))
        .args([part, &viewer.address, &chromium])
        .arg(&pictures)
        .arg(project.root())
        .env("AGENTD_NPM_VIEWER", modules)
        .env("AGENTD_TEST_HOLD", stand_in::hold(project))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    eprintln!("{printed}");
    true
}

/// The project, and besides a change with code, and one whose planner works until it is stopped.
pub(super) fn in_browser() -> TestProject {
    let project = project().programs(&["git", "sh"]);
    let planner = "PATH=/usr/bin:/bin\ncat > /dev/null\n\
        echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"daa347b4\",\"mcp_servers\":[{\"name\":\"agentd\",\"status\":\"connected\"}],\"model\":\"claude-opus-4-8\"}'\n\
        echo '{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"model\":\"claude-opus-4-8\",\"content\":[{\"type\":\"text\",\"text\":\"I am working\"}]},\"session_id\":\"daa347b4\"}'\n\
        sleep 600";
    let project = project.program("claude", planner);
    project.write_root(
        "agentd/config.toml",
        "[workflow]\nscript_retries = 0\n[roles]\nplanner = \"claude\"\nchallenger = \"claude\"\n[git]\nworkflow = \"in-place\"\n",
    );
    project.write_root("src/auth/accounts.rs", "fn find() {\n    old();\n}\n");
    let project = project.repository();
    let base = project.commit("start");
    let change = project.change_dir();
    for name in ["proposal.md", "tasks.md", "specs/auth-flow.md", "specs/session-store.md"] {
        let text = std::fs::read_to_string(change.join(name)).unwrap();
        let text =
            text.replace("add-oauth", "with-code").replace("status: pending", "status: done");
        // What another change has made of the main spec is not what this one began with.
        let text = text.replace("every session, and", "every session for as long as it lasts, and");
        project.write_root(&format!("agentd/changes/with-code/{name}"), text);
    }
    let state = format!(
        "change_id: with-code\nphase: implementing\ncreated_at: 2026-11-10T09:00:00Z\n\
         updated_at: 2026-11-10T10:20:00Z\ngit:\n  workflow: in-place\n  base_commit: {base}\n"
    );
    project.write_root("agentd/changes/with-code/STATE.yaml", state);
    project.write_root(
        "src/auth/accounts.rs",
        "/// Finds an account.\nfn find() {\n    new(\"by subject\", 42); // not by e-mail\n}\n",
    );
    let long: String = (1..=600).map(|n| format!("let line_{n} = {n};\n")).collect();
    project.write_root("src/auth/exchange.rs", long);
    let begun = "change_id: runs-long\nphase: proposed\ncreated_at: 2026-11-10T09:00:00Z\n\
                 updated_at: 2026-11-10T10:20:00Z\ndescription: \"Limit requests per account to 100 per minute, answer 429 above that, and log each refusal\"\n";
    project.write_root("agentd/changes/runs-long/STATE.yaml", begun);
    let asks = begun.replace("runs-long", "asks-first");
    project.write_root("agentd/changes/asks-first/STATE.yaml", &asks);
    let failed = format!(
        "{}llm_calls:\n  - step: proposal-gen\n    model: claude-opus-4-8\n    failure: no_artifact\n    timestamp: 2026-11-10T10:19:00Z\n",
        begun.replace("runs-long", "has-failed")
    );
    project.write_root("agentd/changes/has-failed/STATE.yaml", failed);
    let question = |header: &str| {
        let option =
            |label: &str| json!({"label": label, "description": format!("Means {label}.")});
        json!({"header": header, "question": format!("Which {header} **exactly**?"),
            "options": [option("One"), option("Two")], "multi_select": header == "Window"})
    };
    let all = ["Window", "Limit", "Answer"].map(question);
    let questions = json!({"change_id": "asks-first", "proposed_at": "2026-11-10T10:20:00Z",
        "questions": all});
    project.write_root("agentd/.agents/questions/asks-first.json", questions.to_string());
    project
}

fn chromium() -> Option<String> {
    let named = std::env::var("AGENTD_CHROMIUM").ok();
    let usual = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let found = usual.into_iter().find(|path| std::path::Path::new(path).exists());
    named.or_else(|| found.map(str::to_owned))
}
