//! What manifests say.

use serde::Deserialize;
use std::collections::BTreeMap;

use super::{Candidate, Purpose, Tool, Tree};

/// Names of scripts and targets, the likeliest first.
const TEST_NAMES: [&str; 6] = ["test", "check", "tests", "test:unit", "unit-test", "test-unit"];
const LINT_NAMES: [&str; 3] = ["lint", "lint:check", "check-style"];
const BUILD_NAMES: [&str; 2] = ["build", "compile"];

/// A tool that does the same in every project.
struct Conventional {
    tool: Tool,
    /// Any of these files, by name or, with a star, by its ending.
    manifest: &'static [&'static str],
    /// A file that must be there too; empty for none.
    with: &'static str,
    /// The commands, none where it is empty.
    test: &'static str,
    lint: &'static str,
    build: &'static str,
}

const GRADLE: &[&str] =
    &["build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle"];

/// Of several rows for one tool, the first counts.
const CONVENTIONAL: [Conventional; 9] = [
    Conventional {
        tool: Tool::Go,
        manifest: &["go.mod"],
        with: ".golangci.yml",
        test: "go test ./...",
        lint: "golangci-lint run",
        build: "go build ./...",
    },
    Conventional {
        tool: Tool::Go,
        manifest: &["go.mod"],
        with: "",
        test: "go test ./...",
        lint: "go vet ./...",
        build: "go build ./...",
    },
    Conventional {
        tool: Tool::Maven,
        manifest: &["pom.xml"],
        with: "mvnw",
        test: "./mvnw test",
        lint: "",
        build: "./mvnw compile",
    },
    Conventional {
        tool: Tool::Maven,
        manifest: &["pom.xml"],
        with: "",
        test: "mvn test",
        lint: "",
        build: "mvn compile",
    },
    Conventional {
        tool: Tool::Gradle,
        manifest: GRADLE,
        with: "gradlew",
        test: "./gradlew test",
        lint: "",
        build: "./gradlew assemble",
    },
    Conventional {
        tool: Tool::Gradle,
        manifest: GRADLE,
        with: "",
        test: "gradle test",
        lint: "",
        build: "gradle assemble",
    },
    Conventional {
        tool: Tool::Mix,
        manifest: &["mix.exs"],
        with: "",
        test: "mix test",
        lint: "mix format --check-formatted",
        build: "mix compile",
    },
    Conventional {
        tool: Tool::Dotnet,
        manifest: &["*.slnx", "*.sln", "*.csproj", "*.fsproj"],
        with: "",
        test: "dotnet test",
        lint: "dotnet format --verify-no-changes",
        build: "dotnet build",
    },
    Conventional {
        tool: Tool::Deno,
        manifest: &["deno.json", "deno.jsonc"],
        with: "",
        test: "deno test",
        lint: "deno lint",
        build: "",
    },
];

/// Everything that the manifests of a project offer.
pub(super) fn candidates(tree: &Tree) -> Vec<Candidate> {
    let mut all = Vec::new();
    targets(tree, &mut all);
    cargo(tree, &mut all);
    conventional(tree, &mut all);
    composer(tree, &mut all);
    ruby(tree, &mut all);
    python(tree, &mut all);
    node(tree, &mut all);
    cmake(tree, &mut all);
    all
}

fn conventional(tree: &Tree, all: &mut Vec<Candidate>) {
    for row in &CONVENTIONAL {
        let fits = |name: &&String| {
            row.manifest.iter().any(|wanted| match wanted.strip_prefix('*') {
                Some(ending) => name.ends_with(ending),
                None => name == wanted,
            })
        };
        let Some(manifest) = tree.names.iter().find(fits) else { continue };
        let known = all.iter().any(|candidate| candidate.tool == row.tool);
        if known || !(row.with.is_empty() || tree.names.contains(row.with)) {
            continue;
        }
        let commands =
            [(Purpose::Test, row.test), (Purpose::Lint, row.lint), (Purpose::Build, row.build)];
        for (purpose, command) in commands.into_iter().filter(|(_, command)| !command.is_empty()) {
            all.push(Candidate::new(row.tool, purpose, command, manifest));
        }
    }
}

fn cargo(tree: &Tree, all: &mut Vec<Candidate>) {
    const FILE: &str = "Cargo.toml";
    let Some(text) = tree.texts.get(FILE) else { return };
    let whole = if has_section(text, "[workspace") { " --workspace" } else { "" };
    all.push(Candidate::new(Tool::Cargo, Purpose::Test, format!("cargo test{whole}"), FILE));
    let lint = format!("cargo clippy{whole} --all-targets");
    all.push(Candidate::new(Tool::Cargo, Purpose::Lint, lint, FILE));
    all.push(Candidate::new(Tool::Cargo, Purpose::Build, format!("cargo build{whole}"), FILE));
}

