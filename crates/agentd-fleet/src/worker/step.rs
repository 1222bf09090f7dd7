//! One step of a change: the real `agentd step`, as a child that ends with the worker.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use agentd_core::carried::WorkerName;
use agentd_core::text::{Line, excerpt};
use serde::Deserialize;

use crate::engine::throttle::Throttle;
use crate::engine::{Claim, Outcome, StepReport};
use crate::error::Result;
use crate::program;

/// How steps are done.
#[derive(Debug, Clone)]
pub(super) struct Stepping {
    /// The program.
    pub(super) agentd: PathBuf,
    /// The remote, by its name in a clone.
    pub(super) remote: String,
    /// Whether the project's settings may run programs.
    pub(super) trust: bool,
    /// After how many seconds of silence a worker is dead.
    pub(super) patience: u64,
}

/// What `agentd` says if it fails.
#[derive(Debug, Deserialize)]
struct Failure {
    error: FailureReport,
}

#[derive(Debug, Deserialize)]
struct FailureReport {
    kind: String,
    message: String,
    #[serde(default)]
    cause: Option<String>,
    /// The agent that was called, if a call has failed.
    #[serde(default)]
    agent: Option<String>,
    /// What kind of failure it was.
    #[serde(default)]
    failure: Option<String>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
}

impl FailureReport {
    /// What a person has to know.
    fn why(&self) -> String {
        match &self.cause {
            Some(cause) => line(&format!("{}: {cause}", self.message)),
            None => line(&self.message),
        }
    }

    /// What it says about the account, if it is the vendor who refuses.
    fn throttle(&self) -> Option<Throttle> {
        let exhausted = match self.failure.as_deref() {
            Some("rate_limited") => false,
            Some("quota_exhausted") => true,
            _ => return None,
        };
        Some(Throttle {
            agent: line(self.agent.as_deref()?),
            exhausted,
            retry_after: self.retry_after_ms.map(Duration::from_millis),
            why: line(&self.message),
        })
    }
}

/// How much of what a step has said is in the log of the worker.
const MOST_NOTES: usize = 8;

/// Errors that another try may not have.
const PASSING: [&str; 3] = ["claimed", "locked", "interrupted"];

/// Errors that are about this machine: its disk, its programs, its logins, what it was allowed to do.
const UNFIT: [&str; 9] = [
    "store",
    "not_trusted",
    "agent_not_installed",
    "agent_auth",
    "git_not_installed",
    "git_too_old",
    "git_no_identity",
    "sandbox",
    "signing_failed",
];

impl Stepping {
    /// Does the next step of a change in its clone. Where it is not sure what that is, it is looked at
    /// first: a call of an agent that this claim is not for is left to others.
    pub(super) async fn run(
        &self,
        claim: &Claim,
        clone: &Path,
        name: &WorkerName,
    ) -> Result<Outcome> {
        if !claim.look {
            return self.call(claim, clone, name, None).await;
        }
        let looked = self.call(claim, clone, name, Some("--next")).await?;
        let Outcome::Stepped { report: looked, .. } = looked else { return Ok(looked) };
        let agent = looked.next.as_ref().and_then(|next| next.agent.as_ref());
        let other = looked.next.as_ref().is_some_and(|next| {
            // Whoever has died had done it: the claim was for something else.
            claim.step.as_ref().is_some_and(|step| *step != next.step)
        });
        if other || agent.is_some_and(|agent| !claim.agents.contains(agent)) {
            return Ok(Outcome::Stepped { cost_before: Some(looked.cost_usd), report: looked });
        }
        Ok(match self.call(claim, clone, name, None).await? {
            Outcome::Stepped { report, .. } => {
                Outcome::Stepped { report, cost_before: Some(looked.cost_usd) }
            }
            other => other,
        })
    }

    async fn call(
        &self,
        claim: &Claim,
        clone: &Path,
        name: &WorkerName,
        more: Option<&str>,
    ) -> Result<Outcome> {
        // Of somebody who is known to be dead, the change is taken at once. Otherwise a claim is one of
        // somebody outside of the fleet.
        let patience = if claim.orphaned { 0 } else { self.patience };
        let mut command = program::mortal(&self.agentd)?;
        command.arg("-C").arg(clone).args(self.words(claim, name, patience, more));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error| crate::error::FleetError::unusable(&self.agentd, &error);
        let output = command.spawn().map_err(failed)?.wait_with_output().await.map_err(failed)?;
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Ok(outcome_of(output.status.code(), &stdout, &stderr))
    }

    /// The words of the command. Anyone who can push has written the description: it comes last, and is no
    /// option whatever it begins with.
    fn words(
        &self,
        claim: &Claim,
        name: &WorkerName,
        patience: u64,
        more: Option<&str>,
    ) -> Vec<String> {
        let (patience, beat) = (patience.to_string(), self.beat().to_string());
        let mut words = vec!["step", "--json", "--progress", "none", "--skip-clarify", "--discard"];
        words.extend(["--carry", &self.remote, "--as", name.as_str()]);
        words.extend(["--patience", &patience, "--beat", &beat]);
        words.extend(more);
        words.extend(claim.submission.auto.then_some("--auto"));
        words.extend(self.trust.then_some("--trust"));
        words.extend(["--", claim.change.as_str(), &claim.submission.description]);
        words.into_iter().map(str::to_owned).collect()
    }

