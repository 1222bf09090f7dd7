//! Every kind of error, with what it means and what to do about it: one row each, from which
//! `agentd explain` and docs/troubleshooting.md are made.

use serde::Serialize;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

macro_rules! kinds {
    ($($group:literal { $($kind:ident: $means:literal, $remedy:literal;)+ })+) => {
        /// A kind of error. Its name in `snake_case` is stable.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Display, EnumString, IntoStaticStr, VariantArray,
        )]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        pub enum Kind {
            $($(#[doc = $means] $kind,)+)+
        }

        impl Kind {
            /// What errors of this kind are about: the heading of their section.
            pub fn group(self) -> &'static str {
                match self {
                    $($(Self::$kind)|+ => $group,)+
                }
            }

            /// What has happened.
            pub fn means(self) -> &'static str {
                match self {
                    $($(Self::$kind => $means,)+)+
                }
            }

            /// What to do about it.
            pub fn remedy(self) -> &'static str {
                match self {
                    $($(Self::$kind => $remedy,)+)+
                }
            }
        }
    };
}

impl Kind {
    /// All of them, in the order of the page.
    pub const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

    /// Its name, as `--json` has it; stable.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The exit code of a command that ends with such an error.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Usage => 2,
            Self::Interrupted => 130,
            // EX_TEMPFAIL: somebody else has it; later it may be free.
            Self::Claimed | Self::ClaimLost => 75,
            _ => 1,
        }
    }
}

