//! What a role lets an agent do when it asks (G2). The kernel has the last word: an agent that does
//! not ask, or says that a command only reads, still cannot write where its role may not.

use serde_json::{Value, json};

use super::message::PermissionOption;
use super::tool_call::ToolKind;
use crate::agent::Role;

/// Whether a role may do what is asked for.
pub(super) fn is_allowed(role: Role, kind: ToolKind, is_own_tool: bool) -> bool {
    is_own_tool || kind == ToolKind::Reads || role.edits_the_work_tree()
}

/// The result of a request for permission. An answer for this one call is preferred: some agents
/// write those for ever into their settings.
pub(super) fn answer(options: &[PermissionOption<'_>], allowed: bool) -> Value {
    let kinds =
        if allowed { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
    let option = kinds.iter().find_map(|kind| options.iter().find(|option| *option.kind == **kind));
    let outcome = match option {
        Some(option) => json!({ "outcome": "selected", "optionId": &*option.option_id }),
        None => json!({ "outcome": "cancelled" }),
    };
    json!({ "outcome": outcome })
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract G2
    #[test]
    fn roles_that_write_documents_get_reading_and_tools_of_agentd() {
        for role in Role::ALL {
            let edits = role == Role::Implementer;
            for (kind, is_own, allowed) in [
                (ToolKind::Reads, false, true),
                (ToolKind::Other, true, true),
                (ToolKind::Acts, true, true),
                (ToolKind::Acts, false, edits),
                (ToolKind::Other, false, edits),
            ] {
                assert_eq!(is_allowed(role, kind, is_own), allowed, "{role} {kind:?}");
            }
        }
    }

    #[test]
    fn an_answer_counts_once_where_that_is_offered() {
        let json = r#"[{"optionId":"a","kind":"allow_always"},{"optionId":"b","kind":"allow_once"},
            {"optionId":"c","kind":"reject_always"}]"#;
        let options: Vec<PermissionOption<'_>> = serde_json::from_str(json).unwrap();
        let said = |options: &[PermissionOption<'_>], allowed| answer(options, allowed).to_string();
        assert_eq!(said(&options, true), r#"{"outcome":{"outcome":"selected","optionId":"b"}}"#);
        assert_eq!(said(&options, false), r#"{"outcome":{"outcome":"selected","optionId":"c"}}"#);
        assert_eq!(
            said(&options[..1], true),
            r#"{"outcome":{"outcome":"selected","optionId":"a"}}"#
        );
        assert_eq!(said(&[], false), r#"{"outcome":{"outcome":"cancelled"}}"#);
    }
}
