//! The ID of a change where its documents name it, replaced by another.
//!
//! Reviews are left alone: they are what a reviewer said, under the name that the change had then.

use super::proposal;
use crate::frontmatter::{self, scalar};
use crate::ids::ChangeId;
use crate::layout::ChangeFile;
use crate::outline::Outline;
use crate::yaml::from_yaml;

/// The documents that name their change.
pub const FILES: [ChangeFile; 5] = [
    ChangeFile::Proposal,
    ChangeFile::Tasks,
    ChangeFile::Clarifications,
    ChangeFile::Comments,
    ChangeFile::Challenge,
];

/// The key in the frontmatter, and the word before the ID in the title.
fn places(file: &ChangeFile) -> (Option<&'static str>, Option<&'static str>) {
    match file {
        ChangeFile::Proposal => (Some("id"), Some("Change:")),
        ChangeFile::Tasks => (Some("change_id"), Some("Tasks:")),
        ChangeFile::Clarifications => (Some("change"), None),
        ChangeFile::Comments => (Some("change_id"), None),
        ChangeFile::Challenge => (None, Some("Challenge:")),
        ChangeFile::State
        | ChangeFile::Journal
        | ChangeFile::Receipt
        | ChangeFile::Spec(_)
        | ChangeFile::Review
        | ChangeFile::Round(_)
        | ChangeFile::GeminiContext
        | ChangeFile::AgentsContext
        | ChangeFile::Base(_)
        | ChangeFile::ArchiveRecord
        | ChangeFile::Run(_) => (None, None),
    }
}

/// A document with the ID `to` where it has `from`. Everything else stays byte for byte.
pub fn renamed(file: &ChangeFile, text: &str, from: &ChangeId, to: &ChangeId) -> String {
    let mut out = with_title(text, file, from, to);
    // One that was wrong stays wrong.
    if *file == ChangeFile::Proposal && proposal::with_checksum(text) == text {
        out = proposal::with_checksum(&out);
    }
    let Some(key) = places(file).0 else { return out };
    let names = |text: &str| {
        let front = Outline::scan(text).frontmatter.filter(|front| front.closed)?;
        let entries: serde_json::Map<String, serde_json::Value> =
            from_yaml(front.content.of(text)).ok()?;
        Some(entries.get(key)?.as_str()? == from.as_str())
    };
    if names(&out) == Some(true) {
        // In a notation that cannot be patched it stays, and `validate` names it.
        out = frontmatter::set(&out, key, &scalar(to.as_str())).unwrap_or(out);
    }
    out
}

/// The same for the title alone.
pub(crate) fn with_title(text: &str, file: &ChangeFile, from: &ChangeId, to: &ChangeId) -> String {
    let mut out = text.to_owned();
    let Some(prefix) = places(file).1 else { return out };
    let outline = Outline::scan(text);
    let Some(heading) = outline.headings.iter().find(|heading| heading.level == 1) else {
        return out;
    };
    let title = heading.title.of(text);
    let Some((before, id)) = title.split_at_checked(prefix.len()) else { return out };
    if before.eq_ignore_ascii_case(prefix) && id.trim() == from.as_str() {
        let end = heading.title.start + title.trim_end().len();
        out.replace_range(end - from.as_str().len()..end, to.as_str());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{clarifications, comments, tasks};

    fn id(id: &str) -> ChangeId {
        ChangeId::new(id).unwrap()
    }

    #[track_caller]
    fn check(file: &ChangeFile, text: &str, expected: &str) {
        let (from, to) = (id("add-oauth"), id("add-login"));
        assert_eq!(renamed(file, text, &from, &to), expected);
        // And back, to the byte.
        assert_eq!(renamed(file, expected, &to, &from), text);
    }

    #[test]
    fn an_id_is_replaced_where_it_names_the_change() {
        check(
            &ChangeFile::Tasks,
            "---\r\nchange_id: add-oauth # mine\r\ntype: tasks\r\n---\r\n\r\n# Tasks: add-oauth\r\n\r\nadd-oauth\r\n",
            "---\r\nchange_id: add-login # mine\r\ntype: tasks\r\n---\r\n\r\n# Tasks: add-login\r\n\r\nadd-oauth\r\n",
        );
        check(
            &ChangeFile::Clarifications,
            "---\nchange: add-oauth\n---\n\n# Clarifications\n",
            "---\nchange: add-login\n---\n\n# Clarifications\n",
        );
        check(
            &ChangeFile::Comments,
            "---\nchange_id: add-oauth\n---\n# Comments\n",
            "---\nchange_id: add-login\n---\n# Comments\n",
        );
        check(&ChangeFile::Challenge, "# Challenge: add-oauth\n", "# Challenge: add-login\n");
        check(&ChangeFile::Proposal, "# Change: add-oauth\n", "# Change: add-login\n");
    }

    #[test]
    fn what_names_something_else_stays() {
        for (file, text) in [
            (ChangeFile::Tasks, "---\nchange_id: add-oauth-2\n---\n# Tasks: add-oauth-2\n"),
            (ChangeFile::Tasks, "---\n{change_id: add-oauth}\n---\nno title\n"),
            (ChangeFile::Tasks, "---\nchange_id: add-oauth\n"),
            (ChangeFile::Proposal, "# add-oauth\n\n# Change: add-oauth\n"),
            (ChangeFile::Proposal, "```\n# Change: add-oauth\n```\n"),
            (ChangeFile::Review, "---\nchange_id: add-oauth\n---\n# Review: add-oauth\n"),
            (ChangeFile::Challenge, ""),
        ] {
            assert_eq!(renamed(&file, text, &id("add-oauth"), &id("add-login")), text);
        }
    }

    #[test]
    fn documents_belong_to_the_new_name() {
        let (from, to) = (id("a"), id("y"));
        let text = "---\nchange_id: a\n---\n\n# Tasks: a\n";
        let read = tasks::parse(&renamed(&ChangeFile::Tasks, text, &from, &to));
        assert_eq!(read.value.change_id, Some(to.clone()), "a word that YAML reads as true");
        let text = "---\nchange: a\n---\n";
        let read = clarifications::parse(&renamed(&ChangeFile::Clarifications, text, &from, &to));
        assert_eq!(read.value.change, Some(to.clone()));
        let text = "---\nchange_id: a\n---\n";
        let read = comments::parse(&renamed(&ChangeFile::Comments, text, &from, &to));
        assert_eq!(read.value.change_id, Some(to.clone()));
        let text = "---\nid: a\nchecksum: x\n---\n\n# Change: a\n";
        let edited = renamed(&ChangeFile::Proposal, text, &from, &to);
        assert_eq!(edited, "---\nid: \"y\"\nchecksum: x\n---\n\n# Change: y\n");
        let whole = renamed(&ChangeFile::Proposal, &proposal::with_checksum(text), &from, &to);
        assert_eq!(whole, proposal::with_checksum(&edited));
        assert_eq!(proposal::parse(&whole).value.id, Some(to));
    }
}
