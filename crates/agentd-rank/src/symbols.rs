//! What lines of code define, as far as a line shows: enough for most languages, without a parser
//! for any.

/// Words in front of a definition.
const MODIFIERS: &[&str] = &[
    "pub",
    "export",
    "default",
    "async",
    "static",
    "public",
    "private",
    "protected",
    "final",
    "abstract",
    "unsafe",
    "override",
    "internal",
    "sealed",
    "data",
    "open",
    "declare",
    "partial",
    "inline",
    "extern",
];
/// Words that define what follows them.
const DEFINERS: &[&str] = &[
    "fn",
    "func",
    "def",
    "class",
    "struct",
    "enum",
    "trait",
    "interface",
    "type",
    "function",
    "module",
    "defmodule",
    "object",
    "record",
    "protocol",
    "fun",
    "mod",
];
/// The longest name that is one.
const LONGEST_NAME: usize = 80;

/// The name that a line defines.
pub fn defined(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    // Deep inside something nothing of interest is defined.
    if line.len() - rest.len() > 8 || line.len() > 400 {
        return None;
    }
    let mut exported = false;
    loop {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        let (word, behind) = rest.split_at(end);
        if MODIFIERS.contains(&word) {
            exported |= word == "export";
            let behind = match behind.strip_prefix('(') {
                Some(inside) => inside.split_once(')')?.1,
                None => behind,
            };
            rest = behind.trim_start();
            continue;
        }
        let known =
            DEFINERS.contains(&word) || (exported && matches!(word, "const" | "let" | "var"));
        if !known || !behind.starts_with(char::is_whitespace) {
            return None;
        }
        let mut name = behind.trim_start();
        // A method of Go names its receiver first.
        if let Some(receiver) = name.strip_prefix('(').filter(|_| word == "func") {
            name = receiver.split_once(')')?.1.trim_start();
        }
        let length = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
        let name = &name[..name.floor_char_boundary(length.min(LONGEST_NAME))];
        return name.starts_with(|c: char| c.is_alphabetic() || c == '_').then_some(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_many_languages_are_seen() {
        let cases = [
            ("pub(crate) async fn log_in(", "log_in"),
            ("export default class LoginForm {", "LoginForm"),
            ("export const useLogin = () => {", "useLogin"),
            ("    def log_in(self):", "log_in"),
            ("func (s *Server) Login(w http.ResponseWriter) {", "Login"),
            ("public final class Login {", "Login"),
            ("defmodule Shop.Login do", "Shop"),
            ("type Session struct {", "Session"),
            ("export interface Größe {", "Größe"),
        ];
        for (line, name) in cases {
            assert_eq!(defined(line), Some(name), "{line}");
        }
        for none in [
            "let login = 1;",
            "// fn x",
            "define x",
            "class",
            "                fn deep()",
            "return fn",
        ] {
            assert_eq!(defined(none), None, "{none}");
        }
    }
}
