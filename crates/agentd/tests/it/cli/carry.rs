//! A change that travels between machines: claims, snapshots, takeovers, and what stops one that has
//! lost the change.

use std::fs;
use std::process::{Child, Stdio};

use agentd_core::carried::{Carried, CarriedState};
use serde_json::{Value, json};
use test_project::Output;

use super::clones::Clones;
use super::stand_in::{self, CHANGE};
use super::verify;

const WHAT: &str = "Let people sign in";
const STEP: [&str; 8] =
    ["step", CHANGE, WHAT, "--skip-clarify", "--auto", "--trust", "--json", "--carry"];

fn clones() -> Clones {
    let clones = Clones::new("");
    clones.clone_again();
    clones
}

/// A step in one of the clones, as the worker of this name.
fn step_as(clones: &Clones, second: bool, worker: &str, more: &[&str]) -> Output {
    let words = [&STEP[..], &["origin", "--as", worker], more].concat();
    if second { clones.second(&words) } else { clones.first.run(words) }
}

fn remote(clones: &Clones, args: &[&str]) -> String {
    let dir = clones.first.base().join("remote.git");
    clones.first.git(&[&["-C", dir.to_str().unwrap()], args].concat())
}

fn carried(clones: &Clones) -> Option<Carried> {
    let refs = remote(clones, &["for-each-ref", "--format=%(refname)", "refs/agentd/wip"]);
    if refs.is_empty() {
        return None;
    }
    Carried::of_message(&remote(clones, &["log", "-1", "--format=%B", "refs/agentd/wip/add-login"]))
}

// contract S3
#[test]
fn two_clones_take_turns_and_nothing_is_paid_twice() {
    let clones = clones();
    let mut did = Vec::new();
    for turn in 0.. {
        let step = step_as(&clones, turn % 2 == 1, ["box-a", "box-b"][turn % 2], &[]).exits(0);
        let report = step.json();
        did.extend(report["did"].as_str().map(str::to_owned));
        let now = carried(&clones);
        if report["done"] == true {
            assert_eq!(now, None, "nothing is left to be carried");
            break;
        }
        let now = now.unwrap();
        assert_eq!(now.state, CarriedState::Ready, "{step}");
        assert_eq!(now.next.unwrap().step.as_str(), report["next"]["step"], "{step}");
        assert!(turn < 20);
    }
    assert_eq!(
        did,
        [
            "proposal-gen",
            "spec-gen-auth-flow",
            "tasks-gen",
            "challenge",
            "implement-logic",
            "tests",
            "review",
            "archive"
        ]
    );
    let calls = stand_in::calls(&clones.first);
    assert_eq!(calls.len(), 6, "{calls:?}");
    // What came of it is on the branch, all of it committed.
    let files = remote(&clones, &["ls-tree", "-r", "--name-only", "agentd/add-login"]);
    for file in ["src/login.rs", "agentd/specs/auth-flow.md", "agentd/specs/CHANGELOG.md"] {
        assert!(files.lines().any(|line| line == file), "{file}: {files}");
    }
    let archived = files.lines().filter(|line| line.starts_with("agentd/archive/"));
    assert!(archived.clone().any(|line| line.ends_with("/STATE.yaml")), "{files}");
    assert!(!files.contains("/runs/") && !files.contains("agentd/changes/"), "{files}");
    // Anyone who asks is answered that it is done, and pays nothing.
    for (second, worker) in [(false, "box-a"), (true, "box-b")] {
        let again = step_as(&clones, second, worker, &[]).exits(0).json();
        assert_eq!(json!([again["did"], again["done"]]), json!([null, true]));
    }
    assert_eq!(stand_in::calls(&clones.first), calls);
}

/// A user's own index, files and branches are not touched by a snapshot.
#[test]
fn a_snapshot_touches_nothing_of_the_checkout() {
    let clones = clones();
    step_as(&clones, false, "box-a", &[]).exits(0);
    clones.first.write_root("staged.txt", "staged\n");
    clones.first.git(&["add", "staged.txt"]);
    clones.first.write_root("notes.txt", "mine\n");
    let seen = |clones: &Clones| {
        let git = |args: &[&str]| clones.first.git(args);
        [git(&["status", "--porcelain"]), git(&["rev-parse", "HEAD"]), git(&["for-each-ref"])]
    };
    let before = seen(&clones);
    step_as(&clones, false, "box-a", &[]).exits(0);
    assert_eq!(seen(&clones), before);
    // Uncommitted files travel, records of calls without what was said in them, contexts not at all.
    let files = remote(&clones, &["ls-tree", "-r", "--name-only", "refs/agentd/wip/add-login"]);
    assert!(files.contains("notes.txt") && files.contains("staged.txt"), "{files}");
    assert!(!files.contains("GEMINI.md") && !files.contains("AGENTS.md"), "{files}");
    let run = "refs/agentd/wip/add-login:agentd/changes/add-login/runs/0001-proposal-gen.jsonl";
    let run = remote(&clones, &["show", run]);
    let whole = clones.first.read_root("agentd/changes/add-login/runs/0001-proposal-gen.jsonl");
    assert!(run.contains("\"session_id\"") && run.contains("\"end\""), "{run}");
    assert!(whole.contains("create_proposal") && !run.contains("create_proposal"), "{run}");
    let refused = step_as(&clones, true, "box-b", &[]).exits(0);
    assert_eq!(refused.json()["did"], "tasks-gen");
    assert!(clones.second.join("notes.txt").is_file());
}

