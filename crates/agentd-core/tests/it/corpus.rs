//! Documents made at random, in the normal form that agentd writes.

use agentd_core::agent::{AgentKind, Complexity};
use agentd_core::diagnostic::Severity;
use agentd_core::document::clarifications::{Answered, Clarifications};
use agentd_core::document::comments::{Anchor, Comment, Comments, Resolved};
use agentd_core::document::previous::{IssueStatus, Previous};
use agentd_core::document::proposal::{AffectedSpec, Impact, Proposal, Scope};
use agentd_core::document::review::{CodeVerdict, Review};
use agentd_core::document::review_block::{Issue, PlanVerdict, ReviewBlock};
use agentd_core::document::spec::{Keyword, Priority, Requirement, Scenario, Spec, Step};
use agentd_core::document::tasks::{Action, Status, Task, Tasks};
use agentd_core::hash::Digest;
use agentd_core::ids::{ChangeId, Layer, RequirementId, SpecId, SpecRef, TaskId};
use agentd_core::outcome::FailureKind;
use agentd_core::phase::Phase;
use agentd_core::span::Uncompared;
use agentd_core::stamp::Stamp;
use agentd_core::state::{
    Actor, AgentQuestion, Asked, Choice, CodeReview, Decision, GitSetup, LlmCall, Placement,
    PlanReview, Ranges, Rename, Reproduction, Revision, SeenFile, State, TestRun, Track,
};
use agentd_core::text::{Line, Prose};
use jiff::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

/// Text that tries to be structure.
pub(crate) fn nasty() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "\\PC{0,12}",
        1 => prop::sample::select(vec![
            "---", "## Why", "# Change: x", "### R2: other", "### Task 1.1: x", "</review>", "<!--", "-->",
            "<!-- agentd:review abc -->", "<!-- /agentd:review abc -->", "```", "```yaml", "~~~", "\\# x",
            "- **Severity**: High", "- [ ] 1.1 x", "**Priority**: low", "- **WHEN** a **THEN** b", "WHEN a THEN b",
            "key: value", "#", "\t# tab", "  ```", "<script>", "[", "{", "&a *a", "? x", "% x", "\u{feff}", "é\u{2028}",
        ]).prop_map(str::to_owned),
        1 => Just("\n".to_owned()),
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.join("\n"))
}

fn prose() -> impl Strategy<Value = Prose> {
    nasty().prop_map(|text| Prose::new(&text))
}

fn filled_prose() -> impl Strategy<Value = Prose> {
    prose().prop_map(|text| if text.is_empty() { Prose::new("text") } else { text })
}

fn line() -> impl Strategy<Value = Line> {
    nasty().prop_map(|text| Line::new(&text))
}

fn filled_line() -> impl Strategy<Value = Line> {
    line().prop_map(|text| if text.is_empty() { Line::new("line") } else { text })
}

/// Names of files and directories: no backticks or commas, which separate them in a list.
fn path_line() -> impl Strategy<Value = Line> {
    "[a-z]{2,6}(/[a-z_]{1,6}){0,2}".prop_map(|path| Line::new(&format!("src/{path}")))
}

/// Once in thousands of texts there is the name of a device on Windows, which is no id.
const SLUG: &str = "[a-z0-9][a-z0-9-]{0,12}";

fn change_id() -> impl Strategy<Value = ChangeId> {
    SLUG.prop_filter_map("reserved", |id| ChangeId::new(&id).ok())
}

fn spec_id() -> impl Strategy<Value = SpecId> {
    SLUG.prop_filter_map("reserved", |id| SpecId::new(&id).ok())
}

fn stamp() -> impl Strategy<Value = Stamp> {
    (0..4_000_000_000_i64).prop_map(|s| Stamp::new(Timestamp::from_second(s).unwrap()))
}

fn day() -> impl Strategy<Value = Stamp> {
    (0..40_000_i64).prop_map(|d| Stamp::new(Timestamp::from_second(d * 86_400).unwrap()))
}

fn issue() -> impl Strategy<Value = Issue> {
    let severity = prop::sample::select(vec![Severity::High, Severity::Medium, Severity::Low]);
    (1..500_u32, severity, line(), line(), prose(), prose()).prop_map(
        |(number, severity, title, location, description, recommendation)| Issue {
            number,
            severity,
            title,
            location,
            description,
            recommendation,
        },
    )
}

