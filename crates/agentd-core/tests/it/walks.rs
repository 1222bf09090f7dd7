//! W6: from wherever random commands, edits and kills lead a change, what agentd suggests is accepted,
//! and following it leads to the archive.
//!
//! The commands here are a model of the engine's: each gate that the core has is asked as the engine
//! asks it, agents say and write what a die says, and may be killed before they are done. Tests of the
//! program walk the same way with processes.

use agentd_core::description::detailed_enough;
use agentd_core::diagnostic::Severity;
use agentd_core::document::review::{self, CodeVerdict, Review};
use agentd_core::document::review_block::{self, Issue, PlanVerdict, ReviewBlock};
use agentd_core::document::tasks::Status;
use agentd_core::documents::{Documents, Source};
use agentd_core::hash::Digest;
use agentd_core::ids::{ChangeId, SpecId};
use agentd_core::layout::ChangeFile;
use agentd_core::phase::{Phase, Transition};
use agentd_core::span::Uncompared;
use agentd_core::stamp::Stamp;
use agentd_core::standing::{Course, Facts};
use agentd_core::state::{
    Asked, Choice, Decision, LlmCall, Reproduction, Revision, State, TestRun, Track,
};
use agentd_core::step_name::StepName;
use agentd_core::text::{Line, Prose};

/// How many actions a walk has before it goes home, and how many it may take to get there.
const STEPS: usize = 40;

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    /// Happens once in so many times.
    fn once_in(&mut self, times: u64) -> bool {
        self.roll(times) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        *self.among(all)
    }

    fn among<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.roll(all.len() as u64)).unwrap()]
    }
}

/// A change, and what is around it.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is true or not by itself")]
struct World {
    documents: Documents,
    state: Option<State>,
    /// The documents break rules.
    broken: bool,
    /// The files of the code, which the latest review was about.
    code: u32,
    reviewed_code: Option<u32>,
    /// People have commented on the code since it was fixed.
    commented: bool,
    /// STATE.yaml was edited.
    forged: bool,
    /// What agents do is cut short here.
    kill: bool,
    /// Agents succeed, and people answer: it goes home.
    goes_home: bool,
}

type Done = Result<(), String>;

fn now() -> Stamp {
    "2026-11-04T11:00:00Z".parse().unwrap()
}

fn spec() -> ChangeFile {
    ChangeFile::Spec(SpecId::new("a").unwrap())
}

fn issue(severity: Severity) -> Issue {
    Issue {
        number: 1,
        severity,
        title: Line::new("It"),
        location: Line::default(),
        description: Prose::new("It is."),
        recommendation: Prose::default(),
    }
}

/// The tests ended with this code.
fn tested(code: i32) -> TestRun {
    TestRun {
        command: "test".to_owned(),
        exit_code: Some(code),
        output_tail: Prose::default(),
        duration_ms: 1,
        at: now(),
        tree: None,
        tree_after: None,
    }
}

fn refused(why: &str) -> Done {
    Err(why.to_string())
}

impl World {
    fn new(dice: &mut Dice) -> Self {
        let id = ChangeId::new("add-oauth").unwrap();
        let documents = Documents::read(id.clone(), []);
        let vague = dice.once_in(2);
        let words =
            if vague { "Make it better".to_owned() } else { "word ".repeat(80) + "src/a.rs `x`" };
        let mut state = State::new(id, &words, now());
        state.track = dice.of(&[Track::Full, Track::Full, Track::Quick, Track::Bug]);
        let adopted = dice.once_in(8);
        let mut world = Self {
            documents,
            state: (!adopted).then_some(state),
            broken: false,
            code: 0,
            reviewed_code: None,
            commented: false,
            forged: false,
            kill: false,
            goes_home: false,
        };
        if adopted {
            world.write_proposal(dice);
        }
        world
    }

    fn course(&self) -> Course {
        let code_is_stale = self.reviewed_code.is_some_and(|seen| seen != self.code);
        let facts = Facts {
            documents: &self.documents,
            state: self.state.as_ref(),
            high: usize::from(self.broken || !self.is_whole()),
            is_running: false,
            record_differs: self.forged,
            code_is_stale,
            new_code_comments: usize::from(self.commented),
            archived: None,
        };
        facts.course()
    }

