//! What CI files run. Their YAML is not read: a line that begins with a known command counts,
//! wherever it stands, and nothing of it but the template is used.

use super::manifests::{defines_target, node_script, python_program, target_file};
use super::{Candidate, Purpose, Tool, Tree, is_plain};

/// Longer lines are not commands that one would want to run again.
const MOST_LINE_BYTES: usize = 300;
/// The most lines of all CI files that are looked at.
const MOST_LINES: usize = 20_000;

/// A command as CI files write it.
struct Known {
    words: &'static str,
    tool: Tool,
    purpose: Purpose,
    /// What stands for it here; the same words if it is empty.
    template: &'static str,
}

const fn known(words: &'static str, tool: Tool, purpose: Purpose) -> Known {
    Known { words, tool, purpose, template: "" }
}

const fn as_template(
    words: &'static str,
    tool: Tool,
    purpose: Purpose,
    template: &'static str,
) -> Known {
    Known { words, tool, purpose, template }
}

/// The commands that are recognized. A word more than these, and flags other than those in
/// [`FLAGS`], make it a command of its own, for which that of the manifest is taken.
const KNOWN: [Known; 46] = [
    known("cargo nextest run", Tool::Cargo, Purpose::Test),
    known("cargo test", Tool::Cargo, Purpose::Test),
    known("cargo clippy", Tool::Cargo, Purpose::Lint),
    known("cargo build", Tool::Cargo, Purpose::Build),
    as_template("go test", Tool::Go, Purpose::Test, "go test ./..."),
    as_template("go vet", Tool::Go, Purpose::Lint, "go vet ./..."),
    as_template("go build", Tool::Go, Purpose::Build, "go build ./..."),
    known("golangci-lint run", Tool::Go, Purpose::Lint),
    known("mvn test", Tool::Maven, Purpose::Test),
    known("mvn verify", Tool::Maven, Purpose::Test),
    known("./mvnw test", Tool::Maven, Purpose::Test),
    known("./mvnw verify", Tool::Maven, Purpose::Test),
    known("./gradlew test", Tool::Gradle, Purpose::Test),
    known("./gradlew check", Tool::Gradle, Purpose::Test),
    known("./gradlew build", Tool::Gradle, Purpose::Build),
    known("gradle test", Tool::Gradle, Purpose::Test),
    known("gradle check", Tool::Gradle, Purpose::Test),
    known("mix test", Tool::Mix, Purpose::Test),
    known("mix credo", Tool::Mix, Purpose::Lint),
    known("dotnet test", Tool::Dotnet, Purpose::Test),
    known("dotnet build", Tool::Dotnet, Purpose::Build),
    as_template("composer test", Tool::Composer, Purpose::Test, "composer run test"),
    known("vendor/bin/phpunit", Tool::Composer, Purpose::Test),
    known("vendor/bin/pest", Tool::Composer, Purpose::Test),
    known("vendor/bin/phpstan analyse", Tool::Composer, Purpose::Lint),
    known("bundle exec rspec", Tool::Ruby, Purpose::Test),
    known("bundle exec rake test", Tool::Ruby, Purpose::Test),
    known("bundle exec rake spec", Tool::Ruby, Purpose::Test),
    known("bundle exec rake", Tool::Ruby, Purpose::Test),
    known("bundle exec rubocop", Tool::Ruby, Purpose::Lint),
    known("bin/rails test", Tool::Ruby, Purpose::Test),
    as_template("pytest", Tool::Python, Purpose::Test, "pytest"),
    as_template("python -m pytest", Tool::Python, Purpose::Test, "pytest"),
    as_template("python3 -m pytest", Tool::Python, Purpose::Test, "pytest"),
    as_template("uv run pytest", Tool::Python, Purpose::Test, "pytest"),
    as_template("poetry run pytest", Tool::Python, Purpose::Test, "pytest"),
    known("tox", Tool::Python, Purpose::Test),
    known("nox", Tool::Python, Purpose::Test),
    as_template("ruff check", Tool::Python, Purpose::Lint, "ruff check"),
    as_template("uv run ruff check", Tool::Python, Purpose::Lint, "ruff check"),
    as_template("flake8", Tool::Python, Purpose::Lint, "flake8"),
    known("deno test", Tool::Deno, Purpose::Test),
    known("deno lint", Tool::Deno, Purpose::Lint),
    known("deno task test", Tool::Deno, Purpose::Test),
    as_template("ctest", Tool::CMake, Purpose::Test, ""),
    as_template("cmake --build", Tool::CMake, Purpose::Build, ""),
];

/// Words that may stay behind a command, as they are.
const FLAGS: [&str; 6] =
    ["--workspace", "--all", "--all-features", "--all-targets", "--locked", "--no-fail-fast"];

/// Words behind a command that change nothing that matters here.
const PLAIN_ENDS: [&str; 6] = [".", "./...", "-v", "--verbose", "-B", "--no-daemon"];

