//! `agentd verify`: who signed what, and what cannot be shown. The keys and the program that signs
//! with them are real ones.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use agentd_core::diagnostic::Severity;
use agentd_core::journal::{self, Entry, Event, Journal};
use agentd_core::state::{Choice, Decision};
use agentd_core::text::Line;
use agentd_engine::change::documents::update_state;
use serde_json::{Value, json};
use test_project::{Output, TestProject, now, stamp, write, write_script};

const ID: &str = "add-oauth";
const ROLES: &str = "[roles]\nplanner = \"builtin\"\nchallenger = \"builtin\"\n";
const SIGN: &str = "[policy]\nsign = \"ssh\"\n";

/// Makes a key in the home directory; the path of its private half. Needs OpenSSH, as agentd does.
pub(crate) fn key(project: &TestProject, name: &str, passphrase: &str) -> PathBuf {
    let file = project.home().join(name);
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-C", name, "-N", passphrase, "-f"])
        .arg(&file)
        .status();
    assert!(made.expect("this test needs ssh-keygen, of OpenSSH").success());
    file
}

/// The user's own git settings.
pub(crate) fn settings(project: &TestProject, text: &str) {
    write(&project.home().join(".gitconfig"), text);
}

/// A project in which lines are signed, and Ada has a key.
fn signing() -> TestProject {
    let project = TestProject::new()
        .root_file("agentd/config.toml", format!("{ROLES}{SIGN}"))
        .programs(&["git", "ssh-keygen"])
        .change(ID);
    key(&project, "ada", "");
    settings(&project, "[user]\nsigningkey = ~/ada.pub\n");
    project
}

/// The same with a plan that was approved, by real calls.
fn signed() -> TestProject {
    let project = signing();
    project.run(["challenge", ID]).exits(0);
    project
}

/// A list of signers: each a name, options and the key of somebody.
pub(crate) fn list(project: &TestProject, signers: &[(&str, &str, &str)]) -> OsString {
    let line = |(name, options, key): &(&str, &str, &str)| {
        let key = fs::read_to_string(project.home().join(format!("{key}.pub"))).unwrap();
        format!("{name} {options} {key}")
    };
    let file = project.home().join("allowed_signers");
    write(&file, signers.iter().map(line).collect::<String>());
    file.into()
}

fn ada(project: &TestProject) -> OsString {
    list(project, &[("ada@example.org", "", "ada")])
}

fn verify(project: &TestProject, signers: &OsString) -> Output {
    let flag = OsString::from("--allowed-signers");
    project.run(["verify".into(), ID.into(), flag, signers.clone(), "--json".into()])
}

fn claim(run: &Output, name: &str) -> (String, String, Value) {
    let json = run.json();
    let claims = json["changes"][0]["claims"].as_array().unwrap().clone();
    let claim = claims.into_iter().find(|claim| claim["name"] == name).unwrap();
    let text = |key: &str| claim[key].as_str().unwrap().to_owned();
    (text("status"), text("text"), claim["signed_by"].clone())
}

/// Fails for this claim, with these words.
#[track_caller]
fn not_proven(run: &Output, name: &str, words: &str) {
    let (status, text, _) = claim(run, name);
    assert_eq!((run.code, &*status), (1, "not_proven"), "{text}");
    assert!(text.contains(words), "{text}");
}

fn entries(project: &TestProject) -> Vec<Entry> {
    journal::parse(&project.read("journal.jsonl")).unwrap().entries
}

/// Writes these entries, each after the one before, as somebody who can compute digests would, and
/// takes away what this machine knows.
fn rewrite(project: &TestProject, mut entries: Vec<Entry>) {
    let mut prev = None;
    for entry in &mut entries {
        entry.prev = prev;
        prev = Some(agentd_core::hash::Digest::of(entry.line()));
    }
    let journal = Journal { entries, head: journal::Head::default() };
    project.write("journal.jsonl", journal.text());
    forget(project);
}

/// As in a fresh clone.
fn forget(project: &TestProject) {
    let _ = fs::remove_dir_all(project.home().join(".local"));
}