    fn state(&mut self) -> &mut State {
        self.state.as_mut().unwrap()
    }

    fn put(&mut self, file: &ChangeFile, text: String) {
        self.documents = self.documents.with(file, Source::Text(text));
    }

    fn call(&mut self, step: &StepName) -> u32 {
        let run = u32::try_from(self.state().llm_calls.len()).unwrap() + 1;
        let call = serde_json::json!({"step": step, "run": run});
        let call: LlmCall = serde_json::from_value(call).unwrap();
        self.state().llm_calls.push(call);
        run
    }

    /// An agent may ask a person instead of doing its step.
    fn asks(&mut self, step: &StepName, dice: &mut Dice) -> bool {
        if self.goes_home || !dice.once_in(6) {
            return false;
        }
        let asked = Asked { question: Prose::new("Which one?"), choices: Vec::new() };
        self.call(step);
        let mut call = self.state().llm_calls.pop().unwrap();
        let asks = self.state().take_question(&mut call, Some(asked), now());
        self.state().llm_calls.push(call);
        asks
    }

    fn is_clear(&self) -> bool {
        let state = self.state.as_ref().unwrap();
        self.documents.has(&ChangeFile::Clarifications)
            || state.track != Track::Full
            || state.llm_calls.iter().any(|call| call.asked)
            || state.description.as_ref().is_some_and(|text| detailed_enough(text.as_str()))
    }

    fn is_whole(&self) -> bool {
        [ChangeFile::Proposal, spec(), ChangeFile::Tasks].iter().all(|it| self.documents.has(it))
    }

    fn write_proposal(&mut self, dice: &mut Dice) {
        let text = format!(
            "# Change: x\n\n## Summary\n\nText {}.\n\n## Why\n\nW.\n\n## What Changes\n\n- A\n\n\
             ## Impact\n\n- Affected specs: `a`\n",
            dice.roll(1 << 40)
        );
        self.put(&ChangeFile::Proposal, text);
        if let Some(state) = &mut self.state {
            state.session_id = (!dice.once_in(6)).then(|| "session".to_owned());
        }
    }

    fn write_tasks(&mut self) {
        let task = |n: u32| {
            format!(
                "### Task 2.{n}: Do it\n\n```yaml\nid: \"2.{n}\"\naction: CREATE\nfile: src/{n}\n\
                 spec_ref: \"a\"\ndepends_on: []\nstatus: pending\n```\n\nDo it.\n\n"
            )
        };
        let text = format!("# Tasks\n\n## 2. Logic Layer\n\n{}\n{}", task(1), task(2));
        self.put(&ChangeFile::Tasks, text);
        assert_eq!(self.documents.tasks.value().tasks.len(), 2);
    }

    fn tick(&mut self, status: Status) {
        let (from, to) = match status {
            Status::Done => ("status: pending", "status: done"),
            Status::Pending => ("status: done", "status: pending"),
        };
        let text = self.documents.tasks.text().unwrap_or_default();
        let text = if self.kill { text.replacen(from, to, 1) } else { text.replace(from, to) };
        self.put(&ChangeFile::Tasks, text);
    }

    fn has_open_tasks(&self) -> bool {
        self.documents.tasks.value().tasks.iter().any(|task| task.status == Status::Pending)
    }

    /// Makes the documents valid.
    fn repair(&mut self) {
        self.broken = false;
        if !self.documents.has(&ChangeFile::Tasks) {
            self.write_tasks();
        }
    }

    /// The plan says something else: a planner or a person was at work.
    fn change_plan(&mut self, dice: &mut Dice) {
        let Some(text) = self.documents.proposal.text() else { return };
        let text = text.replacen("Text ", &format!("Text {}", dice.roll(10)), 1);
        self.put(&ChangeFile::Proposal, text);
    }
}

