//! The answer of `gemini --list-sessions`, and every way in which it can be wrong
//! (E2.5, E2.7 – E2.9, C28).

/// A session in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSession {
    /// Its place, from 1; what `--resume` takes. It changes with every resume.
    pub index: u32,
    /// The first prompt or a summary of it.
    pub title: String,
    /// How long ago, in words.
    pub age: String,
    /// The id.
    pub id: String,
}

/// Why a session could not be found. Each ends the command with exit 1; none
/// falls back to `--resume latest`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The list is there, and the session is not in it (E2.7, C28).
    #[error("Session not found, please re-run proposal")]
    NotFound {
        /// The id that was looked for.
        id: String,
    },
    /// The command failed: exit code, no key (E2.8).
    #[error("`gemini --list-sessions` failed{}", exit_text(*code))]
    ListFailed {
        /// The exit code, if it was not killed.
        code: Option<i32>,
        /// What it wrote to standard error.
        stderr: String,
        /// What it wrote to standard output.
        stdout: String,
    },
    /// The command took too long (E2.8).
    #[error("`gemini --list-sessions` took too long")]
    ListTimedOut {
        /// What it wrote to standard error.
        stderr: String,
        /// What it wrote to standard output.
        stdout: String,
    },
    /// The output is not a list of sessions (E2.9).
    #[error("Failed to parse session list: {why}")]
    Unparseable {
        /// What is wrong with it.
        why: String,
        /// The output as it was.
        raw: String,
    },
    /// The agent has written something, and has not reported its session (C5).
    #[error("Failed to capture session ID")]
    NotCaptured,
    /// A session was to be resumed, and none had been stored (RP1).
    #[error("Failed to capture session ID")]
    NotStored,
}

fn exit_text(code: Option<i32>) -> String {
    code.map_or_else(|| " (killed)".to_owned(), |code| format!(" with exit code {code}"))
}

impl SessionError {
    /// What the command printed, for showing it to the user as E2.8 and E2.9 ask.
    pub fn output(&self) -> Option<String> {
        match self {
            Self::ListFailed { stderr, stdout, .. } | Self::ListTimedOut { stderr, stdout } => {
                let parts = [stderr.trim_end(), stdout.trim_end()];
                Some(
                    parts
                        .into_iter()
                        .filter(|part| !part.is_empty())
                        .collect::<Vec<_>>()
                        .join("\n"),
                )
            }
            Self::Unparseable { raw, .. } => Some(raw.clone()),
            Self::NotFound { .. } | Self::NotCaptured | Self::NotStored => None,
        }
    }
}

/// What `gemini --list-sessions` did.
#[derive(Debug, Clone, Default)]
pub struct ListOutput {
    /// The exit code; none when it was killed.
    pub code: Option<i32>,
    /// It was stopped because it took too long.
    pub timed_out: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The sessions that the command listed.
pub fn sessions(output: &ListOutput) -> Result<Vec<ListedSession>, SessionError> {
    let (stdout, stderr) = (output.stdout.clone(), output.stderr.clone());
    if output.timed_out {
        return Err(SessionError::ListTimedOut { stderr, stdout });
    }
    if output.code != Some(0) {
        return Err(SessionError::ListFailed { code: output.code, stderr, stdout });
    }
    parse(&output.stdout)
}

/// The session with this id (a UUID, in either case).
pub fn find(output: &ListOutput, id: &str) -> Result<ListedSession, SessionError> {
    let all = sessions(output)?;
    let found = all.into_iter().find(|session| session.id.eq_ignore_ascii_case(id));
    found.ok_or_else(|| SessionError::NotFound { id: id.to_owned() })
}

fn parse(stdout: &str) -> Result<Vec<ListedSession>, SessionError> {
    let wrong = |why: String| Err(SessionError::Unparseable { why, raw: stdout.to_owned() });
    let mut lines = stdout.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return wrong("the output is empty".into()) };
    if first.trim_start().starts_with("No previous sessions found") {
        return Ok(Vec::new());
    }
    let announced = first
        .trim_start()
        .strip_prefix("Available sessions for this project")
        .map(|rest| rest.trim().strip_prefix('(').and_then(|rest| rest.split(')').next()));
    let Some(announced) = announced else {
        return wrong(format!("no \"Available sessions\" header, but {first:?}"));
    };
    let announced: Option<u32> = announced.and_then(|count| count.trim().parse().ok());
    let mut found: Vec<ListedSession> = Vec::new();
    // A title may hold line breaks: an entry continues until its line ends in an id.
    let mut open = String::new();
    for line in lines {
        let next = u32::try_from(found.len() + 1).unwrap_or(u32::MAX);
        if open.is_empty() {
            if index_of(line).is_none_or(|(index, _)| index != next) {
                return wrong(format!("expected entry {next}, found {line:?}"));
            }
            line.clone_into(&mut open);
        } else {
            open.push('\n');
            open.push_str(line);
        }
        if let Some(session) = entry(&open) {
            found.push(session);
            open.clear();
        }
    }
    if !open.is_empty() {
        return wrong(format!("no id in brackets at the end of {open:?}"));
    }
    if found.is_empty() {
        return wrong("the list is empty".into());
    }
    match announced {
        Some(count) if found.len() != count as usize => {
            wrong(format!("{count} sessions announced, {} listed", found.len()))
        }
        _ => Ok(found),
    }
}