/// Starts a step as a process of its own.
fn start(clones: &Clones, second: bool, worker: &str, more: &[&str]) -> Child {
    let words = [&STEP[..], &["origin", "--as", worker], more].concat();
    let mut command = clones.first.command([] as [&str; 0]);
    if second {
        command.arg("-C").arg(&clones.second);
    }
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts a step whose implementer works until [`stand_in::hold`] is gone.
fn begin_implementing(clones: &Clones, second: bool, worker: &str, more: &[&str]) -> Child {
    fs::write(stand_in::hold(&clones.first), "").unwrap();
    let implementing = || {
        let calls = stand_in::calls(&clones.first);
        calls.iter().filter(|step| *step == "implement-logic").count()
    };
    let before = implementing();
    let child = start(clones, second, worker, more);
    stand_in::wait_until("the implementer is called", || implementing() > before);
    child
}

fn plan(clones: &Clones) {
    for _ in 0..4 {
        step_as(clones, false, "box-a", &[]).exits(0);
    }
}

fn ended(child: Child) -> (i32, Value) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text} {output:?}"));
    (output.status.code().unwrap_or(-1), json)
}

/// Nobody continues a change whose worker is alive. One that has lost its change is stopped at its
/// next sign of life, its agent too, and nothing of it reaches the remote.
// contract S3
#[test]
fn a_lost_change_ends_the_agent_and_the_command() {
    let clones = clones();
    plan(&clones);
    let first = begin_implementing(&clones, false, "box-a", &["--beat", "3"]);
    let now = carried(&clones).unwrap();
    assert_eq!((now.state, now.worker.as_str()), (CarriedState::Held, "box-a"));
    assert_eq!(now.doing.unwrap().step.as_str(), "implement-logic");
    let calls = stand_in::calls(&clones.first);
    let refused = step_as(&clones, true, "box-b", &["--patience", "30"]).exits(75);
    assert_eq!(refused.json()["error"]["kind"], "claimed", "{refused}");
    assert_eq!(stand_in::calls(&clones.first), calls);
    // Who is sure that it is dead does not wait, and continues from before the call.
    let second = begin_implementing(&clones, true, "box-b", &["--patience", "0"]);
    let (code, report) = ended(first);
    assert_eq!((code, &report["error"]["kind"]), (75, &json!("claim_lost")), "{report:#}");
    assert_eq!(carried(&clones).unwrap().worker.as_str(), "box-b");
    fs::remove_file(stand_in::hold(&clones.first)).unwrap();
    let (code, report) = ended(second);
    assert_eq!((code, &report["did"]), (0, &json!("implement-logic")), "{report:#}");
    // The call of the first is in the books of the second, since it may have been paid for.
    let cost = clones.second(&["cost", CHANGE, "--json"]).exits(0).json();
    let unsettled = cost["unsettled"].as_array().unwrap();
    assert_eq!(unsettled.len(), 1, "{cost:#}");
    assert_eq!(unsettled[0]["step"], "implement-logic");
    // The first comes back, and continues with what the second has done.
    let next = step_as(&clones, false, "box-a", &["--discard"]).exits(0).json();
    assert_eq!(next["did"], "tests");
}