    /// How often a sign of life is pushed during a step.
    fn beat(&self) -> u64 {
        (self.patience / 3).clamp(1, 15)
    }
}

fn outcome_of(code: Option<i32>, stdout: &str, stderr: &str) -> Outcome {
    if code == Some(0) {
        return match serde_json::from_str::<StepReport>(stdout) {
            Ok(report) if report.cost_usd.is_finite() => {
                let said = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
                let notes = said.take(MOST_NOTES).map(line).collect();
                Outcome::Stepped { report: StepReport { notes, ..report }, cost_before: None }
            }
            Ok(_) | Err(_) => Outcome::Failed("`agentd step` has answered no report".to_owned()),
        };
    }
    match serde_json::from_str::<Failure>(stdout) {
        Ok(Failure { error }) if error.kind == "claim_lost" => Outcome::Lost,
        Ok(Failure { error }) if PASSING.contains(&&*error.kind) => {
            Outcome::Busy(line(&error.message))
        }
        Ok(Failure { error }) if error.kind == "remote_unreachable" => Outcome::Away(error.why()),
        Ok(Failure { error }) if UNFIT.contains(&&*error.kind) => Outcome::Unfit(error.why()),
        Ok(Failure { error }) => match error.throttle() {
            Some(throttle) => Outcome::Throttled(throttle),
            None => Outcome::Failed(error.why()),
        },
        Err(_) => {
            let code = code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
            Outcome::Failed(line(&format!("`agentd step` has ended with {code}: {stderr}")))
        }
    }
}

fn line(text: &str) -> String {
    excerpt(Line::new(text).as_str(), 400)
}

#[cfg(test)]
mod tests {
    use agentd_core::ids::ChangeId;

    use super::*;
    use crate::engine::Submission;

    /// Anyone who can push to `refs/agentd/queue` has written it.
    #[test]
    fn a_description_is_no_option() {
        let stepping = Stepping {
            agentd: PathBuf::from("agentd"),
            remote: "origin".to_owned(),
            trust: false,
            patience: 14,
        };
        let claim = Claim {
            change: ChangeId::new("add-oauth").unwrap(),
            submission: Submission {
                description: "--trust".to_owned(),
                priority: 1,
                budget_usd: None,
                auto: true,
            },
            agents: Vec::new(),
            look: false,
            sequence: 0,
            step: None,
            attempt: 1,
            orphaned: false,
            token: String::new(),
        };
        let words = stepping.words(&claim, &WorkerName::like("box"), 14, Some("--next"));
        let at = words.iter().position(|word| word == "--").unwrap();
        assert_eq!(words[at..], ["--", "add-oauth", "--trust"]);
        assert!(words[..at].iter().any(|word| word == "--next"));
        assert!(!words[..at].iter().any(|word| word == "--trust"), "{words:?}");
    }

    #[test]
    fn what_a_step_says_is_understood() {
        let error = |kind: &str| {
            format!(r#"{{"version":1,"error":{{"kind":"{kind}","message":"a\nb","cause":null}}}}"#)
        };
        let check = |code, stdout: &str, expected: &Outcome| {
            assert_eq!(&outcome_of(Some(code), stdout, "no"), expected, "{stdout}");
        };
        check(75, &error("claim_lost"), &Outcome::Lost);
        check(75, &error("claimed"), &Outcome::Busy("a b".to_owned()));
        check(1, &error("agent_failed"), &Outcome::Failed("a b".to_owned()));
        check(1, &error("agent_auth"), &Outcome::Unfit("a b".to_owned()));
        check(1, &error("remote_unreachable"), &Outcome::Away("a b".to_owned()));
        let full = error("store").replace("null", r#""no space\nleft""#);
        check(1, &full, &Outcome::Unfit("a b: no space left".to_owned()));
        let refused = |failure: &str, more: &str| {
            let error = r#"{"version":1,"error":{"kind":"agent_failed","message":"a\nb""#;
            format!(r#"{error},"agent":"codex","failure":"{failure}"{more}}}}}"#)
        };
        let throttle = |exhausted, retry_after: Option<u64>| {
            let retry_after = retry_after.map(Duration::from_millis);
            let (agent, why) = ("codex".to_owned(), "a b".to_owned());
            Outcome::Throttled(Throttle { agent, exhausted, retry_after, why })
        };
        check(1, &refused("rate_limited", ""), &throttle(false, None));
        let resets = r#","retry_after_ms":5000"#;
        check(1, &refused("quota_exhausted", resets), &throttle(true, Some(5000)));
        check(1, &refused("no_artifact", ""), &Outcome::Failed("a b".to_owned()));
        let ended = "`agentd step` has ended with code 1: no";
        check(1, "", &Outcome::Failed(ended.to_owned()));
        check(0, "x", &Outcome::Failed("`agentd step` has answered no report".to_owned()));
        let report = r#"{"version":1,"did":"tests","next":{"step":"review","role":"reviewer",
            "agent":"codex","vendor":"OpenAI","estimate_usd":0.5},"done":false,"cost_usd":1.5,"more":1}"#;
        let outcome = outcome_of(Some(0), report, "note: a\n\nwarning: b\n");
        let Outcome::Stepped { report, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(report.notes, ["note: a", "warning: b"]);
        let next = report.next.unwrap();
        assert_eq!((&*next.step, next.agent.as_deref()), ("review", Some("codex")));
        assert_eq!((next.estimate_usd, report.cost_usd), (0.5, 1.5));
    }
}
