use test_project::TestProject;

/// The commands that `--help` lists, but for `help` itself.
pub(crate) fn commands(project: &TestProject) -> Vec<String> {
    let help = project.run(["--help"]).fine().stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(names.iter().any(|name| name == "validate"), "{help}");
    names
}

#[test]
fn every_command_help_has_examples() {
    let project = TestProject::empty();
    for command in commands(&project) {
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
    insta::assert_snapshot!(run.stderr, @"
    Spec-driven development with several coding agents

    Usage: agentd [OPTIONS] <COMMAND>

    Commands:
      demo         Watch a change go from one sentence to merged specs, without agents
      init         Set up agentd in a project
      plan         Take a change from one sentence to an approved plan
      bug          Fix a bug, starting with a test that fails because of it
      impl         Take an approved plan to approved code: implement, review, fix
      clarify      Answer open questions about a change before planning it
      proposal     Have the planner write the proposal, specs, and tasks of a new change
      challenge    Have another agent review a plan
      reproposal   Have the planner fix the issues from the latest plan review
      implement    Have the implementer do the tasks of an approved plan
      review       Run the tests and have another agent review the code of a change
      fix          Have the implementer fix the issues from the latest code review
      list         List the open changes, or the main specs, or what is archived
      status       Show where a change stands: phase, verdict, tasks, findings, cost
      show         Show a document of a change, or a main spec
      validate     Check the documents of a change, or of the whole project [alias: validate-proposal]
      verify       Check what is proven about a change: reviews, tests and decisions
      explain      Explain a validation code or an error kind, or list them all
      context      Show the files that matter for what you want, as a planner gets them
      log          Show what has happened to a change, oldest first
      cost         Show the cost of a change by step
      decide       Decide what to do with a plan that needs revision
      revise       Change the plan of a change, also if it is approved, rejected, being implemented or
                   complete
      rename       Give an open change another ID
      archive      Merge the specs of a change into the main specs and move the change to the archive
      drop         Give up a change
      unarchive    Reopen an archived change
      overlap      Show open changes that touch the same requirement, scenario, or file
      trace        Trace a requirement to its tasks, files, commits, scenarios, and review
      export       Export a change and its runs as a tar archive, for a bug report
      replay       Replay a recorded change in another directory, without agents
      view         Show changes in a browser: documents, reviews, cost, and live progress
      mcp          Serve the tools for agents over MCP on standard input and output
      trust        Allow a project's settings to run programs
      doctor       Check the setup: agents, git, and the project
      completions  Print a completion script for a shell
      uninstall    Remove what `agentd init` added to a project
      help         Print this message or the help of the given subcommand(s)

    Options:
      -C, --directory <DIR>  Run as if agentd was started in DIR
          --json             Print exactly one JSON document to stdout
      -h, --help             Print help
      -V, --version          Print version

    Examples:
      agentd demo                 watch a whole change happen, without agents
      agentd init                 set up this project
      agentd list                 list open changes
      agentd validate add-oauth   check the documents of a change
      agentd explain T005         explain a code
    ");
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