/// `  12. rest` as 12 and the rest.
fn index_of(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.trim_start().split_once(". ")?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if digits { Some((number.parse().ok()?, rest)) } else { None }
}

/// `1. title (age) [id]`, read from its end: brackets in the title do not matter.
fn entry(text: &str) -> Option<ListedSession> {
    let (index, rest) = index_of(text)?;
    let (before, id) = rest.strip_suffix(']')?.rsplit_once(" [")?;
    let id_is_plain = !id.is_empty()
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let (title, age) = before.strip_suffix(')')?.rsplit_once(" (")?;
    id_is_plain.then(|| ListedSession {
        index,
        title: title.to_owned(),
        age: age.to_owned(),
        id: id.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "98edbdc9-dffb-4572-96dc-d52d8f32de74";

    fn listed(stdout: &str) -> ListOutput {
        ListOutput { code: Some(0), stdout: stdout.into(), ..ListOutput::default() }
    }

    #[test]
    fn the_real_list_is_read() {
        let output = listed(&format!(
            "\nAvailable sessions for this project (3):\n  \
             1. second prompt about bees (Just now) [f4949c5e-6eba-45f1-923f-74a45604e174]\n  \
             2. first prompt: write note (2 hours ago) [{UUID}]\n  \
             3. fake side answer (Just now) [foo]\n"
        ));
        let found = find(&output, UUID).unwrap();
        assert_eq!((found.index, found.age.as_str()), (2, "2 hours ago"));
        assert_eq!(find(&output, &UUID.to_uppercase()).unwrap().index, 2);
        assert_eq!(sessions(&output).unwrap().len(), 3);
        let missing = find(&output, "0").unwrap_err();
        assert_eq!(missing.to_string(), "Session not found, please re-run proposal");
    }

    #[test]
    fn brackets_in_a_preview_do_not_fool_it() {
        let other = "11111111-2222-4333-8444-555555555555";
        let output = listed(&format!(
            "Available sessions for this project (2):\n  \
             1. fix [{UUID}] (see (x)) (Just now) [{other}]\n  \
             2. a\n  3. b (1 day ago) [x\n] (Just now) [{UUID}]\n"
        ));
        assert_eq!(find(&output, other).unwrap().title, format!("fix [{UUID}] (see (x))"));
        assert_eq!(find(&output, UUID).unwrap().index, 2);
    }

    #[test]
    fn every_failure_has_its_type() {
        let none = find(&listed("No previous sessions found for this project."), UUID);
        assert_eq!(none, Err(SessionError::NotFound { id: UUID.into() }));
        for raw in [
            "",
            "hello",
            "Available sessions for this project (1):\n",
            "Available sessions for this project (1):\n  1. no id here (Just now)\n",
            "Available sessions for this project (2):\n  1. a (Just now) [b]\n",
            "Available sessions for this project (1):\n  2. a (Just now) [b]\n",
            "Available sessions for this project (1):\n  garbage\n",
        ] {
            let error = sessions(&listed(raw)).unwrap_err();
            assert!(error.to_string().starts_with("Failed to parse session list"), "{raw:?}");
            assert_eq!(error.output().as_deref(), Some(raw));
        }
        let failed = ListOutput { code: Some(41), stderr: "no auth".into(), ..listed("out") };
        let error = sessions(&failed).unwrap_err();
        assert!(matches!(error, SessionError::ListFailed { .. }), "{error:?}");
        assert_eq!(error.output().unwrap(), "no auth\nout");
        let slow = ListOutput { timed_out: true, ..listed("") };
        assert!(matches!(sessions(&slow), Err(SessionError::ListTimedOut { .. })));
    }
}
