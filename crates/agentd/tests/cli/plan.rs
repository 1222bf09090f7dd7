//! `plan` and its steps, where no agent has to be called to see what they do.

use crate::harness::Project;

/// WF6: what is beyond planning is left alone, and said to be.
#[test]
fn plan_beyond_planning_does_nothing() {
    for phase in ["implementing", "complete"] {
        let project = Project::new().change("add-oauth");
        let project = project.edit("STATE.yaml", "phase: proposed", &format!("phase: {phase}"));
        let before = project.read("STATE.yaml");
        let run = project.run(["plan", "--git", "in-place", "--json"]).exits(0);
        assert_eq!(run.json()["action"], "beyond_planning", "{run:#?}");
        assert_eq!(run.json()["phase"], phase);
        let after = project.read("STATE.yaml");
        assert_eq!(
            after.lines().find(|line| line.starts_with("phase")),
            before.lines().find(|line| line.starts_with("phase"))
        );
        project.run(["reproposal"]).exits(1);
        project.run(["challenge"]).exits(1);
    }
}