// contract T6
#[test]
fn every_line_is_signed_and_verify_says_by_whom() {
    let project = signed();
    assert!(entries(&project).iter().all(|entry| entry.sig.is_some()));
    for _ in 0..2 {
        let run = verify(&project, &ada(&project)).exits(0);
        let json = run.json();
        let by = "ada@example.org";
        let expected = json!({"checked": true, "signed": 3, "unsigned": [], "last": by});
        assert_eq!(json["changes"][0]["signatures"], expected);
        let (status, text, by) = claim(&run, "plan");
        assert_eq!((&*status, by.as_str()), ("proven", Some("ada@example.org")), "{text}");
        assert!(text.ends_with("; signed by ada@example.org"), "{text}");
        // The same where no copy is known.
        forget(&project);
    }
    // Nothing is claimed about signatures that nobody checked.
    let run = project.run(["verify", ID, "--json"]).exits(0);
    let (status, text, _) = claim(&run, "signatures");
    assert_eq!(status, "not_claimed");
    assert_eq!(text, "3 of 3 entries are signed; not checked: pass --allowed-signers <file>");
    assert_eq!(run.json()["changes"][0]["signatures"]["checked"], false);
}

// contract T6
#[test]
fn a_signature_counts_only_from_somebody_on_the_list() {
    let project = signed();
    key(&project, "bob", "");
    let day = |at: &str| format!("valid-before=\"{at}\"");
    let early = day("20200101");
    for (name, signers) in [
        ("somebody else", &[("bob@example.org", "", "bob")][..]),
        ("for commits only", &[("ada@example.org", "namespaces=\"git\"", "ada")]),
        ("no longer", &[("ada@example.org", &early, "ada")]),
        ("nobody", &[]),
    ] {
        let run = verify(&project, &list(&project, signers));
        not_proven(&run, "signatures", "the last entry is signed with SHA256:");
        not_proven(&run, "plan", "add the key if it is a teammate's");
        assert!(run.json()["changes"][0]["signatures"]["last"].is_null(), "{name}");
    }
    let late = day("20990101");
    let both = [
        ("bob@example.org", "", "bob"),
        ("ada@example.org,ada@work", "namespaces=\"git,agentd-journal\"", "ada"),
        ("ada@example.org", &late, "ada"),
    ];
    verify(&project, &list(&project, &both)).exits(0);
    let none = verify(&project, &project.home().join("nope").into()).exits(1);
    assert_eq!(none.json_error()["kind"], "signing_failed");
}

// contract T6
#[test]
fn what_somebody_without_the_key_writes_is_not_signed() {
    let project = signed();
    let signers = ada(&project);
    let original = entries(&project);
    // Without its signature.
    let mut edited = original.clone();
    edited[2].sig = None;
    rewrite(&project, edited);
    project.run(["verify", ID]).exits(0);
    let run = verify(&project, &signers);
    not_proven(&run, "signatures", "the last entry is not signed: set `[policy] sign");
    not_proven(&run, "plan", "#3 is not signed");
    // With a signature of another line.
    let mut edited = original.clone();
    edited[2].sig = edited[1].sig.clone();
    rewrite(&project, edited);
    not_proven(&verify(&project, &signers), "plan", "#3 has a signature that is not its own");
    // With another reviewer.
    let mut edited = original.clone();
    let Event::PlanReviewed { reviewer, .. } = &mut edited[2].event else { panic!() };
    *reviewer = None;
    rewrite(&project, edited);
    not_proven(&verify(&project, &signers), "plan", "#3 has a signature that is not its own");
    // A line before it.
    let mut edited = original.clone();
    edited[1].at = stamp("2026-01-01T00:00:00Z");
    rewrite(&project, edited);
    not_proven(&verify(&project, &signers), "signatures", "has a signature that is not its own");
    // As it was.
    rewrite(&project, original);
    verify(&project, &signers).exits(0);
}

/// The signer of a later line continued a journal with a forged one, and did not write that.
// contract T6
#[test]
fn a_later_signature_does_not_make_a_decision_somebody_elses() {
    let project = signing();
    project.write_root("agentd/config.toml", ROLES);
    let project = project.challenged(&[Severity::High]);
    update_state(&project.store(), &project.id(), &project.holder(), now(), |state| {
        let (note, by) = (Line::default(), Line::new("ada"));
        let (choice, at, plan_hash) = (Choice::Fix, now(), None);
        state.decisions.push(Decision { choice, note, by, at, plan_hash });
        Ok(())
    })
    .unwrap();
    forget(&project);
    project.write_root("agentd/config.toml", format!("{ROLES}{SIGN}"));
    let unsigned = entries(&project).len();
    project.run(["decide", ID, "stop"]).exits(0);
    let run = verify(&project, &ada(&project));
    let (status, text, by) = claim(&run, "signatures");
    assert_eq!((&*status, by.as_str()), ("proven", Some("ada@example.org")), "{text}");
    assert!(text.ends_with("1 of 4 entries are signed, not #1, #2, #3"), "{text}");
    assert_eq!(unsigned, 3);
    not_proven(&run, "decisions", "fix by ada, stop by ada; #3 is not signed");
    not_proven(&run, "plan", "#2 is not signed");
}