/// The commands.
impl World {
    /// Runs a command line as a person would.
    fn run(&mut self, line: &str, dice: &mut Dice) -> Done {
        let words: Vec<&str> = line.split(' ').collect();
        let has = |word: &str| words.contains(&word);
        // Only these adopt a plan without a state.
        let adopts = matches!(words[1], "plan" | "challenge" | "validate" | "show" | "log");
        if self.state.is_none() && !adopts {
            return refused("no state");
        }
        // While a question waits, no agent is called, and nothing else is done.
        let asks = self.state.as_ref().is_some_and(|state| state.open_question().is_some());
        let calls = ["plan", "challenge", "reproposal", "impl", "review", "fix"];
        if asks && calls.contains(&words[1]) {
            return self.known();
        }
        match words[1] {
            "plan" => self.plan(has("--auto"), has("--skip-clarify"), dice),
            "clarify" => self.clarify(),
            "challenge" => self.challenge(dice),
            "reproposal" => self.repropose(has("--fresh"), dice),
            "decide" if asks && words.len() > 3 => refused("answer first"),
            "decide" if asks => {
                assert!(self.state().answer("As you like", "me", now()));
                Ok(())
            }
            "decide" => self.decide(words.get(3).copied().unwrap_or_default()),
            "revise" => self.revise(if words.len() > 3 { "Other" } else { "" }),
            "impl" => self.implement(dice),
            "review" => self.review(dice),
            "fix" => self.fix(dice),
            "archive" => self.archive(),
            "unarchive" => self.apply(&Transition::Unarchived),
            "verify" => {
                // People restore what was edited.
                self.forged = false;
                Ok(())
            }
            "validate" => {
                // People correct what it finds.
                if self.goes_home {
                    self.repair();
                }
                Ok(())
            }
            "show" => {
                // People edit a plan that cannot go on as it is.
                if self.goes_home {
                    self.change_plan(dice);
                }
                Ok(())
            }
            "log" => Ok(()),
            other => refused(&format!("no such command: {other}")),
        }
    }

    fn apply(&mut self, transition: &Transition) -> Done {
        let next = self.state().apply(transition).map_err(|refused| refused.to_string())?;
        self.state = Some(next);
        Ok(())
    }

    fn known(&self) -> Done {
        if self.forged { refused("state_edited") } else { Ok(()) }
    }

    fn clarify(&mut self) -> Done {
        if !matches!(self.state().phase, Phase::Proposed | Phase::Rejected) {
            return refused("past planning");
        }
        self.put(&ChangeFile::Clarifications, "# Clarifications\n".to_owned());
        Ok(())
    }

    fn plan(&mut self, auto: bool, skip: bool, dice: &mut Dice) -> Done {
        if self.state.is_none() {
            if self.documents.proposal.value().summary.is_empty() {
                return refused("no description");
            }
            self.state = Some(State::new(self.documents.id.clone(), "Adopted", now()));
        }
        self.known()?;
        let phase = self.state().phase;
        let plan = self.documents.digest();
        let edited = self.state().plan_review.as_ref().is_none_or(|r| r.plan_hash != plan);
        match phase {
            Phase::Proposed => {}
            Phase::Challenged | Phase::Rejected if edited => return self.judge(auto, dice),
            _ => return Ok(()),
        }
        let has_proposal = self.documents.has(&ChangeFile::Proposal);
        if !has_proposal && !self.is_clear() && !skip {
            return refused("clarifications missing");
        }
        if !has_proposal {
            if self.asks(&StepName::ProposalGen, dice) {
                return Ok(());
            }
            self.write_proposal(dice);
            if self.kill {
                return Ok(());
            }
        }
        if !self.documents.has(&spec()) {
            self.put(&spec(), "# Specification: A\n".to_owned());
            if self.kill {
                return Ok(());
            }
        }
        let writes = !self.documents.has(&ChangeFile::Tasks);
        if writes {
            self.write_tasks();
        }
        if self.kill {
            return Ok(());
        }
        let rest = self.go_on(auto, dice);
        // It has done its part, even if it could not do all of it.
        if writes { Ok(()) } else { rest }
    }

    /// Goes on with a plan that is whole.
    fn go_on(&mut self, auto: bool, dice: &mut Dice) -> Done {
        let mut revises = false;
        if self.state().revision.as_ref().is_some_and(|it| !it.note.is_empty()) {
            self.repropose(auto || self.goes_home, dice)?;
            revises = true;
            if self.state().open_question().is_some() {
                return Ok(());
            }
        }
        let state = self.state.clone().unwrap();
        let judged = match self.documents.counted_review(&state).map(|review| review.verdict) {
            None if state.may_be_challenged(&self.documents.digest()).is_err() => Ok(()),
            None | Some(PlanVerdict::Approved) => self.judge(auto, dice),
            Some(PlanVerdict::NeedsRevision) => {
                let decided = state.last_decision().map(|made| made.choice);
                if !auto && decided != Some(Choice::Fix) {
                    return Ok(());
                }
                self.repropose(auto, dice)?;
                revises = true;
                if self.state().open_question().is_some() {
                    return Ok(());
                }
                self.judge(auto, dice)
            }
            Some(PlanVerdict::Rejected) => Ok(()),
        };
        if revises { Ok(()) } else { judged }
    }

