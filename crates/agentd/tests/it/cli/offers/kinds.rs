//! Every kind of error: a command that ends with it, and what its hints suggest, which agentd and
//! git accept. A kind that no test can provoke here has a reason.

use std::any::Any;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use agentd_core::diagnostic::Severity;
use agentd_core::error_kind::Kind;
use test_project::{TestProject, git};

use super::{ID, after, approved, archived, needs_revision, offered, planned, project, refusal};

/// How a kind of error comes about.
enum Case {
    /// In this project, by this command.
    By(fn() -> TestProject, &'static [&'static str]),
    /// The same, with something that is held while the command runs.
    While(fn() -> TestProject, fn(&TestProject) -> Box<dyn Any>, &'static [&'static str]),
    /// Not here, and why.
    Not(&'static str),
}

const REMOTE: &str = "it needs a remote repository that somebody else has pushed to";
const AGENT: &str = "it takes an agent that behaves like this; tests of steps have them";
const CODE: &str = "it takes an implementer that has written code; the tests of git have them";
const FLEET: &str = "it takes a program without agentd-fleet beside it, or a server that is down";
const SYSTEM: &str = "it takes a system that refuses something; unit tests have that";
const TERMINAL: &str = "it takes a terminal; `--json`, by which hints are read here, has none";

const PLAN: &[&str] = &["plan", ID, "--auto"];
const BRANCH: &[&str] = &["plan", ID, "--auto", "--git", "branch"];
const WORK_TREE: &[&str] = &["plan", ID, "--auto", "--git", "worktree"];

