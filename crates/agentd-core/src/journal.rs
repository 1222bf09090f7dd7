//! `journal.jsonl`: everything that counted in a change, as lines that only grow.
//!
//! Each line is a JSON object that names the line before it by digest, and ends with a digest of
//! itself, so a changed byte shows. That protects from accidents, not from somebody who writes the
//! whole file again. What protects from that is a copy where only agentd writes, which is the
//! engine's business. Here is the format, and how the files of a change compare with it.
//!
//! A line is written for each write of STATE.yaml. What happened follows from the state before and
//! after ([`events`]), so no caller can forget to record it.

mod compare;
mod record;
mod signature;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use crate::agent::AgentKind;
use crate::document::review::CodeVerdict;
use crate::document::review_block::PlanVerdict;
use crate::hash::Digest;
use crate::ids::ChangeId;
use crate::phase::Phase;
use crate::stamp::Stamp;
use crate::state::{Actor, Choice, GitSetup, LlmCall, State, Track};
use crate::step_name::StepName;
use crate::text::Line;

pub use compare::{Compared, Mismatch, Public, compare};
pub use record::{CodeClaim, PlanClaim, Record, TestClaim};
pub use signature::{NAMESPACE, Signature};

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The change began.
    Begun {},
    /// A state was found whose history agentd does not know.
    Adopted {
        /// Where it stood.
        phase: Phase,
        /// Who accepted it, where somebody was asked.
        #[serde(default, skip_serializing_if = "Line::is_empty")]
        by: Line,
    },
    /// An agent was called.
    Call {
        /// The number of its run file.
        #[serde(default)]
        run: Option<u32>,
        /// The step.
        step: StepName,
        /// The agent.
        #[serde(default)]
        agent: Option<AgentKind>,
        /// The model that answered.
        #[serde(default)]
        model: String,
        /// What it cost, in US dollars.
        cost: f64,
    },
    /// It became known what a call has cost that was cut short.
    Settled {
        /// The number of its run file.
        run: u32,
        /// What it cost, in US dollars.
        cost: f64,
    },
    /// A challenger gave a verdict on the plan.
    PlanReviewed {
        /// The verdict.
        verdict: PlanVerdict,
        /// The plan.
        plan: Digest,
        /// The review block in proposal.md.
        review: Option<Digest>,
        /// The run in which it was given.
        run: Option<u32>,
        /// Who gave it.
        reviewer: Option<Actor>,
        /// Who wrote the plan.
        #[serde(default)]
        authors: Vec<Actor>,
        /// Whether they are of different vendors.
        independent: Option<bool>,
    },
    /// agentd ran the tests.
    TestsRun {
        /// The command line.
        command: String,
        /// Its exit code; none where it was stopped.
        exit_code: Option<i32>,
        /// The files that were tested.
        tree: Option<Digest>,
        /// The files as the tests left them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree_after: Option<Digest>,
    },
    /// A reviewer gave a verdict on the code.
    CodeReviewed {
        /// The verdict.
        verdict: CodeVerdict,
        /// The files.
        tree: Option<Digest>,
        /// The plan.
        plan: Option<Digest>,
        /// REVIEW.md.
        review: Option<Digest>,
        /// The run in which it was given.
        run: Option<u32>,
        /// Who gave it.
        reviewer: Option<Actor>,
        /// Who wrote the code.
        #[serde(default)]
        authors: Vec<Actor>,
        /// Whether they are of different vendors.
        independent: Option<bool>,
    },
    /// A person decided.
    Decided {
        /// What.
        choice: Choice,
        /// Who.
        by: Line,
        /// Why.
        #[serde(default, skip_serializing_if = "Line::is_empty")]
        note: Line,
        /// About which plan.
        plan: Option<Digest>,
    },
    /// It was decided where in git the change is worked on.
    Placed {
        /// Where.
        git: GitSetup,
    },
    /// The change has another ID from here on. What entries before say of it stands.
    Renamed {
        /// The ID that it had.
        from: ChangeId,
        /// The one that it has now.
        to: ChangeId,
        /// Who renamed it.
        by: Line,
    },
    /// The change moved to another phase without a verdict.
    Moved {
        /// Where it stands now.
        phase: Phase,
    },
    /// Something else was recorded, such as a session or the complexity.
    Updated {},
}

