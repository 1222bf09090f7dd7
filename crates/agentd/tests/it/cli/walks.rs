//! W6 with processes: random commands, edits and kills, and from wherever they lead, what `status`
//! suggests is accepted and leads to the archive. The walks of the core go further; these show that its
//! model is that of the program.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use test_project::TestProject;

use super::offers::REFUSALS;
use super::stand_in::{self, AS_WRITTEN, CHANGE};

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        *self.among(all)
    }

    fn among<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.roll(all.len() as u64)).unwrap()]
    }
}

/// Commands that are run at random.
const COMMANDS: [&[&str]; 14] = [
    &["plan", CHANGE],
    &["plan", CHANGE, "--auto"],
    &["challenge", CHANGE],
    &["reproposal", CHANGE],
    &["reproposal", CHANGE, "--fresh"],
    &["decide", CHANGE, "fix"],
    &["decide", CHANGE, "accept"],
    &["decide", CHANGE, "stop"],
    &["revise", CHANGE],
    &["revise", CHANGE, "Say it otherwise"],
    &["impl", CHANGE],
    &["review", CHANGE],
    &["fix", CHANGE],
    &["archive", CHANGE],
];

struct Walk {
    project: TestProject,
    dice: Dice,
    path: Vec<String>,
    /// How often the planner was prepared to edit the plan.
    edits: u32,
    /// STATE.yaml and tasks.md before somebody damaged them.
    undo: Vec<(&'static str, String)>,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let project = stand_in::repository("");
        let dice = Dice((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self { project, dice, path: Vec::new(), edits: 0, undo: Vec::new() }
    }

    fn has(&self, file: &str) -> bool {
        self.project.has_root(&format!("agentd/changes/{CHANGE}/{file}"))
    }

    fn read(&self, file: &str) -> String {
        self.project.read_root(&format!("agentd/changes/{CHANGE}/{file}"))
    }

    fn write(&self, file: &str, text: &str) {
        self.project.write_root(&format!("agentd/changes/{CHANGE}/{file}"), text);
    }

    /// What the agents will say and write: what the dice say, or what lets the change go on.
    fn prepare(&mut self, goes_home: bool) {
        let plans = ["APPROVED", "NEEDS_REVISION", "REJECTED"];
        let codes = ["APPROVED", "NEEDS_FIX", "MAJOR_ISSUES"];
        let plan = if goes_home { "APPROVED" } else { self.dice.of(&plans) };
        let code = if goes_home { "APPROVED" } else { self.dice.of(&codes) };
        stand_in::verdicts(&self.project, plan, code);
        self.edits += 1;
        let new = format!("{AS_WRITTEN} {}", self.edits);
        stand_in::edits(&self.project, AS_WRITTEN, &new);
    }

    /// Runs a command; says why it was refused.
    fn run(&mut self, args: &[String], goes_home: bool) -> Option<String> {
        self.prepare(goes_home);
        let run = self.project.run(args.iter().map(String::as_str).chain(["--json"]));
        let error = serde_json::from_str::<Value>(&run.stdout).ok()?;
        let kind = error["error"]["kind"].as_str().unwrap_or("done").to_owned();
        self.path.push(format!("agentd {}: {kind}", args.join(" ")));
        REFUSALS.contains(&kind.as_str()).then(|| format!("{kind}: {}", run.stdout))
    }

    /// Runs a command, and kills it after a while.
    fn kill(&mut self, args: &[String]) {
        self.prepare(false);
        let mut command = self.project.command(args);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(20 + self.dice.roll(300)));
        let _ = child.kill();
        let _ = child.wait();
        self.path.push(format!("agentd {}: killed", args.join(" ")));
    }

    fn edit(&mut self) {
        let what = self.dice.of(&["plan", "break", "code", "untick", "tasks", "forge"]);
        self.path.push(format!("an edit: {what}"));
        match what {
            "plan" if self.has("proposal.md") => {
                let new = format!("People want data {}.", self.dice.roll(1 << 30));
                let text = self.read("proposal.md");
                self.write("proposal.md", &text.replacen("Add a login", &new, 1));
            }
            "break" | "tasks" if self.has("tasks.md") => {
                let text = self.read("tasks.md");
                if self.undo.iter().all(|(file, _)| *file != "tasks.md") {
                    self.undo.push(("tasks.md", text.clone()));
                }
                if what == "break" {
                    self.write("tasks.md", &text.replace("### ", "# "));
                } else {
                    fs::remove_file(
                        self.project.root().join(format!("agentd/changes/{CHANGE}/tasks.md")),
                    )
                    .unwrap();
                }
            }
            "untick" if self.has("tasks.md") => {
                let text = self.read("tasks.md");
                self.write("tasks.md", &text.replace("status: done", "status: pending"));
            }
            "code" => self.project.write_root("src/login.rs", format!("{}", self.dice.roll(99))),
            "forge"
                if self.has("STATE.yaml") && self.undo.iter().all(|(f, _)| *f != "STATE.yaml") =>
            {
                let text = self.read("STATE.yaml");
                let phase = text.lines().find(|line| line.starts_with("phase: ")).unwrap();
                self.write("STATE.yaml", &text.replace(phase, "phase: complete"));
                self.undo.push(("STATE.yaml", text.clone()));
            }
            _ => {}
        }
    }

    /// People restore what was damaged.
    fn restore(&mut self, wanted: &str) {
        if let Some(at) = self.undo.iter().position(|(file, _)| *file == wanted) {
            let (file, text) = self.undo.remove(at);
            self.write(file, &text);
        }
    }

    /// The commands that `status` suggests; none once it is archived.
    fn next(&self) -> Option<Vec<Vec<String>>> {
        if !self.project.has_root(&format!("agentd/changes/{CHANGE}")) {
            return None;
        }
        let status = self.project.run(["status", CHANGE, "--json"]).exits(0).json();
        let next = status["next"].as_array().unwrap();
        assert!(!next.is_empty(), "a dead end: {status:#}\n{:#?}", self.path);
        let words =
            |next: &Value| shell_words::split(next.as_str().unwrap()).unwrap()[1..].to_vec();
        Some(next.iter().map(words).collect())
    }

    fn walk(mut self) {
        let text = "Add a login with email and password";
        let begin = ["plan", CHANGE, text, "--quick", "--git", "in-place"].map(str::to_owned);
        if self.dice.roll(3) == 0 {
            self.kill(&begin);
        } else {
            self.run(&begin, false);
        }
        if !self.project.has_root(&format!("agentd/changes/{CHANGE}/STATE.yaml")) {
            // It was killed before there was anything.
            self.run(&begin, false);
        }
        for _ in 0..self.dice.roll(5) {
            let Some(next) = self.next() else { return };
            let suggested = self.dice.among(&next).clone();
            let random: Vec<String> =
                self.dice.of(&COMMANDS).iter().map(|word| (*word).to_owned()).collect();
            match self.dice.roll(6) {
                0 | 1 => self.edit(),
                2 => self.kill(&suggested),
                3 => {
                    self.run(&random, false);
                }
                _ => {
                    let why = self.run(&suggested, false);
                    assert_eq!(why, None, "{suggested:?}\n{:#?}", self.path);
                }
            }
        }
        // From here on agents succeed, and people do what is asked of them.
        for _ in 0..40 {
            let Some(next) = self.next() else { return };
            match next[0][0].as_str() {
                "verify" => self.restore("STATE.yaml"),
                "validate" => self.restore("tasks.md"),
                _ => {}
            }
            let why = self.run(&next[0], true);
            assert_eq!(why, None, "{next:?}\n{:#?}", self.path);
            if next[0][0] == "show" {
                let text = self.read("proposal.md");
                self.write("proposal.md", &text.replacen("Add", "Do add", 1));
            }
        }
        panic!("it never arrives: {:?}\n{:#?}", self.next(), self.path);
    }
}

/// How many walks there are; the bar of issue 16 is 300.
fn walks(default: u64) -> u64 {
    std::env::var("AGENTD_WALKS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Two at a time, on the two cores that there are.
#[test]
fn heavy_suggested_commands_of_the_program_lead_home() {
    let count = walks(40);
    let run = |start: u64| (start..count).step_by(2).for_each(|seed| Walk::new(seed).walk());
    thread::scope(|scope| {
        let other = scope.spawn(|| run(1));
        run(0);
        other.join().unwrap();
    });
}