/// A machine that is gone with all its files loses only the call that was running.
// contract S3
#[test]
fn a_machine_that_is_gone_costs_at_most_one_call() {
    let clones = clones();
    for _ in 0..4 {
        step_as(&clones, true, "box-b", &[]).exits(0);
    }
    let mut running = begin_implementing(&clones, true, "box-b", &[]);
    running.kill().unwrap();
    running.wait().unwrap();
    fs::remove_file(stand_in::hold(&clones.first)).unwrap();
    fs::remove_dir_all(&clones.second).unwrap();
    let calls = stand_in::calls(&clones.first).len();
    let mut did = Vec::new();
    while did.last().is_none_or(|did| did != "archive") {
        let report = step_as(&clones, false, "box-a", &["--patience", "1"]).exits(0).json();
        did.push(report["did"].as_str().unwrap().to_owned());
    }
    assert_eq!(did, ["implement-logic", "tests", "review", "archive"]);
    assert_eq!(stand_in::calls(&clones.first).len(), calls + 2);
    let archived = clones.first.run(["list", "--archived", "--json"]).exits(0).json();
    let name = archived["archived"][0].as_str().unwrap().to_owned();
    let state = clones.first.read_root(&format!("agentd/archive/{name}/STATE.yaml"));
    assert_eq!(state.matches("unsettled: true").count(), 1, "{state}");
    clones.first.run(["verify", &name]).exits(0);
}

/// Two clones begin the same change at the same moment: one pays.
// contract S3
#[test]
fn of_two_who_begin_a_change_one_pays() {
    let clones = clones();
    let mut lost = 0;
    for round in 0..4 {
        let both = [(false, "a"), (true, "b")]
            .map(|(second, worker)| start(&clones, second, worker, &["--patience", "0"]));
        let mut ends: Vec<(i32, Value)> = both.into_iter().map(ended).collect();
        ends.sort_by_key(|end| end.0);
        assert_eq!(ends[0].0, 0, "{round}: {ends:#?}");
        // The other one came too late for this step, and in time for the next.
        if ends[1].0 != 0 {
            lost += 1;
            assert_eq!((ends[1].0, &ends[1].1["error"]["kind"]), (75, &json!("claim_lost")));
        }
    }
    assert!(lost > 0);
    let calls = stand_in::calls(&clones.first);
    let mut unique = calls.clone();
    unique.dedup();
    assert_eq!(calls, unique, "no call was made twice");
}

/// A person takes a change from the fleet, decides, and gives it back.
// contract S3
#[test]
fn a_person_takes_a_change_and_gives_it_back() {
    let clones = clones();
    stand_in::verdicts(&clones.first, "NEEDS_REVISION", "APPROVED");
    let words = [
        &["step", CHANGE, WHAT, "--skip-clarify", "--trust", "--json"][..],
        &["--carry", "origin", "--as", "box-a"],
    ]
    .concat();
    let mut last = Value::Null;
    for _ in 0..4 {
        last = clones.first.run(&words).exits(0).json();
    }
    assert_eq!(last["waiting_for"], "decision", "{last:#}");
    let now = carried(&clones).unwrap();
    assert_eq!((now.state, now.why.as_str()), (CarriedState::Waiting, "its plan needs revision"));
    let tip = remote(&clones, &["rev-parse", "refs/agentd/wip/add-login"]);
    clones.first.run(&words).exits(0);
    assert_eq!(remote(&clones, &["rev-parse", "refs/agentd/wip/add-login"]), tip, "still waiting");

    let taken = clones.second(&["take", CHANGE, "--as", "ada"]).exits(0);
    assert!(taken.stdout.starts_with("add-login is yours (ada) until you run"), "{taken}");
    let refused = clones.first.run(&words).exits(75).json();
    assert_eq!(refused["error"]["kind"], "claimed", "{refused:#}");
    clones.second(&["decide", CHANGE, "fix", "--note", "make it short"]).exits(0);
    let given =
        clones.second(&["give", CHANGE, "--as", "ada", "--trust", "--json"]).exits(0).json();
    assert_eq!(given["next"]["step"], "reproposal", "{given:#}");
    assert_eq!(carried(&clones).unwrap().state, CarriedState::Ready);
    // Who has nothing gives nothing.
    let again = clones.second(&["give", CHANGE, "--as", "ada", "--trust", "--json"]).exits(75);
    assert_eq!(again.json()["error"]["kind"], "claim_lost");
    let next = clones.first.run(&words).exits(0).json();
    assert_eq!(next["did"], "reproposal");
    assert!(stand_in::prompt(&clones.first, "reproposal").contains("make it short"));
    // Another one takes it by force.
    clones.second(&["take", CHANGE, "--as", "ada"]).exits(0);
    clones.first.run(["take", CHANGE, "--as", "bob"]).exits(75);
    clones.first.run(["take", CHANGE, "--as", "bob", "--force"]).exits(0);
    assert_eq!(carried(&clones).unwrap().worker.as_str(), "bob");
    // A change that was never carried is given, too.
    clones.first.git(&["switch", "-q", "main"]);
    let new = clones.first.run(["take", "another", "--as", "bob", "--json"]).exits(0).json();
    assert_eq!(new["next"], json!([]));
}

