//! Changes in the states that most tests start from.

use agentd_core::diagnostic::Severity;
use agentd_core::document::review_block::{self, Issue, PlanVerdict, ReviewBlock};
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::phase::Transition;
use agentd_core::span::Uncompared;
use agentd_core::stamp::Stamp;
use agentd_core::state::{self, State};
use agentd_core::text::{Line, Prose};
use agentd_engine::change::documents::update_state;

use crate::{TestProject, stamp};

const PLANNED: [(&str, &str); 4] = [
    ("STATE.yaml", include_str!("../fixtures/STATE.yaml")),
    ("proposal.md", include_str!("../fixtures/proposal.md")),
    ("specs/auth-flow.md", include_str!("../fixtures/auth-flow.md")),
    ("tasks.md", include_str!("../fixtures/tasks.md")),
];

/// When the plans of [`TestProject::challenged`] and its like were reviewed.
const REVIEWED: &str = "2026-11-04T11:00:00Z";

impl TestProject {
    /// Adds a valid change with a proposal, a spec and tasks.
    pub fn change(self, id: &str) -> Self {
        let project = self.about(id);
        for (name, text) in PLANNED {
            project.write(name, text.replace("add-oauth", id));
        }
        // Its first task is done.
        project.root_file("src/session.rs", "struct Session;\n")
    }

    /// Adds a change that has nothing but its state.
    pub fn begun(self, id: &str) -> Self {
        let project = self.about(id);
        project.write("STATE.yaml", PLANNED[0].1.replace("add-oauth", id));
        project
    }

    /// Adds a change that begins now, with this description.
    pub fn described(self, id: &str, description: &str, now: Stamp) -> Self {
        let project = self.about(id);
        let state = State::new(project.id(), description, now);
        project.write("STATE.yaml", state::render(&state));
        project
    }

    /// From here on, all is about this change; it need not exist.
    pub fn about(mut self, id: &str) -> Self {
        id.clone_into(&mut self.change);
        self
    }

    /// The change that all is about.
    pub fn id(&self) -> ChangeId {
        ChangeId::new(&self.change).unwrap()
    }

    /// The plan was challenged, and needs revision for issues of these severities.
    pub fn challenged(self, severities: &[Severity]) -> Self {
        let issue = |(i, severity): (usize, &Severity)| Issue {
            number: u32::try_from(i + 1).unwrap(),
            severity: *severity,
            title: Line::new("Something"),
            location: Line::default(),
            description: Prose::new("It is not said."),
            recommendation: Prose::new("Say it."),
        };
        let block = ReviewBlock {
            iteration: 1,
            reviewer: Line::new("codex"),
            date: Some(stamp(REVIEWED)),
            plan: Some(self.plan_digest()),
            verdict: PlanVerdict::NeedsRevision,
            summary: Prose::new("Not yet."),
            previous: Vec::new(),
            issues: severities.iter().enumerate().map(issue).collect(),
            place: Uncompared::default(),
        };
        self.write("proposal.md", review_block::append(&self.read("proposal.md"), &block));
        self.plan_reviewed(PlanVerdict::NeedsRevision, stamp(REVIEWED));
        self
    }

    /// The plan was approved as it is.
    pub fn approved(self) -> Self {
        self.plan_reviewed(PlanVerdict::Approved, stamp(REVIEWED));
        self
    }

    /// Records a verdict on the plan as it is in the state, as the workflow does.
    pub fn plan_reviewed(&self, verdict: PlanVerdict, at: Stamp) {
        let (plan, reviewer) = (self.plan_digest(), Line::new("codex"));
        let reviewed = Transition::PlanReviewed { verdict, plan, reviewer, at };
        update_state(&self.store(), &self.id(), &self.holder(), at, |state| {
            *state = state.apply(&reviewed)?;
            Ok(())
        })
        .unwrap();
    }

    fn plan_digest(&self) -> Digest {
        self.store().change(&self.id()).unwrap().snapshot().unwrap().documents.digest()
    }
}
