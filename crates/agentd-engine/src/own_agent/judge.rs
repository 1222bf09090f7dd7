//! The built-in agent as challenger and as reviewer: what can be judged by rule.

use std::path::Path;

use agentd_core::check::FileReport;
use agentd_core::diagnostic::{Diagnostic, Severity};
use agentd_core::document::tasks::{self, Status};
use agentd_core::draft;
use agentd_core::layout::ChangeFile;
use agentd_core::outcome::{Failure, FailureKind};
use agentd_core::rules;
use agentd_core::span::line_column;
use agentd_core::text::head;
use serde_json::{Value, json};

use super::builtin::signs;
use super::project::Looked;
use super::{Call, OwnError, Voice};
use crate::tools;

/// The most issues that a review takes.
const MOST_ISSUES: usize = 200;

/// Whether a finding is about documents that are written after the one it stands in.
pub(super) fn comes_later(finding: &Diagnostic) -> bool {
    [rules::AFFECTED_SPEC_MISSING.code, rules::FILE_MISSING.code].contains(&finding.rule.code)
}

/// Challenges the plan with the rules of `agentd validate`.
pub(super) fn challenge(
    call: &Call,
    prompt: &str,
    cwd: &Path,
    voice: &mut Voice<'_>,
) -> Result<(), OwnError> {
    let looked = Looked::at(call, cwd)?;
    let mut client = call.client(cwd, "agentd-builtin", &signs())?;
    let mut issues: Vec<(Severity, Value)> = Vec::new();
    for report in looked.findings()? {
        for finding in &report.diagnostics {
            issues.push((finding.severity(), issue(&report, finding)));
        }
    }
    // The documents quote the description; what it leaves open stays open in them.
    for point in draft::unsettled(&looked.description(prompt), &looked.answers()?) {
        let value = json!({
            "severity": "medium",
            "title": head(&point, 190),
            "description": "A requirement that rests on it cannot be tested: nobody can say whether it holds.",
            "location": "STATE.yaml",
            "recommendation": "Put a figure or a decision in its place, in the requirement that quotes it.",
        });
        issues.push((Severity::Medium, value));
    }
    issues.sort_by_key(|(severity, _)| *severity);
    let serious = issues.iter().filter(|(severity, _)| *severity != Severity::Low).count();
    let (verdict, said) = if serious == 0 {
        ("APPROVED", "nothing of weight was found")
    } else {
        ("NEEDS_REVISION", "what was found has to be mended first")
    };
    let summary = format!(
        "Reviewed without a model, by the rules of `agentd validate`: {said} ({serious} of {} issues are high or \
         medium). Whether the plan is a good idea, nobody has judged.",
        issues.len()
    );
    let issues: Vec<Value> = issues.into_iter().take(MOST_ISSUES).map(|(_, issue)| issue).collect();
    let review = json!({
        "change_id": call.change, "verdict": verdict, "summary": summary, "issues": issues,
    });
    voice.must(&mut client, "append_review", &review)?;
    voice.say(&summary)
}

fn issue(report: &FileReport, finding: &Diagnostic) -> Value {
    let rule = finding.rule;
    let (line, _) = line_column(&report.text, finding.span.start);
    let place = format!("{}:{line}", report.file.path());
    let title: String = format!("{}: {}", rule.code, finding.message).chars().take(190).collect();
    json!({
        "severity": finding.severity().label().to_lowercase(),
        "title": title,
        "description": format!("{} {}", rule.summary, rule.why),
        "location": place.chars().take(190).collect::<String>(),
        "recommendation": finding.advice(),
    })
}

/// Reviews the implementation by what can be seen: ticks, the files of tasks, and the
/// run of the tests that agentd has recorded.
pub(super) fn review(call: &Call, cwd: &Path, voice: &mut Voice<'_>) -> Result<(), OwnError> {
    let looked = Looked::at(call, cwd)?;
    let Some(change) = &looked.change else {
        let message = format!("there is no change `{}`", call.change);
        return Err(OwnError::Failed(Failure::new(FailureKind::Other, message)));
    };
    let mut client = call.client(cwd, "agentd-builtin", &signs())?;
    let mut issues = Vec::new();
    let issue = |severity: &str, title: String, description: String, recommendation: &str| {
        let title: String = title.chars().take(190).collect();
        json!({
            "severity": severity,
            "title": title,
            "description": head(&description, 15_000),
            "recommendation": recommendation,
        })
    };
    let text = change.read_if_exists(&ChangeFile::Tasks)?.unwrap_or_default();
    let tasks = tasks::parse(&text).value.tasks;
    let state = looked.state.as_ref();
    for task in &tasks {
        if task.status != Status::Done {
            let title = format!("Task {} is not done: {}", task.id, task.title);
            let why = "It is not ticked, so what it was for is missing or nobody has shown it.";
            issues.push(issue(
                "high",
                title,
                why.to_owned(),
                "Do it, and tick it with complete_task.",
            ));
        } else if let Err(error) = tools::evidence(&looked.project, change.id(), task, state) {
            let title = format!("Task {} is ticked, but its file does not show it", task.id);
            issues.push(issue("high", title, error.to_string(), "Do it, or take the tick back."));
        }
    }
    if tasks.is_empty() {
        let why = "Without tasks nothing says what had to be done.".to_owned();
        issues.push(issue("high", "There are no tasks".to_owned(), why, "Plan the change first."));
    }
    match looked.state.as_ref().and_then(|state| state.test_run.as_ref()) {
        None => issues.push(issue(
            "medium",
            "No run of the tests is recorded".to_owned(),
            "Nothing shows that the tests pass.".to_owned(),
            "Set `test_command` under [implementation] in agentd/config.toml, so that agentd runs them.",
        )),
        Some(run) if !run.passed() => {
            let code = run.exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
            let tail = run.output_tail.as_str();
            let description = format!("`{}` ended with {code}. Its last output:\n\n{tail}", run.command);
            issues.push(issue("high", "The tests fail".to_owned(), description, "Make them pass."));
        }
        Some(_) => {}
    }
    let verdict = if issues.is_empty() { "APPROVED" } else { "NEEDS_FIX" };
    let summary = format!(
        "Reviewed without a model: {} tasks were looked at for their ticks and their files, and the recorded run of \
         the tests was read; {} issues. Nobody has read the code.",
        tasks.len(),
        issues.len(),
    );
    issues.truncate(MOST_ISSUES);
    let review = json!({
        "change_id": call.change, "verdict": verdict, "summary": summary, "issues": issues,
    });
    voice.must(&mut client, "create_review", &review)?;
    voice.say(&summary)
}
