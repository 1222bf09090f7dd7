//! Documents of a project on disk: what validation finds where, and a state that is never lost.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Stdio};
use std::thread;

use agentd_core::check::{self, Extras, FileReport};
use agentd_core::diagnostic::Severity;
use agentd_core::document::review_block::{self, Issue, PlanVerdict, ReviewBlock};
use agentd_core::layout::ChangeFile;
use agentd_core::phase::{Phase, Transition};
use agentd_core::span::line_column;
use agentd_core::stamp::Stamp;
use agentd_core::state::LastAction;
use agentd_core::state::{self, Choice, Decision, State};
use agentd_core::text::Line;
use agentd_engine::change::documents::{self, DocumentError, load_state, update_state};
use agentd_engine::insight::validate::validate_all;
use agentd_engine::store::Project;
use agentd_engine::workflow::decisions::{NewDecision, PlanChoice, decide};

use test_project::{TestProject, contents, now};

use super::{child, child_project, holder, id, sandbox};

const PROPOSAL: &str = "---\nid: mine\ntype: proposal\naffected_specs: [auth-flow]\n---\n\n# Change: mine\n\n## Summary\n\nSign in.\n\n\
                        ## Why\n\nAsked for.\n\n## What Changes\n\n- A form\n\n## Impact\n\n- **Scope**: minor\n";
const SPEC: &str = "---\nid: auth-flow\ntype: spec\n---\n\n# Specification: Auth\n\n## Overview\n\nSigning in.\n\n\
                    ## Requirements\n\n### R1: Wrong password\n\nThe server MUST return 401.\n\n\
                    ## Acceptance Criteria\n\n### Scenario: Wrong password\n\n- **WHEN** it is wrong\n- **THEN** the answer is 401\n";
const TASKS: &str = "---\nchange_id: mine\ntype: tasks\n---\n\n# Tasks: mine\n\n## 1. Data Layer\n\n### Task 1.1: Do\n\n\
                     ```yaml\naction: CREATE\nfile: src/a.rs\nspec_ref: \"auth-flow:R1\"\n```\n\nDo it.\n";
const DIR: &str = "agentd/changes/mine";