/// The digests of documents, by their paths in the directory of the change.
pub type Files = BTreeMap<String, Digest>;

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its number, from 1.
    pub seq: u64,
    /// When.
    pub at: Stamp,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
    /// The digest of STATE.yaml after it.
    pub state: Digest,
    /// The digest of what counts in that state: phase, verdicts, decisions.
    pub claims: Digest,
    /// The documents as they were then, where they were read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: Files,
    /// The digest of the line before, with its signature; none in the first.
    pub prev: Option<Digest>,
    /// The signature of the person who wrote the line, where lines are signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sig: Option<Signature>,
}

/// Where a journal ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// The number of its last line; 0 where there is none.
    pub seq: u64,
    /// The digest of its last line.
    pub line: Option<Digest>,
}

/// A journal, read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Journal {
    /// Its lines.
    pub entries: Vec<Entry>,
    /// Where it ends.
    pub head: Head,
}

/// Why a text is not a journal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct Broken {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: &'static str,
}

const HASH: &str = ",\"hash\":\"";
/// What a line may have at most. The longest texts in it are notes and command lines.
const LONGEST_LINE: usize = 1 << 20;

/// Reads a journal. A last line without an end was cut short, and does not count.
pub fn parse(text: &str) -> Result<Journal, Broken> {
    let mut journal = Journal::default();
    let complete = text.rfind('\n').map_or("", |end| &text[..=end]);
    for (number, line) in (1..).zip(complete.lines()) {
        let broken = |why| Broken { line: number, why };
        let entry = parse_line(line).map_err(broken)?;
        if entry.seq != journal.head.seq + 1 {
            return Err(broken("its number does not follow the line before"));
        }
        if entry.prev != journal.head.line {
            return Err(broken("it does not name the line before"));
        }
        journal.head = Head { seq: entry.seq, line: Some(Digest::of(line)) };
        journal.entries.push(entry);
    }
    Ok(journal)
}

fn parse_line(line: &str) -> Result<Entry, &'static str> {
    if line.len() > LONGEST_LINE {
        return Err("it is too long");
    }
    let edited = "it was changed after it was written";
    let at = line.rfind(HASH).ok_or(edited)?;
    let expected = format!("{HASH}{}\"}}", Digest::of(&line[..at]));
    if line[at..] != expected {
        return Err(edited);
    }
    serde_json::from_str(&format!("{}}}", &line[..at])).map_err(|_| "it is not an entry")
}

impl Entry {
    /// The line of this entry, without its end.
    pub fn line(&self) -> String {
        let line = self.without_hash();
        let hash = Digest::of(&line);
        format!("{line}{HASH}{hash}\"}}")
    }

    /// What is signed: the digest of the line up to its signature. It covers the lines before,
    /// which it names, and STATE.yaml, which names the change.
    pub fn signed_text(&self) -> String {
        Digest::of(Self { sig: None, ..self.clone() }.without_hash()).to_string()
    }

    fn without_hash(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.pop();
        line
    }
}

impl Journal {
    /// The last entry.
    pub fn last(&self) -> Option<&Entry> {
        self.entries.last()
    }

    /// The documents as they were last recorded.
    pub fn files(&self) -> Option<(&Entry, &Files)> {
        let with_files = self.entries.iter().rfind(|entry| !entry.files.is_empty())?;
        Some((with_files, &with_files.files))
    }

    /// The digests of the reviews whose verdicts were taken.
    pub fn reviews(&self) -> BTreeSet<Digest> {
        let reviews = self.entries.iter().filter_map(|entry| match &entry.event {
            Event::PlanReviewed { review, .. } | Event::CodeReviewed { review, .. } => {
                review.clone()
            }
            _ => None,
        });
        reviews.collect()
    }

    /// The text of all entries.
    pub fn text(&self) -> String {
        self.entries.iter().map(|entry| entry.line() + "\n").collect()
    }
}

/// What counts in a state: whatever a verdict, a gate or the archive relies on.
pub fn claims(state: &State) -> Digest {
    let State { phase, plan_review, code_review, git, test_run, archived_from, decisions, .. } =
        state;
    let all = (phase, plan_review, code_review, git, test_run, archived_from, decisions);
    // Most changes are on the full track and keep their ID, as all of earlier versions.
    let is_plain = state.track == Track::Full && state.renamed.is_empty();
    let all = if is_plain {
        serde_json::to_string(&all)
    } else {
        // Also under which IDs a verdict was given.
        serde_json::to_string(&(all, state.track, &state.reproduction, &state.renamed))
    };
    let mut all = all.unwrap_or_default();
    // What an agent is given as a person's words.
    if let Some(question) = &state.question {
        all.push_str(&serde_json::to_string(question).unwrap_or_default());
    }
    Digest::of(all)
}

