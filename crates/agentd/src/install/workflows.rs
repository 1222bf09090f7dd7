//! The workflow for agents that a person talks to: `/agentd:plan`, `/agentd:impl`,
//! `/agentd:archive` and so on, in the form that each agent reads. One text serves all of them.
//!
//! Each file carries a digest of itself in a comment of its header, so that agentd can
//! distinguish what it wrote, in any version, from what a person edited since.

use agentd_core::agent::AgentKind;
use agentd_core::hash::Digest;
use agentd_core::rel_path::RelPath;
use agentd_engine::store::StoreError;

use super::FileAction;

/// A workflow.
struct Workflow {
    id: &'static str,
    description: &'static str,
    arguments: &'static str,
    /// What Claude Code need not ask about, beside running agentd and asking.
    tools: &'static [&'static str],
    text: &'static str,
}

const WORKFLOWS: [Workflow; 6] = [
    Workflow {
        id: "plan",
        description: "Plan a change with agentd: clarify, propose, challenge",
        arguments: "<id> [what you want]",
        tools: &["mcp__agentd__create_clarifications"],
        text: include_str!("../../assets/workflows/plan.md"),
    },
    Workflow {
        id: "impl",
        description: "Implement an approved change with agentd: write, test, review",
        arguments: "<id>",
        tools: &[],
        text: include_str!("../../assets/workflows/impl.md"),
    },
    Workflow {
        id: "archive",
        description: "Archive a finished change with agentd: merge its specs",
        arguments: "<id>",
        tools: &[],
        text: include_str!("../../assets/workflows/archive.md"),
    },
    Workflow {
        id: "revise",
        description: "Change the plan of a change with agentd, and redo only what is different",
        arguments: "<id> [what is different now]",
        tools: &[],
        text: include_str!("../../assets/workflows/revise.md"),
    },
    Workflow {
        id: "rename",
        description: "Give a change another ID with agentd",
        arguments: "<id> <new id>",
        tools: &[],
        text: include_str!("../../assets/workflows/rename.md"),
    },
    Workflow {
        id: "drop",
        description: "Give up a change with agentd; its record is kept",
        arguments: "<id> [why]",
        tools: &[],
        text: include_str!("../../assets/workflows/drop.md"),
    },
];

const RULES: &str = include_str!("../../assets/workflows/rules.md");

/// The comment before the digest. The name is part of the format.
const MARK: &str = "# agentd wrote this file; once edited it is yours. digest: ";

/// A file with what it should hold.
pub(super) struct WorkflowFile {
    pub(super) path: RelPath,
    pub(super) text: String,
}

/// Who reads the files, and so in which form they are written.
#[derive(Debug, Clone, Copy)]
enum Reader {
    /// Claude Code: commands.
    Claude,
    /// Gemini CLI: commands.
    Gemini,
    /// Codex and others: skills.
    Codex,
}

/// The files of an agent. People do not talk to agentd's own ones.
pub(super) fn files(agent: AgentKind) -> Result<Vec<WorkflowFile>, StoreError> {
    let agent = match agent {
        AgentKind::Claude => Reader::Claude,
        AgentKind::Gemini => Reader::Gemini,
        AgentKind::Codex | AgentKind::Named(_) => Reader::Codex,
        AgentKind::Builtin | AgentKind::Replay => return Ok(Vec::new()),
    };
    WORKFLOWS
        .iter()
        .map(|workflow| {
            let id = workflow.id;
            let path = match agent {
                Reader::Claude => format!(".claude/commands/agentd/{id}.md"),
                Reader::Gemini => format!(".gemini/commands/agentd/{id}.toml"),
                Reader::Codex => format!(".agents/skills/agentd-{id}/SKILL.md"),
            };
            Ok(WorkflowFile { path: RelPath::new(&path)?, text: text(agent, workflow) })
        })
        .collect()
}

fn text(agent: Reader, workflow: &Workflow) -> String {
    let Workflow { id, description, arguments, .. } = workflow;
    let body = body(agent, workflow);
    let (before, after) = match agent {
        // A model must not begin a workflow of its own accord, least of all one that
        // agentd has called for a step of it.
        Reader::Claude => (
            "---\n".to_owned(),
            format!(
                "description: \"{description}\"\nargument-hint: \"{arguments}\"\n\
                 allowed-tools: {}\n\
                 disable-model-invocation: true\n---\n\n{body}",
                [&["Bash(agentd:*)", "AskUserQuestion"], workflow.tools].concat().join(", ")
            ),
        ),
        Reader::Gemini => {
            (String::new(), format!("description = \"{description}\"\nprompt = '''\n{body}'''\n"))
        }
        Reader::Codex => (
            "---\n".to_owned(),
            format!(
                "name: agentd-{id}\n\
                 description: \"{description}. Only when the user asks for it; never in a prompt \
                 whose first line is `agentd <step> <id>`, which agentd itself has made.\"\n---\n\n{body}"
            ),
        ),
    };
    let digest = digest(&before, &after);
    format!("{before}{MARK}{digest}\n{after}")
}