fn write(project: &Project, path: &str, bytes: impl AsRef<[u8]>) {
    let path = project.root().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A project with a valid change `mine` and a valid main spec.
fn planned() -> (TestProject, Project) {
    let (dir, project) = sandbox();
    write(&project, &format!("{DIR}/proposal.md"), PROPOSAL);
    write(&project, &format!("{DIR}/specs/auth-flow.md"), SPEC);
    write(&project, &format!("{DIR}/tasks.md"), TASKS);
    write(
        &project,
        &format!("{DIR}/STATE.yaml"),
        state::render(&State::new(id("mine"), "", now())),
    );
    write(&project, "agentd/specs/auth-flow.md", SPEC);
    (dir, project)
}

fn lines(reports: &[FileReport]) -> Vec<String> {
    let line = |report: &FileReport, span_start, code: &str| {
        let (line, column) = line_column(&report.text, span_start);
        format!("{}:{line}:{column} {code}", report.file.path())
    };
    let of = |report: &FileReport| -> Vec<String> {
        report.diagnostics.iter().map(|d| line(report, d.span.start, d.rule.code)).collect()
    };
    reports.iter().flat_map(of).collect()
}

/// What is found in the change alone, and in the whole project.
fn check(project: &Project, change: &[&str], all: &[&str]) {
    let mine = project.change(&id("mine")).unwrap();
    let found = mine.snapshot().unwrap().findings(project, &Extras::default());
    assert_eq!(lines(&found), change);
    let found = validate_all(project, &Extras::default()).unwrap();
    assert_eq!(lines(&found.reports), all);
}

#[test]
fn findings_are_in_their_own_files() {
    let (_dir, project) = planned();
    check(&project, &[], &[]);
    write(&project, &format!("{DIR}/tasks.md"), TASKS.replace("src/a.rs", "/etc/passwd"));
    write(&project, "agentd/specs/auth-flow.md", SPEC.replace("401.\n", "401 fast.\n"));
    write(&project, "agentd/changes/other/proposal.md", PROPOSAL.replace("[auth-flow]", "[]"));
    let tasks = "agentd/changes/mine/tasks.md:14:7 T012";
    let all = [
        tasks,
        "agentd/changes/other/proposal.md:2:1 F007",
        "agentd/changes/other/tasks.md:1:1 F009",
        "agentd/specs/auth-flow.md:16:28 Q001",
    ];
    check(&project, &[tasks], &all);
    let validated = validate_all(&project, &Extras::default()).unwrap();
    assert_eq!((validated.changes, validated.specs), (2, 1));
}

/// A reference may be to a main spec that the change itself does not touch.
#[test]
fn references_reach_the_main_specs() {
    let (_dir, project) = planned();
    write(&project, "agentd/specs/session.md", SPEC.replace("auth-flow", "session"));
    let refs = |to: &str| {
        TASKS.replace("\"auth-flow:R1\"", &format!("[\"auth-flow:R1\", \"session:{to}\"]"))
    };
    write(&project, &format!("{DIR}/tasks.md"), refs("R1"));
    check(&project, &[], &[]);
    write(&project, &format!("{DIR}/tasks.md"), refs("R2"));
    let dangling = ["agentd/changes/mine/tasks.md:15:29 T008"];
    check(&project, &dangling, &dangling);
}

#[test]
fn what_cannot_be_read_is_a_finding() {
    let (_dir, project) = planned();
    let path = project.root().join(format!("{DIR}/proposal.md"));
    fs::File::create(&path).unwrap().set_len(100 << 20).unwrap();
    let mut bytes = TASKS.as_bytes().to_vec();
    bytes[100] = 0xff;
    write(&project, &format!("{DIR}/tasks.md"), &bytes);
    write(&project, "agentd/specs/auth-flow.md", b"\x80");
    let mine =
        ["agentd/changes/mine/proposal.md:1:1 F001", "agentd/changes/mine/tasks.md:1:1 F001"];
    check(&project, &mine, &[mine[0], mine[1], "agentd/specs/auth-flow.md:1:1 F001"]);
    let change = project.change(&id("mine")).unwrap();
    let reports = change.snapshot().unwrap().findings(&project, &Extras::default());
    let messages: Vec<&str> = reports.iter().map(|r| r.diagnostics[0].message.as_str()).collect();
    let expected = [
        "`agentd/changes/mine/proposal.md` has 104857600 bytes; the limit is 8388608",
        "`agentd/changes/mine/tasks.md` is not valid UTF-8: bad byte at offset 100",
    ];
    assert_eq!(messages, expected);
}

/// Whatever is in STATE.yaml: if it cannot be read, it stays, byte for byte.
#[test]
fn a_state_that_cannot_be_read_is_never_overwritten() {
    let other = state::render(&State::new(id("other"), "", now()));
    let good = state::render(&State::new(id("mine"), "", now()));
    let cases: [&[u8]; 6] = [
        b"",
        b"phase: proposed\n",
        other.as_bytes(),
        &good.as_bytes()[..good.len() / 3],
        b"\xff\xfe",
        b"change_id: mine\nphase: proposed\nsurprise: 1\n",
    ];
    for bytes in cases {
        let (_dir, project) = planned();
        write(&project, &format!("{DIR}/STATE.yaml"), bytes);
        let update = update_state(&project, &id("mine"), &holder("test"), now(), |state| {
            state.iteration += 1;
            Ok(())
        });
        assert!(update.is_err());
        for choice in [PlanChoice::Fix, PlanChoice::Accept, PlanChoice::Stop] {
            let error = decide(&project, &id("mine"), &by_me(choice, ""), &holder("test"), now())
                .unwrap_err();
            assert!(
                matches!(error, DocumentError::State { .. } | DocumentError::Store(_)),
                "{error}"
            );
        }
        assert_eq!(fs::read(project.root().join(format!("{DIR}/STATE.yaml"))).unwrap(), bytes);
        let found = validate_all(&project, &Extras::default()).unwrap();
        let codes: Vec<&str> = found.reports[0].diagnostics.iter().map(|d| d.rule.code).collect();
        let expected = if bytes == b"\xff\xfe" { "F001" } else { "F010" };
        assert_eq!((found.reports.len(), codes.as_slice()), (1, [expected].as_slice()));
    }
}

#[test]
fn a_failed_update_writes_nothing_and_a_good_one_sets_the_time() {
    let (_dir, project) = planned();
    let before = contents(&project.root().join(DIR));
    let refused = update_state(&project, &id("mine"), &holder("test"), now(), |state| {
        state.iteration = 7;
        *state = state.apply(&Transition::Unarchived)?;
        Ok(())
    });
    assert!(matches!(refused, Err(DocumentError::Refused(_))));
    assert_eq!(contents(&project.root().join(DIR)), before);
    let later: Stamp = "2026-02-02T00:00:00Z".parse().unwrap();
    let update = |state: &mut State| {
        state.iteration = 7;
        Ok(state.iteration)
    };
    assert_eq!(update_state(&project, &id("mine"), &holder("test"), later, update).unwrap(), 7);
    let expected =
        State { iteration: 7, updated_at: Some(later), ..State::new(id("mine"), "", now()) };
    assert_eq!(load_state(&project.change(&id("mine")).unwrap()).unwrap(), expected);
    assert!(matches!(
        documents::load_state(&project.create_change(&id("new")).unwrap()),
        Err(DocumentError::NoState { .. })
    ));
}

/// Who decided how often.
fn deciders(project: &Project) -> BTreeMap<String, usize> {
    let state = load_state(&project.change(&id("mine")).unwrap()).unwrap();
    let mut deciders = BTreeMap::new();
    for decision in state.decisions {
        *deciders.entry(decision.by.to_string()).or_default() += 1;
    }
    deciders
}

fn by_me(choice: PlanChoice, note: &str) -> NewDecision<'_> {
    NewDecision { choice, note, by: "me", seen: None }
}

