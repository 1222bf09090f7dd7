//! Runs commands as a reader would type them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use real_agents::{Sandbox, Signal};
use terminal::Terminal;
use test_project::{Output, agentd, write_script};

/// All questions of agentd end with a line that says so. Enter answers them, except that the pages
/// implement an approved plan later.
const QUESTION: [(&str, &str); 4] = [
    ("The plan is approved. What next?", "\u{1b}[B\u{1b}[B"),
    ("enter continues", "\r"),
    ("enter answers", "\r"),
    ("enter to confirm", "\r"),
];

pub(crate) struct Shell<'s> {
    sandbox: &'s Sandbox,
}

impl<'s> Shell<'s> {
    pub(crate) fn new(sandbox: &'s Sandbox) -> Self {
        let shell = Self { sandbox };
        let bin = sandbox.bin();
        std::os::unix::fs::symlink(agentd(), bin.join("agentd")).unwrap();
        // An editor that writes a spec.
        let spec = super::documents::spec();
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

    /// Where the commands of a page are run.
    pub(crate) fn project(&self) -> PathBuf {
        self.sandbox.base().join("work/your-project")
    }

    /// The next command is run there.
    pub(crate) fn stand_in(&self, directory: &std::path::Path) {
        fs::write(self.sandbox.base().join("cwd"), directory.to_str().unwrap()).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let note = self.sandbox.base().join("cwd");
        let cwd = fs::read_to_string(&note).unwrap();
        // A `cd` is for the commands that follow, too.
        let script = format!(
            "{line}\ncode=$?\npwd > '{}.new' && mv '{0}.new' '{0}'\nexit $code",
            note.display()
        );
        let mut command = self.sandbox.any_command("sh");
        command.env("EDITOR", "editor").env("NO_COLOR", "1");
        // A reader has yet to trust the settings of a project.
        command.env_remove("AGENTD_TRUST");
        command.args(["-c", &script]).current_dir(cwd.trim_end()).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end, with both streams on stdout; on a terminal, Enter answers each
    /// question.
    pub(crate) fn run(&self, line: &str, answers: bool) -> Output {
        if line.starts_with("agentd view") {
            self.serve(line)
        } else if answers {
            self.answer(line)
        } else {
            let mut command = self.command(&format!("exec 2>&1\n{line}"));
            self.sandbox.finish(&mut command)
        }
    }

    fn answer(&self, line: &str) -> Output {
        let terminal = Terminal::start(&mut self.command(line));
        let (code, recording) = terminal.answer_all(120, &QUESTION);
        let rows = recording.rows();
        let lines = rows.iter().map(|row| row.at_last().map(terminal::Shown::text));
        // A terminal echoes keys that are pressed before somebody asks.
        let lines = lines.map(|line| line.unwrap_or_default().replace("^[[B", ""));
        let lines: Vec<String> = lines.collect();
        Output::on_terminal(code.unwrap(), lines.join("\n"), &self.sandbox.base())
    }

    /// A server prints its address and is ended by Ctrl-C.
    fn serve(&self, line: &str) -> Output {
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
        // To end a server is no failure.
        let code = status.code().filter(|code| *code != 130).unwrap_or(0);
        Output::on_terminal(code, format!("{first}{rest}"), &self.sandbox.base())
    }
}
