//! What a run of a program printed, and how to compare it.

use std::fmt;
use std::path::{Path, PathBuf};

use regex_lite::Regex;
use serde_json::Value;

use crate::TestProject;

/// What is different in every run, and what stands for it in a snapshot.
const MASKS: &[(&str, &str)] = &[
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d UTC)?", "[TIME]"),
    // In the name of an archived change, and in frontmatter.
    (r"\b\d{4}-\d\d-\d\d-([a-z])", "[DATE]-$1"),
    (r"\bdate: \d{4}-\d\d-\d\d\b", "date: [DATE]"),
    // How long a step took, in a line of progress.
    (r"\b(done|failed), \d+(\.\d s| ms| m \d\d s)", "$1, [DURATION]"),
    (r"\b(the tests [a-z0-9 ]+) after \d+(\.\d s| ms| m \d\d s)", "$1 after [DURATION]"),
    // It follows from built-in figures, which have tests of their own.
    (r"\bforecast: .* \(from ", "forecast: [FIGURES] (from "),
    (r"\b(committed|commit)( +)[0-9a-f]{10,12}\b", "$1$2[COMMIT]"),
    (r"\b[0-9a-f]{40}\b", "[COMMIT]"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "[SESSION]"),
    (r"\b[0-9a-f]{64}\b", "[DIGEST]"),
    (r"/assets/[0-9a-f]{12}/", "/assets/[MARK]/"),
    (r"\bafter=[0-9a-f]{16}\b", "after=[MARK]"),
    (r"\bagentd:review [0-9a-f]{16}\b", "agentd:review [MARK]"),
    (r#""(version|agentd)": "\d+\.\d+\.\d+[^"]*""#, "\"$1\": \"[VERSION]\""),
    (r"\bagentd 0\.\d+\.\d+(-[0-9a-z.+-]+)?", "agentd [VERSION]"),
];

/// What real agents use, which they count in their own ways.
const USAGE: &[(&str, &str)] = &[
    (r"\b\d[\d.]*[kM]? in, \d[\d.]*[kM]? out(, \$[\d.]+)?", "[USAGE]"),
    (r"\b\d+ tokens of\b", "[USAGE] of"),
    (r#"(\$|"cost_usd": )\d[\d.]*"#, "$1[COST]"),
];

/// A text in which the directory of the test, times, digests and versions are replaced.
pub fn mask(text: &str, base: &Path) -> String {
    let base = base.display().to_string();
    let mut text = text
        .replace(&format!("{base}/project"), "[ROOT]")
        .replace(&format!("{base}/home"), "[HOME]")
        .replace(&format!("{base}/bin"), "[BIN]")
        .replace(&base, "[BASE]");
    text = replaced(text, MASKS);
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

impl TestProject {
    /// A text in which what differs from test to test is replaced.
    pub fn mask(&self, text: impl fmt::Display) -> String {
        mask(&text.to_string(), &self.base())
    }
}

/// A line of stderr; of an event in JSON its kind and its words, without figures. What an agent
/// does meanwhile is its own affair.
fn told(line: &str) -> String {
    const WORDS: [&str; 6] = ["label", "agent", "text", "summary", "message", "why"];
    let Ok(Value::Object(event)) = serde_json::from_str(line) else { return line.to_owned() };
    let Some(kind) = event.get("event").and_then(Value::as_str) else { return line.to_owned() };
    if kind == "activity" {
        return String::new();
    }
    let mut words: Vec<&str> = WORDS.iter().filter_map(|key| event.get(*key)?.as_str()).collect();
    words.retain(|text| !text.is_empty());
    if event.get("resumed") == Some(&Value::Bool(true)) {
        words.push("resumed");
    }
    for issue in event.get("issues").and_then(Value::as_array).into_iter().flatten() {
        words.extend(["severity", "id", "title"].iter().filter_map(|key| issue[*key].as_str()));
    }
    format!("{kind}: {}\n", words.join(", "))
}

fn replaced(mut text: String, masks: &[(&str, &str)]) -> String {
    for (pattern, stands_for) in masks {
        text = Regex::new(pattern).unwrap().replace_all(&text, *stands_for).into_owned();
    }
    text
}

/// What a run of a program printed, and how it ended.
#[derive(Debug)]
pub struct Output {
    /// The exit code.
    pub code: i32,
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
    base: PathBuf,
}

/// A transcript for snapshots: exit code, stdout, stderr, masked.
impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.transcript())
    }
}