/// Nothing of the user's is overwritten by what comes from the remote.
#[test]
fn what_is_only_here_is_kept() {
    let clones = clones();
    step_as(&clones, false, "box-a", &[]).exits(0);
    let refused = |why: &str| {
        let error = step_as(&clones, true, "box-b", &[]).exits(1).json();
        assert_eq!(error["error"]["kind"], "not_carried", "{error:#}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
    };
    fs::write(clones.second.join("mine.txt"), "mine").unwrap();
    refused("there are uncommitted files");
    assert!(clones.second.join("mine.txt").is_file());
    clones.git(&["switch", "-q", "-c", "agentd/add-login"]);
    clones.git(&["add", "mine.txt"]);
    clones.git(&["commit", "-q", "-m", "Mine"]);
    refused("its branch has commits that the remote does not have");
    // A clone that is there for such changes has nothing to lose.
    let next = step_as(&clones, true, "box-b", &["--discard"]).exits(0).json();
    assert_eq!(next["did"], "spec-gen-auth-flow");
    assert!(!clones.second.join("mine.txt").exists());
}

/// A remote that does not answer is reported, before anything is paid.
#[test]
fn without_a_remote_nothing_is_paid() {
    let project = stand_in::repository("");
    let words = [&STEP[..], &["origin"]].concat();
    let error = project.run(words).exits(1).json();
    assert_eq!(error["error"]["kind"], "remote_unreachable");
    assert!(stand_in::calls(&project).is_empty());
    project.run([&STEP[..], &["--upload-pack=touch x"]].concat()).exits(2);
}

/// Anyone who can push can push a verdict. Where that matters, a worker wants to know whose it is.
// contract S3
#[test]
fn only_what_is_signed_is_continued_where_that_is_wanted() {
    let mut clones = Clones::new("[policy]\nsign = \"ssh\"\n");
    clones.first = clones.first.programs(&["ssh-keygen"]);
    let project = &clones.first;
    verify::key(project, "ada", "");
    verify::key(project, "eve", "");
    verify::settings(project, "[user]\nsigningkey = ~/ada.pub\n");
    let ada = verify::list(project, &[("ada@example.org", "", "ada")]);
    let ada = ada.to_str().unwrap();
    clones.clone_again();
    for (second, worker) in [(false, "a"), (true, "b"), (false, "a"), (true, "b")] {
        step_as(&clones, second, worker, &["--allowed-signers", ada]).exits(0);
    }
    // Somebody who is not on the list approves of the code, and pushes that.
    verify::settings(project, "[user]\nsigningkey = ~/eve.pub\n");
    for did in ["implement-logic", "tests", "review"] {
        assert_eq!(step_as(&clones, true, "b", &[]).exits(0).json()["did"], did);
    }
    verify::settings(project, "[user]\nsigningkey = ~/ada.pub\n");
    let calls = stand_in::calls(project);
    let error = step_as(&clones, false, "a", &["--allowed-signers", ada]).exits(1).json();
    assert_eq!(error["error"]["kind"], "not_carried", "{error:#}");
    assert!(
        error["error"]["message"].as_str().unwrap().contains("nobody on the list"),
        "{error:#}"
    );
    assert_eq!(stand_in::calls(project), calls);
    assert!(!project.has_root("agentd/specs/auth-flow.md"), "nothing was archived");
    let error = project.run(["take", CHANGE, "--allowed-signers", ada, "--json"]).exits(1).json();
    assert_eq!(error["error"]["kind"], "not_carried", "{error:#}");
}

/// Settings that came with a snapshot run nothing that nobody has agreed to (T7).
#[test]
fn settings_from_the_remote_need_consent() {
    let clones = clones();
    step_as(&clones, true, "b", &[]).exits(0);
    let config = clones.second.join("agentd/config.toml");
    let text = fs::read_to_string(&config).unwrap().replace("\"true\"", "\"touch sprung\"");
    assert!(text.contains("sprung"));
    fs::write(&config, text).unwrap();
    step_as(&clones, true, "b", &[]).exits(0);
    let words: Vec<&str> = STEP.iter().copied().filter(|word| *word != "--trust").collect();
    let words = [&words[..], &["origin", "--as", "a"]].concat();
    let calls = stand_in::calls(&clones.first);
    let error = clones.first.run(&words).exits(1).json();
    assert_eq!(error["error"]["kind"], "not_trusted", "{error:#}");
    assert_eq!(stand_in::calls(&clones.first), calls);
    assert!(clones.first.read_root("agentd/config.toml").contains("sprung"), "it did come along");
}
