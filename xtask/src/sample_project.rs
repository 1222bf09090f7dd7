//! A project of any size, for benchmarks and for trying agentd by hand.
//!
//! Documents have exactly the form that agentd itself writes, and are meant to
//! pass `agentd validate --all --strict`. The same numbers give the same bytes.

mod prose;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::Arg;
use lexopt::ValueExt;
use sha2::Digest;
use sha2::Sha256;

use self::prose::Requirement;
use self::prose::Subject;
use crate::Result;

/// How large a project to write.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) changes: usize,
    pub(crate) specs: usize,
}

const REQUIREMENTS_PER_CHANGE: usize = 3;
const REQUIREMENTS_PER_SPEC: usize = 8;

/// `cargo xtask sample-project <dir> [--changes N] [--specs N]`.
pub(crate) fn main(mut args: lexopt::Parser) -> Result<ExitCode> {
    let mut directory: Option<PathBuf> = None;
    let mut size = Size { changes: 10, specs: 10 };
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("changes") => size.changes = args.value()?.parse()?,
            Arg::Long("specs") => size.specs = args.value()?.parse()?,
            Arg::Value(value) if directory.is_none() => directory = Some(value.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    let directory = directory.ok_or_else(|| lexopt::Error::from("missing argument <dir>"))?;
    if directory.join("agentd").exists() {
        return Err(format!("{} already holds a project", directory.display()).into());
    }
    write(&directory, size)?;
    println!("{}: {} changes, {} specs", directory.display(), size.changes, size.specs);
    Ok(ExitCode::SUCCESS)
}

/// Writes a project below `root`, which is made if it is missing.
pub(crate) fn write(root: &Path, size: Size) -> Result<()> {
    let agentd = root.join("agentd");
    for directory in ["specs", "changes", "archive"] {
        fs::create_dir_all(agentd.join(directory))?;
    }
    fs::write(agentd.join("config.toml"), prose::CONFIG)?;
    fs::write(agentd.join("project.md"), prose::PROJECT)?;
    for number in 0..size.specs {
        let spec = Spec::main(number);
        fs::write(agentd.join("specs").join(format!("{}.md", spec.id)), spec.render())?;
    }
    for number in 0..size.changes {
        let change = Change::new(number);
        let directory = agentd.join("changes").join(&change.id);
        fs::create_dir_all(directory.join("specs"))?;
        fs::write(directory.join("STATE.yaml"), change.state())?;
        fs::write(directory.join("proposal.md"), change.proposal())?;
        fs::write(directory.join("tasks.md"), change.tasks())?;
        let spec = directory.join("specs").join(format!("{}.md", change.spec.id));
        fs::write(spec, change.spec.render())?;
    }
    Ok(())
}

/// The ID and the text of a main spec.
pub(crate) fn spec(number: usize) -> (String, String) {
    let spec = Spec::main(number);
    let text = spec.render();
    (spec.id, text)
}

/// A date in the first half of 2026, for the frontmatter.
fn date(number: usize) -> String {
    format!("2026-{:02}-{:02}", 1 + number / 28 % 6, 1 + number % 28)
}

struct Spec {
    id: String,
    title: String,
    subject: &'static Subject,
    requirements: Vec<Requirement>,
    date: String,
}

impl Spec {
    /// One of the project's living specs.
    fn main(number: usize) -> Self {
        let subject = prose::subject(number);
        Self {
            id: format!("{}-store-{:04}", subject.one, number + 1),
            title: format!("Store of {}, part {}", subject.many, number + 1),
            subject,
            requirements: prose::requirements(subject, number, REQUIREMENTS_PER_SPEC),
            date: date(number),
        }
    }

    /// The spec that a change adds. Its id is no main spec's, so that it needs
    /// no copy in `base/`.
    fn of_change(number: usize) -> Self {
        let subject = prose::subject(number);
        Self {
            id: format!("{}-rules-{:04}", subject.one, number + 1),
            title: format!("Rules for {}, part {}", subject.many, number + 1),
            requirements: prose::requirements(subject, number, REQUIREMENTS_PER_CHANGE),
            subject,
            date: date(number),
        }
    }

    fn render(&self) -> String {
        let Self { id, title, subject, date, .. } = self;
        let mut out = format!(
            "---\nid: {id}\ntype: spec\ntitle: {title}\nversion: 1\n\
             created_at: {date}T09:30:00Z\nupdated_at: {date}T09:45:00Z\n---\n\n\
             # Specification: {title}\n\n## Overview\n\n{}\n\n## Requirements\n",
            prose::overview(subject)
        );
        for (index, requirement) in self.requirements.iter().enumerate() {
            let Requirement { title, priority, text, .. } = requirement;
            let number = index + 1;
            let _ = write!(out, "\n### R{number}: {title}\n\n**Priority:** {priority}\n\n{text}\n");
        }
        out.push_str("\n## Acceptance Criteria\n");
        for scenario in self.requirements.iter().flat_map(|requirement| &requirement.scenarios) {
            let _ = write!(out, "\n### Scenario: {}\n\n", scenario.name);
            for (keyword, text) in &scenario.steps {
                let _ = writeln!(out, "- **{keyword}** {text}");
            }
        }
        out
    }
}

struct Change {
    id: String,
    spec: Spec,
    number: usize,
}

impl Change {
    fn new(number: usize) -> Self {
        let spec = Spec::of_change(number);
        Self { id: format!("add-{}", spec.id), spec, number }
    }

    fn summary(&self) -> String {
        let subject = self.spec.subject;
        format!("Add {REQUIREMENTS_PER_CHANGE} rules for {}", subject.many)
    }

    fn proposal(&self) -> String {
        let Self { id, spec, .. } = self;
        let (summary, date) = (self.summary(), &spec.date);
        let mut body = format!(
            "\n# Change: {id}\n\n## Summary\n\n{summary}.\n\n## Why\n\n{}\n\n## What Changes\n\n",
            prose::why(spec.subject)
        );
        for requirement in &spec.requirements {
            let _ = writeln!(body, "- {}", requirement.title);
        }
        let files = TASKS.len();
        let _ = write!(
            body,
            "\n## Impact\n\n- Scope: minor\n- Affected specs: `{}`\n- Affected files: {files}\n\
             - Affected code: `src/{}/`\n- Breaking changes: none\n",
            spec.id, spec.subject.many
        );
        let checksum = hex::encode(Sha256::digest(body.as_bytes()));
        format!(
            "---\nid: {id}\ntype: proposal\nversion: 1\n\
             created_at: {date}T09:30:00Z\nupdated_at: {date}T09:45:00Z\nsummary: {summary}\n\
             impact:\n  scope: minor\n  affected_files: {files}\n  new_files: {files}\n\
             affected_specs:\n  - id: {}\n    depends: []\nchecksum: sha256:{checksum}\n---\n{body}",
            spec.id
        )
    }

    fn tasks(&self) -> String {
        let Self { id, spec, .. } = self;
        let mut out = format!(
            "---\nchange_id: {id}\ntype: tasks\nversion: 1\n\
             created_at: {date}T09:30:00Z\nupdated_at: {date}T09:45:00Z\n\
             summary:\n  total: {}\n  completed: 0\n---\n\n# Tasks: {id}\n",
            TASKS.len(),
            date = spec.date,
        );
        for (index, task) in TASKS.iter().enumerate() {
            let layer = index + 1;
            let requirement = &spec.requirements[task.requirement - 1];
            let depends = match index {
                0 => String::new(),
                _ => format!("\"{index}.1\""),
            };
            let (many, number) = (spec.subject.many, self.number + 1);
            let _ = write!(
                out,
                "\n## {layer}. {} Layer\n\n### Task {layer}.1: {}\n\n```yaml\nid: \"{layer}.1\"\n\
                 action: CREATE\nfile: {}\nspec_ref: \"{}:R{}\"\ndepends_on: [{depends}]\n\
                 status: pending\n```\n\n{} \"{}\".\n",
                task.layer,
                task.title.replace("{many}", many),
                task.file.replace("{many}", many).replace("{number}", &format!("{number:04}")),
                spec.id,
                task.requirement,
                task.description,
                requirement.title,
            );
        }
        out
    }

    fn state(&self) -> String {
        let Self { id, spec, number } = self;
        let date = &spec.date;
        let mut out = format!(
            "change_id: {id}\nphase: proposed\ncreated_at: {date}T09:30:00Z\n\
             updated_at: {date}T09:45:00Z\nsession_id: \"{}\"\ncomplexity: medium\n\
             last_action: proposal\niteration: 0\nllm_calls:\n",
            session(*number)
        );
        let steps = ["proposal-gen".into(), format!("spec-gen-{}", spec.id), "tasks-gen".into()];
        let (mut all_in, mut all_out, mut all_cost) = (0, 0, 0);
        for (call, step) in steps.iter().enumerate() {
            let tokens_in = 12_000 + 500 * call + number % 997;
            let tokens_out = 900 + 70 * call + number % 89;
            let tokens_cached = tokens_in / 4;
            // In hundred-millionths of a dollar: 0.30, 0.03 and 2.50 per million.
            let cost = (tokens_in - tokens_cached) * 30 + tokens_cached * 3 + tokens_out * 250;
            let _ = write!(
                out,
                "  - step: {step}\n    model: gemini-3-flash-preview\n    tokens_in: {tokens_in}\n\
                 \x20   tokens_out: {tokens_out}\n    tokens_cached: {tokens_cached}\n\
                 \x20   duration_ms: {}\n    cost: {}\n    timestamp: {date}T09:3{}:00Z\n\
                 \x20   session_id: \"{}\"\n",
                4_000 + 250 * call + number % 71,
                dollars(cost),
                call + 1,
                session(number + call),
            );
            all_in += tokens_in;
            all_out += tokens_out;
            all_cost += cost;
        }
        let _ = write!(
            out,
            "total_cost: {}\ntotal_tokens_in: {all_in}\ntotal_tokens_out: {all_out}\n",
            dollars(all_cost)
        );
        out
    }
}

/// Hundred-millionths of a dollar as a decimal number.
fn dollars(amount: usize) -> String {
    let digits = format!("{}.{:08}", amount / 100_000_000, amount % 100_000_000);
    digits.trim_end_matches('0').to_owned()
}

/// Something of the form of a session id.
fn session(number: usize) -> String {
    format!("5b0c2a61-7d3e-4f19-8a44-{number:012x}")
}

/// A task of every change: one per layer, each after the one before.
struct Task {
    layer: &'static str,
    title: &'static str,
    file: &'static str,
    requirement: usize,
    description: &'static str,
}

const TASKS: [Task; 4] = [
    Task {
        layer: "Data",
        title: "Add the columns for {many}",
        file: "src/{many}/schema_{number}.rs",
        requirement: 1,
        description: "Add the columns and the migration that the service needs for",
    },
    Task {
        layer: "Logic",
        title: "Decide on requests for {many}",
        file: "src/{many}/rules_{number}.rs",
        requirement: 2,
        description: "Write the pure function, and its table of cases, for",
    },
    Task {
        layer: "Integration",
        title: "Wire the routes for {many}",
        file: "src/{many}/routes_{number}.rs",
        requirement: 3,
        description: "Call the rule from the route, and map its refusals to a status, for",
    },
    Task {
        layer: "Testing",
        title: "Test the routes for {many}",
        file: "tests/{many}_{number}.rs",
        requirement: 1,
        description: "Send the requests of both scenarios to a running service, for",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_size_gives_the_same_bytes_and_the_promised_counts() {
        let read = |root: &Path, path: &str| fs::read_to_string(root.join(path)).unwrap();
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let size = Size { changes: 3, specs: 2 };
        write(one.path(), size).unwrap();
        write(two.path(), size).unwrap();
        let change = "agentd/changes/add-webhook-rules-0002";
        for (path, requirements, scenarios) in [
            ("agentd/specs/invoice-store-0001.md".to_owned(), 8, 16),
            (format!("{change}/specs/webhook-rules-0002.md"), 3, 6),
        ] {
            let text = read(one.path(), &path);
            assert_eq!(text, read(two.path(), &path));
            assert_eq!(text.matches("\n### R").count(), requirements, "{path}");
            assert_eq!(text.matches("\n### Scenario: ").count(), scenarios, "{path}");
            assert_eq!(text.matches("- **THEN** ").count(), scenarios, "{path}");
        }
        let tasks = read(one.path(), &format!("{change}/tasks.md"));
        for requirement in 1..=REQUIREMENTS_PER_CHANGE {
            assert!(tasks.contains(&format!("\"webhook-rules-0002:R{requirement}\"")));
        }
        assert!(read(one.path(), &format!("{change}/STATE.yaml")).starts_with("change_id: add-"));
        assert_eq!(fs::read_dir(one.path().join("agentd/changes")).unwrap().count(), 3);
    }

    #[test]
    fn ids_are_ids_and_names_do_not_repeat() {
        for number in [0, 1, 19, 999, 99_999] {
            for spec in [Spec::main(number), Spec::of_change(number)] {
                let id = format!("add-{}", spec.id);
                assert!(id.len() <= 64, "{id}");
                assert!(
                    id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
                );
                let scenarios =
                    spec.requirements.iter().flat_map(|requirement| &requirement.scenarios);
                let mut names: Vec<_> = scenarios.map(|scenario| &scenario.name).collect();
                let count = names.len();
                names.sort();
                names.dedup();
                assert_eq!(names.len(), count, "{names:?}");
            }
        }
    }

    #[test]
    fn nothing_vague_is_said_and_everything_is_measured() {
        let vague = [
            "adequate",
            "appropriate",
            "best",
            "easy",
            "efficient",
            "etc",
            "fast",
            "flexible",
            "gracefully",
            "handle",
            "intuitive",
            "many",
            "minimal",
            "normal",
            "optimal",
            "properly",
            "quick",
            "reasonable",
            "reliable",
            "robust",
            "scalable",
            "seamless",
            "secure",
            "several",
            "should",
            "simple",
            "slow",
            "some",
            "soon",
            "sufficient",
            "support",
            "user-friendly",
            "usually",
            "various",
        ];
        for number in 0..40 {
            let change = Change::new(number);
            let documents = [change.proposal(), change.spec.render(), Spec::main(number).render()];
            for text in documents {
                assert!(!text.contains(['{', '}']), "an unfilled place in {text}");
                let words = text.split(|c: char| !c.is_alphabetic() && c != '-');
                for word in words.map(str::to_lowercase) {
                    assert!(!vague.contains(&word.as_str()), "{word} in {text}");
                }
            }
            for requirement in change.spec.requirements {
                assert!(requirement.text.contains("MUST"), "{}", requirement.text);
                assert!(
                    requirement.text.contains(|c: char| c.is_ascii_digit()),
                    "{}",
                    requirement.text
                );
            }
        }
    }
}
