use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::config::nearest;
use agentd_core::diagnostic::Rule;
use agentd_core::rules;
use serde_json::{Value, json};

use super::Context;
use crate::error::CommandError;
use crate::ui::{BOLD, DIM};

/// Explain a code of `agentd validate`, or list them all.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd explain T005\n  agentd explain task-cycle\n  agentd explain            all codes, a line each"
)]
pub(crate) struct Args {
    /// The code or the name of a rule.
    code: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let Some(code) = &args.code else { return list(context) };
    let Some(rule) = rules::find(code) else {
        let known = rules::ALL.iter().flat_map(|rule| [rule.code, rule.name]);
        let error = CommandError::new("no_such_rule", format!("there is no rule `{code}`"));
        return Err(match nearest(code, known) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`agentd explain` lists all rules"),
        });
    };
    if context.ui.json {
        let mut document = json!({ "version": 1 });
        if let (Some(document), Value::Object(rule)) = (document.as_object_mut(), json_of(rule)) {
            document.extend(rule);
        }
        context.ui.print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = context.ui.out();
    writeln!(out, "{BOLD}{} {}{BOLD:#} ({})\n", rule.code, rule.name, rule.severity.label())?;
    writeln!(out, "{}\n\nWhy: {}\nFix: {}", rule.summary, rule.why, rule.fix)?;
    if let Some((bad, good)) = rule.example {
        writeln!(out, "\nInstead of:\n{}\nwrite:\n{}", indented(bad), indented(good))?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn list(context: &Context) -> Result<ExitCode, CommandError> {
    if context.ui.json {
        let rules: Vec<Value> = rules::ALL.iter().map(|rule| json_of(rule)).collect();
        context.ui.print_json(&json!({ "version": 1, "rules": rules }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = context.ui.out();
    for rule in rules::ALL {
        let severity = rule.severity.label();
        writeln!(
            out,
            "{BOLD}{}{BOLD:#} {severity:6} {} {DIM}{}{DIM:#}",
            rule.code, rule.summary, rule.name
        )?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn json_of(rule: &Rule) -> Value {
    json!({
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "summary": rule.summary,
        "why": rule.why,
        "fix": rule.fix,
        "example": rule.example.map(|(bad, good)| json!({ "bad": bad, "good": good })),
    })
}