fn digest(before: &str, after: &str) -> String {
    let digest = Digest::of(format!("{before}{after}").as_bytes()).to_string();
    digest.trim_start_matches("sha256:").chars().take(16).collect()
}

fn body(agent: Reader, workflow: &Workflow) -> String {
    let (given, ask) = match agent {
        Reader::Claude => (
            "$ARGUMENTS",
            "Ask with the tool AskUserQuestion: at most four questions in one call, headers of at \
             most 12 characters, the recommended option first with \" (Recommended)\" behind its \
             label.",
        ),
        Reader::Gemini => (
            "{{args}}",
            "Ask with the tool `ask_user` if you have it, else in plain words with numbered \
             options, the recommended one first; then wait for the answer.",
        ),
        Reader::Codex => (
            "what they wrote when they asked for this skill",
            "Ask in plain words with numbered options, the recommended one first, or with a \
             question tool if you have one; then wait for the answer.",
        ),
    };
    let mut text = format!("{}\n{RULES}", workflow.text);
    for other in &WORKFLOWS {
        let name = match agent {
            Reader::Claude | Reader::Gemini => format!("`/agentd:{} <id>`", other.id),
            Reader::Codex => format!("`$agentd-{}`", other.id),
        };
        text = text.replace(&format!("<<{}>>", other.id), &name);
    }
    text.replace("<<given>>", given).replace("<<ask>>", ask)
}

/// Whether agentd wrote this text, in this or another version, and nobody has edited it.
fn is_ours(text: &str) -> bool {
    let Some(start) = text.find(MARK) else { return false };
    let Some((said, after)) = text[start + MARK.len()..].split_once('\n') else { return false };
    digest(&text[..start], after) == said
}

/// What `init` does with a file: what a person has edited is theirs.
pub(super) fn with_workflow(old: Option<&str>, new: &str) -> FileAction {
    match old {
        None => FileAction::Create(new.to_owned()),
        Some(old) if old == new => FileAction::Unchanged,
        Some(old) if is_ours(old) => FileAction::Update(new.to_owned()),
        Some(_) => FileAction::Leave("it was edited; remove it to get agentd's own".to_owned()),
    }
}

/// What `uninstall` does with a file.
pub(super) fn without_workflow(old: &str) -> FileAction {
    if is_ours(old) { FileAction::Remove } else { FileAction::Leave("it was edited".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = (AgentKind, WorkflowFile)> {
        let of = |agent| files(agent).unwrap().into_iter().map(move |file| (agent, file));
        AgentKind::CLIS.into_iter().flat_map(of)
    }

    #[test]
    fn every_file_is_recognised_until_it_is_edited() {
        for (_, file) in all() {
            let text = &file.text;
            assert!(is_ours(text), "{}", file.path);
            assert_eq!(with_workflow(Some(text), text), FileAction::Unchanged);
            assert_eq!(without_workflow(text), FileAction::Remove);
            for edited in [
                text.replace("agentd list", "agentd  list"),
                format!("{text}\nmine\n"),
                format!("mine\n{text}"),
                text.replacen("digest: ", "digest: 0", 1),
                text.lines().filter(|line| !line.starts_with(MARK)).collect(),
                String::new(),
            ] {
                assert!(matches!(with_workflow(Some(&edited), text), FileAction::Leave(_)));
                assert!(matches!(without_workflow(&edited), FileAction::Leave(_)));
            }
        }
    }

    /// A file of another version, unedited, is brought up to date.
    #[test]
    fn an_older_text_is_replaced() {
        let (before, after) = ("---\n", "description: old\n---\nold\n");
        let old = format!("{before}{MARK}{}\n{after}", digest(before, after));
        assert_eq!(with_workflow(Some(&old), "new"), FileAction::Update("new".to_owned()));
        assert_eq!(without_workflow(&old), FileAction::Remove);
    }

    #[test]
    fn texts_are_complete_and_mean_to_each_agent_what_they_should() {
        for (agent, file) in all() {
            let text = &file.text;
            assert!(!text.contains("<<") && !text.contains(">>"), "{text}");
            assert!(text.len() < 6000, "{}: {} bytes", file.path, text.len());
            // Shell and file injections of Claude Code and Gemini CLI.
            assert!(!text.contains("!{") && !text.contains("@{") && !text.contains("!`"), "{text}");
            let given = text.matches("$ARGUMENTS").count() + text.matches("{{args}}").count();
            assert_eq!(given, usize::from(agent != AgentKind::Codex), "{text}");
            if agent == AgentKind::Gemini {
                let table: toml::Table = text.parse().unwrap();
                assert_eq!(table.len(), 2, "{text}");
            }
        }
    }
}
