//! Requirements and scenarios by rule, and what can be fixed in a spec by rule.

use serde_json::{Value, json};

use super::figures::{Figure, Side, figure};
use super::points::plain;
use super::wording::worded;
use super::{Brief, DRAFTED, OPEN, capital, short, title_of};
use agentd_core::check;
use agentd_core::document::spec::{self, Keyword, Priority, Requirement, Scenario, Spec, Step};
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::span::Uncompared;
use agentd_core::text::{Line, Prose};

/// The longest title of a requirement or scenario, in characters.
const TITLE: usize = 80;

/// What holds of nearly everything, for projects that want more scenarios than were found.
const MORE: [(&str, &str, &str, &str); 4] = [
    ("Used twice", "a first use that was accepted", "it is used again", "the result is the same"),
    ("Nothing else changes", "what worked before", "this change is built", "it still works"),
    ("Empty input", "no input at all", "it is used", "it is refused with an error message"),
    ("Interrupted", "a use that has begun", "it is interrupted", "nothing is stored half"),
];

/// The arguments of `create_spec`.
pub fn spec(brief: &Brief, id: &SpecId) -> Value {
    let first = brief.first_requirement(id);
    let mut requirements = Vec::new();
    let mut scenarios: Vec<Value> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for (number, point) in (first..).zip(brief.points()) {
        let title = capital(&short(&point, TITLE));
        let own = scenarios_for(&point, &title, &mut names);
        let shown = own.first().and_then(|scenario| scenario["name"].as_str()).unwrap_or_default();
        let text = format!(
            "{}\n\nShown by the scenario `{}`.",
            worded(&point).sentence(),
            shown.replace('`', "'")
        );
        scenarios.extend(own);
        requirements.push(json!({
            "id": format!("R{number}"),
            "title": title,
            "description": text,
            "priority": if number == first { "high" } else { "medium" },
        }));
    }
    scenarios.push(scenario(
        &unique("Wrong or missing input is refused", &mut names),
        "input that is missing, malformed or not allowed",
        "what this spec describes is used with it",
        "it is refused with an error message that says what is wrong, and nothing is stored",
    ));
    let more = brief.extras.scenario_min_count.saturating_sub(scenarios.len());
    for (name, given, when, then) in MORE.iter().cycle().take(more.min(100)) {
        scenarios.push(scenario(&unique(name, &mut names), given, when, then));
    }
    let mut overview = format!(
        "What the change `{}` asks of {}.\n\n{DRAFTED}",
        brief.change,
        title_of(id).to_lowercase()
    );
    let open = super::open_questions(&brief.description, &brief.answers);
    if !open.is_empty() {
        overview.push_str(&format!("\n\n{OPEN}\n"));
        overview.extend(open.iter().map(|point| format!("\n- {}", plain(point))));
    }
    json!({
        "change_id": brief.change,
        "spec_id": id,
        "title": title_of(id),
        "overview": overview,
        "requirements": requirements,
        "scenarios": scenarios,
    })
}

/// The arguments of `write_spec` for a project that wants headings which `create_spec` does
/// not write; none where it wants none.
pub(crate) fn spec_with_headings(brief: &Brief, id: &SpecId) -> Option<Value> {
    let standard = ["Overview", "Requirements", "Acceptance Criteria"];
    let is_standard =
        |wanted: &&String| standard.iter().any(|own| own.eq_ignore_ascii_case(wanted));
    let wanted: Vec<&String> =
        brief.extras.required_headings.iter().filter(|wanted| !is_standard(wanted)).collect();
    if wanted.is_empty() {
        return None;
    }
    let drafted = spec(brief, id);
    let text = |value: &Value| Prose::new(value.as_str().unwrap_or_default());
    let parts = |key: &str| drafted[key].as_array().cloned().unwrap_or_default();
    let document = Spec {
        title: Line::new(drafted["title"].as_str().unwrap_or_default()),
        overview: text(&drafted["overview"]),
        requirements: parts("requirements")
            .iter()
            .filter_map(|requirement| {
                Some(Requirement {
                    id: requirement["id"].as_str()?.parse().ok()?,
                    title: Line::new(requirement["title"].as_str()?),
                    priority: Priority::default(),
                    text: text(&requirement["description"]),
                    scenarios: Vec::new(),
                    place: Uncompared::default(),
                    section: Uncompared::default(),
                })
            })
            .collect(),
        scenarios: parts("scenarios").iter().map(from_value).collect(),
        ..Spec::default()
    };
    let mut content = spec::render(&document);
    for heading in wanted {
        content.push_str(&format!(
            "\n## {}\n\nNothing beyond the requirements is known.\n",
            Line::new(heading)
        ));
    }
    Some(json!({ "change_id": brief.change, "spec_id": id, "content": content }))
}

fn scenario(name: &str, given: &str, when: &str, then: &str) -> Value {
    json!({ "name": name, "given": given, "when": when, "then": then })
}

/// A name that no other scenario has.
fn unique(name: &str, names: &mut Vec<String>) -> String {
    let mut found = name.to_owned();
    let mut n = 2;
    while names.contains(&found.to_lowercase()) {
        found = format!("{name} ({n})");
        n += 1;
    }
    names.push(found.to_lowercase());
    found
}

