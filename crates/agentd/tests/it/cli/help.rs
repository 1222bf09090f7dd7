use test_project::TestProject;

/// The commands that `--help` lists, but for `help` itself.
pub(crate) fn commands(project: &TestProject) -> Vec<String> {
    let help = project.run(["--help"]).fine().stdout;
    let listed = help.lines().skip_while(|line| *line != "Everyday commands:");
    let listed = listed.take_while(|line| *line != "Options:");
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(names.iter().any(|name| name == "validate"), "{help}");
    names
}

#[test]
fn every_command_help_has_examples() {
    let project = TestProject::empty();
    // The help of those that are another program is that program's.
    let own = |command: &String| !["fleet", "worker"].contains(&command.as_str());
    for command in commands(&project).into_iter().filter(own) {
        let long = project.run([&command, "--help"]).fine().stdout;
        let (_, examples) = long.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{long}"));
        assert!(examples.contains(&format!("agentd {command}")), "{examples}");
        for option in ["--json", "--directory <DIR>"] {
            assert!(long.contains(option), "{command} lacks {option}");
        }
        assert_eq!(project.run(["help", &command]).fine().stdout, long);
        let short = project.run([&command, "-h"]).fine().stdout;
        assert_eq!(short.split_once("\nExamples:\n").unwrap().1, examples);
    }
}

#[test]
fn the_version_is_one_line() {
    let version = format!("agentd {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["--version", "-V"] {
        assert_eq!(TestProject::empty().run([flag]).fine().stdout, version);
    }
}

#[test]
fn no_command_shows_help() {
    let project = TestProject::empty();
    let run = project.run::<&str>([]).exits(2);
    assert_eq!(run.stdout, "");
    assert_eq!(run.stderr, project.run(["-h"]).fine().stdout);
    insta::assert_snapshot!(run.stderr, @r#"
    Spec-driven development with several coding agents

    Usage: agentd [OPTIONS] <COMMAND>

    Everyday commands:
      init         Set up agentd in a project
      plan         Take a change from one sentence to an approved plan
      decide       Answer what a change waits for: a question of an agent, or a plan that needs revision
      impl         Take an approved plan to approved code: implement, review, fix
      archive      Merge the specs of a change into the main specs and move the change to the archive
      list         List changes: what waits for you, what runs, and what comes next
      status       Show where a change stands, or all of them: what waits, what runs, what comes next
      show         Show a document of a change, or a main spec
      view         Show changes in a browser: plans, reviews, code, runs, cost, and what to do next
      doctor       Check the setup: agents, git, and the project

    Change a plan:
      bug          Fix a bug, starting with a test that fails because of it
      clarify      Answer open questions about a change before planning it
      revise       Change the plan of a change, also if it is approved, rejected, being implemented or
                   complete
      rename       Give an open change another ID
      drop         Give up a change
      unarchive    Reopen an archived change

    Inspect:
      diff         Show what a change has changed: its plan since the last review, the main specs, and
                   the code
      log          Show what has happened to a change, oldest first
      cost         Show what changes have cost: by step, model, role, change and month
      validate     Check the documents of a change, or of the whole project
      verify       Check what is proven about a change: reviews, tests and decisions
      trace        Trace a requirement to its tasks, files, commits, scenarios, and review
      overlap      Show open changes that touch the same requirement, scenario, or file
      context      Show the files that matter for what you want, as a planner gets them
      explain      Explain a validation code or an error kind, or list them all
      export       Export a change: as a tar archive for a bug report, a web page, or the text of a pull
                   request

    Single steps:
      proposal     Have the planner write the proposal, specs, and tasks of a new change
      challenge    Have another agent review a plan
      reproposal   Have the planner fix the issues from the latest plan review
      implement    Have the implementer do the tasks of an approved plan
      review       Run the tests and have another agent review the code of a change
      fix          Have the implementer fix the issues from the latest code review

    On several machines:
      step         Do exactly the next step of a change, and say what comes after it
      take         Take a change that is worked on by a fleet, to work on it here
      give         Give a change to the fleet: one that you have taken, or one that you have begun here
      fleet        Give changes to a fleet of workers, and see what becomes of them
      worker       Do steps of the changes that were given to a fleet, until you stop it

    Try and replay:
      demo         Watch a change go from one sentence to merged specs, without agents
      replay       Replay a recorded change in another directory, without agents

    Set up:
      trust        Allow a project's settings to run programs
      mcp          Serve the tools for agents over MCP on standard input and output
      completions  Print a completion script for a shell
      man          Print or write the man pages
      uninstall    Remove what `agentd init` added to a project

    Options:
      -C, --directory <DIR>  Run as if agentd was started in DIR
          --json             Print exactly one JSON document to stdout
          --no-pager         Do not use a pager for long output
      -h, --help             Print help
      -V, --version          Print version

    Examples:
      agentd demo                                    watch a whole change happen, without agents
      agentd init                                    set up this project
      agentd plan add-oauth "Sign in with GitHub"    from a sentence to a plan that was challenged
      agentd impl add-oauth                          from the plan to code that was reviewed
      agentd archive add-oauth                       merge its specs
      agentd list                                    what waits for you, what runs, what comes next
    "#);
}

#[test]
fn misspelled_command_names_the_nearest() {
    let project = TestProject::empty();
    insta::assert_snapshot!(project.run(["stauts"]), @"
    exit 2
    --- stderr
    error: unrecognized subcommand 'stauts'

      tip: some similar subcommands exist: 'trust', 'status'

    Usage: agentd [OPTIONS] <COMMAND>

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(project.run(["stauts", "--json"]), @r#"
    exit 2
    {
      "version": 1,
      "error": {
        "kind": "usage",
        "message": "unrecognized subcommand 'stauts'",
        "cause": null,
        "hints": [
          "some similar subcommands exist: 'trust', 'status'",
          "Usage: agentd [OPTIONS] <COMMAND>"
        ]
      }
    }
    --- stderr
    "#);
}

#[test]
fn json_usage_error_has_whole_message() {
    let project = TestProject::new();
    let error = project.run(["trace", "--json"]).exits(2).json_error();
    assert_eq!(error["message"], "the following required arguments were not provided: <ID>");
    let error = project.run(["validate", "--json", "--sarif"]).exits(2).json_error();
    assert_eq!(error["message"], "the argument '--json' cannot be used with '--sarif'");
}
