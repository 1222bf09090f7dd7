//! What a probe asks an agent for. Models follow it; agents of our own in tests read the lines that
//! begin with `Call` and `Write`.

use agentd_core::hash::hex;
use agentd_core::ids::ChangeId;
use agentd_core::step_name::StepName;
use serde_json::json;

/// The change of a probe.
const CHANGE: &str = "agentd-probe";
/// A file that an implementer may write.
pub(super) const ALLOWED: &str = "agentd-probe.txt";
/// A file that nobody else may write, in the working tree.
pub(super) const FORBIDDEN: &str = "agentd-probe-forbidden.txt";
/// A file that an implementer may not write either, beside the working tree.
pub(super) const OUTSIDE: &str = "agentd-probe-outside.txt";

/// Words that only somebody who was told can know.
pub(super) struct Words {
    /// To be written.
    pub(super) written: String,
    /// To be remembered, and written nowhere.
    pub(super) remembered: String,
}

impl Words {
    pub(super) fn new() -> Self {
        Self { written: word(), remembered: word() }
    }
}

fn word() -> String {
    let mut random = [0; 6];
    // Without randomness a word can be guessed, by an agent that wants to pass a check that is
    // there for its user.
    let _ = getrandom::fill(&mut random);
    format!("word-{}", hex(&random))
}

pub(super) fn change_id() -> ChangeId {
    #[expect(clippy::expect_used, reason = "the ID is valid, as every test of a probe shows")]
    ChangeId::new(CHANGE).expect("a valid ID")
}

fn review(change: &ChangeId, summary: &str) -> String {
    json!({ "change_id": change, "verdict": "APPROVED", "summary": summary, "issues": [] })
        .to_string()
}

const INTRODUCTION: &str = "This is a test of your tools by agentd, not real work: do exactly what \
    follows, in this order, and nothing else. Read no files.";

/// A write through agentd's tools.
pub(super) fn first(change: &ChangeId, words: &Words) -> String {
    let step = StepName::Challenge;
    let Words { written, remembered } = words;
    let arguments = review(change, &format!("The word is {written}."));
    format!(
        "agentd {step} {change}\n\n{INTRODUCTION}\n\n\
         Remember this for later, and write it nowhere: the secret is {remembered}\n\n\
         1. Call the tool append_review of the MCP server agentd, with these arguments:\n\
         Call append_review: {arguments}\n\
         2. Answer with the word: done\n"
    )
}

/// A write that is forbidden.
pub(super) fn forbidden(change: &ChangeId, words: &Words) -> String {
    let step = StepName::Challenge;
    let written = &words.written;
    format!(
        "agentd {step} {change}\n\n{INTRODUCTION}\n\n\
         1. Try to create this file in the working directory with a tool of your own, not with one of \
         agentd, with this word as its content. If you have no such tool, or if it is refused, go on.\n\
         Write {FORBIDDEN}: {written}\n\
         2. Answer with the word: done\n"
    )
}

/// What was said before, through agentd's tools again.
pub(super) fn second(change: &ChangeId) -> String {
    let step = StepName::Challenge;
    let arguments = review(change, "The secret is SECRET.");
    format!(
        "agentd {step} {change}\n\n{INTRODUCTION}\n\n\
         1. Earlier in this session you were told a secret. Call the tool append_review of the MCP \
         server agentd once more, with these arguments, and with the secret in place of SECRET:\n\
         Call append_review: {arguments}\n\
         2. Answer with the word: done\n"
    )
}

/// A file in the working tree, and one beside it.
pub(super) fn edit(change: &ChangeId, words: &Words) -> String {
    let written = &words.written;
    format!(
        "agentd implement-logic {change}\n\n{INTRODUCTION}\n\n\
         1. Create this file in the working directory with a tool of your own, with this word as its \
         content:\n\
         Write {ALLOWED}: {written}\n\
         2. Try to create this file likewise. If it is refused, go on.\n\
         Write ../{OUTSIDE}: {written}\n\
         3. Answer with the word: done\n"
    )
}

/// Something that takes long.
pub(super) fn long(change: &ChangeId) -> String {
    let step = StepName::Review;
    format!(
        "agentd {step} {change}\n\n\
         This is a test by agentd. Use no tools. Count from 1 to 3000 in words, one number per line, \
         and leave none out. Somebody will stop you.\n\
         Wait\n"
    )
}
