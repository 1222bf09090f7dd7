//! Colors for code: comments, texts, numbers and the words of the language, line by line.
//!
//! A reader of diffs needs to see at a glance what is a comment and what a text; nobody needs a parser
//! for that. Whatever the code looks like, all of it is returned, in order.

/// What a piece of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Plain,
    Comment,
    Text,
    Number,
    Keyword,
}

impl Piece {
    /// Its class in the style sheet.
    pub(super) fn class(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Comment => Some("hl-c"),
            Self::Text => Some("hl-s"),
            Self::Number => Some("hl-n"),
            Self::Keyword => Some("hl-k"),
        }
    }
}

/// How a family of languages is written.
#[derive(Debug)]
pub(super) struct Language {
    /// What begins a comment that ends with its line.
    line_comments: &'static [&'static str],
    /// What encloses a comment.
    block_comment: Option<(&'static str, &'static str)>,
    /// What encloses a text; those of three signs go over several lines.
    quotes: &'static [&'static str],
    keywords: &'static [&'static str],
}

const C_WORDS: &[&str] = &[
    "as",
    "async",
    "await",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "crate",
    "default",
    "defer",
    "do",
    "double",
    "dyn",
    "else",
    "enum",
    "export",
    "extends",
    "extern",
    "false",
    "finally",
    "float",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "if",
    "impl",
    "import",
    "in",
    "instanceof",
    "int",
    "interface",
    "let",
    "long",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "new",
    "nil",
    "null",
    "of",
    "override",
    "package",
    "private",
    "protected",
    "pub",
    "public",
    "range",
    "return",
    "self",
    "Self",
    "static",
    "struct",
    "super",
    "switch",
    "this",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "union",
    "unsafe",
    "use",
    "val",
    "var",
    "void",
    "where",
    "while",
    "yield",
];

const SCRIPT_WORDS: &[&str] = &[
    "and", "as", "assert", "async", "await", "begin", "break", "case", "class", "continue", "def",
    "del", "do", "done", "elif", "else", "elsif", "end", "esac", "except", "export", "False",
    "false", "fi", "finally", "for", "from", "function", "global", "if", "import", "in", "is",
    "lambda", "local", "module", "nil", "None", "nonlocal", "not", "null", "or", "pass", "raise",
    "require", "rescue", "return", "self", "then", "True", "true", "try", "unless", "until",
    "while", "with", "yield",
];

const SQL_WORDS: &[&str] = &[
    "ADD",
    "ALTER",
    "AND",
    "AS",
    "BY",
    "CASE",
    "CREATE",
    "DEFAULT",
    "DELETE",
    "DROP",
    "ELSE",
    "END",
    "EXISTS",
    "FOREIGN",
    "FROM",
    "GROUP",
    "INDEX",
    "INSERT",
    "INTO",
    "JOIN",
    "KEY",
    "LEFT",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "PRIMARY",
    "REFERENCES",
    "SELECT",
    "SET",
    "TABLE",
    "THEN",
    "UNIQUE",
    "UPDATE",
    "VALUES",
    "WHEN",
    "WHERE",
];

static C_LIKE: Language = Language {
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: &["\"\"\"", "\"", "'", "`"],
    keywords: C_WORDS,
};
static SCRIPT: Language = Language {
    line_comments: &["#"],
    block_comment: None,
    quotes: &["\"\"\"", "'''", "\"", "'"],
    keywords: SCRIPT_WORDS,
};
static SQL: Language = Language {
    line_comments: &["--"],
    block_comment: Some(("/*", "*/")),
    quotes: &["\"", "'"],
    keywords: SQL_WORDS,
};
static MARKUP: Language = Language {
    line_comments: &[],
    block_comment: Some(("<!--", "-->")),
    quotes: &["\"", "'"],
    keywords: &[],
};
static STYLE: Language = Language {
    line_comments: &[],
    block_comment: Some(("/*", "*/")),
    quotes: &["\"", "'"],
    keywords: &[],
};
static DATA: Language = Language {
    line_comments: &[],
    block_comment: None,
    quotes: &["\""],
    keywords: &["true", "false", "null"],
};

