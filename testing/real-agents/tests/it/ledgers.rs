//! Records the ledgers on which the forecast is back-tested: the real gemini, codex and claude take
//! changes of different size through the whole workflow. What is real in them is the calls, their
//! order and how many turns each CLI makes of one. The models are scripted, and so is the usage of a
//! turn; it differs from change to change.
//!
//! ```text
//! cargo build -p agentd
//! cargo test -p real-agents --test it -- --ignored record_the_ledgers
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use real_agents::Sandbox;
use real_agents::models::{
    approved, calls, challenges, edit_proposal, look, plan, reproposals, review, write,
};
use scripted_models::{Reply, Rule, Script, Usage};
use serde_json::{Value, json};

const THIS: &str = "${change}";
const CONFIG: &str = "[git]\nworkflow = \"in-place\"\n";

/// A change: what is asked for, its specs, the layers of its code, how often its plan and its code are
/// sent back, how often the implementer looks around, and how many tokens a turn takes.
struct Story {
    id: &'static str,
    description: &'static str,
    specs: &'static [&'static str],
    layers: &'static [&'static str],
    revisions: usize,
    fixes: usize,
    looks: usize,
    tokens: u64,
}

const STORIES: [Story; 10] = [
    story("fix-typo", "Fix a typo in the help", &[], &["logic"], (0, 0), 1, 7000),
    story("rename-flag", "Rename the flag of the report", &["flags"], &["logic"], (0, 1), 2, 9000),
    story("dark-mode", "Add a dark mode", &["theme"], &["logic", "testing"], (0, 0), 3, 11_000),
    story("sort-list", "Sort the list by date", &["list"], &["logic"], (1, 0), 2, 8000),
    story(
        "export-csv",
        "Export reports as CSV",
        &["export"],
        &["data", "logic"],
        (0, 1),
        4,
        14_000,
    ),
    story(
        "search-page",
        "Add a page for searching",
        &["search", "index"],
        &["data", "logic"],
        (1, 1),
        3,
        10_000,
    ),
    story(
        "page-size",
        "Let people choose the page size",
        &["list"],
        &["logic", "testing"],
        (0, 0),
        1,
        12_000,
    ),
    story(
        "password-reset",
        "Reset a password by mail",
        &["auth-flow", "mail"],
        &["data", "logic", "testing"],
        (1, 0),
        4,
        13_000,
    ),
    story(
        "session-list",
        "List the sessions of an account",
        &["sessions"],
        &["data", "logic"],
        (0, 0),
        5,
        9000,
    ),
    story(
        "undo-delete",
        "Let people undo a deletion",
        &["trash"],
        &["data", "logic"],
        (1, 1),
        2,
        10_000,
    ),
];

const fn story(
    id: &'static str,
    description: &'static str,
    specs: &'static [&'static str],
    layers: &'static [&'static str],
    (revisions, fixes): (usize, usize),
    looks: usize,
    tokens: u64,
) -> Story {
    Story { id, description, specs, layers, revisions, fixes, looks, tokens }
}

impl Story {
    fn script(&self) -> Script {
        let cached = self.tokens / 3 * 2;
        let output = self.tokens / 15;
        let usage = Usage { input: self.tokens, cached, cache_written: 0, output, reasoning: 0 };
        let mut script = Script::new().usage(usage).rule(self.tasks());
        for layer in self.layers {
            script = script.rule(self.implements(layer));
        }
        let fix = Rule::new().step("fix").reply(look(&file(self.layers[0])));
        script = script.rule(
            fix.reply(write(&file(self.layers[0]), "pub fn answer() -> u16 {\n    401\n}\n"))
                .reply(Reply::text("Done.")),
        );
        for _ in 0..self.fixes {
            let issue = json!({"severity": "high", "title": "A wrong answer", "description": "401 is asked for.",
                "file": file(self.layers[0]), "line": 2, "recommendation": "Answer 401."});
            script = script.rule(reviews("NEEDS_FIX", &json!([issue])).prompts(1));
        }
        script = script.rule(reviews("APPROVED", &json!([])));
        let titles = ["No limit", "No error", "No end"];
        let mut verdicts: Vec<Value> = (0..self.revisions)
            .map(|round| review("NEEDS_REVISION", &[("medium", titles[round])]))
            .collect();
        verdicts.push(approved());
        // Each takes up what the one before left.
        let texts = ["own data.", "own data, always.", "own data, always and soon."];
        let edits: Vec<Value> =
            texts.windows(2).map(|pair| edit_proposal(pair[0], pair[1])).collect();
        plan(reproposals(challenges(script, &verdicts), &edits), self.specs)
    }

    fn tasks(&self) -> Rule {
        let tasks: Vec<Value> = self.layers.iter().enumerate().map(|(index, layer)| {
            let mut task = json!({"layer": layer, "number": 1, "title": format!("Write {layer}"),
                "file": {"path": file(layer), "action": "CREATE"}, "description": "Write it.", "depends": []});
            if let Some(spec) = self.specs.get(index).or(self.specs.last()) {
                task["spec_ref"] = json!(format!("{spec}:R1"));
            }
            task
        }).collect();
        calls("tasks-gen", "create_tasks", json!({"change_id": THIS, "tasks": tasks}))
    }

    fn implements(&self, layer: &str) -> Rule {
        let number = match layer {
            "data" => 1,
            "logic" => 2,
            "integration" => 3,
            _ => 4,
        };
        let mut rule = Rule::new().step(&format!("implement-{layer}"));
        for _ in 0..self.looks {
            rule = rule.reply(look("README.md"));
        }
        let tick =
            json!({"change_id": THIS, "task_id": format!("{number}.1"), "note": "It is there."});
        rule.reply(write(&file(layer), "pub fn answer() -> u16 {\n    200\n}\n"))
            .reply(Reply::call("complete_task", tick))
            .reply(Reply::text("Done."))
    }
}

fn file(layer: &str) -> String {
    format!("src/{layer}.rs")
}

fn reviews(verdict: &str, issues: &Value) -> Rule {
    let review =
        json!({"change_id": THIS, "verdict": verdict, "summary": "Read it.", "issues": issues});
    calls("review", "create_review", review)
}

fn ledgers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/ledgers")
}

/// Not a test: it writes testing/fixtures/ledgers.
#[test]
#[ignore = "records the ledgers on which the forecast is tested"]
fn record_the_ledgers() {
    fs::create_dir_all(ledgers()).unwrap();
    for story in STORIES {
        let to = ledgers().join(format!("{}.yaml", story.id));
        // To record it again, remove it.
        if to.exists() {
            continue;
        }
        Sandbox::enter(story.script(), |sandbox| {
            sandbox.set_up(CONFIG);
            sandbox.write_root("README.md", "# A service\n");
            sandbox.git(&["init", "-q"]);
            sandbox.git(&["add", "-A"]);
            sandbox.git(&["commit", "-q", "-m", "Start"]);
            let plan = ["plan", story.id, story.description, "--auto", "--skip-clarify"];
            println!("{}", sandbox.run(plan).exits(0));
            println!("{}", sandbox.run(["impl", story.id]).exits(0));
            let state = sandbox.root().join(format!("agentd/changes/{}/STATE.yaml", story.id));
            let text = fs::read_to_string(state).unwrap();
            // What is said of the machine, and of sessions, is no matter for a ledger.
            let kept = |line: &&str| !line.contains("session_id:");
            let lines: Vec<&str> = text.lines().filter(kept).collect();
            fs::write(&to, lines.join("\n") + "\n").unwrap();
        });
    }
}
