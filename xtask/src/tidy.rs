//! House rules that no compiler or linter checks. Each says what to do.

mod coverage;
mod cycles;
mod links;
mod visibility;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::Result;
use crate::process;
use crate::workspace::Workspace;

/// Longer files are hard to keep in mind. Tests at the end do not count. See [`LONG_FILES`].
const MAX_LINES: usize = 500;

/// Files that may be longer, and up to which length. This list only shrinks: a
/// new entry needs a reason beside it, and one that is no longer needed is an
/// error.
const LONG_FILES: &[(&str, usize)] = &[];

/// The only place where crates come from, as Cargo.lock spells it. A mirror
/// that someone's machine uses must not end up in the file.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The arrows of ARCHITECTURE.md, from the side of what is absent: what a
/// crate's `[dependencies]` may not name.
const ABSENT: &[(&str, &[&str])] = &[
    (
        "crates/agentd-core/Cargo.toml",
        &[
            "agentd",
            "agentd-builtin",
            "agentd-engine",
            "agentd-viewer",
            "anstream",
            "axum",
            "cap-std",
            "clap",
            "fs-err",
            "rmcp",
            "rustix",
            "tempfile",
            "tokio",
        ],
    ),
    (
        "crates/agentd-builtin/Cargo.toml",
        &["agentd", "agentd-engine", "agentd-viewer", "axum", "clap", "rmcp", "tokio"],
    ),
    (
        "crates/agentd-rank/Cargo.toml",
        &[
            "agentd",
            "agentd-builtin",
            "agentd-core",
            "agentd-engine",
            "agentd-viewer",
            "agentd-walk",
        ],
    ),
    (
        "crates/agentd-engine/Cargo.toml",
        &[
            "agentd",
            "agentd-builtin",
            "agentd-viewer",
            "anstream",
            "axum",
            "clap",
            "inquire",
            "rmcp",
        ],
    ),
    (
        "crates/agentd-viewer/Cargo.toml",
        &["agentd", "agentd-builtin", "anstream", "clap", "inquire", "rmcp"],
    ),
    (
        "crates/agentd-fleet/Cargo.toml",
        &[
            "agentd",
            "agentd-builtin",
            "agentd-engine",
            "agentd-rank",
            "agentd-viewer",
            "agentd-walk",
        ],
    ),
    (
        "crates/agentd-walk/Cargo.toml",
        &["agentd", "agentd-builtin", "agentd-core", "agentd-engine", "agentd-viewer"],
    ),
];

/// `cargo xtask tidy`.
pub(crate) fn main(workspace: &Workspace, mut args: lexopt::Parser) -> Result<ExitCode> {
    if let Some(arg) = args.next()? {
        return Err(arg.unexpected().into());
    }
    check(workspace)?;
    println!("tidy");
    Ok(ExitCode::SUCCESS)
}

/// Prints every problem, and fails where there is one.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let files = workspace.files()?;
    let mut problems = Vec::new();
    for file in &files {
        let Some(rule) = rule_for(file) else { continue };
        let text = fs::read_to_string(workspace.root.join(file))
            .map_err(|error| format!("cannot read {file}: {error}"))?;
        rule(file, &text, &mut problems);
    }
    for (file, _) in LONG_FILES {
        if !files.iter().any(|known| known == file) {
            problems.push(format!("{file}: not there; take it off LONG_FILES"));
        }
    }
    links::check(workspace, &files, &mut problems)?;
    coverage::check(workspace, &files, &mut problems)?;
    cycles::check(workspace, &files, &mut problems)?;
    visibility::check(workspace, &files, &mut problems)?;
    if workspace.ci {
        lock_is_committed(workspace, &mut problems)?;
    }
    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => Ok(()),
        count => Err(format!("{count} untidy: {}", problems[0]).into()),
    }
}

type Rule = fn(&str, &str, &mut Vec<String>);

fn rule_for(file: &str) -> Option<Rule> {
    let name = file.rsplit('/').next().unwrap_or(file);
    match name {
        "Cargo.toml" => Some(manifest),
        "Cargo.lock" => Some(cargo_lock),
        "package-lock.json" => Some(package_lock),
        ".npmrc" => Some(npmrc),
        _ if Path::new(name).extension().is_some_and(|extension| extension == "rs") => Some(rust),
        _ => None,
    }
}