    fn judge(&mut self, auto: bool, dice: &mut Dice) -> Done {
        // The planner repairs the format where nobody is asked.
        let before = self.documents.digest();
        if auto {
            self.repair();
        }
        let plan = self.documents.digest();
        // What was edited may now be what it was.
        if plan != before && self.state().may_be_challenged(&plan).is_err() {
            return Ok(());
        }
        self.challenge(dice)
    }

    fn challenge(&mut self, dice: &mut Dice) -> Done {
        self.known()?;
        if self.state.is_none() {
            self.plan(false, true, &mut Dice(7))?;
        }
        if !self.is_whole() || self.broken {
            return refused("format_invalid");
        }
        let plan = self.documents.digest();
        let state = self.state.clone().unwrap();
        state.may_be_challenged(&plan).map_err(|refused| refused.to_string())?;
        let known = self.documents.counted_review(&state);
        if known.is_some_and(|known| known.verdict == PlanVerdict::Approved) {
            let known = state.plan_review.unwrap();
            let (verdict, reviewer, at) = (known.verdict, known.reviewer.clone(), known.at);
            self.apply(&Transition::PlanReviewed { verdict, plan, reviewer, at })?;
            self.state().plan_review = Some(known);
            return Ok(());
        }
        if self.kill {
            return Ok(());
        }
        let all = [PlanVerdict::Approved, PlanVerdict::NeedsRevision, PlanVerdict::Rejected];
        let verdict = if self.goes_home { PlanVerdict::Approved } else { dice.of(&all) };
        let severity = dice.of(&[Severity::High, Severity::Low]);
        let is_fine = verdict == PlanVerdict::Approved;
        let issues = if is_fine { Vec::new() } else { vec![issue(severity)] };
        let block = ReviewBlock {
            iteration: u32::try_from(self.documents.reviews().len()).unwrap() + 1,
            reviewer: Line::new(dice.of(&["codex", "builtin"])),
            date: Some(now()),
            plan: Some(plan.clone()),
            verdict,
            summary: Prose::new("So."),
            previous: Vec::new(),
            issues,
            place: Uncompared::default(),
        };
        let text = review_block::append(self.documents.proposal.text().unwrap(), &block);
        self.put(&ChangeFile::Proposal, text);
        let (reviewer, at) = (block.reviewer.clone(), now());
        self.apply(&Transition::PlanReviewed { verdict, plan, reviewer, at })?;
        self.state().plan_review.as_mut().unwrap().review_hash = Some(block.hash());
        Ok(())
    }

    fn repropose(&mut self, fresh: bool, dice: &mut Dice) -> Done {
        self.known()?;
        if self.state().phase != Phase::Proposed {
            return refused("cannot be revised");
        }
        let asked = self.state().revision.as_ref().is_some_and(|it| !it.note.is_empty());
        let review = self.documents.reviews().last();
        let wanted = review.is_some_and(|review| {
            review.verdict != PlanVerdict::Approved || !review.issues.is_empty()
        });
        if !asked && !wanted {
            return refused("no review");
        }
        if !fresh && self.state().session_id.is_none() {
            return refused("session not stored");
        }
        if self.asks(&StepName::Reproposal, dice) {
            return Ok(());
        }
        self.change_plan(dice);
        if self.kill {
            return Ok(());
        }
        self.state().session_id = Some("session".to_owned());
        self.state().iteration += 1;
        if let Some(revision) = &mut self.state().revision {
            revision.note = Line::default();
        }
        Ok(())
    }

