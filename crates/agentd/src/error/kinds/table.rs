//! The kinds themselves.

use super::{Group, Kind};

const fn kind(name: &'static str, means: &'static str, remedy: &'static str) -> Kind {
    Kind { name, means, remedy }
}

/// All kinds.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        title: "The project and its files",
        kinds: &[
            kind(
                "not_initialised",
                "Neither this directory nor one above it has an `agentd/` directory.",
                "Run `agentd init` at the root of the project, or name it with `-C DIR`.",
            ),
            kind(
                "config_invalid",
                "`agentd/config.toml` cannot be read: a key is unknown, or a value is wrong. The message names the place and the nearest known key.",
                "Correct the file. `docs/configuration.md` shows all keys, and `agentd init` writes a file in which each default is shown.",
            ),
            kind(
                "not_trusted",
                "`agentd/config.toml` makes agentd run something: a `command`, `args` or `env` of an agent, or a `test_command`. It comes with the repository, and you have not agreed to it, or it has changed since you did. Nothing of it was run.",
                "Run `agentd trust`, which shows what would run and asks. `--trust` agrees for one command, `AGENTD_TRUST=all` for a CI job.",
            ),
            kind(
                "repository_settings",
                "The repository has a `.gemini/.env` that sets variables for Gemini CLI. They could point it, and your key, at another host, and it cannot be kept from reading them.",
                "Set the variables in your own environment or in `~/.gemini/.env`, and move the file away. `GEMINI_API_KEY`, `GOOGLE_API_KEY`, `GOOGLE_CLOUD_PROJECT` and `GOOGLE_CLOUD_LOCATION` may stay, as plain `NAME=value` lines.",
            ),
            kind(
                "state_invalid",
                "`STATE.yaml` of a change cannot be read, for example after a merge with conflict markers. agentd never overwrites a state that it cannot read.",
                "Restore it: `git checkout -- agentd/changes/<id>/STATE.yaml`.",
            ),
            kind(
                "no_state",
                "The directory of the change has no `STATE.yaml`, so agentd has not begun it.",
                "Restore the file from git; to begin the change, run `agentd plan <id> \"<what you want>\"`.",
            ),
            kind(
                "documents",
                "A document of the change or of the project cannot be read or written.",
                "The cause tells why: most often permissions, a full disk, or a link that leads out of the project.",
            ),
            kind(
                "context",
                "`GEMINI.md` or `AGENTS.md` of the change cannot be written.",
                "The cause tells why. They are made anew before each call and may be deleted.",
            ),
            kind(
                "store",
                "A file or directory cannot be used: it cannot be read or written, or it is a link that leads out of the project.",
                "The cause is what the system said about that path.",
            ),
            kind(
                "locked",
                "Another agentd works on this change right now; the message says which process.",
                "Wait for it to end, or stop it. A lock ends with its process: nothing has to be removed by hand.",
            ),
            kind(
                "no_such_change",
                "No open change has that id.",
                "`agentd list` shows the open ones, `agentd list --archived` those that are put away.",
            ),
            kind(
                "no_change",
                "No change was named, and none is open.",
                "Begin one: `agentd plan <id> \"<what you want>\"`.",
            ),
            kind(
                "no_such_document",
                "The change or the project has no document of that name.",
                "`agentd status <id>` shows which documents there are.",
            ),
            kind(
                "no_such_rule",
                "`agentd explain` knows neither a rule nor an error of that name.",
                "`agentd explain` without a name lists all rules.",
            ),
            kind(
                "nothing_to_trace",
                "No change touches that requirement or spec.",
                "`agentd list --specs` shows the specs, `agentd list` the changes.",
            ),
        ],
    },
    Group {
        title: "Plans, reviews and phases",
        kinds: &[
            kind(
                "clarifications_missing",
                "The description leaves questions open, and there is no terminal on which agentd could ask them.",
                "Answer them from a file (`agentd clarify <id> --json`, then `--answers FILE`), or plan without: `--skip-clarify`.",
            ),
            kind(
                "no_description",
                "The change has begun without a description of what is wanted.",
                "Say it: `agentd clarify <id> \"<what you want>\"`.",
            ),
            kind(
                "questions_invalid",
                "The file of proposed questions cannot be read.",
                "Remove it, and they are proposed anew; the message names its path.",
            ),
            kind(
                "answers_unreadable",
                "The file given with `--answers` cannot be read.",
                "Check the path; `-` reads standard input.",
            ),
            kind(
                "answers_invalid",
                "The file given with `--answers` does not answer the questions: the cause names the place.",
                "`agentd clarify <id> --json` prints the questions with the shape of their answers.",
            ),
            kind(
                "refused",
                "The change is in a phase in which this cannot be done, or a tool has refused what was written.",
                "The hints name what is allowed now; `agentd status <id>` shows where the change stands.",
            ),
            kind(
                "change_not_ready",
                "Only an approved plan can be implemented.",
                "Finish the plan first: `agentd plan <id>`.",
            ),
            kind(
                "format_invalid",
                "Documents of the plan break rules that every document has to keep, also after the planner was asked to mend them `format_iterations` times.",
                "`agentd validate <id>` shows each place and how to mend it. Edit the documents, then run the same command again.",
            ),
            kind(
                "verdict_unknown",
                "The reviewer ended without a verdict: it has not called its tool.",
                "Look at what it said (`agentd log <id>`, or the file in `runs/`), and run the same command again.",
            ),
            kind(
                "stale_verdict",
                "Someone edited the plan while it was being challenged, so the verdict is about another text.",
                "Challenge it again: `agentd challenge <id>`.",
            ),
            kind(
                "not_independent",
                "Planner and challenger are of one vendor, and `workflow.require_independent_review` forbids it.",
                "Give one of the roles to another agent in `[roles]`.",
            ),
            kind(
                "no_review",
                "There is no review that asks for a revision, so there is nothing to revise.",
                "Let the plan be challenged first: `agentd challenge <id>`.",
            ),
            kind(
                "no_document",
                "A document that the step works on is not there.",
                "`agentd plan <id>` writes what is missing; or restore the file from git.",
            ),
            kind(
                "spec_cycle",
                "The affected specs of the proposal depend on each other in a circle, so there is no order to write them in.",
                "Take one of the dependencies out of `affected_specs` in `proposal.md`.",
            ),
            kind(
                "tasks_left",
                "The implementer has left tasks of a layer open, also when it was asked again.",
                "See what it said (`agentd log <id>`). Run `agentd impl <id>` again, or do the task by hand and tick it in `tasks.md`.",
            ),
            kind(
                "no_such_task",
                "`--tasks` names a task that the plan does not have.",
                "`agentd show <id> tasks` shows their ids.",
            ),
            kind(
                "budget",
                "The change has used up what `[budget]` allows, and the next call was not made.",
                "`agentd cost <id>` shows where it went. Raise the limit in `agentd/config.toml` and run the same command again.",
            ),
            kind(
                "no_terminal",
                "A question would have to be asked, and there is no terminal.",
                "Answer it by a flag or a file, as the hints say, or run the command in a terminal.",
            ),
            kind(
                "prompt",
                "A question could not be shown on the terminal.",
                "The cause tells why. `--auto` and the flags of the command answer questions without asking.",
            ),
        ],
    },
    Group {
        title: "Agents",
        kinds: &[
            kind(
                "agent_not_installed",
                "The program of an agent is not on `PATH`.",
                "Install it, name its path as `command` in `[gemini]`, `[codex]` or `[claude]`, or give the role to another agent in `[roles]`. `agentd doctor` shows which are there.",
            ),
            kind(
                "agent_auth",
                "The agent is not logged in, or its key was refused. agentd passes your environment on and keeps no keys.",
                "Start the agent's own program once and log in, or set its key in the environment.",
            ),
            kind(
                "agent_failed",
                "The agent ended with an error. What passes, such as a rate limit, a server error or a broken connection, was tried again `script_retries` times.",
                "The cause is what the agent said; all of it is in `runs/`. The same command goes on where it stopped.",
            ),
            kind(
                "mcp_unavailable",
                "The agent could not reach agentd's MCP server, which is its only way to write.",
                "`agentd doctor` starts the server and says what is wrong with it.",
            ),
            kind(
                "no_artefact",
                "The agent reported success, but what it should have written is not on the disk. agentd looks, and does not believe it.",
                "The cause is what the agent said. Run the same command again, or a stronger model for this complexity (`[gemini.models]`).",
            ),
            kind(
                "invalid_artefact",
                "What the agent wrote breaks rules that every document has to keep.",
                "`agentd validate <id>` shows the places. Mend them, or run the same command again.",
            ),
            kind(
                "run",
                "The call could not be started, or not be recorded in `runs/`.",
                "The cause is what the system said.",
            ),
            kind(
                "agents",
                "agentd could not set up a call, for example because its own path cannot be told.",
                "The cause is what the system said.",
            ),
            kind(
                "path_not_utf8",
                "The path of the project is not UTF-8, and agents get it in files that hold text only.",
                "Move the project, or rename the directory. The cause shows the path, with the odd bytes as `\\xNN`.",
            ),
            kind(
                "session_not_captured",
                "The planner has told no session, or the change was planned before one was stored. What it has written stays.",
                "Write the plan anew (`agentd proposal`), or edit it yourself and run `agentd challenge <id>`.",
            ),
            kind(
                "session_not_found",
                "The planner's session is gone: deleted, of another machine, or of another project directory.",
                "Run `agentd proposal` again, or edit the plan yourself and run `agentd challenge <id>`.",
            ),
            kind(
                "session_list_failed",
                "`gemini --list-sessions` failed; what it said is the cause.",
                "Start `gemini` by hand in the project and see whether it works.",
            ),
            kind(
                "session_list_timed_out",
                "`gemini --list-sessions` did not end in time.",
                "Start it by hand in the project. It may be waiting for a log-in or for an update.",
            ),
            kind(
                "session_list_unparseable",
                "`gemini --list-sessions` printed something that agentd does not know. Nothing is guessed.",
                "Set `resume = \"uuid\"` in `[gemini]`, which needs no list, and report the output.",
            ),
        ],
    },
    Group {
        title: "Git",
        kinds: &[
            kind(
                "git_not_installed",
                "There is no `git` on `PATH`.",
                "Install git 2.36 or newer, or work without it: `--git in-place`.",
            ),
            kind(
                "git_too_old",
                "This git cannot do what agentd needs.",
                "Install git 2.36 or newer, or work without it: `--git in-place`.",
            ),
            kind(
                "git_no_repository",
                "The project is in no git repository.",
                "`git init` and a first commit, or work without git: `--git in-place`.",
            ),
            kind(
                "git_no_work_tree",
                "The project is in a bare repository, or inside of `.git`.",
                "Work in a checkout.",
            ),
            kind(
                "git_no_commit",
                "The repository has no commit from which a branch could start.",
                "Commit something first.",
            ),
            kind(
                "git_submodule",
                "The project is a submodule, which gets no work trees of its own.",
                "Use `--git branch` or `--git in-place`.",
            ),
            kind(
                "git_branch_name_taken",
                "Another branch is in the way of the name `agentd/<id>`, such as one called `agentd`.",
                "Rename that branch, or use `--git in-place`.",
            ),
            kind(
                "git_checked_out_elsewhere",
                "The branch of the change is checked out in another work tree.",
                "Work there, or remove that work tree: `git worktree remove`.",
            ),
            kind(
                "git_checked_out_here",
                "The branch of the change is checked out here, so it cannot have a work tree of its own.",
                "Use `--git branch`, or switch to another branch first.",
            ),
            kind(
                "git_no_work_tree_of_change",
                "The work tree in which the change was begun is gone.",
                "The hints show the command that makes it again.",
            ),
            kind(
                "git_switch_refused",
                "Git would lose uncommitted work by switching branches.",
                "Commit or stash it; or use `--git worktree`, which leaves this checkout alone.",
            ),
            kind(
                "git_path_taken",
                "Something lies where the work tree of the change would be.",
                "Move it away, or use `--git branch`.",
            ),
            kind(
                "git_other_branch",
                "The work tree of the change has another branch checked out.",
                "Switch it back; the message names the branch.",
            ),
            kind(
                "git_leads_out",
                "The directory of the project in a work tree leads out of it, by a link.",
                "Remove the link.",
            ),
            kind(
                "git_no_such_commit",
                "A commit that the change refers to is not in this repository, for example after a rebase and a clean-up, or in a shallow clone.",
                "Fetch the missing history: `git fetch --unshallow`.",
            ),
            kind(
                "git_damaged",
                "An object of the repository is missing, or its content is not what its hash stands for. A diff made of it could hide an edit.",
                "Look with `git fsck`; get the object again with `git fetch --refetch`, or from another clone.",
            ),
            kind(
                "git_conflicts",
                "Files are in conflict, and nothing can be committed.",
                "Settle them as usual (`git status`), then run the same command again.",
            ),
            kind(
                "git_no_identity",
                "Git does not know who commits.",
                "`git config user.name` and `git config user.email`.",
            ),
            kind(
                "git_commit_refused",
                "A hook or git itself has refused a commit; what it said is the cause.",
                "Mend what the hook asks for, then run the same command again. `[git] commit = \"none\"` leaves commits to you.",
            ),
            kind(
                "git_timed_out",
                "A git command did not end in time.",
                "Run it by hand: it may be waiting for a key or a file system.",
            ),
            kind(
                "git_failed",
                "A git command failed in a way that agentd does not know.",
                "The cause is what git said.",
            ),
            kind(
                "sandbox",
                "The sandbox for an agent, the tests or git could not be set up, so nothing was started.",
                "`agentd doctor` shows what this system can enforce. `[sandbox] enabled = false` in `agentd/config.toml` runs everything without a sandbox.",
            ),
            kind(
                "tampered",
                "An implementer, or the tests that it wrote, has changed what others run or obey outside of its confinement (a hook, settings of git or of an agent, agentd/config.toml), or what only agentd writes in STATE.yaml. All of it was put back as it was; the code that it wrote stays.",
                "Look at what the agent did (`agentd log <id>`, `runs/`) before you run the same command again. Where a tool of the project installs hooks, as husky does with `npm install`, run it yourself there once.",
            ),
            kind("git", "The repository of the demonstration is gone.", "Run `agentd demo` again."),
        ],
    },
    Group {
        title: "Archives",
        kinds: &[
            kind(
                "conflict",
                "The change and what was archived since it began have edited the same requirement. Nothing has been written.",
                "`docs/archive.md` shows the ways on: edit the spec of the change and `agentd archive <id> --continue`.",
            ),
            kind(
                "unsound_spec",
                "A spec cannot be merged because it is not valid.",
                "Correct the file that the message names; `agentd validate --all` tells the places.",
            ),
            kind(
                "not_archived",
                "No archived change has that name.",
                "`agentd list --archived` shows them.",
            ),
            kind(
                "no_archive_record",
                "The archived change has no record of what it has merged, so it was not archived by `agentd archive`.",
                "Take it back with git.",
            ),
            kind(
                "bad_record",
                "The record of an archive, or of one that was cut short, cannot be read.",
                "Restore it from git, or remove it by hand.",
            ),
            kind(
                "change_open",
                "An open change has the same id, so the archived one cannot be taken back.",
                "Finish or rename the open one first.",
            ),
            kind(
                "changed_since",
                "Main specs have changed since this change was archived, and taking it back would lose that.",
                "Take back the later changes first: `agentd list --archived`.",
            ),
        ],
    },
    Group {
        title: "Recordings, exports, the viewer, the demonstration",
        kinds: &[
            kind(
                "recording",
                "There is no recording at that place, or it cannot be read.",
                "Name a change, its directory, or a directory of run files (`NNNN-<step>.jsonl`).",
            ),
            kind(
                "already_there",
                "The directory to replay into has this change already.",
                "Replay into a fresh clone.",
            ),
            kind(
                "replay",
                "A recorded step could not be played.",
                "The message tells which and why; `docs/replay.md` tells what a recording holds.",
            ),
            kind("export", "The archive cannot be written.", "The cause is what the system said."),
            kind(
                "port",
                "The viewer cannot listen on that port.",
                "Take another: `agentd view --port N`; without `--port` a free one is found.",
            ),
            kind("viewer", "The viewer has failed.", "The cause tells why; start it again."),
            kind(
                "not_empty",
                "The directory for the demonstration is not empty, and is left alone.",
                "Name another: `agentd demo --dir DIR`.",
            ),
            kind(
                "demo",
                "The recording inside of this agentd does not fit it any more.",
                "That is a defect of this build: please report it.",
            ),
        ],
    },
    Group {
        title: "The command itself",
        kinds: &[
            kind(
                "usage",
                "The command line is wrong; the exit code is 2.",
                "`agentd <command> --help` shows examples.",
            ),
            kind(
                "interrupted",
                "Somebody pressed Ctrl-C, or the process was asked to end; the exit code is 130. Agents were ended with it.",
                "The same command goes on where it stopped.",
            ),
            kind(
                "output",
                "The output could not be written, for example because a disk is full.",
                "The cause is what the system said.",
            ),
            kind(
                "mcp",
                "The MCP server could not be started.",
                "`agentd doctor` looks for the reason.",
            ),
            kind(
                "internal",
                "agentd has met something that should not be possible.",
                "Please report it, with `agentd export <id>` where a change is involved.",
            ),
        ],
    },
];