/// A new kind gets a case here.
fn case(kind: Kind) -> Case {
    use Case::{By, Not, While};
    match kind {
        Kind::NotInitialised => By(TestProject::empty, &["list"]),
        Kind::ConfigInvalid => By(|| config("[nope]\n"), &["status"]),
        Kind::NotTrusted => By(|| config("[codex]\ncommand = \"mine\"\n"), PLAN),
        Kind::RepositorySettings => By(repository_settings, &["challenge"]),
        Kind::SigningFailed => By(no_signing_key, &["decide", ID, "fix"]),
        Kind::StateInvalid => By(broken_state, &["status"]),
        Kind::NoState => By(no_state, &["log"]),
        Kind::Context => Not(SYSTEM),
        Kind::Store => By(unreadable_proposal, &["show"]),
        Kind::Locked => While(planned, hold_run_lock, PLAN),
        Kind::NoSuchChange => By(planned, &["status", "nope"]),
        Kind::IdTaken => By(|| planned().change("other"), &["rename", "other", ID]),
        Kind::NoChange => By(project, &["log"]),
        Kind::NoSuchDocument => By(planned, &["show", ID, "nope"]),
        Kind::NoSuchRule => By(planned, &["explain", "nope"]),
        Kind::NothingToTrace => By(planned, &["trace", "nope:R1"]),
        Kind::ClarificationsMissing => By(project, &["plan", "new-one", "Make it better"]),
        Kind::NoDescription => By(project, &["plan", "new-one"]),
        Kind::QuestionsInvalid => Not("questions that cannot be read are proposed again"),
        Kind::DescriptionUnreadable => By(project, &["plan", "new-one", "--file", "nope.md"]),
        Kind::AnswersUnreadable => By(planned, &["clarify", "--answers", "nope.json"]),
        Kind::AnswersInvalid => By(planned, &["clarify", "--answers", "bad.json"]),
        Kind::Refused => By(needs_revision_of_high, &["decide", "accept"]),
        Kind::NothingToDecide => By(planned, &["decide", "fix"]),
        Kind::Claimed | Kind::ClaimLost | Kind::NotCarried => Not(REMOTE),
        Kind::FleetMissing | Kind::FleetUnreachable => Not(FLEET),
        Kind::RemoteUnreachable => By(committed, &["take", "new-one"]),
        Kind::NothingToSettle => By(planned, &["cost", "--settle", "1=0.5"]),
        Kind::ChangeNotReady => By(planned, &["impl"]),
        Kind::FormatInvalid => By(|| planned().edit("tasks.md", "## ", "# "), &["challenge"]),
        Kind::VerdictUnknown | Kind::StaleVerdict | Kind::SpecCycle => Not(AGENT),
        Kind::TasksLeft | Kind::McpUnavailable | Kind::NoArtefact | Kind::InvalidArtefact => {
            Not(AGENT)
        }
        Kind::NoTests => By(project, &["bug", "new-one", "It is wrong"]),
        Kind::TestsFailing | Kind::NotReproduced => Not(CODE),
        Kind::StateEdited => By(forged_phase, &["plan", ID]),
        Kind::JournalChanged => By(foreign_journal, &["plan", ID]),
        Kind::ReviewStale => By(edited_since, &["archive", ID]),
        Kind::NotIndependent => By(not_independent, &["challenge"]),
        Kind::NoReview => By(planned, &["reproposal"]),
        Kind::NoDocument => Not("the check of documents finds what is missing first"),
        Kind::NoSuchTask => By(approved_plan, &["implement", "--tasks", "9.9"]),
        Kind::Budget => By(|| config(&with_roles("[budget]\nmax_cost_usd = 0.0\n")), PLAN),
        Kind::AboveAskLimit => By(|| config(&with_roles("[budget]\nask_above_usd = 0.0\n")), PLAN),
        Kind::NoTerminal | Kind::Prompt => Not(TERMINAL),
        Kind::AgentNotInstalled => By(approved_plan, &["impl"]),
        Kind::AgentAuth => By(no_login, &["challenge"]),
        Kind::AgentUnfit => Not(AGENT),
        Kind::AgentFailed => By(|| challenger("exit 3"), &["challenge"]),
        Kind::Run | Kind::Agents | Kind::PathNotUtf8 => Not(SYSTEM),
        Kind::SessionNotCaptured => By(|| planner_session("exit 0", None), &["reproposal"]),
        Kind::SessionNotFound => By(no_such_session, &["reproposal"]),
        Kind::SessionListFailed => {
            By(|| planner_session("echo broken >&2; exit 1", Some(SESSION)), &["reproposal"])
        }
        Kind::SessionListTimedOut => Not("it would take as long as the limit for that call"),
        Kind::SessionListUnparseable => {
            By(|| planner_session("echo what; exit 0", Some(SESSION)), &["reproposal"])
        }
        Kind::GitNotInstalled => By(planned, BRANCH),
        Kind::GitTooOld => By(old_git, WORK_TREE),
        Kind::GitNoRepository => By(|| identified(planned().programs(TOOLS)), BRANCH),
        Kind::GitNoWorkTree => By(bare, BRANCH),
        Kind::GitNoCommit => By(|| identified(planned().programs(TOOLS)).repository(), BRANCH),
        Kind::GitSubmodule => Not("hints are run in the root of a project, which is no submodule"),
        Kind::GitBranchNameTaken => By(name_taken, BRANCH),
        Kind::GitCheckedOutElsewhere => By(checked_out_elsewhere, BRANCH),
        Kind::GitCheckedOutHere => By(checked_out_here, WORK_TREE),
        Kind::GitNoWorkTreeOfChange => Not(CODE),
        Kind::GitSwitchRefused => By(in_the_way, BRANCH),
        Kind::GitPathTaken => By(path_taken, WORK_TREE),
        Kind::GitOtherBranch => By(other_branch, WORK_TREE),
        Kind::GitLeadsOut => Not("hints are run in the root of a repository, which leads nowhere"),
        Kind::GitNoBaseBranch | Kind::GitNoSuchCommit | Kind::GitDamaged | Kind::GitConflicts => {
            Not(CODE)
        }
        Kind::GitNoIdentity | Kind::GitCommitRefused | Kind::Tampered => Not(CODE),
        Kind::GitTimedOut => Not("it would take as long as the limit for a call of git"),
        Kind::GitFailed => By(broken_link, BRANCH),
        Kind::Sandbox => Not(SYSTEM),
        Kind::Git | Kind::Demo => Not("it takes a demo that somebody has tampered with"),
        Kind::Conflict => By(conflict, &["archive", ID, "--force", "by hand"]),
        Kind::UnsoundSpec => By(unsound_spec, &["archive", ID, "--force", "by hand"]),
        Kind::NotArchived => By(planned, &["unarchive", "nope"]),
        Kind::NoArchiveRecord => By(no_record, &["unarchive", ID]),
        Kind::BadRecord => By(bad_record, &["unarchive", ID]),
        Kind::ChangeOpen => By(open_again, &["unarchive", ID]),
        Kind::ChangedSince => By(changed_since, &["unarchive", ID]),
        Kind::Recording => By(planned, &["replay", ID, "--into", "../elsewhere"]),
        Kind::AlreadyThere | Kind::Replay => {
            Not("it takes a recording; tests of replays have them")
        }
        Kind::Export => By(planned, &["export", ID, "--output", "/nowhere/x.tar"]),
        Kind::Port => Not("it takes a port that is in use; tests of the viewer have one"),
        Kind::Viewer | Kind::Output | Kind::Mcp => Not(SYSTEM),
        Kind::NotRunning => Not("only the viewer stops what others have started"),
        Kind::Comment => Not("only the viewer records comments"),
        Kind::NotEmpty => By(planned, &["demo", "--dir", "."]),
        Kind::Usage => By(planned, &["list", "--nope"]),
        Kind::Interrupted => Not("somebody has to press Ctrl-C; tests of kills do"),
        Kind::OutputClosed => Not("it is no failure, and nothing is printed"),
        Kind::Internal => Not("it should not be possible"),
    }
}