    fn decide(&mut self, choice: &str) -> Done {
        let state = self.state.clone().unwrap();
        let review = self.documents.counted_review(&state);
        let waits = review.is_some_and(|review| review.verdict == PlanVerdict::NeedsRevision);
        if state.phase != Phase::Proposed || !waits {
            return refused("nothing to decide");
        }
        let plan = self.documents.digest();
        let choice = match choice {
            "fix" => Choice::Fix,
            "accept" => {
                let left = review.map(ReviewBlock::counts).unwrap_or_default();
                self.apply(&Transition::MinorIssuesAccepted { plan: plan.clone(), left })?;
                Choice::Accept
            }
            _ => Choice::Stop,
        };
        let (note, by, plan_hash) = (Line::default(), Line::new("me"), Some(plan));
        self.state().decisions.push(Decision { choice, note, by, at: now(), plan_hash });
        Ok(())
    }

    fn revise(&mut self, note: &str) -> Done {
        let whole = self.documents.has(&ChangeFile::Tasks);
        if !(self.state().phase == Phase::Proposed && !note.is_empty() && whole) {
            self.apply(&Transition::Reopened)?;
        }
        let note = Line::new(note);
        let revision = Revision { note, after_run: 0, built: None, built_hash: None };
        self.state().revision = Some(revision);
        self.state().question = None;
        Ok(())
    }

    fn is_approved(&mut self) -> Done {
        self.known()?;
        let plan = self.documents.digest();
        let started = self.state().apply(&Transition::ImplementationStarted { plan });
        started.map(|_| ()).map_err(|refused| refused.to_string())
    }

    fn implement(&mut self, dice: &mut Dice) -> Done {
        self.is_approved()?;
        let plan = self.documents.digest();
        self.apply(&Transition::ImplementationStarted { plan })?;
        self.state().revision = None;
        let state = self.state();
        if state.track == Track::Bug && state.reproduction.is_none() {
            state.reproduction = Some(Reproduction { run: tested(1), files: Vec::new() });
        }
        if self.has_open_tasks() {
            let step = StepName::of("implement-logic");
            if self.asks(&step, dice) {
                return Ok(());
            }
            self.code += 1;
            self.call(&step);
            self.tick(Status::Done);
        }
        if self.kill || self.has_open_tasks() {
            return Ok(());
        }
        self.review(dice)
    }

    fn review(&mut self, dice: &mut Dice) -> Done {
        self.is_approved()?;
        if self.state().phase != Phase::Implementing {
            return refused("change not ready");
        }
        if self.has_open_tasks() {
            return refused("tasks left");
        }
        let run = self.call(&StepName::Review);
        if self.kill {
            return Ok(());
        }
        let all = [CodeVerdict::Approved, CodeVerdict::NeedsFix, CodeVerdict::MajorIssues];
        let verdict = if self.goes_home { CodeVerdict::Approved } else { dice.of(&all) };
        self.state().test_run = Some(tested(0));
        let reviewer = Line::new("codex");
        self.apply(&Transition::CodeReviewed { verdict, reviewer, at: now() })?;
        let mut found = Review { verdict: Some(verdict), ..review::parse("").value };
        if verdict != CodeVerdict::Approved {
            found.issues = vec![issue(Severity::High)];
        }
        let text = review::render(&found);
        let known = self.state().code_review.as_mut().unwrap();
        (known.run, known.review_hash) = (Some(run), Some(Digest::of(&text)));
        self.put(&ChangeFile::Review, text);
        self.reviewed_code = Some(self.code);
        Ok(())
    }

    fn fix(&mut self, dice: &mut Dice) -> Done {
        if self.commented && self.state().phase == Phase::Complete {
            self.known()?;
            let plan = self.documents.digest();
            self.apply(&Transition::CodeReopened { plan })?;
        }
        self.is_approved()?;
        if self.state().phase != Phase::Implementing {
            return refused("change not ready");
        }
        let text = self.documents.review.text().map(Digest::of);
        let known = self.state().code_review.as_ref().and_then(|it| it.review_hash.clone());
        let found = self.documents.review.value_if_there();
        let asks = text.is_some() && text == known && found.is_some_and(|it| !it.issues.is_empty());
        if !asks && !self.commented {
            return refused("no review");
        }
        if self.asks(&StepName::Fix, dice) {
            return Ok(());
        }
        self.code += 1;
        self.call(&StepName::Fix);
        self.commented &= self.kill;
        Ok(())
    }