impl Output {
    /// Reads what a process in a test's directory has printed. It must not have been killed.
    pub fn new(output: std::process::Output, base: &Path) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            code: output.status.code().expect("it was not killed"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            base: base.to_owned(),
        }
    }

    /// What a program printed on a terminal, where both streams are one.
    pub fn on_terminal(code: i32, stdout: String, base: &Path) -> Self {
        Self { code, stdout, stderr: String::new(), base: base.to_owned() }
    }

    /// Exit code, stdout and stderr, masked. Of progress in JSON it has what people would be told.
    pub fn transcript(&self) -> String {
        let stderr: String = self.stderr.split_inclusive('\n').map(told).collect();
        let text = format!("exit {}\n{}--- stderr\n{stderr}", self.code, self.stdout);
        mask(&text, &self.base)
    }

    /// The transcript without tokens and costs, for runs of real agents.
    pub fn without_usage(&self) -> String {
        replaced(self.transcript(), USAGE)
    }

    /// It must have ended with this exit code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// It must have succeeded, and printed nothing beside its data.
    #[track_caller]
    pub fn fine(self) -> Self {
        let output = self.exits(0);
        assert_eq!(output.stderr, "");
        output
    }

    /// It must have printed nothing but text and, for those who ask for them, colors.
    #[track_caller]
    pub fn cannot_steer_a_terminal(&self) {
        for text in [&self.stdout, &self.stderr] {
            let mut pieces = text.split("\u{1b}[");
            let first = pieces.next().unwrap_or_default();
            let color = |c: char| c.is_ascii_digit() || c == ';';
            let behind = pieces.map(|piece| {
                let rest = piece.trim_start_matches(color).strip_prefix('m');
                rest.unwrap_or_else(|| panic!("not a color: {piece:?} in {self:#?}"))
            });
            let control = |c: char| c.is_control() && c != '\n' && c != '\t';
            for piece in std::iter::once(first).chain(behind) {
                assert!(!piece.contains(control), "{piece:?} in {self:#?}");
            }
        }
    }

    /// The one document on stdout, in the form that the contract asks for.
    #[track_caller]
    pub fn json(&self) -> Value {
        let document: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not one JSON document: {error}: {self:#?}"));
        assert_eq!(document["version"], 1, "{self:#?}");
        snake_case_keys(&document);
        document
    }

    /// The error of a run that failed under `--json`: all of it on stdout, and on stderr at most
    /// what was done until then.
    #[track_caller]
    pub fn json_error(&self) -> Value {
        let document = self.json();
        let is_error = |line: &str| line.starts_with("error: ") || line.starts_with("hint: ");
        assert!(!self.stderr.lines().any(is_error), "{}", self.stderr);
        assert_eq!(document.as_object().unwrap().len(), 2, "{document:#}");
        let error = document["error"].clone();
        assert!(error["kind"].is_string() && error["message"].is_string(), "{document:#}");
        assert!(error["cause"].is_string() || error["cause"].is_null(), "{document:#}");
        assert!(error["hints"].as_array().unwrap().iter().all(Value::is_string), "{document:#}");
        error
    }
}

#[track_caller]
fn snake_case_keys(value: &Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                assert!(key.chars().all(snake), "{key} is not snake_case");
                snake_case_keys(value);
            }
        }
        Value::Array(values) => values.iter().for_each(snake_case_keys),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
