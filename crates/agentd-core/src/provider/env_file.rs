//! Files of variables that a CLI loads from the directory it works in.

/// A file of variables that a CLI takes from the repository. It must set nothing but what is
/// named here: a variable can point the CLI, and with it the user's key, at another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvFile {
    /// The file, relative to the working tree and to every directory above it.
    pub path: &'static str,
    /// What it may set.
    pub allowed: &'static [&'static str],
}

impl EnvFile {
    /// The first line that could set something else. Lines are read more strictly than any
    /// CLI reads them: a name, an equals sign, and a value of plain characters.
    pub fn refused_line<'t>(&self, text: &'t str) -> Option<&'t str> {
        text.split(['\n', '\r']).find(|line| {
            let line = line.trim_matches([' ', '\t']);
            let setting = line.strip_prefix("export ").unwrap_or(line);
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            let allowed = setting.split_once('=').is_some_and(|(name, value)| {
                self.allowed.contains(&name) && value.chars().all(plain)
            });
            let comment =
                line.strip_prefix('#').is_some_and(|rest| !rest.contains(['"', '\'', '`']));
            !line.is_empty() && !comment && !allowed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_allowed_may_be_set_in_plain_words() {
        let file = EnvFile { path: ".env", allowed: &["KEY"] };
        assert_eq!(file.refused_line("# mine\n\n  KEY=a-B_1\r\nexport KEY=x\n"), None);
        for refused in [
            "BASE_URL=http://evil",
            "KEY=a b",
            "KEY=\"a\nBASE_URL=x\"",
            "KEY: x",
            "KEY =x",
            "KEY=x;y",
            "# '",
            "\u{feff}KEY=x",
            "KEY=x\u{2028}BASE_URL=y",
        ] {
            assert!(file.refused_line(refused).is_some(), "{refused:?}");
        }
    }
}
