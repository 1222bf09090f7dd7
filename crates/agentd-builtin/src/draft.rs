//! A plan by rule: what the built-in agent writes, from the description, the
//! clarifications and what the project's files define. No model, and the documents
//! say so.
//!
//! The results are the arguments of agentd's own tools, so that they go the way of
//! every other agent's documents.

mod figures;
mod points;
mod reading;
mod spec;
mod survey;
mod tasks;
mod wording;
mod words;

use serde_json::{Value, json};

use agentd_core::check::Extras;
use agentd_core::document::clarifications::Answered;
use agentd_core::document::spec::Spec;
use agentd_core::ids::{ChangeId, RequirementId, SpecId};
use agentd_core::text::{Line, head};

pub(crate) use spec::spec_with_headings;
pub use spec::{arguments as spec_arguments, fixed as fixed_spec, spec};
pub use survey::Survey;
pub(crate) use survey::{SourceFile, key_words};
pub use tasks::tasks;
pub(crate) use tasks::tasks_for_uncovered;

use points::{plain, points};
use wording::{Worded, worded};
use words::act;

/// What every drafted document says of itself.
pub(crate) const DRAFTED: &str =
    "Drafted without a model by agentd's built-in agent, from the description and by rule.";

/// How much of a description is quoted in a proposal, in bytes.
const QUOTED: usize = 12_000;
/// How many files a document names.
const NAMED_FILES: usize = 8;

/// What a plan is drafted from.
#[derive(Debug, Clone)]
pub struct Brief {
    /// The change.
    pub change: ChangeId,
    /// What the person asked for.
    pub description: String,
    /// What was asked back, and answered.
    pub answers: Vec<Answered>,
    /// What the project's files define.
    pub survey: Survey,
    /// The main specs, with their highest requirement.
    pub main_specs: Vec<(SpecId, Option<RequirementId>)>,
    /// What the project asks of a spec beyond the built-in rules.
    pub extras: Extras,
}

impl Brief {
    /// The single things that the description asks for.
    pub fn points(&self) -> Vec<String> {
        points(&self.description)
    }

    /// The one spec that the change is about: a main spec whose name is in the id of the
    /// change, or a new one that is named after it.
    pub fn spec_id(&self) -> SpecId {
        let words: Vec<&str> = self.change.as_str().split('-').collect();
        let named = |id: &SpecId| id.as_str().split('-').all(|part| words.contains(&part));
        let known = self.main_specs.iter().map(|(id, _)| id).filter(|id| named(id));
        if let Some(id) = known.max_by_key(|id| id.as_str().len()) {
            return id.clone();
        }
        let noun = words
            .iter()
            .skip_while(|word| act(word).is_some())
            .copied()
            .collect::<Vec<_>>()
            .join("-");
        // `fix-it` is about nothing that could be named.
        let noun =
            if matches!(noun.as_str(), "it" | "this" | "that" | "them") { "" } else { &noun };
        SpecId::new(noun)
            .or_else(|_| SpecId::new(self.change.as_str()))
            .unwrap_or_else(|_| fallback_spec())
    }

    /// The number of the first requirement that is free.
    fn first_requirement(&self, spec: &SpecId) -> u32 {
        let known = self.main_specs.iter().find(|(id, _)| id == spec).and_then(|(_, last)| *last);
        known.map_or(1, |last| last.number().saturating_add(1))
    }

    /// The files that the description is about, best first.
    fn files(&self) -> Vec<&SourceFile> {
        let wanted = format!("{}\n{}", self.description, self.change);
        self.survey.about(&wanted).into_iter().take(NAMED_FILES).collect()
    }
}

#[expect(clippy::expect_used, reason = "a literal that is an id")]
fn fallback_spec() -> SpecId {
    SpecId::new("change").expect("an id")
}

/// The arguments of `create_proposal`.
pub fn proposal(brief: &Brief) -> Value {
    let points = brief.points();
    let files = brief.files();
    let mut why = String::from("The description asks for this:\n\n");
    for line in head(&brief.description, QUOTED).lines() {
        why.push_str("> ");
        why.push_str(&plain(line));
        why.push('\n');
    }
    if brief.description.len() > QUOTED {
        why.push_str("\nThe whole of it stands in STATE.yaml.\n");
    }
    if !brief.answers.is_empty() {
        why.push_str("\nWhat was asked and answered, as context for everyone who works on it:\n\n");
    }
    for answer in &brief.answers {
        let (question, said) = (plain(answer.question.as_str()), plain(answer.answer.as_str()));
        why.push_str(&format!("- Asked \"{question}\", the answer was: {said}\n"));
    }
    let open = open_questions(&brief.description, &brief.answers);
    if !open.is_empty() {
        why.push_str("\nOpen questions, which a person has to answer in the requirements:\n\n");
        why.extend(open.iter().map(|question| format!("- {}\n", plain(question))));
    }
    if files.is_empty() {
        why.push_str("\nNo file of the project has a name from the description.\n");
    } else {
        why.push_str("\nFiles that have to do with it, by their names and what they define:\n\n");
        for file in &files {
            let names: Vec<String> =
                file.names.iter().take(5).map(|name| format!("`{name}`")).collect();
            let defines = if names.is_empty() {
                String::new()
            } else {
                format!(" defines {}", names.join(", "))
            };
            why.push_str(&format!("- `{}`{defines}\n", file.path));
        }
    }
    why.push_str(&format!(
        "\n{DRAFTED} It repeats what was said and knows nothing more: look at every requirement, or let \
         an agent with a model plan (`[roles] planner` in agentd/config.toml)."
    ));
    let summary = points.first().map_or("", String::as_str);
    let summary = match points.len() {
        0 | 1 => capital(summary),
        n => format!("{} (and {} more)", capital(summary), n - 1),
    };
    let changes: Vec<String> = points.iter().map(|point| capital(point)).collect();
    let new_files = usize::from(files.is_empty());
    json!({
        "change_id": brief.change,
        "summary": summary,
        "why": head(&why, 19_000),
        "what_changes": changes,
        "impact": {
            "scope": scope(&brief.description),
            "affected_specs": [brief.spec_id()],
            "affected_files": files.len() + new_files,
            "new_files": new_files,
            "affected_code": files.iter().map(|file| file.path.chars().take(200).collect::<String>()).collect::<Vec<_>>(),
        },
    })
}