pub(crate) fn comments() -> impl Strategy<Value = Comments> {
    let spot = prop_oneof![
        Just(Anchor::Document),
        filled_line().prop_map(Anchor::Heading),
        (1..99_u32).prop_map(|n| Anchor::Requirement(RequirementId::new(n).unwrap())),
        (1..9_u32, 1..99_u32)
            .prop_map(|(section, number)| Anchor::Task(TaskId { section, number })),
        (1..9999_u32).prop_map(Anchor::Line),
        (1..9999_u32).prop_map(Anchor::Removed),
        (1..99_u32).prop_map(Anchor::Issue),
    ];
    let resolved = (line(), option::of(stamp())).prop_map(|(by, date)| Resolved { by, date });
    let about = (line(), spot, line(), line(), option::of(1..99_u32));
    let comment = (1..500_u32, about, line(), option::of(stamp()), prose(), option::of(resolved))
        .prop_map(|(number, (on, at, under, quote, answers), by, date, text, resolved)| Comment {
            number,
            on,
            at,
            under,
            quote,
            answers,
            by,
            date,
            text,
            resolved,
        });
    (option::of(change_id()), vec(comment, 0..4), 0..500_u32).prop_map(
        |(change_id, comments, last_number)| Comments { change_id, comments, last_number },
    )
}

pub(crate) fn review_block() -> impl Strategy<Value = ReviewBlock> {
    let verdict = prop::sample::select(vec![
        PlanVerdict::Approved,
        PlanVerdict::NeedsRevision,
        PlanVerdict::Rejected,
    ]);
    (
        1..9_u32,
        line(),
        option::of(stamp()),
        option::of(nasty()),
        verdict,
        prose(),
        vec(previous(), 0..3),
        vec(issue(), 0..3),
    )
        .prop_map(|(iteration, reviewer, date, plan, verdict, summary, previous, issues)| {
            let (plan, place) = (plan.map(Digest::of), Uncompared::default());
            ReviewBlock {
                iteration,
                reviewer,
                date,
                plan,
                verdict,
                summary,
                previous,
                issues,
                place,
            }
        })
}

/// What is said of an issue of an earlier round.
fn previous() -> impl Strategy<Value = Previous> {
    let status = prop::sample::select(vec![
        IssueStatus::Fixed,
        IssueStatus::Open,
        IssueStatus::Rejected,
        IssueStatus::Deferred,
    ]);
    (any::<u32>(), status, line()).prop_map(|(number, status, reason)| Previous {
        number,
        status,
        reason,
    })
}

pub(crate) fn proposal() -> impl Strategy<Value = Proposal> {
    let scope = prop::sample::select(vec![Scope::Patch, Scope::Minor, Scope::Major]);
    let breaking = option::of(filled_line().prop_map(|line| Line::new(&format!("breaks {line}"))));
    let impact = (scope, 0..99_u32, 0..99_u32, vec(path_line(), 0..3), breaking).prop_map(
        |(scope, affected_files, new_files, affected_code, breaking_changes)| Impact {
            scope,
            affected_files,
            new_files,
            affected_code,
            breaking_changes,
        },
    );
    let affected =
        (spec_id(), vec(spec_id(), 0..3)).prop_map(|(id, depends)| AffectedSpec { id, depends });
    (
        (change_id(), 1..50_u32, option::of(stamp()), option::of(stamp())),
        (filled_prose(), prose(), vec(filled_line(), 0..4), impact),
        (vec(affected, 0..4), vec(review_block(), 0..3)),
    )
        .prop_map(|(head, body, (affected_specs, reviews))| Proposal {
            id: Some(head.0),
            version: head.1,
            created_at: head.2,
            updated_at: head.3,
            summary: body.0,
            why: body.1,
            what_changes: body.2,
            impact: body.3,
            affected_specs,
            reviews,
            ..Proposal::default()
        })
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let keyword = prop::sample::select(Keyword::ALL.to_vec());
    let step =
        (keyword, filled_line()).prop_map(|(keyword, text)| Step::new(keyword, text.as_str()));
    (line(), vec(step, 1..4)).prop_map(|(name, steps)| Scenario {
        name,
        steps,
        place: Uncompared::default(),
        section: Uncompared::default(),
    })
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let priority = prop::sample::select(vec![Priority::High, Priority::Medium, Priority::Low]);
    (1..999_u32, line(), priority, prose(), vec(scenario(), 0..2)).prop_map(
        |(id, title, priority, text, scenarios)| Requirement {
            id: RequirementId::new(id).unwrap(),
            title,
            priority,
            text,
            scenarios,
            place: Uncompared::default(),
            section: Uncompared::default(),
        },
    )
}

