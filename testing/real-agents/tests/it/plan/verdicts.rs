//! Each verdict in both modes, and what follows from it.

use std::collections::BTreeSet;

use agentd_core::step_name::StepName;
use real_agents::{CODEX, CODEX_QUICK, Cli, Sandbox, lines_with};
use scripted_models::{Reply, Rule, Script};
use serde_json::json;
use test_project::tree;

use real_agents::models::{
    approved, calls, challenges, edit, edit_proposal, plan, planner, reproposals, review, says,
    settles,
};

const QUICK: &str = "[workflow]\nself_review_iterations = 0\n";

/// C10, WF2, WF6, WF7, P21, P22, P23, P26
#[test]
fn approved_is_challenged() {
    let script = challenges(planner(&["auth-flow"]), &[approved()]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(QUICK);
        let json = sandbox.plan(&["--json"]).exits(0).json();
        assert_eq!(json["action"], "challenged");
        assert_eq!(json["phase"], "challenged");
        assert_eq!(json["verdict"], "APPROVED");
        assert_eq!((&json["change_id"], &json["iteration"]), (&json!("add-login"), &json!(0)));
        assert_eq!(json["next"], json!(["agentd impl add-login"]));
        assert_eq!(json["issues"], json!({"high": 0, "medium": 0, "low": 0}));
        assert!(json["cost_usd"].as_f64().unwrap() > 0.0);
        let last = sandbox.calls().pop().unwrap();
        assert_eq!(last.program, "codex");
        // P26: the layout of the directory.
        let files = tree(&sandbox.path("")).into_keys();
        let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
        insta::assert_snapshot!(files.join("\n"), @"
        AGENTS.md
        CHALLENGE.md
        GEMINI.md
        STATE.yaml
        base
        base/auth-flow.md
        journal.jsonl
        proposal.md
        rounds
        rounds/0001.json
        runs
        runs/0001-proposal-gen.jsonl
        runs/0002-spec-gen-auth-flow.jsonl
        runs/0003-tasks-gen.jsonl
        runs/0004-challenge.jsonl
        specs
        specs/auth-flow.md
        tasks.md
        ");
        let review = sandbox.state().plan_review.unwrap();
        // T4: who wrote and who judged, as they ran.
        assert!(review.authors.iter().all(|author| author.vendor.as_str() == "Google"));
        assert!(!review.authors.is_empty());
        let challenger = review.challenger.unwrap();
        assert_eq!((challenger.agent.name(), challenger.vendor.as_str()), ("codex", "OpenAI"));
        assert_eq!(review.independent, Some(true));
        let verified = sandbox.run(["verify"]).exits(0);
        assert_eq!(verified.stdout.matches('✓').count(), 3, "{}", verified.stdout);
        let calls = sandbox.calls().len();
        let again = sandbox.run(["plan", "--json"]).exits(0).json();
        assert_eq!(again["action"], "already_challenged");
        assert_eq!(again["next"], json!(["agentd impl add-login"]));
        assert_eq!(sandbox.calls().len(), calls, "nothing is paid twice");
    });
}

