//! What a workflow still has before it, for those who watch: the steps to come by the names that
//! people know, and what the change has cost so far.

use agentd_core::agent::{AgentKind, Complexity};
use agentd_core::config::{Config, Generation};
use agentd_core::document::tasks::Status;
use agentd_core::documents::Documents;
use agentd_core::graph;
use agentd_core::ids::{Layer, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::provider::models::choose;
use agentd_core::state::{State, Track};
use agentd_core::step_name::StepName;

use super::implement::layer_of;

/// How far a workflow is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outlook {
    /// The number of the step, from 1.
    pub number: usize,
    /// How many steps there are, as far as that can be known: a review may ask for more.
    pub of: usize,
    /// What the steps to come are called.
    pub to_come: Vec<String>,
    /// The model that is asked; none where the agent chooses.
    pub model: Option<String>,
    /// What the change has cost before this step, in US dollars.
    pub spent_usd: f64,
    /// What it may cost.
    pub budget_usd: Option<f64>,
    /// What it was expected to cost when it began.
    pub forecast_usd: Option<[f64; 2]>,
}

/// What is before a workflow that begins a step, its `number`th.
pub(super) fn outlook(
    documents: &Documents,
    state: &State,
    config: &Config,
    step: &StepName,
    agent: AgentKind,
    number: usize,
) -> Outlook {
    let to_come = to_come(documents, config, state.track, step);
    let complexity = state.complexity.unwrap_or(Complexity::Medium);
    Outlook {
        number,
        of: number + to_come.len(),
        to_come,
        model: choose(agent, complexity, config.agent(agent).models.get(&complexity)).model,
        spent_usd: state.total_cost,
        budget_usd: config.budget.max_cost_usd,
        forecast_usd: state.forecast.map(|forecast| forecast.cost_usd),
    }
}

/// What the steps behind this one are called, if nothing is found to be wrong.
fn to_come(documents: &Documents, config: &Config, track: Track, step: &StepName) -> Vec<String> {
    match step {
        StepName::Challenge | StepName::Review | StepName::Unknown(_) => Vec::new(),
        StepName::FormatFix | StepName::Reproposal => vec!["Challenge".to_owned()],
        StepName::Reproduce | StepName::Implement(_) | StepName::Fix => {
            code_steps(documents, config, step)
        }
        StepName::Clarify
        | StepName::ProposalGen
        | StepName::ProposalReview
        | StepName::SpecGen(_)
        | StepName::SpecReview(_)
        | StepName::TasksGen
        | StepName::TasksReview
        | StepName::PlanGen
        | StepName::PlanReview => plan_steps(documents, config, track, step),
    }
}

/// A document of a plan: what writes it, what reviews it, and what people call it.
struct Part {
    file: Option<ChangeFile>,
    generate: StepName,
    review: StepName,
    label: String,
}

fn plan_steps(
    documents: &Documents,
    config: &Config,
    track: Track,
    step: &StepName,
) -> Vec<String> {
    let is_quick = track != Track::Full;
    let at_once = is_quick || config.workflow.generation == Generation::OneShot;
    let has_reviews = config.workflow.self_review_iterations > 0 && !is_quick;
    let parts = if at_once && !documents.has(&ChangeFile::Proposal) {
        vec![part(ChangeFile::Proposal, StepName::PlanGen, StepName::PlanReview, "Plan")]
    } else {
        parts(documents)
    };
    let mut steps = Vec::new();
    // Everything behind the step, and of what is there already only what it is followed by.
    let mut is_behind = *step == StepName::Clarify;
    for part in parts {
        let is_here = part.generate == *step;
        let is_missing = part.file.as_ref().is_none_or(|file| !documents.has(file));
        if is_behind && is_missing {
            steps.push(part.label.clone());
        }
        if has_reviews && (is_here || (is_behind && is_missing)) {
            steps.push(format!("{}, review", part.label));
        }
        is_behind |= is_here || part.review == *step;
    }
    steps.push("Challenge".to_owned());
    steps
}

fn part(file: ChangeFile, generate: StepName, review: StepName, label: &str) -> Part {
    Part { file: Some(file), generate, review, label: label.to_owned() }
}

/// The documents of a plan, in the order in which they are written.
fn parts(documents: &Documents) -> Vec<Part> {
    let gen_review = (StepName::ProposalGen, StepName::ProposalReview);
    let mut parts = vec![part(ChangeFile::Proposal, gen_review.0, gen_review.1, "Proposal")];
    let proposal = documents.proposal.value_if_there();
    let specs = proposal.and_then(|proposal| graph::spec_order(&proposal.affected_specs).ok());
    match specs {
        Some(specs) => {
            let total = specs.len();
            parts.extend(specs.into_iter().zip(1..).map(|(spec, number)| {
                let label = spec_label(&spec, number, total);
                let (generate, review) =
                    (StepName::SpecGen(spec.clone()), StepName::SpecReview(spec.clone()));
                part(ChangeFile::Spec(spec), generate, review, &label)
            }));
        }
        // How many there are, the proposal will say.
        None => parts.push(Part {
            file: None,
            generate: StepName::Unknown("spec-gen".into()),
            review: StepName::Unknown("spec-review".into()),
            label: "Specs".to_owned(),
        }),
    }
    parts.push(part(ChangeFile::Tasks, StepName::TasksGen, StepName::TasksReview, "Tasks"));
    parts
}

