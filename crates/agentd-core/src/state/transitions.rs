//! The one way from phase to phase: [`State::apply`].

use super::{CodeReview, PlanReview, State, TestRun, Track};
use crate::document::review::CodeVerdict;
use crate::document::review_block::PlanVerdict;
use crate::hash::Digest;
use crate::phase::{PLAN_EDITED, PLAN_UNKNOWN, Phase, Refused, Transition, allowed};

impl State {
    /// Whether the latest verdict on the plan is a rejection.
    fn was_rejected(&self) -> bool {
        self.plan_review.as_ref().is_some_and(|review| review.verdict == PlanVerdict::Rejected)
    }

    /// Whether the latest verdict is about this plan.
    fn has_judged(&self, plan: &Digest) -> bool {
        self.plan_review.as_ref().is_some_and(|review| review.plan_hash == *plan)
    }

    /// Whether this plan may be challenged: asked before a challenger is paid.
    pub fn may_be_challenged(&self, plan: &Digest) -> Result<(), Refused> {
        match self.why_no_challenge(plan) {
            None => Ok(()),
            Some(reason) => Err(self.refuse("be challenged", Some(reason))),
        }
    }

    /// A refusal of something in this phase.
    pub fn refuse(&self, wanted: &'static str, reason: Option<&'static str>) -> Refused {
        let steps = allowed(self.phase).iter().map(|command| command.on(&self.change_id));
        let (change, phase, allowed) = (self.change_id.clone(), self.phase, steps.collect());
        Refused { change, phase, wanted, reason, allowed }
    }

    /// What stands in the way of a challenge of this plan.
    fn why_no_challenge(&self, plan: &Digest) -> Option<&'static str> {
        let same_plan = self.has_judged(plan);
        match self.phase {
            // Reopening is no way around a rejection (C20).
            Phase::Proposed if same_plan && self.was_rejected() => {
                Some("the plan has not changed since it was rejected")
            }
            Phase::Rejected if same_plan => Some("the plan has not changed since it was rejected"),
            Phase::Challenged if same_plan => Some("this plan is already approved"),
            Phase::Proposed | Phase::Rejected | Phase::Challenged => None,
            Phase::Implementing | Phase::Complete | Phase::Archived => Some("it is past planning"),
        }
    }

    /// The one function through which a change moves from phase to phase.
    ///
    /// It returns the new state and leaves the old one as it is; a refusal says
    /// what is allowed instead.
    pub fn apply(&self, transition: &Transition) -> Result<Self, Refused> {
        let refuse = |reason| Err(self.refuse(transition.verb(), reason));
        let mut next = self.clone();
        match transition {
            Transition::PlanReviewed { verdict, plan, reviewer, at } => {
                if let Some(reason) = self.why_no_challenge(plan) {
                    return refuse(Some(reason));
                }
                next.phase = match verdict {
                    PlanVerdict::Approved => Phase::Challenged,
                    PlanVerdict::NeedsRevision => Phase::Proposed,
                    PlanVerdict::Rejected => Phase::Rejected,
                };
                let (plan, reviewer) = (plan.clone(), reviewer.clone());
                let review = PlanReview::new(*verdict, plan, self.iteration, reviewer, *at);
                next.plan_review = Some(review);
            }
            Transition::MinorIssuesAccepted { plan, left } => {
                if self.phase != Phase::Proposed {
                    return refuse(None);
                }
                let Some(review) = &self.plan_review else {
                    return refuse(Some("nobody has challenged the plan yet"));
                };
                if review.plan_hash != *plan {
                    return refuse(Some("the plan has changed since it was challenged"));
                }
                if self.was_rejected() {
                    return refuse(Some("the plan was rejected"));
                }
                if left.high > 0 || left.medium > 1 {
                    return refuse(Some("HIGH issues or more than one MEDIUM issue are left"));
                }
                next.phase = Phase::Challenged;
            }
            Transition::ImplementationStarted { plan } => match self.phase {
                Phase::Challenged | Phase::Implementing => {
                    let Some(review) = &self.plan_review else {
                        return refuse(Some(PLAN_UNKNOWN));
                    };
                    if review.plan_hash != *plan {
                        return refuse(Some(PLAN_EDITED));
                    }
                    next.phase = Phase::Implementing;
                }
                _ => return refuse(None),
            },
            Transition::CodeReviewed { verdict, reviewer, at } => {
                if self.phase != Phase::Implementing {
                    return refuse(None);
                }
                if *verdict == CodeVerdict::Approved
                    && self.test_run.as_ref().is_some_and(|run| !run.passed())
                {
                    return refuse(Some("the recorded test run failed"));
                }
                if *verdict == CodeVerdict::Approved && self.track == Track::Bug {
                    let passed = self.test_run.as_ref().is_some_and(TestRun::passed);
                    if self.reproduction.is_none() || !passed {
                        return refuse(Some("no test for the bug was seen to fail and then pass"));
                    }
                }
                if *verdict == CodeVerdict::Approved {
                    next.phase = Phase::Complete;
                }
                let rounds = self.code_review.as_ref().map_or(0, |review| review.iteration);
                let iteration = rounds.saturating_add(1);
                let review = CodeReview::new(*verdict, iteration, reviewer.clone(), *at);
                next.code_review = Some(review);
            }
            Transition::CodeReopened { plan } => match self.phase {
                Phase::Complete if self.has_judged(plan) => next.phase = Phase::Implementing,
                Phase::Complete => return refuse(Some(PLAN_EDITED)),
                _ => return refuse(None),
            },
            Transition::Reopened => match self.phase {
                Phase::Rejected | Phase::Challenged | Phase::Implementing | Phase::Complete => {
                    next.phase = Phase::Proposed;
                }
                Phase::Proposed | Phase::Archived => return refuse(None),
            },
            Transition::Archived { forced } => {
                match self.phase {
                    Phase::Archived => return refuse(None),
                    Phase::Complete => {}
                    _ if *forced => {}
                    _ => return refuse(Some("its implementation is not approved")),
                }
                next.archived_from = Some(self.phase);
                next.phase = Phase::Archived;
            }
            Transition::Unarchived => {
                if self.phase != Phase::Archived {
                    return refuse(None);
                }
                // What was put away unfinished comes back unfinished.
                next.phase = next.archived_from.take().unwrap_or(Phase::Complete);
            }
        }
        Ok(next)
    }
}