/// What CI runs, as far as the project has what it needs: `candidates` are those of its manifests.
pub(super) fn candidates(tree: &Tree, candidates: &[Candidate]) -> Vec<Candidate> {
    let mut found = Vec::new();
    let lines = tree.ci.iter().flat_map(|(path, text)| text.lines().map(move |line| (path, line)));
    for (path, line) in lines.take(MOST_LINES).filter(|(_, line)| line.len() <= MOST_LINE_BYTES) {
        for words in commands(line) {
            let new = target(tree, &words, path).or_else(|| fixed(tree, &words, path, candidates));
            found.extend(new.filter(|new| !found.contains(new)));
        }
    }
    // Of several for one purpose, that of the manifest, or the first.
    let of_manifest = |one: &Candidate| {
        candidates.iter().any(|other| {
            (other.tool, other.purpose) == (one.tool, one.purpose)
                && other.found.command == one.found.command
        })
    };
    found.sort_by_key(|candidate| !of_manifest(candidate));
    found
}

/// The simple commands in a line, as words.
fn commands(line: &str) -> Vec<Vec<&str>> {
    let line = line.trim();
    let line = line.strip_prefix("- ").unwrap_or(line).trim_start();
    let line = line.strip_prefix("run:").or(line.strip_prefix("script:")).unwrap_or(line).trim();
    let line = line.trim_matches(['"', '\'']);
    let parts = line.split(['&', '|', ';']);
    parts
        .map(|part| {
            let is_variable = |word: &&str| word.contains('=') && !word.starts_with('-');
            part.split_whitespace().skip_while(is_variable).collect::<Vec<_>>()
        })
        .filter(|words| !words.is_empty())
        .collect()
}

/// A target of `make` or `just`, or a script of package.json, that the project defines.
fn target(tree: &Tree, words: &[&str], path: &str) -> Option<Candidate> {
    let (program, name) = match words {
        [program @ ("make" | "just"), name] => (*program, *name),
        ["npm" | "pnpm" | "yarn" | "bun", "run", name] => ("node", *name),
        ["npm" | "pnpm" | "yarn", name @ ("test" | "lint" | "build")] => ("node", *name),
        _ => return None,
    };
    if !is_plain(name) {
        return None;
    }
    let purpose = purpose_of(name)?;
    if program == "node" {
        let command = node_script(tree, name)?;
        return Some(Candidate::new(Tool::Node, purpose, command, path));
    }
    let (tool, file) = target_file(tree, program)?;
    let defined = defines_target(tree, file, name);
    defined.then(|| Candidate::new(tool, purpose, format!("{program} {name}"), path))
}

/// What a script or target is for, by its name.
fn purpose_of(name: &str) -> Option<Purpose> {
    let word = name.split(['-', ':', '_', '.']).next().unwrap_or_default();
    match word {
        "test" | "tests" | "check" | "unittest" => Some(Purpose::Test),
        "lint" => Some(Purpose::Lint),
        "build" | "compile" => Some(Purpose::Build),
        _ => None,
    }
}

/// A command that is known by its first words.
fn fixed(tree: &Tree, words: &[&str], path: &str, candidates: &[Candidate]) -> Option<Candidate> {
    let (known, rest) = KNOWN.iter().find_map(|known| {
        let mut rest = words.iter().copied();
        known.words.split(' ').all(|word| rest.next() == Some(word)).then_some((known, rest))
    })?;
    let of_tool = |candidate: &&Candidate| candidate.tool == known.tool;
    let manifests = match known.tool {
        Tool::Python => &["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"][..],
        Tool::Composer => &["composer.json"],
        Tool::Ruby => &["Gemfile"],
        _ => &[],
    };
    let is_there = candidates.iter().any(|candidate| of_tool(&candidate))
        || manifests.iter().any(|name| tree.names.contains(*name));
    if !is_there {
        return None;
    }
    let rest: Vec<&str> = rest.filter(|word| !PLAIN_ENDS.contains(word)).collect();
    let wrapper = known.words.split(' ').next().and_then(|word| word.strip_prefix("./"));
    let runnable = wrapper.is_none_or(|wrapper| tree.names.contains(wrapper));
    let is_cargo = known.tool == Tool::Cargo;
    let plain = rest.is_empty() || (is_cargo && rest.iter().all(|word| FLAGS.contains(word)));
    if known.tool != Tool::CMake && runnable && plain {
        let mut command = match (known.tool, known.template) {
            (_, "") => known.words.to_owned(),
            (Tool::Python, program) => python_program(tree, program),
            (_, template) => template.to_owned(),
        };
        for flag in rest {
            command.push(' ');
            command.push_str(flag);
        }
        return Some(Candidate::new(known.tool, known.purpose, command, path));
    }
    // Something more special: that the tool is used is all that is taken from it.
    let same = |candidate: &&Candidate| of_tool(candidate) && candidate.purpose == known.purpose;
    candidates.iter().find(same).cloned()
}