kinds! {
    "The project and its files" {
        NotInitialised:
            "Neither this directory nor any directory above it contains `agentd/`.",
            "Run `agentd init` at the root of the project, or name the project with `-C DIR`.";
        ConfigInvalid:
            "`agentd/config.toml` has an unknown key or a wrong value. The message names the place and the closest known key.",
            "Correct the file. `docs/configuration.md` lists all keys, and `agentd init` writes a file that shows each default.";
        NotTrusted:
            "`agentd/config.toml` makes agentd run something: a `command`, `args` or `env` of an agent, or a `test_command`. The file comes with the repository, and you have not agreed to it, or it has changed since you did. None of it was run.",
            "Run `agentd trust`, which shows what would run and asks. `--trust` agrees for one command, `AGENTD_TRUST=all` for a CI job.";
        RepositorySettings:
            "The repository has a `.gemini/.env` that sets variables for Gemini CLI. They could redirect it, and your key, to another host, and agentd cannot keep it from reading them.",
            "Set the variables in your own environment or in `~/.gemini/.env`, and move the file away. `GEMINI_API_KEY`, `GOOGLE_API_KEY`, `GOOGLE_CLOUD_PROJECT` and `GOOGLE_CLOUD_LOCATION` may stay, as plain `NAME=value` lines.";
        ReviewStale:
            "The files of a change, or its plan, were edited after they were approved. A verdict is about what the reviewer saw.",
            "Undo the edit. `agentd archive <id> --accept-stale --note \"why\"` archives the change all the same, and records who decided that.";
        StateEdited:
            "The phase, a verdict or a decision in the `STATE.yaml` of a change is not the one that agentd recorded: somebody edited the file. What counts is what agentd wrote.",
            "Undo the edit. To move a change back, challenge or review it again. If the file is right, `agentd verify <id> --accept` takes it as it is, and records who said so.";
        JournalChanged:
            "The `journal.jsonl` of a change is damaged, or is not the one that this machine knows: git brought another version of it, or somebody edited it.",
            "Run `agentd verify <id>` to see what is proven. If the files are right, for example because a teammate pushed them, run `agentd verify <id> --accept`; otherwise restore them.";
        SigningFailed:
            "`[policy] sign = \"ssh\"` asks for signatures in the journals of changes, and agentd cannot make one: your git settings name no key, the key is not there or is locked, or OpenSSH is not installed. Nothing was recorded. `agentd verify --allowed-signers` ends with it if it cannot read the list or run OpenSSH.",
            "Name a key in your own git settings, `git config --global user.signingkey ~/.ssh/id_ed25519.pub`, and load it with `ssh-add` if it has a passphrase.";
        StateInvalid:
            "The `STATE.yaml` of a change cannot be read, for example because a merge left conflict markers. agentd never overwrites a state that it cannot read.",
            "Restore it: `git checkout -- agentd/changes/<id>/STATE.yaml`.";
        NoState:
            "The directory of the change has no `STATE.yaml`, so agentd did not start this change.",
            "Restore the file from git; to start the change, run `agentd plan <id> \"<what you want>\"`.";
        Context:
            "`GEMINI.md` or `AGENTS.md` of the change cannot be written.",
            "See the cause. These files are regenerated before each call and are safe to delete.";
        Store:
            "A file or directory cannot be read or written, or a link leads outside of the project.",
            "See the cause, which is the message of the system about that path.";
        Locked:
            "Another agentd is working on this change; the message names its process.",
            "Wait for it to finish, or stop it. A lock ends with its process: there is nothing to remove by hand.";
        NoSuchChange:
            "No open change has that ID.",
            "`agentd list` shows the open changes, `agentd list --archived` the archived ones.";
        NoChange:
            "No change was named, and none is open.",
            "Start one: `agentd plan <id> \"<what you want>\"`.";
        IdTaken:
            "The new ID belongs to another change, which is open or archived.",
            "Choose another ID: `agentd list` and `agentd list --archived` show those that are taken.";
        NoSuchDocument:
            "The change or the project has no document of that name.",
            "`agentd status <id>` shows which documents there are.";
        NoSuchRule:
            "`agentd explain` knows neither a rule nor an error of that name.",
            "`agentd explain` without a name lists all rules and errors.";
        NothingToTrace:
            "No change touches that requirement or spec.",
            "`agentd list --specs` shows the specs, `agentd list` the changes.";
    }
    "Plans, reviews and phases" {
        ClarificationsMissing:
            "The description leaves questions open, and there is no terminal on which agentd could ask them.",
            "Answer them from a file (`agentd clarify <id> \"<what you want>\" --json`, then `--answers FILE`), or plan without asking: `--skip-clarify`.";
        NoDescription:
            "The change is new and needs a description of what you want.",
            "Describe it: `agentd clarify <id> \"<what you want>\"`.";
        QuestionsInvalid:
            "The file of proposed questions cannot be read.",
            "Remove the file that the message names; the questions are then proposed again.";
        DescriptionUnreadable:
            "The file given with `--file` cannot be read.",
            "Check the path; `-` reads standard input.";
        AnswersUnreadable:
            "The file given with `--answers` cannot be read.",
            "Check the path; `-` reads standard input.";
        AnswersInvalid:
            "The file given with `--answers` does not answer the questions; the cause names the place.",
            "`agentd clarify <id> --json` prints the questions and the format of the answers.";
        Refused:
            "The phase of the change does not allow this command, or a tool refused what was written.",
            "The hints name what is allowed now; `agentd status <id>` shows the phase of the change.";
        ChangeNotReady:
            "Only an approved plan can be implemented.",
            "Finish the plan first: `agentd plan <id>`.";
        FormatInvalid:
            "Documents of the plan break rules that every document must follow, even after the planner was asked `format_iterations` times to fix them.",
            "`agentd validate <id>` shows each place and how to fix it. Edit the documents, then run the same command again.";
        VerdictUnknown:
            "The reviewer ended without a verdict: it did not call its tool.",
            "See what it said (`agentd log <id>`, or the file in `runs/`), then run the same command again.";
        StaleVerdict:
            "The plan was edited while it was being challenged, so the verdict applies to another text.",
            "Challenge it again: `agentd challenge <id>`.";
        NotIndependent:
            "The agent that wrote a plan or code and the one that reviews it are from the same vendor, and `[policy] independent_review = \"require\"` forbids that.",
            "Give one of the roles to another agent in `[roles]`.";
        NoReview:
            "No review asks for a revision, so there is nothing to revise.",
            "Have the plan challenged first: `agentd challenge <id>`.";
        NothingToDecide:
            "No plan waits for a decision: it was not challenged yet, was edited since, or is past that.",
            "`agentd status <id>` shows what comes next.";
        NothingToSettle:
            "`agentd cost --settle` names a run whose cost is known, or that does not exist.",
            "`agentd cost <id>` lists the calls that were cut short, with the numbers of their runs.";
        NoDocument:
            "A document that the step works on is missing.",
            "`agentd plan <id>` writes what is missing; or restore the file from git.";
        SpecCycle:
            "The affected specs of the proposal depend on each other in a cycle, so there is no order to write them in.",
            "Remove one of the dependencies from `affected_specs` in `proposal.md`.";
        TasksLeft:
            "The implementer left tasks of a layer open, even when asked again.",
            "See what it said (`agentd log <id>`). Run `agentd impl <id>` again, or do the task by hand and check it off in `tasks.md`.";
        NoTests:
            "A change that `agentd bug` began needs a test that fails, and agentd does not know how the tests of the project are run.",
            "Set `test_command` under `[implementation]` in `agentd/config.toml`, agree to it with `agentd trust`, and run the same command again.";
        TestsFailing:
            "The tests of the project fail before there is one for the bug, so a test that fails would prove nothing.",
            "Fix them first, or set a narrower `test_command`, then run the same command again.";
        NotReproduced:
            "The implementer was asked for a test that fails because of the bug, and agentd did not see one fail.",
            "See what it did (`agentd log <id>`). Run `agentd impl <id>` again, or say more about the bug: `agentd revise <id> \"<how it shows>\"`.";
        NoSuchTask:
            "`--tasks` names a task that the plan does not have.",
            "`agentd show <id> tasks` shows their IDs.";
        Budget:
            "The change has used up what `[budget]` allows, and the next call was not made.",
            "`agentd cost <id>` shows where it went. Raise the limit in `agentd/config.toml` and run the same command again.";
        AboveAskLimit:
            "The change may cost more than `[budget] ask_above_usd`, by its forecast, and nobody has agreed to that. No agent was called.",
            "`agentd plan <id> \"…\" --forecast` shows the steps. Pass `--yes` to agree, or raise the limit in `agentd/config.toml`.";
        NoTerminal:
            "agentd needs an answer, and there is no terminal to ask on.",
            "Answer with a flag or a file, as the hints describe, or run the command in a terminal.";
        Prompt:
            "A question could not be shown on the terminal.",
            "See the cause. `--auto` and the flags of the command answer questions in advance.";
    }
    "Agents" {
        AgentNotInstalled:
            "The program of an agent is not on `PATH`.",
            "Install it, set its path as `command` in `[gemini]`, `[codex]` or `[claude]`, or give the role to another agent in `[roles]`. `agentd doctor` shows which agents are installed.";
        AgentAuth:
            "The agent is not logged in, or its key was rejected. agentd passes your environment on and stores no keys.",
            "Start the agent's own program once and log in, or set its key in the environment.";
        AgentUnfit:
            "`agentd doctor --probe` has shown that the agent cannot do what the role needs, for the program and the settings that it has now.",
            "Give the role to another agent in `[roles]`. After you have updated the agent or changed its settings, probe it again.";
        AgentFailed:
            "The agent ended with an error. Temporary problems, such as a rate limit, a server error or a broken connection, were retried `script_retries` times.",
            "See the cause, which is the agent's own message; the whole output is in `runs/`. Run the same command again to resume.";
        McpUnavailable:
            "The agent could not reach agentd's MCP server, which is its only way to write.",
            "`agentd doctor` starts the server and reports what is wrong with it.";
        NoArtefact:
            "The agent reported success, but did not write the file that it should have written. agentd checks the disk instead of believing it.",
            "See the cause, which is the agent's last message. Run the same command again, or set a stronger model for this complexity (`[gemini.models]`).";
        InvalidArtefact:
            "What the agent wrote breaks rules that every document must follow.",
            "`agentd validate <id>` shows the places. Fix them, or run the same command again.";
        Run:
            "The call could not be started, or could not be recorded in `runs/`.",
            "See the cause, which is the message of the system.";
        Agents:
            "agentd could not set up a call, for example because the path of its own program is unknown.",
            "See the cause, which is the message of the system.";
        PathNotUtf8:
            "The path of the project is not UTF-8, but agents get it in text files.",
            "Move the project, or rename the directory. The cause shows the path, with invalid bytes as `\\xNN`.";
        SessionNotCaptured:
            "The planner reported no session, or the change was planned before sessions were stored. What it has written stays.",
            "Continue with `agentd plan <id>`. To have the plan revised after a review, run `agentd reproposal <id> --fresh`, which begins a new session that is given the plan and the review.";
        SessionNotFound:
            "The planner's session is gone: it was deleted, or belongs to another machine or project directory.",
            "Run `agentd reproposal <id> --fresh`: it begins a new session that is given the plan and the review. `agentd plan <id>` offers the same on a terminal, and does it with `--auto`. Or edit the plan yourself and run `agentd challenge <id>`.";
        SessionListFailed:
            "`gemini --list-sessions` failed; its output is the cause.",
            "Start `gemini` by hand in the project and check that it works.";
        SessionListTimedOut:
            "`gemini --list-sessions` did not finish in time.",
            "Start it by hand in the project. It may be waiting for a login or for an update.";
        SessionListUnparseable:
            "`gemini --list-sessions` printed something that agentd does not understand. agentd does not guess.",
            "Set `resume = \"uuid\"` in `[gemini]`, which needs no list, and report the output.";
    }
    "Git" {
        GitNotInstalled:
            "There is no `git` on `PATH`.",
            "Install git 2.36 or newer, or work without it: `--git in-place`.";
        GitTooOld:
            "This version of git lacks features that agentd needs.",
            "Install git 2.36 or newer, or work without it: `--git in-place`.";
        GitNoRepository:
            "The project is not in a git repository.",
            "Run `git init` and create a first commit, or work without git: `--git in-place`.";
        GitNoWorkTree:
            "The project is in a bare repository, or inside `.git`.",
            "Work in a checkout.";
        GitNoCommit:
            "The repository has no commit from which a branch could start.",
            "Create a first commit.";
        GitSubmodule:
            "The project is a submodule, which cannot have worktrees of its own.",
            "Use `--git branch` or `--git in-place`.";
        GitBranchNameTaken:
            "Another branch blocks the name `agentd/<id>`, such as one called `agentd`.",
            "Rename that branch, or use `--git in-place`.";
        GitCheckedOutElsewhere:
            "The branch of the change is checked out in another worktree.",
            "Work there, or remove that worktree: `git worktree remove`.";
        GitCheckedOutHere:
            "The branch of the change is checked out here, so it cannot have a worktree of its own.",
            "Use `--git branch`, or switch to another branch first.";
        GitNoWorkTreeOfChange:
            "The worktree in which the change was started is gone.",
            "The hints show the command that creates it again.";
        GitSwitchRefused:
            "Switching branches would lose uncommitted work.",
            "Commit or stash it; or use `--git worktree`, which leaves this checkout alone.";
        GitPathTaken:
            "Something already exists where the worktree of the change would be, or other documents of the change are in it.",
            "Move it away, or use `--git branch`.";
        GitOtherBranch:
            "The worktree of the change has another branch checked out.",
            "Switch it back; the message names the branch.";
        GitLeadsOut:
            "The directory of the project in a worktree leads outside of it, through a link.",
            "Remove the link.";
        GitNoBaseBranch:
            "The branch that `[git] base` names is not in this repository, so no branch can start from it.",
            "Set `[git] base` in `agentd/config.toml` to a branch that exists, or fetch it: `git fetch origin`.";
        GitNoSuchCommit:
            "A commit that the change refers to is not in this repository, for example after a rebase and a garbage collection, or in a shallow clone.",
            "Fetch the missing history: `git fetch --unshallow`.";
        GitDamaged:
            "An object of the repository is missing, or its content does not match its hash. A diff made from it could hide an edit.",
            "Run `git fsck`; get the object again with `git fetch --refetch`, or from another clone.";
        GitConflicts:
            "Files are in conflict, so nothing can be committed.",
            "Resolve them as usual (`git status`), then run the same command again.";
        GitNoIdentity:
            "Git does not know your name and email address.",
            "Set `git config user.name` and `git config user.email`.";
        GitCommitRefused:
            "A hook or git itself refused a commit; its output is the cause.",
            "Fix what the hook reported, then run the same command again. `[git] commit = \"none\"` leaves commits to you.";
        GitTimedOut:
            "A git command did not finish in time.",
            "Run it by hand: it may be waiting for a key or a file system.";
        GitFailed:
            "A git command failed in a way that agentd does not know.",
            "See the cause, which is the output of git.";
        Sandbox:
            "The sandbox for an agent, the tests or git could not be set up, so nothing was started.",
            "`agentd doctor` shows what this system can enforce. `[sandbox] enabled = false` in `agentd/config.toml` runs everything without a sandbox.";
        Tampered:
            "An implementer, or the tests that it wrote, modified files that others run or obey outside of its sandbox (a hook, settings of git or of an agent, agentd/config.toml), or what only agentd writes in STATE.yaml. All of it was restored; the code that it wrote stays.",
            "Check what the agent did (`agentd log <id>`, `runs/`) before you run the same command again. If a tool of the project installs hooks, as husky does with `npm install`, run it there once yourself.";
        Git:
            "The repository of the demo is gone.",
            "Run `agentd demo` again.";
    }
    "Changes on several machines" {
        Claimed:
            "Another worker or person has the change. The command has called no agent. Its exit code is 75.",
            "Wait until they are done. `agentd take <id> --force` takes it from them: what they push after that is refused.";
        ClaimLost:
            "Somebody else has taken over the change while this command worked on it, because it was silent for too long or was told to stop. The agent was ended, and nothing that it did was pushed. The exit code is 75.",
            "Nothing: the worker or person who has the change continues it. The call that was running may have been paid for; it is in their ledger as unsettled.";
        RemoteUnreachable:
            "The remote repository does not answer, refuses the push, or there is none of that name. See the cause, which is git's own message.",
            "Check that `git push` works from there, and that the server accepts refs below `refs/agentd/`. Then run the same command again: nothing is lost.";
        NotCarried:
            "The change cannot be carried to or from the remote: it is not on a branch of its own, something in the checkout would be overwritten, too much is not committed, or a signature is missing.",
            "The hints describe what to do about it.";
        FleetMissing:
            "`agentd fleet` and `agentd worker` are a program of their own, `agentd-fleet`, which is neither beside `agentd` nor in `PATH`.",
            "Install it with `cargo install --path crates/agentd-fleet`, or put it beside `agentd`.";
        FleetUnreachable:
            "The server of the fleet, a Postgres database, does not answer, or refuses. See the cause.",
            "Check the address in `--engine` or `AGENTD_FLEET`, and that the user may create schemas in the database. Steps that are running go on meanwhile.";
    }
    "Archives" {
        Conflict:
            "The change and another change that was archived since it started have edited the same requirement. Nothing was written.",
            "See `docs/archive.md`: edit the spec of the change, then run `agentd archive <id> --continue`.";
        UnsoundSpec:
            "A spec cannot be merged because it is not valid.",
            "Correct the file that the message names; `agentd validate --all` shows the places.";
        NotArchived:
            "No archived change has that name.",
            "`agentd list --archived` shows them.";
        NoArchiveRecord:
            "The archived change has no record of what was merged, so it was not archived by `agentd archive`.",
            "Revert it with git.";
        BadRecord:
            "The record of an archived change, or of an interrupted archive, cannot be read.",
            "Restore it from git, or remove it by hand.";
        ChangeOpen:
            "An open change has the same ID, so the archived one cannot be restored.",
            "Finish or rename the open one first.";
        ChangedSince:
            "Main specs have changed since this change was archived, and unarchiving it would lose those edits.",
            "Unarchive the later changes first: `agentd list --archived`.";
    }
    "Recordings, exports, the viewer, the demo" {
        Recording:
            "There is no recording at that path, or it cannot be read.",
            "Name a change, its directory, or a directory of run files (`NNNN-<step>.jsonl`).";
        AlreadyThere:
            "The directory to replay into already has this change.",
            "Replay into a fresh clone.";
        Replay:
            "A recorded step could not be replayed.",
            "See the message; `docs/replay.md` describes what a recording contains.";
        Export:
            "The archive cannot be written.",
            "See the cause, which is the message of the system.";
        Port:
            "The viewer cannot listen on that port.",
            "Choose another: `agentd view --port N`; without `--port`, agentd picks a free one.";
        Viewer:
            "The viewer failed.",
            "See the cause, and start it again.";
        NotRunning:
            "There is nothing to stop: nobody is working on the change, or not here.",
            "See `agentd status`; a command on another machine is stopped there, with Ctrl-C.";
        Comment:
            "The comment is empty, missing or not yours, or there are already too many.",
            "Write a comment, or look at those in `comments.md` of the change.";
        NotEmpty:
            "The directory for the demo is not empty, so agentd does not touch it.",
            "Name another: `agentd demo --dir DIR`.";
        Demo:
            "The recording in this build of agentd does not match it.",
            "This is a bug in this build: please report it.";
    }
    "The command itself" {
        Usage:
            "The command line is wrong; the exit code is 2.",
            "`agentd <command> --help` shows examples.";
        Interrupted:
            "Somebody pressed Ctrl-C, or the process was asked to end; the exit code is 130. Running agents were ended as well.",
            "Run the same command again to resume.";
        Output:
            "The output could not be written, for example because a disk is full.",
            "See the cause, which is the message of the system.";
        OutputClosed:
            "The program that reads the output ended before all of it was written, as `head` does. agentd stops without a message; the exit code is 0.",
            "Do nothing: this is not a failure.";
        Mcp:
            "The MCP server could not be started.",
            "Run `agentd doctor` to find the reason.";
        Internal:
            "agentd reached a state that should not be possible.",
            "Please report it, with `agentd export <id>` if a change is involved.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name_and_is_explained() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(*kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            for text in [kind.means(), kind.remedy()] {
                assert!(text.ends_with('.'), "{kind}: {text}");
            }
            assert_ne!(kind.means(), kind.remedy(), "{kind}");
        }
    }

    #[test]
    fn kinds_of_a_group_stand_together() {
        let groups: Vec<&str> = Kind::ALL
            .chunk_by(|one, next| one.group() == next.group())
            .map(|kinds| kinds[0].group())
            .collect();
        let mut unique = groups.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(groups.len(), unique.len(), "{groups:?}");
    }
}