/// The first of the likely names that a file defines, for each purpose.
fn likely<'a>(defines: impl Fn(&str) -> bool + Copy) -> impl Iterator<Item = (Purpose, &'a str)> {
    let first = move |purpose, names: &[&'a str]| {
        names.iter().copied().find(|name| defines(name)).map(|name| (purpose, name))
    };
    let all = [
        first(Purpose::Test, &TEST_NAMES),
        first(Purpose::Lint, &LINT_NAMES),
        first(Purpose::Build, &BUILD_NAMES),
    ];
    all.into_iter().flatten()
}

/// The files of `just` and `make`, in the order in which these look for them.
const TARGET_FILES: [(Tool, &str, &str); 5] = [
    (Tool::Just, "just", "justfile"),
    (Tool::Just, "just", "Justfile"),
    (Tool::Make, "make", "GNUmakefile"),
    (Tool::Make, "make", "makefile"),
    (Tool::Make, "make", "Makefile"),
];

/// The program and the file of a tool with targets.
pub(super) fn target_file(tree: &Tree, program: &str) -> Option<(Tool, &'static str)> {
    let mut files = TARGET_FILES.into_iter().filter(|(_, name, _)| *name == program);
    files.find(|(_, _, file)| tree.texts.contains_key(*file)).map(|(tool, _, file)| (tool, file))
}

fn targets(tree: &Tree, all: &mut Vec<Candidate>) {
    for program in ["just", "make"] {
        let Some((tool, file)) = target_file(tree, program) else { continue };
        for (purpose, name) in likely(|name| defines_target(tree, file, name)) {
            all.push(Candidate::new(tool, purpose, format!("{program} {name}"), file));
        }
    }
}

/// Whether a file of `make` or `just` has a target of this name.
pub(super) fn defines_target(tree: &Tree, file: &str, target: &str) -> bool {
    let Some(text) = tree.texts.get(file) else { return false };
    text.lines().any(|line| {
        let Some((names, rest)) = line.split_once(':') else { return false };
        // `a := b` sets a variable; recipes are indented.
        if rest.starts_with('=') || line.starts_with([' ', '\t', '#']) {
            return false;
        }
        // `@build target="x":` in a justfile is quiet, and has parameters behind the name.
        let mut names = names.split_whitespace();
        if file.ends_with("ustfile") {
            names.next().is_some_and(|name| name.trim_start_matches('@') == target)
        } else {
            names.any(|name| name == target)
        }
    })
}

/// The part of package.json or composer.json that counts here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Package {
    scripts: BTreeMap<String, serde_json::Value>,
    #[serde(rename = "packageManager")]
    package_manager: Option<String>,
}

fn package(tree: &Tree, file: &str) -> Option<Package> {
    serde_json::from_str(tree.texts.get(file)?).ok()
}

/// The package managers of Node, by the lock files that they write.
const NODE_LOCKS: [(&str, &str); 7] = [
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
    ("pnpm-workspace.yaml", "pnpm"),
];

fn node_manager(tree: &Tree, package: &Package) -> &'static str {
    let named = package.package_manager.as_deref().and_then(|name| name.split('@').next());
    let known = |name: &str| NODE_LOCKS.into_iter().find(|(_, manager)| *manager == name);
    let locked = |names: &std::collections::BTreeSet<String>| {
        NODE_LOCKS.into_iter().find(|(lock, _)| names.contains(*lock))
    };
    let found = named.and_then(known).or_else(|| locked(&tree.names));
    found.or_else(|| locked(&tree.above)).map_or("npm", |(_, manager)| manager)
}

/// The command that runs a script of package.json, if there is such a script.
pub(super) fn node_script(tree: &Tree, script: &str) -> Option<String> {
    let package = package(tree, "package.json")?;
    let text = package.scripts.get(script)?.as_str()?;
    // What `npm init` writes, and what a formatter makes of it.
    if text.contains("no test specified") || text.trim().is_empty() {
        return None;
    }
    let manager = node_manager(tree, &package);
    // `bun test` is the test runner of bun, not the script.
    let word = if script == "test" && manager != "bun" { "" } else { "run " };
    Some(format!("{manager} {word}{script}"))
}

fn node(tree: &Tree, all: &mut Vec<Candidate>) {
    for (purpose, name) in likely(|name| node_script(tree, name).is_some()) {
        if let Some(command) = node_script(tree, name) {
            all.push(Candidate::new(Tool::Node, purpose, command, "package.json"));
        }
    }
}

fn composer(tree: &Tree, all: &mut Vec<Candidate>) {
    const FILE: &str = "composer.json";
    let Some(package) = package(tree, FILE) else { return };
    for (purpose, name) in likely(|name| package.scripts.contains_key(name)) {
        all.push(Candidate::new(Tool::Composer, purpose, format!("composer run {name}"), FILE));
    }
    let has_test = |candidate: &Candidate| {
        candidate.tool == Tool::Composer && candidate.purpose == Purpose::Test
    };
    let config = ["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"];
    if let Some(file) = config.into_iter().find(|file| tree.names.contains(*file))
        && !all.iter().any(has_test)
    {
        all.push(Candidate::new(Tool::Composer, Purpose::Test, "vendor/bin/phpunit", file));
    }
}

