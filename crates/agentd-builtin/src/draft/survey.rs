//! What a project's files define, as far as a line shows: enough to say where
//! something belongs, for most languages, without a parser for any.

use agentd_core::text::head;

/// The most names that are kept of one file.
const MOST_NAMES: usize = 60;

/// A file of source code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// From the root of the project, with `/`.
    pub path: String,
    /// The names of functions, types and the like that it defines.
    pub names: Vec<String>,
}

/// What was found in a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// The source files, by path.
    pub files: Vec<SourceFile>,
    /// More files were there than are looked at.
    pub cut: bool,
}

impl SourceFile {
    /// Looks through a text; none if the name is not that of source code.
    pub fn scan(path: &str, text: &str) -> Option<Self> {
        language(path)?;
        let mut names: Vec<String> = Vec::new();
        for line in text.lines() {
            if names.len() == MOST_NAMES {
                break;
            }
            if let Some(name) = defined(line).filter(|name| names.iter().all(|n| n != name)) {
                names.push(name.to_owned());
            }
        }
        Some(Self { path: path.to_owned(), names })
    }

    /// Whether the file holds tests, by its name.
    pub fn is_test(&self) -> bool {
        let lower = self.path.to_lowercase();
        lower.split(['/', '.', '_', '-']).any(|part| matches!(part, "test" | "tests" | "spec"))
    }

    /// How much it has to do with some words.
    fn score(&self, words: &[String]) -> usize {
        let path = parts(&self.path);
        let hits = |parts: &[String]| words.iter().filter(|word| alike(parts, word)).count();
        let named = |name: &String| {
            let parts = parts(name);
            // What is called exactly so is about it; what has it in its name may be.
            hits(&parts).min(1) * if parts.len() == 1 { 2 } else { 1 }
        };
        3 * hits(&path) + self.names.iter().map(named).sum::<usize>().min(6)
    }
}

impl Survey {
    /// The files that have to do with some words, best first.
    pub fn about(&self, words: &[String]) -> Vec<&SourceFile> {
        let mut found: Vec<(usize, &SourceFile)> = self
            .files
            .iter()
            .map(|file| (file.score(words), file))
            .filter(|(score, _)| *score >= 2)
            .collect();
        found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.path.cmp(&b.1.path)));
        found.into_iter().map(|(_, file)| file).collect()
    }

    /// The language of most files.
    pub(super) fn language(&self) -> Option<&'static Language> {
        let count = |language: &Language| {
            self.files.iter().filter(|file| language.is_of(&file.path)).count()
        };
        LANGUAGES
            .iter()
            .map(|language| (count(language), language))
            .filter(|(count, _)| *count > 0)
            .max_by_key(|(count, language)| (*count, std::cmp::Reverse(language.endings[0])))
            .map(|(_, language)| language)
    }

    /// Whether there is such a file.
    pub(super) fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path)
    }

    /// Where the program begins, if a name shows it.
    pub(super) fn entry(&self) -> Option<&SourceFile> {
        let stem = |file: &SourceFile| {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            name.split('.').next().unwrap_or_default().to_owned()
        };
        ["main", "app", "index", "server", "cli", "routes", "lib", "__main__", "__init__"]
            .into_iter()
            .find_map(|wanted| {
                let mut found =
                    self.files.iter().filter(|file| stem(file) == wanted && !file.is_test());
                found.by_ref().min_by_key(|file| file.path.matches('/').count())
            })
    }
}

/// How files of a language are named.
#[derive(Debug)]
pub(super) struct Language {
    /// The endings of its files; the first is that of new ones.
    pub(super) endings: &'static [&'static str],
    /// Where sources are.
    pub(super) sources: &'static str,
    /// Where tests are, with `{}` for the name.
    pub(super) tests: &'static str,
    /// Whether names in files are written with `_`.
    pub(super) underscores: bool,
}

impl Language {
    fn is_of(&self, path: &str) -> bool {
        path.rsplit_once('.').is_some_and(|(_, ending)| self.endings.contains(&ending))
    }
}