pub(crate) fn spec() -> impl Strategy<Value = Spec> {
    let ids = || (1..99_u32).prop_map(|n| RequirementId::new(n).unwrap());
    (
        (spec_id(), line(), 1..50_u32, option::of(stamp()), option::of(stamp())),
        (vec(ids(), 0..3), btree_map(ids(), line(), 0..3)),
        (prose(), vec(requirement(), 0..4), vec(scenario(), 0..3)),
        (prose(), prose(), prose()),
    )
        .prop_map(|(head, (removes, renames), body, more)| Spec {
            id: Some(head.0),
            title: head.1,
            version: head.2,
            created_at: head.3,
            updated_at: head.4,
            removes,
            renames,
            overview: body.0,
            requirements: body.1,
            scenarios: body.2,
            flow: more.0,
            interfaces: more.1,
            data_model: more.2,
            ..Spec::default()
        })
}

pub(crate) fn tasks() -> impl Strategy<Value = Tasks> {
    let spec_ref = (spec_id(), option::of(1..99_u32)).prop_map(|(spec, requirement)| SpecRef {
        spec,
        requirement: requirement.and_then(RequirementId::new),
    });
    let task_id = || {
        (prop::sample::select(Layer::ALL.to_vec()), 1..20_u32)
            .prop_map(|(layer, n)| TaskId::in_layer(layer, n))
    };
    let action = prop::sample::select(vec![Action::Create, Action::Modify, Action::Delete]);
    let status = prop::sample::select(vec![Status::Pending, Status::Done]);
    let task = (
        (task_id(), line(), option::of(action), option::of(filled_line())),
        (vec(spec_ref, 0..3), vec(task_id(), 0..3), status, prose()),
    )
        .prop_map(|(head, (spec_refs, depends_on, status, description))| Task {
            id: head.0,
            layer: Layer::from_section(head.0.section),
            title: head.1,
            action: head.2,
            file: head.3,
            spec_refs,
            depends_on,
            status,
            description,
            place: Uncompared::default(),
            tick: Uncompared::default(),
        });
    (change_id(), 1..9_u32, option::of(stamp()), option::of(stamp()), vec(task, 0..6)).prop_map(
        |(change_id, version, created_at, updated_at, mut tasks)| {
            tasks.sort_by_key(|task| task.layer);
            Tasks {
                change_id: Some(change_id),
                version,
                created_at,
                updated_at,
                tasks,
                ..Tasks::default()
            }
        },
    )
}

pub(crate) fn clarifications() -> impl Strategy<Value = Clarifications> {
    let answered =
        (line(), prose(), prose(), prose()).prop_map(|(topic, question, answer, rationale)| {
            Answered { topic, question, answer, rationale, place: Uncompared::default() }
        });
    (option::of(change_id()), option::of(day()), vec(answered, 0..5))
        .prop_map(|(change, date, questions)| Clarifications { change, date, questions })
}

pub(crate) fn review() -> impl Strategy<Value = Review> {
    let verdict = prop::sample::select(vec![
        CodeVerdict::Approved,
        CodeVerdict::NeedsFix,
        CodeVerdict::MajorIssues,
    ]);
    let found = (vec(previous(), 0..3), vec(issue(), 0..4));
    (change_id(), 1..9_u32, line(), option::of(stamp()), verdict, prose(), found).prop_map(
        |(change_id, iteration, reviewer, created_at, verdict, summary, (previous, issues))| {
            Review {
                change_id: Some(change_id),
                iteration,
                reviewer,
                created_at,
                verdict: Some(verdict),
                summary,
                previous,
                numbered: issues.iter().map(|issue| issue.number).max().unwrap_or(0) + iteration,
                issues,
            }
        },
    )
}

/// Any text at all, control characters included.
fn raw() -> impl Strategy<Value = String> {
    prop_oneof![
        nasty(),
        any::<String>(),
        Just("null".to_owned()),
        Just("1e3".to_owned()),
        "[0-9.:TZ-]{0,20}"
    ]
}