/// A repository says that lines are signed, and nothing about how.
// contract T6
#[test]
fn the_repository_names_neither_the_key_nor_the_program() {
    let project = signing().repository();
    key(&project, "eve", "");
    let evil = project.root().join("evil");
    write_script(&evil, "touch \"$HOME/sprung\"; exit 1");
    write_script(&project.root().join("ssh-keygen"), "touch \"$HOME/sprung\"; exit 1");
    let set = |name: &str, value: &str| project.git(&["config", "--local", name, value]);
    set("user.signingkey", project.home().join("eve.pub").to_str().unwrap());
    set("agentd.signingkey", project.home().join("eve.pub").to_str().unwrap());
    set("gpg.ssh.program", evil.to_str().unwrap());
    let path = format!("{}:.:{}", project.root().display(), project.bin().display());
    let run = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        project.finish(command.env("PATH", &path))
    };
    run(&["challenge", ID]).exits(0);
    verify(&project, &ada(&project)).exits(0);
    assert!(!project.home().join("sprung").exists());
    // A path from the current directory would be one of the repository.
    for setting in ["ada.pub", "./eve.pub", "../home/eve.pub", "0A1B2C3D4E5F6071"] {
        settings(&project, &format!("[user]\nsigningkey = {setting}\n"));
        let error = run(&["archive", ID, "--force", "x", "--json"]).exits(1).json_error();
        assert_eq!(error["kind"], "signing_failed", "{setting}");
    }
    // The user's own settings may.
    settings(&project, "[user]\nsigningkey = 0A1B2C3D\n[agentd]\nsigningkey = ~/eve.pub\n");
    run(&["archive", ID, "--force", "x"]).exits(0);
    not_proven(&verify(&project, &ada(&project)), "signatures", "is signed with SHA256:");
}

/// Nothing is written, and no agent is called.
// contract T6
#[test]
fn what_cannot_be_signed_is_not_recorded() {
    let project = signing();
    key(&project, "locked", "secret");
    let files = || {
        let mut files = project.contents();
        // Written before each call.
        for file in ["AGENTS.md", "CHALLENGE.md"] {
            files.remove(&PathBuf::from(format!("agentd/changes/{ID}/{file}")));
        }
        (files, test_project::contents(&project.home().join(".local/state")))
    };
    settings(&project, "");
    // The directory for state is created, with its locks.
    project.run(["challenge", ID]).exits(1);
    project.run(["archive", ID, "--force", "x"]).exits(1);
    let before = files();
    let check = |words: &str| {
        for command in
            [&["challenge", ID, "--json"][..], &["archive", ID, "--force", "x", "--json"]]
        {
            let error = project.run(command).exits(1).json()["error"].clone();
            assert_eq!(error["kind"], "signing_failed", "{command:?}: {error}");
            let all = format!("{} {}", error["message"], error["cause"]);
            assert!(all.contains(words), "{all}");
            assert!(!error["hints"].as_array().unwrap().is_empty());
        }
        assert!(files() == before, "{words}");
    };
    check("your git settings name no key");
    settings(&project, "[user]\nsigningkey = ~/nowhere.pub\n");
    check("No such file or directory");
    settings(&project, "[user]\nsigningkey = ~/locked\n");
    check("incorrect passphrase");
    settings(&project, "[user]\nsigningkey = ~/ada.pub\n[gpg \"ssh\"]\nprogram = ~/nowhere\n");
    check("is not installed");
    settings(&project, "[user]\nsigningkey = ~/ada.pub\n[gpg \"ssh\"]\nprogram = /bin/true\n");
    check("it printed no signature");
    settings(&project, "[user]\nsigningkey = ~/ada.pub\n");
    let keygen = project.bin().join("ssh-keygen");
    fs::rename(&keygen, project.bin().join("away")).unwrap();
    check("`ssh-keygen` is not installed");
    let run = verify(&project, &ada(&project)).exits(1);
    assert_eq!(run.json_error()["kind"], "signing_failed");
    fs::rename(project.bin().join("away"), keygen).unwrap();
    project.run(["challenge", ID]).exits(0);
    verify(&project, &ada(&project)).exits(0);
}

/// An SSH agent that is ended with the test.
struct SshAgent(Child);