const LANGUAGES: &[Language] = &[
    Language { endings: &["rs"], sources: "src", tests: "tests/{}.rs", underscores: true },
    Language { endings: &["py"], sources: "src", tests: "tests/test_{}.py", underscores: true },
    Language {
        endings: &["ts", "tsx"],
        sources: "src",
        tests: "test/{}.test.ts",
        underscores: false,
    },
    Language {
        endings: &["js", "jsx", "mjs", "cjs"],
        sources: "src",
        tests: "test/{}.test.js",
        underscores: false,
    },
    Language { endings: &["go"], sources: ".", tests: "{}_test.go", underscores: true },
    Language {
        endings: &["java"],
        sources: "src/main/java",
        tests: "src/test/java/{}Test.java",
        underscores: true,
    },
    Language {
        endings: &["kt"],
        sources: "src/main/kotlin",
        tests: "src/test/kotlin/{}Test.kt",
        underscores: true,
    },
    Language { endings: &["rb"], sources: "lib", tests: "spec/{}_spec.rb", underscores: true },
    Language { endings: &["php"], sources: "src", tests: "tests/{}Test.php", underscores: true },
    Language { endings: &["cs"], sources: "src", tests: "tests/{}Tests.cs", underscores: true },
    Language {
        endings: &["swift"],
        sources: "Sources",
        tests: "Tests/{}Tests.swift",
        underscores: true,
    },
    Language { endings: &["c", "h"], sources: "src", tests: "tests/{}.c", underscores: true },
    Language {
        endings: &["cpp", "cc", "hpp"],
        sources: "src",
        tests: "tests/{}.cpp",
        underscores: true,
    },
    Language {
        endings: &["ex", "exs"],
        sources: "lib",
        tests: "test/{}_test.exs",
        underscores: true,
    },
    Language { endings: &["sh"], sources: "scripts", tests: "tests/{}.sh", underscores: false },
];

/// The language of a file, by its name.
fn language(path: &str) -> Option<&'static Language> {
    LANGUAGES.iter().find(|language| language.is_of(path))
}

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

/// The name that a line defines.
fn defined(line: &str) -> Option<&str> {
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
        let name = head(&name[..length], 80);
        return name.starts_with(|c: char| c.is_alphabetic() || c == '_').then_some(name);
    }
}

/// `src/UserLogin_v2.rs` as `src user login v2 rs`.
fn parts(name: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            found.push(String::new());
        }
        was_lower = c.is_lowercase();
        if c.is_alphanumeric()
            && let Some(last) = found.last_mut()
        {
            last.extend(c.to_lowercase());
        }
    }
    found.retain(|part| !part.is_empty());
    found
}

/// Whether a word is among parts, in singular or plural.
fn alike(parts: &[String], word: &str) -> bool {
    let stem = |word: &str| word.strip_suffix('s').unwrap_or(word).to_owned();
    parts.iter().any(|part| part.len() > 2 && stem(part) == stem(word))
}

/// Words that say nothing about where something belongs.
const COMMON: &[&str] = &[
    "add", "after", "all", "and", "any", "are", "because", "been", "before", "but", "can",
    "change", "code", "does", "each", "file", "files", "for", "from", "have", "into", "its",
    "make", "more", "must", "need", "new", "not", "one", "only", "our", "out", "over", "should",
    "src", "system", "than", "that", "the", "their", "them", "then", "there", "they", "this",
    "use", "user", "users", "want", "was", "when", "where", "which", "will", "with", "without",
    "you", "your",
];

/// The words of a text by which files are found.
pub(crate) fn key_words(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in parts(text) {
        let counts = word.chars().count() > 2
            && !word.starts_with(|c: char| c.is_ascii_digit())
            && !COMMON.contains(&word.as_str());
        if counts && !found.contains(&word) {
            found.push(word);
        }
        if found.len() == 200 {
            break;
        }
    }
    found
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

    #[test]
    fn files_are_found_by_what_they_are_called_and_define() {
        let scan = |path: &str, text: &str| SourceFile::scan(path, text).unwrap();
        let survey = Survey {
            files: vec![
                scan("src/auth/LoginForm.tsx", ""),
                scan(
                    "src/other.ts",
                    "export function lockAccount() {}\nexport function locks() {}",
                ),
                scan("src/none.ts", "function x() {}"),
            ],
            cut: false,
        };
        let found = survey.about(&key_words("Add login; lock accounts"));
        let paths: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["src/auth/LoginForm.tsx", "src/other.ts"]);
        assert_eq!(survey.language().unwrap().endings[0], "ts");
        assert_eq!(SourceFile::scan("a.png", ""), None);
    }
}
