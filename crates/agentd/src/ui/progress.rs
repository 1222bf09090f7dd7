//! PLACEHOLDER until wip-git lands.
use agentd_engine::workflow::Progress;
pub(crate) struct Display;
impl Display {
    pub(crate) fn new(_ui: &super::Ui) -> Self {
        Self
    }
    pub(crate) fn show(&self, event: &Progress<'_>) {
        use std::io::Write as _;
        let mut err = anstream::stderr();
        let _ = match event {
            Progress::Started { label, agent, .. } => writeln!(err, "{label} ({agent})"),
            Progress::Done { label, summary, duration, cost_usd, .. } => {
                writeln!(err, "{label}: {summary} {duration:.1?} ${cost_usd:.4}")
            }
            Progress::Failed { label, message, .. } => writeln!(err, "{label} failed: {message}"),
            Progress::Skipped { label, why, .. } => writeln!(err, "{label}: {why}"),
            Progress::Note(text) => writeln!(err, "{text}"),
            Progress::Warning(text) => writeln!(err, "warning: {text}"),
            Progress::Agent(_) => Ok(()),
        };
    }
}
