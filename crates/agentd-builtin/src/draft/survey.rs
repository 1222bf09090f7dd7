//! What a project's files define, as far as a line shows: enough to say where
//! something belongs, for most languages, without a parser for any.

use agentd_rank::{File, Index, defined};

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
    files: Vec<SourceFile>,
    /// The words in them, in the same order.
    index: Index,
}

impl SourceFile {
    /// Looks through a text.
    fn scan(path: &str, text: &str) -> Self {
        let mut names: Vec<String> = Vec::new();
        for line in text.lines() {
            if names.len() == MOST_NAMES {
                break;
            }
            if let Some(name) = defined(line).filter(|name| names.iter().all(|n| n != name)) {
                names.push(name.to_owned());
            }
        }
        Self { path: path.to_owned(), names }
    }

    /// Whether the file holds tests, by its name.
    pub fn is_test(&self) -> bool {
        let lower = self.path.to_lowercase();
        lower.split(['/', '.', '_', '-']).any(|part| matches!(part, "test" | "tests" | "spec"))
    }

    /// Whether its path or something that it defines is called by one of these words.
    fn is_called(&self, words: &[String]) -> bool {
        let has = |name: &str| {
            let parts = parts(name);
            words.iter().any(|word| alike(&parts, word))
        };
        has(&self.path) || self.names.iter().any(|name| has(name))
    }
}

impl Survey {
    /// Looks through files and their texts.
    pub fn new(texts: impl IntoIterator<Item = (File, String)>) -> Self {
        let mut files = Vec::new();
        let texts = texts.into_iter().inspect(|(file, text)| {
            files.push(SourceFile::scan(&file.path, text));
        });
        let index = Index::new(texts);
        Self { files, index }
    }

    /// The files that a text is about, best first: ranked as they are for every planner, and only
    /// those that are called by one of its words, since a draft names them without having read them.
    pub fn about(&self, text: &str) -> Vec<&SourceFile> {
        let words = key_words(text);
        let ranking = self.index.rank(text);
        let found = ranking.sources.iter().map(|found| &self.files[found.file]);
        found.filter(|file| file.is_called(&words)).collect()
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
    pub(crate) fn has(&self, path: &str) -> bool {
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
    fn files_are_found_by_what_they_are_called_and_define() {
        let file = |path: &str, text: &str| {
            let kind = agentd_rank::kind(path, 0).unwrap();
            (File { path: path.to_owned(), size: 0, mtime: 0, kind }, text.to_owned())
        };
        let survey = Survey::new([
            file("src/auth/LoginForm.tsx", ""),
            file("src/none.ts", "function x() {} // login"),
            file("src/other.ts", "export function lockAccount() {}\nexport function locks() {}"),
            file("test/login.ts", "login"),
        ]);
        let found = survey.about("Add login; lock accounts");
        let paths: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["src/other.ts", "src/auth/LoginForm.tsx"]);
        assert_eq!(survey.language().unwrap().endings[0], "ts");
    }
}
