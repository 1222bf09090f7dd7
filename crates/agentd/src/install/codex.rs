//! The entry for agentd in `.codex/config.toml`. The file is the user's, with comments and an
//! order that a TOML writer would lose, so text is added at its end and taken out again. Both
//! are checked by reading the result.

use toml::{Table, Value};

use super::FileAction;

/// Codex reads it in projects that the user has trusted.
const ENTRY: &str = "[mcp_servers.agentd]\ncommand = \"agentd\"\nargs = [\"mcp\"]\n";

const BY_HAND: &str =
    "add the server `agentd` with the command `agentd mcp` to `mcp_servers` by hand";

fn entry() -> Value {
    let args = Value::Array(vec![Value::String("mcp".to_owned())]);
    let command = Value::String("agentd".to_owned());
    Value::Table([("command".to_owned(), command), ("args".to_owned(), args)].into_iter().collect())
}

pub(super) fn with_entry(old: Option<&str>) -> FileAction {
    let text = old.unwrap_or_default();
    let Ok(before) = text.parse::<Table>() else {
        return FileAction::Leave(format!("it is not valid TOML; {BY_HAND}"));
    };
    if let Some(there) = before.get("mcp_servers").and_then(|servers| servers.get("agentd")) {
        // It may have come with the repository, and Codex runs what it names.
        return match there {
            there if *there == entry() => FileAction::Unchanged,
            there => FileAction::Leave(super::other_entry(
                &serde_json::to_value(there).unwrap_or_default(),
            )),
        };
    }
    let gap = match () {
        () if text.trim().is_empty() || text.ends_with("\n\n") => "",
        () if text.ends_with('\n') => "\n",
        () => "\n\n",
    };
    let new = format!("{text}{gap}{ENTRY}");
    // `mcp_servers = { .. }` on one line cannot be extended, and is no table in other files.
    let reads_back = new.parse::<Table>().is_ok_and(|after| without(after) == Some(before));
    match (reads_back, old) {
        (false, _) => FileAction::Leave(format!("its `mcp_servers` is on one line; {BY_HAND}")),
        (true, None) => FileAction::Create(new),
        (true, Some(_)) => FileAction::Update(new),
    }
}

pub(super) fn without_entry(old: &str) -> FileAction {
    let Ok(before) = old.parse::<Table>() else {
        return FileAction::Leave("it is not valid TOML".to_owned());
    };
    if before.get("mcp_servers").and_then(|servers| servers.get("agentd")).is_none() {
        return FileAction::Unchanged;
    }
    let edited = || FileAction::Leave("its agentd entry was edited".to_owned());
    let Some(start) = old.find(ENTRY) else { return edited() };
    // The empty line that `init` put in front goes too.
    let gap = usize::from(old[..start].ends_with("\n\n"));
    let mut new = old.to_owned();
    new.replace_range(start - gap..start + ENTRY.len(), "");
    if new.parse::<Table>().ok() != without(before) {
        return edited();
    }
    if new.trim().is_empty() { FileAction::Remove } else { FileAction::Update(new) }
}

/// The same settings without the entry for agentd; none if there is another one.
fn without(mut settings: Table) -> Option<Table> {
    let servers = settings.get_mut("mcp_servers")?.as_table_mut()?;
    if servers.remove("agentd")? != entry() {
        return None;
    }
    if servers.is_empty() {
        settings.remove("mcp_servers");
    }
    Some(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_is_added_once_and_taken_out_without_a_trace() {
        for mine in [
            "# mine\nmodel = \"x\" # why\n",
            "model = \"x\"\n\n",
            "[mcp_servers.other]\ncommand = \"x\"",
            "[mcp_servers]\n[mcp_servers.other]\ncommand = \"x\"\n[tools]\n",
        ] {
            let FileAction::Update(text) = with_entry(Some(mine)) else { panic!("{mine}") };
            assert!(text.starts_with(mine));
            assert_eq!(with_entry(Some(&text)), FileAction::Unchanged);
            let FileAction::Update(back) = without_entry(&text) else { panic!("{text}") };
            assert_eq!(back.trim_end(), mine.trim_end());
            // Behind it, somebody may go on.
            let more = format!("{text}[profiles.fast]\nmodel = \"y\"\n");
            let FileAction::Update(back) = without_entry(&more) else { panic!("{more}") };
            assert!(back.contains("[profiles.fast]") && !back.contains("agentd"), "{back}");
        }
        let FileAction::Create(fresh) = with_entry(None) else { panic!() };
        assert_eq!(without_entry(&fresh), FileAction::Remove);
        assert_eq!(without_entry("# nothing of ours\n"), FileAction::Unchanged);
    }

    #[test]
    fn what_somebody_else_wrote_is_left() {
        for odd in ["[", "mcp_servers = 3", "mcp_servers = { other = { command = \"x\" } }\n"] {
            assert!(matches!(with_entry(Some(odd)), FileAction::Leave(_)), "{odd}");
        }
        let evil = "[mcp_servers.agentd]\ncommand = \"./evil.sh\"\nenv = { A = \"1\" }\n";
        let FileAction::Leave(why) = with_entry(Some(evil)) else { panic!() };
        assert!(why.contains("it runs `./evil.sh` with variables of its own"), "{why}");
        for edited in [
            evil.to_owned(),
            format!("{ENTRY}enabled = false\n"),
            format!("{ENTRY}[mcp_servers.agentd.env]\nA = \"1\"\n"),
            ENTRY.replace("agentd\"\n", "agentd\" # mine\n"),
        ] {
            assert!(matches!(without_entry(&edited), FileAction::Leave(_)), "{edited}");
        }
        // The text of the entry in a string is not the entry.
        let quoted = format!("x = \"\"\"\n{ENTRY}\"\"\"\n");
        assert_eq!(without_entry(&quoted), FileAction::Unchanged);
    }
}