fn decide_as(project: &Project, by: &str) {
    let fix = NewDecision { by, ..by_me(PlanChoice::Fix, "why") };
    decide(project, &id("mine"), &fix, &holder("decide"), now()).unwrap();
}

#[test]
#[ignore = "started by the test below"]
fn child_decides() {
    let Some(project) = child_project() else { return };
    decide_as(&project, &format!("pid {}", std::process::id()));
}

/// Lesson 9.
#[test]
fn heavy_forty_processes_leave_forty_decisions() {
    let (_dir, project) = planned();
    challenge(&project, PlanVerdict::NeedsRevision, &[Severity::High]);
    let start = |_| {
        let mut command = child("store::documents::child_decides", project.root());
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<Child> = (0..40).map(start).collect();
    let expected: BTreeMap<String, usize> =
        children.iter().map(|child| (format!("pid {}", child.id()), 1)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(deciders(&project), expected);
}

#[test]
fn forty_threads_leave_forty_decisions() {
    let (_dir, project) = planned();
    challenge(&project, PlanVerdict::NeedsRevision, &[Severity::High]);
    thread::scope(|scope| {
        for i in 0..40 {
            let project = &project;
            scope.spawn(move || decide_as(project, &format!("thread {i}")));
        }
    });
    let expected = (0..40).map(|i| (format!("thread {i}"), 1)).collect();
    assert_eq!(deciders(&project), expected);
}

fn issue(severity: Severity, number: u32) -> Issue {
    Issue {
        number,
        severity,
        title: Line::new("t"),
        location: Line::default(),
        description: "d".into(),
        recommendation: "r".into(),
    }
}

/// Records a challenge of the plan as it is, in proposal.md and in STATE.yaml.
fn challenge(project: &Project, verdict: PlanVerdict, severities: &[Severity]) {
    let change = project.change(&id("mine")).unwrap();
    let documents = change.snapshot().unwrap().documents;
    let plan = documents.digest();
    let reviewer = Line::new("codex");
    let numbers = 1_u32..;
    let block = ReviewBlock {
        iteration: 1,
        reviewer: reviewer.clone(),
        date: Some(now()),
        plan: Some(plan.clone()),
        verdict,
        summary: "s".into(),
        previous: Vec::new(),
        issues: severities.iter().zip(numbers).map(|(severity, n)| issue(*severity, n)).collect(),
        place: agentd_core::span::Uncompared::default(),
    };
    let text = review_block::append(documents.proposal.text().unwrap(), &block);
    write(project, &format!("{DIR}/proposal.md"), text);
    let transition = Transition::PlanReviewed { verdict, plan, reviewer, at: now() };
    update_state(project, &id("mine"), &holder("challenge"), now(), |state| {
        *state = state.apply(&transition)?;
        Ok(())
    })
    .unwrap();
}

/// Accepts the plan: its new phase, or why not.
fn accept(project: &Project) -> Result<Phase, String> {
    let accept = by_me(PlanChoice::Accept, "fine\nby me");
    decide(project, &id("mine"), &accept, &holder("decide"), now())
        .map(|state| state.phase)
        .map_err(|error| match error {
            DocumentError::Refused(refused) => refused.reason.unwrap_or_default().to_owned(),
            DocumentError::NothingToDecide { why, .. } => why.to_owned(),
            other => other.to_string(),
        })
}

/// C11: at most one MEDIUM issue, in a review of this plan that nobody has touched.
#[test]
fn c11_accepting_follows_the_review_of_this_plan() {
    use Severity::{High, Low, Medium};
    let too_much = "HIGH issues or more than one MEDIUM issue are left";
    let cases: [(&[Severity], Result<Phase, &str>); 5] = [
        (&[], Ok(Phase::Challenged)),
        (&[Medium, Low, Low], Ok(Phase::Challenged)),
        (&[Medium, Medium], Err(too_much)),
        (&[High], Err(too_much)),
        (&[Low, High], Err(too_much)),
    ];
    for (severities, expected) in cases {
        let (_dir, project) = planned();
        assert_eq!(accept(&project), Err("its plan was not challenged yet".to_owned()));
        challenge(&project, PlanVerdict::NeedsRevision, severities);
        assert_eq!(accept(&project), expected.map_err(str::to_owned), "{severities:?}");
    }

    let (_dir, project) = planned();
    challenge(&project, PlanVerdict::NeedsRevision, &[Low]);
    assert_eq!(accept(&project), Ok(Phase::Challenged));
    let snapshot = project.change(&id("mine")).unwrap().snapshot().unwrap();
    let state = snapshot.state().unwrap().clone();
    let decision = Decision {
        choice: Choice::Accept,
        note: Line::new("fine by me"),
        by: Line::new("me"),
        at: now(),
        plan_hash: Some(snapshot.documents.digest()),
    };
    assert_eq!((state.decisions, state.last_action), (vec![decision], Some(LastAction::Decide)));
}

type Edit = fn(&str) -> String;

#[test]
fn c11_an_edited_removed_or_outdated_review_accepts_nothing() {
    let edited = "proposal.md holds no untouched review of this plan";
    let gone = "the review of its plan was edited or removed";
    let edits: [(&str, Edit, &str); 3] = [
        ("edited", |text| text.replace("HIGH", "LOW"), edited),
        ("removed", |text| text[..text.find("<!--").unwrap()].to_owned(), gone),
        (
            "another plan",
            |text| text.replace("Sign in.", "Sign out."),
            "its plan was edited since it was challenged",
        ),
    ];
    for (what, edit, expected) in edits {
        let (_dir, project) = planned();
        challenge(&project, PlanVerdict::NeedsRevision, &[Severity::High]);
        let path = project.root().join(format!("{DIR}/proposal.md"));
        fs::write(&path, edit(&fs::read_to_string(&path).unwrap())).unwrap();
        let before = contents(project.root());
        assert_eq!(accept(&project), Err(expected.to_owned()), "{what}");
        assert_eq!(contents(project.root()), before, "{what}");
    }
    let (_dir, project) = planned();
    challenge(&project, PlanVerdict::Rejected, &[]);
    assert!(accept(&project).is_err(), "a rejected plan");
}

/// Attack L9: changes that are archived while all of them are looked at.
#[test]
fn changes_that_vanish_meanwhile_are_left_out() {
    let (_dir, project) = planned();
    let at = |n: usize| project.root().join(format!("agentd/changes/c-{n}"));
    let away = |n: usize| project.root().join(format!("agentd/archive/2026-01-02-c-{n}"));
    fs::create_dir_all(project.root().join("agentd/archive")).unwrap();
    for n in 0..40 {
        fs::create_dir(at(n)).unwrap();
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    let looked = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                (0..40).for_each(|n| fs::rename(at(n), away(n)).unwrap());
                (0..40).for_each(|n| fs::rename(away(n), at(n)).unwrap());
            }
        });
        let wanted = "auth-flow".parse().unwrap();
        let looked: Result<Vec<usize>, _> = (0..60)
            .map(|_| {
                agentd_engine::insight::overlap::overlaps(&project, None)?;
                agentd_engine::insight::trace::of_requirement(&project, &wanted)?;
                Ok::<_, agentd_engine::store::StoreError>(
                    validate_all(&project, &Extras::default())?.changes,
                )
            })
            .collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        looked
    });
    let looked = looked.unwrap();
    assert!(looked.iter().all(|changes| (1..=41).contains(changes)), "{looked:?}");
}

