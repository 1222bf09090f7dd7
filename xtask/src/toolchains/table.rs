//! The toolchains, each with a project in which something is to be added.

/// How a language is built here.
pub(super) struct Toolchain {
    pub(super) name: &'static str,
    /// What must be on PATH.
    pub(super) programs: &'static [&'static str],
    /// The project as it is before.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// Files beside the project.
    pub(super) beside: &'static [(&'static str, &'static str)],
    /// Commands that are run beside the project first, outside of the cage.
    pub(super) prepare: &'static str,
    /// Commands that make a clone of the project ready for its tests.
    pub(super) before: &'static str,
    /// What the implementer does: adds a dependency, uses it, builds.
    pub(super) work: &'static str,
    /// The project's tests.
    pub(super) test: &'static str,
    /// What their output has if any ran.
    pub(super) tested: &'static str,
    /// The file of the task.
    pub(super) changed: &'static str,
    /// A file, and what it has if the dependency is there.
    pub(super) shows: (&'static str, &'static str),
    /// Which cache of the project must have been used.
    pub(super) cache: &'static str,
    /// Which cache of the user must hold something before.
    pub(super) users: &'static str,
    /// What git ignores.
    pub(super) ignored: &'static [&'static str],
}

const NODE_TEST: &str = "\
const test = require('node:test');
const assert = require('node:assert');
test('one', () => assert.ok(require('is-number')(5)));
";

/// Replaces the test by one that needs what was added.
macro_rules! node_work {
    ($add:literal) => {
        concat!(
            $add,
            "\ncat > one.test.js <<'END'\n\
            const test = require('node:test');\nconst assert = require('node:assert');\n\
            test('one', () => assert.ok(require('is-number')(5) && require('is-odd')(5)));\nEND"
        )
    };
}

const NODE_FILES: &[(&str, &str)] = &[
    (
        "package.json",
        "{\"name\": \"one\", \"version\": \"1.0.0\", \"dependencies\": {\"is-number\": \"^7.0.0\"}}\n",
    ),
    ("one.test.js", NODE_TEST),
];

const PYTHON_TEST: &str = "\
import unittest

class One(unittest.TestCase):
    def test_one(self):
        import six
        self.assertTrue(six.PY3)
";

const PYPROJECT: &str = "\
[project]
name = \"one\"
version = \"0.1.0\"
requires-python = \">=3.9\"
dependencies = [\"six\"]

[tool.hatch.build.targets.wheel]
packages = []
bypass-selection = true
";

const JAVA_TEST: &str = "\
public class OneTest {
    @org.junit.Test
    public void one() {
        org.junit.Assert.assertEquals(2, 1 + 1);
    }
}
";

const POM: &str = "\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId>
  <artifactId>one</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version></dependency>
  </dependencies>
</project>
";