fn rust(file: &str, text: &str, problems: &mut Vec<String>) {
    let lines = without_tests(text).lines().count();
    let allowed = LONG_FILES.iter().find(|(name, _)| *name == file);
    match allowed {
        Some((_, limit)) if lines > *limit => {
            problems.push(format!("{file}: {lines} lines, and it may have {limit}; split it"));
        }
        Some(_) if lines <= MAX_LINES => {
            problems.push(format!("{file}: short enough now; take it off LONG_FILES"));
        }
        None if lines > MAX_LINES && !is_test(file) => {
            problems
                .push(format!("{file}: {lines} lines, and {MAX_LINES} are the limit; split it"));
        }
        _ => {}
    }
    // Spelt so that this file does not find itself.
    for unfinished in [concat!("todo", "!("), concat!("unimplemented", "!(")] {
        for (index, line) in text.lines().enumerate() {
            if line.contains(unfinished) {
                problems.push(format!("{file}:{}: {unfinished}..) is not done yet", index + 1));
            }
        }
    }
}

/// A file without the `#[cfg(test)] mod tests { … }` at its end: a file should not be split
/// because it is well tested.
fn without_tests(text: &str) -> &str {
    let Some(module) = text.rfind("\nmod tests {\n") else { return text };
    let last = text[module..].find("\n}\n").is_some_and(|end| module + end + 3 == text.len());
    let before = &text[..module];
    // Between the attribute and the module there may be other attributes.
    let attributes = before.rfind("\n\n").map_or(0, |blank| blank + 2);
    let is_test = before[attributes..].starts_with("#[cfg(test)]");
    if last && is_test { &text[..attributes] } else { text }
}

fn is_test(file: &str) -> bool {
    let in_tests = file.starts_with("tests/") || file.contains("/tests/");
    in_tests || file.ends_with("_tests.rs") || file.ends_with("/tests.rs")
}

fn manifest(file: &str, text: &str, problems: &mut Vec<String>) {
    if section(text, "package").next().is_some()
        && !section(text, "lints").any(|line| line.replace(' ', "") == "workspace=true")
    {
        problems.push(format!("{file}: add [lints] workspace = true"));
    }
    for (_, absent) in ABSENT.iter().filter(|(name, _)| *name == file) {
        for line in section(text, "dependencies") {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if absent.contains(&name) {
                problems.push(format!("{file}: {name} may not be used here (ARCHITECTURE.md)"));
            }
        }
    }
}

/// The lines of `[name]` in a TOML file that is written the usual way.
fn section<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let header = format!("[{name}]");
    text.lines()
        .map(str::trim)
        .skip_while(move |line| *line != header)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn cargo_lock(file: &str, text: &str, problems: &mut Vec<String>) {
    for (index, line) in text.lines().enumerate() {
        if let Some(source) = line.strip_prefix("source = ")
            && source.trim_matches('"') != CRATES_IO
        {
            problems.push(format!("{file}:{}: a crate not from crates.io", index + 1));
        }
    }
}

fn package_lock(file: &str, text: &str, problems: &mut Vec<String>) {
    for (index, line) in text.lines().enumerate() {
        // A link to a local directory is "resolved" too, to a path.
        if line.trim_start().starts_with("\"resolved\"") && line.contains("://") {
            problems.push(format!(
                "{file}:{}: names a download host; remake it with omit-lockfile-registry-resolved",
                index + 1
            ));
        }
    }
}

fn npmrc(file: &str, text: &str, problems: &mut Vec<String>) {
    if text.lines().any(|line| line.contains("registry=") || line.contains("//")) {
        problems.push(format!("{file}: a registry is each machine's own setting"));
    }
}

