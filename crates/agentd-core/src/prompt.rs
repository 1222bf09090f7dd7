//! What agents are asked, one type and one template per prompt.
//!
//! The first line of every prompt is `agentd <step> <change-id>`: people see it in the
//! session lists of their agents. The templates are part of the program; nothing in a
//! repository can replace them (lesson 16).
//!
//! A template prints ids and numbers as they are. Every other text goes through the
//! filter `data`, which fences it ([`fenced`]); a template that tries to print one
//! otherwise fails, and a test renders all of them. No prompt is longer than
//! [`PROMPT_BYTES`], whatever it is given.

mod answering;
mod building;
mod data;
mod planning;
mod views;

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};

use crate::ids::ChangeId;
use crate::language::LanguageTag;
use crate::step_name::StepName;

pub use answering::Answer;
pub use building::{Fix, Implement, ImplementAgain, Reproduce, Reproduced, Review};
pub use data::{FENCE_OVERHEAD, KeepEnd, fenced, one_line};
pub use planning::{
    Challenge, Clarify, FormatFix, FreshReproposal, NewPlan, Reproposal, Reviewed, SelfReview,
    SpecGen, SpecTitle, TasksGen,
};
pub use views::{CommentView, IssueView, SpecView, TaskView, TestEvidence};

/// The longest prompt.
pub const PROMPT_BYTES: usize = 65_536;

/// How many names a prompt lists before it says how many more there are.
const MAX_LISTED: usize = 50;

macro_rules! templates {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../templates/prompts/", $name, ".md.j2")))),+]
    };
}

const TEMPLATES: [(&str, &str); 16] = templates![
    "frame",
    "clarify",
    "proposal-gen",
    "self-review",
    "spec-gen",
    "tasks-gen",
    "plan-gen",
    "format-fix",
    "challenge",
    "reproposal",
    "implement",
    "implement-again",
    "reproduce",
    "review",
    "fix",
    "answer",
];

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    #[expect(clippy::expect_used, reason = "the delimiters are the usual ones")]
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .expect("the usual delimiters");
    environment.set_syntax(syntax);
    environment.add_filter("data", |text: &str, label: &str, cap: usize| {
        Value::from_safe_string(fenced(label, text, cap, KeepEnd::Head))
    });
    environment.add_filter("data_tail", |text: &str, label: &str, cap: usize| {
        Value::from_safe_string(fenced(label, text, cap, KeepEnd::Tail))
    });
    environment.set_formatter(|out, state, value| {
        if value.kind() == ValueKind::Number || value.is_safe() {
            minijinja::escape_formatter(out, state, value)
        } else {
            let what = "a template prints text that is not marked as data";
            Err(Error::new(ErrorKind::InvalidOperation, what))
        }
    });
    for (name, source) in TEMPLATES {
        #[expect(clippy::expect_used, reason = "the templates are compiled in; a test reads all")]
        environment.add_template(name, source).expect("a template that can be read");
    }
    environment
});

/// Renders a template inside the frame that all prompts share.
#[expect(
    clippy::expect_used,
    reason = "templates fail only for what is missing in them; tests render all"
)]
fn render(step: &StepName, change: &ChangeId, template: &str, context: Value) -> String {
    let shared = minijinja::context! {
        step => safe(step),
        change_id => safe(change),
        change_dir => safe(&crate::layout::change_dir(change)),
    };
    let render = |name: &str, context: Value| {
        let context = minijinja::context! { ..context, ..shared.clone() };
        ENVIRONMENT.get_template(name).and_then(|template| template.render(context))
    };
    let body = render(template, context).expect("a template that can be rendered");
    let framed = minijinja::context! { body => safe(body.trim()) };
    let mut text = render("frame", framed).expect("a frame that can be rendered");
    text.push('\n');
    text
}

/// The prompt with the language in which the agent writes, if the project sets one. What is read by
/// agentd stays English.
pub fn in_language(prompt: &str, language: Option<&LanguageTag>) -> String {
    let Some(tag) = language else { return prompt.to_owned() };
    let name = tag
        .name()
        .map_or_else(|| format!("the language `{tag}`"), |name| format!("{name} ({tag})"));
    format!(
        "{}\n\nWrite prose in {name}: titles, sentences, descriptions, questions, answers and issues. Headings, \
         the keywords MUST, SHALL, SHOULD, GIVEN, WHEN, THEN and AND, IDs, file names, verdicts, \
         severities and code stay as they are, in English.\n",
        prompt.trim_end()
    )
}

/// A text of agentd's own or a validated id, which may stand in a prompt as it is.
fn safe(text: &(impl ToString + ?Sized)) -> Value {
    Value::from_safe_string(text.to_string())
}

/// The first of many ids, and how many more there are.
fn listed<T: ToString>(ids: &[T]) -> (Vec<Value>, usize) {
    let shown: Vec<Value> = ids.iter().take(MAX_LISTED).map(|id| safe(id)).collect();
    let more = ids.len() - shown.len();
    (shown, more)
}
