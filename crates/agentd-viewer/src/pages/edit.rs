//! Editing a document, or a part of it, in place.

use agentd_core::document::comments::Anchor;
use agentd_core::layout::ChangeFile;
use agentd_core::phase::Phase;
use agentd_engine::tools::{TypedFinding, editable};
use maud::{Markup, html};

use crate::html::{severity, with_code};
use crate::problem::Problem;
use crate::subject::Subject;

/// The form.
pub(super) fn form(
    subject: &Subject,
    file: &ChangeFile,
    text: &str,
    at: &str,
) -> Result<Markup, Problem> {
    let Ok(anchor) = at.parse::<Anchor>();
    if !subject.is_open() {
        return Err(Problem::not_found());
    }
    let (part, seen) = editable(text, file, &anchor).ok_or_else(Problem::not_found)?;
    let rows = part.lines().count().clamp(8, 40);
    let name =
        if anchor == Anchor::Document { file.path().to_string() } else { anchor.to_string() };
    Ok(html! {
        @if matches!(subject.phase(), Some(Phase::Challenged | Phase::Implementing | Phase::Complete)) {
            p.alert.mild { "This plan is approved. If you change it, it has to be challenged again." }
        }
        form.editor method="post" action={ (subject.address()) "/edit" } data-send
            data-check={ (subject.address()) "/check" }
            data-draft={ "edit " (file.path()) " " (at) } data-seen=(seen) {
            input type="hidden" name="on" value=(file.path());
            input type="hidden" name="at" value=(at);
            input type="hidden" name="seen" value=(seen);
            label {
                "Text of " (name)
                textarea name="text" rows=(rows) spellcheck="true" required { (part) }
            }
            div.checked role="status" aria-label="Findings" {}
            div.actions {
                button.primary { "Save" }
                a.button.forget href=(subject.document_address(file)) { "Cancel" }
                span.quiet { "Checked as you type; what breaks a rule is not saved." }
            }
        }
    })
}

/// What is wrong with a text that is being typed.
pub(crate) fn findings(found: &[TypedFinding]) -> Markup {
    html! {
        @if found.is_empty() { p.good { "✓ Valid" } }
        ul.findings {
            @for finding in found {
                li {
                    (severity(finding.severity)) " "
                    @match finding.line {
                        Some(line) => { "line " (line) ": " }
                        None => { span.quiet { "elsewhere: " } }
                    }
                    (with_code(&finding.message)) " " span.quiet { (with_code(&finding.advice)) }
                }
            }
        }
    }
}