/// What shows that a point holds; a figure in it is tried at its limit and on the other side of it.
fn scenarios_for(point: &str, title: &str, names: &mut Vec<String>) -> Vec<Value> {
    let tried = format!("this is tried: {point}");
    let Some(Figure { amount, what, side, below }) = figure(point) else {
        return vec![scenario(
            &unique(title, names),
            "a project in which this change is built",
            &tried,
            "it does what it says, and the person who tried it can see that",
        )];
    };
    let other = match (side, below) {
        (Side::UpTo, _) => format!("more than {amount}"),
        (Side::From, Some(below)) => format!("{below}, which is less than {amount}"),
        (Side::From, None) => format!("less than {amount}"),
    };
    let (at, beyond, name) = match side {
        Side::From => (
            "the rule applies, and the person who tried it can see that",
            "the rule does not apply yet",
            "Below",
        ),
        Side::UpTo => (
            "it is within the limit, and the person who tried it can see that",
            "it is beyond the limit, and an error message says so",
            "Above",
        ),
    };
    vec![
        scenario(
            &unique(&format!("At {amount}: {title}"), names),
            &format!("{what} of {amount}"),
            &tried,
            at,
        ),
        scenario(
            &unique(&format!("{name} {amount}: {title}"), names),
            &format!("{what} of {other}"),
            &tried,
            beyond,
        ),
    ]
}

/// A spec in which everything is fixed that a rule can fix, and what that was.
pub fn fixed(spec: &Spec) -> (Spec, Vec<String>) {
    let mut fixed = spec.clone();
    let mut notes = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for requirement in &mut fixed.requirements {
        let id = requirement.id;
        let own = std::mem::take(&mut requirement.scenarios);
        fixed.scenarios.extend(own);
        if requirement.text.is_empty() {
            requirement.text = Prose::new(&worded(&plain(requirement.title.as_str())).sentence());
            notes.push(format!("{id} says now what its title says"));
        } else if !check::obliges(requirement.text.as_str()) {
            requirement.text = Prose::new(&format!("{}\n\nThis MUST hold.", requirement.text));
            notes.push(format!("{id} says now that it MUST hold"));
        }
    }
    if fixed.scenarios.is_empty() {
        for requirement in &fixed.requirements {
            let title = plain(requirement.title.as_str());
            let drafted = scenarios_for(&title, &title, &mut names);
            fixed.scenarios.extend(drafted.iter().map(from_value));
            notes.push(format!("{} has a scenario now", requirement.id));
        }
    }
    names.clear();
    for scenario in &mut fixed.scenarios {
        let name = unique(scenario.name.as_str(), &mut names);
        if name != scenario.name.as_str() {
            notes.push(format!("a second scenario `{}` has a name of its own now", scenario.name));
            scenario.name = Line::new(&name);
        }
        for (keyword, text) in [
            (Keyword::When, "what its name says is tried"),
            (Keyword::Then, "the person who tried it can see that it holds"),
        ] {
            if !scenario.has(keyword) {
                scenario.steps.push(Step::new(keyword, text));
                notes.push(format!(
                    "the scenario `{}` has a {} now",
                    scenario.name,
                    keyword.label()
                ));
            }
        }
    }
    if !fixed.scenarios.is_empty() && !fixed.scenarios.iter().any(check::is_unhappy) {
        let failing = scenario(
            &unique("Wrong or missing input is refused", &mut names),
            "input that is missing, malformed or not allowed",
            "what this spec describes is used with it",
            "it is refused with an error message, and nothing is stored",
        );
        fixed.scenarios.push(from_value(&failing));
        notes.push("there is a scenario for wrong input now".to_owned());
    }
    (fixed, notes)
}

fn from_value(value: &Value) -> Scenario {
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    Scenario {
        name: Line::new(text("name")),
        steps: vec![
            Step::new(Keyword::Given, text("given")),
            Step::new(Keyword::When, text("when")),
            Step::new(Keyword::Then, text("then")),
        ],
        place: Uncompared::default(),
        section: Uncompared::default(),
    }
}

/// The arguments of `create_spec` for a spec that exists.
pub fn arguments(change: &ChangeId, id: &SpecId, spec: &Spec) -> Value {
    let requirements: Vec<Value> = spec
        .requirements
        .iter()
        .map(|requirement| {
            json!({
                "id": requirement.id,
                "title": requirement.title,
                "description": requirement.text,
                "priority": requirement.priority.name(),
            })
        })
        .collect();
    let scenarios: Vec<Value> = spec.scenarios.iter().map(scenario_arguments).collect();
    let mut arguments = json!({
        "change_id": change,
        "spec_id": id,
        "title": if spec.title.is_empty() { title_of(id) } else { spec.title.to_string() },
        "overview": if spec.overview.is_empty() { DRAFTED.to_owned() } else { spec.overview.to_string() },
        "requirements": requirements,
        "scenarios": scenarios,
    });
    if !spec.flow.is_empty() {
        arguments["flow_diagram"] = json!(spec.flow);
    }
    arguments
}

/// GIVEN, WHEN, THEN, each with the ANDs behind it.
fn scenario_arguments(scenario: &Scenario) -> Value {
    let mut texts: [Vec<&str>; 3] = Default::default();
    let mut at = 0;
    for step in &scenario.steps {
        at = match step.keyword {
            Keyword::Given => 0,
            Keyword::When => 1,
            Keyword::Then => 2,
            Keyword::And => at,
        };
        texts[at].push(step.text.as_str());
    }
    let [given, when, then] = texts.map(|steps| steps.join(", and "));
    json!({ "name": scenario.name, "given": given, "when": when, "then": then })
}