#[test]
fn heavy_hints_about_files_and_plans_work() {
    check(|group| !matches!(group, "Git" | "Agents"));
}

#[test]
fn heavy_hints_about_agents_work() {
    check(|group| group == "Agents");
}

#[test]
fn heavy_hints_about_git_work() {
    check(|group| group == "Git");
}

/// Provokes every kind of error of some groups, and runs what its hints suggest.
fn check(is_meant: fn(&str) -> bool) {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for kind in Kind::ALL.iter().filter(|kind| is_meant(kind.group())) {
        let (make, hold, args) = match case(*kind) {
            Case::By(make, args) => (make, None, args),
            Case::While(make, hold, args) => (make, Some(hold), args),
            Case::Not(reason) => {
                assert!(!reason.is_empty(), "{kind}");
                continue;
            }
        };
        let provoked = || {
            let project = make();
            let held = hold.map(|hold| hold(&project));
            let run = project.run(args.iter().copied().chain(["--json"]));
            drop(held);
            (project, run)
        };
        let (_, run) = provoked();
        let found = run.json()["error"]["kind"].clone();
        if found != kind.name() {
            wrong.push(format!("{kind}: `agentd {}` ends with {}", args.join(" "), run.stdout));
            continue;
        }
        for i in 0..offered(&run).len() {
            tried += 1;
            // It names the paths of its project.
            let (project, run) = provoked();
            let offers = offered(&run);
            let offer = &offers[i];
            if offer.follows && i > 0 {
                assert_eq!(refusal(&project, &offers[i - 1]), None, "{kind}");
            }
            if let Some(why) = refusal(&project, offer) {
                wrong.push(format!("{kind}: suggests `{}`: {why}", offer.command));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 0, "nothing was suggested");
}

/// What `doctor` suggests where settings run something.
#[test]
fn hints_of_doctor_work() {
    let project = config("[codex]\ncommand = \"mine\"\n");
    let run = project.run(["doctor", "--json"]);
    let offers = offered(&run);
    assert!(offers.iter().any(|offer| offer.command == "agentd trust"), "{offers:?}");
    for offer in offers {
        assert_eq!(refusal(&project, &offer), None, "{offer:?}");
    }
}

/// Programs that hints run.
const TOOLS: &[&str] = &["git", "mv", "ls", "df"];
const SESSION: &str = "0b5f7b1e-3d4e-4c7d-9f4a-1a2b3c4d5e6f";

fn approved_plan() -> TestProject {
    after(planned(), &[approved])
}

/// A plan in a project with these settings.
fn config(text: &str) -> TestProject {
    planned().root_file("agentd/config.toml", text)
}

fn with_roles(text: &str) -> String {
    format!("{}{text}", super::ROLES)
}

/// Git knows who commits.
fn identified(project: TestProject) -> TestProject {
    let settings = "[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n";
    fs::write(project.home().join(".gitconfig"), settings).unwrap();
    project
}

/// A plan in a repository with a commit.
fn committed() -> TestProject {
    let project = identified(planned().programs(TOOLS)).repository();
    project.commit("start");
    project
}

/// Where the worktree of the change would be.
fn beside(project: &TestProject) -> PathBuf {
    project.base().join("project-agentd").join(ID)
}

fn hold_run_lock(project: &TestProject) -> Box<dyn Any> {
    Box::new(project.store().try_run_lock(&project.id(), &project.holder()).unwrap())
}

fn repository_settings() -> TestProject {
    let roles = "[roles]\nplanner = \"builtin\"\nchallenger = \"gemini\"\n";
    let project = config(roles).program("gemini", "exit 0");
    project.root_file(".gemini/.env", "GOOGLE_GEMINI_BASE_URL=https://example.org\n")
}

fn broken_state() -> TestProject {
    let project = committed();
    project.write("STATE.yaml", "phase: [");
    project
}

fn no_state() -> TestProject {
    let project = planned();
    fs::remove_file(project.path("STATE.yaml")).unwrap();
    project
}

/// Somebody has made an approval of a plan that needs revision.
fn forged_phase() -> TestProject {
    let project = after(planned(), &[needs_revision]);
    project.edit("STATE.yaml", "phase: proposed", "phase: challenged")
}

/// The files came from another machine, and a line of the journal was edited on the way.
fn foreign_journal() -> TestProject {
    let project = approved_plan();
    fs::remove_dir_all(project.home().join(".local/state/agentd")).unwrap();
    project.edit("journal.jsonl", "APPROVED", "REJECTED")
}

/// The code was approved, and is another one now.
fn edited_since() -> TestProject {
    let project = super::complete();
    let (store, id, holder) = (project.store(), project.id(), project.holder());
    agentd_engine::change::documents::update_state(
        &store,
        &id,
        &holder,
        test_project::now(),
        |state| {
            let review = state.code_review.as_mut().expect("it is complete");
            review.tree = Some(agentd_core::hash::Digest::of("another tree"));
            Ok(())
        },
    )
    .unwrap();
    project
}

fn unreadable_proposal() -> TestProject {
    let project = planned();
    fs::remove_file(project.path("proposal.md")).unwrap();
    symlink("/etc/hostname", project.path("proposal.md")).unwrap();
    project
}

/// Lines are to be signed, and there is no key.
fn no_signing_key() -> TestProject {
    let project = identified(config("").programs(TOOLS)).challenged(&[Severity::High]);
    project.root_file("agentd/config.toml", with_roles("[policy]\nsign = \"ssh\"\n"))
}

fn not_independent() -> TestProject {
    let roles = "[roles]\nplanner = \"claude\"\nchallenger = \"claude\"\n";
    config(&format!("{roles}[policy]\nindependent_review = \"require\"\n"))
}

fn needs_revision_of_high() -> TestProject {
    planned().challenged(&[agentd_core::diagnostic::Severity::High])
}

/// The challenger is this script.
fn challenger(script: &str) -> TestProject {
    let roles = "[roles]\nplanner = \"builtin\"\nchallenger = \"codex\"\n";
    let config = config(&format!("{roles}[workflow]\nscript_retries = 0\n"));
    config.program("codex", &format!("PATH=/usr/bin:/bin\ncat > /dev/null\n{script}"))
}

fn no_login() -> TestProject {
    challenger("echo 'unexpected status 401 Unauthorized' >&2; exit 1")
}

/// The planner is gemini, which answers like this to `--list-sessions`.
fn planner_session(script: &str, session: Option<&str>) -> TestProject {
    use agentd_core::diagnostic::Severity;
    let roles = "[roles]\nplanner = \"gemini\"\nchallenger = \"builtin\"\n";
    let project = config(&format!("{roles}[workflow]\nscript_retries = 0\n"));
    let project = project.challenged(&[Severity::High]);
    if let Some(session) = session {
        let state = project.read("STATE.yaml");
        project.write("STATE.yaml", format!("{state}session_id: {session}\n"));
    }
    project.program("gemini", &format!("PATH=/usr/bin:/bin\n{script}"))
}

fn no_such_session() -> TestProject {
    let none = "echo 'No previous sessions found for this project.'; exit 0";
    planner_session(none, Some(SESSION))
}

fn old_git() -> TestProject {
    let project = committed();
    fs::remove_file(project.bin().join("git")).unwrap();
    let script = "PATH=/usr/bin:/bin\ncase \"$*\" in\n*' version'*) echo git version 2.25.1;;\n\
                  *worktree*) echo 'usage: git worktree' >&2; exit 129;;\n*) exec git \"$@\";;\nesac";
    project.program("git", script)
}

fn bare() -> TestProject {
    let project = identified(planned().programs(TOOLS));
    project.git(&["init", "-q", "--bare"]);
    let tree = project.git(&["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let commit = project.git(&["commit-tree", "-m", "start", &tree]);
    project.git(&["update-ref", "refs/heads/work", &commit]);
    project.git(&["symbolic-ref", "HEAD", "refs/heads/work"]);
    project
}

fn name_taken() -> TestProject {
    let project = committed();
    project.git(&["branch", "agentd"]);
    project
}

fn checked_out_elsewhere() -> TestProject {
    let project = committed();
    let branch = format!("agentd/{ID}");
    project.git(&["worktree", "add", "-q", "-b", &branch, "../elsewhere"]);
    project
}

fn checked_out_here() -> TestProject {
    let project = committed();
    project.git(&["switch", "-q", "-c", &format!("agentd/{ID}")]);
    project
}

fn in_the_way() -> TestProject {
    let project = checked_out_here();
    project.write_root("b.txt", "theirs\n");
    project.commit("earlier work");
    project.git(&["switch", "-q", "main"]);
    project.write_root("b.txt", "mine\n");
    project
}

fn path_taken() -> TestProject {
    let project = committed();
    fs::create_dir_all(beside(&project)).unwrap();
    fs::write(beside(&project).join("theirs"), "x").unwrap();
    project
}

fn other_branch() -> TestProject {
    let project = committed();
    let (branch, path) = (format!("agentd/{ID}"), beside(&project));
    project.git(&["worktree", "add", "-q", "-b", &branch, path.to_str().unwrap()]);
    git(&path, &["switch", "-q", "-c", "other"]);
    project
}

fn broken_link() -> TestProject {
    planned().programs(TOOLS).root_file(".git", "gitdir: /nowhere/at/all\n")
}

/// The main spec was edited since the change began, and the change edits it, too.
fn conflict() -> TestProject {
    let project = planned();
    let spec = project.read("specs/auth-flow.md");
    project.write("base/auth-flow.md", &spec);
    project.write_root("agentd/specs/auth-flow.md", spec.replace("MUST", "MUST always"));
    project.write("specs/auth-flow.md", spec.replace("MUST", "MUST never"));
    project
}

fn unsound_spec() -> TestProject {
    planned().edit("specs/auth-flow.md", "id: auth-flow", "id: [")
}

fn archive_dir(project: &TestProject) -> PathBuf {
    let mut dirs = fs::read_dir(project.root().join("agentd/archive")).unwrap();
    dirs.next().unwrap().unwrap().path()
}

fn no_record() -> TestProject {
    let project = archived();
    fs::remove_file(archive_dir(&project).join("archive.json")).unwrap();
    project
}

fn bad_record() -> TestProject {
    let project = archived();
    fs::write(archive_dir(&project).join("archive.json"), "{").unwrap();
    project
}

fn open_again() -> TestProject {
    archived().change(ID)
}

fn changed_since() -> TestProject {
    let project = archived();
    project.write_root("agentd/specs/auth-flow.md", "# Another\n");
    project
}
