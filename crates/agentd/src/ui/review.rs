//! PLACEHOLDER until wip-git lands.
use crate::error::CommandError;
use agentd_core::diagnostic::Counts;
use agentd_core::document::review_block::Issue;
use std::io::Write;
pub(crate) enum Answer {
    Fix,
    Accept,
    Stop,
    ReviewManually,
}
pub(crate) fn write_issues(
    out: &mut impl Write,
    summary: &str,
    issues: &[Issue],
) -> Result<(), CommandError> {
    writeln!(out, "{summary}")?;
    for issue in issues {
        writeln!(out, "I{} {} {}", issue.number, issue.severity.label(), issue.title)?;
    }
    Ok(())
}
pub(crate) fn ask_decision(_iteration: u32, _counts: Counts) -> Result<Answer, CommandError> {
    Ok(Answer::Stop)
}