#[test]
fn a_thousand_findings_per_rule_are_shown_and_all_counted() {
    let (_dir, project) = planned();
    let mut tasks = format!("{TASKS}\n## 2. Logic Layer\n");
    for n in 1..=3000 {
        tasks.push_str(&format!("\n- [ ] 2.{n} Title\n"));
    }
    write(&project, &format!("{DIR}/tasks.md"), tasks);
    let change = project.change(&id("mine")).unwrap();
    let reports = change.snapshot().unwrap().findings(&project, &Extras::default());
    let report =
        reports.iter().find(|report| report.file.in_change() == Some(&ChangeFile::Tasks)).unwrap();
    let mut reported: BTreeMap<&str, usize> = BTreeMap::new();
    for diagnostic in &report.diagnostics {
        *reported.entry(diagnostic.rule.code).or_default() += 1;
    }
    assert!(reported.values().all(|n| *n == check::FINDINGS_PER_RULE), "{reported:?}");
    assert!(report.omitted.iter().all(|omitted| omitted.count == 2000), "{:?}", report.omitted);
    assert_eq!(report.omitted.len(), reported.len());
    assert_eq!(report.counts().total(), reported.len() * 3000);
    let all = validate_all(&project, &Extras::default()).unwrap().reports;
    assert_eq!(check::counts(&all), check::counts(&reports));
}