impl Language {
    /// The language of a name behind a fence or of the ending of a file; none for a plain text.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "rs" | "rust" | "c" | "h" | "cc" | "cpp" | "hpp" | "cs" | "java" | "js" | "jsx"
            | "mjs" | "cjs" | "javascript" | "ts" | "tsx" | "typescript" | "go" | "kt"
            | "kotlin" | "swift" | "scala" | "dart" | "php" | "proto" | "zig" => &C_LIKE,
            "py" | "python" | "rb" | "ruby" | "sh" | "bash" | "zsh" | "shell" | "console"
            | "yaml" | "yml" | "toml" | "ini" | "conf" | "pl" | "r" | "ex" | "exs" | "elixir"
            | "makefile" | "dockerfile" | "cmake" | "nix" => &SCRIPT,
            "sql" | "lua" | "hs" | "haskell" => &SQL,
            "html" | "xml" | "svg" | "vue" | "svelte" => &MARKUP,
            "css" | "scss" | "less" => &STYLE,
            "json" | "jsonc" | "jsonl" => &DATA,
            _ => return None,
        })
    }

    /// The language of a file.
    pub(super) fn of_path(path: &str) -> Option<&'static Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        Self::named(name.rsplit_once('.').map_or(name, |(_, ending)| ending))
    }

    /// The pieces of a line. `open` is what an earlier line has left open, and is updated.
    pub(super) fn pieces<'t>(
        &self,
        line: &'t str,
        open: &mut Option<Open>,
    ) -> Vec<(Piece, &'t str)> {
        let mut pieces: Vec<(Piece, &str)> = Vec::new();
        let mut rest = line;
        let mut push = |piece: Piece, text: &'t str| match pieces.last_mut() {
            _ if text.is_empty() => {}
            // They are parts of one text, so that what is next to each other can be joined.
            Some((last, before)) if *last == piece => {
                let start = before.as_ptr() as usize - line.as_ptr() as usize;
                *before = &line[start..start + before.len() + text.len()];
            }
            _ => pieces.push((piece, text)),
        };
        while !rest.is_empty() {
            if let Some(Open { end, piece }) = *open {
                let until = closing(rest, end).unwrap_or(rest.len());
                if until < rest.len() || rest.ends_with(end) {
                    *open = None;
                }
                let (text, behind) = rest.split_at(until);
                push(piece, text);
                rest = behind;
                // A text of one line ends with it.
                if rest.is_empty() && piece == Piece::Text && end.len() < 3 {
                    *open = None;
                }
                continue;
            }
            let (piece, length) = self.next(rest, open);
            let (text, behind) = rest.split_at(length);
            push(piece, text);
            rest = behind;
        }
        if open.is_some_and(|open| open.piece == Piece::Text && open.end.len() < 3) {
            *open = None;
        }
        pieces
    }

    /// The next piece and how long it is. What begins here and ends later is opened.
    fn next(&self, rest: &str, open: &mut Option<Open>) -> (Piece, usize) {
        if self.line_comments.iter().any(|start| rest.starts_with(start)) {
            return (Piece::Comment, rest.len());
        }
        if let Some((start, end)) = self.block_comment.filter(|(start, _)| rest.starts_with(start))
        {
            *open = Some(Open { end, piece: Piece::Comment });
            return (Piece::Comment, start.len());
        }
        if let Some(quote) = self.quotes.iter().find(|quote| rest.starts_with(**quote)) {
            // A lifetime, an apostrophe: no second quote on the line.
            if quote.len() > 1 || closing(&rest[1..], quote).is_some() {
                *open = Some(Open { end: quote, piece: Piece::Text });
                return (Piece::Text, quote.len());
            }
            return (Piece::Plain, 1);
        }
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let first = rest.chars().next().unwrap_or(' ');
        if !is_word(first) {
            return (Piece::Plain, first.len_utf8());
        }
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        let piece = if first.is_ascii_digit() {
            Piece::Number
        } else if self.keywords.contains(&word) {
            Piece::Keyword
        } else {
            Piece::Plain
        };
        (piece, end)
    }
}

/// A comment or text that goes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    end: &'static str,
    piece: Piece,
}

/// Where something that is open ends in a text; a backslash takes the next sign along.
fn closing(text: &str, end: &str) -> Option<usize> {
    let mut skip = false;
    for (at, c) in text.char_indices() {
        if skip {
            skip = false;
        } else if text[at..].starts_with(end) {
            return Some(at + end.len());
        } else if c == '\\' {
            skip = true;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each piece with a letter in front, except for plain ones.
    fn check(language: &str, lines: &[&str], expected: &[&str]) {
        let language = Language::named(language).unwrap();
        let mut open = None;
        for (line, expected) in lines.iter().zip(expected) {
            let pieces = language.pieces(line, &mut open);
            let all: String = pieces.iter().map(|(_, text)| *text).collect();
            assert_eq!(all, *line, "nothing is lost");
            let shown: String = pieces
                .iter()
                .map(|(piece, text)| match piece.class() {
                    Some(class) => format!("{}[{text}]", &class[3..]),
                    None => (*text).to_owned(),
                })
                .collect();
            assert_eq!(shown, *expected);
        }
    }

    #[test]
    fn code_is_colored() {
        check("rust", &["let x = 12; // y"], &["k[let] x = n[12]; c[// y]"]);
        check("rust", &["/* a", "b */ fn c(&'a str)"], &["c[/* a]", "c[b */] k[fn] c(&'a str)"]);
        check("js", &["f(\"a\\\"b\") + 'c'"], &["f(s[\"a\\\"b\"]) + s['c']"]);
        check("py", &["x = \"\"\"a", "b\"\"\" # c"], &["x = s[\"\"\"a]", "s[b\"\"\"] c[# c]"]);
        check("json", &["{\"a\": true}"], &["{s[\"a\"]: k[true]}"]);
        check("sh", &["echo \"it's\" it's", "x"], &["echo s[\"it's\"] it's", "x"]);
        assert!(Language::of_path("src/a.rs").is_some() && Language::of_path("Makefile").is_some());
        assert!(Language::of_path("notes.txt").is_none());
    }

    #[test]
    fn odd_code_is_shown_as_it_is() {
        for line in ["", "\"", "'", "\\", "/*", "é\"ü", "\u{1f600}'", "a\\", "`${x}", "\"\\"] {
            for name in ["rs", "py", "sql", "html", "css", "json"] {
                let language = Language::named(name).unwrap();
                let mut open = None;
                for _ in 0..2 {
                    let pieces = language.pieces(line, &mut open);
                    let all: String = pieces.iter().map(|(_, text)| *text).collect();
                    assert_eq!(all, line);
                }
            }
        }
    }
}
