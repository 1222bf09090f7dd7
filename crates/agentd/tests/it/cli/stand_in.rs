//! A stand-in for Claude Code, in every role of a plan: it reads its prompt, starts the real
//! MCP server, calls the tool that it was given for the step, and says how it went.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use test_project::TestProject;

pub(crate) const CHANGE: &str = "add-login";
/// How the proposal reads before and after a reproposal.
pub(crate) const AS_WRITTEN: &str = "People want to come back to their own data.";
pub(crate) const AS_FIXED: &str = "People want to come back to their own data, which is locked.";

const START: &str = r#"{"type":"system","subtype":"init","session_id":"daa347b4","mcp_servers":[{"name":"agentd","status":"connected"}],"model":"claude-opus-4-8"}"#;
const LOST: &str = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: daa347b4"]}"#;
const SAY: &str = r#"{"type":"assistant","message":{"id":"m","role":"assistant","model":"claude-opus-4-8","content":[{"type":"text","text":"<review>PASS</review>"}]},"session_id":"daa347b4"}"#;
const END: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"<review>PASS</review>","session_id":"daa347b4","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":2}}"#;

/// A project in which the stand-in plays all roles of a plan; the lines go into `[workflow]`.
/// Its challenger finds the issues, each a severity and a title, until the reproposal has
/// fixed them, and then approves.
pub(crate) fn project(workflow: &str, issues: &[(&str, &str)]) -> TestProject {
    let roles = "[roles]\nplanner = \"claude\"\nchallenger = \"claude\"\n";
    let config = format!("{roles}[workflow]\nscript_retries = 0\n{workflow}");
    let project = TestProject::new().root_file("agentd/config.toml", config);
    let dir = project.home().join("answers");
    fs::create_dir_all(&dir).unwrap();
    fs::create_dir_all(project.home().join(".claude")).unwrap();
    let put = |name: &str, tool: &str, arguments: &Value| answer(&project, name, tool, arguments);
    put("clarify", "propose_questions", &questions());
    put("proposal-gen", "create_proposal", &proposal());
    put("spec-gen-auth-flow", "create_spec", &spec());
    put("tasks-gen", "create_tasks", &tasks());
    let whole =
        [("create_proposal", proposal()), ("create_spec", spec()), ("create_tasks", tasks())];
    answers(&project, "plan-gen", &whole);
    let verdict = |verdict: &str, issues: Vec<Value>| json!({"change_id": CHANGE, "verdict": verdict, "summary": "Read it.", "issues": issues});
    let issue = |(severity, title): &(&str, &str)| {
        json!({"severity": severity, "title": title, "description": format!("{title} goes wrong."),
            "location": "proposal.md", "recommendation": "Fix it."})
    };
    put(
        "challenge",
        "append_review",
        &verdict("NEEDS_REVISION", issues.iter().map(issue).collect()),
    );
    put("challenge-fixed", "append_review", &verdict("APPROVED", Vec::new()));
    edits(&project, AS_WRITTEN, AS_FIXED);
    let script = format!(
        "PATH=/usr/bin:/bin\nread -r agentd step change\ncat > '{prompts}'/$step.prompt\n\
         echo \"$step\" >> '{log}'\n\
         case \"$*\" in *--resume*) [ -e '{lost}' ] && {{ echo '{LOST}'; exit 1; }};; esac\n\
         echo '{START}'\n\
         answer='{answers}'/$step; config=; server=\n\
         for word; do [ \"$config\" = --mcp-config ] && server=$word; config=$word; done\n\
         if [ $step = challenge ]; then\n\
         grep -q 'which is locked' agentd/changes/$change/proposal.md && answer=$answer-fixed; fi\n\
         words=$(sed 's/.*\"args\":\\[\\([^]]*\\)\\].*/\\1/; s/\",\"/ /g; s/\"//g' \"$server\")\n\
         case $step in implement-*|fix) mkdir -p src; date +%N >> src/login.rs\n\
         while [ -e '{hold}' ]; do sleep 0.02; done;; esac\n\
         [ -e $answer ] && '{agentd}' $words < $answer > /dev/null\n\
         echo '{SAY}'\necho '{END}'",
        log = log(&project).display(),
        prompts = project.home().join(".claude").display(),
        lost = lost(&project).display(),
        hold = hold(&project).display(),
        answers = dir.display(),
        agentd = test_project::agentd().display(),
    );
    project.program("claude", &script)
}

/// A repository in which the stand-in plays all roles up to approved code, with more lines of
/// settings.
pub(crate) fn repository(settings: &str) -> TestProject {
    let project = project("self_review_iterations = 0\n", &[]);
    let roles = "challenger = \"claude\"\n";
    let all = format!("{roles}implementer = \"claude\"\nreviewer = \"claude\"\n");
    let config = project.read_root("agentd/config.toml").replace(roles, &all);
    let tests = "[implementation]\ntest_command = \"true\"\n";
    project.write_root("agentd/config.toml", format!("{config}{tests}{settings}"));
    let project = project.programs(&["git", "true", "sh", "date", "mkdir"]).repository();
    for (name, value) in [("user.name", "Ada"), ("user.email", "ada@example.org")] {
        project.git(&["config", name, value]);
    }
    project.commit("Start");
    project.run(["trust", "--yes"]).exits(0);
    verdicts(&project, "APPROVED", "APPROVED");
    project
}