/// Cargo updates a stale lock file without asking; CI must not.
fn lock_is_committed(workspace: &Workspace, problems: &mut Vec<String>) -> Result<()> {
    let mut git = process::command("git", &workspace.root);
    git.args(["status", "--porcelain", "--", "Cargo.lock"]);
    if !process::capture(&mut git)?.is_empty() {
        problems.push("Cargo.lock: out of date; commit it with Cargo.toml".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(file: &str, text: &str) -> Vec<String> {
        let mut problems = Vec::new();
        rule_for(file).expect("a rule")(file, text, &mut problems);
        problems
    }

    #[test]
    fn a_long_file_is_untidy_unless_it_is_a_test() {
        let long = "//\n".repeat(MAX_LINES + 1);
        assert_eq!(problems("crates/a/src/lib.rs", &long).len(), 1);
        assert_eq!(problems("crates/a/tests/all.rs", &long), [""; 0]);
        assert_eq!(problems("crates/a/src/parse_tests.rs", &long), [""; 0]);
        assert_eq!(problems("crates/a/src/lib.rs", &"//\n".repeat(MAX_LINES)), [""; 0]);
    }

    #[test]
    fn tests_at_the_end_of_a_file_do_not_count() {
        let code = "//\n".repeat(MAX_LINES - 1) + "\n";
        let tests = "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n";
        assert_eq!(problems("crates/a/src/lib.rs", &format!("{code}{tests}")), [""; 0]);
        let expecting = tests.replace("mod", "#[expect(unused)]\nmod");
        assert_eq!(problems("crates/a/src/lib.rs", &format!("{code}{expecting}")), [""; 0]);
        // Neither code behind the tests nor a module that is no test is left out.
        assert_eq!(
            problems("crates/a/src/lib.rs", &format!("{code}{tests}fn f() {{}}\n")).len(),
            1
        );
        let code_in_module = tests.replace("#[cfg(test)]", "#[cfg(unix)]");
        assert_eq!(problems("crates/a/src/lib.rs", &format!("{code}{code_in_module}")).len(), 1);
        let long = "//\n".repeat(MAX_LINES + 1) + "\n";
        assert_eq!(problems("crates/a/src/lib.rs", &format!("{long}{tests}")).len(), 1);
    }

    #[test]
    fn unfinished_code_is_named_by_its_line() {
        let text = format!("fn f() {{\n    {}) }}\n", concat!("todo", "!("));
        let found = problems("src/f.rs", &text);
        assert!(found.len() == 1 && found[0].starts_with("src/f.rs:2: "), "{found:?}");
    }

    #[test]
    fn every_package_takes_the_workspace_lints() {
        let bare = "[package]\nname = \"a\"\n[dependencies]\n";
        assert_eq!(problems("crates/a/Cargo.toml", bare).len(), 1);
        let good = format!("{bare}[lints]\nworkspace = true\n");
        assert_eq!(problems("crates/a/Cargo.toml", &good), [""; 0]);
        assert_eq!(problems("Cargo.toml", "[workspace]\nmembers = []\n"), [""; 0]);
    }

    #[test]
    fn dependencies_point_only_where_the_architecture_lets_them() {
        let file = "crates/agentd-core/Cargo.toml";
        let lints = "[lints]\nworkspace = true\n";
        let good = format!("[package]\n[dependencies]\nserde.workspace = true\n{lints}");
        assert_eq!(problems(file, &good), [""; 0]);
        let in_tests = format!("[package]\n[dev-dependencies]\ntempfile = \"3\"\n{lints}");
        assert_eq!(problems(file, &in_tests), [""; 0]);
        for bad in ["agentd-engine.workspace = true", "tokio = { version = \"1\" }", "clap=\"4\""] {
            let text = format!("[package]\nname = \"x\"\n[dependencies]\n{bad}\n{lints}");
            assert_eq!(problems(file, &text).len(), 1, "{bad}");
        }
    }

    #[test]
    fn locks_name_no_host() {
        let good = format!("[[package]]\nsource = \"{CRATES_IO}\"\n");
        assert_eq!(problems("Cargo.lock", &good), [""; 0]);
        let mirror = "[[package]]\nsource = \"registry+https://mirror.example/index\"\n";
        assert_eq!(problems("Cargo.lock", mirror).len(), 1);

        let npm = "{\n  \"resolved\": \"https://mirror.example/a.tgz\",\n}";
        assert_eq!(problems("testing/x/package-lock.json", npm).len(), 1);
        let local = "{\n  \"resolved\": \"../sibling\",\n  \"link\": true\n}";
        assert_eq!(problems("testing/x/package-lock.json", local), [""; 0]);

        assert_eq!(problems("testing/x/.npmrc", "registry=https://mirror.example/").len(), 1);
        assert_eq!(problems("testing/x/.npmrc", "ignore-scripts=true\n"), [""; 0]);
    }
}
