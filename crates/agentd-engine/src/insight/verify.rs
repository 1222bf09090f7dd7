//! What is proven about a change: each claim that its files make, held against its journal (T6).

use agentd_core::documents::Documents;
use agentd_core::hash::Digest;
use agentd_core::ids::ChangeId;
use agentd_core::journal::{self, Compared, Files, Record};
use agentd_core::phase::Phase;
use agentd_core::state::{Actor, Choice, State};
use agentd_core::text::counted;
use serde::Serialize;

use super::signatures::Signatures;
use crate::change::documents::DocumentError;
use crate::change::signing::AllowedSigners;
use crate::change::staleness::code_root;
use crate::change::tree::tree;
use crate::change::{Snapshot, journal as record};
use crate::git::GitTool;
use crate::store::{Change, Project};

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The journal shows it.
    Proven,
    /// The files say something else, or nothing shows it.
    NotProven,
    /// Nothing is claimed.
    NotClaimed,
}

/// One claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// What it is about.
    pub name: &'static str,
    /// Whether it holds.
    pub status: Status,
    /// What is claimed, or why it does not hold, in one line.
    pub text: String,
    /// The entry of the journal that shows it.
    pub entry: Option<u64>,
    /// Who signed that entry, where it was checked.
    pub signed_by: Option<String>,
}

/// What is proven about a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// The change.
    pub change_id: ChangeId,
    /// Where it stands.
    pub phase: Option<Phase>,
    /// Whether every claim holds.
    pub valid: bool,
    /// How many entries the journal has.
    pub entries: u64,
    /// The digest of its last line.
    pub head: Option<Digest>,
    /// Whether this machine wrote the journal, or knows it.
    pub known_here: bool,
    /// The signatures in the journal; none where there is no journal that could be read.
    pub signatures: Option<Signatures>,
    /// The claims.
    pub claims: Vec<Claim>,
}

/// How many decisions are listed; the journal has them all.
const SHOWN_DECISIONS: usize = 5;

fn claim(name: &'static str, status: Status, entry: Option<u64>, text: String) -> Claim {
    Claim { name, status, text, entry, signed_by: None }
}

/// Checks an open change, or an archived one. `signers`: the list that signatures are checked
/// against.
pub fn verify(
    project: &Project,
    change: &Change,
    signers: Option<&AllowedSigners>,
) -> Result<Verified, DocumentError> {
    let snapshot = change.snapshot()?;
    let state = snapshot.state_if_begun()?;
    let mut verified = Verified {
        change_id: change.id().clone(),
        phase: state.map(|state| state.phase),
        valid: false,
        entries: 0,
        head: None,
        known_here: false,
        signatures: None,
        claims: Vec::new(),
    };
    let Some(state) = state else {
        let text = "no workflow has run on it".to_owned();
        verified.claims.push(claim("journal", Status::NotProven, None, text));
        return Ok(verified);
    };
    let text = snapshot.documents.state.source().text().unwrap_or_default();
    // Other changes have come since it was archived, so the working tree says nothing about it.
    let in_archive = change.archived().is_some();
    let subject = Subject { project, snapshot: &snapshot, state, state_text: text, in_archive };
    let compared = match record::check(project, change, state, text) {
        Ok(Some(compared)) => compared,
        Ok(None) => {
            verified.claims = subject.claims_without_journal();
            return Ok(verified);
        }
        Err(DocumentError::Journal { source, .. }) => {
            verified.claims.push(claim("journal", Status::NotProven, None, source.to_string()));
            return Ok(verified);
        }
        Err(error) => return Err(error),
    };
    verified.entries = compared.journal.head.seq;
    verified.head.clone_from(&compared.journal.head.line);
    verified.known_here = compared.known_here;
    let said = Record::of(&compared.journal);
    let signatures = Signatures::of(&compared.journal, &said, signers)?;
    verified.claims = subject.claims(&compared, &said);
    for claim in &mut verified.claims {
        signatures.add_to(claim);
    }
    verified.claims.push(signatures.claim(&compared.journal));
    verified.signatures = Some(signatures);
    verified.valid = verified.claims.iter().all(|claim| claim.status != Status::NotProven);
    Ok(verified)
}

struct Subject<'s> {
    project: &'s Project,
    snapshot: &'s Snapshot,
    state: &'s State,
    state_text: &'s str,
    in_archive: bool,
}

