//! Command lines that agentd shows to be run: words that are quoted for a shell in one place.

use std::fmt;

use crate::ids::ChangeId;

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// It is passed as it is.
    Literal(String),
    /// It has to be filled in, such as `<id>`.
    Placeholder(&'static str),
}

/// One or more commands, as they can be pasted into a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// At least one, each at least a program.
    commands: Vec<Vec<Word>>,
}

/// Stands for the ID of a change where it is not known.
const CHANGE: &str = "<id>";

impl CommandLine {
    /// A command of any program.
    pub fn new<W: Into<String>>(words: impl IntoIterator<Item = W>) -> Self {
        Self { commands: vec![words.into_iter().map(|word| Word::Literal(word.into())).collect()] }
    }

    /// A command of agentd.
    pub fn agentd<W: Into<String>>(args: impl IntoIterator<Item = W>) -> Self {
        Self::new(["agentd"]).args(args)
    }

    /// A command of git.
    pub fn git<W: Into<String>>(args: impl IntoIterator<Item = W>) -> Self {
        Self::new(["git"]).args(args)
    }

    fn word(mut self, word: Word) -> Self {
        if let Some(last) = self.commands.last_mut() {
            last.push(word);
        }
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<W: Into<String>>(self, args: impl IntoIterator<Item = W>) -> Self {
        args.into_iter().fold(self, |line, arg| line.word(Word::Literal(arg.into())))
    }

    /// Adds an argument that has to be filled in; `text` is shown as it is.
    #[must_use]
    pub fn placeholder(self, text: &'static str) -> Self {
        self.word(Word::Placeholder(text))
    }

    /// Adds the ID of a change that is not known here; see [`for_change`](Self::for_change).
    #[must_use]
    pub fn change(self) -> Self {
        self.placeholder(CHANGE)
    }

    /// Fills in the ID of the change.
    #[must_use]
    pub fn for_change(mut self, change: &ChangeId) -> Self {
        for word in self.commands.iter_mut().flatten() {
            if *word == Word::Placeholder(CHANGE) {
                *word = Word::Literal(change.to_string());
            }
        }
        self
    }

    /// Adds a command that is run if this one succeeds.
    #[must_use]
    pub fn and(mut self, next: Self) -> Self {
        self.commands.extend(next.commands);
        self
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, words) in self.commands.iter().enumerate() {
            if i > 0 {
                f.write_str(" && ")?;
            }
            for (j, word) in words.iter().enumerate() {
                let space = if j > 0 { " " } else { "" };
                match word {
                    Word::Literal(text) => write!(f, "{space}{}", shell_words::quote(text))?,
                    Word::Placeholder(text) => write!(f, "{space}{text}")?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_or_expand_them() {
        let line = CommandLine::git(["add", "-A"]).and(CommandLine::git(["commit", "-m", "a b"]));
        assert_eq!(line.to_string(), "git add -A && git commit -m 'a b'");
        let line = CommandLine::new(["mv", "it's", "$HOME/*"]);
        assert_eq!(
            shell_words::split(&line.to_string()).unwrap(),
            ["mv", "it's", "$HOME/*"],
            "{line}"
        );
    }

    #[test]
    fn the_change_is_filled_in_once_it_is_known() {
        let line = CommandLine::agentd(["plan"]).change().placeholder("\"<what you want>\"");
        assert_eq!(line.to_string(), "agentd plan <id> \"<what you want>\"");
        let line = line.for_change(&ChangeId::new("add-login").unwrap());
        assert_eq!(line.to_string(), "agentd plan add-login \"<what you want>\"");
    }
}
