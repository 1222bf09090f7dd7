//! The projects in which the pages begin. They are made as a person would make them, by the
//! commands of agentd, once per page, and copied.
//!
//! | place | is |
//! |---|---|
//! | project | a small project with a test, and no agentd yet |
//! | initialised | the same after `agentd init`, committed |
//! | waiting | `add-oauth` is planned, and its plan needs revision |
//! | planned | `add-oauth` is planned on its branch, and approved |
//! | broken | the same with a mistake in tasks.md |
//! | implemented | the code is written and not yet reviewed |
//! | to-fix | the same after a review that found something |
//! | built | `add-oauth` is implemented, reviewed and complete |

use std::fs;
use std::path::{Path, PathBuf};

use agentd_core::config::TEMPLATE;
use real_agents::Sandbox;

use super::shell::Shell;

const PLAN: &str =
    "agentd plan add-oauth \"Let people sign in with GitHub\" --skip-clarify --git branch";

pub(crate) struct Places<'s> {
    sandbox: &'s Sandbox,
    shell: &'s Shell<'s>,
    config: &'static str,
    made: Vec<String>,
}

impl<'s> Places<'s> {
    pub(crate) fn new(sandbox: &'s Sandbox, shell: &'s Shell<'s>) -> Self {
        Self { sandbox, shell, config: "", made: Vec::new() }
    }

    /// Plans without gemini, which starts slowly, and without self-reviews.
    pub(crate) fn quick(self) -> Self {
        let config = "[roles]\nplanner = \"codex\"\nchallenger = \"claude\"\n\
                      [workflow]\nself_review_iterations = 0\n";
        Self { config, ..self }
    }

    /// What agentd keeps about projects: a project goes with the journals of its changes.
    fn state(&self) -> PathBuf {
        self.sandbox.home().join(".local/state/agentd")
    }

    fn template(&self, name: &str) -> PathBuf {
        self.sandbox.base().join("templates").join(name)
    }

    /// Begins in a fresh project. It is always at the same path, to which agents tie their
    /// sessions.
    pub(crate) fn enter(&mut self, name: &str) {
        let work = self.sandbox.base().join("work");
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).unwrap();
        let kept = self.template(&format!("{name}-state"));
        if self.made.iter().any(|made| made == name) {
            self.copy(&self.template(name), &self.shell.project());
            self.copy(&kept, &self.state());
        } else {
            self.make(name);
            self.copy(&self.shell.project(), &self.template(name));
            self.copy(&self.state(), &kept);
            self.made.push(name.to_owned());
        }
        self.shell.stand_in(&self.shell.project());
        if self.shell.project().join("agentd/config.toml").is_file() {
            // The page may have agreed to other settings at this path.
            self.does("agentd trust --yes");
        }
    }

    fn copy(&self, from: &Path, to: &Path) {
        self.shell.stand_in(&self.sandbox.base());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let (from, to) = (from.display(), to.display());
        self.does(&format!("rm -rf '{to}' && cp -a '{from}' '{to}'"));
    }

    fn does(&self, line: &str) {
        let ran = self.shell.run(line, false);
        assert_eq!(ran.code, 0, "{line}\n{}", ran.stdout);
    }

    fn make(&mut self, name: &str) {
        let project = self.shell.project();
        match name {
            "project" => {
                let _ = fs::remove_dir_all(self.state());
                fs::create_dir_all(self.state()).unwrap();
                fs::create_dir_all(project.join("src")).unwrap();
                fs::write(project.join("README.md"), "# A service\n").unwrap();
                fs::write(project.join("src/main.rs"), "fn main() {}\n").unwrap();
                fs::write(project.join("test.sh"), "test -f src/auth-flow.rs\n").unwrap();
                self.shell.stand_in(&project);
                self.does("git init -q && git add -A && git commit -q -m Start");
            }
            "initialised" => {
                self.enter("project");
                self.does("agentd init --yes --agents none");
                let config = project.join("agentd/config.toml");
                let test = "\n[implementation]\ntest_command = \"sh test.sh\"\n[git]\ncommit = \"layer\"\n";
                // The examples run with the default roles.
                fs::write(config, format!("{TEMPLATE}{test}{}", self.config)).unwrap();
                self.does("git add -A && git commit -q -m 'Set up agentd'");
            }
            "waiting" => {
                self.enter("initialised");
                self.does(PLAN);
                self.does("agentd status --json | grep -q NEEDS_REVISION");
            }
            "planned" => {
                self.enter("initialised");
                self.does(PLAN);
                self.does("agentd status --json | grep -q APPROVED");
            }
            "broken" => {
                self.enter("planned");
                let tasks = project.join("agentd/changes/add-oauth/tasks.md");
                let text = fs::read_to_string(&tasks).unwrap();
                let text = text.replace("file: src/auth-flow.rs", "file: ../auth-flow.rs");
                fs::write(tasks, text).unwrap();
            }
            "implemented" => {
                self.enter("planned");
                self.does("agentd implement add-oauth");
            }
            "to-fix" => {
                self.enter("implemented");
                self.does("agentd review add-oauth --json | grep -q NEEDS_FIX");
            }
            "built" => {
                self.enter("planned");
                self.does("agentd impl add-oauth");
            }
            other => panic!("there is no place `{other}`"),
        }
    }
}