impl Subject<'_> {
    fn claims(&self, compared: &Compared, said: &Record) -> Vec<Claim> {
        let tree = self.tree();
        vec![
            journal_claim(compared, said),
            self.documents(compared),
            self.plan(said),
            self.tests(said),
            self.code(said),
            self.files(said, tree.as_ref()),
            decisions(said),
        ]
    }

    /// What the state of a change from before journals claims, and nothing shows.
    fn claims_without_journal(&self) -> Vec<Claim> {
        let text = "there is none: the change is from before journals, or was made by hand";
        let nothing = Record::default();
        let decisions = match self.state.decisions.len() {
            0 => decisions(&nothing),
            count => {
                let text = format!("{}; nothing shows who decided", counted(count, "decision"));
                claim("decisions", Status::NotProven, None, text)
            }
        };
        vec![
            claim("journal", Status::NotProven, None, text.to_owned()),
            self.plan(&nothing),
            self.tests(&nothing),
            self.code(&nothing),
            decisions,
        ]
    }

    fn documents_read(&self) -> &Documents {
        &self.snapshot.documents
    }

    /// The documents, byte for byte as they were last recorded.
    fn documents(&self, compared: &Compared) -> Claim {
        let mut changed = Vec::new();
        let last = compared.journal.last();
        if last.is_none_or(|entry| entry.state != Digest::of(self.state_text)) {
            changed.push("STATE.yaml".to_owned());
        }
        let Some((entry, recorded)) = compared.journal.files() else {
            if changed.is_empty() {
                return claim(
                    "documents",
                    Status::NotClaimed,
                    None,
                    "none recorded yet".to_owned(),
                );
            }
            let text = "STATE.yaml was edited since it was recorded".to_owned();
            return claim("documents", Status::NotProven, None, text);
        };
        let now: Files = record::files(self.documents_read());
        let mut names: Vec<&String> = recorded.keys().chain(now.keys()).collect();
        names.sort();
        names.dedup();
        changed.extend(
            names.into_iter().filter(|name| recorded.get(*name) != now.get(*name)).cloned(),
        );
        if changed.is_empty() {
            let text = format!("{} as recorded", counted(recorded.len(), "document"));
            return claim("documents", Status::Proven, Some(entry.seq), text);
        }
        let text = format!("edited since they were recorded: {}", changed.join(", "));
        claim("documents", Status::NotProven, Some(entry.seq), text)
    }

    fn plan(&self, said: &Record) -> Claim {
        let Some(known) = &self.state.plan_review else {
            return claim("plan", Status::NotClaimed, None, "not reviewed yet".to_owned());
        };
        let label = known.verdict.label();
        let Some(plan) = &said.plan else {
            let text = format!("{label}: recorded before the journal began");
            return claim("plan", Status::NotProven, None, text);
        };
        let entry = Some(plan.seq);
        let by = by(plan.reviewer.as_ref(), &plan.authors, plan.independent);
        let block = |hash: &Digest| {
            self.documents_read().reviews().iter().any(|review| review.hash() == *hash)
        };
        if plan.review.as_ref().is_some_and(|hash| !block(hash)) {
            let text = format!("{label}{by}: its review in proposal.md is gone or was edited");
            return claim("plan", Status::NotProven, entry, text);
        }
        if plan.plan != self.documents_read().digest() {
            let text = format!("{label}{by}: of an earlier plan");
            return claim("plan", Status::NotProven, entry, text);
        }
        claim("plan", Status::Proven, entry, format!("{label}{by}, plan {}", plan.plan.short()))
    }

    fn tests(&self, said: &Record) -> Claim {
        let Some(tests) = &said.tests else {
            let (status, text) = match &self.state.test_run {
                Some(_) => (Status::NotProven, "recorded before the journal began"),
                None => (Status::NotClaimed, "none were run"),
            };
            return claim("tests", status, None, text.to_owned());
        };
        let entry = Some(tests.seq);
        let command = &tests.command;
        if tests.exit_code != Some(0) {
            let ended = tests
                .exit_code
                .map_or_else(|| "was stopped".to_owned(), |code| format!("exited with {code}"));
            return claim("tests", Status::NotProven, entry, format!("`{command}` {ended}"));
        }
        let reviewed = said.code.as_ref().and_then(|code| code.tree.as_ref());
        match reviewed {
            Some(tree) if !tests.trees.contains(tree) => {
                let text = format!("`{command}` passed, on other files than were reviewed");
                claim("tests", Status::NotProven, entry, text)
            }
            _ => {
                let tree = tests.trees.last().map(Digest::short).unwrap_or_default();
                let text = format!("`{command}` passed, tree {tree}");
                claim("tests", Status::Proven, entry, text)
            }
        }
    }

    fn code(&self, said: &Record) -> Claim {
        let Some(known) = &self.state.code_review else {
            return claim("code", Status::NotClaimed, None, "not reviewed yet".to_owned());
        };
        let label = known.verdict.label();
        let Some(code) = &said.code else {
            let text = format!("{label}: recorded before the journal began");
            return claim("code", Status::NotProven, None, text);
        };
        let entry = Some(code.seq);
        let by = by(code.reviewer.as_ref(), &code.authors, code.independent);
        let review = self.documents_read().review.text().map(Digest::of);
        if code.review.is_some() && code.review != review {
            let text = format!("{label}{by}: REVIEW.md is gone or was edited");
            return claim("code", Status::NotProven, entry, text);
        }
        if code.plan.as_ref().is_some_and(|plan| *plan != self.documents_read().digest()) {
            let text = format!("{label}{by}: for an earlier plan");
            return claim("code", Status::NotProven, entry, text);
        }
        let tree = code.tree.as_ref().map(Digest::short).unwrap_or_default();
        claim("code", Status::Proven, entry, format!("{label}{by}, tree {tree}"))
    }

    /// Whether the working tree is the one that was reviewed.
    fn files(&self, said: &Record, now: Option<&Digest>) -> Claim {
        let Some(code) = said.code.as_ref().filter(|code| code.tree.is_some()) else {
            return claim("tree", Status::NotClaimed, None, "nothing was reviewed".to_owned());
        };
        if self.in_archive {
            let text = "not compared: the change is archived".to_owned();
            return claim("tree", Status::NotClaimed, None, text);
        }
        let entry = Some(code.seq);
        match now {
            Some(now) if Some(now) == code.tree.as_ref() => {
                let text =
                    format!("the working tree is the one that was reviewed, {}", now.short());
                claim("tree", Status::Proven, entry, text)
            }
            Some(_) => {
                let text = "files were edited since they were reviewed".to_owned();
                claim("tree", Status::NotProven, entry, text)
            }
            None => {
                let text = "the working tree cannot be read".to_owned();
                claim("tree", Status::NotProven, entry, text)
            }
        }
    }

    fn tree(&self) -> Option<Digest> {
        if self.in_archive || self.state.code_review.is_none() {
            return None;
        }
        let root = code_root(self.project, self.state).ok()?;
        tree(&GitTool::default(), &root).ok()
    }
}