/// P9: what the models are asked for, as they see it.
#[test]
fn complexity_decides_the_model_and_the_effort() {
    let asked = |description: &str| {
        let mut asked = Vec::new();
        Sandbox::enter(challenges(planner(&[]), &[approved()]), |sandbox| {
            sandbox.set_up(QUICK);
            sandbox
                .run(["plan", "add-login", description, "--skip-clarify", "--git", "in-place"])
                .exits(0);
            for request in sandbox.models().requests() {
                let step = request.prompt.split(' ').nth(1).unwrap_or_default();
                asked.push(format!("{step}: {}", request.model));
            }
            for called in sandbox.calls().iter().filter(|called| called.program == "codex") {
                let effort = called.args.iter().filter(|arg| arg.contains("reasoning_effort"));
                asked.extend(effort.cloned());
            }
        });
        asked.dedup();
        asked.join("\n")
    };
    insta::assert_snapshot!(asked("Add a dark mode"), @r#"
    proposal-gen: gemini-3.8-flash
    tasks-gen: gemini-3.8-flash
    challenge: gpt-6.1-sol
    model_reasoning_effort="medium"
    "#);
    let critical = "Add password login and permissions, with a database migration";
    insta::assert_snapshot!(asked(critical), @r#"
    proposal-gen: gemini-3.1-pro-preview
    tasks-gen: gemini-3.1-pro-preview
    challenge: gpt-6.1-sol
    model_reasoning_effort="max"
    "#);
}

/// C33: the challenger finds the plan in AGENTS.md, and the sections of its report in CHALLENGE.md.
/// Without a verdict these stay as they are, and nothing takes them for one.
#[test]
fn a_challenger_reads_the_plan_in_one_file_beside_a_skeleton() {
    let read =
        |path: &str| Reply::call("read_file", json!({"change_id": "${change}", "path": path}));
    let reads = Rule::new()
        .step("challenge")
        .prompts(1)
        .reply(read("AGENTS.md"))
        .reply(read("CHALLENGE.md"))
        .reply(Reply::text("**Verdict**: APPROVED"));
    let script = challenges(planner(&["auth-flow"]).rule(reads), &[approved()]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        let failed = sandbox.plan(&["--json"]).exits(1).json();
        assert_eq!(failed["error"]["kind"], "verdict_unknown");
        let read = sandbox.tool_result("# Context: add-login");
        for document in ["proposal.md", "specs/auth-flow.md", "tasks.md"] {
            let text = sandbox.read(document);
            let last = text.trim_end().lines().last().unwrap();
            assert!(read.contains(&format!("data: {document}")), "{document}: {read}");
            assert!(read.contains(last), "{document}: {last}");
        }
        assert!(sandbox.tool_result("# Challenge: add-login").contains("Not given yet."));
        insta::assert_snapshot!(sandbox.read("CHALLENGE.md"), @"
        # Challenge: add-login

        <!-- Written by agentd before the review, whose report replaces it. -->

        ## Verdict

        Not given yet.

        ## Issues

        ## Summary
        ");
        let status = sandbox.run(["status", "--json"]).exits(0).json();
        assert_eq!((&status["phase"], &status["verdict"]), (&json!("proposed"), &json!(null)));
        assert_eq!(sandbox.run(["verify"]).exits(0).stdout.matches("CHALLENGE").count(), 0);
        let json = sandbox.run(["plan", "--json"]).exits(0).json();
        assert_eq!(json["verdict"], "APPROVED");
        insta::assert_snapshot!(lines_with(&sandbox.read("CHALLENGE.md"), "erdict"), @"
        **Verdict**: APPROVED
        - **Verdict**: APPROVED
        ");
    });
}

/// C10, P22, P23, P24: the plan waits for a user, and no agent is called meanwhile; after
/// `decide`, `plan` continues. RP7, WF2, C8, C12
#[test]
fn needs_revision_waits_for_a_person() {
    let found = review("NEEDS_REVISION", &[("high", "No lock"), ("low", "Typo")]);
    let fixed = settles(approved(), &[("I1", "fixed"), ("I2", "fixed")]);
    let script = challenges(planner(&["auth-flow"]), &[found, fixed]);
    let script = reproposals(script, &[edit_proposal("their own data", "their own data, safely")]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        insta::assert_snapshot!(sandbox.plan(&[]).without_usage(), @"
        exit 0
        NEEDS_REVISION - Found 1 HIGH, 0 MEDIUM, 1 LOW severity issues (round 1)
        cost so far: $[COST]

        Next: agentd reproposal add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (codex)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        Spec 1/1: auth-flow: started (codex)
        Spec 1/1: auth-flow: done, [DURATION], [USAGE], specs/auth-flow.md is written
        Tasks: started (codex)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        warning: planner and challenger are both from OpenAI: they have the same blind spots
        Challenge: started (codex)
        Challenge: done, [DURATION], [USAGE], NEEDS_REVISION - Found 1 HIGH, 0 MEDIUM, 1 LOW severity issues
        Looked at all of it.
        HIGH    I1  No lock
                    proposal.md
                    No lock goes wrong.
                    → Fix No lock.

        LOW     I2  Typo
                    proposal.md
                    Typo goes wrong.
                    → Fix Typo.
        ");
        assert_eq!(sandbox.state().phase.name(), "proposed");
        // C8
        insta::assert_snapshot!(lines_with(&sandbox.read("CHALLENGE.md"), "No lock"), @"
        ### I1: No lock
        - **Description**: No lock goes wrong.
        - **Recommendation**: Fix No lock.
        ");
        let calls = sandbox.calls().len();
        let waiting = sandbox.run(["plan", "--json"]).exits(0).json();
        assert_eq!(waiting["action"], "waiting_for_decision");
        assert_eq!(waiting["verdict"], "NEEDS_REVISION");
        sandbox.run(["plan", "--exit-code"]).exits(1);
        sandbox.run(["decide", "accept"]).exits(1);
        assert_eq!(sandbox.calls().len(), calls);

        // W5
        let asked = sandbox.run(["decide", "--json"]).exits(0).json();
        assert_eq!(asked["choices"][0]["choice"], "fix");
        let note = "a lock after 5 attempts";
        sandbox.run(["decide", "fix", "--note", note]).exits(0);
        let run = sandbox.run(["plan", "--json"]).exits(0);
        let json = run.json();
        let prompt = sandbox.prompt("reproposal");
        assert!(
            prompt.contains(&format!("```data: what the person says\n{note}\n```")),
            "{prompt}"
        );
        // RP7: each issue, and progress beside the document.
        insta::assert_snapshot!(lines_with(&run.transcript(), "proposal.md"), @"
        note: I1 No lock: proposal.md has changed
        note: I2 Typo: proposal.md has changed
        ");
        sandbox.run(["decide", "fix"]).exits(1);
        assert_eq!(json["verdict"], "APPROVED");
        assert_eq!(json["phase"], "challenged");
        assert_eq!(json["iteration"], 1);
        let steps = ["reproposal", "challenge"];
        assert!(sandbox.steps().ends_with(&steps.map(str::to_owned)), "{:?}", sandbox.steps());
        assert_eq!(sandbox.proposal().reviews.len(), 2);
        let state = sandbox.state();
        let challenges = state.llm_calls.iter().filter(|call| call.step == StepName::Challenge);
        let sessions: BTreeSet<_> = challenges.map(|call| call.session_id.clone()).collect();
        assert_eq!(sessions.len(), 2, "C27: a fresh one for each");
    });
}

/// E3.3, WF2, WF6, P24; C20: a rejected plan is challenged again once it is another one, and in
/// automatic mode continues from there.
#[test]
fn a_rejected_plan_stops_until_it_is_edited() {
    let no = review("REJECTED", &[("high", "The wrong thing")]);
    let almost = settles(review("NEEDS_REVISION", &[("low", "Typo")]), &[("I1", "fixed")]);
    let script = challenges(planner(&["auth-flow"]), &[no, almost, approved()]);
    let script = reproposals(script, &[edit_proposal("a better thing", "a still better thing")]);
    Sandbox::enter(script, |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        insta::assert_snapshot!(sandbox.plan(&["--auto"]).without_usage(), @"
        exit 1
        REJECTED - Fundamental problems
        edit the plan in agentd/changes/add-login/, then: agentd challenge add-login
        cost so far: $[COST]

        Next: agentd revise add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (codex)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        Spec 1/1: auth-flow: started (codex)
        Spec 1/1: auth-flow: done, [DURATION], [USAGE], specs/auth-flow.md is written
        Tasks: started (codex)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        warning: planner and challenger are both from OpenAI: they have the same blind spots
        Challenge: started (codex)
        Challenge: done, [DURATION], [USAGE], REJECTED - Fundamental problems
        Looked at all of it.
        HIGH    I1  The wrong thing
                    proposal.md
                    The wrong thing goes wrong.
                    → Fix The wrong thing.
        ");
        assert_eq!(sandbox.runs("challenge"), 1, "E3.3");
        assert_eq!(sandbox.state().phase.name(), "rejected");
        let again = sandbox.run(["plan", "--json"]).exits(1).json();
        assert_eq!(again["action"], "rejected");
        insta::assert_snapshot!(sandbox.run(["challenge"]), @"
        exit 1
        --- stderr
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        error: a change that is rejected cannot be challenged: the plan has not changed since it was rejected

        hint: see what comes next: agentd status add-login
        ");
        assert_eq!(sandbox.runs("challenge"), 1);

        sandbox.replace("proposal.md", "their own data", "a better thing");
        let json = sandbox.run(["plan", "--auto", "--json"]).exits(0).json();
        assert_eq!(json["verdict"], "APPROVED", "{json:#}");
        assert_eq!(sandbox.state().phase.name(), "challenged");
        assert_eq!((sandbox.runs("challenge"), sandbox.runs("reproposal")), (3, 1));
    });
}

/// C27: the challenger continues in its thread. P25, C10, C12, E3.2
#[test]
fn automatic_mode_fixes_and_rechallenges_in_the_same_thread() {
    let found = review("NEEDS_REVISION", &[("high", "No lock"), ("medium", "No limit")]);
    let fixed = settles(approved(), &[("I1", "fixed"), ("I2", "fixed")]);
    let script = challenges(planner(&[]), &[found, fixed]);
    let script = reproposals(script, &[edit_proposal("their own data", "their own data, locked")]);
    Sandbox::enter(script, |sandbox| {
        let config = format!("{CODEX_QUICK}human_in_loop = false\nrechallenge = \"resume\"\n");
        sandbox.set_up(&config);
        insta::assert_snapshot!(sandbox.plan(&[]).without_usage(), @"
        exit 0
        ✓ APPROVED - Ready for implementation!
        cost so far: $[COST]

        Next: agentd impl add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (codex)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        No specs required for this change
        Tasks: started (codex)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        warning: planner and challenger are both from OpenAI: they have the same blind spots
        Challenge: started (codex)
        Challenge: done, [DURATION], [USAGE], NEEDS_REVISION - Found 1 HIGH, 1 MEDIUM, 0 LOW severity issues
        Looked at all of it.
        HIGH    I1  No lock
                    proposal.md
                    No lock goes wrong.
                    → Fix No lock.

        MEDIUM  I2  No limit
                    proposal.md
                    No limit goes wrong.
                    → Fix No limit.
        Reproposal 1: started (codex, resumed)
        Reproposal 1: done, [DURATION], [USAGE], 2 issues, 1 file changed
        I1 No lock: proposal.md has changed
        I2 No limit: proposal.md has changed
        Proposal updated based on challenge feedback
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        warning: planner and challenger are both from OpenAI: they have the same blind spots
        Challenge 2: started (codex, resumed)
        Challenge 2: done, [DURATION], [USAGE], APPROVED - Ready for implementation!
        issues fixed: I1, I2
        ");
        let state = sandbox.state();
        let of = |step: &str| -> Vec<String> {
            let calls = state.llm_calls.iter().filter(|call| call.step.to_string() == step);
            calls.map(|call| call.session_id.clone().unwrap()).collect()
        };
        let challenges = of("challenge");
        assert_eq!(challenges[0], challenges[1]);
        assert_eq!(of("reproposal")[0], of("proposal-gen")[0]);
        // E2.3: codex is resumed by its id, and no list of gemini's is asked for.
        assert!(
            sandbox.programs_called().iter().all(|name| name == "codex"),
            "{:?}",
            sandbox.programs_called()
        );
        let last = sandbox.calls().pop().unwrap();
        assert_eq!(last.after("resume"), Some(&*challenges[0]), "{last:?}");
        // Tokens of a thread are a running total in codex: each call is counted for itself.
        assert!(state.llm_calls.iter().all(|call| call.tokens_in <= 3000), "{state:#?}");
    });
}

/// C11, C12, E3.2, E3.5, E scenario "WHEN validation fails after max iterations THEN exit
/// non-zero": the plan stops at the limit of rounds and reports what remains.
#[test]
fn the_limit_of_rounds_is_a_failure() {
    let high = review("NEEDS_REVISION", &[("high", "No lock"), ("medium", "No limit")]);
    let fewer = settles(review("NEEDS_REVISION", &[("high", "No lock")]), &[("I2", "fixed")]);
    let script = challenges(planner(&[]), &[high, fewer]);
    let edits = [
        edit_proposal("their own data", "what is theirs"),
        edit_proposal("what is theirs", "their data"),
    ];
    Sandbox::enter(reproposals(script, &edits), |sandbox| {
        sandbox.set_up(&format!("{CODEX_QUICK}planning_iterations = 1\n"));
        insta::assert_snapshot!(sandbox.plan(&["--auto"]).without_usage(), @"
        exit 1
        NEEDS_REVISION - Found 1 HIGH, 0 MEDIUM, 0 LOW severity issues (round 2)
        cost so far: $[COST]

        Next: agentd reproposal add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (codex)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        No specs required for this change
        Tasks: started (codex)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        warning: planner and challenger are both from OpenAI: they have the same blind spots
        Challenge: started (codex)
        Challenge: done, [DURATION], [USAGE], NEEDS_REVISION - Found 1 HIGH, 1 MEDIUM, 0 LOW severity issues
        Looked at all of it.
        HIGH    I1  No lock
                    proposal.md
                    No lock goes wrong.
                    → Fix No lock.

        MEDIUM  I2  No limit
                    proposal.md
                    No limit goes wrong.
                    → Fix No limit.
        Reproposal 1: started (codex, resumed)
        Reproposal 1: done, [DURATION], [USAGE], 2 issues, 1 file changed
        I1 No lock: proposal.md has changed
        I2 No limit: proposal.md has changed
        Proposal updated based on challenge feedback
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        warning: planner and challenger are both from OpenAI: they have the same blind spots
        Challenge 2: started (codex)
        Challenge 2: done, [DURATION], [USAGE], NEEDS_REVISION - Found 1 HIGH, 0 MEDIUM, 0 LOW severity issues
        Looked at all of it.
        HIGH    I1  No lock
                    proposal.md
                    No lock goes wrong.
                    → Fix No lock.
        issues open: I1; fixed: I2
        warning: the plan still needs revision after 1 round
        ");
        assert_eq!(sandbox.state().phase.name(), "proposed");
        let json = sandbox.run(["plan", "--auto", "--json"]).exits(1).json();
        assert_eq!(json["action"], "still_needs_revision");
        assert_eq!(json["issues"], json!({"high": 1, "medium": 0, "low": 0}));
        assert_eq!((sandbox.runs("challenge"), sandbox.runs("reproposal")), (2, 1));
    });
}

/// C11: minor issues are accepted where the project says so, and only minor ones; rounds that
/// settle nothing stop early (issue 5).
#[test]
fn rounds_without_progress_stop_and_minor_issues_may_be_accepted() {
    let same = review("NEEDS_REVISION", &[("medium", "No limit"), ("low", "Typo")]);
    let script = challenges(planner(&[]), &[same]);
    let edits = [
        edit_proposal("their own data", "what is theirs"),
        edit_proposal("what is theirs", "their data"),
    ];
    Sandbox::enter(reproposals(script, &edits), |sandbox| {
        sandbox.set_up(&format!("{CODEX_QUICK}planning_iterations = 5\n"));
        insta::assert_snapshot!(sandbox.plan(&["--auto"]).without_usage(), @"
        exit 1
        NEEDS_REVISION - Found 0 HIGH, 1 MEDIUM, 1 LOW severity issues (round 2)
        cost so far: $[COST]

        Next: agentd reproposal add-login
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (codex)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        No specs required for this change
        Tasks: started (codex)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        warning: planner and challenger are both from OpenAI: they have the same blind spots
        Challenge: started (codex)
        Challenge: done, [DURATION], [USAGE], NEEDS_REVISION - Found 0 HIGH, 1 MEDIUM, 1 LOW severity issues
        Looked at all of it.
        MEDIUM  I1  No limit
                    proposal.md
                    No limit goes wrong.
                    → Fix No limit.

        LOW     I2  Typo
                    proposal.md
                    Typo goes wrong.
                    → Fix Typo.
        Reproposal 1: started (codex, resumed)
        Reproposal 1: done, [DURATION], [USAGE], 2 issues, 1 file changed
        I1 No limit: proposal.md has changed
        I2 Typo: proposal.md has changed
        Proposal updated based on challenge feedback
        Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        warning: planner and challenger are both from OpenAI: they have the same blind spots
        Challenge 2: started (codex)
        Challenge 2: done, [DURATION], [USAGE], NEEDS_REVISION - Found 0 HIGH, 1 MEDIUM, 1 LOW severity issues
        Looked at all of it.
        MEDIUM  I1  No limit
                    proposal.md
                    No limit goes wrong.
                    → Fix No limit.

        LOW     I2  Typo
                    proposal.md
                    Typo goes wrong.
                    → Fix Typo.
        issues open: I1, I2
        warning: the last round has settled none of the issues; another one would not either
        ");
        assert_eq!((sandbox.runs("challenge"), sandbox.runs("reproposal")), (2, 1));

        let config = sandbox.root().join("agentd/config.toml");
        std::fs::write(config, format!("{CODEX_QUICK}accept_minor = true\n")).unwrap();
        let json = sandbox.run(["plan", "--auto", "--json"]).exits(0).json();
        assert_eq!(json["action"], "accepted_minor");
        assert_eq!(json["phase"], "challenged");
        let decision = sandbox.state().decisions.pop().unwrap();
        assert_eq!(decision.by.as_str(), "agentd");
        assert_eq!(sandbox.runs("challenge"), 2, "no agent is called again");
    });
}

/// contract T5: nothing is concluded from silence, and what was fixed and is back says so, in every
/// output and in the prompts.
#[test]
fn what_became_of_an_issue_is_what_the_reviewer_says() {
    let found = review("NEEDS_REVISION", &[("high", "No lock"), ("low", "Typo")]);
    let forgets = settles(review("NEEDS_REVISION", &[("medium", "No limit")]), &[("I1", "fixed")]);
    let again = settles(
        review("NEEDS_REVISION", &[]),
        &[("I1", "open"), ("I2", "rejected"), ("I3", "deferred")],
    );
    let script = challenges(planner(&[]), &[found, forgets, again]);
    let edits = [
        edit_proposal("their own data", "what is theirs"),
        edit_proposal("what is theirs", "their data"),
    ];
    Sandbox::enter(reproposals(script, &edits), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        sandbox.plan(&[]).exits(0);
        let fates = |json: &serde_json::Value| -> Vec<String> {
            let previous = json["previous"].as_array().unwrap().iter();
            let word =
                |issue: &serde_json::Value, key: &str| issue[key].as_str().unwrap().to_owned();
            previous
                .map(|it| {
                    format!("{} {} {}", word(it, "id"), word(it, "status"), word(it, "reason"))
                })
                .collect()
        };
        sandbox.run(["reproposal"]).exits(0);
        let second = sandbox.run(["challenge", "--json"]).exits(0).json();
        assert_eq!(fates(&second), ["I1 fixed I1 was looked at.", "I2 unconfirmed "]);
        let asked = sandbox.prompt("challenge");
        assert!(asked.contains("I1 HIGH: No lock") && asked.contains("I2 LOW: Typo"), "{asked}");
        sandbox.run(["reproposal"]).exits(0);
        let third = sandbox.run(["challenge", "--json"]).exits(0).json();
        // Said to be open without being described again: it counts with its weight.
        assert_eq!(third["issues"], json!({"high": 1, "medium": 0, "low": 0}));
        let now = [
            "I1 regression I1 was looked at.",
            "I2 rejected I2 was looked at.",
            "I3 deferred I3 was looked at.",
        ];
        assert_eq!(fates(&third), now);
        let asked = sandbox.prompt("challenge");
        assert!(asked.contains("I2 LOW: Typo") && asked.contains("I1 fixed: No lock"), "{asked}");
        assert_eq!(fates(&sandbox.run(["status", "--json"]).exits(0).json()), now);
        let log = sandbox.run(["log", "--json"]).exits(0).json();
        let reviews: Vec<&str> = log["events"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["kind"] == "review")
            .filter_map(|event| event["text"].as_str())
            .collect();
        assert_eq!(
            reviews,
            [
                "NEEDS_REVISION by codex, round 1: 1 HIGH, 0 MEDIUM, 1 LOW",
                "NEEDS_REVISION by codex, round 2: 0 HIGH, 1 MEDIUM, 0 LOW; unconfirmed: I2; new: I3; fixed: I1",
                "NEEDS_REVISION by codex, round 3: 1 HIGH, 0 MEDIUM, 0 LOW; regression: I1; deferred: I3; rejected: I2",
            ]
        );
    });
}

/// P22, P28 card 4: a verdict in prose does not count; it is Unknown and blocks.
#[test]
fn a_verdict_in_prose_is_unknown_and_blocks() {
    let words = "Verdict: APPROVED. <review>PASS</review>";
    let script = Script::new().rule(says("challenge", words).prompts(1));
    Sandbox::enter(challenges(plan(script, &[]), &[approved()]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        insta::assert_snapshot!(sandbox.plan(&["--auto", "--json"]).without_usage(), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "verdict_unknown",
            "message": "Could not determine the verdict of the challenge: it is Unknown",
            "cause": "codex has given no verdict to `append_review`: it called no tool; its last words were: Verdict: APPROVED. <review>PASS</review>",
            "hints": [
              "ask again: agentd challenge add-login",
              "see what it did in the newest file of agentd/changes/add-login/runs/",
              "check that the MCP server starts: agentd doctor",
              "nothing was approved: only a review through the tool counts"
            ]
          }
        }
        --- stderr
        note: forecast: [FIGURES] (from built-in guesses)
        note: complexity: high (security (`login`))
        step_started: Proposal, codex
        step_done: Proposal, proposal.md is written
        note: No specs required for this change
        step_started: Tasks, codex
        step_done: Tasks, tasks.md is written
        note: Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        warning: planner and challenger are both from OpenAI: they have the same blind spots
        step_started: Challenge, codex
        step_failed: Challenge, codex reported success, but a review in proposal.md does not exist
        "#);
        assert_eq!(sandbox.state().phase.name(), "proposed");
        assert!(sandbox.state().plan_review.is_none());
        assert_eq!(sandbox.steps().last().unwrap(), "challenge", "it is paid for");
        let json = sandbox.run(["challenge", "--json"]).exits(0).json();
        assert_eq!(json["verdict"], "APPROVED");
    });
}

/// A review that is not independent is an error if configured, before any agent is called.
#[test]
fn an_independent_review_can_be_required() {
    Sandbox::enter(challenges(planner(&[]), &[approved()]), |sandbox| {
        let config = format!("{CODEX_QUICK}[policy]\nindependent_review = \"require\"\n");
        sandbox.set_up(&config);
        insta::assert_snapshot!(sandbox.plan(&["--json"]).without_usage(), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "not_independent",
            "message": "planner and challenger are both from OpenAI, and policy.independent_review is \"require\"",
            "cause": "an agent reviewing its own work shares its blind spots",
            "hints": [
              "set [roles] challenger to another agent: agentd/config.toml",
              "or allow it: set `[policy] independent_review = warn` in agentd/config.toml"
            ]
          }
        }
        --- stderr
        note: forecast: [FIGURES] (from built-in guesses)
        note: complexity: high (security (`login`))
        step_started: Proposal, codex
        step_done: Proposal, proposal.md is written
        note: No specs required for this change
        step_started: Tasks, codex
        step_done: Tasks, tasks.md is written
        note: Format validation passed: 0 HIGH, 0 MEDIUM, 0 LOW
        "#);
        assert_eq!(sandbox.runs("challenge"), 0);
        assert_eq!(sandbox.state().phase.name(), "proposed");
    });
}

/// A budget ends a plan before the call that would exceed it, and nothing is lost.
#[test]
fn a_budget_stops_before_the_next_call() {
    Sandbox::enter(challenges(planner(&[]), &[approved()]), |sandbox| {
        let config = format!("{CODEX_QUICK}[budget]\nmax_tokens = 1000\n");
        sandbox.set_up(&config);
        insta::assert_snapshot!(sandbox.plan(&["--json"]).without_usage(), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "budget",
            "message": "`add-login` has used up its budget: [USAGE] of 1000 tokens",
            "cause": null,
            "hints": [
              "see where it went: agentd cost add-login",
              "raise the limits in [budget], or finish by hand: agentd/config.toml"
            ]
          }
        }
        --- stderr
        note: forecast: [FIGURES] (from built-in guesses)
        note: complexity: high (security (`login`))
        step_started: Proposal, codex
        step_done: Proposal, proposal.md is written
        note: No specs required for this change
        step_started: Tasks, codex
        step_failed: Tasks, `add-login` has used up its budget: [USAGE] of 1000 tokens
        "#);
        assert_eq!(sandbox.steps(), ["proposal-gen"]);
        std::fs::write(sandbox.root().join("agentd/config.toml"), CODEX_QUICK).unwrap();
        sandbox.run(["plan"]).exits(0);
        assert_eq!(sandbox.steps(), ["proposal-gen", "tasks-gen", "challenge"]);
    });
}

/// P18 – P20: with a user, an invalid plan ends with the findings and no repair. P25, E3.1,
/// E3.5, P28 card 3: without one the planner fixes it, up to the limit.
#[test]
fn an_invalid_plan_is_shown_or_fixed() {
    let whole = "## Why\n\nPeople want to come back to their own data.";
    let broken = "## Wherefore\n\nPeople want to come back to their own data.";
    let useless = says("format-fix", "I see nothing.").prompts(2);
    let script = Script::new().rule(useless).rule(calls(
        "format-fix",
        "edit_file",
        edit("proposal.md", broken, whole),
    ));
    Sandbox::enter(challenges(plan(script, &[]), &[approved()]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        // A user edits the proposal while the tasks are written.
        let proposal = sandbox.path("proposal.md");
        let damage = format!(
            "[ $step = tasks-gen ] && sed -i 's/^## Why$/## Wherefore/' '{}'",
            proposal.display()
        );
        sandbox.after(Cli::Codex, &damage);
        insta::assert_snapshot!(sandbox.plan(&[]).without_usage(), @"
        exit 1
        --- stderr
        forecast: [FIGURES] (from built-in guesses)
        complexity: high (security (`login`))
        Proposal: started (codex)
        Proposal: done, [DURATION], [USAGE], proposal.md is written
        No specs required for this change
        Tasks: started (codex)
        Tasks: done, [DURATION], [USAGE], tasks.md is written
        Format validation failed: 1 HIGH, 0 MEDIUM, 0 LOW
        HIGH[P001]: the section `## Why` is missing
          --> agentd/changes/add-login/proposal.md:16:1
           |
        16 | # Change: add-login
           | ^^^^^^^^^^^^^^^^^^^
           |
           = help: Add the section with at least one sentence.

        error: the plan is not valid
          cause: 1 HIGH, 0 MEDIUM, 0 LOW findings

        hint: edit the documents by hand: agentd/changes/add-login/
        hint: check them: agentd validate add-login
        hint: see what it means: agentd explain P001
        hint: then continue: agentd challenge add-login
        ");
        assert_eq!(sandbox.runs("format-fix"), 0, "P20");
        assert_eq!(sandbox.runs("challenge"), 0);

        insta::assert_snapshot!(sandbox.run(["plan", "--auto", "--json"]).without_usage(), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "format_invalid",
            "message": "Format validation still failing after 2 iterations",
            "cause": "the planner could not fix it by itself; 1 HIGH, 0 MEDIUM, 0 LOW findings",
            "hints": [
              "edit the documents by hand: agentd/changes/add-login/",
              "check them: agentd validate add-login",
              "see what it means: agentd explain P001",
              "then continue: agentd challenge add-login"
            ]
          }
        }
        --- stderr
        step_skipped: Proposal, it is written already
        note: No specs required for this change
        step_skipped: Tasks, it is written already
        note: Format validation failed: 1 HIGH, 0 MEDIUM, 0 LOW
        step_started: Format repair 1/2, codex, resumed
        step_done: Format repair 1/2
        note: Format validation failed: 1 HIGH, 0 MEDIUM, 0 LOW
        step_started: Format repair 2/2, codex, resumed
        step_done: Format repair 2/2
        note: Format validation failed: 1 HIGH, 0 MEDIUM, 0 LOW
        "#);
        assert_eq!((sandbox.runs("format-fix"), sandbox.runs("challenge")), (2, 0));

        let json = sandbox.run(["plan", "--auto", "--json"]).exits(0).json();
        assert_eq!(json["verdict"], "APPROVED");
        assert_eq!(sandbox.runs("format-fix"), 3);
        let resumed = sandbox.calls().into_iter().filter(|call| call.has("resume")).count();
        assert_eq!(resumed, 3, "repairs resume the planner's session");
    });
}

/// P28 card 5: tasks that wait for each other.
#[test]
fn a_cycle_of_tasks_is_an_error() {
    Sandbox::enter(planner(&[]), |sandbox| {
        sandbox.set_up(CODEX_QUICK);
        let args = ["proposal", "add-login", "Add a login", "--skip-clarify", "--git", "in-place"];
        sandbox.run(args).exits(0);
        let task = |number: u32, depends: u32| {
            format!(
                "### Task 2.{number}: Do it\n\n```yaml\nid: \"2.{number}\"\naction: CREATE\n\
                 file: src/{number}.rs\ndepends_on: [\"2.{depends}\"]\nstatus: pending\n```\n\nWrite it.\n\n"
            )
        };
        let text =
            format!("# Tasks: add-login\n\n## 2. Logic Layer\n\n{}{}", task(1, 2), task(2, 1));
        std::fs::write(sandbox.path("tasks.md"), text).unwrap();
        insta::assert_snapshot!(sandbox.run(["challenge", "--json"]), @r#"
        exit 1
        {
          "version": 1,
          "error": {
            "kind": "format_invalid",
            "message": "the plan is not valid",
            "cause": "Circular dependency detected: logic.1 → logic.2 → logic.1 (2.1 → 2.2 → 2.1); 1 HIGH, 1 MEDIUM, 0 LOW findings",
            "hints": [
              "edit the documents by hand: agentd/changes/add-login/",
              "check them: agentd validate add-login",
              "see what it means: agentd explain T005",
              "then continue: agentd challenge add-login"
            ]
          }
        }
        --- stderr
        note: Format validation failed: 1 HIGH, 1 MEDIUM, 0 LOW
        "#);
        assert_eq!(sandbox.runs("challenge"), 0);
    });
}

/// P28 card 1: tools that cannot be reached are not a success.
#[test]
fn a_tool_server_that_does_not_start_is_an_error() {
    Sandbox::enter(planner(&[]), |sandbox| {
        let config = format!("{CODEX}self_review_iterations = 0\nscript_retries = 0\n");
        sandbox.set_up(&config);
        // The shim points the CLI to a server that ends at once.
        let real = sandbox.path_of(Cli::Codex);
        let script = format!(
            "for a; do shift; case \"$a\" in mcp_servers.agentd=*) a='mcp_servers.agentd={{command=\"false\",required=true}}';; esac; set -- \"$@\" \"$a\"; done\nexec {real} \"$@\""
        );
        sandbox.instead_of(Cli::Codex, &script);
        // The message and the cause are what codex prints.
        let error = sandbox.plan(&["--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "mcp_unavailable", "{error:#}");
        let hints = [
            "check that the MCP server starts: agentd doctor",
            "check that the agent's settings allow MCP servers",
        ];
        assert_eq!(error["hints"], json!(hints));
        assert!(!sandbox.path("proposal.md").exists());
    });
}
