//! The list of parsers.
//!
//! A new parser is one line here, and some valid inputs in `corpus/<name>/`. A
//! target should also assert what the parser promises, where that is cheap:
//! spans inside of the text, `parse(render(x)) == x`.

use std::fmt::Debug;
use std::str::FromStr;

use agentd_builtin::draft;
use agentd_builtin::draft::Brief;
use agentd_builtin::draft::Survey;
use agentd_core::agent::{AgentKind, Role};
use agentd_core::carried::{Carried, SlimRun};
use agentd_core::check;
use agentd_core::check::Extras;
use agentd_core::config::Config;
use agentd_core::diagnostic::Diagnostic;
use agentd_core::diagnostic::Parsed;
use agentd_core::diff::DiffLine;
use agentd_core::diff::markdown;
use agentd_core::diff::patches;
use agentd_core::document::answers;
use agentd_core::document::clarifications;
use agentd_core::document::comments;
use agentd_core::document::proposal;
use agentd_core::document::questions;
use agentd_core::document::review;
use agentd_core::document::rewrite;
use agentd_core::document::spec;
use agentd_core::document::tasks;
use agentd_core::document::tasks::Status;
use agentd_core::document::tasks_edit;
use agentd_core::frontmatter;
use agentd_core::ids;
use agentd_core::merge::Conflict;
use agentd_core::merge::ConflictKind;
use agentd_core::merge::Sides;
use agentd_core::merge::collisions;
use agentd_core::merge::spec as merge_spec;
use agentd_core::outcome::Exit;
use agentd_core::outline::Outline;
use agentd_core::provider::{Acp, AgentRequest, Connection, FoundInProject, Session, Surroundings};
use agentd_core::span::Span;
use agentd_core::span::line_column;
use agentd_core::stamp::Stamp;
use agentd_core::state;
use agentd_core::step_name::StepName;
use agentd_core::toolchain;
use agentd_rank::{File, Kind};

use crate::Target;

/// Everything that reads text from outside.
pub const TARGETS: &[Target] = &[
    Target { name: "ids", run: |bytes| with_text(bytes, ids) },
    Target { name: "diff", run: |bytes| with_text(bytes, diff) },
    Target { name: "outline", run: |bytes| with_text(bytes, outline) },
    Target { name: "frontmatter", run: |bytes| with_text(bytes, frontmatter) },
    Target { name: "proposal", run: |bytes| round_trip(bytes, proposal::parse, proposal::render) },
    Target { name: "spec", run: |bytes| round_trip(bytes, spec::parse, spec::render) },
    Target { name: "tasks", run: |bytes| round_trip(bytes, tasks_by_layer, tasks::render) },
    Target {
        name: "clarifications",
        run: |bytes| round_trip(bytes, clarifications::parse, clarifications::render),
    },
    Target { name: "review", run: |bytes| round_trip(bytes, review::parse, review::render) },
    Target { name: "questions", run: |bytes| with_text(bytes, questions) },
    Target { name: "answers", run: |bytes| with_text(bytes, answers) },
    Target { name: "comments", run: |bytes| round_trip(bytes, comments::parse, comments::render) },
    Target { name: "state", run: |bytes| with_text(bytes, state) },
    Target { name: "config", run: |bytes| with_text(bytes, config) },
    Target { name: "tick", run: |bytes| with_text(bytes, tick) },
    Target { name: "draft", run: |bytes| with_text(bytes, draft) },
    Target { name: "rewrite", run: |bytes| with_text(bytes, rewrite) },
    Target { name: "merge", run: |bytes| with_text(bytes, merge) },
    Target { name: "carried", run: |bytes| with_text(bytes, carried) },
    Target { name: "acp", run: |bytes| with_text(bytes, acp) },
    Target { name: "toolchain", run: |bytes| with_text(bytes, toolchain) },
];

/// Hands bytes to a parser of text. Those that are no UTF-8 are read as agentd
/// reads a file: with replacement characters.
fn with_text(bytes: &[u8], parse: impl FnOnce(&str)) {
    parse(&String::from_utf8_lossy(bytes));
}