/// By the words of the description: what breaks is major, what fixes is a patch.
fn scope(description: &str) -> &'static str {
    let lower = description.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    let first = words.next().unwrap_or_default();
    if lower.contains("breaking") || words.any(|word| matches!(word, "drop" | "remove" | "rename"))
    {
        "major"
    } else if matches!(first, "fix" | "repair" | "correct") {
        "patch"
    } else {
        "minor"
    }
}

/// With a capital letter in front, unless that would make a mark of it: `tODO`.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().chain(chars).collect());
    let capital: String = first.unwrap_or_default();
    if agentd_core::check::open_points(&capital).is_empty() { capital } else { text.to_owned() }
}

/// At most so many characters, at a word.
fn short(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut: String = text.chars().take(most - 1).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(words, _)| words);
    format!("{}…", if whole.is_empty() { &cut } else { whole })
}

/// The questions that a plan of this description leaves open: what no rule can word, and what is marked
/// as open. An answer is quoted, since only a person can say how it changes a requirement.
pub(crate) fn open_questions(description: &str, answers: &[Answered]) -> Vec<String> {
    let marks = agentd_core::check::open_points(description);
    let marks = marks.iter().map(|mark| format!("`{mark}` in the description is left open"));
    let unworded = points(description).into_iter().filter_map(|point| match worded(&point) {
        Worded::Sentence(_) => None,
        Worded::Quoted { question, .. } => Some(question),
    });
    let figure = answers.iter().find(|answer| answer.topic.as_str() == FIGURE);
    let questions = unworded.map(|question| match figure {
        Some(figure) if question.starts_with("which figure") => {
            format!("{question} The answer was: {}", plain(figure.answer.as_str()))
        }
        _ => question,
    });
    marks.chain(questions).collect()
}

/// What stands above the open questions of a spec.
const OPEN: &str = "Open questions, which a person has to answer:";
/// How a requirement quotes what no rule can word.
const QUOTES: &str = "what the description asks for in these words: `";

/// The questions that a spec still leaves open: those that its overview lists, or else the
/// requirements that only quote the description.
pub(crate) fn left_open(spec: &Spec) -> Vec<String> {
    let overview = spec.overview.as_str();
    let listed = overview.split_once(OPEN).map_or("", |(_, list)| list);
    let bullets = listed.lines().filter_map(|line| line.strip_prefix("- "));
    let listed: Vec<String> = bullets.map(str::to_owned).collect();
    if !listed.is_empty() {
        return listed;
    }
    let quoting = spec.requirements.iter().filter(|r| r.text.as_str().contains(QUOTES));
    quoting.map(|r| format!("{} only quotes the description: what must hold?", r.id)).collect()
}

/// The topic of the question for a figure.
const FIGURE: &str = "Figure";

/// The arguments of `propose_questions`: what is worth asking before any plan, the
/// recommended answer first.
pub fn questions(change: &ChangeId, description: &str) -> Value {
    let question = |header: &str, question: String, options: [(&str, &str); 3]| {
        let options = options.map(|(label, text)| json!({ "label": label, "description": text }));
        json!({ "header": header, "question": question, "options": options })
    };
    let first = points(description).into_iter().next().unwrap_or_default();
    let mut found = Vec::new();
    if let Some(word) = agentd_core::check::vague_words(description).first() {
        found.push(question(
            FIGURE,
            format!("The description says \"{word}\": how will it be measured?"),
            [
                ("Within 1 second", "Measured by the person who waits for it"),
                ("Within 100 milliseconds", "Felt as immediate, and harder to keep"),
                ("No figure", "The word is left out of the requirements"),
            ],
        ));
    }
    found.push(question(
        "Scope",
        format!("What is in scope of this: {}?", short(&first, 120)),
        [
            ("Exactly as described", "Nothing beyond the description"),
            ("A first version", "Less than described, to be extended later"),
            ("With its surroundings", "Also what the description leaves unsaid"),
        ],
    ));
    found.push(question(
        "Failure",
        "What happens when the input is wrong or something fails?".to_owned(),
        [
            ("Refuse with a message", "The message says what is wrong; nothing is stored"),
            ("Try again first", "A passing failure is not shown at once"),
            ("Ignore it", "Whatever is wrong is passed over"),
        ],
    ));
    found.push(question(
        "Existing behavior",
        "May anything that works today change?".to_owned(),
        [
            ("Nothing may change", "Everything that works today stays as it is"),
            ("Where described", "Only what the description names"),
            ("It may break", "Callers are adapted as part of this change"),
        ],
    ));
    json!({ "change_id": change, "questions": found })
}

/// A title for an id: `user-login` as `User login`.
fn title_of(id: &SpecId) -> String {
    Line::new(&capital(&id.as_str().replace('-', " "))).to_string()
}

#[cfg(test)]
mod tests;