impl Drop for SshAgent {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The private key may be where no file is.
#[test]
fn a_key_in_the_agent_signs() {
    let keys = signing();
    let socket = keys.home().join("agent");
    let mut agent = Command::new("ssh-agent");
    agent.args(["-D", "-a"]).arg(&socket).stdout(Stdio::null());
    let _agent = SshAgent(agent.spawn().expect("this test needs ssh-agent, of OpenSSH"));
    let add = |arguments: &[&str]| {
        let mut command = Command::new("ssh-add");
        command.args(arguments).current_dir(keys.home()).env("SSH_AUTH_SOCK", &socket);
        command.stderr(Stdio::null()).status().unwrap().success()
    };
    while !add(&["-q", "ada"]) {
        std::thread::yield_now();
    }
    let public = fs::read_to_string(keys.home().join("ada.pub")).unwrap();
    let challenge = |setting: &str| {
        let project = signing();
        fs::remove_file(project.home().join("ada")).unwrap();
        write(&project.home().join("ada.pub"), &public);
        settings(&project, &format!("[user]\nsigningkey = \"{setting}\"\n"));
        let mut command = project.command(["challenge", ID]);
        let run = project.finish(command.env("SSH_AUTH_SOCK", &socket));
        (project, run)
    };
    for setting in [&format!("key::{}", public.trim()), public.trim(), "~/ada.pub"] {
        let (project, run) = challenge(setting);
        run.exits(0);
        verify(&project, &ada(&project)).exits(0);
    }
    assert!(add(&["-q", "-D"]));
    let (_, run) = challenge("~/ada.pub");
    assert!(run.exits(1).stderr.contains("the journal cannot be signed"));
}

// contract T6
#[test]
fn a_change_of_the_first_edition_opens_and_verify_says_what_it_cannot_prove() {
    let project = TestProject::new().root_file("agentd/config.toml", ROLES).change(ID);
    let state = project.read("STATE.yaml");
    let digest = agentd_core::hash::Digest::of("a plan");
    project.write(
        "STATE.yaml",
        format!(
            "{}plan_review:\n  verdict: APPROVED\n  iteration: 1\n  reviewer: codex\n  at: \
             2026-11-04T11:00:00Z\n  plan_hash: \"{digest}\"\ndecisions:\n  - choice: accept\n    \
             by: eve\n    at: 2026-11-04T11:00:00Z\n",
            state.replace("phase: proposed", "phase: challenged")
        ),
    );
    for command in [&["status", ID][..], &["list"], &["show", ID], &["log", ID]] {
        project.run(command).exits(0);
    }
    assert!(!project.path("journal.jsonl").exists(), "reading records nothing");
    insta::assert_snapshot!(project.run(["verify", ID]), @"
    exit 1
    add-oauth  challenged
      ✗ journal    there is none: the change is from before journals, or was made by hand
      ✗ plan       APPROVED: recorded before the journal began
      – tests      none were run
      – code       not reviewed yet
      ✗ decisions  1 decision; nothing shows who decided
    --- stderr
    ");
    // Whatever is recorded later does not prove what came before.
    project.run(["archive", ID, "--force", "by hand"]).exits(0);
    let run = project.run(["verify", ID, "--json"]);
    let (_, text, _) = claim(&run, "journal");
    assert!(text.contains("entry 1 took over a challenged change"), "{text}");
    not_proven(&run, "plan", "recorded before the journal began");
}

/// The id may be used again, and the copy on this machine is that of the later change.
// contract T6
#[test]
fn an_archived_change_is_not_compared_with_a_later_one_of_its_id() {
    let project = TestProject::new().change(ID);
    project.run(["archive", ID, "--force", "by hand"]).exits(0);
    let archive = project.root().join("agentd/archive");
    let name = fs::read_dir(&archive).unwrap().next().unwrap().unwrap().file_name();
    let name = name.to_str().unwrap().to_owned();
    let journal = || claim(&project.run(["verify", &name, "--json"]), "journal");
    let (status, text, _) = journal();
    assert!(status == "proven" && text.contains("as this machine wrote it"), "{text}");
    let again = TestProject::new().change(ID);
    for file in ["STATE.yaml", "proposal.md", "tasks.md", "specs/auth-flow.md"] {
        project.write(file, again.read(file));
    }
    update_state(&project.store(), &project.id(), &project.holder(), now(), |_| Ok(())).unwrap();
    let (status, text, _) = journal();
    assert!(status == "proven" && text.contains("this machine did not write it"), "{text}");
}