/// What happened between two states. There is always something: the state was written.
pub fn events(before: Option<&State>, after: &State) -> Vec<Event> {
    let Some(before) = before else { return vec![Event::Begun {}] };
    let mut events = Vec::new();
    for rename in after.renamed.iter().skip(before.renamed.len()) {
        let (from, to, by) = (&rename.from, &after.change_id, &rename.by);
        events.push(Event::Renamed { from: from.clone(), to: to.clone(), by: by.clone() });
    }
    // Calls of killed runs are sorted in by number, so a place says nothing; of those without a
    // number there are only ever more.
    let mut unnumbered = before.llm_calls.iter().filter(|call| call.run.is_none());
    let mut is_known = |call: &LlmCall| match call.run {
        Some(_) => before.llm_calls.iter().any(|old| old.run == call.run),
        None => unnumbered.next().is_some(),
    };
    for call in after.llm_calls.iter().filter(|call| !is_known(call)) {
        let (run, step, agent) = (call.run, call.step.clone(), call.agent);
        events.push(Event::Call { run, step, agent, model: call.model.clone(), cost: call.cost });
    }
    let settled = before.llm_calls.iter().filter(|call| call.unsettled).filter_map(|call| {
        let is_it = |now: &&LlmCall| now.run == call.run && !now.unsettled;
        let now = after.llm_calls.iter().find(is_it)?;
        Some(Event::Settled { run: now.run?, cost: now.cost })
    });
    events.extend(settled);
    if let Some(git) = after.git.as_ref().filter(|_| after.git != before.git) {
        events.push(Event::Placed { git: git.clone() });
    }
    if let Some(run) = after.test_run.as_ref().filter(|_| after.test_run != before.test_run) {
        events.push(Event::TestsRun {
            command: run.command.clone(),
            exit_code: run.exit_code,
            tree: run.tree.clone(),
            tree_after: run.tree_after.clone(),
        });
    }
    let mut judged = false;
    if let Some(review) =
        after.plan_review.as_ref().filter(|_| after.plan_review != before.plan_review)
    {
        judged = true;
        events.push(Event::PlanReviewed {
            verdict: review.verdict,
            plan: review.plan_hash.clone(),
            review: review.review_hash.clone(),
            run: review.run,
            reviewer: review.challenger.clone(),
            authors: review.authors.clone(),
            independent: review.independent,
        });
    }
    if let Some(review) =
        after.code_review.as_ref().filter(|_| after.code_review != before.code_review)
    {
        judged = true;
        events.push(Event::CodeReviewed {
            verdict: review.verdict,
            tree: review.tree.clone(),
            plan: review.plan_hash.clone(),
            review: review.review_hash.clone(),
            run: review.run,
            reviewer: review.reviewed_by.clone(),
            authors: review.authors.clone(),
            independent: review.independent,
        });
    }
    for decision in after.decisions.iter().skip(before.decisions.len()) {
        events.push(Event::Decided {
            choice: decision.choice,
            by: decision.by.clone(),
            note: decision.note.clone(),
            plan: decision.plan_hash.clone(),
        });
    }
    if after.phase != before.phase && !judged {
        events.push(Event::Moved { phase: after.phase });
    }
    if events.is_empty() {
        events.push(Event::Updated {});
    }
    events
}

/// The entries for these events, after a journal that ends at `head`. They are one write, so they
/// have one state, and the last of them has the documents. `sign` makes the signature of what an
/// entry is to have signed; none where lines are not signed.
pub fn entries<E>(
    head: &Head,
    events: Vec<Event>,
    state: &State,
    state_text: &str,
    files: &Files,
    at: Stamp,
    sign: impl Fn(&str) -> Result<Option<Signature>, E>,
) -> Result<Vec<Entry>, E> {
    let (state_hash, claims) = (Digest::of(state_text), claims(state));
    let count = events.len();
    let mut head = head.clone();
    let mut entries = Vec::new();
    for (index, event) in events.into_iter().enumerate() {
        let mut entry = Entry {
            seq: head.seq + 1,
            at,
            event,
            state: state_hash.clone(),
            claims: claims.clone(),
            files: if index + 1 == count { files.clone() } else { Files::new() },
            prev: head.line.take(),
            sig: None,
        };
        entry.sig = sign(&entry.signed_text())?;
        head = Head { seq: entry.seq, line: Some(Digest::of(entry.line())) };
        entries.push(entry);
    }
    Ok(entries)
}

/// For [`entries`] that are not signed.
pub fn unsigned(_: &str) -> Result<Option<Signature>, Infallible> {
    Ok(None)
}