/// Whatever a person asks for, a plan has a requirement, and leaves nothing open in words.
fn draft(text: &str) {
    let Ok(change) = ids::ChangeId::new("add-login") else { return };
    let path = "src/a.rs".to_owned();
    let file = File { path, size: text.len() as u64, mtime: 0, kind: Kind::Source };
    let brief = Brief {
        change,
        description: text.to_owned(),
        answers: Vec::new(),
        survey: Survey::new([(file, text.to_owned())]),
        main_specs: Vec::new(),
        extras: Extras::default(),
    };
    let spec = draft::spec(&brief, &brief.spec_id());
    let requirements = spec["requirements"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!((1..=200).contains(&requirements.len()));
    for requirement in requirements {
        let words = requirement["description"].as_str().unwrap_or_default();
        assert!(check::open_points(words).is_empty(), "{words}");
    }
    let proposal = draft::proposal(&brief);
    assert!(proposal["why"].as_str().is_some_and(|why| why.len() <= 20_000));
}

/// What an agent says over ACP: every line to write is whole, and what the agent says after the end of
/// its turn changes nothing.
fn acp(text: &str) {
    let Ok(change) = ids::ChangeId::new("add-login") else { return };
    let request = AgentRequest {
        role: Role::Planner,
        change,
        step: StepName::ProposalGen,
        prompt: "agentd proposal-gen add-login".to_owned(),
        project_root: "/work/p".into(),
        private_dir: "/work/private".into(),
        program: "agent".to_owned(),
        extra_args: Vec::new(),
        extra_env: Vec::new(),
        extra_state: Vec::new(),
        env_names: Vec::new(),
        model: None,
        effort: None,
        session: Session::Fresh,
        mcp: None,
        surroundings: Surroundings::default(),
        found: FoundInProject::default(),
    };
    for agent in [AgentKind::Codex, AgentKind::Gemini] {
        let mut dialogue = Acp::new(agent).dialogue(&request, Connection::new().0);
        for line in text.lines() {
            dialogue.line(line, &mut |_| {});
            if dialogue.wants_silence().is_some() {
                dialogue.silence(&mut |_| {});
            }
            let said = dialogue.take_output();
            assert!(said.is_empty() || said.ends_with('\n'));
        }
        let was_over = dialogue.is_over();
        let outcome = dialogue.finish(&Exit { code: Some(0), ..Exit::default() });
        assert!(was_over || outcome.failure.is_some(), "a turn that is not over has not succeeded");
    }
}

/// The message of a snapshot, and the records of calls in it: what was read is written the same way,
/// and what is carried once is carried again as it is.
fn carried(text: &str) {
    let Ok(change) = ids::ChangeId::new("add-login") else { return };
    if let Some(carried) = Carried::of_message(text) {
        let message = carried.message(&change);
        assert_eq!(Carried::of_message(&message), Some(carried));
    }
    let (mut first, mut second) = (SlimRun::default(), SlimRun::default());
    for line in text.lines() {
        if let Some(slim) = first.line(line) {
            assert_eq!(second.line(&slim).as_ref(), Some(&slim));
        }
    }
}

/// Whatever manifests and CI files say, a command holds nothing of them that a shell would obey.
fn toolchain(text: &str) {
    let mut tree = toolchain::Tree::default();
    for name in toolchain::TEXTS {
        tree.names.insert(name.to_owned());
        tree.texts.insert(name.to_owned(), text.to_owned());
    }
    tree.ci.insert(".gitlab-ci.yml".to_owned(), text.to_owned());
    for (_, found) in toolchain::detect(&tree).by_purpose() {
        let plain = |c: char| c.is_ascii_alphanumeric() || " _-:./&".contains(c);
        assert!(found.command.chars().all(plain), "{}", found.command);
    }
}

fn ids(text: &str) {
    if let Ok(id) = ids::ChangeId::new(text) {
        assert_eq!(id.as_str(), text);
        assert!(!text.contains(['/', '\\', '.', '\0']), "an id is a single path component");
    }
    if let Ok(id) = ids::RequirementId::from_str(text) {
        assert_eq!(ids::RequirementId::from_str(&id.to_string()), Ok(id));
    }
}

/// The questions that the corpus has answers to.
const ASKED: &str = include_str!("../corpus/questions/written.json");

fn questions(text: &str) {
    let Ok(change) = ids::ChangeId::new("add-login") else { return };
    if let Ok(read) = questions::parse(text, &change) {
        assert_eq!(questions::parse(&questions::render(&read), &change), Ok(read));
    }
}

fn answers(text: &str) {
    let Ok(change) = ids::ChangeId::new("add-login") else { return };
    let asked = questions::parse(ASKED, &change).ok();
    assert!(asked.is_some(), "the corpus can be read");
    for proposed in [asked.as_ref(), None] {
        match answers::parse(text, proposed) {
            Ok(answers) => {
                assert!((1..=clarifications::MAX_QUESTIONS).contains(&answers.len()));
                for answered in answers {
                    assert!(!answered.topic.is_empty() && !answered.answer.is_empty());
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

fn fits(text: &str, span: Span) {
    assert!(span.start <= span.end && text.get(span.range()).is_some(), "{span:?}");
}

fn diagnostics_fit(text: &str, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        fits(text, diagnostic.span);
        assert!(!diagnostic.message.is_empty());
    }
    if let Some(first) = diagnostics.first() {
        let (line, column) = line_column(text, first.span.start);
        assert!(line >= 1 && column >= 1 && line <= text.split('\n').count());
    }
}

/// The halves of the text are compared, and the text is read as what git prints.
fn diff(text: &str) {
    let half = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (old, new) = text.split_at(half);
    let is_at = |text: &str, number: Option<usize>, line: &DiffLine| {
        number.is_none_or(|number| {
            let wanted = text.lines().nth(number - 1).unwrap_or_default();
            wanted.trim_end_matches('\r') == line.text()
        })
    };
    for line in markdown(old, new).hunks.iter().flat_map(|hunk| &hunk.lines) {
        assert!(is_at(old, line.old, line) && is_at(new, line.new, line), "{line:?}");
    }
    let patches = patches(text);
    let lines: usize = patches.iter().map(|file| file.diff.added + file.diff.removed).sum();
    assert!(lines <= text.lines().count());
}

fn outline(text: &str) {
    let outline = Outline::scan(text);
    outline.headings.iter().for_each(|heading| {
        fits(text, heading.span);
        fits(text, heading.title);
    });
    for fence in &outline.fences {
        fits(text, fence.span);
        fits(text, fence.info);
        fits(text, fence.content);
    }
    outline.comments.iter().for_each(|comment| fits(text, *comment));
    for level in 1..=6 {
        for section in outline.sections(text, level, outline.body(text)) {
            fits(text, section.body);
            fits(text, section.span);
        }
    }
}

/// A patch changes its value and nothing behind the frontmatter.
fn frontmatter(text: &str) {
    let body = &text[Outline::scan(text).body_start..];
    for path in ["id", "version", "summary.completed"] {
        if let Ok(patched) = frontmatter::set(text, path, "7") {
            assert!(patched.ends_with(body));
            let again = frontmatter::set(&patched, path, "7");
            assert_eq!(again.as_ref(), Ok(&patched), "a patch finds what it wrote");
        }
    }
}

/// Tasks are written layer by layer; one that stands in none is not written.
fn tasks_by_layer(text: &str) -> Parsed<tasks::Tasks> {
    let mut read = tasks::parse(text);
    read.value.tasks.retain(|task| task.layer.is_some());
    read.value.tasks.sort_by_key(|task| task.layer);
    read
}

/// What was read is written and read as the same.
fn round_trip<T: PartialEq + Debug>(
    bytes: &[u8],
    parse: fn(&str) -> Parsed<T>,
    render: fn(&T) -> String,
) {
    with_text(bytes, |text| {
        let read = parse(text);
        diagnostics_fit(text, &read.diagnostics);
        let written = render(&read.value);
        let again = parse(&written);
        assert_eq!(again.value, read.value, "{written}");
    });
}

fn change() -> Option<ids::ChangeId> {
    ids::ChangeId::new("add-oauth").ok()
}

fn state(text: &str) {
    let Some(id) = change() else { return };
    match state::parse(text, &id) {
        Ok(state) => assert_eq!(state::parse(&state::render(&state), &id), Ok(state)),
        Err(error) => fits(text, error.span()),
    }
}

fn config(text: &str) {
    if let Err(error) = Config::parse(text) {
        assert!(error.line >= 1 && error.line <= text.split('\n').count());
        assert!(error.column >= 1 && !error.message.is_empty());
    }
}

fn now() -> Option<Stamp> {
    "2026-01-02T03:04:05Z".parse().ok()
}

/// A tick changes the status of one task and nothing else that is read.
fn tick(text: &str) {
    let (before, Some(now)) = (tasks::parse(text).value, now()) else { return };
    for task in before.tasks.iter().take(3) {
        for status in [Status::Done, Status::Pending] {
            let Ok(ticked) = tasks_edit::set_status(text, task.id, status, now) else { continue };
            let mut expected = before.tasks.clone();
            for other in expected.iter_mut().filter(|other| other.id == task.id) {
                other.status = status;
            }
            assert_eq!(tasks::parse(&ticked).value.tasks, expected, "{ticked}");
        }
    }
}

const PROPOSAL: &str = include_str!("../corpus/proposal/written.md");
const SPEC: &str = include_str!("../corpus/spec/written.md");

/// What is written over a text is read back, and reviews survive.
fn rewrite(text: &str) {
    let new = proposal::Proposal { reviews: Vec::new(), ..proposal::parse(PROPOSAL).value };
    let written = rewrite::proposal(text, &new);
    let read = proposal::parse(&written).value;
    assert_eq!(read.reviews, proposal::parse(text).value.reviews, "{written}");
    assert_eq!(
        (&read.summary, &read.why, &read.what_changes, &read.impact),
        (&new.summary, &new.why, &new.what_changes, &new.impact),
        "{written}"
    );
    let new = spec::parse(SPEC).value;
    let written = rewrite::spec(text, &new);
    let read = spec::parse(&written).value;
    assert_eq!(
        (&read.overview, &read.requirements, &read.scenarios),
        (&new.overview, &new.requirements, &new.scenarios),
        "{written}"
    );
}

/// Three texts, between lines of `=====`: base, main, change. A side that has changed
/// nothing leaves the other as it is, and what was merged stays merged.
fn merge(text: &str) {
    let mut texts = text.split("\n=====\n");
    let mut next = || texts.next().unwrap_or_default();
    let (base, main, change) = (next(), next(), next());
    let nobody = |_: &Conflict| false;
    for base in [None, Some(""), Some(base)] {
        let sides = Sides { base, main: Some(main), change };
        merge_spec(&sides, &|_| true);
        merge_spec(&sides, &nobody);
        merge_spec(&Sides { main: None, ..sides }, &nobody);
        collisions(&sides);
    }
    // Texts in which a piece stands twice, or a block is never closed, are not merged.
    let broken = |conflict: &Conflict| {
        matches!(conflict.kind, ConflictKind::Ambiguous | ConflictKind::Misread)
    };
    let front = spec::parse(change).value;
    if front.removes.is_empty() && front.renames.is_empty() {
        let merged = merge_spec(&Sides { base: Some(change), main: Some(main), change }, &nobody);
        assert!(merged.conflicts.iter().all(broken), "{:?}", merged.conflicts);
        assert_eq!(merged.text, main, "the change has changed nothing");
    }
    let merged = merge_spec(&Sides { base: Some(main), main: Some(main), change }, &nobody);
    assert!(merged.conflicts.iter().all(broken), "{:?}", merged.conflicts);
    if merged.conflicts.is_empty() {
        let again =
            merge_spec(&Sides { base: Some(main), main: Some(&merged.text), change }, &nobody);
        assert_eq!(again.text, merged.text, "what was merged stays merged");
    }
}
