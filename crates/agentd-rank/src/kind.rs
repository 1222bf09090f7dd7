//! What a file is, by its path.

/// What a file is to the ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Code that a change may have to edit.
    Source,
    /// Code that tests other code.
    Test,
}

/// Files larger than this are data, whatever they are called.
const LARGEST: u64 = 1 << 20;

/// Directories whose content comes from elsewhere, or from a program.
const SKIPPED_DIRS: [&str; 14] = [
    "vendor",
    "third_party",
    "node_modules",
    "bower_components",
    "dist",
    "build",
    "locale",
    "locales",
    "generated",
    "__generated__",
    "__pycache__",
    "site-packages",
    "target",
    "__snapshots__",
];

/// Directories of tests.
const TEST_DIRS: [&str; 10] = [
    "test",
    "tests",
    "__tests__",
    "spec",
    "specs",
    "testdata",
    "e2e",
    "__mocks__",
    "integration_tests",
    "testing",
];

/// The endings of files with code.
const ENDINGS: &[&str] = &[
    "rs", "py", "pyi", "go", "java", "kt", "kts", "scala", "groovy", "clj", "cljs", "rb", "erb",
    "rake", "php", "ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "vue", "svelte", "astro",
    "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "hxx", "m", "mm", "cs", "fs", "vb", "swift", "dart",
    "ex", "exs", "erl", "hrl", "hs", "ml", "mli", "elm", "lua", "pl", "pm", "r", "jl", "nim",
    "zig", "v", "sh", "bash", "zsh", "fish", "ps1", "sql", "proto", "graphql", "gql", "tf", "nix",
    "cr", "d", "pas", "ada", "f90", "asm", "s", "sol", "css", "scss", "sass", "less", "html",
    "htm", "haml", "slim", "twig", "ejs", "hbs", "jinja", "j2", "mustache",
];

/// The endings of files that say how something looks. They have many words and few decisions.
const STYLE_ENDINGS: &[&str] = &["css", "scss", "sass", "less", "html", "htm"];

/// What the score of a file counts, by its path.
pub(crate) fn share(path: &str) -> f32 {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    if STYLE_ENDINGS.contains(&ending) { 0.6 } else { 1.0 }
}

/// What a file is; none if it is not ranked.
pub fn kind(path: &str, size: u64) -> Option<Kind> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let (stem, ending) = name.rsplit_once('.')?;
    if size > LARGEST || stem.is_empty() || ending.is_empty() || ending.len() > 8 {
        return None;
    }
    if !ENDINGS.contains(&&*ending.to_ascii_lowercase()) {
        return None;
    }
    let generated = ["zz_generated", "generated."].iter().any(|start| name.starts_with(start))
        || [".pb.go", ".min.js", ".min.css", ".d.ts", "_pb2.py", ".pb.cc", ".pb.h"]
            .iter()
            .any(|end| name.ends_with(end));
    if generated || dir.split('/').any(|part| SKIPPED_DIRS.contains(&part)) {
        return None;
    }
    Some(if is_test(dir, stem) { Kind::Test } else { Kind::Source })
}

fn is_test(dir: &str, stem: &str) -> bool {
    let by_name = stem.starts_with("test_")
        || stem.starts_with("tests_")
        || [
            "_test", "_tests", ".test", ".spec", "_spec", "-test", "-spec", "Test", "Tests",
            ".stories",
        ]
        .iter()
        .any(|end| stem.ends_with(end))
        || matches!(stem, "test" | "tests" | "conftest");
    by_name || dir.split('/').any(|part| TEST_DIRS.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_paths() {
        for (path, expected) in [
            ("src/main.rs", Some(Kind::Source)),
            ("lib/Foo.JAVA", Some(Kind::Source)),
            ("pkg/cmd/list_test.go", Some(Kind::Test)),
            ("tests/unit/a.py", Some(Kind::Test)),
            ("src/FooTest.java", Some(Kind::Test)),
            ("src/contest.py", Some(Kind::Source)),
            ("vendor/x/y.go", None),
            ("api/generated.proto", None),
            ("api/zz_generated.deepcopy.go", None),
            ("a.min.js", None),
            ("README", None),
            (".rs", None),
            ("a.", None),
            ("photo.png", None),
        ] {
            assert_eq!(kind(path, 10), expected, "{path}");
        }
        assert_eq!(kind("src/main.rs", 2 << 20), None);
    }
}