fn journal_claim(compared: &Compared, said: &Record) -> Claim {
    let count = usize::try_from(compared.journal.head.seq).unwrap_or(usize::MAX);
    let entries = if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") };
    let (status, known) = match (compared.known_here, compared.public) {
        (false, _) => (Status::Proven, "this machine did not write it"),
        (true, journal::Public::AsIs) => (Status::Proven, "as this machine wrote it"),
        // What counts is the copy, but nobody else has that.
        (true, journal::Public::OneShort | journal::Public::Changed) => (
            Status::NotProven,
            "but journal.jsonl was changed since; the next command that records something \
             restores it",
        ),
    };
    let begins = match said.adopted {
        Some((entry, phase)) => {
            format!("; entry {entry} took over a {phase} change whose history is not known")
        }
        None => String::new(),
    };
    let renamed = said.renamed.iter();
    let renamed: String = renamed
        .map(|(entry, from, by)| format!("; `{from}` until {by} renamed it in entry {entry}"))
        .collect();
    claim("journal", status, None, format!("{entries}, unbroken; {known}{begins}{renamed}"))
}

fn by(reviewer: Option<&Actor>, authors: &[Actor], independent: Option<bool>) -> String {
    let Some(reviewer) = reviewer else { return String::new() };
    let named = |actor: &Actor| {
        if actor.model.is_empty() {
            format!("{} ({})", actor.agent, actor.vendor)
        } else {
            format!("{} ({}, {})", actor.agent, actor.model, actor.vendor)
        }
    };
    let mut names: Vec<&str> = authors.iter().map(|author| author.agent.name()).collect();
    names.dedup();
    let of = match (independent, names.is_empty()) {
        (_, true) => String::new(),
        (Some(false), false) => format!(", NOT independent of {}", names.join(", ")),
        (Some(true), false) => format!(", independent of {}", names.join(", ")),
        // Nobody has compared them.
        (None, false) => format!(", written by {}", names.join(", ")),
    };
    format!(" by {}{of}", named(reviewer))
}

fn decisions(said: &Record) -> Claim {
    let Some((last, ..)) = said.decisions.last() else {
        return claim("decisions", Status::NotClaimed, None, "none".to_owned());
    };
    let name = |choice: Choice| {
        let name = serde_json::to_value(choice).unwrap_or_default();
        name.as_str().unwrap_or_default().to_owned()
    };
    let all = &said.decisions;
    let earlier = all.len().saturating_sub(SHOWN_DECISIONS);
    let shown =
        all.iter().skip(earlier).map(|(_, choice, by, _)| format!("{} by {by}", name(*choice)));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if earlier > 0 {
        text = format!("{earlier} earlier, then {text}");
    }
    claim("decisions", Status::Proven, Some(*last), text)
}