fn cost() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        0.0..10.0,
        Just(1e-7),
        Just(5e-324),
        Just(f64::MAX),
        any::<f64>().prop_filter("finite", |cost| cost.is_finite()),
    ]
}

fn all_agents() -> Vec<AgentKind> {
    let mut all = AgentKind::BUILT_IN.to_vec();
    all.extend(["opencode", "a-0"].map(|name| name.parse::<AgentKind>().unwrap()));
    all
}

fn llm_call() -> impl Strategy<Value = LlmCall> {
    (
        (raw(), raw(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()),
        (cost(), option::of(stamp()), option::of(raw()), option::of(any::<u32>())),
    )
        .prop_map(|(head, (cost, timestamp, session_id, run))| LlmCall {
            agent: run.map(|run| all_agents()[run as usize % all_agents().len()]),
            step: head.0.as_str().into(),
            model: head.1,
            tokens_in: head.2,
            tokens_out: head.3,
            tokens_cached: head.4,
            duration_ms: head.5,
            cost,
            unsettled: false,
            timestamp,
            session_id,
            run,
            failure: run.filter(|run| run % 2 == 1).map(|_| FailureKind::Cancelled),
            asked: run.is_some_and(|run| run % 3 == 1),
        })
}

fn decision() -> impl Strategy<Value = Decision> {
    let choice =
        prop::sample::select(vec![Choice::Fix, Choice::Accept, Choice::Stop, Choice::Answer]);
    (choice, line(), line(), stamp(), option::of(nasty())).prop_map(
        |(choice, note, by, at, plan)| Decision {
            choice,
            note,
            by,
            at,
            plan_hash: plan.map(Digest::of),
        },
    )
}

fn revision() -> impl Strategy<Value = Revision> {
    (line(), any::<u32>(), any::<Option<u32>>()).prop_map(|(note, after_run, built)| Revision {
        note,
        after_run,
        built,
        built_hash: built.map(|built| Digest::of(built.to_string())),
    })
}

fn plan_verdict() -> impl Strategy<Value = PlanReview> {
    let verdict = prop::sample::select(vec![
        PlanVerdict::Approved,
        PlanVerdict::NeedsRevision,
        PlanVerdict::Rejected,
    ]);
    let old = (line(), line());
    (verdict, nasty(), any::<u32>(), line(), stamp(), provenance(), old).prop_map(
        |(verdict, plan, iteration, reviewer, at, provenance, (planner, challenger))| PlanReview {
            run: provenance.run,
            round_hash: provenance.hash.clone(),
            review_hash: provenance.hash,
            authors: provenance.authors,
            challenger: provenance.by,
            independent: provenance.independent,
            planner_vendor: planner,
            challenger_vendor: challenger,
            ..PlanReview::new(verdict, Digest::of(plan), iteration, reviewer, at)
        },
    )
}

fn code_verdict() -> impl Strategy<Value = CodeReview> {
    let verdict = prop::sample::select(vec![
        CodeVerdict::Approved,
        CodeVerdict::NeedsFix,
        CodeVerdict::MajorIssues,
    ]);
    let about = (option::of(nasty()), option::of(nasty()));
    (verdict, any::<u32>(), line(), stamp(), provenance(), about).prop_map(
        |(verdict, iteration, reviewer, at, provenance, (plan, tree))| CodeReview {
            run: provenance.run,
            review_hash: provenance.hash,
            plan_hash: plan.map(Digest::of),
            tree: tree.map(Digest::of),
            authors: provenance.authors,
            reviewed_by: provenance.by,
            independent: provenance.independent,
            ..CodeReview::new(verdict, iteration, reviewer, at)
        },
    )
}

/// Where a verdict comes from.
#[derive(Debug)]
struct Provenance {
    run: Option<u32>,
    hash: Option<Digest>,
    authors: Vec<Actor>,
    by: Option<Actor>,
    independent: Option<bool>,
}

fn provenance() -> impl Strategy<Value = Provenance> {
    let actor = || {
        let agent = prop::sample::select(all_agents());
        (agent, raw()).prop_map(|(agent, model)| Actor::new(agent, &model))
    };
    let authors = prop::collection::vec(actor(), 0..3);
    let run = any::<Option<u32>>();
    (run, option::of(nasty()), authors, option::of(actor()), any::<Option<bool>>()).prop_map(
        |(run, hash, authors, by, independent)| Provenance {
            run,
            hash: hash.map(Digest::of),
            authors,
            by,
            independent,
        },
    )
}

fn test_run() -> impl Strategy<Value = TestRun> {
    let trees = (option::of(nasty()), option::of(nasty()));
    (raw(), option::of(any::<i32>()), prose(), any::<u64>(), stamp(), trees).prop_map(
        |(command, exit_code, output_tail, duration_ms, at, (tree, after))| TestRun {
            command,
            exit_code,
            output_tail,
            duration_ms,
            at,
            tree: tree.map(Digest::of),
            tree_after: after.map(Digest::of),
        },
    )
}

fn reproduction() -> impl Strategy<Value = Option<Reproduction>> {
    let file = (raw(), raw()).prop_map(|(path, text)| SeenFile { path, digest: Digest::of(text) });
    let files = vec(file, 0..3);
    option::of((test_run(), files).prop_map(|(run, files)| Reproduction { run, files }))
}

fn git_setup() -> impl Strategy<Value = GitSetup> {
    let workflow = prop::sample::select(Placement::ALL.to_vec());
    let texts = (option::of(raw()), option::of(raw()), option::of(raw()), option::of(raw()));
    (workflow, texts).prop_map(|(workflow, (branch, work_tree, base_commit, base_branch))| {
        GitSetup { workflow, branch, work_tree, base_commit, base_branch }
    })
}

fn rename() -> impl Strategy<Value = Rename> {
    (change_id(), line(), stamp()).prop_map(|(from, by, at)| Rename { from, by, at })
}

fn ranges() -> impl Strategy<Value = Ranges> {
    (any::<[u64; 2]>(), any::<[u64; 2]>(), (cost(), cost()), any::<[u64; 2]>()).prop_map(
        |(calls, tokens, cost, seconds)| Ranges { calls, tokens, cost_usd: cost.into(), seconds },
    )
}

fn question() -> impl Strategy<Value = AgentQuestion> {
    let asked =
        (prose(), vec(line(), 0..3)).prop_map(|(question, choices)| Asked { question, choices });
    (asked, stamp(), any::<Option<u32>>(), option::of(raw()), option::of(prose())).prop_map(
        |(asked, at, run, session_id, answer)| AgentQuestion {
            step: "implement-logic".into(),
            agent: run.map(|_| AgentKind::Claude),
            asked,
            at,
            run,
            session_id,
            number: 2,
            answer,
        },
    )
}

pub(crate) fn state() -> impl Strategy<Value = State> {
    let phase = || prop::sample::select(Phase::ALL.to_vec());
    let complexity = prop::sample::select(vec![
        Complexity::Low,
        Complexity::Medium,
        Complexity::High,
        Complexity::Critical,
    ]);
    (
        (change_id(), phase(), option::of(stamp()), option::of(stamp()), option::of(prose())),
        (
            option::of(raw()),
            option::of(complexity),
            option::of(raw()),
            any::<u32>(),
            option::of(ranges()),
        ),
        (
            option::of(plan_verdict()),
            option::of(code_verdict()),
            option::of(git_setup()),
            option::of(question()),
        ),
        (
            option::of(test_run()),
            option::of(phase()),
            vec(decision(), 0..3),
            option::of(revision()),
            (
                prop::sample::select(vec![Track::Full, Track::Quick, Track::Bug]),
                reproduction(),
                vec(rename(), 0..3),
            ),
        ),
        (vec(llm_call(), 0..4), cost(), any::<u64>(), any::<u64>()),
    )
        .prop_map(|(head, more, reviews, work, calls)| State {
            change_id: head.0,
            phase: head.1,
            created_at: head.2,
            updated_at: head.3,
            description: head.4,
            session_id: more.0,
            complexity: more.1,
            track: work.4.0,
            reproduction: work.4.1,
            forecast: more.4,
            last_action: more.2.as_deref().map(Into::into),
            iteration: more.3,
            plan_review: reviews.0,
            code_review: reviews.1,
            revision: work.3,
            question: reviews.3,
            git: reviews.2,
            test_run: work.0,
            archived_from: work.1,
            renamed: work.4.2,
            decisions: work.2,
            llm_calls: calls.0,
            total_cost: calls.1,
            total_tokens_in: calls.2,
            total_tokens_out: calls.3,
        })
}