fn ruby(tree: &Tree, all: &mut Vec<Candidate>) {
    let has = |name: &str| tree.names.contains(name);
    let bundle = if has("Gemfile") { "bundle exec " } else { "" };
    let test = if has(".rspec") || (has("spec") && has("Gemfile")) {
        let source = if has(".rspec") { ".rspec" } else { "Gemfile" };
        Some((format!("{bundle}rspec"), source))
    } else if has("Gemfile") && has("config.ru") && has("bin") && has("test") {
        Some(("bin/rails test".to_owned(), "Gemfile"))
    } else if has("Rakefile") {
        Some((format!("{bundle}rake test"), "Rakefile"))
    } else {
        None
    };
    if let Some((command, source)) = test {
        all.push(Candidate::new(Tool::Ruby, Purpose::Test, command, source));
    }
    if has(".rubocop.yml") {
        let lint = format!("{bundle}rubocop");
        all.push(Candidate::new(Tool::Ruby, Purpose::Lint, lint, ".rubocop.yml"));
    }
}

/// What runs a program in the environment of a Python project, by its lock file.
const PYTHON_LOCKS: [(&str, &str); 4] = [
    ("uv.lock", "uv run "),
    ("poetry.lock", "poetry run "),
    ("pdm.lock", "pdm run "),
    ("Pipfile.lock", "pipenv run "),
];

/// A program of a Python project.
pub(super) fn python_program(tree: &Tree, program: &str) -> String {
    let lock = PYTHON_LOCKS.into_iter().find(|(lock, _)| tree.names.contains(*lock));
    match (lock, program) {
        (Some((_, run)), _) => format!("{run}{program}"),
        // It finds the modules of the project without an installation.
        (None, "pytest") => "python3 -m pytest".to_owned(),
        (None, _) => program.to_owned(),
    }
}

fn python(tree: &Tree, all: &mut Vec<Candidate>) {
    let has = |name: &str| tree.names.contains(name);
    let says = |file: &'static str, section: &str| {
        tree.texts.get(file).is_some_and(|text| has_section(text, section)).then_some(file)
    };
    let names = |file: &'static str, word: &str| {
        tree.texts.get(file).is_some_and(|text| text.contains(word)).then_some(file)
    };
    let there = |file: &'static str| has(file).then_some(file);
    let pytest = there("pytest.ini")
        .or(says("pyproject.toml", "[tool.pytest"))
        .or(says("setup.cfg", "[tool:pytest]"))
        .or(says("tox.ini", "[pytest]"))
        .or(there("conftest.py"))
        .or(names("pyproject.toml", "pytest"))
        .or(names("requirements-dev.txt", "pytest"))
        .or(names("requirements.txt", "pytest"));
    let is_python = ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"];
    let packaged = is_python.into_iter().find(|file| has(file));
    let test = if let Some(source) = pytest {
        Some((python_program(tree, "pytest"), source))
    } else if has("tox.ini") {
        Some(("tox".to_owned(), "tox.ini"))
    } else if has("noxfile.py") {
        Some(("nox".to_owned(), "noxfile.py"))
    } else if has("manage.py") {
        Some((python_program(tree, "python3 manage.py test"), "manage.py"))
    } else {
        let tested = packaged.filter(|_| has("tests") || has("test"));
        tested.map(|source| (python_program(tree, "python3 -m unittest"), source))
    };
    if let Some((command, source)) = test {
        all.push(Candidate::new(Tool::Python, Purpose::Test, command, source));
    }
    let ruff = there("ruff.toml").or(there(".ruff.toml")).or(says("pyproject.toml", "[tool.ruff"));
    let flake8 = there(".flake8").or(says("setup.cfg", "[flake8]")).or(says("tox.ini", "[flake8]"));
    let lint = (ruff.map(|source| ("ruff check", source)))
        .or_else(|| flake8.map(|source| ("flake8", source)));
    if let Some((program, source)) = lint {
        let command = python_program(tree, program);
        all.push(Candidate::new(Tool::Python, Purpose::Lint, command, source));
    }
}

fn cmake(tree: &Tree, all: &mut Vec<Candidate>) {
    const FILE: &str = "CMakeLists.txt";
    const BUILD: &str = "cmake -S . -B build && cmake --build build";
    let Some(text) = tree.texts.get(FILE) else { return };
    let text = text.to_ascii_lowercase();
    if text.contains("enable_testing(") || text.contains("include(ctest)") {
        let test = format!("{BUILD} && ctest --test-dir build --output-on-failure");
        all.push(Candidate::new(Tool::CMake, Purpose::Test, test, FILE));
    }
    all.push(Candidate::new(Tool::CMake, Purpose::Build, BUILD, FILE));
}

/// Whether a line of a TOML or INI file begins with this.
fn has_section(text: &str, start: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(start))
}