/// What people call a spec that is written.
pub(super) fn spec_label(spec: &SpecId, number: usize, total: usize) -> String {
    format!("Spec {number}/{total}: {spec}")
}

fn code_steps(documents: &Documents, config: &Config, step: &StepName) -> Vec<String> {
    let tasks = &documents.tasks.value().tasks;
    let layers = layers(tasks.iter().map(layer_of));
    let is_open = |layer: Layer| {
        let mut of_layer = tasks.iter().filter(|task| layer_of(task) == layer);
        of_layer.any(|task| task.status == Status::Pending)
    };
    let here = match step {
        StepName::Implement(layer) => Some(*layer),
        _ => None,
    };
    let is_behind = |layer: Layer| match (step, here) {
        (StepName::Fix, _) => false,
        (_, Some(here)) => layer > here,
        (_, None) => true,
    };
    let mut steps: Vec<String> = layers
        .iter()
        .filter(|layer| is_behind(**layer) && is_open(**layer))
        .map(|layer| layer_label(*layer, &layers))
        .collect();
    if config.implementation.test_command.is_some() {
        steps.push("Tests".to_owned());
    }
    steps.push("Review".to_owned());
    steps
}

/// The layers that have tasks, in order.
pub(super) fn layers(of_tasks: impl Iterator<Item = Layer>) -> Vec<Layer> {
    let of_tasks: Vec<Layer> = of_tasks.collect();
    Layer::ALL.into_iter().filter(|layer| of_tasks.contains(layer)).collect()
}

/// What people call a layer, among those that have tasks.
pub(super) fn layer_label(layer: Layer, all: &[Layer]) -> String {
    let number = all.iter().position(|known| *known == layer).map_or(1, |at| at + 1);
    format!("Layer {number}/{}: {layer}", all.len().max(1))
}

#[cfg(test)]
mod tests {
    use agentd_core::documents::Source;
    use agentd_core::ids::ChangeId;

    use super::*;

    fn documents(files: &[(ChangeFile, &str)]) -> Documents {
        let texts =
            files.iter().map(|(file, text)| (file.clone(), Source::Text((*text).to_owned())));
        Documents::read(ChangeId::new("add-oauth").unwrap(), texts)
    }

    fn check(documents: &Documents, config: &str, track: Track, step: &StepName, expected: &str) {
        let config = Config::parse(config).unwrap();
        assert_eq!(to_come(documents, &config, track, step).join(" · "), expected, "{step}");
    }

    const PROPOSAL: &str =
        "---\naffected_specs:\n  - id: b\n    depends: [a]\n  - id: a\n---\n\n# Change: x\n";

    #[test]
    fn the_steps_of_a_plan() {
        let nothing = documents(&[]);
        let full = Track::Full;
        let start = "Proposal · Proposal, review · Specs · Specs, review · Tasks · Tasks, review · Challenge";
        check(&nothing, "", full, &StepName::Clarify, start);
        check(&nothing, "", full, &StepName::ProposalGen, &start["Proposal · ".len()..]);
        let few = "[workflow]\nself_review_iterations = 0\n";
        check(&nothing, few, full, &StepName::ProposalGen, "Specs · Tasks · Challenge");
        check(&nothing, "", Track::Quick, &StepName::PlanGen, "Challenge");
        let at_once = "[workflow]\ngeneration = \"one-shot\"\n";
        check(&nothing, at_once, full, &StepName::PlanGen, "Plan, review · Challenge");
        let proposed = documents(&[(ChangeFile::Proposal, PROPOSAL)]);
        let a = SpecId::new("a").unwrap();
        let rest = "Spec 2/2: b · Spec 2/2: b, review · Tasks · Tasks, review · Challenge";
        check(&proposed, "", full, &StepName::SpecReview(a.clone()), rest);
        check(
            &proposed,
            few,
            full,
            &StepName::SpecGen(a.clone()),
            "Spec 2/2: b · Tasks · Challenge",
        );
        // What is written already does not come again.
        let written = proposed
            .with(&ChangeFile::Spec(SpecId::new("b").unwrap()), Source::Text(String::new()));
        check(&written, few, full, &StepName::SpecGen(a), "Tasks · Challenge");
        check(&written, few, full, &StepName::TasksGen, "Challenge");
        for (step, rest) in [(StepName::Reproposal, "Challenge"), (StepName::Challenge, "")] {
            check(&written, few, full, &step, rest);
        }
    }

    #[test]
    fn the_steps_of_code() {
        let tasks = "# Tasks: x\n\n## 2. Logic Layer\n\n- [x] 2.1 One\n\n## 3. Integration Layer\n\n\
                     - [ ] 3.1 Two\n\n## 4. Testing Layer\n\n- [ ] 4.1 Three\n";
        let documents = documents(&[(ChangeFile::Tasks, tasks)]);
        let tested = "[implementation]\ntest_command = \"true\"\n";
        let full = Track::Full;
        let integration = StepName::Implement(Layer::Integration);
        check(&documents, tested, full, &integration, "Layer 3/3: testing · Tests · Review");
        check(&documents, "", full, &StepName::Implement(Layer::Testing), "Review");
        let all = "Layer 2/3: integration · Layer 3/3: testing · Review";
        check(&documents, "", full, &StepName::Reproduce, all);
        check(&documents, tested, full, &StepName::Fix, "Tests · Review");
        check(&documents, tested, full, &StepName::Review, "");
    }
}