pub(super) const TOOLCHAINS: &[Toolchain] = &[
    Toolchain {
        name: "cargo",
        programs: &["cargo"],
        files: &[
            (
                "Cargo.toml",
                "[package]\nname = \"one\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nryu = \"1\"\n",
            ),
            ("src/lib.rs", "#[test]\nfn one() {\n    ryu::Buffer::new();\n}\n"),
        ],
        beside: &[],
        prepare: "",
        before: "",
        work: "cargo add itoa\n\
            echo '#[test] fn two() { assert_eq!(itoa::Buffer::new().format(7), \"7\"); }' >> src/lib.rs\n\
            cargo build",
        test: "cargo test --lib",
        tested: "2 passed",
        changed: "src/lib.rs",
        shows: ("Cargo.lock", "name = \"itoa\""),
        cache: "cargo/registry/index",
        users: ".cargo/registry/cache",
        ignored: &["target"],
    },
    Toolchain {
        name: "npm",
        programs: &["npm", "node"],
        files: NODE_FILES,
        beside: &[],
        prepare: "",
        before: "npm install",
        work: node_work!("npm install is-odd@3"),
        test: "node --test",
        tested: "pass 1",
        changed: "one.test.js",
        shows: ("node_modules/is-odd/package.json", "\"is-odd\""),
        cache: "npm/_cacache",
        users: ".npm/_cacache",
        ignored: &["node_modules"],
    },
    Toolchain {
        name: "pnpm",
        programs: &["pnpm", "node"],
        files: NODE_FILES,
        beside: &[],
        prepare: "",
        before: "pnpm install",
        work: node_work!("pnpm add is-odd@3"),
        test: "node --test",
        tested: "pass 1",
        changed: "one.test.js",
        shows: ("node_modules/is-odd/package.json", "\"is-odd\""),
        cache: "pnpm/store",
        users: ".local/share/pnpm",
        ignored: &["node_modules"],
    },
    Toolchain {
        name: "yarn",
        programs: &["yarn", "node"],
        files: NODE_FILES,
        beside: &[],
        prepare: "",
        // As root it has its cache in another place than everybody else.
        before: "yarn install --cache-folder \"$HOME/.cache/yarn\"",
        work: node_work!("yarn add is-odd@3"),
        test: "node --test",
        tested: "pass 1",
        changed: "one.test.js",
        shows: ("node_modules/is-odd/package.json", "\"is-odd\""),
        cache: "yarn",
        users: ".cache/yarn",
        ignored: &["node_modules"],
    },
    Toolchain {
        name: "maven",
        programs: &["mvn", "javac"],
        files: &[("pom.xml", POM), ("src/test/java/OneTest.java", JAVA_TEST)],
        beside: &[],
        // Where the packages of Debian have the plugins, they are the registry: Maven Central
        // cannot be reached from everywhere.
        prepare: "mirror=/usr/share/maven-repo\n\
            if [ ! -e home/.m2/settings.xml ] && \
            [ -d $mirror/org/apache/maven/plugins/maven-surefire-plugin ]; then\n\
            mkdir -p home/.m2\n\
            echo \"<settings><mirrors><mirror><id>debian</id><mirrorOf>central</mirrorOf>\
            <url>file://$mirror</url></mirror></mirrors></settings>\" > home/.m2/settings.xml\n\
            fi",
        before: "",
        work: "sed -i 's|  </dependencies>|<dependency><groupId>org.apache.commons</groupId>\
            <artifactId>commons-lang3</artifactId><version>3.12.0</version></dependency>\\n&|' pom.xml\n\
            sed -i 's|assertEquals.*|assertTrue(org.apache.commons.lang3.StringUtils.isBlank(\"\"));|' \
            src/test/java/OneTest.java\n\
            mvn -B -q test-compile",
        test: "mvn -B test",
        tested: "Tests run: 1",
        changed: "src/test/java/OneTest.java",
        shows: ("pom.xml", "commons-lang3"),
        cache: "m2/repository/org/apache/commons/commons-lang3",
        users: ".m2/repository",
        ignored: &["target"],
    },
    Toolchain {
        name: "go",
        programs: &["go", "python3"],
        files: &[
            ("go.mod", "module example.org/one\n\ngo 1.18\n\nrequire example.org/first v1.0.0\n"),
            (
                "one_test.go",
                "package one\n\nimport (\n\t\"testing\"\n\n\t\"example.org/first\"\n)\n\n\
                func TestOne(t *testing.T) {\n\tif first.Name() != \"first\" {\n\t\tt.Fail()\n\t}\n}\n",
            ),
        ],
        // A registry of modules in files: the real one cannot be reached from everywhere.
        beside: &[
            ("made/example.org/first@v1.0.0/go.mod", "module example.org/first\n"),
            (
                "made/example.org/first@v1.0.0/first.go",
                "package first\n\nfunc Name() string { return \"first\" }\n",
            ),
            ("made/example.org/second@v1.0.0/go.mod", "module example.org/second\n"),
            (
                "made/example.org/second@v1.0.0/second.go",
                "package second\n\nfunc Name() string { return \"second\" }\n",
            ),
        ],
        prepare: "for name in first second; do\n\
            at=proxy/example.org/$name/@v\nmkdir -p $at\n\
            echo v1.0.0 > $at/list\n\
            echo '{\"Version\":\"v1.0.0\",\"Time\":\"2026-01-01T00:00:00Z\"}' > $at/v1.0.0.info\n\
            cp made/example.org/$name@v1.0.0/go.mod $at/v1.0.0.mod\n\
            (cd made && find example.org/$name@v1.0.0 -type f | python3 -c '\
            import sys, zipfile; z = zipfile.ZipFile(sys.argv[1], \"w\"); \
            [z.write(line.strip()) for line in sys.stdin]; z.close()' ../$at/v1.0.0.zip)\n\
            done",
        before: "go mod tidy",
        work: "cat > two_test.go <<'END'\npackage one\n\nimport (\n\t\"testing\"\n\n\t\"example.org/second\"\n)\n\n\
            func TestTwo(t *testing.T) {\n\tif second.Name() != \"second\" {\n\t\tt.Fail()\n\t}\n}\nEND\n\
            sed -i 's/TestOne/TestFirst/' one_test.go\n\
            go get example.org/second@v1.0.0\ngo mod tidy\ngo build ./...\ngo vet ./...",
        test: "go test -v ./...",
        tested: "PASS: TestTwo",
        changed: "one_test.go",
        shows: ("go.sum", "example.org/second v1.0.0"),
        cache: "go/pkg/mod/example.org",
        users: "go/pkg/mod/example.org",
        ignored: &[],
    },
    Toolchain {
        name: "venv",
        programs: &["python3"],
        files: &[("requirements.txt", "six\n"), ("test_one.py", PYTHON_TEST)],
        beside: &[],
        prepare: "",
        before: "python3 -m venv .venv\n.venv/bin/pip install --no-binary six -r requirements.txt",
        // From the sources: that also builds in an environment of its own.
        work: "echo 'iniconfig' >> requirements.txt\n\
            python3 -m venv .venv\n\
            .venv/bin/pip install --no-binary iniconfig -r requirements.txt\n\
            sed -i 's/import six/import six, iniconfig, tempfile; tempfile.TemporaryFile()/' test_one.py",
        test: ".venv/bin/python -m unittest -v",
        tested: "Ran 1 test",
        changed: "test_one.py",
        shows: ("requirements.txt", "iniconfig"),
        cache: "pip",
        users: ".cache/pip/wheels",
        ignored: &[".venv", "__pycache__"],
    },
    Toolchain {
        name: "uv",
        programs: &["uv"],
        files: &[("pyproject.toml", PYPROJECT), ("test_one.py", PYTHON_TEST)],
        beside: &[],
        prepare: "",
        before: "uv sync",
        work: "uv add iniconfig\n\
            sed -i 's/import six/import six, iniconfig/' test_one.py\nuv sync",
        test: "uv run python -m unittest -v",
        tested: "Ran 1 test",
        changed: "test_one.py",
        shows: ("uv.lock", "name = \"iniconfig\""),
        cache: "uv",
        users: ".cache/uv",
        ignored: &[".venv", "__pycache__"],
    },
    Toolchain {
        name: "poetry",
        programs: &["poetry"],
        files: &[("pyproject.toml", PYPROJECT), ("test_one.py", PYTHON_TEST)],
        beside: &[],
        prepare: "",
        before: "poetry install --no-root",
        work: "poetry add iniconfig\n\
            sed -i 's/import six/import six, iniconfig/' test_one.py",
        test: "poetry run python -m unittest -v",
        tested: "Ran 1 test",
        changed: "test_one.py",
        shows: ("poetry.lock", "iniconfig"),
        cache: "poetry/virtualenvs",
        users: ".cache/pypoetry",
        ignored: &[".venv", "__pycache__"],
    },
    Toolchain {
        name: "pipenv",
        programs: &["pipenv"],
        files: &[("Pipfile", "[packages]\nsix = \"*\"\n"), ("test_one.py", PYTHON_TEST)],
        beside: &[],
        prepare: "",
        before: "pipenv install",
        work: "pipenv install iniconfig\n\
            sed -i 's/import six/import six, iniconfig/' test_one.py",
        test: "pipenv run python -m unittest -v",
        tested: "Ran 1 test",
        changed: "test_one.py",
        shows: ("Pipfile.lock", "iniconfig"),
        cache: "virtualenvs",
        users: ".local/share/virtualenvs",
        ignored: &[".venv", "__pycache__"],
    },
    Toolchain {
        name: "hatch",
        programs: &["hatch"],
        files: &[("pyproject.toml", PYPROJECT), ("test_one.py", PYTHON_TEST)],
        beside: &[],
        prepare: "",
        before: "hatch env create",
        work: "sed -i 's/\"six\"/\"six\", \"iniconfig\"/' pyproject.toml\n\
            sed -i 's/import six/import six, iniconfig/' test_one.py",
        test: "hatch run python -m unittest -v",
        tested: "Ran 1 test",
        changed: "test_one.py",
        shows: ("pyproject.toml", "iniconfig"),
        cache: "hatch/env",
        users: ".local/share/hatch/env",
        ignored: &[".venv", "__pycache__"],
    },
];