/// From now on, the stand-in does the task and gives these verdicts on plan and code.
pub(crate) fn verdicts(project: &TestProject, plan: &str, code: &str) {
    let verdict = |verdict: &str, place: &str| {
        let issue = json!({"severity": "low", "title": "A word", "description": "It is wrong.",
            place: "proposal.md", "recommendation": "Fix it."});
        let issues = if verdict == "APPROVED" { vec![] } else { vec![issue] };
        json!({"change_id": CHANGE, "verdict": verdict, "summary": "Read.", "issues": issues})
    };
    answers(project, "challenge", &[("append_review", verdict(plan, "location"))]);
    answers(project, "challenge-fixed", &[("append_review", verdict(plan, "location"))]);
    answers(project, "review", &[("create_review", verdict(code, "file"))]);
    let tick = json!({"change_id": CHANGE, "task_id": "2.1", "note": "It builds."});
    answers(project, "implement-logic", &[("complete_task", tick)]);
}

/// What the stand-in does in a step: it calls this tool.
fn answer(project: &TestProject, step: &str, tool: &str, arguments: &Value) {
    answers(project, step, &[(tool, arguments.clone())]);
}

/// What the stand-in does in a step: it calls these tools.
pub(crate) fn answers(project: &TestProject, step: &str, calls: &[(&str, Value)]) {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "stand-in", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut text = format!("{hello}\n{ready}\n");
    for (index, (tool, arguments)) in calls.iter().enumerate() {
        let call = json!({"jsonrpc": "2.0", "id": index + 2, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        text.push_str(&format!("{call}\n"));
    }
    fs::write(project.home().join("answers").join(step), text).unwrap();
}

/// From now on, a reproposal makes this of the proposal.
pub(crate) fn edits(project: &TestProject, old: &str, new: &str) {
    let edit =
        json!({"change_id": CHANGE, "path": "proposal.md", "old_string": old, "new_string": new});
    answer(project, "reproposal", "edit_file", &edit);
}

/// The prompt of the last call of a step, without its first line.
pub(crate) fn prompt(project: &TestProject, step: &str) -> String {
    fs::read_to_string(project.home().join(format!(".claude/{step}.prompt"))).unwrap()
}

fn log(project: &TestProject) -> std::path::PathBuf {
    // Where the CLI keeps its own files: it may write there in every role.
    project.home().join(".claude/calls")
}

/// Where this file is, no session of the stand-in can be resumed.
pub(crate) fn lost(project: &TestProject) -> std::path::PathBuf {
    project.home().join(".claude/lost")
}

/// As long as this file is there, an implementer does not come to an end.
pub(crate) fn hold(project: &TestProject) -> std::path::PathBuf {
    project.home().join(".claude/hold")
}

pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_mins(1), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Starts `impl`; its agent has written code and works until the file of [`hold`] is gone.
pub(crate) fn begin_impl(project: &TestProject) -> Child {
    fs::write(hold(project), "").unwrap();
    let mut command = project.command(["impl", CHANGE]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let called = || calls(project).iter().any(|step| step == "implement-logic");
    wait_until("the implementer is called", called);
    wait_until("it writes", || project.has_root("src/login.rs"));
    child
}

/// The steps that the stand-in was called for, in order.
pub(crate) fn calls(project: &TestProject) -> Vec<String> {
    let text = fs::read_to_string(log(project)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn questions() -> Value {
    let question = |header: &str, labels: [&str; 2]| {
        let option =
            |label: &str| json!({"label": label, "description": format!("Means {label}.")});
        json!({"header": header, "question": format!("Which {header}?"),
            "options": labels.map(option), "multi_select": false})
    };
    json!({"change_id": CHANGE, "questions": [
        question("Method", ["OAuth", "Password"]),
        question("Storage", ["PostgreSQL", "SQLite"]),
        question("Clients", ["Web", "Phone"]),
    ]})
}

fn proposal() -> Value {
    json!({"change_id": CHANGE, "summary": "Add a login with email and password.",
        "why": AS_WRITTEN, "what_changes": ["Add a login with email and password"],
        "impact": {"scope": "minor", "affected_specs": ["auth-flow"], "affected_files": 3, "new_files": 1}})
}

fn spec() -> Value {
    json!({"change_id": CHANGE, "spec_id": "auth-flow", "title": "Login",
        "overview": "What the login does.",
        "requirements": [{"id": "R1", "title": "Answer", "priority": "high",
            "description": "The server MUST answer 200 within 2 s."}],
        "scenarios": [
            {"name": "Good", "when": "the password is right", "then": "200 is answered"},
            {"name": "Bad", "when": "the password is wrong", "then": "401 is answered as an error"}]})
}

fn tasks() -> Value {
    json!({"change_id": CHANGE, "tasks": [{"layer": "logic", "number": 1, "title": "Write it",
        "file": {"path": "src/login.rs", "action": "CREATE"}, "spec_ref": "auth-flow:R1",
        "description": "Write it.", "depends": []}]})
}
