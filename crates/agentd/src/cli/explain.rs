use std::io::Write as _;
use std::process::ExitCode;

use agentd_core::config::nearest;
use agentd_core::diagnostic::Rule;
use agentd_core::rules;
use serde_json::{Value, json};

use super::Context;
use crate::error::CommandError;
use crate::error::kinds::{self, Kind};
use crate::ui::{BOLD, DIM};

/// Explain a code of `agentd validate` or a kind of error, or list them all.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  agentd explain T005\n  agentd explain task-cycle\n  agentd explain session_not_found\n  agentd explain                       all of them, a line each"
)]
pub(crate) struct Args {
    /// The code or the name of a rule, or the kind of an error.
    code: Option<String>,
}

pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, CommandError> {
    let Some(code) = &args.code else { return list(context) };
    if let Some(kind) = kinds::find(code) {
        return explain_error(context, kind);
    }
    let Some(rule) = rules::find(code) else {
        let known = rules::ALL.iter().flat_map(|rule| [rule.code, rule.name]);
        let known = known.chain(kinds::all().map(|kind| kind.name));
        let message = format!("there is no rule or error `{code}`");
        let error = CommandError::new("no_such_rule", message);
        return Err(match nearest(code, known) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint("`agentd explain` lists all rules and errors"),
        });
    };
    if context.ui.json {
        print_one(context, json_of(rule))?;
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

/// One rule or error as a whole document.
fn print_one(context: &Context, entries: Value) -> Result<(), CommandError> {
    let mut document = json!({ "version": 1 });
    if let (Some(document), Value::Object(entries)) = (document.as_object_mut(), entries) {
        document.extend(entries);
    }
    context.ui.print_json(&document)
}

fn explain_error(context: &Context, kind: &Kind) -> Result<ExitCode, CommandError> {
    if context.ui.json {
        print_one(context, json!(kind))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = context.ui.out();
    writeln!(out, "{BOLD}{}{BOLD:#} (error)\n\n{}\n\n{}", kind.name, kind.means, kind.remedy)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

fn list(context: &Context) -> Result<ExitCode, CommandError> {
    if context.ui.json {
        let rules: Vec<Value> = rules::ALL.iter().map(|rule| json_of(rule)).collect();
        let mut errors: Vec<Value> = Vec::new();
        for group in kinds::GROUPS {
            errors.extend(group.kinds.iter().map(|kind| {
                let mut error = json!(kind);
                error["group"] = json!(group.title);
                error
            }));
        }
        context.ui.print_json(&json!({ "version": 1, "rules": rules, "errors": errors }))?;
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
    for kind in kinds::all() {
        writeln!(out, "{BOLD}{}{BOLD:#} {}", kind.name, kind.means)?;
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
