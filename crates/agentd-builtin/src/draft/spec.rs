//! Requirements and scenarios by rule, and what can be fixed in a spec by rule.

use serde_json::{Value, json};

use super::figures::{Comparison, Limit, Measure, Role, limit};
use super::points::{plain, sentences};
use super::reading::{Demand, case, first_word, read};
use super::wording::{Worded, worded};
use super::{Brief, DRAFTED, OPEN, capital, short, title_of};
use agentd_core::check;
use agentd_core::document::spec::{self, Keyword, Priority, Requirement, Scenario, Spec, Step};
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::language::same_heading;
use agentd_core::span::Uncompared;
use agentd_core::text::{Line, Prose};

/// The longest title of a requirement or scenario, in characters.
const TITLE: usize = 80;

/// For so many scenarios that nobody has said, places are kept.
const MOST_PLACES: usize = 100;

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
    let mut overview = format!(
        "What the change `{}` asks of {}.\n\n{DRAFTED}",
        brief.change,
        title_of(id).to_lowercase()
    );
    let mut open = super::open_questions(&brief.description, &brief.answers);
    open.extend(missing_scenarios(brief, &mut scenarios));
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

/// The question for the scenarios that the project wants and the description says nothing of: nobody
/// invents them. A spec without them is refused, so that their places are kept.
fn missing_scenarios(brief: &Brief, drafted: &mut Vec<Value>) -> Option<String> {
    let (wanted, said) = (brief.extras.scenario_min_count, drafted.len());
    for number in said + 1..=wanted.min(said + MOST_PLACES) {
        drafted.push(scenario(
            &format!("Not said yet ({number} of {wanted})"),
            &format!(
                "a description that says {said} of the {wanted} scenarios which this project wants"
            ),
            "a person has said what else must hold",
            "that stands here",
        ));
    }
    (said < wanted).then(|| {
        format!("the project wants {wanted} scenarios, and the description says {said}: which others must hold?")
    })
}

/// The arguments of `write_spec` for a project that wants headings which `create_spec` does
/// not write; none where it wants none.
pub(crate) fn spec_with_headings(brief: &Brief, id: &SpecId) -> Option<Value> {
    let standard = ["Overview", "Requirements", "Acceptance Criteria"];
    let is_standard = |wanted: &&String| standard.iter().any(|own| same_heading(own, wanted));
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

/// What shows that a point holds: in the case that it names, and on both sides of its limit.
fn scenarios_for(point: &str, title: &str, names: &mut Vec<String>) -> Vec<Value> {
    let built = "a project in which this change is built";
    let tried = format!("this is tried: {point}");
    let alone = sentences(point);
    let is_clear = alone.len() == 1 && matches!(worded(point), Worded::Sentence(_));
    if let Some(cases) = at_limit(point).filter(|_| is_clear) {
        let cases = cases.into_iter().map(|(name, given, then)| {
            let given = given.as_deref().unwrap_or(built);
            scenario(&unique(&format!("{name}: {title}"), names), given, &tried, &then)
        });
        return cases.collect();
    }
    let reading = read(alone.first().copied().unwrap_or_default());
    if let [sentence] = alone.as_slice()
        && is_clear
        && let Some((case, holds)) = case(sentence, &reading)
    {
        // A verb in front has its capital letter from the beginning of the sentence.
        let (first, rest) = holds.split_at(first_word(holds).len());
        let holds = match reading.demand {
            Demand::Act { .. } => first.to_lowercase() + rest,
            Demand::Duty(_) | Demand::Unclear(_) => holds.to_owned(),
        };
        return vec![scenario(&unique(title, names), built, case, &format!("this holds: {holds}"))];
    }
    let then = "it does what it says, and the person who tried it can see that";
    vec![scenario(&unique(title, names), built, &tried, then)]
}

/// The limit of a point, tried: each time a name, what is given where that is more than the change
/// itself, and what is seen.
fn at_limit(point: &str) -> Option<Vec<(String, Option<String>, String)>> {
    let Limit { amount, measure, comparison, role, count } = limit(point)?;
    let (side, includes) = match comparison {
        Comparison::AtMost => ("at most", true),
        Comparison::LessThan => ("less than", false),
        Comparison::AtLeast => ("at least", true),
        Comparison::MoreThan => ("more than", false),
        Comparison::After => ("after", true),
    };
    if role == Role::Bound && measure == Measure::Time {
        // How long it takes is seen, and not given.
        let then = format!("the time that this names is measured, and is {side} {amount}");
        return Some(vec![(capital(&format!("{side} {amount}")), None, then)]);
    }
    let of = |amount: &str| match (measure, comparison) {
        (Measure::Time, Comparison::After) => format!("a wait of {amount}"),
        (Measure::Time, _) => format!("a duration of {amount}"),
        (Measure::Count, _) => format!("a count of {amount}"),
        (Measure::Size, _) => format!("a size of {amount}"),
        (Measure::Share, _) => format!("a share of {amount}"),
        (Measure::Rate, _) => format!("a rate of {amount}"),
    };
    // The other side of an amount that belongs to its side, and that side of one that does not.
    let upwards = matches!(comparison, Comparison::AtMost | Comparison::MoreThan);
    let (word, near) = if upwards {
        ("more than", count.and_then(|count| count.checked_add(1)))
    } else {
        ("less than", count.and_then(|count| count.checked_sub(1)))
    };
    let beside = match near {
        Some(near) => of(&format!("{near}, which is {word} {amount}")),
        None => of(&format!("{word} {amount}")),
    };
    let then = |inside: bool| {
        let then = match (role, inside) {
            (Role::Trigger, true) => "the rule applies, and the person who tried it can see that",
            (Role::Trigger, false) => "the rule does not apply",
            (Role::Bound, true) => {
                "it is within the limit, and the person who tried it can see that"
            }
            (Role::Bound, false) => {
                "it is outside of the limit, and the person who tried it can see that"
            }
        };
        then.to_owned()
    };
    let name = if upwards { "Above" } else { "Below" };
    Some(vec![
        (format!("At {amount}"), Some(of(&amount)), then(includes)),
        (format!("{name} {amount}"), Some(beside), then(!includes)),
    ])
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