    fn archive(&mut self) -> Done {
        self.known()?;
        let plan = self.documents.digest();
        let state = self.state.clone().unwrap();
        let stale = state.plan_review.as_ref().is_none_or(|it| it.plan_hash != plan)
            || self.reviewed_code.is_some_and(|seen| seen != self.code);
        if state.phase == Phase::Complete && stale {
            return refused("review stale");
        }
        self.apply(&Transition::Archived { forced: false })
    }
}

/// What happens at random.
const COMMANDS: [&str; 18] = [
    "agentd plan x",
    "agentd plan x --auto",
    "agentd plan x --skip-clarify",
    "agentd clarify x",
    "agentd challenge x",
    "agentd reproposal x",
    "agentd reproposal x --fresh",
    "agentd decide x",
    "agentd decide x fix",
    "agentd decide x accept",
    "agentd decide x stop",
    "agentd revise x",
    "agentd revise x Other",
    "agentd impl x",
    "agentd review x",
    "agentd fix x",
    "agentd archive x",
    "agentd unarchive x",
];

/// A person, or somebody else, edits files.
fn edit(world: &mut World, dice: &mut Dice) {
    match dice.roll(11) {
        0 | 1 => world.change_plan(dice),
        2 => world.broken = world.is_whole(),
        3 => world.broken = false,
        4 => world.code += 1,
        5 => world.forged = world.state.is_some(),
        6 if world.documents.has(&ChangeFile::Tasks) => world.tick(Status::Pending),
        7 => world.documents = world.documents.with(&ChangeFile::Tasks, Source::Missing),
        8 => world.documents = world.documents.with(&ChangeFile::Review, Source::Missing),
        9 => {
            if let Some(text) = world.documents.proposal.text() {
                let text = review_block::without(text);
                world.put(&ChangeFile::Proposal, text);
            }
        }
        10 => world.commented = true,
        _ => world.forged = false,
    }
}

/// Checks that every command that is suggested would be accepted.
fn suggestions_hold(world: &World, path: &[String], dice: &mut Dice) {
    let course = world.course();
    assert!(!course.next.is_empty(), "a dead end: {course:?}\n{path:#?}");
    for next in &course.next {
        let ran = world.clone().run(&next.to_string(), dice);
        assert_eq!(ran, Ok(()), "{next} ({course:?})\n{path:#?}");
    }
}

fn walk(seed: u64) -> usize {
    let dice = &mut Dice((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut world = World::new(dice);
    let mut path = Vec::new();
    let length = dice.roll(STEPS as u64);
    for _ in 0..length {
        world.kill = dice.once_in(4);
        let done = match dice.roll(4) {
            0 => {
                edit(&mut world, dice);
                "an edit".to_owned()
            }
            1 => {
                let command = dice.of(&COMMANDS);
                format!("{command}: {:?}", world.run(command, dice))
            }
            _ => {
                let next = world.course().next;
                let command = dice.among(&next).to_string();
                format!("{command}: {:?}", world.run(&command, dice))
            }
        };
        path.push(done);
        world.kill = false;
        suggestions_hold(&world, &path, dice);
        if world.state.as_ref().is_some_and(|state| state.phase == Phase::Archived) {
            break;
        }
    }
    // From here on agents succeed, and people do what is asked of them.
    world.goes_home = true;
    for step in 0..STEPS {
        if world.state.as_ref().is_some_and(|state| state.phase == Phase::Archived) {
            return step;
        }
        let next = world.course().next[0].to_string();
        path.push(next.clone());
        assert_eq!(world.run(&next, dice), Ok(()), "{next}\n{path:#?}");
        suggestions_hold(&world, &path, dice);
    }
    panic!("it never arrives: {:?}\n{path:#?}", world.course());
}

#[test]
fn suggested_commands_lead_home_from_wherever_one_is() {
    let longest = (0..300).map(walk).max().unwrap();
    assert!(longest > 5, "{longest}");
}

/// The bar of issue 16. Two threads, for which the runner keeps two cores free.
#[test]
fn heavy_twenty_thousand_walks_lead_home() {
    let run = |start: u64| {
        (start..20_300).step_by(2).for_each(|seed| {
            walk(seed);
        });
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(301));
        run(300);
        other.join().unwrap();
    });
}
