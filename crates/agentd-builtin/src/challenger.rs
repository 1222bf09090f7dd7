//! The built-in agent as challenger: judges the plan with the rules of `agentd validate`.

use agentd_core::check::FileReport;
use agentd_core::diagnostic::{Diagnostic, Severity};
use agentd_core::document::issue_fate::fates;
use agentd_core::layout::ChangeFile;
use agentd_core::span::line_column;
use agentd_core::text::{counted, head};
use serde_json::{Value, json};

use crate::draft;
use crate::earlier;
use crate::error::AgentError;
use crate::session::Session;

/// The most issues that a review takes.
pub(crate) const MOST_ISSUES: usize = 200;

/// Challenges the plan.
pub(crate) fn challenge(mut session: Session<'_, '_>) -> Result<(), AgentError> {
    let mut issues: Vec<(Severity, Value)> = Vec::new();
    for report in session.findings()? {
        for finding in &report.diagnostics {
            issues.push((finding.severity(), issue(&report, finding)));
        }
        // The author of the plan may have written the comment, too, so it is reported.
        for allowed in &report.allowed {
            let mut value = issue(&report, &allowed.finding);
            let title = format!("Allowed by the document: {}", allowed.finding.message);
            value["severity"] = json!("low");
            value["title"] = json!(head(&title, 190));
            value["recommendation"] =
                json!(format!("Judge its reason: {}", head(allowed.reason.as_str(), 500)));
            issues.push((Severity::Low, value));
        }
    }
    let documents = session.documents()?;
    for (id, spec) in documents.planned_specs() {
        for question in draft::left_open(spec) {
            let value = json!({
                "severity": "medium",
                "title": head(&format!("Open question: {question}"), 190),
                "description": "A requirement that rests on it cannot be tested: nobody can say whether it holds.",
                "location": ChangeFile::Spec(id.clone()).path_in_project(&documents.id).to_string(),
                "recommendation": "Say what must hold, in the requirement that quotes it, and take the question off the overview.",
            });
            issues.push((Severity::Medium, value));
        }
    }
    issues.sort_by_key(|(severity, _)| *severity);
    let serious = issues.iter().filter(|(severity, _)| *severity != Severity::Low).count();
    let verdict = if serious == 0 { "APPROVED" } else { "NEEDS_REVISION" };
    let serious_ones = match serious {
        0 => String::new(),
        _ => format!(", {serious} of high or medium severity"),
    };
    let summary = format!(
        "Reviewed without a model, by the rules of `agentd validate`, which do not judge the idea: {}{serious_ones}.",
        counted(issues.len(), "issue")
    );
    let found: Vec<&Value> = issues.iter().map(|(_, issue)| issue).collect();
    let reviews = documents.reviews();
    let by_rules = |number: u32| {
        let mut latest = reviews.iter().rev();
        let named = latest.find(|review| review.issues.iter().any(|issue| issue.number == number));
        named.is_some_and(|review| earlier::is_own(&review.reviewer))
    };
    let known = fates(reviews);
    let open = known.iter().filter(|known| !known.fate.is_settled());
    let own = open.map(|known| known.issue).filter(|issue| by_rules(issue.number));
    let previous: Vec<Value> =
        earlier::previous(own, &found).into_iter().take(MOST_ISSUES).collect();
    let issues: Vec<Value> = issues.into_iter().take(MOST_ISSUES).map(|(_, issue)| issue).collect();
    let review = json!({
        "change_id": session.change, "verdict": verdict, "summary": summary, "previous": previous,
        "issues": issues,
    });
    session.must("append_review", &review)?;
    session.say(&summary)
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
