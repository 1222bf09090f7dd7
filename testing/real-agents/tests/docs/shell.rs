//! Runs commands as a reader would type them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use real_agents::world::{agentd, write_script};
use real_agents::{Sandbox, Signal};
use terminal::Terminal;

/// All questions of agentd end with a line that says so.
const QUESTION: [&str; 3] = ["enter goes on", "enter answers", "enter to confirm"];

pub(crate) struct Shell<'s> {
    sandbox: &'s Sandbox,
}

/// What a command did.
pub(crate) struct Ran {
    pub(crate) code: i32,
    /// What it printed, on both streams.
    pub(crate) output: String,
}

impl<'s> Shell<'s> {
    pub(crate) fn new(sandbox: &'s Sandbox) -> Self {
        let shell = Self { sandbox };
        let bin = shell.bin();
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(agentd(), bin.join("agentd")).unwrap();
        // Somebody who writes a spec.
        let spec = crate::documents::spec();
        fs::write(bin.join("spec.md"), spec).unwrap();
        let editor = format!("cp '{}' \"$1\"", bin.join("spec.md").display());
        write_script(&bin.join("editor"), &editor);
        write_script(&bin.join("xdg-open"), "");
        let identity = "[user]\n\tname = Reader\n\temail = reader@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(sandbox.home().join(".gitconfig"), identity).unwrap();
        fs::create_dir_all(shell.project()).unwrap();
        shell.stand_in(&shell.project());
        shell
    }

    fn bin(&self) -> PathBuf {
        self.sandbox.root().join("bin")
    }

    /// Where the commands of a page are run.
    pub(crate) fn project(&self) -> PathBuf {
        self.sandbox.root().join("work/your-project")
    }

    /// The next command is run there.
    pub(crate) fn stand_in(&self, directory: &std::path::Path) {
        fs::write(self.sandbox.root().join("cwd"), directory.to_str().unwrap()).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let note = self.sandbox.root().join("cwd");
        let cwd = fs::read_to_string(&note).unwrap();
        // A `cd` is for the commands that follow, too.
        let script = format!(
            "{line}\ncode=$?\npwd > '{}.new' && mv '{0}.new' '{0}'\nexit $code",
            note.display()
        );
        let mut command = self.sandbox.command_with(&self.bin(), "sh");
        command.env("EDITOR", "editor").env("NO_COLOR", "1");
        command.args(["-c", &script]).current_dir(cwd.trim_end()).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end; on a terminal, Enter answers each question.
    pub(crate) fn run(&self, line: &str, answers: bool) -> Ran {
        if line.starts_with("agentd view") {
            self.serve(line)
        } else if answers {
            self.answer(line)
        } else {
            let mut command = self.command(&format!("exec 2>&1\n{line}"));
            let output = command.output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            Ran { code: output.status.code().unwrap(), output: printed }
        }
    }

    fn answer(&self, line: &str) -> Ran {
        let terminal = Terminal::start(&mut self.command(line));
        let (code, recording) = terminal.answer_all(120, &QUESTION, "\r");
        let rows = recording.rows();
        let lines = rows.iter().map(|row| row.at_last().map(terminal::Shown::text));
        let lines: Vec<String> = lines.map(Option::unwrap_or_default).collect();
        Ran { code: code.unwrap(), output: lines.join("\n") }
    }

    /// A server prints its address and is ended by Ctrl-C.
    fn serve(&self, line: &str) -> Ran {
        let mut command = self.command(&format!("exec {line}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut first).unwrap();
        real_agents::signal(&child, Signal::INT);
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
        let status = child.wait().unwrap();
        assert!(first.starts_with("http://127.0.0.1:"), "{first}{rest}");
        // Whoever ends a server has not met a failure.
        let code = status.code().filter(|code| *code != 130).unwrap_or(0);
        Ran { code, output: format!("{first}{rest}") }
    }
}
